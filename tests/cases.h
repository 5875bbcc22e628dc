/* cases.h: parses the sample arguments (`cases`) of an operator's descriptor, and makes tensors from them.

       [2,3]            a tensor of these sizes, with numbers between -2 and 2    [] has no dimensions
       [2,3]+ [2,3]u [2,3]g   positive numbers; numbers between 0 and 1; numbers greater than 1
       [3,3]d           square matrices with a large diagonal: regular, with a positive determinant
       [2,3]i5 [2,3]b   int64 numbers from 0 to 4; bool
       {[2],[2]}        a list of tensors        (1,2) (0.5,1.)  lists of numbers        (True,False) a list of bools
       2  1.5  True  None  'text'  float32       a dtype by its name
       name=value       a keyword argument       ; separates cases */
#ifndef OPD_TESTS_CASES_H
#define OPD_TESTS_CASES_H
#include "check.h"
#include "modes.h"

enum { CASE_CONTIGUOUS, CASE_TRANSPOSED, CASE_SLICED, CASE_ZERO, CASE_LAYOUTS };
#define CASE_LIST 16
typedef struct case_list {
    int64_t ints[CASE_LIST];
    double floats[CASE_LIST];
    bool bools[CASE_LIST];
    opd_tensor *tensors[CASE_LIST];
    char text[64];
} case_list;
typedef struct op_case {
    const opd_op *op;
    opd_scalar_type dtype;                        /* the dtype of tensors without i or b */
    int layout;
    bool smooth;                                  /* numbers without ties, for finite differences */
    bool meta;
    int nargs;                                    /* of the operator */
    opd_value args[OPD_MAX_ARGS];                 /* OPD_TAG_DEFAULT: not given */
    case_list lists[OPD_MAX_ARGS];
    int seed;
    int first_seed;                               /* the seed of the first tensor, minus 1; changes the numbers */
    const char *kinds;   /* NULL, or the dtypes of floating-point tensors in turn: C complex128, R float64 */
    int nfloating;                                /* number of floating-point tensors so far */
    opd_tensor *floating[CASE_LIST];              /* the tensors */
    const char *at;                               /* the remaining text */
    const char *wrong;                            /* what could not be parsed, or NULL */
} op_case;

static double case_random(int seed, int64_t i) {
    uint32_t x = (uint32_t)seed * 2654435761u + (uint32_t)i * 40503u + 12345u;
    x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16;
    return (double)(x >> 8) / 16777216.0;         /* [0, 1) */
}
/* Returns element i.  Unless smooth is set, it is a multiple of 1/64, which is exact in every floating-point dtype. */
static double case_number(const op_case *c, char kind, int range, int64_t i) {
    double r = case_random(c->seed, i), v;
    if (kind == 'i') { return floor(r * range); }
    if (kind == 'b') { return r < 0.5 ? 0 : 1; }
    v = kind == '+' ? 0.25 + r * 1.5 : kind == 'u' ? 0.1 + r * 0.8 : kind == 'g' ? 1.1 + r : r * 4 - 2;
    if (c->smooth) { return v + (v < 0 ? -0.013 : 0.013); }
    v = floor(v * 64) / 64;
    return v;
}

/* Returns the byte offset of element i in C order. */
static int64_t case_offset(const opd_tensor *t, int64_t i) {
    int64_t at = 0;
    int d;
    for (d = opd_ndim(t) - 1; d >= 0; d--) {
        int64_t n = opd_sizes(t)[d];
        at += (i % n) * opd_strides(t)[d];
        i /= n;
    }
    return at * (int64_t)opd_dtype_size(opd_dtype(t));
}
static void write_half(void *p, double v, opd_scalar_type dtype) {
    const float f = (float)v;
    OPD_SCOPE { memcpy(p, opd_data(opd_to_dtype(opd_tensor_from(&f, OPD_INTS(1), OPD_FLOAT32), dtype)), 2); }
}
static double read_half(const void *p, opd_scalar_type dtype) {
    double v = 0;
    OPD_SCOPE { v = opd_item_f64(opd_tensor_from(p, OPD_INTS(1), dtype)); }
    return v;
}
static void case_put(opd_tensor *t, int64_t i, double v) {
    char *p = (char *)opd_data(t) + case_offset(t, i);
    switch (opd_dtype(t)) {
    case OPD_FLOAT32: case OPD_COMPLEX64: *(float *)(void *)p = (float)v; break;
    case OPD_FLOAT64: case OPD_COMPLEX128: *(double *)(void *)p = v; break;
    case OPD_FLOAT16: write_half(p, v, OPD_FLOAT16); break;
    case OPD_BFLOAT16: write_half(p, v, OPD_BFLOAT16); break;
    case OPD_INT64: *(int64_t *)(void *)p = (int64_t)v; break;
    case OPD_INT32: *(int32_t *)(void *)p = (int32_t)v; break;
    case OPD_INT16: *(int16_t *)(void *)p = (int16_t)v; break;
    case OPD_INT8: *(int8_t *)(void *)p = (int8_t)v; break;
    case OPD_UINT8: *(uint8_t *)(void *)p = (uint8_t)(int64_t)v; break;
    case OPD_BOOL: *(bool *)(void *)p = v > 0; break;
    default: CHECK(!"a dtype that cases do not use");
    }
}
/* Writes the imaginary part of element i of a complex64 or complex128 tensor that has this seed. */
static void case_put_imaginary(opd_tensor *t, int64_t i, int seed) {
    char *p = (char *)opd_data(t) + case_offset(t, i);
    const double v = floor((case_random(seed + 500, i) * 4 - 2) * 64) / 64;
    if (opd_dtype(t) == OPD_COMPLEX64) { ((float *)(void *)p)[1] = (float)v; }
    else { ((double *)(void *)p)[1] = v; }
}
/* Returns element i of t in C order, or 0 for complex numbers. */
OPD_UNUSED static double case_get(const opd_tensor *t, int64_t i) {
    if (opd_tensor_is_neg(t)) { return -case_get(opd__neg_view((opd_tensor *)(uintptr_t)t), i); }
    const char *p = (const char *)opd_data(t) + case_offset(t, i);
    switch (opd_dtype(t)) {
    case OPD_FLOAT32: return (double)*(const float *)(const void *)p;
    case OPD_FLOAT64: return *(const double *)(const void *)p;
    case OPD_FLOAT16: return read_half(p, OPD_FLOAT16);
    case OPD_BFLOAT16: return read_half(p, OPD_BFLOAT16);
    case OPD_INT64: return (double)*(const int64_t *)(const void *)p;
    case OPD_INT32: return (double)*(const int32_t *)(const void *)p;
    case OPD_INT16: return (double)*(const int16_t *)(const void *)p;
    case OPD_INT8: return (double)*(const int8_t *)(const void *)p;
    case OPD_UINT8: return (double)*(const uint8_t *)(const void *)p;
    case OPD_BOOL: return *(const bool *)(const void *)p ? 1 : 0;
    default: return 0;
    }
}

/* Returns a tensor with these sizes and this layout, and undefined contents. */
OPD_UNUSED static opd_tensor *case_tensor(const int64_t *sizes, int ndim, opd_scalar_type dtype, int layout, bool meta) {
    int64_t big[OPD_MAX_DIMS], strides[OPD_MAX_DIMS];
    opd_tensor *t;
    int d;
    if (meta) { return opd_tensor_new_on(opd_ints_of(sizes, ndim), dtype, opd_device_make(OPD_META, -1)); }
    if (layout == CASE_CONTIGUOUS || layout == CASE_ZERO || ndim == 0) { return opd_tensor_new(opd_ints_of(sizes, ndim), dtype); }
    for (d = 0; d < ndim; d++) { big[d] = layout == CASE_TRANSPOSED ? sizes[ndim - 1 - d] : sizes[d] * (d == ndim - 1 ? 2 : 1) + 1; }
    t = opd_tensor_new(opd_ints_of(big, ndim), dtype);
    if (!t) { return NULL; }
    for (d = 0; d < ndim; d++) {
        strides[d] = layout == CASE_TRANSPOSED ? opd_strides(t)[ndim - 1 - d] : opd_strides(t)[d] * (d == ndim - 1 ? 2 : 1);
    }
    return opd_tensor_view(t, sizes, strides, ndim, 0);
}

//-- the parser --------------------------------------------------------------------------------------------------------

static void case_space(op_case *c) { while (*c->at == ' ' || *c->at == '\n') { c->at++; } }
static bool case_next_if(op_case *c, char x) {
    case_space(c);
    if (*c->at != x) { return false; }
    c->at++;
    return true;
}
static opd_tensor *case_read_tensor(op_case *c) {
    int64_t sizes[OPD_MAX_DIMS], i, n;
    int ndim = 0, range = 0;
    char kind = 0, *end;
    opd_scalar_type dtype = c->dtype;
    opd_tensor *t;
    while (!case_next_if(c, ']')) {
        sizes[ndim] = strtoll(c->at, &end, 10);
        if (end == c->at || ndim > 10) { c->wrong = c->at; return NULL; }
        if (c->layout == CASE_ZERO && sizes[ndim] == 2) { sizes[ndim] = 0; }
        ndim++;
        c->at = end;
        (void)case_next_if(c, ',');
    }
    if (*c->at && strchr("+ugibd", *c->at)) { kind = *c->at++; }
    if (kind == 'i') { range = (int)strtol(c->at, &end, 10); c->at = end; dtype = OPD_INT64; }
    if (kind == 'b') { dtype = OPD_BOOL; }
    if (c->kinds && kind != 'i' && kind != 'b') {
        dtype = c->kinds[c->nfloating % (int)strlen(c->kinds)] == 'C' ? OPD_COMPLEX128 : OPD_FLOAT64;
    }
    c->seed++;
    t = case_tensor(sizes, ndim, dtype, c->layout, c->meta);
    if (!t || c->meta) { return t; }
    for (i = 0, n = opd_numel(t); i < n; i++) {
        double large = kind == 'd' && i / sizes[ndim - 1] % sizes[ndim - 1] == i % sizes[ndim - 1] ? 8 : 0;
        case_put(t, i, case_number(c, kind, range, i) + large);
        if (dtype == OPD_COMPLEX128 || dtype == OPD_COMPLEX64) { case_put_imaginary(t, i, c->seed); }
    }
    if (c->kinds && kind != 'i' && kind != 'b' && c->nfloating < CASE_LIST) { c->floating[c->nfloating++] = t; }
    return t;
}
static bool case_word(op_case *c, const char *word) {
    size_t n = strlen(word);
    case_space(c);
    if (strncmp(c->at, word, n) != 0 || (c->at[n] >= 'a' && c->at[n] <= 'z') || (c->at[n] >= '0' && c->at[n] <= '9')) { return false; }
    c->at += n;
    return true;
}
static opd_value case_read(op_case *c, case_list *list);
static opd_value case_read_numbers(op_case *c, case_list *list) {
    int n = 0, kind = OPD_TAG_INT;
    while (!case_next_if(c, ')')) {
        opd_value v = case_read(c, list);
        if (c->wrong || n == CASE_LIST) { c->wrong = c->at; return opd_value_none(); }
        if (v.tag != OPD_TAG_INT) { kind = v.tag; }
        list->ints[n] = v.tag == OPD_TAG_FLOAT ? 0 : v.u.i;
        list->floats[n] = v.tag == OPD_TAG_FLOAT ? v.u.d : (double)v.u.i;
        list->bools[n++] = v.tag == OPD_TAG_BOOL && v.u.i;
        (void)case_next_if(c, ',');
    }
    return kind == OPD_TAG_FLOAT ? opd_value_doubles(list->floats, n) : kind == OPD_TAG_BOOL ? opd_value_bools(list->bools, n)
           : opd_value_ints(list->ints, n);
}
static opd_value case_read_list(op_case *c, case_list *list) {
    int n = 0;
    while (!case_next_if(c, '}')) {
        if (n == CASE_LIST) { c->wrong = c->at; return opd_value_none(); }
        if (case_next_if(c, '[')) { list->tensors[n++] = case_read_tensor(c); }
        else if (case_word(c, "None")) { list->tensors[n++] = NULL; }
        else { c->wrong = c->at; }
        if (c->wrong) { return opd_value_none(); }
        (void)case_next_if(c, ',');
    }
    return opd_value_tensors(list->tensors, n);
}
static opd_value case_read(op_case *c, case_list *list) {
    static const opd_scalar_type dtypes[] = {OPD_UINT8, OPD_INT8, OPD_INT16, OPD_INT32, OPD_INT64, OPD_FLOAT16, OPD_FLOAT32,
                                             OPD_FLOAT64, OPD_COMPLEX64, OPD_COMPLEX128, OPD_BOOL, OPD_BFLOAT16};
    char *end;
    size_t i, n;
    case_space(c);
    if (case_next_if(c, '[')) { return opd_value_tensor(case_read_tensor(c)); }
    if (case_next_if(c, '{')) { return case_read_list(c, list); }
    if (case_next_if(c, '(')) { return case_read_numbers(c, list); }
    if (case_next_if(c, '\'')) {
        n = strcspn(c->at, "'");
        if (n >= sizeof list->text) { c->wrong = c->at; return opd_value_none(); }
        memcpy(list->text, c->at, n);
        list->text[n] = 0;
        c->at += n + (c->at[n] == '\'');
        return opd_value_str(list->text);
    }
    if (case_word(c, "None")) { return opd_value_none(); }
    if (case_word(c, "True")) { return opd_value_bool(true); }
    if (case_word(c, "False")) { return opd_value_bool(false); }
    for (i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        if (case_word(c, opd_dtype_name(dtypes[i]))) { return opd_value_int(dtypes[i]); }
    }
    n = strspn(c->at, "+-0123456789");
    if (c->at[n] == '.' || c->at[n] == 'e' || strncmp(c->at + n, "inf", 3) == 0 || strncmp(c->at + n, "nan", 3) == 0) {
        double d = strtod(c->at, &end);
        if (end == c->at) { c->wrong = c->at; }
        c->at = end;
        return opd_value_double(d);
    }
    {
        long long v = strtoll(c->at, &end, 10);
        if (end == c->at) { c->wrong = c->at; }
        c->at = end;
        return opd_value_int(v);
    }
}

/* Reads the next case of *text into c (whose op, dtype, layout, smooth, meta are set); false at the end or when wrong. */
OPD_UNUSED static bool case_read_next(op_case *c, const char **text) {
    int i, at = 0;
    c->nargs = opd_schema_nargs(opd_op_schema(c->op));
    c->at = *text;
    c->wrong = NULL;
    c->nfloating = 0;
    c->seed = 1 + c->first_seed;
    for (i = 0; i < OPD_MAX_ARGS; i++) { c->args[i] = opd_value_default(); }
    case_space(c);
    if (*c->at == ';') { c->at++; case_space(c); }
    if (!*c->at && at == 0 && **text == 0) { return false; }
    while (*c->at && *c->at != ';') {
        size_t n = strspn(c->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
        int to = at;
        if (n > 0 && c->at[n] == '=') {
            for (to = 0; to < c->nargs; to++) {
                const char *name = opd_schema_arg_name(opd_op_schema(c->op), to);
                if (strlen(name) == n && strncmp(name, c->at, n) == 0) { break; }
            }
            if (to < c->nargs) { c->at += n + 1; }
        } else { at++; }
        if (to >= c->nargs) { c->wrong = c->at; return false; }
        c->args[to] = case_read(c, &c->lists[to]);
        if (c->wrong) { return false; }
        (void)case_next_if(c, ',');
        case_space(c);
    }
    *text = c->at;
    if (**text == ';' && (*text)[1] == 0) { (*text)++; }
    return true;
}

//-- properties of operators, and the tensors of a call ----------------------------------------------------------------

#define MOST_RESULTS 16
#define MOST_INPUTS 24
OPD_UNUSED static bool named(const opd_op *op, const char *const *list) {
    const char *name = strstr(opd_op_name(op), "::") + 2;
    size_t n = strcspn(name, ".");
    for (; *list; list++) {
        if ((strlen(*list) == n && strncmp(*list, name, n) == 0) || strcmp(*list, name) == 0) { return true; }
    }
    return false;
}
/* Returns whether two calls give different or unpredictable results. */
OPD_UNUSED static bool is_random(const opd_op *op) {
    const char *name = opd_op_name(op);
    return strstr(name, "rand") || strstr(name, "bernoulli") || strstr(name, "dropout") || strstr(name, "normal_") ||
           strstr(name, "::normal") || strstr(name, "multinomial") || strstr(name, "uniform") || strstr(name, "exponential") ||
           strstr(name, "empty") || strstr(name, "poisson") || strstr(name, "new_empty") || strstr(name, "rrelu") ||
           strstr(name, "binomial") || strstr(name, "geometric") || strstr(name, "cauchy") || strstr(name, "log_normal") ||
           strstr(name, "_sample_dirichlet") || (strstr(name, "_standard_gamma") && !strstr(name, "_grad"));
}

/* Returns whether an argument has no derivative in ATen.  first_result_only: whether only the first result has one. */
OPD_UNUSED static bool constant_argument(const opd_op *op, const char *arg) {
    static const char *const losses[] = {"nll_loss_forward", "nll_loss2d_forward", "nll_loss", "nll_loss2d", "nll_loss_nd", "cross_entropy_loss",
                                         "nll_loss_backward", "nll_loss2d_backward", "binary_cross_entropy", "binary_cross_entropy_backward",
                                         "binary_cross_entropy_with_logits", NULL};
    static const char *const gammas[] = {"igamma", "igammac", "special_gammainc", "special_gammaincc", "special_zeta", NULL};
    static const char *const args[] = {"running_mean", "running_var", "save_mean", "save_invstd", "mean", "rstd", "buffer", "total_weight", NULL};
    static const char *const never[] = {"binomial", "_standard_gamma_grad", "_sample_dirichlet", "_dirichlet_grad", NULL};
    int i;
    if (named(op, never)) { return true; }
    if (named(op, losses) && (strcmp(arg, "weight") == 0 || strcmp(arg, "pos_weight") == 0)) { return true; }
    if (named(op, gammas) && strcmp(arg, "self") == 0) { return true; }
    for (i = 0; args[i]; i++) { if (strcmp(args[i], arg) == 0) { return true; } }
    return strcmp(arg, "target") == 0 && strstr(opd_op_name(op), "margin_loss");
}
OPD_UNUSED static bool first_result_only(const opd_op *op) {
    static const char *const list[] = {"nll_loss_forward", "nll_loss2d_forward", "log_sigmoid_forward", "native_dropout", NULL};
    return named(op, list);
}

/* Writes all result tensors to out.  Returns their number, or -1 if a call fails. */
OPD_UNUSED static int results_of(const opd_op *op, const opd_value *rets, opd_tensor **out) {
    int i, k, n = 0;
    for (i = 0; i < opd_schema_nreturns(opd_op_schema(op)); i++) {
        if (rets[i].tag == OPD_TAG_TENSOR) { out[n++] = rets[i].u.t; }
        for (k = 0; rets[i].tag == OPD_TAG_TENSORS && k < rets[i].n && n < MOST_RESULTS; k++) {
            if (rets[i].u.tensors[k]) { out[n++] = rets[i].u.tensors[k]; }
        }
        if (n >= MOST_RESULTS) { break; }
    }
    return n;
}

/* Copies the sample arguments to `to`, with sizes that are 32 times as large, plus `more`: all, or only the last of each
   tensor.  Returns false if a tensor would have more than `most` elements. */
OPD_UNUSED static bool case_enlarge(const char *cases, char *to, size_t cap, bool all, int more, int64_t most) {
    size_t n = 0;
    for (const char *at = cases; *at;) {
        if (n + 64 >= cap) { return false; }
        if (*at != '[') { to[n++] = *at++; continue; }
        const char *const end = strchr(at, ']');
        int64_t elements = 1;
        to[n++] = *at++;
        while (end && at < end) {
            char *next;
            long long size = strtoll(at, &next, 10);
            if (next == at) { to[n++] = *at++; continue; }
            if (size > 1 && (all || next == end)) { size = size * 32 + more; }
            elements *= size > 1 ? size : 1;
            if (elements > most) { return false; }
            n += (size_t)snprintf(to + n, cap - n, "%lld", size);
            at = next;
        }
    }
    to[n] = 0;
    return true;
}
/* An opd_transform_fn: calls the operator of user, an op_case, with `in` as its tensor arguments that are not lists. */
OPD_UNUSED static int case_call(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const op_case *const c = (const op_case *)user;
    opd_value args[OPD_MAX_ARGS], rets[MOST_RESULTS];
    int i, k = 0;
    memcpy(args, c->args, sizeof args);
    for (i = 0; i < c->nargs && k < n; i++) {
        if (args[i].tag == OPD_TAG_TENSOR) { args[i].u.t = in[k++]; }
    }
    return opd_call_all((opd_op *)(uintptr_t)c->op, rets, args, c->nargs) ? -1 : results_of(c->op, rets, out);
}

OPD_UNUSED static char what[400];                 /* describes the current call, for messages */
OPD_UNUSED static bool say(bool right, const char *text) {
    if (!right) { printf("%s: %s\n", what, text); }
    CHECK(right);
    return right;
}
/* Returns whether a call succeeded, and no error is pending.  Prints and clears an unexpected error. */
OPD_UNUSED static bool went_well(int rc) {
    if (rc >= 0 && opd_ok()) { return true; }
    printf("%s: %s\n", what, opd_error_message());
    CHECK(opd_ok() && rc >= 0);
    opd_error_clear();
    return false;
}
OPD_UNUSED static bool same_shape(const opd_tensor *a, const opd_tensor *b) {
    return opd_ndim(a) == opd_ndim(b) && memcmp(opd_sizes(a), opd_sizes(b), (size_t)opd_ndim(a) * sizeof(int64_t)) == 0;
}
OPD_UNUSED static void same_values(const opd_tensor *a, const opd_tensor *b, double tol) {
    int64_t i;
    char text[200];
    if (!say(same_shape(a, b), "shapes differ") || opd_dtype_is_complex(opd_dtype(a))) { return; }
    for (i = 0; i < opd_numel(a); i++) {
        double x = case_get(a, i), y = case_get(b, i);
        bool both_nan = isnan(x) && isnan(y);
        if (both_nan || (isinf(x) && isinf(y) && (x > 0) == (y > 0)) || fabs(x - y) <= tol * (1 + fabs(y))) { continue; }
        (void)snprintf(text, sizeof text, "element %d is %.9g, not %.9g", (int)i, x, y);
        (void)say(false, text);
        return;
    }
}

/* Returns the in-place or out= form of an operator that its descriptor names. */
OPD_UNUSED static const opd_op *form_of(const opd_op *op, const char *form) {
    char name[200];
    (void)snprintf(name, sizeof name, "%.*s::%.*s", (int)strcspn(opd_op_name(op), ":"), opd_op_name(op),
                   (int)strcspn(form, "("), form);
    return opd_find(name);
}
OPD_UNUSED static int arg_named(const opd_op *op, const char *name) {
    int i;
    for (i = 0; i < opd_schema_nargs(opd_op_schema(op)); i++) {
        if (strcmp(opd_schema_arg_name(opd_op_schema(op), i), name) == 0) { return i; }
    }
    return -1;
}
/* Writes the arguments of c for another form of its operator, by name.  An argument that this form lacks must have its
   default value. */
OPD_UNUSED static bool other_form(const op_case *c, const opd_op *form, opd_value *args, int *rest) {
    int i, n = opd_schema_nargs(opd_op_schema(form));
    for (i = 0; i < OPD_MAX_ARGS; i++) { args[i] = opd_value_default(); }
    for (i = 0; i < c->nargs; i++) {
        int to = arg_named(form, opd_schema_arg_name(opd_op_schema(c->op), i));
        if (to >= 0) { args[to] = c->args[i]; }
        else if (c->args[i].tag != OPD_TAG_DEFAULT && c->args[i].tag != OPD_TAG_NONE) { return false; }
    }
    for (i = 0, *rest = n; i < n; i++) {
        if (arg_named(c->op, opd_schema_arg_name(opd_op_schema(form), i)) < 0) { *rest = i; break; }
    }
    return true;
}
/* Adds a case for each built-in operator for which `wanted` returns true (NULL: all).  run gets the operator. */
OPD_UNUSED static void add_builtin_operators(void (*run)(void *op), bool (*wanted)(const opd_op *op)) {
    int i;
    for (i = 0; i < OPD_OP_COUNT; i++) {
        const opd_op *op = opd_op_builtin((opd_op_id)i);
        if (op && (!wanted || wanted(op))) { check_add_with(opd_op_name(op), run, (void *)(uintptr_t)op); }
    }
}
OPD_UNUSED static bool has_cases(const opd_op *op) { return cases_of(op) != NULL; }
OPD_UNUSED static bool has_derivative(const opd_op *op) {
    const opd_op_desc *card = opd_op_card(op);
    return has_cases(op) && !is_random(op) &&
        ((card->backward && card->backward != OPD_NOT_DIFFERENTIABLE) || card->composite || card->autograd);
}
/* Returns whether the operator has sample arguments with a tensor. */
OPD_UNUSED static bool has_tensor_cases(const opd_op *op) { return has_cases(op) && strchr(opd_op_card(op)->cases, '['); }
#endif /* OPD_TESTS_CASES_H */
