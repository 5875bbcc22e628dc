#include "../ops.h"

//== loops over bits ===================================================================================================

/* The loops of this file compute nextafter, shifts, abs of integers and logic of bools.  They read and write elements
   in the dtype of the tensors.  They are compiled for AVX2 and NEON; on other processors, the loops of the formulas run
   instead. */

/* Defines the loop opdi_bits_<name>, which sets each element of the result, of this type, to `value`.  In `value`, x
   and y are the elements of the inputs. */
#define OPDI_BITS_LOOP(name, type, value) \
    OPDI_VECTOR_LOOP static void opdi_bits_##name(void *const *data, int64_t total, const opdi_params *params) { \
        const type *const xs = (const type *)data[1], *const ys = (const type *)data[2]; \
        type *const out = (type *)data[0]; \
        int64_t i = 0; \
        (void)params; \
        for (; i + 64 <= total; i += 64) { \
            OPDI_IVDEP \
            for (int j = 0; j < 64; j++) { const type x = xs[i + j], y = ys[i + j]; (void)y; out[i + j] = value; } \
        } \
        for (; i < total; i++) { const type x = xs[i], y = ys[i]; (void)y; out[i] = value; } \
    }

//== nextafter =========================================================================================================

/* Returns the number next to x in the direction of y.  As integers, the bits of two neighbours differ by 1. */
OPDI_ALWAYS float opdi_next_f32(float x, float y) {
    const uint32_t up = opdi_bits(x) + 1, down = opdi_bits(x) - 1, least = (opdi_bits(y) & 0x80000000u) | 1;
    const uint32_t step = opdi_select_bits((y > x) == (x > 0), up, down);
    const uint32_t next = opdi_select_bits(x == 0, least, step);
    const uint32_t same = opdi_select_bits(x == y, opdi_bits(y), next);
    return opdi_select_f32((x != x) | (y != y), x + y, opdi_float(same));
}
OPDI_ALWAYS double opdi_next_f64(double x, double y) {
    const uint64_t up = opdi_bits64(x) + 1, down = opdi_bits64(x) - 1;
    const uint64_t step = (y > x) == (x > 0) ? up : down, least = (opdi_bits64(y) & 0x8000000000000000u) | 1;
    const uint64_t next = x == 0 ? least : step;
    const uint64_t same = x == y ? opdi_bits64(y) : next;
    return opdi_double(((x != x) | (y != y)) ? opdi_bits64(x + y) : same);
}
OPDI_BITS_LOOP(next_f32, float, opdi_next_f32(x, y))
OPDI_BITS_LOOP(next_f64, double, opdi_next_f64(x, y))
OPDI_INTERNAL void opdi_f32_vnextafter(void *const *data, int64_t count, const opdi_params *params) {
    (opdi_has_vectors() ? opdi_bits_next_f32 : opdi_f32_nextafter)(data, count, params);
}
OPDI_INTERNAL void opdi_f64_vnextafter(void *const *data, int64_t count, const opdi_params *params) {
    (opdi_has_vectors() ? opdi_bits_next_f64 : opdi_f64_nextafter)(data, count, params);
}

//== shifts, abs and bools =============================================================================================

/* `value` is x, shifted by y bits: see opdi_h_i64_shift_left. */
#define OPDI_BITS_LEFT(type, bits) (type)(y < bits ? x << (y & (bits - 1)) : 0)
#define OPDI_BITS_RIGHT(type, bits) (type)((u##type)y < bits ? x >> (y & (bits - 1)) : x >> (bits - 1))
#if defined(__clang__)
OPDI_BITS_LOOP(left_8, uint8_t, OPDI_BITS_LEFT(uint8_t, 8))
OPDI_BITS_LOOP(right_u8, uint8_t, (uint8_t)(y < 8 ? x >> (y & 7) : 0))
OPDI_BITS_LOOP(right_8, int8_t, OPDI_BITS_RIGHT(int8_t, 8))
#else
/* Shifts a byte by 4, 2 and 1 bits.  Processors have no shifts of bytes by different counts; gcc makes shifts of 32
   bits of them, which take twice as long. */
OPDI_ALWAYS uint8_t opdi_byte_left(uint8_t x, uint8_t y) {
    const uint8_t four = y & 4 ? (uint8_t)(x << 4) : x, two = y & 2 ? (uint8_t)(four << 2) : four;
    const uint8_t one = y & 1 ? (uint8_t)(two << 1) : two;
    return y < 8 ? one : 0;
}
OPDI_ALWAYS uint8_t opdi_byte_right(uint8_t x, uint8_t y) {
    const uint8_t four = y & 4 ? x >> 4 : x, two = y & 2 ? four >> 2 : four, one = y & 1 ? two >> 1 : two;
    return y < 8 ? one : 0;
}
/* Shifts a byte with a sign: a negative number is inverted before and after. */
OPDI_ALWAYS int8_t opdi_signed_right(int8_t x, int8_t y) {
    const uint8_t sign = x < 0 ? 255 : 0;
    return (int8_t)(opdi_byte_right((uint8_t)x ^ sign, (uint8_t)y) ^ sign);
}
OPDI_BITS_LOOP(left_8, uint8_t, opdi_byte_left(x, y))
OPDI_BITS_LOOP(right_u8, uint8_t, opdi_byte_right(x, y))
OPDI_BITS_LOOP(right_8, int8_t, opdi_signed_right(x, y))
#endif
OPDI_BITS_LOOP(left_16, uint16_t, OPDI_BITS_LEFT(uint16_t, 16))
OPDI_BITS_LOOP(left_32, uint32_t, OPDI_BITS_LEFT(uint32_t, 32))
OPDI_BITS_LOOP(left_64, uint64_t, OPDI_BITS_LEFT(uint64_t, 64))
OPDI_BITS_LOOP(right_16, int16_t, OPDI_BITS_RIGHT(int16_t, 16))
OPDI_BITS_LOOP(right_32, int32_t, OPDI_BITS_RIGHT(int32_t, 32))
OPDI_BITS_LOOP(right_64, int64_t, OPDI_BITS_RIGHT(int64_t, 64))
/* `value` is |x|; the smallest integer is its own result. */
#define OPDI_BITS_ABS(type) (type)(x < 0 ? 0 - (u##type)x : (u##type)x)
OPDI_BITS_LOOP(abs_u8, uint8_t, x)
OPDI_BITS_LOOP(abs_8, int8_t, OPDI_BITS_ABS(int8_t))
OPDI_BITS_LOOP(abs_16, int16_t, OPDI_BITS_ABS(int16_t))
OPDI_BITS_LOOP(abs_32, int32_t, OPDI_BITS_ABS(int32_t))
OPDI_BITS_LOOP(abs_64, int64_t, OPDI_BITS_ABS(int64_t))
/* A byte that is not 0 is true. */
OPDI_BITS_LOOP(and, uint8_t, (uint8_t)((x != 0) & (y != 0)))
OPDI_BITS_LOOP(or, uint8_t, (uint8_t)((x | y) != 0))
OPDI_BITS_LOOP(xor, uint8_t, (uint8_t)((x != 0) ^ (y != 0)))
OPDI_BITS_LOOP(not, uint8_t, (uint8_t)((x | y) == 0))

/* Returns the loop over elements of this dtype that computes the same bits as `loop`, an int64 loop, or NULL. */
static opdi_loop opdi_bits_loop_of(opdi_loop loop, opd_scalar_type dtype) {
    static const opdi_loop left[] = {opdi_bits_left_8, opdi_bits_left_8, opdi_bits_left_16, opdi_bits_left_32,
                                     opdi_bits_left_64};
    static const opdi_loop right[] = {opdi_bits_right_u8, opdi_bits_right_8, opdi_bits_right_16, opdi_bits_right_32,
                                      opdi_bits_right_64};
    static const opdi_loop sizes[] = {opdi_bits_abs_u8, opdi_bits_abs_8, opdi_bits_abs_16, opdi_bits_abs_32,
                                      opdi_bits_abs_64};
    if (dtype == OPD_BOOL) {
        return loop == opdi_i64_bitwise_and ? opdi_bits_and : loop == opdi_i64_bitwise_or ? opdi_bits_or
            : loop == opdi_i64_bitwise_xor ? opdi_bits_xor : loop == opdi_i64_logical_not ? opdi_bits_not : NULL;
    }
    if ((unsigned)dtype > OPD_INT64) { return NULL; }
    return loop == opdi_i64_bitwise_left_shift ? left[dtype] : loop == opdi_i64_bitwise_right_shift ? right[dtype]
        : loop == opdi_i64_abs ? sizes[dtype] : NULL;
}
/* A shift of integers by one number, which is computed for words of eight bytes.  keep: the bits of a word that come
   from the same element.  sign: the bits to which the signs of the elements are shifted; 0 if there are none. */
typedef struct opdi_bits_shift { uint64_t keep, sign; int bits; bool left; } opdi_bits_shift;
/* Fills *shift for elements of `bits` bits and for the number y.  If y is negative or at least `bits`, no bit is kept,
   except that of the sign. */
static void opdi_bits_shift_set(opdi_bits_shift *shift, int bits, bool left, bool sign, int64_t y) {
    const uint64_t whole = UINT64_MAX >> (64 - bits), ones = UINT64_MAX / whole;      /* ones: bit 0 of each element */
    const bool within = (uint64_t)y < (uint64_t)bits;
    shift->bits = within ? (int)y : !left && sign ? bits - 1 : 0;
    shift->left = left;
    shift->keep = within || shift->bits ? ones * (left ? (whole << shift->bits) & whole : whole >> shift->bits) : 0;
    shift->sign = !left && sign ? ones << (bits - 1 - shift->bits) : 0;
}
/* Returns the elements of word x, shifted.  After a shift to the right, the bits from the sign on are set to it. */
OPDI_ALWAYS uint64_t opdi_bits_shift_word(uint64_t x, uint64_t keep, uint64_t sign, int bits, bool left) {
    const uint64_t moved = left ? x << bits : x >> bits, set = moved & sign;
    return (moved & keep) | ((set << bits << 1) - set);
}
/* Shifts `bytes` bytes from x to out.  Both are aligned to words. */
OPDI_VECTOR_LOOP static void opdi_bits_shift_run(const opdi_bits_shift *shift, char *out, const char *x,
                                                 int64_t bytes) {
    const opdi_bits_shift by = *shift;
    const opdi_word64 *const from = (const opdi_word64 *)(const void *)x;
    opdi_word64 *const to = (opdi_word64 *)(void *)out;
    const int64_t count = bytes / 8;
    uint64_t rest = 0;
    int64_t i;
    if (by.left) { OPDI_COLUMN_EACH(to[j] = opdi_bits_shift_word(from[j], by.keep, 0, by.bits, true)) }
    else { OPDI_COLUMN_EACH(to[j] = opdi_bits_shift_word(from[j], by.keep, by.sign, by.bits, false)) }
    memcpy(&rest, x + count * 8, (size_t)(bytes % 8));
    rest = opdi_bits_shift_word(rest, by.keep, by.sign, by.bits, by.left);
    memcpy(out + count * 8, &rest, (size_t)(bytes % 8));
}
/* A pass of opdi_bits_run.  data: the first elements of the result and of the inputs.  repeated: copies of the second
   input, if it is a number; else NULL.  size: the bytes of an element.  shifts: the pass is a shift by a number. */
typedef struct opdi_bits_pass {
    opdi_loop loop;
    char *data[3], *repeated;
    int64_t size;
    bool shifts;
    opdi_bits_shift shift;
} opdi_bits_pass;
enum { OPDI_BITS_REPEATED = 256 };
static void opdi_bits_part(void *ctx, int64_t begin, int64_t end) {
    const opdi_bits_pass *const pass = (const opdi_bits_pass *)ctx;
    void *data[3];
    if (pass->shifts) {
        opdi_bits_shift_run(&pass->shift, pass->data[0] + begin * pass->size, pass->data[1] + begin * pass->size,
                         (end - begin) * pass->size);
        return;
    }
    for (int64_t at = begin, count; at < end; at += count) {
        count = pass->repeated ? OPDI_MIN(end - at, (int64_t)OPDI_BITS_REPEATED) : end - at;
        for (int k = 0; k < 3; k++) { data[k] = pass->data[k] + at * pass->size; }
        if (pass->repeated) { data[2] = pass->repeated; }
        pass->loop(data, count, &opdi_no_params);
    }
}
/* Runs a formula on tensors of the result's dtype by a loop over elements of this dtype.  The second input may also be
   a number, which is cast to this dtype.  Returns false and does nothing if there is no such loop, or if a tensor is
   not contiguous or overlaps the result. */
OPDI_INTERNAL bool opdi_bits_run(const opdi_formula *formula, opd_tensor *const *ops, int nops) {
    const opd_tensor *const out = ops[0];
    const opd_scalar_type dtype = (opd_scalar_type)out->dtype;
    char repeated[OPDI_BITS_REPEATED * 8];
    opdi_bits_pass pass;
    if (!opdi_has_vectors()) { return false; }
    pass.shifts = false;
    pass.loop = opdi_bits_loop_of(formula->loop[OPDI_I64], dtype);
    pass.repeated = NULL;
    pass.size = (int64_t)opd_dtype_size(dtype);
    if (!pass.loop) { return false; }
    for (int k = 0; k < 3; k++) {
        const opd_tensor *const tensor = ops[OPDI_MIN(k, nops - 1)];
        const bool same = tensor->dtype == out->dtype && tensor->numel == out->numel;
        pass.data[k] = tensor->data;
        if (!(tensor->flags & OPDI_CONTIGUOUS) ||
            ((tensor->data != out->data || !same) && opdi_same_memory(tensor, out))) { return false; }
        if (same) { continue; }
        if (k != 2 || tensor->ndim != 0 || !opdi_load_of(OPDI_I64, tensor->dtype)) { return false; }
        int64_t number;
        opdi_load_of(OPDI_I64, tensor->dtype)(&number, tensor->data, 1);
        opdi_store_of(OPDI_I64, out->dtype)(repeated, &number, 1);
        pass.repeated = repeated;
        pass.data[2] = repeated;
        opdi_gather(repeated, repeated, 0, OPDI_BITS_REPEATED, (int)pass.size);
        opdi_load_of(OPDI_I64, out->dtype)(&number, repeated, 1);
        pass.shifts = dtype != OPD_BOOL && ((uintptr_t)pass.data[0] | (uintptr_t)pass.data[1]) % 8 == 0;
        opdi_bits_shift_set(&pass.shift, (int)pass.size * 8, formula->loop[OPDI_I64] == opdi_i64_bitwise_left_shift,
                       dtype != OPD_UINT8, number);
    }
    opdi_parallel_for(out->numel, OPDI_GRAIN, opdi_bits_part, &pass);
    return true;
}
/* Runs a formula as opdi_bits_run or opdi_words_run does. */
OPDI_INTERNAL bool opdi_bits_or_words_run(const opdi_formula *formula, opd_tensor *const *ops, int nops) {
    return opdi_bits_run(formula, ops, nops) || opdi_words_run(formula, ops, nops);
}
