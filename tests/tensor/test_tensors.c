/* Tensors: making them, external memory, typed data, views and their bounds, results written to given tensors,
   memory. */
#include "../../opdispatch.h"
#include "../check.h"

static opd_tensor *vec(int64_t n) {
    static float v[64];
    int i;
    for (i = 0; i < 64; i++) { v[i] = (float)i; }
    return opd_tensor_from(v, opd_ints_of(&n, 1), OPD_FLOAT32);
}
static opd_op *op(const char *name) { return opd_find(name); }

//-- making ------------------------------------------------------------------------------------------------------------

TEST(new_tensors) {
    opd_tensor *t = opd_tensor_new(OPD_INTS(2, 3, 4), OPD_FLOAT64), *z = opd_tensor_new(OPD_INTS(2, 0, 4), OPD_INT8), *s;
    s = opd_tensor_new(opd_ints_of(NULL, 0), OPD_BOOL);
    CHECK_INT(opd_ndim(t), 3);
    CHECK_INT(opd_numel(t), 24);
    CHECK_INT(opd_size(t, -1), 4);
    CHECK_INT(opd_size(t, 1), 3);
    CHECK_INT(opd_strides(t)[0], 12);
    CHECK_INT(opd_strides(t)[2], 1);
    CHECK(opd_is_contiguous(t) && opd_dtype(t) == OPD_FLOAT64 && opd_tensor_offset(t) == 0);
    CHECK_INT(opd_tensor_storage_bytes(t), 192);
    CHECK(((uintptr_t)opd_data(t) & 7) == 0);
    CHECK_INT(opd_tensor_device(t).type, OPD_CPU);
    CHECK(opd_numel(z) == 0 && opd_is_contiguous(z));
    CHECK(opd_ndim(s) == 0 && opd_numel(s) == 1);
    CHECK_INT(opd_size(t, 3), -1);
    CHECK_ERROR(OPD_ERROR_INDEX, "Dimension out of range (expected to be in range of [-3, 2], but got 3)");
    CHECK(opd_keyset_has(opd_tensor_keys(t), OPD_KEY_CPU) && opd_keyset_has(opd_tensor_keys(t), OPD_KEY_AUTOGRAD_CPU));
}
/* The length and the dtype come from the array. */
static void check_array(opd_tensor *t, int64_t length, opd_scalar_type dtype) {
    CHECK_OR_RETURN(t != NULL);
    CHECK_INT(opd_ndim(t), 1);
    CHECK_INT(opd_size(t, 0), length);
    CHECK_STR(opd_dtype_name(opd_dtype(t)), opd_dtype_name(dtype));
    CHECK_NEAR(opd_item_f64(opd_to_dtype(opd_select(t, 0, length - 1), OPD_FLOAT64)), length == 1, 0);
}
TEST(tensors_from_arrays) {
    float a[] = {1, 2, 0};
    const double b[] = {3, 0};
    signed char c[] = {-1, 0};
    unsigned char d[] = {1, 2, 3, 0};
    short e[] = {1};
    int f[] = {7, 0}, many[300] = {1};
    long g[] = {7, 0};
    long long h[] = {7, 0};
    const bool i[] = {true};
    unsigned short j[] = {1};
    unsigned k[] = {1};
    unsigned long long l[] = {1};
    check_array(OPD_TENSOR(a), 3, OPD_FLOAT32);
    check_array(OPD_TENSOR(b), 2, OPD_FLOAT64);
    check_array(OPD_TENSOR(c), 2, OPD_INT8);
    check_array(OPD_TENSOR(d), 4, OPD_UINT8);
    check_array(OPD_TENSOR(e), 1, OPD_INT16);
    check_array(OPD_TENSOR(f), 2, OPD_INT32);
    check_array(OPD_TENSOR(many), 300, OPD_INT32);
    check_array(OPD_TENSOR(g), 2, sizeof(long) == 8 ? OPD_INT64 : OPD_INT32);
    check_array(OPD_TENSOR(h), 2, OPD_INT64);
    check_array(OPD_TENSOR(i), 1, OPD_BOOL);
    check_array(OPD_TENSOR(j), 1, OPD_UINT16);
    check_array(OPD_TENSOR(k), 1, OPD_UINT32);
    check_array(OPD_TENSOR(l), 1, OPD_UINT64);
#if !defined(__cplusplus)
    check_array(OPD_TENSOR((float[]){1, 2, 0}), 3, OPD_FLOAT32);
    check_array(OPD_TENSOR((const int64_t[]){1, 0}), 2, OPD_INT64);
    check_array(OPD_TENSOR(((double[2]){1})), 2, OPD_FLOAT64);
    check_array(OPD_TENSOR(((double[]){(double)a[0], (double)a[2]})), 2, OPD_FLOAT64);      /* numbers of the running program */
#endif
    CHECK_OK();
}
TEST(sizes_that_cannot_be) {
    int64_t many[65];
    int i;
    CHECK(opd_tensor_new(OPD_INTS(2, -1), OPD_FLOAT32) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "Trying to create tensor with negative dimension -1: [2, -1]");
    CHECK(opd_tensor_new(OPD_INTS(1LL << 40, 1LL << 40), OPD_FLOAT32) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "do not fit into memory");
    CHECK(opd_tensor_new(OPD_INTS(INT64_MAX), OPD_FLOAT64) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "do not fit into memory");
    CHECK(opd_tensor_new(OPD_INTS(0, INT64_MAX, INT64_MAX), OPD_FLOAT64) == NULL || opd_ok());
    opd_error_clear();
    CHECK(opd_tensor_new(OPD_INTS(1LL << 55), OPD_FLOAT32) == NULL);
    CHECK(opd_error_code() == OPD_ERROR_MEMORY || opd_error_code() == OPD_ERROR_SHAPE);
    opd_error_clear();
    for (i = 0; i < 65; i++) { many[i] = 1; }
    CHECK(opd_tensor_new(opd_ints_of(many, 65), OPD_FLOAT32) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "at most 64 dimensions, not 65");
    CHECK(opd_tensor_new(opd_ints_of(many, 64), OPD_FLOAT32) != NULL);
    CHECK(opd_tensor_new(opd_ints_of(many, 1), (opd_scalar_type)12) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "12 is not a dtype");
    CHECK(opd_tensor_new_on(OPD_INTS(1), OPD_FLOAT32, opd_device_make(OPD_XLA, 0)) == NULL);
    CHECK_ERROR(OPD_ERROR_NO_KERNEL, "no allocator for device xla");
    CHECK(opd_tensor_from(NULL, OPD_INTS(1), OPD_FLOAT32) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "data is NULL");
    CHECK(opd_tensor_from(NULL, OPD_INTS(0), OPD_FLOAT32) != NULL);
    CHECK_OK();
}
TEST(wrapped_numbers) {
    opd_tensor *i = opd_tensor_wrapped_number(opd_value_int(3)), *d = opd_tensor_wrapped_number(opd_value_double(0.5)), *v = vec(3);
    CHECK(opd_tensor_is_wrapped_number(i) && opd_dtype(i) == OPD_INT64 && !opd_tensor_is_wrapped_number(v));
    CHECK_INT(opd_dtype(opd_mul(v, d)), OPD_FLOAT32);
    CHECK_INT(opd_dtype(opd_mul(i, d)), OPD_FLOAT32);
    CHECK_INT(opd_dtype(opd_mul(opd_tensor_new(OPD_INTS(1), OPD_INT8), i)), OPD_INT8);
    CHECK(opd_tensor_wrapped_number(opd_value_str("x")) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "number");
}

//-- foreign memory ----------------------------------------------------------------------------------------------------

static int deletions;
static void *deleted_data, *deleted_user;
static void deleter(void *data, void *user) { deletions++; deleted_data = data; deleted_user = user; }
TEST(foreign_memory) {
    static float data[12];
    int64_t strides[2] = {1, 4};
    opd_tensor *t = NULL, *v = NULL;
    deletions = 0;
    OPD_SCOPE {
        t = opd_tensor_wrap(data, OPD_INTS(4, 3), strides, OPD_FLOAT32, deleter, &deletions);
        CHECK(opd_data(t) == data && !opd_is_contiguous(t));
        (void)opd_assign(&v, opd_select(t, 0, 1));
    }
    CHECK_INT(deletions, 0);                      /* a view is left */
    opd_data_f32(v)[0] = 7;
    CHECK_NEAR(data[1], 7, 0);
    (void)opd_assign(&v, NULL);
    CHECK_INT(deletions, 1);
    CHECK(deleted_data == data && deleted_user == &deletions);
}
TEST(foreign_memory_that_is_refused) {
    static float data[12];
    int64_t negative[1] = {-1}, huge[2] = {INT64_MAX / 2, INT64_MAX / 2};
    deletions = 0;
    CHECK(opd_tensor_wrap(data, OPD_INTS(3), negative, OPD_FLOAT32, deleter, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "negative strides");
    CHECK_INT(deletions, 1);
    CHECK(opd_tensor_wrap(data, OPD_INTS(3), NULL, (opd_scalar_type)63, deleter, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "63 is not a dtype");
    CHECK(opd_tensor_wrap(data, OPD_INTS(3, 3), huge, OPD_FLOAT32, deleter, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "overflow");
    CHECK(opd_tensor_wrap(NULL, OPD_INTS(3), NULL, OPD_FLOAT32, deleter, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "data is NULL");
    CHECK_INT(deletions, 4);
    (void)opd_fail(OPD_ERROR_USER, "pending");
    CHECK(opd_tensor_wrap(data, OPD_INTS(3), NULL, OPD_FLOAT32, deleter, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_USER, "pending");
    CHECK_INT(deletions, 5);
    CHECK(opd_tensor_wrap(NULL, OPD_INTS(0), NULL, OPD_FLOAT32, NULL, NULL) != NULL);
    CHECK_OK();
}

//-- data --------------------------------------------------------------------------------------------------------------

TEST(typed_data) {
    opd_tensor *f = vec(3), *i = opd_tensor_new(OPD_INTS(1), OPD_INT64), *m;
    m = opd_tensor_new_on(OPD_INTS(2), OPD_FLOAT32, opd_device_make(OPD_META, -1));
    CHECK(opd_data_f32(f) && opd_data_i64(i));
    CHECK(opd_data_f64(f) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "opd_data_f64: the tensor of sizes [3] has dtype float32, not float64: use opd_data_f32, or convert it with opd_to_dtype(t, OPD_FLOAT64)");
    CHECK(opd_data_i32(i) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "opd_data_i32: the tensor of sizes [1] has dtype int64, not int32: use opd_data_i64");
    CHECK(opd_data_bool(f) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "opd_data_bool: the tensor of sizes [3] has dtype float32, not bool");
    CHECK(opd_data_u8(f) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "opd_data_u8: ");
    CHECK(opd_data_f32(m) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "(on meta) has no data to read");
    CHECK(opd_data_f32(NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "reading the data: the tensor is NULL");
    (void)opd_item_f64(f);
    CHECK_ERROR(OPD_ERROR_SHAPE, "a Tensor with 3 elements cannot be converted to Scalar");
    (void)opd_item_i64(NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "NULL");
    opd_data_i64(i)[0] = INT64_MAX;
    CHECK_INT(opd_item_i64(i), INT64_MAX);
}

//-- views -------------------------------------------------------------------------------------------------------------

TEST(view_bounds) {
    opd_tensor *t = vec(12), *v;
    int64_t s[2] = {3, 4}, st[2] = {4, 1}, bad[2] = {4, 2}, neg[2] = {-4, 1}, big[2] = {INT64_MAX / 8, INT64_MAX / 8}, zero[2] = {0, 4};
    v = opd_tensor_view(t, s, st, 2, 0);
    CHECK(v && opd_tensor_same_storage(v, t) && opd_data(v) == opd_data(t));
    CHECK(opd_tensor_view(t, s, st, 2, 1) == NULL);
    CHECK_ERROR(OPD_ERROR_INDEX, "setStorage: sizes [3, 4], strides [4, 1], storage offset 1, and itemsize 4 are out of bounds for storage of size 48");
    CHECK(opd_tensor_view(t, s, bad, 2, 0) == NULL);
    CHECK_ERROR(OPD_ERROR_INDEX, "out of bounds");
    CHECK(opd_tensor_view(t, s, st, 2, -1) == NULL);
    CHECK_ERROR(OPD_ERROR_INDEX, "out of bounds");
    CHECK(opd_tensor_view(t, s, neg, 2, 8) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "Negative strides are not supported");
    CHECK(opd_tensor_view(t, s, big, 2, 0) == NULL);
    CHECK_ERROR(OPD_ERROR_INDEX, "out of bounds");
    CHECK(opd_tensor_view(t, s, st, 2, INT64_MAX) == NULL);
    CHECK_ERROR(OPD_ERROR_INDEX, "out of bounds");
    v = opd_tensor_view(t, zero, st, 2, INT64_MAX / 2);      /* empty: anything, or an error, but no crash */
    CHECK(v ? opd_numel(v) == 0 : !opd_ok());
    opd_error_clear();
    v = opd_tensor_view(opd_tensor_view(t, s, st, 2, 0), s, st, 1, 3);
    CHECK(v && opd_tensor_offset(v) == 3);
    v = opd_as_strided(t, OPD_INTS(2, 2), OPD_INTS(1, 1));
    CHECK_NEAR(opd_data_f32(v)[0], 0, 0);
    CHECK(opd_as_strided(t, OPD_INTS(2, 200), OPD_INTS(1, 1)) == NULL);
    CHECK_ERROR(OPD_ERROR_INDEX, "out of bounds for storage of size 48");
    CHECK(opd_as_strided(t, OPD_INTS(1LL << 62, 1LL << 62), OPD_INTS(0, 0)) == NULL);
    CHECK(!opd_ok());
    opd_error_clear();
    CHECK(opd_as_strided(t, OPD_INTS(2), OPD_INTS(1, 1)) == NULL);
    CHECK(!opd_ok());
    opd_error_clear();
}
TEST(views_keep_their_storage) {
    opd_tensor *v = NULL;
    OPD_SCOPE { (void)opd_assign(&v, opd_select(opd_view(vec(12), OPD_INTS(3, 4)), 0, 2)); }
    CHECK_NEAR(opd_data_f32(v)[3], 11, 0);
    (void)opd_assign(&v, NULL);
}

//-- out= and in-place forms -------------------------------------------------------------------------------------------

TEST(out_is_resized) {
    opd_tensor *out = opd_tensor_new(OPD_INTS(0), OPD_FLOAT32), *a = vec(6), *view, *wide, *small;
    int64_t one[1] = {1};
    CHECK(OPD_CALL(op("aten::add.out"), a, a, 1, out) == out);
    CHECK_OK();
    CHECK(opd_ndim(out) == 1 && opd_numel(out) == 6);
    CHECK_NEAR(opd_data_f32(out)[5], 10, 0);
    CHECK(OPD_CALL(op("aten::add.out"), opd_view(a, OPD_INTS(1, 2, 1, 3, 1)), a, 1, out) == out);
    CHECK_INT(opd_ndim(out), 5);
    CHECK_INT(opd_size(out, -1), 6);
    small = OPD_CALL(op("aten::exp.out"), opd_tensor_view(a, one, one, 1, 2), out);
    CHECK(small == out && opd_numel(out) == 1);
    wide = opd_tensor_new(OPD_INTS(6), OPD_FLOAT64);
    CHECK(OPD_CALL(op("aten::add.out"), a, a, 1, wide) == wide);
    CHECK_NEAR(opd_data_f64(wide)[4], 8, 0);
    CHECK(OPD_CALL(op("aten::add.out"), a, a, 1, opd_tensor_new(OPD_INTS(6), OPD_INT32)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "result type float32 can't be cast to the desired output type int32");
    view = opd_select(opd_tensor_new(OPD_INTS(2, 3), OPD_FLOAT32), 0, 0);
    CHECK(OPD_CALL(op("aten::add.out"), a, a, 1, view) != NULL || !opd_ok());    /* larger than its storage's rest */
    opd_error_clear();
}
TEST(foreign_memory_is_not_resized) {
    static float data[4];
    opd_tensor *out = opd_tensor_wrap(data, OPD_INTS(4), NULL, OPD_FLOAT32, NULL, NULL), *a = vec(6);
    CHECK(OPD_CALL(op("aten::add.out"), a, a, 1, out) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "Trying to resize storage that is not resizable");
    CHECK_INT(opd_numel(out), 4);
}
TEST(writes_that_overlap_are_refused) {
    opd_tensor *a = vec(3), *wide = opd_expand(vec(1), OPD_INTS(3)), *window;
    CHECK(OPD_CALL(op("aten::add.out"), a, a, 1, wide) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
                "Please clone() the tensor before performing the operation.");
    CHECK(OPD_CALL(op("aten::exp_"), wide) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "more than one element");
    window = opd_as_strided(vec(6), OPD_INTS(3, 3), OPD_INTS(1, 1));
    CHECK(OPD_CALL(op("aten::exp_"), window) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "more than one element");
    CHECK(OPD_CALL(op("aten::add_.Tensor"), a, opd_expand(vec(1), OPD_INTS(2, 3))) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "output with shape [3] doesn't match the broadcast shape [2, 3]");
    CHECK(OPD_CALL(op("aten::fill_.Scalar"), wide, 1) == NULL || opd_ok());
    opd_error_clear();
}
TEST(out_that_is_an_input) {
    opd_tensor *t = vec(6), *a = opd_slice(t, 0, opd_value_int(0), opd_value_int(5), 1), *b = opd_slice(t, 0, opd_value_int(1), opd_value_int(6), 1);
    CHECK(OPD_CALL(op("aten::add.out"), t, t, 1, t) == t);
    CHECK_NEAR(opd_data_f32(t)[5], 10, 0);
    /* a partial overlap: refused, as PyTorch does, or as if the input had been copied */
    if (OPD_CALL(op("aten::add.out"), a, a, 1, b)) { CHECK_NEAR(opd_data_f32(t)[2], 4, 0); CHECK_NEAR(opd_data_f32(t)[3], 8, 0); }
    else { CHECK(!opd_ok()); }
    opd_error_clear();
}

//-- the meta device ---------------------------------------------------------------------------------------------------

TEST(meta_tensors_have_shapes_only) {
    opd_device meta = opd_device_make(OPD_META, -1);
    opd_tensor *a = opd_tensor_new_on(OPD_INTS(1000000, 1000000), OPD_FLOAT32, meta), *b;
    int64_t live = opd_memory_stats().live;
    CHECK(a != NULL && live < ((int64_t)1 << 30));
    b = opd_add(a, opd_transpose(a, 0, 1));
    CHECK(b && opd_numel(b) == (int64_t)1000000 * 1000000 && opd_tensor_device(b).type == OPD_META);
    b = opd_mm(a, a);
    CHECK(b && opd_size(b, 1) == 1000000);
    b = opd_add(opd_tensor_new_on(OPD_INTS(3), OPD_INT32, meta), vec(3));
    CHECK(b == NULL || opd_tensor_device(b).type == OPD_META);
    opd_error_clear();
    (void)opd_item_f64(opd_sum(a));
    CHECK(!opd_ok());
    opd_error_clear();
}

//-- memory ------------------------------------------------------------------------------------------------------------

TEST(memory_statistics) {
    opd_memory before = opd_memory_stats(), in;
    opd_memory_reset_peak();
    OPD_SCOPE {
        (void)opd_tensor_new(OPD_INTS(1000, 1000), OPD_FLOAT32);
        in = opd_memory_stats();
        CHECK(in.live >= before.live + 4000000 && in.live < before.live + 5000000);
        CHECK(in.allocations > before.allocations);
    }
    CHECK_INT(opd_memory_stats().live, before.live);
    CHECK(opd_memory_stats().peak >= before.live + 4000000);
    opd_memory_reset_peak();
    CHECK(opd_memory_stats().peak < before.live + 4000000);
    opd_memory_trim();
    CHECK_INT(opd_memory_stats().cached, 0);
    CHECK_INT(opd_memory_stats().live, before.live);
}
TEST(data_that_is_not_aligned) {
    static union { double d[4]; char bytes[32]; } memory;
    static const struct { opd_scalar_type dtype; int at; bool right; } rows[] = {
        {OPD_FLOAT32, 0, true}, {OPD_FLOAT32, 2, false}, {OPD_FLOAT32, 4, true}, {OPD_FLOAT64, 1, false}, {OPD_INT64, 8, true},
        {OPD_BOOL, 3, true}, {OPD_FLOAT16, 1, false}, {OPD_COMPLEX64, 1, false}, {OPD_INT16, 2, true}};
    size_t r;
    for (r = 0; r < sizeof rows / sizeof *rows; r++) {
        opd_tensor *t = opd_tensor_wrap(memory.bytes + rows[r].at, OPD_INTS(2), NULL, rows[r].dtype, NULL, NULL);
        CHECK((t != NULL) == rows[r].right);
        if (rows[r].right) { CHECK_OK(); } else { CHECK_ERROR(OPD_ERROR_ARGUMENT, "is not aligned for elements of"); }
    }
}
TEST(blocks_are_used_again) {
#if defined(OPD_NO_CACHE)
    SKIP("without a cache");
#else
    static const int64_t sizes[] = {1, 1000, 5000, 100000, 3000000};
    int i, k;
    for (i = 0; i < 5; i++) {
        void *first = NULL, *second = NULL;
        OPD_SCOPE { first = opd_data(opd_tensor_new(opd_ints_of(&sizes[i], 1), OPD_FLOAT32)); }
        CHECK(opd_memory_stats().cached > 0);
        for (k = 0; k < (i ? 1 : 100) && second != first; k++) {       /* small ones when others have been freed */
            OPD_SCOPE { second = opd_data(opd_tensor_new(opd_ints_of(&sizes[i], 1), OPD_FLOAT32)); }
        }
        CHECK(first == second && first != NULL && (i || k > 16));
    }
#endif
}

/* Mistakes are told before a device is looked for. */
TEST(bad_forms_of_pinned_tensors) {
    CHECK(!opd_tensor_new_pinned(opd_ints_of(NULL, 2), OPD_FLOAT32, OPD_CPU));
    CHECK_ERROR(OPD_ERROR_SHAPE, "the pointer to the 2 sizes of a tensor is NULL");
    CHECK(!opd_tensor_new_pinned(opd_ints_of(NULL, 65), OPD_FLOAT32, OPD_CPU));
    CHECK_ERROR(OPD_ERROR_SHAPE, "at most 64 dimensions");
    CHECK(!opd_tensor_new_pinned(OPD_INTS(2), (opd_scalar_type)63, OPD_CPU));
    CHECK_ERROR(OPD_ERROR_DTYPE, "63 is not a dtype");
    CHECK(!opd_tensor_new_pinned(OPD_INTS(2), (opd_scalar_type)-1, OPD_CPU));
    CHECK_ERROR(OPD_ERROR_DTYPE, "-1 is not a dtype");
}

CHECK_MAIN()
