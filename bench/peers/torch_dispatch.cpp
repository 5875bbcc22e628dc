/* Measures in libtorch the calls that bench/dispatch.c measures in opdispatch.
   c++ -O2 -std=c++17 torch_dispatch.cpp -I/usr/include/torch/csrc/api/include -ltorch_cpu -lc10 -o torch_dispatch
   ./torch_dispatch [--quick] [name]

   On Debian: apt-get install g++ libtorch-dev libopenblas0-pthread (libtorch 1.13).  The program prints lines
   `name<TAB>number`.  A number is in nanoseconds per call (for the chains: per operator), or in bytes if the name ends
   in _bytes.  It is the median of several rounds.  Lines that begin with # describe the machine and libtorch.

   To be fair to libtorch, the program starts itself again with an environment in which libtorch is fastest: without
   settings that slow OpenBLAS down, with one thread, with AVX-512 kernels if the machine has AVX-512, and with a malloc
   that keeps large blocks, so that results are in warm memory. */
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/functorch/TensorWrapper.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>
#include <torch/version.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/forward_grad.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#include <malloc.h>
#include <time.h>
#include <unistd.h>

//-- bytes: malloc counted while `counting` is on ----------------------------------------------------------------------

static bool counting;
static long long live_bytes, peak_bytes;

static inline void *count_in(void *p) {
    if (counting && p) {
        live_bytes += (long long)malloc_usable_size(p);
        if (live_bytes > peak_bytes) peak_bytes = live_bytes;
    }
    return p;
}
static inline void count_out(void *p) {
    if (counting && p) live_bytes -= (long long)malloc_usable_size(p);
}
#if defined(__GLIBC__)
#define HAVE_COUNTING 1
extern "C" {
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);
void __libc_free(void *p);
void *malloc(size_t n) { return count_in(__libc_malloc(n)); }
void *calloc(size_t n, size_t size) { return count_in(__libc_calloc(n, size)); }
void *realloc(void *p, size_t n) {
    count_out(p);
    return count_in(__libc_realloc(p, n));
}
void *memalign(size_t align, size_t n) { return count_in(__libc_memalign(align, n)); }
void *aligned_alloc(size_t align, size_t n) { return count_in(__libc_memalign(align, n)); }
int posix_memalign(void **out, size_t align, size_t n) {
    *out = count_in(__libc_memalign(align, n));
    return *out ? 0 : 12;                         /* ENOMEM */
}
void free(void *p) {
    count_out(p);
    __libc_free(p);
}
}
#else
#define HAVE_COUNTING 0
#endif

//-- the operators ----------------------------------------------------------------------------------------------------

static void noop(const at::Tensor &) {}
static at::Tensor noop1(const at::Tensor &x) { return x; }
static at::Tensor noop2(const at::Tensor &x, const at::Tensor &, int64_t) { return x; }

typedef c10::TypedOperatorHandle<void(const at::Tensor &)> noop_handle;
typedef c10::TypedOperatorHandle<at::Tensor(const at::Tensor &)> noop1_handle;
typedef c10::TypedOperatorHandle<at::Tensor(const at::Tensor &, const at::Tensor &, int64_t)> noop2_handle;

template <class Handle> static Handle find(const char *name);
template <> noop_handle find(const char *name) {
    return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<void(const at::Tensor &)>();
}
template <> noop1_handle find(const char *name) {
    return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<at::Tensor(const at::Tensor &)>();
}
template <> noop2_handle find(const char *name) {
    return c10::Dispatcher::singleton().findSchemaOrThrow(name, "")
        .typed<at::Tensor(const at::Tensor &, const at::Tensor &, int64_t)>();
}

/* Autograd kernels: one passes the key set on; the older form uses a guard and a new call. */
static void noop_autograd(c10::DispatchKeySet keys, const at::Tensor &x) {
    static const noop_handle op = find<noop_handle>("peer::noop_ad");
    op.redispatch(keys & c10::after_autograd_keyset, x);
}
static at::Tensor noop1_autograd(c10::DispatchKeySet keys, const at::Tensor &x) {
    static const noop1_handle op = find<noop1_handle>("peer::noop1_ad");
    return op.redispatch(keys & c10::after_autograd_keyset, x);
}
static at::Tensor noop2_autograd(c10::DispatchKeySet keys, const at::Tensor &x, const at::Tensor &y, int64_t i) {
    static const noop2_handle op = find<noop2_handle>("peer::noop2_ad");
    return op.redispatch(keys & c10::after_autograd_keyset, x, y, i);
}
static at::Tensor noop1_guarded(const at::Tensor &x) {
    static const noop1_handle op = find<noop1_handle>("peer::noop1_guard");
    at::AutoDispatchBelowAutograd below;
    return op.call(x);
}

TORCH_LIBRARY(peer, m) {
    m.def("noop(Tensor self) -> ()");
    m.def("noop1(Tensor self) -> Tensor");
    m.def("noop2(Tensor self, Tensor other, int n) -> Tensor");
    m.def("noop_ad(Tensor self) -> ()");
    m.def("noop1_ad(Tensor self) -> Tensor");
    m.def("noop2_ad(Tensor self, Tensor other, int n) -> Tensor");
    m.def("noop1_guard(Tensor self) -> Tensor");
}
TORCH_LIBRARY_IMPL(peer, CPU, m) {
    m.impl("noop", TORCH_FN(noop));
    m.impl("noop1", TORCH_FN(noop1));
    m.impl("noop2", TORCH_FN(noop2));
    m.impl("noop_ad", TORCH_FN(noop));
    m.impl("noop1_ad", TORCH_FN(noop1));
    m.impl("noop2_ad", TORCH_FN(noop2));
    m.impl("noop1_guard", TORCH_FN(noop1));
}
TORCH_LIBRARY_IMPL(peer, Autograd, m) {
    m.impl("noop_ad", TORCH_FN(noop_autograd));
    m.impl("noop1_ad", TORCH_FN(noop1_autograd));
    m.impl("noop2_ad", TORCH_FN(noop2_autograd));
    m.impl("noop1_guard", TORCH_FN(noop1_guarded));
}

//-- timing -----------------------------------------------------------------------------------------------------------

static bool quick;
static std::string only;

/* Returns the processor time of this thread, as in bench/dispatch.c. */
static double now() {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}
static bool wanted(const char *name) { return only.empty() || std::strstr(name, only.c_str()) != nullptr; }
static double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}
static void report(const std::string &name, double value) {
    std::printf("%s\t%.2f\n", name.c_str(), value);
    std::fflush(stdout);
}

/* Measures n calls per round, after one round that is not counted. */
template <class F> static void bench(const char *name, int64_t n, F call) {
    std::vector<double> rounds;
    if (!wanted(name)) return;
    if (quick) n = n / 20 + 1;
    for (int round = -1; round < (quick ? 3 : 11); round++) {
        double start = now();
        for (int64_t i = 0; i < n; i++) call();
        double ns = (now() - start) / (double)n;
        if (round >= 0) rounds.push_back(ns);
    }
    report(name, median(rounds));
}

/* Keeps the compiler from removing the code that computes a value. */
static volatile int64_t sink;
static void use(const at::Tensor &t) { sink = t.defined(); }

static void bench_dispatch() {
    at::Tensor x = at::ones({1}), y = at::ones({1});
    const noop_handle h0 = find<noop_handle>("peer::noop"), a0 = find<noop_handle>("peer::noop_ad");
    const noop1_handle h1 = find<noop1_handle>("peer::noop1"), a1 = find<noop1_handle>("peer::noop1_ad");
    const noop1_handle g1 = find<noop1_handle>("peer::noop1_guard");
    const noop2_handle h2 = find<noop2_handle>("peer::noop2"), a2 = find<noop2_handle>("peer::noop2_ad");
    bench("noop", 2000000, [&] { h0.call(x); });
    bench("noop1", 2000000, [&] { use(h1.call(x)); });
    bench("noop2", 2000000, [&] { use(h2.call(x, y, 3)); });
    bench("noop_autograd", 2000000, [&] { a0.call(x); });
    bench("noop1_autograd", 2000000, [&] { use(a1.call(x)); });
    bench("noop2_autograd", 2000000, [&] { use(a2.call(x, y, 3)); });
    bench("noop1_autograd_guard", 2000000, [&] { use(g1.call(x)); });
    c10::OperatorHandle boxed = c10::Dispatcher::singleton().findSchemaOrThrow("peer::noop1", "");
    torch::jit::Stack stack;
    bench("noop1_boxed", 2000000, [&] {
        stack.emplace_back(x);
        boxed.callBoxed(&stack);
        stack.clear();
    });
    bench("find", 500000, [&] { sink = c10::Dispatcher::singleton().findSchema({"peer::noop1", ""}).has_value(); });
}

static void bench_small() {
    {
        c10::InferenceMode guard;
        at::Tensor a = at::ones({1}), b = at::ones({1});
        bench("add1_inference", 200000, [&] { use(at::add(a, b)); });
    }
    at::Tensor a = at::ones({1}), b = at::ones({1}), out = at::empty({1});
    bench("add1_normal", 200000, [&] { use(at::add(a, b)); });
    bench("add1_out", 200000, [&] { use(at::add_out(out, a, b)); });
    bench("add1_inplace", 200000, [&] { use(out.add_(b)); });
    bench("empty16", 200000, [&] { use(at::empty({16})); });
    at::Tensor r = at::ones({1});
    r.requires_grad_(true);
    bench("add1_recording", 200000, [&] { use(at::add(r, b)); });
    if (wanted("add1_open") || wanted("add1_dual")) {
        const uint64_t level = torch::autograd::ForwardADLevel::get_next_idx();
        {
            at::Tensor da = at::_make_dual(a, b, (int64_t)level), db = at::_make_dual(b, a, (int64_t)level);
            bench("add1_open", 200000, [&] { use(at::add(a, b)); });
            bench("add1_dual", 100000, [&] { use(at::add(da, db)); });
        }
        torch::autograd::ForwardADLevel::release_idx(level);
    }
}

/* Computes y = y * w n times on one element, then runs backward, and then frees the graph. */
static void bench_chain(int64_t n, bool w_grad) {
    char base[64];
    std::snprintf(base, sizeof base, "chain%s_%lld", w_grad ? "_w" : "", (long long)n);
    if (!wanted(base)) return;
    std::vector<double> forward, backward, release;
    at::Tensor x = at::ones({1}), w = at::ones({1});
    x.requires_grad_(true);
    w.requires_grad_(w_grad);
    int rounds = n <= 1000 ? (quick ? 5 : 51) : (quick ? 1 : 7);
    for (int round = -1; round < rounds; round++) {
        double t0 = now();
        at::Tensor y = x;
        for (int64_t i = 0; i < n; i++) y = at::mul(y, w);
        double t1 = now();
        y.backward();
        double t2 = now();
        y.reset();
        double t3 = now();
        x.mutable_grad() = at::Tensor();
        w.mutable_grad() = at::Tensor();
        if (round < 0) continue;
        forward.push_back((t1 - t0) / (double)n);
        backward.push_back((t2 - t1) / (double)n);
        release.push_back((t3 - t2) / (double)n);
    }
    report(std::string(base) + "_forward", median(forward));
    report(std::string(base) + "_backward", median(backward));
    report(std::string(base) + "_free", median(release));
    if (!HAVE_COUNTING) return;
    live_bytes = peak_bytes = 0;
    counting = true;
    {
        at::Tensor y = x;
        for (int64_t i = 0; i < n; i++) y = at::mul(y, w);
        y.backward();
    }
    counting = false;
    report(std::string(base) + "_node_bytes", (double)peak_bytes / (double)n);
}

/* Adds n leaves to one sum. */
static void bench_wide(int64_t n) {
    const std::string base = "wide_" + std::to_string(n);
    if (!wanted(base.c_str())) return;
    std::vector<double> forward, backward;
    for (int round = -1; round < (quick ? 1 : 7); round++) {
        std::vector<at::Tensor> x;
        for (int64_t i = 0; i < n; i++) x.push_back(at::ones({1}).requires_grad_());
        double t0 = now();
        at::Tensor sum = x[0];
        for (int64_t i = 1; i < n; i++) sum = at::add(sum, x[i]);
        double t1 = now();
        sum.backward();
        double t2 = now();
        if (round < 0) continue;
        forward.push_back((t1 - t0) / (double)n);
        backward.push_back((t2 - t1) / (double)n);
    }
    report(base + "_forward", median(forward));
    report(base + "_backward", median(backward));
}

/* The second derivative through a chain of n operators. */
static void bench_second(int64_t n) {
    const std::string base = "second_" + std::to_string(n);
    if (!wanted(base.c_str())) return;
    std::vector<double> once, twice;
    for (int round = -1; round < (quick ? 3 : 11); round++) {
        at::Tensor x = at::ones({1}).requires_grad_(), y = x;
        for (int64_t i = 0; i < n; i++) y = at::tanh(y);
        double t0 = now();
        at::Tensor g = torch::autograd::grad({y}, {x}, {}, true, true)[0];
        double t1 = now();
        use(torch::autograd::grad({g}, {x})[0]);
        double t2 = now();
        if (round < 0) continue;
        once.push_back((t1 - t0) / (double)n);
        twice.push_back((t2 - t1) / (double)n);
    }
    report(base + "_once", median(once));
    report(base + "_twice", median(twice));
}

static void bench_kernels() {
    c10::InferenceMode guard;
    at::Tensor a = at::randn({512, 512}), b = at::randn({512, 512});
    at::Tensor x = at::randn({65536}), y = at::randn({65536}), out = at::empty({65536});
    bench("gemm512_f32", 100, [&] { use(at::mm(a, b)); });
    bench("add_64k", 20000, [&] { use(at::add(x, y)); });
    bench("add_64k_out", 20000, [&] { use(at::add_out(out, x, y)); });
    bench("exp_64k", 4000, [&] { use(at::exp(x)); });
    bench("exp_64k_out", 4000, [&] { use(at::exp_out(out, x)); });
}

/* Uses functorch as Python does: enters a level, wraps the inputs, and unwraps the result. */
template <class F> static at::Tensor vmapped(std::vector<at::Tensor> in, F f) {
    namespace ft = at::functorch;
    const int64_t size = in[0].size(0);
    const int64_t level = ft::initAndPushDynamicLayer(ft::TransformType::Vmap, size, ft::RandomnessType::Error);
    for (at::Tensor &t : in) t = ft::addBatchDim(t, 0, level);
    at::Tensor out = f(in);
    out = ft::maybeGetBatchedImpl(out)->value();
    ft::popDynamicLayerAndDeleteMetadata();
    return out;
}
/* Returns the gradients of the scalar f with respect to `by`, inside of the current levels. */
template <class F> static std::vector<at::Tensor> gradients(std::vector<at::Tensor> by, F f) {
    namespace ft = at::functorch;
    const int64_t level = ft::initAndPushDynamicLayer(ft::TransformType::Grad, c10::nullopt, c10::nullopt, true);
    std::vector<at::Tensor> wrapped, grads;
    for (const at::Tensor &t : by) {
        at::Tensor w = ft::makeTensorWrapper(t, level);
        ft::setInplaceRequiresGradAllowed(true);
        w.requires_grad_();
        ft::setInplaceRequiresGradAllowed(false);
        wrapped.push_back(w);
    }
    at::Tensor loss = f(wrapped);
    grads = torch::autograd::grad({loss}, wrapped, {}, true, true);
    for (at::Tensor &g : grads)
        if (auto *w = ft::maybeGetTensorWrapper(g)) g = w->value();
    ft::popDynamicLayerAndDeleteMetadata();
    return grads;
}
static at::Tensor network_loss(const std::vector<at::Tensor> &w, const at::Tensor &x, const at::Tensor &y) {
    at::Tensor h = at::tanh(at::linear(x, w[0], w[1]));
    return at::cross_entropy_loss(at::linear(h, w[2], w[3]).unsqueeze(0), y.unsqueeze(0));
}
static void bench_transforms() {
    at::Tensor x = at::ones({8}), y = at::ones({8});
    bench("vmap_level", 200000, [&] { use(vmapped({x}, [](std::vector<at::Tensor> &in) { return in[0]; })); });
    bench("add8", 200000, [&] { use(at::add(x, y)); });
    if (wanted("vmap_add")) {
        namespace ft = at::functorch;
        const int64_t level = ft::initAndPushDynamicLayer(ft::TransformType::Vmap, 8, ft::RandomnessType::Error);
        at::Tensor a = ft::addBatchDim(x, 0, level), b = ft::addBatchDim(y, 0, level);
        bench("vmap_add", 200000, [&] { use(at::add(a, b)); });
        a.reset();
        b.reset();
        ft::popDynamicLayerAndDeleteMetadata();
    }
    for (int64_t n : {16, 512}) {
        at::Tensor a = at::randn({128, n}), b = at::randn({128, n});
        const std::string name = "vmap_dot_" + std::to_string(n), sum = "sum_mul_" + std::to_string(n);
        bench(name.c_str(), 5000, [&] {
            use(vmapped({a, b}, [](std::vector<at::Tensor> &in) { return at::dot(in[0], in[1]); }));
        });
        bench(sum.c_str(), 5000, [&] { use((a * b).sum(1)); });
    }
    std::vector<at::Tensor> w{at::randn({256, 784}) * 0.03, at::zeros({256}), at::randn({10, 256}) * 0.06,
                              at::zeros({10})};
    at::Tensor images = at::randn({64, 784}), labels = at::randint(0, 10, {64}, at::kLong);
    bench("per_example", 20, [&] {
        namespace ft = at::functorch;
        const int64_t level = ft::initAndPushDynamicLayer(ft::TransformType::Vmap, 64, ft::RandomnessType::Error);
        at::Tensor bx = ft::addBatchDim(images, 0, level), by = ft::addBatchDim(labels, 0, level);
        std::vector<at::Tensor> g =
            gradients(w, [&](const std::vector<at::Tensor> &v) { return network_loss(v, bx, by); });
        for (at::Tensor &t : g) use(ft::maybeGetBatchedImpl(t)->value());
        ft::popDynamicLayerAndDeleteMetadata();
    });
    bench("per_example_loop", 5, [&] {
        for (int i = 0; i < 64; i++) {
            std::vector<at::Tensor> v;
            for (const at::Tensor &t : w) v.push_back(t.detach().requires_grad_());
            use(torch::autograd::grad({network_loss(v, images[i], labels[i])}, v)[0]);
        }
    });
}

/* The function for torch.jit.trace, whose graph its executor may optimize. */
static at::Tensor hundred(const at::Tensor &a, const at::Tensor &b) {
    at::Tensor x = a;
    for (int k = 0; k < 25; k++) x = at::relu(at::sub(at::mul(at::add(x, b), b), a));
    return x;
}
static void bench_graphs() {
    using torch::jit::Stack;
    at::Tensor a = at::full({16}, 0.5), b = at::full({16}, 0.75);
    auto trace = [&] {
        return torch::jit::tracer::trace({a, b}, [](Stack s) { return Stack{hundred(s[0].toTensor(), s[1].toTensor())}; },
                                         [](const at::Tensor &) { return std::string(); });
    };
    bench("graph_called", 2000, [&] { use(hundred(a, b)); });
    if (wanted("graph_run")) {
        torch::jit::GraphExecutor executor(trace().first->graph, "hundred");
        bench("graph_run", 2000, [&] {
            Stack stack{a, b};
            executor.run(stack);
            use(stack[0].toTensor());
        });
    }
    bench("graph_trace", 50, [&] { trace(); });
}

/* Steps of libtorch's C++ optimizers, which have no fused form. */
static void bench_steps() {
    auto parameter = [](int64_t n) {
        at::Tensor p = at::zeros({n}).requires_grad_();
        p.mutable_grad() = at::full({n}, 0.5);
        return p;
    };
    if (!only.empty() && only.find("step") == std::string::npos) return;
    std::vector<at::Tensor> big{parameter(8 << 20)}, small;
    for (int i = 0; i < 100; i++) small.push_back(parameter(16));
    torch::optim::Adam adam(big, torch::optim::AdamOptions(1e-3)), adam_small(small, torch::optim::AdamOptions(1e-3));
    torch::optim::SGD sgd(big, torch::optim::SGDOptions(1e-3).momentum(0.9));
    bench("step_adam", 1, [&] { adam.step(); });
    bench("step_sgd", 1, [&] { sgd.step(); });
    bench("step_adam_small", 100, [&] { adam_small.step(); });
}

/* Sets environment variables that libraries read when they are loaded, and starts the program again. */
static void restart_with_environment(char **argv) {
    if (std::getenv("OPD_PEER_READY")) return;
    const char *gone[] = {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OPENBLAS_VERBOSE", "MKL_DEBUG_CPU_TYPE"};
    for (const char *name : gone) unsetenv(name);
    setenv("OPD_PEER_READY", "1", 1);
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    setenv("OMP_NUM_THREADS", "1", 1);
    setenv("OMP_WAIT_POLICY", "PASSIVE", 1);
    setenv("MALLOC_MMAP_MAX_", "0", 1);
    setenv("MALLOC_TRIM_THRESHOLD_", "4294967296", 1);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        setenv("ATEN_CPU_CAPABILITY", "avx512", 0);
#endif
    execv("/proc/self/exe", argv);
}

/* Returns which BLAS is loaded: Debian's reference BLAS is thirty times slower than OpenBLAS. */
static std::string loaded_blas() {
    char line[1024], found[1024] = "none";
    std::FILE *f = std::fopen("/proc/self/maps", "r");
    while (f && std::fgets(line, sizeof line, f)) {
        char *path = std::strchr(line, '/');
        if (!path) continue;
        path[std::strcspn(path, "\n")] = 0;
        if (std::strstr(path, "openblas")) { std::strcpy(found, path); break; }
        if (std::strstr(path, "libblas") || std::strstr(path, "mkl")) std::strcpy(found, path);
    }
    if (f) std::fclose(f);
    return found;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (!std::strcmp(argv[i], "--quick")) quick = true;
        else only = argv[i];
    }
    restart_with_environment(argv);
    at::set_num_threads(1);
    at::manual_seed(1);
    const char *capability = std::getenv("ATEN_CPU_CAPABILITY");
    std::printf("# libtorch %s, threads %d, kernels %s\n", TORCH_VERSION, at::get_num_threads(),
                capability ? capability : "default");
    std::string blas = loaded_blas();
    std::printf("# blas %s\n", blas.c_str());
    if (blas.find("openblas") == std::string::npos && blas.find("mkl") == std::string::npos)
        std::fprintf(stderr, "torch_dispatch: no OpenBLAS (apt-get install libopenblas0-pthread): gemm is no peer\n");
    bench_dispatch();
    bench_small();
    bench_chain(1000, false);
    bench_chain(100000, false);
    bench_chain(100000, true);
    bench_wide(10000);
    bench_wide(100000);
    bench_second(1000);
    bench_second(10000);
    bench_kernels();
    bench_transforms();
    bench_graphs();
    bench_steps();
    return 0;
}
