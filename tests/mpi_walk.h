/* Calls every operator in the namespaces of collectives over MPI.  Also tests fake tensors, counted costs, and spans
   with bytes; and for operators that are functions of tensors, a recorded graph that one rank saves and all run,
   vmap, and derivatives.  An operator without a row in the table below is a mistake.  On rank r, the input has two
   elements (r + 1) (i + 1) for each rank. */
#ifndef OPD_TESTS_MPI_WALK_H
#define OPD_TESTS_MPI_WALK_H
#include "mpi_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WALK_RANKS = 8, WALK_MOST = 2 * WALK_RANKS * WALK_RANKS };
/* What an operator leaves: sums, all ranks' numbers, this rank's part of the sums, its part of each rank's, those of
   rank 0, its own, none, those of the rank before it, both of these, its part of rank 0's, at rank 0 alone, nothing. */
typedef enum walk_result {
    WALK_SUM, WALK_ALL, WALK_PART, WALK_TURNED, WALK_FIRST, WALK_SAME, WALK_SENT, WALK_TAKEN, WALK_PAIRS,
    WALK_FIRST_PART, WALK_SUM_AT_FIRST, WALK_ALL_AT_FIRST, WALK_NOTHING, WALK_REFUSED
} walk_result;
/* Tensors of arguments: x one of two numbers for each rank, p one of two numbers, g one for all ranks' x; X, P, G lists
   of one; S a list of p for each rank; L, M a list of a list of x or p for each rank; R lists of one x for each rank. */
typedef struct walk_line {
    const char *name;
    char written, given;                          /* written is the first argument, or the one named out; 0: none */
    walk_result result;
    bool differs;                                 /* has derivatives */
    const char *moves;                            /* the name of its spans; NULL: it moves nothing */
} walk_line;
static const walk_line walk_lines[] = {
    {"_c10d_functional::all_reduce", 0, 'x', WALK_SUM, true, "moves all_reduce"},
    {"_c10d_functional::all_reduce_", 0, 'x', WALK_SUM, true, "moves all_reduce"},
    {"_c10d_functional::all_reduce_coalesced", 0, 'X', WALK_SUM, true, "moves all_reduce"},
    {"_c10d_functional::all_reduce_coalesced_", 0, 'X', WALK_SUM, true, "moves all_reduce"},
    {"_c10d_functional::all_gather_into_tensor", 0, 'x', WALK_ALL, true, "moves all_gather"},
    {"_c10d_functional::all_gather_into_tensor_out", 'g', 'x', WALK_ALL, false, "moves all_gather"},
    {"_c10d_functional::all_gather_into_tensor_coalesced", 0, 'X', WALK_ALL, true, "moves all_gather"},
    {"_c10d_functional::reduce_scatter_tensor", 0, 'x', WALK_PART, true, "moves reduce_scatter"},
    {"_c10d_functional::reduce_scatter_tensor_out", 'p', 'x', WALK_PART, false, "moves reduce_scatter"},
    {"_c10d_functional::reduce_scatter_tensor_coalesced", 0, 'X', WALK_PART, true, "moves reduce_scatter"},
    {"_c10d_functional::all_to_all_single", 0, 'x', WALK_TURNED, true, "moves all_to_all"},
    {"_c10d_functional::broadcast", 0, 'x', WALK_FIRST, true, "moves broadcast"},
    {"_c10d_functional::broadcast_", 0, 'x', WALK_FIRST, true, "moves broadcast"},
    {"_c10d_functional::isend", 0, 'x', WALK_SENT, false, "moves send"},
    {"_c10d_functional::irecv", 0, 'x', WALK_TAKEN, false, "moves recv"},
    {"_c10d_functional::batch_p2p_ops", 0, 'X', WALK_PAIRS, false, "moves recv"},
    {"_c10d_functional::wait_tensor", 0, 'x', WALK_SAME, true, NULL},
    {"_c10d_functional::wait_tensors", 0, 'X', WALK_SAME, true, NULL},
    {"_c10d_functional_autograd::all_to_all_single", 0, 'x', WALK_TURNED, true, "moves all_to_all"},
    {"_c10d_functional_autograd::reduce_scatter_tensor", 0, 'x', WALK_PART, true, "moves reduce_scatter"},
    {"_c10d_functional_autograd::all_gather_into_tensor", 0, 'x', WALK_ALL, true, "moves all_gather"},
    {"_c10d_functional_autograd::_wrap_tensor_autograd", 0, 'x', WALK_SAME, true, NULL},
    {"c10d::allreduce_", 'X', 0, WALK_SUM, false, "moves all_reduce"},
    {"c10d::allreduce_coalesced_", 'X', 0, WALK_SUM, false, "moves all_reduce"},
    {"c10d::broadcast_", 'X', 0, WALK_FIRST, false, "moves broadcast"},
    {"c10d::reduce_", 'X', 0, WALK_SUM_AT_FIRST, false, "moves reduce"},
    {"c10d::allgather_", 'L', 'X', WALK_ALL, false, "moves all_gather"},
    {"c10d::_allgather_base_", 'g', 'x', WALK_ALL, false, "moves all_gather"},
    {"c10d::allgather_coalesced_", 'R', 'X', WALK_ALL, false, "moves all_gather"},
    {"c10d::allgather_into_tensor_coalesced_", 'G', 'X', WALK_ALL, false, "moves all_gather"},
    {"c10d::reduce_scatter_", 'P', 'M', WALK_PART, false, "moves reduce_scatter"},
    {"c10d::_reduce_scatter_base_", 'p', 'x', WALK_PART, false, "moves reduce_scatter"},
    {"c10d::reduce_scatter_tensor_coalesced_", 'P', 'X', WALK_PART, false, "moves reduce_scatter"},
    {"c10d::gather_", 'L', 'X', WALK_ALL_AT_FIRST, false, "moves gather"},
    {"c10d::gather_into_tensor_", 'g', 'x', WALK_ALL_AT_FIRST, false, "moves gather"},
    {"c10d::scatter_", 'P', 'M', WALK_FIRST_PART, false, "moves scatter"},
    {"c10d::alltoall_", 'S', 'S', WALK_TURNED, false, "moves all_to_all"},
    {"c10d::alltoall_base_", 'x', 'x', WALK_TURNED, false, "moves all_to_all"},
    {"c10d::send", 0, 'X', WALK_NOTHING, false, "moves send"},
    {"c10d::recv_", 'X', 0, WALK_TAKEN, false, "moves recv"},
    {"c10d::recv_any_source_", 'X', 0, WALK_REFUSED, false, NULL},
    {"c10d::barrier", 0, 'x', WALK_NOTHING, false, "moves barrier"},
    {"c10d::monitored_barrier_", 0, 'x', WALK_NOTHING, false, "moves barrier"},
    {"c10d::check_for_nan", 0, 'x', WALK_NOTHING, false, NULL}};

//-- calls -------------------------------------------------------------------------------------------------------------

typedef struct walk_call {
    const walk_line *line;
    const char *reduce_op;
    opd_value args[16], lists[2][WALK_RANKS], words[2];
    opd_tensor *tensors[2][WALK_RANKS];
    int64_t ints[WALK_RANKS], pairs[2];
} walk_call;

static opd_tensor *walk_numbers(int rank) {
    opd_tensor *const x = opd_empty(OPD_INTS(2 * size_here), OPD_FLOAT64);
    double *const data = opd_data_f64(x);
    for (int i = 0; data && i < 2 * size_here; i++) { data[i] = (rank + 1.0) * (i + 1); }
    return x;
}
/* Returns one tensor of a layout: made from x or, if x is NULL, with undefined contents. */
static opd_tensor *walk_tensor(char layout, opd_tensor *x, int i) {
    const bool part = strchr("pPSM", layout) != NULL;
    const int64_t numel = part ? 2 : strchr("gG", layout) ? 2 * size_here * size_here : 2 * size_here;
    if (!x) { return opd_full(OPD_INTS(numel), OPD_V(-1), OPD_FLOAT64); }
    return part ? opd_narrow(x, 0, 2 * i, 2) : x;
}
/* Returns a tensor with undefined contents and as many examples as x. */
static opd_tensor *walk_room(char layout, opd_tensor *x) {
    opd_tensor *copies[WALK_RANKS];
    const opd_tensors list = {copies, layout == 'p' ? 1 : size_here};
    for (int i = 0; i < list.n; i++) { copies[i] = walk_tensor(layout == 'p' ? 'p' : 'x', x, 0); }
    return opd_cat(list, 0);
}
/* Returns an argument of a layout: the written one (which 0) or the other. */
static opd_value walk_tensors(walk_call *call, int which, char layout, opd_tensor *x) {
    opd_tensor **const at = call->tensors[which];
    const int count = strchr("LSMR", layout) ? size_here : 1;
    const bool nothing = rank_here != 0 && strchr("LM", layout) &&
        (call->line->result == WALK_ALL_AT_FIRST || call->line->result == WALK_FIRST_PART);
    for (int i = 0; i < count; i++) { at[i] = walk_tensor(layout, x, i); }
    if (strchr("xpg", layout)) { return opd_value_tensor(at[0]); }
    if (!strchr("LMR", layout)) { return opd_value_tensors(at, count); }
    for (int i = 0; i < count; i++) { call->lists[which][i] = opd_value_tensors(at + i, layout == 'R' ? 1 : count); }
    return opd_value_list(call->lists[which], nothing ? 0 : layout == 'R' ? count : 1);
}
/* Returns the argument with this name, which is not a tensor. */
static opd_value walk_argument(walk_call *call, const char *name) {
    const int next = (rank_here + 1) % size_here, last = (rank_here + size_here - 1) % size_here;
    for (int i = 0; i < size_here; i++) { call->ints[i] = 2; }
    if (strcmp(name, "reduce_op") == 0) { return opd_value_str(call->reduce_op); }
    if (strcmp(name, "group_name") == 0 || strcmp(name, "process_group") == 0) { return opd_value_str("world"); }
    if (strcmp(name, "group_size") == 0) { return opd_value_int(size_here); }
    if (strstr(name, "_split_sizes")) { return opd_value_ints(call->ints, size_here); }
    if (strcmp(name, "dst") == 0) { return opd_value_int(next); }
    if (strcmp(name, "src") == 0) { return opd_value_int(call->line->result == WALK_TAKEN ? last : 0); }
    if (strcmp(name, "sparse_indices") == 0) { return opd_value_none(); }
    if (strcmp(name, "device_ids") == 0) { return opd_value_ints(NULL, 0); }
    if (strcmp(name, "timeout") == 0) { return opd_value_int(20000); }
    if (strcmp(name, "wait_all_ranks") == 0) { return opd_value_bool(true); }
    return opd_value_int(0);                      /* root_rank, root_tensor, tag */
}
/* The arguments of batch_p2p_ops: sends x to the next rank, and receives from the previous one. */
static int walk_pairs_arguments(walk_call *call, opd_tensor *x) {
    call->words[0] = opd_value_str("isend");
    call->words[1] = opd_value_str("irecv");
    call->pairs[0] = (rank_here + 1) % size_here;
    call->pairs[1] = (rank_here + size_here - 1) % size_here;
    call->tensors[0][0] = x;
    call->tensors[0][1] = opd_zeros_like(x);
    call->ints[0] = call->ints[1] = 0;
    call->args[0] = opd_value_list(call->words, 2);
    call->args[1] = opd_value_ints(call->pairs, 2);
    call->args[2] = opd_value_ints(call->ints, 2);
    call->args[3] = opd_value_tensors(call->tensors[0], 2);
    call->args[4] = opd_value_str("world");
    return 5;
}
/* Fills in the arguments.  Returns their number. */
static int walk_arguments(walk_call *call, const opd_op *op, opd_tensor *x) {
    const opd_schema *const schema = opd_op_schema(op);
    const walk_line *const line = call->line;
    int count = 0;
    if (line->result == WALK_PAIRS) { return walk_pairs_arguments(call, x); }
    const char *const name = opd_op_name(op);
    if (line->written && strncmp(name, "c10d::", 6) == 0) {
        call->args[count++] = walk_tensors(call, 0, line->written, line->given ? NULL : opd_clone(x));
    }
    if (line->given) {
        const bool writes = name[strlen(name) - 1] == '_' || line->result == WALK_TAKEN;
        call->args[count++] = walk_tensors(call, 1, line->given, writes && !line->written ? opd_clone(x) : x);
    }
    for (; count < opd_schema_nargs(schema); count++) {
        const char *const arg = opd_schema_arg_name(schema, count);
        if (strcmp(arg, "async_op") == 0) { break; }
        call->args[count] = strcmp(arg, "out") == 0 ? opd_value_tensor(walk_room(line->written, x))
            : walk_argument(call, arg);
    }
    return count;
}
/* Returns all elements of the tensors in some values as one row. */
static opd_tensor *walk_row(const opd_value *values, int count) {
    opd_tensor *parts[WALK_RANKS];
    int n = 0;
    for (int i = 0; i < count; i++) {
        const opd_value *const value = &values[i];
        if (value->tag == OPD_TAG_TENSOR) { parts[n++] = opd_reshape(value->u.t, OPD_INTS(-1)); }
        for (int k = 0; value->tag == OPD_TAG_TENSORS && k < value->n; k++) {
            parts[n++] = opd_reshape(value->u.tensors[k], OPD_INTS(-1));
        }
        for (int k = 0; value->tag == OPD_TAG_LIST && k < value->n; k++) { parts[n++] = walk_row(value->u.list + k, 1); }
    }
    const opd_tensors list = {parts, n};
    return n == 1 ? parts[0] : n ? opd_cat(list, 0) : opd_zeros(OPD_INTS(0), OPD_FLOAT64);
}
/* Calls the operator.  Returns its results as one row. */
static int walk_fn(void *user, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    walk_call *const call = (walk_call *)user;
    opd_op *const op = opd_find(call->line->name);
    const int count = walk_arguments(call, op, inputs[0]);
    opd_value rets[2] = {opd_value_none(), opd_value_none()};
    if (opd_call_all(op, rets, call->args, count)) { return -1; }
    const bool functional = strncmp(call->line->name, "_c10d", 5) == 0;
    for (int i = 0; i < 2; i++) {
        if (rets[i].tag == OPD_TAG_OBJECT && opd_work_wait((opd_work *)rets[i].u.object)) { return -1; }
    }
    outputs[0] = functional ? walk_row(rets, 1) : call->line->result == WALK_NOTHING
        ? opd_zeros(OPD_INTS(0), OPD_FLOAT64) : walk_row(call->args, 1);
    return ninputs == 1 && outputs[0] ? 1 : -1;
}
/* Begins the transfers with neighbours that an operator needs for `examples` examples.  Returns NULL for none. */
static opd_work *walk_neighbours(const walk_line *line, int examples) {
    opd_group *const world = opd_group_find("world");
    const int next = (rank_here + 1) % size_here, last = (rank_here + size_here - 1) % size_here;
    opd_tensor *const parts[2] = {walk_numbers(rank_here), opd_mul_Scalar(walk_numbers(rank_here), OPD_V(10))};
    const opd_tensors list = {parts, examples};
    opd_tensor *const both = opd_cat(list, 0);
    const bool sends = line->result == WALK_SENT || strcmp(line->name, "c10d::send") == 0;
    return line->result == WALK_TAKEN ? opd_group_send(world, both, next, 0) : sends
        ? opd_group_recv(world, both, last, 0) : NULL;
}
static void walk_wait(opd_work *work) { if (work) { OK(opd_work_wait(work) == 0); } }

//-- expected results --------------------------------------------------------------------------------------------------

static int walk_expected(walk_result result, double *to) {
    const int n = size_here, last = (rank_here + n - 1) % n, first = rank_here == 0;
    const double sum = n * (n + 1) / 2.0;
    const bool part = result == WALK_PART || result == WALK_FIRST_PART;
    const int count = result == WALK_SENT || result == WALK_NOTHING ? 0 : part ? 2 : 2 * n *
        (result == WALK_ALL || result == WALK_ALL_AT_FIRST ? n : 1);
    for (int i = 0; i < count; i++) {
        const int at = i % (2 * n) + 1, from = i / (2 * n);
        switch (result) {
        case WALK_SUM: to[i] = sum * at; break;
        case WALK_SUM_AT_FIRST: to[i] = (first ? sum : rank_here + 1) * at; break;
        case WALK_ALL: case WALK_ALL_AT_FIRST: to[i] = (from + 1.0) * at; break;
        case WALK_PART: to[i] = sum * (2 * rank_here + at); break;
        case WALK_FIRST_PART: to[i] = 2 * rank_here + at; break;
        case WALK_TURNED: to[i] = (i / 2 + 1.0) * (2 * rank_here + i % 2 + 1); break;
        case WALK_FIRST: to[i] = at; break;
        case WALK_SAME: to[i] = (rank_here + 1.0) * at; break;
        default: to[i] = (last + 1.0) * at;       /* WALK_TAKEN, WALK_PAIRS */
        }
    }
    return count;
}
/* Returns whether a row has the expected numbers, times a factor.  Results of a gather are undefined except on its
   root. */
static bool walk_right(const walk_line *line, opd_tensor *row, double factor) {
    double expected[WALK_MOST];
    const int count = walk_expected(line->result, expected);
    if (line->result == WALK_ALL_AT_FIRST && rank_here != 0) { return row != NULL; }
    const double *const data = count ? opd_data_f64(row = opd_contiguous(row)) : NULL;
    bool right = row && opd_numel(row) == count;
    for (int i = 0; i < count && right; i++) { right = data && fabs(data[i] - factor * expected[i]) < 1e-9; }
    return right;
}
/* Calls the operator with x.  Returns whether the results are right. */
static bool walk_once(walk_call *call, opd_tensor *x) {
    opd_tensor *row = NULL;
    opd_work *const neighbours = walk_neighbours(call->line, 1);
    const int count = walk_fn(call, &x, 1, &row);
    walk_wait(neighbours);
    return count == 1 && walk_right(call->line, row, 1);
}

//-- fakes, graphs, vmap and derivatives -------------------------------------------------------------------------------

static void walk_spans(walk_call *call, opd_tensor *x) {
    int64_t count = 0, bytes = -1;
    if (opd_profiler_begin(NULL)) { OK(false); }
    OK(walk_once(call, x));
    opd_profile *const profile = opd_profiler_end();
    const opd_profile_row *const rows = opd_profile_rows(profile, &count);
    const walk_result result = call->line->result;
    const int most = result == WALK_ALL || (result == WALK_ALL_AT_FIRST && rank_here == 0) ? size_here : 1;
    const int64_t moved = strstr(call->line->name, "barrier") ? 0
        : result == WALK_FIRST_PART && rank_here != 0 ? 16 : 16 * most * size_here;
    for (int64_t i = 0; i < count; i++) {
        if (call->line->moves && strcmp(rows[i].name, call->line->moves) == 0) { bytes = rows[i].self_bytes; }
    }
    /* ranks of a checked group have memory for what they tell each other */
    const int64_t more = getenv("OPD_MPI_CHECKED") ? 1024 : 0;
    OK(call->line->moves ? bytes >= moved && bytes <= moved + more : bytes == -1);
    opd_profile_free(profile);
}
/* With fake tensors: no data is moved, sizes are right, and sums cost one operation per element. */
static void walk_fake(walk_call *call, opd_tensor *x) {
    double expected[WALK_MOST];
    const bool functional = strncmp(call->line->name, "_c10d", 5) == 0;
    const walk_result result = call->line->result;
    opd_cost *const cost = opd_cost_begin();
    opd_tensor *fake = opd_fake_tensor(x), *row = NULL;
    OK(walk_fn(call, &fake, 1, &row) == 1);
    const int64_t numel = row ? opd_numel(row) : -1;
    opd_cost_end(cost);
    OK(result == WALK_ALL_AT_FIRST || numel == walk_expected(result, expected));
    const bool sums = functional && (result == WALK_SUM || result == WALK_PART);
    OK(fabs(opd_cost_total(cost).flops - (sums ? 2 * size_here : 0)) < 1e-9);
    opd_cost_free(cost);
}
/* All ranks record a graph, rank 0 saves it (unless it contains numbers of neighbours), and all run it. */
static void walk_graph(walk_call *call, opd_tensor *x, const char *path) {
    const walk_result result = call->line->result;
    const bool own = result == WALK_SENT || result == WALK_TAKEN || result == WALK_PAIRS;
    char file[300];
    opd_tensor *row = NULL, *other = opd_mul_Scalar(x, OPD_V(3));
    (void)snprintf(file, sizeof file, "%s.%d", path, own ? rank_here : 0);
    opd_work *neighbours = walk_neighbours(call->line, 1);
    opd_graph *const graph = opd_graph_trace(walk_fn, call, &other, 1, NULL);
    walk_wait(neighbours);
    OK(graph && (!strstr(call->line->name, "c10d_functional::") || strchr("XSLM", call->line->given) ||
                 opd_graph_count(graph, call->line->name) == 1));
    if (own || rank_here == 0) { OK(opd_graph_save(graph, file) == 0); }
    opd_graph_free(graph);
    OK(opd_work_wait(opd_group_barrier(opd_group_find("world"))) == 0);
    opd_graph *const loaded = opd_graph_load(file);
    neighbours = walk_neighbours(call->line, 1);
    OK(opd_graph_run(loaded, &x, 1, &row, 1) == 1);
    walk_wait(neighbours);
    OK(walk_right(call->line, row, 1));
    opd_graph_free(loaded);
    OK(opd_work_wait(opd_group_barrier(opd_group_find("world"))) == 0);
    if (own || rank_here == 0) { (void)remove(file); }
}
/* Two examples of vmap, with another batch dim on every second rank; not for receives, which need contiguous memory. */
static void walk_examples(walk_call *call, opd_tensor *x) {
    const int dim = call->line->result == WALK_TAKEN || call->line->result == WALK_PAIRS ? 0 : rank_here % 2;
    opd_tensor *const rows[2] = {x, opd_mul_Scalar(x, OPD_V(10))};
    const opd_tensors list = {rows, 2};
    opd_tensor *both = opd_stack(list, dim), *out = NULL;
    const walk_result result = call->line->result;
    opd_vmap_options options;
    memset(&options, 0, sizeof options);
    options.in_dims = &dim;
    options.nin_dims = 1;
    opd_work *const neighbours = walk_neighbours(call->line, 2);
    OK(opd_vmap(walk_fn, call, &both, 1, &options, &out, 1) == 1);
    walk_wait(neighbours);
    if (!out || result == WALK_SENT) { return; }
    OK(walk_right(call->line, opd_select(out, 0, 0), 1));
    OK(walk_right(call->line, opd_select(out, 0, 1), 10));
}
/* The sum over all ranks of the products of tangents and cotangents is the same in forward mode and in reverse mode. */
static void walk_derivatives(walk_call *call, opd_tensor *x) {
    opd_tensor *y = NULL, *tangent_out = NULL, *tangent = opd_sin(opd_mul_Scalar(x, OPD_V(0.7))), *grad = NULL;
    opd_derivative *vjp = NULL;
    double sums[2] = {0, 1};
    OK(opd_jvp(walk_fn, call, &x, &tangent, 1, NULL, &y, &tangent_out, 1) == 1);
    OK(opd_vjp(walk_fn, call, &x, 1, NULL, &y, 1, &vjp) == 1);
    if (!y || !tangent_out || !vjp) { return; }
    opd_tensor *cotangent = opd_add_Scalar(opd_cos(opd_arange(OPD_V((int)opd_numel(y)), OPD_FLOAT64)),
                                           OPD_V(rank_here));
    OK(opd_derivative_call(vjp, &cotangent, 1, 0, &grad, 1) >= 0 && grad);
    if (!grad) { return; }
    sums[0] = opd_item_f64(opd_sum(opd_mul(tangent_out, cotangent)));
    sums[1] = opd_item_f64(opd_sum(opd_mul(tangent, grad)));
    const double *const all = opd_data_f64(opd_all_reduce(opd_tensor_from(sums, OPD_INTS(2), OPD_FLOAT64), "sum",
                                                          "world"));
    OK(all && fabs(all[0] - all[1]) <= 1e-9 * (1 + fabs(all[0])) && fabs(all[0]) > 1e-6);
}

//-- the walk ----------------------------------------------------------------------------------------------------------

static void walk_line_of(const walk_line *line, const char *path) {
    static const char *const reductions[] = {"sum", "avg", "product", "min", "max"};
    const bool functional = strncmp(line->name, "_c10d", 5) == 0;
    const char last = line->name[strlen(line->name) - 1];
    const bool reduces = line->result == WALK_SUM || line->result == WALK_PART;
    walk_call call;
    memset(&call, 0, sizeof call);
    call.line = line;
    call.reduce_op = "sum";
    opd_tensor *const x = walk_numbers(rank_here);
    if (line->result == WALK_REFUSED) {
        OK(!walk_once(&call, x) && strstr(opd_error_message(), "receive from a given rank"));
        opd_error_clear();
        return;
    }
    walk_spans(&call, x);
    walk_fake(&call, x);
    if (!functional) { return; }
    walk_graph(&call, x, path);
    walk_examples(&call, x);
    for (int i = 0; line->differs && i < (!reduces ? 1 : last == '_' ? 2 : 5); i++) {
        call.reduce_op = reductions[i];
        walk_derivatives(&call, x);
    }
}
static void walk(void) {
    static const char *const spaces[] = {"_c10d_functional", "_c10d_functional_autograd", "c10d"};
    char path[100];
    double number = (double)getpid();
    const double *const its = opd_data_f64(opd_broadcast(opd_tensor_from(&number, OPD_INTS(1), OPD_FLOAT64), 0,
                                                         "world"));
    const int lines = (int)(sizeof walk_lines / sizeof *walk_lines);
    int found = 0;
    if (size_here < 2 || size_here > WALK_RANKS || !its) { return; }
    (void)snprintf(path, sizeof path, "/tmp/opd_mpi_walk.%.0f", *its);
    for (const opd_op *op = opd_op_next(NULL); op; op = opd_op_next(op)) {
        const char *const name = opd_op_name(op), *const end = strstr(name, "::");
        const walk_line *line = walk_lines;
        bool there = false;
        for (int i = 0; end && i < 3; i++) {
            there = there || ((size_t)(end - name) == strlen(spaces[i]) && strncmp(name, spaces[i], strlen(spaces[i])) == 0);
        }
        if (!there) { continue; }
        while (line < walk_lines + lines && strcmp(line->name, name) != 0) { line++; }
        const int before = mistakes;
        OPD_SCOPE {
            OK(line < walk_lines + lines);
            if (line < walk_lines + lines) { walk_line_of(line, path); }
        }
        if (mistakes > before) { (void)fprintf(stderr, "rank %d: in %s\n", rank_here, name); }
        found++;
    }
    OK(found == lines);
}
#endif
