//== ctc_loss ==========================================================================================================
//
//  As on the CPU, a target of S labels is extended to a row of 2 S + 1 elements, with a blank before, between and after
//  its labels.  A block processes one item of the batch, time by time; its threads compute the elements of the row.
//  The gradients of elements with the same label are added by atomic additions.

template <typename A> struct opdi_cu_ctc {
    int64_t times, count, classes, blank, width;  /* sizes T, N, C; width: 2 * longest target + 1 */
    const A *probs;                               /* [T, N, C] */
    const int64_t *targets;
    const int64_t *lists;                         /* [3][N]: for each item, number of times, number of labels, and where
                                                     its target begins */
    A *loss, *alpha;                              /* loss [N], alpha [N, T, width] */
    const A *grad;                                /* backward: [N] */
    A *beta, *sums;                               /* backward: beta [N, 2, width]; sums [T, N, C], zeros at first */
    bool zero;                                    /* targets that no path spells have the gradient 0 */
    opdi_cu_guard guard;
    __device__ __forceinline__ int64_t inputs(int64_t item) const { return lists[item]; }
    __device__ __forceinline__ int64_t last(int64_t item) const { return 2 * lists[count + item]; }
    __device__ __forceinline__ int64_t label(int64_t item, int64_t place) const {
        if ((place & 1) == 0) { return blank; }
        const int64_t of = targets[lists[2 * count + item] + place / 2];
        return (uint64_t)of < (uint64_t)classes ? of : blank;
    }
    __device__ __forceinline__ A prob(int64_t time, int64_t item, int64_t of) const {
        return probs[(time * count + item) * classes + of];
    }
};
/* Returns log(e^x + e^y), or NaN if x or y is NaN. */
template <typename A> __device__ __forceinline__ A opdi_cu_ctc_add(A x, A y) {
    const A most = x > y || x != x ? x : y;
    return most == -INFINITY ? most : most + log(exp(x - most) + exp(y - most));
}
template <typename A> __global__ void __launch_bounds__(256) opdi_cu_ctc_forward(const opdi_cu_ctc<A> c) {
    for (int64_t item = blockIdx.x; item < c.count; item += gridDim.x) {
        const int64_t times = c.inputs(item), last = c.last(item);
        A *alpha = c.alpha + item * c.times * c.width;
        for (int64_t k = threadIdx.x; k < last / 2; k += blockDim.x) {
            (void)c.guard.inside(c.targets[c.lists[2 * c.count + item] + k], c.classes);
        }
        for (int64_t time = 0; time < c.times; time++) {
            A *now = alpha + time * c.width;
            const A *before = now - c.width;
            for (int64_t place = threadIdx.x; place < c.width; place += blockDim.x) {
                A sum = -INFINITY;
                if (place <= last && time < times) {
                    const int64_t label = c.label(item, place);
                    if (time == 0) { sum = place <= 1 ? A(0) : A(-INFINITY); }
                    else {
                        sum = before[place];
                        if (place > 0) { sum = opdi_cu_ctc_add(sum, before[place - 1]); }
                        if (place > 1 && c.label(item, place - 2) != label) {
                            sum = opdi_cu_ctc_add(sum, before[place - 2]);
                        }
                    }
                    sum += c.prob(time, item, label);
                }
                now[place] = sum;
            }
            __syncthreads();
        }
        if (threadIdx.x == 0) {
            const A *end = alpha + (times - 1) * c.width;
            c.loss[item] = times == 0 ? last ? A(INFINITY) : A(0)
                : last ? -opdi_cu_ctc_add(end[last], end[last - 1]) : -end[0];
        }
    }
}
/* Adds to sums, for each time and label, the share of the paths with this label, of those that spell the target. */
template <typename A> __global__ void __launch_bounds__(256, 2) opdi_cu_ctc_backward(const opdi_cu_ctc<A> c) {
    for (int64_t item = blockIdx.x; item < c.count; item += gridDim.x) {
        const int64_t last = c.last(item);
        const A cost = c.loss[item];
        if (cost == INFINITY) { continue; }       /* no path spells the target */
        for (int64_t time = c.inputs(item) - 1; time >= 0; time--) {
            const A *alpha = c.alpha + (item * c.times + time) * c.width;
            A *now = c.beta + (2 * item + (time & 1)) * c.width;
            const A *next = c.beta + (2 * item + ((time & 1) ^ 1)) * c.width;
            for (int64_t place = threadIdx.x; place <= last; place += blockDim.x) {
                const int64_t label = c.label(item, place);
                const A prob = c.prob(time, item, label);
                A sum = place >= last - 1 ? A(0) : A(-INFINITY);
                if (time < c.inputs(item) - 1) {
                    sum = next[place];
                    if (place < last) { sum = opdi_cu_ctc_add(sum, next[place + 1]); }
                    if (place < last - 1 && c.label(item, place + 2) != label) {
                        sum = opdi_cu_ctc_add(sum, next[place + 2]);
                    }
                }
                now[place] = sum + prob;
                const A both = alpha[place] + now[place];
                A *const to = c.sums + (time * c.count + item) * c.classes + label;
                if (both != -INFINITY) { opdi_cu_atomic_add(to, exp(both + cost - prob)); }
            }
            __syncthreads();
        }
    }
}
/* Replaces sums by grad * (e^log_probs - sums); by 0 from the input length of each item on; for targets that no path
   spells, by 0 or NaN; by NaN for labels whose probability is 0, as on the CPU. */
template <typename A> struct opdi_cu_ctc_slope {
    opdi_cu_ctc<A> c;
    __device__ void operator()(int64_t i) const {
        int64_t label, item;
        const int64_t time = opdi_cu_divide(opdi_cu_divide(i, c.classes, &label), c.count, &item);
        const bool lost = c.loss[item] == INFINITY;
        c.sums[i] = time >= c.inputs(item) || (lost && c.zero) ? A(0) : lost ? A(NAN)
            : c.probs[i] == -INFINITY || c.loss[item] != c.loss[item] ? A(NAN)
            : (exp(c.probs[i]) - c.sums[i]) * c.grad[item];
    }
};
/* Reads the arguments from number `from` on into *c: log_probs, targets, and the two lists of lengths.  Returns false
   if the CPU kernel should run, which reports what is wrong. */
template <typename A> static bool opdi_cu_ctc_read(opd_call *call, int from, int64_t blank, opdi_cu_ctc<A> *c) {
    opd_tensor *probs = opd_arg_tensor(call, from), *targets = opd_arg_tensor(call, from + 1);
    const opd_ints inputs = opd_arg_ints(call, from + 2), labels = opd_arg_ints(call, from + 3);
    int64_t most = 0, sum = 0;
    if (opd_ndim(probs) != 3 || (opd_dtype(targets) != OPD_INT64 && opd_dtype(targets) != OPD_INT32)) { return false; }
    c->times = opd_size(probs, 0); c->count = opd_size(probs, 1); c->classes = opd_size(probs, 2); c->blank = blank;
    const int nd = opd_ndim(targets);
    if (inputs.n != c->count || labels.n != c->count || c->count == 0 || nd < 1 || nd > 2 || blank < 0 ||
        blank >= c->classes || (nd == 2 && opd_size(targets, 0) != c->count)) { return false; }
    const int64_t room = 3 * c->count;
    opd_tensor *lists = opd_tensor_new(opd_ints_of(&room, 1), OPD_INT64);
    int64_t *to = lists ? opd_data_i64(lists) : NULL;
    for (int64_t i = 0; to && i < c->count; i++) {
        const int64_t length = labels.data[i], available = nd == 2 ? opd_size(targets, 1) : opd_numel(targets) - sum;
        if (inputs.data[i] < 0 || inputs.data[i] > c->times || length < 0 || length > available) { return false; }
        to[i] = inputs.data[i];
        to[c->count + i] = length;
        to[2 * c->count + i] = nd == 2 ? i * opd_size(targets, 1) : sum;
        sum += length;
        most = length > most ? length : most;
    }
    if (nd == 1 && sum != opd_numel(targets)) { return false; }
    c->width = 2 * most + 1;
    probs = opdi_cu_as(probs, opd_dtype(probs));
    targets = opdi_cu_as(targets, OPD_INT64);
    lists = lists ? opd_to_device(lists, opd_tensor_device(probs), OPD_INT64) : NULL;
    if (!probs || !targets || !lists) { return false; }
    c->probs = opdi_cu_data<A>(probs); c->targets = opdi_cu_data<int64_t>(targets);
    c->lists = opdi_cu_data<int64_t>(lists);
    c->guard = opdi_cu_guard_of(call);
    return opd_ok();
}
template <typename A> static int opdi_cu_ctc_run(opd_call *call) {
    opdi_cu_ctc<A> c;
    opd_tensor *loss, *alpha;
    if (!opdi_cu_ctc_read(call, 0, opd_arg_int(call, 4), &c)) { return opd_ok() ? opd_cpu_fallback(call) : -1; }
    const int64_t sizes[3] = {c.count, c.times, c.width};
    const opd_scalar_type t = opd_dtype(opd_arg_tensor(call, 0));
    loss = opdi_cu_new(opd_ints_of(sizes, 1), t);
    alpha = opdi_cu_new(opd_ints_of(sizes, 3), t);
    if (!loss || !alpha) { return -1; }
    c.loss = opdi_cu_data<A>(loss); c.alpha = opdi_cu_data<A>(alpha);
    c.grad = NULL; c.beta = c.sums = NULL; c.zero = false;
    if (opdi_cu_launch(opdi_cu_ctc_forward<A>, opdi_cu_grid_rows(c.count), dim3(256), 0, c)) { return -1; }
    return opd_return_tensor(call, loss) || opd_return_tensor(call, alpha) ? -1 : 0;
}
template <typename A> static int opdi_cu_ctc_run_back(opd_call *call) {
    opdi_cu_ctc<A> c;
    opd_tensor *grad = opd_arg_tensor(call, 0), *loss = opd_arg_tensor(call, 5), *alpha = opd_arg_tensor(call, 6);
    const opd_scalar_type t = opd_dtype(opd_arg_tensor(call, 1));
    if (!opdi_cu_ctc_read(call, 1, opd_arg_int(call, 7), &c)) { return opd_ok() ? opd_cpu_fallback(call) : -1; }
    if (opd_numel(grad) != c.count || opd_numel(loss) != c.count || opd_numel(alpha) != c.count * c.times * c.width) {
        return opd_cpu_fallback(call);
    }
    opd_tensor *out = opd_zeros_like(opd_contiguous(opd_arg_tensor(call, 1)));
    grad = opdi_cu_as(grad, t); loss = opdi_cu_as(loss, t); alpha = opdi_cu_as(alpha, t);
    c.beta = (A *)opdi_cu_scratch(c.count * 2 * c.width * (int64_t)sizeof(A));
    if (!out || !grad || !loss || !alpha || !c.beta) { return -1; }
    c.grad = opdi_cu_data<A>(grad); c.loss = opdi_cu_data<A>(loss); c.alpha = opdi_cu_data<A>(alpha);
    c.sums = opdi_cu_data<A>(out); c.zero = opd_arg_bool(call, 8);
    const opdi_cu_ctc_slope<A> f = {c};
    if (opdi_cu_launch(opdi_cu_ctc_backward<A>, opdi_cu_grid_rows(c.count), dim3(256), 0, c) ||
        opdi_cu_each(opd_numel(out), f)) { return -1; }
    return opd_return_tensor(call, out);
}
static int opdi_cu_ctc_loss(opd_call *call) {
    const opd_scalar_type t = opd_dtype(opd_arg_tensor(call, 0));
    return t == OPD_FLOAT32 ? opdi_cu_ctc_run<float>(call) : t == OPD_FLOAT64 ? opdi_cu_ctc_run<double>(call)
        : opd_cpu_fallback(call);
}
static int opdi_cu_ctc_loss_backward(opd_call *call) {
    const opd_scalar_type t = opd_dtype(opd_arg_tensor(call, 1));
    if (opd_deterministic_alert(call, NULL)) { return -1; }
    return t == OPD_FLOAT32 ? opdi_cu_ctc_run_back<float>(call) : t == OPD_FLOAT64 ? opdi_cu_ctc_run_back<double>(call)
        : opd_cpu_fallback(call);
}

//== frexp, embedding_renorm, normal with tensors ======================================================================

template <typename T> struct opdi_cu_frexp {
    const T *x;
    T *mantissa;
    int32_t *exponent;
    __device__ void operator()(int64_t i) const {
        typedef opdi_cu_acc<T> A;
        const A v = opdi_cu_load<A>(x + i);
        int power = 0;
        opdi_cu_store(mantissa + i, v - v == 0 ? (A)frexp(v, &power) : v);
        exponent[i] = power;
    }
};
static int opdi_cu_frexp_kernel(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *out[2], *staging[2];
    if (opd_results_from_fake(call)) { return -1; }
    for (int i = 0; i < 2; i++) {
        out[i] = opdi_cu_result(call, i);
        if (!(staging[i] = opdi_cu_staging(out[i]))) { return -1; }
    }
    if (!(x = opdi_cu_as(x, opd_dtype(x)))) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        const opdi_cu_frexp<T> f = {opdi_cu_data<T>(x), opdi_cu_data<T>(staging[0]), opdi_cu_data<int32_t>(staging[1])};
        if (opdi_cu_each(opd_numel(x), f)) { return -1; }
    })
    return opdi_cu_staging_store(out[0], staging[0]) || opdi_cu_staging_store(out[1], staging[1]) ? -1 : 0;
}
/* Runs embedding_renorm: reads the listed rows, scales down those whose norm is above max_norm, and writes them back.
   A row that is listed twice is written twice, with the same values. */
static int opdi_cu_embedding_renorm(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 1), *out, *rows;
    const opd_scalar_type t = opd_dtype(self);
    const int64_t dim = 1, minus = -1;
    const double most = opd_arg_double(call, 2);
    if (!opd_dtype_is_floating(t) || opd_ndim(self) != 2 ||
        (opd_dtype(index) != OPD_INT64 && opd_dtype(index) != OPD_INT32)) { return opd_cpu_fallback(call); }
    if (!(out = opd_result_update(call))) { return -1; }
    if (opd_numel(index) == 0 || opd_numel(self) == 0) { return 0; }
    index = opd_reshape(opdi_cu_as(index, OPD_INT64), opd_ints_of(&minus, 1));
    rows = index ? opd_to_dtype(opd_index_select(out, 0, index), opdi_cu_compute_dtype(t)) : NULL;
    opd_tensor *norm = rows ? opd_linalg_vector_norm_full(rows, opd_value_double(opd_arg_double(call, 3)),
                                                          opd_value_ints(&dim, 1), true, opd_value_none()) : NULL;
    opd_tensor *factor = opd_mul_Scalar(opd_reciprocal(opd_add_Scalar(norm, opd_value_double(1e-7))),
                                        opd_value_double(most));
    factor = opd_masked_fill_Scalar(factor, opd_le_Scalar(norm, opd_value_double(most)), opd_value_int(1));
    rows = opd_to_dtype(opd_mul(rows, factor), t);
    return rows && opd_index_copy_(out, 0, index, rows) ? 0 : -1;
}
struct opdi_cu_not_negative {
    const double *x;
    opdi_cu_guard guard;
    __device__ void operator()(int64_t i) const { if (!(x[i] >= 0)) { guard.note(i, i); } }
};
/* Runs normal with a tensor of means, of deviations, or both: normal numbers, as on the CPU, times std plus mean. */
static int opdi_cu_normal_tensors(opd_call *call) {
    const opd_value v[2] = {opd_arg_value(call, 0), opd_arg_value(call, 1)}, g = opd_arg_value(call, 2);
    opd_tensor *of[2] = {NULL, NULL}, *seen[2], *numbers, *std;
    int many = 0;
    for (int i = 0; i < 2; i++) {
        if (v[i].tag != OPD_TAG_TENSOR) { continue; }
        seen[many++] = of[i] = v[i].u.t;
        if (!opd_dtype_is_floating(opd_dtype(of[i])) || opd_tensor_device(of[i]).type != OPD_CUDA) {
            return opd_op_card(opd_call_operator(call))->any(call);
        }
    }
    if (!of[1] && !(v[1].u.d >= 0)) { return opd_op_card(opd_call_operator(call))->any(call); }
    const opd_tensors wide = opd_broadcast_tensors(opd_tensors_of(seen, many));
    if (wide.n != many) { return -1; }
    const opd_scalar_type t = opd_dtype(of[0] ? of[0] : of[1]);
    numbers = opdi_cu_new(opd_ints_of(opd_sizes(wide.data[0]), opd_ndim(wide.data[0])),
                          t == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32);
    numbers = numbers ? opd_normal_full_(numbers, 0, 1, g.tag == OPD_TAG_OBJECT ? (opd_generator *)g.u.object : NULL)
        : NULL;
    if (of[1] && (std = opdi_cu_as(of[1], OPD_FLOAT64))) {
        const opdi_cu_not_negative f = {opdi_cu_data<double>(std),
                                        opdi_cu_guard_of(call, "normal expects all elements of std >= 0.0")};
        if (opdi_cu_each(opd_numel(std), f)) { return -1; }
    }
    numbers = of[1] ? opd_mul(numbers, of[1]) : opd_mul_Scalar(numbers, v[1]);
    numbers = of[0] ? opd_add(numbers, of[0]) : opd_add_Scalar(numbers, v[0]);
    return opd_return_tensor(call, opd_to_dtype(numbers, t));
}
static const opdi_cu_registration opdi_cu_table_ctc[] = {
    {"_ctc_loss", opdi_cu_ctc_loss}, {"_ctc_loss_backward", opdi_cu_ctc_loss_backward},
    {"frexp.Tensor", opdi_cu_frexp_kernel}, {"embedding_renorm", opdi_cu_embedding_renorm},
    {"normal.Tensor_float", opdi_cu_normal_tensors}, {"normal.float_Tensor", opdi_cu_normal_tensors},
    {"normal.Tensor_Tensor", opdi_cu_normal_tensors},
    {NULL, NULL}};

