#include "graphs.h"

//== calls with C values ===============================================================================================
//
//  OPD_GRAPH_CALL adds a call whose arguments are values of the graph and C values.  First the operator is chosen: an
//  argument fits if the value has the type, or if a call outside of a graph would convert the C value to the type.
//  Then the C values become constants, which have been converted.

/* Sets *at to the argument of `op` for args[k], and *position to the next argument without a name.  Returns 0; or the
   reason why there is no such argument. */
static const char *opdi_garg_place(const opd_op *op, const opd_graph_arg *arg, int *position, int *at) {
    if (!arg->name) {
        *at = (*position)++;
        return *at < op->nargs ? NULL : "there are more arguments than the operator has";
    }
    *at = opdi_arg_index(op->schema, arg->name, strlen(arg->name));
    return *at >= 0 ? NULL : "the operator has no argument of this name";
}
/* Returns whether `value` can be argument i of `op`; then `*bound` is the constant for it.  If `convert` is false, the
   value must have the type already.  Returns -1 and sets an error if memory runs out. */
static int opdi_garg_binds(const opd_op *op, int i, const opd_value *value, bool convert, opd_value *bound) {
    const opdi_type *const type = op->schema->args[i].type;
    const bool tensor = opdi_strip_optional(type)->kind == OPDI_TYPE_TENSOR;
    *bound = *value;
    if (tensor && opdi_is_number(value)) {        /* stays a number in the graph */
        return convert && op->wraps_numbers && !(op->written_args >> i & 1);
    }
    if (!convert) { return op->accepts[i] >> value->tag & 1; }
    const int rc = opdi_bind_value(type, value, bound);
    if (rc == 0 && opdi_is_list(bound) && bound->n == 0 && value->n == 0) { bound->u.object = NULL; }
    return rc < 0 ? -1 : rc == 0;
}
/* The arguments of a call: for each argument of the schema, a value of the graph, or a constant; neither if it has its
   default. */
typedef struct opdi_garg_call {
    opdi_gvalue *values[OPD_MAX_ARGS];
    opd_value constants[OPD_MAX_ARGS];
} opdi_garg_call;
/* Puts the arguments in the order of the schema.  `lists` are the values of arguments that are lists of values.
   Returns 1; 0 if they do not fit, and then writes the reason to `why` (NULL: does not); or -1 and sets an error if
   memory runs out. */
static int opdi_garg_fit(const opd_op *op, const opd_graph_arg *args, int nargs, opdi_gvalue *const *lists,
                         bool convert, opdi_garg_call *call, opdi_text *why) {
    int position = 0, at = 0, rc = 1;
    char type[200];
    for (int i = 0; i < OPD_MAX_ARGS; i++) {
        call->values[i] = NULL;
        call->constants[i] = opd_value_default();
    }
    for (int k = 0; k < nargs; k++) {
        const char *const wrong = opdi_garg_place(op, &args[k], &position, &at);
        if (wrong) {
            opdi_text_add(why, "%s(): argument %d%s%s%s: %s.", op->name, k, args[k].name ? " ('" : "",
                          args[k].name ? args[k].name : "", args[k].name ? "')" : "", wrong);
            return 0;
        }
        const opdi_arg *const arg = &op->schema->args[at];
        if (call->values[at] || call->constants[at].tag != OPD_TAG_DEFAULT) {
            opdi_text_add(why, "%s(): argument '%s' is given twice.", op->name, arg->name);
            return 0;
        }
        if (args[k].kind == OPD_GRAPH_ARG_C && args[k].constant.tag == OPD_TAG_DEFAULT) { continue; }
        call->values[at] = args[k].kind == OPD_GRAPH_ARG_VALUE ? args[k].value : lists[k];
        rc = call->values[at] ? opdi_graph_match_one(op, at, call->values[at], convert)
            : opdi_garg_binds(op, at, &args[k].constant, convert, &call->constants[at]);
        if (rc == 1) { continue; }
        if (rc < 0 || !why) { return rc; }
        opdi_text_add(why, "%s() Expected a value of type '%s' for argument '%s' but instead found type '", op->name,
                      opdi_type_print_plain(arg->type, type, sizeof type), arg->name);
        if (call->values[at]) { opdi_gvalue_type(why, call->values[at]); }
        else { opdi_text_add(why, "%s", opdi_value_kind(&args[k].constant)); }
        opdi_text_add(why, "'.");
        return 0;
    }
    for (int i = 0; i < op->nargs; i++) {
        if (call->values[i] || call->constants[i].tag != OPD_TAG_DEFAULT) { continue; }
        if (op->schema->args[i].has_default) { continue; }
        opdi_text_add(why, "%s() is missing value for argument '%s'.", op->name, op->schema->args[i].name);
        return 0;
    }
    return 1;
}
/* Returns the operator `name`, or the first overload of this name that takes the arguments, which it writes to *call.
   Returns NULL and sets an error if there is none. */
static opd_op *opdi_garg_op(opdi_graph_builder *build, const char *name, const opd_graph_arg *args, int nargs,
                            opdi_gvalue *const *lists, opdi_garg_call *call) {
    char text[900] = "";
    opdi_text why = opdi_text_of(text, sizeof text);
    const char *const colons = strstr(name, "::");
    opd_op *op = colons && strchr(colons, '.') ? opd_find_quiet(name) : NULL;
    opd_overloads *const set = op ? NULL : opdi_overloads_quiet(name);
    int rc = op && opd_ok() ? opdi_garg_fit(op, args, nargs, lists, true, call, &why) : 0;
    if (rc > 0) { return op; }
    for (int round = 0; set && round < 2 && rc == 0; round++) {
        for (int i = 0; rc == 0 && (op = opd_overloads_at(set, i)) != NULL; i++) {
            if (!op->definition) { continue; }
            rc = opdi_garg_fit(op, args, nargs, lists, round > 0, call, NULL);
            if (rc > 0) { return op; }
        }
    }
    for (int i = 0; set && rc == 0 && (op = opd_overloads_at(set, i)) != NULL; i++) {
        opdi_text_add(&why, i ? " " : "");
        (void)opdi_garg_fit(op, args, nargs, lists, true, call, &why);
    }
    if (!opd_ok()) { return NULL; }
    if (!*text) { opdi_graph_parse_unknown(&build->parser, name); }
    else {
        (void)opdi_graph_parse_fail(&build->parser, set ? "no overload of %s takes these values: %s" : "%s%s",
                                    set ? name : "", text);
    }
    return NULL;
}
/* Returns the list of the values of an argument.  Returns NULL and sets an error. */
static opdi_gvalue *opdi_garg_list(opdi_graph_builder *build, const opd_graph_arg *arg) {
    opd_graph *const graph = build->parser.graph;
    const opd_graph_values *const list = &arg->list;
    int row = 3;                                  /* a list without elements is a list of tensors */
    if (list->n < 0 || list->n > INT32_MAX) {
        (void)opdi_graph_parse_fail(&build->parser, "a list of values has %lld elements", (long long)list->n);
        return NULL;
    }
    if (opdi_graph_build_values(build, list->data, (int)list->n, false)) { return NULL; }
    for (int i = 0; list->n && i < 4; i++) {
        if (opdi_graph_list_rows[i].element == list->data[0]->tag) { row = i; }
    }
    opdi_gvalue *const value = opdi_graph_list(graph, OPDI_GNODE_LIST, opdi_graph_list_rows[row].list,
                                               opdi_graph_list_rows[row].word, list->data, (int32_t)list->n);
    return value && opdi_graph_parse_list(&build->parser, value->node) == 0 ? value : NULL;
}
/* Checks the arguments, and makes the lists of values.  Returns 0, or -1 and sets an error. */
static int opdi_garg_check(opdi_graph_builder *build, const opd_graph_arg *args, int nargs, opdi_gvalue **lists) {
    if (nargs < 0 || nargs > OPD_MAX_ARGS || (nargs && !args)) {
        return opdi_graph_parse_fail(&build->parser, nargs < 0 || nargs > OPD_MAX_ARGS ? "%d arguments are too many"
                                     : "the pointer to the %d arguments is NULL", nargs);
    }
    for (int k = 0; k < nargs; k++) {
        const opd_value *const constant = &args[k].constant;
        lists[k] = NULL;
        if (args[k].kind == OPD_GRAPH_ARG_VALUE) {
            if (opdi_graph_build_values(build, &args[k].value, 1, false)) {
                return opdi_fail_more(" [argument %d]", k);
            }
        } else if (args[k].kind == OPD_GRAPH_ARG_VALUES) {
            if (!(lists[k] = opdi_garg_list(build, &args[k]))) { return opdi_fail_more(" [argument %d]", k); }
        } else if (args[k].kind != OPD_GRAPH_ARG_C) {
            return opdi_graph_parse_fail(&build->parser, "argument %d has no known kind: use OPD_GRAPH_V", k);
        } else if (constant->tag != OPD_TAG_DEFAULT && opdi_graph_constant_check(build, constant)) {
            return opdi_fail_more(" [argument %d]", k);
        }
    }
    return 0;
}
/* Adds the call.  Returns its first result, or NULL and sets an error; NULL also if there is no result. */
static opdi_gvalue *opdi_garg_add(opdi_graph_builder *build, const char *name, const opd_graph_arg *args, int nargs) {
    opdi_garg_call *const call = (opdi_garg_call *)opdi_scope_alloc(sizeof *call);
    opdi_gvalue **const lists = (opdi_gvalue **)opdi_scope_alloc(OPD_MAX_ARGS * sizeof *lists), *result = NULL;
    if (!call || !lists || opdi_garg_check(build, args, nargs, lists)) { return NULL; }
    opd_op *const op = opdi_garg_op(build, name, args, nargs, lists, call);
    if (!op) { return NULL; }
    for (int i = 0; i < op->nargs; i++) {
        if (call->constants[i].tag == OPD_TAG_DEFAULT) { continue; }
        if (!(call->values[i] = opdi_graph_constants(build->parser.graph, &call->constants[i]))) { return NULL; }
    }
    (void)opdi_graph_build_call(build, op, call->values, op->nargs, &result, 1);
    return opd_ok() ? result : NULL;
}
opd_graph_value *opd_graph_call_args(opd_graph *graph, const char *name, const opd_graph_arg *args, int nargs) {
    OPDI_NEEDS_ALL();
    opdi_graph_builder build;
    opdi_gvalue *result = NULL;
    if (opdi_graph_build_begin(&build, graph, "OPD_GRAPH_CALL")) { return NULL; }
    const opdi_gnode *const at = graph->at;
    if (name) { result = opdi_garg_add(&build, name, args, nargs); }
    else { (void)opdi_graph_parse_fail(&build.parser, "the name of the operator is NULL"); }
    if (!opd_ok()) {
        char text[64] = "", called[100];
        opdi_text out = opdi_text_of(text, sizeof text);
        if (at && at->nout) { opdi_gvalue_name(&out, at->out[0]); }
        (void)opdi_fail_more(" [call of %.100s%s%s%s%s%s%s]", name ? name : "NULL",
                             at ? " before the graph's node " : "", text, *text ? " = " : "",
                             at ? opdi_gnode_name(at, called, sizeof called) : "", at && at->place ? " # " : "",
                             at && at->place ? at->place : "");
    }
    return opdi_graph_build_end(&build, opd_ok()) ? NULL : result;
}
