// Schemas: every declaration of PyTorch's operators is parsed, and printed as PyTorch prints it.  Declarations that
// PyTorch refuses are refused with PyTorch's text.  The table below has the differences that are intended.
// tests/golden/schemas was made with PyTorch 1.13 by tests/golden/make_schemas.py, which describes the files.
#include "../inside.h"
#include "../check.h"

static char printed[1 << 16], again[1 << 16];

// What the text prints as, or the error it gives.
static const char *outcome(const char *text, bool *accepted) {
    opd_schema *s = opd_schema_parse(text);
    *accepted = s != NULL;
    if (s == NULL) {
        CHECK_INT(opd_error_code(), OPD_ERROR_SCHEMA);
        snprintf(printed, sizeof printed, "%s", opd_error_message());
        opd_error_clear();
    } else {
        CHECK(opd_ok());
        size_t length = opd_schema_print(s, printed, sizeof printed);
        CHECK_INT(length, strlen(printed));
    }
    opd_schema_free(s);
    return printed;
}

static bool starts_with(const char *text, const char *prefix) { return strncmp(text, prefix, strlen(prefix)) == 0; }

static void unescape(char *s) {
    static const char codes[] = "\n\t\r\v\f", letters[] = "ntrvf";
    char *to = s;
    for (; *s != 0; s++) {
        const char *at = s[0] == '\\' && s[1] != 0 ? strchr(letters, *++s) : NULL;
        *to++ = at != NULL ? codes[at - letters] : *s;
    }
    *to = 0;
}

// The next line of a golden file, cut at its tabs into cells, and their number.  0 at the end.
static int next_row(FILE *f, char *line, int cap, char **cells, int ncells) {
    int i, n = 0;
    char *c;
    if (fgets(line, cap, f) == NULL) return 0;
    line[strcspn(line, "\n")] = 0;
    for (i = 0, c = line; i < ncells; i++) {
        cells[i] = c;
        n += c != NULL;
        if (c != NULL && (c = strchr(c, '\t')) != NULL) *c++ = 0;
    }
    for (i = 0; i < n; i++) unescape(cells[i]);
    return n;
}

typedef struct golden_row { char text[2600], want[2600]; bool accepted; } golden_row;

// A line "text", "text print" or "text verdict print-or-message".  False at the end.
static bool golden_next(FILE *f, golden_row *row) {
    static char line[sizeof *row];
    char *cells[3];
    int n;
    do if ((n = next_row(f, line, sizeof line, cells, 3)) == 0) return false; while (line[0] == '#' && n == 1);
    snprintf(row->text, sizeof row->text, "%s", cells[0]);
    snprintf(row->want, sizeof row->want, "%s", cells[n - 1]);
    row->accepted = n < 3 || strcmp(cells[1], "ok") == 0;
    if (n == 3 && strcmp(cells[1], "crash") == 0) strcpy(row->want, "crash");
    return true;
}

static golden_row differences[80];
static int ndifferences;
static const golden_row *difference_of(const char *text) {
    int i;
    if (ndifferences == 0) {
        FILE *f = check_golden("schemas/differences.tsv");
        if (f == NULL) return NULL;
        while (ndifferences < 80 && golden_next(f, &differences[ndifferences])) ndifferences++;
        fclose(f);
    }
    for (i = 0; i < ndifferences && strcmp(differences[i].text, text) != 0; i++) {}
    return i < ndifferences ? &differences[i] : NULL;
}

static bool as_wanted(const golden_row *row, bool ok, const char *got) {
    return ok == row->accepted && (ok ? strcmp(got, row->want) == 0 : starts_with(got, row->want));
}

// A golden file of so many lines, of which so many are listed as different.  Accepted where PyTorch accepts, printed
// and refused with its words, and what is printed is a fixed point.
static void check_corpus(const char *path, int count, int different) {
    static golden_row row;
    FILE *f = check_golden(path);
    bool ok;
    if (f == NULL) return;
    for (; golden_next(f, &row); count--) {
        const golden_row *d = difference_of(row.text);
        const char *got = outcome(row.text, &ok);
        different -= d != NULL;
        if (d != NULL && as_wanted(&row, ok, got)) CHECK_STR(got, "something else: the difference is none");
        if (!as_wanted(d != NULL ? d : &row, ok, got)) {
            printf("reading \"%s\"\n", row.text);
            CHECK_STR(got, d != NULL ? d->want : row.want);
        } else CHECK(true);
        if (!ok) continue;
        strcpy(again, printed);
        CHECK_STR(outcome(again, &ok), again);
    }
    fclose(f);
    CHECK_INT(count, 0);
    CHECK_INT(different, 0);
}

TEST(schema_registered) { check_corpus("schemas/registered.tsv", 4165, 0); }
TEST(schema_functions_1_13) { check_corpus("schemas/functions_1_13.tsv", 2493, 0); }
TEST(schema_functions_2_7) { check_corpus("schemas/functions_2_7.tsv", 475, 4); }
TEST(schema_odd) { check_corpus("schemas/odd.tsv", 624, 53); }

// Schemas are printed as they were given, and the text is parsed to the same schema.
TEST(schema_round_trip) {
    static const char *const same[] = {
        "f(Tensor! x, Tensor! y) -> Tensor(a)", "f(Tensor(a!)?[] x) -> ()", "f(Tensor(c|b|a! -> *) x) -> ()",
        "f(complex x=0.+1.5j, complex y=12.+0.j, complex[2] z=[1.-2.j, 0.+0.j]) -> ()",
        "f(Device? d=\"cuda:1\", Device e=\"cpu\") -> ()", "f(int[2]? x=1, int[1] y=[1], bool[2] z=[True, True]) -> ()",
        "f(Union(int, NoneType, str) x) -> Dict(str, (int, Tensor[])?)", "f((int, int)[2] x) -> ((float, int)[])",
        "f(float x=9.2233720368547758e+18, float y=1e+22, float z=1000000000000000.) -> ()",
        "f(int x=-9223372036854775808, int y=9223372036854775807) -> ()", "f(str x=\"\\303\\251\\a\\'\\000\") -> ()",
        "ns::f.o(Tensor(a!)[](b) x, *, int from) -> (int[2] y, int? z, ...)",
        "f(Union((int, str), NoneType)(a!)[] x, Dict(str, int)(a)? y, Union(str, Scalar)(b) z) -> ()",
    };
    size_t i;
    bool ok;
    for (i = 0; i < sizeof same / sizeof *same; i++) CHECK_STR(outcome(same[i], &ok), same[i]);
}

TEST(schema_numbers) {
    bool ok;
    CHECK_STR(outcome("f(int a=1E3, int b=0xFF, int c=00012, float? d=1) -> ()", &ok),
              "f(int a=1000., int b=255, int c=12, float? d=1) -> ()");
    CHECK_STR(outcome("f(complex a=12, complex b=2, complex c=-1.5j) -> ()", &ok),
              "f(complex a=12.+0.j, complex b=2.+0.j, complex c=0.-1.5j) -> ()");
    CHECK_STR(outcome("f(int[2.5] a, int[1e3] b, float c=.5, float d=0.1) -> ()", &ok),
              "f(int[2] a, int[1000] b, float c=0.5, float d=0.10000000000000001) -> ()");
    CHECK_STR(outcome("f(ScalarType? a=bfloat16, ScalarType b=int8, int c=long) -> ()", &ok),
              "f(ScalarType? a=15, ScalarType b=1, int c=4) -> ()");
}

// The beginnings of the messages.
TEST(schema_errors) {
    static const char *const cases[][2] = {
        {"a::b::c(int x) -> ()", "expected eof but found ':' here: line 1, column 5"},
        {"f.a.b() -> ()", "expected eof but found '.' here"},
        {"f.__x() -> ()", "__x is not a legal overload name for aten operators"},
        {"f(Tensor x,) -> ()", "expected ident but found ')' here"},
        {"f(int; x) -> ()", "expected a valid token but found ';' here"},
        {"f(int x=9223372036854775808) -> ()", "number out of range"},
        {"f(float x=1e-320) -> ()", "number out of range"},
        {"f(int[99999999999] x) -> ()", "number out of range"},
        {"f(int[2147483647] x=1) -> ()", "list is too long for a repeated default value"},
        {"f(int[] x=[1.5]) -> ()", "default value in a list is not of the list's type"},
        {"f(int[2] x=[True, 3]) -> ()", "default value in a list is not of the list's type"},
        {"f(int[] x=None) -> ()", "expected [ but found 'None' here"},
        {"f(int x=bfloat16) -> ()", "invalid numeric default value"},
        {"f(str x=\"\\x41\") -> ()", "unsupported hex specifier"},
        {"f(str x=\"\\u41\") -> ()", "unsupported unicode specifier"},
        {"f(str x=\"\\9\") -> ()", "ill formed octal specifier"},
        {"f(..., int x) -> ()", "... must be the last element of the argument list"},
        {"f() -> (..., int)", "... must be the last element of the return list"},
        {"f(int x=1, ...) -> ()", "schemas with vararg (...) can't have default value args"},
        {"f(Tensor(*|a) x) -> ()", "expected ) but found 'ident' here"},
        {"f(int x)\n  -> ()", "expected arrow but found 'indent' here"},
        {"f(Foo x) -> ()", "unknown type specifier"},
        {"f(Union(int) x) -> ()", "the types of a Union are one type; use it instead"},
        {"f", "Tried to parse a function schema but only the operator name was given"},
    };
    size_t i;
    bool ok;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got = outcome(cases[i][0], &ok);
        if (!starts_with(got, cases[i][1])) CHECK_STR(got, cases[i][1]);
        CHECK(!ok);
    }
    CHECK_STR(outcome("f(int x=1,\n  Tensor if) -> ()", &ok),
              "expected ident but found 'if' here: line 2, column 10\n  Tensor if) -> ()\n         ~~ <--- HERE");
    CHECK(opd_schema_parse(NULL) == NULL);
    CHECK_INT(opd_error_code(), OPD_ERROR_SCHEMA);
    opd_error_clear();
}

// 64 arguments are taken, 65 are not; nesting has an end.
TEST(schema_limits) {
    static char text[300000];
    int i, n;
    bool ok;
    for (n = 64; n <= 65; n++) {
        strcpy(text, "f(int a");
        for (i = 1; i < n; i++) strcat(text, ", int a");
        strcat(text, ") -> ()");
        outcome(text, &ok);
        CHECK_INT(ok, n == 64);
    }
    for (n = 0; n < 2; n++) {
        memset(text, '(', sizeof text);
        if (n == 1) for (i = 5; i < 200000; i++) text[i] = "[]"[(i - 5) % 2];
        memcpy(text, n == 0 ? "f(" : "f(int", n == 0 ? 2 : 5);
        text[200000] = 0;
        outcome(text, &ok);
        CHECK(!ok && starts_with(printed, "type has too many parts"));
    }
}

TEST(schema_queries) {
    opd_schema *s = opd_schema_parse("aten::f.out(Tensor? a, SymInt b, float? c, bool d, str e, int[2] f, float[] g, "
                                     "bool[] h, Tensor?[] i, Device j, Generator? k, Scalar l, *, Tensor(a!) out) "
                                     "-> (t, t)");
    static const int tags[] = {OPD_TAG_TENSOR, OPD_TAG_INT, OPD_TAG_FLOAT, OPD_TAG_BOOL, OPD_TAG_STR, OPD_TAG_INTS,
                               OPD_TAG_FLOATS, OPD_TAG_BOOLS, OPD_TAG_TENSORS, OPD_TAG_DEVICE, OPD_TAG_OBJECT, 0,
                               OPD_TAG_TENSOR};
    int i;
    char cut[6];
    CHECK(s != NULL);
    if (s == NULL) return;
    CHECK_INT(opd_schema_nargs(s), 13);
    CHECK_INT(opd_schema_nreturns(s), 2);
    CHECK_STR(opd_schema_arg_name(s, 12), "out");
    CHECK(opd_schema_arg_name(s, 13) == NULL);
    CHECK_INT(opd_error_code(), OPD_ERROR_INDEX);
    opd_error_clear();
    CHECK(opd_schema_is_mutable(s));
    for (i = 0; i < 13; i++) CHECK_INT(inside_arg_tag(s, i), tags[i]);
    CHECK(inside_arg_is_keyword_only(s, 12) && inside_arg_is_written(s, 12));
    CHECK(inside_arg_is_optional(s, 0) && !inside_arg_is_optional(s, 1));
    CHECK(opd_schema_print(s, cut, sizeof cut) > 100);
    CHECK_STR(cut, "aten:");
    CHECK(opd_schema_print(s, NULL, 0) > 100);
    opd_schema_free(s);
    opd_schema_free(NULL);
}

//-- relations ---------------------------------------------------------------------------------------------------------

// schemas/relations.tsv: pairs with PyTorch's verdicts; the reason is there when the verdict is no, and PyTorch's own
// where it has one (its text about out arguments is garbled, and names another one).
TEST(schema_relations) {
    static char line[1 << 13];
    char *cells[6], why[512];
    FILE *f = check_golden("schemas/relations.tsv");
    int n = 0, equal = 0;
    CHECK_OR_RETURN(f != NULL);
    for (; next_row(f, line, sizeof line, cells, 6) == 6; n++) {
        opd_schema *a = opd_schema_parse(cells[0]), *b = opd_schema_parse(cells[1]);
        bool same = opd_schema_equal(a, b), back, forth;
        CHECK_OR_RETURN(a != NULL && b != NULL);
        back = opd_schema_is_backward_compatible_with(a, b, why, sizeof why);
        CHECK_INT(back, why[0] == 0);
        forth = opd_schema_is_forward_compatible_with(a, b, why, sizeof why);
        CHECK_INT(forth, why[0] == 0);
        if (starts_with(cells[5], "Out argument")) CHECK(starts_with(why, "Out argument"));
        else if (cells[5][0] != 0) CHECK_STR(why, cells[5]);
        if (same != (cells[2][0] == '1') || back != (cells[3][0] == '1') || forth != (cells[4][0] == '1')) {
            printf("%s\n%s\n%s %s %s, not %d %d %d\n", cells[0], cells[1], cells[2], cells[3], cells[4], same, back,
                   forth);
            CHECK(!"as PyTorch says");
        }
        CHECK(!same || opd_schema_hash(a) == opd_schema_hash(b));
        CHECK(opd_schema_equal(b, a) == same && opd_schema_equal(a, a));
        equal += same;
        opd_schema_free(a);
        opd_schema_free(b);
    }
    fclose(f);
    CHECK_INT(n, 818);
    CHECK(equal > 90);
}

static int by_value(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static bool read_again_is_equal(const char *text) {
    opd_schema *s = opd_schema_parse(text), *t;
    bool same;
    (void)opd_schema_print(s, printed, sizeof printed);
    t = opd_schema_parse(printed);
    same = opd_schema_equal(s, t) && opd_schema_hash(s) == opd_schema_hash(t);
    opd_schema_free(s);
    opd_schema_free(t);
    return same;
}

// Unequal declarations have other hashes; one that was printed and read again is equal.
TEST(schema_hash) {
    static uint64_t hashes[4165];
    static golden_row row;
    FILE *f = check_golden("schemas/registered.tsv");
    int n = 0, i, twice = 0;
    CHECK_OR_RETURN(f != NULL);
    while (golden_next(f, &row) && n < 4165) {
        opd_schema *s = opd_schema_parse(row.text);
        CHECK(read_again_is_equal(row.text));
        hashes[n++] = opd_schema_hash(s);
        opd_schema_free(s);
    }
    fclose(f);
    qsort(hashes, (size_t)n, sizeof *hashes, by_value);
    for (i = 1; i < n; i++) twice += hashes[i] == hashes[i - 1];
    CHECK_INT(twice, 0);
    CHECK(opd_schema_equal(NULL, NULL) && opd_schema_hash(NULL) == 0);
    CHECK(read_again_is_equal("f((t!) x, int! y) -> (u!)") && read_again_is_equal("f(float x=-0.) -> ()"));
}

// PyTorch's rule (not bound in its Python): arguments contravariant, results covariant, names the same.
TEST(schema_subtypes) {
    static const struct { const char *a, *b; bool method, want; } cases[] = {
        {"f(Scalar x) -> int", "g(int x) -> Scalar", false, true},
        {"g(int x) -> Scalar", "f(Scalar x) -> int", false, false},
        {"f(int x) -> int", "f(int y) -> int", false, false}, {"f(int x) -> int", "f(int y) -> int", true, true},
        {"f(int x) -> int", "f(int x, int y) -> int", false, false}, {"f() -> int", "f() -> int", true, false},
        {"f(int? x) -> (int, str)", "f(int x) -> (Any, str?)", false, true},
        {"f() -> int[]", "f() -> Scalar[]", false, false},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        opd_schema *a = opd_schema_parse(cases[i].a), *b = opd_schema_parse(cases[i].b);
        if (opd_schema_is_subtype_of(a, b, cases[i].method) != cases[i].want) CHECK_STR(cases[i].a, cases[i].b);
        CHECK(!opd_schema_is_subtype_of(a, NULL, false));
        opd_schema_free(a);
        opd_schema_free(b);
    }
}

static opd_tensor *stores[26];
static opd_tensor *tensor_of(char letter) {
    const int i = (letter | 32) - 'a';
    if (stores[i] == NULL) stores[i] = opd_zeros(OPD_INTS(3), OPD_FLOAT32);
    return letter >= 'a' ? opd_narrow(stores[i], 0, 1, 2) : stores[i];
}

// The values of a line of alias.tsv (see its maker).
static void alias_values(char *text, opd_value *values, int n) {
    static opd_tensor *list[16];
    char *word = strtok(text, " ");
    int i, k;
    memset(stores, 0, sizeof stores);
    for (i = 0; i < n; i++, word = strtok(NULL, " ")) {
        if (word == NULL || word[0] == '?') values[i] = opd_value_default();
        else if (strcmp(word, "True") == 0 || strcmp(word, "False") == 0) values[i] = opd_value_bool(word[0] == 'T');
        else if (word[0] != '[') values[i] = opd_value_tensor(tensor_of(word[0]));
        else {
            for (k = 0; word[k + 1] != ']'; k++) list[k] = tensor_of(word[k + 1]);
            values[i] = opd_value_tensors(list, k);
        }
    }
}

static bool listed(const char *list, int a, int b) {
    char one[32];
    const size_t n = (size_t)(b == 99 ? snprintf(one, sizeof one, "%d", a) : snprintf(one, sizeof one, "%d,%d", a, b));
    const char *at = list;
    while ((at = strstr(at, one)) != NULL) {
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == 0)) return true;
        at++;
    }
    return false;
}

static bool is_one_of(const opd_schema *s, const char *const *names) {
    char name[80];
    snprintf(name, sizeof name, "%s.%s", inside_schema_name(s), inside_schema_overload(s));
    while (*names != NULL && strcmp(name, *names) != 0) names++;
    return *names != NULL;
}

// schemas/alias.tsv: PyTorch's answers for every argument, result and pair.  It never finds two lists (or a tuple and
// itself) to be one, and knows some forms of the normalisations not to write their statistics; there, and only there,
// ours may be yes.
TEST(schema_alias) {
    static const char *const forgotten[] = {"cudnn_batch_norm.out", "miopen_batch_norm.out",
                                            "rrelu_with_noise_.", "batch_norm_update_stats.",
                                            "batch_norm_update_stats.out", NULL};
    static char line[1 << 13], again_values[256];
    char *cells[5];
    FILE *f = check_golden("schemas/alias.tsv");
    int n = 0, i, k, more = 0;
    CHECK_OR_RETURN(f != NULL);
    for (; next_row(f, line, sizeof line, cells, 5) == 5; n++) {
        opd_schema *s = opd_schema_parse(cells[0]);
        opd_value values[OPD_MAX_ARGS];
        const bool given = cells[1][0] != 0;
        const int na = opd_schema_nargs(s), total = na + opd_schema_nreturns(s);
        CHECK_OR_RETURN(s != NULL);
        snprintf(again_values, sizeof again_values, "%s", cells[1]);
        alias_values(again_values, values, na);
        for (i = 0; i < total; i++) {
            const int a = i < na ? i : OPD_RESULT(i - na);
            const bool mutable_here = opd_schema_is_mutable_at(s, a, given ? values : NULL);
            bool as_there = mutable_here == listed(cells[2], a, 99);
            if (mutable_here && (inside_holds_others(s, a) || is_one_of(s, forgotten))) as_there = true;
            more += mutable_here && !listed(cells[2], a, 99);
            for (k = i; k < total; k++) {
                const int b = k < na ? k : OPD_RESULT(k - na);
                const bool may = opd_schema_may_alias(s, a, b, given ? values : NULL);
                const bool contain = opd_schema_may_contain_alias(s, a, b, true, given ? values : NULL);
                const bool may_there = listed(cells[3], a, b), contain_there = listed(cells[4], a, b);
                const bool open = inside_holds_others(s, a) && inside_holds_others(s, b);
                as_there &= may == may_there || (open && may);
                as_there &= contain == contain_there || (open && contain);
                more += may != may_there || contain != contain_there;
                if (!as_there) printf("%d, %d may alias %d, contain %d\n", a, b, may, contain);
                CHECK_INT(opd_schema_may_alias(s, b, a, given ? values : NULL), may);
            }
            if (!as_there) { printf("place %d of %s\n", a, cells[0]); CHECK(!"as PyTorch says"); }
        }
        opd_schema_free(s);
    }
    fclose(f);
    CHECK_INT(n, 1137);
    CHECK(more <= 40);
}

TEST(schema_alias_places) {
    opd_schema *s = opd_schema_parse("f(Tensor(a!)[](b) x, Tensor y, Tensor(*)[] z) -> Tensor(a)");
    CHECK(opd_schema_is_mutable(s) && opd_schema_is_mutable_at(s, 0, NULL) && !opd_schema_is_mutable_at(s, 1, NULL));
    CHECK(opd_schema_is_aliasing(s, 0) && !opd_schema_is_aliasing(s, 1) && opd_schema_is_aliasing(s, OPD_RESULT(0)));
    CHECK(!opd_schema_may_contain_alias(s, 1, 0, false, NULL));
    CHECK(!opd_schema_may_alias(s, 0, 3, NULL));
    CHECK_ERROR(OPD_ERROR_INDEX, "schema has no argument 3");
    CHECK(!opd_schema_may_alias(s, OPD_RESULT(1), 0, NULL));
    CHECK_ERROR(OPD_ERROR_INDEX, "schema has no result 1");
    opd_schema_free(s);
}

// Type variables: in aten and prim always, elsewhere where the caller allows them.  The library's namespace.
TEST(schema_namespace) {
    const char *text = "f(t x) -> t";
    opd_schema *s = inside_schema_parse(text, "aten", false);
    CHECK(s != NULL && strcmp(inside_schema_ns(s), "aten") == 0);
    opd_schema_free(s);
    CHECK(inside_schema_parse(text, "myops", false) == NULL);
    CHECK(starts_with(opd_error_message(), "unknown type specifier"));
    opd_error_clear();
}

TEST(schema_names) {
    const char *overload = NULL;
    int lengths[3] = {0, 0, 0};
    CHECK_INT(inside_name_parse("aten::add.Tensor", lengths, &overload), 0);
    CHECK(lengths[0] == 4 && lengths[1] == 3 && lengths[2] == 6 && memcmp(overload, "Tensor", 6) == 0);
    CHECK_INT(inside_name_parse(" f ", lengths, &overload), 0);
    CHECK(lengths[0] == 0 && lengths[1] == 1 && lengths[2] == 0);
    CHECK_INT(inside_name_parse("f() -> ()", lengths, &overload), -1);
    CHECK(strstr(opd_error_message(), "function schema was given") != NULL);
    opd_error_clear();
    CHECK_INT(inside_name_parse("f.default", lengths, &overload), -1);
    opd_error_clear();
}

// The schemas of built-in operators are read by other functions than those of a program.  Both give the same.
TEST(schemas_of_built_in_operators) {
    int ops = 0, wrong = 0;
    for (opd_op *op = opd_op_next(NULL); op; op = opd_op_next(op)) {
        if (strncmp(opd_op_name(op), "aten::", 6) != 0) { continue; }
        opd_schema_print(opd_op_schema(op), printed, sizeof printed);
        opd_schema *read = inside_schema_read(printed + 6, "aten"), *parsed = inside_schema_parse(printed, "", true);
        bool same = read && parsed && opd_schema_equal(read, parsed) && opd_schema_equal(opd_op_schema(op), parsed);
        for (int i = 0; same && i < opd_schema_nargs(parsed); i++) {
            same = inside_arg_tag(read, i) == inside_arg_tag(parsed, i) &&
                inside_arg_is_written(read, i) == inside_arg_is_written(parsed, i) &&
                inside_arg_is_keyword_only(read, i) == inside_arg_is_keyword_only(parsed, i) &&
                inside_arg_is_optional(read, i) == inside_arg_is_optional(parsed, i);
        }
        if (same) {
            opd_schema_print(read, again, sizeof again);
            same = strcmp(printed, again) == 0;
        }
        if (!same && wrong++ < 5) { printf("    %s\n", printed); }
        opd_schema_free(read);
        opd_schema_free(parsed);
        ops++;
    }
    CHECK_INT(wrong, 0);
#if !defined(OPD_LEAN)                            /* then a program has only the operators that it calls */
    CHECK(ops > 2000);
#endif
    // What no built-in operator has is refused, or read to the end.
    static const char *const texts[] = {"f(Union(int, str) x) -> ()", "f(int x=", "f(int x) -> (", "f(", "", "f(int[2 x) -> ()",
                                        "f(int[3] x=[1, 2, 3, 4, 5, 6, 7, 8, 9]) -> ()", "f(Tensor(a|b) x) -> ()",
                                        "f(t x) -> ()", "f(int[] x=1) -> ()",
                                        "f(int x) -> int y z", "f(float x=1e", "f(int x=-", "f(str x=\"abc) -> ()", "f(int[16] x=1) -> ()"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        CHECK(inside_schema_read(texts[i], "aten") == NULL);
        CHECK_ERROR(OPD_ERROR_SCHEMA, "no built-in operator has a schema of this form");
    }
}

// Whichever allocation fails, there is an error and nothing is left behind.
TEST(schema_out_of_memory) {
    static const char *const texts[] = {
        "f(Dict(str, (Tensor(a!)[], int?)) z, complex[] x=[1, 2j], int[300] y=1, str s='abc') -> Tensor",
        "f(Union(int, str, None)(a|b -> *) x, Tensor! y, Union(Future(int), RRef(str))?[] z, Scalar u=1.+2.j) -> t",
        "f(__torch__.torch.classes.a.B b, (int, int, int, int, int, int, int, int, int) t) -> (int a, str[2] b, ...)",
    };
    const int64_t live = opd_memory_stats().live;
    opd_schema *s;
    int64_t n;
    size_t i;
    for (i = 0; i < sizeof texts / sizeof *texts; i++) {
        for (n = 1, s = NULL; n < 200 && s == NULL; n++) {
            inside_tight = true;
            opd_memory_fail_at(n, false);
            s = opd_schema_parse(texts[i]);
            opd_memory_fail_at(0, false);
            inside_tight = false;
            CHECK_INT(opd_error_code(), s != NULL ? OPD_OK : OPD_ERROR_MEMORY);
            opd_error_clear();
        }
        CHECK(s != NULL && n > 10);
        opd_schema_free(s);
        CHECK_INT(opd_memory_stats().live, live);
    }
}

CHECK_MAIN()
