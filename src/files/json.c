#include "files.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>json         texts in JSON, read in one pass and walked without a tree
//
//  The text is copied once, and its strings are decoded in place, each with a zero at its end.  For each value only two
//  numbers are kept: the position where the value begins, and the number of the next value that is not a part of it.
//  This section depends on bytes and errors only.
//----------------------------------------------------------------------------------------------------------------------

#define OPDI_JSON_FEW 16            /* the members of an object with more members are sorted */

/* Returns the length of the UTF-8 character at `at`, or 0 if it is not valid. */
OPDI_INTERNAL size_t opdi_utf8(const unsigned char *at, size_t length) {
    const size_t len = *at < 0x80 ? 1 : *at >= 0xc2 && *at < 0xe0 ? 2 : (*at & 0xf0) == 0xe0 ? 3 : *at >= 0xf0 &&
        *at < 0xf5 ? 4 : 0;
    if (len > length) { return 0; }
    for (size_t i = 1; i < len; i++) { if ((at[i] & 0xc0) != 0x80) { return 0; } }
    if ((*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] > 0x9f) || (*at == 0xf0 && at[1] < 0x90) ||
        (*at == 0xf4 && at[1] > 0x8f)) { return 0; }
    return len;
}
/* Reads the four hexadecimal digits after \u and returns their value.  On failure, returns -1 and sets an error. */
static int opdi_json_hex(opdi_scanner *scanner) {
    int value = 0;
    for (int i = 0; i < 4; i++, scanner->at++) {
        const int ch = scanner->at < scanner->end ? scanner->source->data[scanner->at] : 0;
        const int digit = ch >= '0' && ch <= '9' ? ch - '0'
            : (ch | 32) >= 'a' && (ch | 32) <= 'f' ? (ch | 32) - 'a' + 10 : -1;
        if (digit < 0) { return opdi_bad(scanner->source, scanner->at, "expected four hexadecimal digits after \\u"); }
        value = value * 16 + digit;
    }
    return value;
}
/* Reads an escape after a backslash, and writes the character to out as UTF-8.  Returns the length of that character,
   or 0 and sets an error. */
OPDI_INTERNAL size_t opdi_json_escape(opdi_scanner *scanner, char *out) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const size_t begin = scanner->at - 1;
    const int ch = scanner->at < scanner->end ? scanner->source->data[scanner->at++] : 0;
    const char *at = ch ? strchr(from, ch) : NULL;
    int value, low;
    if (at) {
        *out = to[at - from];
        return 1;
    }
    if (ch != 'u') {
        (void)opdi_bad(scanner->source, begin, "the string contains an escape that JSON does not have");
        return 0;
    }
    if ((value = opdi_json_hex(scanner)) < 0) { return 0; }
    if (value >= 0xd800 && value < 0xdc00 && scanner->end - scanner->at > 1 &&
        scanner->source->data[scanner->at] == '\\' && scanner->source->data[scanner->at + 1] == 'u') {
        scanner->at += 2;
        if ((low = opdi_json_hex(scanner)) < 0) { return 0; }
        value = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((value - 0xd800) << 10) + (low - 0xdc00) : 0xd800;
    }
    if (value == 0 || (value >= 0xd800 && value < 0xe000)) {
        (void)opdi_bad(scanner->source, begin, value ? "the string contains half a surrogate pair"
                       : "the name or string contains a zero byte");
        return 0;
    }
    if (value < 0x80) {
        out[0] = (char)value;
        return 1;
    }
    if (value < 0x800) {
        out[0] = (char)(0xc0 | value >> 6);
        out[1] = (char)(0x80 | (value & 63));
        return 2;
    }
    out[0] = (char)(value < 0x10000 ? 0xe0 | value >> 12 : 0xf0 | value >> 18);
    out[1] = (char)(0x80 | (value < 0x10000 ? value >> 6 & 63 : value >> 12 & 63));
    out[2] = (char)(0x80 | (value < 0x10000 ? value & 63 : value >> 6 & 63));
    out[3] = (char)(0x80 | (value & 63));
    return value < 0x10000 ? 3 : 4;
}
/* Reads the separator after a member of a list or object, which ends with `end` (']' or '}').  Returns 1 if another
   member follows, 0 at the end, or -1 and sets an error. */
OPDI_INTERNAL int opdi_json_more(opdi_scanner *scanner, char end) {
    if (opdi_scanner_has(scanner, ',')) { return 1; }
    if (opdi_scanner_has(scanner, end)) { return 0; }
    return opdi_scanner_error(scanner, end == '}' ? "',' or '}'" : "',' or ']'");
}

//== the pass over the text ============================================================================================

#define OPDI_JSON_LAST 0x80000000u                /* in `next`: the last member of its list or object */
#define OPDI_JSON_MEMBER 0x40000000u              /* in `next`: a member of an object; its key is the entry before */
#define OPDI_JSON_NEXT 0x3fffffffu                /* in `next`: the bits of the number */
OPDI_INTERNAL opdi_json_entry *opdi_json_entry_at(const opd_json *json, int64_t value) {
    return (opdi_json_entry *)(void *)json->entries.data + value;
}
/* Adds an entry for a value or key that begins at position `at`.  Returns its number, or -1 if memory runs out. */
static int64_t opdi_json_add(opd_json *json, size_t at) {
    const opdi_json_entry entry = {(uint32_t)at, 0};
    if (opdi_node_denied()) { return -1; }
    opdi_string_add_n(&json->entries, (const char *)(const void *)&entry, sizeof entry);
    return json->entries.failed ? -1 : json->count++;
}
/* Returns true if the next eight bytes are all ASCII, and no byte is ", \ or a control character. */
static bool opdi_json_plain(const unsigned char *at) {
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t bytes;
    memcpy(&bytes, at, 8);
    const uint64_t quotes = bytes ^ 0x22 * ones, slashes = bytes ^ 0x5c * ones;
    return ((bytes | (bytes - 0x20 * ones) | (quotes - ones) | (slashes - ones)) & 0x80 * ones) == 0;
}
/* Reads a string from the '"' on, and decodes it in json's copy of the text.  Returns 0, or -1 and sets an error. */
static int opdi_json_decode(opd_json *json, opdi_scanner *scanner) {
    const unsigned char *const data = scanner->source->data;
    char *to = json->text.data + scanner->at + 1;
    if (opdi_scanner_take(scanner, '"')) { return -1; }
    for (;;) {
        while (scanner->end - scanner->at >= 8 && opdi_json_plain(data + scanner->at)) {
            memmove(to, data + scanner->at, 8);
            to += 8;
            scanner->at += 8;
        }
        if (scanner->at == scanner->end) {
            return opdi_bad(scanner->source, scanner->at, "the text ends within a string");
        }
        const unsigned char *here = data + scanner->at;
        if (*here == '"') { break; }
        if (*here == '\\') {
            char out[4];
            const size_t begin = scanner->at++, made = opdi_json_escape(scanner, out);
            if (!made) {
                scanner->at = begin;
                return -1;
            }
            memcpy(to, out, made);
            to += made;
            continue;
        }
        const size_t count = *here < 32 ? 0 : opdi_utf8(here, scanner->end - scanner->at);
        if (!count) {
            return opdi_bad(scanner->source, scanner->at,
                            *here < 32 ? "the string contains a control character" : "the string is not UTF-8");
        }
        memcpy(to, here, count);
        to += count;
        scanner->at += count;
    }
    memset(to, 0, (size_t)(json->text.data + scanner->at - to) + 1);
    scanner->at++;
    return 0;
}
/* Skips digits.  Returns the number of skipped digits. */
static size_t opdi_json_digits(opdi_scanner *scanner) {
    const size_t begin = scanner->at;
    while (scanner->at < scanner->end && scanner->source->data[scanner->at] >= '0' &&
           scanner->source->data[scanner->at] <= '9') {
        scanner->at++;
    }
    return scanner->at - begin;
}
/* Checks and skips a number such as -12.5e+3.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_json_number(opdi_scanner *scanner) {
    const unsigned char *const data = scanner->source->data;
    const size_t begin = scanner->at;
    scanner->at += data[scanner->at] == '-';
    const bool zero = scanner->at < scanner->end && data[scanner->at] == '0';
    size_t digits = opdi_json_digits(scanner);
    if (!digits) {
        scanner->at = begin;
        return opdi_scanner_error(scanner, "a value");
    }
    if (zero && digits > 1) { return opdi_bad(scanner->source, begin, "the number begins with 0"); }
    if (scanner->at < scanner->end && data[scanner->at] == '.') {
        scanner->at++;
        digits = opdi_json_digits(scanner);
    }
    if (digits && scanner->at < scanner->end && (data[scanner->at] | 32) == 'e') {
        scanner->at++;
        if (scanner->at < scanner->end && (data[scanner->at] == '+' || data[scanner->at] == '-')) { scanner->at++; }
        digits = opdi_json_digits(scanner);
    }
    if (!digits) { return opdi_bad(scanner->source, scanner->at, "expected a digit"); }
    return scanner->at - begin > 480 ? opdi_bad(scanner->source, begin, "the number has more than 480 characters") : 0;
}
/* Skips NaN, Infinity or -Infinity, which Python writes but JSON does not allow.  Returns false if the text has none of
   them here. */
static bool opdi_json_python(opdi_scanner *scanner) {
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    for (int i = 0; i < 3; i++) {
        if (scanner->source->data[scanner->at] != (unsigned char)*words[i]) { continue; }
        const size_t length = strlen(words[i]);
        if (scanner->end - scanner->at < length || memcmp(scanner->source->data + scanner->at, words[i], length) != 0) {
            continue;
        }
        scanner->at += length;
        return true;
    }
    return false;
}
static int opdi_json_by_key(const void *first, const void *second) {
    const opdi_json_member *const member = (const opdi_json_member *)first, *other = (const opdi_json_member *)second;
    const int order = strcmp(member->key, other->key);
    return order ? order : (member->value > other->value) - (member->value < other->value);
}
static int opdi_json_by_object(const void *first, const void *second) {
    const int64_t object = ((const opdi_json_object *)first)->object;
    const int64_t other = ((const opdi_json_object *)second)->object;
    return (object > other) - (object < other);
}
/* Sorts the members of an object of `count` members by their keys, if the object is large.  Returns 0, or -1 if memory
   runs out. */
static int opdi_json_sort(opd_json *json, int64_t object, size_t count) {
    opdi_json_object large;
    large.object = object;
    large.first = json->members.length / sizeof(opdi_json_member);
    large.count = count;
    if (count <= OPDI_JSON_FEW) { return 0; }
    for (int64_t i = opd_json_first(json, object); i >= 0; i = opd_json_next(json, i)) {
        opdi_json_member member;
        member.key = opd_json_key(json, i);
        member.value = i;
        opdi_string_add_n(&json->members, (const char *)(const void *)&member, sizeof member);
    }
    opdi_string_add_n(&json->objects, (const char *)(const void *)&large, sizeof large);
    if (json->members.failed || json->objects.failed) { return -1; }
    qsort((opdi_json_member *)(void *)json->members.data + large.first, count, sizeof(opdi_json_member),
          opdi_json_by_key);
    return 0;
}
static int opdi_json_members(opd_json *json, opdi_scanner *scanner, char end, int depth, int64_t *count);
/* Reads a value inside of `depth` lists and objects, with all its members.  Returns 0, or -1 and sets an error. */
static int opdi_json_value(opd_json *json, opdi_scanner *scanner, int depth) {
    const int first = opdi_scanner_peek(scanner);
    const int64_t value = opdi_json_add(json, scanner->at);
    int64_t count = 0;
    int rc = 0;
    if (value < 0) { return -1; }
    if (depth > opdi_depth_most(OPDI_JSON_DEPTH)) {
        return opdi_bad(scanner->source, scanner->at, "lists and objects are nested more than %d deep",
                        opdi_depth_most(OPDI_JSON_DEPTH));
    }
    switch (first) {
    case '{': rc = opdi_json_members(json, scanner, '}', depth + 1, &count); break;
    case '[': rc = opdi_json_members(json, scanner, ']', depth + 1, &count); break;
    case '"': rc = opdi_json_decode(json, scanner); break;
    case 't': rc = opdi_scanner_word(scanner, "true") ? 0 : opdi_scanner_error(scanner, "a value"); break;
    case 'f': rc = opdi_scanner_word(scanner, "false") ? 0 : opdi_scanner_error(scanner, "a value"); break;
    case 'n': rc = opdi_scanner_word(scanner, "null") ? 0 : opdi_scanner_error(scanner, "a value"); break;
    case -1: rc = opdi_scanner_error(scanner, "a value"); break;
    default: rc = opdi_json_python(scanner) ? 0 : opdi_json_number(scanner); break;
    }
    opdi_json_entry_at(json, value)->next = (uint32_t)json->count;
    return rc == 0 && first == '{' ? opdi_json_sort(json, value, (size_t)count) : rc;
}
/* Reads the members of a list or object from its bracket on up to the bracket `end`, and sets *count to their number.
   Returns 0, or -1 and sets an error. */
static int opdi_json_members(opd_json *json, opdi_scanner *scanner, char end, int depth, int64_t *count) {
    scanner->at++;
    for (int more = !opdi_scanner_has(scanner, end); more;) {
        if (end == '}') {
            if (opdi_scanner_peek(scanner) != '"') { return opdi_scanner_error(scanner, "a name in quotes"); }
            if (opdi_json_add(json, scanner->at) < 0 || opdi_json_decode(json, scanner) ||
                opdi_scanner_take(scanner, ':')) {
                return -1;
            }
        }
        const int64_t value = json->count;
        if (opdi_json_value(json, scanner, depth) || (more = opdi_json_more(scanner, end)) < 0) { return -1; }
        ++*count;
        opdi_json_entry *entry = opdi_json_entry_at(json, value);
        entry->next |= (end == '}' ? OPDI_JSON_MEMBER : 0) | (more ? 0 : OPDI_JSON_LAST);
    }
    return 0;
}
/* Computes the line of position `at` in data, and the column in that line (in bytes), both counted from 1. */
static void opdi_json_count_place(const unsigned char *data, size_t at, int64_t *line, int64_t *column) {
    *line = *column = 1;
    for (size_t i = 0; i < at; i++) {
        *column = data[i] == '\n' ? 1 : *column + 1;
        *line += data[i] == '\n';
    }
}
/* Reads the JSON text in `source`.  On failure, returns NULL and sets an error that names the line and column. */
OPDI_INTERNAL opd_json *opdi_json_read(const opdi_source *source) {
    opdi_scanner scanner;
    scanner.source = source;
    scanner.at = 0;
    scanner.end = source->length;
    if (source->length >= OPDI_JSON_NEXT) {
        (void)opdi_bad(source, OPDI_NOWHERE, "the JSON text has more than a gigabyte");
        return NULL;
    }
    opd_json *json = (opd_json *)opdi_alloc(sizeof *json);
    if (!json) { return NULL; }
    memset(json, 0, sizeof *json);
    opdi_string_add_n(&json->text, (const char *)source->data, source->length);
    /* usually enough entries; the system provides memory only for the pages that are used */
    json->entries.data = (char *)opdi_alloc(source->length + 64);
    json->entries.cap = json->entries.data ? source->length + 64 : 0;
    int rc = json->text.failed || !json->entries.data ? -1 : opdi_json_value(json, &scanner, 0);
    if (rc == 0 && opdi_scanner_peek(&scanner) >= 0) { rc = opdi_scanner_error(&scanner, "the end of the text"); }
    if (rc == 0 && json->objects.length) {
        qsort(json->objects.data, json->objects.length / sizeof(opdi_json_object), sizeof(opdi_json_object),
              opdi_json_by_object);
    }
    if (rc == 0) { return json; }
    if (opd_error_code() == OPD_ERROR_FILE) {
        int64_t line, column;
        opdi_json_count_place(source->data, scanner.at, &line, &column);
        (void)opdi_fail_more(" [line %lld, column %lld]", (long long)line, (long long)column);
    }
    opd_json_free(json);
    return NULL;
}
opd_json *opd_json_parse(const char *text, size_t size) {
    opdi_source source = {"opd_json_parse", "memory", /* entry, data, length */ NULL, NULL, 0};
    source.data = (const unsigned char *)(text ? text : "");
    source.length = text ? size : 0;
    return opd_ok() ? opdi_json_read(&source) : NULL;
}
opd_json *opd_json_load(const char *path) {
    opdi_source source;
    opdi_file_buffer *buffer = opdi_file_buffer_open(&source, "opd_json_load", path, NULL);
    if (!buffer) { return NULL; }
    if (!source.data) { source.data = (const unsigned char *)""; }
    opd_json *json = opdi_json_read(&source);
    opdi_file_buffer_drop(buffer);
    return json;
}
void opd_json_free(opd_json *json) {
    if (!json) { return; }
    opdi_string_free(&json->text);
    opdi_string_free(&json->entries);
    opdi_string_free(&json->members);
    opdi_string_free(&json->objects);
    opdi_free(json, sizeof *json);
}

//== access to values ==================================================================================================

/* Returns the first character of a value, or 0 if there is no such value. */
static char opdi_json_first_char(const opd_json *json, int64_t value) {
    return json && value >= 0 && value < json->count ? json->text.data[opdi_json_entry_at(json, value)->at] : 0;
}
/* Returns the length of a number in the text, and sets *integral to true if it is written as an integer. */
static int opdi_json_span(const char *text, bool *integral) {
    const size_t length = strspn(text, "0123456789+-.eE");
    *integral = strspn(text, "0123456789-") == length;
    return (int)length;
}
/* Sets *value to an integer in the text.  Returns false if the text is not an integer or does not fit an int64_t. */
static bool opdi_json_integer(const char *text, int64_t *value) {
    const bool negative = *text == '-';
    const uint64_t limit = (uint64_t)INT64_MAX + negative;
    uint64_t bits = 0;
    bool integral;
    const int length = opdi_json_span(text, &integral);
    if (length == negative) { return false; }     /* no digits, as in -Infinity */
    for (int i = negative; integral && i < length; i++) {
        const uint64_t digit = (uint64_t)(text[i] - '0');
        integral = bits <= (limit - digit) / 10;
        bits = 10 * bits + digit;
    }
    if (integral) { *value = negative ? -(int64_t)(bits / 2) - (int64_t)(bits - bits / 2) : (int64_t)bits; }
    return integral;
}
opd_json_kind opd_json_kind_of(const opd_json *json, int64_t value) {
    int64_t number;
    const char first = opdi_json_first_char(json, value);
    switch (first) {
    case 0: return OPD_JSON_NONE;
    case '{': return OPD_JSON_OBJECT;
    case '[': return OPD_JSON_LIST;
    case '"': return OPD_JSON_TEXT;
    case 't': case 'f': return OPD_JSON_BOOL;
    case 'n': return OPD_JSON_NULL;
    case 'N': case 'I': return OPD_JSON_FLOAT;
    default:
        return opdi_json_integer(json->text.data + opdi_json_entry_at(json, value)->at, &number) ? OPD_JSON_INT
            : OPD_JSON_FLOAT;
    }
}
int64_t opd_json_first(const opd_json *json, int64_t list) {
    const char first = opdi_json_first_char(json, list);
    const bool object = first == '{';
    if ((!object && first != '[') || (opdi_json_entry_at(json, list)->next & OPDI_JSON_NEXT) == list + 1) { return -1; }
    return list + 1 + object;
}
int64_t opd_json_next(const opd_json *json, int64_t value) {
    if (!opdi_json_first_char(json, value)) { return -1; }
    const uint32_t next = opdi_json_entry_at(json, value)->next;
    if (next & OPDI_JSON_LAST || !value) { return -1; }
    return (int64_t)(next & OPDI_JSON_NEXT) + (next & OPDI_JSON_MEMBER ? 1 : 0);
}
const char *opd_json_key(const opd_json *json, int64_t value) {
    if (!opdi_json_first_char(json, value) || !(opdi_json_entry_at(json, value)->next & OPDI_JSON_MEMBER)) {
        return NULL;
    }
    return json->text.data + opdi_json_entry_at(json, value - 1)->at + 1;
}
int64_t opd_json_count(const opd_json *json, int64_t list) {
    int64_t count = 0;
    for (int64_t i = opd_json_first(json, list); i >= 0; i = opd_json_next(json, i)) { count++; }
    return count;
}
int64_t opd_json_get(const opd_json *json, int64_t object, const char *key) {
    int64_t found = -1;
    if (!key || opdi_json_first_char(json, object) != '{') { return -1; }
    const opdi_json_object its = {object, 0, 0}, *large = NULL;
    if (json->objects.length) {
        large = (const opdi_json_object *)bsearch(&its, json->objects.data, json->objects.length / sizeof its,
                                                  sizeof its, opdi_json_by_object);
    }
    if (large) {
        const opdi_json_member *const members = (const opdi_json_member *)(void *)json->members.data + large->first;
        size_t low = 0, high = large->count;      /* members[low - 1] becomes the last member with the key */
        while (low < high) {
            const size_t middle = low + (high - low) / 2;
            if (strcmp(members[middle].key, key) <= 0) { low = middle + 1; } else { high = middle; }
        }
        return low && strcmp(members[low - 1].key, key) == 0 ? members[low - 1].value : -1;
    }
    for (int64_t i = opd_json_first(json, object); i >= 0; i = opd_json_next(json, i)) {
        if (strcmp(opd_json_key(json, i), key) == 0) { found = i; }
    }
    return found;
}
const char *opd_json_text(const opd_json *json, int64_t value, const char *otherwise) {
    return opdi_json_first_char(json, value) == '"' ? json->text.data + opdi_json_entry_at(json, value)->at + 1
        : otherwise;
}
int64_t opd_json_int(const opd_json *json, int64_t value, int64_t otherwise) {
    const char first = opdi_json_first_char(json, value);
    int64_t number;
    return (first == '-' || opdi_is_digit(first)) &&
        opdi_json_integer(json->text.data + opdi_json_entry_at(json, value)->at, &number) ? number : otherwise;
}
double opd_json_double(const opd_json *json, int64_t value, double otherwise) {
    const char first = opdi_json_first_char(json, value);
    bool integral;
    if (first == 'N') { return NAN; }
    if (first != '-' && first != 'I' && !opdi_is_digit(first)) { return otherwise; }
    const char *text = json->text.data + opdi_json_entry_at(json, value)->at;
    const bool negative = first == '-';
    if (text[negative] == 'I') { return negative ? -OPDI_INF : OPDI_INF; }
    const double number = opdi_decimal_any(text + negative, opdi_json_span(text, &integral) - negative);
    return negative ? -number : number;
}
bool opd_json_bool(const opd_json *json, int64_t value, bool otherwise) {
    const char first = opdi_json_first_char(json, value);
    return first == 't' || (first != 'f' && otherwise);
}
void opd_json_place(const opd_json *json, int64_t value, int64_t *line, int64_t *column) {
    int64_t nowhere;
    if (!line) { line = &nowhere; }
    if (!column) { column = &nowhere; }
    *line = *column = 0;
    if (!opdi_json_first_char(json, value)) { return; }
    const size_t end = opdi_json_entry_at(json, value)->at;
    size_t at = 0, begin = 0;
    for (*line = 1; at < end; at++) {
        const char ch = json->text.data[at];
        if (ch == '"') { while (json->text.data[at]) { at++; } }
        *line += ch == '\n';
        begin = ch == '\n' ? at + 1 : begin;
    }
    *column = (int64_t)(end - begin) + 1;
}
