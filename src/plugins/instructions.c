#include "plugins.h"

//== the processor =====================================================================================================

#if defined(OPDI_CPUID)
/* Runs the instruction cpuid, and stores eax to edx in out. */
static void opdi_cpuid(uint32_t leaf, uint32_t part, uint32_t out[4]) {
    __asm__ volatile("cpuid" : "=a"(out[0]), "=b"(out[1]), "=c"(out[2]), "=d"(out[3]) : "0"(leaf), "2"(part));
}
/* Stores the properties of the processor in words[]: 0: ecx of leaf 1.  1 to 3: ebx, ecx and edx of leaf 7.  4: eax of
   leaf 7.1.  5: the registers that the system saves (XCR0).  6: the model.  7: ecx of leaf 0x80000001. */
OPD_UNUSED OPDI_INTERNAL void opdi_processor_words(uint32_t words[OPDI_PROCESSOR_WORDS]) {
    uint32_t got[4], high;
    memset(words, 0, OPDI_PROCESSOR_WORDS * sizeof *words);
    opdi_cpuid(0, 0, got);
    const uint32_t most = got[0];
    opdi_cpuid(1, 0, got);
    words[0] = got[2];
    words[6] = got[0];
    if (got[2] >> 27 & 1) { __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(words[5]), "=d"(high) : "c"(0)); }
    if (most >= 7) {
        opdi_cpuid(7, 0, got);
        memcpy(&words[1], &got[1], 3 * sizeof *words);
        if (got[0] >= 1) {
            opdi_cpuid(7, 1, got);
            words[4] = got[0];
        }
    }
    opdi_cpuid(0x80000000u, 0, got);
    if (got[0] > 0x80000000u) {
        opdi_cpuid(0x80000001u, 0, got);
        words[7] = got[2];
    }
}
#endif

//== instruction sets that code needs ==================================================================================
//
//  An instruction that the processor lacks ends the program (SIGILL), so the code of a library is looked at before it
//  runs.  Only functions in the library's own list of functions (.eh_frame_hdr) are read, each from its first
//  instruction on, so that no data is taken for code.  Libraries that ask the processor (cpuid) choose their code
//  themselves.  Instruction sets before AVX are not looked for.

#if defined(OPDI_READS_CODE)
enum { OPDI_VEX = 1, OPDI_EVEX = 2 };                         /* the encodings of AVX and AVX-512 */
/* The prefixes of an instruction, as the bits of a set: none, 66, F3 and F2. */
enum { OPDI_P_NONE = 1, OPDI_P_66 = 2, OPDI_P_F3 = 4, OPDI_P_F2 = 8, OPDI_P_ANY = 15 };

/* An instruction set: its name, and its bit in a word of opdi_processor_words. */
static const struct opdi_set { const char *name; uint8_t word, bit; } opdi_sets[] = {
    {"AVX512", 1, 16}, {"AVX512_FP16", 3, 23}, {"AVX512_BF16", 4, 5}, {"AVX512_VNNI", 2, 11}, {"AVX512_VBMI", 2, 1},
    {"AVX512_VBMI2", 2, 6}, {"AVX512_BITALG", 2, 12}, {"AVX512_VPOPCNTDQ", 2, 14}, {"AVX512_IFMA", 1, 21},
    {"AMX", 3, 24}, {"GFNI", 2, 8}, {"VAES", 2, 9}, {"VPCLMULQDQ", 2, 10}, {"AVX_VNNI", 4, 4}, {"AVX2", 1, 5},
    {"FMA", 0, 12}, {"F16C", 0, 29}, {"BMI2", 1, 8}, {"BMI1", 1, 3}, {"AVX", 0, 28}};
enum { OPDI_SETS = sizeof opdi_sets / sizeof opdi_sets[0], OPDI_SET_AVX512 = 0, OPDI_SET_AMX = 9,
       OPDI_SET_AVX = OPDI_SETS - 1 };
/* Opcodes `first` to `last` of a map, in encodings, with prefixes and values of W (1: W0, 2: W1) that belong to
   opdi_sets[set]. */
static const struct opdi_set_rule { uint8_t encodings, map, first, last, prefixes, wide, set; } opdi_set_rules[] = {
    {OPDI_EVEX, 5, 0, 255, OPDI_P_ANY, 3, 1}, {OPDI_EVEX, 6, 0, 255, OPDI_P_ANY, 3, 1},
    {OPDI_EVEX, 2, 0x52, 0x52, OPDI_P_F3, 3, 2}, {OPDI_EVEX, 2, 0x72, 0x72, OPDI_P_F3 | OPDI_P_F2, 3, 2},
    {OPDI_EVEX, 2, 0x50, 0x53, OPDI_P_66, 3, 3}, {OPDI_EVEX, 2, 0x75, 0x75, OPDI_P_66, 1, 4},
    {OPDI_EVEX, 2, 0x7d, 0x7d, OPDI_P_66, 1, 4}, {OPDI_EVEX, 2, 0x8d, 0x8d, OPDI_P_66, 1, 4},
    {OPDI_EVEX, 2, 0x83, 0x83, OPDI_P_66, 3, 4}, {OPDI_EVEX, 2, 0x62, 0x63, OPDI_P_66, 3, 5},
    {OPDI_EVEX, 2, 0x70, 0x73, OPDI_P_66, 3, 5}, {OPDI_EVEX, 3, 0x70, 0x73, OPDI_P_66, 3, 5},
    {OPDI_EVEX, 2, 0x54, 0x54, OPDI_P_66, 3, 6}, {OPDI_EVEX, 2, 0x8f, 0x8f, OPDI_P_66, 3, 6},
    {OPDI_EVEX, 2, 0x55, 0x55, OPDI_P_66, 3, 7}, {OPDI_EVEX, 2, 0xb4, 0xb5, OPDI_P_66, 3, 8},
    {OPDI_VEX, 2, 0x49, 0x49, OPDI_P_ANY, 3, 9}, {OPDI_VEX, 2, 0x4b, 0x4b, OPDI_P_ANY, 3, 9},
    {OPDI_VEX, 2, 0x5c, 0x5c, OPDI_P_ANY, 3, 9}, {OPDI_VEX, 2, 0x5e, 0x5e, OPDI_P_ANY, 3, 9},
    {OPDI_VEX | OPDI_EVEX, 2, 0xcf, 0xcf, OPDI_P_66, 3, 10},
    {OPDI_VEX | OPDI_EVEX, 3, 0xce, 0xcf, OPDI_P_66, 3, 10}, {OPDI_EVEX, 2, 0xdc, 0xdf, OPDI_P_66, 3, 11},
    {OPDI_EVEX, 3, 0x44, 0x44, OPDI_P_66, 3, 12}, {OPDI_VEX, 2, 0x50, 0x53, OPDI_P_66, 1, 13},
    {OPDI_VEX, 2, 0x16, 0x16, OPDI_P_66, 3, 14}, {OPDI_VEX, 2, 0x36, 0x36, OPDI_P_66, 3, 14},
    {OPDI_VEX, 2, 0x45, 0x47, OPDI_P_66, 3, 14}, {OPDI_VEX, 2, 0x58, 0x5a, OPDI_P_66, 3, 14},
    {OPDI_VEX, 2, 0x78, 0x79, OPDI_P_66, 3, 14}, {OPDI_VEX, 2, 0x8c, 0x8c, OPDI_P_66, 3, 14},
    {OPDI_VEX, 2, 0x8e, 0x8e, OPDI_P_66, 3, 14}, {OPDI_VEX, 2, 0x90, 0x93, OPDI_P_66, 3, 14},
    {OPDI_VEX, 3, 0x00, 0x02, OPDI_P_66, 3, 14}, {OPDI_VEX, 3, 0x38, 0x39, OPDI_P_66, 3, 14},
    {OPDI_VEX, 3, 0x46, 0x46, OPDI_P_66, 3, 14}, {OPDI_VEX, 2, 0x96, 0x9f, OPDI_P_66, 3, 15},
    {OPDI_VEX, 2, 0xa6, 0xaf, OPDI_P_66, 3, 15}, {OPDI_VEX, 2, 0xb6, 0xbf, OPDI_P_66, 3, 15},
    {OPDI_VEX, 2, 0x13, 0x13, OPDI_P_66, 3, 16}, {OPDI_VEX, 3, 0x1d, 0x1d, OPDI_P_66, 3, 16},
    {OPDI_VEX, 2, 0xf5, 0xf5, OPDI_P_ANY, 3, 17}, {OPDI_VEX, 2, 0xf6, 0xf6, OPDI_P_F2, 3, 17},
    {OPDI_VEX, 2, 0xf7, 0xf7, OPDI_P_66 | OPDI_P_F3 | OPDI_P_F2, 3, 17}, {OPDI_VEX, 3, 0xf0, 0xf0, OPDI_P_F2, 3, 17},
    {OPDI_VEX, 2, 0xf2, 0xf3, OPDI_P_NONE, 3, 18}, {OPDI_VEX, 2, 0xf7, 0xf7, OPDI_P_NONE, 3, 18}};

/* An instruction.  encoding: 0, OPDI_VEX or OPDI_EVEX.  map: the table of opcodes, 0 to 6.  prefixes: one of OPDI_P_...
   wide: 1 for W0, 2 for W1. */
typedef struct opdi_instruction { uint8_t encoding, map, opcode, prefixes, wide; } opdi_instruction;

/* For maps 0 and 1, the opcodes that have a byte ModRM, an immediate of a byte, an immediate of 4 bytes (after a prefix
   66 in map 0: of 2 bytes), and those that are no instructions: a row has 16 opcodes. */
static const uint16_t opdi_x86_modrm[2][16] = {
    {0x0f0f, 0x0f0f, 0x0f0f, 0x0f0f, 0, 0, 0x0a08, 0, 0xfffb, 0, 0, 0, 0x00c3, 0xff0f, 0, 0xc0c0},
    {0xa00f, 0xffff, 0xff0f, 0, 0xffff, 0xffff, 0xffff, 0xff7f, 0, 0xffff, 0xf838, 0xffff, 0x00ff, 0xffff, 0xffff,
     0xffff}};
static const uint16_t opdi_x86_byte[2][16] = {
    {0x1010, 0x1010, 0x1010, 0x1010, 0, 0, 0x0c00, 0xffff, 0x0009, 0, 0x0100, 0x00ff, 0x2043, 0, 0x08ff, 0},
    {0x8000, 0, 0, 0, 0, 0, 0, 0x000f, 0, 0, 0x1010, 0x0400, 0x0074, 0, 0, 0}};
static const uint16_t opdi_x86_word[2][16] = {
    {0x2020, 0x2020, 0x2020, 0x2020, 0, 0, 0x0300, 0, 0x0002, 0, 0x0200, 0xff00, 0x0080, 0, 0x0300, 0},
    {0, 0, 0, 0, 0, 0, 0, 0, 0xffff, 0, 0, 0, 0, 0, 0, 0}};
static const uint16_t opdi_x86_none[2][16] = {
    {0x40c0, 0xc0c0, 0x8080, 0x8080, 0, 0, 0x0003, 0, 0x0004, 0x0400, 0, 0, 0x4000, 0x0070, 0x0400, 0},
    {0x1410, 0, 0x00f0, 0xfa40, 0, 0, 0, 0, 0, 0, 0x00c0, 0, 0, 0, 0, 0}};
static bool opdi_x86_is(const uint16_t (*table)[16], int map, uint8_t opcode) {
    return table[map][opcode >> 4] >> (opcode & 15) & 1;
}
/* Returns the bytes of ModRM, SIB and displacement. */
static size_t opdi_x86_operand(const uint8_t *at) {
    const int mode = at[0] >> 6, low = at[0] & 7;
    const size_t size = 1 + (low == 4);
    const int base = low == 4 ? at[1] & 7 : low;
    return mode == 3 ? 1 : size + (mode == 2 || (mode == 0 && base == 5) ? 4 : mode == 1);
}
/* Reads an instruction of AVX or AVX-512 at code[at].  Returns where it ends, or 0 if it is unknown. */
static size_t opdi_x86_vector(const uint8_t *code, size_t at, opdi_instruction *out) {
    const uint8_t *const head = code + at;
    const bool brief = head[0] == 0xc5, large = head[0] == 0x62;
    const uint8_t last = head[brief ? 1 : 2];
    out->encoding = large ? OPDI_EVEX : OPDI_VEX;
    out->map = (uint8_t)(brief ? 1 : head[1] & (large ? 7 : 31));
    out->prefixes = (uint8_t)(1 << (last & 3));
    out->wide = (uint8_t)(!brief && last & 128 ? 2 : 1);
    out->opcode = head[brief ? 2 : large ? 4 : 3];
    if (large && (head[1] & 8 || !(last & 4))) { return 0; }
    if (out->map < 1 || out->map > (large ? 6 : 3) || out->map == 4) { return 0; }
    at += brief ? 3 : large ? 5 : 4;
    if (large || out->map != 1 || out->opcode != 0x77) { at += opdi_x86_operand(code + at); }
    return at + (out->map == 3 || (out->map == 1 && opdi_x86_is(opdi_x86_byte, 1, out->opcode)));
}
/* Returns the bytes of the immediate of an instruction of map 0 that the tables do not have, `operand` is its ModRM. */
static size_t opdi_x86_rest(uint8_t opcode, uint8_t operand, bool address, size_t word) {
    switch (opcode) {
    case 0xa0: case 0xa1: case 0xa2: case 0xa3: return address ? 4 : 8;
    case 0xc2: case 0xca: return 2;
    case 0xc8: return 3;
    case 0xf6: return (operand >> 3 & 7) < 2;
    case 0xf7: return (operand >> 3 & 7) < 2 ? word : 0;
    default: return 0;
    }
}
/* Reads the instruction at `code`, which has 32 bytes, in 64-bit mode.  Returns its length, or 0 if it is unknown. */
static size_t opdi_x86_read(const uint8_t *code, opdi_instruction *out) {
    size_t at = 0;
    bool halved = false, address = false;
    memset(out, 0, sizeof *out);
    for (; at < 14 && code[at] && strchr("\x66\x67\xf0\xf2\xf3\x2e\x36\x3e\x26\x64\x65", code[at]); at++) {
        halved = halved || code[at] == 0x66;
        address = address || code[at] == 0x67;
    }
    const uint8_t rex = (code[at] & 0xf0) == 0x40 ? code[at++] : 0;
    if (code[at] == 0xc5 || code[at] == 0xc4 || code[at] == 0x62) { return opdi_x86_vector(code, at, out); }
    if (code[at] == 0x8f && code[at + 1] & 0x38) { return 0; }             /* XOP of AMD */
    out->map = code[at] == 0x0f;
    at += out->map;
    out->opcode = code[at++];
    if (out->map && (out->opcode == 0x38 || out->opcode == 0x3a)) {
        out->map = out->opcode == 0x38 ? 2 : 3;
        out->opcode = code[at++];
        return at + opdi_x86_operand(code + at) + (out->map == 3);
    }
    if (opdi_x86_is(opdi_x86_none, out->map, out->opcode)) { return 0; }
    const size_t word = halved && !(rex & 8) ? 2 : 4;
    const bool jump = out->map || (out->opcode | 1) == 0xe9;  /* a distance, of 4 bytes in any case */
    const size_t rest = out->map ? 0 : opdi_x86_rest(out->opcode, code[at], address, word);
    if (opdi_x86_is(opdi_x86_modrm, out->map, out->opcode)) { at += opdi_x86_operand(code + at); }
    if (opdi_x86_is(opdi_x86_byte, out->map, out->opcode)) { at++; }
    if (opdi_x86_is(opdi_x86_word, out->map, out->opcode)) {
        at += !out->map && rex & 8 && (out->opcode & 0xf8) == 0xb8 ? 8 : jump ? 4 : word;
    }
    return at + rest;
}
/* Returns the sets of opdi_sets to which an instruction belongs, as bits. */
static uint32_t opdi_instruction_sets(const opdi_instruction *one) {
    const bool vector = one->encoding && (one->map == 1 || one->opcode < 0xf0);        /* not BMI1 or BMI2 */
    uint32_t sets = !vector ? 0 : one->encoding == OPDI_EVEX ? 1u << OPDI_SET_AVX512 : 1u << OPDI_SET_AVX;
    for (size_t i = 0; one->encoding && i < sizeof opdi_set_rules / sizeof opdi_set_rules[0]; i++) {
        const struct opdi_set_rule *const rule = &opdi_set_rules[i];
        if (rule->encodings & one->encoding && rule->map == one->map && one->opcode >= rule->first &&
            one->opcode <= rule->last && rule->prefixes & one->prefixes && rule->wide & one->wide) {
            sets |= 1u << rule->set;
        }
    }
    return sets;
}

/* A library's file in memory. */
typedef struct opdi_code_file { const uint8_t *data; size_t size; } opdi_code_file;
/* Returns the `count` bytes of a library's file that are mapped at `address`, or NULL if the file does not have
   them. */
static const uint8_t *opdi_code_at(const opdi_code_file *file, uint64_t address, uint64_t count) {
    opdi_elf elf;
    memcpy(&elf, file->data, sizeof elf);
    for (size_t i = 0; i < elf.e_phnum; i++) {
        opdi_elf_segment segment;
        const uint64_t at = elf.e_phoff + i * sizeof segment;
        if (at > file->size || sizeof segment > file->size - at) { return NULL; }
        memcpy(&segment, file->data + at, sizeof segment);
        const uint64_t skip = address - segment.p_vaddr;
        if (segment.p_type == PT_LOAD && skip <= segment.p_filesz && count <= segment.p_filesz - skip &&
            segment.p_offset <= file->size && skip <= file->size - segment.p_offset &&
            count <= file->size - segment.p_offset - skip) { return file->data + segment.p_offset + skip; }
    }
    return NULL;
}
/* Returns the address of the list of functions, or 0 if there is none. */
static uint64_t opdi_code_list(const opdi_code_file *file) {
    opdi_elf elf;
    if (file->size < sizeof elf || memcmp(file->data, ELFMAG, SELFMAG) != 0) { return 0; }
    memcpy(&elf, file->data, sizeof elf);
    if (elf.e_machine != EM_X86_64 || elf.e_ident[EI_CLASS] != ELFCLASS64) { return 0; }
    for (size_t i = 0; i < elf.e_phnum; i++) {
        opdi_elf_segment segment;
        const uint64_t at = elf.e_phoff + i * sizeof segment;
        if (at > file->size || sizeof segment > file->size - at) { return 0; }
        memcpy(&segment, file->data + at, sizeof segment);
        if (segment.p_type == PT_GNU_EH_FRAME) { return segment.p_vaddr; }
    }
    return 0;
}
/* Returns the length of the function at `address`, which is described at the address `entry` in .eh_frame.  Returns 0
   if the description has another form. */
static uint64_t opdi_code_length(const opdi_code_file *file, uint64_t entry, uint64_t address) {
    const uint8_t *const at = opdi_code_at(file, entry, 16);
    const uint8_t *const more = opdi_code_at(file, entry, 24);
    int32_t distance;
    int64_t large;
    uint32_t bytes;
    uint64_t length = 0;
    if (!at) { return 0; }
    memcpy(&distance, at + 8, sizeof distance);
    if (entry + 8 + (uint64_t)(int64_t)distance == address) {
        memcpy(&bytes, at + 12, sizeof bytes);
        return bytes;
    }
    if (!more) { return 0; }
    memcpy(&large, more + 8, sizeof large);
    if (entry + 8 + (uint64_t)large == address) { memcpy(&length, more + 16, sizeof length); }
    return length;
}
/* Returns the sets to which the instructions of a function belong.  Sets *asks if it asks the processor.  Ends at an
   unknown instruction. */
OPDI_INTERNAL uint32_t opdi_function_sets(const uint8_t *code, uint64_t length, bool *asks) {
    opdi_instruction one;
    uint8_t window[32];
    uint32_t sets = 0;
    for (uint64_t at = 0; at < length;) {
        const size_t left = (size_t)OPDI_MIN(length - at, (uint64_t)sizeof window);
        memset(window, 0, sizeof window);
        memcpy(window, code + at, left);
        const size_t bytes = opdi_x86_read(window, &one);
        if (bytes == 0 || bytes > 15 || bytes > left) { break; }
        *asks = *asks || (!one.encoding && one.map == 1 && one.opcode == 0xa2);
        sets |= opdi_instruction_sets(&one);
        at += bytes;
    }
    return sets;
}
/* Returns the sets that the functions of a library need: 0 if it asks the processor, or has no list of functions. */
static uint32_t opdi_code_sets(const opdi_code_file *file) {
    const uint64_t list = opdi_code_list(file);
    const uint8_t *const head = list ? opdi_code_at(file, list, 12) : NULL;
    uint32_t count = 0, sets = 0;
    bool asks = false;
    if (!head || head[0] != 1 || head[1] != 0x1b || head[2] != 3 || head[3] != 0x3b) { return 0; }
    memcpy(&count, head + 8, sizeof count);
    const uint8_t *const table = opdi_code_at(file, list + 12, (uint64_t)count * 8);
    for (uint32_t i = 0; table && i < count && !asks; i++) {
        int32_t places[2];
        memcpy(places, table + 8 * (size_t)i, sizeof places);
        const uint64_t address = list + (uint64_t)(int64_t)places[0];
        const uint64_t length = opdi_code_length(file, list + (uint64_t)(int64_t)places[1], address);
        const uint8_t *const code = opdi_code_at(file, address, length);
        if (code) { sets |= opdi_function_sets(code, length, &asks); }
    }
    return asks ? 0 : sets;
}

OPDI_INTERNAL uint32_t opdi_sets_assumed;         /* for tests: the sets that the processor is assumed to have; 0: asks
                                                     the processor */
/* Returns the sets of opdi_sets that this processor has, and whose registers the system saves. */
static uint32_t opdi_processor_sets(void) {
    uint32_t words[OPDI_PROCESSOR_WORDS], sets = 0;
    if (opdi_sets_assumed) { return opdi_sets_assumed; }
    opdi_processor_words(words);
    for (int i = 0; i < OPDI_SETS; i++) { sets |= (words[opdi_sets[i].word] >> opdi_sets[i].bit & 1u) << i; }
    if ((words[5] & 6) != 6) { return 0; }
    if ((words[5] & 0xe0) != 0xe0) { sets &= ~(((uint32_t)1 << OPDI_SET_AMX) - 1); }
    return sets;
}
/* Returns the name of the first set in `sets`, or NULL if there is none. */
OPDI_INTERNAL const char *opdi_sets_name(uint32_t sets) {
    for (int i = 0; i < OPDI_SETS; i++) {
        if (sets >> i & 1) { return opdi_sets[i].name; }
    }
    return NULL;
}
/* Returns the sets that the library at `path` needs, or 0 if the file cannot be read. */
static uint32_t opdi_library_sets(const char *path) {
    struct stat about;
    opdi_code_file file = {NULL, 0};
    uint32_t sets = 0;
    const int fd = open(path, O_RDONLY);
    if (fd < 0) { return 0; }
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
        void *const data = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data != MAP_FAILED) {
            file.data = (const uint8_t *)data;
            file.size = (size_t)about.st_size;
            sets = opdi_code_sets(&file);
            (void)munmap(data, file.size);
        }
    }
    (void)close(fd);
    return sets;
}
const char *opd_plugin_lacks(const char *path) {
    const uint32_t lacks = ~opdi_processor_sets() & (((uint32_t)1 << OPDI_SETS) - 1);
    return path && lacks ? opdi_sets_name(opdi_library_sets(path) & lacks) : NULL;
}
#else
const char *opd_plugin_lacks(const char *path) {
    (void)path;
    return NULL;
}
#endif
