/* amx_in_c.h: runs AMX instructions on Linux processors that do not have them.  Such a processor sends SIGILL; the
   handler reads the instruction at the program counter, does its work in C, and continues after it.  Only instructions
   that the library uses are known.  Tiles belong to a thread, as in hardware. */
#ifndef OPD_TESTS_AMX_IN_C_H
#define OPD_TESTS_AMX_IN_C_H

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

static __thread unsigned char amx_tiles[8][16][64];
static __thread int amx_configured, amx_rows[8], amx_bytes[8];         /* the sizes of the tiles */
static long amx_products, amx_releases;           /* how many have run, in all threads */

static float amx_bf16(const unsigned char *at) {
    const uint32_t bits = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 24;
    float f;
    memcpy(&f, &bits, 4);
    return (bits >> 23 & 255) ? f : 0;            /* denormals count as 0 */
}
/* tdpbf16ps: sum[m][n] += the two products of the pairs a[m][k] and b[k][n], for each k. */
static void amx_pairs(int sum, int a, int b) {
    for (int m = 0; m < amx_rows[a]; m++) {
        for (int n = 0; n < amx_bytes[b] / 4; n++) {
            float total;
            memcpy(&total, amx_tiles[sum][m] + 4 * n, 4);
            for (int k = 0; k < amx_rows[b]; k++) {
                for (int i = 0; i < 4; i += 2) { total += amx_bf16(amx_tiles[a][m] + 4 * k + i) * amx_bf16(amx_tiles[b][k] + 4 * n + i); }
            }
            memcpy(amx_tiles[sum][m] + 4 * n, &total, 4);
        }
    }
}
/* tdpbusd: the same for four bytes, in `a` without signs and in `b` with signs.  tdpbsud (turned): the other way round. */
static void amx_quads(int sum, int a, int b, int turned) {
    for (int m = 0; m < amx_rows[a]; m++) {
        for (int n = 0; n < amx_bytes[b] / 4; n++) {
            uint32_t total;
            memcpy(&total, amx_tiles[sum][m] + 4 * n, 4);
            for (int k = 0; k < amx_rows[b]; k++) {
                for (int i = 0; i < 4; i++) {
                    const unsigned char first = amx_tiles[a][m][4 * k + i], second = amx_tiles[b][k][4 * n + i];
                    total += (uint32_t)(turned ? (int8_t)first * second : first * (int8_t)second);
                }
            }
            memcpy(amx_tiles[sum][m] + 4 * n, &total, 4);
        }
    }
}
static void amx_trap(int number, siginfo_t *info, void *context) {
    greg_t *const regs = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *const at = (const unsigned char *)(uintptr_t)regs[REG_RIP];
    const int prefix = at[2] & 3, tile = at[4] >> 3 & 7, first = at[4] & 7, second = 15 - (at[2] >> 3 & 15);
    int bytes = 5, known = at[0] == 0xc4 && at[1] == 0xe2 && (at[2] & 0x84) == 0;       /* VEX.128.0F38.W0 */
    (void)number;
    (void)info;
    if (known && at[3] == 0x49 && prefix == 0 && at[4] == 0) {                           /* ldtilecfg (%rax) */
        const unsigned char *const config = (const unsigned char *)(uintptr_t)regs[REG_RAX];
        for (int i = 0; i < 8; i++) {
            amx_rows[i] = config[48 + i];
            amx_bytes[i] = config[16 + 2 * i];
            known = known && amx_rows[i] <= 16 && amx_bytes[i] <= 64 && amx_bytes[i] % 4 == 0 && config[17 + 2 * i] == 0;
        }
        known = known && config[0] == 1 && config[1] == 0;
        memset(amx_tiles, 0, sizeof amx_tiles);
        amx_configured = 1;
    } else if (known && at[3] == 0x49 && prefix == 0 && at[4] == 0xc0) {                 /* tilerelease */
        amx_configured = 0;
        __atomic_fetch_add(&amx_releases, 1, __ATOMIC_RELAXED);
    } else if (!amx_configured) {
        known = 0;
    } else if (known && at[3] == 0x49 && prefix == 3 && (at[4] & 0xc7) == 0xc0) {        /* tilezero */
        memset(amx_tiles[tile], 0, sizeof amx_tiles[tile]);
    } else if (known && at[3] == 0x4b && prefix >= 2 && (at[4] & 0xc7) == 4 && at[5] == 8) {       /* (%rax, %rcx) */
        char *row = (char *)(uintptr_t)regs[REG_RAX];
        known = amx_rows[tile] > 0;
        for (int i = 0; i < amx_rows[tile]; i++, row += regs[REG_RCX]) {
            if (prefix == 3) { memcpy(amx_tiles[tile][i], row, (size_t)amx_bytes[tile]); }               /* tileloadd */
            else { memcpy(row, amx_tiles[tile][i], (size_t)amx_bytes[tile]); }                           /* tilestored */
        }
        bytes = 6;
    } else if (known && (at[3] == 0x5c || at[3] == 0x5e) && at[4] >= 0xc0 && second < 8) {
        /* The hardware refuses an instruction that names a tile twice. */
        known = tile != first && tile != second && first != second && (prefix == 2 || (prefix == 1 && at[3] == 0x5e));
        /* It also refuses tiles whose sizes do not belong together. */
        known = known && amx_rows[tile] == amx_rows[first] && amx_bytes[tile] == amx_bytes[second] &&
            amx_bytes[first] == 4 * amx_rows[second] && amx_rows[second] > 0;
        if (at[3] == 0x5c) { amx_pairs(tile, first, second); } else { amx_quads(tile, first, second, prefix == 2); }
        __atomic_fetch_add(&amx_products, 1, __ATOMIC_RELAXED);
    } else {
        known = 0;
    }
    if (!known) { abort(); }
    regs[REG_RIP] += bytes;
}
/* Begins to run AMX instructions in C; amx_end ends it. */
static struct sigaction amx_before;
static void amx_begin(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = amx_trap;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGILL, &action, &amx_before);
    amx_products = amx_releases = 0;
}
static void amx_end(void) { sigaction(SIGILL, &amx_before, NULL); }

#endif
