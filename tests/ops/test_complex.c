/* Complex numbers: results and gradients of operators for complex sample arguments equal PyTorch's
   (golden/complex.txt, made by golden/make_complex.py); tangents agree with gradients. */
#include "../../opdispatch.h"
#include "../cases.h"

static const char *where;
static int refused, answered, refused_grads, grads_right, tangents_right;
static bool shown(void) {
    static int show = -1;
    if (show < 0) { show = getenv("OPD_SHOW_REFUSED") != NULL; }
    return show;
}
static bool wrong(const char *text, double have, double want) {
    printf("    %s: %s", where, text);
    if (have < want || have > want || isnan(have) != isnan(want)) { printf(" %.9g, not %.9g", have, want); }
    printf("\n");
    CHECK(!"the answer is PyTorch's");
    return false;
}
static bool is_floating(const opd_tensor *t) { return opd_dtype_is_floating(opd_dtype(t)) || opd_dtype_is_complex(opd_dtype(t)); }
static bool number_is(double have, double want) {
    return (isnan(want) && isnan(have)) || (isinf(want) && isinf(have) && (want > 0) == (have > 0)) ||
           fabs(want - have) <= 1e-6 * (1 + fabs(want));
}
/* Element i as its parts. */
static void parts_of(const opd_tensor *t, int64_t i, double *parts) {
    const double *p = (const double *)(const void *)((const char *)opd_data(t) + case_offset(t, i));
    const float *f = (const float *)(const void *)p;
    parts[0] = opd_dtype(t) == OPD_COMPLEX128 ? p[0] : opd_dtype(t) == OPD_COMPLEX64 ? f[0] : case_get(t, i);
    parts[1] = opd_dtype(t) == OPD_COMPLEX128 ? p[1] : opd_dtype(t) == OPD_COMPLEX64 ? f[1] : 0;
}
/* One tensor against "dtype [sizes] elements". */
static bool same_tensor(opd_tensor *t, const char *text) {
    char dtype[16], *end;
    double parts[2];
    int d, used = 0;
    if (sscanf(text, " %15s [%n", dtype, &used) != 1) { return wrong("the sample cannot be read", 0, 0); }
    if (!t) { return wrong("no tensor", 0, 0); }
    if (strcmp(dtype, opd_dtype_name(opd_dtype(t))) != 0) { return wrong(opd_dtype_name(opd_dtype(t)), 0, 0); }
    text += used;
    for (d = 0; *text != ']'; d++) {
        int64_t size = strtoll(text, &end, 10);
        if (d >= opd_ndim(t) || opd_sizes(t)[d] != size) { return wrong("size", d < opd_ndim(t) ? (double)opd_sizes(t)[d] : -1, (double)size); }
        text = *end == ',' ? end + 1 : end;
    }
    if (d != opd_ndim(t)) { return wrong("dimensions", opd_ndim(t), d); }
    text++;
    for (int64_t i = 0; i < opd_numel(t); i++) {
        parts_of(t, i, parts);
        for (int k = 0; k < (opd_dtype_is_complex(opd_dtype(t)) ? 2 : 1); k++, text = end) {
            double want = strtod(text, &end);
            if (!number_is(parts[k], want) || end == text) { return wrong("element", parts[k], want); }
        }
    }
    return true;
}
static bool same_number(const opd_value *v, const char *text) {
    double want[2] = {0, 0};
    double have = v->tag == OPD_TAG_FLOAT ? v->u.d : v->tag == OPD_TAG_COMPLEX ? v->u.c[0] : (double)v->u.i;
    if (sscanf(text, " number [] %lf %lf", &want[0], &want[1]) < 1 || !number_is(have, want[0]) ||
        !number_is(v->tag == OPD_TAG_COMPLEX ? v->u.c[1] : 0, want[1])) { return wrong("number", have, want[0]); }
    return true;
}
/* Makes every floating argument one that is computed when it is read: complex ones conjugated, real ones and every other
   complex one negated. */
static bool lazily;
static opd_tensor *lazy_of(opd_tensor *t, int i) {
    if (t && opd_dtype_is_complex(opd_dtype(t))) {
        t = opd_conj(opd_conj_physical(t));
        CHECK(opd_tensor_is_conj(t));
        if (i % 2 == 0) { return t; }
    }
    return t && is_floating(t) ? opd__neg_view(opd_neg(t)) : t;
}
static void make_lazy(op_case *c) {
    for (int i = 0; lazily && i < c->nargs; i++) {
        if (c->args[i].tag == OPD_TAG_TENSOR) { c->args[i].u.t = lazy_of(c->args[i].u.t, i); }
        for (int k = 0; c->args[i].tag == OPD_TAG_TENSORS && k < c->args[i].n; k++) {
            c->lists[i].tensors[k] = lazy_of(c->lists[i].tensors[k], i + k);
        }
    }
}
static opd_tensor *read_of(opd_tensor *t) { return t ? opd_resolve_neg(opd_resolve_conj(t)) : t; }
/* Returns the next of the texts that are separated by bars, or NULL at the end. */
static char *next_text(char **rest) {
    char *text = *rest, *end = text ? strstr(text, " | ") : NULL;
    if (end) { *end = 0; }
    *rest = end ? end + 3 : NULL;
    return text;
}
static bool same_results(const op_case *c, const opd_value *rets, char **rest) {
    for (int i = 0; i < opd_schema_nreturns(opd_op_schema(c->op)); i++) {
        const int n = rets[i].tag == OPD_TAG_TENSORS ? rets[i].n : rets[i].tag == OPD_TAG_NONE ? 0 : 1;
        for (int k = 0; k < n; k++) {
            char *text = next_text(rest);
            if (!text) { return wrong("more results", 0, 0); }
            if (rets[i].tag == OPD_TAG_TENSOR ? !same_tensor(read_of(rets[i].u.t), text) : rets[i].tag == OPD_TAG_TENSORS
                ? !same_tensor(read_of(rets[i].u.tensors[k]), text) : !same_number(&rets[i], text)) { return false; }
        }
    }
    return true;
}

/* Numbers like t, those of make_complex.py for seed. */
static opd_tensor *weights_like(const opd_tensor *t, int seed) {
    const opd_scalar_type dtype = opd_dtype_is_complex(opd_dtype(t)) ? OPD_COMPLEX128 : OPD_FLOAT64;
    opd_tensor *weights = opd_tensor_new(opd_ints_of(opd_sizes(t), opd_ndim(t)), dtype);
    for (int64_t i = 0; weights && i < opd_numel(t); i++) {
        case_put(weights, i, floor(case_random(seed, i) * 128) / 64 - 1);
        if (dtype == OPD_COMPLEX128) { case_put_imaginary(weights, i, seed); }
    }
    return weights && dtype != opd_dtype(t) ? opd_to_dtype(weights, opd_dtype(t)) : weights;
}
/* The real inner product: the sum of Re(conj(x) y). */
static double inner(const opd_tensor *x, const opd_tensor *y) {
    double sum = 0, first[2], second[2];
    for (int64_t i = 0; i < opd_numel(x); i++) {
        parts_of(x, i, first);
        parts_of(y, i, second);
        sum += first[0] * second[0] + first[1] * second[1];
    }
    return sum;
}
static bool note_refused(int *count, const char *what_was) {
    if (shown()) { printf("refused %s: %s: %s\n", what_was, where, opd_error_message()); }
    opd_error_clear();
    ++*count;
    return true;
}
/* Gradients of the case against the sample's; then <weights, J v> = <J* weights, v> for the tangents. */
static bool check_gradients(op_case *c, const char *text, char *rest) {
    opd_value rets[16];
    opd_tensor *outs[MOST_RESULTS], *ends[MOST_RESULTS], *weights[MOST_RESULTS], *grads[CASE_LIST];
    opd_backward_options allow;
    int nouts, n = 0;
    if (!rest || strncmp(rest, "!", 1) == 0 || strncmp(rest, "none", 4) == 0) { return true; }
    if (!case_read_next(c, &text)) { return wrong("the case cannot be read again", 0, 0); }
    for (int i = 0; i < c->nfloating; i++) { opd_tensor_set_requires_grad(c->floating[i], true); }
    make_lazy(c);
    if (opd_call_all((opd_op *)(uintptr_t)c->op, rets, c->args, c->nargs)) { return note_refused(&refused_grads, "recording"); }
    nouts = results_of(c->op, rets, outs);
    for (int i = 0; i < nouts; i++) {
        if (!opd_tensor_requires_grad(outs[i]) || !is_floating(outs[i])) { continue; }
        ends[n] = outs[i];
        weights[n] = weights_like(outs[i], 900 + n);
        n++;
    }
    if (n == 0) { return wrong("no result requires a gradient", 0, 0); }
    memset(&allow, 0, sizeof allow);
    allow.grad_outputs = weights;
    allow.allow_unused = true;
    if (opd_autograd_grad(ends, n, c->floating, c->nfloating, &allow, grads)) { return note_refused(&refused_grads, "gradient"); }
    for (int i = 0; i < c->nfloating; i++) {
        char *want = next_text(&rest);
        if (!want) { return wrong("fewer gradients", 0, 0); }
        if (strcmp(want, "none") == 0 ? grads[i] && inner(grads[i], grads[i]) > 0 : grads[i] != NULL && !same_tensor(grads[i], want)) {
            printf("    gradient %d\n", i);
            return false;
        }
        if (strcmp(want, "none") != 0 && !grads[i]) { return wrong("no gradient", 0, 0); }
    }
    grads_right++;
    return true;
}
static bool check_tangents(op_case *c, const char *text) {
    opd_value rets[16];
    opd_tensor *outs[MOST_RESULTS], *grads[CASE_LIST], *tangents[CASE_LIST], *weights[MOST_RESULTS], *ends[MOST_RESULTS], *tangent;
    opd_backward_options allow;
    double forward = 0, backward = 0;
    int nouts, n = 0;
    bool differentiable[MOST_RESULTS] = {false};
    opd_scope scope;
    if (!case_read_next(c, &text)) { return false; }
    for (int i = 0; i < c->nfloating; i++) {
        tangents[i] = weights_like(c->floating[i], 700 + i);
        opd_tensor_set_requires_grad(c->floating[i], true);
    }
    if (opd_call_all((opd_op *)(uintptr_t)c->op, rets, c->args, c->nargs)) { return note_refused(&refused_grads, "recording"); }
    nouts = results_of(c->op, rets, outs);
    for (int i = 0; i < nouts; i++) {
        differentiable[i] = opd_tensor_requires_grad(outs[i]) && is_floating(outs[i]);
        if (differentiable[i]) {
            ends[n] = outs[i];
            weights[n] = weights_like(outs[i], 900 + n);
            n++;
        }
    }
    if (n == 0) { return true; }
    memset(&allow, 0, sizeof allow);
    allow.grad_outputs = weights;
    allow.allow_unused = true;
    if (opd_autograd_grad(ends, n, c->floating, c->nfloating, &allow, grads)) { opd_error_clear(); return true; }
    for (int i = 0; i < c->nfloating; i++) { if (grads[i]) { backward += inner(grads[i], tangents[i]); } }
    if (opd_dual_level_begin()) { return false; }
    scope = opd_scope_open();
    for (int i = 0; i < c->nargs; i++) {
        const int m = c->args[i].tag == OPD_TAG_TENSORS ? c->args[i].n : c->args[i].tag == OPD_TAG_TENSOR;
        for (int k = 0; k < m; k++) {
            opd_tensor **at = c->args[i].tag == OPD_TAG_TENSOR ? &c->args[i].u.t : &c->lists[i].tensors[k];
            for (int j = 0; j < c->nfloating; j++) {
                if (*at == c->floating[j]) { *at = opd_dual_new(opd_detach(*at), tangents[j]); break; }
            }
        }
    }
    make_lazy(c);
    if (opd_ok() && opd_call_all((opd_op *)(uintptr_t)c->op, rets, c->args, c->nargs) == 0) {
        nouts = results_of(c->op, rets, outs);
        n = 0;
        for (int i = 0; i < nouts; i++) {
            if (!differentiable[i]) { continue; }
            (void)opd_dual_unpack(outs[i], &tangent);
            if (tangent) { forward += inner(weights_like(outs[i], 900 + n), read_of(tangent)); }
            n++;
        }
    }
    if (!opd_ok()) { (void)note_refused(&refused_grads, "tangent"); forward = backward; }
    else { tangents_right++; }
    opd_scope_close(&scope);
    opd_dual_level_end(0);
    if (!(fabs(forward - backward) <= 1e-6 * (1 + fabs(forward)))) { return wrong("tangents and gradients", forward, backward); }
    return true;
}

static bool check_sample(op_case *c, char *line) {
    opd_value rets[16];
    char name[100], text[400], *rest = line, *cut, *gradients;
    const char *at = text;
    where = line;
    cut = next_text(&rest);
    (void)snprintf(name, sizeof name, "%s", cut);
    (void)snprintf(text, sizeof text, "%s", next_text(&rest));
    c->kinds = next_text(&rest);
    (void)snprintf(what, sizeof what, "%s | %s | %s", name, text, c->kinds);
    where = what;
    c->op = opd_find_quiet(name);
    if (!c->op) { return wrong("the operator is gone", 0, 0); }
    if (!case_read_next(c, &at)) { return wrong("the case cannot be read", 0, 0); }
    make_lazy(c);
    const bool failed = opd_call_all((opd_op *)(uintptr_t)c->op, rets, c->args, c->nargs) != 0;
    if (*rest == '!') {
        const bool right = failed || !opd_ok();
        if (right && shown()) { printf("both refuse %s: %s\n", what, opd_error_message()); }
        opd_error_clear();
        return right || wrong("answers what PyTorch refuses", 0, 0);
    }
    if (failed) { return note_refused(&refused, "forward"); }
    gradients = strstr(rest, " | grad | ");
    if (gradients) {
        *gradients = 0;
        gradients += strlen(" | grad | ");
    }
    if (!same_results(c, rets, &rest)) { return false; }
    answered++;
    if (!check_gradients(c, text, gradients)) { return false; }
    return !gradients || *gradients == '!' || check_tangents(c, text);
}

static void check_samples(void) {
    static char line[1 << 16];
    static op_case c;
    FILE *f = check_golden("complex.txt");
    const char *only = getenv("OPD_ONLY");
    CHECK_OR_RETURN(f != NULL);
    answered = refused = refused_grads = grads_right = tangents_right = 0;
    memset(&c, 0, sizeof c);
    c.dtype = OPD_FLOAT64;
    while (fgets(line, sizeof line, f)) {
        opd_scope scope = opd_scope_open();
        line[strcspn(line, "\n")] = 0;
        if (!only || strstr(line, only)) { CHECK(check_sample(&c, line)); }
        opd_scope_close(&scope);
    }
    (void)fclose(f);
    if (shown()) {
        printf("%d answered, %d refused; gradients: %d right, %d refused; %d tangents\n", answered, refused, grads_right, refused_grads,
               tangents_right);
    }
    CHECK(answered > 1200);
    CHECK(refused < 30);
    CHECK_INT(refused_grads, 0);
}
TEST(samples_of_pytorch_with_complex_tensors) { check_samples(); }
TEST(samples_with_tensors_that_are_computed_when_they_are_read) {
    lazily = true;
    check_samples();
    lazily = false;
}
/* Results at branch cuts, at NaN, near zeros, and for numbers whose squares or powers overflow or underflow; with and
   without the mode of same bits. */
static void check_edges(void) {
    static const struct { const char *name; double in[2], want[2]; } edges[] = {
        {"aten::log", {1, NAN}, {NAN, NAN}}, {"aten::log", {-2, -0.0}, {0.6931471805599453, -3.141592653589793}},
        {"aten::sqrt", {-4, -0.0}, {0, -2}}, {"aten::sqrt", {1e200, 1e200}, {1.09868411346781e100, 4.550898605622274e99}},
        {"aten::abs", {1e200, 1e200}, {1.4142135623730951e200, 0}}, {"aten::atan", {1e-200, 1}, {0.7853981633974483, 230.60508288968455}},
        {"aten::atanh", {2, 0}, {0.5493061443340548, 1.5707963267948966}}, {"aten::exp", {-INFINITY, 1}, {0, 0}},
        {"aten::acos", {2, -0.0}, {0, 1.3169578969248166}}, {"aten::tanh", {700, 1}, {1, 0}},
        {"aten::reciprocal", {1e200, 1e200}, {5e-201, -5e-201}}, {"aten::log1p", {1e-200, 0}, {1e-200, 0}},
        {"aten::atanh", {-0.999999999, 0}, {-10.708206522644144, 0}}, {"aten::atan", {0, 0.999999999}, {0, 10.708206522644144}},
        {"aten::expm1", {1e-20, 0}, {1e-20, 0}}, {"aten::exp", {710, 0.7853981633974483}, {1.5796728482882015e+308, 1.5796728482882013e+308}},
        {"aten::log", {1.5e308, 1.5e308}, {709.9482473405542, 0.7853981633974483}},
        {"aten::log", {0.6, 0.8}, {2.2204460492503132e-17, 0.9272952180016123}},
        {"aten::log", {0.28, 0.96}, {-2.6645352591003756e-17, 1.2870022175865687}},
        {"aten::log1p", {-1.6, 0.8}, {8.881784197001252e-17, 2.2142974355881813}},
        {"aten::sinh", {712, 1e-5}, {INFINITY, 8.253556325805613e+303}}, {"aten::cosh", {-712, 1e-5}, {INFINITY, -8.253556325805613e+303}},
        {"aten::sin", {1e-5, 712}, {8.253556325805613e+303, INFINITY}}, {"aten::expm1", {712, 1e-5}, {INFINITY, 1.6507112651611226e+304}},
        {"aten::atanh", {1e200, 1e200}, {5e-201, 1.5707963267948966}}, {"aten::atan", {0.5, 1e300}, {1.5707963267948966, 1e-300}},
        {"aten::exp", {0, 1e22}, {0.523214785395139, -0.8522008497671888}}, {"aten::tanh", {0.25, 1e300}, {0.6598111508979233, 1.191742602228996}}};
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
        opd_scope scope = opd_scope_open();
        opd_tensor *x = opd_tensor_from(edges[i].in, opd_ints_of(NULL, 0), OPD_COMPLEX128);
        opd_value arg = opd_value_tensor(x);
        opd_tensor *y = opd_call_op((opd_op *)(uintptr_t)opd_find_quiet(edges[i].name), &arg, 1);
        double have[2] = {0, 0};
        CHECK(y != NULL);
        if (y) { parts_of(y, 0, have); }
        for (int k = 0; k < 2; k++) {
            const double want = edges[i].want[k];
            if (!(isnan(want) ? isnan(have[k]) : isinf(want) ? have[k] == want : fabs(have[k] - want) <= 1e-14 * fabs(want))) {
                printf("%s(%g, %g): %.17g, not %.17g\n", edges[i].name, edges[i].in[0], edges[i].in[1], have[k], want);
                CHECK(!"the edge is right");
            }
        }
        opd_scope_close(&scope);
    }
}
TEST(functions_at_their_edges) {
    check_edges();
    const bool was = opd_same_bits_set(true);
    check_edges();
    (void)opd_same_bits_set(was);
}
static opd_tensor *pairs(const double *parts, int64_t count) {
    return opd_tensor_from(parts, opd_ints_of(&count, 1), OPD_COMPLEX128);
}
/* Whether element i is that number. */
static void is_number(const opd_tensor *t, int64_t i, double re, double im) {
    double have[2] = {NAN, NAN};
    CHECK(t != NULL);
    if (t) { parts_of(t, i, have); }
    CHECK_NEAR(have[0], re, 1e-12);
    CHECK_NEAR(have[1], im, 1e-12);
}
static int vdot_of(void *user, opd_tensor *const *in, int nin, opd_tensor **out) {
    (void)user;
    (void)nin;
    return (out[0] = opd_vdot(in[0], in[1])) ? 1 : -1;
}
TEST(imaginary_parts_are_not_lost) {
    static const double ones[] = {0, 1, 0, 1}, some[] = {1, 2, 3, -1, 0.5, 1, 2, 2}, number[2] = {1, 2}, i_alone[2] = {0, 1};
    const int64_t square[2] = {2, 2};
    opd_tensor *x = pairs(ones, 2), *y = pairs(some, 4), *out, *in[2];
    out = opd_to_dtype(x, OPD_BOOL);
    CHECK(out && case_get(out, 0) > 0 && case_get(out, 1) > 0);
    out = opd_prod_full(x, opd_value_dtype(OPD_FLOAT32));
    is_number(out, 0, 0, 0);
    out = opd_reshape(y, opd_ints_of(square, 2));
    in[0] = in[1] = out;
    CHECK(opd_vmap(vdot_of, NULL, in, 2, NULL, &out, 1) == 1);
    is_number(out, 0, 15, 0);
    is_number(out, 1, 9.25, 0);
    in[0] = opd_zeros(opd_ints_of(square, 1), OPD_FLOAT32);
    in[1] = opd_to_dtype(in[0], OPD_COMPLEX128);
    out = opd_addr_full(opd_ones_like(opd_reshape(y, opd_ints_of(square, 2))), in[1], in[1], opd_value_complex(i_alone), opd_value_int(1));
    is_number(out, 3, 0, 1);
    out = opd_complex(opd_neg(in[0]), opd_neg(in[0]));
    CHECK(out && signbit(((const float *)opd_data(out))[0]) && signbit(((const float *)opd_data(out))[1]));
    out = opd_isclose_full(opd_mul_Scalar(x, opd_value_double(NAN)), opd_mul_Scalar(x, opd_value_double(NAN)), 1e-5, 1e-8, true);
    CHECK(out && case_get(out, 0) > 0);
    y = pairs(some, 2);
    (void)opd_tensor_set_requires_grad(x, true);
    (void)opd_tensor_set_requires_grad(y, true);
    CHECK(opd_backward(opd_sum(opd_real(opd_lerp_Scalar(x, y, opd_value_complex(number))))) == 0);
    is_number(opd_tensor_grad(x), 0, 0, 2);
    is_number(opd_tensor_grad(y), 0, 1, -2);
    x = opd_zeros_like(opd_detach(x));
    (void)opd_tensor_set_requires_grad(x, true);
    CHECK(opd_backward(opd_sum(opd_angle(x))) == 0);
    is_number(opd_tensor_grad(x), 0, 0, 0);
}
TEST(imaginary_parts_are_refused_by_real_numbers) {
    static const double ones[] = {0, 1, 0, 1}, number[2] = {1, 2};
    const int64_t square[2] = {2, 2};
    opd_tensor *real = opd_ones(opd_ints_of(square, 2), OPD_FLOAT32);
    const opd_value value = opd_value_complex(number);
    CHECK(!opd_addmm_full(real, real, real, opd_value_int(1), value));
    CHECK_ERROR(OPD_ERROR_DTYPE, "value cannot be converted to float32 without overflow");
    CHECK(!opd_addcmul(real, real, real, value));
    CHECK_ERROR(OPD_ERROR_DTYPE, "value cannot be converted to float32 without overflow");
    CHECK(!opd_abs_(pairs(ones, 2)));
    CHECK_ERROR(OPD_ERROR_DTYPE, "In-place abs");
}
/* conj and imag are views; is_conj, is_neg and the values equal PyTorch's. */
TEST(conjugates_are_views) {
    static const double numbers[] = {1, 2, -3, 4, 5, -6, 0, 1};
    const int64_t square[2] = {2, 2};
    double parts[2];
    opd_tensor *x = opd_tensor_from(numbers, opd_ints_of(square, 2), OPD_COMPLEX128), *y = opd_conj(x), *z = opd_imag(y);
    CHECK(opd_tensor_is_conj(y) && !opd_tensor_is_neg(y) && !opd_tensor_is_conj(x) && opd_tensor_is_neg(z) && !opd_tensor_is_neg(opd_real(y)));
    CHECK(opd_tensor_is_conj(opd_t(y)) && opd_tensor_is_conj(opd_select(y, 0, 1)) && opd_tensor_is_conj(opd_detach(y)) && opd_tensor_is_conj(opd_contiguous(y)));
    CHECK(!opd_tensor_is_conj(opd_clone(y)) && !opd_tensor_is_conj(opd_contiguous(opd_t(y))) && !opd_tensor_is_conj(opd_empty_like(y)) &&
          !opd_tensor_is_conj(opd_conj(y)) && !opd_tensor_is_conj(opd_mul(y, y)) && !opd_tensor_is_conj(opd_resolve_conj(y)));
    CHECK(opd_data(y) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "lazily conjugated or negated view");
    CHECK(opd_data_f64(z) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "lazily conjugated or negated view");
    CHECK(!opd_view_as_real(y));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "unresolved conjugated tensors");
    CHECK(!opd_view_dtype(y, OPD_FLOAT64));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "not supported for conjugate view tensors");
    CHECK(opd_item_f64(opd_select(opd_select(z, 0, 0), 0, 1)) == -4);
    /* written through: z is -imag(x), y conj(x) */
    CHECK(opd_mul_Scalar_(y, opd_value_complex(numbers)) == y);       /* times 1+2i: conj(x) (1+2i) */
    parts_of(opd_resolve_conj(y), 0, parts);
    CHECK(parts[0] == 5 && parts[1] == 0);        /* (1-2i) (1+2i) */
    parts_of(x, 1, parts);
    CHECK(parts[0] == 5 && parts[1] == 10);       /* conj((-3-4i) (1+2i)) = conj(5 - 10i) */
    CHECK(opd_fill_(z, opd_value_double(7)) == z);
    parts_of(x, 3, parts);
    CHECK(parts[1] == -7);
    CHECK(opd_copy_(y, opd_ones(opd_ints_of(square, 2), OPD_FLOAT32)) == y);
    parts_of(x, 2, parts);
    CHECK(parts[0] == 1 && parts[1] == 0);
    CHECK(opd_transpose_(y, 0, 1) == y && opd_tensor_is_conj(y));
}
/* Gradients through writes into a conjugate of a part, and given as conjugates; vmap; texts. */
TEST(conjugates_in_transforms_and_texts) {
    static const double numbers[] = {1, 2, -3, 4};
    const int64_t two[1] = {2};
    double parts[2];
    char text[200];
    opd_tensor *x = opd_tensor_from(numbers, opd_ints_of(two, 1), OPD_COMPLEX128);
    opd_tensor *w = opd_tensor_set_requires_grad(opd_tensor_from(numbers, opd_ints_of(two, 1), OPD_COMPLEX128), true);
    opd_tensor *base = opd_clone(x), *part = opd_conj(opd_narrow(base, 0, 1, 1));
    CHECK(opd_mul_(part, opd_narrow(w, 0, 0, 1)) == part);     /* base[1] = conj(conj(x[1]) w[0]) = x[1] conj(w[0]) */
    parts_of(opd_detach(base), 1, parts);
    CHECK(parts[0] == 5 && parts[1] == 10);       /* (-3+4i) (1-2i) */
    CHECK_INT(opd_backward(opd_sum(opd_real(base))), 0);
    parts_of(opd_tensor_grad(w), 0, parts);           /* d Re(x[1] conj(w)) : x[1] by the convention */
    CHECK(parts[0] == -3 && parts[1] == 4);
    opd_tensor *again = opd_tensor_set_requires_grad(opd_clone(x), true), *end = opd_mul_Scalar(again, opd_value_int(1));
    opd_tensor *seed = opd_conj(x);
    opd_backward_options options;
    memset(&options, 0, sizeof options);
    options.grad_outputs = &seed;
    CHECK_INT(opd_backward_with(&end, 1, &options), 0);
    w = again;
    CHECK(!opd_tensor_is_conj(opd_tensor_grad(w)));
    parts_of(opd_tensor_grad(w), 1, parts);
    CHECK(parts[0] == -3 && parts[1] == -4);
    CHECK(opd_tensor_print(opd_conj(x), text, sizeof text) > 0);
    CHECK(strstr(text, "1.-2.j") != NULL && strstr(text, "-3.-4.j") != NULL);
    CHECK(opd_tensor_print(opd_imag(opd_conj(x)), text, sizeof text) > 0);
    CHECK(strstr(text, "-2., -4.") != NULL);
}
/* The gradient of as_strided is linear: that of complex numbers has the gradients of their parts as its parts.  Rows are
   sizes and strides of the input, sizes and strides of the result, and the offset. */
TEST(gradients_of_strided_complex_numbers) {
    static const int64_t rows[][9] = {{2, 3, 3, 1, 2, 2, 3, 1, 1},       /* a part of a contiguous input */
                                      {2, 3, 3, 1, 2, 2, 1, 1, 0},       /* elements of the result share memory */
                                      {2, 3, 1, 1, 2, 2, 2, 1, 0},       /* elements of the input do */
                                      {2, 3, 0, 1, 2, 2, 1, 0, 0}, {2, 3, 1, 2, 2, 2, 1, 3, -1}, {2, 3, 3, 1, 2, 0, 1, 1, 2}};
    for (size_t at = 0; at < sizeof rows / sizeof *rows; at++) {
        for (int dtype = OPD_COMPLEX64; dtype <= OPD_COMPLEX128; dtype++) {
            const int64_t *row = rows[at];
            opd_tensor *grad = opd_randn(opd_ints_of(row + 4, 2), (opd_scalar_type)dtype), *parts[2], *back;
            for (int part = 0; part < 2; part++) {
                parts[part] = opd_as_strided_backward(opd_select(opd_view_as_real(grad), -1, part), opd_ints_of(row, 2),
                                                      opd_ints_of(row + 2, 2), opd_ints_of(row + 4, 2),
                                                      opd_ints_of(row + 6, 2), row[8]);
            }
            back = opd_as_strided_backward(grad, opd_ints_of(row, 2), opd_ints_of(row + 2, 2), opd_ints_of(row + 4, 2),
                                           opd_ints_of(row + 6, 2), row[8]);
            CHECK(back && opd_equal(back, opd_complex(parts[0], parts[1])));
        }
    }
    opd_tensor *grad = opd_randn(OPD_INTS(2), OPD_COMPLEX64);
    CHECK(!opd_as_strided_backward(grad, OPD_INTS(2), OPD_INTS(-1), OPD_INTS(2), OPD_INTS(1), 0));
    CHECK_ERROR(OPD_ERROR_SHAPE, "negative strides are not supported");
    CHECK(!opd_as_strided_backward(grad, OPD_INTS(2), OPD_INTS(1), OPD_INTS(2), OPD_INTS(1), INT64_MAX / 3));
    CHECK_ERROR(OPD_ERROR_SHAPE, "do not fit into memory");
    CHECK(!opd_as_strided_backward(grad, OPD_INTS(2), OPD_INTS(1, 1), OPD_INTS(2), OPD_INTS(1), 0));
    CHECK_ERROR(OPD_ERROR_SHAPE, "mismatch in length of strides and shape");
}
/* Functions with writes into a base and its conjugates and negatives, below: which of them. */
static opd_tensor *weighed(opd_tensor *t) {
    opd_tensor *pairs = opd_view_as_real(opd_resolve_conj(opd_mul(opd_mul(t, t), opd_conj(t))));
    return opd_add(opd_mul_Scalar(opd_sum(opd_select(pairs, -1, 0)), opd_value_int(2)), opd_sum(opd_select(pairs, -1, 1)));
}
static int writes(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int which = *(const int *)user;
    opd_tensor *base = opd_mul_Scalar(in[0], opd_value_double(0.5)), *turned = which & 1 ? opd_conj(base) : opd__neg_view(base);
    (void)n;
    if (which & 4) { turned = opd_conj(turned); }
    switch (which >> 3) {
    case 0: (void)opd_mul_(base, in[0]); break;
    case 1: (void)opd_mul_(turned, in[0]); break;
    case 2: (void)opd_exp_(opd_narrow(turned, 0, 0, 1)); break;
    case 3: (void)opd_mul_(opd_imag(turned), opd_real(in[0])); break;
    default: (void)opd_mul_(opd_narrow(opd_detach(turned), 0, 1, 1), opd_narrow(in[0], 0, 0, 1)); break;
    }
    out[0] = weighed(which & 2 ? base : turned);
    return out[0] ? 1 : -1;
}
static int checked_writes(void *user, opd_tensor *const *in, int n, opd_tensor **out) { return writes(user, in, n, out); }
static int grad_of_writes(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    return opd_grad(writes, user, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS);
}
/* Autograd, second derivatives, opd_grad, and opd_grad under vmap give the same gradient as finite
   differences. */
TEST(writes_through_conjugates_have_one_gradient) {
    static const double numbers[] = {1, 2, -3, 4, 0.5, -1};
    const int64_t two[1] = {2}, rows[2] = {3, 2};
    for (int which = 0; which < 40; which++) {
        opd_scope scope = opd_scope_open();
        double first[2], second[2];
        opd_tensor *x = opd_tensor_set_requires_grad(opd_tensor_from(numbers, opd_ints_of(two, 1), OPD_COMPLEX128), true);
        opd_tensor *out = NULL, *grads[OPD_TRANSFORM_OUTPUTS], *many[OPD_TRANSFORM_OUTPUTS], *all = NULL;
        const bool detached = which >> 3 == 4;    /* what is cut off has no gradient that differences could show */
        CHECK(writes(&which, &x, 1, &out) == 1);
        CHECK_INT(opd_backward(out), 0);
        CHECK(opd_grad(writes, &which, &x, 1, NULL, grads, OPD_TRANSFORM_OUTPUTS) == 1);
        CHECK(detached || opd_gradcheck(checked_writes, &which, &x, 1, NULL) == 0);
        all = opd_contiguous(opd_expand(opd_unsqueeze(opd_detach(x), 0), opd_ints_of(rows, 2)));
        for (int64_t i = 0; i < 2 && opd_ok(); i++) {
            parts_of(opd_tensor_grad(x), i, first);
            parts_of(grads[0], i, second);
            CHECK(number_is(second[0], first[0]) && number_is(second[1], first[1]));
        }
        CHECK(opd_vmap(grad_of_writes, &which, &all, 1, NULL, many, OPD_TRANSFORM_OUTPUTS) == 1);
        for (int64_t i = 0; i < 6 && opd_ok(); i++) {
            parts_of(opd_tensor_grad(x), i % 2, first);
            parts_of(opd_contiguous(many[0]), i, second);
            CHECK(number_is(second[0], first[0]) && number_is(second[1], first[1]));
        }
        if (!opd_ok()) { printf("    %d: %s\n", which, opd_error_message()); }
        opd_scope_close(&scope);
    }
}
/* Code that bypasses the dispatcher: saved tensors under allow_mutation, texts while an error is pending, fakes,
   checks. */
TEST(conjugates_are_seen_below_the_dispatcher) {
    static const double numbers[] = {1, 2, -3, 4}, half = -0.5;
    const int64_t two[1] = {2}, three[1] = {3};
    double parts[2];
    char text[200];
    opd_tensor *x = opd_tensor_from(numbers, opd_ints_of(two, 1), OPD_COMPLEX128), *y = opd_conj(x);
    opd_tensor *leaf = opd_tensor_set_requires_grad(opd_clone(x), true);
    CHECK_INT(opd_allow_mutation_begin(), 0);
    opd_tensor *c = opd_clone(leaf), *z = opd_mul(c, opd_conj(c));
    CHECK_INT(opd_backward(opd_real(opd_sum(opd_mul(z, z)))), 0);
    opd_allow_mutation_end();
    parts_of(opd_tensor_grad(leaf), 0, parts);    /* 4 |x|^2 x */
    CHECK(parts[0] == 20 && parts[1] == 40);
    CHECK(!opd_add(x, opd_ones(opd_ints_of(three, 1), OPD_FLOAT32)));
    CHECK(opd_tensor_print(y, text, sizeof text) > 0);
    CHECK_ERROR(OPD_ERROR_SHAPE, "must match");
    CHECK(strstr(text, "1.-2.j") != NULL);
    CHECK(opd_item_f64(opd_quantile(opd_tensor_from(numbers, opd_ints_of(two, 1), OPD_FLOAT64),
                                    opd__neg_view(opd_tensor_from(&half, opd_ints_of(NULL, 0), OPD_FLOAT64)), OPD_NONE, false)) == 1.5);
    opd_fake_block block = opd_fake_begin();
    CHECK(opd_tensor_is_conj(opd_fake_tensor(y)) && opd_tensor_is_neg(opd_imag(y)));
    opd_fake_end(&block);
}
/* Derivatives of what has branches and cuts, in every quadrant, beside differences. */
static int checked_call(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const opd_value args[2] = {opd_value_tensor(in[0]), opd_value_tensor(n > 1 ? in[1] : NULL)};
    out[0] = opd_call_op((opd_op *)user, args, n);
    return out[0] ? 1 : -1;
}
TEST(derivatives_in_every_quadrant) {
    static const char *const names[] = {"acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "exp2", "expm1",
        "log", "log10", "log1p", "log2", "reciprocal", "rsqrt", "sgn", "sigmoid", "sin", "sinc", "sinh", "sqrt", "square", "tan",
        "tanh", "abs", "angle", "mul.Tensor", "div.Tensor", "pow.Tensor_Tensor", "logaddexp"};
    static const double points[][2] = {{-2, 1}, {-1, -2}, {0.5, 0.3}, {3, -1}, {-0.4, 0.2}, {-0.3, -0.7}, {0.2, -0.9}, {-3, 0.1},
        {-0.1, -3}, {0.01, 2.5}, {1.5, -0.02}};
    size_t i;
    for (i = 0; i < sizeof names / sizeof *names; i++) {
        char name[40];
        OPD_SCOPED;
        opd_tensor *in[2] = {opd_clone(opd_view_as_complex(opd_tensor_from(points, OPD_INTS(11, 2), OPD_FLOAT64)))};
        (void)snprintf(name, sizeof name, "aten::%s", names[i]);
        opd_op *const op = opd_find(name);
        CHECK_OR_RETURN(op && in[0]);
        in[1] = opd_flip(in[0], OPD_INTS(0));
        CHECK(opd_tensor_set_requires_grad(in[0], true) && opd_tensor_set_requires_grad(in[1], true));
        if (opd_gradcheck(checked_call, op, in, opd_schema_nargs(opd_op_schema(op)), NULL)) {
            printf("    %s: %s\n", name, opd_error_message());
            CHECK(false);
            opd_error_clear();
        }
    }
}
CHECK_MAIN()

/* Signs and reciprocals of numbers whose squares overflow or underflow, one by one and sixteen at a time. */
TEST(signs_and_reciprocals_at_the_ends) {
    static const double r = 0.70710678118654752440;
    static const struct { double re, im, sign[2], inverse[2]; } rows[] = {
        {3, 4, {.6, .8}, {.12, -.16}}, {-4, 3, {-.8, .6}, {-.16, -.12}}, {0, 0, {0, 0}, {INFINITY, NAN}},
        {1e300, 1e300, {r, r}, {5e-301, -5e-301}}, {-1e-300, 1e-300, {-r, r}, {-5e299, -5e299}},
        {1e-320, 0, {1, 0}, {INFINITY, 0}}, {0, -2, {0, -1}, {0, .5}}, {1e200, 1e-200, {1, 0}, {1e-200, 0}},
        {INFINITY, 1, {NAN, 0}, {0, 0}}, {1, NAN, {NAN, NAN}, {NAN, NAN}}, {1e120, 1e-120, {1, 0}, {1e-120, 0}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int64_t count = 1; count <= 33; count += 16) {
            const double number[2] = {rows[i].re, rows[i].im};
            opd_tensor *one = opd_view_as_complex(opd_tensor_from(number, OPD_INTS(1, 2), OPD_FLOAT64));
            opd_tensor *many = opd_repeat(one, OPD_INTS(count));
            const double *sign = (const double *)opd_data(opd_sgn(many));
            const double *inverse = (const double *)opd_data(opd_reciprocal(many));
            for (int64_t k = 0; k < 2 * count; k++) {
                const double want = rows[i].sign[k % 2], other = rows[i].inverse[k % 2];
                CHECK(isnan(want) ? isnan(sign[k]) : fabs(sign[k] - want) <= 4e-16);
                CHECK(isnan(other) ? isnan(inverse[k]) : inverse[k] == other || fabs(inverse[k] - other) <= 4e-16 * fabs(other));
            }
        }
    }
}

static double drawn(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 40) / (1 << 23) - 1;
}
/* n numbers, some of them special, whose neighbours are `apart` numbers further on. */
static opd_tensor *numbers_apart(int64_t n, int64_t apart, opd_scalar_type dtype, uint64_t seed) {
    static const double special[] = {0, -0.0, INFINITY, -INFINITY, NAN, 1e30, -1e-30, 1, 1e-42};
    opd_tensor *parts = opd_zeros(OPD_INTS(n, apart, 2), dtype == OPD_COMPLEX64 ? OPD_FLOAT32 : OPD_FLOAT64);
    for (int64_t i = 0; i < 2 * n; i++) {
        const double x = i % 37 > 33 ? special[(size_t)(i / 2 + i % 2 * 4 + (int64_t)seed) % 9] : drawn(&seed);
        if (dtype == OPD_COMPLEX64) { opd_data_f32(parts)[i / 2 * 2 * apart + i % 2] = (float)x; }
        else { opd_data_f64(parts)[i / 2 * 2 * apart + i % 2] = x; }
    }
    return opd_select(opd_view_as_complex(parts), 1, 0);
}
static void same_parts(const char *name, opd_tensor *have, opd_tensor *want, double tolerance) {
    double first[2], second[2], most = 1;
    CHECK_OR_RETURN(have && want && opd_numel(have) == opd_numel(want) && opd_dtype(have) == opd_dtype(want));
    for (int64_t i = 0; i < opd_numel(want); i++) {
        parts_of(have, i, first);
        parts_of(want, i, second);
        most = fmax(fabs(second[0]), fabs(second[1]));           /* a part that cancels is as exact as the other one */
        for (int k = 0; k < 2; k++) {
            const double a = first[k], b = second[k];
            if (a == b || (isnan(a) && isnan(b))) { continue; }
            if (!(fabs(a - b) <= tolerance * most)) { printf("    %s: element %d is %.9g, not %.9g\n", name, (int)i, a, b); }
            CHECK(fabs(a - b) <= tolerance * most);
        }
    }
}
/* The loops for contiguous numbers give the same results as the loops for other layouts. */
TEST(arithmetic_of_neighbours_and_of_others) {
    typedef opd_tensor *unary(opd_tensor *);
    typedef opd_tensor *binary(opd_tensor *, opd_tensor *);
    static const struct { const char *name; unary *one; binary *two; bool total; } rows[] = {
        {"neg", opd_neg, NULL, false}, {"square", opd_square, NULL, false}, {"reciprocal", opd_reciprocal, NULL, false},
        {"sgn", opd_sgn, NULL, false}, {"abs", opd_abs, NULL, false}, {"conj", opd_conj_physical, NULL, false},
        {"add", NULL, opd_add, false}, {"sub", NULL, opd_sub, false}, {"mul", NULL, opd_mul, false}, {"div", NULL, opd_div, false},
        {"eq", NULL, opd_eq, false}, {"ne", NULL, opd_ne, false}, {"sum", opd_sum, NULL, true}, {"mean", opd_mean, NULL, true},
        {"dot", NULL, opd_dot, true}, {"vdot", NULL, opd_vdot, true}};
    static const int64_t counts[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 33, 100, 2055, 70000};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (int wide = 0; wide < 2; wide++) {
            const opd_scalar_type dtype = wide ? OPD_COMPLEX128 : OPD_COMPLEX64;
            for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                OPD_SCOPE {
                    const int64_t n = counts[c];
                    opd_tensor *x[2], *y[2], *out[2], *copies[3];
                    for (int k = 0; k < 2; k++) {
                        x[k] = numbers_apart(n, 1 + 2 * k, dtype, 1);
                        y[k] = numbers_apart(n, 1 + k, dtype, 2);
                        if (rows[i].total) {      /* a sum of specials says nothing */
                            x[k] = opd_nan_to_num_full(opd_sgn(x[k]), opd_value_double(.5), opd_value_none(), opd_value_none());
                            y[k] = opd_nan_to_num_full(opd_sgn(y[k]), opd_value_double(.5), opd_value_none(), opd_value_none());
                        }
                        if (k && rows[i].total) {
                            copies[0] = copies[1] = copies[2] = x[k];
                            x[k] = opd_select(opd_stack(opd_tensors_of(copies, 3), 1), 1, 0);
                            copies[0] = copies[1] = y[k];
                            y[k] = opd_select(opd_stack(opd_tensors_of(copies, 2), 1), 1, 0);
                        }
                        out[k] = rows[i].one ? rows[i].one(x[k]) : rows[i].two(x[k], y[k]);
                        CHECK(opd_ok());
                    }
                    same_parts(rows[i].name, out[0], out[1], wide ? 1e-13 : 2e-5);
                }
            }
        }
    }
}

/* A complex tensor without dims does not promote float32 to double precision (torch.result_type). */
TEST(numbers_without_dims_are_as_exact_as_tensors) {
    static const struct { opd_scalar_type dtype, with_wide, with_short; } rows[] = {
        {OPD_FLOAT32, OPD_COMPLEX64, OPD_COMPLEX64}, {OPD_BFLOAT16, OPD_COMPLEX64, OPD_COMPLEX64},
        {OPD_FLOAT64, OPD_COMPLEX128, OPD_COMPLEX128}, {OPD_INT64, OPD_COMPLEX128, OPD_COMPLEX64},
        {OPD_BOOL, OPD_COMPLEX128, OPD_COMPLEX64}, {OPD_COMPLEX64, OPD_COMPLEX64, OPD_COMPLEX64}};
    const double i[2] = {0, 1};
    opd_tensor *wide = opd_select(opd_view_as_complex(opd_tensor_from(i, OPD_INTS(1, 2), OPD_FLOAT64)), 0, 0);
    opd_tensor *narrow = opd_to_dtype(wide, OPD_COMPLEX64);
    CHECK_INT(opd_ndim(wide), 0);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        opd_tensor *x = opd_to_dtype(opd_tensor_from(i, OPD_INTS(2), OPD_FLOAT64), rows[k].dtype);
        CHECK_INT(opd_dtype(opd_mul(x, wide)), rows[k].with_wide);
        CHECK_INT(opd_dtype(opd_add(wide, x)), rows[k].with_wide);
        CHECK_INT(opd_dtype(opd_mul(narrow, x)), rows[k].with_short);
    }
}

/* Functions that are computed for 64 numbers at a time, among these some that are left to the function of one. */
TEST(functions_of_many_numbers_are_those_of_one) {
    typedef opd_tensor *unary(opd_tensor *);
    static const struct { const char *name; unary *one; } rows[] = {
        {"exp", opd_exp}, {"sigmoid", opd_sigmoid}, {"tanh", opd_tanh}, {"sin", opd_sin}, {"cos", opd_cos},
        {"asin", opd_asin}};
    static const double ends[] = {0, -0.0, 1e-310, -1e-20, 1, -350, 500, 720, 2e6, -1e300, HUGE_VAL, -HUGE_VAL, (double)NAN};
    enum { ENDS = sizeof ends / sizeof *ends, COUNT = 64 * 4 + 5 };
    uint64_t state = 3;
    double x[2 * COUNT];
    for (int i = 0; i < COUNT; i++) {
        x[2 * i] = 6 * drawn(&state) - 3;
        x[2 * i + 1] = 6 * drawn(&state) - 3;
        if (i < ENDS * ENDS && i % 3) {
            x[2 * i] = ends[i / ENDS];
            x[2 * i + 1] = ends[i % ENDS];
        }
    }
    opd_tensor *all = opd_view_as_complex(opd_tensor_from(x, OPD_INTS(COUNT, 2), OPD_FLOAT64));
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        opd_tensor *have = rows[k].one(all);
        CHECK(opd_ok());
        for (int i = 0; i < COUNT; i++) {
            OPD_SCOPE {
                double parts[2], wanted[2];
                parts_of(have, i, parts);
                parts_of(rows[k].one(opd_narrow(all, 0, i, 1)), 0, wanted);
                for (int part = 0; part < 2; part++) {
                    const double least = 1e-14 * fabs(wanted[part]), away = fabs(parts[part] - wanted[part]);
                    const bool same = parts[part] == wanted[part] && signbit(parts[part]) == signbit(wanted[part]);
                    if (!same && !(away <= least && isfinite(wanted[part])) && !(isnan(parts[part]) && isnan(wanted[part]))) {
                        printf("  %s(%g, %g), part %d: %.17g, not %.17g\n", rows[k].name, x[2 * i], x[2 * i + 1], part,
                               parts[part], wanted[part]);
                        CHECK(!"another number");
                    }
                }
            }
        }
    }
}

/* tanh, which is computed for many numbers at a time, is i * tan(-i * x), which is computed one by one. */
TEST(tanh_of_many_numbers) {
    static const double sizes[] = {1e-200, 1e-9, 0.3, 1, 3, 15, 25, 290};
    enum { SIZES = 8, COUNT = SIZES * 64 };
    uint64_t state = 9;
    double x[2 * COUNT], turned[2 * COUNT];
    for (int i = 0; i < COUNT; i++) {
        x[2 * i] = sizes[i % SIZES] * (2 * drawn(&state) - 1);
        x[2 * i + 1] = i % 5 ? 20 * drawn(&state) - 10 : 1.5707963267948966;
        turned[2 * i] = x[2 * i + 1];
        turned[2 * i + 1] = -x[2 * i];
    }
    opd_tensor *have = opd_tanh(opd_view_as_complex(opd_tensor_from(x, OPD_INTS(COUNT, 2), OPD_FLOAT64)));
    opd_tensor *want = opd_tan(opd_view_as_complex(opd_tensor_from(turned, OPD_INTS(COUNT, 2), OPD_FLOAT64)));
    CHECK_OK();
    for (int i = 0; i < COUNT; i++) {
        double parts[2], other[2];
        parts_of(have, i, parts);
        parts_of(want, i, other);
        CHECK(fabs(parts[0] + other[1]) <= 3e-15 * fabs(other[1]) && fabs(parts[1] - other[0]) <= 3e-15 * fabs(other[0]));
    }
}

/* Reciprocals of floats, 64 at a time where all of them are ordinary. */
TEST(reciprocals_of_many_floats) {
    enum { COUNT = 3 * 64 + 9, ODD = 150 };
    uint64_t state = 5;
    float x[2 * COUNT];
    for (int i = 0; i < 2 * COUNT; i++) { x[i] = (float)(drawn(&state) * (i % 7 ? 3 : 1e-30)); }
    x[2 * ODD] = INFINITY;
    opd_tensor *all = opd_view_as_complex(opd_tensor_from(x, OPD_INTS(COUNT, 2), OPD_FLOAT32)), *have = opd_reciprocal(all);
    CHECK_OK();
    for (int i = 0; i < COUNT; i++) {
        const double a = (double)x[2 * i], b = (double)x[2 * i + 1], size = a * a + b * b;
        const double want[2] = {i == ODD ? 0 : a / size, i == ODD ? 0 : -b / size};
        double parts[2];
        parts_of(have, i, parts);
        CHECK(fabs(parts[0] - want[0]) <= 6e-8 * fabs(want[0]) && fabs(parts[1] - want[1]) <= 6e-8 * fabs(want[1]));
    }
}
