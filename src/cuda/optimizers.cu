//----------------------------------------------------------------------------------------------------------------------
//  >>cu:optimizers  steps of optimizers
//
//  A list of tensors is processed in few launches, as in >>cu:lists.  Numbers on the device (steps, scales, learning
//  rates) are read there, so that a step does not wait for them and can be captured.
//----------------------------------------------------------------------------------------------------------------------

enum { OPDI_CU_STEP_TENSORS = 160, OPDI_CU_STEP_OPERANDS = 5, OPDI_CU_STEP_PIECE = 16384, OPDI_CU_STEP_THREADS = 256 };
/* A number: if `at` is NULL, `value`, otherwise the number at this address on the device. */
struct opdi_cu_scalar {
    const void *at;
    bool wide;                                    /* the number at `at` is float64, otherwise float32 */
    double value;
    __device__ double get() const { return !at ? value : wide ? *(const double *)at : *(const float *)at; }
};
struct opdi_cu_step_table {
    void *p[OPDI_CU_STEP_OPERANDS][OPDI_CU_STEP_TENSORS];
    opdi_cu_scalar step[OPDI_CU_STEP_TENSORS];
    int64_t numel[OPDI_CU_STEP_TENSORS];
    int32_t first[OPDI_CU_STEP_TENSORS + 1];      /* number of each tensor's first block */
    int32_t n;
};
static int opdi_cu_scalar_of(opdi_cu_scalar *s, opd_value v) {
    opd_tensor *t = v.tag == OPD_TAG_TENSOR ? v.u.t : NULL;
    s->at = NULL; s->wide = false;
    s->value = v.tag == OPD_TAG_FLOAT ? v.u.d : v.tag == OPD_TAG_TENSOR ? 0 : (double)v.u.i;
    if (!t) { return 0; }
    if (opd_tensor_device(t).type != OPD_CUDA) { s->value = opd_item_f64(t); return opd_ok() ? 0 : -1; }
    if (opd_dtype(t) != OPD_FLOAT32) { t = opd_to_dtype(t, OPD_FLOAT64); }
    s->wide = opd_dtype(t) == OPD_FLOAT64;
    s->at = t ? opdi_cu_data<void>(t) : NULL;
    return s->at ? 0 : -1;
}
/* Calls S::apply for each element of the tensors.  An element has `operands` values, of which S::apply changes the
   first `written` (and all, if s.back() is true).  A thread of each block calls S::begin, which reads the tensor's step
   count and returns numbers that all threads of the block use. */
template <class T, class S> __global__ void opdi_cu_step_kernel(opdi_cu_step_table table, S s) {
    typedef opdi_cu_acc<T> A;
    enum { N = 16 / sizeof(T), K = S::operands };
    __shared__ __align__(16) unsigned char scratch[sizeof(typename S::numbers)];
    typename S::numbers *shared = reinterpret_cast<typename S::numbers *>(scratch);
    const int low = opdi_cu_list_at(table.first, table.n, (int)blockIdx.x);
    if (threadIdx.x == 0) { *shared = s.begin(table.step[low]); }
    __syncthreads();
    const typename S::numbers q = *shared;
    const int64_t from = (int64_t)((int)blockIdx.x - table.first[low]) * OPDI_CU_STEP_PIECE;
    int64_t n = table.numel[low] - from, i = threadIdx.x, whole = 0;
    T *p[K];
    uintptr_t all = 0;
    if (q.skip) { return; }
    n = n < OPDI_CU_STEP_PIECE ? n : (int64_t)OPDI_CU_STEP_PIECE;
    for (int k = 0; k < K; k++) { p[k] = (T *)table.p[k][low] + from; all |= (uintptr_t)p[k]; }
    if (all % 16 == 0) {
        whole = n / N * N;
        for (i = (int64_t)threadIdx.x * N; i < whole; i += (int64_t)blockDim.x * N) {
            opdi_cu_vector<T, N> v[K];
            for (int k = 0; k < K; k++) { v[k] = opdi_cu_load_vector<N>(p[k] + i); }
            for (int j = 0; j < N; j++) {
                A a[K];
                for (int k = 0; k < K; k++) { a[k] = opdi_cu_cast<A>(v[k].at[j]); }
                s.apply(a, q);
                for (int k = 0; k < K; k++) { v[k].at[j] = opdi_cu_cast<T>(a[k]); }
            }
            for (int k = 0; k < K; k++) { if (k < S::written || s.back()) { opdi_cu_store_vector<N>(p[k] + i, v[k]); } }
        }
        i = whole + threadIdx.x;
    }
    for (; i < n; i += blockDim.x) {
        A a[K];
        for (int k = 0; k < K; k++) { a[k] = opdi_cu_load<A>(p[k] + i); }
        s.apply(a, q);
        for (int k = 0; k < K; k++) { if (k < S::written || s.back()) { opdi_cu_store(p[k] + i, a[k]); } }
    }
}
/* A table that is being filled, and the tensors: `own` as they were given, `row` as the kernel uses them (copies, if
   the layouts differ). */
typedef struct opdi_cu_steps {
    opdi_cu_step_table table;
    opd_tensor *own[OPDI_CU_STEP_OPERANDS][OPDI_CU_STEP_TENSORS], *row[OPDI_CU_STEP_OPERANDS][OPDI_CU_STEP_TENSORS];
    opd_scalar_type dtype;
} opdi_cu_steps;
template <class S> static int opdi_cu_steps_flush(opdi_cu_steps *b, const S &s) {
    const int n = b->table.n, operands = S::operands;
    if (n == 0) { return 0; }
    if (b->table.first[n] > 0) {
        OPDI_CU_FLOATS(b->dtype, T, {
            if (opdi_cu_launch(opdi_cu_step_kernel<T, S>, (unsigned)b->table.first[n], OPDI_CU_STEP_THREADS, 0,
                               b->table, s)) {
                return -1;
            }
        })
    }
    for (int k = 0; k < operands; k++) {
        for (int i = 0; i < n; i++) {
            if (b->row[k][i] != b->own[k][i] && !opd_copy_(b->own[k][i], b->row[k][i])) { return -1; }
        }
    }
    b->table.n = 0;
    return 0;
}
/* Adds a parameter to the table: its operands t, and its step count, or NULL.  Runs the table first if it is full or
   has another dtype.  Returns 0, or -1 and sets an error. */
template <class S> static int opdi_cu_steps_add(opdi_cu_steps *b, const S &s, opd_tensor *const *t, opd_tensor *step) {
    const opd_scalar_type dtype = opd_dtype(t[0]);
    const int operands = S::operands;
    bool alike = opdi_cu_dense(t[0]);
    int k, i;
    if ((b->table.n == OPDI_CU_STEP_TENSORS || (b->table.n && b->dtype != dtype)) && opdi_cu_steps_flush(b, s)) {
        return -1;
    }
    i = b->table.n;
    b->dtype = dtype;
    for (k = 1; k < operands; k++) {
        for (int d = 0; d < opd_ndim(t[0]); d++) { alike = alike && opd_strides(t[k])[d] == opd_strides(t[0])[d]; }
    }
    for (k = 0; k < operands; k++) {
        b->own[k][i] = t[k];
        b->row[k][i] = alike ? t[k] : opdi_cu_as(t[k], dtype);
        b->table.p[k][i] = b->row[k][i] ? opdi_cu_data<void>(b->row[k][i]) : NULL;
    }
    if (opdi_cu_scalar_of(&b->table.step[i], opd_value_tensor(step))) { return -1; }
    b->table.numel[i] = opd_numel(t[0]);
    if (i == 0) { b->table.first[0] = 0; }
    b->table.first[i + 1] = b->table.first[i] + (int32_t)opdi_cu_ceil(opd_numel(t[0]), OPDI_CU_STEP_PIECE);
    b->table.n++;
    return opd_ok() ? 0 : -1;
}

/* The operands are x, m, v, the maximum of v (if amsgrad), and g. */
template <bool amsgrad> struct opdi_cu_adam {
    enum { operands = amsgrad ? 5 : 4, written = amsgrad ? 4 : 3 };
    struct numbers { double decay, step, scale, grad_scale; bool skip; };
    double sign, l2, beta1, beta2, eps, weight_decay;
    opdi_cu_scalar lr, grad_scale, found;
    bool decoupled, scaled;
    __device__ bool back() const { return scaled; }
    __device__ numbers begin(const opdi_cu_scalar &at) const {
        numbers q;
        const double step = at.get(), rate = lr.get();
        q.decay = decoupled ? 1 - rate * weight_decay : 1;
        q.step = rate / (1 - pow(beta1, step));
        q.scale = 1 / sqrt(1 - pow(beta2, step));
        q.grad_scale = grad_scale.get();
        q.skip = found.get() == 1;
        return q;
    }
    static __device__ float root(float x) { return sqrtf(x); }
    static __device__ double root(double x) { return sqrt(x); }
    /* Computes g = sign * g + l2 * x;  m += (g - m) * (1 - beta1);  v = beta2 * v + (1 - beta2) * g * g;
       x = decay * x - step * m / (scale * sqrt(v) + eps). */
    template <class A> __device__ void apply(A *a, const numbers &q) const {
        A *last = a + operands - 1, g, w;
        if (scaled) { *last = *last / (A)q.grad_scale; }
        g = *last * (A)sign;
        if (l2 != 0) { g = g + a[0] * (A)l2; }
        a[1] = a[1] + (g - a[1]) * (A)(1 - beta1);
        w = a[2] = a[2] * (A)beta2 + g * g * (A)(1 - beta2);
        if (amsgrad) { w = a[3] = w > a[3] ? w : a[3]; }
        a[0] = a[0] * (A)q.decay - a[1] * (A)q.step / (root(w) * (A)q.scale + (A)eps);
    }
};
/* The operands are x, b (if `buffer`), and g. */
template <bool buffer> struct opdi_cu_sgd {
    enum { operands = buffer ? 3 : 2, written = buffer ? 2 : 1 };
    struct numbers { double lr, grad_scale; bool skip; };
    double sign, l2, momentum, w;
    opdi_cu_scalar lr, grad_scale, found;
    bool first, nesterov, scaled;
    __device__ bool back() const { return scaled; }
    __device__ numbers begin(const opdi_cu_scalar &) const {
        numbers q;
        q.lr = lr.get();
        q.grad_scale = grad_scale.get();
        q.skip = found.get() == 1;
        return q;
    }
    /* Computes g = sign * g + l2 * x;  b = momentum * b + w * g, or g in the first step;
       x -= lr * b or, if `nesterov` is true, x -= lr * (g + momentum * b). */
    template <class A> __device__ void apply(A *a, const numbers &q) const {
        A *last = a + operands - 1, g;
        if (scaled) { *last = *last / (A)q.grad_scale; }
        g = *last * (A)sign;
        if (l2 != 0) { g = g + a[0] * (A)l2; }
        if (buffer) {
            a[1] = first ? g : a[1] * (A)momentum + g * (A)w;
            g = nesterov ? g + a[1] * (A)momentum : a[1];
        }
        a[0] = a[0] - g * (A)q.lr;
    }
};
/* Multiplies the elements of a tensor by `scale`, and sets *found to 1 if any element is not finite. */
struct opdi_cu_unscale {
    enum { operands = 1, written = 1 };
    struct numbers { double scale; bool skip; };
    opdi_cu_scalar scale;
    void *found;
    bool wide;
    __device__ bool back() const { return false; }
    __device__ numbers begin(const opdi_cu_scalar &) const { const numbers q = {scale.get(), false}; return q; }
    template <class A> __device__ void apply(A *a, const numbers &q) const {
        if (!(a[0] - a[0] == 0)) { if (wide) { *(double *)found = 1; } else { *(float *)found = 1; } }
        a[0] = a[0] * (A)q.scale;
    }
};

/* Runs Adam or, if `decoupled` is true, AdamW.  Arguments: self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs,
   state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, grad_scale, found_inf. */
template <bool amsgrad> static int opdi_cu_adam_run(opd_call *call, bool decoupled) {
    const opd_tensors params = opd_arg_tensors(call, 0);
    opdi_cu_adam<amsgrad> s;
    opdi_cu_steps b;
    s.beta1 = opd_arg_double(call, 7); s.beta2 = opd_arg_double(call, 8); s.weight_decay = opd_arg_double(call, 9);
    s.l2 = decoupled ? 0 : s.weight_decay;
    s.eps = opd_arg_double(call, 10);
    s.sign = opd_arg_bool(call, 12) ? -1 : 1;
    s.decoupled = decoupled;
    s.scaled = !opd_arg_is_none(call, 13);
    if (opdi_cu_scalar_of(&s.lr, opd_arg_value(call, 6)) || opdi_cu_scalar_of(&s.grad_scale, opd_arg_value(call, 13)) ||
        opdi_cu_scalar_of(&s.found, opd_arg_value(call, 14))) {
        return -1;
    }
    b.table.n = 0;
    for (int64_t i = 0; i < params.n; i++) {
        opd_tensor *t[5] = {params.data[i], opd_arg_tensors(call, 2).data[i], opd_arg_tensors(call, 3).data[i]};
        if (amsgrad) { t[3] = opd_arg_tensors(call, 4).data[i]; }
        t[amsgrad ? 4 : 3] = opd_arg_tensors(call, 1).data[i];
        if (opdi_cu_steps_add(&b, s, t, opd_arg_tensors(call, 5).data[i])) { return -1; }
    }
    return opdi_cu_steps_flush(&b, s);
}
static int opdi_cu_adam_any(opd_call *call, bool decoupled) {
    if (opd_results_from_fake(call)) { return -1; }                          /* the Meta kernel checks the arguments */
    return opd_arg_bool(call, 11) ? opdi_cu_adam_run<true>(call, decoupled) : opdi_cu_adam_run<false>(call, decoupled);
}
static int opdi_cu_fused_adam_kernel(opd_call *call) { return opdi_cu_adam_any(call, false); }
static int opdi_cu_fused_adamw_kernel(opd_call *call) { return opdi_cu_adam_any(call, true); }

/* Runs SGD; `buffer` is true if there are momentum buffers.  Arguments: self, grads, momentum_buffer_list,
   weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step, grad_scale, found_inf. */
template <bool buffer> static int opdi_cu_sgd_run(opd_call *call) {
    const opd_tensors params = opd_arg_tensors(call, 0);
    opdi_cu_sgd<buffer> s;
    opdi_cu_steps b;
    s.l2 = opd_arg_double(call, 3); s.momentum = opd_arg_double(call, 4); s.w = 1 - opd_arg_double(call, 6);
    s.nesterov = opd_arg_bool(call, 7);
    s.sign = opd_arg_bool(call, 8) ? -1 : 1;
    s.first = opd_arg_bool(call, 9);
    s.scaled = !opd_arg_is_none(call, 10);
    if (opdi_cu_scalar_of(&s.lr, opd_arg_value(call, 5)) || opdi_cu_scalar_of(&s.grad_scale, opd_arg_value(call, 10)) ||
        opdi_cu_scalar_of(&s.found, opd_arg_value(call, 11))) {
        return -1;
    }
    b.table.n = 0;
    for (int64_t i = 0; i < params.n; i++) {
        opd_tensor *t[3] = {params.data[i]};
        if (buffer) { t[1] = opd_arg_tensors(call, 2).data[i]; }
        t[buffer ? 2 : 1] = opd_arg_tensors(call, 1).data[i];
        if (opdi_cu_steps_add(&b, s, t, NULL)) { return -1; }
    }
    return opdi_cu_steps_flush(&b, s);
}
static int opdi_cu_fused_sgd_kernel(opd_call *call) {
    const double momentum = opd_arg_double(call, 4);
    if (opd_results_from_fake(call)) { return -1; }
    return momentum > 0 || momentum < 0 ? opdi_cu_sgd_run<true>(call) : opdi_cu_sgd_run<false>(call);
}

/* Runs _amp_foreach_non_finite_check_and_unscale_(self, found_inf, inv_scale). */
static int opdi_cu_amp_unscale_kernel(opd_call *call) {
    const opd_tensors grads = opd_arg_tensors(call, 0);
    opd_tensor *found = opd_arg_tensor(call, 1);
    opdi_cu_unscale s;
    opdi_cu_steps b;
    if (opd_results_from_fake(call) || opdi_cu_scalar_of(&s.scale, opd_arg_value(call, 2))) { return -1; }
    s.found = opdi_cu_data<void>(found);
    s.wide = opd_dtype(found) == OPD_FLOAT64;
    b.table.n = 0;
    for (int64_t i = 0; i < grads.n; i++) {
        opd_tensor *t[1] = {grads.data[i]};
        if (opdi_cu_steps_add(&b, s, t, NULL)) { return -1; }
    }
    return opd_ok() ? opdi_cu_steps_flush(&b, s) : -1;
}
/* Multiplies the scale by `backoff` if an element was not finite.  After `interval` steps in which all elements were
   finite, multiplies the scale by `growth`, unless the result would be infinite. */
template <class T, class I> __global__ void opdi_cu_amp_update(T *scale, I *tracker, opdi_cu_scalar found, float growth,
                                                               float backoff, int64_t interval) {
    float grown = (float)*scale;
    int64_t successful = 0;
    if (found.get() > 0) { grown *= backoff; }
    else if ((successful = (int64_t)*tracker + 1) == interval) {
        successful = 0;
        if (grown * growth < INFINITY) { grown *= growth; }                  /* the scale must stay finite */
    }
    *scale = (T)grown;
    *tracker = (I)successful;
}
/* Runs _amp_update_scale_.  Arguments: self, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor,
   growth_interval. */
template <class T> static int opdi_cu_amp_update_of(opd_call *call) {
    opd_tensor *scale = opd_arg_tensor(call, 0), *tracker = opd_arg_tensor(call, 1);
    const float growth = (float)opd_arg_double(call, 3), backoff = (float)opd_arg_double(call, 4);
    opdi_cu_scalar found;
    if (opdi_cu_scalar_of(&found, opd_arg_value(call, 2))) { return -1; }
    OPDI_CU_INDEX(opd_dtype(tracker), I, return opdi_cu_launch(opdi_cu_amp_update<T, I>, 1, 1, 0,
        opdi_cu_data<T>(scale),
                                                               opdi_cu_data<I>(tracker), found, growth, backoff,
                                                               opd_arg_int(call, 5)))
}
static int opdi_cu_amp_update_kernel(opd_call *call) {
    if (opd_results_from_fake(call)) { return -1; }
    return opd_dtype(opd_arg_tensor(call, 0)) == OPD_FLOAT64 ? opdi_cu_amp_update_of<double>(call)
        : opdi_cu_amp_update_of<float>(call);
}

static const opdi_cu_registration opdi_cu_table_optimizers[] = {
    {"_fused_adam_", opdi_cu_fused_adam_kernel}, {"_fused_adam_.tensor_lr", opdi_cu_fused_adam_kernel},
    {"_fused_adamw_", opdi_cu_fused_adamw_kernel}, {"_fused_adamw_.tensor_lr", opdi_cu_fused_adamw_kernel},
    {"_fused_sgd_", opdi_cu_fused_sgd_kernel}, {"_fused_sgd_.tensor_lr", opdi_cu_fused_sgd_kernel},
    {"_amp_foreach_non_finite_check_and_unscale_", opdi_cu_amp_unscale_kernel},
    {"_amp_update_scale_", opdi_cu_amp_update_kernel},
    {NULL, NULL}};

