#include "script.h"

//== clean-up of compiled functions ====================================================================================
//
//  A compiled function is simplified as runCleanupPasses does in PyTorch.  Constants are moved to the top, and equal
//  constants are merged.  Unused results of branches and loops are removed; the others are sorted by their first use.
//  Then values get the names that TorchScript gives them when it inlines functions.

/* Sets the member `uses` of all values of a function to the number of their uses.  Returning a value as `result` is a
   use.  If `calls` is true, the objects whose methods are called count as used, too. */
static void opdi_script_clean_count(const opdi_script_body *body, opdi_gvalue *result, bool calls) {
    for (opdi_gnode *node = opdi_script_body_first(body); node; node = opdi_script_body_after(body, node)) {
        for (int32_t i = 0; i < node->nout; i++) { node->out[i]->uses = 0; }
        for (int32_t b = 0; b < node->nblocks; b++) {
            for (int32_t i = 0; i < node->blocks[b].ninputs; i++) { node->blocks[b].inputs[i]->uses = 0; }
        }
    }
    for (opdi_gnode *node = opdi_script_body_first(body); node; node = opdi_script_body_after(body, node)) {
        for (int32_t i = 0; i < node->nin; i++) { node->in[i]->uses++; }
        for (int32_t b = 0; b < node->nblocks; b++) {
            for (int32_t i = 0; i < node->blocks[b].noutputs; i++) { node->blocks[b].outputs[i]->uses++; }
        }
    }
    result->uses++;
    for (int32_t i = 0; calls && i < body->ncalled; i++) {
        if (body->called[i]->self) { body->called[i]->self->uses++; }
    }
}
/* Removes element i of an array of *count values. */
static void opdi_script_clean_drop(opdi_gvalue **values, int32_t *count, int32_t i) {
    memmove(values + i, values + i + 1, (size_t)(*count - i - 1) * sizeof *values);
    --*count;
}
/* Removes unused results of a branch, or unused carried values of a loop.  Returns whether any were removed. */
static bool opdi_script_clean_results(opdi_gnode *node) {
    const int32_t was = node->nout;
    for (int32_t i = node->nout - 1; i >= 0; i--) {
        if (node->out[i]->uses) { continue; }
        if (node->kind == OPDI_GNODE_LOOP) {
            opdi_gblock *body = &node->blocks[0];
            const opdi_gvalue *input = body->inputs[1 + i];
            if (input->uses > (body->outputs[1 + i] == input)) { continue; }
            opdi_script_clean_drop(body->inputs, &body->ninputs, 1 + i);
            opdi_script_clean_drop(body->outputs, &body->noutputs, 1 + i);
            opdi_script_clean_drop(node->in, &node->nin, 2 + i);
        } else {
            for (int b = 0; b < 2; b++) {
                opdi_script_clean_drop(node->blocks[b].outputs, &node->blocks[b].noutputs, i);
            }
        }
        opdi_script_clean_drop(node->out, &node->nout, i);
    }
    return node->nout < was;
}
/* Releases the value of a constant node. */
static void opdi_gnode_release_constant(opdi_gnode *node) {
    if (node->constant.tag == OPD_TAG_TENSOR) { opdi_release(node->constant.u.t); }
    else { opdi_constant_drop(node->constant); }
    node->constant = opd_value_none();
}
static void opdi_script_clean_unlink(opdi_gnode *node) {
    opdi_gblock *block = node->block;
    if (node->prev) { node->prev->next = node->next; } else { block->first = node->next; }
    if (node->next) { node->next->prev = node->prev; } else { block->last = node->prev; }
}
/* The value of `slot` that marks values of nodes that were removed. */
enum { OPDI_SCRIPT_CLEAN_GONE = -2 };
static void opdi_script_clean_remove(opdi_gnode *node) {
    if (node->kind == OPDI_GNODE_CONSTANT) { opdi_gnode_release_constant(node); }
    for (int32_t i = 0; i < node->nout; i++) { node->out[i]->slot = OPDI_SCRIPT_CLEAN_GONE; }
    opdi_script_clean_unlink(node);
}
/* Removes all nodes of a block that never runs. */
static void opdi_script_clean_dead(opdi_gblock *block) {
    while (block->first) {
        opdi_gnode *node = block->first;
        for (int32_t i = 0; i < node->nblocks; i++) { opdi_script_clean_dead(&node->blocks[i]); }
        opdi_script_clean_remove(node);
    }
}
/* Returns whether a node only makes a constant, combines values (list, tuple) or selects a value; such a node computes
   nothing. */
static bool opdi_script_clean_pure(const opdi_gnode *node) {
    return node->kind == OPDI_GNODE_CONSTANT || node->kind == OPDI_GNODE_LIST || node->kind == OPDI_GNODE_TUPLE ||
        (node->kind == OPDI_GNODE_BUILTIN && node->builtin->schema && (
         strncmp(node->builtin->schema, "prim::Uninitialized", 19) == 0 ||
         strncmp(node->builtin->schema, "prim::unchecked_cast", 20) == 0 ||
         strncmp(node->builtin->schema, "prim::TupleIndex", 16) == 0 ||
         strncmp(node->builtin->schema, "prim::GetAttr", 13) == 0));
}
/* Returns whether a node, and all nodes in its blocks, have no side effects. */
static bool opdi_script_clean_idle(const opdi_gnode *node) {
    if (node->kind == OPDI_GNODE_IF || node->kind == OPDI_GNODE_LOOP) {
        for (int32_t b = 0; b < node->nblocks; b++) {
            for (const opdi_gnode *one = node->blocks[b].first; one; one = one->next) {
                if (!opdi_script_clean_idle(one)) { return false; }
            }
        }
        return true;
    }
    return opdi_script_clean_pure(node) || (!opdi_gnode_stays(node) && !(node->kind == OPDI_GNODE_BUILTIN &&
                                                                         node->builtin->run == opdi_builtin_unknown));
}
/* Removes nodes without side effects whose results are not used.  If `alone` is true, nodes of inlined functions are
   removed only if they are pure (see opdi_script_clean_pure).  Returns whether any nodes were removed. */
static bool opdi_script_clean_unused(const opdi_script_body *body, bool alone) {
    bool found = false;
    for (opdi_gnode *node = opdi_script_body_first(body), *next; node; node = next) {
        const bool branch = node->kind == OPDI_GNODE_IF || node->kind == OPDI_GNODE_LOOP;
        bool used = node->nout == 0 && !branch;
        next = opdi_script_body_after(body, node);
        for (int32_t i = 0; i < node->nout; i++) { used = used || node->out[i]->uses; }
        if (branch && opdi_script_clean_results(node)) { found = true; }
        if (used || !(alone && node->called ? opdi_script_clean_pure(node) : opdi_script_clean_idle(node))) {
            continue;
        }
        found = true;
        for (int32_t b = 0; b < node->nblocks; b++) { opdi_script_clean_dead(&node->blocks[b]); }
        next = opdi_script_body_after(body, node);
        opdi_script_clean_remove(node);
    }
    return found;
}
/* Makes a node the constant `value`.  Returns true. */
static bool opdi_script_clean_becomes(opdi_gnode *node, opd_value value) {
    node->kind = OPDI_GNODE_CONSTANT;
    node->nin = 0;
    node->builtin = NULL;
    node->op = NULL;
    node->constant = value;
    node->place = NULL;
    return true;
}
/* If a node calls a builtin with constant arguments, and the result is a number, bool, string or device, makes the node
   a constant.  Returns whether it has done so. */
OPDI_INTERNAL bool opdi_script_clean_folds(opdi_gnode *node) {
    opd_value args[8], out = opd_value_none();
    opdi_bcall call;
    if (node->kind != OPDI_GNODE_BUILTIN || node->nout != 1 || node->nin < 1 || node->nin > 8 ||
        (node->builtin->flags & (OPDI_BUILTIN_STAYS | OPDI_BUILTIN_ANY)) ||
        strncmp(node->builtin->schema, "aten::", 6) != 0 || node->builtin->run == opdi_builtin_unknown) {
        return false;
    }
    for (int32_t i = 0; i < node->nin; i++) {
        const opdi_gnode *from = node->in[i]->node;
        if (!from || from->kind != OPDI_GNODE_CONSTANT || from->attribute ||
            from->constant.tag == OPD_TAG_TENSOR || from->constant.tag == OPD_TAG_CELL) { return false; }
        args[i] = from->constant;
        if (args[i].tag == OPD_TAG_STR) { args[i] = opd_string_new(args[i].u.s, -1); }
    }
    memset(&call, 0, sizeof call);
    call.args = args;
    call.rets = &out;
    call.nargs = node->nin;
    call.nrets = 1;
    call.node = node;
    call.builtin = node->builtin;
    const int mark = opd_error_mark();
    const int rc = opd_ok() ? node->builtin->run(&call) : -1;
    (void)opd_error_rewind(mark);
    if (rc || (out.tag != OPD_TAG_INT && out.tag != OPD_TAG_FLOAT && out.tag != OPD_TAG_BOOL &&
               out.tag != OPD_TAG_DEVICE)) {
        if (rc == 0) { opdi_value_drop(out); }
        return false;
    }
    return opdi_script_clean_becomes(node, out);
}
/* Calls opdi_script_clean_folds for the nodes of a function and, unless `alone` is true, for the nodes of inlined
   functions.  Returns whether any node has become a constant. */
static bool opdi_script_clean_fold(const opdi_script_body *body, bool alone) {
    bool found = false;
    for (opdi_gnode *node = opdi_script_body_first(body); node; node = opdi_script_body_after(body, node)) {
        bool folded = false;
        if (alone && node->called) { continue; }
        if (node->kind == OPDI_GNODE_BUILTIN) { OPD_SCOPE { folded = opdi_script_clean_folds(node); } }
        found = found || folded;
    }
    return found;
}
/* Replaces a branch by the nodes of one of its blocks: the first block if `truth` is true, else the second.  Returns
   the first of these nodes, or NULL if there is none. */
static opdi_gnode *opdi_script_clean_inline_branch(opdi_gnode *node, bool truth) {
    opdi_gblock *const taken = &node->blocks[!truth], *const around = node->block;
    opdi_gnode *const first = taken->first, *const last = taken->last;
    for (int32_t i = 0; i < node->nout; i++) { node->out[i]->same = taken->outputs[i]; }
    opdi_script_clean_dead(&node->blocks[truth]);
    if (first) {
        for (opdi_gnode *one = first; one; one = one->next) { one->block = around; }
        first->prev = node->prev;
        if (node->prev) { node->prev->next = first; } else { around->first = first; }
        last->next = node;
        node->prev = last;
        taken->first = taken->last = NULL;
    }
    opdi_script_clean_remove(node);
    return first;
}
/* Returns a value that can replace result i of a branch, or NULL if there is none.  If both blocks have the same
   output, returns this output.  If the outputs are True and False, returns the condition, unless `alone` is true. */
static opdi_gvalue *opdi_script_clean_either(const opdi_gnode *node, int32_t i, bool alone) {
    opdi_gvalue *const yes = node->blocks[0].outputs[i], *const no = node->blocks[1].outputs[i];
    if (yes == no) { return yes; }
    if (!alone && opdi_emit_known_bool(yes) == 1 && opdi_emit_known_bool(no) == 0) { return node->in[0]; }
    return NULL;
}
/* Returns whether a node tests if a value is None (or is not None), and the type of the value determines the result.
   Sets *truth to the result. */
static bool opdi_script_clean_is_none(const opdi_gnode *node, bool *truth) {
    if (node->kind != OPDI_GNODE_BUILTIN || node->nin != 2 || node->nout != 1) { return false; }
    const bool is = strncmp(node->builtin->schema, "aten::__is__(", 13) == 0;
    if (!is && strncmp(node->builtin->schema, "aten::__isnot__(", 16) != 0) { return false; }
    const int first = opdi_emit_type(node->in[0])->kind, second = opdi_emit_type(node->in[1])->kind;
    const int other = second == OPDI_GTYPE_NONE ? first : second;
    *truth = (first == OPDI_GTYPE_NONE && second == OPDI_GTYPE_NONE) == is;
    return (first == OPDI_GTYPE_NONE || second == OPDI_GTYPE_NONE) && other != OPDI_GTYPE_OPTIONAL &&
        other != OPDI_GTYPE_UNION &&
        other != OPDI_GTYPE_ANY;
}
/* Returns whether an operator of the function writes into the value. */
static bool opdi_script_clean_written(const opdi_script_body *body, const opdi_gvalue *value) {
    for (const opdi_gnode *node = opdi_script_body_first(body); node; node = opdi_script_body_after(body, node)) {
        const uint64_t written = opdi_gnode_written(node);
        for (int32_t i = 0; written && i < node->nin; i++) {
            const opdi_gvalue *it = node->in[i];
            while (it->same) { it = it->same; }
            if (it == value) { return true; }
        }
    }
    return false;
}
/* If a node computes the number of dims of a convolution's result, returns this number: 3 to 5 for a convolution over 1
   to 3 dims.  Otherwise returns 0. */
static int opdi_script_clean_dims(const opdi_script_body *body, const opdi_gnode *node) {
    char name[16];
    const bool asks = node->kind == OPDI_GNODE_OP && node->nin == 1 && strcmp(node->op->name, "aten::dim") == 0;
    const opdi_gnode *from = asks ? node->in[0]->node : NULL;
    if (!from || from->kind != OPDI_GNODE_OP) { return 0; }
    for (int dims = 1; dims <= 3; dims++) {
        (void)snprintf(name, sizeof name, "aten::conv%dd", dims);
        if (strcmp(from->op->base_name, name) == 0) {
            return opdi_script_clean_written(body, node->in[0]) ? 0 : dims + 2;
        }
    }
    return 0;
}
/* Applies the peephole optimization of PyTorch to a node: replaces tests for None whose result is known, casts of a
   value to its own type, and the number of dims of a convolution's result.  Returns whether the node was replaced. */
static bool opdi_script_clean_peephole(const opdi_script_body *body, opdi_gnode *node) {
    bool truth = false;
    if (opdi_script_clean_is_none(node, &truth)) { return opdi_script_clean_becomes(node, opd_value_bool(truth)); }
    const int dims = opdi_script_clean_dims(body, node);
    if (dims) { return opdi_script_clean_becomes(node, opd_value_int(dims)); }
    if (node->kind == OPDI_GNODE_BUILTIN && node->nin == 1 && node->nout == 1 && !node->out[0]->same &&
        strncmp(node->builtin->schema, "prim::unchecked_cast", 20) == 0 &&
        opdi_gtype_fits(opdi_emit_type(node->in[0]), opdi_emit_type(node->out[0]))) {
        node->out[0]->same = node->in[0];
        return true;
    }
    return false;
}
/* For each of `count` values: as long as its member `same` is not NULL, replaces the value by this member. */
static void opdi_script_clean_replace(opdi_gvalue **values, int32_t count) {
    for (int32_t i = 0; i < count; i++) { while (values[i]->same) { values[i] = values[i]->same; } }
}
/* Calls opdi_script_clean_replace for the inputs of all nodes of a function, for the outputs of their blocks, and for
   the result *result of the function. */
OPDI_INTERNAL void opdi_script_clean_replace_all(const opdi_script_body *body, opdi_gvalue **result) {
    for (opdi_gnode *node = opdi_script_body_first(body); node; node = opdi_script_body_after(body, node)) {
        opdi_script_clean_replace(node->in, node->nin);
        for (int32_t b = 0; b < node->nblocks; b++) {
            opdi_script_clean_replace(node->blocks[b].outputs, node->blocks[b].noutputs);
        }
    }
    opdi_script_clean_replace(result, 1);
}
/* Removes branches whose condition is known, and results of branches that are equal in both blocks, and calls
   opdi_script_clean_peephole for each node.  If `alone` is true, skips inlined functions and the peephole optimization.
   Returns whether anything has changed. */
static bool opdi_script_clean_branches(const opdi_script_body *body, opdi_gvalue **result, bool alone) {
    bool found = false;
    for (opdi_gnode *node = opdi_script_body_first(body), *next; node; node = next) {
        next = opdi_script_body_after(body, node);
        if (alone && node->called) { continue; }
        if (!alone && opdi_script_clean_peephole(body, node)) { found = true; }
        if (node->kind != OPDI_GNODE_IF) { continue; }
        for (int32_t i = 0; i < node->nout; i++) {
            opdi_gvalue *const either = node->out[i]->same ? NULL : opdi_script_clean_either(node, i, alone);
            if (either) { node->out[i]->same = either; }
            found = found || either;
        }
        opdi_script_clean_replace(node->in, node->nin);
        const int known = opdi_emit_known_bool(node->in[0]);
        if (known < 0) { continue; }
        opdi_gnode *const first = opdi_script_clean_inline_branch(node, known == 1);
        next = first ? first : opdi_script_body_after(body, node);         /* the nodes from `first` on have replaced
                                                                              the branch */
        found = true;
    }
    if (found) { opdi_script_clean_replace_all(body, result); }
    return found;
}
/* Moves a node in front of the function's first node. */
static void opdi_script_clean_to_top(const opdi_script_body *body, opdi_gnode *node) {
    opdi_gnode *const first = opdi_script_body_first(body);
    if (node == first) { return; }
    opdi_script_clean_unlink(node);
    node->block = body->block;
    node->prev = first->prev;
    node->next = first;
    if (first->prev) { first->prev->next = node; } else { body->block->first = node; }
    first->prev = node;
}
/* Moves constants to the top of the function, each in front of those moved before, as PyTorch does, and merges equal
   constants.  If `all` is true, also moves the constants of inlined functions.  Returns 0, or -1 if memory runs out. */
static int opdi_script_clean_constants(opdi_emitter *task, const opdi_script_body *body, opdi_gvalue **result,
                                       bool all) {
    opdi_index known;                              /* the constants that were moved */
    memset(&known, 0, sizeof known);
    for (opdi_gnode *node = opdi_script_body_first(body), *next; node; node = next) {
        next = opdi_script_body_after(body, node);
        if (node->kind != OPDI_GNODE_CONSTANT || (!all && opdi_script_body_call(body, node->out[0]))) { continue; }
        size_t length = 0;
        const char *const key = opdi_emit_constant_key(task, &node->constant, opdi_emit_type(node->out[0]),
                                                       node->attribute, &length);
        const opdi_gnode *const same = key ? (const opdi_gnode *)opdi_index_get(&known, key, length) : NULL;
        if (same) {
            node->out[0]->same = same->out[0];
            opdi_script_clean_remove(node);
            continue;
        }
        opdi_script_clean_to_top(body, node);
        if (key && opdi_index_set(&known, task->arena, key, length, node)) { return -1; }
    }
    opdi_script_clean_replace_all(body, result);
    return opd_ok() ? 0 : -1;
}
/* Adds 1 to *at, the number of uses so far.  If this is the first use of a value, sets value->slot to *at. */
static void opdi_script_clean_first(opdi_gvalue *value, int32_t *at) {
    ++*at;
    if (value->slot < 0) { value->slot = *at; }
}
static void opdi_script_clean_swap(opdi_gvalue **values, int32_t i) {
    opdi_gvalue *value = values[i];
    values[i] = values[i - 1];
    values[i - 1] = value;
}
/* Sorts the results of branches and loops by their first use.  Returns whether a result was moved; the first uses of
   other results may then be different. */
static bool opdi_script_clean_order(const opdi_script_body *body, opdi_gvalue *result) {
    bool moved = false;
    int32_t at = 0;
    for (opdi_gnode *node = opdi_script_body_first(body); node; node = opdi_script_body_after(body, node)) {
        for (int32_t i = 0; i < node->nout; i++) { node->out[i]->slot = -1; }
    }
    for (opdi_gnode *node = opdi_script_body_first(body); node; node = opdi_script_body_after(body, node)) {
        for (int32_t i = 0; i < node->nin; i++) { opdi_script_clean_first(node->in[i], &at); }
        const opdi_gblock *block = node->next || node->block == body->block ? NULL : node->block;
        for (int32_t i = 0; block && i < block->noutputs && !node->nblocks; i++) {
            opdi_script_clean_first(block->outputs[i], &at); /* the outputs of a block are used after its last node */
        }
    }
    for (opdi_gnode *node = opdi_script_body_first(body); node; node = opdi_script_body_after(body, node)) {
        for (int32_t b = 0; b < node->nblocks; b++) {
            for (int32_t i = 0; i < node->blocks[b].noutputs; i++) {
                opdi_script_clean_first(node->blocks[b].outputs[i], &at);
            }
        }
    }
    opdi_script_clean_first(result, &at);
    for (opdi_gnode *node = opdi_script_body_first(body); node; node = opdi_script_body_after(body, node)) {
        const bool loop = node->kind == OPDI_GNODE_LOOP;
        if (node->kind != OPDI_GNODE_IF && !loop) { continue; }
        for (int32_t i = 1; i < node->nout; i++) {
            for (int32_t k = i; k > 0 && (uint32_t)node->out[k]->slot < (uint32_t)node->out[k - 1]->slot; k--) {
                opdi_script_clean_swap(node->out, k);
                moved = true;
                for (int32_t b = 0; b < node->nblocks; b++) {
                    opdi_script_clean_swap(node->blocks[b].outputs, k + loop);
                }
                if (loop) {
                    opdi_script_clean_swap(node->blocks[0].inputs, k + 1);
                    opdi_script_clean_swap(node->in, k + 2);
                }
            }
        }
    }
    return moved;
}

/* The state of a walk that names and numbers the values of a function and of the functions that are inlined in it. */
typedef struct opdi_script_naming {
    opdi_emitter *task;
    opdi_script_body *body;
    opdi_inlined_call *at;                        /* the inlined call to which the current values belong, or NULL */
    int32_t next, pass;                           /* pass 0: names values; 1: numbers the values of the function itself;
                                                     2: numbers the values of inlined functions */
} opdi_script_naming;
/* Ends the walk over the values of an inlined call: the result of the call gets the name of the value that represents
   the call. */
static void opdi_script_naming_close(opdi_script_naming *naming) {
    opdi_inlined_call *called = naming->at;
    if (naming->pass == 0 && called && called->call->name) {
        const char *name = called->call->name;
        opdi_script_value_name *named = opdi_emit_named_as(naming->task, name, strlen(name));
        if (named) { named->taken = false; }
        if (called->result->slot != OPDI_SCRIPT_CLEAN_GONE) { opdi_emit_take(naming->task, name, called->result); }
    }
    naming->at = NULL;
}
static void opdi_script_naming_value(opdi_script_naming *naming, opdi_gvalue *value) {
    opdi_inlined_call *called = opdi_script_body_call(naming->body, value);
    if (called != naming->at) {
        opdi_script_naming_close(naming);
        naming->at = called;
        if (called && naming->pass == 1) { called->call->id = naming->next++; }
    }
    if (naming->pass == 0 && called && value->name) { opdi_emit_take(naming->task, value->name, value); }
    if (naming->pass == 1 + (called != NULL)) { value->uses = naming->next++; }
}
static void opdi_script_naming_walk(opdi_script_naming *naming, int32_t pass) {
    naming->pass = pass;
    naming->at = NULL;
    for (opdi_gnode *node = opdi_script_body_first(naming->body); node;
         node = opdi_script_body_after(naming->body, node)) {
        for (int32_t i = 0; i < node->nout; i++) { opdi_script_naming_value(naming, node->out[i]); }
        for (int32_t b = 0; b < node->nblocks; b++) {
            for (int32_t i = 0; i < node->blocks[b].ninputs; i++) {
                opdi_script_naming_value(naming, node->blocks[b].inputs[i]);
            }
        }
    }
    opdi_script_naming_close(naming);
}
/* Numbers the values of a graph.  The values of the function itself come first, then the values of inlined functions,
   because TorchScript inlines functions after it has copied the graph. */
static void opdi_script_naming_numbers(opdi_script_naming *naming) {
    opd_graph *const graph = naming->task->graph;
    for (int32_t i = 0; i < graph->ninputs; i++) { graph->inputs[i]->id = naming->next++; }
    opdi_script_naming_walk(naming, 1);
    opdi_script_naming_walk(naming, 2);
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        for (int32_t i = 0; i < node->nout; i++) {
            node->out[i]->id = node->out[i]->uses;
            node->out[i]->slot = 0;
            node->out[i]->first = false;
        }
        for (int32_t b = 0; b < node->nblocks; b++) {
            for (int32_t i = 0; i < node->blocks[b].ninputs; i++) {
                node->blocks[b].inputs[i]->id = node->blocks[b].inputs[i]->uses;
                node->blocks[b].inputs[i]->first = false;
            }
        }
    }
    graph->next_id = naming->next;
}
/* Gives values the names that they get only when the function is complete (body->later), and frees the names of values
   of statements that were moved. */
static void opdi_script_body_names(opdi_emitter *task, opdi_script_body *body) {
    for (const opdi_deferred_name *later = body->later; later; later = later->next) {
        if (later->name) { opdi_emit_take(task, later->name, later->value); }
        else { later->value->name = NULL; }
    }
    for (const opdi_value_entry *moved = body->moved; moved; moved = moved->next) {
        const char *const name = moved->value->name;
        if (name) {
            opdi_emit_take(task, name, NULL);
            opdi_emit_named_as(task, name, strlen(name))->taken = false;
        }
    }
}
/* Frees the names of values that were removed. */
static void opdi_script_body_free_names(const opdi_script_body *body) {
    for (size_t i = 0; i < body->names.cap; i++) {
        opdi_script_value_name *const named = (opdi_script_value_name *)body->names.slots[i].entry;
        if (named && (!named->value || named->value->slot == OPDI_SCRIPT_CLEAN_GONE)) { named->taken = false; }
    }
}
/* Folds constants, and removes branches and unused nodes, until nothing changes.  If `alone` is true, inlined functions
   are not changed, except that their unused nodes are removed. */
static void opdi_script_clean_rounds(const opdi_script_body *body, opdi_gvalue **result, bool alone) {
    bool more = true;
    for (int rounds = 0; more && rounds < 100; rounds++) {
        opdi_script_clean_count(body, *result, alone);
        more = opdi_script_clean_fold(body, alone);
        more = opdi_script_clean_branches(body, result, alone) || more;
        if (more) { opdi_script_clean_count(body, *result, alone); }
        more = opdi_script_clean_unused(body, alone) || more;
    }
}
/* Appends a call to the calls that were inlined in a function.  Returns 0, or -1 if memory runs out. */
static int opdi_script_body_called(opdi_emitter *task, opdi_script_body *body, opdi_inlined_call *called) {
    if ((body->ncalled & (body->ncalled - 1)) == 0) {      /* if the count is 0, 1, 2, 4, ..., the array is full */
        opdi_inlined_call **const more =
            (opdi_inlined_call **)opdi_emit_alloc(task, (size_t)OPDI_MAX(2 * body->ncalled, 1) * sizeof *more);
        if (!more) { return -1; }
        if (body->ncalled) { memcpy(more, body->called, (size_t)body->ncalled * sizeof *more); }
        body->called = more;
    }
    body->called[body->ncalled++] = called;
    return opd_ok() ? 0 : -1;
}
/* Cleans up a compiled function whose result is *result.  May replace *result.  Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int opdi_script_body_close(opdi_emitter *task, opdi_script_body *body, opdi_gvalue **result) {
    opdi_script_naming naming;
    memset(&naming, 0, sizeof naming);
    naming.task = task;
    naming.body = body;
    opdi_graph_changed(task->graph);
    opdi_script_body_names(task, body);
    for (int i = 0; i < 2; i++) { if (body->flags[i]) { opdi_script_clean_to_top(body, body->flags[i]->node); } }
    opdi_script_clean_rounds(body, result, true);
    if (opdi_script_clean_constants(task, body, result, false)) { return -1; }
    for (int rounds = 0; rounds < 8 && opdi_script_clean_order(body, *result); rounds++) { }
    opdi_script_body_free_names(body);
    opdi_script_naming_walk(&naming, 0);
    if (!body->up) {
        opdi_script_naming_numbers(&naming);
        return opd_ok() ? 0 : -1;
    }
    opdi_script_clean_rounds(body, result, false);
    if (opdi_script_clean_constants(task, body, result, true)) { return -1; }
    for (opdi_gnode *node = opdi_script_body_first(body); node; node = opdi_script_body_after(body, node)) {
        node->called = true;
    }
    opdi_inlined_call *called = (opdi_inlined_call *)opdi_emit_alloc(task, sizeof *called);
    if (!called || !(called->call = (opdi_gvalue *)opdi_emit_alloc(task, sizeof *called->call))) { return -1; }
    called->from = body->from;
    called->to = task->graph->next_id;
    called->result = *result;
    called->self = body->self;
    called->call->id = INT32_MAX;
    return opdi_script_body_called(task, body->up, called);
}
