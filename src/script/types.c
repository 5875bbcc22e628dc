#include "script.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>script_types scripts: variables, names of classes and functions, annotations; adding nodes
//
//  A script is compiled into graphs: one for each requested method, with the functions that it calls inlined.  While it
//  is compiled, an expression means either a value of the graph, or something that exists only at compile time, such as
//  a class (opdi_sugared).
//----------------------------------------------------------------------------------------------------------------------

//== types of values, and memory =======================================================================================

OPDI_INTERNAL void *opdi_emit_alloc(opdi_emitter *task, size_t size) {
    void *memory = opdi_arena_alloc(task->arena, size + 1);
    if (memory) { memset(memory, 0, size + 1); }
    return memory;
}
OPDI_INTERNAL const opdi_gtype *opdi_emit_type(const opdi_gvalue *value) {
    return opdi_gvalue_gtype(value->graph, value);
}
OPDI_INTERNAL bool opdi_emit_is(const opdi_gvalue *value, int kind) {
    const opdi_gtype *type = value ? opdi_emit_type(value) : NULL;
    return type && type->kind == kind;
}
/* Writes a type to buf[cap] as an annotation, and returns `buf`. */
OPDI_INTERNAL const char *opdi_emit_type_text(const opdi_gtype *type, char *buf, size_t cap) {
    opdi_text text = opdi_text_of(buf, cap);
    opdi_gtype_print(&text, type, true);
    return buf;
}
OPDI_INTERNAL opdi_sugared opdi_sugared_of(opdi_sugared_kind kind) {
    opdi_sugared sugared;
    memset(&sugared, 0, sizeof sugared);
    sugared.kind = kind;
    return sugared;
}
OPDI_INTERNAL opdi_sugared opdi_sugared_value(opdi_gvalue *value) {
    opdi_sugared sugared = opdi_sugared_of(value ? OPDI_SUGARED_VALUE : OPDI_SUGARED_NOTHING);
    sugared.value = value;
    return sugared;
}
OPDI_INTERNAL opdi_sugared opdi_sugared_word(opdi_sugared_kind kind, const char *word) {
    opdi_sugared sugared = opdi_sugared_of(word ? kind : OPDI_SUGARED_NOTHING);
    sugared.word = word;
    return sugared;
}
/* Returns the three texts joined into one, in the compiler's arena, or NULL if memory runs out. */
OPDI_INTERNAL const char *opdi_emit_join(opdi_emitter *task, const char *first, const char *second, const char *third) {
    const size_t a = strlen(first), b = strlen(second), c = strlen(third);
    char *text = (char *)opdi_emit_alloc(task, a + b + c + 1);
    if (!text) { return NULL; }
    memcpy(text, first, a);
    memcpy(text + a, second, b);
    memcpy(text + a + b, third, c);
    return text;
}

/* Checks that the graphs of a script have not become too large for its text.  Inlined functions and unrolled loops
   repeat a text, so that a few lines can have more values than the memory can hold.  Returns 0, or -1 and sets an
   error. */
OPDI_INTERNAL int opdi_emit_afford(opdi_emitter *task) {
    const uint64_t most = OPDI_SCRIPT_VALUES + 16 * task->script->bytes;
    if (task->script->values + (uint64_t)task->graph->next_id <= most) { return 0; }
    return OPDI_EMIT_FAIL(task, "the functions that are called and the loops that are unrolled here have more than "
                          "%llu values, which is too much for a text of %llu bytes", (unsigned long long)most,
                          (unsigned long long)task->script->bytes);
}

//== variables =========================================================================================================

OPDI_INTERNAL opdi_script_var *opdi_script_frame_find(const opdi_script_frame *frame, const char *name) {
    return (opdi_script_var *)opdi_index_named(&frame->vars_named, name);
}
/* Returns the variable `name` of a frame or of its outer frames, or NULL if there is none. */
OPDI_INTERNAL opdi_script_var *opdi_script_var_find(const opdi_script_frame *frame, const char *name) {
    for (; frame; frame = frame->up) {
        opdi_script_var *var = frame->vars ? opdi_script_frame_find(frame, name) : NULL;
        if (var && var->sugared.kind != OPDI_SUGARED_NOTHING) { return var; }
        if (var) { return NULL; }                  /* the variable was deleted, or only one block of a branch has set
                                                      it */
    }
    return NULL;
}
/* Sets a variable in the current frame, without a check of its type.  Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int opdi_script_var_put(opdi_emitter *task, const char *name, opdi_sugared sugared,
                                      const opdi_gtype *type) {
    opdi_script_var *var = opdi_script_frame_find(task->frame, name);
    if (!var) {
        if (!(var = (opdi_script_var *)opdi_emit_alloc(task, sizeof *var)) ||
            opdi_index_set(&task->frame->vars_named, task->arena, name, strlen(name), var)) { return -1; }
        var->name = name;
        var->next = task->frame->vars;
        task->frame->vars = var;
    }
    var->sugared = sugared;
    var->type = type;
    return 0;
}
OPDI_INTERNAL int opdi_script_var_value(opdi_emitter *task, const char *name, opdi_gvalue *value) {
    return value ? opdi_script_var_put(task, name, opdi_sugared_value(value), opdi_emit_type(value)) : -1;
}
OPDI_INTERNAL void opdi_script_frame_enter(opdi_emitter *task, opdi_script_frame *frame) {
    memset(frame, 0, sizeof *frame);
    frame->up = task->frame;
    task->frame = frame;
}

//== names of classes and functions ====================================================================================

OPDI_INTERNAL opdi_script_unit *opdi_script_unit_read(opd_script *script, opdi_script_unit *unit);

/* Returns the text whose names have the prefix prefix[length]; reads the text if it was not read before.  Returns NULL
   if there is none.  Returns NULL and sets an error on failure. */
OPDI_INTERNAL opdi_script_unit *opdi_script_unit_find(opd_script *script, const char *prefix, size_t length) {
    char name[1024];
    opdi_script_unit *unit = (opdi_script_unit *)opdi_index_get(&script->units_named, prefix, length);
    if (unit) { return opdi_script_unit_read(script, unit); }
    if (!script->archive || length >= sizeof name) { return NULL; }
    memcpy(name, prefix, length);
    name[length] = 0;
    unit = script->find(script, name);
    return unit ? opdi_script_unit_read(script, unit) : NULL;
}
/* Returns the first of the functions that has the name, or NULL. */
OPDI_INTERNAL opdi_script_function *opdi_script_function_in(const opdi_script_functions *functions, const char *name) {
    return (opdi_script_function *)opdi_index_named(&functions->index, name);
}
/* Returns the function with the qualified name `name`, such as "__torch__.f", or NULL if there is none. */
OPDI_INTERNAL opdi_script_function *opdi_script_function_find(opd_script *script, const char *name) {
    const char *dot = strrchr(name, '.');
    opdi_script_unit *unit = dot ? opdi_script_unit_find(script, name, (size_t)(dot - name)) : NULL;
    return unit ? opdi_script_function_in(&unit->functions, dot + 1) : NULL;
}
/* Returns the class with the qualified name `name`, such as "__torch__.M".  Returns NULL without an error if there is
   none. */
OPDI_INTERNAL opdi_script_class *opdi_script_class_find(opd_script *script, const char *name) {
    const char *dot = strrchr(name, '.');
    opdi_script_unit *unit = dot ? opdi_script_unit_find(script, name, (size_t)(dot - name)) : NULL;
    return unit ? (opdi_script_class *)opdi_index_named(&unit->classes_named, dot + 1) : NULL;
}

//== annotations =======================================================================================================

OPDI_INTERNAL const opdi_gtype *opdi_emit_annotation(opdi_emitter *task, const opdi_syntax *node);
OPDI_INTERNAL opdi_script_class *opdi_script_class_resolve(opd_script *script, opdi_script_class *klass);

/* Writes a dotted name, such as "torch.Tensor", to buf[cap].  Returns false if the node is not a dotted name, or if the
   name is too long. */
OPDI_INTERNAL bool opdi_syntax_dotted(const opdi_syntax *node, char *buf, size_t cap) {
    size_t from = cap;                            /* the name is written from its end */
    for (char after = 0; node->kind == OPDI_SYNTAX_NAME || node->kind == OPDI_SYNTAX_ATTR; after = '.') {
        const size_t length = strlen(node->word);
        if (length + 1 > from) { return false; }
        buf[--from] = after;
        memcpy(buf + (from -= length), node->word, length);
        if (node->kind == OPDI_SYNTAX_NAME) {
            memmove(buf, buf + from, cap - from);
            return true;
        }
        node = node->parts[0];
    }
    return false;
}
/* Returns the class that `name` means in the text that is being compiled, or NULL if there is none. */
OPDI_INTERNAL opdi_script_class *opdi_emit_class(opdi_emitter *task, const char *name) {
    char full[1200];
    opdi_script_class *klass = strchr(name, '.') ? opdi_script_class_find(task->script, name) : NULL;
    if (klass || !task->unit) { return klass; }
    snprintf(full, sizeof full, "%s.%s", task->unit->prefix, name);
    return opdi_script_class_find(task->script, full);
}
/* The names that types without parts have in annotations. */
static const struct { const char *word; int kind; } opdi_script_annotations[] = {
    {"Tensor", OPDI_GTYPE_TENSOR}, {"int", OPDI_GTYPE_INT}, {"float", OPDI_GTYPE_FLOAT}, {"bool", OPDI_GTYPE_BOOL},
    {"str", OPDI_GTYPE_STR}, {"complex", OPDI_GTYPE_COMPLEX}, {"number", OPDI_GTYPE_NUMBER},
    {"Scalar", OPDI_GTYPE_NUMBER},
    {"NoneType", OPDI_GTYPE_NONE}, {"Any", OPDI_GTYPE_ANY}, {"Device", OPDI_GTYPE_DEVICE},
    {"device", OPDI_GTYPE_DEVICE},
    {"Generator", OPDI_GTYPE_GENERATOR}, {"Stream", OPDI_GTYPE_STREAM}, {"list", OPDI_GTYPE_ANYLIST},
    {"tuple", OPDI_GTYPE_ANYTUPLE}, {"AnyList", OPDI_GTYPE_ANYLIST}, {"AnyTuple", OPDI_GTYPE_ANYTUPLE},
    {"AnyClassType", OPDI_GTYPE_ANYCLASS}, {"AnyEnumType", OPDI_GTYPE_ANYENUM}, {"Storage", OPDI_GTYPE_STORAGE},
    {"dtype", OPDI_GTYPE_INT}, {"ScalarType", OPDI_GTYPE_INT}, {"layout", OPDI_GTYPE_INT}, {"Layout", OPDI_GTYPE_INT},
    {"memory_format", OPDI_GTYPE_INT}, {"MemoryFormat", OPDI_GTYPE_INT}, {"LongTensor", OPDI_GTYPE_TENSOR},
    {"Parameter", OPDI_GTYPE_TENSOR}, {"QScheme", OPDI_GTYPE_QSCHEME}, {"Capsule", OPDI_GTYPE_CAPSULE}};
/* Returns the type that `name` means in an annotation, or NULL and sets an error. */
static const opdi_gtype *opdi_emit_type_named(opdi_emitter *task, const char *name) {
    opdi_script_class *klass = opdi_emit_class(task, name);
    const char *dot = strrchr(name, '.');
    if (klass) { return opdi_script_class_resolve(task->script, klass) ? klass->gclass->type : NULL; }
    if (!opd_ok()) { return NULL; }
    const bool known = !dot || strncmp(name, "torch.", 6) == 0 || strncmp(name, "typing.", 7) == 0 ||
        strncmp(name, "nn.", 3) == 0;
    for (size_t i = 0; known && i < sizeof opdi_script_annotations / sizeof opdi_script_annotations[0]; i++) {
        if (strcmp(opdi_script_annotations[i].word, dot ? dot + 1 : name) == 0) {
            return opdi_gtype_simple(opdi_script_annotations[i].kind);
        }
    }
    if (strncmp(name, "__torch__.", 10) == 0) {                /* an unknown class is an error only when it is used */
        opdi_gclass *gclass = opdi_gclass_find(task->space, name);
        if (!gclass && (gclass = opdi_gclass_new(task->space, name, OPDI_CLASS_OBJECT)) != NULL) {
            gclass->open = true;
        }
        return gclass ? gclass->type : NULL;
    }
    (void)OPDI_EMIT_FAIL(task, "Unknown type name '%s'", name);
    return NULL;
}
/* Returns the type of an annotation NAME[parts], such as List[int], or NULL and sets an error. */
static const opdi_gtype *opdi_emit_applied(opdi_emitter *task, const opdi_syntax *node) {
    char full[256];
    const opdi_gtype *parts[64];
    const opdi_syntax *const *written = (const opdi_syntax *const *)&node->parts[1];
    int count = node->nparts - 1;
    if (!opdi_syntax_dotted(node->parts[0], full, sizeof full)) {
        (void)OPDI_EMIT_FAIL(task, "this is not a type");
        return NULL;
    }
    const char *name = strrchr(full, '.') ? strrchr(full, '.') + 1 : full;
    const bool is_tuple = strcmp(name, "Tuple") == 0 || strcmp(name, "tuple") == 0;
    if (count == 1 && written[0]->kind == OPDI_SYNTAX_TUPLE) {
        count = written[0]->nparts;
        written = (const opdi_syntax *const *)written[0]->parts;
    }
    if (count > 64) {
        (void)OPDI_EMIT_FAIL(task, "a type has %d parts, which is more than can be used", count);
        return NULL;
    }
    for (int i = 0; i < count; i++) { if (!(parts[i] = opdi_emit_annotation(task, written[i]))) { return NULL; } }
    if (is_tuple) { return opdi_gtype_tuple(task->space, parts, count); }
    if (count == 1 && (strcmp(name, "List") == 0 || strcmp(name, "list") == 0 ||
                       strncmp(name, "BroadcastingList", 16) == 0)) { return opdi_gtype_list(task->space, parts[0]); }
    if (count == 1 && strcmp(name, "Optional") == 0) { return opdi_gtype_optional(task->space, parts[0]); }
    if (count == 1 && (strcmp(name, "Final") == 0 || strcmp(name, "Union") == 0)) { return parts[0]; }
    if (count == 1 && strcmp(name, "Future") == 0) { return parts[0]; }          /* a future is its result (see
                                                                                    opdi_emit_fork) */
    if (count == 2 && (strcmp(name, "Dict") == 0 || strcmp(name, "dict") == 0)) {
        return opdi_gtype_dict(task->space, parts[0], parts[1]);
    }
    if (count == 2 && strcmp(name, "Union") == 0 &&
        (parts[0]->kind == OPDI_GTYPE_NONE || parts[1]->kind == OPDI_GTYPE_NONE)) {
        return opdi_gtype_optional(task->space, parts[parts[0]->kind == OPDI_GTYPE_NONE]);
    }
    if (count > 1 && strcmp(name, "Union") == 0) {
        return opdi_gtype_make(task->space, OPDI_GTYPE_UNION, parts, count, NULL, NULL);
    }
    (void)OPDI_EMIT_FAIL(task, "Unknown type constructor %s", name);
    return NULL;
}
/* Returns the type of an annotation, or NULL and sets an error. */
OPDI_INTERNAL const opdi_gtype *opdi_emit_annotation(opdi_emitter *task, const opdi_syntax *node) {
    char name[1024];
    const opdi_syntax *const before = task->at;
    const opdi_gtype *type = NULL;
    task->at = node;
    if (node->kind == OPDI_SYNTAX_NONE) { type = opdi_gtype_simple(OPDI_GTYPE_NONE); }
    else if (node->kind == OPDI_SYNTAX_SUBSCRIPT) { type = opdi_emit_applied(task, node); }
    else if (node->kind == OPDI_SYNTAX_TEXT) { type = opdi_emit_type_named(task, node->word); }
    else if (node->kind == OPDI_SYNTAX_TUPLE && !node->nparts) { type = opdi_gtype_tuple(task->space, NULL, 0); }
    else if (node->kind == OPDI_SYNTAX_BINARY && node->op == OPDI_SCRIPT_OP_OR) {
        const opdi_gtype *first = opdi_emit_annotation(task, node->parts[0]);
        const opdi_gtype *second = first ? opdi_emit_annotation(task, node->parts[1]) : NULL;
        if (second && first->kind == OPDI_GTYPE_NONE) { type = opdi_gtype_optional(task->space, second); }
        else if (second && second->kind == OPDI_GTYPE_NONE) { type = opdi_gtype_optional(task->space, first); }
        else if (second) {
            const opdi_gtype *parts[2] = {NULL, NULL};
            parts[0] = first;
            parts[1] = second;
            type = opdi_gtype_make(task->space, OPDI_GTYPE_UNION, parts, 2, NULL, NULL);
        }
    } else if (opdi_syntax_dotted(node, name, sizeof name)) { type = opdi_emit_type_named(task, name); }
    else { (void)OPDI_EMIT_FAIL(task, "Expression of this kind cannot be used in a type expression"); }
    task->at = before;
    return type;
}

//== texts and classes =================================================================================================

/* Adds a text to the script and returns it.  The text is parsed when a name in it is first needed.  Returns NULL if
   memory runs out. */
OPDI_INTERNAL opdi_script_unit *opdi_script_unit_add(opd_script *script, const char *prefix, const char *name,
                                                     const char *text, size_t length) {
    opdi_script_unit *unit = (opdi_script_unit *)opdi_arena_alloc(&script->arena, sizeof *unit);
    if (!unit) { return NULL; }
    memset(unit, 0, sizeof *unit);
    unit->prefix = opdi_arena_copy(&script->arena, prefix, strlen(prefix));
    unit->text.name = opdi_arena_copy(&script->arena, name, strlen(name));
    unit->text.text = opdi_arena_copy(&script->arena, text, length);
    unit->text.length = length;
    if (!unit->prefix || !unit->text.name || !unit->text.text) { return NULL; }
    unit->next = script->units;
    script->units = unit;
    script->bytes += length;
    return opdi_index_set(&script->units_named, &script->arena, unit->prefix, strlen(unit->prefix), unit) ? NULL : unit;
}
static opdi_script_function *opdi_script_function_new(opd_script *script, opdi_script_unit *unit,
                                                      const opdi_syntax *def, opdi_script_class *owner) {
    opdi_script_function *function = (opdi_script_function *)opdi_arena_alloc(&script->arena, sizeof *function);
    if (!function) { return NULL; }
    memset(function, 0, sizeof *function);
    function->name = def->word;
    function->def = def;
    function->owner = owner;
    function->unit = unit;
    opdi_script_functions *const all = owner ? &owner->methods : &unit->functions;
    if (!opdi_script_function_in(all, function->name) &&
        opdi_index_set(&all->index, &script->arena, function->name, strlen(function->name), function)) { return NULL; }
    if (all->last) { all->last->next = function; } else { all->first = function; }
    return all->last = function;
}
/* Returns the number of parameters that a method call sets itself: 1 (self), or 0 if the method is static or the
   function is not a method. */
OPDI_INTERNAL int opdi_script_function_selves(const opdi_script_function *function) {
    return function->owner && function->def->op != OPDI_METHOD_STATIC;
}
/* The names of the base classes by which a class becomes a module. */
OPDI_INTERNAL const char opdi_script_modules[] =
    "Module nn.Module torch.nn.Module ScriptModule torch.jit.ScriptModule ";
/* Returns advice for the error that a class has no member of some name.  If the class has a base class, the advice says
   that TorchScript ignores base classes; it is written to buf[cap].  Otherwise returns "". */
OPDI_INTERNAL const char *opdi_script_class_alone(const opdi_script_class *klass, char *buf, size_t cap) {
    char base[128];
    if (!klass || klass->gclass->kind != OPDI_CLASS_OBJECT || !klass->def->parts[0] ||
        !opdi_syntax_dotted(klass->def->parts[0], base, sizeof base) || strcmp(base, "object") == 0) { return ""; }
    (void)snprintf(buf, cap, ". In TorchScript, a class inherits nothing from '%s': write the needed members into "
                   "'%.100s'", base, klass->def->word);
    return buf;
}
/* Declares a class of a text.  Its members are resolved when the class is first used.  Returns 0, or -1 and sets an
   error. */
static int opdi_script_class_new(opd_script *script, opdi_script_unit *unit, const opdi_syntax *def) {
    char full[1200], base[128];
    opdi_script_class *klass = (opdi_script_class *)opdi_arena_alloc(&script->arena, sizeof *klass);
    if (!klass) { return -1; }
    memset(klass, 0, sizeof *klass);
    if ((size_t)snprintf(full, sizeof full, "%s.%s", unit->prefix, def->word) >= sizeof full) {
        return opdi_script_text_fail(def->text, def->at, 1, "the name of the class is too long");
    }
    *base = 0;
    if (def->parts[0]) { (void)opdi_syntax_dotted(def->parts[0], base, sizeof base); }
    const opdi_gclass_kind kind = strcmp(base, "NamedTuple") == 0 ? OPDI_CLASS_NAMEDTUPLE
        : opdi_word_in(base, (int)strlen(base), opdi_script_modules) ? OPDI_CLASS_MODULE
        : strcmp(base, "Enum") == 0 ? OPDI_CLASS_ENUM
        : strcmp(base, "Interface") == 0 || strcmp(base, "ModuleInterface") == 0 ? OPDI_CLASS_INTERFACE
        : OPDI_CLASS_OBJECT;
    klass->gclass = opdi_gclass_find(script->space, full);
    if (klass->gclass && klass->gclass->user) {
        return opdi_script_text_fail(def->text, def->at, 1, "class '%s' already defined", full);
    }
    if (!klass->gclass && !(klass->gclass = opdi_gclass_new(script->space, full, kind))) { return -1; }
    klass->gclass->kind = kind;
    klass->gclass->open = false;
    klass->gclass->user = klass;
    klass->def = def;
    klass->unit = unit;
    klass->next = unit->classes;
    unit->classes = klass;
    if (opdi_index_set(&unit->classes_named, &script->arena, def->word, strlen(def->word), klass)) { return -1; }
    return 0;
}
/* Parses a text and declares its classes and functions, unless this was done before.  Returns the text, or NULL and
   sets an error. */
OPDI_INTERNAL opdi_script_unit *opdi_script_unit_read(opd_script *script, opdi_script_unit *unit) {
    if (unit->tree) { return unit; }
    opdi_syntax *tree = opdi_script_parse(&script->arena, &unit->text);
    for (int i = 0; tree && i < tree->nparts; i++) {
        const opdi_syntax *node = tree->parts[i];
        if (node->kind == OPDI_SYNTAX_CLASS) { if (opdi_script_class_new(script, unit, node)) { return NULL; } }
        else if (node->kind == OPDI_SYNTAX_DEF) {
            if (opdi_script_function_in(&unit->functions, node->word)) {
                (void)opdi_script_text_fail(node->text, node->at, 1, "function '%s' already defined", node->word);
                return NULL;
            }
            if (!opdi_script_function_new(script, unit, node, NULL)) { return NULL; }
        } else if (node->kind != OPDI_SYNTAX_EXPR || node->parts[0]->kind != OPDI_SYNTAX_TEXT) {
            (void)opdi_script_text_fail(node->text, node->at, node->length, "expected def or class here%s",
                                        node->kind != OPDI_SYNTAX_ASSIGN && node->kind != OPDI_SYNTAX_ANNOTATED ? ""
                                        : "; a script has no global variables, pass the value as an argument or write "
                                          "it "
                                        "where it is used");
            return NULL;
        }
    }
    unit->tree = tree;
    return tree ? unit : NULL;
}
OPDI_INTERNAL void opdi_emitter_init(opdi_emitter *task, opd_script *script, opdi_arena *arena,
                                     opdi_script_unit *unit) {
    memset(task, 0, sizeof *task);
    task->script = script;
    task->space = script->space;
    task->arena = arena;
    task->unit = unit;
    task->at = unit->tree;
}
/* Returns the list that the body of a class assigns to the name `list`, such as __parameters__ = ["weight", ].  Returns
   NULL if there is none. */
OPDI_INTERNAL const opdi_syntax *opdi_script_class_list(const opdi_script_class *klass, const char *list) {
    const opdi_syntax *body = klass->def->parts[1];
    for (int i = 0; i < body->nparts; i++) {
        const opdi_syntax *node = body->parts[i];
        if (node->kind == OPDI_SYNTAX_ASSIGN && node->nparts == 2 && node->parts[1]->kind == OPDI_SYNTAX_NAME &&
            strcmp(node->parts[1]->word, list) == 0 &&
            node->parts[0]->kind == OPDI_SYNTAX_LIST) { return node->parts[0]; }
    }
    return NULL;
}
/* Gives `flag` to the attributes of a class that its list `list` names. */
static void opdi_script_class_mark(const opdi_script_class *klass, const char *list, int32_t flag) {
    const opdi_syntax *const names = opdi_script_class_list(klass, list);
    for (int i = 0; names && i < names->nparts; i++) {
        const opdi_syntax *const name = names->parts[i];
        const int32_t slot = name->kind == OPDI_SYNTAX_TEXT ? opdi_gclass_slot(klass->gclass, name->word) : -1;
        if (slot >= 0) { klass->gclass->attributes[slot].flags |= flag; }
    }
}
/* Returns whether `name` is a parameter (`list` is "__parameters__") or a buffer ("__buffers__") of a class: the class
   has the name in this list, or its __init__ makes the attribute a parameter or buffer. */
OPDI_INTERNAL bool opdi_script_class_lists(const opdi_script_class *klass, const char *list, const char *name) {
    const int32_t slot = opdi_gclass_slot(klass->gclass, name);
    const int32_t flag = strcmp(list, "__parameters__") == 0 ? OPDI_SCRIPT_CLASS_PARAMETER : OPDI_SCRIPT_CLASS_BUFFER;
    return slot >= 0 && (klass->gclass->attributes[slot].flags & flag);
}
/* If a statement in the body of a class declares an attribute, adds the attribute to the class.  Returns 0, or -1 and
   sets an error. */
static int opdi_script_class_field(opdi_emitter *task, opdi_script_class *klass, const opdi_syntax *node) {
    const opdi_syntax *type = NULL;
    const char *name = NULL;
    if (node->kind == OPDI_SYNTAX_ANNOTATED && node->parts[0]->kind == OPDI_SYNTAX_NAME &&
        (!node->parts[2] || klass->gclass->kind == OPDI_CLASS_NAMEDTUPLE)) {
        name = node->parts[0]->word;
        type = node->parts[1];
    } else if (node->kind == OPDI_SYNTAX_ASSIGN && node->nparts == 2 && node->parts[1]->kind == OPDI_SYNTAX_SUBSCRIPT &&
               node->parts[1]->parts[0]->kind == OPDI_SYNTAX_NAME &&
               node->parts[1]->parts[1]->kind == OPDI_SYNTAX_TEXT &&
               strcmp(node->parts[1]->parts[0]->word, "__annotations__") == 0) {
        name = node->parts[1]->parts[1]->word;     /* an entry such as __annotations__["0"] = T */
        type = node->parts[0];
    }
    if (!type || opdi_gclass_slot(klass->gclass, name) >= 0) { return 0; }
    const opdi_gtype *its = opdi_emit_annotation(task, type);
    return its && opdi_gclass_add(klass->gclass, name, its, 0) >= 0 ? 0 : -1;
}
//== enums =============================================================================================================

OPDI_INTERNAL void opdi_script_enum_drop(opdi_script_class *klass) {
    for (; klass->said; klass->said = klass->said->next) { opdi_value_drop(klass->said->object); }
    while (klass->nmembers > 0) { opdi_value_drop(klass->members[--klass->nmembers]); }
}
/* Sets *value to the value of an enum's member, which is the expression `node`.  Returns the type of the value, or NULL
   and sets an error. */
static const opdi_gtype *opdi_script_enum_value(const opdi_syntax *node, opd_value *value) {
    switch (node->kind) {
    case OPDI_SYNTAX_INT:
        if (node->op == OPDI_SIGN_NEEDED) {
            (void)opdi_script_text_fail(node->text, node->at, node->length, "Integer literal is out of range");
            return NULL;
        }
        *value = opd_value_int(node->integer);
        return opdi_gtype_simple(OPDI_GTYPE_INT);
    case OPDI_SYNTAX_FLOAT: *value = opd_value_double(node->number); return opdi_gtype_simple(OPDI_GTYPE_FLOAT);
    case OPDI_SYNTAX_TEXT: *value = opd_value_str(node->word); return opdi_gtype_simple(OPDI_GTYPE_STR);
    default:
        (void)opdi_script_text_fail(node->text, node->at, node->length,
                                    "the values of an enum must be numbers or strings");
        return NULL;
    }
}
/* Returns the index of the member named `name`, or -1 if there is none. */
OPDI_INTERNAL int32_t opdi_script_enum_find(const opdi_script_class *klass, const char *name) {
    return (int32_t)(intptr_t)opdi_index_named(&klass->members_named, name) - 1;
}
/* If a statement in the body of an enum declares a member, adds the member to the enum.  Returns 0, or -1 and sets an
   error. */
static int opdi_script_enum_member(opdi_arena *arena, opdi_script_class *klass, const opdi_syntax *node) {
    opdi_gclass *gclass = klass->gclass;
    const char *const name = node->kind == OPDI_SYNTAX_ASSIGN && node->nparts == 2 ? node->parts[1]->word : NULL;
    opd_value value;
    if (node->kind != OPDI_SYNTAX_ASSIGN || node->nparts != 2 || node->parts[1]->kind != OPDI_SYNTAX_NAME) { return 0; }
    const opdi_gtype *type = opdi_script_enum_value(node->parts[0], &value);
    if (!type) { return -1; }
    if (!gclass->nattributes && (opdi_gclass_add(gclass, "name", opdi_gtype_simple(OPDI_GTYPE_STR), 0) < 0 ||
                                 opdi_gclass_add(gclass, "value", type, 0) < 0)) { return -1; }
    if (gclass->nattributes != 2 || gclass->attributes[1].type != type) {
        return opdi_script_text_fail(node->text, node->at, node->length,
                                     "the values of an enum must have the same type");
    }
    opdi_cell *member = opdi_object_new(gclass);
    if (!member) { return -1; }
    klass->members[klass->nmembers++] = opdi_cell_value(member);
    if (opdi_script_enum_find(klass, name) < 0 &&
        opdi_index_set(&klass->members_named, arena, name, strlen(name), (void *)(intptr_t)klass->nmembers)) {
        return -1;
    }
    if (opdi_object_put(member, 0, opd_value_str(name))) { return -1; }
    return opdi_object_put(member, 1, value);
}
/* Makes the members of an enum.  Returns 0, or -1 and sets an error. */
static int opdi_script_enum_resolve(opd_script *script, opdi_script_class *klass) {
    const opdi_syntax *body = klass->def->parts[1];
    klass->members = (opd_value *)opdi_arena_alloc(&script->arena, (size_t)(body->nparts + 1) * sizeof(opd_value));
    int rc = klass->members ? 0 : -1;
    for (int i = 0; !rc && i < body->nparts; i++) {
        rc = opdi_script_enum_member(&script->arena, klass, body->parts[i]);
    }
    if (rc) { opdi_script_enum_drop(klass); }
    return rc;
}
/* Returns a new object for enum member number `which`, or NULL and sets an error. */
OPDI_INTERNAL opdi_cell *opdi_script_enum_again(const opdi_script_class *klass, int32_t which) {
    const opdi_cell *const member = opdi_cell_of(&klass->members[which]);
    opdi_cell *const cell = opdi_object_new(klass->gclass);
    for (int32_t i = 0; cell && i < 2; i++) {
        if (opdi_object_put(cell, i, member->u.values[i])) {
            opdi_value_drop(opdi_cell_value(cell));
            return NULL;
        }
    }
    return cell;
}
/* Returns the object for enum member number `which` at one place in a text (see opdi_script_enum_object), or NULL and
   sets an error. */
OPDI_INTERNAL const opd_value *opdi_script_enum_at(opdi_arena *arena, opdi_script_class *klass,
                                                   const opdi_syntax *place, int32_t which) {
    opdi_script_enum_place at;
    memset(&at, 0, sizeof at);
    at.place = place;
    at.which = which;
    opdi_script_enum_object *said = (opdi_script_enum_object *)opdi_index_get(
        &klass->said_at, (const char *)(const void *)&at, sizeof at);
    if (said) { return &said->object; }
    said = (opdi_script_enum_object *)opdi_arena_alloc(arena, sizeof *said);
    opdi_cell *const cell = said ? opdi_script_enum_again(klass, which) : NULL;
    if (!cell) { return NULL; }
    said->at = at;
    said->object = opdi_cell_value(cell);
    said->next = klass->said;
    klass->said = said;
    return opdi_index_set(&klass->said_at, arena, (const char *)(const void *)&said->at, sizeof at, said) ? NULL
        : &said->object;
}

/* Resolves the members of a class, and the classes of its members, unless this was done before.  Returns the class, or
   NULL and sets an error. */
OPDI_INTERNAL opdi_script_class *opdi_script_class_resolve(opd_script *script, opdi_script_class *klass) {
    const opdi_syntax *body = klass->def->parts[1];
    opdi_arena arena;
    opdi_emitter task;
    if (klass->state) { return klass; }
    memset(&arena, 0, sizeof arena);
    opdi_emitter_init(&task, script, &arena, klass->unit);
    task.at = klass->def;
    if (script->resolving == OPDI_SCRIPT_CLASSES || opdi_stack_is_short(NULL, OPDI_STACK_CALL)) {
        (void)OPDI_EMIT_FAIL(&task, "classes use one another too deep: '%s'", klass->gclass->name);
        return NULL;
    }
    klass->state = 1;
    script->resolving++;
    int rc = klass->gclass->kind == OPDI_CLASS_MODULE && !script->archive &&
        opdi_gclass_add(klass->gclass, "training", opdi_gtype_simple(OPDI_GTYPE_BOOL), 0) < 0 ? -1 : 0;
    for (int i = 0; !rc && i < body->nparts; i++) {
        task.at = body->parts[i];
        if (body->parts[i]->kind == OPDI_SYNTAX_DEF) {
            rc = opdi_script_function_new(script, klass->unit, body->parts[i], klass) ? 0 : -1;
        } else { rc = opdi_script_class_field(&task, klass, body->parts[i]); }
    }
    if (!rc && klass->gclass->kind == OPDI_CLASS_NAMEDTUPLE) { rc = opdi_gclass_fields(klass->gclass) ? 0 : -1; }
    if (!rc && klass->gclass->kind == OPDI_CLASS_ENUM) { rc = opdi_script_enum_resolve(script, klass); }
    opdi_script_function *init = opdi_script_function_in(&klass->methods, "__init__");
    if (!rc && init && !script->archive) { rc = script->work->discover(&task, init); }
    opdi_script_class_mark(klass, "__parameters__", OPDI_SCRIPT_CLASS_PARAMETER);
    opdi_script_class_mark(klass, "__buffers__", OPDI_SCRIPT_CLASS_BUFFER);
    klass->state = rc ? 0 : 2;
    script->resolving--;
    opdi_arena_free(&arena);
    return rc ? NULL : klass;
}
