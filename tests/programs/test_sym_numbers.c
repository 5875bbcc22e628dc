/* The functions with which exported programs compute sizes, for all pairs of special numbers: the results equal
   Python's (golden/sym_numbers.txt, made by golden/make_sym_numbers.py), with an error where Python has one. */
#include "../inside.h"
#include "../check.h"
#include <math.h>

static const int64_t ints[] = {0, 1, -1, 2, -3, 7, 62, 63, 64, INT64_C(9007199254740993), INT64_C(1) << 62, INT64_MIN, INT64_MAX};
static const double floats[] = {0.0, -0.0, 0.5, 1.5, -2.0, -7.25, 9007199254740992.0, 9223372036854775808.0,
                                -9223372036854775808.0, 9.3e18, 1e300, -1e-310, INFINITY, -INFINITY, NAN};
enum { INTS = sizeof ints / sizeof ints[0], FLOATS = sizeof floats / sizeof floats[0], VALUES = INTS + 2 + FLOATS };

static opd_value value_at(int i) {
    if (i < INTS) { return opd_value_int(ints[i]); }
    return i < INTS + 2 ? opd_value_bool(i > INTS) : opd_value_double(floats[i - INTS - 2]);
}
static void describe(const opd_value *value, char *text, size_t size) {
    if (value->tag == OPD_TAG_FLOAT) { snprintf(text, size, "%.17g", value->u.d); }
    else { snprintf(text, size, "%s%lld", value->tag == OPD_TAG_BOOL ? "bool " : "", (long long)value->u.i); }
}
/* Whether a value is that of a word: "i3", "b1", "f0x1.8p+0". */
static int is_word(const opd_value *value, const char *word) {
    if (*word == 'i') { return value->tag == OPD_TAG_INT && value->u.i == strtoll(word + 1, NULL, 10); }
    if (*word == 'b') { return value->tag == OPD_TAG_BOOL && value->u.i == (word[1] == '1'); }
    const double want = strtod(word + 1, NULL);
    return value->tag == OPD_TAG_FLOAT &&
        (isnan(want) ? isnan(value->u.d) != 0 : value->u.d == want && !signbit(value->u.d) == !signbit(want));
}
static void check_one(const char *name, const opd_value *args, int count, const char *word) {
    char target[64], texts[3][64] = {"", "", "an error"};
    opd_value ret = opd_value_none();
    snprintf(target, sizeof target, "%s.%s", strncmp(name, "sym_", 4) == 0 ? "torch" : strcmp(name, "trunc") ? "_operator" : "math", name);
    const int rc = inside_sym_run(target, args, count, &ret);
    if (*word == 'e') { CHECK(rc == 0 || (opd_error_code() == OPD_ERROR_ARGUMENT && strstr(opd_error_message(), name))); }
    if (*word == 'e' ? rc != 0 : rc == 0 && is_word(&ret, word)) {
        opd_error_clear();
        return;
    }
    for (int i = 0; i < count; i++) { describe(&args[i], texts[i], sizeof texts[i]); }
    if (rc == 0) { describe(&ret, texts[2], sizeof texts[2]); }
    printf("%s(%s%s%s) is %s, not %s\n", name, texts[0], count > 1 ? ", " : "", texts[1], texts[2], word);
    CHECK(!"another result than Python's");
    opd_error_clear();
}
TEST(numbers_of_programs_are_pythons) {
    FILE *file = check_golden("sym_numbers.txt");
    int rows = 0, words = 0;
    char word[128], name[128];
    CHECK(file != NULL);
    while (file && fscanf(file, "%127s", name) == 1) {
        const int pairs = fgetc(file) == ' ' && strcmp(name, "neg") && strcmp(name, "pos") && strcmp(name, "trunc") && strcmp(name, "sym_not") &&
            strcmp(name, "sym_int") && strcmp(name, "sym_float") && strcmp(name, "sym_sqrt");
        for (int i = 0; i < (pairs ? VALUES * VALUES : VALUES); i++, words++) {
            const opd_value args[2] = {value_at(pairs ? i / VALUES : i), value_at(i % VALUES)};
            if (fscanf(file, "%127s", word) != 1) { break; }
            check_one(name, args, pairs ? 2 : 1, word);
        }
        rows++;
    }
    if (file) { fclose(file); }
    CHECK_INT(rows, 26);
    CHECK_INT(words, 19 * VALUES * VALUES + 7 * VALUES);
}
TEST(numbers_of_programs_are_chosen_and_counted) {
    opd_value args[3] = {opd_value_double(NAN), opd_value_int(1), opd_value_int(2)}, ret;
    CHECK_INT(inside_sym_run("torch.sym_ite", args, 3, &ret), 0);
    CHECK_INT(ret.u.i, 1);
    args[0] = opd_value_bool(false);
    CHECK_INT(inside_sym_run("torch.sym_ite", args, 3, &ret), 0);
    CHECK_INT(ret.u.i, 2);
    CHECK_INT(inside_sym_run("torch.sym_ite", args, 2, &ret), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "torch.sym_ite takes 3 argument(s), not 2");
    args[1] = opd_value_none();
    CHECK_INT(inside_sym_run("_operator.add", args, 2, &ret), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "_operator.add: argument 2 is not a number");
}
TEST(numbers_of_programs_have_the_whole_name) {           /* math.pow gives a float, _operator.pow of integers an integer */
    const char *const none[] = {"math.pow", "torch.add", "torch.ops.aten.add", "_sym_sqrt", "torch._sym_", "add", ""};
    const opd_value args[2] = {opd_value_int(4), opd_value_int(2)};
    opd_value ret;
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        CHECK_INT(inside_sym_run(none[i], args, 2, &ret), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "no function");
    }
    CHECK_INT(inside_sym_run("operator.pow", args, 2, &ret), 0);
    CHECK(ret.tag == OPD_TAG_INT && ret.u.i == 16);
    CHECK_INT(inside_sym_run("torch._sym_sqrt", args, 1, &ret), 0);
    CHECK(ret.tag == OPD_TAG_FLOAT && ret.u.d == 2);
}

CHECK_MAIN()
