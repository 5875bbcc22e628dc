/* Short sources of TorchScript give the same text as in PyTorch, or are refused if PyTorch refuses them:
   golden/script_rows.json, made by golden/make_script_rows.py.  OPD_SCRIPT_ROWS in the environment prints the
   errors. */
#include "../../opdispatch.h"
#include "../check.h"

static char text_of_golden[1 << 21];
static const char tail[] = "\ndef the_text() -> str:\n    return str(f())\n";

/* Compiles and runs a source; true if it gives a text, which *got becomes, else *got becomes the error. */
static bool gives(const char *source, char *got, size_t cap) {
    opd_value result = opd_value_none();
    opd_script *script = opd_script_compile(source, NULL);
    const bool right = script && opd_script_run(script, "the_text", NULL, 0, &result) == 0;
    const char *const text = right ? opd_string_text(&result, NULL) : NULL;
    (void)snprintf(got, cap, "%s", right ? text ? text : "(no text)" : opd_error_message());
    CHECK(right == opd_ok());
    opd_error_clear();
    opd_script_free(script);
    return right;
}
/* Takes a number at *text: its length, and whether it is written with a point or exponent. */
static size_t number_at(const char *text, double *number, bool *real) {
    char *end = NULL;
    *number = *text >= '0' && *text <= '9' ? strtod(text, &end) : 0;
    const size_t length = end ? (size_t)(end - text) : 0;
    *real = length && strcspn(text, ".e") < length;
    return length;
}
/* True if both texts are equal, up to the last digits of what is no integer and the sign of nan, which C libraries
   differ in. */
static bool same_text(const char *got, const char *want) {
    while (*got || *want) {
        double a, b;
        bool first, second;
        got += strncmp(got, "-nan", 4) == 0;
        want += strncmp(want, "-nan", 4) == 0;
        const size_t m = number_at(got, &a, &first), n = number_at(want, &b, &second);
        if (m && n && first && second && fabs(a - b) <= 1e-12 * fabs(b)) {
            got += m;
            want += n;
        } else if (*got++ != *want++) { return false; }
    }
    return true;
}
TEST_KEEPS(rows_give_what_they_give_in_pytorch) {                        /* operators stay registered */
    static char source[20000], got[20000];
    int count = 0, wrong = 0;
    FILE *file = check_golden("script_rows.json");
    CHECK_OR_RETURN(file != NULL);
    const size_t size = fread(text_of_golden, 1, sizeof text_of_golden, file);
    (void)fclose(file);
    CHECK_OR_RETURN(size < sizeof text_of_golden);
    opd_json *golden = opd_json_parse(text_of_golden, size);
    CHECK_OR_RETURN(golden != NULL);
    for (int64_t at = opd_json_first(golden, 0); at >= 0; at = opd_json_next(golden, at), count++) {
        OPD_SCOPED;
        const int64_t want = opd_json_get(golden, at, "gives");
        (void)snprintf(source, sizeof source, "%s%s",
                       opd_json_text(golden, opd_json_get(golden, at, "source"), ""), tail);
        const bool ran = gives(source, got, sizeof got);
        if (ran == (want >= 0) && (!ran || same_text(got, opd_json_text(golden, want, "")))) {
            if (getenv("OPD_SCRIPT_ROWS") && !ran) { printf("%s    %s\n", source, got); }
            continue;
        }
        printf("%.*s    %s: %s\n    wanted: %s\n", (int)(strlen(source) - strlen(tail)), source,
               ran ? "gives" : "refused", got, want >= 0 ? opd_json_text(golden, want, "") : "an error");
        wrong++;
    }
    CHECK_INT(wrong, 0);
    CHECK(count > 900);
    opd_json_free(golden);
}
static bool prints(opd_value value, const char *want) {
    char text[200];
    const size_t length = opd_value_print(value, text, sizeof text);
    if (length == strlen(want) && strcmp(text, want) == 0) { return true; }
    printf("%s, not %s\n", text, want);
    return false;
}
/* Lists, tuples and dicts as C programs make and read them, and what errors say. */
TEST(values_are_read_set_and_printed) {
    int64_t numbers[] = {1, 2, 3};
    double reals[] = {1.5, 2};
    opd_value list = opd_list_new(OPD_TAG_INTS), texts = opd_list_new(OPD_TAG_LIST);
    opd_value pair[2], dict = opd_dict_new(), found;
    CHECK(!opd_list_append(list, opd_value_int(5)) && !opd_list_append(list, opd_value_int(6)));
    CHECK(!opd_list_set(list, 0, opd_value_int(7)) && !opd_list_set(list, -1, opd_value_int(8)));
    CHECK(prints(list, "[7, 8]") && opd_list_at(list, -2).u.i == 7);
    CHECK(prints(opd_value_ints(numbers, 3), "[1, 2, 3]"));
    CHECK(prints(opd_value_doubles(reals, 2), "[1.5, 2.]"));
    CHECK(!opd_list_append(texts, opd_string_new("a", -1)) && prints(texts, "[a]"));
    CHECK(!opd_list_set(texts, 0, opd_value_none()) && prints(texts, "[None]"));
    pair[0] = opd_value_int(1);
    pair[1] = texts;
    CHECK(prints(opd_tuple_new(pair, 2), "(1, [None])") && prints(opd_tuple_new(pair, 1), "(1,)"));
    CHECK(opd_tuple_name(opd_tuple_new(pair, 2), 0) == NULL && opd_tuple_name(list, 0) == NULL);
    CHECK(!opd_dict_set(dict, opd_string_new("k", -1), list) && prints(dict, "{k: [7, 8]}"));
    CHECK(opd_dict_get(dict, opd_string_new("k", -1), &found) == 1 && opd_list_count(found) == 2);
    CHECK_OK();
    CHECK_INT(opd_list_set(list, 2, opd_value_int(0)), -1);
    CHECK_ERROR(OPD_ERROR_INDEX, "opd_list_set: there is no element 2 in a list of 2 elements");
    CHECK_INT(opd_list_set(list, 0, opd_string_new("a", -1)), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "str cannot be in a list of another type");
    CHECK_INT(opd_list_append(list, dict), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Dict cannot be in a list of another type");
    CHECK_INT(opd_list_set(opd_value_int(3), 0, opd_value_int(0)), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_list_set: the value must be a list, but is int");
    CHECK_INT(opd_list_set(opd_string_new("a", -1), 0, opd_value_int(0)), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_list_set: the value must be a list, but is str");
    CHECK_INT(opd_dict_set(dict, list, list), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_dict_set: List cannot be a key");
    CHECK(opd_list_at(opd_value_ints(numbers, 3), 3).tag == OPD_TAG_NONE);
    CHECK_ERROR(OPD_ERROR_INDEX, "opd_list_at: there is no element 3 in a list of 3 elements");
    CHECK(opd_string_new(NULL, -1).tag == OPD_TAG_NONE);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_string_new: the text is NULL");
    CHECK(opd_list_new(OPD_TAG_DEVICE).tag == OPD_TAG_NONE);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "is not the tag of a list");
    CHECK(opd_tuple_new(NULL, 2).tag == OPD_TAG_NONE);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_tuple_new: the pointer to the elements is NULL");
}
CHECK_MAIN()
