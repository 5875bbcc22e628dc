/* Names of version 0.4 that have new names: they compile, and do the same.  tests/linkage.sh compares the warnings. */
#if !defined(SHOW_WARNINGS) && defined(__GNUC__) && !defined(__TINYC__)
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#elif !defined(SHOW_WARNINGS) && defined(_MSC_VER)
#pragma warning(disable : 4996)
#endif
#include "../../opdispatch.h"
#include "../check.h"

static int number_kernel(opd_call *call) { return opd_return_float(call, 2.5); }
static int reading_kernel(opd_call *call) {
    const opd_floats list = opd_arg_floats(call, 2);
    return opd_return_tensor(call, opd_mul_Scalar(opd_arg_tensor(call, 0),
                                                  OPD_V(opd_arg_float(call, 1) + list.data[0] + (double)list.n)));
}
TEST(old_values) {
    opd_library *const lib = opd_library_open(OPD_DEF, "old_names", NULL, __FILE__, __LINE__);
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "read(Tensor x, float a, float[] list) -> Tensor";
    d.any = reading_kernel;
    CHECK_INT(opd_define(lib, &d), 0);
    d.schema = "number(Tensor x) -> float";
    d.any = number_kernel;
    CHECK_INT(opd_define(lib, &d), 0);
    OPD_SCOPE {
        const double pair[2] = {4, 5};
        const opd_value args[3] = {opd_value_tensor(opd_ones(OPD_INTS(2), OPD_FLOAT64)), opd_value_float(1.5),
                                   opd_value_floats(pair, 2)};
        opd_tensor *const y = opd_call_op(opd_find("old_names::read"), args, 3);
        CHECK(y && opd_data_f64(y)[1] == 7.5);
        CHECK(opd_call_value(opd_find("old_names::number"), args, 1).u.d == 2.5);
        CHECK_INT(opd_value_of_floats(opd_floats_of(pair, 2)).n, 2);
        CHECK_INT(opd_value_of_floats(OPD_FLOATS(1, 2, 3)).n, 3);
        CHECK_INT(opd_device_of(OPD_CUDA, 3).index, 3);
        CHECK(!opd_is_conj(y) && !opd_is_neg(y) && opd_offset(y) == 0);
    }
    opd_library_close(lib);
    opd_json *const json = opd_json_parse("[2.5]", 5);
    CHECK(json && opd_json_float(json, opd_json_first(json, 0), 0) == 2.5);
    opd_json_free(json);
}

TEST(old_plugins) {
    CHECK(!opd_library_load("/no such file") && !opd_ok());
    opd_error_clear();
    CHECK_INT(opd_library_unload(NULL), -1);
    opd_error_clear();
    CHECK(!opd_library_lacks("/no such file"));
    opd_error_clear();
    const char *const files[] = {NULL};
    CHECK(!opd_load("a name that is refused", files, NULL) && !opd_ok());
    opd_error_clear();
    CHECK(!opd_load_inline("a name that is refused", "", NULL) && !opd_ok());
    opd_error_clear();
}

/* The long forms of functions that take all arguments now. */
TEST(old_long_forms) {
    OPD_SCOPE {
        opd_tensor *const x = opd_reshape(opd_arange(OPD_V(6), OPD_FLOAT64), OPD_INTS(2, 3)), *rets[2];
        opd_tensor *const place = opd_reshape(opd_ones(OPD_INTS(1), OPD_INT64), OPD_INTS(1));
        opd_tensor *const both[] = {x, x};        /* in C++, what OPD_TENSORS makes would end with its statement */
        const opd_tensors pair = opd_tensors_of(both, 2), where = opd_tensors_of(&place, 1);
        CHECK_INT(opd_size(opd_cat_full(pair, 1), 1), 6);
        CHECK_INT(opd_size(opd_stack_full(pair, 2), 2), 2);
        CHECK_INT(opd_ndim(opd_flatten_full(x, 0, 1)), 1);
        CHECK_INT(opd_split_full(x, 2, 1).n + opd_chunk_full(x, 3, 1).n, 5);
        CHECK_INT(opd_split_with_sizes_full(x, OPD_INTS(1, 2), 1).n + opd_split_sizes_full(x, OPD_INTS(1, 2), 1).n, 4);
        CHECK_INT(opd_item_i64(opd_argmax_full(x, OPD_NONE, false)), 5);
        CHECK_INT(opd_item_i64(opd_argmin_full(x, OPD_NONE, false)), 0);
        CHECK_INT(opd_sort_full(rets, x, 1, true), 0);
        CHECK_INT(opd_size(opd_argsort_full(x, 0, true), 0), 2);
        CHECK_NEAR(opd_item_f64(opd_sum(opd_clamp_full(x, OPD_V(1), OPD_V(2)))), 10, 0);
        CHECK_NEAR(opd_item_f64(opd_sum(opd_clamp_full_(opd_clone(x), OPD_V(1), OPD_V(2)))), 10, 0);
        CHECK_INT(opd_size(opd_linear_full(x, x, NULL), 1), 2);
        CHECK_INT(opd_size(opd_rms_norm_full(x, OPD_INTS(3), NULL, OPD_NONE), 1), 3);
        CHECK_NEAR(opd_item_f64(opd_sum(opd_leaky_relu_full(x, OPD_V(0.1)))), 15, 0);
        CHECK_NEAR(opd_item_f64(opd_sum(opd_leaky_relu_full_(opd_clone(x), OPD_V(0.1)))), 15, 0);
        CHECK_INT(opd_size(opd_pad_full(x, OPD_INTS(1, 1), "constant", OPD_V(0)), 1), 5);
        CHECK_NEAR(opd_item_f64(opd_sum(opd_tril_full(x, 0))), 7, 0);
        CHECK_NEAR(opd_item_f64(opd_sum(opd_triu_full(x, 1))), 8, 0);
        CHECK_NEAR(opd_item_f64(opd_sum(opd_tril_full_(opd_clone(x), 0))), 7, 0);
        CHECK_NEAR(opd_item_f64(opd_sum(opd_triu_full_(opd_clone(x), 1))), 8, 0);
        CHECK_INT(opd_size(opd_one_hot_full(place, 4), 1), 4);
        CHECK_NEAR(opd_item_f64(opd_sum(opd_addcmul_full(x, x, x, OPD_V(2)))), 125, 0);
        CHECK_NEAR(opd_item_f64(opd_sum(opd_addcmul_full_(opd_clone(x), x, x, OPD_V(2)))), 125, 0);
        opd_tensor *const y = opd_add(x, opd_ones_like(x));
        CHECK_NEAR(opd_item_f64(opd_sum(opd_addcdiv_full(x, y, y, OPD_V(2)))), 27, 0);
        CHECK_NEAR(opd_item_f64(opd_sum(opd_addcdiv_full_(opd_clone(x), y, y, OPD_V(2)))), 27, 0);
        CHECK_INT(opd_ndim(opd_logsumexp_full(x, OPD_INTS(1), true)), 2);
        CHECK_NEAR(opd_item_f64(opd_select(opd_select(opd_roll_full(x, OPD_INTS(1), OPD_INTS(1)), 0, 0), 0, 0)), 2, 0);
        CHECK_INT(opd_ndim(opd_std_dim_full(x, OPD_INTS(1), true, true)), 2);
        CHECK_INT(opd_ndim(opd_var_dim_full(x, OPD_INTS(1), true, true)), 2);
        CHECK_NEAR(opd_item_f64(opd_sum(opd_index_put_full(x, where, opd_ones(OPD_INTS(3), OPD_FLOAT64), true))), 18, 0);
        CHECK_NEAR(opd_item_f64(opd_sum(opd_index_put_full_(opd_clone(x), where, opd_ones(OPD_INTS(3), OPD_FLOAT64), true))),
                   18, 0);
    }
    CHECK_OK();
}

CHECK_MAIN()
