/* Dispatch keys: names, alias keys, key sets. */
#include "../inside.h"
#include "../check.h"

/* Parses and prints back. */
static const char *again(const char *name) { return opd_key_name(opd_key_parse(name)); }

static int covered(opd_key key) {
    uint8_t slots[OPD_KEY_SLOTS];
    int i, n = 0;
    inside_key_expand(key, slots);
    for (i = 0; i < OPD_KEY_SLOTS; i++) { n += slots[i]; }
    return n;
}

TEST(names_round_trip) {
    opd_key key;
    for (key = 0; key < OPD_KEY_COUNT; key++) {
        bool named = inside_key_is_runtime(key) || opd_key_is_alias(key) || inside_key_functionality(key) >= 0;
        bool user = key < OPD_F_COUNT && inside_functionality_is_user((int)key);
        if (named && !user) { CHECK_INT(opd_key_parse(opd_key_name(key)), key); }
        if (!named) { CHECK_STR(opd_key_name(key), "?"); }
    }
    CHECK(opd_ok());
}

TEST(names_of_pytorch) {
    static const char *const names[] = {
        "Undefined", "CPU", "CUDA", "Meta", "XLA", "SparseCUDA", "SparseCsrCPU", "QuantizedCPU", "NestedTensorCPU",
        "AutogradCPU", "AutogradCUDA", "AutogradMeta", "AutogradOther", "AutogradFunctionality", "AutocastCPU",
        "AutocastCUDA", "PrivateUse1", "AutogradPrivateUse1", "AutogradNestedTensor", "BackendSelect", "FPGA",
        "MAIA", "Vulkan", "Metal", "CustomRNGKeyId", "MkldnnCPU", "Fake", "FuncTorchDynamicLayerBackMode",
        "Functionalize", "Conjugate", "Negative", "ZeroTensor", "ADInplaceOrView", "Tracer", "FuncTorchBatched",
        "BatchedNestedTensor", "FuncTorchVmapMode", "FuncTorchGradWrapper", "FuncTorchDynamicLayerFrontMode",
        "PreDispatch", "Autograd", "CompositeImplicitAutograd", "FuncTorchBatchedDecomposition",
        "CompositeImplicitAutogradNestedTensor", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional"
    };
    size_t i;
    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) { CHECK_STR(again(names[i]), names[i]); }
    CHECK_INT(opd_key_parse("AutogradCPU"), OPD_KEY_AUTOGRAD_CPU);
    CHECK_INT(opd_key_parse("Meta"), OPD_KEY_META);
    CHECK_INT(opd_key_parse("AutogradOther"), OPD_KEY_AUTOGRAD_OTHER);
    CHECK(opd_ok());
}

TEST(legacy_spellings) {
    CHECK_STR(again("DefaultBackend"), "CompositeExplicitAutograd");
    CHECK_STR(again("Autocast"), "AutocastCUDA");
    CHECK_STR(again("CatchAll"), "Undefined");
    CHECK_STR(again("PrivateUse1_PreAutograd"), "AutogradPrivateUse1");
    CHECK_STR(again("PrivateUse3_PreAutograd"), "AutogradPrivateUse3");
    CHECK_STR(again("CPUTensorId"), "CPU");
    CHECK_STR(again("CUDATensorId"), "CUDA");
    CHECK(opd_ok());
}

#define OWN_KEY "; if it is a key of your program, call opd_key_define before the name is used"
TEST(unknown_names) {
    static const char *const bad[][2] = {
        {"", ""}, {"cpu", "; did you mean CPU"}, {"CPU ", "; did you mean CPU"}, {"UserKey12", OWN_KEY},
        {"Autograd CPU", "; did you mean AutogradCPU"}, {"AutogradCuda", "; did you mean AutogradCUDA"},
        {"ADInplaceOrViews", "; did you mean ADInplaceOrView"}, {"CompositeImplicit", OWN_KEY},
        {"QuantizedCPUU", "; did you mean QuantizedCPU"}, {"no such key at all", ""}
    };
    size_t i;
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char want[240];
        CHECK_INT(opd_key_parse(bad[i][0]), OPD_KEY_INVALID);
        snprintf(want, sizeof(want), "could not parse dispatch key: %s%s", bad[i][0], bad[i][1]);
        CHECK_STR(opd_error_message(), want);
        CHECK_INT(opd_error_code(), OPD_ERROR_NOT_FOUND);
        opd_error_clear();
    }
    CHECK_INT(opd_key_parse(NULL), OPD_KEY_INVALID);
    opd_error_clear();
    CHECK_STR(opd_key_name(-1), "?");
    CHECK_STR(opd_key_name(63), "?");
    CHECK_STR(opd_key_name(OPD_KEY_BACKEND_BASE + 15), "?");
    CHECK_STR(opd_key_name(OPD_KEY_COUNT), "?");
    CHECK_STR(opd_key_name(INT32_MAX), "?");
    CHECK_STR(opd_key_name(INT32_MIN), "?");
    CHECK_STR(opd_key_name(12), "UserKey12");
}

TEST(alias_keys) {
    CHECK_INT(covered(OPD_KEY_AUTOGRAD), 2 + 15);
    CHECK_INT(covered(OPD_KEY_COMPOSITE_EXPLICIT), 4 * 15 + 6 + 1);
    CHECK_INT(covered(OPD_KEY_COMPOSITE_EXPLICIT_NON_FUNCTIONAL), 3 * 13 + 6 + 1);
    CHECK_INT(covered(OPD_KEY_COMPOSITE_IMPLICIT), 4 * 15 + 6 + 1 + 17 + 15 + 1);
    CHECK_INT(covered(OPD_KEY_COMPOSITE_IMPLICIT_NESTED_TENSOR), 15 + 1);
    CHECK_INT(covered(OPD_KEY_FUNCTORCH_BATCHED_DECOMPOSITION), 1);
    CHECK_INT(covered(OPD_KEY_CPU), 1);
    CHECK_INT(covered(OPD_KEY_OF(OPD_F_DENSE)), 0);
    CHECK_INT(covered(OPD_KEY_INVALID), 0);
    CHECK(!inside_key_covers(OPD_KEY_COMPOSITE_EXPLICIT_NON_FUNCTIONAL, OPD_KEY_PER_BACKEND(2, OPD_CPU)));
    CHECK(inside_key_covers(OPD_KEY_COMPOSITE_EXPLICIT_NON_FUNCTIONAL, OPD_KEY_PER_BACKEND(3, OPD_CPU)));
    CHECK(!inside_key_covers(OPD_KEY_COMPOSITE_EXPLICIT_NON_FUNCTIONAL, OPD_KEY_PER_BACKEND(1, OPD_XLA)));
    CHECK(!inside_key_covers(OPD_KEY_COMPOSITE_EXPLICIT, OPD_KEY_PER_BACKEND(4, OPD_CPU)));
    CHECK(inside_key_covers(OPD_KEY_COMPOSITE_IMPLICIT, OPD_KEY_OF(OPD_F_FUNCTIONALIZE)));
    CHECK(inside_key_covers(OPD_KEY_COMPOSITE_IMPLICIT, OPD_KEY_UNDEFINED));
    CHECK(!inside_key_covers(OPD_KEY_AUTOGRAD, OPD_KEY_UNDEFINED));
    CHECK(opd_key_is_alias(OPD_KEY_AUTOGRAD) && !opd_key_is_alias(OPD_KEY_AUTOGRAD_OTHER));
}

TEST(autograd_key_above) {
    CHECK_STR(opd_key_name(inside_autograd_key_of(OPD_KEY_CUDA)), "AutogradCUDA");
    CHECK_STR(opd_key_name(inside_autograd_key_of(opd_key_parse("FPGA"))), "AutogradOther");
    CHECK_STR(opd_key_name(inside_autograd_key_of(opd_key_parse("SparseCPU"))), "AutogradOther");
    CHECK_STR(opd_key_name(inside_autograd_key_of(opd_key_parse("SparseCsrMeta"))), "AutogradOther");
    CHECK_STR(opd_key_name(inside_autograd_key_of(opd_key_parse("QuantizedCPU"))), "AutogradOther");
    CHECK_STR(opd_key_name(inside_autograd_key_of(opd_key_parse("NestedTensorCPU"))), "AutogradNestedTensor");
    CHECK_INT(inside_autograd_key_of(OPD_KEY_BACKEND_SELECT), OPD_KEY_UNDEFINED);
    CHECK_INT(inside_autograd_key_of(OPD_KEY_AUTOGRAD_CPU), OPD_KEY_UNDEFINED);
    CHECK(inside_key_is_backend(OPD_KEY_CPU) && !inside_key_is_backend(OPD_KEY_UNDEFINED));
    CHECK(!inside_key_is_backend(opd_key_parse("NestedTensorCPU")));
    CHECK(inside_key_in_autograd_other(opd_key_parse("MkldnnCPU")) && !inside_key_in_autograd_other(OPD_KEY_CPU));
}

TEST(sets_single) {
    opd_key key;
    for (key = 1; key < OPD_KEY_SLOTS; key++) {
        opd_keyset s;
        if (!inside_key_is_runtime(key)) { continue; }
        s = opd_keyset_add(OPD_KEYS_EMPTY, key);
        CHECK(opd_keyset_has(s, key));
        CHECK_INT(opd_keyset_highest(s), key);
        CHECK_INT(inside_slot_of(s), key);
        CHECK_INT(opd_keyset_remove(s, key).functionality, 0);
        CHECK(opd_keyset_remove(s, key).backends == s.backends);
    }
    CHECK(opd_ok());
}

TEST(sets_pairs_take_the_highest) {
    opd_key a, b;
    for (a = 1; a < OPD_F_COUNT; a++) {
        for (b = a; b < OPD_F_COUNT; b++) {
            opd_keyset s = opd_keyset_add(opd_keyset_add(OPD_KEYS_EMPTY, a), b);
            s.backends = 2;
            CHECK_INT(inside_key_functionality(opd_keyset_highest(s)), b);
        }
    }
    for (a = 0; a < OPD_BACKEND_COUNT; a++) {
        for (b = a; b < OPD_BACKEND_COUNT; b++) {
            opd_keyset s = opd_keyset_add(opd_keyset_add(OPD_KEYS_EMPTY, OPD_KEY_PER_BACKEND(2, a)),
                                          OPD_KEY_PER_BACKEND(5, b));
            CHECK_INT(opd_keyset_highest(s), OPD_KEY_PER_BACKEND(5, b));
            CHECK(opd_keyset_has(s, OPD_KEY_PER_BACKEND(5, a)) && opd_keyset_has(s, OPD_KEY_PER_BACKEND(2, b)));
        }
    }
}

TEST(sets_edges) {
    opd_keyset all = opd_keyset_make(~(uint64_t)0, ~(uint64_t)0), dense = opd_keyset_make(OPD_BIT_OF(OPD_F_DENSE), 0);
    CHECK_INT(opd_keyset_highest(OPD_KEYS_EMPTY), OPD_KEY_UNDEFINED);
    CHECK_INT(inside_slot_of(OPD_KEYS_EMPTY), 0);
    CHECK_INT(opd_keyset_highest(all), OPD_KEY_OF(OPD_F_PRE_DISPATCH));
    CHECK(inside_slot_of(all) >= 0 && inside_slot_of(all) < OPD_KEY_SLOTS);
    CHECK_INT(opd_keyset_highest(dense), OPD_KEY_UNDEFINED);
    CHECK(opd_keyset_has(dense, OPD_KEY_OF(OPD_F_DENSE)) && !opd_keyset_has(dense, OPD_KEY_CPU));
    CHECK_INT(opd_keyset_highest(opd_keyset_make(OPD_BIT_OF(OPD_F_DENSE), ~(uint64_t)0)), OPD_KEY_META);
    CHECK(!opd_keyset_has(all, OPD_KEY_UNDEFINED) && !opd_keyset_has(all, OPD_KEY_AUTOGRAD));
    CHECK(opd_ok());
    CHECK(opd_keyset_add(OPD_KEYS_EMPTY, OPD_KEY_AUTOGRAD).functionality == 0);
    CHECK_STR(opd_error_message(), "alias key Autograd cannot be in a key set");
    opd_error_clear();
    CHECK(opd_keyset_add(OPD_KEYS_EMPTY, 100000).functionality == 0 && !opd_ok());
    opd_error_clear();
}

/* c10/test/core/DispatchKeySet_test.cpp, as far as our keys go. */
static opd_keyset set_of(const char *a, const char *b, const char *c) {
    opd_keyset s = opd_keyset_add(OPD_KEYS_EMPTY, opd_key_parse(a));
    if (b) { s = opd_keyset_add(s, opd_key_parse(b)); }
    return c ? opd_keyset_add(s, opd_key_parse(c)) : s;
}
TEST(sets_algebra) {
    opd_keyset a = set_of("CPU", "AutogradCPU", "Tracer"), b = set_of("CUDA", "Tracer", NULL), e = OPD_KEYS_EMPTY;
    CHECK(opd_keyset_is_empty(e) && !opd_keyset_is_empty(a));
    CHECK(opd_keyset_has_all(a, set_of("CPU", "Tracer", NULL)) && opd_keyset_has_all(a, e));
    CHECK(!opd_keyset_has_all(a, b));
    CHECK(opd_keyset_has_any(a, b) && !opd_keyset_has_any(a, set_of("FuncTorchBatched", NULL, NULL)));
    CHECK(opd_keyset_equal(opd_keyset_xor(a, a), e) && opd_keyset_equal(opd_keyset_or(a, e), a));
    CHECK(opd_keyset_equal(opd_keyset_xor(opd_keyset_xor(a, b), b), a));
    /* only functionalities go: the CPU bit stays, so what is left is not a set without a backend */
    CHECK(opd_keyset_equal(opd_keyset_minus(a, a), opd_keyset_make(0, (uint64_t)1 << OPD_CPU)));
    CHECK(opd_keyset_equal(opd_keyset_minus(a, set_of("AutogradCUDA", NULL, NULL)), set_of("CPU", "Tracer", NULL)));
    CHECK(opd_keyset_equal(opd_keyset_remove_backend(a, OPD_CPU), opd_keyset_make(a.functionality, 0)));
    CHECK_INT(opd_keyset_highest(opd_keyset_remove_backend(set_of("AutogradCPU", "AutogradCUDA", NULL), OPD_CUDA)),
              OPD_KEY_AUTOGRAD_CPU);
    CHECK(opd_ok());
}
TEST(sets_full_and_below) {
    opd_keyset full = OPD_KEYS_FULL, below = opd_keyset_and(full, opd_keyset_below(OPD_F_AUTOGRAD_OTHER));
    int f;
    for (f = 1; f < OPD_F_COUNT; f++) {
        CHECK(opd_keyset_has(full, (opd_key)f));
        CHECK(opd_keyset_has(below, (opd_key)f) == (f < OPD_F_AUTOGRAD_OTHER));
    }
    CHECK_INT(opd_keyset_highest(full), OPD_KEY_OF(OPD_F_PRE_DISPATCH));
    CHECK(opd_keyset_has_all(full, below) && !opd_keyset_has_all(below, full));
    CHECK(!opd_keyset_has_any(below, OPD_KEYS_AUTOGRAD) && opd_keyset_has(below, OPD_KEY_AD_INPLACE_OR_VIEW));
    CHECK(opd_keyset_has(OPD_KEYS_AUTOGRAD_AND_VIEW, OPD_KEY_AD_INPLACE_OR_VIEW));
}
/* Iterating a set gives the runtime keys from low to high, and a per-backend functionality once for each backend. */
TEST(sets_iterate) {
    opd_keyset s = set_of("AutogradCPU", "SparseCUDA", "ADInplaceOrView"), all = OPD_KEYS_FULL;
    static const char *const want[] = {"SparseCPU", "SparseCUDA", "ADInplaceOrView", "AutogradCPU", "AutogradCUDA"};
    opd_keyset seen = OPD_KEYS_EMPTY;
    opd_key k, last = 0;
    int n = 0;
    for (k = opd_keyset_next(s, 0); k; k = opd_keyset_next(s, k)) { CHECK_STR(opd_key_name(k), want[n++ % 5]); }
    CHECK_INT(n, 5);
    for (n = 0, k = opd_keyset_next(all, 0); k; last = k, k = opd_keyset_next(all, k)) {
        CHECK(inside_key_is_runtime(k) && inside_key_functionality(last) <= inside_key_functionality(k));
        seen = opd_keyset_add(seen, k);
        n++;
    }
    CHECK_INT(n, 62 - 7 + 7 * OPD_BACKEND_COUNT);
    CHECK(opd_keyset_equal(seen, all));
    CHECK_INT(opd_keyset_next(OPD_KEYS_EMPTY, 0), OPD_KEY_UNDEFINED);
    CHECK_INT(opd_keyset_next(opd_keyset_make(OPD_BIT_OF(OPD_F_DENSE), 0), 0), OPD_KEY_UNDEFINED);
}

/* Four keys that nobody has taken lie between any two neighbouring layers. */
TEST(user_keys_in_every_gap) {
    static const int layers[] = {OPD_F_NESTED_TENSOR, OPD_F_BACKEND_SELECT, OPD_F_FAKE, OPD_F_AD_INPLACE_OR_VIEW,
                                 OPD_F_AUTOGRAD_OTHER, OPD_F_TRACER, OPD_F_AUTOCAST, OPD_F_BATCHED, OPD_F_PRE_DISPATCH};
    size_t i;
    int f;
    for (i = 0; i + 1 < sizeof layers / sizeof layers[0]; i++) {
        int users = 0;
        for (f = layers[i] + 1; f < layers[i + 1]; f++) { users += inside_functionality_is_user(f); }
        CHECK_INT(users, 4);
    }
}

TEST(sets_print) {
    char buf[256], small[12];
    opd_keyset s = opd_keyset_add(opd_keyset_add(OPD_KEYS_EMPTY, OPD_KEY_AUTOGRAD_CPU), OPD_KEY_CPU);
    CHECK_INT(opd_keyset_print(OPD_KEYS_EMPTY, buf, sizeof buf), strlen("DispatchKeySet()"));
    CHECK_STR(buf, "DispatchKeySet()");
    CHECK_INT(opd_keyset_print(s, buf, sizeof buf), strlen("DispatchKeySet(CPU, AutogradCPU)"));
    CHECK_STR(buf, "DispatchKeySet(CPU, AutogradCPU)");
    s = opd_keyset_add(s, OPD_KEY_PER_BACKEND(2, OPD_CUDA));
    s = opd_keyset_add(s, OPD_KEY_AD_INPLACE_OR_VIEW);
    CHECK_INT(opd_keyset_print(s, buf, sizeof buf), strlen("DispatchKeySet(CPU, CUDA, SparseCPU, SparseCUDA, "
              "ADInplaceOrView, AutogradCPU, AutogradCUDA)"));
    CHECK_STR(buf, "DispatchKeySet(CPU, CUDA, SparseCPU, SparseCUDA, "
              "ADInplaceOrView, AutogradCPU, AutogradCUDA)");
    CHECK_INT(opd_keyset_print(s, small, sizeof small), strlen(buf));
    CHECK_STR(small, "DispatchKey");
    small[0] = 'x';
    CHECK_INT(opd_keyset_print(s, small, 0), strlen(buf));
    CHECK(small[0] == 'x');
}

TEST(user_key_names) {
    inside_name_user_key(OPD_F_USER_3, "MyLayer");
    CHECK_STR(opd_key_name(OPD_F_USER_3), "MyLayer");
    CHECK_INT(opd_key_parse("MyLayer"), OPD_F_USER_3);
    inside_name_user_key(OPD_F_USER_3, NULL);
    CHECK_STR(opd_key_name(OPD_F_USER_3), "UserKey32");
    CHECK(opd_ok());
}

CHECK_MAIN()
