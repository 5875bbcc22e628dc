#include "../ops.h"

//== random numbers ====================================================================================================

/* Returns the generator that is an argument of the call, or NULL (the default generator) if there is none. */
OPDI_INTERNAL opd_generator *opdi_generator_of(const opd_call *call) {
    int i = opdi_arg_index(call->op->schema, "generator", 9);
    opd_value value = i < 0 ? opd_value_none() : opd_arg_value(call, i);
    return value.tag == OPD_TAG_OBJECT ? (opd_generator *)value.u.object : NULL;
}
OPDI_INTERNAL uint64_t opdi_random_words(const opd_call *call, int64_t count, uint64_t *key) {
    return opd_generator_take(opdi_generator_of(call), count, key);
}

typedef struct opdi_draw { char *out; opdi_convert store; int64_t size; uint64_t key, at, range, low; } opdi_draw;
/* Draws integers [begin, end) of ctx, an opdi_draw: each is low plus a random number below `range`, made from two
   random words.  A range of 0 stands for 2^64. */
static void opdi_draw_part(void *ctx, int64_t begin, int64_t end) {
    const opdi_draw *draw = (const opdi_draw *)ctx;
    uint32_t results[64];
    int64_t rows, x64[32];
    for (int64_t i = begin; i < end; i += rows) {
        uint64_t at = draw->at + 2 * (uint64_t)i;
        rows = OPDI_MIN((int64_t)(32 - at % 64 / 2), end - i);
        opdi_philox16(draw->key, at / 64 * 16, results);
        for (int64_t k = 0; k < rows; k++) {
            const uint32_t *words = results + at % 64 + 2 * k;
            uint64_t bits = (uint64_t)words[1] << 32 | words[0];
            if (draw->range && draw->range <= UINT32_MAX) {
                bits = ((uint64_t)words[1] * draw->range + ((uint64_t)words[0] * draw->range >> 32)) >> 32;
            }
            else if (draw->range) { bits %= draw->range; }
            x64[k] = (int64_t)(draw->low + bits);
        }
        draw->store(draw->out + i * draw->size, x64, rows);
    }
}
/* Fills the contiguous tensor out with random integers in [low, low + range); a range of 0 stands for 2^64. */
static void opdi_draw_ints(const opd_call *call, opd_tensor *out, int64_t low, uint64_t range) {
    opdi_draw draw;
    draw.out = out->data;
    draw.range = range;
    draw.low = (uint64_t)low;
    draw.store = opdi_store_of(OPDI_I64, out->dtype);
    draw.size = (int64_t)opd_dtype_size((opd_scalar_type)out->dtype);
    draw.at = opdi_random_words(call, 2 * out->numel, &draw.key);
    opdi_parallel_for(out->numel, 16384, opdi_draw_part, &draw);
}
/* Fills out with random numbers that are uniform in [0, 1) or, if `normal`, from the standard normal distribution.  out
   is contiguous and has dtype float32 or float64. */
static void opdi_draw_floats(const opd_call *call, opd_tensor *out, bool normal) {
    const bool wide = out->dtype == OPD_FLOAT64;
    uint64_t key, at = opdi_random_words(call, wide ? 2 * out->numel : out->numel, &key);
    opdi_fill_random((normal ? 1 : 0) + (wide ? 2 : 0), out->numel, out->data, key, wide ? at / 2 : at);
}
/* Returns a contiguous tensor of dtype `dtype` in host memory, in which the random numbers for out are made: out itself
   if it is such a tensor, else a new one.  On failure, returns NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_random_staging(opd_tensor *out, opd_scalar_type dtype) {
    if (out->dtype == (int32_t)dtype && (out->flags & OPDI_CONTIGUOUS) && !opdi_on_device(out)) { return out; }
    return opd_tensor_new(opd_ints_of(opdi_sizes(out), out->ndim), dtype);
}
/* Copies `staging` to out, unless both are the same tensor.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_staging_store(opd_tensor *out, const opd_tensor *staging) {
    return staging == out ? 0 : opdi_copy(out, staging);
}
OPDI_INTERNAL opd_scalar_type opdi_float_work(int32_t dtype) {
    return dtype == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32;
}
OPDI_INTERNAL int opdi_random_dtype(const char *name, const opd_tensor *out) {
    if (opd_dtype_is_floating((opd_scalar_type)out->dtype)) { return 0; }
    return opdi_dtype_fail(name, out->dtype);
}

/* Returns true if out is on a device whose backend can make random numbers. */
static bool opdi_draws(const opd_tensor *out) {
    const opdi_backend *backend = opdi_on_device(out) ? opdi_backend_of(out->backend) : NULL;
    return backend && backend->desc.draw && !opd_dtype_is_complex((opd_scalar_type)out->dtype);
}
/* Makes out's backend fill out with the random numbers that *draw describes, and advances the call's generator by the
   words used.  Returns 0, or -1 and sets an error. */
static int opdi_draw_on_device(const opd_call *call, opd_tensor *out, opd_draw *draw) {
    opdi_backend *backend = opdi_backend_of(out->backend);
    opd_tensor *tensor = out;
    const bool two = draw->kind == OPD_DRAW_INTEGERS || out->dtype == OPD_FLOAT64;
    if (!(out->flags & OPDI_CONTIGUOUS)) {
        tensor = opd_tensor_new_on(opd_ints_of(opdi_sizes(out), out->ndim), (opd_scalar_type)out->dtype,
                                   opd_tensor_device(out));
        if (!tensor) { return -1; }
    }
    draw->dtype = (opd_scalar_type)tensor->dtype;
    draw->data = tensor->data;
    draw->numel = tensor->numel;
    draw->generator = opdi_generator_of(call);
    draw->words = two ? 2 * tensor->numel : tensor->numel;
    draw->at = opd_generator_take(draw->generator, draw->words, &draw->key);
    if (opdi_backend_rc(backend->desc.draw(backend->desc.user, tensor->storage->index, draw), tensor->backend,
                        "draw")) {
        return -1;
    }
    return tensor == out ? 0 : opdi_copy(out, tensor);
}

typedef struct opdi_shape {
    void *p;
    bool wide, shapes;                            /* shapes: true if drawn numbers are transformed */
    int kind;
    double a, b, bits;                            /* a, b: see opdi_draw_into; bits: if above 0, uniform numbers are
                                                     rounded down to multiples of (b - a) / bits */
    char *to;                                     /* where `store` writes the numbers; NULL: they stay in p */
    opdi_convert store;
    int64_t size;
} opdi_shape;
#define OPDI_SHAPE_LOOP(T, formula) \
    for (i = begin; i < end; i++) { const T x = ((T *)shape->p)[i]; ((T *)shape->p)[i] = (T)(formula); }
/* Replaces each number x by log(1 - x). */
static void opdi_shape_logs(const opdi_shape *shape, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += OPDI_VSTEP) {
        const int64_t count = OPDI_MIN(end - i, OPDI_VSTEP);
        if (shape->wide) {
            double x[OPDI_VSTEP], *const p = (double *)shape->p + i;
            for (int64_t k = 0; k < OPDI_VSTEP; k++) { x[k] = k < count ? 1 - p[k] : 1; }
            opdi_vlog64_same(OPDI_VSTEP, x, x);
            memcpy(p, x, (size_t)count * sizeof *p);
        } else {
            float x[OPDI_VSTEP], *const p = (float *)shape->p + i;
            for (int64_t k = 0; k < OPDI_VSTEP; k++) { x[k] = k < count ? 1 - p[k] : 1; }
            opdi_vlog_same(OPDI_VSTEP, x, x);
            memcpy(p, x, (size_t)count * sizeof *p);
        }
    }
}
#define OPDI_SHAPE_TYPED(type) \
    const type a = (type)shape->a, b = (type)shape->b, width = (type)(shape->b - shape->a), bits = (type)shape->bits; \
    int64_t i; \
    if (shape->kind == OPD_DRAW_UNIFORM && shape->bits > 0) { \
        OPDI_SHAPE_LOOP(type, (type)(int32_t)(x * bits) / bits * width + a) \
    } else if (shape->kind == OPD_DRAW_UNIFORM) { OPDI_SHAPE_LOOP(type, x * width + a) } \
    else if (shape->kind == OPD_DRAW_NORMAL) { OPDI_SHAPE_LOOP(type, x * b + a) } \
    else if (shape->kind == OPD_DRAW_EXPONENTIAL) { OPDI_SHAPE_LOOP(type, (0 - x) / a) } \
    else { OPDI_SHAPE_LOOP(type, x < a ? 1 : 0) }
static void opdi_shape_doubles(const opdi_shape *shape, int64_t begin, int64_t end) { OPDI_SHAPE_TYPED(double) }
static void opdi_shape_floats(const opdi_shape *shape, int64_t begin, int64_t end) { OPDI_SHAPE_TYPED(float) }
static void opdi_shape_part(void *ctx, int64_t begin, int64_t end) {
    const opdi_shape *shape = (const opdi_shape *)ctx;
    if (shape->kind == OPD_DRAW_EXPONENTIAL) { opdi_shape_logs(shape, begin, end); }
    if (shape->shapes) { (shape->wide ? opdi_shape_doubles : opdi_shape_floats)(shape, begin, end); }
    if (shape->to) { shape->store(shape->to + begin * shape->size, (const float *)shape->p + begin, end - begin); }
}
/* Fills out with random numbers of a distribution `kind`: uniform in [a, b), normal with mean a and deviation b,
   exponential with rate a, or Bernoulli (1 with probability a, else 0).  Uniform numbers for 16-bit floats have only as
   many random bits as the dtype can hold, so that rounding cannot make them b.  Returns 0, or -1 and sets an error. */
static int opdi_draw_into(const opd_call *call, opd_tensor *out, int kind, double a, double b) {
    opd_tensor *tensor;
    opdi_shape shape;
    int64_t count;
    uint64_t key;
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    if (opdi_draws(out)) {
        opd_draw draw;
        memset(&draw, 0, sizeof draw);
        draw.kind = (opd_draw_kind)kind;
        draw.a = a;
        draw.b = b;
        return opdi_draw_on_device(call, out, &draw);
    }
    if (!(tensor = opdi_random_staging(out, (opd_scalar_type)out->dtype))) { return -1; }
    shape.wide = tensor->dtype == OPD_FLOAT64;
    shape.kind = kind;
    shape.a = a;
    shape.b = b;
    shape.bits = out->dtype == OPD_FLOAT16 ? 2048 : out->dtype == OPD_BFLOAT16 ? 256 : 0;
    shape.shapes = kind > OPD_DRAW_NORMAL || !(a <= 0 && a >= 0 && b <= 1 && b >= 1) || shape.bits > 0;
    bool direct = shape.wide || tensor->dtype == OPD_FLOAT32;
    shape.store = opdi_store_of(OPDI_F32, tensor->dtype);
    shape.size = (int64_t)opd_dtype_size((opd_scalar_type)tensor->dtype);
    int64_t block = direct ? tensor->numel : OPDI_MIN(tensor->numel, (int64_t)8192 * opd_threads());
    float *buf = direct ? NULL : (float *)opdi_scope_alloc((size_t)block * sizeof *buf);
    if (!direct && !buf) { return -1; }
    uint64_t at = opdi_random_words(call, shape.wide ? 2 * tensor->numel : tensor->numel, &key);
    for (int64_t i = 0; i < tensor->numel; i += count) {  /* count: all elements, or one block if they are converted */
        count = OPDI_MIN(block, tensor->numel - i);
        shape.p = direct ? (void *)tensor->data : (void *)buf;
        shape.to = direct ? NULL : tensor->data + i * shape.size;
        opdi_fill_random((kind == OPD_DRAW_NORMAL ? 1 : 0) + (shape.wide ? 2 : 0), count, shape.p, key,
                         shape.wide ? at / 2 : at + (uint64_t)i);
        if (shape.shapes || shape.to) { opdi_parallel_for(count, direct ? OPDI_GRAIN : 8192, opdi_shape_part, &shape); }
    }
    return opdi_staging_store(out, tensor);
}
/* Fills out with normal random numbers.  The parts of a complex number are drawn separately, each with half the
   variance.  Returns 0, or -1 and sets an error. */
static int opdi_normal_into(const opd_call *call, opd_tensor *out, double mean, double std) {
    if (!(std >= 0)) { return opd_fail(OPD_ERROR_ARGUMENT, "normal expects std >= 0.0, but found std %g", std); }
    if (out && opdi_is_complex(out)) {
        out = opd_view_as_real(out);
        std *= 0.70710678118654752440;
    }
    return out && opdi_random_dtype("normal_kernel_cpu", out) == 0
        ? opdi_draw_into(call, out, OPD_DRAW_NORMAL, mean, std) : -1;
}
static int opdi_uniform_into(const opd_call *call, opd_tensor *out, double from, double to) {
    double fits[2];
    if (!(from <= to)) {
        return opd_fail(OPD_ERROR_ARGUMENT,
                        "uniform_ expects to return a [from, to) range, but found from=%g > to=%g", from, to);
    }
    if (out && (opdi_element_of(opd_value_double(from), (opd_scalar_type)out->dtype, fits) ||
                opdi_element_of(opd_value_double(to), (opd_scalar_type)out->dtype, fits))) {
        return -1;
    }
    if (!isfinite(to - from)) {
        return opd_fail(OPD_ERROR_ARGUMENT,
                        "uniform_ expects to-from to be finite, but found to=%g and from=%g", to, from);
    }
    if (out && opdi_is_complex(out)) { out = opd_view_as_real(out); }
    return out && opdi_random_dtype("check_uniform_bounds", out) == 0
        ? opdi_draw_into(call, out, OPD_DRAW_UNIFORM, from, to) : -1;
}
static int opdi_bernoulli_into(const opd_call *call, opd_tensor *out, double p) {
    if (!(p >= 0 && p <= 1)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "bernoulli_ expects p to be in [0, 1], but got p=%g", p);
    }
    if (out && opd_dtype_is_complex((opd_scalar_type)out->dtype)) {
        return opdi_dtype_fail("bernoulli_scalar_cpu_", out->dtype);
    }
    return opdi_draw_into(call, out, OPD_DRAW_BERNOULLI, p, 0);
}
/* Fills out with random integers in [low, high).  Fails if out's dtype cannot hold all of them.  Returns 0, or -1 and
   sets an error. */
static int opdi_ints_into(const opd_call *call, opd_tensor *out, int64_t low, int64_t high) {
    opd_tensor *tensor;
    double element[2];
    if (low >= high) {
        return opd_fail(OPD_ERROR_ARGUMENT, "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld",
                        (long long)low, (long long)high);
    }
    if (!out) { return -1; }
    if (opd_dtype_is_complex((opd_scalar_type)out->dtype)) {
        return opdi_dtype_fail("random_update_from_to", out->dtype);
    }
    if (((out->dtype == OPD_UINT8 || opdi_is_bare_unsigned(out->dtype)) && low < 0) ||
        (out->dtype == OPD_BOOL && (low < 0 || high > 2)) ||
        (opd_dtype_is_integral((opd_scalar_type)out->dtype, false) &&
         (opdi_element_of(opd_value_int(low), (opd_scalar_type)out->dtype, element) ||
          opdi_element_of(opd_value_int(high - 1), (opd_scalar_type)out->dtype, element)))) {
        opd_error_clear();
        return opd_fail(OPD_ERROR_ARGUMENT, "from (%lld) or to - 1 (%lld) is out of bounds for %s", (long long)low,
                        (long long)high - 1, opd_dtype_name((opd_scalar_type)out->dtype));
    }
    if (!out->data || out->numel == 0) { return 0; }
    if (opdi_draws(out)) {
        opd_draw draw;
        memset(&draw, 0, sizeof draw);
        draw.kind = OPD_DRAW_INTEGERS;
        draw.low = low;
        draw.range = (uint64_t)high - (uint64_t)low;
        return opdi_draw_on_device(call, out, &draw);
    }
    if (!(tensor = opdi_random_staging(out, (opd_scalar_type)out->dtype))) { return -1; }
    opdi_draw_ints(call, tensor, low, (uint64_t)high - (uint64_t)low);
    return opdi_staging_store(out, tensor);
}

OPDI_COLD_BEGIN
/* Makes the result of an operator such as rand.  Argument number `sizes` holds the sizes, and the last four arguments
   are the options.  `dtype` is used if no dtype is given.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_random_result(opd_call *call, int sizes, opd_scalar_type dtype) {
    opdi_options options;
    if (opdi_options_read(call, call->op->nargs - 4, false, dtype, opdi_usual_device(), &options)) { return NULL; }
    return opdi_result_sized(call, opd_arg_ints(call, sizes), &options);
}
static int opdi_rand_kernel(opd_call *call) {
    return opdi_uniform_into(call, opdi_random_result(call, 0, OPD_FLOAT32), 0, 1);
}
static int opdi_randn_kernel(opd_call *call) {
    return opdi_normal_into(call, opdi_random_result(call, 0, OPD_FLOAT32), 0, 1);
}
static int opdi_randint_kernel(opd_call *call) {
    return opdi_ints_into(call, opdi_random_result(call, 1, OPD_INT64), 0, opd_arg_int(call, 0));
}
static int opdi_randint_low_kernel(opd_call *call) {
    return opdi_ints_into(call, opdi_random_result(call, 2, OPD_INT64), opd_arg_int(call, 0), opd_arg_int(call, 1));
}
static int opdi_normal_float_float_kernel(opd_call *call) {
    return opdi_normal_into(call, opdi_random_result(call, 2, OPD_FLOAT32), opd_arg_double(call, 0),
                            opd_arg_double(call, 1));
}
/* randperm: makes the integers 0 to n - 1 in random order by a Fisher-Yates shuffle. */
static int opdi_randperm_kernel(opd_call *call) {
    int64_t count = opd_arg_int(call, 0);
    double element[2];
    opdi_options options;
    if (count < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "n must be non-negative, got%lld", (long long)count); }
    if (opdi_options_read(call, call->op->nargs - 4, false, OPD_INT64, opdi_usual_device(), &options) ||
        opdi_sequence_dtype(call, options.dtype, 2)) {
        return -1;
    }
    if (opd_dtype_is_integral(options.dtype, false) && opdi_element_of(opd_value_int(count), options.dtype, element)) {
        return -1;
    }
    opd_tensor *out = opdi_result_sized(call, opd_ints_of(&count, 1), &options);
    if (!out || !out->data || count == 0) { return out ? 0 : -1; }
    opd_tensor *staging = opdi_random_staging(out, OPD_INT64);
    opd_tensor *draws = staging ? opd_tensor_new(opd_ints_of(&count, 1), OPD_INT64) : NULL;
    if (!draws) { return -1; }
    int64_t *at = (int64_t *)(void *)staging->data;
    int64_t *rows = (int64_t *)(void *)draws->data;
    opdi_draw_ints(call, draws, 0, 0);
    for (int64_t i = 0; i < count; i++) { at[i] = i; }
    for (int64_t i = 0; i + 1 < count; i++) {
        int64_t j = i + (int64_t)((uint64_t)rows[i] % (uint64_t)(count - i));
        int64_t swapped = at[i];
        at[i] = at[j];
        at[j] = swapped;
    }
    return opdi_staging_store(out, staging);
}
/* opd_rand: uniform random numbers in [0, 1) */
OPDI_OP(rand) {
    op->schema = "rand(int[] size, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_rand_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY;
    op->tags = OPD_OPTAG_CORE | OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "rand.out";
    op->cases = "(2,3)";
}
/* opd_rand_generator: uniform random numbers in [0, 1) from this generator */
OPDI_OP(rand_generator) {
    op->schema = "rand.generator(int[] size, *, Generator? generator, " OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_rand_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "rand.generator_out";
    op->cases = "(2,3), None";
}
/* opd_randn: standard normal random numbers (mean 0, variance 1) */
OPDI_OP(randn) {
    op->schema = "randn(int[] size, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_randn_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY;
    op->tags = OPD_OPTAG_CORE | OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "randn.out";
    op->cases = "(2,3)";
}
/* opd_randn_generator: standard normal random numbers (mean 0, variance 1) from this generator */
OPDI_OP(randn_generator) {
    op->schema = "randn.generator(int[] size, *, Generator? generator, " OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_randn_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "randn.generator_out";
    op->cases = "(2,3), None";
}
/* opd_randint: uniform random integers in [0, high) */
OPDI_OP(randint) {
    op->schema = "randint(int high, int[] size, *, " OPDI_INTS_TEXT ") -> Tensor";
    op->any = opdi_randint_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "randint.out";
    op->cases = "5, (2,3)";
}
/* opd_randint_generator: uniform random integers in [0, high) from this generator */
OPDI_OP(randint_generator) {
    op->schema = "randint.generator(int high, int[] size, *, Generator? generator, " OPDI_INTS_TEXT ") -> Tensor";
    op->any = opdi_randint_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "randint.generator_out";
    op->cases = "5, (2,3), None";
}
/* opd_randint_low: uniform random integers in [low, high) */
OPDI_OP(randint_low) {
    op->schema = "randint.low(int low, int high, int[] size, *, " OPDI_INTS_TEXT ") -> Tensor";
    op->any = opdi_randint_low_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "randint.low_out";
    op->cases = "2, 5, (2,3)";
}
/* opd_randint_low_generator: uniform random integers in [low, high) from this generator */
OPDI_OP(randint_low_generator) {
    op->schema = "randint.low_generator(int low, int high, int[] size, *, Generator? generator, " OPDI_INTS_TEXT
        ") -> Tensor";
    op->any = opdi_randint_low_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "randint.low_generator_out";
    op->cases = "2, 5, (2,3), None";
}
/* opd_randperm: the integers 0 to n - 1 in random order */
OPDI_OP(randperm) {
    op->schema = "randperm(int n, *, " OPDI_INTS_TEXT ") -> Tensor";
    op->any = opdi_randperm_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY;
    op->tags = OPD_OPTAG_CORE | OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "randperm.out";
    op->cases = "5";
}
/* opd_randperm_generator: the integers 0 to n - 1 in random order, from this generator */
OPDI_OP(randperm_generator) {
    op->schema = "randperm.generator(int n, *, Generator? generator, " OPDI_INTS_TEXT ") -> Tensor";
    op->any = opdi_randperm_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "randperm.generator_out";
    op->cases = "5, None";
}
/* opd_normal(mean, std, size): normal random numbers with this mean and standard deviation */
OPDI_OP(normal_float_float) {
    op->schema = "normal.float_float(float mean, float std, int[] size, *, Generator? generator=None, "
        OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_normal_float_float_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY;
    op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED | OPDI_OPTAG_OUT_CASTS;
    op->out = "normal.float_float_out";
    op->cases = "0., 1., (2,3)";
}

static int opdi_rand_like_kernel(opd_call *call) { return opdi_uniform_into(call, opdi_like_result(call, 1), 0, 1); }
static int opdi_randn_like_kernel(opd_call *call) { return opdi_normal_into(call, opdi_like_result(call, 1), 0, 1); }
static int opdi_randint_like_kernel(opd_call *call) {
    return opdi_ints_into(call, opdi_like_result(call, 2), 0, opd_arg_int(call, 1));
}
static int opdi_randint_like_low_kernel(opd_call *call) {
    return opdi_ints_into(call, opdi_like_result(call, 3), opd_arg_int(call, 1), opd_arg_int(call, 2));
}
/* randint_like.Tensor: draws integers in [0, high), where `high` is a tensor with one element.  `options` is the number
   of the first option argument.  Returns 0, or -1 and sets an error. */
static int opdi_randint_like_below(opd_call *call, int options) {
    opd_tensor *high = opd_arg_tensor(call, 1), *out = opdi_like_result(call, options);
    if (high->numel != 1) {
        return opd_fail(OPD_ERROR_SHAPE, "high must be a scalar tensor and on CPU");
    }
    if (!out || !out->data) { return out ? 0 : -1; }
    return opdi_ints_into(call, out, 0, opd_item_i64(high));
}
static int opdi_randint_like_Tensor_kernel(opd_call *call) { return opdi_randint_like_below(call, 2); }
static int opdi_randint_like_Tensor_generator_kernel(opd_call *call) { return opdi_randint_like_below(call, 3); }
/* opd_rand_like: uniform random numbers in [0, 1), with self's sizes */
OPDI_OP(rand_like) {
    op->schema = "rand_like(Tensor self, *, " OPDI_FORMAT_TEXT ") -> Tensor";
    op->any = opdi_rand_like_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "rand_like.out";
    op->cases = "[2,3]";
}
/* opd_randn_like: standard normal random numbers, with self's sizes */
OPDI_OP(randn_like) {
    op->schema = "randn_like(Tensor self, *, " OPDI_FORMAT_TEXT ") -> Tensor";
    op->any = opdi_randn_like_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "randn_like.out";
    op->cases = "[2,3]";
}
/* opd_randint_like: uniform random integers in [0, high), with self's sizes */
OPDI_OP(randint_like) {
    op->schema = "randint_like(Tensor self, int high, *, " OPDI_FORMAT_TEXT ") -> Tensor";
    op->any = opdi_randint_like_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "randint_like.out";
    op->cases = "[2,3], 5";
}
/* opd_randint_like_low: uniform random integers in [low, high), with self's sizes */
OPDI_OP(randint_like_low_dtype) {
    op->schema = "randint_like.low_dtype(Tensor self, int low, int high, *, " OPDI_FORMAT_TEXT ") -> Tensor";
    op->any = opdi_randint_like_low_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "randint_like.low_dtype_out";
    op->cases = "[2,3], 2, 5";
}

static int opdi_rand_like_generator_kernel(opd_call *call) {
    return opdi_uniform_into(call, opdi_like_result(call, 2), 0, 1);
}
static int opdi_randn_like_generator_kernel(opd_call *call) {
    return opdi_normal_into(call, opdi_like_result(call, 2), 0, 1);
}
static int opdi_randint_like_generator_kernel(opd_call *call) {
    return opdi_ints_into(call, opdi_like_result(call, 3), 0, opd_arg_int(call, 1));
}
static int opdi_randint_like_low_generator_kernel(opd_call *call) {
    return opdi_ints_into(call, opdi_like_result(call, 4), opd_arg_int(call, 1), opd_arg_int(call, 2));
}
/* opd_rand_like_generator: rand_like with random numbers from this generator */
OPDI_OP(rand_like_generator) {
    op->schema = "rand_like.generator(Tensor self, *, Generator? generator, " OPDI_FORMAT_TEXT ") -> Tensor";
    op->any = opdi_rand_like_generator_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "rand_like.generator_out";
    op->cases = "[2,3], None";
}
/* opd_randn_like_generator: randn_like with random numbers from this generator */
OPDI_OP(randn_like_generator) {
    op->schema = "randn_like.generator(Tensor self, *, Generator? generator, " OPDI_FORMAT_TEXT ") -> Tensor";
    op->any = opdi_randn_like_generator_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "randn_like.generator_out";
    op->cases = "[2,3], None";
}
/* opd_randint_like_generator: randint_like with random numbers from this generator */
OPDI_OP(randint_like_generator) {
    op->schema = "randint_like.generator(Tensor self, int high, *, Generator? generator, " OPDI_FORMAT_TEXT
        ") -> Tensor";
    op->any = opdi_randint_like_generator_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "randint_like.generator_out";
    op->cases = "[2,3], 5, None";
}
/* opd_randint_like_Tensor: uniform random integers in [0, high), with self's sizes; high is a tensor of one element */
OPDI_OP(randint_like_Tensor) {
    op->schema = "randint_like.Tensor(Tensor self, Tensor high, *, " OPDI_FORMAT_TEXT ") -> Tensor";
    op->any = opdi_randint_like_Tensor_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "randint_like.Tensor_out";
    op->cases = "[2,3], []g";
}
/* opd_randint_like_Tensor_generator: randint_like.Tensor with random numbers from this generator */
OPDI_OP(randint_like_Tensor_generator) {
    op->schema = "randint_like.Tensor_generator(Tensor self, Tensor high, *, Generator? generator, " OPDI_FORMAT_TEXT
        ") -> Tensor";
    op->any = opdi_randint_like_Tensor_generator_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "randint_like.Tensor_generator_out";
    op->cases = "[2,3], []g, None";
}
/* opd_randint_like_low_generator_dtype: randint_like.low_dtype with random numbers from this generator */
OPDI_OP(randint_like_low_generator_dtype) {
    op->schema = "randint_like.low_generator_dtype(Tensor self, int low, int high, *, Generator? generator, "
        OPDI_FORMAT_TEXT ") -> Tensor";
    op->any = opdi_randint_like_low_generator_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "randint_like.low_generator_dtype_out";
    op->cases = "[2,3], 2, 5, None";
}

/* The following kernels serve both in-place operators and operators that make a result with self's sizes. */
static int opdi_normal__kernel(opd_call *call) {
    return opdi_normal_into(call, opdi_written(call), opd_arg_double(call, 1), opd_arg_double(call, 2));
}
static int opdi_uniform__kernel(opd_call *call) {
    return opdi_uniform_into(call, opdi_written(call), opd_arg_double(call, 1), opd_arg_double(call, 2));
}
OPDI_INTERNAL int opdi_exponential__kernel(opd_call *call) {
    double rate = opd_arg_double(call, 1);
    if (!(rate > 0)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "exponential_ expects lambda > 0.0, but found lambda=%g", rate);
    }
    const opd_scalar_type dtype = (opd_scalar_type)opd_arg_tensor(call, 0)->dtype;
    if (!opd_dtype_is_floating(dtype)) {
        return opd_fail(OPD_ERROR_DTYPE, "Exponential distribution is a continuous probability distribution. dtype "
                        "must be a floating point but you specified %s", opd_dtype_name(dtype));
    }
    opd_tensor *out = opdi_exact_out(call, dtype) ? NULL : opdi_written(call);
    return out ? opdi_draw_into(call, out, OPD_DRAW_EXPONENTIAL, rate, 0) : -1;
}
static int opdi_bernoulli_p_kernel(opd_call *call) {
    return opdi_bernoulli_into(call, opdi_written(call), opd_arg_double(call, 1));
}
/* Runs random_, random_.to and random_.from, which differ in their number of arguments: draws integers in [from, to).
   Without `to`, the range ends where the dtype can no longer hold every integer. */
static int opdi_random_from_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const int size = (int)opd_dtype_size((opd_scalar_type)self->dtype);
    int64_t low = call->op->nargs == 4 ? opd_arg_int(call, 1) : 0, high;
    opd_value to = call->op->nargs == 4 ? opd_arg_value(call, 2) : call->op->nargs == 3 ? opd_arg_value(call, 1)
        : opd_value_none();
    if (opd_dtype_is_complex((opd_scalar_type)self->dtype)) { return opdi_dtype_fail("random_", self->dtype); }
    if (to.tag == OPD_TAG_INT) { high = to.u.i; }
    else if (opd_dtype_is_floating((opd_scalar_type)self->dtype)) {
        high = ((int64_t)1 << (self->dtype == OPD_FLOAT64 ? 53 : self->dtype == OPD_FLOAT32 ? 24
                               : self->dtype == OPD_FLOAT16 ? 11 : 8)) + 1;
    } else {
        high = self->dtype == OPD_BOOL ? 2 : self->dtype == OPD_UINT8 ? 256 : size == 8 ? INT64_MAX
            : (int64_t)1 << (8 * size - 1);
    }
    return opdi_ints_into(call, opdi_written(call), low, high);
}
OPDI_COLD_END
/* Fills out with 1 or 0.  Element i of probs, which is broadcast to out's sizes, is the probability that element i
   becomes 1.  Returns 0, or -1 and sets an error. */
static int opdi_bernoulli_tensor_run(opd_call *call, opd_tensor *out, opd_tensor *probs) {
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    if (!opd_dtype_is_floating((opd_scalar_type)probs->dtype)) {
        return opdi_random_dtype("bernoulli_tensor_cpu_p_", probs);
    }
    opd_tensor *chance = opd_tensor_new(opd_ints_of(opdi_sizes(out), out->ndim), OPD_FLOAT64);
    opd_tensor *draws = chance ? opd_tensor_new(opd_ints_of(opdi_sizes(out), out->ndim), OPD_FLOAT64) : NULL;
    if (!draws || opdi_copy(chance, probs)) { return -1; }
    opdi_draw_floats(call, draws, false);
    double *out_row = (double *)(void *)chance->data;
    double *to = (double *)(void *)draws->data;
    for (int64_t i = 0; i < out->numel; i++) {
        if (!(out_row[i] >= 0 && out_row[i] <= 1)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
        }
        to[i] = to[i] < out_row[i] ? 1 : 0;
    }
    return opdi_copy(out, draws);
}
OPDI_COLD_BEGIN
static int opdi_bernoulli_kernel(opd_call *call) {
    opd_tensor *probs = opd_arg_tensor(call, 0);
    opd_tensor *out = opd_result(call, 0, opdi_sizes(probs), probs->ndim, (opd_scalar_type)probs->dtype);
    return opdi_bernoulli_tensor_run(call, out, probs);
}
static int opdi_bernoulli__Tensor_kernel(opd_call *call) {
    opd_tensor *out = opdi_written(call), *probs = opd_arg_tensor(call, 1);
    const bool inplace = (call->op->written_args & 1) != 0;
    if (!out || (inplace && opdi_check_internal_overlap(opd_arg_tensor(call, 0)))) { return -1; }
    if (inplace && probs->numel == out->numel && opdi_check_partial_overlap(out, probs)) { return -1; }
    return opdi_bernoulli_tensor_run(call, out, probs);
}
/* Returns zeros as the gradient of the first two arguments if they are tensors, because random numbers have no
   gradient. */
OPDI_INTERNAL int opdi_zeros_backward(opd_backward_call *bw) {
    for (int i = 0; i < 2; i++) {
        opd_ints sizes = opd_bw_sizes(bw, i);
        if (sizes.n >= 0 && opd_bw_return(bw, i, opd_new_zeros(opd_bw_grad(bw, 0), sizes))) { return -1; }
    }
    return 0;
}
/* opd_normal_(self, mean, std): fills self with normal random numbers of this mean and standard deviation */
OPDI_OP(normal_) {
    op->schema = "normal_(Tensor(a!) self, float mean=0., float std=1." OPDI_GENERATOR_TEXT "(a!)";
    op->any = opdi_normal__kernel; op->backward = opdi_zeros_backward;
    op->vmap = opdi_batch_drawn; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "[2,3]";
}
/* opd_uniform_(self, from, to): fills self with uniform random numbers in [from, to) */
OPDI_OP(uniform_) {
    op->schema = "uniform_(Tensor(a!) self, float from=0., float to=1." OPDI_GENERATOR_TEXT "(a!)";
    op->any = opdi_uniform__kernel; op->backward = opdi_zeros_backward;
    op->vmap = opdi_batch_drawn; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "[2,3]";
}
/* opd_exponential_(self, lambd): fills self with exponential random numbers of rate lambd */
OPDI_OP(exponential_) {
    op->schema = "exponential_(Tensor(a!) self, float lambd=1." OPDI_GENERATOR_TEXT "(a!)";
    op->any = opdi_exponential__kernel; op->backward = opdi_zeros_backward;
    op->vmap = opdi_batch_drawn; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "[2,3]";
}
/* opd_random_: fills self with uniform random integers >= 0 that self's dtype holds exactly */
OPDI_OP(random_) {
    op->schema = "random_(Tensor(a!) self" OPDI_GENERATOR_TEXT "(a!)";
    op->any = opdi_random_from_kernel; op->backward = opdi_zeros_backward;
    op->vmap = opdi_batch_drawn; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "[2,3]";
}
/* opd_random_from_: fills self with uniform random integers in [from, to) */
OPDI_OP(random__from) {
    op->schema = "random_.from(Tensor(a!) self, int from, int? to" OPDI_GENERATOR_TEXT "(a!)";
    op->any = opdi_random_from_kernel; op->backward = opdi_zeros_backward;
    op->vmap = opdi_batch_drawn; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "[2,3], 2, 5";
}
/* opd_random_to_: fills self with uniform random integers in [0, to) */
OPDI_OP(random__to) {
    op->schema = "random_.to(Tensor(a!) self, int to" OPDI_GENERATOR_TEXT "(a!)";
    op->any = opdi_random_from_kernel; op->backward = opdi_zeros_backward;
    op->vmap = opdi_batch_drawn; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "[2,3], 5";
}
/* opd_bernoulli_(self, p): sets each element of self to 1 with probability p, else to 0 */
OPDI_OP(bernoulli__float) {
    op->schema = "bernoulli_.float(Tensor(a!) self, float p=0.5" OPDI_GENERATOR_TEXT "(a!)";
    op->any = opdi_bernoulli_p_kernel; op->backward = opdi_zeros_backward;
    op->vmap = opdi_batch_drawn; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "[2,3], 0.5";
}
/* opd_bernoulli_Tensor_: sets each element of self to 1 with the probability in p, else to 0 */
OPDI_OP(bernoulli__Tensor) {
    op->schema = "bernoulli_.Tensor(Tensor(a!) self, Tensor p" OPDI_GENERATOR_TEXT "(a!)";
    op->any = opdi_bernoulli__Tensor_kernel; op->backward = opdi_zeros_backward;
    op->vmap = opdi_batch_drawn; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "[2,3], [2,3]u";
}
/* opd_bernoulli_Tensor: for each element, 1 with the probability in p, else 0 */
OPDI_OP(bernoulli_Tensor) {
    op->schema = "bernoulli.Tensor(Tensor self, Tensor p" OPDI_GENERATOR_TEXT;
    op->any = opdi_bernoulli__Tensor_kernel; op->backward = opdi_zeros_backward;
    op->vmap = opdi_batch_drawn; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "bernoulli.Tensor_out";
    op->cases = "[2,3], [2,3]u";
}
/* opd_bernoulli: for each element, 1 with the probability in self, else 0 */
OPDI_OP(bernoulli) {
    op->schema = "bernoulli(Tensor self" OPDI_GENERATOR_TEXT;
    op->any = opdi_bernoulli_kernel; op->backward = opdi_zeros_backward;
    op->vmap = opdi_batch_drawn;
    op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED | OPDI_OPTAG_OUT_CASTS | OPDI_OPTAG_OUT_PART;
    op->out = "bernoulli.out";
    op->cases = "[2,3]u";
}
/* opd_bernoulli_p: 1 with probability p, else 0, for each element of self */
OPDI_OP(bernoulli_p) {
    op->schema = "bernoulli.p(Tensor self, float p" OPDI_GENERATOR_TEXT;
    op->any = opdi_bernoulli_p_kernel; op->backward = opdi_zeros_backward;
    op->vmap = opdi_batch_drawn; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "bernoulli.float_out(Tensor self, float p=0.5, *, Generator? generator=None, Tensor(a!) out) -> "
        "Tensor(a!)";
    op->cases = "[2,3], 0.5";
}
/* opd_normal_functional(self, mean, std): normal random numbers of this mean and standard deviation, with self's
   sizes */
OPDI_OP(normal_functional) {
    op->schema = "normal_functional(Tensor self, float mean=0., float std=1." OPDI_GENERATOR_TEXT;
    op->any = opdi_normal__kernel; op->backward = opdi_zeros_backward;
    op->vmap = opdi_batch_drawn; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "normal.out";
    op->cases = "[2,3]";
}

/* opd_uniform: uniform random numbers in [from, to), with self's sizes */
OPDI_OP(uniform) {
    op->schema = "uniform(Tensor self, float from=0., float to=1." OPDI_GENERATOR_TEXT;
    op->any = opdi_uniform__kernel; op->backward = opdi_zeros_backward;
    op->vmap = opdi_batch_drawn; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "uniform.out"; op->cases = "[2,3]; [2,3], -1., 2.";
}
/* opd_random: uniform random integers >= 0 that self's dtype holds exactly, with self's sizes */
OPDI_OP(random) {
    op->schema = "random(Tensor self" OPDI_GENERATOR_TEXT;
    op->any = opdi_random_from_kernel; op->backward = opdi_zeros_backward;
    op->vmap = opdi_batch_drawn; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "random.out"; op->cases = "[2,3]";
}
/* opd_random_from: uniform random integers in [from, to), with self's sizes */
OPDI_OP(random_from) {
    op->schema = "random.from(Tensor self, int from, int? to" OPDI_GENERATOR_TEXT;
    op->any = opdi_random_from_kernel; op->backward = opdi_zeros_backward;
    op->vmap = opdi_batch_drawn; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "random.from_out"; op->cases = "[2,3], 2, 5";
}
/* opd_random_to: uniform random integers in [0, to), with self's sizes */
OPDI_OP(random_to) {
    op->schema = "random.to(Tensor self, int to" OPDI_GENERATOR_TEXT;
    op->any = opdi_random_from_kernel; op->backward = opdi_zeros_backward;
    op->vmap = opdi_batch_drawn; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "random.to_out"; op->cases = "[2,3], 5";
}

/* Returns standard normal random numbers of the dtype `dtype` (float32 or float64) or, if `pairs`, complex numbers
   whose parts have that dtype and half the variance each.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_normal_numbers(const opd_call *call, const int64_t *sizes, int ndim, bool pairs,
                                       opd_scalar_type dtype) {
    int64_t parts[OPD_MAX_DIMS + 1];
    memcpy(parts, sizes, (size_t)ndim * sizeof *sizes);
    parts[ndim] = 2;
    opd_tensor *numbers = opd_tensor_new(opd_ints_of(parts, ndim + pairs), dtype);
    if (!numbers) { return NULL; }
    opdi_draw_floats(call, numbers, true);
    return pairs ? opd_view_as_complex(opd_mul_Scalar(numbers, opd_value_double(0.70710678118654752440))) : numbers;
}
OPDI_INTERNAL opd_tensor *opdi_to_f64(opd_tensor *tensor, const int64_t *sizes, int ndim) {
    opd_tensor *delta = opd_tensor_new(opd_ints_of(sizes, ndim), OPD_FLOAT64);
    return delta && opdi_copy(delta, tensor) == 0 ? delta : NULL;
}
/* normal: returns mean + std * standard normal random numbers, where mean or std or both are tensors. */
static int opdi_normal_tensor_kernel(opd_call *call) {
    opd_value mean = opd_arg_value(call, 0), std = opd_arg_value(call, 1);
    opd_tensor *tensors[2];
    int64_t sizes[OPD_MAX_DIMS];
    int ndim = 0;
    tensors[0] = mean.tag == OPD_TAG_TENSOR ? mean.u.t : NULL;
    tensors[1] = std.tag == OPD_TAG_TENSOR ? std.u.t : NULL;
    if (tensors[1] && opdi_is_complex(tensors[1])) {
        return opd_fail(OPD_ERROR_DTYPE, "normal expects standard deviation to be non-complex");
    }
    const bool pairs = tensors[0] && (tensors[0]->dtype == OPD_COMPLEX64 || tensors[0]->dtype == OPD_COMPLEX128);
    for (int k = 0; k < 2; k++) {
        if (tensors[k] && (opdi_broadcast_into(sizes, &ndim, tensors[k]) ||
                           ((k || !pairs) && opdi_random_dtype("normal_kernel_cpu", tensors[k])))) {
            return -1;
        }
    }
    if (pairs && ndim == OPD_MAX_DIMS) {
        return opdi_dims_fail(ndim + 1);
    }
    if (!tensors[1] && !(std.u.d >= 0)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "normal expects std >= 0.0, but found std %g", std.u.d);
    }
    opd_tensor *out = opd_result(call, 0, sizes, ndim, (opd_scalar_type)(tensors[0] ? tensors[0] : tensors[1])->dtype);
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    opdi_cpu_fallback_note(out);
    if (tensors[0] && !(tensors[0] = opdi_on_host(tensors[0]))) { return -1; }
    if (tensors[1] && !(tensors[1] = opdi_to_f64(tensors[1], sizes, ndim))) { return -1; }
    for (int64_t i = 0; tensors[1] && i < out->numel; i++) {
        if (!(((double *)(void *)tensors[1]->data)[i] >= 0)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "normal expects all elements of std >= 0.0");
        }
    }
    opd_tensor *numbers = opdi_normal_numbers(call, sizes, ndim, pairs, opdi_float_work(opdi_real_dtype(out->dtype)));
    numbers = tensors[1] ? opd_mul(numbers, tensors[1]) : opd_mul_Scalar(numbers, std);
    numbers = tensors[0] ? opd_add(numbers, tensors[0]) : opd_add_Scalar(numbers, mean);
    return numbers ? opdi_copy(out, numbers) : -1;
}
/* opd_normal_Tensor_float(mean, std): normal random numbers with the means in mean and the deviation std */
OPDI_OP(normal_Tensor_float) {
    op->schema = "normal.Tensor_float(Tensor mean, float std=1." OPDI_GENERATOR_TEXT;
    op->any = opdi_normal_tensor_kernel; op->backward = opdi_zeros_backward;
    op->vmap = opdi_batch_drawn;
    op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED | OPDI_OPTAG_OUT_CASTS | OPDI_OPTAG_OUT_PART;
    op->out = "normal.Tensor_float_out";
    op->cases = "[2,3]";
}
/* opd_normal_float_Tensor: normal random numbers with this mean and the deviations in std */
OPDI_OP(normal_float_Tensor) {
    op->schema = "normal.float_Tensor(float mean, Tensor std" OPDI_GENERATOR_TEXT;
    op->any = opdi_normal_tensor_kernel; op->backward = opdi_zeros_backward;
    op->vmap = opdi_batch_drawn;
    op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED | OPDI_OPTAG_OUT_CASTS | OPDI_OPTAG_OUT_PART;
    op->out = "normal.float_Tensor_out";
    op->cases = "0., [2,3]+";
}
/* opd_normal_Tensor_Tensor: normal random numbers with the means in mean and the deviations in std */
OPDI_OP(normal_Tensor_Tensor) {
    op->schema = "normal.Tensor_Tensor(Tensor mean, Tensor std" OPDI_GENERATOR_TEXT;
    op->any = opdi_normal_tensor_kernel; op->backward = opdi_zeros_backward;
    op->vmap = opdi_batch_drawn;
    op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED | OPDI_OPTAG_OUT_CASTS | OPDI_OPTAG_OUT_PART;
    op->out = "normal.Tensor_Tensor_out";
    op->cases = "[2,3], [2,3]+";
}
OPDI_COLD_END
