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
    if (opdi_block_info_of((int)dtype)) { return 0; }
    return opd_fail(OPD_ERROR_DTYPE, "dtype %s does not store numbers in blocks", opd_dtype_name(dtype));
}
/* Writes the n numbers of n / opd_dtype_block(dtype) blocks to `out`.  Each is equal, to the bit, to what GGUF's own
   definition gives.  Returns 0, or -1 with an error: see opdi_blocks_readable. */
OPDI_INTERNAL int opdi_blocks_decode(opd_scalar_type dtype, const void *blocks, float *out, int64_t n) {
    const opdi_block_info *const info = opdi_block_info_of((int)dtype);
    if (opdi_blocks_readable(dtype) != 0) { return -1; }
    const int64_t count = n / info->elements;
    const uint8_t *const at = (const uint8_t *)blocks;
#if defined(OPDI_X86) || defined(OPDI_NEON)
    if (opdi_cpu_level() > 0) {                    /* AVX-512 would not help: memory is as slow */
        opdi_decode_avx2_f32(dtype, at, out, count);
        return 0;
    }
#endif
    opdi_decode_plain_f32(dtype, at, out, count);
    return 0;
}
