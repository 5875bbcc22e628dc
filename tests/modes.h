/* modes.h: further sample arguments of operators that take a mode (a reduction, an order of a norm, an interpolation, an
   optional weight): the modes that the cases of their descriptors leave out.  See cases.h for the form. */
#ifndef OPD_TESTS_MODES_H
#define OPD_TESTS_MODES_H

typedef struct mode_cases { const char *name, *cases; } mode_cases;
static const mode_cases modes[] = {
    /* distances and norms */
    {"_cdist_forward", "[3,4], [2,4], 0.0, None; [3,4], [2,4], 0.5, None; [2,3], [3,3], 1.0, None; [2,3], [3,3], inf, None"},
    {"_cdist_backward", "[3,2], [3,4], [2,4], 1.0, [3,2]+; [3,2], [3,4], [2,4], 3.0, [3,2]+"},
    {"cdist", "[3,4], [2,4], 0.0; [3,4], [2,4], 0.5; [3,4], [2,4], inf; [3,4], [2,4], 3.0; [3,4], [2,4], 2, 2"},
    {"_pdist_forward", "[4,3], 0.0; [4,3], 0.5"},
    {"pdist", "[4,3], 0.0; [4,3], 1.5; [4,3], 3.0; [4,3], inf"},
    {"_pdist_backward", "[6], [4,3], 1.0, [6]+; [6], [4,3], 3.0, [6]+; [6], [4,3], inf, [6]+"},
    {"pairwise_distance", "[2,3], [2,3], 1.0; [2,3], [2,3], 3.0, 0.01, True; [2,3], [2,3], inf; [2,3], [3], 0.5; [2,3], [2,3], 0.0"},
    {"dist", "[2,3], [3], 0; [2,3], [3], 1; [2,3], [3], inf; [2,3], [3], -inf; [2,3], [3], 0.5"},
    {"renorm", "[2,3], 1.0, 0, 1.5; [2,3], 3.0, 1, 0.5; [2,3], inf, 0, 0.5"},
    {"linalg_vector_norm", "[2,3], 0; [2,3], 1, (1); [2,3], inf, (0); [2,3], -inf, (1), True; [2,3], 0.5; [2,3], -1; [2,3], -2, (1); [2,3], 4; [2,3], 2, (1)"},
    {"linalg_norm", "[2,3], 0, (1); [3,3], 1; [2,3], -1; [2,3], inf; [2,3], -inf; [3,3], 2; [3,3], -2; [2,3], inf, (1); [2,3], -inf, (0); [2,3], 0.5, (1)"},
    {"linalg_matrix_norm", "[2,3], 1; [2,3], -1; [2,3], inf; [2,3], -inf; [3,3], 2; [3,3], -2; [2,3,2], 2, (0,2), True"},
    {"norm.Scalar", "[2,3], 0; [2,3], 1; [2,3], inf; [2,3], -inf; [2,3], 0.5; [2,3], -1.5; [2,3], 4"},
    {"norm.ScalarOpt_dim", "[2,3], None, (1); [2,3], 0, (1); [2,3], 1, (0), True; [2,3], inf, (1); [2,3], -inf, (0); [2,3], 0.5, (1)"},
    {"_foreach_norm.Scalar", "{[2,3]u,[4]u}, 0; {[2,3],[4]}, 1; {[2,3],[4]}, inf; {[2,3],[4]}, 3"},
    {"linalg__powsum", "[2,3], 0; [2,3], 1; [2,3], 0.5; [2,3], 4, (0); [2,3], -1"},
    {"linalg_cond", "[3,3]d, 2; [3,3]d, -2; [3,3]d, inf; [3,3]d, -inf; [3,3]d, -1"},
    {"linalg_cond.p_str", "[3,3]d, 'fro'; [3,3]d, 'nuc'"},
    {"_weight_norm", "[2,3], [2,1], 0; [2,3], [1,3], 1"},
    /* losses: 0 none, 1 mean, 2 sum */
    {"binary_cross_entropy", "[2,3]u, [2,3]u, [3]+, 1; [2,3]u, [2,3]u, None, 2; [2,3]u, [2,3]u, [2,1]+, 2"},
    {"binary_cross_entropy_backward", "[2,3], [2,3]u, [2,3]u, None, 0; [], [2,3]u, [2,3]u, [3]+, 2; [], [2,3]u, [2,3]u, [3]+, 1"},
    {"binary_cross_entropy_with_logits", "[2,3], [2,3]u, [3]+, None, 2; [2,3], [2,3]u, None, [3]+, 1; [2,3], [2,3]u, None, None, 2"},
    {"huber_loss", "[2,3], [2,3], 2, 0.5; [2,3], [3], 1, 2.0"},
    {"huber_loss_backward", "[2,3], [2,3], [2,3], 0, 0.5; [], [2,3], [2,3], 2, 0.3"},
    {"mse_loss", "[2,3], [2,3], 2; [2,3], [3], 1"}, {"mse_loss_backward", "[], [2,3], [2,3], 2"},
    {"smooth_l1_loss", "[2,3], [2,3], 2, 0.5; [2,3], [2,3], 1, 0.0; [2,3], [2,3], 1, 3.0"},
    {"smooth_l1_loss_backward", "[2,3], [2,3], [2,3], 0, 0.5; [], [2,3], [2,3], 2, 0.3"},
    {"soft_margin_loss", "[2,3], [2,3], 0; [2,3], [2,3], 2"},
    {"soft_margin_loss_backward", "[2,3], [2,3], [2,3], 0; [], [2,3], [2,3], 2"},
    {"l1_loss", "[2,3], [2,3], 0; [2,3], [2,3], 2"},
    {"kl_div", "[2,3], [2,3]u, 0; [2,3], [2,3]u, 2; [2,3], [2,3], 1, True; [2,3], [2,3], 0, True"},
    {"poisson_nll_loss", "[2,3], [2,3]+, True, False, 0.00000001, 0; [2,3]+, [2,3]+, False, False, 0.001, 1; [2,3], [2,3]g, True, True, 0.001, 2; [2,3]+, [2,3]g, False, True, 0.001, 2"},
    {"cosine_embedding_loss", "[2,3], [2,3], [2]i2, 0.5, 0; [2,3], [2,3], [2]i2, -0.5, 2"},
    {"hinge_embedding_loss", "[2,3], [2,3]i2, 0.5, 0; [2,3], [2,3]i2, 2.0, 2"},
    {"margin_ranking_loss", "[2,3], [2,3], [2,3], 0.5, 0; [2,3], [2,3], [2,3], 0.5, 2"},
    {"triplet_margin_loss", "[2,3], [2,3], [2,3], 1.0, 2.0, 0.000001, True, 1; [2,3], [2,3], [2,3], 0.5, 1.0, 0.01, False, 0; [2,3], [2,3], [2,3], 2.0, 3.0, 0.01, True, 2"},
    {"multi_margin_loss", "[2,3], [2]i3, 2, 1, None, 0; [2,3], [2]i3, 1, 0.5, [3]+, 1"},
    {"multi_margin_loss_backward", "[2], [2,3], [2]i3, 2, 1, None, 0; [], [2,3], [2]i3, 2, 0.5, [3]+, 1"},
    {"multilabel_margin_loss", "[2,3], [2,3]i3, 0; [2,3], [2,3]i3, 2"},
    {"nll_loss_forward", "[3,4], [3]i4, None, 0, -100; [3,4], [3]i4, None, 2, 1; [3,4], [3]i4, [4]+, 2, 2; [3,4], [3]i4, [4]+, 0, 0; [4], []i4, None, 1, -100"},
    {"nll_loss_backward", "[3], [3,4], [3]i4, None, 0, 1, []+; [], [3,4], [3]i4, [4]+, 2, 0, []+"},
    {"nll_loss2d_forward", "[2,3,2,2], [2,2,2]i3, None, 0, -100; [2,3,2,2], [2,2,2]i3, None, 2, 1; [2,3,2,2], [2,2,2]i3, [3]+, 0, 0"},
    {"nll_loss2d_backward", "[2,2,2], [2,3,2,2], [2,2,2]i3, None, 0, 1, []+"},
    {"nll_loss_nd", "[2,3,4], [2,4]i3, [3]+, 2, 1; [2,3], [2]i3, None, 0; [2,3,2,2], [2,2,2]i3, [3]+"},
    {"cross_entropy_loss", "[3,4], [3]i4, None, 0, 1, 0.2; [3,4], [3,4]u, [4]+, 2, -100, 0.1; [3,4], [3,4]u, None, 0; [2,3,2], [2,2]i3, [3]+, 1, 0, 0.3; [4], []i4, None, 2"},
    /* reductions */
    {"index_reduce", "[3,4], 1, [2]i4, [3,2], 'amax'; [3,4], 1, [5]i4, [3,5], 'amin', include_self=False; [3,4], 1, [5]i4, [3,5], 'mean', include_self=False"},
    {"scatter_reduce.two", "[3,4], 1, [3,5]i4, [3,5], 'amax'; [3,4], 1, [3,5]i4, [3,5], 'amin', include_self=False; [3,4], 1, [3,5]i4, [3,5], 'mean', include_self=False; [3,4], 1, [3,5]i4, [3,5], 'sum', include_self=False"},
    {"segment_reduce", "[6], 'min', lengths=[3]i3, unsafe=True, initial=9; [5,2], 'sum', lengths=[2]i3, unsafe=True, initial=0.5; [5,2], 'prod', lengths=[2]i3, unsafe=True, initial=2; [5,2], 'mean', lengths=[2]i3, unsafe=True"},
    {"var.correction", "[2,3], (1), correction=2; [2,4], (1), correction=0.5; [2,3], None; [2,3], (0), correction=1.5, keepdim=True"},
    {"std.correction", "[2,4], (1), correction=2; [2,4], (1), correction=0.5; [2,3], None; [2,3], (0), correction=1.5, keepdim=True"},
    {"var_mean.correction", "[2,4], (1), correction=2; [2,4], (1), correction=0.5; [2,3], None"},
    {"std_mean.correction", "[2,4], (1), correction=2; [2,4], (1), correction=0.5; [2,3], None"},
    {"quantile", "[2,5], [2]u, 1, False, interpolation='lower'; [2,5], [2]u, 1, False, interpolation='higher'; [2,5], [2]u, None, False, interpolation='nearest'"},
    {"nanquantile", "[2,5], [2]u, 1, True, interpolation='midpoint'; [2,5], []u, None, False, interpolation='higher'"},
    {"topk", "[2,5], 2, 1, False, True; [2,5], 3, 1, True, False"}, {"cummax", "[3,4], 0; [4], -1"}, {"cummin", "[3,4], 0"},
    {"cumprod", "[3,4], 0; [5], 0"}, {"prod", "[5]; [2,2,2]"}, {"logcumsumexp", "[3,4], 0; [4], 0"},
    {"cov", "[3,4], correction=0, fweights=[4]i5"},
    /* windows and grids */
    {"avg_pool1d", "[1,2,7], 3, 2, 1, True, False; [1,2,6], 3, 2, 1, True, True"},
    {"avg_pool2d", "[1,1,5,5], 3, 2, 1, True, True; [1,1,5,4], (3,2), (1,2), (1,0), False, False; [1,1,5,5], 3, 2, 1, True, False, 5"},
    {"avg_pool2d_backward", "[1,1,3,3], [1,1,5,5], 3, 2, 1, True, False, None; [1,1,3,3], [1,1,5,5], 3, 2, 1, True, True, 7"},
    {"avg_pool3d", "[1,1,5,4,4], 3, 2, 1, True, False; [1,1,4,4,4], 2, 1, 0, False, True, 3"},
    {"avg_pool3d_backward", "[1,1,3,2,2], [1,1,5,4,4], (3,2,2), 2, (1,0,0), True, False, None; [1,1,2,2,2], [1,1,4,4,4], 2, 2, 0, False, True, 3"},
    {"max_pool3d_with_indices", "[1,1,5,4,5], 3, 2, 1, 1, True; [1,1,5,5,5], 2, 1, 0, 2"},
    {"max_pool1d", "[1,2,7], 3, 2, 1, 1, True; [1,2,7], 2, 1, 0, 2"},
    {"grid_sampler_2d", "[1,1,4,3], [1,2,2,2], 0, 0, True; [1,1,4,3], [1,2,2,2], 0, 1, False; [1,1,4,3], [1,2,2,2], 0, 2, True; [1,1,4,3], [1,2,2,2], 1, 1, False; [1,1,4,3], [1,2,2,2], 1, 2, True; [1,1,4,4], [1,2,2,2], 2, 0, True; [1,1,4,4], [1,2,2,2], 2, 1, True; [1,1,4,4], [1,2,2,2], 2, 2, False"},
    {"grid_sampler_2d_backward", "[1,1,2,2], [1,1,4,3], [1,2,2,2], 0, 2, False, (True,True); [1,1,2,2], [1,1,4,3], [1,2,2,2], 0, 0, True, (True,False); [1,1,2,2], [1,1,4,3], [1,2,2,2], 2, 0, True, (True,True); [1,1,2,2], [1,1,4,3], [1,2,2,2], 2, 1, False, (True,True)"},
    {"grid_sampler_3d", "[1,1,3,2,3], [1,2,1,2,3], 0, 0, False; [1,1,3,2,3], [1,2,1,2,3], 0, 1, True; [1,1,3,2,3], [1,2,1,2,3], 0, 2, False; [1,1,3,2,3], [1,2,1,2,3], 1, 0, False"},
    {"grid_sampler_3d_backward", "[1,1,2,1,2], [1,1,3,2,3], [1,2,1,2,3], 0, 0, False, (True,True); [1,1,2,1,2], [1,1,3,2,3], [1,2,1,2,3], 0, 2, True, (True,True)"},
    {"upsample_linear1d_backward", "[1,1,7], (7), (1,1,3), False, 2.5"},
    {"upsample_bilinear2d_backward", "[1,1,7,7], (7,7), (1,1,3,3), False, 2.5, 2.4"},
    {"upsample_bicubic2d_backward", "[1,1,7,7], (7,7), (1,1,3,3), False, 2.5, 2.4"},
    {"upsample_nearest2d", "[1,1,3,3], (7,7), 2.5, 2.4; [1,2,4,3], (2,5)"}, {"_upsample_nearest_exact2d", "[1,1,3,3], (7,7), 2.5, 2.4; [1,2,4,3], (2,5)"},
    {"pad", "[2,3,4], (1,2,0,1), 'replicate'; [2,3,4,3], (1,2,2,1), 'reflect'; [2,3,4,3], (1,2,2,1), 'circular'; [2,2,3,4,3], (1,2,2,1,1,0), 'replicate'; [2,2,3,4,3], (1,2,2,1,1,0), 'reflect'; [2,3], (1,-1), 'constant', 0.5"},
    {"convolution", "[2,4,5], [4,2,3], [4], (2,), (1,), (1,), True, (1,), 2; [1,2,4,4,3], [4,1,2,2,2], None, (1,2,1), (1,0,1), (2,1,1), False, (0,0,0), 2; [1,4,3,3], [4,1,2,2], [4], (1,1), (1,1), (1,1), False, (0,0), 4"},
    {"convolution_backward", "[2,4,4], [2,4,7], [4,2,3], (4,), (2,), (1,), (1,), False, (0,), 2, (True,True,True); [2,4,5,5], [2,2,3,3], [2,2,3,3], (4,), (2,2), (1,1), (1,1), True, (0,0), 2, (True,True,True)"},
    {"conv2d.padding", "[1,2,4,4], [3,2,2,3], [3], 1, 'valid'; [1,2,5,5], [2,1,3,2], None, 1, 'same', 2, 2"},
    {"im2col", "[1,2,4,5], (2,3), (1,1), (0,0), (2,1)"},
    /* normalizations */
    {"native_batch_norm", "[4,3,2], None, None, None, None, True, 0.1, 0.1"},
    {"native_batch_norm_backward", "[4,3,2], [4,3,2], [3]+, [3], [3]+, [3], [3]+, False, 0.00001, (True,True,True)"},
    {"native_layer_norm", "[2,3,2], (3,2), None, [3,2], 0.1; [2,3], (3), [3], None, 0.00001"},
    {"native_group_norm", "[2,4,3], None, None, 2, 4, 3, 2, 0.1; [2,4,3], [4], None, 2, 4, 3, 4, 0.00001"},
    {"group_norm", "[2,4,3], 2; [2,4,3], 4, [4]"}, {"layer_norm", "[2,3], (3); [2,3,2], (3,2), None, [3,2]"},
    {"rms_norm", "[2,3], (3); [2,3,2], (3,2), [3,2], 0.1"},
    /* attention */
    {"scaled_dot_product_attention", "[1,2,3,2], [1,2,4,2], [1,2,4,2], [1,1,3,4], scale=0.7; [1,4,3,2], [1,2,3,2], [1,2,3,2], None, 0.0, True, enable_gqa=True; [1,2,3,2], [1,2,4,2], [1,2,4,2], [3,4]b"},
    /* matrices */
    {"linalg_qr", "[2,4], 'reduced'; [2,2,3]"},
    {"linalg_solve_triangular", "[3,3]g, [2,3], upper=True, left=False, unitriangular=True; [3,3]g, [3,2], upper=False; [3,3]g, [2,3], upper=False, left=False, unitriangular=True"},
    {"triangular_solve", "[3,2], [3,3]g, True, True, False; [3,2], [3,3]g, False, False, False; [3,2], [3,3]g, True, False, True"},
    {"linalg_solve", "[3,3]d, [3]; [2,3,3]d, [2,3,2]; [3,3]d, [2,3], left=False"},
    {"ormqr", "[3,2], [2], [3,4], True, True; [3,3], [3], [2,3], False, False"},
    {"linalg_svd", "[2,2,3], False"}, {"linalg_pinv.atol_rtol_float", "[2,3], atol=0.01; [3,2], rtol=0.01"},
    {"matrix_exp", "[3,3]; [1,1]; [2,4,4]"}, {"linalg_matrix_power", "[3,3]d, 3; [3,3]d, -2; [3,3]d, 0"},
    /* activations, and numbers at their limits */
    {"elu_backward", "[2,3], 2, 0.5, 1.5, True, [2,3]+; [2,3], 1, 1, 1, True, [2,3]u"},
    {"leaky_relu_backward", "[2,3], [2,3], 0.2, True"}, {"logit", "[2,3]u"}, {"logit_backward", "[2,3], [2,3]u"},
    {"softplus", "[2,3], 30, 20; [2,3], 0.5, 0.1"}, {"threshold", "[2,3], -0.5, 0"}, {"rrelu", "[2,3], 0.1, 0.3, False"},
    {"hardtanh", "[2,3], -0.5, 0.7"}, {"clamp", "[2,3], None, 0.5; [2,3], -0.5, None; [2,3], 0.5, -0.5"},
    {"clamp.Tensor", "[2,3], None, [3]; [2,3], [3], None; [2,3], [2,3], [3]"}, {"clip.Tensor", "[2,3], None, [3]; [2,3], [2,3], [3]"},
    {"nan_to_num", "[2,3], 1.5, 2.5, -2.5"}, {"div.Scalar_mode", "[2,3], 0.7, rounding_mode='trunc'"},
    {"celu", "[2,3], 0.5"}, {"glu", "[4,3], 0; [2,4]"}, {"softshrink", "[2,3], 0.1"}, {"hardshrink", "[2,3], 0.1"},
    /* tables */
    {"embedding_renorm", "[5,3], [3]i5, 0.5, 1.0; [5,3], [3]i5, 0.5, inf"},
    {"embedding_bag", "[5,3], [4]i5, [2]i1, False, 1; [5,3], [4]i5, [2]i1, False, 2; [5,3], [4]i5, [1]i1, False, 0, False, [4]"},
    {"embedding_bag.padding_idx", "[5,3], [6]i5, [1]i1, False, 0, False, None, False, 1; [5,3], [6]i5, [1]i1, False, 1, False, None, False, 1; [5,3], [6]i5, [1]i1, False, 2, False, None, False, 1"},
    {"index_put", "[3,4], {None,[2]i4}, [3,2], True; [3,4], {[2]i3,[2]i4}, [2]; [3,4], {[2,1]i3,[2]i4}, [], True"},
    {"diagonal_scatter", "[4,3], [3], -1; [3,4], [3], 1, 0, 1; [2,3,3], [2,3], 0, 1, 2"},
    /* transforms and sequences */
    {"fft_fft", "[6], None, -1, 'forward'; [5], 8, -1, 'backward'"}, {"fft_ifft", "[6], None, -1, 'forward'"}, {"fft_rfft", "[6], 5, -1, 'forward'"},
    {"fft_irfft", "[4], 7, -1, 'forward'; [4], 6, -1, 'backward'"}, {"fft_hfft", "[4], 7, -1, 'forward'"}, {"fft_ihfft", "[6], 5, -1, 'forward'"},
    {"fft_irfftn", "[3,4], (4,5), (1,0), 'forward'"}, {"fft_hfftn", "[3,4], (4,5), (1,0), 'forward'"},
    {"stft.center", "[12], 4, 2, 4, [4]+, True, 'reflect', True, True, True; [12], 4, 2, 4, [4]+, False, 'reflect', False, False, True"},
    {"trapezoid.x", "[2,4], [2,4]; [3,2], [3], dim=0"}, {"cumulative_trapezoid.x", "[2,4], [2,4]; [2,4], [4]"},
    {"diff", "[5], 3; [3,4], 1, -1, None, [3,2]"}, {"lerp.Tensor", "[2,3], [2,3], [2,3]u"}, {"addcdiv", "[2,3], [2,3], [2,3]g, value=-0.5"}};
/* Returns the sample arguments of an operator: its descriptor's, and then its further ones.  NULL: it has none. */
OPD_UNUSED static const char *cases_of(const opd_op *op) {
    static char *joined[sizeof modes / sizeof *modes];
    const char *const own = opd_op_card(op) ? opd_op_card(op)->cases : NULL, *const colons = strstr(opd_op_name(op), "::");
    size_t i, n;
    for (i = 0; colons && i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(colons + 2, modes[i].name) != 0) { continue; }
        if (!own || !*own) { return modes[i].cases; }
        n = strlen(own) + strlen(modes[i].cases) + 3;
        if (!joined[i] && (joined[i] = (char *)malloc(n)) != NULL) { (void)snprintf(joined[i], n, "%s; %s", own, modes[i].cases); }
        return joined[i] ? joined[i] : own;
    }
    return own;
}
#endif
