/* Libraries with instructions that the processor lacks: what is read from machine code, and what is done about it.  The
   processor's instruction sets are assumed, so that the tests are the same on each processor. */
#include "../inside.h"
#include "../told.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__unix__) && !defined(OPD_NO_PLUGINS)
#include <unistd.h>

//-- reading instructions ----------------------------------------------------------------------------------------------

/* An instruction, as GNU's assembler encodes it, and the sets of its names. */
static const struct code_row { const char *text, *sets; int length; unsigned char bytes[12]; } rows[] = {
    {"vaddps zmm", "AVX512", 6, {0x62, 0xf1, 0x74, 0x48, 0x58, 0xd0}},
    {"vaddps ymm16", "AVX512", 6, {0x62, 0xb1, 0x74, 0x28, 0x58, 0xd0}},
    {"vaddph zmm", "AVX512 AVX512_FP16", 6, {0x62, 0xf5, 0x74, 0x48, 0x58, 0xd0}},
    {"vfmadd213ph zmm", "AVX512 AVX512_FP16", 6, {0x62, 0xf6, 0x75, 0x48, 0xa8, 0xd0}},
    {"vdpbf16ps zmm", "AVX512 AVX512_BF16", 6, {0x62, 0xf2, 0x76, 0x48, 0x52, 0xd0}},
    {"vcvtneps2bf16 zmm", "AVX512 AVX512_BF16", 6, {0x62, 0xf2, 0x7e, 0x48, 0x72, 0xd1}},
    {"vpdpbusd 64(rdi)", "AVX512 AVX512_VNNI", 7, {0x62, 0xf2, 0x75, 0x48, 0x50, 0x57, 0x01}},
    {"vpermb zmm", "AVX512 AVX512_VBMI", 6, {0x62, 0xf2, 0x75, 0x48, 0x8d, 0xd0}},
    {"vpermw zmm", "AVX512", 6, {0x62, 0xf2, 0xf5, 0x48, 0x8d, 0xd0}},
    {"vpcompressb zmm", "AVX512 AVX512_VBMI2", 6, {0x62, 0xf2, 0x7d, 0x48, 0x63, 0xca}},
    {"vpshldd zmm", "AVX512 AVX512_VBMI2", 7, {0x62, 0xf3, 0x75, 0x48, 0x71, 0xd0, 0x03}},
    {"vpopcntb zmm", "AVX512 AVX512_BITALG", 6, {0x62, 0xf2, 0x7d, 0x48, 0x54, 0xd1}},
    {"vpopcntd zmm", "AVX512 AVX512_VPOPCNTDQ", 6, {0x62, 0xf2, 0x7d, 0x48, 0x55, 0xd1}},
    {"vpmadd52luq zmm", "AVX512 AVX512_IFMA", 6, {0x62, 0xf2, 0xf5, 0x48, 0xb4, 0xd0}},
    {"tdpbf16ps", "AMX AVX", 5, {0xc4, 0xe2, 0x7a, 0x5c, 0xd1}},
    {"vgf2p8mulb ymm", "GFNI AVX", 5, {0xc4, 0xe2, 0x75, 0xcf, 0xd0}},
    {"vaesenc zmm", "AVX512 VAES", 6, {0x62, 0xf2, 0x75, 0x48, 0xdc, 0xd0}},
    {"vpclmulqdq zmm", "AVX512 VPCLMULQDQ", 7, {0x62, 0xf3, 0x75, 0x48, 0x44, 0xd0, 0x01}},
    {"vpdpbusd ymm", "AVX_VNNI AVX", 5, {0xc4, 0xe2, 0x75, 0x50, 0xd0}},
    {"vpbroadcastd ymm", "AVX2 AVX", 5, {0xc4, 0xe2, 0x7d, 0x58, 0xc8}},
    {"vpermq ymm", "AVX2 AVX", 6, {0xc4, 0xe3, 0xfd, 0x00, 0xc8, 0x01}},
    {"vfmadd231ss 8(rax,rcx,4)", "FMA AVX", 7, {0xc4, 0xe2, 0x71, 0xb9, 0x54, 0x88, 0x08}},
    {"vcvtph2ps ymm", "F16C AVX", 5, {0xc4, 0xe2, 0x7d, 0x13, 0xc8}},
    {"shlx", "BMI2", 5, {0xc4, 0xe2, 0xf9, 0xf7, 0xcb}},
    {"andn", "BMI1", 5, {0xc4, 0xe2, 0xe0, 0xf2, 0xc8}},
    {"rorx", "BMI2", 6, {0xc4, 0xe3, 0xfb, 0xf0, 0xd8, 0x03}},
    {"vaddps xmm", "AVX", 4, {0xc5, 0xf0, 0x58, 0xd0}},
    {"vzeroupper", "AVX", 3, {0xc5, 0xf8, 0x77}},
    /* without a set, and with bytes that look like other instructions */
    {"addps", "", 3, {0x0f, 0x58, 0xc8}},
    {"movabs", "", 10, {0x48, 0xb8, 0x62, 0xf1, 0x74, 0x48, 0x58, 0xd0, 0x62, 0x62}},
    {"movl 0x62(rip)", "", 10, {0xc7, 0x05, 0x62, 0, 0, 0, 0x62, 0x7c, 0xf1, 0x48}},
    {"pshufb", "", 5, {0x66, 0x0f, 0x38, 0x00, 0xc8}},
    {"imul", "", 7, {0x48, 0x69, 0xd8, 0x62, 0xf1, 0x74, 0x48}},
    {"testl", "", 6, {0xf7, 0x07, 0x62, 0xf1, 0x74, 0x48}},
    {"testb", "", 3, {0xf6, 0x07, 0x62}},
    {"notl", "", 2, {0xf7, 0x17}},
    {"data16 rex.W call", "", 8, {0x66, 0x66, 0x48, 0xe8, 0x62, 0xf1, 0x74, 0x48}},
    {"movw", "", 5, {0x66, 0xc7, 0x07, 0x62, 0xf1}},
    {"enter", "", 4, {0xc8, 0x62, 0xf1, 0x00}},
    {"movabs al", "", 9, {0xa0, 0x62, 0xf1, 0x74, 0x48, 0x58, 0xd0, 0x62, 0xf1}},
    {"mov fs:0(,rbp)", "", 9, {0x64, 0x48, 0x8b, 0x04, 0x2d, 0x62, 0xf1, 0x74, 0x48}},
    {"jae", "", 6, {0x0f, 0x83, 0x62, 0xf1, 0x74, 0x48}},
    {"shld", "", 5, {0x48, 0x0f, 0xa4, 0xc8, 0x62}},
    {"pextrw", "", 5, {0x66, 0x0f, 0xc5, 0xc1, 0x62}},
};
/* Returns the sets with these names, as bits. */
static uint32_t sets_of(const char *names) {
    uint32_t sets = 0;
    char all[200], name[40];
    (void)snprintf(all, sizeof all, " %s ", names);
    for (uint32_t bit = 1; bit && inside_sets_name(bit); bit <<= 1) {
        (void)snprintf(name, sizeof name, " %s ", inside_sets_name(bit));
        if (strstr(all, name)) { sets |= bit; }
    }
    return sets;
}
static uint32_t all_sets(void) {
    uint32_t all = 0;
    for (uint32_t bit = 1; bit && inside_sets_name(bit); bit <<= 1) { all |= bit; }
    return all;
}
/* Each instruction has the right sets and length: after it comes cpuid, which is seen. */
TEST(sets_of_instructions) {
    if (!all_sets()) { SKIP("machine code is not read here"); }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        unsigned char code[16];
        bool asks = true;
        const size_t length = (size_t)rows[i].length;
        memcpy(code, rows[i].bytes, length);
        CHECK_INT(inside_function_sets(code, length, &asks) == sets_of(rows[i].sets) && asks, true);
        memcpy(code + length, "\x0f\xa2", 2);
        asks = false;
        CHECK(inside_function_sets(code, length + 2, &asks) == sets_of(rows[i].sets) && asks);
        if (!asks) { printf("%s\n", rows[i].text); }
        asks = false;                             /* a part of an instruction counts for nothing */
        CHECK(inside_function_sets(code, length - 1, &asks) == 0 && !asks);
    }
}

//-- libraries ---------------------------------------------------------------------------------------------------------

/* Uses a new cache and a compiler that lists functions, which tcc does not.  Returns false if there is none. */
static bool begin(void) {
    const char *const cc = getenv("CC");
    char was[300];
    (void)snprintf(was, sizeof was, "%s", cc && *cc ? cc : "cc");
    const bool found = check_cache_begin();
    (void)setenv("CC", was, 1);
    return found && !strstr(was, "tcc");
}
#define KERNEL \
    "#include \"opdispatch.h\"\n" \
    "static int k(opd_call *call) { return opd_return_int(call, 7); }\n" \
    "OPD_LIBRARY(sets, lib) { opd_def(lib, \"seven() -> int\"); opd_impl(lib, \"seven\", k); }\n"
#define NEVER_CALLED "void never_called(void); void never_called(void) { __asm__ volatile(\".byte 0x62,0xf1,0x74,0x48,0x58,0xd0\"); }\n"
/* Loads a plug-in, and checks what is said about it. */
static void check_plugin(const char *source, const char *flags, const char *lacks) {
    told[0] = 0;
    opd_log_set(hear, NULL);
    opd_plugin *const plugin = opd_compile_and_load_inline("sets", source, flags);
    opd_log_set(NULL, NULL);
    CHECK_OR_RETURN(plugin != NULL);
    CHECK_INT(opd_call_value(opd_find("sets::seven"), NULL, 0).u.i, 7);
    const char *const said = opd_plugin_lacks(opd_plugin_path(plugin));
    CHECK_STR(said ? said : "nothing", lacks ? lacks : "nothing");
    CHECK(lacks ? strstr(told, lacks) != NULL : !*told);
    CHECK_INT(opd_plugin_unload(plugin), 0);
}
/* A plug-in is only warned about: perhaps nothing calls the function. */
TEST(plugins_with_instructions_that_are_missing) {
    if (!all_sets()) { SKIP("machine code is not read here"); }
    if (!begin()) { SKIP("no gcc and no clang"); }
    (void)inside_sets_assume(all_sets() & ~sets_of("AVX512"));
    check_plugin(KERNEL, NULL, NULL);
    check_plugin(KERNEL NEVER_CALLED, NULL, "AVX512");
    /* code that asks the processor, and a library without a list of functions */
    check_plugin(KERNEL NEVER_CALLED "int asks(void); int asks(void) { __asm__ volatile(\"cpuid\" : : : \"eax\", \"ebx\", \"ecx\", "
                 "\"edx\"); return 0; }\n", NULL, NULL);
    check_plugin(KERNEL NEVER_CALLED, "-fno-asynchronous-unwind-tables -Wl,--no-eh-frame-hdr", NULL);
    (void)inside_sets_assume(all_sets());
    check_plugin(KERNEL NEVER_CALLED, NULL, NULL);
    (void)inside_sets_assume(0);
    CHECK(opd_plugin_lacks(NULL) == NULL);
    CHECK(opd_plugin_lacks("/no/such/file") == NULL);
    CHECK(opd_plugin_lacks(__FILE__) == NULL);
    CHECK_OK();
}
static int squares(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_mul(in[0], in[0]);
    return out[0] ? 1 : -1;
}
/* Returns why the second run of a compiled graph was uncompiled, or "". */
static const char *compiled_reason(const char *flags) {
    static const float numbers[] = {1, 2, 3, 4, 5, 6, 7, 8};
    const int64_t eight = 8;
    opd_tensor *x = opd_tensor_from(numbers, opd_ints_of(&eight, 1), OPD_FLOAT32), *out;
    opd_graph *const graph = opd_graph_trace(squares, NULL, &x, 1, NULL);
    const char *const why = reason_of(graph, x, flags, &out);
    CHECK(out && opd_data_f32(out)[7] == 64);
    opd_graph_free(graph);
    return why;
}
/* In an emulator, -march=native may mean the processor below it: then the code is compiled without it. */
TEST(compiled_graphs_for_another_processor) {
    if (!all_sets()) { SKIP("machine code is not read here"); }
    if (!begin()) { SKIP("no gcc and no clang"); }
    (void)inside_sets_assume((all_sets() + 1) | sets_of("BMI1"));
    CHECK_STR(compiled_reason(NULL), "");
    CHECK_STR(told, "");
    CHECK(strstr(compiled_reason("-O3 -mavx"), "give code for AVX, which this processor lacks") != NULL);
    CHECK(strstr(told, "runs uncompiled") != NULL);
    (void)inside_sets_assume(all_sets());
    CHECK_STR(compiled_reason("-O3"), "");
    (void)inside_sets_assume(0);
}
TEST(the_cache_goes) {
    if (!check_cache_end()) { SKIP("no cc"); }
}
#else
TEST(no_plugins) { CHECK(opd_plugin_lacks("x.so") == NULL); }
#endif

CHECK_MAIN()
