#include "programs.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>exporting    saving graphs as exported programs
//
//  A traced graph is written as a program.  The first inputs of the program are the tensors of the module; constants of
//  the graph become inputs, too.  The name of a value has the number that opdi_pointer_set gives to the value, such as
//  v0 or v1.  This section uses modules and the writer of zip files.
//----------------------------------------------------------------------------------------------------------------------

/* A tensor that is to be written.  Tensors that share bytes are written as one entry of the file. */
typedef struct opdi_program_item {
    const char *name;
    opd_tensor *tensor;
    opd_module_kind kind;
    const opdi_storage *storage;
    const char *begin, *end;     /* its bytes; if several tensors share bytes, the first of them has the bytes of all */
    struct opdi_program_item *first;              /* if several tensors share bytes, the first of them */
    int64_t number;              /* the number of its entry; set only in the first of the tensors that share bytes */
} opdi_program_item;

/* A size that depends on open sizes: factor * base + rest, where base is open size number `first`, or its product or
   sum with open size number `with`.  with: -1 if there is none.  first: -1 for a size that does not vary. */
typedef struct opdi_dynamic_form { int first, with; bool sum; int64_t factor, rest; } opdi_dynamic_form;

OPD_PRINTF_LIKE(2, 3) OPDI_INTERNAL void opdi_json_print(opdi_string *to, const char *format, ...) {
    char text[600];
    va_list ap;
    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    opdi_string_add(to, text);
}
/* Appends a comma unless `to` is empty. */
OPDI_INTERNAL void opdi_json_comma(opdi_string *to) { if (to->length) { opdi_string_add(to, ", "); } }
static void opdi_json_put_float(opdi_string *to, double number) {
    char text[40];
    if (!(number - number <= 0)) {                /* infinite or NaN */
        opdi_string_add(to, number > 0 ? "\"Infinity\"" : number < 0 ? "\"-Infinity\"" : "\"NaN\"");
        return;
    }
    (void)snprintf(text, sizeof text, "%.17g", number);
    for (char *at = text; *at; at++) { if (*at == ',') { *at = '.'; } }
    opdi_json_print(to, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}
/* Returns the number of a value, or -1 if memory runs out. */
OPDI_INTERNAL int64_t opdi_program_number(opdi_program_writer *writer, const void *value) {
    return opdi_pointer_set_add(&writer->values, (uintptr_t)value);
}
/* Returns the value of the second trace that corresponds to `value`, a value of the first trace; NULL if there is
   none. */
static const opdi_gvalue *opdi_program_pair(opdi_program_writer *writer, const opdi_gvalue *value) {
    const int64_t number = writer->other ? opdi_program_number(writer, value) : -1;
    return number >= 0 && number < writer->npairs ? writer->pairs[number] : NULL;
}
//== open sizes ========================================================================================================

static int64_t opdi_dynamic_base(const opdi_program_writer *writer, const opdi_dynamic_form *form, bool second) {
    const opdi_dynamic_size *const one = &writer->open[form->first];
    const opdi_dynamic_size *const two = &writer->open[OPDI_MAX(form->with, 0)];
    const int64_t size = second ? one->second : one->size, other = second ? two->second : two->size;
    return form->with < 0 ? size : form->sum ? size + other : size * other;
}
/* Finds the factor or the rest with which a size depends on the base of a form.  (Two traces are not enough to find
   both.) Returns false if there is none. */
static bool opdi_dynamic_fits(const opdi_program_writer *writer, int64_t size, int64_t second,
                              opdi_dynamic_form *form) {
    const int64_t base = opdi_dynamic_base(writer, form, false), other = opdi_dynamic_base(writer, form, true);
    const bool times = base && other && size % base == 0 && second % other == 0 && size / base == second / other;
    form->factor = times ? size / base : 1;
    form->rest = times ? 0 : size - base;
    return times || (form->with < 0 && second - other == form->rest);
}
/* Finds the form of a size, which is `size` in the first trace and `second` in the second.  Returns how many forms it
   has; *form is the first of them. */
static int opdi_dynamic_forms(const opdi_program_writer *writer, int64_t size, int64_t second,
                              opdi_dynamic_form *form) {
    int found = 0;
    for (int i = 0; i < writer->nopen; i++) {
        for (int k = -1; k < writer->nopen; k++) {
            for (int sum = 0; sum < (k < 0 ? 1 : 2); sum++) {
                opdi_dynamic_form next = {i, k, sum != 0, 1, 0};
                if ((k >= 0 && k < i + sum) || !opdi_dynamic_fits(writer, size, second, &next)) { continue; }
                if (found++ == 0) { *form = next; }
            }
        }
    }
    return found;
}
/* Sets *form to the form of a size.  Returns 0, or -1 and sets an error. */
static int opdi_dynamic_find(const opdi_program_writer *writer, int64_t size, int64_t second, opdi_dynamic_form *form) {
    form->first = -1;
    if (size == second) { return 0; }
    const int found = opdi_dynamic_forms(writer, size, second, form);
    if (found == 1) { return 0; }
    return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save_open: a size is %lld in one trace and %lld in the other%s",
                    (long long)size, (long long)second, found ? ", and depends on the open sizes in more than one way: "
                    "trace with other sizes" : ": it must be an open size plus a constant, or a multiple of an open "
                    "size, or of the product or the sum of two");
}
/* Appends an expression in the notation of sympy (a library of Python), where s0, s1 ... are the open sizes. */
static void opdi_dynamic_put(opdi_string *to, const opdi_dynamic_form *form) {
    static const char symbol[] = "Symbol('s%d', positive=True, integer=True)%s";
    if (form->rest) { opdi_string_add(to, "Add("); }
    if (form->factor != 1) { opdi_json_print(to, "Mul(Integer(%lld), ", (long long)form->factor); }
    if (form->with >= 0) { opdi_string_add(to, form->sum ? "Add(" : form->with == form->first ? "Pow(" : "Mul("); }
    opdi_json_print(to, symbol, form->first, form->with >= 0 ? ", " : "");
    if (form->with >= 0 && (form->sum || form->with != form->first)) { opdi_json_print(to, symbol, form->with, ")"); }
    else if (form->with >= 0) { opdi_string_add(to, "Integer(2))"); }
    if (form->factor != 1) { opdi_string_add(to, ")"); }
    if (form->rest) { opdi_json_print(to, ", Integer(%lld))", (long long)form->rest); }
}
/* Appends a size to `to`; `second` is its value in the second trace.  Returns 0, or -1 and sets an error. */
static int opdi_program_put_size(opdi_program_writer *writer, opdi_string *to, int64_t size, int64_t second) {
    opdi_dynamic_form form;
    if (opdi_dynamic_find(writer, size, second, &form)) { return -1; }
    if (form.first < 0) {
        opdi_json_print(to, "{\"as_int\": %lld}", (long long)size);
        return 0;
    }
    opdi_string_add(to, "{\"as_expr\": {\"expr_str\": \"");
    opdi_dynamic_put(to, &form);
    opdi_json_print(to, "\", \"hint\": {\"as_int\": %lld}}}", (long long)size);
    return 0;
}
/* Appends stride i of a tensor.  dims[2 * ndim] has its sizes and strides, second[] the same of the second trace.
   The stride of a dense tensor is the product of the sizes of the dims inside of dim i.  Returns 0, or -1 and sets an
   error. */
static int opdi_program_put_stride(opdi_program_writer *writer, opdi_string *to, const int64_t *dims,
                                   const int64_t *second, int ndim, int i) {
    const int64_t *const strides = dims + ndim, *const others = second + ndim;
    int64_t product = 1, other = 1;
    int inside[OPD_MAX_DIMS], count = 0;
    for (int k = 0; k < ndim; k++) {
        if (k == i || strides[k] > strides[i] || (strides[k] == strides[i] && k < i) || dims[k] == 1) { continue; }
        inside[count++] = k;
        product *= dims[k];
        other *= second[k];
    }
    if (strides[i] == others[i] || count < 2 || product != strides[i] || other != others[i]) {
        return opdi_program_put_size(writer, to, strides[i], others[i]);
    }
    opdi_string_add(to, "{\"as_expr\": {\"expr_str\": \"Mul(");
    for (int k = 0; k < count; k++) {
        const int at = inside[k];
        opdi_dynamic_form form;
        if (opdi_dynamic_find(writer, dims[at], second[at], &form)) { return -1; }
        if (k) { opdi_string_add(to, ", "); }
        if (form.first < 0) { opdi_json_print(to, "Integer(%lld)", (long long)dims[at]); }
        else { opdi_dynamic_put(to, &form); }
    }
    opdi_json_print(to, ")\", \"hint\": {\"as_int\": %lld}}}", (long long)strides[i]);
    return 0;
}
/* Appends a node to writer->heads that applies the function `target`, such as "_operator.mul", to two arguments in
   JSON.  The result is named `to` and has the form `form`.  Does nothing if the program has this result already. */
static void opdi_program_put_step(opdi_program_writer *writer, const char *target, const char *one, const char *two,
                                  const char *to, const opdi_dynamic_form *form) {
    char quoted[100];
    const bool operation = *target == '_';
    (void)snprintf(quoted, sizeof quoted, "\"%.90s\": {", to);
    if (strstr(writer->symbols.data ? writer->symbols.data : "", quoted)) { return; }
    opdi_json_comma(&writer->heads);
    opdi_json_print(&writer->heads, "{\"target\": \"%s\", \"inputs\": [{\"name\": \"%s\", \"arg\": %s, \"kind\": 1}, "
                    "{\"name\": \"%s\", \"arg\": %s, \"kind\": 1}], \"outputs\": [{\"as_sym_int\": {\"as_name\": "
                    "\"%s\"}}], \"metadata\": {}, \"is_hop_single_tensor_return\": null, \"name\": null}", target,
                    operation ? "a" : "self", one, operation ? "b" : "dim", two, to);
    opdi_json_comma(&writer->symbols);
    opdi_json_print(&writer->symbols, "%s\"as_expr\": {\"expr_str\": \"", quoted);
    opdi_dynamic_put(&writer->symbols, form);
    opdi_json_print(&writer->symbols, "\", \"hint\": {\"as_int\": %lld}}}",
                    (long long)(form->factor * opdi_dynamic_base(writer, form, false) + form->rest));
}
/* Writes the JSON text of an argument to `text`: the result with a name, or an integer. */
static void opdi_dynamic_named(char text[120], const char *name) {
    (void)snprintf(text, 120, "{\"as_sym_int\": {\"as_name\": \"%.80s\"}}", name);
}
static void opdi_dynamic_number(char text[120], int64_t number) {
    (void)snprintf(text, 120, "{\"as_int\": %lld}", (long long)number);
}
/* Sets `name` to the name of the result with a form.  Adds the nodes that compute it to the beginning of the program.
   */
static void opdi_program_open_name(opdi_program_writer *writer, const opdi_dynamic_form *form, char name[80]) {
    char names[2][24], one[120], two[120];
    opdi_dynamic_form part = *form;
    const int bases[2] = {form->first, form->with};
    part.factor = 1;
    part.rest = 0;
    for (int i = 0; i < 2 && bases[i] >= 0; i++) {
        const opdi_dynamic_form base = {bases[i], -1, false, 1, 0};
        const opdi_dynamic_size *const open = &writer->open[bases[i]];
        (void)snprintf(names[i], sizeof names[i], "open_size_%d", bases[i]);
        (void)snprintf(one, sizeof one, "{\"as_tensor\": {\"name\": \"v%lld\"}}",
                       (long long)opdi_program_number(writer, writer->graph->inputs[open->input]));
        opdi_dynamic_number(two, open->dim);
        opdi_program_put_step(writer, "torch.ops.aten.sym_size.int", one, two, names[i], &base);
    }
    (void)snprintf(name, 80, "%s", names[0]);
    if (form->with >= 0) {
        (void)snprintf(name, 80, "%s_%s_%s", names[0], form->sum ? "plus" : "times", names[1]);
        opdi_dynamic_named(one, names[0]);
        opdi_dynamic_named(two, names[1]);
        opdi_program_put_step(writer, form->sum ? "_operator.add" : "_operator.mul", one, two, name, &part);
    }
    for (int i = 0; i < 2; i++) {
        const int64_t number = i ? form->rest : form->factor;
        if (number == !i) { continue; }
        opdi_dynamic_named(one, name);
        opdi_dynamic_number(two, number);
        part.factor = form->factor;
        part.rest = i ? number : 0;
        const size_t length = strlen(name);
        (void)snprintf(name + length, 80 - length, i ? "_and_%lld" : "_by_%lld", (long long)number);
        opdi_program_put_step(writer, i ? "_operator.add" : "_operator.mul", one, two, name, &part);
    }
}

//== graphs with open sizes ============================================================================================
//
//  The nodes that compute numbers from open sizes are written as nodes of the program.  A size T that is a multiple of
//  4 is written as Mul(Integer(4), Symbol('T__by_4', ...)), because the format has only ranges.

/* Appends an expression in the notation of sympy.  Returns 0, or -1 and sets an error. */
static int opdi_program_put_expr(opdi_program_writer *writer, opdi_string *to, const opdi_gexpr *expr) {
    static const char *const words[] = {"", "", "Add(", "Mul(", "FloorDiv("};
    const opdi_gsize *const size = &writer->graph->sizes->names[expr->name];
    if (opdi_stack_is_short("opd_program_save", OPDI_STACK_CALL)) { return -1; }
    if (expr->kind == OPDI_GEXPR_NUMBER) { opdi_json_print(to, "Integer(%lld)", (long long)expr->number); }
    else if (expr->kind == OPDI_GEXPR_NAME) {
        const char *const rest = size->least > 0 ? "positive=True, integer=True)" : "integer=True)";
        if (size->step == 1) { opdi_json_print(to, "Symbol('%.60s', %s", size->name, rest); }
        else {
            opdi_json_print(to, "Mul(Integer(%lld), Symbol('%.60s__by_%lld', %s)", (long long)size->step, size->name,
                            (long long)size->step, rest);
        }
    } else if (expr->kind == OPDI_GEXPR_UNKNOWN) { opdi_string_add(to, "Integer(1)"); }
    else {
        const bool square = expr->kind == OPDI_GEXPR_MUL && expr->args[0] == expr->args[1];
        opdi_string_add(to, square ? "Pow(" : words[expr->kind]);
        if (opdi_program_put_expr(writer, to, expr->args[0])) { return -1; }
        opdi_string_add(to, square ? ", Integer(2" : ", ");
        if (!square && opdi_program_put_expr(writer, to, expr->args[1])) { return -1; }
        opdi_string_add(to, square ? "))" : ")");
    }
    return to->failed ? -1 : 0;
}
/* Returns whether an expression has the name of a size that depends on data. */
static bool opdi_program_by_data(const opd_graph *graph, const opdi_gexpr *expr) {
    const uint32_t names = opdi_gexpr_names(expr);
    for (int32_t i = 0; names >> i; i++) { if (names >> i & 1 && !opdi_gsize_follows(graph, i)) { return true; } }
    return false;
}
/* Appends a size or stride that is an expression, or the number `size` if it is not known.  Returns 0, or -1 and sets
   an error. */
static int opdi_program_put_open(opdi_program_writer *writer, opdi_string *to, const opdi_gexpr *expr, int64_t size) {
    if (expr->kind == OPDI_GEXPR_UNKNOWN) {
        opdi_json_print(to, "{\"as_int\": %lld}", (long long)size);
        return 0;
    }
    opdi_string_add(to, "{\"as_expr\": {\"expr_str\": \"");
    if (opdi_program_put_expr(writer, to, expr)) { return -1; }
    if (opdi_program_by_data(writer->graph, expr)) { opdi_string_add(to, "\", \"hint\": null}}"); }
    else { opdi_json_print(to, "\", \"hint\": {\"as_int\": %lld}}}", (long long)size); }
    return 0;
}
/* Appends the argument that is a number which a node computes. */
static void opdi_program_put_computed(opdi_program_writer *writer, opdi_string *to, const opdi_gvalue *value) {
    opdi_json_print(to, "{\"as_sym_%s\": {\"as_name\": \"v%lld\"}}", value->tag == OPD_TAG_INT ? "int" : "float",
                    (long long)opdi_program_number(writer, value));
}
/* Appends the result of a node that computes a number, and adds its description.  Returns 0, or -1 and sets an error.
   */
static int opdi_program_put_number_result(opdi_program_writer *writer, const opdi_gvalue *value) {
    opdi_string *const to = &writer->symbols;
    int64_t hint = 0;
    if (value->tag != OPD_TAG_INT || !value->open || !writer->graph->sizes) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save: %s computes a number that is no expression of open "
            "sizes", value->node->op ? value->node->op->name : "a node");
    }
    opdi_program_put_computed(writer, &writer->nodes, value);
    (void)opdi_gexpr_value(value->open[0], writer->examples, ~0u, &hint);
    opdi_json_comma(to);
    opdi_json_print(to, "\"v%lld\": ", (long long)opdi_program_number(writer, value));
    return opdi_program_put_open(writer, to, value->open[0], hint);
}
/* Appends the description of a float that is computed from an open size.  Returns 0, or -1 and sets an error. */
static int opdi_program_put_float_result(opdi_program_writer *writer, const opdi_gvalue *value) {
    const opdi_gnode *const node = value->node, *const of = node->nin == 2 ? node->in[1]->node : node;
    const opdi_gexpr *const expr = of->in[0]->open ? of->in[0]->open[0] : NULL;
    opdi_string *const to = &writer->floats;
    int64_t number = 0;
    if (!expr || of->nin != 1) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save: a float is computed from sizes in an unknown way");
    }
    (void)opdi_gexpr_value(expr, writer->examples, ~0u, &number);
    const bool root = strncmp(of->builtin->schema, "aten::sqrt", 10) == 0;
    const bool divided = node->nin == 2 && strncmp(node->builtin->schema, "aten::div", 9) == 0;
    const double factor = node->nin == 2 ? node->in[0]->node->constant.u.d : 1;
    const double one = root ? sqrt((double)number) : (double)number, hint = divided ? factor / one : factor * one;
    opdi_program_put_computed(writer, &writer->nodes, value);
    opdi_json_comma(to);
    opdi_json_print(to, "\"v%lld\": {\"as_expr\": {\"expr_str\": \"", (long long)opdi_program_number(writer, value));
    if (node->nin == 2) {
        opdi_json_print(to, divided ? "FloatTrueDiv(Float('%.17g')," : "Mul(Float('%.17g'),", factor);
    }
    opdi_string_add(to, root ? " OpaqueUnaryFn_sqrt(" : " ToFloat(");
    if (opdi_program_put_expr(writer, to, expr)) { return -1; }
    opdi_json_print(to, "%s\", \"hint\": {\"as_float\": ", node->nin == 2 ? "))" : ")");
    opdi_json_put_float(to, hint);
    opdi_string_add(to, "}}}");
    return to->failed ? -1 : 0;
}
/* Appends a node that computes a number from other numbers.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_program_put_builtin(opdi_program_writer *writer, const opdi_gnode *node) {
    static const struct { const char *schema, *target; } rows[] = {
        {"aten::add.int(", "_operator.add"}, {"aten::sub.int(", "_operator.sub"}, {"aten::mul.int(", "_operator.mul"},
        {"aten::floordiv.int(", "_operator.floordiv"}, {"aten::Float.int(", "torch.sym_float"},
        {"aten::sqrt.int(", "torch._sym_sqrt"}, {"aten::div.float(", "_operator.truediv"},
        {"aten::mul.float(", "_operator.mul"}};
    opdi_string *const to = &writer->nodes;
    size_t row = 0;
    while (row < 8 && (!node->builtin || strncmp(node->builtin->schema, rows[row].schema, strlen(rows[row].schema)))) {
        row++;
    }
    if (row == 8 || !writer->graph->sizes) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save: a graph with conditions, loops or functions cannot be "
                        "saved");
    }
    opdi_json_comma(to);
    opdi_json_print(to, "{\"target\": \"%s\", \"inputs\": [", rows[row].target);
    for (int32_t i = 0; i < node->nin; i++) {
        const opdi_gvalue *const value = node->in[i];
        opdi_json_print(to, "%s{\"name\": \"%s\", \"arg\": ", i ? ", " : "", i ? "b" : "a");
        if (!value->node || value->node->kind != OPDI_GNODE_CONSTANT) { opdi_program_put_computed(writer, to, value); }
        else if (value->tag == OPD_TAG_INT) {
            opdi_json_print(to, "{\"as_int\": %lld}", (long long)value->node->constant.u.i);
        } else {
            opdi_string_add(to, "{\"as_float\": ");
            opdi_json_put_float(to, value->node->constant.u.d);
            opdi_string_add(to, "}");
        }
        opdi_string_add(to, ", \"kind\": 1}");
    }
    opdi_string_add(to, "], \"outputs\": [");
    if (row < 4 ? opdi_program_put_number_result(writer, node->out[0])
        : opdi_program_put_float_result(writer, node->out[0])) { return -1; }
    opdi_string_add(to, "], \"metadata\": {}, \"is_hop_single_tensor_return\": null, \"name\": null}");
    return to->failed ? -1 : 0;
}
/* Appends the ranges of the open sizes. */
static void opdi_program_put_ranges(const opdi_program_writer *writer, opdi_string *to) {
    const opdi_gsizes *const sizes = writer->graph->sizes;
    bool any = false;
    for (int i = 0; i < writer->nopen; i++) {
        opdi_json_print(to, "%s\"s%d\": {\"min_val\": 2, \"max_val\": null}", i ? ", " : "", i);
    }
    for (int32_t i = 0; sizes && i < sizes->count; i++) {
        const opdi_gsize *const size = &sizes->names[i];
        char by[40] = "";
        if (size->step > 1) { (void)snprintf(by, sizeof by, "__by_%lld", (long long)size->step); }
        opdi_json_print(to, "%s\"%.60s%s\": {\"min_val\": %lld, \"max_val\": ", any ? ", " : "", size->name, by,
                        (long long)((size->least + size->step - 1) / size->step));
        if (size->most == OPDI_OPEN_MOST) { opdi_string_add(to, "null}"); }
        else { opdi_json_print(to, "%lld}", (long long)(size->most / size->step)); }
        any = true;
    }
}

//== nodes =============================================================================================================

/* Appends an integer argument to the text of the nodes.  If `whole` is true, the integer is a whole argument; otherwise
   it is an element of a list.  Returns 0, or -1 and sets an error. */
static int opdi_program_put_int(opdi_program_writer *writer, const opdi_gvalue *value, bool whole) {
    const opdi_gvalue *const other = opdi_program_pair(writer, value);
    const int64_t size = value->node->constant.u.i, second = other ? other->node->constant.u.i : size;
    opdi_dynamic_form form;
    char name[80];
    if (opdi_dynamic_find(writer, size, second, &form)) { return -1; }
    if (form.first < 0) {
        opdi_json_print(&writer->nodes, "{\"as_int\": %lld}", (long long)size);
        return 0;
    }
    opdi_program_open_name(writer, &form, name);
    opdi_json_print(&writer->nodes, whole ? "{\"as_sym_int\": {\"as_name\": \"%s\"}}" : "{\"as_name\": \"%s\"}", name);
    return 0;
}
/* Returns whether a value is an integer constant that is different in the second trace. */
static bool opdi_program_is_open(opdi_program_writer *writer, const opdi_gvalue *value) {
    const opdi_gvalue *const other = opdi_program_pair(writer, value);
    return other && value->node && value->node->kind == OPDI_GNODE_CONSTANT &&
        value->node->constant.tag == OPD_TAG_INT &&
        value->node->constant.u.i != other->node->constant.u.i;
}
static void opdi_program_put_name(opdi_program_writer *writer, opdi_string *to, const opdi_gvalue *value) {
    opdi_json_print(to, "{\"as_tensor\": {\"name\": \"v%lld\"}}", (long long)opdi_program_number(writer, value));
}
static int opdi_program_file_dtype(int dtype) {
    for (int number = 1; number <= 35; number++) {
        if (dtype >= 0 && (int)opdi_program_dtype(number) == dtype) { return number; }
    }
    return 0;
}
/* Appends a device to `to`, such as {"type": "cpu", "index": null}. */
static void opdi_program_put_device(opdi_string *to, opd_device device) {
    char text[40];
    opdi_json_print(to, "{\"type\": \"%.*s\", \"index\": ",
                    (int)strcspn(opdi_device_text(device, text, sizeof text), ":"), text);
    if (device.index < 0) { opdi_string_add(to, "null}"); }
    else { opdi_json_print(to, "%d}", (int)device.index); }
}
/* Appends the description of a tensor to `to`, such as {"dtype": 7, "sizes": [..], ...}.  `dims` has the sizes and then
   the strides of the tensor; `second` has the same numbers for the second trace.  Returns 0, or -1 and sets an
   error. */
OPDI_INTERNAL int opdi_program_put_meta(opdi_program_writer *writer, opdi_string *to, int dtype, const int64_t *dims,
                                 const int64_t *second, int ndim, bool requires_grad, opd_device device,
                                 int64_t offset) {
    const opdi_gexpr *const *const open = writer->described && writer->graph->sizes ? writer->described->open : NULL;
    opdi_json_print(to, "{\"dtype\": %d, \"sizes\": [", opdi_program_file_dtype(dtype));
    for (int i = 0; i < ndim; i++) {
        const opdi_gexpr *const expr = open ? open[i] : NULL;
        if (i) { opdi_string_add(to, ", "); }
        if (expr ? opdi_program_put_open(writer, to, expr, dims[i])
            : opdi_program_put_size(writer, to, dims[i], second[i])) { return -1; }
    }
    opdi_json_print(to, "], \"requires_grad\": %s, \"device\": ", requires_grad ? "true" : "false");
    opdi_program_put_device(to, device);
    opdi_string_add(to, ", \"strides\": [");
    for (int i = ndim; i < 2 * ndim; i++) {
        const opdi_gexpr *const expr = open ? open[i] : NULL;
        if (i > ndim) { opdi_string_add(to, ", "); }
        if (expr ? opdi_program_put_open(writer, to, expr, dims[i])
            : opdi_program_put_stride(writer, to, dims, second, ndim, i - ndim)) { return -1; }
    }
    opdi_json_print(to, "], \"storage_offset\": {\"as_int\": %lld}, \"layout\": 7}", (long long)offset);
    return to->failed ? -1 : 0;
}
OPDI_INTERNAL bool opdi_program_describe(const opdi_gvalue *value, opdi_program_form *form);
OPDI_INTERNAL int opdi_program_refuse(const opdi_gnode *node, const char *why);
/* Adds the description of a tensor value to "tensor_values", the descriptions of the graph's tensors.  Returns 0, or -1
   and sets an error. */
OPDI_INTERNAL int opdi_program_put_value(opdi_program_writer *writer, const opdi_gvalue *value) {
    opdi_program_form form;
    if (!opdi_program_describe(value, &form) || !opdi_program_file_dtype(form.dtype)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save: the sizes of a value are not known: make the graph with "
                        "opd_graph_trace");
    }
    opdi_json_comma(&writer->metas);
    opdi_json_print(&writer->metas, "\"v%lld\": ", (long long)opdi_program_number(writer, value));
    const opdi_gvalue *const other = opdi_program_pair(writer, value);
    if (other && (other->dtype != value->dtype || other->ndim != value->ndim)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save_open: a value has another dtype or number of dims in the "
                        "second trace: the traces may differ only in sizes");
    }
    writer->described = value;
    const int rc = opdi_program_put_meta(writer, &writer->metas, form.dtype, form.dims, other ? other->dims : form.dims,
                                         form.ndim, value->requires_grad, writer->device, 0);
    writer->described = NULL;
    return rc;
}
/* Appends a constant number to `to`, in the form that arguments of type `type` have. */
static void opdi_program_put_number(opdi_string *to, const opdi_type *type, const opd_value *value) {
    static const char *const words[] = {"ScalarType", "Layout", "MemoryFormat"};
    static const char *const kinds[] = {"as_scalar_type", "as_layout", "as_memory_format"};
    static const int8_t layouts[] = {7, 1, 2, 6, 3, 4, 5}, formats[] = {1, 4, 2, 3};
    const char *const word = type->word ? type->word : "";
    int k = 0;
    while (k < 3 && strcmp(words[k], word) != 0) { k++; }
    if (value->tag == OPD_TAG_INT && k < 3) {
        const int64_t number = k == 0 ? opdi_program_file_dtype((int)value->u.i)
            : k == 1 ? layouts[value->u.i % 7] : formats[value->u.i % 4];
        opdi_json_print(to, "{\"%s\": %lld}", kinds[k], (long long)number);
    } else if (value->tag == OPD_TAG_BOOL || (value->tag == OPD_TAG_INT && type->kind == OPDI_TYPE_BOOL)) {
        opdi_json_print(to, "{\"as_bool\": %s}", value->u.i ? "true" : "false");
    } else if (value->tag == OPD_TAG_INT && type->kind != OPDI_TYPE_FLOAT) {
        opdi_json_print(to, "{\"as_int\": %lld}", (long long)value->u.i);
    } else {
        opdi_string_add(to, "{\"as_float\": ");
        opdi_json_put_float(to, value->tag == OPD_TAG_FLOAT ? value->u.d : (double)value->u.i);
        opdi_string_add(to, "}");
    }
}
/* Appends a constant that is not a list to the text of the nodes.  Returns 0, or -1 and sets an error. */
static int opdi_program_put_constant(opdi_program_writer *writer, const opdi_type *type, const opdi_gvalue *value) {
    opdi_string *const to = &writer->nodes;
    const opd_value *const constant = &value->node->constant;
    if (opdi_program_is_open(writer, value)) { return opdi_program_put_int(writer, value, true); }
    switch (constant->tag) {
    case OPD_TAG_NONE: opdi_string_add(to, "{\"as_none\": true}"); break;
    case OPD_TAG_INT: case OPD_TAG_FLOAT: case OPD_TAG_BOOL: opdi_program_put_number(to, type, constant); break;
    case OPD_TAG_STR:
        opdi_string_add(to, "{\"as_string\": ");
        opdi_json_put(to, constant->u.s);
        opdi_string_add(to, "}");
        break;
    case OPD_TAG_DEVICE:
        opdi_string_add(to, "{\"as_device\": ");
        opdi_program_put_device(to, constant->u.device);
        opdi_string_add(to, "}");
        break;
    case OPD_TAG_TENSOR:
        if (constant->u.t->flags & OPDI_WRAPPED) {
            const bool floating = opd_dtype_is_floating((opd_scalar_type)constant->u.t->dtype);
            const opd_value number = floating ? opd_value_double(opdi_element_f64(constant->u.t, 0))
                : constant->u.t->dtype == OPD_BOOL ? opd_value_bool(opdi_element_i64(constant->u.t, 0) != 0)
                : opd_value_int(opdi_element_i64(constant->u.t, 0));
            opdi_program_put_number(to, type, &number);
            break;
        }
        opdi_program_put_name(writer, to, value);
        break;
    default: return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save: the graph has a constant of a type that the format "
                             "does not have");
    }
    return to->failed ? -1 : 0;
}
/* Appends a list argument to the text of the nodes.  Returns 0, or -1 and sets an error. */
static int opdi_program_put_list(opdi_program_writer *writer, const opdi_type *type, const opdi_gnode *list) {
    opdi_string *const to = &writer->nodes;
    const opdi_type *const element = type->kind == OPDI_TYPE_LIST ? opdi_strip_optional(type->elems[0]) : type;
    const bool tensors = element->kind == OPDI_TYPE_TENSOR;
    bool optional = false, floats = element->kind == OPDI_TYPE_FLOAT, open = false;
    for (int32_t i = 0; i < list->nin; i++) {
        const opdi_gnode *const node = list->in[i]->node;
        open = open || opdi_program_is_open(writer, list->in[i]);
        const bool constant = node && node->kind == OPDI_GNODE_CONSTANT;
        const bool computed = !constant && list->in[i]->tag == OPD_TAG_INT && writer->graph->sizes;
        open = open || computed;
        if (!constant && !tensors && !computed) {
            return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save: a list of numbers that are not constant cannot be "
                            "saved");
        }
        optional = optional || (constant && node->constant.tag == OPD_TAG_NONE);
        floats = floats || (constant && node->constant.tag == OPD_TAG_FLOAT);
    }
    if (floats && open) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save_open: a list of floats contains an open size: this size "
                        "must be the same in both traces");
    }
    opdi_json_print(to, "{\"%s\": [", tensors ? optional ? "as_optional_tensors" : "as_tensors" : floats ? "as_floats"
                  : element->kind == OPDI_TYPE_BOOL ? "as_bools" : open ? "as_sym_ints" : "as_ints");
    for (int32_t i = 0; i < list->nin; i++) {
        const opdi_gvalue *const value = list->in[i];
        const opd_value *const constant = value->node ? &value->node->constant : NULL;
        if (i) { opdi_string_add(to, ", "); }
        if (tensors && value->tag == OPD_TAG_NONE) { opdi_string_add(to, "{\"as_none\": true}"); }
        else if (tensors) {
            opdi_json_print(to, optional ? "{\"as_tensor\": {\"name\": \"v%lld\"}}" : "{\"name\": \"v%lld\"}",
                          (long long)opdi_program_number(writer, value));
        } else if (floats) {
            opdi_json_put_float(to, constant->tag == OPD_TAG_FLOAT ? constant->u.d : (double)constant->u.i);
        } else if (element->kind == OPDI_TYPE_BOOL) { opdi_string_add(to, constant->u.i ? "true" : "false"); }
        else if (value->node->kind != OPDI_GNODE_CONSTANT) {
            opdi_json_print(to, "{\"as_name\": \"v%lld\"}", (long long)opdi_program_number(writer, value));
        } else if (!open) { opdi_json_print(to, "%lld", (long long)constant->u.i); }
        else if (opdi_program_put_int(writer, value, false)) { return -1; }
    }
    opdi_string_add(to, "]}");
    return to->failed ? -1 : 0;
}
/* Appends the results of a node to the text of the nodes.  If a result is a list, appends its elements, which are the
   results of the node that unpacks the list.  Returns 0, or -1 and sets an error. */
static int opdi_program_put_results(opdi_program_writer *writer, const opdi_gnode *node) {
    opdi_string *const to = &writer->nodes;
    for (int32_t i = 0; i < node->nout; i++) {
        const opdi_gvalue *const value = node->out[i];
        const opdi_gnode *parts = node->next;
        if (i) { opdi_string_add(to, ", "); }
        if (value->tag == OPD_TAG_TENSOR) {
            opdi_program_put_name(writer, to, value);
            if (opdi_program_put_value(writer, value)) { return -1; }
            continue;
        }
        if (value->tag == OPD_TAG_INT && writer->graph->sizes) {
            if (opdi_program_put_number_result(writer, value)) { return -1; }
            continue;
        }
        while (parts && (parts->kind != OPDI_GNODE_UNPACK || parts->in[0] != value)) { parts = parts->next; }
        if (!parts) {
            return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save: %s does not return a tensor", node->op->name);
        }
        opdi_string_add(to, "{\"as_tensors\": [");
        for (int32_t k = 0; k < parts->nout; k++) {
            opdi_json_print(to, "%s{\"name\": \"v%lld\"}", k ? ", " : "",
                          (long long)opdi_program_number(writer, parts->out[k]));
            if (opdi_program_put_value(writer, parts->out[k])) { return -1; }
        }
        opdi_string_add(to, "]}");
    }
    return to->failed ? -1 : 0;
}
/* Appends a node that calls an operator to the text of the nodes.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_program_put_node(opdi_program_writer *writer, const opdi_gnode *node) {
    opdi_string *const to = &writer->nodes;
    const char *const name = node->op->name, *const colons = strstr(name, "::"), *const dot = strchr(colons, '.');
    opdi_json_comma(to);
    opdi_json_print(to, "{\"target\": \"torch.ops.%.*s.%.*s%s\", \"inputs\": [", (int)(colons - name), name,
                  (int)(dot ? (size_t)(dot - colons - 2) : strlen(colons + 2)), colons + 2, dot ? dot : ".default");
    for (int32_t i = 0; i < node->nin; i++) {
        const opdi_gvalue *const value = node->in[i];
        const opdi_type *const type = opdi_strip_optional(node->op->schema->args[i].type);
        opdi_json_print(to, "%s{\"name\": \"%.100s\", \"arg\": ", i ? ", " : "", node->op->schema->args[i].name);
        const int kind = value->node ? (int)value->node->kind : -1;
        if (kind == OPDI_GNODE_CONSTANT ? opdi_program_put_constant(writer, type, value)
            : kind == OPDI_GNODE_LIST ? opdi_program_put_list(writer, type, value->node) : 0) { return -1; }
        const bool number = value->tag == OPD_TAG_INT || value->tag == OPD_TAG_FLOAT;
        if (kind == OPDI_GNODE_CONSTANT || kind == OPDI_GNODE_LIST) { }
        else if (number && writer->graph->sizes) { opdi_program_put_computed(writer, to, value); }
        else if (value->tag != OPD_TAG_TENSOR) {
            return opdi_program_refuse(node, "an argument is computed, but not a tensor");
        } else { opdi_program_put_name(writer, to, value); }
        opdi_string_add(to, ", \"kind\": null}");
    }
    opdi_string_add(to, "], \"outputs\": [");
    if (opdi_program_put_results(writer, node)) { return -1; }
    opdi_string_add(to, "], \"metadata\": {}, \"is_hop_single_tensor_return\": null, \"name\": null}");
    return to->failed ? -1 : 0;
}

//== tensors to be written =============================================================================================

/* Adds a tensor to writer->items, the tensors that are to be written.  Returns 0, or -1 and sets an error. */
static int opdi_program_put_tensor(opdi_program_writer *writer, const char *name, opd_tensor *tensor,
                                   opd_module_kind kind) {
    opdi_program_item item;
    void *data = NULL;
    memset(&item, 0, sizeof item);
    if (opdi_memory_of(tensor, "opd_program_save", &data) || opdi_blocks_refused(tensor, "opd_program_save")) {
        return -1;
    }
    if (!opdi_program_file_dtype(tensor->dtype)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save: '%.200s' has a dtype that the format does not have",
                        name);
    }
    item.name = name;
    item.tensor = tensor;
    item.kind = kind;
    item.storage = opdi_storage_root(tensor);
    item.begin = item.end = (const char *)data;
    if (tensor->numel) {
        item.end += opdi_extent(tensor->dims, tensor->dims + tensor->ndim, tensor->ndim) *
            (int64_t)opd_dtype_size((opd_scalar_type)tensor->dtype);
    }
    item.number = -1;
    opdi_string_add_n(&writer->items, (const char *)(const void *)&item, sizeof item);
    return writer->items.failed ? -1 : 0;
}
/* A comparison function for qsort: orders tensors by kind (weights before constants), storage, dtype and first byte. */
static int opdi_by_memory(const void *first, const void *second) {
    const opdi_program_item *const item = *(const opdi_program_item *const *)first;
    const opdi_program_item *const other = *(const opdi_program_item *const *)second;
    const int constant = item->kind == OPD_MODULE_CONSTANT, its = other->kind == OPD_MODULE_CONSTANT;
    if (constant != its) { return constant - its; }
    if (item->storage != other->storage) { return (uintptr_t)item->storage < (uintptr_t)other->storage ? -1 : 1; }
    if (item->tensor->dtype != other->tensor->dtype) { return item->tensor->dtype < other->tensor->dtype ? -1 : 1; }
    if (item->begin != other->begin) { return (uintptr_t)item->begin < (uintptr_t)other->begin ? -1 : 1; }
    return item < other ? -1 : item > other;
}
/* Finds the tensors that share bytes, gives the entries their numbers, and adds the description of each tensor to
   `configs`.  Returns 0, or -1 and sets an error. */
static int opdi_program_arrange(opdi_program_writer *writer) {
    static const char *const files[] = {"tensor", "weight"};
    opdi_program_item *const items = (opdi_program_item *)(void *)writer->items.data, *lead = NULL;
    const size_t count = writer->items.length / sizeof *items;
    opdi_program_item **const order = (opdi_program_item **)opdi_scope_alloc((count + 1) * sizeof *order);
    if (!order) { return -1; }
    for (size_t i = 0; i < count; i++) { order[i] = &items[i]; }
    if (count) { qsort(order, count, sizeof *order, opdi_by_memory); }
    for (size_t i = 0; i < count; i++) {
        opdi_program_item *const item = order[i];
        const int64_t size = (int64_t)opd_dtype_size((opd_scalar_type)item->tensor->dtype);
        const bool shared = lead && lead->storage == item->storage && lead->tensor->dtype == item->tensor->dtype &&
            (lead->kind == OPD_MODULE_CONSTANT) == (item->kind == OPD_MODULE_CONSTANT) && item->begin < lead->end &&
            item->end > item->begin && (item->begin - lead->begin) % size == 0;
        if (!shared) { lead = item; }
        else if (item->end > lead->end) { lead->end = item->end; }
        item->first = lead;
    }
    for (size_t i = 0; i < count; i++) {
        const opdi_program_item *const item = &items[i];
        const opd_tensor *const tensor = item->tensor;
        const bool weight = item->kind != OPD_MODULE_CONSTANT, parameter = item->kind == OPD_MODULE_PARAMETER;
        const int64_t size = (int64_t)opd_dtype_size((opd_scalar_type)tensor->dtype);
        opdi_string *const to = &writer->configs[!weight];
        if (item->first->number < 0) { item->first->number = writer->numbers[weight]++; }
        opdi_json_comma(to);
        opdi_json_put(to, item->name);
        opdi_json_print(to, ": {\"path_name\": \"%s_%lld\", \"is_param\": %s, \"use_pickle\": false, \"tensor_meta\": ",
                        files[weight], (long long)item->first->number, parameter ? "true" : "false");
        if (opdi_program_put_meta(writer, to, tensor->dtype, tensor->dims, tensor->dims, tensor->ndim,
                                  parameter && opdi_requires_grad(tensor), writer->device,
                                  item->first == item ? 0 : (item->begin - item->first->begin) / size)) { return -1; }
        opdi_string_add(to, "}");
        if (to->failed) { return -1; }
    }
    return 0;
}
/* Writes an entry that has the bytes of a tensor and of all tensors that share bytes with it.  Returns 0, or -1 and
   sets an error. */
static int opdi_program_put_entry(opdi_zip_writer *zip, const opdi_program_item *item) {
    static const char *const paths[] = {"model/data/constants/tensor", "model/data/weights/weight"};
    const int64_t bytes = item->end - item->begin, stride = 1;
    opdi_storage *const storage = item->tensor->storage;
    opd_tensor *const flat = opdi_tensor_on(storage, (char *)(uintptr_t)item->begin, &bytes, &stride, 1, OPD_UINT8,
                                            opdi_place_of(item->tensor));
    char name[80];
    if (!flat) { return -1; }
    opdi_ref_up(&storage->refs);
    (void)snprintf(name, sizeof name, "%s_%lld", paths[item->kind != OPD_MODULE_CONSTANT], (long long)item->number);
    const int rc = opdi_zip_put_tensor(zip, name, flat);
    opdi_drop(flat);
    return rc;
}

//== writing traced graphs =============================================================================================

/* Adds an input of the graph and its specification.  If the input is a tensor of the module, `name` is the tensor's
   name and `kind` its kind; for an input of the user, `name` is NULL. */
static void opdi_program_put_spec(opdi_program_writer *writer, const opdi_gvalue *value, const char *kind,
                                  const char *name) {
    const long long number = (long long)opdi_program_number(writer, value);
    opdi_json_comma(&writer->inputs);
    opdi_json_print(&writer->inputs, "{\"as_tensor\": {\"name\": \"v%lld\"}}", number);
    opdi_json_comma(&writer->specs);
    if (!name) {
        opdi_json_print(&writer->specs, "{\"user_input\": {\"arg\": {\"as_tensor\": {\"name\": \"v%lld\"}}}}", number);
        return;
    }
    opdi_json_print(&writer->specs, "{\"%s\": {\"arg\": {\"name\": \"v%lld\"}, \"%s_name\": ", kind, number, kind);
    opdi_json_put(&writer->specs, name);
    opdi_string_add(&writer->specs, strcmp(kind, "buffer") == 0 ? ", \"persistent\": true}}" : "}}");
}
static const char opdi_program_leaf_spec[] = "{\"type\": null, \"context\": null, \"children_spec\": []}";
/* Adds the inputs of the graph: the tensors of the module, the constants, and the inputs of the user.  Returns 0, or -1
   and sets an error. */
static int opdi_program_put_inputs(opdi_program_writer *writer) {
    static const char *const kinds[] = {"parameter", "buffer", "tensor_constant"};
    const opd_graph *const graph = writer->graph;
    const int64_t count = opd_module_count(writer->module);
    int constants = 0;
    for (int32_t i = 0; i < graph->ninputs; i++) {
        if (opdi_program_put_value(writer, graph->inputs[i])) { return -1; }
    }
    for (int64_t i = 0; i < count; i++) {
        const opd_module_kind kind = opd_module_kind_at(writer->module, i);
        const char *const name = opd_module_name(writer->module, i);
        opdi_program_put_spec(writer, graph->inputs[i], kinds[kind], name);
        if (opdi_program_put_tensor(writer, name, opd_module_at(writer->module, i), kind)) { return -1; }
    }
    for (const opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        if (node->kind != OPDI_GNODE_CONSTANT || node->constant.tag != OPD_TAG_TENSOR ||
            node->constant.u.t->flags & OPDI_WRAPPED) { continue; }
        char *const name = (char *)opdi_arena_alloc(&writer->arena, 40);
        if (!name) { return -1; }
        (void)snprintf(name, 40, "lifted_tensor_%d", constants++);
        if (opdi_program_put_value(writer, node->out[0])) { return -1; }
        opdi_program_put_spec(writer, node->out[0], kinds[2], name);
        if (opdi_program_put_tensor(writer, name, node->constant.u.t, OPD_MODULE_CONSTANT)) { return -1; }
    }
    for (int32_t i = (int32_t)count; i < graph->ninputs; i++) {
        const char *const name = graph->inputs[i]->name;
        opdi_program_put_spec(writer, graph->inputs[i], NULL, NULL);
        opdi_json_comma(&writer->names);
        if (name && !strchr(name, '.')) { opdi_json_put(&writer->names, name); }
        else { opdi_json_print(&writer->names, "\"input_%d\"", (int)(i - count)); }
        opdi_json_comma(&writer->leaves);
        opdi_string_add(&writer->leaves, opdi_program_leaf_spec);
    }
    return 0;
}
/* Returns whether two constants are equal.  Integers always count as equal, because they may be sizes. */
static bool opdi_program_same_constant(const opd_value *value, const opd_value *other) {
    if (value->tag != other->tag) { return false; }
    switch (value->tag) {
    case OPD_TAG_INT: case OPD_TAG_NONE: return true;
    case OPD_TAG_STR: return strcmp(value->u.s, other->u.s) == 0;
    case OPD_TAG_DEVICE: return opdi_program_same_device(value->u.device, other->u.device);
    case OPD_TAG_TENSOR: return value->u.t == other->u.t ||
            (value->u.t->dtype == other->u.t->dtype && opd_equal(value->u.t, other->u.t));
    default: return memcmp(&value->u, &other->u, sizeof value->u) == 0;
    }
}
/* Stores that `other`, a value of the second trace, corresponds to `value`, a value of the first.  Returns 0, or -1 and
   sets an error. */
static int opdi_program_pair_add(opdi_program_writer *writer, const opdi_gvalue *value, const opdi_gvalue *other) {
    const int64_t number = opdi_program_number(writer, value);
    if (number < 0 || number >= writer->npairs) { return opd_fail(OPD_ERROR_MEMORY, "out of memory"); }
    writer->pairs[number] = other;
    return 0;
}
/* Returns whether `node` of the first trace and `other` of the second do the same, with inputs that correspond to each
   other. */
static bool opdi_program_same_node(opdi_program_writer *writer, const opdi_gnode *node, const opdi_gnode *other) {
    bool same = other && node->kind == other->kind && node->op == other->op && node->nin == other->nin &&
        node->nout == other->nout && !node->nblocks && !other->nblocks;
    for (int32_t i = 0; same && i < node->nin; i++) {
        same = opdi_program_pair(writer, node->in[i]) == other->in[i];
    }
    return same && (node->kind != OPDI_GNODE_CONSTANT || opdi_program_same_constant(&node->constant, &other->constant));
}
/* Returns the next size of an input that varies and is no multiple of an open size, or an open size plus a constant:
   the smallest, because a larger one may be a multiple of it.  Its input is -1 if there is none. */
static opdi_dynamic_size opdi_dynamic_next(const opdi_program_writer *writer) {
    opdi_dynamic_size next = {0, 0, -1, 0};
    for (int32_t i = 0; i < writer->graph->ninputs; i++) {
        const opdi_gvalue *const value = writer->graph->inputs[i], *const its = writer->other->inputs[i];
        for (int32_t k = 0; k < value->ndim; k++) {
            bool known = value->dims[k] == its->dims[k] || (next.input >= 0 && value->dims[k] >= next.size);
            for (int open = 0; open < writer->nopen && !known; open++) {
                opdi_dynamic_form form = {open, -1, false, 1, 0};
                known = opdi_dynamic_fits(writer, value->dims[k], its->dims[k], &form);
            }
            if (known) { continue; }
            next.input = i;
            next.dim = k;
            next.size = value->dims[k];
            next.second = its->dims[k];
        }
    }
    return next;
}
/* Checks that sizes computed from the open sizes vary between the traces.  Returns 0, or -1 and sets an error. */
static int opdi_dynamic_check(const opdi_program_writer *writer) {
    for (int i = 0; i < writer->nopen; i++) {
        const opdi_dynamic_size *const one = &writer->open[i];
        const int64_t least = OPDI_MIN(one->size, one->second), most = OPDI_MAX(one->size, one->second);
        bool shows = least >= 2 && most - least > 1;
        for (int k = 0; k < i && shows; k++) {
            const opdi_dynamic_size *const two = &writer->open[k];
            shows = one->size * two->size != one->second * two->second &&
                one->size + two->size != one->second + two->second;
        }
        if (!shows) {
            return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save_open: the sizes %lld and %lld do not show which "
                            "other sizes depend on them: trace with sizes of at least 2 that are further apart",
                            (long long)one->size, (long long)one->second);
        }
    }
    return 0;
}
/* Finds the open sizes.  Returns 0, or -1 and sets an error. */
static int opdi_dynamic_choose(opdi_program_writer *writer) {
    for (;;) {
        const opdi_dynamic_size next = opdi_dynamic_next(writer);
        if (next.input < 0) { break; }
        if (next.input < opd_module_count(writer->module)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save_open: the tensors of the module must have the same "
                            "sizes in both traces");
        }
        if (writer->nopen == OPDI_DYNAMIC_SIZES) {
            return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save_open: more than %d sizes vary", OPDI_DYNAMIC_SIZES);
        }
        writer->open[writer->nopen++] = next;
    }
    if (!writer->nopen) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save_open: both traces have inputs of the same sizes: trace "
                        "the second one with another size in each open dim");
    }
    return opdi_dynamic_check(writer);
}
/* Finds which values of the two traces correspond to each other, and the open sizes.  Returns 0, or -1 and sets an
   error. */
static int opdi_program_pair_all(opdi_program_writer *writer) {
    const opd_graph *const graph = writer->graph, *const second = writer->other;
    const opdi_gnode *node, *other = second->body.first;
    bool same = graph->ninputs == second->ninputs && graph->noutputs == second->noutputs;
    writer->npairs = graph->ninputs;
    for (node = graph->body.first; node; node = node->next) { writer->npairs += node->nout; }
    const size_t bytes = (size_t)(writer->npairs + 1) * sizeof *writer->pairs;
    writer->pairs = (const opdi_gvalue **)opdi_arena_alloc(&writer->arena, bytes);
    if (!writer->pairs) { return -1; }
    memset(writer->pairs, 0, bytes);
    for (int32_t i = 0; same && i < graph->ninputs; i++) {
        const opdi_gvalue *const value = graph->inputs[i], *const its = second->inputs[i];
        if (opdi_program_pair_add(writer, value, its)) { return -1; }
        same = value->ndim == its->ndim && value->dtype == its->dtype;
    }
    if (!same) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save_open: the two traces must have inputs with the same "
                        "dtypes and numbers of dims, and equally many outputs");
    }
    for (node = graph->body.first; node && same; node = node->next) {
        same = opdi_program_same_node(writer, node, other);
        if (!same) { break; }
        for (int32_t i = 0; i < node->nout; i++) {
            if (opdi_program_pair_add(writer, node->out[i], other->out[i])) { return -1; }
        }
        other = other->next;
    }
    for (int32_t i = 0; same && i < graph->noutputs; i++) {
        same = opdi_program_pair(writer, graph->outputs[i]) == second->outputs[i];
    }
    if (!opd_ok()) { return -1; }
    if (!same || other) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save_open: the two traces differ in more than sizes%s%.100s",
                        node && node->op ? ": the first calls " : "", node && node->op ? node->op->name : "");
    }
    return opdi_dynamic_choose(writer);
}
OPDI_INTERNAL int opdi_program_refuse_blocks(const opd_graph *graph);
/* Appends the JSON text of the program to `text`.  Returns 0, or -1 and sets an error. */
static int opdi_program_put(opdi_program_writer *writer, opdi_string *text) {
    const opd_graph *const graph = writer->graph;
    opdi_string spec = {NULL, 0, 0, false}, leaves = {NULL, 0, 0, false};
    if ((writer->other && (opdi_program_refuse_blocks(graph) || opdi_program_pair_all(writer))) ||
        (graph->sizes && (opdi_program_refuse_blocks(graph) || opdi_graph_open_examples(graph, writer->examples))) ||
        opdi_program_put_inputs(writer) || writer->put_block(writer, &graph->body)) { return -1; }
    for (int32_t i = 0; i < graph->noutputs; i++) {
        const long long number = (long long)opdi_program_number(writer, graph->outputs[i]);
        opdi_json_comma(&writer->outputs);
        opdi_json_print(&writer->outputs, "{\"as_tensor\": {\"name\": \"v%lld\"}}", number);
        opdi_json_comma(&writer->sinks);
        opdi_json_print(&writer->sinks, "{\"user_output\": {\"arg\": {\"as_tensor\": {\"name\": \"v%lld\"}}}}", number);
        opdi_json_comma(&leaves);
        opdi_string_add(&leaves, opdi_program_leaf_spec);
    }
    opdi_string_add(&spec, "[1, {\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": "
                    "\"builtins.tuple\", \"context\": \"null\", \"children_spec\": [");
    if (writer->leaves.length) { opdi_string_add(&spec, writer->leaves.data); }
    opdi_string_add(&spec, "]}, {\"type\": \"builtins.dict\", \"context\": \"[]\", \"children_spec\": []}]}]");
    const char *const parts[] = {
        "{\"graph_module\": {\"graph\": {\"inputs\": [", writer->inputs.data, "], \"outputs\": [", writer->outputs.data,
        "], \"nodes\": [", writer->heads.data, writer->heads.length && writer->nodes.length ? ", " : "",
        writer->nodes.data, "], \"tensor_values\": {", writer->metas.data, "}, \"sym_int_values\": {",
        writer->symbols.data, "}, \"sym_bool_values\": {}, \"is_single_tensor_return\": false, "
        "\"custom_obj_values\": {}, \"sym_float_values\": {", writer->floats.data,
        "}}, \"signature\": {\"input_specs\": [", writer->specs.data,
        "], \"output_specs\": [", writer->sinks.data, "]}, \"module_call_graph\": [{\"fqn\": \"\", \"signature\": {"
        "\"inputs\": [], \"outputs\": [], \"forward_arg_names\": [", writer->names.data, "], \"in_spec\": "};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) { if (parts[i]) { opdi_string_add(text, parts[i]); } }
    if (spec.data) { opdi_json_put(text, spec.data); }
    spec.length = 0;
    opdi_string_add(&spec, "[1, ");
    if (graph->noutputs != 1) {
        opdi_string_add(&spec, "{\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [");
    }
    if (leaves.data) { opdi_string_add(&spec, leaves.data); }
    opdi_string_add(&spec, graph->noutputs != 1 ? "]}]" : "]");
    opdi_string_add(text, ", \"out_spec\": ");
    if (spec.data) { opdi_json_put(text, spec.data); }
    opdi_string_add(text, "}}], \"metadata\": {}, \"treespec_namedtuple_fields\": {}}, "
                    "\"opset_version\": {\"aten\": 10}, \"range_constraints\": {");
    opdi_program_put_ranges(writer, text);
    opdi_string_add(text, "}, \"schema_version\": {\"major\": 8, \"minor\": 20}, \"verifiers\": [\"TRAINING\"], "
                    "\"torch_version\": \"2.6.0\", \"guards_code\": []}");
    const bool failed = spec.failed || leaves.failed || text->failed;
    opdi_string_free(&spec);
    opdi_string_free(&leaves);
    return failed || !opd_ok() ? -1 : 0;
}

//== writing loaded programs ===========================================================================================
//
//  If a program was loaded from a file, the JSON text of this file is written again, with the current tensors of the
//  module.

/* Adds the tensors of the module to those that are to be written.  The tensors that the program had when it was loaded
   must still have the same dtype and sizes.  Returns 0, or -1 and sets an error. */
static int opdi_program_put_module(opdi_program_writer *writer, const opd_program *program) {
    const opd_module *const module = writer->module;
    if (program->subclass) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save: '%.200s' is an object of a Python class, which cannot "
                        "be written.  Call torchao.utils.unwrap_tensor_subclass(model) before exporting the model",
                        program->subclass);
    }
    for (int32_t i = 0; i < program->nshapes; i++) {
        const opdi_program_shape *const shape = &program->shapes[i];
        const int64_t at = opd_module_find(module, shape->name);
        opd_tensor *const tensor = at >= 0 ? opd_module_at(module, at) : shape->kind == OPD_MODULE_CONSTANT
            ? opd_module_get(program->module, shape->name) : NULL;
        if (!tensor) {
            return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save: the module has no '%.200s'", shape->name);
        }
        if (tensor->dtype != shape->dtype || tensor->ndim != shape->ndim ||
            memcmp(tensor->dims, shape->sizes, (size_t)shape->ndim * sizeof *shape->sizes) != 0) {
            return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save: '%.200s' has another %s than the program was "
                            "exported with", shape->name, tensor->dtype != shape->dtype ? "dtype" : "size");
        }
        if (opdi_program_put_tensor(writer, shape->name, tensor, shape->kind)) { return -1; }
    }
    for (int64_t i = 0; i < opd_module_count(module); i++) {     /* the tensors that were added after the program was
                                                                    loaded */
        const char *const name = opd_module_name(module, i);
        int32_t k = 0;
        while (k < program->nshapes && strcmp(program->shapes[k].name, name) != 0) { k++; }
        if (k == program->nshapes && opdi_program_put_tensor(writer, name, opd_module_at(module, i),
                                                             opd_module_kind_at(module, i))) { return -1; }
    }
    return 0;
}
/* Copies entry number `entry` of the file of a loaded program, under the name `name`.  Returns 0, or -1 and sets an
   error. */
static int opdi_program_put_again(opdi_zip_writer *zip, const opd_tensor_file *file, int64_t entry, const char *name) {
    opdi_source source;
    unsigned char *own;
    if (opdi_zip_bytes(file, opdi_file_entry_of(file, entry), 1, &source, &own)) { return -1; }
    const int rc = opdi_zip_add(zip, name, source.data, source.length);
    opdi_free(own, source.length);
    return rc;
}
/* Writes the JSON text of a loaded program as the entry `name`.  The text is not changed, except that format version 7
   becomes 8, which includes version 7.  Returns 0, or -1 and sets an error. */
static int opdi_program_put_text(opdi_zip_writer *zip, const opd_program *program, const char *name) {
    opdi_source source;
    unsigned char *own;
    const size_t at = (size_t)program->major_at;
    if (program->major == 8) { return opdi_program_put_again(zip, program->file, program->text, name); }
    if (program->major != 7) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save: the program has version %lld of the format (before "
                        "PyTorch 2.5), which cannot be written", (long long)program->major);
    }
    if (opdi_zip_bytes(program->file, opdi_file_entry_of(program->file, program->text), 1, &source, &own)) {
        return -1;
    }
    const int rc = at >= source.length || source.data[at] != '7' ? opdi_bad(&source, at, "the version is missing") :
        opdi_zip_begin(zip, name, source.length) || opdi_sink_put(zip->sink, source.data, at) ||
        opdi_sink_put(zip->sink, "8", 1) || opdi_sink_put(zip->sink, source.data + at + 1, source.length - at - 1) ||
        opdi_zip_end_entry(zip, name, source.length) ? -1 : 0;
    opdi_free(own, source.length);
    return rc;
}
/* Copies the other entries of a program: example inputs and, if `extra` is true, the files that the user has added.
   Returns 0, or -1 and sets an error. */
static int opdi_program_put_beside(opdi_zip_writer *zip, const opd_program *program, const char *name, bool extra) {
    static const char *const folders[] = {"extra/", "extra_files/"};
    const opd_tensor_file *const file = program->file;
    char path[600], its[600];
    bool done = false;
    (void)snprintf(path, sizeof path, "model/data/sample_inputs/%.300s.pt", name);
    (void)snprintf(its, sizeof its, "data/sample_inputs/%.300s.pt", program->name);
    for (int64_t i = 0; i < file->count; i++) {
        const char *const entry = opdi_file_entry_name(file, i), *const slash = strchr(entry, '/');
        if (!done && (strcmp(entry, "serialized_example_inputs.pt") == 0 || (slash && strcmp(slash + 1, its) == 0))) {
            if (opdi_program_put_again(zip, file, i, path)) { return -1; }
            done = true;
        }
        for (int k = 0; k < 2 && extra; k++) {
            const char *const user = k ? entry : slash ? slash + 1 : "";
            opdi_string to = {NULL, 0, 0, false};
            if (strncmp(user, folders[k], strlen(folders[k])) != 0) { continue; }
            opdi_string_add(&to, "model/extra/");
            opdi_string_add(&to, user + strlen(folders[k]));
            const int rc = to.failed ? -1 : opdi_program_put_again(zip, file, i, to.data);
            opdi_string_free(&to);
            if (rc) { return -1; }
        }
    }
    return done ? 0 : opdi_zip_add(zip, path, "", 0);
}

//== writing the file ==================================================================================================

static int opdi_program_put_config(opdi_zip_writer *zip, const char *folder, const char *name,
                                   const opdi_string *config) {
    opdi_string text = {NULL, 0, 0, false};
    char path[500];
    (void)snprintf(path, sizeof path, "model/data/%s/%.300s_%s_config.json", folder, name, folder);
    opdi_string_add(&text, "{\"config\": {");
    if (config->length) { opdi_string_add_n(&text, config->data, config->length); }
    opdi_string_add(&text, "}}");
    const int rc = text.failed ? -1 : opdi_zip_add(zip, path, text.data, text.length);
    opdi_string_free(&text);
    return rc;
}
/* Writes the entries of a program.  `text` is the JSON text, or NULL if the program was loaded.  If `extra` is true,
   also copies the files that the user has added.  Returns 0, or -1 and sets an error. */
static int opdi_program_put_one(const opdi_program_writer *writer, const opdi_string *text, opdi_zip_writer *zip,
                                bool extra) {
    const opdi_program_item *const items = (const opdi_program_item *)(void *)writer->items.data;
    const opd_program *const program = writer->graph->program;
    char path[400];
    (void)snprintf(path, sizeof path, "model/models/%.300s.json", writer->name);
    if ((text ? opdi_zip_add(zip, path, text->data, text->length) : opdi_program_put_text(zip, program, path)) ||
        opdi_program_put_config(zip, "weights", writer->name, &writer->configs[0]) ||
        opdi_program_put_config(zip, "constants", writer->name, &writer->configs[1])) { return -1; }
    for (size_t i = 0; i < writer->items.length / sizeof *items; i++) {
        if (items[i].first == &items[i] && opdi_program_put_entry(zip, &items[i])) { return -1; }
    }
    if (!text) { return opdi_program_put_beside(zip, program, writer->name, extra); }
    (void)snprintf(path, sizeof path, "model/data/sample_inputs/%.300s.pt", writer->name);
    return opdi_zip_add(zip, path, "", 0);
}
/* Writes a program.  If it was changed after it was loaded, records it anew first.  `other` is a second trace of the
   graph, or NULL.  `numbers` has the numbers of the next entries in the file; they are advanced.  `extra` is as for
   opdi_program_put_beside.  Returns 0, or -1 and sets an error. */
static int opdi_program_write_one(const opd_graph *graph, const opd_graph *other, const opd_module *module,
                                  const char *name, opdi_program_put_block_fn put_block, int64_t *numbers,
                                  opdi_zip_writer *zip, bool extra) {
    opdi_program_writer writer;
    opdi_string text = {NULL, 0, 0, false};
    opd_scope scope = opd_scope_open();
    opd_graph *again = NULL;
    if (graph->program && graph->program->changed) {
        module = graph->program->module;
        if (!(graph = again = opdi_program_record(graph->program))) {
            opd_scope_close(&scope);
            return -1;
        }
    }
    memset(&writer, 0, sizeof writer);
    writer.graph = graph;
    writer.other = other;
    writer.module = module;
    writer.name = name;
    writer.put_block = put_block;
    writer.device = graph->program ? graph->program->device : opd_device_make(OPD_CPU, -1);
    memcpy(writer.numbers, numbers, sizeof writer.numbers);
    int rc = graph->program ? opdi_program_put_module(&writer, graph->program) : opdi_program_put(&writer, &text);
    rc = rc || opdi_program_arrange(&writer) ||
        opdi_program_put_one(&writer, graph->program ? NULL : &text, zip, extra) ? -1 : 0;
    memcpy(numbers, writer.numbers, sizeof writer.numbers);
    opdi_string *const all[] = {&text, &writer.nodes, &writer.metas, &writer.inputs, &writer.specs, &writer.outputs,
                                &writer.sinks, &writer.names, &writer.leaves, &writer.configs[0], &writer.configs[1],
                                &writer.items, &writer.heads, &writer.symbols, &writer.floats};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) { opdi_string_free(all[i]); }
    opdi_pointer_set_free(&writer.values);
    opdi_pointer_set_free(&writer.done);
    opdi_arena_free(&writer.arena);
    opd_graph_free(again);
    opd_scope_close(&scope);
    return rc;
}
/* Writes the entries with which each file begins.  Returns 0, or -1 and sets an error. */
static int opdi_program_write_head(opdi_zip_writer *zip) {
    const char *const order = opdi_big_endian() ? "big" : "little";
    return opdi_zip_add(zip, "model/archive_format", "pt2", 3) || opdi_zip_add(zip, "model/archive_version", "0", 1) ||
        opdi_zip_add(zip, "model/byteorder", order, strlen(order)) ||
        opdi_zip_add(zip, "model/.data/version", "6\n", 2) ? -1 : 0;
}
/* Saves a graph, as opd_program_save and opd_program_save_open do; `put_block` is as in opdi_program_writer. */
OPDI_INTERNAL int opdi_program_save(const char *who, const opd_graph *graph, const opd_graph *other,
                                    const opd_module *module, const char *path, opdi_program_put_block_fn put_block) {
    opdi_sink sink;
    int64_t numbers[2] = {0, 0};
    if (!opd_ok()) { return -1; }
    if (graph && graph->kept) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save: the graph is a copy of the graph of a program; only the "
                        "program as it was loaded can be saved");
    }
    if (!graph || !path || (!graph->program && opd_module_count(module) > graph->ninputs)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the %s", who, !graph ? "graph is NULL" : !path ? "path is NULL"
                        : "graph has fewer inputs than the module has tensors");
    }
    if (opdi_sink_open(&sink, who, path)) { return -1; }
    opdi_zip_writer zip;
    opdi_zip_writer_init(&zip, &sink);
    const int rc = opdi_program_write_head(&zip) ||
        opdi_program_write_one(graph, other, module, "model", put_block, numbers, &zip, true) ? -1 : 0;
    return opdi_sink_close(&sink, opdi_zip_close(&zip, rc));
}
/* Saves programs, as opd_program_save_all does; `put_block` is as in opdi_program_writer. */
OPDI_INTERNAL int opdi_program_save_all(opd_program *const *programs, const char *const *names, int count,
                                        const char *path, opdi_program_put_block_fn put_block) {
    opdi_sink sink;
    int64_t numbers[2] = {0, 0};
    if (!opd_ok()) { return -1; }
    if (count < 0 || (count && !programs) || !path) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save_all: the %s NULL", path ? "programs are" : "path is");
    }
    for (int i = 0; i < count; i++) {
        const char *const name = !programs[i] ? NULL : names && names[i] ? names[i] : programs[i]->name;
        bool again = false;
        for (int k = 0; name && k < i && !again; k++) {
            again = strcmp(names && names[k] ? names[k] : programs[k]->name, name) == 0;
        }
        if (name && !again && *name && strlen(name) <= 200 && !strpbrk(name, "/\\")) { continue; }
        return opd_fail(OPD_ERROR_ARGUMENT, !name ? "opd_program_save_all: program %d is NULL" : again
                        ? "opd_program_save_all: program %d has the same name as one before it"
                        : "opd_program_save_all: program %d has a name that a file cannot have", i);
    }
    if (opdi_sink_open(&sink, "opd_program_save_all", path)) { return -1; }
    opdi_zip_writer zip;
    opdi_zip_writer_init(&zip, &sink);
    int rc = opdi_program_write_head(&zip);
    for (int i = 0; i < count && rc == 0; i++) {
        rc = opdi_program_write_one(programs[i]->graph, NULL, programs[i]->module, names && names[i] ? names[i]
                                    : programs[i]->name, put_block, numbers, &zip, i == 0);
    }
    return opdi_sink_close(&sink, opdi_zip_close(&zip, rc));
}
