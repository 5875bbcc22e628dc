// Fuzz target for calls of all built-in operators: see fuzz.h for how to build and run it.  Input: choices.  Calls an
// operator in one of its forms, with sample arguments of its descriptor, some of them changed: other dtypes, layouts
// and sizes, shared memory, extreme numbers, missing arguments; with first and second derivatives, under vmap, with
// tangents, with fake tensors, in inference mode.  No call crashes, an error is pending if and only if the call fails,
// an operator writes only to the arguments in its schema, and fake results have the sizes and dtypes of real ones.
#include "fuzz.h"
#include "../cases.h"

enum { GRAD = 1, TWICE = 2, BATCHED = 4, DUAL = 8, FAKE = 16, INFERENCE = 32, COMPARED = 64 };

typedef struct trial {
    const opd_op *op, *form;
    op_case c;
    opd_value args[OPD_MAX_ARGS];
    int nargs;
    opd_tensor **tensors[32];                     /* where they stand among the arguments */
    int ntensors;
} trial;

//-- possible arguments -------------------------------------------------------------------------------------------------

static const int64_t ints[] = {0, 1, 2, 3, 4, 5, -1, -2, -3, 7, INT64_MAX, INT64_MIN, (int64_t)1 << 62, -((int64_t)1 << 62),
                               INT64_MAX - 1, INT64_MIN + 1, ((int64_t)1 << 61) + 1};
static const double doubles[] = {0, 1, -1, 0.5, 2, -0., 1e30, -1e300, NAN, INFINITY, -INFINITY, 1e-40, 3, 1.5};
static const char *const words[] = {"mean", "sum", "none", "prod", "amax", "floor", "trunc", "tanh", "reflect", "circular", "", "\xff"};
static const opd_scalar_type dtypes[] = {OPD_UINT8, OPD_INT8, OPD_INT16, OPD_INT32, OPD_INT64, OPD_FLOAT16, OPD_FLOAT32,
                                         OPD_FLOAT64, OPD_COMPLEX64, OPD_COMPLEX128, OPD_BOOL, OPD_BFLOAT16};
#define ONE_OF(a) ((a)[next() % COUNT(a)])

static opd_tensor *any_tensor(void) {
    int64_t sizes[4];
    int i, ndim = (int)(next() % 5);
    for (i = 0; i < ndim; i++) { sizes[i] = next() % 4; }
    if (next() % 16 == 0) { return opd_tensor_wrapped_number(opd_value_double(ONE_OF(doubles))); }
    return opd_to_dtype(opd_zeros(opd_ints_of(sizes, ndim), OPD_FLOAT32), ONE_OF(dtypes));
}
/* x's memory with strides, some near the ends of what they can be where no element is reached by them. */
static opd_tensor *far_apart(opd_tensor *x) {
    int64_t sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS];
    const unsigned how = next(), dim = opd_ndim(x) ? next() % (unsigned)opd_ndim(x) : 0;
    int i;
    for (i = 0; i < opd_ndim(x); i++) {
        sizes[i] = how % 4 == 0 ? 1 : i == (int)dim ? how % 2 : opd_sizes(x)[i];
        strides[i] = i == (int)dim || how % 4 == 0 || next() % 4 == 0 ? ONE_OF(ints) : opd_strides(x)[i];
    }
    return opd_as_strided(x, opd_ints_of(sizes, opd_ndim(x)), opd_ints_of(strides, opd_ndim(x)));
}
/* t in another way: most of what can be wrong with a tensor. */
static opd_tensor *changed(const trial *t, opd_tensor *x) {
    const unsigned how = next() % 16;
    opd_tensor *other = t->ntensors ? *t->tensors[next() % (unsigned)t->ntensors] : x;
    if (!x) { return other; }
    switch (how) {
    case 0: case 1: return opd_to_dtype(x, ONE_OF(dtypes));
    case 2: return other ? other : x;
    case 3: return opd_ndim(x) ? opd_transpose(x, 0, (int64_t)(next() % (unsigned)opd_ndim(x))) : x;
    case 4: return opd_ndim(x) ? opd_narrow(x, 0, 0, opd_sizes(x)[0] / 2) : x;
    case 5: return opd_ndim(x) && opd_sizes(x)[0] ? opd_expand(opd_narrow(x, 0, 0, 1), opd_ints_of(opd_sizes(x), opd_ndim(x))) : x;
    case 6: return opd_unsqueeze(x, 0);
    case 7: return opd_view(x, OPD_INTS(-1));
    case 8: return other && opd_numel(other) > 1 ? opd_narrow(opd_view(other, OPD_INTS(-1)), 0, 1, opd_numel(other) - 1) : x;
    case 9: return opd_ndim(x) ? opd_cat(OPD_TENSORS(x, x), 0) : x;
    case 10: return opd_full_like(x, opd_value_double(ONE_OF(doubles)));
    case 11: return opd_tensor_new_on(opd_ints_of(opd_sizes(x), opd_ndim(x)), opd_dtype(x), opd_device_make(OPD_META, -1));
    case 12: return opd_tensor_new_on(OPD_INTS(((int64_t)1 << 61), 1), opd_dtype(x), opd_device_make(OPD_META, -1));
    case 13: return NULL;
    case 14: return far_apart(x);
    default: return any_tensor();
    }
}
static void change_one(trial *t, int i) {
    opd_value *v = &t->args[i];
    int64_t *numbers = t->c.lists[i].ints;
    int k;
    if (v->tag == OPD_TAG_TENSOR) {
        v->u.t = changed(t, v->u.t);
        if (!v->u.t) { *v = next() % 2 ? opd_value_none() : opd_value_double(ONE_OF(doubles)); }
        return;
    }
    if (v->tag == OPD_TAG_TENSORS && v->n) {
        k = (int)(next() % (unsigned)v->n);
        t->c.lists[i].tensors[k] = changed(t, t->c.lists[i].tensors[k]);
        if (v->u.tensors == t->c.lists[i].tensors && next() % 8 == 0) { v->n--; }
        return;
    }
    switch (next() % 8) {
    case 0: *v = opd_value_int(ONE_OF(ints)); break;
    case 1: *v = opd_value_double(ONE_OF(doubles)); break;
    case 2: *v = opd_value_bool(next() % 2 != 0); break;
    case 3: *v = opd_value_str(ONE_OF(words)); break;
    case 4: *v = opd_value_none(); break;
    case 5: *v = opd_value_int(ONE_OF(dtypes)); break;
    default:
        for (k = 0; k < 4; k++) { numbers[k] = ONE_OF(ints); }
        *v = opd_value_ints(numbers, (int)(next() % 5));
    }
}

//-- a call -------------------------------------------------------------------------------------------------------------

static bool choose_operator(trial *t) {
    static const opd_op *all[2000];
    static unsigned n;
    static bool full;
    int i;
    for (i = 0; !full && i < OPD_OP_COUNT && n < COUNT(all); i++) {
        const opd_op *op = opd_op_builtin((opd_op_id)i);
        if (op && opd_op_card(op) && opd_op_card(op)->cases) { all[n++] = op; }
    }
    full = n > 0;
    t->op = n ? all[(next() * 256 + next()) % n] : NULL;
    return t->op != NULL;
}
/* Where tensors stand now. */
static void collect(trial *t) {
    int i, k;
    for (i = 0, t->ntensors = 0; i < t->nargs; i++) {
        opd_value *v = &t->args[i];
        int at = i;
        if (v->tag == OPD_TAG_TENSOR && t->ntensors < 32) { t->tensors[t->ntensors++] = &v->u.t; }
        if (v->tag != OPD_TAG_TENSORS) { continue; }
        while (at < CASE_LIST && t->c.lists[at].tensors != v->u.tensors) { at++; }
        for (k = 0; at < CASE_LIST && k < v->n && t->ntensors < 32; k++) {
            t->tensors[t->ntensors++] = &t->c.lists[at].tensors[k];
        }
    }
}
/* The chosen case's arguments for the chosen form, out tensors new or among the arguments. */
static bool choose_arguments(trial *t, unsigned form, unsigned skip, bool meta) {
    const opd_op_desc *card = opd_op_card(t->op);
    const char *text = card->cases, *name = form == 1 ? card->inplace : form == 2 ? card->out : NULL;
    int i, rest;
    for (skip %= 4; skip && strchr(text, ';'); skip--) { text = strchr(text, ';'); }
    t->c.op = t->op;
    t->c.dtype = OPD_FLOAT32;
    t->c.meta = meta;
    if (!case_read_next(&t->c, &text)) { return false; }
    t->form = name ? form_of(t->op, name) : t->op;
    if (!t->form || !other_form(&t->c, t->form, t->args, &rest)) { return false; }
    t->nargs = opd_schema_nargs(opd_op_schema(t->form));
    for (i = rest; i < t->nargs && form == 2; i++) { t->args[i] = opd_value_tensor(any_tensor()); }
    collect(t);
    return opd_ok();
}
static void change(trial *t) {
    if (t->nargs) { change_one(t, (int)(next() % (unsigned)t->nargs)); }
    opd_error_clear();
    collect(t);
}
static void prepare(trial *t, unsigned mode, int level) {
    const bool writes = opd_schema_is_mutable(opd_op_schema(t->form));
    int i;
    for (i = 0; i < t->ntensors && opd_ok(); i++) {
        opd_tensor *x = *t->tensors[i];
        if (!x) { continue; }
        /* not a view that may be written into its own base: leaf, base and history would hold each other, as in PyTorch */
        if ((mode & GRAD) && opd_dtype_is_floating(opd_dtype(x)) && next() % 4 && !(writes && opd_tensor_base(x))) {
            (void)opd_tensor_set_requires_grad(x, true);
        }
        if ((mode & DUAL) && opd_dtype_is_floating(opd_dtype(x)) && next() % 4) { x = opd_dual_new(x, opd_ones_like(x)); }
        if (level > 0 && next() % 4) { x = opd_vmap_wrap(opd_stack(OPD_TENSORS(x, x), 0), 0, level); }
        if (x) { *t->tensors[i] = x; }
        opd_error_clear();
    }
    opd_error_clear();
}
static int call(const trial *t, opd_value *rets) {
    const bool told = getenv("FUZZ_FIRST") && fprintf(stderr, "  %s, %d bytes\n", opd_op_name(t->form),
                                                                (int)opd_memory_stats().live) < 0;
    const int rc = told ? -1 : opd_call_all((opd_op *)(uintptr_t)t->form, rets, t->args, t->nargs);
    MUST((rc < 0) == !opd_ok() && (opd_ok() || opd_error_message()[0]));
    return rc;
}
static uint64_t sum_of_bytes(const opd_tensor *t) {
    const unsigned char *p = (const unsigned char *)opd_data((opd_tensor *)(uintptr_t)t);
    uint64_t h = 1469598103934665603u;
    int64_t i, n;
    if (!p || opd_numel(t) == 0) { return h; }
    p -= opd_tensor_offset(t) * (int64_t)opd_dtype_size(opd_dtype(t));
    for (i = 0, n = opd_tensor_storage_bytes(t); i < n; i++) { h = (h ^ p[i]) * 1099511628211u; }
    return h;
}
static void backward(opd_value *rets, unsigned mode) {
    opd_backward_options options;
    opd_tensor *y = rets[0].tag == OPD_TAG_TENSOR ? rets[0].u.t
        : rets[0].tag == OPD_TAG_TENSORS && rets[0].n ? rets[0].u.tensors[0] : NULL, *sum;
    int k;
    if (!y || !opd_tensor_requires_grad(y) || !(sum = opd_sum(y))) { return; }
    memset(&options, 0, sizeof options);
    options.retain_graph = true;
    for (k = 0; k < 1 + ((mode & TWICE) != 0) && opd_ok(); k++) { (void)opd_backward_with(&sum, 1, &options); }
}
/* What the fake kernel says of the same arguments. */
static void compare_fakes(trial *t, const uint8_t *again, unsigned form, unsigned skip, opd_value *rets) {
    static const char *const of_data[] = {"cumprod_backward", "repeat_interleave", "one_hot", "_unique2", "combinations", NULL};
    opd_tensor *real[MOST_RESULTS], *fake[MOST_RESULTS];
    opd_value got[MOST_RESULTS];
    int i, m, n = results_of(t->form, rets, real);
    at = again;
    OPD_FAKE_MODE {
        if (choose_arguments(t, form, skip, false)) {
            if (next() % 4 == 0) { change(t); }
            m = opd_call_all((opd_op *)(uintptr_t)t->form, got, t->args, t->nargs) ? -1 : results_of(t->form, got, fake);
            for (i = 0; i < m && i < n && !(opd_op_tags(t->op) & (OPD_OPTAG_DYNAMIC_OUTPUT_SHAPE | OPD_OPTAG_DATA_DEPENDENT_OUTPUT)); i++) {
                if (named(t->op, of_data)) { break; }
                if (opd_tensor_device(fake[i]).type != OPD_META) { continue; }      /* something real, not written */
                if (!(same_shape(real[i], fake[i]) && opd_dtype(real[i]) == opd_dtype(fake[i]))) {
                    fprintf(stderr, "%s: the fake is another one\n", opd_op_name(t->form));
                }
                MUST(same_shape(real[i], fake[i]) && opd_dtype(real[i]) == opd_dtype(fake[i]));
            }
        }
    }
    opd_error_clear();
}
static void in_mode(trial *t, unsigned mode) {
    opd_value rets[MOST_RESULTS];
    opd_tensor *in[32];
    uint64_t sums[32];
    int i, rc = 0, n = t->ntensors, level = (mode & BATCHED) ? opd_vmap_begin(2, OPD_RANDOM_DIFFERENT) : 0;
    static const char *const running[] = {"batch_norm", "native_batch_norm", "instance_norm", "rrelu_with_noise", NULL};
    const bool writes = opd_schema_is_mutable(opd_op_schema(t->form)) || (mode & (BATCHED | DUAL)) || named(t->op, running);
    int dual = (mode & DUAL) ? opd_dual_level_begin() : -1;
    memset(rets, 0, sizeof rets);                 /* of an operator that gives nothing */
    prepare(t, mode, level);
    for (i = 0; i < n && !writes; i++) { in[i] = *t->tensors[i]; sums[i] = in[i] ? sum_of_bytes(in[i]) : 0; }
    if (mode & FAKE) { OPD_FAKE_MODE { rc = call(t, rets); } }
    else if (mode & INFERENCE) { OPD_INFERENCE_MODE(true) { rc = call(t, rets); } }
    else { rc = call(t, rets); }
    if (rc == 0 && (mode & GRAD) && !(mode & FAKE)) { backward(rets, mode); }
    opd_error_clear();
    for (i = 0; i < n && !writes; i++) { MUST(!in[i] || sums[i] == sum_of_bytes(in[i])); }
    if (dual >= 0) { (void)opd_dual_level_end(dual); }
    if (level > 0) { (void)opd_vmap_end(level); }
    opd_error_clear();
}
static void one(const uint8_t *data, size_t n) {
    static trial t;
    static const unsigned modes[] = {0, 0, GRAD, GRAD | TWICE, BATCHED, BATCHED | GRAD, DUAL, DUAL | GRAD, FAKE, FAKE | GRAD,
                                     INFERENCE, COMPARED, COMPARED};
    unsigned form, skip, mode;
    const uint8_t *again;
    int k, changes;
    at = data;
    end = data + n;
    (void)opd_vmap_fallback_set(OPD_VMAP_FALLBACK_SILENT);
    for (k = 0; k < 12 && at < end; k++) {
        OPD_SCOPE {
            if (choose_operator(&t)) {
                form = next() % 3; skip = next(); mode = ONE_OF(modes);
                again = at;
                if (choose_arguments(&t, form, skip, false)) {
                    changes = mode == COMPARED ? next() % 4 == 0 : (int)(next() % 4);
                    for (; changes > 0; changes--) { change(&t); }
                    if (mode == COMPARED) {
                        opd_value rets[MOST_RESULTS];
                        if (call(&t, rets) == 0) { compare_fakes(&t, again, form, skip, rets); }
                        opd_error_clear();
                    } else { in_mode(&t, mode); }
                }
            }
            opd_error_clear();
        }
    }
}
FUZZ(one)
