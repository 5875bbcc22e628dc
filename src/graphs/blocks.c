#include "graphs.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>blocks       building graphs with blocks: value types, and choosing overloads as TorchScript does
//
//  Functions that add nodes, blocks and calls to a graph, for the script compiler and the parser of graph texts.  They
//  check the types of the values.  On failure, a function returns NULL or -1 and sets an error; the nodes that it has
//  added by then remain.
//----------------------------------------------------------------------------------------------------------------------

//== types of values ===================================================================================================

/* Returns the graph's space of types, which the first call makes, or NULL if memory runs out. */
OPDI_INTERNAL opdi_gspace *opdi_graph_space(opd_graph *graph) {
    if (!graph->space) { graph->space = opdi_gspace_new(); }
    return graph->space;
}
/* Makes the graph use the types of `space`; the graph takes a reference to `space`.  The graph must not have types
   yet. */
OPD_UNUSED OPDI_INTERNAL void opdi_graph_share(opd_graph *graph, opdi_gspace *space) {
    opdi_gspace_drop(graph->space);
    graph->space = opdi_gspace_keep(space);
}
/* Sets the type of a value and, accordingly, its tag. */
OPDI_INTERNAL void opdi_gvalue_typed(opdi_gvalue *value, const opdi_gtype *type) {
    value->type = type;
    value->tag = opdi_gtype_tag(type);
}
/* Returns the type of a value, even if the value has only a tag.  Returns NULL if memory runs out. */
OPDI_INTERNAL const opdi_gtype *opdi_gvalue_gtype(opd_graph *graph, const opdi_gvalue *value) {
    static const int8_t kinds[] = {OPDI_GTYPE_NONE, OPDI_GTYPE_TENSOR, OPDI_GTYPE_INT, OPDI_GTYPE_FLOAT,
                                   OPDI_GTYPE_BOOL,
                                   OPDI_GTYPE_COMPLEX, OPDI_GTYPE_STR, OPDI_GTYPE_DEVICE, OPDI_GTYPE_ANY};
    const opdi_gtype *element = opdi_gtype_simple(OPDI_GTYPE_NUMBER);
    const opdi_gnode *const node = value->node;
    opdi_gspace *const space = opdi_graph_space(graph);
    if (value->type || !space) { return value->type; }
    if (value->tag >= 0 && value->tag <= OPD_TAG_OBJECT) { return opdi_gtype_simple(kinds[value->tag]); }
    if (value->tag == OPD_TAG_LIST && node && node->kind == OPDI_GNODE_TUPLE) {
        const opdi_gtype *parts[64];
        for (int32_t i = 0; i < node->nin && i < 64; i++) {
            if (!(parts[i] = opdi_gvalue_gtype(graph, node->in[i]))) { return NULL; }
        }
        return opdi_gtype_tuple(space, parts, OPDI_MIN(node->nin, 64));
    }
    if (value->tag == OPD_TAG_INTS) { element = opdi_gtype_simple(OPDI_GTYPE_INT); }
    if (value->tag == OPD_TAG_FLOATS) { element = opdi_gtype_simple(OPDI_GTYPE_FLOAT); }
    if (value->tag == OPD_TAG_BOOLS) { element = opdi_gtype_simple(OPDI_GTYPE_BOOL); }
    if (value->tag == OPD_TAG_TENSORS) {
        element = opdi_gtype_simple(OPDI_GTYPE_TENSOR);
        if (node && node->kind == OPDI_GNODE_LIST && node->word && node->word[6]) {
            element = opdi_gtype_optional(space, element);
        }
    }
    return value->tag < OPD_TAG_INTS || value->tag > OPD_TAG_LIST ? opdi_gtype_simple(OPDI_GTYPE_ANY)
        : opdi_gtype_list(space, element);
}

//== overloads =========================================================================================================
//
//  Overloads are chosen as in tryMatchSchema and matchSchemas of PyTorch: first, arguments are not converted; if no
//  overload fits, they are.

/* Binds the type variables in the schema type `formal` (such as T in "T[]") to the corresponding parts of the type
   `actual`.  Returns false if a variable would need two types that cannot be unified, or if there are too many
   variables. */
static bool opdi_graph_match_bind(opdi_graph_match_state *match, const opdi_type *formal, const opdi_gtype *actual) {
    int32_t at = 0;
    if (formal->kind == OPDI_TYPE_OPTIONAL) {
        return actual->kind == OPDI_GTYPE_NONE ||
            opdi_graph_match_bind(match, formal->elems[0], opdi_gtype_strip(actual));
    }
    if (formal->kind == OPDI_TYPE_VAR) {
        while (at < match->nvars && strcmp(match->vars[at], formal->word) != 0) { at++; }
        if (at == OPDI_MAX_GVARS) { return false; }
        if (at == match->nvars) {
            match->vars[match->nvars] = formal->word;
            match->bound[match->nvars++] = actual;
            return true;
        }
        match->bound[at] = opdi_gtype_unify(match->graph->space, match->bound[at], actual);
        return match->bound[at] != NULL;
    }
    const int kind = formal->kind == OPDI_TYPE_LIST ? OPDI_GTYPE_LIST : formal->kind == OPDI_TYPE_DICT ? OPDI_GTYPE_DICT
        : formal->kind == OPDI_TYPE_TUPLE ? OPDI_GTYPE_TUPLE : formal->kind == OPDI_TYPE_FUTURE ? OPDI_GTYPE_FUTURE
        : -1;
    if (kind < 0 || actual->kind != kind || actual->nparts != formal->nelems) { return true; }
    for (int32_t i = 0; i < formal->nelems; i++) {
        if (!opdi_graph_match_bind(match, formal->elems[i], actual->parts[i])) { return false; }
    }
    return true;
}
static bool opdi_type_has_vars(const opdi_type *type) {
    bool found = type->kind == OPDI_TYPE_VAR;
    for (int32_t i = 0; i < type->nelems && !found; i++) { found = opdi_type_has_vars(type->elems[i]); }
    return found;
}
/* Returns the schema type `formal` with its type variables replaced by their bindings.  Returns NULL if a variable has
   no binding, or if memory runs out. */
static const opdi_gtype *opdi_graph_match_type(const opdi_graph_match_state *match, const opdi_type *formal) {
    opdi_gspace *const space = match->graph->space;
    const opdi_gtype *parts[64];
    if (!opdi_type_has_vars(formal)) { return opdi_gtype_from(space, formal); }
    for (int32_t i = 0; formal->kind == OPDI_TYPE_VAR && i < match->nvars; i++) {
        if (strcmp(match->vars[i], formal->word) == 0) { return match->bound[i]; }
    }
    if (formal->kind == OPDI_TYPE_VAR || formal->nelems > 64) { return NULL; }
    for (int32_t i = 0; i < formal->nelems; i++) {
        if (!(parts[i] = opdi_graph_match_type(match, formal->elems[i]))) { return NULL; }
    }
    switch (formal->kind) {
    case OPDI_TYPE_LIST: return opdi_gtype_list(space, parts[0]);
    case OPDI_TYPE_OPTIONAL: return opdi_gtype_optional(space, parts[0]);
    case OPDI_TYPE_DICT: return opdi_gtype_dict(space, parts[0], parts[1]);
    case OPDI_TYPE_TUPLE: return opdi_gtype_tuple(space, parts, formal->nelems);
    default: return opdi_gtype_future(space, parts[0]);
    }
}

/* Returns true if each element of the tuple type `tuple` can be an element of the list type `list`. */
static bool opdi_gtype_tuple_as_list(const opdi_gtype *tuple, const opdi_gtype *list) {
    if (tuple->kind != OPDI_GTYPE_TUPLE || list->kind != OPDI_GTYPE_LIST) { return false; }
    for (int32_t i = 0; i < tuple->nparts; i++) {
        if (!opdi_gtype_fits(tuple->parts[i], list->parts[0])) { return false; }
    }
    return true;
}
/* Returns the implicit conversion (an OPDI_CONVERSION_...) from type `actual` to type `want`, or -1 if there is
   none. */
static int opdi_graph_match_convert(const opdi_gtype *actual, const opdi_gtype *want) {
    if (actual->kind == OPDI_GTYPE_TENSOR) {
        return want->kind == OPDI_GTYPE_FLOAT ? OPDI_CONVERSION_FLOAT_IMPLICIT : want->kind == OPDI_GTYPE_INT
            ? OPDI_CONVERSION_INT_IMPLICIT : want->kind == OPDI_GTYPE_COMPLEX ? OPDI_CONVERSION_COMPLEX_IMPLICIT
            : want->kind == OPDI_GTYPE_NUMBER ? OPDI_CONVERSION_SCALAR_IMPLICIT : -1;
    }
    if (actual->kind == OPDI_GTYPE_NUMBER || actual->kind == OPDI_GTYPE_BOOL) {
        if (want->kind == OPDI_GTYPE_FLOAT) { return OPDI_CONVERSION_FLOAT; }
        if (want->kind == OPDI_GTYPE_COMPLEX && actual->kind == OPDI_GTYPE_NUMBER) { return OPDI_CONVERSION_COMPLEX; }
        if (want->kind == OPDI_GTYPE_INT || (want->kind == OPDI_GTYPE_NUMBER && actual->kind == OPDI_GTYPE_BOOL)) {
            return OPDI_CONVERSION_INT;
        }
    }
    return actual->kind == OPDI_GTYPE_STR && want->kind == OPDI_GTYPE_DEVICE ? OPDI_CONVERSION_DEVICE : -1;
}
static bool opdi_graph_match_not(opdi_graph_match_state *match, const opdi_arg *arg, const opdi_gtype *actual) {
    char text[200], want[200];
    opdi_text out = opdi_text_of(text, sizeof text);
    if (!match->why) { return false; }
    opdi_gtype_print(&out, actual, true);
    opdi_text_add(match->why, "%s() Expected a value of type '%s' for argument '%s' but instead found type '%s'.",
                  match->who, opdi_type_print_plain(arg->type, want, sizeof want), arg->name, text);
    return false;
}
/* Returns true if `want` is a list of optional tensors (Tensor?[]) and `actual` a list of tensors.  For such lists,
   PyTorch has additional overloads named "hacked_twin", which compute the same as the overloads for optional
   tensors. */
static bool opdi_gtype_all_there(const opdi_gtype *actual, const opdi_gtype *want) {
    return actual->kind == OPDI_GTYPE_LIST && want->kind == OPDI_GTYPE_LIST &&
        actual->parts[0]->kind == OPDI_GTYPE_TENSOR &&
        want->parts[0]->kind == OPDI_GTYPE_OPTIONAL && want->parts[0]->parts[0]->kind == OPDI_GTYPE_TENSOR;
}
static bool opdi_graph_args_untyped(const opdi_graph_args *given, const opdi_gvalue *value) {
    for (int32_t i = 0; given && i < given->nempty; i++) { if (given->empty[i] == value) { return true; } }
    return false;
}
/* Returns true if `value` can be passed as the argument `arg`, and sets *how to the conversion that is necessary.
   Otherwise writes the reason to match->why. */
OPDI_INTERNAL bool opdi_graph_match_arg(opdi_graph_match_state *match, const opdi_arg *arg, const opdi_gvalue *value,
                                        int8_t *how) {
    const opdi_type *const plain = opdi_strip_optional(arg->type);
    const opdi_gtype *actual = opdi_gvalue_gtype(match->graph, value);
    *how = OPDI_CONVERSION_SAME;
    if (!actual) { return false; }
    if (plain->kind == OPDI_TYPE_LIST && plain->size > 0 && (actual->kind == OPDI_GTYPE_INT ||
                                                             actual->kind == OPDI_GTYPE_FLOAT)) {
        const int kind = plain->elems[0]->kind;
        if (kind == (actual->kind == OPDI_GTYPE_INT ? OPDI_TYPE_INT : OPDI_TYPE_FLOAT)) {
            *how = OPDI_CONVERSION_REPEAT;
            return true;
        }
    }
    if (!opdi_graph_match_bind(match, arg->type, actual)) { return opdi_graph_match_not(match, arg, actual); }
    const opdi_gtype *want = opdi_graph_match_type(match, arg->type);
    if (!want) {
        return actual->kind == OPDI_GTYPE_NONE && arg->type->kind == OPDI_TYPE_OPTIONAL
            ? true : opdi_graph_match_not(match, arg, actual);
    }
    if (opdi_gtype_fits(actual, want) || opdi_gtype_all_there(actual, want)) { return true; }
    if (opdi_gtype_tuple_as_list(actual, opdi_gtype_strip(want))) {
        *how = OPDI_CONVERSION_UNTUPLE;
        return true;
    }
    if (opdi_graph_args_untyped(match->given, value) && opdi_gtype_strip(want)->kind == OPDI_GTYPE_LIST) {
        *how = OPDI_CONVERSION_EMPTY;
        return true;
    }
    const int convert = match->convert ? opdi_graph_match_convert(actual, opdi_gtype_strip(want)) : -1;
    if (convert < 0) { return opdi_graph_match_not(match, arg, actual); }
    *how = (int8_t)convert;
    return true;
}
/* Returns true if argument i is a list, and the positional arguments from number `at` on can be its elements. */
static bool opdi_graph_match_varargs(opdi_graph_match_state *match, int i, int32_t at) {
    const opdi_arg *const arg = &match->schema->args[i];
    const bool last = i + 1 == match->schema->nargs || match->schema->args[i + 1].keyword_only;
    if (!match->convert || !last || arg->type->kind != OPDI_TYPE_LIST || arg->type->size > 0 ||
        arg->type->elems[0]->kind == OPDI_TYPE_VAR) { return false; }
    const opdi_gtype *want = opdi_graph_match_type(match, arg->type);
    const opdi_gtype *actual = opdi_gvalue_gtype(match->graph, match->given->in[at]);
    if (!want || !actual || actual->kind == OPDI_GTYPE_LIST || opdi_gtype_tuple_as_list(actual, want)) { return false; }
    for (int32_t k = at; k < match->given->count; k++) {
        actual = opdi_gvalue_gtype(match->graph, match->given->in[k]);
        if (!actual || (!opdi_gtype_fits(actual, want->parts[0]) &&
                        opdi_graph_match_convert(actual, want->parts[0]) < 0)) { return false; }
    }
    return true;
}
/* Returns true if the schema match->schema accepts the arguments match->given.  Otherwise writes the reason to
   match->why, unless match->why is NULL. */
OPDI_INTERNAL bool opdi_graph_match_schema(opdi_graph_match_state *match) {
    const opd_schema *const schema = match->schema;
    const opdi_graph_args *const given = match->given;
    int32_t used = 0, named = 0;
    match->nvars = 0;
    match->spread = -1;
    for (int i = 0; i < schema->nargs; i++) {
        const opdi_arg *const arg = &schema->args[i];
        int32_t k = 0;
        match->values[i] = NULL;
        match->how[i] = OPDI_CONVERSION_DEFAULT;
        if ((!arg->keyword_only || match->flat) && used < given->count) {
            if (given->in[used] && opdi_graph_match_varargs(match, i, used)) {
                match->how[i] = OPDI_CONVERSION_LIST;
                match->spread = used;
                used = given->count;
                continue;
            }
            match->values[i] = given->in[used++];
        } else {
            while (k < given->nnamed && strcmp(given->names[k], arg->name) != 0) { k++; }
            if (k < given->nnamed) {
                match->values[i] = given->named[k];
                named++;
            }
        }
        if (match->values[i]) {
            if (!opdi_graph_match_arg(match, arg, match->values[i], &match->how[i])) { return false; }
        } else if (!arg->has_default) {
            opdi_text_add(match->why, "%s() is missing value for argument '%s'.", match->who, arg->name);
            return false;
        }
    }
    if (used < given->count && !schema->vararg) {
        opdi_text_add(match->why, "%s() Expected at most %d argument(s) but received %d argument(s).", match->who,
                      (int)used, (int)given->count);
        return false;
    }
    for (int32_t k = 0; k < given->nnamed && named < given->nnamed; k++) {
        int i = 0;
        while (i < schema->nargs && strcmp(schema->args[i].name, given->names[k]) != 0) { i++; }
        if (i < schema->nargs && !(i < given->count && !schema->args[i].keyword_only)) { continue; }
        opdi_text_add(match->why, i < schema->nargs ? "%s() specified twice: argument '%s'."
                      : "%s() Unknown keyword argument '%s'.", match->who, given->names[k]);
        return false;
    }
    return true;
}

//== nodes =============================================================================================================

/* Sets the node's place in the source ("<string>:3:8") to a copy of `place`, unless `place` is NULL.  Returns 0, or -1
   if memory runs out. */
static int opdi_gnode_locate(opd_graph *graph, opdi_gnode *node, const char *place) {
    if (place && !(node->place = opdi_arena_copy(&graph->arena, place, strlen(place)))) { return -1; }
    return 0;
}
/* Makes a node with the `nin` inputs `in` and `nout` results of the types `types`, and inserts it at the graph's
   insertion point.  Returns the node, or NULL if memory runs out. */
static opdi_gnode *opdi_append_node(opd_graph *graph, opdi_gkind kind, opdi_gvalue *const *in, int32_t nin,
                                    const opdi_gtype *const *types, int32_t nout, const char *place) {
    opdi_gnode *node = opdi_gnode_new(graph, kind, nin, nout);
    if (!node || opdi_gnode_locate(graph, node, place)) { return NULL; }
    for (int32_t i = 0; i < nout; i++) {
        if (!types[i] || !(node->out[i] = opdi_gvalue_new(graph, node, OPD_TAG_NONE))) { return NULL; }
        opdi_gvalue_typed(node->out[i], types[i]);
    }
    if (nin) { memcpy(node->in, in, (size_t)nin * sizeof *in); }
    opdi_gnode_append(graph, node);
    return node;
}
/* Adds a call of the first builtin whose schema or name is `schema`.  Returns the call's node, or NULL and sets an
   error. */
OPDI_INTERNAL opdi_gnode *opdi_append_builtin(opd_graph *graph, const char *schema, opdi_gvalue *const *in, int32_t nin,
                                              const opdi_gtype *const *types, int32_t nout, const char *place) {
    const opdi_builtin *builtin = opdi_builtin_named(schema);
    if (!builtin) {
        (void)opd_fail(OPD_ERROR_NOT_FOUND, "there is no function %s", schema);
        return NULL;
    }
    opdi_gnode *node = opdi_append_node(graph, OPDI_GNODE_BUILTIN, in, nin, types, nout, place);
    if (node) { node->builtin = builtin; }
    return node;
}
OPDI_INTERNAL opdi_gnode *opdi_append_call(opd_graph *graph, const char *name, const opdi_graph_args *args,
                                           const char *place);
static opdi_gvalue *opdi_append_one(opdi_gnode *node) { return node ? node->out[0] : NULL; }

/* Adds an input of type `type` after the existing inputs and returns it.  No other value may have the name `name`.  If
   `name` is NULL, the input is printed as its number. */
OPD_UNUSED OPDI_INTERNAL opdi_gvalue *opdi_append_input(opd_graph *graph, const char *name, const opdi_gtype *type) {
    opdi_gvalue *value = NULL;
    if (opdi_graph_reserve_inputs(graph, graph->ninputs + 1) ||
        !(value = opdi_gvalue_new(graph, NULL, OPD_TAG_TENSOR))) {
        return NULL;
    }
    graph->inputs[graph->ninputs++] = value;
    opdi_gvalue_typed(value, type);
    opdi_graph_changed(graph);
    if (!name || !*name) { return value; }
    opdi_graph_forget_names(graph);
    return (value->name = opdi_arena_copy(&graph->arena, name, strlen(name))) ? value : NULL;
}
/* Adds a constant of type `type` (a number, text, device, None, tensor or cell) and returns its value.  The graph holds
   a reference to the constant. */
OPD_UNUSED OPDI_INTERNAL opdi_gvalue *opdi_append_constant(opd_graph *graph, opd_value value, const opdi_gtype *type,
                                                           const char *place) {
    opdi_gvalue *constant = opdi_graph_constant(graph, &value);
    if (!constant || opdi_gnode_locate(graph, constant->node, place)) { return NULL; }
    if (value.tag != OPD_TAG_TENSOR && type) { opdi_gvalue_typed(constant, type); }
    return constant;
}
/* Adds a list of the `count` values `in`, whose element type is `element`.  Returns the list, or NULL and sets an
   error. */
OPDI_INTERNAL opdi_gvalue *opdi_append_list(opd_graph *graph, const opdi_gtype *element, opdi_gvalue *const *in,
                                            int32_t count, const char *place) {
    const opdi_gtype *const type = opdi_graph_space(graph) ? opdi_gtype_list(graph->space, element) : NULL;
    opdi_gnode *node = type ? opdi_append_node(graph, OPDI_GNODE_LIST, in, count, &type, 1, place) : NULL;
    if (node) { node->word = element->kind == OPDI_GTYPE_OPTIONAL ? "Tensor?" : "Tensor"; }
    return opdi_append_one(node);
}
/* Adds a tuple of the `count` values `in` and returns it.  `klass` is the class of a named tuple, or NULL. */
OPD_UNUSED OPDI_INTERNAL opdi_gvalue *opdi_append_tuple(opd_graph *graph, const opdi_gclass *klass,
                                                        opdi_gvalue *const *in, int32_t count, const char *place) {
    const opdi_gtype *parts[64], *type = klass ? klass->type : NULL;
    if (!opdi_graph_space(graph)) { return NULL; }
    if (count > 64) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "a tuple can have at most 64 elements, not %d", (int)count);
        return NULL;
    }
    for (int32_t i = 0; i < count && !klass; i++) {
        if (!(parts[i] = opdi_gvalue_gtype(graph, in[i]))) { return NULL; }
    }
    if (!type) { type = opdi_gtype_tuple(graph->space, parts, count); }
    return type ? opdi_append_one(opdi_append_node(graph, OPDI_GNODE_TUPLE, in, count, &type, 1, place)) : NULL;
}
/* Adds a dict of `count` pairs and returns it.  `pairs` has key, value, key, value, and so on. */
OPD_UNUSED OPDI_INTERNAL opdi_gvalue *opdi_append_dict(opd_graph *graph, const opdi_gtype *key, const opdi_gtype *value,
                                                       opdi_gvalue *const *pairs, int32_t count, const char *place) {
    const opdi_gtype *type = opdi_graph_space(graph) ? opdi_gtype_dict(graph->space, key, value) : NULL;
    if (!type) { return NULL; }
    return opdi_append_one(opdi_append_builtin(graph, "prim::DictConstruct", pairs, 2 * count, &type, 1, place));
}
/* Adds a node that unpacks the tuple or list `from` (prim::TupleUnpack, prim::ListUnpack).  A list must have `count`
   elements.  Returns the node; its results are the elements. */
OPD_UNUSED OPDI_INTERNAL opdi_gnode *opdi_append_unpack(opd_graph *graph, opdi_gvalue *from, int32_t count,
                                                        const char *place) {
    const opdi_gtype *type = opdi_gvalue_gtype(graph, from), *parts[64];
    if (!type) { return NULL; }
    if (type->kind == OPDI_GTYPE_TUPLE) {
        return opdi_append_builtin(graph, "prim::TupleUnpack", &from, 1, type->parts, type->nparts, place);
    }
    if (type->kind != OPDI_GTYPE_LIST || count > 64) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "prim::ListUnpack: the value cannot be unpacked into %d values", (int)count);
        return NULL;
    }
    for (int32_t i = 0; i < count; i++) { parts[i] = type->parts[0]; }
    return opdi_append_node(graph, OPDI_GNODE_UNPACK, &from, 1, parts, count, place);
}
/* Adds an access to the attribute `name` of `object`.  If `value` is NULL, adds GetAttr and returns the attribute;
   otherwise adds SetAttr and returns `object`. */
OPD_UNUSED OPDI_INTERNAL opdi_gvalue *opdi_append_attribute(opd_graph *graph, opdi_gvalue *object, const char *name,
                                                            opdi_gvalue *value, const char *place) {
    const opdi_gtype *type = opdi_gvalue_gtype(graph, object);
    const opdi_gclass *klass = type && type->kind == OPDI_GTYPE_CLASS ? type->klass : NULL;
    const int32_t slot = klass ? opdi_gclass_slot(klass, name) : -1;
    opdi_gvalue *in[2] = {NULL, NULL};
    if (slot < 0) {
        (void)opd_fail(OPD_ERROR_NOT_FOUND, "%s has no attribute '%s'", klass ? klass->name : "the value", name);
        return NULL;
    }
    in[0] = object;
    in[1] = value;
    type = klass->attributes[slot].type;
    opdi_gnode *node = opdi_append_builtin(graph, value ? "prim::SetAttr" : "prim::GetAttr", in, value ? 2 : 1, &type,
                                           value ? 0 : 1, place);
    if (!node || !(node->attribute = opdi_arena_copy(&graph->arena, name, strlen(name)))) { return NULL; }
    node->constant = opd_value_int(slot);
    return value ? object : node->out[0];
}
OPD_UNUSED OPDI_INTERNAL opdi_gvalue *opdi_append_create(opd_graph *graph, const opdi_gclass *klass,
                                                         const char *place) {
    return opdi_append_one(opdi_append_builtin(graph, "prim::CreateObject", NULL, 0, &klass->type, 1, place));
}
/* Adds a call of the function `name`, which the library does not have.  Running the node fails with an error.  Returns
   the node. */
OPD_UNUSED OPDI_INTERNAL opdi_gnode *opdi_append_unknown(opd_graph *graph, const char *name, opdi_gvalue *const *in,
                                                         int32_t nin, const opdi_gtype *const *types, int32_t nout,
                                                         const char *place) {
    opdi_builtin *unknown = (opdi_builtin *)opdi_graph_alloc(graph, sizeof *unknown);
    opdi_gnode *node = unknown ? opdi_append_node(graph, OPDI_GNODE_BUILTIN, in, nin, types, nout, place) : NULL;
    if (!node || !(unknown->schema = opdi_arena_copy(&graph->arena, name, strlen(name)))) { return NULL; }
    unknown->run = opdi_builtin_unknown;
    unknown->flags = OPDI_BUILTIN_ANY | OPDI_BUILTIN_STAYS;
    node->builtin = unknown;
    return node;
}

/* Makes the end of `block` the insertion point.  Returns the previous insertion point, for opdi_gblock_leave. */
OPD_UNUSED OPDI_INTERNAL opdi_graph_insert_point opdi_gblock_enter(opd_graph *graph, opdi_gblock *block) {
    opdi_graph_insert_point was;
    was.into = graph->into;
    was.at = graph->at;
    graph->into = block;
    graph->at = NULL;
    return was;
}
/* Sets the outputs of a block, and restores the insertion point `was`.  Returns 0, or -1 if memory runs out. */
OPD_UNUSED OPDI_INTERNAL int opdi_gblock_leave(opd_graph *graph, opdi_gblock *block, opdi_graph_insert_point was,
                                               opdi_gvalue *const *outputs, int32_t count) {
    graph->into = was.into;
    graph->at = was.at;
    block->outputs = (opdi_gvalue **)opdi_graph_alloc(graph, (size_t)count * sizeof *outputs);
    if (!block->outputs) { return -1; }
    if (count) { memcpy(block->outputs, outputs, (size_t)count * sizeof *outputs); }
    block->noutputs = count;
    opdi_graph_changed(graph);
    return 0;
}
OPDI_INTERNAL int opdi_gnode_blocks(opd_graph *graph, opdi_gnode *node, int32_t count) {
    if (!(node->blocks = (opdi_gblock *)opdi_graph_alloc(graph, (size_t)count * sizeof *node->blocks))) { return -1; }
    node->nblocks = count;
    for (int32_t i = 0; i < count; i++) { node->blocks[i].owner = node; }
    return 0;
}
/* Adds an input of type `type` to a block and returns it.  Returns NULL if memory runs out. */
static opdi_gvalue *opdi_gblock_input(opd_graph *graph, opdi_gblock *block, const opdi_gtype *type) {
    opdi_gvalue *value = opdi_gvalue_new(graph, NULL, OPD_TAG_NONE);
    opdi_gvalue **more = (opdi_gvalue **)opdi_graph_alloc(graph, ((size_t)block->ninputs + 1) * sizeof *more);
    if (!value || !more || !type) { return NULL; }
    if (block->ninputs) { memcpy(more, block->inputs, (size_t)block->ninputs * sizeof *more); }
    opdi_gvalue_typed(value, type);
    value->block = block;
    more[block->ninputs++] = value;
    block->inputs = more;
    return value;
}
/* Adds prim::If with two empty blocks: blocks[0] runs if the condition is true, else blocks[1].  The caller fills each
   block between opdi_gblock_enter and opdi_gblock_leave.  Returns the node. */
OPD_UNUSED OPDI_INTERNAL opdi_gnode *opdi_append_if(opd_graph *graph, opdi_gvalue *condition, const char *place) {
    opdi_gnode *node = opdi_append_node(graph, OPDI_GNODE_IF, &condition, 1, NULL, 0, place);
    return node && opdi_gnode_blocks(graph, node, 2) == 0 ? node : NULL;
}
/* Adds prim::Loop with `count` carried values and an empty block.  The loop runs at most `most` rounds, and ends when
   the condition is false.  The block has the inputs (round, carried...); when the caller has filled the block, its
   outputs must be (condition, carried...).  Returns the node. */
OPD_UNUSED OPDI_INTERNAL opdi_gnode *opdi_append_loop(opd_graph *graph, opdi_gvalue *most, opdi_gvalue *condition,
                                                      opdi_gvalue *const *carried, int32_t count, const char *place) {
    opdi_gnode *node = opdi_append_node(graph, OPDI_GNODE_LOOP, NULL, 0, NULL, 0, place);
    if (!node || !opdi_graph_space(graph) || opdi_gnode_blocks(graph, node, 1) ||
        !(node->in = (opdi_gvalue **)opdi_graph_alloc(graph, ((size_t)count + 2) * sizeof *node->in))) { return NULL; }
    node->in[0] = most;
    node->in[1] = condition;
    if (count) { memcpy(node->in + 2, carried, (size_t)count * sizeof *carried); }
    node->nin = count + 2;
    opdi_graph_changed(graph);
    if (!opdi_gblock_input(graph, &node->blocks[0], opdi_gtype_simple(OPDI_GTYPE_INT))) { return NULL; }
    for (int32_t i = 0; i < count; i++) {
        if (!opdi_gblock_input(graph, &node->blocks[0], opdi_gvalue_gtype(graph, carried[i]))) { return NULL; }
    }
    return node;
}
/* Sets the outputs of the graph to values of any type.  If `single` is true, the graph returns only values[0], as
   functions of scripts do; otherwise, several values are returned as a tuple.  Returns 0, or -1 if memory runs out. */
OPD_UNUSED OPDI_INTERNAL int opdi_append_outputs(opd_graph *graph, opdi_gvalue *const *values, int32_t count,
                                                 bool single) {
    opdi_gvalue **outputs = (opdi_gvalue **)opdi_graph_alloc(graph, (size_t)count * sizeof *outputs);
    if (!outputs) { return -1; }
    if (count) { memcpy(outputs, values, (size_t)count * sizeof *outputs); }
    graph->outputs = outputs;
    graph->noutputs = count;
    graph->result = count == 0 ? NULL : single || count == 1 ? values[0]
        : opdi_graph_list(graph, OPDI_GNODE_TUPLE, OPD_TAG_LIST, "Tensor", outputs, count);
    opdi_graph_changed(graph);
    return count && !graph->result ? -1 : 0;
}

//== calls =============================================================================================================

/* Adds a call of the builtin that does the conversion `how` (OPDI_CONVERSION_FLOAT_IMPLICIT or a later one).  Returns
   the converted value, or NULL and sets an error. */
static opdi_gvalue *opdi_append_convert(opdi_graph_match_state *match, opdi_gvalue *value, int how, const char *place) {
    static const char *const names[] = {
        "aten::FloatImplicit", "aten::ComplexImplicit", "aten::IntImplicit", "aten::ScalarImplicit", "aten::Float",
        "aten::Complex", "aten::Int", "aten::device"};
    opdi_graph_args args;
    memset(&args, 0, sizeof args);
    args.in = &value;
    args.count = 1;
    return opdi_append_one(opdi_append_call(match->graph, names[how - OPDI_CONVERSION_FLOAT_IMPLICIT], &args, place));
}
/* Adds nodes that unpack the tuple `value` and make a list of its elements, for the argument `arg`.  Returns the list,
   or NULL and sets an error. */
static opdi_gvalue *opdi_append_untuple(opdi_graph_match_state *match, opdi_gvalue *value, const opdi_arg *arg,
                                        const char *place) {
    const opdi_gtype *want = opdi_graph_match_type(match, opdi_strip_optional(arg->type));
    opdi_gnode *parts = want ? opdi_append_unpack(match->graph, value, 0, place) : NULL;
    return parts ? opdi_append_list(match->graph, want->parts[0], parts->out, parts->nout, NULL) : NULL;
}
/* Adds a list of the positional arguments from number match->spread on, for the list argument `arg`.  Returns the list,
   or NULL and sets an error. */
static opdi_gvalue *opdi_append_rest(opdi_graph_match_state *match, const opdi_arg *arg, const char *place) {
    const opdi_gtype *want = opdi_graph_match_type(match, arg->type);
    const int32_t count = match->given->count - match->spread;
    opdi_gvalue *list[OPD_MAX_ARGS];
    if (!want || count > OPD_MAX_ARGS) { return NULL; }
    for (int32_t k = 0; k < count; k++) {
        opdi_gvalue *value = match->given->in[match->spread + k];
        const opdi_gtype *actual = opdi_gvalue_gtype(match->graph, value);
        if (!actual) { return NULL; }
        if (!opdi_gtype_fits(actual, want->parts[0])) {
            value = opdi_append_convert(match, value, opdi_graph_match_convert(actual, want->parts[0]), place);
        }
        if (!(list[k] = value)) { return NULL; }
    }
    return opdi_append_list(match->graph, want->parts[0], list, count, NULL);
}
/* Returns the graph's value for argument i of the schema: the given value, converted if necessary, or a constant with
   the argument's default.  On failure, returns NULL and sets an error. */
static opdi_gvalue *opdi_append_arg(opdi_graph_match_state *match, int i, const char *place) {
    const opdi_arg *const arg = &match->schema->args[i];
    opdi_gvalue *const value = match->values[i], *list[OPD_MAX_ARGS];
    const opdi_type *const plain = opdi_strip_optional(arg->type);
    switch (match->how[i]) {
    case OPDI_CONVERSION_SAME: return value;
    case OPDI_CONVERSION_DEFAULT: return opdi_graph_constants(match->graph, &arg->value);
    case OPDI_CONVERSION_LIST: return opdi_append_rest(match, arg, place);
    case OPDI_CONVERSION_UNTUPLE: return opdi_append_untuple(match, value, arg, place);
    case OPDI_CONVERSION_EMPTY: {
        const opdi_gtype *want = opdi_graph_match_type(match, plain);
        return want ? opdi_append_list(match->graph, want->parts[0], NULL, 0, NULL) : NULL;
    }
    case OPDI_CONVERSION_REPEAT:
        if (plain->size > OPD_MAX_ARGS) { return NULL; }
        for (int32_t k = 0; k < plain->size; k++) { list[k] = value; }
        return opdi_append_list(match->graph, opdi_gvalue_gtype(match->graph, value), list, plain->size, NULL);
    default: return opdi_append_convert(match, value, match->how[i], place);
    }
}
/* Adds a call of the operator `op`, or of `builtin` if `op` is NULL.  The arguments were matched to the schema before
   (opdi_graph_match_schema).  Returns the call's node, or NULL and sets an error. */
static opdi_gnode *opdi_append_matched(opdi_graph_match_state *match, opd_op *op, const opdi_builtin *builtin,
                                       const char *place) {
    const opd_schema *const schema = match->schema;
    const opdi_gtype *types[OPDI_MAX_RETURNS];
    opdi_gvalue *in[OPD_MAX_ARGS];
    int32_t count = 0;
    for (int i = 0; i < schema->nargs; i++) { if (!(in[count++] = opdi_append_arg(match, i, place))) { return NULL; } }
    for (int32_t k = schema->nargs; schema->vararg && k < match->given->count; k++) {
        if (count == OPD_MAX_ARGS) {
            (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: more than %d arguments", match->who, OPD_MAX_ARGS);
            return NULL;
        }
        in[count++] = match->given->in[k];
    }
    for (int i = 0; i < schema->nreturns; i++) {
        if (!(types[i] = opdi_graph_match_type(match, schema->returns[i].type))) {
            if (opd_ok()) { types[i] = opdi_gtype_simple(OPDI_GTYPE_ANY); }
            else { return NULL; }
        }
    }
    opdi_gnode *node = opdi_append_node(match->graph, op ? OPDI_GNODE_OP : OPDI_GNODE_BUILTIN, in, count, types,
                                        schema->nreturns, place);
    if (!node) { return NULL; }
    node->op = op;
    node->builtin = builtin;
    return node;
}
/* Returns true if `op` is never chosen as an overload, as in PyTorch, because it would accept calls that are meant for
   other overloads. */
static bool opdi_op_untried(const opd_op *op) {
    return strcmp(op->name, "aten::view.dtype") == 0 || strcmp(op->name, "aten::max.unary_out") == 0 ||
        strcmp(op->name, "aten::min.unary_out") == 0;
}
/* Tries all overloads of a name, operators before builtins: first without conversions, then with conversions.  Adds a
   call of the first overload that fits, and returns its node.  If none fits, tries all of them again to collect the
   reasons in `why`, and returns NULL.  Also returns NULL if an error occurs. */
static opdi_gnode *opdi_append_overload(opdi_graph_match_state *match, const char *name, const char *place,
                                        opdi_text *why) {
    const char *const colons = strstr(name, "::");
    opd_overloads *set = colons && !strchr(colons, '.') ? opdi_overloads_quiet(name) : NULL;
    opd_op *op = colons && strchr(colons, '.') ? opd_find_quiet(name) : NULL;
    if (!opd_ok()) { return NULL; }
    for (int round = 0; round < 3; round++) {
        const opd_schema *schema = NULL;
        match->why = round == 2 ? why : NULL;
        match->convert = round > 0;
        for (int i = 0; op || (set && opd_overloads_at(set, i)); i++) {
            opd_op *const one = op ? op : opd_overloads_at(set, i);
            match->schema = one->schema;
            match->who = one->name;
            if (one->definition && (op || !opdi_op_untried(one)) && opdi_graph_match_schema(match)) {
                return opdi_append_matched(match, one, NULL, place);
            }
            opdi_text_add(match->why, " ");
            if (op) { break; }
        }
        for (int32_t at = -1; (at = opdi_builtin_next(name, at)) >= 0;) {
            const opdi_builtin *const builtin = opdi_builtin_at(at);
            if (!(schema = opdi_builtin_schema(at))) { return NULL; }
            match->schema = schema;
            match->who = name;
            if (opdi_graph_match_schema(match)) { return opdi_append_matched(match, NULL, builtin, place); }
            opdi_text_add(match->why, " ");
        }
    }
    return NULL;
}
/* Adds a call of an operator or builtin.  `name` is "aten::add", or "aten::add.int" to choose an overload.  Otherwise
   the overload is chosen as in PyTorch.  Conversions and defaults become separate nodes.  Returns the call's node,
   whose `out` are the results, or NULL and sets an error. */
OPDI_INTERNAL opdi_gnode *opdi_append_call(opd_graph *graph, const char *name, const opdi_graph_args *args,
                                           const char *place) {
    char text[1000];
    opdi_text why = opdi_text_of(text, sizeof text);
    opdi_graph_match_state match;
    memset(&match, 0, sizeof match);
    match.graph = graph;
    match.given = args;
    if (!opdi_graph_space(graph)) { return NULL; }
    opdi_gnode *node = opdi_append_overload(&match, name, place, &why);
    if (!node && opd_ok()) {
        if (*text) {
            (void)opd_fail(OPD_ERROR_ARGUMENT, "Arguments for call are not valid.\n"
                           "The following variants are available:\n%s", text);
        } else { (void)opd_fail(OPD_ERROR_NOT_FOUND, "Unknown builtin op: %s", name); }
    }
    return node;
}

//== rounding of quantized tensors =====================================================================================

/* The quantization parameters of a value, as values of the graph: its scale and its zero point.  `last` is true if the
   channels are the last dim in memory. */
typedef struct opdi_qparams { opdi_gvalue *scale, *zero; bool last; } opdi_qparams;

/* How an operator treats the quantization parameters of its first argument.  KEPT: the result has the same parameters
   and is not rounded.  OF_ALL, FROM_ZERO, FLOATS: the result is rounded to the argument's parameters by
   quantized::_steps_of_all, quantized::_steps_from_zero or quantized::_steps_of_floats.  BY_LAYOUT: as FROM_ZERO if the
   channels are the last dim in memory, else as OF_ALL.  UNIT, SIGNED: the result is rounded to fixed parameters, for
   numbers from 0 to 1 or from -1 to 1. */
enum { OPDI_QPARAMS_KEPT, OPDI_QPARAMS_OF_ALL, OPDI_QPARAMS_FROM_ZERO, OPDI_QPARAMS_BY_LAYOUT, OPDI_QPARAMS_FLOATS,
       OPDI_QPARAMS_UNIT, OPDI_QPARAMS_SIGNED };
static const struct opdi_qparams_row { const char *name; int how; } opdi_qparams_rows[] = {
    {"aten::relu", OPDI_QPARAMS_KEPT}, {"aten::relu_", OPDI_QPARAMS_KEPT}, {"aten::max_pool1d", OPDI_QPARAMS_KEPT},
    {"aten::max_pool2d", OPDI_QPARAMS_KEPT}, {"aten::max_pool3d", OPDI_QPARAMS_KEPT},
    {"aten::dropout", OPDI_QPARAMS_KEPT},
    {"aten::flatten", OPDI_QPARAMS_KEPT}, {"aten::view", OPDI_QPARAMS_KEPT}, {"aten::reshape", OPDI_QPARAMS_KEPT},
    {"aten::permute", OPDI_QPARAMS_KEPT}, {"aten::transpose", OPDI_QPARAMS_KEPT}, {"aten::t", OPDI_QPARAMS_KEPT},
    {"aten::contiguous", OPDI_QPARAMS_KEPT}, {"aten::clone", OPDI_QPARAMS_KEPT}, {"aten::squeeze", OPDI_QPARAMS_KEPT},
    {"aten::unsqueeze", OPDI_QPARAMS_KEPT}, {"aten::select", OPDI_QPARAMS_KEPT}, {"aten::slice", OPDI_QPARAMS_KEPT},
    {"aten::upsample_nearest2d", OPDI_QPARAMS_KEPT}, {"aten::channel_shuffle", OPDI_QPARAMS_KEPT},
    {"aten::detach", OPDI_QPARAMS_KEPT}, {"aten::mean", OPDI_QPARAMS_OF_ALL},
    {"aten::adaptive_avg_pool1d", OPDI_QPARAMS_OF_ALL}, {"aten::avg_pool1d", OPDI_QPARAMS_OF_ALL},
    {"aten::adaptive_avg_pool2d", OPDI_QPARAMS_BY_LAYOUT}, {"aten::avg_pool2d", OPDI_QPARAMS_BY_LAYOUT},
    {"aten::adaptive_avg_pool3d", OPDI_QPARAMS_OF_ALL}, {"aten::avg_pool3d", OPDI_QPARAMS_FROM_ZERO},
    {"aten::upsample_bilinear2d", OPDI_QPARAMS_FROM_ZERO}, {"aten::leaky_relu", OPDI_QPARAMS_FLOATS},
    {"aten::hardtanh", OPDI_QPARAMS_FROM_ZERO}, {"aten::relu6", OPDI_QPARAMS_FROM_ZERO},
    {"aten::clamp", OPDI_QPARAMS_FROM_ZERO}, {"aten::hardtanh_", OPDI_QPARAMS_FROM_ZERO},
    {"aten::relu6_", OPDI_QPARAMS_FROM_ZERO}, {"aten::gelu", OPDI_QPARAMS_FLOATS},
    {"aten::leaky_relu_", OPDI_QPARAMS_FLOATS},
    {"aten::dropout_", OPDI_QPARAMS_KEPT},
    {"aten::sigmoid", OPDI_QPARAMS_UNIT}, {"aten::hardsigmoid", OPDI_QPARAMS_UNIT},
    {"aten::tanh", OPDI_QPARAMS_SIGNED}};
/* Returns how an operator treats the quantization parameters of its first argument (an OPDI_QPARAMS_...), or -1 if the
   operator is not in the table. */
static int opdi_qparams_mode(const opdi_gnode *node) {
    if (node->kind != OPDI_GNODE_OP || node->nin < 1 || node->nout != 1) { return -1; }
    for (size_t i = 0; i < sizeof opdi_qparams_rows / sizeof *opdi_qparams_rows; i++) {
        if (strcmp(opdi_qparams_rows[i].name, node->op->base_name) == 0) { return opdi_qparams_rows[i].how; }
    }
    return -1;
}
/* Sets *steps to the quantization parameters of a value.  Sets steps->last to true if a convolution has computed the
   value, because its result has the channels as the last dim in memory.  Returns false if the value has no parameters,
   or if the search visits more than *visits nodes.  Subtracts the number of visited nodes from *visits. */
static bool opdi_qparams_of(const opdi_gvalue *value, opdi_qparams *steps, int *visits) {
    while (value->same) { value = value->same; }
    const opdi_gnode *const node = value->node;
    opdi_qparams other;
    if (!node || --*visits < 0) { return false; }
    if (node->kind == OPDI_GNODE_IF) {
        int32_t i = 0;
        while (i < node->nout && node->out[i] != value) { i++; }
        return i < node->nout && opdi_qparams_of(node->blocks[0].outputs[i], steps, visits) &&
            opdi_qparams_of(node->blocks[1].outputs[i], &other, visits) && other.scale == steps->scale &&
            other.zero == steps->zero;
    }
    if (opdi_qparams_mode(node) == OPDI_QPARAMS_KEPT) { return opdi_qparams_of(node->in[0], steps, visits); }
    if (node->kind != OPDI_GNODE_BUILTIN) { return false; }
    const bool layer = node->builtin->run == opdi_fn_quantized;
    const int kind = node->builtin->what & 255, place = layer ? node->builtin->what >> 8 & 255 : 1;
    if (layer && !place && (kind == OPDI_Q_RELU6 || kind == OPDI_Q_CLAMP || kind == OPDI_Q_DROPOUT)) {
        return opdi_qparams_of(node->in[0], steps, visits);
    }
    if ((!layer && node->builtin->run != opdi_fn_quantize && node->builtin->run != opdi_fn_requantize) || !place ||
        place + 1 >= node->nin) { return false; }
    const bool before = node->builtin->run != opdi_fn_quantize && opdi_qparams_of(node->in[0], &other, visits);
    steps->scale = node->in[place];
    steps->zero = node->in[place + 1];
    steps->last = (layer && (kind == OPDI_Q_CONV || kind == OPDI_Q_CONV_ADD)) || (before && other.last);
    return steps->scale->type && steps->scale->type->kind == OPDI_GTYPE_FLOAT;
}
/* Adds a rounding node after `node` if `node` takes and returns quantized numbers and does not round them.  The value
   of the result of `node` becomes the result of the new node, so that all its users get rounded numbers.  Returns 0, or
   -1 and sets an error. */
static int opdi_requantize_after(opd_graph *graph, opdi_gnode *node) {
    const int how = opdi_qparams_mode(node);
    const opdi_gtype *const types[] = {opdi_gtype_simple(OPDI_GTYPE_TENSOR), opdi_gtype_simple(OPDI_GTYPE_FLOAT),
                                       opdi_gtype_simple(OPDI_GTYPE_INT)};
    opdi_qparams steps;
    int visits = 1000;                            /* a limit, because each If doubles the number of paths to search */
    if (how <= OPDI_QPARAMS_KEPT || !opdi_qparams_of(node->in[0], &steps, &visits)) { return 0; }
    opdi_gvalue *const value = node->out[0], *in[] = {value, steps.scale, steps.zero};
    graph->into = node->block == &graph->body ? NULL : node->block;
    graph->at = node->next;
    if (how >= OPDI_QPARAMS_UNIT) {
        const bool half = how == OPDI_QPARAMS_SIGNED;
        in[1] = opdi_append_constant(graph, opd_value_double(half ? 2.0 / 256 : 1.0 / 256), types[1], NULL);
        in[2] = opdi_append_constant(graph, opd_value_int(half ? 128 : 0), types[2], NULL);
        if (!in[1] || !in[2]) { return -1; }
    }
    const bool zero = how == OPDI_QPARAMS_FROM_ZERO || (how == OPDI_QPARAMS_BY_LAYOUT && steps.last);
    opdi_gnode *const added = opdi_append_builtin(graph, how >= OPDI_QPARAMS_FLOATS ? "quantized::_steps_of_floats"
                                                  : zero ? "quantized::_steps_from_zero" : "quantized::_steps_of_all",
                                                  in, 3, types, 1, NULL);
    if (!added) { return -1; }
    opdi_gvalue *const unrounded = added->out[0];
    added->in[0] = node->out[0] = unrounded;
    added->out[0] = value;
    unrounded->node = node;
    value->node = added;
    return 0;
}
/* In a graph with quantized tensors, adds a rounding node after each operator that does not round by itself.  Returns
   0, or -1 and sets an error. */
OPD_UNUSED OPDI_INTERNAL int opdi_requantize_graph(opd_graph *graph) {
    opdi_gblock *const into = graph->into;
    opdi_gnode *const at = graph->at;
    bool quantized = false;
    int rc = 0;
    for (const opdi_gnode *node = graph->body.first; node && !quantized; node = opdi_gnode_after(node)) {
        quantized = node->kind == OPDI_GNODE_BUILTIN && (node->builtin->run == opdi_fn_quantize ||
                                                         node->builtin->run == opdi_fn_quantized);
    }
    for (opdi_gnode *node = quantized ? graph->body.first : NULL; !rc && node; node = opdi_gnode_after(node)) {
        rc = opdi_requantize_after(graph, node);
    }
    graph->into = into;
    graph->at = at;
    return rc;
}

//== running graphs whose values have any type =========================================================================

OPDI_INTERNAL int opdi_value_fit(opd_value *value, const opdi_gtype *type, int depth);
/* Replaces *value, a cell or a plain list, by a new list, tuple or dict of type `type`, whose elements are converted.
   Returns 0; 1 if the value does not fit; or -1 and sets an error. */
static int opdi_value_remake(opd_value *value, const opdi_gtype *type, int depth) {
    const opd_value from = opdi_value_plain(value);
    const opdi_cell *const dict = opdi_cell_of(value);
    const bool is_dict = dict && dict->kind == OPD_CELL_DICT;
    const bool in_cell = dict && (dict->kind == OPD_CELL_LIST || dict->kind == OPD_CELL_TUPLE);
    const int64_t count = is_dict || in_cell ? dict->count : from.n;
    opdi_cell *cell = NULL;
    if ((type->kind == OPDI_GTYPE_DICT) != is_dict || (!is_dict && !in_cell && !opdi_is_list(&from)) ||
        (type->kind == OPDI_GTYPE_TUPLE && count != type->nparts)) { return 1; }
    cell = opdi_cell_new(is_dict ? OPD_CELL_DICT : type->kind == OPDI_GTYPE_TUPLE ? OPD_CELL_TUPLE : OPD_CELL_LIST,
                         type->kind == OPDI_GTYPE_LIST ? opdi_gtype_tag(type) : OPD_TAG_LIST,
                         type->kind == OPDI_GTYPE_TUPLE ? count : 0);
    if (!cell) { return -1; }
    if (type->klass) {
        cell->klass = type->klass;
        (void)opdi_gspace_keep(cell->klass->space);
    }
    int rc = type->kind == OPDI_GTYPE_LIST ? opdi_cell_reserve(cell, count) : 0;
    for (int64_t i = 0; i < count && rc == 0; i++) {
        opd_value key = is_dict ? dict->u.values[2 * i] : opd_value_none();
        opd_value element = is_dict ? dict->u.values[2 * i + 1] : in_cell ? opdi_cell_at(dict, i)
            : from.tag == OPD_TAG_TENSORS ? opd_value_tensor(from.u.tensors[i]) : opdi_list_element(&from, (int)i);
        const opdi_gtype *want = type->parts[is_dict ? 1 : type->kind == OPDI_GTYPE_TUPLE ? i : 0];
        if (opdi_value_hold(&key)) { rc = -1; }
        else if (opdi_value_hold(&element)) {
            opdi_value_drop(key);
            rc = -1;
        } else {
            rc = is_dict ? opdi_value_fit(&key, type->parts[0], depth + 1) : 0;
            if (rc == 0) { rc = opdi_value_fit(&element, want, depth + 1); }
            if (rc == 0 && is_dict) { rc = opdi_dict_set(cell, key, element); }
            if (rc == 0 && !is_dict) { opdi_cell_put(cell, cell->count++, &element); }
            else { opdi_value_drop(element); }
            opdi_value_drop(key);
        }
    }
    if (rc) { opdi_cell_drop(cell); }
    else {
        opdi_value_drop(*value);
        *value = opdi_cell_value(cell);
    }
    return rc;
}
/* Converts *value, a reference that the caller holds, to type `type` as PyTorch converts arguments: ints become floats,
   and elements of lists are converted.  Returns 0; 1 if the value does not fit; or -1 and sets an error. */
OPDI_INTERNAL int opdi_value_fit(opd_value *value, const opdi_gtype *type, int depth) {
    const opdi_gtype *const plain = opdi_gtype_strip(type);
    const opdi_cell *const cell = opdi_cell_of(value);
    const bool unnamed = plain->kind == OPDI_GTYPE_TUPLE && plain->klass && cell && cell->kind == OPD_CELL_TUPLE &&
        !cell->klass;
    if (!unnamed && opdi_value_is(value, type)) { return 0; }
    if (!opd_ok()) { return -1; }
    if (depth > OPDI_MAX_GTYPE_DEPTH) { return 1; }
    if (plain->kind == OPDI_GTYPE_FLOAT && (value->tag == OPD_TAG_INT || value->tag == OPD_TAG_BOOL)) {
        *value = opd_value_double((double)value->u.i);
        return 0;
    }
    if (plain->kind == OPDI_GTYPE_INT && value->tag == OPD_TAG_BOOL) {
        *value = opd_value_int(value->u.i);
        return 0;
    }
    if (plain->kind == OPDI_GTYPE_BOOL && value->tag == OPD_TAG_INT && (value->u.i == 0 || value->u.i == 1)) {
        *value = opd_value_bool(value->u.i != 0);
        return 0;
    }
    if (plain->kind == OPDI_GTYPE_TENSOR && (value->tag == OPD_TAG_INT || value->tag == OPD_TAG_FLOAT ||
                                             value->tag == OPD_TAG_BOOL)) {
        opd_scope scope = opd_scope_open();
        opd_tensor *tensor = opdi_keep(opd_tensor_wrapped_number(*value));
        opd_scope_close(&scope);
        if (!tensor) { return -1; }
        *value = opd_value_tensor(tensor);
        return 0;
    }
    if (plain->kind == OPDI_GTYPE_LIST || plain->kind == OPDI_GTYPE_TUPLE || plain->kind == OPDI_GTYPE_DICT) {
        return opdi_value_remake(value, plain, depth);
    }
    return 1;
}
/* Converts the inputs of a run to the types of the graph's inputs, and stores references to them in `held`.  Returns 0.
   On failure, releases these references, returns -1 and sets an error. */
static int opdi_graph_inputs(const opd_graph *graph, const opd_value *inputs, opd_value *held) {
    char want[200], name[100];
    for (int32_t i = 0; i < graph->ninputs; i++) {
        const opdi_gtype *const type = graph->inputs[i]->type;    /* if NULL, the tag tells the type */
        int rc;
        held[i] = inputs[i];
        if ((rc = opdi_value_hold(&held[i])) == 0) {
            rc = type ? opdi_value_fit(&held[i], type, 0) : 0;
            if (rc == 0) { continue; }
            if (rc > 0) {
                opdi_text text = opdi_text_of(name, sizeof name);
                opdi_gvalue_name(&text, graph->inputs[i]);
                opdi_text print = opdi_text_of(want, sizeof want);
                opdi_gtype_print(&print, type, true);
                (void)opd_fail(OPD_ERROR_ARGUMENT, "Expected a value of type '%s' for argument '%s' but instead found "
                               "type '%s'. Position: %d", want, name[0] ? name + 1 : "",
                               opdi_value_kind_name(&inputs[i]), (int)i);
            }
            opdi_value_drop(held[i]);
        }
        while (i-- > 0) { opdi_value_drop(held[i]); }
        return -1;
    }
    return 0;
}
/* Ends the autocast and no_grad regions that a failed run has left open: restores `state`, the dispatch state before
   the run. */
static void opdi_graph_restore(const opdi_thread *thread, opd_dispatch_state state) {
    const bool inside = thread->state.autocast != 0;
    (void)opd_dispatch_state_set(state);
    if (inside && !thread->state.autocast) { opd_autocast_cache_clear(); }
}
/* Runs a graph whose values may have any type, and converts the inputs as PyTorch does.  Writes at most `cap` outputs
   to `outputs`; they belong to the innermost scope.  Returns the graph's number of outputs, or -1 and sets an error. */
OPDI_INTERNAL int opdi_graph_run_values(const opd_graph *graph, const opd_value *inputs, int ninputs,
                                        opd_value *outputs, int cap) {
    opdi_thread *thread = opdi_self();
    if (!opd_ok()) { return -1; }
    if (!graph || ninputs != graph->ninputs || (ninputs && !inputs) || (cap && !outputs)) {
        return graph && ninputs == graph->ninputs ? opd_fail(OPD_ERROR_ARGUMENT, "the pointer to the inputs or outputs "
                                                             "is NULL")
            : opdi_graph_run_error(graph, NULL, ninputs);
    }
    const size_t bytes = ((size_t)ninputs + 1) * sizeof(opd_value);
    opd_value *held = (opd_value *)opdi_alloc(bytes);
    opd_graph *const kept = opdi_graph_keep(graph);
    int rc = held ? opdi_graph_inputs(graph, inputs, held) : -1;
    if (rc == 0 && graph->sizes && !graph->program &&
        opdi_graph_guard(graph, held, "opd_graph_run_values", NULL)) {
        opdi_values_drop(held, ninputs);
        rc = -1;
    }
    if (rc == 0) {
        const opd_dispatch_state state = opd_dispatch_state_get();
        const uint64_t was = opdi_enter(thread);
        rc = opdi_graph_values(graph, held, ninputs, outputs, cap);
        opdi_leave(thread, was);
        if (rc || !opd_ok()) { opdi_graph_restore(thread, state); }
        opdi_values_drop(held, ninputs);
        for (int i = 0; i < graph->noutputs && i < cap; i++) {
            outputs[i] = rc ? opd_value_none() : opdi_value_own(outputs[i]);
        }
    }
    opdi_free(held, bytes);
    rc = rc || !opd_ok() ? -1 : graph->noutputs;
    opd_graph_free(kept);
    return rc;
}
int opd_graph_run_values(const opd_graph *graph, const opd_value *inputs, int ninputs, opd_value *outputs, int cap) {
    return opdi_graph_run_values(graph, inputs, ninputs, outputs, cap);
}
