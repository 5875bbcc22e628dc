#include "autograd.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>printing     tensors as text
//
//  Prints tensors exactly as torch/_tensor_str.py does with its default options.
//----------------------------------------------------------------------------------------------------------------------

#define OPDI_PRINT_THRESHOLD 1000                 /* a tensor with more elements is printed with "..." */
#define OPDI_PRINT_EDGE 3                         /* elements shown at each end of a dim whose middle is left out */
#define OPDI_PRINT_LINE 80
#define OPDI_PRINT_TEXT 400                       /* bytes for one number; "%.4f" of the largest double has 315 */

enum { OPDI_PRINT_WHOLE = 0, OPDI_PRINT_FIXED, OPDI_PRINT_SCI, OPDI_PRINT_INT, OPDI_PRINT_BOOL };

/* The format of the numbers of a tensor, or of their real or imaginary parts.  The first pass over the elements fills
   the members from `any` to `widths`; it ignores floats that are zero or not finite. */
typedef struct opdi_print_column {
    int mode;                    /* OPDI_PRINT_WHOLE to OPDI_PRINT_BOOL */
    int width;                   /* numbers are padded to this width on the left */
    bool any, fraction;          /* any: a number was found that is not ignored; fraction: one of these numbers is not
                                    whole */
    double low, high;            /* the least and the greatest magnitude */
    int widths[3];               /* for floats: the widths that the modes WHOLE, FIXED and SCI need */
} opdi_print_column;

typedef struct opdi_printer {
    const opd_tensor *tensor;
    char *buf;
    size_t cap, len;             /* len: the length of the whole text, even beyond `cap` */
    size_t line;                 /* the value of len at the beginning of the last line */
    int64_t item;                /* bytes of an element; 1 for a dtype in blocks */
    int64_t part;                /* distance in bytes from the real to the imaginary part */
    int ncolumns;                /* 2 for complex numbers */
    bool summarize;
    opdi_print_column columns[2];
} opdi_printer;

static void opdi_put(opdi_printer *printer, const char *text, size_t length) {
    if (printer->len < printer->cap) {
        memcpy(printer->buf + printer->len, text, OPDI_MIN(length, printer->cap - printer->len));
    }
    printer->len += length;
}

static void opdi_puts(opdi_printer *printer, const char *text) { opdi_put(printer, text, strlen(text)); }

static void opdi_put_spaces(opdi_printer *printer, int count) {
    while (count-- > 0) { opdi_put(printer, " ", 1); }
}

/* Writes `count` line ends and then `indent` spaces. */
static void opdi_put_line(opdi_printer *printer, int count, int indent) {
    while (count-- > 0) { opdi_put(printer, "\n", 1); }
    printer->line = printer->len;
    opdi_put_spaces(printer, indent);
}

/* Writes a float to `out` in a mode (WHOLE, FIXED or SCI) as Python's format() does: with a point in any locale, and
   every NaN as "nan", without a sign.  Returns the length. */
static int opdi_print_float(double value, int mode, char *out /*[OPDI_PRINT_TEXT]*/) {
    int i, k;
    if (!isfinite(value)) {
        strcpy(out, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return (int)strlen(out);
    }
    if (mode == OPDI_PRINT_WHOLE) { return snprintf(out, OPDI_PRINT_TEXT, "%.0f.", value); }
    int count = snprintf(out, OPDI_PRINT_TEXT, mode == OPDI_PRINT_SCI ? "%.4e" : "%.4f", value);
    for (i = 0; i < count && ((out[i] >= '0' && out[i] <= '9') || out[i] == '-'); i++) { }
    if (i >= count || out[i] == '.') { return count; }
    for (k = i + 1; k < count && (out[k] < '0' || out[k] > '9'); k++) { }  /* a locale's point may have several bytes */
    out[i] = '.';
    memmove(out + i + 1, out + k, (size_t)(count - k) + 1);
    return count - (k - i - 1);
}

/* Returns the number at byte `offset`; of a tensor in blocks, the element at `offset`. */
static double opdi_print_value(const opdi_printer *printer, int64_t offset) {
    return opdi_is_block(printer->tensor->dtype) ? opdi_block_element(printer->tensor, offset)
        : opdi_element_f64(printer->tensor, offset);
}
/* Writes one number of the element at byte `offset` to `out`: the number in column 0 or, for an imaginary part, in
   column 1.  Returns the length of the text. */
static int opdi_print_number(const opdi_printer *printer, int column, int64_t offset, char *out /*[OPDI_PRINT_TEXT]*/) {
    int mode = printer->columns[column].mode;
    if (mode < OPDI_PRINT_INT) {
        return opdi_print_float(opdi_print_value(printer, offset + column * printer->part), mode, out);
    }
    if (mode == OPDI_PRINT_INT) {
        const int64_t value = opdi_element_i64(printer->tensor, offset);
        return snprintf(out, OPDI_PRINT_TEXT, printer->tensor->dtype == OPD_UINT64 ? "%llu" : "%lld", (long long)value);
    }
    strcpy(out, opdi_element_i64(printer->tensor, offset) ? "True" : "False");
    return (int)strlen(out);
}

/* Takes one number into account in the first pass, which determines the width and the mode of all numbers. */
static void opdi_print_measure(opdi_printer *printer, int column, int64_t offset) {
    opdi_print_column *wide = &printer->columns[column];
    char text[OPDI_PRINT_TEXT];
    if (wide->mode >= OPDI_PRINT_INT) {
        wide->width = OPDI_MAX(wide->width, opdi_print_number(printer, column, offset, text));
        return;
    }
    double value = opdi_print_value(printer, offset + column * printer->part);
    double magnitude = fabs(value);
    if (!isfinite(value) || magnitude <= 0) { return; }
    wide->low = wide->any ? OPDI_MIN(wide->low, magnitude) : magnitude;
    wide->high = OPDI_MAX(wide->high, magnitude);
    wide->any = true;
    if (value < ceil(value)) { wide->fraction = true; }
    for (int mode = 0; mode < 3; mode++) {
        if (mode != OPDI_PRINT_SCI && wide->high > 1e8) { continue; }      /* only SCI will be used */
        wide->widths[mode] = OPDI_MAX(wide->widths[mode], opdi_print_float(value, mode, text));
    }
}

/* Returns how many elements of a dim with `count` elements are replaced by "...", after the first OPDI_PRINT_EDGE
   elements. */
static int64_t opdi_print_gap(const opdi_printer *printer, int64_t count) {
    return printer->summarize && count > 2 * OPDI_PRINT_EDGE ? count - 2 * OPDI_PRINT_EDGE : 0;
}

/* Runs the first pass over the elements that are printed, from dim number `dim` and byte `offset` on.  Calls itself
   once for each dim, at most 64 deep. */
static void opdi_print_scan(opdi_printer *printer, int dim, int64_t offset) {
    if (dim == printer->tensor->ndim) {
        for (int column = 0; column < printer->ncolumns; column++) { opdi_print_measure(printer, column, offset); }
        return;
    }
    int64_t count = opdi_sizes(printer->tensor)[dim];
    int64_t step = count > 1 ? opdi_strides(printer->tensor)[dim] * printer->item : 0;
    int64_t gap = opdi_print_gap(printer, count);
    for (int64_t i = 0; i < count; i++) {
        if (i == OPDI_PRINT_EDGE) { i += gap; }
        opdi_print_scan(printer, dim + 1, offset + i * step);
    }
}

static void opdi_print_choose(opdi_print_column *column) {
    if (column->mode >= OPDI_PRINT_INT || !column->any) { return; }
    column->mode = column->fraction ? OPDI_PRINT_FIXED : OPDI_PRINT_WHOLE;
    if (column->high / column->low > 1000.0 || column->high > 1.0e8 || (column->fraction && column->low < 1.0e-4)) {
        column->mode = OPDI_PRINT_SCI;
    }
    column->width = column->widths[column->mode];
}

/* Writes the element at byte `offset`.  In a complex number, such as "1.+2.j", only the real part is padded. */
static void opdi_print_element(opdi_printer *printer, int64_t offset) {
    char text[OPDI_PRINT_TEXT];
    int count = opdi_print_number(printer, 0, offset, text);
    opdi_put_spaces(printer, printer->columns[0].width - count);
    opdi_put(printer, text, (size_t)count);
    if (printer->ncolumns == 2) {
        count = opdi_print_number(printer, 1, offset, text);
        if (text[0] != '-') { opdi_puts(printer, "+"); }
        opdi_put(printer, text, (size_t)count);
        opdi_puts(printer, "j");
    }
}

/* Returns the number of elements of the last dim that are written on one line. */
static int64_t opdi_print_per_line(const opdi_printer *printer, int indent) {
    int length = printer->columns[0].width + 2;
    if (printer->ncolumns == 2) { length += printer->columns[1].width + 1; }
    return OPDI_MAX(1, (OPDI_PRINT_LINE - indent) / length);
}

/* Writes the elements from dim number `dim` and byte `offset` on, in brackets.  The lines after the first are indented
   by `indent` spaces and one more for each bracket that is open. */
static void opdi_print_elements(opdi_printer *printer, int dim, int64_t offset, int indent) {
    bool last = dim + 1 == printer->tensor->ndim;
    int64_t count = 0;
    if (dim == printer->tensor->ndim) {
        opdi_print_element(printer, offset);
        return;
    }
    int64_t total = opdi_sizes(printer->tensor)[dim];
    int64_t step = total > 1 ? opdi_strides(printer->tensor)[dim] * printer->item : 0;
    int64_t gap = opdi_print_gap(printer, total);
    int64_t per_line = last ? opdi_print_per_line(printer, indent) : 1;
    opdi_puts(printer, "[");
    for (int64_t i = 0; i < total; i++, count++) {
        if (count > 0) { opdi_puts(printer, ","); }
        if (count > 0 && count % per_line == 0) {
            opdi_put_line(printer, last ? 1 : printer->tensor->ndim - dim - 1, indent + 1);
        } else if (count > 0) {
            opdi_puts(printer, " ");
        }
        if (gap > 0 && count == OPDI_PRINT_EDGE) {
            opdi_puts(printer, last ? " ..." : "...");
            i += gap - 1;
        } else {
            opdi_print_elements(printer, dim + 1, offset + i * step, indent + 1);
        }
    }
    opdi_puts(printer, "]");
}

/* Writes ", " and the suffix `text` (such as the dtype).  Begins a new line if the suffix does not fit on the last.
   Updates *line_length, the length of the last line. */
static void opdi_print_suffix(opdi_printer *printer, size_t *line_length, int indent, const char *text) {
    size_t length = strlen(text);
    opdi_puts(printer, ",");
    if (*line_length + length + 2 > OPDI_PRINT_LINE) {
        opdi_put_line(printer, 1, indent);
        *line_length = (size_t)indent + length;
    } else {
        opdi_puts(printer, " ");
        *line_length += length + 2;
    }
    opdi_puts(printer, text);
}

/* Writes the sizes to `out`, as "size=(2, 3)", "size=(5,)" or "size=()".  `out` needs space for OPD_MAX_DIMS sizes of
   20 digits. */
static void opdi_print_sizes(const opd_tensor *tensor, char *out /*[cap]*/, size_t cap) {
    size_t at = (size_t)snprintf(out, cap, "size=(");
    for (int i = 0; i < tensor->ndim && at < cap; i++) {
        at += (size_t)snprintf(out + at, cap - at, "%s%lld", i ? ", " : "", (long long)opdi_sizes(tensor)[i]);
    }
    if (at < cap) { (void)snprintf(out + at, cap - at, "%s", tensor->ndim == 1 ? ",)" : ")"); }
}

/* Writes the suffixes after the elements: device, size, dtype, grad_fn.  `shown` is true if the elements were
   written. */
static void opdi_print_suffixes(opdi_printer *printer, size_t line_length, int indent, bool shown) {
    const opd_tensor *tensor = printer->tensor;
    opd_scalar_type dtype = (opd_scalar_type)tensor->dtype;
    opd_device device = opd_tensor_device(tensor);
    const char *grad_fn = opd_tensor_grad_fn(tensor);
    char text[24 * OPD_MAX_DIMS], name[32];
    if (device.type != OPD_CPU) {
        (void)snprintf(text, sizeof(text), "device='%s'", opdi_device_text(device, name, sizeof(name)));
        opdi_print_suffix(printer, &line_length, indent, text);
    }
    if (!shown && (device.type == OPD_META || tensor->numel > 0 || tensor->ndim != 1)) {
        opdi_print_sizes(tensor, text, sizeof(text));
        opdi_print_suffix(printer, &line_length, indent, text);
    }
    if (dtype != OPD_FLOAT32 && !(shown && (dtype == OPD_COMPLEX64 || dtype == OPD_INT64 || dtype == OPD_BOOL))) {
        (void)snprintf(text, sizeof(text), "dtype=torch.%s", opd_dtype_name(dtype));
        opdi_print_suffix(printer, &line_length, indent, text);
    }
    if (grad_fn) {
        (void)snprintf(text, sizeof(text), "grad_fn=<%s>", grad_fn);
        opdi_print_suffix(printer, &line_length, indent, text);
    } else if (opd_tensor_requires_grad(tensor)) {
        opdi_print_suffix(printer, &line_length, indent, "requires_grad=True");
    }
}

static void opdi_print_contents(opdi_printer *printer, int indent) {
    const opd_tensor *tensor = printer->tensor;
    const opdi_dtype_info *info = opdi_dtype((opd_scalar_type)tensor->dtype);
    printer->item = opdi_is_block(tensor->dtype) ? 1 : (int64_t)info->size;       /* blocks: offsets count elements */
    printer->part = info->size / 2;
    printer->ncolumns = info->kind == OPDI_CLASS_COMPLEX ? 2 : 1;
    printer->summarize = tensor->numel > OPDI_PRINT_THRESHOLD;
    for (int i = 0; i < printer->ncolumns; i++) {
        printer->columns[i].mode = info->kind == OPDI_CLASS_INT ? OPDI_PRINT_INT
                           : info->kind == OPDI_CLASS_BOOL ? OPDI_PRINT_BOOL : OPDI_PRINT_WHOLE;
        printer->columns[i].width = 1;
    }
    opdi_print_scan(printer, 0, 0);
    for (int i = 0; i < printer->ncolumns; i++) { opdi_print_choose(&printer->columns[i]); }
    opdi_print_elements(printer, 0, 0, indent);
}

/* Writes a batched tensor as "BatchedTensor(lvl=1, bdim=0, value=...)", and indents the value by four more spaces. */
static void opdi_print_batched(opdi_printer *printer) {
    const opdi_batched *batched = opdi_batched_of(printer->tensor);
    const size_t length = opd_tensor_print(batched->value, NULL, 0);
    char *text = (char *)opdi_alloc(length + 1), *end;
    char head[80];
    (void)snprintf(head, sizeof head, "BatchedTensor(lvl=%d, bdim=%d, value=", (int)batched->level, (int)batched->dim);
    opdi_puts(printer, head);
    if (!text) { return; }
    (void)opd_tensor_print(batched->value, text, length + 1);
    for (char *line = text; line; line = end) {
        end = strchr(line, '\n');
        if (end) { *end++ = 0; }
        opdi_puts(printer, *line ? "\n    " : "\n");
        opdi_puts(printer, line);
    }
    opdi_puts(printer, "\n)");
    opdi_free(text, length + 1);
}

/* Returns a tensor whose elements can be printed: `tensor` itself, or, if it is lazily conjugated or negated, a
   reference to a copy without such a flag.  Returns NULL on failure, and for blocks that cannot be decoded.  An
   error that was pending before remains pending. */
static opd_tensor *opdi_print_reads(const opd_tensor *tensor) {
    opdi_thread *thread = opdi_self();
    const opd_code was = thread->error;
    opd_tensor *read = (opd_tensor *)(uintptr_t)tensor;
    if (opdi_wait_for(tensor)) { return NULL; }
    if (!(tensor->flags & OPDI_LAZY) && !opdi_is_block(tensor->dtype)) { return read; }
    thread->error = OPD_OK;
    const int mark = opd_error_mark();
    if (opdi_is_block(tensor->dtype)) { read = opdi_block_readable(tensor->dtype) ? read : NULL; }
    else { OPD_SCOPE { read = opdi_keep(opdi_resolved(tensor)); } }
    if (!read) { (void)opd_error_rewind(mark); }
    thread->error = was;
    return read;
}
/* Writes `tensor` as text.  If the tensor is on another device, writes a copy of it on the host.  A tensor that cannot
   be read is written as PyTorch writes meta tensors.  Returns the length of the text, as snprintf does. */
OPD_API size_t opd_tensor_print(const opd_tensor *tensor, char *buf, size_t cap) {
    const int indent = 7;                                                  /* strlen("tensor(") */
    opdi_printer printer;
    memset(&printer, 0, sizeof(printer));
    printer.tensor = tensor;
    printer.buf = buf;
    if (!buf) { cap = 0; }
    printer.cap = cap > 0 ? cap - 1 : 0;
    if (!tensor) {
        opdi_puts(&printer, "None");
    } else if (opdi_is_dead(tensor)) {
        (void)opdi_dead_error(tensor, "printing");
        opdi_puts(&printer, "a freed tensor");
    } else if (tensor->flags & OPDI_BATCHED) {
        opdi_print_batched(&printer);
    } else {
        bool readable = tensor->backend != OPD_META;
        opd_tensor *const read = opdi_print_reads(tensor);
        opd_tensor *host = readable && read && tensor->backend != OPD_CPU && tensor->numel > 0 ? opdi_host_copy(read)
            : NULL;
        bool shown = readable && read && tensor->numel > 0 && tensor->data != NULL &&
            (host || tensor->backend == OPD_CPU);
        opdi_puts(&printer, "tensor(");
        if (shown) {
            printer.tensor = host ? host : read;
            opdi_print_contents(&printer, indent);
            printer.tensor = tensor;
        } else {
            opdi_puts(&printer, readable && tensor->numel == 0 ? "[]" : "...");
        }
        opdi_print_suffixes(&printer, printer.len - printer.line + 2, indent, shown);
        opdi_puts(&printer, ")");
        opdi_release(host);
        if (read != tensor) { opdi_release(read); }
    }
    if (cap > 0) { buf[OPDI_MIN(printer.len, printer.cap)] = 0; }
    return printer.len;
}

OPD_API void opd_print(const opd_tensor *tensor) {
    char local[2048], *text = local;
    size_t count = opd_tensor_print(tensor, local, sizeof(local));
    if (count >= sizeof(local)) {
        text = (char *)opdi_alloc(count + 1);
        if (!text) { return; }
        (void)opd_tensor_print(tensor, text, count + 1);
    }
    (void)fwrite(text, 1, count, stdout);
    (void)fputc('\n', stdout);
    if (text != local) { opdi_free(text, count + 1); }
}
