#include "autograd.h"

//== reading saved values and returning gradients in backward functions ================================================

static inline int opdi_bw_edge(const opd_backward_call *bw, int i, int element);
static opd_tensor opdi_no_gradient;               /* stands for a returned NULL in bw->out */

OPDI_COLD_BEGIN
/* Sets the error that a backward function has not returned the gradient for edge number `edge`, although that gradient
   is needed.  Returns -1. */
OPDI_NOINLINE static int opdi_formula_short(const opd_backward_call *bw, int edge) {
    const opd_node *node = bw->node;
    const opdi_card *card = node->formula->card;
    const opd_context *ctx = card ? NULL : opd_bw_context(bw);
    const opd_op *op = card ? card->op : NULL;
    const int nargs = card ? card->nargs : ctx ? ctx->ninputs : node->nedges;
    int wanted = 0, given = 0, arg = 0, element = 0;
    char which[100], at[40];
    for (int i = 0; i < node->nedges; i++) {
        wanted += opdi_edges(node)[i].vertex != 0;
        given += opdi_edges(node)[i].vertex && bw->out[i];
    }
    for (int found = -1; arg < nargs && found != edge; arg += found != edge) {
        for (element = 0; (found = opdi_bw_edge(bw, arg, element)) >= 0 && found != edge; element++) { }
    }
    if (op && op->definition && arg < op->nargs) {
        snprintf(which, sizeof which, "argument '%.60s'", op->schema->args[arg].name);
    } else { snprintf(which, sizeof which, "%s %d", card ? "argument" : "input", arg); }
    snprintf(at, sizeof at, element ? "_at(bw, %d, %d, " : "(bw, %d, ", arg, element);
    return opd_fail(OPD_ERROR_AUTOGRAD, "the backward function of %s " OPDI_TOO_FEW " (expected %d, got %d): there is "
                    "none for %s, which requires grad; return it with opd_bw_return%sgrad), or call "
                    "opd_bw_return%sNULL) if there is none", card ? card->op->name : node->formula->name, wanted, given,
                    which, at, at);
}
OPDI_COLD_END

/* Calls the backward function of a node.  The function has to return each needed gradient (or NULL for no gradient),
   unless it has read a gradient of a result that is NULL.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_call_fn(opd_backward_call *bw) {
    const opdi_edge *edge = opdi_edges(bw->node);
    const int count = bw->node->nedges;
    int i = 0;
    bw->undefined = false;
    int rc = bw->node->formula->fn(bw);
    if (OPDI_LIKELY(rc == 0 && !bw->undefined && opd_ok())) {
        while (i < count && (bw->out[i] || !edge[i].vertex)) { i++; }
        if (OPDI_UNLIKELY(i < count)) { rc = opdi_formula_short(bw, i); }
    }
    for (i = 0; i < count; i++) {
        if (OPDI_UNLIKELY(bw->out[i] == &opdi_no_gradient)) { bw->out[i] = NULL; }
    }
    return rc;
}

opd_context *opd_bw_context(const opd_backward_call *bw) {
    const opd_node *node = bw->node;
    return node->formula->context && node->nkept ? (opd_context *)opdi_kept(node)[node->nkept - 1].u.object : NULL;
}

OPDI_COLD_BEGIN
OPDI_INTERNAL void opdi_warn_missing(const opd_op *op, const char *what) {
    opd_warn("%s: an autograd kernel was not registered to the Autograd key(s) but %s. This may lead to silently "
             "incorrect behavior. If your operator is differentiable, please ensure you have registered a backward "
             "function (.backward), or an autograd kernel to the correct Autograd key. If your operator is not "
             "differentiable, set .backward to OPD_NOT_DIFFERENTIABLE, or register OPD_FALLTHROUGH to the Autograd "
             "key.", op->name, what);
}
OPDI_COLD_END
OPDI_INTERNAL int opdi_warn_formula(opd_backward_call *bw) {
    bw->undefined = true;                         /* now the function may leave out gradients */
    opdi_warn_missing(bw->node->formula->card->op, "we are trying to backprop through it");
    return 0;
}
OPDI_INTERNAL int opdi_missing_formula(opd_backward_call *bw) {
    return opd_fail(OPD_ERROR_AUTOGRAD, "derivative for %s is not implemented; give the operator a backward function "
                    "(.backward), a composite kernel, or OPD_NOT_DIFFERENTIABLE", bw->node->formula->card->op->name);
}

/* Writes the dtype and the sizes of `tensor` to buf, as "[float32 [2, 3]]", for messages.  Returns buf. */
OPDI_INTERNAL const char *opdi_tensor_kind(const opd_tensor *tensor, char *buf, size_t cap) {
    char sizes[200];
    snprintf(buf, cap, "[%s %s]", opd_dtype_name((opd_scalar_type)tensor->dtype),
             opdi_sizes_text(tensor->dims, tensor->ndim, sizes, sizeof sizes));
    return buf;
}

OPDI_COLD_BEGIN
/* Sets the error that a saved tensor was written after it was saved: its version is `now`, and was `version`.  Returns
   NULL. */
OPDI_NOINLINE OPDI_INTERNAL opd_tensor *opdi_fail_written(const opd_tensor *tensor, uint32_t now, uint32_t version) {
    char kind[256], of[160] = "";
    if (tensor->grad_fn) {
        snprintf(of, sizeof of, ", which is output %u of %.99s,", (unsigned)tensor->output_nr,
                 tensor->grad_fn->formula->name);
    }
    (void)opd_fail(OPD_ERROR_AUTOGRAD, "one of the variables needed for gradient computation has been modified by an "
                   "inplace operation: %s%s is at version %u; expected version %u instead. Hint: %s",
                   opdi_tensor_kind(tensor, kind, sizeof kind), of, (unsigned)now, (unsigned)version,
                   OPDI_LOAD(&opdi_anomaly) ? "the log shows the operation that failed to compute its gradient. The "
                   "variable in question was changed in there or anywhere later." : "enable anomaly detection to find "
                   "the operation that failed to compute its gradient, with opd_anomaly_set(true, true).");
    return NULL;
}
OPDI_COLD_END

OPDI_INTERNAL int opdi_pass_backward(opd_backward_call *bw);
OPDI_COLD_BEGIN
/* Returns an alias of `tensor` with the history `edge`.  Returns NULL and sets an error on failure. */
OPDI_INTERNAL opd_tensor *opdi_with_history(opd_tensor *tensor, opd_edge edge) {
    static const opdi_derivative identity = {
        "AliasBackward0", opdi_pass_backward, /* card, plugin */ NULL, NULL,
        /* context, once, fresh, real */ false, false, false, false};
    opd_tensor *value = opdi_own(opdi_shallow_copy(tensor));
    if (!value) { return NULL; }
    if (!(opdi_vertex(edge.node) & OPDI_LEAF)) {
        opdi_attach(value, edge.node, (int)edge.nr);
        return value;
    }
    opd_node *node = opdi_node_make(&identity, 1, 0, 0, &value, 1, 0);
    if (!node) { return NULL; }
    opdi_edge_to(opdi_edges(node), opdi_edge_leaf(opdi_vertex(edge.node)));
    opdi_attach(value, node, 0);
    opdi_node_release(node);
    return value;
}

/* Unpacks a saved tensor; if `history` is true, with the history that the tensor had when it was packed.  Returns a
   tensor of the innermost scope, or NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_packed_saved_tensor(const opdi_packed_saved *packed, bool history) {
    opd_tensor *tensor = packed->packer->unpack(packed);
    return tensor && packed->edge.node && history ? opdi_with_history(tensor, packed->edge) : tensor;
}

/* Returns the tensors of a saved list, and unpacks those that are packed (with their history if `history` is true).
   The list belongs to the innermost scope.  On failure, returns a list without data and sets an error. */
OPDI_INTERNAL opd_tensors opdi_packed_saved_list(const opd_value *value, bool history) {
    opd_tensor **list = (opd_tensor **)opdi_scope_alloc((size_t)value->n * sizeof *list);
    for (int32_t k = 0; list && k < value->n; k++) {
        opdi_packed_saved *packed = opdi_packed_saved_at(value->u.tensors[k]);
        list[k] = packed ? opdi_packed_saved_tensor(packed, history) : value->u.tensors[k];
        if (packed && !list[k]) { return opd_tensors_of(NULL, 0); }
    }
    return list ? opd_tensors_of(list, value->n) : opd_tensors_of(NULL, 0);
}
OPDI_COLD_END

/* Returns the tensor of a saved value, or NULL if none was saved. `version` is the tensor's version when it was saved.
   Returns NULL and sets an error if the tensor was written since. */
OPDI_INTERNAL opd_tensor *opdi_unpack(const opd_node *node, const opd_value *value, uint32_t version) {
    if (value->tag == OPDI_TAG_PACKED) {
        return opdi_packed_saved_tensor((const struct opdi_packed_saved *)value->u.object, !opdi_self()->state.no_grad);
    }
    if (value->tag != OPD_TAG_TENSOR) {
        if (value->n == OPDI_WRITTEN_SINCE) {
            (void)opd_fail(OPD_ERROR_AUTOGRAD, "one of the variables needed for gradient computation has been "
                           "modified by an inplace operation: a tensor that %s saved was written to after it was saved",
                           node->formula->name);
        }
        return NULL;
    }
    uint32_t now = OPDI_LOAD(&value->u.t->storage->version);
    return OPDI_LIKELY(now == version) ? value->u.t : opdi_fail_written(value->u.t, now, version);
}

/* Returns the kept value of argument i of a node without an operator descriptor (made by opd_autograd_record or by a
   custom function), or NULL. */
OPDI_NOINLINE static const opd_value *opdi_bw_kept_manual(const opd_backward_call *bw, int i) {
    const bool context = bw->node->formula->context;  /* the context is the last value; an int is the index of another
                                                         kept value with the same tensor */
    const opd_value *value = i >= 0 && i < bw->node->nkept - context ? &opdi_kept(bw->node)[i] : NULL;
    return value && context && value->tag == OPD_TAG_INT ? &opdi_kept(bw->node)[value->u.i] : value;
}
static inline const opd_value *opdi_bw_kept(const opd_backward_call *bw, int i) {
    const opdi_card *card = bw->node->formula->card;
    if (OPDI_UNLIKELY(!card)) { return opdi_bw_kept_manual(bw, i); }
    return i < 0 || i >= OPD_MAX_ARGS || card->kept_at[i] < 0 ? NULL : &opdi_kept(bw->node)[card->kept_at[i]];
}

/* Returns the index of the edge that belongs to element number `element` of argument `i` (0 if the argument is not a
   list), or -1 if there is none. */
OPDI_NOINLINE static int opdi_bw_edge_of(const opd_backward_call *bw, int i, int element) {
    const opdi_card *card = bw->node->formula->card;
    if (!card && bw->node->formula->context) { return opdi_context_edge(opd_bw_context(bw), i, element); }
    if (!card) { return i >= 0 && i < bw->node->nedges && element == 0 ? i : -1; }
    if (i < 0 || i >= card->nargs || element < 0) { return -1; }
    uint64_t below = ((uint64_t)1 << i) - 1;
    int edge = opdi_popcount(card->tensor_args & below);
    for (uint64_t mask = card->list_args & (below << 1 | 1); mask; mask &= mask - 1) {
        const int at = opdi_low_bit(mask);
        const opd_value *value = opdi_bw_kept(bw, at);
        const int count = value && value->tag == OPD_TAG_TENSORS ? value->n : 0;
        if (at == i) { return element < count ? edge + element : -1; }
        edge += count;
    }
    return element == 0 && (card->tensor_args >> i & 1) ? edge : -1;
}
static inline int opdi_bw_edge(const opd_backward_call *bw, int i, int element) {
    const opdi_card *card = bw->node->formula->card;
    if (OPDI_UNLIKELY(!card || i < 0 || i >= OPD_MAX_ARGS) || card->edge_at[i] == OPDI_EDGE_COUNTED) {
        return opdi_bw_edge_of(bw, i, element);
    }
    return element == 0 ? card->edge_at[i] : -1;
}

opd_tensor *opd_bw_grad(opd_backward_call *bw, int i) {
    if (i < 0 || i >= bw->node->noutputs) { return NULL; }
    if (OPDI_UNLIKELY(bw->node->formula->context) && !bw->grads[i] && opd_bw_context(bw)->materialize) {
        bw->grads[i] = opdi_zeros_of(opdi_node_meta(bw->node, (uint32_t)i));
    }
    if (OPDI_UNLIKELY(!bw->grads[i])) { bw->undefined = true; }
    return bw->grads[i];
}

/* Returns the fetched form (checked and unpacked) of a kept value, or `value` itself if it needed no fetching. */
static inline const opd_value *opdi_fetched(const opd_backward_call *bw, const opd_value *value) {
    return OPDI_LIKELY(!bw->fetched) || !value ? value : &bw->fetched[value - opdi_kept(bw->node)];
}

/* Sets an error if the backward function of a program's operator reads argument i although the operator's descriptor
   does not save it (`save`).  Backward functions of built-in operators may read such arguments, because similar
   pointwise operators share one backward function. */
OPDI_NOINLINE static void opdi_bw_unsaved(const opd_backward_call *bw, int i) {
    const opdi_card *card = bw->node->formula->card;
    if (!card || strncmp(card->op->name, "aten::", 6) == 0) { return; }
    (void)opd_fail(OPD_ERROR_AUTOGRAD, i >= 0 && i < card->nargs
                   ? "the backward function reads tensor argument %d of %s, which is not named in `save`"
                   : "the backward function reads argument %d of %s, which does not exist (opd_bw_result reads saved "
                   "results)", i, card->op->name);
}
/* Returns the name of the function that reads arguments with this tag. */
static const char *opdi_bw_reader(int32_t tag) {
    switch (tag) {
    case OPD_TAG_TENSOR: return "opd_bw_tensor";
    case OPD_TAG_TENSORS: return "opd_bw_tensors";
    case OPD_TAG_INT: return "opd_bw_int";
    case OPD_TAG_FLOAT: return "opd_bw_double";
    case OPD_TAG_BOOL: return "opd_bw_bool";
    case OPD_TAG_STR: return "opd_bw_str";
    case OPD_TAG_INTS: return "opd_bw_ints";
    case OPD_TAG_FLOATS: return "opd_bw_doubles";
    default: return "opd_bw_value";
    }
}
/* Sets the error that a backward function of the program reads kept value i with `reader`, a function for values of
   another type.  Returns NULL. */
OPDI_NOINLINE static opd_tensor *opdi_bw_other_type(const opd_backward_call *bw, int i, const opd_value *value,
                                                    const char *reader) {
    const opdi_card *card = bw->node->formula->card;
    const char *name = card && card->op->definition && i < card->op->nargs ? card->op->schema->args[i].name : "";
    if (card && strncmp(card->op->name, "aten::", 6) == 0) { return NULL; }
    (void)opd_fail(OPD_ERROR_AUTOGRAD, "the backward function of %s reads %s %d%s%s%s with %s, but it is a value of "
                   "type %s: read it with %s (opd_bw_result reads saved results)", card ? card->op->name
                   : bw->node->formula->name, card ? "argument" : "saved value", i, *name ? " ('" : "", name, *name
                   ? "')" : "", reader, opdi_value_kind(value), opdi_bw_reader(value->tag));
    return NULL;
}

opd_tensor *opd_bw_tensor(opd_backward_call *bw, int i) {
    const opd_value *value = opdi_fetched(bw, opdi_bw_kept(bw, i));
    if (OPDI_LIKELY(value && value->tag == OPD_TAG_TENSOR) && !bw->node->formula->context) { return value->u.t; }
    if (!value) {
        opdi_bw_unsaved(bw, i);
        return NULL;
    }
    if (value->tag != OPD_TAG_TENSOR && value->tag != OPD_TAG_NONE && value->tag != OPDI_TAG_PACKED) {
        return opdi_bw_other_type(bw, i, value, "opd_bw_tensor");
    }
    return opdi_unpack(bw->node, value, (uint32_t)value->n);
}

opd_tensors opd_bw_tensors(opd_backward_call *bw, int i) {
    const opd_value *value = opdi_fetched(bw, opdi_bw_kept(bw, i));
    if (OPDI_UNLIKELY(value && value->tag != OPD_TAG_TENSORS && value->tag != OPD_TAG_NONE)) {
        (void)opdi_bw_other_type(bw, i, value, "opd_bw_tensors");
        return opd_tensors_of(NULL, 0);
    }
    return value && value->tag == OPD_TAG_TENSORS && value->u.tensors ? opd_tensors_of(value->u.tensors, value->n)
        : opd_tensors_of(NULL, 0);
}

opd_value opd_bw_value(opd_backward_call *bw, int i) {
    const opd_value *value = opdi_bw_kept(bw, i);
    return value ? *value : opd_value_none();
}
bool opd_bw_is_none(opd_backward_call *bw, int i) { return opd_bw_value(bw, i).tag == OPD_TAG_NONE; }

/* Returns kept value i if it has this tag, or NULL if it is None.  If it has another tag or does not exist, returns
   NULL and, in backward functions of the program, sets an error. */
static const opd_value *opdi_bw_of(const opd_backward_call *bw, int i, int32_t tag) {
    const opd_value *value = opdi_bw_kept(bw, i);
    if (OPDI_LIKELY(value && value->tag == tag)) { return value; }
    if (!value) { opdi_bw_unsaved(bw, i); }
    else if (value->tag != OPD_TAG_NONE) { (void)opdi_bw_other_type(bw, i, value, opdi_bw_reader(tag)); }
    return NULL;
}
int64_t opd_bw_int(opd_backward_call *bw, int i) {
    const opd_value *value = opdi_bw_of(bw, i, OPD_TAG_INT);
    return value ? value->u.i : 0;
}
double opd_bw_double(opd_backward_call *bw, int i) {
    const opd_value *value = opdi_bw_of(bw, i, OPD_TAG_FLOAT);
    return value ? value->u.d : 0;
}
bool opd_bw_bool(opd_backward_call *bw, int i) {
    const opd_value *value = opdi_bw_of(bw, i, OPD_TAG_BOOL);
    return value && value->u.i != 0;
}
const char *opd_bw_str(opd_backward_call *bw, int i) {
    const opd_value *value = opdi_bw_of(bw, i, OPD_TAG_STR);
    return value ? value->u.s : NULL;
}
opd_ints opd_bw_ints(opd_backward_call *bw, int i) {
    const opd_value *value = opdi_bw_of(bw, i, OPD_TAG_INTS);
    return value ? opd_ints_of(value->u.ints, value->n) : opd_ints_of(NULL, 0);
}
opd_doubles opd_bw_doubles(opd_backward_call *bw, int i) {
    const opd_value *value = opdi_bw_of(bw, i, OPD_TAG_FLOATS);
    return value ? opd_doubles_of(value->u.floats, value->n) : opd_doubles_of(NULL, 0);
}

opd_tensor *opd_bw_result(opd_backward_call *bw, int i) {
    const opdi_card *card = bw->node->formula->card;
    if (!card || i < 0 || i > 31 || !(card->save_results >> i & 1)) { return NULL; }
    const opd_value *value = &opdi_saved_results(bw->node)[opdi_popcount(card->save_results & ((1u << i) - 1))];
    value = opdi_fetched(bw, value);
    return value->tag == OPD_TAG_TENSOR ? value->u.t : NULL;
}

OPDI_COLD_BEGIN
/* Returns the entry of bw->fetched for the kept value with index `at`.  Makes bw->fetched, a copy of all kept values of
   the node, if it is still NULL.  Returns NULL if memory runs out. */
static opd_value *opdi_fetch_slot(opd_backward_call *bw, int at) {
    const size_t count = (size_t)bw->node->nkept + bw->node->nresults;
    if (!bw->fetched && (bw->fetched = (opd_value *)opdi_scope_alloc(count * sizeof(opd_value))) != NULL) {
        memcpy(bw->fetched, opdi_kept(bw->node), count * sizeof(opd_value));
    }
    return bw->fetched ? &bw->fetched[at] : NULL;
}
/* Fetches the kept list with index `at`: checks that its tensors were not written, and unpacks the tensors that a hook
   has packed.  Returns 0, or -1 and sets an error. */
static int opdi_fetch_list(opd_backward_call *bw, int at) {
    const opd_value *value = &opdi_kept(bw->node)[at];
    const uint32_t *versions = value->u.tensors ? (const uint32_t *)(const void *)(value->u.tensors + value->n) : NULL;
    opd_value *to;
    bool packed = false;
    for (int32_t k = 0; versions && k < value->n; k++) {
        const opd_value one = opd_value_tensor(value->u.tensors[k]);
        if (opdi_packed_saved_at(value->u.tensors[k])) {
            packed = true;
            continue;
        }
        if (value->u.tensors[k] && !opdi_unpack(bw->node, &one, versions[k])) { return -1; }
    }
    if (!packed) { return 0; }
    if (!(to = opdi_fetch_slot(bw, at))) { return -1; }
    to->u.tensors = opdi_packed_saved_list(value, !opdi_self()->state.no_grad).data;
    return to->u.tensors ? 0 : -1;
}
/* Fetches kept value number `at` in the rare cases: the tensor was dropped, was written after it was saved, or was
   packed by hooks; or the node records a write into a view; or the value is a list.  `history` is as for opdi_fetch.
   Returns 0, or -1 and sets an error. */
OPDI_NOINLINE static int opdi_fetch_other(opd_backward_call *bw, int at, bool history) {
    const opd_value *value = &opdi_kept(bw->node)[at];
    opd_value *to;
    opd_tensor *tensor;
    if (value->tag == OPD_TAG_TENSORS) { return opdi_fetch_list(bw, at); }
    if (!(tensor = opdi_unpack(bw->node, value, (uint32_t)value->n))) { return -1; }
    if (history && value->tag == OPD_TAG_TENSOR && !tensor->grad_fn) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "Trying to use a saved tensor that has been detached in-place, i.e. with "
                        ".detach_(). This is not supported, please use out-of-place `.detach()` instead (opd_detach)");
    }
    if (at >= bw->node->nkept && bw->base && opd_grad_mode_enabled() && !(tensor = bw->result(bw, tensor))) {
        return -1;
    }
    if (tensor == value->u.t && value->tag == OPD_TAG_TENSOR) { return 0; }
    if (!(to = opdi_fetch_slot(bw, at))) { return -1; }
    *to = opd_value_tensor(tensor);
    return 0;
}
OPDI_COLD_END

/* Checks that the tensor of kept value number `at` was not written after it was saved, and unpacks it if necessary.  If
   `history` is true, the tensor had a history when it was saved and must still have it.  Returns 0, or -1 and sets an
   error. */
static inline int opdi_fetch(opd_backward_call *bw, int at, bool history) {
    const opd_value *value = &opdi_kept(bw->node)[at];
    if (OPDI_LIKELY(value->tag == OPD_TAG_TENSOR && OPDI_LOAD(&value->u.t->storage->version) == (uint32_t)value->n) &&
        !(history && !value->u.t->grad_fn) && !bw->base) { return 0; }
    return value->tag == OPD_TAG_TENSOR || value->tag == OPD_TAG_TENSORS || value->tag == OPDI_TAG_PACKED ||
        (value->tag == OPD_TAG_NONE && value->n == OPDI_WRITTEN_SINCE) ? opdi_fetch_other(bw, at, history) : 0;
}
/* Fetches the saved arguments and results of a node before its backward function runs.  Returns 0, or -1 and sets an
   error. */
OPDI_INTERNAL int opdi_fetch_saved(opd_backward_call *bw) {
    const opd_node *node = bw->node;
    const opdi_card *card = node->formula->card;
    for (uint64_t mask = card ? card->save_args : 0; mask; mask &= mask - 1) {
        const int arg = opdi_low_bit(mask), e = opdi_bw_edge(bw, arg, 0);
        const uintptr_t edge = e < 0 || (card->save_sizes >> arg & 1) ? 0 : opdi_edges(node)[e].vertex;
        if (opdi_fetch(bw, card->kept_at[arg], edge && !(edge & OPDI_LEAF))) { return -1; }
    }
    for (int i = 0; !card && !node->formula->context && i < node->nkept; i++) {  /* saved tensors need not be inputs */
        if (opdi_fetch(bw, i, false)) { return -1; }
    }
    for (int i = node->nkept; i < node->nkept + node->nresults; i++) {
        if (opdi_fetch(bw, i, false)) { return -1; }
    }
    const opdi_tracer *tracer = opdi_self()->innermost.tracer;
    return OPDI_UNLIKELY(tracer != NULL) ? tracer->saved(bw) : 0;
}

/* Returns true if any edge of `node` has a vertex, so that the backward function of the node has to compute a
   gradient. */
OPDI_INTERNAL bool opdi_wants_any(const opd_node *node) {
    const opdi_edge *edge = opdi_edges(node);
    int i;
    for (i = 0; i < node->nedges && !edge[i].vertex; i++) { }
    return i < node->nedges;
}

bool opd_bw_needs_at(const opd_backward_call *bw, int i, int element) {
    int edge = opdi_bw_edge(bw, i, element);
    return edge >= 0 && opdi_edges(bw->node)[edge].vertex != 0;
}
bool opd_bw_needs(const opd_backward_call *bw, int i) {
    int edge;
    for (int k = 0; (edge = opdi_bw_edge(bw, i, k)) >= 0; k++) {
        if (opdi_edges(bw->node)[edge].vertex) { return true; }
    }
    return false;
}

/* Returns true if argument i of the forward call was a column-major matrix, so that its gradient becomes one, too. */
OPDI_INTERNAL bool opdi_bw_is_column_major(const opd_backward_call *bw, int i) {
    const int edge = opdi_bw_edge(bw, i, 0);
    const opdi_edge *to = edge >= 0 ? &opdi_edges(bw->node)[edge] : NULL;
    if (!to || !to->vertex) { return false; }
    if (to->vertex & OPDI_LEAF) { return opdi_is_column_major(opdi_edge_leaf(to->vertex)); }
    const int64_t *const meta = opdi_node_meta(opdi_edge_node(to->vertex), to->nr);
    return meta && (*meta & OPDI_META_COLUMN_MAJOR);
}

/* The sizes that are returned for an argument whose gradient is not needed.  The returned pointer points to the middle
   of the zeros, so that a backward function may also count dims from the end. */
static const int64_t opdi_no_sizes[2 * OPD_MAX_DIMS] = {0};
opd_ints opd_bw_sizes_at(const opd_backward_call *bw, int i, int element) {
    const int64_t *sizes;
    opd_scalar_type dtype;
    int edge = opdi_bw_edge(bw, i, element), ndim, place;
    if (edge < 0 || !opdi_edge_meta(&opdi_edges(bw->node)[edge], &sizes, &ndim, &dtype, &place)) {
        return opd_ints_of(opdi_no_sizes + OPD_MAX_DIMS, -1);
    }
    return opd_ints_of(sizes, ndim);
}
opd_ints opd_bw_sizes(const opd_backward_call *bw, int i) { return opd_bw_sizes_at(bw, i, 0); }

opd_scalar_type opd_bw_dtype(const opd_backward_call *bw, int i) {
    const int64_t *sizes;
    opd_scalar_type dtype;
    int edge = opdi_bw_edge(bw, i, 0), ndim, place;
    return edge >= 0 && opdi_edge_meta(&opdi_edges(bw->node)[edge], &sizes, &ndim, &dtype, &place) ? dtype
        : OPD_DTYPE_NONE;
}

opd_device opd_bw_device(const opd_backward_call *bw, int i) {
    const int64_t *sizes;
    opd_scalar_type dtype;
    int edge = opdi_bw_edge(bw, i, 0), ndim, place;
    return opdi_place_device(edge >= 0 && opdi_edge_meta(&opdi_edges(bw->node)[edge], &sizes, &ndim, &dtype, &place)
                             ? place : OPD_CPU);
}

OPDI_COLD_BEGIN
/* Sets the error that a custom function's backward returned gradient `i` for an input that is not a tensor or does not
   exist.  Returns -1. */
OPDI_INTERNAL int opdi_context_wrong_return(const opd_backward_call *bw, int i) {
    const opd_context *ctx = opd_bw_context(bw);
    if (i < 0 || i >= ctx->ninputs) {
        return opd_fail(OPD_ERROR_AUTOGRAD,
                        "function %s returned an incorrect number of gradients (expected %d, got %d)",
                        bw->node->formula->name, (int)ctx->ninputs, i + 1);
    }
    return opd_fail(OPD_ERROR_AUTOGRAD, "function %s returned a gradient at position %d, but the input at this "
                    "position is not a tensor: return NULL for it", bw->node->formula->name,
                    i + 1);
}
OPDI_COLD_END
/* Sets the gradient for element `element` of argument i to `grad` (NULL: there is none), instead of an earlier
   gradient.  Ignores a gradient that is not needed.  Returns 0, or -1 and sets an error. */
int opd_bw_return_at(opd_backward_call *bw, int i, int element, opd_tensor *grad) {
    int edge = opdi_bw_edge(bw, i, element);
    if (!opd_ok()) { return -1; }
    if (edge < 0 && bw->node->formula->context) { return grad ? opdi_context_wrong_return(bw, i) : 0; }
    if (edge < 0) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "%s: the backward function returned a gradient for argument %d (element "
                        "%d), which is not a tensor argument", bw->node->formula->name, i, element);
    }
    if (!opdi_edges(bw->node)[edge].vertex) { return 0; }
    if (grad) { opdi_retain(grad); }
    if (bw->out[edge] && bw->out[edge] != &opdi_no_gradient) { opdi_drop(bw->out[edge]); }
    bw->out[edge] = grad ? grad : &opdi_no_gradient;
    return 0;
}
int opd_bw_return(opd_backward_call *bw, int i, opd_tensor *grad) { return opd_bw_return_at(bw, i, 0, grad); }
/* Returns the incoming gradient as the gradient of argument 0.  If the argument was broadcast, the engine sums the
   gradient. */
OPDI_INTERNAL int opdi_pass_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_bw_grad(bw, 0)); }
/* The backward function of operators whose derivative neither this library nor PyTorch has.  Sets an error and returns
   -1. */
OPDI_INTERNAL int opdi_refused_backward(opd_backward_call *bw) {
    const opdi_derivative *const formula = bw->node->formula;
    return opd_fail(OPD_ERROR_AUTOGRAD, "the derivative for '%s' is not implemented.",
                    formula->card ? formula->card->op->schema->name : formula->name);
}
/* The backward function of an input with respect to which a transform differentiates (see opdi_diff_is_input): returns
   the incoming gradient. */
OPDI_INTERNAL int opdi_input_bw(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_bw_grad(bw, 0)); }
