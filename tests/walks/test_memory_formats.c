/* Operators with tensors of 4 and 5 dims that are stored channels last: golden/layouts.txt, made by
   golden/make_layouts.py, has the calls and says how PyTorch's results and gradients lie in memory.  In each layout,
   values and gradients equal the contiguous call's, a fake call has the strides of the real one, and so has a
   graph that is recorded, run and compiled.  The same for whole numbers and bools, without gradients, and for the
   quantized tensors of scripts (golden/layouts_quantized.txt).  Without --whole and without a name, the walk visits one
   of 8 shares. */
#include "../../opdispatch.h"
#include "../cases.h"

enum { NONE, ALL, ONLY_FIRST, OTHERS, SLICED, LAYOUTS };
static const char *const layout_names[] = {"none", "all", "first", "others", "sliced"};
static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_FLOAT16, OPD_BFLOAT16};
static const opd_scalar_type whole_dtypes[] = {OPD_INT64, OPD_INT32, OPD_UINT8, OPD_BOOL};
enum { MOST_WORDS = 24, WORDS = 1200 };

//-- what differs from PyTorch, and why --------------------------------------------------------------------------------

enum { RESULTS = 1, GRADS = 2, GRADS_LAST = 4, INTO_GRAD = 8, EVERYTHING = 15, COMPILED = 16 };
static const struct { const char *name; int what; } listed[] = {
    /* in PyTorch, the layout depends on the size: it has one kernel for small convolutions and another for large ones */
    {"convolution", EVERYTHING}, {"conv3d", EVERYTHING}, {"conv3d.padding", EVERYTHING}, {"conv_transpose3d.input", EVERYTHING},
    {"convolution_backward", GRADS | GRADS_LAST},
    /* gradients that are zero, or not of the input's layout because PyTorch's formula broadcasts its operands in another
       order; the values are the same */
    {"_adaptive_avg_pool2d_backward", GRADS_LAST}, {"adaptive_max_pool2d_backward", GRADS_LAST}, {"avg_pool2d_backward", GRADS_LAST},
    {"avg_pool3d_backward", GRADS_LAST}, {"max_pool2d_with_indices_backward", GRADS_LAST},
    {"max_pool3d_with_indices_backward", GRADS_LAST}, {"_weight_norm", GRADS_LAST}, {"kl_div", GRADS_LAST}, {"pad", GRADS_LAST},
    {"binary_cross_entropy_with_logits", GRADS | GRADS_LAST}, {"masked_select", GRADS | GRADS_LAST}, {"prod.dim_int", GRADS | GRADS_LAST},
    /* a gradient of 0 beside infinity, where PyTorch multiplies infinity by 0 */
    {"nan_to_num", GRADS | GRADS_LAST},
    /* composite operators: their gradients come from reshape and permute */
    {"pixel_shuffle", GRADS_LAST}, {"pixel_unshuffle", GRADS_LAST}, {"channel_shuffle", GRADS_LAST},
    /* random numbers are drawn for the elements in the order of their indices, whatever the layout */
    {"bernoulli.p", RESULTS}, {"native_dropout", RESULTS}, {"rrelu", RESULTS},
    /* PyTorch keeps the gaps between the elements of self; strides of the result that depend on its numbers */
    {"copy", RESULTS}, {"nonzero", RESULTS},
    /* compiled, the result has no gaps between its elements; boundaries that are not sorted have no certain result */
    {"select_scatter", COMPILED}, {"slice_scatter", COMPILED}, {"bucketize", COMPILED},
    {NULL, 0}};
static bool is_listed(const op_case *c, int what_part) {
    size_t i;
    for (i = 0; listed[i].name; i++) {
        const char *const names[] = {listed[i].name, NULL};
        if ((listed[i].what & what_part) && named(c->op, names)) { return true; }
    }
    return false;
}

//-- layouts -----------------------------------------------------------------------------------------------------------

/* Returns whether elements lie one after the other if the last of the dims in `order` is the slowest. */
static bool lies(const opd_tensor *t, const int *order) {
    int64_t count = 1;
    int k;
    for (k = 0; k < opd_ndim(t); k++) {
        if (opd_sizes(t)[order[k]] > 1 && opd_strides(t)[order[k]] != count) { return false; }
        count *= opd_sizes(t)[order[k]];
    }
    return true;
}
/* Writes how t lies in memory, as golden/make_layouts.py does. */
static void word_of(const opd_tensor *t, char *to, size_t size) {
    int rows[OPD_MAX_DIMS], last[OPD_MAX_DIMS], d, at = 0;
    const int n = t ? opd_ndim(t) : 0;
    for (d = 0; d < n; d++) {
        rows[d] = n - 1 - d;
        last[d] = d == 0 ? 1 : d == n - 1 ? 0 : n - d;
    }
    if (!t || opd_numel(t) == 0 || lies(t, rows)) { (void)snprintf(to, size, "%s", !t ? "-" : opd_numel(t) ? "C" : "0"); return; }
    if ((n == 4 || n == 5) && lies(t, last)) { (void)snprintf(to, size, "L"); return; }
    for (d = 0; d < n; d++) {
        if (opd_sizes(t)[d] == 1) { at += snprintf(to + at, size - (size_t)at, d ? ":*" : "*"); }
        else { at += snprintf(to + at, size - (size_t)at, d ? ":%d" : "%d", (int)opd_strides(t)[d]); }
    }
}
static void words_of(opd_tensor *const *t, int n, char *to) {
    int i;
    to[0] = 0;
    for (i = 0; i < n; i++) {
        if (i) { strcat(to, ","); }
        word_of(t[i], to + strlen(to), WORDS - strlen(to));
    }
    if (n == 0) { strcpy(to, "-"); }
}
static opd_tensor *last_of(opd_tensor *t) { return opd_contiguous_full(t, opd_ndim(t) == 4 ? 2 : 3); }
static bool is_image(const opd_tensor *t) { return opd_ndim(t) == 4 || opd_ndim(t) == 5; }
/* Returns tensor number `at` of the call in a layout. */
static opd_tensor *laid(opd_tensor *t, int layout, int at) {
    int64_t sizes[OPD_MAX_DIMS];
    opd_tensor *wide;
    int d;
    if (!is_image(t) || layout == NONE || (layout == ONLY_FIRST && at > 0) || (layout == OTHERS && at == 0)) { return t; }
    if (layout != SLICED) { return last_of(t); }
    for (d = 0; d < opd_ndim(t); d++) { sizes[d] = opd_sizes(t)[d] + (d != 2); }
    wide = last_of(opd_zeros(opd_ints_of(sizes, opd_ndim(t)), opd_dtype(t)));
    for (d = 0; d < opd_ndim(t) && wide; d++) { wide = opd_narrow(wide, d, 0, opd_sizes(t)[d]); }
    return wide ? opd_copy_(wide, t) : NULL;
}

//-- one call in one layout --------------------------------------------------------------------------------------------

typedef struct outcome {
    int nresults, ngrads;
    opd_tensor *results[MOST_RESULTS], *grads[MOST_WORDS], *last[MOST_WORDS], *into[MOST_WORDS];
    bool failed;
} outcome;
static opd_tensor **slots[MOST_WORDS];            /* of the floating-point tensors */
static bool wanted[MOST_WORDS];                   /* has a gradient in PyTorch */

/* Lays out the tensors of the case.  Returns the number of floating-point tensors, or -1. */
static int lay_out(op_case *c, int layout) {
    int i, k, at = 0, n = 0;
    for (i = 0; i < c->nargs; i++) {
        opd_value *v = &c->args[i];
        opd_tensor **from = v->tag == OPD_TAG_TENSOR ? &v->u.t : c->lists[i].tensors;
        for (k = 0; k < (v->tag == OPD_TAG_TENSOR ? 1 : v->tag == OPD_TAG_TENSORS ? v->n : 0); k++) {
            if (!from[k]) { continue; }
            from[k] = laid(from[k], layout, at++);
            if (!from[k]) { return -1; }
            if (opd_dtype_is_floating(opd_dtype(from[k])) && n < MOST_WORDS) { slots[n++] = &from[k]; }
        }
    }
    return opd_ok() ? n : -1;
}
static int run(const op_case *c, opd_tensor **out) {
    opd_value rets[MOST_RESULTS];
    return opd_call_all((opd_op *)(uintptr_t)c->op, rets, c->args, c->nargs) ? -1 : results_of(c->op, rets, out);
}
/* Calls the operator with leaves, and differentiates its results: to `grads`, or into .grad and from there. */
static int differentiate(op_case *c, int n, bool last, bool into_grad, opd_tensor **grads) {
    opd_tensor *r[MOST_RESULTS], *on[MOST_WORDS], *g[MOST_WORDS], *cot[MOST_RESULTS];
    opd_backward_options o;
    int i, k = 0, m, rc;
    for (i = 0; i < n; i++) {
        grads[i] = NULL;
        if (!wanted[i]) { continue; }
        on[k++] = *slots[i] = opd_detach(*slots[i]);
        (void)opd_tensor_set_requires_grad(*slots[i], true);
    }
    m = opd_ok() ? run(c, r) : -1;
    for (i = rc = 0; i < m; i++) { if (opd_tensor_requires_grad(r[i])) { r[rc++] = r[i]; } }
    memset(&o, 0, sizeof o);
    for (i = 0; i < rc; i++) {
        op_case numbers;
        memset(&numbers, 0, sizeof numbers);
        numbers.seed = 40 + i;
        cot[i] = opd_tensor_new(opd_ints_of(opd_sizes(r[i]), opd_ndim(r[i])), OPD_FLOAT64);
        for (int64_t e = 0; cot[i] && e < opd_numel(cot[i]); e++) { case_put(cot[i], e, case_number(&numbers, 0, 0, e)); }
        cot[i] = opd_to_dtype(cot[i], opd_dtype(r[i]));
        if (last && is_image(r[i])) { cot[i] = last_of(cot[i]); }
    }
    if (m < 0 || rc == 0 || k == 0) { return m < 0 ? -1 : 0; }
    o.grad_outputs = cot;
    o.allow_unused = true;
    if (into_grad ? opd_backward_with(r, rc, &o) : opd_autograd_grad(r, rc, on, k, &o, g)) { return -1; }
    for (i = k = 0; i < n; i++) {
        if (!wanted[i]) { continue; }
        grads[i] = into_grad ? opd_tensor_grad(*slots[i]) : g[k];
        k++;
    }
    return 0;
}
/* Reads the case again, in a layout and a dtype, and calls it in all ways. */
static bool call_it(op_case *c, const opd_op *op, const char *text, int layout, opd_scalar_type dtype, bool derive, outcome *o) {
    int n, way;
    memset(o, 0, sizeof *o);
    memset(c, 0, sizeof *c);
    c->op = op;
    c->dtype = dtype;
    if (!say(case_read_next(c, &text), "the case cannot be read")) { return false; }
    n = lay_out(c, layout);
    o->nresults = n < 0 ? -1 : run(c, o->results);
    if (o->nresults < 0) { o->failed = true; opd_error_clear(); return true; }
    if (!derive) { return true; }
    o->ngrads = n;
    for (way = 0; way < 3; way++) {
        if (!went_well(differentiate(c, n, way == 1, way == 2, way == 0 ? o->grads : way == 1 ? o->last : o->into))) { return false; }
    }
    return true;
}

//-- comparing ---------------------------------------------------------------------------------------------------------

/* Compares two lists of words.  `zeros`: no gradient is the same as a gradient of zeros. */
static bool same_lists(const char *have, const char *want, bool zeros) {
    while (*have && *want) {
        const size_t n = strcspn(have, ","), m = strcspn(want, ",");
        if ((n != m || memcmp(have, want, n) != 0) && !(zeros && n == 1 && *have == '-')) { return false; }
        have += n + (have[n] == ',');
        want += m + (want[m] == ',');
    }
    return *have == *want;
}
static void same_words(const op_case *c, opd_tensor *const *t, int n, const char *want, int part, const char *name) {
    static char have[WORDS], text[2 * WORDS];
    if (strcmp(want, "x") == 0 || is_listed(c, part)) { return; }
    words_of(t, n, have);
    (void)snprintf(text, sizeof text, "%s: %s, not %s", name, have, want);
    (void)say(same_lists(have, want, part != RESULTS), text);
}
static double tolerance_of(opd_scalar_type dtype) {
    if (!opd_dtype_is_floating(dtype)) { return 0; }
    return dtype == OPD_FLOAT64 ? 1e-10 : dtype == OPD_FLOAT32 ? 2e-5 : dtype == OPD_FLOAT16 ? 6e-3 : 5e-2;
}
static void same_numbers(opd_tensor *const *a, opd_tensor *const *b, int n) {
    int i;
    for (i = 0; i < n; i++) { if (a[i] && b[i]) { same_values(a[i], b[i], tolerance_of(opd_dtype(b[i]))); } }
}
/* Calls the operator with tensors without memory: their results have the strides of the real ones. */
static void check_fake(op_case *c, const outcome *o) {
    opd_tensor *fake[MOST_RESULTS];
    char want[WORDS], have[WORDS];
    int i, k, n;
    for (i = 0; i < c->nargs; i++) {
        opd_value *v = &c->args[i];
        opd_tensor **from = v->tag == OPD_TAG_TENSOR ? &v->u.t : c->lists[i].tensors;
        for (k = 0; k < (v->tag == OPD_TAG_TENSOR ? 1 : v->tag == OPD_TAG_TENSORS ? v->n : 0); k++) {
            if (!from[k]) { continue; }
            from[k] = opd_empty_strided_full(opd_ints_of(opd_sizes(from[k]), opd_ndim(from[k])),
                                             opd_ints_of(opd_strides(from[k]), opd_ndim(from[k])), OPD_V((int64_t)opd_dtype(from[k])),
                                             OPD_NONE, opd_value_device(opd_device_make(OPD_META, -1)), OPD_NONE);
        }
    }
    n = run(c, fake);
    if (n != o->nresults) { opd_error_clear(); return; }      /* the result depends on the numbers */
    words_of(fake, n, have);
    words_of(o->results, n, want);
    (void)say(strcmp(have, want) == 0, "the fake has other strides");
}
static bool compiles;                             /* whether graphs are compiled, too */
/* Compiles a recorded operator, which gives the same results. */
static void check_compiled(const op_case *c, const opd_graph *g, opd_tensor *const *in, int n, const outcome *o, const char *want) {
    if (is_listed(c, COMPILED)) { return; }
    opd_compiled *const compiled = opd_graph_compile(g, NULL);
    opd_tensor *got[OPD_TRANSFORM_OUTPUTS];
    char have[WORDS], text[2 * WORDS + 50];
    for (int k = 0; k < 2 && compiled; k++) {     /* the first run may be uncompiled */
        if (!went_well(opd_compiled_function(compiled, in, n, got))) { break; }
        words_of(got, o->nresults, have);
        (void)snprintf(text, sizeof text, "compiled: %s, not %s", have, want);
        (void)say(strcmp(have, want) == 0, text);
        same_numbers(got, o->results, o->nresults);
    }
    opd_compiled_free(compiled);
}
/* Records the operator as a graph, which gives the same results; maps it over two equal examples. */
static void check_recorded(op_case *c, const outcome *o) {
    opd_tensor *in[OPD_MAX_ARGS], *two[OPD_MAX_ARGS], *got[OPD_TRANSFORM_OUTPUTS], *pair[2];
    char want[WORDS], have[WORDS];
    opd_graph *g;
    int i, n = 0;
    for (i = 0; i < c->nargs; i++) {
        if (c->args[i].tag == OPD_TAG_TENSORS) { return; }
        if (c->args[i].tag == OPD_TAG_TENSOR) { in[n++] = c->args[i].u.t; }
    }
    if ((g = opd_graph_trace(case_call, c, in, n, NULL)) != NULL) {
        if (went_well(opd_graph_run(g, in, n, got, o->nresults))) {
            words_of(got, o->nresults, have);
            words_of(o->results, o->nresults, want);
            (void)say(strcmp(have, want) == 0, "the graph gives other strides");
            same_numbers(got, o->results, o->nresults);
        }
        if (compiles) { check_compiled(c, g, in, n, o, want); }
        opd_graph_free(g);
    }
    opd_error_clear();
    for (i = 0; i < n; i++) {
        pair[0] = pair[1] = in[i];
        two[i] = opd_stack(opd_tensors_of(pair, 2), 0);
    }
    if (opd_vmap(case_call, c, two, n, NULL, got, OPD_TRANSFORM_OUTPUTS) == o->nresults) {
        for (i = 0; i < o->nresults; i++) { got[i] = opd_select(got[i], 0, 1); }
        same_numbers(got, o->results, o->nresults);
    }
    opd_error_clear();
}
/* Reads word `at` of a list with commas. */
static bool has_word(const char *list, int at) {
    for (; at > 0 && list; at--) { list = strchr(list, ','); if (list) { list++; } }
    return list && *list != '-' && *list != 'x';
}

//-- the walk ----------------------------------------------------------------------------------------------------------

static bool quick_compiler;
/* One layout of one call.  words: for the results, for the gradients in two ways, and for .grad. */
static void check_layout(const opd_op *op, const char *text, int layout, char words[4][WORDS], opd_scalar_type dtype) {
    static op_case c;
    static outcome plain, here;
    const bool derive = strcmp(words[1], "x") != 0, numbers = !is_random(op);
    int i;
    OPD_SCOPED;
    for (i = 0; i < MOST_WORDS; i++) { wanted[i] = has_word(words[1], i); }
    if (!call_it(&c, op, text, NONE, dtype, derive, &plain) || !call_it(&c, op, text, layout, dtype, derive, &here)) { return; }
    if (plain.failed) { return; }                 /* not for this dtype, or an error in every layout */
    if (!say(!here.failed && here.nresults == plain.nresults, "fails in this layout")) { return; }
    if (strcmp(words[0], "x") != 0) { same_words(&c, here.results, here.nresults, words[0], RESULTS, "results"); }
    if (numbers) { same_numbers(here.results, plain.results, here.nresults); }
    if (derive) {
        same_words(&c, here.grads, here.ngrads, words[1], GRADS, "gradients");
        same_words(&c, here.last, here.ngrads, words[2], GRADS_LAST, "gradients of channels last");
        same_words(&c, here.into, here.ngrads, words[3], INTO_GRAD, ".grad");
        same_numbers(here.grads, plain.grads, here.ngrads);
        same_numbers(here.last, plain.grads, here.ngrads);
        same_numbers(here.into, plain.grads, here.ngrads);
    }
    if ((dtype != OPD_FLOAT32 && opd_dtype_is_floating(dtype)) || opd_schema_is_mutable(opd_op_schema(op)) || !numbers) { return; }
    if (!call_it(&c, op, text, layout, dtype, false, &here) || here.failed) { return; }
    check_recorded(&c, &here);
    check_fake(&c, &here);
}
/* Writes the words of a dtype of whole numbers: the words of float32, unless `more` says that its results lie
   otherwise. */
static void words_of_dtype(const char *more, opd_scalar_type dtype, char of_floats[LAYOUTS][4][WORDS], char words[LAYOUTS][4][WORDS]) {
    char name[32];
    const char *at;
    int layout, i, length;
    bool refused = false;
    for (layout = 0; layout < LAYOUTS; layout++) {
        strcpy(words[layout][0], of_floats[layout][0]);
        for (i = 1; i < 4; i++) { strcpy(words[layout][i], "x"); }
    }
    (void)snprintf(name, sizeof name, "| %s ", opd_dtype_name(dtype));
    if (!more || !(at = strstr(more, name))) { return; }
    at += strlen(name);
    for (layout = 0; layout < LAYOUTS; layout++, at += length) {
        length = 0;
        refused = refused || sscanf(at, "%1199s%n", words[layout][0], &length) != 1 || words[layout][0][0] == '|';
        if (refused) { strcpy(words[layout][0], "x"); }
    }
}
/* Reads the words of float32.  Returns what follows them, which is NULL at the end of the line, or fails. */
static bool read_words(const char *part, char words[LAYOUTS][4][WORDS], const char **more) {
    char name[16];
    int layout;
    for (layout = 0; layout < LAYOUTS; layout++) {
        char (*const w)[WORDS] = words[layout];
        if (!say(part && sscanf(part + 3, "%15s %1199s %1199s %1199s %1199s", name, w[0], w[1], w[2], w[3]) == 5 &&
                 strcmp(name, layout_names[layout]) == 0, "the line cannot be read")) { return false; }
        part = strstr(part + 3, " | ");
    }
    *more = part;
    return true;
}
static void check_line(char *line, int number) {
    static char words[LAYOUTS][4][WORDS], whole[LAYOUTS][4][WORDS];
    char *part = strstr(line, " | "), *text = part ? part + 3 : NULL;
    const char *more;
    const opd_op *op;
    int layout, d;
    if (!say(part != NULL, line)) { return; }
    *part = 0;
    part = strstr(text, " | ");
    op = opd_find(line);
    if (!went_well(op ? 0 : -1) || !read_words(part, words, &more)) { return; }
    *part = 0;
    for (layout = 0; layout < LAYOUTS; layout++) {
        (void)snprintf(what, sizeof what, "%s %s, channels last: %s", line, text, layout_names[layout]);
        compiles = quick_compiler && (!check_compiles_a_share() || (number + layout) % LAYOUTS == 0);
        for (d = 0; d < 4; d++) {
            if (d == 0 || (number + layout) % 3 == d - 1) { check_layout(op, text, layout, words[layout], dtypes[d]); }
        }
    }
    compiles = quick_compiler && !check_compiles_a_share();
    for (d = 0; d < 4; d++) {
        if (check_compiles_a_share() && number % 4 != d) { continue; }
        words_of_dtype(more, whole_dtypes[d], words, whole);
        for (layout = 0; layout < LAYOUTS; layout++) {
            (void)snprintf(what, sizeof what, "%s %s of %s, channels last: %s", line, text, opd_dtype_name(whole_dtypes[d]),
                           layout_names[layout]);
            check_layout(op, text, layout, whole[layout], whole_dtypes[d]);
        }
    }
}
static void quiet(void *user, int is_error, const char *text) { (void)user; (void)is_error; (void)text; }
TEST(layouts_of_pytorch) {
    static char line[1 << 14];
    FILE *const f = check_golden("layouts.txt");
    const char *const cc = getenv("CC");
    char was[200];
    int number = 0;
    CHECK_OR_RETURN(f != NULL);
    (void)snprintf(was, sizeof was, "%s", cc ? cc : "cc");
    (void)opd_vmap_fallback_set(OPD_VMAP_FALLBACK_SILENT);
    opd_log_set(quiet, NULL);
    quick_compiler = check_cache_begin() && system("tcc -v >/dev/null 2>&1") == 0;
    if (quick_compiler) { (void)setenv("CC", "tcc", 1); }
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        if (line[0] != '#' && check_shares(line, check_compiles_a_share() ? 8 : 1)) { check_line(line, number); }
        number++;
    }
    (void)fclose(f);
    if (quick_compiler) { (void)setenv("CC", was, 1); }
    CHECK(number > 400);
}

//-- quantized tensors of scripts --------------------------------------------------------------------------------------

static const char quantized_source[] =
    "def f(x: Tensor, y: Tensor):\n"
    "    w = torch.full([3], 0.1)\n"
    "    v = torch.full([3], 0.2)\n"
    "    v4 = torch.full([4], 0.2)\n"
    "    k = torch.full([3], 7, dtype=4)\n"
    "    f = torch.quantize_per_tensor(torch.full([4, 3, 3, 3], 0.4), 0.1, 0, 13)\n"
    "    m = torch.quantize_per_tensor(torch.full([4, 5], 0.4), 0.1, 0, 13)\n"
    "    q = torch.quantize_per_tensor(x, 0.05, 60, 13)\n"
    "    p = torch.quantize_per_tensor(y, 0.04, 90, 13)\n"
    "    pw = torch.quantize_per_tensor(w, 0.1, 0, 13)\n"
    "    return %s%s.dequantize()\n";
/* Where the layout differs from PyTorch's: its kernels of convolutions and of batch_norm write channels last whatever
   their inputs are; clone, padding, and norms of one image at a time do not know here that a tensor is quantized. */
static const char *const quantized_listed[] = {"clone(", "nn.functional.pad(", "ops.quantized.conv2d", "ops.quantized.batch_norm2d",
                                               "ops.quantized.instance_norm", NULL};
/* Runs an expression with quantized tensors in one layout.  Returns its result, or NULL and sets an error. */
static opd_tensor *quantized_result(const opd_script *script, int layout) {
    static const int64_t sizes[] = {2, 3, 4, 5};
    opd_value in[2], result;
    int i, e;
    for (i = 0; i < 2; i++) {
        opd_tensor *t = opd_empty(opd_ints_of(sizes, 4), OPD_FLOAT32);
        for (e = 0; t && e < 120; e++) { opd_data_f32(t)[e] = (float)(case_random(7 + i, e) * 4 - 2); }
        t = t ? laid(t, layout, i) : NULL;
        if (!t) { return NULL; }
        in[i] = opd_value_tensor(t);
    }
    return opd_script_run(script, "f", in, 2, &result) ? NULL : result.u.t;
}
static void check_quantized(const char *text, const char *words) {
    char source[1500], want[100], have[100], says[300];
    opd_script *script;
    opd_tensor *plain = NULL, *here;
    int layout, length, i;
    bool is_in_list = false;
    OPD_SCOPED;
    for (i = 0; quantized_listed[i]; i++) {
        is_in_list = is_in_list || strncmp(text, quantized_listed[i], strlen(quantized_listed[i])) == 0;
    }
    (void)snprintf(source, sizeof source, quantized_source, "torch.", text);
    script = opd_script_compile(source, NULL);
    (void)snprintf(what, sizeof what, "%s", text);
    for (layout = 0; went_well(script ? 0 : -1) && layout < LAYOUTS; layout++, words += length) {
        (void)snprintf(what, sizeof what, "%s, channels last: %s", text, layout_names[layout]);
        if (!say(sscanf(words, "%99s%n", want, &length) == 1, "the line cannot be read")) { break; }
        here = quantized_result(script, layout);
        if (!went_well(here ? 0 : -1)) { break; }
        plain = layout == NONE ? here : plain;
        word_of(here, have, sizeof have);
        (void)snprintf(says, sizeof says, "%s, not %s", have, want);
        (void)say(is_in_list || strcmp(have, want) == 0, says);
        same_values(here, plain, 0);
    }
    opd_script_free(script);
}
TEST(quantized_layouts_of_pytorch) {
    char line[400];
    FILE *const f = check_golden("layouts_quantized.txt");
    int number = 0;
    CHECK_OR_RETURN(f != NULL);
    while (fgets(line, sizeof line, f)) {
        char *const words = strstr(line, " | ");
        if (line[0] == '#' || !words || !check_visits((size_t)number++, 45)) { continue; }
        *words = 0;
        check_quantized(line, words + 3);
    }
    (void)fclose(f);
    CHECK_INT(number, 45);
}
CHECK_MAIN()
