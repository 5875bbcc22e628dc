#include "types.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>keys         dispatch keys, alias keys, key sets
//
//  Names and numbers of keys, the meaning of alias keys, and the arithmetic of key sets (c10/core/DispatchKey.h,
//  c10/core/DispatchKeySet.cpp).  Everything is derived from the tables below.  This section uses only the error
//  functions, and does not depend on operators.
//----------------------------------------------------------------------------------------------------------------------

OPDI_INTERNAL int opdi_key_functionality(opd_key key);
OPDI_INTERNAL bool opdi_key_is_runtime(opd_key key);
OPDI_INTERNAL bool opdi_key_covers(opd_key alias, opd_key slot);
#define OPDI_FUNCTIONALITY_MASK (((uint64_t)1 << (OPD_F_COUNT - 1)) - 1)

/* Bits of the role of a functionality.  There is a bit for each alias key that contains the functionality, in the order
   of the enum of keys, and two more bits. */
#define OPDI_BY_AUTOGRAD 1u                       /* in Autograd */
#define OPDI_BY_IMPLICIT 2u                       /* in CompositeImplicitAutograd */
#define OPDI_BY_BATCHED 4u                        /* in FuncTorchBatchedDecomposition */
#define OPDI_BY_NESTED 8u                         /* in CompositeImplicitAutogradNestedTensor */
#define OPDI_BY_EXPLICIT 16u                      /* in CompositeExplicitAutograd */
#define OPDI_BY_NON_FUNCTIONAL 32u                /* in CompositeExplicitAutogradNonFunctional, except for XLA and
                                                     Lazy */
#define OPDI_IS_BACKEND 64u                       /* is a backend: see opdi_key_is_backend */
#define OPDI_IN_OTHER 128u                        /* a backend whose autograd key is AutogradOther */

#define OPDI_COMPOSITE_ROLE (OPDI_BY_IMPLICIT | OPDI_BY_EXPLICIT)
#define OPDI_UNDEFINED_ROLE (OPDI_COMPOSITE_ROLE | OPDI_BY_NON_FUNCTIONAL)
#define OPDI_DENSE_ROLE (OPDI_UNDEFINED_ROLE | OPDI_IS_BACKEND)
#define OPDI_OTHER_ROLE (OPDI_DENSE_ROLE | OPDI_IN_OTHER)
#define OPDI_SPARSE_ROLE (OPDI_COMPOSITE_ROLE | OPDI_IS_BACKEND | OPDI_IN_OTHER)
#define OPDI_GRAD_ROLE (OPDI_BY_AUTOGRAD | OPDI_BY_IMPLICIT)

/* Names and roles of the functionalities, indexed by functionality. */
typedef struct opdi_functionality { const char *name; uint32_t role; } opdi_functionality;
static const opdi_functionality opdi_functionalities[64] = {
    {"Undefined", OPDI_UNDEFINED_ROLE},
    {"Dense", OPDI_DENSE_ROLE}, {"FPGA", OPDI_OTHER_ROLE}, {"MAIA", OPDI_OTHER_ROLE}, {"Vulkan", OPDI_OTHER_ROLE},
    {"Metal", OPDI_OTHER_ROLE}, {"Quantized", OPDI_OTHER_ROLE}, {"CustomRNGKeyId", OPDI_OTHER_ROLE},
    {"MkldnnCPU", OPDI_OTHER_ROLE}, {"Sparse", OPDI_SPARSE_ROLE}, {"SparseCsr", OPDI_OTHER_ROLE},
    {"NestedTensor", OPDI_BY_IMPLICIT | OPDI_BY_NESTED},
    {"UserKey12", 0}, {"UserKey13", 0}, {"UserKey14", 0}, {"UserKey15", 0},
    {"BackendSelect", 0},
    {"UserKey17", 0}, {"UserKey18", 0}, {"UserKey19", 0}, {"UserKey20", 0},
    {"Fake", 0}, {OPDI_TEXT("FuncTorchDynamicLayerBackMode"), 0}, {"Functionalize", OPDI_BY_IMPLICIT}, {"Conjugate", 0},
    {"Negative", 0}, {"ZeroTensor", 0},
    {"UserKey27", 0}, {"UserKey28", 0}, {"UserKey29", 0}, {"UserKey30", 0},
    {"ADInplaceOrView", 0},
    {"UserKey32", 0}, {"UserKey33", 0}, {"UserKey34", 0}, {"UserKey35", 0},
    {"AutogradOther", OPDI_GRAD_ROLE}, {"AutogradFunctionality", OPDI_GRAD_ROLE},
    {"AutogradNestedTensor", OPDI_GRAD_ROLE | OPDI_BY_NESTED},
    {"UserKey39", 0}, {"UserKey40", 0}, {"UserKey41", 0}, {"UserKey42", 0},
    {"Tracer", 0},
    {"UserKey44", 0}, {"UserKey45", 0}, {"UserKey46", 0}, {"UserKey47", 0},
    {"AutocastFunctionality", 0},
    {"UserKey49", 0}, {"UserKey50", 0}, {"UserKey51", 0}, {"UserKey52", 0},
    {"FuncTorchBatched", OPDI_BY_BATCHED}, {"BatchedNestedTensor", 0}, {"FuncTorchVmapMode", 0},
    {"FuncTorchGradWrapper", 0}, {OPDI_TEXT("FuncTorchDynamicLayerFrontMode"), 0},
    {"UserKey58", 0}, {"UserKey59", 0}, {"UserKey60", 0}, {"UserKey61", 0},
    {"PreDispatch", 0}, {NULL, 0}
};

/* The names that user keys were given at run time; NULL if a key has no name.  Names are written under opdi_key_lock,
   with OPDI_PUBLISH, and the strings are never freed.  The table is read without a lock. */
OPDI_INTERNAL const char *opdi_user_names[64];

/* The functionality of each row of per-backend keys.  A row has a key for each backend. */
OPDI_INTERNAL const uint8_t opdi_row_functionality[OPDI_ROWS] = {
    OPD_F_DENSE, OPD_F_QUANTIZED, OPD_F_SPARSE, OPD_F_SPARSE_CSR, OPD_F_NESTED_TENSOR, OPD_F_AUTOGRAD, OPD_F_AUTOCAST
};

/* Names of the per-backend keys, by row and backend. */
#define OPDI_ROW_NAMES(p) {p "CPU", p "CUDA", p "HIP", p "XLA", p "MPS", p "IPU", p "XPU", p "HPU", p "VE", p "Lazy", \
    p "MTIA", p "PrivateUse1", p "PrivateUse2", p "PrivateUse3", p "Meta"}
OPDI_INTERNAL const char opdi_row_names[OPDI_ROWS][OPD_BACKEND_COUNT][24] = {
    OPDI_ROW_NAMES(""), OPDI_ROW_NAMES("Quantized"), OPDI_ROW_NAMES("Sparse"), OPDI_ROW_NAMES("SparseCsr"),
    OPDI_ROW_NAMES("NestedTensor"), OPDI_ROW_NAMES("Autograd"), OPDI_ROW_NAMES("Autocast")
};

static const char *const opdi_alias_names[OPD_KEY_COUNT - OPD_KEY_SLOTS] = {
    "Autograd", "CompositeImplicitAutograd", OPDI_TEXT("FuncTorchBatchedDecomposition"),
    OPDI_TEXT("CompositeImplicitAutogradNestedTensor"), "CompositeExplicitAutograd",
    OPDI_TEXT("CompositeExplicitAutogradNonFunctional")
};

/* Key names of older versions. */
typedef struct opdi_old_key { const char *name; opd_key key; } opdi_old_key;
static const opdi_old_key opdi_old_keys[] = {
    {"DefaultBackend", OPD_KEY_COMPOSITE_EXPLICIT}, {"Autocast", OPD_KEY_PER_BACKEND(6, OPD_CUDA)},
    {"CatchAll", OPD_KEY_UNDEFINED}, {"CPUTensorId", OPD_KEY_CPU}, {"CUDATensorId", OPD_KEY_CUDA},
    {"PrivateUse1_PreAutograd", OPD_KEY_PER_BACKEND(5, OPD_PRIVATEUSE1)},
    {"PrivateUse2_PreAutograd", OPD_KEY_PER_BACKEND(5, OPD_PRIVATEUSE2)},
    {"PrivateUse3_PreAutograd", OPD_KEY_PER_BACKEND(5, OPD_PRIVATEUSE3)},
    {"ORT", OPD_KEY_OF(OPD_F_MAIA)}
};

/* Numbers of keys */

/* Returns the functionality of the key, or -1 for an alias key or a number that is not a key. */
OPDI_INTERNAL int opdi_key_functionality(opd_key key) {
    if (key >= 0 && key < OPD_F_COUNT) { return (int)key; }
    if (key < OPD_KEY_BACKEND_BASE || key >= OPD_KEY_SLOTS || (key & 15) >= OPD_BACKEND_COUNT) { return -1; }
    return opdi_row_functionality[(key - OPD_KEY_BACKEND_BASE) >> 4];
}

/* Returns the backend of a per-backend key, or -1 for any other key. */
OPDI_INTERNAL int opdi_key_backend(opd_key key) {
    return key >= OPD_KEY_BACKEND_BASE && opdi_key_functionality(key) >= 0 ? (int)(key & 15) : -1;
}

OPDI_INTERNAL bool opdi_functionality_per_backend(int functionality) {
    return opdi_key_base[functionality] >= OPD_KEY_BACKEND_BASE;
}

/* Returns true if the key is a slot of the dispatch table. "Dense" and the other six per-backend functionalities are
   slots only together with a backend. */
OPDI_INTERNAL bool opdi_key_is_runtime(opd_key key) {
    int functionality = opdi_key_functionality(key);
    return functionality >= 0 && (key >= OPD_KEY_BACKEND_BASE || !opdi_functionality_per_backend(functionality));
}

OPD_API bool opd_key_is_alias(opd_key key) { return key >= OPD_KEY_SLOTS && key < OPD_KEY_COUNT; }

/* Returns the role bits of a slot, or 0 if the key is not a slot. */
static uint32_t opdi_key_role(opd_key slot) {
    int functionality = opdi_key_functionality(slot);
    return functionality >= 0 && opdi_key_is_runtime(slot) ? opdi_functionalities[functionality].role : 0;
}

/* Meaning of alias keys */

OPDI_COLD_BEGIN
/* Returns true if a registration at the key `alias` fills `slot` of the dispatch table.  A key that is not an alias key
   fills only its own slot. */
OPDI_INTERNAL bool opdi_key_covers(opd_key alias, opd_key slot) {
    uint32_t role = opdi_key_role(slot);
    int backend = opdi_key_backend(slot);
    if (!opd_key_is_alias(alias)) { return alias == slot && opdi_key_is_runtime(slot); }
    uint32_t bit = 1u << (alias - OPD_KEY_SLOTS);
    if (bit == OPDI_BY_NON_FUNCTIONAL && (backend == OPD_XLA || backend == OPD_LAZY)) { return false; }
    return (role & bit) != 0;
}
OPDI_COLD_END

/* Sets slots_out[OPD_KEY_SLOTS]: an element is 1 if the key fills that slot, else 0. */
OPDI_INTERNAL void opdi_key_expand(opd_key key, uint8_t *slots_out) {
    for (opd_key slot = 0; slot < OPD_KEY_SLOTS; slot++) { slots_out[slot] = opdi_key_covers(key, slot); }
}

/* Returns true if the slot belongs to a backend.  A kernel in such a slot hides the operator's
   CompositeImplicitAutograd kernel from the backend's autograd key. */
OPD_UNUSED OPDI_INTERNAL bool opdi_key_is_backend(opd_key slot) { return (opdi_key_role(slot) & OPDI_IS_BACKEND) != 0; }

/* Returns true if the slot belongs to a backend that has no separate autograd key and uses AutogradOther. */
OPDI_INTERNAL bool opdi_key_in_autograd_other(opd_key slot) { return (opdi_key_role(slot) & OPDI_IN_OTHER) != 0; }

OPDI_COLD_BEGIN
/* Returns the autograd slot above a backend slot, or Undefined if there is none. */
OPDI_INTERNAL opd_key opdi_autograd_key_of(opd_key backend_slot) {
    int functionality = opdi_key_is_runtime(backend_slot) ? opdi_key_functionality(backend_slot) : OPD_F_UNDEFINED;
    if (functionality == OPD_F_DENSE) { return OPD_KEY_PER_BACKEND(5, opdi_key_backend(backend_slot)); }
    if (functionality == OPD_F_NESTED_TENSOR) { return OPD_KEY_OF(OPD_F_AUTOGRAD_NESTED_TENSOR); }
    return opdi_key_in_autograd_other(backend_slot) ? OPD_KEY_AUTOGRAD_OTHER : OPD_KEY_UNDEFINED;
}

/* Names of keys */

/* Returns true if name consists of letters, digits and _, and does not begin with a digit. */
OPDI_INTERNAL bool opdi_is_identifier(const char *name) {
    const char *text = name;
    while ((*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') || *text == '_' ||
           (text > name && *text >= '0' && *text <= '9')) {
        text++;
    }
    return text > name && !*text;
}

/* Returns the name given to a user key.  Returns NULL if it has no name or the functionality is not a user key. */
static const char *opdi_user_name(int functionality) { return OPDI_ACQUIRE(&opdi_user_names[functionality]); }

/* Returns true if the functionality is a user key.  The table calls it "UserKey..." until it gets a name. */
OPDI_INTERNAL bool opdi_functionality_is_user(int functionality) {
    const char *name = opdi_functionalities[functionality].name;
    return name[0] == 'U' && name[1] == 's';      /* "UserKey12" */
}

static const char *opdi_functionality_name(int functionality) {
    const char *name = opdi_user_name(functionality);
    return name ? name : opdi_functionalities[functionality].name;
}

OPD_API const char *opd_key_name(opd_key key) {
    const opdi_given_name *given;
    int functionality = opdi_key_functionality(key);
    if (key == OPDI_KEY_JVP) { return "forward mode"; }
    if (opd_key_is_alias(key)) { return opdi_alias_names[key - OPD_KEY_SLOTS]; }
    if (functionality < 0) { return "?"; }
    if (key < OPD_KEY_BACKEND_BASE) { return opdi_functionality_name(functionality); }
    if ((given = opdi_given_name_of(key & 15)) != NULL) { return given->keys[(key - OPD_KEY_BACKEND_BASE) >> 4]; }
    return opdi_row_names[(key - OPD_KEY_BACKEND_BASE) >> 4][key & 15];
}

/* Returns the key with this name.  Returns OPD_KEY_INVALID, without an error, if there is none.  A user key is found
   only by the name that it was given. */
OPDI_INTERNAL opd_key opdi_key_find(const char *name) {
#define OPDI_IS(known) ((known)[0] == name[0] && strcmp(known, name) == 0)
    for (size_t i = 0; i < OPD_KEY_COUNT - OPD_KEY_SLOTS; i++) {
        if (OPDI_IS(opdi_alias_names[i])) { return (opd_key)i + OPD_KEY_SLOTS; }
    }
    for (int row = 0; row < OPDI_ROWS; row++) {
        /* a backend's key, by PyTorch's name or by the name that the backend was given */
        for (int bit_at = 0; bit_at < OPD_BACKEND_COUNT; bit_at++) {
            const opdi_given_name *given = opdi_given_name_of(bit_at);
            if (OPDI_IS(opdi_row_names[row][bit_at]) || (given && OPDI_IS(given->keys[row]))) {
                return OPD_KEY_PER_BACKEND(row, bit_at);
            }
        }
    }
    for (int functionality = 0; functionality < OPD_F_COUNT; functionality++) {
        if (opdi_functionality_is_user(functionality) && !opdi_user_name(functionality)) { continue; }
        if (OPDI_IS(opdi_functionality_name(functionality))) { return (opd_key)functionality; }
    }
    for (size_t i = 0; i < sizeof(opdi_old_keys) / sizeof(opdi_old_keys[0]); i++) {
        if (OPDI_IS(opdi_old_keys[i].name)) { return opdi_old_keys[i].key; }
    }
#undef OPDI_IS
    return OPD_KEY_INVALID;
}

static int opdi_lower(char letter) { return letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter; }

/* Returns the edit distance of two names, ignoring case, or `most` + 1 if the distance is larger than `most`, which is
   at most 3.  Error messages with "did you mean" use it.  Cells of the table that are farther than `most` from the
   diagonal are not computed, because they are larger than `most`. */
OPDI_INTERNAL int opdi_distance(const char *first, const char *second, int most) {
    int row[2][72], na = (int)strlen(first), nb = (int)strlen(second);
    if (na > 64 || nb > 64 || abs(na - nb) > most) { return most + 1; }
    for (int j = 0; j <= nb + most + 1; j++) {
        row[0][j] = j;
        row[1][j] = most + 1;
    }
    for (int i = 1; i <= na; i++) {
        int *cur = row[i & 1], *old = row[(i + 1) & 1], least = most + 1;
        const int from = OPDI_MAX(1, i - most), to = OPDI_MIN(nb, i + most);
        cur[from - 1] = from == 1 ? i : most + 1;
        for (int j = from; j <= to; j++) {
            int cost = old[j - 1] + (opdi_lower(first[i - 1]) != opdi_lower(second[j - 1]));
            cost = OPDI_MIN(cost, old[j] + 1);
            cur[j] = OPDI_MIN(cost, cur[j - 1] + 1);
            least = OPDI_MIN(least, cur[j]);
        }
        cur[to + 1] = most + 1;
        if (least > most && cur[from - 1] > most) { return most + 1; }
    }
    return OPDI_MIN(row[na & 1][nb], most + 1);
}

/* Returns true if `known` ends with `name`, after a '.' or '/', as "model/0.weight" ends with "0.weight". */
static bool opdi_ends_with_name(const char *known, const char *name) {
    const size_t length = strlen(known), wanted = strlen(name);
    return length > wanted && strchr("./", known[length - wanted - 1]) && strcmp(known + length - wanted, name) == 0;
}
/* Writes the end of an error about a `name` that is not among the names at(owner, 0), at(owner, 1), ..., which NULL
   ends: the most similar one of the first 10,000 names, or else the function `lister`, which returns the names.
   Returns text. */
OPDI_INTERNAL const char *opdi_did_you_mean(char text[400], const char *name, opdi_name_at at, const void *owner,
                                            const char *lister) {
    const char *known, *best = NULL;
    const int most = name ? OPDI_MIN(3, (int)(strlen(name) / 2)) : -1;
    int least = most + 1;
    for (int64_t i = 0; i < 10000 && least > 0 && (known = at(owner, i)) != NULL; i++) {
        const int distance = opdi_ends_with_name(known, name) ? 0 : opdi_distance(known, name, most);
        if (distance < least) {
            least = distance;
            best = known;
        }
    }
    if (best) { (void)snprintf(text, 400, "; did you mean '%.300s'", best); }
    else { (void)snprintf(text, 400, "; %s returns the names that are there", lister); }
    return text;
}

/* Names that exist in PyTorch but not here, or no longer exist. */
static const struct { const char *name, *hint; } opdi_other_keys[] = {
    {"Batched", OPDI_TEXT("batching rules are registered at FuncTorchBatched (opd_vmap_register)")},
    {"VmapMode", "it is FuncTorchVmapMode"},
    {"Math", OPDI_TEXT("it is CompositeImplicitAutograd")},
    {"VariableTypeId", "it is Autograd"},
    {"Python", OPDI_TEXT("for a mode, use a user key (opd_key_define)")},
    {"PythonTLSSnapshot", OPDI_TEXT("for a mode, use a user key (opd_key_define)")},
    {"PythonDispatcher", OPDI_TEXT("for a mode, use a user key (opd_key_define)")},
    {"Named", OPDI_TEXT("named tensors are not supported")}};
/* Returns the key with this name.  If there is none, returns OPD_KEY_INVALID and sets an error that names the
   replacement of a former PyTorch key, or the most similar names. */
OPD_API opd_key opd_key_parse(const char *name) {
    opd_key key = name ? opdi_key_find(name) : (opd_key)OPD_KEY_INVALID;
    char near_text[200];
    size_t length = 0;
    if (key != OPD_KEY_INVALID) { return key; }
    near_text[0] = 0;
    for (size_t i = 0; name && i < sizeof opdi_other_keys / sizeof *opdi_other_keys; i++) {
        if (strcmp(opdi_other_keys[i].name, name) != 0) { continue; }
        length += (size_t)snprintf(near_text, sizeof near_text, "; %s", opdi_other_keys[i].hint);
    }
    for (int distance = 0; name && length == 0 && distance <= OPDI_MIN(3, (int)strlen(name) / 2); distance++) {
        for (key = 0; key < OPD_KEY_COUNT && length < 120; key++) {
            const char *known = opd_key_name(key);
            if (opdi_distance(name, known, 3) != distance || opdi_key_find(known) != key) { continue; }
            length += (size_t)snprintf(near_text + length, sizeof near_text - length, "%s%s",
                                       length ? ", " : "; did you mean ", known);
        }
    }
    if (name && length == 0 && opdi_is_identifier(name)) {
        (void)snprintf(near_text, sizeof near_text, "; if it is a key of your program, call opd_key_define before the "
                       "name is used");
    }
    (void)opd_fail(OPD_ERROR_NOT_FOUND, "could not parse dispatch key: %s%s", name ? name : "NULL", near_text);
    return OPD_KEY_INVALID;
}
OPDI_COLD_END

/* Key sets */

/* Returns the index of the highest set bit of bits, which must not be 0. */
static inline int opdi_highest_bit(uint64_t bits) {
#if defined(__GNUC__) && !defined(__TINYC__)
    return 63 ^ __builtin_clzll(bits);
#else
    int count = 0;
    for (int step = 32; step > 0; step >>= 1) {
        if (bits >> step) {
            bits >>= step;
            count += step;
        }
    }
    return count;
#endif
}

/* Returns the index in the dispatch table of the highest key in `set`, or 0 (Undefined) for the empty set.  A
   per-backend functionality without a backend counts as the CPU's, as in PyTorch. */
OPDI_INTERNAL int opdi_slot_of(opd_keyset set) {
    int base = opdi_key_base[opdi_highest_bit(set.functionality << 1 | 1)];
    int backend = opdi_highest_bit((set.backends & OPDI_BACKEND_MASK) | 1);
    return base + (backend & -(base >> 6 != 0));
}

/* Returns the key set of a single key.  The set is empty for Undefined, an alias key or a number that is not a key. */
OPDI_INTERNAL opd_keyset opdi_keyset_of(opd_key key) {
    int functionality = opdi_key_functionality(key), backend = opdi_key_backend(key);
    return opd_keyset_make(functionality > 0 ? OPD_BIT_OF(functionality) : 0,
                           backend >= 0 ? (uint64_t)1 << backend : 0);
}

OPD_API opd_keyset opd_keyset_add(opd_keyset set, opd_key key) {
    if (opdi_key_functionality(key) < 0) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, opd_key_is_alias(key) ? "alias key %s cannot be in a key set"
                       : "%s: not a dispatch key, so it cannot be in a key set", opd_key_name(key));
    }
    return opd_keyset_or(set, opdi_keyset_of(key));
}

OPD_API opd_keyset opd_keyset_remove(opd_keyset set, opd_key key) {
    return opd_keyset_make(set.functionality & ~opdi_keyset_of(key).functionality, set.backends);
}

OPD_API bool opd_keyset_has(opd_keyset set, opd_key key) {
    opd_keyset keys = opdi_keyset_of(key);
    return (set.functionality & keys.functionality) != 0 && (set.backends & keys.backends) == keys.backends;
}

OPD_API opd_key opd_keyset_highest(opd_keyset set) {
    set.functionality &= OPDI_FUNCTIONALITY_MASK;
    int slot = opdi_slot_of(set);
    if (slot >= OPD_KEY_BACKEND_BASE && (set.backends & OPDI_BACKEND_MASK) == 0) { return OPD_KEY_UNDEFINED; }
    return (opd_key)slot;
}

OPD_API opd_key opd_keyset_next(opd_keyset set, opd_key after) {
    int functionality = after > 0 ? opdi_key_functionality(after) : 1,
        backend = after > 0 ? opdi_key_backend(after) + 1 : 0;
    set.functionality &= OPDI_FUNCTIONALITY_MASK;
    if (functionality < 0) { return OPD_KEY_UNDEFINED; }
    if (after > 0 && !opdi_functionality_per_backend(functionality)) {
        functionality++;
        backend = 0;
    }
    for (; functionality < OPD_F_COUNT; functionality++, backend = 0) {
        if (!(set.functionality & OPD_BIT_OF(functionality))) { continue; }
        if (!opdi_functionality_per_backend(functionality)) { return (opd_key)functionality; }
        while (backend < OPD_BACKEND_COUNT && !(set.backends >> backend & 1)) { backend++; }
        if (backend < OPD_BACKEND_COUNT) { return (opd_key)opdi_key_base[functionality] + backend; }
    }
    return OPD_KEY_UNDEFINED;
}

/* Appends a text to buf at *at, without a terminating zero, and moves *at to the end of the full text.  Writes at most
   cap - 1 bytes of buf. */
static void opdi_keyset_append(char *buf, size_t cap, size_t *at, const char *text) {
    for (; *text; text++, (*at)++) { if (*at + 1 < cap) { buf[*at] = *text; } }
}

OPDI_COLD_BEGIN

size_t opd_keyset_print(opd_keyset set, char *buf, size_t cap) {
    const char *comma = "";
    size_t at = 0;
    if (!buf) { cap = 0; }
    opdi_keyset_append(buf, cap, &at, "DispatchKeySet(");
    for (opd_key key = opd_keyset_next(set, 0); key; key = opd_keyset_next(set, key), comma = ", ") {
        opdi_keyset_append(buf, cap, &at, comma);
        opdi_keyset_append(buf, cap, &at, opd_key_name(key));
    }
    opdi_keyset_append(buf, cap, &at, ")");
    if (cap > 0) { buf[at < cap ? at : cap - 1] = 0; }
    return at;
}
const char *opdi_old_keyset_print(opd_keyset set, char *buf, size_t cap) {
    (void)opd_keyset_print(set, buf, cap);
    return buf;
}

OPDI_INTERNAL opdi_mutex opdi_key_lock = OPDI_MUTEX_INIT;

/* Gives a user key a name, permanently, and returns the key.  Returns OPD_KEY_INVALID and sets an error if the
   functionality or the name is taken or not valid. */
opd_key opd_key_define(int functionality, const char *name) {
    size_t length = name ? strlen(name) + 1 : 0;
    if (!opd_ok()) { return OPD_KEY_INVALID; }
    if (functionality < 0 || functionality >= OPD_F_COUNT || !opdi_functionality_is_user(functionality) || !name ||
        !opdi_is_identifier(name)) {
        (void)opd_fail(OPD_ERROR_REGISTER, "opd_key_define: %d is not a user key (OPD_F_USER_n), or the name is not "
                       "made of letters, digits and underscores: '%.80s'", functionality, name ? name : "");
        return OPD_KEY_INVALID;
    }
    char *copy = (char *)opdi_alloc(length);
    if (!copy) { return OPD_KEY_INVALID; }
    memcpy(copy, name, length);
    opdi_lock(&opdi_key_lock);
    bool taken = opdi_user_name(functionality) || opdi_key_find(name) != OPD_KEY_INVALID;
    if (!taken) { OPDI_PUBLISH(&opdi_user_names[functionality], (const char *)copy); }
    opdi_unlock(&opdi_key_lock);
    if (!taken) { return functionality; }
    opdi_free(copy, length);
    (void)opd_fail(OPD_ERROR_REGISTER, "opd_key_define: the key %d or the name '%s' is already in use", functionality,
                   name);
    return OPD_KEY_INVALID;
}
OPDI_COLD_END

//== guards ============================================================================================================

opd_keyset opd_keys_included(void) { return opd_keyset_make(opdi_self()->state.include, 0); }
opd_keyset opd_keys_excluded(void) { return opd_keyset_make(~opdi_self()->state.allow, 0); }

opd_key_guard opd_keys_include(opd_keyset set) {
    opdi_thread *thread = opdi_self();
    opd_key_guard guard;
    guard.include = set.functionality & ~thread->state.include;
    guard.exclude = 0;
    thread->state.include |= guard.include;
    return guard;
}

opd_key_guard opd_keys_exclude(opd_keyset set) {
    opdi_thread *thread = opdi_self();
    opd_key_guard guard;
    guard.include = 0;
    guard.exclude = set.functionality & thread->state.allow;
    thread->state.allow &= ~guard.exclude;
    return guard;
}

void opd_keys_restore(opd_key_guard guard) {
    opdi_thread *thread = opdi_self();
    thread->state.include &= ~guard.include;
    thread->state.allow |= guard.exclude;
}

/* Sets the keys for a call that autograd records inside a vmap layer, and that goes on to the batching rule at the key
   DynamicLayerBack (see >>layers).  The key Tracer is excluded: a graph that is being traced gets the operators that
   the rule calls, not this call. */
OPDI_INTERNAL void opdi_back_keys(opdi_state *state) {
    state->include |= OPDI_BACK_BIT;
    state->allow &= ~(OPD_BIT_OF(OPD_F_BATCHED) | OPD_BIT_OF(OPD_F_TRACER));
}

