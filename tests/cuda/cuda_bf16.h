/* bfloat16 of the emulated CUDA runtime: see cuda_runtime.h. */
#ifndef OPD_EMU_CUDA_BF16_H
#define OPD_EMU_CUDA_BF16_H
#include "cuda_runtime.h"

static inline unsigned short opd_emu_bf16_bits(float f) {
    const uint32_t x = opd_emu_bits<uint32_t>(f);
    if ((x & 0x7fffffff) > 0x7f800000) { return (unsigned short)(x >> 16 | 0x40); }
    return (unsigned short)((x + 0x7fff + (x >> 16 & 1)) >> 16);
}
struct __nv_bfloat16_raw { unsigned short x; };
struct __nv_bfloat16 {
    unsigned short bits;
    __nv_bfloat16() = default;
    __nv_bfloat16(float f) : bits(opd_emu_bf16_bits(f)) {}
    __nv_bfloat16(__nv_bfloat16_raw r) : bits(r.x) {}
    operator float() const { return opd_emu_bits<float>((uint32_t)bits << 16); }
};
struct alignas(4) __nv_bfloat162 { __nv_bfloat16 x, y; };
static inline float __bfloat162float(__nv_bfloat16 h) { return (float)h; }
static inline __nv_bfloat16 __float2bfloat16(float f) { return __nv_bfloat16(f); }
static inline __nv_bfloat16 __float2bfloat16_rn(float f) { return __nv_bfloat16(f); }
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 h) { return h.bits; }
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short b) { __nv_bfloat16_raw r = {b}; return __nv_bfloat16(r); }
static inline float2 __bfloat1622float2(__nv_bfloat162 h) { return make_float2((float)h.x, (float)h.y); }
static inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b) {
    __nv_bfloat162 h;
    h.x = __nv_bfloat16(a); h.y = __nv_bfloat16(b);
    return h;
}
#endif
