#include "script.h"

//== inlining functions ================================================================================================

/* Adds the constant that represents a called function in graphs of TorchScript.  Returns the constant, or NULL if
   memory runs out. */
static opdi_gvalue *opdi_emit_function(opdi_emitter *task, const opdi_script_function *function) {
    opdi_gvalue *out =
        opdi_append_constant(task->graph, opd_value_none(), opdi_gtype_simple(OPDI_GTYPE_FUNCTION), NULL);
    if (out) { out->node->attribute = function->name; }
    return out;
}
/* Returns whether an argument of type `type` is replaced by a stand-in (see opdi_emit_stand_ins).  The called function
   then knows only its type.  Objects are not replaced, because it matters which object is passed. */
static bool opdi_gtype_opaque(const opdi_gtype *type) {
    if (type->kind == OPDI_GTYPE_ANY || type->kind == OPDI_GTYPE_FUNCTION || type->kind == OPDI_GTYPE_ANYCLASS ||
        (type->kind == OPDI_GTYPE_CLASS && type->klass->kind != OPDI_CLASS_ENUM)) { return false; }
    for (int32_t i = 0; i < type->nparts; i++) { if (!opdi_gtype_opaque(type->parts[i])) { return false; } }
    return true;
}
/* Sets `within` to stand-ins for the arguments `values` of a called function.  Since PyTorch compiles a function once
   for all callers, the compiler must not use the fact that an argument is a constant.  Returns 0, or -1 if memory runs
   out. */
static int opdi_emit_stand_ins(opdi_emitter *task, const opdi_script_function *function, opdi_gvalue *const *values,
                               opdi_gvalue **within) {
    for (int i = 0; i < function->nformals; i++) {
        const opdi_gtype *type = function->formals[i].type;
        within[i] = values[i];
        if (function->around || opdi_emit_is_unknown(values[i]) || !opdi_gtype_opaque(type)) { continue; }
        if (!(within[i] = opdi_gvalue_new(task->graph, NULL, OPD_TAG_NONE))) { return -1; }
        opdi_gvalue_typed(within[i], type);
        within[i]->first = true;                   /* the stand-in gets no name, because the argument itself has one */
    }
    return 0;
}
/* Compiles the body of a function into the graph at the place of a call with the arguments `values`.  Returns the
   result, or NULL and sets an error. */
OPDI_INTERNAL opdi_gvalue *opdi_emit_inline(opdi_emitter *task, opdi_script_function *function,
                                            opdi_gvalue *const *values) {
    opdi_gvalue *within[OPDI_SCRIPT_ARGS];
    opdi_script_frame *const frame = task->frame;
    opdi_script_unit *const unit = task->unit;
    const opdi_syntax *const at = task->at, *def = function->def;
    opdi_script_frame own;
    opdi_script_body body;
    int calls = 0;
    for (opdi_script_body *up = task->body; up; up = up->up) { calls++; }
    if (function->busy || calls > OPDI_SCRIPT_CALLS) {
        (void)OPDI_EMIT_FAIL(task, function->busy
                             ? "function '%s' is called recursively. Recursive calls are not supported"
                             : "'%s' is called too deep inside of other functions", function->name);
        return NULL;
    }
    if (opdi_emit_afford(task)) { return NULL; }
    memset(&body, 0, sizeof body);
    body.up = task->body;
    body.function = function;
    body.result = function->result;
    body.block = task->graph->into ? task->graph->into : &task->graph->body;
    body.before = body.block->last;
    body.last = &body.later;
    if (body.up) {
        body.self = opdi_script_function_selves(function) && function->nformals ? values[0]
            : opdi_emit_function(task, function);
        body.before = body.block->last;
        if (opdi_emit_stand_ins(task, function, values, within)) { return NULL; }
        body.from = task->graph->next_id;
    }
    task->body = &body;
    task->unit = function->unit;
    task->frame = function->around;
    opdi_script_frame_enter(task, &own);
    function->busy = true;
    body.unset = opdi_emit_unset(task, body.result ? body.result : opdi_gtype_simple(OPDI_GTYPE_ANY));
    int rc = body.unset && !opdi_script_var_value(task, "$done", opdi_emit_flag_value(task, false)) &&
        !opdi_script_var_put(task, "$ret", opdi_sugared_value(body.unset), NULL) ? 0 : -1;
    for (int i = 0; !rc && i < function->nformals; i++) {
        opdi_gvalue *const value = body.up ? within[i] : values[i];
        rc = opdi_script_var_put(task, function->formals[i].name, opdi_sugared_value(value), function->formals[i].type);
        if (opdi_emit_means(function->formals[i].name)) {
            opdi_emit_take(task, function->formals[i].name, body.up ? NULL : values[i]);
        }
    }
    opdi_script_exit leave = rc ? OPDI_EXIT_ERROR
        : opdi_statement_statements(task, def->parts[1]->parts, def->parts[1]->nparts);
    task->at = def;
    if (leave == OPDI_EXIT_NONE) { leave = opdi_statement_return(task, NULL); }
    else if (leave == OPDI_EXIT_MAYBE) { leave = opdi_statement_guarded(task, NULL, 0); }
    const opdi_script_var *out = leave == OPDI_EXIT_ERROR ? NULL : opdi_script_var_find(task->frame, "$ret");
    opdi_gvalue *result = out ? out->sugared.value : NULL;
    if (result && body.result && leave == OPDI_EXIT_RAISE && result == body.unset) {
        opdi_emit_type_set(result, body.result);
    }
    if (!body.up) { task->script->values += (uint64_t)task->graph->next_id; }
    if (result && opdi_script_body_close(task, &body, &result)) { result = NULL; }
    for (int i = 0; result && body.up && i < function->nformals; i++) {
        if (within[i] != values[i]) { within[i]->same = values[i]; }
    }
    if (result && body.up) {
        opdi_script_clean_replace_all(&body, &result);
        body.up->called[body.up->ncalled - 1]->result = result;
    }
    function->busy = false;
    task->body = body.up;
    task->frame = frame;
    task->unit = unit;
    task->at = at;
    return result;
}

//== graphs of methods =================================================================================================

/* A text is read and a method is compiled when it is first used, which may be on several threads.  One thread at a time
   does this.  It may enter again: compiling a method resolves and compiles others. */
OPDI_INTERNAL opdi_mutex opdi_script_lock = OPDI_MUTEX_INIT;
static const opdi_thread *opdi_script_thread;     /* the thread that holds the lock, or NULL */

/* Waits until no other thread is reading or compiling.  Returns false if this thread is already doing it. */
OPDI_INTERNAL bool opdi_script_enter(void) {
    const opdi_thread *const thread = opdi_self();
    if (OPDI_LOAD(&opdi_script_thread) == thread) { return false; }
    opdi_lock(&opdi_script_lock);
    OPDI_STORE(&opdi_script_thread, thread);
    return true;
}
OPDI_INTERNAL void opdi_script_leave(bool entered) {
    if (!entered) { return; }
    OPDI_STORE(&opdi_script_thread, (const opdi_thread *)NULL);
    opdi_unlock(&opdi_script_lock);
}

OPDI_INTERNAL opd_graph *opdi_script_graph_begin(opdi_emitter *task, opdi_script_function *function) {
    task->graph = opd_graph_new();
    if (!task->graph) { return NULL; }
    opdi_graph_share(task->graph, task->space);
    task->unit = function->unit;
    task->at = function->def;
    return task->graph;
}
/* Compiles a function into task->graph, with its parameters as the inputs.  Returns the result, or NULL and sets an
   error. */
static opdi_gvalue *opdi_script_body_compile(opdi_emitter *task, opdi_script_function *function) {
    opdi_gvalue *values[OPDI_SCRIPT_ARGS];
    if (opdi_script_function_resolve(task, function)) { return NULL; }
    for (int i = 0; i < function->nformals; i++) {
        values[i] = opdi_append_input(task->graph, NULL, function->formals[i].type);
        if (!values[i]) { return NULL; }
    }
    return opdi_emit_inline(task, function, values);
}
/* Finds the attributes that `init`, the method __init__ of a class, creates: compiles it into a graph, which is then
   freed.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_script_discover(opdi_emitter *task, opdi_script_function *init) {
    opdi_gvalue *value = opdi_script_graph_begin(task, init) ? opdi_script_body_compile(task, init) : NULL;
    opd_graph_free(task->graph);
    task->graph = NULL;
    return value ? 0 : -1;
}
/* Compiles a function that has no graph.  Returns its graph, or NULL and sets an error.  The caller has entered. */
static opd_graph *opdi_script_make_graph(opd_script *script, opdi_script_function *function) {
    opdi_arena arena;
    opdi_emitter task;
    memset(&arena, 0, sizeof arena);
    opdi_emitter_init(&task, script, &arena, function->unit);
    opdi_gvalue *value = opdi_script_graph_begin(&task, function) ? opdi_script_body_compile(&task, function) : NULL;
    task.at = function->def;
    if (value && opdi_requantize_graph(task.graph)) { value = NULL; }
    if (value && opdi_append_outputs(task.graph, &value, 1, true) == 0) {
        opdi_graph_forget_names(task.graph);
        opdi_graph_changed(task.graph);
        OPDI_PUBLISH(&function->graph, task.graph);
    } else { opd_graph_free(task.graph); }
    opdi_arena_free(&arena);
    return function->graph;
}
/* Returns the graph of a function; compiles it if there is none.  On failure, returns NULL and sets an error. */
OPDI_INTERNAL opd_graph *opdi_script_compiled(opd_script *script, opdi_script_function *function) {
    opd_graph *graph = OPDI_ACQUIRE(&function->graph);
    if (graph) { return graph; }
    const bool entered = opdi_script_enter();
    graph = function->graph ? function->graph : opdi_script_make_graph(script, function);
    opdi_script_leave(entered);
    return graph;
}
/* Returns the method or function named `name` as opdi_script_method does, without an error if there is none. */
static opdi_script_function *opdi_script_look_up(opd_script *script, const char *name) {
    opdi_script_function *function = NULL;
    if (opd_value_cell(script->self) == OPD_CELL_OBJECT) {
        opdi_script_class *klass = opdi_script_class_find(script, opd_object_class(script->self));
        if (klass && opdi_script_class_resolve(script, klass)) {
            function = opdi_script_function_in(&klass->methods, name && *name ? name : "forward");
        }
        if (klass && !function && name && *name && !script->archive) {
            function = opdi_script_function_in(&klass->unit->functions, name);
        }
    } else {
        opdi_script_unit *unit = opdi_script_unit_find(script, "__torch__", 9);
        function = !unit ? NULL : name && *name ? opdi_script_function_in(&unit->functions, name)
            : opdi_script_function_in(&unit->functions, "forward");
        if (unit && !function && (!name || !*name)) {
            for (function = unit->functions.first; function && function->next;) { function = function->next; }
        }
    }
    return function;
}
/* Returns the first function in a list, from `function` on, that is not the method __init__ of a class; NULL if there
   is none.  Users do not see __init__, because it has already run. */
OPDI_INTERNAL opdi_script_function *opdi_script_shown(opdi_script_function *function) {
    while (function && function->owner && strcmp(function->name, "__init__") == 0) { function = function->next; }
    return function;
}
/* Returns the first method of the script or, if the script has no object, its first function.  Returns NULL if there is
   none.  The caller has entered. */
static opdi_script_function *opdi_script_first_here(opd_script *its) {
    if (opd_value_cell(its->self) == OPD_CELL_OBJECT) {
        opdi_script_class *klass = opdi_script_class_find(its, opd_object_class(its->self));
        return klass && opdi_script_class_resolve(its, klass) ? opdi_script_shown(klass->methods.first) : NULL;
    }
    opdi_script_unit *unit = opdi_script_unit_find(its, "__torch__", 9);
    return unit ? unit->functions.first : NULL;
}
/* Does the same, and enters. */
OPDI_INTERNAL opdi_script_function *opdi_script_first(const opd_script *script) {
    const bool entered = opdi_script_enter();     /* not const, because a text is read when it is first used */
    opdi_script_function *const function = opdi_script_first_here((opd_script *)(uintptr_t)script);
    opdi_script_leave(entered);
    return function;
}
int opd_script_count(const opd_script *script) {
    int count = 0;
    for (const opdi_script_function *function = script ? opdi_script_first(script) : NULL; function;
         function = opdi_script_shown(function->next)) { count++; }
    return count;
}
const char *opd_script_name(const opd_script *script, int place) {
    const opdi_script_function *function = script ? opdi_script_first(script) : NULL;
    for (; function && place > 0; place--) { function = opdi_script_shown(function->next); }
    return function && place == 0 ? function->name : NULL;
}
static const char *opdi_script_name_at(const void *script, int64_t i) {
    return opd_script_name((const opd_script *)script, (int)i);
}
/* Returns the method or function named `name`.  If `name` is "" or NULL, returns forward; if the script has neither an
   object nor a function forward, returns the last function.  If there is none, returns NULL and sets an error. */
OPDI_INTERNAL opdi_script_function *opdi_script_method(opd_script *script, const char *name) {
    if (!opd_ok()) { return NULL; }
    const bool entered = opdi_script_enter();
    opdi_script_function *const function = opdi_script_look_up(script, name);
    if (!function && opd_ok()) {
        char near_text[400];
        const char *const wanted = name && *name ? name : "forward";
        (void)opd_fail(OPD_ERROR_NOT_FOUND, "the script has no method '%s'%s", wanted, opdi_did_you_mean(
            near_text, wanted, opdi_script_name_at, script, "opd_script_name"));
    }
    opdi_script_leave(entered);
    return function;
}
