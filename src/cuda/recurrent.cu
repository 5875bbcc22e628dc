//----------------------------------------------------------------------------------------------------------------------
//  >>cu:recurrent   cells of recurrent layers
//
//  A step of an lstm or gru, after the products: one kernel for the activations of all gates and the new state, and one
//  for their gradients.  A thread computes one element of the state.  Numbers are computed in float (double for
//  float64), and rounded once.
//----------------------------------------------------------------------------------------------------------------------

static __device__ __forceinline__ float opdi_cu_squashed(float x) { return 1.0f / (1.0f + expf(-x)); }
static __device__ __forceinline__ double opdi_cu_squashed(double x) { return 1.0 / (1.0 + exp(-x)); }
static __device__ __forceinline__ float opdi_cu_hyperbolic(float x) { return tanhf(x); }
static __device__ __forceinline__ double opdi_cu_hyperbolic(double x) { return tanh(x); }

/* The tensors of a cell, all contiguous.  n: number of elements of a state, B * H; size: H.  bias[0] and bias[1] may be
   NULL. */
template <typename T> struct opdi_cu_cell {
    int64_t n, size;
    const T *gates[2], *bias[2], *state;          /* gates: [B, parts * H]; state: [B, H] */
    T *h, *c, *acts;                              /* c: only for an lstm; acts: what the backward pass reads */
    /* Returns the sum that gives part `part` of the gates, for element j of the row that begins at `row`. */
    template <typename A> __device__ __forceinline__ A sum(int which, int64_t row, int64_t j, int part) const {
        const int64_t at = part * size + j;
        return opdi_cu_load<A>(gates[which] + row + at) + (bias[which] ? opdi_cu_load<A>(bias[which] + at) : A(0));
    }
};
template <typename T> struct opdi_cu_lstm_forward {
    opdi_cu_cell<T> of;
    __device__ void operator()(int64_t i) const {
        typedef opdi_cu_acc<T> A;
        int64_t j;
        const int64_t row = opdi_cu_divide(i, of.size, &j) * of.size * 4;
        A x[4];
        OPDI_CU_UNROLL
        for (int k = 0; k < 4; k++) { x[k] = of.template sum<A>(0, row, j, k) + of.template sum<A>(1, row, j, k); }
        const A before = opdi_cu_load<A>(of.state + i);
        OPDI_CU_UNROLL
        for (int k = 0; k < 4; k++) { x[k] = k == 2 ? opdi_cu_hyperbolic(x[k]) : opdi_cu_squashed(x[k]); }
        const A c = x[1] * before + x[0] * x[2];
        opdi_cu_store(of.c + i, c);
        opdi_cu_store(of.h + i, x[3] * opdi_cu_hyperbolic(c));
        OPDI_CU_UNROLL
        for (int k = 0; k < 4; k++) { opdi_cu_store(of.acts + row + k * of.size + j, x[k]); }
    }
};
/* The gradients of an lstm's cell.  h and c: the gradients of its results, which may be NULL. */
template <typename T> struct opdi_cu_lstm_backward {
    int64_t size;
    const T *h, *c, *before, *after, *acts;
    T *gates, *state;
    __device__ void operator()(int64_t i) const {
        typedef opdi_cu_acc<T> A;
        int64_t j;
        const int64_t row = opdi_cu_divide(i, size, &j) * size * 4;
        A x[4];
        OPDI_CU_UNROLL
        for (int k = 0; k < 4; k++) { x[k] = opdi_cu_load<A>(acts + row + k * size + j); }
        const A was = opdi_cu_load<A>(before + i), t = opdi_cu_hyperbolic(opdi_cu_load<A>(after + i));
        const A d = h ? opdi_cu_load<A>(h + i) : A(0);
        const A e = (c ? opdi_cu_load<A>(c + i) : A(0)) + d * x[3] * (1 - t * t);
        opdi_cu_store(gates + row + j, e * x[2] * (x[0] * (1 - x[0])));
        opdi_cu_store(gates + row + size + j, e * was * (x[1] * (1 - x[1])));
        opdi_cu_store(gates + row + 2 * size + j, e * x[0] * (1 - x[2] * x[2]));
        opdi_cu_store(gates + row + 3 * size + j, d * t * (x[3] * (1 - x[3])));
        opdi_cu_store(state + i, e * x[1]);
    }
};
template <typename T> struct opdi_cu_gru_forward {
    opdi_cu_cell<T> of;
    __device__ void operator()(int64_t i) const {
        typedef opdi_cu_acc<T> A;
        int64_t j;
        const int64_t b = opdi_cu_divide(i, of.size, &j), row = b * of.size * 3, to = b * of.size * 5 + j;
        const A r = opdi_cu_squashed(of.template sum<A>(0, row, j, 0) + of.template sum<A>(1, row, j, 0));
        const A z = opdi_cu_squashed(of.template sum<A>(0, row, j, 1) + of.template sum<A>(1, row, j, 1));
        const A m = of.template sum<A>(1, row, j, 2), h = opdi_cu_load<A>(of.state + i);
        const A n = opdi_cu_hyperbolic(of.template sum<A>(0, row, j, 2) + r * m);
        opdi_cu_store(of.h + i, (h - n) * z + n);
        opdi_cu_store(of.acts + to, r);
        opdi_cu_store(of.acts + to + of.size, z);
        opdi_cu_store(of.acts + to + 2 * of.size, n);
        opdi_cu_store(of.acts + to + 3 * of.size, h);
        opdi_cu_store(of.acts + to + 4 * of.size, m);
    }
};
template <typename T> struct opdi_cu_gru_backward {
    int64_t size;
    const T *grad, *acts;
    T *gates[2], *state;
    __device__ void operator()(int64_t i) const {
        typedef opdi_cu_acc<T> A;
        int64_t j;
        const int64_t b = opdi_cu_divide(i, size, &j), to = b * size * 3 + j;
        const T *p = acts + b * size * 5 + j;
        const A r = opdi_cu_load<A>(p), z = opdi_cu_load<A>(p + size), n = opdi_cu_load<A>(p + 2 * size);
        const A h = opdi_cu_load<A>(p + 3 * size), m = opdi_cu_load<A>(p + 4 * size), d = opdi_cu_load<A>(grad + i);
        const A fresh = d * (1 - z) * (1 - n * n), keep = d * (h - n) * (z * (1 - z));
        const A reset = fresh * m * (r * (1 - r));
        opdi_cu_store(gates[0] + to, reset);
        opdi_cu_store(gates[0] + to + size, keep);
        opdi_cu_store(gates[0] + to + 2 * size, fresh);
        opdi_cu_store(gates[1] + to, reset);
        opdi_cu_store(gates[1] + to + size, keep);
        opdi_cu_store(gates[1] + to + 2 * size, fresh * r);
        opdi_cu_store(state + i, d * z);
    }
};
/* Returns whether t is a tensor [rows, columns] with the dtype of `like`. */
static bool opdi_cu_cell_is(const opd_tensor *t, const opd_tensor *like, int64_t rows, int64_t columns) {
    return t && opd_ndim(t) == 2 && opd_size(t, 0) == rows && opd_size(t, 1) == columns &&
        opd_dtype(t) == opd_dtype(like) && opd_tensor_device(t).type == OPD_CUDA;
}
/* Runs an operator that a kernel here does not serve, as on other devices, which also reports wrong arguments. */
static int opdi_cu_cell_other(opd_call *call) { return opd_op_card(opd_call_operator(call))->any(call); }
static opd_tensor *opdi_cu_cell_new(const opd_tensor *like, int64_t rows, int64_t columns) {
    const int64_t sizes[2] = {rows, columns};
    return opdi_cu_new(opd_ints_of(sizes, 2), opd_dtype(like));
}
/* Runs the forward pass of a cell with `parts` parts of gates: 4 for an lstm, 3 for a gru. */
static int opdi_cu_cell_forward(opd_call *call, int parts) {
    opd_tensor *in[5], *out[3] = {NULL, NULL, NULL}, *s = opd_arg_tensor(call, 2);
    const bool lstm = parts == 4;
    const int64_t rows = opd_ndim(s) == 2 ? opd_size(s, 0) : 0, size = opd_ndim(s) == 2 ? opd_size(s, 1) : 0;
    bool fits = opd_ndim(s) == 2 && opd_dtype_is_floating(opd_dtype(s)) && opd_numel(s) > 0;
    for (int i = 0; i < 5; i++) {
        in[i] = opd_arg_tensor(call, i);
        fits = fits && (i < 2 ? opdi_cu_cell_is(in[i], s, rows, parts * size) : i == 2 || !in[i] ||
                        (opd_ndim(in[i]) == 1 && opd_numel(in[i]) == parts * size && opd_dtype(in[i]) == opd_dtype(s)));
    }
    if (!fits) { return opdi_cu_cell_other(call); }
    for (int i = 0; i < 5; i++) { if (in[i] && !(in[i] = opdi_cu_as(in[i], opd_dtype(s)))) { return -1; } }
    out[0] = opdi_cu_cell_new(s, rows, size);
    out[1] = lstm ? opdi_cu_cell_new(s, rows, size) : NULL;
    out[2] = opdi_cu_cell_new(s, rows, lstm ? 4 * size : 5 * size);
    if (!out[0] || !out[2] || (lstm && !out[1])) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(s), T, {
        opdi_cu_cell<T> of;
        of.n = opd_numel(s); of.size = size; of.state = opdi_cu_data<T>(in[2]);
        for (int i = 0; i < 2; i++) {
            of.gates[i] = opdi_cu_data<T>(in[i]);
            of.bias[i] = in[3 + i] ? opdi_cu_data<T>(in[3 + i]) : NULL;
        }
        of.h = opdi_cu_data<T>(out[0]); of.c = lstm ? opdi_cu_data<T>(out[1]) : NULL;
        of.acts = opdi_cu_data<T>(out[2]);
        const opdi_cu_lstm_forward<T> f = {of};
        const opdi_cu_gru_forward<T> g = {of};
        if (lstm ? opdi_cu_each(of.n, f) : opdi_cu_each(of.n, g)) { return -1; }
    })
    for (int i = 0; i < 3; i++) { if (out[i] && opd_return_tensor(call, out[i])) { return -1; } }
    return 0;
}
static int opdi_cu_lstm_cell(opd_call *call) { return opdi_cu_cell_forward(call, 4); }
static int opdi_cu_gru_cell(opd_call *call) { return opdi_cu_cell_forward(call, 3); }
/* Returns the sum over the rows of `grad` as the call's next result, or nothing unless `wanted`. */
static int opdi_cu_cell_bias(opd_call *call, opd_tensor *grad, bool wanted) {
    const int64_t dim = 0;
    return wanted ? opd_return_tensor(call, opd_sum_dim(grad, opd_ints_of(&dim, 1), false))
        : opd_return_value(call, opd_value_none());
}
static int opdi_cu_lstm_cell_backward(opd_call *call) {
    opd_tensor *in[5], *c = opd_arg_tensor(call, 2);
    const int64_t rows = opd_ndim(c) == 2 ? opd_size(c, 0) : 0, size = opd_ndim(c) == 2 ? opd_size(c, 1) : 0;
    bool fits = opd_ndim(c) == 2 && opd_dtype_is_floating(opd_dtype(c)) && opd_numel(c) > 0;
    for (int i = 0; i < 5; i++) {
        in[i] = opd_arg_tensor(call, i);
        fits = fits && ((i < 2 && !in[i]) || opdi_cu_cell_is(in[i], c, rows, i == 4 ? 4 * size : size));
    }
    if (!fits || (!in[0] && !in[1])) { return opdi_cu_cell_other(call); }
    for (int i = 0; i < 5; i++) { if (in[i] && !(in[i] = opdi_cu_as(in[i], opd_dtype(c)))) { return -1; } }
    opd_tensor *const gates = opdi_cu_cell_new(c, rows, 4 * size), *const state = opdi_cu_cell_new(c, rows, size);
    if (!gates || !state) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(c), T, {
        const opdi_cu_lstm_backward<T> f = {size, in[0] ? opdi_cu_data<T>(in[0]) : NULL,
            in[1] ? opdi_cu_data<T>(in[1]) : NULL, opdi_cu_data<T>(in[2]), opdi_cu_data<T>(in[3]),
            opdi_cu_data<T>(in[4]), opdi_cu_data<T>(gates), opdi_cu_data<T>(state)};
        if (opdi_cu_each(opd_numel(c), f)) { return -1; }
    })
    if (opd_return_tensor(call, gates) || opd_return_tensor(call, state)) { return -1; }
    return opdi_cu_cell_bias(call, gates, opd_arg_bool(call, 5));
}
static int opdi_cu_gru_cell_backward(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *acts = opd_arg_tensor(call, 1), *out[3];
    const bool bias = opd_arg_bool(call, 2);
    if (opd_ndim(grad) != 2 || !opd_dtype_is_floating(opd_dtype(grad)) || opd_numel(grad) == 0 ||
        !opdi_cu_cell_is(acts, grad, opd_size(grad, 0), 5 * opd_size(grad, 1))) { return opdi_cu_cell_other(call); }
    const int64_t rows = opd_size(grad, 0), size = opd_size(grad, 1);
    grad = opdi_cu_as(grad, opd_dtype(acts));
    acts = opdi_cu_as(acts, opd_dtype(acts));
    if (!grad || !acts) { return -1; }
    for (int i = 0; i < 3; i++) { out[i] = opdi_cu_cell_new(acts, rows, i < 2 ? 3 * size : size); }
    if (!out[0] || !out[1] || !out[2]) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(acts), T, {
        const opdi_cu_gru_backward<T> f = {size, opdi_cu_data<T>(grad), opdi_cu_data<T>(acts),
            {opdi_cu_data<T>(out[0]), opdi_cu_data<T>(out[1])}, opdi_cu_data<T>(out[2])};
        if (opdi_cu_each(rows * size, f)) { return -1; }
    })
    for (int i = 0; i < 3; i++) { if (opd_return_tensor(call, out[i])) { return -1; } }
    return opdi_cu_cell_bias(call, out[0], bias) || opdi_cu_cell_bias(call, out[1], bias) ? -1 : 0;
}
static const opdi_cu_registration opdi_cu_table_recurrent[] = {
    {"_thnn_fused_lstm_cell", opdi_cu_lstm_cell},
    {"_thnn_fused_lstm_cell_backward_impl", opdi_cu_lstm_cell_backward},
    {"_thnn_fused_gru_cell", opdi_cu_gru_cell}, {"_thnn_fused_gru_cell_backward", opdi_cu_gru_cell_backward},
    {NULL, NULL}};

