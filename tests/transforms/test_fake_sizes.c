/* Sizes that depend on data, as symbols in fake modes: how sizes of results follow from them, and what operators must
   know about them.  The table has the sizes and asserts of PyTorch's FakeTensorMode with a ShapeEnv. */
#include "../../opdispatch.h"
#include "../cases.h"

#include <setjmp.h>

static opd_tensor *ones(int64_t a, int64_t b) { return opd_ones(OPD_INTS(a, b), OPD_INT64); }
static opd_tensor *one_dim(int64_t n) { return opd_ones(OPD_INTS(n), OPD_INT64); }
static opd_tensor *floats(int64_t n) { return opd_ones(OPD_INTS(n), OPD_FLOAT32); }
static opd_tensor *chosen(opd_tensor *x) { return opd_masked_select(x, opd_gt_Scalar(x, opd_value_int(0))); }
static opd_tensor *first_column(opd_tensor *u) { return opd_select(u, 1, 0); }
static opd_tensor *rows(opd_tensor *x, opd_tensor *at) { return opd_index(x, opd_tensors_of(&at, 1)); }

/* Checks the sizes of a tensor, as a text with symbols, and what is known about the symbols. */
static void check_shape(const opd_tensor *tensor, const char *shape, const char *known, int line) {
    char text[200], symbols[400];
    size_t length;
    if (!tensor) {
        CHECK(tensor || (printf("line %d: %s\n", line, opd_error_message()), false));
        opd_error_clear();
        return;
    }
    length = opd_fake_shape_print(tensor, text, sizeof text);
    CHECK_INT(length, strlen(text));
    CHECK(strcmp(text, shape) == 0 || (printf("line %d: %s, not %s\n", line, text, shape), false));
    length = opd_fake_sizes_print(symbols, sizeof symbols);
    CHECK_INT(length, strlen(symbols));
    CHECK(!known || strcmp(symbols, known) == 0 || (printf("line %d: %s", line, symbols), false));
    CHECK_OK();
}
#define SHAPE(tensor, shape) check_shape(tensor, shape, NULL, __LINE__)
#define SHAPE_AND(tensor, shape, known) check_shape(tensor, shape, known, __LINE__)

//-- the table ---------------------------------------------------------------------------------------------------------

/* x has 6 elements, u is nonzero(x), of sizes (u0, 1). */
typedef opd_tensor *(*row_fn)(opd_tensor *x, opd_tensor *u);
#define ROW(name, ...) static opd_tensor *name(opd_tensor *x, opd_tensor *u) { (void)x; (void)u; return __VA_ARGS__; }
ROW(itself, u)
ROW(add_four, opd_add(u, ones(4, 1)))
ROW(add_one, opd_add(u, ones(1, 1)))
ROW(add_other, opd_add(u, opd_nonzero(x)))
ROW(add_fixed, opd_add(opd_reshape(u, OPD_INTS(-1)), x))
ROW(product_of_masks, opd_mul(chosen(x), chosen(x)))
ROW(matrix_product, opd_matmul(opd_t(u), ones(4, 2)))
ROW(cat_columns, opd_cat(OPD_TENSORS(u, ones(4, 2)), 1))
ROW(cat_rows, opd_cat(OPD_TENSORS(u, ones(4, 1)), 0))
ROW(cat_same, opd_cat(OPD_TENSORS(u, u), 0))
ROW(cat_two, opd_cat(OPD_TENSORS(u, opd_nonzero(x)), 0))
ROW(stack_same, opd_stack(OPD_TENSORS(u, u), 0))
ROW(stack_fixed, opd_stack(OPD_TENSORS(u, ones(4, 1)), 0))
ROW(reshape_fixed, opd_reshape(u, OPD_INTS(2, 2)))
ROW(flat, opd_view(u, OPD_INTS(-1)))
ROW(halves, opd_view(u, OPD_INTS(2, -1)))
ROW(halves_of_composite, opd_reshape(u, OPD_INTS(-1, 2)))
ROW(expand_fixed, opd_expand(u, OPD_INTS(4, 5)))
ROW(expand_read, opd_expand(u, OPD_INTS(opd_size(u, 0), 5)))
ROW(row_zero, opd_select(u, 0, 0))
ROW(part, opd_slice(u, 0, OPD_NONE, opd_value_int(2), 1))
ROW(tail, opd_slice(u, 0, opd_value_int(1), OPD_NONE, 1))
ROW(squeezed, opd_squeeze_dim(u, 0))
ROW(index_rows, rows(x, first_column(u)))
ROW(index_masks, rows(x, opd_gt_Scalar(x, opd_value_int(0))))
ROW(sum_all, opd_sum(u))
ROW(sum_rows, opd_sum_dim(u, OPD_INTS(0), false))
ROW(sum_columns, opd_sum_dim(u, OPD_INTS(1), false))
ROW(square, opd_mm(u, opd_t(u)))
ROW(flat_square, opd_reshape(opd_mm(u, opd_t(u)), OPD_INTS(-1)))
ROW(flat_read, opd_reshape(opd_mm(u, opd_t(u)), OPD_INTS(opd_size(u, 0) * opd_size(u, 0))))
ROW(two_symbols, opd_mul(u, chosen(x)))
ROW(two_fixed, opd_add(opd_mul(u, chosen(x)), ones(3, 5)))
ROW(nonzero_again, opd_nonzero(u))
ROW(arange_read, opd_add(opd_reshape(u, OPD_INTS(-1)), opd_arange(opd_value_int(opd_numel(u)), OPD_INT64)))
ROW(zeros_read, opd_add(u, ones(opd_size(u, 0), 1)))
ROW(linear_layer, opd_linear(opd_to_dtype(u, OPD_FLOAT32), opd_ones(OPD_INTS(3, 1), OPD_FLOAT32), NULL))
ROW(soft, opd_softmax(opd_to_dtype(u, OPD_FLOAT32), 0))
ROW(chosen_where, opd_where_self(opd_gt_Scalar(u, opd_value_int(2)), u, opd_zeros_like(u)))
ROW(padded, opd_constant_pad_nd(u, OPD_INTS(0, 0, 1, 2)))
ROW(repeated, opd_repeat(u, OPD_INTS(3, 2)))

static const struct { const char *name; row_fn fn; const char *shape, *known; } table[] = {
    {"u", itself, "(u0, 1)", "0 <= u0 <= 6\n"},
    {"u + ones(4, 1)", add_four, "(4, 1)", "0 <= u0 <= 6, u0 == 4 or u0 == 1\n"},
    {"u + ones(1, 1)", add_one, "(u0, 1)", "0 <= u0 <= 6\n"},
    {"u + nonzero(x)", add_other, "(u0, 1)", "0 <= u0 <= 6\n0 <= u1 <= 6, u1 == u0\n"},
    {"u.reshape(-1) + x", add_fixed, "(6)", "0 <= u0 <= 6, u0 == 6 or u0 == 1\n"},
    {"x[x > 0] * x[x > 0]", product_of_masks, "(u1)", "0 <= u0 <= 6\n0 <= u1 <= 6\n0 <= u2 <= 6, u2 == u1\n"},
    {"u.t() @ ones(4, 2)", matrix_product, "(1, 2)", "0 <= u0 <= 6, u0 == 4\n"},
    {"cat([u, ones(4, 2)], 1)", cat_columns, "(4, 3)", "0 <= u0 <= 6, u0 == 4\n"},
    {"cat([u, ones(4, 1)])", cat_rows, "(u0 + 4, 1)", "0 <= u0 <= 6\n"},
    {"cat([u, u])", cat_same, "(2*u0, 1)", "0 <= u0 <= 6\n"},
    {"cat([u, nonzero(x)])", cat_two, "(u2, 1)", "0 <= u0 <= 6\n0 <= u1 <= 6\nu2 >= 0\n"},
    {"stack([u, u])", stack_same, "(2, u0, 1)", "0 <= u0 <= 6\n"},
    {"stack([u, ones(4, 1)])", stack_fixed, "(2, 4, 1)", "0 <= u0 <= 6, u0 == 4\n"},
    {"u.reshape(2, 2)", reshape_fixed, "(2, 2)", "0 <= u0 <= 6, u0 == 4\n"},
    {"u.view(-1)", flat, "(u0)", "0 <= u0 <= 6\n"},
    {"u.view(2, -1)", halves, "(2, u0/2)", "0 <= u0 <= 6, u0 % 2 == 0\n"},
    {"u.reshape(-1, 2)", halves_of_composite, "(u0/2, 2)", "0 <= u0 <= 6, u0 % 2 == 0\n"},
    {"u.expand(4, 5)", expand_fixed, "(4, 5)", "0 <= u0 <= 6, u0 == 4 or u0 == 1\n"},
    {"u.expand(u.size(0), 5)", expand_read, "(u0, 5)", "0 <= u0 <= 6\n"},
    {"u[0]", row_zero, "(1)", "0 <= u0 <= 6\n"},
    {"u[:2]", part, "(u1, 1)", "0 <= u0 <= 6\n0 <= u1 <= 2\n"},
    {"u[1:]", tail, "(u0 - 1, 1)", "0 <= u0 <= 6\n"},
    {"u.squeeze(0)", squeezed, "(u0, 1)", "0 <= u0 <= 6\n"},
    {"x[u[:, 0]]", index_rows, "(u0)", "0 <= u0 <= 6\n"},
    {"x[x > 0]", index_masks, "(u1)", "0 <= u0 <= 6\n0 <= u1 <= 6\n"},
    {"u.sum()", sum_all, "()", "0 <= u0 <= 6\n"},
    {"u.sum(0)", sum_rows, "(1)", "0 <= u0 <= 6\n"},
    {"u.sum(1)", sum_columns, "(u0)", "0 <= u0 <= 6\n"},
    {"u @ u.t()", square, "(u0, u0)", "0 <= u0 <= 6\n"},
    {"(u @ u.t()).reshape(-1)", flat_square, "(u0*u0)", "0 <= u0 <= 6\n"},
    {"(u @ u.t()).reshape(n * n)", flat_read, "(u0*u0)", "0 <= u0 <= 6\n"},
    {"u * x[x > 0]", two_symbols, "(u0, u1)", "0 <= u0 <= 6\n0 <= u1 <= 6\n"},
    {"u * x[x > 0] + ones(3, 5)", two_fixed, "(3, 5)", "0 <= u0 <= 6, u0 == 3\n0 <= u1 <= 6, u1 == 5\n"},
    {"nonzero(u)", nonzero_again, "(u1, 2)", NULL},
    {"u.view(-1) + arange(u.numel())", arange_read, "(u0)", "0 <= u0 <= 6\n"},
    {"u + ones(u.size(0), 1)", zeros_read, "(u0, 1)", "0 <= u0 <= 6\n"},
    {"linear(u, ones(3, 1))", linear_layer, "(u0, 3)", "0 <= u0 <= 6\n"},
    {"softmax(u, 0)", soft, "(u0, 1)", "0 <= u0 <= 6\n"},
    {"where(u > 2, u, zeros_like(u))", chosen_where, "(u0, 1)", "0 <= u0 <= 6\n"},
    {"pad(u, (0, 0, 1, 2))", padded, "(u0 + 3, 1)", "0 <= u0 <= 6\n"},
    {"u.repeat(3, 2)", repeated, "(3*u0, 2)", "0 <= u0 <= 6\n"},
};
TEST(sizes_of_results) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        OPD_SCOPE {
            opd_tensor *x = floats(6);
            OPD_FAKE_MODE {
                opd_tensor *y = table[i].fn(x, opd_nonzero(x));
                const int before = check_failures;
                SHAPE_AND(y, table[i].shape, table[i].known);
                if (check_failures != before) { printf("    in %s\n", table[i].name); }
            }
        }
    }
}

//-- what operators must know ------------------------------------------------------------------------------------------

/* A program that is right only if one element is not zero: then four is one row more than x can have. */
static int k_nonzero(opd_call *call) { return opd_return_tensor(call, opd_nonzero(opd_arg_tensor(call, 0))); }
static int fake_calls;
static int k_nonzero_fake(opd_call *call) {
    const opd_tensor *x = opd_arg_tensor(call, 0);
    int64_t sizes[2];
    fake_calls++;
    sizes[0] = opd_fake_new_size(call, 0, opd_numel(x));
    sizes[1] = opd_ndim(x);
    return sizes[0] >= 0 && opd_result(call, 0, sizes, 2, OPD_INT64) ? 0 : -1;
}
static int composite_calls;
static int k_composite(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    composite_calls++;
    return opd_return_tensor(call, opd_mul(opd_add(x, x), x));
}
static opd_library *own_operators(void) {
    opd_library *lib = opd_library_open(OPD_DEF, "fakes", NULL, __FILE__, __LINE__);
    opd_op_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.schema = "positions(Tensor x) -> Tensor";
    desc.cpu = k_nonzero;
    desc.fake = k_nonzero_fake;
    CHECK_INT(opd_define(lib, &desc), 0);
    memset(&desc, 0, sizeof desc);
    desc.schema = "twice_square(Tensor x) -> Tensor";
    desc.composite = k_composite;
    CHECK_INT(opd_define(lib, &desc), 0);
    return lib;
}
TEST(operators_of_ones_own) {
    opd_library *lib = own_operators();
    opd_value x = opd_value_tensor(opd_ones(OPD_INTS(3), OPD_FLOAT32)), u;
    OPD_FAKE_MODE {
        u = opd_value_tensor(opd_call_op(opd_find("fakes::positions"), &x, 1));
        SHAPE_AND(u.u.t, "(u0, 1)", "0 <= u0 <= 3\n");
        CHECK(fake_calls > 0);
        composite_calls = 0;
        SHAPE(opd_call_op(opd_find("fakes::twice_square"), &u, 1), "(u0, 1)");
        CHECK_INT(composite_calls, 1);            /* what it does besides is done once */
        SHAPE_AND(opd_add(u.u.t, ones(4, 1)), "(4, 1)", "0 <= u0 <= 3, u0 == 1\n");
        CHECK_INT(opd_size(u.u.t, 0), 1);
    }
    CHECK_INT(opd_opcheck(opd_find("fakes::positions"), &x, 1, NULL), 0);
    opd_library_close(lib);
}

/* A limit that is reached in a trial says nothing about sizes: the call fails with it, and nothing else is tried. */
static int k_limited(opd_call *call) {
    const opd_tensor *x = opd_arg_tensor(call, 0);
    fake_calls++;
    if (opd_size(x, 0) >= 100) { return opd_fail(OPD_ERROR_LIMIT, "a limit is reached"); }
    return opd_result(call, 0, opd_sizes(x), opd_ndim(x), opd_dtype(x)) ? 0 : -1;
}
TEST(limits_that_trials_reach) {
    opd_library *lib = opd_library_open(OPD_DEF, "limited", NULL, __FILE__, __LINE__);
    opd_op_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.schema = "same(Tensor x) -> Tensor";
    desc.cpu = desc.fake = k_limited;
    CHECK_INT(opd_define(lib, &desc), 0);
    OPD_FAKE_MODE {
        const opd_value u = opd_value_tensor(opd_nonzero(floats(6)));
        fake_calls = 0;
        CHECK(!opd_call_op(opd_find("limited::same"), &u, 1));
        CHECK_ERROR(OPD_ERROR_LIMIT, "a limit is reached");
        CHECK_INT(fake_calls, 1);
    }
    opd_library_close(lib);
}

TEST(one_number_for_all_tensors) {
    opd_tensor *x = floats(6), *early = NULL;
    OPD_FAKE_MODE {
        opd_tensor *u = opd_nonzero(x), *flat_u = opd_reshape(u, OPD_INTS(-1)), *wide = opd_expand(u, OPD_INTS(-1, 3));
        opd_tensor *lying = opd_t(opd_clone(wide)), *doubled = opd_cat(OPD_TENSORS(u, u), 0);
        early = u;
        (void)opd_stack(OPD_TENSORS(u, ones(4, 1)), 0);
        CHECK(opd_size(u, 0) == 4 && opd_numel(u) == 4 && opd_size(flat_u, 0) == 4 && opd_size(doubled, 0) == 8);
        CHECK(opd_size(wide, 0) == 4 && opd_size(lying, 1) == 4 && opd_numel(lying) == 12);
        CHECK(opd_strides(wide)[0] == 1 && opd_strides(wide)[1] == 0);
        CHECK(opd_strides(lying)[0] == 1 && opd_strides(lying)[1] == 3);
        SHAPE(u, "(4, 1)");
        SHAPE(opd_add(flat_u, one_dim(4)), "(4)");
        SHAPE(opd_mm(lying, ones(4, 2)), "(3, 2)");
        CHECK(!opd_add(flat_u, one_dim(5)));      /* no number is both */
        CHECK_ERROR(OPD_ERROR_SHAPE, "In aten::add.Tensor, the size of argument 'self' at dim 0 depends on data (u0), and after "
                    "earlier calls it must be 4: see opd_fake_sizes_print");
        CHECK(!opd_stack(OPD_TENSORS(opd_nonzero(x), ones(7, 1)), 0));
        CHECK_ERROR(OPD_ERROR_SHAPE, "In aten::stack, the size of argument 'tensors' at dim 0 depends on data (u1, between 0 and "
                    "6), and the call fits none of the numbers that were tried. If you know the size, say it before the "
                    "call with opd_check_size(tensor, 0, size)");
    }
    CHECK(opd_size(early, 0) == 4 && opd_size(opd_add(early, early), 0) == 4);      /* now a plain meta tensor */
    SHAPE(early, "(4, 1)");
}
/* Both 4 and 1 fit at first; the second call leaves 1, the third none. */
TEST(numbers_that_remain) {
    opd_tensor *x = floats(6);
    OPD_FAKE_MODE {
        opd_tensor *u = opd_reshape(opd_nonzero(x), OPD_INTS(-1)), *four = one_dim(4);
        SHAPE_AND(opd_add(u, four), "(4)", "0 <= u0 <= 6, u0 == 4 or u0 == 1\n");
        SHAPE_AND(opd_add(u, four), "(4)", "0 <= u0 <= 6, u0 == 4 or u0 == 1\n");
        SHAPE_AND(opd_add(one_dim(5), u), "(5)", "0 <= u0 <= 6, u0 == 1\n");
        CHECK(!opd_stack(OPD_TENSORS(u, four), 0));
        CHECK_ERROR(OPD_ERROR_SHAPE, "argument 'tensors' at dim 0 depends on data (u0), and after earlier calls it must be 1");
    }
}
TEST(equal_sizes_with_a_number) {
    opd_tensor *x = floats(6), *y = floats(5);
    OPD_FAKE_MODE {
        opd_tensor *u = chosen(x), *v = chosen(y), *sum = opd_add(u, v);
        SHAPE_AND(sum, "(u0)", "0 <= u0 <= 5\n0 <= u1 <= 5, u1 == u0\n");
        CHECK(opd_size(u, 0) == 5 && opd_size(v, 0) == 5);
        (void)opd_stack(OPD_TENSORS(v, opd_ones(OPD_INTS(3), OPD_FLOAT32)), 0);
        CHECK(opd_size(u, 0) == 3 && opd_size(v, 0) == 3 && opd_size(sum, 0) == 3);
    }
}
/* The number that a program has read is not the size that it will read: sizes that come from it stay open. */
TEST(numbers_that_were_read) {
    opd_tensor *x = floats(6);
    OPD_FAKE_MODE {
        opd_tensor *u = opd_reshape(opd_nonzero(x), OPD_INTS(-1)), *buffer = one_dim(opd_numel(u)), *six = one_dim(6);
        const int64_t read = opd_numel(u);
        SHAPE(opd_add(x, buffer), "(6)");         /* here it is 6 */
        SHAPE(opd_add(u, six), "(u0)");
        SHAPE(opd_stack(OPD_TENSORS(opd_add(u, six), one_dim(4)), 0), "(2, 4)");
        CHECK(opd_size(six, 0) == 4 && opd_size(buffer, 0) == 6);
        SHAPE(opd_add(u, one_dim(read)), "(4)");              /* read before the number changed */
        SHAPE(opd_reshape(u, OPD_INTS(read)), "(4)");
        CHECK(!opd_add(u, x));
        CHECK_ERROR(OPD_ERROR_SHAPE, "");
    }
}
TEST(checked_sizes) {
    opd_tensor *x = floats(6), *y = floats(6);
    CHECK_INT(opd_check_size(x, 0, 6), 0);
    CHECK_INT(opd_check_size(x, -1, 5), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "opd_check_size: expected size 5 at dim 0, got a tensor of sizes [6]");
    CHECK_INT(opd_check_size(x, 1, 5), -1);
    CHECK_ERROR(OPD_ERROR_INDEX, "opd_check_size: dim 1 is out of range for a tensor with 1 dims");
    CHECK_INT(opd_check_size(NULL, 0, 5), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_check_size");
    OPD_FAKE_MODE {
        opd_tensor *u = opd_nonzero(x), *twice = opd_cat(OPD_TENSORS(u, u), 0), *v = chosen(y);
        CHECK_INT(opd_check_size(twice, 0, 7), -1);
        CHECK_ERROR(OPD_ERROR_SHAPE, "opd_check_size: the size at dim 0 of the tensor (2*u0, 1) cannot be 7");
        CHECK_INT(opd_check_size(u, 0, 7), -1);
        CHECK_ERROR(OPD_ERROR_SHAPE, "cannot be 7");
        CHECK_INT(opd_check_size(twice, -2, 6), 0);
        SHAPE_AND(u, "(3, 1)", "0 <= u0 <= 6, u0 == 3\n0 <= u1 <= 6\n");
        CHECK_INT(opd_check_size(u, 0, 3), 0);
        CHECK_INT(opd_check_size(u, 0, 2), -1);
        CHECK_ERROR(OPD_ERROR_SHAPE, "cannot be 2");
        CHECK_INT(opd_check_size(u, 1, 1), 0);
        CHECK_INT(opd_check_size(opd_mul(u, v), 1, 5), 0);
        CHECK_INT(opd_size(v, 0), 5);
    }
}

//-- with other parts of the library -----------------------------------------------------------------------------------

static opd_tensor *loss_of(opd_tensor *x, opd_tensor *w) {
    opd_tensor *some = chosen(x), *all = opd_mul(some, some);
    opd_tensor *loss = opd_sum(opd_reshape(all, OPD_INTS(-1, 1)));
    loss = opd_add(loss, opd_sum(opd_mul(all, w)));          /* here the number of elements is known */
    return opd_add(loss, opd_sum(opd_mul(opd_cat(OPD_TENSORS(some, w), 0), opd_ones(OPD_INTS(8), OPD_FLOAT32))));
}
TEST(gradients) {
    opd_tensor *x = opd_tensor_set_requires_grad(floats(6), true), *w = opd_tensor_set_requires_grad(floats(4), true);
    OPD_FAKE_MODE {
        opd_tensor *leaf = opd_fake_tensor(x), *weight = opd_fake_tensor(w), *some;
        CHECK_INT(opd_backward(loss_of(leaf, weight)), 0);
        CHECK_OK();
        CHECK(opd_tensor_grad(leaf) && opd_size(opd_tensor_grad(leaf), 0) == 6);
        CHECK(opd_tensor_grad(weight) && opd_size(opd_tensor_grad(weight), 0) == 4);
        some = chosen(leaf);
        CHECK_INT(opd_backward(opd_sum(opd_exp(opd_mul(some, some)))), 0);      /* the number stays open */
        CHECK_INT(opd_size(some, 0), 6);
        some = opd_mul(chosen(leaf), opd_ones(OPD_INTS(1), OPD_FLOAT32));
        CHECK_INT(opd_backward(opd_sum(opd_mm(opd_reshape(some, OPD_INTS(1, -1)), opd_ones(OPD_INTS(5, 2), OPD_FLOAT32)))), 0);
        CHECK_OK();
        CHECK_INT(opd_size(some, 0), 5);
    }
}
static int per_row(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)n;
    switch (*(const int *)user) {
    case 0: out[0] = opd_add(in[0], in[0]); break;
    case 1: out[0] = opd_sum(in[0]); break;
    case 2: out[0] = opd_expand(in[0], OPD_INTS(5)); break;
    case 3: out[0] = opd_reshape(in[0], OPD_INTS(1, -1)); break;
    case 4: out[0] = opd_mv(opd_ones(OPD_INTS(3, 1), OPD_INT64), in[0]); break;
    default: out[0] = opd_cat(OPD_TENSORS(in[0], in[0]), 0); break;
    }
    return out[0] ? 1 : -1;
}
static int per_pair(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    out[0] = opd_mul(in[0], in[n - 1]);
    return out[0] ? 1 : -1;
}
static int over_columns(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_add(opd_mul(in[0], in[0]), one_dim(4));
    if (out[0]) { out[0] = opd_mul(out[0], in[0]); }
    return out[0] ? 1 : -1;
}
TEST(inside_of_vmap) {
    static const char *const shapes[] = {"(u0, 1)", "(u0)", "(u0, 5)", "(u0, 1, 1)", "(u0, 3)", "(u0, 2)"};
    opd_tensor *x = floats(6), *y;
    OPD_FAKE_MODE {
        opd_tensor *u = opd_nonzero(x), *columns;
        opd_vmap_options options;
        int in_dim = 1;
        for (int i = 0; i < 6; i++) {
            CHECK_INT(opd_vmap(per_row, &i, &u, 1, NULL, &y, 1), 1);
            SHAPE_AND(y, shapes[i], "0 <= u0 <= 6\n");
        }
        columns = opd_expand(u, OPD_INTS(-1, 3));
        memset(&options, 0, sizeof options);
        options.in_dims = &in_dim;
        options.nin_dims = 1;
        CHECK_INT(opd_vmap(over_columns, NULL, &columns, 1, &options, &y, 1), 1);
        SHAPE(y, "(3, 4)");
        CHECK_INT(opd_size(u, 0), 4);
        CHECK_OK();
    }
    OPD_FAKE_MODE {                               /* the number of examples depends on data, or only for one input */
        opd_tensor *inputs[2];
        for (int first = 0; first < 2; first++) {
            inputs[first] = opd_nonzero(x);
            inputs[1 - first] = ones(4, 1);
            CHECK_INT(opd_vmap(per_pair, NULL, inputs, 2, NULL, &y, 1), 1);
            SHAPE(y, "(4, 1)");
            CHECK_INT(opd_size(inputs[first], 0), 4);
        }
        inputs[0] = ones(4, 1);
        inputs[1] = ones(5, 1);
        CHECK_INT(opd_vmap(per_pair, NULL, inputs, 2, NULL, &y, 1), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "got sizes [4, 5] for the mapped dimension");
    }
}
static int squares(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *some = chosen(in[n - 1]);
    (void)user;
    out[0] = opd_sum(opd_mul(some, some));
    return out[0] ? 1 : -1;
}
TEST(derivatives_and_recordings) {
    opd_tensor *x = floats(6), *y, *tangent, *primal;
    OPD_FAKE_MODE {
        opd_graph *graph;
        CHECK_INT(opd_grad(squares, NULL, &x, 1, NULL, &y, 1), 1);
        CHECK_INT(opd_size(y, 0), 6);
        CHECK_INT(opd_jvp(squares, NULL, &x, &x, 1, NULL, &primal, &tangent, 1), 1);
        CHECK_INT(opd_ndim(tangent), 0);
        graph = opd_graph_trace(squares, NULL, &x, 1, NULL);
        CHECK_OK();
        CHECK_INT(opd_graph_count(graph, "aten::mul"), 1);    /* trials are not recorded */
        CHECK_INT(opd_graph_count(graph, "aten::masked_select"), 1);
        opd_graph_free(graph);
    }
}
static int events;
static void *event_begins(const opd_event *event, void *user) {
    (void)user;
    events += event->op && strcmp(opd_op_name(event->op), "aten::mul.Tensor") == 0;
    return NULL;
}
/* Trials draw no random numbers, write no argument, are no events and cost nothing. */
TEST(trials_leave_no_traces) {
    opd_tensor *x = floats(6), *expected, *y;
    opd_observer observer;
    opd_cost *cost;
    int64_t handle;
    uint32_t version;
    (void)opd_manual_seed(7);
    expected = opd_rand(OPD_INTS(3), OPD_FLOAT32);
    (void)opd_manual_seed(7);
    memset(&observer, 0, sizeof observer);
    observer.begin = event_begins;
    handle = opd_observer_add_local(&observer);
    events = 0;
    OPD_FAKE_MODE {
        opd_tensor *some = chosen(x), *written = opd_fake_tensor(floats(4));
        SHAPE(opd_rand_like(some), "(u0)");
        SHAPE(opd_bernoulli(some), "(u0)");
        SHAPE(opd_mul(some, some), "(u0)");
        version = (uint32_t)opd_tensor_version(written);
        CHECK(opd_add_(written, some) == written);
        CHECK_INT(opd_tensor_version(written), version + 1);
        SHAPE(written, "(4)");
        SHAPE(some, "(u0)");
        SHAPE(opd_relu_(some), "(u0)");
        SHAPE(opd_unsqueeze_(some, 0), "(1, u0)");
    }
    CHECK_INT(events, 1);
    CHECK(opd_observer_remove(handle));
    y = opd_rand(OPD_INTS(3), OPD_FLOAT32);
    CHECK_NEAR(opd_data_f32(y)[2], opd_data_f32(expected)[2], 0);
    cost = opd_cost_begin();
    (void)opd_mul(chosen(x), opd_ones(OPD_INTS(1), OPD_FLOAT32));
    CHECK_INT(opd_cost_total(cost).calls, 4);
    CHECK_INT(opd_cost_total(cost).bytes, 6 + 24 + 4 + 24);   /* sizes are upper bounds */
    opd_cost_free(cost);
    CHECK_OK();
}
/* The library finds jumps by addresses on the stack; the sanitizers and some machines have others. */
#if !defined(CHECK_SANITIZED) && defined(__GNUC__) && !defined(__TINYC__) && (defined(__linux__) || defined(_WIN32))
/* A fake kernel that is left by longjmp in a trial, as C++ kernels are left by exceptions. */
static jmp_buf target;
static int calls_until_jump;
static int k_jumps(opd_call *call) {
    const int64_t size = opd_fake_new_size(call, 0, 6);
    if (--calls_until_jump == 0) { longjmp(target, 1); }
    return size >= 0 && opd_result(call, 0, &size, 1, OPD_FLOAT32) ? 0 : -1;
}
TEST(trials_that_are_left) {
    opd_library *lib = opd_library_open(OPD_DEF, "jumping", NULL, __FILE__, __LINE__);
    opd_cost *cost = opd_cost_begin();
    opd_value x = opd_value_tensor(floats(6));
    opd_op_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.schema = "open(Tensor x) -> Tensor";
    desc.fake = k_jumps;
    CHECK_INT(opd_define(lib, &desc), 0);
    x = opd_value_tensor(chosen(x.u.t));
    calls_until_jump = 1;
    if (setjmp(target) == 0) {
        (void)opd_call_op(opd_find("jumping::open"), &x, 1);
        CHECK(!"no jump");
    }
    CHECK_INT(calls_until_jump, 0);
    CHECK(!opd_relu(x.u.t));
    CHECK_ERROR(OPD_ERROR_KERNEL, "an exception or a longjmp has left a fake kernel");
    opd_cost_free(cost);                          /* the jump has reset the keys, so the mode is of no use */
    cost = opd_cost_begin();
    x = opd_value_tensor(floats(6));
    SHAPE(opd_mul(chosen(x.u.t), chosen(x.u.t)), "(u0)");
    CHECK_INT(opd_cost_total(cost).calls, 6);
    opd_cost_free(cost);
    opd_library_close(lib);
}
#endif
TEST(modes_inside_of_modes) {
    opd_tensor *x = floats(6), *u, *v = NULL;
    char text[64];
    OPD_FAKE_MODE {
        u = opd_nonzero(x);
        OPD_FAKE_MODE {
            v = opd_add(u, u);
            SHAPE(v, "(u0, 1)");
            (void)opd_stack(OPD_TENSORS(v, ones(4, 1)), 0);
        }
        SHAPE_AND(v, "(4, 1)", "0 <= u0 <= 6, u0 == 4\n");
        CHECK_INT(opd_size(u, 0), 4);
    }
    SHAPE_AND(opd_add(u, v), "(4, 1)", "");
    OPD_FAKE_MODE {                               /* tensors of a mode that has ended have plain sizes */
        SHAPE_AND(opd_add(v, v), "(4, 1)", "");
        CHECK_INT(opd_check_size(v, 0, 4), 0);
        CHECK_INT(opd_check_size(v, 0, 3), -1);
        CHECK_ERROR(OPD_ERROR_SHAPE, "got a tensor of sizes [4, 1]");
    }
    CHECK_INT(opd_fake_shape_print(v, text, 4), 6);
    CHECK_STR(text, "(4,");
    CHECK_INT(opd_fake_shape_print(NULL, text, sizeof text), 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_fake_shape_print");
}

//-- programs at random ------------------------------------------------------------------------------------------------

/* A program is run with data, and then with fakes.  Calls that are right with data must be right with fakes. */
static uint32_t state;
static uint32_t below(uint32_t n) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
}
#define STEPS 8
typedef struct program { opd_tensor *pool[STEPS + 3]; int count; bool right[STEPS]; int64_t numbers[STEPS]; } program;
static opd_tensor *step(program *p, int64_t number) {
    opd_tensor *a = p->pool[below((uint32_t)p->count)], *b = p->pool[below((uint32_t)p->count)];
    switch (below(18)) {
    case 0: return opd_add(a, b);
    case 1: return opd_mul(a, b);
    case 2: return opd_cat(OPD_TENSORS(a, b), 0);
    case 3: return opd_stack(OPD_TENSORS(a, b), 0);
    case 4: return opd_reshape(a, OPD_INTS(-1));
    case 5: return opd_reshape(a, OPD_INTS(number, -1));
    case 6: return opd_add(a, opd_ones(OPD_INTS(number), OPD_FLOAT32));
    case 7: return opd_add(a, opd_ones(OPD_INTS(number, 1), OPD_FLOAT32));
    case 8: return opd_ndim(a) ? opd_sum_dim(a, OPD_INTS(0), false) : NULL;
    case 9: return opd_ndim(a) == 2 ? opd_t(a) : NULL;
    case 10: return opd_ndim(a) == 2 && opd_ndim(b) == 2 ? opd_mm(a, b) : NULL;
    case 11: return opd_masked_select(a, opd_gt_Scalar(a, opd_value_int(1)));
    case 12: return opd_to_dtype(opd_nonzero(a), OPD_FLOAT32);
    case 13: return opd_ndim(a) == 1 ? opd_mul(a, opd_ones(OPD_INTS(opd_size(a, 0)), OPD_FLOAT32)) : NULL;
    case 14: return opd_reshape(a, OPD_INTS(opd_numel(a)));
    case 15: return opd_ndim(a) ? opd_index_select(a, 0, opd_select(opd_nonzero(b), 1, 0)) : NULL;
    case 16: return opd_where_self(opd_gt_Scalar(a, opd_value_int(1)), a, b);
    default: return opd_ndim(a) == 2 ? opd_expand(opd_sum_dim(a, OPD_INTS(0), true),
                                                  OPD_INTS(opd_size(a, 0), opd_size(a, 1))) : NULL;
    }
}
static int wrong_with_fakes(program *p, uint32_t seed, bool fake) {
    float data[7];
    int wrong = 0;
    opd_tensor *x;
    state = seed * 2654435761u;
    for (int i = 0; i < 7; i++) { data[i] = (float)(i < 4 ? i + 1 : (int)below(3)); }
    x = opd_tensor_from(data, OPD_INTS(7), OPD_FLOAT32);
    p->pool[0] = fake ? opd_fake_tensor(x) : x;
    p->pool[1] = opd_masked_select(x, opd_gt_Scalar(x, opd_value_int(1)));
    p->pool[2] = opd_to_dtype(opd_nonzero(x), OPD_FLOAT32);
    p->count = 3;
    for (int i = 0; i < STEPS; i++) {
        opd_tensor *y;
        if (!fake) {
            const opd_tensor *like = p->pool[below((uint32_t)p->count)];
            p->numbers[i] = opd_ndim(like) ? opd_size(like, 0) : 1;
        }
        state = seed * 7919u + (uint32_t)i * 104729u;
        if (fake && !p->right[i]) { continue; }
        y = step(p, p->numbers[i]);
        if (!fake) { p->right[i] = y && opd_numel(y) > 1 && opd_numel(y) < 2000; }
        if (fake && !y) {
            wrong++;
            printf("    program %u, step %d: %s\n", seed, i, opd_error_message());
        }
        opd_error_clear();
        if (wrong) { break; }
        if (p->right[i]) { p->pool[p->count++] = y; }
    }
    return wrong;
}
TEST(programs_at_random) {
    int wrong = 0;
    for (uint32_t seed = 1; seed <= 400; seed++) {
        static program p;
        OPD_SCOPE { (void)wrong_with_fakes(&p, seed, false); }
        OPD_SCOPE { OPD_FAKE_MODE { wrong += wrong_with_fakes(&p, seed, true); } }
    }
    CHECK_INT(wrong, 0);
}

//-- every operator ----------------------------------------------------------------------------------------------------

/* `tensor` with rows whose number depends on data, and can be the number of its rows.  If `more`, it can also be up to
   twice this number. */
static bool more;
static opd_tensor *with_open_rows(opd_tensor *tensor) {
    opd_tensor *rows = opd_fake_tensor(tensor), *mask;
    if (!rows || opd_ndim(rows) == 0 || opd_size(rows, 0) < 2 || opd_tensor_requires_grad(rows)) { return rows; }
    if (more) { rows = opd_cat(OPD_TENSORS(rows, rows), 0); }
    mask = opd_ones(OPD_INTS(opd_size(rows, 0)), OPD_BOOL);
    return opd_index(rows, opd_tensors_of(&mask, 1));
}
/* Calls the operator with fakes.  Argument `open` gets rows that depend on data, all arguments if it is -2. */
static int with_fakes(const op_case *c, int open, opd_tensor **out) {
    static case_list lists[OPD_MAX_ARGS];
    opd_value args[OPD_MAX_ARGS], rets[MOST_RESULTS];
    int i, k;
    for (i = 0; i < c->nargs; i++) {
        const bool here = i == open || open == -2;
        args[i] = c->args[i];
        if (args[i].tag == OPD_TAG_TENSOR) { args[i].u.t = here ? with_open_rows(args[i].u.t) : opd_fake_tensor(args[i].u.t); }
        if (args[i].tag != OPD_TAG_TENSORS) { continue; }
        for (k = 0; k < args[i].n; k++) {
            opd_tensor *tensor = c->args[i].u.tensors[k];
            lists[i].tensors[k] = !tensor ? NULL : here ? with_open_rows(tensor) : opd_fake_tensor(tensor);
        }
        args[i].u.tensors = lists[i].tensors;
    }
    CHECK_OK();
    return opd_call_all((opd_op *)(uintptr_t)c->op, rets, args, c->nargs) == 0 ? results_of(c->op, rets, out) : -1;
}
/* What is right with fixed sizes is right with sizes that can have these numbers.  If these are the upper bounds, results
   have the same sizes. */
static int wrong_with_open_rows(const op_case *c) {
    int wrong = 0, i, k, n, m;
    for (i = -2; i < c->nargs; i++) {
        opd_tensor *fixed[MOST_RESULTS], *open[MOST_RESULTS];
        opd_fake_block mode;
        if (i == -1 || (i == -2 && more) || (i >= 0 && c->args[i].tag != OPD_TAG_TENSOR && c->args[i].tag != OPD_TAG_TENSORS)) { continue; }
        mode = opd_fake_begin();
        n = with_fakes(c, -1, fixed);
        opd_error_clear();
        opd_fake_end(&mode);
        mode = opd_fake_begin();
        m = n < 0 ? n : with_fakes(c, i, open);
        for (k = 0; k < n && n == m && !more; k++) {
            char is[200], was[200];
            if (!fixed[k] || !open[k] || same_shape(fixed[k], open[k])) { continue; }
            m = -2;
            (void)opd_fake_shape_print(open[k], is, sizeof is);
            (void)opd_fake_shape_print(fixed[k], was, sizeof was);
            printf("    result %d has the sizes %s, not %s\n", k, is, was);
        }
        if (n != m && (!more || m < 0)) {
            printf("    %s, open argument %d: %s\n", opd_op_name(c->op), i, m == -2 ? "other sizes" : opd_error_message());
            wrong++;
        }
        opd_error_clear();
        opd_fake_end(&mode);
    }
    return wrong;
}
TEST(every_operator_with_open_rows) {
    static op_case c;
    const opd_op *op;
    int wrong = 0, compared = 0;
    for (op = opd_op_next(NULL); op; op = opd_op_next(op)) {
        const char *text = cases_of(op);
        if (!text || strncmp(opd_op_name(op), "aten::", 6) != 0) { continue; }
        while (*text) {
            opd_scope scope = opd_scope_open();
            c.op = op;
            c.dtype = OPD_FLOAT32;
            c.layout = 0;
            c.smooth = c.meta = false;
            if (case_read_next(&c, &text)) {
                compared++;
                more = compared % 2 != 0 && strcmp(opd_op_name(op), "aten::linalg_multi_dot") != 0;   /* three unknown sizes */
                wrong += wrong_with_open_rows(&c);
            } else { text = ""; }
            opd_scope_close(&scope);
        }
    }
    CHECK_INT(wrong, 0);
    CHECK(compared > 1000);
}

//-- memory that runs out ----------------------------------------------------------------------------------------------

static int small_program(opd_tensor *x) {
    opd_fake_block block = opd_fake_begin();
    opd_tensor *leaf = opd_fake_tensor(x), *some = chosen(leaf), *other = chosen(leaf), *sum = opd_add(some, other);
    opd_tensor *read = opd_mul(sum, opd_ones(OPD_INTS(opd_numel(sum)), OPD_FLOAT32));
    opd_tensor *square = opd_reshape(opd_mul(opd_unsqueeze(read, 1), some), OPD_INTS(-1));
    int rc = opd_backward(opd_add(opd_sum(opd_mul(read, opd_ones(OPD_INTS(4), OPD_FLOAT32))), opd_sum(square)));
    if (rc == 0 && (opd_size(some, 0) != 4 || opd_size(square, 0) != 16)) { rc = 1; }
    opd_fake_end(&block);
    return rc;
}
TEST(allocations_that_fail) {
    opd_tensor *x = opd_tensor_set_requires_grad(floats(6), true);
    int rc = -1;
    OPD_SCOPE { CHECK_INT(small_program(x), 0); }
    CHECK_OK();
    for (int64_t n = 1; rc && n < 20000; n++) {
        OPD_SCOPE {
            (void)opd_memory_fail_at(n, false);
            rc = small_program(x);
            (void)opd_memory_fail_at(0, false);
            if (rc) { CHECK_ERROR(OPD_ERROR_MEMORY, ""); }
        }
    }
    CHECK_INT(rc, 0);
    CHECK(!opd_fake_enabled());
}

CHECK_MAIN()
