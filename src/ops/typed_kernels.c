//----------------------------------------------------------------------------------------------------------------------
//  >>typed        the kernels that are compiled for several types
//
//  They stand in their rooms, where they are left out at first.  Here the file includes itself, once for each type, and
//  then they are all that is read: OPDI_T is the type, OPDI_TYPED(f) opdi_f_f32, OPDI_FN(f) the C function f for it.
//  In the last pass, of int64_t, only what asks for it is there (OPDI_TYPED_WHOLE).
//  Kernels in vectors are read again for each OPDI_LEVEL of instructions: OPDI_V is a vector of OPDI_T (one number at
//  level 0, which comes with the others of the type), OPDI_TARGET what their functions begin with, OPDI_WIDE(f)
//  opdi_f_plain_f32, opdi_f_avx2_f32 or opdi_f_avx512_f32, OPDI_ASM the last letter of the instructions.
//----------------------------------------------------------------------------------------------------------------------

#undef OPDI_MAIN_PASS
#undef OPDI_OPERATORS
OPDI_LOOPS_BEGIN
#define OPDI_IS_NAN(x) ((x) != (x))
#define OPDI_LOWEST (-INFINITY)
#define OPDI_PLUS(x, y) ((x) + (y))
#define OPDI_TIMES(x, y) ((x) * (y))
#define OPDI_T float
#define OPDI_FN(name) name##f
#define OPDI_BYTES 4
#define OPDI_BITS uint32_t                        /* as bits, and those of the exponent */
#define OPDI_EXPONENT 0x7f800000u
#define OPDI_ASM "s"
#define OPDI_FORTRAN(name) s##name##_
#define OPDI_TYPED(name) opdi_##name##_f32
#define OPDI_WIDE(name) opdi_##name##_plain_f32
#define OPDI_LEVEL 0
#define OPDI_V OPDI_T
#define OPDI_TARGET
#include OPDISPATCH_FILE
#undef OPDI_WIDE
#undef OPDI_LEVEL
#undef OPDI_V
#undef OPDI_TARGET
#undef OPDI_TYPED
#if defined(OPDI_X86)
#define OPDI_WIDE(name) opdi_##name##_avx2_f32
#define OPDI_LEVEL 1
#define OPDI_V opdi_v8f
#define OPDI_TARGET OPDI_AVX2
#define OPDI_V_INT opdi_v8i
#define OPDI_V_BITS opdi_v8u
#define OPDI_V_HALVES opdi_v8h
#include OPDISPATCH_FILE
#undef OPDI_WIDE
#undef OPDI_LEVEL
#undef OPDI_V
#undef OPDI_TARGET
#undef OPDI_V_BITS
#undef OPDI_V_INT
#undef OPDI_V_HALVES
#define OPDI_WIDE(name) opdi_##name##_avx512_f32
#define OPDI_LEVEL 2
#define OPDI_V opdi_v16f
#define OPDI_TARGET OPDI_AVX512
#define OPDI_V_INT opdi_v16i
#define OPDI_V_BITS opdi_v16u
#define OPDI_V_HALVES opdi_v16h
#include OPDISPATCH_FILE
#undef OPDI_WIDE
#undef OPDI_LEVEL
#undef OPDI_V
#undef OPDI_TARGET
#undef OPDI_V_BITS
#undef OPDI_V_INT
#undef OPDI_V_HALVES
#endif
#undef OPDI_T
#undef OPDI_FN
#undef OPDI_BYTES
#undef OPDI_BITS
#undef OPDI_EXPONENT
#undef OPDI_ASM
#undef OPDI_FORTRAN
#define OPDI_T double
#define OPDI_FN(name) name
#define OPDI_BYTES 8
#define OPDI_BITS uint64_t                        /* as bits, and those of the exponent */
#define OPDI_EXPONENT UINT64_C(0x7ff0000000000000)
#define OPDI_ASM "d"
#define OPDI_FORTRAN(name) d##name##_
#define OPDI_TYPED(name) opdi_##name##_f64
#define OPDI_WIDE(name) opdi_##name##_plain_f64
#define OPDI_LEVEL 0
#define OPDI_V OPDI_T
#define OPDI_TARGET
#include OPDISPATCH_FILE
#undef OPDI_WIDE
#undef OPDI_LEVEL
#undef OPDI_V
#undef OPDI_TARGET
#undef OPDI_TYPED
#if defined(OPDI_X86)
#define OPDI_WIDE(name) opdi_##name##_avx2_f64
#define OPDI_LEVEL 1
#define OPDI_V opdi_v4d
#define OPDI_TARGET OPDI_AVX2
#define OPDI_V_BITS opdi_v4w
#include OPDISPATCH_FILE
#undef OPDI_WIDE
#undef OPDI_LEVEL
#undef OPDI_V
#undef OPDI_TARGET
#undef OPDI_V_BITS
#define OPDI_WIDE(name) opdi_##name##_avx512_f64
#define OPDI_LEVEL 2
#define OPDI_V opdi_v8d
#define OPDI_TARGET OPDI_AVX512
#define OPDI_V_BITS opdi_v8w
#include OPDISPATCH_FILE
#undef OPDI_WIDE
#undef OPDI_LEVEL
#undef OPDI_V
#undef OPDI_TARGET
#undef OPDI_V_BITS
#endif
#undef OPDI_T
#undef OPDI_FN
#undef OPDI_BYTES
#undef OPDI_BITS
#undef OPDI_EXPONENT
#undef OPDI_ASM
#undef OPDI_FORTRAN
#undef OPDI_LOWEST
#undef OPDI_IS_NAN
#undef OPDI_PLUS
#undef OPDI_TIMES
#define OPDI_T int64_t
#define OPDI_TYPED(name) opdi_##name##_i64
#define OPDI_IS_NAN(x) false
#define OPDI_TYPED_WHOLE
#define OPDI_LOWEST INT64_MIN
#define OPDI_PLUS(x, y) opdi_wrap_add(x, y)
#define OPDI_TIMES(x, y) opdi_wrap_mul(x, y)
#include OPDISPATCH_FILE
#undef OPDI_T
#undef OPDI_TYPED
#undef OPDI_TYPED_WHOLE
#undef OPDI_LOWEST
#undef OPDI_IS_NAN
#undef OPDI_PLUS
#undef OPDI_TIMES
OPDI_LOOPS_END
#define OPDI_MAIN_PASS
#define OPDI_OPERATORS
#if defined(OPDISPATCH_PART) && defined(__clang__)
#pragma clang diagnostic pop
#endif
#if defined(OPDI_LESS) && defined(__GNUC__) && !defined(__TINYC__)
#pragma GCC diagnostic pop
#endif

#endif /* OPDI_OPERATORS */

