/* Errors of programs that ask for something impossible: with transforms, custom functions, modules and their files,
   checkpoints, backward, and their own operators.  If PyTorch refuses the same, the text is PyTorch's. */
#include "../../opdispatch.h"
#include "../check.h"
#include <unistd.h>

#define REFUSED(call, code, text) do { (void)(call); CHECK_ERROR(code, text); } while (0)

static opd_tensor *vec(int64_t n) {
    opd_tensor *t = opd_tensor_new(opd_ints_of(&n, 1), OPD_FLOAT64);
    int64_t i;
    for (i = 0; i < n; i++) { opd_data_f64(t)[i] = 0.5 + (double)i; }
    return t;
}
static opd_tensor *leaf(int64_t n) { return opd_tensor_set_requires_grad(vec(n), true); }
static opd_tensor *complexes(int64_t n) { return opd_to_dtype(vec(n), OPD_COMPLEX128); }
static int warnings;
static char warning[400];
static void warned(void *user, int is_error, const char *text) {
    (void)user; (void)is_error;
    warnings++;
    (void)snprintf(warning, sizeof warning, "%s", text);
}
static int product(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    out[0] = opd_sum(opd_mul(in[0], in[n - 1]));
    return out[0] ? 1 : -1;
}
static int integers(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_to_dtype(in[0], OPD_INT64);
    return out[0] ? 1 : -1;
}
static int turns_complex(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_to_dtype(in[0], OPD_COMPLEX128);
    return out[0] ? 1 : -1;
}
static int as_it_is(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_mul(in[0], in[0]);
    return out[0] ? 1 : -1;
}

//-- transforms --------------------------------------------------------------------------------------------------------

TEST(transforms) {
    opd_tensor *x = vec(3), *pair[2], *out[OPD_TRANSFORM_OUTPUTS], *none = NULL, *deep;
    opd_derivative *derivative = NULL;
    int64_t many[OPD_MAX_DIMS];
    int i;
    for (i = 0; i < OPD_MAX_DIMS; i++) { many[i] = 1; }
    deep = opd_ones(opd_ints_of(many, OPD_MAX_DIMS), OPD_FLOAT64);
    REFUSED(opd_grad(product, NULL, &none, 1, NULL, out, OPD_TRANSFORM_OUTPUTS), OPD_ERROR_ARGUMENT,
            "grad: all inputs with respect to which it differentiates must be tensors, but input 0 is NULL");
    REFUSED(opd_vjp(integers, NULL, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS, &derivative), OPD_ERROR_ARGUMENT,
            "vjp: Expected f to return only floating point or complex Tensors, got int64 as output 0");
    pair[0] = x; pair[1] = NULL;
    REFUSED(opd_linearize(product, NULL, pair, 2, NULL, out, OPD_TRANSFORM_OUTPUTS, &derivative), OPD_ERROR_ARGUMENT,
            "linearize: Expected primals to only contain Tensors, got NULL at 1");
    REFUSED(opd_derivative_call(NULL, &x, 1, 0, out, OPD_TRANSFORM_OUTPUTS), OPD_ERROR_ARGUMENT, "opd_derivative_call: an argument is NULL");
    x = complexes(2);
    REFUSED(opd_jacfwd(as_it_is, NULL, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS), OPD_ERROR_ARGUMENT,
            "jacfwd: Expected all inputs to be real but received complex tensor at flattened input idx: 0");
    REFUSED(opd_jacrev(as_it_is, NULL, &none, 1, NULL, out, OPD_TRANSFORM_OUTPUTS), OPD_ERROR_ARGUMENT,
            "jacrev: Expected all inputs to be real but received NULL at flattened input idx: 0");
    x = vec(2);
    REFUSED(opd_jacrev(turns_complex, NULL, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS), OPD_ERROR_ARGUMENT,
            "jacrev: Expected all outputs to be real but received complex tensor at flattened output idx: 0");
    REFUSED(opd_jacrev(as_it_is, NULL, &deep, 1, NULL, out, OPD_TRANSFORM_OUTPUTS), OPD_ERROR_SHAPE, "a Jacobian would have more than");
    many[0] = 2;
    x = opd_ones(opd_ints_of(many, OPD_MAX_DIMS / 2 + 1), OPD_FLOAT64);
    REFUSED(opd_jacfwd(as_it_is, NULL, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS), OPD_ERROR_SHAPE, "a Jacobian would have more than");
    CHECK_INT(opd_transform_depth(), 0);
}

/* A custom function whose own vmap says what is not so: torch's texts are those of autograd_function.py. */
static int fn_forward(opd_context *ctx) { return opd_context_return(ctx, opd_mul_Scalar(opd_context_tensor(ctx, 0), OPD_V(2))); }
static int fn_setup(opd_context *ctx) { (void)ctx; return 0; }
static int fn_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_mul_Scalar(opd_bw_grad(bw, 0), OPD_V(2))); }
static int fn_says_nothing(void *user, const opd_value *in, const int *dims, int n, opd_value *out, int *out_dims) {
    (void)user; (void)in; (void)dims; (void)n; (void)out; (void)out_dims;
    return -1;
}
static int fn_wrong_dim(void *user, const opd_value *in, const int *dims, int n, opd_value *out, int *out_dims) {
    (void)user; (void)dims; (void)n;
    out[0] = in[0];
    out_dims[0] = 1;
    return 1;
}
static int fn_apply(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const opd_value x = opd_value_tensor(in[0]);
    (void)n;
    out[0] = opd_autograd_call((const opd_autograd_function *)user, &x, 1);
    return out[0] ? 1 : -1;
}
static int fn_saves_null(opd_context *ctx) { return opd_context_save_for_forward(ctx, NULL, 2) ? -1 : 0; }
static int fn_number(opd_context *ctx) { return opd_context_return_value(ctx, opd_value_int(5)); }
/* writes to a view that is its second input */
static int fn_second(opd_context *ctx) {
    opd_tensor *t = opd_context_tensor(ctx, 1);
    opd_value args[2];
    args[0] = opd_value_tensor(t); args[1] = opd_value_tensor(opd_context_tensor(ctx, 0));
    if (!opd_call_op(opd_find("aten::mul_.Tensor"), args, 2) || opd_context_mark_dirty(ctx, t)) { return -1; }
    return opd_context_return(ctx, t);
}
TEST(custom_functions) {
    opd_tensor *x = vec(3), *out[OPD_TRANSFORM_OUTPUTS];
    opd_autograd_function f;
    opd_value two[2];
    memset(&f, 0, sizeof f);
    f.name = "Twice"; f.forward = fn_forward; f.setup_context = fn_setup; f.backward = fn_backward;
    f.vmap = fn_says_nothing;
    REFUSED(opd_vmap(fn_apply, &f, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS), OPD_ERROR_AUTOGRAD, "the vmap of TwiceBackward failed without setting an error");
    f.vmap = fn_wrong_dim;
    REFUSED(opd_vmap(fn_apply, &f, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS), OPD_ERROR_AUTOGRAD,
            "the vmap of TwiceBackward returned an output that does not match its out_dim: output 0 has no examples at dim 1");
    f.vmap = NULL;
    f.setup_context = NULL;
    f.forward = fn_saves_null;
    two[0] = two[1] = opd_value_tensor(leaf(3));
    REFUSED(opd_autograd_call(&f, two, 1), OPD_ERROR_ARGUMENT, "opd_context_save_for_forward: the array is NULL (TwiceBackward)");
    f.forward = fn_number;
    REFUSED(opd_autograd_call(&f, two, 1), OPD_ERROR_ARGUMENT, "the first output of Twice is not a tensor");
    f.forward = fn_second;
    two[1] = opd_value_tensor(opd_select(opd_mul(opd_ones(OPD_INTS(2, 3), OPD_FLOAT64), leaf(3)), 0, 0));
    REFUSED(opd_autograd_call(&f, two, 2), OPD_ERROR_AUTOGRAD, "A view that a Function modifies inplace must be its first input");
}

//-- modules, optimizers and their files -------------------------------------------------------------------------------

static opd_module *module_of(int count, int64_t size) {
    opd_module *module = opd_module_new();
    char name[8];
    int i;
    for (i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "w%d", i);
        CHECK_INT(opd_module_add(module, name, leaf(size), OPD_MODULE_PARAMETER), 0);
    }
    return module;
}
TEST(trainings_and_their_files) {
    char path[64];
    const char *names[2] = {"note", "epoch"};
    const int64_t list[2] = {1, 2};
    opd_value values[2];
    (void)snprintf(path, sizeof path, "/tmp/opd_mistakes_%d.safetensors", (int)getpid());
    OPD_SCOPE {
        opd_module *twelve = module_of(12, 2), *longer = module_of(12, 3), *empty = opd_module_new();
        opd_optimizer *sgd, *two;
        opd_tensor_file *file;
        opd_value text = opd_value_none();
        double number = 0;
        opd_tensor *second;
        opd_sgd_options options;
        memset(&options, 0, sizeof options);
        options.lr = 0.1; options.momentum = 0.9;
        sgd = opd_module_sgd(twelve, NULL, &options);
        two = opd_module_sgd(longer, NULL, &options);
        CHECK_INT(opd_backward(opd_sum(opd_mul(opd_module_get(twelve, "w0"), opd_module_get(twelve, "w1")))), 0);
        CHECK_INT(opd_optimizer_step(sgd), 0);
        values[0] = opd_value_str("a note"); values[1] = opd_value_int(7);
        CHECK_INT(opd_training_save(path, twelve, sgd, names, values, 2), 0);
        file = opd_tensor_file_open(path);
        CHECK(file && opd_tensor_file_number(file, "epoch", &number) == 0 && number == 7);
        CHECK(opd_tensor_file_value(file, "note", &text) == 0 || opd_tensor_file_metadata(file, "note") != NULL);
        opd_error_clear();
        REFUSED(opd_training_load(file, empty, NULL), OPD_ERROR_NOT_FOUND, "unexpected there:");
        REFUSED(opd_module_load(longer, file, NULL), OPD_ERROR_NOT_FOUND, " and 4 more");     /* of 12 the first 8 */
        REFUSED(opd_optimizer_load(two, file, "optimizer/"), OPD_ERROR_SHAPE,
                "'optimizer/state/0/momentum_buffer' in the file has other sizes than parameter 0");
        REFUSED(opd_optimizer_load(NULL, file, NULL), OPD_ERROR_ARGUMENT, "opd_optimizer_load: the optimizer is NULL");
        REFUSED(opd_optimizer_load(sgd, NULL, NULL), OPD_ERROR_ARGUMENT, "opd_optimizer_load: the file is NULL");
        opd_tensor_file_close(file);
        values[0] = opd_value_ints(list, 2);
        REFUSED(opd_training_save(path, NULL, NULL, names, values, 1), OPD_ERROR_ARGUMENT,
                "opd_training_save: 'note' is not a tensor, a number or a string, so it cannot be saved");
        REFUSED(opd_training_save(path, NULL, NULL, NULL, values, 1), OPD_ERROR_ARGUMENT,
                "opd_training_save: the pointer to the names or to the values is NULL");
        opd_optimizer_free(sgd);
        opd_optimizer_free(two);
        /* one group more in the file than in the optimizer, whose group is of the same size */
        sgd = opd_module_sgd(twelve, "w0", &options);
        second = opd_module_get(twelve, "w1");
        CHECK_INT(opd_optimizer_add_group(sgd, &second, 1), 1);
        CHECK_INT(opd_training_save(path, NULL, sgd, NULL, NULL, 0), 0);
        opd_optimizer_free(sgd);
        sgd = opd_module_sgd(twelve, "w0", &options);
        file = opd_tensor_file_open(path);
        REFUSED(opd_optimizer_load(sgd, file, "optimizer/"), OPD_ERROR_SHAPE,
                "the file has a different number of parameter groups");
        opd_tensor_file_close(file);
        opd_optimizer_free(sgd);
        opd_module_free(twelve); opd_module_free(longer); opd_module_free(empty);
    }
    (void)remove(path);
}
TEST(numbers_far_from_where_they_may_be) {
    opd_tensor *t = vec(50);
    int64_t i;
    warnings = 0;
    opd_log_set(warned, NULL);
    CHECK(opd_init_trunc_normal_(t, 9, 1, -2, 2) == t);
    opd_log_set(NULL, NULL);
    CHECK_INT(warnings, 1);
    CHECK(strstr(warning, "mean is more than 2 std from [a, b]") != NULL);
    for (i = 0; i < 50; i++) { CHECK(opd_data_f64(t)[i] >= -2 && opd_data_f64(t)[i] <= 2); }
}

//-- backward and hooks ------------------------------------------------------------------------------------------------

static int hook(opd_tensor *const *grads, int count, void *user) { (void)grads; (void)count; (void)user; return 0; }
static int not_called(opd_backward_call *bw) { (void)bw; return -1; }
TEST(backward_and_what_is_recorded) {
    static opd_tensor *most[60001];
    opd_tensor *x = leaf(3), *y = opd_mul(x, x), *both[2], *none = NULL;
    opd_backward_options options;
    int i;
    memset(&options, 0, sizeof options);
    options.inputs = &x;
    REFUSED(opd_backward_with(&y, 1, &options), OPD_ERROR_AUTOGRAD, "'inputs' argument to backward cannot be empty.");
    REFUSED(opd_multi_hook_add(NULL, 1, OPD_MULTI_ALL, hook, NULL, NULL), OPD_ERROR_ARGUMENT,
            "opd_multi_hook_add: the tensors and the function must not be NULL");
    both[0] = both[1] = x;
    none = vec(3);
    REFUSED(opd_autograd_record(NULL, not_called, &x, 1, NULL, 0, NULL, 0, &none, 1), OPD_ERROR_ARGUMENT,
            "a name, a backward function and a result are needed");
    REFUSED(opd_autograd_record("F", not_called, &x, 1, NULL, 1, NULL, 0, &none, 1), OPD_ERROR_ARGUMENT, "an array is NULL");
    REFUSED(opd_autograd_record("F", not_called, &x, 1, both, 2, NULL, 0, &none, 1), OPD_ERROR_ARGUMENT,
            "saved tensors 0 and 1 are the same tensor");
    for (i = 0; i <= 60000; i++) { most[i] = x; }
    REFUSED(opd_autograd_record("F", not_called, most, 60001, NULL, 0, NULL, 0, &none, 1), OPD_ERROR_AUTOGRAD,
            "F: a node of the autograd graph cannot have more than 60000 input or output tensors");
    REFUSED(opd_autograd_record("F", not_called, &x, 1, NULL, 0, NULL, 0, &y, 1), OPD_ERROR_AUTOGRAD,
            "result 0 already requires grad; call the operator below the Autograd keys");
    CHECK_INT(opd_autograd_record("F", opd_not_differentiable, &x, 1, NULL, 0, NULL, 0, &none, 1), 0);
    REFUSED(opd_backward(opd_sum(none)), OPD_ERROR_AUTOGRAD, "not differentiable");
}
//-- custom operators --------------------------------------------------------------------------------------------------

#define NS "mistakes"
static opd_library *lib_open(opd_library_kind kind, const char *key) { return opd_library_open(kind, NS, key, "mistakes.c", 1); }
static opd_tensor *call(const char *name, const opd_value *args, int n) {
    char whole[80];
    (void)snprintf(whole, sizeof whole, NS "::%s", name);
    return opd_call_op(opd_find(whole), args, n);
}
static opd_tensor *call1(const char *name, opd_tensor *x) {
    const opd_value arg = opd_value_tensor(x);
    return call(name, &arg, 1);
}
static int call_it(void *user, opd_tensor *const *in, int n, opd_tensor **out) {      /* under vmap */
    (void)n;
    out[0] = call1((const char *)user, in[0]);
    return out[0] ? 1 : -1;
}
static int call_views(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_value args[2], rets[2];
    (void)user; (void)n;
    args[0] = args[1] = opd_value_tensor(in[0]);
    if (opd_call_all(opd_find(NS "::views"), rets, args, 2)) { return -1; }
    out[0] = rets[0].u.t;
    return 1;
}
static int k_first(opd_call *c) { return opd_return_tensor(c, opd_arg_tensor(c, 0)); }
static int k_double(opd_call *c) { return opd_return_tensor(c, opd_add(opd_arg_tensor(c, 0), opd_arg_tensor(c, 0))); }
static int k_list_at_null(opd_call *c) { return opd_return_tensors(c, NULL, 2); }
static int k_halves(opd_call *c) {                        /* two tensors */
    opd_tensor *two[2];
    two[0] = two[1] = opd_clone(opd_arg_tensor(c, 0));
    return opd_return_tensors(c, two, 2);
}
static int k_both_views(opd_call *c) {
    opd_tensor *x = opd_arg_tensor(c, 0);
    return opd_return_tensor(c, opd_clone(x)) || opd_return_tensor(c, opd_select(x, 0, 0));
}
static int k_if_positive(opd_call *c) {
    opd_tensor *x = opd_arg_tensor(c, 0);
    return opd_item_f64(x) > 1 ? opd_return_tensor(c, opd_clone(x)) : opd_return_value(c, opd_value_none());
}
static int k_decomposes(opd_call *c) { return opd_batch_decompose(c); }
static int k_writes_first(opd_call *c) {
    opd_value one = opd_value_tensor(opd_arg_tensor(c, 0));
    return opd_call_op(opd_find("aten::zero_"), &one, 1) ? opd_return_tensor(c, one.u.t) : -1;
}
static int k_writes_second(opd_call *c) {
    opd_value one = opd_value_tensor(opd_arg_tensor(c, 1));
    return opd_call_op(opd_find("aten::zero_"), &one, 1) ? opd_return_tensor(c, one.u.t) : -1;
}
static int k_writes_both(opd_call *c) { return opd_return_tensor(c, opd_arg_tensor(c, 0)) || opd_return_tensor(c, opd_arg_tensor(c, 1)); }
static int b_pass(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_bw_grad(bw, 0)); }
static int b_twice(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_mul_Scalar(opd_bw_grad(bw, 0), OPD_V(2))); }
static int b_lists(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_add(opd_bw_grad(bw, 0), opd_bw_grad(bw, 1))); }
static int s_nothing(opd_context *ctx) { (void)ctx; return 0; }
static opd_op_desc card(const char *schema, opd_kernel kernel, opd_backward_fn backward, const char *save) {
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = schema; d.any = kernel; d.backward = backward; d.save = save;
    return d;
}
static opd_library *lib_all(void) {
    opd_library *lib = lib_open(OPD_DEF, NULL);
    opd_op_desc d;
    CHECK_INT((d = card("list(Tensor x) -> Tensor[]", k_list_at_null, NULL, NULL), opd_define(lib, &d)), 0);
    d = card("halves(Tensor x) -> Tensor[]", k_halves, NULL, NULL);
    d.out = "halves.out(Tensor x, *, Tensor(a!)[] out) -> ()";
    CHECK_INT(opd_define(lib, &d), 0);
    d = card("set_up(Tensor x) -> Tensor[]", k_halves, b_lists, NULL);
    d.setup_context = s_nothing;
    CHECK_INT(opd_define(lib, &d), 0);
    CHECK_INT((d = card("maybe(Tensor x) -> Tensor", k_if_positive, NULL, NULL), opd_define(lib, &d)), 0);
    CHECK_INT((d = card("views(Tensor(a) x, Tensor(b) y) -> (Tensor(a), Tensor(b))", k_writes_both, NULL, NULL), opd_define(lib, &d)), 0);
    CHECK_INT((d = card("decomposes(Tensor x) -> Tensor", k_decomposes, NULL, NULL), opd_define(lib, &d)), 0);
    CHECK_INT((d = card("w1(Tensor(a!) x, Tensor[] more) -> Tensor(a!)", k_writes_first, b_pass, "more"), opd_define(lib, &d)), 0);
    CHECK_INT((d = card("w2(Tensor y, Tensor(a!) x, Tensor[] more) -> Tensor(a!)", k_writes_second, b_pass, "more"),
               opd_define(lib, &d)), 0);
    CHECK_INT((d = card("w3(Tensor y, Tensor(a!) x) -> Tensor(a!)", k_writes_second, b_pass, "y"), opd_define(lib, &d)), 0);
    CHECK_INT((d = card("w4(Tensor(a!) x, Tensor(b!) y) -> (Tensor(a!), Tensor(b!))", k_writes_both, b_pass, NULL),
               opd_define(lib, &d)), 0);
    d = card("double(Tensor x) -> Tensor", k_double, b_twice, NULL);
    d.jvp = OPD_JVP_POINTWISE;
    CHECK_INT(opd_define(lib, &d), 0);
    CHECK_INT(opd_def(lib, "pair(Tensor x) -> (Tensor, Tensor)"), 0);
    CHECK_INT(opd_impl_key(lib, "pair", "CPU", k_both_views, NULL, NULL), 0);
    CHECK_INT(opd_impl_key(lib, "pair", "ADInplaceOrView", opd_inplace_or_view_not_implemented, NULL, NULL), 0);
    return lib;
}
TEST(what_cannot_be_defined) {
    static char text[6000];
    opd_library *lib = lib_open(OPD_DEF, NULL);
    opd_function f;
    opd_op_desc d;
    size_t n;
    int i;
    d = card("f(Tensor x, Tensor y) -> Tensor", k_first, b_pass, "x(z)");
    REFUSED(opd_define(lib, &d), OPD_ERROR_REGISTER, "`save` has '(z)', but the schema has no such argument");
    d = card("f(Tensor x) -> Tensor", k_first, b_pass, NULL);
    d.constant = "z";
    REFUSED(opd_define(lib, &d), OPD_ERROR_REGISTER, "`constant` names 'z', which is neither an argument nor a result of the schema");
    memset(&f, 0, sizeof f);
    f.kernel = k_first; f.signature = "TZ";
    REFUSED(opd_def_function(lib, "f", &f), OPD_ERROR_REGISTER, "INVALID TYPE in argument 1: operators cannot have this type");
    (void)snprintf(text, sizeof text, "f(Tensor x) -> (Tensor");
    for (i = 0; i < 40; i++) { n = strlen(text); (void)snprintf(text + n, sizeof text - n, ", Tensor"); }
    (void)strcat(text, ")");
    REFUSED(opd_def(lib, text), OPD_ERROR_REGISTER, "an operator has at most");
    memset(text, 'n', 300);
    text[300] = 0;
    REFUSED(opd_impl(lib, text, k_first), OPD_ERROR_REGISTER, "is too long");
    (void)snprintf(text, sizeof text, "f(Tensor x");
    for (i = 0; i < 40; i++) { n = strlen(text); (void)snprintf(text + n, sizeof text - n, ", Tensor an_argument_with_a_name_%080d", i); }
    (void)strcat(text, ") -> Tensor");
    d = card(text, k_first, NULL, NULL);
    d.out = "f.out";
    REFUSED(opd_define(lib, &d), OPD_ERROR_REGISTER, "is too long");
    REFUSED(opd_plugin_load(NULL), OPD_ERROR_ARGUMENT, "opd_plugin_load: the path is NULL");
    opd_library_close(lib);
}
TEST(what_operators_of_ones_own_are_told) {
    opd_library *lib = lib_all();
    opd_tensor *x = vec(2), *y, *list[3], *out[OPD_TRANSFORM_OUTPUTS];
    opd_value args[3];
    REFUSED(call1("list", x), OPD_ERROR_KERNEL, "the kernel returns a list of 2 tensors, but the pointer to them is NULL");
    list[0] = vec(2); list[1] = vec(2); list[2] = vec(2);
    args[0] = opd_value_tensor(x);
    args[1] = opd_value_tensors(list, 3);
    REFUSED(opd_call_all(opd_find(NS "::halves.out"), NULL, args, 2), OPD_ERROR_ARGUMENT, "expected 2 out tensors, but got 3");
    args[1] = opd_value_tensors(list, 2);
    CHECK_INT(opd_call_all(opd_find(NS "::halves.out"), NULL, args, 2), 0);
    CHECK_NEAR(opd_data_f64(list[1])[1], 1.5, 0);
    REFUSED(call1("pair", x), OPD_ERROR_AUTOGRAD, "only the first result may be a view, and only of one argument");
    REFUSED(call1("decomposes", x), OPD_ERROR_KERNEL, "opd_batch_decompose: no batching rule is running");
    x = vec(3);                                           /* 0.5: undefined, the others not */
    opd_log_set(warned, NULL);                            /* there is no rule: a loop */
    REFUSED(opd_vmap(call_it, (void *)(uintptr_t)"maybe", &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS), OPD_ERROR_ARGUMENT,
            "slow fallback received a mix of undefined and defined tensors as the result of an operation");
    opd_log_set(NULL, NULL);
    REFUSED(opd_vmap(call_views, NULL, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS), OPD_ERROR_ARGUMENT,
            "Batching rule not implemented for mistakes::views");
    /* writes of what the tape needs as it was */
    y = opd_mul(leaf(2), vec(2));
    list[0] = y;
    args[0] = opd_value_tensor(y); args[1] = opd_value_tensors(list, 1);
    REFUSED(call("w1", args, 2), OPD_ERROR_AUTOGRAD, "writes a tensor that its list 'more' also contains, but autograd needs the old values of the list");
    args[0] = opd_value_tensor(leaf(2)); args[1] = opd_value_tensor(y); args[2] = opd_value_tensors(list, 1);
    REFUSED(call("w2", args, 3), OPD_ERROR_AUTOGRAD, "writes a tensor that its list 'more' also contains, but autograd needs the old values of the list");
    args[0] = opd_value_tensor(leaf(2)); args[1] = opd_value_tensor(opd_detach(args[0].u.t));
    REFUSED(call("w3", args, 2), OPD_ERROR_AUTOGRAD, "writes into the memory of its argument 'y', a leaf that requires grad");
    args[0] = opd_value_tensor(opd_select(opd_mul(leaf(2), vec(2)), 0, 0)); args[1] = opd_value_tensor(y);
    REFUSED(call("w4", args, 2), OPD_ERROR_AUTOGRAD, "Functions which modify views in-place must return a single tensor");
    opd_library_close(lib);
}
TEST(what_operators_of_ones_own_are_told_in_forward_mode) {
    opd_library *lib = lib_all();
    const double one = 1;
    opd_tensor *y, *dual, *tangent = NULL, *list[1];
    opd_value args[3];
    OPD_DUAL_LEVEL {
        dual = opd_dual_new(vec(2), opd_ones(OPD_INTS(2), OPD_FLOAT64));
        CHECK_OR_RETURN(dual != NULL);
        args[0] = opd_value_tensor(dual);
        REFUSED(opd_call_all(opd_find(NS "::set_up"), NULL, args, 1), OPD_ERROR_AUTOGRAD,
                "because it has a setup_context and returns lists; give the operator a .jvp");
        list[0] = dual;
        args[1] = opd_value_tensors(list, 1);
        REFUSED(call("w1", args, 2), OPD_ERROR_AUTOGRAD, "because a list of its arguments contains a tensor that it writes");
        args[0] = opd_value_tensor(vec(2)); args[1] = opd_value_tensor(dual);
        REFUSED(call("w4", args, 2), OPD_ERROR_AUTOGRAD, "because it has not been implemented yet");
        y = call1("double", dual);
        CHECK(y && opd_dual_unpack(y, &tangent) != NULL && tangent && opd_data_f64(tangent)[1] > 2 * one - 1e-9);
    }
    opd_library_close(lib);
}

//-- gradcheck ---------------------------------------------------------------------------------------------------------

static int meta_result(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const opd_value meta = opd_value_device(opd_device_make(OPD_META, -1));
    (void)user; (void)n;
    out[0] = opd_to_copy_full(in[0], OPD_NONE, OPD_NONE, meta, OPD_NONE, false, OPD_NONE);
    return out[0] ? 1 : -1;
}
static int k_finishes(opd_call *call) {
    CHECK_INT(opd_finish(), 1);
    return opd_return_tensor(call, opd_clone(opd_arg_tensor(call, 0)));
}
static opd_scope *around;
static opd_tensor *hook_finishes(opd_tensor *grad, void *user) { (void)grad; (void)user; (void)opd_finish(); return NULL; }
static opd_tensor *hook_closes(opd_tensor *grad, void *user) {
    (void)grad; (void)user;
    opd_scope_close(around);
    return NULL;
}
static int function_closes(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_scope_close(around);
    return product(user, in, n, out);
}
TEST(ends_inside_of_what_they_would_end) {
    opd_library *lib = opd_library_open(OPD_DEF, "ends", NULL, __FILE__, __LINE__);
    opd_scope scope = opd_scope_open();
    opd_tensor *x = leaf(2), *y = opd_mul(x, x), *out[1];
    around = &scope;
    CHECK_INT(opd_def(lib, "f(Tensor x) -> Tensor"), 0);
    CHECK_INT(opd_impl(lib, "f", k_finishes), 0);
    REFUSED(OPD_CALL(opd_find("ends::f"), vec(2)), OPD_ERROR_KERNEL, "opd_finish was called inside of a kernel");
    CHECK(opd_tensor_hook_add(y, hook_finishes, NULL, NULL) != 0);
    REFUSED(opd_backward(opd_sum(y)), OPD_ERROR_KERNEL, "opd_finish was called inside of a backward function or a hook");
    y = opd_mul(x, x);
    CHECK(opd_tensor_hook_add(y, hook_closes, NULL, NULL) != 0);
    REFUSED(opd_backward(opd_sum(y)), OPD_ERROR_KERNEL, "closed a scope that was opened outside of it");
    x = vec(2);
    REFUSED(opd_grad(function_closes, NULL, &x, 1, NULL, out, 1), OPD_ERROR_KERNEL, "closed a scope that was opened outside");
    CHECK(opd_data_f64(x)[0] == 0.5 && opd_transform_depth() == 0 && opd_grad_mode_enabled());
    opd_scope_close(&scope);
    opd_library_close(lib);
}
TEST(results_without_a_place) {
    opd_json *json = opd_json_parse("[1]", 3);
    opd_script *script = opd_script_compile("def f(x: int) -> int:\n    return x\n", NULL);
    const opd_value one = opd_value_int(1);
    int64_t at = 0;
    opd_json_place(json, 0, NULL, &at);
    CHECK_INT(at, 1);
    opd_json_place(json, 0, &at, NULL);
    CHECK_INT(at, 1);
    opd_json_free(json);
    CHECK_INT(opd_script_run(script, "f", &one, 1, NULL), 0);
    opd_script_free(script);
    REFUSED(opd_tensor_file_value_at(NULL, 0, NULL), OPD_ERROR_ARGUMENT, "the pointer to the value is NULL");
    REFUSED(opd_tensor_file_value(NULL, "a", NULL), OPD_ERROR_ARGUMENT, "");
    REFUSED(opd_tensor_file_number(NULL, "a", NULL), OPD_ERROR_ARGUMENT, "the pointer to the number is NULL");
    CHECK(opd_batch_value(vec(2), NULL) != NULL && opdi_op_look_up(NULL, "aten::exp", "TT") != NULL);
}

TEST(gradchecks) {
    opd_tensor *x = leaf(2), *many[257];
    int i;
    for (i = 0; i < 257; i++) { many[i] = leaf(1); }
    REFUSED(opd_gradcheck(product, NULL, many, 257, NULL), OPD_ERROR_ARGUMENT, "gradcheck: more than 256 inputs require grad");
    REFUSED(opd_gradcheck(meta_result, NULL, &x, 1, NULL), OPD_ERROR_ARGUMENT, "gradcheck: output 0 has no data that can be read");
}

//-- fakes -------------------------------------------------------------------------------------------------------------

TEST(many_fakes_and_many_kinds_of_operators) {
    static const char *const names[] = {
        "sin", "cos", "tan", "exp", "log", "sqrt", "abs", "neg", "sinh", "cosh", "tanh", "asin", "acos", "atan", "floor", "ceil",
        "round", "trunc", "frac", "erf", "erfc", "sigmoid", "relu", "silu", "gelu", "square", "reciprocal", "rsqrt", "expm1",
        "log1p", "log2", "log10", "sign", "exp2", "softplus", "mish", "hardswish", "hardsigmoid", "selu", "elu"};
    const int n = (int)(sizeof names / sizeof *names);
    opd_tensor *real[200], *first = NULL;
    opd_cost *cost;
    char name[40];
    int i, rows = 0;
    for (i = 0; i < 200; i++) { real[i] = vec(1); }
    OPD_FAKE_MODE {                                       /* a real tensor is always the same fake, however many there are */
        first = opd_fake_tensor(real[0]);
        for (i = 0; i < 200; i++) { CHECK(opd_fake_tensor(real[i]) != NULL); }
        CHECK(opd_fake_tensor(real[0]) == first);
    }
    cost = opd_cost_begin();
    for (i = 0; i < n; i++) {
        (void)snprintf(name, sizeof name, "aten::%s", names[i]);
        CHECK(OPD_CALL(opd_find(name), real[0]) != NULL);
    }
    opd_cost_end(cost);
    while (opd_cost_at(cost, rows).op) { rows++; }
    CHECK(rows >= n && opd_cost_total(cost).calls >= n);
    opd_cost_free(cost);
}

//-- output to stdout and stderr ---------------------------------------------------------------------------------------

/* What write prints to stdout (fd 1) or stderr (fd 2), without the zero at its end. */
static void prints_to(int fd, void (*write)(void *), void *arg, char *text, size_t cap) {
    FILE *file = tmpfile();
    int was;
    size_t n;
    (void)fflush(fd == 1 ? stdout : stderr);
    was = dup(fd);
    CHECK_OR_RETURN(file && was >= 0 && dup2(fileno(file), fd) == fd);
    write(arg);
    (void)fflush(fd == 1 ? stdout : stderr);
    (void)dup2(was, fd);
    (void)close(was);
    rewind(file);
    n = fread(text, 1, cap - 1, file);
    text[n] = 0;
    (void)fclose(file);
}
static void prints(void (*write)(void *), void *arg, char *text, size_t cap) { prints_to(1, write, arg, text, cap); }
static void warn_of(void *arg) { opd_warn("%s", (const char *)arg); }
/* A text of a file cannot change the terminal. */
TEST(the_log_has_no_control_characters) {
    static char warning[] = "a \x1b[31m b\x7f\tc \xc2\x9b 1\n\xc3\xa9";
    char text[200];
    prints_to(2, warn_of, warning, text, sizeof text);
    CHECK_STR(text, "opdispatch: warning: a ?[31m b??c ? 1\n\xc3\xa9\n");
}
static void print_tensor(void *arg) { opd_print((opd_tensor *)arg); }
static void print_profile(void *arg) { opd_profile_print((opd_profile *)arg); }
TEST(printing) {
    static char text[16000], want[16000];
    opd_tensor *many;
    opd_profile *profile;
    size_t n;
    prints(print_tensor, vec(2), text, sizeof text);
    CHECK_STR(text, "tensor([0.5000, 1.5000], dtype=torch.float64)\n");
    many = opd_reshape(vec(900), OPD_INTS(10, 90));        /* longer than what is on the stack for it */
    prints(print_tensor, many, text, sizeof text);
    n = opd_tensor_print(many, want, sizeof want);
    CHECK(n > 4000 && n + 1 == strlen(text) && !strncmp(text, want, n) && text[n] == '\n');
    CHECK_INT(opd_profiler_begin(NULL), 0);
    (void)opd_sin(vec(2));
    profile = opd_profiler_end();
    prints(print_profile, profile, text, sizeof text);
    CHECK(opd_profile_table(profile, want, sizeof want) < sizeof want);
    CHECK_STR(text, want);
    CHECK(strstr(text, "aten::sin") != NULL);
    opd_profile_free(profile);
}
CHECK_MAIN()
