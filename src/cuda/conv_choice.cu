//== choosing a kernel =================================================================================================

struct opdi_cu_conv_call { opdi_cu_conv v; bool transposed; };
/* Reads stride, padding, dilation, transposed and groups from the arguments from number `first` on, which the Meta
   kernel has checked.  y is the result of the convolution.  Returns 0, or -1 and sets an error. */
static int opdi_cu_conv_read(opd_call *call, int first, const opd_tensor *x, const opd_tensor *w, const opd_tensor *y,
    opdi_cu_conv_call *q) {
    const opd_ints s = opd_arg_ints(call, first), p = opd_arg_ints(call, first + 1), d = opd_arg_ints(call, first + 2);
    const int nd = opd_ndim(w) - 2;
    const opd_tensor *small, *big;
    q->transposed = opd_arg_bool(call, first + 3);
    big = q->transposed ? y : x;
    small = q->transposed ? x : y;
    q->v.groups = opd_arg_int(call, first + 5);
    q->v.n = opd_size(x, 0);
    q->v.c = opd_size(big, 1);
    q->v.oc = opd_size(small, 1);
    for (int i = 0; i < 3; i++) {
        const int j = i - (3 - nd);
        const bool there = j >= 0;
        const int64_t in = there ? opd_size(big, 2 + j) : 1, out = there ? opd_size(small, 2 + j) : 1,
            k = there ? opd_size(w, 2 + j) : 1;
        const int64_t st = there ? s.data[s.n == 1 ? 0 : j] : 1, pd = there ? p.data[p.n == 1 ? 0 : j] : 0,
            di = there ? d.data[d.n == 1 ? 0 : j] : 1;
        if (in > INT32_MAX || out > INT32_MAX || k > INT32_MAX || st > INT32_MAX || pd > INT32_MAX / 4 ||
            di * k > INT32_MAX / 4) {
            return opd_fail(OPD_ERROR_ARGUMENT,
                            "a size, stride, padding or dilation is too large for a convolution on CUDA");
        }
        q->v.in[i] = (int)in; q->v.out[i] = (int)out; q->v.k[i] = (int)k;
        q->v.s[i] = (int)st; q->v.p[i] = (int)pd; q->v.d[i] = (int)di;
    }
    return 0;
}
static bool opdi_cu_wino_fits(const opdi_cu_conv *q, int what);
static int opdi_cu_wino_run(const opdi_cu_conv *q, int what, const float *from, const float *w, const float *bias,
    float *to);
static int opdi_cu_wino_gw(const opdi_cu_conv *q, const float *x, const float *gy, float *gw);
static bool opdi_cu_depthwise_fits(const opdi_cu_conv *q, int what);
template <typename T> static int opdi_cu_depthwise_run(const opdi_cu_conv *q, int what, T *x, void *w, T *y);
/* Computes y or gx, as `what` says, for contiguous tensors of one dtype.  The result must not be empty.  Returns 0, or
   -1 and sets an error. */
template <typename T> static int opdi_cu_conv_typed(const opdi_cu_conv *q, int what, opd_tensor *x, opd_tensor *w,
    opd_tensor *y) {
    T *xs = opdi_cu_data<T>(x), *ws = opdi_cu_data<T>(w), *ys = opdi_cu_data<T>(y);
    const int64_t cg = q->c / q->groups;
    cudaDataType type;
    if constexpr (!std::is_same<opdi_cu_acc<T>, int64_t>::value) {
        if (opdi_cu_depthwise_fits(q, what)) { return opdi_cu_depthwise_run<T>(q, what, xs, ws, ys); }
    }
    if ((cg < 4 && q->groups > 1) || !opdi_cu_cuda_type(opd_dtype(x), &type)) {
        return what == OPDI_CU_CONV_Y ? opdi_cu_conv_each<T, false>(*q, xs, ws, ys)
            : opdi_cu_conv_each<T, true>(*q, ys, ws, xs);
    }
    return opdi_cu_conv_columns<T>(q, what, opd_dtype(x), xs, ws, ys);
}
template <typename T> static int opdi_cu_conv_typed_gw(const opdi_cu_conv *q, opd_tensor *x, opd_tensor *w,
    opd_tensor *y) {
    T *xs = opdi_cu_data<T>(x), *ys = opdi_cu_data<T>(y);
    void *ws = opdi_cu_data<void>(w);             /* of the type in which sums are computed */
    if (q->c / q->groups >= 4 || q->groups == 1) {
        return opdi_cu_conv_columns<T>(q, OPDI_CU_CONV_GW, opd_dtype(x), xs, ws, ys);
    }
    if (opdi_cu_depthwise_fits(q, OPDI_CU_CONV_GW)) { return opdi_cu_depthwise_run<T>(q, OPDI_CU_CONV_GW, xs, ws, ys); }
    return opdi_cu_launch(opdi_cu_conv_each_gw_kernel<T>, opdi_cu_grid_rows(opd_numel(w)), dim3(256), 0, *q, xs, ys,
                          static_cast<opdi_cu_acc<T> *>(ws));
}
/* Computes y, gx or gw of a kernel of one tap as a product of the pixels' channels, for tensors in channels-last order.
   Returns 0, or -1 and sets an error. */
static int opdi_cu_conv_pixels(const opdi_cu_conv *q, int what, opd_scalar_type dtype, void *x, void *w, void *y) {
    const opdi_cu_matrix xs = {x, 0, q->c, 1}, ys = {y, 0, q->oc, 1}, yt = {y, 0, 1, q->oc}, ws = {w, 0, q->c, 1},
        wt = {w, 0, 1, q->c};
    const int64_t pixels = q->n * opdi_cu_volume(q->in);
    opdi_cu_product b;
    b.n = 1; b.out_batch = 0;
    if (what == OPDI_CU_CONV_Y) { b.m = pixels; b.k = q->c; b.p = q->oc; b.a = xs; b.b = wt; b.out = y; }
    else if (what == OPDI_CU_CONV_GX) { b.m = pixels; b.k = q->oc; b.p = q->c; b.a = ys; b.b = ws; b.out = x; }
    else { b.m = q->oc; b.k = pixels; b.p = q->c; b.a = yt; b.b = xs; b.out = w; }
    return opdi_cu_gemm(&b, dtype, dtype, 1, 0);
}
template <typename T> static int opdi_cu_conv_short(const opdi_cu_conv *q, int what, opd_tensor *x, opd_tensor *w,
    opd_tensor *y, opd_tensor *bias) {
    opd_tensor *from = what == OPDI_CU_CONV_Y ? x : y, *to = what == OPDI_CU_CONV_Y ? y : x;
    const bool x_last = opdi_cu_is_channels_last(x), y_last = opdi_cu_is_channels_last(y);
    if (opdi_cu_conv_is_product(q) && q->groups == 1 && !bias && x_last && y_last && q->c % 8 == 0 &&
        q->oc % 8 == 0) {
        return opdi_cu_conv_pixels(q, what, opd_dtype(x), opdi_cu_data<T>(x), opdi_cu_data<T>(w), opdi_cu_data<T>(y));
    }
    if (what == OPDI_CU_CONV_GW) {
        if constexpr (sizeof(T) == 2) {
            return opdi_cu_conv_gw<T>(q, opdi_cu_data<T>(x), opdi_cu_data<T>(w), opdi_cu_data<T>(y), x_last, y_last,
                                      opdi_cu_is_channels_last(w));
        }
    }
    return opdi_cu_conv_tc<T>(q, opdi_cu_data<T>(from), opdi_cu_data<T>(w), bias ? opdi_cu_data<T>(bias) : NULL,
                              opdi_cu_data<T>(to), opdi_cu_is_channels_last(from), opdi_cu_is_channels_last(to),
                              opdi_cu_is_channels_last(w), what == OPDI_CU_CONV_GX);
}
/* Adds b [c] to y [n, c, area]. */
template <typename T> __global__ void opdi_cu_bias_kernel(T *y, const T *b, int64_t c, int64_t area, int64_t all) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        opdi_cu_store(y + i, opdi_cu_load<opdi_cu_acc<T>>(y + i) + opdi_cu_load<opdi_cu_acc<T>>(b + i / area % c));
    }
}
static int opdi_cu_bias(opd_tensor *y, opd_tensor *b) {
    const int64_t c = opd_size(y, 1), all = opd_numel(y);
    if (!(b = opd_contiguous(b))) { return -1; }
    OPDI_CU_ALL(opd_dtype(y), T, return opdi_cu_launch(opdi_cu_bias_kernel<T>, opdi_cu_grid(all, 256), dim3(256), 0,
        opdi_cu_data<T>(y), opdi_cu_data<T>(b), c, all / opd_size(y, 0) / c, all))
    return -1;
}
/* Returns whether y or gx of 16-bit floats is a batch of products of tensors as they are: the kernel has one tap, x and
   y are contiguous, and their rows are multiples of 16 bytes. */
static bool opdi_cu_conv_is_direct(const opdi_cu_conv *q, int what, const opd_tensor *x, const opd_tensor *y) {
    return what != OPDI_CU_CONV_GW && opdi_cu_conv_is_product(q) && opd_dtype_size(opd_dtype(x)) == 2 &&
        opdi_cu_volume(q->in) % 8 == 0 && opd_is_contiguous(x) && opd_is_contiguous(y);
}
/* Computes the result that `what` says: y, gx (in x) or gw (in w).  The tensors may have any strides.  `bias` is added
   to y, unless it is NULL.  Returns 0, or -1 and sets an error. */
static int opdi_cu_conv_run(const opdi_cu_conv *q, int what, opd_tensor *x, opd_tensor *w, opd_tensor *y,
    opd_tensor *bias) {
    opd_tensor *to = what == OPDI_CU_CONV_Y ? y : what == OPDI_CU_CONV_GX ? x : w, *work;
    const opd_scalar_type t = opd_dtype(to);
    const bool shorter = t == OPD_FLOAT16 || t == OPD_BFLOAT16, wino = t == OPD_FLOAT32 && opdi_cu_wino_fits(q, what);
    int rc = -1;
    if (opd_numel(to) == 0) { return 0; }
    if (opd_numel(x) == 0 || opd_numel(w) == 0 || opd_numel(y) == 0) {
        work = opd_is_contiguous(to) ? to : opdi_cu_new(opd_ints_of(opd_sizes(to), opd_ndim(to)), t);
        if (!work || !opd_zero_(work) || (bias && opdi_cu_bias(work, bias))) { return -1; }
        return work == to || opd_copy_(to, work) ? 0 : -1;
    }
    if (opdi_cu_conv_tc_fits(q, what, t) && !(opdi_cu_conv_is_direct(q, what, x, y) && !bias)) {
        work = opd_is_contiguous(to) || opdi_cu_is_channels_last(to) ? to
            : opdi_cu_new(opd_ints_of(opd_sizes(to), opd_ndim(to)), t);
        x = to == x ? work : opdi_cu_is_channels_last(x) ? x : opd_contiguous(x);
        y = to == y ? work : opdi_cu_is_channels_last(y) ? y : opd_contiguous(y);
        w = to == w ? work : opdi_cu_is_channels_last(w) ? w : opd_contiguous(w);
        bias = bias ? opd_contiguous(bias) : NULL;
        if (!work || !x || !y || !w) { return -1; }
        rc = t == OPD_FLOAT16 ? opdi_cu_conv_short<opdi_cu_f16>(q, what, x, w, y, bias)
            : t == OPD_BFLOAT16 ? opdi_cu_conv_short<opdi_cu_bf16>(q, what, x, w, y, bias)
            : opdi_cu_conv_short<float>(q, what, x, w, y, bias);
        bias = NULL;
    } else if (wino || (t == OPD_FLOAT32 && opdi_cu_im_fits(q, what))) {
        work = opd_is_contiguous(to) ? to : opdi_cu_new(opd_ints_of(opd_sizes(to), opd_ndim(to)), t);
        x = to == x ? work : opd_contiguous(x);
        y = to == y ? work : opd_contiguous(y);
        w = to == w ? work : opd_contiguous(w);
        bias = bias ? opd_contiguous(bias) : NULL;
        if (!x || !y || !w || !work) { return -1; }
        float *xs = opdi_cu_data<float>(x), *ys = opdi_cu_data<float>(y), *ws = opdi_cu_data<float>(w);
        rc = what == OPDI_CU_CONV_GW ? opdi_cu_wino_gw(q, xs, ys, ws)
            : (wino ? opdi_cu_wino_run : opdi_cu_conv_im)(q, what, what == OPDI_CU_CONV_GX ? ys : xs, ws,
                                                          bias ? opdi_cu_data<float>(bias) : NULL,
                                                          what == OPDI_CU_CONV_GX ? xs : ys);
        bias = NULL;
    } else {
        const opd_scalar_type sums = what == OPDI_CU_CONV_GW && shorter ? OPD_FLOAT32 : t;
        work = opd_is_contiguous(to) && sums == t ? to : opdi_cu_new(opd_ints_of(opd_sizes(to), opd_ndim(to)), sums);
        x = to == x ? work : opd_contiguous(x);
        y = to == y ? work : opd_contiguous(y);
        w = to == w ? work : opd_contiguous(w);
        if (!x || !y || !w || !work) { return -1; }
        if (what == OPDI_CU_CONV_GW) {
            OPDI_CU_FLOATS(opd_dtype(x), T, rc = opdi_cu_conv_typed_gw<T>(q, x, w, y))
        } else { OPDI_CU_ALL(t, T, rc = opdi_cu_conv_typed<T>(q, what, x, w, y)) }
    }
    if (rc || (bias && opdi_cu_bias(work, bias))) { return -1; }
    return work == to || opd_copy_(to, work) ? 0 : -1;
}
/* Returns whether the first three arguments of a call are complex numbers of one dtype; the third may be None. */
static bool opdi_cu_conv_is_complex(const opd_call *call) {
    const opd_tensor *const first = opd_arg_tensor(call, 0);
    bool is = opd_dtype_is_complex(opd_dtype(first));
    for (int i = 1; i < 3; i++) {
        const opd_tensor *const t = opd_arg_tensor(call, i);
        is = is && (!t || opd_dtype(t) == opd_dtype(first));
    }
    return is;
}
/* Calls the operator `name` with the arguments of `call`, of which it takes the imaginary part if a bit of `imaginary`
   is set, else the real part.  Tensors whose bits of `without` are set are left out.  Returns 0, or -1 and sets an
   error. */
static int opdi_cu_conv_parts(opd_call *call, const char *name, int count, unsigned imaginary, unsigned without,
    opd_value *rets) {
    opd_value args[11];
    for (int i = 0; i < count; i++) {
        args[i] = without >> i & 1 ? opd_value_none() : opd_call_args(call)[i];
        if (i < 3 && args[i].tag == OPD_TAG_TENSOR) {
            opd_tensor *const t = args[i].u.t, *const part = imaginary >> i & 1 ? opd_imag(t) : opd_real(t);
            if (!part) { return -1; }
            args[i] = opd_value_tensor(part);
        }
    }
    return opd_call_all(opd_find(name), rets, args, count);
}
/* A convolution of complex numbers, from four of their parts. */
static int opdi_cu_complex_convolution(opd_call *call) {
    opd_value rr, ii, ri, ir;
    if (opdi_cu_conv_parts(call, "aten::convolution", 9, 0, 0, &rr) ||
        opdi_cu_conv_parts(call, "aten::convolution", 9, 3, 4, &ii) ||
        opdi_cu_conv_parts(call, "aten::convolution", 9, 6, 0, &ri) ||
        opdi_cu_conv_parts(call, "aten::convolution", 9, 1, 4, &ir)) { return -1; }
    opd_tensor *const real = opd_sub(rr.u.t, ii.u.t), *const imaginary = opd_add(ri.u.t, ir.u.t);
    return real && imaginary ? opd_return_tensor(call, opd_complex(real, imaginary)) : -1;
}
/* convolution_backward of complex numbers.  As on the CPU, the caller has conjugated input and weight.  The gradient of
   the bias is a sum of grad_output. */
static int opdi_cu_complex_convolution_backward(opd_call *call) {
    /* the arguments whose imaginary parts are taken: none; all three; input and weight; grad_output */
    static const unsigned parts[4] = {0, 7, 6, 1};
    opd_value rets[4][3];
    for (int i = 0; i < 4; i++) {
        if (opdi_cu_conv_parts(call, "aten::convolution_backward", 11, parts[i], 0, rets[i])) { return -1; }
    }
    for (int i = 0; i < 3; i++) {
        opd_tensor *real = rets[0][i].tag == OPD_TAG_TENSOR ? rets[0][i].u.t : NULL, *imaginary;
        if (!real) {
            if (opd_return_value(call, opd_value_none())) { return -1; }
            continue;
        }
        imaginary = i < 2 ? opd_add(rets[2][i].u.t, rets[3][i].u.t) : rets[1][i].u.t;
        if (i < 2) { real = opd_sub(real, rets[1][i].u.t); }
        if (!real || !imaginary || opd_return_tensor(call, opd_complex(real, imaginary))) { return -1; }
    }
    return 0;
}
static int opdi_cu_convolution(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *w = opd_arg_tensor(call, 1), *bias = opd_arg_tensor(call, 2), *y;
    opdi_cu_conv_call q;
    if (opdi_cu_conv_is_complex(call)) { return opdi_cu_complex_convolution(call); }
    if (opd_results_from_fake(call)) { return -1; }
    y = opdi_cu_result(call, 0);
    if (opdi_cu_conv_read(call, 3, x, w, y, &q)) { return -1; }
    return opdi_cu_conv_run(&q.v, q.transposed ? OPDI_CU_CONV_GX : OPDI_CU_CONV_Y, q.transposed ? y : x, w,
        q.transposed ? x : y, bias);
}
static int opdi_cu_convolution_backward(opd_call *call) {
    opd_tensor *g = opd_arg_tensor(call, 0), *x = opd_arg_tensor(call, 1), *w = opd_arg_tensor(call, 2);
    opd_tensor *gx, *gw, *gb;
    opdi_cu_conv_call q;
    if (opdi_cu_conv_is_complex(call)) { return opdi_cu_complex_convolution_backward(call); }
    if (opd_results_from_fake(call)) { return -1; }
    gx = opdi_cu_result(call, 0); gw = opdi_cu_result(call, 1); gb = opdi_cu_result(call, 2);
    if (opdi_cu_conv_read(call, 4, x, w, g, &q)) { return -1; }
    /* tensor cores read gy in channels-last order, for both gradients: it is turned once */
    if (gx && gw && !q.transposed && opd_dtype_size(opd_dtype(g)) == 2 && q.v.groups == 1 && q.v.oc % 8 == 0 &&
        opd_ndim(g) > 3 && opd_numel(g) && opd_numel(x) && !opdi_cu_conv_is_direct(&q.v, OPDI_CU_CONV_GX, gx, g) &&
        opdi_cu_conv_tc_fits(&q.v, OPDI_CU_CONV_GX, opd_dtype(g)) &&
        opdi_cu_conv_tc_fits(&q.v, OPDI_CU_CONV_GW, opd_dtype(g))) {
        g = opdi_cu_as_last(g, opd_dtype(g), true);
        if (!g) { return -1; }
    }
    if (gx && opdi_cu_conv_run(&q.v, q.transposed ? OPDI_CU_CONV_Y : OPDI_CU_CONV_GX, q.transposed ? g : gx, w,
        q.transposed ? gx : g, NULL)) {
        return -1;
    }
    if (gw && opdi_cu_conv_run(&q.v, OPDI_CU_CONV_GW, q.transposed ? g : x, gw, q.transposed ? x : g, NULL)) {
        return -1;
    }
    if (gb && opd_numel(gb)) {
        int64_t dims[5];
        int n = 0;
        for (int d = 0; d < opd_ndim(g); d++) { if (d != 1) { dims[n++] = d; } }
        opd_tensor *sum = opd_size(g, 1) ? opd_sum_dim(g, opd_ints_of(dims, n), false) : NULL;
        if (opd_size(g, 1) ? !sum || !opd_copy_(gb, sum) : !opd_zero_(gb)) { return -1; }
    }
    return 0;
}

static const opdi_cu_registration opdi_cu_table_convolution[] = {
    {"convolution", opdi_cu_convolution}, {"convolution_backward", opdi_cu_convolution_backward},
    {NULL, NULL}};

