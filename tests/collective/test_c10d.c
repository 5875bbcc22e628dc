/* The operators of c10d, which write to existing tensors and return a handle of the work, with groups of threads.
   THREADED.  C ONLY */
#include "../../opdispatch.h"
#if defined(__TINYC__) || defined(OPD_NO_THREADS)
#include "../check.h"
TEST(threads_are_left_out) { CHECK(true); }
CHECK_MAIN()
#else
#include "../thread_group.h"
#include "../check.h"

#define GROUP "__torch__.torch.classes.c10d.ProcessGroup process_group"
#define REDUCE_OP "__torch__.torch.classes.c10d.ReduceOp reduce_op"
#define WORK "__torch__.torch.classes.c10d.Work"
static const char *const schemas[] = {
    "c10d::_allgather_base_(Tensor output_tensor, Tensor input_tensor, " GROUP ", bool async_op=True, int "
    "timeout=-1) -> (Tensor, " WORK ")",
    "c10d::_reduce_scatter_base_(Tensor output_tensor, Tensor input_tensor, " GROUP ", " REDUCE_OP ", bool "
    "async_op=True, int timeout=-1) -> (Tensor, " WORK ")",
    "c10d::allgather_(Tensor[][] output_tensors, Tensor[] input_tensors, " GROUP ", bool async_op=True, int "
    "timeout=-1) -> (Tensor[][], " WORK ")",
    "c10d::allgather_coalesced_(Tensor[][] output_lists, Tensor[] input_list, " GROUP ", bool async_op=True) -> " WORK,
    "c10d::allgather_into_tensor_coalesced_(Tensor[] outputs, Tensor[] inputs, " GROUP ", bool async_op=True) -> " WORK,
    "c10d::allreduce_(Tensor[] tensors, " GROUP ", " REDUCE_OP ", Tensor? sparse_indices, bool async_op=True, "
    "int timeout=-1) -> (Tensor[], " WORK ")",
    "c10d::allreduce_coalesced_(Tensor[] tensors, " GROUP ", " REDUCE_OP ", bool async_op=True, int timeout=-1) "
    "-> " WORK,
    "c10d::alltoall_(Tensor[] output_tensors, Tensor[] input_tensors, " GROUP ", bool async_op=True, int "
    "timeout=-1) -> (Tensor[], " WORK ")",
    "c10d::alltoall_base_(Tensor output, Tensor input, " GROUP ", int[] output_split_sizes, int[] "
    "input_split_sizes, bool async_op=True, int timeout=-1) -> " WORK,
    "c10d::barrier(Tensor tensor, " GROUP ", int[] device_ids, bool async_op=True, int timeout=-1) -> " WORK,
    "c10d::broadcast_(Tensor[] tensors, " GROUP ", int root_rank, int root_tensor, bool async_op=True, int "
    "timeout=-1) -> (Tensor[], " WORK ")",
    "c10d::check_for_nan(Tensor tensor) -> ()",
    "c10d::gather_(Tensor[][] output_tensors, Tensor[] input_tensors, " GROUP ", int root_rank, bool "
    "async_op=True, int timeout=-1) -> " WORK,
    "c10d::gather_into_tensor_(Tensor output_tensor, Tensor input_tensor, " GROUP ", int root_rank, bool "
    "async_op=True, int timeout=-1) -> (Tensor, " WORK ")",
    "c10d::monitored_barrier_(Tensor tensor, " GROUP ", int[] device_ids, int timeout, bool wait_all_ranks) -> ()",
    "c10d::recv_(Tensor[] tensors, " GROUP ", int src, int tag) -> " WORK,
    "c10d::recv_any_source_(Tensor[] tensors, " GROUP ", int tag) -> " WORK,
    "c10d::reduce_(Tensor[] tensors, " GROUP ", " REDUCE_OP ", int root_rank, int root_tensor, bool "
    "async_op=True, int timeout=-1) -> " WORK,
    "c10d::reduce_scatter_(Tensor[] output_tensors, Tensor[][] input_tensors, " GROUP ", " REDUCE_OP ", bool "
    "async_op=True, int timeout=-1) -> (Tensor[], " WORK ")",
    "c10d::reduce_scatter_tensor_coalesced_(Tensor[] outputs, Tensor[] inputs, " GROUP ", " REDUCE_OP ", bool "
    "async_op=True, int timeout=-1) -> " WORK,
    "c10d::scatter_(Tensor[] output_tensors, Tensor[][] input_tensors, " GROUP ", int root_rank, bool "
    "async_op=True, int timeout=-1) -> (Tensor[], " WORK ")",
    "c10d::send(Tensor[] tensors, " GROUP ", int dst, int tag) -> " WORK};
/* All schemas of PyTorch 2.15. */
TEST(schemas_are_pytorchs) {
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        char name[100], text[500];
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(schemas[i], "("), schemas[i]);
        const opd_op *const op = opd_find(name);
        CHECK_OR_RETURN(op != NULL);
        (void)opd_schema_print(opd_op_schema(op), text, sizeof text);
        CHECK_STR(text, schemas[i]);
    }
}

static opd_tensor *floats(int64_t count, double first, double step) {
    opd_tensor *const tensor = opd_empty(OPD_INTS(count), OPD_FLOAT32);
    float *const data = opd_data_f32(tensor);
    for (int64_t i = 0; data && i < count; i++) { data[i] = (float)(first + step * (double)i); }
    return tensor;
}
static bool holds(opd_tensor *tensor, const float *want, int64_t count) {
    opd_tensor *const flat = opd_to_dtype(opd_reshape(tensor, OPD_INTS(-1)), OPD_FLOAT64);
    const double *const data = opd_data_f64(flat);
    if (!data || opd_numel(flat) != count) { return false; }
    for (int64_t i = 0; i < count; i++) {
        if (fabs(data[i] - (double)want[i]) > 1e-6) {
            printf("element %d is %g, not %g\n", (int)i, data[i], (double)want[i]);
            return false;
        }
    }
    return true;
}
#define HOLDS(tensor, ...) do { \
        const float want_[] = {__VA_ARGS__}; \
        CHECK(holds(tensor, want_, (int64_t)(sizeof want_ / sizeof *want_))); \
    } while (0)
/* Calls an operator; its Work, or NULL.  *first: its first result, where it has two. */
static opd_work *begin(const char *name, const opd_value *args, int count, opd_value *first) {
    char whole[100];
    opd_value rets[2] = {opd_value_none(), opd_value_none()};
    (void)snprintf(whole, sizeof whole, "c10d::%s", name);
    if (opd_call_all(opd_find(whole), rets, args, count)) { return NULL; }
    if (first) { *first = rets[0]; }
    const opd_value *const work = first ? &rets[1] : &rets[0];
    return work->tag == OPD_TAG_OBJECT ? (opd_work *)work->u.object : NULL;
}
static void all_ranks(int size, void (*run)(opd_group *group, int rank, void *user), bool checked) {
    static char messages[RANKS_MOST][600];
    run_ranks(size, run, NULL, checked, 20000, messages);
    for (int rank = 0; rank < size; rank++) { CHECK_STR(messages[rank], ""); }
}
static opd_value one(opd_tensor **tensor) { return opd_value_tensors(tensor, 1); }
static opd_value one_list(opd_value *tensors) { return opd_value_list(tensors, 1); }
static opd_value str(const char *text) { return opd_value_str(text); }
static opd_value number(int64_t i) { return opd_value_int(i); }

/* A group is given by itself on some ranks, on others by its name. */
static opd_value it(opd_group *group) {
    return opd_group_rank(group) == 1 ? str(opd_group_name(group)) : opd_value_object(group);
}
static void in_place(opd_group *group, int rank, void *user) {
    opd_tensor *x = floats(3, rank, 1), *y = floats(2, 10 * rank, 1), *z = floats(2, rank, 0);
    opd_tensor *several[2] = {floats(2, rank, 1), floats(1, 10 * rank, 0)};
    opd_tensor *gaps = opd_t(opd_reshape(floats(4, rank, 1), OPD_INTS(2, 2)));
    opd_value first;
    (void)user;
    const opd_value reduce[4] = {one(&x), it(group), str("sum"), opd_value_none()};
    opd_work *const work = begin("allreduce_", reduce, 4, &first);
    CHECK(first.tag == OPD_TAG_TENSORS && first.n == 1 && first.u.tensors[0] == x);
    HOLDS(x, 3, 6, 9);                            /* who reads it waits */
    CHECK_INT(opd_work_wait(work), 0);
    const opd_value from[4] = {one(&y), it(group), number(2), number(0)};
    CHECK_INT(opd_work_wait(begin("broadcast_", from, 4, &first)), 0);
    HOLDS(y, 20, 21);
    const opd_value mean[7] = {one(&z), it(group), str("avg"), number(1), number(0), opd_value_bool(false),
                               number(5000)};
    opd_work *const done = begin("reduce_", mean, 7, NULL);
    CHECK_INT(opd_work_test(done), 1);            /* it has waited */
    CHECK_INT(opd_work_wait(done), 0);
    HOLDS(z, rank == 1 ? 1 : rank, rank == 1 ? 1 : rank);
    const opd_value each[3] = {opd_value_tensors(several, 2), it(group), str("max")};
    opd_work *const both = begin("allreduce_coalesced_", each, 3, NULL);
    while (opd_work_test(both) == 0) { thread_rest(20); }
    CHECK_INT(opd_work_wait(both), 0);
    HOLDS(several[0], 2, 3);
    HOLDS(several[1], 20);
    const opd_value turned[4] = {one(&gaps), it(group), str("sum"), opd_value_none()};
    CHECK_INT(opd_work_wait(begin("allreduce_", turned, 4, &first)), 0);
    HOLDS(gaps, 3, 9, 6, 12);
    CHECK_INT(opd_tensor_version(x), 1);
    const opd_value all[3] = {opd_value_tensor(x), it(group), opd_value_ints(NULL, 0)};
    CHECK_INT(opd_work_wait(begin("barrier", all, 3, NULL)), 0);
    const opd_value watched[5] = {opd_value_tensor(x), it(group), opd_value_ints(NULL, 0), number(5000),
                                  opd_value_bool(true)};
    CHECK_INT(opd_call_all(opd_find("c10d::monitored_barrier_"), NULL, watched, 5), 0);
}
TEST(tensors_are_reduced_and_broadcast_in_place) {
    all_ranks(3, in_place, false);
    all_ranks(3, in_place, true);
}
/* Into one tensor, or out of it. */
static void whole(opd_group *group, int rank, void *user) {
    opd_tensor *x = floats(2, 10 * rank, 1), *all = floats(6, -1, 0), *part = floats(2, -1, 0);
    opd_tensor *ins[2] = {floats(1, rank, 0), floats(2, 10 * rank, 1)};
    opd_tensor *outs[2] = {floats(3, -1, 0), floats(6, -1, 0)};
    opd_value first;
    (void)user;
    const opd_value gather[3] = {opd_value_tensor(all), opd_value_tensor(x), it(group)};
    CHECK_INT(opd_work_wait(begin("_allgather_base_", gather, 3, &first)), 0);
    CHECK(first.tag == OPD_TAG_TENSOR && first.u.t == all);
    HOLDS(all, 0, 1, 10, 11, 20, 21);
    const opd_value lists[3] = {opd_value_tensors(outs, 2), opd_value_tensors(ins, 2), it(group)};
    CHECK_INT(opd_work_wait(begin("allgather_into_tensor_coalesced_", lists, 3, NULL)), 0);
    HOLDS(outs[0], 0, 1, 2);
    HOLDS(outs[1], 0, 1, 10, 11, 20, 21);
    const opd_value scatter[4] = {opd_value_tensor(part), opd_value_tensor(all), it(group), str("avg")};
    CHECK_INT(opd_work_wait(begin("_reduce_scatter_base_", scatter, 4, &first)), 0);
    HOLDS(part, 10 * rank, 10 * rank + 1);
    const opd_value back[4] = {opd_value_tensors(ins, 2), opd_value_tensors(outs, 2), it(group), str("sum")};
    CHECK_INT(opd_work_wait(begin("reduce_scatter_tensor_coalesced_", back, 4, NULL)), 0);
    HOLDS(ins[0], 3 * rank);
    HOLDS(ins[1], 30 * rank, 30 * rank + 3);
    (void)opd_fill_(all, OPD_V(-1));
    const opd_value root[4] = {opd_value_tensor(all), opd_value_tensor(x), it(group), number(1)};
    CHECK_INT(opd_work_wait(begin("gather_into_tensor_", root, 4, &first)), 0);
    if (rank == 1) { HOLDS(all, 0, 1, 10, 11, 20, 21); } else { HOLDS(all, -1, -1, -1, -1, -1, -1); }
}
TEST(one_tensor_has_what_all_ranks_have) {
    all_ranks(3, whole, false);
    all_ranks(3, whole, true);
}
/* Lists with a tensor for each rank. */
static void listed(opd_group *group, int rank, void *user) {
    opd_tensor *x = floats(2, 10 * rank, 1), *y = floats(2, -1, 0), *parts[3], *ins[2], *rows[3][2];
    opd_value first, list, lists[3];
    (void)user;
    for (int i = 0; i < 3; i++) {
        parts[i] = opd_t(floats(2, -1, 0));
        for (int k = 0; k < 2; k++) { rows[i][k] = floats(k + 1, -1, 0); }
        lists[i] = opd_value_tensors(rows[i], 2);
    }
    list = opd_value_tensors(parts, 3);
    const opd_value gather[3] = {one_list(&list), one(&x), it(group)};
    CHECK_INT(opd_work_wait(begin("allgather_", gather, 3, &first)), 0);
    CHECK(first.tag == OPD_TAG_LIST && first.n == 1 && first.u.list[0].n == 3 &&
          first.u.list[0].u.tensors[2] == parts[2]);
    for (int i = 0; i < 3; i++) { HOLDS(parts[i], 10 * i, 10 * i + 1); }
    ins[0] = floats(1, rank, 0);
    ins[1] = x;
    const opd_value tables[3] = {opd_value_list(lists, 3), opd_value_tensors(ins, 2), it(group)};
    CHECK_INT(opd_work_wait(begin("allgather_coalesced_", tables, 3, NULL)), 0);
    for (int i = 0; i < 3; i++) {
        HOLDS(rows[i][0], i);
        HOLDS(rows[i][1], 10 * i, 10 * i + 1);
    }
    const opd_value sums[4] = {one(&y), one_list(&list), it(group), str("sum")};
    CHECK_INT(opd_work_wait(begin("reduce_scatter_", sums, 4, &first)), 0);
    HOLDS(y, 30 * rank, 30 * rank + 3);
    const opd_value none = opd_value_list(NULL, 0);
    for (int i = 0; i < 3; i++) { (void)opd_fill_(parts[i], OPD_V(rank + i)); }
    const opd_value root[4] = {rank == 2 ? one_list(&list) : none, one(&x), it(group), number(2)};
    CHECK_INT(opd_work_wait(begin("gather_", root, 4, NULL)), 0);
    for (int i = 0; i < 3; i++) {
        HOLDS(parts[i], rank == 2 ? 10 * i : rank + i, rank == 2 ? 10 * i + 1 : rank + i);
    }
    const opd_value out[4] = {one(&y), rank == 2 ? one_list(&list) : none, it(group), number(2)};
    CHECK_INT(opd_work_wait(begin("scatter_", out, 4, &first)), 0);
    HOLDS(y, 10 * rank, 10 * rank + 1);
}
TEST(lists_have_a_tensor_for_each_rank) {
    all_ranks(3, listed, false);
    all_ranks(3, listed, true);
}
/* Rank r sends each rank r + 1 elements. */
static void exchanged(opd_group *group, int rank, void *user) {
    opd_tensor *ins[3], *outs[3], *got = floats(6, -1, 0), *even = floats(3, -1, 0);
    int64_t sent[3], taken[3];
    opd_value first;
    (void)user;
    for (int i = 0; i < 3; i++) {
        ins[i] = floats(rank + 1, 10 * rank + i, 0);
        outs[i] = floats(i + 1, -1, 0);
        sent[i] = rank + 1;
        taken[i] = i + 1;
    }
    const opd_value lists[3] = {opd_value_tensors(outs, 3), opd_value_tensors(ins, 3), it(group)};
    CHECK_INT(opd_work_wait(begin("alltoall_", lists, 3, &first)), 0);
    HOLDS(outs[0], rank);
    HOLDS(outs[2], 20 + rank, 20 + rank, 20 + rank);
    const opd_value splits[5] = {opd_value_tensor(got), opd_value_tensor(floats(3 * (rank + 1), rank, 0)), it(group),
                                 opd_value_ints(taken, 3), opd_value_ints(sent, 3)};
    CHECK_INT(opd_work_wait(begin("alltoall_base_", splits, 5, NULL)), 0);
    HOLDS(got, 0, 1, 1, 2, 2, 2);
    const opd_value alike[5] = {opd_value_tensor(even), opd_value_tensor(floats(3, rank, 10)), it(group),
                                opd_value_ints(NULL, 0), opd_value_ints(NULL, 0)};
    CHECK_INT(opd_work_wait(begin("alltoall_base_", alike, 5, NULL)), 0);
    HOLDS(even, 10 * rank, 10 * rank + 1, 10 * rank + 2);
    opd_tensor *x = floats(2, rank, 1), *y = floats(2, -1, 0);
    const opd_value to[4] = {one(&x), it(group), number((rank + 1) % 3), number(7)};
    const opd_value from[4] = {one(&y), it(group), number((rank + 2) % 3), number(7)};
    opd_work *const send = begin("send", to, 4, NULL), *const recv = begin("recv_", from, 4, NULL);
    HOLDS(y, (rank + 2) % 3, (rank + 2) % 3 + 1);
    CHECK_INT(opd_work_wait(send), 0);
    CHECK_INT(opd_work_wait(recv), 0);
    const opd_value words[2] = {str("irecv"), str("isend")};
    const int64_t peers[2] = {(rank + 2) % 3, (rank + 1) % 3}, tags[2] = {1, 1};
    opd_tensor *const both[2] = {y, opd_mul_Scalar(x, OPD_V(2))};
    const opd_value batch[5] = {opd_value_list(words, 2), opd_value_ints(peers, 2), opd_value_ints(tags, 2),
                                opd_value_tensors(both, 2), str(opd_group_name(group))};
    const opd_tensors pairs = opd_call_list(opd_find("_c10d_functional::batch_p2p_ops"), batch, 5);
    CHECK_INT(pairs.n, 2);
    CHECK(pairs.n == 2 && pairs.data[0] == y && opd_numel(pairs.data[1]) == 0);
    HOLDS(y, 2 * ((rank + 2) % 3), 2 * ((rank + 2) % 3) + 2);
}
TEST(ranks_exchange_tensors) {
    all_ranks(3, exchanged, false);
    all_ranks(3, exchanged, true);
}
static void refused(const char *name, const opd_value *args, int count, const char *part) {
    opd_value rets[2];
    char whole[100];
    (void)snprintf(whole, sizeof whole, "c10d::%s", name);
    CHECK_INT(opd_call_all(opd_find(whole), rets, args, count), -1);
    if (opd_ok() || !strstr(opd_error_message(), part)) {
        printf("%s: %s\n", name, opd_ok() ? "(no error)" : opd_error_message());
        CHECK(false);
    }
    opd_error_clear();
}
TEST(mistakes_are_named) {
    opd_tensor *x = floats(3, 0, 1), *several[2] = {x, x}, *wide = opd_ones(OPD_INTS(3), OPD_FLOAT64);
    int elsewhere = 0;
    opd_value args[6] = {one(&x), str("nowhere"), str("sum"), opd_value_none(), opd_value_none(), opd_value_none()};
    refused("allreduce_", args, 4, "there is no process group 'nowhere'");
    args[1] = opd_value_object(&elsewhere);
    refused("allreduce_", args, 4, "is not a registered process group");
    args[1] = str("self");
    args[2] = str("mean");
    refused("allreduce_", args, 4, "reduce_op must be");
    args[2] = opd_value_object(&elsewhere);
    refused("allreduce_", args, 4, "the name of a reduction");
    args[2] = str("sum");
    args[0] = opd_value_tensors(several, 2);
    refused("allreduce_", args, 4, "must give one tensor, not 2");
    args[0] = one(&x);
    args[3] = opd_value_tensor(x);
    refused("allreduce_", args, 4, "sparse tensors are not supported");
    args[2] = args[3] = number(1);
    refused("broadcast_", args, 4, "one tensor");
    args[3] = number(0);
    refused("broadcast_", args, 4, "rank 1 is not in process group 'self'");
    refused("send", args, 4, "rank 1 is not in process group 'self'");
    args[2] = number(INT64_C(1) << 32);
    refused("send", args, 4, "rank -1 is not in process group 'self'");
    args[2] = number(0);
    refused("recv_", args, 4, "is this process, which cannot send to itself");
    refused("recv_any_source_", args, 3, "receive from a given rank");
    const opd_value whole[3] = {opd_value_tensor(x), opd_value_tensor(floats(2, 0, 1)), str("self")};
    refused("_allgather_base_", whole, 3, "2 element(s) from each of 1 rank(s) do not fill the tensor, which has 3");
    const opd_value other[3] = {opd_value_tensor(x), opd_value_tensor(wide), str("self")};
    refused("_allgather_base_", other, 3, "the tensor that is sent (float64) and the tensor that receives it (float32)");
    const opd_value lists[3] = {opd_value_tensors(several, 2), one(&x), str("self")};
    refused("allgather_into_tensor_coalesced_", lists, 3, "2 tensor(s) to receive, but 1 to send");
    opd_value both = opd_value_tensors(several, 2);
    const opd_value gather[3] = {one_list(&both), one(&x), str("self")};
    refused("allgather_", gather, 3, "a tensor for each of 1 rank(s)");
    const int64_t two[1] = {2};
    const opd_value splits[5] = {opd_value_tensor(x), opd_value_tensor(x), str("self"), opd_value_ints(two, 1),
                                 opd_value_ints(NULL, 0)};
    refused("alltoall_base_", splits, 5, "their sum must be the first dim, 3");
    const opd_value rows[2] = {one(&x), one(&x)};
    opd_value coalesced[3] = {opd_value_list(rows, 2), one(&x), str("self")};
    refused("allgather_coalesced_", coalesced, 3, "2 list(s) for 1 rank(s)");
    coalesced[0] = opd_value_list(rows, 1);
    coalesced[1] = opd_value_tensors(several, 2);
    refused("allgather_coalesced_", coalesced, 3, "the list for rank 0 has 1 tensor(s), not 2");
    opd_tensor *short_one = floats(2, 0, 1);
    coalesced[1] = one(&short_one);
    refused("allgather_coalesced_", coalesced, 3, "tensor 0 of the list has 3 element(s), not 2");
    const opd_value exchange[3] = {opd_value_tensors(several, 2), opd_value_tensors(several, 2), str("self")};
    refused("alltoall_", exchange, 3, "there are 2 output tensor(s) and 2 input tensor(s) for 1 rank(s)");
    const opd_value unequal[3] = {one(&x), one(&short_one), str("self")};
    refused("alltoall_", unequal, 3, "a rank sends itself 2 element(s), but receives 3");
    opd_tensor *leaf = opd_tensor_set_requires_grad(floats(3, 0, 1), true);
    const opd_value writes[4] = {one(&leaf), str("self"), str("sum"), opd_value_none()};
    refused("allreduce_", writes, 4, "requires grad");
    const opd_value bad[1] = {opd_value_tensor(opd_div(x, opd_zeros(OPD_INTS(3), OPD_FLOAT32)))};
    refused("check_for_nan", bad, 1, "the tensor contains a NaN");
    const opd_value good[1] = {opd_value_tensor(x)};
    CHECK_INT(opd_call_all(opd_find("c10d::check_for_nan"), NULL, good, 1), 0);
}
static void mixes_dtypes(opd_group *group, int rank, void *user) {
    opd_tensor *mixed[2] = {floats(3, 0, 1), opd_ones(OPD_INTS(3), OPD_FLOAT64)};
    const opd_value args[3] = {opd_value_tensors(mixed, 2), opd_value_tensors(mixed, 2), it(group)};
    (void)rank; (void)user;
    refused("alltoall_", args, 3, "c10d::alltoall_: all tensors of a list must have the same dtype and device");
}
TEST(lists_are_of_one_dtype) { all_ranks(2, mixes_dtypes, false); }
/* Fakes do nothing, and their work is done; a work whose time is over says so. */
static void waits_in_vain(opd_group *group, int rank, void *user) {
    opd_tensor *x = floats(3, rank, 1);
    const opd_value args[6] = {one(&x), opd_value_object(group), str("sum"), opd_value_none(), opd_value_bool(true),
                               number(50)};
    opd_value first;
    (void)user;
    if (rank == 0) {
        opd_work *const work = begin("allreduce_", args, 6, &first);
        CHECK_INT(opd_work_wait(work), -1);
        CHECK_ERROR(OPD_ERROR_KERNEL, "it did not finish within 0.05 s");
    }
}
TEST(fakes_do_nothing_and_time_is_limited) {
    opd_tensor *x = opd_tensor_new_on(OPD_INTS(4), OPD_FLOAT32, opd_device_make(OPD_META, -1));
    const opd_value args[4] = {one(&x), str("self"), str("sum"), opd_value_none()};
    opd_value first;
    opd_work *const work = begin("allreduce_", args, 4, &first);
    CHECK_INT(opd_work_test(work), 1);
    CHECK_INT(opd_work_wait(work), 0);
    all_ranks(2, waits_in_vain, false);
}
static int calls_it(void *user, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    opd_tensor *x = inputs[0];
    const opd_value args[4] = {one(&x), str("self"), str("sum"), opd_value_none()};
    opd_value rets[2];
    (void)user;
    outputs[0] = x;
    return ninputs == 1 && opd_call_all(opd_find("c10d::allreduce_"), rets, args, 4) == 0 ? 1 : -1;
}
TEST(what_is_recorded_and_batched_is_functional) {
    opd_tensor *x = opd_ones(OPD_INTS(3, 2), OPD_FLOAT32), *y = NULL;
    CHECK(opd_graph_trace(calls_it, NULL, &x, 1, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "cannot be recorded or batched");
    CHECK_INT(opd_vmap(calls_it, NULL, &x, 1, NULL, &y, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "cannot be recorded or batched");
}
CHECK_MAIN()
#endif
