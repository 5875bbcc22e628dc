#include "tools.h"

//== sample calls ======================================================================================================
//
//  The field `cases` of a descriptor has lists of arguments (see src/README.md).  These functions read them, and make
//  the tensors: on any device, with any dtype, and in several layouts.  The numbers depend only on the place of the
//  tensor in the list, so two readings give equal tensors.  Only contiguous tensors are copied to a device.

/* Returns a number in [0, 1) that depends on `seed` and i. */
static double opdi_sample_random(int seed, int64_t i) {
    uint32_t x = (uint32_t)seed * 2654435761u + (uint32_t)i * 40503u + 12345u;
    x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu, x ^= x >> 16;
    return (double)(x >> 8) / 16777216.0;
}
/* Returns element i of a tensor of a kind: a letter after the sizes, or 0. */
static double opdi_sample_number(int seed, char kind, int range, int64_t i) {
    const double random = opdi_sample_random(seed, i);
    if (kind == 'i') { return floor(random * range); }
    if (kind == 'b') { return random < 0.5 ? 0 : 1; }
    const double x = kind == '+' ? 0.25 + random * 1.5 : kind == 'u' ? 0.1 + random * 0.8 : kind == 'g' ? 1.1 + random
        : random * 4 - 2;
    return floor(x * 64) / 64;                    /* exact in most dtypes */
}
static int opdi_sample_wrong(opdi_sample *sample) {
    if (!opd_ok()) { return -1; }
    return opd_fail(OPD_ERROR_SCHEMA, "%s: the sample arguments of the operator's descriptor are wrong at '%.40s'",
                    sample->op->name, sample->at);
}
static bool opdi_sample_is(opdi_sample *sample, char letter) {
    while (*sample->at == ' ' || *sample->at == '\n') { sample->at++; }
    if (*sample->at != letter) { return false; }
    sample->at++;
    return true;
}
/* Sets base[ndim] and strides[ndim]: the sizes of the contiguous tensor that contains a tensor of these sizes, and the
   strides of this tensor in it. */
static void opdi_sample_layout(const opdi_sample *sample, const int64_t *sizes, int ndim, int64_t *base,
                               int64_t *strides) {
    int64_t step = 1;
    const bool last = sample->layout == OPDI_SAMPLE_LAST && (ndim == 4 || ndim == 5);
    for (int k = ndim - 1; k >= 0; k--) {         /* the dims of `base`, from the last */
        const int dim = sample->layout == OPDI_SAMPLE_TRANSPOSED ? ndim - 1 - k
            : !last ? k : k == 0 ? 0 : k == ndim - 1 ? 1 : k + 1;
        const int64_t every = sample->layout == OPDI_SAMPLE_SLICED && k == ndim - 1 ? 2 : 1;
        base[k] = sizes[dim] * every + (sample->layout == OPDI_SAMPLE_SLICED);
        strides[dim] = step * every;
        step *= base[k];
    }
}
/* Returns a new tensor with the next numbers, or NULL and sets an error.  kind: the letter in the text, or 0. */
OPDI_INTERNAL opd_tensor *opdi_sample_tensor(opdi_sample *sample, const int64_t *sizes, int ndim, char kind, int range,
                                             opd_scalar_type dtype) {
    int64_t base[OPD_MAX_DIMS], strides[OPD_MAX_DIMS], count = 1, all = 1, at[OPD_MAX_DIMS] = {0};
    const int seed = ++sample->seed;
    const bool whole = opd_dtype_is_integral(dtype, true);
    opdi_sample_layout(sample, sizes, ndim, base, strides);
    for (int d = 0; d < ndim; d++) { count *= sizes[d], all *= base[d]; }
    double *const numbers = (double *)opdi_scope_alloc((size_t)(all + 1) * sizeof *numbers);
    if (!numbers) { return NULL; }
    for (int64_t i = 0; i < all; i++) { numbers[i] = whole ? 1 : 77; }        /* the gaps */
    for (int64_t i = 0; i < count; i++) {
        const int64_t columns = ndim ? sizes[ndim - 1] : 1;
        double number = opdi_sample_number(seed, kind, range, i);
        int64_t to = 0;
        if (kind == 'd' && i / columns % columns == i % columns) { number += 8; }
        for (int d = 0; d < ndim; d++) { to += at[d] * strides[d]; }
        numbers[to] = whole ? fabs(floor(number)) : number;
        for (int d = ndim - 1; d >= 0 && ++at[d] == sizes[d]; d--) { at[d] = 0; }
    }
    opd_tensor *tensor = opd_tensor_from(numbers, opd_ints_of(base, ndim), OPD_FLOAT64);
    if (tensor) { tensor = opd_to_dtype(tensor, dtype); }
    if (tensor && sample->device.type != OPD_CPU) { tensor = opd_to_device(tensor, sample->device, dtype); }
    sample->images |= ndim == 4 || ndim == 5;
    return !tensor || sample->layout == OPDI_SAMPLE_CONTIGUOUS ? tensor
        : opd_tensor_view(tensor, sizes, strides, ndim, 0);
}
static opd_tensor *opdi_sample_read_tensor(opdi_sample *sample) {
    int64_t sizes[OPD_MAX_DIMS];
    int ndim = 0, range = 0;
    char kind = 0, *end;
    while (!opdi_sample_is(sample, ']')) {
        sizes[ndim] = strtoll(sample->at, &end, 10);
        if (end == sample->at || sizes[ndim] < 0 || sizes[ndim] > 4096 || ++ndim > 8) {
            (void)opdi_sample_wrong(sample);
            return NULL;
        }
        sample->at = end;
        (void)opdi_sample_is(sample, ',');
    }
    if (*sample->at && strchr("+ugibd", *sample->at)) { kind = *sample->at++; }
    if (kind == 'i') {
        range = (int)strtol(sample->at, &end, 10);
        sample->at = end;
    }
    const opd_scalar_type dtype = kind == 'i' ? OPD_INT64 : kind == 'b' ? OPD_BOOL : sample->dtype;
    sample->typed |= kind != 'i' && kind != 'b';
    sample->ntensors++;
    return opdi_sample_tensor(sample, sizes, ndim, kind, range, dtype);
}
static bool opdi_sample_word(opdi_sample *sample, const char *word) {
    const size_t length = strlen(word);
    const char next = strncmp(sample->at, word, length) == 0 ? sample->at[length] : 'a';
    if ((next >= 'a' && next <= 'z') || (next >= '0' && next <= '9')) { return false; }
    sample->at += length;
    return true;
}
static int opdi_sample_read_value(opdi_sample *sample, opd_value *value);
/* Reads numbers or bools up to ')', or tensors up to '}', to a list.  Returns 0, or -1 and sets an error. */
static int opdi_sample_read_list(opdi_sample *sample, char close, opd_value *value) {
    enum { MOST = 64 };
    opd_value elements[MOST];
    int32_t count = 0, tag = close == '}' ? OPD_TAG_TENSORS : OPD_TAG_INTS;
    while (!opdi_sample_is(sample, close)) {
        if (count == MOST || opdi_sample_read_value(sample, &elements[count])) { return opdi_sample_wrong(sample); }
        if (close == ')' && elements[count].tag == OPD_TAG_FLOAT) { tag = OPD_TAG_FLOATS; }
        if (close == ')' && elements[count].tag == OPD_TAG_BOOL) { tag = OPD_TAG_BOOLS; }
        count++;
        (void)opdi_sample_is(sample, ',');
    }
    void *const memory = opdi_scope_alloc((size_t)(count + 1) * 8);
    if (!memory) { return -1; }
    for (int32_t i = 0; i < count; i++) {
        const opd_value *const one = &elements[i];
        if (tag == OPD_TAG_TENSORS) { ((opd_tensor **)memory)[i] = one->tag == OPD_TAG_TENSOR ? one->u.t : NULL; }
        else if (tag == OPD_TAG_BOOLS) { ((bool *)memory)[i] = one->u.i != 0; }
        else if (tag == OPD_TAG_INTS) { ((int64_t *)memory)[i] = one->u.i; }
        else { ((double *)memory)[i] = one->tag == OPD_TAG_FLOAT ? one->u.d : (double)one->u.i; }
    }
    value->tag = tag;
    value->n = count;
    value->u.object = memory;
    return 0;
}
static int opdi_sample_read_text(opdi_sample *sample, opd_value *value) {
    const size_t length = strcspn(sample->at, "'");
    char *const text = (char *)opdi_scope_alloc(length + 1);
    if (!text) { return -1; }
    memcpy(text, sample->at, length);
    text[length] = 0;
    sample->at += length + (sample->at[length] == '\'');
    *value = opd_value_str(text);
    return 0;
}
static int opdi_sample_read_value(opdi_sample *sample, opd_value *value) {
    char *end;
    if (opdi_sample_is(sample, '[')) {
        opd_tensor *const tensor = opdi_sample_read_tensor(sample);
        *value = opd_value_tensor(tensor);
        return tensor ? 0 : -1;
    }
    if (opdi_sample_is(sample, '{')) { return opdi_sample_read_list(sample, '}', value); }
    if (opdi_sample_is(sample, '(')) { return opdi_sample_read_list(sample, ')', value); }
    if (opdi_sample_is(sample, '\'')) { return opdi_sample_read_text(sample, value); }
    const bool yes = opdi_sample_word(sample, "True");
    if (yes || opdi_sample_word(sample, "False")) {
        *value = opd_value_bool(yes);
        return 0;
    }
    *value = opd_value_none();
    if (opdi_sample_word(sample, "None")) { return 0; }
    for (int dtype = OPD_UINT8; dtype <= OPD_BFLOAT16; dtype++) {
        if (!opdi_sample_word(sample, opd_dtype_name((opd_scalar_type)dtype))) { continue; }
        *value = opd_value_int(dtype);
        return 0;
    }
    const size_t digits = strspn(sample->at, "+-0123456789");
    const char *const next = sample->at + digits;
    const bool fraction = *next == '.' || *next == 'e' || *next == 'i' || *next == 'n';
    *value = fraction ? opd_value_double(strtod(sample->at, &end)) : opd_value_int(strtoll(sample->at, &end, 10));
    if (end == sample->at) { return opdi_sample_wrong(sample); }
    sample->at = end;
    return 0;
}
/* Reads the next call of *text: `sample` has op, device, dtype and layout.  Returns 1; 0 at the end; or -1 and sets an
   error. */
OPDI_INTERNAL int opdi_sample_read(opdi_sample *sample, const char **text) {
    const opd_op *const op = sample->op;
    int position = 0;
    sample->at = *text;
    sample->seed = sample->ntensors = 0;
    sample->images = sample->typed = false;
    for (int i = 0; i < OPD_MAX_ARGS; i++) { sample->args[i] = opd_value_default(); }
    while (opdi_sample_is(sample, ';')) { }
    sample->from = sample->at;
    if (!*sample->at) { return 0; }
    while (*sample->at && *sample->at != ';') {
        const size_t length = strspn(sample->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
        int to = length && sample->at[length] == '=' ? opdi_arg_index(op->schema, sample->at, length) : -1;
        if (to >= 0) { sample->at += length + 1; } else { to = position++; }
        if (to >= op->nargs || opdi_sample_read_value(sample, &sample->args[to])) { return opdi_sample_wrong(sample); }
        (void)opdi_sample_is(sample, ',');
        while (*sample->at == ' ' || *sample->at == '\n') { sample->at++; }
    }
    sample->length = (size_t)(sample->at - sample->from);
    *text = sample->at;
    return 1;
}
