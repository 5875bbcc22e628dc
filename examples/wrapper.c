/* A wrapper: a tensor that carries a user key, so that each operator call with this tensor passes through one function.
   This function prints the operator's name, runs the operator on the wrapped tensors, and wraps the results.
   cc -O2 -DOPD_LEAN -DOPD_STATIC examples/wrapper.c -o wrapper -lm && ./wrapper

   Only this file knows about wrappers.  All operators work with them, also operators that are written later. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <stdio.h>

#define LOGGED OPD_F_USER_6                       /* above autograd: the wrapped tensor may require grad */
static int logged;

static opd_tensor *inside(opd_tensor *t) {
    opd_tensor *inner = opd_tensor_unwrap_key(t, LOGGED);
    return inner ? inner : t;
}

/* An in-place operator returns its argument.  Then the result is the wrapper of this argument. */
static opd_tensor *wrapped(opd_call *call, opd_tensor *result) {
    int i;
    for (i = 0; i < opd_call_nargs(call); i++) {
        opd_value v = opd_arg_value(call, i);
        if (v.tag == OPD_TAG_TENSOR && opd_tensor_unwrap_key(v.u.t, LOGGED) == result) { return v.u.t; }
    }
    return opd_tensor_wrap_key(result, LOGGED);
}

static int logging_fallback(opd_call *call) {
    enum { MOST = 64 };                           /* elements of a list of tensors */
    opd_value args[OPD_MAX_ARGS], rets[16];
    opd_tensor *lists[4][MOST];
    int n = opd_call_nargs(call), nlists = 0, i, k;
    printf("%s\n", opd_op_name(opd_call_operator(call)));
    logged++;
    for (i = 0; i < n; i++) {
        args[i] = opd_arg_value(call, i);
        if (args[i].tag == OPD_TAG_TENSOR) { args[i].u.t = inside(args[i].u.t); }
        if (args[i].tag == OPD_TAG_TENSORS) {
            if (nlists == 4 || args[i].n > MOST) { return opd_fail(OPD_ERROR_USER, "a list has too many tensors"); }
            for (k = 0; k < args[i].n; k++) { lists[nlists][k] = inside(args[i].u.tensors[k]); }
            args[i] = opd_value_tensors(lists[nlists++], args[i].n);
        }
    }
    if (opd_call_all(opd_call_operator(call), rets, args, n)) { return -1; }
    for (i = 0; i < opd_schema_nreturns(opd_op_schema(opd_call_operator(call))); i++) {
        int rc = rets[i].tag == OPD_TAG_TENSOR ? opd_return_tensor(call, wrapped(call, rets[i].u.t))
                                               : opd_return_value(call, rets[i]);
        if (rc) { return rc; }
    }
    return 0;
}
OPD_LIBRARY_IMPL(_, LoggedTensor, lib) { opd_fallback(lib, logging_fallback); }

int main(void) {
    float data[] = {1, 2, 3}, total = 0;
    opd_key_define(LOGGED, "LoggedTensor");
    OPD_SCOPE {
        opd_tensor *x = opd_tensor_set_requires_grad(opd_tensor_from(data, OPD_INTS(3), OPD_FLOAT32), true);
        opd_tensor *y = opd_tensor_wrap_key(x, LOGGED);
        opd_tensor *z = opd_sum(opd_mul(y, y));   /* two calls, both logged */
        opd_add(x, x);                            /* no wrapper among its arguments: not logged */
        opd_backward(opd_tensor_unwrap_key(z, LOGGED));
        total = (float)opd_item_f64(opd_tensor_unwrap_key(z, LOGGED));
        opd_print(opd_tensor_grad(x));
    }
    printf("sum of squares %g, %d calls logged\n", (double)total, logged);
    return opd_finish() || logged != 2;
}
