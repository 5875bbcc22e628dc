#include "programs.h"

//== conditions and loops of traced graphs =============================================================================
//
//  A prim::If becomes cond, and a prim::Loop becomes scan, map_impl or while_loop: operators of PyTorch that take
//  graphs.  Such a graph gets all values that it reads as inputs, under their own names.  It returns only tensors that
//  it has made and that share no memory with its inputs; other results are copied.
//  A loop is a scan if it has a known number of rounds, and reads the number of the round only to take slices along dim
//  0, from the first to the last, or from the last to the first.  The lists to which it appends become results.  Any
//  other loop is a while_loop, which carries its condition and, if the number of rounds is limited, this number.

/* The slices and the lists of a loop. */
typedef struct opdi_program_appended {
    const opdi_gnode *append;    /* the node that appends to the list */
    const opdi_gvalue *stack;    /* the stacked list, or NULL if nothing stacks it */
    bool reversed;
} opdi_program_appended;
typedef struct opdi_program_loop {
    const opdi_gnode *node;
    const opdi_gblock *block;
    int64_t rounds;              /* the number of rounds, or -1 if it is not known */
    bool reverse;                /* the slices are taken from the last to the first */
    const opdi_gnode **slices;   /* the nodes that take slices */
    opdi_program_appended *lists;
    int nslices, nlists;
} opdi_program_loop;
/* The parts of the text of a graph while the text of an inner graph is made. */
typedef struct opdi_program_frame { opdi_string nodes, metas, inputs, outputs; } opdi_program_frame;
/* The values that the graphs of a node read. */
typedef struct opdi_program_captured { const opdi_gvalue **values; int64_t count, cap; } opdi_program_captured;

/* Returns whether a value is computed in a block or in a block inside of it, or is an input of such a block. */
static bool opdi_program_inside(const opdi_gvalue *value, const opdi_gblock *block) {
    const opdi_gblock *at = value->node ? value->node->block : value->block;
    while (at && at != block) { at = at->owner ? at->owner->block : NULL; }
    return at != NULL;
}
/* Returns how often the nodes of a block, and of the blocks inside of it, use a value. */
static int64_t opdi_program_uses(const opdi_gblock *block, const opdi_gvalue *value) {
    int64_t count = 0;
    for (int32_t i = 0; block->owner && i < block->noutputs; i++) { count += block->outputs[i] == value; }
    for (const opdi_gnode *node = block->first; node; node = node->next) {
        for (int32_t i = 0; i < node->nin; i++) { count += node->in[i] == value; }
        for (int32_t i = 0; i < node->nblocks; i++) { count += opdi_program_uses(&node->blocks[i], value); }
    }
    return count;
}

//-- the form of a loop ------------------------------------------------------------------------------------------------

/* Returns 1 if `at` is the number of the round, -1 if it counts down from the last slice, else 0. */
static int opdi_program_direction(const opdi_program_loop *loop, const opdi_gvalue *at) {
    int64_t last;
    if (at == loop->block->inputs[0]) { return 1; }
    return opdi_program_calls_builtin(at->node, "aten::sub.int(") && at->node->in[1] == loop->block->inputs[0] &&
        opdi_program_known(at->node->in[0], &last) && last == loop->rounds - 1 ? -1 : 0;
}
/* Returns 1 or -1, as opdi_program_direction, if a node takes the slice of the round; else 0. */
static int opdi_program_is_slice(const opdi_program_loop *loop, const opdi_gnode *node) {
    opdi_program_form form;
    int64_t dim;
    if (loop->rounds < 1 || node->block != loop->block || !opdi_program_calls(node, "aten::select.int") ||
        !opdi_program_known(node->in[1], &dim) || dim || opdi_program_inside(node->in[0], loop->block) ||
        !opdi_program_describe(node->in[0], &form) || !form.ndim || form.dims[0] != loop->rounds) { return 0; }
    return opdi_program_direction(loop, node->in[2]);
}
/* Finds the slices of a loop.  Sets loop->rounds to -1 if the loop is no scan.  Returns 0, or -1 if memory runs out. */
static int opdi_program_find_slices(opdi_program_loop *loop) {
    const opdi_gvalue *const round = loop->block->inputs[0];
    const opdi_gvalue *const tests[] = {loop->node->in[1], loop->block->outputs[0]};
    int64_t uses = 0, count = 0;
    if (!opdi_program_known(loop->node->in[0], &loop->rounds) || loop->rounds < 1) { loop->rounds = -1; }
    for (int i = 0; i < 2; i++) {
        const opdi_gnode *const test = tests[i]->node;
        if (!test || test->kind != OPDI_GNODE_CONSTANT || test->constant.tag != OPD_TAG_BOOL || !test->constant.u.i) {
            loop->rounds = -1;
        }
    }
    for (const opdi_gnode *node = loop->block->first; node; node = node->next) { count++; }
    loop->slices = (const opdi_gnode **)opdi_scope_alloc((size_t)(count + 1) * sizeof *loop->slices);
    if (!loop->slices) { return -1; }
    for (const opdi_gnode *node = loop->block->first; node; node = node->next) {
        const int direction = opdi_program_is_slice(loop, node);
        if (opdi_program_calls_builtin(node, "aten::sub.int(") && opdi_program_direction(loop, node->out[0])) {
            uses++;
            for (const opdi_gnode *next = node->next; next; next = next->next) {
                uses -= opdi_program_is_slice(loop, next) && next->in[2] == node->out[0];
            }
            uses += opdi_program_uses(loop->block, node->out[0]);
        }
        if (!direction) { continue; }
        uses += direction > 0;
        if (loop->nslices && loop->reverse != (direction < 0)) { loop->rounds = -1; }
        loop->reverse = direction < 0;
        loop->slices[loop->nslices++] = node;
    }
    if (loop->rounds < 0 || uses != opdi_program_uses(loop->block, round)) {
        loop->nslices = 0;
        loop->rounds = -1;
    }
    return 0;
}
/* Finds the nodes that use a list of a loop after the loop, and marks them as done.  Returns 0, or -1 and sets an
   error. */
static int opdi_program_find_list(opdi_program_writer *writer, const opdi_program_loop *loop,
                                  opdi_program_appended *list) {
    const opdi_gnode *const append = list->append;
    const opdi_gvalue *const value = append->in[0];
    const opdi_gnode *const made = value->node;
    int64_t uses = 1, dim;
    if (!made || made->kind != OPDI_GNODE_LIST || made->nin || made->block != loop->node->block) {
        return opdi_program_refuse(append, "the list is not an empty list that is made just before the loop; lists of "
                                   "loops whose number of rounds is not fixed, such as the loops in the derivative of "
                                   "opd_while, have no form in the file");
    }
    for (const opdi_gnode *node = loop->node->next; node; node = node->next) {
        if (!node->nin || node->in[0] != value) { continue; }
        if (opdi_program_calls_builtin(node, "aten::reverse.t(") && !list->stack && !list->reversed) {
            list->reversed = true;
            if (opdi_pointer_set_add(&writer->done, (uintptr_t)node) < 0) { return -1; }
        } else if (opdi_program_calls(node, "aten::stack") && !list->stack &&
                   opdi_program_known(node->in[1], &dim) && dim == 0) {
            list->stack = node->out[0];
            if (opdi_pointer_set_add(&writer->done, (uintptr_t)node) < 0) { return -1; }
        } else { return opdi_program_refuse(node, "it uses a list of a loop in another way than to stack it once"); }
        uses++;
    }
    if (uses != opdi_program_uses(made->block, value)) {
        return opdi_program_refuse(append, "its list is used in other places than after the loop");
    }
    return opdi_pointer_set_add(&writer->done, (uintptr_t)append) < 0 ? -1 : 0;
}
/* Finds the lists to which a loop appends.  Returns 0, or -1 and sets an error. */
static int opdi_program_find_lists(opdi_program_writer *writer, opdi_program_loop *loop) {
    int64_t count = 0;
    for (const opdi_gnode *node = loop->block->first; node; node = node->next) {
        count += opdi_program_calls_builtin(node, "aten::append.t(");
    }
    loop->lists = (opdi_program_appended *)opdi_scope_alloc((size_t)(count + 1) * sizeof *loop->lists);
    if (!loop->lists) { return -1; }
    for (const opdi_gnode *node = loop->block->first; node; node = node->next) {
        if (!opdi_program_calls_builtin(node, "aten::append.t(")) { continue; }
        opdi_program_appended *const list = &loop->lists[loop->nlists++];
        memset(list, 0, sizeof *list);
        list->append = node;
        if (opdi_program_find_list(writer, loop, list)) { return -1; }
    }
    return 0;
}

//-- values that graphs read -------------------------------------------------------------------------------------------

static int opdi_program_capture_add(opdi_program_captured *captured, const opdi_gvalue *value) {
    for (int64_t i = 0; i < captured->count; i++) { if (captured->values[i] == value) { return 0; } }
    if (captured->count == captured->cap) {
        const int64_t cap = 2 * captured->cap + 16;
        const opdi_gvalue **const more = (const opdi_gvalue **)opdi_scope_alloc((size_t)cap * sizeof *more);
        if (!more) { return -1; }
        if (captured->count) { memcpy(more, captured->values, (size_t)captured->count * sizeof *more); }
        captured->values = more;
        captured->cap = cap;
    }
    captured->values[captured->count++] = value;
    return 0;
}
/* Adds the tensors to `captured` that are computed outside of `block` and that the text of `value` names. */
static int opdi_program_capture(opdi_program_captured *captured, const opdi_gblock *block, const opdi_gvalue *value) {
    const opdi_gnode *const node = value->node;
    if (opdi_program_calls_builtin(node, "aten::Bool.Tensor(")) {
        return opdi_program_capture(captured, block, node->in[0]);
    }
    if (node && node->kind == OPDI_GNODE_CONSTANT) {   /* a constant tensor is an input of the program */
        return node->constant.tag == OPD_TAG_TENSOR && !(node->constant.u.t->flags & OPDI_WRAPPED)
            ? opdi_program_capture_add(captured, value) : 0;
    }
    for (int32_t i = 0; node && node->kind == OPDI_GNODE_LIST && i < node->nin; i++) {
        if (opdi_program_capture(captured, block, node->in[i])) { return -1; }
    }
    return value->tag != OPD_TAG_TENSOR || opdi_program_inside(value, block) ? 0
        : opdi_program_capture_add(captured, value);
}
/* Adds the tensors that the nodes of `inner` read, a block that is `block` or is inside of it, to `captured`.  Leaves
   out tensors of which only slices are read.  Returns 0, or -1 and sets an error. */
static int opdi_program_capture_all(opdi_program_captured *captured, const opdi_program_loop *loop,
                                    const opdi_gblock *block, const opdi_gblock *inner) {
    if (opdi_stack_is_short("opd_program_save", OPDI_STACK_CALL)) { return -1; }
    for (const opdi_gnode *node = inner->first; node; node = node->next) {
        if (loop && opdi_program_is_slice(loop, node)) { continue; }
        for (int32_t i = 0; i < node->nin; i++) {
            if (opdi_program_capture(captured, block, node->in[i])) { return -1; }
        }
        for (int32_t i = 0; i < node->nblocks; i++) {
            if (opdi_program_capture_all(captured, loop, block, &node->blocks[i])) { return -1; }
        }
    }
    for (int32_t i = 0; i < inner->noutputs; i++) {
        if (opdi_program_capture(captured, block, inner->outputs[i])) { return -1; }
    }
    return 0;
}

//-- text --------------------------------------------------------------------------------------------------------------

#define OPDI_PROGRAM_NAME 32
/* Writes the name of a value to `name`. */
static const char *opdi_program_name_of(opdi_program_writer *writer, const opdi_gvalue *value,
                                        char name[OPDI_PROGRAM_NAME]) {
    (void)snprintf(name, OPDI_PROGRAM_NAME, "v%lld", (long long)opdi_program_number(writer, value));
    return name;
}
/* Writes a name that no other value has to `name`. */
static const char *opdi_program_new_name(opdi_program_writer *writer, char name[OPDI_PROGRAM_NAME]) {
    (void)snprintf(name, OPDI_PROGRAM_NAME, "made_%lld", (long long)writer->nmade++);
    return name;
}
static int opdi_program_put_named(opdi_program_writer *writer, const char *name, const opdi_program_form *form) {
    opdi_json_comma(&writer->metas);
    opdi_json_print(&writer->metas, "\"%s\": ", name);
    return opdi_program_put_meta(writer, &writer->metas, form->dtype, form->dims, form->dims, form->ndim, false,
                                 writer->device, 0);
}
static void opdi_program_put_tensors(opdi_string *to, const char *name) {
    opdi_json_comma(to);
    opdi_json_print(to, "{\"as_tensor\": {\"name\": \"%s\"}}", name);
}
/* Appends a node that calls the operator `target` on the tensor `self` (NULL: none) and further arguments, in JSON.
   Writes the name of its result to `name`, unless *name is set.  Returns 0, or -1 and sets an error. */
static int opdi_program_put_made(opdi_program_writer *writer, const char *target, const char *self, const char *more,
                                 const opdi_program_form *form, char name[OPDI_PROGRAM_NAME]) {
    if (!*name) { (void)opdi_program_new_name(writer, name); }
    opdi_json_comma(&writer->nodes);
    opdi_json_print(&writer->nodes, "{\"target\": \"torch.ops.aten.%s\", \"inputs\": [", target);
    if (self) {
        opdi_json_print(&writer->nodes, "{\"name\": \"self\", \"arg\": {\"as_tensor\": {\"name\": \"%s\"}}, \"kind\": "
                        "1}", self);
    }
    opdi_string_add(&writer->nodes, self && *more ? ", " : "");
    opdi_string_add(&writer->nodes, more);
    opdi_json_print(&writer->nodes, "], \"outputs\": [{\"as_tensor\": {\"name\": \"%s\"}}], \"metadata\": {}, "
                    "\"is_hop_single_tensor_return\": null, \"name\": null}", name);
    return opdi_program_put_named(writer, name, form);
}
/* Appends a node that makes a tensor of the sizes `sizes` (in JSON) with equal elements. */
static int opdi_program_put_full(opdi_program_writer *writer, const char *sizes, const char *element,
                                 const opdi_program_form *form, char name[OPDI_PROGRAM_NAME]) {
    char more[400];
    (void)snprintf(more, sizeof more, "{\"name\": \"size\", \"arg\": {\"as_ints\": [%s]}, \"kind\": 1}, {\"name\": "
                   "\"fill_value\", \"arg\": %s, \"kind\": 1}, {\"name\": \"dtype\", \"arg\": {\"as_scalar_type\": %d"
                   "}, \"kind\": 2}", sizes, element, form->dtype == OPD_BOOL ? 12 : form->dtype == OPD_INT64 ? 5 : 7);
    *name = 0;
    return opdi_program_put_made(writer, "full.default", NULL, more, form, name);
}
/* Writes the name of a bool tensor without dims that is the condition `holds` of a node to `name`.  Returns 0, or -1
   and sets an error. */
static int opdi_program_put_holds(opdi_program_writer *writer, const opdi_gnode *node, const opdi_gvalue *holds,
                                  char name[OPDI_PROGRAM_NAME]) {
    static const char zero[] = "{\"name\": \"other\", \"arg\": {\"as_int\": 0}, \"kind\": 1}";
    const opdi_gnode *const of = holds->node;
    opdi_program_form form, plain;
    char other[OPDI_PROGRAM_NAME];
    memset(&plain, 0, sizeof plain);
    plain.dtype = OPD_BOOL;
    if (of && of->kind == OPDI_GNODE_CONSTANT && of->constant.tag == OPD_TAG_BOOL) {
        return opdi_program_put_full(writer, "", of->constant.u.i ? "{\"as_bool\": true}" : "{\"as_bool\": false}",
                                     &plain, name);
    }
    if (!opdi_program_calls_builtin(of, "aten::Bool.Tensor(") || !opdi_program_describe(of->in[0], &form)) {
        return opdi_program_refuse(node, "its condition is not the value of a tensor");
    }
    (void)opdi_program_name_of(writer, of->in[0], name);
    if (form.ndim) {
        (void)snprintf(other, sizeof other, "%s", name);
        plain.dtype = form.dtype;
        *name = 0;
        if (opdi_program_put_made(writer, "reshape.default", other, "{\"name\": \"shape\", \"arg\": {\"as_ints\": []}, "
                                  "\"kind\": 1}", &plain, name)) { return -1; }
    }
    if (form.dtype == OPD_BOOL) { return 0; }
    (void)snprintf(other, sizeof other, "%s", name);
    plain.dtype = OPD_BOOL;
    *name = 0;
    return opdi_program_put_made(writer, "ne.Scalar", other, zero, &plain, name);
}
/* Begins the text of an inner graph. */
static void opdi_program_frame_begin(opdi_program_writer *writer, opdi_program_frame *frame) {
    const opdi_program_frame was = {writer->nodes, writer->metas, writer->inputs, writer->outputs};
    const opdi_string empty = {NULL, 0, 0, false};
    *frame = was;
    writer->nodes = writer->metas = writer->inputs = writer->outputs = empty;
}
/* Ends the text of an inner graph.  If `rc` is 0, appends it to `to`, as an argument of a node.  `single`: the graph
   returns a tensor, not a tuple.  Returns 0, or -1 and sets an error. */
static int opdi_program_frame_end(opdi_program_writer *writer, const opdi_program_frame *frame, int rc, bool single,
                                  opdi_string *to) {
    const char *const parts[] = {
        "\"graph\": {\"inputs\": [", writer->inputs.data, "], \"outputs\": [", writer->outputs.data,
        "], \"nodes\": [", writer->nodes.data, "], \"tensor_values\": {", writer->metas.data, "}, \"sym_int_values\": "
        "{}, \"sym_bool_values\": {}, \"is_single_tensor_return\": ", single ? "true" : "false", ", "
        "\"custom_obj_values\": {}, \"sym_float_values\": {}}}}, \"kind\": 1}"};
    opdi_string *const mine[] = {&writer->nodes, &writer->metas, &writer->inputs, &writer->outputs};
    if (rc == 0) {
        char name[OPDI_PROGRAM_NAME];
        opdi_json_comma(to);
        opdi_json_print(to, "{\"name\": \"\", \"arg\": {\"as_graph\": {\"name\": \"graph_%s\", ",
                        opdi_program_new_name(writer, name));
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) { if (parts[i]) { opdi_string_add(to, parts[i]); } }
    }
    for (int i = 0; i < 4; i++) {
        if (mine[i]->failed || to->failed) { rc = -1; }
        opdi_string_free(mine[i]);
    }
    writer->nodes = frame->nodes;
    writer->metas = frame->metas;
    writer->inputs = frame->inputs;
    writer->outputs = frame->outputs;
    return rc;
}
static int opdi_program_put_input(opdi_program_writer *writer, const opdi_gvalue *value) {
    char name[OPDI_PROGRAM_NAME];
    opdi_program_put_tensors(&writer->inputs, opdi_program_name_of(writer, value, name));
    return opdi_program_put_value(writer, value);
}
static int opdi_program_put_captured(opdi_program_writer *writer, const opdi_program_captured *captured) {
    for (int64_t i = 0; i < captured->count; i++) {
        if (opdi_program_put_input(writer, captured->values[i])) { return -1; }
    }
    return 0;
}
/* Returns whether a node of a block has made the memory of a value. */
static bool opdi_program_is_new(const opdi_gblock *block, const opdi_gvalue *value) {
    const opdi_gnode *const node = value->node;
    if (!node || node->block != block) { return false; }
    if (node->kind == OPDI_GNODE_IF || node->kind == OPDI_GNODE_LOOP) { return true; }
    if (node->kind != OPDI_GNODE_OP || opdi_gnode_written(node)) { return false; }
    for (int i = 0; i < node->nin; i++) {
        for (int k = 0; k < node->nout; k++) {
            if (opd_schema_may_contain_alias(node->op->schema, OPD_RESULT(k), i, true, NULL)) { return false; }
        }
    }
    return true;
}
/* Adds a value of a block to the outputs of its graph; a copy of the value if it may share memory.  Returns 0, or -1
   and sets an error. */
static int opdi_program_put_output(opdi_program_writer *writer, const opdi_gblock *block, const opdi_gvalue *value) {
    char name[OPDI_PROGRAM_NAME], copy[OPDI_PROGRAM_NAME] = "", text[60];
    opdi_program_form form;
    (void)opdi_program_name_of(writer, value, name);
    (void)snprintf(text, sizeof text, "{\"as_tensor\": {\"name\": \"%s\"}}", name);
    if (!opdi_program_is_new(block, value) ||
        (writer->outputs.data && strstr(writer->outputs.data, text))) {
        if (!opdi_program_describe(value, &form)) {
            return opdi_program_refuse(block->owner, "the sizes of a result of its block are not known");
        }
        if (opdi_program_put_made(writer, "clone.default", name, "", &form, copy)) { return -1; }
    }
    opdi_program_put_tensors(&writer->outputs, *copy ? copy : name);
    return 0;
}
/* Begins a node that calls an operator with graphs, which are in `graphs`.  The arguments follow. */
static void opdi_program_put_higher(opdi_program_writer *writer, const char *name, const char *first,
                                    const opdi_string *graphs) {
    opdi_json_comma(&writer->nodes);
    opdi_json_print(&writer->nodes, "{\"target\": \"torch.ops.higher_order.%s\", \"inputs\": [", name);
    if (first) {
        opdi_json_print(&writer->nodes, "{\"name\": \"\", \"arg\": {\"as_tensor\": {\"name\": \"%s\"}}, \"kind\": 1}, ",
                        first);
    }
    if (graphs->data) { opdi_string_add(&writer->nodes, graphs->data); }
}
/* Begins or ends an argument that is a list of tensors. */
static void opdi_program_list_begin(opdi_program_writer *writer) {
    opdi_string_add(&writer->nodes, ", {\"name\": \"\", \"arg\": {\"as_tensors\": [");
}
static void opdi_program_list_add(opdi_program_writer *writer, const char *name, bool first) {
    opdi_json_print(&writer->nodes, "%s{\"name\": \"%s\"}", first ? "" : ", ", name);
}
static void opdi_program_list_end(opdi_program_writer *writer) { opdi_string_add(&writer->nodes, "]}, \"kind\": 1}"); }
static void opdi_program_list_captured(opdi_program_writer *writer, const opdi_program_captured *captured) {
    char name[OPDI_PROGRAM_NAME];
    opdi_program_list_begin(writer);
    for (int64_t i = 0; i < captured->count; i++) {
        opdi_program_list_add(writer, opdi_program_name_of(writer, captured->values[i], name), i == 0);
    }
    opdi_program_list_end(writer);
}
/* Writes the names of the values with which a loop begins to `names`.  A value that the loop gets twice is copied,
   because PyTorch's transforms refuse inputs that share memory.  Returns 0, or -1 and sets an error. */
static int opdi_program_put_initial(opdi_program_writer *writer, const opdi_gnode *loop,
                                    const opdi_program_captured *captured, char (*names)[OPDI_PROGRAM_NAME]) {
    opdi_program_form form;
    for (int32_t i = 2; i < loop->nin; i++) {
        char name[OPDI_PROGRAM_NAME];
        bool again = false;
        for (int32_t k = 2; k < i && !again; k++) { again = loop->in[k] == loop->in[i]; }
        for (int64_t k = 0; k < captured->count && !again; k++) { again = captured->values[k] == loop->in[i]; }
        (void)opdi_program_name_of(writer, loop->in[i], names[i - 2]);
        if (!again) { continue; }
        if (!opdi_program_describe(loop->in[i], &form)) {
            return opdi_program_refuse(loop, "the sizes of a carried tensor are not known");
        }
        (void)snprintf(name, sizeof name, "%s", names[i - 2]);
        *names[i - 2] = 0;
        if (opdi_program_put_made(writer, "clone.default", name, "", &form, names[i - 2])) { return -1; }
    }
    return 0;
}
/* Adds a result of the node that is being written; `first` is the first result. */
static void opdi_program_put_result(opdi_program_writer *writer, const char *name, bool first) {
    opdi_json_print(&writer->nodes, "%s{\"as_tensor\": {\"name\": \"%s\"}}", first ? "], \"outputs\": [" : ", ", name);
}
static int opdi_program_end_higher(opdi_program_writer *writer) {
    opdi_string_add(&writer->nodes, "], \"metadata\": {}, \"is_hop_single_tensor_return\": false, \"name\": null}");
    return writer->nodes.failed ? -1 : 0;
}

//-- conditions and loops ----------------------------------------------------------------------------------------------

static int opdi_program_put_block(opdi_program_writer *writer, const opdi_gblock *block);
/* Appends the graph of a block of a condition to `graphs`.  Returns 0, or -1 and sets an error. */
static int opdi_program_put_branch(opdi_program_writer *writer, const opdi_gblock *block,
                                   const opdi_program_captured *captured, opdi_string *graphs) {
    opdi_program_frame frame;
    opdi_program_frame_begin(writer, &frame);
    int rc = opdi_program_put_captured(writer, captured) || opdi_program_put_block(writer, block) ? -1 : 0;
    for (int32_t i = 0; i < block->noutputs && rc == 0; i++) {
        rc = opdi_program_put_output(writer, block, block->outputs[i]);
    }
    return opdi_program_frame_end(writer, &frame, rc, false, graphs);
}
static int opdi_program_put_if(opdi_program_writer *writer, const opdi_gnode *node, opdi_string *graphs) {
    opdi_program_captured captured = {NULL, 0, 0};
    char name[OPDI_PROGRAM_NAME];
    if (!node->nout) { return 0; }                /* its blocks write only into tensors that they have made */
    for (int i = 0; i < 2; i++) {
        if (opdi_program_capture_all(&captured, NULL, &node->blocks[i], &node->blocks[i])) { return -1; }
    }
    for (int i = 0; i < 2; i++) {
        if (opdi_program_put_branch(writer, &node->blocks[i], &captured, graphs)) { return -1; }
    }
    if (opdi_program_put_holds(writer, node, node->in[0], name)) { return -1; }
    opdi_program_put_higher(writer, "cond", name, graphs);
    opdi_program_list_captured(writer, &captured);
    for (int32_t i = 0; i < node->nout; i++) {
        opdi_program_put_result(writer, opdi_program_name_of(writer, node->out[i], name), i == 0);
        if (opdi_program_put_value(writer, node->out[i])) { return -1; }
    }
    return opdi_program_end_higher(writer);
}
/* Appends the graph of a scan to `graphs`.  Returns 0, or -1 and sets an error. */
static int opdi_program_put_scanned(opdi_program_writer *writer, const opdi_program_loop *loop,
                                    const opdi_program_captured *captured, opdi_string *graphs) {
    const opdi_gblock *const block = loop->block;
    opdi_program_frame frame;
    char name[OPDI_PROGRAM_NAME];
    opdi_program_form none;
    int rc = 0;
    memset(&none, 0, sizeof none);
    none.dtype = OPD_FLOAT32;
    opdi_program_frame_begin(writer, &frame);
    for (int32_t i = 1; i < block->ninputs && rc == 0; i++) { rc = opdi_program_put_input(writer, block->inputs[i]); }
    for (int i = 0; i < loop->nslices && rc == 0; i++) { rc = opdi_program_put_input(writer, loop->slices[i]->out[0]); }
    if (!loop->nslices && rc == 0) {
        opdi_program_put_tensors(&writer->inputs, opdi_program_new_name(writer, name));
        rc = opdi_program_put_named(writer, name, &none);
    }
    for (int i = 0; i < loop->nslices && rc == 0; i++) {
        rc = opdi_pointer_set_add(&writer->done, (uintptr_t)loop->slices[i]) < 0 ? -1 : 0;
    }
    rc = rc || opdi_program_put_captured(writer, captured) || opdi_program_put_block(writer, block) ? -1 : 0;
    for (int32_t i = 1; i < block->noutputs && rc == 0; i++) {
        rc = opdi_program_put_output(writer, block, block->outputs[i]);
    }
    for (int i = 0; i < loop->nlists && rc == 0; i++) {
        rc = opdi_program_put_output(writer, block, loop->lists[i].append->in[1]);
    }
    return opdi_program_frame_end(writer, &frame, rc, false, graphs);
}
static const char opdi_program_dim_0[] = "{\"name\": \"dims\", \"arg\": {\"as_ints\": [0]}, \"kind\": 1}";
/* Appends the argument that has the tensors of which a scan takes slices.  They were reversed if necessary; their names
   are in `names`. */
static void opdi_program_list_slices(opdi_program_writer *writer, const opdi_program_loop *loop,
                                     char (*names)[OPDI_PROGRAM_NAME]) {
    opdi_program_list_begin(writer);
    for (int i = 0; i < OPDI_MAX(loop->nslices, 1); i++) { opdi_program_list_add(writer, names[i], i == 0); }
    opdi_program_list_end(writer);
}
/* Appends the nodes that reverse the tensors of which a scan takes slices, and writes the names of the tensors to
   `names`.  If there are none, makes one, because scan needs one.  Returns 0, or -1 and sets an error. */
static int opdi_program_put_sliced(opdi_program_writer *writer, const opdi_program_loop *loop,
                                   char (*names)[OPDI_PROGRAM_NAME]) {
    opdi_program_form form;
    char text[30];
    for (int i = 0; i < loop->nslices; i++) {
        const opdi_gvalue *const value = loop->slices[i]->in[0];
        char name[OPDI_PROGRAM_NAME];
        (void)opdi_program_name_of(writer, value, names[i]);
        if (!loop->reverse) { continue; }
        if (!opdi_program_describe(value, &form)) { return -1; }
        (void)snprintf(name, sizeof name, "%s", names[i]);
        *names[i] = 0;
        if (opdi_program_put_made(writer, "flip.default", name, opdi_program_dim_0, &form, names[i])) { return -1; }
    }
    if (loop->nslices) { return 0; }
    memset(&form, 0, sizeof form);
    form.dtype = OPD_FLOAT32;
    form.ndim = 1;
    form.dims[0] = loop->rounds;
    form.dims[1] = 1;
    (void)snprintf(text, sizeof text, "%lld", (long long)loop->rounds);
    return opdi_program_put_full(writer, text, "{\"as_float\": 0.0}", &form, names[0]);
}
/* Adds the results of a scan, and then reverses those that the graph reverses.  Returns 0, or -1 and sets an error. */
static int opdi_program_put_stacked(opdi_program_writer *writer, const opdi_program_loop *loop, int32_t carried,
                                    char (*names)[OPDI_PROGRAM_NAME]) {
    opdi_program_form forms, form;
    for (int i = 0; i < loop->nlists; i++) {
        const opdi_program_appended *const list = &loop->lists[i];
        if (!opdi_program_describe(list->append->in[1], &form) || form.ndim + 1 > OPD_MAX_DIMS) {
            return opdi_program_refuse(list->append, "the sizes of its tensor are not known");
        }
        forms.dtype = form.dtype;
        forms.ndim = form.ndim + 1;
        int64_t stride = 1;
        for (int k = form.ndim; k >= 0; k--) {
            forms.dims[k] = k ? form.dims[k - 1] : loop->rounds;
            forms.dims[forms.ndim + k] = stride;
            stride *= OPDI_MAX(forms.dims[k], 1);
        }
        if (!list->stack || list->reversed) { (void)opdi_program_new_name(writer, names[i]); }
        else { (void)opdi_program_name_of(writer, list->stack, names[i]); }
        opdi_program_put_result(writer, names[i], carried + i == 0);
        if (opdi_program_put_named(writer, names[i], &forms)) { return -1; }
    }
    if (opdi_program_end_higher(writer)) { return -1; }
    for (int i = 0; i < loop->nlists; i++) {
        const opdi_program_appended *const list = &loop->lists[i];
        char name[OPDI_PROGRAM_NAME];
        if (!list->stack || !list->reversed) { continue; }
        if (!opdi_program_describe(list->stack, &forms)) {
            return opdi_program_refuse(list->stack->node, "its sizes are not known");
        }
        (void)opdi_program_name_of(writer, list->stack, name);
        if (opdi_program_put_made(writer, "flip.default", names[i], opdi_program_dim_0, &forms, name)) { return -1; }
    }
    return 0;
}
static int opdi_program_put_scan(opdi_program_writer *writer, const opdi_program_loop *loop, opdi_string *graphs) {
    const opdi_gnode *const node = loop->node;
    const int32_t carried = node->nin - 2;
    opdi_program_captured captured = {NULL, 0, 0};
    const size_t count = (size_t)loop->nslices + (size_t)loop->nlists + (size_t)carried + 1;
    char (*const names)[OPDI_PROGRAM_NAME] = (char (*)[OPDI_PROGRAM_NAME])opdi_scope_alloc(count * sizeof *names);
    char name[OPDI_PROGRAM_NAME];
    if (!names || (!carried && !loop->nlists)) { return names ? 0 : -1; }
    if (opdi_program_capture_all(&captured, loop, loop->block, loop->block) ||
        opdi_program_put_scanned(writer, loop, &captured, graphs) ||
        opdi_program_put_initial(writer, node, &captured, names) ||
        opdi_program_put_sliced(writer, loop, names + carried)) { return -1; }
    opdi_program_put_higher(writer, carried ? "scan" : "map_impl", NULL, graphs);
    if (carried) {
        opdi_program_list_begin(writer);
        for (int32_t i = 0; i < carried; i++) { opdi_program_list_add(writer, names[i], i == 0); }
        opdi_program_list_end(writer);
    }
    opdi_program_list_slices(writer, loop, names + carried);
    opdi_program_list_captured(writer, &captured);
    for (int32_t i = 0; i < carried; i++) {
        opdi_program_put_result(writer, opdi_program_name_of(writer, node->out[i], name), i == 0);
        if (opdi_program_put_value(writer, node->out[i])) { return -1; }
    }
    return opdi_program_put_stacked(writer, loop, carried, names + carried + OPDI_MAX(loop->nslices, 1));
}

/* What a while_loop carries before the carried values of the graph: the condition and, if `limited` is true, the number
   of the round.  `round` is the number of the round in the graphs. */
typedef struct opdi_program_while {
    const opdi_program_loop *loop;
    const opdi_program_captured *captured;
    int64_t most;
    bool limited;
    char holds[OPDI_PROGRAM_NAME], round[OPDI_PROGRAM_NAME];
} opdi_program_while;
static int opdi_program_put_while_inputs(opdi_program_writer *writer, opdi_program_while *of,
                                         const opdi_program_form *forms) {
    opdi_program_put_tensors(&writer->inputs, opdi_program_new_name(writer, of->holds));
    if (opdi_program_put_named(writer, of->holds, &forms[0])) { return -1; }
    if (of->limited) {
        opdi_program_put_tensors(&writer->inputs, opdi_program_new_name(writer, of->round));
        if (opdi_program_put_named(writer, of->round, &forms[1])) { return -1; }
    }
    for (int32_t i = 1; i < of->loop->block->ninputs; i++) {
        if (opdi_program_put_input(writer, of->loop->block->inputs[i])) { return -1; }
    }
    return opdi_program_put_captured(writer, of->captured);
}
/* Appends the graph of the condition of a while_loop to `graphs`. */
static int opdi_program_put_test(opdi_program_writer *writer, opdi_program_while *of, const opdi_program_form *forms,
                                 opdi_string *graphs) {
    opdi_program_frame frame;
    char name[OPDI_PROGRAM_NAME] = "", both[OPDI_PROGRAM_NAME] = "", more[120];
    opdi_program_frame_begin(writer, &frame);
    int rc = opdi_program_put_while_inputs(writer, of, forms);
    if (!of->limited) { rc = rc ? rc : opdi_program_put_made(writer, "clone.default", of->holds, "", &forms[0], name); }
    else {
        (void)snprintf(more, sizeof more, "{\"name\": \"other\", \"arg\": {\"as_int\": %lld}, \"kind\": 1}",
                       (long long)of->most);
        rc = rc ? rc : opdi_program_put_made(writer, "lt.Scalar", of->round, more, &forms[0], both);
        (void)snprintf(more, sizeof more, "{\"name\": \"other\", \"arg\": {\"as_tensor\": {\"name\": \"%s\"}}, "
                       "\"kind\": 1}", both);
        rc = rc ? rc : opdi_program_put_made(writer, "logical_and.default", of->holds, more, &forms[0], name);
    }
    opdi_program_put_tensors(&writer->outputs, name);
    return opdi_program_frame_end(writer, &frame, rc, true, graphs);
}
/* Appends the graph of the body of a while_loop to `graphs`. */
static int opdi_program_put_body(opdi_program_writer *writer, opdi_program_while *of, const opdi_program_form *forms,
                                 opdi_string *graphs) {
    const opdi_gblock *const block = of->loop->block;
    opdi_program_frame frame;
    char name[OPDI_PROGRAM_NAME] = "", copy[OPDI_PROGRAM_NAME] = "";
    opdi_program_frame_begin(writer, &frame);
    int rc = opdi_program_put_while_inputs(writer, of, forms) || opdi_program_put_block(writer, block) ||
        opdi_program_put_holds(writer, of->loop->node, block->outputs[0], name) ||
        opdi_program_put_made(writer, "clone.default", name, "", &forms[0], copy) ? -1 : 0;
    opdi_program_put_tensors(&writer->outputs, copy);
    if (rc == 0 && of->limited) {
        *name = 0;
        rc = opdi_program_put_made(writer, "add.Scalar", of->round, "{\"name\": \"other\", \"arg\": {\"as_int\": 1}, "
                                   "\"kind\": 1}", &forms[1], name);
        opdi_program_put_tensors(&writer->outputs, name);
    }
    for (int32_t i = 1; i < block->noutputs && rc == 0; i++) {
        rc = opdi_program_put_output(writer, block, block->outputs[i]);
    }
    return opdi_program_frame_end(writer, &frame, rc, false, graphs);
}
static int opdi_program_put_while(opdi_program_writer *writer, const opdi_program_loop *loop, opdi_string *graphs) {
    const opdi_gnode *const node = loop->node;
    opdi_program_captured captured = {NULL, 0, 0};
    opdi_program_while of;
    opdi_program_form forms[2];
    char holds[OPDI_PROGRAM_NAME], round[OPDI_PROGRAM_NAME], name[OPDI_PROGRAM_NAME];
    char (*const names)[OPDI_PROGRAM_NAME] =
        (char (*)[OPDI_PROGRAM_NAME])opdi_scope_alloc(((size_t)node->nin + 1) * sizeof *names);
    if (!names) { return -1; }
    memset(&of, 0, sizeof of);
    memset(forms, 0, sizeof forms);
    forms[0].dtype = OPD_BOOL;
    forms[1].dtype = OPD_INT64;
    of.loop = loop;
    of.captured = &captured;
    if (!opdi_program_known(node->in[0], &of.most)) {
        return opdi_program_refuse(node, "the limit of its rounds is not a constant and not a size that is known");
    }
    of.limited = of.most != INT64_MAX;
    if (opdi_program_uses(loop->block, loop->block->inputs[0])) {
        return opdi_program_refuse(node, "it uses the number of the round for something else than the slices of a "
                                   "scan");
    }
    if (!node->nout) { return opdi_program_refuse(node, "it carries no tensors"); }
    if (opdi_program_capture_all(&captured, NULL, loop->block, loop->block) ||
        opdi_program_put_test(writer, &of, forms, graphs) || opdi_program_put_body(writer, &of, forms, graphs) ||
        opdi_program_put_holds(writer, node, node->in[1], holds) ||
        opdi_program_put_initial(writer, node, &captured, names) ||
        (of.limited && opdi_program_put_full(writer, "", "{\"as_int\": 0}", &forms[1], round))) { return -1; }
    opdi_program_put_higher(writer, "while_loop", NULL, graphs);
    opdi_program_list_begin(writer);
    opdi_program_list_add(writer, holds, true);
    if (of.limited) { opdi_program_list_add(writer, round, false); }
    for (int32_t i = 2; i < node->nin; i++) { opdi_program_list_add(writer, names[i - 2], false); }
    opdi_program_list_end(writer);
    opdi_program_list_captured(writer, &captured);
    for (int i = 0; i <= of.limited; i++) {
        opdi_program_put_result(writer, opdi_program_new_name(writer, name), i == 0);
        if (opdi_program_put_named(writer, name, &forms[i])) { return -1; }
    }
    for (int32_t i = 0; i < node->nout; i++) {
        opdi_program_put_result(writer, opdi_program_name_of(writer, node->out[i], name), false);
        if (opdi_program_put_value(writer, node->out[i])) { return -1; }
    }
    return opdi_program_end_higher(writer);
}
static int opdi_program_put_loop(opdi_program_writer *writer, const opdi_gnode *node, opdi_string *graphs) {
    opdi_program_loop loop;
    memset(&loop, 0, sizeof loop);
    loop.node = node;
    loop.block = &node->blocks[0];
    for (int32_t i = 2; i < node->nin; i++) {
        if (node->in[i]->tag != OPD_TAG_TENSOR || loop.block->outputs[i - 1]->tag != OPD_TAG_TENSOR) {
            return opdi_program_refuse(node, "it carries a value that is not a tensor");
        }
    }
    if (opdi_program_find_slices(&loop)) { return -1; }
    if (loop.rounds >= 0) {
        return opdi_program_find_lists(writer, &loop) ? -1 : opdi_program_put_scan(writer, &loop, graphs);
    }
    for (const opdi_gnode *inner = loop.block->first; inner; inner = inner->next) {
        if (!opdi_program_calls_builtin(inner, "aten::append.t(")) { continue; }
        return opdi_program_refuse(inner, "it is in a loop whose number of rounds is not fixed, so the sizes of the "
                                   "result are not known; the derivative of opd_while needs such results");
    }
    return opdi_program_put_while(writer, &loop, graphs);
}
/* Returns whether a node needs no text: a constant, a list or an integer, which the nodes that use it write, or a node
   that is written as a part of a loop. */
static bool opdi_program_is_silent(opdi_program_writer *writer, const opdi_gnode *node) {
    const int64_t count = writer->done.count;
    if (node->kind == OPDI_GNODE_CONSTANT || node->kind == OPDI_GNODE_LIST || node->kind == OPDI_GNODE_TUPLE ||
        (node->kind == OPDI_GNODE_UNPACK && node->in[0]->node && node->in[0]->node->kind == OPDI_GNODE_OP) ||
        (!writer->graph->sizes && (opdi_program_calls(node, "aten::size.int") ||
                                   opdi_program_calls_builtin(node, "aten::sub.int("))) ||
        opdi_program_calls_builtin(node, "aten::Bool.Tensor(")) { return true; }
    return count && opdi_pointer_set_add(&writer->done, (uintptr_t)node) >= 0 && writer->done.count == count;
}
/* Appends the text of the nodes of a block.  Returns 0, or -1 and sets an error. */
static int opdi_program_put_block(opdi_program_writer *writer, const opdi_gblock *block) {
    if (opdi_stack_is_short("opd_program_save", OPDI_STACK_CALL)) { return -1; }
    for (const opdi_gnode *node = block->first; node; node = node->next) {
        opdi_string graphs = {NULL, 0, 0, false};
        int rc;
        if (opdi_program_is_silent(writer, node)) { continue; }
        switch (node->kind) {
        case OPDI_GNODE_OP: rc = opdi_program_put_node(writer, node); break;
        case OPDI_GNODE_IF: rc = opdi_program_put_if(writer, node, &graphs); break;
        case OPDI_GNODE_LOOP: rc = opdi_program_put_loop(writer, node, &graphs); break;
        default: rc = node->kind == OPDI_GNODE_BUILTIN && writer->graph->sizes ? opdi_program_put_builtin(writer, node)
            : opdi_program_refuse(node, "it is neither an operator nor a condition or loop over tensors");
        }
        if (graphs.failed) { rc = -1; }
        opdi_string_free(&graphs);
        if (rc) { return -1; }
    }
    return opd_ok() ? 0 : -1;
}
int opd_program_save(const opd_graph *graph, const opd_module *module, const char *path) {
    return opdi_program_save("opd_program_save", graph, NULL, module, path, opdi_program_put_block);
}
int opd_program_save_open(const opd_graph *graph, const opd_graph *other, const opd_module *module, const char *path) {
    if (opd_ok() && (!other || (graph && graph->program) || other->program)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save_open: two traced graphs are needed");
    }
    return opdi_program_save("opd_program_save_open", graph, other, module, path, opdi_program_put_block);
}
int opd_program_save_all(opd_program *const *programs, const char *const *names, int count, const char *path) {
    return opdi_program_save_all(programs, names, count, path, opdi_program_put_block);
}
