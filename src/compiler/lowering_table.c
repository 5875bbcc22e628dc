#include "compiler.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>lowering_table table of lowerings; operators without a lowering are called
//----------------------------------------------------------------------------------------------------------------------

/* The lowering of each operator, with the operator's name.  A lowering is a kernel on the lazy device that calls other
   operators or records nests. */
static const struct opdi_nest_lowering { const char *name; opd_kernel lower; } opdi_nest_lowerings[] = {
    {"aten::mm", opdi_lower_mm}, {"aten::bmm", opdi_lower_mm}, {"aten::addmm", opdi_lower_addmm},
    {"aten::baddbmm", opdi_lower_addmm}, {"aten::convolution", opdi_lower_convolution},
    {"aten::_softmax", opdi_lower_softmax}, {"aten::_log_softmax", opdi_lower_softmax},
    {"aten::native_layer_norm", opdi_lower_layer_norm}, {"aten::native_group_norm", opdi_lower_group_norm},
    {"aten::native_batch_norm", opdi_lower_batch_norm},
    {"aten::_native_batch_norm_legit_no_training", opdi_lower_batch_norm},
    {"aten::sum", opdi_lower_sum}, {"aten::sum.dim_IntList", opdi_lower_sum}, {"aten::mean", opdi_lower_mean},
    {"aten::mean.dim", opdi_lower_mean}, {"aten::amax", opdi_lower_extreme}, {"aten::amin", opdi_lower_extreme},
    {"aten::any", opdi_lower_extreme}, {"aten::any.dim", opdi_lower_extreme}, {"aten::any.dims", opdi_lower_extreme},
    {"aten::all", opdi_lower_extreme}, {"aten::all.dim", opdi_lower_extreme}, {"aten::all.dims", opdi_lower_extreme},
    {"aten::max.dim", opdi_lower_max_dim}, {"aten::min.dim", opdi_lower_max_dim},
    {"aten::max_pool2d_with_indices", opdi_lower_max_pool}, {"aten::embedding", opdi_lower_embedding},
    {"aten::gather", opdi_lower_gather}, {"aten::index_select", opdi_lower_gather},
    {"aten::index.Tensor", opdi_lower_index}, {"aten::cat", opdi_lower_cat}, {"aten::stack", opdi_lower_cat},
    {"aten::constant_pad_nd", opdi_lower_pad}, {"aten::upsample_nearest2d", opdi_lower_upsample},
    {"aten::_upsample_nearest_exact2d", opdi_lower_upsample}, {"aten::upsample_bilinear2d", opdi_lower_upsample},
    {"aten::avg_pool1d", opdi_lower_avg_pool}, {"aten::avg_pool2d", opdi_lower_avg_pool},
    {"aten::index_put", opdi_lower_index_put}, {"aten::index_copy", opdi_lower_scatter},
    {"aten::scatter.src", opdi_lower_scatter}, {"aten::scatter.value", opdi_lower_scatter},
    {"aten::_adaptive_avg_pool2d", opdi_lower_adaptive}, {"aten::cumsum", opdi_lower_cumsum},
    {"aten::sort", opdi_lower_sort}, {"aten::sort.stable", opdi_lower_sort}, {"aten::topk", opdi_lower_sort},
    {"aten::argsort", opdi_lower_sort}, {"aten::argsort.stable", opdi_lower_sort},
    {"aten::_embedding_bag", opdi_lower_embedding_bag},
    {"aten::_embedding_bag_forward_only", opdi_lower_embedding_bag},
    {"aten::flip", opdi_lower_flip}, {"aten::tril", opdi_lower_triangle}, {"aten::triu", opdi_lower_triangle},
    {"aten::argmax", opdi_lower_places_max}, {"aten::argmin", opdi_lower_places_max},
    {"aten::prod", opdi_lower_places_max}, {"aten::prod.dim_int", opdi_lower_places_max},
    {"aten::linalg_vector_norm", opdi_lower_norm}, {"aten::var.correction", opdi_lower_var},
    {"aten::std.correction", opdi_lower_var}, {"aten::var_mean.correction", opdi_lower_var},
    {"aten::std_mean.correction", opdi_lower_var}, {"aten::cumprod", opdi_lower_cumsum},
    {"aten::logcumsumexp", opdi_lower_cumsum}, {"aten::cummax", opdi_lower_cummax},
    {"aten::cummin", opdi_lower_cummax}, {"aten::scatter_add", opdi_lower_accumulate},
    {"aten::scatter_reduce.two", opdi_lower_accumulate}, {"aten::scatter.reduce", opdi_lower_accumulate},
    {"aten::scatter.value_reduce", opdi_lower_accumulate}, {"aten::index_add", opdi_lower_accumulate},
    {"aten::index_reduce", opdi_lower_accumulate}, {"aten::index_fill.int_Scalar", opdi_lower_index_fill},
    {"aten::index_fill.int_Tensor", opdi_lower_index_fill}, {"aten::one_hot", opdi_lower_one_hot},
    {"aten::slice_scatter", opdi_lower_view_put}, {"aten::select_scatter", opdi_lower_view_put},
    {"aten::diagonal_scatter", opdi_lower_view_put}, {"aten::logsumexp", opdi_lower_logsumexp},
    {"aten::max", opdi_lower_most}, {"aten::min", opdi_lower_most}, {"aten::mv", opdi_lower_mv},
    {"aten::dot", opdi_lower_mv}, {"aten::addmv", opdi_lower_mv}, {"aten::trace", opdi_lower_trace},
    {"aten::reflection_pad1d", opdi_lower_pad_rows}, {"aten::reflection_pad2d", opdi_lower_pad_rows},
    {"aten::reflection_pad3d", opdi_lower_pad_rows}, {"aten::replication_pad1d", opdi_lower_pad_rows},
    {"aten::replication_pad2d", opdi_lower_pad_rows}, {"aten::replication_pad3d", opdi_lower_pad_rows},
    {"aten::searchsorted.Tensor", opdi_lower_searchsorted}, {"aten::bucketize.Tensor", opdi_lower_searchsorted},
    {"aten::norm.Scalar", opdi_lower_norm}, {"aten::norm.ScalarOpt_dtype", opdi_lower_norm},
    {"aten::norm.ScalarOpt_dim", opdi_lower_norm}, {"aten::norm.ScalarOpt_dim_dtype", opdi_lower_norm},
    {"aten::_cdist_forward", opdi_lower_cdist}, {"aten::_euclidean_dist", opdi_lower_cdist},
    {"aten::avg_pool3d", opdi_lower_avg_pool}, {"aten::_adaptive_avg_pool3d", opdi_lower_adaptive_3d},
    {"aten::adaptive_max_pool2d", opdi_lower_adaptive_max}, {"aten::count_nonzero", opdi_lower_counted},
    {"aten::count_nonzero.dim_IntList", opdi_lower_counted}, {"aten::nansum", opdi_lower_counted},
    {"aten::aminmax", opdi_lower_counted}, {"aten::kthvalue", opdi_lower_kth}, {"aten::median.dim", opdi_lower_kth},
    {"aten::upsample_nearest1d", opdi_lower_upsample_dims},
    {"aten::_upsample_nearest_exact1d", opdi_lower_upsample_dims},
    {"aten::upsample_nearest3d", opdi_lower_upsample_dims},
    {"aten::_upsample_nearest_exact3d", opdi_lower_upsample_dims},
    {"aten::upsample_linear1d", opdi_lower_upsample_dims}, {"aten::upsample_trilinear3d", opdi_lower_upsample_dims},
    {"aten::upsample_bicubic2d", opdi_lower_upsample_dims}, {"aten::grid_sampler_2d", opdi_lower_grid},
    {"aten::im2col", opdi_lower_columns}, {"aten::col2im", opdi_lower_columns},
    {"aten::_native_batch_norm_legit", opdi_lower_batch_norm},
    {"aten::max_pool3d_with_indices", opdi_lower_max_pool}, {"aten::take", opdi_lower_take_flat},
    {"aten::put", opdi_lower_put_flat}, {"aten::_softmax_backward_data", opdi_lower_softmax_back},
    {"aten::_log_softmax_backward_data", opdi_lower_softmax_back},
    {"aten::nll_loss_forward", opdi_lower_nll_forward}, {"aten::nll_loss2d_forward", opdi_lower_nll_forward},
    {"aten::nll_loss_backward", opdi_lower_nll_backward}, {"aten::nll_loss2d_backward", opdi_lower_nll_backward},
    {"aten::embedding_dense_backward", opdi_lower_embedding_back}, {"aten::median", opdi_lower_median},
    {"aten::lgamma", opdi_lower_special}, {"aten::digamma", opdi_lower_special}, {"aten::erfinv", opdi_lower_special},
    {"aten::special_ndtri", opdi_lower_special}, {"aten::special_erfcx", opdi_lower_special},
    {"aten::special_log_ndtr", opdi_lower_special}, {"aten::special_entr", opdi_lower_special},
    {"aten::special_xlog1py", opdi_lower_special}, {"aten::i0", opdi_lower_special},
    {"aten::special_i0e", opdi_lower_special}, {"aten::special_i1", opdi_lower_special},
    {"aten::special_i1e", opdi_lower_special}, {"aten::special_modified_bessel_i0", opdi_lower_special},
    {"aten::special_modified_bessel_i1", opdi_lower_special}
};
/* Returns whether a graph is recorded that is compiled for this process, and a kernel with `work` multiplications
   should be called instead of written as loops.  In the mode of same bits, kernels are always called. */
OPDI_INTERNAL bool opdi_lazy_calls(double work) {
    const opdi_recording *const recording = opdi_recording_now;
    if (recording && opd_same_bits()) { return recording->calls && !recording->open; }
    return recording && recording->here && !recording->open && work >= 8 * OPDI_KERNEL_LEAST;
}
/* Makes the results of a call that has an empty tensor among its arguments.  Returns 1 if all results are empty, too,
   so that nothing has to be computed; 0 if the lowering has to run; or -1 and sets an error. */
static int opdi_lower_nothing(opd_call *call) {
    const opd_value *const args = opd_call_args(call), *const rets = opd_call_rets(call);
    const int count = opd_call_operator(call)->nrets;
    bool empty = false;
    for (int i = 0; i < opd_call_nargs(call); i++) {
        empty = empty || (args[i].tag == OPD_TAG_TENSOR && args[i].u.t && opd_numel(args[i].u.t) == 0);
    }
    if (!empty || !count) { return 0; }
    if (opd_results_from_fake(call)) { return -1; }
    for (int i = 0; i < count && empty; i++) {
        empty = rets[i].tag == OPD_TAG_TENSOR && rets[i].u.t && opd_numel(rets[i].u.t) == 0;
    }
    if (!empty) { opdi_extern_forget(call); }
    return empty;
}
/* The fallback kernel of the lazy device.  Runs the lowering of an operator; if there is none, records a call of the
   operator.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lazy_lower(opd_call *call) {
    const char *const name = opd_op_name(opd_call_operator(call));
    opdi_recording *const recording = opdi_recording_now;
    if (!recording) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the lazy device can only be used while a graph is compiled", name);
    }
    const bool unfit = opdi_extern_unfit(call);
    for (size_t i = 0; i < sizeof opdi_nest_lowerings / sizeof *opdi_nest_lowerings && !unfit; i++) {
        if (strcmp(opdi_nest_lowerings[i].name, name) != 0) { continue; }
        const char *const was = recording->what;
        recording->what = was ? was : opdi_lower_name(name);
        const bool lazy = opdi_usual_lazy_set(false);
        const int nothing = opdi_lower_nothing(call);
        const int rc = nothing ? OPDI_MIN(nothing, 0) : opdi_nest_lowerings[i].lower(call);
        (void)opdi_usual_lazy_set(lazy);
        recording->what = was;
        return rc;
    }
    return opd_fail(OPD_ERROR_NO_KERNEL, "%s cannot be compiled", name);
}
OPDI_INTERNAL bool opdi_same_nests(const opdi_recording *recording, const opdi_nest *last);
/* Returns whether the nests after `last`, of a call that succeeded, give the bits of its operator in the mode of same
   bits.  Without calls, cross_entropy_loss is the operators that it calls, and each of them was examined. */
static bool opdi_lazy_same(const opd_call *call, opdi_recording *recording, opdi_nest *last) {
    if (recording->vouched) {
        recording->nvouched++;
        for (opdi_nest *nest = last ? last->next : recording->first; nest; nest = nest->next) {
            nest->vouched = recording->nvouched;
        }
        return true;
    }
    return opdi_same_nests(recording, last) ||
        (opdi_same_writes() && strcmp(opd_op_name(opd_call_operator(call)), "aten::cross_entropy_loss") == 0);
}
/* Runs a kernel on the lazy device.  If the kernel reads data, or cannot be written in C, removes everything that it
   has recorded, and records a call of the operator instead.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lazy_kernel(opd_call *call, opd_kernel kernel) {
    opdi_recording *const recording = opdi_recording_now;
    opdi_nest *const last = recording ? recording->last : NULL;
    const bool outside = recording && recording->vouched;           /* of the operator whose lowering calls this one */
    if (recording) { recording->vouched = false; }
    int rc = kernel(call);
    if (rc == 0 && opd_ok() && recording && opd_same_bits() && !opdi_lazy_same(call, recording, last)) {
        rc = opdi_same_refuse(opd_op_name(opd_call_operator(call)));
    }
    if (recording) { recording->vouched = outside; }
    if ((rc == 0 && opd_ok()) || !recording || opdi_error_passes() ||
        (opdi_generator_was_missed() && !recording->draws) ||
        opdi_extern_refuses(recording, call, NULL)) { return rc; }
    const char *const was = recording->what, *const name = opd_op_name(opd_call_operator(call));
    opd_error_clear();
    opdi_extern_instead(call, last);
    recording->what = was ? was : opdi_lower_name(name);
    const bool lazy = opdi_usual_lazy_set(false);
    const int made = opdi_extern_record(call);
    (void)opdi_usual_lazy_set(lazy);
    recording->what = was;
    return made;
}
