/* Copies, sums and products of tensors whose rows in memory are short, permuted, reversed or repeated.  Each element is
   compared with the element that its strides name, or with the result for contiguous tensors. */
#include "../check.h"
#include "../inside.h"

static opd_tensor *numbered(opd_ints sizes, opd_scalar_type dtype) {
    opd_tensor *all = opd_remainder_Scalar(opd_arange(OPD_V(opd_numel(opd_empty(sizes, OPD_UINT8))), OPD_INT64), OPD_V(251));
    return opd_to_dtype(opd_view(all, sizes), dtype);
}
/* Element number `at`, in the order of the indices, of a tensor with any strides. */
static const char *element(const opd_tensor *t, int64_t at) {
    const char *here = (const char *)opd_data(t);
    int dim;
    for (dim = opd_ndim(t) - 1; dim >= 0; dim--) {
        here += at % opd_sizes(t)[dim] * opd_strides(t)[dim] * (int64_t)opd_dtype_size(opd_dtype(t));
        at /= opd_sizes(t)[dim];
    }
    return here;
}
/* Counts the elements at which two tensors of the same sizes and dtype differ. */
static int64_t differing(const opd_tensor *a, const opd_tensor *b) {
    int64_t i, count = 0;
    if (!a || !b || opd_numel(a) != opd_numel(b) || opd_dtype(a) != opd_dtype(b)) { return -1; }
    for (i = 0; i < opd_numel(a); i++) {
        count += memcmp(element(a, i), element(b, i), opd_dtype_size(opd_dtype(a))) != 0;
    }
    return count;
}
/* Copies `from` to a contiguous tensor, and to one with gaps and dims in reverse order. */
static void copied(opd_tensor *from) {
    int64_t sizes[OPD_MAX_DIMS], order[OPD_MAX_DIMS];
    const int ndim = opd_ndim(from);
    int i;
    opd_tensor *to, *plain = opd_empty(opd_ints_of(opd_sizes(from), ndim), opd_dtype(from));
    CHECK(opd_copy_(plain, from) != NULL);
    CHECK_INT(differing(plain, from), 0);
    for (i = 0; i < ndim; i++) {
        sizes[i] = opd_sizes(from)[ndim - 1 - i] + (i == ndim - 1);
        order[i] = ndim - 1 - i;
    }
    to = opd_zeros(opd_ints_of(sizes, ndim), opd_dtype(from));
    to = opd_permute(opd_narrow(to, ndim - 1, 1, sizes[ndim - 1] - 1), opd_ints_of(order, ndim));
    CHECK(opd_copy_(to, from) != NULL);
    CHECK_INT(differing(to, from), 0);
}

static const opd_scalar_type dtypes[] = {OPD_UINT8, OPD_BFLOAT16, OPD_FLOAT32, OPD_FLOAT64, OPD_COMPLEX128};
enum { DTYPES = (int)(sizeof dtypes / sizeof *dtypes) };

TEST(copies_of_short_rows) {
    static const int64_t sizes[][4] = {{2, 3, 5, 7}, {1, 2, 300, 2}, {2, 1, 3, 515}, {3, 16, 17, 2}, {2, 2, 130, 140},
                                       {1, 5, 0, 2}, {4, 40, 8, 33}, {700, 3, 5, 4}};
    static const int64_t orders[][4] = {{0, 1, 2, 3}, {0, 2, 3, 1}, {3, 2, 1, 0}, {0, 3, 1, 2}, {1, 0, 3, 2}, {2, 0, 3, 1}};
    size_t i, k, d;
    for (d = 0; d < DTYPES; d++) {
        for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            for (k = 0; k < sizeof orders / sizeof *orders; k++) {
                OPD_SCOPE {
                    opd_tensor *x = numbered(opd_ints_of(sizes[i], 4), dtypes[d]);
                    copied(opd_permute(x, opd_ints_of(orders[k], 4)));
                }
            }
        }
    }
}

TEST(copies_of_windows_and_of_repeated_elements) {
    static const int64_t windows[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 70};
    size_t i, d;
    for (d = 0; d < DTYPES; d++) {
        for (i = 0; i < sizeof windows / sizeof *windows; i++) {
            OPD_SCOPE {
                opd_tensor *x = numbered(OPD_INTS(3, 200), dtypes[d]);
                const int64_t count = windows[i];
                copied(opd_unfold(x, 1, count, 3));
                copied(opd_expand(opd_unsqueeze(x, 2), OPD_INTS(3, 200, count)));
                copied(opd_expand(opd_unsqueeze(x, 1), OPD_INTS(3, count, 200)));
                copied(opd_slice(opd_unfold(x, 1, count, 5), -1, OPD_V(0), OPD_V(count), 2));
            }
        }
    }
}

/* Rows that share memory with the rows to which they are copied, which are not refused if there are gaps between rows
   (PyTorch leaves the result open).  No function may be used that does not allow shared memory: see --sanitize. */
TEST(copies_to_rows_that_share_memory) {
    static const int64_t lengths[] = {1, 4, 5, 9, 70};
    for (size_t i = 0; i < 4 * sizeof lengths / sizeof *lengths; i++) {
        OPD_SCOPE {
            const int64_t n = lengths[i / 4], away = i % 2 ? 2 : 1;
            opd_tensor *const x = numbered(OPD_INTS(400), i / 2 % 2 ? OPD_FLOAT64 : OPD_FLOAT32), *const kept = opd_clone(x);
            opd_tensor *const from = opd_as_strided_full(x, OPD_INTS(4, n), OPD_INTS(n + 10, 1), OPD_V(0));
            opd_tensor *const to = opd_as_strided_full(x, OPD_INTS(4, n), OPD_INTS(n + 10, 1), OPD_V(away));
            CHECK(opd_copy_(to, from) != NULL);
            const int64_t places[] = {0, n + away, n + 10 + n + away};  /* the gaps did not change */
            for (int k = 0; k < 3; k++) {
                const int64_t size = k ? 10 - away : 1;
                CHECK_INT(differing(opd_narrow(x, 0, places[k], size), opd_narrow(kept, 0, places[k], size)), 0);
            }
            opd_tensor *const was = opd_as_strided_full(kept, OPD_INTS(4, n), OPD_INTS(n + 10, 1), OPD_V(0));
            if (n * (int64_t)opd_dtype_size(opd_dtype(x)) <= 16 || n == 70) { CHECK_INT(differing(to, was), 0); }
        }
    }
}

TEST(flips) {
    static const int64_t lengths[] = {1, 2, 15, 16, 17, 100, 20000};
    size_t i, d;
    for (d = 0; d < DTYPES; d++) {
        for (i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            OPD_SCOPE {
                const int64_t n = lengths[i], size = (int64_t)opd_dtype_size(dtypes[d]);
                opd_tensor *x = numbered(OPD_INTS(3, n), dtypes[d]), *y = opd_flip(x, OPD_INTS(1));
                opd_tensor *z = opd_flip(x, OPD_INTS(0, 1)), *w = opd_contiguous(opd_rot90(x));
                int64_t k, wrong = 0;
                for (k = 0; k < 3 * n; k++) {
                    const char *at = (const char *)opd_data(x) + k * size;
                    wrong += memcmp(at, (char *)opd_data(y) + (k / n * n + n - 1 - k % n) * size, (size_t)size) != 0;
                    wrong += memcmp(at, (char *)opd_data(z) + (3 * n - 1 - k) * size, (size_t)size) != 0;
                    wrong += memcmp(at, (char *)opd_data(w) + ((n - 1 - k % n) * 3 + k / n) * size, (size_t)size) != 0;
                }
                CHECK_INT(wrong, 0);
            }
        }
    }
}

/* Products of which one factor is repeated along rows or has gaps between rows. */
TEST(products_of_rows) {
    static const int64_t lengths[] = {1, 15, 16, 100, 128, 513, 1030};
    static const opd_scalar_type types[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_INT64, OPD_FLOAT16, OPD_COMPLEX128};
    size_t i, d;
    for (d = 0; d < 5; d++) {
        for (i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            OPD_SCOPE {
                const int64_t n = lengths[i], sizes[] = {2, 37, n};
                const opd_ints all = opd_ints_of(sizes, 3);
                opd_tensor *wide = numbered(OPD_INTS(2, 37, n + 3), types[d]), *x = opd_narrow(wide, 2, 2, n);
                opd_tensor *from[4], *whole = opd_contiguous(x), *out;
                int k;
                from[0] = numbered(OPD_INTS(2, 37, 1), types[d]);
                from[1] = numbered(OPD_INTS(37, 1), types[d]);
                from[2] = numbered(OPD_INTS(2, 1, n), types[d]);
                from[3] = opd_select(opd_select(numbered(OPD_INTS(5, 2), types[d]), 0, 3), 0, 1);
                for (k = 0; k < 4; k++) {
                    opd_tensor *right = opd_mul(whole, opd_clone(opd_contiguous(opd_expand(from[k], all))));
                    CHECK_INT(differing(opd_mul(x, from[k]), right), 0);
                    out = opd_narrow(opd_zeros(OPD_INTS(2, 37, n + 1), types[d]), 2, 1, n);
                    CHECK(opd_copy_(out, x) && opd_mul_(out, from[k]));
                    CHECK_INT(differing(out, right), 0);
                }
                CHECK_INT(differing(opd_mul_Scalar(x, OPD_V(3)), opd_mul_Scalar(whole, OPD_V(3))), 0);
            }
        }
    }
}

/* Sums and means of short rows, beside sums in double. */
TEST(sums_of_short_rows) {
    int64_t n, i, k;
    for (n = 1; n < 150; n += n < 70 ? 1 : 13) {
        OPD_SCOPE {
            opd_tensor *x = opd_randn(OPD_INTS(41, n), OPD_FLOAT32), *kept = opd_empty(OPD_INTS(41, 2), OPD_FLOAT32);
            opd_tensor *sum = opd_sum_dim(x, OPD_INTS(1), false), *mean = opd_mean_dim(x, OPD_INTS(1), false);
            opd_tensor *gaps = opd_mean_dim(opd_narrow(opd_repeat(x, OPD_INTS(1, 2)), 1, 0, n), OPD_INTS(1), true);
            CHECK(opd_copy_(opd_narrow(kept, 1, 0, 1), gaps) != NULL);
            for (i = 0; i < 41; i++) {
                double right = 0, most = 0;
                for (k = 0; k < n; k++) {
                    right += (double)opd_data_f32(x)[i * n + k];
                    most += fabs((double)opd_data_f32(x)[i * n + k]);
                }
                CHECK_NEAR(opd_data_f32(sum)[i], right, 1e-6 * most);
                CHECK_NEAR(opd_data_f32(mean)[i], right / (double)n, 1e-6 * most / (double)n);
                CHECK_NEAR(opd_data_f32(kept)[2 * i], right / (double)n, 1e-6 * most / (double)n);
            }
        }
    }
}

/* Copies within one block of memory.  Their targets begin up to 69 bytes further within a page than their sources, and
   some share memory with the sources. */
static int moved_wrongly(const unsigned char *source, int from, int to, int bytes) {
    static unsigned char data[40960];
    int wrong = 0;
    memcpy(data, source, sizeof data);
    inside_move(data + to, data + from, (size_t)bytes);
    for (int i = 0; i < (int)sizeof data; i++) {
        wrong += data[i] != (i >= to && i < to + bytes ? source[from + i - to] : source[i]);
    }
    return wrong;
}
TEST(copies_within_pages) {
    static const int sizes[] = { 0, 1, 1023, 2048, 2049, 3073, 9001 };
    static unsigned char source[40960];
    for (unsigned i = 0; i < sizeof source; i++) { source[i] = (unsigned char)(i * 2654435761u >> 13); }
    for (int ahead = 0; ahead < 70; ahead += ahead < 5 ? 1 : 13) {
        for (int i = 0; i < 7; i++) {
            CHECK_INT(moved_wrongly(source, 64, 64 + 16384 + ahead, sizes[i]), 0);
            CHECK_INT(moved_wrongly(source, 64 + 16384, 64 + ahead, sizes[i]), 0);
            CHECK_INT(moved_wrongly(source, 64, 64 + ahead, sizes[i]), 0);
            CHECK_INT(moved_wrongly(source, 64 + ahead, 64, sizes[i]), 0);
        }
    }
}
CHECK_MAIN()
