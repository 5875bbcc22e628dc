/* Profiles a small training loop: prints where the time goes, and writes a trace for ui.perfetto.dev to trace.json.
   cc -O2 -DOPD_LEAN -DOPD_STATIC examples/profile.c -o profile -lm && ./profile trace.json
   ci: trace.json

   The loop has 50 steps of gradient descent.  A network of two linear layers learns to tell points inside a ring from
   points outside.  Beside the profiler, an observer of this program counts the calls and the bytes of their results.
   Use opd_observer_add like this if you need something else than the profiler's table. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <stdio.h>
#include <string.h>

enum { POINTS = 512, HIDDEN = 64, STEPS = 50 };

//-- an observer --------------------------------------------------------------------------------------------------

typedef struct counts { long long calls, nodes, bytes; } counts;

static void count_end(const opd_event *event, void *context, void *user) {
    counts *c = (counts *)user;
    (void)context;
    if (event->kind == OPD_OBSERVE_BACKWARD) { c->nodes++; return; }
    c->calls++;
    for (int i = 0; i < event->nrets; i++) {
        const opd_tensor *t = event->rets[i].tag == OPD_TAG_TENSOR ? event->rets[i].u.t : NULL;
        c->bytes += opd_numel(t) * (long long)opd_dtype_size(opd_dtype(t));
    }
}

//-- the training loop --------------------------------------------------------------------------------------------

typedef struct net { opd_tensor *w1, *b1, *w2, *b2; } net;

static opd_tensor *parameter(opd_tensor *values) { return opd_tensor_set_requires_grad(opd_keep(values), true); }

static opd_tensor *net_loss(const net *n, opd_tensor *x, opd_tensor *y) {
    opd_tensor *hidden = opd_tanh(opd_add(opd_mm(x, n->w1), n->b1));
    opd_tensor *out = opd_sigmoid(opd_add(opd_mm(hidden, n->w2), n->b2));
    opd_tensor *error = opd_sub(out, y);
    return opd_mean(opd_mul(error, error));
}

/* Subtracts rate * gradient from p, and clears the gradient. */
static void descend(opd_tensor *p, double rate) {
    bool was = opd_grad_mode_set(false);
    opd_sub_full_(p, opd_tensor_grad(p), opd_value_double(rate));
    opd_tensor_set_grad(p, NULL);
    opd_grad_mode_set(was);
}

static double step(const net *n, opd_tensor *x, opd_tensor *y) {
    opd_span *span = opd_span_open("forward");
    opd_tensor *loss = net_loss(n, x, y);
    opd_span_close(span);
    span = opd_span_open("backward");
    opd_backward(loss);
    opd_span_close(span);
    span = opd_span_open("descend");
    descend(n->w1, 4);
    descend(n->b1, 4);
    descend(n->w2, 4);
    descend(n->b2, 4);
    opd_span_close(span);
    return opd_item_f64(loss);
}

int main(int argc, char **argv) {
    if (argc > 2 || (argc > 1 && argv[1][0] == '-')) {
        const bool asked = argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
        fputs("usage: profile [TRACE]\n  TRACE   the file for ui.perfetto.dev (trace.json)\n", asked ? stdout : stderr);
        return asked ? 0 : 2;
    }
    const char *path = argc > 1 ? argv[1] : "trace.json";
    opd_profiler_options options = {.order = OPD_PROFILE_BY_SELF};
    counts seen = {0, 0, 0};
    opd_profile *profile;
    int64_t counter;
    double first = 0, last = 0;
    OPD_SCOPED;
    opd_tensor *x = opd_randn(OPD_INTS(POINTS, 2), OPD_FLOAT32);
    opd_tensor *radius = opd_sum_dim(opd_mul(x, x), OPD_INTS(1), true);
    opd_tensor *y = opd_to_dtype(opd_lt_Scalar(radius, OPD_V(1.4)), OPD_FLOAT32);
    net n = {parameter(opd_randn(OPD_INTS(2, HIDDEN), OPD_FLOAT32)), parameter(opd_zeros(OPD_INTS(HIDDEN), OPD_FLOAT32)),
             parameter(opd_mul_Scalar(opd_randn(OPD_INTS(HIDDEN, 1), OPD_FLOAT32), OPD_V(0.1))),
             parameter(opd_zeros(OPD_INTS(1), OPD_FLOAT32))};

    counter = opd_observer_add(&(opd_observer){
        .end = count_end, .user = &seen, .kinds = OPD_OBSERVE_CALL | OPD_OBSERVE_BACKWARD});
    opd_profiler_begin(&options);
    for (int i = 0; i < STEPS && opd_ok(); i++) {
        OPD_SCOPE {
            last = step(&n, x, y);
            if (i == 0) { first = last; }
        }
    }
    profile = opd_profiler_end();
    opd_observer_remove(counter);

    printf("%d steps: loss %.4f, then %.4f\n", STEPS, first, last);
    printf("%lld calls and %lld backward nodes; the calls returned %lld bytes\n\n", seen.calls, seen.nodes, seen.bytes);
    opd_profile_print(profile);
    if (opd_profile_write_trace(profile, path) == 0) { printf("\n%s: open it in ui.perfetto.dev\n", path); }
    opd_profile_free(profile);
    opd_release(n.w1);
    opd_release(n.b1);
    opd_release(n.w2);
    opd_release(n.b2);
    return opd_finish();
}
