/* Plug-ins as DLLs, under Windows or wine: loading, code that must stay loaded, and files that are refused.
   windows.sh builds the DLLs, most of them from tests/linkage/ops.c, in the folder that OPD_DLLS names. */
#include "../check.h"

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
    opd_plugin *const p = opd_library_load(dll("ops.dll"));
    CHECK_OK();
    CHECK(p && opd_plugin_next(NULL) == p && mapped("ops.dll"));
    CHECK(opd_library_load(dll("ops.dll")) == p);
    OPD_SCOPE {
        opd_tensor *const x = leaf(), *const y = OPD_CALL(opd_find("linkage::square_plus"), x);
        CHECK_INT(opd_backward(opd_sum(y)), 0);
        CHECK_NEAR(opd_item_f64(opd_select(y, 0, 2)), 10, 1e-6);
        CHECK_NEAR(opd_item_f64(opd_select(opd_tensor_grad(x), 0, 2)), 6, 1e-6);
    }
    CHECK_INT(opd_library_unload(p), 0);
    CHECK(!opd_find_quiet("linkage::square_plus") && !opd_plugin_next(NULL) && !mapped("ops.dll"));
    CHECK_INT(opd_library_unload(p), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "is not loaded");
    CHECK_INT(opd_check_invariants(), 0);
}
TEST(a_node_of_the_tape_keeps_code) {
    opd_plugin *const p = opd_library_load(dll("ops.dll"));
    opd_scope scope = opd_scope_open();
    opd_tensor *const x = leaf(), *const y = opd_keep(OPD_CALL(opd_find("linkage::square_plus"), x));
    CHECK_INT(opd_library_unload(p), 0);
    CHECK(!opd_find_quiet("linkage::square_plus") && mapped("ops.dll"));
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK_NEAR(opd_item_f64(opd_select(opd_tensor_grad(x), 0, 1)), 4, 1e-6);
    opd_scope_close(&scope);
    CHECK(mapped("ops.dll"));
    opd_release(y);
    CHECK(!mapped("ops.dll"));
}
TEST(load_while_still_mapped) {
    opd_plugin *p = opd_library_load(dll("ops.dll"));
    opd_scope scope = opd_scope_open();
    opd_tensor *const y = opd_keep(OPD_CALL(opd_find("linkage::square_plus"), leaf()));
    CHECK_INT(opd_library_unload(p), 0);
    p = opd_library_load(dll("ops.dll"));
    CHECK(OPD_CALL(opd_find("linkage::square_plus"), leaf()) != NULL);
    opd_scope_close(&scope);
    opd_release(y);
    CHECK_INT(opd_library_unload(p), 0);
    CHECK(!mapped("ops.dll"));
}
/* A plug-in of two files has one table and one list of blocks.  Its path has blanks and letters outside ASCII. */
TEST(a_path_with_any_letters) {
    opd_plugin *const p = opd_library_load(dll("gr\xc3\xb6\xc3\x9f" "e \xe6\x97\xa5/two files.dll"));
    CHECK_OK();
    char text[4000] = "";
    (void)opd_dump(opd_find("linkage::square_plus"), text, sizeof text);
    CHECK(strstr(text, "CUDA") != NULL);
    CHECK_INT(opd_library_unload(p), 0);
    CHECK(!mapped("two files.dll"));
    CHECK(!opd_library_load(dll("gr\xf6\xdf" "e.dll")));
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "the path is not valid UTF-8");
}
/* If two blocks register a kernel for one key, the kernel of the later block is called. */
TEST(blocks_of_a_plugin_run_in_the_order_of_the_file) {
    opd_log_set(hush, NULL);
    opd_plugin *const p = opd_library_load(dll("order.dll"));
    opd_log_set(NULL, NULL);
    CHECK_OK();
    CHECK_INT(opd_call_value(opd_find("order::which"), NULL, 0).u.i, 3);
    CHECK_INT(opd_library_unload(p), 0);
}
/* Windows adds .dll to a name without a dot; but the file of the given name is loaded, not the one with .dll. */
TEST(a_name_without_an_ending) {
    opd_plugin *const p = opd_library_load(dll("order"));
    CHECK_OK();
    CHECK(opd_find_quiet("linkage::square_plus") && !opd_find_quiet("order::which"));
    CHECK_INT(opd_library_unload(p), 0);
}
TEST(a_dll_of_many_sections) {
    opd_plugin *const p = opd_library_load(dll("sections.dll"));
    CHECK_OK();
    CHECK_INT(opd_library_unload(p), 0);
}
/* While a plug-in is loaded, Windows shows no dialog about errors.  The block of errors.c returns the setting. */
TEST(no_dialogs) {
    unsigned long was = 4;
    CHECK(SetThreadErrorMode(0, &was));
    opd_plugin *const p = opd_library_load(dll("errors.dll"));
    CHECK_OK();
    CHECK_INT(opd_call_value(opd_find("errors::mode"), NULL, 0).u.i, 1);
    CHECK_INT(opd_library_unload(p), 0);
    CHECK(!opd_library_load(dll("needs.dll")));
    opd_error_clear();
    CHECK_INT(GetThreadErrorMode(), 0);
    (void)SetThreadErrorMode(was, NULL);
}
/* A name without a folder is a file of the current folder: no folders are searched. */
TEST(a_name_alone_is_not_searched) {
    CHECK(!opd_library_load("kernel32.dll"));
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "cannot open 'kernel32.dll'");
}
TEST(a_missing_file) {
    CHECK(!opd_library_load(dll("nowhere.dll")));
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "nowhere.dll': No such file or directory");
    CHECK(!opd_library_load(dll("")));
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "': Is a directory");
    CHECK(!opd_library_load(NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the path is NULL");
}
TEST(a_file_that_is_no_dll) {
    CHECK(!opd_library_load(dll("text.dll")));
    CHECK_ERROR(OPD_ERROR_REGISTER, "is not a shared library");
    CHECK(!opd_library_load(changed("ops.dll", 0, pe_of("ops.dll") + 23, 0)));       /* without the mark of a DLL */
    CHECK_ERROR(OPD_ERROR_REGISTER, "is not a shared library");
}
TEST(a_dll_that_is_no_plugin) {
    CHECK(!opd_library_load(dll("plain.dll")));
    CHECK_ERROR(OPD_ERROR_REGISTER, "registers nothing");
    CHECK(!mapped("plain.dll"));
}
TEST(a_dll_for_another_machine) {
    CHECK(!opd_library_load(changed("ops.dll", 0, pe_of("ops.dll") + 5, 0xaa)));
    CHECK_ERROR(OPD_ERROR_REGISTER, "is for aarch64, this program for x86-64");
}
TEST(a_damaged_dll) {
    CHECK(!opd_library_load(changed("plain.dll", 80000, 0, 0)));
    CHECK_ERROR(OPD_ERROR_REGISTER, "is incomplete");
    CHECK(!opd_library_load(changed("ops.dll", 0, pe_of("ops.dll") + 24, 0)));       /* the optional header's magic */
    CHECK_ERROR(OPD_ERROR_REGISTER, "Windows cannot load");
    CHECK(!opd_plugin_next(NULL) && !mapped("changed.dll"));
}
TEST(a_dll_that_needs_a_missing_one) {
    CHECK(!opd_library_load(dll("needs.dll")));
    CHECK_ERROR(OPD_ERROR_REGISTER, "a DLL that it needs was not found");
}
TEST(a_dll_with_its_own_implementation) {
    CHECK(!opd_library_load(dll("own.dll")));
    CHECK_ERROR(OPD_ERROR_REGISTER, "contains its own implementation of opdispatch");
    CHECK(!mapped("own.dll"));
}
TEST(nothing_is_compiled_at_run_time) {
    const char *const files[] = {"x.c", NULL};
    CHECK(!opd_load("x", files, NULL));
    CHECK_ERROR(OPD_ERROR_REGISTER, "on Windows, nothing is compiled at run time");
    CHECK(!opd_load_inline("x", "int x;", NULL));
    CHECK_ERROR(OPD_ERROR_REGISTER, "build a DLL");
}
#else
TEST(dlls) { SKIP("DLLs are for Windows"); }
#endif
CHECK_MAIN()
