#include "autograd.h"

//== anomaly mode ======================================================================================================

typedef struct opdi_unwound { void **frames; int count, cap, skip; } opdi_unwound;
#if defined(OPDI_UNWINDS)
static _Unwind_Reason_Code opdi_unwind_step(struct _Unwind_Context *context, void *arg) {
    opdi_unwound *unwound = (opdi_unwound *)arg;
    void *ip = (void *)(uintptr_t)_Unwind_GetIP(context);
    if (unwound->skip > 0) {
        unwound->skip--;
        return _URC_NO_REASON;
    }
    if (!ip || unwound->count == unwound->cap) { return _URC_END_OF_STACK; }
    unwound->frames[unwound->count++] = ip;
    return _URC_NO_REASON;
}
#endif

/* Writes the return addresses of this thread's innermost `cap` calls to `frames`, the innermost first.  Leaves out
   opdi_frames and its caller.  Returns the number of addresses written; 0 if the build cannot unwind the stack. */
OPDI_INTERNAL int opdi_frames(void **frames, int cap) {
    opdi_unwound unwound;
    unwound.frames = frames;
    unwound.cap = cap;
    unwound.count = 0;
    unwound.skip = 2;
#if defined(OPDI_UNWINDS)
    (void)_Unwind_Backtrace(opdi_unwind_step, &unwound);
#endif
    return unwound.count;
}

/* Stores in `node`, which is being recorded, the return addresses of the place in the program and, if a backward
   function is running, the node of that function.  Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int opdi_trace_node(opd_node *node) {
    opdi_thread *thread = opdi_self();
    void *frames[OPDI_FRAMES];
    const int count = opdi_frames(frames, OPDI_FRAMES);
    opdi_lock(&opdi_hooks_lock);
    opdi_extra *extra = opdi_extra_of((uintptr_t)node);
    opdi_unlock(&opdi_hooks_lock);
    if (!extra) { return -1; }
    extra->frames = count ? (void **)opdi_alloc((size_t)count * sizeof *extra->frames) : NULL;
    if (extra->frames) {
        memcpy(extra->frames, frames, (size_t)count * sizeof *extra->frames);
        extra->nframes = count;
    }
    extra->parent = thread->innermost.node;
    if (extra->parent) { opdi_ref_up(&extra->parent->refs); }
    return opd_ok() ? 0 : -1;
}

static void opdi_say(const opdi_string *string) {
    if (!string->failed && string->data) { opdi_log.fn(opdi_log.user, 0, string->data); }
}

/* Logs where `node`, whose backward function has failed, was recorded.  If another node's backward function recorded
   it, also logs where that other node was recorded, and so on. */
OPDI_INTERNAL void opdi_anomaly_report(const opd_node *node) {
    bool parent = false;
    for (; node; parent = true) {
        const opdi_extra *extra = node->flags & OPDI_NODE_EXTRA ? (const opdi_extra *)(const void *)node->formula
            : NULL;
        opdi_string string = {NULL, 0, 0, false};
        char line[512];
        if (!extra || !extra->nframes) {
            snprintf(line, sizeof line, "Error detected in %s. No forward pass information available. Enable detect "
                     "anomaly during forward pass for more information. (In C: opd_anomaly_set)", node->formula->name);
        } else if (!parent) {
            snprintf(line, sizeof line, "Error detected in %s. Traceback of forward call that caused the error:\n",
                     node->formula->name);
        } else {
            snprintf(line, sizeof line, "\n\nPrevious calculation was induced by %s. Traceback of forward call that "
                     "induced the previous calculation:\n", node->formula->name);
        }
        opdi_string_add(&string, line);
        if (extra && extra->nframes) { opdi_trace_text(&string, extra->frames, extra->nframes); }
        opdi_say(&string);
        opdi_string_free(&string);
        node = extra ? extra->parent : NULL;
    }
}

/* Checks the gradients `out`, which the backward function of `node` returned.  Returns 0, or -1 and sets an error if
   one of them contains a NaN. */
OPDI_INTERNAL int opdi_anomaly_check(const opd_node *node, opd_tensor *const *out) {
    opdi_thread *thread = opdi_self();
    thread->state.no_grad = 1;
    for (int i = 0; i < node->nedges; i++) {
        if (!out[i] || !opd_dtype_is_floating((opd_scalar_type)out[i]->dtype) || !out[i]->data) { continue; }
        if (opdi_any_element(out[i], true)) {
            return opd_fail(OPD_ERROR_AUTOGRAD, "Function '%s' returned nan values in its %dth output.",
                            node->formula->name, i);
        }
        if (!opd_ok()) { return -1; }
    }
    return 0;
}

int opd_anomaly_set(bool on, bool check_nan) {
    const int now = on ? OPD_ANOMALY_ON | (check_nan ? OPD_ANOMALY_NAN : 0) : 0, was = OPDI_LOAD(&opdi_anomaly);
    static const opdi_anomaly_calls calls = {opdi_trace_node, opdi_anomaly_check, opdi_anomaly_report};
    OPDI_PUBLISH(&opdi_on_anomaly, &calls);
    OPDI_STORE(&opdi_anomaly, now);
    if (on && !was) {
        opd_warn("Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled "
                 "for debugging.");
    }
    return was;
}
