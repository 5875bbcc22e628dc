//----------------------------------------------------------------------------------------------------------------------
//  >>cu:lists       lists of tensors
//
//  A list of tensors is processed in few launches.  A block processes a piece of one tensor, which it finds in a table
//  that is an argument of the kernel.
//----------------------------------------------------------------------------------------------------------------------

enum { OPDI_CU_LIST = 160, OPDI_CU_LIST_PIECE = 16384, OPDI_CU_LIST_THREADS = 256 };
/* A list of up to OPDI_CU_LIST tensors, or of groups of K tensors of the same size. */
template <int K> struct opdi_cu_tensors {
    void *p[OPDI_CU_LIST][K];
    int64_t numel[OPDI_CU_LIST];
    int32_t first[OPDI_CU_LIST + 1];              /* number of each tensor's first block */
    int32_t n;
};
/* Returns the tensor of a block: the last of n whose first block is not after this block. */
__device__ __forceinline__ int opdi_cu_list_at(const int32_t *first, int n, int block) {
    int low = 0, high = n - 1;
    while (low < high) {
        const int mid = (low + high + 1) / 2;
        if (first[mid] <= block) { low = mid; } else { high = mid - 1; }
    }
    return low;
}
/* Adds a group to a list that is not full.  p[K]: the addresses of its elements. */
template <int K> static void opdi_cu_tensors_add(opdi_cu_tensors<K> *list, void *const *p, int64_t numel) {
    const int at = list->n++;
    for (int k = 0; k < K; k++) { list->p[at][k] = p[k]; }
    list->numel[at] = numel;
    if (at == 0) { list->first[0] = 0; }
    list->first[at + 1] = list->first[at] + (int32_t)opdi_cu_ceil(numel, OPDI_CU_LIST_PIECE);
}
/* Returns whether t is dense: it has each element between its first and its last in memory exactly once. */
static bool opdi_cu_dense(const opd_tensor *t) {
    int64_t have = 1;                             /* the elements of the dims that were found so far */
    if (opd_numel(t) == 0) { return true; }
    while (have < opd_numel(t)) {
        int d = 0;
        while (d < opd_ndim(t) && (opd_sizes(t)[d] == 1 || opd_strides(t)[d] != have)) { d++; }
        if (d == opd_ndim(t)) { return false; }
        have *= opd_sizes(t)[d];
    }
    return true;
}

//== pointwise formulas, gathered ======================================================================================
//
//  Between opdi_cu_gather_set(.., true) and opdi_cu_gather_set(.., false), the pointwise computations of a thread are
//  only noted if they fit (opdi_cu_gather_add).  They run as one kernel as soon as one does not fit, or anything else
//  that may depend on them happens (opdi_cu_gather_flush): another launch, a copy, an event, a change of the stream,
//  memory that is freed.  Noted computations do not depend on each other.

/* Copies, for elements of any type with the same size as the unsigned integer C. */
#define OPDI_CU_LISTED_COPY(C) \
    template <> struct opdi_cu_pointwise_formula<OPD_FORMULA_copy, C> { \
        enum { inputs = 1, heavy = 0 }; \
        static __device__ __forceinline__ C run(C x, C, C, C, C, C) { return x; } \
    };
OPDI_CU_LISTED_COPY(uint8_t)
OPDI_CU_LISTED_COPY(uint16_t)
OPDI_CU_LISTED_COPY(uint32_t)
OPDI_CU_LISTED_COPY(uint64_t)
/* The formulas that are gathered, of float32 and 16-bit floats.  Copies of the same dtype are gathered, too. */
#define OPDI_CU_LISTED(X) \
    X(add) X(add_scaled) X(sub) X(sub_scaled) X(mul) X(div) X(addcmul) X(addcdiv) X(sqrt) X(reciprocal) X(neg) X(abs) \
    X(maximum) X(minimum)
/* Operands 1 to K - 1 are inputs: a bit k of `numbers` says that input k is a number, of `ones` that it is one
   element. */
template <typename C, int K> struct opdi_cu_gathered_args {
    opdi_cu_tensors<K> list;
    opdi_cu_pointwise_numbers<C> s;
    int32_t numbers, ones;
};
template <int F, typename C, typename T> __global__ void __launch_bounds__(OPDI_CU_LIST_THREADS)
opdi_cu_gathered_kernel(const opdi_cu_gathered_args<C, opdi_cu_pointwise_formula<F, C>::inputs + 1> f) {
    typedef opdi_cu_pointwise_formula<F, C> formula;
    constexpr int N = 16 / sizeof(T), K = formula::inputs, U = K == 1 ? 4 : 2, step = OPDI_CU_LIST_THREADS * N;
    const int at = opdi_cu_list_at(f.list.first, f.list.n, (int)blockIdx.x);
    const int64_t from = (int64_t)((int)blockIdx.x - f.list.first[at]) * OPDI_CU_LIST_PIECE;
    const int64_t left = f.list.numel[at] - from;
    const int n = left < OPDI_CU_LIST_PIECE ? (int)left : (int)OPDI_CU_LIST_PIECE, numbers = f.numbers | f.ones;
    T *out = (T *)f.list.p[at][0] + from;
    const T *in[3] = {NULL, NULL, NULL};
    C s[3] = {f.s.in[0], f.s.in[1], f.s.in[2]};
    uintptr_t all = (uintptr_t)out;
    OPDI_CU_UNROLL
    for (int k = 0; k < K; k++) {
        const T *p = (const T *)f.list.p[at][k + 1];
        if (f.ones >> k & 1) { s[k] = opdi_cu_load<C>(p); }
        in[k] = numbers >> k & 1 ? NULL : p + from;
        all |= (uintptr_t)in[k];
    }
    const int whole = all % 16 == 0 ? n / N * N : 0;
    OPDI_CU_ROLLED
    for (int i = (int)threadIdx.x * N; i < whole; i += step * U) {
        const int runs = whole - i >= step * U ? U : (whole - i - N) / step + 1;
        opdi_cu_vector<T, N> x[U], y[U], z[U];
        opdi_cu_pointwise_fetch<N, U>(x, in[0], i, step, runs);
        if (K > 1) { opdi_cu_pointwise_fetch<N, U>(y, in[1], i, step, runs); }
        if (K > 2) { opdi_cu_pointwise_fetch<N, U>(z, in[2], i, step, runs); }
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) {
            opdi_cu_vector<T, N> r;
            OPDI_CU_UNROLL
            for (int j = 0; j < N; j++) {
                const C a = opdi_cu_pointwise_taken(x[u], j, numbers & 1, s[0]);
                const C b = K > 1 ? opdi_cu_pointwise_taken(y[u], j, numbers & 2, s[1]) : a;
                const C c = K > 2 ? opdi_cu_pointwise_taken(z[u], j, numbers & 4, s[2]) : a;
                r.at[j] = opdi_cu_cast<T>(formula::run(a, b, c, f.s.a, f.s.b, f.s.c));
            }
            if (u < runs) { opdi_cu_store_vector<N>(out + i + u * step, r); }
        }
    }
    for (int i = whole + (int)threadIdx.x; i < n; i += OPDI_CU_LIST_THREADS) {
        const C a = in[0] ? opdi_cu_load<C>(in[0] + i) : s[0];
        const C b = K > 1 ? (in[1] ? opdi_cu_load<C>(in[1] + i) : s[1]) : a;
        const C c = K > 2 ? (in[2] ? opdi_cu_load<C>(in[2] + i) : s[2]) : a;
        opdi_cu_store(out + i, formula::run(a, b, c, f.s.a, f.s.b, f.s.c));
    }
}
/* The noted computations of a thread: n times one formula, with the same dtypes and numbers. */
struct opdi_cu_gathered {
    int depth, device, formula, noperands, n;
    opd_scalar_type dtype;
    opdi_cu_pointwise_numbers<float> s;
    uint64_t element;                             /* copies: the number as an element */
    int32_t numbers, ones;
    void *p[OPDI_CU_LIST][4];
    int64_t numel[OPDI_CU_LIST];
};
static thread_local opdi_cu_gathered *opdi_cu_gather_now;        /* NULL: computations are not noted */

template <int F, typename C, typename T> static int opdi_cu_gathered_launch(const opdi_cu_gathered *g) {
    constexpr int K = opdi_cu_pointwise_formula<F, C>::inputs + 1;
    opdi_cu_gathered_args<C, K> f;
    f.list.n = 0;
    for (int i = 0; i < g->n; i++) { opdi_cu_tensors_add<K>(&f.list, g->p[i], g->numel[i]); }
    f.numbers = g->numbers; f.ones = g->ones;
    if constexpr (F == OPD_FORMULA_copy) {
        const opdi_cu_pointwise_numbers<C> s = {C(0), C(0), C(0), {(C)g->element, C(0), C(0)}};
        f.s = s;
    } else { f.s = g->s; }
    return opdi_cu_launch(opdi_cu_gathered_kernel<F, C, T>, dim3((unsigned)f.list.first[g->n]), OPDI_CU_LIST_THREADS, 0,
                          f);
}
template <typename T> static int opdi_cu_gathered_run_of(const opdi_cu_gathered *g) {
    switch (g->formula) {
#define OPDI_CU_LISTED_CASE(name) \
        case OPD_FORMULA_##name: return opdi_cu_gathered_launch<OPD_FORMULA_##name, float, T>(g);
        OPDI_CU_LISTED(OPDI_CU_LISTED_CASE)
        default: return -1;
    }
}
static int opdi_cu_gathered_run(const opdi_cu_gathered *g) {
    if (g->formula == OPD_FORMULA_copy) {
        switch (opd_dtype_size(g->dtype)) {
            case 1: return opdi_cu_gathered_launch<OPD_FORMULA_copy, uint8_t, uint8_t>(g);
            case 2: return opdi_cu_gathered_launch<OPD_FORMULA_copy, uint16_t, uint16_t>(g);
            case 4: return opdi_cu_gathered_launch<OPD_FORMULA_copy, uint32_t, uint32_t>(g);
            default: return opdi_cu_gathered_launch<OPD_FORMULA_copy, uint64_t, uint64_t>(g);
        }
    }
    return g->dtype == OPD_FLOAT32 ? opdi_cu_gathered_run_of<float>(g)
        : g->dtype == OPD_FLOAT16 ? opdi_cu_gathered_run_of<opdi_cu_f16>(g) : opdi_cu_gathered_run_of<opdi_cu_bf16>(g);
}
/* Runs the noted computations.  If this fails, sets an error. */
static void opdi_cu_gather_flush() {
    opdi_cu_gathered *g = opdi_cu_gather_now;
    if (!g || g->n == 0) { return; }
    const opdi_cu_on on(g->device);
    opdi_cu_gather_now = NULL;                    /* the launch asks for the stream, and would come here again */
    (void)opdi_cu_gathered_run(g);
    opdi_cu_gather_now = g;
    g->n = 0;
}
static bool opdi_cu_listed(int formula) {
    switch (formula) {
#define OPDI_CU_LISTED_TRUE(name) case OPD_FORMULA_##name:
        OPDI_CU_LISTED(OPDI_CU_LISTED_TRUE)
            return true;
        default: return false;
    }
}
/* Fills in the common parts of *g for a computation, and sets g->n to 0.  Returns false if the computation cannot be
   gathered. */
static bool opdi_cu_gather_read(opdi_cu_gathered *g, int device, const opd_pointwise *p) {
    const bool copy = p->formula == OPD_FORMULA_copy;
    double element[2] = {0, 0};
    memset(&g->s, 0, sizeof g->s);
    g->device = device; g->formula = p->formula; g->noperands = p->noperands; g->n = 0;
    g->numbers = opdi_cu_pointwise_which_numbers(p);
    g->ones = 0; g->element = 0;
    if (p->ndim != 1) { return false; }
    for (int k = 0; k < p->noperands && !p->linear; k++) {
        const opd_operand *o = &p->operands[k];
        if (!o->data || o->strides[0] == 1) { continue; }
        if (k == 0 || o->strides[0] != 0) { return false; }
        g->ones |= 1 << (k - 1);
    }
    g->dtype = p->operands[0].dtype;
    if (!copy) {
        if (p->compute != OPD_FLOAT32 || !opdi_cu_listed(p->formula) || opdi_cu_pointwise_fast<float>(p) < 0) {
            return false;
        }
        g->s = opdi_cu_pointwise_numbers_of<float>(p);
        return true;
    }
    if (opd_dtype_size(g->dtype) > 8 || (p->operands[1].data && p->operands[1].dtype != g->dtype)) { return false; }
    if (!p->operands[1].data) { opdi_cu_pointwise_element(&p->operands[1], g->dtype, element); }
    memcpy(&g->element, element, sizeof g->element);
    return true;
}
static bool opdi_cu_overlap(const void *a, int64_t na, const void *b, int64_t nb) {
    return (uintptr_t)a < (uintptr_t)b + (uintptr_t)nb && (uintptr_t)b < (uintptr_t)a + (uintptr_t)na;
}
/* Returns whether a computation with operands p[] must wait for a noted one: one writes what the other reads or
   writes. */
static bool opdi_cu_gather_depends(const opdi_cu_gathered *g, void *const *p, int64_t numel) {
    const int64_t size = (int64_t)opd_dtype_size(g->dtype), mine = numel * size;
    for (int i = 0; i < g->n; i++) {
        const int64_t bytes = g->numel[i] * size;
        if (opdi_cu_overlap(p[0], mine, g->p[i][0], bytes)) { return true; }
        for (int k = 1; k < g->noperands; k++) {
            const bool one = g->ones >> (k - 1) & 1;
            if (g->numbers >> (k - 1) & 1) { continue; }
            if (opdi_cu_overlap(p[0], mine, g->p[i][k], one ? size : bytes) ||
                opdi_cu_overlap(p[k], one ? size : mine, g->p[i][0], bytes)) { return true; }
        }
    }
    return false;
}
/* Notes a computation on device `index`, and returns true, or returns false if it cannot be gathered. */
static bool opdi_cu_gather_add(int index, const opd_pointwise *p) {
    opdi_cu_gathered *g = opdi_cu_gather_now, next;
    void *at[4] = {NULL, NULL, NULL, NULL};
    if (!g || opdi_cu_debug || !opdi_cu_gather_read(&next, index, p)) { return false; }
    for (int k = 0; k < p->noperands; k++) { at[k] = p->operands[k].data; }
    if (g->n > 0 && (g->n == OPDI_CU_LIST || g->device != next.device || g->formula != next.formula ||
                     g->noperands != next.noperands || g->dtype != next.dtype || g->numbers != next.numbers ||
                     g->ones != next.ones || g->element != next.element || memcmp(&g->s, &next.s, sizeof g->s) != 0 ||
                     opdi_cu_gather_depends(g, at, p->numel))) {
        opdi_cu_gather_flush();
    }
    if (g->n == 0) {
        g->device = next.device; g->formula = next.formula; g->noperands = next.noperands; g->dtype = next.dtype;
        g->numbers = next.numbers; g->ones = next.ones; g->element = next.element; g->s = next.s;
    }
    memcpy(g->p[g->n], at, sizeof at);
    g->numel[g->n++] = p->numel;
    return true;
}
/* Begins or ends gathering on this thread.  Returns 0, or -1 and sets an error. */
static int opdi_cu_gather_set(void *user, int index, bool on) {
    opdi_cu_gathered *g = opdi_cu_gather_now;
    (void)user; (void)index;
    if (on) {
        if (!g && !(g = new (std::nothrow) opdi_cu_gathered)) { return opdi_cu_no_memory("a list of tensors"); }
        if (!opdi_cu_gather_now) { g->depth = g->n = 0; opdi_cu_gather_now = g; }
        g->depth++;
        return 0;
    }
    if (!g) { return 0; }
    opdi_cu_gather_flush();
    if (--g->depth == 0) { opdi_cu_gather_now = NULL; delete g; }
    return opd_ok() ? 0 : -1;
}

//== norms =============================================================================================================

enum { OPDI_CU_LIST_ABS, OPDI_CU_LIST_SQUARES, OPDI_CU_LIST_MAX };      /* norms of order 1, 2 and infinity */
template <int KIND> struct opdi_cu_list_fold {
    template <typename A> __device__ __forceinline__ A operator()(A a, A b) const {
        return KIND != OPDI_CU_LIST_MAX ? a + b : a > b || !(a == a) ? a : b;
    }
};
template <int KIND, typename A> __device__ __forceinline__ A opdi_cu_list_term(A x) {
    return KIND == OPDI_CU_LIST_SQUARES ? x * x : x < 0 ? -x : x;
}
/* parts[block] gets the sum or maximum of a block's piece. */
template <int KIND, typename T> __global__ void __launch_bounds__(OPDI_CU_LIST_THREADS)
opdi_cu_list_norm_kernel(const opdi_cu_tensors<1> list, opdi_cu_acc<T> *parts) {
    typedef opdi_cu_acc<T> A;
    constexpr int N = 16 / sizeof(T), U = 4, step = OPDI_CU_LIST_THREADS * N;
    const opdi_cu_list_fold<KIND> fold = opdi_cu_list_fold<KIND>();
    const int at = opdi_cu_list_at(list.first, list.n, (int)blockIdx.x);
    const int64_t from = (int64_t)((int)blockIdx.x - list.first[at]) * OPDI_CU_LIST_PIECE;
    const int64_t left = list.numel[at] - from;
    const int n = left < OPDI_CU_LIST_PIECE ? (int)left : (int)OPDI_CU_LIST_PIECE;
    const T *p = (const T *)list.p[at][0] + from;
    const int whole = (uintptr_t)p % 16 == 0 ? n / N * N : 0;
    A sum = 0;
    OPDI_CU_ROLLED
    for (int i = (int)threadIdx.x * N; i < whole; i += step * U) {
        const int runs = whole - i >= step * U ? U : (whole - i - N) / step + 1;
        opdi_cu_vector<T, N> x[U];
        opdi_cu_pointwise_fetch<N, U>(x, p, i, step, runs);
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) {
            if (u >= runs) { continue; }
            OPDI_CU_UNROLL
            for (int j = 0; j < N; j++) { sum = fold(sum, opdi_cu_list_term<KIND>(opdi_cu_taken<A>(x[u], j))); }
        }
    }
    for (int i = whole + (int)threadIdx.x; i < n; i += OPDI_CU_LIST_THREADS) {
        sum = fold(sum, opdi_cu_list_term<KIND>(opdi_cu_load<A>(p + i)));
    }
    sum = opdi_cu_block_reduce(sum, fold, (A)0);
    if (threadIdx.x == 0) { parts[blockIdx.x] = sum; }
}
/* out[block] gets the norm of tensor number `block` of the list. */
template <int KIND, typename T> __global__ void __launch_bounds__(OPDI_CU_LIST_THREADS)
opdi_cu_list_norm_end(const opdi_cu_tensors<1> list, const opdi_cu_acc<T> *parts, T *out) {
    typedef opdi_cu_acc<T> A;
    const opdi_cu_list_fold<KIND> fold = opdi_cu_list_fold<KIND>();
    A sum = 0;
    const int end = list.first[blockIdx.x + 1];
    for (int i = list.first[blockIdx.x] + (int)threadIdx.x; i < end; i += OPDI_CU_LIST_THREADS) {
        sum = fold(sum, parts[i]);
    }
    sum = opdi_cu_block_reduce(sum, fold, (A)0);
    if (threadIdx.x == 0) { opdi_cu_store(out + blockIdx.x, KIND == OPDI_CU_LIST_SQUARES ? (A)sqrt(sum) : sum); }
}
template <int KIND, typename T> static int opdi_cu_list_norm_flush(opdi_cu_tensors<1> *list, T *out) {
    const int blocks = list->n > 0 ? list->first[list->n] : 0;
    opdi_cu_acc<T> *parts;
    if (list->n == 0) { return 0; }
    parts = (opdi_cu_acc<T> *)opdi_cu_scratch((int64_t)blocks * (int64_t)sizeof *parts);
    if (!parts || (blocks > 0 && opdi_cu_launch(opdi_cu_list_norm_kernel<KIND, T>, dim3((unsigned)blocks),
                                                OPDI_CU_LIST_THREADS, 0, *list, parts)) ||
        opdi_cu_launch(opdi_cu_list_norm_end<KIND, T>, dim3((unsigned)list->n), OPDI_CU_LIST_THREADS, 0, *list,
                       (const opdi_cu_acc<T> *)parts, out)) { return -1; }
    list->n = 0;
    return 0;
}
template <int KIND, typename T> static int opdi_cu_list_norm_of(opd_tensors self, opd_tensor *out) {
    opdi_cu_tensors<1> list;
    int64_t done = 0;
    list.n = 0;
    for (int64_t i = 0; i < self.n; i++) {
        opd_tensor *t = opdi_cu_dense(self.data[i]) ? self.data[i] : opd_contiguous(self.data[i]);
        void *p = t ? opdi_cu_data<void>(t) : NULL;
        if (!t || (!p && opd_numel(t) != 0)) { return -1; }
        opdi_cu_tensors_add<1>(&list, &p, opd_numel(t));
        if (list.n < OPDI_CU_LIST && i + 1 < self.n) { continue; }
        if (opdi_cu_list_norm_flush<KIND, T>(&list, opdi_cu_data<T>(out) + done)) { return -1; }
        done = i + 1;
    }
    return 0;
}
/* Runs list_norm(Tensor[] self, float order): the norm of each tensor, as a tensor with one dim.  The order is 1, 2 or
   infinity.  All tensors have the same dtype, a float. */
static int opdi_cu_list_norm(opd_call *call) {
    const opd_tensors self = opd_arg_tensors(call, 0);
    const double order = opd_arg_double(call, 1);
    opd_tensor *out = opdi_cu_new(opd_ints_of(&self.n, 1), opd_dtype(self.data[0]));
    if (!out) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(out), T, {
        if (order == 2 ? opdi_cu_list_norm_of<OPDI_CU_LIST_SQUARES, T>(self, out)
            : order == 1 ? opdi_cu_list_norm_of<OPDI_CU_LIST_ABS, T>(self, out)
            : opdi_cu_list_norm_of<OPDI_CU_LIST_MAX, T>(self, out)) { return -1; }
    })
    return opd_return_tensor(call, out);
}
