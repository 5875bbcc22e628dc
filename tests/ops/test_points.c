/* Pointwise operators at points where gradients are easily wrong: zeros, poles, ends of domains and ties.  The values and
   gradients are PyTorch's, in golden/points.txt, which golden/make_points.py makes. */
#include "../check.h"
#include <math.h>

/* Where PyTorch's numbers are others, and why. */
static bool other_here(const char *name, int i, const double *at) {
    if (strcmp(name, "aten::digamma") == 0) { return i > 0 && at[0] <= 0; }   /* PyTorch: 1e32 at a pole */
    (void)at;
    return false;
}
static const double points[] = {-2, -1, -0.5, 0, 0.5, 1, 2};
static int compared, differ;

static void compare(const char *name, int i, const double *at, double got, const char *want) {
    const double number = strcmp(want, "-") == 0 ? 0 : strtod(want, NULL);    /* no gradient: zeros */
    if (other_here(name, i, at)) { return; }
    compared++;
    if ((isnan(got) && isnan(number)) || (isinf(got) ? got == number : fabs(got - number) <= 1e-6 * fmax(fabs(number), 1))) { return; }
    differ++;
    printf("%s(%g, %g): %s %g, PyTorch %s\n", name, at[0], at[1], i ? "gradient" : "value", got, want);
    CHECK(!"equals PyTorch");
}
/* Calls the operator at one point, and reads the expected numbers from `line`. */
static void point(const char *name, int n, const double *at, char *line) {
    opd_tensor *in[2];
    opd_value args[2];
    const char *words[3];
    for (int i = 0; i < 1 + n; i++) { words[i] = strtok(i ? NULL : line, " \n"); }
    for (int i = 0; i < n; i++) {
        in[i] = opd_tensor_from(&at[i], opd_ints_of(NULL, 0), OPD_FLOAT64);
        (void)opd_tensor_set_requires_grad(in[i], true);
        args[i] = opd_value_tensor(in[i]);
    }
    opd_tensor *const out = opd_call_op(opd_find(name), args, n);
    if (out && opd_tensor_requires_grad(out)) { (void)opd_backward(out); }
    if (!out || !opd_ok() || !words[n]) {
        printf("%s(%g, %g): %s\n", name, at[0], at[1], opd_error_message());
        CHECK(!"runs");
        opd_error_clear();
        return;
    }
    compare(name, 0, at, *opd_data_f64(opd_tensor_data(out)), words[0]);
    for (int i = 0; i < n; i++) {
        opd_tensor *const grad = opd_tensor_grad(in[i]);
        compare(name, 1 + i, at, grad ? *opd_data_f64(grad) : 0, words[1 + i]);
    }
}
TEST(values_and_gradients_at_special_points) {
    FILE *file = check_golden("points.txt");
    char line[200], name[100];
    int n, count = (int)(sizeof points / sizeof *points);
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "%99s %d", name, &n) != 2 || strncmp(name, "aten::", 6) != 0) { continue; }
        for (int i = 0; i < (n == 1 ? count : count * count) && fgets(line, sizeof line, file); i++) {
            OPD_SCOPED;
            const double at[2] = {points[n == 1 ? i : i / count], points[i % count]};
            if (opd_find_quiet(name)) { point(name, n, at, line); }
        }
    }
    if (file) { fclose(file); }
    printf("%d numbers, %d differ\n", compared, differ);
    CHECK(compared > 5000);
}
CHECK_MAIN()
