#include "script.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>script_writing saving scripts: graphs written as text in the grammar of archives
//
//  The text of a method is written from its graph, not copied from its source.  Each node becomes a statement, and
//  called functions are inlined.  So the text has only forms that the grammar of archives allows.
//----------------------------------------------------------------------------------------------------------------------

//== values ============================================================================================================

OPDI_INTERNAL void opdi_script_print(opdi_script_printer *print, const char *text) {
    opdi_string_add(print->code, text);
}
static void opdi_script_print_line(opdi_script_printer *print) {
    opdi_script_print(print, "\n");
    for (int i = 0; i < print->indent; i++) { opdi_script_print(print, "  "); }
}
/* Writes a type as an annotation.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_script_print_type(opdi_script_printer *print, const opdi_gtype *type) {
    char text[4000];
    opdi_text out = opdi_text_of(text, sizeof text);
    opdi_gtype_print(&out, type, true);
    if (out.length >= sizeof text) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s has a type whose text is longer than %d bytes: use a class "
                        "instead", print->who, print->function ? print->function->name : "a class", (int)sizeof text);
    }
    opdi_script_print(print, text);
    return 0;
}
/* Writes a text in quotes. */
OPDI_INTERNAL void opdi_script_print_quoted(opdi_script_printer *print, const char *text, int64_t length) {
    char one[16];
    opdi_script_print(print, "\"");
    for (int64_t i = 0; i < length; i++) {
        opdi_writer writer = {one, sizeof one, 0, false};
        opdi_write_quoted(&writer, text + i, 1);
        opdi_string_add_n(print->code, one + 1, writer.length - 2);
    }
    opdi_script_print(print, "\"");
}
static void opdi_script_print_double(opdi_script_printer *print, double d) {
    char text[64];
    opdi_writer writer = {text, sizeof text, 0, false};
    opdi_write_double(&writer, d);
    opdi_string_add_n(print->code, text, writer.length);
}
/* Writes a constant.  Returns 0, or -1 and sets an error. */
static int opdi_script_print_constant(opdi_script_printer *print, const opd_value *value) {
    const opdi_cell *const cell = opdi_cell_of(value);
    char text[64];
    opdi_writer writer = {text, sizeof text, 0, false};
    const double *pair = value->tag == OPD_TAG_COMPLEX ? value->u.c : cell && cell->kind == OPD_CELL_COMPLEX
        ? cell->u.pair : NULL;
    if (pair) {
        opdi_script_print(print, "complex(");
        opdi_script_print_double(print, pair[0]);
        opdi_script_print(print, ", ");
        opdi_script_print_double(print, pair[1]);
        opdi_script_print(print, ")");
    } else if (cell && cell->kind == OPD_CELL_STR) { opdi_script_print_quoted(print, cell->u.text, cell->count); }
    else if (cell && cell->kind == OPD_CELL_OBJECT && cell->klass->kind == OPDI_CLASS_ENUM) {
        opdi_script_print(print, cell->klass->name);
        opdi_script_print(print, ".");
        opdi_script_print(print, opdi_cell_of(&cell->u.values[0])->u.text);
    } else if (value->tag == OPD_TAG_STR) { opdi_script_print_quoted(print, value->u.s, (int64_t)strlen(value->u.s)); }
    else if (value->tag == OPD_TAG_DEVICE) {
        opdi_script_print(print, "torch.device(\"");
        opdi_script_print(print, opdi_device_text(value->u.device, text, sizeof text));
        opdi_script_print(print, "\")");
    } else if (value->tag == OPD_TAG_INT || value->tag == OPD_TAG_FLOAT || value->tag == OPD_TAG_BOOL ||
               value->tag == OPD_TAG_NONE) {
        opdi_write_scalar(&writer, value);
        opdi_string_add_n(print->code, text, writer.length);
    } else {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s has a constant that an archive cannot contain",
                        print->who, print->function->name);
    }
    return 0;
}
/* Writes the name of a value.  If a loop carries a value, it has the same name in the loop as after the loop. */
static void opdi_script_print_name(opdi_script_printer *print, const opdi_gvalue *value) {
    char text[64];
    const opdi_gnode *const loop = value->block ? value->block->owner : NULL;
    for (int32_t i = 1; loop && loop->kind == OPDI_GNODE_LOOP && i < value->block->ninputs; i++) {
        if (value->block->inputs[i] == value) {
            value = loop->out[i - 1];
            break;
        }
    }
    for (int32_t i = 0; i < print->function->nformals && !value->node && !value->block; i++) {
        if (print->graph->inputs[i] == value) {
            opdi_script_print(print, print->function->formals[i].name);
            return;
        }
    }
    snprintf(text, sizeof text, "%s%d", print->named, (int)value->id);
    opdi_script_print(print, text);
}
/* Writes a constant tensor of a traced graph: a number, or an attribute of the object. */
static int opdi_script_print_tensor(opdi_script_printer *print, const opdi_gvalue *value, const opd_tensor *tensor) {
    char name[80];
    if (tensor->flags & OPDI_WRAPPED) {
        const opd_value number = opd_dtype_is_floating((opd_scalar_type)tensor->dtype)
            ? opd_value_double(opdi_element_f64(tensor, 0)) : tensor->dtype == OPD_BOOL
            ? opd_value_bool(opdi_element_i64(tensor, 0) != 0) : opd_value_int(opdi_element_i64(tensor, 0));
        if (!opd_dtype_is_complex((opd_scalar_type)tensor->dtype)) {
            return opdi_script_print_constant(print, &number);
        }
    }
    (void)snprintf(name, sizeof name, "self." OPDI_SCRIPT_CONSTANT, (int)value->id);
    opdi_script_print(print, name);
    return 0;
}
/* Writes a value at a place that uses it: its name, or the text of a constant.  Returns 0, or -1 and sets an error. */
static int opdi_script_print_value(opdi_script_printer *print, const opdi_gvalue *value) {
    if (value->node && value->node->kind == OPDI_GNODE_CONSTANT && !value->node->attribute) {
        const opd_value *const constant = &value->node->constant;
        if (constant->tag == OPD_TAG_TENSOR && print->attributes) {
            return opdi_script_print_tensor(print, value, constant->u.t);
        }
        return opdi_script_print_constant(print, constant);
    }
    opdi_script_print_name(print, value);
    return 0;
}
static int opdi_script_print_values(opdi_script_printer *print, opdi_gvalue *const *values, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        opdi_script_print(print, i ? ", " : "");
        if (opdi_script_print_value(print, values[i])) { return -1; }
    }
    return 0;
}
/* Returns the type that the written text of a value has by itself: NoneType for None, even if an optional type is
   expected.  On failure, returns NULL and sets an error. */
static const opdi_gtype *opdi_script_print_typed(opdi_script_printer *print, const opdi_gvalue *value) {
    const opdi_gnode *const node = value->node;
    return node && node->kind == OPDI_GNODE_CONSTANT && node->constant.tag == OPD_TAG_NONE
        ? opdi_gtype_simple(OPDI_GTYPE_NONE) : opdi_gvalue_gtype(print->graph, value);
}
/* Writes "annotate(TYPE, ".  Returns 1, or -1 and sets an error. */
static int opdi_script_print_annotate(opdi_script_printer *print, const opdi_gtype *type) {
    opdi_script_print(print, "annotate(");
    if (opdi_script_print_type(print, type)) { return -1; }
    opdi_script_print(print, ", ");
    return 1;
}
/* Writes a value at a place that expects the type `type`.  If the value's own type is different, writes it in
   annotate().  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_script_print_as(opdi_script_printer *print, const opdi_gvalue *value, const opdi_gtype *type) {
    const opdi_gtype *const typed = opdi_script_print_typed(print, value);
    const int open = typed && type && !opdi_gtype_same(typed, type) ? opdi_script_print_annotate(print, type) : 0;
    if (!typed || !type || open < 0 || opdi_script_print_value(print, value)) { return -1; }
    opdi_script_print(print, open ? ")" : "");
    return 0;
}
/* Writes a list, tuple or dict.  Returns 0, or -1 and sets an error. */
static int opdi_script_print_construct(opdi_script_printer *print, const opdi_gnode *node) {
    const opdi_gtype *const type = opdi_gvalue_gtype(print->graph, node->out[0]);
    const bool dict = type && type->kind == OPDI_GTYPE_DICT, tuple = type && type->kind == OPDI_GTYPE_TUPLE;
    bool plain = type && (tuple || node->nin);
    if (!type) { return -1; }
    for (int32_t i = 0; i < node->nin; i++) {
        const opdi_gtype *const typed = opdi_script_print_typed(print, node->in[i]);
        plain = plain && typed && opdi_gtype_same(typed, type->parts[tuple ? i : dict ? i % 2 : 0]);
    }
    if (tuple && type->klass) {                    /* a named tuple, such as __torch__.Point(x, y) */
        opdi_script_print(print, type->klass->name);
        opdi_script_print(print, "(");
        if (opdi_script_print_values(print, node->in, node->nin)) { return -1; }
        opdi_script_print(print, ")");
        return 0;
    }
    if (!plain && opdi_script_print_annotate(print, type) < 0) { return -1; }
    opdi_script_print(print, dict ? "{" : tuple ? "(" : "[");
    for (int32_t i = 0; i < node->nin; i++) {
        opdi_script_print(print, i == 0 ? "" : dict && i % 2 ? ": " : ", ");
        if (opdi_script_print_value(print, node->in[i])) { return -1; }
    }
    opdi_script_print(print, dict ? "}" : tuple ? node->nin == 1 ? ",)" : ")" : "]");
    opdi_script_print(print, plain ? "" : ")");
    return 0;
}
/* Writes a call, such as "torch.add(x, 1, alpha=1)".  Returns 0, or -1 and sets an error. */
static int opdi_script_print_call(opdi_script_printer *print, const opdi_gnode *node) {
    const char *const name = node->kind == OPDI_GNODE_OP ? node->op->name : node->builtin->schema;
    const int32_t row = node->kind == OPDI_GNODE_OP || node->builtin->flags & OPDI_BUILTIN_ANY ? -1
        : (int32_t)(node->builtin - opdi_builtin_at(0));
    const opd_schema *const schema = node->kind == OPDI_GNODE_OP ? node->op->schema : row >= 0
        ? opdi_builtin_schema(row)
        : NULL;
    const size_t space = strcspn(name, ":");
    if (row >= 0 && !schema) { return -1; }
    if (strncmp(name, "aten::", 6) == 0) { opdi_script_print(print, "torch."); }
    else {
        opdi_script_print(print, "ops.");
        opdi_string_add_n(print->code, name, space);
        opdi_script_print(print, ".");
    }
    opdi_string_add_n(print->code, name + space + 2, strcspn(name + space + 2, ".("));
    opdi_script_print(print, "(");
    for (int32_t i = 0; i < node->nin; i++) {
        opdi_script_print(print, i ? ", " : "");
        if (schema && i < schema->nargs && schema->args[i].keyword_only) {
            opdi_script_print(print, schema->args[i].name);
            opdi_script_print(print, "=");
        }
        if (opdi_script_print_value(print, node->in[i])) { return -1; }
    }
    opdi_script_print(print, ")");
    return 0;
}
/* How archives write those builtins that they do not write as calls.  In a form, "0" and "1" stand for the first and
   second argument, "*" for all arguments, "T" for the type of the result, and "N" for the name of the attribute.  Other
   characters stand for themselves. */
static const struct { const char *name, *form; } opdi_script_print_forms[] = {
    {"prim::TupleIndex", "(0)[1]"}, {"prim::StringIndex", "(0)[1]"}, {"aten::__getitem__", "(0)[1]"},
    {"prim::GetAttr", "(0).N"}, {"prim::SetAttr", "(0).N = 1"}, {"prim::TupleUnpack", "0"},
    {"prim::Uninitialized", "uninitialized(T)"}, {"prim::unchecked_cast", "unchecked_cast(T, 0)"},
    {"prim::CreateObject", "T.__new__(T)"}, {"prim::tolist", "annotate(T, (0).tolist())"},
    {"prim::Print", "print(*)"}, {"prim::EnumName", "(0).name"}, {"prim::EnumValue", "(0).value"},
    {"aten::IntImplicit", "annotate(T, 0)"}, {"aten::FloatImplicit", "annotate(T, 0)"},
    {"aten::ComplexImplicit", "annotate(T, 0)"}, {"aten::ScalarImplicit", "annotate(T, 0)"},
    {"aten::Int", "int(0)"}, {"aten::Float", "float(0)"}, {"aten::Bool", "bool(0)"}, {"aten::str", "str(0)"}};
/* Writes a node in a form (see opdi_script_print_forms).  Returns 0, or -1 and sets an error. */
static int opdi_script_print_form(opdi_script_printer *print, const opdi_gnode *node, const char *form) {
    int rc = 0;
    for (; !rc && *form; form++) {
        switch (*form) {
        case '0': case '1':
            rc = *form - '0' < node->nin ? opdi_script_print_value(print, node->in[*form - '0']) : -1;
            break;
        case '*': rc = opdi_script_print_values(print, node->in, node->nin); break;
        case 'T': rc = opdi_script_print_type(print, opdi_gvalue_gtype(print->graph, node->out[0])); break;
        case 'N': opdi_script_print(print, node->attribute); break;
        default: opdi_string_add_n(print->code, form, 1); break;
        }
    }
    return rc;
}
/* Writes isinstance(x, T) or isinstance(x, (T, U)).  Returns 0, or -1 and sets an error. */
static int opdi_script_print_isinstance(opdi_script_printer *print, const opdi_gnode *node) {
    const opdi_gtype *const types = (const opdi_gtype *)node->constant.u.object;
    opdi_script_print(print, "isinstance(");
    if (opdi_script_print_value(print, node->in[0])) { return -1; }
    opdi_script_print(print, types->nparts == 1 ? ", " : ", (");
    for (int32_t i = 0; i < types->nparts; i++) {
        opdi_script_print(print, i ? ", " : "");
        if (opdi_script_print_type(print, types->parts[i])) { return -1; }
    }
    opdi_script_print(print, types->nparts == 1 ? ")" : "))");
    return 0;
}
/* Writes the call of a builtin.  Returns 0, or -1 and sets an error. */
static int opdi_script_print_builtin(opdi_script_printer *print, const opdi_gnode *node) {
    const char *const name = node->builtin->schema;
    const size_t length = strcspn(name, ".(");
    if (node->builtin->run == opdi_builtin_unknown) {
        return opd_fail(OPD_ERROR_NOT_FOUND, "%s: %s calls %s, but there is no function with this name%s",
                        print->who, print->function->name, name, opdi_builtin_missing(name));
    }
    for (size_t i = 0; i < sizeof opdi_script_print_forms / sizeof opdi_script_print_forms[0]; i++) {
        if (strncmp(opdi_script_print_forms[i].name, name, length) == 0 && !opdi_script_print_forms[i].name[length]) {
            return opdi_script_print_form(print, node, opdi_script_print_forms[i].form);
        }
    }
    if (strncmp(name, "prim::isinstance", length) == 0) { return opdi_script_print_isinstance(print, node); }
    if (strncmp(name, "prim::DictConstruct", length) == 0) { return opdi_script_print_construct(print, node); }
    if (strncmp(name, "prim::autocast_", 15) == 0 || strncmp(name, "prim::ModuleContainerIndex", length) == 0 ||
        strncmp(name, "quantized::_", 12) == 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s has %.*s, which an archive cannot contain",
                        print->who, print->function->name, (int)length, name);
    }
    return opdi_script_print_call(print, node);
}
//== statements ========================================================================================================

/* Writes the names of a node's results, and "=". */
static void opdi_script_print_results(opdi_script_printer *print, const opdi_gnode *node) {
    const bool apart = node->kind == OPDI_GNODE_UNPACK ||
        (node->kind == OPDI_GNODE_BUILTIN && strcmp(node->builtin->schema, "prim::TupleUnpack") == 0);
    for (int32_t i = 0; i < node->nout; i++) {
        opdi_script_print_name(print, node->out[i]);
        opdi_script_print(print, apart ? ", " : i + 1 < node->nout ? ", " : "");
    }
    opdi_script_print(print, node->nout ? " = " : "");
}
OPDI_INTERNAL int opdi_script_print_block(opdi_script_printer *print, const opdi_gblock *block);
/* Returns whether a block is written without any statement. */
static bool opdi_script_print_idle(const opdi_gblock *block) {
    const opdi_gnode *node = block->first;
    while (node && (node->kind == OPDI_GNODE_CONSTANT || (node->kind == OPDI_GNODE_UNPACK && !node->nout))) {
        node = node->next;
    }
    return !node;
}
/* Returns whether a block, or a block in it, uses a value. */
static bool opdi_script_print_reads(const opdi_gblock *block, const opdi_gvalue *value) {
    for (int32_t i = 0; i < block->noutputs; i++) { if (block->outputs[i] == value) { return true; } }
    for (const opdi_gnode *node = block->first; node; node = node->next) {
        for (int32_t i = 0; i < node->nin; i++) { if (node->in[i] == value) { return true; } }
        for (int32_t i = 0; i < node->nblocks; i++) {
            if (opdi_script_print_reads(&node->blocks[i], value)) { return true; }
        }
    }
    return false;
}
/* Writes a branch.  At the end of each block, the results of the branch are assigned.  Returns 0, or -1 and sets an
   error. */
static int opdi_script_print_if(opdi_script_printer *print, const opdi_gnode *node) {
    for (int side = 0; side < 2; side++) {
        const opdi_gblock *const block = &node->blocks[side];
        opdi_script_print_line(print);
        opdi_script_print(print, side ? "else" : "if ");
        if (!side && opdi_script_print_value(print, node->in[0])) { return -1; }
        opdi_script_print(print, ":");
        print->indent++;
        if (opdi_script_print_block(print, block)) { return -1; }
        for (int32_t i = 0; i < node->nout; i++) {
            opdi_script_print_line(print);
            opdi_script_print_name(print, node->out[i]);
            opdi_script_print(print, " = ");
            if (opdi_script_print_as(print, block->outputs[i], opdi_gvalue_gtype(print->graph, node->out[i]))) {
                return -1;
            }
        }
        if (!node->nout && opdi_script_print_idle(block)) {
            opdi_script_print_line(print);
            opdi_script_print(print, "pass");
        }
        print->indent--;
    }
    return 0;
}
/* How a loop is written.  `counts` is true if the loop has a maximum number of rounds, `asks` if it has a condition.  A
   loop that only counts is written as "for"; other loops are written as "while", with a variable for the condition.
   `round` and `again` are the names of the variables for the number of the round and for the condition. */
typedef struct opdi_script_loop_form { bool counts, asks; char round[64], again[64]; } opdi_script_loop_form;
/* Writes the expression that tells if a loop continues with round number `round`; `condition` is the loop's condition.
   Returns 0, or -1 and sets an error. */
static int opdi_script_print_continues(opdi_script_printer *print, const opdi_gnode *node,
                                       const opdi_script_loop_form *form, const char *round,
                                       const opdi_gvalue *condition) {
    if (!form->counts) { return opdi_script_print_value(print, condition); }
    opdi_script_print(print, "torch.__and__(torch.lt(");
    opdi_script_print(print, round);
    opdi_script_print(print, ", ");
    if (opdi_script_print_value(print, node->in[0])) { return -1; }
    opdi_script_print(print, "), ");
    if (opdi_script_print_value(print, condition)) { return -1; }
    opdi_script_print(print, ")");
    return 0;
}
/* Writes the end of an iteration: one statement that assigns all carried variables.  Returns 0, or -1 and sets an
   error. */
static int opdi_script_print_iteration_end(opdi_script_printer *print, const opdi_gnode *node,
                                           const opdi_script_loop_form *form) {
    const opdi_gblock *const body = &node->blocks[0];
    const bool counts = form->asks && form->counts, more = node->nout || form->asks;
    char next[80];
    (void)snprintf(next, sizeof next, "torch.add(%s, 1)", form->round);
    if (!more && !opdi_script_print_idle(body)) { return 0; }
    opdi_script_print_line(print);
    for (int32_t i = 0; i < node->nout; i++) {
        opdi_script_print(print, i ? ", " : "");
        opdi_script_print_name(print, node->out[i]);
    }
    opdi_script_print(print, form->asks && node->nout ? ", " : "");
    opdi_script_print(print, form->asks ? form->again : "");
    opdi_script_print(print, counts ? ", " : "");
    opdi_script_print(print, counts ? form->round : "");
    opdi_script_print(print, more ? " = " : "pass");
    for (int32_t i = 0; i < node->nout; i++) {
        opdi_script_print(print, i ? ", " : "");
        if (opdi_script_print_as(print, body->outputs[i + 1], opdi_gvalue_gtype(print->graph, node->out[i]))) {
            return -1;
        }
    }
    opdi_script_print(print, form->asks && node->nout ? ", " : "");
    if (form->asks && opdi_script_print_continues(print, node, form, next, body->outputs[0])) { return -1; }
    opdi_script_print(print, counts ? ", " : "");
    opdi_script_print(print, counts ? next : "");
    return 0;
}
/* Writes the statements in front of a loop, which set the loop's variables.  Returns 0, or -1 and sets an error. */
static int opdi_script_print_loop_begin(opdi_script_printer *print, const opdi_gnode *node,
                                        const opdi_script_loop_form *form) {
    for (int32_t i = 0; i < node->nout; i++) {
        opdi_script_print_line(print);
        opdi_script_print_name(print, node->out[i]);
        opdi_script_print(print, " = ");
        if (opdi_script_print_as(print, node->in[i + 2], opdi_gvalue_gtype(print->graph, node->out[i]))) { return -1; }
    }
    opdi_script_print_line(print);
    if (!form->asks) {
        opdi_script_print(print, "for ");
        opdi_script_print(print, form->round);
        opdi_script_print(print, " in range(");
        if (opdi_script_print_value(print, node->in[0])) { return -1; }
        opdi_script_print(print, "):");
        return 0;
    }
    if (form->counts) {
        opdi_script_print(print, form->round);
        opdi_script_print(print, " = 0");
        opdi_script_print_line(print);
    }
    opdi_script_print(print, form->again);
    opdi_script_print(print, " = ");
    if (opdi_script_print_continues(print, node, form, "0", node->in[1])) { return -1; }
    opdi_script_print_line(print);
    opdi_script_print(print, "while ");
    opdi_script_print(print, form->again);
    opdi_script_print(print, ":");
    return 0;
}
static int opdi_script_print_loop(opdi_script_printer *print, const opdi_gnode *node) {
    const opdi_gblock *const body = &node->blocks[0];
    opdi_script_loop_form form;
    int64_t most = 0;
    (void)snprintf(form.round, sizeof form.round, "%s%d", print->named, (int)body->inputs[0]->id);
    (void)snprintf(form.again, sizeof form.again, "%s%dc", print->named, (int)body->inputs[0]->id);
    form.asks = opdi_emit_known_bool(node->in[1]) != 1 || opdi_emit_known_bool(body->outputs[0]) != 1;
    form.counts = !opdi_emit_known_int(node->in[0], &most) || most != INT64_MAX ||
        opdi_script_print_reads(body, body->inputs[0]);
    if (opdi_script_print_loop_begin(print, node, &form)) { return -1; }
    print->indent++;
    const int rc = opdi_script_print_block(print, body) || opdi_script_print_iteration_end(print, node, &form) ? -1 : 0;
    print->indent--;
    return rc;
}
static int opdi_script_print_node(opdi_script_printer *print, const opdi_gnode *node) {
    switch (node->kind) {
    case OPDI_GNODE_CONSTANT: return 0;
    case OPDI_GNODE_IF: return opdi_script_print_if(print, node);
    case OPDI_GNODE_LOOP: return opdi_script_print_loop(print, node);
    default: break;
    }
    if (node->kind == OPDI_GNODE_UNPACK && !node->nout) { return 0; }
    opdi_script_print_line(print);
    opdi_script_print_results(print, node);
    switch (node->kind) {
    case OPDI_GNODE_LIST: case OPDI_GNODE_TUPLE: return opdi_script_print_construct(print, node);
    case OPDI_GNODE_UNPACK: return opdi_script_print_value(print, node->in[0]);
    case OPDI_GNODE_OP: return opdi_script_print_call(print, node);
    case OPDI_GNODE_BUILTIN: return opdi_script_print_builtin(print, node);
    default:
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s calls C code, which an archive cannot contain",
                        print->who, print->function->name);
    }
}
OPDI_INTERNAL int opdi_script_print_block(opdi_script_printer *print, const opdi_gblock *block) {
    if (opdi_stack_is_short(print->who, OPDI_STACK_CALL)) { return -1; }
    for (const opdi_gnode *node = block->first; node; node = node->next) {
        if (opdi_script_print_node(print, node) == 0) { continue; }
        if (node->place && !node->nblocks && print->attributes && opd_error_code() != OPD_ERROR_MEMORY) {
            char name[100];
            (void)opdi_fail_more(" [%s at %.300s]", opdi_gnode_name(node, name, sizeof name), node->place);
        }
        return -1;
    }
    return 0;
}
//== methods and classes ===============================================================================================

/* Writes the default of a parameter, which consists of constants: a constant, or a list, tuple or dict of constants.
   Returns 0, or -1 and sets an error. */
static int opdi_script_print_literal(opdi_script_printer *print, const opdi_gvalue *value, const opdi_gtype *type) {
    const opdi_gnode *const node = value->node;
    const bool dict = type->kind == OPDI_GTYPE_DICT, tuple = type->kind == OPDI_GTYPE_TUPLE;
    if (type->kind == OPDI_GTYPE_OPTIONAL) { type = type->parts[0]; }
    if (node && node->kind == OPDI_GNODE_CONSTANT && !node->attribute) {
        return opdi_script_print_constant(print, &node->constant);
    }
    if (!node || (node->kind != OPDI_GNODE_LIST && node->kind != OPDI_GNODE_TUPLE && !dict)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s has a default that is not a constant: use None as the "
                        "default, and make the value in the function", print->who, print->function->name);
    }
    if (!node->nin && !tuple && opdi_script_print_annotate(print, type) < 0) { return -1; }
    opdi_script_print(print, dict ? "{" : tuple ? "(" : "[");
    for (int32_t i = 0; i < node->nin; i++) {
        opdi_script_print(print, i == 0 ? "" : dict && i % 2 ? ": " : ", ");
        if (opdi_script_print_literal(print, node->in[i], opdi_gvalue_gtype(print->graph, node->in[i]))) { return -1; }
    }
    opdi_script_print(print, dict ? "}" : tuple ? node->nin == 1 ? ",)" : ")" : "]");
    opdi_script_print(print, node->nin || tuple ? "" : ")");
    return 0;
}
/* Writes the default of parameter number i of a function.  Returns 0, or -1 and sets an error. */
static int opdi_script_print_default(const opdi_script_printer *of, opdi_script_function *function, int32_t i) {
    opdi_script_printer print = *of;
    print.graph = opdi_script_default_graph((opd_script *)(uintptr_t)of->script, function, i);
    if (!print.graph) { return -1; }
    for (opdi_gnode *node = print.graph->body.first; node; node = node->next) {
        OPD_SCOPE { (void)opdi_script_clean_folds(node); }
    }
    const opdi_gvalue *const value = print.graph->result;
    const int rc = opdi_script_print_literal(&print, value, opdi_gvalue_gtype(print.graph, value));
    opd_graph_free(print.graph);
    return rc;
}
/* Writes the parameters of a method.  The first parameter is self, of type `self`.  Returns 0, or -1 and sets an
   error. */
static int opdi_script_print_formals(opdi_script_printer *print, const char *self) {
    static const char words[] = "self torch ops annotate uninitialized unchecked_cast int float bool str complex print "
        "isinstance range inf nan __torch__ ";
    opdi_script_function *const function = print->function;
    const int32_t first = opdi_script_function_selves(function);
    bool keyword_only = false;
    opdi_script_print(print, "(");
    opdi_script_print(print, first ? function->formals[0].name : "self");
    opdi_script_print(print, ": ");
    opdi_script_print(print, self);
    for (int32_t i = first; i < function->nformals; i++) {
        const opdi_script_formal *const formal = &function->formals[i];
        if (opdi_word_in(formal->name, (int)strlen(formal->name), words)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s has a parameter '%s', but this name is reserved "
                            "in an archive: rename the parameter", print->who, function->name, formal->name);
        }
        opdi_script_print(print, formal->keyword_only && !keyword_only ? ",\n    *" : "");
        keyword_only = formal->keyword_only;
        opdi_script_print(print, ",\n    ");
        opdi_script_print(print, formal->name);
        opdi_script_print(print, ": ");
        if (opdi_script_print_type(print, formal->type)) { return -1; }
        if (!formal->otherwise) { continue; }
        opdi_script_print(print, "=");
        if (opdi_script_print_default(print, function, i)) { return -1; }
    }
    opdi_script_print(print, ")");
    return 0;
}
/* Writes the body of a method that only calls another method, which has the name of the function, with the same
   arguments.  Returns 0, or -1 if memory runs out. */
static int opdi_script_print_same(opdi_script_printer *print) {
    const opdi_script_function *const function = print->function;
    opdi_script_print(print, "\n    return (self).");
    opdi_script_print(print, function->name);
    opdi_script_print(print, "(");
    for (int32_t i = 0; i < function->nformals; i++) {
        opdi_script_print(print, i ? ", " : "");
        opdi_script_print(print, function->formals[i].keyword_only ? function->formals[i].name : "");
        opdi_script_print(print, function->formals[i].keyword_only ? "=" : "");
        opdi_script_print(print, function->formals[i].name);
    }
    opdi_script_print(print, ")\n");
    return print->code->failed ? -1 : 0;
}
/* Writes a function as the method `as` of a class named `self`.  Returns 0, or -1 and sets an error. */
static int opdi_script_print_method(const opd_script *script, opdi_script_function *function, const char *as,
                                    const char *self, opdi_string *code) {
    char named[16] = "_";
    opd_graph *const graph = opdi_script_compiled((opd_script *)(uintptr_t)script, function);
    opdi_script_printer print;
    if (!graph) { return -1; }
    for (int32_t i = 0; i < function->nformals; i++) {         /* makes the names of values different from parameters
                                                                  such as _1 */
        const char *const name = function->formals[i].name;
        const size_t length = strspn(name, "_");
        if (opdi_is_digit(name[length]) && length >= strlen(named) && length + 1 < sizeof named) {
            memset(named, '_', length + 1);
            named[length + 1] = 0;
        }
    }
    memset(&print, 0, sizeof print);
    print.code = code;
    print.who = "opd_script_save";
    print.script = script;
    print.graph = graph;
    print.function = function;
    print.named = named;
    print.indent = 2;
    print.none = opd_value_none();
    const opdi_gtype *const result = graph->result ? opdi_emit_type(graph->result) : opdi_gtype_simple(OPDI_GTYPE_NONE);
    const opdi_gtype *const said = function->result ? function->result : result;
    opdi_string_add(code, "  def ");
    opdi_string_add(code, as);
    if (!said || opdi_script_print_formals(&print, self)) { return -1; }
    opdi_string_add(code, " -> ");
    if (opdi_script_print_type(&print, said)) { return -1; }
    opdi_string_add(code, ":");
    if (strcmp(as, function->name) != 0) { return opdi_script_print_same(&print); }
    if (opdi_script_print_block(&print, &graph->body)) { return -1; }
    opdi_string_add(code, "\n    return ");
    if (graph->result
        ? opdi_script_print_as(&print, graph->result, said) : opdi_script_print_constant(&print, &print.none)) {
        return -1;
    }
    opdi_string_add(code, "\n");
    return code->failed ? -1 : 0;
}
/* Writes the members of an enum, or the fields of a class.  Returns 0, or -1 and sets an error. */
static int opdi_script_print_fields(opdi_script_printer *print, const opdi_script_class *klass) {
    const opdi_gclass *const gclass = klass->gclass;
    for (int32_t i = 0; i < klass->nmembers; i++) {
        const opdi_cell *const member = opdi_cell_of(&klass->members[i]);
        opdi_script_print(print, "  ");
        opdi_script_print(print, opdi_cell_of(&member->u.values[0])->u.text);
        opdi_script_print(print, " = ");
        if (opdi_script_print_constant(print, &member->u.values[1])) { return -1; }
        opdi_script_print(print, "\n");
    }
    for (int32_t i = 0; gclass->kind != OPDI_CLASS_ENUM && i < gclass->nattributes; i++) {
        opdi_script_print(print, "  ");
        opdi_script_print(print, gclass->attributes[i].name);
        opdi_script_print(print, " : ");
        if (opdi_script_print_type(print, gclass->attributes[i].type)) { return -1; }
        opdi_script_print(print, "\n");
    }
    return 0;
}
/* Writes the list of a module's parameters (`list` is "__parameters__") or buffers ("__buffers__"). */
static void opdi_script_print_list(opdi_script_printer *print, const opdi_script_class *klass, const char *list) {
    opdi_script_print(print, "  ");
    opdi_script_print(print, list);
    opdi_script_print(print, " = [");
    for (int32_t i = 0; i < klass->gclass->nattributes; i++) {
        const opdi_gattribute *const attribute = &klass->gclass->attributes[i];
        if (attribute->type->kind != OPDI_GTYPE_TENSOR || !opdi_script_class_lists(klass, list, attribute->name)) {
            continue;
        }
        opdi_script_print_quoted(print, attribute->name, (int64_t)strlen(attribute->name));
        opdi_script_print(print, ", ");
    }
    opdi_script_print(print, "]\n");
}
/* Writes a class with its methods.  Leaves out a method that cannot be compiled by itself, because it is inlined in the
   functions that call it.  Returns 0, or -1 and sets an error. */
static int opdi_script_print_class(const opd_script *script, opdi_script_class *klass, opdi_string *code) {
    const opdi_gclass_kind kind = klass->gclass->kind;
    const bool module = opd_value_cell(script->self) == OPD_CELL_OBJECT;
    opdi_script_printer print;
    memset(&print, 0, sizeof print);
    print.code = code;
    print.who = "opd_script_save";
    print.script = script;
    if (kind == OPDI_CLASS_INTERFACE) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_script_save: %s is an interface, which cannot be saved: use a class "
                        "as the type of the parameter", klass->def->word);
    }
    opdi_string_add(code, "class ");
    opdi_string_add(code, klass->def->word);
    opdi_string_add(code, kind == OPDI_CLASS_ENUM ? "(Enum):\n" : kind == OPDI_CLASS_NAMEDTUPLE ? "(NamedTuple):\n"
                    : kind == OPDI_CLASS_MODULE && module ? "(Module):\n" : ":\n");
    if (kind == OPDI_CLASS_MODULE && module) {
        opdi_script_print_list(&print, klass, "__parameters__");
        opdi_script_print_list(&print, klass, "__buffers__");
    }
    const size_t empty = code->length;
    if (opdi_script_print_fields(&print, klass)) { return -1; }
    const bool object = kind == OPDI_CLASS_OBJECT || kind == OPDI_CLASS_MODULE;
    for (opdi_script_function *method = object ? klass->methods.first : NULL; method; method = method->next) {
        opdi_string text = {NULL, 0, 0, false};
        const int mark = opd_error_mark();
        if (method->def->op != OPDI_METHOD_PLAIN || (module && kind == OPDI_CLASS_MODULE &&
                                                     strcmp(method->name, "__init__") == 0)) { continue; }
        const int rc = opdi_script_print_method(script, method, method->name, klass->gclass->name, &text);
        const bool passes = rc && opdi_error_passes();
        if (rc && !passes) { (void)opd_error_rewind(mark); } /* leaves the method out: where it is called, it is
                                                                inlined */
        if (!rc) { opdi_string_add_n(code, text.data, text.length); }
        opdi_string_free(&text);
        if (passes) { return -1; }
    }
    if (code->length == empty) { opdi_string_add(code, "  pass\n"); }
    return code->failed ? -1 : 0;
}
/* Writes the text of code/__torch__.py: the classes and, if `module` is not NULL, a module with this name whose methods
   are the functions of the script.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_script_code(const opd_script *script, const char *module, opdi_string *code) {
    opdi_script_unit *unit = opdi_script_unit_find((opd_script *)(uintptr_t)script, "__torch__", 9);
    char full[100];
    (void)snprintf(full, sizeof full, "__torch__.%s", module ? module : "");
    if (module) {
        opdi_string_add(code, "class ");
        opdi_string_add(code, module);
        opdi_string_add(code, "(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n");
    }
    for (opdi_script_function *function = unit && module ? unit->functions.first : NULL; function;
         function = function->next) {
        if (opdi_script_print_method(script, function, function->name, full, code)) { return -1; }
        if (!function->next && strcmp(function->name, "forward") != 0 &&
            !opdi_script_function_in(&unit->functions, "forward") &&
            opdi_script_print_method(script, function, "forward", full, code)) { return -1; }
    }
    for (opdi_script_class *klass = unit ? unit->classes : NULL; klass; klass = klass->next) {
        if (!opdi_script_class_resolve((opd_script *)(uintptr_t)script, klass) ||
            opdi_script_print_class(script, klass, code)) {
            return -1;
        }
    }
    return unit && !code->failed ? 0 : -1;
}
//== files of archives =================================================================================================

/* Writes a name for a module to name[cap]; no class of the script has this name. */
static void opdi_script_module_name(const opd_script *script, char *name, size_t cap) {
    char full[100];
    for (int i = 0; i == 0 || opdi_script_class_find((opd_script *)(uintptr_t)script, full); i++) {
        (void)snprintf(name, cap, i ? "PlaceholderModule%d" : "PlaceholderModule", i);
        (void)snprintf(full, sizeof full, "__torch__.%s", name);
    }
}
/* Adds the entries of an archive that has no objects to `zip`: the byte order, the code, no constants, and the version.
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_script_entries(const opdi_string *code, opdi_zip_writer *zip) {
    return opdi_zip_add(zip, "archive/byteorder", opdi_big_endian() ? "big" : "little", opdi_big_endian() ? 3 : 6) ||
        opdi_zip_add(zip, "archive/code/__torch__.py", code->data, code->length) ||
        opdi_zip_add(zip, "archive/constants.pkl", "\x80\x02).", 4) ||
        opdi_zip_add(zip, "archive/version", "10\n", 3) ? -1 : 0;
}
/* Writes a script that has only functions as an archive to the file `path`.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_script_save_functions(const opd_script *script, const char *path) {
    static const char state[] = "q\0)\x81}(" "X\x08\0\0\0trainingq\x01\x88ubq\x02.";
    opdi_string code = {NULL, 0, 0, false}, data = {NULL, 0, 0, false};
    opdi_sink sink;
    char module[60];
    opdi_script_module_name(script, module, sizeof module);
    opdi_string_add(&data, "\x80\x02" "c__torch__\n");
    opdi_string_add(&data, module);
    opdi_string_add(&data, "\n");
    opdi_string_add_n(&data, state, sizeof state - 1);
    int rc = data.failed ? -1 : opdi_script_code(script, module, &code);
    if (rc == 0 && (rc = opdi_sink_open(&sink, "opd_script_save", path)) == 0) {
        opdi_zip_writer zip;
        opdi_zip_writer_init(&zip, &sink);
        rc = opdi_zip_add(&zip, "archive/data.pkl", data.data, data.length) ||
            opdi_script_entries(&code, &zip) ? -1 : 0;
        rc = opdi_zip_close(&zip, rc);
        rc = opdi_sink_close(&sink, rc);
    }
    opdi_string_free(&code);
    opdi_string_free(&data);
    return rc;
}
