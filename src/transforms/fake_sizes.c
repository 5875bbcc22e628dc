#include "transforms.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>fake_sizes   sizes that depend on data, as symbols in fake modes
//
//  A size that depends on data is a symbol of the fake mode, such as u0.  Fakes are computed with a number for it: its
//  upper bound, until an operator needs another one.  The sizes of a tensor that follow from symbols are in its
//  opdi_sized, and the tensor has the key OPDI_SIZES_KEY, at which >>fake_trials finds out what calls need and give.
//----------------------------------------------------------------------------------------------------------------------

OPDI_INTERNAL const int64_t *opdi_sizes_today(const opd_node *node, uint32_t nr, const int64_t *sizes);
OPDI_INTERNAL void opdi_symbols_end(opdi_symbols *symbols);

/* The sizes of a forward result of an autograd node, from which some depend on data.  The number of the node is unique,
   so that its memory may be used again. */
#define OPDI_SIZED_NODES 256                      /* how many lists of these there are; a power of two */
typedef struct opdi_sized_node {
    struct opdi_sized_node *next;
    const opd_node *node;
    uint64_t sequence;
    uint32_t nr;
    int ndim;
    int64_t today[OPD_MAX_DIMS];                  /* what opdi_sizes_today returns */
    opdi_size size[1];                            /* ndim of them */
} opdi_sized_node;
/* Protects the lists of tensors with such sizes: any thread may free a tensor. */
OPDI_INTERNAL opdi_mutex opdi_sized_lock = OPDI_MUTEX_INIT;

//== symbols and sizes =================================================================================================

OPDI_INTERNAL int opdi_symbol_root(const opdi_symbols *symbols, int i) {
    while (symbols->symbol[i].same >= 0) { i = symbols->symbol[i].same; }
    return i;
}
OPDI_INTERNAL opdi_symbol *opdi_symbol_of(const opdi_symbols *symbols, int i) {
    return &symbols->symbol[opdi_symbol_root(symbols, i)];
}
OPDI_INTERNAL bool opdi_symbol_is_known(const opdi_symbol *symbol) { return symbol->nvalues == 1; }
/* Makes a symbol with this number and these bounds.  Returns its index, or -1 if memory runs out. */
OPDI_INTERNAL int opdi_symbol_new(opdi_symbols *symbols, int64_t value, int64_t min, int64_t max, int maybe) {
    if (symbols->count == symbols->capacity) {
        const int capacity = OPDI_MAX(8, 2 * symbols->capacity);
        opdi_symbol *grown = (opdi_symbol *)opdi_alloc((size_t)capacity * sizeof *grown);
        if (!grown) { return -1; }
        if (symbols->symbol) {
            memcpy(grown, symbols->symbol, (size_t)symbols->count * sizeof *grown);
            opdi_free(symbols->symbol, (size_t)symbols->capacity * sizeof *grown);
        }
        symbols->symbol = grown;
        symbols->capacity = capacity;
    }
    opdi_symbol *symbol = &symbols->symbol[symbols->count];
    memset(symbol, 0, sizeof *symbol);
    symbol->min = min;
    symbol->max = max;
    symbol->step = 1;
    symbol->same = -1;
    symbol->maybe = maybe;
    symbol->name = maybe < 0 ? symbols->names++ : -1;
    symbol->value = symbol->first = value;
    return symbols->count++;
}
/* Returns whether the symbol can be `number`. */
OPDI_INTERNAL bool opdi_symbol_can_be(const opdi_symbol *symbol, int64_t number) {
    bool can = number >= symbol->min && (symbol->max < 0 || number <= symbol->max) && number % symbol->step == 0;
    for (int k = 0; can && k < symbol->nvalues; k++) {
        if (symbol->values[k] == number) { return true; }
    }
    return can && symbol->nvalues == 0;
}

OPDI_INTERNAL opdi_sized *opdi_sized_of(const opd_tensor *tensor, const opdi_symbols *symbols) {
    const opdi_meta *meta = tensor && tensor->functionality & OPD_BIT_OF(OPDI_SIZES_KEY)
        ? OPDI_ACQUIRE(&tensor->meta) : NULL;
    opdi_sized *sized = meta ? (opdi_sized *)(void *)meta->marks : NULL;
    return sized && sized->symbols == symbols && sized->ndim == tensor->ndim ? sized : NULL;
}
static size_t opdi_sized_bytes(int ndim) { return sizeof(opdi_sized) + (size_t)ndim * sizeof(opdi_size); }
static void opdi_sized_unlink(opdi_sized *sized) {
    if (sized->next) { sized->next->prev = sized->prev; }
    if (sized->prev) { sized->prev->next = sized->next; }
    else if (sized->symbols) { sized->symbols->live = sized->next; }
}
static void opdi_sized_end(opdi_marks *marks) {
    opdi_sized *sized = (opdi_sized *)(void *)marks;
    opdi_lock(&opdi_sized_lock);
    opdi_sized_unlink(sized);
    opdi_unlock(&opdi_sized_lock);
    opdi_free(sized, opdi_sized_bytes(sized->ndim));
}
OPDI_INTERNAL int opdi_sized_set(opd_tensor *tensor, opdi_symbols *symbols, const opdi_size *sizes, int ndim);
static int opdi_sized_copy(opd_tensor *copy, const opdi_marks *marks) {
    const opdi_sized *sized = (const opdi_sized *)(const void *)marks;
    if (!sized->symbols || sized->ndim != copy->ndim) { return 0; }
    return opdi_sized_set(copy, sized->symbols, sized->size, sized->ndim);
}
/* Gives a fake the sizes `sizes`, of which some may depend on data, in place of those that it had.  Returns 0, or -1 if
   memory runs out. */
OPDI_INTERNAL int opdi_sized_set(opd_tensor *tensor, opdi_symbols *symbols, const opdi_size *sizes, int ndim) {
    bool any = false;
    for (int i = 0; i < ndim; i++) { any |= sizes[i].symbol >= 0; }
    if (tensor->meta && tensor->meta->marks) {
        opdi_marks *old = tensor->meta->marks;
        tensor->meta->marks = NULL;
        tensor->functionality &= ~OPD_BIT_OF(OPDI_SIZES_KEY);
        old->end(old);
    }
    if (!any) { return 0; }
    opdi_meta *meta = opdi_meta_of(tensor);
    opdi_sized *sized = meta ? (opdi_sized *)opdi_alloc(opdi_sized_bytes(ndim)) : NULL;
    if (!sized) { return -1; }
    sized->marks.end = opdi_sized_end;
    sized->marks.copy = opdi_sized_copy;
    sized->symbols = symbols;
    sized->tensor = tensor;
    sized->ndim = ndim;
    memcpy(sized->size, sizes, (size_t)ndim * sizeof *sizes);
    opdi_lock(&opdi_sized_lock);
    sized->prev = NULL;
    sized->next = symbols->live;
    if (sized->next) { sized->next->prev = sized; }
    symbols->live = sized;
    opdi_unlock(&opdi_sized_lock);
    meta->marks = &sized->marks;
    tensor->functionality |= OPD_BIT_OF(OPDI_SIZES_KEY);
    return 0;
}
OPDI_INTERNAL int64_t opdi_size_with(const opdi_size *size, int64_t number) {
    return OPDI_MAX((size->factor * number + size->rest) / size->divisor, 0);
}
/* Returns a size that depends on data, with the numbers that the symbols have now. */
OPDI_INTERNAL int64_t opdi_size_value(const opdi_symbols *symbols, const opdi_size *size) {
    const int64_t number = opdi_symbol_of(symbols, size->symbol)->value;
    return opdi_size_with(size, size->other < 0 ? number : number * opdi_symbol_of(symbols, size->other)->value);
}
/* Returns size number i of a tensor, with the numbers that the symbols have now. */
static int64_t opdi_size_now(const opdi_sized *sized, int i) {
    const opdi_size *size = &sized->size[i];
    return size->symbol < 0 ? sized->tensor->dims[i] : opdi_size_value(sized->symbols, size);
}
/* Writes to `strides` the strides of a tensor whose sizes change to `sizes`: dims stay in their order in memory,
   gaps between them stay, and expanded dims stay expanded. */
OPDI_INTERNAL void opdi_strides_for(const opd_tensor *tensor, const int64_t *sizes, int64_t *strides) {
    const int64_t *old = tensor->dims + tensor->ndim;
    int order[OPD_MAX_DIMS];
    int64_t span = 1, old_span = 1;
    for (int i = 0; i < tensor->ndim; i++) {      /* sorted by stride; of equal strides, the last dim is the first */
        const int dim = tensor->ndim - 1 - i;
        int k = i;
        for (; k > 0 && old[order[k - 1]] > old[dim]; k--) { order[k] = order[k - 1]; }
        order[k] = dim;
    }
    for (int i = 0; i < tensor->ndim; i++) {
        const int dim = order[i];
        strides[dim] = old[dim] == 0 ? 0 : old[dim] == old_span ? span : OPDI_MAX(old[dim], span);
        if (old[dim] == 0) { continue; }
        old_span = old[dim] * OPDI_MAX(tensor->dims[dim], 1);
        span = strides[dim] * OPDI_MAX(sizes[dim], 1);
    }
}
/* Gives a tensor other sizes in its storage.  Fakes have no memory that could be too small. */
static void opdi_sizes_change(opd_tensor *tensor, const int64_t *sizes) {
    int64_t strides[OPD_MAX_DIMS], numel = 1, own[OPD_MAX_DIMS];
    opdi_strides_for(tensor, sizes, strides);
    for (int i = 0; i < tensor->ndim; i++) {
        own[i] = sizes[i];
        numel *= sizes[i];
    }
    opdi_set_dims(tensor, own, tensor->flags & OPDI_CONTIGUOUS ? NULL : strides, tensor->ndim, numel);
}
/* Gives all tensors of the mode the sizes that follow from the numbers of the symbols. */
static void opdi_symbols_apply(opdi_symbols *symbols) {
    opdi_lock(&opdi_sized_lock);
    for (opdi_sized *sized = symbols->live; sized; sized = sized->next) {
        int64_t sizes[OPD_MAX_DIMS];
        bool same = true;
        for (int i = 0; i < sized->ndim && sized->ndim == sized->tensor->ndim; i++) {
            sizes[i] = opdi_size_now(sized, i);
            same &= sizes[i] == sized->tensor->dims[i];
        }
        if (!same) { opdi_sizes_change(sized->tensor, sizes); }
    }
    opdi_unlock(&opdi_sized_lock);
}
static opdi_sized_node *opdi_sized_node_of(const opdi_symbols *symbols, const opd_node *node, uint32_t nr) {
    opdi_sized_node *found = symbols->nodes ? symbols->nodes[node->sequence & (OPDI_SIZED_NODES - 1)] : NULL;
    while (found && (found->node != node || found->sequence != node->sequence || found->nr != nr)) {
        found = found->next;
    }
    return found;
}
/* Notes the sizes of a tensor at the node that has computed it.  Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int opdi_sized_node_note(const opdi_sized *sized) {
    const opd_tensor *tensor = sized->tensor;
    opd_node *node = tensor->grad_fn;
    opdi_symbols *symbols = sized->symbols;
    const size_t bytes = sizeof(opdi_sized_node) + (size_t)sized->ndim * sizeof(opdi_size);
    if (!node || opdi_sized_node_of(symbols, node, tensor->output_nr)) { return 0; }
    if (!symbols->nodes) {
        symbols->nodes = (opdi_sized_node **)opdi_alloc(OPDI_SIZED_NODES * sizeof *symbols->nodes);
        if (!symbols->nodes) { return -1; }
        memset(symbols->nodes, 0, OPDI_SIZED_NODES * sizeof *symbols->nodes);
    }
    opdi_sized_node *noted = (opdi_sized_node *)opdi_alloc(bytes);
    if (!noted) { return -1; }
    opdi_sized_node **list = &symbols->nodes[node->sequence & (OPDI_SIZED_NODES - 1)];
    noted->next = *list;
    noted->node = node;
    noted->sequence = node->sequence;
    noted->nr = tensor->output_nr;
    noted->ndim = sized->ndim;
    memcpy(noted->size, sized->size, (size_t)sized->ndim * sizeof *sized->size);
    *list = noted;
    node->flags |= OPDI_NODE_OPEN;
    return 0;
}
OPDI_INTERNAL const int64_t *opdi_sizes_today(const opd_node *node, uint32_t nr, const int64_t *sizes) {
    const opdi_symbols *symbols = opdi_fake_mode_of(opdi_self())->symbols;
    opdi_sized_node *noted = opdi_sized_node_of(symbols, node, nr);
    for (int i = 0; noted && i < noted->ndim; i++) {
        const opdi_size *size = &noted->size[i];
        noted->today[i] = size->symbol < 0 ? sizes[i] : opdi_size_value(symbols, size);
    }
    return noted ? noted->today : sizes;
}
static void opdi_sized_nodes_free(opdi_symbols *symbols) {
    for (int i = 0; symbols->nodes && i < OPDI_SIZED_NODES; i++) {
        while (symbols->nodes[i]) {
            opdi_sized_node *noted = symbols->nodes[i];
            symbols->nodes[i] = noted->next;
            opdi_free(noted, sizeof *noted + (size_t)noted->ndim * sizeof(opdi_size));
        }
    }
    if (symbols->nodes) { opdi_free(symbols->nodes, OPDI_SIZED_NODES * sizeof *symbols->nodes); }
}
/* Frees the symbols of a mode that ends.  Its tensors keep the numbers. */
OPDI_INTERNAL void opdi_symbols_end(opdi_symbols *symbols) {
    opdi_lock(&opdi_sized_lock);
    while (symbols->live) {
        opdi_sized *sized = symbols->live;
        opdi_sized_unlink(sized);
        sized->tensor->meta->marks = NULL;
        sized->tensor->functionality &= ~OPD_BIT_OF(OPDI_SIZES_KEY);
        opdi_free(sized, opdi_sized_bytes(sized->ndim));
    }
    opdi_unlock(&opdi_sized_lock);
    opdi_sized_nodes_free(symbols);
    if (symbols->symbol) { opdi_free(symbols->symbol, (size_t)symbols->capacity * sizeof *symbols->symbol); }
    memset(symbols, 0, sizeof *symbols);
}
/* If a size, or the number of elements, of a tensor with sizes that depend on data is `integer`, writes to *size how it
   follows from a symbol, and returns true. */
OPDI_INTERNAL bool opdi_size_read(opdi_symbols *symbols, int64_t integer, opdi_size *size) {
    bool found = false;
    opdi_lock(&opdi_sized_lock);
    for (const opdi_sized *sized = symbols->live; sized && !found; sized = sized->next) {
        const opd_tensor *tensor = sized->tensor;
        for (int dim = 0; dim < sized->ndim && sized->ndim == tensor->ndim && !found; dim++) {
            const int64_t others = tensor->dims[dim] > 0 ? tensor->numel / tensor->dims[dim] : 0;
            const bool one = tensor->dims[dim] == integer, all = others > 0 && tensor->numel == integer;
            if (sized->size[dim].symbol < 0 || sized->size[dim].other >= 0 || (!one && !all) ||
                opdi_symbol_is_known(opdi_symbol_of(symbols, sized->size[dim].symbol))) { continue; }
            *size = sized->size[dim];
            size->factor *= one ? 1 : others;
            size->rest *= one ? 1 : others;
            found = true;
        }
    }
    opdi_unlock(&opdi_sized_lock);
    return found;
}

//== what is known about symbols =======================================================================================

/* Gives a symbol a number, and all tensors the sizes that follow. */
OPDI_INTERNAL void opdi_symbol_take(opdi_symbols *symbols, int i, int64_t number) {
    opdi_symbol_of(symbols, i)->value = number;
    opdi_symbols_apply(symbols);
}
/* Makes two symbols one: the sizes that one of them has are sizes of both.  Returns false if no number is possible for
   both. */
OPDI_INTERNAL bool opdi_symbols_join(opdi_symbols *symbols, int first, int second) {
    int one = opdi_symbol_root(symbols, first), two = opdi_symbol_root(symbols, second);
    if (one == two) { return true; }
    if (symbols->symbol[one].name < 0 || (symbols->symbol[two].name >= 0 && two < one)) {
        const int swapped = one;
        one = two;
        two = swapped;
    }
    opdi_symbol *kept = &symbols->symbol[one], *joined = &symbols->symbol[two], both = *kept;
    both.min = OPDI_MAX(kept->min, joined->min);
    both.max = kept->max < 0 ? joined->max : joined->max < 0 ? kept->max : OPDI_MIN(kept->max, joined->max);
    if (kept->step % joined->step != 0) {
        both.step = joined->step % kept->step == 0 ? joined->step : kept->step * joined->step;
    }
    if (both.max >= 0 && both.max < both.min) { return false; }
    if (joined->nvalues) {
        const opdi_symbol *narrow = joined, *wide = kept;
        both.nvalues = 0;
        for (int k = 0; k < narrow->nvalues; k++) {
            if (opdi_symbol_can_be(wide, narrow->values[k])) { both.values[both.nvalues++] = narrow->values[k]; }
        }
        if (both.nvalues == 0) { return false; }
    }
    if (joined->value < both.value) { both.value = joined->value; }
    both.value = OPDI_MAX(both.value, both.min);
    if (both.nvalues) { both.value = both.values[0]; }
    *kept = both;
    joined->same = one;
    opdi_symbols_apply(symbols);
    return true;
}
/* Notes that a symbol is one of `count` numbers, and computes with the first of them. */
OPDI_INTERNAL void opdi_symbol_fix(opdi_symbols *symbols, int i, const int64_t *values, int count) {
    const int root = opdi_symbol_root(symbols, i);
    opdi_symbol *symbol = &symbols->symbol[root];
    if (symbol->maybe >= 0 && values[0] != symbol->first && opdi_symbol_root(symbols, symbol->maybe) != root &&
        opdi_symbols_join(symbols, root, symbol->maybe)) {
        opdi_symbol_fix(symbols, symbol->maybe, values, count);
        return;
    }
    memcpy(symbol->values, values, (size_t)count * sizeof *values);
    symbol->nvalues = count;
    opdi_symbol_take(symbols, root, values[0]);
}

//== what programs ask for and say =====================================================================================

/* Adds a size to a text, for example "2*u0 + 1". */
static void opdi_size_print(const opdi_symbols *symbols, const opdi_size *size, int64_t now, opdi_text *text) {
    const opdi_symbol *symbol = size->symbol < 0 ? NULL : opdi_symbol_of(symbols, size->symbol);
    const opdi_symbol *other = size->other < 0 ? symbol : opdi_symbol_of(symbols, size->other);
    if (!symbol || symbol->name < 0 || opdi_symbol_is_known(symbol) || other->name < 0 || opdi_symbol_is_known(other)) {
        opdi_text_add(text, "%lld", (long long)now);
        return;
    }
    const bool whole = size->divisor > 1 && size->rest;
    opdi_text_add(text, whole ? "(" : "");
    if (size->factor != 1) { opdi_text_add(text, "%lld*", (long long)size->factor); }
    opdi_text_add(text, "u%d", symbol->name);
    if (size->other >= 0) { opdi_text_add(text, "*u%d", other->name); }
    if (size->rest) { opdi_text_add(text, size->rest < 0 ? " - %lld" : " + %lld", (long long)llabs(size->rest)); }
    opdi_text_add(text, whole ? ")" : "");
    if (size->divisor > 1) { opdi_text_add(text, "/%lld", (long long)size->divisor); }
}
size_t opd_fake_shape_print(const opd_tensor *tensor, char *buf, size_t cap) {
    opdi_text text = opdi_text_of(buf, cap);
    const opdi_fake_mode *fake = opdi_fake_mode_of(opdi_self());
    if (opdi_null_tensor(tensor, "opd_fake_shape_print")) { return 0; }
    const opdi_sized *sized = fake ? opdi_sized_of(tensor, fake->symbols) : NULL;
    opdi_text_add(&text, "(");
    for (int i = 0; i < tensor->ndim; i++) {
        if (i) { opdi_text_add(&text, ", "); }
        if (sized) { opdi_size_print(fake->symbols, &sized->size[i], tensor->dims[i], &text); }
        else { opdi_text_add(&text, "%lld", (long long)tensor->dims[i]); }
    }
    opdi_text_add(&text, ")");
    return text.length;
}
size_t opd_fake_sizes_print(char *buf, size_t cap) {
    opdi_text text = opdi_text_of(buf, cap);
    const opdi_fake_mode *fake = opdi_fake_mode_of(opdi_self());
    for (int i = 0; fake && i < fake->symbols->count; i++) {
        const opdi_symbol *symbol = &fake->symbols->symbol[i];
        if (symbol->name < 0) { continue; }
        if (symbol->max < 0) { opdi_text_add(&text, "u%d >= %lld", symbol->name, (long long)symbol->min); }
        else {
            opdi_text_add(&text, "%lld <= u%d <= %lld", (long long)symbol->min, symbol->name, (long long)symbol->max);
        }
        if (symbol->same >= 0) {
            opdi_text_add(&text, ", u%d == u%d", symbol->name, opdi_symbol_of(fake->symbols, i)->name);
        }
        if (symbol->step > 1) { opdi_text_add(&text, ", u%d %% %lld == 0", symbol->name, (long long)symbol->step); }
        for (int k = 0; k < symbol->nvalues && symbol->same < 0; k++) {
            opdi_text_add(&text, "%s u%d == %lld", k ? " or" : ",", symbol->name, (long long)symbol->values[k]);
        }
        opdi_text_add(&text, "\n");
    }
    return text.length;
}
int opd_check_size(opd_tensor *tensor, int dim, int64_t size) {
    const opdi_fake_mode *fake = opdi_fake_mode_of(opdi_self());
    if (opdi_null_tensor(tensor, "opd_check_size") || !opd_ok()) { return -1; }
    const int at = dim < 0 ? dim + tensor->ndim : dim;
    if (at < 0 || at >= tensor->ndim) {
        return opd_fail(OPD_ERROR_INDEX, "opd_check_size: dim %d is out of range for a tensor with %d dims", dim,
                        tensor->ndim);
    }
    if (tensor->flags & OPDI_BATCHED) {
        const opdi_batched *batched = opdi_batched_of(tensor);
        return opd_check_size(batched->value, at < batched->dim ? at : at + 1, size);
    }
    const opdi_sized *sized = fake ? opdi_sized_of(tensor, fake->symbols) : NULL;
    const opdi_size *its = sized && sized->size[at].symbol >= 0 ? &sized->size[at] : NULL;
    if (its && its->other >= 0 && tensor->dims[at] != size) {
        return opd_fail(OPD_ERROR_SHAPE, "opd_check_size: the size at dim %d is the product of two sizes that depend "
                        "on data: call opd_check_size for these two sizes instead, on the tensors that have them", at);
    }
    const opdi_symbol *symbol = its ? opdi_symbol_of(fake->symbols, its->symbol) : NULL;
    const int64_t scaled = its ? size * its->divisor - its->rest : 0;
    if (its && its->other < 0 && scaled % its->factor == 0 && opdi_symbol_can_be(symbol, scaled / its->factor)) {
        const int64_t number = scaled / its->factor;
        opdi_symbol_fix(fake->symbols, its->symbol, &number, 1);
        return 0;
    }
    if (tensor->dims[at] == size) { return 0; }
    char text[24 * OPD_MAX_DIMS];
    if (its) {
        (void)opd_fake_shape_print(tensor, text, sizeof text);
        return opd_fail(OPD_ERROR_SHAPE, "opd_check_size: the size at dim %d of the tensor %s cannot be %lld", at, text,
                        (long long)size);
    }
    return opd_fail(OPD_ERROR_SHAPE, "opd_check_size: expected size %lld at dim %d, got a tensor of sizes %s",
                    (long long)size, at, opdi_sizes_text(tensor->dims, tensor->ndim, text, sizeof text));
}
