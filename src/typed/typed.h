//----------------------------------------------------------------------------------------------------------------------
//  >>typed        kernels that are compiled for several types and sets of instructions
//
//  The text of such a kernel is in its own file NAME.typed.h, in the folder of the file that uses it.  That file
//  includes NAME.typed.h once for each type and, if the kernel uses vectors, once for each set of instructions.  Before
//  each of these includes, it includes a file of src/typed/, which defines
//
//      OPDI_T          the type: float, double, int64_t              OPDI_BYTES   its size
//      OPDI_WHOLE      1 for int64_t, else 0
//      OPDI_TYPED(f)   opdi_f_f32, opdi_f_f64 or opdi_f_i64          OPDI_FN(f)   C's function f for float or double
//      OPDI_LEVEL      0 plain C, 1 AVX2 (on 64-bit ARM: NEON), 2 AVX-512
//      OPDI_WIDE(f)    opdi_f_plain_f32, opdi_f_avx2_f32, opdi_f_avx512_f32, and the same with f64
//
//  The macros below follow from these.
//----------------------------------------------------------------------------------------------------------------------

#define OPDI_BY(name, number) OPDI_BY_(name, number)
#define OPDI_BY_(name, number) name##number
#define OPDI_BY_BOTH(name, bytes, level) OPDI_BY_BOTH_(name, bytes, level)
#define OPDI_BY_BOTH_(name, bytes, level) name##bytes##_##level

/* The attributes of a kernel's functions, written before their types. */
#define OPDI_TARGET OPDI_BY(OPDI_TARGET_, OPDI_LEVEL)
#define OPDI_TARGET_0
#define OPDI_TARGET_1 OPDI_AVX2
#define OPDI_TARGET_2 OPDI_AVX512

/* OPDI_V is a vector of OPDI_T (at level 0 a single number), and OPDI_V_BITS a vector of as many unsigned integers of
   the same width.  OPDI_V_INT and OPDI_V_HALVES have as many 32-bit integers and 16-bit numbers as a vector of floats
   has elements. */
#define OPDI_V OPDI_BY_BOTH(OPDI_V_, OPDI_BYTES, OPDI_LEVEL)
#define OPDI_V_4_0 float
#define OPDI_V_4_2 opdi_v16f
#define OPDI_V_8_0 double
#define OPDI_V_8_2 opdi_v8d
#define OPDI_V_INT OPDI_BY(OPDI_V_INT_, OPDI_LEVEL)
#define OPDI_V_INT_2 opdi_v16i
#define OPDI_V_BITS OPDI_BY_BOTH(OPDI_V_BITS_, OPDI_BYTES, OPDI_LEVEL)
#define OPDI_V_BITS_4_2 opdi_v16u
#define OPDI_V_BITS_8_2 opdi_v8w
#define OPDI_V_HALVES OPDI_BY(OPDI_V_HALVES_, OPDI_LEVEL)
#define OPDI_V_HALVES_2 opdi_v16h
#if defined(__aarch64__) && !defined(__AARCH64EB__) && !defined(OPD_NO_SIMD)
#define OPDI_V_4_1 opdi_v4f
#define OPDI_V_8_1 opdi_v2d
#define OPDI_V_INT_1 opdi_v4i
#define OPDI_V_BITS_4_1 opdi_v4u
#define OPDI_V_BITS_8_1 opdi_v2w
#define OPDI_V_HALVES_1 opdi_v4h
#else
#define OPDI_V_4_1 opdi_v8f
#define OPDI_V_8_1 opdi_v4d
#define OPDI_V_INT_1 opdi_v8i
#define OPDI_V_BITS_4_1 opdi_v8u
#define OPDI_V_BITS_8_1 opdi_v4w
#define OPDI_V_HALVES_1 opdi_v8h
#endif
/* True if there are 32 vector registers (AVX-512, NEON), not 16 (AVX2). */
#if defined(__aarch64__) && !defined(__AARCH64EB__) && !defined(OPD_NO_SIMD)
#define OPDI_V_MANY 1
#else
#define OPDI_V_MANY (OPDI_LEVEL == 2)
#endif

/* OPDI_BITS is the unsigned integer type as wide as OPDI_T.  OPDI_EXPONENT is the mask of the exponent in its bits.
   OPDI_ASM is the last letter of instructions for OPDI_T.  OPDI_FORTRAN(f) is the LAPACK function f for OPDI_T. */
#define OPDI_BITS OPDI_BY(OPDI_BITS_, OPDI_BYTES)
#define OPDI_BITS_4 uint32_t
#define OPDI_BITS_8 uint64_t
#define OPDI_EXPONENT OPDI_BY(OPDI_EXPONENT_, OPDI_BYTES)
#define OPDI_EXPONENT_4 0x7f800000u
#define OPDI_EXPONENT_8 UINT64_C(0x7ff0000000000000)
#define OPDI_ASM OPDI_BY(OPDI_ASM_, OPDI_BYTES)
#define OPDI_ASM_4 "s"
#define OPDI_ASM_8 "d"
#define OPDI_FORTRAN(name) OPDI_BY(OPDI_FORTRAN_, OPDI_BYTES)(name)
#define OPDI_FORTRAN_4(name) s##name##_
#define OPDI_FORTRAN_8(name) d##name##_

/* Macros that differ for integers, whose arithmetic wraps around. */
#define OPDI_IS_NAN(x) OPDI_BY(OPDI_IS_NAN_, OPDI_WHOLE)(x)
#define OPDI_IS_NAN_0(x) ((x) != (x))
#define OPDI_IS_NAN_1(x) false
#define OPDI_LOWEST OPDI_BY(OPDI_LOWEST_, OPDI_WHOLE)
#define OPDI_LOWEST_0 (-INFINITY)
#define OPDI_LOWEST_1 INT64_MIN
#define OPDI_PLUS(x, y) OPDI_BY(OPDI_PLUS_, OPDI_WHOLE)(x, y)
#define OPDI_PLUS_0(x, y) ((x) + (y))
#define OPDI_PLUS_1(x, y) opdi_wrap_add(x, y)
#define OPDI_TIMES(x, y) OPDI_BY(OPDI_TIMES_, OPDI_WHOLE)(x, y)
#define OPDI_TIMES_0(x, y) ((x) * (y))
#define OPDI_TIMES_1(x, y) opdi_wrap_mul(x, y)

