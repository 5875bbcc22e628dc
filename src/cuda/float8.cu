//----------------------------------------------------------------------------------------------------------------------
//  >>cu:float8      conversions to and from floats of 8 bits
//
//  The results have the CPU's bits: rounded to nearest even, numbers that are too large become infinite or NaN.
//----------------------------------------------------------------------------------------------------------------------

/* See opdi_f8_form in src/types/types.h.  scale: float8_e8m0fnu, an exponent without sign and mantissa. */
struct opdi_cu_f8_form { uint32_t bits, bias, most, beyond, nan; bool unsigned_zero, scale; };
static bool opdi_cu_f8_form_of(opd_scalar_type dtype, opdi_cu_f8_form *form) {
    static const opdi_cu_f8_form e5m2 = {2, 15, 0x7b, 0x7c, 0x7f, false, false},
        e4m3fn = {3, 7, 0x7e, 0x7e, 0x7f, false, false}, e5m2fnuz = {2, 16, 0x7f, 0x80, 0x80, true, false},
        e4m3fnuz = {3, 8, 0x7f, 0x80, 0x80, true, false}, e8m0 = {0, 0, 0, 0, 0, false, true};
    switch (dtype) {
        case OPD_FLOAT8_E5M2: *form = e5m2; return true;
        case OPD_FLOAT8_E4M3FN: *form = e4m3fn; return true;
        case OPD_FLOAT8_E5M2FNUZ: *form = e5m2fnuz; return true;
        case OPD_FLOAT8_E4M3FNUZ: *form = e4m3fnuz; return true;
        case OPD_FLOAT8_E8M0FNU: *form = e8m0; return true;
        default: return false;
    }
}
__device__ __forceinline__ uint32_t opdi_cu_f8_code(float f, const opdi_cu_f8_form &form) {
    const uint32_t bits = __float_as_uint(f), at = bits & 0x7fffffffu, sign = bits >> 24 & 0x80u;
    if (form.scale) {
        const uint32_t exponent = at >> 23, part = at & 0x7fffffu;
        return exponent == 255 ? 255 : exponent + (exponent ? part >= 0x400000u : part > 0x400000u);
    }
    const uint32_t cut = 23 - form.bits, magic = (127 + 24 - form.bias - form.bits) << 23;
    uint32_t code;
    if (at > 0x7f800000u) { return form.unsigned_zero ? form.nan : form.nan | sign; }
    if (at < (128 - form.bias) << 23) {
        code = __float_as_uint(__uint_as_float(at) + __uint_as_float(magic)) - magic;
    } else { code = ((at + (1u << (cut - 1)) - 1 + (at >> cut & 1)) >> cut) - ((127 - form.bias) << form.bits); }
    if (code > form.most) { return form.unsigned_zero ? form.beyond : form.beyond | sign; }
    return code || !form.unsigned_zero ? code | sign : 0;
}
__device__ __forceinline__ float opdi_cu_f8_number(uint32_t code, const opdi_cu_f8_form &form) {
    if (form.scale) { return __uint_as_float(code == 255 ? 0x7fc00000u : code == 0 ? 0x00400000u : code << 23); }
    const uint32_t at = code & 0x7fu, sign = (code & 0x80u) << 24;
    if (form.unsigned_zero && code == form.nan) { return __uint_as_float(0xffc00000u); }
    if (at > form.most) {
        return __uint_as_float(sign | (form.beyond < form.nan && at == form.beyond ? 0x7f800000u : 0x7fc00000u));
    }
    const float value = __uint_as_float(at << (23 - form.bits)) * __uint_as_float((254 - form.bias) << 23);
    return __uint_as_float(__float_as_uint(value) | sign);
}
/* Converts n numbers: x of T to codes, or if TO is false, codes to x.  even: whether four at a time may be loaded. */
template <typename T, bool TO>
__global__ void opdi_cu_f8_kernel(T *x, uint8_t *codes, int64_t n, bool even, const opdi_cu_f8_form form) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x * 4;
    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * 4; i < n; i += step) {
        if (even && i + 4 <= n) {
            if constexpr (TO) {
                const opdi_cu_vector<T, 4> four = opdi_cu_load_vector<4>((const T *)x + i);
                opdi_cu_vector<uint8_t, 4> out;
                OPDI_CU_UNROLL
                for (int k = 0; k < 4; k++) {
                    out.at[k] = (uint8_t)opdi_cu_f8_code(opdi_cu_taken<float>(four, k), form);
                }
                opdi_cu_store_vector<4>(codes + i, out);
            } else {
                const opdi_cu_vector<uint8_t, 4> four = opdi_cu_load_vector<4>((const uint8_t *)codes + i);
                opdi_cu_vector<T, 4> out;
                OPDI_CU_UNROLL
                for (int k = 0; k < 4; k++) { out.at[k] = opdi_cu_cast<T>(opdi_cu_f8_number(four.at[k], form)); }
                opdi_cu_store_vector<4>(x + i, out);
            }
            continue;
        }
        for (int64_t k = i; k < n && k < i + 4; k++) {
            if constexpr (TO) { codes[k] = (uint8_t)opdi_cu_f8_code(opdi_cu_load<float>((const T *)x + k), form); }
            else { opdi_cu_store(x + k, opdi_cu_f8_number(codes[k], form)); }
        }
    }
}
template <typename T> static int opdi_cu_f8_run(T *x, uint8_t *codes, bool to, int64_t n, const opdi_cu_f8_form &form) {
    const dim3 grid = opdi_cu_grid(opdi_cu_ceil(n, 4), 256);
    const bool even = (uintptr_t)codes % 4 == 0 && opdi_cu_aligned(x);
    return to ? opdi_cu_launch(opdi_cu_f8_kernel<T, true>, grid, dim3(256), 0, x, codes, n, even, form)
              : opdi_cu_launch(opdi_cu_f8_kernel<T, false>, grid, dim3(256), 0, x, codes, n, even, form);
}
/* Copies src to dst, of which one has floats of 8 bits, and whose elements lie in the same order.  Returns 0, -1 and
   sets an error, or 1 if there is no kernel. */
static int opdi_cu_float8(opd_tensor *dst, opd_tensor *src) {
    opdi_cu_f8_form form;
    const bool to = opdi_cu_f8_form_of(opd_dtype(dst), &form);
    if (!to && !opdi_cu_f8_form_of(opd_dtype(src), &form)) { return 1; }
    opd_tensor *const numbers = to ? src : dst;
    uint8_t *const codes = opdi_cu_data<uint8_t>(to ? dst : src);
    void *const x = opdi_cu_data<void>(numbers);
    const int64_t n = opd_numel(src);
    if (n == 0) { return 0; }
    if (!codes || !x) { return -1; }
    switch (opd_dtype(numbers)) {
        case OPD_FLOAT32: return opdi_cu_f8_run(static_cast<float *>(x), codes, to, n, form);
        case OPD_FLOAT16: return opdi_cu_f8_run(static_cast<opdi_cu_f16 *>(x), codes, to, n, form);
        case OPD_BFLOAT16: return opdi_cu_f8_run(static_cast<opdi_cu_bf16 *>(x), codes, to, n, form);
        default: return 1;
    }
}
