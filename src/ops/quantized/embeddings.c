#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:rowwise   embeddings whose rows are codes with their own scale
//
//  A row of floats becomes codes of 8, 4 or 2 bits, and behind them the scale and the smallest number of the row: as
//  float32 behind codes of 8 bits, else as float16, little-endian.  A number is code * scale + smallest.  The first
//  code of a byte is in its lowest bits.
//----------------------------------------------------------------------------------------------------------------------

/* Returns how many bits a code has, which the operator's name says. */
static int opdi_rowwise_bits(const opd_call *call) {
    const char *const name = opd_op_name(opd_call_operator(call));
    return strstr(name, "_byte_") ? 8 : strstr(name, "_4bit_") ? 4 : 2;
}
/* The scale and the smallest number of a row. */
typedef struct opdi_rowwise { float scale, least; } opdi_rowwise;

static opdi_rowwise opdi_rowwise_read(const uint8_t *at, int bits) {
    opdi_rowwise row;
    row.scale = bits == 8 ? opdi_f32_at(at) : opdi_f16_at(at);
    row.least = bits == 8 ? opdi_f32_at(at + 4) : opdi_f16_at(at + 2);
    return row;
}
static void opdi_rowwise_write(float number, int bits, uint8_t *to) {
    uint32_t word;
    memcpy(&word, &number, sizeof word);
    word = bits == 8 ? word : opdi_f32_to_f16(number);
    for (int i = 0; i < (bits == 8 ? 4 : 2); i++) { to[i] = (uint8_t)(word >> 8 * i); }
}
static float opdi_rowwise_half(float number) { return opdi_f16_to_f32(opdi_f32_to_f16(number)); }
/* Returns what codes of numbers from `low` to `high` are multiplied by and begin at.  Sets *inverse to what numbers are
   multiplied by. */
static opdi_rowwise opdi_rowwise_range(float low, float high, int bits, float *inverse) {
    opdi_rowwise row;
    row.least = bits == 8 ? low : opdi_rowwise_half(low);
    const float range = high - row.least;
    if (bits == 8) {
        row.scale = range / 255;
        *inverse = 255 / (range + 1e-8f);
        return row;
    }
    row.scale = opdi_rowwise_half(range / (float)((1 << bits) - 1));
    if (!(row.scale < 0 || row.scale > 0) || !isfinite(1 / row.scale)) { row.scale = 1; }
    *inverse = 1 / row.scale;
    return row;
}
static float opdi_rowwise_code(float number, float least, float inverse, int bits) {
    const float code = nearbyintf((number - least) * inverse), most = (float)((1 << bits) - 1);
    return code > 0 ? code < most ? code : most : 0;
}
/* Returns the root of the sum of the squared errors of codes from `low` to `high`. */
static float opdi_rowwise_loss(const float *x, int64_t count, float low, float high, int bits) {
    float inverse, sum = 0;
    const opdi_rowwise row = opdi_rowwise_range(low, high, bits, &inverse);
    for (int64_t i = 0; i < count; i++) {
        const float off = x[i] - (opdi_rowwise_code(x[i], row.least, inverse, bits) * row.scale + row.least);
        sum += off * off;
    }
    return sqrtf(sum);
}
/* Makes the range [*low, *high] smaller, one of `bins` steps at a time from the side with the smaller loss, down to
   1 - ratio of it, and keeps the range with the least loss. */
static void opdi_rowwise_narrow(const float *x, int64_t count, int bits, int64_t bins, double ratio, float *low,
                                float *high) {
    const float step = (*high - *low) / (float)bins, least = (float)bins * (1 - (float)ratio) * step;
    float from = *low, to = *high, loss = opdi_rowwise_loss(x, count, from, to, bits), now = loss;
    for (int64_t i = 0; i < bins && from + least < to; i++) {          /* a step may be too small to change a number */
        const float up = opdi_rowwise_loss(x, count, from + step, to, bits);
        const float down = opdi_rowwise_loss(x, count, from, to - step, bits);
        if (now < up && now < down && now < loss) {
            loss = now;
            *low = from;
            *high = to;
        }
        if (up < down) { from += step; }
        else { to -= step; }
        now = up < down ? up : down;
    }
}
/* Rows that are packed: x [rows, columns] to `to`; limits [rows, 2], or NULL. */
typedef struct opdi_rowwise_job {
    const float *x, *limits;
    uint8_t *to;
    int64_t columns, bytes, bins;                 /* bins: 0 if the range is not made smaller */
    double ratio;
    int bits;
} opdi_rowwise_job;
/* An opdi_range_fn. */
static void opdi_rowwise_pack_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_rowwise_job *const job = (const opdi_rowwise_job *)ctx;
    const int64_t count = job->columns;
    for (int64_t i = begin; i < end; i++) {
        const float *const x = job->x + i * count;
        uint8_t *const to = job->to + i * job->bytes, *const tail = to + count * job->bits / 8;
        float low = count ? x[0] : 0, high = low, inverse;
        for (int64_t k = 1; k < count; k++) {
            low = x[k] < low ? x[k] : low;
            high = x[k] > high ? x[k] : high;
        }
        if (job->limits) {
            low = job->limits[2 * i];
            high = job->limits[2 * i + 1];
        } else if (job->bins) { opdi_rowwise_narrow(x, count, job->bits, job->bins, job->ratio, &low, &high); }
        const opdi_rowwise row = opdi_rowwise_range(low, high, job->bits, &inverse);
        memset(to, 0, (size_t)job->bytes);
        for (int64_t k = 0; k < count; k++) {
            const unsigned code = (unsigned)opdi_rowwise_code(x[k], row.least, inverse, job->bits);
            to[k * job->bits / 8] = (uint8_t)(to[k * job->bits / 8] | code << k * job->bits % 8);
        }
        opdi_rowwise_write(row.scale, job->bits, tail);
        opdi_rowwise_write(row.least, job->bits, tail + (job->bits == 8 ? 4 : 2));
    }
}
static int opdi_rowwise_pack(opd_call *call, bool limited) {
    opd_tensor *const weight = opd_arg_tensor(call, 0), *limits = limited ? opd_arg_tensor(call, 1) : NULL;
    const char *const name = opd_op_name(opd_call_operator(call));
    const int ndim = weight->ndim, more = 1 + limited;
    int64_t sizes[OPD_MAX_DIMS];
    opdi_rowwise_job job;
    memset(&job, 0, sizeof job);
    job.bits = opdi_rowwise_bits(call);
    job.columns = ndim ? opdi_sizes(weight)[ndim - 1] : 0;
    if ((weight->dtype != OPD_FLOAT32 && weight->dtype != OPD_FLOAT16) || (job.bits == 8 ? ndim < 2 : ndim != 2)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: weight must be a matrix of float32 or float16", name);
    }
    if (job.columns * job.bits % 8) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: the number of columns of weight, %lld, must be a multiple of %d", name,
                        (long long)job.columns, 8 / job.bits);
    }
    const int64_t rows = job.columns ? weight->numel / job.columns : 0;
    if (limits && (limits->ndim != 2 || opdi_sizes(limits)[0] != rows || opdi_sizes(limits)[1] != 2 ||
                   limits->dtype != weight->dtype)) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: rowwise_min_max must have the dtype of weight, and the sizes (%lld, 2)",
                        name, (long long)rows);
    }
    if (job.bits < 8 && opd_arg_bool(call, more)) {
        job.bins = opd_arg_int(call, more + 1);
        job.ratio = opd_arg_double(call, more + 2);
        if (job.bins < 1 || job.bins > 100000 || !(job.ratio >= 0 && job.ratio <= 1)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: nbins must be 1 to 100000, and ratio 0 to 1", name);
        }
    }
    memcpy(sizes, opdi_sizes(weight), (size_t)ndim * sizeof *sizes);
    job.bytes = sizes[ndim - 1] = job.columns * job.bits / 8 + (job.bits == 8 ? 8 : 4);
    opd_tensor *const out = opd_result(call, 0, sizes, ndim, OPD_UINT8);
    if (!out || !opd_data(out)) { return out ? 0 : -1; }
    const opd_tensor *const x = opdi_dense_as(weight, OPD_FLOAT32);
    limits = x && limits ? opdi_dense_as(limits, OPD_FLOAT32) : NULL;
    if (!x || !opd_ok()) { return -1; }
    job.x = (const float *)(const void *)x->data;
    job.limits = limits ? (const float *)(const void *)limits->data : NULL;
    job.to = (uint8_t *)out->data;
    opdi_parallel_for(rows, OPDI_MAX((int64_t)1, 4096 / (job.columns * (1 + job.bins) + 1)), opdi_rowwise_pack_range,
                      &job);
    return 0;
}
static int opdi_rowwise_pack_kernel(opd_call *call) { return opdi_rowwise_pack(call, false); }
static int opdi_rowwise_pack_limited_kernel(opd_call *call) { return opdi_rowwise_pack(call, true); }
/* Returns how many codes are in a row of `bytes` bytes; -1: the row is too short. */
static int64_t opdi_rowwise_count(int64_t bytes, int bits) {
    const int64_t codes = bytes - (bits == 8 ? 8 : 4);
    return codes < 0 ? -1 : codes * 8 / bits;
}
/* Adds a row of codes, times `factor`, to numbers. */
static void opdi_rowwise_add(const uint8_t *from, int64_t count, int bits, float factor, float *to) {
    opdi_rowwise row = opdi_rowwise_read(from + count * bits / 8, bits);
    row.scale *= factor;
    row.least *= factor;
    if (bits == 8) { for (int64_t k = 0; k < count; k++) { to[k] += row.scale * (float)from[k] + row.least; } }
    else {
        for (int64_t k = 0; k < count; k++) {
            to[k] += row.scale * (float)(from[k * bits / 8] >> k * bits % 8 & ((1 << bits) - 1)) + row.least;
        }
    }
}
/* Checks a packed weight.  Returns the number of columns, or -1 and sets an error. */
static int64_t opdi_rowwise_check(const opd_call *call, const opd_tensor *weight, bool matrix) {
    const int64_t bytes = weight->ndim ? opdi_sizes(weight)[weight->ndim - 1] : 0;
    const int64_t count = opdi_rowwise_count(bytes, opdi_rowwise_bits(call));
    if (weight->dtype != OPD_UINT8 || (matrix ? weight->ndim != 2 : weight->ndim < 2) || count < 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: weight must be a packed matrix of uint8 (see "
                        "quantized::embedding_bag_byte_prepack)", opd_op_name(opd_call_operator(call)));
    }
    return count;
}
static int opdi_rowwise_unpack_kernel(opd_call *call) {
    opd_tensor *const weight = opd_arg_tensor(call, 0);
    const int64_t count = opdi_rowwise_check(call, weight, false);
    const int bits = opdi_rowwise_bits(call);
    int64_t sizes[OPD_MAX_DIMS];
    if (count < 0) { return -1; }
    memcpy(sizes, opdi_sizes(weight), (size_t)weight->ndim * sizeof *sizes);
    const int64_t bytes = sizes[weight->ndim - 1];
    sizes[weight->ndim - 1] = count;
    opd_tensor *const out = opd_result(call, 0, sizes, weight->ndim, OPD_FLOAT32);
    if (!out || !opd_data(out)) { return out ? 0 : -1; }
    const opd_tensor *const from = opdi_dense_as(weight, OPD_UINT8);
    if (!from) { return -1; }
    float *const to = (float *)(void *)out->data;
    memset(to, 0, (size_t)out->numel * sizeof *to);
    for (int64_t i = 0; i < weight->numel / bytes; i++) {
        opdi_rowwise_add((const uint8_t *)from->data + i * bytes, count, bits, 1, to + i * count);
    }
    return 0;
}

//== sums of rows ======================================================================================================

/* Sums of rows: bag b has the indices from begin[b] to begin[b + 1] - 1.  map: the rows of the weight for the indices,
   -1 for a row that was left out; or NULL. */
typedef struct opdi_rowwise_bags {
    const uint8_t *weight;
    const int64_t *indices, *begin;
    const int32_t *map;
    const float *factors;
    int64_t count, bytes;
    int bits;
    float *out;
} opdi_rowwise_bags;
/* An opdi_range_fn. */
static void opdi_rowwise_bags_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_rowwise_bags *const bags = (const opdi_rowwise_bags *)ctx;
    for (int64_t bag = begin; bag < end; bag++) {
        float *const to = bags->out + bag * bags->count;
        memset(to, 0, (size_t)bags->count * sizeof *to);
        for (int64_t i = bags->begin[bag]; i < bags->begin[bag + 1]; i++) {
            const int64_t row = bags->map ? bags->map[bags->indices[i]] : bags->indices[i];
            if (row < 0) { continue; }
            opdi_rowwise_add(bags->weight + row * bags->bytes, bags->count, bags->bits,
                             bags->factors ? bags->factors[i] : 1, to);
        }
    }
}
/* Sets begin[0 .. bags] from offsets, or for indices [bags, each].  Returns 0, or -1 and sets an error. */
static int opdi_rowwise_begin(const opd_call *call, opd_tensor *offsets, int64_t bags, int64_t each, int64_t total,
                              int64_t *begin) {
    const opd_tensor *const dense = offsets ? opdi_dense_as(offsets, OPD_INT64) : NULL;
    if (offsets && !dense) { return -1; }
    const int64_t *const given = dense ? (const int64_t *)(const void *)dense->data : NULL;
    for (int64_t i = 0; i <= bags; i++) {
        begin[i] = !given ? i * each : i < dense->numel ? given[i] : total;
        if (begin[i] < (i ? begin[i - 1] : 0) || begin[i] > total) {
            return opd_fail(OPD_ERROR_INDEX, "%s: offsets[%lld] is %lld, but offsets must not decrease, and be at most "
                            "%lld, the number of indices", opd_op_name(opd_call_operator(call)), (long long)i,
                            (long long)begin[i], (long long)total);
        }
    }
    return 0;
}
/* Checks that all indices are in range, and those of `map`, whose rows are `rows`.  Returns 0, or -1 and sets an
   error. */
static int opdi_rowwise_indices(const opd_call *call, const opdi_rowwise_bags *bags, int64_t total, int64_t limit,
                                int64_t rows) {
    for (int64_t i = 0; i < total; i++) {
        const int64_t at = bags->indices[i];
        const bool inside = at >= 0 && at < limit;
        const int64_t row = inside && bags->map ? bags->map[at] : -1;
        if (!inside || row < -1 || row >= rows) {
            return opd_fail(OPD_ERROR_INDEX, "%s: index %lld is %lld, but the weight has rows 0 to %lld",
                            opd_op_name(opd_call_operator(call)), (long long)i, (long long)(inside ? row : at),
                            (long long)(inside ? rows : limit) - 1);
        }
    }
    return 0;
}
/* Checks the sizes and dtypes of indices, offsets, per_sample_weights and compressed_indices_mapping.  Returns 0, or -1
   and sets an error. */
static int opdi_rowwise_arguments(const opd_call *call, const opd_tensor *indices, const opd_tensor *offsets,
                                  const opd_tensor *factors, const opd_tensor *map) {
    const char *const name = opd_op_name(opd_call_operator(call));
    const bool flat = indices->ndim == 1;
    if ((!flat && indices->ndim != 2) || (indices->dtype != OPD_INT32 && indices->dtype != OPD_INT64)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: indices must be int32 or int64, with 1 or 2 dims", name);
    }
    if (flat != (offsets != NULL) || (offsets && (offsets->ndim != 1 || (offsets->dtype != OPD_INT32 &&
                                                                         offsets->dtype != OPD_INT64)))) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: with indices of 1 dim, offsets must be an int32 or int64 vector; with "
                        "2 dims, offsets must be NULL", name);
    }
    if (factors && (factors->dtype != OPD_FLOAT32 || factors->numel != indices->numel)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: per_sample_weights must be float32, with an element for each of the "
                        "%lld indices", name, (long long)indices->numel);
    }
    if (map && (map->dtype != OPD_INT32 || map->ndim != 1)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: compressed_indices_mapping must be an int32 vector", name);
    }
    return 0;
}
static int opdi_rowwise_sum_kernel(opd_call *call) {
    opd_tensor *const weight = opd_arg_tensor(call, 0), *const indices = opd_arg_tensor(call, 1);
    opd_tensor *const offsets = opd_arg_tensor(call, 2), *factors = opd_arg_tensor(call, 6);
    opd_tensor *map = opd_arg_bool(call, 5) ? opd_arg_tensor(call, 7) : NULL;
    opdi_rowwise_bags bags;
    memset(&bags, 0, sizeof bags);
    bags.count = opdi_rowwise_check(call, weight, true);
    if (bags.count < 0 || opdi_rowwise_arguments(call, indices, offsets, factors, map)) { return -1; }
    const int64_t total = indices->numel, rows = opdi_sizes(weight)[0], last = opd_arg_bool(call, 8);
    int64_t sizes[2];
    sizes[0] = offsets ? OPDI_MAX(offsets->numel - last, (int64_t)0) : opdi_sizes(indices)[0];
    sizes[1] = bags.count;
    opd_tensor *const out = opd_result(call, 0, sizes, 2, OPD_FLOAT32);
    if (!out || !opd_data(out)) { return out ? 0 : -1; }
    const opd_tensor *const codes = opdi_dense_as(weight, OPD_UINT8), *const at = opdi_dense_as(indices, OPD_INT64);
    factors = factors ? opdi_dense_as(factors, OPD_FLOAT32) : NULL;
    map = map ? opdi_dense_as(map, OPD_INT32) : NULL;
    int64_t *const begin = (int64_t *)opdi_scope_alloc((size_t)(sizes[0] + 1) * sizeof *begin);
    if (!codes || !at || !begin || !opd_ok()) { return -1; }
    const int32_t *const mapped = map ? (const int32_t *)(const void *)map->data : NULL;
    /* a map of one 0 says that no row was left out */
    bags.map = map && (map->numel > 1 || (map->numel && mapped[0])) ? mapped : NULL;
    bags.weight = (const uint8_t *)codes->data;
    bags.indices = (const int64_t *)(const void *)at->data;
    bags.factors = factors ? (const float *)(const void *)factors->data : NULL;
    bags.begin = begin;
    bags.bytes = opdi_sizes(weight)[1];
    bags.bits = opdi_rowwise_bits(call);
    bags.out = (float *)(void *)out->data;
    if (opdi_rowwise_begin(call, offsets, sizes[0], offsets ? 0 : opdi_sizes(indices)[1], total, begin) ||
        opdi_rowwise_indices(call, &bags, total, bags.map ? map->numel : rows, rows)) { return -1; }
    opdi_parallel_for(sizes[0], OPDI_MAX((int64_t)1, 16384 / (bags.count * (1 + total / (sizes[0] + 1)) + 1)),
                      opdi_rowwise_bags_range, &bags);
    return 0;
}

//== registration ======================================================================================================

static void opdi_rowwise_card(opd_op_desc *op, const char *schema, opd_kernel kernel) {
    op->schema = schema;
    op->cpu = op->fake = kernel;
    op->any = opd_cpu_fallback;
    op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP;
}
#define OPDI_ROWWISE_NARROW "bool optimized_qparams=False, int nbins=200, float ratio=0.16) -> Tensor"
#define OPDI_ROWWISE_SUM "_rowwise_offsets(Tensor weight, Tensor indices, Tensor? offsets=None, bool " \
    "scale_grad_by_freq=False, int mode=0, bool pruned_weights=False, Tensor? per_sample_weights=None, Tensor? " \
    "compressed_indices_mapping=None, bool include_last_offset=False) -> Tensor"
OPDI_INTERNAL void opdi_rowwise_pack8(opd_op_desc *op) {
    opdi_rowwise_card(op, "embedding_bag_byte_prepack(Tensor weight) -> Tensor", opdi_rowwise_pack_kernel);
}
OPDI_INTERNAL void opdi_rowwise_pack4(opd_op_desc *op) {
    opdi_rowwise_card(op, "embedding_bag_4bit_prepack(Tensor weight, " OPDI_ROWWISE_NARROW, opdi_rowwise_pack_kernel);
}
OPDI_INTERNAL void opdi_rowwise_pack2(opd_op_desc *op) {
    opdi_rowwise_card(op, "embedding_bag_2bit_prepack(Tensor weight, " OPDI_ROWWISE_NARROW, opdi_rowwise_pack_kernel);
}
OPDI_INTERNAL void opdi_rowwise_limited8(opd_op_desc *op) {
    opdi_rowwise_card(op, "embedding_bag_byte_prepack_with_rowwise_min_max(Tensor weight, Tensor rowwise_min_max) -> "
                      "Tensor", opdi_rowwise_pack_limited_kernel);
}
OPDI_INTERNAL void opdi_rowwise_limited4(opd_op_desc *op) {
    opdi_rowwise_card(op, "embedding_bag_4bit_prepack_with_rowwise_min_max(Tensor weight, Tensor rowwise_min_max, "
                      OPDI_ROWWISE_NARROW, opdi_rowwise_pack_limited_kernel);
}
OPDI_INTERNAL void opdi_rowwise_limited2(opd_op_desc *op) {
    opdi_rowwise_card(op, "embedding_bag_2bit_prepack_with_rowwise_min_max(Tensor weight, Tensor rowwise_min_max, "
                      OPDI_ROWWISE_NARROW, opdi_rowwise_pack_limited_kernel);
}
OPDI_INTERNAL void opdi_rowwise_unpack8(opd_op_desc *op) {
    opdi_rowwise_card(op, "embedding_bag_byte_unpack(Tensor weight) -> Tensor", opdi_rowwise_unpack_kernel);
}
OPDI_INTERNAL void opdi_rowwise_unpack4(opd_op_desc *op) {
    opdi_rowwise_card(op, "embedding_bag_4bit_unpack(Tensor weight) -> Tensor", opdi_rowwise_unpack_kernel);
}
OPDI_INTERNAL void opdi_rowwise_unpack2(opd_op_desc *op) {
    opdi_rowwise_card(op, "embedding_bag_2bit_unpack(Tensor weight) -> Tensor", opdi_rowwise_unpack_kernel);
}
OPDI_INTERNAL void opdi_rowwise_sum8(opd_op_desc *op) {
    opdi_rowwise_card(op, "embedding_bag_byte" OPDI_ROWWISE_SUM, opdi_rowwise_sum_kernel);
}
OPDI_INTERNAL void opdi_rowwise_sum4(opd_op_desc *op) {
    opdi_rowwise_card(op, "embedding_bag_4bit" OPDI_ROWWISE_SUM, opdi_rowwise_sum_kernel);
}
OPDI_INTERNAL void opdi_rowwise_sum2(opd_op_desc *op) {
    opdi_rowwise_card(op, "embedding_bag_2bit" OPDI_ROWWISE_SUM, opdi_rowwise_sum_kernel);
}
