#include "tools.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>explaining   explaining in words what a call would do
//----------------------------------------------------------------------------------------------------------------------

/* Writes a list of the arguments that have any of the keys in `functionality` or, if `functionality` is 0, the backend
   `backend`: "argument 'self', argument 'list'[1]". */
static void opdi_explain_carriers(opdi_text *text, const opd_op *op, const opd_value *args, uint64_t functionality,
                                  int backend) {
    const char *comma = "";
    for (int i = 0; i < op->nargs; i++) {
        const bool list = args[i].tag == OPD_TAG_TENSORS;
        const int32_t count = list ? args[i].n : args[i].tag == OPD_TAG_TENSOR;
        for (int32_t k = 0; k < count; k++) {
            const opd_tensor *tensor = list ? args[i].u.tensors[k] : args[i].u.t;
            if (!tensor ||
                (functionality ? !(tensor->functionality & functionality) : (int)tensor->backend != backend)) {
                continue;
            }
            opdi_text_add(text, "%sargument '%s'", comma, op->schema->args[i].name);
            if (list) { opdi_text_add(text, "[%d]", k); }
            comma = ", ";
        }
    }
}

/* Writes the kernel that runs at a key, the rule that selected it, and where it was registered. */
static void opdi_explain_kernel(opdi_text *text, const opd_op *op, opd_key key) {
    char place[300];
    opdi_chosen how;
    const opdi_kernel *kernel = opdi_compute_slot(op, key, &how);
    if (kernel) {
        opdi_text_add(text, "%s, %s", opdi_chosen_names[how], opdi_place_text(kernel->place, place, sizeof place));
    }
    else { opdi_text_add(text, "%s", how == OPDI_CHOSEN_AMBIGUOUS ? "an error: ambiguous" : "an error: no kernel"); }
}

/* Returns the reason why a functionality of the arguments or the thread has no effect on the call, or NULL if it has
   an effect. */
static const char *opdi_explain_mask(const opdi_thread *thread, const opdi_table *table, int functionality, int backend,
                                     bool grad) {
    if (!(thread->state.allow & OPD_BIT_OF(functionality))) {
        return OPDI_DEFAULT_ALLOW & OPD_BIT_OF(functionality) ? "excluded on this thread"
            : "excluded on this thread, by default";
    }
    if (!(table->masks[16 + backend] & OPD_BIT_OF(functionality))) { return "falls through"; }
    if (functionality == OPD_F_AUTOCAST && !opdi_autocast_is_on(thread, backend)) { return "off for this device"; }
    return grad || table->masks[backend] & OPD_BIT_OF(functionality) ? NULL
        : "left out: no argument requires grad, or grad mode is off";
}

/* Writes the backends and keys of a call, highest first, each with its origin and its kernel. */
static void opdi_explain_keys(opdi_text *text, const opdi_thread *thread, const opd_op *op, const opdi_table *table,
                              const opd_value *args, const opdi_arg_keys *sets) {
    const uint64_t all = sets->functionality | thread->state.include;
    const bool grad = thread->state.forward == OPDI_FORWARD_OPEN || (!thread->state.no_grad &&
        ((sets->flags & OPDI_REQUIRES_GRAD) || opdi_views_require_grad(op, args)));
    const int backend = sets->backends ? opdi_top_bit(sets->backends) : 0;
    const char *arrow = "=> ";
    for (int bit_at = 0; bit_at < OPD_BACKEND_COUNT && sets->backends & (sets->backends - 1); bit_at++) {
        if (!(sets->backends >> bit_at & 1)) { continue; }
        opdi_text_add(text, "backend %s%s: ", opd_key_name(OPD_KEY_PER_BACKEND(0, bit_at)),
                      bit_at == backend ? ", the highest" : "");
        opdi_explain_carriers(text, op, args, 0, bit_at);
        opdi_text_add(text, "\n");
    }
    opdi_text_add(text, "keys, highest first (=> is the kernel that the call runs, -> a kernel that a redispatch below "
                  "it reaches):\n");
    for (int functionality = OPD_F_COUNT - 1; functionality > 0; functionality--) {
        const opd_key key = (opd_key)(opdi_key_base[functionality] + (opdi_functionality_per_backend(functionality)
                                                                      ? backend : 0));
        const char *why = opdi_explain_mask(thread, table, functionality, backend, grad);
        if (!(all & OPD_BIT_OF(functionality))) { continue; }
        opdi_text_add(text, "  %s%s: from ", why ? "   " : arrow, opd_key_name(key));
        opdi_explain_carriers(text, op, args, sets->functionality & OPD_BIT_OF(functionality), -1);
        if (thread->state.include & OPD_BIT_OF(functionality)) {
            opdi_text_add(text, "%sthis thread's included keys%s",
                          sets->functionality & OPD_BIT_OF(functionality) ? " and " : "",
                          OPDI_DEFAULT_INCLUDE & OPD_BIT_OF(functionality) ? " (by default)" : "");
        }
        opdi_text_add(text, why ? "; %s; " : "; ", why);
        opdi_explain_kernel(text, op, key);
        opdi_text_add(text, "\n");
        if (!why) { arrow = "-> "; }
    }
    int i = table->slots[0].fn == opdi_by_device_kernel ? opdi_by_device(op, table, args) : -1;
    opd_key last = i >= 0 ? OPD_KEY_CPU + i : OPD_KEY_UNDEFINED;
    opdi_text_add(text, "  %s%s: ", arrow, opd_key_name(last));
    i = i >= 0 ? opdi_device_arg(op, args) : -1;
    if (i >= 0) { opdi_text_add(text, "from argument '%s', ", op->schema->args[i].name); }
    opdi_text_add(text, "when no other key is left; ");
    opdi_explain_kernel(text, op, last);
    opdi_text_add(text, "\n");
}

/* Writes the schema of an operator and what a call with these arguments would do.  Returns the length of the text,
   or 0 and sets an error. */
static size_t opdi_explain(opdi_thread *thread, opd_op *op, const opd_value *args, int nargs, char *buf, size_t cap) {
    opdi_text text = opdi_text_of(buf, cap);
    opd_value bound[OPD_MAX_ARGS];
    char schema[1024], place[300];
    const opdi_table *table = OPDI_ACQUIRE(&op->table);
    opdi_arg_keys sets;
    if ((!table && !(table = opdi_table_make(op))) || opdi_bind_all(op, args, nargs, bound) ||
        opdi_arg_keys_bound(&sets, op, bound) < 0) { return 0; }
    opdi_lock(&opdi_registry.lock);
    (void)opd_schema_print(op->schema, schema, sizeof schema);
    opdi_text_add(&text, "%s\n%s\n", schema, op->definition ?
                  opdi_place_text(op->definition->place, place, sizeof place) : "no longer defined");
    opdi_explain_keys(&text, thread, op, table, bound, &sets);
    opdi_unlock(&opdi_registry.lock);
    return text.length;
}

size_t opd_explain(opd_op *op, const opd_value *args, int nargs, char *buf, size_t cap) {
    opdi_thread *thread = opdi_self();
    const uint64_t was = opdi_enter(thread);
    opd_scope scope = opd_scope_open();           /* for temporary values of bound arguments */
    size_t length = 0;
    if (!buf) { cap = 0; }
    if (cap) { buf[0] = 0; }
    if (!op) { (void)opd_fail(OPD_ERROR_NOT_FOUND, "opd_explain: the operator is NULL"); }
    else if (opd_ok() && !opdi_any_dead_value(args, nargs, "opd_explain")) {
        length = opdi_explain(thread, op, args, nargs, buf, cap);
    }
    opd_scope_close(&scope);
    opdi_leave(thread, was);
    return length;
}

