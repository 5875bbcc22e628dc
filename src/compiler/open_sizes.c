#include "compiler.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>open_sizes   graphs as C, for sizes that are arguments of the code
//
//  To compile a graph whose sizes are arguments, the graph is recorded several times, with different sizes.  Each
//  recording becomes a list of words, which must be equal for all sizes, and of numbers.  Each number must be a sum of
//  multiples of the sizes, their squares and products (see opdi_open_points).  The sizes are primes, because primes
//  rarely divide another number by chance.
//
//  The numbers of nests are found in the same way, from fused recordings.  The C text is also written for several
//  sizes; a number that differs between the texts is replaced by an expression.  Conditions on which fused code relies
//  must hold for all sizes.  Finally, the graph is recorded with some other sizes, among them the smallest, and these
//  recordings are compared with the list.
//----------------------------------------------------------------------------------------------------------------------

/* Records a graph or program with the inputs `inputs`.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_unit_record(opdi_unit *unit, const opdi_unit_source *source, const opd_value *inputs) {
    unit->earlier = source->earlier;
    if (source->graph) {
        opd_tensor **const all = (opd_tensor **)opdi_scope_alloc((size_t)(source->ninputs + 1) * sizeof *all);
        for (int i = 0; i < source->ninputs && all; i++) { all[i] = inputs[i].u.t; }
        return all ? opdi_unit_graph(unit, source->graph, all, source->ninputs) : -1;
    }
#if defined(OPD_NO_PROGRAMS)
    return -1;
#else
    return opdi_unit_program(unit, source->program, inputs);
#endif
}

/* The kinds of entries in a list.  WORD: a number that must be the same for all sizes.  NUMBER: any integer.  COUNT: an
   integer that is never negative.  SOME: an integer that is at least 1.  DOUBLE: a double.  FLOAT: a double that is
   used as a float. */
typedef enum opdi_open_kind {
    OPDI_OPEN_WORD, OPDI_OPEN_NUMBER, OPDI_OPEN_COUNT, OPDI_OPEN_SOME, OPDI_OPEN_DOUBLE, OPDI_OPEN_FLOAT
} opdi_open_kind;

//-- numbers that are computed from sizes ------------------------------------------------------------------------------

/* Returns a double that is computed from an integer as `form` (OPDI_FORM_...) says, by the same operations as in the
   generated code.  If `single` is true, the double is rounded to float. */
static double opdi_open_formed(int32_t form, int64_t number, bool single) {
    const double x = (double)number;
    const double value = form == OPDI_FORM_WHOLE ? x : form == OPDI_FORM_PART ? 1.0 / x
        : form == OPDI_FORM_ROOT ? sqrt(x) : 1.0 / sqrt(x);
    return single ? (double)(float)value : value;
}

//-- recordings as lists of words and numbers --------------------------------------------------------------------------

/* The state of a walk over a unit.  The walk makes the list of the unit's words and numbers, or, if `sets` is true,
   sets the unit's numbers from a list. */
typedef struct opdi_open_walk {
    opdi_open *open;
    opdi_open_list *list;
    const opdi_open_at *at;                       /* if `sets` is true: the sizes for which the numbers are set; NULL:
                                                     sets the maximum over all sizes */
    bool sets, differs;                           /* differs: true if a number that was visited depends on the sizes */
    int32_t next, exprs, buffers, *order;          /* next: the next entry to read; order: for each buffer, its position
                                                      in the order of the first uses */
    const char *what;
} opdi_open_walk;

/* Adds an entry to the list and returns it; if walk->sets is true, returns the next entry of the list instead.  On
   failure, returns NULL and sets an error. */
static opdi_open_entry *opdi_open_entry_next(opdi_open_walk *walk, opdi_open_kind kind, int64_t value,
                                             const char *why) {
    opdi_open_list *const list = walk->list;
    if (walk->sets) { return walk->next < list->count ? &list->entries[walk->next++] : NULL; }
    if (list->count == list->capacity) {
        const int32_t capacity = OPDI_MAX(2 * list->capacity, 1024);
        opdi_open_entry *const all = (opdi_open_entry *)opdi_arena_alloc(&walk->open->arena,
                                                                         (size_t)capacity * sizeof *all);
        if (!all) { return NULL; }
        if (list->count) { memcpy(all, list->entries, (size_t)list->count * sizeof *all); }
        list->entries = all;
        list->capacity = capacity;
    }
    opdi_open_entry *const entry = &list->entries[list->count++];
    memset(entry, 0, sizeof *entry);
    entry->value = value;
    entry->kind = (int32_t)kind;
    entry->what = walk->what;
    entry->why = why;
    return entry;
}
/* Adds a word, which must not depend on the sizes, to the list.  `why` is the error if recordings differ in this word.
   Returns the word in the list. */
static int64_t opdi_open_word(opdi_open_walk *walk, int64_t word, const char *why) {
    const opdi_open_entry *const entry = opdi_open_entry_next(walk, OPDI_OPEN_WORD, word, why);
    return entry ? entry->value : word;
}
/* Adds a number to the list or, if walk->sets is true, sets *number from the list.  Returns whether the number depends
   on the sizes. */
static bool opdi_open_put(opdi_open_walk *walk, int64_t *number, opdi_open_kind kind) {
    const opdi_open_entry *const entry = opdi_open_entry_next(walk, kind, *number, "a number is not a sum of multiples "
                                                              "of open sizes, their squares and products");
    if (!entry || !entry->terms) { return false; }
    if (walk->sets) {
        *number = walk->at ? opdi_open_number(entry->terms, walk->at)
            : (int64_t)opdi_open_bound(walk->open, entry->terms, true);
    }
    walk->differs = true;
    return true;
}
/* Adds expr->f64[k] to the list or, if walk->sets is true, sets it from the list. */
static void opdi_open_put_double(opdi_open_walk *walk, opdi_expr *expr, int k) {
    const bool single = expr->dtype != OPD_FLOAT64;
    int64_t bits;
    memcpy(&bits, &expr->f64[k], sizeof bits);
    const opdi_open_entry *const entry = opdi_open_entry_next(walk, single ? OPDI_OPEN_FLOAT : OPDI_OPEN_DOUBLE, bits,
        "a value, or the way to compute it, depends on the open size");
    if (!entry || !walk->sets) { return; }
    expr->forms[k] = (int8_t)entry->form;
    if (!entry->terms) { return; }
    const int64_t number = walk->at ? opdi_open_number(entry->terms, walk->at) : 1;
    expr->i64[k] = number;
    expr->f64[k] = opdi_open_formed(entry->form, number, entry->kind == OPDI_OPEN_FLOAT);
    walk->differs = true;
}
/* Adds the number of a buffer to the list and, at the buffer's first use, its properties. */
static void opdi_open_buffer(opdi_open_walk *walk, const opdi_buffer *buffer) {
    static const char why[] = "the steps of the computation depend on the open size";
    static const char known[] = "numbers that must be known before the run depend on the open size";
    if (!buffer) {
        (void)opdi_open_word(walk, -1, why);
        return;
    }
    const bool met = walk->order[buffer->id] != 0;
    if (!met) { walk->order[buffer->id] = ++walk->buffers; }
    (void)opdi_open_word(walk, walk->order[buffer->id], why);
    if (met) { return; }
    (void)opdi_open_word(walk, buffer->role * 65536 + (buffer->dtype + 1) * 2 + buffer->output, why);
    if (buffer->role == OPDI_BUFFER_INPUT) { (void)opdi_open_word(walk, buffer->index, why); }
    if (buffer->role != OPDI_BUFFER_CONSTANT) { return; }
    const bool known_by_name = buffer->tensor && buffer->bytes > 65536;  /* each recording may make small constants
                                                                            anew, so they are compared by their
                                                                            contents */
    uint64_t hash = known_by_name ? (uint64_t)(uintptr_t)buffer->tensor : 0;
    for (size_t i = 0; i < buffer->bytes && !known_by_name && buffer->data; i += 8) {
        uint64_t part = 0;
        memcpy(&part, (const char *)buffer->data + i, OPDI_MIN(buffer->bytes - i, (size_t)8));
        hash = (hash ^ part) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    (void)opdi_open_word(walk, (int64_t)buffer->bytes, known);
    (void)opdi_open_word(walk, (int64_t)hash, known);
}
/* Adds an access to the list or, if walk->sets is true, sets it from the list.  Ignores the strides of the loops in the
   mask `ones`, which have one iteration.  Returns the mask of the loops whose strides depend on the sizes. */
static uint32_t opdi_open_access(opdi_open_walk *walk, opdi_access *access, int ndim, uint32_t ones) {
    uint32_t differ = 0;
    opdi_open_buffer(walk, access->buffer);
    (void)opdi_open_word(walk, access->dtype, "a dtype depends on the open size");
    (void)opdi_open_put(walk, &access->offset, OPDI_OPEN_NUMBER);
    for (int i = 0; i < ndim; i++) {
        if (ones >> i & 1) { continue; }
        if (opdi_open_put(walk, &access->strides[i], OPDI_OPEN_NUMBER)) { differ |= 1u << i; }
    }
    return differ;
}
/* Adds an expression to the list or, if walk->sets is true, sets its numbers from the list. */
static void opdi_open_expr(opdi_open_walk *walk, opdi_expr *expr, int ndim, uint32_t ones) {
    static const char why[] = "a value, or the way to compute it, depends on the open size";
    const bool met = expr && expr->round == opdi_expr_round;
    (void)opdi_open_word(walk, !expr ? 0 : met ? -expr->order : 1 + (int64_t)expr->kind, why);
    if (!expr || met) { return; }
    const bool floats = opd_dtype_is_floating(expr->dtype);
    const int32_t formula = expr->kind == OPDI_EXPR_FORMULA ? expr->formula : 0;
    expr->round = opdi_expr_round;
    expr->order = ++walk->exprs;
    (void)opdi_open_word(walk, ((int64_t)formula * 64 + expr->nin * 2 + expr->wraps) * 256 + expr->dtype, why);
    if (expr->kind == OPDI_EXPR_LOAD || expr->kind == OPDI_EXPR_COUNT) {
        (void)opdi_open_access(walk, &expr->access, ndim, ones);
    }
    for (int i = 0; i < 3 && (expr->kind == OPDI_EXPR_FORMULA || expr->kind == OPDI_EXPR_NUMBER); i++) {
        if (floats) { opdi_open_put_double(walk, expr, i); }
        else if (opdi_open_put(walk, &expr->i64[i], OPDI_OPEN_NUMBER)) { expr->forms[i] = OPDI_FORM_WHOLE; }
    }
    for (int i = 0; i < expr->nin; i++) {
        (void)opdi_open_put(walk, &expr->index_strides[i], OPDI_OPEN_NUMBER);
        (void)opdi_open_put(walk, &expr->index_sizes[i], OPDI_OPEN_NUMBER);
        opdi_open_expr(walk, expr->in[i], ndim, ones);
    }
}
/* Adds a nest to the list or, if walk->sets is true, sets its numbers from the list. */
static void opdi_open_nest(opdi_open_walk *walk, opdi_nest *nest) {
    static const char why[] = "the way to compute it depends on the open size";
    const int inner = nest->ndim - nest->nreduce;
    uint32_t ones = 0;
    walk->what = nest->what;
    walk->differs = false;
    opdi_expr_round++;
    for (int i = 0; i < nest->ndim; i++) { ones |= nest->sizes[i] == 1 ? 1u << i : 0; }
    (void)opdi_open_word(walk, nest->ndim * 64 + nest->nreduce, why);
    (void)opdi_open_word(walk, (int64_t)nest->reduction * 2 + nest->follows, why);
    ones = (uint32_t)opdi_open_word(walk, ones, why);
    nest->open_loops = 0;
    for (int i = 0; i < nest->ndim; i++) {
        if (opdi_open_put(walk, &nest->sizes[i], i < inner ? OPDI_OPEN_COUNT : OPDI_OPEN_SOME)) {
            nest->open_loops |= 1u << i;
        }
    }
    nest->open_strides = opdi_open_access(walk, &nest->out, nest->ndim, ones);
    opdi_open_expr(walk, nest->value, nest->ndim, ones);
    opdi_open_expr(walk, nest->finish, nest->ndim, ones);
    opdi_open_expr(walk, nest->place, nest->ndim, ones);
    nest->open = walk->differs;
}
static void opdi_open_ports(opdi_open_walk *walk, opdi_unit_port *ends, int count) {
    static const char why[] = "the dims of a result, or how many there are, depend on the open size";
    (void)opdi_open_word(walk, count, why);
    for (int i = 0; i < count; i++) {
        uint32_t ones = 0;
        for (int k = 0; k < ends[i].ndim; k++) { ones |= ends[i].sizes[k] == 1 ? 1u << k : 0; }
        (void)opdi_open_word(walk, ends[i].ndim * 256 + ends[i].dtype, why);
        ones = (uint32_t)opdi_open_word(walk, ones, why);
        opdi_open_buffer(walk, ends[i].buffer);
        for (int k = 0; k < ends[i].ndim; k++) {
            (void)opdi_open_put(walk, &ends[i].sizes[k], OPDI_OPEN_COUNT);
            if (ones >> k & 1) { continue; }
            (void)opdi_open_put(walk, &ends[i].strides[k], OPDI_OPEN_NUMBER);
        }
    }
}
/* Adds the words and numbers of a unit to the list: of its nests, inputs and outputs, groups, and the conditions on
   which the fused code relies.  If walk->sets is true, sets the unit's numbers from the list instead.  Returns 0, or -1
   and sets an error. */
static int opdi_open_unit(opdi_open_walk *walk, opdi_unit *unit) {
    static const char whether[] = "whether it is computed depends on the open size";
    static const char together[] = "which steps are computed together depends on the open size";
    const size_t count = (size_t)unit->recording.nbuffers + 1;
    walk->order = (int32_t *)opdi_scope_alloc(count * sizeof *walk->order);
    if (!walk->order) { return -1; }
    memset(walk->order, 0, count * sizeof *walk->order);
    for (opdi_nest *nest = unit->recording.first; nest; nest = nest->next) {
        (void)opdi_open_word(walk, 1, whether);
        opdi_open_nest(walk, nest);
    }
    (void)opdi_open_word(walk, 0, whether);
    opdi_open_ports(walk, unit->inputs, unit->ninputs);
    opdi_open_ports(walk, unit->outputs, unit->noutputs);
    for (const opdi_group *group = unit->groups; group; group = group->next) {
        walk->what = group->nests[0]->what;
        (void)opdi_open_word(walk, group->nnests * 64 + group->outer + 1, together);
    }
    (void)opdi_open_word(walk, 0, together);
    (void)opdi_open_word(walk, unit->recording.nfacts, together);
    for (int i = 0; i < unit->recording.nfacts && !walk->sets; i++) {
        opdi_open_entry *const entry = opdi_open_entry_next(walk, OPDI_OPEN_COUNT, unit->recording.facts[i].more -
                                                            unit->recording.facts[i].less, together);
        if (!entry) { return -1; }
    }
    return opd_ok() ? 0 : -1;
}
/* Fills `list` with the words and numbers of a recorded unit.  Returns 0, or -1 and sets an error. */
static int opdi_open_list_unit(opdi_open *open, opdi_unit *unit, opdi_open_list *list) {
    opdi_open_walk walk;
    memset(&walk, 0, sizeof walk);
    list->count = 0;
    walk.open = open;
    walk.list = list;
    return opdi_open_unit(&walk, unit);
}
static int opdi_open_reject(const opdi_open *open, const opdi_open_entry *entry, const char *why) {
    return opd_fail(OPD_ERROR_ARGUMENT, "%s: with an open size: %s: %s", open->source->what,
                    entry->what ? entry->what : "the graph", why);
}
/* Returns the index of the first entry in which two lists differ; if `words` is true, only differences between kinds
   and between words count.  Returns -1 if there is none. */
static int32_t opdi_open_differs(const opdi_open_list *one, const opdi_open_list *other, bool words) {
    for (int32_t i = 0; i < one->count; i++) {
        const opdi_open_entry *const a = &one->entries[i], *const b = &other->entries[i];
        if (i == other->count || a->kind != b->kind ||
            ((a->kind == OPDI_OPEN_WORD || !words) && a->value != b->value)) { return i; }
    }
    return one->count < other->count ? one->count - 1 : -1;
}
/* Finds how a floating-point number, entry number `at` of the lists, is computed from an integer.  Sets entry->form,
   and sets *terms to the terms of the integer.  If the number is a float, also tries to round it to float.  Returns
   false if it finds no form. */
static bool opdi_open_fit_double(const opdi_open *open, int32_t at, opdi_open_entry *entry, opdi_open_terms *terms) {
    const bool single = entry->kind == OPDI_OPEN_FLOAT;
    for (int32_t way = 0; way < (single ? 8 : 4); way++) {
        const int32_t form = OPDI_FORM_WHOLE + way % 4;
        int64_t numbers[OPDI_OPEN_POINTS];
        bool fits = true;
        for (int k = 0; k < open->npoints && fits; k++) {
            const double value = opdi_double((uint64_t)open->lists[k].entries[at].value);
            const double whole = form == OPDI_FORM_WHOLE ? value : form == OPDI_FORM_PART ? 1 / value
                : form == OPDI_FORM_ROOT ? value * value : 1 / (value * value);
            fits = fabs(whole) < 1e15 && fabs(whole) > 0.5;
            numbers[k] = fits ? (int64_t)(whole < 0 ? whole - 0.5 : whole + 0.5) : 0;
            fits = fits && opdi_open_formed(form, numbers[k], way > 3) == value;
        }
        if (!fits || !opdi_open_fit(open, open->points, numbers, terms)) { continue; }
        entry->form = form;
        entry->kind = way > 3 ? OPDI_OPEN_FLOAT : OPDI_OPEN_DOUBLE;
        return true;
    }
    return false;
}
/* Joins the lists for all sizes into one list.  A number that differs between the lists becomes a sum of multiples of
   the sizes, their squares and products.  Returns 0, or -1 and sets an error. */
static int opdi_open_join(opdi_open *open, opdi_open_list *joined) {
    *joined = open->lists[0];
    for (int k = 1; k < open->npoints; k++) {
        const int32_t at = opdi_open_differs(joined, &open->lists[k], true);
        if (at >= 0) { return opdi_open_reject(open, &joined->entries[at], joined->entries[at].why); }
    }
    for (int32_t i = 0; i < joined->count; i++) {
        opdi_open_entry *const entry = &joined->entries[i];
        int64_t numbers[OPDI_OPEN_POINTS];
        bool same = true;
        for (int k = 0; k < open->npoints; k++) {
            numbers[k] = open->lists[k].entries[i].value;
            same = same && numbers[k] == numbers[0];
        }
        if (same && entry->kind != OPDI_OPEN_COUNT && entry->kind != OPDI_OPEN_SOME) { continue; }
        opdi_open_terms *const terms = (opdi_open_terms *)opdi_arena_alloc(&open->arena, sizeof *terms);
        if (!terms) { return -1; }
        const bool doubles = entry->kind == OPDI_OPEN_DOUBLE || entry->kind == OPDI_OPEN_FLOAT;
        if (doubles ? !opdi_open_fit_double(open, i, entry, terms)
            : !opdi_open_fit(open, open->points, numbers, terms)) {
            return opdi_open_reject(open, entry, entry->why);
        }
        const double least = entry->kind == OPDI_OPEN_COUNT ? 0 : entry->kind == OPDI_OPEN_SOME ? 1
            : -4503599627370496.0;
        if (opdi_open_bound(open, terms, false) < least || opdi_open_bound(open, terms, true) > 4503599627370496.0) {
            return opdi_open_reject(open, entry,
                                    entry->kind == OPDI_OPEN_SOME ? "it is empty for some of the open sizes"
                                    : entry->why);
        }
        if (!same) { entry->terms = terms; }
    }
    memset(&open->lists[0], 0, sizeof open->lists[0]);
    return 0;
}

/* Enlarges a temporary buffer, so that it has the bytes that an access can reach. */
static void opdi_open_extent(const opdi_nest *nest, const opdi_access *access, const opdi_expr *indices, int ndim) {
    int64_t last = access->offset;
    for (int i = 0; i < ndim; i++) {
        if (nest->sizes[i] < 1) { return; }
        last += OPDI_MAX(access->strides[i], 0) * (nest->sizes[i] - 1);
    }
    for (int i = 0; indices && i < indices->nin; i++) {
        last += OPDI_MAX(indices->index_strides[i], 0) * (indices->index_sizes[i] - 1);
    }
    const size_t bytes = (size_t)(last + 1) * opd_dtype_size(access->dtype);
    opdi_buffer *const buffer = access->buffer;
    if (buffer->role == OPDI_BUFFER_TEMPORARY) { buffer->bytes = OPDI_MAX(buffer->bytes, bytes); }
}
static void opdi_open_extents(const opdi_nest *nest, opdi_expr *expr) {
    if (!expr || expr->round == opdi_expr_round) { return; }
    expr->round = opdi_expr_round;
    if (expr->kind == OPDI_EXPR_LOAD) { opdi_open_extent(nest, &expr->access, expr, nest->ndim); }
    for (int i = 0; i < expr->nin; i++) { opdi_open_extents(nest, expr->in[i]); }
}
/* Sets the numbers of a unit from a list, to the numbers for the sizes `at`; if `at` is NULL, to the maxima over all
   sizes.  Returns 0, or -1 and sets an error. */
static int opdi_open_set(opdi_open *open, opdi_unit *unit, opdi_open_list *list, const opdi_open_at *at) {
    opdi_open_walk walk;
    memset(&walk, 0, sizeof walk);
    walk.open = open;
    walk.list = list;
    walk.at = at;
    walk.sets = true;
    for (int i = 0; i < unit->recording.nbuffers; i++) {
        opdi_buffer *const buffer = unit->recording.buffers[i];
        if (buffer->role == OPDI_BUFFER_TEMPORARY) { buffer->bytes = 0; }
    }
    if (opdi_open_unit(&walk, unit)) { return -1; }
    for (opdi_nest *nest = unit->recording.first; nest; nest = nest->next) {
        opdi_open_extent(nest, &nest->out, nest->place, nest->ndim - nest->nreduce);
        opdi_expr_round++;
        opdi_open_extents(nest, nest->value);
        opdi_open_extents(nest, nest->finish);
        opdi_open_extents(nest, nest->place);
    }
    return 0;
}

//-- decisions that depend on numbers ----------------------------------------------------------------------------------
//
//  While a graph is recorded, it compares and divides sizes.  A few recordings do not show at which sizes the result
//  would be different.  So the terms of the compared numbers are used to check that each result is the same for all
//  sizes.

typedef enum opdi_decision_kind {
    OPDI_DECISION_LT, OPDI_DECISION_LE, OPDI_DECISION_GT, OPDI_DECISION_GE, OPDI_DECISION_EQ, OPDI_DECISION_NE,
    OPDI_DECISION_NOT_ZERO, OPDI_DECISION_LESS, OPDI_DECISION_MORE, OPDI_DECISION_PARTS,
    OPDI_DECISION_OTHER, OPDI_DECISION_NOTHING    /* LESS, MORE: the minimum or maximum of numbers; PARTS: a quotient or
                                                     remainder; OTHER: another function with a bool result; NOTHING: a
                                                     result that does not matter */
} opdi_decision_kind;
/* Returns the number of integers in a value, which may be a list.  Stores the integers in `into`, unless `into` is
   NULL. */
static int32_t opdi_decision_numbers(const opd_value *value, int64_t *into) {
    const opd_value plain = opdi_value_plain(value);
    opd_value element = plain;
    const bool list = plain.tag == OPD_TAG_INTS || plain.tag == OPD_TAG_FLOATS || plain.tag == OPD_TAG_BOOLS;
    int32_t count = 0;
    for (int32_t i = 0; i < (list ? plain.n : 1); i++) {
        if (list) { element = opdi_list_element(&plain, i); }
        if (element.tag != OPD_TAG_INT && element.tag != OPD_TAG_BOOL && element.tag != OPD_TAG_FLOAT) { continue; }
        if (into && element.tag == OPD_TAG_FLOAT) { memcpy(&into[count], &element.u.d, sizeof *into); }
        else if (into) { into[count] = element.u.i; }
        count++;
    }
    return count;
}
/* Returns the kind of decision that a function makes.  The name of the function, such as "aten::lt.int(int a, int b) ->
   bool" or "_operator.lt", tells the kind. */
static opdi_decision_kind opdi_decision_of(const char *name) {
    static const struct { const char *word; opdi_decision_kind kind; } all[] = {
        {"lt", OPDI_DECISION_LT}, {"le", OPDI_DECISION_LE}, {"gt", OPDI_DECISION_GT}, {"ge", OPDI_DECISION_GE},
        {"eq", OPDI_DECISION_EQ}, {"ne", OPDI_DECISION_NE}, {"Bool", OPDI_DECISION_NOT_ZERO},
        {"max", OPDI_DECISION_MORE}, {"sym_max", OPDI_DECISION_MORE}, {"min", OPDI_DECISION_LESS},
        {"sym_min", OPDI_DECISION_LESS}, {"floordiv", OPDI_DECISION_PARTS}, {"mod", OPDI_DECISION_PARTS},
        {"remainder", OPDI_DECISION_PARTS}, {"fmod", OPDI_DECISION_PARTS},
        {"__round_to_zero_floordiv", OPDI_DECISION_PARTS}, {"__is__", OPDI_DECISION_NOTHING},
        {"__isnot__", OPDI_DECISION_NOTHING}, {"isinstance", OPDI_DECISION_NOTHING}};
    const char *const space = strstr(name, "::"), *const dot = strrchr(name, '.');
    const char *const word = space ? space + 2 : dot ? dot + 1 : name;
    const size_t length = strcspn(word, ".(");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strlen(all[i].word) == length && strncmp(word, all[i].word, length) == 0) { return all[i].kind; }
    }
    return OPDI_DECISION_OTHER;
}
/* A function of type opdi_graph_watch.  While a graph is recorded, it stores the result of a function of numbers as a
   decision. */
static void opdi_decision_note(const char *name, const opd_value *args, int nargs, const opd_value *ret) {
    opdi_recording *const recording = opdi_recording_now;
    opdi_decision_kind kind = opdi_decision_of(name);
    int32_t count = 0;
    bool floats = false;
    if ((ret->tag != OPD_TAG_BOOL && ret->tag != OPD_TAG_INT) || kind == OPDI_DECISION_NOTHING ||
        (ret->tag == OPD_TAG_INT && (kind < OPDI_DECISION_LESS || kind > OPDI_DECISION_PARTS))) { return; }
    for (int i = 0; i < nargs; i++) {
        count += opdi_decision_numbers(&args[i], NULL);
        const opd_value plain = opdi_value_plain(&args[i]);
        floats = floats || plain.tag == OPD_TAG_FLOAT || plain.tag == OPD_TAG_FLOATS;
    }
    if (!count || !recording) { return; }
    opdi_decision *const decision = (opdi_decision *)opdi_recording_alloc(recording, sizeof *decision);
    int64_t *const numbers = (int64_t *)opdi_recording_alloc(recording, (size_t)count * sizeof *numbers);
    if (!decision || !numbers) { return; }        /* memory ran out; the error is already set */
    decision->name = name;
    decision->kind = (int32_t)(floats ? OPDI_DECISION_OTHER : kind);
    decision->first = opdi_decision_numbers(&args[0], numbers);
    decision->numbers = numbers;
    decision->result = ret->u.i;
    decision->count = 0;
    for (int i = 0; i < nargs; i++) {
        decision->count += opdi_decision_numbers(&args[i], numbers + decision->count);
    }
    if (recording->last_decision) { recording->last_decision->next = decision; }
    else { recording->decisions = decision; }
    recording->last_decision = decision;
    recording->ndecisions++;
}
/* Copies the decisions of the recording with the sizes points[point] to open->decisions.  Returns 0, or -1 and sets an
   error. */
static int opdi_open_keep_decisions(opdi_open *open, int point, const opdi_recording *recording) {
    const size_t capacity = (size_t)recording->ndecisions + 1;
    opdi_decision *const all = (opdi_decision *)opdi_arena_alloc(&open->arena, capacity * sizeof *all);
    int32_t count = 0;
    for (const opdi_decision *decision = recording->decisions; decision && all; decision = decision->next) {
        const size_t bytes = (size_t)decision->count * sizeof *decision->numbers;
        all[count] = *decision;
        if (!(all[count].numbers = (int64_t *)opdi_arena_alloc(&open->arena, bytes + 8))) { return -1; }
        memcpy(all[count++].numbers, decision->numbers, bytes);
    }
    open->decisions[point] = all;
    open->ndecisions[point] = count;
    return all ? 0 : -1;
}
/* Sets numbers[k], for all k, to one number of decision `which` in the recording with the sizes points[k]: number `at`
   of its arguments, or its result if `at` is -1.  Returns whether the numbers differ. */
static bool opdi_open_decided(const opdi_open *open, int32_t which, int at, int64_t *numbers) {
    bool differ = false;
    for (int k = 0; k < open->npoints; k++) {
        const opdi_decision *const decision = &open->decisions[k][which];
        numbers[k] = at < 0 ? decision->result : decision->numbers[at];
        differ = differ || numbers[k] != numbers[0];
    }
    return differ;
}
/* Returns whether times * (a - b) - less >= 0 for all sizes.  a[k] and b[k] are the numbers for the sizes points[k]; if
   `b` is NULL, b is 0. */
static bool opdi_open_always(const opdi_open *open, const int64_t *a, const int64_t *b, int64_t times, int64_t less) {
    int64_t numbers[OPDI_OPEN_POINTS];
    opdi_open_terms terms;
    for (int k = 0; k < open->npoints; k++) { numbers[k] = times * (a[k] - (b ? b[k] : 0)) - less; }
    return opdi_open_fit(open, open->points, numbers, &terms) && opdi_open_bound(open, &terms, false) >= 0 &&
        opdi_open_bound(open, &terms, true) <= 4503599627370496.0;
}
/* Returns whether the comparison `kind` of a with b has the result `truth` for all sizes. */
static bool opdi_open_compares(const opdi_open *open, int32_t kind, bool truth, const int64_t *a, const int64_t *b) {
    const bool less = kind == OPDI_DECISION_LT || kind == OPDI_DECISION_GE;
    const int64_t turn = (less || kind == OPDI_DECISION_LE) == truth ? 1 : -1;
    opdi_open_terms terms;
    if (kind == OPDI_DECISION_EQ || kind == OPDI_DECISION_NE) {
        bool same = true;
        for (int k = 0; k < open->npoints; k++) { same = same && a[k] == b[k]; }
        const bool equal = (kind == OPDI_DECISION_EQ) == truth;
        if (same) { return equal && opdi_open_fit(open, open->points, a, &terms); }
        return !equal && (opdi_open_always(open, b, a, 1, 1) ||
                                                      opdi_open_always(open, b, a, -1, 1));
    }
    if (kind == OPDI_DECISION_GT || kind == OPDI_DECISION_GE) {
        return opdi_open_always(open, a, b, truth ? 1 : -1, (kind == OPDI_DECISION_GT) == truth);
    }
    return opdi_open_always(open, b, a, turn, (kind == OPDI_DECISION_LT) == truth);
}
/* Returns whether the following holds for all sizes: the floor of a / b is a sum of multiples of the sizes, their
   squares and products, and the remainder is in [0, b). */
static bool opdi_open_parts(const opdi_open *open, const int64_t *a, const int64_t *b) {
    int64_t rest[OPDI_OPEN_POINTS], whole[OPDI_OPEN_POINTS];
    opdi_open_terms terms;
    for (int k = 0; k < open->npoints; k++) {
        if (b[k] < 1) { return false; }
        rest[k] = (a[k] % b[k] + b[k]) % b[k];
        whole[k] = (a[k] - rest[k]) / b[k];
    }
    return opdi_open_fit(open, open->points, whole, &terms) && opdi_open_always(open, rest, NULL, 1, 0) &&
        opdi_open_always(open, b, rest, 1, 1);
}
/* Returns whether, for all sizes, the result of decision `which` is the maximum (if `more` is true) or the minimum of
   its `count` arguments. */
static bool opdi_open_extreme(const opdi_open *open, int32_t which, int32_t count, const int64_t *result, bool more) {
    for (int32_t i = 0; i < count; i++) {
        int64_t numbers[OPDI_OPEN_POINTS];
        (void)opdi_open_decided(open, which, i, numbers);
        if (!opdi_open_always(open, result, numbers, more ? 1 : -1, 0)) { return false; }
    }
    return true;
}
/* Returns whether two lists of sizes, the arguments of decision `which`, are equal for all sizes (if `equal` is true)
   or different for all sizes. */
static bool opdi_open_lists(const opdi_open *open, int32_t which, bool equal) {
    const opdi_decision *const decision = &open->decisions[0][which];
    const int32_t count = decision->first;
    int64_t a[OPDI_OPEN_POINTS], b[OPDI_OPEN_POINTS];
    if (decision->count != 2 * count) { return true; }          /* the lists have different lengths */
    for (int32_t i = 0; i < count; i++) {
        (void)opdi_open_decided(open, which, i, a);
        (void)opdi_open_decided(open, which, count + i, b);
        if (opdi_open_compares(open, OPDI_DECISION_EQ, equal, a, b) != equal) { return !equal; }
    }
    return equal;
}
/* Returns whether a decision has the same result for all sizes. */
static bool opdi_open_settled(const opdi_open *open, int32_t which) {
    const opdi_decision *const decision = &open->decisions[0][which];
    const int32_t kind = decision->kind;
    int64_t a[OPDI_OPEN_POINTS], b[OPDI_OPEN_POINTS], result[OPDI_OPEN_POINTS];
    opdi_open_terms terms;
    bool differ = false;
    for (int32_t i = 0; i < decision->count; i++) { differ = opdi_open_decided(open, which, i, a) || differ; }
    const bool truth = decision->result != 0, changes = opdi_open_decided(open, which, -1, result);
    if (!differ) { return !changes; }
    if (kind == OPDI_DECISION_LESS || kind == OPDI_DECISION_MORE || kind == OPDI_DECISION_PARTS) {
        if (!opdi_open_fit(open, open->points, result, &terms)) { return true; }       /* the result is not a
                                                                                                   polynomial of the
                                                                                                   sizes, so no recorded
                                                                                                   number can depend on
                                                                                                   it */
        if (kind != OPDI_DECISION_PARTS) {
            return opdi_open_extreme(open, which, decision->count, result, kind == OPDI_DECISION_MORE);
        }
    }
    if (changes && kind != OPDI_DECISION_PARTS) { return false; }
    if (decision->first != 1 && (kind == OPDI_DECISION_EQ || kind == OPDI_DECISION_NE)) {
        return opdi_open_lists(open, which, (kind == OPDI_DECISION_EQ) == truth);
    }
    (void)opdi_open_decided(open, which, 0, a);
    memset(b, 0, sizeof b);
    if (kind == OPDI_DECISION_NOT_ZERO && decision->count == 1) {
        return opdi_open_compares(open, OPDI_DECISION_NE, truth, a, b);
    }
    if (decision->count != 2 || kind >= OPDI_DECISION_OTHER || kind == OPDI_DECISION_NOT_ZERO) { return false; }
    (void)opdi_open_decided(open, which, 1, b);
    return kind == OPDI_DECISION_PARTS ? opdi_open_parts(open, a, b) : opdi_open_compares(open, kind, truth, a, b);
}
/* Checks that all recordings have made the same decisions, and that the decisions are the same for all sizes.  Returns
   0, or -1 and sets an error. */
static int opdi_open_decisions(const opdi_open *open) {
    for (int32_t i = 0; i < open->ndecisions[0]; i++) {
        const opdi_decision *const one = &open->decisions[0][i];
        bool same = true;
        for (int k = 1; k < open->npoints && same; k++) {
            const opdi_decision *const other = &open->decisions[k][i];
            same = i < open->ndecisions[k] && one->name == other->name && one->kind == other->kind &&
                one->count == other->count && one->first == other->first;
        }
        if (same && opdi_open_settled(open, i)) { continue; }
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: with an open size: %.*s: the result depends on the open size in "
                        "different ways for different sizes", open->source->what, (int)strcspn(one->name, "("),
                        one->name);
    }
    return 0;
}

//-- recordings --------------------------------------------------------------------------------------------------------

/* Fills `inputs` with values like the examples, but with the open sizes `at`.  The elements of tensors are not set,
   because nothing reads them.  Returns 0, or -1 and sets an error. */
static int opdi_open_inputs(const opdi_unit_source *source, const opdi_open_at *at, opd_value *inputs) {
    for (int i = 0; i < source->ninputs; i++) {
        int64_t sizes[OPD_MAX_DIMS];
        bool open = false;
        inputs[i] = source->inputs[i];
        if (inputs[i].tag != OPD_TAG_TENSOR) { continue; }
        opd_tensor *const tensor = inputs[i].u.t;
        for (int k = 0; k < opd_ndim(tensor); k++) {
            open = open || opdi_open_dim(source->sizes, i, k);
            sizes[k] = opdi_open_size(source->sizes, i, k, at, opd_size(tensor, k));
            if (sizes[k] < 0) {
                return opd_fail(OPD_ERROR_ARGUMENT, "%s: size %d of input %d is not possible for all sizes",
                                source->what, k, i);
            }
        }
        if (!open) { continue; }
        opd_tensor *const other = opd_tensor_wrap(opd_data(tensor), opd_ints_of(sizes, opd_ndim(tensor)),
                                                  opd_is_contiguous(tensor) ? NULL : opd_strides(tensor),
                                                  opd_dtype(tensor), NULL, NULL);
        if (!other) { return -1; }
        inputs[i] = opd_value_tensor(other);
    }
    return 0;
}
/* Checks that input i can have the open sizes that it is to have.  Returns 0, or -1 and sets an error. */
static int opdi_open_check_input(opdi_unit *unit, const opdi_unit_source *source, int i) {
    const opd_tensor *const tensor = source->inputs[i].tag == OPD_TAG_TENSOR ? source->inputs[i].u.t : NULL;
    bool any = false;
    for (int dim = 0; tensor && dim < opd_ndim(tensor); dim++) {
        if (!opdi_open_dim(source->sizes, i, dim)) { continue; }
        const int64_t *const strides = opd_strides(tensor);
        bool outer = true;
        for (int k = 0; k < opd_ndim(tensor); k++) { outer = outer && strides[k] <= strides[dim]; }
        if (!outer && !opd_is_contiguous(tensor)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: the strides of input %d depend on its open size", source->what,
                            i);
        }
        if (opd_numel(tensor) < 1) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: input %d has an open size, but no elements", source->what, i);
        }
        any = true;
    }
#if !defined(OPD_NO_PROGRAMS)
    const opd_graph *const graph = source->graph ? source->graph : source->program->graph;
#else
    const opd_graph *const graph = source->graph;
#endif
    return any ? opdi_unit_begins(unit, graph, tensor) : 0;
}
/* Checks the dims that options say to be open size k.  Returns 0, or -1 and sets an error. */
static int opdi_open_check_dims(const opdi_unit_source *source, int k) {
    const opdi_open_sizes *const sizes = source->sizes;
    int64_t size = 0;
    for (int i = 0; i < source->ninputs; i++) {
        const int dim = sizes->dims[k][i];
        const opd_tensor *const tensor = source->inputs[i].tag == OPD_TAG_TENSOR ? source->inputs[i].u.t : NULL;
        if (dim < 0) { continue; }
        if (!tensor || dim >= opd_ndim(tensor) || opd_numel(tensor) < 1 || (size && opd_size(tensor, dim) != size) ||
            (sizes->n > 1 && dim == sizes->dims[!k][i])) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: dim %d of input %d cannot be open: it does not exist, or has "
                            "another size than the open dim of another input", source->what, dim, i);
        }
        size = opd_size(tensor, dim);
    }
    return size ? 0 : opd_fail(OPD_ERROR_ARGUMENT, "%s: none of the inputs has an open dim", source->what);
}
/* Checks the open sizes against the example inputs.  Returns 0, or -1 and sets an error. */
static int opdi_open_check(opdi_open *open) {
    const opdi_unit_source *const source = open->source;
    for (int k = 0; k < open->n; k++) {
        const int64_t least = open->least.sizes[k], most = open->most.sizes[k];
        if (least < 1 || most < least || most < 2 || most > INT32_MAX) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: the range %lld to %lld is not possible for an open size: it must "
                            "begin at 1 or more, and end at 2 or more", source->what, (long long)least,
                            (long long)most);
        }
        if (!source->sizes->graph && opdi_open_check_dims(source, k)) { return -1; }
    }
    if (source->sizes->graph && opdi_graph_guard(source->sizes->graph, source->inputs, source->what, NULL)) {
        return -1;
    }
    for (int i = 0; i < source->ninputs; i++) {
        if (opdi_open_check_input(&open->units[0], source, i)) { return -1; }
    }
    return 0;
}
/* Records the graph with the open sizes `at` as open->units[which].  Returns 0, or -1 and sets an error. */
static int opdi_open_record(opdi_open *open, int which, const opdi_open_at *at) {
    opdi_unit *const unit = &open->units[which];
    const opdi_unit_source *const source = open->source;
    opd_value *const inputs = (opd_value *)opdi_scope_alloc((size_t)(source->ninputs + 1) * sizeof *inputs);
    opdi_unit_free(unit);
    memset(unit, 0, sizeof *unit);
    unit->what = source->what;
    unit->name = source->name ? source->name : "model";
    unit->nopen = open->n;
    unit->open = source->sizes;
    unit->file = !open->here;
    unit->here = open->here;
    unit->frozen = open->frozen;
    opdi_recording_now = &unit->recording;
    opdi_graph_watched = opdi_decision_note;
    const int rc = !inputs || opdi_open_inputs(source, at, inputs) || opdi_unit_record(unit, source, inputs) ||
        !opd_ok() ? -1 : 0;
    opdi_graph_watched = NULL;
    return rc;
}
/* Checks the list open->plain for the sizes `at`: records the graph with these sizes and compares the recording with
   the recording that the list describes.  Returns 0, or -1 and sets an error. */
static int opdi_open_holds(opdi_open *open, const opdi_open_at *at) {
    opdi_unit *const said = &open->units[0], *const seen = &open->units[1];
    opdi_open_list *const lists = open->lists;
    if (opdi_open_record(open, 0, &open->points[0]) || opdi_open_set(open, said, &open->plain, at)) { return -1; }
    for (opdi_nest *nest = said->recording.first, *next; nest; nest = next) {
        next = nest->next;                        /* skips nests without iterations, because recordings do not have
                                                     them */
        if (!opdi_nest_rounds(nest, nest->ndim - nest->nreduce)) { opdi_nest_remove(&said->recording, nest); }
    }
    said->recording.loose = true;
    if (opdi_unit_fuse_nests(said, false) || opdi_open_record(open, 1, at)) { return -1; }
    seen->recording.loose = true;
    if (opdi_unit_fuse_nests(seen, false) || opdi_open_list_unit(open, said, &lists[0]) ||
        opdi_open_list_unit(open, seen, &lists[1])) { return -1; }
    const int32_t where = opdi_open_differs(&lists[0], &lists[1], false);
    if (where < 0) { return 0; }
    const char *const what = lists[0].entries[where].what;
    return opd_fail(OPD_ERROR_ARGUMENT, "%s: with an open size: %s: the size %lld is computed in another way than "
                    "larger sizes: %s", open->source->what, what ? what : "the graph", (long long)at->sizes[0],
                    lists[0].entries[where].why);
}

//-- the C text --------------------------------------------------------------------------------------------------------

/* Writes the number that has the terms `terms` as a C expression, such as "(2 * open_size * open_size + 1)". */
static void opdi_open_expression(opdi_string *out, const opdi_open_terms *terms) {
    const bool alone = terms->count == 1 && !(terms->all[0].powers & (terms->all[0].powers - 1)) &&
        (terms->all[0].powers ? terms->all[0].times == 1 && !(terms->all[0].powers & 0x2222) : terms->all[0].times > 0);
    char part[40];
    if (!terms->count) { opdi_string_add(out, "0"); }
    if (terms->count && !alone) { opdi_string_add(out, "("); }
    for (int i = 0; i < terms->count; i++) {
        const int64_t times = terms->all[i].times, size = times < 0 ? -times : times;
        uint32_t powers = terms->all[i].powers;
        bool any = size != 1 || !powers;
        opdi_string_add(out, i ? times < 0 ? " - " : " + " : times < 0 ? "-" : "");
        (void)snprintf(part, sizeof part, "%lld", (long long)size);
        opdi_string_add(out, any ? part : "");
        for (int k = 0; powers; k++, powers >>= 4) {
            for (uint32_t j = powers & 15; j; j--) {
                opdi_string_add(out, any ? " * open_size" : "open_size");
                opdi_string_add(out, opdi_open_suffixes[k]);
                any = true;
            }
        }
    }
    if (terms->count && !alone) { opdi_string_add(out, ")"); }
}
static size_t opdi_open_letters(const char *text) {
    size_t length = 0;
    while (opdi_c_letter(text[length]) || (text[length] == '.' && length)) { length++; }
    return length;
}
/* Joins the texts for the sizes `points` into one text.  Replaces a number that differs by an expression.  Sets `most`
   as opdi_open_most does for all expressions.  Returns false if the texts differ in anything but numbers. */
static bool opdi_open_text(const opdi_open *open, opdi_string *out, const opdi_string *texts,
                           const opdi_open_at *points, double *most) {
    const int npoints = open->npoints;
    const char *at[OPDI_OPEN_POINTS];
    for (int i = 0; i < npoints; i++) { at[i] = texts[i].data; }
    while (*at[0]) {
        size_t length[OPDI_OPEN_POINTS];
        int64_t numbers[OPDI_OPEN_POINTS];
        opdi_open_terms terms;
        bool same = true, whole = true;
        for (int i = 0; i < npoints; i++) {
            length[i] = opdi_open_letters(at[i]);
            same = same && length[i] == length[0] && strncmp(at[i], at[0], length[0] ? length[0] : 1) == 0;
        }
        for (int i = 0; i < npoints && !same; i++) {
            whole = whole && length[i] && strspn(at[i], "0123456789") == length[i] && length[i] < 18;
            numbers[i] = whole ? strtoll(at[i], NULL, 10) : 0;
        }
        if (same) { opdi_string_add_n(out, at[0], length[0] ? length[0] : 1); }
        else if (whole && opdi_open_fit(open, points, numbers, &terms)) {
            opdi_open_expression(out, &terms);
            opdi_open_most(most, open, &terms);
        } else { return false; }
        for (int i = 0; i < npoints; i++) { at[i] += length[i] ? length[i] : 1; }
    }
    for (int i = 1; i < npoints; i++) { if (*at[i]) { return false; } }
    return !out->failed;
}
/* Adds a check to the text for machines on which a ptrdiff_t has 32 bits.  There, numbers could overflow although the
   sizes are in their ranges.  The check makes the code return 3 for such sizes. */
static void opdi_open_small(const opdi_open *open, opdi_string *text, const double *most) {
    static const char begin[] = "{ return 3; }\n";
    opdi_string all = {NULL, 0, 0, false};
    char part[80];
    double worst = 0;
    const char *at = text->data, *next = at;
    for (int code = 0; code < open->npowers; code++) {
        double product = most[code];
        for (int k = 0, rest = code; k < open->n; k++, rest /= 3) {
            for (int i = rest % 3; i; i--) { product *= (double)open->most.sizes[open->n - 1 - k]; }
        }
        worst += product;
    }
    while ((next = strstr(next, begin)) != NULL) { at = next += strlen(begin); }
    if (worst <= 2147483647.0 || text->failed || at == text->data) { return; }
    opdi_string_add_n(&all, text->data, (size_t)(at - text->data));
    opdi_string_add(&all, "    if (sizeof open_size < 8 &&   /* 32 bits hold no larger numbers */\n        0.0");
    for (int code = 0; code < open->npowers; code++) {
        if (most[code] <= 0) { continue; }
        (void)snprintf(part, sizeof part, " + %.0f.0", most[code]);
        opdi_string_add(&all, part);
        for (int k = 0, digit = open->npowers / 3; digit; k++, digit /= 3) {
            for (int i = code / digit % 3; i; i--) {
                (void)snprintf(part, sizeof part, " * (double)open_size%s", opdi_open_suffixes[k]);
                opdi_string_add(&all, part);
            }
        }
    }
    opdi_string_add(&all, " > 2147483647.0) { return 3; }\n");
    opdi_string_add(&all, at);
    opdi_string_free(text);
    *text = all;
}
/* Returns whether all C functions in a text that use open sizes have them as arguments. */
static bool opdi_open_given(const char *text) {
    bool inside = false, given = false;
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const size_t length = strcspn(line, "\n");
        const char *const name = strstr(line, "open_size");
        const bool names = name && name < line + length;
        if (length && line[length - 1] == '{' && (strncmp(line, "static ", 7) == 0 || strncmp(line, "int ", 4) == 0)) {
            inside = true;
            given = names;
        } else if (*line == '}') { inside = false; }
        else if (inside && names && !given) { return false; }
    }
    return true;
}
/* Returns a number that tells how a group is planned and written.  The number must be the same for all sizes. */
static int opdi_open_form(const opdi_group *group) {
    opdi_contraction all;
    if (!opdi_group_contracts(group)) { return 0; }
    opdi_contraction_of(&all, group->nests[0]);
    return 1 | all.tile << 1 | all.direct << 5 | all.left_early << 6 | all.right_early << 7;
}
/* Returns the number of dims of all outputs together. */
OPDI_INTERNAL int opdi_open_dims(const opdi_unit *unit) {
    int dims = 0;
    for (int i = 0; i < unit->noutputs; i++) { dims += unit->outputs[i].ndim; }
    return dims;
}
/* Stores the sizes and strides of the outputs for the sizes points[point] in `numbers`.  For the last point, finds
   their terms and stores them in unit->shapes.  Returns 0, or -1 and sets an error. */
static int opdi_open_shapes(opdi_open *open, opdi_unit *unit, const opdi_open_at *points, int point,
                            int64_t *numbers) {
    int count = 0;
    for (int i = 0; i < unit->noutputs; i++) {
        for (int k = 0; k < 2 * unit->outputs[i].ndim; k++) {
            const int64_t *const all = k % 2 ? unit->outputs[i].strides : unit->outputs[i].sizes;
            numbers[count++ * OPDI_OPEN_POINTS + point] = all[k / 2];
        }
    }
    if (point < open->npoints - 1) { return 0; }
    const size_t bytes = (size_t)(count + 1) * sizeof *unit->shapes;
    unit->shapes = (opdi_open_terms *)opdi_recording_alloc(&unit->recording, bytes);
    for (int i = 0; i < count && unit->shapes; i++) {
        if (opdi_open_fit(open, points, numbers + i * OPDI_OPEN_POINTS, &unit->shapes[i])) { continue; }
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the size of a result depends on the open size in another way than by "
                        "sums of multiples, squares and products", unit->what);
    }
    return unit->shapes ? 0 : -1;
}
/* Plans memory that is sufficient for all sizes, and writes the C text and the header.  Returns 0, or -1 and sets an
   error. */
static int opdi_open_texts(opdi_open *open, opdi_string *source, opdi_string *header) {
    static int64_t sizes[2][OPDI_OPEN_SIZES][4] = {
        {{10007, 10009, 10037, 10039}, {20011, 20021, 20023, 20029}},
        {{1009, 1013, 1019, 1021}, {2003, 2011, 2017, 2027}, {3001, 3011, 3019, 3023}, {4001, 4003, 4007, 4013}}};
    opdi_unit *const unit = &open->units[0];
    opdi_open_at points[OPDI_OPEN_POINTS];
    opdi_string texts[2][OPDI_OPEN_POINTS];
    double most[OPDI_OPEN_POWERS] = {0};
    bool same = true;
    memset(texts, 0, sizeof texts);
    (void)opdi_open_points(open, sizes[open->n > 2], points);
    int rc = opdi_open_set(open, unit, &open->fused, NULL);
    int *const forms = (int *)opdi_scope_alloc((size_t)(unit->ngroups + 1) * sizeof *forms);
    const int dims = opdi_open_dims(unit);
    int64_t *const numbers = (int64_t *)opdi_scope_alloc((size_t)(2 * dims + 1) * OPDI_OPEN_POINTS * sizeof *numbers);
    if (rc || !forms || !numbers || opdi_plan_memory(unit)) { return -1; }
    for (const opdi_group *group = unit->groups; group; group = group->next) {
        forms[group->id] = opdi_open_form(group);
    }
    for (int i = 0; i < open->npoints && rc == 0; i++) {
        rc = opdi_open_set(open, unit, &open->fused, &points[i]) ||
            opdi_open_shapes(open, unit, points, i, numbers) ? -1 : 0;
        for (const opdi_group *group = unit->groups; group && rc == 0; group = group->next) {
            same = same && forms[group->id] == opdi_open_form(group);
        }
        rc = rc || opdi_unit_text(unit, &texts[0][i], &texts[1][i]) ? -1 : 0;
    }
    if (rc == 0 && (!same || !opdi_open_text(open, source, texts[0], points, most) ||
                    !opdi_open_text(open, header, texts[1], points, most) ||
                    !opdi_open_given(source->data))) {
        rc = opd_fail(OPD_ERROR_ARGUMENT, "%s: the generated code depends on the open size in another way than by sums "
                      "of multiples, squares and products", unit->what);
    }
    if (rc == 0) { opdi_open_small(open, source, most); }
    for (int i = 0; i < OPDI_OPEN_POINTS; i++) {
        opdi_string_free(&texts[0][i]);
        opdi_string_free(&texts[1][i]);
    }
    return rc;
}

//-- compiling with open sizes -----------------------------------------------------------------------------------------

/* Checks that a program accepts the sizes `at`; if `at` is NULL, the smallest and the largest sizes.  Returns 0, or -1
   and sets an error. */
static int opdi_open_takes(const opdi_open *open, const opdi_open_at *at) {
    const opdi_unit_source *const source = open->source;
#if !defined(OPD_NO_PROGRAMS)
    for (int i = 0; i < 2 && source->program; i++) {
        opd_value *const inputs = (opd_value *)opdi_scope_alloc((size_t)(source->ninputs + 1) * sizeof *inputs);
        if (!inputs || opdi_open_inputs(source, at ? at : i ? &open->most : &open->least, inputs) ||
            opdi_program_takes(source->program, inputs)) { return -1; }
    }
#else
    (void)source;
    (void)at;
#endif
    return 0;
}
static bool opdi_open_is_prime(int64_t number) {
    int64_t by = 2;
    while (by * by <= number && number % by) { by++; }
    return by * by > number;
}
/* Returns the first prime p from `from` on, in steps of `step` (1 or -1).  If `apart` is true, (p + 1) / 2 must be
   prime, too.  The reason is that a graph may also use a size plus one, such as the length of a cache plus one token;
   this number then has few divisors. */
static int64_t opdi_open_prime(int64_t from, int step, bool apart) {
    while (from > 2 && (!opdi_open_is_prime(from) || (apart && !opdi_open_is_prime((from + 1) / 2)))) { from += step; }
    return from;
}
/* Returns the largest value of open size `which`, from `from` downward, that the program accepts.  If it accepts none
   above open->most, returns the value in open->most. */
static int64_t opdi_open_taken(const opdi_open *open, int which, int64_t from) {
    for (; from > open->most.sizes[which]; from--) {
        opdi_open_at at = open->most;
        at.sizes[which] = from;
        if (opdi_open_takes(open, &at) == 0) { break; }
        opd_error_clear();
    }
    return from;
}
/* Chooses the sizes to record (open->points).  Rounds 0 and 1 choose sizes above the largest requested size; or, if
   that is 4096 or more, or if more than two sizes are open, above the smallest.  Round 2 chooses the largest sizes that
   a program accepts, and round 3 the largest requested sizes.  Returns false if this round has no sizes. */
static bool opdi_open_choose(opdi_open *open, int round) {
    const bool many = open->n > 2;
    int64_t sizes[OPDI_OPEN_SIZES][4] = {{0}}, used = 0;
    for (int k = 0; k < open->n; k++) {
        const int64_t least = open->least.sizes[k], most = open->most.sizes[k];
        const bool down = round > 1;
        int64_t at = round == 3 ? most + 1 : down ? opdi_open_taken(open, k, OPDI_MAX(most, 250)) + 1
            : many ? OPDI_MAX(least, 10) : OPDI_MAX(most < 4096 ? most : least, 100);
        if (k) { at = down ? OPDI_MIN(at, used) : OPDI_MAX(at, used); }       /* makes the sizes different */
        for (int i = 0; i < 4; i++) {
            at = opdi_open_prime(down ? at - 1 : at + 1, down ? -1 : 1, round == many);
            sizes[k][down ? 3 - i : i] = at;
        }
        used = at;
        if (down && (at < least || at < 3)) { return false; }
    }
    open->npoints = opdi_open_points(open, sizes, open->points);
    return true;
}
/* Calls opdi_open_holds for some sizes: those at the ends of the ranges (if several sizes are open, all combinations),
   and one in the middle.  Returns 0, or -1 and sets an error. */
static int opdi_open_samples(opdi_open *open) {
    for (int i = 0; i < 1 << open->n && open->n > 1; i++) {
        opdi_open_at at = open->least;
        for (int k = 0; k < open->n; k++) { if (i >> k & 1) { at.sizes[k] = open->most.sizes[k]; } }
        if (opdi_open_holds(open, &at)) { return -1; }
    }
    for (int i = 0; i < 8; i++) {
        opdi_open_at at = open->least;
        for (int k = 0; k < open->n; k++) {
            static const int others[OPDI_OPEN_SIZES][8] = {{0, 1, 2, 3, 4, 5, 6, 7}, {0, 4, 1, 7, 2, 0, 5, 3},
                                                           {5, 2, 7, 1, 0, 6, 3, 4}, {3, 7, 0, 5, 6, 1, 4, 2}};
            const int64_t least = open->least.sizes[k], most = open->most.sizes[k];
            const int which = others[k][i];
            const int64_t size = which < 4 ? least + which : which < 6 ? (least + most) / 2 + which - 4
                : most - 7 + which;
            at.sizes[k] = OPDI_MIN(OPDI_MAX(size, least), most);
        }
        if (opdi_open_holds(open, &at)) { return -1; }
    }
    return 0;
}
/* Records the graph with the sizes open->points, checks the recordings and joins them, and writes the texts.  Returns
   0, or -1 and sets an error. */
static int opdi_open_try(opdi_open *open, opdi_string *source, opdi_string *header) {
    opdi_unit *const unit = &open->units[0];
    for (int i = 0; i < open->npoints; i++) {
        if (opdi_open_record(open, 0, &open->points[i]) || opdi_open_list_unit(open, unit, &open->lists[i]) ||
            opdi_open_keep_decisions(open, i, &unit->recording)) { return -1; }
    }
    if (opdi_open_decisions(open) || opdi_open_join(open, &open->plain) || opdi_open_samples(open)) { return -1; }
    for (int i = 0; i < open->npoints; i++) {
        if (opdi_open_record(open, 0, &open->points[i]) ||
            opdi_open_set(open, unit, &open->plain, &open->points[i])) { return -1; }       /* marks the loops whose
                                                                                               sizes are open */
        unit->recording.open = true;
        if (opdi_unit_groups(unit) || opdi_open_list_unit(open, unit, &open->lists[i])) { return -1; }
    }
    return opdi_open_join(open, &open->fused) || opdi_open_texts(open, source, header) ? -1 : 0;
}
/* Writes the C text and the header of a graph with open sizes.  Tries several sets of sizes for the recordings.
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_open_find(opdi_open *open, opdi_string *source, opdi_string *header) {
    const opdi_open_sizes *const sizes = open->source->sizes;
    open->n = sizes->n;
    open->npowers = 1;
    for (int k = 0; k < open->n; k++) {
        open->npowers *= 3;
        open->least.sizes[k] = sizes->least[k];
        open->most.sizes[k] = sizes->most[k];
    }
    int rc = opdi_open_check(open) || opdi_open_takes(open, NULL) ? -1 : 0;
    if (rc) { return -1; }
    for (int round = 0; round < 4; round++) {
        if (!opdi_open_choose(open, round)) { continue; }
        opd_error_clear();
        opdi_string_free(source);
        opdi_string_free(header);
        memset(source, 0, sizeof *source);
        memset(header, 0, sizeof *header);
        rc = opdi_open_try(open, source, header);
        if (rc == 0 || opdi_error_passes()) { break; }
    }
    return rc;
}
