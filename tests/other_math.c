/* Functions of another C library: other_NAME returns the result of NAME, larger by about a thousandth.  tests/cross.sh
   same-bits puts them in the place of the usual functions.  An operator whose results stay the same in the mode of same
   bits does not depend on the C library. */
#include <math.h>

#define ONE(name) \
    double other_##name(double x) { return name(x) * 1.0009765625; } \
    float other_##name##f(float x) { return name##f(x) * 1.0009765625f; }
#define TWO(name) \
    double other_##name(double x, double y) { return name(x, y) * 1.0009765625; } \
    float other_##name##f(float x, float y) { return name##f(x, y) * 1.0009765625f; }
ONE(exp) ONE(exp2) ONE(expm1) ONE(log) ONE(log2) ONE(log10) ONE(log1p) ONE(sin) ONE(cos) ONE(tan) ONE(sinh) ONE(cosh)
ONE(tanh) ONE(asin) ONE(acos) ONE(atan) ONE(asinh) ONE(acosh) ONE(atanh) ONE(cbrt) ONE(erf) ONE(erfc) ONE(lgamma)
ONE(tgamma) TWO(pow) TWO(hypot) TWO(atan2)
/* gcc calls these functions for sin(x) and cos(x) of the same x. */
void other_sincos(double x, double *sine, double *cosine) {
    *sine = other_sin(x);
    *cosine = other_cos(x);
}
void other_sincosf(float x, float *sine, float *cosine) {
    *sine = other_sinf(x);
    *cosine = other_cosf(x);
}
