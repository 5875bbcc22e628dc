/* JSON: values of valid texts, and the line and column of errors. */
#include "../../opdispatch.h"
#include "../check.h"
#include <unistd.h>

static opd_json *parse(const char *text) { return opd_json_parse(text, strlen(text)); }

TEST(json_walks_lists_and_objects) {
    opd_json *json = parse(" {\"a\": [1, -2.5e1, true, false, null, \"x\"], \"b\": {}, \"c\": [], \"a\\u0062\": {\"d\": 7}} ");
    CHECK(json != NULL);
    int64_t list = opd_json_get(json, 0, "a");
    CHECK_INT(opd_json_kind_of(json, 0), OPD_JSON_OBJECT);
    CHECK_INT(opd_json_count(json, 0), 4);
    CHECK_INT(opd_json_count(json, list), 6);
    int64_t at = opd_json_first(json, list);
    CHECK_INT(opd_json_kind_of(json, at), OPD_JSON_INT);
    CHECK_INT(opd_json_int(json, at, 9), 1);
    CHECK(!opd_json_key(json, at));
    at = opd_json_next(json, at);
    CHECK_INT(opd_json_kind_of(json, at), OPD_JSON_FLOAT);
    CHECK_INT(opd_json_int(json, at, 9), 9);
    CHECK(opd_json_double(json, at, 0) <= -25 && opd_json_double(json, at, 0) >= -25);
    at = opd_json_next(json, at);
    CHECK(opd_json_bool(json, at, false));
    at = opd_json_next(json, at);
    CHECK(!opd_json_bool(json, at, true));
    at = opd_json_next(json, at);
    CHECK_INT(opd_json_kind_of(json, at), OPD_JSON_NULL);
    at = opd_json_next(json, at);
    CHECK_STR(opd_json_text(json, at, ""), "x");
    CHECK_INT(opd_json_next(json, at), -1);
    CHECK_INT(opd_json_first(json, opd_json_get(json, 0, "b")), -1);
    CHECK_INT(opd_json_first(json, opd_json_get(json, 0, "c")), -1);
    CHECK_STR(opd_json_key(json, opd_json_next(json, opd_json_get(json, 0, "c"))), "ab");
    CHECK_INT(opd_json_int(json, opd_json_get(json, opd_json_get(json, 0, "ab"), "d"), 0), 7);
    opd_json_free(json);
}
TEST(json_what_is_not_there_is_the_default) {
    opd_json *json = parse("{\"a\": 1}");
    CHECK_INT(opd_json_get(json, 0, "b"), -1);
    CHECK_INT(opd_json_get(json, -1, "b"), -1);
    CHECK_INT(opd_json_get(json, opd_json_get(json, 0, "a"), "b"), -1);
    CHECK_INT(opd_json_int(json, -1, 5), 5);
    CHECK_INT(opd_json_int(json, 1000, 5), 5);
    CHECK_STR(opd_json_text(json, -1, "none"), "none");
    CHECK(opd_json_bool(json, -1, true));
    CHECK_INT(opd_json_kind_of(json, -1), OPD_JSON_NONE);
    CHECK_INT(opd_json_kind_of(NULL, 0), OPD_JSON_NONE);
    CHECK_INT(opd_json_next(json, 0), -1);
    opd_json_free(json);
    opd_json_free(NULL);
}
TEST(json_integers_are_exact_and_other_numbers_doubles) {
    static const struct { const char *text; bool integral; int64_t i; double d; } numbers[] = {
        {"0", true, 0, 0}, {"-0", true, 0, 0}, {"9223372036854775807", true, INT64_MAX, 9223372036854775807.0},
        {"-9223372036854775808", true, INT64_MIN, -9223372036854775808.0}, {"9223372036854775808", false, 0, 9223372036854775808.0},
        {"-9223372036854775809", false, 0, -9223372036854775808.0}, {"123456789012345678901234567890", false, 0, 123456789012345678901234567890.0},
        {"1.0", false, 0, 1}, {"1e3", false, 0, 1000}, {"1E+3", false, 0, 1000}, {"25e-1", false, 0, 2.5},
        {"0.1", false, 0, 0.1}, {"5e-324", false, 0, 5e-324}, {"1e-400", false, 0, 0}, {"1.7976931348623157e308", false, 0, 1.7976931348623157e308},
        {"2.2250738585072011e-308", false, 0, 2.2250738585072011e-308}, {"3.14159265358979323846", false, 0, 3.14159265358979323846}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        opd_json *json = parse(numbers[i].text);
        CHECK_INT(opd_json_kind_of(json, 0), numbers[i].integral ? OPD_JSON_INT : OPD_JSON_FLOAT);
        if (numbers[i].integral) { CHECK_INT(opd_json_int(json, 0, 77), numbers[i].i); }
        else { CHECK_INT(opd_json_int(json, 0, 77), 77); }
        const double got = opd_json_double(json, 0, 77);
        CHECK(!(got < numbers[i].d) && !(got > numbers[i].d));
        opd_json_free(json);
    }
    CHECK(opd_ok());
}
TEST(json_strings_are_decoded) {
    opd_json *json = parse("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\", \"\\u00e4\\u20ac\\ud83d\\ude00 \xc3\xa4\xf0\x9f\x98\x80\", \"\", \"0123456789 \\u0041 0123456789\"]");
    int64_t at = opd_json_first(json, 0);
    CHECK_STR(opd_json_text(json, at, NULL), "\"\\/\b\f\n\r\t");
    at = opd_json_next(json, at);
    CHECK_STR(opd_json_text(json, at, NULL), "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80 \xc3\xa4\xf0\x9f\x98\x80");
    at = opd_json_next(json, at);
    CHECK_STR(opd_json_text(json, at, NULL), "");
    at = opd_json_next(json, at);
    CHECK_STR(opd_json_text(json, at, NULL), "0123456789 A 0123456789");
    opd_json_free(json);
}
TEST(json_errors_say_line_and_column) {
    static const struct { const char *text, *says; } wrong[] = {
        {"", "line 1, column 1"}, {"{\n  \"a\": 1,\n  \"b\" 2}", "line 3, column 7"}, {"[1, 2,]", "line 1, column 7"},
        {"{\"a\": 1,}", "line 1, column 9"}, {"[1 2]", "line 1, column 4"}, {"nul", "line 1, column 1"},
        {"[01]", "begins with 0"}, {"[-]", "a value"}, {"[1.]", "a digit"}, {"[1e]", "a digit"}, {"[.5]", "a value"}, {"[+1]", "a value"},
        {"[Nan]", "a value"}, {"[infinity]", "a value"}, {"[-Inf]", "a value"}, {"\"\t\"", "control character"}, {"\"\xff\"", "UTF-8"}, {"\"\xed\xa0\x80\"", "UTF-8"},
        {"\"\\x\"", "an escape"}, {"\"\\u12\"", "hexadecimal"}, {"\"\\ud800\"", "surrogate"}, {"\"\\ud800\\u0041\"", "surrogate"}, {"\"\\udc00\"", "surrogate"},
        {"\"\\u0000\"", "zero byte"}, {"\"abc", "ends within a string"}, {"[1] x", "the end of the text"}, {"{1: 2}", "a name in quotes"},
        {"[", "a value"}, {"{", "a name in quotes"}, {"{\"a\"", "':'"}, {"'a'", "a value"}, {"truefalse", "the end of the text"}, {"[1}", "',' or ']'"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(!parse(wrong[i].text));
        CHECK_INT(opd_error_code(), OPD_ERROR_FILE);
        if (!strstr(opd_error_message(), wrong[i].says) || !strstr(opd_error_message(), "[line ")) {
            printf("%s: %s\n", wrong[i].text, opd_error_message());
            CHECK(!"another error");
        }
        opd_error_clear();
    }
    CHECK(!opd_json_parse("\0", 1));
    opd_error_clear();
}
TEST(json_depth_has_a_bound) {
    char text[2100];
    memset(text, '[', 1000);
    memset(text + 1000, ']', 1000);
    CHECK(!opd_json_parse(text, 2000));
    CHECK(strstr(opd_error_message(), "more than 500 deep") != NULL);
    opd_error_clear();
    opd_json *json = opd_json_parse(text + 501, 998);
    CHECK(json != NULL);
    opd_json_free(json);
}
TEST(json_places_are_those_of_the_text) {
    opd_json *json = parse("{\"\\u0041\\n\\\"\": [1,\n\n  \"\\\"x\\\"\", 5],\n \"b\": 6}");
    int64_t line, column, at = opd_json_first(json, opd_json_first(json, 0));
    opd_json_place(json, at, &line, &column);
    CHECK_INT(line, 1);
    CHECK_INT(column, 17);
    at = opd_json_next(json, opd_json_next(json, at));
    opd_json_place(json, at, &line, &column);
    CHECK_INT(line, 3);
    CHECK_INT(column, 12);
    opd_json_place(json, opd_json_get(json, 0, "b"), &line, &column);
    CHECK_INT(line, 4);
    CHECK_INT(column, 7);
    opd_json_free(json);
}
static const char sample[] = "{\"a\": [1, 2, {\"b\": \"\\u00e4 text of some length\"}], \"c\": -1.5e3, \"d\": [[], {}, null, true]}";
TEST(json_cut_off_and_damaged) {
    char text[sizeof sample];
    for (size_t n = 0; n + 1 < sizeof sample; n++) {
        CHECK(!opd_json_parse(sample, n));
        opd_error_clear();
        for (int ch = 0; ch < 256; ch++) {
            memcpy(text, sample, sizeof sample);
            text[n] = (char)ch;
            opd_json *json = opd_json_parse(text, sizeof sample - 1);
            for (int64_t i = 0; json && i < 30; i++) { (void)opd_json_double(json, i, 0); }
            opd_json_free(json);
            opd_error_clear();
        }
    }
}
static int read_sample(void *user) {
    opd_json *json = parse(sample);
    (void)user;
    if (!json) { return -1; }
    opd_json_free(json);
    return 0;
}
TEST(json_without_memory) {
    CHECK(check_allocations_at(read_sample, NULL, "json", 100, false, __FILE__, __LINE__) > 1);
}
TEST(json_files) {
    char path[] = "/tmp/opd_json_XXXXXX";
    FILE *file;
    const int fd = mkstemp(path);
    CHECK(fd >= 0);
    file = fdopen(fd, "w");
    fputs(sample, file);
    fclose(file);
    opd_json *json = opd_json_load(path);
    CHECK_STR(opd_json_text(json, opd_json_get(json, 0, "a"), "none"), "none");
    CHECK(opd_json_double(json, opd_json_get(json, 0, "c"), 0) < -1499);
    opd_json_free(json);
    remove(path);
    CHECK(!opd_json_load(path));
    CHECK(strstr(opd_error_message(), path) != NULL);
    opd_error_clear();
}
CHECK_MAIN()
