#include "aoti.h"

//== writing a shared library of stubs =================================================================================

OPDI_INTERNAL void opdi_aoti_put(opdi_aoti_bytes *bytes, const void *data, size_t count) {
    if (bytes->length + count > bytes->capacity) {
        const size_t capacity = 2 * bytes->capacity + count + 256;
        unsigned char *more = bytes->failed ? NULL : (unsigned char *)realloc(bytes->data, capacity);
        if (!more) {
            bytes->failed = true;
            return;
        }
        bytes->data = more;
        bytes->capacity = capacity;
    }
    memcpy(bytes->data + bytes->length, data, count);
    bytes->length += count;
}
static void opdi_aoti_put_text(opdi_aoti_bytes *bytes, const char *code, size_t count) {
    opdi_aoti_put(bytes, code, count);
}
static void opdi_aoti_put_word(opdi_aoti_bytes *bytes, uint64_t word) { opdi_aoti_put(bytes, &word, 8); }
static void opdi_aoti_align(opdi_aoti_bytes *bytes, size_t align) {
    while (bytes->length % align && !bytes->failed) { opdi_aoti_put_text(bytes, "", 1); }
}
#define OPDI_AOTI_CODE(bytes, code) opdi_aoti_put_text(bytes, code, sizeof(code) - 1)

#if defined(__x86_64__)

/* Writes the code that all stubs of operators share.  The code: push rbp; mov rbp, rsp; then it stores the registers of
   6 integers and 8 doubles on the stack, calls opdi_aoti_operator(r11, integers, doubles, stack), and returns. */
OPDI_INTERNAL void opdi_aoti_code_common(opdi_aoti_bytes *code) {
    OPDI_AOTI_CODE(code, "\x55\x48\x89\xe5\x48\x83\xec\x70\x48\x89\x3c\x24\x48\x89\x74\x24\x08\x48\x89\x54\x24\x10");
    OPDI_AOTI_CODE(code, "\x48\x89\x4c\x24\x18\x4c\x89\x44\x24\x20\x4c\x89\x4c\x24\x28\xf2\x0f\x11\x44\x24\x30");
    OPDI_AOTI_CODE(code, "\xf2\x0f\x11\x4c\x24\x38\xf2\x0f\x11\x54\x24\x40\xf2\x0f\x11\x5c\x24\x48");
    OPDI_AOTI_CODE(code, "\xf2\x0f\x11\x64\x24\x50\xf2\x0f\x11\x6c\x24\x58\xf2\x0f\x11\x74\x24\x60");
    OPDI_AOTI_CODE(code, "\xf2\x0f\x11\x7c\x24\x68\x4c\x89\xdf\x48\x89\xe6\x48\x8d\x54\x24\x30\x48\x8d\x4d\x10");
    OPDI_AOTI_CODE(code, "\x48\xb8");
    opdi_aoti_put_word(code, (uint64_t)(uintptr_t)opdi_aoti_operator);
    OPDI_AOTI_CODE(code, "\xff\xd0\xc9\xc3");
}
/* Writes the stub of an operator: mov r11, row; jmp to the common code at position 0. */
OPDI_INTERNAL void opdi_aoti_code_operator(opdi_aoti_bytes *code, const void *row) {
    OPDI_AOTI_CODE(code, "\xf3\x0f\x1e\xfa\x49\xbb");
    opdi_aoti_put_word(code, (uint64_t)(uintptr_t)row);
    OPDI_AOTI_CODE(code, "\xe9");
    const int32_t back = -(int32_t)(code->length + 4);
    opdi_aoti_put(code, &back, 4);
}
/* Writes a stub that jumps to a function: mov rax, fn; jmp rax.  If `third` is not NULL, the stub begins with mov rdx,
   *third. */
OPDI_INTERNAL void opdi_aoti_code_jump(opdi_aoti_bytes *code, opdi_aoti_fn fn, const uint64_t *third) {
    OPDI_AOTI_CODE(code, "\xf3\x0f\x1e\xfa");
    if (third) {
        OPDI_AOTI_CODE(code, "\x48\xba");
        opdi_aoti_put_word(code, *third);
    }
    OPDI_AOTI_CODE(code, "\x48\xb8");
    opdi_aoti_put_word(code, (uint64_t)(uintptr_t)fn);
    OPDI_AOTI_CODE(code, "\xff\xe0");
}
/* Writes a stub that returns a number: mov rax, number; ret. */
OPDI_INTERNAL void opdi_aoti_code_constant(opdi_aoti_bytes *code, uint64_t number) {
    OPDI_AOTI_CODE(code, "\xf3\x0f\x1e\xfa\x48\xb8");
    opdi_aoti_put_word(code, number);
    OPDI_AOTI_CODE(code, "\xc3");
}
/* Writes the stub of a vector function: stores two registers of 16, 32 or 64 bytes on an aligned stack, calls
   opdi_aoti_vector_run(first, second, vector), and loads the first register. */
OPDI_INTERNAL void opdi_aoti_code_vector(opdi_aoti_bytes *code, const opdi_aoti_vector *vector) {
    const int bytes = vector->count * vector->element;
    OPDI_AOTI_CODE(code, "\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\x48\x83\xe4\xc0\x48\x81\xec\x80\x00\x00\x00");
    if (bytes == 64) {
        OPDI_AOTI_CODE(code, "\x62\xf1\x7c\x48\x11\x04\x24\x62\xf1\x7c\x48\x11\x4c\x24\x01\xc5\xf8\x77");
    }
    else if (bytes == 32) { OPDI_AOTI_CODE(code, "\xc5\xfc\x11\x04\x24\xc5\xfc\x11\x4c\x24\x40\xc5\xf8\x77"); }
    else { OPDI_AOTI_CODE(code, "\x0f\x11\x04\x24\x0f\x11\x4c\x24\x40"); }
    OPDI_AOTI_CODE(code, "\x48\x89\xe7\x48\x8d\x74\x24\x40\x48\xba");
    opdi_aoti_put_word(code, (uint64_t)(uintptr_t)vector);
    OPDI_AOTI_CODE(code, "\x48\xb8");
    opdi_aoti_put_word(code, (uint64_t)(uintptr_t)opdi_aoti_vector_run);
    OPDI_AOTI_CODE(code, "\xff\xd0");
    if (bytes == 64) { OPDI_AOTI_CODE(code, "\x62\xf1\x7c\x48\x10\x04\x24"); }
    else if (bytes == 32) { OPDI_AOTI_CODE(code, "\xc5\xfc\x10\x04\x24"); }
    else { OPDI_AOTI_CODE(code, "\x0f\x10\x04\x24"); }
    OPDI_AOTI_CODE(code, "\xc9\xc3");
}
/* Writes the function `.call`, an opdi_ext_call_fn.  It calls the kernel from a frame that the unwinder knows, and
   returns the exception that this frame catches, or 0.  The code: push rbp; mov rbp, rsp; mov rax, rdi; mov rdi, rsi;
   mov rsi, rdx; mov rdx, rcx; call rax; xor eax, eax; (OPDI_EXT_LANDING:) pop rbp; ret. */
OPDI_INTERNAL void opdi_ext_code_call(opdi_aoti_bytes *code) {
    OPDI_AOTI_CODE(code, "\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\x48\x89\xf8\x48\x89\xf7\x48\x89\xd6\x48\x89\xca");
    OPDI_AOTI_CODE(code, "\xff\xd0\x31\xc0\x5d\xc3");
}
/* The description of the frame of `.call` for the unwinder: at the entry, after the push, after the mov. */
static const char opdi_ext_frame_first[] = "\x01zPR\0\x01\x78\x10\x0a";
static const char opdi_ext_frame_entry[] = "\x0c\x07\x08\x90\x01";
static const char opdi_ext_frame_then[] = "\x45\x0e\x10\x86\x02\x43\x0d\x06";

#else

static void opdi_aoti_put_codes(opdi_aoti_bytes *code, const uint32_t *words, size_t count) {
    opdi_aoti_put(code, words, 4 * count);
}
/* Writes the code that all stubs of operators share.  The code: stp x29, x30; then it stores the registers of 8
   integers and 8 doubles on the stack, calls opdi_aoti_operator(x16, integers, doubles, stack), and returns. */
OPDI_INTERNAL void opdi_aoti_code_common(opdi_aoti_bytes *code) {
    static const uint32_t words[] = {
        0xa9b67bfd, 0x910003fd, 0xa90107e0, 0xa9020fe2, 0xa90317e4, 0xa9041fe6, 0x6d0507e0, 0x6d060fe2, 0x6d0717e4,
        0x6d081fe6, 0xaa1003e0, 0x910043e1, 0x910143e2, 0x910283e3, 0x58000090, 0xd63f0200, 0xa8ca7bfd, 0xd65f03c0};
    opdi_aoti_put_codes(code, words, sizeof words / sizeof *words);
    opdi_aoti_put_word(code, (uint64_t)(uintptr_t)opdi_aoti_operator);
}
/* Writes the stub of an operator: bti c; ldr x16, row; b to the common code at position 0. */
OPDI_INTERNAL void opdi_aoti_code_operator(opdi_aoti_bytes *code, const void *row) {
    const uint32_t back = (uint32_t)-(int32_t)((code->length + 8) / 4) & 0x3ffffff;
    const uint32_t words[] = {0xd503245f, 0x58000070, 0x14000000 | back, 0xd503201f};
    opdi_aoti_put_codes(code, words, 4);
    opdi_aoti_put_word(code, (uint64_t)(uintptr_t)row);
}
/* Writes a stub that jumps to a function: bti c; ldr x16, fn; br x16.  If `third` is not NULL, ldr x2, *third comes
   first. */
OPDI_INTERNAL void opdi_aoti_code_jump(opdi_aoti_bytes *code, opdi_aoti_fn fn, const uint64_t *third) {
    static const uint32_t plain[] = {0xd503245f, 0x58000070, 0xd61f0200, 0xd503201f};
    static const uint32_t more[] = {0xd503245f, 0x58000062, 0x58000090, 0xd61f0200};
    opdi_aoti_put_codes(code, third ? more : plain, 4);
    if (third) { opdi_aoti_put_word(code, *third); }
    opdi_aoti_put_word(code, (uint64_t)(uintptr_t)fn);
}
/* Writes a stub that returns a number: bti c; ldr x0, number; ret. */
OPDI_INTERNAL void opdi_aoti_code_constant(opdi_aoti_bytes *code, uint64_t number) {
    static const uint32_t words[] = {0xd503245f, 0x58000060, 0xd65f03c0, 0xd503201f};
    opdi_aoti_put_codes(code, words, 4);
    opdi_aoti_put_word(code, number);
}
/* Writes the stub of a vector function: stores two registers of 16 bytes, calls opdi_aoti_vector_run(first, second,
   vector), and loads the first register. */
OPDI_INTERNAL void opdi_aoti_code_vector(opdi_aoti_bytes *code, const opdi_aoti_vector *vector) {
    static const uint32_t words[] = {
        0xd503245f, 0xa9bd7bfd, 0x910003fd, 0xad0087e0, 0x910043e0, 0x910083e1, 0x580000c2, 0x580000f0, 0xd63f0200,
        0x3dc007e0, 0xa8c37bfd, 0xd65f03c0};
    opdi_aoti_put_codes(code, words, sizeof words / sizeof *words);
    opdi_aoti_put_word(code, (uint64_t)(uintptr_t)vector);
    opdi_aoti_put_word(code, (uint64_t)(uintptr_t)opdi_aoti_vector_run);
}
/* Writes the function `.call`, an opdi_ext_call_fn.  It calls the kernel from a frame that the unwinder knows, and
   returns the exception that this frame catches, or 0.  The code: bti c; stp x29, x30; mov x29, sp; mov x16, x0; mov
   x0, x1; mov x1, x2; mov x2, x3; blr x16; mov x0, 0; (OPDI_EXT_LANDING:) ldp x29, x30; ret. */
OPDI_INTERNAL void opdi_ext_code_call(opdi_aoti_bytes *code) {
    static const uint32_t words[] = {0xd503245f, 0xa9bf7bfd, 0x910003fd, 0xaa0003f0, 0xaa0103e0, 0xaa0203e1,
                                     0xaa0303e2, 0xd63f0200, 0xd2800000, 0xa8c17bfd, 0xd65f03c0};
    opdi_aoti_put_codes(code, words, sizeof words / sizeof *words);
}
/* The description of the frame of `.call` for the unwinder: at the entry, after the stp, after the mov. */
static const char opdi_ext_frame_first[] = "\x01zPR\0\x04\x78\x1e\x0a";
static const char opdi_ext_frame_entry[] = "\x0c\x1f\x00";
static const char opdi_ext_frame_then[] = "\x42\x0e\x10\x9d\x02\x9e\x01\x41\x0d\x1d";

#endif

/* The position in the code of `.call` (opdi_ext_code_call) where execution continues after an exception was caught. */
#if defined(__x86_64__)
enum { OPDI_EXT_LANDING = 24 };
#else
enum { OPDI_EXT_LANDING = 36 };
#endif

OPDI_INTERNAL opdi_ext_catching opdi_ext_cxx;

/* The C++ personality function of `.call`, which calls kernels: tells the unwinder that `.call` catches each
   exception. */
OPDI_INTERNAL int opdi_ext_personality(int version, int actions, uint64_t kind, void *exception, void *context) {
    (void)kind;
    if (version != 1 || (actions & 8) || !opdi_ext_cxx.set_register) { return 8; }        /* go on unwinding */
    if (actions & 1) { return 6; }                                                        /* `.call` is the handler */
    if (!(actions & 4)) { return 8; }
    opdi_ext_cxx.set_register(context, 0, (uintptr_t)exception);
    opdi_ext_cxx.set_place(context, opdi_ext_cxx.begin(context) + OPDI_EXT_LANDING);
    return 7;                                                                           /* go on at OPDI_EXT_LANDING */
}

static uint32_t opdi_aoti_hash(const char *name) {
    uint32_t hash = 0;
    for (; *name; name++) {
        hash = (hash << 4) + (unsigned char)*name;
        hash = (hash ^ (hash & 0xf0000000u) >> 24) & 0x0fffffffu;
    }
    return hash;
}
/* Adds a symbol called `name` for the code that is written next. */
OPDI_INTERNAL void opdi_aoti_name(opdi_aoti_library *library, const char *name) {
    Elf64_Sym symbol;
    opdi_aoti_align(&library->code, 16);
    memset(&symbol, 0, sizeof symbol);
    symbol.st_name = (uint32_t)library->names.length;
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbol.st_shndx = 1;
    symbol.st_value = library->code.length;                   /* relative to the code, whose address is added by
                                                                 opdi_aoti_link */
    symbol.st_size = 1;
    opdi_aoti_put(&library->names, name, strlen(name) + 1);
    opdi_aoti_put(&library->symbols, &symbol, sizeof symbol);
    library->count++;
}
static void opdi_aoti_put_dynamic(opdi_aoti_bytes *file, int64_t tag, uint64_t value) {
    opdi_aoti_put(file, &tag, 8);
    opdi_aoti_put(file, &value, 8);
}
static void opdi_aoti_segment(Elf64_Phdr *segment, uint32_t type, uint32_t flags, size_t at, size_t bytes) {
    memset(segment, 0, sizeof *segment);
    segment->p_type = type;
    segment->p_flags = flags;
    segment->p_offset = segment->p_vaddr = segment->p_paddr = at;
    segment->p_filesz = segment->p_memsz = bytes;
    segment->p_align = type == PT_LOAD ? OPDI_AOTI_PAGE : 16;
}
/* Writes the hash table of the symbols: half as many buckets as symbols, then the chains. */
static void opdi_aoti_put_hash(opdi_aoti_bytes *file, const opdi_aoti_library *library) {
    const uint32_t buckets = library->count / 2 + 1, heads[2] = {buckets, library->count};
    uint32_t *table = (uint32_t *)calloc(buckets + library->count, sizeof *table);
    if (!table) {
        file->failed = true;
        return;
    }
    for (uint32_t i = 1; i < library->count; i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, library->symbols.data + i * sizeof symbol, sizeof symbol);
        const uint32_t bucket = opdi_aoti_hash((const char *)library->names.data + symbol.st_name) % buckets;
        table[buckets + i] = table[bucket];
        table[bucket] = i;
    }
    opdi_aoti_put(file, heads, sizeof heads);
    opdi_aoti_put(file, table, (buckets + library->count) * sizeof *table);
    free(table);
}
enum { OPDI_EXT_FRAMES = 120 };
/* Writes the unwind tables of the function `.call`: a table with one entry, and the description of its frame. `header`,
   `frames`, `second` and `code` are positions in the file.  The numbers are codes of the DWARF format. */
static void opdi_ext_put_frames(opdi_aoti_bytes *file, const opdi_aoti_library *library, size_t code) {
    static const unsigned char kinds[4] = {1, 0x1b, 3, 0x3b};
    const size_t header = file->length, frames = header + 24, second = frames + 48;
    const size_t at = code + library->call_at;
    int32_t words[5];
    unsigned char buffer[96];
    memset(buffer, 0, sizeof buffer);
    words[0] = (int32_t)(frames - header - 4);
    words[1] = 1;
    words[2] = (int32_t)((int64_t)at - (int64_t)header);
    words[3] = (int32_t)(second - header);
    words[4] = 0;
    opdi_aoti_put(file, kinds, 4);
    opdi_aoti_put(file, words, 20);
    /* the common entry (CIE): its length, 0, then the state at the entry of a function */
    const uint64_t catches = (uint64_t)(uintptr_t)opdi_ext_personality;
    const uint32_t first[2] = {44, 0};
    size_t used = 8;
    memcpy(buffer, first, 8);
    memcpy(buffer + used, opdi_ext_frame_first, sizeof opdi_ext_frame_first - 1);
    used += sizeof opdi_ext_frame_first;          /* with the 0 at its end; an address follows */
    memcpy(buffer + used, &catches, 8);
    used += 8;
    buffer[used++] = 0x1b;
    memcpy(buffer + used, opdi_ext_frame_entry, sizeof opdi_ext_frame_entry - 1);
    /* the function's entry (FDE): its length, the distance to the CIE, address, size, and changes of the frame */
    const int32_t own[4] = {36, 52, (int32_t)((int64_t)at - (int64_t)(second + 8)), (int32_t)library->call_size};
    memcpy(buffer + 48, own, 16);
    memcpy(buffer + 65, opdi_ext_frame_then, sizeof opdi_ext_frame_then - 1);
    opdi_aoti_put(file, buffer, sizeof buffer);
}
/* Writes the file of a library of stubs called `name`.  Names and symbols are readable, the code is executable, and the
   dynamic section, which the loader changes, is writable. */
OPDI_INTERNAL void opdi_aoti_link(opdi_aoti_library *library, const char *name, opdi_aoti_bytes *file) {
    Elf64_Ehdr head;
    Elf64_Phdr segments[6];
    const uint64_t soname = library->names.length;
    opdi_aoti_put(&library->names, name, strlen(name) + 1);
    memset(&head, 0, sizeof head);
    memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_ident[EI_DATA] = ELFDATA2LSB;
    head.e_ident[EI_VERSION] = EV_CURRENT;
    head.e_type = ET_DYN;
    head.e_machine = OPDI_AOTI_MACHINE;
    head.e_version = EV_CURRENT;
    head.e_phoff = sizeof head;
    head.e_ehsize = sizeof head;
    head.e_phentsize = sizeof *segments;
    head.e_phnum = 6;
    opdi_aoti_put(file, &head, sizeof head);
    opdi_aoti_put(file, segments, sizeof segments);           /* filled in below */
    const size_t hash = file->length;
    opdi_aoti_put_hash(file, library);
    opdi_aoti_align(file, 16);
    const size_t symbols = file->length;
    opdi_aoti_put(file, library->symbols.data, library->symbols.length);
    const size_t names = file->length;
    opdi_aoti_put(file, library->names.data, library->names.length);
    opdi_aoti_align(file, 8);
    const size_t frames = file->length;
    const size_t behind = (frames + OPDI_EXT_FRAMES + OPDI_AOTI_PAGE - 1) / OPDI_AOTI_PAGE * OPDI_AOTI_PAGE;
    if (library->call_size) { opdi_ext_put_frames(file, library, behind); }
    while (file->length < frames + OPDI_EXT_FRAMES && !file->failed) { opdi_aoti_put_text(file, "", 1); }
    const size_t read_end = file->length;
    opdi_aoti_align(file, OPDI_AOTI_PAGE);
    const size_t code = file->length;
    opdi_aoti_put(file, library->code.data, library->code.length);
    const size_t code_end = file->length;
    opdi_aoti_align(file, OPDI_AOTI_PAGE);
    const size_t dynamic = file->length;
    for (int i = 0; i < library->nneeded; i++) { opdi_aoti_put_dynamic(file, DT_NEEDED, library->needed[i]); }
    opdi_aoti_put_dynamic(file, DT_SONAME, soname);
    opdi_aoti_put_dynamic(file, DT_HASH, hash);
    opdi_aoti_put_dynamic(file, DT_SYMTAB, symbols);
    opdi_aoti_put_dynamic(file, DT_STRTAB, names);
    opdi_aoti_put_dynamic(file, DT_STRSZ, library->names.length);
    opdi_aoti_put_dynamic(file, DT_SYMENT, sizeof(Elf64_Sym));
    opdi_aoti_put_dynamic(file, DT_NULL, 0);
    if (file->failed || library->names.failed || library->code.failed || library->symbols.failed) {
        (void)opdi_aoti_no_memory();
        return;
    }
    opdi_aoti_segment(&segments[0], PT_LOAD, PF_R, 0, read_end);
    opdi_aoti_segment(&segments[1], PT_LOAD, PF_R | PF_X, code, code_end - code);
    opdi_aoti_segment(&segments[2], PT_LOAD, PF_R | PF_W, dynamic, file->length - dynamic);
    opdi_aoti_segment(&segments[3], PT_DYNAMIC, PF_R | PF_W, dynamic, file->length - dynamic);
    opdi_aoti_segment(&segments[4], PT_GNU_STACK, PF_R | PF_W, 0, 0);
    opdi_aoti_segment(&segments[5], library->call_size ? PT_GNU_EH_FRAME : PT_NULL, PF_R, frames, OPDI_EXT_FRAMES);
    memcpy(file->data + sizeof head, segments, sizeof segments);
    for (uint32_t i = 1; i < library->count; i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, file->data + symbols + i * sizeof symbol, sizeof symbol);
        symbol.st_value += code;
        memcpy(file->data + symbols + i * sizeof symbol, &symbol, sizeof symbol);
    }
}

//== libraries as files in memory ======================================================================================

OPDI_INTERNAL int opdi_aoti_bad(const opd_aoti *model, const char *text) {
    return opd_fail(OPD_ERROR_FILE, "%s: %.400s: %.900s", model->who, model->path, text);
}
static int opdi_aoti_write(int fd, const unsigned char *data, size_t count) {
    while (count) {
        const ssize_t written = write(fd, data, count < 1u << 30 ? count : 1u << 30);
        if (written < 0 && errno == EINTR) { continue; }
        if (written <= 0) { return -1; }
        data += written;
        count -= (size_t)written;
    }
    return 0;
}
/* Writes to `path` a path of file descriptor `fd` that no other image has had, because the loader takes files with the
   same path for the same file.  The path contains a number, as binary digits `//` (0) and `/.` (1). */
static void opdi_aoti_fd_path(char *path, size_t cap, int fd) {
    static uint32_t images;
    uint32_t number = OPDI_AOTI_NEXT(images);
    char digits[65], *at = digits;
    for (int i = 0; i < 32; i++, number >>= 1) {
        *at++ = '/';
        *at++ = number & 1 ? '.' : '/';
    }
    *at = 0;
    snprintf(path, cap, "/proc/self/fd%s/%d", digits, fd);
}
/* Makes a file of these bytes that can be loaded: in memory if `in_memory` is true, otherwise in a folder for temporary
   files.  Returns 0, or -1; sets an error only for a temporary file. */
static int opdi_aoti_image_new(opd_aoti *model, opdi_aoti_image *image, const unsigned char *data, size_t count,
                               bool in_memory) {
    image->temporary = !in_memory;
    if (in_memory) {
#if defined(SYS_memfd_create)
        image->fd = (int)syscall(SYS_memfd_create, "opdispatch", 1u);        /* closed in child processes */
        if (image->fd >= 0) { opdi_aoti_fd_path(image->path, sizeof image->path, image->fd); }
#endif
    } else {
        const char *folder = getenv("TMPDIR");
        snprintf(image->path, sizeof image->path, "%.120s/opd_aoti.XXXXXX", folder && *folder ? folder : "/tmp");
        image->fd = mkstemp(image->path);
    }
    if (image->fd >= 0 && opdi_aoti_write(image->fd, data, count) == 0) { return 0; }
    return in_memory ? -1 : opdi_aoti_bad(model, "a copy of the library could not be written to a temporary file");
}
OPDI_INTERNAL void opdi_aoti_image_free(opdi_aoti_image *image) {
    if (image->handle) { (void)dlclose(image->handle); }
    if (image->fd >= 0) { (void)close(image->fd); }
    if (image->temporary && image->path[0]) { (void)unlink(image->path); }
    image->handle = NULL;
    image->fd = -1;
    image->path[0] = 0;
}
/* Returns true if this processor has the instructions of a library.  If not, sets an error for a compiled model, and
   only warns for an extension: perhaps only functions that nothing calls have these instructions. */
static bool opdi_aoti_image_runs(const opd_aoti *model, const opdi_aoti_image *image) {
    const char *const lacks = opd_plugin_lacks(image->path);
    char text[200];
    if (!lacks) { return true; }
    if (model->extension) {
        opd_warn("%s: %.300s has instructions of %s, which this processor lacks: running them ends the program with "
                 "SIGILL; build the library on this machine, or without -march=native", model->who, model->path, lacks);
        return true;
    }
    snprintf(text, sizeof text, "the model was compiled for %s, which this processor does not have; compile it on a "
             "machine like this one", lacks);
    (void)opdi_aoti_bad(model, text);
    return false;
}
/* Loads a library from its bytes: from a file in memory or, if that is not allowed, from a temporary file.  Returns 0,
   or -1 and sets an error. */
OPDI_INTERNAL int opdi_aoti_image_load(opd_aoti *model, opdi_aoti_image *image, const unsigned char *data, size_t count)
                                       {
    const char *why = NULL;
    if (opd_code_forbidden(model->who)) { return -1; }
    for (int pass = 0; pass < 2 && opd_ok(); pass++) {
        if (opdi_aoti_image_new(model, image, data, count, pass == 0) == 0 && opdi_aoti_image_runs(model, image) &&
            (image->handle = dlopen(image->path, RTLD_NOW | RTLD_LOCAL)) != NULL) {
            return 0;
        }
        why = opd_ok() && image->fd >= 0 ? dlerror() : NULL;
        /* a symbol that is missing now would also be missing in the second attempt */
        if (why && (strstr(why, "undefined symbol") || strstr(why, "version `") ||
                    strstr(why, "cannot open shared object file: No such file") != NULL)) {
            const char *text = strstr(why, ": ");
            (void)opdi_aoti_bad(model, text && strncmp(why, "/proc/", 6) == 0 ? text + 2 : why);
        }
        opdi_aoti_image_free(image);
    }
    return opd_ok() ? opdi_aoti_bad(model, why ? why : "the library cannot be loaded") : -1;
}
