/* The tokenisers of examples/llama.c: the tokens of llama.cpp (golden/gguf and golden/llama have its results for models
   and vocabularies of some kilobytes), vocabularies that lie, bytes that are no text, and long texts. */
#include "../check.h"

#include "../../examples/llama/tokens.h"

//-- llama.cpp's results ----------------------------------------------------------------------------------------------

static const char *const files[] = {
    "gguf/gpt2_BF16", "gguf/llama_Q4_0", "gguf/llama_Q4_K_M", "gguf/qwen2_Q8_0", "gguf/vocab_llama-bpe",
    "llama/gemma2_Q5_0", "llama/gemma3_IQ4_NL", "llama/llama_Q4_0_moe", "llama/phi3_Q5_1", "llama/vocab_deepseek-llm",
    "llama/vocab_falcon", "llama/vocab_gpt-2", "llama/vocab_qwen2", "llama/vocab_smollm",
};

static const char *golden(const char *name, const char *end) {
    char below[300];
    (void)snprintf(below, sizeof below, "golden/%s%s", name, end);
    return check_path(below);
}
TEST(tokens_are_those_of_llama_cpp) {
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        opd_tensor_file *file = opd_tensor_file_open(golden(files[i], ".gguf"));
        opd_json *json = opd_json_load(golden(files[i], ".json"));
        tok_vocabulary *v = file ? tok_open(file) : NULL;
        const int64_t wrong = v && json ? tok_wrong(v, json) : -1;
        if (wrong) { printf("%s: %d\n", files[i], (int)wrong); }
        CHECK_INT(wrong, 0);
        CHECK_OK();
        tok_free(v);
        opd_json_free(json);
        opd_tensor_file_close(file);
    }
}

TEST(results_without_tokens_are_an_error) {
    static const char *const texts[] = {"{}", "[]", "{\"tokens\": 3}"};
    opd_tensor_file *file = opd_tensor_file_open(golden("gguf/llama_Q4_0", ".gguf"));
    tok_vocabulary *v = file ? tok_open(file) : NULL;
    CHECK_OR_RETURN(v != NULL);
    for (int i = 0; i < 3; i++) {
        opd_json *json = opd_json_parse(texts[i], strlen(texts[i]));
        CHECK_INT(tok_wrong(v, json), -1);
        CHECK_ERROR(OPD_ERROR_FILE, "has no list of tokens");
        opd_json_free(json);
    }
    tok_free(v);
    opd_tensor_file_close(file);
}

//-- small vocabularies -----------------------------------------------------------------------------------------------

static int add(tok_vocabulary *v, const char *text, float score, int type) {
    return tok_add(v, text, (int64_t)strlen(text), score, type);
}
/* The 256 bytes, a few words, and special tokens. */
static tok_vocabulary *small(const char *model, const char *pre) {
    tok_vocabulary *v = tok_new(model, pre);
    CHECK_OK();
    if (!v) { return NULL; }
    char text[8];
    if (!v->bpe) { CHECK_INT(add(v, "<unk>", 0, TOK_UNKNOWN), 0); }
    for (int i = 0; i < 256; i++) {
        if (v->bpe) { text[tok_utf8(tok_byte_character(i), text)] = 0; }
        else { (void)snprintf(text, sizeof text, "<0x%02X>", i); }
        CHECK_INT(add(v, text, 0, v->bpe ? TOK_NORMAL : TOK_BYTE), 0);
    }
    if (!v->bpe) { CHECK_INT(add(v, "\xe2\x96\x81", 0, TOK_NORMAL), 0); }        /* a space */
    CHECK_INT(add(v, "<s>", 0, TOK_CONTROL), 0);
    CHECK_INT(add(v, "<mark>", 0, TOK_USER_DEFINED), 0);
    v->bos = v->eos = v->count - 2;
    for (int n = 1; n <= 8; n *= 2) {
        char word[9] = "aaaaaaaa";
        word[n] = 0;
        if (!v->bpe || n > 1) { CHECK_INT(add(v, word, (float)n, TOK_NORMAL), 0); }
    }
    if (v->bpe) {
        CHECK_INT(tok_add_merge(v, "a a", 3), 0);
        CHECK_INT(tok_add_merge(v, "aa aa", 5), 0);
        CHECK_INT(tok_add_merge(v, "aaaa aaaa", 9), 0);
    }
    return v;
}
static int64_t count_of(const tok_vocabulary *v, const char *text, int64_t bytes, bool control) {
    tok_ids ids = {NULL, 0, 0};
    const int64_t n = tok_encode(v, text, bytes, false, control, &ids) == 0 ? ids.count : -1;
    free(ids.at);
    return n;
}
TEST(special_tokens_are_found_in_texts) {
    tok_vocabulary *v = small("gpt2", "gpt-2");
    CHECK_INT(tok_finish(v), 0);
    CHECK_INT(count_of(v, "<s>", 3, true), 1);
    CHECK_INT(count_of(v, "<s>", 3, false), 3);
    CHECK_INT(count_of(v, "<mark>", 6, false), 1);            /* defined by the user: always */
    CHECK_INT(count_of(v, "<mark><s", 8, true), 3);
    CHECK_INT(count_of(v, "", 0, true), 0);
    CHECK(tok_ends(v, v->eos) && !tok_ends(v, 0) && !tok_ends(v, -2));
    CHECK_INT(add(v, "<|im_end|>", 0, TOK_NORMAL), 0);
    CHECK(tok_ends(v, v->count - 1));
    tok_free(v);
}
static void check_tokens(const tok_vocabulary *v, const char *text, const int32_t *want, int64_t count) {
    tok_ids ids = {NULL, 0, 0};
    CHECK_INT(tok_encode(v, text, (int64_t)strlen(text), false, true, &ids), 0);
    CHECK_INT(ids.count, count);
    for (int64_t i = 0; i < count && i < ids.count; i++) { CHECK_INT(ids.at[i], want[i]); }
    free(ids.at);
}
/* llama.cpp gives these tokens: of special tokens with the same length, the first of the vocabulary is found first. */
TEST(special_tokens_of_one_length) {
    tok_vocabulary *v = small("gpt2", "gpt-2");
    const int32_t first = v->count, a = tok_find(v, "a", 1), b = tok_find(v, "b", 1), sign = tok_find(v, "#", 1);
    CHECK_INT(add(v, "#ab", 0, TOK_USER_DEFINED), 0);
    CHECK_INT(add(v, "ab#", 0, TOK_CONTROL), 0);
    CHECK_INT(tok_finish(v), 0);
    check_tokens(v, "ab#ab", (const int32_t[]){a, b, first}, 3);
    check_tokens(v, "ab#ab#ab", (const int32_t[]){a, b, first, first}, 4);
    check_tokens(v, "ab##ab#", (const int32_t[]){first + 1, first, sign}, 3);
    tok_free(v);
}
/* llama.cpp gives these tokens, too: of a merge whose result is no token, the bytes of its written text that are tokens
   are left.  A space is written as two bytes, which are none. */
TEST(merges_without_a_token) {
    tok_vocabulary *v = small("gpt2", "gpt-2");
    char merge[8] = {0};
    const int32_t b = tok_find(v, "b", 1), c = tok_find(v, "c", 1);
    const int n = tok_utf8(tok_byte_character(' '), merge);
    (void)snprintf(merge + n, sizeof merge - (size_t)n, " c");
    CHECK_INT(tok_add_merge(v, "b c", 3), 0);
    CHECK_INT(tok_add_merge(v, merge, n + 2), 0);
    CHECK_INT(tok_finish(v), 0);
    check_tokens(v, "bc", (const int32_t[]){b, c}, 2);
    check_tokens(v, "b c", (const int32_t[]){b, c}, 2);
    check_tokens(v, "b b", (const int32_t[]){b, tok_find(v, merge, n), b}, 3);
    tok_free(v);
}
TEST(bytes_that_are_no_text_come_back) {
    static const char bytes[] = "a\xff\xc3(\xf0\x9f\x98\xe2\x82";
    tok_ids ids = {NULL, 0, 0};
    tok_text out = {NULL, 0, 0};
    tok_vocabulary *v = small("llama", NULL);
    CHECK_INT(tok_finish(v), 0);
    CHECK_INT(tok_encode(v, bytes, (int64_t)sizeof bytes - 1, false, false, &ids), 0);
    CHECK_INT(tok_decode(v, ids.at, ids.count, &out), 0);     /* SentencePiece keeps bytes ... */
    CHECK(out.count == (int64_t)sizeof bytes - 1 && memcmp(out.at, bytes, sizeof bytes - 1) == 0);
    tok_free(v);
    v = small("gpt2", "gpt-2");
    CHECK_INT(tok_finish(v), 0);
    ids.count = out.count = 0;
    CHECK_INT(tok_encode(v, "\xff", 1, false, false, &ids), 0);
    CHECK_INT(tok_decode(v, ids.at, ids.count, &out), 0);     /* ... and in BPE they become U+FFFD, as in llama.cpp */
    CHECK(out.count == 3 && memcmp(out.at, "\xef\xbf\xbd", 3) == 0);
    const int32_t beyond[] = {v->count, -1};
    CHECK_INT(tok_decode(v, beyond, 1, &out), -1);
    CHECK_ERROR(OPD_ERROR_INDEX, "there is no token");
    CHECK_INT(tok_decode(v, beyond + 1, 1, &out), -1);
    CHECK_ERROR(OPD_ERROR_INDEX, "there is no token -1");
    tok_free(v);
    free(ids.at);
    free(out.at);
}
/* Merging in the order of the list: a quadratic search would take minutes. */
TEST(long_texts_take_a_moment) {
    const int64_t bytes = 1 << 19;
    char *text = (char *)malloc((size_t)bytes);
    CHECK_OR_RETURN(text != NULL);
    static const char *const pres[] = {"gpt-2", "llama-bpe", "deepseek-llm", "gpt-4o", NULL};
    for (int i = 0; i < 5; i++) {
        tok_vocabulary *v = small(pres[i] ? "gpt2" : "llama", pres[i]);
        CHECK_INT(tok_finish(v), 0);
        memset(text, 'a', (size_t)bytes);
        CHECK_INT(count_of(v, text, bytes, true), pres[i] ? bytes / 8 : bytes / 8 + 1);    /* SPM: a space in front */
        memset(text, ' ', (size_t)bytes);
        text[bytes - 1] = 'a';
        CHECK(count_of(v, text, bytes, true) >= bytes);
        tok_free(v);
    }
    free(text);
}

//-- vocabularies that lie --------------------------------------------------------------------------------------------

TEST(bad_vocabularies_are_refused) {
    CHECK(!tok_new("bert", NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the model 'bert' is not known");
    CHECK(!tok_new("gpt2", "unheard-of"));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "'unheard-of'");
    CHECK(!tok_new("gpt2", "a|"));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "'a|'");
    CHECK(!tok_new("gpt2", "gpt-2|gpt2"));                     /* names are compared whole */
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "'gpt-2|gpt2'");
    static const char *const bytes[] = {"<0x-1>", "<0xZZ>", "<0x100>", "x"};
    for (int i = 0; i < 4; i++) {
        tok_vocabulary *v = small("llama", NULL);
        CHECK_INT(add(v, bytes[i], 0, TOK_BYTE), 0);
        CHECK_INT(tok_finish(v), -1);
        CHECK_ERROR(OPD_ERROR_FILE, "has the type of a byte");
        tok_free(v);
    }
    static const char *const merges[] = {"ab", "a ", " a", "", "a"};
    for (int i = 0; i < 5; i++) {
        tok_vocabulary *v = small("gpt2", NULL);
        CHECK_INT(tok_add_merge(v, merges[i], (int64_t)strlen(merges[i])), -1);
        CHECK_ERROR(OPD_ERROR_FILE, "is not two texts with a space between them");
        tok_free(v);
    }
    tok_vocabulary *v = small("gpt2", NULL);
    CHECK_INT(add(v, "aa", 0, TOK_NORMAL), -1);
    CHECK_ERROR(OPD_ERROR_FILE, "have the same text 'aa'");
    CHECK_INT(add(v, "nan", (float)NAN, TOK_NORMAL), -1);
    CHECK_ERROR(OPD_ERROR_FILE, "is no number");
    v->bos = v->count;
    CHECK_INT(tok_finish(v), -1);
    CHECK_ERROR(OPD_ERROR_FILE, "bos_token_id is");
    tok_free(v);
    v = tok_new("llama", NULL);
    CHECK_INT(tok_finish(v), -1);
    CHECK_ERROR(OPD_ERROR_FILE, "has no tokens");
    tok_free(v);
    v = tok_new("gpt2", "gpt-2");                              /* no bytes: nothing can be written */
    v->bos = v->eos = -1;
    CHECK_INT(add(v, "b", 0, TOK_NORMAL), 0);
    CHECK_INT(tok_finish(v), 0);
    CHECK_INT(count_of(v, "b", 1, false), 1);
    CHECK_INT(count_of(v, "c", 1, false), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "no token for the bytes 63");
    tok_free(v);
}
/* A merge whose result is no token gives the tokens of its bytes; empty tokens get a name. */
TEST(vocabularies_with_gaps_work) {
    tok_vocabulary *v = small("gpt2", "gpt-2");
    CHECK_INT(tok_add(v, "", 0, 0, TOK_NORMAL), 0);
    CHECK_INT(tok_add(v, "", 0, 0, TOK_NORMAL), 0);
    CHECK_INT(tok_add_merge(v, "b c", 3), 0);
    CHECK_INT(tok_finish(v), 0);
    CHECK_INT(count_of(v, "bc", 2, false), 2);
    CHECK_INT(count_of(v, "aaa", 3, false), 2);
    tok_free(v);
}

/* Small differences between vocabularies that have almost the same rules.  llama.cpp gives these tokens and texts. */
TEST(known_vocabularies_differ_in_small_things) {
    static const struct { const char *pre; int tokens; bool cleans; } row[] = {
        {"glm4", 1, true}, {"chatglm-bpe", 2, true}, {"qwen2", 2, false}, {"stablelm2", 2, true}, {"megrez", 2, true},
        {"poro-chat", 2, false}, {"bloom", 2, true}, {"gpt3-finnish", 2, true}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        tok_ids ids = {NULL, 0, 0};
        tok_text out = {NULL, 0, 0};
        tok_vocabulary *v = small("gpt2", row[i].pre);
        CHECK_INT(add(v, "bc", 0, TOK_NORMAL), 0);            /* a token that no merge makes */
        CHECK_INT(tok_finish(v), 0);
        CHECK_INT(count_of(v, "bc", 2, false), row[i].tokens);
        CHECK_INT(tok_encode(v, "b .", 3, false, false, &ids), 0);
        CHECK_INT(tok_decode(v, ids.at, ids.count, &out), 0);
        CHECK_INT(out.count, row[i].cleans ? 2 : 3);
        tok_free(v);
        free(ids.at);
        free(out.at);
    }
}
/* U+3000 is a space between the signs U+3002, although the expression has the range from U+3000 to U+3002. */
TEST(white_space_is_in_no_range_of_signs) {
    static const struct { const char *pre; int byte; const char *text; int tokens; } row[] = {
        {"deepseek-llm", 0x82, "\xe3\x80\x82\xe3\x80\x80\xe3\x80\x82", 9},
        {"deepseek-llm", 0x83, "\xe0\xa4\x83\xe3\x80\x80", 6},
        {"deepseek-coder", 0x83, "\xe0\xa4\x83\xe3\x80\x80", 6},
        {"gpt-2", 0x83, "\xe0\xa4\x83\xe3\x80\x80", 6},
        {"deepseek-llm", 0x83, "\xe0\xa4\x83\xe3\x82\xa2", 5}};         /* no white space: one piece */
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        tok_vocabulary *v = small("gpt2", row[i].pre);
        char word[8], other[4];
        const int n = tok_utf8(tok_byte_character(row[i].byte), word), k = tok_utf8(tok_byte_character(0xe3), other);
        memcpy(word + n, other, (size_t)k);
        CHECK_INT(tok_add(v, word, n + k, 0, TOK_NORMAL), 0); /* would join bytes of two characters */
        CHECK_INT(tok_add_pair(v, word, n, other, k), 0);
        CHECK_INT(tok_finish(v), 0);
        CHECK_INT(count_of(v, row[i].text, (int64_t)strlen(row[i].text), false), row[i].tokens);
        tok_free(v);
    }
}
/* phi-3 drops white space behind a special token even if the white space is a token. */
TEST(white_space_behind_special_tokens_is_dropped) {
    for (int i = 0; i < 2; i++) {
        tok_vocabulary *v = small("gpt2", "gpt-2");
        CHECK_INT(add(v, "\n\n", 0, TOK_USER_DEFINED), 0);
        v->drops_space = i == 1;
        CHECK_INT(tok_finish(v), 0);
        CHECK_INT(count_of(v, "<mark>\n\n b", 10, false), i ? 2 : 4);
        CHECK_INT(count_of(v, "b\n\n<mark>", 9, false), 3);
        tok_free(v);
    }
}
/* `tokenizer.ggml.add_space_prefix` adds no space for BPE, but leaves one out of the text of tokens, as in llama.cpp. */
TEST(a_space_in_front_of_byte_pairs) {
    for (int i = 0; i < 2; i++) {
        tok_ids ids = {NULL, 0, 0};
        tok_text out = {NULL, 0, 0};
        tok_vocabulary *v = small("gpt2", "qwen2");
        v->space_before = i == 1;
        CHECK_INT(tok_finish(v), 0);
        CHECK_INT(tok_encode(v, "  b", 3, false, false, &ids), 0);
        CHECK_INT(ids.count, 3);
        CHECK_INT(tok_decode(v, ids.at, ids.count, &out), 0);
        CHECK_INT(out.count, 3 - i);
        tok_free(v);
        free(ids.at);
        free(out.at);
    }
}
TEST(unused_tokens_have_no_text) {
    tok_text out = {NULL, 0, 0};
    tok_vocabulary *v = small("llama", NULL);
    CHECK_INT(add(v, "<unused7>", 0, TOK_UNUSED), 0);
    CHECK_INT(tok_finish(v), 0);
    const int32_t ids[] = {v->count - 1, tok_find(v, "aa", 2)};
    CHECK_INT(tok_decode(v, ids, 2, &out), 0);
    CHECK_INT(out.count, 2);
    tok_free(v);
    free(out.at);
}

//-- regular expressions ----------------------------------------------------------------------------------------------

static int64_t matched(const char *expression, const char *text) {
    tok_vocabulary *v = tok_new("gpt2", "");
    uint32_t characters[64];
    int64_t n = 0, stop = -2;
    for (const char *at = text; *at; ) { at += tok_character(at, (int64_t)strlen(at), &characters[n++]); }
    if (tok_add_cut(v, expression) == 0) {
        v->cuts[0]->steps = 100000;
        stop = tok_match(v->cuts[0], v->cuts[0]->start, characters, 0, n);
        if (v->cuts[0]->steps < 0) { stop = -3; }
    }
    tok_free(v);
    return stop;
}
TEST(regular_expressions_match) {
    CHECK_INT(matched("ab|a", "abc"), 2);
    CHECK_INT(matched("a{2,3}", "aaaa"), 3);
    CHECK_INT(matched("a{2}", "a"), -1);
    CHECK_INT(matched("(?i:'re|'s)", "'RE"), 3);
    CHECK_INT(matched("\\s+(?!\\S)", "   a"), 2);
    CHECK_INT(matched("\\s+(?=\\S)b?", "   b"), 4);
    CHECK_INT(matched("\\s+$", "   a"), -1);
    CHECK_INT(matched("[^\\s\\p{L}]+", "12 a"), 2);
    CHECK_INT(matched("[\\p{L}&&[^a-z]]+", "\xc3\x84" "Bc"), 2);
    CHECK_INT(matched("\\p{Lu}\\p{Ll}*(?:x|\\d)?", "Abc7"), 4);
    CHECK_INT(matched("\\P{L}+", "12a"), 2);
    CHECK_INT(matched("[a-c\\-]+.", "a-cd"), 4);
    CHECK_INT(matched("a++a", "aaa"), -1);
    CHECK_INT(matched("[\\u0041-\\u0043]+", "ABCD"), 3);
    static const char *const bad[] = {"(", "a)", "[a", "\\", "(?<x>a)", "(a)*", "a*?", "\\p{Xx}", "\\p", "[b-a]", "*", "a{3,1}",
                                      "a{", "\\q", "[\\", "(?i", "\\u12"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_INT(matched(bad[i], "aaa"), -2);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "of the expression");
    }
    CHECK_INT(matched("a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), -3);
}
TEST(expressions_that_take_too_long_are_stopped) {
    tok_vocabulary *v = tok_new("gpt2", "");
    char text[200];
    memset(text, 'a', sizeof text);
    v->bos = v->eos = -1;
    CHECK_INT(add(v, "a", 0, TOK_NORMAL), 0);
    CHECK_INT(tok_add_cut(v, "a*a*a*a*a*a*a*b"), 0);
    CHECK_INT(tok_finish(v), 0);
    CHECK_INT(count_of(v, text, (int64_t)sizeof text, false), -1);
    CHECK_ERROR(OPD_ERROR_LIMIT, "takes too long");
    tok_free(v);
}
CHECK_MAIN()
