#include "programs.h"

//== values of traced graphs ===========================================================================================

/* Sets the error that a node cannot be saved.  Returns -1. */
OPDI_INTERNAL int opdi_program_refuse(const opdi_gnode *node, const char *why) {
    char name[100], result[60] = "";
    if (node->nout && node->out[0]->name) { (void)snprintf(result, sizeof result, " (%%%.50s)", node->out[0]->name); }
    else if (node->nout) { (void)snprintf(result, sizeof result, " (%%%d)", (int)node->out[0]->id); }
    return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save: %s%s%s%.200s cannot be saved: %s",
                    opdi_gnode_name(node, name, sizeof name), result, node->place ? " at " : "",
                    node->place ? node->place : "", why);
}
OPDI_INTERNAL bool opdi_program_calls_builtin(const opdi_gnode *node, const char *schema) {
    return node && node->kind == OPDI_GNODE_BUILTIN && strncmp(node->builtin->schema, schema, strlen(schema)) == 0;
}
OPDI_INTERNAL bool opdi_program_calls(const opdi_gnode *node, const char *name) {
    return node && node->kind == OPDI_GNODE_OP && strcmp(node->op->name, name) == 0;
}
OPDI_INTERNAL bool opdi_program_describe(const opdi_gvalue *value, opdi_program_form *form);
/* Finds an integer that is known: a constant, a size, or a difference.  Returns whether there is one. */
OPDI_INTERNAL bool opdi_program_known(const opdi_gvalue *value, int64_t *number) {
    const opdi_gnode *const node = value->node;
    opdi_program_form form;
    int64_t first, second;
    if (node && node->kind == OPDI_GNODE_CONSTANT && node->constant.tag == OPD_TAG_INT) {
        *number = node->constant.u.i;
        return true;
    }
    if (opdi_program_calls(node, "aten::size.int") && opdi_program_known(node->in[1], &first) &&
        opdi_program_describe(node->in[0], &form)) {
        if (first < 0) { first += form.ndim; }
        if (first < 0 || first >= form.ndim) { return false; }
        *number = form.dims[first];
        return true;
    }
    if (!opdi_program_calls_builtin(node, "aten::sub.int(") || !opdi_program_known(node->in[0], &first) ||
        !opdi_program_known(node->in[1], &second)) { return false; }
    *number = first - second;
    return true;
}
/* Finds the dtype, the sizes and the strides of a tensor value: a carried value is like the result of its loop, and
   a slice along dim 0 like its tensor without this dim.  Returns whether they are known. */
OPDI_INTERNAL bool opdi_program_describe(const opdi_gvalue *value, opdi_program_form *form) {
    const opdi_gnode *const owner = value->block ? value->block->owner : NULL;
    opdi_program_form of;
    int64_t dim;
    if (value->dtype >= 0) {
        form->dtype = value->dtype;
        form->ndim = value->ndim;
        if (value->ndim) { memcpy(form->dims, value->dims, 2 * (size_t)value->ndim * sizeof *form->dims); }
        return true;
    }
    for (int32_t i = 1; owner && owner->kind == OPDI_GNODE_LOOP && i < value->block->ninputs; i++) {
        if (value->block->inputs[i] == value) { return opdi_program_describe(owner->out[i - 1], form); }
    }
    if (!opdi_program_calls(value->node, "aten::select.int") || !opdi_program_known(value->node->in[1], &dim) || dim ||
        !opdi_program_describe(value->node->in[0], &of) || !of.ndim) { return false; }
    form->dtype = of.dtype;
    form->ndim = of.ndim - 1;
    for (int i = 1; i < of.ndim; i++) {
        form->dims[i - 1] = of.dims[i];
        form->dims[form->ndim + i - 1] = of.dims[of.ndim + i];
    }
    return true;
}
/* Fails if a graph, of which sizes are open, has conditions or loops.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_program_refuse_blocks(const opd_graph *graph) {
    for (const opdi_gnode *node = graph->body.first; node; node = node->next) {
        if (node->nblocks) {
            return opdi_program_refuse(node, "sizes of graphs with conditions or loops cannot be open: use "
                                       "opd_program_save");
        }
    }
    return 0;
}
