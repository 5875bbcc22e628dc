/* float16 of the emulated CUDA runtime: see cuda_runtime.h. */
#ifndef OPD_EMU_CUDA_FP16_H
#define OPD_EMU_CUDA_FP16_H
#include "cuda_runtime.h"

/* IEEE 754 binary16, rounding to nearest, ties to even. */
static inline unsigned short opd_emu_half_bits(float f) {
    const uint32_t x = opd_emu_bits<uint32_t>(f), sign = x >> 16 & 0x8000, magnitude = x & 0x7fffffff;
    if (magnitude > 0x7f800000) { return (unsigned short)(sign | 0x7e00); }
    if (magnitude >= 0x477ff000) { return (unsigned short)(sign | 0x7c00); }
    if (magnitude < 0x38800000) {                 // below the smallest normal number: in units of 2^-24
        const float scaled = opd_emu_bits<float>(magnitude) * 16777216.0f;
        return (unsigned short)(sign | (unsigned)nearbyintf(scaled));
    }
    return (unsigned short)(sign | ((magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13));
}
static inline float opd_emu_half_float(unsigned short h) {
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 0x3ff;
    if (e == 0) { return (sign ? -1.0f : 1.0f) * (float)m / 16777216.0f; }
    return opd_emu_bits<float>(sign | (e == 31 ? 0x7f800000u : (e + 112) << 23) | m << 13);
}
struct __half_raw { unsigned short x; };
struct __half {
    unsigned short bits;
    __half() = default;
    __half(float f) : bits(opd_emu_half_bits(f)) {}
    __half(__half_raw r) : bits(r.x) {}
    operator float() const { return opd_emu_half_float(bits); }
};
typedef __half half;
struct alignas(4) __half2 { __half x, y; };
static inline float __half2float(__half h) { return (float)h; }
static inline __half __float2half(float f) { return __half(f); }
static inline __half __float2half_rn(float f) { return __half(f); }
static inline __half __double2half(double d) {
    float f = (float)d;                           // rounded to odd first, so that rounding twice does no harm
    if ((double)f != d && isfinite(f) && !(opd_emu_bits<uint32_t>(f) & 1)) {
        const bool up = fabs((double)f) < fabs(d);
        f = opd_emu_bits<float>(opd_emu_bits<uint32_t>(f) + (up ? 1u : (uint32_t)-1));
    }
    return __half(f);
}
static inline unsigned short __half_as_ushort(__half h) { return h.bits; }
static inline __half __ushort_as_half(unsigned short b) { __half_raw r = {b}; return __half(r); }
static inline float2 __half22float2(__half2 h) { return make_float2((float)h.x, (float)h.y); }
static inline __half2 __floats2half2_rn(float a, float b) { __half2 h; h.x = __half(a); h.y = __half(b); return h; }
#endif
