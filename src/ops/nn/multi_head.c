#include "../ops.h"

//== _native_multi_head_attention, _transformer_encoder_layer_fwd ======================================================

/* Returns the scores [B, H, T, S], with -inf where the mask is true.  The mask's sizes depend on `type`, the
   argument mask_type: [T, S] for 0, [B, S] for 1, the sizes of the scores for 2.  On failure, returns NULL and sets
   an error. */
static opd_tensor *opdi_mha_mask(opd_tensor *scores, opd_tensor *mask, opd_value type) {
    const int64_t *sizes = opdi_sizes(scores), batch = sizes[0], rows = sizes[2], keys = sizes[3];
    int64_t to[4] = {1, 1, rows, keys};
    if (type.tag == OPD_TAG_NONE || type.u.i < 0 || type.u.i > 2) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "Mask Type should be defined: 0 (src_mask), 1 (src_key_padding_mask) or 2 "
                       "(default_mask)");
        return NULL;
    }
    if (type.u.i == 1) {
        to[0] = batch;
        to[2] = 1;
    }
    if (type.u.i == 2) { memcpy(to, sizes, sizeof to); }
    if (!(type.u.i == 0 ? opdi_has_sizes(mask, to + 2, 2) : type.u.i == 2 ? opdi_has_sizes(mask, to, 4)
          : mask->ndim == 2 && opdi_sizes(mask)[0] == batch && opdi_sizes(mask)[1] == keys)) {
        (void)opd_fail(OPD_ERROR_SHAPE, type.u.i == 0 ? "For mask_type == 0 mask shape should be (L, L)"
                       : type.u.i == 1 ? "For mask_type == 1 mask shape should be (B, L)"
                       : "For mask_type == 2 mask shape should match input shape");
        return NULL;
    }
    if (mask->dtype != OPD_BOOL) { mask = opd_to_dtype(mask, OPD_BOOL); }
    mask = mask ? opdi_reshape_to(mask, to, 4) : NULL;
    return mask ? opd_masked_fill_Scalar(scores, mask, opd_value_double(-INFINITY)) : NULL;
}
/* Returns part i (0: q, 1: k, 2: v) of the projection of x [B, T, D] by weight [3 D, D], as heads [B, H, T, D / H]. */
static opd_tensor *opdi_mha_heads(opd_tensor *x, opd_tensor *weight, opd_tensor *bias, int64_t i, int64_t heads) {
    const int64_t dim = opd_size(x, 2);
    opd_tensor *const part = opd_narrow(weight, 0, i * dim, dim);
    x = opd_linear(x, part, opd_narrow(bias, 0, i * dim, dim));
    if (!x) { return NULL; }
    const int64_t sizes[4] = {x->dims[0], x->dims[1], heads, dim / heads};
    x = opdi_reshape_to(x, sizes, 4);
    return x ? opd_transpose(x, 1, 2) : NULL;
}
static int opdi_native_multi_head_attention_kernel(opd_call *call) {
    opd_tensor *x[3], *weight = opd_arg_tensor(call, 5), *bias = opd_arg_tensor(call, 6),
        *mask = opd_arg_tensor(call, 9);
    static const char *const names[] = {"query", "key", "value"};
    const int64_t width = opd_arg_int(call, 3), heads = opd_arg_int(call, 4);
    for (int i = 0; i < 3; i++) {
        x[i] = opd_arg_tensor(call, i);
        if (x[i]->ndim != 3) {
            return opd_fail(OPD_ERROR_SHAPE, "expected 3-D `%s`, got %d-D tensor", names[i], x[i]->ndim);
        }
    }
    const int64_t dim = opd_size(x[0], 2);
    if (dim != width) {
        return opd_fail(OPD_ERROR_SHAPE, "passed-in embed_dim %lld didn't match last dim of query %lld",
                        (long long)width, (long long)dim);
    }
    if (!opdi_has_sizes(x[1], opdi_sizes(x[0]), 3) || !opdi_has_sizes(x[2], opdi_sizes(x[0]), 3)) {
        return opd_fail(OPD_ERROR_SHAPE, "expected `query`/`key`/`value` shapes to match");
    }
    if (weight->ndim != 2 || opd_size(weight, 0) != 3 * dim) {
        return opd_fail(OPD_ERROR_SHAPE, "expected `qkv_weight` first dim to be 3x embed_dim");
    }
    if (bias->ndim != 1 || opd_size(bias, 0) != 3 * dim) {
        return opd_fail(OPD_ERROR_SHAPE, "expected `qkv_bias` first dim and first dim of query to be equal");
    }
    if (heads < 1 || dim % heads != 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "`embed_dim` must divide evenly by `num_heads`");
    }
    for (int i = 0; i < 3; i++) {
        x[i] = opdi_mha_heads(x[i], weight, bias, i, heads);
        if (!x[i]) { return -1; }
    }
    opd_tensor *scores = opd_mul_Scalar(x[0], opd_value_double(1 / sqrt((double)(dim / heads))));
    scores = opd_matmul(scores, opd_transpose(x[1], -2, -1));
    if (scores && mask) { scores = opdi_mha_mask(scores, mask, opd_arg_value(call, 12)); }
    scores = opd_softmax(scores, -1);
    opd_tensor *out = opd_transpose(opd_matmul(scores, x[2]), 1, 2);
    if (!out) { return -1; }
    const int64_t sizes[3] = {out->dims[0], out->dims[1], dim}, one = 1;
    out = opd_linear(opdi_reshape_to(out, sizes, 3), opd_arg_tensor(call, 7), opd_arg_tensor(call, 8));
    if (!opd_ok() || opd_return_tensor(call, out)) { return -1; }
    if (!opd_arg_bool(call, 10)) { return opd_return_value(call, opd_value_none()); }
    if (opd_arg_bool(call, 11)) { scores = opd_mean_dim(scores, opd_ints_of(&one, 1), false); }
    return opd_return_tensor(call, scores);
}
/* Returns the layer norm of x over its last dim.  `weight` is the index of the weight among the arguments; the next
   argument is the bias. */
static opd_tensor *opdi_encoder_norm(opd_call *call, opd_tensor *x, int weight) {
    const int64_t size = opd_arg_int(call, 1);
    return opd_layer_norm_full(x, opd_ints_of(&size, 1), opd_arg_tensor(call, weight), opd_arg_tensor(call, weight + 1),
                               opd_arg_double(call, 9), true);
}
static int opdi_transformer_encoder_layer_fwd_kernel(opd_call *call) {
    opd_tensor *src = opd_arg_tensor(call, 0), *x = src;
    const bool first = opd_arg_bool(call, 8);
    opd_value args[13], results[2];
    if (first) { x = opdi_encoder_norm(call, x, 10); }
    for (int i = 0; i < 3; i++) { args[i] = opd_value_tensor(x); }
    for (int i = 3; i < 9; i++) { args[i] = opd_arg_value(call, i - 2); }
    args[9] = opd_arg_value(call, 18);
    args[10] = opd_value_bool(false);
    args[11] = opd_value_bool(true);
    args[12] = opd_arg_value(call, 19);
    opd_op *const attention = opd_op_builtin(OPDI_BY_NUMBER(_native_multi_head_attention));
    if (!x || opd_call_all(attention, results, args, 13)) { return -1; }
    src = x = opd_add(results[0].u.t, src);
    if (!first) { src = x = opdi_encoder_norm(call, x, 10); }
    if (first) { x = opdi_encoder_norm(call, x, 12); }
    x = opd_linear(x, opd_arg_tensor(call, 14), opd_arg_tensor(call, 15));
    x = opd_arg_bool(call, 7) ? opd_gelu(x) : opd_relu(x);
    x = opd_add(opd_linear(x, opd_arg_tensor(call, 16), opd_arg_tensor(call, 17)), src);
    return opd_return_tensor(call, first ? x : opdi_encoder_norm(call, x, 12));
}
#define OPDI_MHA_ARGS "Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, Tensor qkv_weight, " \
    "Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, bool need_weights=True, bool " \
    "average_attn_weights=True, int? mask_type=None"
/* opd__native_multi_head_attention: multi-head attention with its projections, and the weights; true in mask hides */
OPDI_OP(_native_multi_head_attention) {
    op->schema = "_native_multi_head_attention(" OPDI_MHA_ARGS ") -> (Tensor, Tensor)";
    op->composite = opdi_native_multi_head_attention_kernel;
    op->autocast = OPD_AUTOCAST_LOWER_CPU;
    op->cases = "[2,3,4], [2,3,4], [2,3,4], 4, 2, [12,4], [12], [4,4], [4]; [2,3,4], [2,3,4], [2,3,4], 4, 2, [12,4], "
        "[12], [4,4], [4], None, True, False";
}
/* opd__transformer_encoder_layer_fwd: attention and feed-forward of a transformer's layer, normalised before or after
   */
OPDI_OP(_transformer_encoder_layer_fwd) {
    op->schema = "_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor "
        "qkv_bias, Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor "
        "norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, Tensor "
        "ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, Tensor? mask=None, int? mask_type=None) -> Tensor";
    op->composite = opdi_transformer_encoder_layer_fwd_kernel;
    op->cases = "[2,3,4], 4, 2, [12,4], [12], [4,4], [4], False, False, 1e-5, [4], [4], [4], [4], [6,4], [6], [4,6], "
        "[4]; [2,3,4], 4, 2, [12,4], [12], [4,4], [4], True, True, 1e-5, [4], [4], [4], [4], [6,4], [6], [4,6], [4]";
}
