/* Which results share memory with arguments, and that other results are not views.  The schema says so, or the tag
   maybe_aliasing_or_mutating, or the operator is in the list below.  Passes over graphs rely on this
   (OPDI_OPTAG_SHARES). */
#include "../cases.h"

/* Operators for which PyTorch does not say it. */
static bool told_here(const char *name) {
    static const char *const names[] = {"_unsafe_view", "chalf", "einsum", "sum_to_size", "type_as"};
    for (int i = 0; i < 5; i++) { if (strcmp(name + strlen("aten::"), names[i]) == 0) { return true; } }
    return false;
}
/* Looks at one call.  Returns whether it was made. */
static bool walk_case(const op_case *c) {
    const opd_schema *const schema = opd_op_schema(c->op);
    opd_value rets[16];
    if (opd_call_all((opd_op *)(uintptr_t)c->op, rets, c->args, c->nargs)) {
        opd_error_clear();
        return false;
    }
    for (int i = 0; i < opd_schema_nreturns(schema); i++) {
        const opd_tensor *const result = rets[i].tag == OPD_TAG_TENSOR ? rets[i].u.t : NULL;
        for (int k = 0; k < c->nargs && result; k++) {
            const opd_value *const arg = &c->args[k];
            const int count = arg->tag == OPD_TAG_TENSORS ? arg->n : arg->tag == OPD_TAG_TENSOR;
            for (int j = 0; j < count; j++) {
                const opd_tensor *const given = arg->tag == OPD_TAG_TENSORS ? arg->u.tensors[j] : arg->u.t;
                if (!given || !opd_tensor_same_storage(result, given) || opd_schema_may_alias(schema, k, -1 - i, NULL) ||
                    (opd_op_tags(c->op) & OPD_OPTAG_MAYBE_ALIASING_OR_MUTATING) || told_here(opd_op_name(c->op))) { continue; }
                printf("%s: result %d shares the memory of argument %d\n", opd_op_name(c->op), i, k);
                CHECK(!"told");
            }
        }
    }
    return true;
}
/* The same for the call, and for calls with other numbers, such as a power of 1. */
static int walk_numbers(op_case *c) {
    static const int64_t ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, zeros[16] = {0};
    const int made = walk_case(c);
    for (int k = 0; k < c->nargs; k++) {
        const opd_value was = c->args[k];
        for (int i = 0; i < 2; i++) {
            if (was.tag == OPD_TAG_INT) { c->args[k] = opd_value_int(i); }
            else if (was.tag == OPD_TAG_FLOAT) { c->args[k] = opd_value_double(i); }
            else if (was.tag == OPD_TAG_BOOL) { c->args[k] = opd_value_bool(i != 0); }
            else if (was.tag == OPD_TAG_INTS && was.n <= 16) { c->args[k] = opd_value_ints(i ? ones : zeros, was.n); }
            else { break; }
            (void)walk_case(c);
        }
        c->args[k] = was;
    }
    return made;
}
/* Calls `walk` for each sample call of the operators that write nothing.  Returns the sum of what it returns. */
static int walk_all(int (*walk)(op_case *c)) {
    static op_case c;
    int count = 0;
    for (const opd_op *op = opd_op_next(NULL); op; op = opd_op_next(op)) {
        const char *text = opd_op_card(op) && cases_of(op) ? cases_of(op) : "";
        if (!check_walks(opd_op_name(op)) || opd_schema_is_mutable(opd_op_schema(op))) { continue; }
        while (*text) {
            OPD_SCOPED;
            memset(&c, 0, sizeof c);
            c.op = op;
            c.dtype = OPD_FLOAT32;
            if (!case_read_next(&c, &text)) { opd_error_clear(); break; }
            count += walk(&c);
        }
        opd_error_clear();
    }
    return count;
}
TEST(schemas_tell_which_results_share_memory) {
    const int count = walk_all(walk_numbers);
    printf("%d calls\n", count);
    CHECK(getenv("CHECK_PART") || count > 1000);
}
/* Returns true if a tensor among the arguments has this storage. */
static bool given_storage(const op_case *c, const opd_tensor *result) {
    for (int k = 0; k < c->nargs; k++) {
        const opd_value *const arg = &c->args[k];
        const int count = arg->tag == OPD_TAG_TENSORS ? arg->n : arg->tag == OPD_TAG_TENSOR;
        for (int j = 0; j < count; j++) {
            const opd_tensor *const given = arg->tag == OPD_TAG_TENSORS ? arg->u.tensors[j] : arg->u.t;
            if (given && opd_tensor_same_storage(result, given)) { return true; }
        }
    }
    return false;
}
/* Calls an operator with grad mode off.  A result that shares no memory with an argument is not a view, and can be
   written in place with grad mode on.  Returns how many such results there were. */
static int walk_results(op_case *c) {
    opd_value rets[16];
    int count = 0, rc;
    OPD_NO_GRAD { rc = opd_call_all((opd_op *)(uintptr_t)c->op, rets, c->args, c->nargs); }
    if (rc) {
        opd_error_clear();
        return 0;
    }
    for (int i = 0; i < opd_schema_nreturns(opd_op_schema(c->op)); i++) {
        opd_tensor *const result = rets[i].tag == OPD_TAG_TENSOR ? rets[i].u.t : NULL;
        if (!result || given_storage(c, result)) { continue; }
        count++;
        if (opd_tensor_base(result)) {
            printf("%s: result %d is a view\n", opd_op_name(c->op), i);
            CHECK(!"a view");
        }
        if (!opd_dtype_is_floating(opd_dtype(result))) { continue; }
        opd_tensor *const leaf = opd_ones(opd_ints_of(NULL, 0), opd_dtype(result));
        (void)opd_tensor_set_requires_grad(leaf, true);
        (void)opd_mul_(result, leaf);
        if (!opd_ok() || !opd_tensor_requires_grad(result)) {
            printf("%s: result %d: %s\n", opd_op_name(c->op), i, opd_error_message());
            CHECK(!"can be written");
        }
        opd_error_clear();
    }
    return count;
}
TEST(new_results_are_not_views) {
    const int count = walk_all(walk_results);
    printf("%d results\n", count);
    CHECK(getenv("CHECK_PART") || count > 500);
}
CHECK_MAIN_WALKS()
