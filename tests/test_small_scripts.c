/* Small scripts: what they give as text, and which are refused (golden/small_scripts.txt, made by
   golden/make_small_scripts.py).  None crashes, hangs or leaves memory behind; each refusal has a text. */
#include "check.h"

enum { ROW_LONGEST = 4000 };

/* A text as Python's repr writes it, without its quotes. */
static void write_repr(const char *text, int64_t length, char *to, size_t room) {
    size_t at = 0;
    for (int64_t i = 0; i < length && at + 8 < room; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == '\n' || c == '\t' || c == '\r' || c == '\\') {
            to[at++] = '\\';
            to[at++] = c == '\n' ? 'n' : c == '\t' ? 't' : c == '\r' ? 'r' : '\\';
        } else if (c < 32 || c == 127) { at += (size_t)sprintf(to + at, "\\x%02x", c); }
        else { to[at++] = (char)c; }
    }
    to[at] = 0;
}
static void check_row(const char *source, const char *want) {
    char whole[ROW_LONGEST + 100], have[ROW_LONGEST] = "!";
    opd_value result;
    opd_script *script;
    bool right;
    (void)snprintf(whole, sizeof whole, "%s\ndef the_text():\n    return str(f())\n", source);
    script = opd_script_compile(whole, NULL);
    if (script && opd_script_run(script, "the_text", NULL, 0, &result) == 0) {
        int64_t length = 0;
        const char *text = opd_string_text(&result, &length);
        memcpy(have, "= ", 2);
        write_repr(text, length, have + 2, sizeof have - 2);
    }
    right = strcmp(have, *want == '~' ? want + 2 : want) == 0 && (*have != '!' || (!opd_ok() && opd_error_message()[0] != 0));
    if (!right) { printf("%s\n  expected %s\n  gives %s\n  error \"%s\"\n", source, want, have, opd_error_message()); }
    CHECK(right);
    opd_error_clear();
    if (script) { opd_script_free(script); }
}
TEST(small_scripts_give_what_pytorch_gives) {
    static char source[ROW_LONGEST], line[ROW_LONGEST];
    FILE *golden = check_golden("small_scripts.txt");
    size_t length = 0;
    int count = 0;
    CHECK_OR_RETURN(golden != NULL);
    while (fgets(line, sizeof line, golden)) {
        const size_t more = strcspn(line, "\n");
        line[more] = 0;
        if (strncmp(line, "= ", 2) == 0 || strcmp(line, "!") == 0 || strncmp(line, "~ ", 2) == 0) {
            OPD_SCOPE { check_row(source, line); }
            length = 0;
            count++;
        } else if (*line || length) {
            CHECK_OR_RETURN(length + more + 2 < sizeof source);
            length += (size_t)sprintf(source + length, "%s%s", length ? "\n" : "", line);
        }
    }
    fclose(golden);
    CHECK(count > 700);
}
CHECK_MAIN()
