// Fuzz target for JSON: see fuzz.h for how to build and run it.  Input: a text.
#include "fuzz.h"

static int64_t seen;
static void walk(const opd_json *json, int64_t value) {
    int64_t line, column, count = 0;
    const opd_json_kind kind = opd_json_kind_of(json, value);
    MUST(kind != OPD_JSON_NONE);
    opd_json_place(json, value, &line, &column);
    MUST(line >= 1 && column >= 1);
    (void)opd_json_double(json, value, 0);
    (void)opd_json_bool(json, value, true);
    MUST((kind == OPD_JSON_TEXT) == (opd_json_text(json, value, NULL) != NULL));
    MUST(kind != OPD_JSON_INT || opd_json_int(json, value, 0) == opd_json_int(json, value, 1));
    for (int64_t i = opd_json_first(json, value); i >= 0; i = opd_json_next(json, i), count++) {
        const char *key = opd_json_key(json, i);
        MUST((key != NULL) == (kind == OPD_JSON_OBJECT));
        MUST(!key || opd_json_get(json, value, key) >= i);
        if (seen++ < 300) { walk(json, i); }
    }
    MUST(opd_json_count(json, value) == count);
}
static void one(const uint8_t *data, size_t n) {
    opd_json *json = opd_json_parse((const char *)data, n);
    if (!json) {
        must_say(OPD_ERROR_FILE, "[line ");
        return;
    }
    MUST(opd_ok());
    seen = 0;
    walk(json, 0);
    opd_json_free(json);
}
FUZZ(one)
