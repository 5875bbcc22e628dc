/* Sources of scripts with changed bytes, swapped words, and removed or moved lines.  Each source compiles or is
   refused with an error; a compiled script runs for a part of a second.  Nothing crashes, and no memory is lost.
   The sources are those of golden/scripts.json and golden/script_graphs.py.  FUZZ_FIRST=n FUZZ_COUNT=n in the
   environment run other rounds than the first ones, and print each round before it runs.  C ONLY: processes and
   their times. */
#include "../../opdispatch.h"
#include "../check.h"
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 400, SOURCES = 200, ROOM = 20000, LINES = 400, WORDS = 4000 };

static char *sources[SOURCES];
static int nsources;
static uint64_t state;
static uint32_t draw(uint32_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 33) % below;
}
static void source_add(const char *text, size_t length) {
    if (nsources == SOURCES || length < 8 || length > ROOM / 4) { return; }
    char *const copy = (char *)calloc(length + 2, 1);
    memcpy(copy, text, length);
    if (copy[length - 1] != '\n') { copy[length] = '\n'; }
    sources[nsources++] = copy;
}
static char *golden_text(const char *name) {
    char *const text = (char *)calloc(1 << 19, 1);
    FILE *file = check_golden(name);
    CHECK(file && fread(text, 1, (1 << 19) - 1, file) > 0);
    if (file) { fclose(file); }
    return text;
}
/* Reads the sources: those of the cases, and the functions of the other file one by one. */
static void sources_read(void) {
    char *text = golden_text("script_graphs.py");
    for (size_t from = 0, to; text[from]; from = to) {
        const char *const next = strstr(text + from + 1, "\ndef ");
        to = next ? (size_t)(next + 1 - text) : strlen(text);
        source_add(text + from, to - from);
    }
    free(text);
    text = golden_text("scripts.json");
    opd_json *cases = opd_json_parse(text, strlen(text));
    for (int64_t at = opd_json_first(cases, 0); at >= 0; at = opd_json_next(cases, at)) {
        const char *const source = opd_json_text(cases, opd_json_get(cases, at, "source"), "");
        source_add(source, strlen(source));
    }
    opd_json_free(cases);
    free(text);
}

//-- changes ------------------------------------------------------------------------------------------------------------

/* Writes the begins of all lines, or of all words, and then the end of the text.  Returns the number of begins. */
static int cut(const char *text, bool lines, int *at) {
    const int length = (int)strlen(text);
    int count = 0;
    for (int i = 0; i < length && count + 1 < (lines ? LINES : WORDS);) {
        at[count++] = i;
        if (lines) {
            i += (int)strcspn(text + i, "\n");
            i += text[i] == '\n';
        } else {
            const int word = (int)strspn(text + i, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
            i += word ? word : 1;
        }
    }
    at[count] = length;
    return count;
}
/* Replaces length bytes at `at` by others, if there is room. */
static void put(char *text, int at, int length, const char *by, int count) {
    static char whole[ROOM];
    const int all = (int)strlen(text);
    if (all - length + count >= ROOM || at + length > all) { return; }
    memcpy(whole, text, (size_t)at);
    memcpy(whole + at, by, (size_t)count);
    strcpy(whole + at + count, text + at + length);
    strcpy(text, whole);
}
static void change_bytes(char *text) {
    static const char likely[] = "()[]{}:,.=+-*/%<>!@&|^~#'\"\\ \n\tfxi0919e_\x80\xff";
    const char byte = likely[draw(sizeof likely - 1)];
    const int length = (int)strlen(text);
    if (length) { put(text, (int)draw((uint32_t)length), (int)draw(2), &byte, (int)draw(2)); }
}
static void change_words(char *text) {
    static const char *const likely[] = {"None", "True", "0", "-1", "9223372036854775807", "1e400", "self", "Tensor",
        "List[int]", "Optional[Tensor]", "Dict[str, int]", "Tuple[int, str]", "return", "break", "continue", "if", "else",
        "for", "while", "in", "not", "is", "and", "lambda", "class", "def", "torch", "len", "range", "print", "isinstance",
        "raise", "assert", "del", "with", "pass", "[", "]", "(", ")", "**", "//", "...", "x", "y", "[:]", "[0]", "\n"};
    static int at[WORDS], other[WORDS];
    char first[200], second[200];
    const int count = cut(text, false, at), i = count ? (int)draw((uint32_t)count) : 0;
    if (!count) { return; }
    const int length = at[i + 1] - at[i], k = (int)draw((uint32_t)count), its = at[k + 1] - at[k];
    if (length > 190 || its > 190) { return; }
    if (draw(3) == 0) {
        const char *const word = likely[draw(sizeof likely / sizeof likely[0])];
        put(text, at[i], length, word, (int)strlen(word));
    } else if (draw(2)) {
        const char *const source = sources[draw((uint32_t)nsources)];
        const int n = cut(source, false, other), j = n ? (int)draw((uint32_t)n) : 0;
        if (n && other[j + 1] - other[j] < 190) { put(text, at[i], length, source + other[j], other[j + 1] - other[j]); }
    } else if (i != k) {
        memcpy(first, text + at[i], (size_t)length);
        memcpy(second, text + at[k], (size_t)its);
        put(text, at[i > k ? i : k], i > k ? length : its, i > k ? second : first, i > k ? its : length);
        put(text, at[i > k ? k : i], i > k ? its : length, i > k ? first : second, i > k ? length : its);
    }
}
static void change_lines(char *text) {
    static int at[LINES], other[LINES];
    char line[1000];
    const int count = cut(text, true, at), i = count ? (int)draw((uint32_t)count) : 0;
    const char *const source = draw(2) ? text : sources[draw((uint32_t)nsources)];
    const int n = cut(source, true, other), j = n ? (int)draw((uint32_t)n) : 0;
    if (!count || !n || other[j + 1] - other[j] > 990) { return; }
    const int length = at[i + 1] - at[i], its = other[j + 1] - other[j];
    memcpy(line, source + other[j], (size_t)its);
    switch (draw(4)) {
    case 0: put(text, at[i], length, "", 0); break;
    case 1: put(text, at[i], 0, line, its); break;
    case 2: put(text, at[i], length, line, its); break;
    default: put(text, at[i], (int)draw(2) * (int)strspn(text + at[i], " "), "        ", (int)draw(3) * 4); break;
    }
}

//-- running compiled scripts ----------------------------------------------------------------------------------------------

/* Makes something of a type as it is written: List[int]. */
static opd_value made_of(const char *type) {
    const char *const inner = strchr(type, '[') ? strchr(type, '[') + 1 : "";
    if (strncmp(type, "Tensor", 6) == 0) { return opd_value_tensor(opd_arange(OPD_V(6), OPD_FLOAT32)); }
    if (strncmp(type, "int", 3) == 0) { return opd_value_int(3); }
    if (strncmp(type, "float", 5) == 0) { return opd_value_double(0.5); }
    if (strncmp(type, "bool", 4) == 0) { return opd_value_bool(true); }
    if (strncmp(type, "str", 3) == 0) { return opd_string_new("ab", -1); }
    if (strncmp(type, "Optional", 8) == 0) { return made_of(inner); }
    if (strncmp(type, "Dict", 4) == 0) {
        opd_value dict = opd_dict_new();
        const char *const comma = strchr(inner, ',');
        if (comma) { (void)opd_dict_set(dict, made_of(inner), made_of(comma + 1 + strspn(comma + 1, " "))); }
        return dict;
    }
    if (strncmp(type, "List", 4) == 0) {
        opd_value first = made_of(inner), list = opd_list_new(first.tag == OPD_TAG_TENSOR ? OPD_TAG_TENSORS
            : first.tag == OPD_TAG_INT ? OPD_TAG_INTS : first.tag == OPD_TAG_FLOAT ? OPD_TAG_FLOATS : OPD_TAG_LIST);
        for (int i = 0; i < 3; i++) { (void)opd_list_append(list, made_of(inner)); }
        return list;
    }
    return opd_value_none();
}
static void run_all(const opd_script *script) {
    for (int i = 0; i < opd_script_count(script); i++) {
        OPD_SCOPED;
        char type[200];
        opd_value args[20], result = opd_value_none();
        const char *const name = opd_script_name(script, i);
        const int nargs = opd_script_nargs(script, name);
        for (int k = 0; k < nargs && k < 20; k++) {
            (void)opd_script_arg_type(script, name, k, type, sizeof type);
            args[k] = opd_ok() ? made_of(type) : opd_value_none();
        }
        if (opd_ok() && nargs <= 20) { (void)opd_script_run(script, name, args, nargs < 0 ? 0 : nargs, &result); }
        opd_error_clear();
    }
}
/* Compiles and, if runs, runs a source; true if it compiles. */
static bool take(const char *text, bool runs) {
    static char printed[2000];
    OPD_SCOPED;
    opd_script *script = opd_script_compile(text, "changed.py");
    if (!script && opd_ok()) { printf("neither compiled nor refused:\n%s\n", text); }
    CHECK(script || !opd_ok());
    CHECK(opd_ok() || *opd_error_message());
    opd_error_clear();
    const bool compiles = script != NULL;
    for (int i = 0; script && i < opd_script_count(script); i++) {
        const opd_graph *graph = opd_script_graph(script, opd_script_name(script, i));
        if (graph) { (void)opd_graph_print(graph, printed, sizeof printed); }
        CHECK((graph != NULL) == opd_ok());
        opd_error_clear();
    }
    if (script && runs) { run_all(script); }
    opd_script_free(script);
    return compiles;
}
static int64_t live(void) { return opd_memory_stats().live; }
static void quiet(void *user, int is_error, const char *text) { (void)user; (void)is_error; (void)text; }
static void stopped(int number) { _exit(number ? 77 : 0); }
/* Runs a source in a process that ends after a part of a second; what it may exit with is 0, 77: it went on. */
static void run_apart(const char *text, unsigned long long round) {
    const struct itimerval most = {{0, 0}, {0, 300000}};
    int status = 0;
    (void)fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        int64_t before = 0;
        check_failures = 0;
        if (!freopen("/dev/null", "w", stdout)) { CHECK_CHILD_ENDS(79); }      /* scripts print */
        signal(SIGPROF, stopped);
        setitimer(ITIMER_PROF, &most, NULL);
        for (int i = 0; i < 3; i++) {
            (void)take(text, true);
            before = i == 1 ? live() : before;    /* what grows once has grown */
        }
        CHECK_CHILD_ENDS(live() > before ? 78 : check_failures ? 79 : 0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    const bool well = WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77);
    if (!well) { printf("round %llu ends with status %x:\n%s\n", round, (unsigned)status, text); }
    CHECK(well);
}

TEST_KEEPS(changed_sources_compile_and_run_or_are_refused) {
    static char text[ROOM], once[ROOM];
    const char *const from = getenv("FUZZ_FIRST"), *const count = getenv("FUZZ_COUNT");
    const unsigned long long first = from ? strtoull(from, NULL, 10) : 1;
    const unsigned long long last = first + (count ? strtoull(count, NULL, 10) : ROUNDS);
    int compiled = 0;
    sources_read();
    CHECK_OR_RETURN(nsources > 50);
    opd_log_set(quiet, NULL);
    for (int i = 0; i < nsources; i++) { (void)take(sources[i], false); }
    for (unsigned long long round = first; round < last; round++) {
        state = round * 0x9e3779b97f4a7c15u;
        (void)draw(2);
        strcpy(text, sources[draw((uint32_t)nsources)]);
        for (int changes = 1 + (int)draw(4) / 2; changes > 0; changes--) {
            const uint32_t kind = draw(5);
            if (kind == 0) { change_bytes(text); } else if (kind < 4) { change_words(text); } else { change_lines(text); }
        }
        if (from) { printf("round %llu\n", round); fflush(stdout); }
        strcpy(once, text);
        (void)take(text, false);
        const int64_t before = live();
        if (take(text, false)) {
            compiled++;
            run_apart(text, round);
        }
        if (live() > before) { printf("round %llu loses %lld bytes:\n%s\n", round, (long long)(live() - before), once); }
        CHECK(live() <= before);
    }
    opd_log_set(NULL, NULL);
    if (from) { printf("%d of %llu compile\n", compiled, last - first); }
    CHECK(last - first < 50 || compiled > (int)((last - first) / 50));
    for (int i = 0; i < nsources; i++) { free(sources[i]); }
    nsources = 0;
}
CHECK_MAIN()
