// Fuzz target of .npz files: fuzz.h says how it is built and run.  Input: a file; its checksums are mended before it is
// read, or hardly any would be right.
#include "fuzz.h"

// Puts the checksum of what an entry holds where the directory has it, wherever that looks like one.
static void mend(uint8_t *p, size_t n) {
    static opdi_inflate z;
    static uint8_t out[1 << 16];
    size_t at;
    for (at = 0; n >= 46 && at <= n - 46; at++) {
        const size_t packed = opdi_le32(p + at + 20), full = opdi_le32(p + at + 24), from = opdi_le32(p + at + 42);
        size_t begin;
        uint32_t crc;
        if (opdi_le32(p + at) != 0x02014b50u || from > n - 46) { continue; }
        begin = from + 30 + opdi_le16(p + from + 26) + opdi_le16(p + from + 28);
        if (begin > n || packed > n - begin || full > sizeof out) { continue; }
        if (opdi_le16(p + at + 10) == 8) {
            if (opdi_inflate_all(&z, p + begin, packed, out, full)) { continue; }
            crc = crc_of(out, full);
        } else {
            crc = crc_of(p + begin, full < packed ? full : packed);
        }
        (void)opdi_le_put(p + at + 16, crc, 4);
    }
}

static void one(const uint8_t *data, size_t n) {
    uint8_t *mine = (uint8_t *)malloc(n ? n : 1);
    MUST(mine);
    memcpy(mine, data, n);
    mend(mine, n);
    walk_archive(mine, n);
    free(mine);
}
FUZZ(one)
