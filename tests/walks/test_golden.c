/* PyTorch's results for the sample arguments of the operators: golden/samples.txt, made by golden/make_samples.py. */
#include "../../opdispatch.h"
#include "../cases.h"

static const char *where;
static void wrong(const char *text, double have, double want) {
    printf("    %s: %s", where, text);
    if (have < want || have > want || isnan(have) != isnan(want)) { printf(" %.9g, not %.9g", have, want); }
    printf("\n");
    CHECK(!"the answer is PyTorch's");
}

/* One result against "dtype [sizes] elements". */
static bool same_tensor(const opd_tensor *t, const char *text) {
    int64_t i, n = opd_numel(t);
    char dtype[16], *end;
    int d, used = 0;
    if (sscanf(text, " %15s [%n", dtype, &used) != 1) { wrong("the sample cannot be read", 0, 0); return false; }
    if (strcmp(dtype, opd_dtype_name(opd_dtype(t))) != 0) { wrong(opd_dtype_name(opd_dtype(t)), 0, 0); return false; }
    text += used;
    for (d = 0; *text != ']'; d++) {
        int64_t size = strtoll(text, &end, 10);
        if (d >= opd_ndim(t) || opd_sizes(t)[d] != size) { wrong("size", d < opd_ndim(t) ? (double)opd_sizes(t)[d] : -1, (double)size); return false; }
        text = *end == ',' ? end + 1 : end;
    }
    if (d != opd_ndim(t)) { wrong("dimensions", opd_ndim(t), d); return false; }
    text++;
    for (i = 0; i < n; i++) {
        double want = strtod(text, &end), have = case_get(t, i);
        bool same = (isnan(want) && isnan(have)) || (isinf(want) && isinf(have) && (want > 0) == (have > 0)) ||
                    fabs(want - have) <= 1e-4 * (1 + fabs(want));
        if (!same || end == text) { wrong("element", have, want); return false; }
        text = end;
    }
    return true;
}
static bool same_number(const opd_value *v, const char *text) {
    double want, have = v->tag == OPD_TAG_FLOAT ? v->u.d : (double)v->u.i;
    if (sscanf(text, " number [] %lf", &want) != 1 || !(fabs(want - have) <= 1e-4 * (1 + fabs(want)))) { wrong("number", have, want); return false; }
    return true;
}

static bool check_sample(op_case *c, char *line) {
    opd_value rets[16];
    char *text = strstr(line, " | "), *results = text ? strstr(text + 3, " | ") : NULL;
    const char *at;
    int i, k;
    if (!results) { return true; }
    where = line;
    *text = 0;
    *results = 0;
    text += 3;
    c->op = opd_find_quiet(line);
    if (!c->op) { *(text - 3) = ' '; wrong("the operator is gone", 0, 0); return false; }
    *(text - 3) = ' ';
    at = text;
    if (!case_read_next(c, &at) || opd_call_all((opd_op *)(uintptr_t)c->op, rets, c->args, c->nargs)) {
        wrong(c->wrong ? "the case cannot be read" : opd_error_message(), 0, 0);
        opd_error_clear();
        return false;
    }
    results += 3;
    for (i = 0; i < opd_schema_nreturns(opd_op_schema(c->op)); i++) {
        int n = rets[i].tag == OPD_TAG_TENSORS ? rets[i].n : rets[i].tag == OPD_TAG_NONE ? 0 : 1;
        for (k = 0; k < n; k++) {
            char *end = strstr(results, " | ");
            if (end) { *end = 0; }
            if (rets[i].tag == OPD_TAG_TENSOR ? !same_tensor(rets[i].u.t, results) : rets[i].tag == OPD_TAG_TENSORS
                ? !same_tensor(rets[i].u.tensors[k], results) : !same_number(&rets[i], results)) { return false; }
            results = end ? end + 3 : results + strlen(results);
        }
    }
    CHECK(*results == 0);
    return true;
}

TEST(samples_of_pytorch) {
    static char line[1 << 16];
    static op_case c;
    FILE *f = check_golden("samples.txt");
    int n = 0;
    CHECK_OR_RETURN(f != NULL);
    memset(&c, 0, sizeof c);
    c.dtype = OPD_FLOAT32;
    while (fgets(line, sizeof line, f)) {
        opd_scope scope = opd_scope_open();
        line[strcspn(line, "\n")] = 0;
        CHECK(check_sample(&c, line));
        opd_scope_close(&scope);
        n++;
    }
    (void)fclose(f);
    CHECK(n > 500);
}

/* OPD_LIST_CASES=1: the cases of every card, for make_samples.py. */
static void list_cases(void) {
    int i;
    if (!getenv("OPD_LIST_CASES")) { return; }
    for (i = 0; i < OPD_OP_COUNT; i++) {
        const opd_op *op = opd_op_builtin((opd_op_id)i);
        const char *p = op && opd_op_card(op) ? opd_op_card(op)->cases : NULL;
        while (p && *p) {
            size_t n = strcspn(p, ";");
            while (*p == ' ') { p++; n--; }
            printf("%s\t%.*s\n", opd_op_name(op), (int)n, p);
            p += n + (p[n] == ';');
        }
    }
    exit(opd_finish());
}
CHECK_MAIN_ADD(list_cases)
