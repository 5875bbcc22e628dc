/* A program with OPD_LEAN keeps the operators that its operators call.  Each operator is called in a separate
   process in which only its own card is kept, and must not miss another operator.  The arguments are the sample
   arguments of the cards.  Calls are plain, with first and second derivatives, in forward mode, under vmap, with
   autocast, and with fake tensors.  usage: lean_walk [NAME...]: only operators whose names contain a NAME.  Prints
   "N operators, M calls: right". */
#define OPD_LEAN
#define OPD_STATIC
#define OPDISPATCH_IMPLEMENTATION
#include "../cases.h"

#include <sys/wait.h>
#include <unistd.h>

enum { PLAIN, GRADIENTS, FORWARD, VMAP, AUTOCAST, FAKE, WAYS };
static const char *const ways[WAYS] = {"plain", "gradients", "forward mode", "vmap", "autocast", "fake tensors"};

/* A tensor of ones like another, which no operator makes. */
static opd_tensor *ones_like(const opd_tensor *t) {
    opd_tensor *ones = opd_tensor_new(opd_ints_of(opd_sizes(t), opd_ndim(t)), opd_dtype(t));
    for (int64_t i = 0, n = ones ? opd_numel(ones) : 0; i < n; i++) { case_put(ones, i, 1); }
    return ones;
}
static bool is_float(const opd_tensor *t) { return t && opd_dtype_is_floating(opd_dtype(t)); }
/* The floating tensors among the arguments of a case. */
static int inputs_of(const op_case *c, opd_tensor **in) {
    int n = 0;
    for (int i = 0; i < c->nargs && n < MOST_INPUTS; i++) {
        if (c->args[i].tag == OPD_TAG_TENSOR && is_float(c->args[i].u.t)) { in[n++] = c->args[i].u.t; }
        for (int k = 0; c->args[i].tag == OPD_TAG_TENSORS && k < c->args[i].n && n < MOST_INPUTS; k++) {
            if (is_float(c->args[i].u.tensors[k])) { in[n++] = c->args[i].u.tensors[k]; }
        }
    }
    return n;
}
static int call(const op_case *c, opd_tensor **out) {
    opd_value rets[MOST_RESULTS];
    return opd_call_all((opd_op *)(uintptr_t)c->op, rets, c->args, c->nargs) ? -1 : results_of(c->op, rets, out);
}
/* Gradients of the results by `in`, with a graph; how many. */
static int gradients(opd_tensor **out, int nout, opd_tensor **in, int nin, opd_tensor **grads) {
    opd_tensor *ones[MOST_RESULTS], *used[MOST_RESULTS];
    opd_backward_options options;
    int n = 0;
    memset(&options, 0, sizeof options);
    for (int i = 0; i < nout; i++) {
        if (is_float(out[i]) && opd_tensor_requires_grad(out[i])) { used[n] = out[i]; ones[n++] = ones_like(out[i]); }
    }
    if (n == 0) { return 0; }
    options.create_graph = options.allow_unused = true;
    options.grad_outputs = ones;
    return opd_autograd_grad(used, n, in, nin, &options, grads) ? 0 : nin;
}
static void run(const op_case *c, int way) {
    opd_tensor *in[MOST_INPUTS], *out[MOST_RESULTS], *grads[MOST_INPUTS], *again[MOST_INPUTS];
    const int nin = inputs_of(c, in);
    if (way == PLAIN) { (void)call(c, out); }
    if (way == GRADIENTS && nin) {
        for (int i = 0; i < nin; i++) { (void)opd_tensor_set_requires_grad(in[i], true); }
        const int nout = call(c, out), n = nout > 0 ? gradients(out, nout, in, nin, grads) : 0;
        if (n > 0) { (void)gradients(grads, n, in, nin, again); }
    }
    if (way == FORWARD && nin) {
        const int level = opd_dual_level_begin();
        op_case dual = *c;
        for (int i = 0; i < dual.nargs; i++) {
            if (dual.args[i].tag == OPD_TAG_TENSOR && is_float(dual.args[i].u.t)) {
                dual.args[i].u.t = opd_dual_new(dual.args[i].u.t, ones_like(dual.args[i].u.t));
            }
        }
        (void)call(&dual, out);
        (void)opd_dual_level_end(level);
    }
    if (way == VMAP && nin) {
        opd_tensor *all[MOST_INPUTS];
        opd_vmap_options options;
        int n = 0;
        memset(&options, 0, sizeof options);
        options.randomness = OPD_RANDOM_DIFFERENT;
        for (int i = 0; i < c->nargs; i++) {
            if (c->args[i].tag != OPD_TAG_TENSOR) { continue; }
            const opd_tensor *t = c->args[i].u.t;
            int64_t sizes[OPD_MAX_DIMS] = {2};
            for (int k = 0; k < opd_ndim(t); k++) { sizes[k + 1] = opd_sizes(t)[k]; }
            all[n] = opd_tensor_new(opd_ints_of(sizes, opd_ndim(t) + 1), opd_dtype(t));
            for (int64_t k = 0, count = opd_numel(t); k < 2 * count; k++) { case_put(all[n], k, case_get(t, k % count)); }
            n++;
        }
        (void)opd_vmap(case_call, (void *)(uintptr_t)c, all, n, &options, out, MOST_RESULTS);
    }
    if (way == AUTOCAST) {
        opd_autocast_region region = opd_autocast_begin(OPD_CPU, OPD_BFLOAT16, true, -1);
        (void)call(c, out);
        opd_autocast_end(&region);
    }
    if (way == FAKE) {
        opd_fake_block block = opd_fake_begin();
        (void)call(c, out);
        opd_fake_end(&block);
    }
}
/* In a process of its own: the calls of an operator in one way; what to exit with. */
static int child(const opdi_lean_card *card, int way) {
    int wrong = 0;
    memset(opdi_lean_cards, 0, sizeof opdi_lean_cards);
    (void)opdi_lean_note(card, NULL);
    const opd_op *op = opd_op_builtin((opd_op_id)card->number);
    const char *text = op && opd_op_card(op)->cases ? opd_op_card(op)->cases : "";
    opd_error_clear();
    while (op && *text) {
        static op_case c;
        c.op = op;
        c.dtype = way == AUTOCAST ? OPD_FLOAT32 : OPD_FLOAT64;
        OPD_SCOPE {
            if (!case_read_next(&c, &text)) { text = ""; }
            else { run(&c, way); }
        }
        if (!opd_ok() && strstr(opd_error_message(), "OPD_LEAN")) {
            printf("%s, %s: %s\n", card->name, ways[way], opd_error_message());
            wrong = 1;
            break;
        }
        opd_error_clear();
    }
    fflush(stdout);
    return wrong;
}
int main(int argc, char **argv) {
#define OPDI_CARD(card, name) &opdi_kept_##card,
    static const opdi_lean_card *const all[] = {OPDI_CARDS};
#undef OPDI_CARD
    int operators = 0, calls = 0, wrong = 0;
    for (int i = 0; i < (int)(sizeof all / sizeof *all); i++) {
        bool wanted = argc < 2;
        for (int k = 1; k < argc; k++) { wanted = wanted || strstr(all[i]->name, argv[k]); }
        if (!wanted) { continue; }
        operators++;
        for (int way = 0; way < WAYS; way++) {
            int status = 0;
            fflush(stdout);
            const pid_t pid = fork();
            if (pid == 0) { _exit(child(all[i], way)); }
            if (pid < 0 || waitpid(pid, &status, 0) < 0) { perror("fork"); return 1; }
            if (WIFSIGNALED(status)) { printf("%s, %s: signal %d\n", all[i]->name, ways[way], WTERMSIG(status)); }
            wrong += status != 0;
            calls++;
        }
    }
    printf("%d operators, %d calls: %s\n", operators, calls, wrong ? "wrong" : "right");
    return wrong || operators == 0;
}
