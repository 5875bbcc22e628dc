/* Measures Fourier transforms, special functions and complex numbers, beside PyTorch on the same numbers.
   cc -O2 bench/functions.c -o bench_functions -lm -lpthread -ldl
   ./bench_functions [--quick] [--filter TEXT] [--python PATH] [--threads N] [--level LEVEL] [--markdown] [--help]
   ci: --filter 1009

   A row is an expression of TorchScript, which both sides run in turns (see bench/rows.h).  PyTorch's time includes a
   call from Python, which takes about a microsecond.  This matters only for rows of 1,024 elements. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include "rows.h"

/* Rows of an expression with one tensor a, or with a and b, whose elements have the given distributions. */
#define ONE(section, expression, dtype, sizes, a) {section, expression, dtype " " sizes a, expression, BENCH_LOOSE}
#define TWO(section, expression, dtype, sizes, a, b) \
    {section, expression, dtype " " sizes a "; " dtype " " sizes b, expression, BENCH_LOOSE}
#define LINE(section, expression, dtype, a) \
    ONE(section, expression, dtype, "1024", a), ONE(section, expression, dtype, "65536", a), \
    ONE(section, expression, dtype, "1048576", a)
#define LINES(section, expression, dtype, a, b) \
    TWO(section, expression, dtype, "1024", a, b), TWO(section, expression, dtype, "65536", a, b), \
    TWO(section, expression, dtype, "1048576", a, b)
#define FUNCTION(expression, a) \
    LINE("functions", "torch." expression, "f32", a), LINE("functions", "torch." expression, "f64", a)
#define FUNCTIONS(expression, a, b) \
    LINES("functions", "torch." expression, "f32", a, b), LINES("functions", "torch." expression, "f64", a, b)
#define COMPLEX(expression) \
    LINE("complex", "torch." expression, "c64", ""), LINE("complex", "torch." expression, "c128", "")
#define COMPLEXES(expression) \
    LINES("complex", "torch." expression, "c64", "", ""), LINES("complex", "torch." expression, "c128", "", "")
#define LENGTHS(expression, dtype) \
    ONE("transforms", expression, dtype, "1024", ""), ONE("transforms", expression, dtype, "1000", ""), \
    ONE("transforms", expression, dtype, "1009", ""), ONE("transforms", expression, dtype, "3072", ""), \
    ONE("transforms", expression, dtype, "6000", ""), ONE("transforms", expression, dtype, "65536", ""), \
    ONE("transforms", expression, dtype, "65537", ""), ONE("transforms", expression, dtype, "98304", ""), \
    ONE("transforms", expression, dtype, "1000000", ""), ONE("transforms", expression, dtype, "1048576", ""), \
    ONE("transforms", expression, dtype, "64,1024", ""), ONE("transforms", expression, dtype, "1024,64", ""), \
    ONE("transforms", expression, dtype, "64,1000", ""), ONE("transforms", expression, dtype, "64,1009", "")
#define PLANES(expression, dtype) \
    ONE("planes", expression, dtype, "64,64", ""), ONE("planes", expression, dtype, "256,256", ""), \
    ONE("planes", expression, dtype, "1000,1000", ""), ONE("planes", expression, dtype, "1024,1024", "")
#define SQUARES(dtype) \
    TWO("products", "torch.matmul(a, b)", dtype, "32,32", "", ""), \
    TWO("products", "torch.matmul(a, b)", dtype, "128,128", "", ""), \
    TWO("products", "torch.matmul(a, b)", dtype, "512,512", "", "")

static const bench_row rows[] = {
    LENGTHS("torch.fft.fft(a)", "c64"), LENGTHS("torch.fft.fft(a)", "c128"), LENGTHS("torch.fft.ifft(a)", "c64"),
    LENGTHS("torch.fft.rfft(a)", "f32"), LENGTHS("torch.fft.rfft(a)", "f64"), LENGTHS("torch.fft.irfft(a)", "c64"),
    LENGTHS("torch.fft.hfft(a)", "c64"), LENGTHS("torch.fft.ihfft(a)", "f32"),
    PLANES("torch.fft.fft2(a)", "c64"), PLANES("torch.fft.fft2(a)", "c128"), PLANES("torch.fft.rfft2(a)", "f32"),
    PLANES("torch.fft.irfft2(a)", "c64"), PLANES("torch.fft.fftn(a)", "c64"),
    FUNCTION("lgamma(a)", " p"), FUNCTION("lgamma(a)", " w"), FUNCTION("digamma(a)", " p"), FUNCTION("digamma(a)", " w"),
    FUNCTION("polygamma(2, a)", " p"), FUNCTION("erf(a)", ""), FUNCTION("erfc(a)", ""), FUNCTION("erfinv(a)", " s"),
    FUNCTION("special.erfcx(a)", " w"), FUNCTION("i0(a)", " w"), FUNCTION("special.i0e(a)", " w"),
    FUNCTION("special.i1(a)", " w"), FUNCTION("special.i1e(a)", " w"), FUNCTIONS("special.gammainc(a, b)", " p", " p"),
    FUNCTIONS("special.gammaincc(a, b)", " p", " p"), FUNCTIONS("special.zeta(a, b)", " q", " p"),
    FUNCTION("special.ndtr(a)", ""), FUNCTION("special.ndtri(a)", " u"), FUNCTION("special.log_ndtr(a)", " w"),
    FUNCTION("special.entr(a)", " p"), FUNCTIONS("special.xlog1py(a, b)", "", " p"),
    FUNCTIONS("special.xlogy(a, b)", "", " p"), FUNCTION("special.expit(a)", ""), FUNCTION("logit(a)", " u"),
    FUNCTION("sinc(a)", " w"), FUNCTION("special.bessel_j0(a)", " w"), FUNCTION("special.bessel_j1(a)", " w"),
    FUNCTION("special.bessel_y0(a)", " p"), FUNCTION("special.bessel_y1(a)", " p"),
    FUNCTION("special.modified_bessel_i0(a)", " w"), FUNCTION("special.modified_bessel_i1(a)", " w"),
    FUNCTION("special.modified_bessel_k0(a)", " p"), FUNCTION("special.modified_bessel_k1(a)", " p"),
    FUNCTION("special.scaled_modified_bessel_k0(a)", " p"), FUNCTION("special.scaled_modified_bessel_k1(a)", " p"),
    FUNCTION("special.spherical_bessel_j0(a)", " w"), FUNCTION("special.airy_ai(a)", " w"),
    FUNCTIONS("special.chebyshev_polynomial_t(a, b)", " s", " <9"),
    FUNCTIONS("special.chebyshev_polynomial_u(a, b)", " s", " <9"),
    FUNCTIONS("special.chebyshev_polynomial_v(a, b)", " s", " <9"),
    FUNCTIONS("special.chebyshev_polynomial_w(a, b)", " s", " <9"),
    FUNCTIONS("special.shifted_chebyshev_polynomial_t(a, b)", " u", " <9"),
    FUNCTIONS("special.hermite_polynomial_h(a, b)", "", " <9"),
    FUNCTIONS("special.hermite_polynomial_he(a, b)", "", " <9"),
    FUNCTIONS("special.laguerre_polynomial_l(a, b)", "", " <9"),
    FUNCTIONS("special.legendre_polynomial_p(a, b)", " s", " <9"),
    COMPLEXES("add(a, b)"), COMPLEXES("sub(a, b)"), COMPLEXES("mul(a, b)"), COMPLEXES("div(a, b)"),
    COMPLEX("reciprocal(a)"), COMPLEX("square(a)"), COMPLEX("neg(a)"), COMPLEX("conj_physical(a)"), COMPLEX("abs(a)"),
    COMPLEX("angle(a)"), COMPLEX("sgn(a)"), COMPLEX("exp(a)"), COMPLEX("log(a)"), COMPLEX("sqrt(a)"), COMPLEX("rsqrt(a)"),
    COMPLEX("sin(a)"), COMPLEX("cos(a)"), COMPLEX("tanh(a)"), COMPLEX("asin(a)"), COMPLEX("atan(a)"),
    COMPLEXES("pow(a, b)"), COMPLEX("sigmoid(a)"), COMPLEXES("eq(a, b)"), COMPLEX("sum(a)"), COMPLEX("mean(a)"),
    COMPLEX("view_as_real(a)"), COMPLEX("clone(a)"), COMPLEXES("dot(a, b)"), COMPLEXES("vdot(a, b)"),
    LINES("complex", "torch.complex(a, b)", "f32", "", ""), LINES("complex", "torch.polar(a, b)", "f32", " +", ""),
    SQUARES("c64"), SQUARES("c128"),
};

int main(int argc, char **argv) { return bench_main(argc, argv, rows, sizeof rows / sizeof *rows); }
