/* Returns x / y rounded down, as Python's // does.  Computed from the remainder, so that the result is
   consistent with remainder(x, y) (at::native::div_floor_kernel). */
OPD_FORMULA_QUALIFIERS OPD_T OPD_H(div_floor)(OPD_T x, OPD_T y) {
    if (y == 0) { return x / y; }
    const OPD_T mod = OPD_FN(fmod)(x, y);
    OPD_T q = (x - mod) / y;
    if (mod != 0 && (y < 0) != (mod < 0)) { q -= 1; }
    if (q == 0) { return OPD_FN(copysign)((OPD_T)0, x / y); }
    const OPD_T f = OPD_FN(floor)(q);
    return q - f > (OPD_T)0.5 ? f + 1 : f;
}
OPD_FORMULA_QUALIFIERS OPD_T OPD_H(remainder)(OPD_T x, OPD_T y) {
    OPD_T mod = OPD_FN(fmod)(x, y);
    return mod != 0 && (y < 0) != (mod < 0) ? mod + y : mod;
}
OPD_FORMULA_QUALIFIERS OPD_T OPD_H(clamp)(OPD_T x, OPD_T y, OPD_T z) {
    const OPD_T m = ((x > y) | (x != x)) ? x : y;
    return ((m < z) | (m != m)) ? m : z;
}
/* Returns x, limited to [0, 6].  Compilers make fewer vector instructions of two steps than of nested conditions. */
OPD_FORMULA_QUALIFIERS OPD_T OPD_H(relu6)(OPD_T x) {
    const OPD_T low = x < 0 ? 0 : x;
    return low > 6 ? 6 : low;
}
/* Returns x, or the number that replaces NaN, infinity or -infinity. */
OPD_FORMULA_QUALIFIERS OPD_T OPD_H(nan_to_num)(OPD_T x, OPD_T nan, OPD_T posinf, OPD_T neginf) {
    const OPD_T infinite = x < 0 ? neginf : posinf, other = x == x ? infinite : nan;
    return OPD_FN(fabs)(x) < (OPD_T)INFINITY ? x : other;
}
OPD_FORMULA_QUALIFIERS OPD_T OPD_H(logaddexp)(OPD_T x, OPD_T y) {
    OPD_T m = x > y || x != x ? x : y;
    if (x == y && OPD_FN(fabs)(x) == (OPD_T)INFINITY) { return x; }
    return m + OPD_FN(log1p)(OPD_FN(exp)(-OPD_FN(fabs)(x - y)));
}
OPD_FORMULA_QUALIFIERS OPD_T OPD_H(logaddexp2)(OPD_T x, OPD_T y) {
    OPD_T m = x > y || x != x ? x : y;
    if (x == y && OPD_FN(fabs)(x) == (OPD_T)INFINITY) { return x; }
    return m + OPD_FN(log1p)(OPD_FN(exp2)(-OPD_FN(fabs)(x - y))) * (OPD_T)1.44269504088896340736;
}
/* Returns the argument of the tanh in gelu's approximation: sqrt(2 / pi) * (x + 0.044715 x^3). */
OPD_FORMULA_QUALIFIERS OPD_T OPD_H(gelu_inner)(OPD_T x) {
    return (OPD_T)0.79788456080286535588 * (x + (OPD_T)0.044715 * x * x * x);
}
/* Returns the derivative of gelu, Phi(x) + x * phi(x): Phi is the normal distribution function, phi its density. */
OPD_FORMULA_QUALIFIERS OPD_T OPD_H(gelu_slope)(OPD_T x) {
    return (OPD_T)0.5 * (1 + OPD_FN(erf)(x * (OPD_T)0.70710678118654752440)) +
           x * OPD_FN(exp)((OPD_T)-0.5 * x * x) * (OPD_T)0.39894228040143267794;
}
OPD_FORMULA_QUALIFIERS OPD_T OPD_H(gelu_tanh_slope)(OPD_T x) {
    OPD_T t = OPD_FN(tanh)(OPD_H(gelu_inner)(x));
    OPD_T inner = (OPD_T)0.79788456080286535588 * (1 + 3 * (OPD_T)0.044715 * x * x);
    return (OPD_T)0.5 * (1 + t) + (OPD_T)0.5 * x * (1 - t * t) * inner;
}
OPD_FORMULA_QUALIFIERS OPD_T OPD_H(silu_slope)(OPD_T x) {
    OPD_T s = 1 / (1 + OPD_FN(exp)(-x));
    return s * (1 + x * (1 - s));
}
OPD_FORMULA_QUALIFIERS OPD_T OPD_H(mish_slope)(OPD_T x) {
    OPD_T s = 1 / (1 + OPD_FN(exp)(-x)), t = OPD_FN(tanh)(OPD_FN(log1p)(OPD_FN(exp)(x)));
    return t + x * s * (1 - t * t);
}
/* Returns e / (1 + e) with e = exp(-|x|). */
OPD_FORMULA_QUALIFIERS OPD_T OPD_H(exp_ratio)(OPD_T x) {
    OPD_T e = OPD_FN(exp)(-OPD_FN(fabs)(x));
    return e / (1 + e);
}
OPD_FORMULA_QUALIFIERS OPD_T OPD_H(logit)(OPD_T x, OPD_T low, OPD_T high) {
    OPD_T p = x < low ? low : x > high ? high : x;
    return p == 1 ? (OPD_T)INFINITY : OPD_FN(log)(p / (1 - p));
}
/* Returns x, rounded to the significant bits of a bfloat16 (bits is 16) or float16 (13), ties to even.  `bits` is the
   number of low bits of a float32 that are cleared.  The exponent range stays that of float32. */
OPD_FORMULA_QUALIFIERS OPD_T OPD_H(rounded)(OPD_T x, int bits) {
    union { float f; uint32_t u; } v;
    v.f = (float)x;
    if ((v.u & 0x7f800000u) == 0x7f800000u) { return x; }
    v.u += ((1u << (bits - 1)) - 1) + (v.u >> bits & 1);
    v.u &= ~((1u << bits) - 1);
    return (OPD_T)v.f;
}
OPD_FORMULA_QUALIFIERS OPD_T OPD_H(as_bf16)(OPD_T x) { return OPD_H(rounded)(x, 16); }
OPD_FORMULA_QUALIFIERS OPD_T OPD_H(as_f16)(OPD_T x) { return OPD_H(rounded)(x, 13); }
/* Returns the bfloat16 next to x in the direction of y: one step of the upper 16 bits of a float32. */
OPD_FORMULA_QUALIFIERS OPD_T OPD_H(nextafter_bf16)(OPD_T x, OPD_T y) {
    union { float f; uint32_t u; } v;
    if (x != x || y != y) { return x + y; }
    if (x == y) { return y; }
    v.f = (float)x;
    v.u = x == 0 ? 0x00010000u | (y < 0 ? 0x80000000u : 0u) : (x > 0) == (y > x) ? v.u + 0x00010000u
        : v.u - 0x00010000u;
    return (OPD_T)v.f;
}
/* Returns the float16 next to x in the direction of y.  Below 2^-14, float16 numbers are evenly spaced; above, the next
   number is one step in bit 13 of a float32. */
OPD_FORMULA_QUALIFIERS OPD_T OPD_H(nextafter_f16)(OPD_T x, OPD_T y) {
    const float even = 0.00006103515625f, step = 0.000000059604644775390625f;          /* 2^-14, 2^-24 */
    union { float f; uint32_t u; } v;
    if (x != x || y != y) { return x + y; }
    if (x == y) { return y; }
    const bool away = x == 0 || (x > 0) == (y > x), below = x < 0 || (x == 0 && y < 0);
    v.f = below ? (float)-x : (float)x;
    if (v.f > 65504.0f) { v.f = 65504.0f; }                                             /* from infinity */
    else if (v.f < even || (v.f == even && !away)) { v.f = away ? v.f + step : v.f - step; }
    else { v.u = away ? v.u + 0x2000u : v.u - 0x2000u; }
    return (OPD_T)(below ? -v.f : v.f);
}
