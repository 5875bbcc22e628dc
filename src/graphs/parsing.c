#include "graphs.h"

//== nodes in the text =================================================================================================

/* Returns the tag (OPD_TAG_...) of values of a schema's type. */
OPDI_INTERNAL int32_t opdi_graph_tag_of(const opdi_type *type) {
    const opdi_type *plain = opdi_strip_optional(type);
    const opdi_type *element = plain->kind == OPDI_TYPE_LIST ? opdi_strip_optional(plain->elems[0]) : plain;
    switch (element->kind) {
    case OPDI_TYPE_TENSOR: return element == plain ? OPD_TAG_TENSOR : OPD_TAG_TENSORS;
    case OPDI_TYPE_INT: return element == plain ? OPD_TAG_INT : OPD_TAG_INTS;
    case OPDI_TYPE_FLOAT: return element == plain ? OPD_TAG_FLOAT : OPD_TAG_FLOATS;
    case OPDI_TYPE_BOOL: return element == plain ? OPD_TAG_BOOL : OPD_TAG_BOOLS;
    case OPDI_TYPE_NUMBER: return element == plain ? OPD_TAG_INT : OPD_TAG_LIST;
    case OPDI_TYPE_COMPLEX: return element == plain ? OPD_TAG_COMPLEX : OPD_TAG_LIST;
    case OPDI_TYPE_STR: return element == plain ? OPD_TAG_STR : OPD_TAG_LIST;
    case OPDI_TYPE_DEVICE: return element == plain ? OPD_TAG_DEVICE : OPD_TAG_LIST;
    default: return element == plain ? OPD_TAG_OBJECT : OPD_TAG_LIST;
    }
}
/* Returns true if `value` is a constant number, and argument i of the operator takes a tensor that it does not write.
   A call then converts the number to a tensor (a "wrapped number"). */
static bool opdi_graph_number_for_tensor(const opd_op *op, int i, const opdi_gvalue *value) {
    return op->wraps_numbers && !(op->written_args >> i & 1) && value->node &&
        value->node->kind == OPDI_GNODE_CONSTANT &&
        opdi_strip_optional(op->schema->args[i].type)->kind == OPDI_TYPE_TENSOR &&
        opdi_is_number(&value->node->constant);
}
/* Returns true if `value`, whose type is known, can be passed as the argument `arg`. */
static bool opdi_graph_match_typed(const opdi_arg *arg, const opdi_gvalue *value) {
    opdi_text why = opdi_text_of(NULL, 0);
    opdi_graph_match_state match;
    int8_t how;
    memset(&match, 0, sizeof match);
    match.graph = value->graph;
    match.why = &why;
    match.who = "";
    return opdi_graph_space(match.graph) && opdi_graph_match_arg(&match, arg, value, &how) &&
        how <= OPDI_CONVERSION_REPEAT;
}
/* Returns true if `value` can be passed as argument i of `op`; NULL means the argument's default.  If `convert` is
   true, constant numbers may be converted. */
OPDI_INTERNAL bool opdi_graph_match_one(const opd_op *op, int i, const opdi_gvalue *value, bool convert) {
    const opdi_type *const type = opdi_strip_optional(op->schema->args[i].type);
    if (!value) { return op->schema->args[i].has_default; }
    if (opdi_takes_all(type)) { return true; }
    if (value->type) {
        return opdi_graph_match_typed(&op->schema->args[i], value) ||
            (convert && opdi_graph_number_for_tensor(op, i, value));
    }
    if (value->tag == OPD_TAG_LIST && (!value->node || value->node->kind == OPDI_GNODE_TUPLE)) { return false; }
    if ((op->accepts[i] >> value->tag & 1) || value->tag == opdi_graph_tag_of(type)) { return true; }
    if (type->kind == OPDI_TYPE_LIST && type->size > 0 && value->tag == opdi_graph_tag_of(type->elems[0])) {
        return true;
    }
    if (convert && opdi_graph_number_for_tensor(op, i, value)) { return true; }
    return convert && value->tag == OPD_TAG_INT && value->node && value->node->kind == OPDI_GNODE_CONSTANT &&
        (op->accepts[i] >> OPD_TAG_FLOAT & 1);
}
/* Returns true if `op` accepts the `count` values `in` and has `nout` results (-1: any number).  Otherwise writes the
   reason to `why`, in the words of PyTorch. */
OPDI_INTERNAL bool opdi_graph_match(const opd_op *op, opdi_gvalue *const *in, int count, int nout, bool convert,
                                    opdi_text *why) {
    char text[100];
    if (!op->definition) {
        opdi_text_add(why, "%s is not defined any more", op->name);
        return false;
    }
    for (int i = 0; i < op->nargs; i++) {
        const opdi_arg *const arg = &op->schema->args[i];
        const opdi_gvalue *const value = i < count ? in[i] : NULL;
        if (opdi_graph_match_one(op, i, value, convert)) { continue; }
        if (!why) { return false; }
        if (!value) { opdi_text_add(why, "%s() is missing value for argument '%s'.", op->name, arg->name); }
        else {
            opdi_text_add(why, "%s() Expected a value of type '%s' for argument '%s' but instead found type '",
                          op->name, opdi_type_print_plain(arg->type, text, sizeof text), arg->name);
            opdi_gvalue_type(why, value);
            opdi_text_add(why, "'.");
        }
        return false;
    }
    if (count > op->nargs) {
        opdi_text_add(why, "%s() Expected at most %d argument(s) but received %d argument(s).", op->name, op->nargs,
                      count);
    } else if (nout >= 0 && nout != op->nrets) {
        opdi_text_add(why, "%s() gives %d result(s), not %d.", op->name, op->nrets, nout);
    } else { return true; }
    return false;
}
/* Sets the error that there is no operator `name`.  If a comment in the text of a saved graph tells where the operator
   came from, the error tells this, too. */
OPDI_INTERNAL void opdi_graph_parse_unknown(opdi_graph_parser *parser, const char *name) {
    const size_t length = strlen(name);
    const char *at = parser->text;
    while (at && (strncmp(at, "# ", 2) != 0 || strncmp(at + 2, name, length) != 0 || at[length + 2] != ' ')) {
        at = strchr(at, '\n');
        if (at) { at++; }
    }
    (void)opdi_graph_parse_fail(parser, "there is no operator %s: load the library that defines it%s%.*s%s", name,
                                at ? " (when the graph was saved it was " : "",
                                at ? (int)OPDI_MIN(strcspn(at + length + 3, "\n"), 300) : 0, at ? at + length + 3 : "",
                                at ? ")" : "");
}
/* Returns the builtin named `name` that accepts the `count` values `in` as positional arguments.  Returns NULL if there
   is none, or if an error occurs. */
static const opdi_builtin *opdi_graph_parse_builtin(opdi_graph_parser *parser, const char *name, opdi_gvalue *const *in,
                                                    int count) {
    opdi_graph_match_state match;
    opdi_graph_args given;
    memset(&match, 0, sizeof match);
    memset(&given, 0, sizeof given);
    given.in = in;
    given.count = count;
    match.graph = parser->graph;
    match.given = &given;
    match.who = name;
    match.flat = true;
    if (!opdi_graph_space(parser->graph)) { return NULL; }
    for (int32_t at = -1; (at = opdi_builtin_next(name, at)) >= 0;) {
        if (opdi_builtin_at(at)->flags & OPDI_BUILTIN_ANY) { return opdi_builtin_at(at); }
        if (!(match.schema = opdi_builtin_schema(at))) { return NULL; }
        if (opdi_graph_match_schema(&match)) { return opdi_builtin_at(at); }
    }
    return NULL;
}
/* Returns the overload of `name` that accepts the values `in`; a name such as "aten::add.Tensor" allows only that
   overload.  If no operator but a builtin accepts them, sets *builtin and returns NULL.  If neither does, returns NULL
   and sets an error. */
OPDI_INTERNAL opd_op *opdi_graph_parse_op(opdi_graph_parser *parser, const char *name, opdi_gvalue *const *in,
                                          int count, int nout, const opdi_builtin **builtin) {
    const char *colons = strstr(name, "::");
    opd_op *op = colons && strchr(colons, '.') ? opd_find_quiet(name) : NULL;
    char text[500] = "";
    opdi_text why = opdi_text_of(text, sizeof text);
    if (op && opdi_graph_match(op, in, count, nout, true, &why)) { return op; }
    if (op) {
        (void)opdi_graph_parse_fail(parser, "%s", text);
        return NULL;
    }
    if (!builtin || !opd_ok()) { builtin = NULL; }
    opd_overloads *set = opdi_overloads_quiet(name);
    for (int round = 0; set && round < 2; round++) {
        for (int i = 0; (op = opd_overloads_at(set, i)) != NULL; i++) {
            if (opdi_graph_match(op, in, count, nout, round > 0, NULL)) { return op; }
        }
        if (round || !builtin) { continue; }
        if ((*builtin = opdi_graph_parse_builtin(parser, name, in, count)) != NULL) { return NULL; }
    }
    if (builtin && !set && opd_ok()) {
        if ((*builtin = opdi_graph_parse_builtin(parser, name, in, count)) != NULL) { return NULL; }
    }
    if (opd_ok() && !(builtin && parser->lenient)) {
        for (int i = 0; set && (op = opd_overloads_at(set, i)) != NULL; i++) {
            opdi_text_add(&why, i ? " " : "");
            (void)opdi_graph_match(op, in, count, nout, true, &why);
        }
        if (set) { (void)opdi_graph_parse_fail(parser, "no overload of %s takes these values: %s", name, text); }
        else { opdi_graph_parse_unknown(parser, name); }
    }
    return NULL;
}

/* Sets the inputs of a node to `in`, followed by constants with the defaults of the remaining arguments.  Converts
   constant ints to floats if the operator takes floats.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_graph_parse_bind(opdi_graph_parser *parser, opdi_gnode *node, opd_op *op, opdi_gvalue **in,
                                        int count) {
    for (int i = 0; i < op->nargs; i++) {
        opd_value value;
        node->in[i] = i < count ? in[i] : NULL;
        if (!node->in[i]) { value = op->schema->args[i].value; }
        else if (opdi_graph_match_one(op, i, in[i], false) || opdi_graph_number_for_tensor(op, i, in[i])) { continue; }
        else { value = opd_value_double((double)in[i]->node->constant.u.i); }
        if (!(node->in[i] = opdi_graph_constants(parser->graph, &value))) { return -1; }
    }
    return 0;
}
/* Checks that the declared types of a node's results agree with the operator's schema, and sets the types that are not
   declared.  Returns 0, or -1 and sets an error. */
static int opdi_graph_parse_results(opdi_graph_parser *parser, const opdi_gnode *node) {
    char text[100] = "", type[100];
    for (int i = 0; i < node->nout; i++) {
        opdi_text annotated = opdi_text_of(text, sizeof text);
        const opdi_type *want = node->op->schema->returns[i].type;
        opdi_gvalue *value = node->out[i];
        const int32_t tag = opdi_graph_tag_of(want);
        if (value->tag == OPD_TAG_DEFAULT) { value->tag = tag; }
        if (value->type || value->tag == tag || value->tag == OPD_TAG_NONE) { continue; }
        if (opdi_accepts(want) >> value->tag & 1) { continue; }
        opdi_gvalue_type(&annotated, value);
        return opdi_graph_parse_fail(parser, "Annotated type %s does not match schema type %s for operator %s", text,
                                     opdi_type_print_plain(want, type, sizeof type), node->op->name);
    }
    return 0;
}

/* Checks that the elements of a list or tuple have the types that its declared type requires.  Returns 0, or -1 and
   sets an error. */
static int opdi_graph_parse_typed_list(opdi_graph_parser *parser, opdi_gnode *node) {
    const opdi_gtype *const type = node->out[0]->type;
    const int kind = type->kind;
    if (node->kind == OPDI_GNODE_LIST
        ? kind != OPDI_GTYPE_LIST : kind != OPDI_GTYPE_TUPLE || type->nparts != node->nin) {
        return opdi_graph_parse_fail(parser, "the elements do not have the type of the list");
    }
    for (int32_t i = 0; i < node->nin; i++) {
        const opdi_gtype *actual = opdi_gvalue_gtype(parser->graph, node->in[i]);
        if (!actual) { return -1; }
        if (!opdi_gtype_fits(actual, type->parts[kind == OPDI_GTYPE_LIST ? 0 : i])) {
            return opdi_graph_parse_fail(parser, "element %d of the list does not have the type of the list", (int)i);
        }
    }
    return 0;
}
/* Checks that all elements of a list have its element type.  If no type is declared, the first element determines the
   type.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_graph_parse_list(opdi_graph_parser *parser, opdi_gnode *node) {
    opdi_gvalue *value = node->out[0];
    int row = 0;
    if (value->type) { return opdi_graph_parse_typed_list(parser, node); }
    if (value->tag == OPD_TAG_DEFAULT) {          /* the first element determines the type */
        while (row < 4 && (!node->nin || opdi_graph_list_rows[row].element != node->in[0]->tag)) { row++; }
        value->tag = opdi_graph_list_rows[row].list;
        node->word = opdi_graph_list_rows[row].word;
    }
    for (row = 0; row < 5 && opdi_graph_list_rows[row].list != value->tag; row++) { }
    if (row == 5) { return opdi_graph_parse_fail(parser, "the type of a list is not a list type"); }
    for (int i = 0; i < node->nin; i++) {
        const opdi_gvalue *element = node->in[i];
        value->nesting = (uint8_t)OPDI_MAX(value->nesting, element->nesting + 1);
        if (value->nesting > 8) { return opdi_graph_parse_fail(parser, "lists are nested too deeply"); }
        if (row == 4 ? !element->node || element->node->kind != OPDI_GNODE_TUPLE
            : element->tag == opdi_graph_list_rows[row].element ||
              (element->tag == OPD_TAG_INT && value->tag == OPD_TAG_FLOATS) ||
              (element->tag == OPD_TAG_NONE && value->tag == OPD_TAG_TENSORS)) { continue; }
        return opdi_graph_parse_fail(parser, "element %d of the list does not have the type of the list", i);
    }
    return 0;
}
/* Checks the inputs and results of a list, tuple or unpacking node.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_graph_parse_prim(opdi_graph_parser *parser, opdi_gnode *node) {
    if (node->kind == OPDI_GNODE_LIST) { return opdi_graph_parse_list(parser, node); }
    if (node->kind == OPDI_GNODE_TUPLE) {
        if (node->out[0]->type) { return opdi_graph_parse_typed_list(parser, node); }
        node->out[0]->tag = OPD_TAG_LIST;
        return 0;
    }
    if (!parser->who && node->nin == 1 && node->in[0]->tag != OPD_TAG_TENSORS &&
        opdi_is_list_tag(node->in[0]->tag)) {
        const opdi_gtype *const type = opdi_gvalue_gtype(parser->graph, node->in[0]);
        for (int i = 0; type && i < node->nout; i++) {
            if (node->out[i]->tag == OPD_TAG_DEFAULT) { opdi_gvalue_typed(node->out[i], type->parts[0]); }
        }
        return type ? 0 : -1;
    }
    if (node->nin != 1 || node->in[0]->tag != OPD_TAG_TENSORS) {
        return opdi_graph_parse_fail(parser, "prim::ListUnpack must have one input, a list of tensors");
    }
    for (int i = 0; i < node->nout; i++) {
        if (node->out[i]->tag == OPD_TAG_DEFAULT) { node->out[i]->tag = OPD_TAG_TENSOR; }
        if (node->out[i]->tag != OPD_TAG_TENSOR && node->out[i]->tag != OPD_TAG_NONE && !node->out[i]->type) {
            return opdi_graph_parse_fail(parser,
                                         "the results of prim::ListUnpack must be tensors, but result %d is not a "
                                         "tensor", i);
        }
    }
    return 0;
}
/* Makes space for one more pointer in *list, which has `count` pointers.  The innermost scope owns the memory of the
   list.  Returns 0, or -1 and sets an error. */
static int opdi_graph_parse_reserve(opdi_gvalue ***list, int count) {
    opdi_gvalue **more;
    if (count & (count - 1) || (count && count < 16)) { return 0; }
    if (!(more = (opdi_gvalue **)opdi_scope_alloc((size_t)OPDI_MAX(16, 2 * count) * sizeof *more))) { return -1; }
    if (count) { memcpy(more, *list, (size_t)count * sizeof *more); }
    *list = more;
    return 0;
}

/* Reads the comment "# FILE:LINE" after a node into node->place.  Returns 0, or -1 if memory runs out. */
static int opdi_graph_parse_place(opdi_graph_parser *parser, opdi_gnode *node) {
    while (*parser->at == ' ') { parser->at++; }
    if (*parser->at != '#') { return 0; }
    while (*++parser->at == ' ') { }
    size_t len = strcspn(parser->at, "\n");
    if (len && !(node->place = opdi_arena_copy(&parser->graph->arena, parser->at, len))) { return -1; }
    parser->at += len;
    return 0;
}

/* The parts of a node in a graph's text. */
typedef struct opdi_gnode_text {
    opdi_gvalue **out, **in;
    const char *word;                             /* of a list: the name of the element type */
    int nout, nin, kind;
    char name[256];
} opdi_gnode_text;

/* Reads the results and the name of a node, such as "%a : int, %b : Tensor = aten::name".  Returns 0, or -1 and sets an
   error. */
static int opdi_graph_parse_head(opdi_graph_parser *parser, opdi_gnode *node, opdi_gnode_text *text) {
    static const char *const prims[] = {"prim::Constant", "prim::ListConstruct", "prim::TupleConstruct",
                                        "prim::ListUnpack", "prim::If", "prim::Loop"};
    while (*parser->at == '%') {
        if (opdi_graph_parse_reserve(&text->out, text->nout) ||
            !(text->out[text->nout] = opdi_graph_parse_declare(parser, node, &text->word))) { return -1; }
        text->nout++;
        if (!opdi_graph_parse_is(parser, ",")) { break; }
        opdi_graph_parse_blanks(parser, false);
    }
    if (text->nout ? opdi_graph_parse_want(parser, "=") : opdi_graph_parse_is(parser, "=") && false) { return -1; }
    opdi_graph_parse_blanks(parser, false);
    const size_t len = strspn(parser->at, OPDI_GRAPH_NAME ":");
    if (len == 0 || len >= sizeof text->name) { return opdi_graph_parse_fail(parser, "expected an operator"); }
    memcpy(text->name, parser->at, len);
    text->name[len] = 0;
    for (int i = 0; i < 6; i++) { if (strcmp(text->name, prims[i]) == 0) { text->kind = OPDI_GNODE_CONSTANT + i; } }
    if (text->kind == OPDI_GNODE_OP && strncmp(text->name, "prim::", 6) == 0) {
        if (opdi_builtin_next(text->name, -1) < 0 && !parser->lenient) {
            return opdi_graph_parse_fail(parser, "%s is not known", text->name);
        }
        text->kind = OPDI_GNODE_BUILTIN;
    }
    parser->at += len;
    if (text->kind >= OPDI_GNODE_CONSTANT && text->kind <= OPDI_GNODE_TUPLE && text->nout != 1) {
        return opdi_graph_parse_fail(parser, "%s must have one result", text->name);
    }
    return 0;
}
/* Reads the attributes of a node: "[name="weight"]", "[types=[int, str]]", or any other text in brackets.  Returns 0,
   or -1 and sets an error. */
static int opdi_graph_parse_attributes(opdi_graph_parser *parser, opdi_gnode *node) {
    if (!opdi_graph_parse_is(parser, "[")) { return 0; }
    if (opdi_graph_parse_is(parser, "name=")) {
        return opdi_graph_parse_quoted(parser, &node->attribute) ? -1 : opdi_graph_parse_want(parser, "]");
    }
    if (opdi_graph_parse_is(parser, "types=[")) {
        const opdi_gtype *room[OPDI_GTYPE_PARTS], **parts = room, *types;
        const char *at = parser->at;
        const int32_t count = opdi_gtype_read_parts(opdi_graph_space(parser->graph), &at, ']', &parts, NULL, 40);
        if (count < 0 || !(types = opdi_gtype_tuple(parser->graph->space, parts, count))) {
            return opdi_graph_parse_fail(parser, "expected types");
        }
        parser->at = at;
        node->constant = opd_value_object((void *)(uintptr_t)types);
        return opdi_graph_parse_want(parser, "]");
    }
    const size_t length = strcspn(parser->at, "]\n");
    if (!(node->word = opdi_arena_copy(&parser->graph->arena, parser->at, length))) { return -1; }
    parser->at += length;
    return opdi_graph_parse_want(parser, "]");
}
/* Reads a list of existing values, "(%a, %b)".  Returns 0, or -1 and sets an error. */
static int opdi_graph_parse_values(opdi_graph_parser *parser, opdi_gvalue ***values, int *count) {
    *count = 0;
    if (opdi_graph_parse_want(parser, "(")) { return -1; }
    while (!opdi_graph_parse_is(parser, ")")) {
        if (opdi_graph_parse_reserve(values, *count) || (*count && opdi_graph_parse_want(parser, ",")) ||
            !((*values)[*count] = opdi_graph_parse_use(parser))) { return -1; }
        ++*count;
    }
    return 0;
}

static int opdi_graph_parse_node(opdi_graph_parser *parser);
/* Reads block number `which`, which has the head "block0(%i : int):", nodes, and the outputs "-> (%a, %b)".  Returns 0,
   or -1 and sets an error. */
static int opdi_graph_parse_block(opdi_graph_parser *parser, opdi_gblock *block, int which) {
    opd_graph *const graph = parser->graph;
    opdi_gvalue **ends = NULL;
    char head[16];
    int count = 0;
    const char *word;
    (void)snprintf(head, sizeof head, "block%d(", which);
    opdi_graph_parse_blanks(parser, true);
    if (opdi_graph_parse_want(parser, head)) { return -1; }
    if (++parser->depth > 100) { return opdi_graph_parse_fail(parser, "blocks are nested too deeply"); }
    for (; !opdi_graph_parse_is(parser, ")"); count++) {
        if ((count && opdi_graph_parse_want(parser, ",")) || opdi_graph_parse_reserve(&ends, count) ||
            !(ends[count] = opdi_graph_parse_declare(parser, NULL, &word)) ||
            opdi_graph_parse_enter(parser, ends[count])) {
            return -1;
        }
        ends[count]->block = block;
    }
    if (opdi_graph_parse_want(parser, ":")) { return -1; }
    if (!(block->inputs = (opdi_gvalue **)opdi_graph_alloc(graph, (size_t)count * sizeof *ends))) { return -1; }
    if (count) { memcpy(block->inputs, ends, (size_t)count * sizeof *ends); }
    block->ninputs = count;
    const opdi_graph_insert_point was = opdi_gblock_enter(graph, block);
    int rc = 0;
    opdi_graph_parse_blanks(parser, true);
    while (rc == 0 && !opdi_graph_parse_is(parser, "->")) {
        rc = opdi_graph_parse_node(parser);
        opdi_graph_parse_blanks(parser, true);
    }
    if (rc == 0) { rc = opdi_graph_parse_values(parser, &ends, &count); }
    if (rc == 0) { rc = opdi_gblock_leave(graph, block, was, ends, count); }
    graph->into = was.into;
    graph->at = was.at;
    parser->depth--;
    return rc;
}
/* Reads the blocks of an If or Loop.  Returns 0, or -1 and sets an error. */
static int opdi_graph_parse_blocks(opdi_graph_parser *parser, opdi_gnode *node) {
    const bool loop = node->kind == OPDI_GNODE_LOOP;
    const bool lenient = parser->lenient;
    if (loop ? node->nin != node->nout + 2 : node->nin != 1) {
        return opdi_graph_parse_fail(parser, loop ? "prim::Loop cannot have %d inputs and %d results"
                                     : "prim::If cannot have %d inputs", node->nin, node->nout);
    }
    parser->lenient = true;
    if (opdi_gnode_blocks(parser->graph, node, loop ? 1 : 2)) { return -1; }
    for (int i = 0; i < node->nblocks; i++) {
        opdi_gblock *const block = &node->blocks[i];
        if (opdi_graph_parse_block(parser, block, i)) { return -1; }
        if (block->noutputs != node->nout + loop || block->ninputs != (loop ? node->nout + 1 : 0)) {
            return opdi_graph_parse_fail(parser, "a block cannot have %d inputs and %d outputs here",
                                         (int)block->ninputs, (int)block->noutputs);
        }
    }
    parser->lenient = lenient;
    return 0;
}
/* Finds the operator, builtin or kind of node that is named in the text, and sets the node's inputs.  Returns 0, or -1
   and sets an error. */
static int opdi_graph_parse_called(opdi_graph_parser *parser, opdi_gnode *node, opdi_gnode_text *text) {
    opd_graph *const graph = parser->graph;
    const opdi_builtin *builtin = NULL;
    opd_op *op = NULL;
    if (text->kind == OPDI_GNODE_OP) {
        if (text->nin > OPD_MAX_ARGS ||
            !(op = opdi_graph_parse_op(parser, text->name, text->in, text->nin, text->nout, &builtin))) {
            if (!opd_ok() || text->nin > OPD_MAX_ARGS) { return -1; }
        }
    } else if (text->kind == OPDI_GNODE_BUILTIN) {
        builtin = opdi_graph_parse_builtin(parser, text->name, text->in, text->nin);
    }
    if (!opd_ok()) { return -1; }
    if (!op && !builtin) {
        opdi_builtin *const unknown = (opdi_builtin *)opdi_graph_alloc(graph, sizeof *unknown);
        if (!unknown || !(unknown->schema = opdi_arena_copy(&graph->arena, text->name, strlen(text->name)))) {
            return -1;
        }
        unknown->run = opdi_builtin_unknown;
        unknown->flags = OPDI_BUILTIN_ANY | OPDI_BUILTIN_STAYS;
        builtin = unknown;
    }
    node->kind = op ? OPDI_GNODE_OP : OPDI_GNODE_BUILTIN;
    node->op = op;
    node->builtin = builtin;
    node->nin = op ? op->nargs : text->nin;
    if (!(node->in = (opdi_gvalue **)opdi_graph_alloc(graph, (size_t)node->nin * sizeof *node->in))) { return -1; }
    if (op && opdi_graph_parse_results(parser, node)) { return -1; }
    if (op) { return opdi_graph_parse_bind(parser, node, op, text->in, text->nin); }
    if (node->nin) { memcpy(node->in, text->in, (size_t)node->nin * sizeof *node->in); }
    for (int i = 0; i < node->nout; i++) {
        if (node->out[i]->tag == OPD_TAG_DEFAULT) {
            opdi_gvalue_typed(node->out[i], opdi_gtype_simple(OPDI_GTYPE_ANY));
        }
    }
    if (node->attribute && node->nin) {           /* a class that the text only names gets an attribute when the
                                                     attribute is first used */
        const opdi_gtype *const type = node->in[0]->type, *const what =
            opdi_gvalue_gtype(graph, node->nout ? node->out[0] : node->in[node->nin - 1]);
        if (!type || !type->klass || !what) {
            return opd_ok() ? opdi_graph_parse_fail(parser, "the value is not an object") : -1;
        }
        if (opdi_gclass_slot(type->klass, node->attribute) < 0 && type->klass->open &&
            opdi_gclass_add(type->klass, node->attribute, what, 0) < 0) { return -1; }
    }
    return 0;
}
/* Reads one node and adds it to the graph, with its blocks.  Returns 0, or -1 and sets an error. */
static int opdi_graph_parse_node(opdi_graph_parser *parser) {
    opd_graph *const graph = parser->graph;
    opdi_gnode_text text;
    opdi_gnode *node = (opdi_gnode *)opdi_graph_alloc(graph, sizeof *node);
    memset(&text, 0, sizeof text);
    text.word = "Tensor";
    if (!node || opdi_graph_parse_head(parser, node, &text)) { return -1; }
    node->kind = (opdi_gkind)text.kind;
    node->word = text.kind == OPDI_GNODE_LIST ? text.word : NULL;
    node->nout = text.nout;
    if (!(node->out = (opdi_gvalue **)opdi_graph_alloc(graph, (size_t)text.nout * sizeof *node->out))) { return -1; }
    if (text.nout) { memcpy(node->out, text.out, (size_t)text.nout * sizeof *text.out); }
    int rc = text.kind == OPDI_GNODE_CONSTANT
        ? opdi_graph_parse_constant(parser, node) : opdi_graph_parse_attributes(parser, node);
    if (rc == 0) { rc = opdi_graph_parse_values(parser, &text.in, &text.nin); }
    if (text.kind == OPDI_GNODE_CONSTANT) {       /* the graph now owns the constant */
        opdi_gnode_append(graph, node);
        if (rc == 0 && text.nin) { rc = opdi_graph_parse_fail(parser, "a constant cannot have inputs"); }
    }
    for (int i = 0; i < text.nout && rc == 0 && !node->nblocks && text.kind != OPDI_GNODE_IF &&
         text.kind != OPDI_GNODE_LOOP; i++) { rc = opdi_graph_parse_enter(parser, text.out[i]); }
    if (rc || !opd_ok()) { return -1; }
    if (text.kind == OPDI_GNODE_CONSTANT) { return opdi_graph_parse_place(parser, node); }
    if (text.kind == OPDI_GNODE_OP || text.kind == OPDI_GNODE_BUILTIN) {
        if (opdi_graph_parse_called(parser, node, &text)) { return -1; }
        opdi_gnode_append(graph, node);
        return opdi_graph_parse_place(parser, node);
    }
    node->nin = text.nin;
    if (!(node->in = (opdi_gvalue **)opdi_graph_alloc(graph, (size_t)text.nin * sizeof *node->in))) { return -1; }
    if (text.nin) { memcpy(node->in, text.in, (size_t)text.nin * sizeof *text.in); }
    opdi_gnode_append(graph, node);
    if (text.kind != OPDI_GNODE_IF && text.kind != OPDI_GNODE_LOOP) {
        return opdi_graph_parse_prim(parser, node) ? -1 : opdi_graph_parse_place(parser, node);
    }
    if (opdi_graph_parse_place(parser, node) || opdi_graph_parse_blocks(parser, node)) { return -1; }
    for (int i = 0; i < text.nout; i++) { if (opdi_graph_parse_enter(parser, text.out[i])) { return -1; } }
    return 0;
}

/* Reads a whole graph: inputs, nodes and outputs.  Returns 0, or -1 and sets an error. */
static int opdi_graph_parse_body(opdi_graph_parser *parser) {
    opd_graph *graph = parser->graph;
    opdi_gvalue **in = NULL;
    const char *word;
    int count = 0;
    opdi_graph_parse_blanks(parser, true);
    if (opdi_graph_parse_want(parser, "graph(")) { return -1; }
    for (opdi_graph_parse_blanks(parser, true); !opdi_graph_parse_is(parser, ")");
         opdi_graph_parse_blanks(parser, true)) {
        if (count && opdi_graph_parse_want(parser, ",")) { return -1; }
        opdi_graph_parse_blanks(parser, true);
        if (opdi_graph_parse_reserve(&in, count) || !(in[count] = opdi_graph_parse_declare(parser, NULL, &word)) ||
            opdi_graph_parse_enter(parser, in[count])) {
            return -1;
        }
        parser->lenient = parser->lenient || in[count]->tag != OPD_TAG_TENSOR;
        if (in[count]->tag != OPD_TAG_TENSOR && !in[count]->type) {
            if (!(in[count]->type = opdi_gvalue_gtype(graph, in[count]))) { return -1; }
        }
        count++;
    }
    if (opdi_graph_parse_want(parser, ":") || opdi_graph_sizes_lines(graph, &parser->at, &parser->line) ||
        opdi_graph_reserve_inputs(graph, count)) { return -1; }
    if (count) { memcpy(graph->inputs, in, (size_t)count * sizeof *in); }
    graph->ninputs = count;
    for (opdi_graph_parse_blanks(parser, true); !opdi_graph_parse_is(parser, "return");
         opdi_graph_parse_blanks(parser, true)) {
        if (opdi_graph_parse_node(parser)) { return -1; }
    }
    if (opdi_graph_parse_want(parser, "(")) { return -1; }
    if (!opdi_graph_parse_is(parser, ")")) {
        if (!(graph->result = opdi_graph_parse_use(parser)) || opdi_graph_parse_want(parser, ")")) { return -1; }
    }
    opdi_graph_parse_blanks(parser, true);
    if (*parser->at) { return opdi_graph_parse_fail(parser, "there is more text after the graph"); }
    const opdi_gnode *made = graph->result ? graph->result->node : NULL;
    if (made && made->kind != OPDI_GNODE_TUPLE && made->kind != OPDI_GNODE_LIST) { made = NULL; }
    for (int i = 0; made && i < made->nin; i++) {
        if (made->in[i]->tag != OPD_TAG_TENSOR) { made = NULL; }
    }
    count = made ? made->nin : graph->result ? 1 : 0;
    if (!(graph->outputs = (opdi_gvalue **)opdi_graph_alloc(graph, (size_t)count * sizeof *in))) { return -1; }
    graph->noutputs = count;
    for (int i = 0; i < count; i++) {
        graph->outputs[i] = made ? made->in[i] : graph->result;
    }
    return graph->sizes ? opdi_graph_open_complete(graph) : 0;
}

OPDI_INTERNAL opd_graph *opdi_graph_parse(const char *text, opd_tensor *const *constants, int64_t nconstants,
                                          opdi_graph_named_fn named, void *user) {
    opd_scope scope = opd_scope_open();
    opdi_graph_parser parser;
    memset(&parser, 0, sizeof parser);
    parser.text = parser.at = text;
    parser.line = 1;
    parser.constants = constants;
    parser.nconstants = nconstants;
    parser.named = named;
    parser.user = user;
    parser.graph = opdi_graph_new();
    int rc = parser.graph && opdi_graph_parse_grow(&parser) == 0 && opdi_graph_parse_body(&parser) == 0 ? 0 : -1;
    opd_scope_close(&scope);
    if (rc == 0) { return parser.graph; }
    opd_graph_free(parser.graph);
    return NULL;
}
opd_graph *opd_graph_parse(const char *text) {
    OPDI_NEEDS_ALL();
    opdi_thread *thread = opdi_self();
    if (!opd_ok()) { return NULL; }
    if (!text) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_parse: the text is NULL");
        return NULL;
    }
    uint64_t was = opdi_enter(thread);            /* schemas stay valid until opdi_leave, as in a call */
    opd_graph *graph = opdi_graph_parse(text, NULL, 0, /* named, user */ NULL, NULL);
    opdi_leave(thread, was);
    return graph;
}
