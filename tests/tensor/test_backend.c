/* Backends from outside: a device whose memory can be accessed only inside its own functions.  If a kernel of the
   CPU accessed it, the program would end.  Every operator runs on this device, with the sample arguments of its
   descriptor. */
#include "../../opdispatch.h"
#include "../cases.h"
#include <sys/mman.h>

#define NPU OPD_PRIVATEUSE1
#define UNITS 3
#define BLOCKS 8192

//-- the device --------------------------------------------------------------------------------------------------------

/* Every block has its own pages, which end with the block (up to an alignment of 16), so that an access past the end of
   the block faults. */
typedef struct dev_block { char *pages, *data; size_t bytes, mapped; int unit; } dev_block;
static struct {
    dev_block blocks[BLOCKS];
    int nblocks, open, current;
    int64_t stream[UNITS];
    int allocs, frees, copies, gets, sets, syncs, streams, stream_sets, waits, stream_syncs, destroyed, fallbacks;
    int fail_at;                                  /* the n-th allocation from now fails */
    int fail_copy;                                /* every copy does */
} dev;

/* Opens or closes all blocks.  Blocks that lie side by side take one call, because a walk does this very often. */
static void dev_access(int rights) {
    for (int i = 0, j; i < dev.nblocks; i = j) {
        size_t bytes = dev.blocks[i].mapped;
        for (j = i + 1; j < dev.nblocks && dev.blocks[j].pages == dev.blocks[i].pages + bytes; j++) { bytes += dev.blocks[j].mapped; }
        (void)mprotect(dev.blocks[i].pages, bytes, rights);
    }
}
static void dev_begin(void) { if (dev.open++ == 0) { dev_access(PROT_READ | PROT_WRITE); } }
static void dev_end(void) { if (--dev.open == 0) { dev_access(PROT_NONE); } }

static void *dev_alloc(void *user, int unit, size_t bytes) {
    const size_t mapped = (bytes + 4095) & ~(size_t)4095;
    CHECK(user == &dev && unit >= 0 && unit < UNITS && bytes > 0 && dev.nblocks < BLOCKS);
    dev.allocs++;
    if (dev.fail_at > 0 && --dev.fail_at == 0) { return NULL; }
    char *const pages = (char *)mmap(NULL, mapped, dev.open ? PROT_READ | PROT_WRITE : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == (char *)MAP_FAILED) { return NULL; }
    dev_block *b = &dev.blocks[dev.nblocks++];    /* in the order of addresses */
    for (; b > dev.blocks && b[-1].pages > pages; b--) { b[0] = b[-1]; }
    b->bytes = bytes;
    b->mapped = mapped;
    b->unit = unit;
    b->pages = pages;
    b->data = pages + ((mapped - bytes) & ~(size_t)15);
    return b->data;
}
static void dev_free(void *user, int unit, void *data, size_t bytes) {
    int i;
    (void)user;
    dev.frees++;
    for (i = 0; i < dev.nblocks && dev.blocks[i].data != (char *)data; i++) { }
    CHECK(i < dev.nblocks && dev.blocks[i].bytes == bytes && dev.blocks[i].unit == unit);
    if (i == dev.nblocks) { return; }
    (void)munmap(dev.blocks[i].pages, dev.blocks[i].mapped);
    dev.nblocks--;
    memmove(&dev.blocks[i], &dev.blocks[i + 1], (size_t)(dev.nblocks - i) * sizeof *dev.blocks);
}
/* Returns the unit to which this memory belongs, or -1 for the host's memory. */
static int dev_owner(const void *p) {
    int i;
    for (i = 0; i < dev.nblocks; i++) {
        if ((const char *)p >= dev.blocks[i].data && (const char *)p < dev.blocks[i].data + dev.blocks[i].bytes) {
            return dev.blocks[i].unit;
        }
    }
    return -1;
}
static int dev_copy(void *user, void *to, int to_unit, const void *from, int from_unit, size_t bytes) {
    (void)user;
    if (bytes > 0) { CHECK(dev_owner(to) == to_unit && dev_owner(from) == from_unit); }
    CHECK(to_unit >= 0 || from_unit >= 0);
    dev.copies++;
    if (dev.fail_copy) { return -1; }
    dev_begin();
    memmove(to, from, bytes);
    dev_end();
    return 0;
}
static int dev_count(void *user) { (void)user; return UNITS; }
static int dev_get(void *user) { (void)user; dev.gets++; return dev.current; }
static int dev_set(void *user, int unit) { (void)user; dev.sets++; dev.current = unit; return 0; }
static int dev_sync(void *user, int unit) { (void)user; (void)unit; dev.syncs++; return 0; }
static int dev_stream_new(void *user, int unit, int64_t *id) { (void)user; *id = 100 * unit + ++dev.streams; return 0; }
static void dev_stream_free(void *user, int unit, int64_t id) { (void)user; CHECK(id / 100 == unit); dev.streams--; }
static int64_t dev_stream_get(void *user, int unit) { (void)user; return dev.stream[unit]; }
static int dev_stream_set(void *user, int unit, int64_t id) {
    (void)user;
    dev.stream_sets++;
    dev.stream[unit] = id;
    return 0;
}
static int dev_stream_wait(void *user, int unit, int64_t id, int other, int64_t other_id) {
    (void)user;
    CHECK(id / 100 == unit && other_id / 100 == other);
    dev.waits++;
    return 0;
}
static int dev_stream_sync(void *user, int unit, int64_t id) {
    (void)user;
    CHECK(id / 100 == unit);
    dev.stream_syncs++;
    return 0;
}
static void dev_destroy(void *user) { CHECK(user == &dev); dev.destroyed++; }

static opd_backend_desc dev_desc(const char *name) {
    opd_backend_desc d;
    memset(&d, 0, sizeof d);
    d.name = name; d.user = &dev; d.destroy = dev_destroy;
    d.alloc = dev_alloc; d.free = dev_free; d.copy = dev_copy;
    d.device_count = dev_count; d.device_get = dev_get; d.device_set = dev_set; d.synchronize = dev_sync;
    d.stream_new = dev_stream_new; d.stream_free = dev_stream_free; d.stream_get = dev_stream_get;
    d.stream_set = dev_stream_set; d.stream_wait = dev_stream_wait; d.stream_synchronize = dev_stream_sync;
    return d;
}

static int counted_fallback(opd_call *call) { dev.fallbacks++; return opd_cpu_fallback(call); }
static opd_library *dev_fallback;

/* Registers the device, once; with fallback, the CPU runs operators without a kernel. */
static void dev_on(bool fallback) {
    if (opd_device_count(NPU) == 0) {
        opd_backend_desc d = dev_desc("npu");
        CHECK_INT(opd_backend_register(NPU, &d), 0);
    }
    if (fallback && !dev_fallback) {
        dev_fallback = opd_library_open(OPD_IMPL, "_", "PrivateUse1", __FILE__, __LINE__);
        CHECK_INT(opd_fallback(dev_fallback, counted_fallback), 0);
    }
    if (!fallback && dev_fallback) { opd_library_close(dev_fallback); dev_fallback = NULL; }
    dev.current = 0;
    dev.fail_at = dev.fail_copy = 0;
}
static opd_device unit(int index) { return opd_device_make(NPU, index); }
static opd_value at(int index) { return opd_value_device(unit(index)); }
static opd_tensor *to(opd_tensor *t, opd_device d) {
    return opd_to_copy_full(t, OPD_NONE, OPD_NONE, opd_value_device(d), OPD_NONE, false, OPD_NONE);
}
static opd_tensor *here(opd_tensor *t) { return to(t, opd_device_make(OPD_CPU, -1)); }
static opd_tensor *up(opd_tensor *t) { return to(t, unit(-1)); }
static opd_tensor *vec(int64_t n) {
    float v[64];
    int i;
    for (i = 0; i < 64; i++) { v[i] = (float)i - 2; }
    return opd_tensor_from(v, opd_ints_of(&n, 1), OPD_FLOAT32);
}
static const char *printed(const opd_tensor *t) {
    static char text[1024];
    (void)opd_tensor_print(t, text, sizeof text);
    return text;
}

/* Checks that the elements of a CPU tensor, in C order, equal those at want, which have the same dtype. */
static void check_tensor(const opd_tensor *t, const void *want, double tol, int line) {
    int64_t i;
    if (!t) { printf("%s:%d: no tensor: %s\n", __FILE__, line, opd_error_message()); CHECK(t != NULL); return; }
    for (i = 0; i < opd_numel(t); i++) {
        double w = opd_dtype(t) == OPD_FLOAT64 ? ((const double *)want)[i] : (double)((const float *)want)[i];
        if (!(fabs(case_get(t, i) - w) <= tol)) {
            printf("%s:%d: element %d is %g, not %g\n", __FILE__, line, (int)i, case_get(t, i), w);
            CHECK(!"equal");
        }
    }
    CHECK(opd_numel(t) > 0);
}
#define CHECK_TENSOR(t, want, tol) check_tensor(t, want, tol, __LINE__)

//-- registering -------------------------------------------------------------------------------------------------------

static void not_registered(opd_backend backend, const opd_backend_desc *d, const char *why) {
    CHECK_INT(opd_backend_register(backend, d), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, why);
}
TEST(what_cannot_be_registered) {
    opd_backend_desc d = dev_desc("npu");
    opd_device device;
    CHECK(opd_device_count(OPD_PRIVATEUSE3) == 0 && opd_device_count(OPD_CPU) == 1);
    not_registered(OPD_CPU, &d, "a program cannot register backend");
    not_registered(OPD_META, &d, "a program cannot register backend");
    not_registered(OPD_PRIVATEUSE3, NULL, "alloc, free or copy is missing");
    d.copy = NULL;
    not_registered(OPD_PRIVATEUSE3, &d, "alloc, free or copy is missing");
    d = dev_desc("tpu");
    d.device_set = NULL;
    not_registered(OPD_PRIVATEUSE3, &d, "belong together");
    d = dev_desc("cuda");
    not_registered(OPD_PRIVATEUSE3, &d, "another device has that name");
    d = dev_desc("Tracer");
    not_registered(OPD_PRIVATEUSE3, &d, "a dispatch key has that name");
    d = dev_desc("npu2");
    not_registered(OPD_PRIVATEUSE3, &d, "letters");
    d = dev_desc("mine");
    not_registered(OPD_XLA, &d, "only PrivateUse1 to 3");
    /* nothing was registered */
    CHECK_INT(opd_device_parse("tpu", &device), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Expected one of cpu, cuda");
    CHECK(opd_tensor_new_on(OPD_INTS(1), OPD_FLOAT32, opd_device_make(OPD_PRIVATEUSE3, -1)) == NULL);
    CHECK_ERROR(OPD_ERROR_NO_KERNEL, "no allocator for device privateusethree");
    CHECK_INT(opd_backend_unregister(OPD_PRIVATEUSE3), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "is not registered");
    CHECK_OK();
}
TEST(a_name_is_for_ever) {
    opd_backend_desc d = dev_desc("other");
    dev_on(false);
    CHECK_INT(opd_backend_register(NPU, &d), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "it is registered already");
    CHECK_INT(opd_backend_unregister(NPU), 0);
    CHECK_INT(opd_backend_register(NPU, &d), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "another name already");
    d.name = "npu";
    CHECK_INT(opd_backend_register(OPD_PRIVATEUSE2, &d), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "another device has that name");
    CHECK_INT(opd_backend_register(NPU, &d), 0);
    CHECK_OK();
}
TEST(the_name_is_everywhere) {
    char buf[64], *dump = (char *)malloc(1 << 16);
    opd_device device;
    opd_tensor *t;
    dev_on(false);
    CHECK(opd_device_parse("npu:1", &device) == 0 && device.type == NPU && device.index == 1);
    CHECK_INT(opd_device_print(device, buf, sizeof buf), strlen("npu:1"));
    CHECK_STR(buf, "npu:1");
    CHECK(opd_device_parse("privateuseone:2", &device) == 0 && device.type == NPU && device.index == 2);
    CHECK(opd_device_parse("npu", &device) == 0 && device.index == -1);
    CHECK_STR(opd_key_name(OPD_KEY_PER_BACKEND(0, NPU)), "npu");
    CHECK_STR(opd_key_name(OPD_KEY_PER_BACKEND(5, NPU)), "AutogradNpu");
    CHECK_STR(opd_key_name(OPD_KEY_PER_BACKEND(6, NPU)), "AutocastNpu");
    CHECK_STR(opd_key_name(OPD_KEY_PER_BACKEND(5, OPD_PRIVATEUSE2)), "AutogradPrivateUse2");
    CHECK_INT(opd_key_parse("AutogradNpu"), OPD_KEY_PER_BACKEND(5, NPU));
    CHECK_INT(opd_key_parse("AutogradPrivateUse1"), OPD_KEY_PER_BACKEND(5, NPU));
    CHECK_INT(opd_key_parse("PrivateUse1"), OPD_KEY_PER_BACKEND(0, NPU));
    CHECK_INT(opd_key_parse("npu"), OPD_KEY_PER_BACKEND(0, NPU));
    (void)opd_dump_table(opd_find("aten::mm"), dump, 1 << 16);
    CHECK(strstr(dump, "AutogradNpu") && !strstr(dump, "PrivateUse1"));
    t = up(vec(3));
    (void)opd_keyset_print(opd_tensor_keys(t), dump, 1 << 16);
    CHECK_STR(dump, "DispatchKeySet(npu, ADInplaceOrView, AutogradNpu, AutocastNpu)");
    CHECK(opd_exp(t) == NULL);
    CHECK_ERROR(OPD_ERROR_NO_KERNEL, "Could not run 'aten::exp' with arguments from the 'npu' backend");
    free(dump);
}
/* With opd_cpu_fallback, the CPU runs only the operators that have no kernel on the device, also with gradients. */
TEST(the_cpu_stands_in_when_asked) {
    opd_tensor *t;
    int64_t count;
    dev_on(false);
    t = opd_tensor_set_requires_grad(up(vec(3)), true);
    count = opd_cpu_fallback_count();
    CHECK(!opd_cpu_fallback_set(NPU, true));
    CHECK(opd_cpu_fallback_set(NPU, true));
    CHECK(!opd_cpu_fallback_set(OPD_CPU, true) && !opd_cpu_fallback_set(OPD_META, true) && !opd_cpu_fallback_set((opd_backend)77, true));
    CHECK_INT(opd_backward(opd_sum(opd_exp(t))), 0);
    CHECK_STR(printed(opd_tensor_grad(t)), "tensor([0.1353, 0.3679, 1.0000], device='npu:0')");
    CHECK(opd_cpu_fallback_count() - count >= 2);
    CHECK_OK();
    CHECK(opd_cpu_fallback_set(NPU, false));
    count = opd_cpu_fallback_count();
    CHECK(opd_exp(t) == NULL);
    CHECK_ERROR(OPD_ERROR_NO_KERNEL, "Could not run 'aten::exp' with arguments from the 'npu' backend");
    CHECK_INT(opd_cpu_fallback_count(), count);
}
TEST(unregistering_waits_for_the_memory) {
    opd_tensor *t, *u;
    int destroyed;
    dev_on(true);
    destroyed = dev.destroyed;
    t = opd_keep(opd_tensor_new_on(OPD_INTS(4), OPD_FLOAT32, unit(0)));
    CHECK_INT(opd_backend_unregister(NPU), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "1 block(s) of memory of npu are still in use");
    CHECK(opd_device_count(NPU) == UNITS && dev.destroyed == destroyed);
    OPD_SCOPE { u = opd_add(t, t); CHECK(u != NULL); }
    CHECK_INT(opd_backend_unregister(NPU), -1);           /* the test's scope still has it */
    opd_error_clear();
    opd_release(t);
    OPD_SCOPE {
        CHECK(opd_tensor_new_on(OPD_INTS(0), OPD_FLOAT32, unit(0)) != NULL);
    }
}
TEST(unregistering) {
    opd_backend_desc d = dev_desc(NULL);
    int destroyed;
    dev_on(true);
    destroyed = dev.destroyed;
    OPD_SCOPE { CHECK(opd_add(up(vec(3)), up(vec(3))) != NULL); }
    CHECK_INT(opd_backend_unregister(NPU), 0);
    CHECK(dev.destroyed == destroyed + 1 && opd_device_count(NPU) == 0 && dev.nblocks == 0);
    CHECK(opd_tensor_new_on(OPD_INTS(1), OPD_FLOAT32, unit(0)) == NULL);
    CHECK_ERROR(OPD_ERROR_NO_KERNEL, "no allocator for device npu");
    CHECK(opd_zeros_full(OPD_INTS(1), OPD_NONE, OPD_NONE, at(0), OPD_NONE) == NULL);
    CHECK_ERROR(OPD_ERROR_NO_KERNEL, "no allocator for device npu");
    CHECK_INT(opd_backend_register(NPU, &d), 0);          /* without a name: it keeps the one it has */
    OPD_SCOPE { CHECK_STR(printed(opd_zeros_full(OPD_INTS(1), OPD_NONE, OPD_NONE, opd_value_str("npu:2"), OPD_NONE)),
                          "tensor([0.], device='npu:2')"); }
    CHECK_INT(opd_check_invariants(), 0);
}

//-- memory ------------------------------------------------------------------------------------------------------------

TEST(memory_is_counted) {
    opd_memory before, m, other;
    dev_on(false);
    before = opd_device_memory(unit(1));
    other = opd_device_memory(unit(0));
    OPD_SCOPE {
        CHECK(opd_tensor_new_on(OPD_INTS(100), OPD_FLOAT32, unit(1)) != NULL);
        CHECK(opd_tensor_new_on(OPD_INTS(10, 10), OPD_FLOAT64, unit(1)) != NULL);
        m = opd_device_memory(unit(1));
        CHECK_INT(m.live - before.live, 1200);
        CHECK_INT(m.allocations - before.allocations, 2);
        CHECK(m.peak >= before.live + 1200);
        CHECK_INT(opd_device_memory(unit(0)).live, other.live);
    }
    CHECK_INT(opd_device_memory(unit(1)).live, before.live);
    CHECK(opd_device_memory(unit(1)).peak >= before.live + 1200);
    CHECK_INT(opd_device_memory_reset_peak(unit(1)), 0);
    CHECK_INT(opd_device_memory(unit(1)).peak, before.live);
    CHECK(opd_device_memory(unit(UNITS)).live == 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "there is no npu:3, only 3 device(s)");
    CHECK_INT(opd_device_memory_reset_peak(unit(UNITS)), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "there is no npu:3, only 3 device(s)");
}
/* Which operators hold a device's memory, and in which scopes. */
TEST(memory_by_place) {
    opd_memory_place p[4];
    char here[64];
    dev_on(false);
    CHECK_INT(opd_device_memory_places(unit(1), NULL, 0), 0);
    CHECK(!opd_device_memory_places_set(NPU, true));
    OPD_SCOPE {
        opd_tensor *x = opd_tensor_new_on(OPD_INTS(100), OPD_FLOAT32, unit(1)), *kept = NULL;
        (void)snprintf(here, sizeof here, "test_backend.c:%d", __LINE__ - 2);
        OPD_SCOPE {
            kept = opd_keep(opd_clone(x));
            CHECK(opd_clone(x) != NULL);
            CHECK(opd_tensor_new_on(OPD_INTS(10), OPD_FLOAT32, unit(2)) != NULL);
            CHECK_INT(opd_device_memory_places(unit(1), p, 4), 2);
            CHECK_STR(p[0].op, "aten::clone");
            CHECK(p[0].live == 800 && p[0].blocks == 2);
        }
        CHECK_INT(opd_device_memory_places(unit(1), p, 1), 2);
        CHECK(p[0].live == 400 && p[0].blocks == 1);
        opd_release(kept);
        CHECK_INT(opd_device_memory_places(unit(1), p, 4), 1);
        CHECK_STR(p[0].op, "");
        CHECK(strlen(p[0].scope) >= strlen(here) && strcmp(p[0].scope + strlen(p[0].scope) - strlen(here), here) == 0);
        CHECK(opd_device_memory_places_set(NPU, false));
        CHECK(opd_clone(x) != NULL);
        CHECK_INT(opd_device_memory_places(unit(1), p, 4), 1);
    }
    CHECK_INT(opd_device_memory_places(unit(1), p, 4), 0);
    CHECK(!opd_device_memory_places_set(OPD_CPU, true));
    CHECK_INT(opd_device_memory_places(unit(UNITS), p, 4), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "there is no npu:3, only 3 device(s)");
    CHECK_OK();
}
TEST(memory_comes_and_goes_once) {
    int allocs, frees;
    dev_on(false);
    allocs = dev.allocs; frees = dev.frees;
    OPD_SCOPE {
        opd_tensor *t = opd_tensor_new_on(OPD_INTS(4, 4), OPD_FLOAT32, unit(0)), *v = opd_t(t);
        opd_tensor *w = opd_select(v, 0, 1);
        CHECK(w && opd_tensor_same_storage(t, w) && opd_tensor_device(w).index == 0);
        CHECK(opd_tensor_new_on(OPD_INTS(0), OPD_FLOAT32, unit(0)) != NULL);  /* needs none */
    }
    CHECK(dev.allocs == allocs + 1 && dev.frees == frees + 1);
}
TEST(out_of_memory_sticks) {
    opd_tensor *t;
    dev_on(true);
    t = up(vec(8));
    dev.fail_at = 1;
    CHECK(opd_clone(t) == NULL);
    CHECK_INT(opd_error_code(), OPD_ERROR_MEMORY);
    CHECK(strstr(opd_error_message(), "npu:0 out of memory. Tried to allocate 32 bytes") != NULL);
    CHECK(opd_add(t, t) == NULL && opd_tensor_new_on(OPD_INTS(1), OPD_FLOAT32, unit(0)) == NULL);
    CHECK(strstr(opd_error_message(), "Tried to allocate 32 bytes") != NULL);
    opd_error_clear();
    CHECK_STR(printed(opd_slice(t, 0, opd_value_int(0), opd_value_int(2), 1)), "tensor([-2., -1.], device='npu:0')");
    CHECK_OK();
}
static opd_tensor *some_work(void) {
    opd_tensor *x = opd_tensor_set_requires_grad(opd_randn_full(OPD_INTS(3, 4), OPD_NONE, OPD_NONE, at(1), OPD_NONE),
                                                 true);
    opd_tensor *y = opd_sum(opd_tanh(opd_add(opd_mm(x, opd_t(x)), opd_tensor_wrapped_number(opd_value_int(1)))));
    (void)opd_backward(y);
    return opd_tensor_grad(x);
}
TEST(every_allocation_may_fail) {
    int n, done = 0, blocks;
    int64_t live;
    dev_on(true);
    OPD_SCOPE { CHECK(some_work() != NULL); }
    blocks = dev.nblocks;
    live = opd_device_memory(unit(1)).live;
    for (n = 1; n < 200 && !done; n++) {
        dev.fail_at = n;
        OPD_SCOPE {
            opd_tensor *g = some_work();
            done = dev.fail_at > 0;
            CHECK(done ? g != NULL && opd_ok() : opd_error_code() == OPD_ERROR_MEMORY);
            opd_error_clear();
        }
        dev.fail_at = 0;
        CHECK(dev.nblocks == blocks && opd_device_memory(unit(1)).live == live && dev.current == 0);
    }
    CHECK(n > 5 && done);
    for (done = 0, n = 1; n < 2000 && !done; n++) {       /* the library's own, and the device's by its count */
        (void)opd_memory_fail_at(n, false);
        OPD_SCOPE {
            opd_tensor *g = some_work();
            done = opd_ok() && g;
            CHECK(done || opd_error_code() == OPD_ERROR_MEMORY);
            (void)opd_memory_fail_at(0, false);
            opd_error_clear();
        }
        CHECK(dev.nblocks == blocks && dev.current == 0);
    }
    CHECK(done);
}
TEST(a_copy_may_fail) {
    opd_tensor *t;
    dev_on(false);
    t = up(vec(3));
    dev.fail_copy = 1;
    CHECK(opd_item_f64(opd_select(t, 0, 0)) == 0);
    CHECK_ERROR(OPD_ERROR_KERNEL, "npu: copy failed");
    CHECK(here(t) == NULL);
    CHECK_ERROR(OPD_ERROR_KERNEL, "npu: copy failed");
    CHECK(opd_fill_(t, opd_value_int(1)) == NULL);
    opd_error_clear();
    CHECK_STR(printed(t), "tensor(..., device='npu:0', size=(3,))");
    opd_error_clear();
    dev.fail_copy = 0;
    CHECK_STR(printed(t), "tensor([-2., -1.,  0.], device='npu:0')");
    CHECK_OK();
}
static int deleted;
static void delete_block(void *data, void *user) { deleted++; dev_free(user, 1, data, 16); }
TEST(foreign_memory_of_the_device) {
    int before = deleted;
    dev_on(false);
    OPD_SCOPE {
        opd_tensor *t = opd_tensor_wrap_on(dev_alloc(&dev, 1, 16), OPD_INTS(2, 2), NULL, OPD_FLOAT32, unit(1),
                                           delete_block, &dev);
        opd_tensor *v = opd_select(t, 0, 1);
        CHECK(opd_tensor_device(t).type == NPU && opd_tensor_device(v).index == 1 && opd_device_data(t, NPU));
        CHECK(opd_copy_(t, opd_reshape(vec(4), OPD_INTS(2, 2))) == t);
        CHECK_STR(printed(v), "tensor([0., 1.], device='npu:1')");
        opd_keep(v);
        CHECK_INT(deleted, before);
        opd_release(v);
    }
    CHECK_INT(deleted, before + 1);
    OPD_SCOPE {                                           /* also when it fails */
        CHECK(opd_tensor_wrap_on(dev_alloc(&dev, 1, 16), OPD_INTS(2, -2), NULL, OPD_FLOAT32, unit(1), delete_block,
              &dev) == NULL);
        opd_error_clear();
        CHECK_INT(deleted, before + 2);
        CHECK(opd_tensor_wrap_on(dev_alloc(&dev, 1, 16), OPD_INTS(4), NULL, OPD_FLOAT32, unit(9), delete_block,
              &dev) == NULL);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "there is no npu:9");
        CHECK_INT(deleted, before + 3);
    }
}

//-- tensors of the device ---------------------------------------------------------------------------------------------

TEST(the_host_has_no_access) {
    opd_tensor *t;
    dev_on(false);
    t = up(vec(3));
    CHECK(opd_data(t) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "a tensor on npu:0 has no data that the host can read");
    CHECK(opd_data_f32(t) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "a tensor on npu:0 has no data that the host can read");
    CHECK(opd_device_data(t, NPU) != NULL && dev_owner(opd_device_data(t, NPU)) == 0);
    CHECK(opd_device_data(vec(3), NPU) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Expected a tensor on npu:0, but it is on cpu");
    CHECK(opd_device_data(t, OPD_CUDA) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "but it is on npu:0");
    CHECK_OK();
}
TEST(making_reading_printing) {
    opd_tensor *t;
    int64_t m;
    dev_on(false);                                        /* all of this needs no kernel */
    t = opd_full_full(OPD_INTS(2, 2), opd_value_double(1.5), OPD_NONE, OPD_NONE, at(-1), OPD_NONE);
    CHECK_STR(printed(t), "tensor([[1.5000, 1.5000],\n        [1.5000, 1.5000]], device='npu:0')");
    CHECK(opd_item_f64(opd_select(opd_select(t, 0, 0), 0, 1)) == 1.5);
    CHECK_STR(printed(opd_zero_(t)), "tensor([[0., 0.],\n        [0., 0.]], device='npu:0')");
    CHECK_STR(printed(opd_fill_(opd_select(opd_t(t), 0, 1), opd_value_int(7))), "tensor([7., 7.], device='npu:0')");
    CHECK_STR(printed(t), "tensor([[0., 7.],\n        [0., 7.]], device='npu:0')");
    CHECK_STR(printed(opd_arange_full(opd_value_int(4), OPD_NONE, OPD_NONE, at(2), OPD_NONE)),
              "tensor([0, 1, 2, 3], device='npu:2')");
    CHECK_STR(printed(opd_eye_full(2, OPD_NONE, OPD_NONE, at(1), OPD_NONE)),
              "tensor([[1., 0.],\n        [0., 1.]], device='npu:1')");
    CHECK(opd_empty_full(OPD_INTS(0), OPD_NONE, OPD_NONE, at(0), OPD_NONE, OPD_NONE) != NULL);
    CHECK_STR(printed(opd_empty_full(OPD_INTS(0), OPD_NONE, OPD_NONE, at(0), OPD_NONE, OPD_NONE)),
              "tensor([], device='npu:0')");
    CHECK_STR(printed(opd_tensor_set_requires_grad(opd_clone(t), true)),
              "tensor([[0., 7.],\n        [0., 7.]], device='npu:0', requires_grad=True)");
    t = opd_arange_full(opd_value_int(3), OPD_NONE, OPD_NONE, at(2), OPD_NONE);
    CHECK_INT(opd_item_i64(opd_select(t, 0, 2)), 2);
    CHECK(opd_local_scalar_dense(opd_select(t, 0, 2)).u.i == 2 && opd_item(opd_select(t, 0, 1)).tag == OPD_TAG_INT);
    CHECK_INT(opd_item_i64(t), 0);
    CHECK_ERROR(OPD_ERROR_SHAPE, "3 elements");
    m = 1;
    CHECK(opd_tensor_new_on(opd_ints_of(&m, 1), OPD_FLOAT32, unit(UNITS)) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "there is no npu:3, only 3 device(s)");
    CHECK(opd_empty_full(OPD_INTS(1), OPD_NONE, OPD_NONE, opd_value_str("npu:7"), OPD_NONE, OPD_NONE) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "there is no npu:7");
}
/* The device draws the same random numbers as the CPU. */
TEST(random_numbers) {
    opd_tensor *a, *b;
    dev_on(false);
    opd_manual_seed(5);
    a = opd_randn(OPD_INTS(2, 3), OPD_FLOAT32);
    opd_manual_seed(5);
    b = opd_randn_full(OPD_INTS(2, 3), OPD_NONE, OPD_NONE, at(1), OPD_NONE);
    CHECK(opd_tensor_device(b).index == 1);
    CHECK_TENSOR(here(b), opd_data_f32(a), 0);
    opd_manual_seed(5);
    CHECK_TENSOR(here(opd_normal_(opd_empty_like(b), 0, 1)), opd_data_f32(a), 0);
}
/* Every way of copying: host and device, layouts, dtypes, broadcasting, units. */
TEST(copies) {
    static const float want[] = {-2, 1, -1, 2, 0, 3};
    static const double wide[] = {-2, 1, -1, 2, 0, 3};
    opd_tensor *m, *t, *d, *u;
    dev_on(false);
    m = opd_reshape(vec(6), OPD_INTS(2, 3));
    t = opd_t(up(m));
    CHECK(!opd_is_contiguous(t) && opd_is_contiguous(opd_contiguous(t)));
    CHECK_TENSOR(here(opd_contiguous(t)), want, 0);               /* on the device, through the host */
    CHECK_TENSOR(opd_contiguous(here(t)), want, 0);
    CHECK_TENSOR(opd_contiguous(here(up(opd_t(m)))), want, 0);
    u = to(t, unit(2));
    CHECK(opd_tensor_device(u).index == 2 && opd_strides(u)[0] == opd_strides(t)[0]);
    CHECK_TENSOR(opd_contiguous(here(u)), want, 0);
    d = opd_to_dtype(t, OPD_FLOAT64);
    CHECK(opd_tensor_device(d).type == NPU && opd_dtype(d) == OPD_FLOAT64);
    CHECK_TENSOR(opd_contiguous(here(d)), wide, 0);
    d = opd_to_device(m, unit(1), OPD_FLOAT64);
    CHECK(opd_tensor_device(d).index == 1 && opd_dtype(d) == OPD_FLOAT64);
    CHECK(opd_to_device(d, unit(1), OPD_FLOAT64) == d);
    CHECK(opd_tensor_device(opd_to_device(d, unit(-1), OPD_FLOAT64)).index == 0);
    CHECK(opd_tensor_device(opd_to_other(vec(2), d)).index == 1);
    /* into a part of a tensor: the other elements remain */
    d = opd_zeros_full(OPD_INTS(3, 4), OPD_NONE, OPD_NONE, at(0), OPD_NONE);
    CHECK(opd_copy_(opd_slice(d, 1, opd_value_int(0), opd_value_int(3), 2), opd_t(m)) != NULL);
    CHECK_STR(printed(d), "tensor([[-2.,  0.,  1.,  0.],\n        [-1.,  0.,  2.,  0.],\n        [ 0.,  0.,  3.,  0.]],"
              " device='npu:0')");
    CHECK(opd_copy_(d, opd_slice(vec(4), 0, opd_value_int(0), opd_value_int(1), 1)) == d);
    CHECK(opd_item_f64(opd_select(opd_select(d, 0, 2), 0, 3)) == -2);
    CHECK(opd_copy_(opd_slice(opd_select(d, 0, 0), 0, opd_value_int(0), opd_value_int(3), 1),
                    opd_slice(opd_select(d, 0, 0), 0, opd_value_int(1), opd_value_int(4), 1)) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "single memory location");
    CHECK(opd_copy_(d, vec(5)) == NULL);
    opd_error_clear();
    CHECK(to(up(vec(1)), opd_device_make(OPD_META, -1)) != NULL);
    CHECK(up(to(vec(1), opd_device_make(OPD_META, -1))) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Cannot copy out of meta tensor; no data!");
}
TEST(resizing_keeps_what_is_there) {
    opd_tensor *t;
    dev_on(false);
    t = to(vec(3), unit(1));
    CHECK(opd_resize_(t, OPD_INTS(2)) == t && opd_resize_(t, OPD_INTS(4, 64)) == t);
    CHECK(opd_tensor_device(t).index == 1 && opd_tensor_storage_bytes(t) == 1024);
    CHECK(opd_item_f64(opd_select(opd_select(t, 0, 0), 0, 2)) == 0);
    CHECK(opd_item_f64(opd_select(opd_select(t, 0, 0), 0, 1)) == -1);
    CHECK_OK();
}
/* Two kinds of devices at the same time. */
TEST(between_backends) {
    opd_backend_desc d = dev_desc("xpu_like");
    opd_tensor *a, *b;
    dev_on(true);
    if (opd_device_count(OPD_PRIVATEUSE2) == 0) { CHECK_INT(opd_backend_register(OPD_PRIVATEUSE2, &d), 0); }
    a = up(vec(3));
    b = to(a, opd_device_make(OPD_PRIVATEUSE2, 1));
    CHECK_STR(printed(b), "tensor([-2., -1.,  0.], device='xpu_like:1')");
    CHECK(opd_add(a, b) == NULL);
    CHECK_ERROR(OPD_ERROR_NO_KERNEL, "from the 'xpu_like' backend");
    CHECK(opd_copy_(a, opd_zeros_like(b)) == a && opd_item_f64(opd_select(a, 0, 0)) == 0);
    CHECK_OK();
}

//-- kernels of its own ------------------------------------------------------------------------------------------------

static int own_calls, own_unit, own_leaves;
/* float32, of the same sizes: what its tests give it. */
static int own_mul(opd_call *call) {
    opd_tensor *a = opd_contiguous(opd_arg_tensor(call, 0)), *b = opd_contiguous(opd_arg_tensor(call, 1));
    opd_tensor *out = opd_result(call, 0, opd_sizes(a), opd_ndim(a), opd_dtype(a));
    double number = opd_tensor_device(b).type == OPD_CPU ? opd_item_f64(b) : 0;
    float *x = (float *)opd_device_data(a, NPU), *o = (float *)opd_device_data(out, NPU);
    float *y = opd_tensor_device(b).type == OPD_CPU ? NULL : (float *)opd_device_data(b, NPU);
    int64_t i;
    if (!opd_ok()) { return -1; }
    own_calls++;
    own_unit = dev.current;
    dev_begin();
    for (i = 0; i < opd_numel(a); i++) { o[i] = x[i] * (y ? y[i] : (float)number); }
    dev_end();
    if (own_leaves) { dev.current = own_leaves; }
    return 0;
}
static opd_library *own_open(void) {
    opd_library *lib = opd_library_open(OPD_IMPL, "aten", "PrivateUse1", __FILE__, __LINE__);
    CHECK_INT(opd_impl(lib, "mul.Tensor", own_mul), 0);
    return lib;
}

TEST(kernels_run_on_the_device_of_their_tensors) {
    opd_library *lib;
    opd_tensor *a;
    int gets, sets;
    dev_on(false);
    lib = own_open();
    a = to(vec(3), unit(2));
    own_calls = 0;
    gets = dev.gets; sets = dev.sets;
    CHECK_STR(printed(opd_mul(a, a)), "tensor([4., 1., 0.], device='npu:2')");
    CHECK(own_calls == 1 && own_unit == 2 && dev.current == 0);
    CHECK_INT(dev.sets - sets, 2);                        /* there and back */
    sets = dev.sets;
    a = to(vec(3), unit(0));
    sets = dev.sets; gets = dev.gets;
    CHECK(opd_mul(a, a) != NULL && own_unit == 0);
    CHECK_INT(dev.sets - sets, 0);
    CHECK(dev.gets - gets <= 3);
    own_leaves = 1;                                       /* a kernel that forgets to put it back */
    CHECK(opd_mul(a, a) != NULL && dev.current == 0);
    own_leaves = 0;
    CHECK(opd_mul(a, opd_select(a, 0, 0)) == NULL || opd_ok());
    opd_error_clear();
    /* in-place and out= forms follow from the functional kernel */
    CHECK_STR(printed(OPD_CALL(opd_find("aten::mul_.Tensor"), a, a)), "tensor([4., 1., 0.], device='npu:0')");
    CHECK_STR(printed(OPD_CALL(opd_find("aten::mul.out"), a, a, opd_empty_like(a))),
              "tensor([16.,  1.,  0.], device='npu:0')");
    CHECK_STR(printed(opd_mul(a, opd_tensor_wrapped_number(opd_value_int(2)))), "tensor([8., 2., 0.], device='npu:0')");
    opd_library_close(lib);
    CHECK(opd_mul(a, a) == NULL);
    CHECK_ERROR(OPD_ERROR_NO_KERNEL, "Could not run 'aten::mul.Tensor' with arguments from the 'npu' backend");
    CHECK_INT(opd_check_invariants(), 0);
}
TEST(tensors_of_two_devices) {
    opd_library *lib;
    opd_tensor *a, *b, *c;
    dev_on(true);
    lib = own_open();
    a = up(vec(3)); b = vec(3); c = to(b, unit(1));
    CHECK(opd_mul(a, b) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "aten::mul.Tensor");
    CHECK(opd_mul(a, b) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT,
                "Expected all tensors to be on the same device, but found at least two devices, npu:0 and "
                "cpu! (when checking argument for argument other in method aten::mul.Tensor)");
    CHECK(opd_mul(b, a) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "two devices, cpu and npu:0! (when checking argument for argument other");
    CHECK(opd_mul(a, c) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "two devices, npu:0 and npu:1!");
    /* also by the fallback */
    CHECK(opd_mm(opd_reshape(a, OPD_INTS(1, 3)), opd_reshape(b, OPD_INTS(3, 1))) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "npu:0 and cpu! (when checking argument for argument mat2 in method aten::mm)");
    CHECK(opd_cat(OPD_TENSORS(a, b), 0) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "argument tensors in method aten::cat");
    CHECK(opd_mul(a, opd_select(b, 0, 1)) != NULL);       /* a number of the CPU's may stand beside */
    CHECK(opd_index(a, OPD_TENSORS(opd_arange(opd_value_int(2), OPD_INT64))) != NULL);    /* and indices */
    CHECK(dev.current == 0);
    opd_library_close(lib);
}

static int mine_cpu(opd_call *call) { return opd_return_int(call, 1); }
static int mine_npu(opd_call *call) {
    opd_tensor *t = opd_arg_tensor(call, 1);
    if (!opd_device_data(opd_arg_tensor(call, 0), NPU) || (t && !opd_device_data(t, NPU))) { return -1; }
    return opd_return_int(call, 2);
}
static int make_cpu(opd_call *call) { return opd_return_tensor(call, opd_zeros(opd_arg_ints(call, 0), OPD_FLOAT32)); }
static int make_npu(opd_call *call) {
    CHECK_INT(dev.current, 2);
    return opd_return_tensor(call, opd_full_full(opd_arg_ints(call, 0), opd_value_double(3), OPD_NONE, OPD_NONE, at(-1),
                                                 OPD_NONE));
}
TEST(operators_of_ones_own) {
    opd_library *def, *impl;
    opd_tensor *a;
    dev_on(false);
    def = opd_library_open(OPD_DEF, "mine", NULL, __FILE__, __LINE__);
    impl = opd_library_open(OPD_IMPL, "mine", "PrivateUse1", __FILE__, __LINE__);
    CHECK_INT(opd_def(def, "where(Tensor a, Tensor? b=None) -> int"), 0);
    CHECK_INT(opd_def(def, "make(int[] size, *, Device? device=None) -> Tensor"), 0);
    CHECK(opd_impl_key(def, "where", "CPU", mine_cpu, NULL, NULL) == 0 && opd_impl(impl, "where", mine_npu) == 0);
    CHECK_INT(opd_impl_key(def, "make", "CompositeExplicitAutograd", make_cpu, NULL, NULL), 0);
    CHECK_INT(opd_impl(impl, "make", make_npu), 0);
    a = up(vec(2));
    {
        opd_value v[2], r;
        v[0] = opd_value_tensor(vec(2)); v[1] = opd_value_none();
        CHECK(opd_call_all(opd_find("mine::where"), &r, v, 2) == 0 && r.u.i == 1);
        v[0] = opd_value_tensor(a);
        CHECK(opd_call_all(opd_find("mine::where"), &r, v, 2) == 0 && r.u.i == 2);
        v[1] = opd_value_tensor(vec(2));                  /* nobody checks a program's own: its accessor does */
        CHECK(opd_call_all(opd_find("mine::where"), &r, v, 2) == -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT,
                    "two devices, npu:0 and cpu! (when checking argument for argument b in method mine::where)");
        v[0] = opd_value_ints(opd_sizes(a), 1); v[1] = at(2);
        CHECK_STR(printed(opd_call_op(opd_find("mine::make"), v, 2)), "tensor([3., 3.], device='npu:2')");
        CHECK_STR(printed(opd_call_op(opd_find("mine::make"), v, 1)), "tensor([0., 0.])");
    }
    opd_library_close(impl);
    opd_library_close(def);
    CHECK_OK();
}
/* A kernel for all devices that copies its arguments to the CPU, computes there, and copies the result back. */
static int head_result(opd_call *call, opd_tensor **x, opd_tensor **out, opd_device device) {
    const int64_t n = opd_arg_int(call, 1);
    *x = opd_arg_tensor(call, 0);
    if (n < 0 || n > opd_size(*x, 0)) { return opd_fail(OPD_ERROR_ARGUMENT, "head: more than there is"); }
    *out = opd_result_strided(call, 0, &n, NULL, 1, opd_dtype(*x), device);
    return *out ? 0 : -1;
}
static int head_fake(opd_call *call) {
    opd_tensor *x, *out;
    return head_result(call, &x, &out, opd_tensor_device(opd_arg_tensor(call, 0)));
}
static int head_any(opd_call *call) {
    const opd_device cpu = opd_device_make(OPD_CPU, -1);
    opd_tensor *x, *out;
    if (head_result(call, &x, &out, cpu) || !(x = opd_contiguous(opd_to_device(x, cpu, opd_dtype(x))))) { return -1; }
    memcpy(opd_data(out), opd_data(x), (size_t)opd_numel(out) * opd_dtype_size(opd_dtype(x)));
    return opd_return_tensor(call, opd_to_device(out, opd_tensor_device(opd_arg_tensor(call, 0)), opd_dtype(x)));
}
static int head_backward(opd_backward_call *bw) {
    const int64_t more = opd_bw_sizes(bw, 0).data[0] - opd_bw_int(bw, 1);
    return opd_bw_return(bw, 0, opd_constant_pad_nd(opd_bw_grad(bw, 0), OPD_INTS(0, more)));
}
TEST(a_kernel_of_every_device) {
    opd_library *lib;
    opd_op_desc d;
    opd_tensor *x, *y;
    opd_value v[2];
    dev_on(true);
    lib = opd_library_open(OPD_DEF, "mine", NULL, __FILE__, __LINE__);
    memset(&d, 0, sizeof d);
    d.schema = "head(Tensor x, int n) -> Tensor";
    d.any = head_any;
    d.fake = head_fake;
    d.backward = head_backward;
    d.vmap = OPD_BATCH_LOOP;
    CHECK_INT(opd_define(lib, &d), 0);
    x = opd_tensor_set_requires_grad(up(vec(5)), true);
    v[0] = opd_value_tensor(x);
    v[1] = opd_value_int(2);
    y = opd_call_op(opd_find("mine::head"), v, 2);
    CHECK(y && opd_tensor_device(y).type == (int32_t)NPU && opd_tensor_device(y).index == opd_tensor_device(x).index);
    CHECK_INT(opd_numel(y), 2);
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK(opd_tensor_device(opd_tensor_grad(x)).type == (int32_t)NPU);
    CHECK_NEAR(opd_item_f64(opd_sum(opd_tensor_grad(x))), 2, 0);
    CHECK_INT(opd_opcheck(opd_find("mine::head"), v, 2, NULL), 0);
    v[0] = opd_value_tensor(vec(5));
    CHECK_INT(opd_opcheck(opd_find("mine::head"), v, 2, NULL), 0);
    CHECK_OK();
    opd_library_close(lib);
}
TEST(a_device_argument_is_explained) {
    opd_library *def, *impl;
    char text[2000];
    opd_value v[2];
    int64_t one = 1;
    dev_on(false);
    def = opd_library_open(OPD_DEF, "mine", NULL, "def.c", 1);
    impl = opd_library_open(OPD_IMPL, "mine", "PrivateUse1", "npu.c", 2);
    CHECK_INT(opd_def(def, "make(int[] size, *, Device? device=None) -> Tensor"), 0);
    CHECK_INT(opd_impl_key(def, "make", "CompositeExplicitAutograd", make_cpu, NULL, NULL), 0);
    CHECK_INT(opd_impl(impl, "make", make_npu), 0);
    v[0] = opd_value_ints(&one, 1); v[1] = at(2);
    (void)opd_explain(opd_find("mine::make"), v, 2, text, sizeof text);
    CHECK(strstr(text, "=> npu: from argument 'device', when no other key is left; kernel, registered at npu.c:2\n"));
    CHECK(!strstr(text, "Undefined"));
    (void)opd_explain(opd_find("mine::make"), v, 1, text, sizeof text);
    CHECK(strstr(text, "=> Undefined: when no other key is left; default backend kernel, registered at def.c:1\n"));
    opd_library_close(impl);
    opd_library_close(def);
    CHECK_OK();
}
/* The device's kernels of fill_ and copy_ are used by all operators that fill and copy. */
static int fills, copies;
static int own_fill(opd_call *call) {
    opd_tensor *t = opd_arg_tensor(call, 0);
    float *o = (float *)opd_device_data(t, NPU);
    int64_t i;
    fills++;
    dev_begin();
    for (i = 0; i < opd_numel(t); i++) { o[i] = (float)opd_arg_value(call, 1).u.i; }
    dev_end();
    return opd_return_tensor(call, t);
}
static int own_copy(opd_call *call) { copies++; return opd_cpu_fallback(call); }
TEST(fill_and_copy_of_its_own) {
    opd_library *lib;
    opd_tensor *t, *m;
    dev_on(false);
    lib = opd_library_open(OPD_IMPL, "aten", "PrivateUse1", __FILE__, __LINE__);
    CHECK(opd_impl(lib, "fill_.Scalar", own_fill) == 0 && opd_impl(lib, "copy_", own_copy) == 0);
    fills = copies = 0;
    t = opd_ones_full(OPD_INTS(2), OPD_NONE, OPD_NONE, at(1), OPD_NONE);
    CHECK_STR(printed(t), "tensor([1., 1.], device='npu:1')");
    CHECK_STR(printed(opd_zero_(t)), "tensor([0., 0.], device='npu:1')");
    CHECK_INT(fills, 2);
    m = up(opd_reshape(vec(6), OPD_INTS(2, 3)));
    CHECK(opd_clone(m) && copies == 0);                   /* bytes in a row */
    CHECK_STR(printed(opd_contiguous(opd_t(m))),
              "tensor([[-2.,  1.],\n        [-1.,  2.],\n        [ 0.,  3.]], device='npu:0')");
    CHECK_INT(copies, 1);
    CHECK(opd_to_dtype(m, OPD_FLOAT64) && copies == 2);
    opd_library_close(lib);
    CHECK_OK();
}

//-- current device and streams ----------------------------------------------------------------------------------------

TEST(the_current_device) {
    opd_device was;
    dev_on(false);
    CHECK(opd_device_count(NPU) == UNITS && opd_device_current(NPU).index == 0 &&
          opd_device_current(OPD_CPU).index == -1);
    was = opd_device_set(unit(2));
    CHECK(was.index == 0 && opd_device_current(NPU).index == 2);
    CHECK(opd_tensor_device(up(vec(1))).index == 2);
    CHECK(opd_device_set(was).index == 2 && dev.current == 0);
    (void)opd_device_set(unit(UNITS));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "there is no npu:3");
    CHECK(opd_device_set(opd_device_make(OPD_CPU, -1)).type == OPD_CPU);
    CHECK(opd_device_set(opd_device_make(OPD_CUDA, -1)).index == -1);      /* puts back what was: nothing */
    CHECK_OK();
    (void)opd_device_set(opd_device_make(OPD_CUDA, 0));
    CHECK_ERROR(OPD_ERROR_NO_KERNEL, "no allocator for device cuda");
    dev.syncs = 0;
    CHECK(opd_device_synchronize(unit(-1)) == 0 && opd_device_synchronize(opd_device_make(OPD_CPU, -1)) == 0);
    CHECK_INT(dev.syncs, 1);
    CHECK(opd_device_synchronize(unit(5)) == -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "there is no npu:5");
    CHECK_OK();
}
TEST(streams) {
    opd_stream a, b, was;
    dev_on(false);
    dev.streams = dev.stream_sets = dev.waits = dev.stream_syncs = 0;
    CHECK_INT(opd_stream_current(unit(1)).id, 0);
    a = opd_stream_new(unit(1));
    b = opd_stream_new(unit(2));
    CHECK(a.id == 101 && b.id == 202 && a.device.index == 1);
    was = opd_stream_set(a);
    CHECK(was.id == 0 && was.device.index == 1 && opd_stream_current(unit(1)).id == 101 &&
          opd_stream_current(unit(2)).id == 0);
    CHECK(opd_stream_wait(a, b) == 0 && opd_stream_synchronize(b) == 0);
    CHECK(dev.waits == 1 && dev.stream_syncs == 1);
    CHECK(opd_stream_set(was).id == 101 && opd_stream_current(unit(1)).id == 0);
    CHECK_INT(dev.stream_sets, 2);
    opd_stream_free(a);
    opd_stream_free(b);
    CHECK_INT(dev.streams, 0);
    CHECK(opd_stream_current(opd_device_make(OPD_CPU, -1)).id == 0 &&
          opd_stream_synchronize(opd_stream_current(opd_device_make(OPD_CPU, -1))) == 0);
    CHECK(opd_stream_new(opd_device_make(OPD_XLA, 0)).id == 0);
    CHECK_ERROR(OPD_ERROR_NO_KERNEL, "no allocator for device xla");
}

//-- optional parts of a backend: events, captures, pinned memory ------------------------------------------------------

/* Each function records its arguments; if more.fails is set, it fails. */
static struct { char said[512]; int fails, debug; } more;
static int more_says(const char *what, int index, int64_t a, int64_t b) {
    const size_t used = strlen(more.said);
    (void)snprintf(more.said + used, sizeof more.said - used, "%s %d %d %d; ", what, index, (int)a, (int)b);
    return more.fails ? -1 : 0;
}
#define MORE_SAID(text) do { CHECK_STR(more.said, text); more.said[0] = 0; } while (0)
static int more_event_new(void *user, int index, bool timing, int64_t *event) {
    (void)user; *event = 7;
    return more_says("event", index, timing, 0);
}
static void more_event_free(void *user, int index, int64_t event) { (void)user; (void)more_says("free", index, event, 0); }
static int more_record(void *user, int index, int64_t event, int64_t stream) {
    (void)user; return more_says("record", index, event, stream);
}
static int more_wait(void *user, int index, int64_t event, int64_t stream) {
    (void)user; return more_says("wait", index, event, stream);
}
static int more_event_sync(void *user, int index, int64_t event) { (void)user; return more_says("sync", index, event, 0); }
static int more_done(void *user, int index, int64_t event) {
    (void)user; return more_says("done", index, event, 0) ? -1 : 1;
}
static int more_elapsed(void *user, int index, int64_t from, int64_t until, double *ms) {
    (void)user; *ms = 2.5;
    return more_says("elapsed", index, from, until);
}
static int more_begin(void *user, int index, int64_t stream) { (void)user; return more_says("begin", index, stream, 0); }
static int more_end(void *user, int index, int64_t stream, int64_t *capture) {
    (void)user; *capture = 9;
    return more_says("end", index, stream, 0);
}
static int more_replay(void *user, int index, int64_t capture, int64_t stream) {
    (void)user; return more_says("replay", index, capture, stream);
}
static void more_capture_free(void *user, int index, int64_t capture) {
    (void)user; (void)more_says("forget", index, capture, 0);
}
static bool more_debug(void *user, bool on) {
    const bool was = more.debug != 0;
    (void)user; more.debug = on;
    return was;
}
static int more_used(void *user, int index, void *data, int64_t stream) {
    (void)user; return more_says("used", index, dev_owner(data), stream);
}
static int more_empty(void *user, int index) { (void)user; return more_says("empty", index, 0, 0); }
static int64_t more_cached(void *user, int index) { (void)user; return 1000 + index; }
static void *more_host(void *user, size_t bytes) {
    (void)user; return more_says("host", 0, (int64_t)bytes, 0) ? NULL : malloc(bytes);
}
static void more_host_free(void *user, void *data) { (void)user; (void)more_says("unhost", 0, 0, 0); free(data); }

#define MORE OPD_XPU
static opd_device more_at(int index) { return opd_device_make(MORE, index); }
static void more_on(void) {
    opd_backend_desc d = dev_desc(NULL);
    d.event_new = more_event_new; d.event_free = more_event_free; d.event_record = more_record; d.event_wait = more_wait;
    d.event_synchronize = more_event_sync; d.event_done = more_done; d.event_elapsed = more_elapsed;
    d.capture_begin = more_begin; d.capture_end = more_end; d.capture_replay = more_replay;
    d.capture_free = more_capture_free; d.debug_set = more_debug; d.record_stream = more_used;
    d.empty_cache = more_empty; d.cached = more_cached; d.host_alloc = more_host; d.host_free = more_host_free;
    dev.current = 0;
    memset(&more, 0, sizeof more);
    CHECK_INT(opd_backend_register(MORE, &d), 0);
}
TEST(events) {
    opd_stream s, other;
    opd_device_event e;
    more_on();
    e = opd_device_event_new(more_at(2), true);
    s = opd_stream_new(more_at(2));
    other = opd_stream_new(more_at(1));
    CHECK(e.id == 7 && e.device.index == 2);
    CHECK(opd_device_event_record(e, s) == 0 && opd_stream_wait_event(other, e) == 0);      /* any stream may wait */
    CHECK(opd_device_event_synchronize(e) == 0 && opd_device_event_done(e) == 1);
    CHECK(opd_device_event_elapsed(e, e) == 2.5);
    MORE_SAID("event 2 1 0; record 2 7 201; wait 1 7 102; sync 2 7 0; done 2 7 0; elapsed 2 7 7; ");
    CHECK_INT(opd_device_event_record(e, other), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "an event of xpu:2 cannot be used with a stream of xpu:1");
    CHECK_INT(opd_device_event_record(e, opd_stream_current(opd_device_make(OPD_CPU, -1))), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "an event of xpu:2 cannot be used with a stream of cpu");
    opd_device_event_free(e);
    MORE_SAID("free 2 7 0; ");
    e.id = 0;
    opd_device_event_free(e);                             /* none */
    MORE_SAID("");
    CHECK_INT(opd_device_event_new(more_at(-1), false).device.index, 0);    /* of the current device */
    CHECK_INT(opd_device_event_new(more_at(3), false).id, 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "there is no xpu:3, only 3 device(s)");
    opd_stream_free(s); opd_stream_free(other);
    CHECK_INT(opd_backend_unregister(MORE), 0);
}
/* The profiler measures a device by events around operators, without waiting before its end. */
TEST(device_times_in_a_profile) {
    opd_profile *p;
    int64_t rows = 0;
    char table[4000];
    more_on();
    CHECK_INT(opd_profiler_device(more_at(1)), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_profiler_device: no profiler is running");
    CHECK_INT(opd_profiler_begin(NULL), 0);
    CHECK_INT(opd_profiler_device(unit(0)), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "npu has no events");
    CHECK_INT(opd_profiler_device(more_at(1)), 0);
    more.said[0] = 0;
    CHECK(opd_exp(vec(3)) != NULL);
    MORE_SAID("event 1 1 0; event 1 1 0; record 1 7 0; record 1 7 0; ");
    p = opd_profiler_end();
    MORE_SAID("sync 1 7 0; elapsed 1 7 7; free 1 7 0; free 1 7 0; ");
    CHECK(opd_profile_rows(p, &rows) != NULL && rows == 1);
    CHECK_INT(opd_profile_device_ns(p, 0), 2500000);
    CHECK_INT(opd_profile_device_ns(p, 1), 0);
    CHECK(opd_profile_table(p, table, sizeof table) < sizeof table);
    CHECK(strstr(table, "      Device\n") != NULL && strstr(table, "2.500ms\n") != NULL);
    opd_profile_free(p);
    CHECK_INT(opd_profiler_begin(NULL), 0);
    CHECK_INT(opd_profiler_device(more_at(1)), 0);
    more.fails = 1;                               /* an operator runs, even if its time cannot be measured */
    CHECK(opd_exp(vec(3)) != NULL);
    p = opd_profiler_end();
    CHECK_INT(opd_profile_device_ns(p, 0), 0);
    opd_profile_free(p);
    CHECK_OK();
    CHECK_INT(opd_backend_unregister(MORE), 0);
}
/* The argument `stream` of __dlpack__. */
TEST(streams_of_other_libraries) {
    more_on();
    dev.waits = 0;
    const opd_stream mine = opd_stream_new(more_at(1)), was = opd_stream_set(mine);
    OPD_SCOPE {
        opd_tensor *x = opd_tensor_new_on(OPD_INTS(3), OPD_FLOAT32, more_at(1));
        more.said[0] = 0;
        CHECK_INT(opd_dlpack_stream(x, -1), 0);
        CHECK_INT(opd_dlpack_stream(x, mine.id), 0);      /* the current stream itself */
        CHECK_INT(dev.waits, 0);
        CHECK_INT(opd_dlpack_stream(x, 150), 0);
        CHECK_INT(dev.waits, 1);
        CHECK(strstr(more.said, " 150; ") != NULL && strncmp(more.said, "used 1 ", 7) == 0);
        CHECK_INT(opd_dlpack_stream(vec(3), 102), 0);     /* the CPU has no streams */
        CHECK_INT(opd_dlpack_stream(x, 0), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_dlpack_stream: 0 is not a stream (the default stream is 1)");
        CHECK_INT(opd_dlpack_stream(NULL, 1), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_dlpack_stream");
    }
    (void)opd_stream_set(was);
    opd_stream_free(mine);
    CHECK_INT(opd_backend_unregister(MORE), 0);
}
TEST(captures) {
    opd_capture *c;
    opd_stream s;
    more_on();
    s = opd_stream_new(more_at(1));
    CHECK_INT(opd_capture_begin(s), 0);
    c = opd_capture_end(s);
    CHECK(c && opd_capture_replay(c, s) == 0);
    MORE_SAID("begin 1 101 0; end 1 101 0; replay 1 9 101; ");
    CHECK_INT(opd_capture_replay(c, opd_stream_current(more_at(0))), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "a capture of xpu:1 cannot be used with a stream of xpu:0");
    opd_capture_free(c);
    opd_capture_free(NULL);
    MORE_SAID("forget 1 9 0; ");
    CHECK_INT(opd_capture_begin(s), 0);                   /* what fails meanwhile makes the end fail, which frees it */
    more.said[0] = 0;
    (void)opd_fail(OPD_ERROR_SHAPE, "meanwhile");
    CHECK(opd_capture_end(s) == NULL && opd_capture_begin(s) == -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "meanwhile");
    MORE_SAID("end 1 101 0; forget 1 9 0; ");
    CHECK_INT(opd_capture_replay(NULL, s), -1);
    CHECK_OK();
    opd_stream_free(s);
    CHECK_INT(opd_backend_unregister(MORE), 0);
}
TEST(pinned_memory_and_what_is_kept) {
    int64_t n = 3, none = 0;
    opd_tensor *t;
    opd_stream s;
    more_on();
    s = opd_stream_new(more_at(1));
    OPD_SCOPE {
        t = opd_tensor_new_pinned(opd_ints_of(&n, 1), OPD_FLOAT64, MORE);
        CHECK(t && opd_tensor_device(t).type == OPD_CPU && opd_numel(t) == 3);
        MORE_SAID("host 0 24 0; ");
        CHECK(opd_numel(opd_tensor_new_pinned(opd_ints_of(&none, 1), OPD_FLOAT64, MORE)) == 0);
    }
    MORE_SAID("unhost 0 0 0; ");
    CHECK_INT(opd_device_empty_cache(more_at(1)), 0);
    MORE_SAID("empty 1 0 0; ");
    CHECK_INT(opd_device_memory(more_at(2)).cached, 1002);
    CHECK(!opd_device_debug_set(MORE, true) && opd_device_debug_set(MORE, false) && !opd_device_debug_set(MORE, false));
    OPD_SCOPE {
        t = to(vec(3), more_at(1));
        CHECK_INT(opd_tensor_record_stream(opd_select(t, 0, 1), s), 0);     /* a view: all of its memory */
        MORE_SAID("used 1 1 101; ");
        CHECK_INT(opd_tensor_record_stream(vec(2), s), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "record_stream: a tensor on cpu is not used by streams of xpu");
        CHECK_INT(opd_tensor_record_stream(NULL, s), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "record_stream: a tensor on no device is not used by streams of xpu");
        CHECK_INT(opd_tensor_record_stream(opd_empty(opd_ints_of(&none, 1), OPD_FLOAT32), s), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "record_stream: a tensor on cpu");
    }
    opd_stream_free(s);
    CHECK_INT(opd_backend_unregister(MORE), 0);
}
/* Each of these functions may fail, may be missing, or may get a device that does not exist. */
static int asked_of(int what, opd_device device, int64_t id, opd_tensor *tensor) {
    const int64_t n = 3;
    opd_device_event event;
    opd_stream stream;
    event.device = stream.device = device;
    event.id = stream.id = id;
    switch (what) {
        case 0: return opd_device_event_new(device, false).id ? 0 : -1;
        case 1: return opd_device_event_record(event, stream);
        case 2: return opd_stream_wait_event(stream, event);
        case 3: return opd_device_event_synchronize(event);
        case 4: return opd_device_event_done(event) == 1 ? 0 : -1;
        case 5: return opd_device_event_elapsed(event, event) >= 0 ? 0 : -1;
        case 6: return opd_capture_begin(stream);
        case 7: return opd_capture_end(stream) ? 0 : -1;
        case 8: return opd_tensor_new_pinned(opd_ints_of(&n, 1), OPD_INT8, (opd_backend)device.type) ? 0 : -1;
        case 9: return opd_device_empty_cache(device);
        default: return opd_tensor_record_stream(tensor, stream);
    }
}
TEST(what_a_backend_lacks_or_fails_in) {
    static const struct { const char *fails, *lacks; } rows[] = {
        {"event_new failed", "npu has no events"}, {"event_record failed", "npu has no events"},
        {"event_wait failed", "npu has no events"}, {"event_synchronize failed", "npu has no events"},
        {"event_done failed", "npu has no events"}, {"event_elapsed failed", "npu has no events"},
        {"capture_begin failed", "npu has no captures"}, {"capture_end failed", "npu has no captures"},
        {"an allocation of 3 bytes of pinned memory failed", "npu has no pinned memory"}, {"empty_cache failed", NULL},
        {"record_stream failed", NULL},
    };
    const int n = (int)(sizeof rows / sizeof rows[0]);
    opd_backend_desc d;
    opd_stream none;
    char text[80];
    int i;
    more_on();
    dev_on(false);
    more.fails = 1;
    for (i = 0; i < n; i++) {
        OPD_SCOPE {
            CHECK_INT(asked_of(i, more_at(1), 101, to(vec(3), more_at(1))), -1);
            (void)snprintf(text, sizeof text, "xpu: %s", rows[i].fails);
            CHECK_ERROR(i == 8 ? OPD_ERROR_MEMORY : OPD_ERROR_KERNEL, text);
            CHECK_INT(asked_of(i, unit(1), 101, to(vec(3), unit(1))), rows[i].lacks ? -1 : 0);
            if (rows[i].lacks) { CHECK_ERROR(OPD_ERROR_ARGUMENT, rows[i].lacks); }
            CHECK_INT(asked_of(i, opd_device_make(OPD_XLA, 0), 101, vec(3)), -1);
            CHECK_ERROR(i == 10 ? OPD_ERROR_ARGUMENT : OPD_ERROR_NO_KERNEL, "xla");
        }
    }
    CHECK(!opd_device_debug_set(NPU, true) && !opd_device_debug_set(OPD_XLA, true));
    CHECK_INT(opd_backend_unregister(MORE), 0);
    /* a device without streams of its own, registered as before there were events */
    d = dev_desc(NULL);
    d.stream_new = NULL; d.stream_free = NULL; d.stream_get = NULL; d.stream_set = NULL; d.stream_wait = NULL;
    d.stream_synchronize = NULL;
    CHECK_INT(opd_backend_register_first(MORE, &d), 0);
    none = opd_stream_new(more_at(1));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "xpu has no streams");
    CHECK_INT(none.id, 0);
    dev.syncs = 0;
    CHECK(opd_stream_wait(none, none) == 0 && dev.syncs == 1);      /* no queue: the host waits */
    CHECK_INT(opd_backend_unregister(MORE), 0);
    opd_backend_missing_set(OPD_HPU, "no driver of it is here");
    CHECK(opd_zeros_full(OPD_INTS(1), OPD_NONE, OPD_NONE, opd_value_device(opd_device_make(OPD_HPU, 0)), OPD_NONE) == NULL);
    CHECK_ERROR(OPD_ERROR_NO_KERNEL, "no allocator for device hpu: no driver of it is here");
    opd_backend_missing_set(OPD_HPU, NULL);
}
/* Operators on the device that return lists or views, or write to a copy of their argument. */
static int two_of(opd_call *call) {
    opd_tensor *two[2];
    two[0] = opd_arg_tensor(call, 0);
    two[1] = two[0] ? opd_add(two[0], two[0]) : NULL;
    return two[1] ? opd_return_tensors(call, two, 2) : -1;
}
static int first_of(opd_call *call) { return opd_return_tensor(call, opd_arg_tensor(call, 0)); }
static int fake_like(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    return opd_result(call, 0, opd_sizes(x), opd_ndim(x), opd_dtype(x)) ? 0 : -1;
}
static int updates(opd_call *call) {                      /* x with its first element taken to be 9 */
    const float nine = 9;
    opd_tensor *out = opd_result_update(call);
    return out && dev_copy(&dev, opd_device_data(out, NPU), 0, &nine, -1, sizeof nine) == 0 ? 0 : -1;
}
static int times_itself(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_mul(in[0], in[0]);
    return out[0] ? 1 : -1;
}
TEST(lists_views_and_updates_on_the_device) {
    static const float doubled[] = {-4, -2, 0}, updated[] = {9, -1, 0}, as_it_was[] = {-2, -1, 0};
    opd_library *lib = opd_library_open(OPD_DEF, "devlists", NULL, __FILE__, __LINE__);
    opd_tensor *x, *y, *out, *along;
    opd_value arg, ret;
    dev_on(true);
    CHECK(opd_def(lib, "two(Tensor x) -> Tensor[]") == 0 && opd_impl_key(lib, "two", "CPU", two_of, NULL, NULL) == 0);
    CHECK(opd_def(lib, "look(Tensor(a) x) -> Tensor(a)") == 0 && opd_impl_key(lib, "look", "CPU", first_of, NULL, NULL) == 0);
    CHECK_INT(opd_def(lib, "update(Tensor x) -> Tensor"), 0);
    CHECK(opd_fake_register(lib, "update", fake_like) == 0 &&
          opd_impl_key(lib, "update", "PrivateUse1", updates, NULL, NULL) == 0);
    x = up(vec(3));
    arg = opd_value_tensor(x);
    CHECK_INT(opd_call_all(opd_find("devlists::two"), &ret, &arg, 1), 0);
    CHECK_OR_RETURN(ret.tag == OPD_TAG_TENSORS && ret.n == 2);
    CHECK_INT(opd_tensor_device(ret.u.tensors[1]).type, NPU);
    CHECK_TENSOR(here(ret.u.tensors[1]), doubled, 0);
    CHECK(opd_call_op(opd_find("devlists::look"), &arg, 1) == NULL);
    CHECK_ERROR(OPD_ERROR_NO_KERNEL, "devlists::look returns a view of its argument, so it cannot be computed on the CPU for npu");
    y = opd_call_op(opd_find("devlists::update"), &arg, 1);
    CHECK_TENSOR(here(y), updated, 0);
    CHECK_TENSOR(here(x), as_it_was, 0);
    y = vec(3);
    CHECK_INT(opd_jvp(times_itself, NULL, &x, &y, 1, NULL, &out, &along, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "jvp: tangent:0 is on another device than the corresponding primal");
    opd_library_close(lib);
}
TEST(precision_of_products) {                             /* torch.set_float32_matmul_precision("high") */
    CHECK(opd_float32_matmul_precision_set(OPD_MATMUL_HIGH) == OPD_MATMUL_HIGHEST);
    CHECK(opd_float32_matmul_precision() == OPD_MATMUL_HIGH);
    CHECK(opd_float32_matmul_precision_set(OPD_MATMUL_HIGHEST) == OPD_MATMUL_HIGH);
    CHECK(opd_float32_matmul_precision() == OPD_MATMUL_HIGHEST);
}

/* torch.use_deterministic_algorithms, for a kernel of the program. */
static char warned_text[200];
static int warnings;
static void note_warning(void *user, int is_error, const char *text) {
    (void)user;
    if (is_error == 0) { warnings++; (void)snprintf(warned_text, sizeof warned_text, "%s", text); }
}
static int in_any_order(opd_call *call) {
    return opd_deterministic_alert(call, " of ones") ? -1 : opd_return_tensor(call, opd_clone(opd_arg_tensor(call, 0)));
}
TEST(deterministic_results) {
    opd_library *lib = opd_library_open(OPD_DEF, "anyorder", NULL, __FILE__, __LINE__);
    opd_tensor *x = vec(3);
    opd_op *op;
    CHECK(lib && opd_def(lib, "sum(Tensor x) -> Tensor") == 0 && opd_impl_key(lib, "sum", "CPU", in_any_order, NULL, NULL) == 0);
    op = opd_find("anyorder::sum");
    CHECK_INT(opd_deterministic_mode(), OPD_DETERMINISTIC_OFF);
    CHECK(OPD_CALL(op, x) != NULL);
    CHECK_INT(opd_deterministic_set(OPD_DETERMINISTIC_ERROR), OPD_DETERMINISTIC_OFF);
    CHECK(OPD_CALL(op, x) == NULL);
    CHECK_ERROR(OPD_ERROR_NO_KERNEL, "anyorder::sum of ones has no deterministic implementation, and opd_deterministic_set");
    CHECK_INT(opd_deterministic_set(OPD_DETERMINISTIC_WARN), OPD_DETERMINISTIC_ERROR);
    (void)opd_log_set(note_warning, NULL);
    for (int i = 0; i < 3; i++) { CHECK(OPD_CALL(op, x) != NULL); }
    (void)opd_log_set(NULL, NULL);
    CHECK_INT(warnings, 1);
    CHECK(strcmp(warned_text, "anyorder::sum of ones has no deterministic implementation: its results may differ in each run") == 0);
    CHECK_INT(opd_deterministic_set((opd_deterministic)7), OPD_DETERMINISTIC_WARN);
    CHECK_INT(opd_deterministic_set(OPD_DETERMINISTIC_OFF), OPD_DETERMINISTIC_OFF);
    opd_library_close(lib);
    CHECK_OK();
}

//-- the CPU runs missing kernels --------------------------------------------------------------------------------------

TEST(the_fallback_counts) {
    static const float want[] = {4, 1, 0};
    opd_tensor *a, *s, *i[2];
    int before;
    opd_value v[2];
    dev_on(true);
    a = to(vec(3), unit(1));
    before = dev.fallbacks;
    CHECK_TENSOR(here(opd_mul(a, a)), want, 0);
    CHECK(dev.fallbacks == before + 1 && opd_tensor_device(opd_mul(a, a)).index == 1);
    CHECK(opd_t(opd_reshape(a, OPD_INTS(1, 3))) && dev.fallbacks == before + 2);          /* views need none */
    CHECK(OPD_CALL(opd_find("aten::mul_.Tensor"), a, a) == a && dev.fallbacks == before + 3);
    CHECK_TENSOR(here(a), want, 0);
    v[0] = opd_value_tensor(a); v[1] = opd_value_int(0);
    CHECK_INT(opd_call_tensors(opd_find("aten::sort"), i, v, 2), 0);
    CHECK(i[0] && i[1] && opd_tensor_device(i[0]).index == 1 && opd_tensor_device(i[1]).index == 1 &&
          opd_dtype(i[1]) == OPD_INT64);
    s = opd_zeros_full(OPD_INTS(0), OPD_NONE, OPD_NONE, at(1), OPD_NONE);         /* an out= that grows */
    CHECK(OPD_CALL(opd_find("aten::mul.out"), a, a, s) == s && opd_numel(s) == 3);
    CHECK_STR(printed(s), "tensor([16.,  1.,  0.], device='npu:1')");
    CHECK(opd_mul(a, opd_tensor_wrapped_number(opd_value_double(0.5))) != NULL);
    CHECK(opd_mm(a, a) == NULL);                          /* the CPU's own error */
    CHECK_ERROR(OPD_ERROR_SHAPE, "matri");
}
/* Autograd needs no code for the device. */
TEST(autograd_on_the_device) {
    opd_tensor *x[2], *w[2], *y, *g[2], *both[2];
    opd_library *lib;
    int k;
    dev_on(true);
    lib = own_open();
    opd_manual_seed(3);
    x[0] = opd_randn(OPD_INTS(4, 5), OPD_FLOAT32);
    w[0] = opd_tensor_set_requires_grad(opd_randn(OPD_INTS(5, 4), OPD_FLOAT32), true);
    x[1] = to(x[0], unit(1));
    w[1] = opd_tensor_set_requires_grad(to(opd_detach(w[0]), unit(1)), true);
    for (k = 0; k < 2; k++) {
        y = opd_tanh(opd_mm(x[k], w[k]));
        y = opd_sum(opd_mul(y, y));
        CHECK_INT(opd_backward(y), 0);
        y = opd_sum(opd_exp(opd_select(w[k], 0, 2)));     /* accumulates */
        CHECK_INT(opd_backward(y), 0);
        g[k] = opd_tensor_grad(w[k]);
    }
    CHECK(g[1] && opd_tensor_device(g[1]).type == NPU && opd_tensor_device(g[1]).index == 1 && dev.current == 0);
    CHECK_TENSOR(here(g[1]), opd_data_f32(g[0]), 1e-6);
    /* second derivatives */
    for (k = 0; k < 2; k++) {
        opd_backward_options o;
        opd_tensor *first;
        memset(&o, 0, sizeof o);
        o.create_graph = true;
        y = opd_sum(opd_mul(opd_mul(w[k], w[k]), w[k]));
        CHECK_INT(opd_autograd_grad(&y, 1, &w[k], 1, &o, &first), 0);
        y = opd_sum(first);
        CHECK_INT(opd_autograd_grad(&y, 1, &w[k], 1, NULL, &both[k]), 0);
    }
    CHECK_TENSOR(here(both[1]), opd_data_f32(both[0]), 1e-6);
    y = opd_mul(w[1], w[1]);
    CHECK(strstr(printed(y), "], device='npu:1',\n       grad_fn=<MulBackward0>)") != NULL);
    opd_library_close(lib);
}
/* An optimizer, gradient clipping and gradcheck with memory that the host cannot touch. */
static int checked_on_device(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    out[0] = opd_tanh(opd_mm(in[0], in[1]));
    return n == 2 ? 1 : -1;
}
TEST(training_on_the_device) {
    opd_tensor *w[2], *in[2];
    int k, step;
    dev_on(true);
    opd_manual_seed(5);
    w[0] = opd_tensor_set_requires_grad(opd_randn(OPD_INTS(3, 4), OPD_FLOAT32), true);
    w[1] = opd_tensor_set_requires_grad(to(opd_detach(w[0]), unit(1)), true);
    for (k = 0; k < 2; k++) {
        opd_optimizer *adam = opd_adam_new(&w[k], 1, NULL);
        for (step = 0; step < 3; step++) {
            CHECK_INT(opd_backward(opd_sum(opd_mul(opd_exp(w[k]), w[k]))), 0);
            CHECK(opd_clip_grad_norm(&w[k], 1, 0.5, 2, true) != NULL);
            CHECK_INT(opd_optimizer_step(adam), 0);
            CHECK_INT(opd_optimizer_zero_grad(adam), 0);
        }
        opd_optimizer_free(adam);
    }
    CHECK_TENSOR(here(opd_detach(w[1])), opd_data_f32(w[0]), 1e-6);
    for (k = 0; k < 2; k++) { in[k] = opd_tensor_set_requires_grad(to(opd_rand(OPD_INTS(2, 2), OPD_FLOAT64), unit(0)), true); }
    CHECK_INT(opd_gradcheck(checked_on_device, NULL, in, 2, NULL), 0);
    CHECK_INT(opd_gradgradcheck(checked_on_device, NULL, in, 2, NULL, NULL), 0);
}
/* A gradient is on the same device as its input. */
TEST(autograd_between_devices) {
    opd_tensor *x, *y;
    static const float want[] = {-4, -2, 0};
    dev_on(true);
    x = opd_tensor_set_requires_grad(vec(3), true);
    y = up(x);
    y = to(opd_mul(y, y), unit(2));
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK(opd_tensor_device(opd_tensor_grad(x)).type == OPD_CPU);
    CHECK_TENSOR(opd_tensor_grad(x), want, 0);
    y = opd_zeros_full(OPD_INTS(3), OPD_NONE, OPD_NONE, at(1), OPD_NONE);
    CHECK_INT(opd_tensor_set_grad(x, NULL), 0);
    CHECK_INT(opd_backward(opd_sum(opd_copy_(y, opd_mul(x, x)))), 0);
    CHECK_TENSOR(opd_tensor_grad(x), want, 0);
    x = opd_tensor_set_requires_grad(opd_select(vec(3), 0, 0), true);     /* a number beside tensors of the device */
    CHECK_INT(opd_backward(opd_sum(opd_mul(up(vec(3)), x))), 0);
    CHECK(opd_tensor_device(opd_tensor_grad(x)).type == OPD_CPU && opd_item_f64(opd_tensor_grad(x)) == -3);
    CHECK(opd_tensor_set_grad(x, up(opd_detach(x))) == -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "different size, dtype or device");
    CHECK(opd_backward_with(&y, 1, NULL) == -1);
    opd_error_clear();
}

//-- every operator ----------------------------------------------------------------------------------------------------

static opd_tensor *moved(opd_tensor *t) { return t ? to(t, unit(1)) : NULL; }
/* The case's arguments on the device; a device argument or, without tensors, its place. */
static void case_up(op_case *c) {
    int i, k;
    for (i = 0; i < c->nargs; i++) {
        if (c->args[i].tag == OPD_TAG_TENSOR) { c->args[i].u.t = moved(c->args[i].u.t); }
        for (k = 0; c->args[i].tag == OPD_TAG_TENSORS && k < c->args[i].n; k++) {
            c->lists[i].tensors[k] = moved(c->lists[i].tensors[k]);
        }
        if (strcmp(opd_schema_arg_name(opd_op_schema(c->op), i), "device") == 0 && c->args[i].tag == OPD_TAG_DEFAULT) {
            c->args[i] = at(1);
        }
    }
}
/* Returns whether a and b agree.  The tolerance is relative to each element and to the largest one, because elements of
   attention's derivative may cancel out. */
static bool same(const opd_tensor *a, const opd_tensor *b) {
    double most = 0;
    int64_t i;
    if (opd_ndim(a) != opd_ndim(b) || opd_dtype(a) != opd_dtype(b) ||
        memcmp(opd_sizes(a), opd_sizes(b), (size_t)opd_ndim(a) * sizeof(int64_t)) != 0) { return false; }
    for (i = 0; i < opd_numel(a); i++) { if (isfinite(case_get(a, i))) { most = fmax(most, fabs(case_get(a, i))); } }
    for (i = 0; i < opd_numel(a); i++) {
        double x = case_get(a, i), y = case_get(b, i);
        if (x != y && !(fabs(x - y) <= 1e-5 * fabs(x) + 1e-6 * most) && x == x) { return false; }
    }
    return true;
}
/* Returns whether the results of an operator are unpredictable. */
static bool unsaid(const opd_op *op) {
    const char *name = opd_op_name(op);
    return strstr(name, "empty") || strstr(name, "resize") || strstr(name, "cumprod_backward");     /* of no cumprod */
}
/* Runs the case that text begins with: on the device or the CPU; its results, or (grad) the gradient of its first
   floating tensor.  How many, -1: it failed, -2: there is none.  *next: the case after it. */
static int run(const opd_op *op, const char *text, bool device, bool grad, opd_tensor **out, const char **next) {
    static op_case c;
    opd_value rets[16];
    opd_tensor *leaf = NULL;
    int i, n = 0;
    c.op = op; c.dtype = OPD_FLOAT32; c.layout = CASE_CONTIGUOUS; c.smooth = grad; c.meta = false;
    *next = text;
    if (!case_read_next(&c, next)) { *next = text + strlen(text); return -2; }
    opd_manual_seed(7);
    if (device) { case_up(&c); }
    for (i = 0; i < c.nargs && grad; i++) {
        if (c.args[i].tag == OPD_TAG_TENSOR && opd_dtype_is_floating(opd_dtype(c.args[i].u.t))) {
            leaf = opd_tensor_set_requires_grad(c.args[i].u.t, true);
            break;
        }
    }
    if (grad && (!leaf || opd_schema_is_mutable(opd_op_schema(op)))) { return -2; }
    if (opd_call_all((opd_op *)(uintptr_t)op, rets, c.args, c.nargs)) { return -1; }
    n = results_of(op, rets, out);
    if (!grad) { return n; }
    for (i = 0; i < n && !(out[i] && opd_tensor_requires_grad(out[i])); i++) { }
    if (i == n) { return 0; }
    leaf = opd_keep(leaf);
    n = opd_backward(opd_sum(opd_mul(out[i], out[i])));
    out[0] = opd_tensor_grad(leaf);
    opd_release(leaf);                            /* the scope has it */
    return n ? -1 : out[0] ? 1 : 0;
}
TEST(every_operator_on_the_device) {
    const opd_op *op;
    int ran = 0, wrong = 0, grads = 0, mode, k;
    dev_on(true);
    for (op = opd_op_next(NULL); op; op = opd_op_next(op)) {
        const opd_op_desc *card = opd_op_card(op);
        const char *text = card && cases_of(op) ? cases_of(op) : "", *next = text;
        if (!check_walks(opd_op_name(op))) { continue; }
        for (; *text && strncmp(opd_op_name(op), "aten::", 6) == 0; text = next) {
            for (mode = 0; mode < 2; mode++) OPD_SCOPE {
                opd_tensor *want[32], *got[32];
                char why[300] = "";
                int n = run(op, text, false, mode, want, &next), m;
                opd_error_clear();
                m = run(op, text, true, mode, got, &next);
                (void)snprintf(why, sizeof why, "%s", opd_error_message());
                opd_error_clear();
                if (n != m) {
                    printf("%s, %s: %d and %d, %s\n", opd_op_name(op), mode ? "gradient" : "results", n, m, why);
                    wrong++;
                }
                for (k = 0; k < n && n == m; k++) {
                    bool fine = !want[k] == !got[k];
                    if (fine && got[k]) {
                        fine = opd_tensor_device(got[k]).type == NPU && opd_tensor_device(got[k]).index == 1 &&
                            (unsaid(op) || same(want[k], here(got[k])));
                    }
                    if (!fine) {
                        printf("%s, %s: %s\n", opd_op_name(op), mode ? "gradient" : "result", printed(got[k]));
                        wrong++;
                    }
                }
                ran += mode == 0 && n > 0;
                grads += mode == 1 && n > 0;
            }
        }
    }
    CHECK(getenv("CHECK_PART") ? grads > 10 : grads > 300);
    CHECK(getenv("CHECK_PART") ? ran > 20 : ran > 500);
    CHECK_INT(wrong, 0);
    CHECK(dev.current == 0 && dev.open == 0);
}

/* native_batch_norm writes to its running statistics, although its schema does not say so. */
TEST(what_no_schema_says_is_written_comes_back) {
    opd_tensor *x, *mean, *var, *rets[3];
    dev_on(true);
    x = to(opd_arange(opd_value_double(8), OPD_FLOAT32), unit(1));
    x = opd_view(x, OPD_INTS(4, 2));
    mean = to(opd_zeros(OPD_INTS(2), OPD_FLOAT32), unit(1));
    var = to(opd_ones(OPD_INTS(2), OPD_FLOAT32), unit(1));
    CHECK_INT(opd_tensor_version(mean), 0);
    CHECK_INT(opd_native_batch_norm(rets, x, NULL, NULL, mean, var, true, 0.5, 1e-5), 0);
    CHECK_OK();
    CHECK_NEAR(opd_item_f64(opd_sum(here(mean))), 3.5, 1e-5);
    CHECK_NEAR(opd_item_f64(opd_sum(here(var))), 1 + 20 / 3., 1e-5);
    CHECK_INT(opd_tensor_version(mean), 1);
    CHECK_INT(opd_tensor_version(x), 0);
}

CHECK_MAIN()
