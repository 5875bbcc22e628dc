/* Records a training as an audit, checks a second run against it, and says where two audits part.
   cc -O2 -DOPD_LEAN -DOPD_STATIC examples/audit.c -o audit -lm && ./audit record run.audit && ./audit check run.audit
   ci: record $tmp/run.audit

   ./audit record FILE [--lr RATE]   trains 40 steps, and writes hashes of the tensors of each step to FILE
   ./audit check FILE [--lr RATE]    trains again, and stops at the first tensor that differs from that of FILE
   ./audit FILE1 FILE2               compares two files, of this program or any other

   The program trains in the mode of same bits, so the file is the same on all machines of the table in the guide's
   chapter "The same bits".  With another learning rate, the update of the first step differs:
       ./audit check run.audit --lr 0.002 */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 40, BATCH = 32, FEATURES = 8, HIDDEN = 24 };

static void add(opd_module *module, const char *name, opd_ints sizes) {
    opd_tensor *const weight = opd_tensor_new(sizes, OPD_FLOAT32);
    opd_init_uniform_(weight, -0.3, 0.3);
    opd_module_add(module, name, opd_tensor_set_requires_grad(weight, true), OPD_MODULE_PARAMETER);
}
static opd_tensor *forward(const opd_module *module, opd_tensor *x) {
    x = opd_gelu(opd_linear(x, opd_module_get(module, "1.weight"), opd_module_get(module, "1.bias")));
    return opd_linear(opd_dropout(x, 0.1, true), opd_module_get(module, "2.weight"), opd_module_get(module, "2.bias"));
}
/* Trains with the audit, and ends it.  An error of the audit ends the training. */
static void train(opd_audit *audit, double rate) {
    opd_module *const module = opd_module_new();
    opd_manual_seed(1);
    OPD_SCOPE {
        add(module, "1.weight", OPD_INTS(HIDDEN, FEATURES));
        add(module, "1.bias", OPD_INTS(HIDDEN));
        add(module, "2.weight", OPD_INTS(1, HIDDEN));
        add(module, "2.bias", OPD_INTS(1));
    }
    opd_adam_options options = opd_adamw_defaults();
    options.lr = rate;
    opd_optimizer *const adam = opd_module_adamw(module, NULL, &options);
    opd_audit_module(audit, NULL, module);
    for (int step = 0; step < STEPS && opd_ok(); step++) {
        OPD_SCOPED;
        opd_tensor *const x = opd_randn(OPD_INTS(BATCH, FEATURES), OPD_FLOAT32);
        opd_tensor *const want = opd_sum_dim(opd_mul(x, x), OPD_INTS(1), true);
        opd_audit_tensor(audit, "x", x);         /* begins the step */
        opd_tensor *const loss = opd_mse_loss(forward(module, x), want);
        opd_audit_tensor(audit, "loss", loss);
        opd_backward(loss);
        opd_audit_step(audit);                   /* after backward, before the step of the optimizer */
        opd_optimizer_step(adam);
        opd_optimizer_zero_grad(adam);
        if (step % 10 == 9) { printf("step %2d  loss %.4f\n", step + 1, opd_item_f64(loss)); }
    }
    opd_audit_end(audit);
    opd_optimizer_free(adam);
    opd_module_free(module);
}
static int usage(FILE *to, int status) {
    fprintf(to, "usage: audit record FILE [--lr RATE]\n"
                "       audit check FILE [--lr RATE]\n"
                "       audit FILE1 FILE2\n"
                "  record trains, and writes hashes of the tensors of each step to FILE.  check trains again, and stops at the\n"
                "  first tensor that differs from that of FILE.  With two files, says where they part.\n"
                "  --lr RATE  the learning rate (0.01)\n");
    return status;
}
int main(int argc, char **argv) {
    const bool record = argc > 2 && strcmp(argv[1], "record") == 0, check = argc > 2 && strcmp(argv[1], "check") == 0;
    const bool with_rate = argc == 5 && strcmp(argv[3], "--lr") == 0;
    char text[1024];
    if (argc == 2 && strcmp(argv[1], "--help") == 0) { return usage(stdout, 0); }
    if (record || check) {
        if (argc != 3 && !with_rate) { return usage(stderr, 2); }
        (void)opd_same_bits_set(true);
        opd_audit *const audit = record ? opd_audit_begin(argv[2], 0) : opd_audit_check(argv[2], 0);
        if (audit) { train(audit, with_rate ? strtod(argv[4], NULL) : 0.01); }
        if (check && opd_ok()) { printf("the run is the same as that of %s\n", argv[2]); }
        return opd_finish();
    }
    if (argc != 3) { return usage(stderr, 2); }
    const int parted = opd_audit_compare(argv[1], argv[2], text, sizeof text);
    if (parted >= 0) { printf("%s\n", parted ? text : "the runs are the same"); }
    return opd_finish() || parted ? 1 : 0;
}
