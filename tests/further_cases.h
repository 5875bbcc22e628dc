/* further_cases.h: additional sample arguments of operators, for tests that compare two ways to run an operator. */
#ifndef OPD_TESTS_FURTHER_CASES_H
#define OPD_TESTS_FURTHER_CASES_H
#include "cases.h"

/* Kinds of indices that the sample arguments lack: None, separate, after others, masks, without dims, empty. */
static const struct { const char *name, *cases; } further[] = {
    {"aten::index.Tensor", "[3,4], {None, [2]i4}; [3,4,2], {None, [2]i4, [2]i2}; [3,4,2], {[2]i3, None, [2]i2}; "
     "[3,4,2], {None, [2,1]i4, [3]i2}; [2,3,2,3], {None, [2]i3, None, [1]i3}; [3,4], {[]i3}; [3,4], {[]i3, [2]i4}; "
     "[2,3,4], {None, None, [2,2]i4}; [2,3,4], {[2]i2, [2]i3, None}; [3,4], {None, None}; [3], {[2,2]i3}; "
     "[3,4], {[3]b}; [3,4], {[3,4]b}; [2,3,4], {None, [3,4]b}; [2,3,4], {[2]i2, None, [4]b}; [3,4], {[0]i3}; [0,4], {None, [2]i4}"},
    {"aten::index_put", "[3,4], {None, [1]i4}, [3,1]; [3,4,2], {None, [2]i4, [2]i2}, [3,2], True; "
     "[3,4,2], {[2]i3, None, [2]i2}, [2,4], True; [3,4,2], {[2]i3, None, [2]i2}, [4], True; "
     "[2,3,2,3], {None, [2]i3, None, [2]i3}, [2,2,2], True; [3,4], {[2]i3}, [], True; [3,4], {[]i3}, [4]; "
     "[2,3,4], {None, None, [2,2]i4}, [2,2], True; [2,3,4], {None, [2,2]i3}, [2,2,4], True; [3], {[2,2]i3}, [1,2], True; "
     "[3,4], {[3,4]b}, []; [2,3,4], {None, [3,4]b}, []; [3,4], {[3]b}, [1,4]"},
    {"aten::index_select", "[], 0, [1]i1; [], 0, []i1; [4], 0, []i4; [3,4], -2, [0]i3; [2,3,4], 1, [2]i3"},
    {"aten::index_add", "[], 0, [1]i1, [1]; [4], 0, [1]i4, [1]; [4], 0, []i4, []; [2,3,4], 1, [2]i3, [2,2,4], alpha=0.5; [3,4], -1, [0]i3, [3,0]"},
    {"aten::index_copy", "[2,3,4], 1, [1]i3, [2,1,4]; [4], 0, []i4, []"},
    {"aten::index_fill.int_Scalar", "[4], 0, []i4, 2; [2,3,4], -2, [2]i3, 1.5; [], 0, [1]i1, 2"},
    {"aten::index_fill.int_Tensor", "[4], 0, []i4, []; [2,3,4], -2, [2]i3, []; [], 0, [1]i1, []"},
    {"aten::index_reduce", "[3,4], 0, [2]i3, [2,4], 'amax'; [3,4], 1, [2]i4, [3,2], 'prod', False"},
    {"aten::gather", "[], 0, []i1; [4], 0, [6]i4; [3,4], -1, [2,2]i4"},
    {"aten::scatter_add", "[], 0, []i1, []; [3,4], -1, [2,2]i4, [3,3]"},
    {"aten::take", "[], [3]i1; [3,4], []i12; [3,4], [0]i12"},
    {"aten::put", "[], [1]i1, [1]; [3,4], [2,2]i12, [4], True"},
    {"aten::masked_select", "[], [3]b; [3,1], [4]b; [4], []b"},
    {"aten::cat", "{[2,3], [0], [1,3]}; {[2,3], [2,1]}, -1; {[3]i5, [2]}; {[3]}"},
    {"aten::stack", "{[2,3], [2,3]}, -1; {[]i3, []}; {[3]}, 1"},
    {"aten::embedding", "[5,3], []i5; [5,3], [2,2]i5, 2; [5,3], [4]i5, 1, True"},
    {"aten::embedding_dense_backward", "[3], []i5, 5, -1, False; [2,2,3], [2,2]i5, 5, 2, False; [4,3], [4]i5, 5, 1, True"},
    {"aten::one_hot", "[]i5, 5; [0]i5, 5"},
    {"aten::searchsorted.Tensor", "[2,4], [2,3]; [4], []; [2,4], [2,3], right=True, sorter=[2,4]i4; [4], [2,2], sorter=[4]i4, out_int32=True"},
    {"aten::bucketize.Tensor", "[], [4]; [2,2], [3], out_int32=True, right=True"},
    {"torchvision::nms", "[5,4]u, [5]u, 0.3; [4,4], [4], 0.5; [0,4], [0], 0.5"},
    {"torchvision::roi_align", "[2,2,6,5], [3,5]u, 6., 2, 3, 2, True; [2,1,4,4], [2,5]u, 5., 2, 2, -1, False; [1,2,3,3], [0,5], 1., 2, 2, 1, True; "
     "[1,1,4,4], [2,5]u, 1., 2, 2, 1, True"},
    {"torchvision::_roi_align_backward", "[3,2,2,3], [3,5]u, 6., 2, 3, 2, 2, 6, 5, 2, True; [2,1,2,2], [2,5]u, 5., 2, 2, 2, 1, 4, 4, -1, False"},
    {"aten::constant_pad_nd", "[3], (1,2); [2,3], (0,0,1,1); [2,3], ()"},
    {"aten::reflection_pad1d", "[3,4], (1,2)"},
    {"aten::replication_pad2d", "[2,1,3,4], (1,2,0,1)"},
    {"aten::replication_pad2d_backward", "[2,1,4,7], [2,1,3,4], (1,2,0,1)"},
    {"aten::empty_like", "[2,3], memory_format=0; [1,2,2,2], memory_format=2"},
    {"aten::new_empty_strided", "[], (), (); [2], (0,2), (1,1); [2], (2,2), (0,0)"},
    {"aten::zeros_like", "[2,3], memory_format=0; []; [0,2]"},
    {"aten::new_full", "[], (), 2; [2], (0,3), 1.5"},
    {"aten::fill.Tensor", "[], []; [3]i5, []"},
    {"aten::masked_fill.Tensor", "[], []b, []; [3], [2,3]b, []; [3]i5, [3]b, []i5"},
    {"aten::normal.Tensor_Tensor", "[3], [2,3]+; [], [2]+"},
    {"aten::bernoulli.Tensor", "[2,3], []u"},
    {"aten::mm", "[0,3], [3,4]; [2,0], [0,4]; [1,3], [3,1]; [2,3]i5, [3,2]i5"},
    {"aten::bmm", "[0,2,3], [0,3,2]; [2,1,3], [2,3,1]"},
    {"aten::dot", "[0], [0]; [40], [40]; [3]i5, [3]i5"},
    {"aten::mv", "[0,3], [3]; [2,0], [0]"},
    {"aten::addmm", "[], [2,3], [3,4], beta=0.5; [2,1], [2,3], [3,4], alpha=2; [1,4], [2,3], [3,4], beta=0; [4], [2,0], [0,4], beta=2"},
    {"aten::addmv", "[], [2,3], [3], beta=0.5; [1], [2,3], [3], alpha=2; [2], [2,3], [3], beta=0"},
    {"aten::addbmm", "[], [2,3,4], [2,4,2]; [3,1], [0,3,4], [0,4,2]"},
    {"aten::baddbmm", "[4,1], [2,4,3], [2,3,2]; [], [2,4,3], [2,3,2], beta=0"},
    {"aten::linear", "[3], [4,3], [4]; [3], [4,3]; [2,2,2,3], [4,3], [4]; [3], [3]; [2,3], [3]"},
    {"aten::matmul", "[2,1,2,3], [3]; [3], [2,3,2]; [2,3,3], [3,2]; [2,2], [3,1,2,2]"},
    {"aten::convolution", "[2,4,5], [6,2,2], [6], (1,), (1,), (1,), False, (0,), 2; [1,4,3,3], [4,2,2,2], [4], (2,2), (1,1), (1,1), True, "
     "(1,1), 2; [1,2,4,4], [3,2,2,2], None, (2,2), (1,1), (2,2), False, (0,0), 1; [2,3,3], [3,2,2], [2], (1,), (0,), (1,), True, (0,), 1"},
    {"aten::convolution_backward", "[2,6,6], [2,4,5], [6,2,2], (6,), (1,), (1,), (1,), False, (0,), 2, (True,True,True); "
     "[1,4,6,6], [1,4,3,3], [4,2,2,2], (4,), (2,2), (0,0), (1,1), True, (0,0), 2, (True,True,True); "
     "[2,3,4], [2,2,5], [3,2,2], (3,), (1,), (0,), (1,), False, (0,), 1, (True,False,True); "
     "[1,2,2,2,2], [1,1,3,3,3], [2,1,2,2,2], None, (1,1,1), (0,0,0), (1,1,1), False, (0,0,0), 1, (False,True,False)"},
    {"aten::max_pool2d_with_indices", "[2,4,4], (2,2); [2,1,4,4], (2,2), (1,1)"},
    {"aten::max_pool2d_with_indices_backward", "[1,2,2], [1,4,4], (2,2), (2,2), (0,0), (1,1), False, [1,2,2]i16"},
    {"aten::avg_pool2d_backward", "[1,2,2], [1,4,4], (2,2), (2,2), (0,0), False, True, None; [2,1,2,2], [2,1,4,4], (2,2), (2,2), (0,0), False, "
     "True, None"},
    {"aten::avg_pool3d", "[1,2,2,2], (2,2,2); [2,1,2,2,4], (2,2,2)"},
    {"aten::_adaptive_avg_pool2d", "[1,3,4], (2,2)"},
    {"aten::im2col", "[2,3,4], (2,2), (1,1), (0,0), (1,1)"},
    {"aten::col2im", "[8,6], (3,4), (2,2), (1,1), (0,0), (1,1)"},
    {"aten::native_layer_norm", "[3], (3), [3], [3], 0.1; [2,2,3], (2,3), [2,3], None, 0.1; [2,3], (3), None, [3], 0.1"},
    {"aten::native_layer_norm_backward", "[2,3], [2,3], (3), [2,1], [2,1]+, [3], [3], (True,True,True); [3], [3], (3), [1], [1]+, None, None, "
     "(True,True,False); [2,2,3], [2,2,3], (2,3), [2,1,1], [2,1,1]+, [2,3], None, (True,False,False)"},
    {"aten::native_group_norm", "[1,4,3], None, [4], 1, 4, 3, 2, 0.1; [2,4,2,2], [4], None, 2, 4, 4, 4, 0.1"},
    {"aten::native_group_norm_backward", "[2,4,3], [2,4,3], [2,2], [2,2]+, [4], 2, 4, 3, 2, (True,True,True); [2,4,3], [2,4,3], [2,2], [2,2]+, "
     "None, 2, 4, 3, 2, (True,False,True)"},
    {"aten::native_batch_norm_backward", "[4,3,2], [4,3,2], [3], None, None, [3], [3]+, True, 0.1, (True,True,True); [4,3], [4,3], None, [3], "
     "[3]+, None, None, False, 0.1, (True,True,False)"},
    {"aten::nll_loss_forward", "[4], []i4, None, 1, -100; [4], []i4, [4]+, 0, -100; [4], []i4, None, 0, 2; [3,4], [3]i4, None, 0, -100; "
     "[3,4], [3]i4, [4]+, 2, 1; [3,4], [3]i4, [4]+, 0, 1; [0,4], [0]i4, None, 2, -100"},
    {"aten::nll_loss_backward", "[], [3,4], [3]i4, None, 1, -100, []+; [3], [3,4], [3]i4, [4]+, 0, 1, []; [], [4], []i4, [4]+, 1, 1, []+; "
     "[], [4], []i4, None, 0, 1, []"},
    {"aten::nll_loss2d_forward", "[2,3,2,2], [2,2,2]i3, None, 0, 1; [2,3,2,2], [2,2,2]i3, [3]+, 2, 1"},
    {"aten::nll_loss2d_backward", "[], [2,3,2,2], [2,2,2]i3, [3]+, 1, -100, []+; [2,2,2], [2,3,2,2], [2,2,2]i3, [3]+, 0, 1, []"},
    {"aten::mse_loss", "[], []; [3], [2,3]; [2,3], [2,3], 2"},
    {"aten::binary_cross_entropy", "[2,3]u, [2,3]u, [3]+, 1; []u, []u"},
    {"aten::prelu", "[], [1]; [3], [1]; [2,3,4], [3]"},
    {"aten::prelu_backward", "[2,3,4], [2,3,4], [3]; [3], [3], [1]"},
    {"aten::glu", "[4], 0; [2,4,3], -2"},
};

#endif /* OPD_TESTS_FURTHER_CASES_H */
