/* Tensor core fragments of 16 x 16 x 16 in the emulated CUDA runtime: see cuda_runtime.h.  Each lane holds eight
   elements of a matrix.  For a product, the lanes of a warp exchange their elements. */
#ifndef OPD_EMU_MMA_H
#define OPD_EMU_MMA_H
#include "cuda_runtime.h"
#include "cuda_fp16.h"
#include "cuda_bf16.h"

namespace nvcuda {
namespace wmma {
struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };
namespace precision { struct tf32 {}; }

template <class Use, int M, int N, int K, class T, class Layout = void> struct fragment {
    static_assert(M == 16 && N == 16 && K == 16, "16 x 16 x 16");
    enum { num_elements = 8 };
    T x[8];                                       // elements 8 lane to 8 lane + 7 in rows
};
template <class F, class T> static inline void fill_fragment(F &f, T v) { for (auto &x : f.x) { x = v; } }
template <class Use, class T, class Layout>
static inline void load_matrix_sync(fragment<Use, 16, 16, 16, T, Layout> &f, const T *p, unsigned ld) {
    const int first = 8 * opd_emu::lane();
    for (int k = 0; k < 8; k++) {
        const int r = (first + k) / 16, c = (first + k) % 16;
        f.x[k] = std::is_same<Layout, col_major>::value ? p[c * (int64_t)ld + r] : p[r * (int64_t)ld + c];
    }
    opd_emu::wait(opd_emu::AT_WARP, 20);
}
template <class T>
static inline void load_matrix_sync(fragment<accumulator, 16, 16, 16, T> &f, const T *p, unsigned ld, layout_t layout) {
    const int first = 8 * opd_emu::lane();
    for (int k = 0; k < 8; k++) {
        const int r = (first + k) / 16, c = (first + k) % 16;
        f.x[k] = layout == mem_col_major ? p[c * (int64_t)ld + r] : p[r * (int64_t)ld + c];
    }
    opd_emu::wait(opd_emu::AT_WARP, 21);
}
template <class T>
static inline void store_matrix_sync(T *p, const fragment<accumulator, 16, 16, 16, T> &f, unsigned ld, layout_t layout) {
    const int first = 8 * opd_emu::lane();
    for (int k = 0; k < 8; k++) {
        const int r = (first + k) / 16, c = (first + k) % 16;
        p[layout == mem_col_major ? c * (int64_t)ld + r : r * (int64_t)ld + c] = f.x[k];
    }
    opd_emu::wait(opd_emu::AT_WARP, 22);
}
template <class T> OPD_EMU_UNSEEN static inline void opd_emu_gather(const T (&mine)[8], float (&all)[256]) {
    for (int k = 0; k < 8; k++) {
        for (int lane = 0; lane < 32; lane++) { all[8 * lane + k] = 0; }
    }
    for (int k = 0; k < 8; k++) {
        opd_emu::Thread *t = opd_emu::machine.now;
        const int parity = t->parity;
        const float v = (float)mine[k];
        memcpy(opd_emu::warp().slots[parity][opd_emu::lane()].bytes, &v, sizeof v);
        t->parity ^= 1;
        opd_emu::wait(opd_emu::AT_WARP, 23);
        for (int lane = 0; lane < 32; lane++) { memcpy(&all[8 * lane + k], opd_emu::warp().slots[parity][lane].bytes, sizeof v); }
    }
}
template <class T, class LA, class LB, class C>
static inline void mma_sync(fragment<accumulator, 16, 16, 16, C> &d, const fragment<matrix_a, 16, 16, 16, T, LA> &a,
                            const fragment<matrix_b, 16, 16, 16, T, LB> &b, const fragment<accumulator, 16, 16, 16, C> &c) {
    const int first = 8 * opd_emu::lane();
    float A[256], B[256];
    opd_emu_gather(a.x, A);
    opd_emu_gather(b.x, B);
    for (int k = 0; k < 8; k++) {
        const int r = (first + k) / 16, col = (first + k) % 16;
        float sum = (float)c.x[k];
        for (int l = 0; l < 16; l++) { sum += A[16 * r + l] * B[16 * l + col]; }
        d.x[k] = (C)sum;
    }
}
}  // namespace wmma
}  // namespace nvcuda
#endif
