/* Every operator, with the sample arguments of its descriptor, at the largest number of dims: tensors of 62 to 64
   dims, more with the batch dims of vmap, and lists of 62 to 66 and of 127 to 130 numbers; plain, with a gradient,
   with tangents, under vmap and under vmap of vmap.  Each call gives an error or a result.  The address and
   undefined-behaviour sanitizers find writes outside of arrays.  One case per operator. */
#include "../inside.h"
#include "../cases.h"

enum { LONGEST = 260 };
static const int depths[] = {62, 63, 64}, lengths[] = {62, 63, 64, 65, 66, 127, 128, 129, 130, 131, LONGEST};
enum { DEPTHS = sizeof depths / sizeof *depths, LENGTHS = sizeof lengths / sizeof *lengths, LISTS = 4 };
enum { PLAIN, RECORDED, TANGENT, MAPPED, MAPPED_LAST, MAPPED_FIRST, NESTED, WAYS };
#if defined(CHECK_SANITIZED)
#define SKIPPED(way, length, list) false
#else                                             /* all of it takes a minute, and only sanitizers see more than some of it */
#define SKIPPED(way, length, list) (((way) != PLAIN && (way) != MAPPED) || ((length) != 64 && (length) != 65) || (list) > 1)
#endif
static int64_t numbers[LISTS][LONGEST];           /* ones, zeros, minus ones, dims in their order */
static double reals[LONGEST];
static bool truths[LONGEST];

static void fill_lists(void) {
    int k;
    for (k = 0; k < LONGEST; k++) {
        numbers[0][k] = 1;
        numbers[1][k] = 0;
        numbers[2][k] = -1;
        numbers[3][k] = k;
        reals[k] = 1;
    }
}
/* t as one of `depth` dims, the further ones of size 1 before its own, or behind them. */
static opd_tensor *deep(opd_tensor *t, int depth, bool behind) {
    int64_t sizes[OPD_MAX_DIMS];
    const int more = depth - opd_ndim(t);
    int i;
    if (more <= 0) { return t; }
    for (i = 0; i < depth; i++) { sizes[i] = 1; }
    memcpy(sizes + (behind ? 0 : more), opd_sizes(t), sizeof *sizes * (size_t)opd_ndim(t));
    return opd_reshape(t, opd_ints_of(sizes, depth));
}

//-- ways to call ------------------------------------------------------------------------------------------------------


static void call_plain(const op_case *c) {
    opd_value rets[MOST_RESULTS];
    const int rc = opd_call_all((opd_op *)(uintptr_t)c->op, rets, c->args, c->nargs);
    (void)say((rc < 0) == !opd_ok(), "return code and error differ");
}
static void call_recorded(op_case *c) {
    opd_tensor *out[MOST_RESULTS], *y = NULL;
    opd_value rets[MOST_RESULTS];
    int i;
    for (i = 0; i < c->nargs; i++) {
        opd_tensor *const t = c->args[i].tag == OPD_TAG_TENSOR ? c->args[i].u.t : NULL;
        if (t && opd_dtype_is_floating(opd_dtype(t))) { c->args[i].u.t = opd_tensor_set_requires_grad(opd_detach(t), true); }
    }
    if (!opd_ok() || opd_call_all((opd_op *)(uintptr_t)c->op, rets, c->args, c->nargs)) { return; }
    if (results_of(c->op, rets, out) > 0) { y = out[0]; }
    if (y && opd_tensor_requires_grad(y) && (opd_dtype_is_floating(opd_dtype(y)))) { (void)opd_backward(opd_sum(y)); }
}
static void call_tangent(op_case *c) {
    const int level = opd_dual_level_begin();
    int i;
    for (i = 0; i < c->nargs; i++) {
        opd_tensor *const t = c->args[i].tag == OPD_TAG_TENSOR ? c->args[i].u.t : NULL;
        if (t && opd_dtype_is_floating(opd_dtype(t))) { c->args[i].u.t = opd_dual_new(t, opd_ones_like(t)); }
    }
    if (opd_ok()) { call_plain(c); }
    opd_error_clear();
    (void)opd_dual_level_end(level);
}
/* In vmap over two examples of each tensor that is no list (MAPPED_FIRST: of the first one only; MAPPED_LAST: their dim
   is the last). */
static int mapped(op_case *c, opd_tensor *const *given, int n, int way, opd_tensor **out) {
    opd_tensor *in[OPD_MAX_ARGS];
    int dims[OPD_MAX_ARGS];
    opd_vmap_options o;
    int i;
    memset(&o, 0, sizeof o);
    for (i = 0; i < n; i++) {
        const bool shared = way == MAPPED_FIRST && i > 0;
        dims[i] = shared ? OPD_NO_DIM : way == MAPPED_LAST ? -1 : 0;
        in[i] = shared ? given[i] : opd_stack(OPD_TENSORS(given[i], given[i]), way == MAPPED_LAST ? -1 : 0);
    }
    if (!opd_ok()) { return -1; }
    o.in_dims = dims;
    o.nin_dims = n;
    o.randomness = OPD_RANDOM_DIFFERENT;
    return opd_vmap(case_call, c, in, n, &o, out, OPD_TRANSFORM_OUTPUTS);
}
typedef struct inner { op_case *c; int way; } inner;
static int call_inner(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const inner *const of = (const inner *)user;
    return mapped(of->c, in, n, of->way, out);
}
static void call_mapped(op_case *c, int way) {
    opd_tensor *in[OPD_MAX_ARGS], *twice[OPD_MAX_ARGS], *out[MOST_RESULTS];
    opd_vmap_options o;
    inner of;
    int i, n = 0, rc;
    for (i = 0; i < c->nargs; i++) { if (c->args[i].tag == OPD_TAG_TENSOR) { in[n++] = c->args[i].u.t; } }
    if (!n) { return; }
    if (way != NESTED) {
        rc = mapped(c, in, n, way, out);
    } else {
        memset(&o, 0, sizeof o);
        o.randomness = OPD_RANDOM_DIFFERENT;
        for (i = 0; i < n; i++) { twice[i] = opd_stack(OPD_TENSORS(in[i], in[i]), 0); }
        of.c = c;
        of.way = MAPPED;
        rc = opd_ok() ? opd_vmap(call_inner, &of, twice, n, &o, out, MOST_RESULTS) : -1;
    }
    (void)say((rc < 0) == !opd_ok(), "return code and error differ in vmap");
}
static void call_ways(op_case *c, int way) {
    switch (way) {
    case PLAIN: call_plain(c); break;
    case RECORDED: call_recorded(c); break;
    case TANGENT: call_tangent(c); break;
    default: call_mapped(c, way); break;
    }
    opd_error_clear();
}

//-- the walk ----------------------------------------------------------------------------------------------------------

static bool read_case(op_case *c, const opd_op *op, const char *text) {
    c->op = op;
    c->dtype = OPD_FLOAT32;
    return case_read_next(c, &text);
}
/* A list in place of argument i, if its type is a list of numbers. */
static bool lengthen(op_case *c, int i, int list, int length) {
    char schema[2000], name[100], *type;
    (void)opd_schema_print(opd_op_schema(c->op), schema, sizeof schema);
    (void)snprintf(name, sizeof name, "] %s", opd_schema_arg_name(opd_op_schema(c->op), i));
    for (type = strstr(schema, name); type && !strchr(",=)", type[strlen(name)]); type = strstr(type + 1, name)) { }
    if (!type) {
        (void)snprintf(name, sizeof name, "]? %s", opd_schema_arg_name(opd_op_schema(c->op), i));
        type = strstr(schema, name);
    }
    if (!type) { return false; }
    while (type > schema && *type != '(' && *type != ' ') { type--; }
    type++;
    if (strncmp(type, "int[", 4) == 0 || strncmp(type, "SymInt[", 7) == 0) {
        c->args[i] = opd_value_ints(numbers[list], length);
        return true;
    }
    if (strncmp(type, "float[", 6) == 0 && list == 0) { c->args[i] = opd_value_doubles(reals, length); return true; }
    if (strncmp(type, "bool[", 5) == 0 && list == 0) { c->args[i] = opd_value_bools(truths, length); return true; }
    return false;
}
static bool deepen(op_case *c, int i, int depth, bool behind) {
    int k;
    if (c->args[i].tag == OPD_TAG_TENSOR) { c->args[i].u.t = deep(c->args[i].u.t, depth, behind); return true; }
    if (c->args[i].tag != OPD_TAG_TENSORS) { return false; }
    for (k = 0; k < c->args[i].n && k < CASE_LIST; k++) {
        if (c->lists[i].tensors[k]) { c->lists[i].tensors[k] = deep(c->lists[i].tensors[k], depth, behind); }
    }
    return true;
}
/* Every list of every length alone and, deeper than 61, with the first tensor as deep as goes. */
static void long_lists(op_case *c, const opd_op *op, const char *text) {
    int i, l, n, way, with;
    for (i = 0; i < opd_schema_nargs(opd_op_schema(op)); i++) {
        for (l = 0; l < LISTS * LENGTHS; l++) {
            for (n = 0; n < WAYS * 3; n++) {
                way = n % WAYS;
                with = n / WAYS;                  /* 0: the tensors as they are; 1, 2: of 63 and 64 dims */
                if (SKIPPED(way, lengths[l / LISTS], l % LISTS)) { continue; }
                OPD_SCOPE {
                    if (read_case(c, op, text) && lengthen(c, i, l % LISTS, lengths[l / LISTS])) {
                        if (with) { (void)deepen(c, 0, 62 + with, false); }
                        (void)snprintf(what, sizeof what, "%s, argument %d a list of %d (%d), way %d, first tensor %d",
                                       opd_op_name(op), i, lengths[l / LISTS], l % LISTS, way, with);
                        if (opd_ok()) { call_ways(c, way); }
                    } else { n = WAYS * 3; }
                }
                opd_error_clear();
            }
        }
    }
}
/* Every tensor of every depth alone, and all of them. */
static void deep_tensors(op_case *c, const opd_op *op, const char *text) {
    int i, k, d, way, behind;
    const int nargs = opd_schema_nargs(opd_op_schema(op));
    for (i = -1; i < nargs; i++) {
        for (d = 0; d < DEPTHS * 2; d++) {
            behind = d / DEPTHS;
            for (way = 0; way < WAYS; way++) {
                if (SKIPPED(way, depths[d % DEPTHS] + 1, behind)) { continue; }
                OPD_SCOPE {
                    bool any = false;
                    if (read_case(c, op, text)) {
                        for (k = 0; k < nargs; k++) {
                            if ((i < 0 || k == i) && deepen(c, k, depths[d % DEPTHS], behind != 0)) { any = true; }
                        }
                        (void)snprintf(what, sizeof what, "%s, argument %d of %d dims (%d), way %d", opd_op_name(op), i,
                                       depths[d % DEPTHS], behind, way);
                        if (any && opd_ok()) { call_ways(c, way); }
                    }
                    if (!any) { way = WAYS; }
                }
                opd_error_clear();
            }
        }
    }
}
static void operator_deep(void *arg) {
    const opd_op *op = (const opd_op *)arg;
    static op_case c;
    const char *text = cases_of(op), *next = text;
    fill_lists();
    (void)opd_vmap_fallback_set(OPD_VMAP_FALLBACK_SILENT);
    while (read_case(&c, op, text)) {
        opd_error_clear();
        long_lists(&c, op, text);
        deep_tensors(&c, op, text);
        next = strchr(text, ';');
        if (!next || !next[1]) { break; }
        text = next + 1;
    }
    (void)opd_vmap_fallback_set(OPD_VMAP_FALLBACK_WARN);
    CHECK(opd_ok());
}

static int repeat_65(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_repeat(in[0], opd_ints_of(numbers[0], 65));
    return out[0] ? 1 : -1;
}
static int repeat_63(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_repeat(in[0], opd_ints_of(numbers[0], 63));
    return out[0] ? 1 : -1;
}
TEST(an_example_has_no_more_dims_than_a_tensor) {
    opd_tensor *x = opd_ones(OPD_INTS(3, 4), OPD_FLOAT32), *y[1];
    fill_lists();
    CHECK(opd_repeat(x, opd_ints_of(numbers[0], 65)) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "a tensor has at most 64 dimensions, not 65");
    CHECK_INT(opd_vmap(repeat_65, NULL, &x, 1, NULL, y, 1), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "a tensor has at most 64 dimensions, not 65");
    CHECK_INT(opd_vmap(repeat_63, NULL, &x, 1, NULL, y, 1), 1);
    CHECK(opd_ndim(y[0]) == 64 && opd_numel(y[0]) == 12);
}

static void add_operators(void) {
    inside_most = (size_t)1 << 20;                /* what is larger is not to be had */
    add_builtin_operators(operator_deep, has_cases);
}
CHECK_MAIN_ADD(add_operators)
