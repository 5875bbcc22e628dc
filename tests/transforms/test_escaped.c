/* Tensors that escape from vmap: used after their vmap has ended, together with a tensor of another vmap at the same
   level, or after the tensor with the examples got other sizes, data or dtype.  Each public function that takes a
   tensor, and every operator with its sample arguments, gets such tensors.  It gives a clear error or the right
   value, and accesses no other memory, which the address sanitizer checks. */
#include "../cases.h"

enum {
    PLAIN,                       /* as it should be */
    ENDED,                       /* its vmap has ended, no other is open */
    ENDED_FEWER, ENDED_MORE,     /* another one is open at its level, of fewer or more examples, */
    ENDED_SAME,                  /* or of as many */
    ENDED_INNER,                 /* its vmap has ended, the one around has not */
    DATA_NUMBER, DATA_DIMS, DATA_SIZES, DATA_COUNT, DATA_DTYPE,     /* what holds the examples was given other data: */
    DATA_SAME, DATA_STRIDES,                                        /* two that fit */
    WRITE_UNSQUEEZE, WRITE_SQUEEZE, WRITE_TURN, WRITE_LESS, WRITE_MORE,   /* or changed in place */
    WRITE_STRIDED,
    NESTED_NUMBER, NESTED_UNSQUEEZE,                                /* the same below two vmaps */
    KINDS
};
typedef struct odd { opd_tensor *tensor, *holder; int levels[2], nlevels, dual; } odd;

/* A tensor of that kind, of examples of x, in *o; false if it cannot be made of it. */
static bool odd_make(odd *o, int kind, opd_tensor *x, bool grad) {
    const bool nested = kind >= NESTED_NUMBER || kind == ENDED_INNER;
    opd_tensor *v, *other = NULL;
    memset(o, 0, sizeof *o);
    v = opd_clone(opd_stack(OPD_TENSORS(x, x, x), 0));
    if (nested) { v = opd_clone(opd_stack(OPD_TENSORS(v, v), 0)); }
    if (grad && v && opd_dtype_is_floating(opd_dtype(v))) { v = opd_tensor_set_requires_grad(v, true); }
    o->holder = v;
    if (nested) {
        o->levels[o->nlevels++] = opd_vmap_begin(2, OPD_RANDOM_DIFFERENT);
        v = opd_vmap_wrap(v, 0, o->levels[0]);
    }
    o->levels[o->nlevels] = opd_vmap_begin(3, OPD_RANDOM_DIFFERENT);
    if (!(o->tensor = opd_vmap_wrap(v, 0, o->levels[o->nlevels]))) { return false; }
    o->nlevels++;
    v = o->holder;
    if (kind >= ENDED && kind <= ENDED_INNER) { (void)opd_vmap_end(o->levels[--o->nlevels]); }
    OPD_NO_GRAD {
        switch (kind) {
        case ENDED_FEWER: o->levels[o->nlevels++] = opd_vmap_begin(1, OPD_RANDOM_DIFFERENT); break;
        case ENDED_MORE: o->levels[o->nlevels++] = opd_vmap_begin(1000, OPD_RANDOM_DIFFERENT); break;
        case ENDED_SAME: o->levels[o->nlevels++] = opd_vmap_begin(3, OPD_RANDOM_DIFFERENT); break;
        case DATA_NUMBER: case NESTED_NUMBER: other = opd_select(opd_view(v, OPD_INTS(-1)), 0, 0); break;
        case DATA_DIMS: other = opd_unsqueeze(opd_unsqueeze(v, 0), 0); break;
        case DATA_SIZES: other = opd_cat(OPD_TENSORS(v, v, v), -1); break;
        case DATA_COUNT: other = opd_narrow(v, 0, 0, 1); break;
        case DATA_DTYPE: other = opd_to_dtype(v, opd_dtype(v) == OPD_FLOAT64 ? OPD_FLOAT32 : OPD_FLOAT64); break;
        case DATA_SAME: other = opd_clone(v); break;
        case DATA_STRIDES: other = opd_transpose(opd_contiguous(opd_transpose(v, 0, -1)), 0, -1); break;
        case WRITE_UNSQUEEZE: case NESTED_UNSQUEEZE: (void)opd_unsqueeze_(v, 0); break;
        case WRITE_SQUEEZE: (void)opd_squeeze_(v); break;
        case WRITE_TURN: (void)opd_transpose_(v, 0, -1); break;
        case WRITE_LESS: (void)opd_resize_(v, OPD_INTS(1)); break;
        case WRITE_MORE: (void)opd_resize_(v, OPD_INTS(3, 50)); break;
        case WRITE_STRIDED: (void)opd_as_strided_(v, OPD_INTS(3), OPD_INTS(0)); break;
        default: break;
        }
    }
    if (other) { (void)opd_tensor_set_data(v, other); }
    if (opd_ok()) { return true; }
    opd_error_clear();
    return false;
}
static void odd_end(odd *o) {
    opd_error_clear();
    while (o->nlevels) { (void)opd_vmap_end(o->levels[--o->nlevels]); }
    opd_error_clear();
}
static void done(int rc) { (void)say((rc < 0) == !opd_ok(), "return code and error differ"); }
static void done_with(const void *result) { (void)say((result == NULL) == !opd_ok(), "result and error differ"); }

//-- the public functions ----------------------------------------------------------------------------------------------

static int f_square(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *other = user ? (opd_tensor *)user : in[0];
    (void)n;
    out[0] = opd_sum(opd_mul(in[0], other));
    return out[0] ? 1 : -1;
}
static int f_checkpoint(opd_tensor *const *in, int nin, opd_tensor **out, int nout, void *user) {
    (void)nin; (void)nout; (void)user;
    out[0] = opd_mul(in[0], opd_exp(in[0]));
    return out[0] ? 0 : -1;
}
static opd_tensor *plain(void) { return opd_ones(OPD_INTS(2, 3), OPD_FLOAT32); }
static opd_tensor *outside;      /* a leaf that was made before the vmaps began */
static opd_tensor *leaf(void) { return outside; }

static void use_questions(opd_tensor *t) {
    char text[400];
    (void)opd_ndim(t); (void)opd_sizes(t); (void)opd_strides(t); (void)opd_size(t, 0); opd_error_clear();
    (void)opd_numel(t); (void)opd_tensor_offset(t); (void)opd_dtype(t); (void)opd_tensor_device(t); (void)opd_tensor_keys(t);
    (void)opd_is_contiguous(t); (void)opd_tensor_is_conj(t); (void)opd_tensor_is_neg(t); (void)opd_tensor_is_wrapped_number(t);
    (void)opd_tensor_same_storage(t, t); (void)opd_tensor_storage_bytes(t); (void)opd_tensor_version(t);
    (void)opd_tensor_requires_grad(t); (void)opd_tensor_is_leaf(t); (void)opd_tensor_base(t); (void)opd_tensor_grad(t);
    (void)opd_tensor_grad_fn(t); (void)opd_tensor_is_inference(t); (void)opd_tensor_is_batched(t);
    (void)opd_tensor_node(t); (void)opd_tensor_retains_grad(t);
    opd_error_clear();
    CHECK(opd_tensor_print(t, text, sizeof text) > 0);
    CHECK(opd_ok());
}
static void use_data(opd_tensor *t) {
    const int64_t one = 1;
    CHECK(!opd_data(t)); opd_error_clear();
    CHECK(!opd_data_f32(t)); opd_error_clear();
    CHECK(!opd_data_f64(t)); opd_error_clear();
    (void)opd_item_f64(t); CHECK(!opd_ok()); opd_error_clear();
    (void)opd_item_i64(t); CHECK(!opd_ok()); opd_error_clear();
    CHECK(!opd_tensor_data(t)); opd_error_clear();
    CHECK(!opd_tensor_view(t, &one, &one, 1, 0)); opd_error_clear();
    CHECK(opd_tensor_set_data(t, plain()) < 0); opd_error_clear();
    CHECK(opd_tensor_set_data(plain(), t) < 0);
}
static void use_device_data(opd_tensor *t) { CHECK(!opd_device_data(t, OPD_CUDA)); }
static void use_keep(opd_tensor *t) {
    opd_tensor *held = NULL;
    OPD_SCOPE { done_with(opd_scope_return(t)); }
    (void)opd_assign(&held, t);
    opd_release(held);
}
static void use_wrap_key(opd_tensor *t) {
    const opd_key key = OPD_KEY_OF(OPD_F_USER_0);
    opd_tensor *w = opd_tensor_wrap_key(t, key);
    if (w) { (void)opd_exp(w); }
    opd_error_clear();
    (void)opd_tensor_unwrap_key(t, key);
}
static void use_vmap_wrap(opd_tensor *t) {
    const int level = opd_vmap_begin(opd_ndim(t) ? opd_sizes(t)[0] : 1, OPD_RANDOM_ERROR);
    opd_tensor *w = opd_vmap_wrap(t, 0, level);
    done_with(w);
    if (w) { (void)opd_exp(w); }
    opd_error_clear();
    (void)opd_vmap_end(level);
}
static void use_unwrap(opd_tensor *t) { const int level = opd_transform_depth(); if (level) { done_with(opd_vmap_unwrap(t, 0, level)); } }
static void use_requires_grad(opd_tensor *t) { done_with(opd_tensor_set_requires_grad(t, true)); }
static void use_set_grad(opd_tensor *t) {
    opd_tensor *x = leaf();
    done(opd_tensor_set_grad(x, t)); opd_error_clear();
    (void)opd_tensor_set_grad(x, NULL); opd_error_clear();
    done(opd_tensor_set_grad(t, plain())); opd_error_clear();
    (void)opd_tensor_set_grad(t, NULL);
}
static void use_backward(opd_tensor *t) { done(opd_backward(t)); opd_error_clear(); done(opd_backward(opd_sum(t))); }
static void use_gradient(opd_tensor *t) {
    opd_tensor *x = leaf(), *y = opd_exp(x), *g[1] = {NULL};
    opd_backward_options o;
    memset(&o, 0, sizeof o);
    o.allow_unused = true;
    o.grad_outputs = &t;
    done(opd_autograd_grad(&y, 1, &x, 1, &o, g)); opd_error_clear();
    o.grad_outputs = NULL;
    y = opd_sum(opd_exp(x));
    done(opd_autograd_grad(&y, 1, &t, 1, &o, g)); opd_error_clear();
    done(opd_autograd_grad(&t, 1, &x, 1, &o, g));
}
static opd_tensor *gives(opd_tensor *g, void *user) { (void)g; return (opd_tensor *)user; }
static void use_in_hook(opd_tensor *t) {
    opd_tensor *x = leaf(), *y = opd_exp(x);
    CHECK(opd_tensor_hook_add(y, gives, t, NULL) > 0);
    done(opd_backward(opd_sum(y)));
    opd_error_clear();
    (void)opd_tensor_set_grad(x, NULL);
}
static int leaf_hook(opd_tensor *x, void *user) { (void)x; (void)user; return 0; }
static int multi_hook(opd_tensor *const *g, int n, void *user) { (void)g; (void)n; (void)user; return 0; }
static opd_tensor *nothing(opd_tensor *g, void *user) { (void)g; (void)user; return NULL; }
static void use_hooks(opd_tensor *t) {
    (void)opd_tensor_hook_add(t, nothing, NULL, NULL); opd_error_clear();
    (void)opd_tensor_post_accumulate_hook_add(t, leaf_hook, NULL, NULL); opd_error_clear();
    (void)opd_multi_hook_add(&t, 1, OPD_MULTI_ALL, multi_hook, NULL, NULL); opd_error_clear();
    (void)opd_tensor_retain_grad(t); opd_error_clear();
    (void)opd_gradient_edge(t);
}
static void *pack(opd_tensor *t, void *user) { (void)user; return opd_keep(t); }
static opd_tensor *unpack(void *packed, void *user) { (void)user; return (opd_tensor *)packed; }
static void drop(void *packed, void *user) { (void)user; opd_release((opd_tensor *)packed); }
static void use_saved_hooks(opd_tensor *t) {
    opd_saved_hooks h;
    opd_tensor *x = leaf(), *y;
    memset(&h, 0, sizeof h);
    h.pack = pack;
    h.unpack = unpack;
    h.drop = drop;
    CHECK_INT(opd_saved_hooks_begin(&h), 0);
    y = opd_mul(t, opd_sum(x));
    if (y) { y = opd_sum(opd_exp(opd_mul(y, t))); }
    opd_saved_hooks_end();
    if (y) { (void)opd_backward(y); }
    opd_error_clear();
    (void)opd_tensor_set_grad(x, NULL);
}
static void use_checkpoint(opd_tensor *t) {
    opd_tensor *y[1] = {NULL};
    const int rc = opd_checkpoint(f_checkpoint, NULL, NULL, &t, 1, y, 1);
    done(rc);
    if (rc == 0 && opd_tensor_requires_grad(y[0])) { (void)opd_backward(opd_sum(y[0])); }
}
static void use_record(opd_tensor *t) {
    opd_tensor *x = leaf();
    opd_graph *graph;
    opd_tensor *out[1];
    if (!(graph = opd_graph_trace(f_square, t, &x, 1, NULL))) { opd_error_clear(); }
    else { done(opd_graph_run(graph, &x, 1, out, 1)); opd_error_clear(); opd_graph_free(graph); }
    if (!(graph = opd_graph_trace(f_square, NULL, &t, 1, NULL))) { opd_error_clear(); }
    else { opd_graph_free(graph); }
    if ((graph = opd_graph_trace(f_square, NULL, &x, 1, NULL)) != NULL) {
        done(opd_graph_run(graph, &t, 1, out, 1) < 0 ? -1 : 0); opd_error_clear();
        opd_graph_free(graph);
    }
}
static void use_tangents(opd_tensor *t) {
    const int level = opd_dual_level_begin();
    opd_tensor *x = plain(), *tangent, *d;
    d = opd_dual_new(t, opd_ones_like(t)); if (d) { (void)opd_mul(d, d); } opd_error_clear();
    d = opd_dual_new(x, t); if (d) { (void)opd_mul(d, d); } opd_error_clear();
    d = opd_dual_new(t, x); if (d) { (void)opd_mul(d, d); } opd_error_clear();
    d = opd_dual_new(t, t); if (d) { (void)opd_mul(d, d); } opd_error_clear();
    (void)opd_dual_unpack(t, &tangent); opd_error_clear();
    (void)opd_dual_level_end(level);
}
static void use_transforms(opd_tensor *t) {
    opd_tensor *x = plain(), *out[OPD_TRANSFORM_OUTPUTS], *more[OPD_TRANSFORM_OUTPUTS];
    opd_derivative *d = NULL;
    int way;
    for (way = 0; way < 2; way++) {
        void *const user = way ? t : NULL;
        opd_tensor *const in = way ? x : t;
        (void)opd_grad(f_square, user, &in, 1, NULL, out, OPD_TRANSFORM_OUTPUTS); opd_error_clear();
        (void)opd_jacrev(f_square, user, &in, 1, NULL, out, OPD_TRANSFORM_OUTPUTS); opd_error_clear();
        (void)opd_jacfwd(f_square, user, &in, 1, NULL, out, OPD_TRANSFORM_OUTPUTS); opd_error_clear();
        (void)opd_hessian(f_square, user, &in, 1, NULL, out, OPD_TRANSFORM_OUTPUTS); opd_error_clear();
        (void)opd_vmap(f_square, user, &in, 1, NULL, out, OPD_TRANSFORM_OUTPUTS); opd_error_clear();
        (void)opd_jvp(f_square, user, &in, &in, 1, NULL, out, more, OPD_TRANSFORM_OUTPUTS); opd_error_clear();
        if (opd_vjp(f_square, user, &in, 1, NULL, out, OPD_TRANSFORM_OUTPUTS, &d) >= 0) {
            opd_tensor *g = out[0];
            (void)opd_derivative_call(d, &g, 1, 0, more, OPD_TRANSFORM_OUTPUTS); opd_error_clear();
            (void)opd_derivative_call(d, &t, 1, 0, more, OPD_TRANSFORM_OUTPUTS); opd_error_clear();
        }
        opd_error_clear();
        if (opd_linearize(f_square, user, &in, 1, NULL, out, OPD_TRANSFORM_OUTPUTS, &d) >= 0) {
            (void)opd_derivative_call(d, &in, 1, 0, more, OPD_TRANSFORM_OUTPUTS); opd_error_clear();
            (void)opd_derivative_call(d, &t, 1, 0, more, OPD_TRANSFORM_OUTPUTS); opd_error_clear();
        }
        opd_error_clear();
    }
}
static void use_exchange(opd_tensor *t) {
    static const char *const names[] = {"t"};
    const char *path = "/dev/null";
    const opd_value value = opd_value_tensor(t);
    CHECK(!opd_dlpack_export(t, 0)); opd_error_clear();
    CHECK(!opd_dlpack_export_unversioned(t)); opd_error_clear();
    CHECK(opd_npy_save(path, t) < 0); opd_error_clear();
    CHECK(opd_npz_save(path, names, OPD_TENSORS(t)) < 0); opd_error_clear();
    CHECK(opd_safetensors_save(path, names, OPD_TENSORS(t), NULL) < 0); opd_error_clear();
    CHECK(opd_checkpoint_file_save(path, names, &value, 1) < 0); opd_error_clear();
}
static void use_optimizers(opd_tensor *t) {
    opd_optimizer *o = opd_sgd_new(&t, 1, NULL);
    opd_scaler *s;
    if (o) { done(opd_optimizer_step(o)); opd_error_clear(); done(opd_optimizer_set_state(o, 0, "momentum_buffer", t)); opd_error_clear(); }
    opd_error_clear();
    opd_optimizer_free(o);
    o = opd_adam_new(&t, 1, NULL);
    if (o) { done(opd_optimizer_step(o)); opd_error_clear(); }
    opd_error_clear();
    opd_optimizer_free(o);
    (void)opd_clip_grad_norm(&t, 1, 1, 2, false); opd_error_clear();
    (void)opd_clip_grad_value(&t, 1, 1); opd_error_clear();
    if ((s = opd_scaler_new(NULL)) != NULL) { done_with(opd_scaler_scale(s, t)); opd_error_clear(); }
    opd_scaler_free(s);
}
static void use_modules(opd_tensor *t) {
    opd_module *m = opd_module_new();
    done(opd_module_add(m, "t", t, OPD_MODULE_BUFFER)); opd_error_clear();
    (void)opd_module_set(m, "t", plain()); opd_error_clear();
    (void)opd_module_set(m, "t", t); opd_error_clear();
    (void)opd_module_save(m, "/dev/null"); opd_error_clear();
    opd_module_free(m);
    (void)opd_init_normal_(t, 0, 1); opd_error_clear();
    (void)opd_init_eye_(t); opd_error_clear();
    (void)opd_init_orthogonal_(t, 1); opd_error_clear();
    (void)opd_init_dirac_(t, 1); opd_error_clear();
    (void)opd_init_xavier_uniform_(t, 1);
}
static void use_autocast(opd_tensor *t) {
    (void)opd_autocast_cast(OPD_BFLOAT16, t); opd_error_clear();
    (void)opd_autocast_promote(OPD_BFLOAT16, &t, 1);
}
static void use_fakes(opd_tensor *t) {
    (void)opd_fake_tensor(t); opd_error_clear();
    OPD_FAKE_MODE { (void)opd_exp(t); opd_error_clear(); (void)opd_add(plain(), t); opd_error_clear(); }
}
static void use_dot(opd_tensor *t) { char text[100]; (void)opd_graph_dot(&t, 1, NULL, text, sizeof text); }
static int check_fn(void *user, opd_tensor *const *in, int n, opd_tensor **out) { return f_square(user, in, n, out); }
static void use_checks(opd_tensor *t) {
    const opd_value args[2] = {opd_value_tensor(t), opd_value_tensor(t)};
    (void)opd_gradcheck(check_fn, NULL, &t, 1, NULL); opd_error_clear();
    (void)opd_opcheck(opd_find_quiet("aten::mul.Tensor"), args, 2, NULL);
}
static void use_writes(opd_tensor *t) {
    opd_tensor *x = plain();
    (void)opd_copy_(x, t); opd_error_clear();
    (void)opd_copy_(t, x); opd_error_clear();
    (void)opd_add_(t, t); opd_error_clear();
    (void)opd_unsqueeze_(t, 0); opd_error_clear();
    (void)opd_squeeze_(t); opd_error_clear();
    (void)opd_resize_(t, OPD_INTS(1)); opd_error_clear();
    (void)opd_detach_(t);
}
static const struct { const char *name; void (*use)(opd_tensor *t); } uses[] = {
    {"questions", use_questions}, {"data", use_data}, {"device data", use_device_data}, {"keep", use_keep}, {"wrap_key", use_wrap_key},
    {"vmap_wrap", use_vmap_wrap}, {"vmap_unwrap", use_unwrap}, {"requires_grad", use_requires_grad}, {"set_grad", use_set_grad},
    {"backward", use_backward}, {"gradient", use_gradient}, {"in a hook", use_in_hook}, {"hooks", use_hooks},
    {"saved hooks", use_saved_hooks}, {"checkpoint", use_checkpoint}, {"trace", use_record}, {"tangents", use_tangents},
    {"transforms", use_transforms}, {"exchange", use_exchange}, {"optimizers", use_optimizers}, {"modules", use_modules},
    {"autocast", use_autocast}, {"fakes", use_fakes}, {"dot", use_dot}, {"checks", use_checks}, {"writes", use_writes}};

static void use_all(int u) {
    int kind, grad;
    for (kind = PLAIN; kind < KINDS; kind++) {
        for (grad = 0; grad < 2; grad++) {
            OPD_SCOPE {
                odd o;
                opd_tensor *x = opd_ones(OPD_INTS(3, 3), OPD_FLOAT32);
                (void)snprintf(what, sizeof what, "%s, kind %d, grad %d", uses[u].name, kind, grad);
                outside = opd_tensor_set_requires_grad(plain(), true);
                CHECK(opd_ok());
                if (odd_make(&o, kind, x, grad != 0)) {
                    uses[u].use(o.tensor);
                    opd_error_clear();
                    (void)opd_tensor_set_grad(o.tensor, NULL);
                    opd_error_clear();
                    (void)opd_tensor_set_grad(o.holder, NULL);
                    opd_error_clear();
                    (void)opd_tensor_set_grad(outside, NULL);
                }
                odd_end(&o);
            }
        }
    }
}
TEST(every_function_takes_such_a_tensor) {
    size_t u;
    (void)opd_vmap_fallback_set(OPD_VMAP_FALLBACK_SILENT);
    for (u = 0; u < sizeof uses / sizeof *uses; u++) { use_all((int)u); }
    (void)opd_vmap_fallback_set(OPD_VMAP_FALLBACK_WARN);
}

//-- values and errors -------------------------------------------------------------------------------------------------

static opd_tensor *counted(void) {
    static const float numbers[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    return opd_tensor_from(numbers, OPD_INTS(3, 3), OPD_FLOAT32);
}

TEST(a_tensor_of_an_ended_vmap_is_an_error_beside_another_one) {
    opd_tensor *v = counted(), *w;
    int level = opd_vmap_begin(3, OPD_RANDOM_ERROR);
    w = opd_vmap_wrap(v, 0, level);
    CHECK(opd_exp(w) != NULL);
    CHECK_INT(opd_vmap_end(level), 0);
    CHECK(opd_exp(w) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "escaped");
    level = opd_vmap_begin(3, OPD_RANDOM_ERROR);
    CHECK(opd_exp(w) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "a tensor has escaped from inside a function being vmapped: it is batched at "
                "level 1, by a vmap that has ended");
    CHECK(opd_vmap_unwrap(w, 0, level) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "escaped");
    CHECK(opd_select(w, 0, 0) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "escaped");
    CHECK_INT(opd_vmap_end(level), 0);
}
/* The holder's rows are the examples; other memory of the same sizes is read as it is now. */
TEST(a_tensor_stands_for_an_example_of_what_its_holder_holds_now) {
    opd_tensor *v = counted(), *w, *y;
    const int level = opd_vmap_begin(3, OPD_RANDOM_ERROR);
    w = opd_vmap_wrap(v, 0, level);
    CHECK_INT(opd_tensor_set_data(v, opd_t(counted())), 0);
    y = opd_vmap_unwrap(opd_select(w, 0, 1), 0, level);          /* torch: v.data.t()[:, 1] == [3, 4, 5] */
    CHECK(y && opd_numel(y) == 3);
    y = y ? opd_contiguous(y) : NULL;
    CHECK(y && opd_data_f32(y)[0] == 3 && opd_data_f32(y)[1] == 4 && opd_data_f32(y)[2] == 5);
    y = opd_vmap_unwrap(opd_as_strided(w, OPD_INTS(2), OPD_INTS(3)), 0, level);
    y = y ? opd_contiguous(y) : NULL;
    CHECK(y && opd_numel(y) == 6 && opd_data_f32(y)[0] == 0 && opd_data_f32(y)[1] == 3 && opd_data_f32(y)[2] == 1);
    CHECK_INT(opd_tensor_set_data(v, opd_select(opd_select(counted(), 0, 0), 0, 0)), 0);
    CHECK(opd_exp(w) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "no longer fits the tensor that it was made from");
    CHECK(opd_vmap_unwrap(w, 0, level) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "no longer fits");
    CHECK_INT(opd_tensor_set_data(v, opd_narrow(counted(), 0, 0, 1)), 0);
    CHECK(opd_exp(w) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "a batched tensor inside vmap now has 1 examples, not 3");
    CHECK_INT(opd_vmap_end(level), 0);
}

//-- every operator ----------------------------------------------------------------------------------------------------

static bool read_case(op_case *c, const opd_op *op, const char *text) {
    c->op = op;
    c->dtype = OPD_FLOAT32;
    return case_read_next(c, &text);
}
static void operator_odd(void *arg) {
    const opd_op *op = (const opd_op *)arg;
    static op_case c;
    const char *text = cases_of(op);
    int i, k, kind, grad;
    (void)opd_vmap_fallback_set(OPD_VMAP_FALLBACK_SILENT);
    for (kind = ENDED; kind < KINDS; kind++) {
        for (k = 0; k < 2 * opd_schema_nargs(opd_op_schema(op)); k++) {
            i = k / 2;
            grad = k % 2;
            OPD_SCOPE {
                const bool read = read_case(&c, op, text), list = c.args[i].tag == OPD_TAG_TENSORS;
                if (read && (list ? c.args[i].n && c.lists[i].tensors[0] : c.args[i].tag == OPD_TAG_TENSOR)) {
                    odd o;
                    opd_value rets[MOST_RESULTS];
                    (void)snprintf(what, sizeof what, "%s, argument %d, kind %d, grad %d", opd_op_name(op), i, kind, grad);
                    if (odd_make(&o, kind, list ? c.lists[i].tensors[0] : c.args[i].u.t, grad != 0)) {
                        if (list) { c.lists[i].tensors[0] = o.tensor; } else { c.args[i].u.t = o.tensor; }
                        done(opd_call_all((opd_op *)(uintptr_t)op, rets, c.args, c.nargs));
                    }
                    odd_end(&o);
                }
                opd_error_clear();
            }
        }
    }
    (void)opd_vmap_fallback_set(OPD_VMAP_FALLBACK_WARN);
    CHECK(opd_ok());
}
static void add_operators(void) { add_builtin_operators(operator_odd, has_cases); }
CHECK_MAIN_ADD(add_operators)
