// Fuzz target for autograd: see fuzz.h for how to build and run it; tests/fuzz/test_fuzz_program.c runs it as a test.
// Input: a script, with one byte for each step and some for its arguments.  A program makes tensors, views and views
// of views, writes to them, switches grad and inference mode, detaches, adds hooks, packs, resizes, replaces data,
// opens and closes scopes, and computes gradients of first and second order, sometimes on several threads.  After every
// step: the step failed if and only if an error is pending; the properties of a tensor are consistent; versions only
// grow; a gradient has the sizes and dtype of its tensor.  Computing a gradient twice gives the same result.  A program
// that runs again uses no more memory.
#include "fuzz.h"

#if !defined(OPD_NO_THREADS)
#include <pthread.h>
#endif

#define PICK(a) ((a)[next() % COUNT(a)])

//-- the state of a program --------------------------------------------------------------------------------------------

enum { SLOTS = 10, LEAVES = 40, SCOPES = 4, NODES = 4, HOOKS = 6 };
static opd_tensor *slots[SLOTS];                  /* references; NULL: empty */
static opd_tensor *leaves[LEAVES];                /* everything that may have a gradient: references, until the end */
static int nleaves;
static uint32_t versions[SLOTS];
static opd_node *nodes[NODES];
static int64_t hooks[HOOKS];
static opd_scope scopes[SCOPES];
static int nscopes, npackers, nmutations, hooks_alive;
static int unpack_way;

/* Some tensor; seldom none. */
static opd_tensor *slot(void) {
    const unsigned from = next();
    unsigned i;
    if (from >= 250) { return NULL; }
    for (i = 0; i < SLOTS && !slots[(from + i) % SLOTS]; i++) { }
    return slots[(from + i) % SLOTS];
}
/* One that requires grad, mostly. */
static opd_tensor *wanted(void) {
    const unsigned from = next();
    unsigned i;
    for (i = 0; i < SLOTS && from < 240; i++) {
        opd_tensor *t = slots[(from + i) % SLOTS];
        if (t && opd_tensor_requires_grad(t)) { return t; }
    }
    return slot();
}
static void put(opd_tensor *t) {
    const unsigned i = next() % SLOTS;
    if (t && opd_numel(t) <= 64) { (void)opd_assign(&slots[i], t); versions[i] = 0; }
}

/* A step ended: rc and the pending error agree. */
static void ended(int rc) {
    MUST((rc < 0) == !opd_ok());
    if (rc < 0) { MUST(opd_error_message()[0] != 0); }
    if (next() % 16) { opd_error_clear(); }       /* else the next steps have to do nothing */
}
static void remember(opd_tensor *t) {
    int i;
    for (i = 0; i < nleaves && leaves[i] != t; i++) { }
    if (i == nleaves && i < LEAVES && opd_keep(t)) { leaves[nleaves++] = t; }
}

//-- operators ---------------------------------------------------------------------------------------------------------

/* Arguments: T a slot, W one to write to, L a list of three, d a dim, n a small number, f a float, z sizes, D a list of dims, b a bool,
   i indices (int64), m a mask (bool), u v sizes and strides of two dims, x left at its default. */
typedef struct called { const char *name, *args; } called;
static const called plain[] = {
    {"aten::exp", "T"}, {"aten::tanh", "T"}, {"aten::sin", "T"}, {"aten::relu", "T"}, {"aten::abs", "T"},
    {"aten::neg", "T"}, {"aten::sigmoid", "T"}, {"aten::add.Tensor", "TT"}, {"aten::mul.Tensor", "TT"},
    {"aten::sub.Tensor", "TT"}, {"aten::div.Tensor", "TT"}, {"aten::maximum", "TT"}, {"aten::matmul", "TT"},
    {"aten::mul.Scalar", "Tf"}, {"aten::pow.Tensor_Scalar", "Tf"}, {"aten::clone", "T"}, {"aten::contiguous", "T"},
    {"aten::sum", "T"}, {"aten::mean", "T"}, {"aten::prod", "T"}, {"aten::sum.dim_IntList", "TDb"},
    {"aten::amax", "TDb"}, {"aten::logsumexp", "TDb"}, {"aten::var.correction", "TD"}, {"aten::std.correction", "TD"},
    {"aten::max.dim", "Td"}, {"aten::sort", "Td"}, {"aten::cumsum", "Td"}, {"aten::softmax.int", "Td"},
    {"aten::linalg_vector_norm", "T"}, {"aten::where.self", "mTT"}, {"aten::masked_fill.Scalar", "Tmf"},
    {"aten::masked_select", "Tm"}, {"aten::index_select", "Tdi"}, {"aten::gather", "Tdi"}, {"aten::cat", "Ld"},
    {"aten::stack", "Ld"}, {"aten::layer_norm", "Tz"}, {"aten::mse_loss", "TT"}, {"aten::repeat", "Tz"},
    {"aten::msort", "T"}, {"aten::topk", "Tnd"}, {"aten::constant_pad_nd", "Tzf"}, {"aten::diff", "Tnd"},
    {"aten::prelu", "TT"}, {"aten::glu", "Td"}, {"aten::lerp.Scalar", "TTf"}, {"aten::addcmul", "TTT"},
    {"aten::embedding", "Ti"}, {"aten::flip", "TD"}, {"aten::roll", "TD"}, {"aten::tril", "T"}, {"aten::dist", "TT"}};
static const called views[] = {
    {"aten::view", "Tz"}, {"aten::reshape", "Tz"}, {"aten::t", "T"}, {"aten::transpose.int", "Tdd"},
    {"aten::select.int", "Tdn"}, {"aten::slice.Tensor", "Tdnn"}, {"aten::slice.Tensor", "Tdnnn"}, {"aten::as_strided", "Tuv"}, {"aten::as_strided", "Tuv"}, {"aten::narrow", "Tdnn"}, {"aten::expand", "Tz"},
    {"aten::unsqueeze", "Td"}, {"aten::squeeze", "T"}, {"aten::squeeze.dim", "Td"}, {"aten::split.Tensor", "Tnd"},
    {"aten::chunk", "Tnd"}, {"aten::unbind.int", "Td"}, {"aten::tensor_split.sections", "Tnd"}, {"aten::alias", "T"},
    {"aten::detach", "T"}, {"aten::permute", "TD"}, {"aten::flatten.using_ints", "T"}, {"aten::diagonal", "T"},
    {"aten::unfold", "Tdnn"}, {"aten::as_strided", "Tzz"}, {"aten::view_as", "TT"}, {"aten::movedim.int", "Tdd"}};
static const called writes[] = {
    {"aten::add_.Tensor", "WT"}, {"aten::mul_.Tensor", "WT"}, {"aten::mul_.Scalar", "Wf"}, {"aten::exp_", "W"},
    {"aten::sigmoid_", "W"}, {"aten::relu_", "W"}, {"aten::zero_", "W"}, {"aten::fill_.Scalar", "Wf"},
    {"aten::fill_.Tensor", "WT"}, {"aten::copy_", "WT"}, {"aten::masked_fill_.Scalar", "Wmf"}, {"aten::squeeze_", "W"},
    {"aten::unsqueeze_", "Wd"}, {"aten::t_", "W"}, {"aten::transpose_", "Wdd"}, {"aten::div_.Tensor", "WT"},
    {"aten::index_fill_.int_Scalar", "Wdif"}, {"aten::clamp_", "Wff"}, {"aten::cumsum_", "Wd"}, {"aten::lerp_.Scalar", "WTf"},
    {"aten::addcmul_", "WTT"}, {"aten::index_add_", "WdiT"}, {"aten::masked_scatter_", "WmT"}, {"aten::pow_.Scalar", "Wf"},
    {"aten::detach_", "W"}, {"aten::resize_", "Wz"}};

/* What may be written to, mostly: no leaf that requires grad. */
static opd_tensor *target(void) {
    const bool fine = opd_ok();
    const unsigned from = next();
    unsigned i;
    for (i = 0; i < SLOTS && from < 240; i++) {
        opd_tensor *t = slots[(from + i) % SLOTS];
        if (t && (!opd_tensor_requires_grad(t) || !opd_tensor_is_leaf(t))) { return t; }
        if (fine) { opd_error_clear(); }          /* of a view whose history is void */
    }
    return slot();
}
/* Numbers near the ends of what a size, a stride or a dim can be. */
static const int64_t ends[] = {INT64_MAX, INT64_MIN, (int64_t)1 << 62, ((int64_t)1 << 61) + 1, INT64_MAX - 1, -((int64_t)1 << 62), INT64_MIN + 1};
static int64_t small_or_end(int64_t small) { return next() % 8 ? small : PICK(ends); }
static int64_t numbers[8][4];
static int nnumbers;
static opd_value arg(char kind) {
    int64_t *p = numbers[nnumbers++ % 8];
    int i, n;
    switch (kind) {
    case 'W': case 'T': { opd_tensor *t = kind == 'W' ? target() : slot(); return t ? opd_value_tensor(t) : opd_value_none(); }
    case 'd': return opd_value_int(next() % 8 ? -(int64_t)(next() % 2) : small_or_end((int64_t)(next() % 5) - 2));
    case 'n': return opd_value_int(next() % 8 ? 1 + (int64_t)(next() % 2) : small_or_end((int64_t)(next() % 6) - 1));
    case 'f': return opd_value_double((double)(next() % 9) / 2 - 1.5);
    case 'b': return opd_value_bool(next() % 2);
    case 'z': {
        static const int64_t likely[][4] = {{1, -1}, {1, 6}, {1, 3}, {1, 4}, {2, 2, 3}, {2, 3, 2}, {2, 2, 2}, {3, 1, 2, 3}, {2, -1, 2}, {2, 1, 1}};
        const int64_t *z = PICK(likely);
        for (i = 0; i < z[0]; i++) { p[i] = next() % 16 ? z[1 + i] : small_or_end((int64_t)(next() % 6) - 1); }
        return opd_value_ints(p, z[0]);
    }
    case 'u': case 'v':                           /* sizes and strides, of which some reach no element */
        for (i = 0; i < 2; i++) { p[i] = kind == 'v' && next() % 2 ? PICK(ends) : (int64_t)(next() % 3); }
        return opd_value_ints(p, 2);
    case 'D':
        for (i = 0, n = next() % 4 ? 1 : (int)(next() % 4); i < n; i++) { p[i] = next() % 16 ? (int64_t)(next() % 3) - 1 : PICK(ends); }
        return opd_value_ints(p, n);
    case 'i':
        for (i = 0; i < 2; i++) { p[i] = next() % 16 ? (int64_t)(next() % 2) : (int64_t)(next() % 4); }
        { opd_tensor *t = opd_tensor_from(p, OPD_INTS(2), OPD_INT64); return t ? opd_value_tensor(t) : opd_value_none(); }
    default: return opd_value_default();
    }
}
/* Calls one of them; its results come into slots. */
static void call(const called *c, bool keep) {
    opd_op *op = opd_find_quiet(c->name);
    opd_value args[8], rets[OPD_MAX_ARGS];
    opd_tensor *list[3];
    const bool pending = !opd_ok();
    int n = 0, i, k, rc;
    if (!op) { MUST(pending || fuzz_short); return; }
    for (i = 0; c->args[i]; i++) {
        if (c->args[i] == 'L') { for (k = 0; k < 3; k++) { list[k] = slot(); } args[n++] = opd_value_tensors(list, 3); continue; }
        if (c->args[i] == 'm') {
            opd_tensor *of = args[0].tag == OPD_TAG_TENSOR && n ? args[0].u.t : slot(), *m = NULL;
            OPD_NO_GRAD { m = of ? opd_gt_Scalar(of, opd_value_double(0.3)) : NULL; }
            args[n++] = m ? opd_value_tensor(m) : opd_value_none();
            continue;
        }
        args[n++] = arg(c->args[i]);
    }
    if (!pending && !opd_ok()) { ended(-1); return; }
    /* what is not recorded leaves the gradient of a result the shape that it had */
    if (!opd_grad_mode_enabled() && (strstr(c->name, "squeeze_") || strcmp(c->name, "aten::t_") == 0 || strstr(c->name, "resize_") ||
                                strstr(c->name, "transpose_"))) { return; }
    rc = opd_call_all(op, rets, args, n);
    MUST(!pending || rc < 0);
    for (i = 0; rc >= 0 && keep && i < opd_schema_nreturns(opd_op_schema(op)); i++) {
        if (rets[i].tag == OPD_TAG_TENSOR) { put(rets[i].u.t); }
        for (k = 0; rets[i].tag == OPD_TAG_TENSORS && k < rets[i].n && k < 2; k++) { put(rets[i].u.tensors[k]); }
    }
    ended(rc);
}

static void make(void) {
    double v[36];
    static const int64_t likely[][3] = {{2, 2, 3}, {2, 2, 3}, {2, 2, 3}, {1, 3}, {0}, {2, 2, 2}, {2, 2, 1}, {2, 3, 3}};
    const int64_t *shape = PICK(likely), ndim = shape[0];
    int64_t sizes[3];
    opd_tensor *t;
    int i;
    for (i = 0; i < ndim; i++) { sizes[i] = next() % 64 ? shape[1 + i] : next() % 4; }
    for (i = 0; i < 36; i++) { v[i] = (double)(next() % 64) / 16 - 2; }
    if (!opd_ok()) { return; }
    t = opd_tensor_from(v, opd_ints_of(sizes, ndim), OPD_FLOAT64);
    if (t && next() % 16 == 0) { t = opd_to_dtype(t, OPD_FLOAT32); }
    if (t && next() % 4) { t = opd_tensor_set_requires_grad(t, true); if (t) { remember(t); } }
    if (t) { MUST(opd_ok()); }
    put(t);
    ended(t ? 0 : -1);
}

//-- hooks -------------------------------------------------------------------------------------------------------------

static void hook_gone(void *user) { MUST(*(int *)user == 1); *(int *)user = 0; free(user); hooks_alive--; }
static int *hook_user(void) {
    int *p = (int *)malloc(sizeof *p);
    MUST(p);
    *p = 1;
    hooks_alive++;
    return p;
}
static opd_tensor *h_nothing(opd_tensor *g, void *user) { MUST(*(int *)user == 1); (void)g; return NULL; }
static opd_tensor *h_same(opd_tensor *g, void *user) { (void)user; return g; }
static opd_tensor *h_twice(opd_tensor *g, void *user) { (void)user; return opd_add(g, g); }
static opd_tensor *h_other(opd_tensor *g, void *user) { (void)user; return opd_new_zeros(g, OPD_INTS(2, 7)); }
static opd_tensor *h_fails(opd_tensor *g, void *user) { (void)g; (void)user; (void)opd_fail(OPD_ERROR_USER, "hook"); return NULL; }
static const opd_tensor_hook_fn tensor_hooks[] = {h_nothing, h_same, h_twice, h_twice, h_other, h_fails};
static int h_pre(opd_tensor **g, int n, void *user) { (void)user; if (n && g[0]) { g[0] = opd_mul(g[0], g[0]); } return 0; }
static int h_pre_none(opd_tensor **g, int n, void *user) { (void)user; if (n) { g[0] = NULL; } return 0; }
static int h_post(opd_tensor **o, int nout, opd_tensor *const *g, int n, void *user) {
    (void)g; (void)n; (void)user;
    if (nout) { o[nout - 1] = NULL; }
    return 0;
}
static int h_leaf(opd_tensor *leaf, void *user) { (void)user; return opd_tensor_set_grad(leaf, NULL); }

static void add_hook(void) {
    opd_tensor *t = wanted();
    const unsigned how = next() % 8;
    int64_t h = 0;
    int *user;
    if (!t || !opd_ok()) { return; }
    user = hook_user();
    if (how < 4) { h = opd_tensor_hook_add(t, PICK(tensor_hooks), user, hook_gone); }
    else if (how == 4) { h = opd_tensor_post_accumulate_hook_add(t, h_leaf, user, hook_gone); }
    else {
        opd_node *n = opd_tensor_node(t);
        if (!n) { hook_gone(user); ended(opd_ok() ? 0 : -1); return; }
        h = how == 7 ? opd_node_post_hook_add(n, h_post, user, hook_gone)
            : opd_node_pre_hook_add(n, how == 5 ? h_pre : h_pre_none, user, hook_gone);
    }
    if (h <= 0) { MUST(!opd_ok()); hook_gone(user); }          /* it is still ours */
    else { hooks[next() % HOOKS] = h; }
    ended(h > 0 ? 0 : -1);
}

static void *pack(opd_tensor *t, void *user) {
    (void)user;
    if (next() % 16 == 0) { (void)opd_fail(OPD_ERROR_USER, "pack"); return NULL; }
    return opd_keep(t);
}
static void drop(void *packed, void *user) { (void)user; opd_release((opd_tensor *)packed); }
static opd_tensor *unpack(void *packed, void *user) {
    opd_tensor *t = (opd_tensor *)packed;
    (void)user;
    switch (unpack_way) {
    case 1: (void)opd_fail(OPD_ERROR_USER, "unpack"); return NULL;
    case 2: return NULL;
    case 3: return opd_new_zeros(t, OPD_INTS(3, 1, 2));
    case 4: return opd_to_dtype(t, OPD_FLOAT16);
    case 5: return opd_clone(t);
    default: return t;
    }
}
static void push_packer(void) {
    opd_saved_hooks h;
    if (npackers + nmutations >= 3 || !opd_ok()) { return; }
    memset(&h, 0, sizeof h);
    h.pack = pack;
    h.unpack = unpack;
    h.drop = drop;
    if (opd_saved_hooks_begin(&h) == 0) { npackers++; ended(0); } else { ended(-1); }
}

//-- gradients ---------------------------------------------------------------------------------------------------------

static bool is_like(opd_tensor *g, opd_tensor *t) {
    return opd_dtype(g) == opd_dtype(t) && opd_ndim(g) == opd_ndim(t) &&
        memcmp(opd_sizes(g), opd_sizes(t), (size_t)opd_ndim(t) * sizeof(int64_t)) == 0;
}
static void fits(opd_tensor *g, opd_tensor *t) { MUST(is_like(g, t)); (void)sum_of(g); }
static bool same_bits(opd_tensor *a, opd_tensor *b) {
    bool same = false;
    if (!a || !b) { return a == b; }
    OPD_NO_GRAD {
        opd_tensor *x = opd_contiguous(a), *y = opd_contiguous(b);
        same = !x || !y || memcmp(opd_data(x), opd_data(y), (size_t)opd_numel(x) * opd_dtype_size(opd_dtype(x))) == 0;
    }
    return same;
}
static opd_tensor *root(void) {                   /* something to begin with: a sum mostly */
    opd_tensor *t = wanted();
    return t && next() % 8 && opd_ok() ? opd_sum(t) : t;
}
static void backward(void) {
    opd_tensor *t = root(), *in[2];
    opd_backward_options o;
    const unsigned how = next();
    int rc, i;
    if (!t) { ended(opd_ok() ? 0 : -1); return; }
    memset(&o, 0, sizeof o);
    o.retain_graph = how & 1;
    o.create_graph = how % 8 == 6;
    in[0] = wanted();
    in[1] = wanted();
    if (how % 16 > 12 && in[0] && in[1]) { o.inputs = in; o.ninputs = 2; remember(in[0]); remember(in[1]); }
    if (o.inputs && nleaves == LEAVES) { o.inputs = NULL; }
    unpack_way = next() % 16 < 6 ? (int)(next() % 6) : 0;
    rc = opd_backward_with(&t, 1, &o);
    unpack_way = 0;
    for (i = 0; i < nleaves; i++) {
        if (opd_tensor_grad(leaves[i])) { fits(opd_tensor_grad(leaves[i]), leaves[i]); }
    }
    ended(rc);
}
static void grad(bool twice) {
    opd_tensor *t = root(), *in[2], *g[2] = {NULL, NULL}, *again[2] = {NULL, NULL};
    opd_backward_options o;
    int rc, i;
    memset(&o, 0, sizeof o);
    o.retain_graph = twice || next() % 2;
    o.create_graph = next() % 3 == 0;
    o.allow_unused = next() % 4 > 0;
    o.materialize_grads = next() % 8 == 0;
    in[0] = wanted();
    in[1] = wanted();
    if (!t || !in[0] || !in[1]) { ended(opd_ok() ? 0 : -1); return; }
    rc = opd_autograd_grad(&t, 1, in, 2, &o, g);
    for (i = 0; i < 2; i++) {
        MUST(rc >= 0 || !g[i]);
        if (g[i]) { fits(g[i], in[i]); }
    }
    if (rc >= 0 && twice && hooks_alive == 0) {
        rc = opd_autograd_grad(&t, 1, in, 2, &o, again);
        MUST(rc >= 0 || fuzz_short || npackers);
        for (i = 0; i < 2 && rc >= 0; i++) { MUST(same_bits(g[i], again[i])); }
        if (!opd_ok()) { MUST(fuzz_short || rc < 0); rc = -1; }
    }
    for (i = 0; i < 2 && rc >= 0; i++) { put(g[i]); }
    ended(rc);
}

#if !defined(OPD_NO_THREADS)
static void *backward_there(void *arg) {
    opd_tensor *t = (opd_tensor *)arg;
    OPD_SCOPE {
        opd_backward_options o;
        int rc;
        memset(&o, 0, sizeof o);
        o.retain_graph = true;
        rc = opd_backward_with(&t, 1, &o);
        MUST((rc < 0) == !opd_ok());
        opd_error_clear();
    }
    return NULL;
}
static void backward_on_threads(void) {
    opd_tensor *t = root();
    pthread_t threads[2];
    int i, n = 0;
    if (!t || !opd_ok()) { ended(opd_ok() ? 0 : -1); return; }
    if (fuzz_short || hooks_alive || npackers || nmutations) { return; }      /* pack and hooks read the script */
    for (i = 0; i < 2; i++) { n += pthread_create(&threads[i], NULL, backward_there, t) == 0; if (n <= i) { break; } }
    for (i = 0; i < n; i++) { (void)pthread_join(threads[i], NULL); }
}
#else
static void backward_on_threads(void) {}
#endif

//-- the rest ----------------------------------------------------------------------------------------------------------

static void leaf_flags(void) {
    opd_tensor *t = slot();
    bool ok;
    if (!t || opd_tensor_base(t)) { return; }     /* a leaf that is a view, added to its base, makes a cycle */
    ok = opd_tensor_set_requires_grad(t, next() % 4 > 0) != NULL;
    if (ok) { remember(t); }
    ended(ok ? 0 : -1);
}
static void set_grad(void) {                      /* of what has no history: else a cycle is made */
    opd_tensor *t = slot(), *g = slot();
    int rc;
    if (!t || (g && next() % 2)) { g = NULL; }
    if (!t || (g && (opd_tensor_requires_grad(g) || !opd_ok()))) { opd_error_clear(); return; }
    remember(t);
    if (nleaves == LEAVES) { return; }
    rc = opd_tensor_set_grad(t, g ? opd_clone(g) : NULL);
    ended(opd_ok() ? rc : -1);
}
static void set_data(void) {
    opd_tensor *t = slot(), *d = slot();
    if (t && d && t != d && (is_like(d, t) || !opd_tensor_requires_grad(t))) { ended(opd_tensor_set_data(t, d)); memset(versions, 0, sizeof versions); }
}
static void retain(void) {
    opd_tensor *t = wanted();
    if (!t || nleaves == LEAVES) { return; }
    remember(t);
    ended(opd_tensor_retain_grad(t));
}
static void keep_node(void) {
    opd_tensor *t = slot();
    opd_node *n = t ? opd_tensor_node(t) : NULL, **at = &nodes[next() % NODES];
    if (n) { MUST(opd_node_name(n)[0]); opd_node_release(*at); *at = opd_node_keep(n); }
    ended(opd_ok() ? 0 : -1);
}
static void scope(void) {
    if (nscopes < SCOPES && next() % 2) { scopes[nscopes++] = opd_scope_open(); }
    else if (nscopes) { opd_scope_close(&scopes[--nscopes]); }
}
static void empty(void) {
    const unsigned i = next() % SLOTS;
    opd_release(slots[i]);
    slots[i] = NULL;
}
static void packers(void) {
    if (next() % 2) { push_packer(); return; }
    if (npackers) { opd_saved_hooks_end(); npackers--; }
}
/* The next step in a mode. */
static void step(unsigned what);
static void in_mode(void) {
    const unsigned mode = next() % 4, n = 1 + next() % 3;
    unsigned i;
    if (mode == 0) { OPD_INFERENCE_MODE(next() % 4 > 0) { for (i = 0; i < n; i++) { step(next() % 9); } } }
    else if (mode == 1) { OPD_ENABLE_GRAD { for (i = 0; i < n; i++) { step(next() % 9); } } }
    else { OPD_NO_GRAD { for (i = 0; i < n; i++) { step(next() % 9); } } }
}

/* What a tensor says of itself fits together. */
static void look(int i, bool changed) {
    opd_tensor *t = slots[i], *base = opd_tensor_base(t), *g = opd_tensor_grad(t);
    const bool floats = opd_dtype_is_floating(opd_dtype(t)) || opd_dtype_is_complex(opd_dtype(t));
    MUST(floats || !opd_tensor_requires_grad(t));
    MUST(!base || (!opd_tensor_base(base) && (!floats || opd_tensor_requires_grad(t) >= opd_tensor_requires_grad(base))));
    if (g && changed && !is_like(g, t)) {         /* the tensor has other sizes now */
        opd_error_clear();
        MUST(opd_tensor_set_grad(t, NULL) == 0);
    } else if (g) { fits(g, t); }
    if (!opd_tensor_is_inference(t)) {
        const uint32_t now = opd_tensor_version(t);
        MUST(now >= versions[i]);
        versions[i] = now;
    }
    if (opd_ok()) {                               /* it may refuse, as the base was written to */
        const char *name = opd_tensor_grad_fn(t);
        if (opd_ok()) {
            MUST(!name || opd_tensor_requires_grad(t));
            MUST(opd_tensor_is_leaf(t) == !name);
        }
        opd_error_clear();
    }
}

static void step(unsigned kind) {
    int i;
    switch (kind) {
    case 0: case 1: case 2: call(&PICK(plain), true); break;
    case 3: case 4: call(&PICK(views), true); break;
    case 5: case 6: call(&PICK(writes), next() % 2 != 0); break;
    case 7: make(); break;
    case 8: leaf_flags(); break;
    case 9: in_mode(); break;
    case 10: backward(); break;
    case 11: grad(false); break;
    case 12: grad(true); break;
    case 13: add_hook(); break;
    case 14: packers(); break;
    case 15: scope(); break;
    case 16: empty(); break;
    case 17: set_grad(); break;
    case 18: set_data(); break;
    case 19: retain(); break;
    case 20: keep_node(); break;
    case 21: (void)opd_hook_remove(hooks[next() % HOOKS]); break;
    case 22: if (next() % 4 == 0) { backward_on_threads(); } break;
    case 23: (void)opd_anomaly_set(next() % 64 == 0, next() % 2 != 0); break;     /* its report is slow */
    case 24:
        if (nmutations) { opd_allow_mutation_end(); nmutations--; }
        else if (!npackers && opd_ok()) { const int rc = opd_allow_mutation_begin(); nmutations += rc == 0; ended(rc); }
        break;
    default: opd_error_clear(); break;
    }
    for (i = 0; i < SLOTS; i++) { if (slots[i]) { look(i, kind == 5 || kind == 6 || kind == 18); } }
}

static void program(const uint8_t *data, size_t n) {
    int i;
    at = data;
    end = data + n;
    memset(versions, 0, sizeof versions);
    memset(hooks, 0, sizeof hooks);
    nleaves = nscopes = npackers = nmutations = unpack_way = 0;
    for (i = 0; i < 6 && at < end; i++) { make(); }
    while (at < end) { step(next() % 26); }
    opd_error_clear();
    (void)opd_anomaly_set(false, false);
    while (npackers) { opd_saved_hooks_end(); npackers--; }
    while (nmutations) { opd_allow_mutation_end(); nmutations--; }
    for (i = 0; i < nleaves; i++) { (void)opd_tensor_set_grad(leaves[i], NULL); }
    while (nscopes) { opd_scope_close(&scopes[--nscopes]); }
    for (i = 0; i < SLOTS; i++) { opd_release(slots[i]); slots[i] = NULL; }
    for (i = 0; i < NODES; i++) { opd_node_release(nodes[i]); nodes[i] = NULL; }
    for (i = 0; i < nleaves; i++) { opd_release(leaves[i]); }
    opd_error_clear();
}
/* A program that runs again holds no more memory than before: the first run fills what is kept for the next. */
static void run(const uint8_t *data, size_t n) {
    int64_t live = 0;
    int i;
    (void)setenv("PATH", "", 1);                  /* no addr2line: for this program it takes seconds, at each error */
    for (i = 0; i < 3; i++) {
        if (i == 2) { live = opd_memory_stats().live; }
        OPD_SCOPE { program(data, n); }
    }
    MUST(fuzz_short || opd_memory_stats().live <= live);
}
FUZZ(run)
