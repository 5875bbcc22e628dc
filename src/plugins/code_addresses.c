#include "plugins.h"

//== addresses of code as text =========================================================================================
//
//  The name of a function comes from the symbol table of the file that the code was loaded from.  File and line come
//  from addr2line, if this program and debug information exist.  If the name or the line is unknown, the text contains
//  the address as an offset in the file.

typedef struct opdi_place_name { void *address; const char *file; uintptr_t offset; opdi_string text; } opdi_place_name;

/* Returns true if `function` is the name of a function of this library. */
static bool opdi_is_own_function(const char *function) {
    return strncmp(function, "opd_", 4) == 0 || strncmp(function, "opdi_", 5) == 0;
}

#if !defined(OPDI_SPAWNS)
static bool opdi_address_file(void *address, const char **file, uintptr_t *offset) {
    (void)address;
    (void)file;
    (void)offset;
    return false;
}
static bool opdi_symbol_at(const char *file, uintptr_t offset, char *buf, size_t cap) {
    (void)file;
    (void)offset;
    (void)buf;
    (void)cap;
    return false;
}
static void opdi_addresses_lines(opdi_place_name *place, int count) {
    (void)place;
    (void)count;
}
#else
/* The struct that dladdr fills in.  Strict C does not declare dladdr, so it is looked up by name. */
typedef struct opdi_address_info {
    const char *file;
    void *base;
    const char *symbol;
    void *symbol_at;
} opdi_address_info;

/* Sets *file to the file that the code at `address` was loaded from, and *offset to the address as the file's symbol
   table counts it.  Returns false if they are unknown. */
static bool opdi_address_file(void *address, const char **file, uintptr_t *offset) {
    void *self = dlopen(NULL, RTLD_NOW), *f = self ? dlsym(self, "dladdr") : NULL;
    int (*ask)(const void *, opdi_address_info *);
    opdi_address_info info;
    uintptr_t first = 0;
    memcpy(&ask, &f, sizeof ask);
    memset(&info, 0, sizeof info);
    int i = f ? ask(address, &info) : 0;
    if (self) { (void)dlclose(self); }
    if (!i || !info.file || !info.base) { return false; }
    const opdi_elf *elf = (const opdi_elf *)info.base;
    const opdi_elf_segment *segment = (const opdi_elf_segment *)(const void *)((const char *)info.base + elf->e_phoff);
    for (i = 0; i < elf->e_phnum && segment[i].p_type != PT_LOAD; i++) { }
    if (i < elf->e_phnum) { first = (uintptr_t)segment[i].p_vaddr & ~(uintptr_t)4095; }
    *file = access(info.file, R_OK) == 0 ? info.file : "/proc/self/exe";
    *offset = (uintptr_t)address - (uintptr_t)info.base + first;
    return true;
}

static bool opdi_read_at(FILE *file, uint64_t at, void *to, size_t size) {
    return fseek(file, (long)at, SEEK_SET) == 0 && fread(to, 1, size, file) == size;
}
/* Reads the name of the function at `offset` from the symbol table of `file`.  Returns false if it is unknown. */
static bool opdi_symbol_at(const char *file, uintptr_t offset, char *buf, size_t cap) {
    FILE *stream = fopen(file, "rb");
    opdi_elf elf;
    opdi_elf_section table, names;
    opdi_elf_symbol symbols[64];
    bool found = false;
    if (!stream) { return false; }
    memset(&table, 0, sizeof table);
    if (opdi_read_at(stream, 0, &elf, sizeof elf)) {
        for (int i = 0; i < elf.e_shnum && table.sh_type != SHT_SYMTAB; i++) {
            opdi_elf_section section;
            if (!opdi_read_at(stream, elf.e_shoff + (uint64_t)i * elf.e_shentsize, &section, sizeof section)) { break; }
            if (section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM) { table = section; }
        }
    }
    if (table.sh_type &&
        opdi_read_at(stream, elf.e_shoff + (uint64_t)table.sh_link * elf.e_shentsize, &names, sizeof names)) {
        uint64_t end = table.sh_offset + table.sh_size;
        for (uint64_t at = table.sh_offset; at < end && !found; at += sizeof symbols) {
            size_t bytes = (size_t)OPDI_MIN(end - at, (uint64_t)sizeof symbols);
            if (!opdi_read_at(stream, at, symbols, bytes)) { break; }
            for (int k = 0; k < (int)(bytes / sizeof symbols[0]) && !found; k++) {
                if ((symbols[k].st_info & 15) != STT_FUNC || offset < symbols[k].st_value ||
                    offset >= symbols[k].st_value + symbols[k].st_size) { continue; }
                memset(buf, 0, cap);
                found = fseek(stream, (long)(names.sh_offset + symbols[k].st_name), SEEK_SET) == 0 &&
                    fread(buf, 1, cap - 1, stream) > 0;
            }
        }
    }
    (void)fclose(stream);
    return found;
}

/* Runs addr2line on those of the `count` addresses that are in `file`, and reads its output into `said`.  Returns
   false if addr2line cannot be run, also because programs from files are forbidden. */
static bool opdi_addr2line(const char *file, const opdi_place_name *place, int count, opdi_string *said) {
    posix_spawn_file_actions_t actions;
    char program[] = "addr2line", options[] = "-afie", (*hex)[24];
    char **argv = (char **)opdi_alloc((size_t)(count + 4) * sizeof *argv + (size_t)count * sizeof *hex), part[1024];
    int argc = 0, ends[2];
    ssize_t got;
    pid_t pid;
    if (opd_code_forbidden(NULL) || !argv || pipe(ends)) {
        if (argv) { opdi_free(argv, (size_t)(count + 4) * sizeof *argv + (size_t)count * sizeof *hex); }
        return false;
    }
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    hex = (char (*)[24])(void *)(argv + count + 4);
    argv[argc++] = program;
    argv[argc++] = options;
    argv[argc++] = (char *)(uintptr_t)file;
    for (int i = 0; i < count; i++) {
        if (!place[i].file || strcmp(place[i].file, file) != 0) { continue; }
        snprintf(hex[i], sizeof hex[i], "0x%llx", (unsigned long long)place[i].offset);
        argv[argc++] = hex[i];
    }
    argv[argc] = NULL;
    int rc = posix_spawn_file_actions_init(&actions);
    if (!rc) {
        rc = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        if (!rc) { rc = posix_spawn_file_actions_adddup2(&actions, ends[1], 1); }
        if (!rc) { rc = posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0); }
        if (!rc) { rc = posix_spawn_file_actions_addclose(&actions, ends[0]); }
        if (!rc) { rc = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ); }
        (void)posix_spawn_file_actions_destroy(&actions);
    }
    (void)close(ends[1]);
    while (!rc && (got = read(ends[0], part, sizeof part)) > 0) { opdi_string_add_n(said, part, (size_t)got); }
    (void)close(ends[0]);
    if (!rc) { (void)opdi_wait(pid); }
    opdi_free(argv, (size_t)(count + 4) * sizeof *argv + (size_t)count * sizeof *hex);
    return !rc && !said->failed && said->length > 0;
}

static char *opdi_line_end(char *text) {
    char *end = strchr(text, '\n');
    if (!end) { return text + strlen(text); }
    *end = 0;
    return end + 1;
}
/* Fills in the texts of those of the `count` addresses that addr2line knows.  For each address, addr2line writes
   "0x..." and then pairs of lines (function, place), the innermost inlined function first. */
static void opdi_addresses_lines(opdi_place_name *place, int count) {
    int k;
    for (int i = 0; i < count; i++) {
        opdi_string said = {NULL, 0, 0, false};
        for (k = 0; k < i && !(place[i].file && place[k].file && strcmp(place[k].file, place[i].file) == 0); k++) { }
        if (!place[i].file || k < i || !opdi_addr2line(place[i].file, place, count, &said)) {
            opdi_string_free(&said);
            continue;
        }
        char *at = said.data;
        for (k = i; k < count && *at; k++) {
            opdi_string text = {NULL, 0, 0, false}, outer = text;
            bool known = false;
            if (!place[k].file || strcmp(place[k].file, place[i].file) != 0) { continue; }
            at = opdi_line_end(at);               /* skip the address */
            while (*at && strncmp(at, "0x", 2) != 0) {
                char *function = at, *file = opdi_line_end(at), line[640];
                at = opdi_line_end(file);
                char *space = strchr(file, ' ');  /* cut off " (discriminator 2)" */
                if (space) { *space = 0; }
                char *colon = strrchr(file, ':');
                if (strcmp(function, "??") == 0 || !colon || colon[1] == '?' || colon[1] == '0') { continue; }
                known = true;
                *colon = 0;
                if (opdi_is_own_function(function)) { continue; }
                snprintf(line, sizeof line, "  File \"%.400s\", line %.10s, in %.200s\n", file, colon + 1, function);
                opdi_string_add(&outer, line);
                if (text.data) { opdi_string_add(&outer, text.data); }
                opdi_string_free(&text);
                text = outer;                     /* put each outer function before the inner ones */
                memset(&outer, 0, sizeof outer);
            }
            if (known && !text.failed) {
                opdi_string_add(&text, "");
                place[k].text = text;
            }
            else { opdi_string_free(&text); }
        }
        opdi_string_free(&said);
    }
}
#endif

/* Writes the name of a function, or "<unknown>", to buf.  Returns buf. */
OPDI_INTERNAL const char *opdi_function_name(opdi_any_fn fn, char *buf, size_t cap) {
    const char *file = NULL;
    uintptr_t offset = 0;
    void *address;
    memcpy(&address, &fn, sizeof address);
    if (!opdi_address_file(address, &file, &offset) || !opdi_symbol_at(file, offset, buf, cap)) {
        snprintf(buf, cap, "<unknown>");
    }
    return buf;
}

/* Writes a stack trace to `out`, with a line for each of the `count` frames, the innermost last as in Python.  Leaves
   out frames of this library. */
OPDI_INTERNAL void opdi_trace_text(opdi_string *out, void *const *frames, int count) {
    const size_t bytes = (size_t)OPDI_MAX(count, 1) * sizeof(opdi_place_name);
    opdi_place_name *place = (opdi_place_name *)opdi_alloc(bytes);
    int i;
    if (!place) { return; }
    memset(place, 0, bytes);
    for (i = 0; i < count; i++) {                 /* a call is just before its return address */
        place[i].address = (char *)frames[i] - 1;
        (void)opdi_address_file(place[i].address, &place[i].file, &place[i].offset);
    }
    opdi_addresses_lines(place, count);
    for (i = 0; i < count && !(place[i].text.data && strstr(place[i].text.data, ", in main\n")); i++) { }
    while (count > i + 1) { opdi_string_free(&place[--count].text); }  /* drop the callers of main */
    for (i = count - 1; i >= 0; i--) {
        char function[200], line[700];
        if (place[i].text.data) {
            opdi_string_add(out, place[i].text.data);
            opdi_string_free(&place[i].text);
            continue;
        }
        if (!place[i].file) { snprintf(line, sizeof line, "  %p\n", place[i].address); }
        else if (!opdi_symbol_at(place[i].file, place[i].offset, function, sizeof function)) {
            snprintf(line, sizeof line, "  File \"%.400s\", at 0x%llx\n", place[i].file,
                     (unsigned long long)place[i].offset);
        } else if (opdi_is_own_function(function)) { continue; }
        else { snprintf(line, sizeof line, "  File \"%.400s\", in %s\n", place[i].file, function); }
        opdi_string_add(out, line);
    }
    opdi_free(place, bytes);
}

/* Writes "FILE:LINE" to places[] for each of the `total` calls that return to these addresses: "" for a call in this
   library, and "?" for an unknown place. */
OPDI_INTERNAL void opdi_places(void *const *addresses, int total, char (*places)[OPDI_PLACE]) {
    enum { AT_ONCE = 500 };                       /* addresses in one command, since the length of a command line is
                                                     limited */
    opdi_place_name list[AT_ONCE];
    for (int first = 0; first < total; first += AT_ONCE) {
        const int count = OPDI_MIN(total - first, (int)AT_ONCE);
        memset(list, 0, sizeof list);
        for (int i = 0; i < count; i++) {
            list[i].address = (char *)addresses[first + i] - 1;
            (void)opdi_address_file(list[i].address, &list[i].file, &list[i].offset);
        }
        opdi_addresses_lines(list, count);
        for (int i = 0; i < count; i++) {
            char *place = places[first + i], function[200], *line = NULL;
            (void)snprintf(place, OPDI_PLACE, "?");
            if (!list[i].text.data) {
                if (list[i].file && opdi_symbol_at(list[i].file, list[i].offset, function, sizeof function) &&
                    opdi_is_own_function(function)) { *place = 0; }
                continue;
            }
            for (char *at = list[i].text.data; (at = strstr(at, "  File \"")) != NULL; at++) { line = at + 8; }
            int k = line ? (int)strcspn(line, "\"") : 0;
            if (line) { (void)snprintf(place, OPDI_PLACE, "%.*s:%d", OPDI_MIN(k, 240), line, atoi(line + k + 8)); }
            else { *place = 0; }
            opdi_string_free(&list[i].text);
        }
    }
}
