// Fuzz target for the schema parser: see fuzz.h for how to build and run it.  Input: a declaration, or two with a zero
// byte between.  An accepted schema is printed, and the text is parsed as the same schema.  Every query returns.
#include "fuzz.h"

// Asks everything that can be asked of one schema.
static void ask(const opd_schema *s) {
    const int na = opd_schema_nargs(s), nr = opd_schema_nreturns(s);
    int i, k, wrong = 0;
    (void)opd_schema_is_mutable(s);
    for (i = -nr; i < na; i++) {
        wrong += opd_schema_is_mutable_at(s, i, NULL) && !opd_schema_is_aliasing(s, i) && strcmp(s->ns, "aten") != 0;
        for (k = -nr; k < na && k < 8; k++) {
            const bool may = opd_schema_may_alias(s, i, k, NULL);
            MUST(may == opd_schema_may_alias(s, k, i, NULL));
            MUST(!may || opd_schema_may_contain_alias(s, i, k, false, NULL));
            MUST(opd_schema_may_contain_alias(s, i, k, true, NULL) ==
                 opd_schema_may_contain_alias(s, k, i, true, NULL));
        }
    }
    MUST(wrong == 0 && opd_ok());
}

static opd_schema *read_one(const char *text) {
    static char printed[1 << 20], again[1 << 20];
    opd_schema *s = opd_schema_parse(text), *t;
    char why[64];
    if (!s) {
        if (opd_error_code() != OPD_ERROR_ARGUMENT) { must_say(OPD_ERROR_SCHEMA, ""); }
        MUST(opd_error_message()[0]);
        opd_error_clear();
        return NULL;
    }
    MUST(opd_ok());
    (void)opd_memory_fail_at(0, false);           /* to read is what may fail, not to answer */
    if (opd_schema_print(s, printed, sizeof printed) >= sizeof printed) { return s; }
    t = opd_schema_parse(printed);
    if (!t) { fprintf(stderr, "printed: %s\n%s\n", printed, opd_error_message()); }
    MUST(t);
    (void)opd_schema_print(t, again, sizeof again);
    if (strcmp(again, printed)) { fprintf(stderr, "printed: %s\nthen:    %s\n", printed, again); }
    MUST(!strcmp(again, printed) && opd_schema_equal(s, t) && opd_schema_equal(t, s));
    MUST(opd_schema_hash(s) == opd_schema_hash(t));
    MUST(opd_schema_is_backward_compatible_with(s, t, why, sizeof why));
    MUST(opd_schema_is_forward_compatible_with(s, t, why, sizeof why));
    MUST(opd_schema_is_subtype_of(s, t, false));
    opd_schema_free(t);
    ask(s);
    return s;
}

static void one(const uint8_t *data, size_t size) {
    static char text[1 << 16];
    const char *second;
    opd_schema *a, *b;
    char why[200];
    if (size >= sizeof text) { return; }
    memcpy(text, data, size);
    text[size] = 0;
    second = strlen(text) < size ? text + strlen(text) + 1 : NULL;
    a = read_one(text);
    b = second ? read_one(second) : NULL;
    if (a && b) {
        const bool same = opd_schema_equal(a, b);
        MUST(same == opd_schema_equal(b, a) && (!same || opd_schema_hash(a) == opd_schema_hash(b)));
        MUST(opd_schema_is_backward_compatible_with(a, b, why, sizeof why) == (why[0] == 0));
        MUST(opd_schema_is_forward_compatible_with(a, b, why, sizeof why) == (why[0] == 0));
        MUST(!same || why[0] == 0);
        (void)opd_schema_is_subtype_of(a, b, true);
    }
    opd_schema_free(a);
    opd_schema_free(b);
    MUST(opd_ok());
}
FUZZ(one)
