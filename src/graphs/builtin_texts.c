#include "graphs.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>builtin_texts builtin functions of graphs: strings, lists, dicts, tuples, objects
//----------------------------------------------------------------------------------------------------------------------

//== strings ===========================================================================================================

/* Sets the error that a dict has no key `key` (Python's KeyError).  Returns -1. */
OPDI_INTERNAL int opdi_no_key(const opd_value *key) {
    opdi_text_builder out = {NULL, 0, 0, false};
    opdi_value_write(&out, key, 0);
    (void)opd_fail(OPD_ERROR_INDEX, "KeyError: %.300s", out.length ? out.text : "");
    opdi_text_builder_free(&out);
    return -1;
}
OPDI_INTERNAL int opdi_fn_str(opdi_bcall *call) {
    opdi_text_builder out = {NULL, 0, 0, false};
    opdi_value_write(&out, &call->args[0], 0);
    const int rc = out.failed ? -1 : opdi_return_text(call, out.length ? out.text : "", out.length);
    opdi_text_builder_free(&out);
    return rc;
}
/* Runs "{} and {}".format(...).  As in PyTorch, surplus arguments are ignored, and "{0}" is not replaced.  Returns 0,
   or -1 and sets an error. */
OPDI_INTERNAL int opdi_fn_format(opdi_bcall *call) {
    int64_t length, at = 0;
    int used = 1, rc = 0;
    const char *const text = opdi_call_text(call, 0, &length);
    opdi_text_builder out = {NULL, 0, 0, false};
    if (!text) { return -1; }
    while (at < length && rc == 0) {
        const char *next = at + 1 < length ? (const char *)memchr(text + at, '{', (size_t)(length - at - 1)) : NULL;
        while (next && next[1] != '}') {
            next = next + 2 < text + length ? (const char *)memchr(next + 1, '{', (size_t)(text + length - next - 2))
                : NULL;
        }
        opdi_text_builder_add(&out, text + at, next ? next - text - at : length - at);
        if (!next) { break; }
        if (used == call->nargs) {
            rc = opd_fail(OPD_ERROR_ARGUMENT, "Too few arguments for format string: %.200s", text);
        } else { opdi_value_write(&out, &call->args[used++], 0); }
        at = next - text + 2;
    }
    if (rc == 0) { rc = out.failed ? -1 : opdi_return_text(call, out.length ? out.text : "", out.length); }
    opdi_text_builder_free(&out);
    return rc;
}
/* Writes an integer as "%d", "%x", "%X" or "%o" does in Python: a minus sign if the integer is negative, then its
   digits. */
static void opdi_percent_whole(opdi_text_builder *out, char letter, int64_t number) {
    char text[32];
    const unsigned long long size = number < 0 ? 0 - (unsigned long long)number : (unsigned long long)number;
    if (number < 0) { opdi_text_builder_add(out, "-", 1); }
    (void)(letter == 'x' ? snprintf(text, sizeof text, "%llx", size) : letter == 'X'
           ? snprintf(text, sizeof text, "%llX", size) : letter == 'o' ? snprintf(text, sizeof text, "%llo", size)
           : snprintf(text, sizeof text, "%llu", size));
    opdi_text_builder_add_text(out, text);
}
/* Writes a float as "%e", "%f" or "%g" does, or as "%d", which drops the fraction.  All digits are exact, as in Python;
   PyTorch would first convert the number to float32 or int.  Returns 0, or -1 and sets an error. */
static int opdi_percent_real(opdi_text_builder *out, char letter, double x) {
    char text[400];                                                    /* DBL_MAX has 309 digits before the point */
    if (letter == 'd' || letter == 'i') {
        if (!isfinite(x)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%%%c cannot format the float %g: it is not an integer", letter, x);
        }
        x = trunc(x) + 0.0;                                            /* -0.5 becomes 0, not -0 */
    }
    (void)(letter == 'd' || letter == 'i' ? snprintf(text, sizeof text, "%.0f", x)
           : letter == 'e' ? snprintf(text, sizeof text, "%e", x) : letter == 'E' ? snprintf(text, sizeof text, "%E", x)
           : letter == 'g' ? snprintf(text, sizeof text, "%g", x) : letter == 'G' ? snprintf(text, sizeof text, "%G", x)
           : snprintf(text, sizeof text, "%f", x));
    opdi_text_builder_add_text(out, text);
    return 0;
}
/* Writes `value` as "%c" does.  `value` is the number of a byte, or a text of one byte.  Returns 0, or -1 and sets an
   error. */
static int opdi_percent_letter(opdi_text_builder *out, const opd_value *value) {
    int64_t length = 0;
    const char *const text = opdi_value_text(value, &length);
    if (text ? length != 1 : !opdi_whole(value)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%%c requires an int or a string of one letter for formatting, but got %s",
                        text ? length ? "a longer string" : "an empty string" : opdi_value_kind_name(value));
    }
    if (!text && (value->u.i < 0 || value->u.i > 255)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%%c: %lld is not in range(256)", (long long)value->u.i);
    }
    const char byte = text ? *text : (char)(unsigned char)value->u.i;
    opdi_text_builder_add(out, &byte, 1);
    return 0;
}
/* Writes `value` as the conversion `letter` does in "%d %s" % (...).  Conversions that PyTorch refuses (%g, %x, %o and
   %r) write the same text as in Python.  Returns 0, or -1 and sets an error. */
static int opdi_percent(opdi_text_builder *out, char letter, const opd_value *value) {
    const bool whole = opdi_whole(value), real = value->tag == OPD_TAG_FLOAT;
    switch (letter) {
    case 's': opdi_value_write(out, value, 0); return 0;
    case 'c': return opdi_percent_letter(out, value);
    case 'd': case 'i': case 'x': case 'X': case 'o':
        if (whole) {
            opdi_percent_whole(out, letter, value->u.i);
            return 0;
        }
        if (real && (letter == 'd' || letter == 'i')) { return opdi_percent_real(out, letter, value->u.d); }
        break;
    case 'e': case 'E': case 'f': case 'F': case 'g': case 'G':
        if (whole || real) { return opdi_percent_real(out, letter, opdi_real_of(value)); }
        break;
    case 'r':
        if (whole || value->tag == OPD_TAG_NONE) {
            opdi_value_write(out, value, 0);
            return 0;
        }
        return opd_fail(OPD_ERROR_ARGUMENT, "The specifier %%r is for integers, bools and None in TorchScript format "
                        "strings, but got %s; use %%s", opdi_value_kind_name(value));
    default:
        if (letter < ' ' || letter > '~') {
            return opd_fail(OPD_ERROR_ARGUMENT, "The specifier %%\\x%02x is not supported in TorchScript format "
                            "strings", (unsigned)(unsigned char)letter);
        }
        return opd_fail(OPD_ERROR_ARGUMENT, "The specifier %%%c is not supported in TorchScript format strings",
                        letter);
    }
    return opd_fail(OPD_ERROR_ARGUMENT, "%%%c requires %s for formatting, but got %s", letter,
                    letter == 'x' || letter == 'X' || letter == 'o' ? "an integer" : "a number",
                    opdi_value_kind_name(value));
}
OPDI_INTERNAL int opdi_fn_percent(opdi_bcall *call) {
    int64_t length;
    int32_t used = 0;
    int rc = 0;
    const char *const text = opdi_call_text(call, 0, &length);
    const opdi_cell *const tuple = call->nargs == 2 ? opdi_cell_of(&call->args[1]) : NULL;
    const bool spread = tuple && tuple->kind == OPD_CELL_TUPLE;
    const opd_value *const values = spread ? tuple->u.values : call->args + 1;
    const int64_t count = spread ? tuple->count : call->nargs - 1;
    opdi_text_builder out = {NULL, 0, 0, false};
    if (!text) { return -1; }
    for (int64_t at = 0; at < length && rc == 0; at++) {
        if (text[at] != '%') { opdi_text_builder_add(&out, text + at, 1); }
        else if (++at >= length) { rc = opd_fail(OPD_ERROR_ARGUMENT, "Incomplete format specifier"); }
        else if (text[at] == '%') { opdi_text_builder_add(&out, "%", 1); }
        else if (used == count) {
            rc = opd_fail(OPD_ERROR_ARGUMENT, "Too few arguments for format string");
        } else { rc = opdi_percent(&out, text[at], &values[used++]); }
    }
    if (rc == 0 && used < count) { rc = opd_fail(OPD_ERROR_ARGUMENT, "Too many arguments for format string"); }
    if (rc == 0) { rc = out.failed ? -1 : opdi_return_text(call, out.length ? out.text : "", out.length); }
    opdi_text_builder_free(&out);
    return rc;
}

static bool opdi_upper_case(char c) { return c >= 'A' && c <= 'Z'; }
static bool opdi_lower_case(char c) { return c >= 'a' && c <= 'z'; }
static bool opdi_letter(char c) { return opdi_upper_case(c) || opdi_lower_case(c); }
static bool opdi_is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static char opdi_to_upper(char c) { return opdi_lower_case(c) ? (char)(c - 32) : c; }
static char opdi_to_lower(char c) { return opdi_upper_case(c) ? (char)(c + 32) : c; }
OPDI_INTERNAL int opdi_fn_case(opdi_bcall *call) {
    int64_t length;
    const int32_t what = call->builtin->what;
    const char *const text = opdi_call_text(call, 0, &length);
    opdi_cell *cell = text ? opdi_cell_text(text, length) : NULL;
    bool begins = true;
    for (int64_t i = 0; cell && i < length; i++) {
        const char c = text[i];
        cell->u.text[i] = what == OPDI_CASE_UPPER ? opdi_to_upper(c) : what == OPDI_CASE_LOWER ? opdi_to_lower(c)
            : what == OPDI_CASE_SWAP ? opdi_upper_case(c) ? opdi_to_lower(c) : opdi_to_upper(c)
            : (what == OPDI_CASE_TITLE ? begins : i == 0) ? opdi_to_upper(c) : opdi_to_lower(c);
        begins = !opdi_letter(c);
    }
    return opdi_return_cell(call, cell);
}
static bool opdi_text_tests(const char *text, int64_t length, int32_t what) {
    bool all = what == OPDI_TEST_PRINTABLE || length > 0, some = false, letter = false;
    for (int64_t i = 0; i < length && all; i++) {
        const char c = text[i];
        switch (what) {
        case OPDI_TEST_DIGIT: all = opdi_is_digit(c); break;
        case OPDI_TEST_ALNUM: all = opdi_is_digit(c) || opdi_letter(c); break;
        case OPDI_TEST_ALPHA: all = opdi_letter(c); break;
        case OPDI_TEST_SPACE: all = opdi_is_blank(c); break;
        case OPDI_TEST_PRINTABLE: all = c >= ' ' && c <= '~'; break;
        case OPDI_TEST_UPPER: all = !opdi_lower_case(c); break;
        case OPDI_TEST_LOWER: all = !opdi_upper_case(c); break;
        case OPDI_TEST_IDENTIFIER: all = opdi_letter(c) || c == '_' || (i > 0 && opdi_is_digit(c)); break;
        default: all = opdi_letter(c) ? letter ? opdi_lower_case(c) : opdi_upper_case(c) : true; break;
        }
        letter = opdi_letter(c);
        some = some || letter;
    }
    return all && (some || (what != OPDI_TEST_UPPER && what != OPDI_TEST_LOWER && what != OPDI_TEST_TITLE));
}
OPDI_INTERNAL int opdi_fn_text_test(opdi_bcall *call) {
    int64_t length;
    const char *const text = opdi_call_text(call, 0, &length);
    return text ? opdi_return_value(call, opd_value_bool(opdi_text_tests(text, length, call->builtin->what))) : -1;
}

/* Returns the position of `part` in text[from, to): of its first occurrence or, if `last` is true, of its last.
   Returns -1 if there is none. */
static int64_t opdi_text_find(const char *text, int64_t from, int64_t to, const char *part, int64_t length, bool last) {
    for (int64_t k = 0; k <= to - from - length; k++) {
        const int64_t at = last ? to - length - k : from + k;
        if (memcmp(text + at, part, (size_t)length) == 0) { return at; }
    }
    return -1;
}
/* Reads the range of a search in a text of `length` bytes from arguments 2 and 3, as TorchScript does: a negative begin
   counts from the end of the text, and an end of -1 is the end of the text.  Returns false if the range is not
   valid. */
static bool opdi_text_range(const opdi_bcall *call, int64_t length, int64_t *from, int64_t *to) {
    int64_t start = call->nargs > 2 ? opdi_call_int(call, 2) : 0, end = call->nargs > 3 ? opdi_call_int(call, 3) : -1;
    if (end < 0) { end = OPDI_MAX(0, length + end + 1); }
    if (start < 0) { start = OPDI_MAX(0, length + start); }
    *from = start;
    *to = OPDI_MIN(end, length);
    return start <= *to;
}
OPDI_INTERNAL int opdi_fn_find(opdi_bcall *call) {
    int64_t length, count, from, to, at = -1;
    const int32_t what = call->builtin->what;
    const char *const text = opdi_call_text(call, 0, &length);
    const char *const part = text ? opdi_call_text(call, 1, &count) : NULL;
    if (!part) { return -1; }
    const bool inside = opdi_text_range(call, length, &from, &to);
    if (what == OPDI_FIND_COUNT) {
        int64_t times = 0;
        while (inside && (at = opdi_text_find(text, from, to, part, count, false)) >= 0) {
            times++;
            from = at + OPDI_MAX(count, 1);
        }
        return opdi_return_value(call, opd_value_int(times));
    }
    if (what == OPDI_FIND_START || what == OPDI_FIND_END) {
        const bool fits = inside && to - from >= count;
        return opdi_return_value(call,
                                 opd_value_bool(fits &&
                                                memcmp(text + (what == OPDI_FIND_START ? from : to - count), part,
                                                       (size_t)count) == 0));
    }
    if (inside) {
        at = opdi_text_find(text, from, to, part, count, what == OPDI_FIND_LAST || what == OPDI_FIND_RINDEX);
    }
    if (at < 0 && (what == OPDI_FIND_INDEX || what == OPDI_FIND_RINDEX)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "ValueError: substring not found");
    }
    return opdi_return_value(call, opd_value_int(at));
}
OPDI_INTERNAL int opdi_fn_strip(opdi_bcall *call) {
    int64_t length, count, from = 0;
    const char *const text = opdi_call_text(call, 0, &length);
    const char *const chars = text ? opdi_call_text(call, 1, &count) : NULL;
    if (!chars) { return -1; }
    while ((call->builtin->what & OPDI_STRIP_LEFT) && from < length && memchr(chars, text[from], (size_t)count)) {
        from++;
    }
    while ((call->builtin->what & OPDI_STRIP_RIGHT) && length > from &&
           memchr(chars, text[length - 1], (size_t)count)) { length--; }
    return opdi_return_text(call, text + from, length - from);
}
OPDI_INTERNAL int opdi_fn_replace(opdi_bcall *call) {
    int64_t length, old, fresh, at = 0, found, most = opdi_call_int(call, 3);
    const char *const text = opdi_call_text(call, 0, &length);
    const char *const from = text ? opdi_call_text(call, 1, &old) : NULL;
    const char *const to = from ? opdi_call_text(call, 2, &fresh) : NULL;
    opdi_text_builder out = {NULL, 0, 0, false};
    if (!to) { return -1; }
    while (most != 0 && (found = opdi_text_find(text, at, length, from, old, false)) >= 0) {
        opdi_text_builder_add(&out, text + at, found - at);
        opdi_text_builder_add(&out, to, fresh);
        at = found + old;
        most--;
        if (old == 0) {
            if (at == length) { break; }
            opdi_text_builder_add(&out, text + at++, 1);
        }
    }
    opdi_text_builder_add(&out, text + at, length - at);
    const int rc = out.failed ? -1 : opdi_return_text(call, out.text, out.length);
    opdi_text_builder_free(&out);
    return rc;
}
static int opdi_list_add_text(opdi_cell *list, const char *text, int64_t length) {
    opdi_cell *part = opdi_cell_text(text, length);
    const int rc = part ? opdi_cell_insert(list, list->count, opdi_cell_value(part)) : -1;
    if (part) { opdi_cell_drop(part); }
    return rc;
}
/* Splits a text at whitespace, as Python's split() without a separator does, and appends the parts to `list`.  After
   `most` splits, the rest of the text is the last part.  Returns 0, or -1 and sets an error. */
static int opdi_split_blanks(opdi_cell *list, const char *text, int64_t length, int64_t most) {
    int64_t at = 0;
    int rc = 0;
    while (rc == 0) {
        while (at < length && opdi_is_blank(text[at])) { at++; }
        if (at == length) { return 0; }
        const int64_t from = at;
        if (most-- == 0) {
            while (length > from && opdi_is_blank(text[length - 1])) { length--; }
            return opdi_list_add_text(list, text + from, length - from);
        }
        while (at < length && !opdi_is_blank(text[at])) { at++; }
        rc = opdi_list_add_text(list, text + from, at - from);
    }
    return rc;
}
OPDI_INTERNAL int opdi_fn_split(opdi_bcall *call) {
    int64_t length, count, at = 0, found, most = call->nargs > 2 ? opdi_call_int(call, 2) : -1;
    int rc = 0;
    const char *const text = opdi_call_text(call, 0, &length);
    opdi_cell *list = text ? opdi_cell_new(OPD_CELL_LIST, OPD_TAG_LIST, 0) : NULL;
    if (!list) { return -1; }
    if (opdi_call_none(call, 1)) { rc = opdi_split_blanks(list, text, length, most); }
    else {
        const char *const by = opdi_call_text(call, 1, &count);
        rc = by && count ? 0 : opd_fail(OPD_ERROR_ARGUMENT, "ValueError: empty separator");
        while (rc == 0 && most != 0 && (found = opdi_text_find(text, at, length, by, count, false)) >= 0) {
            rc = opdi_list_add_text(list, text + at, found - at);
            at = found + count;
            most--;
        }
        if (rc == 0) { rc = opdi_list_add_text(list, text + at, length - at); }
    }
    if (rc) {
        opdi_cell_drop(list);
        return -1;
    }
    return opdi_return_cell(call, list);
}
OPDI_INTERNAL void opdi_list_reverse(opdi_cell *cell) {
    for (int64_t i = 0, k = cell->count - 1; i < k; i++, k--) {
        const opd_value first = opdi_cell_at(cell, i), last = opdi_cell_at(cell, k);
        opdi_cell_put(cell, i, &last);
        opdi_cell_put(cell, k, &first);
    }
}
OPDI_INTERNAL int opdi_fn_rsplit(opdi_bcall *call) {
    int64_t length, count, found, most = opdi_call_int(call, 2);
    const char *const text = opdi_call_text(call, 0, &length);
    const char *const by = text ? opdi_call_text(call, 1, &count) : NULL;
    opdi_cell *list = by ? opdi_cell_new(OPD_CELL_LIST, OPD_TAG_LIST, 0) : NULL;
    int rc = !list || count == 0 ? list ? opd_fail(OPD_ERROR_ARGUMENT, "ValueError: empty separator") : -1 : 0;
    while (rc == 0 && most != 0 && (found = opdi_text_find(text, 0, length, by, count, true)) >= 0) {
        rc = opdi_list_add_text(list, text + found + count, length - found - count);
        length = found;
        most--;
    }
    if (rc == 0) { rc = opdi_list_add_text(list, text, length); }
    if (rc) {
        if (list) { opdi_cell_drop(list); }
        return -1;
    }
    opdi_list_reverse(list);
    return opdi_return_cell(call, list);
}
OPDI_INTERNAL int opdi_fn_splitlines(opdi_bcall *call) {
    int64_t length, from = 0;
    const bool keep = opdi_call_int(call, 1) != 0;
    const char *const text = opdi_call_text(call, 0, &length);
    opdi_cell *list = text ? opdi_cell_new(OPD_CELL_LIST, OPD_TAG_LIST, 0) : NULL;
    int rc = list ? 0 : -1;
    for (int64_t at = 0; rc == 0 && at < length; at++) {
        if (text[at] != '\n' && text[at] != '\r' && text[at] != '\v' && text[at] != '\f') { continue; }
        const int64_t end = at;
        if (text[at] == '\r' && at + 1 < length && text[at + 1] == '\n') { at++; }
        rc = opdi_list_add_text(list, text + from, (keep ? at + 1 : end) - from);
        from = at + 1;
    }
    if (rc == 0 && from < length) { rc = opdi_list_add_text(list, text + from, length - from); }
    if (rc) {
        if (list) { opdi_cell_drop(list); }
        return -1;
    }
    return opdi_return_cell(call, list);
}
OPDI_INTERNAL int opdi_fn_join(opdi_bcall *call) {
    int64_t length, count;
    const char *const text = opdi_call_text(call, 0, &length);
    const opdi_cell *list = text ? opdi_call_list(call, 1) : NULL;
    opdi_text_builder out = {NULL, 0, 0, false};
    for (int64_t i = 0; list && i < list->count; i++) {
        const char *const part = opdi_value_text(&list->u.values[i], &count);
        if (i) { opdi_text_builder_add(&out, text, length); }
        opdi_text_builder_add(&out, part ? part : "", part ? count : 0);
    }
    const int rc = !list || out.failed ? -1 : opdi_return_text(call, out.length ? out.text : "", out.length);
    opdi_text_builder_free(&out);
    return rc;
}
OPDI_INTERNAL int opdi_fn_partition(opdi_bcall *call) {
    int64_t length, count;
    const bool last = call->builtin->what != 0;
    const char *const text = opdi_call_text(call, 0, &length);
    const char *const by = text ? opdi_call_text(call, 1, &count) : NULL;
    if (!by) { return -1; }
    if (count == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "ValueError: empty separator"); }
    const int64_t at = opdi_text_find(text, 0, length, by, count, last);
    const int64_t head = at >= 0 ? at : last ? 0 : length, tail = at >= 0 ? at + count : last ? 0 : length;
    for (int k = 0; k < 3; k++) {
        opdi_cell *part = k == 0 ? opdi_cell_text(text, head) : k == 1 ? opdi_cell_text(by, at >= 0 ? count : 0)
            : opdi_cell_text(text + tail, length - tail);
        if (!part) { return -1; }
        call->rets[k] = opdi_cell_value(part);
    }
    return 0;
}
/* Runs ljust, rjust, center and zfill.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_fn_pad(opdi_bcall *call) {
    int64_t length, count = 1;
    const int32_t what = call->builtin->what;
    const char *const text = opdi_call_text(call, 0, &length);
    const char *const fill = !text ? NULL : what == OPDI_PAD_ZERO ? "0" : opdi_call_text(call, 2, &count);
    if (!fill) { return -1; }
    if (count != 1) {
        return opd_fail(OPD_ERROR_ARGUMENT, "TypeError: The fill character must be exactly one character long");
    }
    const int64_t padding = OPDI_MAX(0, opdi_call_int(call, 1) - length);
    if (padding > INT32_MAX) {
        return opd_fail(OPD_ERROR_ARGUMENT, "a string of %lld bytes is too long", (long long)padding);
    }
    const int64_t left = what == OPDI_PAD_RIGHT ? 0 : what == OPDI_PAD_BOTH
        ? padding / 2 + (padding & opdi_call_int(call, 1) & 1) : padding;
    const int64_t sign = what == OPDI_PAD_ZERO && length && (*text == '-' || *text == '+');
    opdi_cell *cell = opdi_cell_text(NULL, length + padding);
    if (!cell) { return -1; }
    memset(cell->u.text, *fill, (size_t)(length + padding));
    if (sign) { cell->u.text[0] = *text; }
    memcpy(cell->u.text + left + sign, text + sign, (size_t)(length - sign));
    return opdi_return_cell(call, cell);
}
OPDI_INTERNAL int opdi_fn_expandtabs(opdi_bcall *call) {
    int64_t length, column = 0;
    const int64_t size = opdi_call_int(call, 1);
    const char *const text = opdi_call_text(call, 0, &length);
    opdi_text_builder out = {NULL, 0, 0, false};
    for (int64_t i = 0; text && i < length && !out.failed; i++) {
        if (text[i] != '\t') {
            opdi_text_builder_add(&out, text + i, 1);
            column = text[i] == '\n' || text[i] == '\r' ? 0 : column + 1;
            continue;
        }
        for (int64_t k = size > 0 && size < 1000000 ? size - column % size : 0; k > 0; k--, column++) {
            opdi_text_builder_add(&out, " ", 1);
        }
    }
    const int rc = !text || out.failed ? -1 : opdi_return_text(call, out.length ? out.text : "", out.length);
    opdi_text_builder_free(&out);
    return rc;
}
OPDI_INTERNAL int opdi_fn_chr(opdi_bcall *call) {
    const int64_t code = opdi_call_int(call, 0);
    char text[2] = {0, 0};
    if (code < 0 || code > 255) {
        return opd_fail(OPD_ERROR_ARGUMENT, "chr() arg not in range(256), found %lld", (long long)code);
    }
    text[0] = (char)(unsigned char)code;
    return opdi_return_text(call, text, 1);
}
OPDI_INTERNAL int opdi_fn_ord(opdi_bcall *call) {
    int64_t length;
    const char *const text = opdi_call_text(call, 0, &length);
    if (!text) { return -1; }
    if (length != 1) {
        return opd_fail(OPD_ERROR_ARGUMENT, "String for ord() must be 1 character, found %lld", (long long)length);
    }
    return opdi_return_value(call, opd_value_int((unsigned char)*text));
}
/* Runs hex, oct and bin; the builtin's `what` is the base.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_fn_base(opdi_bcall *call) {
    const int32_t base = call->builtin->what;
    const int64_t number = opdi_call_int(call, 0);
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    char text[72], *at = text + sizeof text;
    do {
        *--at = "0123456789abcdef"[rest % (uint64_t)base];
        rest /= (uint64_t)base;
    } while (rest);
    *--at = base == 16 ? 'x' : base == 8 ? 'o' : 'b';
    *--at = '0';
    if (number < 0) { *--at = '-'; }
    return opdi_return_text(call, at, text + sizeof text - at);
}
OPDI_INTERNAL int opdi_fn_list_of_text(opdi_bcall *call) {
    int64_t length;
    const char *const text = opdi_call_text(call, 0, &length);
    opdi_cell *list = text ? opdi_cell_new(OPD_CELL_LIST, OPD_TAG_LIST, 0) : NULL;
    for (int64_t i = 0; list && i < length; i++) {
        if (opdi_list_add_text(list, text + i, 1)) {
            opdi_cell_drop(list);
            return -1;
        }
    }
    return opdi_return_cell(call, list);
}

//== lists =============================================================================================================

static int opdi_no_place(int64_t place, int64_t count) {
    return opd_fail(OPD_ERROR_INDEX, "list index out of range (%lld of %lld)", (long long)place, (long long)count);
}
/* Returns the index, from 0, of element `place` of a list with `count` elements; a negative `place` counts from the
   end.  If there is no such element, returns -1 and sets an error. */
OPDI_INTERNAL int64_t opdi_list_index(int64_t place, int64_t count) {
    const int64_t at = place < 0 ? place + count : place;
    return at >= 0 && at < count ? at : opdi_no_place(place, count);
}
OPDI_INTERNAL int opdi_fn_getitem(opdi_bcall *call) {
    const opdi_cell *const cell = opdi_cell_of(&call->args[0]);
    int64_t length, at;
    const char *const text = opdi_value_text(&call->args[0], &length);
    if (text) {
        if ((at = opdi_list_index(opdi_call_int(call, 1), length)) < 0) { return -1; }
        return opdi_return_text(call, text + at, 1);
    }
    if (cell && cell->kind == OPD_CELL_DICT) {
        if ((at = opdi_dict_find(cell, &call->args[1])) >= 0) {
            return opdi_return_borrowed(call, cell->u.values[2 * at + 1]);
        }
        return opdi_no_key(&call->args[1]);
    }
    if (!opdi_call_list(call, 0) || (at = opdi_list_index(opdi_call_int(call, 1), cell->count)) < 0) { return -1; }
    return opdi_return_borrowed(call, opdi_cell_at(cell, at));
}
OPDI_INTERNAL int opdi_fn_tuple_index(opdi_bcall *call) {
    const opdi_cell *const cell = opdi_call_cell(call, 0, OPD_CELL_TUPLE);
    const int64_t at = cell ? opdi_list_index(opdi_call_int(call, 1), cell->count) : -1;
    return at < 0 ? -1 : opdi_return_borrowed(call, cell->u.values[at]);
}
