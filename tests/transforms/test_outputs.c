/* Transforms write no more outputs than the caller's array has room for. */
#include "../../opdispatch.h"
#include "../check.h"

#define ROOM 6
static int two(void *user, opd_tensor *const *in, int n, opd_tensor **out) {     /* x^2 and 3 x, each summed to a number */
    (void)user;
    (void)n;
    out[0] = opd_sum(opd_mul(in[0], in[0]));
    out[1] = opd_mul_Scalar(opd_sum(in[0]), OPD_V(3));
    return opd_ok() ? 2 : -1;
}
static opd_derivative *pulled, *pushed;
static opd_tensor *x, *along[ROOM];
/* Calls transform number k, whose outputs are at out[cap].  Returns its result. */
static int transform(int k, opd_tensor **out, int cap) {
    opd_transform_options o;
    memset(&o, 0, sizeof o);
    o.naux = 1;
    switch (k) {
    case 0: return opd_vmap(two, NULL, &x, 1, NULL, out, cap);
    case 1: return opd_grad(two, NULL, &x, 1, &o, out, cap);
    case 2: return opd_grad_and_value(two, NULL, &x, 1, &o, out, cap);
    case 3: return opd_jacrev(two, NULL, &x, 1, NULL, out, cap);
    case 4: return opd_jacfwd(two, NULL, &x, 1, NULL, out, cap);
    case 5: return opd_hessian(two, NULL, &x, 1, NULL, out, cap);
    case 6: return opd_jvp(two, NULL, &x, &x, 1, NULL, out, along, cap);
    case 7: return opd_vjp(two, NULL, &x, 1, NULL, out, cap, &pulled);
    case 8: return opd_linearize(two, NULL, &x, 1, NULL, out, cap, &pushed);
    case 9: return opd_derivative_call(pushed, &x, 1, 0, out, cap);
    default: return opd_checkpoint_call(two, NULL, NULL, &x, 1, NULL, out, cap);
    }
}
TEST(outputs_fit_the_array) {
    static const char *const names[] = {"vmap", "grad", "grad_and_value", "jacrev", "jacfwd", "hessian", "jvp", "vjp",
                                        "linearize", "opd_derivative_call", "opd_checkpoint"};
    static const int counts[] = {2, 2, 3, 2, 2, 2, 2, 2, 2, 2, 2};
    for (int k = 0; k < 11; k++) {
        for (int cap = -1; cap < ROOM; cap++) {
            OPD_SCOPED;
            opd_tensor *out[ROOM + 1], *const mark = (opd_tensor *)(void *)out;
            x = opd_reshape(opd_arange(OPD_V(4), OPD_FLOAT64), OPD_INTS(2, 2));
            if (k == 9) { CHECK_INT(opd_linearize(two, NULL, &x, 1, NULL, out, ROOM, &pushed), 2); }
            for (int i = 0; i <= ROOM; i++) { out[i] = mark; }
            const int got = transform(k, out, cap);
            if (cap < counts[k]) {
                CHECK_INT(got, -1);
                CHECK_ERROR(OPD_ERROR_ARGUMENT, names[k]);
                if (k == 7) { CHECK(!pulled); }
                if (k == 8) { CHECK(!pushed); }
            }
            else {
                CHECK_OK();
                CHECK_INT(got, counts[k]);
            }
            for (int i = 0; i <= ROOM; i++) {
                if (i >= cap) { CHECK(out[i] == mark); }
                else if (i < counts[k]) { CHECK(cap < counts[k] ? !out[i] || (k == 10 && i) : out[i] && out[i] != mark); }
                else { CHECK(out[i] == mark); }
            }
        }
    }
}
static int nothing(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)in;
    (void)n;
    (void)out;
    return opd_fail(OPD_ERROR_USER, "nothing is computed");
}
/* The same, as a function of the older checkpoints. */
static int two_again(opd_tensor *const *in, int n, opd_tensor **out, int nout, void *user) {
    return two(user, in, n, out) == nout ? 0 : -1;
}
TEST(outputs_of_checkpoints) {
    OPD_SCOPED;
    opd_tensor *out[2], *const mark = (opd_tensor *)(void *)out;
    x = opd_reshape(opd_arange(OPD_V(4), OPD_FLOAT64), OPD_INTS(2, 2));
    for (int k = 0; k < 3; k++) {                 /* the function fails, is NULL, and was called after an error */
        out[0] = out[1] = mark;
        if (k == 2) { (void)opd_fail(OPD_ERROR_USER, "nothing is computed"); }
        CHECK_INT(opd_checkpoint_call(k == 1 ? NULL : nothing, NULL, NULL, &x, 1, NULL, out, 1 << 30), -1);
        CHECK(!out[0] && out[1] == mark);
        CHECK_ERROR(k == 1 ? OPD_ERROR_ARGUMENT : OPD_ERROR_USER, k == 1 ? "the function is NULL" : "nothing");
    }
    out[0] = x;                                   /* the array of inputs may be the array of outputs */
    CHECK_INT(opd_checkpoint_call(two, NULL, NULL, out, 1, NULL, out, 2), 2);
    CHECK_NEAR(opd_item_f64(out[0]), 14, 0);
    out[0] = x;
    CHECK_INT(opd_checkpoint(two_again, NULL, NULL, out, 1, out, 2), 0);
    CHECK_NEAR(opd_item_f64(out[0]), 14, 0);
    CHECK_OK();
}
/* A custom function with the outputs x and 2 x. */
static int forward_of_two(opd_context *context) {
    opd_tensor *input = opd_context_tensor(context, 0);
    (void)opd_context_return(context, input);
    return opd_context_return(context, opd_add(input, input));
}
/* The functions that plug-ins of version 0.4 call do not know the length, or have another order or result. */
TEST(old_forms) {
    OPD_SCOPED;
    opd_tensor *out[3] = {NULL, NULL, NULL}, *tangents[2];
    x = opd_reshape(opd_arange(OPD_V(4), OPD_FLOAT64), OPD_INTS(2, 2));
    CHECK_INT(opdi_old_vmap(two, NULL, &x, 1, NULL, out), 2);
    opd_transform_options o;
    memset(&o, 0, sizeof o);
    o.naux = 1;
    CHECK_INT(opdi_old_grad(two, NULL, &x, 1, &o, out), 2);
    CHECK_INT(opdi_old_grad_and_value(two, NULL, &x, 1, &o, out), 3);
    CHECK_INT(opdi_old_jacrev(two, NULL, &x, 1, NULL, out), 2);
    CHECK_INT(opdi_old_jacfwd(two, NULL, &x, 1, NULL, out), 2);
    CHECK_INT(opdi_old_hessian(two, NULL, &x, 1, NULL, out), 2);
    CHECK_INT(opdi_old_jvp(two, NULL, &x, &x, 1, NULL, out, tangents), 2);
    CHECK_INT(opdi_old_vjp(two, NULL, &x, 1, NULL, out, &pulled), 2);
    CHECK_INT(opdi_old_linearize(two, NULL, &x, 1, NULL, out, &pushed), 2);
    CHECK_INT(opdi_old_derivative_call(pushed, &x, 1, 0, out), 2);
    CHECK_INT(opdi_old_checkpoint_call(two, NULL, NULL, &x, 1, NULL, out), 2);
    CHECK_OK();
    CHECK_NEAR(opd_item_f64(out[0]), 14, 0);
    opd_autograd_function function;
    memset(&function, 0, sizeof function);
    function.name = "two";
    function.forward = forward_of_two;
    opd_value values[2], given = opd_value_tensor(x);
    char text[80];
    CHECK_INT(opdi_old_autograd_apply(&function, values, 2, &given, 1), 2);
    CHECK_OK();
    CHECK_NEAR(opd_item_f64(opd_sum(values[1].u.t)), 12, 0);
    CHECK(opdi_old_device_print(opd_device_make(OPD_CUDA, 2), text, sizeof text) == text);
    CHECK_STR(text, "cuda:2");
    CHECK(opdi_old_keyset_print(OPD_KEYS_EMPTY, text, sizeof text) == text);
    CHECK_STR(text, "DispatchKeySet()");
    opd_op_filter filter;
    memset(&filter, 0, sizeof filter);
    filter.ns = "aten";
    filter.part = "::add.";
    opd_op *ops[2] = {NULL, NULL};
    const size_t all = opdi_old_op_list(&filter, NULL, 0);
    CHECK(all > 1 && opdi_old_op_list(&filter, ops, 1) == all && ops[0] && !ops[1]);
    CHECK(opdi_old_op_list(&filter, NULL, SIZE_MAX) == all);
    filter.key = "no_such_key";
    CHECK(opdi_old_op_list(&filter, ops, 1) == 0);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "no_such_key");
    out[1] = x;
    CHECK_INT(opdi_old_grad(two, NULL, &x, 1, NULL, out), -1);
    CHECK(!out[0] && out[1] == x);
    opd_error_clear();
}

CHECK_MAIN()
