#include "tensor.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>backends     devices that programs register
//
//  The functions that a program registers for a kind of device, and their uses: memory, copies, making a device the
//  current one around a kernel, running operators on the CPU instead.  This section uses tensors and the dispatcher.
//  No built-in kernel touches the memory of a device.
//----------------------------------------------------------------------------------------------------------------------

static opdi_backend opdi_backends[OPD_BACKEND_COUNT];
OPDI_INTERNAL opdi_mutex opdi_backend_lock = OPDI_MUTEX_INIT;     /* protects opdi_backends, except published fields */

OPDI_INTERNAL opdi_backend *opdi_backend_of(int type) {
    return type > OPD_CPU && type < OPD_META && OPDI_ACQUIRE(&opdi_backends[type].registered) ? &opdi_backends[type]
        : NULL;
}
static const char *opdi_missing_why[OPD_BACKEND_COUNT];
int opd_backend_missing_set(opd_backend backend, const char *why) {
    if ((unsigned)backend >= OPD_BACKEND_COUNT) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_backend_missing_set: %d is not a backend", (int)backend);
    }
    OPDI_PUBLISH(&opdi_missing_why[backend], why);
    return 0;
}
OPDI_INTERNAL int opdi_backend_missing(int type) {
    const char *why = (unsigned)type < OPD_BACKEND_COUNT ? OPDI_ACQUIRE(&opdi_missing_why[type]) : NULL;
    return opd_fail(OPD_ERROR_NO_KERNEL, "no allocator for device %s: %s", opdi_device_name(type), why ? why
                    : type == OPD_CUDA
                    ? "the CUDA plug-in opdispatch_cuda.cu is neither linked nor loaded (opd_plugin_load)"
                    : "register its memory and copies first (opd_backend_register)");
}
/* Returns 0 if rc, returned by the backend's function `what`, is 0.  Otherwise returns -1 and sets an error. */
OPDI_INTERNAL int opdi_backend_rc(int rc, int type, const char *what) {
    if (rc && opd_ok()) { (void)opd_fail(OPD_ERROR_KERNEL, "%s: %s failed", opdi_device_name(type), what); }
    return rc ? -1 : 0;
}
static int opdi_backend_count(const opdi_backend *backend) {
    const int count = backend->desc.device_count ? backend->desc.device_count(backend->desc.user) : 1;
    return OPDI_MIN(OPDI_MAX(count, 0), OPDI_MAX_DEVICE_INDEX + 1);
}
OPDI_INTERNAL int opdi_backend_current(const opdi_backend *backend) {
    return backend->desc.device_get ? backend->desc.device_get(backend->desc.user) : 0;
}
/* Returns the backend of a device, and sets *index to the device's index or, if that is -1, to the index of the current
   device.  Returns NULL and sets an error if there is no such device. */
OPDI_INTERNAL opdi_backend *opdi_device_find(opd_device device, int *index) {
    opdi_backend *backend = opdi_backend_of(device.type);
    if (!backend) {
        opdi_started();
        backend = opdi_backend_of(device.type);
    }
    if (!backend) {
        (void)opdi_backend_missing(device.type);
        return NULL;
    }
    *index = device.index >= 0 ? device.index : opdi_backend_current(backend);
    int count = opdi_backend_count(backend);
    if (*index < count && *index >= 0) { return backend; }
    if (count == 0 && OPDI_ACQUIRE(&opdi_missing_why[device.type])) {
        (void)opdi_backend_missing(device.type);
        return NULL;
    }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "invalid device ordinal: there is no %s:%d, only %d device(s)",
                   opdi_device_name(device.type), *index, count);
    return NULL;
}

//== registering =======================================================================================================

/* Returns the reason why a backend cannot get this name, or NULL. */
static const char *opdi_name_refused(opd_backend backend, const char *name) {
    const opdi_given_name *given_name = opdi_given_name_of((int)backend);
    size_t count = 0;
    while ((name[count] >= 'a' && name[count] <= 'z') || (name[count] >= 'A' && name[count] <= 'Z') ||
           name[count] == '_') {
        count++;
    }
    if (name[count] || count == 0 || count > 31) { return "a name must have 1 to 31 letters and underscores"; }
    if (backend < OPD_PRIVATEUSE1 || backend > OPD_PRIVATEUSE3) {
        return strcmp(name, opdi_device_names[backend]) ? "only PrivateUse1 to 3 can be given a name" : NULL;
    }
    if (given_name) { return strcmp(given_name->name, name) ? "it has been given another name already" : NULL; }
    for (int i = 0; i < OPD_BACKEND_COUNT; i++) {
        if (i != (int)backend && (!strcmp(name, opdi_device_names[i]) || !strcmp(name, opdi_device_name(i)))) {
            return "another device has that name";
        }
    }
    return opdi_key_find(name) != OPD_KEY_INVALID ? "a dispatch key has that name" : NULL;
}

static void opdi_backend_name_set(opd_backend backend, const char *name) {
    opdi_given_name *given_name = &opdi_given_names[(int)backend - OPD_PRIVATEUSE1];
    if (opdi_given_name_of((int)backend)) { return; }
    strcpy(given_name->text[7], name);
    for (int row = 0; row < OPDI_ROWS; row++) {   /* "npu", "AutogradNpu" */
        const size_t length = strlen(opdi_row_names[row][backend]) - strlen("PrivateUse1");
        memcpy(given_name->text[row], opdi_row_names[row][backend], length);
        strcpy(given_name->text[row] + length, name);
        if (length && name[0] >= 'a' && name[0] <= 'z') { given_name->text[row][length] = (char)(name[0] - 'a' + 'A'); }
        given_name->keys[row] = given_name->text[row];
    }
    OPDI_PUBLISH(&given_name->name, (const char *)given_name->text[7]);
}

static void opdi_device_free(opdi_storage *storage);
/* Registers (on is 1) or unregisters (0) a backend, and takes all dispatch tables out of use.  The caller holds
   opdi_backend_lock.  After releasing the lock, the caller frees the tables (opdi_retired_reclaim). */
static void opdi_backend_publish(opd_backend backend, int on) {
    opdi_lock(&opdi_registry.lock);
    OPDI_PUBLISH(&opdi_on_release.device, &opdi_device_free);
    OPDI_PUBLISH(&opdi_backends[backend].registered, on);
    const uint32_t bit = (uint32_t)1 << backend, others = opdi_formula_backends & ~bit;
    OPDI_STORE(&opdi_formula_backends, others | (on && opdi_backends[backend].desc.pointwise ? bit : 0));
    opdi_tables_retire_all();
    opdi_unlock(&opdi_registry.lock);
}

int opd_backend_register_first(opd_backend backend, const opd_backend_desc *desc) {
    return opdi_backend_register_sized(backend, desc, offsetof(opd_backend_desc, pointwise));
}
/* Checks and copies a descriptor of `size` bytes, which may come from an older header.  Returns 0, or -1 and sets an
   error. */
int opdi_backend_register_sized(opd_backend backend, const opd_backend_desc *given, size_t size) {
    const char *wrong = NULL;
    opd_backend_desc whole, *desc = given ? &whole : NULL;
    if (!opd_ok()) { return -1; }
    memset(&whole, 0, sizeof whole);
    if (given) { memcpy(&whole, given, OPDI_MIN(size, sizeof whole)); }
    if ((int)backend <= OPD_CPU || (int)backend >= OPD_META) {
        return opd_fail(OPD_ERROR_REGISTER, "opd_backend_register: a program cannot register backend %d", (int)backend);
    }
    opdi_backend *other = &opdi_backends[backend];
    opdi_lock(&opdi_backend_lock);
    if (!desc || !desc->alloc || !desc->free || !desc->copy) { wrong = "alloc, free or copy is missing"; }
    else if (!desc->device_count + !desc->device_get + !desc->device_set != 0 &&
             (desc->device_count || desc->device_get || desc->device_set)) {
        wrong = "device_count, device_get and device_set belong together";
    }
    else if (!desc->stream_get != !desc->stream_set) { wrong = "stream_get and stream_set belong together"; }
    else if (other->registered) { wrong = "it is registered already"; }
    else if (desc->name) { wrong = opdi_name_refused(backend, desc->name); }
    if (!wrong) {
        if (desc->name && backend >= OPD_PRIVATEUSE1) { opdi_backend_name_set(backend, desc->name); }
        other->blocks = 0;                        /* field by field: other threads may read `registered` */
        memset(other->memory, 0, sizeof other->memory);
        other->desc = *desc;
        other->plugin = opdi_plugin_hold((uintptr_t)desc->alloc);
        opdi_backend_publish(backend, 1);
    }
    opdi_unlock(&opdi_backend_lock);
    opdi_retired_reclaim();
    return wrong ? opd_fail(OPD_ERROR_REGISTER, "opd_backend_register: cannot register %s as '%s': %s",
                            opdi_device_name((int)backend), desc && desc->name ? desc->name : "", wrong) : 0;
}

/* Unregisters a backend.  If `only` is not NULL, does so only if that plug-in has registered it.  Returns 0, or -1 and
   sets an error. */
static int opdi_backend_unregister(opd_backend backend, const opd_plugin *only) {
    opd_backend_desc desc;
    opd_plugin *plugin = NULL;
    int64_t blocks = 0;
    opdi_lock(&opdi_backend_lock);
    opdi_backend *other = opdi_backend_of((int)backend);
    if (other && only && other->plugin != only) { other = NULL; }
    if (other) {
        blocks = other->blocks;
        plugin = other->plugin;
        desc = other->desc;
        if (blocks == 0) { opdi_backend_publish(backend, 0); }
    }
    opdi_unlock(&opdi_backend_lock);
    if (!other) {
        return opd_fail(OPD_ERROR_REGISTER, "opd_backend_unregister: %s is not registered",
                        opdi_device_name((int)backend));
    }
    if (blocks) {
        return opd_fail(OPD_ERROR_REGISTER, "opd_backend_unregister: %lld block(s) of memory of %s are still in use",
                        (long long)blocks, opdi_device_name((int)backend));
    }
    opdi_retired_reclaim();
    if (desc.destroy) { desc.destroy(desc.user); }
    if (plugin) { opdi_plugin_unpin(plugin); }
    return 0;
}
int opd_backend_unregister(opd_backend backend) { return opdi_backend_unregister(backend, NULL); }

/* Unregisters the backends of a plug-in that has been unloaded.  A backend whose memory is still in use is unregistered
   when its last block is freed. */
OPDI_INTERNAL void opdi_backends_unload(const opd_plugin *plugin) {
    for (int i = OPD_CPU + 1; i < OPD_META; i++) {
        const int mark = opd_error_mark();
        if (opdi_backend_of(i)) { (void)opdi_backend_unregister((opd_backend)i, plugin); }
        (void)opd_error_rewind(mark);
    }
}

//== devices and streams ===============================================================================================

int opd_device_count(opd_backend backend) {
    opdi_started();
    const opdi_backend *known = opdi_backend_of((int)backend);
    return known ? opdi_backend_count(known) : backend == OPD_CPU;
}
opd_device opd_device_current(opd_backend backend) {
    const opdi_backend *known = opdi_backend_of((int)backend);
    return opd_device_make(backend, known ? opdi_backend_current(known) : -1);
}
opd_device opd_device_set(opd_device device) {
    const opd_device was = opd_device_current((opd_backend)device.type);
    const bool host = device.type == OPD_CPU || device.type == OPD_META;
    opdi_backend *backend = !host && device.index >= 0 ? opdi_device_find(device, &device.index) : NULL;
    if (backend && backend->desc.device_set && device.index != was.index) {
        (void)opdi_backend_rc(backend->desc.device_set(backend->desc.user, device.index), device.type, "device_set");
    }
    return was;
}
int opd_device_synchronize(opd_device device) {
    opdi_backend *backend;
    if (device.type == OPD_CPU) { return 0; }
    if ((backend = opdi_device_find(device, &device.index)) == NULL) { return -1; }
    return backend->desc.synchronize
        ? opdi_backend_rc(backend->desc.synchronize(backend->desc.user, device.index), device.type, "synchronize") : 0;
}
opd_memory opd_device_memory(opd_device device) {
    opdi_backend *backend = opdi_device_find(device, &device.index);
    opd_memory memory;
    memset(&memory, 0, sizeof memory);
    if (!backend) { return memory; }
    opdi_lock(&opdi_backend_lock);
    memory = backend->memory[device.index];
    opdi_unlock(&opdi_backend_lock);
    if (backend->desc.cached) { memory.cached = backend->desc.cached(backend->desc.user, device.index); }
    return memory;
}

int opd_device_memory_reset_peak(opd_device device) {
    opdi_backend *backend = opdi_device_find(device, &device.index);
    if (!backend) { return -1; }
    opdi_lock(&opdi_backend_lock);
    backend->memory[device.index].peak = backend->memory[device.index].live;
    opdi_unlock(&opdi_backend_lock);
    return 0;
}

static opd_stream opdi_stream_of(opd_device device, int64_t id) {
    opd_stream stream;
    stream.device = device;
    stream.id = id;
    return stream;
}
opd_stream opd_stream_current(opd_device device) {
    opdi_backend *backend = device.type == OPD_CPU ? NULL : opdi_device_find(device, &device.index);
    return opdi_stream_of(device, backend && backend->desc.stream_get ? backend->desc.stream_get(backend->desc.user,
        device.index) : 0);
}
opd_stream opd_stream_new(opd_device device) {
    opdi_backend *backend = opdi_device_find(device, &device.index);
    int64_t id = 0;
    if (backend && !backend->desc.stream_new) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s has no streams", opdi_device_name(device.type));
    } else if (backend && opdi_backend_rc(backend->desc.stream_new(backend->desc.user, device.index, &id), device.type,
                                          "stream_new")) {
        id = 0;
    }
    return opdi_stream_of(device, id);
}
void opd_stream_free(opd_stream stream) {
    const opdi_backend *backend = stream.id ? opdi_backend_of(stream.device.type) : NULL;
    if (backend && backend->desc.stream_free) {
        backend->desc.stream_free(backend->desc.user, stream.device.index, stream.id);
    }
}
opd_stream opd_stream_set(opd_stream stream) {
    const opd_stream was = opd_stream_current(stream.device);
    const opdi_backend *backend = opdi_backend_of(was.device.type);
    if (backend && backend->desc.stream_set && was.id != stream.id) {
        (void)opdi_backend_rc(backend->desc.stream_set(backend->desc.user, was.device.index, stream.id),
                              was.device.type, "stream_set");
    }
    return was;
}
int opd_stream_wait(opd_stream stream, opd_stream other) {
    opdi_backend *backend = stream.device.type == OPD_CPU ? NULL : opdi_device_find(stream.device,
        &stream.device.index);
    /* without stream_wait, the host waits until the other stream is done */
    if (!backend || other.device.type != stream.device.type || !backend->desc.stream_wait) {
        return !backend && stream.device.type != OPD_CPU ? -1 : opd_stream_synchronize(other);
    }
    return opdi_backend_rc(backend->desc.stream_wait(backend->desc.user, stream.device.index, stream.id,
                                                     other.device.index, other.id), stream.device.type, "stream_wait");
}
int opd_stream_synchronize(opd_stream stream) {
    opdi_backend *backend = stream.device.type == OPD_CPU ? NULL : opdi_device_find(stream.device,
        &stream.device.index);
    if (!backend) { return stream.device.type == OPD_CPU ? 0 : -1; }
    if (!backend->desc.stream_synchronize) { return opd_device_synchronize(stream.device); }
    return opdi_backend_rc(backend->desc.stream_synchronize(backend->desc.user, stream.device.index, stream.id),
                           stream.device.type, "stream_synchronize");
}

int opd_device_empty_cache(opd_device device) {
    opdi_backend *backend = opdi_device_find(device, &device.index);
    if (!backend) { return -1; }
    return backend->desc.empty_cache
        ? opdi_backend_rc(backend->desc.empty_cache(backend->desc.user, device.index), device.type, "empty_cache") : 0;
}
bool opd_device_debug_set(opd_backend backend, bool on) {
    const opdi_backend *other = opdi_backend_of((int)backend);
    return other && other->desc.debug_set ? other->desc.debug_set(other->desc.user, on) : false;
}

//== events and captures ===============================================================================================

/* Returns the device's backend if its descriptor has the function at byte offset `at`, whose name is `what`.  Otherwise
   returns NULL and sets an error. */
OPDI_INTERNAL opdi_backend *opdi_device_with(opd_device *device, size_t at, const char *what) {
    opdi_backend *backend = opdi_device_find(*device, &device->index);
    void (*fn)(void);
    if (!backend) { return NULL; }
    memcpy(&fn, (const char *)&backend->desc + at, sizeof fn);
    if (fn) { return backend; }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "%s has no %s", opdi_device_name(device->type), what);
    return NULL;
}

opd_device_event opd_device_event_new(opd_device device, bool timing) {
    opdi_backend *backend = OPDI_DEVICE_WITH(&device, event_new, "events");
    opd_device_event event;
    event.id = 0;
    if (backend && opdi_backend_rc(backend->desc.event_new(backend->desc.user, device.index, timing, &event.id),
                                   device.type, "event_new")) {
        event.id = 0;
    }
    event.device = device;
    return event;
}
void opd_device_event_free(opd_device_event event) {
    const opdi_backend *backend = event.id ? opdi_backend_of(event.device.type) : NULL;
    if (backend && backend->desc.event_free) {
        backend->desc.event_free(backend->desc.user, event.device.index, event.id);
    }
}
/* Checks that stream belongs to `device`.  `what` is the object of the device that is used with the stream, such as "an
   event", for the error.  Returns 0, or -1 and sets an error. */
static int opdi_stream_check(const char *what, opd_device device, opd_stream stream) {
    char one[48], two[48];
    if (stream.device.type == device.type && stream.device.index == device.index) { return 0; }
    return opd_fail(OPD_ERROR_ARGUMENT, "%s of %s cannot be used with a stream of %s", what,
                    opdi_device_text(device, one, sizeof one), opdi_device_text(stream.device, two, sizeof two));
}
int opd_device_event_record(opd_device_event event, opd_stream stream) {
    opdi_backend *backend = OPDI_DEVICE_WITH(&event.device, event_record, "events");
    if (backend && opdi_stream_check("an event", event.device, stream)) { return -1; }
    return backend
        ? opdi_backend_rc(backend->desc.event_record(backend->desc.user, event.device.index, event.id, stream.id),
                          event.device.type, "event_record") : -1;
}
int opd_stream_wait_event(opd_stream stream, opd_device_event event) {
    opdi_backend *backend = OPDI_DEVICE_WITH(&stream.device, event_wait, "events");
    return backend
        ? opdi_backend_rc(backend->desc.event_wait(backend->desc.user, stream.device.index, event.id, stream.id),
                          stream.device.type, "event_wait") : -1;
}
int opd_device_event_synchronize(opd_device_event event) {
    opdi_backend *backend = OPDI_DEVICE_WITH(&event.device, event_synchronize, "events");
    return backend ? opdi_backend_rc(backend->desc.event_synchronize(backend->desc.user, event.device.index, event.id),
                                     event.device.type, "event_synchronize") : -1;
}
int opd_device_event_done(opd_device_event event) {
    opdi_backend *backend = OPDI_DEVICE_WITH(&event.device, event_done, "events");
    const int done = backend ? backend->desc.event_done(backend->desc.user, event.device.index, event.id) : -1;
    return done < 0 && backend ? opdi_backend_rc(done, event.device.type, "event_done") : done;
}
double opd_device_event_elapsed(opd_device_event from, opd_device_event to) {
    opdi_backend *backend = OPDI_DEVICE_WITH(&from.device, event_elapsed, "events");
    double ms = -1;
    return backend &&
        opdi_backend_rc(backend->desc.event_elapsed(backend->desc.user, from.device.index, from.id, to.id, &ms),
                        from.device.type, "event_elapsed") == 0 ? ms : -1;
}

static int opdi_matmul_precision;
opd_matmul_precision opd_float32_matmul_precision_set(opd_matmul_precision precision) {
    const opd_matmul_precision was = opd_float32_matmul_precision();
    OPDI_STORE(&opdi_matmul_precision, precision == OPD_MATMUL_HIGH ? (int)precision : 0);
    return was;
}
opd_matmul_precision opd_float32_matmul_precision(void) {
    return (opd_matmul_precision)OPDI_LOAD(&opdi_matmul_precision);
}

static int opdi_deterministic;
opd_deterministic opd_deterministic_set(opd_deterministic mode) {
    const opd_deterministic was = opd_deterministic_mode();
    OPDI_STORE(&opdi_deterministic, mode == OPD_DETERMINISTIC_WARN || mode == OPD_DETERMINISTIC_ERROR ? (int)mode : 0);
    return was;
}
opd_deterministic opd_deterministic_mode(void) { return (opd_deterministic)OPDI_LOAD(&opdi_deterministic); }
int opd_deterministic_alert(const opd_call *call, const char *how) {
    static const char text[] = "%s%s has no deterministic implementation%s";
    static int32_t warned[64];                    /* bits: which operators have warned, by their numbers */
    const opd_deterministic mode = opd_deterministic_mode();
    const opd_op *const op = opd_call_operator(call);
    const uint32_t bit = (uint32_t)(((uintptr_t)op >> 4) % (sizeof warned * 8));
    if (mode == OPD_DETERMINISTIC_OFF) { return 0; }
    if (mode == OPD_DETERMINISTIC_ERROR) {
        return opd_fail(OPD_ERROR_NO_KERNEL, text, opd_op_name(op), how ? how : "", ", and "
                        "opd_deterministic_set(OPD_DETERMINISTIC_ERROR) forbids others. Use another operator, or "
                        "OPD_DETERMINISTIC_WARN if its results may differ in each run");
    }
    opdi_lock(&opdi_backend_lock);
    const bool first = !(warned[bit / 32] >> bit % 32 & 1);
    warned[bit / 32] |= (int32_t)(1u << bit % 32);
    opdi_unlock(&opdi_backend_lock);
    if (first) { opd_warn(text, opd_op_name(op), how ? how : "", ": its results may differ in each run"); }
    return 0;
}

struct opd_capture { opd_device device; int32_t refs; int64_t id; };
int opd_capture_begin(opd_stream stream) {
    opdi_backend *backend = opd_ok() ? OPDI_DEVICE_WITH(&stream.device, capture_begin, "captures") : NULL;
    return backend ? opdi_backend_rc(backend->desc.capture_begin(backend->desc.user, stream.device.index, stream.id),
                                     stream.device.type, "capture_begin") : -1;
}
opd_capture *opd_capture_end(opd_stream stream) {
    opdi_backend *backend = OPDI_DEVICE_WITH(&stream.device, capture_end, "captures");
    opd_capture *capture = backend ? (opd_capture *)opdi_alloc(sizeof *capture) : NULL;
    int64_t id = 0;
    if (!backend) { return NULL; }
    /* the capture is ended even if an earlier call has failed */
    if (opdi_backend_rc(backend->desc.capture_end(backend->desc.user, stream.device.index, stream.id, &id),
                        stream.device.type, "capture_end") || !capture || !opd_ok()) {
        if (id && backend->desc.capture_free) {
            backend->desc.capture_free(backend->desc.user, stream.device.index, id);
        }
        if (capture) { opdi_free(capture, sizeof *capture); }
        return NULL;
    }
    capture->device = stream.device;
    capture->refs = 1;
    capture->id = id;
    return capture;
}
int opd_capture_replay(opd_capture *capture, opd_stream stream) {
    opdi_backend *backend = capture && opd_ok() ? OPDI_DEVICE_WITH(&capture->device, capture_replay, "captures") : NULL;
    if (backend && opdi_stream_check("a capture", capture->device, stream)) { return -1; }
    if (!backend) { return -1; }
    opdi_ref_up(&capture->refs);                  /* the backend may free the capture */
    const int rc = opdi_backend_rc(backend->desc.capture_replay(backend->desc.user, capture->device.index, capture->id,
                                                                stream.id), capture->device.type, "capture_replay");
    opd_capture_free(capture);
    return rc;
}
void opd_capture_free(opd_capture *capture) {
    if (!capture || opdi_ref_down(&capture->refs)) { return; }
    const opdi_backend *backend = opdi_backend_of(capture->device.type);
    if (backend && backend->desc.capture_free) {
        backend->desc.capture_free(backend->desc.user, capture->device.index, capture->id);
    }
    opdi_free(capture, sizeof *capture);
}

//== places of memory ==================================================================================================
//
//  A list of the blocks that were allocated while opd_device_memory_places_set was on, with their places.

typedef struct opdi_placed {
    struct opdi_placed *next;
    const opdi_storage *storage;
    const char *op, *scope;                       /* op: lives forever; scope: as long as the program or plug-in */
    int64_t bytes;
} opdi_placed;
enum { OPDI_PLACED_LISTS = 1024 };
static opdi_placed *opdi_placed_lists[OPDI_PLACED_LISTS];          /* by the address; protected by opdi_backend_lock */
static uint32_t opdi_placed_backends;             /* bits: the backends whose blocks are noted */
static int64_t opdi_nplaced;

static opdi_placed **opdi_placed_list(const opdi_storage *storage) {
    return &opdi_placed_lists[((uintptr_t)storage >> 6) % OPDI_PLACED_LISTS];
}
static void opdi_placed_note(const opdi_storage *storage) {
    const opdi_thread *const thread = opdi_self();
    const int32_t depth = thread->scope_depth;
    const int mark = opd_error_mark();
    opdi_placed *const placed = (opdi_placed *)opdi_alloc(sizeof *placed), **list = opdi_placed_list(storage);
    (void)opd_error_rewind(mark);
    if (!placed) { return; }
    placed->storage = storage;
    placed->op = thread->current ? thread->current->op->name : "";
    placed->scope = depth > 0 && depth <= OPDI_PLACES && thread->places[depth - 1] ? thread->places[depth - 1] : "";
    placed->bytes = storage->bytes;
    opdi_lock(&opdi_backend_lock);
    placed->next = *list;
    *list = placed;
    OPDI_STORE(&opdi_nplaced, opdi_nplaced + 1);
    opdi_unlock(&opdi_backend_lock);
}
static void opdi_placed_forget(const opdi_storage *storage) {
    opdi_placed **at = opdi_placed_list(storage), *found;
    opdi_lock(&opdi_backend_lock);
    while (*at && (*at)->storage != storage) { at = &(*at)->next; }
    if ((found = *at) != NULL) {
        *at = found->next;
        OPDI_STORE(&opdi_nplaced, opdi_nplaced - 1);
    }
    opdi_unlock(&opdi_backend_lock);
    opdi_free(found, sizeof *found);
}
bool opd_device_memory_places_set(opd_backend backend, bool on) {
    if ((int)backend <= OPD_CPU || (int)backend >= OPD_META) { return false; }
    opdi_lock(&opdi_backend_lock);
    const uint32_t bit = (uint32_t)1 << backend, was = opdi_placed_backends;
    OPDI_STORE(&opdi_placed_backends, on ? was | bit : was & ~bit);
    opdi_unlock(&opdi_backend_lock);
    return (was & bit) != 0;
}
static int opdi_compare_places(const void *first, const void *second) {
    const opd_memory_place *place = (const opd_memory_place *)first, *other = (const opd_memory_place *)second;
    const int order = strcmp(place->op, other->op);
    return order ? order : strcmp(place->scope, other->scope);
}
static int opdi_compare_live(const void *first, const void *second) {
    const opd_memory_place *place = (const opd_memory_place *)first, *other = (const opd_memory_place *)second;
    return place->live != other->live ? (place->live < other->live ? 1 : -1) : opdi_compare_places(first, second);
}
/* Writes a place for each noted block of a device to places[room].  Returns how many there are.  The caller holds
   opdi_backend_lock. */
static int64_t opdi_placed_collect(opd_device device, opd_memory_place *places, int64_t room) {
    int64_t count = 0;
    for (int i = 0; i < OPDI_PLACED_LISTS; i++) {
        for (const opdi_placed *placed = opdi_placed_lists[i]; placed; placed = placed->next) {
            const opd_memory_place place = {placed->op, placed->scope, placed->bytes, 1};
            if (placed->storage->device != device.type || placed->storage->index != device.index) { continue; }
            if (count < room) { places[count] = place; }
            count++;
        }
    }
    return count;
}
int64_t opd_device_memory_places(opd_device device, opd_memory_place *places, int64_t cap) {
    int64_t count = 0, n = 0;
    if (!opdi_device_find(device, &device.index)) { return -1; }
    const int64_t room = OPDI_LOAD(&opdi_nplaced) + 64;            /* other threads may allocate more */
    opd_memory_place *all = (opd_memory_place *)opdi_alloc((size_t)room * sizeof *all);
    if (!all) { return -1; }
    opdi_lock(&opdi_backend_lock);
    count = OPDI_MIN(opdi_placed_collect(device, all, room), room);
    opdi_unlock(&opdi_backend_lock);
    qsort(all, (size_t)count, sizeof *all, opdi_compare_places);
    for (int64_t i = 0; i < count; i++) {
        if (i > 0 && opdi_compare_places(&all[n - 1], &all[i]) == 0) {
            all[n - 1].live += all[i].live;
            all[n - 1].blocks++;
        }
        else { all[n++] = all[i]; }
    }
    qsort(all, (size_t)n, sizeof *all, opdi_compare_live);
    if (cap > 0) { memcpy(places, all, (size_t)OPDI_MIN(n, cap) * sizeof *all); }
    opdi_free(all, (size_t)room * sizeof *all);
    return n;
}

//== memory ============================================================================================================

/* Counts a block of device memory that was allocated (bytes > 0) or freed (bytes < 0). */
static void opdi_device_count_bytes(opdi_backend *backend, int index, int64_t bytes) {
    opd_memory *memory = &backend->memory[index];
    opdi_lock(&opdi_backend_lock);
    backend->blocks += bytes < 0 ? -1 : 1;
    memory->live += bytes;
    memory->allocations += bytes > 0;
    memory->peak = OPDI_MAX(memory->peak, memory->live);
    opdi_unlock(&opdi_backend_lock);
}
/* Allocates device memory and enters it in `storage`.  Returns 0, or -1 and sets an error. */
static int opdi_device_alloc(opdi_storage *storage, opdi_backend *backend, int type, int index, size_t bytes) {
    storage->device = (uint8_t)type;
    storage->index = (int8_t)index;
    storage->bytes = (int64_t)bytes;
    if (bytes == 0) { return 0; }
    if (!(OPDI_LOAD(&opdi_fail_on) && opdi_fail_now())) {
        storage->data = (char *)backend->desc.alloc(backend->desc.user, index, bytes);
    }
    if (!storage->data) {
        return opd_fail(OPD_ERROR_MEMORY, "%s:%d out of memory. Tried to allocate %llu bytes", opdi_device_name(type),
                        index, (unsigned long long)bytes);
    }
    opdi_device_count_bytes(backend, index, (int64_t)bytes);
    if (OPDI_LOAD(&opdi_placed_backends) >> type & 1) { opdi_placed_note(storage); }
    return 0;
}
static void opdi_device_free(opdi_storage *storage) {
    opdi_backend *backend = opdi_backend_of(storage->device);
    opd_plugin *plugin = backend ? backend->plugin : NULL;
    if (!backend || !storage->data) { return; }
    if (plugin) { opdi_plugin_pin(plugin); }      /* freeing the last block may unregister the backend */
    if (OPDI_LOAD(&opdi_nplaced)) { opdi_placed_forget(storage); }
    backend->desc.free(backend->desc.user, storage->index, storage->data, (size_t)storage->bytes);
    opdi_device_count_bytes(backend, storage->index, -storage->bytes);
    if (!plugin) { return; }
    if (!opdi_plugin_loaded(plugin)) { opdi_backends_unload(plugin); }
    opdi_plugin_unpin(plugin);
}

OPDI_INTERNAL opdi_storage *opdi_device_storage(int64_t bytes, int place) {
    int index;
    opdi_backend *backend = opdi_device_find(opdi_place_device(place), &index);
    opdi_storage *storage = backend ? (opdi_storage *)opdi_alloc(sizeof *storage) : NULL;
    if (!storage) { return NULL; }
    memset(storage, 0, sizeof *storage);
    storage->refs = 1;
    storage->block = storage;
    storage->block_bytes = (int64_t)sizeof *storage;
    storage->born = opdi_self()->innermost.serial;
    if (opdi_device_alloc(storage, backend, place & 255, index, (size_t)bytes)) {
        opdi_free(storage, sizeof *storage);
        return NULL;
    }
    return storage;
}

/* Makes a tensor on a device, as opdi_tensor_make does on the host.  The tensor's block, on the host, has only headers
   and sizes.  Returns NULL and sets an error if that fails. */
OPDI_INTERNAL opd_tensor *opdi_device_tensor(const int64_t *sizes, const int64_t *strides, int ndim,
                                             opd_scalar_type dtype, opd_device device) {
    const size_t element = opdi_element_size((int)dtype);
    int index;
    opdi_backend *backend = opdi_device_find(device, &index);
    int64_t numel = backend ? opdi_count(sizes, ndim, element) : -1, extent = numel;
    opd_tensor *tensor;
    opdi_storage *storage;
    if (numel < 0) { return NULL; }
    if (opdi_is_block((int)dtype) && opdi_block_check(dtype, sizes, strides, ndim, 0)) { return NULL; }
    if (strides && numel) { extent = opdi_extent(sizes, strides, ndim); }
    if (extent < 0 || (uint64_t)extent > OPDI_MOST_BYTES / element) {
        (void)opd_fail(OPD_ERROR_SHAPE, "sizes and strides do not fit into memory");
        return NULL;
    }
    size_t block = sizeof *tensor + 2 * (size_t)ndim * sizeof(int64_t) + sizeof *storage;
    tensor = (opd_tensor *)opdi_alloc(block);
    if (!tensor) { return NULL; }
    opdi_tensor_init(tensor, dtype, device.type, ndim);
    opdi_set_dims(tensor, sizes, strides, ndim, numel);
    storage = (opdi_storage *)(void *)(tensor->dims + 2 * ndim);
    memset(storage, 0, sizeof *storage);
    storage->refs = 1;
    storage->block = tensor;
    storage->block_bytes = (int64_t)block;
    storage->born = opdi_self()->innermost.serial;
    if (opdi_device_alloc(storage, backend, device.type, index, (size_t)opdi_elements_bytes((int)dtype, extent))) {
        opdi_free(tensor, block);
        return NULL;
    }
    tensor->storage = storage;
    tensor->data = storage->data;
    return tensor;
}

/* Copies `bytes` bytes from `from` in the memory of storage `src` to `to` in that of `dst`.  If `dst` or `src` is NULL,
   that side is the host.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_device_move(const opdi_storage *dst, char *to, const opdi_storage *src, const char *from,
                                   size_t bytes) {
    const int into = dst ? dst->device : 0, out_of = src ? src->device : 0;
    opdi_backend *backend = opdi_backend_of(into ? into : out_of);
    if (bytes == 0 || (to == from && into == out_of)) { return 0; }
    if (into == 0 && out_of == 0) {
        memcpy(to, from, bytes);
        return 0;
    }
    if (!backend) { return opdi_backend_missing(into ? into : out_of); }
    if (into && out_of && into != out_of) {       /* between devices of two kinds: by way of the host */
        char *buffer = (char *)opdi_alloc(bytes);
        int rc = buffer ? opdi_device_move(NULL, buffer, src, from, bytes) : -1;
        if (rc == 0) { rc = opdi_device_move(dst, to, NULL, buffer, bytes); }
        opdi_free(buffer, bytes);
        return rc;
    }
    return opdi_backend_rc((opdi_self()->no_wait && backend->desc.copy_async ? backend->desc.copy_async
                            : backend->desc.copy) (backend->desc.user, to, into ? dst->index : -1, from,
                                                   out_of ? src->index : -1, bytes), into ? into : out_of, "copy");
}
