/* vmap_cases.h: makes batches of several examples from the sample arguments of an operator, and calls the operator
   with them. */
#ifndef OPD_TESTS_VMAP_CASES_H
#define OPD_TESTS_VMAP_CASES_H
#include "cases.h"

#define EXAMPLES 6               /* 3 in one level, or 2 times 3 in two */
#define MOST_SLOTS 20
typedef struct slot { int arg, at; } slot;        /* a tensor: argument, and index in a list or -1 */
/* A call, with the arguments of each example. */
typedef struct plan {
    const opd_op *op;
    int nargs, nslots;
    slot slots[MOST_SLOTS];
    unsigned written;                             /* slots */
    const opd_value *args[EXAMPLES];
    bool failed;
} plan;
/* Arguments of one call. */
typedef struct working {
    opd_value args[OPD_MAX_ARGS];
    opd_tensor *lists[OPD_MAX_ARGS][CASE_LIST];
} working;
typedef struct results { int n; opd_tensor *t[MOST_RESULTS]; opd_value rets[MOST_RESULTS]; } results;


OPD_UNUSED static opd_tensor *slot_get(const opd_value *args, slot s) {
    return s.at < 0 ? args[s.arg].u.t : args[s.arg].u.tensors[s.at];
}
OPD_UNUSED static void working_of(working *w, const opd_value *args, int nargs) {
    int i;
    for (i = 0; i < nargs; i++) {
        w->args[i] = args[i];
        if (args[i].tag != OPD_TAG_TENSORS || args[i].n > CASE_LIST) { continue; }
        memcpy(w->lists[i], args[i].u.tensors, (size_t)args[i].n * sizeof(opd_tensor *));
        w->args[i].u.tensors = w->lists[i];
    }
}
OPD_UNUSED static void slot_set(working *w, slot s, opd_tensor *t) {
    if (s.at < 0) { w->args[s.arg].u.t = t; } else { w->lists[s.arg][s.at] = t; }
}
OPD_UNUSED static bool plan_of(plan *p, const opd_op *op, const opd_value *args) {
    const opd_schema *schema = opd_op_schema(op);
    int i, k;
    memset(p, 0, sizeof *p);
    p->op = op;
    p->nargs = opd_schema_nargs(schema);
    p->args[0] = args;
    for (i = 0; i < p->nargs; i++) {
        const opd_value *v = &args[i];
        for (k = 0; k < (v->tag == OPD_TAG_TENSORS ? v->n : v->tag == OPD_TAG_TENSOR); k++) {
            if (v->tag == OPD_TAG_TENSORS && !v->u.tensors[k]) { continue; }
            if (p->nslots == MOST_SLOTS) { return false; }
            if (opd_schema_is_mutable_at(schema, i, NULL)) { p->written |= 1u << p->nslots; }
            p->slots[p->nslots].arg = i;
            p->slots[p->nslots++].at = v->tag == OPD_TAG_TENSORS ? k : -1;
        }
    }
    return p->nslots > 0;
}

//-- the loop ------------------------------------------------------------------------------------------------------------

/* Returns which tensor slot s has in example (i, j): it depends on i if s is in outer, and on j if s is in inner. */
OPD_UNUSED static int reading(unsigned outer, unsigned inner, int s, int i, int j) {
    return (outer >> s & 1 ? i * (inner ? 3 : 1) : 0) + (inner >> s & 1 ? j : 0);
}
/* The place of the batch dim: first, last, or at dim 1 if the tensor has one. */
enum { FIRST, LAST, MIDDLE };
OPD_UNUSED static int dim_at(int where, int ndim) { return where == FIRST ? 0 : where == LAST || ndim == 0 ? ndim : 1; }
/* Returns the tensors t[i * 3 + j] of n0 times n1 examples as one tensor.  n1 is 0 if there is one level. */
OPD_UNUSED static opd_tensor *together(opd_tensor **t, int n0, int n1, int where) {
    opd_tensor *rows[EXAMPLES];
    int i;
    for (i = 0; i < n0 && n1; i++) {
        rows[i] = opd_stack(opd_tensors_of(&t[i * n1], n1), dim_at(where, opd_ndim(t[0])));
        if (!rows[i]) { return NULL; }
    }
    return opd_stack(opd_tensors_of(n1 ? rows : t, n0), dim_at(where, opd_ndim(t[0]) + (n1 > 0)));
}

//-- reading cases ---------------------------------------------------------------------------------------------------------

static op_case readings[EXAMPLES];

OPD_UNUSED static bool read_all(const opd_op *op, const char *text, int index, const char **rest, opd_scalar_type dtype) {
    int k;
    for (k = 0; k < EXAMPLES; k++) {
        op_case *c = &readings[k];
        *rest = text;
        c->op = op;
        c->dtype = dtype;
        c->layout = CASE_CONTIGUOUS;
        c->smooth = dtype == OPD_FLOAT64;
        c->meta = false;
        c->first_seed = 1000 * k;
        if (!case_read_next(c, rest)) { return false; }
    }
    (void)snprintf(what, sizeof what, "    case %d \"%.*s\"", index, (int)strcspn(text + (*text == ';'), ";"), text + (*text == ';'));
    return true;
}

#endif /* OPD_TESTS_VMAP_CASES_H */
