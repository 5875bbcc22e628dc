OPD_FORMULA_QUALIFIERS OPD_T OPD_HELPER(div_trunc)(OPD_T x, OPD_T y OPD_NOTES) {
    if (y == 0) {
        OPD_NOTE(1);
        return 0;
    }
    if (y != -1) { return x / y; }
    if (x == OPD_SMALLEST) { OPD_NOTE(2); }
    return OPD_NEG(x);
}
OPD_FORMULA_QUALIFIERS OPD_T OPD_HELPER(fmod)(OPD_T x, OPD_T y OPD_NOTES) {
    if (y == 0) {
        OPD_NOTE(1);
        return 0;
    }
    return y == -1 ? 0 : x % y;
}
OPD_FORMULA_QUALIFIERS OPD_T OPD_HELPER(div_floor)(OPD_T x, OPD_T y OPD_NOTES) {
    const OPD_T q = OPD_HELPER(div_trunc)(x, y OPD_PASS_NOTES);
    if (y == 0 || y == -1) { return q; }
    return q * y != x && (x < 0) != (y < 0) ? q - 1 : q;
}
OPD_FORMULA_QUALIFIERS OPD_T OPD_HELPER(remainder)(OPD_T x, OPD_T y OPD_NOTES) {
    OPD_T ret = OPD_HELPER(fmod)(x, y OPD_PASS_NOTES);
    return ret != 0 && (ret < 0) != (y < 0) ? ret + y : ret;
}
/* Returns x to the power y, as at::native::powi does: a negative power of a number other than 1 and -1 is 0. */
OPD_FORMULA_QUALIFIERS OPD_T OPD_HELPER(pow)(OPD_T x, OPD_T y) {
    uint64_t ret = 1, second = (uint64_t)x;
    if (y < 0) { return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0; }
    for (; y; y >>= 1) {
        if (y & 1) { ret *= second; }
        second *= second;
    }
    return (OPD_T)ret;
}
OPD_FORMULA_QUALIFIERS OPD_T OPD_HELPER(clamp)(OPD_T x, OPD_T y, OPD_T z) {
    OPD_T m = x > y ? x : y;
    return m < z ? m : z;
}
/* shift_left and shift_right return x, shifted by y bits.  If y is negative or greater than 63, the result is 0, or -1
   if a negative x is shifted right (as in PyTorch since 2.0). */
OPD_FORMULA_QUALIFIERS OPD_T OPD_HELPER(shift_left)(OPD_T x, OPD_T y) {
    return y < 0 || y > 63 ? 0 : (OPD_T)((uint64_t)x << y);
}
OPD_FORMULA_QUALIFIERS OPD_T OPD_HELPER(shift_right)(OPD_T x, OPD_T y) {
    int k = y < 0 || y > 63 ? 63 : (int)y;
    return x < 0 ? (OPD_T)~(~(uint64_t)x >> k) : (OPD_T)((uint64_t)x >> k);
}
OPD_FORMULA_QUALIFIERS OPD_T OPD_HELPER(gcd)(OPD_T x, OPD_T y) {
    uint64_t first = x < 0 ? 0 - (uint64_t)x : (uint64_t)x, second = y < 0 ? 0 - (uint64_t)y : (uint64_t)y, t;
    while (second) {
        t = first % second;
        first = second;
        second = t;
    }
    return (OPD_T)first;
}
OPD_FORMULA_QUALIFIERS OPD_T OPD_HELPER(lcm)(OPD_T x, OPD_T y) {
    const OPD_T group = OPD_HELPER(gcd)(x, y);
    if (group == 0) { return 0; }
    const OPD_T ret = OPD_MUL(group == -1 ? OPD_NEG(x) : x / group, y);
    return ret < 0 ? OPD_NEG(ret) : ret;
}
