#include "graphs.h"

//== memory plans ======================================================================================================
//
//  A tensor needs memory of its own if no schema says that it is a view of an argument.  It is alive from the node that
//  computes it to the last use of it, and of all values that may share its memory.  The largest tensors get their
//  places first: each the smallest gap between tensors that are alive at the same time.

enum { OPDI_MEMORY_ALIGN = 64 };
typedef struct opdi_memory_search {
    opd_graph *graph;
    uint64_t nodes, sets;                         /* node->mark - nodes is the number of a node of the body, from 0 on;
                                                     root->mark - sets is the number of a set of values, from 1 on */
    int32_t *last;                                /* for each set: the last node that uses it */
    int32_t count;                                /* of nodes */
    opd_graph_slot *slots;
    int nslots;
} opdi_memory_search;

/* Returns the number of the node of the body that is `node`, or around it. */
static int32_t opdi_memory_number(const opdi_memory_search *search, const opdi_gnode *node) {
    while (node->block->owner) { node = node->block->owner; }
    return (int32_t)(node->mark - search->nodes);
}
static int32_t *opdi_memory_last(const opdi_memory_search *search, opdi_gvalue *value) {
    opdi_gvalue *const root = opdi_gvalue_root(value);
    if (root->mark <= search->sets) {
        root->mark = ++search->graph->mark;
        search->last[root->mark - search->sets] = -1;
    }
    return &search->last[root->mark - search->sets];
}
static void opdi_memory_use(const opdi_memory_search *search, opdi_gvalue *const *values, int32_t count, int32_t at) {
    for (int32_t i = 0; i < count; i++) {
        int32_t *const last = opdi_memory_last(search, values[i]);
        *last = OPDI_MAX(*last, at);
    }
}
/* Finds the last use of each set of values. */
static void opdi_memory_uses(opdi_memory_search *search) {
    opd_graph *const graph = search->graph;
    int32_t at = 0;
    search->nodes = graph->mark;
    graph->mark += (uint64_t)search->count;
    for (opdi_gnode *node = graph->body.first; node; node = node->next) { node->mark = search->nodes + (uint64_t)at++; }
    search->sets = graph->mark;
    for (const opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        const int32_t number = opdi_memory_number(search, node);
        opdi_memory_use(search, node->in, node->nin, number);
        opdi_memory_use(search, node->out, node->nout, number);
        for (int32_t k = 0; k < node->nblocks; k++) {
            opdi_memory_use(search, node->blocks[k].inputs, node->blocks[k].ninputs, number);
            opdi_memory_use(search, node->blocks[k].outputs, node->blocks[k].noutputs, number);
        }
    }
    opdi_memory_use(search, graph->outputs, graph->noutputs, search->count);
    if (graph->result) { opdi_memory_use(search, &graph->result, 1, search->count); }
}
/* Returns whether output i of a node has its own memory: not if it surely is a view of an input. */
static bool opdi_gnode_owns_memory(const opdi_gnode *node, int32_t i) {
    if (node->kind == OPDI_GNODE_CONSTANT || node->kind == OPDI_GNODE_LIST || node->kind == OPDI_GNODE_TUPLE ||
        node->kind == OPDI_GNODE_UNPACK) { return false; }
    for (int32_t k = 0; node->kind == OPDI_GNODE_OP && k < node->nin; k++) {
        const bool tensors = node->in[k]->tag == OPD_TAG_TENSOR || node->in[k]->tag == OPD_TAG_TENSORS;
        if (tensors && opdi_op_tells_aliases(node->op) && opd_schema_may_alias(node->op->schema, k, -1 - i, NULL)) {
            return false;
        }
    }
    return true;
}
/* Returns the bytes of a tensor with the sizes and strides that the graph knows. */
static size_t opdi_gvalue_bytes(const opdi_gvalue *value) {
    int64_t count = 1;
    for (int d = 0; d < value->ndim; d++) {
        if (value->dims[d] == 0) { return 0; }
        count += (value->dims[d] - 1) * value->dims[value->ndim + d];
    }
    return (size_t)opdi_elements_bytes(value->dtype, count);
}
/* Returns whether a size of a tensor may differ from run to run (opd_graph_trace_open). */
static bool opdi_gvalue_is_open(const opdi_gvalue *value) {
    bool open = false;
    for (int d = 0; value->open && d < value->ndim; d++) {
        open = open || (value->open[d] && value->open[d]->kind != OPDI_GEXPR_NUMBER);
    }
    return open;
}
/* Lists the tensors that need memory on the device, in order.  Returns how many more the graph has whose sizes it does
   not know. */
static int opdi_memory_tensors(opdi_memory_search *search, opd_device device) {
    int unknown = 0;
    for (const opdi_gnode *node = search->graph->body.first; node; node = node->next) {
        for (int32_t i = 0; i < node->nout; i++) {
            opdi_gvalue *const value = node->out[i];
            const bool list = value->tag == OPD_TAG_TENSORS;
            if ((value->tag != OPD_TAG_TENSOR && !list) || !opdi_gnode_owns_memory(node, i)) { continue; }
            if (list || value->dtype < 0 || opdi_gvalue_is_open(value)) {
                unknown++;
                continue;
            }
            if (value->backend != device.type) { continue; }
            opd_graph_slot *const slot = &search->slots[search->nslots++];
            slot->value = value;
            slot->bytes = opdi_gvalue_bytes(value);
            slot->first = (int)(node->mark - search->nodes);
            slot->last = (int)OPDI_MAX(*opdi_memory_last(search, value), slot->first);
            slot->offset = 0;
        }
    }
    return unknown;
}
/* Orders slots for qsort: large ones first, of equal ones the earlier. */
static int opdi_memory_order(const void *x, const void *y) {
    const opd_graph_slot *const a = *(const opd_graph_slot *const *)x, *const b = *(const opd_graph_slot *const *)y;
    if (a->bytes != b->bytes) { return a->bytes > b->bytes ? -1 : 1; }
    return a < b ? -1 : a > b;
}
static size_t opdi_memory_end(const opd_graph_slot *slot) {
    return slot->offset + (slot->bytes + OPDI_MEMORY_ALIGN - 1) / OPDI_MEMORY_ALIGN * OPDI_MEMORY_ALIGN;
}
/* Gives `slot` the smallest gap between the slots placed[count], which are in the order of their offsets, and inserts
   it there. */
static void opdi_memory_place(opd_graph_slot *slot, opd_graph_slot **placed, int count) {
    const size_t bytes = opdi_memory_end(slot) - slot->offset;
    size_t end = 0, best = SIZE_MAX, gap = SIZE_MAX;
    for (int i = 0; i < count; i++) {
        if (placed[i]->last < slot->first || placed[i]->first > slot->last || !placed[i]->bytes) { continue; }
        if (placed[i]->offset >= end && placed[i]->offset - end >= bytes && placed[i]->offset - end < gap) {
            best = end;
            gap = placed[i]->offset - end;
        }
        end = OPDI_MAX(end, opdi_memory_end(placed[i]));
    }
    slot->offset = best == SIZE_MAX ? end : best;
    int at = count;
    for (; at > 0 && placed[at - 1]->offset > slot->offset; at--) { placed[at] = placed[at - 1]; }
    placed[at] = slot;
}
/* Computes the sums of *memory.  changes[count + 1]: room for a number for each node. */
static void opdi_memory_sums(const opdi_memory_search *search, int64_t *changes, opd_graph_memory *memory) {
    int64_t now = 0;
    memset(changes, 0, ((size_t)search->count + 2) * sizeof *changes);
    for (int i = 0; i < search->nslots; i++) {
        const opd_graph_slot *const slot = &search->slots[i];
        const size_t bytes = opdi_memory_end(slot) - slot->offset;
        memory->total = OPDI_MAX(memory->total, opdi_memory_end(slot));
        memory->apart += bytes;
        changes[slot->first] += (int64_t)bytes;
        changes[slot->last + 1] -= (int64_t)bytes;
    }
    for (int32_t i = 0; i <= search->count; i++) {
        now += changes[i];
        memory->alive = OPDI_MAX(memory->alive, (size_t)now);
    }
}
/* Makes a plan in the innermost scope.  Returns the number of slots, or -1 and sets an error. */
static int opdi_graph_plan_memory(opd_graph *graph, opd_device device, opd_graph_slot **slots,
                                  opd_graph_memory *memory) {
    opdi_memory_search search;
    size_t values = (size_t)graph->ninputs + 1;
    memset(&search, 0, sizeof search);
    memset(memory, 0, sizeof *memory);
    search.graph = graph;
    for (const opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        search.count += !node->block->owner;
        values += (size_t)node->nout;
        for (int32_t k = 0; k < node->nblocks; k++) { values += (size_t)node->blocks[k].ninputs; }
    }
    search.last = (int32_t *)opdi_scope_alloc((values + 1) * sizeof *search.last);
    search.slots = (opd_graph_slot *)opdi_scope_alloc(values * sizeof *search.slots);
    opd_graph_slot **const order = (opd_graph_slot **)opdi_scope_alloc(2 * values * sizeof *order);
    int64_t *const changes = (int64_t *)opdi_scope_alloc(((size_t)search.count + 2) * sizeof *changes);
    if (!search.last || !search.slots || !order || !changes || opdi_graph_alias(graph, false)) { return -1; }
    opdi_memory_uses(&search);
    memory->unknown = opdi_memory_tensors(&search, device);
    for (int i = 0; i < search.nslots; i++) { order[i] = &search.slots[i]; }
    qsort(order, (size_t)search.nslots, sizeof *order, opdi_memory_order);
    for (int i = 0; i < search.nslots; i++) { opdi_memory_place(order[i], order + values, i); }
    opdi_memory_sums(&search, changes, memory);
    *slots = search.slots;
    return search.nslots;
}
int opd_graph_plan_memory(opd_graph *graph, opd_device device, opd_graph_slot *slots, int cap,
                          opd_graph_memory *memory) {
    opd_graph_memory own;
    opd_graph_slot *all = NULL;
    if (!opd_ok()) { return -1; }
    if (!graph) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_plan_memory: the graph is NULL"); }
    if (cap > 0 && !slots) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_plan_memory: the slots are NULL"); }
    opd_scope scope = opd_scope_open();
    const int count = opdi_graph_plan_memory(graph, device, &all, memory ? memory : &own);
    if (count > 0 && cap > 0) { memcpy(slots, all, (size_t)OPDI_MIN(count, cap) * sizeof *slots); }
    opd_scope_close(&scope);
    return count;
}

//== printing ==========================================================================================================

/* Writes a slot as a line: its place, its nodes, its value, and a bar of `columns` for the time in which it lives. */
static void opdi_memory_print_slot(opdi_text *text, const opd_graph_slot *slot, int nodes) {
    enum { COLUMNS = 40 };
    char name[60] = "", called[100];
    opdi_text out = opdi_text_of(name, sizeof name);
    const int from = slot->first * COLUMNS / (nodes + 1), to = slot->last * COLUMNS / (nodes + 1);
    opdi_gvalue_name(&out, slot->value);
    opdi_text_add(text, "%12llu %12llu %6d %6d  |", (unsigned long long)slot->offset, (unsigned long long)slot->bytes,
                  slot->first, slot->last);
    for (int i = 0; i < COLUMNS; i++) { opdi_text_add(text, i >= from && i <= to ? "#" : " "); }
    opdi_text_add(text, "|  %s = %s\n", name, opdi_gnode_name(slot->value->node, called, sizeof called));
}
size_t opd_graph_print_memory(opd_graph *graph, opd_device device, char *buf, size_t cap) {
    opdi_text text = opdi_text_of(buf, buf ? cap : 0);
    opd_graph_memory memory;
    opd_graph_slot *slots = NULL;
    int nodes = 0;
    if (!opd_ok() || !graph) {
        if (opd_ok()) { (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_print_memory: the graph is NULL"); }
        return 0;
    }
    opd_scope scope = opd_scope_open();
    const int count = opdi_graph_plan_memory(graph, device, &slots, &memory);
    for (const opdi_gnode *node = graph->body.first; node; node = node->next) { nodes++; }
    if (count >= 0) {
        opdi_text_add(&text, "%d tensors in %llu bytes; apart, they need %llu; alive at the same time: %llu\n",
                      count, (unsigned long long)memory.total, (unsigned long long)memory.apart,
                      (unsigned long long)memory.alive);
        if (memory.unknown) {
            opdi_text_add(&text, "%d tensors of unknown sizes are not in the plan\n", memory.unknown);
        }
        opdi_text_add(&text, "%12s %12s %6s %6s\n", "offset", "bytes", "first", "last");
    }
    for (int i = 0; i < count; i++) { opdi_memory_print_slot(&text, &slots[i], nodes); }
    opd_scope_close(&scope);
    return count < 0 ? 0 : text.length;
}
