#include "graphs.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>running      running graphs as sequences of steps
//
//  A graph with its blocks becomes a sequence of steps.  Jumps enter and leave blocks, and all values have slots in one
//  array.
//
//  A value is released after its last use.  If a loop uses a value from outside of the loop, the value is released when
//  the loop has ended.  If only one of the two blocks of an If uses a value, the other block releases the value at its
//  beginning.
//----------------------------------------------------------------------------------------------------------------------

OPDI_COLD_BEGIN

/* Returns true if a node has no step in a run: a constant, a list of constants, or the tuple of the outputs. */
static bool opdi_gnode_has_no_step(const opd_graph *graph, const opdi_gnode *node) {
    if (node->kind != OPDI_GNODE_TUPLE) { return node->fixed; }
    return graph->result == node->out[0] && !(graph->noutputs == 1 && graph->outputs[0] == graph->result);
}
/* Returns true if a run computes the value; the run then holds a reference to it. */
static bool opdi_gvalue_made(const opd_graph *graph, const opdi_gvalue *value) {
    const opdi_gnode *const node = value->node;
    return node ? node->kind != OPDI_GNODE_CONSTANT && !(node->kind == OPDI_GNODE_LIST && node->light) &&
        !opdi_gnode_has_no_step(graph, node) : value->block != NULL;
}

/* The state while a plan is made. */
typedef struct opdi_graph_planner {
    opd_graph *graph;
    int32_t *slots;                               /* the slots of the values to release, in the order in which these
                                                     were found */
    opdi_gstep *steps;
    opdi_gvalue **trail;                          /* the values that have become live, in this order */
    int64_t nslots, slots_cap, nsteps, steps_cap, ntrail, trail_cap;
    int32_t frame;                                /* the number of slots of a run */
    size_t scratch;
    bool cells, failed;
} opdi_graph_planner;

static int32_t opdi_graph_plan_slot(opdi_graph_planner *planner, int32_t slot) {
    void *slots = planner->slots;
    if (planner->failed || opdi_grow(&slots, planner->nslots, &planner->slots_cap, sizeof *planner->slots)) {
        planner->failed = true;
        return 0;
    }
    planner->slots = (int32_t *)slots;
    planner->slots[planner->nslots] = slot;
    return (int32_t)planner->nslots++;
}
/* Marks `value` as live.  Nodes are visited from the last to the first, so the first visit is the value's last use.  In
   this case, if `drop` is true, adds the value's slot to the slots to release.  Also marks the elements of a light
   list. */
static void opdi_graph_plan_use(opdi_graph_planner *planner, opdi_gvalue *value, bool drop) {
    const opdi_gnode *const list =
        value->node && value->node->kind == OPDI_GNODE_LIST && value->node->light ? value->node : NULL;
    void *trail = planner->trail;
    if (!value->live && opdi_gvalue_made(planner->graph, value)) {
        value->live = true;
        if (drop) { (void)opdi_graph_plan_slot(planner, value->slot); }
        if (planner->failed || opdi_grow(&trail, planner->ntrail, &planner->trail_cap, sizeof *planner->trail)) {
            planner->failed = true;
            return;
        }
        planner->trail = (opdi_gvalue **)trail;
        planner->trail[planner->ntrail++] = value;
    }
    for (int32_t k = 0; list && k < list->nin; k++) { opdi_graph_plan_use(planner, list->in[k], drop); }
}
/* Returns the number of blocks around the node or block that makes a value (see opdi_graph_too_deep). */
static int opdi_gvalue_depth(const opd_graph *graph, const opdi_gvalue *value) {
    return opdi_gvalue_block(graph, value)->depth;
}
/* Marks as live all values that come from outside of a loop and that the block of the loop uses; they are released
   after the loop.  `depth` is the number of blocks around the loop. */
static void opdi_graph_plan_outside(opdi_graph_planner *planner, const opdi_gblock *block, int depth) {
    for (const opdi_gnode *node = block->first; node; node = node->next) {
        for (int32_t i = 0; i < node->nin; i++) {
            if (!node->in[i]->live && opdi_gvalue_depth(planner->graph, node->in[i]) <= depth) {
                opdi_graph_plan_use(planner, node->in[i], true);
            }
        }
        for (int32_t i = 0; i < node->nblocks; i++) { opdi_graph_plan_outside(planner, &node->blocks[i], depth); }
    }
    for (int32_t i = 0; i < block->noutputs; i++) {
        if (!block->outputs[i]->live && opdi_gvalue_depth(planner->graph, block->outputs[i]) <= depth) {
            opdi_graph_plan_use(planner, block->outputs[i], true);
        }
    }
}
static void opdi_graph_plan_block(opdi_graph_planner *planner, opdi_gblock *block);
/* Marks as live the values of the trail from index `start` on, which the two blocks of an If use.  Then keeps on the
   trail only the values from outside of the If, once each: only these matter to the blocks around the If.  `depth` is
   the number of blocks around it. */
static void opdi_graph_plan_joined(opdi_graph_planner *planner, int64_t start, int depth) {
    int64_t kept = start;
    for (int64_t i = start; i < planner->ntrail; i++) { planner->trail[i]->first = false; }
    for (int64_t i = start; i < planner->ntrail; i++) {
        opdi_gvalue *const value = planner->trail[i];
        value->live = true;
        if (value->first || opdi_gvalue_depth(planner->graph, value) > depth) { continue; }
        value->first = true;
        planner->trail[kept++] = value;
    }
    for (int64_t i = start; i < kept; i++) { planner->trail[i]->first = false; }
    planner->ntrail = kept;
}
/* Plans which values are released in the two blocks of an If.  If only one block uses a value, the other block releases
   the value when it begins. */
static void opdi_graph_plan_if(opdi_graph_planner *planner, opdi_gnode *node, int depth) {
    opdi_gblock *const first = &node->blocks[0], *const second = &node->blocks[1];
    const int64_t start = planner->ntrail;
    opdi_graph_plan_block(planner, first);
    const int64_t middle = planner->ntrail;
    for (int64_t i = start; i < middle; i++) { planner->trail[i]->live = false; }
    opdi_graph_plan_block(planner, second);
    if (planner->failed) { return; }
    second->entry = (int32_t)planner->nslots;
    for (int64_t i = start; i < middle; i++) {
        opdi_gvalue *const value = planner->trail[i];
        value->first = true;
        if (value->live || opdi_gvalue_depth(planner->graph, value) > depth) { continue; }
        (void)opdi_graph_plan_slot(planner, value->slot);
    }
    second->nentry = (int32_t)planner->nslots - second->entry;
    first->entry = (int32_t)planner->nslots;
    for (int64_t i = middle; i < planner->ntrail && !planner->failed; i++) {
        opdi_gvalue *const value = planner->trail[i];
        if (value->first || opdi_gvalue_depth(planner->graph, value) > depth) { continue; }
        (void)opdi_graph_plan_slot(planner, value->slot);
    }
    first->nentry = (int32_t)planner->nslots - first->entry;
    opdi_graph_plan_joined(planner, start, depth);
}
/* Visits the nodes of a block from the last to the first, and finds the last use of each value. */
static void opdi_graph_plan_block(opdi_graph_planner *planner, opdi_gblock *block) {
    const int depth = block->depth;
    block->end = (int32_t)planner->nslots;
    for (int32_t i = 0; i < block->noutputs; i++) { opdi_graph_plan_use(planner, block->outputs[i], true); }
    block->nend = (int32_t)planner->nslots - block->end;
    for (opdi_gnode *node = block->last; node && !planner->failed; node = node->prev) {
        if (node->kind == OPDI_GNODE_IF) { opdi_graph_plan_if(planner, node, depth); }
        node->drops = (int32_t)planner->nslots;
        for (int32_t i = 0; i < node->nout; i++) {
            if (!node->out[i]->live && opdi_gvalue_made(planner->graph, node->out[i])) {
                (void)opdi_graph_plan_slot(planner, node->out[i]->slot);
            }
        }
        if (node->kind == OPDI_GNODE_LOOP) {
            opdi_gblock *const body = &node->blocks[0];
            opdi_graph_plan_outside(planner, body, depth);
            node->ndrops = (int32_t)planner->nslots - node->drops;
            opdi_graph_plan_block(planner, body);
            node->starts = (int32_t)planner->nslots;
            for (int32_t i = 0; i < node->nin; i++) { opdi_graph_plan_use(planner, node->in[i], true); }
            node->nstarts = (int32_t)planner->nslots - node->starts;
            body->entry = (int32_t)planner->nslots;
            for (int32_t i = 0; i < body->ninputs; i++) {
                if (!body->inputs[i]->live) { (void)opdi_graph_plan_slot(planner, body->inputs[i]->slot); }
            }
            body->nentry = (int32_t)planner->nslots - body->entry;
            continue;
        }
        const bool list = node->kind == OPDI_GNODE_LIST && node->light;
        for (int32_t i = 0; i < node->nin && !list && !opdi_gnode_has_no_step(planner->graph, node); i++) {
            opdi_graph_plan_use(planner, node->in[i], true);
        }
        node->ndrops = (int32_t)planner->nslots - node->drops;
    }
}

/* Adds a step for a node.  The caller then adds its slots by opdi_graph_plan_slot.  Returns the step, or NULL if memory
   runs out. */
static opdi_gstep *opdi_graph_plan_step(opdi_graph_planner *planner, const opdi_gnode *node, int32_t code) {
    void *steps = planner->steps;
    if (planner->failed || opdi_grow(&steps, planner->nsteps, &planner->steps_cap, sizeof *planner->steps)) {
        planner->failed = true;
        return NULL;
    }
    planner->steps = (opdi_gstep *)steps;
    opdi_gstep *step = &planner->steps[planner->nsteps++];
    memset(step, 0, sizeof *step);
    step->node = node;
    step->code = code;
    step->slots = (int32_t)planner->nslots;
    return step;
}
static void opdi_graph_plan_values(opdi_graph_planner *planner, opdi_gvalue *const *values, int32_t count) {
    for (int32_t i = 0; i < count; i++) { (void)opdi_graph_plan_slot(planner, values[i]->slot); }
}
/* Ends a step: adds the slots of the values to release after the step.  These are the `count` entries of planner->slots
   from index `from` on. */
static void opdi_graph_plan_drops(opdi_graph_planner *planner, int32_t from, int32_t count) {
    for (int32_t i = 0; i < count && !planner->failed; i++) {
        (void)opdi_graph_plan_slot(planner, planner->slots[from + i]);
    }
    if (!planner->failed) { planner->steps[planner->nsteps - 1].ndrop = count; }
}
static void opdi_graph_plan_release(opdi_graph_planner *planner, int32_t from, int32_t count) {
    if (count && opdi_graph_plan_step(planner, NULL, OPDI_STEP_DROP)) { opdi_graph_plan_drops(planner, from, count); }
}
static void opdi_graph_plan_steps(opdi_graph_planner *planner, const opdi_gblock *block);
static void opdi_graph_plan_target(opdi_graph_planner *planner, int64_t step) {
    if (!planner->failed) { planner->steps[step].target = (int32_t)planner->nsteps; }
}
/* Adds the steps of an If: a step that jumps to the second block if the condition is false; then, for each block, the
   steps of the block and a step that copies its outputs to the results. */
static void opdi_graph_plan_branches(opdi_graph_planner *planner, const opdi_gnode *node) {
    const int64_t at = planner->nsteps;
    if (!opdi_graph_plan_step(planner, node, OPDI_STEP_IF)) { return; }
    opdi_graph_plan_values(planner, node->in, 1);
    planner->steps[at].nin = 1;
    for (int k = 0; k < 2 && !planner->failed; k++) {
        const opdi_gblock *const block = &node->blocks[k];
        if (k) { opdi_graph_plan_target(planner, at); }
        opdi_graph_plan_release(planner, block->entry, block->nentry);
        opdi_graph_plan_steps(planner, block);
        opdi_gstep *step = opdi_graph_plan_step(planner, node, OPDI_STEP_JUMP);
        if (!step) { return; }
        step->nin = step->nout = block->noutputs;
        opdi_graph_plan_values(planner, block->outputs, block->noutputs);
        opdi_graph_plan_values(planner, node->out, node->nout);
        opdi_graph_plan_drops(planner, block->end, block->nend);
        if (k == 0) { planner->steps[at].extra = (int32_t)planner->nsteps - 1; }
    }
    if (planner->failed) { return; }
    opdi_graph_plan_target(planner, planner->steps[at].extra);
    opdi_graph_plan_target(planner, planner->nsteps - 1);
    opdi_graph_plan_release(planner, node->drops, node->ndrops);
}
/* Adds the steps of a Loop: a step that begins the loop, the steps of its block, and a step that begins the next round
   or ends the loop. */
static void opdi_graph_plan_loop(opdi_graph_planner *planner, const opdi_gnode *node) {
    const opdi_gblock *const body = &node->blocks[0];
    const int64_t at = planner->nsteps;
    const int32_t extra = planner->frame;
    planner->frame += 2;
    for (int k = 0; k < 2; k++) {
        opdi_gstep *step = opdi_graph_plan_step(planner, node, k ? OPDI_STEP_NEXT : OPDI_STEP_LOOP);
        if (!step) { return; }
        step->extra = extra;
        step->inner = body->inputs[0]->slot;
        step->nin = k ? body->noutputs : node->nin;
        step->nout = node->nout;
        opdi_graph_plan_values(planner, k ? body->outputs : node->in, k ? body->noutputs : node->nin);
        opdi_graph_plan_values(planner, node->out, node->nout);
        opdi_graph_plan_values(planner, body->inputs + 1, body->ninputs - 1);
        opdi_graph_plan_drops(planner, k ? body->end : node->starts, k ? body->nend : node->nstarts);
        if (k || planner->failed) { break; }
        opdi_graph_plan_release(planner, body->entry, body->nentry);
        opdi_graph_plan_steps(planner, body);
    }
    if (planner->failed) { return; }
    planner->steps[planner->nsteps - 1].target = (int32_t)at + 1;
    opdi_graph_plan_target(planner, at);
    opdi_graph_plan_release(planner, node->drops, node->ndrops);
}
static void opdi_graph_plan_steps(opdi_graph_planner *planner, const opdi_gblock *block) {
    for (opdi_gnode *node = block->first; node && !planner->failed; node = node->next) {
        static const int8_t codes[] = {OPDI_STEP_OP, OPDI_STEP_DROP, OPDI_STEP_MAKE, OPDI_STEP_MAKE, OPDI_STEP_UNPACK,
                                       OPDI_STEP_IF, OPDI_STEP_LOOP, OPDI_STEP_BUILTIN, OPDI_STEP_FUNCTION};
        int32_t code = codes[node->kind];
        if (node->kind == OPDI_GNODE_IF) { opdi_graph_plan_branches(planner, node); }
        if (node->kind == OPDI_GNODE_LOOP) { opdi_graph_plan_loop(planner, node); }
        if (node->nblocks || opdi_gnode_has_no_step(planner->graph, node)) { continue; }
        if (code == OPDI_STEP_OP && planner->cells) { code = OPDI_STEP_OP_CELLS; }
        if (node->kind == OPDI_GNODE_LIST && node->light) { code = OPDI_STEP_LIST; }
        opdi_gstep *step = opdi_graph_plan_step(planner, node, code);
        if (!step) { return; }
        step->nin = node->nin;
        step->nout = node->nout;
        step->target = (int32_t)planner->scratch;
        if (code == OPDI_STEP_LIST) { planner->scratch += (size_t)node->nin * sizeof(opd_value) + 8; }
        opdi_graph_plan_values(planner, node->in, node->nin);
        opdi_graph_plan_values(planner, node->out, node->nout);
        opdi_graph_plan_drops(planner, node->drops, node->ndrops);
    }
}

/* Returns true if a graph has blocks, builtins, or values that are not tensors. */
static bool opdi_graph_has_cells(const opd_graph *graph) {
    for (int32_t i = 0; i < graph->ninputs; i++) {
        if (graph->inputs[i]->tag > OPD_TAG_BOOL || graph->inputs[i]->type) { return true; }
    }
    for (const opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        if ((node->kind >= OPDI_GNODE_IF && node->kind != OPDI_GNODE_FUNCTION) ||
            (node->kind == OPDI_GNODE_CONSTANT && node->constant.tag == OPD_TAG_CELL) ||
            (node->kind == OPDI_GNODE_LIST && !node->light) ||
            (node->kind == OPDI_GNODE_TUPLE && !opdi_gnode_has_no_step(graph, node))) { return true; }
    }
    return graph->noutputs == 1 && graph->outputs[0]->tag > OPD_TAG_BOOL;
}
/* Finds the last use of each value, then adds the steps.  Returns 0, or -1 if memory runs out. */
static int opdi_graph_plan_work(opdi_graph_planner *planner) {
    opd_graph *const graph = planner->graph;
    opdi_gblock *const body = &graph->body;
    for (int32_t i = 0; i < graph->ninputs; i++) { graph->inputs[i]->live = false; }
    for (opdi_gnode *node = body->first; node; node = opdi_gnode_after(node)) {
        for (int32_t i = 0; i < node->nout; i++) { node->out[i]->live = false; }
        for (int32_t k = 0; k < node->nblocks; k++) {
            for (int32_t i = 0; i < node->blocks[k].ninputs; i++) { node->blocks[k].inputs[i]->live = false; }
        }
    }
    for (int32_t i = 0; i < graph->noutputs; i++) { opdi_graph_plan_use(planner, graph->outputs[i], false); }
    opdi_graph_plan_block(planner, body);
    planner->cells = opdi_graph_has_cells(graph);
    opdi_graph_plan_steps(planner, body);
    return planner->failed ? -1 : 0;
}
OPDI_INTERNAL opd_value opdi_gnode_list(const opdi_gnode *node, const opd_value *vals, char **at);
/* Fills plan->start, the contents of the slots when a run begins: constants, and lists of constants.  The elements of
   the lists follow the slots in memory. */
static void opdi_graph_plan_start(const opd_graph *graph, opdi_graph_plan *plan) {
    char *lists = (char *)(plan->start + plan->nslots);
    for (int32_t i = 0; i < plan->nslots; i++) { plan->start[i] = opd_value_none(); }
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        if (node->kind == OPDI_GNODE_CONSTANT) { plan->start[node->out[0]->slot] = node->constant; }
        if (node->kind == OPDI_GNODE_LIST && node->fixed) {
            plan->start[node->out[0]->slot] = opdi_gnode_list(node, plan->start, &lists);
        }
        for (int32_t i = 0; i < node->nout; i++) {
            if (opdi_gvalue_made(graph, node->out[i])) { plan->owned[plan->nowned++] = node->out[i]->slot; }
        }
        for (int32_t k = 0; k < node->nblocks; k++) {
            for (int32_t i = 0; i < node->blocks[k].ninputs; i++) {
                plan->owned[plan->nowned++] = node->blocks[k].inputs[i]->slot;
            }
        }
    }
    for (int32_t i = 0; i < graph->noutputs; i++) { graph->outputs[i]->live = false; }
    for (int32_t i = 0; i < graph->noutputs; i++) {        /* live: the value is in plan->rest */
        opdi_gvalue *const value = graph->outputs[i];
        if (value->live || !opdi_gvalue_made(graph, value)) { continue; }
        value->live = true;
        plan->rest[plan->nrest++] = value->slot;
    }
    for (int32_t i = 0; i < graph->noutputs; i++) { graph->outputs[i]->live = false; }
}
/* Makes the plan of a graph: the steps, and the values to release after each step.  Returns the plan, or NULL if memory
   or the stack runs out. */
static opdi_graph_plan *opdi_graph_plan_make(opd_graph *graph) {
    opdi_graph_planner planner;
    opdi_graph_plan *plan = NULL;
    size_t lists;
    if (opdi_graph_too_deep(graph)) { return NULL; }
    memset(&planner, 0, sizeof planner);
    planner.graph = graph;
    planner.frame = opdi_graph_number(graph, &lists);
    if (opdi_graph_plan_work(&planner) == 0) {
        const size_t slots = (size_t)planner.frame, steps = (size_t)planner.nsteps, refs = (size_t)planner.nslots;
        const size_t bytes = sizeof *plan + slots * sizeof *plan->start + lists + steps * sizeof *plan->steps +
            (refs + 2 * slots + (size_t)graph->noutputs) * sizeof *plan->slots;
        if ((plan = (opdi_graph_plan *)opdi_alloc(bytes)) != NULL) {
            memset(plan, 0, bytes);
            plan->bytes = bytes;
            plan->nslots = planner.frame;
            plan->scratch = planner.scratch;
            plan->nsteps = (int32_t)planner.nsteps;
            plan->cells = planner.cells;
            plan->start = (opd_value *)(void *)(plan + 1);
            plan->steps = (opdi_gstep *)(void *)((char *)(plan->start + slots) + lists);
            plan->slots = (int32_t *)(void *)(plan->steps + steps);
            plan->owned = plan->slots + refs;
            plan->rest = plan->owned + slots;
            if (steps) { memcpy(plan->steps, planner.steps, steps * sizeof *plan->steps); }
            if (refs) { memcpy(plan->slots, planner.slots, refs * sizeof *plan->slots); }
            opdi_graph_plan_start(graph, plan);
        }
    }
    opdi_free(planner.slots, (size_t)planner.slots_cap * sizeof *planner.slots);
    opdi_free(planner.steps, (size_t)planner.steps_cap * sizeof *planner.steps);
    opdi_free(planner.trail, (size_t)planner.trail_cap * sizeof *planner.trail);
    return plan;
}
OPDI_INTERNAL opdi_mutex opdi_plan_lock = OPDI_MUTEX_INIT;
/* Returns the plan of a graph; makes it if there is none.  Returns NULL if memory runs out. */
OPDI_INTERNAL const opdi_graph_plan *opdi_graph_plan_of(const opd_graph *graph) {
    opd_graph *changed = (opd_graph *)(uintptr_t)graph;
    opdi_lock(&opdi_plan_lock);
    opdi_graph_plan *plan = changed->plan ? changed->plan : opdi_graph_plan_make(changed);
    OPDI_PUBLISH(&changed->plan, plan);
    opdi_unlock(&opdi_plan_lock);
    return plan;
}

/* Releases the value in a slot of a run, and sets the slot to None. */
OPDI_INTERNAL void opdi_graph_value_release(opd_value *value) {
    opd_value old = *value;
    *value = opd_value_none();
    if (old.tag == OPD_TAG_TENSOR || old.tag == OPD_TAG_CELL) { opdi_value_drop(old); }
    else if (old.tag == OPD_TAG_STR || old.tag == OPD_TAG_COMPLEX || opdi_is_list(&old)) { opdi_ret_block_free(&old); }
}

OPDI_COLD_END

/* Sets element `place` of a list whose elements have the kind that its tag says. */
OPDI_INTERNAL void opdi_graph_list_set(const opd_value *list, int32_t place, const opd_value *element) {
    void *const at = list->u.object;
    switch (list->tag) {
    case OPD_TAG_INTS: ((int64_t *)at)[place] = element->u.i; break;
    case OPD_TAG_FLOATS: ((double *)at)[place] = element->tag == OPD_TAG_FLOAT ? element->u.d : (double)element->u.i;
    break;
    case OPD_TAG_BOOLS: ((bool *)at)[place] = element->u.i != 0; break;
    case OPD_TAG_TENSORS: ((opd_tensor **)at)[place] = element->tag == OPD_TAG_TENSOR ? element->u.t : NULL; break;
    default: ((opd_value *)at)[place] = *element; break;
    }
}
/* Returns the light list that `node` makes of the values in `vals`.  Writes its elements to *at, and advances *at. */
OPDI_INTERNAL opd_value opdi_gnode_list(const opdi_gnode *node, const opd_value *vals, char **at) {
    opd_value value = opd_value_none();
    value.tag = node->out[0]->tag;
    value.n = node->nin;
    value.u.object = *at;
    for (int32_t k = 0; k < node->nin; k++) { opdi_graph_list_set(&value, k, &vals[node->in[k]->slot]); }
    *at += (size_t)node->nin * sizeof(opd_value) + 8;
    return value;
}

/* Runs a node by a full call through the dispatcher, because its arguments need a conversion, calls are observed, or
   the operator was redefined.  Stores references of the results in `rets`.  Returns 0, or -1 and sets an error. */
OPDI_NOINLINE OPDI_INTERNAL int opdi_graph_call(const opdi_gnode *node, opd_value *rets, const opd_value *args) {
    opd_scope scope = opd_scope_open();
    opd_value given[OPDI_MAX_RETURNS];
    int rc = opd_ok() ? 0 : -1;
    if (rc == 0 && node->nout != node->op->nrets) {
        rc = opd_fail(OPD_ERROR_ARGUMENT, "%s was defined again with another number of results (%d) after the graph "
                      "was made", node->op->name, node->op->nrets);
    }
    rc = rc ? rc : opd_call_all(node->op, given, args, node->nin);
    for (int i = 0; i < node->nout && rc == 0; i++) {
        opd_value value = given[i];
        if (value.tag == OPD_TAG_TENSOR) { opdi_retain(value.u.t); }
        else if (value.tag == OPD_TAG_TENSORS) {
            opd_tensor **copy = (opd_tensor **)opdi_ret_block((size_t)value.n * sizeof *copy);
            for (int32_t k = 0; copy && k < value.n; k++) { copy[k] = opdi_keep(value.u.tensors[k]); }
            value = opd_value_tensors(copy, value.n);
            rc = copy ? 0 : -1;
        } else if (value.tag == OPD_TAG_STR || value.tag == OPD_TAG_COMPLEX || opdi_is_list(&value)) {
            rc = opdi_ret_copy(&value);
        }
        if (rc == 0) { rets[i] = value; }
    }
    opd_scope_close(&scope);
    return rc;
}
