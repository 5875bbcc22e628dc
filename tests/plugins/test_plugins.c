/* Plug-ins that are compiled, loaded, used and unloaded: code that must stay loaded, registrations that are undone,
   failing allocations, and the cache of compiled code.  THREADED.  linkage.sh tests how libraries are linked, and
   which ones are refused. */
#include "../../opdispatch.h"
#include "../check.h"

#if defined(__unix__) && !defined(OPD_NO_PLUGINS)
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#if !defined(OPD_NO_THREADS)
#include <pthread.h>
#endif

//-- sources, and where they are compiled ------------------------------------------------------------------------------

static char cache[600];

static void clean_up(void) {
    char command[700];
    snprintf(command, sizeof command, "rm -rf '%s'", cache);
    if (*cache && system(command)) { printf("cannot remove %s\n", cache); }
}
/* Uses a separate cache for this run, and the header of this source tree. */
static void set_up(void) {
    const char *tmp = getenv("TMPDIR");
    if (*cache) { return; }
    (void)setenv("OPD_INCLUDE", check_include(), 0);
    snprintf(cache, sizeof cache, "%s/opd_plugins.%ld", tmp && *tmp == '/' ? tmp : "/tmp", (long)getpid());
    (void)mkdir(cache, 0700);
    (void)setenv("XDG_CACHE_HOME", cache, 1);
    (void)atexit(clean_up);
}

#define TWICE_CODE \
    "#include \"opdispatch.h\"\n" \
    "static int twice(opd_call *call) {\n" \
    "    opd_tensor *x = opd_arg_tensor(call, 0);\n" \
    "    return opd_return_tensor(call, opd_add(x, x));\n" \
    "}\n" \
    "static int twice_backward(opd_backward_call *bw) {\n" \
    "    return opd_bw_return(bw, 0, opd_mul_Scalar(opd_bw_grad(bw, 0), opd_value_double(2)));\n" \
    "}\n"
static const char twice_source[] = TWICE_CODE
    "static int told;\n"
    "static void end(void *data, void *user) { (void)data; ++*(int *)user; told++; }\n"
    "static int wrapped(opd_call *call) {\n"          /* a tensor with a deleter of this library */
    "    static float own[2] = {3, 4};\n"              /* over its own data, or over the program's */
    "    int64_t two = 2;\n"
    "    void *theirs = (void *)(uintptr_t)opd_arg_int(call, 0);\n"
    "    return opd_return_tensor(call, opd_tensor_wrap(theirs ? theirs : own, opd_ints_of(&two, 1), NULL,\n"
    "        theirs ? OPD_INT32 : OPD_FLOAT32, theirs ? end : NULL, theirs));\n"
    "}\n"
    "static int by_hand(opd_call *call) {\n"
    "    opd_tensor *x = opd_arg_tensor(call, 0), *y;\n"
    "    opd_key_guard g = opd_keys_exclude(opd_keyset_make(OPD_BIT_OF(OPD_F_AUTOGRAD), 0));\n"
    "    y = opd_add(x, x);\n"
    "    opd_keys_restore(g);\n"
    "    if (!y) { return -1; }\n"
    "    (void)opd_autograd_record(\"HandBackward\", twice_backward, &x, 1, NULL, 0, NULL, 0, &y, 1);\n"
    "    return opd_return_tensor(call, y);\n"
    "}\n"
    "static void gone(void *user) { ++*(int *)user; }\n"
    "static int user_kernel(opd_call *call) { return opd_return_int(call, *(int *)opd_call_user(call)); }\n"
    "static int counts[1];\n"
    "static int destroyed(opd_call *call) { return opd_return_int(call, (int64_t)(uintptr_t)counts); }\n"
    "OPD_LIBRARY(plug, lib) {\n"
    "    opd_op_desc d = {0};\n"
    "    d.schema = \"twice(Tensor x) -> Tensor\"; d.cpu = twice; d.backward = twice_backward;\n"
    "    d.inplace = \"twice_\"; d.out = \"twice.out\";\n"
    "    opd_define(lib, &d);\n"
    "    opd_def(lib, \"wrapped(int counter) -> Tensor\"); opd_impl(lib, \"wrapped\", wrapped);\n"
    "    opd_def(lib, \"hand(Tensor x) -> Tensor\"); opd_impl_key(lib, \"hand\", \"Autograd\", by_hand, NULL, NULL);\n"
    "    opd_impl_key(lib, \"hand\", \"CPU\", twice, NULL, NULL);\n"
    "    opd_def(lib, \"user() -> int\"); opd_impl_key(lib, \"user\", NULL, user_kernel, counts, gone);\n"
    "    opd_def(lib, \"destroyed() -> int\"); opd_impl(lib, \"destroyed\", destroyed);\n"
    "}\n"
    /* and a kernel of a built-in operator */
    "OPD_LIBRARY_IMPL(aten, CPU, lib) { opd_impl(lib, \"neg\", twice); }\n";

static void hush(void *user, int is_error, const char *text) { (void)user; (void)is_error; (void)text; }
static opd_plugin *load_twice(void) {
    opd_plugin *p;
    set_up();
    opd_log_set(hush, NULL);                      /* that neg has another kernel is what we want */
    p = opd_compile_and_load_inline("twice", twice_source, NULL);
    opd_log_set(NULL, NULL);
    return p;
}

/* Returns the number of files of the cache that are mapped into this program. */
static int mapped(void) {
    char line[1200];
    int n = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof line, f)) { n += strstr(line, cache) != NULL && strstr(line, "r-xp") != NULL; }
    if (f) { (void)fclose(f); }
    return n;
}
/* What this thread's code is in now keeps it mapped; of other threads nothing is known. */
static void check_unmapped(void) { CHECK_INT(mapped(), 0); }

static opd_tensor *leaf(void) {
    static const float data[] = {1, 2, 3};
    int64_t n = 3;
    opd_tensor *x = opd_tensor_from(data, opd_ints_of(&n, 1), OPD_FLOAT32);
    return opd_tensor_set_requires_grad(x, true);
}
static opd_tensor *call1(const char *name, opd_value v) { return opd_call_op(opd_find(name), &v, 1); }

//-- loading and unloading ---------------------------------------------------------------------------------------------

TEST(load_call_unload) {
    opd_plugin *p = load_twice();
    opd_scope scope = opd_scope_open();
    opd_tensor *x = leaf(), *y;
    CHECK_OK();
    CHECK(p && opd_plugin_next(NULL) == p && !opd_plugin_next(p));
    CHECK(strncmp(opd_plugin_path(p), cache, strlen(cache)) == 0);
    y = call1("plug::twice", opd_value_tensor(x));
    CHECK(y && opd_data_f32(y)[2] == 6);
    opd_scope_close(&scope);
    CHECK_INT(opd_plugin_unload(p), 0);
    CHECK(!opd_find_quiet("plug::twice") && !opd_find_quiet("plug::twice_") && !opd_plugin_next(NULL));
    CHECK_INT(opd_check_invariants(), 0);
    check_unmapped();
}
#if !defined(CHECK_SANITIZED)
/* A tensor whose scope was one of a plug-in says so; the place is not read once the plug-in is unmapped. */
static const char scope_source[] =
    "#include \"opdispatch.h\"\n"
    "static int leaks(opd_call *call) {\n"
    "    opd_tensor *t = 0;\n"
    "    OPD_SCOPE { t = opd_ones(OPD_INTS(2), OPD_FLOAT32); }\n"
    "    return opd_return_int(call, (int64_t)(intptr_t)t);\n"
    "}\n"
    "OPD_LIBRARY(leaks, lib) { opd_def(lib, \"leaks() -> int\"); opd_impl(lib, \"leaks\", leaks); }\n";
TEST(place_of_a_scope_of_a_plugin) {
    opd_plugin *p;
    opd_tensor *t;
    set_up();
    p = opd_compile_and_load_inline("leaks", scope_source, NULL);
    CHECK_OR_RETURN(p != NULL);
    t = (opd_tensor *)(intptr_t)opd_call_value(opd_find("leaks::leaks"), NULL, 0).u.i;
    CHECK(!opd_exp(t));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "has been freed: the scope ");                  /* where none was unmapped: begins at */
    t = (opd_tensor *)(intptr_t)opd_call_value(opd_find("leaks::leaks"), NULL, 0).u.i;
    CHECK_INT(opd_plugin_unload(p), 0);
    check_unmapped();
    CHECK(!opd_exp(t));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "has been freed: the scope of the tensor has ended, or it was released");
}
#endif
/* A plug-in whose kernel calls the one that it replaces, and keeps a tensor.  The program has a handle of the plug-in's
   kernel.  Once the plug-in is unmapped, the handle fails, and the place of the tensor is not read. */
static const char over_source[] =
    "#include \"opdispatch.h\"\n"
    "static int over(opd_call *call) {\n"
    "    opd_value ret;\n"
    "    if (opd_kernel_call_with(opd_call_user(call), &ret, opd_call_args(call), 1)) { return -1; }\n"
    "    return opd_return_tensor(call, opd_keep(opd_add(ret.u.t, ret.u.t)));\n"
    "}\n"
    "OPD_LIBRARY_IMPL(aten, CPU, lib) {\n"
    "    opd_impl_key(lib, \"neg\", \"CPU\", over, opd_kernel_get(opd_find(\"aten::neg\"), \"CPU\"), opd_kernel_free);\n"
    "}\n";
static const char *place_of(const opd_tensor *tensor) {
    static opd_kept kept[64];
    const size_t count = opd_kept_list(kept, 64);
    for (size_t i = 0; i < count && i < 64; i++) { if (kept[i].tensor == tensor) { return kept[i].place; } }
    return "not kept";
}
TEST(handles_of_kernels_and_plugins) {
    opd_scope scope = opd_scope_open();
    opd_tensor *x = leaf(), *y;
    const opd_value v = opd_value_tensor(x);
    opd_value ret;
    const size_t before = opd_kept_list(NULL, 0);
    set_up();
    opd_log_set(hush, NULL);
    opd_plugin *p = opd_compile_and_load_inline("over", over_source, NULL);
    opd_log_set(NULL, NULL);
    CHECK_OR_RETURN(p != NULL);
    opd_kernel_handle *handle = opd_kernel_get(opd_find("aten::neg"), "CPU");
    CHECK_INT(opd_kernel_call_with(handle, &ret, &v, 1), 0);
    y = ret.u.t;
    CHECK(y && opd_data_f32(y)[2] == -6);
    CHECK_INT((int)opd_kept_list(NULL, 0), (int)before + 1);
    /* a place at an address where another plug-in was unmapped is not read */
    CHECK(strstr(place_of(y), ".c:5") != NULL || strcmp(place_of(y), "a plug-in that was unloaded") == 0);
    CHECK_INT(opd_plugin_unload(p), 0);
    check_unmapped();
    CHECK_INT(opd_kernel_call_with(handle, &ret, &v, 1), -1);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "the kernel of aten::neg for CPU (registered at ");
    CHECK(opd_data_f32(opd_neg(x))[2] == -3);
#if !defined(CHECK_SANITIZED)
    CHECK_STR(place_of(y), "a plug-in that was unloaded");
#endif
    opd_release(y);
    opd_kernel_free(handle);
    opd_scope_close(&scope);
}
TEST(second_load_is_the_first) {
    opd_plugin *p = load_twice(), *q = load_twice();
    char path[1100];
    CHECK(p && p == q);
    snprintf(path, sizeof path, "%s", opd_plugin_path(p));
    CHECK(opd_plugin_load(path) == p);
    CHECK_INT(opd_plugin_unload(p), 0);
    CHECK_INT(opd_plugin_unload(p), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "is not loaded");
    CHECK_INT(opd_plugin_unload(NULL), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "is not loaded");
    check_unmapped();
}
TEST(built_in_operator_gets_its_kernel_back) {
    opd_plugin *p;
    opd_scope scope = opd_scope_open();
    opd_tensor *x = leaf();
    CHECK(opd_data_f32(opd_neg(x))[0] == -1);
    p = load_twice();
    CHECK(opd_data_f32(opd_neg(x))[0] == 2);
    CHECK_INT(opd_plugin_unload(p), 0);
    CHECK(opd_data_f32(opd_neg(x))[0] == -1);
    opd_scope_close(&scope);
    check_unmapped();
}
/* Rules for vmap in a plug-in: a family by its name, a function; and a vmap that it runs. */
static const char vmap_source[] = TWICE_CODE
    "static int calls;\n"
    "static int rule(opd_call *call) {\n"
    "    int dim;\n"
    "    opd_tensor *x = opd_batch_arg(call, 0, &dim);\n"
    "    calls += (int)opd_batch_size();\n"
    "    return opd_batch_return(call, opd_add(x, x), dim);\n"
    "}\n"
    "static int sum_of(void *user, opd_tensor *const *in, int n, opd_tensor **out) {\n"
    "    (void)user; (void)n;\n"
    "    out[0] = opd_sum(in[0]);\n"
    "    return out[0] ? 1 : -1;\n"
    "}\n"
    "static int sums(opd_call *call) {\n"
    "    opd_tensor *x = opd_arg_tensor(call, 0), *out[OPD_TRANSFORM_OUTPUTS];\n"
    "    return opd_vmap(sum_of, NULL, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS) == 1 ? opd_return_tensor(call, out[0]) : -1;\n"
    "}\n"
    "static int count(opd_call *call) { return opd_return_int(call, calls); }\n"
    "OPD_LIBRARY(vplug, lib) {\n"
    "    opd_op_desc d = {0};\n"
    "    d.schema = \"ruled(Tensor x) -> Tensor\"; d.cpu = twice; d.vmap = rule; opd_define(lib, &d);\n"
    "    d.schema = \"pointwise(Tensor x) -> Tensor\"; d.vmap = OPD_BATCH_POINTWISE; opd_define(lib, &d);\n"
    "    opd_def(lib, \"sums(Tensor x) -> Tensor\"); opd_impl_key(lib, \"sums\", \"CPU\", sums, NULL, NULL);\n"
    "    opd_def(lib, \"count() -> int\"); opd_impl(lib, \"count\", count);\n"
    "}\n";
TEST(rules_for_vmap_in_a_plugin) {
    static const char *const names[] = {"vplug::ruled", "vplug::pointwise"};
    static const float data[] = {1, 2, 3, 4, 5, 6};
    const int64_t slow = opd_vmap_fallback_count();
    opd_plugin *p;
    opd_value r;
    int i, level;
    set_up();
    p = opd_compile_and_load_inline("vmaps", vmap_source, NULL);
    CHECK_OK();
    OPD_SCOPE {
        opd_tensor *x = opd_tensor_from(data, OPD_INTS(2, 3), OPD_FLOAT32), *y;
        for (i = 0; i < 2; i++) {
            level = opd_vmap_begin(3, OPD_RANDOM_ERROR);
            y = opd_vmap_unwrap(call1(names[i], opd_value_tensor(opd_vmap_wrap(x, 1, level))), 1, level);
            CHECK_INT(opd_vmap_end(level), 0);
            CHECK(y && opd_equal(y, opd_add(x, x)));
        }
        CHECK(opd_call_all(opd_find("vplug::count"), &r, NULL, 0) == 0 && r.u.i == 3);
        y = call1("vplug::sums", opd_value_tensor(x));
        CHECK(y && opd_numel(y) == 2 && opd_data_f32(y)[0] == 6 && opd_data_f32(y)[1] == 15);
    }
    CHECK_INT(opd_vmap_fallback_count() - slow, 0);
    CHECK_INT(opd_plugin_unload(p), 0);
    CHECK_INT(opd_check_invariants(), 0);
    check_unmapped();
}

/* Forward mode in a plug-in: rules by name, a rule of its own, duals that it makes. */
static const char forward_source[] = TWICE_CODE
    "static int own_jvp(opd_jvp_call *jv) {\n"
    "    return opd_jvp_return(jv, 0, opd_mul_Scalar(opd_jvp_tangent(jv, 0), opd_value_double(2)));\n"
    "}\n"
    "static int along(opd_call *call) {\n"
    "    opd_tensor *x = opd_arg_tensor(call, 0), *t = NULL;\n"
    "    OPD_DUAL_LEVEL { (void)opd_dual_unpack(opd_exp(opd_dual_new(x, opd_ones_like(x))), &t); }\n"
    "    return opd_return_tensor(call, t);\n"
    "}\n"
    "static void one(opd_library *lib, const char *schema, opd_backward_fn backward, opd_jvp_fn jvp) {\n"
    "    opd_op_desc d = {0};\n"
    "    d.schema = schema; d.cpu = twice; d.backward = backward; d.jvp = jvp;\n"
    "    opd_define(lib, &d);\n"
    "}\n"
    "OPD_LIBRARY(plugforward, lib) {\n"
    "    one(lib, \"by_formula(Tensor x) -> Tensor\", twice_backward, NULL);\n"
    "    one(lib, \"pointwise(Tensor x) -> Tensor\", twice_backward, OPD_JVP_POINTWISE);\n"
    "    one(lib, \"linear(Tensor x) -> Tensor\", twice_backward, OPD_JVP_LINEAR);\n"
    "    one(lib, \"own(Tensor x) -> Tensor\", NULL, own_jvp);\n"
    "    opd_def(lib, \"along(Tensor x) -> Tensor\"); opd_impl_key(lib, \"along\", NULL, along, NULL, NULL);\n"
    "}\n";
TEST(forward_mode_in_a_plugin) {
    static const char *const names[] = {"plugforward::by_formula", "plugforward::pointwise", "plugforward::linear", "plugforward::own"};
    opd_plugin *p;
    opd_scope scope = opd_scope_open();
    opd_tensor *x = opd_ones(OPD_INTS(3), OPD_FLOAT32), *t, *y;
    int i;
    set_up();
    p = opd_compile_and_load_inline("forward", forward_source, NULL);
    CHECK(p != NULL);
    CHECK_INT(opd_dual_level_begin(), 0);
    for (i = 0; i < 4; i++) {
        y = opd_dual_unpack(call1(names[i], opd_value_tensor(opd_dual_new(x, opd_full(OPD_INTS(3), OPD_V(5.0), OPD_FLOAT32)))), &t);
        CHECK(y && t && opd_data_f32(t)[2] == 10);
    }
    CHECK_INT(opd_dual_level_end(0), 0);
    y = call1("plugforward::along", opd_value_tensor(x));
    CHECK(y && fabs((double)opd_data_f32(y)[1] - 2.71828) < 1e-4);
    opd_scope_close(&scope);
    CHECK_INT(opd_plugin_unload(p), 0);
    CHECK_OK();
    check_unmapped();
}
static const char function_source[] = TWICE_CODE
    "#include <stdlib.h>\n"
    "static int setup(opd_context *ctx) {\n"
    "    opd_tensor *x = opd_context_tensor(ctx, 0);\n"
    "    return opd_context_set_data(ctx, malloc(1), free) || opd_context_save_for_backward(ctx, &x, 1);\n"
    "}\n"
    "static int square_backward(opd_backward_call *bw) {\n"
    "    opd_tensor *x = opd_context_saved(opd_bw_context(bw), 0);\n"
    "    return opd_bw_return(bw, 0, opd_mul(opd_bw_grad(bw, 0), opd_add(x, x)));\n"
    "}\n"
    "static int square_forward(opd_context *ctx) {\n"
    "    return setup(ctx) || opd_context_return(ctx, opd_square(opd_context_tensor(ctx, 0)));\n"
    "}\n"
    "static int by_function(opd_call *call) {\n"
    "    opd_autograd_function f = {0};\n"
    "    f.name = \"Square\"; f.forward = square_forward; f.backward = square_backward;\n"
    "    return opd_return_tensor(call, OPD_APPLY(&f, opd_arg_tensor(call, 0)));\n"
    "}\n"
    "static int square(opd_call *call) { return opd_return_tensor(call, opd_square(opd_arg_tensor(call, 0))); }\n"
    "OPD_LIBRARY(plugfn, lib) {\n"
    "    opd_def(lib, \"by_function(Tensor x) -> Tensor\"); opd_impl(lib, \"by_function\", by_function);\n"
    "    opd_def(lib, \"by_setup(Tensor x) -> Tensor\"); opd_impl_key(lib, \"by_setup\", \"CPU\", square, NULL, NULL);\n"
    "    opd_autograd_register(lib, \"by_setup\", square_backward, setup);\n"
    "    opd_def(lib, \"none(Tensor x) -> Tensor\"); opd_impl_key(lib, \"none\", \"CPU\", square, NULL, NULL);\n"
    "    opd_impl_key(lib, \"none\", \"Autograd\", opd_autograd_not_implemented, NULL, NULL);\n"
    "}\n";
TEST(custom_functions_of_a_plugin) {              /* their code stays as long as a node needs it */
    opd_scope scope = opd_scope_open();
    opd_plugin *p;
    opd_tensor *x = leaf(), *y[2];
    set_up();
    p = opd_compile_and_load_inline("functions", function_source, NULL);
    CHECK(p != NULL);
    y[0] = call1("plugfn::by_function", opd_value_tensor(x));
    y[1] = call1("plugfn::by_setup", opd_value_tensor(x));
    CHECK_INT(opd_backward(opd_sum(call1("plugfn::none", opd_value_tensor(x)))), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "derivative for plugfn::none is not implemented");
    CHECK_INT(opd_plugin_unload(p), 0);
    CHECK(mapped() > 0);
    CHECK_INT(opd_backward(opd_sum(opd_add(y[0], y[1]))), 0);
    CHECK_NEAR(opd_data_f32(opd_tensor_grad(x))[0], 4 * (double)opd_data_f32(x)[0], 1e-6);
    opd_scope_close(&scope);
    check_unmapped();
}

TEST(unload_under_a_pending_error) {
    opd_plugin *p = load_twice();
    (void)opd_fail(OPD_ERROR_USER, "mine");
    CHECK_INT(opd_plugin_unload(p), 0);
    CHECK(opd_plugin_load(cache) == NULL);
    CHECK_ERROR(OPD_ERROR_USER, "mine");
    check_unmapped();
}
TEST(user_pointers_are_destroyed) {
    opd_plugin *p = load_twice();
    int *counts;
    opd_plugin *other;
    CHECK_OR_RETURN(p != NULL);
    counts = (int *)(uintptr_t)opd_call_value(opd_find("plug::destroyed"), NULL, 0).u.i;
    other = p;
    /* one more thing of the library, so that its memory is there to look at */
    {
        opd_scope scope = opd_scope_open();
        opd_tensor *w = call1("plug::wrapped", opd_value_int(0));
        CHECK(w && opd_data_f32(w)[1] == 4);
        CHECK_INT(*counts, 0);
        CHECK_INT(opd_plugin_unload(other), 0);
        CHECK_INT(*counts, 1);
        *counts = 0;
        opd_scope_close(&scope);
    }
    check_unmapped();
}
TEST(handles_stay_valid) {
    opd_plugin *p = load_twice();
    opd_op *op = opd_find("plug::twice");
    opd_scope scope = opd_scope_open();
    opd_value v = opd_value_tensor(leaf());
    CHECK_INT(opd_plugin_unload(p), 0);
    CHECK(!opd_call_op(op, &v, 1));
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "the operator plug::twice is not defined any more: its plug-in was unloaded (opd_plugin_unload)");
    CHECK(!opd_find("plug::twice"));
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "the operator plug::twice is not defined any more: its plug-in was unloaded (opd_plugin_unload)");
    p = load_twice();
    CHECK(opd_find("plug::twice") == op && opd_call_op(op, &v, 1) != NULL);
    opd_scope_close(&scope);
    CHECK_INT(opd_plugin_unload(p), 0);
    check_unmapped();
}

static uintptr_t mapped_at(void) {
    char line[1200];
    unsigned long at = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && !at && fgets(line, sizeof line, f)) {
        if (strstr(line, cache)) { (void)sscanf(line, "%lx-", &at); }
    }
    if (f) { (void)fclose(f); }
    return at;
}
/* Tables, descriptors and backward functions that remain for running calls are freed with the code, even if the
   library is loaded at another address next time. */
TEST(again_and_again_does_not_grow) {
    enum { TIMES = 6 };
    void *taken[TIMES];
    uintptr_t at[TIMES];
    int64_t live[TIMES];
    int i;
    for (i = 0; i < TIMES; i++) {
        opd_plugin *p = load_twice();
        opd_scope scope = opd_scope_open();
        opd_tensor *x = leaf();
        (void)opd_backward(opd_sum(call1("plug::twice", opd_value_tensor(x))));
        (void)opd_backward(opd_sum(call1("plug::hand", opd_value_tensor(x))));
        (void)opd_neg(x);
        opd_scope_close(&scope);
        CHECK_OK();
        at[i] = mapped_at();
        CHECK_INT(opd_plugin_unload(p), 0);
        check_unmapped();
        live[i] = opd_memory_stats().live;
        /* so that the next time it is mapped somewhere else */
        taken[i] = mmap((void *)at[i], 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    CHECK(at[TIMES - 1] != at[TIMES - 2]);
    CHECK_INT(live[TIMES - 1], live[1]);
    for (i = 0; i < TIMES; i++) { (void)munmap(taken[i], 4096); }
}

//-- code that stays loaded --------------------------------------------------------------------------------------------

static void tape_keeps(const char *name) {
    opd_plugin *p = load_twice();
    opd_scope scope = opd_scope_open();
    opd_tensor *x = leaf(), *y = opd_keep(call1(name, opd_value_tensor(x)));
    CHECK_INT(opd_plugin_unload(p), 0);
    CHECK(!opd_find_quiet(name));
    CHECK_INT(mapped(), 1);
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK(opd_tensor_grad(x) && opd_data_f32(opd_tensor_grad(x))[1] == 2);
    opd_scope_close(&scope);
    CHECK_INT(mapped(), 1);
    opd_release(y);
    check_unmapped();
}
TEST(tape_node_keeps_code) { tape_keeps("plug::twice"); }
TEST(tape_node_by_hand_keeps_code) { tape_keeps("plug::hand"); }

TEST(deleter_keeps_code) {
    static int32_t ended[2];
    opd_plugin *p = load_twice();
    opd_scope scope = opd_scope_open();
    opd_tensor *w = opd_keep(call1("plug::wrapped", opd_value_int((int64_t)(uintptr_t)ended)));
    ended[0] = 0;
    opd_scope_close(&scope);
    CHECK_INT(opd_plugin_unload(p), 0);
    CHECK_INT(ended[0], 0);
    CHECK_INT(mapped(), 1);
    opd_release(w);
    CHECK_INT(ended[0], 1);
    check_unmapped();
}
TEST(data_keeps_code) {
    opd_plugin *p = load_twice();
    opd_scope scope = opd_scope_open();
    opd_tensor *w = call1("plug::wrapped", opd_value_int(0)), *view = opd_keep(opd_select(w, 0, 1));
    opd_scope_close(&scope);
    CHECK_INT(opd_plugin_unload(p), 0);
    CHECK_INT(mapped(), 1);
    CHECK(opd_item_f64(view) == 4);
    opd_release(view);
    check_unmapped();
}
TEST(load_while_still_mapped) {
    opd_plugin *p = load_twice();
    opd_scope scope = opd_scope_open();
    opd_tensor *x = leaf(), *y = call1("plug::twice", opd_value_tensor(x));
    CHECK_INT(opd_plugin_unload(p), 0);
    CHECK(load_twice() == p);
    CHECK(call1("plug::twice", opd_value_tensor(y)) != NULL);
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK_INT(opd_plugin_unload(p), 0);
    opd_scope_close(&scope);
    check_unmapped();
}

/* Its kernel calls one of the program's, which does what the case wants. */
static const char around_source[] =
    "#include \"opdispatch.h\"\n"
    "static int around(opd_call *call) {\n"
    "    opd_value v = opd_value_tensor(opd_arg_tensor(call, 0));\n"
    "    opd_tensor *y = opd_call_op(opd_find(\"plughost::inner\"), &v, 1);\n"
    "    return opd_return_tensor(call, opd_add(y, y));\n"
    "}\n"
    "OPD_LIBRARY(around, lib) { opd_def(lib, \"around(Tensor x) -> Tensor\"); opd_impl(lib, \"around\", around); }\n";
static opd_plugin *unloading;
static opd_library *around_with(opd_kernel inner) {
    opd_library *lib = opd_library_open(OPD_DEF, "plughost", NULL, __FILE__, __LINE__);
    set_up();
    CHECK_INT(opd_def(lib, "inner(Tensor x) -> Tensor") | opd_impl(lib, "inner", inner), 0);
    unloading = opd_compile_and_load_inline("around", around_source, "");
    CHECK_OK();
    return lib;
}
static int unload_kernel(opd_call *call) {
    CHECK_INT(opd_plugin_unload(unloading), 0);
    CHECK_INT(mapped(), 1);
    return opd_return_tensor(call, opd_arg_tensor(call, 0));
}
TEST(running_kernel_keeps_code) {
    opd_library *lib = around_with(unload_kernel);
    opd_scope scope = opd_scope_open();
    opd_tensor *y = call1("around::around", opd_value_tensor(leaf()));
    CHECK(y && opd_data_f32(y)[0] == 2);
    opd_scope_close(&scope);
    opd_library_close(lib);
    CHECK_INT(opd_plugin_unload(load_twice()), 0);           /* the next look finds it free */
    check_unmapped();
}
TEST(unload_inside_its_block) {
    static const char source[] =
        "#include \"opdispatch.h\"\n"
        "OPD_LIBRARY(inside, lib) { opd_def(lib, \"a() -> int\"); opd_plugin_unload(opd_plugin_next(NULL)); }\n";
    set_up();
    CHECK(opd_compile_and_load_inline("inside", source, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_REGISTER, "inside a block of the same library");
    CHECK(!opd_find_quiet("inside::a"));
    check_unmapped();
}
static int observed;
TEST(log_function_observers_and_listeners_go) {
    static const char source[] =
        "#include \"opdispatch.h\"\n"
        "static void say(void *user, int is_error, const char *text) { (void)user; (void)is_error; (void)text; }\n"
        "static void end(const opd_event *e, void *context, void *user) { (void)e; (void)context; ++*(int *)user; }\n"
        "static void hear(void *user, opd_op *op) { (void)user; (void)op; }\n"
        "static int add(opd_call *call) {\n"
        "    opd_observer o = {0};\n"
        "    opd_listener_add(hear, hear, NULL);\n"
        "    o.end = end; o.user = (void *)(uintptr_t)opd_arg_int(call, 0);\n"
        "    return opd_return_int(call, opd_observer_add(&o));\n"
        "}\n"
        "OPD_LIBRARY(says, lib) { opd_log_set(say, NULL); opd_def(lib, \"add(int counter) -> int\");\n"
        "                         opd_impl(lib, \"add\", add); }\n";
    opd_value v = opd_value_int((int64_t)(uintptr_t)&observed);
    opd_plugin *p;
    set_up();
    observed = 0;
    p = opd_compile_and_load_inline("says", source, NULL);
    CHECK(opd_call_value(opd_find("says::add"), &v, 1).u.i != 0);
    opd_warn("goes to the plug-in and is not seen");
    { opd_scope s = opd_scope_open(); (void)opd_neg(leaf()); opd_scope_close(&s); }
    CHECK(observed > 0);
    CHECK_INT(opd_plugin_unload(p), 0);
    observed = 0;
    { opd_scope s = opd_scope_open(); (void)opd_neg(leaf()); opd_scope_close(&s); }
    CHECK_INT(observed, 0);
    {
        opd_library *lib = opd_library_open(OPD_DEF, "heard", NULL, __FILE__, __LINE__);
        CHECK_INT(opd_def(lib, "by_nobody() -> int"), 0);     /* no listener is left */
        opd_library_close(lib);
    }
    {                                             /* to stderr again, where nobody shall see it */
        int err = dup(2), null = open("/dev/null", O_WRONLY);
        CHECK(err >= 0 && null >= 0 && dup2(null, 2) == 2);
        opd_warn("by the default function");
        CHECK(dup2(err, 2) == 2);
        (void)close(err);
        (void)close(null);
    }
    check_unmapped();
}
TEST(device_of_a_plugin) {
    static const char source[] =
        "#include \"opdispatch.h\"\n#include <stdlib.h>\n#include <string.h>\n"
        "static void *get(void *u, int i, size_t n) { (void)u; (void)i; return malloc(n); }\n"
        "static void put(void *u, int i, void *p, size_t n) { (void)u; (void)i; (void)n; free(p); }\n"
        "static int copy(void *u, void *to, int ti, const void *from, int fi, size_t n) {\n"
        "    (void)u; (void)ti; (void)fi; memcpy(to, from, n); return 0;\n"
        "}\n"
        "OPD_LIBRARY_FRAGMENT(plugdevice, lib) {\n"
        "    opd_backend_desc d = {0};\n"
        "    (void)lib; d.alloc = get; d.free = put; d.copy = copy;\n"
        "    opd_backend_register(OPD_PRIVATEUSE3, &d);\n"
        "}\n";
    opd_plugin *p;
    opd_tensor *t;
    opd_scope scope = opd_scope_open();
    int64_t n = 5;
    set_up();
    p = opd_compile_and_load_inline("plugdevice", source, NULL);
    CHECK_OK();
    t = opd_keep(opd_tensor_new_on(opd_ints_of(&n, 1), OPD_FLOAT32, opd_device_make(OPD_PRIVATEUSE3, 0)));
    CHECK(t != NULL);
    opd_scope_close(&scope);
    CHECK_INT(opd_plugin_unload(p), 0);
    CHECK_INT(mapped(), 1);
    opd_release(t);
    CHECK_INT(opd_device_count(OPD_PRIVATEUSE3), 0);
    check_unmapped();
}
#if !defined(OPD_NO_THREADS)
/* Code remains loaded while a call of another thread is running in it, and is unloaded when the call has ended. */
static int inside, leave;
static int wait_kernel(opd_call *call) {
    __atomic_store_n(&inside, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&leave, __ATOMIC_ACQUIRE)) { (void)usleep(100); }
    return opd_return_tensor(call, opd_arg_tensor(call, 0));
}
static void *wait_inside(void *unused) {
    opd_scope scope = opd_scope_open();
    opd_tensor *y = call1("around::around", opd_value_tensor(leaf()));
    CHECK(y && opd_data_f32(y)[2] == 6);
    opd_scope_close(&scope);
    CHECK_OK();
    return unused;
}
TEST(call_of_another_thread_keeps_code) {
    opd_library *lib = around_with(wait_kernel);
    pthread_t thread;
    inside = leave = 0;
    CHECK_INT(pthread_create(&thread, NULL, wait_inside, NULL), 0);
    while (!__atomic_load_n(&inside, __ATOMIC_ACQUIRE)) { (void)usleep(100); }
    CHECK_INT(opd_plugin_unload(unloading), 0);
    CHECK(!opd_find_quiet("around::around"));
    CHECK_INT(mapped(), 1);
    __atomic_store_n(&leave, 1, __ATOMIC_RELEASE);
    (void)pthread_join(thread, NULL);
    opd_library_close(lib);
    CHECK_INT(opd_plugin_unload(load_twice()), 0);
    check_unmapped();
}
/* Loading and unloading while other threads call operators that this changes. */
static int stop, turns;
static void *caller(void *unused) {
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        opd_scope scope = opd_scope_open();
        opd_tensor *x = leaf(), *y = opd_neg(x);
        opd_value value;
        if (!y || (opd_data_f32(y)[0] != -1 && opd_data_f32(y)[0] != 2)) { CHECK(!"neg"); }
        value = opd_value_tensor(x);
        y = opd_call_op(opd_find_quiet("plug::twice"), &value, 1);
        if (y && (opd_data_f32(y)[0] != 2 || opd_backward(opd_sum(y)))) { CHECK(!"twice"); }
        opd_error_clear();                        /* not defined just then */
        opd_scope_close(&scope);
        __atomic_add_fetch(&turns, 1, __ATOMIC_RELEASE);
    }
    return unused;
}
TEST(loading_while_others_call) {
    pthread_t thread[2];
    int i, before;
    stop = 0;
    for (i = 0; i < 2; i++) { CHECK_INT(pthread_create(&thread[i], NULL, caller, NULL), 0); }
    for (i = 0; i < 30; i++) {
        opd_plugin *p = load_twice();
        CHECK_OK();
        before = __atomic_load_n(&turns, __ATOMIC_ACQUIRE);
        while (__atomic_load_n(&turns, __ATOMIC_ACQUIRE) < before + 8) { (void)usleep(100); }
        CHECK_INT(opd_plugin_unload(p), 0);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (i = 0; i < 2; i++) { (void)pthread_join(thread[i], NULL); }
    CHECK_INT(opd_plugin_unload(load_twice()), 0);
    check_unmapped();
}
#if defined(CHECK_THREADS_SANITIZED)
/* The thread sanitizer does not see the loader's lock, under which one thread maps what another is given.  Nor does it see
   that the loader maps a library where another thread had mapped a file before, to read which instructions it needs. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) { return "race:ld-linux\nrace:opdi_library_sets"; }
#endif
/* Two threads load and unload the same library: the one that lets go of the last kernel is not the one that unmaps. */
static char twice_path[700];
static void *loader(void *unused) {
    int i;
    for (i = 0; i < 150; i++) {
        opd_plugin *p = opd_plugin_load(twice_path);
        CHECK(p != NULL);
        (void)opd_plugin_unload(p);              /* the other may have done it */
        opd_error_clear();
    }
    return unused;
}
TEST(loading_by_two_threads) {
    pthread_t thread[3];
    opd_plugin *p = load_twice();
    int i;
    CHECK_OK();
    snprintf(twice_path, sizeof twice_path, "%s", opd_plugin_path(p));
    stop = 0;
    for (i = 0; i < 3; i++) { CHECK_INT(pthread_create(&thread[i], NULL, i ? loader : caller, NULL), 0); }
    for (i = 1; i < 3; i++) { (void)pthread_join(thread[i], NULL); }
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    (void)pthread_join(thread[0], NULL);
    CHECK_INT(opd_plugin_unload(load_twice()), 0);
    check_unmapped();
    CHECK_INT(opd_check_invariants(), 0);
}
/* A library whose constructor links its block into the program's list, as one that calls the program's own symbols
   does.  Its block is linked once per mapping, so a load must not get a mapping that another thread is closing. */
static const char linked_source[] =
    "#undef OPDISPATCH_PLUGIN\n"
    "#define OPD_STATIC\n"                       /* it uses only types, so it refers to no symbol of the program */
    "#include \"opdispatch.h\"\n"
    "#include <stdlib.h>\n"
    "static void nothing(opd_library *lib) { (void)lib; }\n"
    "static opd_block block = {nothing, OPD_FRAGMENT, \"linked\", NULL, __FILE__, 1, NULL, NULL, 0};\n"
    "__attribute__((constructor)) static void link_block(void) {\n"
    "    const char *at = getenv(\"OPD_TEST_BLOCK_LINK\");\n"
    "    ((void (*)(opd_block *))(uintptr_t)strtoull(at, NULL, 0))(&block);\n"
    "}\n";
TEST(linked_library_by_two_threads) {
    pthread_t thread[2];
    char text[40];
    opd_plugin *p;
    int i;
    set_up();
    snprintf(text, sizeof text, "%llu", (unsigned long long)(uintptr_t)opdi_block_link);
    (void)setenv("OPD_TEST_BLOCK_LINK", text, 1);
    p = opd_compile_and_load_inline("linked", linked_source, NULL);
    CHECK_OK();
    snprintf(twice_path, sizeof twice_path, "%s", opd_plugin_path(p));
    for (i = 0; i < 2; i++) { CHECK_INT(pthread_create(&thread[i], NULL, loader, twice_path), 0); }
    for (i = 0; i < 2; i++) { (void)pthread_join(thread[i], NULL); }
    check_unmapped();
    CHECK_INT(opd_check_invariants(), 0);
}
#endif

/* A library that is linked for a fixed address is loaded like any other. */
TEST(a_library_with_absolute_addresses) {
    char path[650], command[2000];
    FILE *f;
    int i;
    set_up();
    snprintf(path, sizeof path, "%s/placed.c", cache);
    f = fopen(path, "w");
    CHECK_OR_RETURN(f != NULL);
    (void)fprintf(f, "#include \"opdispatch.h\"\n"
                  "static int answer(opd_call *call) { return opd_return_int(call, 42); }\n"
                  "OPD_LIBRARY(placed, lib) { opd_def(lib, \"answer() -> int\"); opd_impl(lib, \"answer\", answer); }\n");
    CHECK_INT(fclose(f), 0);
    snprintf(command, sizeof command, "cc -shared -fPIC -Wl,-Ttext-segment=0x20000000 -DOPDISPATCH_PLUGIN -I'%s' '%s' "
             "-o '%s/placed.so' 2>/dev/null", check_include(), path, cache);
    if (system(command) != 0) { SKIP("no compiler whose linker knows -Ttext-segment"); }
    snprintf(path, sizeof path, "%s/placed.so", cache);
    for (i = 0; i < 2; i++) {
        opd_plugin *p = opd_plugin_load(path);
        opd_value got;
        CHECK_OK();
        CHECK_OR_RETURN(p != NULL);
        CHECK_INT(opd_call_all(opd_find("placed::answer"), &got, NULL, 0), 0);
        CHECK_INT(got.u.i, 42);
        CHECK_INT(mapped(), 1);
        CHECK_INT(opd_plugin_unload(p), 0);
        check_unmapped();
    }
}

//-- running out of memory ---------------------------------------------------------------------------------------------

/* Every allocation of a load that finds its code compiled, of one from a path, and of one whose code a tape still keeps
   mapped. */
static void no_memory(bool by_path, bool kept) {
    opd_scope scope = opd_scope_open();
    char path[1100];
    int n, forever;
    int64_t seen = 0, live;
    opd_plugin *p = load_twice();
    CHECK_OR_RETURN(p != NULL);
    snprintf(path, sizeof path, "%s", opd_plugin_path(p));
    if (kept) { CHECK(call1("plug::twice", opd_value_tensor(leaf())) != NULL); }
    CHECK_INT(opd_plugin_unload(p), 0);
    for (forever = 0; forever < 2; forever++) {
        for (n = 1; n < 500; n++) {
            live = opd_memory_stats().live;
            (void)opd_memory_fail_at(n, forever != 0);
            p = by_path ? opd_plugin_load(path) : load_twice();
            seen = opd_memory_fail_at(0, false);
            if (p) { break; }
            CHECK_ERROR(OPD_ERROR_MEMORY, "memory");
            CHECK(opd_memory_stats().live <= live);
            CHECK(!opd_find_quiet("plug::twice") && !opd_plugin_next(NULL));
            CHECK_INT(mapped(), kept);
            CHECK_INT(opd_check_invariants(), 0);
        }
        CHECK_OK();
        CHECK(n > 20 && n < 500 && seen < n);
        CHECK_INT(opd_plugin_unload(p), 0);
    }
    opd_scope_close(&scope);
    check_unmapped();
}
TEST(no_memory_loading) { no_memory(true, false); }
TEST(no_memory_loading_compiled_code) { no_memory(false, false); }
TEST(no_memory_loading_what_is_mapped) { no_memory(true, true); }

static int files_in_cache(void) {
    char command[700], text[64] = "";
    FILE *f;
    snprintf(command, sizeof command, "ls '%s/opdispatch' | wc -l", cache);
    f = popen(command, "r");
    if (f && !fgets(text, sizeof text, f)) { text[0] = 0; }
    if (f) { (void)pclose(f); }
    return atoi(text);
}
/* Each allocation of a load with compiling fails once: the folder of the build is removed, and the next attempt
   succeeds. */
TEST(no_memory_compiling) {
    char source[600];
    static int versions;
    int n, before, version = ++versions;
    opd_plugin *p = NULL;
    set_up();
    CHECK_INT(opd_plugin_unload(load_twice()), 0);
    snprintf(source, sizeof source, TWICE_CODE "OPD_LIBRARY(lack, lib) { opd_op_desc d = {0};\n"
             "d.schema = \"twice(Tensor x) -> Tensor\"; d.cpu = twice; d.backward = twice_backward;\n"
             "opd_define(lib, &d); }\n/* %d */\n", version);
    before = files_in_cache();
    for (n = 1; n < 100; n++) {
        if (!check_visits((size_t)n, 100)) { continue; }          /* it takes a compilation */
        (void)opd_memory_fail_at(n, true);
        p = opd_compile_and_load_inline("lack", source, NULL);
        (void)opd_memory_fail_at(0, false);
        if (p) { break; }
        CHECK_ERROR(OPD_ERROR_MEMORY, "memory");
        CHECK(!opd_find_quiet("lack::twice"));
        check_unmapped();
    }
    CHECK_OK();
    CHECK(n > 5 && n < 100);
    CHECK_INT(opd_plugin_unload(p), 0);
    CHECK_INT(files_in_cache(), before + 3);      /* source, list, result */
}

//-- compiling ---------------------------------------------------------------------------------------------------------

#define ANSWER(ns, value) \
    "#include \"opdispatch.h\"\nstatic int k(opd_call *call) { return opd_return_int(call, " value "); }\n" \
    "OPD_LIBRARY(" ns ", lib) { opd_def(lib, \"answer() -> int\"); opd_impl(lib, \"answer\", k); }\n"
static int64_t answer(const char *name) { return opd_call_value(opd_find(name), NULL, 0).u.i; }

static void write_file(const char *name, const char *text) {
    char path[700];
    FILE *f;
    snprintf(path, sizeof path, "%s/%s", cache, name);
    f = fopen(path, "w");
    CHECK_OR_RETURN(f != NULL);
    (void)fputs(text, f);
    (void)fclose(f);
}
static char said[8000];
static void hear(void *user, int is_error, const char *text) {
    (void)user;
    CHECK(is_error < 0);
    snprintf(said + strlen(said), sizeof said - strlen(said), "%s\n", text);
}

TEST(compiled_once) {
    opd_plugin *p;
    set_up();
    CHECK_INT(opd_plugin_unload(opd_compile_and_load_inline("once", ANSWER("once", "41"), NULL)), 0);
    said[0] = 0;
    opd_log_set(hear, NULL);
    (void)setenv("OPD_VERBOSE", "1", 1);
    p = opd_compile_and_load_inline("once", ANSWER("once", "41"), NULL);
    CHECK_INT(answer("once::answer"), 41);
    CHECK_STR(said, "");                          /* nothing was run */
    CHECK_INT(opd_plugin_unload(p), 0);
    p = opd_compile_and_load_inline("once", ANSWER("once", "41"), "-DOTHER -O1");      /* other flags: another result */
    CHECK_INT(answer("once::answer"), 41);
    CHECK_INT(opd_plugin_unload(p), 0);
    p = opd_compile_and_load_inline("once", ANSWER("once", "42"), NULL);
    CHECK_INT(answer("once::answer"), 42);
    CHECK_INT(opd_plugin_unload(p), 0);
    opd_log_set(NULL, NULL);
    (void)unsetenv("OPD_VERBOSE");
    check_unmapped();
}
TEST(verbose_shows_commands) {
    static int version;
    char source[400];
    set_up();
    said[0] = 0;
    snprintf(source, sizeof source, ANSWER("verbose", "%d"), ++version);
    opd_log_set(hear, NULL);
    (void)setenv("OPD_VERBOSE", "1", 1);
    CHECK_INT(opd_plugin_unload(opd_compile_and_load_inline("verbose", source, "-DFOR_ME=1")), 0);
    CHECK(strstr(said, " -DFOR_ME=1 -DOPDISPATCH_PLUGIN -fPIC ") && strstr(said, " -shared ") && strstr(said, " -c "));
    opd_log_set(NULL, NULL);
    (void)unsetenv("OPD_VERBOSE");
}
TEST(included_files_count) {
    char path[700], include[700];
    const char *files[2];
    opd_plugin *p;
    set_up();
    write_file("answer.h", "#define ANSWER 1\n");
    write_file("uses header.c", "#include \"answer.h\"\n" ANSWER("includes", "ANSWER"));
    snprintf(path, sizeof path, "%s/uses header.c", cache);
    snprintf(include, sizeof include, "-I%s", cache);
    files[0] = path;
    files[1] = NULL;
    p = opd_compile_and_load("includes", files, include);
    CHECK_INT(answer("includes::answer"), 1);
    CHECK_INT(opd_plugin_unload(p), 0);
    write_file("answer.h", "#define ANSWER 2\n");
    p = opd_compile_and_load("includes", files, include);
    CHECK_INT(answer("includes::answer"), 2);
    CHECK_INT(opd_plugin_unload(p), 0);
    check_unmapped();
}
TEST(many_files_c_and_cxx) {
    char a[700], b[700];
    const char *files[3] = {a, b, NULL};
    opd_plugin *p;
    set_up();
    snprintf(a, sizeof a, "%s/a.c", cache);
    snprintf(b, sizeof b, "%s/b.cpp", cache);
    write_file("a.c", "enum { class = 7 };\n" ANSWER("both", "class"));   /* that is not C++ */
    write_file("b.cpp", "#include \"opdispatch.h\"\n#include <string>\n"
               "static int k(opd_call *call) {\n"
               "    std::string s(\"five!\"); return opd_return_int(call, (int64_t)s.size());\n}\n"
               "OPD_LIBRARY_FRAGMENT(both, lib) { opd_def(lib, \"cxx() -> int\"); opd_impl(lib, \"cxx\", k); }\n");
    p = opd_compile_and_load("both", files, NULL);
    CHECK_INT(answer("both::answer"), 7);
    CHECK_INT(answer("both::cxx"), 5);
    CHECK_INT(opd_plugin_unload(p), 0);
    p = opd_compile_and_load_inline("both.cpp", "#include \"opdispatch.h\"\nstatic int k(opd_call *call) {\n"
                        "    auto n = 9; return opd_return_int(call, n);\n}\n"
                        "OPD_LIBRARY(both, lib) {\n"
                        "    opd_def(lib, \"answer() -> int\"); opd_impl(lib, \"answer\", k);\n}\n", NULL);
    CHECK_INT(answer("both::answer"), 9);
    CHECK_INT(opd_plugin_unload(p), 0);
    CHECK_OK();
}
/* A .cu file is compiled by $NVCC, or nvcc.  Without it, the error says so. */
TEST(cuda_files) {
    const char *given = getenv("NVCC");
    const bool there = given || system("{ command -v nvcc || test -x /usr/local/cuda/bin/nvcc; } >/dev/null 2>&1") == 0;
    char was[300] = "", a[700], b[700];
    const char *files[3] = {a, b, NULL};
    if (given) { snprintf(was, sizeof was, "%s", given); }
    set_up();
    (void)setenv("NVCC", "no-such-nvcc", 1);
    CHECK(!opd_compile_and_load_inline("gpu.cu", ANSWER("gpu", "1"), NULL));
    CHECK_ERROR(OPD_ERROR_REGISTER, "cannot run the compiler 'no-such-nvcc'");
    if (given) { (void)setenv("NVCC", was, 1); } else { (void)unsetenv("NVCC"); }
    if (!there) { SKIP("no nvcc"); }
    snprintf(a, sizeof a, "%s/a.c", cache);
    snprintf(b, sizeof b, "%s/b.cu", cache);
    write_file("a.c", "enum { class = 7 };\n" ANSWER("gpu", "class"));
    write_file("b.cu", "#include \"opdispatch.h\"\n__global__ void twice(float *x) { x[threadIdx.x] *= 2; }\n"
               "static int k(opd_call *call) { (void)twice; return opd_return_int(call, NUMBER); }\n"
               "OPD_LIBRARY_FRAGMENT(gpu, lib) { opd_def(lib, \"cuda() -> int\"); opd_impl(lib, \"cuda\", k); }\n");
    opd_plugin *p = opd_compile_and_load("gpu", files, "-DNUMBER=5 -Wall -Wl,-z,defs -g");
    CHECK_OK();
    CHECK_INT(answer("gpu::answer"), 7);
    CHECK_INT(answer("gpu::cuda"), 5);
    CHECK_INT(opd_plugin_unload(p), 0);
}
TEST(compiler_speaks) {
    const char *cc = getenv("CC");
    char was[300] = "";
    const char *none[1] = {NULL};
    if (cc) { snprintf(was, sizeof was, "%s", cc); }
    set_up();
    CHECK(!opd_compile_and_load_inline("wrong", "#include \"opdispatch.h\"\nint x = no_such_thing;\n", NULL));
    CHECK_ERROR(OPD_ERROR_REGISTER, "no_such_thing");
    CHECK(!opd_compile_and_load_inline("wrong", ANSWER("wrong", "1") "int y(void); int z(void) { return y(); }\n",
                           "-Wl,--no-undefined"));
    CHECK_ERROR(OPD_ERROR_REGISTER, "undefined reference");
    CHECK(!opd_compile_and_load_inline("wrong/../name", ANSWER("wrong", "1"), NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "letters, digits");
    CHECK(!opd_compile_and_load_inline(NULL, ANSWER("wrong", "1"), NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "letters, digits");
    CHECK(!opd_compile_and_load_inline("wrong", NULL, NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "NULL");
    CHECK(!opd_compile_and_load("wrong", none, NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "no files");
    (void)setenv("CC", "no-such-compiler-here --flag", 1);
    CHECK(!opd_compile_and_load_inline("wrong", ANSWER("wrong", "1"), NULL));
    CHECK_ERROR(OPD_ERROR_REGISTER, "cannot run the compiler 'no-such-compiler-here'");
    (void)setenv("CC", "false", 1);
    CHECK(!opd_compile_and_load_inline("wrong", ANSWER("wrong", "1"), NULL));
    CHECK_ERROR(OPD_ERROR_REGISTER, "'false' failed");
    (void)setenv("CC", "true", 1);                /* says yes and makes nothing */
    CHECK(!opd_compile_and_load_inline("wrong", ANSWER("wrong", "1"), NULL));
    CHECK_ERROR(OPD_ERROR_REGISTER, "'true' failed");
    if (*was) { (void)setenv("CC", was, 1); } else { (void)unsetenv("CC"); }
    CHECK(!opd_find_quiet("wrong::answer"));
}
/* If $CC is the path of a file, it may have spaces. */
TEST(path_of_a_compiler_with_spaces) {
    const char *cc = getenv("CC");
    char was[300] = "", path[800], script[400];
    set_up();
    if (cc) { snprintf(was, sizeof was, "%s", cc); }
    snprintf(script, sizeof script, "#!/bin/sh\nexec %s \"$@\"\n", cc && *cc ? cc : "cc");
    write_file("my compiler", script);
    snprintf(path, sizeof path, "%s/my compiler", cache);
    CHECK_INT(chmod(path, 0700), 0);
    (void)setenv("CC", path, 1);
    CHECK_INT(opd_plugin_unload(opd_compile_and_load_inline("spaces", ANSWER("spaces", "1"), NULL)), 0);
    (void)strcat(path, " -O1");                   /* options follow: the first word is the program */
    (void)setenv("CC", path, 1);
    CHECK(!opd_compile_and_load_inline("spaces", ANSWER("spaces", "2"), NULL));
    CHECK_ERROR(OPD_ERROR_REGISTER, "/my': No such file");
    if (*was) { (void)setenv("CC", was, 1); } else { (void)unsetenv("CC"); }
    snprintf(path, sizeof path, "%s/my compiler", cache);
    CHECK_INT(remove(path), 0);
}
/* A program that ignores SIGCHLD gets no status of the compiler. */
TEST(compiler_speaks_without_a_status) {
    void (*was)(int) = signal(SIGCHLD, SIG_IGN);
    static int version;
    char source[400];
    set_up();
    CHECK(!opd_compile_and_load_inline("wrong", "#include \"opdispatch.h\"\nint x = no_such_thing;\n", NULL));
    CHECK_ERROR(OPD_ERROR_REGISTER, "no_such_thing");
    snprintf(source, sizeof source, ANSWER("status", "%d"), ++version);
    CHECK_INT(opd_plugin_unload(opd_compile_and_load_inline("status", source, NULL)), 0);
    (void)signal(SIGCHLD, was);
}
/* No shell is involved: words reach the compiler unchanged. */
TEST(no_shell) {
    char path[700];
    set_up();
    snprintf(path, sizeof path, "%s/made_by_a_shell", cache);
    {
        char flags[2200];
        snprintf(flags, sizeof flags, "-DX=$(touch${IFS}%s) -DY=`touch${IFS}%s` ;touch %s", path, path, path);
        CHECK(!opd_compile_and_load_inline("shell", ANSWER("shell", "1"), flags));
        CHECK(!opd_ok());
        opd_error_clear();
    }
    CHECK(access(path, F_OK) != 0);
}
/* Returns the number of files of results whose names begin like this. */
static int cached(const char *begin) {
    char path[700];
    int n = 0;
    DIR *d;
    const struct dirent *e;
    snprintf(path, sizeof path, "%s/opdispatch", cache);
    d = opendir(path);
    while (d && (e = readdir(d)) != NULL) { n += strncmp(e->d_name, begin, strlen(begin)) == 0; }
    if (d) { (void)closedir(d); }
    return n;
}
static void make_old(const char *begin) {
    const struct timeval old[2] = {{1000000000, 0}, {1000000000, 0}};
    char path[1000];
    DIR *d;
    const struct dirent *e;
    snprintf(path, sizeof path, "%s/opdispatch", cache);
    d = opendir(path);
    while (d && (e = readdir(d)) != NULL) {
        snprintf(path, sizeof path, "%s/opdispatch/%s", cache, e->d_name);
        if (strncmp(e->d_name, begin, strlen(begin)) == 0) { CHECK_INT(utimes(path, old), 0); }
    }
    if (d) { (void)closedir(d); }
}
/* The compiler kills the process that waits for it.  The files of this process do not disturb others, and are removed
   after a day. */
TEST(killed_while_compiling) {
    static int version;
    char source[400], command[700], was[300] = "";
    const char *cc = getenv("CC");
    int i, status = 0, before;
    set_up();
    if (cc) { snprintf(was, sizeof was, "%s", cc); }
    CHECK_INT(opd_plugin_unload(opd_compile_and_load_inline("killed", ANSWER("killed", "1"), NULL)), 0);
    before = cached("tmp.");
    write_file("killer.sh", "touch \"$(dirname \"$0\")\"/opdispatch/tmp.*/left\nkill -KILL $PPID\nsleep 1\n");
    snprintf(command, sizeof command, "sh %s/killer.sh", cache);
    for (i = 0; i < 2; i++) {
        pid_t child;
        snprintf(source, sizeof source, ANSWER("killed", "%d"), ++version);
        (void)setenv("CC", command, 1);
        child = fork();
        if (child == 0) {
            (void)opd_compile_and_load_inline("killed", source, NULL);
            CHECK_CHILD_ENDS(0);
        }
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        if (*was) { (void)setenv("CC", was, 1); } else { (void)unsetenv("CC"); }
        CHECK_INT(cached("tmp."), before + 1 + i);
    }
    CHECK_INT(opd_plugin_unload(opd_compile_and_load_inline("killed", source, NULL)), 0);
    CHECK_INT(cached("tmp."), before + 2);
    make_old("tmp.");
    snprintf(source, sizeof source, ANSWER("killed", "%d"), ++version);
    CHECK_INT(opd_plugin_unload(opd_compile_and_load_inline("killed", source, NULL)), 0);
    CHECK_INT(cached("tmp."), 0);
}
/* Finds the only file of results whose name begins and ends like this. */
static void find_cached(char *path, size_t cap, const char *begin, const char *end) {
    DIR *d;
    const struct dirent *e;
    char name[300] = "";
    snprintf(path, cap, "%s/opdispatch", cache);
    d = opendir(path);
    while (d && (e = readdir(d)) != NULL) {
        const size_t n = strlen(e->d_name);
        if (strncmp(e->d_name, begin, strlen(begin)) || n < strlen(end) || strcmp(e->d_name + n - strlen(end), end)) {
            continue;
        }
        CHECK(!*name);
        snprintf(name, sizeof name, "%s", e->d_name);
    }
    if (d) { (void)closedir(d); }
    CHECK(*name);
    snprintf(path, cap, "%s/opdispatch/%s", cache, name);
}
static void check_rebuilt(const char *what, long size) {
    opd_plugin *p = opd_compile_and_load_inline("damage", ANSWER("damage", "12"), NULL);
    if (!p || answer("damage::answer") != 12) { printf("%s of %ld bytes\n", what, size); }
    CHECK(p && answer("damage::answer") == 12);
    CHECK_INT(opd_plugin_unload(p), 0);
}
/* If a result or the list of results is damaged in any way, it is built again, and nothing of it is loaded. */
TEST(damaged_results_are_built_again) {
    static const char *const ends[] = {".so", ".deps"};
    char path[1000];
    unsigned char byte;
    long size, at;
    int fd, which, k;
    set_up();
    check_rebuilt("nothing", 0);
    for (which = 0; which < 2; which++) {
        find_cached(path, sizeof path, "damage-", ends[which]);
        fd = open(path, O_RDWR);
        size = (long)lseek(fd, 0, SEEK_END);
        (void)close(fd);
        for (k = 0; k < 4; k++) {                 /* cut */
            static const int parts[] = {0, 100, 500, 1000};
            if (!check_visits((size_t)k, 4)) { continue; }
            at = k == 3 ? size - 1 : size * parts[k] / 1000;
            CHECK_INT(truncate(path, at), 0);
            check_rebuilt("cut", at);
        }
        for (k = 0; k < 3; k++) {                 /* one bit; the disk gave other bytes */
            if (!check_visits((size_t)k, 3)) { continue; }
            at = k == 2 ? size - 1 : size * k / 2;
            fd = open(path, O_RDWR);
            CHECK(lseek(fd, at, SEEK_SET) == at && read(fd, &byte, 1) == 1);
            byte = (unsigned char)(byte ^ 1 << k);
            CHECK(lseek(fd, at, SEEK_SET) == at && write(fd, &byte, 1) == 1);
            (void)close(fd);
            check_rebuilt("a bit", at);
        }
        fd = open(path, O_WRONLY | O_TRUNC);
        for (at = 0; at < size; at++) { CHECK(write(fd, &"garbage"[at % 7], 1) == 1); }
        (void)close(fd);
        check_rebuilt("garbage", size);
    }
    check_unmapped();
}
/* Loading a truncated library by its path fails. */
TEST(half_a_library) {
    char path[1000], half[700];
    static unsigned char bytes[1 << 20];
    size_t n, cut;
    FILE *f;
    set_up();
    CHECK_INT(opd_plugin_unload(opd_compile_and_load_inline("half", ANSWER("half", "1"), NULL)), 0);
    find_cached(path, sizeof path, "half-", ".so");
    f = fopen(path, "rb");
    n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    CHECK_OR_RETURN(n > 4096 && n < sizeof bytes);
    (void)fclose(f);
    snprintf(half, sizeof half, "%s/half.so", cache);
    for (cut = 20; cut < n / 2; cut += 1 + n / 20) {
        f = fopen(half, "wb");
        CHECK_OR_RETURN(f && fwrite(bytes, 1, cut, f) == cut);
        (void)fclose(f);
        CHECK(!opd_plugin_load(half));
        CHECK_ERROR(OPD_ERROR_REGISTER, "is incomplete");
    }
    check_unmapped();
}
/* With any umask, only this user can read and write the files of results. */
TEST(results_are_private) {
    static int version;
    char source[400], path[1000];
    struct stat s;
    mode_t was;
    DIR *d;
    const struct dirent *e;
    int files = 0;
    set_up();
    was = umask(0);
    snprintf(source, sizeof source, ANSWER("private", "%d"), ++version);
    CHECK_INT(opd_plugin_unload(opd_compile_and_load_inline("private", source, NULL)), 0);
    (void)umask(was);
    snprintf(path, sizeof path, "%s/opdispatch", cache);
    d = opendir(path);
    while (d && (e = readdir(d)) != NULL) {
        snprintf(path, sizeof path, "%s/opdispatch/%s", cache, e->d_name);
        if (strncmp(e->d_name, "private", 7)) { continue; }
        files++;
        CHECK(stat(path, &s) == 0 && (s.st_mode & 0777) == 0600);
    }
    if (d) { (void)closedir(d); }
    CHECK(files >= 3);
}
TEST(folder_that_others_can_write) {
    char dir[700];
    set_up();
    snprintf(dir, sizeof dir, "%s/opdispatch", cache);
    CHECK_INT(opd_plugin_unload(opd_compile_and_load_inline("folder", ANSWER("folder", "1"), NULL)), 0);
    {
        struct stat s;
        CHECK(stat(dir, &s) == 0 && (s.st_mode & 0777) == 0700);
    }
    CHECK_INT(chmod(dir, 0720), 0);
    CHECK(!opd_compile_and_load_inline("folder", ANSWER("folder", "1"), NULL));
    CHECK_ERROR(OPD_ERROR_REGISTER, "others may write");
    CHECK_INT(chmod(dir, 0702), 0);
    CHECK(!opd_compile_and_load_inline("folder", ANSWER("folder", "1"), NULL));
    CHECK_ERROR(OPD_ERROR_REGISTER, "others may write");
    CHECK_INT(chmod(dir, 0700), 0);
    CHECK_INT(chmod(cache, 0777), 0);             /* then somebody could put another folder in its place */
    CHECK(!opd_compile_and_load_inline("folder", ANSWER("folder", "1"), NULL));
    CHECK_ERROR(OPD_ERROR_REGISTER, "others may write");
    CHECK_INT(chmod(cache, 0700), 0);
}
TEST(folder_of_another_user) {
    char link[700];
    set_up();
    if (geteuid() != 0) { SKIP("only root can give a folder away"); }
    snprintf(link, sizeof link, "%s/other", cache);
    (void)mkdir(link, 0700);
    snprintf(link, sizeof link, "%s/other/opdispatch", cache);
    (void)mkdir(link, 0700);
    CHECK_INT(chown(link, 65534, 65534), 0);
    snprintf(link, sizeof link, "%s/other", cache);
    (void)setenv("XDG_CACHE_HOME", link, 1);
    CHECK(!opd_compile_and_load_inline("folder", ANSWER("folder", "1"), NULL));
    CHECK_ERROR(OPD_ERROR_REGISTER, "belongs to another user");
    CHECK_INT(chown(link, 65534, 65534), 0);      /* the one above it: he could put another in its place */
    snprintf(link, sizeof link, "%s/other/opdispatch", cache);
    CHECK_INT(chown(link, 0, 0), 0);
    CHECK(!opd_compile_and_load_inline("folder", ANSWER("folder", "1"), NULL));
    CHECK_ERROR(OPD_ERROR_REGISTER, "belongs to another user");
    snprintf(link, sizeof link, "%s/other/further", cache);
    (void)mkdir(link, 0700);
    CHECK_INT(chown(link, 0, 0), 0);
    (void)setenv("XDG_CACHE_HOME", link, 1);      /* and further up */
    CHECK(!opd_compile_and_load_inline("folder", ANSWER("folder", "1"), NULL));
    CHECK_ERROR(OPD_ERROR_REGISTER, "belongs to another user");
    snprintf(link, sizeof link, "%s/other", cache);
    CHECK_INT(chown(link, 0, 0), 0);
    CHECK_INT(opd_plugin_unload(opd_compile_and_load_inline("folder", ANSWER("folder", "1"), NULL)), 0);
    (void)setenv("XDG_CACHE_HOME", cache, 1);
}
/* A parent folder that others can write to is refused, unless it is sticky. */
TEST(folder_below_one_that_others_can_write) {
    char open_to_all[700], below[720];
    set_up();
    snprintf(open_to_all, sizeof open_to_all, "%s/all", cache);
    snprintf(below, sizeof below, "%s/below", open_to_all);
    (void)mkdir(open_to_all, 0700);
    (void)mkdir(below, 0700);
    CHECK_INT(chmod(open_to_all, 0777), 0);
    (void)setenv("XDG_CACHE_HOME", below, 1);
    CHECK(!opd_compile_and_load_inline("folder", ANSWER("folder", "1"), NULL));
    CHECK_ERROR(OPD_ERROR_REGISTER, "/all belongs to another user, or others may write in it");
    CHECK_INT(chmod(open_to_all, 01777), 0);
    CHECK_INT(opd_plugin_unload(opd_compile_and_load_inline("folder", ANSWER("folder", "1"), NULL)), 0);
    CHECK_INT(chmod(open_to_all, 0700), 0);
    (void)setenv("XDG_CACHE_HOME", cache, 1);
}
#else
TEST(no_plugins) {
    CHECK(!opd_plugin_load("x.so"));
    CHECK_ERROR(OPD_ERROR_REGISTER, "OPD_NO_PLUGINS");
}
#endif

CHECK_MAIN()
