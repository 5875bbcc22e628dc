/* The program of tests/linkage.sh: loads the libraries in its arguments, and tests the operators of ops.c.  With
   -DLINKAGE_USE it calls OPD_USE_LIBRARY, as documented.  With -DLINKAGE_CUDA, the CUDA half must be registered,
   too.  The exit status is 0; 2 if a library is refused, after the error message; 1 if something is wrong. */
#include "opdispatch.h"
#include <stdio.h>
#include <string.h>

void linkage_use(void);
void linkage_cuda_use(void);

static int wrong;
static void expect(bool ok, const char *what) {
    if (!ok) { printf("wrong: %s%s%s\n", what, opd_ok() ? "" : ": ", opd_error_message()); wrong = 1; }
}

static void check(void) {
    opd_op *op = opd_find("linkage::square_plus");
    float data[] = {1, 2, 3};
    opd_tensor *x = opd_tensor_from(data, OPD_INTS(3), OPD_FLOAT32), *y, *grad;
    opd_key_guard guard;
    char text[4000];
    expect(op != NULL, "the operator is found");
    if (!op) { return; }
    opd_tensor_set_requires_grad(x, true);
    y = OPD_CALL(op, x);
    opd_backward(opd_sum(y));
    grad = opd_tensor_grad(x);
    expect(y && grad && opd_data_f32(y)[2] > 9.5f && opd_data_f32(y)[2] < 10.5f, "3 * 3 + 1 is 10");
    expect(grad && opd_data_f32(grad)[2] > 5.5f && opd_data_f32(grad)[2] < 6.5f, "its derivative is 6");
    y = OPD_CALL(op, opd_tensor_new_on(OPD_INTS(4, 5), OPD_FLOAT32, opd_device_make(OPD_META, -1)));
    expect(y && opd_numel(y) == 20, "the fake kernel gives the shape");
    guard = opd_keys_include(opd_keyset_add(OPD_KEYS_EMPTY, OPD_KEY_OF(OPD_F_TRACER)));
    expect(OPD_CALL(op, x) != NULL, "the fallthrough at Tracer is passed by");
    opd_keys_restore(guard);
    expect(opd_op_card(op)->vmap == OPD_BATCH_POINTWISE, "the batching family is known");
    expect(opd_op_card(opd_find("linkage::here"))->backward == OPD_NOT_DIFFERENTIABLE, "not differentiable is known");
    (void)opd_dump(opd_find("linkage::here"), text, sizeof text);
    expect(strstr(text, "Tracer") != NULL, "the second block for Tracer has run");
    (void)opd_dump(op, text, sizeof text);
#ifdef LINKAGE_CUDA
    expect(strstr(text, "CUDA") != NULL, "the CUDA half is registered");
#else
    expect(strstr(text, "CUDA") == NULL, "the CUDA half is not registered");
#endif
    expect(opd_check_invariants() == 0, "the tables agree with the registrations");
    y = OPD_CALL(op, opd_zeros(OPD_INTS(2), OPD_INT64));
    expect(!y && strstr(opd_error_message(), "linkage::square_plus: ") != NULL, "an error of the kernel names it");
    opd_error_clear();
}

int main(int argc, char **argv) {
    opd_plugin *first = NULL;
    int i;
#ifdef LINKAGE_USE
    linkage_use();
#ifdef LINKAGE_CUDA
    linkage_cuda_use();
#endif
#endif
    for (i = 1; i < argc; i++) {
        opd_plugin *p = opd_plugin_load(argv[i]);
        if (!first) { first = p; }
        if (!p) {
            printf("%s\n", opd_error_message());
            opd_error_clear();
            expect(!opd_find_quiet("linkage::square_plus") && !opd_plugin_next(NULL), "nothing stays of a refused one");
            return wrong ? 1 : 2;
        }
        expect(opd_plugin_load(argv[i]) == p && opd_ok(), "a second load gives the same handle");
    }
    OPD_SCOPE { check(); }
    if (first && !wrong) {
        expect(opd_plugin_unload(first) == 0, "unloading");
        expect(!opd_op_schema(opd_find_quiet("linkage::square_plus")) || strstr(argv[1], "cuda"), "the operator is gone");
        expect(opd_plugin_load(argv[1]) != NULL, "loading again");
        OPD_SCOPE { check(); }
    }
    return opd_finish() || wrong;
}
