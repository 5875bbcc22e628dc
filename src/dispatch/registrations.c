#include "lean.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>registrations  opd_def and opd_impl: definitions and kernels of operators
//
//  A library has a list of its registrations: a definition gives an operator its schema, and every other registration
//  is a kernel at a key.  This section makes them, checks them against each other, and undoes them.
//----------------------------------------------------------------------------------------------------------------------

//== undoing registrations =============================================================================================

OPDI_INTERNAL const char *const opdi_kind_names[] = {"", "OPD_LIBRARY", "OPD_LIBRARY_FRAGMENT", "OPD_LIBRARY_IMPL"};

static void opdi_notify_listeners(opd_op *op, bool defined) {
    for (const opd_listener *listener = opdi_registry.listeners; listener; listener = listener->next) {
        const opd_listener_fn fn = defined ? listener->defined : listener->undefined;
        if (fn) { fn(listener->user, op); }
    }
}

/* The following functions are called while the lock of the registry is held. */

OPDI_INTERNAL void opdi_tables_retire_all(void) {
    size_t i = 0;
    opd_op *op;
    while ((op = opdi_entries(&i)) != NULL) { opdi_table_retire(op); }
}

/* Clears the C signature of an operator if it has neither a definition nor kernels any more. */
static void opdi_forget_signature(opd_op *op) {
    if (!op->definition && !op->kernels) { op->signature[0] = 0; }
}

/* Returns the operator's newest kernel that was made from a C function, or NULL. */
static const opdi_kernel *opdi_typed_kernel(const opd_op *op) {
    const opdi_kernel *kernel = op->kernels;
    while (kernel && !kernel->typed) { kernel = kernel->next; }
    return kernel;
}

static opdi_origin opdi_typed_place(const opd_op *op) {
    const opdi_origin gone = {"a C function that is no longer registered", 0};
    const opdi_kernel *kernel = opdi_typed_kernel(op);
    return kernel ? kernel->place : gone;
}

/* Undoes one definition of an operator.  With the last definition, the operator becomes undefined: its table,
   descriptor and name are withdrawn.  The caller holds the lock. */
static void opdi_undefine(opd_op *op, opdi_registration *registration) {
    opdi_registration **registrations = &op->definition;
    if (*registrations == registration && !registration->newer) { opdi_notify_listeners(op, false); }
    while (*registrations != registration) { registrations = &(*registrations)->newer; }
    OPDI_PUBLISH(registrations, registration->newer);
    if (op->definition) { return; }
    OPDI_STORE(&op->unloaded, (int8_t)(opdi_registry.unloading == registration->lib));
    OPDI_PUBLISH(&opdi_name_of(op->name)->defined, (opd_op *)NULL);
    opdi_table_retire(op);
    if (op->prev_defined) { op->prev_defined->next_defined = op->next_defined; }
    else { opdi_registry.first_defined = op->next_defined; }
    if (op->next_defined) { op->next_defined->prev_defined = op->prev_defined; }
    else { opdi_registry.last_defined = op->prev_defined; }
    op->next_defined = op->prev_defined = NULL;
    op->undefined = opdi_epoch;
    OPDI_PUBLISH(&op->card, (opdi_card *)NULL);
    OPDI_PUBLISH(&opdi_epoch, opdi_epoch + 1);
    opdi_forget_signature(op);
    opdi_overloads_changed(op);
}

/* Takes a kernel out of its operator's list, and takes the operator's table out of use.  The caller holds the lock. */
static void opdi_kernel_remove(opd_op *op, opdi_kernel *kernel) {
    opdi_kernel **kernels = &op->kernels;
    while (*kernels && *kernels != kernel) { kernels = &(*kernels)->next; }
    if (*kernels) { OPDI_PUBLISH(kernels, kernel->next); }
    opdi_forget_signature(op);
    opdi_table_retire(op);
}

/* Tells the handles of a kernel that it is not registered any more.  The caller holds the lock, and then retires the
   kernel. */
static void opdi_handles_end(opdi_kernel *kernel) {
    for (opd_kernel_handle *handle = kernel->handles; handle; handle = handle->next) {
        OPDI_PUBLISH(&handle->kernel, (opdi_kernel *)NULL);
    }
}

/* Frees the schema of an operator that is no longer defined.  Does nothing if the operator was undefined after `stamp`
   (an epoch), because a running call may still use the schema.  Does nothing if the operator has descriptors, because
   nodes of the autograd graph use these.  The caller holds the lock. */
OPDI_INTERNAL void opdi_schema_release(opd_op *op, uint64_t stamp) {
    if (op->definition || op->undefined > stamp || op->cards || op->bare) { return; }
    opd_schema_free(op->schema);
    op->schema = NULL;
    op->accepts = NULL;
    op->ret_alias = opdi_no_aliases;
}

static void opdi_definition_reclaim(opdi_retired *gone) {
    opdi_registration *registration = (opdi_registration *)(void *)gone;
    opdi_lock(&opdi_registry.lock);
    opdi_schema_release(registration->op, gone->stamp);
    opdi_unlock(&opdi_registry.lock);
    opdi_registration_free(registration);
}

/* Undoes the registrations of a library that are newer than `keep`, the newest first; all of them if keep is NULL. */
OPDI_INTERNAL void opdi_library_undo(opd_library *lib, const opdi_registration *keep) {
    opdi_lock(&opdi_registry.lock);
    while (lib->registrations && lib->registrations != keep) {
        opdi_registration *registration = lib->registrations;
        lib->registrations = registration->next;
        OPDI_PREFETCH(registration->next);
        if (registration->kind == 0) { opdi_undefine(registration->op, registration); }
        else if (registration->kind == 1) { opdi_kernel_remove(registration->op, registration->kernel); }
        else if (registration->kind == 2) {
            opdi_registry.fallbacks[registration->key] = registration->kernel->next;
            opdi_tables_retire_all();
        }
        if (registration->kernel) { opdi_handles_end(registration->kernel); }
        opdi_retire(&registration->gone, registration->kind == 0 ? opdi_definition_reclaim : opdi_kernel_reclaim);
    }
    opdi_unlock(&opdi_registry.lock);
    opdi_retired_reclaim();
}

//== the schema of an operator =========================================================================================

/* Returns the index of the written argument that the operator returns as result i, or -1. */
static int opdi_ret_alias(const opd_schema *schema, int i) {
    const opdi_alias *ra = schema->returns[i].type->alias;
    int found = -1;
    for (int j = 0; ra && ra->write && j < schema->nargs; j++) {
        const opdi_type *type = schema->args[j].type;
        const opdi_alias *alias = type->alias ? type->alias : type->kind == OPDI_TYPE_OPTIONAL ? type->elems[0]->alias
            : NULL;
        if (alias && alias->write && alias->nbefore && ra->nbefore && strcmp(alias->before[0], ra->before[0]) == 0) {
            found = j;
        }
    }
    return found;
}

/* Computes, for each argument, the tags that need no conversion and, for each result, the written argument that is
   returned.  Returns 0, or -1 if memory runs out. */
static int opdi_schema_accepts(opd_schema *schema) {
    uint16_t *accepts = (uint16_t *)opdi_arena_alloc(&schema->arena, ((size_t)schema->nargs + 1) * sizeof *accepts);
    int8_t *ret_alias = (int8_t *)opdi_arena_alloc(&schema->arena, OPDI_MAX_RETURNS);
    if (!accepts || !ret_alias) { return -1; }
    for (int i = 0; i < schema->nargs; i++) { accepts[i] = opdi_accepts(schema->args[i].type); }
    for (int i = 0; i < OPDI_MAX_RETURNS; i++) {
        ret_alias[i] = (int8_t)(i < schema->nreturns ? opdi_ret_alias(schema, i) : -1);
    }
    schema->accepts = accepts;
    schema->ret_alias = ret_alias;
    return 0;
}

/* Copies the fields that a call reads from the schema into the operator. */
static void opdi_op_describe(opd_op *op) {
    const opd_schema *schema = op->schema;
    int i;
    op->accepts = schema->accepts;
    op->ret_alias = schema->ret_alias;
    op->nargs = schema->nargs;
    OPDI_STORE(&op->nrets, schema->nreturns);     /* atomic: failing calls on other threads may read it */
    op->all_rets = (1u << op->nrets) - 1;
    op->required = 0;
    op->tensor_args = op->list_args = op->written_args = 0;
    op->any_args = false;
    for (i = 0; i < schema->nargs; i++) {
        op->any_args |= opdi_takes_all(opdi_strip_optional(schema->args[i].type));
        if (!schema->args[i].has_default) { op->required = i + 1; }
        if (schema->args[i].tag == OPD_TAG_TENSOR) { op->tensor_args |= (uint64_t)1 << i; }
        if (schema->args[i].tag == OPD_TAG_TENSORS) { op->list_args |= (uint64_t)1 << i; }
        if (schema->args[i].written) { op->written_args |= (uint64_t)1 << i; }
    }
    op->ntensors = opdi_popcount(op->tensor_args);
    op->direct = op->list_args ? -1 : op->nargs;
    for (i = 0, op->tensor_rets = 0; i < schema->nreturns; i++) {
        const bool tensor = opdi_strip_optional(schema->returns[i].type)->kind == OPDI_TYPE_TENSOR;
        op->tensor_rets |= (uint32_t)tensor << i;
    }
}

//== what a library registers ==========================================================================================

/* Appends the place of the library block to the pending error.  Returns -1. */
OPDI_INTERNAL int opdi_library_error(const opd_library *lib) {
    return opdi_fail_more(" (Error occurred while processing %s block at %s:%d)", opdi_kind_names[lib->kind], lib->file,
                          lib->line);
}

/* Writes the qualified name of an operator to out: adds the library's namespace, or checks the namespace in `name`.
   `what` describes `name` in errors.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_qualify(const opd_library *lib, const char *name, const char *what, char *out, size_t cap) {
    const char *colons = strstr(name, "::");
    size_t length = colons ? (size_t)(colons - name) : 0;
    if (!colons && strcmp(lib->ns, "_") == 0) {
        return opd_fail(OPD_ERROR_REGISTER,
                        "%s '%s' must be qualified with a namespace in an OPD_LIBRARY_IMPL block of namespace _", what,
                        name);
    }
    if (colons && strcmp(lib->ns, "_") != 0 && (strlen(lib->ns) != length || strncmp(name, lib->ns, length) != 0)) {
        return opd_fail(OPD_ERROR_REGISTER, "Explicitly provided namespace (%.*s) in %s does not match namespace of "
                        "enclosing %s block (%s). Move this definition to the (unique) OPD_LIBRARY block corresponding "
                        "to this namespace (and consider deleting the namespace from your %s.)", (int)length, name,
                        what, opdi_kind_names[lib->kind], lib->ns, what);
    }
    if (snprintf(out, cap, "%s%s%s", colons ? "" : lib->ns, colons ? "" : "::", name) >= (int)cap) {
        return opd_fail(OPD_ERROR_REGISTER, "the name '%.60s...' is too long", name);
    }
    return 0;
}

/* Makes a registration of this kind (see opdi_registration), followed by an opdi_kernel unless it is a definition (kind
   0).  Returns NULL if memory runs out. */
OPDI_INTERNAL opdi_registration *opdi_registration_new(opd_library *lib, int kind, opd_key key, opd_kernel fn) {
    const size_t count = sizeof(opdi_registration) + (kind ? sizeof(opdi_kernel) : 0);
    opdi_registration *registration = (opdi_registration *)opdi_alloc(count);
    if (!registration) { return NULL; }
    memset(registration, 0, count);
    registration->kind = kind;
    registration->key = key;
    registration->lib = lib;
    registration->place = lib->place;
    if (kind == 0) { return registration; }
    registration->kernel = (opdi_kernel *)(void *)(registration + 1);
    registration->kernel->fn = fn;
    registration->kernel->key = key;
    registration->kernel->place = lib->place;
    if (fn) { registration->kernel->plugin = opdi_plugin_hold((uintptr_t)fn); }
    return registration;
}
OPDI_INTERNAL void opdi_registration_add(opd_library *lib, opdi_registration *registration) {
    registration->next = lib->registrations;
    lib->registrations = registration;
}

//== definitions =======================================================================================================

static bool opdi_schema_says_same(const opd_schema *schema, const opd_schema *other) {
    char text[2][1600];
    size_t count = opd_schema_print(schema, text[0], sizeof text[0]),
        m = opd_schema_print(other, text[1], sizeof text[1]);
    return count == m && count < sizeof text[0] && strcmp(text[0], text[1]) == 0;
}

/* Gives an undefined operator its schema.  Returns 0 if the operator now owns the schema.
   Returns 1 if a running call may still use the operator's earlier, different schema.  In that case, the lock was
   released for a moment, and the caller should try again.
   Returns -1 and sets an error if this thread itself is inside such a call, or after *patience tries: the call may be
   waiting for this thread. */
static int opdi_schema_set(opd_op *op, opd_schema *schema, int *patience) {
    const bool same = op->schema && opdi_schema_says_same(op->schema, schema);
    const uint64_t inside = opdi_self()->inside, oldest = op->schema && !same ? opdi_oldest_call() : UINT64_MAX;
    if (op->undefined >= oldest && (oldest == 0 || (inside && inside <= op->undefined) || --*patience < 0)) {
        return opd_fail(OPD_ERROR_REGISTER, "%s is being defined with another schema than before, while a call that "
                        "may use the old schema is running", op->name);
    }
    if (op->undefined >= oldest) {
        opdi_unlock(&opdi_registry.lock);
#if !defined(OPD_NO_THREADS)
        (void)sched_yield();
#endif
        opdi_lock(&opdi_registry.lock);
        return 1;
    }
    opd_schema_free(same ? schema : op->schema);
    if (!same) {
        op->schema = schema;
        opdi_op_describe(op);
    }
    return 0;
}

static int opdi_typed_error(const opd_op *op, const char *signature, opdi_origin place, const opd_schema *schema,
                            opdi_origin declared, const char *format, ...) OPD_PRINTF_LIKE(6, 7);
/* Sets the error that a kernel made from a C function does not fit the schema.  The text has both schemas, their places
   and the reason.  Returns -1. */
static int opdi_typed_error(const opd_op *op, const char *signature, opdi_origin place, const opd_schema *schema,
                            opdi_origin declared, const char *format, ...) {
    char text[2][512], places[2][200], why[200];
    va_list ap;
    va_start(ap, format);
    vsnprintf(why, sizeof why, format, ap);
    va_end(ap);
    (void)opd_schema_print(schema, text[0], sizeof text[0]);
    return opd_fail(OPD_ERROR_REGISTER, "Inferred operator schema for a C kernel function doesn't match the expected "
                    "function schema.\n  operator: %s\n  expected schema: %s\n    %s\n  inferred schema: %s\n    %s\n"
                    "  reason: %s", op->name, text[0], opdi_place_text(declared, places[0], sizeof places[0]),
                    opdi_inferred_print(signature, text[1], sizeof text[1]),
                    opdi_place_text(place, places[1], sizeof places[1]), why);
}

/* Checks that the C signature of a kernel equals that of the operator's other kernels and, unless `schema` is NULL,
   fits the schema.  `place` and `declared` are the places of the kernel and of the definition, for errors.  Returns 0,
   or -1 and sets an error. */
static int opdi_check_typed(const opd_op *op, const char *signature, opdi_origin place, const opd_schema *schema,
                            opdi_origin declared) {
    const int nargs = (int)strlen(signature) - 1, nrets = signature[0] != 'v';
    char text[2][512], places[2][200];
    if (op->signature[0] && strcmp(op->signature, signature) != 0) {
        return opd_fail(OPD_ERROR_REGISTER, "Mismatch in kernel C signatures\n  operator: %s\n  kernel 1: %s\n    %s\n"
                        "  kernel 2: %s\n    %s", op->name,
                        opdi_inferred_print(op->signature, text[0], sizeof text[0]),
                        opdi_place_text(opdi_typed_place(op), places[0], sizeof places[0]),
                        opdi_inferred_print(signature, text[1], sizeof text[1]),
                        opdi_place_text(place, places[1], sizeof places[1]));
    }
    if (!schema) { return 0; }
    if (nargs != schema->nargs) {
        return opdi_typed_error(op, signature, place, schema, declared,
                                "The number of arguments is different. %d vs %d.", schema->nargs, nargs);
    }
    if (nrets != schema->nreturns) {
        return opdi_typed_error(op, signature, place, schema, declared, "The number of returns is different. %d vs %d.",
                                schema->nreturns, nrets);
    }
    for (int i = 0; i < nargs + nrets; i++) {
        const bool ret = i == nargs;
        const opdi_type *type = ret ? schema->returns[0].type : schema->args[i].type;
        const char letter = signature[ret ? 0 : i + 1];
        if (opdi_signature_type(type, letter)) { continue; }
        return opdi_typed_error(op, signature, place, schema, declared, "Type mismatch in %s %d: %s vs %s.",
                                ret ? "return" : "argument", ret ? 1 : i + 1,
                                opdi_type_print(type, text[0], sizeof text[0]), opdi_signature_word(letter));
    }
    return 0;
}

/* Adds the first definition of an operator, whose schema is already set.  Publishes the operator and calls the
   listeners.  The caller holds the lock. */
static void opdi_definition_add(opd_op *op, opdi_registration *registration) {
    registration->op = op;
    op->prev_defined = opdi_registry.last_defined;
    if (op->prev_defined) { op->prev_defined->next_defined = op; }
    else { opdi_registry.first_defined = op; }
    opdi_registry.last_defined = op;
    opdi_registration_add(registration->lib, registration);
    op->rank = ++opdi_registry.ranks;
    OPDI_PUBLISH(&op->definition, registration);
    OPDI_PUBLISH(&opdi_name_of(op->name)->defined, op);
    opdi_overloads_changed(op);
    opdi_notify_listeners(op, true);
}

/* Adds another definition of a defined operator, if `allowed` is true and the schema and alias kind are the same.
   Otherwise sets an error and returns -1.  The caller still owns the schema. */
static int opdi_definition_again(opd_op *op, opdi_registration *registration, const opd_schema *schema, bool allowed) {
    char text[512], places[2][300];
    opdi_registration *last = op->definition;
    if (allowed && last->alias == registration->alias && opdi_schema_says_same(op->schema, schema)) {
        while (last->newer) { last = last->newer; }
        last->newer = registration;
        registration->op = op;
        opdi_registration_add(registration->lib, registration);
        return 0;
    }
    (void)opd_schema_print(schema, text, sizeof text);
    return opd_fail(OPD_ERROR_REGISTER, "Tried to register an operator (%s) with the same name and overload name "
                    "multiple times. Each overload's schema should only be registered with a single call to opd_def(). "
                    "Duplicate registration: %s. Original registration: %s", text,
                    opdi_place_text(registration->place, places[0], sizeof places[0]),
                    opdi_place_text(last->place, places[1], sizeof places[1]));
}

/* Defines an operator by a parsed schema.  Takes over the schema, even on failure.  Returns NULL and sets an error if
   that fails. */
OPDI_INTERNAL opd_op *opdi_def_schema(opd_library *lib, opd_schema *schema, const opd_def_options *options) {
    char name[256], local[200];
    opdi_registration *registration = NULL;
    opd_op *op = NULL;
    int rc = 1, patience = 500000;                /* the number of tries, which take some seconds */
    snprintf(local, sizeof local, "%s%s%s%s%s", schema->ns, *schema->ns ? "::" : "", schema->name,
             *schema->overload ? "." : "", schema->overload);
    if (schema->nreturns > OPDI_MAX_RETURNS || schema->vararg || schema->varret) {
        (void)opd_fail(OPD_ERROR_REGISTER, "%s: an operator has at most %d results and no \"...\"", local,
                       OPDI_MAX_RETURNS);
    } else if (opdi_schema_accepts(schema) == 0 &&
               opdi_qualify(lib, local, "schema string", name, sizeof name) == 0 &&
               OPDI_LEAN_CHECK(lib, name, "opd_def") == 0) {
        registration = opdi_registration_new(lib, 0, 0, NULL);
    }
    if (!registration) {
        opd_schema_free(schema);
        return NULL;
    }
    registration->tags = options ? options->tags : 0;
    registration->alias = options ? options->alias : OPD_ALIAS_FROM_SCHEMA;
    if (lib != opdi_registry.aten) { opdi_builtins_make(name); }
    opdi_lock(&opdi_registry.lock);
    op = opdi_op_find_or_add(name);
    if (op && !op->definition && opdi_typed_kernel(op)) {
        rc = opdi_check_typed(op, op->signature, opdi_typed_place(op), schema, registration->place) ? -1 : 1;
    }
    while (op && !op->definition && rc > 0) { rc = opdi_schema_set(op, schema, &patience); }
    if (op && op->definition) {
        rc = opdi_definition_again(op, registration, schema, options && options->same_again);
        opd_schema_free(schema);
    } else if (op && rc == 0) {
        opdi_definition_add(op, registration);
    } else {
        opd_schema_free(schema);
        rc = -1;
    }
    opdi_unlock(&opdi_registry.lock);
    if (rc == 0) { return op; }
    opdi_registration_free(registration);
    return NULL;
}

/* Returns true if a library is open.  Otherwise returns false and sets an error.  (A closed library whose memory is
   used by a new library is not noticed.) */
OPDI_INTERNAL bool opdi_library_usable(const opd_library *lib, const char *what) {
    const opd_library *library;
    if (!opd_ok()) { return false; }
    opdi_lock(&opdi_registry.lock);
    for (library = opdi_registry.libraries; library && library != lib; library = library->next) { }
    opdi_unlock(&opdi_registry.lock);
    if (!library) {
        (void)opd_fail(OPD_ERROR_REGISTER, lib ? "%s: the library is closed" : "%s: the library is NULL", what);
    }
    return library != NULL;
}

/* As opdi_library_usable; also lets the library parse schemas of the program. */
OPDI_INTERNAL bool opdi_library_defines(opd_library *lib, const char *what) {
    if (!opdi_library_usable(lib, what)) { return false; }
    OPDI_STORE(&lib->parse, &opdi_schema_parse);
    return true;
}

/* Defines an operator by the text of its schema.  If that fails, returns NULL and sets an error that names the library
   block. */
OPDI_INTERNAL opd_op *opdi_def_text(opd_library *lib, const char *text, const opd_def_options *options) {
    opd_op *op = NULL;
    if (!text) {
        (void)opd_fail(OPD_ERROR_REGISTER, "opd_def: the schema is NULL");
        (void)opdi_library_error(lib);
        return NULL;
    }
    if (lib->kind == OPD_IMPL) {
        (void)opd_fail(OPD_ERROR_REGISTER, "opd_def(\"%s\"): Cannot define an operator inside of a %s block. "
                       "All def()s should be placed in the (unique) OPD_LIBRARY block for their namespace.", text,
                       opdi_kind_names[lib->kind]);
    } else if (options && (unsigned)options->alias > OPD_ALIAS_INTERNAL_SPECIAL_CASE) {
        (void)opd_fail(OPD_ERROR_REGISTER, "opd_def(\"%s\"): %d is not an alias kind", text, (int)options->alias);
    } else {
        opd_schema *schema = lib->parse(text, strlen(text), lib->ns, false);
        if (schema) { op = opdi_def_schema(lib, schema, options); }
    }
    if (!op) { (void)opdi_library_error(lib); }
    return op;
}

int opd_def_with(opd_library *lib, const char *schema, const opd_def_options *options) {
    return opdi_library_defines(lib, "opd_def") && opdi_def_text(lib, schema, options) ? 0 : -1;
}

int opd_def(opd_library *lib, const char *schema) { return opd_def_with(lib, schema, NULL); }

//== kernels ===========================================================================================================

/* Warns, once per process, that a kernel replaces another kernel at the same key.  `before` and `now` are their places;
   "" means that there was none before.  Does not warn for Meta, as PyTorch does not.  The caller must not hold the
   lock. */
static void opdi_warn_override(const opd_op *op, opd_key key, const char *before, const char *now) {
    if (!*before || key == OPD_KEY_META) { return; }
    opdi_lock(&opdi_registry.lock);
    bool warned = opdi_registry.warned_override;
    opdi_registry.warned_override = true;
    opdi_unlock(&opdi_registry.lock);
    if (warned) { return; }
    opd_warn("Warning only once for all operators, other operators may also be overridden.\n"
             "  Overriding a previously registered kernel for the same operator and the same dispatch key\n"
             "  operator: %s\n  dispatch key: %s\n  previous kernel: %s\n       new kernel: %s", op->name,
             opd_key_name(key), before, now);
}

/* Adds a kernel to an operator, which may be defined later.  `signature` is that of the C function from which the
   kernel was made; NULL for an ordinary kernel.  Returns 0, or -1 and sets an error; then the caller still owns `user`.
   */
OPDI_INTERNAL int opdi_impl_typed(opd_library *lib, const char *name, opd_key key, opd_kernel fn, void *user,
                                  opd_destroy destroy, const char *signature) {
    opdi_registration *registration = opdi_registration_new(lib, 1, key, fn);
    opdi_kernel *kernel = registration ? registration->kernel : NULL, *other = NULL;
    opd_op *op = NULL;
    char before[300], now[300];
    bool added = false;
    if (!kernel) { return -1; }
    kernel->user = user;
    kernel->destroy = destroy;
    kernel->typed = signature != NULL;
    opdi_lock(&opdi_registry.lock);
    op = opdi_op_find_or_add(name);
    if (op && (!signature || opdi_check_typed(op, signature, kernel->place, op->definition ? op->schema : NULL,
                                              op->definition ? op->definition->place : kernel->place) == 0)) {
        if (signature) { strcpy(op->signature, signature); }
        before[0] = 0;
        if ((other = opdi_direct(op, key)) != NULL) { (void)opdi_place_text(other->place, before, sizeof before); }
        (void)opdi_place_text(kernel->place, now, sizeof now);
        kernel->next = op->kernels;
        OPDI_PUBLISH(&op->kernels, kernel);
        registration->op = op;
        opdi_registration_add(lib, registration);
        opdi_table_retire(op);
        added = true;
    }
    opdi_unlock(&opdi_registry.lock);
    if (added) {
        opdi_warn_override(op, key, before, now);
        return 0;
    }
    opdi_registration_free(registration);
    return -1;
}

OPDI_INTERNAL int opdi_impl_at(opd_library *lib, const char *name, opd_key key, opd_kernel fn, void *user,
                               opd_destroy destroy) {
    return opdi_impl_typed(lib, name, key, fn, user, destroy, NULL);
}

/* Checks the name and the key of opd_impl, registers the built-in operators of the name's family, and adds the kernel.
   Without a key, the kernel is added at CompositeImplicitAutograd.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_impl_checked(opd_library *lib, const char *name, const char *key_name, opd_kernel fn, void *user,
                                    opd_destroy destroy, const char *signature) {
    char qualified[256];
    opd_key key = lib->key;
    if (!name || !fn) { return opd_fail(OPD_ERROR_REGISTER, "opd_impl: the %s is NULL", name ? "kernel" : "name"); }
    if (strchr(name, '(')) {
        return opd_fail(OPD_ERROR_REGISTER,
                        "opd_impl(\"%s\"): an operator's name was expected, but a function schema was given", name);
    }
    if (key_name) {
        opd_key given = opd_key_parse(key_name);
        if (given == OPD_KEY_INVALID) { return -1; }
        if (given == OPD_KEY_UNDEFINED) { given = key; }          /* as if no key were given */
        if (key != OPD_KEY_INVALID && key != given) {
            return opd_fail(OPD_ERROR_REGISTER, "opd_impl(\"%s\"): Explicitly provided dispatch "
                            "key (%s) is inconsistent with the dispatch key of the enclosing %s block (%s).", name,
                            opd_key_name(given), opdi_kind_names[lib->kind], opd_key_name(key));
        }
        key = given;
    }
    if (key == OPD_KEY_INVALID) { key = OPD_KEY_COMPOSITE_IMPLICIT; }
    if (opdi_check_name(name) || opdi_qualify(lib, name, "operator name", qualified, sizeof qualified)) { return -1; }
    if (OPDI_LEAN_CHECK(lib, qualified, "opd_impl")) { return -1; }
    opdi_builtins_make(qualified);                /* registers a built-in operator's kernels first */
    return opd_ok() ? opdi_impl_typed(lib, qualified, key, fn, user, destroy, signature) : -1;
}

int opd_impl_key(opd_library *lib, const char *name, const char *key, opd_kernel kernel, void *user,
                 opd_destroy destroy) {
    if (!opdi_library_usable(lib, "opd_impl")) { return -1; }
    return opdi_impl_checked(lib, name, key, kernel, user, destroy, NULL) ? opdi_library_error(lib) : 0;
}

int opd_impl(opd_library *lib, const char *name, opd_kernel kernel) {
    return opd_impl_key(lib, name, NULL, kernel, NULL, NULL);
}

/* Registers one part of an operator descriptor (fake kernel, batching rule or jvp) at `key`, the key of such parts, not
   at the library's key.  `what` is the caller's name, for errors.  Returns 0, or -1 and sets an error. */
static int opdi_register_part(opd_library *lib, const char *name, opd_key key, opd_kernel fn, const char *what) {
    char qualified[256], place[200];
    if (!opdi_library_usable(lib, what)) { return -1; }
    if (!name || !fn) {
        return opd_fail(OPD_ERROR_REGISTER, "%s: the %s is NULL", what, name ? "function" : "name");
    }
    if (opdi_check_name(name) || opdi_qualify(lib, name, "operator name", qualified, sizeof qualified)) {
        return opdi_library_error(lib);
    }
    if (OPDI_LEAN_CHECK(lib, qualified, what)) { return opdi_library_error(lib); }
    opdi_builtins_make(qualified);
    opdi_lock(&opdi_registry.lock);
    const opd_op *op = key == OPD_KEY_META ? opdi_lookup(qualified, strlen(qualified)) : NULL;
    const opdi_kernel *meta = op ? opdi_direct(op, OPD_KEY_META) : NULL;
    const opdi_kernel *implicit = op ? opdi_direct(op, OPD_KEY_COMPOSITE_IMPLICIT) : NULL;
    (void)opdi_place_text(meta ? meta->place : implicit ? implicit->place : lib->place, place, sizeof place);
    opdi_unlock(&opdi_registry.lock);
    if (meta) {
        (void)opd_fail(OPD_ERROR_REGISTER, "opd_fake_register: the operator %s already has a fake impl, %s. Please "
                       "either remove that registration or don't call opd_fake_register (opd_impl_key at \"Meta\" "
                       "replaces it).", qualified, place);
    } else if (implicit) {
        (void)opd_fail(OPD_ERROR_REGISTER, "opd_fake_register: the operator %s already has an implementation for this "
                       "device type via a pre-existing registration to CompositeImplicitAutograd, %s. Such operators "
                       "do not need a fake impl; instead, the operator will decompose into its constituents and those "
                       "can have fake impls defined on them.", qualified, place);
    }
    return opd_ok() && opdi_impl_at(lib, qualified, key, fn, NULL, NULL) == 0 ? 0 : opdi_library_error(lib);
}
int opd_fake_register(opd_library *lib, const char *name, opd_kernel fake) {
    return opdi_register_part(lib, name, OPD_KEY_META, fake, "opd_fake_register");
}
int opd_vmap_register(opd_library *lib, const char *name, opd_vmap_rule rule) {
    return opdi_register_part(lib, name, OPD_KEY_OF(OPD_F_BATCHED), rule, "opd_vmap_register");
}
int opd_jvp_register(opd_library *lib, const char *name, opd_jvp_fn jvp) {
    return opdi_register_part(lib, name, OPDI_KEY_JVP, (opd_kernel)(void (*)(void))jvp, "opd_jvp_register");
}
