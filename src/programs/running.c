#include "programs.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>program_runs exported programs: descriptions, checks of inputs, runs
//
//  The functions that describe a program read its tables.  A run checks the user's inputs against these tables, runs
//  the graph with the module's tensors and the inputs, and copies results that replace buffers or inputs into them.
//----------------------------------------------------------------------------------------------------------------------

//== descriptions of programs ==========================================================================================

OPDI_COLD_BEGIN
opd_module *opd_program_module(const opd_program *program) { return program ? program->module : NULL; }
const opd_graph *opd_program_graph(const opd_program *program) { return program ? program->graph : NULL; }
const char *opd_program_name(const opd_program *program) { return program ? program->name : NULL; }
const char *opd_program_file_name(const opd_program *program, int i) {
    return program && i >= 0 && i < program->nnames ? program->names[i] : NULL;
}
int opd_program_ninputs(const opd_program *program) { return program ? program->ninputs : 0; }
int opd_program_noutputs(const opd_program *program) { return program ? program->noutputs : 0; }
const char *opd_program_input_name(const opd_program *program, int i) {
    return program && i >= 0 && i < program->ninputs ? program->inputs[i].name : NULL;
}
const char *opd_program_output_name(const opd_program *program, int i) {
    if (!program || i < 0 || i >= program->noutputs) { return NULL; }
    return program->outputs && *program->outputs[i] ? program->outputs[i] : "output";
}
int opd_program_input_constant(const opd_program *program, int i, opd_value *value) {
    if (!program || i < 0 || i >= program->ninputs || !program->inputs[i].constant) { return 0; }
    if (value) { *value = program->inputs[i].value; }
    return 1;
}
size_t opd_program_print(const opd_program *program, char *buf, size_t cap) {
    if (buf && cap) { buf[0] = 0; }
    if (!program) { return 0; }
    size_t length = opd_graph_print(program->graph, buf, cap);
    for (size_t i = 0; i < program->graphs.length / sizeof(opd_graph *); i++) {
        const size_t at = OPDI_MIN(length, cap);
        length += opd_graph_print(((opd_graph **)(void *)program->graphs.data)[i], buf ? buf + at : NULL, cap - at);
    }
    return length;
}
const char *opd_program_operator(const opd_program *program, int64_t i, int64_t *count, const char **missing) {
    const opdi_program_operator *const list = program ? (const opdi_program_operator *)(void *)program->operators.data
        : NULL;
    if (!program || i < 0 || (size_t)i >= program->operators.length / sizeof *list) { return NULL; }
    if (count) { *count = list[i].count; }
    if (missing) { *missing = list[i].what; }
    return list[i].name;
}
const char *opd_program_note(const opd_program *program, int64_t i) {
    const char *const *const list = program ? (const char *const *)(void *)program->notes.data : NULL;
    return program && i >= 0 && (size_t)i < program->notes.length / sizeof *list ? list[i] : NULL;
}
static void opdi_program_print_dim(opdi_text *text, const opd_program *program, const opdi_program_dim *dim) {
    const opdi_program_symbol *const symbol = dim->symbol >= 0 ? &program->symbols[dim->symbol] : NULL;
    int64_t factor = 1;
    int length = 0;
    const char *const name = dim->text && !symbol ? opdi_program_multiple(dim->text, &factor, &length) : NULL;
    if (!dim->text) { opdi_text_add(text, "%lld", (long long)dim->size); }
    else if (name) { opdi_text_add(text, "%lld*%.*s", (long long)factor, length, name); }
    else if (!symbol) { opdi_text_add(text, "%s", dim->text); }
    else {
        opdi_text_add(text, "%s", symbol->name);
        if (symbol->least > 2 || symbol->most < OPDI_PROGRAM_SIZE) {
            opdi_text_add(text, "=%lld..", (long long)OPDI_MAX(symbol->least, 0));
            if (symbol->most < OPDI_PROGRAM_SIZE) { opdi_text_add(text, "%lld", (long long)symbol->most); }
        }
    }
}
/* Prints a value that an input had at export and must always have. */
static void opdi_program_print_value(opdi_text *text, const opd_value *value) {
    switch (value->tag) {
    case OPD_TAG_INT: opdi_text_add(text, "%lld", (long long)value->u.i); break;
    case OPD_TAG_FLOAT: opdi_text_add(text, "%g", value->u.d); break;
    case OPD_TAG_BOOL: opdi_text_add(text, "%s", value->u.i ? "True" : "False"); break;
    case OPD_TAG_STR: opdi_text_add(text, "'%.50s'", value->u.s); break;
    default: opdi_text_add(text, "None"); break;
    }
}
size_t opd_program_input_type(const opd_program *program, int i, char *buf, size_t cap) {
    opdi_text text = opdi_text_of(buf, cap);
    if (buf && cap) { buf[0] = 0; }
    if (!program || i < 0 || i >= program->ninputs) { return 0; }
    const opdi_program_input *const input = &program->inputs[i];
    if (input->constant) { opdi_program_print_value(&text, &input->value); }
    else if (input->tag != OPD_TAG_TENSOR) {
        opdi_text_add(&text, "%s", input->tag == OPD_TAG_INT ? "int" : input->tag == OPD_TAG_BOOL ? "bool" : "float");
    } else {
        opdi_text_add(&text, "%s [", opd_dtype_name(input->dtype));
        for (int k = 0; k < input->ndim; k++) {
            opdi_text_add(&text, "%s", k ? ", " : "");
            opdi_program_print_dim(&text, program, &input->dims[k]);
        }
        opdi_text_add(&text, "]");
    }
    return text.length;
}
bool opd_program_writes(const opd_program *program) {
    for (int i = 0; program && i < program->graph->noutputs; i++) {
        if (program->to[i].kind == OPDI_TO_MODULE) { return true; }
    }
    return program && opdi_graph_writes(program->graph);
}
OPDI_COLD_END

//== running ===========================================================================================================

/* The state of a run: the values of those symbols that were found from the inputs so far. */
typedef struct opdi_program_run {
    const opd_program *program;
    int64_t *values;
    bool *bound;
    int32_t (*places)[2];        /* for each symbol: the input and the dim from which its value was found */
} opdi_program_run;

/* Solves the equation "Mul(Integer(4), Symbol('s0', ...))" = `size` for the symbol: sets *symbol and *value.  Returns
   false if the expression `text` has another form, the symbol is unknown, or `size` is not a multiple of the factor. */
static bool opdi_program_solve(const opd_program *program, const char *text, int64_t size, int32_t *symbol,
                               int64_t *value) {
    int64_t factor;
    int length = 0;
    const char *const name = opdi_program_multiple(text, &factor, &length);
    if (!name || size % factor) { return false; }
    *symbol = opdi_program_symbol_of((opd_program *)(uintptr_t)program, name, (size_t)length);
    *value = size / factor;
    return *symbol >= 0;
}
static int opdi_program_wrong_size(const opd_program *program, int32_t i, int32_t dim, int64_t size, const char *format,
                                   ...) OPD_PRINTF_LIKE(5, 6);
static int opdi_program_wrong_size(const opd_program *program, int32_t i, int32_t dim, int64_t size, const char *format,
                                   ...) {
    char text[200];
    va_list ap;
    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (program->inputs[i].tag != OPD_TAG_TENSOR) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_run: input %d, '%s', is %lld, but the program %s", (int)i,
                        program->inputs[i].name, (long long)size, text);
    }
    return opd_fail(OPD_ERROR_ARGUMENT,
                    "opd_program_run: input %d, '%s', has size %lld at dim %d, but the program %s", (int)i,
                    program->inputs[i].name, (long long)size, (int)dim, text);
}
/* Gives a symbol its value; if it already has a value, checks that `value` is the same.  Also checks the bounds of the
   symbol.  For errors, `size` is the size of dim `dim` of input i.  Returns 0, or -1 and sets an error. */
static int opdi_program_bind(opdi_program_run *run, int32_t symbol, int32_t i, int32_t dim, int64_t size,
                             int64_t value) {
    const opd_program *const program = run->program;
    const opdi_program_symbol *const its = &program->symbols[symbol];
    if (run->bound[symbol] && run->values[symbol] != value) {
        return opdi_program_wrong_size(program, i, dim, size, "expects the same %s = %lld as at dim %d of '%s'",
                                       its->name, (long long)run->values[symbol], (int)run->places[symbol][1],
                                       program->inputs[run->places[symbol][0]].name);
    }
    if ((value < its->least && its->least > 2) || value > its->most) {
        return its->most >= OPDI_PROGRAM_SIZE
            ? opdi_program_wrong_size(program, i, dim, size, "accepts %s from %lld on", its->name,
                                      (long long)its->least)
            : opdi_program_wrong_size(program, i, dim, size, "accepts %s from %lld to %lld", its->name,
                                      (long long)OPDI_MAX(its->least, 0), (long long)its->most);
    }
    run->bound[symbol] = true;
    run->values[symbol] = value;
    run->places[symbol][0] = i;
    run->places[symbol][1] = dim;
    return 0;
}
/* Checks that dim k of input i can have the size `size`.  If `late` is true, checks the dim only if its size is an
   expression, which may have symbols that other dims determine; otherwise checks the dim only if its size is not an
   expression.  Returns 0, or -1 and sets an error. */
static int opdi_program_check_dim(opdi_program_run *run, int32_t i, int32_t k, int64_t size, bool late) {
    const opd_program *const program = run->program;
    const opdi_program_dim *const dim = &program->inputs[i].dims[k];
    const opdi_program_sizes sizes = {program, run->values, run->bound};
    const char *at = dim->text;
    int32_t symbol = dim->symbol;
    int64_t value = size;
    if (late != (dim->text && symbol < 0)) { return 0; }
    if (!dim->text) {
        return dim->size == size ? 0 : opdi_program_wrong_size(program, i, k, size, "expects %lld",
                                                               (long long)dim->size);
    }
    if (symbol >= 0) { return opdi_program_bind(run, symbol, i, k, size, size); }
    if (opdi_program_expression(&sizes, &at, 0, &value)) {
        return value == size ? 0 : opdi_program_wrong_size(program, i, k, size, "expects %lld, which is %.120s",
                                                           (long long)value, dim->text);
    }
    if (opdi_program_solve(program, dim->text, size, &symbol, &value)) {
        return opdi_program_bind(run, symbol, i, k, size, value);
    }
    int64_t factor;
    int length;
    return opdi_program_multiple(dim->text, &factor, &length)
        ? opdi_program_wrong_size(program, i, k, size, "expects a multiple: %.120s", dim->text) : 0;
}
static bool opdi_program_same_number(const opd_value *value, const opd_value *other) {
    if (value->tag == OPD_TAG_STR || other->tag == OPD_TAG_STR) {
        return value->tag == other->tag && strcmp(value->u.s, other->u.s) == 0;
    }
    if (value->tag == OPD_TAG_NONE || other->tag == OPD_TAG_NONE) { return value->tag == other->tag; }
    return opdi_sym_compare(value, other) == 0;
}
/* Checks that `value` has the kind that input i must have (tensor, int, ...).  If the input is constant, checks that
   `value` is equal to the constant.  Returns 0, or -1 and sets an error. */
static int opdi_program_check_kind(const opd_program *program, int32_t i, const opd_value *value) {
    const opdi_program_input *const input = &program->inputs[i];
    const bool number = value->tag == OPD_TAG_INT || value->tag == OPD_TAG_FLOAT || value->tag == OPD_TAG_BOOL;
    if (input->constant) {
        if ((number || value->tag == OPD_TAG_NONE || value->tag == OPD_TAG_STR) &&
            opdi_program_same_number(value, &input->value)) { return 0; }
        char text[64] = "";
        opdi_text value_text = opdi_text_of(text, sizeof text);
        opdi_program_print_value(&value_text, &input->value);
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_run: input %d, '%s', differs from %s, the value with which "
                        "the program was exported", (int)i, input->name, text);
    }
    if (value->tag == input->tag && (value->tag != OPD_TAG_TENSOR || value->u.t)) { return 0; }
    return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_run: input %d, '%s', is not of type %s", (int)i, input->name,
                    input->tag == OPD_TAG_TENSOR ? "tensor" : input->tag == OPD_TAG_INT ? "int"
                    : input->tag == OPD_TAG_BOOL ? "bool" : "number");
}
/* Returns whether a tensor of the module was converted to the floating dtype `dtype` after the program was loaded. */
static bool opdi_program_cast_to(const opd_program *program, opd_scalar_type dtype) {
    for (int32_t i = 0; i < program->nshapes && opd_dtype_is_floating(dtype); i++) {
        const opd_tensor *const tensor = opd_module_at(program->module, i);
        if (tensor && tensor->dtype == dtype && program->shapes[i].dtype != dtype) { return true; }
    }
    return false;
}
/* Checks that `tensor` has the dtype and the number of dims that input i must have.  Returns 0, or -1 and sets an
   error. */
static int opdi_program_check_tensor(const opd_program *program, int32_t i, const opd_tensor *tensor) {
    const opdi_program_input *const input = &program->inputs[i];
    const opd_scalar_type dtype = (opd_scalar_type)tensor->dtype;
    if (dtype != input->dtype && input->dtype != OPD_DTYPE_NONE &&
        !(opd_dtype_is_floating(input->dtype) && opdi_program_cast_to(program, dtype))) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_run: input %d, '%s', is %s, but the program expects %s",
                        (int)i, input->name, opd_dtype_name(dtype), opd_dtype_name(input->dtype));
    }
    if (opd_ndim(tensor) == input->ndim) { return 0; }
    return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_run: input %d, '%s', has %d dims, but the program expects %d",
                    (int)i, input->name, opd_ndim(tensor), (int)input->ndim);
}
/* Checks the inputs of the user.  Returns 0, or -1 and sets an error. */
static int opdi_program_check(opdi_program_run *run, const opd_value *inputs) {
    const opd_program *const program = run->program;
    for (int late = 0; late < 2; late++) {
        for (int32_t i = 0; i < program->ninputs; i++) {
            const opdi_program_input *const input = &program->inputs[i];
            if (!late && opdi_program_check_kind(program, i, &inputs[i])) { return -1; }
            if (input->constant || input->tag != OPD_TAG_TENSOR) {
                if (!late && input->symbol >= 0 && opdi_program_bind(run, input->symbol, i, 0, inputs[i].u.i,
                                                                     inputs[i].u.i)) { return -1; }
                continue;
            }
            const opd_tensor *const tensor = inputs[i].u.t;
            if (!late && opdi_program_check_tensor(program, i, tensor)) { return -1; }
            for (int32_t k = 0; k < input->ndim; k++) {
                if (opdi_program_check_dim(run, i, k, opd_size(tensor, k), late != 0)) { return -1; }
            }
        }
    }
    return 0;
}
/* Returns the device of the first tensor of the module.  If the module has no tensor, returns the device of the first
   input that is a tensor. */
static opd_device opdi_program_where(const opd_program *program, const opd_value *inputs) {
    const opd_tensor *tensor = opd_module_at(program->module, 0);
    for (int i = 0; i < program->ninputs && !tensor; i++) {
        if (inputs[i].tag == OPD_TAG_TENSOR) { tensor = inputs[i].u.t; }
    }
    return tensor ? opd_tensor_device(tensor) : opd_device_make(OPD_CPU, -1);
}
/* Copies results into the tensors that they replace: tensors of the module, or inputs of the user.  Returns 0, or -1
   and sets an error. */
static int opdi_program_write(const opd_program *program, const opd_value *inputs, const opd_value *results) {
    for (int i = 0; i < program->graph->noutputs && opd_ok(); i++) {
        const opdi_program_place *const place = &program->to[i];
        if ((place->kind != OPDI_TO_MODULE && place->kind != OPDI_TO_INPUT) || results[i].tag != OPD_TAG_TENSOR) {
            continue;
        }
        const bool module = place->kind == OPDI_TO_MODULE;
        if (!module && inputs[place->at].tag != OPD_TAG_TENSOR) {
            return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_run: input %d is written by the program, but is not a "
                            "tensor", (int)place->at);
        }
        opd_tensor *const to = module ? opd_module_at(program->module, place->at) : inputs[place->at].u.t;
        const bool was = module ? opd_grad_mode_set(false) : false;    /* buffers get no autograd history */
        (void)opd_copy_(to, results[i].u.t);
        if (module) { (void)opd_grad_mode_set(was); }
    }
    return opd_ok() ? 0 : -1;
}
/* Runs the graph with inputs that were checked.  tensors: takes the place of the module's tensors; NULL: they are used.
   `results` has space for all outputs of the graph.  Returns 0, or -1 and sets an error. */
static int opdi_program_graph_run(const opd_program *program, const opd_graph *graph, opd_tensor *const *tensors,
                                  const opd_value *inputs, opd_value *results) {
    const int count = graph->ninputs;
    opd_value *const all = (opd_value *)opdi_scope_alloc((size_t)(count + 1) * sizeof *all);
    if (!all) { return -1; }
    for (int i = 0; i < count; i++) {
        const opdi_program_place *const from = &program->from[i];
        all[i] = from->kind == OPDI_FROM_MODULE
            ? opd_value_tensor(tensors ? tensors[from->at] : opd_module_at(program->module, from->at))
            : from->kind == OPDI_FROM_USER ? inputs[from->at] : from->kind == OPDI_FROM_NOWHERE ? opd_value_none()
            : opd_value_device(opdi_program_where(program, inputs));
    }
    return opdi_graph_run_values(graph, all, count, results, graph->noutputs) < 0 ? -1 : 0;
}
/* If the input of the program is a number, converts *value to a number of the same kind.  A tensor of one element
   becomes its element, a bool becomes an int or an int a bool, and a bool or int becomes a float.  Returns 0, or -1 and
   sets an error. */
static int opdi_program_unwrap(const opdi_program_input *input, opd_value *value) {
    opd_tensor *const tensor = value->tag == OPD_TAG_TENSOR && input->tag != OPD_TAG_TENSOR ? value->u.t : NULL;
    if (tensor && opd_numel(tensor) == 1) {
        const bool integral = !opd_dtype_is_floating((opd_scalar_type)tensor->dtype) &&
            !opd_dtype_is_complex((opd_scalar_type)tensor->dtype);
        if (tensor->dtype == OPD_BOOL) { *value = opd_value_bool(opd_item_i64(tensor) != 0); }
        else if (integral) { *value = opd_value_int(opd_item_i64(tensor)); }
        else { *value = opd_value_double(opd_item_f64(tensor)); }
    }
    if (input->tag == OPD_TAG_INT && value->tag == OPD_TAG_BOOL) { *value = opd_value_int(value->u.i); }
    if (input->tag == OPD_TAG_BOOL && value->tag == OPD_TAG_INT) { *value = opd_value_bool(value->u.i != 0); }
    if (input->tag == OPD_TAG_FLOAT && (value->tag == OPD_TAG_INT || value->tag == OPD_TAG_BOOL)) {
        *value = opd_value_double((double)value->u.i);
    }
    return opd_ok() ? 0 : -1;
}
/* Allocates the tables for the values of symbols, in the innermost scope.  Returns 0, or -1 and sets an error. */
static int opdi_program_run_begin(opdi_program_run *run, const opd_program *program) {
    const size_t symbols = (size_t)program->nsymbols + 1;
    memset(run, 0, sizeof *run);
    run->program = program;
    run->values = (int64_t *)opdi_scope_alloc(symbols * sizeof *run->values);
    run->bound = (bool *)opdi_scope_alloc(symbols * sizeof *run->bound);
    run->places = (int32_t (*)[2])opdi_scope_alloc(symbols * sizeof *run->places);
    if (!run->values || !run->bound || !run->places) { return -1; }
    memset(run->bound, 0, symbols * sizeof *run->bound);
    return 0;
}
#if !defined(OPD_NO_COMPILER)
/* Checks that a program accepts the inputs `inputs`; a run makes the same check.  Returns 0, or -1 and sets an
   error. */
OPDI_INTERNAL int opdi_program_takes(const opd_program *program, const opd_value *inputs) {
    opdi_program_run run;
    opd_value *const given = (opd_value *)opdi_scope_alloc((size_t)(program->ninputs + 1) * sizeof *given);
    if (!given || opdi_program_run_begin(&run, program)) { return -1; }
    for (int i = 0; i < program->ninputs; i++) {
        const bool left_out = program->inputs[i].constant && inputs[i].tag == OPD_TAG_DEFAULT;
        given[i] = left_out ? program->inputs[i].value : inputs[i];
    }
    return opdi_program_check(&run, given);
}
#endif
/* Runs a program with `graph`, its graph or a changed copy of it, in the innermost scope.  `tensors` is as for
   opdi_program_graph_run.  Stores references to at most `cap` results in `outputs`.  Returns 0, or -1 and sets an
   error. */
static int opdi_program_run_inside(const opd_program *program, const opd_graph *graph, opd_tensor *const *tensors,
                                   const opd_value *inputs, int ninputs, opd_value *outputs, int cap) {
    opdi_program_run run;
    opd_value *const given = (opd_value *)opdi_scope_alloc((size_t)(program->ninputs + 1) * sizeof *given);
    opd_value *const results = (opd_value *)opdi_scope_alloc((size_t)(program->graph->noutputs + 1) * sizeof *results);
    int k = 0;
    if (!given || !results || opdi_program_run_begin(&run, program)) { return -1; }
    int constants = 0;
    for (int i = 0; i < program->ninputs; i++) { constants += program->inputs[i].constant; }
    const bool all = ninputs == program->ninputs;
    if (!all && ninputs != program->ninputs - constants) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_run: expected %d inputs but got %d", program->ninputs,
                        ninputs);
    }
    for (int i = 0; i < program->ninputs; i++) {
        const bool left_out = program->inputs[i].constant && (!all || inputs[k].tag == OPD_TAG_DEFAULT);
        given[i] = left_out ? program->inputs[i].value : inputs[k];
        if (!left_out && opdi_program_unwrap(&program->inputs[i], &given[i])) { return -1; }
        k += all || !left_out;
    }
    if (opdi_program_check(&run, given) || opdi_program_graph_run(program, graph, tensors, given, results) ||
        opdi_program_write(program, given, results)) { return -1; }
    for (int i = 0; i < program->graph->noutputs; i++) {
        const opdi_program_place *const place = &program->to[i];
        if (place->kind != OPDI_TO_USER || place->at >= cap) { continue; }
        outputs[place->at] = results[i];
    }
    for (int i = 0; i < program->noutputs && i < cap; i++) {
        if (opdi_value_hold(&outputs[i]) == 0) { continue; }
        while (i-- > 0) { opdi_value_drop(outputs[i]); }
        return -1;
    }
    return 0;
}
/* Runs a program with `graph`, its graph or a changed copy of it (NULL: its graph, or in its place program->quick;
   traces see the operators of the graph, which PyTorch has, too), and with `tensors` in place of its module's (NULL:
   the module's).  Returns as opd_program_run does. */
OPDI_INTERNAL int opdi_program_run_with(const opd_program *program, const opd_graph *graph, opd_tensor *const *tensors,
                                        const opd_value *inputs, int ninputs, opd_value *outputs, int cap) {
    if (!opd_ok()) { return -1; }
    if (!program || ninputs < 0 || (ninputs && !inputs) || (cap > 0 && !outputs)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_run: the %s", !program ? "program is NULL"
                        : cap > 0 && !outputs ? "outputs are NULL" : "inputs are NULL");
    }
    opd_program *const kept = (opd_program *)(uintptr_t)program;
    opdi_ref_up(&kept->refs);
    opd_scope scope = opd_scope_open();
    const int noutputs = program->noutputs;
    const opd_graph *const usual = program->quick && !opdi_self()->innermost.tracer ? program->quick : program->graph;
    const int rc = opdi_program_run_inside(program, graph ? graph : usual, tensors, inputs, ninputs, outputs, cap);
    opd_scope_close(&scope);
    for (int i = 0; i < cap; i++) {
        outputs[i] = rc || i >= noutputs ? opd_value_none() : opdi_value_own(outputs[i]);
    }
    opd_program_free(kept);
    return rc || !opd_ok() ? -1 : noutputs;
}
int opd_program_run(const opd_program *program, const opd_value *inputs, int ninputs, opd_value *outputs, int cap) {
    return opdi_program_run_with(program, NULL, NULL, inputs, ninputs, outputs, cap);
}
int opd_program_set_graph(opd_program *program, opd_graph *graph) {
    if (!opd_ok()) { return -1; }
    if (!program || !graph || graph->kept != program) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_set_graph: the %s", !program ? "program is NULL" : !graph
                        ? "graph is NULL" : "graph is not a copy of the program's graph (opd_graph_copy)");
    }
    if (graph->ninputs != program->graph->ninputs || graph->noutputs != program->graph->noutputs) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_set_graph: the graph has %d inputs and %d outputs, but the "
                        "program has %d and %d", (int)graph->ninputs, (int)graph->noutputs,
                        (int)program->graph->ninputs, (int)program->graph->noutputs);
    }
    if (opdi_program_quicken(program, graph)) { return -1; }
    opd_graph_free(program->graph);
    program->graph = graph;
    program->changed = true;
    program->changes++;
    graph->program = program;
    graph->kept = NULL;
    opd_program_free(program);                    /* the reference that the copy had */
    return 0;
}
OPDI_COLD_BEGIN
static int opdi_program_named(const opd_program *program, bool input, const char *name) {
    const int count = input ? program->ninputs : program->noutputs;
    for (int i = 0; i < count; i++) {
        const char *const its = input ? opd_program_input_name(program, i) : opd_program_output_name(program, i);
        if (name && its && strcmp(its, name) == 0) { return i; }
    }
    return -1;
}
int opd_program_find_input(const opd_program *program, const char *name) {
    return program ? opdi_program_named(program, true, name) : -1;
}
int opd_program_find_output(const opd_program *program, const char *name) {
    return program ? opdi_program_named(program, false, name) : -1;
}
static const char *opdi_program_input_at(const void *program, int64_t i) {
    return opd_program_input_name((const opd_program *)program, (int)i);
}
int opd_program_run_named(const opd_program *program, const char *const *names, const opd_value *inputs, int ninputs,
                          opd_value *outputs, int cap) {
    if (!opd_ok()) { return -1; }
    if (!program || (ninputs && (!names || !inputs))) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_run_named: the %s NULL", program ? "names or inputs are"
                        : "program is");
    }
    opd_scope scope = opd_scope_open();
    opd_value *const all = (opd_value *)opdi_scope_alloc((size_t)(program->ninputs + 1) * sizeof *all);
    int rc = all ? 0 : -1;
    for (int i = 0; i < program->ninputs && rc == 0; i++) { all[i] = opd_value_default(); }
    for (int k = 0; k < ninputs && rc == 0; k++) {
        const int i = opdi_program_named(program, true, names[k]);
        if (i < 0) {
            char near_text[400];
            rc = opd_fail(OPD_ERROR_ARGUMENT, "opd_program_run_named: the program has no input '%.100s'%s",
                          names[k] ? names[k] : "NULL", opdi_did_you_mean(near_text, names[k], opdi_program_input_at,
                                                                          program, "opd_program_input_name"));
        } else { all[i] = inputs[k]; }
    }
    for (int i = 0; i < program->ninputs && rc == 0; i++) {
        if (all[i].tag != OPD_TAG_DEFAULT || program->inputs[i].constant) { continue; }
        rc = opd_fail(OPD_ERROR_ARGUMENT, "opd_program_run_named: the input '%s' is missing", program->inputs[i].name);
    }
    if (rc == 0) { rc = opd_program_run(program, all, program->ninputs, outputs, cap); }
    bool held = rc >= 0;
    for (int i = 0; i < cap && i < rc && held; i++) { held = opdi_value_hold(&outputs[i]) == 0; }
    opd_scope_close(&scope);
    for (int i = 0; i < cap && i < rc && held; i++) { outputs[i] = opdi_value_own(outputs[i]); }
    return held && opd_ok() ? rc : -1;
}
int opd_program_function(void *program, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    const opd_program *const called = (const opd_program *)program;
    opd_value results[OPD_TRANSFORM_OUTPUTS];
    opd_value values[OPD_MAX_ARGS];
    int tensors = 0;
    if (!called || ninputs > OPD_MAX_ARGS) {
        return opd_fail(OPD_ERROR_ARGUMENT, called ? "opd_program_function: the program has more than %d inputs"
                        : "opd_program_function: the program is NULL", OPD_MAX_ARGS);
    }
    if ((ninputs > 0 && !inputs) || !outputs) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_function: the %s are NULL", outputs ? "inputs" : "outputs");
    }
    if (opdi_function_outputs("opd_program_function", called->noutputs, "opd_program_run") < 0) { return -1; }
    for (int i = 0; i < ninputs; i++) { values[i] = opd_value_tensor(inputs[i]); }
    const int count = opd_program_run(called, values, ninputs, results, OPD_TRANSFORM_OUTPUTS);
    for (int i = 0; i < count; i++) {
        if (results[i].tag == OPD_TAG_TENSOR) { outputs[tensors++] = results[i].u.t; }
    }
    return count < 0 ? -1 : tensors;
}
OPDI_COLD_END
