#include "tools.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>profiler     records of events, the table, the trace file
//
//  The profiler is an observer (see >>observers).  It appends a record of each event to its thread's list.  The rows of
//  the table, and the trace file's arrows from a call to the backward run of its node, are computed afterwards.  This
//  section uses the public interface of observers and tensors, and each thread's counter of allocated bytes.
//----------------------------------------------------------------------------------------------------------------------

OPDI_INTERNAL opdi_profiler_state opdi_profiler = {OPDI_MUTEX_INIT, NULL, 0};
OPDI_INTERNAL int64_t opdi_profile_most = 10000000;      /* most events of a profile: about 1 GB */

/* Writes the sizes of `count` arguments as "[[2, 3], [], [[1], [2]]]".  An argument that is not a tensor is [].  Sizes
   that do not fit are left out. */
static void opdi_shapes_text(const opd_value *value, int count, char *buf, size_t cap) {
    opdi_text text = opdi_text_of(buf, cap - 8);  /* 8 bytes for the closing brackets */
    char one[OPD_MAX_DIMS * 21 + 3];
    opdi_text_add(&text, "[");
    for (int i = 0; i < count; i++) {
        const bool list = value[i].tag == OPD_TAG_TENSORS;
        size_t was = text.length;
        if (list || value[i].tag != OPD_TAG_TENSOR) { opdi_text_add(&text, "%s[", i ? ", " : ""); }
        for (int32_t k = 0; k < (list ? value[i].n : value[i].tag == OPD_TAG_TENSOR); k++) {
            const opd_tensor *tensor = list ? value[i].u.tensors[k] : value[i].u.t;
            (void)opdi_sizes_text(opd_sizes(tensor), opd_ndim(tensor), one, sizeof one);
            opdi_text_add(&text, "%s%s", list ? (k ? ", " : "") : (i ? ", " : ""), one);
            if (text.length >= text.cap) { break; }
        }
        if (list || value[i].tag != OPD_TAG_TENSOR) { opdi_text_add(&text, "]"); }
        if (text.length >= text.cap) {
            text.length = was;
            break;
        }
    }
    text.cap = cap;
    opdi_text_add(&text, "]");
}

/* Returns this thread's recorder for the profile; the thread's first event makes it.  Returns NULL if memory runs
   out or the profile is closed. */
static opdi_recorder *opdi_recorder_of(opd_profile *profile) {
    static const opdi_mutex fresh = OPDI_MUTEX_INIT;
    opdi_thread *thread = opdi_self();
    opdi_recorder *recorder = (opdi_recorder *)thread->recorder;
    if (thread->recorder_of == profile->number) { return recorder; }
    recorder = (opdi_recorder *)opdi_alloc(sizeof *recorder);
    opdi_lock(&profile->lock);
    if (!recorder || profile->closed) {
        if (!profile->closed) { profile->lost++; }  /* `lost` is read without a lock after closing */
        opdi_unlock(&profile->lock);
        opdi_free(recorder, sizeof *recorder);
        return NULL;
    }
    memset(recorder, 0, sizeof *recorder);
    recorder->lock = fresh;
    recorder->profile = profile;
    recorder->thread = opdi_thread_number(thread);
    recorder->next = profile->recorders;
    profile->recorders = recorder;
    opdi_unlock(&profile->lock);
    thread->recorder = recorder;
    thread->recorder_of = profile->number;
    return recorder;
}

static opdi_trace *opdi_trace_make(opdi_recorder *recorder, const opd_event *event) {
    char shapes[1024];
    opdi_trace *trace = OPDI_ADD(&recorder->profile->taken, 1) <= opdi_profile_most ?
        (opdi_trace *)opdi_arena_alloc(&recorder->arena, sizeof *trace) : NULL;
    if (!trace) { return NULL; }
    memset(trace, 0, sizeof *trace);
    trace->name = event->name;                    /* names of operators live forever */
    if (event->kind != OPD_OBSERVE_CALL &&
        !(trace->name = opdi_arena_copy(&recorder->arena, event->name, strlen(event->name)))) {
        return NULL;
    }
    if (recorder->profile->options.shapes && event->kind == OPD_OBSERVE_CALL) {
        opdi_shapes_text(event->args, event->nargs, shapes, sizeof shapes);
        if (!(trace->shapes = opdi_arena_copy(&recorder->arena, shapes, strlen(shapes)))) { return NULL; }
    }
    return trace;
}

//== times on a device =================================================================================================

enum { OPDI_MOST_DEVICE_TIMES = 200000 };
int opd_profiler_device(opd_device device) {
    const opd_device_event probe = opd_device_event_new(device, true);
    int rc = 0;
    if (!probe.id) { return -1; }
    opd_device_event_free(probe);
    opdi_lock(&opdi_profiler.lock);
    if (opdi_profiler.running) {
        opdi_profiler.running->device = probe.device;
        OPDI_PUBLISH(&opdi_profiler.running->timed, 1);
    }
    else { rc = opd_fail(OPD_ERROR_ARGUMENT, "opd_profiler_device: no profiler is running"); }
    opdi_unlock(&opdi_profiler.lock);
    return rc;
}
/* Records the device's event at the beginning of a call or node.  Errors are forgotten: then there is no time. */
static void opdi_device_times_begin(const opd_profile *profile, opdi_trace *trace) {
    opdi_device_times *const times = trace->device;
    const int mark = opd_error_mark();
    times->from = opd_device_event_new(profile->device, true);
    times->to = opd_device_event_new(profile->device, true);
    if (times->from.id && times->to.id) {
        (void)opd_device_event_record(times->from, opd_stream_current(profile->device));
    }
    (void)opd_error_rewind(mark);
}
static void opdi_device_times_end(const opd_profile *profile, const opdi_trace *trace) {
    const int mark = opd_error_mark();
    if (trace->device->from.id && trace->device->to.id) {
        (void)opd_device_event_record(trace->device->to, opd_stream_current(profile->device));
    }
    (void)opd_error_rewind(mark);
}
/* Waits for the events of all records, computes the times, and frees the events.  Without `wait`, only frees them. */
static void opdi_device_times_resolve(const opd_profile *profile, bool wait) {
    const int mark = opd_error_mark();
    for (const opdi_recorder *recorder = profile->recorders; recorder; recorder = recorder->next) {
        for (opdi_trace *trace = recorder->first; trace; trace = trace->next) {
            opdi_device_times *const times = trace->device;
            if (!times || !times->from.id) { continue; }
            if (wait && times->to.id && opd_device_event_synchronize(times->to) == 0) {
                const double ms = opd_device_event_elapsed(times->from, times->to);
                if (ms > 0) { times->ns = (int64_t)(ms * 1e6); }
            }
            (void)opd_error_rewind(mark);         /* an event that was not recorded, or in a capture, has no time */
            opd_device_event_free(times->from);
            opd_device_event_free(times->to);
            times->from.id = times->to.id = 0;
            if (trace->parent && trace->parent->device) { trace->parent->device->inner += times->ns; }
        }
    }
}

/* The observer's callback at the beginning of an event.  Returns the record of the event.  Returns NULL if memory runs
   out, if the profile has opdi_profile_most events, or if it is closed. */
static void *opdi_profile_begin(const opd_event *event, void *user) {
    opd_profile *profile = (opd_profile *)user;
    opdi_thread *thread = opdi_self();
    const int64_t allocated = thread->allocated;
    const int mark = opd_error_mark();
    opdi_recorder *recorder = opdi_recorder_of(profile);
    opdi_trace *trace = NULL;
    if (recorder) {
        opdi_lock(&recorder->lock);
        trace = recorder->closed ? NULL : opdi_trace_make(recorder, event);
        if (trace) {
            trace->of = recorder;
            trace->kind = event->kind;
            trace->sequence = event->sequence;
            trace->forward_thread = event->forward_thread;
            trace->parent = recorder->open;
            trace->bytes = allocated;
            trace->end = -1;
            if (recorder->last) { recorder->last->next = trace; } else { recorder->first = trace; }
            recorder->open = recorder->last = trace;
            trace->begin = opdi_clock() - profile->start;
        }
        else if (!recorder->closed) { recorder->lost++; }
        if (trace && OPDI_ACQUIRE(&profile->timed) && event->kind != OPD_OBSERVE_SPAN &&
            OPDI_ADD(&profile->times, 1) <= OPDI_MOST_DEVICE_TIMES) {
            trace->device = (opdi_device_times *)opdi_arena_alloc(&recorder->arena, sizeof *trace->device);
            if (trace->device) { memset(trace->device, 0, sizeof *trace->device); }
        }
        opdi_unlock(&recorder->lock);
    }
    if (trace && trace->device) { opdi_device_times_begin(profile, trace); }
    (void)opd_error_rewind(mark);
    return trace;
}

/* Ends a record, and adds its time and bytes to the surrounding event.  Spans may end in any order. */
static void opdi_trace_end(opdi_trace *trace, int64_t now, int64_t allocated) {
    opdi_recorder *recorder = trace->of;
    trace->end = now;
    trace->bytes = allocated - trace->bytes;
    if (trace->parent) {
        trace->parent->inner += trace->end - trace->begin;
        trace->parent->inner_bytes += trace->bytes;
    }
    while (recorder->open && recorder->open->end >= 0) { recorder->open = recorder->open->parent; }
}

static void opdi_profile_end(const opd_event *event, void *context, void *user) {
    const int64_t now = opdi_clock();
    opdi_trace *trace = (opdi_trace *)context;
    (void)event;
    if (!trace) { return; }
    opdi_lock(&trace->of->lock);
    if (trace->device && !trace->of->closed) { opdi_device_times_end((opd_profile *)user, trace); }
    if (!trace->of->closed) { opdi_trace_end(trace, now - ((opd_profile *)user)->start, opdi_self()->allocated); }
    opdi_unlock(&trace->of->lock);
}

static void opdi_profile_drop(void *user) {
    opd_profile *profile = (opd_profile *)user;
    if (OPDI_SUB(&profile->refs, 1) > 0) { return; }
    if (profile->times) { opdi_device_times_resolve(profile, false); }
    while (profile->recorders) {
        opdi_recorder *recorder = profile->recorders;
        profile->recorders = recorder->next;
        opdi_arena_free(&recorder->arena);
        opdi_free(recorder, sizeof *recorder);
    }
    opdi_free(profile->rows, (size_t)profile->nrows * sizeof *profile->rows);
    opdi_free(profile->device_ns, (size_t)profile->nrows * sizeof *profile->device_ns);
    opdi_free(profile, sizeof *profile);
}
void opd_profile_free(opd_profile *profile) { if (profile) { opdi_profile_drop(profile); } }

/* Starts the profiler.  Only one profile can run in the process at a time.  Returns 0, or -1 and sets an error. */
int opd_profiler_begin(const opd_profiler_options *options) {
    static const opdi_mutex fresh = OPDI_MUTEX_INIT;
    opd_observer observer;
    opd_profile *profile;
    memset(&observer, 0, sizeof observer);
    if (!opd_ok() || !(profile = (opd_profile *)opdi_alloc(sizeof *profile))) { return -1; }
    memset(profile, 0, sizeof *profile);
    profile->refs = 2;
    profile->lock = fresh;
    if (options) { profile->options = *options; }
    observer.begin = opdi_profile_begin;
    observer.end = opdi_profile_end;
    observer.destroy = opdi_profile_drop;
    observer.user = profile;
    opdi_lock(&opdi_profiler.lock);
    if (opdi_profiler.running) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "a profiler is already running (opd_profiler_end stops it)");
    }
    else {
        profile->number = ++opdi_profiler.number;
        profile->start = opdi_clock();
        profile->handle = profile->options.this_thread ? opd_observer_add_local(&observer)
            : opd_observer_add(&observer);
        if (profile->handle) { opdi_profiler.running = profile; }
    }
    opdi_unlock(&opdi_profiler.lock);
    if (!opd_ok()) {
        opdi_free(profile, sizeof *profile);
        return -1;
    }
    return 0;
}

/* Closes a profile: no further event is recorded, and events that are still running end now. */
static void opdi_profile_close(opd_profile *profile) {
    opdi_lock(&profile->lock);
    profile->stop = opdi_clock() - profile->start;
    for (opdi_recorder *recorder = profile->recorders; recorder; recorder = recorder->next) {
        opdi_lock(&recorder->lock);
        profile->stop = opdi_clock() - profile->start;  /* now no event begins in this recorder */
        while (recorder->open) { opdi_trace_end(recorder->open, profile->stop, recorder->open->bytes); }
        recorder->closed = true;
        for (opdi_trace *trace = recorder->first; trace; trace = trace->next) { profile->events++; }
        profile->lost += recorder->lost;
        opdi_unlock(&recorder->lock);
    }
    profile->closed = true;
    opdi_unlock(&profile->lock);
}

//== rows ==============================================================================================================

static int opdi_compare_names(const void *first, const void *second) {
    const opdi_trace *trace = *(opdi_trace *const *)first, *other = *(opdi_trace *const *)second;
    int order = strcmp(trace->name, other->name);
    return order ? order : strcmp(trace->shapes ? trace->shapes : "", other->shapes ? other->shapes : "");
}
typedef struct opdi_ranked { int64_t key, device; opd_profile_row row; } opdi_ranked;
static int opdi_compare_ranked(const void *first, const void *second) {
    const opdi_ranked *ranked = (const opdi_ranked *)first, *other = (const opdi_ranked *)second;
    return ranked->key != other->key ? (ranked->key < other->key ? 1 : -1) : strcmp(ranked->row.name, other->row.name);
}

static void opdi_row_add(opd_profile_row *row, const opdi_trace *trace) {
    const opdi_trace *up = trace->parent;
    row->calls++;
    row->self_ns += trace->end - trace->begin - trace->inner;
    row->self_bytes += trace->bytes - trace->inner_bytes;
    while (up && strcmp(up->name, trace->name) != 0) { up = up->parent; }
    if (up) { return; }                           /* an outer event of this name includes it */
    row->total_ns += trace->end - trace->begin;
    row->bytes += trace->bytes;
}

/* Sorts the records by name, and makes one row for each name (and shapes), in the requested order.  Returns 0, or -1
   and sets an error. */
static int opdi_profile_rows_make(opd_profile *profile) {
    int64_t i, count = 0;
    if (profile->events == 0) { return 0; }
    opdi_trace **all = (opdi_trace **)opdi_alloc((size_t)profile->events * sizeof *all);
    if (!all) { return -1; }
    for (const opdi_recorder *recorder = profile->recorders; recorder; recorder = recorder->next) {
        for (opdi_trace *trace = recorder->first; trace; trace = trace->next) { all[count++] = trace; }
    }
    qsort(all, (size_t)count, sizeof(opdi_trace *), opdi_compare_names);
    for (i = 0; i < profile->events; i++) { profile->nrows += i == 0 || opdi_compare_names(&all[i - 1], &all[i]) != 0; }
    opdi_ranked *ranked = (opdi_ranked *)opdi_alloc((size_t)profile->nrows * sizeof *ranked);
    profile->rows = (opd_profile_row *)opdi_alloc((size_t)profile->nrows * sizeof *profile->rows);
    if (profile->times) {
        profile->device_ns = (int64_t *)opdi_alloc((size_t)profile->nrows * sizeof *profile->device_ns);
    }
    if (ranked && profile->rows && (profile->device_ns || !profile->times)) {
        memset(ranked, 0, (size_t)profile->nrows * sizeof *ranked);
        for (i = count = 0; i < profile->events; i++) {
            count += i > 0 && opdi_compare_names(&all[i - 1], &all[i]) != 0;
            ranked[count].row.name = all[i]->name;
            ranked[count].row.shapes = all[i]->shapes;
            opdi_row_add(&ranked[count].row, all[i]);
            if (all[i]->device) { ranked[count].device += OPDI_MAX(all[i]->device->ns - all[i]->device->inner, 0); }
        }
        for (i = 0; i < profile->nrows; i++) {
            const opd_profile_row *profile_row = &ranked[i].row;
            ranked[i].key = profile->options.order == OPD_PROFILE_BY_TOTAL ? profile_row->total_ns
                : profile->options.order == OPD_PROFILE_BY_CALLS ? profile_row->calls
                : profile->options.order == OPD_PROFILE_BY_BYTES ? profile_row->bytes : profile_row->self_ns;
        }
        qsort(ranked, (size_t)profile->nrows, sizeof *ranked, opdi_compare_ranked);
        for (i = 0; i < profile->nrows; i++) {
            profile->rows[i] = ranked[i].row;
            if (profile->device_ns) { profile->device_ns[i] = ranked[i].device; }
        }
    }
    opdi_free(all, (size_t)profile->events * sizeof *all);
    opdi_free(ranked, (size_t)profile->nrows * sizeof *ranked);
    return ranked && profile->rows && (profile->device_ns || !profile->times) ? 0 : -1;
}

static const char *opdi_profile_why(const opd_profile *profile) {
    return profile->taken > opdi_profile_most ? "it is full" : "out of memory";
}

/* Stops the profiler and computes the rows.  Returns the profile, which the caller frees, or NULL and sets an error. */
opd_profile *opd_profiler_end(void) {
    opdi_lock(&opdi_profiler.lock);
    opd_profile *profile = opdi_profiler.running;
    /* true if the profiler was started for another thread that has not ended */
    bool elsewhere = profile && !opd_observer_remove(profile->handle) && OPDI_ACQUIRE(&profile->refs) > 1;
    if (!elsewhere) { opdi_profiler.running = NULL; }
    opdi_unlock(&opdi_profiler.lock);
    if (!profile || elsewhere) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_profiler_end: %s", profile
                       ? "the profiler was started for another thread, which must end it" : "no profiler is running");
        return NULL;
    }
    opdi_profile_close(profile);
    if (profile->lost) {
        opd_warn("%lld events are missing in the profile, which has %lld events: %s", (long long)profile->lost,
                 (long long)profile->events, opdi_profile_why(profile));
    }
    if (profile->times) { opdi_device_times_resolve(profile, true); }
    if (opdi_profile_rows_make(profile)) {
        opdi_profile_drop(profile);
        return NULL;
    }
    return profile;
}

const opd_profile_row *opd_profile_rows(const opd_profile *profile, int64_t *count) {
    if (count) { *count = profile ? profile->nrows : 0; }
    return profile ? profile->rows : NULL;
}
int64_t opd_profile_device_ns(const opd_profile *profile, int64_t row) {
    return profile && profile->device_ns && row >= 0 && row < profile->nrows ? profile->device_ns[row] : 0;
}

//== the table =========================================================================================================

static const char *opdi_time_text(int64_t ns, char *buf, size_t cap) {
    const int64_t unit = ns >= 1000000000 ? 1000000000 : ns >= 1000000 ? 1000000 : 1000;
    (void)snprintf(buf, cap, "%.3f%s", (double)ns / (double)unit, unit == 1000 ? "us" : unit == 1000000 ? "ms" : "s");
    return buf;
}

typedef struct opdi_table_width { int name, shapes; bool device; } opdi_table_width;

static void opdi_table_rule(opdi_text *text, opdi_table_width width) {
    int k, count = width.name + 2 + (8 + width.device) * 12 + (width.shapes ? 2 + width.shapes : 0);
    for (int i = 0; i < count; i += k) {
        k = OPDI_MIN(count - i, 32);
        opdi_text_add(text, "%.*s", k, "--------------------------------");
    }
    opdi_text_add(text, "\n");
}
static void opdi_table_row(opdi_text *text, opdi_table_width width, const opd_profile_row *row, double self,
                           double total, int64_t device_ns) {
    char own[32], whole[32], mean[32], bytes[32], own_bytes[32], own_share[32], share[32];
    (void)snprintf(own_share, sizeof own_share, "%.2f%%", self > 0 ? 100 * (double)row->self_ns / self : 0.0);
    (void)snprintf(share, sizeof share, "%.2f%%", total > 0 ? 100 * (double)row->total_ns / total : 0.0);
    opdi_text_add(text, "%-*s%12s%12s%12s%12s%12s%12lld%12s%12s", width.name + 2, row->name, own_share,
                  opdi_time_text(row->self_ns, own, sizeof own), share,
                  opdi_time_text(row->total_ns, whole, sizeof whole),
                  opdi_time_text(row->calls ? row->total_ns / row->calls : 0, mean, sizeof mean), (long long)row->calls,
                  opdi_bytes_text(row->bytes, bytes, sizeof bytes),
                  opdi_bytes_text(row->self_bytes, own_bytes, sizeof own_bytes));
    if (width.device) { opdi_text_add(text, "%12s", opdi_time_text(device_ns, own, sizeof own)); }
    opdi_text_add(text, width.shapes ? "  %s\n" : "\n", row->shapes ? row->shapes : "");
}

/* Writes the table into buf as far as it fits in `cap` bytes.  Returns the length of the whole text. */
size_t opd_profile_table(const opd_profile *profile, char *buf, size_t cap) {
    opdi_text text = opdi_text_of(buf, cap);
    opdi_table_width width = {4, 0, false};
    opd_profile_row sum;
    int64_t device_ns = 0;
    char time[32];
    if (!profile) { return 0; }
    memset(&sum, 0, sizeof sum);
    width.device = profile->device_ns != NULL;
    for (int64_t i = 0; i < profile->nrows; i++) {
        const opd_profile_row *row = &profile->rows[i];
        width.name = OPDI_MAX(width.name, (int)strlen(row->name));
        if (profile->options.shapes) {
            width.shapes = OPDI_MAX(width.shapes, row->shapes ? (int)strlen(row->shapes) : 6);
        }
        sum.calls += row->calls;
        sum.self_ns += row->self_ns;
        sum.self_bytes += row->self_bytes;
        device_ns += opd_profile_device_ns(profile, i);
    }
    sum.name = "Sum";
    sum.total_ns = sum.self_ns;                   /* count each moment only once */
    sum.bytes = sum.self_bytes;
    opdi_table_rule(&text, width);
    opdi_text_add(&text, "%-*s%12s%12s%12s%12s%12s%12s%12s%12s%s%s\n", width.name + 2, "Name", "Self %", "Self",
                  "Total %", "Total", "Average", "Calls", "Bytes", "Self bytes", width.device ? "      Device" : "",
                  width.shapes ? "  Shapes" : "");
    opdi_table_rule(&text, width);
    for (int64_t i = 0; i < profile->nrows; i++) {
        opdi_table_row(&text, width, &profile->rows[i], (double)sum.self_ns, (double)sum.self_ns,
                       opd_profile_device_ns(profile, i));
    }
    opdi_table_rule(&text, width);
    opdi_table_row(&text, width, &sum, (double)sum.self_ns, (double)sum.self_ns, device_ns);
    opdi_text_add(&text, "Profiled for %s", opdi_time_text(profile->stop, time, sizeof time));
    if (profile->lost) {
        opdi_text_add(&text, "; %lld events are missing: %s", (long long)profile->lost, opdi_profile_why(profile));
    }
    opdi_text_add(&text, "\n");
    return text.length;
}

void opd_profile_print(const opd_profile *profile) {
    size_t count = opd_profile_table(profile, NULL, 0) + 1;
    char *text = (char *)opdi_alloc(count);
    if (!text) { return; }
    (void)opd_profile_table(profile, text, count);
    (void)fputs(profile ? text : "", stdout);
    opdi_free(text, count);
}

//== the trace file ====================================================================================================

/* Returns the length of the UTF-8 sequence at the beginning of source, or 0 if it is not valid. */
static int opdi_utf8_length(const unsigned char *source) {
    const int count = *source < 0x80 ? 1 : *source < 0xc2 || *source > 0xf4 ? 0 : *source < 0xe0 ? 2 : *source < 0xf0
        ? 3 : 4;
    for (int i = 1; i < count; i++) {
        if ((source[i] & 0xc0) != 0x80) { return 0; }
    }
    if ((*source == 0xe0 && source[1] < 0xa0) || (*source == 0xed && source[1] >= 0xa0) ||
        (*source == 0xf0 && source[1] < 0x90) || (*source == 0xf4 && source[1] >= 0x90)) {
        return 0;
    }
    return count;
}
/* Writes text as a JSON string. */
static void opdi_json_text(FILE *file, const char *text) {
    const unsigned char *source = (const unsigned char *)text;
    (void)putc('"', file);
    while (*source) {
        int count = opdi_utf8_length(source);
        if (count == 0) {
            (void)fputs("\\ufffd", file);
            source++;
            continue;
        }
        if (*source < 0x20 || *source == 0x7f) { (void)fprintf(file, "\\u%04x", (unsigned)*source); }
        else {
            if (*source == '"' || *source == '\\') { (void)putc('\\', file); }
            (void)fwrite(source, 1, (size_t)count, file);
        }
        source += count;
    }
    (void)putc('"', file);
}
/* Writes a member of a JSON object: a time in microseconds, with a decimal point in every locale. */
static void opdi_json_time(FILE *file, const char *name, int64_t ns) {
    (void)fprintf(file, ",\"%s\":%lld.%03d", name, (long long)(ns / 1000), (int)(ns % 1000));
}

static void opdi_json_record(FILE *file, const opdi_trace *trace) {
    static const char *const categories[] = {"", "cpu_op", "autograd", "", "user_annotation"};
    (void)fputs(",\n{\"ph\":\"X\",\"name\":", file);
    opdi_json_text(file, trace->name);
    (void)fprintf(file, ",\"cat\":\"%s\",\"pid\":1,\"tid\":%u", categories[trace->kind], (unsigned)trace->of->thread);
    opdi_json_time(file, "ts", trace->begin);
    opdi_json_time(file, "dur", trace->end - trace->begin);
    (void)fprintf(file, ",\"args\":{\"Bytes\":%lld", (long long)trace->bytes);
    if (trace->device) { opdi_json_time(file, "Device us", trace->device->ns); }
    if (trace->sequence >= 0) { (void)fprintf(file, ",\"Sequence number\":%lld", (long long)trace->sequence); }
    if (trace->forward_thread) { (void)fprintf(file, ",\"Fwd thread id\":%u", (unsigned)trace->forward_thread); }
    if (trace->shapes) { (void)fprintf(file, ",\"Input Dims\":%s", trace->shapes); }
    (void)fputs("}}", file);
}

/* One end of an arrow: the record of a call that recorded a node or of a run of that node, and the thread of the
   record. */
typedef struct opdi_flow { const opdi_trace *record; uint32_t thread; } opdi_flow;
static int opdi_compare_flows(const void *first, const void *second) {
    const opdi_flow *flow = (const opdi_flow *)first, *next = (const opdi_flow *)second;
    const opdi_trace *trace = flow->record, *other = next->record;
    if (flow->thread != next->thread) { return flow->thread < next->thread ? -1 : 1; }
    if (trace->sequence != other->sequence) { return trace->sequence < other->sequence ? -1 : 1; }
    if (trace->kind != other->kind) { return trace->kind < other->kind ? -1 : 1; }
    return trace->begin != other->begin ? (trace->begin < other->begin ? -1 : 1) : 0;
}

static void opdi_json_arrow(FILE *file, const opdi_trace *trace, char phase, int64_t id) {
    (void)fprintf(file, ",\n{\"ph\":\"%c\",\"name\":\"fwdbwd\",\"cat\":\"fwdbwd\",\"id\":%lld,\"pid\":1,\"tid\":%u%s",
                  phase, (long long)id, (unsigned)trace->of->thread, phase == 'f' ? ",\"bp\":\"e\"" : "");
    opdi_json_time(file, "ts", trace->begin);
    (void)fputs("}", file);
}

/* Writes arrows from calls to the runs of the nodes that they recorded.  If several calls have the same sequence
   number, the call that began last recorded the node.  `flows` is a buffer for all events. */
static void opdi_json_arrows(FILE *file, const opd_profile *profile, opdi_flow *flows) {
    int64_t count = 0, id = 0;
    for (const opdi_recorder *recorder = profile->recorders; recorder; recorder = recorder->next) {
        for (const opdi_trace *trace = recorder->first; trace; trace = trace->next) {
            if (trace->sequence < 0) { continue; }
            flows[count].record = trace;
            flows[count++].thread = trace->kind == OPD_OBSERVE_CALL ? recorder->thread : trace->forward_thread;
        }
    }
    qsort(flows, (size_t)count, sizeof *flows, opdi_compare_flows);
    for (int64_t i = 1; i < count; i++) {
        const opdi_flow *flow = &flows[i - 1], *other = &flows[i];
        int64_t k = i;
        if (flow->record->kind != OPD_OBSERVE_CALL || other->record->kind != OPD_OBSERVE_BACKWARD ||
            flow->thread != other->thread || flow->record->sequence != other->record->sequence) {
            continue;
        }
        for (; k < count && flows[k].thread == flow->thread && flows[k].record->sequence == flow->record->sequence;
             k++) {
            opdi_json_arrow(file, flow->record, 's', ++id);
            opdi_json_arrow(file, flows[k].record, 'f', id);
        }
    }
}

/* Writes the profile as a trace file for chrome://tracing and Perfetto.  Returns 0, or -1 and sets an error. */
int opd_profile_write_trace(const opd_profile *profile, const char *path) {
    if (!opd_ok()) { return -1; }
    if (!profile || !path) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_profile_write_trace: the profile or the path is NULL");
    }
    opdi_flow *flows = (opdi_flow *)opdi_alloc((size_t)profile->events * sizeof *flows);
    if (!flows) { return -1; }
    errno = 0;
    FILE *file = opdi_file_open(path, "w");
    if (file) {
        (void)fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{\"ph\":\"M\",\"name\":\"process_name\","
                    "\"pid\":1,\"tid\":0,\"args\":{\"name\":\"opdispatch\"}}", file);
        for (const opdi_recorder *recorder = profile->recorders; recorder; recorder = recorder->next) {
            (void)fprintf(file, ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":%u,\"args\":{\"name\":"
                          "\"thread %u\"}}", (unsigned)recorder->thread, (unsigned)recorder->thread);
            for (const opdi_trace *trace = recorder->first; trace; trace = trace->next) {
                opdi_json_record(file, trace);
            }
        }
        opdi_json_arrows(file, profile, flows);
        (void)fputs("\n]}\n", file);
    }
    opdi_free(flows, (size_t)profile->events * sizeof *flows);
    int bad = !file || ferror(file);
    if (file && fclose(file)) { bad = 1; }
    return bad ? opd_fail(opdi_errno_code(OPD_ERROR_ARGUMENT), "the trace file '%s' cannot be written: %s", path,
                          opdi_errno_text()) : 0;
}
