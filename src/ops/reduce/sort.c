#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:sort      sorting and selection; integrals and statistics of samples
//----------------------------------------------------------------------------------------------------------------------

//== sorting ===========================================================================================================

OPDI_ALWAYS uint64_t opdi_key_f64(uint64_t u) {
    const uint64_t bits = u << 1, zero = (uint64_t)0 - (bits != 0), nan = (uint64_t)0 - (bits > 0xffe0000000000000u);
    u &= zero;
    return (u ^ (((uint64_t)0 - (u >> 63)) | (uint64_t)1 << 63)) | nan;
}
OPDI_ALWAYS uint32_t opdi_key_f32(uint32_t u) {
    const uint32_t bits = u << 1, zero = (uint32_t)0 - (bits != 0), nan = (uint32_t)0 - (bits > 0xff000000u);
    u &= zero;
    return (u ^ (((uint32_t)0 - (u >> 31)) | 0x80000000u)) | nan;
}
/* Computes the sort keys of `count` numbers of the type `type` (OPDI_F32, ...); count is a multiple of 16.  The keys,
   compared as unsigned numbers, have the order of the numbers or, if `flip` is UINT64_MAX, the reverse order.  Keys of
   float32 are in the upper half of a word. */
OPDI_ALWAYS void opdi_keys_body(uint64_t *place, const void *px, int64_t count, int type, uint64_t flip) {
    const uint32_t *x32 = (const uint32_t *)px;
    const uint64_t *x64 = (const uint64_t *)px;
    for (int64_t i = 0; i < count; i += 16) {
        if (type == OPDI_F32) {
            OPDI_IVDEP
            for (int j = 0; j < 16; j++) { place[i + j] = ((uint64_t)opdi_key_f32(x32[i + j]) << 32) ^ flip; }
        } else if (type == OPDI_F64) {
            OPDI_IVDEP
            for (int j = 0; j < 16; j++) { place[i + j] = opdi_key_f64(x64[i + j]) ^ flip; }
        } else {
            OPDI_IVDEP
            for (int j = 0; j < 16; j++) { place[i + j] = x64[i + j] ^ (uint64_t)1 << 63 ^ flip; }
        }
    }
}
/* Writes to `places` the indices of the keys that are less than `limit`.  `count` is a multiple of 16.  Returns the
   number of these keys. */
OPDI_ALWAYS int64_t opdi_keys_below_body(int32_t *places, const uint64_t *keys, int64_t count, uint64_t limit) {
    int64_t found = 0;
    for (int64_t i = 0; i < count; i += 16) {
        uint64_t any = 0;
        for (int j = 0; j < 16; j++) { any |= (uint64_t)(keys[i + j] < limit); }
        for (int j = 0; j < 16 && any; j++) {
            places[found] = (int32_t)(i + j);
            found += keys[i + j] < limit;
        }
    }
    return found;
}
#define OPDI_RANKED 128
/* Sorts at most OPDI_RANKED keys to `to`: the place of a key is the number of smaller keys, which is counted without
   branches.  Returns false if there are equal keys, whose places would be the same. */
OPDI_ALWAYS bool opdi_keys_rank_body(opdi_key *to, const opdi_key *from, int64_t count) {
    int64_t words[OPDI_RANKED], sum = 0;
    const int64_t up = (count + 15) & ~(int64_t)15;
    for (int64_t i = 0; i < up; i++) {
        words[i] = i < count ? (int64_t)(from[i].key ^ (uint64_t)1 << 63) : INT64_MAX;
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t own = words[i];
        int64_t rank = 0;
        for (int64_t k = 0; k < up; k += 16) {
            for (int j = 0; j < 16; j++) { rank += words[k + j] < own; }
        }
        to[rank] = from[i];
        sum += rank;
    }
    return sum == count * (count - 1) / 2;
}
#if defined(OPDI_X86)
OPDI_AVX2 static void opdi_keys_avx2(uint64_t *place, const void *px, int64_t count, int type, uint64_t flip) {
    opdi_keys_body(place, px, count, type, flip);
}
OPDI_AVX2 static int64_t opdi_keys_below_avx2(int32_t *places, const uint64_t *keys, int64_t count, uint64_t limit) {
    return opdi_keys_below_body(places, keys, count, limit);
}
OPDI_AVX2 static bool opdi_keys_rank_avx2(opdi_key *to, const opdi_key *from, int64_t count) {
    return opdi_keys_rank_body(to, from, count);
}
OPDI_AVX512 static bool opdi_keys_rank_avx512(opdi_key *to, const opdi_key *from, int64_t count) {
    return opdi_keys_rank_body(to, from, count);
}
OPDI_AVX512 static void opdi_keys_avx512(uint64_t *place, const void *px, int64_t count, int type, uint64_t flip) {
    opdi_keys_body(place, px, count, type, flip);
}
OPDI_AVX512 static int64_t opdi_keys_below_avx512(int32_t *places, const uint64_t *keys, int64_t count,
                                                  uint64_t limit) {
    return opdi_keys_below_body(places, keys, count, limit);
}
#define OPDI_KEYS_WIDE(level, wide) if (opdi_cpu_level() == (level)) { wide; }
#else
#define OPDI_KEYS_WIDE(level, wide)
#endif
/* opdi_keys_of and opdi_keys_below do the work of the two functions above for any count.  The arrays of keys and
   indices must have at least count elements, rounded up to a multiple of 16. */
static void opdi_keys_of(uint64_t *place, const void *px, int64_t count, int type, bool descending) {
    const int64_t most = count & ~(int64_t)15, size = type == OPDI_F32 ? 4 : 8;
    const uint64_t flip = descending ? UINT64_MAX : 0;
    uint64_t rest[16] = {0};
    memcpy(rest, (const char *)px + most * size, (size_t)((count - most) * size));
    OPDI_KEYS_WIDE(1, opdi_keys_avx2(place, px, most, type, flip); opdi_keys_avx2(place + most, rest, 16, type, flip);
                   return)
    OPDI_KEYS_WIDE(2, opdi_keys_avx512(place, px, most, type, flip);
                   opdi_keys_avx512(place + most, rest, 16, type, flip); return)
    opdi_keys_body(place, px, most, type, flip);
    opdi_keys_body(place + most, rest, 16, type, flip);
}
static int64_t opdi_keys_below(int32_t *places, uint64_t *keys, int64_t count, uint64_t limit) {
    const int64_t up = (count + 15) & ~(int64_t)15;
    for (int64_t i = count; i < up; i++) { keys[i] = UINT64_MAX; }
    OPDI_KEYS_WIDE(1, return opdi_keys_below_avx2(places, keys, up, limit))
    OPDI_KEYS_WIDE(2, return opdi_keys_below_avx512(places, keys, up, limit))
    return opdi_keys_below_body(places, keys, up, limit);
}
/* Does the work of opdi_keys_rank_body if the processor compares several keys at a time and there are few keys.
   Returns false if it has not sorted them. */
static bool opdi_keys_rank(opdi_key *to, const opdi_key *from, int64_t count) {
    if (count > OPDI_RANKED) { return false; }
    OPDI_KEYS_WIDE(1, return opdi_keys_rank_avx2(to, from, count))
    OPDI_KEYS_WIDE(2, return opdi_keys_rank_avx512(to, from, count))
    (void)to;
    (void)from;
    return false;
}
#define OPDI_COUNTED 128                          /* counting sort is used for this number of words or more (or 4 times
                                                     as many keys) */
/* Changes count[], which has the number of keys with each digit, to the index at which the keys with this digit begin.
   `all` is the number of keys.  Returns false if all keys have the same digit. */
static bool opdi_digits_begin(int64_t *count, int digits, int64_t all) {
    int64_t at = 0;
    for (int digit = 0; digit < digits; digit++) {
        const int64_t many = count[digit];
        if (many == all) { return false; }
        count[digit] = at;
        at += many;
    }
    return true;
}
/* Sorts keys stably by one digit of eight bits after another, beginning with the lowest.  Skips digits that are equal
   in all keys.  Returns the array that has the result: key or other. */
static opdi_key *opdi_keys_by_digits(opdi_key *key, opdi_key *other, int64_t count) {
    int64_t many[8][256];
    memset(many, 0, sizeof many);
    for (int64_t i = 0; i < count; i++) {
        const uint64_t bits = key[i].key;
        for (int digit = 0; digit < 8; digit++) { many[digit][bits >> (8 * digit) & 255]++; }
    }
    for (int digit = 0; digit < 8; digit++) {
        opdi_key *next = key;
        if (!opdi_digits_begin(many[digit], 256, count)) { continue; }
        for (int64_t i = 0; i < count; i++) { other[many[digit][key[i].key >> (8 * digit) & 255]++] = key[i]; }
        key = other;
        other = next;
    }
    return key;
}
/* Does the work of opdi_keys_by_digits for words, which are sorted by their upper halves.  The halves are at most
   `most`. */
static uint64_t *opdi_words_by_digits(uint64_t *word, uint64_t *other, int64_t count, uint64_t most) {
    const int digits = most >> 16 ? most >> 24 ? 4 : 3 : most >> 8 ? 2 : 1;
    int64_t many[4][256];
    memset(many, 0, sizeof many);
    for (int64_t i = 0; i < count; i++) {
        const uint64_t bits = word[i];
        for (int digit = 0; digit < digits; digit++) { many[digit][bits >> (32 + 8 * digit) & 255]++; }
    }
    for (int digit = 0; digit < digits; digit++) {
        uint64_t *next = word;
        if (!opdi_digits_begin(many[digit], 256, count)) { continue; }
        for (int64_t i = 0; i < count; i++) { other[many[digit][word[i] >> (32 + 8 * digit) & 255]++] = word[i]; }
        word = other;
        other = next;
    }
    return word;
}
/* Sorts keys stably.  Sorts many keys by their digits.  Sorts a few keys by insertion in runs of 16, and then merges
   the runs pass by pass.  Returns the array that has the result: key or other. */
OPDI_INTERNAL opdi_key *opdi_keys_sort(opdi_key *key, opdi_key *other, int64_t count) {
    int64_t j, k, rows;
    if (count >= 4 * OPDI_COUNTED) { return opdi_keys_by_digits(key, other, count); }
    for (int64_t i = 0; i < count; i += 16) {
        for (j = i + 1; j < count && j < i + 16; j++) {
            const opdi_key next = key[j];
            for (k = j; k > i && key[k - 1].key > next.key; k--) { key[k] = key[k - 1]; }
            key[k] = next;
        }
    }
    for (int64_t width = 16; width < count; width *= 2) {
        opdi_key *next = key;
        for (int64_t i = 0; i < count; i += 2 * width) {
            const int64_t mid = OPDI_MIN(i + width, count), end = OPDI_MIN(i + 2 * width, count);
            for (j = i, k = mid, rows = i; rows < end; rows++) {
                other[rows] = k >= end || (j < mid && key[j].key <= key[k].key) ? key[j++] : key[k++];
            }
        }
        key = other;
        other = next;
    }
    return key;
}
/* Defines opdi_line_NAME, an array of line functions, which has one function for each type in which they compute.  They
   call opdi_line_NAME_body. */
#define OPDI_LINE_OF(name, tensor, type)                                                                          \
    static void opdi_line_##name##_##tensor(const opdi_lines *lines, const opdi_piece *at, const void *const *in, \
                                            void *const *out, char *tmp) {                                        \
        (void)at;                                                                                                 \
        opdi_line_##name##_body(lines, in[0], out, tmp, type);                                                    \
    }
#define OPDI_LINE_TYPES(name)                                                                                     \
    OPDI_LINE_OF(name, f32, OPDI_F32) OPDI_LINE_OF(name, f64, OPDI_F64) OPDI_LINE_OF(name, i64, OPDI_I64)         \
    static const opdi_line_fn opdi_line_##name[3] = {opdi_line_##name##_f32, opdi_line_##name##_f64,              \
                                                     opdi_line_##name##_i64};
/* Runs `body` for every element of the line at `pointer`, with its sort key in `key` and its index in `i`. */
#define OPDI_LINE_EACH(pointer, body) {                                                                           \
        uint64_t block[OPDI_BLOCK], keys[OPDI_BLOCK + 16], key;                                                   \
        int64_t from, rows, j, i;                                                                                 \
        for (from = 0; from < lines->count; from += rows) {                                                       \
            rows = OPDI_MIN(lines->count - from, (int64_t)OPDI_BLOCK);                                            \
            opdi_keys_of(keys, opdi_line_read(lines, pointer, from, rows, block), rows, type, descending);        \
            for (j = 0; j < rows; j++) { i = from + j; key = keys[j]; (void)i; body }                             \
        }                                                                                                         \
    }
/* Writes element i of the line at `memory`, and the index i, as element number `element` of the two outputs. */
static void opdi_line_take(const opdi_lines *lines, const void *memory, int64_t i, void *const *out, int64_t element) {
    const char *x = (const char *)memory + i * lines->step[0];
    char *to = (char *)out[0] + element * lines->step[1];
    ((int64_t *)out[1])[element] = i;
    switch (lines->size[0]) {
        case 1: *to = *x; break;
        case 2: *(uint16_t *)(void *)to = *(const uint16_t *)(const void *)x; break;
        case 4: *(uint32_t *)(void *)to = *(const uint32_t *)(const void *)x; break;
        default: *(uint64_t *)(void *)to = *(const uint64_t *)(const void *)x;
    }
}
/* Does the work of opdi_line_take for `count` elements, whose indices are already in output 1.  The loop does nothing
   else, so that the CPU overlaps many reads. */
#define OPDI_TAKE_EACH(type) { \
        const char *const x = (const char *)memory; \
        char *const to = (char *)out[0]; \
        const int64_t *const place = (const int64_t *)out[1], from = lines->step[0], step = lines->step[1]; \
        for (int64_t i = 0; i < count; i++) { \
            *(type *)(void *)(to + i * step) = *(const type *)(const void *)(x + place[i] * from); \
        } \
        break; \
    }
static void opdi_line_take_all(const opdi_lines *lines, const void *memory, void *const *out, int64_t count) {
    switch (lines->size[0]) {
        case 1: OPDI_TAKE_EACH(uint8_t)
        case 2: OPDI_TAKE_EACH(uint16_t)
        case 4: OPDI_TAKE_EACH(uint32_t)
        default: OPDI_TAKE_EACH(uint64_t)
    }
}
#undef OPDI_TAKE_EACH
/* Returns the sorted keys of the line at `memory`, with indices, in tmp. */
OPDI_ALWAYS opdi_key *opdi_line_sorted(const opdi_lines *lines, const void *memory, char *tmp, int type,
                                       bool descending) {
    opdi_key *other = (opdi_key *)(void *)tmp;
    OPDI_LINE_EACH(memory, other[i].key = key; other[i].index = i;)
    return opdi_keys_sort(other, other + lines->count, lines->count);
}
/* Returns true if keys and their indices should share words: if the line is long, and indices fit into 31 bits. */
static bool opdi_line_in_words(int64_t count) { return count >= OPDI_COUNTED && count >> 31 == 0; }
/* Returns a word for each element of the sorted line, with its key in the upper and its index in the lower half.  Keys
   of integers are relative to *least, which is set.  Returns NULL if keys need more than 32 bits or the line is too
   short. */
OPDI_ALWAYS uint64_t *opdi_line_words(const opdi_lines *lines, const void *memory, char *tmp, int type,
                                      uint64_t *least) {
    const bool descending = lines->flag;
    uint64_t *word = (uint64_t *)(void *)tmp, most = UINT32_MAX;
    if (type == OPDI_F64 || !opdi_line_in_words(lines->count)) { return NULL; }
    if (type == OPDI_F32) {
        OPDI_LINE_EACH(memory, word[i] = (key & ~(uint64_t)0xffffffffu) | (uint64_t)i;)
    } else {
        uint64_t first = UINT64_MAX;
        most = 0;
        OPDI_LINE_EACH(memory, first = key < first ? key : first; most = key > most ? key : most;)
        most -= first;
        if (most >> 32) { return NULL; }
        OPDI_LINE_EACH(memory, word[i] = ((key - first) << 32) | (uint64_t)i;)
        *least = first;
    }
    return opdi_words_by_digits(word, word + lines->count, lines->count, most);
}
/* Writes `count` integers to output 0, made from their words: key `least` is that of a word whose upper half is 0. */
#define OPDI_WORD_EACH(type) { \
        for (int64_t i = 0; i < count; i++) { \
            *(type *)(void *)(to + i * step) = (type)((least + (word[i] >> 32)) ^ flip); \
        } \
        break; \
    }
static void opdi_words_give(const opdi_lines *lines, const uint64_t *word, uint64_t least, void *const *out,
                            int64_t count) {
    const uint64_t flip = (uint64_t)1 << 63 ^ (lines->flag ? UINT64_MAX : 0);
    const int64_t step = lines->step[1];
    char *const to = (char *)out[0];
    switch (lines->size[0]) {
        case 1: OPDI_WORD_EACH(uint8_t)
        case 2: OPDI_WORD_EACH(uint16_t)
        case 4: OPDI_WORD_EACH(uint32_t)
        default: OPDI_WORD_EACH(uint64_t)
    }
}
#undef OPDI_WORD_EACH
/* Sorts the line at `memory`, and writes the first lines->len[1] elements of the sorted line, and their indices, to
   `out`. */
OPDI_ALWAYS void opdi_line_sort_body(const opdi_lines *lines, const void *memory, void *const *out, char *tmp,
                                     int type) {
    uint64_t least = 0;
    const uint64_t *word = opdi_line_words(lines, memory, tmp, type, &least);
    const opdi_key *key = word ? NULL : opdi_line_sorted(lines, memory, tmp, type, lines->flag);
    int64_t *place = (int64_t *)out[1];
    for (int64_t i = 0; i < lines->len[1] && word; i++) { place[i] = (int64_t)(word[i] & 0xffffffffu); }
    for (int64_t i = 0; i < lines->len[1] && key; i++) { place[i] = key[i].index; }
    if (type == OPDI_I64 && word) { opdi_words_give(lines, word, least, out, lines->len[1]); }
    else { opdi_line_take_all(lines, memory, out, lines->len[1]); }
}
OPDI_LINE_TYPES(sort)
/* Sorts a line of bytes stably by counting them.  The order of the bytes is that of the unsigned numbers byte ^ flip,
   where flip is lines->number.  If lines->flag2 is set, the bytes are bools: all bytes except 0 count as 1. */
static void opdi_line_sort_bytes(const opdi_lines *lines, const opdi_piece *at, const void *const *in,
                                 void *const *out, char *tmp) {
    const uint8_t *const x = (const uint8_t *)in[0], top = lines->flag2 ? 1 : 255, flip = (uint8_t)lines->number;
    const int64_t step = lines->step[0], to_step = lines->step[1], count = lines->count;
    uint8_t *to = (uint8_t *)out[0];
    int64_t *const place = (int64_t *)out[1];
    uint32_t many[4][256], begin[256], from = 0;  /* four tables: equal neighbours do not wait for each other */
    (void)at;
    (void)tmp;
    memset(many, 0, sizeof many);
    for (int64_t i = 0; i < count; i++) { many[i & 3][OPDI_MIN(x[i * step], top) ^ flip]++; }
    for (int digit = 0; digit < 256; digit++) {
        const uint32_t equal = many[0][digit] + many[1][digit] + many[2][digit] + many[3][digit];
        const uint8_t byte = (uint8_t)(digit ^ flip);
        begin[digit] = from;
        from += equal;
        if (to_step == 1) { memset(to, byte, equal); }
        for (uint32_t i = 0; i < equal && to_step != 1; i++) { to[i * to_step] = byte; }
        to += equal * to_step;
    }
    for (int64_t i = 0; i < count; i++) { place[begin[OPDI_MIN(x[i * step], top) ^ flip]++] = i; }
}
static const opdi_line_fn opdi_line_bytes[3] = {NULL, NULL, opdi_line_sort_bytes};

/* Selection: the k-th smallest key is found by counting digits, one digit after another, from the highest digit in
   which keys differ.  The line is not copied.  The counts are in tmp. */
#define OPDI_DIGIT 11
#define OPDI_DIGITS ((int64_t)1 << OPDI_DIGIT)
/* Returns the key with index *place in the sorted line.  Sets *place to the number of equal keys before this one in the
   sorted line. */
OPDI_ALWAYS uint64_t opdi_line_nth(const opdi_lines *lines, const void *memory, char *tmp, int type, bool descending,
                                   int64_t *place) {
    int64_t *count = (int64_t *)(void *)tmp;
    uint64_t least = UINT64_MAX, most = 0, prefix = 0;
    const int end = type == OPDI_F32 ? 32 : 0;    /* the lowest bit that keys use */
    const int digit = lines->count < 4 * OPDI_DIGITS ? 8 : OPDI_DIGIT;
    const uint64_t digits = ((uint64_t)1 << digit) - 1;
    int shift = 64, dim;
    if (type == OPDI_I64) {
        OPDI_LINE_EACH(memory, least = key < least ? key : least; most = key > most ? key : most;)
        shift = least == most ? 0 : opdi_top_bit(least ^ most) + 1;
        prefix = least;
    }
    while (shift > end) {
        const int low = OPDI_MAX(shift - digit, end);
        const uint64_t mask = shift == 64 ? 0 : ~(uint64_t)0 << shift;
        memset(count, 0, (size_t)(digits + 1) * sizeof *count);
        OPDI_LINE_EACH(memory, if (((key ^ prefix) & mask) == 0) { count[key >> low & digits]++; })
        for (dim = 0; *place >= count[dim]; dim++) { *place -= count[dim]; }
        prefix = (prefix & mask) | (uint64_t)dim << low;
        shift = low;
    }
    if (end && descending) { prefix |= 0xffffffffu; }
    return prefix;
}
/* If lines->len[1] is small, writes the first lines->len[1] elements of the sorted line.  Keeps the elements that come
   first so far, appends each element that comes before the last of these, and sorts again when the memory is full.
   Returns false if so many elements were appended, as in a line of decreasing keys, that counting digits is faster. */
#define OPDI_TOP_CAPACITY(want) (2 * (want) + OPDI_BLOCK)
OPDI_ALWAYS bool opdi_line_few_body(const opdi_lines *lines, const void *memory, void *const *out, char *tmp,
                                    int type) {
    const int64_t want = lines->len[1], buffer = OPDI_TOP_CAPACITY(want), most = lines->count / 4 + 4 * buffer;
    opdi_key *few = (opdi_key *)(void *)tmp;
    uint64_t block[OPDI_BLOCK], keys[OPDI_BLOCK + 16], limit = UINT64_MAX;
    int32_t places[OPDI_BLOCK + 16];
    int64_t count = 0, total = 0, rows;
    bool full = false;
    for (int64_t from = 0; from < lines->count; from += rows) {
        rows = OPDI_MIN(lines->count - from, full ? (int64_t)OPDI_BLOCK / 2 : OPDI_MIN(want + 32, (int64_t)OPDI_BLOCK));
        opdi_keys_of(keys, opdi_line_read(lines, memory, from, rows, block), rows, type, lines->flag);
        const int64_t found = full ? opdi_keys_below(places, keys, rows, limit) : rows;
        for (int64_t i = 0; i < found; i++) {
            const int64_t place = full ? places[i] : i;
            few[count].key = keys[place];
            few[count++].index = from + place;
        }
        total += found;
        if (total > most) { return false; }
        if (count < want || (full && count < 2 * want + 32 && from + rows < lines->count)) { continue; }
        const bool ranked = opdi_keys_rank(few + buffer, few, count);
        const opdi_key *sorted = ranked ? few + buffer : opdi_keys_sort(few, few + buffer, count);
        if (sorted != few) { memcpy(few, sorted, (size_t)want * sizeof *few); }
        count = want;
        limit = few[want - 1].key;
        full = true;
    }
    for (int64_t i = 0; i < want; i++) { opdi_line_take(lines, memory, few[i].index, out, i); }
    return true;
}
/* Writes the first lines->len[1] elements of the sorted line: finds the last of these elements, collects all elements
   that come before it and as many equal ones as are needed, and sorts them. */
OPDI_ALWAYS void opdi_line_top_body(const opdi_lines *lines, const void *memory, void *const *out, char *tmp,
                                    int type) {
    const bool descending = lines->flag;
    const int64_t want = lines->len[1];
    opdi_key *other = (opdi_key *)(void *)(tmp + OPDI_DIGITS * 8);
    int64_t equal = want - 1, count = 0;
    if (want == 0 || (lines->flag2 && opdi_line_few_body(lines, memory, out, tmp, type))) { return; }
    uint64_t last = opdi_line_nth(lines, memory, tmp, type, descending, &equal);
    OPDI_LINE_EACH(memory, if (key < last || (key == last && equal-- >= 0)) { other[count].key = key;
        other[count++].index = i; }) other = opdi_keys_sort(other, other + want, want);
    for (count = 0; count < want; count++) { opdi_line_take(lines, memory, other[count].index, out, count); }
}
OPDI_LINE_TYPES(top)
/* Writes one element of the sorted line: number lines->number or, if lines->flag2 is set, the median.  If lines->flag
   is also set, the median ignores NaN. */
OPDI_ALWAYS void opdi_line_pick_body(const opdi_lines *lines, const void *memory, void *const *out, char *tmp,
                                     int type) {
    const bool descending = false;
    int64_t k = lines->number - 1, count = lines->count, nans = 0;
    if (lines->flag2) {
        if (type != OPDI_I64) {
            OPDI_LINE_EACH(memory, nans += key >= (type == OPDI_F32 ? UINT64_MAX << 32 : UINT64_MAX);)
        }
        k = nans == 0 ? (count - 1) / 2 : !lines->flag ? count - nans : nans == count ? 0 : (count - nans - 1) / 2;
    }
    uint64_t wanted = opdi_line_nth(lines, memory, tmp, type, descending, &k);
    OPDI_LINE_EACH(memory, if (key == wanted && k-- == 0) { opdi_line_take(lines, memory, i, out, 0); return; })
}
OPDI_LINE_TYPES(pick)
/* Writes the most frequent element (if there are several, the smallest) and the index of its last occurrence. */
OPDI_ALWAYS void opdi_line_mode_body(const opdi_lines *lines, const void *memory, void *const *out, char *tmp,
                                     int type) {
    const opdi_key *key = opdi_line_sorted(lines, memory, tmp, type, false);
    int64_t count = 0, most = 0, at = 0;
    for (int64_t i = 0; i < lines->count; i++) {
        count++;
        if (i + 1 < lines->count && key[i].key == key[i + 1].key) { continue; }
        if (count > most) {
            most = count;
            at = key[i].index;
        }
        count = 0;
    }
    opdi_line_take(lines, memory, at, out, 0);
}
OPDI_LINE_TYPES(mode)

/* Returns the size of dim, or 1 for a tensor without dims.  On failure, returns -1 and sets an error. */
static int64_t opdi_line_size(const opd_tensor *tensor, int64_t dim) {
    const int d = opdi_dim_of(dim, tensor->ndim);
    return d < 0 ? -1 : tensor->ndim ? opdi_sizes(tensor)[d] : 1;
}
OPDI_COLD_BEGIN
static int opdi_sort_of(opd_call *call, const opdi_line_fn *fns, int64_t dim, int64_t element, bool flag, bool flag2,
                        bool reduce, bool keep, const char *what) {
    const int64_t count = opdi_line_size(opd_arg_tensor(call, 0), dim);
    opdi_lines lines;
    if (count < 0) { return -1; }
    lines.number = element;
    lines.flag = flag;
    lines.flag2 = flag2;
    lines.keep_strides = element < 0;
    lines.passes = 0;
    lines.tmp = fns == opdi_line_pick ? (size_t)OPDI_DIGITS * 8 : (size_t)count * 2 * sizeof(opdi_key);
    if (fns == opdi_line_sort && opdi_line_in_words(count)) {
        const opd_scalar_type dtype = OPDI_DTYPE(opd_arg_tensor(call, 0));
        if (opd_dtype_size(dtype) <= 4) { lines.tmp = (size_t)count * 2 * sizeof(uint64_t); }
        if (dtype == OPD_UINT8 || dtype == OPD_INT8 || dtype == OPD_BOOL) {
            fns = opdi_line_bytes;
            lines.number = (dtype == OPD_INT8 ? 128 : 0) ^ (flag ? 255 : 0);
            lines.flag2 = dtype == OPD_BOOL;
            lines.tmp = 0;
        }
    }
    if (fns == opdi_line_top) {
        lines.flag2 = element <= 4096 && element <= count / 8;
        lines.tmp = (size_t)OPDI_DIGITS * 8 + (size_t)element * 2 * sizeof(opdi_key);
        if (lines.flag2) { lines.tmp = OPDI_MAX(lines.tmp, (size_t)OPDI_TOP_CAPACITY(element) * 2 * sizeof(opdi_key)); }
    }
    return opdi_lines_select(call, fns, dim, reduce ? 1 : element < 0 ? count : element, reduce, keep, &lines, 20,
                             what);
}
static int opdi_sort_kernel(opd_call *call) {
    return opdi_sort_of(call, opdi_line_sort, opd_arg_int(call, 1), -1, opd_arg_bool(call, 2), false, false, true,
                        "sort_stable");
}
static int opdi_sort_stable_kernel(opd_call *call) {
    return opdi_sort_of(call, opdi_line_sort, opd_arg_int(call, 2), -1, opd_arg_bool(call, 3), false, false, true,
                        "sort_stable");
}
static int opdi_topk_kernel(opd_call *call) {
    const opd_tensor *tensor = opd_arg_tensor(call, 0);
    const int64_t depth = opd_arg_int(call, 1), dim = opd_arg_int(call, 2), count = opdi_line_size(tensor, dim);
    if (count < 0) { return -1; }
    if (depth < 0 || depth > count) { return opd_fail(OPD_ERROR_INDEX, "selected index k out of range"); }
    if (tensor->dtype == OPD_BOOL) { return opdi_dtype_fail("topk_cpu", OPD_BOOL); }
    return opdi_sort_of(call, count <= 64 ? opdi_line_sort : opdi_line_top, dim, depth, opd_arg_bool(call, 3), false,
                        false, true, "topk_cpu");
}
static int opdi_pick_of(opd_call *call, const opdi_line_fn *fns, int64_t dim, int64_t element, bool flag, bool flag2,
                        bool keep, const char *name) {
    const opd_tensor *tensor = opd_arg_tensor(call, 0);
    if (opdi_line_size(tensor, dim) < 0 || opdi_reduce_nonempty(tensor, opd_ints_of(&dim, 1), name) != 0) { return -1; }
    if (tensor->dtype == OPD_BOOL && fns != opdi_line_mode) {
        return opd_fail(OPD_ERROR_DTYPE, "\"%s_cpu\" not implemented for 'bool'", name);
    }
    return opdi_sort_of(call, fns, dim, element, flag, flag2, true, keep, name);
}
static int opdi_kthvalue_kernel(opd_call *call) {
    const int64_t depth = opd_arg_int(call, 1), dim = opd_arg_int(call, 2),
        count = opdi_line_size(opd_arg_tensor(call, 0), dim);
    if (count < 0 || opdi_reduce_nonempty(opd_arg_tensor(call, 0), opd_ints_of(&dim, 1), "kthvalue") != 0) {
        return -1;
    }
    if (depth < 1 || depth > count) {
        return opd_fail(OPD_ERROR_INDEX, "kthvalue(): selected number k out of range for dimension %lld",
                        (long long)dim);
    }
    return opdi_pick_of(call, opdi_line_pick, dim, depth, false, false, opd_arg_bool(call, 3), "kthvalue");
}
static int opdi_median_dim_kernel(opd_call *call) {
    return opdi_pick_of(call, opdi_line_pick, opd_arg_int(call, 1), 0, false, true, opd_arg_bool(call, 2), "median");
}
static int opdi_nanmedian_dim_kernel(opd_call *call) {
    return opdi_pick_of(call, opdi_line_pick, opd_arg_int(call, 1), 0, true, true, opd_arg_bool(call, 2), "nanmedian");
}
static int opdi_mode_kernel(opd_call *call) {
    return opdi_pick_of(call, opdi_line_mode, opd_arg_int(call, 1), 0, false, false, opd_arg_bool(call, 2), "mode");
}
/* Computes the median of all elements, which are read as one line of a contiguous tensor.  If skip_nan is true, ignores
   NaN.  Returns 0, or -1 and sets an error. */
static int opdi_median_all(opd_call *call, bool skip_nan) {
    opd_tensor *tensor = opd_arg_tensor(call, 0), *ops[3];
    const int type = opdi_compute_type((opd_scalar_type)tensor->dtype);
    int64_t dims[2], one[2], where = 0;
    opdi_lines lines;
    if (tensor->dtype == OPD_BOOL || opd_dtype_is_complex((opd_scalar_type)tensor->dtype)) {
        return opdi_dtype_fail("median_cpu", tensor->dtype);
    }
    ops[1] = opd_result(call, 0, NULL, 0, (opd_scalar_type)tensor->dtype);
    if (!ops[1]) { return -1; }
    if (!ops[1]->data || !tensor->data) { return 0; }
    if (tensor->numel == 0) {                     /* the median is NaN; for integers, the smallest int64 or int32, or
                                                     0 */
        const double nan = (double)NAN;
        const int64_t least = tensor->dtype == OPD_INT64 ? INT64_MIN : tensor->dtype == OPD_INT32 ? INT32_MIN : 0;
        opdi_store_of(type == OPDI_I64 ? OPDI_I64 : OPDI_F64, tensor->dtype)(
            ops[1]->data, type == OPDI_I64 ? (const void *)&least : (const void *)&nan, 1);
        return 0;
    }
    tensor = opd_contiguous(tensor);
    if (!tensor) { return -1; }
    opd_tensor flat = *tensor;
    dims[0] = tensor->numel;
    dims[1] = 1;
    flat.dims = dims;
    flat.ndim = 1;
    opd_tensor index = flat;
    one[0] = one[1] = 1;
    index.dims = one;
    index.numel = 1;
    index.dtype = OPD_INT64;
    index.data = (char *)&where;
    ops[0] = &flat;
    ops[2] = &index;
    opdi_lines_init(&lines, ops, 1, 3, 0, type, 4);
    lines.flag = skip_nan;
    lines.flag2 = true;
    lines.tmp = (size_t)OPDI_DIGITS * 8;
    lines.passes = 0;
    return opdi_lines_run(&lines, opdi_line_pick[type], 20);
}
static int opdi_median_kernel(opd_call *call) { return opdi_median_all(call, false); }
static int opdi_nanmedian_kernel(opd_call *call) { return opdi_median_all(call, true); }
static int opdi_bw_select(opd_backward_call *bw, int dim_arg, int keep_arg) {
    return opd_bw_grad(bw, 0)
        ? opdi_bw_unselect(bw, opd_bw_value(bw, dim_arg).u.i, keep_arg < 0 || opdi_bw_bool(bw, keep_arg)) : 0;
}
static int opdi_sort_backward(opd_backward_call *bw) { return opdi_bw_select(bw, 1, -1); }
static int opdi_sort_stable_backward(opd_backward_call *bw) { return opdi_bw_select(bw, 2, -1); }
static int opdi_topk_backward(opd_backward_call *bw) { return opdi_bw_select(bw, 2, -1); }
static int opdi_kthvalue_backward(opd_backward_call *bw) { return opdi_bw_select(bw, 2, 3); }
static int opdi_select_dim_backward(opd_backward_call *bw) { return opdi_bw_select(bw, 1, 2); }
/* opd_sort(self, dim, descending): self in ascending (descending) order along dim, and the indices in self */
OPDI_OP(sort) {
    op->schema = "sort(Tensor self, int dim=-1, bool descending=False)" OPDI_PAIR;
    op->cpu = op->fake = opdi_sort_kernel; op->backward = opdi_sort_backward; op->save = "indices";
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE | OPDI_OPTAG_OUT_PART;
    op->out = "sort.values(values, indices)";
    op->cases = "[2,3]; [2,3], 0, True; [2,3]i5";
}
/* opd_sort_stable(self, stable, dim, descending): sort; with stable, equal elements keep their order */
OPDI_OP(sort_stable) {
    op->schema = "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False)" OPDI_PAIR;
    op->cpu = op->fake = opdi_sort_stable_kernel; op->backward = opdi_sort_stable_backward; op->save = "indices";
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->out = "sort.values_stable(values, indices)";
    op->cases = "[2,3], stable=True; [2,3], stable=True, dim=0, descending=True";
    op->tags = OPDI_OPTAG_OUT_PART;
}
/* opd_topk: the k greatest elements along dim (largest=False: the k smallest), and their indices */
OPDI_OP(topk) {
    op->schema = "topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True)" OPDI_PAIR;
    op->cpu = op->fake = opdi_topk_kernel; op->backward = opdi_topk_backward; op->save = "indices";
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE | OPDI_OPTAG_OUT_APART;
    op->out = "topk.values(values, indices)";
    op->cases = "[2,5], 2; [5,2], 3, 0, False";
}
/* opd_kthvalue: the k-th smallest element along dim, and its index */
OPDI_OP(kthvalue) {
    op->schema = "kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False)" OPDI_PAIR;
    op->cpu = op->fake = opdi_kthvalue_kernel; op->backward = opdi_kthvalue_backward; op->save = "indices";
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->out = "kthvalue.values(values, indices)";
    op->cases = "[2,5], 2; [5,2], 3, 0, True";
    op->tags = OPDI_OPTAG_OUT_APART;
}
/* opd_median_dim(self, dim, keepdim): the median along dim (the lower one of two), and its index */
OPDI_OP(median_dim) {
    op->schema = "median.dim(Tensor self, int dim, bool keepdim=False)" OPDI_PAIR;
    op->cpu = op->fake = opdi_median_dim_kernel; op->backward = opdi_select_dim_backward; op->save = "indices";
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->out = "median.dim_values(values, indices)";
    op->cases = "[2,5], 1; [5,2], 0, True";
    op->tags = OPDI_OPTAG_OUT_APART;
}
/* opd_nanmedian_dim(self, dim, keepdim): the median of the elements along dim that are not NaN, and its index */
OPDI_OP(nanmedian_dim) {
    op->schema = "nanmedian.dim(Tensor self, int dim, bool keepdim=False)" OPDI_PAIR;
    op->cpu = op->fake = opdi_nanmedian_dim_kernel; op->backward = opdi_select_dim_backward; op->save = "indices";
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->out = "nanmedian.dim_values(values, indices)";
    op->cases = "[2,5], 1; [5,2], 0, True";
    op->tags = OPDI_OPTAG_OUT_APART;
}
/* opd_mode: the most frequent element along dim, and the index of its last occurrence */
OPDI_OP(mode) {
    op->schema = "mode(Tensor self, int dim=-1, bool keepdim=False)" OPDI_PAIR;
    op->cpu = op->fake = opdi_mode_kernel; op->backward = opdi_select_dim_backward; op->save = "indices";
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->out = "mode.values(values, indices)";
    op->cases = "[2,5], 1; [5,2], 0, True";
    op->tags = OPDI_OPTAG_OUT_APART;
}

static opd_tensor *opdi_batch_median(opd_tensor *all, bool skip_nan) {
    opd_tensor *rets[2];
    return (skip_nan ? opd_nanmedian_dim(rets, all, 1, false) : opd_median_dim(rets, all, 1, false)) ? NULL : rets[0];
}
static int opdi_median_batch(opd_call *call) {
    int64_t buffer[OPD_MAX_DIMS];
    opd_ints dims;
    opd_tensor *all = opdi_batch_whole(call, buffer, &dims);
    return opd_batch_return(call, opdi_batch_median(opdi_batch_flat(all), false), 0);
}
/* opd_median: the median of all elements (the lower one of two) */
OPDI_OP(median) {
    op->schema = "median(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_median_kernel; op->backward = opdi_max_backward; op->save = "self, result";
    op->vmap = opdi_median_batch;
    op->out = "median.out";
    op->cases = "[2,3]; [5]";
}

static int opdi_nanmedian_batch(opd_call *call) {
    int64_t buffer[OPD_MAX_DIMS];
    opd_ints dims;
    opd_tensor *all = opdi_batch_whole(call, buffer, &dims);
    return opd_batch_return(call, opdi_batch_median(opdi_batch_flat(all), true), 0);
}
/* opd_nanmedian: the median of all elements that are not NaN */
OPDI_OP(nanmedian) {
    op->schema = "nanmedian(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_nanmedian_kernel; op->backward = opdi_max_backward; op->save = "self, result";
    op->vmap = opdi_nanmedian_batch;
    op->out = "nanmedian.out";
    op->cases = "[2,3]; [5]";
}

static int opdi_sorted_part(opd_call *call, bool stable, int64_t dim, bool descending, int which) {
    opd_tensor *rets[2];
    opd_tensor *tensor = opd_arg_tensor(call, 0);
    if (stable ? opd_sort_stable(rets, tensor, opd_value_bool(true), dim, descending)
        : opd_sort(rets, tensor, dim, descending)) {
        return -1;
    }
    return opd_return_tensor(call, rets[which]);
}
static int opdi_argsort_kernel(opd_call *call) {
    return opdi_sorted_part(call, false, opd_arg_int(call, 1), opd_arg_bool(call, 2), 1);
}
static int opdi_argsort_stable_kernel(opd_call *call) {
    return opdi_sorted_part(call, true, opd_arg_int(call, 2), opd_arg_bool(call, 3), 1);
}
static int opdi_msort_kernel(opd_call *call) { return opdi_sorted_part(call, false, 0, false, 0); }
/* opd_argsort(self, dim, descending): the indices that sort returns */
OPDI_OP(argsort) {
    op->schema = "argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor";
    op->composite = opdi_argsort_kernel;
    op->cases = "[2,3]; [2,3], 0, True";
}
/* opd_argsort_stable(self, stable, dim, descending): the indices that sort.stable returns */
OPDI_OP(argsort_stable) {
    op->schema = "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor";
    op->composite = opdi_argsort_stable_kernel;
    op->out = "argsort.stable_out";
    op->cases = "[2,3], stable=True";
}
/* opd_msort: self sorted along dim 0 */
OPDI_OP(msort) {
    op->schema = "msort(Tensor self) -> Tensor";
    op->composite = opdi_msort_kernel;
    op->out = "msort.out"; op->tags = OPDI_OPTAG_OUT_PART;
    op->cases = "[3,2]";
}
OPDI_COLD_END
