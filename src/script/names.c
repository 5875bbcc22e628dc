#include "script.h"

//== functions that PyTorch has in Python ==============================================================================

/* Returns the function `name` of a text of this library (see opdi_preludes); reads the text if it was not read before.
   Returns NULL if there is no such function.  Returns NULL and sets an error on failure. */
OPDI_INTERNAL opdi_script_function *opdi_script_prelude(opd_script *script, const char *name) {
    char wanted[80];
    opdi_script_function *found = NULL;
    snprintf(wanted, sizeof wanted, "def %.70s(", name);
    for (int32_t i = 0; !found && opd_ok() && i < OPDI_SCRIPT_PRELUDES; i++) {
        opdi_script_unit *unit = script->preludes[i];
        if (!strstr(opdi_preludes[i].text, wanted)) { continue; }
        if (!unit && (unit = opdi_script_unit_add(script, "torch.nn.functional", "functional.py", opdi_preludes[i].text,
                                                  opdi_preludes[i].size)) != NULL) {
            script->preludes[i] = unit;
            script->bytes -= unit->text.length;    /* this text is not the script's own */
            unit->builtin = i + 1;
        }
        unit = unit ? opdi_script_unit_read(script, unit) : NULL;
        found = unit ? opdi_script_function_in(&unit->functions, name) : NULL;
    }
    return found;
}

//== names =============================================================================================================

/* Functions of Python and TorchScript, and the operators or builtins that they call.  If `builtin` is NULL, the
   compiler itself implements the function. */
static const struct { const char *name, *builtin; } opdi_script_globals[] = {
    {"len", "aten::len"}, {"min", "prim::min"}, {"max", "prim::max"}, {"abs", "prim::abs"}, {"sum", "aten::sum"},
    {"any", "aten::any"}, {"all", "aten::all"}, {"divmod", "aten::divmod"}, {"pow", "aten::pow"}, {"ord", "aten::ord"},
    {"chr", "aten::chr"}, {"bin", "aten::bin"}, {"hex", "aten::hex"}, {"oct", "aten::oct"}, {"round", "aten::round"},
    {"hash", "aten::hash"}, {"sorted", "aten::sorted"}, {"format", "aten::format"}, {"rangelist", "prim::rangelist"},
    {"print", NULL}, {"int", NULL}, {"float", NULL}, {"bool", NULL}, {"str", NULL}, {"complex", NULL}, {"list", NULL},
    {"tuple", NULL}, {"dict", NULL}, {"isinstance", NULL}, {"hasattr", NULL}, {"getattr", NULL}, {"range", NULL},
    {"enumerate", NULL}, {"zip", NULL}, {"annotate", NULL}, {"uninitialized", NULL}, {"unchecked_cast", NULL},
    {"fork", NULL}, {"wait", NULL}, {"reversed", NULL}};
static const char opdi_script_spaces[] = "torch ops math CONSTANTS __torch__ F nn typing ";

OPDI_INTERNAL opdi_gvalue *opdi_emit_number_named(opdi_emitter *task, const char *space, const char *name);

/* Compiles a value of the archive's constants, such as a tensor or a string that is not ASCII.  A list, tuple or dict
   is built from its elements.  Returns the value, or NULL and sets an error. */
static opdi_gvalue *opdi_emit_kept(opdi_emitter *task, const opd_value *value, const char *name, int depth) {
    static const struct { int32_t tag; int type; } simple[] = {
        {OPD_TAG_TENSOR, OPDI_GTYPE_TENSOR}, {OPD_TAG_STR, OPDI_GTYPE_STR}, {OPD_TAG_INT, OPDI_GTYPE_INT},
        {OPD_TAG_FLOAT, OPDI_GTYPE_FLOAT}, {OPD_TAG_BOOL, OPDI_GTYPE_BOOL}, {OPD_TAG_NONE, OPDI_GTYPE_NONE},
        {OPD_TAG_COMPLEX, OPDI_GTYPE_COMPLEX}, {OPD_TAG_DEVICE, OPDI_GTYPE_DEVICE}};
    const opd_cell_kind kind = opd_value_cell(*value);
    const opdi_cell *const cell = opdi_cell_of(value);
    for (size_t i = 0; i < sizeof simple / sizeof simple[0]; i++) {
        if (value->tag == simple[i].tag) { return opdi_emit_constant(task, *value, opdi_gtype_simple(simple[i].type)); }
    }
    if (kind == OPD_CELL_STR) { return opdi_emit_constant(task, *value, opdi_gtype_simple(OPDI_GTYPE_STR)); }
    if (kind == OPD_CELL_COMPLEX) { return opdi_emit_constant(task, *value, opdi_gtype_simple(OPDI_GTYPE_COMPLEX)); }
    if (kind == OPD_CELL_OBJECT && cell && opdi_packed_class(cell->klass->name)) {
        return opdi_emit_constant(task, *value, cell->klass->type);        /* the packed weights of a frozen quantized
                                                                              layer */
    }
    if (depth > 60 || (kind != OPD_CELL_LIST && kind != OPD_CELL_TUPLE && kind != OPD_CELL_DICT) || !cell ||
        (!cell->count && kind != OPD_CELL_TUPLE)) {
        (void)OPDI_EMIT_FAIL(task, "the constant '%s' is not known", name);
        return NULL;
    }
    const int count = (int)cell->count, dict = kind == OPD_CELL_DICT;
    opdi_gvalue **values = (opdi_gvalue **)opdi_emit_alloc(task, (size_t)(4 * count + 1) * sizeof *values);
    opdi_gvalue **apart = values + 2 * count;
    for (int i = 0; values && i < (dict ? 2 * count : count); i++) {
        const opd_value part = dict ? cell->u.values[i] : opdi_cell_at(cell, i);
        if (!(values[i] = opdi_emit_kept(task, &part, name, depth + 1))) { return NULL; }
        apart[dict ? i % 2 * count + i / 2 : i] = values[i];
    }
    if (!values) { return NULL; }
    if (kind == OPD_CELL_TUPLE) { return opdi_emit_tuple(task, values, count); }
    const opdi_gtype *const first = opdi_emit_common(task, apart, count);
    const opdi_gtype *const second = dict ? opdi_emit_common(task, apart + count, count) : first;
    if (!first || !second) {
        (void)OPDI_EMIT_FAIL(task, "the constant '%s' contains several types", name);
        return NULL;
    }
    return opdi_emit_construct(task, dict ? opdi_gtype_dict(task->space, first, second)
                               : opdi_gtype_list(task->space, first), values, dict ? 2 * count : count);
}
/* Compiles CONSTANTS.cN in an archive; `name` is "cN".  Returns the value, or NULL and sets an error. */
static opdi_gvalue *opdi_emit_kept_constant(opdi_emitter *task, const char *name) {
    char *end;
    const int64_t count = opd_value_cell(task->script->constants) == OPD_CELL_TUPLE
        ? opd_list_count(task->script->constants) : 0;
    const long place = *name == 'c' ? strtol(name + 1, &end, 10) : -1;
    if (place < 0 || place >= count) {
        (void)OPDI_EMIT_FAIL(task, "there is no constant '%s'", name);
        return NULL;
    }
    const opd_value value = opd_list_at(task->script->constants, place);
    return opdi_emit_kept(task, &value, name, 0);
}
/* Returns the meaning of a name that is not a variable.  If it has none, sets an error and returns the kind
   OPDI_SUGARED_NOTHING. */
OPDI_INTERNAL opdi_sugared opdi_emit_global(opdi_emitter *task, const char *name) {
    opdi_script_function *function = task->unit ? opdi_script_function_in(&task->unit->functions, name) : NULL;
    opdi_script_class *klass = function ? NULL : opdi_emit_class(task, name);
    opdi_sugared sugared = opdi_sugared_of(OPDI_SUGARED_NOTHING);
    if (!opd_ok()) { return sugared; }
    if (function) {
        sugared.kind = OPDI_SUGARED_FUNCTION;
        sugared.function = function;
        return sugared;
    }
    if (klass && opdi_script_class_resolve(task->script, klass)) {
        sugared.kind = OPDI_SUGARED_CLASS;
        sugared.klass = klass->gclass;
        return sugared;
    }
    if (strcmp(name, "inf") == 0 || strcmp(name, "nan") == 0 || strcmp(name, "infj") == 0) {
        return opdi_sugared_value(opdi_emit_number_named(task, "math", name));     /* the way in which archives write
                                                                                      inf and nan */
    }
    if (strcmp(name, "F") == 0) { return opdi_sugared_word(OPDI_SUGARED_SPACE, "torch.nn.functional"); }
    if (opdi_word_in(name, (int)strlen(name), opdi_script_spaces)) {
        return opdi_sugared_word(OPDI_SUGARED_SPACE, name);
    }
    for (size_t i = 0; i < sizeof opdi_script_globals / sizeof opdi_script_globals[0]; i++) {
        if (strcmp(opdi_script_globals[i].name, name) == 0) {
            return opdi_script_globals[i].builtin
                ? opdi_sugared_word(OPDI_SUGARED_BUILTIN, opdi_script_globals[i].builtin)
                : opdi_sugared_word(OPDI_SUGARED_SPECIAL, opdi_script_globals[i].name);
        }
    }
    const opdi_script_class *const inside = task->body && task->body->function ? task->body->function->owner : NULL;
    char alone[400];
    (void)OPDI_EMIT_FAIL(task, "undefined value %s%s", name, strcmp(name, "super") == 0
                         ? opdi_script_class_alone(inside, alone, sizeof alone) : "");
    return sugared;
}
/* Attributes of torch that are numbers: dtypes, layouts, memory formats. */
static const struct { const char *name; int value; } opdi_script_numbers[] = {
    {"uint8", 0}, {"int8", 1}, {"int16", 2}, {"short", 2}, {"int32", 3}, {"int", 3}, {"int64", 4}, {"long", 4},
    {"float16", 5}, {"half", 5}, {"float32", 6}, {"float", 6}, {"float64", 7}, {"double", 7}, {"complex32", 8},
    {"complex64", 9}, {"cfloat", 9}, {"complex128", 10}, {"cdouble", 10}, {"bool", 11}, {"bfloat16", 15},
    {"float8_e5m2", 23}, {"float8_e4m3fn", 24}, {"float8_e5m2fnuz", 25}, {"float8_e4m3fnuz", 26}, {"uint16", 27},
    {"uint32", 28}, {"uint64", 29}, {"float8_e8m0fnu", 44}, {"strided", 0}, {"sparse_coo", 1},
    {"contiguous_format", 0}, {"preserve_format", 1}, {"channels_last", 2}, {"channels_last_3d", 3}};
static const struct { const char *name; double value; } opdi_script_reals[] = {
    {"pi", 3.141592653589793}, {"e", 2.718281828459045}, {"tau", 6.283185307179586}, {"inf", 0}, {"nan", 0}};

/* Returns a constant for the number torch.`name` or math.`name`; `space` is "torch" or "math".  Returns NULL if there
   is no such number. */
OPDI_INTERNAL opdi_gvalue *opdi_emit_number_named(opdi_emitter *task, const char *space, const char *name) {
    for (size_t i = 0; strcmp(space, "torch") == 0 && i < sizeof opdi_script_numbers / sizeof opdi_script_numbers[0];
         i++) {
        if (strcmp(opdi_script_numbers[i].name, name) == 0) {
            return opdi_emit_int(task, opdi_script_numbers[i].value);
        }
    }
    for (size_t i = 0; i < sizeof opdi_script_reals / sizeof opdi_script_reals[0]; i++) {
        const double value = i == 3 ? OPDI_INF : i == 4 ? OPDI_INF - OPDI_INF : opdi_script_reals[i].value;
        if (strcmp(opdi_script_reals[i].name, name) == 0) {
            return opdi_emit_constant(task, opd_value_double(value), opdi_gtype_simple(OPDI_GTYPE_FLOAT));
        }
    }
    return NULL;
}
/* Namespaces of torch, and the prefix that their operators have in their names. */
static const struct { const char *space, *prefix; } opdi_script_prefixes[] = {
    {"torch", ""}, {"torch.nn.functional", ""}, {"torch._C._nn", ""}, {"torch.linalg", "linalg_"},
    {"torch.special", "special_"}, {"torch.fft", "fft_"}, {"math", ""}, {"torch.Tensor", ""},
    {"torch._C._VariableFunctions", ""}, {"torch.jit", ""}, {"torch.nn.init", ""}, {"torch.functional", ""},
    {"torch.autograd", ""}};
/* Returns the function `name` of namespace `space` if PyTorch implements it in Python; else NULL.  Always returns NULL
   in an archive and in the texts of this library: there, such a name means the operator.  (In an archive, PyTorch has
   already compiled the Python function.) */
static opdi_script_function *opdi_emit_python(opdi_emitter *task, const char *space, const char *name) {
    const char *names = strcmp(space, "torch.nn.init") == 0
        ? "constant_ ones_ zeros_ uniform_ normal_ xavier_uniform_ xavier_normal_ "
        : strcmp(space, "torch") == 0 || strcmp(space, "torch.functional") == 0
        ? "stft cdist norm tensordot unique unique_consecutive lu compiled_with_cxx11_abi " : "";
    if (task->script->archive || !task->unit || task->unit->builtin || !opdi_word_in(name, (int)strlen(name), names)) {
        return NULL;
    }
    return opdi_script_prelude(task->script, name);
}
/* Returns the meaning of the name `name` in the namespace `space`, or the kind OPDI_SUGARED_NOTHING if it has none. */
OPDI_INTERNAL opdi_sugared opdi_emit_within(opdi_emitter *task, const char *space, const char *name) {
    static const char inner[] = "nn functional jit linalg special fft _C _nn Tensor autograd _VariableFunctions init "
        "modules cuda backends utils ";
    const char *full = opdi_emit_join(task, space, ".", name);
    opdi_sugared sugared = opdi_sugared_of(OPDI_SUGARED_NOTHING);
    if (!full) { return sugared; }
    if (strcmp(space, "CONSTANTS") == 0) { return opdi_sugared_value(opdi_emit_kept_constant(task, name)); }
    if (strncmp(full, "__torch__.", 10) == 0) {
        opdi_script_class *klass = opdi_script_class_find(task->script, full);
        opdi_script_function *function = klass || !opd_ok() ? NULL : opdi_script_function_find(task->script, full);
        if (!opd_ok() || (klass && !opdi_script_class_resolve(task->script, klass))) { return sugared; }
        sugared.kind = klass ? OPDI_SUGARED_CLASS : function ? OPDI_SUGARED_FUNCTION : OPDI_SUGARED_SPACE;
        sugared.klass = klass ? klass->gclass : NULL;
        sugared.function = function;
        sugared.word = full;
        return sugared;
    }
    if (strcmp(full, "torch.ops") == 0) { return opdi_sugared_word(OPDI_SUGARED_SPACE, "ops"); }
    if (strcmp(space, "ops") == 0) { return opdi_sugared_word(OPDI_SUGARED_SPACE, full); }
    if (strncmp(space, "ops.", 4) == 0) {
        return opdi_sugared_word(OPDI_SUGARED_BUILTIN, opdi_emit_join(task, space + 4, "::", name));
    }
    if (strcmp(space, "torch") == 0 || strcmp(space, "math") == 0) {
        opdi_gvalue *number = opdi_emit_number_named(task, space, name);
        if (number || !opd_ok()) { return opdi_sugared_value(number); }
    }
    if (strcmp(space, "torch.jit") == 0) {
        const char *word = *name == '_' ? name + 1 : name;
        if (strcmp(name, "is_scripting") == 0 || opdi_word_in(word, (int)strlen(word),
            "annotate isinstance fork wait ")) { return opdi_sugared_word(OPDI_SUGARED_SPECIAL, word); }
    }
    if (strcmp(space, "nn") == 0) { return opdi_emit_within(task, "torch.nn", name); }
    if (strncmp(space, "torch", 5) == 0 && strcmp(full, "torch.fft.fft") != 0 &&
        opdi_word_in(name, (int)strlen(name), inner)) {
        return opdi_sugared_word(OPDI_SUGARED_SPACE, full);
    }
    sugared.function = strcmp(space, "torch.nn.functional") == 0 ? opdi_script_prelude(task->script, name)
        : opdi_emit_python(task, space, name);
    if (sugared.function) {
        sugared.kind = OPDI_SUGARED_FUNCTION;
        return sugared;
    }
    if (strcmp(full, "math.remainder") == 0) { return opdi_sugared_word(OPDI_SUGARED_BUILTIN, "aten::mathremainder"); }
    for (size_t i = 0; opd_ok() && i < sizeof opdi_script_prefixes / sizeof opdi_script_prefixes[0]; i++) {
        if (strcmp(opdi_script_prefixes[i].space, space) == 0) {
            return opdi_sugared_word(OPDI_SUGARED_BUILTIN,
                                     opdi_emit_join(task, "aten::", opdi_script_prefixes[i].prefix, name));
        }
    }
    if (strcmp(space, "torch.nn") == 0 && *name >= 'A' && *name <= 'Z') {
        (void)OPDI_EMIT_FAIL(task, "torch.nn.%s is a class of Python, which a source cannot make.  Either make its "
                             "parameters (torch.nn.Parameter in __init__) and call torch.nn.functional, or save the "
                             "module in Python (torch.jit.script(module).save(path)) and call opd_script_load", name);
        return sugared;
    }
    (void)OPDI_EMIT_FAIL(task, "module '%s' has no attribute '%s'", space, name);
    return sugared;
}

//== attributes ========================================================================================================

/* Properties of tensors, and the operators with one argument that compute them. */
static const struct { const char *name, *builtin; } opdi_script_properties[] = {
    {"dtype", "prim::dtype"}, {"device", "prim::device"}, {"shape", "aten::size"}, {"ndim", "aten::dim"},
    {"T", "aten::numpy_T"}, {"mT", "aten::mT"}, {"H", "aten::matrix_H"}, {"mH", "aten::mH"}, {"grad", "prim::grad"},
    {"data", "prim::data"}, {"is_cuda", "prim::is_cuda"}, {"is_cpu", "prim::is_cpu"}, {"is_meta", "prim::is_meta"},
    {"is_sparse", "prim::is_sparse"}, {"is_mkldnn", "prim::is_mkldnn"}, {"is_quantized", "prim::is_quantized"},
    {"layout", "prim::layout"}, {"requires_grad", "prim::requires_grad"}, {"real", "aten::real"},
    {"imag", "aten::imag"}, {"is_leaf", "aten::is_leaf"}, {"itemsize", "prim::itemsize"}, {"nbytes", "prim::nbytes"},
    {"name", "prim::name"}, {"retains_grad", "aten::retains_grad"}, {"is_ipu", "prim::is_ipu"},
    {"is_maia", "prim::is_maia"}, {"is_mps", "prim::is_mps"}, {"is_mtia", "prim::is_mtia"},
    {"is_nested", "prim::is_nested"}, {"is_sparse_csr", "prim::is_sparse_csr"}, {"is_vulkan", "prim::is_vulkan"},
    {"is_xla", "prim::is_xla"}, {"is_xpu", "prim::is_xpu"}};

/* Methods of tensors that stand for to(dtype), and the names of the dtypes. */
static const char *const opdi_script_casts[][2] = {
    {"short", "short"}, {"int", "int"}, {"long", "long"}, {"half", "half"}, {"float", "float"}, {"double", "double"},
    {"bool", "bool"}, {"bfloat16", "bfloat16"}, {"byte", "uint8"}, {"char", "int8"}, {"cfloat", "cfloat"},
    {"cdouble", "cdouble"}};

/* Compiles object.name; if `value` is not NULL, compiles object.name = value.  Returns the value of the attribute.  On
   failure, returns NULL and sets an error. */
OPDI_INTERNAL opdi_gvalue *opdi_emit_attribute(opdi_emitter *task, opdi_gvalue *object, const char *name,
                                               opdi_gvalue *value) {
    char place[400];
    opdi_gvalue *out = opdi_append_attribute(task->graph, object, name, value,
                                             value ? opdi_emit_place(task, place, sizeof place) : NULL);
    if (!out && !opd_ok()) { opdi_emit_placed(task); }
    return value && opd_ok() ? value : out;
}
/* Returns the attribute, method or constant `name` of an object's class.  If there is none, returns the kind
   OPDI_SUGARED_NOTHING without an error. */
static opdi_sugared opdi_emit_member(opdi_emitter *task, opdi_gvalue *self, const char *name) {
    opdi_gclass *gclass = opdi_emit_type(self)->klass;
    opdi_script_class *klass = (opdi_script_class *)gclass->user;
    opdi_sugared sugared = opdi_sugared_of(OPDI_SUGARED_NOTHING);
    if (klass && !opdi_script_class_resolve(task->script, klass)) { return sugared; }
    const int32_t slot = opdi_gclass_slot(gclass, name);
    if (slot >= 0) {
        opdi_gvalue *value = opdi_emit_attribute(task, self, gclass->attributes[slot].name, NULL);
        if (value) { opdi_emit_name(task, value, name); }
        return opdi_sugared_value(value);
    }
    sugared.function = klass ? opdi_script_function_in(&klass->methods, name) : NULL;
    if (sugared.function && sugared.function->def->op == OPDI_METHOD_PROPERTY) {
        return opdi_sugared_value(opdi_emit_method(task, self, name, NULL, 0));
    }
    if (sugared.function) {
        const bool bound = sugared.function->def->op != OPDI_METHOD_STATIC;
        sugared.kind = bound ? OPDI_SUGARED_METHOD : OPDI_SUGARED_FUNCTION;
        sugared.value = bound ? self : NULL;
        return sugared;
    }
    const opdi_syntax *body = klass ? klass->def->parts[1] : NULL;
    for (int i = 0; body && i < body->nparts; i++) {           /* a constant, such as x : Final[float] = 2.5 */
        const opdi_syntax *node = body->parts[i];
        const opdi_syntax *target = node->kind == OPDI_SYNTAX_ANNOTATED
            ? node->parts[0] : node->kind == OPDI_SYNTAX_ASSIGN
            ? node->parts[1] : NULL;
        const opdi_syntax *value = !target ? NULL : node->kind == OPDI_SYNTAX_ANNOTATED ? node->parts[2]
            : node->parts[0];
        if (value && target->kind == OPDI_SYNTAX_NAME && strcmp(target->word, name) == 0) {
            const opdi_gtype *type = node->kind == OPDI_SYNTAX_ANNOTATED ? opdi_emit_annotation(task, node->parts[1])
                : NULL;
            return opd_ok() ? opdi_sugared_value(opdi_emit_expr(task, value, type)) : sugared;
        }
    }
    return sugared;
}
/* Returns the method `name` of a value's class, or NULL if there is none. */
OPDI_INTERNAL opdi_script_function *opdi_emit_method_of(opdi_emitter *task, const opdi_gvalue *value,
                                                        const char *name) {
    opdi_script_class *klass = opdi_emit_is(value, OPDI_GTYPE_CLASS)
        ? (opdi_script_class *)opdi_emit_type(value)->klass->user : NULL;
    return klass && opdi_script_class_resolve(task->script, klass)
        ? opdi_script_function_in(&klass->methods, name) : NULL;
}
/* Compiles expressions such as x.max(dim=1).values.  If `tuple` has the results of an operator, returns the result that
   the operator's schema calls `name`; else NULL. */
static opdi_gvalue *opdi_emit_result(const opdi_gvalue *tuple, const char *name) {
    opdi_gvalue *const *inside = opdi_emit_constructed(tuple, OPDI_GNODE_TUPLE);
    const opdi_gnode *node = inside && tuple->node->nin ? inside[0]->node : NULL;
    if (!node || node->kind != OPDI_GNODE_OP || node->nout != tuple->node->nin) { return NULL; }
    const opd_schema *schema = node->op->schema;
    for (int i = 0; schema && i < node->nout; i++) {
        if (inside[i] == node->out[i] && i < schema->nreturns && schema->returns[i].name &&
            strcmp(schema->returns[i].name, name) == 0) { return inside[i]; }
    }
    return NULL;
}
/* Returns the object that a value has at compile time, if it is known: the script's own object, or an object that is an
   attribute of it, directly or indirectly.  Otherwise returns NULL. */
static const opdi_cell *opdi_emit_object_of(const opdi_emitter *task, const opdi_gvalue *value, int depth) {
    const opd_value *const self = &task->script->self;
    const opdi_gnode *node = value->node;
    if (opd_value_cell(*self) != OPD_CELL_OBJECT || depth > OPDI_SCRIPT_DEPTH) { return NULL; }
    if (task->graph->ninputs && value == task->graph->inputs[0]) {
        return opdi_cell_of(self)->klass == opdi_emit_type(value)->klass ? opdi_cell_of(self) : NULL;
    }
    if (!node || node->kind != OPDI_GNODE_BUILTIN || node->nin != 1) { return NULL; }
    const opdi_cell *inner = opdi_emit_object_of(task, node->in[0], depth + 1);
    if (!inner || strncmp(node->builtin->schema, "prim::unchecked_cast", 20) == 0) { return inner; }
    const int32_t slot = node->attribute && strncmp(node->builtin->schema, "prim::GetAttr", 13) == 0
        ? opdi_gclass_slot(inner->klass, node->attribute) : -1;
    const opd_value part = slot >= 0 && slot < inner->count ? opdi_cell_at(inner, slot) : opd_value_none();
    return opd_value_cell(part) == OPD_CELL_OBJECT ? opdi_cell_of(&part) : NULL;
}
/* Returns whether a value is a module of a container that an index or key selects at run time. */
OPDI_INTERNAL bool opdi_emit_is_chosen(const opdi_gvalue *value) {
    return value->node && value->node->kind == OPDI_GNODE_BUILTIN && value->node->builtin &&
        strcmp(value->node->builtin->schema, "prim::ModuleContainerIndex") == 0;
}
/* If the static type of a module is an interface, returns the module with the type of its class, so that its methods
   are found.  Other values, and modules that are selected at run time, are returned as they are. */
OPDI_INTERNAL opdi_gvalue *opdi_emit_actual(opdi_emitter *task, opdi_gvalue *value) {
    if (!opdi_emit_is_interface(opdi_emit_type(value)) || opdi_emit_is_chosen(value)) { return value; }
    const opdi_cell *object = opdi_emit_object_of(task, value, 0);
    opdi_gvalue *out = object ? opdi_emit_builtin_1(task, "prim::unchecked_cast", value, object->klass->type) : NULL;
    if (!out && opd_ok()) { (void)OPDI_EMIT_FAIL(task, "the class that implements this interface is not known"); }
    return out;
}
/* Compiles member.name or, if `value` is true, member.value, where `member` is a member of an enum.  Returns the
   result, or NULL and sets an error. */
static opdi_gvalue *opdi_emit_enum_part(opdi_emitter *task, opdi_gvalue *member, bool value) {
    opdi_gclass *gclass = opdi_emit_type(member)->klass;
    opdi_script_class *klass = (opdi_script_class *)gclass->user;
    if (!klass || !opdi_script_class_resolve(task->script, klass) || gclass->nattributes != 2) {
        if (opd_ok()) { (void)OPDI_EMIT_FAIL(task, "the enum '%s' is not known", gclass->name); }
        return NULL;
    }
    const opdi_gtype *type = gclass->attributes[value].type;
    task->nowhere = true;
    opdi_gvalue *part = opdi_emit_builtin_1(task, !value ? "prim::EnumName" : type->kind == OPDI_GTYPE_INT
                                            ? "prim::EnumValue.int" : type->kind == OPDI_GTYPE_FLOAT
                                            ? "prim::EnumValue.float" : "prim::EnumValue.str", member, type);
    task->nowhere = false;
    return part;
}
/* Returns the meaning of value.name.  On failure, sets an error and returns the kind OPDI_SUGARED_NOTHING. */
OPDI_INTERNAL opdi_sugared opdi_emit_attr_of(opdi_emitter *task, opdi_gvalue *value, const char *name) {
    if (!(value = opdi_emit_actual(task, value))) { return opdi_sugared_of(OPDI_SUGARED_NOTHING); }
    const opdi_gtype *type = opdi_emit_type(value);
    opdi_sugared sugared = opdi_sugared_of(OPDI_SUGARED_NOTHING);
    char said[200], alone[400];
    if (type->kind == OPDI_GTYPE_CLASS && type->klass->kind == OPDI_CLASS_ENUM &&
        (strcmp(name, "name") == 0 || strcmp(name, "value") == 0)) {
        return opdi_sugared_value(opdi_emit_enum_part(task, value, *name == 'v'));
    }
    if (type->kind == OPDI_GTYPE_CLASS) {
        sugared = opdi_emit_member(task, value, name);
        if (sugared.kind == OPDI_SUGARED_NOTHING && opd_ok()) {
            (void)OPDI_EMIT_FAIL(task, "'%s' object has no attribute or method '%s'%s",
                                 opdi_emit_type_text(type, said, sizeof said), name,
                                 opdi_script_class_alone((opdi_script_class *)type->klass->user, alone, sizeof alone));
        }
        return sugared;
    }
    if (type->kind == OPDI_GTYPE_TUPLE && type->klass) {
        const int32_t slot = opdi_gclass_slot(type->klass, name);
        opdi_gvalue *const *inside = opdi_emit_constructed(value, OPDI_GNODE_TUPLE);
        if (slot >= 0 && inside) { return opdi_sugared_value(inside[slot]); }
        if (slot >= 0) {
            return opdi_sugared_value(opdi_emit_tuple_index(task, value, opdi_emit_int(task, slot), type->parts[slot]));
        }
    }
    if (type->kind == OPDI_GTYPE_TUPLE && !type->klass && opdi_emit_result(value, name)) {
        return opdi_sugared_value(opdi_emit_result(value, name));
    }
    for (size_t i = 0; type->kind == OPDI_GTYPE_TENSOR &&
         i < sizeof opdi_script_properties / sizeof opdi_script_properties[0]; i++) {
        if (strcmp(opdi_script_properties[i].name, name) == 0) {
            task->nowhere = *opdi_script_properties[i].builtin == 'p';
            sugared = opdi_sugared_value(opdi_emit_op1(task, opdi_script_properties[i].builtin, value));
            task->nowhere = false;
            return sugared;
        }
    }
    if (type->kind == OPDI_GTYPE_DEVICE && (strcmp(name, "type") == 0 || strcmp(name, "index") == 0)) {
        return opdi_sugared_value(opdi_emit_op1(task, *name == 't' ? "prim::type" : "prim::index", value));
    }
    for (size_t i = 0; type->kind == OPDI_GTYPE_TENSOR && i < sizeof opdi_script_casts / sizeof opdi_script_casts[0];
         i++) {
        if (strcmp(opdi_script_casts[i][0], name) != 0) { continue; }
        sugared = opdi_sugared_word(OPDI_SUGARED_BUILTIN, opdi_emit_join(task, "$", opdi_script_casts[i][1], ""));
        sugared.value = value;
        return sugared;
    }
    if (type->kind == OPDI_GTYPE_TENSOR && strcmp(name, "tolist") == 0) {
        sugared = opdi_sugared_word(OPDI_SUGARED_BUILTIN, "prim::tolist");
        sugared.value = value;
        return sugared;
    }
    const char *builtin = opdi_emit_join(task, "aten::", type->kind == OPDI_GTYPE_TENSOR && strcmp(name, "type") == 0
                                         ? "to" : name, "");
    if (type->kind == OPDI_GTYPE_OPTIONAL || !builtin || !opdi_emit_has(builtin)) {
        if (opd_ok()) {
            (void)OPDI_EMIT_FAIL(task, "'%s' object has no attribute or method '%s'.%s",
                                 opdi_emit_type_text(type, said, sizeof said), name, type->kind == OPDI_GTYPE_OPTIONAL
                                 ? " The value may be None: check it with `is not None` first" : "");
        }
        return sugared;
    }
    sugared = opdi_sugared_word(OPDI_SUGARED_BUILTIN, builtin);
    sugared.value = value;
    return sugared;
}

/* Finds the types of a function's parameters and of its result from the annotations.  Returns 0, or -1 and sets an
   error. */
OPDI_INTERNAL int opdi_script_function_resolve(opdi_emitter *task, opdi_script_function *function) {
    const opdi_syntax *def = function->def;
    const int count = def->nparts - 2;
    opdi_script_unit *const unit = task->unit;
    const opdi_syntax *const at = task->at;
    if (function->formals) { return 0; }
    if (count > OPDI_SCRIPT_ARGS) {
        return OPDI_EMIT_FAIL(task, "a function has %d parameters, which is more than can be used", count);
    }
    opdi_arena *arena = function->around ? task->arena : &task->script->arena;
    opdi_script_formal *formals = (opdi_script_formal *)opdi_arena_alloc(arena, (size_t)(count + 1) * sizeof *formals);
    if (!formals) { return -1; }
    task->unit = function->unit;
    int rc = 0;
    for (int i = 0; !rc && i < count; i++) {
        const opdi_syntax *param = def->parts[2 + i];
        formals[i].name = param->word;
        formals[i].otherwise = param->parts[1];
        formals[i].keyword_only = param->op == 1;
        const bool self = i < opdi_script_function_selves(function);
        formals[i].type = param->parts[0] ? opdi_emit_annotation(task, param->parts[0])
            : self ? function->owner->gclass->type : opdi_gtype_simple(OPDI_GTYPE_TENSOR);
        rc = formals[i].type ? 0 : -1;
    }
    if (!rc && def->parts[0]) { rc = (function->result = opdi_emit_annotation(task, def->parts[0])) ? 0 : -1; }
    task->unit = unit;
    task->at = at;
    if (rc) { return -1; }
    function->nformals = count;
    function->formals = formals;
    return 0;
}
