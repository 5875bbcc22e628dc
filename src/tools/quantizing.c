#include "tools.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>quantizing   weights in few bits: modules, graphs, the ranges of inputs
//
//  Reads the texts that say how weights are quantised, computes integers with scales and zero points by operators, and
//  quantises modules and graphs.  The formulas are the same as in torch.ao.quantization (observer.py, _decomposed.py).
//  Uses modules, graphs and observers.
//----------------------------------------------------------------------------------------------------------------------

//== how to quantise ===================================================================================================

static bool opdi_quantize_word_is(const char *word, size_t length, const char *name) {
    if (strlen(name) != length) { return false; }
    for (size_t i = 0; i < length; i++) {
        if ((word[i] | 32) != (name[i] | 32)) { return false; }
    }
    return true;
}
/* Reads the first word: "int8", "int4" or a dtype in blocks.  Returns whether it is one of them. */
static bool opdi_quantize_first(const char *word, size_t length, opdi_quantize_how *how) {
    how->bits = opdi_quantize_word_is(word, length, "int8") ? 8 : opdi_quantize_word_is(word, length, "int4") ? 4 : 0;
    if (!how->bits) { how->blocks = opdi_block_named(word, length); }
    return how->bits || how->blocks != OPD_DTYPE_NONE;
}
/* Reads a word after the first.  Returns whether it is known and its number is allowed. */
static bool opdi_quantize_next(const char *word, size_t length, opdi_quantize_how *how) {
    char *end;
    if (length > 6 && opdi_quantize_word_is(word, 6, "group ")) {
        how->group = strtoll(word + 6, &end, 10);
        return end == word + length && how->group >= 2;
    }
    if (length > 11 && opdi_quantize_word_is(word, 11, "percentile ")) {
        how->ranges = OPDI_RANGE_PERCENTILE;
        how->percent = strtod(word + 11, &end);
        return end == word + length && how->percent > 0 && how->percent <= 100;
    }
    if (opdi_quantize_word_is(word, length, "asymmetric")) { return how->asymmetric = true; }
    if (opdi_quantize_word_is(word, length, "dynamic")) { return how->dynamic = true; }
    if (opdi_quantize_word_is(word, length, "static")) { return how->fixed = true; }
    const bool minmax = opdi_quantize_word_is(word, length, "minmax");
    how->ranges = minmax ? OPDI_RANGE_MINMAX : OPDI_RANGE_HISTOGRAM;
    return minmax || opdi_quantize_word_is(word, length, "histogram");
}
/* Reads the text `text`, which >>api:modules describes.  `who` is the function that was called.  Returns 0, or -1 and
   sets an error. */
OPDI_INTERNAL int opdi_quantize_read(const char *who, const char *text, opdi_quantize_how *how) {
    memset(how, 0, sizeof *how);
    how->blocks = OPD_DTYPE_NONE;
    how->ranges = -1;
    if (!text) { return opd_fail(OPD_ERROR_ARGUMENT, "%s: the text that says how is NULL", who); }
    const char *at = text;
    for (int i = 0; i == 0 || *at; i++) {
        at += strspn(at, " ");
        size_t length = strcspn(at, ",");
        const char *const after = at + length + (at[length] == ',');
        while (length && at[length - 1] == ' ') { length--; }
        if (!(i ? opdi_quantize_next(at, length, how) : opdi_quantize_first(at, length, how))) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: '%.*s' in \"%.100s\" is not understood: expected int8, int4 or a "
                            "dtype in blocks, and then group N (from 2 on), asymmetric, dynamic, or static with "
                            "minmax, histogram or percentile P (up to 100), with commas between", who,
                            (int)OPDI_MIN(length, 60), at, text);
        }
        at = after;
    }
    const char *const wrong = how->blocks != OPD_DTYPE_NONE && (how->group || how->asymmetric || how->dynamic ||
                                                                how->fixed || how->ranges >= 0)
        ? "blocks have no groups or zero points, and inputs are not rounded by the graph" : how->dynamic && how->fixed
        ? "inputs are either dynamic or static" : how->ranges >= 0 && !how->fixed
        ? "ranges of inputs are found only for static quantisation" : NULL;
    how->least = how->bits == 4 ? 0 : how->asymmetric ? -128 : -127;
    how->most = how->bits == 4 ? 15 : 127;
    return wrong ? opd_fail(OPD_ERROR_ARGUMENT, "%s: \"%.100s\": %s", who, text, wrong) : 0;
}
/* Writes the form that a weight gets, such as "int8, group 32". */
OPDI_INTERNAL void opdi_quantize_form(const opdi_quantize_how *how, bool groups, char *buf, size_t cap) {
    char group[40] = "";
    if (how->blocks != OPD_DTYPE_NONE) {
        (void)snprintf(buf, cap, "%s", opd_dtype_name(how->blocks));
        return;
    }
    if (groups && how->group) { (void)snprintf(group, sizeof group, ", group %lld", (long long)how->group); }
    (void)snprintf(buf, cap, "int%d%s%s", how->bits, group, how->asymmetric ? ", asymmetric" : "");
}

//== numbers ===========================================================================================================

/* Returns the integers for x, as floats: round(x * (1 / scale)) + zero, within the limits. */
static opd_tensor *opdi_quantize_round(opd_tensor *x, opd_tensor *scale, opd_tensor *zero, int64_t least,
                                       int64_t most) {
    return opd_clamp(opd_add(opd_round(opd_mul(x, opd_reciprocal(scale))), zero), opd_value_int(least),
                     opd_value_int(most));
}
/* Returns 1 if all numbers are finite, 0 if not, or -1 and sets an error. */
OPDI_INTERNAL int opdi_quantize_finite(opd_tensor *tensor) {
    opd_tensor *const all = opd_all(opd_isfinite(tensor));
    return all ? opd_item_i64(all) != 0 : -1;
}
/* Quantises `matrix`, float32 [n, k], with a scale for each row, or for each group of a row if `groups` is true.
   Writes the integers [n, k], packed [n, k / 2] if they have 4 bits, and scales and zero points, [n] or [n, k / group].
   Sets *again to the numbers that they stand for, float32 [n, k].  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_quantize_integers(const opdi_quantize_how *how, opd_tensor *matrix, bool groups,
                                         opdi_integers *to, opd_tensor **again) {
    const int64_t columns = opdi_sizes(matrix)[1], size = groups && how->group ? how->group : columns;
    const int64_t last = 1, grouped[2] = {matrix->numel / size, size};
    const int64_t each[2] = {opdi_sizes(matrix)[0], columns / size}, pairs[3] = {each[0], columns / 2, 2};
    const opd_ints dim = opd_ints_of(&last, 1);
    opd_tensor *const rows = opd_reshape(matrix, opd_ints_of(grouped, 2));
    opd_tensor *scale, *zero;
    if (how->asymmetric) {
        opd_tensor *const low = opd_clamp_max(opd_amin(rows, dim, true), opd_value_double(0));
        opd_tensor *const high = opd_clamp_min(opd_amax(rows, dim, true), opd_value_double(0));
        scale = opd_div_Scalar(opd_sub(high, low), opd_value_double((double)(how->most - how->least)));
        scale = opd_clamp_min(scale, opd_value_double(FLT_EPSILON));
        zero = opd_rsub_Scalar(opd_round(opd_div(low, scale)), opd_value_int(how->least));
        zero = opd_clamp(zero, opd_value_int(how->least), opd_value_int(how->most));
    } else {
        scale = opd_div_Scalar(opd_amax(opd_abs(rows), dim, true),
                               opd_value_double((double)(how->most - how->least) / 2));
        scale = opd_clamp_min(scale, opd_value_double(FLT_EPSILON));
        zero = opd_full_like(scale, opd_value_int(how->bits == 4 ? 8 : 0));
    }
    opd_tensor *codes = opdi_quantize_round(rows, scale, zero, how->least, how->most);
    *again = opd_reshape(opd_mul(opd_sub(codes, zero), scale), opd_ints_of(opdi_sizes(matrix), 2));
    codes = opd_to_dtype(opd_reshape(codes, opd_ints_of(opdi_sizes(matrix), 2)), how->bits == 4 ? OPD_UINT8 : OPD_INT8);
    if (how->bits == 4) {
        codes = opd_reshape(codes, opd_ints_of(pairs, 3));
        codes = opd_bitwise_or(opd_select(codes, 2, 0), opd_bitwise_left_shift_Tensor_Scalar(
            opd_select(codes, 2, 1), opd_value_int(4)));
    }
    to->codes = codes;
    to->scales = opd_reshape(scale, opd_ints_of(each, groups && how->group ? 2 : 1));
    to->zeros = opd_reshape(opd_to_dtype(zero, OPD_INT64), opd_ints_of(each, groups && how->group ? 2 : 1));
    return opd_ok() && to->zeros ? 0 : -1;
}
/* Sets *mean and *most to the mean and the largest difference of two tensors.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_quantize_differ(opd_tensor *x, opd_tensor *y, double *mean, double *most) {
    opd_tensor *const converted = opd_to_dtype(x, OPD_FLOAT64),
        *const off = opd_abs(opd_sub(converted, opd_to_dtype(y, OPD_FLOAT64)));
    *mean = *most = 0;
    if (off && off->numel) {
        *mean = opd_item_f64(opd_mean(off));
        *most = opd_item_f64(opd_max(off));
    }
    return opd_ok() ? 0 : -1;
}
OPDI_INTERNAL int64_t opdi_quantize_bytes(const opd_tensor *tensor) {
    return tensor ? opdi_elements_bytes(tensor->dtype, tensor->numel) : 0;
}
/* Returns why a weight cannot be quantised at all, or NULL. */
OPDI_INTERNAL const char *opdi_quantize_unfit(const opd_tensor *weight) {
    const int dtype = weight->dtype;
    return dtype != OPD_FLOAT32 && dtype != OPD_FLOAT16 && dtype != OPD_BFLOAT16
        ? "it is not float32, float16 or bfloat16" : !weight->numel ? "it is empty" : NULL;
}
/* Adds the weight's name to the error that is set.  Returns -1. */
OPDI_INTERNAL int opdi_quantize_blame(const char *who, const char *name) {
    (void)opdi_fail_more(" [%s: the weight '%.200s']", who, name);
    return -1;
}
/* Checks a weight that is to be quantised.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_quantize_check(const char *who, const char *name, opd_tensor *weight) {
    if (weight->grad_fn || opd_tensor_grad(weight)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the weight '%.200s' has a gradient, but weights in few bits cannot be "
                        "trained: call opd_module_zero_grad, or select other weights", who, name);
    }
    const int finite = opdi_quantize_finite(weight);
    return finite == 1 ? 0 : finite < 0 ? -1
        : opd_fail(OPD_ERROR_ARGUMENT, "%s: the weight '%.200s' has a number that is not finite", who, name);
}
size_t opd_quantized_print(const opd_quantized *line, char *buf, size_t cap) {
    opdi_text text = opdi_text_of(buf, cap);
    if (!line) { return 0; }
    opdi_text_add(&text, "%s", line->name);
    if (line->op && *line->op) { opdi_text_add(&text, " %s", line->op); }
    if (line->kept) {
        opdi_text_add(&text, " stays: %s", line->form);
        return text.length;
    }
    if (line->op) {
        opdi_text_add(&text, " %s: %lld -> %lld bytes, weight off by %.3g (at most %.3g)", line->form,
                      (long long)line->bytes_before, (long long)line->bytes_after, line->weight_mean,
                      line->weight_max);
    }
    if (line->input_scale > 0) {
        opdi_text_add(&text, ", inputs from %.4g to %.4g", line->input_min, line->input_max);
    }
    if (line->output_mean >= 0) {
        opdi_text_add(&text, "%s off by %.3g (at most %.3g) of %.3g", line->op ? ", outputs" : "", line->output_mean,
                      line->output_max, line->output_size);
    }
    return text.length;
}
/* Returns whether the options select a weight. */
OPDI_INTERNAL bool opdi_quantize_chosen(const opd_quantize_options *options, const opd_quantized *weight) {
    if (!options) { return true; }
    return opdi_module_matches(options->layers, weight->name) &&
        (!options->choose || options->choose(options->user, weight));
}

//== modules ===========================================================================================================

/* A matrix of a module, and the tensor in blocks that takes its place; NULL: it stays. */
typedef struct opdi_quantize_item { opd_quantized row; opd_tensor *weight, *blocks; } opdi_quantize_item;

/* Quantises matrix number `at` of items.  Returns 0, or -1 and sets an error. */
static int opdi_quantize_item_do(const opdi_quantize_how *how, const opd_quantize_options *options,
                                 opdi_quantize_item *items, int64_t at) {
    static const char who[] = "opd_quantize_module";
    opdi_quantize_item *const item = &items[at];
    opd_quantized *const row = &item->row;
    row->op = "";
    row->kept = true;
    row->bytes_before = row->bytes_after = opdi_quantize_bytes(item->weight);
    row->output_mean = row->output_max = row->output_size = NAN;
    for (int64_t k = 0; k < at; k++) {            /* tied weights have one tensor */
        if (items[k].weight == item->weight && items[k].blocks) {
            const char *const name = row->name;
            *item = items[k];
            row->name = name;
            return 0;
        }
    }
    row->form = opdi_quantize_unfit(item->weight);
    if (!row->form && !opdi_quantize_chosen(options, row)) { row->form = "it is not selected"; }
    if (row->form) { return opd_ok() ? 0 : -1; }
    if (opdi_quantize_check(who, row->name, item->weight)) { return -1; }
    item->blocks = opd_quantize_blocks(item->weight, how->blocks);
    if (!item->blocks) { return opdi_quantize_blame(who, row->name); }
    opd_scope scope = opd_scope_open();
    const int rc = opdi_quantize_differ(item->weight, opd_dequantize(item->blocks), &row->weight_mean,
                                        &row->weight_max);
    opd_scope_close(&scope);
    row->kept = false;
    row->form = opd_dtype_name(how->blocks);
    row->bytes_after = opdi_quantize_bytes(item->blocks);
    return rc;
}
static int opdi_quantize_module_inside(opd_module *module, const char *how_text, const opd_quantize_options *options) {
    opdi_quantize_how how;
    int64_t count = 0;
    int done = 0;
    if (opdi_quantize_read("opd_quantize_module", how_text, &how)) { return -1; }
    if (how.blocks == OPD_DTYPE_NONE) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_quantize_module: \"%.100s\" needs a graph, which multiplies by "
                        "integers: call opd_quantize_graph or opd_quantize_program, or use a dtype in blocks",
                        how_text);
    }
    opdi_quantize_item *const items = (opdi_quantize_item *)opdi_scope_alloc(
        (size_t)(module->count + 1) * sizeof *items);
    if (!items) { return -1; }
    memset(items, 0, (size_t)(module->count + 1) * sizeof *items);
    for (int64_t i = 0; i < module->count; i++) {
        const opdi_module_item *const its = &module->items[i];
        if (its->kind != OPD_MODULE_PARAMETER || its->tensor->ndim != 2 || opdi_is_block(its->tensor->dtype)) {
            continue;
        }
        items[count].row.name = its->name;
        items[count].weight = its->tensor;
        if (opdi_quantize_item_do(&how, options, items, count++)) { return -1; }
    }
    for (int64_t i = 0; i < count && options && options->report; i++) {
        options->report(options->user, &items[i].row);
    }
    for (int64_t i = 0; i < count && opd_ok(); i++) {
        if (items[i].blocks && opd_module_set(module, items[i].row.name, items[i].blocks)) { return -1; }
        done += items[i].blocks != NULL;
    }
    if (!opd_ok()) { return -1; }
    if (!done) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_quantize_module: there is no matrix of floats%s%.200s",
                        options && options->layers ? " that is selected by " : "",
                        options && options->layers ? options->layers : "");
    }
    return done;
}
int opd_quantize_module(opd_module *module, const char *how, const opd_quantize_options *options) {
    if (!opd_ok() || opdi_null_module(module, "opd_quantize_module")) { return -1; }
    const bool was = opd_grad_mode_set(false);
    opd_scope scope = opd_scope_open();
    const int done = opdi_quantize_module_inside(module, how, options);
    opd_scope_close(&scope);
    (void)opd_grad_mode_set(was);
    return done;
}
