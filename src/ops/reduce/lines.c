#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:lines     operators along one dim: softmax, cumulative sums
//
//  The operators of this section compute, from each line of a tensor along one dim, a new line, which may have another
//  length: softmax, scans, sorting.  A line function gets contiguous input, of the type in which it computes, and
//  writes contiguous output; both may be the tensors' own memory.
//
//  If operands of long lines must be copied, the lines are processed in pieces, so that the copies stay small.
//  lines->passes tells how many times all pieces of a line are passed to the function.  The function keeps its state
//  between calls in tmp, and writes the output in the last pass.
//----------------------------------------------------------------------------------------------------------------------

#define OPDI_LINE_PIECE 2048     /* elements */
/* Fills in *lines for the lines of ops[nops] along dim; the first nin operands are the inputs, the others the outputs.
   If bit i of `index` is set, operand i has dtype int64; the other operands are converted to the type `compute`
   (OPDI_F32, ...). */
OPDI_INTERNAL void opdi_lines_init(opdi_lines *lines, opd_tensor *const *ops, int nin, int nops, int dim, int compute,
                                   unsigned index) {
    const opd_tensor *tensor = ops[0];
    lines->nin = nin;
    lines->nops = nops;
    lines->ndim = 0;
    lines->outer = 1;
    lines->tmp = 32;
    lines->passes = 1;
    lines->number = 0;
    lines->flag = lines->flag2 = false;
    lines->failed = 0;
    lines->count = tensor->ndim ? opdi_sizes(tensor)[dim] : 1;
    for (int axis = tensor->ndim - 1; axis >= 0; axis--) {
        if (axis == dim || opdi_sizes(tensor)[axis] == 1) { continue; }
        lines->sizes[lines->ndim] = opdi_sizes(tensor)[axis];
        lines->outer *= opdi_sizes(tensor)[axis];
        for (int k = 0; k < nops; k++) {
            lines->stride[k][lines->ndim] = opdi_strides(ops[k])[axis] *
                (int64_t)opd_dtype_size((opd_scalar_type)ops[k]->dtype);
        }
        lines->ndim++;
    }
    for (int k = 0; k < nops; k++) {
        const int type = index >> k & 1 ? OPDI_I64 : compute;
        const bool same = ops[k]->dtype == opdi_compute_dtype[type];
        lines->data[k] = ops[k]->data;
        lines->size[k] = (int32_t)opd_dtype_size((opd_scalar_type)ops[k]->dtype);
        lines->work[k] = (int32_t)opd_dtype_size((opd_scalar_type)opdi_compute_dtype[type]);
        lines->len[k] = ops[k]->ndim == tensor->ndim && tensor->ndim ? opdi_sizes(ops[k])[dim] : 1;
        lines->step[k] = ops[k]->ndim == tensor->ndim && tensor->ndim ? opdi_strides(ops[k])[dim] * lines->size[k]
            : lines->size[k];
        lines->load[k] = same ? NULL : opdi_load_of(type, ops[k]->dtype);
        lines->store[k] = same ? NULL : opdi_store_of(type, ops[k]->dtype);
        lines->buffer_bytes[k] = same && lines->step[k] == lines->size[k] ? 0
            : (lines->len[k] * lines->work[k] + 63) & ~(int64_t)63;
    }
}
/* Loads `count` elements of operand number `element`, which are lines->step bytes apart from `at` on.  Converts them to
   the type in which the line function computes, and writes them to buf.  opdi_line_store does the reverse. */
static void opdi_line_load(const opdi_lines *lines, int element, const char *at, char *buf, int64_t count) {
    uint64_t raw[OPDI_BLOCK];
    int64_t rows;
    if (!lines->load[element]) {
        opdi_gather(buf, at, lines->step[element], count, lines->size[element]);
        return;
    }
    for (int64_t i = 0; i < count; i += rows) {
        rows = OPDI_MIN(count - i, (int64_t)OPDI_BLOCK);
        if (lines->step[element] != lines->size[element]) {
            opdi_gather(raw, at + i * lines->step[element], lines->step[element], rows, lines->size[element]);
        }
        lines->load[element](buf + i * lines->work[element],
                             lines->step[element] == lines->size[element] ? at + i * lines->size[element]
                             : (const char *)raw, rows);
    }
}
static void opdi_line_store(const opdi_lines *lines, int element, char *at, const char *buf, int64_t count) {
    uint64_t raw[OPDI_BLOCK];
    int64_t rows;
    if (!lines->store[element]) {
        opdi_scatter(at, lines->step[element], buf, lines->size[element], count, lines->size[element]);
        return;
    }
    for (int64_t i = 0; i < count; i += rows) {
        rows = OPDI_MIN(count - i, (int64_t)OPDI_BLOCK);
        if (lines->step[element] == lines->size[element]) {
            lines->store[element](at + i * lines->size[element], buf + i * lines->work[element], rows);
            continue;
        }
        lines->store[element](raw, buf + i * lines->work[element], rows);
        opdi_scatter(at + i * lines->step[element], lines->step[element], raw, lines->size[element], rows,
                         lines->size[element]);
    }
}
/* Returns the address of elements [from, from + count) of an input line, in contiguous memory and in the type in which
   the line function computes.  The line begins at `memory`.  If its elements are already contiguous and of this type,
   returns their address in `memory`.  Otherwise writes them to buf, converted, and returns buf. */
OPDI_INTERNAL const void *opdi_line_read(const opdi_lines *lines, const void *memory, int64_t from, int64_t count,
                                         void *buf) {
    const char *at = (const char *)memory + from * lines->step[0];
    if (!lines->load[0] && lines->step[0] == lines->size[0]) { return at; }
    opdi_line_load(lines, 0, at, (char *)buf, count);
    return buf;
}
/* Processes one line, whose operands begin at at[], piece by piece in each pass.  buf[] is memory for copies of
   operands; tmp is scratch memory for the line function. */
static void opdi_line_go(const opdi_lines *lines, char *const *at, char *const *buf, char *tmp) {
    const int passes = OPDI_MAX(lines->passes, 1);
    opdi_piece piece;
    for (piece.pass = 0; piece.pass < passes; piece.pass++) {
        for (piece.from = 0; piece.from < lines->count || piece.from == 0; piece.from += piece.count) {
            void *data[4];
            piece.count = OPDI_MIN(lines->piece, lines->count - piece.from);
            for (int k = 0; k < lines->nops; k++) {
                data[k] = lines->buffer_bytes[k] ? buf[k] : at[k] + piece.from * lines->step[k];
                if (k < lines->nin && lines->buffer_bytes[k] && (piece.pass == 0 || lines->piece < lines->count)) {
                    opdi_line_load(lines, k, at[k] + piece.from * lines->step[k], buf[k], piece.count);
                }
            }
            lines->fn(lines, &piece, (const void *const *)data, data + lines->nin, tmp);
            for (int k = lines->nin; k < lines->nops && piece.pass == passes - 1; k++) {
                if (lines->buffer_bytes[k]) {
                    opdi_line_store(lines, k, at[k] + piece.from * lines->step[k], buf[k],
                                    lines->piece < lines->count ? piece.count : lines->len[k]);
                }
            }
            if (lines->count == 0) { break; }
        }
    }
}
/* Processes lines [begin, end) of ctx, an opdi_lines.  Copies of operands are on the stack or, if they are large, on
   the heap.  Sets lines->failed if memory runs out. */
static void opdi_lines_range(void *ctx, int64_t begin, int64_t end) {
    opdi_lines *lines = (opdi_lines *)ctx;
    int64_t idx[OPD_MAX_DIMS], rest = begin;
    uint64_t local[1024];                         /* 8 KiB; if more is needed, the heap is used */
    size_t bytes = lines->tmp + 64;
    char *mem = (char *)local, *buf[4];
    for (int k = 0; k < lines->nops; k++) { bytes += (size_t)lines->buffer_bytes[k]; }
    if (bytes > sizeof local) { mem = opdi_scratch_alloc(bytes); }
    if (!mem) {
        OPDI_STORE(&lines->failed, 1);
        return;
    }
    buf[0] = mem;
    for (int k = 1; k < lines->nops; k++) { buf[k] = buf[k - 1] + lines->buffer_bytes[k - 1]; }
    for (int dim = 0; dim < lines->ndim; dim++) {
        idx[dim] = rest % lines->sizes[dim];
        rest /= lines->sizes[dim];
    }
    for (int64_t row = begin; row < end; row++) {
        char *at[4];
        for (int k = 0; k < lines->nops; k++) {
            at[k] = lines->data[k];
            for (int dim = 0; dim < lines->ndim; dim++) { at[k] += idx[dim] * lines->stride[k][dim]; }
        }
        opdi_line_go(lines, at, buf, buf[lines->nops - 1] + lines->buffer_bytes[lines->nops - 1]);
        for (int dim = 0; dim < lines->ndim; dim++) {
            if (++idx[dim] < lines->sizes[dim]) { break; }
            idx[dim] = 0;
        }
    }
    if (mem != (char *)local) { opdi_scratch_free(mem, bytes); }
}
/* Decides how many elements of a line are processed at a time, and sets the sizes of the buffers. */
static void opdi_lines_pieces(opdi_lines *lines) {
    int64_t bytes = 0;
    lines->piece = lines->count;
    for (int k = 0; k < lines->nops; k++) { bytes += lines->buffer_bytes[k]; }
    if (lines->passes == 0) {
        lines->buffer_bytes[0] = lines->buffer_bytes[1] = 0;
        return;
    }
    if (bytes <= 32 * OPDI_LINE_PIECE || lines->count <= OPDI_LINE_PIECE) { return; }
    lines->piece = OPDI_LINE_PIECE;
    for (int k = 0; k < lines->nops; k++) {
        lines->buffer_bytes[k] = lines->buffer_bytes[k] ? lines->piece * lines->work[k] : 0;
    }
}
OPDI_COLD_BEGIN
OPDI_INTERNAL int opdi_lines_run(opdi_lines *lines, opdi_line_fn fn, int64_t cost) {
    lines->fn = fn;
    if (lines->outer <= 0) { return 0; }
    opdi_lines_pieces(lines);
    if (opdi_stack_short(NULL, OPDI_STACK_FOR((lines->count < 128 ? 24 : 40) << 10))) { return -1; }
    if (lines->outer * lines->count * cost <= OPDI_GRAIN) { opdi_lines_range(lines, 0, lines->outer); }
    else {
        size_t bytes = lines->tmp + 64;
        for (int k = 0; k < lines->nops; k++) { bytes += (size_t)lines->buffer_bytes[k]; }
        opdi_parallel_for_scratch(lines->outer,
                                  OPDI_MAX((int64_t)1, OPDI_GRAIN / OPDI_MAX(lines->count * cost, (int64_t)1)),
                                  opdi_lines_range, lines, bytes > 8192 ? OPDI_SCRATCH_BYTES(bytes) : 0);
    }
    return lines->failed ? opdi_buffer_fail() : 0;
}
OPDI_COLD_END
