#include "lean.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>finding      finding operators by name, and errors that name similar operators
//----------------------------------------------------------------------------------------------------------------------

//== similar names =====================================================================================================

OPDI_COLD_BEGIN

/* Returns a set of bits, one for each letter that text contains, ignoring case.  Similar names have nearly the same
   bits. */
static uint32_t opdi_letters(const char *text) {
    uint32_t all = 0;
    for (; *text; text++) { all |= (uint32_t)1 << (*text & 31); }
    return all;
}

/* Up to four names that are most similar to a name that was not found, and their distances, the smallest first.  If the
   name is a base name, its overloads have distance 0. */
typedef struct opdi_near { const char *names[4]; int distances[4], count; } opdi_near;

static void opdi_near_add(opdi_near *best, const char *name, int distance) {
    int i = best->count;
    if (i == 4 && best->distances[3] <= distance) { return; }
    if (i < 4) { best->count++; } else { i = 3; }
    for (; i > 0 && best->distances[i - 1] > distance; i--) {
        best->names[i] = best->names[i - 1];
        best->distances[i] = best->distances[i - 1];
    }
    best->names[i] = name;
    best->distances[i] = distance;
}

#if defined(OPD_LEAN)
#include "lean_names.printed.h"

static uint32_t opdi_lean_hash(const char *name) {
    uint32_t number = 0x811c9dc5u;
    for (; *name; name++) { number = (number ^ (uint8_t)*name) * 0x01000193u; }
    return number;
}
/* Returns true if a built-in operator's descriptor has this name, which is given without "aten::". */
static bool opdi_lean_is_card(const char *name) {
    const uint32_t number = opdi_lean_hash(name);
    size_t least = 0, most = sizeof opdi_lean_numbers / sizeof *opdi_lean_numbers;
    while (least < most) {
        const size_t middle = (least + most) / 2;
        if (opdi_lean_numbers[middle] == number) { return true; }
        if (opdi_lean_numbers[middle] < number) { least = middle + 1; } else { most = middle; }
    }
    return false;
}
/* Writes the argument of OPD_KEEP for a built-in operator to card.  `name` is that of a descriptor ("aten::add.Tensor",
   or "add.Tensor"), or of its in-place form ("aten::add_.Tensor").  Returns false if no descriptor has this name. */
static bool opdi_lean_card_of(const char *name, char *card, size_t size) {
    const char *const local = strncmp(name, "aten::", 6) == 0 ? name + 6 : name;
    if (!*local || strlen(local) >= size) { return false; }
    memcpy(card, local, strlen(local) + 1);
    if (!opdi_lean_is_card(card)) {
        char *const end = card + strcspn(card, ".");
        if (end == card || end[-1] != '_') { return false; }
        memmove(end - 1, end, strlen(end) + 1);
        if (!opdi_lean_is_card(card)) { return false; }
    }
    for (; *card; card++) { if (*card == '.') { *card = '_'; } }
    return true;
}
/* Appends "base.overload" to text, with "_" instead of ".", if a built-in operator's descriptor has this name. */
static void opdi_lean_append(const char *base, const char *overload, char *text, size_t size) {
    char name[300];
    const size_t length = strlen(text);
    (void)snprintf(name, sizeof name, "%s%s%s", base, *overload ? "." : "", overload);
    if (!opdi_lean_is_card(name) || length + strlen(name) + 3 > size) { return; }
    for (char *at = name; *at; at++) { if (*at == '.') { *at = '_'; } }
    (void)snprintf(text + length, size - length, "%s%s", length ? ", " : "", name);
}
/* Writes the arguments of OPD_KEEP for all descriptors of a name's family (see opdi_family) to text, separated by
   commas. */
static void opdi_lean_family(const char *name, char *text, size_t size) {
    static const char *const ends[] = {"", "_", "__", "_functional"};
    const char *const local = strncmp(name, "aten::", 6) == 0 ? name + 6 : name;
    const size_t length = opdi_family(local);
    char base[200];
    text[0] = 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends && length + 12 < sizeof base; i++) {
        (void)snprintf(base, sizeof base, "%.*s%s", (int)length, local, ends[i]);
        opdi_lean_append(base, "", text, size);
        for (const char *at = opdi_lean_overloads; *at; at += strlen(at) + 1) {
            opdi_lean_append(base, at, text, size);
        }
    }
}
/* Writes to text how a program with OPD_LEAN keeps a built-in operator that it looks up by this name.  For other names,
   leaves text unchanged. */
static void opdi_lean_hint(const char *name, char *text, size_t size) {
    const char *all = strncmp(name, "torchvision::", 13) == 0 ? "torchvision" : NULL;
    char card[400];
    if (strncmp(name, "quantized_decomposed::", 22) == 0 || strncmp(name, "torchao::", 9) == 0 ||
        strncmp(name, "opdispatch::", 12) == 0 || strncmp(name, "onednn::", 8) == 0 ||
        strncmp(name, "quantized::", 11) == 0 || strncmp(name, "transformers::", 14) == 0) { all = "quantized"; }
    if (strncmp(name, "c10d::", 6) == 0 || strncmp(name, "_c10d_functional", 16) == 0) { all = "collectives"; }
    if (OPDI_LOAD(&opdi_lean_has_all) || (!all && strchr(name, ':') && strncmp(name, "aten::", 6) != 0)) { return; }
    if (all || opdi_lean_card_of(name, card, sizeof card)) {
        (void)snprintf(text, size, "; with OPD_LEAN, a program contains only the operators whose functions it calls: "
                       "write OPD_KEEP(%s) before this line to keep this one", all ? all : card);
        return;
    }
    opdi_lean_family(name, card, sizeof card);
    if (!*card) { return; }
    (void)snprintf(text, size, "; with OPD_LEAN, a program contains only the operators whose functions it calls: write "
                   "OPD_KEEP before this line, with the operator that has this form: %s", card);
}
void opdi_keep_operator(const opdi_lean_card *card) { (void)opdi_lean_note(card, NULL); }
#endif
void opdi_keep_needs_lean(const char *name) {
#if defined(OPD_LEAN)
    if (OPDI_LOAD(&opdi_lean_has_all)) { return; }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "OPD_KEEP(%s): the library is compiled with OPD_LEAN, this file without it: "
                   "define OPD_LEAN in this file, too, so that the linker keeps the operator", name);
#else
    (void)name;
#endif
}
/* Sets the error "no operator named ...", which names similar operators or says that nothing is registered in the
   namespace.  Returns -1. */
OPDI_INTERNAL int opdi_not_found(const char *name) {
    const size_t length = strlen(name);
    const uint32_t letters = opdi_letters(name);
    const bool bare = !strchr(name, ':');         /* the name has no namespace */
    bool known = bare;                            /* true if something is registered in the namespace */
    opdi_near best;
    char near_text[1100], space[8];
    const char *const macro = opdi_above->left_out(name);
    size_t count = 0;
    int distance, tries = 10000;                  /* at most 10000 names are compared, in a few milliseconds */
    if (macro) { return opd_fail(OPD_ERROR_NOT_FOUND, "%s is left out: %s was defined", name, macro); }
    memset(&best, 0, sizeof best);
    near_text[0] = 0;
    (void)snprintf(space, sizeof space, "%.*s", (int)OPDI_MIN(strcspn(name, ":"), sizeof space - 1), name);
    if (bare || opdi_distance(space, "aten", 3) <= 3) { opdi_builtins_make(NULL); }
    opdi_lock(&opdi_registry.lock);
    for (opd_op *op = opdi_registry.first_defined; op; op = op->next_defined) {
        known = known || strncmp(op->name, name, strcspn(name, ":") + 1) == 0;
        if (op->length + 3 < length) { continue; }
        if ((op->base_length == length && op->length > length && memcmp(op->name, name, length) == 0) ||
            (bare && op->base_length > length && op->name[op->base_length - length - 1] == ':' &&
             memcmp(op->name + op->base_length - length, name, length) == 0)) {
            opdi_near_add(&best, op->name, 0);
        } else if (op->length <= length + 3 && tries > 0 && opdi_popcount(opdi_letters(op->name) ^ letters) <= 6) {
            tries--;
            if ((distance = opdi_distance(op->name, name, 3)) <= 3) { opdi_near_add(&best, op->name, distance); }
        }
    }
    for (int i = 0; i < best.count && count < sizeof near_text; i++) {
        count += (size_t)snprintf(near_text + count, sizeof near_text - count, "%s%s", i ? ", " : "; did you mean ",
                                  best.names[i]);
    }
    const opd_op *const gone = bare ? NULL : opdi_lookup(name, length);
    const bool was_defined = gone && gone->undefined;
    opdi_unlock(&opdi_registry.lock);
    if (was_defined) {
        return opd_fail(OPD_ERROR_NOT_FOUND, "the operator %s is not defined any more: %s%s", name,
                        opdi_undefined_why(gone), near_text);
    }
    if (!known && best.count == 0) {
        (void)snprintf(near_text, sizeof near_text, "; nothing is registered in '%.*s': is the file with its "
                       "OPD_LIBRARY linked and used (OPD_USE_LIBRARY), or loaded?",
                       (int)OPDI_MIN(strcspn(name, ":"), 200), name);
    }
#if defined(OPD_LEAN)
    if (count < sizeof near_text) { opdi_lean_hint(name, near_text + count, sizeof near_text - count); }
#endif
    return opd_fail(OPD_ERROR_NOT_FOUND, "no operator named '%s'%s", name, near_text);
}

OPDI_COLD_END

/* Returns the operator with this name if it has a definition or kernels, else NULL. */
OPDI_INTERNAL opd_op *opdi_lookup_used(const char *name, size_t length) {
    opd_op *op = opdi_lookup(name, length);
    return op && (opdi_is_defined(op) || OPDI_ACQUIRE(&op->kernels)) ? op : NULL;
}

#if defined(OPD_LEAN)
static int opdi_lean_check(const opd_library *lib, const char *name, const char *what) {
    const opd_code code = lib ? OPD_ERROR_REGISTER : OPD_ERROR_NOT_FOUND;
    char card[400];
    if (lib == opdi_registry.aten || strncmp(name, "aten::", 6) != 0) { return 0; }
    opdi_builtins_make(name);
    const opd_op *const op = opdi_lookup_used(name, strlen(name));
    if (op && opdi_is_defined(op)) { return 0; }
    if (opdi_lean_card_of(name, card, sizeof card)) {
        return opd_fail(code, "%s: %s is a built-in operator that OPD_LEAN does not keep: write OPD_KEEP(%s) before "
                        "this line", what, name, card);
    }
    if (strstr(name + strcspn(name, "."), "out")) { opdi_lean_family(name, card, sizeof card); } else { card[0] = 0; }
    return !*card ? 0 : opd_fail(code, "%s: %s is a form of a built-in operator that OPD_LEAN does not keep: write "
                                 "OPD_KEEP before this line, with %s", what, name, card);
}
#endif

/* Finds an operator that may not be registered yet: waits if another thread is just registering, and registers the
   built-in operators of this name.  Returns NULL if there is no such operator. */
OPDI_NOINLINE OPDI_COLD static opd_op *opdi_find_waiting(const char *name, size_t length) {
    opd_op *op = opdi_lookup_used(name, length);
    if (op && OPDI_ACQUIRE(&opdi_registry.making) && OPDI_LOAD(&opdi_registry.starter) != opdi_self()) {
        opdi_lock(&opdi_registry.start);
        opdi_unlock(&opdi_registry.start);
    }
    if (!op || !opdi_is_defined(op)) {
        opdi_builtins_find(name);
        op = opdi_lookup_used(name, length);
    }
    return op;
}

/* Returns the defined operator with this name, by a single look-up.  Returns NULL if there is none, or while another
   thread registers operators: then opdi_find_waiting must be called. */
static inline opd_op *opdi_find_defined(const char *name, size_t length) {
    opdi_thread *thread = opdi_self();
    opdi_started();
    const uint64_t was = opdi_enter(thread);
    const opdi_op_name *found = opdi_names_find(OPDI_ACQUIRE(&opdi_registry.names), name, length);
    opd_op *op = OPDI_LIKELY(found && !OPDI_ACQUIRE(&opdi_registry.making)) ? OPDI_ACQUIRE(&found->defined) : NULL;
    opdi_leave(thread, was);
    return op;
}

opd_op *opd_find_quiet(const char *name) {
    const size_t length = name ? strlen(name) : 0;
    opd_op *op = name ? opdi_find_defined(name, length) : NULL;
    return OPDI_LIKELY(op || !name) ? op : opdi_find_waiting(name, length);
}

/* Finds a defined operator as opdi_find_waiting does.  If there is none, returns NULL and sets an error.  If an error
   is already pending, returns NULL immediately. */
OPDI_NOINLINE OPDI_COLD static opd_op *opdi_find_slow(const char *name, size_t length) {
    opd_op *op = opd_ok() ? opdi_find_waiting(name, length) : NULL;
    if (!opd_ok() || (op && opdi_is_defined(op))) { return opd_ok() ? op : NULL; }
    if (!op) {
        (void)opdi_not_found(name);
        return NULL;
    }
    (void)opd_fail(OPD_ERROR_NOT_FOUND, "Could not find schema for %s, but we found an implementation; "
                   "did you forget to opd_def() the operator?", name);
    return NULL;
}

opd_op *opd_find(const char *name) {
    if (!opd_ok()) { return NULL; }
    if (!name) { name = "NULL"; }
    size_t length = strlen(name);
    opd_op *op = opdi_find_defined(name, length);
    return OPDI_LIKELY(op && opd_ok()) ? op : opdi_find_slow(name, length);
}

OPDI_COLD_BEGIN

const opd_schema *opd_op_schema(const opd_op *op) { return op && opdi_is_defined(op) ? op->schema : NULL; }
const opd_op_desc *opd_op_card(const opd_op *op) {
    const opdi_card *card = op ? OPDI_ACQUIRE(&op->card) : NULL;
    return card ? &card->desc : NULL;
}
opd_op *opd_op_next(const opd_op *op) {
    opdi_started();
    if (!op) { opdi_builtins_make(NULL); }
    opdi_lock(&opdi_registry.lock);
    op = op ? op->next_defined : opdi_registry.first_defined;
    opdi_unlock(&opdi_registry.lock);
    return (opd_op *)(uintptr_t)op;
}
opd_op *opd_op_builtin(opd_op_id id) {
    opdi_started();
    if ((unsigned)id >= (unsigned)OPD_OP_COUNT) { return NULL; }
    opd_op *op = OPDI_ACQUIRE(&opdi_registry.builtin[id]);
    if (!op) {
        opdi_builtins_make(opdi_builtin_name((int)id));
        op = OPDI_ACQUIRE(&opdi_registry.builtin[id]);
    }
#if defined(OPD_LEAN)
    if (!op && !OPDI_LOAD(&opdi_lean_cards[id])) {
        (void)opd_fail(OPD_ERROR_NOT_FOUND, "built-in operator %d is not in this program: with OPD_LEAN, a program "
                       "contains only the operators whose functions it calls; to keep OPD_OP_conv2d, for example, "
                       "write OPD_KEEP(conv2d) before this line", (int)id);
    }
#endif
    return op;
}

static int opdi_signature_error(const opd_op *op, const char *what, int i, char letter) {
    char decl[700];
    (void)opd_schema_print(op->schema, decl, sizeof decl);
    return opd_fail(OPD_ERROR_REGISTER, "Tried to access or call an operator with a wrong signature. operator: %s. "
                    "Type mismatch in %s %d: accessed as '%c'.", decl, what, i, letter);
}

/* Compares an operator's schema with a C signature, whose first letter is the result's type.  Returns 0, or -1 and sets
   an error. */
static int opdi_op_check(const opd_op *op, const char *signature) {
    int nargs = signature ? (int)strlen(signature) - 1 : -1;
    char r = signature ? signature[0] : 0;
    if (!opdi_is_defined(op)) {
        return opd_fail(OPD_ERROR_NOT_FOUND, "%s is not defined, so its signature cannot be checked", op->name);
    }
    if (nargs < 0 || nargs > op->nargs || (nargs < op->nargs && !op->schema->args[nargs].has_default)) {
        return opd_fail(OPD_ERROR_REGISTER, "Tried to access or call an operator with a wrong signature. operator: %s. "
                        "The number of arguments is different. %d vs %d.", op->name, nargs, op->nargs);
    }
    for (int i = 0; i < nargs; i++) {
        if (!opdi_signature_type(op->schema->args[i].type, signature[i + 1])) {
            return opdi_signature_error(op, "argument", i + 1, signature[i + 1]);
        }
    }
    if (r == 'v' ? op->nrets != 0 : r == 'N' ? op->nrets < 1
        : op->nrets != 1 || !opdi_signature_type(op->schema->returns[0].type, r)) {
        return opdi_signature_error(op, "return", 1, r);
    }
    return 0;
}

int opd_op_check(const opd_op *op, const char *signature) {
    opdi_thread *thread = opdi_self();
    const uint64_t was = opdi_enter(thread);
    int rc = -1;
    if (op) { rc = opd_ok() ? opdi_op_check(op, signature) : -1; }
    else { (void)opd_fail(OPD_ERROR_NOT_FOUND, "opd_op_check: the operator is NULL"); }
    opdi_leave(thread, was);
    return rc;
}

opd_op *opdi_op_look_up(opd_op **handle, const char *name, const char *signature) {
    opd_op *op = opd_find(name);
    if (!op || opd_op_check(op, signature)) { return NULL; }
    if (handle) { OPDI_PUBLISH(handle, op); }
    return op;
}
OPDI_COLD_END
