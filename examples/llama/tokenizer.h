/* Makes a vocabulary of tokens.h from a tokenizer.json, as the library "tokenizers" of Hugging Face writes it:

       tok_vocabulary *v = tok_open_json("folder/tokenizer.json", words);      NULL with an error; tok_free(v)

   words is the number of tokens for which the model has numbers.  Known forms, all with the model BPE:
   - byte-level: the pre-tokeniser ByteLevel, perhaps behind Split with an expression, or Digits;
   - SentencePiece-like (byte_fallback): spaces become U+2581, by the normaliser Replace or the pre-tokeniser Metaspace.
   Every other form is an error that names it. */
#include "tokens.h"

typedef struct tok_json {
    const char *path;
    const opd_json *json;
    int64_t model;
    tok_vocabulary *v;
    bool byte_level;                              /* the pre-tokeniser ByteLevel was found */
    bool marks_spaces;                            /* spaces become U+2581 */
} tok_json;

/* Sets an error about a value of the file.  key: its name; what: what is wrong, in words. */
static int tok_json_bad(const tok_json *t, int64_t value, const char *key, const char *what) {
    int64_t line = 0;
    opd_json_place(t->json, value, &line, NULL);
    return opd_fail(OPD_ERROR_FILE, "%s, line %lld: '%s' %s", t->path, (long long)line, key, what);
}
/* Puts the name of the file in front of an error of tokens.h.  Returns -1. */
static int tok_json_named(const tok_json *t) {
    char message[400];
    const opd_code code = opd_error_code();
    (void)snprintf(message, sizeof message, "%.390s", opd_error_message());
    opd_error_clear();
    return opd_fail(code, "%s: %s", t->path, message);
}
/* Sets an error about a part whose type is not known.  key: the name of the part. */
static int tok_json_unknown(const tok_json *t, int64_t part, const char *key) {
    char what[160];
    (void)snprintf(what, sizeof what, "is of the type '%.60s' or has settings that this program does not know",
                   opd_json_text(t->json, opd_json_get(t->json, part, "type"), "none"));
    return tok_json_bad(t, part, key, what);
}
static const char *tok_json_text(const tok_json *t, int64_t object, const char *key) {
    return opd_json_text(t->json, opd_json_get(t->json, object, key), "");
}
/* Is the value missing or null? */
static bool tok_json_none(const tok_json *t, int64_t value) {
    return opd_json_kind_of(t->json, value) == OPD_JSON_NONE || opd_json_kind_of(t->json, value) == OPD_JSON_NULL;
}
/* Returns a value that is true or false.  Sets an error if it is anything else. */
static bool tok_json_true(const tok_json *t, int64_t object, const char *key, bool otherwise) {
    const int64_t value = opd_json_get(t->json, object, key);
    if (!tok_json_none(t, value) && opd_json_kind_of(t->json, value) != OPD_JSON_BOOL) {
        (void)tok_json_bad(t, value, key, "is neither true nor false");
    }
    return opd_json_bool(t->json, value, otherwise);
}
/* Returns a value that must have this kind; -1 with an error. */
static int64_t tok_json_needs(const tok_json *t, int64_t object, const char *key, opd_json_kind kind,
                              const char *what) {
    const int64_t value = opd_json_get(t->json, object, key);
    if (opd_json_kind_of(t->json, value) == kind) { return value; }
    return tok_json_bad(t, value < 0 ? object : value, key, what);
}
/* Calls `each` for a part, or for each part of a Sequence, whose list has the name `list`.  Nothing for null. */
static int tok_json_parts(tok_json *t, int64_t part, const char *key, const char *list,
                          int (*each)(tok_json *, int64_t, const char *)) {
    if (tok_json_none(t, part)) { return 0; }
    if (strcmp(tok_json_text(t, part, "type"), "Sequence") != 0) { return each(t, part, key); }
    const int64_t parts = tok_json_needs(t, part, list, OPD_JSON_LIST, "is not a list");
    int failed = parts < 0 ? -1 : 0;
    for (int64_t at = opd_json_first(t->json, parts); at >= 0 && !failed; at = opd_json_next(t->json, at)) {
        failed = each(t, at, key);
    }
    return failed;
}

//-- the tokens --------------------------------------------------------------------------------------------------------

/* Reads the flags of the list added_tokens into `added` and, if a token is not in the vocabulary, its text into `at`.
   Both have a row for each id: the place of the value in the file, or -1. */
static int tok_json_added(const tok_json *t, int64_t words, int64_t *at, int64_t *added) {
    const opd_json *json = t->json;
    const int64_t list = opd_json_get(json, 0, "added_tokens"), vocab = opd_json_get(json, t->model, "vocab");
    int64_t most = -1, count = 0;
    for (int64_t i = 0; i < words; i++) { count += at[i] >= 0; }
    if (!tok_json_none(t, list) && opd_json_kind_of(json, list) != OPD_JSON_LIST) {
        return tok_json_bad(t, list, "added_tokens", "is not a list");
    }
    for (int64_t token = opd_json_first(json, list); token >= 0; token = opd_json_next(json, token)) {
        const int64_t number = opd_json_get(json, token, "id"), content = opd_json_get(json, token, "content");
        const int64_t id = opd_json_int(json, number, -1);
        const char *text = opd_json_text(json, content, "");
        if (!*text) { return tok_json_bad(t, token, "added_tokens", "has a token without content"); }
        if (id < 0 || id >= words) {
            return tok_json_bad(t, token, text, "has an id for which the model has no numbers (vocab_size)");
        }
        if (added[id] >= 0) { return tok_json_bad(t, token, text, "has the id of another token"); }
        /* the library tokenizers numbers tokens that are not in the vocabulary itself */
        const int64_t own = at[id] >= 0 ? -1 : opd_json_get(json, vocab, text);
        if (at[id] < 0 && id != (own >= 0 ? opd_json_int(json, own, -1) : most >= count ? most + 1 : count)) {
            return tok_json_bad(t, token, text, "has another id than its place in the list or in the vocabulary gives "
                                "it");
        }
        if (id > most) { most = id; }
        if (at[id] >= 0 && strcmp(opd_json_key(json, at[id]), text) != 0) {
            return tok_json_bad(t, token, text, "has the id of another token of the vocabulary");
        }
        const bool prepends = !t->v->bpe && t->v->space_before && !t->v->space_once;
        const bool changes = prepends || (t->v->late_marks && (strchr(text, ' ') || strstr(text, "\xe2\x96\x81")));
        if (tok_json_true(t, token, "single_word", false)) {
            return tok_json_bad(t, token, text, "has single_word, which this program does not know");
        }
        if (changes && tok_json_true(t, token, "normalized", false)) {
            if (!tok_json_true(t, token, "special", false)) {
                return tok_json_bad(t, token, text, prepends ? "has 'normalized' beside the normalizer Prepend, which "
                                    "this program does not know" : "has 'normalized' and spaces beside the normalizer "
                                    "Replace, which this program does not know");
            }
            t->v->late_control = true;
        }
        added[id] = token;
    }
    return 0;
}
static int tok_json_add(const tok_json *t, int64_t in_vocab, int64_t added) {
    const char *text = in_vocab >= 0 ? opd_json_key(t->json, in_vocab) : tok_json_text(t, added, "content");
    const int type = added >= 0 ? tok_json_true(t, added, "special", false) ? TOK_CONTROL : TOK_USER_DEFINED
                   : in_vocab < 0 ? TOK_UNUSED
                   : !t->v->bpe && tok_byte_of(text, (int64_t)strlen(text)) >= 0 ? TOK_BYTE : TOK_NORMAL;
    return tok_add(t->v, text, (int64_t)strlen(text), 0, type) == 0 ? 0 : tok_json_named(t);
}
/* Adds all tokens, in the order of their ids. */
static int tok_json_tokens(const tok_json *t, int64_t words) {
    const opd_json *json = t->json;
    const int64_t vocab = tok_json_needs(t, t->model, "vocab", OPD_JSON_OBJECT, "is not an object");
    int64_t *at = (int64_t *)malloc((size_t)words * sizeof *at), *added = (int64_t *)malloc((size_t)words *
                                                                                           sizeof *added), n = 0;
    if (!at || !added) { (void)opd_fail(OPD_ERROR_MEMORY, "%s: no memory for its tokens", t->path); }
    for (int64_t i = 0; i < words && opd_ok(); i++) { at[i] = added[i] = -1; }
    for (int64_t token = opd_json_first(json, vocab); token >= 0 && opd_ok(); token = opd_json_next(json, token)) {
        const int64_t id = opd_json_int(json, token, -1);
        if (id < 0 || id >= words) {
            (void)tok_json_bad(t, token, opd_json_key(json, token),
                               "has an id for which the model has no numbers (vocab_size)");
        } else if (at[id] >= 0) { (void)tok_json_bad(t, token, opd_json_key(json, token), "has another token's id"); }
        else { at[id] = token; }
    }
    if (opd_ok() && tok_json_added(t, words, at, added) == 0) {
        for (int64_t i = 0; i < words; i++) { if (at[i] >= 0 || added[i] >= 0) { n = i + 1; } }
        t->v->flags = (unsigned char *)calloc((size_t)n + 1, 1);
        if (!t->v->flags) { (void)opd_fail(OPD_ERROR_MEMORY, "%s: no memory for its tokens", t->path); }
    }
    for (int64_t i = 0; i < n && opd_ok(); i++) {
        if (tok_json_add(t, at[i], added[i]) != 0) { break; }
        t->v->flags[i] = (unsigned char)((tok_json_true(t, added[i], "lstrip", false) ? TOK_BEFORE : 0) |
                                         (tok_json_true(t, added[i], "rstrip", false) ? TOK_AFTER : 0) |
                                         (tok_json_true(t, added[i], "normalized", false) ? TOK_LATE : 0) |
                                         (at[i] < 0 ? TOK_ADDED : 0));
    }
    free(at); free(added);
    return opd_ok() ? 0 : -1;
}
/* Adds a merge, which is "left right" or ["left", "right"]. */
static int tok_json_merge(const tok_json *t, int64_t merge) {
    const int64_t first = opd_json_first(t->json, merge), second = opd_json_next(t->json, first);
    const char *text = opd_json_text(t->json, merge, NULL), *space = text && *text ? strchr(text + 1, ' ') : NULL;
    const char *left = text ? text : opd_json_text(t->json, first, ""),
               *right = text ? space ? space + 1 : "" : opd_json_text(t->json, second, "");
    const int64_t length = text ? space ? space - text : 0 : (int64_t)strlen(left), rest = (int64_t)strlen(right);
    if (length < 1 || rest < 1 || (!text && opd_json_next(t->json, second) >= 0)) {
        return tok_json_bad(t, merge, "merges", "has an element that is not two texts");
    }
    if (tok_add_pair(t->v, left, length, right, rest) != 0) { return -1; }
    const tok_merge *made = &t->v->merges[t->v->merges_count - 1];
    if (made->left < t->v->count && made->right < t->v->count && made->joined < t->v->count) { return 0; }
    return tok_json_bad(t, merge, "merges", "has a merge of texts that are not tokens");
}

//-- the other parts ---------------------------------------------------------------------------------------------------

static int tok_json_normalizer(tok_json *t, int64_t part, const char *key) {
    static const char space[] = "\xe2\x96\x81";
    const char *type = tok_json_text(t, part, "type");
    const int64_t pattern = opd_json_get(t->json, part, "pattern");
    if (strcmp(type, "NFC") == 0) { t->v->composes = true; return 0; }
    if (!t->v->bpe && strcmp(type, "Prepend") == 0 && strcmp(tok_json_text(t, part, "prepend"), space) == 0) {
        t->v->space_before = true;
        return 0;
    }
    if (!t->v->bpe && strcmp(type, "Replace") == 0 && strcmp(tok_json_text(t, pattern, "String"), " ") == 0 &&
        strcmp(tok_json_text(t, part, "content"), space) == 0) {
        t->marks_spaces = t->v->late_marks = true;
        return 0;
    }
    return tok_json_unknown(t, part, key);
}
/* Metaspace: spaces become U+2581, and begin words. */
static int tok_json_metaspace(tok_json *t, int64_t part, const char *key) {
    tok_vocabulary *v = t->v;
    const char *scheme = opd_json_text(t->json, opd_json_get(t->json, part, "prepend_scheme"),
                                       tok_json_true(t, part, "add_prefix_space", true) ? "always" : "never");
    const bool first = strcmp(scheme, "first") == 0, always = strcmp(scheme, "always") == 0;
    if (strcmp(tok_json_text(t, part, "replacement"), "\xe2\x96\x81") != 0 ||
        !(first || always || strcmp(scheme, "never") == 0)) { return tok_json_unknown(t, part, key); }
    t->marks_spaces = true;
    v->space_before = v->space_before || first || always;
    v->space_first = first;
    v->space_once = true;
    v->space_splits = tok_json_true(t, part, "split", true);
    return 0;
}
static int tok_json_pre_tokenizer(tok_json *t, int64_t part, const char *key) {
    const char *type = tok_json_text(t, part, "type"), *behavior = tok_json_text(t, part, "behavior");
    const int64_t pattern = opd_json_get(t->json, part, "pattern");
    const char *expression = opd_json_text(t->json, opd_json_get(t->json, pattern, "Regex"), NULL);
    if (!t->v->bpe) {
        if (strcmp(type, "Metaspace") == 0) { return tok_json_metaspace(t, part, key); }
        /* gemma: spaces are U+2581 already, so nothing is cut */
        if (strcmp(type, "Split") == 0 && strcmp(tok_json_text(t, pattern, "String"), " ") == 0) { return 0; }
        return tok_json_unknown(t, part, key);
    }
    if (t->byte_level) { return tok_json_unknown(t, part, key); }
    if (strcmp(type, "ByteLevel") == 0 && !tok_json_true(t, part, "add_prefix_space", true)) {
        t->byte_level = true;
        return tok_json_true(t, part, "use_regex", true) ? tok_add_cut(t->v, TOK_GPT2 "|\\s+") : 0;
    }
    if (strcmp(type, "Digits") == 0) {
        return tok_add_cut(t->v, tok_json_true(t, part, "individual_digits", false) ? "\\p{N}" : "\\p{N}+");
    }
    if (strcmp(type, "Split") == 0 && expression && strcmp(behavior, "Isolated") == 0 &&
        !tok_json_true(t, part, "invert", false)) {
        return tok_add_cut(t->v, expression) == 0 ? 0 : tok_json_named(t);
    }
    return tok_json_unknown(t, part, key);
}
/* The post-processor says which tokens are put in front of a text, and behind it. */
static int tok_json_template(tok_json *t, int64_t part, const char *key) {
    const char *type = tok_json_text(t, part, "type");
    const int64_t single = opd_json_get(t->json, part, "single");
    int before = 0, after = 0;
    bool text = false;
    if (strcmp(type, "ByteLevel") == 0) { return 0; }
    if (strcmp(type, "TemplateProcessing") != 0) { return tok_json_unknown(t, part, key); }
    for (int64_t at = opd_json_first(t->json, single); at >= 0; at = opd_json_next(t->json, at)) {
        const int64_t special = opd_json_get(t->json, at, "SpecialToken");
        if (special < 0) { text = true; continue; }
        const char *name = tok_json_text(t, special, "id");
        const int32_t id = tok_find(t->v, name, (int64_t)strlen(name));
        if (id < 0) { return tok_json_bad(t, special, "SpecialToken", "is not in the vocabulary"); }
        const int64_t row = opd_json_get(t->json, opd_json_get(t->json, part, "special_tokens"), name),
                      ids = opd_json_get(t->json, row, "ids"), one = opd_json_first(t->json, ids);
        if (opd_json_int(t->json, one, -1) != id || opd_json_next(t->json, one) >= 0) {
            return tok_json_bad(t, row < 0 ? part : row, "special_tokens", "gives the token other ids than the "
                                "vocabulary");
        }
        if (text) { t->v->eos = id; t->v->add_eos = ++after; } else { t->v->bos = id; t->v->add_bos = ++before; }
    }
    if (text && before <= 1 && after <= 1) { return 0; }
    return tok_json_bad(t, single < 0 ? part : single, key, "is not a text with up to one token before and after it");
}
/* Fails if the model has settings of BPE that are not known here. */
static int tok_json_settings(tok_json *t) {
    static const char *const texts[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    const char *type = opd_json_text(t->json, opd_json_get(t->json, t->model, "type"), "BPE");
    for (int i = 0; i < 2; i++) {
        if (*tok_json_text(t, t->model, texts[i])) {
            return tok_json_bad(t, t->model, texts[i], "is set, which this program does not know");
        }
    }
    if (opd_json_double(t->json, opd_json_get(t->json, t->model, "dropout"), 0) > 0) {
        return tok_json_bad(t, t->model, "dropout", "is set, which this program does not know");
    }
    return strcmp(type, "BPE") == 0 ? 0 : tok_json_unknown(t, t->model, "model");
}
static int tok_json_read(tok_json *t, int64_t words) {
    const opd_json *json = t->json;
    tok_vocabulary *v = t->v;
    const char *unknown = tok_json_text(t, t->model, "unk_token");
    const int64_t pre = opd_json_get(json, 0, "pre_tokenizer"), post = opd_json_get(json, 0, "post_processor");
    const int64_t normalizer = opd_json_get(json, 0, "normalizer");
    if (tok_json_parts(t, normalizer, "normalizer", "normalizers", tok_json_normalizer) != 0 ||
        tok_json_parts(t, pre, "pre_tokenizer", "pretokenizers", tok_json_pre_tokenizer) != 0) { return -1; }
    if (v->bpe && !t->byte_level) {
        return tok_json_bad(t, pre < 0 ? 0 : pre, "pre_tokenizer", "has no ByteLevel, and the model no byte_fallback");
    }
    if (!v->bpe && !t->marks_spaces) {
        return tok_json_bad(t, normalizer < 0 ? 0 : normalizer, "normalizer", "has no Replace of spaces, and the "
                            "pre_tokenizer no Metaspace");
    }
    const int64_t merges = tok_json_needs(t, t->model, "merges", OPD_JSON_LIST, "is not a list");
    if (merges < 0 || tok_json_tokens(t, words) != 0) { return -1; }
    for (int64_t at = opd_json_first(json, merges); at >= 0; at = opd_json_next(json, at)) {
        if (tok_json_merge(t, at) != 0) { return -1; }
    }
    v->whole_words = tok_json_true(t, t->model, "ignore_merges", false);
    v->unknown = *unknown ? tok_find(v, unknown, (int64_t)strlen(unknown)) : -1;
    if (tok_json_parts(t, post, "post_processor", "processors", tok_json_template) != 0) { return -1; }
    if (!opd_ok()) { return -1; }
    if (tok_finish(v) != 0) { return tok_json_named(t); }
    for (int i = 0; i < 256 && !v->bpe; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "<0x%02X>", (unsigned)i);
        if (v->byte_id[i] < 0) { return tok_json_bad(t, t->model, name, "is not in the vocabulary (byte_fallback)"); }
    }
    return 0;
}
static tok_vocabulary *tok_open_json(const char *path, int64_t words) {
    tok_json t;
    memset(&t, 0, sizeof t);
    opd_json *json = opd_json_load(path);
    if (!json) { return NULL; }
    t.path = path;
    t.json = json;
    t.model = tok_json_needs(&t, 0, "model", OPD_JSON_OBJECT, "is not an object: this is no tokenizer.json");
    if (t.model >= 0 && tok_json_settings(&t) == 0) {
        t.v = tok_new(tok_json_true(&t, t.model, "byte_fallback", false) ? "llama" : "gpt2", "");
    }
    if (t.v) {
        t.v->by_rank = t.v->leftmost = true;
        t.v->space_before = t.v->add_bos = false;
        t.v->bos = t.v->eos = t.v->unknown = -1;
        if (tok_json_read(&t, words) != 0) { tok_free(t.v); t.v = NULL; }
    }
    opd_json_free(json);
    return t.v;
}
/* Returns true if the model wants its text composed (NFC), and the text has characters that may have to be. */
static bool tok_may_compose(const tok_vocabulary *v, const char *text, int64_t bytes) {
    for (int64_t at = 0; v->composes && at < bytes; ) {
        uint32_t c;
        at += tok_character(text + at, bytes - at, &c);
        const bool mark = v->categories[c] == TOK_Mn || v->categories[c] == TOK_Mc;
        if (mark || c == 0x37e || c == 0x387 || (c >= 0x1160 && c <= 0x11ff) || (c >= 0x1f71 && c <= 0x1ffd) ||
            (c >= 0x2000 && c <= 0x2001) || c == 0x2126 || c == 0x212a || c == 0x212b || (c >= 0xf900 && c <= 0xfb4e) ||
            (c >= 0x2f800 && c <= 0x2fa1d)) { return true; }
    }
    return false;
}
