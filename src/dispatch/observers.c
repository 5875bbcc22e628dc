#include "dispatch.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>observers    observers: registration, sampling, callbacks
//
//  Observers work as in at::RecordFunction.  Each thread has a list of the observers that see its events, protected by
//  a lock of the thread.  Only code that adds or removes an observer takes another thread's lock.  A call reads only
//  one word, thread->observed, to know if it has observers.  An event in progress holds references to its observers, so
//  that the data of a callback is not freed while the callback runs.
//----------------------------------------------------------------------------------------------------------------------

static struct { opdi_observer *first; int64_t handles; } opdi_observers;      /* protected by opdi_threads_lock */

OPDI_COLD_BEGIN

static void opdi_observer_drop(opdi_observer *observer, int32_t count) {
    opd_plugin *plugin = observer->plugin;
    if (OPDI_SUB(&observer->refs, count) > 0) { return; }
    if (observer->desc.destroy) { observer->desc.destroy(observer->desc.user); }
    opdi_free(observer, sizeof *observer);
    if (plugin) { opdi_plugin_unpin(plugin); }
}

/* Puts an observer into a thread's list, in which the observers of all threads come first.  The caller holds
   opdi_threads_lock. */
static void opdi_observer_put(opdi_thread *thread, opdi_observer *observer) {
    opdi_lock(&thread->observe_lock);
    if (!thread->observe_end) {
        int i = thread->nobservers++;
        for (; i > 0 && !observer->local && thread->observers[i - 1].observer->local; i--) {
            thread->observers[i] = thread->observers[i - 1];
        }
        thread->observers[i].observer = observer;
        thread->observers[i].left = 0;
        (void)OPDI_ADD(&observer->refs, 1);
        OPDI_STORE(&thread->observed, OPDI_OBSERVE_LOOK);
    }
    opdi_unlock(&thread->observe_lock);
}

/* Takes an observer out of a thread's list.  Returns the number of references to the observer that the list held: 0 or
   1. */
static int32_t opdi_observer_take(opdi_thread *thread, const opdi_observer *observer) {
    int i = 0;
    opdi_lock(&thread->observe_lock);
    while (i < thread->nobservers && thread->observers[i].observer != observer) { i++; }
    int k = i < thread->nobservers;
    if (k) {
        thread->nobservers--;
        for (; i < thread->nobservers; i++) { thread->observers[i] = thread->observers[i + 1]; }
        OPDI_STORE(&thread->observed, thread->nobservers ? OPDI_OBSERVE_LOOK : 0);
    }
    opdi_unlock(&thread->observe_lock);
    return k;
}

/* If `on` is true, puts an observer into the list of each thread that it observes, else takes the observer out of these
   lists.  Returns how many references the lists have given up, which the caller drops. */
static int32_t opdi_observer_spread(opdi_thread *self, opdi_observer *observer, bool on) {
    opdi_thread *thread = observer->local ? self : opdi_all_threads;
    int32_t freed = 0;
    for (; thread; thread = observer->local ? NULL : thread->next) {
        if (on) { opdi_observer_put(thread, observer); } else { freed += opdi_observer_take(thread, observer); }
    }
    observer->enabled = on;
    return freed;
}

/* opdi_observers_enter puts the observers of all threads into the list of a new thread. opdi_observers_leave empties
   the list of a thread that ends. */
OPDI_INTERNAL void opdi_observers_enter(opdi_thread *thread) {
    for (opdi_observer *observer = opdi_observers.first; observer; observer = observer->next) {
        if (observer->enabled) { opdi_observer_put(thread, observer); }
    }
}
OPDI_INTERNAL void opdi_observers_leave(opdi_thread *thread) {
    opdi_observer *observer;
    opdi_lock(&opdi_threads_lock);
    opdi_lock(&thread->observe_lock);
    thread->observe_end = true;
    int count = thread->nobservers;
    thread->nobservers = 0;                       /* code that removes an observer now finds no observer here */
    OPDI_STORE(&thread->observed, 0);
    opdi_unlock(&thread->observe_lock);
    opdi_unlock(&opdi_threads_lock);
    for (int i = 0; i < count; i++) { opdi_observer_drop(thread->observers[i].observer, 1); }
    while ((observer = thread->own_observers) != NULL) {
        thread->own_observers = observer->next;
        opdi_observer_drop(observer, 1);
    }
}

#define OPDI_OBSERVE_ALL (OPD_OBSERVE_CALL | OPD_OBSERVE_BACKWARD | OPD_OBSERVE_SPAN)
/* Adds an observer of all threads or, if `local` is true, of this thread.  Returns its handle.  Returns 0 and sets an
   error if the observer is not valid or there are too many. */
static int64_t opdi_observer_add(const opd_observer *desc, bool local) {
    opdi_thread *thread = opdi_self();
    opdi_observer **at;
    int count = 0;
    if (!desc || (!desc->begin && !desc->end) || (desc->kinds & ~(unsigned)OPDI_OBSERVE_ALL)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "an observer needs a callback (`begin` or `end`), and its `kinds` must be "
                        "OPD_OBSERVE_... values"), 0;
    }
    if (!(desc->sampling >= 0 && desc->sampling <= 1)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "the `sampling` of an observer must be a probability from 0 to 1, not %g",
                        desc->sampling), 0;
    }
    opdi_observer *observer = (opdi_observer *)opdi_alloc(sizeof *observer);
    if (!observer) { return 0; }
    observer->desc = *desc;
    if (observer->desc.kinds == 0) { observer->desc.kinds = OPDI_OBSERVE_ALL; }
    observer->refs = 1;
    observer->local = local;
    observer->plugin = opdi_plugin_hold(desc->begin ? (uintptr_t)desc->begin : (uintptr_t)desc->end);
    observer->next = NULL;
    opdi_lock(&opdi_threads_lock);
    for (at = local ? &thread->own_observers : &opdi_observers.first; *at; at = &(*at)->next) { count++; }
    int64_t handle = count < OPDI_MAX_OBSERVERS / 2 ? ++opdi_observers.handles : 0;
    if (handle) {
        opdi_on_new_thread = opdi_observers_enter;
        observer->handle = handle;
        *at = observer;
        (void)opdi_observer_spread(thread, observer, true);
    }
    opdi_unlock(&opdi_threads_lock);
    if (!handle) {
        observer->desc.destroy = NULL;            /* the caller keeps the user pointer */
        opdi_observer_drop(observer, 1);
        (void)opd_fail(OPD_ERROR_ARGUMENT, "more than %d observers of %s cannot be added",
                       OPDI_MAX_OBSERVERS / 2, local ? "one thread" : "all threads");
    }
    return handle;
}
int64_t opd_observer_add(const opd_observer *observer) { return opdi_observer_add(observer, false); }
int64_t opd_observer_add_local(const opd_observer *observer) { return opdi_observer_add(observer, true); }

/* Returns the address of the pointer that leads to the observer with this handle, in the list of observers of all
   threads or of this thread.  If there is no such observer, that pointer is NULL.  The caller holds opdi_threads_lock.
   */
static opdi_observer **opdi_observer_find(opdi_thread *thread, int64_t handle) {
    opdi_observer **at = &opdi_observers.first;
    while (*at && (*at)->handle != handle) { at = &(*at)->next; }
    if (*at) { return at; }
    for (at = &thread->own_observers; *at && (*at)->handle != handle; ) { at = &(*at)->next; }
    return at;
}

bool opd_observer_remove(int64_t handle) {
    opdi_thread *thread = opdi_self();
    int32_t freed = 1;
    opdi_lock(&opdi_threads_lock);
    opdi_observer **at = opdi_observer_find(thread, handle);
    opdi_observer *observer = *at;
    if (observer) {
        *at = observer->next;
        freed += opdi_observer_spread(thread, observer, false);
    }
    opdi_unlock(&opdi_threads_lock);
    if (observer) { opdi_observer_drop(observer, freed); }
    return observer != NULL;
}

/* Removes the observers of all threads that a plug-in has not removed when it is unloaded. */
OPDI_INTERNAL void opdi_observers_unload(const opd_plugin *plugin) {
    const opdi_observer *observer;
    int64_t handle;
    do {
        opdi_lock(&opdi_threads_lock);
        for (observer = opdi_observers.first; observer && observer->plugin != plugin; observer = observer->next) { }
        handle = observer ? observer->handle : 0;
        opdi_unlock(&opdi_threads_lock);
    } while (handle && opd_observer_remove(handle));
}

bool opd_observer_enable(int64_t handle, bool on) {
    opdi_thread *thread = opdi_self();
    opdi_lock(&opdi_threads_lock);
    opdi_observer *observer = *opdi_observer_find(thread, handle);
    if (observer && observer->enabled != on) {    /* the registration holds a reference: `observer` is not freed here */
        int32_t freed = opdi_observer_spread(thread, observer, on);
        if (freed) { (void)OPDI_SUB(&observer->refs, freed); }
    }
    opdi_unlock(&opdi_threads_lock);
    return observer != NULL;
}

bool opd_observe_set(bool on) {
    opdi_thread *thread = opdi_self();
    (void)opdi_visits_left(thread);
    bool was = !thread->innermost.observe_off;
    thread->innermost.observe_off = !on;
    return was;
}

//== events ============================================================================================================

/* Returns after how many events the next event is observed: a random number of at least 1, geometric with probability
   p. */
static int64_t opdi_observe_draw(opdi_thread *thread, double p) {
    thread->random ^= thread->random << 13;       /* xorshift64 */
    thread->random ^= thread->random >> 7;
    thread->random ^= thread->random << 17;
    double n = log(((double)(thread->random >> 11) + 1) / 9007199254740992.0) / log1p(-p);
    return n < 1e15 ? 1 + (int64_t)n : (int64_t)1000000000000000;
}

/* Chooses the observers of an event and takes references to them.  Sets thread->skip to the number of calls that may
   pass before the next choice. */
static void opdi_observe_pick(opdi_thread *thread, opdi_observing *observing) {
    const unsigned kind = (unsigned)observing->event.kind;
    const int64_t passed = thread->skip_from - thread->skip;
    int64_t skip = INT64_MAX;
    observing->count = 0;
    opdi_lock(&thread->observe_lock);
    for (int i = 0; i < thread->nobservers; i++) {
        opdi_watch *watch = &thread->observers[i];
        const opd_observer *observer = &watch->observer->desc;
        const bool sampled = observer->sampling > 0 && observer->sampling < 1;
        bool now = (observer->kinds & kind) != 0;
        if (sampled && watch->left == 0) { watch->left = opdi_observe_draw(thread, observer->sampling); }
        else if (sampled && (observer->kinds & OPD_OBSERVE_CALL)) { watch->left -= passed; }
        if (sampled && now && --watch->left > 0) { now = false; }
        if (sampled && watch->left == 0) { watch->left = opdi_observe_draw(thread, observer->sampling); }
        if (observer->kinds & OPD_OBSERVE_CALL) { skip = OPDI_MIN(skip, sampled ? watch->left - 1 : 0); }
        if (now) {
            (void)OPDI_ADD(&watch->observer->refs, 1);
            observing->with[observing->count].context = NULL;
            observing->with[observing->count++].observer = watch->observer;
        }
    }
    thread->skip = thread->skip_from = skip;
    OPDI_STORE(&thread->observed, thread->nobservers ? OPDI_OBSERVE_SKIP : 0);
    opdi_unlock(&thread->observe_lock);
}

/* Runs the begin or (if `end` is true) end callback of observer i in a new scope, and then restores the thread's state.
   */
static void opdi_observe_call(opdi_thread *thread, opdi_observing *observing, int i, bool end) {
    const opd_observer *observer = &observing->with[i].observer->desc;
    const opdi_state state = thread->state;
    const int64_t mark = thread->top, scope_mark = thread->scope_mark, allocated = thread->allocated;
    const int32_t scope_depth = thread->scope_depth;
    opdi_visit_frame visit;
    opdi_visit_begin(thread, &visit, "an observer", /* end, user */ NULL, NULL);
    thread->observing = true;
    thread->state.no_grad = 1;
    thread->scope_mark = mark;
    thread->scope_depth = scope_depth + 1;
    if (end && observer->end) { observer->end(&observing->event, observing->with[i].context, observer->user); }
    if (!end && observer->begin) { observing->with[i].context = observer->begin(&observing->event, observer->user); }
    opdi_visit_end(&visit);
    if (thread->error != OPD_OK) {
        thread->error = OPD_OK;
        if (!end) { observing->with[i].context = NULL; }
        opd_warn("an observer failed at the %s of %s: %s", end ? "end" : "begin", observing->event.name,
                 thread->message);
    }
    thread->state = state;
    thread->scope_mark = scope_mark;
    thread->scope_depth = scope_depth;
    if (thread->top > mark) { opdi_scope_unwind(thread, mark); }
    thread->allocated = allocated;
    thread->observing = false;
}

/* Begins an event: chooses its observers and calls their begin callbacks.  The caller has set the other fields of the
   event: args, nargs, op, forward_thread. */
OPDI_INTERNAL void opdi_observe_begin(opdi_thread *thread, opdi_observing *observing, int kind, const char *name,
                                      int64_t sequence) {
    observing->event.kind = kind;
    observing->event.name = name;
    observing->event.sequence = sequence;
    observing->event.rets = NULL;
    observing->event.nrets = 0;
    observing->event.error = OPD_OK;
    observing->event.message = "";
    observing->event.thread = opdi_thread_number(thread);
    observing->event.id = (uint64_t)opdi_thread_number(thread) << 40 | ++thread->events;
    opdi_observe_pick(thread, observing);
    for (int i = 0; i < observing->count; i++) { opdi_observe_call(thread, observing, i, false); }
}

/* Ends an event: calls the end callbacks of the observers that saw its beginning, and drops the references to them.  A
   pending error is set aside during the callbacks. */
OPDI_INTERNAL void opdi_observe_end(opdi_thread *thread, opdi_observing *observing, const opd_value *rets, int nrets) {
    const opd_code error = thread->error;
    char message[sizeof thread->message];
    message[0] = 0;
    if (observing->count == 0) { return; }
    if (error != OPD_OK) { memcpy(message, thread->message, sizeof message); }
    else {
        observing->event.rets = rets;
        observing->event.nrets = nrets;
    }
    thread->error = OPD_OK;
    observing->event.error = error;
    observing->event.message = message;
    for (int i = 0; i < observing->count; i++) { opdi_observe_call(thread, observing, i, true); }
    observing->event.message = "";
    for (int i = 0; i < observing->count; i++) { opdi_observer_drop(observing->with[i].observer, 1); }
    if (error != OPD_OK) { memcpy(thread->message, message, sizeof message); }
    thread->error = error;
}

opd_span *opd_span_open(const char *name) {
    opdi_thread *thread = opdi_self();
    if (thread->error != OPD_OK || !opdi_observe_on(thread)) { return NULL; }
    int64_t allocated = thread->allocated;
    opd_span *span = (opd_span *)opdi_alloc(sizeof *span);
    thread->allocated = allocated;                /* the callbacks' memory does not count as the program's */
    if (!span) { return NULL; }
    memset(&span->observing.event, 0, sizeof span->observing.event);
    span->th = thread;
    opdi_observe_begin(thread, &span->observing, OPD_OBSERVE_SPAN, name ? name : "", -1);
    if (span->observing.count) { return span; }
    opdi_free(span, sizeof *span);
    return NULL;
}

void opd_span_close(opd_span *span) {
    if (!span) { return; }
    if (span->th != opdi_self()) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_span_close: the span was opened on another thread");
        return;
    }
    opdi_observe_end(span->th, &span->observing, NULL, 0);
    opdi_free(span, sizeof *span);
}

OPDI_COLD_END

