/* A mode: while it is on, every operator call of the thread passes through one function, which counts the calls.
   cc -O2 -DOPD_LEAN -DOPD_STATIC examples/mode.c -o mode -lm && ./mode

   A mode consists of a key in the thread's included set, and a fallback at this key.  The fallback calls the operator
   again, below the key.  Meanwhile, the key is excluded, so only calls that the program itself makes are counted. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <stdio.h>

#define COUNTING OPD_F_USER_7                     /* above autograd, autocast and the transforms */
static int counted;

static int counting_fallback(opd_call *call) {
    opd_keyset mode = opd_keyset_add(OPD_KEYS_EMPTY, COUNTING);
    printf("%d: %s\n", ++counted, opd_op_name(opd_call_operator(call)));
    opd_keys_exclude(mode);                       /* until this kernel ends: then the dispatcher includes it again */
    return opd_redispatch(call, opd_keyset_minus(opd_call_keys(call), mode));
}
OPD_LIBRARY_IMPL(_, CountingMode, lib) { opd_fallback(lib, counting_fallback); }

int main(void) {
    int64_t sizes[] = {2, 3, 4, 4};
    opd_key_define(COUNTING, "CountingMode");     /* before the first use of the dispatcher, which runs the block */
    OPD_SCOPE {
        opd_key_guard on = opd_keys_include(opd_keyset_add(OPD_KEYS_EMPTY, COUNTING));
        opd_tensor *x = opd_ones(opd_ints_of(sizes, 4), OPD_FLOAT32);
        opd_tensor *w = opd_batch_norm(x, NULL, NULL, NULL, NULL, true, 0.1, 1e-5, false);
        opd_keys_restore(on);
        opd_exp(w);                               /* not counted: the mode is off */
    }
    printf("%d calls\n", counted);
    return opd_finish() || counted != 2;
}
