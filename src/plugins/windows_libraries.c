#include "plugins.h"

//== loading DLLs on Windows ===========================================================================================
//
//  Before the system loads a DLL, the file's headers are read, in order to report errors that the system does not
//  report clearly.

#if defined(OPDI_DLLS)
enum { OPDI_PE_HEADERS = 4096, OPDI_PE_SECTION = 40 };      /* bytes read of a file; bytes of a section's header */
#if defined(__x86_64__) || defined(_M_X64)
enum { OPDI_PE_MACHINE = 0x8664 };
#elif defined(__aarch64__) || defined(_M_ARM64)
enum { OPDI_PE_MACHINE = 0xaa64 };
#elif defined(__arm__) || defined(_M_ARM)
enum { OPDI_PE_MACHINE = 0x1c4 };
#else
enum { OPDI_PE_MACHINE = 0x14c };
#endif

static const char *opdi_pe_machine_name(unsigned machine) {
    return machine == 0x8664 ? "x86-64" : machine == 0xaa64 ? "aarch64" : machine == 0x14c ? "i386"
        : machine == 0x1c4 || machine == 0x1c0 ? "arm" : "another machine";
}
static unsigned opdi_pe_16(const unsigned char *at) { return (unsigned)at[0] | (unsigned)at[1] << 8; }
static uint64_t opdi_pe_32(const unsigned char *at) {
    return (uint64_t)opdi_pe_16(at) | (uint64_t)opdi_pe_16(at + 2) << 16;
}
/* Returns the offset of the PE header in the first `count` bytes of a file, or 0 if there is none. */
static size_t opdi_pe_header(const unsigned char *head, size_t count) {
    const uint64_t at = count >= 64 && head[0] == 'M' && head[1] == 'Z' ? opdi_pe_32(head + 60) : 0;
    return at && at + 84 <= count && memcmp(head + at, "PE\0\0", 4) == 0 ? (size_t)at : 0;
}
/* Checks the headers of a library's file.  Returns 0.  If the file is missing, is no DLL, is for another machine, or is
   cut off, returns -1 and sets an error. */
static int opdi_pe_check(const char *path) {
    unsigned char head[OPDI_PE_HEADERS];
    FILE *const file = opdi_file_open(path, "rb");
    if (!file) {
        return opd_fail(opdi_errno_code(OPD_ERROR_NOT_FOUND), "opd_plugin_load: cannot open '%s': %s", path,
                        opdi_errno_text());
    }
    const size_t count = fread(head, 1, sizeof head, file), pe = opdi_pe_header(head, count);
    const long long bytes = _filelengthi64(_fileno(file));
    (void)fclose(file);
    if (!pe || !(opdi_pe_16(head + pe + 22) & 0x2000)) {                   /* 0x2000: a DLL */
        return opd_fail(OPD_ERROR_REGISTER, "opd_plugin_load: '%s' is not a shared library (build one with cc -shared "
                        "-DOPDISPATCH_PLUGIN)", path);
    }
    if (opdi_pe_16(head + pe + 4) != OPDI_PE_MACHINE) {
        return opd_fail(OPD_ERROR_REGISTER, "opd_plugin_load: '%s' is for %s, this program for %s", path,
                        opdi_pe_machine_name(opdi_pe_16(head + pe + 4)), opdi_pe_machine_name(OPDI_PE_MACHINE));
    }
    const size_t sections = pe + 24 + opdi_pe_16(head + pe + 20);
    for (size_t i = 0; i < opdi_pe_16(head + pe + 6); i++) {
        const unsigned char *const section = head + sections + i * OPDI_PE_SECTION;
        if (count == sizeof head && sections + (i + 1) * OPDI_PE_SECTION > count) { break; }    /* not read */
        if (sections + (i + 1) * OPDI_PE_SECTION > count ||
            opdi_pe_32(section + 16) + opdi_pe_32(section + 20) > (uint64_t)bytes) {
            return opd_fail(OPD_ERROR_REGISTER, "opd_plugin_load: '%s' is incomplete", path);
        }
    }
    return 0;
}

/* Sets an error with the system's message for the error number `code`.  Returns NULL. */
static void *opdi_windows_refuses(const char *path, unsigned long code) {
    enum { NOT_FOUND = 126, NO_SUCH_FUNCTION = 127 };
    wchar_t wide[300];
    char text[900];
    unsigned long length = FormatMessageW(OPDI_WIN_SYSTEM_TEXT, NULL, code, 0, wide, 300, NULL);
    while (length && (wide[length - 1] <= ' ' || wide[length - 1] == '.')) { length--; }
    text[WideCharToMultiByte(OPDI_WIN_UTF8, 0, wide, (int)length, text, sizeof text - 1, NULL, NULL)] = 0;
    (void)opd_fail(code == 8 || code == 14 ? OPD_ERROR_MEMORY : OPD_ERROR_REGISTER,
                   "opd_plugin_load: Windows cannot load '%s': %s (error %lu%s)", path, text, code,
                   code == NOT_FOUND ? "; a DLL that it needs was not found"
                   : code == NO_SUCH_FUNCTION ? "; a DLL that it needs lacks a function" : "");
    return NULL;
}
/* Loads the library at `path`.  Its own folder is searched for the libraries that it needs.  Windows shows no dialog if
   that fails.  On failure, returns NULL and sets an error. */
OPDI_INTERNAL void *opdi_dlopen(const char *path) {
    wchar_t wide[OPDI_WIDE_PATH], whole[OPDI_WIDE_PATH + 1];
    if (opd_code_forbidden("opd_plugin_load") || opdi_pe_check(path) || !opdi_wide_path(path, wide)) { return NULL; }
    const unsigned long length = GetFullPathNameW(wide, OPDI_WIDE_PATH, whole, NULL);
    if (length == 0 || length >= OPDI_WIDE_PATH) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_plugin_load: the path '%s' is too long", path);
        return NULL;
    }
    const wchar_t *const folder = wcsrchr(whole, L'\\');
    if (!wcschr(folder ? folder : whole, L'.')) {  /* Windows would add ".dll" to the name */
        whole[length] = L'.';
        whole[length + 1] = 0;
    }
    unsigned long was = 0;
    (void)SetThreadErrorMode(OPDI_WIN_NO_DIALOGS, &was);
    void *const handle = LoadLibraryExW(whole, NULL, OPDI_WIN_SEARCH_ITS_FOLDER);
    const unsigned long code = handle ? 0 : GetLastError();
    (void)SetThreadErrorMode(was, NULL);
    return handle ? handle : opdi_windows_refuses(path, code);
}
/* Sets the range of addresses at which a library is mapped; its handle is the first of these addresses.  Returns 0. */
OPDI_INTERNAL int opdi_plugin_range(opd_plugin *plugin) {
    const unsigned char *const head = (const unsigned char *)plugin->handle;
    plugin->begin = (uintptr_t)plugin->handle;
    plugin->end = plugin->begin + (uintptr_t)opdi_pe_32(head + opdi_pe_32(head + 60) + 80);     /* SizeOfImage */
    return 0;
}
#endif
