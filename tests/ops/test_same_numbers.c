/* A seed gives the same random numbers on every machine: their hashes are those below at each level of instructions
   (opdi_cpu_level), with any compiler and C library. */
#include "../../opdispatch.h"
#include "../check.h"
#include "../inside.h"

/* Returns a hash (FNV-1a) of the elements of a tensor, which does not depend on the order of their bytes. */
static uint64_t hash_of(opd_tensor *tensor) {
    uint64_t hash = 14695981039346656037u;
    tensor = opd_contiguous(opd_to_dtype(tensor, OPD_FLOAT64));      /* exact: no dtype here is wider */
    const double *const x = tensor ? opd_data_f64(tensor) : NULL;
    for (int64_t i = 0; x && i < opd_numel(tensor); i++) {
        uint64_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        for (int k = 0; k < 64; k += 8) { hash = (hash ^ (bits >> k & 255)) * 1099511628211u; }
    }
    return hash;
}
enum { COUNT = 20011 };
static opd_tensor *like(double value, opd_scalar_type dtype) { return opd_full(OPD_INTS(COUNT), OPD_V(value), dtype); }
static opd_tensor *draw(int k) {
    static const int64_t count[] = {COUNT};
    const opd_ints sizes = opd_ints_of(count, 1);
    switch (k) {
    case 0: return opd_rand(sizes, OPD_FLOAT32);
    case 1: return opd_rand(sizes, OPD_FLOAT64);
    case 2: return opd_randn(sizes, OPD_FLOAT32);
    case 3: return opd_randn(sizes, OPD_FLOAT64);
    case 4: return opd_randn(sizes, OPD_FLOAT16);
    case 5: return opd_randn(sizes, OPD_BFLOAT16);
    case 6: return opd_randint_low(-5, 1000, sizes, OPD_INT64);
    case 7: return opd_randperm(COUNT, OPD_INT64);
    case 8: return opd_normal_(like(0, OPD_FLOAT32), 0.3, 1.7);
    case 9: return opd_normal_(like(0, OPD_FLOAT64), 0.3, 1.7);
    case 10: return opd_uniform_(like(0, OPD_FLOAT32), -0.3, 1.7);
    case 11: return opd_uniform_(like(0, OPD_FLOAT64), -0.3, 1.7);
    case 12: return opd_exponential_(like(0, OPD_FLOAT32), 0.7);
    case 13: return opd_exponential_(like(0, OPD_FLOAT64), 0.7);
    case 14: return opd_cauchy_(like(0, OPD_FLOAT64));
    case 15: return opd_log_normal_(like(0, OPD_FLOAT64));
    case 16: return opd_geometric_(like(0, OPD_FLOAT32), 0.03);
    case 17: return opd_bernoulli_p(like(0, OPD_FLOAT32), 0.3);
    case 18: return opd_poisson(opd_rand(sizes, OPD_FLOAT64));
    case 19: return opd_poisson(opd_mul(opd_rand(sizes, OPD_FLOAT64), like(50, OPD_FLOAT64)));
    case 20: return opd_binomial(like(40, OPD_FLOAT64), opd_rand(sizes, OPD_FLOAT64));
    case 21: return opd_binomial(like(400, OPD_FLOAT64), opd_rand(sizes, OPD_FLOAT64));
    case 22: return opd_standard_gamma(opd_mul(opd_rand(sizes, OPD_FLOAT64), like(3, OPD_FLOAT64)));
    case 23: return opd_multinomial(opd_rand(OPD_INTS(50, 30), OPD_FLOAT32), 9, false);
    case 24: return opd_multinomial(opd_rand(OPD_INTS(50, 30), OPD_FLOAT32), 9, true);
    default: return NULL;
    }
}
static const uint64_t hashes[] = {
    0xb91e124508c508e3u, 0xcc33604b2625775fu, 0x841361c8d79d0defu, 0x785cddae6f374b0cu, 0x49e7dde362951dd1u,
    0x9e8754eedbdb789du, 0xac66ce90cf524210u, 0xa1125e2b1d9e36f5u, 0x2157d0a878349bb7u, 0x017cdac641d20df5u,
    0x2ea0d524b6220e65u, 0xaf2d20bbfd20103cu, 0xe0fce5655a7cb337u, 0x9bf1a282d4777427u, 0x60c76f20dbb83ccbu,
    0x449c8a610b0dec46u, 0x16e91a06ecefef8au, 0x10e91164533fc825u, 0x8a7a895c58de4735u, 0x544ffa1e7ebd90d9u,
    0x958a94b3e5af1f0fu, 0x1babcd7cf92671b0u, 0x6ca250ad2cc435e1u, 0x59ee0b53da8fe9aau, 0x714f89aa49cf29cau
};
TEST(seeds_give_the_same_numbers_everywhere) {
    inside_cpu_level_set(-1);
    const int most = inside_cpu_level();
    for (int level = 0; level <= most; level++) {
        inside_cpu_level_set(level);
        for (int k = 0; k < 25; k++) {
            OPD_SCOPED;
            opd_manual_seed(7);
            opd_tensor *const drawn = draw(k);
            CHECK_OK();
            const uint64_t hash = hash_of(drawn);
            if (hash != hashes[k]) { printf("level %d, %d: 0x%016llxu\n", level, k, (unsigned long long)hash); }
            CHECK(hash == hashes[k]);
        }
    }
    inside_cpu_level_set(most);
}
CHECK_MAIN()
