/* Every operator, with the sample arguments of its descriptor, with sizes, strides, dims and counts near the limits
   of int64, on tensors without memory, plain and under vmap.  Each call gives an error, or results whose number of
   elements is the product of their sizes.  The undefined-behaviour sanitizer finds overflows.  One case per
   operator. */
#include "../inside.h"
#include "../cases.h"

static const int64_t ends[] = {((int64_t)1 << 62) - 1, (int64_t)1 << 61, (int64_t)1 << 32, ((int64_t)1 << 31) - 1, 0,
                               INT64_MAX, INT64_MIN, -((int64_t)1 << 62), INT64_MAX - 1, 1};
enum { ENDS = sizeof ends / sizeof *ends };

static opd_tensor *meta_of(const int64_t *sizes, int ndim, opd_scalar_type dtype) {
    return opd_tensor_new_on(opd_ints_of(sizes, ndim), dtype, opd_device_make(OPD_META, -1));
}
/* t with size n in dim d (all: everywhere), or expanded to it. */
static opd_tensor *sized(opd_tensor *t, int d, int64_t n, bool all, bool expanded) {
    int64_t sizes[OPD_MAX_DIMS], ones[OPD_MAX_DIMS];
    opd_tensor *r;
    int i;
    for (i = 0; i < opd_ndim(t); i++) { sizes[i] = ones[i] = all || i == d ? n : opd_sizes(t)[i]; }
    for (i = 0; i < opd_ndim(t) && expanded; i++) { if (all || i == d) { ones[i] = 1; } }
    r = meta_of(ones, opd_ndim(t), opd_dtype(t));
    return r && expanded ? opd_expand(r, opd_ints_of(sizes, opd_ndim(t))) : r;
}
static void map_it(op_case *c);
static void call_really(op_case *c) {
    opd_value rets[MOST_RESULTS];
    const int rc = opd_call_all((opd_op *)(uintptr_t)c->op, rets, c->args, c->nargs);
    (void)say((rc < 0) == !opd_ok(), "return code and error differ");
}
static void call_it(op_case *c) {
    opd_tensor *out[MOST_RESULTS];
    opd_value rets[MOST_RESULTS];
    int i, d, n, rc = 0;
    if (!opd_ok()) { opd_error_clear(); return; }
    map_it(c);
    OPD_FAKE_MODE { rc = opd_call_all((opd_op *)(uintptr_t)c->op, rets, c->args, c->nargs); }
    (void)say((rc < 0) == !opd_ok(), "return code and error differ");
    n = rc < 0 ? 0 : results_of(c->op, rets, out);
    opd_error_clear();
    for (i = 0; i < n; i++) {
        double product = 1;
        for (d = 0; d < opd_ndim(out[i]); d++) {
            product *= (double)opd_sizes(out[i])[d];
            (void)say(opd_sizes(out[i])[d] >= 0, "a negative size");
        }
        (void)say(fabs(product - (double)opd_numel(out[i])) <= 1e-6 * product, "the sizes are not the number of elements");
    }
}
/* Its rule for many examples, which are three. */
static void map_it(op_case *c) {
    opd_tensor *in[OPD_MAX_ARGS], *out[MOST_RESULTS];
    int i, n = 0, rc = 0;
    for (i = 0; i < c->nargs; i++) {
        int64_t sizes[OPD_MAX_DIMS];
        opd_tensor *const t = c->args[i].tag == OPD_TAG_TENSOR ? c->args[i].u.t : NULL;
        if (!t) { continue; }
        sizes[0] = 3;
        memcpy(sizes + 1, opd_sizes(t), sizeof *sizes * (size_t)opd_ndim(t));
        in[n++] = opd_expand(opd_unsqueeze(t, 0), opd_ints_of(sizes, opd_ndim(t) + 1));
    }
    if (n && opd_ok()) {
        OPD_FAKE_MODE { rc = opd_vmap(case_call, c, in, n, NULL, out, MOST_RESULTS); }
        (void)say((rc < 0) == !opd_ok(), "return code and error differ in vmap");
    }
    opd_error_clear();
}
static bool read_meta(op_case *c, const opd_op *op, const char *text) {
    c->op = op;
    c->dtype = OPD_FLOAT32;
    c->meta = true;
    return case_read_next(c, &text);
}
static void large_tensors(op_case *c, const opd_op *op, const char *text) {
    int i, k, d, e, way;
    for (e = 0; e < 5; e++) {
        for (way = 0; way < 4; way++) {           /* one dim or all, of memory or expanded; and all tensors so */
            OPD_SCOPE {
                bool any = false;
                if (!read_meta(c, op, text)) { continue; }
                for (i = 0; i < c->nargs; i++) {
                    opd_value *v = &c->args[i];
                    opd_tensor **list = v->tag == OPD_TAG_TENSOR ? &v->u.t : c->lists[i].tensors;
                    for (k = 0; k < (v->tag == OPD_TAG_TENSORS ? v->n : v->tag == OPD_TAG_TENSOR); k++) {
                        if (list[k] && opd_ndim(list[k])) { list[k] = sized(list[k], 0, ends[e], way & 1, way > 1); any = true; }
                    }
                }
                if (any) { call_it(c); }
                opd_error_clear();
            }
        }
        for (i = 0; i < c->nargs; i++) {
            for (d = 0; d < 4; d++) {
                OPD_SCOPE {
                    if (read_meta(c, op, text) && c->args[i].tag == OPD_TAG_TENSOR && d < opd_ndim(c->args[i].u.t)) {
                        c->args[i].u.t = sized(c->args[i].u.t, d, ends[e], false, false);
                        call_it(c);
                    }
                    opd_error_clear();
                }
            }
        }
    }
}
/* Tensors of the CPU that have no element, one dim being 0 and the others large: kernels that are run, in vmap too. */
static void empty_tensors(op_case *c, const opd_op *op, const char *text) {
    const char *at;
    int i, j, d, e, only, large;
    for (e = 0; e < 3; e++) {                     /* the first two only bytes may have */
        const int64_t most = e == 2 ? (int64_t)1 << 60 : ends[e];
        for (only = -1; only < OPD_MAX_ARGS && (only < 0 || only < c->nargs); only++) {      /* -1: all tensors */
            for (d = 0; d < 4; d++) {
                OPD_SCOPE {
                    bool any = false;
                    c->op = op;
                    c->dtype = OPD_FLOAT32;
                    c->meta = false;
                    at = text;
                    if (!case_read_next(c, &at)) { continue; }
                    for (i = 0; i < c->nargs; i++) {
                        opd_tensor *const t = c->args[i].tag == OPD_TAG_TENSOR ? c->args[i].u.t : NULL;
                        int64_t sizes[OPD_MAX_DIMS], ones[OPD_MAX_DIMS];
                        if (!t || (only >= 0 && only != i) || d >= opd_ndim(t)) { continue; }
                        large = d == opd_ndim(t) - 1 ? 0 : opd_ndim(t) - 1;
                        for (j = 0; j < opd_ndim(t); j++) {
                            sizes[j] = j == d ? 0 : j == large ? most : opd_sizes(t)[j];
                            ones[j] = j == large && j != d ? 1 : sizes[j];
                        }
                        c->args[i].u.t = opd_expand(opd_tensor_new(opd_ints_of(ones, opd_ndim(t)),
                                                                   e == 2 ? opd_dtype(t) : OPD_UINT8),
                                                    opd_ints_of(sizes, opd_ndim(t)));
                        any = true;
                    }
                    if (any) {
                        call_it(c);
                        if (opd_ok()) { call_really(c); }
                    }
                    opd_error_clear();
                }
            }
        }
    }
}
static void large_numbers(op_case *c, const opd_op *op, const char *text) {
    int i, k, e;
    for (e = 0; e < ENDS; e++) {
        for (i = 0; i < OPD_MAX_ARGS; i++) {
            for (k = -1; k < 3; k++) {            /* -1: every element of a list */
                bool more = false;
                OPD_SCOPE {
                    if (read_meta(c, op, text) && i < c->nargs) {
                        opd_value *v = &c->args[i];
                        int m;
                        more = true;
                        if (v->tag == OPD_TAG_INT && k < 0) { v->u.i = ends[e]; call_it(c); }
                        if (v->tag == OPD_TAG_INTS && k < v->n) {
                            for (m = 0; m < v->n; m++) { if (k < 0 || m == k) { c->lists[i].ints[m] = ends[e]; } }
                            call_it(c);
                        }
                    }
                    opd_error_clear();
                }
                if (!more) { break; }
            }
            if (i >= c->nargs) { break; }
        }
    }
}
/* t's memory with strides that no element is reached by: in dims of size 1 (way 0: all of them, 1: one), or everywhere
   beside a dim of size 0 (2), or in what a step leaves one element of (3). */
static opd_tensor *far_apart(opd_tensor *t, int way, int dim, int64_t stride) {
    int64_t sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS];
    int i;
    if (way == 3) { return opd_slice(t, dim, OPD_NONE, OPD_NONE, stride); }
    for (i = 0; i < opd_ndim(t); i++) {
        sizes[i] = way == 0 ? 1 : i == dim ? way == 1 : opd_sizes(t)[i];
        strides[i] = i == dim || way != 1 ? stride : opd_strides(t)[i];
    }
    return opd_as_strided(t, opd_ints_of(sizes, opd_ndim(t)), opd_ints_of(strides, opd_ndim(t)));
}
static void far_strides(op_case *c, const opd_op *op, const char *text) {
    static const int64_t far[] = {INT64_MAX, ((int64_t)1 << 62) + 1, (int64_t)1 << 61, ((int64_t)1 << 59) - 1};
    const char *at;
    int i, d, e, way, only;
    for (e = 0; e < 4 * 4; e++) {
        way = e / 4;
        for (only = -1; only < OPD_MAX_ARGS && (only < 0 || only < c->nargs); only++) {      /* -1: all tensors */
            for (d = 0; d < 4; d++) {
                OPD_SCOPE {
                    bool any = false;
                    c->op = op;
                    c->dtype = OPD_FLOAT32;
                    c->meta = false;
                    at = text;
                    if (!case_read_next(c, &at)) { continue; }
                    for (i = 0; i < c->nargs; i++) {
                        opd_tensor *const t = c->args[i].tag == OPD_TAG_TENSOR ? c->args[i].u.t : NULL;
                        if (!t || (only >= 0 && only != i) || d >= opd_ndim(t)) { continue; }
                        c->args[i].u.t = far_apart(t, way, d, far[e % 4]);
                        any = true;
                    }
                    if (any && opd_ok()) {
                        call_it(c);
                        if (opd_ok()) { call_really(c); }
                    }
                    opd_error_clear();
                }
                if (way == 0) { break; }
            }
        }
    }
}
/* What has no memory for a number has results that are as large, or strides that reach as far. */
static void call_with_number(op_case *c) {
    opd_tensor *out[MOST_RESULTS];
    opd_value rets[MOST_RESULTS];
    int i, n, large = strstr(opd_op_name(c->op), "strided") != NULL;
    const bool before = opd_ok();
    call_really(c);
    if (!before || opd_error_code() != OPD_ERROR_MEMORY) { return; }
    opd_error_clear();
    OPD_FAKE_MODE { n = opd_call_all((opd_op *)(uintptr_t)c->op, rets, c->args, c->nargs); }
    n = n < 0 ? -1 : results_of(c->op, rets, out);
    for (i = 0; i < n; i++) { large += (double)opd_numel(out[i]) * 8 >= (double)inside_most; }
    (void)say(n < 0 || large, "the results are small, the memory that it needs is not");
}
/* Numbers from the ends on tensors that have memory. */
static void large_numbers_really(op_case *c, const opd_op *op, const char *text) {
    const char *at;
    int i, k, e;
    for (e = 0; e < ENDS; e++) {
        for (i = 0; i < OPD_MAX_ARGS; i++) {
            for (k = -1; k < 3; k++) {
                bool more = false;
                OPD_SCOPE {
                    c->op = op;
                    c->dtype = OPD_FLOAT32;
                    c->meta = false;
                    at = text;
                    if (case_read_next(c, &at) && i < c->nargs) {
                        opd_value *v = &c->args[i];
                        int m;
                        more = true;
                        if (v->tag == OPD_TAG_INT && k < 0) { v->u.i = ends[e]; call_with_number(c); }
                        if (v->tag == OPD_TAG_INTS && k < v->n) {
                            for (m = 0; m < v->n; m++) { if (k < 0 || m == k) { c->lists[i].ints[m] = ends[e]; } }
                            call_with_number(c);
                        }
                    }
                    opd_error_clear();
                }
                if (!more) { break; }
            }
            if (i >= c->nargs) { break; }
        }
    }
}
/* Passes numbers that do not fit an integer, if the operator takes a float or a list of floats. */
static void large_floats(op_case *c, const opd_op *op, const char *text) {
    static const double far[] = {1e300, -1e300, NAN, INFINITY, -INFINITY, 9.3e18, 4e18};
    const char *at;
    int i, m, e, real;
    for (e = 0; e < 7 * 2; e++) {
        real = e / 7;
        for (i = 0; i < OPD_MAX_ARGS; i++) {
            bool more = false;
            OPD_SCOPE {
                c->op = op;
                c->dtype = OPD_FLOAT32;
                c->meta = !real;
                at = text;
                if (case_read_next(c, &at) && i < c->nargs) {
                    opd_value *v = &c->args[i];
                    more = true;
                    if (v->tag == OPD_TAG_FLOAT) { v->u.d = far[e % 7]; }
                    for (m = 0; v->tag == OPD_TAG_FLOATS && m < v->n; m++) { c->lists[i].floats[m] = far[e % 7]; }
                    if (v->tag == OPD_TAG_FLOAT || v->tag == OPD_TAG_FLOATS) { (real ? call_really : call_it)(c); }
                }
                opd_error_clear();
            }
            if (!more) { break; }
        }
    }
}
static void test_operator(void *arg) {
    static op_case c;
    const opd_op *op = (const opd_op *)arg;
    const char *text = cases_of(op);
    for (; *text; text += strcspn(text, ";")) {
        text += *text == ';';
        (void)snprintf(what, sizeof what, "    %s \"%.*s\"", opd_op_name(op), (int)strcspn(text, ";"), text);
        large_tensors(&c, op, text);
        empty_tensors(&c, op, text);
        large_numbers(&c, op, text);
        far_strides(&c, op, text);
        large_numbers_really(&c, op, text);
        large_floats(&c, op, text);
    }
    CHECK_OK();
}
TEST(views_begin_within_their_memory_whatever_the_strides) {
    static const float numbers[4] = {3, 1, 2, 0};
    opd_tensor *x = opd_tensor_from(numbers, OPD_INTS(4), OPD_FLOAT32), *y, *z;
    y = opd_as_strided(x, OPD_INTS(1, 2), OPD_INTS(INT64_MAX, 1));
    z = opd_slice(y, 0, opd_value_int(1), OPD_NONE, 1);
    CHECK(z && opd_numel(z) == 0 && opd_sizes(z)[1] == 2 && opd_tensor_offset(z) >= 0 && opd_tensor_offset(z) <= 4);
    z = z ? opd_slice(opd_as_strided(x, OPD_INTS(1, 0), OPD_INTS(INT64_MAX, INT64_MAX)), 0, opd_value_int(1), OPD_NONE, INT64_MAX) : NULL;
    CHECK(z && opd_numel(z) == 0 && opd_tensor_offset(z) >= 0 && opd_tensor_offset(z) <= 4);
    z = opd_msort(y);                             /* torch: msort of one row is that row */
    CHECK(z && opd_data_f32(z)[0] == 3 && opd_data_f32(z)[1] == 1);
    z = opd_diagonal(opd_as_strided(x, OPD_INTS(1, 1), OPD_INTS(INT64_MAX, INT64_MAX)));
    CHECK(z && opd_numel(z) == 1 && opd_data_f32(z)[0] == 3);
    CHECK_OK();
}
static void add_operators(void) {
    inside_most = (size_t)1 << 20;                /* what is larger is not to be had: lists of parts, and real memory */
    add_builtin_operators(test_operator, has_cases);
}
CHECK_MAIN_ADD(add_operators)
