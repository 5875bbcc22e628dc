/* The tokenisers of examples/llama.c: text to token ids and back, as llama.cpp does it.

   tok_vocabulary holds the tokens.  Its two kinds of model are
   - SPM (SentencePiece-like): the characters of the text are merged while the joined text is a token, the token with
     the best score first.  Characters that are not in the vocabulary become bytes.  A tokenizer.json has a list of
     pairs instead of scores (by_rank);
   - BPE: regular expressions cut the text into words.  The bytes of a word are merged by a list of pairs, the pair that
     is earliest in the list first.

   A program makes a vocabulary like this; each function that returns int returns -1 with an error of opdispatch:
       tok_vocabulary *v = tok_new("gpt2", "qwen2");
       tok_add(v, text, bytes, score, TOK_NORMAL);  ...   tok_add_merge(v, "a b", 3);  ...   tok_finish(v);
       tok_ids ids = {NULL, 0, 0};
       tok_encode(v, text, bytes, true, true, &ids);
       tok_text out = {NULL, 0, 0};
       tok_decode(v, ids.at, ids.count, &out);
   Vocabularies come from files of strangers, so each number in them is checked here. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "unicode.h"

enum { TOK_NORMAL = 1, TOK_UNKNOWN, TOK_CONTROL, TOK_USER_DEFINED, TOK_UNUSED, TOK_BYTE };    /* types of tokens */
enum { TOK_BEFORE = 1, TOK_AFTER = 2, TOK_ADDED = 4, TOK_LATE = 8 };

//-- lists that grow ---------------------------------------------------------------------------------------------------

typedef struct tok_ids { int32_t *at; int64_t count, cap; } tok_ids;
typedef struct tok_text { char *at; int64_t count, cap; } tok_text;

/* Makes room for `more` further elements of `size` bytes in a list.  Returns 0, or -1 with an error. */
static int tok_room(void **at, int64_t *cap, int64_t count, int64_t more, size_t size) {
    if (more <= *cap - count) { return 0; }
    if (more > (INT64_C(1) << 40) - count) { return opd_fail(OPD_ERROR_MEMORY, "tokeniser: the text is too long"); }
    const int64_t room = 2 * count + more + 16;
    void *grown = realloc(*at, (size_t)room * size);
    if (!grown) { return opd_fail(OPD_ERROR_MEMORY, "tokeniser: no memory for %lld elements", (long long)room); }
    *at = grown;
    *cap = room;
    return 0;
}
#define TOK_ROOM(list, more) tok_room((void **)&(list)->at, &(list)->cap, (list)->count, (more), sizeof *(list)->at)

static int tok_push(tok_ids *ids, int32_t id) {
    if (TOK_ROOM(ids, 1) != 0) { return -1; }
    ids->at[ids->count++] = id;
    return 0;
}
static int tok_append(tok_text *text, const char *from, int64_t bytes) {
    if (TOK_ROOM(text, bytes) != 0) { return -1; }
    if (bytes) { memcpy(text->at + text->count, from, (size_t)bytes); }
    text->count += bytes;
    return 0;
}

//-- UTF-8 -------------------------------------------------------------------------------------------------------------

/* Reads the character at text[0..bytes).  Returns its length; a byte that begins no valid character is U+FFFD, as in
   llama.cpp. */
static int tok_character(const char *text, int64_t bytes, uint32_t *character) {
    const unsigned char *s = (const unsigned char *)text;
    const int length = s[0] < 0x80 ? 1 : s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf8 ? 4 : 0;
    *character = 0xfffd;
    if (length == 1) { *character = s[0]; return 1; }
    if (length == 0 || length > bytes) { return 1; }
    uint32_t c = s[0] & (0x7fu >> length);
    for (int i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80) { return 1; }
        c = c << 6 | (s[i] & 0x3f);
    }
    if (c >= 0x110000) { return 1; }
    *character = c;
    return length;
}
/* Writes a character as UTF-8 to out (at least 4 bytes).  Returns its length. */
static int tok_utf8(uint32_t c, char *out) {
    if (c < 0x80) { out[0] = (char)c; return 1; }
    if (c < 0x800) { out[0] = (char)(0xc0 | c >> 6); out[1] = (char)(0x80 | (c & 63)); return 2; }
    const int length = c < 0x10000 ? 3 : 4;
    for (int i = length - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (c & 63));
        c >>= 6;
    }
    out[0] = (char)((length == 3 ? 0xe0 : 0xf0) | c);
    return length;
}
static bool tok_is_space(uint32_t c) {
    return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
           c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}
/* Writes the category of each character (TOK_Lu ...) to table[0x110000]. */
static void tok_read_categories(unsigned char *table) {
    int kind = -1;
    int64_t at = 0, run = 0;
    for (int line = 0; at < 0x110000; ) {
        const char *text = tok_category_runs[line++];
        for (; ; text++) {
            const bool digit = text && ((*text >= '0' && *text <= '9') || (*text >= 'a' && *text <= 'v'));
            if (digit) { run = 32 * run + (*text <= '9' ? *text - '0' : *text - 'a' + 10); continue; }
            if (text && !*text) { break; }
            for (int64_t i = 0; kind >= 0 && i < (run ? run : 1); i++) {
                table[at++] = (unsigned char)(kind == TOK_IN_TURN ? i % 2 : kind);
            }
            if (!text) { return; }
            kind = (int)(strchr(tok_category_signs, *text) - tok_category_signs);
            run = 0;
        }
    }
}

//-- regular expressions -----------------------------------------------------------------------------------------------

/* The expressions that cut text into words: alternatives of sequences of sets ([...], \p{L}, \s, .), groups with or
   without ?, and (?=...), (?!...), (?i:...), $.  A set can be followed by ?, *, +, {m}, {m,n}, and then by + (never
   give back).  `&&` in a set intersects it with the set that follows. */
typedef struct tok_set {
    uint32_t kinds;                               /* bit k: the characters of category k */
    int first, count;                             /* ranges[2 * first], ranges[2 * first + 1], ... */
    int both;                                     /* another set that has to hold the character, too; -1: none */
    bool negated, space, no_space;                /* [^...]; contains \s; contains \S */
    uint64_t ascii[2];                            /* bit c: the set contains the character c */
} tok_set;
typedef enum tok_node_kind {
    TOK_DONE,
    TOK_SET,
    TOK_EITHER,
    TOK_JOIN,
    TOK_AHEAD,
    TOK_NOT_AHEAD,
    TOK_LAST
} tok_node_kind;
typedef struct tok_node {
    tok_node_kind kind;
    int set, least, most, next;                   /* most: -1 without a limit */
    bool keeps;                                   /* never gives back characters */
    int branch, sibling; /* the first branch of a group; the next branch after this one's start */
} tok_node;
enum { TOK_NODES = 256, TOK_SETS = 96, TOK_RANGES = 512 };
typedef struct tok_regex {
    tok_node node[TOK_NODES];
    tok_set set[TOK_SETS];
    uint32_t ranges[2 * TOK_RANGES];
    int nodes, sets, nranges, start;
    const char *text, *at;                        /* while it is read */
    bool any_case;
    bool only_spaces;                             /* white space outside of ASCII is in no range, but only in \s */
    const unsigned char *categories;
    int64_t steps;                                /* left for a text; an expression of a stranger may take very long */
} tok_regex;

static int tok_regex_bad(tok_regex *r, const char *what) {
    return opd_fail(OPD_ERROR_ARGUMENT, "tokeniser: byte %d of the expression '%.200s' %s", (int)(r->at - r->text),
                    r->text, what);
}
static int tok_node_new(tok_regex *r, tok_node_kind kind) {
    if (r->nodes == TOK_NODES) { return tok_regex_bad(r, "makes the expression too long"); }
    tok_node *node = &r->node[r->nodes];
    memset(node, 0, sizeof *node);
    node->kind = kind;
    node->least = node->most = 1;
    node->next = node->branch = node->sibling = -1;
    return r->nodes++;
}
static int tok_set_new(tok_regex *r) {
    if (r->sets == TOK_SETS) { return tok_regex_bad(r, "makes the expression too long"); }
    memset(&r->set[r->sets], 0, sizeof r->set[0]);
    r->set[r->sets].first = r->nranges;
    r->set[r->sets].both = -1;
    return r->sets++;
}
static int tok_set_range(tok_regex *r, int set, uint32_t low, uint32_t high) {
    if (r->nranges + 2 > TOK_RANGES) { return tok_regex_bad(r, "makes the expression too long"); }
    for (int i = 0; i < 2; i++) {
        r->ranges[2 * r->nranges] = low;
        r->ranges[2 * r->nranges++ + 1] = high;
        r->set[set].count++;
        const bool letter = low == high && ((low >= 'a' && low <= 'z') || (low >= 'A' && low <= 'Z'));
        if (!r->any_case || !letter) { break; }
        low = high = low ^ 32;
    }
    return 0;
}
static bool tok_set_search(const tok_regex *r, const tok_set *s, uint32_t c) {
    bool found =
        (s->kinds >> r->categories[c] & 1) || (s->space && tok_is_space(c)) || (s->no_space && !tok_is_space(c));
    const bool in_no_range = r->only_spaces && c >= 128 && tok_is_space(c);
    for (int i = s->first; i < s->first + s->count && !found && !in_no_range; i++) {
        found = c >= r->ranges[2 * i] && c <= r->ranges[2 * i + 1];
    }
    return found != s->negated && (s->both < 0 || tok_set_search(r, &r->set[s->both], c));
}
static bool tok_set_has(const tok_regex *r, int set, uint32_t c) {
    const tok_set *s = &r->set[set];
    return c < 128 ? s->ascii[c / 64] >> c % 64 & 1 : tok_set_search(r, s, c);
}
static void tok_set_done(tok_regex *r, int set) {
    for (uint32_t c = 0; c < 128; c++) {
        if (tok_set_search(r, &r->set[set], c)) { r->set[set].ascii[c / 64] |= UINT64_C(1) << c % 64; }
    }
}
/* Reads p{...} after a backslash: a category or its first letter. */
static int tok_read_category(tok_regex *r, int set, bool not_this) {
    static const char names[] = "LuLlLtLmLoMnMcMeNdNlNoPcPdPsPePiPfPoSmScSkSoZsZlZpCcCfCsCoCn";
    const char *end = *r->at == '{' ? strchr(r->at, '}') : NULL;
    uint32_t kinds = 0;
    for (int i = 0; end && i < TOK_IN_TURN; i++) {
        const bool first = end - r->at == 2 && r->at[1] == names[2 * i];
        if (first || (end - r->at == 3 && memcmp(r->at + 1, names + 2 * i, 2) == 0)) { kinds |= UINT32_C(1) << i; }
    }
    if (!kinds) { return tok_regex_bad(r, "names an unknown category"); }
    r->set[set].kinds |= not_this ? ~kinds & 0x3fffffff : kinds;
    r->at = end + 1;
    return 0;
}
/* Reads an escape sequence behind its backslash.  Returns 1 and the character, 0 if it added a class to the set, or
   -1. */
static int tok_read_escape(tok_regex *r, int set, uint32_t *c) {
    const char sign = *r->at;
    if (!sign) { return tok_regex_bad(r, "ends with a backslash"); }
    r->at++;
    switch (sign) {
    case 'r': *c = '\r'; return 1;
    case 'n': *c = '\n'; return 1;
    case 't': *c = '\t'; return 1;
    case 's': r->set[set].space = true; return 0;
    case 'S': r->set[set].no_space = true; return 0;
    case 'd': r->set[set].kinds |= UINT32_C(1) << TOK_Nd; return 0;
    case 'p': case 'P': return tok_read_category(r, set, sign == 'P');
    case 'u': {
        char *end;
        char digits[5] = "";
        strncpy(digits, r->at, 4);
        *c = (uint32_t)strtoul(digits, &end, 16);
        if (end != digits + 4) { return tok_regex_bad(r, "has a \\u without four digits"); }
        r->at += 4;
        return 1;
    }
    default:
        if ((sign >= 'a' && sign <= 'z') || (sign >= 'A' && sign <= 'Z') || (sign >= '0' && sign <= '9')) {
            return tok_regex_bad(r, "has an escape sequence that this program does not know");
        }
        *c = (unsigned char)sign;
        return 1;
    }
}
/* Reads the rest of [...].  Returns 0, or -1 with an error. */
static int tok_read_class(tok_regex *r, int set) {
    if (*r->at == '^') { r->set[set].negated = true; r->at++; }
    for (bool first = true; *r->at && (first || *r->at != ']'); first = false) {
        uint32_t low, high;
        if (r->at[0] == '&' && r->at[1] == '&' && r->at[2] == '[') {
            r->at += 3;
            const int other = tok_set_new(r);
            if (other < 0 || tok_read_class(r, other) != 0) { return -1; }
            r->set[set].both = other;
            continue;
        }
        r->at += tok_character(r->at, (int64_t)strlen(r->at), &low);
        if (low == '\\') {
            const int read = tok_read_escape(r, set, &low);
            if (read < 0) { return -1; }
            if (read == 0) { continue; }
        }
        high = low;
        if (r->at[0] == '-' && r->at[1] && r->at[1] != ']') {
            r->at++;
            r->at += tok_character(r->at, (int64_t)strlen(r->at), &high);
            if (high == '\\' && tok_read_escape(r, set, &high) != 1) { return tok_regex_bad(r, "ends no range"); }
        }
        if (low > high) { return tok_regex_bad(r, "has a range from a higher to a lower character"); }
        if (tok_set_range(r, set, low, high) != 0) { return -1; }
    }
    if (*r->at != ']') { return tok_regex_bad(r, "has no ]"); }
    r->at++;
    tok_set_done(r, set);
    return 0;
}
/* Reads how often a set may occur. */
static int tok_read_count(tok_regex *r, int at) {
    tok_node *node = &r->node[at];
    const char sign = *r->at;
    if (sign == '?' || sign == '*' || sign == '+') {
        node->least = sign == '+';
        node->most = sign == '?' ? 1 : -1;
        r->at++;
    } else if (sign == '{') {
        char *end;
        node->least = node->most = (int)strtol(r->at + 1, &end, 10);
        if (*end == ',') { node->most = end[1] == '}' ? -1 : (int)strtol(end + 1, &end, 10); end += *end == ','; }
        if (*end != '}' || node->least < 0 || node->least > 1000 || node->most > 1000 ||
            (node->most >= 0 && node->most < node->least)) {
            return tok_regex_bad(r, "has a bad number of repetitions");
        }
        r->at = end + 1;
    } else { return 0; }
    if (*r->at == '?') { return tok_regex_bad(r, "asks for the shortest match, which this program does not know"); }
    if (*r->at == '+') { node->keeps = true; r->at++; }
    return 0;
}
static int tok_read_branches(tok_regex *r, int parent, int join, int depth);

/* Reads a group behind its open bracket.  Returns its node, whose branches lead to a new TOK_JOIN in *last. */
static int tok_read_group(tok_regex *r, int depth, int *last) {
    const bool was = r->any_case;
    tok_node_kind kind = TOK_EITHER;
    if (strncmp(r->at, "?:", 2) == 0) { r->at += 2; }
    else if (strncmp(r->at, "?i:", 3) == 0) { r->at += 3; r->any_case = true; }
    else if (strncmp(r->at, "?=", 2) == 0) { r->at += 2; kind = TOK_AHEAD; }
    else if (strncmp(r->at, "?!", 2) == 0) { r->at += 2; kind = TOK_NOT_AHEAD; }
    else if (*r->at == '?') { return tok_regex_bad(r, "has a group of a kind that this program does not know"); }
    const int group = tok_node_new(r, kind), join = tok_node_new(r, kind == TOK_EITHER ? TOK_JOIN : TOK_DONE);
    if (group < 0 || join < 0 || tok_read_branches(r, group, join, depth + 1) != 0) { return -1; }
    if (*r->at != ')') { return tok_regex_bad(r, "has no )"); }
    r->at++;
    r->any_case = was;
    if (kind == TOK_EITHER && *r->at == '?') {             /* an empty branch, after the others */
        int branch = r->node[group].branch;
        while (r->node[branch].sibling >= 0) { branch = r->node[branch].sibling; }
        const int empty = tok_node_new(r, TOK_JOIN);
        if (empty < 0) { return -1; }
        r->node[branch].sibling = empty;
        r->node[empty].next = join;
        r->at++;
    }
    if (*r->at == '*' || *r->at == '+' || *r->at == '{') {
        return tok_regex_bad(r, "repeats a group, which this program does not know");
    }
    *last = kind == TOK_EITHER ? join : group;
    return group;
}
/* Reads one set, group or $.  Returns its first node, and its last in *last. */
static int tok_read_item(tok_regex *r, int depth, int *last) {
    if (*r->at == '(') { r->at++; return tok_read_group(r, depth, last); }
    if (*r->at == '$') { r->at++; return *last = tok_node_new(r, TOK_LAST); }
    const int node = tok_node_new(r, TOK_SET), set = tok_set_new(r);
    if (node < 0 || set < 0) { return -1; }
    uint32_t c;
    r->node[node].set = set;
    r->at += tok_character(r->at, (int64_t)strlen(r->at), &c);
    if (c == '[') {
        if (tok_read_class(r, set) != 0) { return -1; }
    } else {
        int read = 1;
        if (c == '.') { c = '\n'; r->set[set].negated = true; }
        else if (c == '\\') { read = tok_read_escape(r, set, &c); }
        else if (c == '*' || c == '+' || c == '?' || c == '^') { return tok_regex_bad(r, "has a misplaced sign"); }
        if (read < 0 || (read == 1 && tok_set_range(r, set, c, c) != 0)) { return -1; }
        tok_set_done(r, set);
    }
    *last = node;
    return tok_read_count(r, node) == 0 ? node : -1;
}
/* Reads alternatives up to ) or the end, as the branches of the node `parent`, which all lead to `join`. */
static int tok_read_branches(tok_regex *r, int parent, int join, int depth) {
    int before = -1;
    if (depth > 20) { return tok_regex_bad(r, "nests groups too deeply"); }
    for (;;) {
        const int head = tok_node_new(r, TOK_JOIN);
        int end = head;
        if (head < 0) { return -1; }
        while (*r->at && *r->at != '|' && *r->at != ')') {
            int last = -1;
            const int item = tok_read_item(r, depth, &last);
            if (item < 0) { return -1; }
            r->node[end].next = item;
            end = last;
        }
        r->node[end].next = join;
        if (before < 0) { r->node[parent].branch = head; } else { r->node[before].sibling = head; }
        before = head;
        if (*r->at != '|') { return 0; }
        r->at++;
    }
}
static int tok_regex_read(tok_regex *r, const char *text, const unsigned char *categories) {
    memset(r, 0, sizeof *r);
    r->text = r->at = text;
    r->categories = categories;
    r->start = tok_node_new(r, TOK_EITHER);
    const int done = tok_node_new(r, TOK_DONE);
    if (tok_read_branches(r, r->start, done, 0) != 0) { return -1; }
    return *r->at ? tok_regex_bad(r, "has a ) too many") : 0;
}
/* Returns where the match ends that begins with `node` at text[at]; -1 if there is none. */
static int64_t tok_match(tok_regex *r, int at_node, const uint32_t *text, int64_t at, int64_t end) {
    for (;;) {
        const tok_node *node = &r->node[at_node];
        int64_t stop = -1;
        if (r->steps-- < 0) { return -1; }
        switch (node->kind) {
        case TOK_DONE: return at;
        case TOK_JOIN: break;
        case TOK_LAST:
            if (at < end) { return -1; }
            break;
        case TOK_AHEAD: case TOK_NOT_AHEAD: case TOK_EITHER:
            for (int branch = node->branch; branch >= 0 && stop < 0; branch = r->node[branch].sibling) {
                stop = tok_match(r, branch, text, at, end);
            }
            if (node->kind == TOK_EITHER) { return stop; }
            if ((stop >= 0) != (node->kind == TOK_AHEAD)) { return -1; }
            break;
        case TOK_SET: {
            int64_t n = 0;
            while (at + n < end && n != node->most && tok_set_has(r, node->set, text[at + n])) { n++; }
            r->steps -= n / 16;
            if (n < node->least) { return -1; }
            const tok_node_kind next = r->node[node->next].kind;
            if (!node->keeps && n > node->least && next != TOK_DONE && next != TOK_LAST) {
                for (; n > node->least; n--) {
                    stop = tok_match(r, node->next, text, at + n, end);
                    if (stop >= 0) { return stop; }
                }
            }
            at += n;
            break;
        }
        }
        at_node = node->next;
    }
}

//-- the vocabulary ----------------------------------------------------------------------------------------------------

typedef struct tok_string { size_t at; int32_t bytes; } tok_string;     /* a place in `pool` */
typedef struct tok_merge { int32_t left, right, joined; int32_t rank; } tok_merge;
typedef struct tok_pair {
    double order;
    int64_t left, right;
    int32_t a, b;
} tok_pair; /* a pair that may be merged */
typedef struct tok_symbol { int64_t at, bytes, before, after; int32_t id; } tok_symbol;

typedef struct tok_vocabulary {
    bool bpe;
    int32_t count;                                /* tokens; strings[count..strings_count) are only parts of merges */
    int32_t bos, eos, unknown;                    /* -1: none */
    bool add_bos, add_eos, space_before, whole_words;
    bool cleans;                                  /* decoding removes spaces in front of signs such as commas */
    bool drops_space;                             /* phi-3: white space after a special token is dropped */
    /* for vocabularies of tokenizer.json, see tokenizer.h; false for vocabularies of GGUF files */
    bool by_rank;                                 /* merges by a list of pairs; true for all BPE */
    bool leftmost;                                /* special tokens are searched from left to right; their types hold */
    bool space_first, space_once, space_splits;   /* the space in front: only at the start of the text, not if there is
                                                     one; spaces begin new words */
    bool composes;                                /* the model wants composed characters (NFC) */
    bool late_control;                            /* control tokens are searched in a text in an unknown form */
    bool late_marks;                              /* late tokens are searched when spaces are U+2581, no white space */
    unsigned char *flags;                         /* for each token.  TOK_BEFORE, TOK_AFTER: it takes white space there.
                                                     TOK_ADDED: it is not in the vocabulary.  TOK_LATE: it is searched
                                                     after the others */
    int32_t ends[16];                             /* further tokens that end a text */
    int ends_count;
    tok_string *strings;
    int64_t strings_count, strings_cap;
    float *scores;
    signed char *types;
    int64_t scores_cap, types_cap;
    char *pool;
    int64_t pool_count, pool_cap;
    int32_t *table, most_bytes; /* hash table of strings: index + 1; the length of the longest token */
    int64_t table_size;
    tok_merge *merges;
    int64_t merges_count, merges_cap;
    int32_t *merge_table, byte_id[256];           /* byte_id: the string or token of a byte; -1: none */
    int64_t merge_table_size;
    int32_t *special_lengths;                     /* lengths of special tokens, longest first; then 0 */
    bool special_first[256];                      /* bytes with which special tokens begin */
    tok_regex *cuts[8];
    unsigned char *categories;
} tok_vocabulary;

static void tok_free(tok_vocabulary *v) {
    if (!v) { return; }
    for (int i = 0; i < 8; i++) { free(v->cuts[i]); }
    free(v->strings); free(v->scores); free(v->types); free(v->pool); free(v->table); free(v->merges);
    free(v->merge_table); free(v->special_lengths); free(v->categories);
    free(v->flags);
    free(v);
}
static const char *tok_string_of(const tok_vocabulary *v, int32_t id) { return v->pool + v->strings[id].at; }

static uint64_t tok_hash(const char *text, int64_t bytes) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int64_t i = 0; i < bytes; i++) { hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3); }
    return hash ^ hash >> 29;
}
/* Returns the string with this text, or -1.  *place gets the place of the table where it is, or would be. */
static int32_t tok_find_string(const tok_vocabulary *v, const char *text, int64_t bytes, int64_t *place) {
    int64_t at = v->table_size ? (int64_t)(tok_hash(text, bytes) & (uint64_t)(v->table_size - 1)) : 0;
    for (; v->table_size && v->table[at]; at = (at + 1) & (v->table_size - 1)) {
        const tok_string *s = &v->strings[v->table[at] - 1];
        if (s->bytes == bytes && memcmp(v->pool + s->at, text, (size_t)bytes) == 0) {
            *place = at;
            return v->table[at] - 1;
        }
    }
    *place = at;
    return -1;
}
/* Returns the token with this text, or -1. */
static int32_t tok_find(const tok_vocabulary *v, const char *text, int64_t bytes) {
    int64_t place;
    if (bytes > v->most_bytes) { return -1; }
    const int32_t found = tok_find_string(v, text, bytes, &place);
    return found < v->count ? found : -1;
}
/* Like tok_find, but not for tokens that were added to the vocabulary: they are no words of ordinary text. */
static int32_t tok_find_word(const tok_vocabulary *v, const char *text, int64_t bytes) {
    const int32_t id = tok_find(v, text, bytes);
    return id >= 0 && v->flags && (v->flags[id] & TOK_ADDED) ? -1 : id;
}
/* Returns the string with this text, which is added if it is new; -1 with an error. */
static int32_t tok_intern(tok_vocabulary *v, const char *text, int64_t bytes) {
    int64_t place;
    if (2 * v->strings_count >= v->table_size) {
        const int64_t size = v->table_size ? 2 * v->table_size : 1024;
        int32_t *table = (int32_t *)calloc((size_t)size, sizeof *table);
        if (!table) {
            return opd_fail(OPD_ERROR_MEMORY, "tokeniser: no memory for a table of %lld strings", (long long)size);
        }
        free(v->table);
        v->table = table;
        v->table_size = size;
        for (int64_t i = 0; i < v->strings_count; i++) {
            (void)tok_find_string(v, v->pool + v->strings[i].at, v->strings[i].bytes, &place);
            table[place] = (int32_t)i + 1;
        }
    }
    const int32_t found = tok_find_string(v, text, bytes, &place);
    if (found >= 0) { return found; }
    if (bytes > INT32_MAX / 4 || v->strings_count >= INT32_MAX / 4) {
        return opd_fail(OPD_ERROR_FILE, "tokeniser: too many tokens, or a token is too long");
    }
    if (tok_room((void **)&v->strings, &v->strings_cap, v->strings_count, 1, sizeof *v->strings) != 0 ||
        tok_room((void **)&v->pool, &v->pool_cap, v->pool_count, bytes + 1, 1) != 0) { return -1; }
    v->strings[v->strings_count].at = (size_t)v->pool_count;
    v->strings[v->strings_count].bytes = (int32_t)bytes;
    if (bytes) { memcpy(v->pool + v->pool_count, text, (size_t)bytes); }
    v->pool_count += bytes;
    v->pool[v->pool_count++] = 0;
    v->table[place] = (int32_t)++v->strings_count;
    return (int32_t)v->strings_count - 1;
}

/* Adds the next token.  score may be 0 for BPE. */
static int tok_add(tok_vocabulary *v, const char *text, int64_t bytes, float score, int type) {
    char empty[32];
    if (bytes == 0) {                                      /* llama.cpp gives these a name, too */
        bytes = snprintf(empty, sizeof empty, "[EMPTY_%d]", (int)v->count);
        text = empty;
    }
    const int64_t before = v->strings_count;
    if (tok_room((void **)&v->scores, &v->scores_cap, before, 1, sizeof *v->scores) != 0 ||
        tok_room((void **)&v->types, &v->types_cap, before, 1, 1) != 0) { return -1; }
    const int32_t id = tok_intern(v, text, bytes);
    if (id < 0) { return -1; }
    if (id < before) {
        return opd_fail(OPD_ERROR_FILE, "tokeniser: the tokens %d and %d have the same text '%.60s'", (int)id,
                        (int)before, tok_string_of(v, id));
    }
    if (score != score) { return opd_fail(OPD_ERROR_FILE, "tokeniser: the score of token %d is no number", (int)id); }
    v->scores[id] = score;
    v->types[id] = (signed char)(type >= TOK_NORMAL && type <= TOK_BYTE ? type : TOK_NORMAL);
    if (bytes > v->most_bytes) { v->most_bytes = (int32_t)bytes; }
    v->count = id + 1;
    return 0;
}
static int64_t tok_merge_place(const tok_vocabulary *v, int32_t left, int32_t right) {
    uint64_t hash = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * UINT64_C(0x9e3779b97f4a7c15);
    int64_t at = (int64_t)((hash ^ hash >> 32) & (uint64_t)(v->merge_table_size - 1));
    for (; v->merge_table[at]; at = (at + 1) & (v->merge_table_size - 1)) {
        const tok_merge *m = &v->merges[v->merge_table[at] - 1];
        if (m->left == left && m->right == right) { break; }
    }
    return at;
}
/* Adds the merge of two texts, neither of which is empty, after all tokens. */
static int tok_add_pair(tok_vocabulary *v, const char *a, int64_t left, const char *b, int64_t right) {
    if (tok_room((void **)&v->merges, &v->merges_cap, v->merges_count, 1, sizeof *v->merges) != 0) { return -1; }
    tok_merge merge;
    char *joined = (char *)malloc((size_t)(left + right));
    if (!joined) { return opd_fail(OPD_ERROR_MEMORY, "tokeniser: no memory for a merge"); }
    memcpy(joined, a, (size_t)left);
    memcpy(joined + left, b, (size_t)right);
    merge.left = tok_intern(v, a, left);
    merge.right = tok_intern(v, b, right);
    merge.joined = tok_intern(v, joined, left + right);
    merge.rank = (int32_t)v->merges_count;
    free(joined);
    if (merge.left < 0 || merge.right < 0 || merge.joined < 0) { return -1; }
    v->merges[v->merges_count++] = merge;
    return 0;
}
/* Adds the next merge, "left right", after all tokens. */
static int tok_add_merge(tok_vocabulary *v, const char *text, int64_t bytes) {
    const char *space = bytes > 1 ? (const char *)memchr(text + 1, ' ', (size_t)bytes - 1) : NULL;
    if (!space || space + 1 == text + bytes) {
        return opd_fail(OPD_ERROR_FILE, "tokeniser: merge %lld, '%.*s', is not two texts with a space between them",
                        (long long)v->merges_count, (int)(bytes > 60 ? 60 : bytes), text);
    }
    return tok_add_pair(v, text, space - text, space + 1, bytes - (space - text) - 1);
}

//-- the expressions of the known vocabularies -------------------------------------------------------------------------

#define TOK_SHORT "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define TOK_SPACES "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define TOK_GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)"
#define TOK_MODERN(numbers) TOK_SHORT "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers "|" \
    " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" TOK_SPACES
#define TOK_UPPER "[\\p{L}&&[^a-z]]"              /* as in llama.cpp: letters without case are in both */
#define TOK_LOWER "[\\p{L}&&[^A-Z]]"
#define TOK_CASES(numbers, end) "[^\\r\\n\\p{L}\\p{N}]?" TOK_UPPER "*" TOK_LOWER "+" end "|[^\\r\\n\\p{L}\\p{N}]?" \
    TOK_UPPER "+" TOK_LOWER "*" end "|" numbers "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" TOK_SPACES
#define TOK_BLOOM " ?[^(\\s|.,!?\\u2026\\u3002\\uff0c\\u3001\\u0964\\u06d4\\u060c)]+"
/* The cased letters of deepseek-llm, by number, because editors might normalise some. */
#define TOK_LATIN_GREEK_CYRILLIC \
    "\\s?[A-Za-z\\u00b5\\u00c0-\\u00d6\\u00d8-\\u00f6\\u00f8-\\u01ba\\u01bc-\\u01bf\\u01c4-\\u0293" \
    "\\u0295-\\u02af\\u0370-\\u0373\\u0376\\u0377\\u037b-\\u037d\\u037f\\u0386\\u0388-\\u038a\\u038c" \
    "\\u038e-\\u03a1\\u03a3-\\u03f5\\u03f7-\\u0481\\u048a-\\u052f\\u0531-\\u0556\\u10a0-\\u10c5\\u13a0-\\u13f5" \
    "\\u13f8-\\u13fd\\u1c90-\\u1cba\\u1cbd-\\u1cbf\\u1d00-\\u1d2b\\u1d6b-\\u1d77\\u1d79-\\u1d9a\\u1e00-\\u1f15" \
    "\\u1f18-\\u1f1d\\u1f20-\\u1f45\\u1f48-\\u1f4d\\u1f50-\\u1f57\\u1f59\\u1f5b\\u1f5d\\u1f5f-\\u1f7d" \
    "\\u1f80-\\u1fb4\\u1fb6-\\u1fbc\\u1fbe\\u1fc2-\\u1fc4\\u1fc6-\\u1fcc\\u1fd0-\\u1fd3\\u1fd6-\\u1fdb" \
    "\\u1fe0-\\u1fec\\u1ff2-\\u1ff4\\u1ff6-\\u1ffc\\u2102\\u2107\\u210a-\\u2113\\u2115\\u2119-\\u211d\\u2124" \
    "\\u2126\\u2128\\u212a-\\u212d\\u212f-\\u2134\\u2139\\u213c-\\u213f\\u2145-\\u2149\\u214e\\u2183\\u2184" \
    "\\u2c00-\\u2c7b\\u2c7e-\\u2ce4\\u2ceb-\\u2cee\\u2cf2\\u2cf3\\ua640-\\ua66d\\ua680-\\ua69b\\ua722-\\ua76f" \
    "\\ua771-\\ua787\\ua78b-\\ua78e\\uab70-\\uabbf\\ufb00-\\ufb06\\ufb13-\\ufb17\\uff21-\\uff3a\\uff41-\\uff5a" \
    "\xf0\x90\x90\x80-\xf0\x90\x91\x8f\xf0\x90\x92\xb0-\xf0\x90\x93\x93\xf0\x90\x93\x98-\xf0\x90\x93\xbb" \
    "\xf0\x90\xb2\x80-\xf0\x90\xb2\xb2\xf0\x90\xb3\x80-\xf0\x90\xb3\xb2\xf0\x91\xa2\xa0-\xf0\x91\xa3\x9f" \
    "\xf0\x9e\xa4\x80-\xf0\x9e\xa5\x83]+"
typedef struct tok_pre { const char *names; bool whole_words, add_bos, cleans; const char *cuts[8]; } tok_pre;
/* names: `tokenizer.ggml.pre` of the files, between bars */
static const tok_pre tok_pres[] = {
    {"|gpt-2|gpt2|mpt|olmo|jais|phi-2|gigachat|jina-es|jina-de|jina-v2-es|jina-v2-de|jina-v2-code|a.x-4.0|mellum|",
     false, false, true, {TOK_GPT2}},
    {"|llama-bpe|llama3|llama-v3|falcon3|falcon-h1|pixtral|midm-2.0|lfm2|", true, true, true,
     {TOK_MODERN("\\p{N}{1,3}")}},
    {"|glm4|", true, false, true, {TOK_MODERN("\\p{N}{1,3}")}},
    {"|dbrx|smaug-bpe|chatglm-bpe|", false, false, true, {TOK_MODERN("\\p{N}{1,3}")}},
    {"|qwen2|deepseek-r1-qwen|hunyuan|solar-open|", false, false, false, {TOK_MODERN("\\p{N}")}},
    {"|stablelm2|megrez|", false, false, true, {TOK_MODERN("\\p{N}")}},
    {"|qwen35|", false, false, false,
     {TOK_SHORT "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" TOK_SPACES}},
    {"|smollm|command-r|", false, false, false, {"\\p{N}", TOK_GPT2}},
    {"|starcoder|refact|codeshell|exaone|minerva-7b|", false, false, true, {"\\p{N}", TOK_GPT2}},
    {"|falcon|", false, false, true, {"[\\p{P}\\$\\+<=>\\^~\\|`]+", TOK_GPT2, "[0-9][0-9][0-9]"}},
    {"|deepseek-llm|", false, false, false,
     {"[\\r\\n]", TOK_LATIN_GREEK_CYRILLIC,
      "\\s?[!-/:-~\\uff01-\\uff0f\\uff1a-\\uff5e\\u2018-\\u201f\\u3000-\\u3002]+", "\\s+$",
      "[\\u4e00-\\u9fa5\\u0800-\\u4e00\\uac00-\\ud7ff]+", "\\p{N}+"}},
    {"|deepseek-coder|", false, false, false,
     {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", "[\\u4e00-\\u9fa5\\u0800-\\u4e00\\uac00-\\ud7ff]+", "\\p{N}"}},
    {"|deepseek-v3|hunyuan-dense|joyai-llm|", false, false, false,
     {"\\p{N}{1,3}", "[\\u4e00-\\u9fa5\\u3040-\\u309f\\u30a0-\\u30ff]+",
      "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
      " ?[\\p{P}\\p{S}]+[\\r\\n]*|" TOK_SPACES}},
    {"|tekken|", true, true, false, {TOK_CASES("\\p{N}", "")}},
    {"|gpt-4o|llama4|kanana2|", false, false, false, {TOK_CASES("\\p{N}{1,3}", TOK_SHORT "?")}},
    {"|poro-chat|", false, false, false, {TOK_BLOOM}},
    {"|bloom|gpt3-finnish|", false, false, true, {TOK_BLOOM}},
    {"|default|", false, false, true, {"[\\p{P}\\$\\+<=>\\^~\\|]+", TOK_GPT2, "\\p{N}+", "[0-9][0-9][0-9]"}},
};

/* Adds an expression that cuts the pieces that the expressions before have made. */
static int tok_add_cut(tok_vocabulary *v, const char *expression) {
    for (int i = 0; i < 8; i++) {
        if (v->cuts[i]) { continue; }
        v->cuts[i] = (tok_regex *)malloc(sizeof *v->cuts[i]);
        if (!v->cuts[i]) { return opd_fail(OPD_ERROR_MEMORY, "tokeniser: no memory for an expression"); }
        return tok_regex_read(v->cuts[i], expression, v->categories);
    }
    return opd_fail(OPD_ERROR_FILE, "tokeniser: more than 8 expressions");
}
/* Is `name` one of the names between bars? */
static bool tok_is_name(const char *names, const char *name) {
    for (const char *at = names + 1; *at; ) {
        const size_t length = strcspn(at, "|");
        if (length == strlen(name) && memcmp(at, name, length) == 0) { return true; }
        at += length + 1;
    }
    return false;
}
/* Makes an empty vocabulary.  model: "llama" (SPM) or "gpt2" (BPE).  pre: the name of its expressions, or NULL for the
   default; "" for none, if the caller adds them.  Returns NULL with an error for others. */
static tok_vocabulary *tok_new(const char *model, const char *pre) {
    tok_vocabulary *v = (tok_vocabulary *)calloc(1, sizeof *v);
    unsigned char *categories = (unsigned char *)calloc(0x110000, 1);
    int known = -1;
    if (!v || !categories) {
        free(v); free(categories);
        (void)opd_fail(OPD_ERROR_MEMORY, "tokeniser: no memory for a vocabulary");
        return NULL;
    }
    tok_read_categories(categories);
    v->categories = categories;
    v->bpe = v->by_rank = strcmp(model, "gpt2") == 0;
    if (!v->bpe && strcmp(model, "llama") != 0) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "tokeniser: the model '%s' is not known; llama and gpt2 are", model);
        tok_free(v);
        return NULL;
    }
    v->bos = v->bpe ? 11 : 1; v->eos = v->bpe ? 11 : 2; v->unknown = v->bpe ? -1 : 0;
    v->add_bos = v->space_before = !v->bpe;
    if (!v->bpe || (pre && !*pre)) { return v; }
    for (int i = 0; i < (int)(sizeof tok_pres / sizeof *tok_pres); i++) {
        if (tok_is_name(tok_pres[i].names, pre ? pre : "default")) { known = i; }
    }
    if (known < 0) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "tokeniser: the pre-tokeniser '%.60s' (tokenizer.ggml.pre) is not known",
                       pre);
        tok_free(v);
        return NULL;
    }
    v->whole_words = tok_pres[known].whole_words;
    v->add_bos = tok_pres[known].add_bos;
    v->cleans = tok_pres[known].cleans;
    for (int i = 0; i < 8 && tok_pres[known].cuts[i]; i++) {
        if (tok_add_cut(v, tok_pres[known].cuts[i]) != 0) { tok_free(v); return NULL; }
        v->cuts[i]->only_spaces = true;                    /* as in llama.cpp */
    }
    return v;
}

//-- finishing a vocabulary --------------------------------------------------------------------------------------------

static int tok_hex(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}
/* Returns the byte that a text like <0x0A> names, or -1. */
static int tok_byte_of(const char *text, int64_t bytes) {
    if (bytes != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>') { return -1; }
    const int high = tok_hex(text[3]), low = tok_hex(text[4]);
    return high < 0 || low < 0 ? -1 : 16 * high + low;
}
/* Returns the character that stands for a byte in the tokens of a BPE vocabulary. */
static uint32_t tok_byte_character(int byte) {
    if ((byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174) { return (uint32_t)byte; }
    return (uint32_t)(256 + (byte <= 32 ? byte : byte <= 160 ? byte - 127 + 33 : 67));
}
/* Returns the byte for which a character stands, or -1. */
static int tok_character_byte(uint32_t c) {
    if (c < 256) { return tok_byte_character((int)c) == c ? (int)c : -1; }
    if (c >= 256 + 68) { return -1; }
    return c - 256 <= 32 ? (int)c - 256 : c - 256 <= 66 ? (int)c - 256 - 33 + 127 : 173;
}
/* Returns true for a text with which a turn ends, or that marks places in code.  Such tokens count as control tokens,
   whatever their type says, as in llama.cpp.  *ends: text is generated up to such a token. */
static bool tok_well_known(const char *text, bool *ends) {
    static const char list[] =
        "\n<|eot_id|>\n<|im_end|>\n<|end|>\n<|return|>\n<|call|>\n<end_of_turn>\n<|endoftext|>\n<|eom_id|>\n"
        "<EOT>\n_<EOT>\n<|end_of_text|>\n<end_of_utterance>\n[EOT]\n";
    static const char marks[] =
        "\n<|fim_prefix|>\n<fim-prefix>\n<fim_prefix>\n<PRE>\n<|fim_suffix|>\n<fim-suffix>\n<fim_suffix>\n"
        "<SUF>\n<|fim_middle|>\n<fim-middle>\n<fim_middle>\n<MID>\n<|fim_pad|>\n<fim-pad>\n<PAD>\n<|fim_repo|>\n"
        "<|repo_name|>\n<fim-repo>\n<REPO>\n<reponame>\n<|file_sep|>\n";
    char line[40];
    *ends = false;
    if (strchr(text, '\n') || snprintf(line, sizeof line, "\n%s\n", text) >= (int)sizeof line) { return false; }
    *ends = strstr(list, line) != NULL;
    return *ends || strstr(marks, line);
}
/* Returns true if generating stops at this token. */
static bool tok_ends(const tok_vocabulary *v, int32_t id) {
    bool ends;
    if (id == v->eos) { return true; }
    for (int i = 0; i < v->ends_count; i++) { if (v->ends[i] == id) { return true; } }
    return !v->leftmost && id >= 0 && id < v->count && tok_well_known(tok_string_of(v, id), &ends) && ends;
}
static bool tok_is_special(const tok_vocabulary *v, int32_t id) {
    return v->types[id] == TOK_UNKNOWN || v->types[id] == TOK_CONTROL || v->types[id] == TOK_USER_DEFINED;
}
static int tok_compare_lengths(const void *a, const void *b) { return *(const int32_t *)b - *(const int32_t *)a; }

/* Collects the lengths of special tokens, which are searched in each text, and the tokens of bytes. */
static int tok_finish_tokens(tok_vocabulary *v) {
    int64_t n = 0, kept = 0;
    bool ends;
    v->special_lengths = (int32_t *)malloc(((size_t)v->count + 1) * sizeof *v->special_lengths);
    if (!v->special_lengths) { return opd_fail(OPD_ERROR_MEMORY, "tokeniser: no memory for special tokens"); }
    for (int i = 0; i < 256 && !v->bpe; i++) { v->byte_id[i] = -1; }
    for (int32_t id = 0; id < v->count; id++) {
        const char *text = tok_string_of(v, id);
        const int byte = tok_byte_of(text, v->strings[id].bytes);
        if (v->types[id] == TOK_BYTE && byte < 0) {
            return opd_fail(OPD_ERROR_FILE,
                            "tokeniser: token %d has the type of a byte, but its text '%.60s' names none", (int)id,
                            text);
        }
        if (!v->bpe && byte >= 0) { v->byte_id[byte] = id; }
        if (!v->leftmost && tok_well_known(text, &ends)) { v->types[id] = TOK_CONTROL; }
        if (tok_is_special(v, id)) {
            v->special_lengths[n++] = v->strings[id].bytes;
            v->special_first[(unsigned char)text[0]] = true;
        }
    }
    qsort(v->special_lengths, (size_t)n, sizeof *v->special_lengths, tok_compare_lengths);
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || v->special_lengths[i] != v->special_lengths[i - 1]) {
            v->special_lengths[kept++] = v->special_lengths[i];
        }
    }
    v->special_lengths[kept] = 0;
    for (int i = 0; i < 256 && !v->bpe; i++) {             /* a byte without <0xNN> may be a token itself */
        const char byte = (char)i;
        if (v->byte_id[i] < 0) { v->byte_id[i] = tok_find(v, &byte, 1); }
    }
    return 0;
}
/* Checks the vocabulary, and builds its tables.  Call this after all tokens and merges. */
static int tok_finish(tok_vocabulary *v) {
    const int32_t ids[] = {v->bos, v->eos, v->unknown};
    static const char *const names[] = {"bos", "eos", "unknown"};
    if (v->count == 0) { return opd_fail(OPD_ERROR_FILE, "tokeniser: the vocabulary has no tokens"); }
    for (int i = 0; i < 3; i++) {
        if (ids[i] < -1 || ids[i] >= v->count) {
            return opd_fail(OPD_ERROR_FILE, "tokeniser: %s_token_id is %d, but there are %d tokens", names[i],
                            (int)ids[i], (int)v->count);
        }
    }
    if (v->add_bos && v->bos < 0) { v->add_bos = false; }
    if (v->add_eos && v->eos < 0) { v->add_eos = false; }
    if (tok_finish_tokens(v) != 0) { return -1; }
    if (!v->by_rank) { return 0; }
    for (int i = 0; i < 256 && v->bpe; i++) {
        char text[4];
        v->byte_id[i] = tok_intern(v, text, tok_utf8(tok_byte_character(i), text));
        if (v->byte_id[i] < 0) { return -1; }
    }
    for (v->merge_table_size = 1024; v->merge_table_size < 2 * v->merges_count; ) { v->merge_table_size *= 2; }
    v->merge_table = (int32_t *)calloc((size_t)v->merge_table_size, sizeof *v->merge_table);
    if (!v->merge_table) { return opd_fail(OPD_ERROR_MEMORY, "tokeniser: no memory for merges"); }
    for (int64_t i = 0; i < v->merges_count; i++) {
        const int64_t at = tok_merge_place(v, v->merges[i].left, v->merges[i].right);
        if (!v->merge_table[at]) { v->merge_table[at] = (int32_t)i + 1; }
    }
    return 0;
}

//-- merging -----------------------------------------------------------------------------------------------------------

/* The symbols of a piece of text, and a heap of the pairs that may be merged. */
typedef struct tok_work {
    tok_symbol *symbol;
    int64_t count, cap;
    tok_pair *heap;
    int64_t pairs, pairs_cap;
    uint32_t *characters;                         /* of the text, and where pieces end in it */
    int64_t *ends, *other_ends;
} tok_work;

static bool tok_pair_first(const tok_pair *a, const tok_pair *b) {
    return a->order < b->order || (a->order == b->order && a->left < b->left);
}
static int tok_heap_push(tok_work *w, tok_pair pair) {
    if (tok_room((void **)&w->heap, &w->pairs_cap, w->pairs, 1, sizeof *w->heap) != 0) { return -1; }
    int64_t at = w->pairs++;
    for (; at > 0 && tok_pair_first(&pair, &w->heap[(at - 1) / 2]); at = (at - 1) / 2) {
        w->heap[at] = w->heap[(at - 1) / 2];
    }
    w->heap[at] = pair;
    return 0;
}
static tok_pair tok_heap_pop(tok_work *w) {
    const tok_pair first = w->heap[0], last = w->heap[--w->pairs];
    int64_t at = 0;
    for (int64_t child = 1; child < w->pairs; child = 2 * at + 1) {
        if (child + 1 < w->pairs && tok_pair_first(&w->heap[child + 1], &w->heap[child])) { child++; }
        if (!tok_pair_first(&w->heap[child], &last)) { break; }
        w->heap[at] = w->heap[child];
        at = child;
    }
    w->heap[at] = last;
    return first;
}
/* Adds the pair of the symbols `left` and its neighbour to the heap, if they can be merged. */
static int tok_try_pair(const tok_vocabulary *v, tok_work *w, const char *text, int64_t left) {
    const int64_t right = left < 0 ? -1 : w->symbol[left].after;
    if (right < 0) { return 0; }
    const tok_symbol *a = &w->symbol[left], *b = &w->symbol[right];
    tok_pair pair;
    pair.left = left; pair.right = right; pair.a = a->id; pair.b = b->id;
    if (v->by_rank) {
        const int32_t merge = v->merge_table[tok_merge_place(v, a->id, b->id)];
        if (!merge) { return 0; }
        pair.order = v->merges[merge - 1].rank;
    } else {
        const int32_t id = tok_find(v, text + a->at, a->bytes + b->bytes);
        if (id < 0) { return 0; }
        pair.order = -v->scores[id];
        pair.a = (int32_t)a->bytes; pair.b = (int32_t)b->bytes;
    }
    return tok_heap_push(w, pair);
}
static int tok_add_symbol(tok_work *w, int64_t at, int64_t bytes, int32_t id) {
    if (tok_room((void **)&w->symbol, &w->cap, w->count, 1, sizeof *w->symbol) != 0) { return -1; }
    tok_symbol *s = &w->symbol[w->count];
    s->at = at; s->bytes = bytes; s->id = id;
    s->before = w->count - 1;
    s->after = -1;
    if (w->count) { s[-1].after = w->count; }
    w->count++;
    return 0;
}
/* Merges the symbols while a pair can be merged. */
static int tok_merge_all(const tok_vocabulary *v, tok_work *w, const char *text) {
    w->pairs = 0;
    for (int64_t i = 0; i + 1 < w->count; i++) {
        if (tok_try_pair(v, w, text, i) != 0) { return -1; }
    }
    while (w->pairs) {
        const tok_pair pair = tok_heap_pop(w);
        tok_symbol *left = &w->symbol[pair.left], *right = &w->symbol[pair.right];
        if (!left->bytes || !right->bytes || left->after != pair.right) { continue; }      /* merged meanwhile */
        if (v->by_rank) {
            if (left->id != pair.a || right->id != pair.b) { continue; }
            left->id = v->merges[v->merge_table[tok_merge_place(v, left->id, right->id)] - 1].joined;
        } else if (left->bytes != pair.a || right->bytes != pair.b) { continue; }
        left->bytes += right->bytes;
        right->bytes = 0;
        left->after = right->after;
        if (right->after >= 0) { w->symbol[right->after].before = pair.left; }
        if (tok_try_pair(v, w, text, left->before) != 0 || tok_try_pair(v, w, text, pair.left) != 0) { return -1; }
    }
    return 0;
}
static int tok_push_unknown(const tok_vocabulary *v, tok_ids *ids, const char *text, int64_t bytes) {
    if (v->unknown >= 0) { return tok_push(ids, v->unknown); }
    char shown[64];
    int at = 0;
    for (int64_t i = 0; i < bytes && i < 12; i++) {
        at += snprintf(shown + at, sizeof shown - (size_t)at, " %02x", (unsigned char)text[i]);
    }
    return opd_fail(OPD_ERROR_ARGUMENT, "tokeniser: the vocabulary has no token for the bytes%s", shown);
}
/* SPM, for text[0..bytes) with spaces already marked. */
static int tok_encode_spm(const tok_vocabulary *v, tok_work *w, const char *text, int64_t bytes, tok_ids *ids) {
    static const signed char lengths[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
    w->count = 0;
    for (int64_t at = 0; at < bytes; ) {
        const int64_t length = lengths[(unsigned char)text[at] >> 4], left = bytes - at;
        if (tok_add_symbol(w, at, length < left ? length : left, 0) != 0) { return -1; }
        at += length < left ? length : left;
    }
    if (tok_merge_all(v, w, text) != 0) { return -1; }
    for (int64_t i = w->count ? 0 : -1; i >= 0; i = w->symbol[i].after) {
        const tok_symbol *s = &w->symbol[i];
        const int32_t id = tok_find(v, text + s->at, s->bytes);
        if (id >= 0) {
            if (tok_push(ids, id) != 0) { return -1; }
            continue;
        }
        for (int64_t j = 0; j < s->bytes; j++) {
            const int32_t byte = v->byte_id[(unsigned char)text[s->at + j]];
            if ((byte >= 0 ? tok_push(ids, byte) : tok_push_unknown(v, ids, text + s->at, s->bytes)) != 0) {
                return -1;
            }
            if (byte < 0) { break; }
        }
    }
    return 0;
}
/* SPM by a list of pairs, for one word with spaces already marked.  The vocabulary has all bytes. */
static int tok_encode_characters(const tok_vocabulary *v, tok_work *w, const char *text, int64_t bytes, tok_ids *ids) {
    const int32_t whole = v->whole_words ? tok_find_word(v, text, bytes) : -1;
    if (whole >= 0) { return tok_push(ids, whole); }
    w->count = 0;
    for (int64_t at = 0, length; at < bytes; at += length) {
        uint32_t c;
        length = tok_character(text + at, bytes - at, &c);
        const int32_t id = tok_find_word(v, text + at, length);
        if (id >= 0 && tok_add_symbol(w, at, length, id) != 0) { return -1; }
        for (int64_t i = at; id < 0 && i < at + length; i++) {
            if (tok_add_symbol(w, i, 1, v->byte_id[(unsigned char)text[i]]) != 0) { return -1; }
        }
    }
    if (tok_merge_all(v, w, text) != 0) { return -1; }
    for (int64_t i = w->count ? 0 : -1; i >= 0; i = w->symbol[i].after) {
        if (tok_push(ids, w->symbol[i].id) != 0) { return -1; }
    }
    return 0;
}
/* BPE, for one word of bytes.  written: its text in the characters of the vocabulary. */
static int tok_encode_word(const tok_vocabulary *v, tok_work *w, const char *word, int64_t bytes, tok_text *written,
                           tok_ids *ids) {
    if (v->whole_words) {
        written->count = 0;
        for (int64_t i = 0; i < bytes; i++) {
            const int32_t id = v->byte_id[(unsigned char)word[i]];
            if (tok_append(written, tok_string_of(v, id), v->strings[id].bytes) != 0) { return -1; }
        }
        const int32_t whole = tok_find_word(v, written->at, written->count);
        if (whole >= 0) { return tok_push(ids, whole); }
    }
    w->count = 0;
    for (int64_t i = 0; i < bytes; i++) {
        if (tok_add_symbol(w, i, 1, v->byte_id[(unsigned char)word[i]]) != 0) { return -1; }
    }
    if (tok_merge_all(v, w, word) != 0) { return -1; }
    for (int64_t i = w->count ? 0 : -1; i >= 0; i = w->symbol[i].after) {
        const tok_symbol *s = &w->symbol[i];
        if (s->id < v->count) {
            if (tok_push(ids, s->id) != 0) { return -1; }
            continue;
        }
        for (int64_t j = 0; j < s->bytes; j++) {
            const int32_t byte = v->byte_id[(unsigned char)word[s->at + j]];
            if (s->bytes == 1 && tok_push_unknown(v, ids, word + s->at, 1) != 0) { return -1; }
            /* a merge whose result is no token: as in llama.cpp, those bytes of its written text that are tokens */
            for (int32_t k = 0; k < v->strings[byte].bytes && s->bytes > 1; k++) {
                const int32_t id = tok_find(v, tok_string_of(v, byte) + k, 1);
                if (id >= 0 && tok_push(ids, id) != 0) { return -1; }
            }
        }
    }
    return 0;
}
/* Cuts the pieces of the text, which end at ends[0..n), once more.  Returns the new number of pieces, or -1. */
static int64_t tok_cut(tok_regex *r, const uint32_t *text, const int64_t *ends, int64_t n, int64_t *out) {
    int64_t count = 0, begin = 0;
    const tok_node *first = &r->node[r->node[r->node[r->start].branch].next];
    const bool to_end = first->kind == TOK_SET && first->most < 0 && r->node[first->next].kind == TOK_LAST;
    for (int64_t i = 0; i < n; begin = ends[i++]) {
        int64_t last = begin;
        for (int64_t at = begin; at < ends[i]; ) {
            const int64_t stop = tok_match(r, r->start, text, at, ends[i]);
            if (r->steps < 0) {
                return opd_fail(OPD_ERROR_LIMIT, "tokeniser: the expression '%.100s' takes too long for this text",
                                r->text);
            }
            if (stop <= at) {
                /* an expression like \s+$ that fails in a run of its characters fails in all of the run */
                do { at++; } while (to_end && at < ends[i] && tok_set_has(r, first->set, text[at - 1]) &&
                                    tok_set_has(r, first->set, text[at]));
                continue;
            }
            if (at > last) { out[count++] = at; }
            out[count++] = last = at = stop;
        }
        if (last < ends[i]) { out[count++] = ends[i]; }
    }
    return count;
}
static int tok_encode_bpe(const tok_vocabulary *v, tok_work *w, const char *text, int64_t bytes, tok_ids *ids) {
    int64_t n = 0, pieces = 1, begin = 0;
    tok_text word = {NULL, 0, 0}, written = {NULL, 0, 0};
    free(w->characters); free(w->ends); free(w->other_ends);
    w->characters = (uint32_t *)malloc((size_t)bytes * sizeof *w->characters);
    w->ends = (int64_t *)malloc((size_t)bytes * sizeof *w->ends);
    w->other_ends = (int64_t *)malloc((size_t)bytes * sizeof *w->other_ends);
    if (!w->characters || !w->ends || !w->other_ends) {
        return opd_fail(OPD_ERROR_MEMORY, "tokeniser: no memory for the text");
    }
    for (int64_t at = 0; at < bytes; ) { at += tok_character(text + at, bytes - at, &w->characters[n++]); }
    w->ends[0] = n;
    for (int i = 0; i < 8 && v->cuts[i]; i++) {
        v->cuts[i]->steps = 1000000 + 1000 * n;
        pieces = tok_cut(v->cuts[i], w->characters, w->ends, pieces, w->other_ends);
        if (pieces < 0) { return -1; }
        int64_t *swap = w->ends;
        w->ends = w->other_ends;
        w->other_ends = swap;
    }
    for (int64_t i = 0; i < pieces && opd_ok(); begin = w->ends[i++]) {
        word.count = 0;
        for (int64_t at = begin; at < w->ends[i] && opd_ok(); at++) {
            char utf8[4];
            (void)tok_append(&word, utf8, tok_utf8(w->characters[at], utf8));
        }
        if (opd_ok()) { (void)tok_encode_word(v, w, word.at, word.count, &written, ids); }
    }
    free(word.at); free(written.at);
    return opd_ok() ? 0 : -1;
}

//-- text to tokens ----------------------------------------------------------------------------------------------------

/* Encodes text without special tokens.  after_special: it begins the text, or follows a special token. */
static int tok_encode_piece(const tok_vocabulary *v, tok_work *w, const char *text, int64_t bytes, bool after_special,
                            tok_ids *ids) {
    if (v->bpe) { return tok_encode_bpe(v, w, text, bytes, ids); }
    tok_text marked = {NULL, 0, 0};
    const bool has_one = v->space_once && (*text == ' ' || (bytes >= 3 && memcmp(text, "\xe2\x96\x81", 3) == 0));
    int failed = v->space_before && after_special && !has_one ? tok_append(&marked, "\xe2\x96\x81", 3) : 0;
    for (int64_t i = 0, begin = 0; i <= bytes && !failed; i++) {
        if (i < bytes && text[i] != ' ') { continue; }
        failed = tok_append(&marked, text + begin, i - begin);
        if (i < bytes && !failed) { failed = tok_append(&marked, "\xe2\x96\x81", 3); }
        begin = i + 1;
    }
    if (!failed && !v->by_rank) { failed = tok_encode_spm(v, w, marked.at, marked.count, ids); }
    for (int64_t at = 0, end = 0; v->by_rank && at < marked.count && !failed; at = end) {
        do { end++; } while (end < marked.count && !(v->space_splits && marked.count - end >= 3 &&
                                                     memcmp(marked.at + end, "\xe2\x96\x81", 3) == 0));
        failed = tok_encode_characters(v, w, marked.at + at, end - at, ids);
    }
    free(marked.at);
    return failed;
}
/* A special token that was found in the text. */
typedef struct tok_found { int64_t at, end; int32_t id; } tok_found;
typedef struct tok_founds { tok_found *at; int64_t count, cap; } tok_founds;

static int tok_compare_found(const void *a, const void *b) {
    const int64_t x = ((const tok_found *)a)->at, y = ((const tok_found *)b)->at;
    return x < y ? -1 : x > y;
}
/* phi-3 drops white space behind special tokens, but not behind these. */
static bool tok_keeps_space(const char *text) {
    return strcmp(text, "<unk>") == 0 || strcmp(text, "<s>") == 0 || strcmp(text, "<|endoftext|>") == 0;
}
static int tok_compare_ids(const void *a, const void *b) {
    const int32_t x = ((const tok_found *)a)->id, y = ((const tok_found *)b)->id;
    return x < y ? -1 : x > y ? 1 : tok_compare_found(a, b);
}
/* Finds the special tokens of `length` bytes in the text, the first token of the vocabulary first.  taken: for each byte
   of the text, whether a token was found there. */
static int tok_find_length(const tok_vocabulary *v, const char *text, int64_t bytes, int64_t length, bool control,
                           char *taken, tok_founds *found) {
    const int64_t before = found->count;
    for (int64_t at = 0; at + length <= bytes; at++) {
        if (!v->special_first[(unsigned char)text[at]] || taken[at] || taken[at + length - 1]) { continue; }
        const int32_t id = tok_find(v, text + at, length);
        if (id < 0 || !(v->types[id] == TOK_USER_DEFINED || (control && tok_is_special(v, id)))) { continue; }
        if (TOK_ROOM(found, 1) != 0) { return -1; }
        found->at[found->count].at = at;
        found->at[found->count++].id = id;
    }
    const int64_t all = found->count;
    found->count = before;
    if (all > before) { qsort(found->at + before, (size_t)(all - before), sizeof *found->at, tok_compare_ids); }
    for (int64_t i = before; i < all; i++) {
        tok_found f = found->at[i];
        if (memchr(taken + f.at, 1, (size_t)length)) { continue; }
        f.end = f.at + length;
        while (v->drops_space && !tok_keeps_space(tok_string_of(v, f.id)) && f.end < bytes && !taken[f.end] &&
               (unsigned char)text[f.end] < 128 && tok_is_space((unsigned char)text[f.end])) { f.end++; }
        memset(taken + f.at, 1, (size_t)(f.end - f.at));
        found->at[found->count++] = f;
    }
    return 0;
}
/* Finds the special tokens in the text, longest first.  control: also control and unknown tokens, not only those that
   the user has defined. */
static int tok_find_special(const tok_vocabulary *v, const char *text, int64_t bytes, bool control, tok_founds *found) {
    if (!v->special_lengths[0] || bytes == 0) { return 0; }
    char *taken = (char *)calloc((size_t)bytes, 1);
    if (!taken) { return opd_fail(OPD_ERROR_MEMORY, "tokeniser: no memory for the text"); }
    int failed = 0;
    for (int i = 0; v->special_lengths[i] && !failed; i++) {
        failed = tok_find_length(v, text, bytes, v->special_lengths[i], control, taken, found);
    }
    free(taken);
    if (found->count) { qsort(found->at, (size_t)found->count, sizeof *found->at, tok_compare_found); }
    return failed;
}
/* Finds those special tokens in text [from, to) that are searched late, or all others: from left to right, the longest
   at each place.  Control tokens that are not asked for stay text, as a whole.  Takes the white space that tokens
   want. */
static int tok_find_within(const tok_vocabulary *v, const char *text, int64_t from, int64_t to, bool late, bool control,
                           tok_founds *found) {
    for (int64_t at = from, last = from; at < to; ) {
        int32_t id = -1;
        for (int i = 0; v->special_first[(unsigned char)text[at]] && v->special_lengths[i] && id < 0; i++) {
            if (v->special_lengths[i] <= to - at) { id = tok_find(v, text + at, v->special_lengths[i]); }
            if (id >= 0 && (!tok_is_special(v, id) || late != !!(v->flags[id] & TOK_LATE))) { id = -1; }
        }
        if (id < 0) { at++; continue; }
        if (v->types[id] != TOK_USER_DEFINED && !control) { at += v->strings[id].bytes; continue; }
        if (TOK_ROOM(found, 1) != 0) { return -1; }
        tok_found *f = &found->at[found->count++];
        uint32_t c;
        const bool marked = late && v->late_marks;
        f->id = id;
        f->at = at;
        f->end = at += v->strings[id].bytes;
        for (int64_t back = f->at; (v->flags[id] & TOK_BEFORE) && back > last; ) {
            do { back--; } while (back > last && (text[back] & 0xc0) == 0x80);
            if (tok_character(text + back, f->at - back, &c) != f->at - back || !tok_is_space(c)) { break; }
            if (marked && c == ' ') { break; }
            f->at = back;
        }
        while ((v->flags[id] & TOK_AFTER) && f->end < to) {
            const int length = tok_character(text + f->end, to - f->end, &c);
            if (!tok_is_space(c) || (marked && c == ' ')) { break; }
            f->end += length;
        }
        /* the next token may begin before `last`, in the white space that this one took */
        if ((v->flags[id] & TOK_BEFORE) && last >= f->end) { found->count--; }
        last = f->end;
    }
    return 0;
}
/* Finds the special tokens in a text as tokenizers does: first those whose 'normalized' is false, then the others in
   the text between them. */
static int tok_find_leftmost(const tok_vocabulary *v, const char *text, int64_t bytes, bool control,
                             tok_founds *found) {
    if (control && v->late_control) {
        return opd_fail(OPD_ERROR_FILE, "tokeniser: the names of special tokens cannot be used in texts, because the "
                        "vocabulary has some with 'normalized' beside the normalizer Prepend or Replace");
    }
    int failed = tok_find_within(v, text, 0, bytes, false, control, found);
    const int64_t first = found->count;
    for (int64_t i = 0, at = 0; i <= first && !failed; i++) {
        const int64_t end = i < first ? found->at[i].at : bytes, next = i < first ? found->at[i].end : bytes;
        failed = tok_find_within(v, text, at, end, true, control, found);
        at = next;
    }
    if (found->count) { qsort(found->at, (size_t)found->count, sizeof *found->at, tok_compare_found); }
    return failed;
}
/* Appends the tokens of a text to ids.  add: also the tokens for begin and end, if the model wants them.  control: the
   names of control tokens in the text (<|im_start|>) become these tokens.  Returns 0, or -1 with an error. */
static int tok_encode(const tok_vocabulary *v, const char *text, int64_t bytes, bool add, bool control, tok_ids *ids) {
    tok_work work;
    tok_founds found = {NULL, 0, 0};
    int64_t at = 0;
    bool special = true;
    memset(&work, 0, sizeof work);
    int failed = add && v->add_bos ? tok_push(ids, v->bos) : 0;
    if (!failed) { failed = (v->leftmost ? tok_find_leftmost : tok_find_special)(v, text, bytes, control, &found); }
    for (int64_t i = 0; i <= found.count && !failed; i++) {
        const int64_t end = i < found.count ? found.at[i].at : bytes;
        if (end > at) { failed = tok_encode_piece(v, &work, text + at, end - at, special, ids); special = false; }
        if (i == found.count || failed) { break; }
        failed = tok_push(ids, found.at[i].id);
        special = !v->space_first;
        at = found.at[i].end;
    }
    if (!failed && add && v->add_eos) { failed = tok_push(ids, v->eos); }
    free(work.symbol); free(work.heap); free(work.characters); free(work.ends); free(work.other_ends); free(found.at);
    return failed;
}

//-- tokens to text ----------------------------------------------------------------------------------------------------

/* Appends the bytes of one token to out, which may be a part of a character. */
static int tok_piece(const tok_vocabulary *v, int32_t id, tok_text *out) {
    if (id < 0 || id >= v->count) {
        return opd_fail(OPD_ERROR_INDEX, "tokeniser: there is no token %d in a vocabulary of %d", (int)id,
                        (int)v->count);
    }
    const char *text = tok_string_of(v, id);
    const int64_t bytes = v->strings[id].bytes;
    if (tok_is_special(v, id)) { return tok_append(out, text, bytes); }
    if (v->types[id] == TOK_UNUSED && !v->leftmost) { return 0; }             /* as in llama.cpp */
    const int byte = v->types[id] == TOK_BYTE ? tok_byte_of(text, bytes) : -1;
    if (byte >= 0) {
        const char c = (char)byte;
        return tok_append(out, &c, 1);
    }
    for (int64_t at = 0; at < bytes; ) {
        uint32_t c;
        const int length = tok_character(text + at, bytes - at, &c);
        const int value = v->bpe ? tok_character_byte(c) : c == 0x2581 ? ' ' : -1;
        const char one = (char)value;
        if ((value >= 0 ? tok_append(out, &one, 1) : tok_append(out, text + at, length)) != 0) { return -1; }
        at += length;
    }
    return 0;
}
/* Removes spaces that a tokeniser of words would not have written, in the three passes of llama.cpp. */
static int64_t tok_clean(char *text, int64_t bytes) {
    int64_t n = bytes ? 1 : 0;
    for (int64_t i = 1; i < bytes; i++) {                  /* " ," */
        if (text[i - 1] == ' ' && text[i] && strchr("?!.,", text[i])) { n--; }
        text[n++] = text[i];
    }
    bytes = n;
    n = bytes ? 1 : 0;
    for (int64_t i = 1; i < bytes; i++) {                  /* " ' " */
        const char c = text[i];
        if (c == '\'' && i + 1 < bytes && text[i - 1] == ' ' && text[i + 1] == ' ') { n--; text[++i] = 0; }
        text[n++] = c;
    }
    bytes = n;
    n = bytes ? 1 : 0;
    for (int64_t i = 1; i < bytes; i++) {                  /* " 's", " 'm", " 're", " 've" */
        if (text[i - 1] == ' ' && text[i] == '\'' && i + 1 < bytes) {
            const bool three = i + 2 < bytes && text[i + 2] == 'e' && (text[i + 1] == 'r' || text[i + 1] == 'v');
            if (text[i + 1] == 's' || text[i + 1] == 'm' || three) { n--; }
        }
        text[n++] = text[i];
    }
    return n;
}
/* Appends the text of tokens to out.  The space that the model puts in front of a text is left out. */
static int tok_decode(const tok_vocabulary *v, const int32_t *ids, int64_t count, tok_text *out) {
    const int64_t begin = out->count;
    for (int64_t i = 0; i < count; i++) {
        if (tok_piece(v, ids[i], out) != 0) { return -1; }
    }
    if (v->space_before && !(v->bpe && v->leftmost) && out->count > begin && out->at[begin] == ' ') {
        memmove(out->at + begin, out->at + begin + 1, (size_t)(out->count - begin - 1));
        out->count--;
    }
    if (v->cleans && out->count > begin) { out->count = begin + tok_clean(out->at + begin, out->count - begin); }
    return 0;
}

//-- the vocabulary of a GGUF file -------------------------------------------------------------------------------------

/* Reads an element of the metadata that is an integer.  Returns `otherwise` if the key is missing.  Sets an error if it
   is no integer between low and high. */
static int64_t tok_number(const opd_tensor_file *file, const char *key, int64_t i, int64_t low, int64_t high,
                          int64_t otherwise) {
    double number;
    if (!opd_tensor_file_metadata_type(file, key)) { return otherwise; }
    if (opd_tensor_file_metadata_number(file, key, i, &number) != 0) { return otherwise; }
    if (!(number >= (double)low && number <= (double)high) || number != (double)(int64_t)number) {
        (void)opd_fail(OPD_ERROR_FILE, "%s is %g, which is no integer from %lld to %lld", key, number, (long long)low,
                       (long long)high);
        return otherwise;
    }
    return (int64_t)number;
}
#define TOK_KEY "tokenizer.ggml."

static int tok_read_tokens(tok_vocabulary *v, const opd_tensor_file *file) {
    const int64_t n = opd_tensor_file_metadata_count(file, TOK_KEY "tokens");
    const int64_t scores = opd_tensor_file_metadata_count(file, TOK_KEY "scores");
    const int64_t types = opd_tensor_file_metadata_count(file, TOK_KEY "token_type");
    const int64_t merges = opd_tensor_file_metadata_count(file, TOK_KEY "merges");
    size_t bytes;
    if (n < 1) { return opd_fail(OPD_ERROR_FILE, TOK_KEY "tokens is missing, empty or not a list"); }
    if ((scores >= 0 && scores < n) || (types >= 0 && types < n)) {
        return opd_fail(OPD_ERROR_FILE, TOK_KEY "tokens has %lld elements, but scores has %lld, token_type %lld",
                        (long long)n, (long long)scores, (long long)types);
    }
    if (!v->bpe && scores < 0) { return opd_fail(OPD_ERROR_FILE, TOK_KEY "scores is missing"); }
    for (int64_t i = 0; i < n; i++) {
        double score = 0;
        const char *text = opd_tensor_file_metadata_text(file, TOK_KEY "tokens", i, &bytes);
        if (!text || (scores >= 0 && opd_tensor_file_metadata_number(file, TOK_KEY "scores", i, &score) != 0)) {
            return -1;
        }
        const int64_t type = tok_number(file, TOK_KEY "token_type", i, INT32_MIN, INT32_MAX, TOK_NORMAL);
        if (!opd_ok() || tok_add(v, text, (int64_t)bytes, (float)score, (int)type) != 0) { return -1; }
    }
    if (v->bpe && merges < 0) { return opd_fail(OPD_ERROR_FILE, TOK_KEY "merges is missing or not a list"); }
    for (int64_t i = 0; i < merges && v->bpe; i++) {
        const char *text = opd_tensor_file_metadata_text(file, TOK_KEY "merges", i, &bytes);
        if (!text || tok_add_merge(v, text, (int64_t)bytes) != 0) { return -1; }
    }
    return 0;
}
/* Reads the vocabulary of a GGUF file.  The caller frees it with tok_free.  Returns NULL with an error. */
static tok_vocabulary *tok_open(const opd_tensor_file *file) {
    const char *model = opd_tensor_file_metadata(file, TOK_KEY "model"),
               *name = opd_tensor_file_metadata(file, "general.name"),
               *pre = opd_tensor_file_metadata(file, TOK_KEY "pre");
    if (!model) { (void)opd_fail(OPD_ERROR_FILE, TOK_KEY "model is missing: the file has no vocabulary"); return NULL; }
    tok_vocabulary *v = tok_new(model, pre && *pre ? pre : NULL);             /* llama.cpp: "" is the default, too */
    if (!v || tok_read_tokens(v, file) != 0) { tok_free(v); return NULL; }
    v->bos = (int32_t)tok_number(file, TOK_KEY "bos_token_id", 0, 0, v->count - 1, v->bos < v->count ? v->bos : -1);
    v->eos = (int32_t)tok_number(file, TOK_KEY "eos_token_id", 0, 0, v->count - 1, v->eos < v->count ? v->eos : -1);
    v->unknown = (int32_t)tok_number(file, TOK_KEY "unknown_token_id", 0, 0, v->count - 1, v->unknown);
    v->add_bos = tok_number(file, TOK_KEY "add_bos_token", 0, 0, 1, v->add_bos);
    v->add_eos = tok_number(file, TOK_KEY "add_eos_token", 0, 0, 1, v->add_eos);
    v->space_before = tok_number(file, TOK_KEY "add_space_prefix", 0, 0, 1, v->space_before);
    v->drops_space = name && (strstr(name, "phi-3") || strstr(name, "phi3") || strstr(name, "Phi-3"));
    if (!opd_ok() || tok_finish(v) != 0) { tok_free(v); return NULL; }
    return v;
}

//-- results of llama.cpp ----------------------------------------------------------------------------------------------

static bool tok_same_ids(const opd_json *json, int64_t list, const tok_ids *ids) {
    int64_t i = 0;
    for (int64_t at = opd_json_first(json, list); at >= 0; at = opd_json_next(json, at), i++) {
        if (i >= ids->count || opd_json_int(json, at, -1) != ids->at[i]) { return false; }
    }
    return i == ids->count;
}
/* Compares with the tokens that llama.cpp makes of texts.  json: a list, or an object with a list `tokens`, of objects
   with text, ids (with BOS, EOS and special tokens), ids_no_special (without both), and detokenised_hex: the bytes that
   the tokens stand for.  Returns the number of texts whose results differ, -1 with an error. */
static int64_t tok_wrong(const tok_vocabulary *v, const opd_json *json) {
    const int64_t list = opd_json_kind_of(json, 0) == OPD_JSON_LIST ? 0 : opd_json_get(json, 0, "tokens");
    int64_t wrong = 0;
    tok_ids ids = {NULL, 0, 0};
    tok_text out = {NULL, 0, 0};
    if (opd_json_kind_of(json, list) != OPD_JSON_LIST || opd_json_count(json, list) < 1) {
        return opd_fail(OPD_ERROR_FILE, "the JSON file with llama.cpp's results has no list of tokens");
    }
    for (int64_t row = opd_json_first(json, list); row >= 0 && opd_ok(); row = opd_json_next(json, row)) {
        const char *text = opd_json_text(json, opd_json_get(json, row, "text"), "");
        const char *hex = opd_json_text(json, opd_json_get(json, row, "detokenised_hex"), "");
        const int64_t bytes = (int64_t)strlen(text);
        ids.count = out.count = 0;
        bool same = tok_encode(v, text, bytes, true, true, &ids) == 0;
        same = same && opd_json_get(json, row, "ids") >= 0 && tok_same_ids(json, opd_json_get(json, row, "ids"), &ids);
        ids.count = 0;
        same = same && tok_encode(v, text, bytes, false, false, &ids) == 0;
        same = same && tok_same_ids(json, opd_json_get(json, row, "ids_no_special"), &ids);
        ids.count = 0;
        same = same && tok_encode(v, text, bytes, false, true, &ids) == 0;
        same = same && tok_decode(v, ids.at, ids.count, &out) == 0 && strlen(hex) == 2 * (size_t)out.count;
        for (int64_t i = 0; same && i < out.count; i++) {
            same = 16 * tok_hex(hex[2 * i]) + tok_hex(hex[2 * i + 1]) == (unsigned char)out.at[i];
        }
        wrong += !same;
    }
    free(ids.at);
    free(out.at);
    return opd_ok() ? wrong : -1;
}
