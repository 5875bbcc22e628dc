/* Random numbers under vmap: an error, the same for all examples, or different for each example, for every kind of
   random operator; custom operators; and calls that are refused because they depend on random numbers.  The cases
   are those of PyTorch's TestRandomness. */
#include "../../opdispatch.h"
#include "../cases.h"

#define B 4
enum { NONE = -99, FIRST = 0, LAST = -1 };
typedef opd_tensor *(*draw_fn)(opd_tensor *x, opd_tensor *y, opd_ints size, opd_generator *g);
typedef struct draw { const char *name; draw_fn fn; } draw;
static const int places[] = {FIRST, LAST, NONE};
static const char *const place_names[] = {"first", "last", "not"};

#define DRAW(id, expr)                                                                                      \
    static opd_tensor *draw_##id(opd_tensor *x, opd_tensor *y, opd_ints size, opd_generator *g) {            \
        (void)x; (void)y; (void)size; (void)g;                                                              \
        return expr;                                                                                        \
    }
#define ROW(id) {#id, draw_##id}
#define COUNT(table) ((int)(sizeof table / sizeof *table))

//-- tools ---------------------------------------------------------------------------------------------------------------

static opd_tensor *image(int place) {
    return place == FIRST ? opd_ones(OPD_INTS(B, 3, 3, 7, 7), OPD_FLOAT32) : place == LAST ? opd_ones(OPD_INTS(3, 3, 7, 7, B), OPD_FLOAT32)
           : opd_ones(OPD_INTS(3, 3, 7, 7), OPD_FLOAT32);
}
static opd_tensor *in_front(opd_tensor *t, int place) { return place == LAST ? opd_movedim(t, -1, 0) : t; }
static void seed(opd_generator *g) { opd_manual_seed(1234567); if (g) { opd_generator_seed(g, 1234567); } }
static opd_ints no_sizes(void) { return opd_ints_of(NULL, 0); }
static opd_tensor *example(opd_tensor *t, int k) { return opd_select(t, 0, k); }

/* The call for examples; NULL with an error. */
static opd_tensor *vmapped(draw_fn fn, opd_tensor *x, int xplace, opd_tensor *y, int yplace, opd_ints size, opd_generator *g, opd_randomness how) {
    const int level = opd_vmap_begin(B, how);
    opd_tensor *r;
    if (level < 0) { return NULL; }
    if (x && xplace != NONE) { x = opd_vmap_wrap(x, xplace, level); }
    if (y && yplace != NONE) { y = opd_vmap_wrap(y, yplace, level); }
    r = fn(x, y, size, g);
    if (r) { r = opd_vmap_unwrap(r, 0, level); }
    (void)opd_vmap_end(level);
    return r;
}
static bool equal(opd_tensor *a, opd_tensor *b) {
    const int failures = check_failures;
    if (went_well(a && b ? 0 : -1)) { same_values(a, b, 0); }
    return check_failures == failures;
}
static void all_equal(opd_tensor *r, opd_tensor *want) {
    int k;
    for (k = 0; k < B; k++) { if (!equal(example(r, k), want)) { return; } }
}
static void all_differ(opd_tensor *r) {
    int i, j;
    int64_t e, n = opd_numel(r) / B;
    for (i = 0; i < B; i++) {
        for (j = 0; j < i; j++) {
            for (e = 0; e < n && case_get(example(r, i), e) == case_get(example(r, j), e); e++) { }
            (void)say(e < n, "two examples got the same numbers");
        }
    }
}
static void refused(opd_tensor *r, const char *text) {
    char full[300];
    (void)snprintf(full, sizeof full, "expected \"%s\", got: %.150s", text, r ? "no error" : opd_error_message());
    (void)say(!r && strstr(opd_error_message(), text), full);
    opd_error_clear();
}
#define ERROR_MODE "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness flags on vmap or perform the randomness operation out of vmap"
#define SAME_BATCHED "Vmap does not currently support same randomness with a batched tensor input"
#define DIFFERENT_INPLACE "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness."
#define NO_ROOM "there exists a Tensor `other` in extra_args that has more elements than `self`"

//-- factories -----------------------------------------------------------------------------------------------------------

DRAW(randn, g ? opd_randn_generator(size, g, OPD_FLOAT32) : opd_randn(size, OPD_FLOAT32))
DRAW(rand, g ? opd_rand_generator(size, g, OPD_FLOAT32) : opd_rand(size, OPD_FLOAT32))
DRAW(randint, g ? opd_randint_generator(100, size, g, OPD_INT64) : opd_randint(100, size, OPD_INT64))
DRAW(randint_low, g ? opd_randint_low_generator(5, 100, size, g, OPD_INT64) : opd_randint_low(5, 100, size, OPD_INT64))
DRAW(normal_sized, opd_normal_full(0, 1, size, g, OPD_NONE, OPD_NONE, OPD_NONE, OPD_NONE))
static const draw factories[] = {ROW(randn), ROW(rand), ROW(randint), ROW(randint_low), ROW(normal_sized)};
DRAW(randperm, g ? opd_randperm_generator(10, g, OPD_INT64) : opd_randperm(10, OPD_INT64))

TEST(factories_draw_for_all_or_for_each) {
    int i, own;
    for (i = 0; i < COUNT(factories); i++) {
        for (own = 0; own < 2; own++) {
            const draw *d = &factories[i];
            opd_generator *g = own ? opd_generator_new(1) : NULL;
            opd_tensor *r;
            (void)snprintf(what, sizeof what, "%s%s", d->name, own ? " with a generator" : "");
            refused(vmapped(d->fn, NULL, NONE, NULL, NONE, OPD_INTS(3, 3), g, OPD_RANDOM_ERROR), ERROR_MODE);
            seed(g);
            r = vmapped(d->fn, NULL, NONE, NULL, NONE, OPD_INTS(3, 3), g, OPD_RANDOM_DIFFERENT);
            seed(g);
            if (equal(r, d->fn(NULL, NULL, OPD_INTS(B, 3, 3), g))) { all_differ(r); }
            seed(g);
            r = vmapped(d->fn, NULL, NONE, NULL, NONE, OPD_INTS(3, 3), g, OPD_RANDOM_SAME);
            seed(g);
            if (went_well(r ? 0 : -1)) { all_equal(r, d->fn(NULL, NULL, OPD_INTS(3, 3), g)); }
            if (g) { opd_generator_free(g); }
        }
    }
}
TEST(a_permutation_for_each) {
    int own, k;
    for (own = 0; own < 2; own++) {
        opd_generator *g = own ? opd_generator_new(1) : NULL;
        const int64_t slow = opd_vmap_fallback_count();
        opd_tensor *r;
        (void)snprintf(what, sizeof what, "randperm%s", own ? " with a generator" : "");
        refused(vmapped(draw_randperm, NULL, NONE, NULL, NONE, no_sizes(), g, OPD_RANDOM_ERROR), ERROR_MODE);
        seed(g);
        r = vmapped(draw_randperm, NULL, NONE, NULL, NONE, no_sizes(), g, OPD_RANDOM_DIFFERENT);
        seed(g);
        for (k = 0; k < B && went_well(r ? 0 : -1); k++) { (void)equal(example(r, k), draw_randperm(NULL, NULL, no_sizes(), g)); }
        seed(g);
        r = vmapped(draw_randperm, NULL, NONE, NULL, NONE, no_sizes(), g, OPD_RANDOM_SAME);
        seed(g);
        if (went_well(r ? 0 : -1)) { all_equal(r, draw_randperm(NULL, NULL, no_sizes(), g)); }
        CHECK_INT(opd_vmap_fallback_count(), slow);
        if (g) { opd_generator_free(g); }
    }
}

DRAW(randint_like, opd_randint_like(x, 20))
DRAW(randint_like_low, opd_randint_like_low(x, 1, 20))
DRAW(rand_like, opd_rand_like(x))
DRAW(randn_like, opd_randn_like(x))
static const draw likes[] = {ROW(randint_like), ROW(randint_like_low), ROW(rand_like), ROW(randn_like)};
TEST(tensors_like_another_are_drawn) {
    int i, p;
    for (i = 0; i < COUNT(likes); i++) {
        for (p = 0; p < 3; p++) {
            const draw *d = &likes[i];
            opd_tensor *x = image(places[p]), *r, *wide;
            (void)snprintf(what, sizeof what, "%s, examples %s", d->name, place_names[p]);
            refused(vmapped(d->fn, x, places[p], NULL, NONE, no_sizes(), NULL, OPD_RANDOM_ERROR), ERROR_MODE);
            wide = places[p] == NONE ? image(FIRST) : in_front(x, places[p]);
            seed(NULL);
            r = vmapped(d->fn, x, places[p], NULL, NONE, no_sizes(), NULL, OPD_RANDOM_DIFFERENT);
            seed(NULL);
            if (equal(r, d->fn(wide, NULL, no_sizes(), NULL))) { all_differ(r); }
            seed(NULL);
            r = vmapped(d->fn, x, places[p], NULL, NONE, no_sizes(), NULL, OPD_RANDOM_SAME);
            seed(NULL);
            if (went_well(r ? 0 : -1)) { all_equal(r, d->fn(example(wide, 0), NULL, no_sizes(), NULL)); }
        }
    }
}

//-- in place ------------------------------------------------------------------------------------------------------------

DRAW(random_, opd_random_full_(x, g))
DRAW(random_to_, opd_random_to_full_(x, 100, g))
DRAW(random_from_, opd_random_from_full_(x, -5, OPD_V(100), g))
DRAW(normal_, opd_normal_full_(x, 0, 1, g))
DRAW(bernoulli_, opd_bernoulli_full_(x, 0.5, g))
DRAW(exponential_, opd_exponential_full_(x, 1, g))
DRAW(uniform_, opd_uniform_full_(x, 0, 1, g))
DRAW(geometric_, opd_geometric_full_(x, 0.01, g))
DRAW(cauchy_, opd_cauchy_full_(x, 0, 1, g))
DRAW(log_normal_, opd_log_normal_full_(x, 0, 1, g))
static const draw writes[] = {ROW(random_), ROW(random_to_), ROW(random_from_), ROW(normal_), ROW(bernoulli_), ROW(exponential_), ROW(uniform_),
                              ROW(geometric_), ROW(cauchy_), ROW(log_normal_)};
TEST(draws_in_place) {
    int i, p, own;
    for (i = 0; i < COUNT(writes); i++) {
        for (p = 0; p < 6; p++) {
            const draw *d = &writes[i];
            const int place = places[p % 3];
            opd_generator *g = (own = p / 3) != 0 ? opd_generator_new(1) : NULL;
            opd_tensor *x = image(place), *was = opd_clone(x), *r, *wide;
            (void)snprintf(what, sizeof what, "%s, examples %s%s", d->name, place_names[p % 3], own ? ", with a generator" : "");
            refused(vmapped(d->fn, x, place, NULL, NONE, no_sizes(), g, OPD_RANDOM_ERROR), ERROR_MODE);
            if (place == NONE) { refused(vmapped(d->fn, x, place, NULL, NONE, no_sizes(), g, OPD_RANDOM_DIFFERENT), DIFFERENT_INPLACE); }
            (void)equal(x, was);                  /* nothing was written */
            wide = opd_clone(place == NONE ? image(FIRST) : in_front(x, place));
            if (place != NONE) {
                seed(g);
                r = vmapped(d->fn, x, place, NULL, NONE, no_sizes(), g, OPD_RANDOM_DIFFERENT);
                if (went_well(r ? 0 : -1)) {
                    all_differ(r);
                    (void)equal(r, in_front(x, place));       /* x was written */
                    seed(g);
                    (void)equal(r, d->fn(wide, NULL, no_sizes(), g));
                }
            }
            seed(g);
            r = vmapped(d->fn, x, place, NULL, NONE, no_sizes(), g, OPD_RANDOM_SAME);
            seed(g);
            if (went_well(r ? 0 : -1)) { all_equal(r, d->fn(opd_clone(example(wide, 0)), NULL, no_sizes(), g)); }
            if (place != NONE && r) { (void)equal(r, in_front(x, place)); }
            if (g) { opd_generator_free(g); }
        }
    }
}
DRAW(bernoulli_p_, opd_bernoulli_Tensor_full_(x, y, g))
TEST(bernoulli_in_place_with_probabilities) {
    int p, q;
    for (p = 0; p < 3; p++) {
        for (q = 0; q < 3; q++) {
            const int xp = places[p], yp = places[q];
            opd_tensor *x = image(xp), *y = opd_sub_Scalar(image(yp), OPD_V(0.5)), *r, *wide = opd_clone(in_front(x, xp)), *py = in_front(y, yp);
            (void)snprintf(what, sizeof what, "bernoulli_, self %s, p %s", place_names[p], place_names[q]);
            refused(vmapped(draw_bernoulli_p_, x, xp, y, yp, no_sizes(), NULL, OPD_RANDOM_ERROR), ERROR_MODE);
            if (yp != NONE) { refused(vmapped(draw_bernoulli_p_, x, xp, y, yp, no_sizes(), NULL, OPD_RANDOM_SAME), SAME_BATCHED); }
            if (xp == NONE) {
                refused(vmapped(draw_bernoulli_p_, x, xp, y, yp, no_sizes(), NULL, OPD_RANDOM_DIFFERENT), yp != NONE ? NO_ROOM : DIFFERENT_INPLACE);
            } else {
                seed(NULL);
                r = vmapped(draw_bernoulli_p_, x, xp, y, yp, no_sizes(), NULL, OPD_RANDOM_DIFFERENT);
                seed(NULL);
                if (equal(r, draw_bernoulli_p_(wide, py, no_sizes(), NULL))) { all_differ(r); }
            }
            if (yp != NONE) { continue; }
            seed(NULL);
            r = vmapped(draw_bernoulli_p_, x, xp, y, yp, no_sizes(), NULL, OPD_RANDOM_SAME);
            seed(NULL);
            if (went_well(r ? 0 : -1)) { all_equal(r, draw_bernoulli_p_(image(NONE), py, no_sizes(), NULL)); }
        }
    }
}

//-- parameters that are tensors -----------------------------------------------------------------------------------------

DRAW(normal_both, opd_normal_Tensor_Tensor_full(x, y, g))
DRAW(bernoulli_both, opd_bernoulli_Tensor_full(x, opd_mul_Scalar(y, OPD_V(0.5)), g))
DRAW(binomial, opd_binomial_full(opd_mul_Scalar(x, OPD_V(1000)), opd_mul_Scalar(y, OPD_V(0.5)), g))
static const draw binaries[] = {ROW(normal_both), ROW(bernoulli_both), ROW(binomial)};
TEST(draws_of_two_tensors) {
    int i, p, q;
    for (i = 0; i < COUNT(binaries); i++) {
        for (p = 0; p < 9; p++) {
            const draw *d = &binaries[i];
            const int xp = places[p / 3], yp = places[q = p % 3];
            opd_tensor *x = image(xp), *y = image(yp), *r;
            (void)snprintf(what, sizeof what, "%s, examples of self %s, of other %s", d->name, place_names[p / 3], place_names[q]);
            refused(vmapped(d->fn, x, xp, y, yp, no_sizes(), NULL, OPD_RANDOM_ERROR), ERROR_MODE);
            seed(NULL);
            r = vmapped(d->fn, x, xp, y, yp, no_sizes(), NULL, OPD_RANDOM_DIFFERENT);
            seed(NULL);
            if (equal(r, d->fn(image(FIRST), in_front(y, yp), no_sizes(), NULL))) { all_differ(r); }
            seed(NULL);
            r = vmapped(d->fn, x, xp, y, yp, no_sizes(), NULL, OPD_RANDOM_SAME);
            if (xp != NONE || yp != NONE) { refused(r, SAME_BATCHED); continue; }
            seed(NULL);
            if (went_well(r ? 0 : -1)) { all_equal(r, d->fn(x, y, no_sizes(), NULL)); }
        }
    }
}
DRAW(normal_std, opd_normal_float_Tensor_full(0, opd_abs(x), g))
DRAW(normal_mean, opd_normal_Tensor_float_full(x, 1, g))
DRAW(bernoulli, opd_bernoulli_full(opd_sub_Scalar(x, OPD_V(0.5)), g))
DRAW(bernoulli_number, opd_bernoulli_p_full(x, 0.5, g))
DRAW(normal_functional, opd_normal_functional_full(x, 0, 1, g))
DRAW(poisson, opd_poisson_full(opd_mul_Scalar(x, OPD_V(1000)), g))
DRAW(standard_gamma, opd_standard_gamma_full(x, g))
DRAW(geometric, opd_geometric_full(x, 0.01, g))
DRAW(exponential, opd_exponential_full(x, 1, g))
DRAW(cauchy, opd_cauchy_full(x, 0, 1, g))
DRAW(log_normal, opd_log_normal_full(x, 0, 1, g))
static const draw unaries[] = {ROW(normal_std), ROW(normal_mean), ROW(bernoulli), ROW(bernoulli_number), ROW(normal_functional), ROW(poisson),
                               ROW(standard_gamma), ROW(geometric), ROW(exponential), ROW(cauchy), ROW(log_normal)};
TEST(draws_of_one_tensor) {
    int i, p, own;
    for (i = 0; i < COUNT(unaries); i++) {
        for (p = 0; p < 6; p++) {
            const draw *d = &unaries[i];
            const int place = places[p % 3];
            opd_generator *g = (own = p / 3) != 0 ? opd_generator_new(1) : NULL;
            opd_tensor *x = image(place), *r;
            (void)snprintf(what, sizeof what, "%s, examples %s%s", d->name, place_names[p % 3], own ? ", with a generator" : "");
            refused(vmapped(d->fn, x, place, NULL, NONE, no_sizes(), g, OPD_RANDOM_ERROR), ERROR_MODE);
            seed(g);
            r = vmapped(d->fn, x, place, NULL, NONE, no_sizes(), g, OPD_RANDOM_DIFFERENT);
            seed(g);
            if (equal(r, d->fn(image(FIRST), NULL, no_sizes(), g))) { all_differ(r); }
            seed(g);
            r = vmapped(d->fn, x, place, NULL, NONE, no_sizes(), g, OPD_RANDOM_SAME);
            if (place != NONE) { refused(r, SAME_BATCHED); }
            else {
                seed(g);
                if (went_well(r ? 0 : -1)) { all_equal(r, d->fn(x, NULL, no_sizes(), g)); }
            }
            if (g) { opd_generator_free(g); }
        }
    }
}

//-- dropout -------------------------------------------------------------------------------------------------------------

DRAW(dropout, opd_dropout(opd_ones_like(x), 0.5, true))
static opd_tensor *native(opd_tensor *x, bool train) {
    opd_tensor *r[2];
    return opd_native_dropout(r, x, 0.5, opd_value_bool(train)) ? NULL : r[0];
}
DRAW(native_dropout, native(opd_ones_like(x), true))
DRAW(feature_dropout, opd_feature_dropout(opd_ones_like(x), 0.5, true))
DRAW(dropout_, opd_dropout_(opd_clone(x), 0.5, true))
static const draw dropouts[] = {ROW(dropout), ROW(native_dropout), ROW(feature_dropout), ROW(dropout_)};
TEST(dropout_drops_for_all_or_for_each) {
    int i, p;
    for (i = 0; i < COUNT(dropouts); i++) {
        for (p = 0; p < 3; p++) {
            const draw *d = &dropouts[i];
            opd_tensor *x = image(places[p]), *r;
            double mean;
            (void)snprintf(what, sizeof what, "%s, examples %s", d->name, place_names[p]);
            refused(vmapped(d->fn, x, places[p], NULL, NONE, no_sizes(), NULL, OPD_RANDOM_ERROR), ERROR_MODE);
            r = vmapped(d->fn, x, places[p], NULL, NONE, no_sizes(), NULL, OPD_RANDOM_DIFFERENT);
            if (d->fn == draw_dropout_ && places[p] == NONE) { refused(r, "is not possible"); r = NULL; }
            else if (went_well(r ? 0 : -1)) {
                mean = opd_item_f64(opd_mean(r)) / 2;
                (void)say(mean > 0.25 && mean < 0.75, "not about half is dropped");
                all_differ(r);
            }
            if (r && d->fn == draw_feature_dropout) {         /* whole planes: sums are 0 or all */
                opd_tensor *s = opd_sum_dim(r, OPD_INTS(3, 4), false);
                opd_tensor *right = opd_bitwise_xor(opd_eq_Scalar(s, OPD_V(0)), opd_eq_Scalar(s, OPD_V(98)));
                (void)say(opd_item_f64(opd_sum(right)) == (double)opd_numel(right), "a plane is dropped in part");
            }
            r = vmapped(d->fn, x, places[p], NULL, NONE, no_sizes(), NULL, OPD_RANDOM_SAME);
            if (went_well(r ? 0 : -1)) {
                mean = opd_item_f64(opd_mean(r)) / 2;
                (void)say(mean > 0.1 && mean < 0.9, "not about half is dropped");
                all_equal(r, opd_clone(example(r, 0)));
            }
        }
    }
}
DRAW(dropout_eval, opd_dropout(x, 0.5, false))
DRAW(native_dropout_eval, native(x, false))
DRAW(dropout_nothing, opd_dropout(x, 0, true))
TEST(dropout_that_drops_nothing_is_not_random) {
    static const draw all[] = {ROW(dropout_eval), ROW(native_dropout_eval), ROW(dropout_nothing)};
    int i;
    for (i = 0; i < COUNT(all); i++) {
        (void)snprintf(what, sizeof what, "%s", all[i].name);
        (void)equal(vmapped(all[i].fn, image(FIRST), FIRST, NULL, NONE, no_sizes(), NULL, OPD_RANDOM_ERROR), image(FIRST));
        (void)equal(vmapped(all[i].fn, image(NONE), NONE, NULL, NONE, no_sizes(), NULL, OPD_RANDOM_ERROR), image(FIRST));
    }
}
/* What is dropped has no gradient, the rest the scale, of the same draw. */
TEST(dropout_under_vmap_is_recorded) {
    static const draw all[] = {ROW(dropout), ROW(native_dropout)};
    int i;
    for (i = 0; i < 2; i++) {
        opd_tensor *x = image(FIRST), *r;
        int level;
        (void)snprintf(what, sizeof what, "gradient of %s", all[i].name);
        (void)opd_tensor_set_requires_grad(x, true);
        level = opd_vmap_begin(B, OPD_RANDOM_DIFFERENT);
        r = opd_vmap_wrap(x, 0, level);
        r = i ? native(r, true) : opd_dropout(r, 0.5, true);
        r = opd_vmap_unwrap(r, 0, level);
        (void)opd_vmap_end(level);
        if (!went_well(r ? 0 : -1)) { continue; }
        (void)went_well(opd_backward(opd_sum(r)));
        all_differ(opd_detach(r));
        (void)equal(opd_tensor_grad(x), opd_detach(r));
    }
}

//-- levels, chunks ------------------------------------------------------------------------------------------------------

/* 2 examples of `outer`, 3 of `inner`; draws [5]: [2, 3, 5]. */
static opd_tensor *two_levels(opd_randomness outer, opd_randomness inner, opd_tensor *like) {
    const int a = opd_vmap_begin(2, outer), b = opd_vmap_begin(3, inner);
    opd_tensor *r = like ? opd_rand_like(opd_vmap_wrap(like, 0, a)) : opd_rand(OPD_INTS(5), OPD_FLOAT32);
    if (r) { r = opd_vmap_unwrap(r, 0, b); }
    (void)opd_vmap_end(b);
    if (r) { r = opd_vmap_unwrap(r, 0, a); }
    (void)opd_vmap_end(a);
    return r;
}
TEST(each_level_has_its_own_mode) {
    int o, i, l, x, y;
    for (l = 0; l < 2; l++) {
        for (o = OPD_RANDOM_DIFFERENT; o <= OPD_RANDOM_SAME; o++) {
            for (i = OPD_RANDOM_DIFFERENT; i <= OPD_RANDOM_SAME; i++) {
                opd_tensor *r = two_levels((opd_randomness)o, (opd_randomness)i, l ? opd_ones(OPD_INTS(2, 5), OPD_FLOAT32) : NULL);
                (void)snprintf(what, sizeof what, "modes %d and %d%s", o, i, l ? ", like" : "");
                if (!went_well(r ? 0 : -1)) { continue; }
                CHECK_INT(opd_numel(r), 30);
                for (x = 1; x < 6; x++) {
                    for (y = 0; y < x; y++) {
                        const bool same = (x / 3 == y / 3 || o == OPD_RANDOM_SAME) && (x % 3 == y % 3 || i == OPD_RANDOM_SAME);
                        (void)say((case_get(r, x * 5) == case_get(r, y * 5)) == same, "one draw too many, or too few");
                    }
                }
            }
        }
    }
    refused(two_levels(OPD_RANDOM_ERROR, OPD_RANDOM_DIFFERENT, NULL), ERROR_MODE);
    refused(two_levels(OPD_RANDOM_SAME, OPD_RANDOM_ERROR, NULL), ERROR_MODE);
}
static int add_noise(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_add(opd_sin(in[0]), opd_rand_like(in[0]));
    return out[0] ? 1 : -1;
}
TEST(chunks_draw_as_a_whole_would) {
    static const int64_t sizes[] = {1, 2, 3, 4, 7};
    opd_tensor *x = opd_zeros(OPD_INTS(B, 5, 6), OPD_FLOAT32), *out[OPD_TRANSFORM_OUTPUTS];
    size_t i;
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        opd_vmap_options o;
        memset(&o, 0, sizeof o);
        o.chunk_size = sizes[i];
        o.randomness = OPD_RANDOM_DIFFERENT;
        (void)snprintf(what, sizeof what, "chunks of %d", (int)sizes[i]);
        if (went_well(opd_vmap(add_noise, NULL, &x, 1, &o, out, OPD_TRANSFORM_OUTPUTS))) { all_differ(out[0]); }
        o.randomness = OPD_RANDOM_SAME;
        if (went_well(opd_vmap(add_noise, NULL, &x, 1, &o, out, OPD_TRANSFORM_OUTPUTS))) { all_equal(out[0], opd_clone(example(out[0], 0))); }
    }
}

//-- refused calls -------------------------------------------------------------------------------------------------------

static opd_tensor *written;
static opd_tensor *call2(const char *name, opd_value a, opd_value b, opd_value c) {
    opd_value v[3];
    opd_op *op = opd_find(name);
    v[0] = a; v[1] = b; v[2] = c;
    return op ? opd_call_op(op, v, opd_schema_nargs(opd_op_schema(op)) < 3 ? opd_schema_nargs(opd_op_schema(op)) : 3) : NULL;
}
static opd_tensor *out_of_randn(opd_tensor *x, opd_tensor *y, opd_ints size, opd_generator *g) {
    (void)x; (void)y; (void)g;
    return call2("aten::randn.out", opd_value_ints(size.data, size.n), opd_value_tensor(written), OPD_NONE);
}
static opd_tensor *out_of_bernoulli(opd_tensor *x, opd_tensor *y, opd_ints size, opd_generator *g) {
    (void)y; (void)size; (void)g;
    return call2("aten::bernoulli.out", opd_value_tensor(x), OPD_NONE, opd_value_tensor(x));
}
TEST(out_forms_are_refused) {
    static const opd_randomness modes[] = {OPD_RANDOM_ERROR, OPD_RANDOM_DIFFERENT, OPD_RANDOM_SAME};
    int i;
    written = opd_zeros(OPD_INTS(3), OPD_FLOAT32);
    for (i = 0; i < 3; i++) {
        (void)snprintf(what, sizeof what, "out= in mode %d", i);
        refused(vmapped(out_of_randn, NULL, NONE, NULL, NONE, OPD_INTS(3), NULL, modes[i]), "vmap: We do not support calling out variants of random operations inside of vmap. Please use non-out variants as a workaround");
        refused(vmapped(out_of_bernoulli, image(FIRST), FIRST, NULL, NONE, no_sizes(), NULL, modes[i]), "calling out variants");
    }
    (void)equal(written, opd_zeros(OPD_INTS(3), OPD_FLOAT32));
}
DRAW(nonzero, opd_nonzero(x))
DRAW(chosen, opd_masked_select(y, opd_gt_Scalar(x, OPD_V(0))))
DRAW(where_one, call2("aten::where", opd_value_tensor(x), OPD_NONE, OPD_NONE))
DRAW(classes, opd_one_hot(opd_to_dtype(x, OPD_INT64), -1))
static opd_tensor *draw_masked(opd_tensor *x, opd_tensor *y, opd_ints size, opd_generator *g) {
    opd_tensor *mask = opd_gt_Scalar(x, OPD_V(0));
    (void)size; (void)g;
    return opd_index(y, opd_tensors_of(&mask, 1));
}
static opd_tensor *draw_put(opd_tensor *x, opd_tensor *y, opd_ints size, opd_generator *g) {
    opd_tensor *mask = opd_gt_Scalar(x, OPD_V(0));
    (void)size; (void)g;
    return opd_index_put(y, opd_tensors_of(&mask, 1), opd_zeros(no_sizes(), OPD_FLOAT32), false);
}
static opd_tensor *draw_item(opd_tensor *x, opd_tensor *y, opd_ints size, opd_generator *g) {
    double v = opd_item_f64(opd_sum(x));
    (void)size; (void)g;
    return opd_mul_Scalar(y, OPD_V(v));
}
TEST(what_depends_on_numbers_is_refused) {
    opd_tensor *x = opd_randn(OPD_INTS(B, 3), OPD_FLOAT32), *y = opd_randn(OPD_INTS(3), OPD_FLOAT32);
#define REFUSED(id, text) (void)snprintf(what, sizeof what, #id); refused(vmapped(draw_##id, x, 0, y, NONE, no_sizes(), NULL, OPD_RANDOM_ERROR), text)
    REFUSED(nonzero, "do not support batching operators that can output dynamic shape. Attempted to vmap over aten::nonzero");
    REFUSED(chosen, "do not support batching operators that can output dynamic shape");
    REFUSED(where_one, "do not support batching operators that can output dynamic shape");
    REFUSED(classes, "do not support batching operators that can output dynamic shape");
    REFUSED(masked, "do not support batching operators that can output dynamic shape. Attempting to batch over indexing with a boolean mask");
    REFUSED(put, "Attempting to batch over indexing with a boolean mask");
    REFUSED(item, ".item() on a Tensor");
    CHECK_INT(opd_transform_depth(), 0);
}

//-- operators of a program's own ----------------------------------------------------------------------------------------

static int noise_kernel(opd_call *call) { return opd_return_tensor(call, opd_add(opd_arg_tensor(call, 0), opd_rand(OPD_INTS(5), OPD_FLOAT32))); }
static int noise_cpu(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *out = opd_result(call, 0, opd_sizes(x), opd_ndim(x), OPD_FLOAT32), *r = opd_rand_like(x);
    int64_t i;
    if (!opd_ok()) { return -1; }
    for (i = 0; i < opd_numel(x); i++) { opd_data_f32(out)[i] = opd_data_f32(r)[i]; }
    return 0;
}
static int noise_rule(opd_call *call) {
    int dim;
    opd_tensor *t = opd_batch_arg(call, 0, &dim);
    if (opd_batch_randomness() == OPD_RANDOM_SAME) { return opd_batch_return(call, opd_zeros(OPD_INTS(5), OPD_FLOAT32), -1); }
    t = opd_batch_front(t, dim);
    return opd_batch_return(call, opd_rand_like(t), 0);
}
DRAW(composed, call2("noise::composed", opd_value_tensor(x), OPD_NONE, OPD_NONE))
DRAW(plain, call2("noise::plain", opd_value_tensor(x), OPD_NONE, OPD_NONE))
DRAW(ruled, call2("noise::ruled", opd_value_tensor(x), OPD_NONE, OPD_NONE))
OPD_LIBRARY(noise, lib) {
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    d.schema = "composed(Tensor self) -> Tensor";
    d.composite = noise_kernel;
    d.vmap = OPD_BATCH_DECOMPOSE;
    opd_define(lib, &d);
    d.schema = "plain(Tensor self) -> Tensor";
    d.composite = NULL;
    d.cpu = noise_cpu;
    d.vmap = NULL;
    opd_define(lib, &d);
    d.schema = "ruled(Tensor self) -> Tensor";
    d.vmap = noise_rule;
    opd_define(lib, &d);
}
TEST(operators_of_ones_own) {
    static const draw all[] = {ROW(composed), ROW(plain), ROW(ruled)};
    int i, batched;
    for (i = 0; i < COUNT(all); i++) {
        for (batched = 0; batched < 2; batched++) {
            opd_tensor *x = batched ? opd_zeros(OPD_INTS(B, 5), OPD_FLOAT32) : opd_zeros(OPD_INTS(5), OPD_FLOAT32), *r;
            const int place = batched ? FIRST : NONE;
            (void)snprintf(what, sizeof what, "%s%s", all[i].name, batched ? " batched" : "");
            refused(vmapped(all[i].fn, x, place, NULL, NONE, no_sizes(), NULL, OPD_RANDOM_ERROR), ERROR_MODE);
            r = vmapped(all[i].fn, x, place, NULL, NONE, no_sizes(), NULL, OPD_RANDOM_DIFFERENT);
            if (went_well(r ? 0 : -1)) { all_differ(r); }
            r = vmapped(all[i].fn, x, place, NULL, NONE, no_sizes(), NULL, OPD_RANDOM_SAME);
            if (i == 1 && batched) { refused(r, SAME_BATCHED); }
            else if (went_well(r ? 0 : -1)) { all_equal(r, opd_clone(example(r, 0))); }
        }
    }
}

//-- memory --------------------------------------------------------------------------------------------------------------

DRAW(randomly, opd_add(opd_dropout(opd_add(opd_normal_(opd_clone(x), 0, 1), opd_rand(OPD_INTS(7), OPD_FLOAT32)), 0.5, true), opd_normal_Tensor_float(opd_randn_like(y), 1)))
/* x [3, 3, 7, 7] of each example, y [7] of all. */
static opd_tensor *draw_indexed(opd_tensor *x, opd_tensor *y, opd_ints size, opd_generator *g) {
    opd_tensor *at = opd_to_dtype(opd_select(opd_select(opd_select(x, 0, 0), 0, 0), 0, 0), OPD_INT64), *list[2], *a, *b;
    (void)size; (void)g;
    list[0] = NULL; list[1] = at;
    a = opd_index(y, opd_tensors_of(&at, 1));                                     /* [7] */
    b = opd_index_put(opd_select(x, 0, 0), opd_tensors_of(list, 2), a, true);  /* [3, 7, 7] */
    b = opd_add(b, opd_index_select(b, 1, at));
    b = opd_index_add(b, 2, at, b);
    list[0] = a;
    list[1] = opd_embedding(opd_select(b, 0, 1), at);                             /* [7, 7] */
    list[1] = opd_add(opd_select(list[1], 0, 0), opd_take(b, at));
    return at && list[1] ? opd_cat(opd_tensors_of(list, 2), 0) : NULL;
}
TEST(failing_allocations) {
    static const draw all[] = {ROW(randomly), ROW(indexed)};
    static const opd_randomness modes[] = {OPD_RANDOM_DIFFERENT, OPD_RANDOM_SAME};
    int m;
    for (m = 0; m < 4; m++) {
        opd_tensor *x = image(FIRST), *y = opd_ones(OPD_INTS(7), OPD_FLOAT32);
        bool done = false;
        int64_t n;
        for (n = 1; n < 2000 && !done; n++) {
            OPD_SCOPE {
                (void)opd_memory_fail_at(n, false);
                done = vmapped(all[m / 2].fn, x, 0, y, NONE, no_sizes(), NULL, modes[m % 2]) != NULL;
                (void)opd_memory_fail_at(0, false);
                CHECK(done || opd_error_code() == OPD_ERROR_MEMORY);
                if (!done) { opd_error_clear(); }
                CHECK_INT(opd_transform_depth(), 0);
            }
        }
        CHECK(n > 20 && n < 2000);
    }
}
TEST(no_examples) {
    static const draw all[] = {ROW(rand), ROW(randperm), ROW(rand_like), ROW(normal_), ROW(bernoulli), ROW(dropout), ROW(native_dropout)};
    int i, m;
    for (i = 0; i < COUNT(all); i++) {
        for (m = OPD_RANDOM_DIFFERENT; m <= OPD_RANDOM_SAME; m++) {
            const int level = opd_vmap_begin(0, (opd_randomness)m);
            opd_tensor *x = opd_vmap_wrap(opd_ones(OPD_INTS(0, 10), OPD_FLOAT32), 0, level), *r;
            (void)snprintf(what, sizeof what, "%s without examples in mode %d", all[i].name, m);
            r = all[i].fn(x, NULL, OPD_INTS(10), NULL);
            if (m == OPD_RANDOM_SAME && all[i].fn == draw_bernoulli) { refused(r, SAME_BATCHED); r = NULL; }
            else { (void)went_well(r ? 0 : -1); }
            if (r) { r = opd_vmap_unwrap(r, 0, level); }
            if (r) { CHECK(opd_ndim(r) == 2 && opd_size(r, 0) == 0 && opd_size(r, 1) == 10); }
            (void)opd_vmap_end(level);
        }
    }
}
CHECK_MAIN()
