// An extension as users of PyTorch write it, with PyTorch's headers for its stable interface.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <optional>
#include <string>
#include <vector>

using torch::stable::Tensor;

// The sum of x[i] * factor over a list.
static Tensor mix(std::vector<Tensor> list, double factor, std::string how) {
    STD_TORCH_CHECK(how == "sum", "how must be sum, not ", how);
    STD_TORCH_CHECK(!list.empty(), "the list is empty");
    Tensor out = torch::stable::empty_like(list[0]);
    torch::stable::zero_(out);
    float *to = out.mutable_data_ptr<float>();
    for (const Tensor &tensor : list) {
        STD_TORCH_CHECK(tensor.numel() == out.numel(), "sizes differ");
        const float *from = tensor.const_data_ptr<float>();
        for (int64_t i = 0; i < out.numel(); i++) { to[i] += static_cast<float>(factor) * from[i]; }
    }
    return out;
}
// x . x, by an operator of PyTorch's.
static Tensor through(const Tensor x) { return torch::stable::matmul(x, x); }
static Tensor either(const Tensor x, std::optional<Tensor> y) { return y.has_value() ? *y : x; }
// A product of a vector and a matrix that do not fit.
static Tensor fails(const Tensor x) {
    return torch::stable::matmul(x, torch::stable::unsqueeze(torch::stable::unsqueeze(x, 0), 0));
}

STABLE_TORCH_LIBRARY(stable_test, m) {
    m.def("mix(Tensor[] list, float factor, str how) -> Tensor");
    m.def("through(Tensor x) -> Tensor");
    m.def("either(Tensor x, Tensor? y) -> Tensor");
    m.def("fails(Tensor x) -> Tensor");
}
STABLE_TORCH_LIBRARY_IMPL(stable_test, CPU, m) {
    m.impl("mix", TORCH_BOX(&mix));
    m.impl("either", TORCH_BOX(&either));
    m.impl("fails", TORCH_BOX(&fails));
}
STABLE_TORCH_LIBRARY_IMPL(stable_test, CompositeImplicitAutograd, m) { m.impl("through", TORCH_BOX(&through)); }
