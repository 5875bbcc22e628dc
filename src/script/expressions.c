#include "script.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>script_values scripts: compiling expressions and calls to values of graphs
//
//  The nodes, their order and their names are the same as in TorchScript, so that graphs print alike.  This section
//  depends on the types and classes of scripts, and on the functions that build graphs and choose overloads.  It calls
//  the compiler of statements through opdi_script_callbacks.
//----------------------------------------------------------------------------------------------------------------------

//== conversions =======================================================================================================

OPDI_INTERNAL opdi_gvalue *opdi_emit_op1(opdi_emitter *task, const char *name, opdi_gvalue *first) {
    return first ? opdi_emit_op(task, name, &first, 1, NULL, 0) : NULL;
}
OPDI_INTERNAL opdi_gvalue *opdi_emit_op2(opdi_emitter *task, const char *name, opdi_gvalue *first,
                                         opdi_gvalue *second) {
    opdi_gvalue *args[2] = {NULL, NULL};
    args[0] = first;
    args[1] = second;
    return first && second ? opdi_emit_op(task, name, args, 2, NULL, 0) : NULL;
}
OPDI_INTERNAL opdi_gvalue *opdi_emit_op3(opdi_emitter *task, const char *name, opdi_gvalue *first, opdi_gvalue *second,
                                         opdi_gvalue *third) {
    opdi_gvalue *args[3] = {NULL, NULL, NULL};
    args[0] = first;
    args[1] = second;
    args[2] = third;
    return first && second && third ? opdi_emit_op(task, name, args, 3, NULL, 0) : NULL;
}
OPDI_INTERNAL opdi_gvalue *opdi_emit_bool(opdi_emitter *task, bool value) {
    return opdi_emit_constant(task, opd_value_bool(value), opdi_gtype_simple(OPDI_GTYPE_BOOL));
}
OPDI_INTERNAL opdi_gvalue *opdi_emit_int(opdi_emitter *task, int64_t value) {
    return opdi_emit_constant(task, opd_value_int(value), opdi_gtype_simple(OPDI_GTYPE_INT));
}
OPDI_INTERNAL opdi_gvalue *opdi_emit_text(opdi_emitter *task, const char *text) {
    return opdi_emit_constant(task, opd_value_str(text), opdi_gtype_simple(OPDI_GTYPE_STR));
}
/* Adds a prim::If with two empty blocks.  Returns the node, or NULL and sets an error. */
OPDI_INTERNAL opdi_gnode *opdi_emit_if(opdi_emitter *task, opdi_gvalue *condition) {
    char place[400];
    return condition ? opdi_append_if(task->graph, condition, opdi_emit_place(task, place, sizeof place)) : NULL;
}
OPDI_INTERNAL opdi_gvalue *opdi_emit_tuple_index(opdi_emitter *task, opdi_gvalue *tuple, opdi_gvalue *index,
                                                 const opdi_gtype *type) {
    opdi_gvalue *args[2] = {NULL, NULL};
    args[0] = tuple;
    args[1] = index;
    opdi_gnode *node = tuple && index ? opdi_emit_builtin(task, "prim::TupleIndex", args, 2, type) : NULL;
    return node ? node->out[0] : NULL;
}
/* Adds a list, tuple or dict of type `type` with `count` values.  In a dict, `values` has key, value, key, value, and
   so on.  Returns the new value, or NULL and sets an error. */
OPDI_INTERNAL opdi_gvalue *opdi_emit_construct(opdi_emitter *task, const opdi_gtype *type, opdi_gvalue *const *values,
                                               int count) {
    if (!type) { return NULL; }
    if (type->kind == OPDI_GTYPE_LIST) { return opdi_append_list(task->graph, type->parts[0], values, count, NULL); }
    if (type->kind == OPDI_GTYPE_TUPLE) { return opdi_append_tuple(task->graph, type->klass, values, count, NULL); }
    return opdi_append_dict(task->graph, type->parts[0], type->parts[1], values, count / 2, NULL);
}
OPDI_INTERNAL opdi_gvalue *opdi_emit_tuple(opdi_emitter *task, opdi_gvalue *const *values, int count) {
    const opdi_gtype *types[OPDI_SCRIPT_ARGS];
    if (count > OPDI_SCRIPT_ARGS) {
        (void)OPDI_EMIT_FAIL(task, "a tuple has %d elements, which is more than can be used", count);
        return NULL;
    }
    for (int i = 0; i < count; i++) { types[i] = opdi_emit_type(values[i]); }
    return opdi_emit_construct(task, opdi_gtype_tuple(task->space, types, count), values, count);
}
/* Sets `parts` to the `count` elements of a tuple or list.  For a list, adds a check of its length.  Returns 0, or -1
   and sets an error. */
OPDI_INTERNAL int opdi_emit_unpack(opdi_emitter *task, opdi_gvalue *value, opdi_gvalue **parts, int count) {
    const opdi_gtype *type = opdi_emit_type(value);
    const bool tuple = type->kind == OPDI_GTYPE_TUPLE;
    if (!tuple && type->kind != OPDI_GTYPE_LIST) {
        if (type->kind == OPDI_GTYPE_TENSOR) {
            value = opdi_emit_op2(task, "aten::unbind", value, opdi_emit_int(task, 0));
            return value ? opdi_emit_unpack(task, value, parts, count) : -1;
        }
        return OPDI_EMIT_FAIL(task, "Provided value is not a tuple or list and cannot be unpacked");
    }
    if (tuple && type->nparts != count) {
        return OPDI_EMIT_FAIL(task, "need %d values to unpack, but there are %d", count, type->nparts);
    }
    opdi_gvalue *const *inside = tuple ? opdi_emit_constructed(value, OPDI_GNODE_TUPLE) : NULL;
    if (inside) {
        memcpy(parts, inside, (size_t)count * sizeof *parts);
        return 0;
    }
    opdi_gnode *node = opdi_append_unpack(task->graph, value, count, NULL);
    if (!node) { return -1; }
    memcpy(parts, node->out, (size_t)count * sizeof *parts);
    return 0;
}
/* If all elements of a tuple fit the list type `type`, returns a list of them; otherwise returns the tuple. */
static opdi_gvalue *opdi_emit_listed(opdi_emitter *task, opdi_gvalue *value, const opdi_gtype *type) {
    opdi_gvalue *parts[64];
    const opdi_gtype *its = opdi_emit_type(value);
    for (int i = 0; i < its->nparts; i++) {
        if (!opdi_gtype_fits(its->parts[i], type->parts[0])) { return value; }
    }
    if (its->nparts > 64 || opdi_emit_unpack(task, value, parts, its->nparts)) { return NULL; }
    return opdi_emit_construct(task, type, parts, its->nparts);
}
/* Converts a value to `type` if PyTorch would convert it implicitly; otherwise returns the value itself.  If `implicit`
   is true, tensors are also converted to numbers.  On failure, returns NULL and sets an error. */
OPDI_INTERNAL opdi_gvalue *opdi_emit_convert(opdi_emitter *task, opdi_gvalue *value, const opdi_gtype *type,
                                             bool implicit) {
    const opdi_gtype *its = opdi_emit_type(value), *wanted = type;
    if (type->kind == OPDI_GTYPE_OPTIONAL && its->kind != OPDI_GTYPE_OPTIONAL && its->kind != OPDI_GTYPE_NONE) {
        wanted = type->parts[0];
    }
    if (opdi_gtype_fits(its, wanted)) { return value; }
    if (opdi_emit_is_unknown(value)) { return opdi_emit_builtin_1(task, "prim::unchecked_cast", value, wanted); }
    if (wanted->kind == OPDI_GTYPE_LIST && opdi_emit_untyped(task, value)) {
        return opdi_emit_construct(task, wanted, NULL, 0);
    }
    if (wanted->kind == OPDI_GTYPE_DICT && opdi_emit_untyped(task, value)) {
        return opdi_emit_construct(task, wanted, NULL, 0);
    }
    if (its->kind == OPDI_GTYPE_TUPLE && wanted->kind == OPDI_GTYPE_LIST) {
        return opdi_emit_listed(task, value, wanted);
    }
    if (its->kind == OPDI_GTYPE_TUPLE && wanted->kind == OPDI_GTYPE_TUPLE && its->nparts == wanted->nparts &&
        its->nparts <= 64) {
        opdi_gvalue *parts[64];
        if (opdi_emit_unpack(task, value, parts, its->nparts)) { return NULL; }
        for (int i = 0; i < its->nparts; i++) {
            if (!(parts[i] = opdi_emit_convert(task, parts[i], wanted->parts[i], implicit))) { return NULL; }
        }
        return opdi_emit_tuple(task, parts, its->nparts);
    }
    if (!implicit) { return value; }
    const int kind = wanted->kind;
    if (its->kind == OPDI_GTYPE_TENSOR) {
        const char *name = kind == OPDI_GTYPE_FLOAT ? "aten::FloatImplicit" : kind == OPDI_GTYPE_INT
            ? "aten::IntImplicit"
            : kind == OPDI_GTYPE_NUMBER ? "aten::ScalarImplicit" : kind == OPDI_GTYPE_COMPLEX ? "aten::ComplexImplicit"
            : NULL;
        return name ? opdi_emit_op1(task, name, value) : value;
    }
    if (its->kind == OPDI_GTYPE_NUMBER || its->kind == OPDI_GTYPE_BOOL) {
        if (kind == OPDI_GTYPE_FLOAT) { return opdi_emit_op1(task, "aten::Float", value); }
        if (kind == OPDI_GTYPE_INT || kind == OPDI_GTYPE_NUMBER) { return opdi_emit_op1(task, "aten::Int", value); }
    }
    if (its->kind == OPDI_GTYPE_STR && kind == OPDI_GTYPE_DEVICE) { return opdi_emit_op1(task, "aten::device", value); }
    return value;
}
/* Converts a value as opdi_emit_convert does, and checks that the result has the type `type`.  In the error, `format`
   describes the value; its %s is replaced by `name`.  Returns the result, or NULL and sets an error. */
OPDI_INTERNAL opdi_gvalue *opdi_emit_become(opdi_emitter *task, opdi_gvalue *value, const opdi_gtype *type,
                                            const char *format, const char *name) {
    char wanted[200], found[200], what[200];
    opdi_gvalue *out = value ? opdi_emit_convert(task, value, type, true) : NULL;
    if (!out || opdi_gtype_fits(opdi_emit_type(out), type)) { return out; }
    snprintf(what, sizeof what, format, name);
    (void)OPDI_EMIT_FAIL(task, "Expected a value of type '%s' for %s but instead found type '%s'",
                         opdi_emit_type_text(type, wanted, sizeof wanted), what,
                         opdi_emit_type_text(opdi_emit_type(value), found, sizeof found));
    return NULL;
}

//== expressions =======================================================================================================

OPDI_INTERNAL opdi_sugared opdi_emit_sugared(opdi_emitter *task, const opdi_syntax *node, const opdi_gtype *hint);
OPDI_INTERNAL opdi_gvalue *opdi_emit_expr(opdi_emitter *task, const opdi_syntax *node, const opdi_gtype *hint);

/* Returns the object for enum member number `which` at the current place in the text (see opdi_script_enum_object).  On
   failure, returns NULL and sets an error. */
OPDI_INTERNAL opdi_gvalue *opdi_emit_enum_member(opdi_emitter *task, opdi_script_class *klass, int32_t which) {
    const opd_value *const member = opdi_script_enum_at(&task->script->arena, klass, task->at, which);
    return member ? opdi_emit_constant(task, *member, klass->gclass->type) : NULL;
}
/* Adds a list of the members of an enum and returns it.  On failure, returns NULL and sets an error. */
static opdi_gvalue *opdi_emit_members(opdi_emitter *task, const opdi_gclass *gclass) {
    opdi_script_class *klass = (opdi_script_class *)gclass->user;
    opdi_gvalue **values = (opdi_gvalue **)opdi_emit_alloc(task, (size_t)(klass->nmembers + 1) * sizeof *values);
    for (int32_t i = 0; values && i < klass->nmembers; i++) {
        if (!(values[i] = opdi_emit_enum_member(task, klass, i))) { return NULL; }
    }
    return values ? opdi_emit_construct(task, opdi_gtype_list(task->space, gclass->type), values, klass->nmembers)
        : NULL;
}
/* Returns the value of the graph that an expression means.  If the expression is not a value at run time, returns NULL
   and sets an error. */
OPDI_INTERNAL opdi_gvalue *opdi_emit_plain(opdi_emitter *task, const opdi_sugared *sugared) {
    if (sugared->kind == OPDI_SUGARED_VALUE) { return sugared->value; }
    if (sugared->kind == OPDI_SUGARED_CLASS && sugared->klass->kind == OPDI_CLASS_ENUM && sugared->klass->user) {
        return opdi_emit_members(task, sugared->klass);
    }
    if (sugared->kind != OPDI_SUGARED_NOTHING || opd_ok()) {
        (void)OPDI_EMIT_FAIL(task, "%s cannot be used as a value", sugared->kind == OPDI_SUGARED_SPACE ? "module" :
                             sugared->kind == OPDI_SUGARED_CLASS ? "class" : "function");
    }
    return NULL;
}
/* Adds 1 to the depth of nesting.  Returns 0, or -1 and sets an error if the nesting is too deep. */
OPDI_INTERNAL int opdi_emit_enter(opdi_emitter *task) {
    if (opdi_stack_is_short("compiling a script with nested statements", OPDI_STACK_CALL)) { return -1; }
    if (++task->depth <= OPDI_SCRIPT_EMIT_DEPTH) { return 0; }
    return OPDI_EMIT_FAIL(task, "this is nested more than %d deep: an `elif`, and the statements after an `if` that "
                          "returns, count as nested in the `if`", OPDI_SCRIPT_EMIT_DEPTH);
}
/* Compiles an expression.  `hint` is the type that the value should have, or NULL.  Returns the value, or NULL and sets
   an error. */
OPDI_INTERNAL opdi_gvalue *opdi_emit_expr(opdi_emitter *task, const opdi_syntax *node, const opdi_gtype *hint) {
    const opdi_syntax *const before = task->at;
    if (opdi_emit_enter(task)) { return NULL; }
    if (opdi_emit_afford(task)) { return NULL; }
    task->at = node;
    const opdi_sugared sugared = opdi_emit_sugared(task, node, hint);
    task->at = node;
    opdi_gvalue *value = opdi_emit_plain(task, &sugared);
    task->at = before;
    task->depth--;
    return value;
}
OPDI_INTERNAL opdi_gvalue *opdi_emit_method(opdi_emitter *task, opdi_gvalue *self, const char *name,
                                            opdi_gvalue *const *args, int nargs);
OPDI_INTERNAL opdi_script_function *opdi_emit_method_of(opdi_emitter *task, const opdi_gvalue *value, const char *name);

//== conditions ========================================================================================================

OPDI_INTERNAL int opdi_emit_cond(opdi_emitter *task, const opdi_syntax *node, opdi_cond_value *cond);

OPDI_INTERNAL bool opdi_emit_has_length(const opdi_gvalue *value) {
    return opdi_emit_is(value, OPDI_GTYPE_STR) || opdi_emit_is(value, OPDI_GTYPE_LIST) ||
        opdi_emit_is(value, OPDI_GTYPE_DICT);
}
/* Converts a value to bool and returns the result.  On failure, returns NULL and sets an error. */
OPDI_INTERNAL opdi_gvalue *opdi_emit_truth(opdi_emitter *task, opdi_gvalue *value) {
    char said[200];
    if (!value || opdi_emit_is(value, OPDI_GTYPE_BOOL)) { return value; }
    if (opdi_emit_is(value, OPDI_GTYPE_TENSOR) || opdi_emit_is(value, OPDI_GTYPE_INT) ||
        opdi_emit_is(value, OPDI_GTYPE_FLOAT)) {
        return opdi_emit_op1(task, "aten::Bool", value);
    }
    if (opdi_emit_has_length(value)) {
        return opdi_emit_op2(task, "aten::gt", opdi_emit_op1(task, "aten::len", value), opdi_emit_int(task, 0));
    }
    if (opdi_emit_method_of(task, value, "__bool__")) {
        opdi_gvalue *const truth = opdi_emit_method(task, value, "__bool__", NULL, 0);
        if (!truth || opdi_emit_is(truth, OPDI_GTYPE_BOOL)) { return truth; }
    }
    (void)OPDI_EMIT_FAIL(task, "Could not cast value of type %s to bool",
                         opdi_emit_type_text(opdi_emit_type(value), said, sizeof said));
    return NULL;
}
static opdi_refinement *opdi_emit_refine(opdi_emitter *task, opdi_refinement *next, const char *name,
                                         const opdi_gtype *type) {
    opdi_refinement *one = (opdi_refinement *)opdi_emit_alloc(task, sizeof *one);
    if (!one) { return next; }
    one->next = next;
    one->name = name;
    one->type = type;
    return one;
}
/* Returns a list that has copies of the refinements in `list`, followed by those in `next`. */
static opdi_refinement *opdi_emit_refine_all(opdi_emitter *task, opdi_refinement *next, const opdi_refinement *list) {
    for (; list; list = list->next) { next = opdi_emit_refine(task, next, list->name, list->type); }
    return next;
}
/* Gives variables the types in the refinements `list`.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_emit_apply(opdi_emitter *task, const opdi_refinement *list) {
    for (; list; list = list->next) {
        opdi_script_var *var = opdi_script_var_find(task->frame, list->name);
        opdi_emit_loaded(task, list->name);
        if (!var || var->sugared.kind != OPDI_SUGARED_VALUE || opdi_emit_type(var->sugared.value) == list->type) {
            continue;
        }
        if (opdi_emit_type(var->sugared.value)->kind != OPDI_GTYPE_OPTIONAL &&
            opdi_emit_type(var->sugared.value)->kind != OPDI_GTYPE_UNION &&
            opdi_emit_type(var->sugared.value)->kind != OPDI_GTYPE_ANY) { continue; }
        opdi_gvalue *value = opdi_emit_builtin_1(task, "prim::unchecked_cast", var->sugared.value, list->type);
        if (!value) { return -1; }
        opdi_emit_name(task, value, list->name);
        if (task->frame->up && opdi_script_var_find(task->frame->up, list->name)) {
            opdi_emit_loaded(task, list->name);
        }
        if (opdi_script_var_put(task, list->name, opdi_sugared_value(value), var->type)) { return -1; }
    }
    return 0;
}
/* Compiles `x is None` or `x is not None` and fills *cond.  If the type of x does not determine the result, cond->holds
   and cond->fails have the type of x after the test.  Returns 0, or -1 and sets an error. */
static int opdi_emit_cond_none(opdi_emitter *task, const opdi_syntax *node, opdi_cond_value *cond) {
    const bool isnot = node->op == OPDI_SCRIPT_OP_ISNOT;
    opdi_gvalue *left = opdi_emit_expr(task, node->parts[0], NULL);
    opdi_gvalue *right = left ? opdi_emit_expr(task, node->parts[1], NULL) : NULL;
    if (!right) { return -1; }
    const opdi_syntax *other = node->parts[0];
    const opdi_gtype *type = opdi_emit_type(left);
    if (opdi_emit_is(left, OPDI_GTYPE_NONE)) {
        other = node->parts[1];
        type = opdi_emit_type(right);
    } else if (!opdi_emit_is(right, OPDI_GTYPE_NONE)) { goto compare; }
    if (type->kind == OPDI_GTYPE_NONE || (type->kind != OPDI_GTYPE_OPTIONAL && type->kind != OPDI_GTYPE_ANY &&
                                          type->kind != OPDI_GTYPE_UNION)) {
        cond->fixed = (type->kind == OPDI_GTYPE_NONE) != isnot;
        cond->value = opdi_emit_bool(task, cond->fixed);
        return cond->value ? 0 : -1;
    }
    if (other->kind == OPDI_SYNTAX_NAME && type->kind == OPDI_GTYPE_OPTIONAL) {
        opdi_refinement *some = opdi_emit_refine(task, NULL, other->word, type->parts[0]);
        opdi_refinement *none = opdi_emit_refine(task, NULL, other->word, opdi_gtype_simple(OPDI_GTYPE_NONE));
        (void)none;
        *(isnot ? &cond->holds : &cond->fails) = some;
    }
compare:
    cond->value = opdi_emit_op2(task, isnot ? "aten::__isnot__" : "aten::__is__", left, right);
    return cond->value ? 0 : -1;
}
/* Compiles `a and b` or `a or b` and fills *cond.  At run time, b is evaluated only if a does not determine the result.
   Returns 0, or -1 and sets an error. */
static int opdi_emit_cond_both(opdi_emitter *task, const opdi_syntax *node, opdi_cond_value *cond) {
    const bool all = node->kind == OPDI_SYNTAX_AND;
    opdi_cond_value first, second;
    opdi_script_frame frame;
    if (opdi_emit_cond(task, node->parts[0], &first)) { return -1; }
    if (first.fixed == !all) {
        *cond = first;
        return 0;
    }
    opdi_gnode *branch = NULL;
    opdi_gblock *blocks[2] = {NULL, NULL}, *before = NULL;
    if (first.fixed < 0) {
        if (!(branch = opdi_emit_if(task, first.value))) { return -1; }
        for (int i = 0; i < 2; i++) { blocks[i] = &branch->blocks[i]; }
        before = opdi_emit_goto(task, blocks[!all]);
    }
    opdi_script_frame_enter(task, &frame);
    const bool fine = opdi_emit_apply(task, all ? first.holds : first.fails) == 0 &&
        opdi_emit_cond(task, node->parts[1], &second) == 0;
    task->frame = frame.up;
    if (!fine) { return -1; }
    if (all) { cond->holds = opdi_emit_refine_all(task, opdi_emit_refine_all(task, NULL, first.holds), second.holds); }
    else { cond->fails = opdi_emit_refine_all(task, opdi_emit_refine_all(task, NULL, first.fails), second.fails); }
    if (!branch) {
        cond->value = second.value;
        cond->fixed = second.fixed;
        return 0;
    }
    if (opdi_emit_output(task, blocks[!all], second.value)) { return -1; }
    opdi_emit_goto(task, before);
    opdi_gvalue *known = opdi_emit_bool(task, !all);
    if (!known || opdi_emit_output(task, blocks[all], known)) { return -1; }
    cond->fixed = second.fixed == !all ? !all : -1;
    cond->value = opdi_emit_out(task, branch, opdi_gtype_simple(OPDI_GTYPE_BOOL));
    return cond->value ? 0 : -1;
}
/* Compiles isinstance(x, T) and fills *cond.  The type of x determines the result, unless it is an optional type, a
   union or Any.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_emit_cond_isinstance(opdi_emitter *task, const opdi_syntax *node, opdi_cond_value *cond) {
    const opdi_syntax *types = node->parts[2];
    opdi_gvalue *value = opdi_emit_expr(task, node->parts[1], NULL);
    if (!value) { return -1; }
    const opdi_gtype *its = opdi_emit_type(value), *match = NULL, *rest = NULL;
    int hits = 0, misses = 0;
    const opdi_gtype *const *members = its->kind == OPDI_GTYPE_OPTIONAL || its->kind == OPDI_GTYPE_UNION
        ? its->parts : &its;
    const int nmembers = its->kind == OPDI_GTYPE_OPTIONAL ? 1 : its->kind == OPDI_GTYPE_UNION ? its->nparts : 1;
    for (int k = 0; k < nmembers; k++) {
        bool hit = false;
        for (int i = 0; i < (types->kind == OPDI_SYNTAX_TUPLE ? types->nparts : 1); i++) {
            const opdi_syntax *one = types->kind == OPDI_SYNTAX_TUPLE ? types->parts[i] : types;
            const bool list = one->kind == OPDI_SYNTAX_NAME && strcmp(one->word, "list") == 0;
            const bool tuple = one->kind == OPDI_SYNTAX_NAME && strcmp(one->word, "tuple") == 0;
            const opdi_gtype *type = list || tuple ? NULL : opdi_emit_annotation(task, one);
            if (!list && !tuple && !type) { return -1; }
            if (type && its->kind == OPDI_GTYPE_ANY) { match = type; }
            hit = hit || (list ? members[k]->kind == OPDI_GTYPE_LIST : tuple ? members[k]->kind == OPDI_GTYPE_TUPLE
                          : opdi_gtype_fits(members[k], type));
        }
        hits += hit;
        misses += !hit;
        if (hit) { match = match ? opdi_gtype_unify(task->space, match, members[k]) : members[k]; }
        else { rest = rest ? opdi_gtype_unify(task->space, rest, members[k]) : members[k]; }
    }
    misses += its->kind == OPDI_GTYPE_OPTIONAL;
    if (its->kind != OPDI_GTYPE_ANY && (!hits || !misses)) {
        cond->fixed = hits > 0;
        cond->value = opdi_emit_bool(task, cond->fixed);
        return cond->value ? 0 : -1;
    }
    if (node->parts[1]->kind == OPDI_SYNTAX_NAME && match) {
        cond->holds = opdi_emit_refine(task, NULL, node->parts[1]->word, match);
        if (rest && its->kind == OPDI_GTYPE_UNION) {
            cond->fails = opdi_emit_refine(task, NULL, node->parts[1]->word, rest);
        }
    }
    cond->value = match ? opdi_emit_isinstance(task, value, match) : NULL;
    return cond->value ? 0 : -1;
}
/* Compiles an expression as a condition, and fills *cond.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_emit_cond(opdi_emitter *task, const opdi_syntax *node, opdi_cond_value *cond) {
    const opdi_syntax *const before = task->at;
    int rc = 0;
    memset(cond, 0, sizeof *cond);
    cond->fixed = -1;
    task->at = node;
    if (node->kind == OPDI_SYNTAX_NOT) {
        opdi_cond_value inner;
        if (opdi_emit_cond(task, node->parts[0], &inner)) { return -1; }
        cond->holds = inner.fails;
        cond->fails = inner.holds;
        cond->fixed = inner.fixed < 0 ? -1 : !inner.fixed;
        cond->value = inner.fixed < 0 ? opdi_emit_op1(task, "aten::__not__", inner.value)
            : opdi_emit_bool(task, cond->fixed);
        rc = cond->value ? 0 : -1;
    } else if (node->kind == OPDI_SYNTAX_AND || node->kind == OPDI_SYNTAX_OR) {
        rc = opdi_emit_cond_both(task, node, cond);
    } else if (node->kind == OPDI_SYNTAX_COMPARE &&
               (node->op == OPDI_SCRIPT_OP_IS || node->op == OPDI_SCRIPT_OP_ISNOT)) {
        rc = opdi_emit_cond_none(task, node, cond);
    } else if (node->kind == OPDI_SYNTAX_CALL && node->nparts == 3 && node->parts[0]->kind == OPDI_SYNTAX_NAME &&
               strcmp(node->parts[0]->word, "isinstance") == 0) {
        rc = opdi_emit_cond_isinstance(task, node, cond);
    } else {
        cond->value = opdi_emit_truth(task, opdi_emit_expr(task, node, NULL));
        cond->fixed = cond->value ? opdi_emit_known_bool(cond->value) : -1;
        rc = cond->value ? 0 : -1;
    }
    task->at = before;
    return rc;
}

//== literals and operators ============================================================================================

/* Returns the type that all values have in common, or NULL if there is none.  Also gives this type to results of
   unknown functions, because running these functions fails anyway. */
OPDI_INTERNAL const opdi_gtype *opdi_emit_common(opdi_emitter *task, opdi_gvalue *const *values, int count) {
    const opdi_gtype *type = NULL;
    for (int i = 0; i < count; i++) {
        if (opdi_emit_is_unknown(values[i])) { continue; }
        type = type ? opdi_gtype_unify(task->space, type, opdi_emit_type(values[i])) : opdi_emit_type(values[i]);
        if (!type) { return NULL; }
    }
    return type ? type : opdi_emit_type(values[0]);
}
/* Compiles an element of a tuple or list, and stores its values, at most `capacity`, in `values`.  An element with a
   star, such as *x, is a tuple and has several values.  Returns the number of values, or -1 and sets an error. */
OPDI_INTERNAL int opdi_emit_element(opdi_emitter *task, const opdi_syntax *part, const opdi_gtype *hint,
                                    opdi_gvalue **values, int capacity) {
    const bool star = part->kind == OPDI_SYNTAX_STAR;
    opdi_gvalue *value = opdi_emit_expr(task, star ? part->parts[0] : part, star ? NULL : hint);
    if (!value) { return -1; }
    if (star && !opdi_emit_is(value, OPDI_GTYPE_TUPLE)) {
        return OPDI_EMIT_FAIL(task, "the value after the * of an element must be a tuple");
    }
    const int count = star ? opdi_emit_type(value)->nparts : 1;
    if (count > capacity) { return OPDI_EMIT_FAIL(task, "there are more than %d elements", OPDI_SCRIPT_ARGS); }
    if (!star) { values[0] = value; }
    else if (opdi_emit_unpack(task, value, values, count)) { return -1; }
    return count;
}
OPDI_INTERNAL opdi_gvalue *opdi_emit_list(opdi_emitter *task, const opdi_syntax *node, const opdi_gtype *hint) {
    int capacity = 0, count = 0;
    for (int i = 0; i < node->nparts; i++) {
        capacity += node->parts[i]->kind == OPDI_SYNTAX_STAR ? OPDI_SCRIPT_ARGS : 1;
    }
    opdi_gvalue **values = (opdi_gvalue **)opdi_emit_alloc(task, (size_t)(capacity + 1) * sizeof *values);
    if (hint && hint->kind == OPDI_GTYPE_OPTIONAL) { hint = hint->parts[0]; }
    const opdi_gtype *element = hint && hint->kind == OPDI_GTYPE_LIST ? hint->parts[0] : NULL;
    if (!values) { return NULL; }
    for (int i = 0, more; i < node->nparts; i++, count += more) {
        if ((more = opdi_emit_element(task, node->parts[i], element, values + count, capacity - count)) < 0) {
            return NULL;
        }
    }
    if (!element && !count) { return opdi_emit_empty(task, false); }
    if (!element && !(element = opdi_emit_common(task, values, count))) {
        (void)OPDI_EMIT_FAIL(task, "Lists must contain only a single type");
        return NULL;
    }
    for (int i = 0; i < count; i++) {
        if (!(values[i] = opdi_emit_become(task, values[i], element, "an element of a %s", "list"))) { return NULL; }
    }
    return opdi_emit_construct(task, opdi_gtype_list(task->space, element), values, count);
}
OPDI_INTERNAL opdi_gvalue *opdi_emit_dict(opdi_emitter *task, const opdi_syntax *node, const opdi_gtype *hint) {
    const int pairs = node->nparts / 2;
    opdi_gvalue **values = (opdi_gvalue **)opdi_emit_alloc(task, (size_t)(2 * node->nparts + 2) * sizeof *values);
    opdi_gvalue **apart = values + node->nparts;
    const opdi_gtype *types[2] = {NULL, NULL};
    if (hint && hint->kind == OPDI_GTYPE_OPTIONAL) { hint = hint->parts[0]; }
    if (!values) { return NULL; }
    if (hint && hint->kind == OPDI_GTYPE_DICT) {
        types[0] = hint->parts[0];
        types[1] = hint->parts[1];
    }
    for (int i = 0; i < node->nparts; i++) {
        if (!(values[i] = opdi_emit_expr(task, node->parts[i], types[i % 2]))) { return NULL; }
        apart[i % 2 * pairs + i / 2] = values[i];
    }
    if (!types[0] && !pairs) { return opdi_emit_empty(task, true); }
    for (int k = 0; k < 2; k++) {
        if (!types[k] && !(types[k] = opdi_emit_common(task, apart + k * pairs, pairs))) {
            (void)OPDI_EMIT_FAIL(task, "Dict %s must contain only a single type", k ? "values" : "keys");
            return NULL;
        }
    }
    for (int i = 0; i < node->nparts; i++) {
        values[i] = opdi_emit_become(task, values[i], types[i % 2], "an entry of a %s", "dict");
        if (!values[i]) { return NULL; }
    }
    return opdi_emit_construct(task, opdi_gtype_dict(task->space, types[0], types[1]), values,
                               node->nparts);
}
OPDI_INTERNAL const opdi_script_operator opdi_script_operators[] = {
    {"aten::add", "aten::add_", "__add__"}, {"aten::sub", "aten::sub_", "__sub__"},
    {"aten::mul", "aten::mul_", "__mul__"}, {"aten::div", "aten::div_", "__truediv__"},
    {"aten::floordiv", "aten::floor_divide_", "__floordiv__"}, {"aten::remainder", "aten::fmod_", "__mod__"},
    {"aten::pow", "aten::pow_", "__pow__"}, {"aten::matmul", "aten::matmul", "__matmul__"},
    {"aten::__and__", "aten::bitwise_and_", "__and__"}, {"aten::__or__", "aten::bitwise_or_", "__or__"},
    {"aten::__xor__", "aten::bitwise_xor_", "__xor__"}, {"aten::__lshift__", "aten::__lshift__", "__lshift__"},
    {"aten::__rshift__", "aten::__rshift__", "__rshift__"}, {"aten::neg", NULL, "__neg__"}, {NULL, NULL, "__pos__"},
    {"aten::bitwise_not", NULL, "__invert__"}, {"aten::eq", NULL, "__eq__"}, {"aten::ne", NULL, "__ne__"},
    {"aten::lt", NULL, "__lt__"}, {"aten::le", NULL, "__le__"}, {"aten::gt", NULL, "__gt__"},
    {"aten::ge", NULL, "__ge__"}, {"aten::__contains__", NULL, "__contains__"}};

static opdi_gvalue *opdi_emit_swapped(opdi_emitter *task, int op, opdi_gvalue *left, opdi_gvalue *right);

/* Compiles `left op right`, where `op` is an OPDI_SCRIPT_OP_... Returns the result, or NULL and sets an error. */
OPDI_INTERNAL opdi_gvalue *opdi_emit_operator(opdi_emitter *task, int op, opdi_gvalue *left, opdi_gvalue *right) {
    if (!left || !right) { return NULL; }
    if (opdi_emit_is(left, OPDI_GTYPE_CLASS) && opdi_emit_method_of(task, left, opdi_script_operators[op].method)) {
        return opdi_emit_method(task, left, opdi_script_operators[op].method, &right, 1);
    }
    if (op == OPDI_SCRIPT_OP_MOD && opdi_emit_is(left, OPDI_GTYPE_STR)) {
        return opdi_emit_op2(task, "aten::percentFormat", left, right);
    }
    if ((op == OPDI_SCRIPT_OP_ADD || op == OPDI_SCRIPT_OP_SUB || op == OPDI_SCRIPT_OP_MUL || op == OPDI_SCRIPT_OP_DIV ||
         op == OPDI_SCRIPT_OP_EQ || op == OPDI_SCRIPT_OP_NE || (op >= OPDI_SCRIPT_OP_LT && op <= OPDI_SCRIPT_OP_GE)) &&
         opdi_emit_is(right, OPDI_GTYPE_TENSOR) &&
        (opdi_emit_is(left, OPDI_GTYPE_INT) || opdi_emit_is(left, OPDI_GTYPE_FLOAT) ||
         opdi_emit_is(left, OPDI_GTYPE_COMPLEX))) {
        return opdi_emit_swapped(task, op, left, right);
    }
    if (op == OPDI_SCRIPT_OP_IN && opdi_emit_is(left, OPDI_GTYPE_STR)) { /* `x in text` is computed by text.find(x) */
        opdi_gvalue *args[4] = {NULL, NULL, NULL, NULL};
        args[0] = left;
        args[1] = right;
        args[2] = opdi_emit_int(task, 0);
        args[3] = opdi_emit_op1(task, "aten::len", left);
        opdi_gvalue *found = args[3] ? opdi_emit_op(task, "aten::find", args, 4, NULL, 0) : NULL;
        return opdi_emit_op2(task, "aten::ne", found, opdi_emit_int(task, -1));
    }
    if (op == OPDI_SCRIPT_OP_FLOORDIV && opdi_emit_is(left, OPDI_GTYPE_TENSOR)) {
        return opdi_emit_op2(task, "aten::floor_divide", left, right);
    }
    if (op == OPDI_SCRIPT_OP_ADD && opdi_emit_is(left, OPDI_GTYPE_TUPLE) && opdi_emit_is(right, OPDI_GTYPE_TUPLE)) {
        opdi_gvalue *parts[64];
        const int first = opdi_emit_type(left)->nparts, second = opdi_emit_type(right)->nparts;
        if (first + second > 64 || opdi_emit_unpack(task, left, parts, first) ||
            opdi_emit_unpack(task, right, parts + first, second)) { return NULL; }
        return opdi_emit_tuple(task, parts, first + second);
    }
    return opdi_emit_op2(task, opdi_script_operators[op].name, left, right);
}
/* Compiles `number op tensor`.  As in PyTorch, the operands are exchanged and, if necessary, another function is
   called.  Returns the result, or NULL and sets an error. */
static opdi_gvalue *opdi_emit_swapped(opdi_emitter *task, int op, opdi_gvalue *left, opdi_gvalue *right) {
    switch (op) {
    case OPDI_SCRIPT_OP_SUB: return opdi_emit_op2(task, "aten::add", opdi_emit_op1(task, "aten::neg", right), left);
    case OPDI_SCRIPT_OP_DIV: return opdi_emit_op2(task, "aten::mul", opdi_emit_op1(task, "aten::reciprocal", right),
                                                  left);
    case OPDI_SCRIPT_OP_LT: return opdi_emit_op2(task, "aten::gt", right, left);
    case OPDI_SCRIPT_OP_LE: return opdi_emit_op2(task, "aten::ge", right, left);
    case OPDI_SCRIPT_OP_GT: return opdi_emit_op2(task, "aten::lt", right, left);
    case OPDI_SCRIPT_OP_GE: return opdi_emit_op2(task, "aten::le", right, left);
    default: return opdi_emit_op2(task, opdi_script_operators[op].name, right, left);
    }
}
OPDI_INTERNAL opdi_gvalue *opdi_emit_unary(opdi_emitter *task, const opdi_syntax *node) {
    opdi_gvalue *value = opdi_emit_expr(task, node->parts[0], NULL);
    if (!value || node->op == OPDI_SCRIPT_OP_POS) { return value; }
    if (opdi_emit_is(value, OPDI_GTYPE_CLASS)) {
        return opdi_emit_method(task, value, opdi_script_operators[node->op].method, NULL, 0);
    }
    return opdi_emit_op1(task, opdi_script_operators[node->op].name, value);
}
OPDI_INTERNAL opdi_gvalue *opdi_emit_compare(opdi_emitter *task, const opdi_syntax *node) {
    if (node->op == OPDI_SCRIPT_OP_IS || node->op == OPDI_SCRIPT_OP_ISNOT) {
        opdi_cond_value cond;
        return opdi_emit_cond(task, node, &cond) ? NULL : cond.value;
    }
    opdi_gvalue *left = opdi_emit_expr(task, node->parts[0], NULL);
    opdi_gvalue *right = left ? opdi_emit_expr(task, node->parts[1], NULL) : NULL;
    if (!right) { return NULL; }
    if (node->op == OPDI_SCRIPT_OP_IN || node->op == OPDI_SCRIPT_OP_NOTIN) {
        opdi_gvalue *found = opdi_emit_operator(task, OPDI_SCRIPT_OP_IN, right, left);
        return node->op == OPDI_SCRIPT_OP_IN ? found : opdi_emit_op1(task, "aten::__not__", found);
    }
    return opdi_emit_operator(task, node->op, left, right);
}
/* Compiles `value if condition else other`.  `hint` is the type that the result should have, or NULL.  Returns the
   result, or NULL and sets an error. */
OPDI_INTERNAL opdi_gvalue *opdi_emit_ternary(opdi_emitter *task, const opdi_syntax *node, const opdi_gtype *hint) {
    opdi_cond_value cond;
    opdi_gvalue *values[2] = {NULL, NULL};
    opdi_gblock *blocks[2] = {NULL, NULL};
    opdi_script_frame frame;
    if (opdi_emit_cond(task, node->parts[0], &cond)) { return NULL; }
    if (cond.fixed >= 0) { return opdi_emit_expr(task, node->parts[cond.fixed ? 1 : 2], hint); }
    opdi_gnode *branch = opdi_emit_if(task, cond.value);
    if (!branch) { return NULL; }
    for (int i = 0; i < 2; i++) { blocks[i] = &branch->blocks[i]; }
    for (int i = 0; i < 2; i++) {
        opdi_gblock *before = opdi_emit_goto(task, blocks[i]);
        opdi_script_frame_enter(task, &frame);
        values[i] = opdi_emit_apply(task, i ? cond.fails : cond.holds) ? NULL
            : opdi_emit_expr(task, node->parts[1 + i], hint);
        task->frame = frame.up;
        opdi_emit_goto(task, before);
        if (!values[i]) { return NULL; }
    }
    const opdi_gtype *type = opdi_emit_common(task, values, 2);
    if (!type && hint && opdi_gtype_fits(opdi_emit_type(values[0]), hint) &&
        opdi_gtype_fits(opdi_emit_type(values[1]), hint)) { type = hint; }
    if (!type) {
        char first[200], second[200];
        (void)OPDI_EMIT_FAIL(task, "Type mismatch: the branches of an if-expression have type %s and %s",
                             opdi_emit_type_text(opdi_emit_type(values[0]), first, sizeof first),
                             opdi_emit_type_text(opdi_emit_type(values[1]), second, sizeof second));
        return NULL;
    }
    for (int i = 0; i < 2; i++) {
        opdi_gblock *before = opdi_emit_goto(task, blocks[i]);
        values[i] = opdi_emit_convert(task, values[i], type, false);
        opdi_emit_goto(task, before);
        if (!values[i] || opdi_emit_output(task, blocks[i], values[i])) { return NULL; }
    }
    return opdi_emit_out(task, branch, type);
}

//== subscripts ========================================================================================================

/* Compiles part i of a slice (0: begin, 1: end, 2: step), or the default of this part if the slice does not have it.
   Returns the value, or NULL and sets an error. */
static opdi_gvalue *opdi_emit_slice_part(opdi_emitter *task, const opdi_syntax *slice, int i) {
    if (slice->parts[i]) { return opdi_emit_expr(task, slice->parts[i], NULL); }
    const opd_value value = i == 2 ? opd_value_int(1) : opd_value_none();
    return opdi_append_constant(task->graph, value, opdi_gtype_simple(i == 2 ? OPDI_GTYPE_INT : OPDI_GTYPE_NONE), NULL);
}
/* Compiles value[begin:end:step].  If `value` is a tensor, `dim` is the dim to slice, else NULL.  Returns the result,
   or NULL and sets an error. */
static opdi_gvalue *opdi_emit_slice(opdi_emitter *task, opdi_gvalue *value, opdi_gvalue *dim,
                                    const opdi_syntax *slice) {
    opdi_gvalue *args[5] = {NULL, NULL, NULL, NULL, NULL};
    int count = 0;
    args[count++] = value;
    if (dim) { args[count++] = dim; }
    for (int i = 0; i < 3; i++) { if (!(args[count++] = opdi_emit_slice_part(task, slice, i))) { return NULL; } }
    return opdi_emit_op(task, "aten::slice", args, count, NULL, 0);
}
/* Compiles the index `node` for dim `dim` of a tensor.  If `back` is true, dims are counted from the end.  Sets *index
   to the value of the index, or to NULL if it is a slice.  Returns the dim for the next index, or -1000 and sets an
   error. */
static int64_t opdi_emit_index(opdi_emitter *task, const opdi_syntax *node, int64_t dim, bool back,
                               opdi_gvalue **index) {
    char said[200];
    *index = NULL;
    if (node->kind == OPDI_SYNTAX_SLICE) { return back ? dim - 1 : dim + 1; }
    if (!(*index = opdi_emit_expr(task, node, NULL))) { return -1000; }
    if (opdi_emit_is(*index, OPDI_GTYPE_LIST)) {
        opdi_gvalue *args[2] = {NULL, NULL};
        const char *const names[] = {"dtype"};
        args[0] = *index;
        args[1] = opdi_emit_int(task, OPD_INT64);
        if (!(*index = opdi_emit_op(task, "aten::tensor", args, 2, names, 1))) { return -1000; }
    }
    if (opdi_emit_is(*index, OPDI_GTYPE_NONE)) { return back ? dim : dim + 1; }
    if (opdi_emit_is(*index, OPDI_GTYPE_INT)) { return back ? dim - 1 : dim; }
    const bool tensor = opdi_gtype_strip(opdi_emit_type(*index))->kind == OPDI_GTYPE_TENSOR;
    if (tensor && !back) { return dim + 1; }
    (void)OPDI_EMIT_FAIL(task, tensor ? "Ellipses followed by tensor indexing is currently not supported"
                         : "Unsupported operation: indexing tensor with unsupported index type '%s'. Only ints, "
                         "slices, lists and tensors are supported",
                         opdi_emit_type_text(opdi_emit_type(*index), said, sizeof said));
    return -1000;
}
/* Compiles the indices of a tensor *value.  Applies each index that is not a tensor (int, slice, None) to *value, and
   stores the indices that are tensors in `tensors`.  Returns their number, or -1 and sets an error. */
OPDI_INTERNAL int opdi_emit_indices(opdi_emitter *task, opdi_gvalue **value, const opdi_syntax *node,
                                    opdi_gvalue **tensors) {
    opdi_gvalue *index[OPDI_SCRIPT_ARGS];
    int64_t dims[OPDI_SCRIPT_ARGS], dim = 0;
    const int count = node->nparts - 1;
    int i = 0, ntensors = 0;
    if (count > OPDI_SCRIPT_ARGS) {
        return OPDI_EMIT_FAIL(task, "there are %d indices, which is more than can be used", count);
    }
    for (; i < count && node->parts[1 + i]->kind != OPDI_SYNTAX_DOTS; i++) {
        dims[i] = dim;
        if ((dim = opdi_emit_index(task, node->parts[1 + i], dim, false, &index[i])) == -1000) { return -1; }
    }
    dim = -1;
    for (int back = count - 1; back > i; back--) {
        if (node->parts[1 + back]->kind == OPDI_SYNTAX_DOTS) {
            return OPDI_EMIT_FAIL(task, "An index can only have a single ellipsis ('...')");
        }
        dims[back] = dim;
        if ((dim = opdi_emit_index(task, node->parts[1 + back], dim, true, &index[back])) == -1000) { return -1; }
    }
    for (int k = 0; k < count; k++) {
        const opdi_syntax *part = node->parts[1 + k];
        if (part->kind == OPDI_SYNTAX_DOTS) { continue; }
        if (part->kind == OPDI_SYNTAX_SLICE) {
            *value = opdi_emit_slice(task, *value, opdi_emit_int(task, dims[k]), part);
        } else if (opdi_emit_is(index[k], OPDI_GTYPE_NONE)) {
            *value = opdi_emit_op2(task, "aten::unsqueeze", *value, opdi_emit_int(task, dims[k]));
        } else if (opdi_emit_is(index[k], OPDI_GTYPE_INT)) {
            *value = opdi_emit_op3(task, "aten::select", *value, opdi_emit_int(task, dims[k]), index[k]);
        } else {
            while (ntensors <= dims[k]) { tensors[ntensors++] = NULL; }
            tensors[dims[k]] = index[k];
        }
        if (!*value) { return -1; }
    }
    for (int k = 0; k < ntensors; k++) {
        if (!tensors[k] && !(tensors[k] = opdi_emit_none(task))) { return -1; }
    }
    return ntensors;
}
OPDI_INTERNAL opdi_gvalue *opdi_emit_index_list(opdi_emitter *task, opdi_gvalue *const *tensors, int count) {
    const opdi_gtype *element = opdi_gtype_optional(task->space, opdi_gtype_simple(OPDI_GTYPE_TENSOR));
    return opdi_emit_construct(task, opdi_gtype_list(task->space, element), tensors, count);
}
/* Compiles tuple[index] if the index is known only at run time; all elements must then have the same type.  Returns the
   element, or NULL and sets an error. */
static opdi_gvalue *opdi_emit_tuple_any(opdi_emitter *task, opdi_gvalue *tuple, opdi_gvalue *index) {
    const opdi_gtype *const type = opdi_emit_type(tuple);
    for (int k = 0; k < type->nparts; k++) {
        if (!opdi_gtype_same(type->parts[k], type->parts[0])) {
            (void)OPDI_EMIT_FAIL(task, "tuple index must be a compile time constant if the elements have different "
                                 "types");
            return NULL;
        }
    }
    if (!type->nparts || !opdi_emit_is(index, OPDI_GTYPE_INT)) {
        (void)OPDI_EMIT_FAIL(task, type->nparts ? "tuple index must be an integer" : "an empty tuple has no index");
        return NULL;
    }
    return opdi_emit_tuple_index(task, tuple, index, type->parts[0]);
}
/* Compiles tuple[index].  Returns the element, or NULL and sets an error. */
static opdi_gvalue *opdi_emit_tuple_at(opdi_emitter *task, opdi_gvalue *tuple, const opdi_syntax *node) {
    const opdi_gtype *type = opdi_emit_type(tuple);
    opdi_gvalue *index = opdi_emit_expr(task, node, NULL);
    int64_t at = 0;
    if (!index) { return NULL; }
    if (!opdi_emit_known_int(index, &at)) { return opdi_emit_tuple_any(task, tuple, index); }
    if (at < -type->nparts || at >= type->nparts) {
        (void)OPDI_EMIT_FAIL(task, "Tuple index out of range. Tuple is length %d and index is %lld", type->nparts,
                             (long long)at);
        return NULL;
    }
    opdi_gvalue *const *inside = opdi_emit_constructed(tuple, OPDI_GNODE_TUPLE);
    if (inside) { return inside[at < 0 ? at + type->nparts : at]; }
    return opdi_emit_tuple_index(task, tuple, index, type->parts[at < 0 ? at + type->nparts : at]);
}
/* Compiles tuple[begin:end:step], whose bounds must be known at compile time.  Returns the new tuple, or NULL and sets
   an error. */
static opdi_gvalue *opdi_emit_tuple_slice(opdi_emitter *task, opdi_gvalue *tuple, const opdi_syntax *slice) {
    opdi_gvalue *parts[64], *taken[64];
    const int64_t count = opdi_emit_type(tuple)->nparts;
    int64_t ends[3] = {0, count, 1};
    bool given[3] = {false, false, false};
    int ntaken = 0;
    for (int i = 0; i < 3; i++) {
        opdi_gvalue *value = slice->parts[i] ? opdi_emit_expr(task, slice->parts[i], NULL) : NULL;
        if (slice->parts[i] && !value) { return NULL; }
        if (value && !opdi_emit_is(value, OPDI_GTYPE_NONE) && !opdi_emit_known_int(value, &ends[i])) {
            (void)OPDI_EMIT_FAIL(task, "tuple slice must be a compile time constant");
            return NULL;
        }
        given[i] = value && !opdi_emit_is(value, OPDI_GTYPE_NONE);
    }
    if (ends[2] == 0 || count > 64) {
        (void)OPDI_EMIT_FAIL(task, ends[2] ? "the slice of a tuple has more than 64 elements"
                             : "slice step cannot be zero");
        return NULL;
    }
    const bool back = ends[2] < 0;                /* the step is negative: from the last element to the first */
    for (int i = 0; i < 2; i++) {
        if (!given[i]) { ends[i] = back == (i == 0) ? count - (back ? 1 : 0) : back ? -1 : 0; }
        else {
            if (ends[i] < 0) { ends[i] += count; }
            ends[i] = OPDI_MIN(OPDI_MAX(ends[i], back ? -1 : 0), back ? count - 1 : count);
        }
    }
    const int64_t step = OPDI_MAX(OPDI_MIN(ends[2], 64), -64);
    if (opdi_emit_unpack(task, tuple, parts, (int)count)) { return NULL; }
    for (int64_t i = ends[0]; back ? i > ends[1] : i < ends[1]; i += step) { taken[ntaken++] = parts[i]; }
    return opdi_emit_tuple(task, taken, ntaken);
}
OPDI_INTERNAL bool opdi_emit_is_interface(const opdi_gtype *type) {
    return type->kind == OPDI_GTYPE_CLASS && type->klass && type->klass->kind == OPDI_CLASS_INTERFACE;
}
/* Compiles a subscript of `of`.  `hint` is the type that the result should have, or NULL.  Returns the result, or NULL
   and sets an error. */
OPDI_INTERNAL opdi_gvalue *opdi_emit_subscript(opdi_emitter *task, const opdi_syntax *node, const opdi_sugared *of,
                                               const opdi_gtype *hint) {
    opdi_gvalue *tensors[OPDI_SCRIPT_ARGS];
    task->at = node->parts[0];
    opdi_gvalue *value = opdi_emit_plain(task, of);
    task->at = node;
    if (!value) { return NULL; }
    const opdi_syntax *first = node->parts[1];
    if (opdi_emit_is(value, OPDI_GTYPE_TENSOR)) {
        opdi_syntax flat = *node, *parts[OPDI_SCRIPT_ARGS + 1];
        if (node->nparts == 2 && first->kind == OPDI_SYNTAX_TUPLE && first->nparts <= OPDI_SCRIPT_ARGS) {
            parts[0] = node->parts[0];               /* x[(0, 1)] means x[0, 1] */
            memcpy(parts + 1, first->parts, (size_t)first->nparts * sizeof *parts);
            flat.parts = parts;
            flat.nparts = 1 + first->nparts;
        }
        const int count = opdi_emit_indices(task, &value, &flat, tensors);
        if (count <= 0) { return count ? NULL : value; }
        return opdi_emit_op2(task, "aten::index", value, opdi_emit_index_list(task, tensors, count));
    }
    if (node->nparts != 2 || node->op) {
        (void)OPDI_EMIT_FAIL(task, "Only tensors can be indexed with several indices");
        return NULL;
    }
    if (opdi_emit_is(value, OPDI_GTYPE_TUPLE)) {
        return first->kind == OPDI_SYNTAX_SLICE ? opdi_emit_tuple_slice(task, value, first)
            : opdi_emit_tuple_at(task, value, first);
    }
    if (first->kind == OPDI_SYNTAX_SLICE) { return opdi_emit_slice(task, value, NULL, first); }
    opdi_gvalue *index = opdi_emit_expr(task, first, NULL);
    if (index && opdi_emit_is(value, OPDI_GTYPE_CLASS) && hint && opdi_emit_is_interface(hint) &&
        !opdi_emit_method_of(task, value, "__getitem__")) {            /* ModuleList, ModuleDict and Sequential need no
                                                                          method __getitem__ */
        opdi_gvalue *args[2] = {NULL, NULL};
        args[0] = value;
        args[1] = index;
        opdi_gnode *chosen = opdi_emit_builtin(task, "prim::ModuleContainerIndex", args, 2, hint);
        return chosen ? chosen->out[0] : NULL;
    }
    if (index && opdi_emit_is(value, OPDI_GTYPE_CLASS)) {
        return opdi_emit_method(task, value, "__getitem__", &index, 1);
    }
    return opdi_emit_op2(task, "aten::__getitem__", value, index);
}
