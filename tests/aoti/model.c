/* Plays a model that AOTInductor compiled, for test_aoti.c, which compiles it: exports the functions of such
   libraries, and calls functions of the table that it gets.  As C++, a failed check throws an exception, as in real
   models; as C, it jumps out of the function.  Inputs: x, float32 [2, 3], and what, int64 [], which selects the
   output.  Outputs: the selected tensor, and a view of a constant.

   MODEL_ASKS=name      calls a function of that name
   MODEL_WEIGHTS=1      has no values of its constants
   MODEL_VECTORS=1      calls functions of vectors */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if !defined(__cplusplus)
#include <stdbool.h>
#else
#include <stdexcept>
#include <string>
extern "C" {
#endif

typedef void *handle;
extern int32_t aoti_torch_device_type_cpu(void), aoti_torch_dtype_float32(void), aoti_torch_dtype_int64(void);
extern bool aoti_torch_grad_mode_is_enabled(void);
extern void aoti_torch_grad_mode_set_enabled(bool on);
extern uint64_t aoti_torch_abi_version(void);
extern int32_t aoti_torch_create_tensor_from_blob(void *data, int64_t ndim, const int64_t *sizes,
                                                  const int64_t *strides,
                                                  int64_t offset, int32_t dtype, int32_t device, int32_t index,
                                                      handle *out);
extern int32_t aoti_torch_delete_tensor_object(handle t);
extern int32_t aoti_torch_get_data_ptr(handle t, void **out);
extern int32_t aoti_torch_get_sizes(handle t, int64_t **out);
extern int32_t aoti_torch_get_size(handle t, int64_t dim, int64_t *out);
extern int32_t aoti_torch_get_dim(handle t, int64_t *out);
extern int32_t aoti_torch_get_storage_offset(handle t, int64_t *out);
extern int32_t aoti_torch_is_defined(handle t, bool *out);
extern int32_t aoti_torch_new_tensor_handle(handle t, handle *out);
extern int32_t aoti_torch_new_uninitialized_tensor(handle *out);
extern int32_t aoti_torch_assign_tensors(handle from, handle to);
extern int32_t aoti_torch_clone(handle t, handle *out);
extern int32_t aoti_torch_item_int64(handle t, int64_t *out);
extern int32_t aoti_torch_item_float32(handle t, float *out);
extern int32_t aoti_torch_scalar_to_tensor_float32(float value, handle *out);
extern int32_t aoti_torch_scalar_to_tensor_int64(int64_t value, handle *out);
typedef struct pair { float re, im; } pair;
extern int32_t aoti_torch_scalar_to_tensor_complex64(pair value, handle *out);
extern int32_t aoti_torch_empty_strided(int64_t ndim, const int64_t *sizes, const int64_t *strides, int32_t dtype,
                                        int32_t device, int32_t index, handle *out);
extern int32_t aoti_torch__reinterpret_tensor(handle t, int64_t ndim, const int64_t *sizes, const int64_t *strides,
                                              int64_t offset, handle *out);
extern int32_t aoti_torch__alloc_from_pool(handle t, int64_t bytes, int32_t dtype, int64_t ndim, const int64_t *sizes,
                                           const int64_t *strides, handle *out);
extern void aoti_torch_check(bool holds, const char *function, const char *file, uint32_t line, const char *text);
extern int32_t aoti_torch_cpu_addmm_out(handle out, handle self, handle a, handle b, double beta, double alpha);
extern int32_t aoti_torch_addmm_out(handle out, handle self, handle a, handle b, float beta, float alpha);
extern int32_t aoti_torch_cpu_cat(const handle *list, int64_t count, int64_t dim, handle *out);
extern int32_t aoti_torch_cpu_sort_stable(handle t, int32_t *stable, int64_t dim, int32_t down, handle *values,
                                          handle *at);
extern int32_t aoti_torch_cpu_index_Tensor(handle t, const handle **indices, int64_t count, handle *out);
extern int32_t aoti_torch_cpu_convolution(handle x, handle w, handle *bias, const int64_t *stride, int64_t nstride,
                                          const int64_t *padding, int64_t npadding, const int64_t *dilation,
                                          int64_t ndilation, int32_t transposed, const int64_t *more, int64_t nmore,
                                          int64_t groups, handle *out);
extern int32_t aoti_torch_cpu__linear_pointwise(handle x, handle w, handle *bias, const char *name,
                                                const double **numbers,
                                                int64_t count, const char **way, handle *out);
extern int32_t aoti_torch_create_tensor_from_blob_v2(void *data, int64_t ndim, const int64_t *sizes,
                                                     const int64_t *strides, int64_t offset, int32_t dtype,
                                                     int32_t device, int32_t index, handle *out, int32_t layout,
                                                     const uint8_t *metadata, int64_t nmetadata);
extern int32_t aoti_torch_dtype_uint8(void), aoti_torch_dtype_int8(void), aoti_torch_layout__mkldnn(void);
extern int32_t aoti_torch_cpu__qlinear_pointwise_tensor(handle x, handle scale, handle zero, handle w, handle scales,
                                                        handle zeros, handle *bias, double out_scale, int64_t out_zero,
                                                        const int32_t *dtype, const char *name, const double **numbers,
                                                        int64_t count, const char *way, handle *out);
extern int32_t aoti_torch_cpu__qlinear_pointwise_binary_tensor(handle x, handle scale, handle zero, handle w,
                                                               handle scales, handle zeros, handle *other,
                                                               handle *bias, double out_scale, int64_t out_zero,
                                                               const int32_t *dtype, double other_scale,
                                                               int64_t other_zero, const char *two, double alpha,
                                                               const char *name, const double **numbers, int64_t count,
                                                               const char *way, handle *out);
extern int32_t aoti_torch_cpu__qconv_pointwise_tensor(handle x, handle scale, handle zero, handle w, handle scales,
                                                      handle zeros, handle *bias, const int64_t *stride, int64_t n0,
                                                      const int64_t *padding, int64_t n1, const int64_t *dilation,
                                                      int64_t n2, int64_t groups, double out_scale, int64_t out_zero,
                                                      const int32_t *dtype, const char *name, const double **numbers,
                                                      int64_t count, const char **way, handle *out);
extern int32_t aoti_torch_cpu__qconv2d_pointwise_binary_tensor(handle x, handle scale, handle zero, handle w,
                                                               handle scales, handle zeros, handle sum, handle *bias,
                                                               const int64_t *stride, int64_t n0,
                                                               const int64_t *padding, int64_t n1,
                                                               const int64_t *dilation, int64_t n2, int64_t groups,
                                                               double out_scale, int64_t out_zero,
                                                               const int32_t *dtype, double sum_scale,
                                                               int64_t sum_zero, const char *two, double *alpha,
                                                               const char **name, const double **numbers,
                                                               int64_t count, const char **way, handle *out);
extern int32_t aoti_torch_cpu__weight_int4pack_mm_cpu_tensor(handle x, handle w, handle group, handle scales,
                                                             handle *out);
extern int32_t aoti_torch_cpu_cumsum(handle t, int64_t dim, int32_t *dtype, handle *out);
extern int32_t aoti_torch_cpu_upsample_linear1d_backward(handle grad, const int64_t *size, int64_t nsize,
                                                         const int64_t *from,
                                                         int64_t nfrom, int32_t corners, double *scales, handle *out);
extern int32_t aoti_torch_cpu__fused_rms_norm(handle t, const int64_t *shape, int64_t n, handle *weight, double *eps,
                                              handle *out, handle *rstd);
extern int32_t aoti_torch_cpu_narrow(handle t, int64_t dim, int64_t from, int64_t count, handle *out);
extern int32_t aoti_torch_proxy_executor_call_function(void *executor, int node, int nints, int64_t *ints, int ntensors,
                                                       handle *tensors);

#if defined(MODEL_ASKS)
extern int32_t MODEL_ASKS(handle t);
#endif
#if defined(MODEL_VECTORS) && defined(__x86_64__)
typedef float v4 __attribute__((vector_size(16)));
typedef float v8 __attribute__((vector_size(32)));
typedef float v16 __attribute__((vector_size(64)));
typedef double d2 __attribute__((vector_size(16)));
typedef double d8 __attribute__((vector_size(64)));
extern v4 Sleef_expf4_u10(v4 x);
extern v8 Sleef_tanhf8_u10(v8 x) __attribute__((target("avx2")));
extern v16 Sleef_powf16_u10(v16 x, v16 y) __attribute__((target("avx512f")));
extern d8 Sleef_atan2d8_u10(d8 x, d8 y) __attribute__((target("avx512f")));
extern d2 Sleef_logd2_u10(d2 x);
#elif defined(MODEL_VECTORS)
typedef float v4 __attribute__((vector_size(16)));
typedef double d2 __attribute__((vector_size(16)));
extern v4 Sleef_expf4_u10(v4 x);
extern d2 Sleef_logd2_u10(d2 x);
#endif

#define EXPORT __attribute__((visibility("default")))
static const char *last = "";
static char *copied;
static const int64_t matrix[2] = {2, 3}, rows[2] = {3, 1}, square[2] = {3, 3};
static float weight_values[9] = {1, 0, 0, 0, 2, 0, 0, 0, 3};

typedef struct container { handle weight; int64_t runs; } container;

/* A call that failed leaves the model. */
static void must(int32_t rc, const char *what) {
    if (rc == 0) { return; }
#if defined(__cplusplus)
    throw std::runtime_error(std::string(what) + " failed");
#else
    last = what;
#endif
}
#define MUST(call) do { const int32_t rc_ = call; must(rc_, #call); if (rc_) { return rc_; } } while (0)

static int32_t fresh(handle *out) {
    return aoti_torch_empty_strided(2, matrix, rows, aoti_torch_dtype_float32(), aoti_torch_device_type_cpu(), -1, out);
}
static int32_t small(handle *out, float value) {
    handle t;
    float *data;
    MUST(fresh(&t));
    MUST(aoti_torch_get_data_ptr(t, (void **)&data));
    for (int i = 0; i < 6; i++) { data[i] = value + (float)i; }
    *out = t;
    return 0;
}
#if defined(MODEL_WIDE) && defined(__x86_64__)                /* a function that nothing calls: vaddps zmm */
void model_wide(void);
void model_wide(void) { __asm__ volatile(".byte 0x62, 0xf1, 0x74, 0x48, 0x58, 0xd0"); }
#endif
#if defined(MODEL_VECTORS)
#if defined(__x86_64__)
__attribute__((target("avx512f"))) static void wide(float *data) {
    v16 x, y;
    d8 a, b;
    for (int i = 0; i < 16; i++) { x[i] = 2; y[i] = (float)i; }
    x = Sleef_powf16_u10(x, y);
    data[2] = x[15];
    for (int i = 0; i < 8; i++) { a[i] = i; b[i] = 1; }
    a = Sleef_atan2d8_u10(a, b);
    data[3] = (float)a[7];
}
__attribute__((target("avx2"))) static void middle(float *data) {
    v8 x = {0, 1, 2, 3, 4, 5, 6, 7};
    data[1] = Sleef_tanhf8_u10(x)[1];
}
#endif
static void vectors(float *data) {
    v4 x = {0, 1, 2, 3};
    d2 y = {1, 7};
    data[0] = Sleef_expf4_u10(x)[3];
    data[4] = (float)Sleef_logd2_u10(y)[1];
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) { middle(data); }
    if (__builtin_cpu_supports("avx512f")) { wide(data); }
#endif
}
#endif

/* A tensor over memory that stays. */
static int32_t over(const void *data, int32_t dtype, int64_t ndim, const int64_t *sizes, handle *out) {
    int64_t strides[4], step = 1;
    for (int64_t i = ndim - 1; i >= 0; i--) {
        strides[i] = step;
        step *= sizes[i];
    }
    return aoti_torch_create_tensor_from_blob((void *)data, ndim, sizes, strides, 0, dtype, 0, -1, out);
}
/* A weight of a convolution as oneDNN packs it: with a dim for groups, and a description behind it. */
static int32_t packed(const void *data, handle *out) {
    static uint8_t description[776];
    static const int64_t sizes[4] = {2, 1, 1, 1}, groups[5] = {2, 1, 1, 1, 1}, strides[5] = {1, 1, 1, 1, 1};
    const int32_t ndim = 5, kind = 2;
    memcpy(description + 4, &ndim, 4);
    memcpy(description + 8, groups, sizeof groups);
    memcpy(description + 112, groups, sizeof groups);
    memcpy(description + 312, &kind, 4);
    memcpy(description + 320, strides, sizeof strides);
    return aoti_torch_create_tensor_from_blob_v2((void *)data, 4, sizes, strides, 0, aoti_torch_dtype_int8(), 0, -1, out,
                                                 aoti_torch_layout__mkldnn(), description, 776);
}
/* Layers of codes: 15 and 16 are linear, 17 and 18 convolutions of two groups; 19 has weights of four bits. */
static int32_t coded(int64_t what, handle *out) {
    static const uint8_t rows_of[6] = {130, 131, 132, 124, 133, 122}, image[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    static const int8_t weight[6] = {10, -20, 30, 40, -5, 6}, kernel[2] = {2, -3};
    static const float scales[2] = {0.1f, 0.05f}, halves[2] = {0.5f, 1}, bias_of[2] = {1, -3};
    static uint8_t others[4];
    static float sums[12];
    static const int64_t zero_of[2] = {128, 10}, two_three[2] = {2, 3}, three_two[2] = {3, 2}, square_of[2] = {2, 2};
    static const int64_t whole[4] = {1, 2, 2, 3}, one[3] = {1, 1, 1}, none[2] = {0, 0};
    const int32_t f32 = aoti_torch_dtype_float32(), u8 = aoti_torch_dtype_uint8(), s8 = aoti_torch_dtype_int8();
    const char *relu = "relu";
    const bool conv = what > 16;
    handle x, scale, zero, w, each, bias, other;
    MUST(over(conv ? image : rows_of, u8, conv ? 4 : 2, conv ? whole : two_three, &x));
    MUST(over(conv ? &halves[1] : &halves[0], f32, 1, one, &scale));
    MUST(over(&zero_of[conv], aoti_torch_dtype_int64(), 1, one, &zero));
    MUST(conv ? packed(kernel, &w) : over(weight, s8, 2, three_two, &w));
    MUST(over(conv ? halves : scales, f32, 1, square_of, &each));
    MUST(over(bias_of, f32, 1, square_of, &bias));
    for (int i = 0; i < 12; i++) { sums[i] = (float)i; }
    for (int i = 0; i < 4; i++) { others[i] = (uint8_t)(1 + 2 * i); }
    MUST(conv ? over(sums, f32, 4, whole, &other) : over(others, u8, 2, square_of, &other));
    if (what == 15) {
        MUST(aoti_torch_cpu__qlinear_pointwise_tensor(x, scale, zero, w, each, zero, &bias, 1, 0, &f32, relu, NULL, 0,
                                                      "", out));
    } else if (what == 16) {
        MUST(aoti_torch_cpu__qlinear_pointwise_binary_tensor(x, scale, zero, w, each, zero, &other, NULL, 0.1, 3, &u8,
                                                             0.5, 1, "sum", 1, relu, NULL, 0, "", out));
    } else if (what == 17) {
        MUST(aoti_torch_cpu__qconv_pointwise_tensor(x, scale, zero, w, each, zero, NULL, one, 2, none, 2, one, 2, 2, 1,
                                                    0, &f32, "none", NULL, 0, NULL, out));
    } else {
        MUST(aoti_torch_cpu__qconv2d_pointwise_binary_tensor(x, scale, zero, w, each, zero, other, NULL, one, 2, none,
                                                             2, one, 2, 2, 1, 0, &f32, 1, 0, "sum", NULL, &relu, NULL,
                                                             0, NULL, out));
    }
    if (what == 16 || what == 18) {               /* models read the sum from the tensor that was added */
        MUST(aoti_torch_delete_tensor_object(*out));
        MUST(aoti_torch_new_tensor_handle(other, out));
    }
    const handle all[7] = {x, scale, zero, w, each, bias, other};
    for (int i = 0; i < 7; i++) { MUST(aoti_torch_delete_tensor_object(all[i])); }
    return 0;
}
static int32_t four_bits(handle *out) {
    static const int64_t row[2] = {1, 32}, weight[2] = {16, 16}, numbers[3] = {1, 16, 2};
    static float ones[32], pairs[32];
    static uint8_t codes[256];
    handle x, w, group, scales;
    for (int i = 0; i < 32; i++) {
        ones[i] = 1;
        pairs[i] = i % 2 ? 0.5f : (float)(i / 2 + 1);
    }
    memset(codes, 0x99, sizeof codes);
    MUST(over(ones, aoti_torch_dtype_float32(), 2, row, &x));
    MUST(over(codes, aoti_torch_dtype_uint8(), 2, weight, &w));
    MUST(over(pairs, aoti_torch_dtype_float32(), 3, numbers, &scales));
    MUST(aoti_torch_scalar_to_tensor_int64(32, &group));
    MUST(aoti_torch_cpu__weight_int4pack_mm_cpu_tensor(x, w, group, scales, out));
    MUST(aoti_torch_delete_tensor_object(x));
    MUST(aoti_torch_delete_tensor_object(w));
    MUST(aoti_torch_delete_tensor_object(scales));
    return aoti_torch_delete_tensor_object(group);
}

/* What is asked for, from 0 on; x is not given back here. */
static int32_t compute(container *self, handle x, int64_t what, void *executor, handle *out) {
    const int64_t one[3] = {1, 1, 1}, none[3] = {0, 0, 0};
    handle a, b, list[3];
    int32_t rc;
    float *data;
    switch (what) {
    case 0:                                       /* x w, twice, with the old function and the new */
        MUST(fresh(out));
        MUST(aoti_torch_cpu_addmm_out(*out, x, x, self->weight, 2.0, 0.5));
        MUST(fresh(&a));
        rc = aoti_torch_addmm_out(a, *out, x, self->weight, 1.0f, 10.0f);
        MUST(aoti_torch_delete_tensor_object(rc ? a : *out));
        if (rc) { MUST(aoti_torch_delete_tensor_object(*out)); }
        *out = rc ? NULL : a;
        return rc;
    case 1:                                       /* cat, and a view of it */
        list[0] = x;
        MUST(small(&list[1], 10));
        list[2] = x;
        MUST(aoti_torch_cpu_cat(list, 3, 0, &a));
        MUST(aoti_torch_delete_tensor_object(list[1]));
        MUST(aoti_torch__reinterpret_tensor(a, 2, matrix, rows, 6, out));
        return aoti_torch_delete_tensor_object(a);
    case 2: {                                     /* several results, optional values */
        int32_t stable = 1;
        MUST(aoti_torch_cpu_sort_stable(x, &stable, 1, 1, out, &a));
        return aoti_torch_delete_tensor_object(a);
    }
    case 3: {                                     /* a list of what may be missing */
        const handle *indices[2] = {NULL, &a};
        MUST(aoti_torch_scalar_to_tensor_int64(1, &a));
        MUST(aoti_torch_cpu_index_Tensor(x, indices, 2, out));
        return aoti_torch_delete_tensor_object(a);
    }
    case 4: {                                     /* more arguments than registers */
        const int64_t image[4] = {1, 1, 2, 3}, steps[4] = {6, 6, 3, 1}, kernel[4] = {1, 1, 1, 1};
        float bias_value = 5, two = 2;
        handle w, bias;
        MUST(aoti_torch__reinterpret_tensor(x, 4, image, steps, 0, &a));
        MUST(aoti_torch_create_tensor_from_blob(&two, 4, kernel, kernel, 0, aoti_torch_dtype_float32(), 0, -1, &w));
        MUST(aoti_torch_create_tensor_from_blob(&bias_value, 1, kernel, kernel, 0, aoti_torch_dtype_float32(), 0, -1,
                                                &bias));
        MUST(aoti_torch_cpu_convolution(a, w, &bias, one, 2, none, 2, one, 2, 0, none, 2, 1, out));
        MUST(aoti_torch_delete_tensor_object(a));
        MUST(aoti_torch_delete_tensor_object(w));
        return aoti_torch_delete_tensor_object(bias);
    }
    case 5: {                                     /* a function of oneDNN's */
        const double slope = 0.5, *numbers[1] = {&slope};
        return aoti_torch_cpu__linear_pointwise(x, self->weight, NULL, "leaky_relu", numbers, 1, NULL, out);
    }
    case 6: {                                     /* numbers, complex ones, handles that are filled later */
        float number;
        bool defined;
        const pair i = {0, 1};
        MUST(aoti_torch_scalar_to_tensor_complex64(i, &a));
        MUST(aoti_torch_delete_tensor_object(a));
        MUST(aoti_torch_scalar_to_tensor_float32(2.5f, &a));
        MUST(aoti_torch_item_float32(a, &number));
        MUST(aoti_torch_new_uninitialized_tensor(&b));
        MUST(aoti_torch_is_defined(b, &defined));
        MUST(number == 2.5f && !defined ? 0 : 1);
        MUST(aoti_torch_assign_tensors(a, b));
        MUST(aoti_torch_delete_tensor_object(a));
        *out = b;
        return 0;
    }
    case 7:                                       /* x itself, and what it looks at */
        return aoti_torch_new_tensor_handle(x, out);
    case 8:                                       /* a part of a pool */
        MUST(small(&a, 0));
        MUST(aoti_torch__alloc_from_pool(a, 8, aoti_torch_dtype_float32(), 2, one, rows, out));
        return aoti_torch_delete_tensor_object(a);
    case 9: {                                     /* a list of sizes, an optional number */
        double eps = 1e-6;
        MUST(aoti_torch_cpu__fused_rms_norm(x, rows, 1, NULL, &eps, out, &a));
        return aoti_torch_delete_tensor_object(a);
    }
    case 10:                                      /* an operator that fails */
        MUST(aoti_torch_cpu_narrow(x, 0, 5, 5, out));
        return 0;
    case 11:                                      /* a check that fails; nothing is held */
        aoti_torch_check(false, "compute", "model.c", 1, "the model is not content");
        return 1;
    case 12: {                                    /* an operator of the package's list */
        int64_t ints[1] = {1};
        MUST(aoti_torch_new_uninitialized_tensor(out));
        list[0] = x;
        list[1] = *out;
        rc = aoti_torch_proxy_executor_call_function(executor, 0, 1, ints, 2, list);
        if (rc) { aoti_torch_delete_tensor_object(*out); *out = NULL; }
        MUST(rc);
        return 0;
    }
    case 13:                                      /* vectors */
        MUST(small(out, 0));
        MUST(aoti_torch_get_data_ptr(*out, (void **)&data));
#if defined(MODEL_VECTORS)
        vectors(data);
#endif
        return 0;
    case 14:                                      /* grad mode, which is put back */
        aoti_torch_grad_mode_set_enabled(!aoti_torch_grad_mode_is_enabled());
        return aoti_torch_clone(x, out);
    case 15: case 16: case 17: case 18: return coded(what, out);
    case 19: return four_bits(out);
    default:
        MUST(1);
        return 1;
    }
}
#if defined(MODEL_ASKS)
int32_t asks(handle t);
EXPORT int32_t asks(handle t) { return MODEL_ASKS(t); }
#endif

/* What generated code does with handles: results[1] = results[0], an input's handle that is not freed but given back, the
   copy of a constant, no handle where None is given. */
static int32_t give(container *self, handle *inputs, handle *outputs, int64_t what) {
    handle x = inputs[0], number = inputs[1];
    inputs[0] = inputs[1] = NULL;
    if (what != 24) { aoti_torch_delete_tensor_object(number); }
    if (what != 21 && what != 22 && what != 23) { aoti_torch_delete_tensor_object(x); }
    switch (what) {
    case 20: case 26:                             /* one result twice; and then the run fails */
        MUST(small(&outputs[0], 1));
        outputs[1] = outputs[0];
        MUST(what == 26);
        return 0;
    case 21:                                      /* the input itself, twice */
        outputs[0] = outputs[1] = x;
        return 0;
    case 22:                                      /* the input, and what is computed */
        outputs[0] = x;
        return small(&outputs[1], 1);
    case 23:                                      /* the input, and a view of it */
        outputs[0] = x;
        return aoti_torch__reinterpret_tensor(x, 2, matrix, rows, 0, &outputs[1]);
    case 24:                                      /* the other input */
        outputs[0] = number;
        return small(&outputs[1], 1);
    case 25:                                      /* None */
        return small(&outputs[1], 1);
    case 27:                                      /* the copy of a constant, twice */
        MUST(aoti_torch_clone(self->weight, &outputs[0]));
        outputs[1] = outputs[0];
        return 0;
    default:                                      /* a view of a constant, twice */
        MUST(aoti_torch__reinterpret_tensor(self->weight, 2, square, rows, 0, &outputs[0]));
        outputs[1] = outputs[0];
        return 0;
    }
}
static int32_t run(container *self, handle *inputs, handle *outputs, void *executor) {
    int64_t what, ndim, *sizes;
    handle x = inputs[0], out = NULL;
    MUST(aoti_torch_item_int64(inputs[1], &what));
    if (what >= 20 && what < 30) { return give(self, inputs, outputs, what); }
    inputs[0] = NULL;
    aoti_torch_delete_tensor_object(inputs[1]);
    inputs[1] = NULL;
#if defined(__cplusplus)
    try {
#endif
        int32_t rc = aoti_torch_get_dim(x, &ndim) || aoti_torch_get_sizes(x, &sizes);
        if (rc == 0 && (ndim != 2 || sizes[0] != 2 || sizes[1] != 3)) { rc = 1; last = "x has other sizes"; }
        if (rc == 0 && what == 11) { aoti_torch_delete_tensor_object(x); x = NULL; }
        rc = rc ? rc : compute(self, x, what, executor, &out);
        if (x) { aoti_torch_delete_tensor_object(x); }
        if (rc) { return rc; }
#if defined(__cplusplus)
    } catch (...) {
        if (x) { aoti_torch_delete_tensor_object(x); }
        throw;
    }
#endif
    self->runs++;
    outputs[0] = out;
    return aoti_torch__reinterpret_tensor(self->weight, 2, square, rows, 0, &outputs[1]);
}

EXPORT int32_t AOTInductorModelContainerCreateWithDevice(container **out, size_t copies, const char *device,
                                                         const char *dir) {
    container *self = (container *)calloc(1, sizeof *self);
    (void)copies;
    (void)dir;
    if (!self || strcmp(device, "cpu") != 0 || aoti_torch_abi_version() >> 56 < 2) { return 1; }
#if !defined(MODEL_WEIGHTS)
    if (aoti_torch_create_tensor_from_blob(weight_values, 2, square, rows, 0, aoti_torch_dtype_float32(), 0, -1,
                                           &self->weight)) {
        return 1;
    }
#endif
    *out = self;
    return 0;
}
EXPORT int32_t AOTInductorModelContainerDelete(container *self) {
    if (self->weight) { aoti_torch_delete_tensor_object(self->weight); }
    free(self);
    free(copied);
    copied = NULL;
    return 0;
}
EXPORT int32_t AOTInductorModelContainerRun(container *self, handle *inputs, size_t ninputs, handle *outputs,
                                            size_t noutputs,
                                            void *stream, void *executor) {
    const bool grad = aoti_torch_grad_mode_is_enabled();
    (void)stream;
    if (ninputs != 2 || noutputs != 2) { return 1; }
    last = "";
#if defined(__cplusplus)
    try {
#endif
        aoti_torch_grad_mode_set_enabled(false);
        const int32_t rc = run(self, inputs, outputs, executor);
        aoti_torch_grad_mode_set_enabled(grad);
        return rc;
#if defined(__cplusplus)
    } catch (const std::exception &e) {
        free(copied);
        copied = strdup(e.what());
        last = copied;
        return 1;
    }
#endif
}
EXPORT int32_t AOTInductorModelContainerGetNumInputs(container *self, size_t *n) { (void)self; *n = 2; return 0; }
EXPORT int32_t AOTInductorModelContainerGetNumOutputs(container *self, size_t *n) { (void)self; *n = 2; return 0; }
EXPORT int32_t AOTInductorModelContainerGetInputName(container *self, size_t i, const char **name) {
    (void)self;
    *name = i ? "what" : "x";
    return 0;
}
EXPORT int32_t AOTInductorModelContainerGetOutputName(container *self, size_t i, const char **name) {
    (void)self;
    *name = i ? "output1" : "output0";
    return 0;
}
EXPORT int32_t AOTInductorModelContainerGetNumConstants(container *self, size_t *n) { (void)self; *n = 1; return 0; }
EXPORT int32_t AOTInductorModelContainerGetConstantName(container *self, size_t i, const char **name) {
    (void)self;
    (void)i;
    *name = "layer_weight";
    return 0;
}
EXPORT int32_t AOTInductorModelContainerGetConstantOriginalFQN(container *self, size_t i, const char **name) {
    (void)self;
    (void)i;
    *name = "layer.weight";
    return 0;
}
EXPORT int32_t AOTInductorModelContainerGetConstantDtype(container *self, size_t i, int32_t *dtype) {
    (void)self;
    (void)i;
    *dtype = aoti_torch_dtype_float32();
    return 0;
}
EXPORT int32_t AOTInductorModelContainerGetConstantDataSize(container *self, size_t i, size_t *bytes) {
    (void)self;
    (void)i;
    *bytes = 64;                                  /* rounded up, as models do */
    return 0;
}
typedef struct entry { const char *name; handle tensor; } entry;
EXPORT int32_t AOTInductorModelContainerUpdateConstantBufferPairs(container *self, const entry *entries, size_t count,
                                                                  bool inactive, bool all) {
    handle copy;
    float *data;
    (void)inactive;
    (void)all;
    if (count != 1 || strcmp(entries[0].name, "layer_weight") != 0) { return 1; }
    if (aoti_torch_get_data_ptr(entries[0].tensor, (void **)&data)) { return 1; }
    volatile float end = data[15];                /* 64 bytes are read */
    (void)end;
    if (aoti_torch_clone(entries[0].tensor, &copy)) { return 1; }
    if (self->weight) { aoti_torch_delete_tensor_object(self->weight); }
    self->weight = copy;
    return 0;
}
EXPORT int32_t AOTInductorModelContainerExtractConstantsMapEntries(container *self, const entry **entries,
                                                                   size_t *count,
                                                                   bool inactive) {
    static entry one;
    (void)inactive;
    one.name = "layer_weight";
    one.tensor = self->weight;
    *entries = &one;
    *count = self->weight ? 1 : 0;
    return 0;
}
EXPORT int32_t AOTInductorGetLastError(const char **text) { *text = last; return 0; }

#if defined(__cplusplus)
}
#endif
