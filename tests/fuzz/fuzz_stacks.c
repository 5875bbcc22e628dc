/* Random functions of one tensor, with views, in-place operators, indexing and reductions, in random stacks of up to
   four transforms.  The results equal those of the same computation with only autograd (see ../stacks.h). */
#include "fuzz.h"
#include "../stacks.h"

/* Calls that keep y's sizes [3]; those with v write into a part of y. */
static const char *const calls[] = {
    "y = sin(y); ", "y = mul(y, x); ", "y = tanh(y); ", "y = add(y, x); ", "y = softmax(y, 0); ", "y = cumsum(y, 0); ",
    "y = flip(y, (0)); ", "y = roll(y, (1)); ", "y = index(y, {i[2,0,0]}); ", "y = gather(y, 0, i[1,2,1]); ",
    "z = sum(y); y = mul(x, z); ", "z = norm(x, 2); y = mul(y, z); ", "z = outer(x, y); y = mv(z, x); ",
    "y, i = sort(y, 0); ", "z = exp(x); y = lerp(y, z, 0.25); ", "z = gt(x, y); y = where(z, x, y); ",
    "y = clone(y); sin_(y); ", "y = clone(y); mul_(y, x); ", "y = clone(y); exp_(y); tanh_(y); ",
    "y = clone(y); v = select(y, 0, 1); u = select(x, 0, 0); mul_(v, u); ",
    "y = clone(y); v = slice(y, 0, 0, 2); sin_(v); ", "y = clone(y); v = slice(y, 0, 0, 3, 2); u = slice(x, 0, 1, 3); mul_(v, u); ",
    "y = clone(y); v = slice(y, 0, 1, 3); u = slice(x, 0, 0, 2); copy_(v, u); ", "y = clone(y); v = select(y, 0, 2); zero_(v); ",
    "y = clone(y); u = sin(x); v = slice(u, 0, 0, 2); index_put_(y, {i[2,0]}, v); ",
    "y = clone(y); u = sin(x); scatter_add_(y, 0, i[2,2,0], u); ", "y = clone(y); v = slice(x, 0, 0, 2); index_add_(y, 0, i[1,1], v); ",
    "y = clone(y); u = select(x, 0, 0); masked_fill_(y, b[0,1,0], u); ",
    "z = new_zeros(x, (3,3)); v = diagonal(z); copy_(v, y); y = mv(z, x); "};

static void one(const uint8_t *data, size_t n) {
    const double start[3] = {0.4375, -0.71875, 1.0625};
    char text[1024] = "y = mul(x, 0.5); ", name[200];
    stack_of s;
    opd_tensor *x, *want, *got;
    int i, count;
    at = data;
    end = data + n;
    for (i = 0, count = 1 + (int)(next() % 5); i < count; i++) { strcat(text, calls[next() % COUNT(calls)]); }
    strcat(text, "y");
    memset(&s, 0, sizeof s);
    for (i = 0, count = 1 + (int)(next() % 4); i < count; i++) { s.kinds[s.n++] = (int)(next() % (i ? NESTING : KINDS)); }
    if (stack_order(&s) > 3) { return; }
    s.text = text;
    x = opd_tensor_from(start, OPD_INTS(3), OPD_FLOAT64);
    x = x ? stack_input(&s, x) : NULL;
    want = stack_plain(&s, x);
    if (!want) { opd_error_clear(); return; }
    if (!fuzz_short) { stack_poison(); }
    got = stack_run(&s, x);
    if (fuzz_short && !got) { return; }
    if (!got || !(stack_apart(got, want) < 1e-6)) {
        fprintf(stderr, "%s of %s: %s\n", stack_name(&s, name, sizeof name), text, got ? "another value" : opd_error_message());
    }
    MUST(got && stack_apart(got, want) < 1e-6);
}
FUZZ(one)
