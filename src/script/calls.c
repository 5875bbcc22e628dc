#include "script.h"

//== calls =============================================================================================================

/* The arguments of a call: positional arguments, followed by `nkw` keyword arguments. */
typedef struct opdi_script_args {
    opdi_gvalue *values[OPDI_SCRIPT_ARGS];
    const char *names[OPDI_SCRIPT_ARGS];          /* the names of the keyword arguments */
    int count, nkw;
} opdi_script_args;

/* Compiles the arguments of a call and appends them to `args`.  Returns 0, or -1 and sets an error. */
static int opdi_emit_args(opdi_emitter *task, const opdi_syntax *call, opdi_script_args *args) {
    for (int i = 1; i < call->nparts; i++) {
        const opdi_syntax *part = call->parts[i];
        if (args->count == OPDI_SCRIPT_ARGS) { return OPDI_EMIT_FAIL(task, "a call has more than 64 arguments"); }
        if (part->kind == OPDI_SYNTAX_STAR) {
            opdi_gvalue *tuple = opdi_emit_expr(task, part->parts[0], NULL);
            const int count = tuple && opdi_emit_is(tuple, OPDI_GTYPE_TUPLE) ? opdi_emit_type(tuple)->nparts : -1;
            if (tuple && count < 0) {
                return OPDI_EMIT_FAIL(task, "the value after the * of an argument must be a tuple");
            }
            if (!tuple || args->count + count > OPDI_SCRIPT_ARGS ||
                opdi_emit_unpack(task, tuple, args->values + args->count, count)) { return -1; }
            args->count += count;
            continue;
        }
        const opdi_syntax *value = part->kind == OPDI_SYNTAX_KEYWORD ? part->parts[0] : part;
        if (part->kind != OPDI_SYNTAX_KEYWORD && args->nkw) {
            return OPDI_EMIT_FAIL(task, "positional argument follows keyword argument");
        }
        if (!(args->values[args->count++] = opdi_emit_expr(task, value, NULL))) { return -1; }
        if (part->kind == OPDI_SYNTAX_KEYWORD) { args->names[args->nkw++] = part->word; }
    }
    return 0;
}
/* Returns the argument for the parameter `formal`, which is parameter number i, and adds 1 to *used.  Returns NULL if
   the call has no such argument. */
static opdi_gvalue *opdi_script_args_get(const opdi_script_args *args, const opdi_script_formal *formal, int i,
                                         int *used) {
    const int positional = args->count - args->nkw;
    if (!formal->keyword_only && i < positional) {
        ++*used;
        return args->values[i];
    }
    for (int k = 0; k < args->nkw; k++) {
        if (strcmp(args->names[k], formal->name) == 0) {
            ++*used;
            return args->values[positional + k];
        }
    }
    return NULL;
}
/* Returns the list [value, value] if `value` is a single element and `written`, the annotation of the parameter, is
   BroadcastingList2[T] (or three elements for BroadcastingList3[T], and so on).  Otherwise returns `value`. */
OPDI_INTERNAL opdi_gvalue *opdi_emit_repeated(opdi_emitter *task, opdi_gvalue *value, const opdi_syntax *written,
                                              const opdi_gtype *type) {
    opdi_gvalue *values[9];
    if (type->kind == OPDI_GTYPE_OPTIONAL && written && written->kind == OPDI_SYNTAX_SUBSCRIPT) {
        written = written->parts[1];
        type = type->parts[0];
    }
    if (!value || !written || written->kind != OPDI_SYNTAX_SUBSCRIPT || written->parts[0]->kind != OPDI_SYNTAX_NAME ||
        strncmp(written->parts[0]->word, "BroadcastingList", 16) != 0 ||
        type->kind != OPDI_GTYPE_LIST) { return value; }
    if (opdi_emit_is(value, OPDI_GTYPE_INT) && type->parts[0]->kind == OPDI_GTYPE_FLOAT) {
        value = opdi_emit_op1(task, "aten::Float", value);
    }
    if (!value || !opdi_gtype_fits(opdi_emit_type(value), type->parts[0])) { return value; }
    const int count = OPDI_MIN(OPDI_MAX(written->parts[0]->word[16] - '0', 1), 9);
    for (int i = 0; i < count; i++) { values[i] = value; }
    return opdi_emit_construct(task, type, values, count);
}
/* Sets an error that lists the arguments of a call that belong to no parameter.  Returns -1. */
static int opdi_emit_left_over(opdi_emitter *task, const opdi_script_function *function, const opdi_script_args *args) {
    const int positional = args->count - args->nkw;
    int places = 0;
    for (int i = 0; i < function->nformals; i++) { places += !function->formals[i].keyword_only; }
    for (int k = 0; k < args->nkw; k++) {
        int i = 0, before = 0;
        while (i < function->nformals && strcmp(function->formals[i].name, args->names[k]) != 0) { i++; }
        while (strcmp(args->names[before], args->names[k]) != 0) { before++; }
        if (i == function->nformals) {
            return OPDI_EMIT_FAIL(task, "%s(): Unknown keyword argument '%s'", function->name, args->names[k]);
        }
        if (before < k || (i < positional && !function->formals[i].keyword_only)) {
            return OPDI_EMIT_FAIL(task, "%s(): the argument '%s' is given twice", function->name, args->names[k]);
        }
    }
    return OPDI_EMIT_FAIL(task, "%s() expected at most %d argument(s)%s but received %d argument(s)", function->name,
                          places, places < function->nformals ? " without a name" : "", positional);
}
/* Sets `values` to the values of a function's parameters: arguments of the call, or defaults.  Returns 0, or -1 and
   sets an error. */
static int opdi_emit_bind(opdi_emitter *task, opdi_script_function *function, const opdi_script_args *args,
                          opdi_gvalue **values) {
    int used = 0;
    if (opdi_script_function_resolve(task, function)) { return -1; }
    for (int i = 0; i < function->nformals; i++) {
        const opdi_script_formal *formal = &function->formals[i];
        opdi_gvalue *value = opdi_script_args_get(args, formal, i, &used);
        if (!value && !formal->otherwise) {
            return OPDI_EMIT_FAIL(task, "%s() is missing value for argument '%s'", function->name, formal->name);
        }
        if (!value) {
            opdi_script_frame *const frame = task->frame;
            opdi_script_unit *const unit = task->unit;
            opdi_script_frame clean;
            task->unit = function->unit;
            task->frame = NULL;
            opdi_script_frame_enter(task, &clean);
            value = opdi_emit_expr(task, formal->otherwise, formal->type);
            task->frame = frame;
            task->unit = unit;
        }
        value = opdi_emit_repeated(task, value, function->def->parts[2 + i]->parts[0], formal->type);
        if (!(values[i] = opdi_emit_become(task, value, formal->type, "argument '%s'", formal->name))) { return -1; }
    }
    return used == args->count ? 0 : opdi_emit_left_over(task, function, args);
}
/* Compiles a call of a function of the script: adds the nodes of the function to the graph.  Returns the result, or
   NULL and sets an error. */
static opdi_gvalue *opdi_emit_call_function(opdi_emitter *task, opdi_script_function *function,
                                            const opdi_script_args *args) {
    opdi_gvalue *values[OPDI_SCRIPT_ARGS];
    return opdi_emit_bind(task, function, args, values) ? NULL : task->script->work->inlined(task, function, values);
}
/* Compiles a call of method `method` of `chosen`, a module of a container that an index selects at run time.  Adds a
   branch for each module of the container, from slot `at` on; in the branch, the first argument is this module.
   Returns the result, or NULL and sets an error. */
static opdi_gvalue *opdi_emit_call_chosen(opdi_emitter *task, const opdi_gvalue *chosen, opdi_script_function *method,
                                          int32_t at,
                                          const opdi_script_args *args) {
    opdi_gvalue *const container = chosen->node->in[0], *const index = chosen->node->in[1];
    const opdi_gclass *const gclass = opdi_emit_type(container)->klass;
    const bool text = opdi_emit_is(index, OPDI_GTYPE_STR);
    opdi_gvalue *values[2] = {NULL, NULL};
    opdi_script_frame frame;
    while (at < gclass->nattributes && (gclass->attributes[at].type->kind != OPDI_GTYPE_CLASS ||
                                        (!text && !opdi_is_digit(*gclass->attributes[at].name)))) { at++; }
    if (at == gclass->nattributes) {               /* this branch never runs: before it, selecting a module that does
                                                      not exist fails */
        values[0] = opdi_emit_text(task, "there is no module with this index");
        values[1] = opdi_emit_text(task, "builtins.IndexError");
        return values[1] && opdi_emit_builtin(task, "prim::RaiseException", values, 2, NULL)
            ? opdi_emit_unset(task, method->result) : NULL;
    }
    const char *const name = gclass->attributes[at].name;
    opdi_gvalue *const mine = text ? opdi_emit_text(task, name) : opdi_emit_int(task, strtol(name, NULL, 10));
    opdi_gnode *branch = opdi_emit_if(task, opdi_emit_op2(task, "aten::eq", index, mine));
    for (int i = 0; branch && i < 2; i++) {
        opdi_gblock *before = opdi_emit_goto(task, &branch->blocks[i]);
        opdi_script_args given = *args;
        opdi_script_frame_enter(task, &frame);
        given.values[0] = i ? args->values[0] : opdi_emit_attribute(task, container, name, NULL);
        opdi_script_function *its = i || !given.values[0]
            ? NULL : opdi_emit_method_of(task, given.values[0], method->name);
        values[i] = i ? opdi_emit_call_chosen(task, chosen, method, at + 1, args)
            : its ? opdi_emit_call_function(task, its, &given) : NULL;
        values[i] = opdi_emit_become(task, values[i], method->result, "the result of %s", method->name);
        task->frame = frame.up;
        opdi_emit_goto(task, before);
        if (!i && !its && opd_ok()) { (void)OPDI_EMIT_FAIL(task, "the module has no method '%s'", name); }
        if (!values[i] || opdi_emit_output(task, &branch->blocks[i], values[i])) { return NULL; }
    }
    return branch ? opdi_emit_out(task, branch, method->result) : NULL;
}
/* Compiles a call of a function or method of the script.  Returns the result, or NULL and sets an error. */
static opdi_gvalue *opdi_emit_call_method(opdi_emitter *task, opdi_script_function *function,
                                          const opdi_script_args *args) {
    if (!args->count || !opdi_emit_is_chosen(args->values[0]) || !opdi_script_function_selves(function)) {
        return opdi_emit_call_function(task, function, args);
    }
    if (opdi_script_function_resolve(task, function)) { return NULL; }
    if (!function->result) {
        (void)OPDI_EMIT_FAIL(task, "the type of the result of %s is not known for this interface", function->name);
        return NULL;
    }
    return opdi_emit_call_chosen(task, args->values[0], function, 0, args);
}
/* Compiles a call of the method named `name` of `self`, with the `count` arguments `given`.  Returns the result, or
   NULL and sets an error. */
OPDI_INTERNAL opdi_gvalue *opdi_emit_method(opdi_emitter *task, opdi_gvalue *self, const char *name,
                                            opdi_gvalue *const *given, int count) {
    opdi_script_function *function = opdi_emit_method_of(task, self, name);
    opdi_script_args args;
    char said[200];
    memset(&args, 0, sizeof args);
    if (!function) {
        (void)OPDI_EMIT_FAIL(task, "'%s' object has no attribute or method '%s'",
                             opdi_emit_type_text(opdi_emit_type(self), said, sizeof said), name);
        return NULL;
    }
    args.values[args.count++] = self;
    for (int i = 0; i < count; i++) { args.values[args.count++] = given[i]; }
    return opdi_emit_call_method(task, function, &args);
}
/* Makes an object without calling __init__ and returns it.  On failure, returns NULL and sets an error. */
static opdi_gvalue *opdi_emit_object(opdi_emitter *task, opdi_gclass *gclass) {
    char place[400];
    return opdi_append_create(task->graph, gclass, opdi_emit_place(task, place, sizeof place));
}
/* Returns the expression for the default of field `name` of a named tuple, or NULL if there is none. */
static const opdi_syntax *opdi_script_class_default(const opdi_script_class *klass, const char *name) {
    const opdi_syntax *const body = klass->def->parts[1];
    for (int i = 0; i < body->nparts; i++) {
        const opdi_syntax *const part = body->parts[i];
        if (part->kind == OPDI_SYNTAX_ANNOTATED && part->parts[0]->kind == OPDI_SYNTAX_NAME &&
            strcmp(part->parts[0]->word, name) == 0) { return part->parts[2]; }
    }
    return NULL;
}
/* Compiles a call of a class.  If the class is a named tuple, makes a tuple; otherwise, makes an object and calls its
   method __init__, if there is one.  Returns the object, or NULL and sets an error. */
static opdi_gvalue *opdi_emit_new(opdi_emitter *task, opdi_gclass *gclass, const opdi_syntax *call) {
    opdi_script_args args;
    char text[400];
    memset(&args, 0, sizeof args);
    if (gclass->kind == OPDI_CLASS_NAMEDTUPLE) {
        opdi_gvalue *values[OPDI_SCRIPT_ARGS];
        opdi_script_formal formal;
        int used = 0;
        memset(&formal, 0, sizeof formal);
        if (opdi_emit_args(task, call, &args)) { return NULL; }
        for (int i = 0; i < gclass->nattributes && i < OPDI_SCRIPT_ARGS; i++) {
            formal.name = gclass->attributes[i].name;
            values[i] = opdi_script_args_get(&args, &formal, i, &used);
            if (!values[i]) {
                const opdi_syntax *otherwise =
                    opdi_script_class_default((opdi_script_class *)gclass->user, formal.name);
                if (!otherwise) {
                    (void)OPDI_EMIT_FAIL(task, "%s() is missing value for argument '%s'", gclass->name, formal.name);
                    return NULL;
                }
                values[i] = opdi_emit_expr(task, otherwise, gclass->attributes[i].type);
            }
            values[i] = opdi_emit_become(task, values[i], gclass->attributes[i].type, "argument '%s'", formal.name);
            if (!values[i]) { return NULL; }
        }
        if (used != args.count) {
            (void)OPDI_EMIT_FAIL(task, "%s() has %d field(s), but received an unknown field, or a field twice",
                                 gclass->name, gclass->nattributes);
            return NULL;
        }
        return opdi_emit_construct(task, gclass->type, values, gclass->nattributes);
    }
    if (gclass->kind == OPDI_CLASS_ENUM) {
        (void)OPDI_EMIT_FAIL(task, "the enum '%s' cannot be called: use a member of it", gclass->name);
        return NULL;
    }
    if (!(args.values[args.count++] = opdi_emit_object(task, gclass))) { return NULL; }
    if (gclass->kind == OPDI_CLASS_MODULE && !task->script->archive &&
        !opdi_emit_attribute(task, args.values[0], "training", opdi_emit_bool(task, true))) { return NULL; }
    opdi_script_class *klass = (opdi_script_class *)gclass->user;
    opdi_script_function *init = klass ? opdi_script_function_in(&klass->methods, "__init__") : NULL;
    if (opdi_emit_args(task, call, &args) || (init && !opdi_emit_call_function(task, init, &args))) { return NULL; }
    const char *const alone = init ? "" : opdi_script_class_alone(klass, text, sizeof text);
    if (*alone && args.count > 1) {
        (void)OPDI_EMIT_FAIL(task, "%s() has no __init__ and received %d argument(s)%s", klass->def->word,
                             args.count - 1,
                             alone);
        return NULL;
    }
    return args.values[0];
}
/* Compiles int(x), float(x), bool(x), str(x) and complex(x).  Returns the result, or NULL and sets an error. */
static opdi_gvalue *opdi_emit_cast(opdi_emitter *task, const char *word, const opdi_script_args *args) {
    const int kind = strcmp(word, "int") == 0 ? OPDI_GTYPE_INT : strcmp(word, "float") == 0 ? OPDI_GTYPE_FLOAT
        : strcmp(word, "bool") == 0 ? OPDI_GTYPE_BOOL : strcmp(word, "str") == 0 ? OPDI_GTYPE_STR : OPDI_GTYPE_COMPLEX;
    const char *const name = kind == OPDI_GTYPE_INT ? "aten::Int" : kind == OPDI_GTYPE_FLOAT ? "aten::Float"
        : kind == OPDI_GTYPE_BOOL ? "aten::Bool" : kind == OPDI_GTYPE_STR ? "aten::str" : "aten::Complex";
    if (args->count == 1 && opdi_emit_is(args->values[0], kind)) { return args->values[0]; }
    if (args->count == 1 && kind == OPDI_GTYPE_BOOL && opdi_emit_has_length(args->values[0])) {
        return opdi_emit_truth(task, args->values[0]);
    }
    if (args->count == 1 && opdi_emit_is(args->values[0], OPDI_GTYPE_CLASS)) {
        const char *method = kind == OPDI_GTYPE_INT ? "__int__" : kind == OPDI_GTYPE_FLOAT ? "__float__"
            : kind == OPDI_GTYPE_BOOL ? "__bool__" : kind == OPDI_GTYPE_STR ? "__str__" : "__complex__";
        return opdi_emit_method(task, args->values[0], method, NULL, 0);
    }
    return opdi_emit_op(task, name, args->values, args->count, NULL, 0);
}
/* Compiles dict(), dict(pairs), dict(a=1, b=2) and dict(pairs, a=1).  Returns the dict, or NULL and sets an error. */
static opdi_gvalue *opdi_emit_dict_of(opdi_emitter *task, const opdi_script_args *args) {
    const int first = args->count - args->nkw;
    if (!args->count) { return opdi_emit_empty(task, true); }
    opdi_gvalue *dict = NULL;
    if (first) { dict = opdi_emit_op(task, "aten::dict", args->values, first, NULL, 0); }
    else {
        const opdi_gtype *value = opdi_emit_common(task, args->values, args->count);
        if (!value) { (void)OPDI_EMIT_FAIL(task, "Dict values must contain only a single type"); }
        const opdi_gtype *type = value ? opdi_gtype_dict(task->space, opdi_gtype_simple(OPDI_GTYPE_STR), value) : NULL;
        dict = type ? opdi_emit_construct(task, type, NULL, 0) : NULL;
    }
    for (int i = 0; dict && i < args->nkw; i++) {
        if (!opdi_emit_op3(task, "aten::_set_item", dict, opdi_emit_text(task, args->names[i]),
                           args->values[first + i])) {
            return NULL;
        }
    }
    return dict;
}
/* Compiles list(x) or tuple(x); `word` is "list" or "tuple".  Returns the list or tuple, or NULL and sets an error. */
static opdi_gvalue *opdi_emit_collected(opdi_emitter *task, const char *word, const opdi_syntax *call) {
    opdi_syntax inner;
    if (call->nparts == 1) {
        return *word == 't' ? opdi_emit_tuple(task, NULL, 0) : opdi_emit_empty(task, false);
    }
    opdi_gvalue *value;
    if (*word == 'l' && call->parts[1]->kind == OPDI_SYNTAX_CALL &&
        call->parts[1]->parts[0]->kind == OPDI_SYNTAX_NAME &&
        opdi_word_in(call->parts[1]->parts[0]->word, (int)strlen(call->parts[1]->parts[0]->word),
                     "range enumerate zip ")) {
        opdi_syntax each = *call, *parts[4];
        inner = *call;
        each.kind = OPDI_SYNTAX_NAME;
        each.word = "$each";
        inner.kind = OPDI_SYNTAX_LISTCOMP;
        parts[0] = &each;
        parts[1] = &each;
        parts[2] = call->parts[1];
        parts[3] = NULL;
        inner.parts = parts;
        inner.nparts = 4;
        return opdi_emit_expr(task, &inner, NULL);
    }
    if (!(value = opdi_emit_expr(task, call->parts[1], NULL))) { return NULL; }
    if (*word == 't' && opdi_emit_is(value, OPDI_GTYPE_TUPLE)) { return value; }
    if (*word == 't') {
        opdi_gvalue *const *inside = opdi_emit_constructed(value, OPDI_GNODE_LIST);
        if (inside) { return opdi_emit_tuple(task, inside, value->node->nin); }
        (void)OPDI_EMIT_FAIL(task, "cannot make a tuple from a list whose length is not known");
        return NULL;
    }
    if (opdi_emit_is(value, OPDI_GTYPE_TUPLE)) {
        const opdi_gtype *type = opdi_emit_type(value);
        opdi_gvalue *parts[64];
        if (!type->nparts || type->nparts > 64 || opdi_emit_unpack(task, value, parts, type->nparts)) { return NULL; }
        const opdi_gtype *element = opdi_emit_common(task, parts, type->nparts);
        return element ? opdi_emit_construct(task, opdi_gtype_list(task->space, element), parts,
                                             type->nparts) : NULL;
    }
    if (opdi_emit_is(value, OPDI_GTYPE_DICT)) { value = opdi_emit_op1(task, "aten::keys", value); }
    if (value && opdi_emit_is(value, OPDI_GTYPE_TENSOR)) {
        return opdi_emit_op2(task, "aten::unbind", value, opdi_emit_int(task, 0));
    }
    return opdi_emit_op1(task, "aten::list", value);
}
static opdi_gvalue *opdi_emit_print(opdi_emitter *task, const opdi_script_args *args) {
    return opdi_emit_builtin(task, "prim::Print", args->values, args->count, NULL) ? opdi_emit_none(task) : NULL;
}
/* Compiles getattr(x, "name") or, if `has` is true, hasattr(x, "name").  Returns the result.  On failure, sets an error
   and returns the kind OPDI_SUGARED_NOTHING. */
static opdi_sugared opdi_emit_getattr(opdi_emitter *task, const opdi_syntax *call, bool has) {
    opdi_sugared sugared = opdi_sugared_of(OPDI_SUGARED_NOTHING);
    if (call->nparts < 3 || call->parts[2]->kind != OPDI_SYNTAX_TEXT) {
        (void)OPDI_EMIT_FAIL(task, "%s's second argument must be a string literal", has ? "hasattr" : "getattr");
        return sugared;
    }
    opdi_gvalue *value = opdi_emit_expr(task, call->parts[1], NULL);
    if (!value) { return sugared; }
    const char *name = call->parts[2]->word;
    const bool object = opdi_emit_is(value, OPDI_GTYPE_CLASS);
    const bool there = object ? opdi_gclass_slot(opdi_emit_type(value)->klass, name) >= 0 ||
        opdi_emit_method_of(task, value, name) : opdi_emit_type(value)->klass
        ? opdi_gclass_slot(opdi_emit_type(value)->klass, name) >= 0 : true;
    if (has) { return opdi_sugared_value(opdi_emit_bool(task, there)); }
    if (!there && call->nparts == 4) { return opdi_sugared_value(opdi_emit_expr(task, call->parts[3], NULL)); }
    return opdi_emit_attr_of(task, value, name);
}
/* Compiles annotate(T, x), unchecked_cast(T, x) or uninitialized(T); `word` is the name of the function.  Returns the
   result, or NULL and sets an error. */
static opdi_gvalue *opdi_emit_typed(opdi_emitter *task, const char *word, const opdi_syntax *call) {
    const bool unset = strcmp(word, "uninitialized") == 0;
    if (call->nparts != (unset ? 2 : 3)) {
        (void)OPDI_EMIT_FAIL(task, "%s() takes a type%s", word, unset ? "" : " and a value");
        return NULL;
    }
    const opdi_gtype *type = opdi_emit_annotation(task, call->parts[1]);
    if (!type) { return NULL; }
    if (unset) { return opdi_emit_unset(task, type); }
    opdi_gvalue *value = opdi_emit_expr(task, call->parts[2], type);
    if (!value) { return NULL; }
    if (strcmp(word, "unchecked_cast") == 0) {
        return opdi_emit_builtin_1(task, "prim::unchecked_cast", value, type);
    }
    value = opdi_emit_become(task, value, type, "argument '%s'", "the_value");
    if (value && opdi_emit_is(value, OPDI_GTYPE_NONE) && type->kind == OPDI_GTYPE_OPTIONAL) {
        return opdi_emit_constant(task, opd_value_none(), type);
    }
    return value;
}
/* Compiles fork(function, ...) as a call of the function, because futures are not supported: the future is the result
   itself.  Returns the result, or NULL and sets an error. */
static opdi_gvalue *opdi_emit_fork(opdi_emitter *task, const opdi_syntax *call) {
    opdi_syntax inner = *call;
    inner.parts = call->parts + 1;
    inner.nparts = call->nparts - 1;
    return inner.nparts ? opdi_emit_expr(task, &inner, NULL) : NULL;
}
/* Checks the number of arguments of `word`, a function that the compiler itself implements.  Returns 0, or -1 and sets
   an error. */
static int opdi_emit_arity(opdi_emitter *task, const char *word, int count) {
    static const struct { const char *word; int least, most; } all[] = {{"isinstance", 2, 2}, {"hasattr", 2, 2},
        {"getattr", 2, 3}, {"tuple", 0, 1}, {"list", 0, 1}, {"fork", 1, OPDI_SCRIPT_ARGS}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(all[i].word, word) != 0 || (count >= all[i].least && count <= all[i].most)) { continue; }
        return all[i].least == all[i].most
            ? OPDI_EMIT_FAIL(task, "%s expected exactly %d arguments but found %d", word, all[i].least, count)
            : OPDI_EMIT_FAIL(task, "%s expected to have number of arguments between %d and %d but found %d", word,
                             all[i].least, all[i].most, count);
    }
    return 0;
}
/* Compiles a call of `word`, a function that the compiler itself implements.  Returns the result.  On failure, sets an
   error and returns the kind OPDI_SUGARED_NOTHING. */
static opdi_sugared opdi_emit_special(opdi_emitter *task, const char *word, const opdi_syntax *call) {
    opdi_script_args args;
    opdi_cond_value cond;
    memset(&args, 0, sizeof args);
    if (opdi_emit_arity(task, word, call->nparts - 1)) { return opdi_sugared_value(NULL); }
    if (strcmp(word, "annotate") == 0 || strcmp(word, "unchecked_cast") == 0 || strcmp(word, "uninitialized") == 0) {
        return opdi_sugared_value(opdi_emit_typed(task, word, call));
    }
    if (strcmp(word, "isinstance") == 0) {
        memset(&cond, 0, sizeof cond);
        cond.fixed = -1;
        if (opdi_emit_cond_isinstance(task, call, &cond)) { return opdi_sugared_value(NULL); }
        return opdi_sugared_value(cond.value);
    }
    if (strcmp(word, "getattr") == 0 || strcmp(word, "hasattr") == 0) {
        return opdi_emit_getattr(task, call, *word == 'h');
    }
    if (strcmp(word, "list") == 0 || strcmp(word, "tuple") == 0) {
        return opdi_sugared_value(opdi_emit_collected(task, word, call));
    }
    if (strcmp(word, "fork") == 0) { return opdi_sugared_value(opdi_emit_fork(task, call)); }
    if (strcmp(word, "is_scripting") == 0) { return opdi_sugared_value(opdi_emit_bool(task, true)); }
    if (opdi_emit_args(task, call, &args)) { return opdi_sugared_value(NULL); }
    if (strcmp(word, "print") == 0) { return opdi_sugared_value(opdi_emit_print(task, &args)); }
    if (strcmp(word, "wait") == 0 && args.count == 1) { return opdi_sugared_value(args.values[0]); }
    if (strcmp(word, "dict") == 0) { return opdi_sugared_value(opdi_emit_dict_of(task, &args)); }
    if (strcmp(word, "range") == 0 || strcmp(word, "zip") == 0 || strcmp(word, "enumerate") == 0 ||
        strcmp(word, "reversed") == 0) {
        (void)OPDI_EMIT_FAIL(task, "%s() can only be iterated over", word);
        return opdi_sugared_value(NULL);
    }
    return opdi_sugared_value(opdi_emit_cast(task, word, &args));
}
/* Compiles tensor.tolist().  `wanted` is the type of the result: nested lists of int, float or bool.  Returns the
   result, or NULL and sets an error. */
static opdi_gvalue *opdi_emit_tolist(opdi_emitter *task, opdi_gvalue *tensor, const opdi_gtype *wanted) {
    static const int32_t kinds[] = {OPDI_GTYPE_INT, OPDI_GTYPE_FLOAT, OPDI_GTYPE_BOOL};
    const opdi_gtype *element = wanted;
    opdi_gvalue *args[3];
    int ndim = 0, kind = 0;
    while (element && element->kind == OPDI_GTYPE_LIST) {
        element = element->parts[0];
        ndim++;
    }
    while (element && kind < 3 && element->kind != kinds[kind]) { kind++; }
    if (!element || kind == 3) {
        (void)OPDI_EMIT_FAIL(task, element ? "tolist() can only return lists of int, float or bool"
                             : "Expected type hint for result of tolist()");
        return NULL;
    }
    task->nowhere = true;
    args[0] = tensor;
    args[1] = opdi_emit_int(task, ndim);
    args[2] = args[1] ? opdi_emit_int(task, kind) : NULL;
    opdi_gnode *node = args[2] ? opdi_emit_builtin(task, "prim::tolist", args, 3, wanted) : NULL;
    task->nowhere = false;
    return node ? node->out[0] : NULL;
}
/* Operators whose behaviour has changed.  In archives of version `version` or earlier, `function` is called instead of
   the operator.  If the second argument is a number and `by_number` is not NULL, `by_number` is called. */
static const struct { const char *name; int version; const char *function, *by_number; } opdi_upgraders[] = {
    {"aten::div", 3, "_div_3", "_div_by_3"}, {"aten::div_", 3, "_div__3", "_div__by_3"},
    {"aten::full", 4, "_full_4", NULL}, {"aten::linspace", 7, "_linspace_7", NULL},
    {"aten::logspace", 8, "_logspace_8", NULL}};
/* Returns the function that is called instead of operator `name` (see opdi_upgraders).  Returns NULL if the operator
   itself is called. */
static opdi_script_function *opdi_emit_upgraded(opdi_emitter *task, const char *name, const opdi_script_args *args) {
    const char *function = NULL;
    if (!task->script->archive || task->unit->builtin) { return NULL; }
    for (size_t i = 0; i < sizeof opdi_upgraders / sizeof opdi_upgraders[0] && !function; i++) {
        if (task->script->version > opdi_upgraders[i].version || strcmp(opdi_upgraders[i].name, name) != 0) {
            continue;
        }
        const bool division = opdi_upgraders[i].by_number != NULL;
        const bool out = args->nkw && strcmp(args->names[args->nkw - 1], "out") == 0;
        if (division && (args->count != 2 + out || !opdi_emit_is(args->values[0], OPDI_GTYPE_TENSOR))) { return NULL; }
        if (out) { return division ? opdi_script_prelude(task->script, "_div_out_3") : NULL; }
        function = division && !opdi_emit_is(args->values[1], OPDI_GTYPE_TENSOR) ? opdi_upgraders[i].by_number
            : opdi_upgraders[i].function;
    }
    return function ? opdi_script_prelude(task->script, function) : NULL;
}
/* Functions that are replaced by the function `other` if argument `argument`, at position `place`, has the type `kind`.
   If the type is bool, the argument must also be the literal True. */
static const struct { const char *name, *argument; int place, kind; const char *other; } opdi_script_variants[] = {
    {"max_pool1d", "return_indices", 6, OPDI_GTYPE_BOOL, "max_pool1d_with_indices"},
    {"max_pool2d", "return_indices", 6, OPDI_GTYPE_BOOL, "max_pool2d_with_indices"},
    {"max_pool3d", "return_indices", 6, OPDI_GTYPE_BOOL, "max_pool3d_with_indices"},
    {"adaptive_max_pool1d", "return_indices", 2, OPDI_GTYPE_BOOL, "adaptive_max_pool1d_with_indices"},
    {"adaptive_max_pool2d", "return_indices", 2, OPDI_GTYPE_BOOL, "adaptive_max_pool2d_with_indices"},
    {"adaptive_max_pool3d", "return_indices", 2, OPDI_GTYPE_BOOL, "adaptive_max_pool3d_with_indices"},
    {"fractional_max_pool2d", "return_indices", 4, OPDI_GTYPE_BOOL, "fractional_max_pool2d_with_indices"},
    {"fractional_max_pool3d", "return_indices", 4, OPDI_GTYPE_BOOL, "fractional_max_pool3d_with_indices"},
    {"unique", "return_inverse", 2, OPDI_GTYPE_BOOL, "_unique_inverse"},
    {"unique", "return_counts", 3, OPDI_GTYPE_BOOL, "_unique_counts"},
    {"_unique_inverse", "return_counts", 3, OPDI_GTYPE_BOOL, "_unique_both"},
    {"unique_consecutive", "return_inverse", 1, OPDI_GTYPE_BOOL, "_unique_consecutive_inverse"},
    {"unique_consecutive", "return_counts", 2, OPDI_GTYPE_BOOL, "_unique_consecutive_counts"},
    {"_unique_consecutive_inverse", "return_counts", 2, OPDI_GTYPE_BOOL, "_unique_consecutive_both"},
    {"lu", "get_infos", 2, OPDI_GTYPE_BOOL, "_lu_infos"},
    {"norm", "p", 1, OPDI_GTYPE_INT, "_norm_number"}, {"norm", "p", 1, OPDI_GTYPE_FLOAT, "_norm_number"},
    {"norm", "p", 1, OPDI_GTYPE_NUMBER, "_norm_number"}, {"norm", "p", 1, OPDI_GTYPE_NONE, "_norm_number"},
    {"norm", "p", 1, OPDI_GTYPE_OPTIONAL, "_norm_number"},
    {"tensordot", "dims", 2, OPDI_GTYPE_LIST, "_tensordot_lists"},
    {"tensordot", "dims", 2, OPDI_GTYPE_TUPLE, "_tensordot_pair"},
    {"tensordot", "dims", 2, OPDI_GTYPE_TENSOR, "_tensordot_tensor"}};
/* Returns the function that replaces `function` for the arguments `args` (see opdi_script_variants), or `function`
   itself.  On failure, returns NULL and sets an error. */
static opdi_script_function *opdi_emit_variant(opdi_emitter *task, opdi_script_function *function,
                                               const opdi_script_args *args) {
    opdi_script_formal formal;
    int used = 0;
    memset(&formal, 0, sizeof formal);
    for (size_t i = 0; function && function->unit->builtin &&
         i < sizeof opdi_script_variants / sizeof *opdi_script_variants; i++) {
        if (strcmp(opdi_script_variants[i].name, function->name) != 0) { continue; }
        formal.name = opdi_script_variants[i].argument;
        const opdi_gvalue *value = opdi_script_args_get(args, &formal, opdi_script_variants[i].place, &used);
        if (!value || !opdi_emit_is(value, opdi_script_variants[i].kind)) { continue; }
        if (opdi_script_variants[i].kind == OPDI_GTYPE_BOOL) {
            const bool written = value->node && value->node->kind == OPDI_GNODE_CONSTANT;
            if (!written) {
                (void)OPDI_EMIT_FAIL(task, "%s(): the argument '%s' must be the constant True or False: the type of "
                                     "the result depends on it", function->name, formal.name);
                return NULL;
            }
            if (!value->node->constant.u.i) { continue; }
        }
        function = opdi_script_prelude(task->script, opdi_script_variants[i].other);
    }
    return function;
}
/* Returns the name of the method by which classes implement the function `name`, such as "__len__" for aten::len.
   Returns NULL if there is none. */
static const char *opdi_script_magic_of(const char *name) {
    static const char *const all[][2] = {{"aten::len", "__len__"}, {"aten::round", "__round__"},
        {"aten::hex", "__hex__"}, {"aten::oct", "__oct__"}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) { if (strcmp(all[i][0], name) == 0) { return all[i][1]; } }
    return NULL;
}
/* Returns whether the function being compiled is a method of a module class from source text. */
OPDI_INTERNAL bool opdi_emit_in_module(const opdi_emitter *task) {
    const opdi_script_function *const function = task->body ? task->body->function : NULL;
    return function && function->owner && function->owner->gclass->kind == OPDI_CLASS_MODULE && function->nformals &&
        !task->script->archive;
}
/* Returns whether `call` is torch.nn.Parameter(...) in a method of a module. */
static bool opdi_emit_makes_parameter(const opdi_emitter *task, const opdi_syntax *call) {
    static const char names[] = "torch.nn.Parameter nn.Parameter Parameter torch.nn.parameter.Parameter ";
    char name[64];
    return opdi_emit_in_module(task) && opdi_syntax_dotted(call->parts[0], name, sizeof name) &&
        opdi_word_in(name, (int)strlen(name), names);
}
/* Compiles torch.nn.Parameter(data, requires_grad=True).  Returns the result, or NULL and sets an error. */
static opdi_gvalue *opdi_emit_parameter(opdi_emitter *task, const opdi_syntax *call) {
    opdi_script_args args;
    memset(&args, 0, sizeof args);
    if (opdi_emit_args(task, call, &args)) { return NULL; }
    task->at = call;
    const bool named = args.nkw == 1 && strcmp(args.names[0], "requires_grad") == 0;
    if (args.count < 1 || args.count > 2 || args.nkw > 1 || (args.nkw && (!named || args.count != 2))) {
        (void)OPDI_EMIT_FAIL(task, "Parameter() takes a tensor and requires_grad");
        return NULL;
    }
    opdi_gvalue *const wanted = args.count == 2 ? args.values[1] : opdi_emit_bool(task, true);
    opdi_gvalue *const data = opdi_emit_op1(task, "aten::detach", args.values[0]);
    return task->parameter = opdi_emit_op2(task, "aten::requires_grad_", data, wanted);
}
/* Compiles a call of `callee`.  `hint` is the type that the result should have, or NULL.  Returns the result.  On
   failure, sets an error and returns the kind OPDI_SUGARED_NOTHING. */
static opdi_sugared opdi_emit_call(opdi_emitter *task, const opdi_syntax *call, opdi_sugared callee,
                                   const opdi_gtype *hint) {
    opdi_script_function *older = NULL;
    const char *method;
    opdi_script_args args;
    task->at = call;
    if (callee.kind == OPDI_SUGARED_VALUE && !(callee.value = opdi_emit_actual(task, callee.value))) {
        return opdi_sugared_of(OPDI_SUGARED_NOTHING);
    }
    memset(&args, 0, sizeof args);
    switch (callee.kind) {
    case OPDI_SUGARED_NOTHING: return callee;
    case OPDI_SUGARED_SPECIAL:
        if (strcmp(callee.word, "__new__") == 0) { return opdi_sugared_value(opdi_emit_object(task, callee.klass)); }
        return opdi_emit_special(task, callee.word, call);
    case OPDI_SUGARED_CLASS: return opdi_sugared_value(opdi_emit_new(task, callee.klass, call));
    case OPDI_SUGARED_VALUE:
        args.values[args.count++] = callee.value;
        if (opdi_emit_args(task, call, &args)) { return opdi_sugared_value(NULL); }
        task->at = call;
        return opdi_sugared_value(opdi_emit_method(task, callee.value,
                                                   opdi_emit_method_of(task, callee.value, "__call__")
                                                   ? "__call__" : "forward", args.values + 1, args.count - 1));
    case OPDI_SUGARED_FUNCTION: case OPDI_SUGARED_METHOD: case OPDI_SUGARED_BUILTIN:
        if (callee.value) { args.values[args.count++] = callee.value; }
        if (opdi_emit_args(task, call, &args)) { return opdi_sugared_value(NULL); }
        task->at = call;
        if (callee.kind != OPDI_SUGARED_BUILTIN) {
            callee.function = opdi_emit_variant(task, callee.function, &args);
            return opdi_sugared_value(callee.function ? opdi_emit_call_method(task, callee.function, &args) : NULL);
        }
        older = opdi_emit_upgraded(task, callee.word, &args);
        if (older || !opd_ok()) {
            return opdi_sugared_value(older ? opdi_emit_call_function(task, older, &args) : NULL);
        }
        if (*callee.word == '$' && args.count == 1) {               /* a method of tensors that converts the dtype, such
                                                                       as x.long() */
            return opdi_sugared_value(opdi_emit_op2(task, "aten::to", args.values[0],
                                                    opdi_emit_number_named(task, "torch", callee.word + 1)));
        }
        method = args.count == 1 && opdi_emit_is(args.values[0], OPDI_GTYPE_CLASS)
            ? opdi_script_magic_of(callee.word) : NULL;
        if (method) { return opdi_sugared_value(opdi_emit_method(task, args.values[0], method, NULL, 0)); }
        if (strcmp(callee.word, "aten::len") == 0 && args.count == 1 &&
            opdi_emit_is(args.values[0], OPDI_GTYPE_TUPLE)) {
            return opdi_sugared_value(opdi_emit_int(task, opdi_emit_type(args.values[0])->nparts));
        }
        if (strcmp(callee.word, "aten::__contains__") == 0 && args.count == 2 &&
            opdi_emit_is(args.values[0], OPDI_GTYPE_STR)) {
            return opdi_sugared_value(opdi_emit_operator(task, OPDI_SCRIPT_OP_IN, args.values[0], args.values[1]));
        }
        if (strcmp(callee.word, "aten::wait") == 0) { return opdi_sugared_value(args.values[0]); }
        if (strcmp(callee.word, "prim::tolist") == 0 && args.count == 1) {
            return opdi_sugared_value(opdi_emit_tolist(task, args.values[0], hint));
        }
        return opdi_sugared_value(opdi_emit_op(task, callee.word, args.values, args.count, args.names, args.nkw));
    default:
        (void)OPDI_EMIT_FAIL(task, "cannot call a value");
        return opdi_sugared_value(NULL);
    }
}

//== meanings of expressions ===========================================================================================

/* Compiles an f-string as a call of str.format().  Returns the result, or NULL and sets an error. */
static opdi_gvalue *opdi_emit_format(opdi_emitter *task, const opdi_syntax *node) {
    opdi_gvalue *values[OPDI_SCRIPT_ARGS];
    opdi_string text = {NULL, 0, 0, false};
    int count = 1;
    for (int i = 0; i < node->nparts; i++) {
        if (i % 2) { opdi_string_add(&text, "{}"); }
        for (int64_t k = 0; i % 2 == 0 && k < node->parts[i]->integer; k++) {
            const char letter = node->parts[i]->word[k];
            opdi_string_add_n(&text, &letter, 1);
        }
    }
    values[0] = text.data && !text.failed ? opdi_emit_text(task, text.data) : text.failed ? NULL
        : opdi_emit_text(task, "");
    opdi_string_free(&text);
    for (int i = 1; values[0] && i < node->nparts; i += 2) {
        if (count == OPDI_SCRIPT_ARGS) { return NULL; }
        if (!(values[count++] = opdi_emit_expr(task, node->parts[i], NULL))) { return NULL; }
    }
    return values[0] ? opdi_emit_op(task, "aten::format", values, count, NULL, 0) : NULL;
}
/* Compiles a number in the text.  In source text, -1 also adds the constant 1, because TorchScript computes -1 from it;
   in an archive, -1 is a constant.  Returns the value, or NULL and sets an error. */
static opdi_gvalue *opdi_emit_written(opdi_emitter *task, const opdi_syntax *node) {
    const bool whole = node->kind == OPDI_SYNTAX_INT;
    const opdi_gtype *const type = opdi_gtype_simple(whole ? OPDI_GTYPE_INT : OPDI_GTYPE_FLOAT);
    const opd_value value = whole ? opd_value_int(node->integer) : opd_value_double(node->number);
    if (whole && node->op == OPDI_SIGN_NEEDED) {
        (void)OPDI_EMIT_FAIL(task, "Integer literal is out of range");
        return NULL;
    }
    if ((whole ? node->integer >= 0 : node->number >= 0) || task->script->archive || node->integer == INT64_MIN) {
        return opdi_emit_literal(task, value, type);
    }
    opdi_syntax *behind = (opdi_syntax *)opdi_emit_alloc(task, sizeof *behind);
    if (!behind) { return NULL; }
    *behind = *node;
    behind->at++;
    task->at = behind;
    const opd_value positive = whole ? opd_value_int(-node->integer) : opd_value_double(-node->number);
    const opdi_gvalue *made = opdi_emit_literal(task, positive, type);
    task->at = node;
    return made ? opdi_emit_constant(task, value, type) : NULL;
}
/* Compiles the attribute `node` of a value, class or module, `inner`.  Returns its meaning.  On failure, sets an error
   and returns the kind OPDI_SUGARED_NOTHING. */
static opdi_sugared opdi_emit_attribute_of(opdi_emitter *task, const opdi_syntax *node, opdi_sugared inner) {
    opdi_sugared sugared = opdi_sugared_of(OPDI_SUGARED_NOTHING);
    task->at = node;
    if (inner.kind == OPDI_SUGARED_SPACE) { return opdi_emit_within(task, inner.word, node->word); }
    if (inner.kind == OPDI_SUGARED_VALUE) { return opdi_emit_attr_of(task, inner.value, node->word); }
    if (inner.kind == OPDI_SUGARED_CLASS && strcmp(node->word, "__new__") == 0) {
        sugared = opdi_sugared_word(OPDI_SUGARED_SPECIAL, "__new__");
        sugared.klass = inner.klass;
        return sugared;
    }
    opdi_script_class *const members = inner.kind == OPDI_SUGARED_CLASS && inner.klass->kind == OPDI_CLASS_ENUM
        ? (opdi_script_class *)inner.klass->user : NULL;
    const int32_t which = members ? opdi_script_enum_find(members, node->word) : -1;
    if (which >= 0) { return opdi_sugared_value(opdi_emit_enum_member(task, members, which)); }
    if (inner.kind == OPDI_SUGARED_CLASS && inner.klass->user) {
        sugared.function = opdi_script_function_in(&((opdi_script_class *)inner.klass->user)->methods, node->word);
        sugared.kind = sugared.function ? OPDI_SUGARED_FUNCTION : OPDI_SUGARED_NOTHING;
    }
    if (sugared.kind == OPDI_SUGARED_NOTHING && opd_ok()) {
        (void)OPDI_EMIT_FAIL(task, "no attribute '%s'", node->word);
    }
    return sugared;
}
/* Compiles an expression that is no attribute, call or subscript (but see opdi_emit_sugared), and returns its
   meaning. */
static opdi_sugared opdi_emit_atom(opdi_emitter *task, const opdi_syntax *node, const opdi_gtype *hint) {
    task->at = node;
    switch (node->kind) {
    case OPDI_SYNTAX_NAME: {
        opdi_script_var *var = opdi_script_var_find(task->frame, node->word);
        if (var && var->sugared.kind == OPDI_SUGARED_VALUE) { opdi_emit_loaded(task, node->word); }
        return var ? var->sugared : opdi_emit_global(task, node->word);
    }
    case OPDI_SYNTAX_CALL: return opdi_sugared_value(opdi_emit_parameter(task, node));
    case OPDI_SYNTAX_INT: case OPDI_SYNTAX_FLOAT: return opdi_sugared_value(opdi_emit_written(task, node));
    case OPDI_SYNTAX_IMAGINARY: {
        double pair[2] = {0, 0};
        pair[1] = node->number;
        return opdi_sugared_value(opdi_emit_constant(task, opd_value_complex(pair),
                                                     opdi_gtype_simple(OPDI_GTYPE_COMPLEX)));
    }
    case OPDI_SYNTAX_TEXT:
        if (strlen(node->word) == (size_t)node->integer) {
            return opdi_sugared_value(opdi_emit_text(task, node->word));
        }
        return opdi_sugared_value(opdi_emit_constant(task, opd_string_new(node->word, node->integer), /* has a 0 byte */
                                                     opdi_gtype_simple(OPDI_GTYPE_STR)));
    case OPDI_SYNTAX_FORMAT: return opdi_sugared_value(opdi_emit_format(task, node));
    case OPDI_SYNTAX_TRUE: case OPDI_SYNTAX_FALSE:
        return opdi_sugared_value(opdi_emit_bool(task, node->kind == OPDI_SYNTAX_TRUE));
    case OPDI_SYNTAX_NONE: return opdi_sugared_value(opdi_emit_none(task));
    case OPDI_SYNTAX_TUPLE: {
        opdi_gvalue *values[OPDI_SCRIPT_ARGS];
        const bool fits = hint && hint->kind == OPDI_GTYPE_TUPLE && hint->nparts == node->nparts;
        int count = 0;
        for (int i = 0, more; i < node->nparts; i++, count += more) {
            more = opdi_emit_element(task, node->parts[i], fits && count == i ? hint->parts[i] : NULL, values + count,
                                     OPDI_SCRIPT_ARGS - count);
            if (more < 0) { return opdi_sugared_value(NULL); }
        }
        task->at = node;
        return opdi_sugared_value(opdi_emit_tuple(task, values, count));
    }
    case OPDI_SYNTAX_STAR:
        (void)OPDI_EMIT_FAIL(task, "*x can only be used in a tuple or in the arguments of a call");
        return opdi_sugared_value(NULL);
    case OPDI_SYNTAX_LIST: return opdi_sugared_value(opdi_emit_list(task, node, hint));
    case OPDI_SYNTAX_DICT: return opdi_sugared_value(opdi_emit_dict(task, node, hint));
    case OPDI_SYNTAX_LISTCOMP: case OPDI_SYNTAX_DICTCOMP: 
        return opdi_sugared_value(task->script->work->comprehension(task, node, hint));
    case OPDI_SYNTAX_UNARY: return opdi_sugared_value(opdi_emit_unary(task, node));
    case OPDI_SYNTAX_BINARY: {
        opdi_gvalue *left = opdi_emit_expr(task, node->parts[0], NULL);
        const bool twice = node->op == OPDI_SCRIPT_OP_MOD && node->parts[0]->kind == OPDI_SYNTAX_NAME;
        if (left && twice && !opdi_emit_is(left, OPDI_GTYPE_STR)) { opdi_emit_loaded(task, node->parts[0]->word); }
        opdi_gvalue *right = left ? opdi_emit_expr(task, node->parts[1], NULL) : NULL;
        return opdi_sugared_value(opdi_emit_operator(task, node->op, left, right));
    }
    case OPDI_SYNTAX_COMPARE: return opdi_sugared_value(opdi_emit_compare(task, node));
    case OPDI_SYNTAX_AND: case OPDI_SYNTAX_OR: case OPDI_SYNTAX_NOT: {
        opdi_cond_value cond;
        return opdi_sugared_value(opdi_emit_cond(task, node, &cond) ? NULL : cond.value);
    }
    case OPDI_SYNTAX_TERNARY: return opdi_sugared_value(opdi_emit_ternary(task, node, hint));
    default:
        (void)OPDI_EMIT_FAIL(task, "this expression is not supported");
        return opdi_sugared_value(NULL);
    }
}
/* Returns whether an expression is a link of a chain such as x.a(1)[2]: an attribute, call or subscript of what its
   first part means. */
static bool opdi_emit_is_link(const opdi_emitter *task, const opdi_syntax *node) {
    return node->kind == OPDI_SYNTAX_ATTR || node->kind == OPDI_SYNTAX_SUBSCRIPT ||
        (node->kind == OPDI_SYNTAX_CALL && !opdi_emit_makes_parameter(task, node));
}
/* Compiles an expression and returns its meaning.  `hint` is the type that the value should have, or NULL.  On failure,
   sets an error and returns the kind OPDI_SUGARED_NOTHING.  The links of a chain are compiled one after another, so
   that a chain can have any length. */
OPDI_INTERNAL opdi_sugared opdi_emit_sugared(opdi_emitter *task, const opdi_syntax *node, const opdi_gtype *hint) {
    const opdi_syntax *first = node;
    size_t count = 0;
    for (; opdi_emit_is_link(task, first); count++) { first = first->parts[0]; }
    if (count == 0) { return opdi_emit_atom(task, node, hint); }
    const opdi_syntax **const links = (const opdi_syntax **)opdi_emit_alloc(task, count * sizeof *links);
    if (!links) { return opdi_sugared_of(OPDI_SUGARED_NOTHING); }
    for (size_t i = count; i > 0; node = node->parts[0]) { links[--i] = node; }
    opdi_sugared sugared = opdi_emit_atom(task, first, NULL);
    for (size_t i = 0; i < count; i++) {
        const opdi_gtype *const wanted = i + 1 == count ? hint : NULL;
        task->at = links[i];
        if (links[i]->kind == OPDI_SYNTAX_ATTR) { sugared = opdi_emit_attribute_of(task, links[i], sugared); }
        else if (links[i]->kind == OPDI_SYNTAX_CALL) { sugared = opdi_emit_call(task, links[i], sugared, wanted); }
        else { sugared = opdi_sugared_value(opdi_emit_subscript(task, links[i], &sugared, wanted)); }
    }
    return sugared;
}

//== regions of `with` statements ======================================================================================

/* Begins the autocast region that `object`, a torch.autocast object, describes.  Returns the value that the builtin for
   the end of the region takes, or NULL and sets an error. */
OPDI_INTERNAL opdi_gvalue *opdi_emit_autocast(opdi_emitter *task, opdi_gvalue *object) {
    static const char *const names[] = {"device", "fast_dtype", "_enabled", "_cache_enabled"};
    opdi_gvalue *args[4] = {NULL, NULL, NULL, NULL};
    for (int i = 0; i < 4; i++) {
        const bool there = opdi_gclass_slot(opdi_emit_type(object)->klass, names[i]) >= 0;
        if (!there && i % 2 == 0) {
            (void)OPDI_EMIT_FAIL(task, "this object of torch.autocast has no attribute '%s'", names[i]);
            return NULL;
        }
        args[i] = there ? opdi_emit_attribute(task, object, names[i], NULL) : opdi_emit_none(task);
        if (!args[i]) { return NULL; }
    }
    opdi_gnode *node = opdi_emit_builtin(task, "prim::autocast_begin", args, 4, opdi_gtype_simple(OPDI_GTYPE_INT));
    return node ? node->out[0] : NULL;
}
/* Begins the region of `what`, the expression of a `with` statement, if it is torch.no_grad(), torch.enable_grad() or a
   profiler span.  Sets *end to the builtin that ends the region, and returns the value that this builtin takes.  For
   other expressions, returns NULL and does not set *end.  On failure, returns NULL and sets an error. */
OPDI_INTERNAL opdi_gvalue *opdi_emit_region(opdi_emitter *task, const opdi_syntax *what, const char **end) {
    char name[64];
    if (what->kind != OPDI_SYNTAX_CALL || !opdi_syntax_dotted(what->parts[0], name, sizeof name)) { return NULL; }
    if (strcmp(name, "torch.no_grad") == 0 || strcmp(name, "torch.enable_grad") == 0) {
        *end = "aten::set_grad_enabled";
        opdi_gvalue *before = opdi_emit_op(task, "aten::is_grad_enabled", NULL, 0, NULL, 0);
        return before && opdi_emit_op1(task, *end, opdi_emit_bool(task, name[6] == 'e')) ? before : NULL;
    }
    if (strcmp(name, "torch.profiler.record_function") == 0 ||
        strcmp(name, "torch.autograd.profiler.record_function") == 0) {
        *end = "profiler::_record_function_exit";
        if (what->nparts != 2) { (void)OPDI_EMIT_FAIL(task, "record_function takes a name"); }
        return what->nparts != 2 ? NULL
            : opdi_emit_op1(task, "profiler::_record_function_enter", opdi_emit_expr(task, what->parts[1], NULL));
    }
    return NULL;
}
