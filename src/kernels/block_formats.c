#include "kernels.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>encoding     numbers to blocks of few bits, and back
//
//  The formats of blocks in GGUF files, see opd_dtype_block.  A block has a scale d, mostly a float16, and integers of
//  few bits; its numbers are d times these integers.  Formats with blocks of 256 (Q4_K ...) also have integer scales
//  for groups of 16 or 32.  All numbers are stored with the lowest byte first, at any address.
//
//  Depends on nothing but dtypes.  The functions may be called by any thread.
//----------------------------------------------------------------------------------------------------------------------

//== from blocks to numbers ============================================================================================

#if defined(OPDI_X86) || defined(OPDI_NEON)
typedef int8_t opdi_block_bytes __attribute__((vector_size(16)));
typedef uint64_t opdi_block_words __attribute__((vector_size(16)));
#endif
OPDI_ALWAYS int opdi_signed_byte(uint8_t byte) { return (int)(byte ^ 128u) - 128; }

#include "../typed/f32.h"
#include "block_decode.typed.h"
#if defined(OPDI_X86) || defined(OPDI_NEON)
#include "../typed/f32_avx2.h"
#include "block_decode.typed.h"
#endif
#include "../typed/end.h"

/* Returns 0 if opdi_blocks_decode can decode a dtype, else -1, with an error.  Neither it nor opdi_blocks_encode knows
   the formats of one to three bits with tables of vectors. */
OPDI_INTERNAL int opdi_blocks_readable(opd_scalar_type dtype) {
    switch (dtype) {
        case OPD_IQ1_S: case OPD_IQ1_M: case OPD_IQ2_XXS: case OPD_IQ2_XS: case OPD_IQ2_S: case OPD_IQ3_XXS:
        case OPD_IQ3_S:
            return opd_fail(OPD_ERROR_NO_KERNEL, "blocks of %s cannot be read as numbers, nor written: the format "
                            "needs tables of vectors that this library does not have", opd_dtype_name(dtype));
        default: break;
    }
    if (opdi_block_info_of((int)dtype).elements) { return 0; }
    return opd_fail(OPD_ERROR_DTYPE, "dtype %s does not store numbers in blocks", opd_dtype_name(dtype));
}

//== integers with scales ==============================================================================================

/* Writes `count` codes of `bits` bits, a multiple of 8, that are stored at `at`. */
OPDI_ALWAYS void opdi_int_codes_here(const uint8_t *at, int64_t count, int bits, uint8_t *codes) {
    const uint64_t mask = ((uint64_t)1 << bits) - 1;
    for (int64_t i = 0; i < count; i += 8, at += bits) {
        uint64_t word = 0;
        for (int byte = 0; byte < bits; byte++) { word |= (uint64_t)at[byte] << 8 * byte; }
        for (int j = 0; j < 8; j++) { codes[i + j] = (uint8_t)(word >> bits * j & mask); }
    }
}
OPDI_INTERNAL void opdi_int_codes(const uint8_t *at, int64_t count, int bits, uint8_t *codes) {
    switch (bits) {
        case 1: opdi_int_codes_here(at, count, 1, codes); break;
        case 2:
            for (int64_t i = 0; i < count / 4; i++) {
                for (int j = 0; j < 4; j++) { codes[4 * i + j] = at[i] >> 2 * j & 3; }
            }
            break;
        case 3: opdi_int_codes_here(at, count, 3, codes); break;
        case 4:
            for (int64_t i = 0; i < count / 2; i++) {
                codes[2 * i] = at[i] & 15;
                codes[2 * i + 1] = at[i] >> 4;
            }
            break;
        case 5: opdi_int_codes_here(at, count, 5, codes); break;
        case 6: opdi_int_codes_here(at, count, 6, codes); break;
        case 7: opdi_int_codes_here(at, count, 7, codes); break;
        default: memcpy(codes, at, (size_t)count); break;
    }
}
/* Reads the scale and the zero point of a block, and returns where its codes begin. */
OPDI_INTERNAL const uint8_t *opdi_int_scale(const opdi_block_info *info, const uint8_t *block, float *scale,
                                            float *zero) {
    *scale = opdi_f32_at(block);
    *zero = info->zero ? opdi_f32_at(block + 4) : (float)(1 << (info->bits - 1));
    return block + (info->zero ? 8 : 4);
}
/* Writes elements k .. k + count - 1 of a row of blocks of integers, which begins at `row`, as floats.  k and count are
   multiples of 8. */
OPDI_INTERNAL void opdi_int_floats(const opdi_block_info *info, const uint8_t *row, int64_t k, int64_t count,
                                   float *out) {
    uint8_t codes[OPDI_INT_PART];
    float scale, zero;
    for (int64_t done = 0, some; done < count; done += some) {
        const int64_t inside = (k + done) % info->elements;
        const uint8_t *const block = row + (k + done) / info->elements * info->bytes;
        const uint8_t *const from = opdi_int_scale(info, block, &scale, &zero);
        some = OPDI_MIN(OPDI_MIN(count - done, info->elements - inside), (int64_t)OPDI_INT_PART);
        opdi_int_codes(from + inside / 8 * info->bits, some, info->bits, codes);
        opdi_codes_floats(codes, some, zero, scale, out + done);
    }
}

//== any format ========================================================================================================

/* Writes the n numbers of n / opd_dtype_block(dtype) blocks to `out`.  Each is equal, to the bit, to what GGUF's own
   definition gives.  Returns 0, or -1 with an error: see opdi_blocks_readable. */
OPDI_INTERNAL int opdi_blocks_decode(opd_scalar_type dtype, const void *blocks, float *out, int64_t n) {
    const opdi_block_info info = opdi_block_info_of((int)dtype);
    if (opdi_blocks_readable(dtype) != 0) { return -1; }
    const int64_t count = n / info.elements;
    const uint8_t *const at = (const uint8_t *)blocks;
    if (info.bits) {
        opdi_int_floats(&info, at, 0, n, out);
        return 0;
    }
#if defined(OPDI_X86) || defined(OPDI_NEON)
    if (opdi_cpu_level() > 0) {                    /* AVX-512 would not help: memory is as slow */
        opdi_decode_avx2_f32(dtype, at, out, count);
        return 0;
    }
#endif
    opdi_decode_plain_f32(dtype, at, out, count);
    return 0;
}
