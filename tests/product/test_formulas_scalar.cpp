/* The list of pointwise formulas is expanded a second time, as scalar loops in C++11, for a device in host memory.
   All pointwise operators, copies and random numbers on this device give the results of the CPU's vector code.  This
   also tests the functions `pointwise` and `draw` of opd_backend_desc. */
#include "../check.h"
#include <cmath>
#include <string>

#define DEV OPD_PRIVATEUSE2

//-- conversions: an element as any of the types that formulas are computed in -----------------------------------------

static float f16_to_f32(uint16_t h) {
    const int e = h >> 10 & 31, m = h & 1023;
    const double s = h >> 15 ? -1 : 1;
    if (e == 31) { return m ? NAN : (float)(s * INFINITY); }
    return (float)(s * ldexp(e ? 1024 + m : m, (e ? e : 1) - 25));
}
/* To the nearest, ties to even, by trying. */
static uint16_t f32_to_f16(float f) {
    const uint16_t sign = (uint16_t)(std::signbit(f) ? 0x8000 : 0);
    const double a = fabs((double)f);
    if (f != f) { return (uint16_t)(sign | 0x7e00); }
    if (a >= 65520) { return (uint16_t)(sign | 0x7c00); }
    int e = a > 0 ? ilogb(a) : -15;
    if (e < -14) { e = -14; }
    const double unit = ldexp(1.0, e - 10);
    const double n = nearbyint(a / unit);
    const uint16_t bits = (uint16_t)(a < ldexp(1.0, -14) ? n : (e + 15) * 1024 + (n - 1024));
    return (uint16_t)(sign | bits);
}
static float bf16_to_f32(uint16_t h) { const uint32_t u = (uint32_t)h << 16; float f; memcpy(&f, &u, 4); return f; }
static uint16_t f32_to_bf16(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    if (f != f) { return (uint16_t)(u >> 16 | 0x40); }
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
template <typename C> static C get(const void *p, opd_scalar_type t) {
    switch (t) {
        case OPD_UINT8: return (C)*(const uint8_t *)p;
        case OPD_INT8: return (C)*(const int8_t *)p;
        case OPD_INT16: return (C)*(const int16_t *)p;
        case OPD_INT32: return (C)*(const int32_t *)p;
        case OPD_INT64: return (C)*(const int64_t *)p;
        case OPD_FLOAT16: return (C)f16_to_f32(*(const uint16_t *)p);
        case OPD_BFLOAT16: return (C)bf16_to_f32(*(const uint16_t *)p);
        case OPD_FLOAT32: return (C)*(const float *)p;
        case OPD_FLOAT64: return (C)*(const double *)p;
        case OPD_BOOL: return (C)(*(const uint8_t *)p != 0);
        default: return 0;
    }
}
static double clip(double d) {                    /* what is in no integer */
    return d != d ? 0 : d >= 9223372036854775807.0 ? 9223372036854774784.0 : d <= -9223372036854775808.0 ? -9223372036854775808.0 : d;
}
static int64_t whole(float v) { return (int64_t)clip(v); }
static int64_t whole(double v) { return (int64_t)clip(v); }
static int64_t whole(int64_t v) { return v; }
template <typename C> static void put(void *p, opd_scalar_type t, C v) {
    switch (t) {
        case OPD_UINT8: *(uint8_t *)p = (uint8_t)whole(v); break;
        case OPD_INT8: *(int8_t *)p = (int8_t)whole(v); break;
        case OPD_INT16: *(int16_t *)p = (int16_t)whole(v); break;
        case OPD_INT32: *(int32_t *)p = (int32_t)whole(v); break;
        case OPD_INT64: *(int64_t *)p = whole(v); break;
        case OPD_FLOAT16: *(uint16_t *)p = f32_to_f16((float)v); break;
        case OPD_BFLOAT16: *(uint16_t *)p = f32_to_bf16((float)v); break;
        case OPD_FLOAT32: *(float *)p = (float)v; break;
        case OPD_FLOAT64: *(double *)p = (double)v; break;
        case OPD_BOOL: *(uint8_t *)p = v != 0; break;
        default: break;
    }
}

//-- the pointwise formulas --------------------------------------------------------------------------------------------

struct numbers { const opd_pointwise *p; };
#define OPD_FORMULA_QUALIFIERS static inline
#define OPD_ADD(x, y) ((x) + (y))
#define OPD_SUB(x, y) ((x) - (y))
#define OPD_MUL(x, y) ((x) * (y))
#define OPD_NEG(x) (-(x))
#define CASE(name, inputs, kind, formula) case OPD_FORMULA_##name: return (OPD_T)(formula);
#define OPD_T float
#define OPD_FN(name) name##f
#define OPD_H(name) f32_##name
#define OPD_FORMULA_HELPERS_FLOAT
#include "../../opdispatch.h"
static float formula_f32(int f, float x, float y, float z, float a, float b, float c) {
    (void)y; (void)z; (void)a; (void)b; (void)c;
    switch (f) { OPD_FORMULAS_ALL(CASE) OPD_FORMULAS_FLOAT(CASE) default: CHECK(!"a formula without a float form"); return 0; }
}
#undef OPD_T
#undef OPD_FN
#undef OPD_H
#define OPD_T double
#define OPD_FN(name) name
#define OPD_H(name) f64_##name
#define OPD_FORMULA_HELPERS_FLOAT
#include "../../opdispatch.h"
static double formula_f64(int f, double x, double y, double z, double a, double b, double c) {
    (void)y; (void)z; (void)a; (void)b; (void)c;
    switch (f) { OPD_FORMULAS_ALL(CASE) OPD_FORMULAS_FLOAT(CASE) default: CHECK(!"a formula without a double form"); return 0; }
}
#undef OPD_T
#undef OPD_H
#undef OPD_ADD
#undef OPD_SUB
#undef OPD_MUL
#undef OPD_NEG
#define OPD_T int64_t
#define OPD_H(name) i64_##name
#define OPD_HELPER(name) i64_##name
#define OPD_ADD(x, y) ((int64_t)((uint64_t)(x) + (uint64_t)(y)))
#define OPD_SUB(x, y) ((int64_t)((uint64_t)(x) - (uint64_t)(y)))
#define OPD_MUL(x, y) ((int64_t)((uint64_t)(x) * (uint64_t)(y)))
#define OPD_NEG(x) ((int64_t)(0 - (uint64_t)(x)))
#define OPD_NOTES
#define OPD_PASS_NOTES
#define OPD_NOTE(k) noted = (k)
#define OPD_SMALLEST smallest
static int noted;
static int64_t smallest;
#define OPD_FORMULA_HELPERS_INT
#include "../../opdispatch.h"
static int64_t formula_i64(int f, int64_t x, int64_t y, int64_t z, int64_t a, int64_t b, int64_t c) {
    (void)y; (void)z; (void)a; (void)b; (void)c;
    switch (f) { OPD_FORMULAS_ALL(CASE) OPD_FORMULAS_INT(CASE) default: CHECK(!"a formula without an integer form"); return 0; }
}

//-- the device --------------------------------------------------------------------------------------------------------

static int runs, draws;
static void *dev_alloc(void *, int, size_t bytes) { return malloc(bytes); }
static void dev_free(void *, int, void *data, size_t) { free(data); }
static int dev_copy(void *, void *to, int, const void *from, int, size_t bytes) { memcpy(to, from, bytes); return 0; }

template <typename C> static C number_of(const opd_operand &o) { return (C)o.f64[0]; }
template <> int64_t number_of<int64_t>(const opd_operand &o) { return o.i64; }
static float run_formula(int f, float x, float y, float z, const opd_pointwise *p) {
    return formula_f32(f, x, y, z, p->f32[0], p->f32[1], p->f32[2]);
}
static double run_formula(int f, double x, double y, double z, const opd_pointwise *p) {
    return formula_f64(f, x, y, z, p->f64[0], p->f64[1], p->f64[2]);
}
static int64_t run_formula(int f, int64_t x, int64_t y, int64_t z, const opd_pointwise *p) {
    smallest = p->i64[0];
    return formula_i64(f, x, y, z, p->i64[0], p->i64[1], p->i64[2]);
}
static void *element(const opd_pointwise *p, const opd_operand &o, int64_t i) {
    int64_t at = 0;
    for (int d = 0; d < p->ndim; d++) { at += i % p->sizes[d] * o.strides[d]; i /= p->sizes[d]; }
    return (char *)o.data + at * (int64_t)opd_dtype_size(o.dtype);
}
template <typename C> static void run_all(const opd_pointwise *p) {
    for (int64_t i = 0; i < p->numel; i++) {
        C in[3] = {0, 0, 0};
        for (int k = 1; k < p->noperands; k++) {
            const opd_operand &o = p->operands[k];
            if (!o.data) { in[k - 1] = number_of<C>(o); continue; }
            in[k - 1] = get<C>(element(p, o, i), o.dtype);
            if (o.dtype != p->common && p->common != p->compute) {
                double raw[2];
                put<C>(raw, p->common, in[k - 1]);
                in[k - 1] = get<C>(raw, p->common);
            }
        }
        put<C>(element(p, p->operands[0], i), p->operands[0].dtype, run_formula(p->formula, in[0], in[1], in[2], p));
    }
}
static void copy_one(const opd_pointwise *p, int64_t i) {
    const opd_operand &to = p->operands[0], &from = p->operands[1];
    void *t = element(p, to, i), *f = from.data ? element(p, from, i) : NULL;
    const bool complex = opd_dtype_is_complex(from.dtype), into = opd_dtype_is_complex(to.dtype);
    const opd_scalar_type part = from.dtype == OPD_COMPLEX64 ? OPD_FLOAT32 : from.dtype == OPD_COMPLEX128 ? OPD_FLOAT64 : from.dtype;
    const opd_scalar_type tpart = to.dtype == OPD_COMPLEX64 ? OPD_FLOAT32 : to.dtype == OPD_COMPLEX128 ? OPD_FLOAT64 : to.dtype;
    const double im = !complex ? 0 : f ? get<double>((char *)f + opd_dtype_size(part), part) : from.f64[1];
    if (f && from.dtype == to.dtype) { memmove(t, f, opd_dtype_size(to.dtype)); return; }
    if (opd_dtype_is_integral(part, true)) { put<int64_t>(t, tpart, f ? get<int64_t>(f, part) : from.i64); }
    else { put<double>(t, tpart, f ? get<double>(f, part) : from.f64[0]); }
    if (into) { put<double>((char *)t + opd_dtype_size(tpart), tpart, im); }
}
static int dev_pointwise(void *, int index, const opd_pointwise *p) {
    CHECK_INT(index, 0);
    CHECK(p->noperands >= 2 && p->noperands <= 4 && p->ndim >= 1 && p->numel > 0 && p->operands[0].data);
    runs++;
    noted = 0;
    if (p->formula == OPD_FORMULA_copy) { for (int64_t i = 0; i < p->numel; i++) { copy_one(p, i); } }
    else if (p->compute == OPD_FLOAT32) { run_all<float>(p); }
    else if (p->compute == OPD_FLOAT64) { run_all<double>(p); }
    else { run_all<int64_t>(p); }
    if (p->zero && noted) { *p->zero = noted; }
    return 0;
}

static uint32_t word(uint64_t key, uint64_t w) {
    const uint64_t counter = w / 4;
    uint32_t a = (uint32_t)counter, b = (uint32_t)(counter >> 32), c = 0, d = 0, k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++, k0 += 0x9e3779b9u, k1 += 0xbb67ae85u) {
        const uint64_t x = (uint64_t)a * 0xd2511f53u, y = (uint64_t)c * 0xcd9e8d57u;
        a = (uint32_t)(y >> 32) ^ b ^ k0; b = (uint32_t)y; c = (uint32_t)(x >> 32) ^ d ^ k1; d = (uint32_t)x;
    }
    return w % 4 == 0 ? a : w % 4 == 1 ? b : w % 4 == 2 ? c : d;
}
static double uniform(const opd_draw *d, bool wide, int64_t i) {
    if (!wide) { return (word(d->key, d->at + (uint64_t)i) >> 8) * 5.9604644775390625e-8; }
    const uint64_t both = (uint64_t)word(d->key, d->at + 2 * (uint64_t)i + 1) << 32 | word(d->key, d->at + 2 * (uint64_t)i);
    return (double)(both >> 11) * 1.1102230246251565404e-16;
}
static int dev_draw(void *, int, const opd_draw *d) {
    const bool wide = d->dtype == OPD_FLOAT64;
    const float n = d->dtype == OPD_FLOAT16 ? 2048 : d->dtype == OPD_BFLOAT16 ? 256 : 0;
    draws++;
    for (int64_t i = 0; i < d->numel; i++) {
        void *p = (char *)d->data + i * (int64_t)opd_dtype_size(d->dtype);
        const double u = d->kind == OPD_DRAW_INTEGERS ? 0 : uniform(d, wide, i);
        if (d->kind == OPD_DRAW_INTEGERS) {
            const uint32_t lo = word(d->key, d->at + 2 * (uint64_t)i), hi = word(d->key, d->at + 2 * (uint64_t)i + 1);
            uint64_t x = (uint64_t)hi << 32 | lo;
            if (d->range && d->range <= UINT32_MAX) { x = ((uint64_t)hi * d->range + ((uint64_t)lo * d->range >> 32)) >> 32; }
            else if (d->range) { x %= d->range; }
            put<int64_t>(p, d->dtype, (int64_t)((uint64_t)d->low + x));
        } else if (d->kind == OPD_DRAW_NORMAL) {
            const double v = uniform(d, wide, i | 1), w = uniform(d, wide, i & ~(int64_t)1);
            const double r = sqrt(-2 * log(wide ? 1 - w : w + 2.98023223876953125e-8)), t = 6.28318530717958647693 * v;
            put<double>(p, d->dtype, d->a + d->b * r * (i & 1 ? sin(t) : cos(t)));
        } else if (d->kind == OPD_DRAW_EXPONENTIAL) { put<double>(p, d->dtype, -log1p(-u) / d->a); }
        else if (d->kind == OPD_DRAW_BERNOULLI) { put<int64_t>(p, d->dtype, wide ? u < d->a : (float)u < (float)d->a); }
        else if (wide) { put<double>(p, d->dtype, u * (d->b - d->a) + d->a); }
        else {
            const float f = n > 0 ? floorf((float)u * n) / n : (float)u;
            put<float>(p, d->dtype, f * (float)(d->b - d->a) + (float)d->a);
        }
    }
    return 0;
}
static void dev_on(void) {
    opd_backend_desc d = opd_backend_desc();
    if (opd_device_count(DEV)) { return; }
    d.name = "scalar"; d.alloc = dev_alloc; d.free = dev_free; d.copy = dev_copy;
    d.pointwise = dev_pointwise; d.draw = dev_draw;
    CHECK_INT(opd_backend_register(DEV, &d), 0);
}
static opd_tensor *up(opd_tensor *t) { return opd_to_device(t, opd_device_make(DEV, 0), opd_dtype(t)); }
static opd_tensor *down(opd_tensor *t) { return opd_to_device(t, opd_device_make(OPD_CPU, -1), opd_dtype(t)); }

//-- comparing ---------------------------------------------------------------------------------------------------------

static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_FLOAT16, OPD_BFLOAT16, OPD_UINT8, OPD_INT8, OPD_INT16,
                                         OPD_INT32, OPD_INT64, OPD_BOOL};
#define NDTYPES ((int)(sizeof dtypes / sizeof *dtypes))
/* Every value with every other one: a column against a row. */
static const double values[] = {0., -0., 1., -1., 2., -2., 0.5, -0.5, 1.5, -3.5, 0.3, -0.7, 3., 7., -8., 20., -20., 88., -90.,
                                100., 1e-3, -1e-6, 1e30, -1e30, 1e-40, 255., 127., -128., 65504., 2147483647., INFINITY,
                                -INFINITY, NAN};
#define NVALUES ((int)(sizeof values / sizeof *values))
static opd_tensor *tensor_of(opd_scalar_type t, int n, bool column, double from) {
    const int64_t sizes[2] = {column ? n : 1, column ? 1 : n};
    opd_tensor *r = opd_tensor_new(opd_ints_of(sizes, 2), t);
    for (int i = 0; r && i < n; i++) {
        void *p = (char *)opd_data(r) + i * (int64_t)opd_dtype_size(t);
        const double v = from != 0 ? from * (i + 1) : values[i];
        if (opd_dtype_is_floating(t)) { put<double>(p, t, v); }
        else { put<int64_t>(p, t, v != v ? 5 : fabs(v) > 1e18 ? (int64_t)(v > 0 ? 11 : -11) : (int64_t)v); }
    }
    return r;
}
static double tolerance(opd_scalar_type t) {
    return t == OPD_FLOAT64 ? 1e-13 : t == OPD_FLOAT32 ? 4e-6 : t == OPD_FLOAT16 ? 2e-3 : t == OPD_BFLOAT16 ? 1.6e-2 : 0;
}
/* The derivative of gelu is a difference near its zero, times the gradient: off by so much of that. */
static bool cancels(const char *name, int64_t i, double off) {
    const double a = fabs(values[i / NVALUES % NVALUES]), b = fabs(values[i % NVALUES]);
    return strstr(name, "gelu_backward") && off <= 1e-6 * fmax(std::isfinite(a) ? a : 0, std::isfinite(b) ? b : 0);
}
static void compare(opd_tensor *want, opd_tensor *got, const char *name, opd_scalar_type dtype) {
    int wrong = 0;
    if (!want || !got) { CHECK(opd_ok()); return; }
    CHECK(opd_dtype(want) == opd_dtype(got));
    CHECK(opd_numel(want) == opd_numel(got));
    CHECK(memcmp(opd_strides(want), opd_strides(got), (size_t)opd_ndim(want) * sizeof(int64_t)) == 0);
    want = opd_contiguous(want);
    got = opd_contiguous(down(got));
    if (!want || !got) { CHECK(opd_ok()); return; }
    const opd_scalar_type t = opd_dtype(want);
    for (int64_t i = 0; i < opd_numel(want); i++) {
        const void *p = (char *)opd_data(want) + i * (int64_t)opd_dtype_size(t), *q = (char *)opd_data(got) + i * (int64_t)opd_dtype_size(t);
        const double w = get<double>(p, t), g = get<double>(q, t);
        const bool same = opd_dtype_is_floating(t) ? w == g || (w != w && g != g) || fabs(w - g) <= tolerance(t) * fmax(fabs(w), 1e-30)
                                                     || (t != OPD_FLOAT64 && fabs(w - g) <= (t == OPD_FLOAT32 ? 1e-7 : 1e-4))
                                                     || (t == OPD_FLOAT64 && fabs(w - g) <= 1e-15)
                                                     || (t == OPD_FLOAT32 && cancels(name, i, fabs(w - g)))
                                                     || (t != OPD_FLOAT64 && std::isinf(w) && g != g)    /* 0 * inf, where double has no 0 yet */
            : get<int64_t>(p, t) == get<int64_t>(q, t);
        if (!same && wrong++ < 3) { printf("%s of %s at %d: %.9g, not %.9g\n", name, opd_dtype_name(dtype), (int)i, g, w); }
    }
    CHECK_INT(wrong, 0);
}

/* op with these arguments on the CPU and there; both fail, or both give the same. */
static void both(opd_op *op, opd_tensor *const *in, int nin, const opd_value *more, int nmore, opd_scalar_type dtype) {
    opd_value a[8], b[8], ra, rb;
    for (int i = 0; i < nin; i++) { a[i] = opd_value_tensor(in[i]); b[i] = opd_value_tensor(up(in[i])); }
    for (int i = 0; i < nmore; i++) { a[nin + i] = b[nin + i] = more[i]; }
    const int was = runs, mark = opd_error_mark();
    const int rc = opd_call_all(op, &ra, a, nin + nmore);
    char text[400] = "";
    if (rc) { snprintf(text, sizeof text, "%s", opd_error_message()); }
    (void)opd_error_rewind(mark);
    const int rc2 = opd_call_all(op, &rb, b, nin + nmore);
    if (rc || rc2) {
        if ((rc != 0) != (rc2 != 0) || strcmp(text, opd_error_message())) {
            printf("%s of %s: on the CPU '%s', there '%s'\n", opd_op_name(op), opd_dtype_name(dtype), text, opd_error_message());
        }
        CHECK(rc && rc2 && strcmp(text, opd_error_message()) == 0);
        opd_error_clear();
        return;
    }
    CHECK_INT(runs, was + 1);
    compare(ra.u.t, rb.u.t, opd_op_name(op), dtype);
}
/* The type of argument i, as the schema's text has it. */
static std::string type_of(const opd_schema *s, int i) {
    char text[1000];
    (void)opd_schema_print(s, text, sizeof text);
    const char *p = strchr(text, '(') + 1;
    int depth = 0;
    for (; i >= 0; i--) {
        const char *begin = p;
        while (*p == ' ' || *p == '*' || *p == ',') { begin = ++p; }
        for (; depth || (*p != ',' && *p != ')'); p++) { depth += (*p == '(') - (*p == ')'); }
        if (i == 0) { return std::string(begin, strcspn(begin, " ")); }
    }
    return "";
}
/* A pointwise operator by its arguments: tensors first, then numbers, which get the first values that fit. */
static void try_op(opd_op *op) {
    const opd_schema *s = opd_op_schema(op);
    const int n = opd_schema_nargs(s);
    int ntensors = 0;
    opd_value more[8];
    for (int d = 0; d < NDTYPES; d++) {
        for (int layout = 0; layout < 2; layout++) {
            OPD_SCOPE {
                opd_tensor *in[4];
                bool fine = true;
                ntensors = 0;
                int nmore = 0;
                for (int i = 0; i < n && fine; i++) {
                    const std::string type = type_of(s, i);
                    const char *name = opd_schema_arg_name(s, i);
                    const bool flag = strcmp(name, "condition") == 0 || strcmp(name, "mask") == 0;
                    if (type == "Tensor" && nmore == 0 && ntensors < 3) {
                        in[ntensors] = tensor_of(flag ? OPD_BOOL : dtypes[d], NVALUES, ntensors != 1, 0);
                        if (ntensors == 2) { in[2] = opd_flip(in[2], OPD_INTS(0)); }
                        if (layout && ntensors == 0) { in[0] = opd_t(opd_contiguous(opd_t(opd_expand(in[0], OPD_INTS(NVALUES, NVALUES))))); }
                        ntensors++;
                    }
                    else if (type == "Tensor?") { more[nmore++] = opd_value_none(); }
                    else if (type.find("Scalar") == 0 || type == "number") { more[nmore] = opd_value_int(nmore + 2); nmore++; }
                    else if (type.find("float") == 0) { more[nmore] = opd_value_double(0.25 * (nmore + 2)); nmore++; }
                    else if (type.find("bool") == 0) { more[nmore++] = opd_value_bool(false); }
                    else if (type == "int") { more[nmore++] = opd_value_int(1); }
                    else if (type.find("str") == 0) { more[nmore++] = opd_value_str(strstr(opd_op_name(op), "gelu") ? "tanh" : "trunc"); }
                    else { fine = false; }
                }
                if (fine && ntensors) { both(op, in, ntensors, more, nmore, dtypes[d]); }
                opd_error_clear();
            }
        }
    }
}
TEST(every_formula_scalar_and_vector) {
    int n = 0;
    dev_on();
    for (opd_op *op = opd_op_next(NULL); op; op = opd_op_next(op)) {
        const opd_op_desc *card = opd_op_card(op);
        if (!card || !card->cpu || card->cpu != card->fake || !(opd_op_tags(op) & OPD_OPTAG_POINTWISE) ||
            opd_schema_nreturns(opd_op_schema(op)) != 1) { continue; }
        if (!strcmp(opd_op_name(op), "aten::_conj_physical")) { continue; }            /* no formula */
        static const char *const special[] = {"special_", "lgamma", "digamma", "erfinv", "i0", "igamma", "polygamma", "_standard_gamma"};
        bool formula = true;                          /* special functions have none either */
        for (const char *name : special) { formula = formula && strncmp(opd_op_name(op) + 6, name, strlen(name)) != 0; }
        if (!formula && opd_op_name(op)[5] == ':') { continue; }
        if (strncmp(opd_op_name(op), "aten::", 6) || opd_schema_is_mutable(opd_op_schema(op))) { continue; }
        n++;
        try_op(op);
    }
    CHECK(n > 100);
}

//-- numbers beside tensors, writes in place, division by zero ---------------------------------------------------------

static opd_tensor *write(const char *name, opd_tensor *t, opd_tensor *u) {
    const opd_value args[2] = {opd_value_tensor(t), opd_value_tensor(u)};
    return opd_call_op(opd_find(name), args, 2);
}
TEST(numbers_and_forms) {
    dev_on();
    const int64_t two[2] = {4, 6};
    opd_tensor *x = opd_randn(opd_ints_of(two, 2), OPD_FLOAT32), *y = up(x), *half = up(opd_to_device(x, opd_device_make(OPD_CPU, -1), OPD_FLOAT16));
    opd_tensor *n = opd_full(opd_ints_of(NULL, 0), opd_value_double(0.1), OPD_FLOAT64);
    int was = runs;
    compare(opd_add(x, n), opd_add(y, n), "add", OPD_FLOAT32);                          /* a 0-dim tensor of the CPU */
    compare(opd_add(down(half), n), opd_add(half, n), "add", OPD_FLOAT16);
    compare(opd_mul_Scalar(down(half), opd_value_double(0.1)), opd_mul_Scalar(half, opd_value_double(0.1)), "mul", OPD_FLOAT16);
    compare(opd_sub_Scalar(x, opd_value_int(3)), opd_sub_Scalar(y, opd_value_int(3)), "sub", OPD_FLOAT32);
    compare(opd_where_self(opd_gt_Scalar(x, opd_value_int(0)), x, n), opd_where_self(opd_gt_Scalar(y, opd_value_int(0)), y, n), "where", OPD_FLOAT32);
    compare(opd_masked_fill_Scalar(x, opd_gt_Scalar(x, opd_value_int(0)), opd_value_double(7)),
            opd_masked_fill_Scalar(y, opd_gt_Scalar(y, opd_value_int(0)), opd_value_double(7)), "masked_fill", OPD_FLOAT32);
    compare(opd_add(opd_t(x), opd_select(x, 1, 2)), opd_add(opd_t(y), opd_select(y, 1, 2)), "strided", OPD_FLOAT32);
    CHECK(runs > was + 8);
    CHECK(write("aten::add_.Tensor", opd_t(y), opd_t(y)) != NULL);
    compare(opd_add(x, x), y, "in place", OPD_FLOAT32);
    compare(opd_add(x, x), opd_add(y, opd_zeros_like(y)), "zeros_like", OPD_FLOAT32);
    CHECK(opd_fill_(opd_select(y, 0, 1), opd_value_double(-1)) != NULL);
    CHECK(opd_copy_(opd_select(y, 0, 2), opd_select(half, 0, 0)) != NULL);
    CHECK(opd_copy_(opd_t(half), opd_t(x)) != NULL);                                     /* host to device, strided, converted */
    opd_tensor *back = opd_zeros(opd_ints_of(two, 2), OPD_FLOAT64);
    CHECK(opd_copy_(opd_t(back), opd_t(half)) != NULL);
    compare(opd_to_device(x, opd_device_make(OPD_CPU, -1), OPD_FLOAT16), opd_to_device(back, opd_device_make(OPD_CPU, -1), OPD_FLOAT16), "copies", OPD_FLOAT16);
    compare(opd_to_device(opd_select(down(y), 0, 2), opd_device_make(OPD_CPU, -1), OPD_FLOAT16),
            up(opd_to_device(opd_select(x, 0, 0), opd_device_make(OPD_CPU, -1), OPD_FLOAT16)), "a row", OPD_FLOAT16);
    CHECK(opd_ok());
    opd_tensor *i = up(opd_full(opd_ints_of(two, 2), opd_value_int(3), OPD_INT32)), *z = opd_zeros_like(i);
    CHECK(opd_floor_divide(i, z) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "ZeroDivisionError");
}

//-- random numbers ----------------------------------------------------------------------------------------------------

TEST(random_numbers_are_the_cpus) {
    const opd_scalar_type t[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_FLOAT16, OPD_BFLOAT16, OPD_INT64, OPD_INT16, OPD_BOOL, OPD_UINT8};
    const int64_t sizes[2] = {7, 37};
    dev_on();
    for (int k = 0; k < 8; k++) {
        for (int turned = 0; turned < 2; turned++) {
            opd_tensor *a = opd_zeros(opd_ints_of(sizes, 2), t[k]), *b = up(a);
            const int was = draws;
            if (turned) { a = opd_t(a); b = opd_t(b); }
            for (int kind = 0; kind < 6; kind++) {
                if (kind < 3 && k >= 4) { continue; }
                for (int side = 0; side < 2; side++) {
                    opd_tensor *x = side ? b : a;
                    opd_manual_seed(77);
                    (void)opd_bernoulli_(x, 0.3);                                  /* so that counters do not begin at 0 */
                    (void)(kind == 0 ? opd_uniform_(x, -1, 3) : kind == 1 ? opd_normal_(x, 2, 0.5)
                           : kind == 2 ? opd_exponential_(x, 1.5) : kind == 3 ? opd_bernoulli_(x, 0.7)
                           : kind == 4 ? opd_random_(x) : opd_random_from_(x, 0, opd_value_int(2)));
                }
                CHECK(opd_ok());
                compare(a, b, "a random number", t[k]);
            }
            CHECK(draws > was);
        }
    }
    opd_manual_seed(3);
    opd_tensor *p = opd_randn(opd_ints_of(sizes, 2), OPD_FLOAT32), *q = up(p), *m, *n;
    opd_manual_seed(5); m = opd_dropout(p, 0.4, true);
    opd_manual_seed(5); n = opd_dropout(q, 0.4, true);
    compare(m, n, "dropout", OPD_FLOAT32);
}

//-- results by the Meta kernel ----------------------------------------------------------------------------------------

static int ones_by_fake(opd_call *call) {
    if (opd_results_from_fake(call)) { return -1; }
    for (int i = 0; i < opd_schema_nreturns(opd_op_schema(opd_call_operator(call))); i++) {
        const opd_value *v = &opd_call_rets(call)[i];
        for (int k = 0; k < (v->tag == OPD_TAG_TENSORS ? v->n : 1); k++) {
            opd_tensor *t = v->tag == OPD_TAG_TENSORS ? v->u.tensors[k] : v->u.t;
            if (!opd_fill_(t, opd_value_int(1))) { return -1; }
        }
    }
    return 0;
}
static opd_tensor *softmax_out(opd_tensor *x, opd_tensor *out) {
    const opd_value args[4] = {opd_value_tensor(x), opd_value_int(0), opd_value_bool(false), opd_value_tensor(out)};
    return opd_call_op(opd_find("aten::_softmax.out"), args, 4);
}
TEST(results_from_fake) {
    const int64_t sizes[2] = {3, 4};
    dev_on();
    opd_library *lib = opd_library_open(OPD_IMPL, "aten", "PrivateUse2", __FILE__, __LINE__);
    CHECK_INT(opd_impl(lib, "_softmax", ones_by_fake), 0);
    CHECK_INT(opd_impl(lib, "sort", ones_by_fake), 0);
    CHECK_INT(opd_impl(lib, "native_layer_norm", ones_by_fake), 0);
    opd_tensor *x = up(opd_randn(opd_ints_of(sizes, 2), OPD_FLOAT32)), *y = opd__softmax(x, 1, false), *out = opd_empty_like(x);
    CHECK(y && opd_tensor_device(y).type == DEV && opd_size(y, 1) == 4);
    compare(opd_ones_like(down(x)), y, "softmax", OPD_FLOAT32);
    CHECK(softmax_out(x, out) == out);
    compare(opd_ones_like(down(x)), out, "softmax.out", OPD_FLOAT32);
    CHECK(opd__softmax(x, 7, false) == NULL);
    CHECK(strstr(opd_error_message(), "Dimension out of range") != NULL);
    opd_error_clear();
    opd_value args[3], rets[3];
    args[0] = opd_value_tensor(opd_t(x)); args[1] = opd_value_int(0); args[2] = opd_value_bool(false);
    opd_value host[3] = {opd_value_tensor(opd_t(down(x))), args[1], args[2]}, both_sorted[2], sorted;
    CHECK_INT(opd_call_all(opd_find("aten::sort"), rets, args, 3), 0);
    CHECK_INT(opd_call_all(opd_find("aten::sort"), both_sorted, host, 3), 0);
    sorted = both_sorted[0];
    CHECK(opd_dtype(rets[1].u.t) == OPD_INT64 && opd_tensor_device(rets[1].u.t).type == DEV);
    CHECK(opd_size(rets[0].u.t, 0) == 4 && opd_strides(rets[0].u.t)[0] == opd_strides(sorted.u.t)[0]);
    opd_library_close(lib);
}

/* A plug-in that was built before the struct grew: what is behind its end is not read. */
TEST(a_shorter_struct) {
    const int64_t n = 3;
    opd_backend_desc d = opd_backend_desc();
    dev_on();
    d.name = "older"; d.alloc = dev_alloc; d.free = dev_free; d.copy = dev_copy; d.pointwise = dev_pointwise;
    CHECK_INT(opd_backend_register_first(OPD_PRIVATEUSE3, &d), 0);
    OPD_SCOPE {
        opd_tensor *x = opd_to_device(opd_ones(opd_ints_of(&n, 1), OPD_FLOAT32), opd_device_make(OPD_PRIVATEUSE3, 0), OPD_FLOAT32);
        CHECK(x != NULL);
        CHECK(opd_add(x, x) == NULL);
        CHECK_ERROR(OPD_ERROR_NO_KERNEL, "Could not run 'aten::add.Tensor'");
    }
    CHECK_INT(opd_backend_unregister(OPD_PRIVATEUSE3), 0);
}
CHECK_MAIN()
