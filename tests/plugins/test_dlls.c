/* Plug-ins as DLLs, under Windows or wine: loading, code that must stay loaded, and files that are refused.
   windows.sh builds the DLLs, most of them from tests/linkage/ops.c, in the folder that OPD_DLLS names. */
#include "../check.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

/* The blocks of a file run in the order in which they are written, in a program and in a plug-in. */
static char ran[8];
static void runs(const char *which) { (void)snprintf(ran + strlen(ran), sizeof ran - strlen(ran), "%s", which); }
OPD_LIBRARY(block_order, lib) {
    runs("1");
    opd_def(lib, "first() -> int");
}
OPD_LIBRARY_FRAGMENT(block_order, lib) {
    runs("2");
    opd_def(lib, "second() -> int");
}
OPD_LIBRARY_FRAGMENT(block_order, lib) {
    runs("3");
    opd_def(lib, "third() -> int");
}
TEST(blocks_run_in_the_order_of_the_file) {
    CHECK(opd_find("block_order::first") && opd_find("block_order::third"));
    CHECK_STR(ran, "123");
}

#if defined(_WIN32)
extern void *__stdcall GetModuleHandleA(const char *name);
extern int __stdcall MultiByteToWideChar(unsigned page, unsigned long flags, const char *text, int length, wchar_t *wide,
                                         int cap);
extern int __stdcall SetThreadErrorMode(unsigned long mode, unsigned long *was);
extern unsigned long __stdcall GetThreadErrorMode(void);
static bool mapped(const char *name) { return GetModuleHandleA(name) != NULL; }

static void hush(void *user, int is_error, const char *text) { (void)user; (void)is_error; (void)text; }
static const char *dll(const char *name) {
    static char path[2][600];
    static int k;
    k = !k;
    (void)snprintf(path[k], sizeof path[k], "%s/%s", getenv("OPD_DLLS"), name);
    return path[k];
}
static opd_tensor *leaf(void) {
    static const float data[] = {1, 2, 3};
    return opd_tensor_set_requires_grad(opd_tensor_from(data, OPD_INTS(3), OPD_FLOAT32), true);
}
/* Copies a DLL without its last `cut` bytes, and with another byte at `at`, if that is not 0. */
static const char *changed(const char *name, long cut, long at, int byte) {
    const char *const from = dll(name), *const to = dll("changed.dll");
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    long length = 0, i;
    CHECK(in && out && fseek(in, 0, SEEK_END) == 0);
    if (in && out) { length = ftell(in) - cut; rewind(in); }
    for (i = 0; i < length; i++) {
        const int old = fgetc(in);
        (void)fputc(at && i == at ? byte : old, out);
    }
    if (in) { (void)fclose(in); }
    if (out) { (void)fclose(out); }
    return to;
}
/* Where the PE header of a DLL begins. */
static long pe_of(const char *name) {
    FILE *in = fopen(dll(name), "rb");
    unsigned char at[4] = {0};
    CHECK(in && fseek(in, 60, SEEK_SET) == 0 && fread(at, 1, 4, in) == 4);
    if (in) { (void)fclose(in); }
    return at[0] | at[1] << 8 | at[2] << 16;
}

TEST(load_call_unload) {
    opd_plugin *const p = opd_plugin_load(dll("ops.dll"));
    CHECK_OK();
    CHECK(p && opd_plugin_next(NULL) == p && mapped("ops.dll"));
    CHECK(opd_plugin_load(dll("ops.dll")) == p);
    OPD_SCOPE {
        opd_tensor *const x = leaf(), *const y = OPD_CALL(opd_find("linkage::square_plus"), x);
        CHECK_INT(opd_backward(opd_sum(y)), 0);
        CHECK_NEAR(opd_item_f64(opd_select(y, 0, 2)), 10, 1e-6);
        CHECK_NEAR(opd_item_f64(opd_select(opd_tensor_grad(x), 0, 2)), 6, 1e-6);
    }
    CHECK_INT(opd_plugin_unload(p), 0);
    CHECK(!opd_find_quiet("linkage::square_plus") && !opd_plugin_next(NULL) && !mapped("ops.dll"));
    CHECK_INT(opd_plugin_unload(p), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "is not loaded");
    CHECK_INT(opd_check_invariants(), 0);
}
TEST(a_node_of_the_tape_keeps_code) {
    opd_plugin *const p = opd_plugin_load(dll("ops.dll"));
    opd_scope scope = opd_scope_open();
    opd_tensor *const x = leaf(), *const y = opd_keep(OPD_CALL(opd_find("linkage::square_plus"), x));
    CHECK_INT(opd_plugin_unload(p), 0);
    CHECK(!opd_find_quiet("linkage::square_plus") && mapped("ops.dll"));
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK_NEAR(opd_item_f64(opd_select(opd_tensor_grad(x), 0, 1)), 4, 1e-6);
    opd_scope_close(&scope);
    CHECK(mapped("ops.dll"));
    opd_release(y);
    CHECK(!mapped("ops.dll"));
}
TEST(load_while_still_mapped) {
    opd_plugin *p = opd_plugin_load(dll("ops.dll"));
    opd_scope scope = opd_scope_open();
    opd_tensor *const y = opd_keep(OPD_CALL(opd_find("linkage::square_plus"), leaf()));
    CHECK_INT(opd_plugin_unload(p), 0);
    p = opd_plugin_load(dll("ops.dll"));
    CHECK(OPD_CALL(opd_find("linkage::square_plus"), leaf()) != NULL);
    opd_scope_close(&scope);
    opd_release(y);
    CHECK_INT(opd_plugin_unload(p), 0);
    CHECK(!mapped("ops.dll"));
}
/* A plug-in of two files has one table and one list of blocks.  Its path has blanks and letters outside ASCII. */
TEST(a_path_with_any_letters) {
    opd_plugin *const p = opd_plugin_load(dll("gr\xc3\xb6\xc3\x9f" "e \xe6\x97\xa5/two files.dll"));
    CHECK_OK();
    char text[4000] = "";
    (void)opd_dump(opd_find("linkage::square_plus"), text, sizeof text);
    CHECK(strstr(text, "CUDA") != NULL);
    CHECK_INT(opd_plugin_unload(p), 0);
    CHECK(!mapped("two files.dll"));
    CHECK(!opd_plugin_load(dll("gr\xf6\xdf" "e.dll")));
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "the path is not valid UTF-8");
}
/* If two blocks register a kernel for one key, the kernel of the later block is called. */
TEST(blocks_of_a_plugin_run_in_the_order_of_the_file) {
    opd_log_set(hush, NULL);
    opd_plugin *const p = opd_plugin_load(dll("order.dll"));
    opd_log_set(NULL, NULL);
    CHECK_OK();
    CHECK_INT(opd_call_value(opd_find("order::which"), NULL, 0).u.i, 3);
    CHECK_INT(opd_plugin_unload(p), 0);
}
/* Windows adds .dll to a name without a dot; but the file of the given name is loaded, not the one with .dll. */
TEST(a_name_without_an_ending) {
    opd_plugin *const p = opd_plugin_load(dll("order"));
    CHECK_OK();
    CHECK(opd_find_quiet("linkage::square_plus") && !opd_find_quiet("order::which"));
    CHECK_INT(opd_plugin_unload(p), 0);
}
TEST(a_dll_of_many_sections) {
    opd_plugin *const p = opd_plugin_load(dll("sections.dll"));
    CHECK_OK();
    CHECK_INT(opd_plugin_unload(p), 0);
}
/* While a plug-in is loaded, Windows shows no dialog about errors.  The block of errors.c returns the setting. */
TEST(no_dialogs) {
    unsigned long was = 4;
    CHECK(SetThreadErrorMode(0, &was));
    opd_plugin *const p = opd_plugin_load(dll("errors.dll"));
    CHECK_OK();
    CHECK_INT(opd_call_value(opd_find("errors::mode"), NULL, 0).u.i, 1);
    CHECK_INT(opd_plugin_unload(p), 0);
    CHECK(!opd_plugin_load(dll("needs.dll")));
    opd_error_clear();
    CHECK_INT(GetThreadErrorMode(), 0);
    (void)SetThreadErrorMode(was, NULL);
}
/* A name without a folder is a file of the current folder: no folders are searched. */
TEST(a_name_alone_is_not_searched) {
    CHECK(!opd_plugin_load("kernel32.dll"));
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "cannot open 'kernel32.dll'");
}
TEST(a_missing_file) {
    CHECK(!opd_plugin_load(dll("nowhere.dll")));
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "nowhere.dll': No such file or directory");
    CHECK(!opd_plugin_load(dll("")));
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "': Is a directory");
    CHECK(!opd_plugin_load(NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the path is NULL");
}
TEST(a_file_that_is_no_dll) {
    CHECK(!opd_plugin_load(dll("text.dll")));
    CHECK_ERROR(OPD_ERROR_REGISTER, "is not a shared library");
    CHECK(!opd_plugin_load(changed("ops.dll", 0, pe_of("ops.dll") + 23, 0)));       /* without the mark of a DLL */
    CHECK_ERROR(OPD_ERROR_REGISTER, "is not a shared library");
}
TEST(a_dll_that_is_no_plugin) {
    CHECK(!opd_plugin_load(dll("plain.dll")));
    CHECK_ERROR(OPD_ERROR_REGISTER, "registers nothing");
    CHECK(!mapped("plain.dll"));
}
TEST(a_dll_for_another_machine) {
    CHECK(!opd_plugin_load(changed("ops.dll", 0, pe_of("ops.dll") + 5, 0xaa)));
    CHECK_ERROR(OPD_ERROR_REGISTER, "is for aarch64, this program for x86-64");
}
TEST(a_damaged_dll) {
    CHECK(!opd_plugin_load(changed("plain.dll", 80000, 0, 0)));
    CHECK_ERROR(OPD_ERROR_REGISTER, "is incomplete");
    CHECK(!opd_plugin_load(changed("ops.dll", 0, pe_of("ops.dll") + 24, 0)));       /* the optional header's magic */
    CHECK_ERROR(OPD_ERROR_REGISTER, "Windows cannot load");
    CHECK(!opd_plugin_next(NULL) && !mapped("changed.dll"));
}
TEST(a_dll_that_needs_a_missing_one) {
    CHECK(!opd_plugin_load(dll("needs.dll")));
    CHECK_ERROR(OPD_ERROR_REGISTER, "a DLL that it needs was not found");
}
TEST(a_dll_with_its_own_implementation) {
    CHECK(!opd_plugin_load(dll("own.dll")));
    CHECK_ERROR(OPD_ERROR_REGISTER, "contains its own implementation of opdispatch");
    CHECK(!mapped("own.dll"));
}

//-- compiling at run time ---------------------------------------------------------------------------------------------

static int commands;
static void count_commands(void *user, int is_error, const char *text) {
    (void)user;
    commands += is_error < 0 && strstr(text, " -o ") != NULL;
}
#define ANSWER(ns, value) \
    "#include \"opdispatch.h\"\nstatic int k(opd_call *call) { return opd_return_int(call, " value "); }\n" \
    "OPD_LIBRARY(" ns ", lib) { opd_def(lib, \"answer() -> int\"); opd_impl(lib, \"answer\", k); }\n"
/* Calls the operator of a library that was compiled, and unloads the library. */
static int64_t answer(opd_plugin *plugin, const char *name) {
    int64_t result = -1;
    CHECK_OK();
    if (plugin) {
        result = opd_call_value(opd_find(name), NULL, 0).u.i;
        CHECK_INT(opd_plugin_unload(plugin), 0);
    }
    CHECK_OK();
    return result;
}
/* Sets a variable of the environment for a case.  If `value` is NULL, sets it back. */
static void with(const wchar_t *name, const wchar_t *value) {
    static wchar_t old[1000];
    if (value) { (void)_snwprintf(old, 999, L"%ls", _wgetenv(name)); }
    (void)_wputenv_s(name, value ? value : old);
}
static void write_text(const char *path, const char *text) {
    wchar_t wide[700];
    FILE *const file = MultiByteToWideChar(65001, 0, path, -1, wide, 700) > 0 ? _wfopen(wide, L"wb") : NULL;
    CHECK_OR_RETURN(file != NULL);
    (void)fputs(text, file);
    (void)fclose(file);
}

TEST(a_text_is_compiled_once) {
    static const char *const flags[] = {NULL, NULL, "-DOTHER", NULL};
    int i;
    if (!check_cache_begin()) { SKIP("no compiler"); }
    (void)setenv("OPD_VERBOSE", "1", 1);
    opd_log_set(count_commands, NULL);
    for (i = 0; i < 4; i++) {
        commands = 0;
        CHECK_INT(answer(opd_compile_and_load_inline("once", i < 3 ? ANSWER("once", "41") : ANSWER("once", "42"), flags[i]),
                         "once::answer"), i < 3 ? 41 : 42);
        CHECK_INT(commands, i == 1 ? 0 : 2);      /* compiles and links */
    }
    (void)unsetenv("OPD_VERBOSE");
    opd_log_set(NULL, NULL);
    CHECK(!mapped("once"));
}
/* Words reach the compiler as they are: with spaces in paths, quotes and \ in flags, letters outside ASCII. */
TEST(words_of_commands) {
    const char *files[3] = {dll("größe 日/first part.c"), dll("größe 日/second.c"), NULL};
    char paths[2][700], flag[800];
    opd_plugin *plugin;
    int i;
    if (!check_cache_begin()) { SKIP("no compiler"); }
    for (i = 0; i < 2; i++) { (void)snprintf(paths[i], sizeof paths[i], "%s", files[i]); files[i] = paths[i]; }
    write_text(dll("größe 日/words.h"), "enum { FROM_HEADER = 30 };\n");
    for (i = 0; i < 2; i++) {
        write_text(files[i], i ? "int second(void) { return 4; }\n"
                   : "#include <string.h>\n#include \"words.h\"\nint second(void);\n"
                   ANSWER("words", "FROM_HEADER + second() + 100 * strcmp(WORD, \"a\\\\b\\\"c\\\\\")"));
    }
    (void)snprintf(flag, sizeof flag, "-DWORD=\"a\\\\b\\\"c\\\\\"");
    plugin = opd_compile_and_load("words", files, flag);
    CHECK_INT(answer(plugin, "words::answer"), 34);
    /* a file that the compiler has read changes: another result */
    write_text(dll("größe 日/words.h"), "enum { FROM_HEADER = 50 };\n");
    CHECK_INT(answer(opd_compile_and_load("words", files, flag), "words::answer"), 54);
}
TEST(what_the_compiler_says) {
    static wchar_t many[2000];
    int i;
    if (!check_cache_begin()) { SKIP("no compiler"); }
    CHECK(!opd_compile_and_load_inline("wrong", "int x = nothing_here;\n", NULL));
    CHECK_ERROR(OPD_ERROR_REGISTER, "nothing_here");
    CHECK(!opd_compile_and_load_inline("wrong", "int missing(void); int f(void) { return missing(); }\n", NULL));
    CHECK_ERROR(OPD_ERROR_REGISTER, "missing");
    CHECK(!opd_compile_and_load_inline("wrong", "int f(void) { return 1; }\n", NULL));
    CHECK_ERROR(OPD_ERROR_REGISTER, "registers nothing");
    with(L"OPD_INCLUDE", L"");
    CHECK(!opd_compile_and_load_inline("wrong", ANSWER("wrong", "1"), NULL));
    CHECK_ERROR(OPD_ERROR_REGISTER, "set $OPD_INCLUDE to its folder");
    with(L"OPD_INCLUDE", NULL);
    with(L"CC", L"no-such-compiler -m64");
    CHECK(!opd_compile_and_load_inline("wrong", ANSWER("wrong", "1"), NULL));
    CHECK_ERROR(OPD_ERROR_REGISTER, "cannot run the compiler 'no-such-compiler': No such file");
    with(L"CC", NULL);
    with(L"CC", L"");
    CHECK(!opd_compile_and_load_inline("wrong", ANSWER("wrong", "1"), NULL));      /* %PATH% under wine has no gcc */
    CHECK_ERROR(OPD_ERROR_REGISTER, "cannot run the compiler 'gcc': No such file");
    with(L"CC", NULL);
    (void)setenv("CC", dll("text.dll"), 1);         /* is no program */
    CHECK(!opd_compile_and_load_inline("wrong", ANSWER("wrong", "1"), NULL));
    CHECK_ERROR(OPD_ERROR_REGISTER, "text.dll': error 193 of Windows");
    with(L"CC", NULL);
    for (i = 0; i < 1999; i++) { many[i] = L'x'; }
    with(L"CC", many);
    CHECK(!opd_compile_and_load_inline("wrong", ANSWER("wrong", "1"), NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the value of the environment variable CC has more than 1023 bytes");
    with(L"CC", NULL);
    CHECK(!opd_compile_and_load_inline("a/b", ANSWER("wrong", "1"), NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "a name must have");
}
/* Copies a file; the paths have only letters of ASCII. */
static bool copied(const char *from, const char *to) {
    static char bytes[1 << 16];
    FILE *const in = fopen(from, "rb"), *const out = fopen(to, "wb");
    size_t count;
    bool ok = in && out;
    while (ok && (count = fread(bytes, 1, sizeof bytes, in)) > 0) { ok = fwrite(bytes, 1, count, out) == count; }
    if (in) { (void)fclose(in); }
    return out && fclose(out) == 0 && ok;
}
/* The library was compiled from a relative path.  Without $OPD_INCLUDE, the header is found from the program's folder. */
TEST(header_beside_the_program) {
    char from[700], to[700];
    if (!check_cache_begin()) { SKIP("no compiler"); }
    (void)snprintf(from, sizeof from, "%s/opdispatch.h", getenv("OPD_INCLUDE"));
    (void)snprintf(to, sizeof to, "%s", dll("../opdispatch.h"));       /* the program is in the folder above the DLLs */
    CHECK(copied(from, to));
    with(L"OPD_INCLUDE", L"");
    CHECK_INT(answer(opd_compile_and_load_inline("beside", ANSWER("beside", "6"), NULL), "beside::answer"), 6);
    with(L"OPD_INCLUDE", NULL);
    CHECK(remove(to) == 0);
}
TEST(folders_for_compiled_code) {
    char deep[900], *end;
    int i;
    if (!check_cache_begin()) { SKIP("no compiler"); }
    with(L"XDG_CACHE_HOME", L"\\temp");             /* depends on the current drive: %LOCALAPPDATA% is used */
    CHECK_INT(answer(opd_compile_and_load_inline("place", ANSWER("place", "1"), NULL), "place::answer"), 1);
    (void)snprintf(deep, sizeof deep, "%s/opdispatch", getenv("LOCALAPPDATA"));
    CHECK(access(deep, 0) == 0);
    with(L"XDG_CACHE_HOME", NULL);
    with(L"XDG_CACHE_HOME", L"C:\\windows\\win.ini");
    CHECK(!opd_compile_and_load_inline("place", ANSWER("place", "2"), NULL));
    CHECK_ERROR(OPD_ERROR_REGISTER, "the cache for compiled code: cannot write");
    with(L"XDG_CACHE_HOME", NULL);
    /* longer than the 259 characters of Windows' short paths */
    (void)snprintf(deep, sizeof deep, "%s", dll(""));
    end = deep + strlen(deep);
    for (i = 0; i < 3; i++) {
        memset(end, 'a' + i, 90);
        end[90] = 0;
        CHECK(i == 2 || _mkdir(deep) == 0);
        end[90] = i < 2 ? '/' : 0;
        end += 91;
    }
    (void)setenv("XDG_CACHE_HOME", deep, 1);
    CHECK_INT(answer(opd_compile_and_load_inline("place", ANSWER("place", "3"), NULL), "place::answer"), 3);
    with(L"XDG_CACHE_HOME", NULL);
}
/* A result that is damaged is built again.  Nothing is left of compilations. */
TEST(damaged_results) {
    struct _finddata_t entry, other;
    char path[700], folder[700];
    opd_plugin *first, *second;
    intptr_t list;
    int i, count = 0;
    if (!check_cache_begin()) { SKIP("no compiler"); }
    (void)snprintf(folder, sizeof folder, "%s/opdispatch", getenv("XDG_CACHE_HOME"));
    for (i = 0; i < 3; i++) {
        FILE *file;
        first = opd_compile_and_load_inline("damage", ANSWER("damage", "7"), NULL);
        CHECK_OK();
        if (i < 2) { CHECK_INT(answer(first, "damage::answer"), 7); }
        (void)snprintf(path, sizeof path, "%s/damage-*.dll", folder);
        list = _findfirst(path, &entry);
        CHECK_OR_RETURN(list != -1);
        CHECK(_findnext(list, &other) != 0);      /* one result */
        (void)_findclose(list);
        (void)snprintf(path, sizeof path, "%s/%s", folder, entry.name);
        if (i == 2) { break; }
        CHECK_OR_RETURN((file = fopen(path, i ? "r+b" : "wb")) != NULL);
        CHECK(fseek(file, i ? -20 : 0, SEEK_END) == 0 && fputc('x', file) == 'x');
        (void)fclose(file);
    }
    CHECK(remove(path) != 0);                     /* loaded */
    second = opd_compile_and_load_inline("damage", ANSWER("damage", "7"), NULL);
    CHECK(second == first);
    CHECK_INT(answer(first, "damage::answer"), 7);
    (void)snprintf(path, sizeof path, "%s/tmp.*", folder);
    list = _findfirst(path, &entry);
    for (i = 0; list != -1 && i == 0; count++) { i = _findnext(list, &entry); }
    if (list != -1) { (void)_findclose(list); }
    CHECK_INT(count, 0);
}
static void *compile_and_call(void *out) {
    opd_plugin *const plugin = opd_compile_and_load_inline("both", ANSWER("both", "9"), NULL);
    *(int64_t *)out = plugin ? opd_call_value(opd_find("both::answer"), NULL, 0).u.i : -1;
    if (!opd_ok()) { printf("%s\n", opd_error_message()); }
    return plugin;
}
TEST(two_threads_compile_the_same) {
    pthread_t thread;
    int64_t results[2];
    void *plugins[2];
    if (!check_cache_begin()) { SKIP("no compiler"); }
    CHECK_OR_RETURN(pthread_create(&thread, NULL, compile_and_call, &results[0]) == 0);
    plugins[1] = compile_and_call(&results[1]);
    (void)pthread_join(thread, &plugins[0]);
    CHECK(results[0] == 9 && results[1] == 9);
    CHECK(plugins[0] == plugins[1]);
    CHECK_INT(opd_plugin_unload((opd_plugin *)plugins[0]), 0);
}
TEST(no_memory_compiling) {
    opd_plugin *plugin = NULL;
    int n;
    if (!check_cache_begin()) { SKIP("no compiler"); }
    for (n = 1; n < 200; n++) {
        (void)opd_memory_fail_at(n, true);
        plugin = opd_compile_and_load_inline("lack", ANSWER("lack", "5"), NULL);
        (void)opd_memory_fail_at(0, false);
        if (plugin) { break; }
        CHECK_ERROR(OPD_ERROR_MEMORY, "memory");
        CHECK(!opd_find_quiet("lack::answer"));
    }
    CHECK(n > 5 && n < 200);
    CHECK_INT(answer(plugin, "lack::answer"), 5);
}
#else
TEST(dlls) { SKIP("DLLs are for Windows"); }
#endif
CHECK_MAIN()
