#include "aoti.h"

//== the model's library: checks, and redirection to the stubs =========================================================

OPDI_INTERNAL int opdi_aoti_damaged(const opdi_aoti_elf *elf, const char *what) {
    char text[200];
    snprintf(text, sizeof text, "the library is damaged: %s", what);
    return opdi_aoti_bad(elf->model, text);
}
/* Returns the place, in the copy of the library's file, of the `count` bytes at a virtual address, or NULL if the file
   does not contain them. */
OPDI_INTERNAL void *opdi_aoti_at(const opdi_aoti_elf *elf, uint64_t address, uint64_t count) {
    for (int i = 0; i < elf->nsegments; i++) {
        const Elf64_Phdr *segment = &elf->segments[i];
        if (segment->p_type == PT_LOAD && address >= segment->p_vaddr && count <= segment->p_filesz &&
            address - segment->p_vaddr <= segment->p_filesz - count) {
            return elf->data + segment->p_offset + (address - segment->p_vaddr);
        }
    }
    return NULL;
}
/* Returns true if `count` bytes at a virtual address belong to a segment of the library that has these rights (PF_R,
   ...). */
static bool opdi_aoti_is_mapped(const opdi_aoti_elf *elf, uint64_t address, uint64_t count, uint32_t rights) {
    for (int i = 0; i < elf->nsegments; i++) {
        const Elf64_Phdr *segment = &elf->segments[i];
        if (segment->p_type == PT_LOAD && (segment->p_flags & rights) == rights && address >= segment->p_vaddr &&
            count <= segment->p_memsz &&
            address - segment->p_vaddr <= segment->p_memsz - count) {
            return true;
        }
    }
    return false;
}
OPDI_INTERNAL uint64_t opdi_aoti_entry(const opdi_aoti_elf *elf, int64_t tag) {
    for (size_t i = 0; i < elf->ndynamic; i++) {
        if (elf->dynamic[i].d_tag == tag) { return elf->dynamic[i].d_un.d_val; }
    }
    return 0;
}
static const char *opdi_aoti_machine(int machine) {
    return machine == EM_X86_64 ? "x86-64" : machine == EM_AARCH64 ? "aarch64" : machine == EM_386 ? "32-bit x86"
        : machine == EM_ARM ? "32-bit ARM" : machine == EM_PPC64 ? "PowerPC" : machine == EM_S390 ? "s390x"
        : machine == EM_RISCV ? "RISC-V" : "another machine";
}
OPDI_INTERNAL int opdi_aoti_elf_head(opdi_aoti_elf *elf) {
    Elf64_Ehdr head;
    uint64_t last = 0;           /* end of the previous segment */
    char text[120];
    if (elf->size < sizeof head) { return opdi_aoti_bad(elf->model, "the library is incomplete"); }
    memcpy(&head, elf->data, sizeof head);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) {
        const bool pe = elf->data[0] == 'M' && elf->data[1] == 'Z';
        return opdi_aoti_bad(elf->model, pe ? "the library is for Windows"
                             : "this is not a shared library (not an ELF file)");
    }
    if (head.e_ident[EI_DATA] != ELFDATA2LSB || head.e_ident[EI_CLASS] != ELFCLASS64 ||
        head.e_machine != OPDI_AOTI_MACHINE) {
        const bool same = head.e_ident[EI_DATA] == ELFDATA2LSB;
        snprintf(text, sizeof text, "the library is for %s, but this program is for %s",
                 same ? opdi_aoti_machine(head.e_machine) : "another machine", opdi_aoti_machine(OPDI_AOTI_MACHINE));
        return opdi_aoti_bad(elf->model, text);
    }
    if (head.e_type != ET_DYN) {
        return opdi_aoti_bad(elf->model, "this is not a shared library, but another ELF file");
    }
    if (head.e_phentsize != sizeof(Elf64_Phdr) || head.e_phnum == 0 || head.e_phnum > 64) {
        return opdi_aoti_damaged(elf, "its list of segments");
    }
    if (head.e_phoff > elf->size || head.e_phnum * sizeof(Elf64_Phdr) > elf->size - head.e_phoff ||
        head.e_shoff > elf->size || (uint64_t)head.e_shnum * head.e_shentsize > elf->size - head.e_shoff) {
        return opdi_aoti_bad(elf->model, "the library is incomplete");
    }
    elf->nsegments = head.e_phnum;
    memcpy(elf->segments, elf->data + head.e_phoff, head.e_phnum * sizeof(Elf64_Phdr));
    for (int i = 0; i < elf->nsegments; i++) {
        const Elf64_Phdr *segment = &elf->segments[i];
        const bool load = segment->p_type == PT_LOAD;
        if (segment->p_offset > elf->size || segment->p_filesz > elf->size - segment->p_offset) {
            return opdi_aoti_bad(elf->model, "the library is incomplete");
        }
        if (load && (segment->p_filesz > segment->p_memsz || segment->p_memsz > (uint64_t)1 << 40 ||
                     segment->p_vaddr > (uint64_t)1 << 40 || segment->p_align == 0 ||
                     (segment->p_align & (segment->p_align - 1)) || segment->p_align > 1u << 24 ||
                     (segment->p_vaddr - segment->p_offset) % segment->p_align ||
                     segment->p_vaddr < last)) {
            return opdi_aoti_damaged(elf, "its list of segments");
        }
        if (load && (!(segment->p_flags & PF_R) ||
                     (!(segment->p_flags & PF_W) && segment->p_filesz != segment->p_memsz))) {
            return opdi_aoti_damaged(elf, "its list of segments");
        }
        if (load) { last = segment->p_vaddr + segment->p_memsz; }
    }
    for (int i = 0; i < elf->nsegments; i++) {
        const Elf64_Phdr *segment = &elf->segments[i];
        if (segment->p_type == PT_GNU_STACK && (segment->p_flags & PF_X)) {
            /* models do not need an executable stack; the flag comes from assembler code for constants */
            const uint32_t flags = PF_R | PF_W;
            memcpy(elf->data + head.e_phoff + (size_t)i * sizeof *segment + offsetof(Elf64_Phdr, p_flags), &flags, 4);
        }
        const uint32_t rights = segment->p_type == PT_DYNAMIC || segment->p_type == PT_GNU_RELRO ? PF_R | PF_W : PF_R;
        if (segment->p_type != PT_GNU_STACK && segment->p_memsz &&
            !opdi_aoti_is_mapped(elf, segment->p_vaddr, segment->p_type == PT_TLS ? segment->p_filesz
                                 : segment->p_memsz,
                                 rights)) {
            return opdi_aoti_damaged(elf, "its list of segments");
        }
    }
    return 0;
}
/* Returns the number of symbols according to the GNU hash table at `address`, or 0 if the table is damaged. */
static size_t opdi_aoti_gnu_count(const opdi_aoti_elf *elf, uint64_t address) {
    uint32_t head[4], most = 0, link;
    const unsigned char *at = (const unsigned char *)opdi_aoti_at(elf, address, sizeof head);
    if (!at) { return 0; }
    memcpy(head, at, sizeof head);
    if (head[2] == 0 || (head[2] & (head[2] - 1)) || !opdi_aoti_at(elf, address + 16, 8 * (uint64_t)head[2])) {
        return 0;                                 /* the loader relies on valid values here */
    }
    const uint64_t buckets = address + 16 + 8 * (uint64_t)head[2], chains = buckets + 4 * (uint64_t)head[0];
    const unsigned char *all = (const unsigned char *)opdi_aoti_at(elf, buckets, 4 * (uint64_t)head[0]);
    if (!all) { return 0; }
    for (uint32_t i = 0; i < head[0]; i++) {
        memcpy(&link, all + 4 * (size_t)i, 4);
        most = link > most ? link : most;
    }
    if (most < head[1]) { return head[1]; }
    for (;; most++) {
        at = (const unsigned char *)opdi_aoti_at(elf, chains + 4 * (uint64_t)(most - head[1]), 4);
        if (!at) { return 0; }
        memcpy(&link, at, 4);
        if (link & 1) { return (size_t)most + 1; }
    }
}
/* Returns the number of the last symbol that a relocation uses, plus 1.  If a library exports no symbol, its hash table
   does not tell how many symbols it has. */
static size_t opdi_aoti_moved_count(const opdi_aoti_elf *elf) {
    static const int64_t tables[][2] = {{DT_RELA, DT_RELASZ}, {DT_JMPREL, DT_PLTRELSZ}};
    size_t count = 0;
    for (int i = 0; i < 2; i++) {
        const uint64_t bytes = opdi_aoti_entry(elf, tables[i][1]);
        const unsigned char *table =
            (const unsigned char *)opdi_aoti_at(elf, opdi_aoti_entry(elf, tables[i][0]), bytes);
        for (uint64_t k = 0; table && k < bytes / sizeof(Elf64_Rela); k++) {
            Elf64_Rela move;
            memcpy(&move, table + k * sizeof move, sizeof move);
            if (ELF64_R_SYM(move.r_info) >= count) { count = ELF64_R_SYM(move.r_info) + 1; }
        }
    }
    return count;
}
OPDI_INTERNAL int opdi_aoti_elf_tables(opdi_aoti_elf *elf) {
    uint32_t head[2] = {0, 0};
    for (int i = 0; i < elf->nsegments; i++) {
        const Elf64_Phdr *segment = &elf->segments[i];
        if (segment->p_type != PT_DYNAMIC) { continue; }
        elf->dynamic = (Elf64_Dyn *)opdi_aoti_at(elf, segment->p_vaddr, segment->p_filesz);
        elf->ndynamic = segment->p_filesz / sizeof(Elf64_Dyn);
        if (segment->p_offset % 8) { elf->dynamic = NULL; }
    }
    size_t end = 0;
    while (elf->dynamic && end < elf->ndynamic && elf->dynamic[end].d_tag != DT_NULL) { end++; }
    if (!elf->dynamic || end == elf->ndynamic) { return opdi_aoti_damaged(elf, "its dynamic section"); }
    elf->ndynamic = end;
    elf->names_size = opdi_aoti_entry(elf, DT_STRSZ);
    elf->names = (char *)opdi_aoti_at(elf, opdi_aoti_entry(elf, DT_STRTAB), elf->names_size);
    if (!elf->names || elf->names_size == 0 || elf->names[elf->names_size - 1] ||
        opdi_aoti_entry(elf, DT_SYMENT) != sizeof(Elf64_Sym)) {
        return opdi_aoti_damaged(elf, "its names");
    }
    const uint64_t hash = opdi_aoti_entry(elf, DT_HASH), gnu = opdi_aoti_entry(elf, DT_GNU_HASH);
    const void *at = hash ? opdi_aoti_at(elf, hash, sizeof head) : NULL;
    if (at) { memcpy(head, at, sizeof head); }
    elf->nsymbols = hash ? head[1] : gnu ? opdi_aoti_gnu_count(elf, gnu) : 0;
    if (hash && !opdi_aoti_at(elf, hash, 8 + 4 * ((uint64_t)head[0] + head[1]))) { elf->nsymbols = 0; }
    if (!hash && elf->nsymbols) {
        const size_t moved = opdi_aoti_moved_count(elf);
        if (moved > elf->nsymbols) { elf->nsymbols = moved; }
    }
    elf->symbols = (Elf64_Sym *)opdi_aoti_at(elf, opdi_aoti_entry(elf, DT_SYMTAB), elf->nsymbols * sizeof(Elf64_Sym));
    if (!elf->symbols || elf->nsymbols == 0 || (uintptr_t)elf->symbols % 8) {
        return opdi_aoti_damaged(elf, "its symbols");
    }
    if (opdi_aoti_entry(elf, DT_VERSYM)) {
        elf->versions = (uint16_t *)opdi_aoti_at(elf, opdi_aoti_entry(elf, DT_VERSYM), 2 * elf->nsymbols);
        if (!elf->versions || (uintptr_t)elf->versions % 2) { return opdi_aoti_damaged(elf, "its versions"); }
    }
    for (size_t i = 0; i < elf->nsymbols; i++) {
        const Elf64_Sym *const symbol = &elf->symbols[i];
        const bool function = ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF;
        if (symbol->st_name >= elf->names_size ||
            (function && !opdi_aoti_is_mapped(elf, symbol->st_value, 1, PF_R | PF_X))) {
            return opdi_aoti_damaged(elf, "its symbols");
        }
    }
    return 0;
}
/* Returns true if an address is in the list of functions that run when the library is loaded or unloaded. */
static bool opdi_aoti_runs_at_load(const opdi_aoti_elf *elf, uint64_t address) {
    static const int64_t arrays[][2] = {{DT_INIT_ARRAY, DT_INIT_ARRAYSZ}, {DT_FINI_ARRAY, DT_FINI_ARRAYSZ}};
    for (int i = 0; i < 2; i++) {
        const uint64_t first = opdi_aoti_entry(elf, arrays[i][0]), bytes = opdi_aoti_entry(elf, arrays[i][1]);
        if (bytes && address >= first && address - first < bytes) { return true; }
    }
    return false;
}
/* Checks a table of relocations: each must use an existing symbol and change writable memory of the library.  Returns
   0, or -1 and sets an error. */
static int opdi_aoti_elf_moves(const opdi_aoti_elf *elf, uint64_t address, uint64_t bytes) {
    const unsigned char *table = (const unsigned char *)opdi_aoti_at(elf, address, bytes);
    if (bytes == 0) { return 0; }
    if (!table || bytes % sizeof(Elf64_Rela)) { return opdi_aoti_damaged(elf, "its relocations"); }
    for (uint64_t i = 0; i < bytes / sizeof(Elf64_Rela); i++) {
        Elf64_Rela move;
        memcpy(&move, table + i * sizeof move, sizeof move);
        if (ELF64_R_SYM(move.r_info) >= elf->nsymbols || !opdi_aoti_is_mapped(elf, move.r_offset, 8, PF_R | PF_W)) {
            return opdi_aoti_damaged(elf, "its relocations");
        }
        if (opdi_aoti_runs_at_load(elf, move.r_offset) && ELF64_R_SYM(move.r_info) == 0 &&
            !opdi_aoti_is_mapped(elf, (uint64_t)move.r_addend, 1, PF_R | PF_X)) {
            return opdi_aoti_damaged(elf, "its list of functions that run when it is loaded");
        }
    }
    return 0;
}
OPDI_INTERNAL int opdi_aoti_elf_check(const opdi_aoti_elf *elf) {
    static const int64_t arrays[][2] = {{DT_INIT_ARRAY, DT_INIT_ARRAYSZ}, {DT_FINI_ARRAY, DT_FINI_ARRAYSZ}};
    if (opdi_aoti_elf_moves(elf, opdi_aoti_entry(elf, DT_RELA), opdi_aoti_entry(elf, DT_RELASZ)) ||
        opdi_aoti_elf_moves(elf, opdi_aoti_entry(elf, DT_JMPREL), opdi_aoti_entry(elf, DT_PLTRELSZ))) {
        return -1;
    }
    for (int i = 0; i < 2; i++) {
        const uint64_t bytes = opdi_aoti_entry(elf, arrays[i][1]);
        const uint64_t single = opdi_aoti_entry(elf, i ? DT_FINI : DT_INIT);
        if (single && !opdi_aoti_is_mapped(elf, single, 1, PF_R | PF_X)) {
            return opdi_aoti_damaged(elf, "its list of functions that run when it is loaded");
        }
        if (bytes && !opdi_aoti_at(elf, opdi_aoti_entry(elf, arrays[i][0]), bytes)) {
            return opdi_aoti_damaged(elf, "its list of functions that run when it is loaded");
        }
    }
    /* the list of required versions */
    uint64_t at = opdi_aoti_entry(elf, DT_VERNEED);
    for (uint64_t left = at ? opdi_aoti_entry(elf, 0x6fffffff) : 0; left; left--) {
        Elf64_Verneed need;
        const void *here = opdi_aoti_at(elf, at, sizeof need);
        if (!here) { return opdi_aoti_damaged(elf, "its versions"); }
        memcpy(&need, here, sizeof need);
        uint64_t one = at + need.vn_aux;
        for (int i = 0; i < need.vn_cnt; i++) {
            Elf64_Vernaux aux;
            here = opdi_aoti_at(elf, one, sizeof aux);
            if (here) { memcpy(&aux, here, sizeof aux); }
            if (!here || aux.vna_name >= elf->names_size) { return opdi_aoti_damaged(elf, "its versions"); }
            one += aux.vna_next;
        }
        if (need.vn_file >= elf->names_size) { return opdi_aoti_damaged(elf, "its versions"); }
        at += need.vn_next;
    }
    return 0;
}

/* Returns true if a name is the name of one of PyTorch's libraries, which the library of stubs replaces. */
OPDI_INTERNAL bool opdi_aoti_is_torch(const char *name) {
    return strncmp(name, "libtorch", 8) == 0 || strncmp(name, "libc10", 6) == 0 || strncmp(name, "libsleef", 8) == 0;
}
/* Replaces the dependencies on PyTorch's libraries by the library of stubs, called `name`.  This name overwrites the
   first name that is long enough: both libtorch.so and `name` have 11 letters.  Returns 0, or -1 and sets an error. */
static int opdi_aoti_elf_redirect(const opdi_aoti_elf *elf, const char *name) {
    uint64_t first = 0;
    for (size_t i = 0; i < elf->ndynamic; i++) {
        if (elf->dynamic[i].d_tag != DT_NEEDED) { continue; }
        if (elf->dynamic[i].d_un.d_val >= elf->names_size) {
            return opdi_aoti_damaged(elf, "its list of needed libraries");
        }
        const char *needed = elf->names + elf->dynamic[i].d_un.d_val;
        if (!opdi_aoti_is_torch(needed)) { continue; }
        if (!first && strlen(needed) >= strlen(name)) { first = elf->dynamic[i].d_un.d_val; }
    }
    if (!first) {
        return opdi_aoti_bad(elf->model, "the library was not compiled by AOTInductor (it does not need libtorch.so)");
    }
    for (size_t i = 0; i < elf->ndynamic; i++) {
        if (elf->dynamic[i].d_tag == DT_NEEDED && opdi_aoti_is_torch(elf->names + elf->dynamic[i].d_un.d_val)) {
            elf->dynamic[i].d_un.d_val = first;
        }
    }
    memcpy(elf->names + first, name, strlen(name) + 1);
    return 0;
}
/* Makes a stub called `as` for function `name`.  Returns 1, or 0 if there is no such function, or -1 and sets an
   error. */
OPDI_INTERNAL int opdi_aoti_stub(opd_aoti *model, opdi_aoti_library *library, const char *name, const char *as) {
    int count, element;
    for (size_t i = 0; i < opdi_aoti_nsymbols; i++) {
        const opdi_aoti_symbol *symbol = &opdi_aoti_symbols[i];
        if (strcmp(name, symbol->name) != 0) { continue; }
        opdi_aoti_name(library, as);
        if (symbol->kind == OPDI_AOTI_CONSTANT) { opdi_aoti_code_constant(&library->code, symbol->number); }
        else {
            opdi_aoti_code_jump(&library->code, symbol->fn, symbol->kind == OPDI_AOTI_THIRD ? &symbol->number : NULL);
        }
        return 1;
    }
    const opdi_aoti_math *math = opdi_aoti_vector_of(name, &count, &element);
    const opdi_aoti_row *row = math ? NULL : opdi_aoti_row_of(model, name);
    if (row) {
        opdi_aoti_name(library, as);
        opdi_aoti_code_operator(&library->code, row);
    } else if (math) {
        static const int counts[5] = {2, 4, 8, 16, 0};
        static opdi_aoti_vector vectors[OPDI_AOTI_MATHS][2][5];
        int which = 0;
        while (counts[which] && counts[which] != count) { which++; }
        opdi_aoti_vector *vector = &vectors[math - opdi_aoti_maths][element == 8][which];
        vector->math = math;
        vector->count = count;
        vector->element = element;
        opdi_aoti_name(library, as);
        opdi_aoti_code_vector(&library->code, vector);
    }
    return !opd_ok() ? -1 : row || math ? 1 : 0;
}
/* Changes the first letter of a symbol's name in the model's table of names, so that it becomes the name of the
   stub. */
static void opdi_aoti_rename(const opdi_aoti_elf *elf, size_t at) {
    elf->names[elf->symbols[at].st_name] = '.';
    if (elf->versions) { elf->versions[at] = 1; }
}
/* Makes stubs for all functions that the library imports, unless another library provides them.  If `unchecked` is
   false, getenv is replaced, too.  Returns 0, or -1 and sets an error. */
static int opdi_aoti_elf_bind(opdi_aoti_elf *elf, opdi_aoti_library *library, bool unchecked) {
    char missing[700] = "", as[300];
    int more = 0;
    for (size_t i = 1; i < elf->nsymbols && opd_ok(); i++) {
        const Elf64_Sym *symbol = &elf->symbols[i];
        const char *name = elf->names + symbol->st_name;
        const bool environment = !unchecked && strcmp(name, "getenv") == 0;
        if (symbol->st_shndx != SHN_UNDEF || !*name || strlen(name) >= sizeof as) { continue; }
        if (elf->versions && (elf->versions[i] & 0x7fff) > 1 && !environment) { continue; }
        snprintf(as, sizeof as, ".%s", name + 1);
        int there = 0;
        if (environment) {
            opdi_aoti_name(library, as);
            opdi_aoti_code_jump(&library->code, (opdi_aoti_fn)opdi_aoti_getenv, NULL);
            there = 1;
        } else { there = opdi_aoti_stub(elf->model, library, name, as); }
        if (there > 0) { opdi_aoti_rename(elf, i); }
        const bool torch = strncmp(name, "aoti_", 5) == 0 || strncmp(name, "torch_", 6) == 0 ||
            strncmp(name, "Sleef_", 6) == 0 || strstr(name, "3c10") || strstr(name, "2at");
        if (there == 0 && torch && ELF64_ST_BIND(symbol->st_info) != STB_WEAK) {
            if (strlen(missing) + strlen(name) + 3 < sizeof missing) {
                snprintf(missing + strlen(missing), sizeof missing - strlen(missing), "%s%s", *missing ? ", " : "",
                         name);
            } else { more++; }
        }
    }
    if (*missing && opd_ok()) {
        char text[900];
        snprintf(text, sizeof text, "the model needs %s%s, which %s missing", missing, more ? " and others" : "",
                 strchr(missing, ',') ? "are" : "is");
        (void)opdi_aoti_bad(elf->model, text);
    }
    return opd_ok() ? 0 : -1;
}
/* Returns true if this processor has the instruction set `isa`, such as "AVX2".  If that cannot be found out, returns
   true if the instruction set belongs to this architecture. */
static bool opdi_aoti_cpu_has(const char *isa) {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__TINYC__)
    __builtin_cpu_init();
    if (strcmp(isa, "AVX512") == 0) {
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    }
    if (strcmp(isa, "AVX512_VNNI") == 0) { return __builtin_cpu_supports("avx512vnni") != 0; }
    if (strcmp(isa, "AVX2") == 0) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
    return strncmp(isa, "NEON", 4) != 0 && strncmp(isa, "SVE", 3) != 0 && strcmp(isa, "ZVECTOR") != 0 &&
        strcmp(isa, "VSX") != 0;
#else
    const bool arm = strncmp(isa, "NEON", 4) == 0 || strncmp(isa, "SVE", 3) == 0, avx = strncmp(isa, "AVX", 3) == 0;
    return !(OPDI_AOTI_MACHINE == EM_X86_64 ? arm : avx) && strcmp(isa, "ZVECTOR") != 0 && strcmp(isa, "VSX") != 0;
#endif
}
OPDI_INTERNAL int opdi_aoti_check_isa(const opd_aoti *model, const char *isas) {
    char text[200], isa[40];
    while (isas && *isas) {
        const size_t length = strcspn(isas, " ");
        snprintf(isa, sizeof isa, "%.*s", (int)(length < 39 ? length : 39), isas);
        if (*isa && !opdi_aoti_cpu_has(isa)) {
            snprintf(text, sizeof text, "the model was compiled for %s, which this processor does not have", isa);
            return opdi_aoti_bad(model, text);
        }
        isas += length + (isas[length] == ' ');
    }
    return 0;
}
/* Loads a model's library from the bytes of its file, which are changed: checks it, makes the library of stubs, and
   loads both.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_aoti_load_library(opd_aoti *model, unsigned char *data, size_t size) {
    static uint32_t libraries;
    opdi_aoti_elf elf;
    opdi_aoti_library library;
    opdi_aoti_bytes file;
    char name[16];
    int rc;
    memset(&elf, 0, sizeof elf);
    memset(&library, 0, sizeof library);
    memset(&file, 0, sizeof file);
    elf.model = model;
    elf.data = data;
    elf.size = size;
    if (opdi_aoti_elf_head(&elf) || opdi_aoti_elf_tables(&elf) || opdi_aoti_elf_check(&elf)) { return -1; }
    snprintf(name, sizeof name, "opd%05x.so", OPDI_AOTI_NEXT(libraries) & 0xfffff);
    opdi_aoti_name(&library, "");                             /* symbol 0 is the undefined symbol */
    memset(library.symbols.data, 0, library.symbols.length);
    opdi_aoti_code_common(&library.code);
    rc = opdi_aoti_elf_bind(&elf, &library, model->unchecked) || opdi_aoti_elf_redirect(&elf, name) ? -1 : 0;
    for (size_t i = 1; i < elf.nsymbols && rc == 0; i++) {
        if (strstr(elf.names + elf.symbols[i].st_name, "leef_") && strstr(elf.names + elf.symbols[i].st_name, "f16")) {
            rc = opdi_aoti_check_isa(model, "AVX512");
        }
    }
    if (rc == 0) {
        opdi_aoti_link(&library, name, &file);
        rc = opd_ok() && opdi_aoti_image_load(model, &model->stubs, file.data, file.length) == 0 &&
            opdi_aoti_image_load(model, &model->image, data, size) == 0 ? 0 : -1;
    }
    free(library.code.data);
    free(library.names.data);
    free(library.symbols.data);
    free(file.data);
    return rc;
}

