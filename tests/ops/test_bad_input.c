/* Input that operators must refuse with an error that says what is wrong, without changing anything: indices out of
   range, integer division by zero, wrong shapes and dtypes, empty lists, NULL instead of a tensor. */
#include "../../opdispatch.h"
#include "../check.h"

static opd_tensor *counted(int64_t rows, int64_t columns, opd_scalar_type dtype) {
    return opd_reshape(opd_arange(OPD_V(rows * columns), dtype), OPD_INTS(rows, columns));
}
static opd_tensor *ints(int64_t n, int64_t value, opd_scalar_type dtype) {
    return opd_full(OPD_INTS(n), OPD_V(value), dtype);
}
static int64_t sum_of(opd_tensor *t) { return opd_item_i64(opd_sum(t)); }

/* Calls with arguments in schema order; the error must have that code and text and begin with the operator's name. */
static void refuses(const char *name, const opd_value *args, int n, opd_code code, const char *text) {
    CHECK(opd_call_op(opd_find(name), args, n) == NULL);
    if (strncmp(opd_error_message(), name, strlen(name)) != 0) { CHECK_STR(opd_error_message(), name); }
    CHECK_ERROR(code, text);
}

TEST(indices_out_of_range) {
    /* kind: 0 a row of indices, 1 as many as x has, 2 in a list; number: a number is put there, not a tensor */
    static const struct { const char *name, *text; int kind, number; } rows[] = {
        {"aten::index_select", "index out of range in self", 0, 0},
        {"aten::gather", "is out of bounds for dimension 0 with size 3", 1, 0},
        {"aten::scatter.value", "is out of bounds for dimension 0 with size 3", 1, 1},
        {"aten::scatter_.value", "is out of bounds for dimension 0 with size 3", 1, 1},
        {"aten::scatter_add", "is out of bounds for dimension 0 with size 3", 1, 0},
        {"aten::scatter_add_", "is out of bounds for dimension 0 with size 3", 1, 0},
        {"aten::index_add", "out of", 0, 0},
        {"aten::index_add_", "out of", 0, 0},
        {"aten::index_copy", "out of bounds", 0, 0},
        {"aten::index_copy_", "out of bounds", 0, 0},
        {"aten::index_fill.int_Scalar", "is out of bounds for dimension 0 with size 3", 0, 1},
        {"aten::index.Tensor", "is out of bounds for dimension 0 with size 3", 2, 0},
        {"aten::index_put", "is out of bounds for dimension 0 with size 3", 2, 0},
        {"aten::index_put_", "is out of bounds for dimension 0 with size 3", 2, 0},
    };
    static const int64_t wrong[] = {3, -4, INT64_MAX, INT64_MIN};
    size_t r, w;
    for (r = 0; r < sizeof rows / sizeof *rows; r++) {
        for (w = 0; w < 4; w++) OPD_SCOPE {
            opd_tensor *x = counted(3, 4, OPD_FLOAT32), *other = opd_ones_like(x), *index, *list[1];
            opd_op *op = opd_find(rows[r].name);
            opd_value args[4];
            int n = 4, list_first = rows[r].kind == 2;
            index = rows[r].kind == 1 ? opd_full(OPD_INTS(3, 4), OPD_V(0), OPD_INT64) : ints(3, 0, OPD_INT64);
            opd_data_i64(index)[1] = wrong[w];    /* not the first: nothing may be written before the check */
            list[0] = index;
            args[0] = opd_value_tensor(x);
            args[1] = list_first ? opd_value_tensors(list, 1) : opd_value_int(0);
            args[2] = list_first ? opd_value_tensor(other) : opd_value_tensor(index);
            args[3] = list_first ? opd_value_bool(false) : rows[r].number ? opd_value_int(7) : opd_value_tensor(other);
            while (op && n > opd_schema_nargs(opd_op_schema(op))) { n--; }
            if (strcmp(rows[r].name, "aten::gather") == 0) { n = 3; }
            refuses(rows[r].name, args, n, OPD_ERROR_INDEX, rows[r].text);
            CHECK_INT(sum_of(x), 66);
        }
    }
}

TEST(targets_out_of_range) {
    opd_tensor *x = opd_log_softmax(counted(3, 4, OPD_FLOAT32), 1);
    opd_value args[3];
    args[0] = opd_value_tensor(x);
    args[1] = opd_value_tensor(ints(3, 4, OPD_INT64));
    CHECK(opd_call_op(opd_find("aten::cross_entropy_loss"), args, 2) == NULL);
    CHECK_ERROR(OPD_ERROR_INDEX, "Target 4 is out of bounds.");
    args[1] = opd_value_tensor(ints(3, -1, OPD_INT64));
    CHECK(opd_call_op(opd_find("aten::cross_entropy_loss"), args, 2) == NULL);
    CHECK_ERROR(OPD_ERROR_INDEX, "Target -1 is out of bounds.");
    args[1] = opd_value_tensor(ints(2, 0, OPD_INT64));
    CHECK(opd_call_op(opd_find("aten::cross_entropy_loss"), args, 2) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "");
    args[1] = opd_value_tensor(ints(2, 3, OPD_INT64));                       /* embedding(weight, indices) */
    refuses("aten::embedding", args, 2, OPD_ERROR_INDEX, "index out of range in self");
}

TEST(integer_division) {
    static const char *const names[] = {"aten::floor_divide", "aten::floor_divide_.Tensor", "aten::remainder.Tensor",
                                        "aten::remainder_.Tensor", "aten::fmod.Tensor", "aten::fmod_.Tensor"};
    static const opd_scalar_type dtypes[] = {OPD_UINT8, OPD_INT8, OPD_INT16, OPD_INT32, OPD_INT64};
    static const char *const modes[] = {"trunc", "floor"};
    opd_value args[3];
    size_t i, d;
    for (d = 0; d < 5; d++) {
        for (i = 0; i < 6; i++) OPD_SCOPE {
            opd_tensor *x = ints(4, 6, dtypes[d]), *by = ints(4, 4, dtypes[d]);
            opd_tensor *zero = opd_select(by, 0, 2);
            (void)OPD_CALL(opd_find("aten::zero_"), zero);
            args[0] = opd_value_tensor(x);
            args[1] = opd_value_tensor(by);
            refuses(names[i], args, 2, OPD_ERROR_ARGUMENT, "ZeroDivisionError");
            CHECK_INT(sum_of(x), 24);                                      /* as it was */
        }
    }
    for (i = 0; i < 4; i++) {
        opd_tensor *x = i < 2 ? ints(2, INT64_MIN, OPD_INT64) : ints(2, INT32_MIN, OPD_INT32);
        args[0] = opd_value_tensor(x);
        args[1] = opd_value_tensor(opd_full_like(x, OPD_V(-1)));
        args[2] = OPD_V(modes[i & 1]);
        refuses("aten::div.Tensor_mode", args, 3, OPD_ERROR_ARGUMENT,
                i < 2 ? "the smallest int64 divided by -1" : "the smallest int32 divided by -1");
        CHECK_INT(sum_of(OPD_CALL(opd_find("aten::remainder.Tensor"), x, -1)), 0);
        CHECK_OK();
    }
    args[0] = opd_value_tensor(ints(2, -128, OPD_INT8));
    args[1] = opd_value_int(-1);                  /* wraps there, as in PyTorch */
    CHECK_INT(sum_of(opd_call_op(opd_find("aten::floor_divide"), args, 2)), -256);
}

TEST(lists_of_nothing) {
    opd_tensor *x = counted(3, 4, OPD_FLOAT32);
    CHECK(opd_cat(opd_tensors_of(NULL, 0), 0) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "aten::cat: expected a non-empty list of Tensors");
    CHECK(opd_stack(opd_tensors_of(NULL, 0), 0) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "stack expects a non-empty TensorList");
    CHECK(opd_hstack(opd_tensors_of(NULL, 0)) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "hstack expects a non-empty TensorList");
    CHECK(opd_cat(opd_tensors_of(NULL, 2), 0) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "aten::cat() Expected a value of type 'Tensor[]' for argument 'tensors' but an "
                "element is NULL");
    CHECK(opd_cat(OPD_TENSORS(x, NULL), 0) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "argument 'tensors'");
    CHECK(opd_cat(opd_tensors_of(&x, -1), 0) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "argument 'tensors' is a list of -1 elements");
    CHECK(opd_view(x, opd_ints_of(NULL, 2)) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "argument 'size' is a list of 2 elements, but its pointer is NULL");
    CHECK(opd_sum_dim(x, opd_ints_of(NULL, -3), false) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "aten::sum.dim_IntList: argument 'dim' is a list of -3 elements");
    CHECK(opd_tensor_new(opd_ints_of(NULL, -1), OPD_FLOAT32) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "");
}

TEST(queries_of_nothing) {
    opd_tensor *x = opd_add(counted(2, 2, OPD_FLOAT32), counted(3, 3, OPD_FLOAT32));
    CHECK(x == NULL);
    opd_error_clear();
    CHECK(opd_ndim(x) == 0 && opd_numel(x) == 0 && opd_sizes(x) == NULL && opd_strides(x) == NULL);
    CHECK(opd_dtype(x) == OPD_DTYPE_NONE && opd_data(x) == NULL && !opd_is_contiguous(x));
    CHECK(opd_tensor_offset(x) == 0 && opd_tensor_storage_bytes(x) == 0);
    CHECK(opd_tensor_device(x).type == OPD_CPU && opd_tensor_keys(x).functionality == 0 && opd_tensor_version(x) == 0);
    CHECK(!opd_tensor_same_storage(x, x) && !opd_tensor_is_wrapped_number(x) && !opd_tensor_requires_grad(x));
    CHECK(opd_tensor_is_leaf(x) && opd_tensor_grad(x) == NULL && opd_tensor_grad_fn(x) == NULL);
    CHECK_OK();
    (void)opd_size(x, 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "NULL");
    CHECK(opd_data_f32(x) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "NULL");
    CHECK(opd_tensor_view(x, NULL, NULL, 0, 0) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_tensor_view: the tensor is NULL");
    CHECK(opd_tensor_set_requires_grad(x, true) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_tensor_set_requires_grad: the tensor is NULL");
    CHECK_INT(opd_tensor_set_grad(x, NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_tensor_set_grad: the tensor is NULL");
    CHECK_INT(opd_backward(x), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "NULL");
}

/* NULL instead of arrays, buffers and names; invalid numbers. */
static int k_same(opd_call *call) { return opd_return_tensor(call, opd_arg_tensor(call, 0)); }
TEST(arrays_at_null) {
    const int64_t two = 2;
    opd_tensor *x = opd_ones(opd_ints_of(&two, 1), OPD_FLOAT32), *none = NULL;
    opd_op *op = opd_find("aten::neg"), *stack = opd_find("aten::stack");
    opd_overloads *neg = opd_overloads_find("aten::neg");
    opd_value v[2], r[1];
    opd_keyword kw;
    opd_device d;
    memset(&kw, 0, sizeof kw);
    v[0] = opd_value_tensor(x);
    CHECK(!opd_call_op(op, NULL, 1));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "aten::neg(): the call has 1 argument(s), but the pointer to them is NULL");
    CHECK_INT(opd_call_all(op, r, NULL, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the pointer to them is NULL");
    CHECK_INT(opd_call_at(op, "CPU", r, NULL, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the pointer to them is NULL");
    CHECK_INT(opd_call_keywords(op, r, NULL, 1, NULL, 0), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the pointer to them is NULL");
    CHECK_INT(opd_call_keywords(op, r, v, 0, NULL, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the pointer to them is NULL");
    CHECK_INT(opd_call_keywords(op, r, v, 1, &kw, 2147483647), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "received 2147483647 argument(s)");
    CHECK(!opd_overloads_resolve(neg, NULL, 1, NULL, 0));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the pointer to them is NULL");
    CHECK_INT(opd_overloads_call(neg, r, v, 0, NULL, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the pointer to them is NULL");
    CHECK(opd_explain(op, NULL, 1, NULL, 9) == 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the pointer to them is NULL");
    memset(v, 0, sizeof v);
    v[0].tag = OPD_TAG_LIST; v[0].n = 2;
    CHECK(!opd_call_op(stack, v, 1));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "a list at NULL");
    v[0] = opd_value_tensor(x); v[1].tag = OPD_TAG_LIST; v[1].n = 2;
    CHECK(!opd_call_op(opd_find("aten::mul.Scalar"), v, 2));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "a list at NULL");
    CHECK(!opd_assign(NULL, x));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_assign");
    CHECK(!opd_tensor_view(x, &two, NULL, 1, 0));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "strides are NULL");
    CHECK_INT(opd_device_parse("cpu", NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the pointer to the result is NULL");
    CHECK_INT(opd_device_parse("cpu", &d), 0);
    opd_scope_close(NULL);
    opdi_block_link(NULL);
    /* results that nobody wants */
    CHECK_INT(opd_call_all(op, NULL, v, 1), 0);
    CHECK_INT(opd_call_at(op, "CPU", NULL, v, 1), 0);
    CHECK_INT(opd_call_keywords(op, NULL, v, 1, NULL, 0), 0);
    CHECK_INT(opd_overloads_call(neg, NULL, v, 1, NULL, 0), 0);
    CHECK_INT(opd_call_tensors(op, NULL, v, 1), 0);
    CHECK_INT(opd_call_tensors(op, &none, v, 1), 0);
    CHECK(none != NULL);
    /* texts without a buffer have their length */
    CHECK(opd_dump(op, NULL, 9) == opd_dump(op, NULL, 0) && opd_dump_table(op, NULL, 9) > 0);
    CHECK(opd_explain(op, v, 1, NULL, 9) > 0 && opd_tensor_print(x, NULL, 9) == strlen("tensor([1., 1.])"));
    CHECK(opd_op_list(NULL, NULL, 9) > 1000);
    CHECK(opd_keyset_print(OPD_KEYS_FULL, NULL, 9) > 100);
    CHECK_INT(opd_device_print(d, NULL, 9), (long long)strlen("cpu"));
    CHECK(opd_keyset_equal(opd_keyset_remove_backend(OPD_KEYS_FULL, -1), OPD_KEYS_FULL) &&
          opd_keyset_equal(opd_keyset_remove_backend(OPD_KEYS_FULL, 64), OPD_KEYS_FULL));
    CHECK_OK();
}

/* All functions that write results through pointers: if they fail, the results are empty.  `how` is the kind of
   failure. */
enum { PENDING, OF_NO_USE, AFTER_IT_BEGAN, WAYS };
static opd_tensor *const junk = (opd_tensor *)(uintptr_t)0x5a5a5a50;
static int gives_and_fails(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_sum(in[0]);
    out[1] = opd_exp(in[0]);
    return opd_fail(OPD_ERROR_USER, "gave two and failed");
}
static int segment_fails(opd_tensor *const *in, int n, opd_tensor **out, int nout, void *user) {
    (void)nout;
    return gives_and_fails(user, in, n, out) < 0 ? -1 : 0;
}
static int forward_fails(opd_context *ctx) {
    return opd_context_return(ctx, opd_exp(opd_context_tensor(ctx, 0))) ? -1 : opd_fail(OPD_ERROR_USER, "gave one and failed");
}
static void fails_into(const char *what, int how, opd_tensor **t, opd_value *v, void **p) {
    opd_tensor *x = opd_ones(OPD_INTS(2), OPD_FLOAT32), *y, *wrong = opd_ones(OPD_INTS(3), OPD_FLOAT32);
    opd_value args[3];
    opd_op *add = opd_find("aten::add.Tensor");
    opd_transform_fn fn = how == OF_NO_USE ? NULL : gives_and_fails;
    opd_autograd_function function;
    opd_graph *graph = opd_graph_parse("graph(%x : Tensor, %y : Tensor):\n  %z : Tensor = aten::neg(%y)\n"
                                       "  %w : int = prim::Constant[value=1]()\n"
                                       "  %v : Tensor = aten::add(%x, %y, %w)\n  %t = prim::TupleConstruct(%z, %v)\n  return (%t)\n");
    opd_graph_value *of = graph ? opd_graph_find(graph, "x") : NULL;
    opd_tensor *two[2], *leaf = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(2), OPD_FLOAT32), true);
    const int argnums[] = {0};
    opd_transform_options o;
    opd_keyword kw;
    int k = 0;
    memset(&o, 0, sizeof o);
    memset(&function, 0, sizeof function);
    memset(&kw, 0, sizeof kw);
    o.argnums = argnums; o.nargnums = 1; o.naux = 1;
    function.name = "Fails"; function.forward = forward_fails;
    two[0] = x; two[1] = wrong;
    y = opd_sum(leaf);
    args[0] = opd_value_tensor(x); args[1] = opd_value_tensor(wrong); args[2] = opd_value_int(1);
    CHECK_OK();
    if (how == PENDING) { (void)opd_fail(OPD_ERROR_USER, "pending"); }
    if (how == OF_NO_USE) { add = NULL; two[0] = NULL; }
#define WHAT(name) strcmp(what, name) == 0 && ++k
    if (WHAT("call")) { CHECK(opd_call_all(add, v, args, 2) != 0); }
    if (WHAT("filled")) { CHECK(opd_call_all(add, v, args, 3) != 0); }
    if (WHAT("tensors")) { CHECK(opd_call_tensors(add, t, args, 2) != 0); }
    if (WHAT("at")) { CHECK(opd_call_at(add, "CPU", v, args, 2) != 0); }
    if (WHAT("keywords")) { CHECK(opd_call_keywords(add, v, args, 2, &kw, 0) != 0); }
    if (WHAT("overloads")) {
        CHECK(opd_overloads_call(how == OF_NO_USE ? NULL : opd_overloads_find("aten::add"), v, args, 2, &kw, 0) != 0);
    }
    if (WHAT("apply")) { CHECK(opd_autograd_apply(how == OF_NO_USE ? NULL : &function, args, 2, v, 2) < 0); }
    if (WHAT("grad")) { CHECK(opd_grad(fn, NULL, &x, 1, &o, t, OPD_TRANSFORM_OUTPUTS) < 0); }
    if (WHAT("grad_and_value")) { CHECK(opd_grad_and_value(fn, NULL, &x, 1, &o, t, OPD_TRANSFORM_OUTPUTS) < 0); }
    if (WHAT("vmap")) { CHECK(opd_vmap(fn, NULL, &x, 1, NULL, t, OPD_TRANSFORM_OUTPUTS) < 0); }
    if (WHAT("jacrev")) { CHECK(opd_jacrev(fn, NULL, &x, 1, &o, t, OPD_TRANSFORM_OUTPUTS) < 0); }
    if (WHAT("jacfwd")) { CHECK(opd_jacfwd(fn, NULL, &x, 1, &o, t, OPD_TRANSFORM_OUTPUTS) < 0); }
    if (WHAT("hessian")) { CHECK(opd_hessian(fn, NULL, &x, 1, &o, t, OPD_TRANSFORM_OUTPUTS) < 0); }
    if (WHAT("vjp")) { CHECK(opd_vjp(fn, NULL, &x, 1, &o, t, OPD_TRANSFORM_OUTPUTS, (opd_derivative **)p) < 0); }
    if (WHAT("linearize")) { CHECK(opd_linearize(fn, NULL, &x, 1, &o, t, OPD_TRANSFORM_OUTPUTS, (opd_derivative **)p) < 0); }
    if (WHAT("jvp")) { CHECK(opd_jvp(fn, NULL, &x, &x, 1, &o, t, (opd_tensor **)p, OPD_TRANSFORM_OUTPUTS) < 0); }
    if (WHAT("autograd_grad")) { CHECK(opd_autograd_grad(&y, 1, how == OF_NO_USE ? NULL : two, 2, NULL, t) != 0); }
    if (WHAT("unpack_dual")) { CHECK(opd_dual_unpack(how == OF_NO_USE ? NULL : x, t) == NULL || how == AFTER_IT_BEGAN); }
    if (WHAT("checkpoint")) { CHECK(opd_checkpoint(how == OF_NO_USE ? NULL : segment_fails, NULL, NULL, &x, 1, t, 2) != 0); }
    if (WHAT("graph_run")) { CHECK(opd_graph_run(graph, how == OF_NO_USE ? NULL : two, 2, t, 2) < 0); }
    if (WHAT("graph_function")) { CHECK(opd_graph_function(graph, how == OF_NO_USE ? NULL : two, 2, t) < 0); }
    if (WHAT("graph_unpack")) { CHECK(opd_graph_unpack(graph, how == OF_NO_USE ? NULL : of, (opd_graph_value **)t, 2) < 0); }
    if (WHAT("graph_call")) { CHECK(opd_graph_call(graph, "aten::sum.dim_IntList", &of, 1, (opd_graph_value **)t, 2) < 0); }
    if (WHAT("graph_call_op")) { CHECK(opd_graph_call_op(graph, add, &of, 1, (opd_graph_value **)t, 2) < 0); }
    CHECK_INT(k, 1);
    if (!opd_ok()) { opd_error_clear(); }
    if (graph) { opd_graph_free(graph); }
}
TEST(nothing_where_the_results_of_what_failed_would_be) {
    /* kind: 1 tensors, 2 values, 4 something more; least: how many are known of when nothing has been run */
    static const struct { const char *what; int kind, least; } rows[] = {
        {"call", 2, 1}, {"filled", 2, 1}, {"tensors", 1, 1}, {"at", 2, 1}, {"keywords", 2, 1}, {"overloads", 2, 1},
        {"apply", 2, 2}, {"grad", 1, 2}, {"grad_and_value", 1, 3}, {"vmap", 1, 1}, {"jacrev", 1, 2}, {"jacfwd", 1, 2},
        {"hessian", 1, 2}, {"vjp", 5, 2}, {"linearize", 5, 2}, {"jvp", 5, 2}, {"autograd_grad", 1, 2},
        {"unpack_dual", 1, 1}, {"checkpoint", 1, 2}, {"graph_run", 1, 2}, {"graph_function", 1, 2},
        {"graph_unpack", 1, 2}, {"graph_call", 1, 2}, {"graph_call_op", 1, 2},
    };
    size_t r;
    int how, i;
    for (r = 0; r < sizeof rows / sizeof *rows; r++) {
        for (how = 0; how < WAYS; how++) {
            OPD_SCOPED;
            opd_tensor *t[OPD_TRANSFORM_OUTPUTS];
            opd_value v[4];
            void *p[2];
            const int least = how == AFTER_IT_BEGAN && strcmp(rows[r].what, "vmap") == 0 ? 2 : rows[r].least;
            bool empty = true;
            for (i = 0; i < OPD_TRANSFORM_OUTPUTS; i++) { t[i] = junk; }
            for (i = 0; i < 4; i++) { v[i] = opd_value_int(7); }
            p[0] = p[1] = junk;
            fails_into(rows[r].what, how, t, v, p);
            for (i = 0; i < least; i++) {
                empty = empty && (!(rows[r].kind & 1) || !t[i]) && (!(rows[r].kind & 2) || v[i].tag == OPD_TAG_NONE);
            }
            if (!empty || (rows[r].kind & 4 && p[0])) { printf("%s, way %d\n", rows[r].what, how); CHECK(!"something is there"); }
            CHECK(t[3] == junk && v[2].tag == OPD_TAG_INT && p[1] == junk);          /* and what is not its own stays */
        }
    }
}

TEST(names_that_are_none) {
    static const char *const namespaces[] = {"a b", "a::b", "1a", "a.b", "a-b", ""};
    static const char *const names[] = {"", "a b", "a.", ".a", "a.default", "a.__b", "a.b.c", "if", "a-b", " a", "a#b"};
    opd_library *lib = opd_library_open(OPD_IMPL, "named", NULL, __FILE__, __LINE__);
    opd_op_filter filter;
    size_t i;
    for (i = 0; i < sizeof namespaces / sizeof *namespaces; i++) {
        CHECK(!opd_library_open(OPD_FRAGMENT, namespaces[i], NULL, __FILE__, __LINE__));
        CHECK_ERROR(OPD_ERROR_REGISTER, "the namespace of a library must have");
    }
    for (i = 0; i < sizeof names / sizeof *names; i++) {
        CHECK_INT(opd_impl(lib, names[i], k_same), -1);
        CHECK(!opd_ok());
        opd_error_clear();
    }
    memset(&filter, 0, sizeof filter);
    filter.ns = "named"; filter.dangling = true;
    CHECK_INT(opd_op_list(&filter, NULL, 0), 0);
    opd_library_close(lib);
    CHECK_INT(opd_key_define(OPD_F_USER_0, "two words"), OPD_KEY_INVALID);
    CHECK_ERROR(OPD_ERROR_REGISTER, "is not a user key (OPD_F_USER_n), or the name");
}

/* A device argument takes precedence over the device of the tensor. */
TEST(like_a_fake_on_a_device) {
    const int64_t two = 2;
    opd_tensor *fake = opd_tensor_new_on(opd_ints_of(&two, 1), OPD_FLOAT32, opd_device_make(OPD_META, -1)), *t;
    t = opd_ones_like_full(fake, OPD_NONE, OPD_NONE, opd_value_str("cpu"), OPD_NONE, OPD_NONE);
    CHECK_INT(opd_tensor_device(t).type, OPD_CPU);
    CHECK_NEAR(opd_item_f64(opd_sum(t)), 2, 0);
    t = opd_new_full_full(fake, opd_ints_of(&two, 1), opd_value_int(3), OPD_NONE, OPD_NONE, opd_value_str("cpu"),
                          OPD_NONE);
    CHECK_NEAR(opd_item_f64(opd_sum(t)), 6, 0);
    CHECK_INT(opd_tensor_device(opd_ones_like(fake)).type, OPD_META);
    CHECK_OK();
}

TEST(shapes_and_dtypes_that_do_not_fit) {
    opd_tensor *x = counted(3, 4, OPD_FLOAT32), *wide = counted(3, 5, OPD_FLOAT32);
    opd_tensor *yes = opd_zeros(OPD_INTS(2, 2), OPD_BOOL), *pairs = opd_zeros(OPD_INTS(2), OPD_COMPLEX64);
    opd_value args[5];
    args[0] = opd_value_tensor(x);
    args[1] = opd_value_tensor(wide);
    refuses("aten::add.Tensor", args, 2, OPD_ERROR_SHAPE,
            "The size of tensor a (4) must match the size of tensor b (5) at non-singleton dimension 1");
    refuses("aten::add_.Tensor", args, 2, OPD_ERROR_SHAPE, "must match the size of tensor b (5)");
    refuses("aten::mm", args, 2, OPD_ERROR_SHAPE, "mat1 and mat2 shapes cannot be multiplied (3x4 and 3x5)");
    CHECK_INT(sum_of(x), 66);
    args[0] = opd_value_tensor(pairs);
    refuses("aten::floor", args, 1, OPD_ERROR_DTYPE, "\"floor_cpu\" not implemented for 'complex64'");
    args[0] = opd_value_tensor(yes);
    refuses("aten::neg", args, 1, OPD_ERROR_DTYPE, "Negation, the `-` operator, on a bool tensor is not supported.");
    args[1] = args[0];
    refuses("aten::mm", args, 2, OPD_ERROR_DTYPE, "not implemented for 'bool'");
    args[0] = opd_value_tensor(ints(2, 1, OPD_INT64));
    args[1] = opd_value_double(0.5);
    refuses("aten::add_.Tensor", args, 2, OPD_ERROR_DTYPE,
            "result type float32 can't be cast to the desired output type int64");
    args[1] = opd_value_tensor(x);                /* out= */
    refuses("aten::nonzero.out", args, 2, OPD_ERROR_DTYPE,
            "Expected out tensor to have scalar type int64 but got scalar type float32");
    args[0] = opd_value_tensor(x);
    args[1] = opd_value_tensor(opd_zeros(OPD_INTS(3, 4), OPD_BOOL));
    args[2] = opd_value_tensor(opd_zeros(OPD_INTS(2), OPD_FLOAT64));
    refuses("aten::masked_select.out", args, 3, OPD_ERROR_DTYPE,
            "out tensor to have scalar type float32 but got scalar type float64");
    args[1] = opd_value_none(); args[2] = opd_value_bool(false); args[3] = opd_value_none();
    args[4] = opd_value_tensor(ints(2, 1, OPD_INT64));
    refuses("aten::mean.out", args, 5, OPD_ERROR_DTYPE,
            "result type float32 can't be cast to the desired output type int64");
}

TEST(words_of_a_generator) {
    opd_generator *g = opd_generator_new(3);
    uint64_t key = 0, at, next;
    at = opd_generator_take(g, 65, &key);
    CHECK(at % 64 == 0 && key == 3);
    next = opd_generator_take(g, 1, NULL);
    CHECK_INT(next - at, 128);
    opd_generator_give_back(g, at, 65);           /* numbers were drawn since then */
    CHECK_INT(opd_generator_take(g, 0, NULL) - next, 64);
    opd_generator_give_back(g, next, 1);
    CHECK_INT(opd_generator_take(g, 1, NULL) - next, 0);
    CHECK_OK();
    CHECK_INT(opd_generator_take(g, -1, &key), 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "-1 words cannot be taken");
    CHECK_INT(opd_generator_take(g, 0, NULL) - next, 64);
    opd_generator_free(g);
}
/* A message that quotes a list of strings shows its elements. */
TEST(lists_of_texts_in_messages) {
    opd_value list[2], v[2];
    list[0] = opd_value_str("one");
    list[1] = opd_value_str("two\n");
    v[0] = opd_value_tensor(opd_ones(OPD_INTS(2), OPD_FLOAT32));
    v[1].tag = OPD_TAG_LIST;
    v[1].n = 2;
    v[1].u.list = list;
    CHECK(!opd_call_op(opd_find("aten::mul.Scalar"), v, 2));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "[\"one\", \"two\\n\"]");
}

/* Messages name dtypes as C does, and say which bound is broken. */
TEST(messages_for_programmers_of_c) {
    OPD_SCOPED;
    const int64_t lengths[] = {4, 4}, negative[] = {2, -3}, fine[] = {2, 1};
    opd_tensor *probs = opd_zeros(OPD_INTS(4, 2, 3), OPD_FLOAT32), *targets = opd_ones(OPD_INTS(2, 2), OPD_INT64);
    const opd_ints four = opd_ints_of(lengths, 2);
    CHECK(!OPD_CALL(opd_find("aten::ctc_loss.IntList"), probs, targets, four, opd_ints_of(negative, 2), 0, 1, false));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Expected target_lengths to have value at least 0, but got value -3");
    CHECK(!OPD_CALL(opd_find("aten::ctc_loss.IntList"), probs, targets, opd_ints_of(negative, 2), opd_ints_of(fine, 2), 0, 1,
                    false));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Expected input_lengths to have value at least 0, but got value -3");
    CHECK(!opd_nll_loss(opd_zeros(OPD_INTS(2, 3), OPD_FLOAT32), opd_zeros(OPD_INTS(2), OPD_FLOAT32)));
    CHECK_ERROR(OPD_ERROR_DTYPE, "expected scalar type int64 but found float32");
}
CHECK_MAIN()
/* The error for sizes that do not fit names an argument of attention, not a step such as aten::add or aten::bmm. */
TEST(sizes_of_attention) {
    static const struct { int64_t q[4], k[4], v[4], mask[4]; bool gqa; const char *text; } rows[] = {
        {{2, 4, 5, 8}, {2, 4, 6, 8}, {2, 4, 6, 8}, {1, 1, 5, 7}, false, "attn_mask has the sizes [1, 1, 5, 7], but must "
            "broadcast to the scores, whose last sizes are 5 and 6, and whose other sizes are the sizes of query, [2, 4, 5, 8]"},
        {{2, 4, 5, 8}, {2, 4, 6, 8}, {2, 4, 6, 8}, {1, 1, 6, 6}, false, "attn_mask has the sizes [1, 1, 6, 6]"},
        {{2, 4, 5, 8}, {2, 4, 6, 8}, {2, 4, 6, 8}, {1, 3, 5, 6}, false, "attn_mask has the sizes [1, 3, 5, 6]"},
        {{2, 4, 5, 8}, {2, 4, 6, 8}, {2, 4, 6, 8}, {3, 1, 5, 6}, false, "attn_mask has the sizes [3, 1, 5, 6]"},
        {{2, 4, 5, 8}, {2, 2, 6, 8}, {2, 2, 6, 8}, {2, 3, 5, 6}, true, "attn_mask has the sizes [2, 3, 5, 6]"},
        {{2, 4, 5, 8}, {2, 4, 8, 6}, {2, 4, 6, 8}, {0}, false, "query and key must have the same last size, but have the "
            "sizes [2, 4, 5, 8] and [2, 4, 8, 6]"},
        {{2, 4, 5, 8}, {2, 4, 6, 8}, {2, 4, 5, 8}, {0}, false, "key and value must have the same size at dim -2"},
        {{2, 4, 5, 8}, {2, 2, 6, 8}, {2, 2, 6, 8}, {0}, false, "of key do not broadcast at dim -3; if several heads of "
            "query share a head of key and value, set enable_gqa"},
        {{2, 4, 5, 8}, {2, 4, 6, 8}, {2, 2, 6, 8}, {0}, false, "of value do not broadcast at dim -3; if several heads"},
        {{2, 4, 5, 8}, {3, 4, 6, 8}, {3, 4, 6, 8}, {0}, false, "of key do not broadcast at dim -4"},
        {{2, 4, 5, 8}, {2, 3, 6, 8}, {2, 3, 6, 8}, {0}, true, "must divide the number of heads in query"},
        {{2, 4, 5, 8}, {2, 4, 6, 8}, {2, 4, 6, 8}, {1, 1, 5, 1}, false, NULL},
        {{2, 4, 5, 8}, {2, 1, 6, 8}, {1, 1, 6, 8}, {1, 4, 1, 6}, false, NULL},
        {{2, 4, 5, 8}, {2, 2, 6, 8}, {2, 2, 6, 8}, {2, 4, 5, 6}, true, NULL},
        {{1, 4, 1, 8}, {2, 4, 6, 8}, {2, 4, 6, 8}, {2, 1, 5, 6}, false, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) OPD_SCOPE {
        opd_tensor *q = opd_ones(opd_ints_of(rows[i].q, 4), OPD_FLOAT32);
        opd_tensor *k = opd_ones(opd_ints_of(rows[i].k, 4), OPD_FLOAT32);
        opd_tensor *v = opd_ones(opd_ints_of(rows[i].v, 4), OPD_FLOAT32);
        opd_tensor *mask = rows[i].mask[0] ? opd_ones(opd_ints_of(rows[i].mask, 4), OPD_FLOAT32) : NULL;
        opd_tensor *y = opd_scaled_dot_product_attention_full(q, k, v, mask, 0, false, OPD_NONE, rows[i].gqa);
        CHECK((y != NULL) == (rows[i].text == NULL));
        if (rows[i].text) { CHECK_ERROR(OPD_ERROR_SHAPE, rows[i].text); }
    }
}
