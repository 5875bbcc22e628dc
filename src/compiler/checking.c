#include "compiler.h"

//== checking the C compiler ===========================================================================================
//
//  Some compilers compile defined C wrongly: gcc 11 and 12 vectorise some conditions so that elements are wrong.  So a
//  few loops of the forms that >>c_text writes are compiled once with the same compiler and flags, and each element is
//  compared with the same expression outside of a loop.  The result is in the cache of compiled code.

#if defined(OPDI_COMPILES)
#define OPDI_CHECKED_FLAGS 16

/* C text with a function that returns the number of wrong elements.  Each KERNEL is an expression, which name_all
   computes in loops and name_one for one element.  The numbers are such that nothing is rounded.  WRONG is for tests of
   this check. */
static const char opdi_flags_check_source[] =
    "#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n"
    "#if defined(__GNUC__) && !defined(__TINYC__)\n#define APART __attribute__((noinline))\n"
    "#else\n#define APART\n#endif\n"
    "#if defined(__cplusplus)\n#define RESTRICT __restrict\n#define SHOWN extern \"C\"\n"
    "#elif defined(__TINYC__)\n#define RESTRICT\n#define SHOWN\n"
    "#else\n#define RESTRICT restrict\n#define SHOWN\n#endif\n"
    "#if !defined(WRONG)\n#define WRONG 0\n#endif\n"
    "static inline float from_f16(uint16_t x) {\n"
    "    const uint32_t sign = (uint32_t)(x & 0x8000u) << 16, rest = x & 0x7fffu;\n"
    "    const uint32_t bits = sign | (rest >= 0x7c00u ? 0x7f800000u | rest << 13 : (rest << 13) + 0x38000000u);\n"
    "    float value;\n    memcpy(&value, &bits, sizeof value);\n"
    "    return rest >= 0x400u ? value : (sign ? -1.0f : 1.0f) * (float)rest * 5.9604644775390625e-8f;\n}\n"
    "static inline float from_bf16(uint16_t x) {\n"
    "    const uint32_t bits = (uint32_t)x << 16;\n    float value;\n"
    "    memcpy(&value, &bits, sizeof value);\n    return value;\n}\n"
    "static float m[102], x[204], y[204], out[340];\nstatic uint16_t h[408];\nstatic uint8_t b[204];\n"
    "static int64_t k[204];\n#define AT (102 * i0 + 6 * i1 + i2)\n#define TO (170 * i0 + 10 * i1 + i2 + 2)\n"
    "#define EACH for (ptrdiff_t i0 = 0; i0 < 2; i0++) for (ptrdiff_t i1 = 0; i1 < 17; i1++) \\\n"
    "    for (ptrdiff_t i2 = 0; i2 < 6; i2++)\n"
    "#define KERNEL(name, text) \\\n"
    "APART static float name##_one(const float *m, const float *x, const float *y, const uint16_t *h, \\\n"
    "    const uint8_t *b, const int64_t *k, ptrdiff_t i0, ptrdiff_t i1, ptrdiff_t i2) { text return (float)v; } \\\n"
    "APART static void name##_all(const float *RESTRICT m, const float *RESTRICT x, const float *RESTRICT y, \\\n"
    "    const uint16_t *RESTRICT h, const uint8_t *RESTRICT b, const int64_t *RESTRICT k, float *RESTRICT out) { \\\n"
    "    EACH { text out[TO] = (float)v + WRONG; } } \\\n"
    "static int name(void) { int wrong = 0; name##_all(m, x, y, h, b, k, out); \\\n"
    "    EACH { wrong += out[TO] != name##_one(m, x, y, h, b, k, i0, i1, i2); } return wrong; }\n"
    "KERNEL(mask, const float v1 = m[6 * i1 + i2]; const uint8_t v2 = v1 > 0.0f; const float v3 = x[AT];\n"
    "    const float v4 = y[AT]; const float v = v2 != 0 ? v3 : v4;)\n"
    "KERNEL(half, const float v1 = from_f16(h[2 * AT]); const uint8_t v2 = v1 < 1.0f; const float v3 = x[AT];\n"
    "    const float v = v2 != 0 ? -2.0f : v3;)\n"
    "KERNEL(both, const uint8_t v1 = m[6 * i1 + i2] > 0.0f; const float v2 = from_f16(h[2 * AT]);\n"
    "    const uint8_t v3 = v2 < 1.0f; const int64_t v4 = (int64_t)v1 & (int64_t)v3; const uint8_t v5 = v4 != 0;\n"
    "    const float v6 = x[AT]; const float v7 = v6 * v6; const float v8 = -v6; const float v = v5 != 0 ? v7 : v8;)\n"
    "KERNEL(less, const uint8_t v1 = m[6 * i1 + i2] > 0.0f; const uint8_t v2 = from_bf16(h[2 * AT]) < 1.0f;\n"
    "    const float v = (float)v1 - (float)v2;)\n"
    "KERNEL(byte, const uint8_t v1 = b[AT]; const uint8_t v2 = v1 == 0; const float v3 = x[AT];\n"
    "    const float v4 = v2 != 0 ? v3 : 0.5f; const uint8_t v5 = v4 > 20.0f;\n"
    "    const float v = v5 != 0 ? (float)v1 : v4;)\n"
    "KERNEL(whole, const int64_t v1 = k[AT]; const uint8_t v2 = v1 < 0; const int64_t v3 = v2 != 0 ? -v1 : v1 * 3;\n"
    "    const uint8_t v4 = b[AT]; const int64_t v = v3 + (int64_t)v4 - (int64_t)v2;)\n"
    "KERNEL(mixed, const int32_t v1 = (int32_t)x[AT]; const uint8_t v2 = (v1 & 3) == 0;\n"
    "    const double v3 = (double)y[AT]; const uint8_t v4 = v3 < -50.0;\n"
    "    const int64_t v5 = (int64_t)v2 | (int64_t)v4; const uint8_t v6 = v5 != 0;\n"
    "    const double v7 = (double)k[AT]; const double v = v6 != 0 ? v3 : v7;)\n"
    "SHOWN int opd_compiler_check(void);\nint opd_compiler_check(void) {\n    for (int i = 0; i < 204; i++) {\n"
    "        m[i % 102] = (float)(i * 7 % 5 - 2);\n        x[i] = (float)(i + 1);\n        y[i] = (float)-(i + 1);\n"
    "        h[2 * i] = (uint16_t)(i * 11 % 7 * 0x380 + 0x3800 + (i % 3 == 0) * 0x8000);\n"
    "        b[i] = i * 5 % 3 == 0;\n        k[i] = i * 13 % 9 - 4;\n    }\n"
    "    return mask() + half() + both() + less() + byte() + whole() + mixed();\n}\n";

static void opdi_flags_check_flags(const char *flags, opdi_string *quiet) {
    opdi_string_add(quiet, flags);
    opdi_string_add(quiet, " -w");                /* the flags may make warnings errors */
}
/* Compiles the check with these flags and runs it.  Returns the number of wrong elements, or -1 and sets an error. */
static int opdi_flags_check_run(const char *what, const char *flags) {
    char path[OPDI_PATH];
    opdi_string quiet = {NULL, 0, 0, false};
    int (*ask)(void);
    opdi_flags_check_flags(flags, &quiet);
    const int rc = quiet.failed ? -1
        : opdi_build_text(what, "compiler_check", opdi_flags_check_source, quiet.data, path);
    opdi_string_free(&quiet);
    void *const library = rc ? NULL : opdi_dlopen(path);
    if (!library) { return -1; }
    void *const found = opdi_dlsym(library, "opd_compiler_check");
    memcpy(&ask, &found, sizeof ask);
    const int wrong = found ? ask() : opd_fail(OPD_ERROR_REGISTER, "%s: %s has no opd_compiler_check", what, path);
    opdi_dlclose(library);
    return wrong;
}
/* The compilers and flags that were found to be right, as opdi_flags_key gives them. */
OPDI_INTERNAL opdi_mutex opdi_checked_lock = OPDI_MUTEX_INIT;
static uint64_t opdi_checked[OPDI_CHECKED_FLAGS];
static uint32_t opdi_checked_count;
static uint64_t opdi_flags_key(const char *flags) {
    const char *const cc = getenv("CC");
    return opdi_hash_text(opdi_hash_text(6, flags), cc ? cc : "");
}
static bool opdi_flags_known(uint64_t key) {
    bool known = false;
    opdi_lock(&opdi_checked_lock);
    for (int i = 0; i < OPDI_CHECKED_FLAGS; i++) { known = known || opdi_checked[i] == key; }
    opdi_unlock(&opdi_checked_lock);
    return known;
}
/* Returns whether these flags have not been checked in this process.  Then sets *also to the text of the check, so that
   it can be compiled at the same time as other texts.  `quiet` gets the flags for it. */
OPDI_INTERNAL bool opdi_flags_check_new(const char *flags, opdi_build_also *also, opdi_string *quiet) {
    if (opdi_flags_known(opdi_flags_key(flags))) { return false; }
    opdi_flags_check_flags(flags, quiet);
    also->name = "compiler_check";
    also->flags = quiet->data;
    also->source.data = (char *)(uintptr_t)opdi_flags_check_source;
    also->source.length = sizeof opdi_flags_check_source;
    return !quiet->failed;
}
/* Checks that the C compiler gives the right numbers with these flags, once in a process.  Returns 0, or -1 and sets an
   error; sets *wrong to whether numbers are wrong. */
OPDI_INTERNAL int opdi_flags_check(const char *what, const char *flags, bool *wrong) {
    const uint64_t key = opdi_flags_key(flags);
    *wrong = false;
    if (opdi_flags_known(key)) { return 0; }
    const int elements = opdi_flags_check_run(what, flags);
    if (elements < 0) { return -1; }
    if (elements > 0) {
        *wrong = true;
        return opd_fail(OPD_ERROR_REGISTER, "%s: the C compiler gives wrong numbers with the flags '%s': a check has "
                        "%d wrong elements; set $CC to another compiler, or use other flags", what, flags, elements);
    }
    opdi_lock(&opdi_checked_lock);
    opdi_checked[opdi_checked_count++ % OPDI_CHECKED_FLAGS] = key;
    opdi_unlock(&opdi_checked_lock);
    return 0;
}
#endif
