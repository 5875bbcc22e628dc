#include "compiler.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>nests        a graph as loop nests over memory, recorded on the lazy device
//
//  To compile a graph, the library runs it once on the lazy device, which computes nothing: its memory consists of
//  addresses only.  Each operation, such as a pointwise formula or a reduction, is recorded as a nest: a set of loops,
//  with a value that they store or sum.  Views, broadcasting, type promotion, in-place and out= forms are resolved
//  earlier, so a nest refers to memory, not to operators.  Operators get their nests from lowerings
//  (opdi_nest_lowerings), most of which call simpler operators.
//----------------------------------------------------------------------------------------------------------------------

/* The number of low bits of an address that are an offset in a buffer.  The higher bits are the buffer's number + 1.
   32-bit addresses have too few bits for this, so opdi_lazy_open fails there. */
#define OPDI_NEST_SHIFT (sizeof(void *) > 4 ? 34 : 20)

OPDI_INTERNAL OPDI_TLS opdi_recording *opdi_recording_now;
OPDI_INTERNAL opdi_sequence_recorder opdi_on_sequence;

/* Returns `size` bytes of zeros that live as long as the recording, or NULL and sets an error. */
OPDI_INTERNAL void *opdi_recording_alloc(opdi_recording *recording, size_t size) {
    void *const memory = opdi_arena_alloc(&recording->arena, size + 8);
    if (memory) { memset(memory, 0, size + 8); }
    return memory;
}
/* Called if fused code relies on the condition less <= more.  If sizes are open, stores the condition, which must hold
   for all sizes. */
OPDI_INTERNAL void opdi_assume(int64_t less, int64_t more) {
    opdi_recording *const recording = opdi_recording_now;
    if (!recording->open) { return; }
    if (recording->nfacts == recording->facts_capacity) {
        const int32_t capacity = OPDI_MAX(2 * recording->facts_capacity, 256);
        opdi_fact *const all = (opdi_fact *)opdi_recording_alloc(recording, (size_t)capacity * sizeof *all);
        if (!all) { return; }                     /* the error is set already */
        if (recording->nfacts) { memcpy(all, recording->facts, (size_t)recording->nfacts * sizeof *all); }
        recording->facts = all;
        recording->facts_capacity = capacity;
    }
    recording->facts[recording->nfacts].less = less;
    recording->facts[recording->nfacts++].more = more;
}
/* Returns whether the number of iterations of a nest's loop depends on an open size. */
OPDI_INTERNAL bool opdi_nest_open(const opdi_nest *nest, int loop) {
    return nest->open_loops >> loop & 1;
}
/* Adds a buffer to the recording and returns it.  Returns NULL and sets an error on failure. */
OPDI_INTERNAL opdi_buffer *opdi_buffer_new(opdi_recording *recording, size_t bytes, opdi_buffer_role role) {
    opdi_buffer *const buffer = (opdi_buffer *)opdi_recording_alloc(recording, sizeof *buffer);
    if (!buffer) { return NULL; }
    if (recording->nbuffers == recording->capacity) {
        const int32_t capacity = OPDI_MAX(2 * recording->capacity, 64);
        opdi_buffer **const all = (opdi_buffer **)opdi_recording_alloc(recording, (size_t)capacity * sizeof *all);
        if (!all) { return NULL; }
        if (recording->nbuffers) {
            memcpy(all, recording->buffers, (size_t)recording->nbuffers * sizeof *all);
        }
        recording->buffers = all;
        recording->capacity = capacity;
    }
    buffer->bytes = bytes;
    buffer->role = (int32_t)role;
    buffer->id = recording->nbuffers;
    buffer->place = -1;
    buffer->dtype = OPD_DTYPE_NONE;
    recording->buffers[recording->nbuffers++] = buffer;
    return buffer;
}
/* Returns the address of a buffer's first byte on the lazy device.  This address cannot be dereferenced. */
OPDI_INTERNAL void *opdi_buffer_address(const opdi_buffer *buffer) {
    return (void *)(((uintptr_t)buffer->id + 1) << OPDI_NEST_SHIFT);
}
/* Returns the buffer that contains an address of the lazy device, or NULL if there is none. */
OPDI_INTERNAL opdi_buffer *opdi_buffer_at(const opdi_recording *recording, const void *address) {
    const uintptr_t id = ((uintptr_t)address >> OPDI_NEST_SHIFT) - 1;
    return id < (uintptr_t)recording->nbuffers ? recording->buffers[id] : NULL;
}

//== recording nests ===================================================================================================

/* Returns "first, second" in the memory of the recording, or `first` if memory runs out. */
OPDI_INTERNAL const char *opdi_recording_joined(opdi_recording *recording, const char *first, const char *second) {
    const size_t size = strlen(first) + strlen(second) + 4;
    char *const joined = (char *)opdi_recording_alloc(recording, size);
    if (joined) { (void)snprintf(joined, size, "%s, %s", first, second); }
    return joined ? joined : first;
}
/* Makes a nest with loops of these sizes, the outermost first.  The last `nreduce` loops are reduced.  The caller sets
   the other members of the nest and calls opdi_nest_add.  Returns the nest, or NULL and sets an error. */
OPDI_INTERNAL opdi_nest *opdi_nest_new(const int64_t *sizes, int ndim, int nreduce) {
    opdi_recording *const recording = opdi_recording_now;
    if (ndim > OPDI_NEST_DIMS) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: %d loops are more than the %d that can be compiled",
                       recording->what ? recording->what : "the graph", ndim, OPDI_NEST_DIMS);
        return NULL;
    }
    opdi_nest *const nest = (opdi_nest *)opdi_recording_alloc(recording, sizeof *nest);
    if (!nest) { return NULL; }
    nest->ndim = ndim;
    nest->nreduce = nreduce;
    memcpy(nest->sizes, sizes, (size_t)ndim * sizeof *sizes);
    nest->what = recording->what;
    return nest;
}
/* Returns a new expression, or NULL and sets an error.  The caller sets the other members of the expression. */
OPDI_INTERNAL opdi_expr *opdi_expr_new(opdi_expr_kind kind, opd_scalar_type dtype) {
    opdi_expr *const expr = (opdi_expr *)opdi_recording_alloc(opdi_recording_now, sizeof *expr);
    if (expr) {
        expr->kind = kind;
        expr->dtype = dtype;
    }
    return expr;
}
/* Returns whether an expression loads from the buffer that `out` writes, but not just the element that the same
   iteration writes. */
OPDI_INTERNAL bool opdi_expr_overlaps(const opdi_expr *expr, const opdi_access *out) {
    if (expr->kind == OPDI_EXPR_LOAD && expr->access.buffer == out->buffer &&
        (expr->nin || expr->access.offset != out->offset || expr->access.dtype != out->dtype ||
         memcmp(expr->access.strides, out->strides, sizeof out->strides) != 0)) { return true; }
    for (int i = 0; i < expr->nin; i++) { if (opdi_expr_overlaps(expr->in[i], out)) { return true; } }
    return false;
}
OPDI_INTERNAL int opdi_nest_add(opdi_nest *nest, opdi_expr *value);
/* Adds `nest`, but makes it store its results in new memory, and adds another nest that copies the results to the
   elements of nest->out.  Returns 0, or -1 and sets an error. */
static int opdi_nest_add_apart(opdi_nest *nest, opdi_expr *value) {
    const int outer = nest->ndim - nest->nreduce;
    int64_t count = 1;
    opdi_nest *const copy = opdi_nest_new(nest->sizes, outer, 0);
    opdi_expr *const load = opdi_expr_new(OPDI_EXPR_LOAD, nest->out.dtype);
    if (!copy || !load) { return -1; }
    copy->out = nest->out;
    memset(nest->out.strides, 0, sizeof nest->out.strides);
    for (int i = outer - 1; i >= 0; i--) {
        nest->out.strides[i] = count;
        count *= nest->sizes[i];
    }
    nest->out.offset = 0;
    nest->out.buffer = opdi_buffer_new(opdi_recording_now, (size_t)count * opd_dtype_size(nest->out.dtype),
                                       OPDI_BUFFER_TEMPORARY);
    if (!nest->out.buffer) { return -1; }
    nest->out.buffer->dtype = nest->out.dtype;
    load->access = nest->out;
    return opdi_nest_add(nest, value) || opdi_nest_add(copy, load) ? -1 : 0;
}
OPDI_INTERNAL opdi_expr *opdi_expr_number(opd_scalar_type dtype, double f64, int64_t i64) {
    opdi_expr *const number = opdi_expr_new(OPDI_EXPR_NUMBER, dtype);
    if (!number) { return NULL; }
    number->f64[0] = f64;
    number->i64[0] = i64;
    return number;
}
/* For a nest whose reduction has no elements: removes the reduction from the nest.  Returns the value that the nest
   then stores, 0 or 1; or NULL and sets an error. */
static opdi_expr *opdi_nest_nothing(opdi_nest *nest) {
    const bool one = nest->reduction == OPDI_REDUCTION_PROD || nest->reduction == OPDI_REDUCTION_ALL;
    nest->ndim -= nest->nreduce;
    nest->nreduce = 0;
    nest->reduction = OPDI_REDUCTION_NONE;
    return opdi_expr_number(nest->out.dtype, one, one);
}
/* Sets the value of a nest, and appends the nest to the recording.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_nest_add(opdi_nest *nest, opdi_expr *value) {
    opdi_recording *const recording = opdi_recording_now;
    if (!nest || !value) { return -1; }
    for (int i = 0; i < nest->ndim; i++) {
        if (nest->sizes[i]) { continue; }
        if (i < nest->ndim - nest->nreduce) { return 0; }     /* without iterations, the nest stores nothing */
        value = opdi_nest_nothing(nest);
        if (!value) { return -1; }
    }
    if (nest->reduction && !nest->nreduce && nest->ndim < OPDI_NEST_DIMS) {    /* the reduction of a single number gets
                                                                                  a loop with one iteration */
        nest->sizes[nest->ndim++] = 1;
        nest->nreduce = 1;
    }
    if (opd_autocast_enabled(OPD_CPU)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: a region of autocast cannot be compiled",
                        recording->what ? recording->what : nest->what);
    }
    if (!nest->place && !nest->follows && opdi_expr_overlaps(value, &nest->out)) {
        return opdi_nest_add_apart(nest, value);
    }
    nest->value = value;
    nest->id = recording->nnests++;
    nest->prev = recording->last;
    if (recording->last) { recording->last->next = nest; } else { recording->first = nest; }
    recording->last = nest;
    return 0;
}
OPDI_INTERNAL opdi_expr *opdi_expr_cast(opdi_expr *value, opd_scalar_type dtype) {
    if (!value || value->dtype == dtype) { return value; }
    opdi_expr *const cast = opdi_expr_new(OPDI_EXPR_CAST, dtype);
    if (!cast) { return NULL; }
    cast->in[0] = value;
    cast->nin = 1;
    return cast;
}
OPDI_INTERNAL opdi_expr *opdi_expr_formula(opd_formula formula, opd_scalar_type dtype, opdi_expr *x, opdi_expr *y) {
    opdi_expr *const call = opdi_expr_new(OPDI_EXPR_FORMULA, dtype);
    if (!call || !x) { return NULL; }
    call->formula = (int32_t)formula;
    call->in[0] = x;
    call->in[1] = y;
    call->nin = y ? 2 : 1;
    return call;
}
/* Returns the dtype in which elements of dtype `dtype` are copied: another dtype if `dtype` has no C type.  Sets *each
   to the number of elements of the returned dtype that form one element of `dtype`. */
OPDI_INTERNAL opd_scalar_type opdi_nest_unit(opd_scalar_type dtype, int *each) {
    *each = opd_dtype_is_complex(dtype) ? 2 : 1;
    switch ((int)dtype) {
    case OPD_COMPLEX32: case OPD_UINT16: return OPD_INT16;
    case OPD_COMPLEX64: return OPD_FLOAT32;
    case OPD_COMPLEX128: return OPD_FLOAT64;
    case OPD_UINT32: return OPD_INT32;
    case OPD_UINT64: return OPD_INT64;
    default: return (opd_dtype_is_floating(dtype) && opd_dtype_size(dtype) == 1) || opdi_is_block((int)dtype)
        ? OPD_UINT8 : dtype;
    }
}
/* Sets *access to the elements at the address `data`, with the strides of `ndim` loops (NULL: all strides are 0).
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_access_set(opdi_access *access, const void *data, opd_scalar_type dtype, const int64_t *strides,
                                  int ndim) {
    opdi_buffer *const buffer = data ? opdi_buffer_at(opdi_recording_now, data)
        : opdi_buffer_new(opdi_recording_now, 0, OPDI_BUFFER_TEMPORARY);       /* an empty tensor has no address */
    int each;
    if (opdi_nest_unit(dtype, &each) != dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: %s cannot be compiled",
                        opdi_recording_now->what ? opdi_recording_now->what : "the graph", opd_dtype_name(dtype));
    }
    if (!buffer) {
        if (!opd_ok()) { return -1; }
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: a tensor from outside of the graph cannot be compiled",
                        opdi_recording_now->what ? opdi_recording_now->what : "the graph");
    }
    if (buffer->dtype == OPD_DTYPE_NONE) { buffer->dtype = dtype; }
    access->buffer = buffer;
    access->dtype = dtype;
    access->offset = (int64_t)(((uintptr_t)data & (((uintptr_t)1 << OPDI_NEST_SHIFT) - 1)) /
                               opd_dtype_size(dtype));
    memset(access->strides, 0, sizeof access->strides);
    if (strides) { memcpy(access->strides, strides, (size_t)ndim * sizeof *strides); }
    return 0;
}
/* Returns a load of an element of a tensor: its index in dim i is the index of loop by[i], or 0 if by[i] is -1.  On
   failure, returns NULL and sets an error. */
OPDI_INTERNAL opdi_expr *opdi_expr_load(const opd_tensor *tensor, const int *by) {
    opdi_expr *const load = opdi_expr_new(OPDI_EXPR_LOAD, opd_dtype(tensor));
    if (!load || opdi_access_set(&load->access, opd_device_data(tensor, OPD_LAZY), opd_dtype(tensor), NULL, 0)) {
        return NULL;
    }
    for (int i = 0; i < opd_ndim(tensor); i++) {
        if (by[i] >= 0) { load->access.strides[by[i]] += opd_strides(tensor)[i]; }
    }
    return load;
}
OPDI_INTERNAL int opdi_nest_out(opdi_nest *nest, const opd_tensor *tensor, const int *by) {
    if (!nest || !tensor ||
        opdi_access_set(&nest->out, opd_device_data(tensor, OPD_LAZY), opd_dtype(tensor), NULL, 0)) { return -1; }
    for (int i = 0; i < opd_ndim(tensor); i++) {
        if (by[i] >= 0) { nest->out.strides[by[i]] += opd_strides(tensor)[i]; }
    }
    return 0;
}

//== memory, copies and pointwise formulas of the lazy device ==========================================================

OPDI_INTERNAL void *opdi_lazy_alloc(void *user, int index, size_t bytes) {
    (void)user;
    (void)index;
    opdi_recording *const recording = opdi_recording_now;
    if (!recording || sizeof(uintptr_t) < 8 || bytes >> OPDI_NEST_SHIFT) { return NULL; }
    opdi_buffer *const buffer = opdi_buffer_new(recording, bytes, OPDI_BUFFER_TEMPORARY);
    return buffer ? opdi_buffer_address(buffer) : NULL;
}
OPDI_INTERNAL void opdi_lazy_free(void *user, int index, void *data, size_t bytes) {
    (void)user;
    (void)index;
    (void)data;
    (void)bytes;
}
/* Records a copy of bytes inside the lazy device as a copy of elements.  Returns 0, or -1 and sets an error. */
static int opdi_lazy_copy_inside(void *to, const void *from, size_t bytes) {
    const opdi_buffer *const known = opdi_buffer_at(opdi_recording_now, from);
    const opdi_buffer *const other = opdi_buffer_at(opdi_recording_now, to);
    const opd_scalar_type seen = known && known->dtype != OPD_DTYPE_NONE ? known->dtype
        : other ? other->dtype : OPD_DTYPE_NONE;
    int each;
    const bool fits = seen != OPD_DTYPE_NONE && opdi_nest_unit(seen, &each) == seen &&
        (bytes | (uintptr_t)to | (uintptr_t)from) % opd_dtype_size(seen) == 0;
    const opd_scalar_type dtype = fits ? seen : OPD_UINT8;
    const int64_t size = (int64_t)(bytes / opd_dtype_size(dtype)), one = 1;
    opdi_nest *const nest = opdi_nest_new(&size, 1, 0);
    opdi_expr *const load = opdi_expr_new(OPDI_EXPR_LOAD, dtype);
    if (!nest || !load || opdi_access_set(&nest->out, to, dtype, &one, 1) ||
        opdi_access_set(&load->access, from, dtype, &one, 1)) { return -1; }
    return opdi_nest_add(nest, load);
}
/* Records a copy to the lazy device.  Data from the host becomes a constant.  Each run copies it, so that the graph may
   change the copy.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lazy_copy(void *user, void *to, int to_index, const void *from, int from_index, size_t bytes) {
    opdi_recording *const recording = opdi_recording_now;
    (void)user;
    if (!recording) {
        return opd_fail(OPD_ERROR_ARGUMENT, "the lazy device can only be used while a graph is compiled");
    }
    if (to_index < 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "the graph reads the number in a computed tensor: operators that depend on "
                        "data cannot be compiled");
    }
    if (from_index >= 0) { return opdi_lazy_copy_inside(to, from, bytes); }
    opdi_buffer *const buffer = opdi_buffer_new(recording, bytes, OPDI_BUFFER_CONSTANT);
    void *const data = buffer ? opdi_recording_alloc(recording, bytes) : NULL;
    if (!data) { return -1; }
    memcpy(data, from, bytes);
    buffer->data = data;
    return opdi_lazy_copy_inside(to, opdi_buffer_address(buffer), bytes);
}
OPDI_INTERNAL const char *const opdi_formula_names[] = {
#define OPDI_FORMULA_NAME(name, inputs, kind, formula) OPDI_TEXT(#name),
    OPD_FORMULAS_ALL(OPDI_FORMULA_NAME) OPD_FORMULAS_FLOAT(OPDI_FORMULA_NAME)
    OPD_FORMULAS_INT_OWN(OPDI_FORMULA_NAME) "copy",
    OPDI_NEST_FORMULAS(OPDI_FORMULA_NAME)
};
OPDI_HAS_COUNT(opdi_formula_names, OPDI_FORMULAS);
OPDI_INTERNAL const char *const opdi_formula_kinds[] = {
#define OPDI_FORMULA_KIND(name, inputs, kind, formula) #kind,
    OPD_FORMULAS_ALL(OPDI_FORMULA_KIND) OPD_FORMULAS_FLOAT(OPDI_FORMULA_KIND)
    OPD_FORMULAS_INT_OWN(OPDI_FORMULA_KIND) "W",
    OPDI_NEST_FORMULAS(OPDI_FORMULA_KIND)
};
OPDI_INTERNAL bool opdi_c_writes(const opdi_expr *expr);
OPDI_INTERNAL const char *opdi_formula_text(const opdi_expr *expr);
OPDI_INTERNAL bool opdi_c_has(const char *name);
/* Returns whether all words `macro`, such as "OPD_FN(", in a text have one of the names in `names` behind them, or, if
   `same` is true, that of a helper for the mode of same bits. */
static bool opdi_c_calls_only(const char *text, const char *macro, const char *names, bool same) {
    while ((text = strstr(text, macro)) != NULL) {
        char name[32], full[64];
        text += strlen(macro);
        const int length = (int)strcspn(text, ")");
        (void)snprintf(name, sizeof name, " %.*s ", length, text);
        (void)snprintf(full, sizeof full, "%s%.*s_f32", strncmp(text, "same_", 5) == 0 ? "" : "same_", length, text);
        if (!strstr(names, name) && !(same && opdi_c_has(full))) { return false; }
    }
    return true;
}
/* Returns whether a graph is written as C that calls no operators and gives the bits of the mode of same bits: then the
   text adds and rounds as kernels do. */
OPDI_INTERNAL bool opdi_same_writes(void) {
    const opdi_recording *const recording = opdi_recording_now;
    return recording && !recording->calls && !recording->open && opd_same_bits();
}
/* Returns whether the C text of a formula rounds: OPDI_ROUNDS_NEVER, OPDI_ROUNDS_SAME if it gives the bits that the
   operator gives in the mode of same bits, or OPDI_ROUNDS_ELSE.  A sum, product or quotient is rounded where the text
   has it.  Functions have other polynomials in C than in the library, and formulas of kind D are computed in double
   there. */
OPDI_INTERNAL int opdi_c_rounds(const opdi_expr *expr) {
    const char *const text = opdi_formula_text(expr);
    const bool same = expr->dtype == OPD_FLOAT32 && opdi_same_writes();
    if (expr->dtype == OPD_INT64) { return OPDI_ROUNDS_NEVER; }
    if (!opdi_c_calls_only(text, "OPD_FN(", " fabs trunc floor ceil nearbyint copysign sqrt fmod nextafter ", same) ||
        !opdi_c_calls_only(text, "OPD_H(", " relu6 clamp nan_to_num as_bf16 as_f16 remainder div_floor ", same)) {
        return OPDI_ROUNDS_ELSE;
    }
    if (same && (strchr("NM", *opdi_formula_kinds[expr->formula]) || strcmp(text, "OPD_H(gelu)(x)") == 0 ||
                 strncmp(text, "OPD_H(same_", 11) == 0)) { return OPDI_ROUNDS_SAME; }
    if (!strpbrk(text, "*/+") && !strstr(text, " - ") && !strstr(text, "OPD_ADD") && !strstr(text, "OPD_SUB") &&
        !strstr(text, "OPD_MUL") && !strstr(text, "sqrt") && !strstr(text, "remainder") && !strstr(text, "div_floor")) {
        return OPDI_ROUNDS_NEVER;
    }
    return strcmp(opdi_formula_kinds[expr->formula], "D") == 0 ? OPDI_ROUNDS_ELSE : OPDI_ROUNDS_SAME;
}
/* Sets the error of an operator whose C text gives other bits than the operator.  Returns -1. */
OPDI_INTERNAL int opdi_same_refuse(const char *what) {
    return opd_fail(OPD_ERROR_NO_KERNEL, "%s cannot be written in C in the mode of same bits: the C text gives other "
                    "bits; end the mode (opd_same_bits_set), or let the code call the operator (opd_c_options.calls)",
                    what);
}
/* Records a pointwise formula as a nest.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lazy_pointwise(void *user, int index, const opd_pointwise *pointwise) {
    opdi_recording *const recording = opdi_recording_now;
    int64_t sizes[OPD_MAX_DIMS];
    opdi_expr *in[3] = {NULL, NULL, NULL};
    const int n = pointwise->ndim;
    (void)user;
    (void)index;
    for (int i = 0; i < n; i++) { sizes[n - 1 - i] = pointwise->sizes[i]; }
    opdi_nest *const nest = opdi_nest_new(sizes, n, 0);
    if (!nest) { return -1; }
    if (!recording->what) { nest->what = opdi_formula_names[pointwise->formula]; }
    for (int k = 0; k < pointwise->noperands; k++) {
        const opd_operand *const operand = &pointwise->operands[k];
        int64_t strides[OPDI_NEST_DIMS];
        for (int i = 0; operand->data && i < n; i++) { strides[n - 1 - i] = operand->strides[i]; }
        if (k == 0) {
            if (opdi_access_set(&nest->out, operand->data, operand->dtype, strides, n)) { return -1; }
            continue;
        }
        if (!operand->data) {
            in[k - 1] = opdi_expr_number(pointwise->formula == OPD_FORMULA_copy ? operand->dtype : pointwise->compute,
                                         operand->f64[0], operand->i64);
            continue;
        }
        in[k - 1] = opdi_expr_new(OPDI_EXPR_LOAD, operand->dtype);
        if (!in[k - 1] || opdi_access_set(&in[k - 1]->access, operand->data, operand->dtype, strides, n)) {
            return -1;
        }
    }
    opdi_expr *value = in[0];
    if (pointwise->formula == OPD_FORMULA_isnan && pointwise->compute == OPD_INT64) {
        value = opdi_expr_number(OPD_INT64, 0, 0);
    } else if (pointwise->formula != OPD_FORMULA_copy) {
        value = opdi_expr_new(OPDI_EXPR_FORMULA, pointwise->compute);
        if (!value) { return -1; }
        value->formula = (int32_t)pointwise->formula;
        value->nin = pointwise->noperands - 1;
        for (int k = 0; k < value->nin; k++) {
            value->in[k] = opdi_expr_cast(opdi_expr_cast(in[k], pointwise->common), pointwise->compute);
            if (!value->in[k]) { return -1; }
        }
        for (int k = 0; k < 3; k++) {
            value->f64[k] = pointwise->compute == OPD_FLOAT32 ? (double)pointwise->f32[k] : pointwise->f64[k];
            value->i64[k] = pointwise->i64[k];
        }
        if (!opdi_c_writes(value)) {
            return opd_fail(OPD_ERROR_NO_KERNEL, "%s cannot be written in C", nest->what);
        }
        if (opd_same_bits() && opdi_c_rounds(value) == OPDI_ROUNDS_ELSE) { return opdi_same_refuse(nest->what); }
    }
    return opdi_nest_add(nest, opdi_expr_cast(value, nest->out.dtype));
}
