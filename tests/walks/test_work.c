/* The work for a text or file grows with its length, and not with the square of it: each kind of text is read with n
   and with 4 n names.  Four times the work is expected; only what takes more than nine times as long in each of several
   tries is a fault. */
#include "../../opdispatch.h"
#include "../check.h"
#include <time.h>
#include <unistd.h>

enum { SMALL = 800, TRIES = 6 };
static char *text;
static size_t length, room;
static void put(const char *format, int number) {
    while (room - length < 100 + strlen(format)) { text = (char *)realloc(text, room = 2 * room + 1000); }
    length += (size_t)snprintf(text + length, room - length, format, number, number);
}
/* A text has a head, n lines of each of two patterns, and an end. */
typedef struct kind { const char *name, *head, *lines, *middle, *more, *end; } kind;
static const kind kinds[] = {
    {"assignments", "def f(x: int) -> int:\n", "    y%d = x + 1\n", "", "", "    return x\n"},
    {"results that are not used", "def f(x: int) -> int:\n    y = x\n", "    y = y + 1\n", "", "", "    return x\n"},
    {"literals", "def f(x: int) -> int:\n", "    x = x + %d\n", "", "", "    return x\n"},
    {"texts", "def f(x: str) -> str:\n", "    x = x + 'a%d'\n", "", "", "    return x\n"},
    {"functions", "", "def f%d(x: int) -> int:\n    return x\n", "", "", "def f(x: int) -> int:\n    return x\n"},
    {"calls of functions", "", "def f%d(x: int) -> int:\n    return x\n", "def f(x: int) -> int:\n", "    x = f%d(x)\n", "    return x\n"},
    {"calls", "def g(x: int) -> int:\n    return x + 1\ndef f(x: int) -> int:\n", "    x = g(x)\n", "", "", "    return x\n"},
    {"classes", "", "class C%d:\n    def __init__(self):\n        self.a = 1\n", "", "", "def f(x: int) -> int:\n    return x\n"},
    {"attributes", "class C:\n    def __init__(self):\n", "        self.a%d = 1\n", "", "",
     "def f(x: int) -> int:\n    c = C()\n    return c.a0\n"},
    {"methods", "class C:\n    def __init__(self):\n        self.a = 1\n", "    def m%d(self) -> int:\n        return self.a\n", "", "",
     "def f(x: int) -> int:\n    c = C()\n    return x\n"},
    {"members of an enum", "class C(Enum):\n", "    m%d = 1%d\n", "def f(x: int) -> int:\n", "    c%d = C.m%d\n", "    return x\n"},
    {"branches", "def f(x: int) -> int:\n", "    if x > %d:\n        x = x + 1\n", "", "", "    return x\n"},
    {"calls in a row", "def f(x: Tensor) -> Tensor:\n    return x", ".relu()[0:]", "", "", "\n"},
    {"loops", "def f(x: int) -> int:\n", "    for i in range(3):\n        x = x + i\n", "", "", "    return x\n"},
    {"variables of a loop", "def f(x: int) -> int:\n", "    y%d = 0\n", "    while x > 0:\n", "        y%d = y%d + x\n",
     "        x = x - 1\n    return x\n"},
    {"empty lists", "def f(x: int) -> int:\n", "    y%d = []\n", "", "", "    return x\n"},
    {"elements", "def f(x: int) -> List[int]:\n    return [x", ", %d", "", "", "]\n"}};
static void make(const kind *its, int count) {
    length = 0;
    put(its->head, 0);
    for (int i = 0; i < count; i++) { put(its->lines, i); }
    put(its->middle, 0);
    for (int i = 0; i < count; i++) { put(its->more, i); }
    put(its->end, 0);
}
static double script(int count, const void *its) {
    make((const kind *)its, count);
    const clock_t begin = clock();
    OPD_SCOPE {
        opd_script *script = opd_script_compile(text, NULL);
        CHECK(script && opd_script_graph(script, "f"));
        opd_script_free(script);
    }
    return (double)(clock() - begin) / CLOCKS_PER_SEC;
}
static double json(int count, const void *its) {
    char name[20];
    (void)its;
    length = 0;
    put("{\"k\": 1", 0);
    for (int i = 0; i < 4 * count; i++) { put(", \"k%d\": 1%d", i); }
    put("}", 0);
    const clock_t begin = clock();
    opd_json *json = opd_json_parse(text, length);
    for (int i = 0; i < 4 * count; i++) {
        (void)snprintf(name, sizeof name, "k%d", i);
        if (opd_json_int(json, opd_json_get(json, 0, name), 0) % 10 != i % 10) { CHECK(!"another value"); }
    }
    opd_json_free(json);
    return (double)(clock() - begin) / CLOCKS_PER_SEC;
}
/* A checkpoint whose dict has `count` dicts, each with two numbers. */
static double checkpoint(int count, const void *its) {
    char path[] = "/tmp/opd_work_XXXXXX", (*names)[24] = (char (*)[24])malloc((size_t)count * 2 * sizeof *names);
    const char **list = (const char **)malloc((size_t)count * 2 * sizeof *list);
    opd_value *values = (opd_value *)malloc((size_t)count * 2 * sizeof *values), value;
    const int fd = mkstemp(path);
    (void)its;
    for (int i = 0; i < 2 * count; i++) {
        list[i] = names[i];
        (void)snprintf(names[i], sizeof names[i], "d/k%d/%c", i % count, i < count ? 'a' : 'b');
        values[i] = opd_value_int(i);
    }
    const clock_t begin = clock();
    CHECK_INT(opd_checkpoint_file_save(path, list, values, 2 * count), 0);
    opd_tensor_file *file = opd_tensor_file_open(path);
    CHECK_INT(opd_tensor_file_count(file), 2 * count);
    for (int i = 0; i < 2 * count; i++) {
        if (opd_tensor_file_value(file, names[i], &value) || value.u.i != i) { CHECK(!"another value"); }
    }
    opd_tensor_file_close(file);
    const double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    if (fd >= 0) { close(fd); }
    remove(path);
    free(names);
    free(list);
    free(values);
    return seconds;
}
static void check_work(const char *name, double (*work)(int count, const void *its), const void *its) {
    double first = 0, second = 0;
    bool fine = false;
    for (int i = 0; i < TRIES && !fine; i++) {
        first = work(SMALL, its);
        second = work(4 * SMALL, its);
        fine = second < 9 * first + 0.02;
    }
    if (!fine) { printf("%s: %.3f s for %d names, %.3f s for %d\n", name, first, SMALL, second, 4 * SMALL); }
    CHECK(fine);
}
TEST(scripts) {
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (check_visits(i, sizeof kinds / sizeof kinds[0])) { check_work(kinds[i].name, script, &kinds[i]); }
    }
}
TEST(members_of_json) { check_work("json", json, NULL); }
TEST(names_of_checkpoints) { check_work("checkpoint", checkpoint, NULL); }
/* The last member of a name counts, in a small object and in a large one. */
TEST(names_that_json_has_twice) {
    for (int count = 2; count < 200; count *= 5) {
        length = 0;
        put("[{\"k\": 1, \"a\": 5", 0);
        for (int i = 0; i < count; i++) { put(", \"k%d\": {\"a\": 1}", i); }
        put(", \"k\": 2, \"k1\": 3}, {\"k\": 4}]", 0);
        opd_json *json = opd_json_parse(text, length);
        const int64_t object = opd_json_first(json, 0);
        CHECK_INT(opd_json_int(json, opd_json_get(json, object, "k"), 0), 2);
        CHECK_INT(opd_json_int(json, opd_json_get(json, object, "k1"), 0), 3);
        CHECK_INT(opd_json_int(json, opd_json_get(json, object, "a"), 0), 5);
        CHECK_INT(opd_json_get(json, object, "k9999"), -1);
        CHECK_INT(opd_json_int(json, opd_json_get(json, opd_json_get(json, object, "k0"), "a"), 0), 1);
        CHECK_INT(opd_json_int(json, opd_json_get(json, opd_json_next(json, object), "k"), 0), 4);
        opd_json_free(json);
    }
}
/* A few lines of text that stand for a graph or a type whose size is exponential in their number, and classes that use
   one another.  `line` has the numbers i, i - 1 and i - 1. */
TEST(texts_that_expand) {
    static const struct { const char *head, *line, *end; int count; const char *says; } all[] = {
        {"def f0(x: int) -> int:\n    return x + 1\n", "def f%d(x: int) -> int:\n    return f%d(x) + f%d(x)\n", "", 24,
         "values, which is too much for a text of"},
        {"def f(x: int) -> int:\n    a0 = (x, x)\n", "    a%d = (a%d, a%d)\n", "    return a39 + x\n", 40, "a type has more than 4096 parts"},
        {"def f(x: int) -> int:\n    a0 = [x, x]\n", "    a%d = {1: (a%d, a%d)}\n", "    return a39 + x\n", 40, "a type has more than 4096 parts"},
        {"def f(x: int) -> int:\n    a0 = (x,)\n", "    a%d = (a%d,)\n", "    return x\n", 400, "nested more than 256 deep"},
        {"class A0:\n    def __init__(self, x: int):\n        self.x = x\n",
         "class A%d:\n    def __init__(self, x: A%d):\n        self.x = x\n", "", 20000, "classes use one another too deep"},
        {"class A0:\n    x : int\n", "class A%d:\n    x : A%d\n", "", 20000, "classes use one another too deep"}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        length = 0;
        put(all[i].head, 0);
        for (int k = 1; k < all[i].count; k++) {
            char line[200];
            (void)snprintf(line, sizeof line, all[i].line, k, k - 1, k - 1);
            put(line, 0);
        }
        put(all[i].end, 0);
        opd_script *script = opd_script_compile(text, NULL);
        CHECK(!script || !opd_script_graph(script, "f"));
        if (i >= 4 && opd_error_code() == OPD_ERROR_MEMORY) { opd_error_clear(); }       /* the stack is too small for 1,000 */
        else { CHECK_ERROR(OPD_ERROR_SCHEMA, all[i].says); }
        opd_script_free(script);
    }
}
/* Texts that are too long in one direction say what to do. */
TEST(texts_that_are_long) {
    static const struct { kind its; const char *says; } all[] = {
        {{"", "def f(x: int) -> int:\n    if x == 0:\n        x = 1\n", "    elif x == %d:\n        x = 2\n", "", "", "    return x\n"},
         "this is nested more than 4000 deep: an `elif`, and the statements after an `if` that returns, count as nested"},
        {{"", "def f(x: int) -> int:\n", "    if x > %d:\n        return x\n", "", "", "    return x\n"},
         "this is nested more than 4000 deep: an `elif`, and the statements after an `if` that returns, count as nested"},
        {{"", "def f(x: int) -> int:\n    return x", " + x", "", "", "\n"}, "more than 200 operators in a row: assign a part"}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        make(&all[i].its, 5000);
        opd_script *script = opd_script_compile(text, NULL);
        CHECK(!script || !opd_script_graph(script, "f"));
        CHECK_ERROR(OPD_ERROR_SCHEMA, all[i].says);
        opd_script_free(script);
    }
}
CHECK_MAIN()
