/* The option --level of benchmarks: limits both sides to a level of instructions. */
#ifndef BENCH_LEVEL_H
#define BENCH_LEVEL_H
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BENCH_LEVEL_HELP "  --level LEVEL  instructions that both sides may use: plain, avx2 or avx512 (default: all)\n"
static const char *bench_level_text = "";        /* such as ", avx2", for outputs */

/* Limits this program, and programs that it starts, to the level `name`.  Call it before the library computes.
   PyTorch's kernels, oneDNN and MKL have a variable each.  Returns false if there is no such level. */
static bool bench_level(const char *name) {
    static const char *const rows[][6] = {
        {"plain", "0", "default", "SSE41", "SSE4_2", ", plain"},
        {"avx2", "1", "avx2", "AVX2", "AVX2", ", avx2"},
        {"avx512", "2", "avx512", "AVX512_CORE_FP16", "AVX512", ", avx512"}};
    for (int i = 0; i < 3; i++) {
        if (strcmp(rows[i][0], name) != 0) { continue; }
        setenv("OPD_CPU_LEVEL", rows[i][1], 1);
        setenv("ATEN_CPU_CAPABILITY", rows[i][2], 1);
        setenv("ONEDNN_MAX_CPU_ISA", rows[i][3], 1);
        setenv("MKL_ENABLE_INSTRUCTIONS", rows[i][4], 1);
        bench_level_text = rows[i][5];
        return true;
    }
    return false;
}
#endif
