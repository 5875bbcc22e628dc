#include "ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>builtins     the list of all operator descriptors, and their registration
//
//  A built-in operator is registered when its name, or the list of all operators, is first looked up.  opdi_families
//  lists the operator descriptors (cards) by families, each of which can be left out of a build.  Below, an indented
//  function is called by the function above it.
//    opdi_started                              at the first use, and whenever a library block has not run yet
//      opdi_start
//        opdi_register_builtins                once, before all blocks: opens the library of the built-in operators
//          opdi_register_fallbacks
//        opdi_block_run                        for each library block that has not run yet
//    opdi_find_waiting, opd_op_builtin, opdi_overloads_of, and functions that register for a name
//      opdi_builtins_make(name)                other threads wait until it ends, see `starter` and `making`
//        opdi_register_card(i)                 for each unregistered descriptor in the name's family (opdi_family)
//          opd_define                          registers schema, kernels and derived forms; from then on,
//                                              opdi_registry.builtin[i] is the operator
//    opdi_not_found, opd_op_next, opd_op_list, opd_listener_add
//      opdi_builtins_make(NULL)                the same for all descriptors
//----------------------------------------------------------------------------------------------------------------------

//== operator descriptors by family

typedef void (*opdi_card_fn)(opd_op_desc *op);
#if !defined(OPD_LEAN)
#include "cards.printed.h"
#endif

/* Runs a card, which fills in *desc, and sets defaults: autocast keeps dtypes; under vmap, composite operators are
   decomposed, and pointwise formulas run on all examples at once. */
static void opdi_read_card(opdi_card_fn card, opd_op_desc *desc) {
    memset(desc, 0, sizeof *desc);
    card(desc);
    desc->tags |= OPD_OPTAG_PT2_COMPLIANT;
    if (desc->autocast == OPD_AUTOCAST_FORGOTTEN) { desc->autocast = OPD_AUTOCAST_KEEP; }
    if (desc->vmap) { return; }
    if (desc->composite && !desc->cpu && !desc->any) { desc->vmap = OPD_BATCH_DECOMPOSE; }
    if (desc->tags & OPDI_OPTAG_FORMULA) { desc->vmap = OPD_BATCH_POINTWISE; }
}

//== registration of the operators

/* Registers the fallbacks that apply to all operators, key by key (aten/src/ATen/core/VariableFallbackKernel.cpp and
   similar files).  Returns 0, or -1 and sets an error. */
static int opdi_register_fallbacks(opd_library *lib) {
    for (opd_key key = 0; key < OPD_KEY_SLOTS; key++) {
        const int functionality = opdi_key_is_runtime(key) ? opdi_key_functionality(key) : 0;
        if ((functionality == OPD_F_BACKEND_SELECT || functionality == OPD_F_AD_INPLACE_OR_VIEW ||
             functionality == OPD_F_VMAP_MODE || functionality == OPD_F_AUTOCAST) &&
            opdi_fallback_at(lib, key, opd_fallthrough)) {
            return -1;
        }
        if ((functionality == OPD_F_DYNAMIC_LAYER_FRONT && opdi_fallback_at(lib, key, opdi_front_fallback)) ||
            (functionality == OPD_F_DYNAMIC_LAYER_BACK && opdi_fallback_at(lib, key, opdi_back_fallback)) ||
            (functionality == OPD_F_TRACER && opdi_fallback_at(lib, key, opdi_tracer_fallback)) ||
            (functionality == OPD_F_FAKE && opdi_fallback_at(lib, key, opdi_fake_fallback)) ||
            (functionality == OPDI_SIZES_KEY && opdi_fallback_at(lib, key, opdi_sizes_kernel)) ||
            ((functionality == OPD_F_CONJUGATE || functionality == OPD_F_NEGATIVE) &&
             opdi_fallback_at(lib, key, opdi_lazy_fallback)) ||
            (functionality == OPD_F_BATCHED && opdi_fallback_at(lib, key, opdi_batched_fallback))) { return -1; }
        if (opdi_key_covers(OPD_KEY_AUTOGRAD, key) && opdi_fallback_at(lib, key, opdi_autograd_fallback)) { return -1; }
    }
    return 0;
}

/* Opens the library of the built-in operators, before any library block runs, and registers the fallbacks.  Returns 0,
   or -1 and sets an error; then the next use tries again. */
OPDI_INTERNAL int opdi_register_builtins(void) {
    opd_library *aten = opd_library_open(OPD_DEF, "aten", NULL, "opdispatch.h", __LINE__);
    opd_library *all = aten ? opd_library_open(OPD_IMPL, "_", NULL, "opdispatch.h", __LINE__) : NULL;
    const char *show = getenv("OPD_SHOW_DISPATCH_TRACE");
    if (show && *show && strcmp(show, "0") != 0) { (void)opd_dispatch_trace_set(true); }
    if (!all || opdi_register_fallbacks(all)) {
        opd_library_close(all);
        opd_library_close(aten);
        return -1;
    }
    aten->parse = opdi_schema_read;
    opdi_registry.aten = aten;
    return 0;
}

#if !defined(OPD_NO_OP_POOL) || !defined(OPD_NO_OP_QUANTIZED) || !defined(OPD_NO_COLLECTIVES)
/* Defines a built-in operator in namespace ns, unless an operator with its name exists.  *lib is the library for it,
   which is opened for the first such operator.  If the existing operator was defined by the program, whose library may
   be closed later, sets *all to false.  Returns 0, or -1 and sets an error. */
static int opdi_extra_define(opd_library **lib, const char *ns, opd_op_desc *desc, bool *all) {
    char name[256];
    (void)snprintf(name, sizeof name, "%s::%.*s", ns, (int)strcspn(desc->schema, "("), desc->schema);
    const opd_op *const op = opdi_lookup_used(name, strlen(name));
    opdi_lock(&opdi_registry.lock);
    const opdi_registration *const there = op ? op->definition : NULL;
    if (there && strcmp(there->lib->file, "opdispatch.h") != 0) { *all = false; }
    opdi_unlock(&opdi_registry.lock);
    if (there) { return 0; }
    if (!*lib) { *lib = opd_library_open(OPD_FRAGMENT, ns, NULL, "opdispatch.h", __LINE__); }
    desc->tags |= OPD_OPTAG_PT2_COMPLIANT;
    return *lib ? opd_define(*lib, desc) : -1;
}
#endif

#if !defined(OPD_NO_OP_POOL) || !defined(OPD_NO_OP_QUANTIZED)
/* Defines the operators of cards[count] in namespace ns, except those that exist.  If one was defined by the program,
   sets *all to false.  Returns 0, or -1 and sets an error. */
static int opdi_extra_define_all(const char *ns, const opdi_card_fn *cards, size_t count, bool *all) {
    opd_library *lib = NULL;
    for (size_t i = 0; i < count; i++) {
        opd_op_desc desc;
        opdi_read_card(cards[i], &desc);
        if (opdi_extra_define(&lib, ns, &desc, all)) {
            opd_library_close(lib);
            return -1;
        }
    }
    return 0;
}
#define OPDI_EXTRA_DEFINE_ALL(ns, cards, all) opdi_extra_define_all(ns, cards, sizeof (cards) / sizeof *(cards), all)
#endif

/* Registers those of torchvision's operators that no library has defined.  Returns 0, or -1 and sets an error. */
static int opdi_register_vision(void) {
    bool all = true;
#if !defined(OPD_NO_OP_POOL)
    static const opdi_card_fn cards[] = {
        opdi_vision_nms, opdi_vision_roi_align, opdi_vision_roi_align_backward};
    if (OPDI_EXTRA_DEFINE_ALL("torchvision", cards, &all)) { return -1; }
#endif
    OPDI_STORE(&opdi_registry.extra[OPDI_EXTRA_VISION], all ? 1 : 0);
    return 0;
}

/* Registers those operators of quantised models, and of mixtures of experts, that no library has defined.  Returns 0,
   or -1 and sets an error. */
static int opdi_register_quantized(void) {
    bool all = true;
#if !defined(OPD_NO_OP_QUANTIZED)
    static const opdi_card_fn pytorch[] = {
        opdi_affine_quantize_tensor, opdi_affine_quantize_tensor_by_tensors, opdi_affine_quantize_tensor_in_tensors,
        opdi_affine_dequantize_tensor, opdi_affine_dequantize_tensor_by_tensors,
        opdi_affine_dequantize_tensor_in_tensors, opdi_affine_choose_qparams, opdi_affine_choose_qparams_symmetric,
        opdi_affine_convert, opdi_affine_quantize_channel, opdi_affine_dequantize_channel, opdi_affine_fake_channel,
        opdi_affine_choose_rows, opdi_affine_choose_rows_around, opdi_affine_choose_rows_inside,
        opdi_affine_quantize_rows, opdi_affine_dequantize_rows, opdi_affine_quantize_groups,
        opdi_affine_dequantize_groups};
    static const opdi_card_fn torchao[] = {
        opdi_affine_quantize_blocks, opdi_affine_dequantize_blocks, opdi_affine_choose_blocks,
        opdi_affine_choose_float8, opdi_affine_quantize_float8, opdi_affine_dequantize_float8, opdi_affine_product,
        opdi_affine_scaled_product};
    static const opdi_card_fn onednn[] = {
        opdi_onednn_linear_numbers, opdi_onednn_linear_tensors, opdi_onednn_linear_binary_numbers,
        opdi_onednn_linear_binary_tensors, opdi_onednn_linear_pack, opdi_onednn_conv_numbers, opdi_onednn_conv_tensors,
        opdi_onednn_flat_conv_numbers, opdi_onednn_plane_conv_numbers, opdi_onednn_plane_conv_tensors,
        opdi_onednn_deep_conv_numbers, opdi_onednn_plane_sum_numbers, opdi_onednn_plane_sum_tensors,
        opdi_onednn_conv_pack, opdi_onednn_half_pack, opdi_onednn_half_linear, opdi_onednn_half_linear_relu,
        opdi_onednn_add, opdi_onednn_add_relu, opdi_onednn_mul, opdi_onednn_norm};
    static const opdi_card_fn own[] = {
        opdi_coded_linear, opdi_coded_convolution, opdi_coded_embedding, opdi_coded_pool, opdi_int4_product_of_block};
    static const opdi_card_fn rowwise[] = {
        opdi_rowwise_pack8, opdi_rowwise_pack4, opdi_rowwise_pack2, opdi_rowwise_limited8, opdi_rowwise_limited4,
        opdi_rowwise_limited2, opdi_rowwise_unpack8, opdi_rowwise_unpack4, opdi_rowwise_unpack2, opdi_rowwise_sum8,
        opdi_rowwise_sum4, opdi_rowwise_sum2};
    static const opdi_card_fn transformers[] = {opdi_transformers_grouped, opdi_transformers_grouped_backward};
    if (OPDI_EXTRA_DEFINE_ALL("quantized_decomposed", pytorch, &all) ||
        OPDI_EXTRA_DEFINE_ALL("torchao", torchao, &all) || OPDI_EXTRA_DEFINE_ALL("opdispatch", own, &all) ||
        OPDI_EXTRA_DEFINE_ALL("onednn", onednn, &all) || OPDI_EXTRA_DEFINE_ALL("quantized", rowwise, &all) ||
        OPDI_EXTRA_DEFINE_ALL("transformers", transformers, &all)) { return -1; }
#endif
    OPDI_STORE(&opdi_registry.extra[OPDI_EXTRA_QUANTIZED], all ? 1 : 0);
    return 0;
}

/* Registers those of the collective operators that no library has defined.  Returns 0, or -1 and sets an error. */
static int opdi_register_collectives(void) {
    bool every = true;
#if !defined(OPD_NO_COLLECTIVES)
    static const opdi_card_fn all[] = {
        opdi_collective_all_reduce, opdi_collective_all_reduce_, opdi_collective_broadcast,
        opdi_collective_all_gather, opdi_collective_reduce_scatter, opdi_collective_all_to_all, opdi_collective_isend,
        opdi_collective_irecv, opdi_collective_batch_pairs, opdi_collective_wait_tensor, opdi_collective_wait_tensors,
        opdi_collective_all_reduce_coalesced, opdi_collective_all_reduce_coalesced_,
        opdi_collective_all_gather_coalesced, opdi_collective_reduce_scatter_coalesced,
        opdi_collective_autograd_all_gather, opdi_collective_autograd_reduce_scatter,
        opdi_collective_autograd_all_to_all, opdi_collective_autograd_wrap};
    static const char *const spaces[3] = {"_c10d_functional", "_c10d_functional_autograd", "c10d"};
    enum { COUNT = (int)(sizeof all / sizeof all[0]), PLAIN = COUNT - 4,
           CLASSES = OPDI_C10D_OPS };
    opd_library *libs[3] = {NULL, NULL, NULL};
    int rc = 0;
    for (int i = 0; rc == 0 && i < COUNT + CLASSES; i++) {
        const int space = i < PLAIN ? 0 : i < COUNT ? 1 : 2;
        opd_op_desc desc;
        memset(&desc, 0, sizeof desc);
        if (i < COUNT) { opdi_read_card(all[i], &desc); } else { opdi_c10d_card(&desc, i - COUNT); }
        rc = opdi_extra_define(&libs[space], spaces[space], &desc, &every);
    }
    if (rc) {
        for (int i = 0; i < 3; i++) { opd_library_close(libs[i]); }
        return -1;
    }
#endif
    OPDI_STORE(&opdi_registry.extra[OPDI_EXTRA_COLLECTIVES], every ? 1 : 0);
    return 0;
}
#if defined(OPD_LEAN)
OPDI_INTERNAL int opdi_register_extra(int which) {
    const opdi_lean_card *const noted = OPDI_LOAD(&opdi_lean_cards[(int)OPD_OP_COUNT + which]);
    return noted ? noted->all() : 0;
}
#else
OPDI_INTERNAL int opdi_register_extra(int which) {
    return which == OPDI_EXTRA_VISION ? opdi_register_vision()
        : which == OPDI_EXTRA_QUANTIZED ? opdi_register_quantized() : opdi_register_collectives();
}
#endif

#if defined(OPD_LEAN)
/* Returns card number i, or NULL if a macro left it out or this lean program does not use it. */
static opdi_card_fn opdi_card_at(int i) {
    const opdi_lean_card *const noted = OPDI_LOAD(&opdi_lean_cards[i]);
    return noted ? noted->card : NULL;
}
/* Returns the name of the macro that left out this operator or, for a derived form, its base operator.  Returns NULL if
   none did. */
OPDI_INTERNAL const char *opdi_left_out(const char *name) {
    for (int i = 0; i < OPD_OP_COUNT; i++) {
        const opdi_lean_card *const noted = OPDI_LOAD(&opdi_lean_cards[i]);
        if (noted && noted->macro && opdi_same_family(noted->name, name)) { return noted->macro; }
    }
    return NULL;
}
#else
/* Returns the number of the family of card i, and sets *first to the number of the family's first card. */
static int opdi_family_at(int i, int *first) {
    int family = 0;
    for (*first = 0; i - *first >= opdi_families[family].n; family++) {
        *first += opdi_families[family].n;
    }
    return family;
}
/* Returns card number i, or NULL if a macro left out its family. */
static opdi_card_fn opdi_card_at(int i) {
    int first;
    const int family = opdi_family_at(i, &first);
    return opdi_families[family].cards ? opdi_families[family].cards[i - first] : NULL;
}
/* Returns the name of the macro that left out this operator or, for a derived form, its base operator.  Returns NULL if
   none did. */
OPDI_INTERNAL const char *opdi_left_out(const char *name) {
    int first;
    for (int i = 0; i < OPD_OP_COUNT; i++) {
        const int family = opdi_family_at(i, &first);
        if (!opdi_families[family].cards && opdi_same_family(opdi_builtin_name(i), name)) {
            return opdi_families[family].macro;
        }
    }
    return NULL;
}
#endif

/* Registers the operator of card i and its derived forms; does nothing if its family was left out.  Returns 0.  On
   failure, registers nothing, returns -1 and sets an error. */
OPDI_INTERNAL int opdi_register_card(int i) {
    opd_library *aten = opdi_registry.aten;
    const opdi_registration *before = aten->registrations;
    const char *const name = opdi_builtin_name(i);
    const opdi_card_fn card = opdi_card_at(i);
    opd_op_desc desc;
    if (!card) { return 0; }
    opdi_read_card(card, &desc);
    if (!opd_ok() || opdi_define(aten, &desc)) { return -1; }
    opd_op *op = opdi_lookup_used(name, strlen(name));
    if (op && (!desc.inplace || opdi_same_family(name + 6, desc.inplace)) &&
        (!desc.out || opdi_same_family(name + 6, desc.out))) {
        OPDI_PUBLISH(&opdi_registry.builtin[i], op);
        return 0;
    }
    opdi_library_undo(aten, before);
    return opd_fail(OPD_ERROR_REGISTER, "%s: the descriptor and its in-place and out= forms must have the same "
                    "name before the dot", name);
}
