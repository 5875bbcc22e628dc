/* Zeros of Bessel functions, for the processor (functions.c, vectors.c) and CUDA (special.cu). */

#define OPDI_PI 3.14159265358979323846
OPDI_LOOPS_BEGIN
/* Returns (x^2 - z1^2) (x^2 - z2^2) for the two zeros z1, z2 of j0 below 8.  Each zero is stored in two parts, so that
   the digits that it shares with x cancel exactly. */
OPDI_ALWAYS double opdi_j0_zeros(double x) {
    const double first = ((x - 2.404825557695773) + 1.176691651530894e-16) * (x + 2.404825557695773);
    return first * (((x - 5.520078110286311) - 8.088597146146722e-17) * (x + 5.520078110286311));
}
OPDI_ALWAYS double opdi_j1_zeros(double x) {
    const double first = ((x - 3.8317059702075125) + 1.5269184090088067e-16) * (x + 3.8317059702075125);
    return first * (((x - 7.015586669815619) + 9.414165653410389e-17) * (x + 7.015586669815619));
}
/* Returns x^2 - z^2, where z = 0.8935769662791675 is the first zero of y0.  y0 is the sum of 2 / pi log(x / z) j0(x),
   which is 0 at z, and a multiple of x^2 - z^2. */
OPDI_ALWAYS double opdi_y0_zero(double x) {
    return ((x - 0.8935769662791675) - 2.6596231539720385e-17) * (x + 0.8935769662791675);
}
OPDI_LOOPS_END
#define OPDI_Y0_INVERSE 1.1190977808704887
