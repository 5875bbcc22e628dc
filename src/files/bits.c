#include "files.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>exchange     DLPack, .npy, and how data files are read and written
//
//  Tensors and graphs are exchanged with other programs.  Files are read from memory maps, and every value in a file is
//  checked before it is used.  A written file appears whole or not at all.  This section depends on tensors, on
//  storages of foreign memory, on the text and constants of graphs, and on plug-ins: a plug-in stays loaded while one
//  of its deleters is needed.  This section calls no operators.
//----------------------------------------------------------------------------------------------------------------------

//== checksums and decompression =======================================================================================
//
//  The checksum of zip files (CRC-32) and their compression (deflate, RFC 1951).  The functions that unpack data set no
//  error: on failure, they set opdi_inflate.wrong to the message.

OPDI_INTERNAL void opdi_crc_init(opdi_crc *crc) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t x = i;
        for (uint32_t k = 0; k < 8; k++) { x = x >> 1 ^ (x & 1 ? 0xedb88320u : 0); }
        crc->rows[0][i] = x;
    }
    for (uint32_t k = 1; k < 8; k++) {
        for (uint32_t i = 0; i < 256; i++) {
            crc->rows[k][i] = crc->rows[k - 1][i] >> 8 ^ crc->rows[0][crc->rows[k - 1][i] & 255];
        }
    }
}
OPDI_INTERNAL uint32_t opdi_le32(const unsigned char *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}
OPDI_INTERNAL uint32_t opdi_le16(const unsigned char *at) { return (uint32_t)at[0] | (uint32_t)at[1] << 8; }
OPDI_INTERNAL uint64_t opdi_le64(const unsigned char *at) { return opdi_le32(at) | (uint64_t)opdi_le32(at + 4) << 32; }
OPDI_INTERNAL uint32_t opdi_crc_add(const opdi_crc *table, uint32_t crc, const void *data, size_t size) {
    const unsigned char *at = (const unsigned char *)data;
    crc = ~crc;
    for (; size >= 8; size -= 8, at += 8) {
        const uint32_t first = opdi_le32(at) ^ crc, second = opdi_le32(at + 4);
        crc = table->rows[7][first & 255] ^ table->rows[6][first >> 8 & 255] ^ table->rows[5][first >> 16 & 255] ^
            table->rows[4][first >> 24] ^ table->rows[3][second & 255] ^ table->rows[2][second >> 8 & 255] ^
            table->rows[1][second >> 16 & 255] ^ table->rows[0][second >> 24];
    }
    for (; size; size--, at++) { crc = crc >> 8 ^ table->rows[0][(crc ^ *at) & 255]; }
    return ~crc;
}

/* Makes a prefix code from the lengths of the codes of `count` symbols.  Returns the unused part of the code space, in
   units of 2^-15: 0 if the code is complete, below 0 if there are too many codes. */
static int opdi_prefix_make(opdi_prefix *prefix, const uint8_t *lengths, int count) {
    unsigned next[16], at[16], code = 0;
    int left = 1;
    memset(prefix, 0, sizeof *prefix);
    for (int i = 0; i < count; i++) { prefix->count[lengths[i]]++; }
    prefix->count[0] = 0;
    at[0] = 0;
    for (int len = 1; len < 16; len++) {
        left = 2 * left - prefix->count[len];
        if (left < 0) { return left; }
        code = (code + prefix->count[len - 1]) << 1;
        next[len] = code;
        at[len] = at[len - 1] + prefix->count[len - 1];
    }
    for (int i = 0; i < count; i++) {
        unsigned turned = 0;
        int len = lengths[i];
        if (len == 0) { continue; }
        prefix->symbols[at[len]++] = (uint16_t)i;
        unsigned c = next[len]++;
        if (len > 9) { continue; }
        for (int bit_at = 0; bit_at < len; bit_at++) { turned |= (c >> bit_at & 1) << (len - 1 - bit_at); }
        for (; turned < 512; turned += 1u << len) { prefix->quick[turned] = (uint16_t)(i << 4 | len); }
    }
    return left;
}

static void opdi_inflate_fill(opdi_inflate *state) {
    for (; state->bits <= 56 && state->at_in < state->end; state->bits += 8) {
        state->hold |= (uint64_t)*state->at_in++ << state->bits;
    }
}
static unsigned opdi_inflate_bits(opdi_inflate *state, int count) {
    if (state->bits < count) { opdi_inflate_fill(state); }
    if (state->bits < count) {
        state->wrong = "the compressed data ends too early";
        return 0;
    }
    unsigned v = (unsigned)(state->hold & ((1u << count) - 1));
    state->hold >>= count;
    state->bits -= count;
    return v;
}
/* Reads the next code from the input and returns its symbol.  If the input has no valid code there, returns -1 and sets
   state->wrong. */
static int opdi_inflate_symbol(opdi_inflate *state, const opdi_prefix *prefix) {
    unsigned code = 0, first = 0, at = 0;
    if (state->bits < 15) { opdi_inflate_fill(state); }
    int len = prefix->quick[state->hold & 511] & 15;
    if (len) {
        const int symbol = prefix->quick[state->hold & 511] >> 4;
        (void)opdi_inflate_bits(state, len);
        return state->wrong ? -1 : symbol;
    }
    for (len = 1; len < 16; len++) {
        code = code << 1 | (unsigned)(state->hold >> (len - 1) & 1);
        first <<= 1;
        if (code - first < prefix->count[len]) {
            (void)opdi_inflate_bits(state, len);
            return state->wrong ? -1 : prefix->symbols[at + code - first];
        }
        at += prefix->count[len];
        first += prefix->count[len];
    }
    state->wrong = state->bits < 15 ? "the compressed data ends too early"
        : "the compressed data contains an undefined code";
    return -1;
}

/* Unpacks the data of a compressed block, after the block's codes were read.  On failure, sets state->wrong. */
static void opdi_inflate_codes(opdi_inflate *state) {
    while (!state->wrong) {
        int symbol = opdi_inflate_symbol(state, &state->literals);
        if (symbol < 0 || symbol == 256) { return; }
        if (symbol < 256) {
            if (state->at == state->length) {
                state->wrong = "the compressed data is longer than the entry says";
                return;
            }
            state->out[state->at++] = (unsigned char)symbol;
            continue;
        }
        symbol -= 257;           /* symbols of lengths: 8 without extra bits, then 4 for each number of extra bits */
        int extra = symbol < 8 || symbol == 28 ? 0 : symbol / 4 - 1;
        size_t len = symbol < 8 ? (size_t)symbol + 3 : symbol == 28 ? 258 : ((size_t)(4 + symbol % 4) << extra) + 3;
        len += opdi_inflate_bits(state, extra);
        if (symbol > 28 || (symbol = opdi_inflate_symbol(state, &state->distances)) < 0 || symbol > 29) {
            if (!state->wrong) { state->wrong = "the compressed data contains an undefined code"; }
            return;
        }
        /* symbols of distances: 4 without extra bits, then 2 for each number of extra bits */
        extra = symbol < 4 ? 0 : symbol / 2 - 1;
        size_t back = (symbol < 4 ? (size_t)symbol : (size_t)(2 + symbol % 2) << extra) + 1;
        back += opdi_inflate_bits(state, extra);
        if (state->wrong) { return; }
        if (back > state->at) {
            state->wrong = "the compressed data refers to bytes before its beginning";
            return;
        }
        if (len > state->length - state->at) {
            state->wrong = "the compressed data is longer than the entry says";
            return;
        }
        for (; len; len--, state->at++) { state->out[state->at] = state->out[state->at - back]; }
    }
}

/* Copies a stored (not compressed) block.  The block begins at the next whole byte with its length and the complement
   of the length.  On failure, sets state->wrong. */
static void opdi_inflate_stored(opdi_inflate *state) {
    (void)opdi_inflate_bits(state, state->bits & 7);
    unsigned count = opdi_inflate_bits(state, 16);
    unsigned check = opdi_inflate_bits(state, 16);
    if (state->wrong) { return; }
    if ((count ^ check) != 0xffff) {
        state->wrong = "the length of a stored block does not match its complement";
        return;
    }
    if (count > state->length - state->at) {
        state->wrong = "the compressed data is longer than the entry says";
        return;
    }
    for (; count && state->bits; count--) { state->out[state->at++] = (unsigned char)opdi_inflate_bits(state, 8); }
    if (count > (size_t)(state->end - state->at_in)) {
        state->wrong = "the compressed data ends too early";
        return;
    }
    if (count) { memcpy(state->out + state->at, state->at_in, count); }
    state->at_in += count;
    state->at += count;
}

/* Reads the codes of a compressed block or, if `fixed` is true, uses the fixed codes of the format.  On failure, sets
   state->wrong. */
static void opdi_inflate_tables(opdi_inflate *state, bool fixed) {
    static const uint8_t order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[320];
    int nliterals = 288, ndistances = 30, left, at = 0;
    memset(lengths, 0, sizeof lengths);
    if (fixed) {
        for (int i = 0; i < 288; i++) { lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8; }
        memset(lengths + 288, 5, 30);
    } else {
        nliterals = (int)opdi_inflate_bits(state, 5) + 257;
        ndistances = (int)opdi_inflate_bits(state, 5) + 1;
        int ncodes = (int)opdi_inflate_bits(state, 4) + 4;
        for (int i = 0; i < ncodes; i++) { lengths[order[i]] = (uint8_t)opdi_inflate_bits(state, 3); }
        if (state->wrong) { return; }
        if (nliterals > 286 || ndistances > 30 || opdi_prefix_make(&state->literals, lengths, 19)) { goto bad; }
        while (at < nliterals + ndistances) {
            const int symbol = opdi_inflate_symbol(state, &state->literals);
            int count = symbol < 16 ? 1 : symbol == 16 ? 3 + (int)opdi_inflate_bits(state, 2) : symbol == 17
                ? 3 + (int)opdi_inflate_bits(state, 3) : 11 + (int)opdi_inflate_bits(state, 7);
            if (state->wrong) { return; }
            if (count > nliterals + ndistances - at || (symbol == 16 && at == 0)) { goto bad; }
            for (; count; count--, at++) {
                lengths[at] = (uint8_t)(symbol < 16 ? symbol : symbol == 16 ? lengths[at - 1] : 0);
            }
        }
        if (lengths[256] == 0) { goto bad; }
    }
    /* a code may be incomplete if it has a single symbol, whose code is one bit, or if it is a code of distances
       without symbols */
    left = opdi_prefix_make(&state->literals, lengths, nliterals);
    if (left < 0 || (left > 0 && !(left == 1 << 14 && state->literals.count[1] == 1))) { goto bad; }
    left = opdi_prefix_make(&state->distances, lengths + nliterals, ndistances);
    if (!fixed && (left < 0 || (left > 0 && !(left == 1 << 14 && state->distances.count[1] == 1) && left != 1 << 15))) {
        goto bad;
    }
    return;
bad:
    state->wrong = "the compressed data contains an invalid table of codes";
}

/* Unpacks the `length` bytes of compressed data into out_n bytes at `out`, which they must fill exactly.  Returns NULL,
   or a message about the error. */
OPDI_INTERNAL const char *opdi_inflate_all(opdi_inflate *state, const unsigned char *data, size_t length,
                                           unsigned char *out, size_t out_n) {
    bool last = false;
    state->at_in = data;
    state->end = data + length;
    state->hold = 0;
    state->bits = 0;
    state->out = out;
    state->at = 0;
    state->length = out_n;
    state->wrong = NULL;
    while (!last && !state->wrong) {
        last = opdi_inflate_bits(state, 1) != 0;
        unsigned kind = opdi_inflate_bits(state, 2);
        if (state->wrong) { break; }
        if (kind == 3) { state->wrong = "a block of the compressed data has an unknown type"; }
        else if (kind == 0) { opdi_inflate_stored(state); }
        else {
            opdi_inflate_tables(state, kind == 1);
            opdi_inflate_codes(state);
        }
    }
    if (!state->wrong && state->at != out_n) { state->wrong = "the compressed data is shorter than the entry says"; }
    if (!state->wrong && (state->at_in < state->end || state->bits > 7)) {
        state->wrong = "more bytes follow the end of the compressed data";
    }
    return state->wrong;
}

OPDI_INTERNAL bool opdi_big_endian(void) {
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 0;
}
/* Reverses the bytes of each element of `size` bytes in a buffer of `length` bytes. */
OPDI_INTERNAL void opdi_swap(char *at, size_t length, size_t size) {
    for (; length; length -= size, at += size) {
        for (size_t i = 0; i < size / 2; i++) {
            const char byte = at[i];
            at[i] = at[size - 1 - i];
            at[size - 1 - i] = byte;
        }
    }
}
/* Returns the number of bytes before the first byte that is neither 0 nor 1, or `size` if there is no such byte. */
OPDI_INTERNAL size_t opdi_bools(const void *data, size_t size) {
    const unsigned char *at = (const unsigned char *)data;
    size_t i = 0;
    for (; size - i >= 64; i += 64) {
        unsigned char any = 0;
        for (int k = 0; k < 64; k++) { any |= at[i + (size_t)k]; }
        if (any > 1) { break; }
    }
    while (i < size && at[i] <= 1) { i++; }
    return i;
}
