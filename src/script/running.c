#include "script.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>script_runs  scripts: compiling source text, making modules, finding and running methods
//
//  The public functions for scripts, except those that load and save archives.
//----------------------------------------------------------------------------------------------------------------------

//== scripts ===========================================================================================================

static const opdi_script_callbacks opdi_the_script_callbacks = {opdi_emit_inline, opdi_emit_comprehension,
                                                                opdi_script_discover,
                                                                opdi_script_compiled};
OPDI_INTERNAL opd_script *opdi_script_new(void) {
    opd_script *script = (opd_script *)opdi_alloc(sizeof *script);
    if (!script) { return NULL; }
    memset(script, 0, sizeof *script);
    script->refs = 1;
    script->work = &opdi_the_script_callbacks;
    script->space = opdi_gspace_new();
    if (script->space) { return script; }
    opdi_free(script, sizeof *script);
    return NULL;
}
static void opdi_script_functions_free(opdi_script_function *functions) {
    for (; functions; functions = functions->next) { opd_graph_free(functions->graph); }
}
void opd_script_free(opd_script *script) {
    if (!script || opdi_ref_down(&script->refs)) { return; }
    for (opdi_script_unit *unit = script->units; unit; unit = unit->next) {
        opdi_script_functions_free(unit->functions.first);
        for (opdi_script_class *klass = unit->classes; klass; klass = klass->next) {
            opdi_script_functions_free(klass->methods.first);
            opdi_script_enum_drop(klass);
            klass->gclass->user = NULL;
            klass->gclass->less = NULL;
            klass->gclass->lt = NULL;
        }
    }
    opdi_value_drop(script->self);
    opdi_value_drop(script->constants);
    for (opdi_script_wrapped_number *known = script->numbers; known; known = known->next) {
        opdi_release(known->number);
    }
    opd_module_free(script->module);
    if (script->archive) { script->let_go(script->archive); }
    opdi_string_free(&script->bound);
    opdi_gspace_drop(script->space);
    opdi_arena_free(&script->arena);
    opdi_free(script, sizeof *script);
}
/* Adds the parameters and buffers of an object, and of its child modules, to the script's module.  Their names begin
   with `path`.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_script_bind(opd_script *script, opdi_cell *object, opdi_string *path, int depth) {
    const opdi_gclass *gclass = object->klass;
    const opdi_script_class *klass = (const opdi_script_class *)gclass->user;
    if (depth > 60) { return opd_fail(OPD_ERROR_SCHEMA, "modules are nested more than 60 deep"); }
    for (int32_t slot = 0; slot < gclass->nattributes; slot++) {
        const char *name = gclass->attributes[slot].name;
        const opd_value value = opdi_cell_at(object, slot);
        const size_t was = path->length;
        const bool inner = opd_value_cell(value) == OPD_CELL_OBJECT &&
            opdi_cell_of(&value)->klass->kind == OPDI_CLASS_MODULE;
        const bool parameter = klass && opdi_script_class_lists(klass, "__parameters__", name);
        if (!inner && (value.tag != OPD_TAG_TENSOR || !klass ||
                       (!parameter && !opdi_script_class_lists(klass, "__buffers__", name)))) { continue; }
        if (was) { opdi_string_add(path, "."); }
        opdi_string_add(path, name);
        if (path->failed) { return -1; }
        if (inner) {
            if (opdi_script_bind(script, opdi_cell_of(&value), path, depth + 1)) { return -1; }
        } else {
            opdi_script_binding bound;
            bound.object = object;
            bound.slot = slot;
            if (opd_module_add(script->module, path->data, value.u.t, parameter ? OPD_MODULE_PARAMETER
                               : OPD_MODULE_BUFFER)) { return -1; }
            bound.place = opd_module_count(script->module) - 1;
            opdi_string_add_n(&script->bound, (const char *)(const void *)&bound, sizeof bound);
        }
        path->length = was;
        if (path->data) { path->data[was] = 0; }
    }
    return path->failed || script->bound.failed ? -1 : 0;
}
/* Returns a graph without inputs that computes the default of parameter number i of a function, or NULL and sets an
   error. */
OPDI_INTERNAL opd_graph *opdi_script_default_graph(opd_script *script, opdi_script_function *function, int32_t i) {
    const opdi_script_formal *const formal = &function->formals[i];
    const opdi_gtype *const plain = formal->type->kind == OPDI_GTYPE_OPTIONAL ? formal->type->parts[0] : formal->type;
    opdi_arena arena;
    opdi_emitter task;
    opdi_script_frame frame;
    opdi_script_body body;
    memset(&arena, 0, sizeof arena);
    memset(&body, 0, sizeof body);
    opdi_emitter_init(&task, script, &arena, function->unit);
    if (!opdi_script_graph_begin(&task, function)) { return NULL; }
    const bool entered = opdi_script_enter();
    body.function = function;
    body.block = &task.graph->body;
    body.last = &body.later;
    task.body = &body;
    task.at = formal->otherwise;
    opdi_script_frame_enter(&task, &frame);
    opdi_gvalue *value = opdi_emit_expr(&task, formal->otherwise, formal->type);
    if (value && plain->kind == OPDI_GTYPE_FLOAT && opdi_emit_is(value, OPDI_GTYPE_INT)) {
        value = opdi_emit_op1(&task, "aten::Float", value);
    }
    value = opdi_emit_repeated(&task, value, function->def->parts[2 + i]->parts[0], formal->type);
    value = opdi_emit_become(&task, value, formal->type, "argument '%s'", formal->name);
    if (!value || opdi_append_outputs(task.graph, &value, 1, true)) {
        opd_graph_free(task.graph);
        task.graph = NULL;
    } else {
        opdi_graph_forget_names(task.graph);
        opdi_graph_changed(task.graph);
    }
    opdi_script_leave(entered);
    opdi_arena_free(&arena);
    return task.graph;
}
/* Sets *value to the default of parameter number i of a function.  Returns 0, or -1 and sets an error. */
static int opdi_script_default(opd_script *script, opdi_script_function *function, int32_t i, opd_value *value) {
    const opdi_syntax *const node = function->formals[i].otherwise;
    const opdi_gtype *const type = function->formals[i].type;
    const bool known = (type->kind == OPDI_GTYPE_OPTIONAL ? type->parts[0] : type)->kind != OPDI_GTYPE_FLOAT;
    *value = opd_value_none();
    switch (node->kind) {
    case OPDI_SYNTAX_INT:
        *value = opd_value_int(node->integer);
        if (known && node->op != OPDI_SIGN_NEEDED) { return 0; }
        break;
    case OPDI_SYNTAX_FLOAT: *value = opd_value_double(node->number); return 0;
    case OPDI_SYNTAX_TRUE: case OPDI_SYNTAX_FALSE: *value = opd_value_bool(node->kind == OPDI_SYNTAX_TRUE); return 0;
    case OPDI_SYNTAX_TEXT: *value = opd_string_new(node->word, node->integer); return opd_ok() ? 0 : -1;
    case OPDI_SYNTAX_NONE: return 0;
    default: break;
    }
    opd_graph *const graph = opdi_script_default_graph(script, function, i);
    const int count = graph ? opdi_graph_run_values(graph, NULL, 0, value, 1) : -1;
    opd_graph_free(graph);
    return count == 1 && opd_ok() ? 0 : -1;
}
/* Runs a function with the arguments `values`, one for each parameter, and sets *result to its result.  Returns 0, or
   -1 and sets an error. */
OPDI_INTERNAL int opdi_script_call(opd_script *script, opdi_script_function *function, const opd_value *values,
                                   opd_value *result) {
    const opd_graph *graph = opdi_script_compiled(script, function);
    const int count = graph ? opdi_graph_run_values(graph, values, function->nformals, result, 1) : -1;
    return count < 0 || !opd_ok() ? -1 : 0;
}
/* Returns the class of which the script makes its own module: the last module class in the source.  Returns NULL if
   there is none.  If the source also has functions, returns NULL if they take or make modules, or if the class has no
   forward, or if its __init__ needs arguments. */
static opdi_script_class *opdi_script_module_of(const opdi_script_unit *unit) {
    for (const opdi_script_function *function = unit->functions.first; function; function = function->next) {
        const opdi_gnode *node = function->graph ? function->graph->body.first : NULL;
        for (; node; node = opdi_gnode_after(node)) {
            const opdi_gtype *const type = node->kind == OPDI_GNODE_BUILTIN && node->nout == 1
                ? node->out[0]->type : NULL;
            if (type && type->kind == OPDI_GTYPE_CLASS && type->klass->kind == OPDI_CLASS_MODULE) { return NULL; }
        }
        for (int32_t i = 0; i < function->nformals; i++) {
            const opdi_gtype *const type = function->formals[i].type;
            if (type->kind == OPDI_GTYPE_CLASS && type->klass->kind == OPDI_CLASS_MODULE) { return NULL; }
        }
    }
    opdi_script_class *klass = unit->classes;      /* the first class in the list is the one that is defined last */
    while (klass && klass->gclass->kind != OPDI_CLASS_MODULE) { klass = klass->next; }
    const opdi_script_function *const init = klass && unit->functions.first
        ? opdi_script_function_in(&klass->methods, "__init__") : NULL;
    for (int32_t i = 1; init && i < init->nformals; i++) { if (!init->formals[i].otherwise) { return NULL; } }
    return klass && unit->functions.first && !opdi_script_function_in(&klass->methods, "forward") ? NULL : klass;
}
/* Makes an object of a module class, stores it in script->self, and calls its __init__.  Returns 0, or -1 and sets an
   error. */
static int opdi_script_instance(opd_script *script, opdi_script_class *klass) {
    opd_value values[OPDI_SCRIPT_ARGS], result;
    opdi_string path = {NULL, 0, 0, false};
    opdi_cell *const self = opdi_object_new(klass->gclass);
    if (!self) { return -1; }
    script->self = opdi_cell_value(self);
    values[0] = script->self;
    opdi_script_function *const init = opdi_script_function_in(&klass->methods, "__init__");
    const int32_t training = opdi_gclass_slot(klass->gclass, "training");
    int rc = training >= 0 ? opdi_object_put(self, training, opd_value_bool(true)) : 0;
    rc = rc == 0 && init && !opdi_script_compiled(script, init) ? -1 : rc;
    for (int32_t i = 1; rc == 0 && init && i < init->nformals; i++) {
        const opdi_syntax *const def = init->def;
        rc = init->formals[i].otherwise ? opdi_script_default(script, init, i, &values[i])
            : opdi_script_text_fail(def->text, def->at, def->length, "the script makes %s without arguments, but its "
                                    "__init__ needs '%s': give it a default, or make %s in a function",
                                    klass->def->word, init->formals[i].name, klass->def->word);
    }
    rc = rc == 0 && init ? opdi_script_call(script, init, values, &result) : rc;
    rc = rc || opdi_script_bind(script, self, &path, 0) ? -1 : 0;
    opdi_string_free(&path);
    opdi_script_function *const forward = opdi_script_function_in(&klass->methods, "forward");
    return rc == 0 && forward && !opdi_script_compiled(script, forward) ? -1 : rc;
}
opd_script *opd_script_compile(const char *source, const char *name) {
    OPDI_NEEDS_ALL();
    if (!opd_ok()) { return NULL; }
    if (!source) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_script_compile: the source is NULL");
        return NULL;
    }
    opd_script *script = opdi_script_new();
    opdi_script_unit *unit = script
        ? opdi_script_unit_add(script, "__torch__", name ? name : "<string>", source, strlen(source))
        : NULL;
    bool fine = unit && opdi_script_unit_read(script, unit) && (script->module = opd_module_new()) != NULL;
    for (opdi_script_class *klass = fine ? unit->classes : NULL; fine && klass; klass = klass->next) {
        fine = opdi_script_class_resolve(script, klass) != NULL;
    }
    opdi_script_function *function = fine ? unit->functions.first : NULL;
    for (; fine && function; function = function->next) {
        fine = opdi_script_compiled(script, function) != NULL;
    }
    opdi_script_class *const last = fine ? opdi_script_module_of(unit) : NULL;
    if (last) { OPD_SCOPE { fine = opdi_script_instance(script, last) == 0; } }
    if (fine) { return script; }
    opd_script_free(script);
    return NULL;
}
opd_module *opd_script_module(const opd_script *script) { return script ? script->module : NULL; }
/* Finds the types of the parameters of a function, if they are not known yet.  Returns 0, or -1 and sets an error. */
static int opdi_script_types(opd_script *script, opdi_script_function *function) {
    opdi_arena arena;
    opdi_emitter task;
    if (function->formals) { return 0; }
    memset(&arena, 0, sizeof arena);
    opdi_emitter_init(&task, script, &arena, function->unit);
    task.at = function->def;
    const int rc = opdi_script_function_resolve(&task, function);
    opdi_arena_free(&arena);
    return rc;
}
/* Returns the function or method named `method`, whose parameters have their types, or NULL and sets an error. */
static opdi_script_function *opdi_script_known(const opd_script *script, const char *method) {
    opd_script *its = (opd_script *)(uintptr_t)script;
    const bool entered = opdi_script_enter();
    opdi_script_function *const function = script ? opdi_script_method(its, method) : NULL;
    const int rc = function ? opdi_script_types(its, function) : -1;
    opdi_script_leave(entered);
    return rc ? NULL : function;
}
int opd_script_nargs(const opd_script *script, const char *method) {
    const opdi_script_function *function = opdi_script_known(script, method);
    return function ? function->nformals - opdi_script_function_selves(function) : -1;
}
const char *opd_script_arg_name(const opd_script *script, const char *method, int place) {
    const opdi_script_function *function = opdi_script_known(script, method);
    const int at = function ? place + opdi_script_function_selves(function) : 0;
    return function && place >= 0 && at < function->nformals ? function->formals[at].name : NULL;
}
size_t opd_script_arg_type(const opd_script *script, const char *method, int place, char *buf, size_t cap) {
    const opdi_script_function *function = opdi_script_known(script, method);
    const int at = function ? place + opdi_script_function_selves(function) : 0;
    opdi_text text = opdi_text_of(buf, cap);
    if (function && place == -1 && function->result) { opdi_gtype_print(&text, function->result, true); }
    if (function && place >= 0 && at < function->nformals) {
        opdi_gtype_print(&text, function->formals[at].type, true);
    }
    return text.length;
}
const opd_graph *opd_script_graph(const opd_script *script, const char *method) {
    opd_script *its = (opd_script *)(uintptr_t)script;
    opdi_script_function *function = opdi_script_known(script, method);
    return function ? opdi_script_compiled(its, function) : NULL;
}
static bool opdi_script_graph_in(const opdi_script_function *function, const opd_graph *graph) {
    while (function && function->graph != graph) { function = function->next; }
    return function != NULL;
}
/* Returns whether a function of the script has this graph. */
static bool opdi_script_has_graph(const opd_script *script, const opd_graph *graph) {
    for (const opdi_script_unit *unit = script->units; unit; unit = unit->next) {
        if (opdi_script_graph_in(unit->functions.first, graph)) { return true; }
        for (const opdi_script_class *klass = unit->classes; klass; klass = klass->next) {
            if (opdi_script_graph_in(klass->methods.first, graph)) { return true; }
        }
    }
    return false;
}
/* Checks that a graph can take the place of `now`, the graph of a method.  Returns 0, or -1 and sets an error. */
static int opdi_script_graph_check(const opd_script *script, const opd_graph *now, opd_graph *graph) {
    const char *const who = "opd_script_set_graph";
    if (graph->space != script->space || opdi_script_has_graph(script, graph)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the graph is not a copy of the method's graph (opd_graph_copy), or it "
                        "belongs to the script already", who);
    }
    if (graph->ninputs != now->ninputs || !graph->result != !now->result) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the graph has %d inputs and %s result, but the method has %d and %s",
                        who, (int)graph->ninputs, graph->result ? "a" : "no", (int)now->ninputs,
                        now->result ? "a" : "no");
    }
    for (int32_t i = 0; i <= now->ninputs; i++) {
        const opdi_gvalue *const its = i < now->ninputs ? graph->inputs[i] : graph->result;
        const opdi_gvalue *const old = i < now->ninputs ? now->inputs[i] : now->result;
        const opdi_gtype *const have = its ? opdi_gvalue_gtype(graph, its) : NULL;
        const opdi_gtype *const want = old ? opdi_gvalue_gtype(graph, old) : NULL;
        char texts[2][100];
        if (old && (!have || !want)) { return -1; }
        if (!old || opdi_gtype_same(have, want) || (i == now->ninputs && opdi_gtype_fits(have, want))) { continue; }
        for (int k = 0; k < 2; k++) {
            opdi_text text = opdi_text_of(texts[k], sizeof texts[k]);
            opdi_gtype_print(&text, k ? want : have, true);
        }
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s of the graph has the type %s, but the method has %s", who,
                        i < now->ninputs ? "an input" : "the result", texts[0], texts[1]);
    }
    return 0;
}
int opd_script_set_graph(opd_script *script, const char *method, opd_graph *graph) {
    if (!opd_ok()) { return -1; }
    if (!script || !graph) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_script_set_graph: the %s is NULL", script ? "graph" : "script");
    }
    opdi_script_function *const function = opdi_script_known(script, method);
    opd_graph *const now = function ? opdi_script_compiled(script, function) : NULL;
    if (!now || opdi_script_graph_check(script, now, graph)) { return -1; }
    OPDI_PUBLISH(&function->graph, graph);
    script->listed = NULL;                        /* opd_script_operator lists the calls anew */
    script->changed = true;
    opd_graph_free(now);
    return 0;
}
/* Makes the objects of the script and its module have the same tensors.  If `before` is true (before a run), objects
   get the tensors of the module; otherwise the module gets the tensors that the script has set in objects.  Returns 0,
   or -1 and sets an error. */
OPDI_INTERNAL int opdi_script_sync(opd_script *script, bool before) {
    const opdi_script_binding *bound = (const opdi_script_binding *)(void *)script->bound.data;
    const size_t count = script->bound.length / sizeof *bound;
    for (size_t i = 0; i < count; i++) {
        const opd_value value = opdi_cell_at(bound[i].object, bound[i].slot);
        opd_tensor *tensor = opd_module_at(script->module, bound[i].place);
        if (value.tag != OPD_TAG_TENSOR || value.u.t == tensor) { continue; }
        if (before ? opdi_object_put(bound[i].object, bound[i].slot, opd_value_tensor(tensor))
            : opd_module_set(script->module, opd_module_name(script->module, bound[i].place), value.u.t)) { return -1; }
    }
    return opd_ok() ? 0 : -1;
}
/* Runs the hooks of a module: those before forward or, if `result` is not NULL, those after it.  `values` has the
   object and `given` arguments, and *result is the result of forward.  If a hook returns a value, the value replaces
   the arguments, or *result.  Returns 0, or -1 and sets an error. */
static int opdi_script_hooks(opd_script *script, opdi_script_class *klass, opd_value *values, int given,
                             opd_value *result) {
    const opdi_syntax *names = opdi_script_class_list(klass, result ? "__forward_hooks__" : "__forward_pre_hooks__");
    for (int i = 0; names && i < names->nparts; i++) {
        const opdi_syntax *name = names->parts[i];
        opdi_script_function *hook = name->kind == OPDI_SYNTAX_TEXT ? opdi_script_method(script, name->word) : NULL;
        opd_value args[3], gave = opd_value_none();
        if (!hook || !opdi_script_compiled(script, hook)) { return -1; }
        if (hook->nformals != (result ? 3 : 2)) {
            return opd_fail(OPD_ERROR_SCHEMA, "the hook %s must not have %d parameters", hook->name, hook->nformals);
        }
        args[0] = values[0];
        args[1] = opd_tuple_new(values + 1, given);
        args[2] = result ? *result : opd_value_none();
        if (!opd_ok() || opdi_script_call(script, hook, args, &gave)) { return -1; }
        if (gave.tag == OPD_TAG_NONE) { continue; }
        if (result) {
            *result = gave;
            continue;
        }
        const bool many = opd_value_cell(gave) == OPD_CELL_TUPLE;
        if (many ? opd_list_count(gave) != given : given != 1) {
            return opd_fail(OPD_ERROR_SCHEMA, "the hook %s returns another number of arguments", hook->name);
        }
        for (int k = 0; k < given; k++) { values[1 + k] = many ? opd_list_at(gave, k) : gave; }
    }
    return opd_ok() ? 0 : -1;
}
/* Returns the place of the argument with this name, or -1. */
static int opdi_script_formal_place(const opdi_script_function *function, int first, const char *name) {
    for (int i = first; i < function->nformals; i++) {
        if (strcmp(function->formals[i].name, name) == 0) { return i; }
    }
    return -1;
}
/* Writes the arguments of a call to values, in the order of the function's arguments, from number `first` on.  Returns
   0, or -1 and sets an error. */
static int opdi_script_bind_args(opd_script *script, opdi_script_function *function, int first, const opd_value *args,
                                 int nargs, const opd_keyword *keywords, int nkeywords, opd_value *values) {
    const int most = function->nformals - first;
    bool given[OPDI_SCRIPT_ARGS] = {false};
    if ((nargs && !args) || (nkeywords && !keywords)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s(): the pointer to its %s is NULL", function->name,
                        nargs && !args ? "arguments" : "arguments by name");
    }
    if (nargs > most) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s() takes %d argument(s), but got %d", function->name, most, nargs);
    }
    for (int i = 0; i < nargs; i++) {
        given[first + i] = args[i].tag != OPD_TAG_DEFAULT;
        values[first + i] = args[i];
    }
    for (int k = 0; k < nkeywords; k++) {
        const char *const name = keywords[k].name ? keywords[k].name : "";
        const int i = opdi_script_formal_place(function, first, name);
        if (i < 0) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s() has no argument with the name '%s'", function->name, name);
        }
        if (given[i]) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s() got two values for the argument '%s'", function->name, name);
        }
        given[i] = true;
        values[i] = keywords[k].value;
    }
    for (int i = first; i < function->nformals; i++) {
        if (given[i]) { continue; }
        if (!function->formals[i].otherwise) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s() is missing value for argument '%s'", function->name,
                            function->formals[i].name);
        }
        if (opdi_script_default(script, function, i, &values[i])) { return -1; }
    }
    return 0;
}
static int opdi_script_run_named(const opd_script *script, const char *method, const opd_value *args, int nargs,
                                 const opd_keyword *keywords, int nkeywords, opd_value *result) {
    opd_script *its = (opd_script *)(uintptr_t)script;
    opdi_script_function *function = opdi_script_known(script, method);
    opd_graph *graph = function ? opdi_script_compiled(its, function) : NULL;
    opd_value values[OPDI_SCRIPT_ARGS];
    *result = opd_value_none();
    if (!graph) { return -1; }
    const int first = opdi_script_function_selves(function);
    if (first) { values[0] = script->self; }
    if (opdi_script_bind_args(its, function, first, args, nargs, keywords, nkeywords, values)) { return -1; }
    if (opdi_script_sync(its, true)) { return -1; }
    const bool hooked = first && strcmp(function->name, "forward") == 0;
    const int given = OPDI_MIN(nargs + nkeywords, function->nformals - first);
    int rc = hooked ? opdi_script_hooks(its, function->owner, values, given, NULL) : 0;
    rc = rc ? rc : opdi_script_call(its, function, values, result);
    rc = rc || !hooked ? rc : opdi_script_hooks(its, function->owner, values, given, result);
    if (!rc && opdi_script_sync(its, false) == 0) { return 0; }
    *result = opd_value_none();
    return -1;
}
int opd_script_run_named(const opd_script *script, const char *method, const opd_value *args, int nargs,
                         const opd_keyword *keywords, int nkeywords, opd_value *result) {
    opd_script *const kept = (opd_script *)(uintptr_t)script;
    opd_value unwanted;
    if (kept) { opdi_ref_up(&kept->refs); }
    const int rc = opdi_script_run_named(script, method, args, nargs, keywords, nkeywords, result ? result : &unwanted);
    opd_script_free(kept);
    return rc;
}
int opd_script_run(const opd_script *script, const char *method, const opd_value *args, int nargs,
                   opd_value *result) {
    return opd_script_run_named(script, method, args, nargs, NULL, 0, result);
}
/* Adds 1 to the number of calls of an operator or builtin in script->listed; `node` calls it.  Returns 0, or -1 if
   memory runs out. */
static int opdi_script_count_op(opd_script *script, const opdi_gnode *node) {
    const char *full = node->kind == OPDI_GNODE_OP ? node->op->name : node->builtin->schema;
    const size_t length = strcspn(full, "(");
    opdi_script_op_count **at = &script->listed;
    while (*at && (strncmp((*at)->name, full, length) != 0 || (*at)->name[length])) { at = &(*at)->next; }
    if (!*at) {
        opdi_script_op_count *listed = (opdi_script_op_count *)opdi_arena_alloc(&script->arena, sizeof *listed);
        if (!listed || !(listed->name = opdi_arena_copy(&script->arena, full, length))) { return -1; }
        listed->next = NULL;
        listed->count = 0;
        listed->missing = node->kind == OPDI_GNODE_BUILTIN && node->builtin->run == opdi_builtin_unknown;
        *at = listed;
    }
    (*at)->count++;
    return 0;
}
/* Lists the operators that the methods of a script call, with the numbers of calls, in script->listed.  Returns 0, or
   -1 and sets an error if memory runs out or a limit is reached. */
static int opdi_script_list(opd_script *script) {
    for (opdi_script_function *function = script->listed ? NULL : opdi_script_first(script); function;
         function = opdi_script_shown(function->next)) {
        const int mark = opd_error_mark();
        const opd_graph *graph = opd_script_graph(script, function->name);
        if (opdi_error_passes()) {
            script->listed = NULL;
            return -1;
        }
        (void)opd_error_rewind(mark);              /* forgets the error, which callers get when they need the graph */
        for (const opdi_gnode *node = graph ? graph->body.first : NULL; node; node = opdi_gnode_after(node)) {
            if ((node->kind == OPDI_GNODE_OP || node->kind == OPDI_GNODE_BUILTIN) &&
                opdi_script_count_op(script, node)) { return -1; }
        }
    }
    return 0;
}
const char *opd_script_operator(const opd_script *script, int64_t place, int64_t *count, bool *missing) {
    if (count) { *count = 0; }
    if (missing) { *missing = false; }
    if (!opd_ok() || !script) { return NULL; }
    const bool entered = opdi_script_enter();
    const int rc = opdi_script_list((opd_script *)(uintptr_t)script);
    opdi_script_leave(entered);
    if (rc) { return NULL; }
    const opdi_script_op_count *listed = script->listed;
    for (; listed && place > 0; place--) { listed = listed->next; }
    if (!listed || place < 0) { return NULL; }
    if (count) { *count = listed->count; }
    if (missing) { *missing = listed->missing; }
    return listed->name;
}

/* Appends the tensors of a value, including those in tuples and lists, to the `count` tensors in `outputs`.  Returns
   the new number of tensors, or -1 and sets an error. */
static int opdi_script_outputs(opd_value value, opd_tensor **outputs, int count, int depth) {
    if (value.tag == OPD_TAG_TENSOR) {
        if (count == OPD_TRANSFORM_OUTPUTS) { return opd_fail(OPD_ERROR_ARGUMENT, "the script has too many results"); }
        outputs[count] = value.u.t;
        return count + 1;
    }
    const opd_cell_kind kind = opd_value_cell(value);
    if ((kind != OPD_CELL_LIST && kind != OPD_CELL_TUPLE) || depth > 8) {
        return opd_fail(OPD_ERROR_ARGUMENT, "a script that is called as a function of tensors must return tensors");
    }
    const int64_t parts = opd_list_count(value);
    for (int64_t i = 0; i < parts && count >= 0; i++) {
        count = opdi_script_outputs(opd_list_at(value, i), outputs, count, depth + 1);
    }
    return count;
}
int opd_script_function(void *script, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    opd_value values[OPDI_SCRIPT_ARGS], result;
    if (ninputs < 0 || ninputs > OPDI_SCRIPT_ARGS) {
        return opd_fail(OPD_ERROR_ARGUMENT, "the script has %d inputs, which is more than can be used", ninputs);
    }
    if ((ninputs > 0 && !inputs) || !outputs) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_script_function: the %s are NULL", outputs ? "inputs" : "outputs");
    }
    for (int i = 0; i < ninputs; i++) { values[i] = opd_value_tensor(inputs[i]); }
    if (opd_script_run((const opd_script *)script, NULL, values, ninputs, &result)) { return -1; }
    return opdi_script_outputs(result, outputs, 0, 0);
}
