/* Custom operators: every field of a descriptor, set in one call or registered later and elsewhere, in any order;
   arguments and results of every kind; operators that write to arguments; operators without tensors; plain C
   functions. */
#include "../../opdispatch.h"
#include "../check.h"

static opd_library *open_def(const char *ns) { return opd_library_open(OPD_DEF, ns, NULL, "def.c", 1); }
static opd_library *open_impl(const char *ns) { return opd_library_open(OPD_IMPL, ns, NULL, "impl.c", 2); }
static opd_tensor *counted(int64_t a, int64_t b) { return opd_reshape(opd_arange(opd_value_int(a * b), OPD_FLOAT32), OPD_INTS(a, b)); }
static bool on(const opd_tensor *t, opd_backend type) { return (opd_backend)opd_tensor_device(t).type == type; }
static bool all_near(opd_tensor *a, opd_tensor *b) {
    opd_tensor *most = a && b ? opd_max(opd_abs(opd_sub(a, b))) : NULL;
    return most && opd_item_f64(most) < 1e-6;
}

//-- every slot --------------------------------------------------------------------------------------------------------
//
//  scale(Tensor x, float by) = x * by, made of what opdispatch cannot look into.  Each slot counts that it was used.

enum { KERNEL, FAKE, AUTOGRAD, JVP, VMAP, AUTOCAST, SLOTS };
static int used[SLOTS];

static opd_tensor *like(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    return opd_result(call, 0, opd_sizes(x), opd_ndim(x), opd_dtype(x));
}
static int scale_cpu(opd_call *call) {
    opd_tensor *x = opd_contiguous(opd_arg_tensor(call, 0)), *y = like(call);
    const float by = (float)opd_arg_double(call, 1);
    int64_t i;
    used[KERNEL]++;
    if (!x || !y || opd_dtype(x) != OPD_FLOAT32) { return opd_fail(OPD_ERROR_DTYPE, "scale: x must be float32"); }
    for (i = 0; i < opd_numel(x); i++) { opd_data_f32(y)[i] = opd_data_f32(x)[i] * by; }
    return 0;
}
static int scale_fake(opd_call *call) { used[FAKE]++; return like(call) ? 0 : -1; }
static int scale_backward(opd_backward_call *bw) {
    used[AUTOGRAD]++;
    return opd_bw_return(bw, 0, opd_mul_Scalar(opd_bw_grad(bw, 0), opd_bw_value(bw, 1)));
}
static int scale_setup(opd_context *ctx) { return opd_context_set(ctx, "by", opd_context_input(ctx, 1)); }
static int scale_backward_set_up(opd_backward_call *bw) {
    used[AUTOGRAD]++;
    return opd_bw_return(bw, 0, opd_mul_Scalar(opd_bw_grad(bw, 0), opd_context_get(opd_bw_context(bw), "by")));
}
static int scale_jvp(opd_jvp_call *jv) {
    used[JVP]++;
    return opd_jvp_return(jv, 0, opd_mul_Scalar(opd_jvp_tangent(jv, 0), opd_jvp_value(jv, 1)));
}
static int scale_vmap(opd_call *call) {           /* all examples at once */
    int dim;
    opd_tensor *x = opd_batch_arg(call, 0, &dim);
    opd_value args[2];
    used[VMAP]++;
    args[0] = opd_value_tensor(x);
    args[1] = opd_value_double(opd_arg_double(call, 1));
    return opd_batch_return(call, opd_call_op(opd_call_operator(call), args, 2), dim);
}

static opd_tensor *scale_by(const char *ns, opd_tensor *x, double by) {
    char name[64];
    opd_value args[2];
    (void)snprintf(name, sizeof name, "%s::scale", ns);
    args[0] = opd_value_tensor(x);
    args[1] = opd_value_double(by);
    return opd_call_op(opd_find(name), args, 2);
}
static int scale_rows(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)n;
    out[0] = scale_by((const char *)user, in[0], 3);
    return out[0] ? 1 : -1;
}
/* Everything that can be done with it, and by which slot. */
static void everything(const char *ns, unsigned slots) {
    opd_tensor *x = counted(2, 3), *want = opd_mul_Scalar(x, opd_value_int(3)), *leaf = opd_tensor_set_requires_grad(counted(2, 3), true);
    opd_tensor *y = NULL, *tangent = NULL, *ones = opd_ones(OPD_INTS(2, 3), OPD_FLOAT32);
    char name[64];
    opd_graph *g;
    memset(used, 0, sizeof used);
    CHECK(all_near(scale_by(ns, x, 3), want));
    CHECK_INT(used[KERNEL], 1);
    if (slots >> FAKE & 1) {
        OPD_FAKE_MODE { y = scale_by(ns, x, 3); CHECK(y && opd_size(y, 1) == 3 && on(y, OPD_CPU)); }
        CHECK_INT(used[FAKE], 1);
    } else {
        OPD_FAKE_MODE { CHECK(scale_by(ns, x, 3) == NULL); }
        CHECK_ERROR(OPD_ERROR_NO_KERNEL, "There was no fake impl registered for");
    }
    if (slots >> AUTOGRAD & 1) {
        CHECK_INT(opd_backward(opd_sum(scale_by(ns, leaf, 3))), 0);
        CHECK(all_near(opd_tensor_grad(leaf), opd_mul_Scalar(ones, opd_value_int(3))));
        CHECK_INT(used[AUTOGRAD], 1);
    } else {
        CHECK_INT(opd_backward(opd_sum(scale_by(ns, leaf, 3))), -1);
        CHECK_ERROR(OPD_ERROR_AUTOGRAD, "scale");
    }
    used[AUTOGRAD] = 0;
    OPD_DUAL_LEVEL {
        y = scale_by(ns, opd_dual_new(x, ones), 3);
        if (slots >> JVP & 1 || slots >> AUTOGRAD & 1) {
            (void)opd_dual_unpack(y, &tangent);
            CHECK(all_near(tangent, opd_mul_Scalar(ones, opd_value_int(3))));
            CHECK_INT(used[JVP], slots >> JVP & 1);
            CHECK((used[AUTOGRAD] == 0) == (slots >> JVP & 1));
        } else { CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Trying to use forward AD with"); }
    }
    CHECK_INT(opd_vmap(scale_rows, (void *)(uintptr_t)ns, &x, 1, NULL, &y, 1), 1);
    CHECK(all_near(y, want));
    CHECK_INT(used[VMAP], slots >> VMAP & 1);
    x = opd_to_dtype(x, OPD_BFLOAT16);
    OPD_AUTOCAST(OPD_CPU) { y = scale_by(ns, x, 3); }
    if (slots >> AUTOCAST & 1) { CHECK(all_near(y, want)); } else { CHECK_ERROR(OPD_ERROR_DTYPE, "x must be float32"); }
    x = counted(2, 3);
    g = opd_graph_trace(scale_rows, (void *)(uintptr_t)ns, &x, 1, NULL);
    (void)snprintf(name, sizeof name, "%s::scale", ns);
    CHECK_INT(opd_graph_count(g, name), 1);
    opd_graph_free(g);
    CHECK_OK();
}
static void quietly(void *user, int is_error, const char *text) { (void)user; (void)is_error; (void)text; }
#define ALL ((1u << SLOTS) - 1)
#define SCALE "scale(Tensor x, float by=2) -> Tensor"

TEST(in_one_call) {
    opd_library *lib = open_def("whole");
    opd_op_desc d;
    opd_value x;
    memset(&d, 0, sizeof d);
    d.schema = SCALE;
    d.cpu = scale_cpu;
    d.fake = scale_fake;
    d.backward = scale_backward;
    d.jvp = scale_jvp;
    d.vmap = scale_vmap;
    d.autocast = OPD_AUTOCAST_FP32;
    CHECK_INT(opd_define(lib, &d), 0);
    everything("whole", ALL);
    x = opd_value_tensor(opd_tensor_set_requires_grad(counted(2, 3), true));
    CHECK_INT(opd_opcheck(opd_find("whole::scale"), &x, 1, NULL), 0);
    CHECK_OK();
    opd_library_close(lib);
}

static int register_slot(opd_library *lib, int slot) {
    switch (slot) {
    case KERNEL: return opd_impl_key(lib, "scale", "CPU", scale_cpu, NULL, NULL);
    case FAKE: return opd_fake_register(lib, "scale", scale_fake);
    case AUTOGRAD: return opd_autograd_register(lib, "scale", scale_backward_set_up, scale_setup);
    case JVP: return opd_jvp_register(lib, "scale", scale_jvp);
    case VMAP: return opd_vmap_register(lib, "scale", scale_vmap);
    default: return opd_autocast_register(lib, "scale", OPD_CPU, OPD_AUTOCAST_FP32);
    }
}
/* Each field of a descriptor is registered by a separate library, in 120 orders; then each of them is left out. */
TEST(each_slot_later_and_from_elsewhere) {
    opd_library *lib, *parts[SLOTS];
    int order[SLOTS], n, i, k;
    opd_value x;
    opd_log_set(quietly, NULL);                   /* a loop for want of a batching rule is said */
    for (n = 0; n < 120; n++) {
        unsigned seed = (unsigned)n * 2654435761u + 1;
        const int define_at = n % 2 == 0 ? 0 : n / 2 % (SLOTS + 1);
        lib = NULL;
        for (i = 0; i < SLOTS; i++) { order[i] = i; }
        for (i = SLOTS - 1; i > 0; i--) {
            seed = seed * 1664525u + 1013904223u;
            k = (int)(seed >> 16) % (i + 1);
            { const int t = order[i]; order[i] = order[k]; order[k] = t; }
        }
        for (i = 0; i <= SLOTS; i++) {            /* any of them may be there before the definition */
            if (i == define_at) {
                lib = open_def("parts");
                CHECK_INT(opd_def(lib, SCALE), 0);
            }
            if (i == SLOTS) { break; }
            parts[order[i]] = open_impl("parts");
            CHECK_INT(register_slot(parts[order[i]], order[i]), 0);
        }
        if (n < 6) { everything("parts", ALL); }
        if (n == 0) {
            x = opd_value_tensor(opd_tensor_set_requires_grad(counted(2, 3), true));
            CHECK_INT(opd_opcheck(opd_find("parts::scale"), &x, 1, NULL), 0);
        }
        CHECK_INT(opd_check_invariants(), 0);
        opd_library_close(parts[n % SLOTS]);
        if (n % SLOTS != KERNEL) { everything("parts", ALL & ~(1u << n % SLOTS)); }
        else { CHECK(scale_by("parts", counted(1, 1), 1) == NULL); CHECK_ERROR(OPD_ERROR_NO_KERNEL, "Could not run 'parts::scale'"); }
        for (i = 0; i < SLOTS; i++) { if (i != n % SLOTS) { opd_library_close(parts[i]); } }
        opd_library_close(lib);
        CHECK_INT(opd_check_invariants(), 0);
    }
    opd_log_set(NULL, NULL);
    CHECK(opd_find_quiet("parts::scale") == NULL);
}
/* A named family can be registered as the batching rule. */
TEST(families_registered_by_themselves) {
    static const opd_vmap_rule rules[] = {OPD_BATCH_LOOP, OPD_BATCH_POINTWISE, OPD_BATCH_FOLD};
    opd_library *lib = open_def("whole"), *part;
    opd_tensor *x = opd_reshape(counted(4, 6), OPD_INTS(4, 2, 3)), *y;
    opd_op_desc d;
    size_t i;
    memset(&d, 0, sizeof d);
    d.schema = SCALE;
    d.cpu = scale_cpu;
    CHECK_INT(opd_define(lib, &d), 0);
    opd_log_set(quietly, NULL);
    for (i = 0; i < sizeof rules / sizeof *rules; i++) {
        part = open_impl("whole");
        CHECK_INT(opd_vmap_register(part, "whole::scale", rules[i]), 0);
        memset(used, 0, sizeof used);
        CHECK_INT(opd_vmap(scale_rows, (void *)(uintptr_t)"whole", &x, 1, NULL, &y, 1), 1);
        CHECK(all_near(y, opd_mul_Scalar(x, opd_value_int(3))));
        CHECK_INT(used[KERNEL], i == 0 ? 4 : 1);
        opd_library_close(part);
    }
    opd_log_set(NULL, NULL);
    CHECK_OK();
    opd_library_close(lib);
}
static int wrong_jvp(opd_jvp_call *jv) { return opd_jvp_backward(jv); }
static int composed(opd_call *call) { return opd_return_tensor(call, opd_mul_Scalar(opd_arg_tensor(call, 0), opd_value_int(2))); }
TEST(parts_that_are_refused) {
    opd_library *lib = open_def("whole"), *part = open_impl("whole"), *more = open_impl("whole");
    opd_tensor *x = counted(1, 2);
    char dump[1000];
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = SCALE;
    d.cpu = scale_cpu;
    d.fake = scale_fake;
    CHECK_INT(opd_define(lib, &d), 0);
    d.schema = "composed(Tensor x) -> Tensor";
    d.cpu = d.fake = NULL;
    d.composite = composed;
    CHECK_INT(opd_define(lib, &d), 0);
    CHECK_INT(opd_fake_register(part, "scale", scale_fake), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "opd_fake_register: the operator whole::scale already has a fake impl, registered at def.c:1");
    CHECK_INT(opd_fake_register(part, "composed", scale_fake), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "via a pre-existing registration to CompositeImplicitAutograd");
    CHECK_INT(opd_fake_register(part, "scale", NULL), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "opd_fake_register: the function is NULL");
    CHECK_INT(opd_vmap_register(part, NULL, scale_vmap), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "opd_vmap_register: the name is NULL");
    CHECK_INT(opd_jvp_register(part, "other::scale", scale_jvp), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "namespace");
    CHECK_INT(opd_jvp_register(NULL, "scale", scale_jvp), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "opd_jvp_register");
    /* the newest is used; a formula of forward mode that goes by a derivative that is not there */
    CHECK_INT(opd_jvp_register(part, "scale", wrong_jvp), 0);
    OPD_DUAL_LEVEL { CHECK(scale_by("whole", opd_dual_new(x, x), 3) == NULL); }
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "whole::scale has no backward function (.backward)");
    opd_log_set(quietly, NULL);
    CHECK_INT(opd_jvp_register(more, "scale", scale_jvp), 0);
    opd_log_set(NULL, NULL);
    OPD_DUAL_LEVEL { CHECK(scale_by("whole", opd_dual_new(x, x), 3) != NULL); }
    (void)opd_dump(opd_find("whole::scale"), dump, sizeof dump);
    CHECK(strstr(dump, "forward mode: registered at impl.c:2 :: (none) [ boxed ]\nforward mode (inactive): registered at impl.c:2"));
    CHECK_OK();
    opd_library_close(more);
    opd_library_close(part);
    opd_library_close(lib);
}

//-- kinds -------------------------------------------------------------------------------------------------------------

#define SINK "sink(Tensor t, Tensor? o, Tensor[] l, Tensor?[] ol, int i, float f, bool b, str s, Scalar n, ScalarType dt, " \
    "Device dev, complex c, Layout? lay, MemoryFormat? mf, Generator? g, int[] ints, float[] fs, bool[] bs, Scalar[] ns, str[] ss, " \
    "int? oi, float? of, bool? ob, str? os, Scalar? on, ScalarType? od, Tensor? none, *, int[2] two=3, str key='k') -> " \
    "(Tensor, Tensor[], int, float, bool, str, Scalar, Device, int[], Tensor?)"
static int sink_runs, sink_generators;
static bool sink_right(const opd_call *call) {
    const opd_ints two = opd_arg_ints(call, 27), is = opd_arg_ints(call, 15);
    const opd_tensors l = opd_arg_tensors(call, 2), ol = opd_arg_tensors(call, 3);
    const opd_value c = opd_arg_value(call, 11), ns = opd_arg_value(call, 18), ss = opd_arg_value(call, 19), bs = opd_arg_value(call, 17);
    return opd_arg_tensor(call, 0) && opd_arg_tensor(call, 1) && l.n == 2 && ol.n == 2 && ol.data[0] && !ol.data[1] &&
        opd_arg_int(call, 4) == 7 && opd_arg_double(call, 5) > 1.4 && opd_arg_bool(call, 6) && strcmp(opd_arg_str(call, 7), "text") == 0 &&
        opd_arg_value(call, 8).tag == OPD_TAG_INT && opd_arg_dtype(call, 9, OPD_DTYPE_NONE) == OPD_BFLOAT16 &&
        opd_arg_device(call, 10, opd_device_make(OPD_XPU, 0)).type != OPD_XPU && c.tag == OPD_TAG_COMPLEX && c.u.c[1] > 1.9 &&
        opd_arg_is_none(call, 12) && opd_arg_is_none(call, 13) && is.n == 3 && is.data[2] == 6 &&
        opd_arg_doubles(call, 16).n == 1 && bs.n == 2 && bs.u.bools[0] && ns.n == 2 && ns.u.list[1].tag == OPD_TAG_FLOAT &&
        ss.n == 1 && strcmp(ss.u.list[0].u.s, "one") == 0 && opd_arg_is_none(call, 20) && opd_arg_double(call, 21) > 2.4 &&
        opd_arg_is_none(call, 22) && strcmp(opd_arg_str(call, 23), "os") == 0 && opd_arg_value(call, 24).tag == OPD_TAG_BOOL &&
        opd_arg_is_none(call, 25) && opd_arg_tensor(call, 26) == NULL && two.n == 2 && two.data[0] == 3 && two.data[1] == 3 &&
        strcmp(opd_arg_str(call, 28), "k") == 0;
}
static int sink_any(opd_call *call) {
    static const int64_t ints[] = {4, 5};
    opd_tensor *x = opd_arg_tensor(call, 0), *list[2];
    sink_runs++;
    sink_generators += !opd_arg_is_none(call, 14);            /* a graph has none */
    if (!sink_right(call)) { return opd_fail(OPD_ERROR_USER, "an argument is not what was given"); }
    list[0] = opd_clone(x);
    list[1] = opd_neg(x);
    return opd_return_tensor(call, opd_mul_Scalar(x, opd_value_int(2))) || opd_return_tensors(call, list, 2) || opd_return_int(call, 8) ||
        opd_return_double(call, 2.5) || opd_return_bool(call, true) || opd_return_value(call, opd_value_str("out")) ||
        opd_return_value(call, opd_value_double(0.5)) || opd_return_value(call, opd_value_device(opd_device_make(OPD_CUDA, 1))) ||
        opd_return_value(call, opd_value_ints(ints, 2)) || opd_return_value(call, opd_value_none()) ? -1 : 0;
}
static int sink_backward(opd_backward_call *bw) {
    opd_tensor *g = opd_bw_grad(bw, 0), *g1 = opd_bw_grad(bw, 1);
    opd_tensor *sum = g ? opd_mul_Scalar(g, opd_value_int(2)) : NULL;
    if (g1) { sum = sum ? opd_add(sum, g1) : g1; }
    return opd_bw_return(bw, 0, sum);
}
TEST(arguments_and_results_of_every_kind) {
    static const double complex[2] = {1, 2}, floats[] = {0.25};
    static const int64_t ints[] = {4, 5, 6};
    static const bool bools[] = {true, false};
    opd_generator *gen = opd_generator_new(1);
    opd_library *lib = open_def("kinds");
    opd_tensor *x = opd_tensor_set_requires_grad(counted(2, 3), true), *o = counted(1, 1), *pair[2], *half[2];
    opd_value v[27], rets[10], numbers[2], text;
    opd_op_desc d;
    opd_op *op;
    memset(&d, 0, sizeof d);
    d.schema = SINK;
    d.any = sink_any;
    d.backward = sink_backward;
    CHECK_INT(opd_define(lib, &d), 0);
    op = opd_find("kinds::sink");
    pair[0] = pair[1] = half[0] = o;
    half[1] = NULL;
    numbers[0] = opd_value_int(1);
    numbers[1] = opd_value_double(1.5);
    text = opd_value_str("one");
    v[0] = opd_value_tensor(x); v[1] = opd_value_tensor(o); v[2] = opd_value_tensors(pair, 2); v[3] = opd_value_tensors(half, 2);
    v[4] = opd_value_int(7); v[5] = opd_value_double(1.5); v[6] = opd_value_bool(true); v[7] = opd_value_str("text");
    v[8] = opd_value_int(9); v[9] = opd_value_int(OPD_BFLOAT16); v[10] = opd_value_device(opd_device_make(OPD_CPU, -1));
    v[11] = opd_value_complex(complex); v[12] = v[13] = opd_value_none(); v[14] = opd_value_generator(gen);
    v[15] = opd_value_ints(ints, 3); v[16] = opd_value_doubles(floats, 1); v[17] = opd_value_bools(bools, 2);
    v[18] = opd_value_list(numbers, 2); v[19] = opd_value_list(&text, 1); v[20] = opd_value_none(); v[21] = opd_value_double(2.5);
    v[22] = opd_value_none(); v[23] = opd_value_str("os"); v[24] = opd_value_bool(true); v[25] = v[26] = opd_value_none();
    CHECK_INT(opd_call_all(op, rets, v, 27), 0);
    CHECK_OK();
    CHECK(sink_generators > 0);
    CHECK(rets[0].tag == OPD_TAG_TENSOR && opd_tensor_requires_grad(rets[0].u.t) && rets[1].tag == OPD_TAG_TENSORS && rets[1].n == 2);
    CHECK(rets[2].u.i == 8 && rets[3].tag == OPD_TAG_FLOAT && rets[4].u.i == 1 && strcmp(rets[5].u.s, "out") == 0);
    CHECK(rets[6].tag == OPD_TAG_FLOAT && rets[7].u.device.type == OPD_CUDA && rets[8].n == 2 && rets[8].u.ints[1] == 5);
    CHECK(rets[9].tag == OPD_TAG_NONE);
    CHECK_INT(opd_backward(opd_sum(opd_add(rets[0].u.t, rets[1].u.tensors[0]))), 0);
    CHECK_NEAR(opd_item_f64(opd_max(opd_tensor_grad(x))), 3, 0);
    sink_runs = 0;
    OPD_FAKE_MODE {                               /* the kernel of every device calls operators only: it is its own fake */
        CHECK_INT(opd_call_all(op, rets, v, 27), 0);
        CHECK(opd_size(rets[0].u.t, 1) == 3 && on(rets[1].u.tensors[1], OPD_CPU) && rets[2].u.i == 8);
    }
    CHECK_INT(sink_runs, 1);
    CHECK_INT(opd_opcheck(op, v, 27, NULL), 0);
    v[4] = opd_value_str("no int");
    CHECK_INT(opd_call_all(op, rets, v, 27), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "'i'");
    CHECK_OK();
    opd_library_close(lib);
    opd_generator_free(gen);
}

//-- OPD_CHECK and keys by constants ------------------------------------------------------------------------------------------

static int checked_cpu(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    if (x) OPD_CHECK(opd_ndim(x) == 2, "x must be a matrix, not %d-dimensional", opd_ndim(x));
    else return -1;
    OPD_CHECK(opd_size(x, 0) == opd_size(x, 1), "x must be square");
    return opd_return_tensor(call, opd_neg(x));
}
TEST(checks_in_kernels) {
    opd_library *lib = open_def("checked");
    opd_op *op;
    CHECK_INT(opd_def(lib, "f(Tensor x) -> Tensor"), 0);
    CHECK_INT(opd_impl_key(lib, "f", "CPU", checked_cpu, NULL, NULL), 0);
    op = opd_find("checked::f");
    CHECK(!OPD_CALL(op, opd_ones(OPD_INTS(3), OPD_FLOAT32)));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "checked::f: x must be a matrix, not 1-dimensional");
    CHECK(!OPD_CALL(op, opd_ones(OPD_INTS(2, 3), OPD_FLOAT32)));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "checked::f: x must be square");
    CHECK(OPD_CALL(op, opd_ones(OPD_INTS(2, 2), OPD_FLOAT32)) != NULL);
    opd_library_close(lib);
}
TEST(keys_as_constants) {
    static const struct { opd_key key; const char *name; } keys[] = {
        {OPD_KEY_CPU, "CPU"}, {OPD_KEY_AUTOGRAD_CUDA, "AutogradCUDA"}, {OPD_KEY_AUTOCAST_CPU, "AutocastCPU"},
        {OPD_KEY_AUTOCAST_CUDA, "AutocastCUDA"}, {OPD_KEY_PER_BACKEND(6, OPD_XPU), "AutocastXPU"}};
    size_t i;
    for (i = 0; i < sizeof keys / sizeof *keys; i++) {
        CHECK_INT(opd_key_parse(keys[i].name), keys[i].key);
        CHECK_STR(opd_key_name(keys[i].key), keys[i].name);
    }
}

//-- operators that write to arguments ---------------------------------------------------------------------------------

/* x += 1, in x and in all of the list: by data, so that versions are those that the dispatcher counts. */
static int count_up_cpu(opd_call *call) {
    const opd_tensors l = opd_arg_tensors(call, 2);
    int64_t i, k;
    for (i = -1; i < l.n; i++) {
        opd_tensor *t = i < 0 ? opd_arg_tensor(call, 0) : l.data[i];
        for (k = 0; k < opd_numel(t); k++) { opd_data_f32(t)[k * opd_strides(t)[opd_ndim(t) - 1]] += 1; }
    }
    return 0;
}
static int save_square(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_bw_grad(bw, 0)); }
TEST(operators_that_write_and_return_nothing) {
    opd_library *lib = open_def("writes");
    opd_tensor *x = counted(1, 3), *y = counted(1, 3), *list[2], *leaf = opd_tensor_set_requires_grad(counted(1, 3), true), *square;
    opd_op_desc d;
    opd_value v[3];
    opd_op *op;
    int way;
    for (way = 0; way < 2; way++) {
        uint32_t version, other, in_list;
        opd_library *part = way ? open_impl("writes") : NULL;
        memset(&d, 0, sizeof d);
        d.schema = way ? "later(Tensor(a!) x, Tensor y, Tensor(b!)[] list) -> ()" : "now(Tensor(a!) x, Tensor y, Tensor(b!)[] list) -> ()";
        if (!way) { d.cpu = count_up_cpu; }
        CHECK_INT(opd_define(lib, &d), 0);
        if (way) { CHECK_INT(opd_impl_key(part, "later", "CPU", count_up_cpu, NULL, NULL), 0); }
        op = opd_find(way ? "writes::later" : "writes::now");
        list[0] = counted(1, 2);
        list[1] = counted(1, 1);
        v[0] = opd_value_tensor(x); v[1] = opd_value_tensor(y); v[2] = opd_value_tensors(list, 2);
        version = opd_tensor_version(x);
        other = opd_tensor_version(y);
        in_list = opd_tensor_version(list[1]);
        CHECK_INT(opd_call_all(op, NULL, v, 3), 0);
        CHECK_NEAR(opd_data_f32(list[1])[0], 1, 0);
        CHECK_INT(opd_tensor_version(x), version + 1);
        CHECK_INT(opd_tensor_version(y), other);
        CHECK_INT(opd_tensor_version(list[1]), in_list + 1);
        OPD_FAKE_MODE { CHECK_INT(opd_call_all(op, NULL, v, 3), 0); }         /* without results there is nothing to say */
        CHECK_NEAR(opd_data_f32(list[1])[0], 1, 0);
        CHECK_INT(opd_opcheck(op, v, 3, NULL), 0);
        /* what was saved for a backward and is written is found */
        square = opd_mul(leaf, x);
        CHECK_INT(opd_call_all(op, NULL, v, 3), 0);
        CHECK_INT(opd_backward(opd_sum(square)), -1);
        CHECK_ERROR(OPD_ERROR_AUTOGRAD, "modified by an inplace operation");
        CHECK_OK();
        opd_library_close(part);
    }
    memset(&d, 0, sizeof d);
    d.schema = "formula(Tensor(a!) x) -> ()";
    CHECK_INT(opd_define(lib, &d), 0);
    CHECK_INT(opd_autograd_register(lib, "formula", save_square, NULL), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "Cannot register autograd formula for non-functional operator writes::formula");
    opd_library_close(lib);
}

//-- devices -----------------------------------------------------------------------------------------------------------

static int make(opd_call *call, double value) {
    const opd_ints size = opd_arg_ints(call, 0);
    return opd_return_tensor(call, opd_mul_Scalar(opd_ones(size, OPD_FLOAT32), opd_value_double(value)));
}
static int make_cpu(opd_call *call) { return make(call, 1); }
static int make_any(opd_call *call) { return make(call, 2); }
static int make_fake(opd_call *call) {
    const opd_ints size = opd_arg_ints(call, 0);
    return opd_result(call, 0, size.data, (int)size.n, OPD_FLOAT32) ? 0 : -1;
}
static opd_tensor *made(const char *name, opd_value device) {
    static const int64_t two = 2;
    opd_value v[2];
    v[0] = opd_value_ints(&two, 1);
    v[1] = device;
    return opd_call_op(opd_find(name), v, 2);
}
TEST(without_tensors_the_device_says_whose_kernel_it_is) {
    opd_library *lib = open_def("makes"), *more;
    const opd_value none = opd_value_none(), cpu = opd_value_device(opd_device_make(OPD_CPU, -1));
    const opd_value meta = opd_value_device(opd_device_make(OPD_META, -1)), cuda = opd_value_device(opd_device_make(OPD_CUDA, 0));
    opd_tensor *t = NULL;
    char text[3000];
    opd_value v[2];
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "one(int[] size, *, Device? device=None) -> Tensor";
    d.cpu = make_cpu;
    d.fake = make_fake;
    CHECK_INT(opd_define(lib, &d), 0);
    CHECK_NEAR(opd_item_f64(opd_select(made("makes::one", none), 0, 0)), 1, 0);
    CHECK_NEAR(opd_item_f64(opd_select(made("makes::one", cpu), 0, 0)), 1, 0);
    CHECK(on(made("makes::one", meta), OPD_META));
    CHECK(made("makes::one", cuda) == NULL);
    CHECK_ERROR(OPD_ERROR_NO_KERNEL, "Could not run 'makes::one' with arguments from the 'CUDA' backend");
    OPD_FAKE_MODE {
        t = made("makes::one", cuda);
        CHECK(t && on(t, OPD_CUDA) && opd_numel(t) == 2);
        t = made("makes::one", none);
        CHECK(t && on(t, OPD_CPU));
    }
    CHECK_OK();
    v[0] = opd_value_ints(NULL, 0);
    v[1] = meta;
    (void)opd_explain(opd_find("makes::one"), v, 2, text, sizeof text);
    CHECK(strstr(text, "=> Meta: from argument 'device', when no other key is left; kernel, registered at def.c:1"));
    /* one of every device stands in for those that have none */
    more = open_impl("makes");
    CHECK_INT(opd_impl_key(more, "one", "CompositeExplicitAutograd", make_any, NULL, NULL), 0);
    CHECK_NEAR(opd_item_f64(opd_select(made("makes::one", cuda), 0, 0)), 2, 0);
    CHECK_NEAR(opd_item_f64(opd_select(made("makes::one", none), 0, 0)), 1, 0);
    CHECK(on(made("makes::one", meta), OPD_META));
    opd_library_close(more);
    CHECK(made("makes::one", cuda) == NULL);
    opd_error_clear();
    /* without such an argument nothing says it */
    d.schema = "two(int[] size, int x=0) -> Tensor";
    CHECK_INT(opd_define(lib, &d), 0);
    CHECK(made("makes::two", opd_value_int(0)) == NULL);
    CHECK_ERROR(OPD_ERROR_NO_KERNEL, "Give the operator a Device argument");
    d.schema = "three(int[] size, int x=0) -> Tensor";
    d.any = make_any;
    d.cpu = d.fake = NULL;
    CHECK_INT(opd_define(lib, &d), 0);
    CHECK_NEAR(opd_item_f64(opd_select(made("makes::three", opd_value_int(0)), 0, 0)), 2, 0);
    CHECK_OK();
    opd_library_close(lib);
    CHECK_INT(opd_check_invariants(), 0);
}
/* A kernel at BackendSelect chooses by what it likes. */
static int by_name(opd_call *call) {
    const bool fake = strcmp(opd_arg_str(call, 0), "fake") == 0;
    return opd_redispatch(call, opd_keyset_make(OPD_BIT_OF(OPD_F_DENSE), (uint64_t)1 << (fake ? OPD_META : OPD_CPU)));
}
static int named_cpu(opd_call *call) { return opd_return_tensor(call, counted(1, 2)); }
static int named_fake(opd_call *call) { static const int64_t sizes[] = {1, 2}; return opd_result(call, 0, sizes, 2, OPD_FLOAT32) ? 0 : -1; }
TEST(backend_select) {
    opd_library *lib = open_def("makes");
    opd_value name = opd_value_str("real");
    CHECK_INT(opd_def(lib, "named(str name) -> Tensor"), 0);
    CHECK_INT(opd_impl_key(lib, "named", "CPU", named_cpu, NULL, NULL), 0);
    CHECK_INT(opd_fake_register(lib, "named", named_fake), 0);
    CHECK_INT(opd_impl_key(lib, "named", "BackendSelect", by_name, NULL, NULL), 0);
    CHECK(on(opd_call_op(opd_find("makes::named"), &name, 1), OPD_CPU));
    name = opd_value_str("fake");
    CHECK(on(opd_call_op(opd_find("makes::named"), &name, 1), OPD_META));
    CHECK_OK();
    opd_library_close(lib);
}

//-- plain C functions -------------------------------------------------------------------------------------------------

static opd_tensor *blend(opd_tensor *a, opd_tensor *b, double t) {
    return b ? opd_lerp_Scalar(a, b, opd_value_double(t)) : opd_clone(a);
}
static opd_value pick(opd_value a, opd_tensors list, opd_value n) {
    return n.tag == OPD_TAG_NONE ? a : opd_value_int(list.n + n.u.i);
}
OPD_FUNCTION(blend_op, blend, opd_tensor *, opd_tensor *, opd_tensor *, double)
OPD_FUNCTION(pick_op, pick, opd_value, opd_value, opd_tensors, opd_value)
static int blend_backward(opd_backward_call *bw) {
    const double t = opd_bw_double(bw, 2);
    if (opd_bw_needs(bw, 1) && opd_bw_return(bw, 1, opd_mul_Scalar(opd_bw_grad(bw, 0), opd_value_double(t)))) { return -1; }
    return opd_bw_return(bw, 0, opd_mul_Scalar(opd_bw_grad(bw, 0), opd_value_double(1 - t)));
}
static void schema_is(const char *name, const char *want) {
    char text[512];
    (void)opd_schema_print(opd_op_schema(opd_find(name)), text, sizeof text);
    CHECK_STR(text, want);
}
TEST(cards_of_plain_functions) {
    opd_library *lib = open_def("plain");
    opd_tensor *a = opd_tensor_set_requires_grad(counted(1, 2), true), *y;
    opd_value v[3];
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "blend(Tensor a, Tensor? b, float t=0.25) -> Tensor";
    d.function = &blend_op;
    d.backward = blend_backward;
    CHECK_INT(opd_define(lib, &d), 0);
    d.schema = "inferred";
    d.vmap = OPD_BATCH_POINTWISE;
    CHECK_INT(opd_define(lib, &d), 0);
    schema_is("plain::inferred", "plain::inferred(Tensor _0, Tensor _1, float _2) -> Tensor _0");
    v[0] = opd_value_tensor(a);
    v[1] = opd_value_tensor(opd_ones(OPD_INTS(1, 2), OPD_FLOAT32));
    v[2] = opd_value_double(0.25);
    y = opd_call_op(opd_find("plain::blend"), v, 2);
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK_NEAR(opd_data_f32(opd_tensor_grad(a))[1], 0.75, 0);
    CHECK_INT(opd_opcheck(opd_find("plain::blend"), v, 2, NULL), 0);
    CHECK_INT(opd_opcheck(opd_find("plain::inferred"), v, 3, NULL), 0);
    v[1] = opd_value_none();
    CHECK(all_near(opd_call_op(opd_find("plain::blend"), v, 2), opd_detach(a)));
    CHECK_OK();
    d.schema = "wrong(Tensor a, Tensor b, int t) -> Tensor";
    CHECK_INT(opd_define(lib, &d), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "Type mismatch in argument 3: int vs float.");
    CHECK(opd_find_quiet("plain::wrong") == NULL);
    d.any = scale_cpu;
    CHECK_INT(opd_define(lib, &d), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "`function` is used instead of `any`");
    d.any = NULL;
    d.schema = NULL;
    CHECK_INT(opd_define(lib, &d), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "");
    memset(&d, 0, sizeof d);
    d.schema = "pick(Scalar a, Tensor[] list, int? n=None) -> Scalar";
    d.function = &pick_op;
    CHECK_INT(opd_define(lib, &d), 0);
    v[0] = opd_value_double(0.5);
    v[1] = opd_value_tensors(&a, 1);
    CHECK_NEAR(opd_call_value(opd_find("plain::pick"), v, 2).u.d, 0.5, 0);
    v[2] = opd_value_int(4);
    CHECK_INT(opd_call_value(opd_find("plain::pick"), v, 3).u.i, 5);
    d.schema = "picked";
    CHECK_INT(opd_define(lib, &d), 0);
    schema_is("plain::picked", "plain::picked(Scalar _0, Tensor[] _1, Scalar _2) -> Scalar _0");
    CHECK_OK();
    opd_library_close(lib);
}


//-- results -----------------------------------------------------------------------------------------------------------

/* A kernel makes a result and then returns None in its place. */
static int made_and_none(opd_call *call) {
    const int64_t two = 2;
    if (!opd_result(call, 0, &two, 1, OPD_FLOAT32)) { return -1; }
    return opd_return_value(call, opd_value_none());
}
TEST(none_in_place_of_a_result_that_was_made) {
    opd_library *lib = open_def("none");
    opd_op_desc d;
    opd_value v = opd_value_tensor(opd_ones(OPD_INTS(2), OPD_FLOAT32)), r;
    memset(&d, 0, sizeof d);
    d.schema = "made(Tensor x) -> Tensor?";
    d.any = made_and_none;
    CHECK_INT(opd_define(lib, &d), 0);
    r = v;
    CHECK_INT(opd_call_all(opd_find("none::made"), &r, &v, 1), 0);
    CHECK_INT(r.tag, OPD_TAG_NONE);
    opd_library_close(lib);
}

/* (parts, c) and (c, parts), c constant: its place among the results is that of the schema, however long the list. */
static int nparts;
static bool c_first;
static int parts_kernel(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *list[40];
    int i;
    for (i = 0; i < nparts; i++) { list[i] = opd_mul_Scalar(x, opd_value_double(i + 1)); }
    if (c_first && opd_return_tensor(call, opd_exp(x))) { return -1; }
    if (opd_return_tensors(call, list, nparts)) { return -1; }
    return c_first ? 0 : opd_return_tensor(call, opd_exp(x));
}
static int parts_backward(opd_backward_call *bw) {
    opd_tensor *sum = NULL;
    int i;
    for (i = 0; i < nparts; i++) {
        opd_tensor *g = opd_bw_grad(bw, i + c_first);
        if (!g) { continue; }
        g = opd_mul_Scalar(g, opd_value_double(i + 1));
        sum = sum ? opd_add(sum, g) : g;
    }
    CHECK(opd_bw_grad(bw, c_first ? 0 : nparts) == NULL);
    return opd_bw_return(bw, 0, sum);
}
static int parts_forward(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_value v = opd_value_tensor(in[0]), r[2];
    int i;
    (void)n;
    if (opd_call_all((opd_op *)user, r, &v, 1)) { return -1; }
    for (i = 0; i < nparts; i++) { out[i] = r[c_first].u.tensors[i]; }
    out[nparts] = r[!c_first].u.t;
    return nparts + 1;
}
TEST(a_constant_result_beside_a_list) {
    static const int lengths[] = {1, 2, 3, 31, 32, 33, 40};
    int k, i;
    for (k = 0; k < 14; k++) {
        opd_library *lib = open_def("parts");
        opd_tensor *x = opd_full(OPD_INTS(2), opd_value_double(3), OPD_FLOAT32), *one = opd_ones(OPD_INTS(2), OPD_FLOAT32), *out[64], *along[64];
        opd_op_desc d;
        opd_op *op;
        nparts = lengths[k / 2];
        c_first = k % 2 != 0;
        memset(&d, 0, sizeof d);
        d.schema = c_first ? "f(Tensor x) -> (Tensor c, Tensor[] parts)" : "f(Tensor x) -> (Tensor[] parts, Tensor c)";
        d.any = parts_kernel;
        d.backward = parts_backward;
        d.constant = "c";
        CHECK_INT(opd_define(lib, &d), 0);
        op = opd_find("parts::f");
        CHECK_INT(opd_jvp(parts_forward, op, &x, &one, 1, NULL, out, along, 64), nparts + 1);
        for (i = 0; i < nparts; i++) { CHECK(along[i] && opd_item_f64(opd_select(along[i], 0, 1)) == i + 1); }
        CHECK(along[nparts] && opd_item_f64(opd_select(along[nparts], 0, 1)) == 0);
        (void)opd_tensor_set_requires_grad(x, true);
        CHECK_INT(parts_forward(op, &x, 1, out), nparts + 1);
        for (i = 0; i <= nparts; i++) { CHECK(opd_tensor_requires_grad(out[i]) == (i < nparts)); }
        CHECK_INT(opd_backward(opd_sum(out[nparts - 1])), 0);
        CHECK(opd_tensor_grad(x) && opd_item_f64(opd_select(opd_tensor_grad(x), 0, 0)) == nparts);
        opd_library_close(lib);
    }
}

/* A kernel without a formula that writes its argument keeps the history that it recorded itself, also in anomaly mode. */
static int writes_and_records(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    return opd_mul_Scalar_(x, opd_value_double(2)) ? opd_return_tensor(call, x) : -1;
}
static void say_nothing(void *user, int is_error, const char *text) { (void)user; (void)is_error; (void)text; }
TEST(what_a_kernel_records_stays_in_anomaly_mode) {
    const opd_autograd_fallback_mode mode = opd_autograd_fallback_set(OPD_AUTOGRAD_FALLBACK_WARN);
    opd_library *lib = open_def("writes");
    opd_op_desc d;
    int way;
    memset(&d, 0, sizeof d);
    d.schema = "twice_(Tensor(a!) x) -> Tensor(a!)";
    d.any = writes_and_records;
    CHECK_INT(opd_define(lib, &d), 0);
    opd_log_set(say_nothing, NULL);
    for (way = 0; way < 2; way++) {
        const int was = opd_anomaly_set(way == 1, false);
        opd_tensor *x = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(2), OPD_FLOAT32), true);
        opd_value v = opd_value_tensor(opd_mul_Scalar(x, opd_value_double(3))), r;
        CHECK_INT(opd_call_all(opd_find("writes::twice_"), &r, &v, 1), 0);
        CHECK_INT(opd_backward(opd_sum(r.u.t)), 0);
        CHECK(opd_tensor_grad(x) && opd_item_f64(opd_select(opd_tensor_grad(x), 0, 0)) == 6);
        (void)opd_anomaly_set((was & OPD_ANOMALY_ON) != 0, (was & OPD_ANOMALY_NAN) != 0);
    }
    opd_log_set(NULL, NULL);
    (void)opd_autograd_fallback_set(mode);
    opd_library_close(lib);
}

/* A name of any length is kept whole, and once. */
static int passes(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_bw_grad(bw, 0)); }
TEST(long_names_of_formulas_recorded_by_hand) {
    opd_tensor *x = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(2), OPD_FLOAT32), true);
    static char name[300];
    int n, i;
    for (n = 60; n < 300; n = n < 68 ? n + 1 : n + 77) {
        int64_t live = 0;
        memset(name, 'a', (size_t)n);
        name[n] = 0;
        for (i = 0; i < 20; i++) {
            OPD_SCOPE {
                opd_tensor *y = opd_detach(x);
                CHECK_INT(opd_autograd_record(name, passes, &x, 1, NULL, 0, NULL, 0, &y, 1), 0);
                CHECK_STR(opd_tensor_grad_fn(y), name);
            }
            if (i == 1) { live = opd_memory_stats().live; }
        }
        CHECK_INT(opd_memory_stats().live, live);
    }
}

CHECK_MAIN()
