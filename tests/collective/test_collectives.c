/* Process groups, collectives as operators, and waiting for them, with a group of one rank and groups of threads.
   THREADED.  C ONLY */
#include "../../opdispatch.h"
#if defined(__TINYC__) || defined(OPD_NO_THREADS)
#include "../check.h"
TEST(threads_are_left_out) { CHECK(true); }
CHECK_MAIN()
#else
#include "../thread_group.h"
#include "../check.h"

static opd_tensor *floats(int64_t count, double first, double step) {
    opd_tensor *const tensor = opd_empty(OPD_INTS(count), OPD_FLOAT32);
    float *const data = opd_data_f32(tensor);
    for (int64_t i = 0; data && i < count; i++) { data[i] = (float)(first + step * (double)i); }
    return tensor;
}
static opd_tensor *call(const char *name, const opd_value *args, int count) {
    char whole[100];
    (void)snprintf(whole, sizeof whole, "_c10d_functional::%s", name);
    return opd_call_op(opd_find(whole), args, count);
}
static bool holds(opd_tensor *tensor, const float *want, int64_t count) {
    opd_tensor *const flat = opd_to_dtype(opd_reshape(tensor, OPD_INTS(-1)), OPD_FLOAT64);
    const double *const data = opd_data_f64(flat);
    if (!data || opd_numel(flat) != count) { return false; }
    for (int64_t i = 0; i < count; i++) { if (!(fabs(data[i] - (double)want[i]) <= 1e-6)) { return false; } }
    return true;
}
#define HOLDS(tensor, ...) do { \
        const float want_[] = {__VA_ARGS__}; \
        CHECK(holds(tensor, want_, (int64_t)(sizeof want_ / sizeof *want_))); \
    } while (0)

//== one process =======================================================================================================

static const char *const schemas[] = {
    "_c10d_functional::all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor",
    "_c10d_functional::all_reduce_(Tensor(a!) input, str reduce_op, str group_name) -> Tensor(a!)",
    "_c10d_functional::all_reduce_coalesced(Tensor[] inputs, str reduce_op, str group_name) -> Tensor[]",
    "_c10d_functional::all_reduce_coalesced_(Tensor[](a!) inputs, str reduce_op, str group_name) -> Tensor[](a!)",
    "_c10d_functional::all_gather_into_tensor(Tensor input, int group_size, str group_name) -> Tensor",
    "_c10d_functional::all_gather_into_tensor_out(Tensor input, int group_size, str group_name, *, Tensor(a!) out) -> "
    "Tensor(a!)",
    "_c10d_functional::all_gather_into_tensor_coalesced(Tensor[] inputs, int group_size, str group_name) -> Tensor[]",
    "_c10d_functional::reduce_scatter_tensor(Tensor input, str reduce_op, int group_size, str group_name) -> Tensor",
    "_c10d_functional::reduce_scatter_tensor_out(Tensor input, str reduce_op, int group_size, str group_name, *, "
    "Tensor(a!) out) -> Tensor(a!)",
    "_c10d_functional::reduce_scatter_tensor_coalesced(Tensor[] inputs, str reduce_op, int group_size, str group_name) "
    "-> Tensor[]",
    "_c10d_functional::all_to_all_single(Tensor input, SymInt[] output_split_sizes, SymInt[] input_split_sizes, str "
    "group_name) -> Tensor",
    "_c10d_functional::broadcast(Tensor input, int src, str group_name) -> Tensor",
    "_c10d_functional::broadcast_(Tensor(a!) input, int src, str group_name) -> Tensor(a!)",
    "_c10d_functional::isend(Tensor tensor, int dst, int tag, str group_name) -> Tensor",
    "_c10d_functional::irecv(Tensor(a!) tensor, int src, int tag, str group_name) -> Tensor(a!)",
    "_c10d_functional::wait_tensor(Tensor tensor) -> Tensor",
    "_c10d_functional::wait_tensors(Tensor[] tensors) -> Tensor[]",
    "_c10d_functional_autograd::all_to_all_single(Tensor input, SymInt[] output_split_sizes, SymInt[] "
    "input_split_sizes, str group_name) -> Tensor",
    "_c10d_functional_autograd::reduce_scatter_tensor(Tensor input, str reduce_op, int group_size, str group_name) -> "
    "Tensor",
    "_c10d_functional_autograd::all_gather_into_tensor(Tensor input, int group_size, str group_name) -> Tensor",
    "_c10d_functional_autograd::_wrap_tensor_autograd(Tensor input) -> Tensor"};
/* The schemas of PyTorch 2.15, with str instead of Any (a str or a Python object).  PyTorch's schema of irecv does
   not say that it writes. */
TEST(schemas_are_pytorchs) {
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        char name[100], text[400];
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(schemas[i], "("), schemas[i]);
        const opd_op *const op = opd_find(name);
        CHECK_OR_RETURN(op != NULL);
        (void)opd_schema_print(opd_op_schema(op), text, sizeof text);
        CHECK_STR(text, schemas[i]);
    }
}
TEST(a_process_alone_has_a_group) {
    opd_tensor *const x = floats(4, 1, 1);
    CHECK_INT(opd_group_size(opd_group_find("self")), 1);
    CHECK_INT(opd_group_rank(opd_group_find("self")), 0);
    HOLDS(opd_all_reduce(x, "sum", "self"), 1, 2, 3, 4);
    HOLDS(opd_all_reduce(x, "avg", "self"), 1, 2, 3, 4);
    HOLDS(opd_all_gather(x, "self"), 1, 2, 3, 4);
    HOLDS(opd_reduce_scatter(x, "max", "self"), 1, 2, 3, 4);
    HOLDS(opd_broadcast(x, 0, "self"), 1, 2, 3, 4);
    CHECK(opd_all_reduce_(x, "sum", "self") == x);
    CHECK(opd_all_reduce(x, "sum", "self") != x);
    HOLDS(opd_all_reduce(opd_t(opd_reshape(x, OPD_INTS(2, 2))), "sum", "self"), 1, 3, 2, 4);
    CHECK_INT(opd_work_wait(opd_group_barrier(opd_group_find("self"))), 0);
    CHECK_INT(opd_work_wait(opd_group_reduce(opd_group_find("self"), x, "sum", 0)), 0);
    HOLDS(x, 1, 2, 3, 4);
}
typedef struct one_case { const char *name; int count; opd_value rest[3]; } one_case;
static int one_calls(void *user, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    const one_case *const one = (const one_case *)user;
    opd_value args[4];
    args[0] = opd_value_tensor(inputs[0]);
    for (int i = 0; i < one->count; i++) { args[i + 1] = one->rest[i]; }
    outputs[0] = call(one->name, args, one->count + 1);
    return ninputs == 1 && outputs[0] ? 1 : -1;
}
static const int64_t three[1] = {3};
static int cases_of(one_case *all) {
    const opd_value sum = opd_value_str("sum"), avg = opd_value_str("avg"), self = opd_value_str("self");
    const opd_value one = opd_value_int(1), zero = opd_value_int(0), split = opd_value_ints(three, 1);
    const one_case list[] = {{"all_reduce", 2, {sum, self, self}}, {"all_reduce", 2, {avg, self, self}},
        {"all_reduce", 2, {opd_value_str("max"), self, self}}, {"all_reduce", 2, {opd_value_str("min"), self, self}},
        {"all_reduce", 2, {opd_value_str("product"), self, self}},
        {"reduce_scatter_tensor", 3, {opd_value_str("product"), one, self}},
        {"reduce_scatter_tensor", 3, {opd_value_str("max"), one, self}},
        {"all_gather_into_tensor", 2, {one, self, self}}, {"reduce_scatter_tensor", 3, {sum, one, self}},
        {"reduce_scatter_tensor", 3, {avg, one, self}}, {"all_to_all_single", 3, {split, split, self}},
        {"broadcast", 2, {zero, self, self}}, {"wait_tensor", 0, {self, self, self}}};
    memcpy(all, list, sizeof list);
    return (int)(sizeof list / sizeof *list);
}
/* opcheck cannot test wait_tensor, because its schema does not say that it returns its argument. */
TEST(they_do_what_their_schemas_say) {
    one_case all[16];
    const int count = cases_of(all);
    for (int i = 0; i < count; i++) {
        OPD_SCOPE {
            char name[100];
            opd_tensor *x = opd_randn(OPD_INTS(3, 2), OPD_FLOAT64);
            opd_value args[4] = {opd_value_tensor(x), all[i].rest[0], all[i].rest[1], all[i].rest[2]};
            (void)snprintf(name, sizeof name, "_c10d_functional::%s", all[i].name);
            if (all[i].count > 0) { CHECK_INT(opd_opcheck(opd_find(name), args, all[i].count + 1, NULL), 0); }
            CHECK_OK();
            opd_tensor_set_requires_grad(x, true);
            CHECK_INT(opd_gradcheck(one_calls, &all[i], &x, 1, NULL), 0);
            CHECK_INT(opd_gradgradcheck(one_calls, &all[i], &x, 1, NULL, NULL), 0);
            CHECK_OK();
        }
    }
}
TEST(examples_in_any_dim_are_run_together) {
    one_case all[16];
    const int count = cases_of(all);
    for (int i = 0; i < count; i++) {
        for (int dim = 0; dim < 3; dim++) {
            OPD_SCOPE {
                opd_vmap_options options;
                opd_tensor *const x = opd_randn(OPD_INTS(3, 3, 3), OPD_FLOAT32), *y = NULL;
                memset(&options, 0, sizeof options);
                options.in_dims = options.out_dims = &dim;
                options.nin_dims = options.nout_dims = 1;
                CHECK_INT(opd_vmap(one_calls, &all[i], &x, 1, &options, &y, 1), 1);
                CHECK(y && opd_equal(x, y));
                CHECK_OK();
            }
        }
    }
}
TEST(they_are_recorded_saved_and_run) {
    one_case all[16];
    const int count = cases_of(all);
    for (int i = 0; i < count; i++) {
        OPD_SCOPE {
            const char *const path = "collectives_test_graph.tmp";
            char name[100];
            opd_tensor *const x = opd_randn(OPD_INTS(3, 2), OPD_FLOAT32);
            opd_tensor *y = NULL;
            opd_graph *const graph = opd_graph_trace(one_calls, &all[i], &x, 1, NULL);
            (void)snprintf(name, sizeof name, "_c10d_functional::%s", all[i].name);
            CHECK_INT(opd_graph_count(graph, name), 1);
            CHECK_INT(opd_graph_save(graph, path), 0);
            opd_graph_free(graph);
            opd_graph *const loaded = opd_graph_load(path);
            CHECK_INT(opd_graph_run(loaded, &x, 1, &y, 1), 1);
            CHECK(y && opd_equal(x, y));
            opd_graph_free(loaded);
            (void)remove(path);
            CHECK_OK();
        }
    }
}
TEST(fakes_need_no_group) {
    opd_tensor *const x = opd_tensor_new_on(OPD_INTS(6, 2), OPD_FLOAT32, opd_device_make(OPD_META, -1));
    const opd_value gather[] = {opd_value_tensor(x), opd_value_int(4), opd_value_str("anywhere")};
    const opd_value scatter[] = {opd_value_tensor(x), opd_value_str("sum"), opd_value_int(3),
                                 opd_value_str("anywhere")};
    CHECK_OK();
    CHECK_INT(opd_size(call("all_gather_into_tensor", gather, 3), 0), 24);
    CHECK_INT(opd_size(call("reduce_scatter_tensor", scatter, 4), 0), 2);
    CHECK_OK();
}
static void refused(const char *name, const opd_value *args, int count, const char *part) {
    CHECK(call(name, args, count) == NULL);
    if (opd_ok() || !strstr(opd_error_message(), part)) {
        printf("%s: %s\n", name, opd_ok() ? "(no error)" : opd_error_message());
        CHECK(false);
    }
    opd_error_clear();
}
TEST(mistakes_are_named) {
    opd_tensor *const x = floats(4, 1, 1), *const whole = opd_ones(OPD_INTS(4), OPD_INT64);
    const int64_t two[2] = {2, 2}, minus[1] = {-4}, four[1] = {4}, five[1] = {5};
    opd_value args[4] = {opd_value_tensor(x), opd_value_str("sum"), opd_value_str("nowhere"), opd_value_none()};
    refused("all_reduce", args, 3, "there is no process group 'nowhere'");
    args[1] = opd_value_str("mean");
    args[2] = opd_value_str("self");
    refused("all_reduce", args, 3, "reduce_op must be");
    args[1] = opd_value_str("band");
    refused("all_reduce", args, 3, "band is not possible for float32");
    args[0] = opd_value_tensor(whole);
    args[1] = opd_value_str("avg");
    refused("all_reduce", args, 3, "avg is not possible for int64");
    args[0] = opd_value_tensor(x);
    args[1] = opd_value_int(2);
    refused("all_gather_into_tensor", args, 3, "group_size is 2, but process group 'self' has 1");
    args[1] = opd_value_int(0);
    refused("all_gather_into_tensor", args, 3, "group_size must be at least 1, not 0");
    args[0] = opd_value_tensor(opd_reshape(floats(1, 1, 1), opd_ints_of(NULL, 0)));
    args[1] = opd_value_int(1);
    refused("all_gather_into_tensor", args, 3, "input must have at least one dim");
    args[0] = opd_value_tensor(x);
    args[1] = opd_value_int(1);
    refused("broadcast", args, 3, "src is 1");
    args[1] = opd_value_str("sum");
    args[2] = opd_value_int(3);
    args[3] = opd_value_str("self");
    refused("reduce_scatter_tensor", args, 4, "not a multiple of group_size 3");
    args[1] = args[2] = opd_value_ints(two, 2);
    refused("all_to_all_single", args, 4, "2 split sizes for the 1 rank");
    args[1] = args[2] = opd_value_ints(minus, 1);
    refused("all_to_all_single", args, 4, "output_split_sizes contains -4");
    args[1] = opd_value_ints(five, 1);
    args[2] = opd_value_ints(four, 1);
    refused("all_to_all_single", args, 4, "sends itself 4 row(s), but receives 5");
    CHECK_INT(opd_group_size(NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the process group is NULL");
    CHECK_INT(opd_work_wait(NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the work is NULL");
    CHECK(opd_group_register(NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the descriptor is NULL");
    CHECK(opd_group_send(opd_group_find("self"), x, 0, 0) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "is this process, which cannot send to itself");
    CHECK(opd_group_send(opd_group_find("self"), x, 1, 0) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "rank 1 is not in process group 'self'");
    CHECK(opd_group_reduce(opd_group_find("self"), opd_t(opd_ones(OPD_INTS(2, 3), OPD_FLOAT32)), "sum", 0) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "must be contiguous");
    opd_tensor *const leaf = opd_tensor_set_requires_grad(floats(3, 0, 1), true);
    CHECK_INT(opd_backward(opd_sum(opd_all_reduce_(opd_clone(leaf), "product", "self"))), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "all_reduce_ has no derivative for product");
}

/* Groups that cannot be made, and transfers that a group cannot do. */
static int never_starts(void *user, const opd_transfer *transfer, void **request) {
    (void)user; (void)transfer; (void)request;
    return -1;
}
static int never_done(void *user, void *request, int64_t wait_us) { (void)user; (void)request; (void)wait_us; return -1; }
static int never_splits(void *user, const int32_t *ranks, int32_t count, opd_group_desc *out) {
    (void)user; (void)ranks; (void)count; (void)out;
    return -1;
}
static opd_group *group_of(const char *name, int rank, int size, bool functions, int64_t timeout_ms) {
    opd_group_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = name; desc.rank = rank; desc.size = size; desc.timeout_ms = timeout_ms;
    if (functions) { desc.start = never_starts; desc.test = never_done; desc.checked = true; }
    return opd_group_register(&desc);
}
static int gathers_it(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const opd_value args[3] = {opd_value_tensor(in[0]), opd_value_int(1), opd_value_str("self")};
    (void)user; (void)n;
    out[0] = call("all_gather_into_tensor", args, 3);
    return out[0] ? 1 : -1;
}
static int sends_it(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const opd_value args[4] = {opd_value_tensor(in[0]), opd_value_int(0), opd_value_int(0), opd_value_str("self")};
    (void)user; (void)n;
    out[0] = call("isend", args, 4);
    return out[0] ? 1 : -1;
}
#define NO_GROUP(name, rank, size, functions, ms, part) do { \
        CHECK(group_of(name, rank, size, functions, ms) == NULL); CHECK_ERROR(OPD_ERROR_ARGUMENT, part); } while (0)
#define NO_WORK(work, code, part) do { CHECK((work) == NULL); CHECK_ERROR(code, part); } while (0)
TEST(groups_and_transfers_that_cannot_be) {
    static const char long_name[] = "0123456789012345678901234567890123456789012345678901234567890123";
    const int32_t both[2] = {0, 1};
    opd_tensor *x = floats(3, 1, 1), *out;
    opd_transfer transfer;
    NO_GROUP("", 0, 1, false, 0, "the name of a group must have 1 to 63 bytes");
    NO_GROUP(long_name, 0, 1, false, 0, "the name of a group must have 1 to 63 bytes");
    NO_GROUP("pair", 2, 2, true, 0, "group 'pair' cannot have rank 2 of 2");
    NO_GROUP("pair", 0, 0, true, 0, "group 'pair' cannot have rank 0 of 0");
    NO_GROUP("pair", 0, 2, false, 0, "group 'pair' lacks a function, or its timeout_ms is negative");
    NO_GROUP("pair", 0, 2, true, -1, "group 'pair' lacks a function, or its timeout_ms is negative");
    opd_group *const pair = group_of("pair", 0, 2, true, 0), *const self = opd_group_find("self");
    CHECK_OR_RETURN(pair && self);
    CHECK(group_of("pair", 0, 2, true, 0) == NULL);
    CHECK_ERROR(OPD_ERROR_REGISTER, "there is already a process group 'pair'");
    CHECK(opd_group_find("") == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "the name of the process group is NULL or empty");
    NO_WORK(opd_group_split(pair, "part", both, 0), OPD_ERROR_ARGUMENT, "the new group has no ranks");
    NO_WORK(opd_group_split(pair, "part", both, 2), OPD_ERROR_ARGUMENT, "process group 'pair' does not support subgroups");
    NO_WORK(opd_group_start(self, NULL), OPD_ERROR_ARGUMENT, "the transfer is NULL");
    memset(&transfer, 0, sizeof transfer);
    NO_WORK(opd_group_start(self, &transfer), OPD_ERROR_ARGUMENT, "the kind, count or tag of the transfer is not valid");
    transfer.kind = OPD_COLLECTIVE_SEND; transfer.dtype = OPD_FLOAT32; transfer.peer = 1; transfer.tag = 1 << 30;
    NO_WORK(opd_group_start(pair, &transfer), OPD_ERROR_ARGUMENT, "in the checked process group 'pair', tags must be less than 2^30");
    NO_WORK(opd_group_gather(self, x, floats(3, 1, 1), 0), OPD_ERROR_SHAPE,
            "the list must have the device, dtype and sizes of the tensor, and one more dim in front, of size 1");
    NO_WORK(opd_group_reduce(self, opd_tensor_set_requires_grad(floats(3, 1, 1), true), "sum", 0), OPD_ERROR_AUTOGRAD,
            "opd_group_reduce: the tensor that it writes into requires grad (call it under OPD_NO_GRAD)");
    NO_WORK(opd_group_reduce(self, opd_tensor_new_on(OPD_INTS(3), OPD_FLOAT32, opd_device_make(OPD_META, -1)), "sum", 0),
            OPD_ERROR_ARGUMENT, "the tensor is neither on the CPU nor on a device of the group");
    CHECK_INT(opd_group_unregister(pair), 0);
    CHECK_INT(opd_vmap(gathers_it, NULL, &x, 1, NULL, &out, 1), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "each example of the batch must have at least one dim");
    CHECK_INT(opd_vmap(sends_it, NULL, &x, 1, NULL, &out, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "rank 0 of process group 'self' is this process, which cannot send to itself");
    CHECK_INT(opd_group_device_add(self, opd_device_make(OPD_CPU, -1)), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_group_device_add: cpu is not an accelerator");
    (void)opd_fail(OPD_ERROR_USER, "before");                 /* nothing is moved while an error is pending */
    CHECK(opd_all_reduce(x, "sum", "self") == NULL);
    CHECK_ERROR(OPD_ERROR_USER, "before");
}
TEST(a_tensor_that_is_null_is_an_error) {                 /* also where nothing has failed before */
    opd_group *const self = opd_group_find("self");
    opd_tensor *none = NULL, *x = opd_tensor_set_requires_grad(floats(2, 1, 1), true);
    NO_WORK(opd_group_send(self, NULL, 0, 0), OPD_ERROR_ARGUMENT, "opd_group_send: the tensor is NULL");
    NO_WORK(opd_group_recv(self, NULL, 0, 0), OPD_ERROR_ARGUMENT, "opd_group_recv: the tensor is NULL");
    NO_WORK(opd_group_reduce(self, NULL, "sum", 0), OPD_ERROR_ARGUMENT, "opd_group_reduce: the tensor is NULL");
    NO_WORK(opd_group_scatter(self, NULL, floats(2, 1, 1), 0), OPD_ERROR_ARGUMENT, "opd_group_scatter: the tensor is NULL");
    NO_WORK(opd_group_gather(self, floats(2, 1, 1), NULL, 0), OPD_ERROR_ARGUMENT, "opd_group_gather: the tensor is NULL");
    NO_WORK(opd_data_parallel(&none, 1, self, NULL), OPD_ERROR_ARGUMENT, "opd_data_parallel: the tensor is NULL");
    NO_WORK(opd_sharded_parallel(&none, 1, self, NULL), OPD_ERROR_ARGUMENT, "the tensor is NULL");
    opd_parallel *const parallel = opd_sharded_parallel(&x, 1, self, NULL);
    NO_WORK(opd_parallel_full(parallel, NULL), OPD_ERROR_ARGUMENT, "opd_parallel_full: the tensor is NULL");
    opd_parallel_free(parallel);
    OPD_FAKE_MODE { NO_WORK(opd_fake_tensor(NULL), OPD_ERROR_ARGUMENT, "opd_fake_tensor: the tensor is NULL"); }
}
TEST(a_group_that_cannot_be_split_says_so) {
    const int32_t both[2] = {1, 0};
    opd_group_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = "whole"; desc.size = 2; desc.start = never_starts; desc.test = never_done; desc.split = never_splits;
    opd_group *const whole = opd_group_register(&desc);
    NO_WORK(opd_group_split(whole, "part", both, 2), OPD_ERROR_KERNEL, "opd_group_split: the group's function `split` failed without");
    CHECK_INT(opd_group_unregister(whole), 0);
}
TEST(several_messages_have_a_word_rank_and_tag_each) {
    const opd_value words[2] = {opd_value_str("isend"), opd_value_str("sends")};
    const int64_t zeros[2] = {0, 0};
    opd_tensor *const list[2] = {floats(1, 0, 0), floats(1, 0, 0)};
    opd_value args[5] = {opd_value_list(words, 2), opd_value_ints(zeros, 2), opd_value_ints(zeros, 1), opd_value_tensors(list, 2),
                         opd_value_str("self")};
    refused("batch_p2p_ops", args, 5, "batch_p2p_ops: there are 2 tensor(s), but 2 operation(s), 2 rank(s) and 1 tag(s)");
    args[0] = opd_value_list(words + 1, 1);
    args[1] = args[2] = opd_value_ints(zeros, 1);
    args[3] = opd_value_tensors(list, 1);
    refused("batch_p2p_ops", args, 5, "batch_p2p_ops: 'sends' is neither isend nor irecv");
}

/* Calls with a handle of a group that was unregistered fail. */
TEST(a_group_that_is_gone_is_an_error) {
    opd_group_desc desc;
    opd_tensor *param = opd_tensor_set_requires_grad(floats(3, 1, 1), true);
    opd_tensor *part = opd_tensor_set_requires_grad(floats(3, 1, 1), true);
    memset(&desc, 0, sizeof desc);
    desc.name = "short-lived";
    desc.size = 1;
    opd_group *const group = opd_group_register(&desc);
    CHECK_OR_RETURN(group != NULL);
    opd_parallel *const parallel = opd_data_parallel(&param, 1, group, NULL);
    opd_parallel *const sharded = opd_sharded_parallel(&part, 1, group, NULL);
    CHECK_INT(opd_group_unregister(group), 0);
    CHECK_INT(opd_parallel_begin(parallel, 1), -1);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "process group 'short-lived' has been unregistered (opd_group_unregister)");
    CHECK_INT(opd_backward(opd_sum(param)), -1);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "process group 'short-lived' has been unregistered (opd_group_unregister)");
    CHECK(opd_parallel_full(sharded, part) == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "there is no process group 'short-lived'");
    CHECK(opd_all_reduce(param, "sum", "short-lived") == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "there is no process group 'short-lived'");
    opd_parallel_free(parallel);
    opd_parallel_free(sharded);
}

//== several ranks =====================================================================================================

/* Runs `run` on `size` threads, and prints their errors. */
static void all_ranks(int size, void (*run)(opd_group *group, int rank, void *user), bool checked) {
    static char messages[RANKS_MOST][600];
    run_ranks(size, run, NULL, checked, 20000, messages);
    for (int rank = 0; rank < size; rank++) { CHECK_STR(messages[rank], ""); }
}
static void reduces(opd_group *group, int rank, void *user) {
    const char *const world = world_of(rank);
    opd_tensor *const x = floats(3, rank, 1);     /* 0 1 2; 1 2 3; 2 3 4 */
    (void)user;
    CHECK_INT(opd_group_size(group), 3);
    CHECK_INT(opd_group_rank(group), rank);
    HOLDS(opd_all_reduce(x, "sum", world), 3, 6, 9);
    HOLDS(opd_all_reduce(x, "avg", world), 1, 2, 3);
    HOLDS(opd_all_reduce(x, "product", world), 0, 6, 24);
    HOLDS(opd_all_reduce(x, "min", world), 0, 1, 2);
    HOLDS(opd_all_reduce(x, "max", world), 2, 3, 4);
    HOLDS(x, rank, rank + 1, rank + 2);
    HOLDS(opd_all_gather(x, world), 0, 1, 2, 1, 2, 3, 2, 3, 4);
    HOLDS(opd_reduce_scatter(x, "sum", world), 3 * (rank + 1));
    HOLDS(opd_reduce_scatter(x, "avg", world), rank + 1);
    HOLDS(opd_broadcast(x, 2, world), 2, 3, 4);
    HOLDS(opd_all_reduce(opd_t(opd_reshape(floats(4, rank, 1), OPD_INTS(2, 2))), "sum", world), 3, 9, 6, 12);
    const opd_tensor *const both[2] = {x, floats(1, 7, 0)};
    const opd_value list[3] = {opd_value_tensors((opd_tensor *const *)(uintptr_t)both, 2), opd_value_str("sum"),
                               opd_value_str(world)};
    const opd_tensors out = opd_call_list(opd_find("_c10d_functional::all_reduce_coalesced"), list, 3);
    CHECK_OR_RETURN(out.n == 2);
    HOLDS(out.data[0], 3, 6, 9);
    HOLDS(out.data[1], 21);
    const opd_tensors in_place = opd_call_list(opd_find("_c10d_functional::all_reduce_coalesced_"), list, 3);
    CHECK(in_place.n == 2 && in_place.data[0] == x);
    HOLDS(x, 3, 6, 9);
    CHECK(opd_broadcast_(x, 0, world) == x);
}
TEST(ranks_reduce_gather_and_scatter) { all_ranks(3, reduces, false); }
TEST(checked_ranks_get_the_same) { all_ranks(3, reduces, true); }

/* Rank r sends r + 1 rows to each lower rank and to itself, and none to higher ranks. */
static void exchanges(opd_group *group, int rank, void *user) {
    int64_t sent[3], taken[3];
    opd_tensor *const x = opd_tensor_set_requires_grad(floats((rank + 1) * (rank + 1), 10 * rank, 1), true);
    (void)user;
    for (int other = 0; other < 3; other++) {
        sent[other] = other <= rank ? rank + 1 : 0;
        taken[other] = other >= rank ? other + 1 : 0;
    }
    const opd_value args[4] = {opd_value_tensor(x), opd_value_ints(taken, 3), opd_value_ints(sent, 3),
                               opd_value_str(opd_group_name(group))};
    opd_tensor *const y = call("all_to_all_single", args, 4);
    if (rank == 0) { HOLDS(y, 0, 10, 11, 20, 21, 22); }
    if (rank == 1) { HOLDS(y, 12, 13, 23, 24, 25); }
    if (rank == 2) { HOLDS(y, 26, 27, 28); }
    CHECK_INT(opd_backward(opd_sum(opd_mul(y, y))), 0);
    CHECK_NEAR(opd_item_f64(opd_sum(opd_sub(opd_tensor_grad(x), opd_mul_Scalar(x, OPD_V(2))))), 0, 1e-5);
}
TEST(ranks_exchange_parts_of_any_size) {
    all_ranks(3, exchanges, false);
    all_ranks(3, exchanges, true);
}
static void differentiates(opd_group *group, int rank, void *user) {
    const char *const world = opd_group_name(group);
    opd_tensor *const weights = floats(4, rank + 1, 1);                       /* 1 2 3 4; 2 3 4 5 */
    (void)user;
    opd_tensor *x = opd_tensor_set_requires_grad(floats(4, 0, 1), true);
    CHECK_INT(opd_backward(opd_sum(opd_mul(opd_all_reduce(x, "sum", world), weights))), 0);
    HOLDS(opd_tensor_grad(x), 3, 5, 7, 9);
    x = opd_tensor_set_requires_grad(floats(4, 0, 1), true);
    CHECK_INT(opd_backward(opd_sum(opd_mul(opd_all_reduce(x, "avg", world), weights))), 0);
    HOLDS(opd_tensor_grad(x), 1.5, 2.5, 3.5, 4.5);
    x = opd_tensor_set_requires_grad(floats(2, 0, 1), true);
    CHECK_INT(opd_backward(opd_sum(opd_mul(opd_all_gather(x, world), weights))), 0);
    if (rank == 0) { HOLDS(opd_tensor_grad(x), 3, 5); } else { HOLDS(opd_tensor_grad(x), 7, 9); }
    x = opd_tensor_set_requires_grad(floats(4, 0, 1), true);
    opd_tensor *const part = opd_mul_Scalar(opd_reduce_scatter(x, "avg", world), OPD_V(rank + 1));
    CHECK_INT(opd_backward(opd_sum(part)), 0);
    HOLDS(opd_tensor_grad(x), 0.5, 0.5, 1, 1);
    x = opd_tensor_set_requires_grad(floats(4, 0, 1), true);
    CHECK_INT(opd_backward(opd_sum(opd_mul(opd_broadcast(x, 1, world), weights))), 0);
    if (rank == 0) { HOLDS(opd_tensor_grad(x), 0, 0, 0, 0); } else { HOLDS(opd_tensor_grad(x), 3, 5, 7, 9); }
    x = opd_tensor_set_requires_grad(floats(4, 0, 1), true);                  /* zeros also of what is no number */
    CHECK_INT(opd_backward(opd_sum(opd_mul_Scalar(opd_broadcast(x, 1, world), OPD_V((double)NAN)))), 0);
    if (rank == 0) { HOLDS(opd_tensor_grad(x), 0, 0, 0, 0); }
    x = opd_tensor_set_requires_grad(floats(4, rank, 1), true);               /* twice */
    opd_tensor *const y = opd_all_reduce(x, "sum", world);
    opd_tensor *const loss = opd_sum(opd_mul(opd_mul(y, y), y));
    opd_backward_options options;
    opd_tensor *grad = NULL, *second = NULL;
    memset(&options, 0, sizeof options);
    options.create_graph = true;
    CHECK_INT(opd_autograd_grad((opd_tensor *const *)&loss, 1, &x, 1, &options, &grad), 0);
    opd_tensor *const sum = opd_sum(grad);
    memset(&options, 0, sizeof options);
    CHECK_INT(opd_autograd_grad((opd_tensor *const *)&sum, 1, &x, 1, &options, &second), 0);
    HOLDS(second, 24, 72, 120, 168);              /* 2 ranks * 2 ranks * 6 (2 i + 1) */
}
/* By torch.distributed._functional_collectives.all_reduce of PyTorch 2.15 over gloo: two ranks, ties and NaN. */
static void differentiates_extremes(opd_group *group, int rank, void *user) {
    const char *const world = opd_group_name(group);
    (void)user;
    opd_tensor *const weights = opd_mul_Scalar(floats(5, 1, 1), OPD_V(rank + 1));
    for (int most = 0; most < 2; most++) {
        opd_tensor *const x = floats(5, 1, 1);
        float *const data = opd_data_f32(x);
        data[2] = rank == 0 ? NAN : 3;
        data[3] = (float)(4 + rank);
        data[4] = 0;
        opd_tensor_set_requires_grad(x, true);
        opd_tensor *const y = opd_all_reduce(x, most ? "max" : "min", world);
        if (rank == 0) { CHECK_NEAR(opd_item_f64(opd_select(y, 0, 3)), most ? 5 : 4, 0); }
        CHECK_INT(opd_backward(opd_sum(opd_mul(y, weights))), 0);
        if (rank == 0 && most) { HOLDS(opd_tensor_grad(x), 1.5, 3, 9, 0, 7.5); }
        if (rank == 1 && most) { HOLDS(opd_tensor_grad(x), 1.5, 3, 0, 12, 7.5); }
        if (rank == 0 && !most) { HOLDS(opd_tensor_grad(x), 1.5, 3, 9, 12, 7.5); }
        if (rank == 1 && !most) { HOLDS(opd_tensor_grad(x), 1.5, 3, 0, 0, 7.5); }
    }
    opd_tensor *x = opd_tensor_set_requires_grad(opd_to_dtype(floats(2, 1, 4), OPD_FLOAT64), true);
    CHECK_INT(opd_backward(opd_sum(opd_all_reduce(x, "max", world))), 0);
    HOLDS(opd_tensor_grad(x), 1, 1);
    CHECK_INT(opd_dtype(opd_tensor_grad(x)), OPD_FLOAT64);
    x = opd_tensor_set_requires_grad(floats(2, 1 + rank, 4), true);
    opd_tensor *const twice = opd_mul_Scalar(x, OPD_V(2));
    CHECK_INT(opd_backward(opd_sum(opd_all_reduce_(twice, "max", world))), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "all_reduce_ has no derivative for max");
}
TEST(derivatives_of_extremes_are_pytorchs) { all_ranks(2, differentiates_extremes, false); }

/* Three ranks' rows, with zeros and ties: the gradient of their product, or extreme, is that of prod(0), amin(0) and
   amax(0) of the three rows in one process, which PyTorch 2.15 has given. */
static const float rows_of_ranks[3][6] = {{1, 2, 0, 3, -1, 2}, {2, 0, 0, 1, 2, 2}, {3, 4, 5, -2, 2, 1}};
static opd_tensor *row_of(const float *row) {
    return opd_tensor_set_requires_grad(opd_tensor_from(row, OPD_INTS(6), OPD_FLOAT32), true);
}
static opd_tensor *gradient_of(opd_tensor *loss, opd_tensor *x, bool again) {
    opd_backward_options options;
    opd_tensor *grad = NULL;
    memset(&options, 0, sizeof options);
    options.create_graph = again;
    CHECK_INT(opd_autograd_grad((opd_tensor *const *)&loss, 1, &x, 1, &options, &grad), 0);
    return grad;
}
static opd_tensor *reduced(opd_tensor *x, const char *reduce_op, const char *world, bool scatters) {
    return scatters ? opd_reduce_scatter(x, reduce_op, world) : opd_all_reduce(x, reduce_op, world);
}
static opd_tensor *tangent_of(const float *row, int rank, const char *reduce_op, const char *world, bool scatters) {
    opd_tensor *tangent = NULL;
    OPD_DUAL_LEVEL {
        opd_tensor *const x = opd_dual_new(opd_tensor_from(row, OPD_INTS(6), OPD_FLOAT32), floats(6, 0.75 * rank, 0.125));
        if (!opd_dual_unpack(reduced(x, reduce_op, world, scatters), &tangent)) { tangent = NULL; }
    }
    return tangent;
}
static void differentiates_rows(opd_group *group, int rank, void *user) {
    static const float first[3][6] = {{36, 0, 0, -48, 120, 72}, {18, 96, 0, -144, -60, 72}, {12, 0, 0, 72, -60, 144}};
    static const float second[3][6] = {{31.5F, 42, 90, -9, 195, 202.5F}, {9, 45, 22.5F, 117, -30, 175.5F},
                                       {4.5F, 21, 0, 90, -7.5F, 144}};
    static const float parts[3][3][6] = {
        {{6, 0, 0, -8, 12, 12}, {3, 16, 0, -24, -6, 12}, {2, 0, 0, 12, -6, 24}},
        {{1, 0, 1, 0, 3, 0}, {0, 2, 1, 0, 0, 0}, {0, 0, 0, 4, 0, 6}},
        {{0, 0, 0, 4, 0, 3}, {0, 0, 0, 0, 1.5F, 3}, {1, 2, 2, 0, 1.5F, 0}}};
    static const float tangents[3][6] = {{5.25F, 7, 0, -1.875F, -4.5F, 12.5F}, {0, 0.875F, 0.625F, 1.875F, 0.5F, 2.125F},
                                         {1.5F, 1.625F, 1.75F, 0.375F, 1.625F, 1}};
    static const char *const reductions[3] = {"product", "min", "max"};
    const char *const world = opd_group_name(group);
    opd_tensor *const x = row_of(rows_of_ranks[rank]), *const weights = floats(6, rank + 1, rank + 1);
    (void)user;
    opd_tensor *const grad = gradient_of(opd_sum(opd_mul(opd_all_reduce(x, "product", world), weights)), x, true);
    CHECK(holds(grad, first[rank], 6));
    CHECK(holds(gradient_of(opd_sum(opd_mul(grad, floats(6, 0.75 * rank, 0.125))), x, false), second[rank], 6));
    for (int i = 0; i < 3; i++) {
        opd_tensor *const y = row_of(rows_of_ranks[rank]);
        opd_tensor *const part = reduced(y, reductions[i], world, true);
        CHECK(holds(gradient_of(opd_sum(opd_mul(part, floats(2, rank + 1, rank + 1))), y, false), parts[i][rank], 6));
        CHECK(holds(tangent_of(rows_of_ranks[rank], rank, reductions[i], world, false), tangents[i], 6));
        CHECK(holds(tangent_of(rows_of_ranks[rank], rank, reductions[i], world, true), tangents[i] + 2 * rank, 2));
    }
}
TEST(derivatives_of_products_and_parts_are_those_of_one_process) { all_ranks(3, differentiates_rows, false); }
TEST(derivatives_are_of_the_sum_of_all_ranks_losses) { all_ranks(2, differentiates, false); }

//== waiting for results ===============================================================================================

static int said;                                  /* by rank 0, while its call is on the way */
static int heard(void) { return __atomic_load_n(&said, __ATOMIC_ACQUIRE); }
static void say(int what) { __atomic_store_n(&said, what, __ATOMIC_RELEASE); }
static void hear(int what) { while (heard() < what && opd_ok()) { thread_rest(50); } }
/* Rank 1 begins each call only after rank 0 has done everything that needs no result.  If rank 0 waited too early, both
   would wait forever. */
static void goes_on(opd_group *group, int rank, void *user) {
    const char *const world = opd_group_name(group);
    opd_tensor *const x = floats(4, rank, 1), *const other = floats(4, 5, 0);
    opd_tensor *y, *view;
    (void)user;
    if (rank == 1) { hear(1); }
    y = opd_all_reduce(x, "sum", world);          /* 1 3 5 7 */
    if (rank == 0) {
        view = opd_reshape(y, OPD_INTS(2, 2));    /* a view reads nothing */
        HOLDS(opd_add(other, x), 5, 6, 7, 8);     /* who reads the input does not wait */
        say(1);
        HOLDS(opd_select(view, 0, 1), 5, 7);
    }
    HOLDS(y, 1, 3, 5, 7);
    if (rank == 1) { hear(2); }
    y = opd_all_reduce(x, "sum", world);
    if (rank == 0) {
        opd_work *const test = opd_group_barrier(group);                      /* behind it: as far as it gets */
        CHECK_INT(opd_work_test(test), 0);
        say(2);
        CHECK_INT(opd_work_wait(test), 0);
        const float *const data = opd_data_f32(y);                            /* asking for the data waits */
        CHECK(data && data[3] == 7);
    } else {
        CHECK_INT(opd_work_wait(opd_group_barrier(group)), 0);
        HOLDS(y, 1, 3, 5, 7);
    }
    if (rank == 1) { hear(3); }
    y = opd_all_reduce(x, "sum", world);
    if (rank == 0) {
        say(3);
        (void)opd_add_(x, other);                 /* waits: the input is being read */
        HOLDS(x, 5, 6, 7, 8);
    }
    HOLDS(y, 1, 3, 5, 7);
    view = opd_reshape(x, OPD_INTS(2, 2));
    CHECK(opd_all_reduce_(x, "max", world) == x); /* in place: who looks at the memory waits */
    HOLDS(opd_mul_Scalar(view, OPD_V(2)), 10, 12, 14, 16);
    opd_tensor *const again = opd_tensor_data(opd_all_reduce_(x, "sum", world));
    HOLDS(opd_clone(again), 10, 12, 14, 16);
    CHECK_NEAR(opd_item_f64(opd_all_reduce(floats(1, rank, 0), "sum", world)), 1, 0);
    char text[200];
    (void)opd_tensor_print(opd_all_reduce(floats(2, rank, 0), "sum", world), text, sizeof text);
    CHECK_STR(text, "tensor([1., 1.])");
    for (int i = 0; i < 20; i++) { (void)opd_all_reduce(x, "min", world); }   /* nobody wants them */
}
TEST(who_needs_a_result_waits_and_nobody_else) {
    say(0);
    all_ranks(2, goes_on, false);
    say(0);
    all_ranks(2, goes_on, false);
}
/* Memory of x * 2 is free for x * 5 when all_reduce has been called, but it is being read. */
static int reduces_between(void *user, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    opd_tensor *const y = opd_all_reduce(opd_mul_Scalar(inputs[0], OPD_V(2)), "sum", (const char *)user);
    opd_tensor *const other = opd_mul_Scalar(inputs[0], OPD_V(5));
    outputs[0] = opd_add(y, opd_mul(other, other));
    return ninputs == 1 && outputs[0] ? 1 : -1;
}
static void in_graphs(opd_group *group, int rank, void *user) {
    const char *const world = opd_group_name(group);
    opd_tensor *const x = floats(1000, rank, 0);
    (void)user;
    opd_graph *const graph = opd_graph_trace(reduces_between, (void *)(uintptr_t)world, &x, 1, NULL);
    CHECK_INT(opd_graph_count(graph, "_c10d_functional::all_reduce"), 1);
    for (int i = 0; i < 6; i++) {
        OPD_SCOPE {
            opd_tensor *y = NULL;
            if (rank == i % 2) { thread_rest(3000); }
            CHECK_INT(opd_graph_run(graph, &x, 1, &y, 1), 1);
            CHECK_NEAR(opd_item_f64(opd_min(y)), 2 + 25 * rank, 0);
            CHECK_NEAR(opd_item_f64(opd_max(y)), 2 + 25 * rank, 0);
        }
    }
    opd_graph_free(graph);
}
TEST(graphs_that_plan_their_memory_wait_too) { all_ranks(2, in_graphs, false); }

//== sends, subgroups ==================================================================================================

static void sends(opd_group *group, int rank, void *user) {
    const int size = opd_group_size(group), next = (rank + 1) % size, last = (rank + size - 1) % size;
    opd_tensor *const mine = floats(3, 10 * rank, 1), *const its = floats(3, -1, 0);
    (void)user;
    opd_work *const recv = opd_group_recv(group, its, last, 5), *const send = opd_group_send(group, mine, next, 5);
    HOLDS(its, 10 * last, 10 * last + 1, 10 * last + 2);                      /* waits by itself */
    CHECK_INT(opd_work_wait(send), 0);
    CHECK_INT(opd_work_wait(recv), 0);
    opd_work *all[4];                             /* two of one tag, sent before anybody receives */
    opd_tensor *const first = floats(3, -1, 0), *const second = floats(3, -1, 0);
    all[0] = opd_group_send(group, floats(3, 100 + rank, 0), next, 6);
    all[1] = opd_group_send(group, floats(3, 200 + rank, 0), next, 6);
    all[2] = opd_group_recv(group, first, last, 6);
    all[3] = opd_group_recv(group, second, last, 6);
    for (int i = 3; i >= 0; i--) { CHECK_INT(opd_work_wait(all[i]), 0); }
    HOLDS(first, 100 + last, 100 + last, 100 + last);
    HOLDS(second, 200 + last, 200 + last, 200 + last);
    opd_tensor *const list = rank == 1 ? opd_zeros(OPD_INTS(3, 3), OPD_FLOAT32) : NULL;
    CHECK_INT(opd_work_wait(opd_group_gather(group, mine, list, 1)), 0);
    if (rank == 1) { HOLDS(list, 0, 1, 2, 10, 11, 12, 20, 21, 22); }
    if (rank == 1) { (void)opd_add_(list, opd_ones(OPD_INTS(1), OPD_FLOAT32)); }
    CHECK_INT(opd_work_wait(opd_group_scatter(group, its, list, 1)), 0);
    HOLDS(its, 10 * rank + 1, 10 * rank + 2, 10 * rank + 3);
    CHECK_INT(opd_work_wait(opd_group_reduce(group, its, "avg", 2)), 0);
    if (rank == 2) { HOLDS(its, 11, 12, 13); } else { HOLDS(its, 10 * rank + 1, 10 * rank + 2, 10 * rank + 3); }
    CHECK_INT(opd_work_wait(opd_group_barrier(group)), 0);
    const int32_t pair[2] = {2, 0}, alone[1] = {rank}, wrong[2] = {0, 0};
    const char *const names[3] = {"part0", "part1", "part2"}, *const ones[3] = {"one0", "one1", "one2"};
    opd_group *const part = opd_group_split(group, names[rank], pair, 2);
    CHECK((part != NULL) == (rank != 1));
    if (part) {
        CHECK_INT(opd_group_rank(part), rank == 2 ? 0 : 1);
        HOLDS(opd_all_gather(floats(1, rank, 0), names[rank]), 2, 0);
        CHECK_INT(opd_group_unregister(part), 0);
    }
    opd_group *const one = opd_group_split(group, ones[rank], alone, 1);
    HOLDS(opd_all_reduce(floats(1, 3, 0), "sum", ones[rank]), 3);
    CHECK_INT(opd_group_unregister(one), 0);
    CHECK(opd_group_find(ones[rank]) == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "there is no process group 'one");
    CHECK(opd_group_split(group, "x", wrong, 2) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "given twice");
    CHECK(opd_all_reduce(mine, "sum", "world9") == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "'world");
}
TEST(ranks_send_gather_scatter_and_split) { all_ranks(3, sends, false); }

static opd_tensor *pair_call(const char *name, opd_tensor *tensor, int peer, int tag, const char *world) {
    const opd_value args[4] = {opd_value_tensor(tensor), opd_value_int(peer), opd_value_int(tag), opd_value_str(world)};
    return call(name, args, 4);
}
/* Sends twice its input to the next rank, whose result is that and 1 more; nobody uses what isend returns. */
typedef struct ring { const char *world; int next, last; } ring;
static int goes_round(void *user, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    const ring *const its = (const ring *)user;
    opd_tensor *const got = pair_call("irecv", opd_zeros_like(inputs[0]), its->last, 2, its->world);
    (void)pair_call("isend", opd_mul_Scalar(inputs[0], OPD_V(2)), its->next, 2, its->world);
    (void)opd_mul_Scalar(inputs[0], OPD_V(7));    /* where what is sent lay, were it free */
    outputs[0] = opd_add_Scalar(got, OPD_V(1));
    return ninputs == 1 && outputs[0] ? 1 : -1;
}
static void sends_by_operators(opd_group *group, int rank, void *user) {
    const int size = opd_group_size(group), next = (rank + 1) % size, last = (rank + size - 1) % size;
    const char *const world = opd_group_name(group);
    ring its = {world, next, last};
    opd_tensor *const mine = floats(3, 10 * rank, 1), *const got = floats(3, -1, 0);
    (void)user;
    opd_tensor *const received = pair_call("irecv", got, last, 4, world);     /* both are on their way */
    opd_tensor *const sent = pair_call("isend", mine, next, 4, world);
    CHECK(received == got);
    CHECK_INT(opd_numel(sent), 0);
    HOLDS(got, 10 * last, 10 * last + 1, 10 * last + 2);
    (void)opd_mul_Scalar_(mine, OPD_V(0));        /* waits for the send */
    opd_value wait[1] = {opd_value_tensor(sent)};
    CHECK(call("wait_tensor", wait, 1) == sent);
    opd_tensor *const other = opd_t(opd_zeros(OPD_INTS(2, 3), OPD_FLOAT32));
    CHECK(pair_call("irecv", other, last, 4, world) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "irecv: the tensor must be contiguous");
    CHECK(pair_call("isend", mine, size, 4, world) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "isend: rank 3 with tag 4");
    CHECK(pair_call("isend", mine, next, -1, world) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "with tag -1");
    CHECK(pair_call("isend", mine, rank, 0, world) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "is this process, which cannot send to itself");
    opd_tensor *const x = floats(3, rank, 1);
    opd_graph *const graph = opd_graph_trace(goes_round, &its, (opd_tensor *const *)&x, 1, NULL);
    CHECK_OR_RETURN(graph != NULL);
    CHECK_INT(opd_graph_dce(graph), 0);
    CHECK_INT(opd_graph_count(graph, "_c10d_functional::isend"), 1);
    CHECK(opd_graph_cse(graph) >= 0 && opd_graph_fold(graph) >= 0);
    for (int i = 0; i < 3; i++) {
        OPD_SCOPE {
            opd_tensor *y = NULL;
            if (rank == i) { thread_rest(2000); }
            CHECK_INT(opd_graph_run(graph, (opd_tensor *const *)&x, 1, &y, 1), 1);
            HOLDS(y, 2 * last + 1, 2 * last + 3, 2 * last + 5);
        }
    }
    opd_graph_free(graph);
    opd_tensor *const fake = opd_tensor_new_on(OPD_INTS(6, 2), OPD_FLOAT32, opd_device_make(OPD_META, -1));
    CHECK_INT(opd_numel(pair_call("isend", fake, 0, 0, "anywhere")), 0);
    CHECK(pair_call("irecv", fake, 0, 0, "anywhere") == fake);
    opd_tensor *const grown = opd_mul_Scalar(opd_tensor_set_requires_grad(floats(3, 1, 1), true), OPD_V(2));
    (void)pair_call("isend", mine, next, 4, world);
    CHECK(pair_call("irecv", grown, last, 4, world) == grown);
    CHECK_INT(opd_backward(opd_sum(grown)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "derivative for _c10d_functional::irecv is not implemented");
}
TEST(sends_are_operators_and_stay_in_graphs) { all_ranks(3, sends_by_operators, false); }

//== errors ============================================================================================================

static void differs(opd_group *group, int rank, void *user) {
    const char *const world = opd_group_name(group), *const how = (const char *)user;
    opd_tensor *const x = floats(4, 0, 1);
    const bool other = rank == 2;
    const int64_t even[3] = {1, 1, 2}, taken[3] = {rank < 2 ? 1 : 2, rank < 2 ? 1 : 2, rank < 2 ? 1 : 3};
    opd_tensor *y = NULL;
    if (!strcmp(how, "kind")) { y = other ? opd_broadcast(x, 0, world) : opd_all_reduce(x, "sum", world); }
    if (!strcmp(how, "dtype")) { y = opd_all_reduce(other ? opd_to_dtype(x, OPD_FLOAT64) : x, "sum", world); }
    if (!strcmp(how, "size")) { y = opd_all_reduce(other ? floats(5, 0, 1) : x, "sum", world); }
    if (!strcmp(how, "reduction")) { y = opd_all_reduce(x, other ? "avg" : "sum", world); }
    if (!strcmp(how, "root")) { y = opd_broadcast(x, other ? 1 : 0, world); }
    if (!strcmp(how, "splits")) {
        const opd_value args[4] = {opd_value_tensor(x), opd_value_ints(taken, 3), opd_value_ints(even, 3),
                                   opd_value_str(world)};
        y = call("all_to_all_single", args, 4);
    }
    CHECK(y == NULL);
}
static void all_say(const char *how, const char *part) {
    static char messages[RANKS_MOST][600];
    run_ranks(3, differs, (void *)(uintptr_t)how, true, 20000, messages);
    for (int rank = 0; rank < 3; rank++) {
        if (!strstr(messages[rank], part)) { printf("rank %d: %s\n", rank, messages[rank]); }
        CHECK(strstr(messages[rank], part) != NULL);
    }
}
TEST(checked_ranks_that_differ_are_told_all) {
    all_say("kind", "differ in call 1: rank 0 calls all_reduce, rank 2 calls broadcast");
    all_say("dtype", "rank 0 calls all_reduce of float32, rank 2 calls all_reduce of float64");
    all_say("size", "rank 0 calls all_reduce of 4 element(s), rank 2 calls all_reduce of 5 element(s)");
    all_say("reduction", "rank 0 calls all_reduce by sum, rank 2 calls all_reduce by avg");
    all_say("root", "rank 0 calls broadcast with root 0, rank 2 calls broadcast with root 1");
    all_say("splits", "all_to_all sends 2 element(s) from rank 2 to rank 2, which expects 3");
}
/* Ranks 0 and 1 send each other messages that the other does or does not expect.  Rank 2 takes no part. */
static void sends_other(opd_group *group, int rank, void *user) {
    const char *const how = (const char *)user;
    const opd_scalar_type dtype = rank == 0 && strcmp(how, "dtype") == 0 ? OPD_INT32 : OPD_FLOAT32;
    const int64_t count = rank == 0 && strcmp(how, "size") == 0 ? 3 : 4;
    opd_tensor *const mine = opd_to_dtype(floats(count, rank, 1), dtype), *const its = floats(4, -1, 0);
    if (rank == 2) { return; }
    opd_work *const send = opd_group_send(group, mine, 1 - rank, 5);
    opd_work *const recv = opd_group_recv(group, its, 1 - rank, 5);
    const bool other = strcmp(how, "same") != 0;
    if (rank == 1) { CHECK_INT(opd_work_wait(send), 0); }
    CHECK_INT(opd_work_wait(rank == 0 ? send : recv), other ? -1 : 0);
    if (rank == 0 && other) {                     /* what it says otherwise is right, and stays so */
        opd_error_clear();
        CHECK_INT(opd_work_wait(recv), 0);
        HOLDS(its, 1, 2, 3, 4);
        CHECK(opd_fill_(mine, OPD_V(1)) == NULL); /* which the send that failed reads */
    } else if (rank == 0) {
        CHECK_INT(opd_work_wait(recv), 0);
    }
    if (!other) { HOLDS(its, 1 - rank, 2 - rank, 3 - rank, 4 - rank); }
}
static void pair_says(const char *how, const char *part) {
    static char messages[RANKS_MOST][600];
    run_ranks(3, sends_other, (void *)(uintptr_t)how, true, 20000, messages);
    for (int rank = 0; rank < 2; rank++) {
        if (!strstr(messages[rank], part)) { printf("rank %d: %s\n", rank, messages[rank]); }
        CHECK(strstr(messages[rank], part) != NULL);
    }
    CHECK_STR(messages[2], "");
}
TEST(checked_ranks_that_send_what_is_not_received_are_told_both) {
    pair_says("same", "");
    pair_says("dtype", "the ranks differ: rank 0 sends int32, but rank 1 receives float32 (tag 5)");
    pair_says("size", "the ranks differ: rank 0 sends 3 element(s), but rank 1 receives 4 element(s) (tag 5)");
}
/* No rank receives a message: the send is not complete. */
static void sends_to_nobody(opd_group *group, int rank, void *user) {
    (void)user;
    if (rank == 0) { CHECK_INT(opd_work_wait(opd_group_send(group, floats(4, 0, 1), 1, 1)), -1); }
    if (rank == 0) { CHECK(opd_group_send(group, floats(4, 0, 1), 1, 1 << 30) == NULL); }
}
TEST(checked_sends_wait_for_their_receiver) {
    static char messages[RANKS_MOST][600];
    run_ranks(2, sends_to_nobody, NULL, true, 200, messages);
    CHECK(strstr(messages[0], "send, call 1 of process group 'world0' (rank 0 of 2): it did not finish within") != NULL);
}
/* Rank 1 does not make the call. */
static void stays_away(opd_group *group, int rank, void *user) {
    opd_tensor *const x = floats(4, 0, 1);
    (void)user;
    if (rank == 1) { return; }
    opd_tensor *const y = opd_all_reduce(x, "sum", opd_group_name(group));
    CHECK(y != NULL);
    CHECK(opd_add(y, y) == NULL);
    CHECK_ERROR(OPD_ERROR_KERNEL, "all_reduce, call 1 of process group 'world0' (rank 0 of 2): it did not finish within");
    CHECK(opd_add(y, y) == NULL);                 /* nobody ever gets a value that is none */
    CHECK_ERROR(OPD_ERROR_KERNEL, "it did not finish within 0.2 s");
    CHECK(opd_data_f32(y) == NULL);
}
TEST(a_rank_that_stays_away_is_an_error) {
    static char messages[RANKS_MOST][600];
    run_ranks(2, stays_away, NULL, false, 200, messages);
    CHECK(strstr(messages[0], "a rank has ended") != NULL);
}
/* Rank 1 gives up while the others wait, or before they make their calls. */
static void gives_up(opd_group *group, int rank, void *user) {
    opd_tensor *const x = floats(4, 0, 1);
    const char *const world = opd_group_name(group);
    (void)user;
    HOLDS(opd_all_reduce(x, "sum", world), 0, 3, 6, 9);
    if (rank == 1) {
        CHECK(opd_reshape(x, OPD_INTS(3)) == NULL);
        CHECK_INT(opd_group_abandon(group, "the disk is full"), 0);
        CHECK_ERROR(OPD_ERROR_SHAPE, "shape '[3]' is invalid");               /* which was pending */
    } else {
        CHECK(opd_add(opd_all_reduce(x, "sum", world), x) == NULL);
        CHECK(strstr(opd_error_message(), "rank 1 of process group 'world1' has given up: the disk is full"));
        opd_error_clear();
    }
    CHECK(opd_group_barrier(group) == NULL);
    CHECK_ERROR(OPD_ERROR_KERNEL, "rank 1 of process group 'world1' has given up: the disk is full");
}
TEST(a_rank_that_gives_up_says_so_on_all) {
    all_ranks(3, gives_up, false);
    CHECK_INT(opd_group_abandon(NULL, "x"), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the process group is NULL");
}
static void cut(opd_group *group, int rank, void *user) {
    (void)user;
    (void)rank;
    CHECK(opd_all_reduce(floats(4, 0, 1), "sum", opd_group_name(group)) != NULL);
    CHECK(opd_all_reduce(floats(4, 0, 1), "sum", opd_group_name(group)) == NULL);
    CHECK_ERROR(OPD_ERROR_KERNEL, "call 2 of process group 'world");
    CHECK(opd_group_barrier(group) == NULL);
    CHECK_ERROR(OPD_ERROR_KERNEL, "the cable is cut");
}
TEST(a_call_that_cannot_begin_is_an_error) {
    pthread_t threads[2];
    ranked ranks[2];
    thread_world *const world = thread_world_new(2);
    world->refuse_at = 2;
    memset(ranks, 0, sizeof ranks);
    for (int rank = 0; rank < 2; rank++) {
        ranks[rank].world = world;
        ranks[rank].run = cut;
        ranks[rank].rank = rank;
        (void)pthread_create(&threads[rank], NULL, ranked_main, &ranks[rank]);
    }
    for (int rank = 0; rank < 2; rank++) { (void)pthread_join(threads[rank], NULL); }
    CHECK_STR(ranks[0].message, "");
}

//== data parallel training ============================================================================================

/* A network of two layers with a parameter that only some batches use; what a run is about and what comes of it. */
enum { EXAMPLES = 24, FEATURES = 5, STEPS = 6, PARAMS = 5 };
typedef struct training {
    int ranks, bucket_bytes, accumulate, cut;     /* cut: the last rank's batches end before this step */
    bool unused, weighted, buffers, sharded, hooks;
    float weights[RANKS_MOST][64], losses[RANKS_MOST][STEPS], buffer[RANKS_MOST];
} training;
static opd_tensor *wave(opd_ints sizes, double seed) {
    opd_tensor *const tensor = opd_empty(sizes, OPD_FLOAT32);
    float *const data = opd_data_f32(tensor);
    for (int64_t i = 0; data && i < opd_numel(tensor); i++) { data[i] = (float)sin(seed + 1.7 * (double)i); }
    return tensor;
}
static void trains(opd_group *group, int rank, void *user) {
    training *const run = (training *)user;
    const int size = opd_group_size(group), part = EXAMPLES / size;
    opd_tensor *params[PARAMS], *const images = wave(OPD_INTS(EXAMPLES, FEATURES), 1);
    opd_tensor *const wanted = wave(OPD_INTS(EXAMPLES, 1), 2), *buffer = floats(1, 3 + rank, 0);
    const int64_t sizes[PARAMS][2] = {{6, FEATURES}, {1, 6}, {1, 6}, {1, 1}, {1, 1}};
    opd_parallel_options options;
    int at = 0;
    memset(&options, 0, sizeof options);
    options.bucket_bytes = run->bucket_bytes;
    options.find_unused = run->unused;
    options.buffers = &buffer;
    options.nbuffers = run->buffers;
    for (int i = 0; i < PARAMS; i++) {            /* rank 0's are everybody's in the end */
        params[i] = opd_tensor_set_requires_grad(wave(opd_ints_of(sizes[i], 2), 3 + i + 10 * rank), true);
    }
    opd_parallel *const parallel = run->sharded ? opd_sharded_parallel(params, PARAMS, group, &options)
        : opd_data_parallel(params, PARAMS, group, &options);
    CHECK_OR_RETURN(parallel != NULL);
    opd_optimizer *const sgd = opd_sgd_new(params, PARAMS, NULL);
    opd_optimizer_set_lr(sgd, 0.1);
    for (int step = 0; step < STEPS && opd_ok(); step++) {
        const bool last = run->cut && rank == size - 1 && step >= run->cut;
        bool again = true;
        if (run->weighted) {
            const int64_t all = opd_parallel_begin(parallel, last ? 0 : part);
            again = all > 0;
            CHECK_INT(all, part * (size - (run->cut && step >= run->cut)));
        }
        run->buffer[rank] = (float)opd_item_f64(buffer);
        for (int k = 0; again && (!last || run->sharded) && k < run->accumulate; k++) {
            OPD_SCOPE {
                opd_tensor *whole[PARAMS];
                const int begin = rank * part + k * (part / run->accumulate), count = part / run->accumulate;
                opd_tensor *const x = opd_narrow(images, 0, begin, count);
                const bool hooked = run->hooks && opd_sharded_hooks_begin(parallel) == 0;
                for (int i = 0; i < PARAMS; i++) {
                    whole[i] = run->sharded ? opd_parallel_full(parallel, params[i]) : params[i];
                }
                opd_tensor *y = opd_tanh(opd_add(opd_matmul(x, opd_t(whole[0])), whole[2]));
                y = opd_mul(opd_matmul(y, opd_t(whole[1])), whole[3]);
                if (!run->unused || (step % 3 == 1 && rank == 0)) { y = opd_add(y, whole[4]); }
                if (hooked) { opd_saved_hooks_end(); }
                opd_tensor *const off = opd_sub(y, opd_narrow(wanted, 0, begin, count));
                opd_tensor *const loss = opd_div_Scalar(opd_mean(opd_mul(off, off)), OPD_V(run->accumulate));
                const bool was = opd_parallel_sync_set(parallel, k + 1 == run->accumulate);
                CHECK_INT(opd_backward(loss), 0);
                (void)opd_parallel_sync_set(parallel, was);
                run->losses[rank][step] += last ? 0 : (float)opd_item_f64(loss);
            }
        }
        if (run->unused && step == 0) { CHECK(opd_tensor_grad(params[4]) == NULL); }
        CHECK_INT(opd_optimizer_step(sgd), 0);
        CHECK_INT(opd_optimizer_zero_grad(sgd), 0);
    }
    for (int i = 0; i < PARAMS; i++) {
        opd_tensor *const whole = run->sharded ? opd_parallel_full(parallel, params[i]) : params[i];
        const float *const data = opd_data_f32(whole);
        for (int64_t k = 0; data && k < opd_numel(whole); k++) { run->weights[rank][at++] = data[k]; }
    }
    opd_optimizer_free(sgd);
    opd_parallel_free(parallel);
}
/* Trains on `ranks` threads.  All ranks end with the same bits in their weights. */
static void train(training *run, int ranks) {
    static char messages[RANKS_MOST][600];
    run->ranks = ranks;
    memset(run->weights, 0, sizeof run->weights);
    memset(run->losses, 0, sizeof run->losses);
    run_ranks(ranks, trains, run, false, 20000, messages);
    for (int rank = 0; rank < ranks; rank++) {
        CHECK_STR(messages[rank], "");
        CHECK(memcmp(run->weights[rank], run->weights[0], sizeof run->weights[0]) == 0);
    }
}
static void same_training(const training *first, const training *other, double tolerance) {
    for (int i = 0; i < 64; i++) { CHECK_NEAR(other->weights[0][i], first->weights[0][i], tolerance); }
    for (int step = 0; step < STEPS; step++) {
        double mean = 0;
        for (int rank = 0; rank < other->ranks; rank++) { mean += (double)other->losses[rank][step] / other->ranks; }
        CHECK_NEAR(mean, first->losses[0][step], tolerance);
    }
}
static void plain_run(training *run) {
    memset(run, 0, sizeof *run);
    run->accumulate = 1;
}
TEST(ranks_train_as_one_process_does) {
    static training one, several, again;
    plain_run(&one);
    train(&one, 1);
    for (int way = 0; way < 6; way++) {
        plain_run(&several);
        several.bucket_bytes = way % 2 ? 8 : way == 2 ? 80 : 0;
        several.weighted = way >= 3;
        several.accumulate = way == 4 ? 2 : 1;
        if (several.accumulate == 2) { several.weighted = false; }
        again = several;
        train(&several, way == 5 ? 3 : way == 0 ? 4 : 2);
        same_training(&one, &several, 2e-6);
        train(&again, several.ranks);
        CHECK(memcmp(again.weights, several.weights, sizeof again.weights) == 0);
    }
}
/* Libraries continue transfers only while they are called: pending transfers are queried each time a gradient
   arrives. */
static void moves_on(opd_group *group, int rank, void *user) {
    opd_tensor *params[4], *sum = NULL;
    opd_parallel_options options;
    (void)user;
    (void)rank;
    memset(&options, 0, sizeof options);
    options.bucket_bytes = 4;
    for (int i = 0; i < 4; i++) { params[i] = opd_tensor_set_requires_grad(floats(10, i, 1), true); }
    opd_parallel *const parallel = opd_data_parallel(params, 4, group, &options);
    for (int i = 0; i < 4; i++) {
        opd_tensor *const part = opd_sum(opd_mul(params[i], params[i]));
        sum = sum ? opd_add(sum, part) : part;
    }
    CHECK_INT(opd_backward(sum), 0);
    opd_parallel_free(parallel);
}
TEST(communication_moves_on_while_backward_goes_on) {
    __atomic_store_n(&thread_polls, 0, __ATOMIC_RELAXED);
    all_ranks(2, moves_on, false);
    CHECK(__atomic_load_n(&thread_polls, __ATOMIC_RELAXED) >= 4);
}
/* Gradients of several parts of a step, which ranks divide differently, each time; some have none in the last one.  Each
   example's loss is its number times the parameter, so that gradients are means of numbers: (1 + 1 + 1 + 5) / 4, then 2,
   then (3 + 3 + 9) / 3.  The second parameter is in the first part alone. */
static void adds_up(opd_group *group, int rank, void *user) {
    static const int counts[3][2] = {{3, 1}, {1, 0}, {2, 1}};
    static const double numbers[3][2] = {{1, 5}, {2, 0}, {3, 9}};
    const int parts = *(const int *)user;
    opd_tensor *params[2] = {floats(1, 1, 0), floats(1, 1, 0)};
    opd_parallel_options options;
    memset(&options, 0, sizeof options);
    options.find_unused = true;
    for (int i = 0; i < 2; i++) { params[i] = opd_tensor_set_requires_grad(params[i], true); }
    opd_parallel *const parallel = opd_data_parallel(params, 2, group, &options);
    for (int round = 0; round < 2; round++) {     /* once by the first order, once by buckets */
        for (int k = 0; k < parts; k++) {
            (void)opd_parallel_sync_set(parallel, k == parts - 1);
            CHECK_INT(opd_parallel_begin(parallel, counts[k][rank]), counts[k][0] + counts[k][1]);
            if (counts[k][rank] == 0) { continue; }
            opd_tensor *loss = opd_mul_Scalar(params[0], OPD_V(numbers[k][rank]));
            if (k == 0) { loss = opd_add(loss, opd_mul_Scalar(params[1], OPD_V(numbers[k][rank]))); }
            CHECK_INT(opd_backward(opd_sum(loss)), 0);
        }
        CHECK_NEAR(opd_item_f64(opd_tensor_grad(params[0])), parts == 2 ? 4 : 9, 1e-5);
        CHECK_NEAR(opd_item_f64(opd_tensor_grad(params[1])), 2, 1e-5);
        for (int i = 0; i < 2; i++) { CHECK_INT(opd_tensor_set_grad(params[i], NULL), 0); }
    }
    opd_parallel_free(parallel);
}
TEST(parts_of_a_step_may_be_divided_differently) {
    for (int parts = 2; parts < 4; parts++) {
        static char messages[RANKS_MOST][600];
        run_ranks(2, adds_up, &parts, false, 20000, messages);
        for (int rank = 0; rank < 2; rank++) { CHECK_STR(messages[rank], ""); }
    }
}
TEST(parameters_may_be_left_out) {
    static training one, several;
    plain_run(&one);
    one.unused = true;
    train(&one, 1);
    several = one;
    several.bucket_bytes = 8;
    train(&several, 2);
    CHECK(fabs((double)(several.weights[0][43] - one.weights[0][43])) < 0.2);
    CHECK(several.weights[0][43] != (float)sin(7.0));         /* by rank 0's gradient, on every rank */
}
TEST(ranks_with_fewer_batches_join) {
    static training run;
    plain_run(&run);
    run.weighted = true;
    run.cut = 3;
    run.bucket_bytes = 8;
    train(&run, 3);
    run.cut = 0;
    run.buffers = true;
    train(&run, 2);
    CHECK_NEAR(run.buffer[1], 3, 0);
    plain_run(&run);
    run.weighted = run.unused = true;
    run.cut = 2;
    train(&run, 3);
}
static void cannot(opd_group *group, int rank, void *user) {
    opd_tensor *params[2] = {opd_tensor_set_requires_grad(floats(3, 1, 1), true),
                             opd_tensor_set_requires_grad(floats(2 + rank, 1, 1), true)};
    (void)user;
    CHECK(opd_data_parallel(params, 2, group, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "rank 0 has 2 parameter(s) of 5 element(s), rank 1 has 2 of 6");
    CHECK(opd_data_parallel(params, 0, group, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "there are no parameters");
    opd_tensor *const twice[2] = {params[0], params[0]}, *const plain[1] = {floats(3, 1, 1)};
    CHECK(opd_data_parallel(twice, 2, group, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "parameters 0 and 1 are the same");
    CHECK(opd_data_parallel(plain, 1, group, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "must be a leaf");
    opd_tensor *both[2] = {params[0], opd_tensor_set_requires_grad(floats(2, 1, 1), true)};
    static const char *const differ[4] = {"find_unused is 1 on rank 0, and 0 on rank 1", "bucket_bytes is 8 on rank 0,",
                                          "rank 0 has 1 buffer(s) of 3 element(s), rank 1 has 0 of 0",
                                          "rank 0 has 1 buffer(s) of 3 element(s), rank 1 has 1 of 2"};
    for (int i = 0; i < 4; i++) {
        opd_tensor *buffer = floats(3 - (i == 3 && rank == 1), 0, 1);
        opd_parallel_options options;
        memset(&options, 0, sizeof options);
        options.find_unused = i == 0 && rank == 0;
        options.bucket_bytes = i == 1 && rank == 0 ? 8 : 0;
        options.buffers = &buffer;
        options.nbuffers = i >= 2 && (rank == 0 || i == 3);
        CHECK(opd_data_parallel(both, 2, group, &options) == NULL);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, differ[i]);
        CHECK(i < 2 || opd_sharded_parallel(NULL, 0, group, &options) == NULL);
        CHECK(i < 2 || (!opd_ok() && strstr(opd_error_message(), differ[i])));
        opd_error_clear();
    }
    opd_parallel *const parallel = opd_data_parallel(both, 2, group, NULL);
    CHECK_OR_RETURN(parallel != NULL);
    CHECK_INT(opd_backward(opd_sum(both[0])), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "parameter 1 of 2 got no gradient in this backward");
    CHECK_INT(opd_backward(opd_add(opd_sum(both[0]), opd_sum(both[1]))), 0);  /* and it goes on */
    HOLDS(opd_tensor_grad(both[1]), 1, 1);
    CHECK_INT(opd_parallel_begin(parallel, -1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the number is negative");
    opd_parallel_free(parallel);
    CHECK_INT(opd_backward(opd_sum(both[0])), 0);                             /* without hooks */
}
TEST(what_cannot_be_trained_in_parallel_is_said) { all_ranks(2, cannot, false); }
/* A gradient made by backward is weighted while it is copied to its bucket, and then is a view of the bucket. */
static void *passes(const opd_event *event, void *user) {
    char *const text = (char *)user;
    const size_t at = strlen(text);
    const char *const name = event->name;
    const char what = strcmp(name, "aten::copy_") == 0 ? 'c' : strcmp(name, "aten::clone") == 0 ? 'n'
        : strcmp(name, "aten::div_") == 0 ? 'd' : strcmp(name, "aten::mul_") == 0 ? 'm' : 0;
    if (what && at + 1 < 64) { text[at] = what; }
    return NULL;
}
static void lives_in_buckets(opd_group *group, int rank, void *user) {
    const int size = opd_group_size(group);
    opd_tensor *params[2], *kept = NULL;
    opd_observer observer;
    (void)user;
    for (int i = 0; i < 2; i++) { params[i] = opd_tensor_set_requires_grad(floats(2 + i, 1, 0), true); }
    opd_parallel *const parallel = opd_data_parallel(params, 2, group, NULL);
    CHECK_OR_RETURN(parallel != NULL);
    for (int turn = 0; turn < 6; turn++) {
        OPD_SCOPE {
            char called[64] = "";
            const double factor = turn == 5 ? 1e37 : rank + turn;
            const bool adds = turn == 3;
            opd_tensor *const before = opd_tensor_grad(params[0]);
            const int samples = turn == 4 ? rank + 2 : 64;
            CHECK(opd_parallel_begin(parallel, samples) > 0);
            opd_tensor *const loss = opd_mul_Scalar(opd_add(opd_sum(opd_mul(params[0], params[0])),
                                                            opd_sum(opd_mul(params[1], params[1]))), OPD_V(factor));
            memset(&observer, 0, sizeof observer);
            observer.begin = passes;
            observer.user = called;
            const int64_t handle = opd_observer_add_local(&observer);
            CHECK_INT(opd_backward(loss), 0);
            CHECK(opd_observer_remove(handle));
            double sum = 0, weights = 0;
            for (int i = 0; i < size; i++) {
                const double weight = turn == 4 ? i + 2 : 1;
                sum += 2 * weight * (turn == 5 ? 1e37 : i + turn);
                weights += weight;
            }
            const double mean = sum / weights + (adds ? 2 * (2 + (size - 1) / 2.0) : 0);
            for (int i = 0; i < 2; i++) {
                const float *const data = opd_data_f32(opd_tensor_grad(params[i]));
                for (int k = 0; data && k < 2 + i; k++) { CHECK_NEAR(data[k] / mean, 1, 1e-6); }
            }
            if (adds) { CHECK(opd_tensor_grad(params[0]) == before); }
            else if (turn == 4) { CHECK_STR(called, "d"); }
            else if (turn > 0) { CHECK_STR(called, size == 2 ? "" : "cc"); }
            if (turn == 1) { kept = opd_keep(opd_tensor_grad(params[0])); }
            for (int i = 0; i < 2 && turn != 2; i++) { (void)opd_tensor_set_grad(params[i], NULL); }
        }
    }
    const float then = (float)(size + 1);         /* 2 * mean of rank + 1, though later ones have come */
    HOLDS(kept, then, then);
    opd_release(kept);
    opd_parallel_free(parallel);
}
/* A large gradient made by backward is a separate message and is not copied, unless something else holds it, it remains
   from an earlier step, or the parameter is unused. */
static int notes_where(opd_tensor *leaf, void *user) {
    const void **const where = (const void **)user;
    *where = opd_data(opd_tensor_grad(leaf));
    return 0;
}
static void stays_where_it_is(opd_group *group, int rank, void *user) {
    enum { LARGE = 1 << 17, PARAMS = 3 };
    const int size = opd_group_size(group);
    const int first = *(const int *)user;         /* the number of the large one of three parameters */
    opd_tensor *params[PARAMS], *kept = NULL;
    const void *where = NULL;
    opd_parallel_options options = {0};
    options.find_unused = true;
    for (int i = 0; i < PARAMS; i++) {
        params[i] = opd_tensor_set_requires_grad(opd_keep(opd_ones(OPD_INTS(i == first ? LARGE : 2 + i), OPD_FLOAT32)),
                                                 true);
    }
    opd_parallel *const parallel = opd_data_parallel(params, PARAMS, group, &options);
    CHECK_OR_RETURN(parallel != NULL);
    const int64_t hook = opd_tensor_post_accumulate_hook_add(params[first], notes_where, &where, NULL);
    double left = 0;
    for (int turn = 0; turn < 9; turn++) {
        OPD_SCOPE {
            char called[64] = "";
            opd_observer observer;
            const bool uneven = turn == 4, out = turn == 6 && rank == 0, late = turn == 7;
            opd_tensor *loss = NULL;
            double sum = 0, weights = 0;
            CHECK(opd_parallel_begin(parallel, uneven ? rank + 2 : 64) > 0);
            for (int i = 0; i < PARAMS; i++) {
                opd_tensor *const one = i == first && out ? opd_zeros(OPD_INTS(1), OPD_FLOAT32)
                    : opd_mul_Scalar(opd_sum(opd_mul(params[i], params[i])), OPD_V(rank + turn));
                loss = loss ? opd_add(loss, one) : one;
            }
            memset(&observer, 0, sizeof observer);
            observer.begin = passes;
            observer.user = called;
            where = NULL;
            const int64_t handle = opd_observer_add_local(&observer);
            CHECK_INT(opd_backward(opd_sum(loss)), 0);
            CHECK(opd_observer_remove(handle));
            for (int i = 0; i < size; i++) {
                const double weight = uneven ? i + 2 : 1;
                sum += turn == 6 && i == 0 ? 0 : 2 * weight * (i + turn);
                weights += weight;
            }
            const double mean = sum / weights + (late ? left : 0);
            opd_tensor *const grad = opd_tensor_grad(params[first]);
            const float *const data = opd_data_f32(grad);
            for (int64_t k = 0; data && k < LARGE; k += LARGE - 1) { CHECK_NEAR(data[k], mean, 1e-5 * (1 + mean)); }
            if (turn > 0 && turn != 6 && !late) {
                CHECK(where == (const void *)data);
                CHECK(size == 3 || (!strchr(called, 'c') && !strchr(called, 'n')));
            }
            if (turn == 1) { kept = opd_keep(grad); }
            if (turn == 6) { left = mean; }
            for (int i = 0; i < PARAMS && turn != 6; i++) { (void)opd_tensor_set_grad(params[i], NULL); }
        }
    }
    const float then = (float)(2 * (1 + (size - 1) / 2.0));
    opd_tensor *const end = kept ? opd_slice(kept, 0, OPD_V(LARGE - 2), OPD_V(LARGE), 1) : NULL;
    HOLDS(end, then, then);                       /* though others have come */
    opd_release(kept);
    CHECK(opd_hook_remove(hook));
    opd_parallel_free(parallel);
    for (int i = 0; i < PARAMS; i++) { opd_release(params[i]); }
}
TEST(large_gradients_are_summed_where_they_are) {
    static char messages[RANKS_MOST][600];
    for (int i = 0; i < 6; i++) {
        int first = i / 2;
        run_ranks(2 + i % 2, stays_where_it_is, &first, false, 20000, messages);
        for (int rank = 0; rank < 2 + i % 2; rank++) { CHECK_STR(messages[rank], ""); }
    }
}
TEST(gradients_live_in_buckets) {
    all_ranks(2, lives_in_buckets, false);
    all_ranks(3, lives_in_buckets, false);
}
/* A gradient may be replaced by a transposed view of the bucket's memory: sums then add the right elements. */
static void turns_gradients(opd_group *group, int rank, void *user) {
    const int size = opd_group_size(group);
    const double added[2] = {size == 2 ? 1.5 : 2, 0};
    (void)user;
    opd_tensor *param = opd_tensor_set_requires_grad(opd_reshape(floats(4, 1, 1), OPD_INTS(2, 2)), true);
    opd_tensor *const scale = opd_reshape(floats(4, 1, 1), OPD_INTS(2, 2));
    opd_parallel *const parallel = opd_data_parallel(&param, 1, group, NULL);
    CHECK_OR_RETURN(parallel != NULL);
    for (int turn = 0; turn < 2; turn++) {        /* the first one orders the buckets */
        OPD_SCOPE { CHECK_INT(opd_backward(opd_sum(opd_mul(param, scale))), 0); }
        if (turn == 0) { (void)opd_tensor_set_grad(param, NULL); }
    }
    OPD_SCOPE {
        if (rank == size - 1) { CHECK_INT(opd_tensor_set_grad(param, opd_t(opd_tensor_grad(param))), 0); }
        CHECK_INT(opd_backward(opd_sum(opd_mul_Scalar(param, OPD_V(rank + 1)))), 0);
        const float *const data = opd_data_f32(opd_contiguous(opd_tensor_grad(param)));
        const float *const first = opd_data_f32(scale);
        for (int i = 0; data && i < 4; i++) {
            const double turned = first[i % 2 * 2 + i / 2];
            CHECK_NEAR(data[i], ((size - 1) * first[i] + turned) / size + added[0], 1e-6);
        }
    }
    opd_parallel_free(parallel);
}
TEST(gradients_that_are_turned_are_summed_by_element) {
    all_ranks(2, turns_gradients, false);
    all_ranks(3, turns_gradients, false);
}
/* One rank does not use a parameter: all report which one, and continue. */
static void lacks(opd_group *group, int rank, void *user) {
    const opd_scalar_type dtype = *(const opd_scalar_type *)user;
    opd_tensor *params[3];
    opd_parallel_options options;
    for (int i = 0; i < 3; i++) {
        params[i] = opd_tensor_set_requires_grad(opd_to_dtype(floats(2 + i, 1, 1), dtype), true);
    }
    for (int way = 0; way < 4; way++) {
        memset(&options, 0, sizeof options);
        options.bucket_bytes = way & 1 ? 8 : 0;
        opd_parallel *const parallel = opd_data_parallel(params, 3, group, &options);
        CHECK_OR_RETURN(parallel != NULL);
        for (int turn = 0; turn < 3; turn++) {
            opd_tensor *loss = opd_add(opd_sum(params[0]), opd_sum(params[2]));
            if (rank != 1 || turn != 1) { loss = opd_add(loss, opd_sum(opd_mul_Scalar(params[1], OPD_V(rank)))); }
            if (way & 2) { CHECK_INT(opd_parallel_begin(parallel, 2), 6); }
            CHECK_INT(opd_backward(loss), turn == 1 ? -1 : 0);
            if (turn == 1) {
                CHECK_ERROR(OPD_ERROR_AUTOGRAD, "parameter 1 of 3 got no gradient in this backward on rank 1: set find_");
            } else { HOLDS(opd_tensor_grad(params[1]), 1, 1, 1); }            /* the mean of 0, 1, 2 */
            for (int i = 0; i < 3; i++) { (void)opd_tensor_set_grad(params[i], NULL); }
        }
        opd_parallel_free(parallel);
    }
}
TEST(a_parameter_that_one_rank_leaves_out_is_an_error_of_all) {
    opd_scalar_type dtype = OPD_FLOAT32;
    static char messages[RANKS_MOST][600];
    run_ranks(3, lacks, &dtype, false, 20000, messages);
    for (int rank = 0; rank < 3; rank++) { CHECK_STR(messages[rank], ""); }
    dtype = OPD_FLOAT64;
    run_ranks(3, lacks, &dtype, true, 20000, messages);
    for (int rank = 0; rank < 3; rank++) { CHECK_STR(messages[rank], ""); }
}

//== sharded training ==================================================================================================

TEST(ranks_with_parts_train_as_one_process_does) {
    static training one, several, again;
    plain_run(&one);
    train(&one, 1);
    for (int way = 0; way < 8; way++) {
        plain_run(&several);
        several.sharded = true;
        several.hooks = way % 2 == 1;
        several.weighted = way >= 4;
        several.accumulate = way == 2 ? 2 : 1;
        again = several;
        train(&several, way < 2 ? 1 : way == 3 ? 4 : way == 5 ? 3 : 2);
        same_training(&one, &several, 2e-6);
        train(&again, several.ranks);
        CHECK(memcmp(again.weights, several.weights, sizeof again.weights) == 0);
    }
}
TEST(ranks_without_examples_go_on_with_parts) {
    static training other, parts;
    plain_run(&other);
    other.weighted = true;
    other.cut = 3;
    other.buffers = true;
    parts = other;
    parts.sharded = parts.hooks = true;
    train(&other, 3);
    train(&parts, 3);
    for (int i = 0; i < 64; i++) { CHECK_NEAR(parts.weights[0][i], other.weights[0][i], 2e-6); }
    for (int i = 0; i < 3 * STEPS; i++) {
        const int rank = i / STEPS, step = i % STEPS;
        CHECK_NEAR(parts.losses[rank][step], other.losses[rank][step], 2e-6);
    }
}
/* Two layers, the second split when the first is; sizes of what is left; a parameter that nobody takes; clipping. */
static void splits(opd_group *group, int rank, void *user) {
    const int size = opd_group_size(group);
    opd_tensor *params[3] = {opd_tensor_set_requires_grad(wave(OPD_INTS(7, 3), 1 + rank), true),
                             opd_tensor_set_requires_grad(wave(OPD_INTS(0, 3), 2), true),
                             opd_tensor_set_requires_grad(wave(opd_ints_of(NULL, 0), 3), true)};
    opd_tensor *const whole = wave(OPD_INTS(7, 3), 1);
    const float *const values = opd_data_f32(whole);
    (void)user;
    opd_parallel *const parallel = opd_sharded_parallel(NULL, 0, group, NULL);
    CHECK_OR_RETURN(parallel != NULL);
    CHECK_INT(opd_sharded_add(parallel, params, 1), 0);
    CHECK_INT(opd_sharded_add(parallel, params + 1, 2), 0);
    const int64_t part = (21 + size - 1) / size;
    CHECK_INT(opd_ndim(params[0]), 1);
    CHECK_INT(opd_numel(params[0]), part);
    CHECK_INT(opd_numel(params[1]), 0);
    CHECK_INT(opd_numel(params[2]), 1);
    for (int64_t i = 0; i < part; i++) {
        const int64_t at = rank * part + i;
        CHECK_NEAR(opd_data_f32(params[0])[i], at < 21 ? values[at] : 0, 0);
    }
    opd_tensor *const got = opd_parallel_full(parallel, params[0]);
    CHECK(holds(got, values, 21) && opd_ndim(got) == 2 && opd_tensor_requires_grad(got));
    CHECK_INT(opd_numel(opd_parallel_full(parallel, params[1])), 0);
    CHECK_INT(opd_ndim(opd_parallel_full(parallel, params[2])), 0);
    OPD_SCOPE { CHECK_INT(opd_backward(opd_sum(opd_mul_Scalar(got, OPD_V(rank + 1)))), 0); }
    opd_tensor *const grad = opd_tensor_grad(params[0]);
    CHECK_INT(opd_numel(grad), part);
    for (int64_t i = 0; i < part; i++) {
        CHECK_NEAR(opd_data_f32(grad)[i], rank * part + i < 21 ? (size + 1) / 2.0 : 0, 1e-6);
    }
    CHECK(opd_tensor_grad(params[2]) == NULL);
    opd_tensor *const norm = opd_sharded_clip_grad_norm(parallel, 1);
    CHECK_NEAR(opd_item_f64(norm), sqrt(21.0) * (size + 1) / 2.0, 1e-5);
    if (rank == 0) { CHECK_NEAR(opd_data_f32(grad)[0], 1 / sqrt(21.0), 1e-6); }
    CHECK(opd_clip_grad_norm(params, 3, 1, 2, false) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "parameter 0 is only this rank's part of a sharded parameter");
    opd_scaler *const scaler = opd_scaler_new(NULL);
    opd_optimizer *const sgd = opd_sgd_new(params, 3, NULL);
    (void)opd_scaler_scale(scaler, floats(1, 1, 0));
    CHECK_INT(opd_scaler_step(scaler, sgd), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "only one rank would know that a gradient is infinite");
    opd_optimizer_free(sgd);
    opd_scaler_free(scaler);
    opd_parallel_free(parallel);
}
TEST(parameters_are_split) {
    all_ranks(1, splits, false);
    all_ranks(2, splits, true);
    all_ranks(4, splits, false);
}
/* Records the calls of a thread's backward: g gathers a parameter, m is a product. */
static void *notes(const opd_event *event, void *user) {
    char *const text = (char *)user;
    const size_t at = strlen(text);
    const char *const name = event->name;
    const char what = strstr(name, "all_gather_into_tensor") ? 'g' : strcmp(name, "aten::mm") == 0 ? 'm' : 0;
    if (what && at + 1 < 64) { text[at] = what; }
    return NULL;
}
static void gathers_ahead(opd_group *group, int rank, void *user) {
    opd_tensor *params[4];
    opd_observer observer;
    (void)user;
    (void)rank;
    for (int i = 0; i < 4; i++) { params[i] = opd_tensor_set_requires_grad(wave(OPD_INTS(3, 3), i), true); }
    opd_parallel *const parallel = opd_sharded_parallel(params, 4, group, NULL);
    for (int turn = 0; turn < 3; turn++) {
        OPD_SCOPE {
            char called[64] = "";
            opd_tensor *x = wave(OPD_INTS(2, 3), 7);
            memset(&observer, 0, sizeof observer);
            observer.begin = notes;
            observer.user = called;
            CHECK_INT(opd_sharded_hooks_begin(parallel), 0);
            for (int i = 0; i < 4; i++) { x = opd_mm(x, opd_parallel_full(parallel, params[i])); }
            opd_saved_hooks_end();
            const int64_t handle = opd_observer_add_local(&observer);
            x = opd_sum(x);
            CHECK_INT(opd_backward_with(&x, 1, &(opd_backward_options){.retain_graph = turn == 2}), 0);
            if (turn == 2) { CHECK_INT(opd_backward(x), 0); }
            CHECK(opd_observer_remove(handle));
            /* from the second time on, a parameter is gathered before it is needed, but never the first one, which
               is not needed */
            CHECK_STR(called, turn == 0 ? "gmmgmmgmmm" : turn == 1 ? "ggmmgmmmmm" : "ggmmgmmmmmggmmgmmmmm");
        }
    }
    opd_parallel_free(parallel);
}
TEST(backward_gathers_the_next_parameter_ahead) { all_ranks(2, gathers_ahead, false); }
static void cannot_split(opd_group *group, int rank, void *user) {
    opd_tensor *params[2] = {opd_tensor_set_requires_grad(floats(3, 1, 1), true),
                             opd_tensor_set_requires_grad(floats(2 + rank, 1, 1), true)};
    (void)user;
    CHECK(opd_sharded_parallel(params, 2, group, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "rank 0 has 2 parameter(s) of 5 element(s), rank 1 has 2 of 6");
    CHECK_INT(opd_numel(params[0]), 3);                       /* as it was */
    opd_parallel *const parallel = opd_sharded_parallel(params, 1, group, NULL);
    CHECK_OR_RETURN(parallel != NULL);
    CHECK_INT(opd_sharded_add(parallel, params, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "parameter 0 is already sharded");
    CHECK_INT(opd_sharded_add(NULL, params, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "NULL");
    CHECK(opd_parallel_full(parallel, params[1]) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the tensor is not one of the parameters");
    CHECK(opd_parallel_full(NULL, params[1]) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_parallel_full: NULL");
    CHECK(opd_sharded_clip_grad_norm(parallel, NAN) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "negative or NaN");
    CHECK_INT(opd_sharded_hooks_begin(NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "NULL");
    opd_tensor *loss = NULL;
    if (opd_sharded_hooks_begin(parallel) == 0) {
        opd_tensor *const whole = opd_parallel_full(parallel, params[0]);
        loss = opd_sum(opd_mul(whole, whole));
        opd_saved_hooks_end();
    }
    OPD_NO_GRAD { (void)opd_mul_Scalar_(params[0], OPD_V(2)); }
    CHECK_INT(opd_backward(loss), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "sharded parameter 0 was changed between forward and backward");
    opd_tensor *const kept = opd_mul(opd_parallel_full(parallel, params[0]), floats(3, 1, 1));
    opd_parallel_free(parallel);                              /* what was recorded holds it */
    CHECK_INT(opd_backward(opd_sum(kept)), 0);
    CHECK_NEAR(opd_data_f32(opd_tensor_grad(params[0]))[0], rank ? 3 : 1, 0);
    opd_parallel *const plain = opd_data_parallel(params, 1, group, NULL);
    CHECK(opd_parallel_full(plain, params[0]) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the parameters are not sharded: make the opd_parallel with");
    CHECK_INT(opd_sharded_add(plain, params, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the parameters are not sharded");
    opd_parallel_free(plain);
}
TEST(what_cannot_be_split_is_said) { all_ranks(2, cannot_split, false); }

//== sharded checkpoints ===============================================================================================

/* A training that can be saved and continued: a sharded matrix, a bias that each rank has completely, and a buffer. */
static char shelf[200];
typedef struct going {
    opd_parallel *parallel;
    opd_module *module;
    opd_optimizer *adam;
    opd_tensor *params[3];
} going;
static void going_begin(going *run, opd_group *group, double seed) {
    run->module = opd_module_new();
    run->params[0] = opd_tensor_set_requires_grad(wave(OPD_INTS(7, 3), seed), true);
    run->params[1] = opd_tensor_set_requires_grad(wave(OPD_INTS(3), seed + 1), true);
    run->params[2] = opd_tensor_set_requires_grad(wave(OPD_INTS(1, 3), seed + 2), true);
    CHECK_INT(opd_module_add(run->module, "0.weight", run->params[0], OPD_MODULE_PARAMETER), 0);
    CHECK_INT(opd_module_add(run->module, "0.bias", run->params[1], OPD_MODULE_PARAMETER), 0);
    CHECK_INT(opd_module_add(run->module, "1.weight", run->params[2], OPD_MODULE_PARAMETER), 0);
    CHECK_INT(opd_module_add(run->module, "steps", floats(1, seed, 0), OPD_MODULE_BUFFER), 0);
    run->parallel = opd_sharded_parallel(run->params, 2, group, NULL);
    run->adam = opd_adam_new(run->params, 3, NULL);
}
static void going_end(going *run) {
    opd_optimizer_free(run->adam);
    opd_parallel_free(run->parallel);
    opd_module_free(run->module);
}
static void going_step(going *run) {
    OPD_SCOPE {
        opd_tensor *const x = opd_matmul(wave(OPD_INTS(2, 7), 5), opd_parallel_full(run->parallel, run->params[0]));
        opd_tensor *const y = opd_mul(opd_add(x, opd_parallel_full(run->parallel, run->params[1])), run->params[2]);
        CHECK_INT(opd_backward(opd_mean(opd_mul(y, y))), 0);
        CHECK_INT(opd_optimizer_step(run->adam), 0);
        CHECK_INT(opd_optimizer_zero_grad(run->adam), 0);
    }
}
static void going_values(going *run, float *values) {
    int at = 0;
    OPD_SCOPE {
        for (int i = 0; i < 3; i++) {
            opd_tensor *const whole = i < 2 ? opd_parallel_full(run->parallel, run->params[i]) : run->params[i];
            const float *const data = opd_data_f32(whole);
            for (int64_t k = 0; data && k < opd_numel(whole); k++) { values[at++] = data[k]; }
        }
    }
}
static float saved_values[2][32];                 /* when it was saved, and two steps later */
static void saves(opd_group *group, int rank, void *user) {
    const char *const names[] = {"epoch", "note"};
    const opd_value values[] = {opd_value_int(3), opd_value_str("half way")};
    going run;
    float seen[32] = {0};
    (void)user;
    going_begin(&run, group, 1);
    for (int i = 0; i < 3; i++) {                 /* again and again: the last one counts */
        going_step(&run);
        opd_optimizer_set_lr(run.adam, 0.01 * (i + 1));
        CHECK_INT(opd_sharded_save(run.parallel, shelf, run.module, run.adam, names, values, 2), 0);
    }
    if (rank == 0) { going_values(&run, saved_values[0]); } else { going_values(&run, seen); }
    going_step(&run);
    going_step(&run);
    if (rank == 0) { going_values(&run, saved_values[1]); } else { going_values(&run, seen); }
    going_end(&run);
}
static void loads(opd_group *group, int rank, void *user) {
    going run;
    float values[32] = {0};
    (void)rank;
    (void)user;
    going_begin(&run, group, 9);
    CHECK_INT(opd_sharded_load(run.parallel, shelf, run.module, run.adam), 0);
    CHECK_NEAR(opd_optimizer_lr(run.adam), 0.03, 0);
    going_values(&run, values);
    CHECK(memcmp(values, saved_values[0], sizeof values) == 0);
    CHECK_NEAR(opd_item_f64(opd_module_get(run.module, "steps")), 1, 0);
    going_step(&run);
    going_step(&run);
    going_values(&run, values);
    for (int i = 0; i < 27; i++) { CHECK_NEAR(values[i], saved_values[1][i], 1e-6); }
    going_end(&run);
}
/* Loading fails with this text in the error of the rank that notices it; the other ranks' errors mention it.
   Nothing is changed. */
static char load_part[200];
static void cannot_load(opd_group *group, int rank, void *user) {
    going run;
    float before[32] = {0}, after[32] = {0};
    (void)rank;
    (void)user;
    going_begin(&run, group, 9);
    going_step(&run);
    going_values(&run, before);
    CHECK_INT(opd_sharded_load(run.parallel, shelf, run.module, run.adam), -1);
    const char *const said = opd_error_message();
    if (!strstr(said, load_part) && !strstr(said, "see the error of that rank")) { CHECK_STR(said, load_part); }
    opd_error_clear();
    going_values(&run, after);
    CHECK(memcmp(before, after, sizeof before) == 0);
    going_end(&run);
}
static void all_cannot_load(int ranks, const char *part) {
    (void)snprintf(load_part, sizeof load_part, "%s", part);
    all_ranks(ranks, cannot_load, false);
}
static void shell(const char *format) {
    char command[900];
    (void)snprintf(command, sizeof command, format, shelf, shelf, shelf, shelf);
    CHECK_INT(system(command), 0);
}
TEST(checkpoints_of_parts_are_loaded_by_any_number_of_ranks) {
    const char *const tmp = getenv("TMPDIR");
    (void)snprintf(shelf, sizeof shelf, "%s/opd_shelf_XXXXXX", tmp ? tmp : "/tmp");
    CHECK_OR_RETURN(mkdtemp(shelf) != NULL);
    all_cannot_load(2, "index.pt");
    for (int ranks = 1; ranks <= 4; ranks += ranks) {
        all_ranks(ranks, saves, false);
        all_ranks(1, loads, false);
        all_ranks(3, loads, true);
        all_ranks(4, loads, false);
    }
    char path[300];
    (void)snprintf(path, sizeof path, "%s/index.pt", shelf);
    opd_tensor_file *const index = opd_tensor_file_open(path);
    opd_value value;
    CHECK_INT(opd_tensor_file_value(index, "epoch", &value), 0);
    CHECK_INT(value.u.i, 3);
    opd_tensor_file_close(index);
    shell("test \"$(ls %s | wc -l)\" = 5");      /* no more than the last one's */
    /* an interrupted write: some files exist, but the index does not */
    shell("cd %s && for f in part-?-1-*; do head -c 100 $f >$(echo $f | tr ab ba); done");
    all_ranks(2, loads, false);
    /* damage */
    shell("cd %s && for f in part-?-3-*; do mv $f kept-$f; done");
    all_cannot_load(1, "No such file");
    all_cannot_load(3, "No such file");
    shell("cd %s && for f in kept-*; do cp $f ${f#kept-}; printf X | dd of=${f#kept-} bs=1 seek=$(($(wc -c <$f) - 2)) "
          "conv=notrunc 2>/dev/null; done");
    all_cannot_load(3, "the file is damaged");
    shell("cd %s && for f in kept-*; do head -c 150 $f >${f#kept-}; done");
    all_cannot_load(2, "of");
    shell("cd %s && for f in kept-*; do mv $f ${f#kept-}; done");
    all_ranks(2, loads, false);
    shell("cd %s && cp index.pt kept && head -c 300 kept >index.pt");
    all_cannot_load(2, "index.pt");
    shell("cd %s && echo nothing >index.pt");
    all_cannot_load(2, "index.pt");
    shell("rm -r %s");
}
static void cannot_save(opd_group *group, int rank, void *user) {
    const char *const names[] = {"sharded/ranks"};
    const opd_value values[] = {opd_value_int(3)};
    going run;
    (void)rank;
    (void)user;
    going_begin(&run, group, 1);
    opd_module *const empty = opd_module_new();
    CHECK_INT(opd_sharded_save(run.parallel, "/nowhere/at/all", run.module, run.adam, NULL, NULL, 0), -1);
    CHECK_ERROR(OPD_ERROR_FILE, "/nowhere/at/all/part-a-");
    CHECK_INT(opd_sharded_save(run.parallel, "/tmp", run.module, run.adam, names, values, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "must not begin with 'sharded'");
    CHECK_INT(opd_sharded_save(run.parallel, "/tmp", empty, NULL, NULL, NULL, 0), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "sharded parameter 0 is not in the module");
    CHECK_INT(opd_sharded_save(NULL, "/tmp", empty, NULL, NULL, NULL, 0), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the parallel is NULL");
    CHECK_INT(opd_sharded_load(run.parallel, NULL, run.module, NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the folder is NULL");
    opd_module_free(empty);
    going_end(&run);
}
TEST(what_cannot_be_saved_in_parts_is_said) { all_ranks(2, cannot_save, false); }

/* Runs everything in a single process, up to an allocation that fails.  Returns 1 if nothing failed. */
static int all_of_it(bool loads) {
    int done = 0;
    OPD_SCOPE {
        opd_group *const self = opd_group_find("self");
        opd_tensor *param = wave(OPD_INTS(5, 3), 1);
        param = param ? opd_tensor_set_requires_grad(param, true) : NULL;
        opd_module *const module = opd_module_new();
        const bool added = param && module && opd_module_add(module, "w", param, OPD_MODULE_PARAMETER) == 0;
        opd_parallel *const parallel = added ? opd_sharded_parallel(&param, 1, self, NULL) : NULL;
        opd_optimizer *const adam = parallel ? opd_adam_new(&param, 1, NULL) : NULL;
        if (adam && opd_sharded_hooks_begin(parallel) == 0) {
            opd_tensor *const whole = opd_parallel_full(parallel, param);
            opd_tensor *const loss = opd_sum(opd_mul(whole, whole));
            opd_saved_hooks_end();
            done = opd_parallel_begin(parallel, 2) == 2 && opd_backward(loss) == 0 &&
                opd_sharded_clip_grad_norm(parallel, 1) && opd_optimizer_step(adam) == 0 &&
                (loads || opd_sharded_save(parallel, shelf, module, adam, NULL, NULL, 0) == 0) &&
                opd_sharded_load(parallel, shelf, module, adam) == 0;
        }
        if (!done && param && !parallel) { CHECK(opd_ndim(param) == 2); }     /* as it was */
        opd_optimizer_free(adam);
        opd_parallel_free(parallel);
        opd_module_free(module);
    }
    return done;
}
static void each_allocation_fails(bool loads) {
    int64_t live = 0;
    for (int64_t at = 1; at < 100000; at++) {
        (void)opd_memory_fail_at(at, false);
        const int done = all_of_it(loads);
        const bool reached = opd_memory_fail_at(0, false) >= at;
        CHECK_OR_RETURN(done == opd_ok());
        if (!reached) { return; }
        if (done) { continue; }                   /* what failed was no more than help */
        CHECK_OR_RETURN(opd_error_code() == OPD_ERROR_MEMORY || opd_error_code() == OPD_ERROR_FILE);
        opd_error_clear();
        const int64_t now = opd_memory_stats().live;
        if (at % 50 == 0) {                       /* what is made once is made by then, or soon */
            CHECK_OR_RETURN(live == 0 || now < live + 4096);
            live = now;
        }
    }
}
TEST(allocations_that_fail_are_errors) {
    const char *const tmp = getenv("TMPDIR");
    (void)snprintf(shelf, sizeof shelf, "%s/opd_shelf_XXXXXX", tmp ? tmp : "/tmp");
    CHECK_OR_RETURN(mkdtemp(shelf) != NULL);
    CHECK_INT(all_of_it(false), 1);
    each_allocation_fails(true);
    each_allocation_fails(false);
    CHECK_INT(all_of_it(true), 1);                /* the last one is whole, whatever failed */
    shell("rm -r %s");
}
/* Runs everything on two ranks, up to a failing allocation of one rank.  No rank waits until the time limit. */
typedef struct ranks_fail { int64_t at, seen; bool sharded; int done[2]; } ranks_fail;
static void trains_until(opd_group *group, int rank, void *user) {
    ranks_fail *const run = (ranks_fail *)user;
    opd_tensor *params[2] = {opd_tensor_set_requires_grad(wave(OPD_INTS(5, 3), 1), true),
                             opd_tensor_set_requires_grad(wave(OPD_INTS(3), 2), true)}, *whole[2];
    if (opd_work_wait(opd_group_barrier(group))) { return; }
    if (rank == 0) { (void)opd_memory_fail_at(run->at, false); }
    opd_parallel *const parallel = run->sharded ? opd_sharded_parallel(params, 2, group, NULL)
        : opd_data_parallel(params, 2, group, NULL);
    opd_optimizer *const sgd = parallel ? opd_sgd_new(params, 2, NULL) : NULL;
    for (int step = 0; step < 2 && sgd && opd_ok(); step++) {
        OPD_SCOPE {
            const bool more = opd_parallel_begin(parallel, 2) > 0;
            for (int i = 0; i < 2; i++) {
                whole[i] = run->sharded ? opd_parallel_full(parallel, params[i]) : params[i];
            }
            opd_tensor *const loss = more ? opd_sum(opd_mul(opd_mul(whole[0], whole[0]), whole[1])) : NULL;
            run->done[rank] = loss && opd_backward(loss) == 0 && opd_optimizer_step(sgd) == 0 &&
                opd_all_reduce(opd_detach(loss), "avg", opd_group_name(group)) != NULL;
        }
    }
    if (opd_ok()) { (void)opd_work_wait(opd_group_barrier(group)); }          /* nobody ends before all have seen */
    opd_optimizer_free(sgd);
    opd_parallel_free(parallel);
    if (rank == 0) { run->seen = opd_memory_fail_at(0, false); }
}
static void each_rank_fails(bool sharded) {
    static char messages[RANKS_MOST][600];
    int both = 0;
    for (int64_t at = 1; at < 100000; at += at < 40 ? 1 : 7) {
        ranks_fail run;
        memset(&run, 0, sizeof run);
        run.at = at;
        run.sharded = sharded;
        run_ranks(2, trains_until, &run, false, 60000, messages);
        CHECK_OR_RETURN(!messages[0][0] == !messages[1][0]);
        for (int rank = 0; rank < 2; rank++) {
            CHECK_OR_RETURN(!strstr(messages[rank], "it did not finish within"));
            CHECK_OR_RETURN(messages[rank][0] || run.done[rank]);
        }
        both += messages[0][0] != 0;
        if (run.seen < at && !messages[0][0]) { break; }
    }
    CHECK(both > 20);
}
TEST(an_allocation_that_fails_on_one_rank_is_an_error_of_all) {
    each_rank_fails(false);
    each_rank_fails(true);
}

CHECK_MAIN()
#endif
