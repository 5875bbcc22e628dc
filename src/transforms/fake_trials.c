#include "transforms.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>fake_trials  calls in fake modes with sizes that depend on data
//
//  Before such a call runs, it is tried on stand-ins for its tensors, at Meta, with other numbers for the symbols.  The
//  trials show how the sizes of the results follow from the symbols, and whether the operator accepts every number.  If
//  it does not, trials find what must be true: that two symbols are equal, or that a symbol has a certain number.  Then
//  the call runs once with the tensors themselves.  Trials are seen neither by recordings nor by observers.
//----------------------------------------------------------------------------------------------------------------------

OPDI_INTERNAL int opdi_sizes_call(opd_call *call, opd_keyset keys);
OPDI_INTERNAL int opdi_sizes_called(opd_call *call, int before);
OPDI_INTERNAL int64_t opdi_symbol_number(opdi_symbols *symbols, int64_t value, int64_t min, int64_t max);

#define OPDI_SEARCHED 8                           /* the most symbols of one call that are searched */
#define OPDI_SIZE_NUMBERS 240                     /* the most numbers that describe the sizes of a call's results */
#define OPDI_SIZE_TRIALS 400                      /* the most trials of a call */
#define OPDI_SIZE_CANDIDATES 12

/* The sizes of the results of a trial: for each tensor, the number of dims and the sizes.  count -1: too many. */
typedef struct opdi_size_record { int count; int64_t number[OPDI_SIZE_NUMBERS]; } opdi_size_record;
/* How a trial replaces integers (SymInt) among the arguments.  SAME: replaces an integer that is equal to a size that
   depends on data.  OLDER: also replaces an integer that is equal to the first number of a symbol, if the symbol has
   another number now.  MULTIPLES: also replaces multiples of a symbol's number. */
typedef enum opdi_size_ints {
    OPDI_INTS_SAME, OPDI_INTS_AS_GIVEN, OPDI_INTS_OLDER, OPDI_INTS_MULTIPLES
} opdi_size_ints;
typedef struct opdi_size_search {
    opd_call *call;
    opdi_fake_mode *fake;
    opdi_symbols *symbols;
    int count, symbol[OPDI_SEARCHED];             /* the symbols of the arguments */
    int64_t number[OPDI_SEARCHED];                /* the numbers for them in the next trial */
    int64_t probe[2][OPDI_SEARCHED];              /* the numbers of the two trials that show how results follow */
    bool pinned[OPDI_SEARCHED];                   /* the symbol has a number that was chosen for this call */
    opdi_size_ints ints;
    int round, made, trials;                      /* made: how many new sizes the trial has asked for */
    bool known, stepped, inner, loose, older;     /* known: the records are right; stepped: the numbers are multiples of
                                                     integers of the call; inner: another call, or a backward, has made
                                                     the call; loose: the program has not made it itself; older:
                                                     integers of the call are older numbers of symbols */
    opd_code code;                                /* the error of the last trial */
    int64_t read;                                 /* an integer of the call that is equal to a size, or 0 */
    opdi_size read_size;                          /* this size, with symbol 0 of the search */
    bool ones, works;                             /* ones: numbers that are tried include 1 and 0; works: the operator
                                                     accepts the numbers of now */
    opdi_size_record record[2];
    opdi_size_record few[2];                      /* few[n]: a trial with n for all symbols; count -1: none */
} opdi_size_search;

//== trials ============================================================================================================

/* The number of symbol i of a call in a trial.  Symbols have numbers that are no sizes of usual programs, and the
   distances between the numbers of two trials differ from symbol to symbol. */
static int64_t opdi_probe(int i, int round) { return round ? 2003 + 42 * i : 1009 + 30 * i; }
/* Returns the number for a new size that depends on data, which a fake kernel asks for.  Returns -1 if memory runs
   out. */
OPDI_INTERNAL int64_t opdi_symbol_number(opdi_symbols *symbols, int64_t value, int64_t min, int64_t max) {
    if (symbols->trying) {
        opdi_size_search *search = symbols->search;
        const int i = OPDI_MIN(search->count + search->made, OPDI_SEARCHED - 1);
        search->made++;
        return search->round < 0 ? value : OPDI_MAX(min, opdi_probe(i, search->round));
    }
    if (opdi_symbols_less) { value = OPDI_MAX(value - opdi_symbols_less - 3 * symbols->names, min); }
    return opdi_symbol_new(symbols, value, min, max, -1) < 0 ? -1 : value;
}
static int64_t opdi_search_number(const opdi_size_search *search, int symbol) {
    const int root = opdi_symbol_root(search->symbols, symbol);
    for (int i = 0; i < search->count; i++) {
        if (opdi_symbol_root(search->symbols, search->symbol[i]) == root) { return search->number[i]; }
    }
    return search->symbols->symbol[root].value;
}
/* Returns a size that depends on data, with the numbers of the next trial. */
static int64_t opdi_search_size(const opdi_size_search *search, const opdi_size *size) {
    const int64_t number = opdi_search_number(search, size->symbol);
    return opdi_size_with(size, size->other < 0 ? number : number * opdi_search_number(search, size->other));
}
/* Returns tensor k of an argument, or NULL.  *count becomes the number of tensors of the argument. */
static opd_tensor *opdi_arg_part(const opd_value *value, int32_t k, int32_t *count) {
    *count = value->tag == OPD_TAG_TENSORS ? value->n : value->tag == OPD_TAG_TENSOR;
    return k >= *count ? NULL : value->tag == OPD_TAG_TENSOR ? value->u.t : value->u.tensors[k];
}
/* Returns the integers of argument i if its type is SymInt or SymInt[], or if the operator is arange; else NULL.  Sets
   *count. */
static const int64_t *opdi_arg_sizes(const opd_call *call, int i, int32_t *count) {
    const opd_value *value = &call->args[i];
    if (value->tag != OPD_TAG_INT && value->tag != OPD_TAG_INTS) { return NULL; }
    const opdi_type *type = opdi_strip_optional(call->op->schema->args[i].type);
    if (type->kind == OPDI_TYPE_NUMBER && strcmp(call->op->base_name, "aten::arange") == 0) {
        *count = value->tag == OPD_TAG_INT;
        return *count ? &value->u.i : NULL;
    }
    if (type->kind == OPDI_TYPE_LIST) { type = opdi_strip_optional(type->elems[0]); }
    *count = value->tag == OPD_TAG_INT ? 1 : value->n;
    return !type->word || strcmp(type->word, "SymInt") != 0 ? NULL
        : value->tag == OPD_TAG_INT ? &value->u.i : value->u.ints;
}
/* Returns the index of a symbol in the search, or -1 if it is not there or has a number that was chosen. */
static int opdi_search_index(const opdi_size_search *search, int symbol) {
    const int root = symbol < 0 ? -1 : opdi_symbol_root(search->symbols, symbol);
    for (int i = 0; i < search->count; i++) {
        if (opdi_symbol_root(search->symbols, search->symbol[i]) == root) { return search->pinned[i] ? -1 : i; }
    }
    return -1;
}
/* Returns the number that stands for `integer`, an argument, in the next trial. */
static int64_t opdi_search_int(const opdi_size_search *search, int64_t integer) {
    const opd_call *call = search->call;
    const opdi_symbols *symbols = search->symbols;
    if (search->ints == OPDI_INTS_AS_GIVEN || integer < 2) { return integer; }
    for (int i = 0, count = 1; i < call->op->nargs; i++) {
        for (int32_t k = 0; k < count; k++) {
            const opdi_sized *sized = opdi_sized_of(opdi_arg_part(&call->args[i], k, &count), symbols);
            int64_t elements = 1;
            bool open = false;
            for (int dim = 0; sized && dim < sized->ndim; dim++) {
                const opdi_size *size = &sized->size[dim];
                const bool here = opdi_search_index(search, size->symbol) >= 0 ||
                    opdi_search_index(search, size->other) >= 0;
                const int64_t number = here ? opdi_search_size(search, size) : sized->tensor->dims[dim];
                if (here && sized->tensor->dims[dim] == integer) { return number; }
                elements *= number;
                open |= here;
            }
            if (open && sized->tensor->numel == integer) { return elements; }
        }
        count = 1;
    }
    if (search->read > 1 && integer == search->read) { return opdi_size_with(&search->read_size, search->number[0]); }
    for (int i = 0; i < search->count; i++) {
        const int64_t value = opdi_symbol_of(symbols, search->symbol[i])->value;
        if (search->pinned[i]) { continue; }
        if (integer == value) { return search->number[i]; }
        if (search->ints == OPDI_INTS_MULTIPLES && value > 1 && integer % value == 0) {
            return integer / value * search->number[i];
        }
    }
    for (int i = 0; search->ints >= OPDI_INTS_OLDER && i < symbols->count; i++) {
        const int64_t first = symbols->symbol[i].first;
        if (integer == first && opdi_symbol_of(symbols, i)->value != first) { return opdi_search_number(search, i); }
    }
    return integer;
}
/* Copies the arguments of the call to `args`, with the integers of the next trial.  Returns 1 if some integers are
   not as in the call, 0 if all are, or -1 if memory runs out. */
static int opdi_search_ints(const opdi_size_search *search, opd_value *args) {
    const opd_call *call = search->call;
    int changed = 0;
    for (int i = 0; i < call->op->nargs; i++) {
        int32_t count = 0;
        const int64_t *ints = opdi_arg_sizes(call, i, &count);
        bool differs = false;
        args[i] = call->args[i];
        for (int32_t k = 0; ints && k < count; k++) { differs |= opdi_search_int(search, ints[k]) != ints[k]; }
        if (!differs) { continue; }
        changed = 1;
        if (args[i].tag == OPD_TAG_INT) {
            args[i].u.i = opdi_search_int(search, ints[0]);
            continue;
        }
        int64_t *copy = (int64_t *)opdi_scope_alloc((size_t)count * sizeof *copy);
        if (!copy) { return -1; }
        for (int32_t k = 0; k < count; k++) { copy[k] = opdi_search_int(search, ints[k]); }
        args[i].u.ints = copy;
    }
    return changed;
}
/* Returns the tensor that stands for `tensor` in a trial, in the innermost scope.  Returns NULL if memory runs out. */
static opd_tensor *opdi_sized_stand_in(const opdi_size_search *search, opd_tensor *tensor, bool written) {
    const opdi_sized *sized = opdi_sized_of(tensor, search->symbols);
    int64_t sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS];
    if (tensor->flags & OPDI_BATCHED || (!sized && !written)) { return tensor; }
    for (int i = 0; i < tensor->ndim; i++) {
        const bool open = sized && sized->size[i].symbol >= 0;
        sizes[i] = open ? opdi_search_size(search, &sized->size[i]) : tensor->dims[i];
    }
    opdi_strides_for(tensor, sizes, strides);
    return opdi_own(opdi_fake_make(sizes, strides, tensor->ndim, (opd_scalar_type)tensor->dtype,
                                   tensor->backend != OPD_META ? opdi_place_of(tensor)
                                   : tensor->storage->stands_for ? tensor->storage->stands_for - 1 : OPD_META));
}
/* Writes the arguments of the next trial to `args`.  Returns 0, or -1 if memory runs out. */
static int opdi_trial_args(const opdi_size_search *search, opd_value *args) {
    const opd_op *op = search->call->op;
    if (opdi_search_ints(search, args) < 0) { return -1; }
    for (int i = 0; i < op->nargs; i++) {
        const bool written = op->written_args >> i & 1;
        opd_value *value = &args[i];
        if (value->tag == OPD_TAG_TENSOR &&
            !(value->u.t = opdi_sized_stand_in(search, value->u.t, written))) { return -1; }
        if (value->tag != OPD_TAG_TENSORS) { continue; }
        opd_tensor **list = opdi_scope_tensors(value->n + 1);
        if (!list) { return -1; }
        for (int32_t k = 0; k < value->n; k++) {
            list[k] = value->u.tensors[k];
            if (list[k] && !(list[k] = opdi_sized_stand_in(search, list[k], written))) { return -1; }
        }
        value->u.tensors = list;
    }
    return 0;
}
/* Writes the sizes of the tensors among the results to *record. */
static void opdi_size_record_make(const opd_op *op, const opd_value *rets, opdi_size_record *record) {
    record->count = 0;
    for (int i = 0, count = 1; i < op->nrets; i++) {
        for (int32_t k = 0; k < count; k++) {
            const opd_tensor *tensor = opdi_arg_part(&rets[i], k, &count);
            const int ndim = tensor ? tensor->ndim : -1;
            if (record->count < 0 || k >= count) { continue; }
            if (record->count + 1 + OPDI_MAX(ndim, 0) > OPDI_SIZE_NUMBERS) {
                record->count = -1;
                continue;
            }
            record->number[record->count++] = ndim;
            for (int dim = 0; dim < ndim; dim++) { record->number[record->count++] = tensor->dims[dim]; }
        }
        count = 1;
    }
}
/* The keys whose kernels a trial runs. */
#define OPDI_TRIAL_KEYS (OPD_BIT_OF(OPD_F_DENSE) | OPD_BIT_OF(OPD_F_FAKE) | OPD_BIT_OF(OPD_F_AUTOCAST) | \
                         OPD_BIT_OF(OPD_F_BACKEND_SELECT) | OPDI_LAZY_KEYS)
/* Ends a trial: recordings, observers and costs see the calls of the thread again. */
static void opdi_trial_end(opdi_symbols *symbols) {
    opdi_thread *thread = opdi_self();
    opdi_fake_mode *fake = opdi_fake_mode_of(thread);
    symbols->trying = NULL;
    thread->showing = symbols->showing;
    if (fake && fake->symbols == symbols) { fake->cost = symbols->cost; }
}
/* Ends a trial that an exception or a longjmp has left. */
static void opdi_trial_ended(opdi_visit *visit) { opdi_trial_end((opdi_symbols *)visit->user); }
/* Runs the call on stand-ins, with the numbers of *search: without history, and unseen by recordings, observers and
   costs.  Writes the sizes of its results to *record.  Returns 0, or 1 if the operator refuses the arguments, or -1
   and sets an error if memory runs out or a limit is reached. */
static int opdi_trial_run(opdi_size_search *search, opdi_size_record *record) {
    opdi_thread *thread = search->call->th;
    opdi_symbols *symbols = search->symbols;
    const opdi_state state = thread->state;
    struct opdi_tracer *tracer = thread->innermost.tracer;
    const bool unobserved = thread->innermost.observe_off;
    const int mark = opd_error_mark();
    opdi_visit_frame visit;
    opd_value args[OPD_MAX_ARGS], rets[OPDI_MAX_RETURNS];
    opdi_visit_begin(thread, &visit, "a fake kernel", opdi_trial_ended, symbols);
    opd_scope scope = opd_scope_open();
    symbols->cost = search->fake->cost;
    symbols->showing = thread->showing;
    thread->state.allow &= OPDI_TRIAL_KEYS;
    thread->state.include &= OPDI_TRIAL_KEYS;
    thread->state.no_grad = 1;
    thread->state.forward = OPDI_FORWARD_OFF;
    thread->innermost.tracer = NULL;
    thread->innermost.observe_off = true;
    thread->showing = true;
    search->fake->cost = NULL;
    symbols->trying = search->call;
    symbols->search = search;
    search->made = 0;
    search->trials++;
    const int rc = opdi_trial_args(search, args) ? -1
        : opd_call_all((opd_op *)(uintptr_t)search->call->op, rets, args, search->call->op->nargs);
    if (rc == 0) { opdi_size_record_make(search->call->op, rets, record); }
    opdi_trial_end(symbols);
    thread->innermost.observe_off = unobserved;
    thread->innermost.tracer = tracer;
    thread->state = state;
    opd_scope_close(&scope);
    opdi_visit_end(&visit);
    if (rc == 0) { return 0; }
    if (opdi_error_passes()) { return -1; }
    search->code = opd_error_rewind(mark);
    return 1;
}
/* Runs the two trials that show how the sizes of the results follow from the symbols, with integers replaced in one of
   the ways.  Returns as opdi_trial_run does. */
static int opdi_trial_rounds(opdi_size_search *search) {
    opd_value unused[OPD_MAX_ARGS];
    for (int way = OPDI_INTS_SAME; way <= OPDI_INTS_MULTIPLES; way++) {
        int rc = 0;
        memcpy(search->number, search->probe[0], sizeof search->number);
        search->ints = (opdi_size_ints)way;
        opd_scope scope = opd_scope_open();
        const int changed = opdi_search_ints(search, unused);
        opd_scope_close(&scope);
        if (changed < 0) { return -1; }
        if (!changed && way != OPDI_INTS_AS_GIVEN) { continue; }
        for (search->round = 0; rc == 0 && search->round < 2; search->round++) {
            memcpy(search->number, search->probe[search->round], sizeof search->number);
            rc = search->trials < OPDI_SIZE_TRIALS ? opdi_trial_run(search, &search->record[search->round]) : 1;
        }
        search->round = -1;
        if (rc <= 0) { return rc; }
    }
    return 1;
}
/* Runs a trial with the numbers that the symbols have now.  Returns as opdi_trial_run does. */
static int opdi_trial_now(opdi_size_search *search) {
    opdi_size_record unused;
    int rc = 1;
    search->round = -1;
    for (int i = 0; i < search->count; i++) {
        search->number[i] = opdi_symbol_of(search->symbols, search->symbol[i])->value;
    }
    for (int way = OPDI_INTS_AS_GIVEN; rc == 1 && way <= OPDI_INTS_OLDER; way++) {
        search->ints = (opdi_size_ints)way;
        rc = opdi_trial_run(search, &unused);
    }
    search->older = rc == 0 && search->ints == OPDI_INTS_OLDER;
    return rc;
}
/* Runs trials with 0 and 1 for the symbols, which show where sizes do not follow a line, as in min(2, u0).  Returns 0,
   or -1 and sets an error if memory runs out. */
static int opdi_trial_small(opdi_size_search *search) {
    for (int n = 0; n < 2; n++) {
        bool can = search->made == 0 && search->count > 0;
        search->few[n].count = -1;
        for (int i = 0; i < search->count; i++) {
            search->number[i] = search->pinned[i] ? search->probe[0][i] : n;
            can &= search->pinned[i] || opdi_symbol_can_be(opdi_symbol_of(search->symbols, search->symbol[i]), n);
        }
        const int rc = can ? opdi_trial_run(search, &search->few[n]) : 1;
        if (rc < 0) { return -1; }
        if (rc) { search->few[n].count = -1; }
    }
    return 0;
}
/* The number of symbol i of the search in a trial.  Symbols with larger numbers now have larger numbers in trials, so
   that a kernel fits into an image, for example. */
static int64_t opdi_probe_of(const opdi_size_search *search, int i, int round) {
    const int64_t value = opdi_symbol_of(search->symbols, search->symbol[i])->value;
    int64_t rank = 0;
    for (int k = 0; k < search->count; k++) {
        rank += opdi_symbol_of(search->symbols, search->symbol[k])->value < value;
    }
    return opdi_probe(i, round) + 5040 * rank;
}
/* Sets the numbers of both rounds to usual ones. */
static void opdi_probes_reset(opdi_size_search *search) {
    for (int i = 0; i < search->count; i++) {
        search->pinned[i] = false;
        for (int round = 0; round < 2; round++) { search->probe[round][i] = opdi_probe_of(search, i, round); }
    }
}

//== searching =========================================================================================================

/* Adds a number to the candidates for a symbol, if the symbol can have it. */
static void opdi_candidate_add(const opdi_symbol *symbol, int64_t number, int64_t *list, int *count) {
    if (number < 0 || *count == OPDI_SIZE_CANDIDATES || !opdi_symbol_can_be(symbol, number)) { return; }
    for (int i = 0; i < *count; i++) { if (list[i] == number) { return; } }
    list[(*count)++] = number;
}
/* Adds the numbers for which sizes of the symbol are `fixed`, a size that some other argument has. */
static void opdi_candidates_solve(const opdi_size_search *search, int i, int64_t fixed, bool elements, int64_t *list,
                                  int *count) {
    const opdi_symbols *symbols = search->symbols;
    const int root = opdi_symbol_root(symbols, search->symbol[i]);
    const opd_call *call = search->call;
    for (int arg = 0, parts = 1; arg < call->op->nargs; arg++) {
        for (int32_t k = 0; k < parts; k++) {
            const opd_tensor *tensor = opdi_arg_part(&call->args[arg], k, &parts);
            const opdi_sized *sized = opdi_sized_of(tensor, symbols);
            for (int dim = 0; sized && dim < sized->ndim; dim++) {
                const opdi_size *size = &sized->size[dim];
                const int one = size->symbol < 0 ? -1 : opdi_symbol_root(symbols, size->symbol);
                const int two = size->other < 0 ? -1 : opdi_symbol_root(symbols, size->other);
                if (one != root && two != root) { continue; }
                const int64_t factor = two < 0 ? size->factor
                    : size->factor * symbols->symbol[one == root ? two : one].value;
                int64_t want = fixed;
                if (elements) {                   /* `fixed` is the number of elements */
                    const int64_t others = tensor->dims[dim] > 0 ? tensor->numel / tensor->dims[dim] : 0;
                    if (others == 0 || fixed % others != 0) { continue; }
                    want = fixed / others;
                }
                const int64_t number = want * size->divisor - size->rest;
                if (factor != 0 && number % factor == 0) {
                    opdi_candidate_add(&symbols->symbol[root], number / factor, list, count);
                }
            }
        }
        parts = 1;
    }
}
/* Writes to `list` the numbers that are tried for symbol i of the search if the operator must know it: numbers that
   make its sizes equal to other sizes of the call; 1, which other sizes expand; and the number that it has.  Returns
   how many. */
static int opdi_candidates(const opdi_size_search *search, int i, int64_t *list) {
    const opdi_symbol *symbol = opdi_symbol_of(search->symbols, search->symbol[i]);
    const opd_call *call = search->call;
    int count = 0, last = 0;
    for (int k = 0; k < symbol->nvalues; k++) { list[count++] = symbol->values[k]; }
    if (count) { return count; }
    if (search->works) { opdi_candidate_add(symbol, symbol->value, list, &count); }
    for (int arg = 0, parts = 1; arg < call->op->nargs; arg++) {
        int32_t nints = 0;
        const int64_t *ints = opdi_arg_sizes(call, arg, &nints);
        int64_t product = 1, sum = 0;
        for (int32_t k = 0; k < parts; k++) {
            const opd_tensor *tensor = opdi_arg_part(&call->args[arg], k, &parts);
            const opdi_sized *sized = opdi_sized_of(tensor, search->symbols);
            for (int dim = 0; tensor && dim < tensor->ndim; dim++) {
                opdi_candidates_solve(search, i, tensor->dims[dim], false, list, &count);
            }
            if (tensor && !sized) { opdi_candidates_solve(search, i, tensor->numel, true, list, &count); }
        }
        parts = 1;
        for (int32_t k = 0; ints && k < nints; k++) {
            product = opdi_size_times(product, OPDI_MAX(ints[k], 0));
            sum += ints[k] < INT32_MAX ? ints[k] : 0;
            opdi_candidates_solve(search, i, ints[k], false, list, &count);
        }
        if (ints && nints) {
            opdi_candidates_solve(search, i, product, true, list, &count);
            opdi_candidates_solve(search, i, sum, false, list, &count);
        }
    }
    for (int k = 0; k < count; k++) { if (list[k] != 1) { list[last++] = list[k]; } }
    count = last;
    if (search->ones) {
        opdi_candidate_add(symbol, 1, list, &count);
        opdi_candidate_add(symbol, 0, list, &count);
    }
    opdi_candidate_add(symbol, symbol->value, list, &count);
    return count;
}
/* Gives `pins` of the symbols from i on candidates, and runs the trials, until the operator accepts one choice.
   Returns as opdi_trial_run does. */
static int opdi_search_pin(opdi_size_search *search, int i, int pins) {
    if (i == search->count) { return pins ? 1 : opdi_trial_rounds(search); }
    if (search->count - i > pins) {
        const int rc = opdi_search_pin(search, i + 1, pins);
        if (rc <= 0) { return rc; }
    }
    if (pins == 0) { return 1; }
    int64_t list[OPDI_SIZE_CANDIDATES];
    const int count = opdi_candidates(search, i, list);
    search->pinned[i] = true;
    for (int k = 0; k < count; k++) {
        search->probe[0][i] = search->probe[1][i] = list[k];
        const int rc = opdi_search_pin(search, i + 1, pins - 1);
        if (rc <= 0) { return rc; }
    }
    search->pinned[i] = false;
    for (int round = 0; round < 2; round++) { search->probe[round][i] = opdi_probe_of(search, i, round); }
    return 1;
}
static bool opdi_size_records_equal(const opdi_size_record *first, const opdi_size_record *second) {
    return first->count >= 0 && first->count == second->count &&
        memcmp(first->number, second->number, (size_t)first->count * sizeof *first->number) == 0;
}
/* Notes the numbers that opdi_search_pin has chosen.  If the only one could also be another number with the same
   results, both stay possible.  If it is the number of now, and others give other results, nothing is noted.  Returns
   0, or -1 if memory runs out. */
static int opdi_search_pinned(opdi_size_search *search) {
    int64_t list[OPDI_SIZE_CANDIDATES], values[OPDI_SYMBOL_VALUES];
    int npinned = 0;
    for (int i = 0; i < search->count; i++) { npinned += search->pinned[i]; }
    for (int i = 0; i < search->count; i++) {
        if (!search->pinned[i]) { continue; }
        const opdi_symbol *symbol = opdi_symbol_of(search->symbols, search->symbol[i]);
        const int64_t chosen = search->probe[0][i];
        const int ncandidates = npinned == 1 ? opdi_candidates(search, i, list) : 0;
        int count = 0;
        values[count++] = chosen;
        for (int k = 0; k < ncandidates && count < OPDI_SYMBOL_VALUES; k++) {
            opdi_size_record other;
            if (list[k] == chosen) { continue; }
            memcpy(search->number, search->probe[0], sizeof search->number);
            search->number[i] = list[k];
            search->round = 0;
            const int rc = opdi_trial_run(search, &other);
            search->round = -1;
            if (rc < 0) { return -1; }
            const bool equal = rc == 0 && opdi_size_records_equal(&other, &search->record[0]);
            if (equal) { values[count++] = list[k]; }
            search->known &= rc != 0 || equal || !search->works;
        }
        if (!search->known || (search->loose && chosen == symbol->value && !symbol->nvalues)) { continue; }
        opdi_symbol_fix(search->symbols, search->symbol[i], values, count);
    }
    return 0;
}
/* Tries whether the operator accepts every number for those symbols that are not known.  Returns as opdi_trial_run
   does. */
static int opdi_search_known(opdi_size_search *search) {
    bool any = false;
    opdi_probes_reset(search);
    for (int i = 0; i < search->count; i++) {
        const opdi_symbol *symbol = opdi_symbol_of(search->symbols, search->symbol[i]);
        if (!opdi_symbol_is_known(symbol)) { continue; }
        search->pinned[i] = any = true;
        search->probe[0][i] = search->probe[1][i] = symbol->value;
    }
    return any ? opdi_trial_rounds(search) : 1;
}
static int64_t opdi_search_number_now(const opdi_size_search *search, int i) {
    return opdi_symbol_of(search->symbols, search->symbol[i])->value;
}
/* Tries whether the operator accepts every number if some of the symbols are equal, with as few equal symbols as
   possible.  If the operator works now, only symbols with the same number now can be equal.  If so, notes that they
   are.  Returns as opdi_trial_run does. */
static int opdi_search_equal(opdi_size_search *search) {
    const int count = OPDI_MIN(search->count, 5);
    int codes = 1;
    for (int i = 0; i < count; i++) { codes *= count; }
    for (int blocks = count - 1; blocks > 0; blocks--) {
        for (int code = 0; code < codes; code++) {
            int block[OPDI_SEARCHED], first[OPDI_SEARCHED], most = 0;
            bool normal = true;
            for (int i = 0, rest = code; normal && i < count; i++, rest /= count) {
                block[i] = rest % count;          /* a normal form: each block begins with the next number */
                normal = block[i] <= most;
                if (block[i] == most) { first[most++] = i; }
                normal = normal && (!search->works || opdi_search_number_now(search, i) ==
                                    opdi_search_number_now(search, first[block[i]]));
            }
            if (!normal || most != blocks) { continue; }
            opdi_probes_reset(search);
            for (int i = 0; i < count; i++) {
                for (int round = 0; round < 2; round++) {
                    search->probe[round][i] = opdi_probe_of(search, first[block[i]], round);
                }
            }
            const int rc = opdi_trial_rounds(search);
            if (rc < 0) { return -1; }
            bool joined = rc == 0;
            for (int i = 0; joined && i < count; i++) {
                for (int k = i + 1; joined && k < count; k++) {
                    if (block[i] == block[k]) {
                        joined = opdi_symbols_join(search->symbols, search->symbol[i], search->symbol[k]);
                    }
                }
            }
            if (joined) { return 0; }
        }
    }
    return 1;
}
/* Tries whether the operator accepts numbers that are multiples of the integers of the call, as in view(2, -1).
   Returns as opdi_trial_run does. */
static int opdi_search_steps(opdi_size_search *search) {
    int64_t step = 1;
    for (int arg = 0; arg < search->call->op->nargs; arg++) {
        int32_t count = 0;
        const int64_t *ints = opdi_arg_sizes(search->call, arg, &count);
        for (int32_t k = 0; ints && k < count; k++) {
            if (ints[k] > 1 && ints[k] < 10000 && step < 10000) { step *= ints[k]; }
        }
    }
    if (step == 1) { return 1; }
    opdi_probes_reset(search);
    for (int i = 0; i < search->count; i++) {
        search->probe[0][i] *= step;
        search->probe[1][i] *= step;
    }
    search->stepped = true;
    const int rc = opdi_trial_rounds(search);
    if (rc) { search->stepped = false; }
    return rc;
}
/* Finds numbers with which the operator works, near the present numbers of the symbols, for one symbol after the other,
   and takes them.  Returns as opdi_trial_run does. */
static int opdi_search_near(opdi_size_search *search) {
    for (int i = 0; i < search->count; i++) {
        const opdi_symbol *symbol = opdi_symbol_of(search->symbols, search->symbol[i]);
        const int64_t was = symbol->value;
        for (int64_t k = 1; k <= 16; k++) {
            const int64_t number = k <= 8 ? was - k : was + k - 8;
            if (number < 0 || !opdi_symbol_can_be(symbol, number)) { continue; }
            opdi_symbol_take(search->symbols, search->symbol[i], number);
            const int rc = opdi_trial_now(search);
            if (rc <= 0) { return rc; }
        }
        opdi_symbol_take(search->symbols, search->symbol[i], was);
    }
    return 1;
}
/* Returns 0 if the operator accepts several numbers within the bounds of the symbols, although it does not accept every
   number; else as opdi_trial_run does. */
static int opdi_search_within(opdi_size_search *search) {
    int rc = opdi_trial_now(search);
    for (int i = 0; rc == 0 && i < search->count; i++) {
        const opdi_symbol *symbol = opdi_symbol_of(search->symbols, search->symbol[i]);
        for (int64_t k = 1; rc == 0 && k <= 2; k++) {
            opdi_size_record unused;
            if (symbol->value - k < 1 || !opdi_symbol_can_be(symbol, symbol->value - k)) { return 1; }
            search->number[i] = symbol->value - k;
            rc = opdi_trial_run(search, &unused);
            search->number[i] = symbol->value;
        }
    }
    return rc;
}
/* Tries all numbers for one symbol after the other, and for all symbols that have the same number now, from the number
   of now on downwards, with the numbers of now for the others.  Notes the first that the operator accepts.  Returns as
   opdi_trial_run does. */
static int opdi_search_all(opdi_size_search *search) {
    int64_t value[OPDI_SEARCHED];
    for (int i = 0; i < search->count; i++) { value[i] = opdi_search_number_now(search, i); }
    for (int i = 0; i < 2 * search->count; i++) {
        const int at = i % search->count;
        for (int64_t number = value[at] - 1; number >= 0 && number > value[at] - OPDI_SIZE_TRIALS / 4; number--) {
            opdi_size_record unused;
            if (search->trials > 2 * OPDI_SIZE_TRIALS ||
                !opdi_symbol_can_be(opdi_symbol_of(search->symbols, search->symbol[at]), number)) { continue; }
            for (int k = 0; k < search->count; k++) {
                const bool with = k == at || (i >= search->count && value[k] == value[at]);
                search->pinned[k] = with;
                search->number[k] = with ? number : value[k];
            }
            search->ints = OPDI_INTS_AS_GIVEN;
            const int rc = opdi_trial_run(search, &unused);
            if (rc < 0) { return -1; }
            for (int k = 0; rc == 0 && k < search->count; k++) {
                if (search->pinned[k]) { opdi_symbol_fix(search->symbols, search->symbol[k], &number, 1); }
            }
            if (rc == 0) { return 0; }
        }
    }
    return 1;
}
/* Finds the conditions that the operator sets for the symbols of the arguments, notes them, and fills the records with
   the sizes of two trials.  Returns 0, or 1 if no numbers fit, or -1 and sets an error if memory runs out. */
static int opdi_search_run(opdi_size_search *search) {
    opdi_probes_reset(search);
    int rc = opdi_trial_rounds(search);
    if (rc == 1 && search->code == OPD_ERROR_NO_KERNEL) { return 1; }
    if (rc == 1) { rc = opdi_search_known(search); }
    if (rc == 1 && (rc = opdi_trial_now(search)) >= 0) {
        search->works = rc == 0;
        if (search->works && search->inner) { return 0; }     /* the outer call has found out what must be known */
        rc = 1;
    }
    if (rc == 1 && search->count > 1) { rc = opdi_search_equal(search); }
    if (rc == 1) { rc = opdi_search_steps(search); }
    if (rc == 0) {
        search->known = true;
        rc = opdi_trial_small(search) ? -1 : opdi_trial_now(search);
        if (rc == 1) { rc = opdi_search_near(search); }
        if (rc <= 0) { return rc; }
        search->known = search->stepped = false;
    }
    if (rc == 1 && (rc = opdi_search_within(search)) == 0) { return 0; }
    for (int ones = 0; ones < 2; ones++) {
        for (int pins = 1; rc == 1 && pins <= OPDI_MIN(search->count, 3); pins++) {
            search->ones = ones != 0;
            opdi_probes_reset(search);
            rc = opdi_search_pin(search, 0, pins);
        }
    }
    search->ones = true;
    if (rc == 0) {
        search->known = true;
        rc = opdi_trial_small(search) ? -1 : opdi_search_pinned(search);
        if (rc == 0 && (rc = opdi_trial_now(search)) == 1) { rc = opdi_search_near(search); }
    }
    if (rc == 1 && !search->works) {
        search->known = false;
        rc = opdi_search_all(search);
    }
    return rc;
}

//== sizes of results ==================================================================================================

static int64_t opdi_common_divisor(int64_t first, int64_t second) {
    while (second) {
        const int64_t rest = first % second;
        first = second;
        second = rest;
    }
    return first < 0 ? -first : first;
}
/* Returns whether number `at` of the records of trials with small numbers is as *size says.  `now` is its number with
   the current values of the symbols. */
static bool opdi_size_holds(const opdi_size_search *search, const opdi_size *size, int at, int64_t now) {
    bool holds = true;
    for (int64_t n = 0; n < 2; n++) {
        const int64_t scaled = size->factor * (size->other < 0 ? n : n * n) + size->rest;
        const bool divides = size->symbol < 0 || scaled % size->divisor == 0;
        const int64_t want = size->symbol < 0 ? now : opdi_size_with(size, size->other < 0 ? n : n * n);
        holds &= search->few[n].count < 0 || !divides || search->few[n].number[at] == want;
    }
    return holds;
}
/* Makes *size the line through number `at` of the records of the two trials, as a function of symbol i of the search,
   or of the product of symbols i and k.  Returns whether its numbers are integers that fit the records and `now`. */
static bool opdi_size_line(const opdi_size_search *search, int64_t now, int at, int i, int k, opdi_size *size) {
    const int64_t first = search->record[0].number[at], second = search->record[1].number[at];
    const int64_t from = search->probe[0][i] * (k < 0 ? 1 : search->probe[0][k]);
    const int64_t to = search->probe[1][i] * (k < 0 ? 1 : search->probe[1][k]);
    const int64_t common = opdi_common_divisor(second - first, to - from);
    if (search->pinned[i] || (k >= 0 && search->pinned[k]) || common == 0) { return false; }
    size->symbol = opdi_symbol_root(search->symbols, search->symbol[i]);
    size->other = k < 0 ? -1 : opdi_symbol_root(search->symbols, search->symbol[k]);
    size->factor = (second - first) / common;
    size->divisor = (to - from) / common;
    size->rest = first * size->divisor - size->factor * from;
    const bool whole = size->divisor == 1 || (search->stepped && size->rest % size->divisor == 0);
    return whole && size->divisor < 10000 && opdi_size_value(search->symbols, size) == now &&
        opdi_size_holds(search, size, at, now);
}
/* Finds how a size follows from the symbols.  The size is number `at` of the records, and `now` with the current values
   of the symbols.  If the size follows from one symbol, or the product of two, as a line, writes that to *size.  Else
   makes a new symbol.  Returns 0, or -1 if memory runs out. */
static int opdi_size_fit(const opdi_size_search *search, int64_t now, int at, opdi_size *size) {
    const int64_t first = search->record[0].number[at], second = search->record[1].number[at];
    size->symbol = size->other = -1;
    size->factor = size->rest = 0;
    size->divisor = 1;
    if (first == second && first == now && opdi_size_holds(search, size, at, now)) { return 0; }
    for (int k = -1; k < search->count && first != second; k++) {
        for (int i = OPDI_MAX(k, 0); i < search->count; i++) {
            if (opdi_size_line(search, now, at, i, k, size)) { return 0; }
        }
    }
    size->symbol = size->other = -1;
    size->factor = size->divisor = 1;
    size->rest = 0;
    if (search->loose && now < 2) { return 0; }
    size->symbol = opdi_symbol_new(search->symbols, now, 0, first == second ? OPDI_MAX(first, now) : -1, -1);
    return size->symbol < 0 ? -1 : 0;
}
/* Notes that symbols are multiples of the divisors in these sizes. */
static void opdi_steps_note(const opdi_size_search *search, const opdi_size *size) {
    if (size->symbol < 0 || size->other >= 0 || size->divisor == 1) { return; }
    opdi_symbol *symbol = opdi_symbol_of(search->symbols, size->symbol);
    symbol->step = symbol->step / opdi_common_divisor(symbol->step, size->divisor) * size->divisor;
}
/* Returns whether both records have the same number of tensors, with the same numbers of dims. */
static bool opdi_record_fits(const opdi_size_record *record, const opdi_size_record *now) {
    bool fits = record->count >= 0 && record->count == now->count;
    for (int at = 0; fits && at < now->count; at += 1 + (int)OPDI_MAX(now->number[at], 0)) {
        fits = record->number[at] == now->number[at];
    }
    return fits;
}
/* Gives the results of a call the sizes that the two trials have shown.  Returns 0, or -1 and sets an error if memory
   runs out. */
static int opdi_results_mark(opdi_size_search *search) {
    const opd_call *call = search->call;
    const opdi_size_record *one = &search->record[0], *two = &search->record[1];
    opdi_size_record now;
    opdi_size sizes[OPD_MAX_DIMS];
    int at = 0;
    opdi_size_record_make(call->op, call->rets, &now);
    if (!opdi_record_fits(one, &now) || !opdi_record_fits(two, &now)) { return 0; }
    for (int n = 0; n < 2; n++) {
        if (!opdi_record_fits(&search->few[n], &now)) { search->few[n].count = -1; }
    }
    for (int i = 0, count = 1; i < call->op->nrets; i++) {
        for (int32_t k = 0; k < count; k++) {
            opd_tensor *tensor = opdi_arg_part(&call->rets[i], k, &count);
            if (k >= count) { continue; }
            const int64_t ndim = now.number[at++];
            for (int dim = 0; dim < ndim; dim++, at++) {
                if (opdi_size_fit(search, now.number[at], at, &sizes[dim])) { return -1; }
                opdi_steps_note(search, &sizes[dim]);
            }
            if (!tensor || tensor->backend != OPD_META || tensor->flags & OPDI_BATCHED) { continue; }
            if (opdi_sized_set(tensor, search->symbols, sizes, (int)ndim)) { return -1; }
        }
        count = 1;
    }
    return 0;
}

//== calls =============================================================================================================

/* Prepares a search for a call.  Returns false if a trial of this mode is running: then nothing is to be searched. */
static bool opdi_search_begin(opdi_size_search *search, opd_call *call) {
    opdi_thread *thread = call->th;
    search->call = call;
    search->fake = opdi_fake_mode_of(thread);
    search->symbols = search->fake->symbols;
    if (search->symbols->trying) { return false; }
    search->count = search->trials = search->made = 0;
    search->round = -1;
    search->known = search->stepped = search->older = false;
    search->ints = OPDI_INTS_AS_GIVEN;
    search->code = OPD_OK;
    search->inner = search->symbols->within || thread->innermost.node || thread->innermost.engine;
    search->loose = search->inner || thread->innermost.rule;
    search->few[0].count = search->few[1].count = -1;
    search->read = 0;
    search->ones = true;
    search->works = false;
    memset(search->pinned, 0, sizeof search->pinned);
    return true;
}
static void opdi_search_add(opdi_size_search *search, int symbol) {
    const int root = symbol < 0 ? -1 : opdi_symbol_root(search->symbols, symbol);
    int at = 0;
    while (at < search->count && search->symbol[at] != root) { at++; }
    if (root >= 0 && at == search->count && at < OPDI_SEARCHED) { search->symbol[search->count++] = root; }
}
/* Adds the symbols of the arguments to *search.  Returns false if no size of the arguments depends on data. */
static bool opdi_search_symbols(opdi_size_search *search) {
    const opd_call *call = search->call;
    bool any = false;
    for (int i = 0, count = 1; i < call->op->nargs; i++) {
        for (int32_t k = 0; k < count; k++) {
            const opdi_sized *sized = opdi_sized_of(opdi_arg_part(&call->args[i], k, &count), search->symbols);
            any |= sized != NULL;
            for (int dim = 0; sized && dim < sized->ndim; dim++) {
                opdi_search_add(search, sized->size[dim].symbol);
                opdi_search_add(search, sized->size[dim].other);
            }
        }
        count = 1;
    }
    return any;
}
/* Returns whether an operator is composite and not built in.  Its kernel runs once for each call, and its calls come
   here themselves. */
static bool opdi_is_own_composite(const opd_op *op) {
    const opdi_table *table = OPDI_ACQUIRE(&op->table);
    return table && table->slots[OPD_KEY_META].fn != opdi_missing_kernel && strncmp(op->name, "aten::", 6) != 0 &&
        table->slots[OPD_KEY_META].fn == table->slots[OPD_KEY_AUTOGRAD_CPU].fn;
}
/* Adds the known bounds of size `dim` of argument i, for which no number fits, and a remedy to the error of a call. */
static void opdi_size_explain(const opd_call *call, int i, int dim, const opdi_symbol *symbol) {
    char range[64];
    if (symbol->nvalues) {
        (void)opdi_fail_more(". In %s, the size of argument '%s' at dim %d depends on data (u%d), and after earlier "
                             "calls it must be %lld: see opd_fake_sizes_print", call->op->name,
                             call->op->schema->args[i].name, dim, symbol->name, (long long)symbol->value);
        return;
    }
    (void)snprintf(range, sizeof range, symbol->max < 0 ? "at least %lld" : "between %lld and %lld",
                   (long long)symbol->min, (long long)symbol->max);
    (void)opdi_fail_more(". In %s, the size of argument '%s' at dim %d depends on data (u%d, %s), and the call fits "
                         "none of the numbers that were tried. If you know the size, say it before the call with "
                         "opd_check_size(tensor, %d, size)", call->op->name, call->op->schema->args[i].name, dim,
                         symbol->name, range, dim);
}
/* Explains the error of a call that no number fits, if no call inside of it has done so. */
static void opdi_sizes_explain(const opdi_size_search *search) {
    const opd_call *call = search->call;
    const opd_code code = opd_error_code();
    if ((code != OPD_ERROR_SHAPE && code != OPD_ERROR_INDEX && code != OPD_ERROR_ARGUMENT) ||
        strstr(opd_error_message(), " depends on data (u")) { return; }
    for (int i = 0, count = 1; i < call->op->nargs; i++) {
        for (int32_t k = 0; k < count; k++) {
            const opdi_sized *sized = opdi_sized_of(opdi_arg_part(&call->args[i], k, &count), search->symbols);
            for (int dim = 0; sized && dim < sized->ndim; dim++) {
                const int symbol = sized->size[dim].symbol;
                if (symbol < 0 || opdi_symbol_of(search->symbols, symbol)->name < 0) { continue; }
                opdi_size_explain(call, i, dim, opdi_symbol_of(search->symbols, symbol));
                return;
            }
        }
        count = 1;
    }
}
/* Notes the sizes of the arguments at their nodes, before the call records edges to these nodes.  Returns 0, or -1 if
   memory runs out. */
static int opdi_args_note(const opd_call *call, const opdi_symbols *symbols) {
    for (int i = 0, count = 1; i < call->op->nargs; i++) {
        for (int32_t k = 0; k < count; k++) {
            const opdi_sized *sized = opdi_sized_of(opdi_arg_part(&call->args[i], k, &count), symbols);
            if (sized && opdi_sized_node_note(sized)) { return -1; }
        }
        count = 1;
    }
    return 0;
}
/* Runs the kernel for `keys` of a call.  If sizes of its arguments depend on data, first finds the conditions that the
   operator sets for them, and afterwards gives the results their sizes.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_sizes_call(opd_call *call, opd_keyset keys) {
    const opd_value *const given = call->args;
    opd_value args[OPD_MAX_ARGS];
    opdi_size_search search;
    if (!opdi_search_begin(&search, call) || !opdi_search_symbols(&search) || opdi_is_own_composite(call->op)) {
        return opd_redispatch(call, keys);
    }
    int fits = opdi_search_run(&search);
    if (fits < 0 || opdi_args_note(call, search.symbols)) { return -1; }
    if (fits == 0 && search.older) {         /* an integer is an older number of a symbol */
        for (int i = 0; i < search.count; i++) {
            search.number[i] = opdi_symbol_of(search.symbols, search.symbol[i])->value;
        }
        search.ints = OPDI_INTS_OLDER;
        if (opdi_search_ints(&search, args) < 0) { return -1; }
        call->args = args;
    }
    const int before = search.symbols->count;
    search.symbols->within++;
    const int rc = opd_redispatch(call, keys);
    search.symbols->within--;
    call->args = given;
    if (rc) {
        if (fits == 1) { opdi_sizes_explain(&search); }
        return rc;
    }
    const int made = search.symbols->count - before;
    if (!search.known || made != search.made) { return 0; }
    for (int i = 0; i < made && search.count < OPDI_SEARCHED; i++) {
        for (int round = 0; round < 2; round++) { search.probe[round][search.count] = opdi_probe(search.count, round); }
        search.pinned[search.count] = false;
        search.symbol[search.count++] = before + i;
    }
    return opdi_results_mark(&search);
}
/* Finds an integer of the call that may be a size that depends on data, now or with the first number of a symbol.
   Returns the symbol, or -1, and fills search->read and search->read_size. */
static int opdi_ints_symbol(opdi_size_search *search) {
    const opd_call *call = search->call;
    opdi_symbols *symbols = search->symbols;
    opdi_size *size = &search->read_size;
    for (int arg = 0; arg < call->op->nargs; arg++) {
        int32_t count = 0;
        const int64_t *ints = opdi_arg_sizes(call, arg, &count);
        for (int32_t k = 0; ints && k < count; k++) {
            search->read = ints[k];
            if (ints[k] < 2) { continue; }
            if (opdi_size_read(symbols, ints[k], size)) { return opdi_symbol_root(symbols, size->symbol); }
            for (int i = symbols->count; i-- > 0;) {
                const opdi_symbol *symbol = opdi_symbol_of(symbols, i);
                const int64_t first = symbols->symbol[i].first;
                if (symbols->symbol[i].name < 0 || (ints[k] != symbol->value && ints[k] != first) ||
                    (opdi_symbol_is_known(symbol) && ints[k] == symbol->value)) { continue; }
                size->factor = size->divisor = 1;
                size->rest = 0;
                size->symbol = i;
                size->other = -1;
                return i;
            }
        }
    }
    return -1;
}
/* Returns whether no result of the call has a size that follows from symbol i. */
static bool opdi_symbol_is_unused(const opdi_symbols *symbols, int i, const opd_call *call) {
    bool used = false;
    for (int k = 0, count = 1; k < call->op->nrets; k++) {
        for (int32_t part = 0; part < count; part++) {
            const opdi_sized *sized = opdi_sized_of(opdi_arg_part(&call->rets[k], part, &count), symbols);
            for (int dim = 0; sized && dim < sized->ndim; dim++) {
                used |= sized->size[dim].symbol == i || sized->size[dim].other == i;
            }
        }
        count = 1;
    }
    return !used;
}
/* Gives the results of a call sizes that depend on data, if its kernel has asked for such sizes since there were
   `before` symbols, or if an integer of the call may be such a size.  Calls whose arguments have such sizes are the
   task of opdi_sizes_call.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_sizes_called(opd_call *call, int before) {
    opdi_size_search search;
    if (!opdi_search_begin(&search, call) || opdi_search_symbols(&search)) { return 0; }
    const int made = OPDI_MIN(search.symbols->count - before, OPDI_SEARCHED);
    const int maybe = made ? -1 : opdi_ints_symbol(&search);
    int rc = 0;
    if (!made && maybe < 0) { return 0; }
    if (maybe >= 0) {                             /* the integer may be this size: gets a symbol of its own */
        const opdi_symbol *symbol = opdi_symbol_of(search.symbols, maybe);
        const opdi_size *size = &search.read_size;
        const int64_t number = size->factor ? (search.read * size->divisor - size->rest) / size->factor : 0;
        const int64_t min = OPDI_MIN(symbol->min, number), max = symbol->max < 0 ? -1 : OPDI_MAX(symbol->max, number);
        search.symbol[0] = opdi_symbol_new(search.symbols, number, min, max, maybe);
        if (search.symbol[0] < 0) { return -1; }
        search.count = 1;
        search.ints = OPDI_INTS_SAME;
    }
    const int last = search.symbols->count;
    opdi_probes_reset(&search);
    for (search.round = 0; rc == 0 && search.round < 2; search.round++) {
        memcpy(search.number, search.probe[search.round], sizeof search.number);
        rc = opdi_trial_run(&search, &search.record[search.round]);
    }
    if (rc == 0 && search.made == made) {
        for (int i = 0; i < made; i++) { search.symbol[search.count++] = before + i; }
        if (made) { opdi_probes_reset(&search); }
        rc = opdi_results_mark(&search);
    }
    if (maybe >= 0 && search.symbols->count == last && opdi_symbol_is_unused(search.symbols, last - 1, call)) {
        search.symbols->count--;
    }
    return rc < 0 ? -1 : 0;
}
