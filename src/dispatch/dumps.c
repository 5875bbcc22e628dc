#include "lean.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>dumps        tables and registrations as text
//----------------------------------------------------------------------------------------------------------------------

//== dumps =============================================================================================================

static const char *const opdi_alias_kinds[] = {"FROM_SCHEMA", "CONSERVATIVE", "PURE_FUNCTION", "INTERNAL_SPECIAL_CASE"};

/* Writes an operator's name, its schema and every registered kernel, also inactive ones.  Returns the length, which may
   exceed `cap`. */
size_t opd_dump(const opd_op *op, char *buf, size_t cap) {
    opdi_text text = opdi_text_of(buf, cap);
    char schema[1024], place[300];
    if (!op) { return 0; }
    opdi_lock(&opdi_registry.lock);
    opdi_text_add(&text, "name: %s\n", op->name);
    if (op->definition) {
        const opdi_registration *registration = op->definition;
        (void)opd_schema_print(op->schema, schema, sizeof schema);
        opdi_text_add(&text, "schema: %s%s%s\ndebug: %s\nalias analysis kind: %s\n",
                      *op->schema->ns ? "" : registration->lib->ns, *op->schema->ns ? "" : "::", schema,
                      opdi_place_text(registration->place, place, sizeof place), opdi_alias_kinds[registration->alias]);
    } else {
        opdi_text_add(&text, "schema: (none)\n");
    }
    (void)opdi_inferred_print(op->signature, schema, sizeof schema);
    for (opd_key key = 0; key <= OPDI_KEY_JVP; key++) {
        bool first = true;
        for (const opdi_kernel *kernel = op->kernels; kernel; kernel = kernel->next) {
            if (kernel->key != key) { continue; }
            opdi_text_add(&text, "%s%s%s: %s :: %s [ %sboxed %s]\n", opd_key_name(key),
                          opd_key_is_alias(key) ? "[alias]" : "", first ? "" : " (inactive)",
                          opdi_place_text(kernel->place, place, sizeof place), kernel->typed ? schema : "(none)",
                          kernel->fn == opd_fallthrough ? "fallthrough " : "", kernel->typed ? "unboxed " : "");
            first = false;
        }
    }
    opdi_unlock(&opdi_registry.lock);
    return text.length;
}

size_t opd_dump_table(const opd_op *op, char *buf, size_t cap) {
    opdi_text text = opdi_text_of(buf, cap);
    char place[300];
    if (!op) { return 0; }
    opdi_lock(&opdi_registry.lock);
    for (int slot = 0; slot < OPD_KEY_SLOTS; slot++) {
        opdi_chosen how;
        const opdi_kernel *kernel = opdi_compute_slot(op, slot, &how);
        if (how == OPDI_CHOSEN_AMBIGUOUS) {
            opdi_text_add(&text, "%s: [%s]\n", opd_key_name(slot), opdi_chosen_names[how]);
        }
        if (!kernel) { continue; }
        opdi_text_add(&text, "%s: %s%s [%s]\n", opd_key_name(slot), kernel->fn == opd_fallthrough ? "fallthrough " : "",
                      opdi_place_text(kernel->place, place, sizeof place), opdi_chosen_names[how]);
    }
    opdi_unlock(&opdi_registry.lock);
    return text.length;
}

/* Returns the tags of an operator's definition, or 0 if it has none.  The caller holds the registry's lock. */
static uint32_t opdi_tags_of(const opd_op *op) {
    const opdi_registration *const definition = op->definition;
    if (!definition) { return 0; }
    const bool ours = definition->lib == opdi_registry.aten;
    return definition->tags & ~(OPDI_OPTAG_PRIVATE | (ours ? (uint32_t)OPDI_OPTAG_SHARES : 0u));
}
uint32_t opd_op_tags(const opd_op *op) {
    if (!op) { return 0; }
    opdi_lock(&opdi_registry.lock);
    uint32_t tags = opdi_tags_of(op);
    opdi_unlock(&opdi_registry.lock);
    return tags;
}

bool opd_schema_is_nondeterministic(const opd_schema *schema, const opd_value *values) {
    const char *const who = "opd_schema_is_nondeterministic";
    char name[256];
    if (!schema || snprintf(name, sizeof name, "%s%s%s%s%s", schema->ns, *schema->ns ? "::" : "", schema->name,
                            *schema->overload ? "." : "", schema->overload) >= (int)sizeof name) { return false; }
    opd_op *const op = opd_find_quiet(name);
    const char *const macro = op ? NULL : opdi_above->left_out(name);
    if (macro) { (void)opd_fail(OPD_ERROR_NOT_FOUND, "%s: %s is left out: %s was defined", who, name, macro); }
    else if (!op) { (void)OPDI_LEAN_CHECK(NULL, name, who); }
    return (opd_op_tags(op) & OPD_OPTAG_NONDETERMINISTIC_SEEDED) && opdi_schema_draws(schema, values);
}

/* Returns true if an operator passes the filter; `key` is the filter's key.  The caller holds the lock. */
static bool opdi_filter_takes(const opd_op_filter *filter, const opd_op *op, opd_key key) {
    const size_t length = filter->ns ? strlen(filter->ns) : 0;
    if (filter->dangling ? op->definition || !op->kernels : !op->definition) { return false; }
    if (filter->ns && !(strncmp(op->name, filter->ns, length) == 0 && strncmp(op->name + length, "::", 2) == 0)) {
        return false;
    }
    if (filter->part && !strstr(op->name, filter->part)) { return false; }
    if (filter->key && !opdi_direct(op, key)) { return false; }
    return (filter->tags & ~opdi_tags_of(op)) == 0;
}

/* Writes the first `cap` operators that pass the filter.  Returns how many pass it, or -1 and sets an error. */
int opd_op_list(const opd_op_filter *filter, opd_op **ops, int cap) {
    const opd_key key = filter && filter->key ? opd_key_parse(filter->key) : OPD_KEY_UNDEFINED;
    opd_op_filter all;
    opd_op *op;
    size_t i = 0;
    int count = 0;
    memset(&all, 0, sizeof all);
    if (key == OPD_KEY_INVALID) { return -1; }
    if (!filter) { filter = &all; }
    if (!ops) { cap = 0; }
    opdi_started();
    opdi_builtins_make(NULL);
    if (filter->ns) { opdi_extras_find(filter->ns, strlen(filter->ns)); }
    opdi_lock(&opdi_registry.lock);
    for (op = opdi_registry.first_defined; op; op = op->next_defined) {
        if (!opdi_filter_takes(filter, op, key)) { continue; }
        if (count++ < cap) { ops[count - 1] = op; }
    }
    while (filter->dangling && (op = opdi_entries(&i)) != NULL) {
        if (opdi_filter_takes(filter, op, key) && count++ < cap) { ops[count - 1] = op; }
    }
    opdi_unlock(&opdi_registry.lock);
    return count;
}
size_t opdi_old_op_list(const opd_op_filter *filter, opd_op **ops, size_t cap) {
    const int count = opd_op_list(filter, ops, (int)OPDI_MIN(cap, (size_t)INT_MAX));
    return count < 0 ? 0 : (size_t)count;
}

/* Returns the numbers of operators, kernels, fallbacks and libraries, and of objects that wait to be freed.  All are
   counted at one moment, under the lock. */
opd_registry_info opd_registry_stats(void) {
    opd_registry_info info;
    const opd_op *op;
    size_t i = 0;
    memset(&info, 0, sizeof info);
    opdi_started();
    opdi_lock(&opdi_registry.lock);
    while ((op = opdi_entries(&i)) != NULL) {
        info.operators += op->definition != NULL;
        info.dangling += !op->definition && op->kernels;
        for (const opdi_kernel *kernel = op->kernels; kernel; kernel = kernel->next) { info.kernels++; }
    }
    for (i = 0; i < OPD_KEY_SLOTS; i++) { info.fallbacks += opdi_registry.fallbacks[i] != NULL; }
    for (const opd_library *lib = opdi_registry.libraries; lib; lib = lib->next) { info.libraries++; }
    info.retired = opdi_registry.gone_count;
    opdi_unlock(&opdi_registry.lock);
    return info;
}

//== checking tables against registrations =============================================================================

/* Compares an operator's table with its registrations.  Returns a description of the error, or NULL. */
static const char *opdi_check_op(const opd_op *op) {
    opdi_table fresh;
    const opdi_table *table = op->table;
    if (!*op->name) { return "has no name"; }
    if (table && !op->definition) { return "has a table but no definition"; }
    if (op->definition && !op->schema) { return "has a definition but no schema"; }
    if (!table) { return NULL; }
    opdi_fill_table(op, &fresh);
    if (memcmp(fresh.masks, table->masks, sizeof fresh.masks) != 0) { return "has stale fallthrough masks"; }
    if (memcmp(fresh.slots, table->slots, sizeof fresh.slots) != 0) { return "has a stale table"; }
    return NULL;
}

int opd_check_invariants(void) {
    const char *wrong = NULL, *name = "";
    const opd_op *op;
    size_t i = 0;
    opdi_lock(&opdi_registry.lock);
    while (!wrong && (op = opdi_entries(&i)) != NULL) {
        wrong = opdi_check_op(op);
        name = op->name;
    }
    opdi_unlock(&opdi_registry.lock);
    return wrong ? opd_fail(OPD_ERROR_REGISTER, "the operator '%s' %s", name, wrong) : 0;
}
