/* shim.c: odx_abi.h over the public functions of opdispatch.h, for comparing the operators with PyTorch's.
   cc -O2 -shared -fPIC shim.c -o shim.so -lm -lpthread

   Every call runs in a scope of its own.  Arguments on one storage become views of one tensor over that memory, so that
   aliasing is what it was; results are kept until odx_free.

   Of PyTorch 1.13's recorded answers for the operators that are here 98.6% agree as optest.py counts, 99.1% with replay.py,
   which also shows the new sizes of an argument that was written in place (unsqueeze_ squeeze_ transpose_ t_ as_strided_
   resize_); with expectations made by 2.15 (replay.py --live) 99.6%.  The others, and why:
     native_batch_norm.out         1.13 has no CPU kernel for it and refuses; 2.15 computes
     native_layer_norm             rows of one element: 1.13's variance is not 0 there
     native_group_norm, max_pool3d, adaptive_max_pool3d and fractional_max_pool backward, _softmax_backward_data
                                   strided input: 1.13 reads it as contiguous, and so does 2.15 fractional_max_pool's
     max_unpool2d.out              an out of the right size keeps its strides, which PyTorch makes rows
     upsample_bicubic2d            in bfloat16: one rounding here
     topk sort argsort msort kthvalue mode   which of equal elements comes first: here sort is stable, and so is 2.15's
                                   with stable=True
     clamp clamp.Tensor clamp_min.Tensor clamp_max.Tensor fmin   gradients at a bound or a tie: 0 or halves, as in 2.15
     arange arange.start arange.start_step   fractions in int64: as many as in 2.15, which counts before it truncates
     aminmax                       of a number with keepdim: no dim, as in 2.15
     stft.center istft             1.13 has no align_to_window; pairs of real numbers for complex ones are refused as in
                                   2.15
     binary_cross_entropy.out      1.13 and 2.15 reduce into the tensor that they read
     scatter scatter_add           int32 indices, which 1.13 refuses, are taken as in 2.15
     gather.out nll_loss2d_backward native_group_norm   refused by 1.13, defined here (dtype or strides of out, empty)
     slice_scatter select_scatter diagonal_scatter as_strided_scatter   of strided self: the result has self's strides,
                                   as in 2.15; 1.13 makes rows
     as_strided_scatter            its gradient by self is 0 where src was written; PyTorch's fails gradcheck
     prelu_backward                a zero for an undefined gradient
     _unique2 with sorted=False    any order is right: 1.13's is that of its hash table, here (as in 2.6) it is sorted
     _embedding_bag                1.13 divides by another index's count (scale_grad_by_freq); both refuse strides or
                                   misread them
     _pdist_backward               1.13 and 2.15 refuse strides
     _linalg_det _linalg_slogdet _linalg_solve_ex   the factors: 1.13 and 2.15 factor the transpose of a contiguous matrix
     index.Tensor                  strides of the result for some strided sources
     linalg_matrix_exp in bfloat16 computed in float32 here
     add_ fmod floor_divide sinc gelu in bfloat16   the last bit: one rounding here, several in 1.13
   With 2.15's expectations also:
     _unique2                      2.15 leaves an inverse that was not asked for empty; here, as before, it is there
     _fft_r2c                      strides of the result, which are those of MKL's steps
     unique_consecutive unique_dim   strides of results
   What differ.py finds that is left as it is: mul_.Scalar keeps its number beside halves, as mul_.Tensor and mul do;
   floor division of two tensors of halves is exact before it is rounded; copy keeps the gaps of a strided self in 2.15;
   bernoulli makes rows; addbmm_ grows self to the result's sizes, here it is refused as by baddbmm_; gradients of losses, average pooling and
   embeddings in integers, which truncate, are refused; so are modes, reductions and normalizations that there are none
   of, sizes that 2.15 reads beyond, and layouts; kernels that PyTorch has for some dtypes only have more here (halves in
   distances, integers in pooling and triangles, int64 as a growth tracker); the numbers 1e300 as norms of
   float32 and the constant 1/6 of hardsigmoid in float64 are not rounded to float32 first; strided input that PyTorch
   refuses or misreads (kron, take_along_dim, max pooling backward, embedding_bag) is right.
   What its own samples (OpInfo) show besides: a dtype without a kernel is refused whatever the size, which 2.15 takes
   where there are no elements, or one (softmax, cumsum, kthvalue, mode, searchsorted, factorisations); an out= with
   strides of its own is written as it lies, which 2.15 does not for avg_pool3d, narrow_copy, gelu and native_batch_norm,
   and which ends its tril and triu of four dims; polar's gradient by a negative length has its sign; Bessel
   functions and airy_ai have the digits that float32 holds.

   OPD_ORACLE_DEVICE=cuda runs everything there: each storage is copied to the device and viewed there as it was here,
   device= arguments and factories without tensors name that device, and what was written, results and gradients are
   copied back; one that is elsewhere is an error.  OPD_ORACLE_LOAD=FILE loads a plug-in before the first call.  With
   the CUDA plug-in linked in, emulated (see tests/cuda) or not:
      c++ -std=c++17 -O1 -fPIC -I../cuda -I../.. -x c++ -c ../../opdispatch_cuda.cu -o companion.o
      nvcc -O3 -arch=sm_90 -Xcompiler -fPIC -c ../../opdispatch_cuda.cu -o companion.o
      cc -O2 -shared -fPIC shim.c companion.o -o shim.so -lstdc++ -lm -lpthread -ldl
   and with -L/usr/local/cuda/lib64 -lcudart_static -lcublas -lcublasLt -lrt for nvcc's.  A program that has used a GPU
   cannot use it after fork: run the harness with --no-isolate there, or load the CUDA plug-in instead of linking it.

   What agrees on the CPU agrees on CUDA (optest.py --fails FILE on both, and the lines of one alone), but for
     as_strided_scatter            into places that overlap: which of them is written last
     prod.dim_int                  the gradient by a NaN: the product of the others, as where there is a zero, for
                                   whether there is one is not asked of a GPU */
#define OPDISPATCH_IMPLEMENTATION
#include "../../opdispatch.h"
#include "odx_abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__cplusplus)
extern "C" {
#endif
int odx_has(const char *op);
const char *odx_next(const char *op);
const char *odx_cases(const char *op);
int odx_call(const char *op, const odx_value *args, int nargs, odx_value **outs, int *nouts, char *err, int errlen);
int odx_grad(const char *op, const odx_value *args, int nargs, const int *wrt, int nwrt, const odx_value *cot, int ncot,
             odx_value **grads, int *ngrads, char *err, int errlen);
void odx_free(odx_value *outs, int nouts);
#if defined(__cplusplus)
}
#endif

enum { SHIM_DONE = 0, SHIM_REFUSED = 1, SHIM_UNSUPPORTED = 2 };

//-- one call's memory ------------------------------------------------------------------------------------------------

typedef struct shim_block { struct shim_block *next; int64_t align; } shim_block;

/* A storage of the caller's, and where the call finds its bytes: there, or in a copy on the device. */
typedef struct shim_memory {
    struct shim_memory *next;
    char *storage, *place;
    int64_t bytes;
    opd_tensor *copy;
} shim_memory;

/* The tensor over a whole storage; those of one storage and dtype share it. */
typedef struct shim_base {
    struct shim_base *next;
    void *storage;
    int32_t dtype;
    int device;
    opd_tensor *tensor;
} shim_base;

/* kind: T, i, d, b, D, or V for anything else; host: a tensor that is wanted on the CPU */
typedef struct shim_type { char kind; bool list, host; } shim_type;

typedef struct shim_state {
    shim_block *blocks;
    shim_base *bases;
    shim_memory *memories;
    opd_scope scope;
    opd_op *op;
    const opd_schema *schema;
    shim_type types[OPD_MAX_ARGS];
    opd_value args[OPD_MAX_ARGS], rets[OPD_MAX_ARGS];
    int nargs, nrets;
    const int *wrt;              /* odx_grad: positions of the tensors that want a gradient, */
    int nwrt;
    opd_tensor **leaves;         /* and those tensors */
    int ntensors;                /* tensors seen so far in the arguments */
    opd_device device;           /* the device of the current argument */
    const char *unsupported;     /* why, where it is the shim's doing */
} shim_state;

static char shim_nothing[16];    /* memory of tensors without elements */
static opd_device shim_device;   /* where calls run; the CPU unless the environment says */

/* Zeroed memory until the call ends; NULL with the library's error set. */
static void *shim_alloc(shim_state *s, size_t size) {
    shim_block *b = (shim_block *)calloc(1, sizeof(shim_block) + size);
    if (!b) { (void)opd_fail(OPD_ERROR_MEMORY, "shim: out of memory"); return NULL; }
    b->next = s->blocks;
    s->blocks = b;
    return b + 1;
}
static void shim_begin(shim_state *s) {
    static bool ready;
    memset(s, 0, sizeof *s);
    opd_error_clear();
    if (!ready) {
        const char *device = getenv("OPD_ORACLE_DEVICE"), *file = getenv("OPD_ORACLE_LOAD");
        if (file && *file) { (void)opd_plugin_load(file); }
        if (device && *device) { (void)opd_device_parse(device, &shim_device); }
        ready = opd_ok();
    }
    s->scope = opd_scope_open();
}
/* Ends the call: its answer, with the error's text in err. */
static int shim_end(shim_state *s, char *err, int errlen) {
    int rc = SHIM_DONE;
    const char *text = "";
    if (s->unsupported) { rc = SHIM_UNSUPPORTED; text = s->unsupported; }
    else if (!opd_ok()) {
        opd_code code = opd_error_code();
        rc = code == OPD_ERROR_NO_KERNEL || code == OPD_ERROR_NOT_FOUND ? SHIM_UNSUPPORTED : SHIM_REFUSED;
        text = opd_error_message();
    }
    if (err && errlen > 0) { (void)snprintf(err, (size_t)errlen, "%s", text); }
    opd_error_clear();
    if (opd_device_synchronize(shim_device)) { opd_error_clear(); }      /* what else a kernel found is of this call */
    opd_scope_close(&s->scope);
    while (s->blocks) {
        shim_block *next = s->blocks->next;
        free(s->blocks);
        s->blocks = next;
    }
    return rc;
}

//-- the schema's types, read from its text ----------------------------------------------------------------------------

static shim_type shim_type_of(const char *text, size_t n) {
    static const struct { const char *word; char kind; } words[] = {
        {"Tensor", 'T'}, {"int", 'i'}, {"SymInt", 'i'}, {"float", 'd'}, {"bool", 'b'},
        {"Device", 'D'}
    };
    shim_type t;
    size_t i, length = 0;
    while (length < n && ((text[length] | 32) >= 'a' && (text[length] | 32) <= 'z')) { length++; }
    t.kind = 'V';
    t.list = false;
    t.host = n > 26 && !memcmp(text + n - 26, "tensor_indices_or_sections", 26);
    for (i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strlen(words[i].word) == length && !memcmp(words[i].word, text, length)) { t.kind = words[i].kind; }
    }
    for (i = length; i < n && text[i] != ' '; i++) {
        if (text[i] == '[') { t.list = true; }
        if (text[i] == '(') { while (i < n && text[i] != ')') { i++; } }       /* an annotation may have spaces */
    }
    return t;
}

/* Fills s->types; the number of arguments, or -1. */
static int shim_types(shim_state *s) {
    size_t length = opd_schema_print(s->schema, NULL, 0), i, start;
    char *text = (char *)shim_alloc(s, length + 1), quote = 0;
    int depth = 0, n = 0;
    if (!text) { return -1; }
    (void)opd_schema_print(s->schema, text, length + 1);
    for (i = 0; text[i] && text[i] != '('; i++) {}
    if (text[i]) { i++; }
    for (start = i; text[i]; i++) {
        char c = text[i];
        if (quote) { quote = c == quote ? 0 : quote; continue; }
        if (c == '"' || c == '\'') { quote = c; continue; }
        if (depth == 0 && (c == ',' || c == ')')) {
            while (start < i && text[start] == ' ') { start++; }
            if (start < i && text[start] != '*' && text[start] != '.' && n < OPD_MAX_ARGS) {
                s->types[n++] = shim_type_of(text + start, i - start);
            }
            start = i + 1;
            if (c == ')') { break; }
        } else if (c == '(' || c == '[' || c == '{') { depth++; }
        else if (c == ')' || c == ']' || c == '}') { depth--; }
    }
    return n;
}

//-- arguments ---------------------------------------------------------------------------------------------------------

static opd_tensor *shim_bytes(void *data, int64_t bytes, opd_device device) {
    return opd_tensor_wrap_on(data, opd_ints_of(&bytes, 1), NULL, OPD_UINT8, device, NULL, NULL);
}

/* Where the call finds the byte at p of a tensor's storage; NULL with an error. */
static char *shim_place(shim_state *s, const odx_tensor *t, const void *p) {
    char *storage = (char *)t->storage;
    int64_t bytes = storage ? t->storage_bytes : 0;
    shim_memory *m;
    if (bytes <= 0 || !p) { storage = shim_nothing; bytes = sizeof shim_nothing; p = storage; }
    if (s->device.type == OPD_CPU) { return storage + ((const char *)p - storage); }
    for (m = s->memories; m && m->storage != storage; m = m->next) {}
    if (!m) {
        m = (shim_memory *)shim_alloc(s, sizeof *m);
        if (!m) { return NULL; }
        m->storage = storage;
        m->bytes = bytes;
        m->copy = opd_tensor_new_on(opd_ints_of(&bytes, 1), OPD_UINT8, s->device);
        if (!opd_copy_(m->copy, shim_bytes(storage, bytes, opd_device_make(OPD_CPU, -1)))) { return NULL; }
        m->place = (char *)opd_device_data(m->copy, (opd_backend)s->device.type);
        m->next = s->memories;
        s->memories = m;
    }
    return m->place + ((const char *)p - storage);
}

/* What the call wrote is written into the caller's memory too. */
static void shim_write_back(shim_state *s) {
    shim_memory *m;
    for (m = s->memories; m; m = m->next) {
        (void)opd_copy_(shim_bytes(m->storage, m->bytes, opd_device_make(OPD_CPU, -1)), m->copy);
    }
}

static opd_tensor *shim_base_of(shim_state *s, const odx_tensor *t, int64_t item) {
    shim_base *b;
    int64_t count = t->storage ? t->storage_bytes / item : 0;
    for (b = s->bases; b; b = b->next) {
        if (b->storage == t->storage && b->dtype == t->dtype && b->device == (int)s->device.type) { return b->tensor; }
    }
    b = (shim_base *)shim_alloc(s, sizeof *b);
    if (!b) { return NULL; }
    b->storage = t->storage;
    b->dtype = t->dtype;
    b->device = (int)s->device.type;
    b->tensor = opd_tensor_wrap_on(shim_place(s, t, t->storage), opd_ints_of(&count, 1), NULL,
                                   (opd_scalar_type)t->dtype, s->device, NULL, NULL);
    if (!b->tensor) { return NULL; }
    b->next = s->bases;
    s->bases = b;
    return b->tensor;
}

static opd_tensor *shim_tensor(shim_state *s, const odx_tensor *t) {
    int64_t item = (int64_t)opd_dtype_size((opd_scalar_type)t->dtype), numel = 1, offset = 0;
    int i, position = s->ntensors++;
    opd_tensor *base, *leaf = NULL;
    if (item == 0) { s->unsupported = "shim: unknown dtype"; return NULL; }
    for (i = 0; i < t->ndim; i++) { numel *= t->size[i]; }
    if (numel && t->data) { offset = ((const char *)t->data - (const char *)t->storage) / item; }
    for (i = 0; i < s->nwrt; i++) {                            /* a leaf is a tensor of its own over the memory */
        if (s->wrt[i] != position) { continue; }
        if (!leaf) {
            const int64_t count = t->storage ? t->storage_bytes / item : 0;
            base = opd_tensor_wrap_on(shim_place(s, t, t->storage), opd_ints_of(&count, 1), NULL,
                                      (opd_scalar_type)t->dtype, s->device, NULL, NULL);
            leaf = base ? opd_tensor_view(base, t->size, t->stride, t->ndim, offset) : NULL;
            if (!leaf || !opd_tensor_set_requires_grad(leaf, true)) { return NULL; }
        }
        s->leaves[i] = leaf;
    }
    if (leaf) { return leaf; }
    base = shim_base_of(s, t, item);
    return base ? opd_tensor_view(base, t->size, t->stride, t->ndim, offset) : NULL;
}

static opd_value shim_arg(shim_state *s, const odx_value *v, shim_type type);

static opd_tensor *shim_element(shim_state *s, const odx_value *v) {
    shim_type any = {'V', false, false};
    if (v->tag == ODX_NONE) { return NULL; }
    if (v->tag == ODX_TENSOR) { return shim_tensor(s, v->u.t); }
    return opd_tensor_wrapped_number(shim_arg(s, v, any));
}

/* A list becomes the kind that the schema asks for, where its elements are of that kind. */
static opd_value shim_list(shim_state *s, const odx_value *v, shim_type type) {
    int i, n = v->n, ints = 0, numbers = 0, bools = 0, tensors = 0;
    char kind = type.kind;
    size_t count = (size_t)(n > 0 ? n : 1);
    shim_type element = {'V', false, false};
    for (i = 0; i < n; i++) {
        int tag = v->u.list[i].tag;
        ints += tag == ODX_INT || tag == ODX_BOOL || tag == ODX_DTYPE;
        bools += tag == ODX_BOOL;
        numbers += tag == ODX_INT || tag == ODX_DOUBLE;
        tensors += tag != ODX_STR && tag != ODX_LIST;
    }
    element.kind = type.kind;
    if (kind == 'i' && ints == n) {
        int64_t *p = (int64_t *)shim_alloc(s, count * sizeof *p);
        for (i = 0; p && i < n; i++) { p[i] = v->u.list[i].u.i; }
        return opd_value_ints(p, p ? n : 0);
    }
    if (kind == 'd' && numbers == n) {
        double *p = (double *)shim_alloc(s, count * sizeof *p);
        for (i = 0; p && i < n; i++) {
            p[i] = v->u.list[i].tag == ODX_DOUBLE ? v->u.list[i].u.d : (double)v->u.list[i].u.i;
        }
        return opd_value_doubles(p, p ? n : 0);
    }
    if (kind == 'b' && bools == n) {
        bool *p = (bool *)shim_alloc(s, count * sizeof *p);
        for (i = 0; p && i < n; i++) { p[i] = v->u.list[i].u.i != 0; }
        return opd_value_bools(p, p ? n : 0);
    }
    if (kind == 'T' && tensors == n) {
        opd_tensor **p = (opd_tensor **)shim_alloc(s, count * sizeof *p);
        for (i = 0; p && i < n; i++) { p[i] = shim_element(s, &v->u.list[i]); }
        return opd_value_tensors(p, p ? n : 0);
    }
    {
        opd_value *p = (opd_value *)shim_alloc(s, count * sizeof *p);
        for (i = 0; p && i < n; i++) { p[i] = shim_arg(s, &v->u.list[i], element); }
        return opd_value_list(p, p ? n : 0);
    }
}

static opd_value shim_arg(shim_state *s, const odx_value *v, shim_type type) {
    opd_device device;
    s->device = type.host ? opd_device_make(OPD_CPU, -1) : shim_device;
    switch (v->tag) {
    case ODX_TENSOR: {                                         /* PyTorch's parser takes a 0-dim tensor for a number */
        opd_tensor *t = shim_tensor(s, v->u.t);
        if (t && type.kind == 'i' && !type.list) { return opd_value_int(opd_item_i64(t)); }
        if (t && type.kind == 'd' && !type.list) { return opd_value_double(opd_item_f64(t)); }
        return opd_value_tensor(t);
    }
    case ODX_INT: case ODX_DTYPE: case ODX_LAYOUT: case ODX_MEMFMT: return opd_value_int(v->u.i);
    case ODX_DOUBLE: return opd_value_double(v->u.d);
    case ODX_BOOL: return opd_value_bool(v->u.i != 0);
    case ODX_COMPLEX: return opd_value_complex(v->u.c);
    case ODX_STR: case ODX_DEVICE:                             /* PyTorch's takes a text for a device */
        if (v->tag == ODX_STR && type.kind != 'D') { return opd_value_str(v->u.s); }
        if (shim_device.type != OPD_CPU) { return opd_value_device(shim_device); }
        return opd_device_parse(v->u.s, &device) == 0 ? opd_value_device(device) : opd_value_none();
    case ODX_LIST: return shim_list(s, v, type);
    default: return opd_value_none();                          /* NONE, GENERATOR */
    }
}

/* Finds the operator, converts its arguments, calls it; results are in s->rets. */
static int shim_run(shim_state *s, const char *op, const odx_value *args, int nargs) {
    int i;
    s->op = opd_find(op);
    s->schema = s->op ? opd_op_schema(s->op) : NULL;
    if (!s->schema) { s->unsupported = "shim: no such operator"; return -1; }
    s->nargs = opd_schema_nargs(s->schema);
    s->nrets = opd_schema_nreturns(s->schema);
    if (shim_types(s) != s->nargs || nargs > s->nargs || s->nargs > OPD_MAX_ARGS || s->nrets > OPD_MAX_ARGS) {
        s->unsupported = "shim: the schema has another number of arguments";
        return -1;
    }
    for (i = 0; i < nargs; i++) { s->args[i] = shim_arg(s, &args[i], s->types[i]); }
    for (i = 0; i < nargs && s->ntensors == 0 && shim_device.type != OPD_CPU; i++) {       /* a factory */
        if (s->types[i].kind == 'D') { s->args[i] = opd_value_device(shim_device); }
    }
    for (i = 0; i < s->nrets; i++) { s->rets[i] = opd_value_none(); }
    if (s->unsupported || !opd_ok()) { return -1; }
    return opd_call_all(s->op, s->rets, s->args, nargs);
}

//-- results -----------------------------------------------------------------------------------------------------------

typedef struct shim_box { odx_tensor t; opd_tensor *kept; char *bytes; } shim_box;

/* A result on the device is shown in the argument's memory that it looks at, or as a copy of all its storage. */
static int shim_from_device(const shim_state *s, shim_box *box) {
    char *storage = (char *)box->t.storage;
    const shim_memory *m;
    for (m = s->memories; m; m = m->next) {
        if (storage < m->place || storage >= m->place + m->bytes) { continue; }
        box->t.data = m->storage + ((char *)box->t.data - m->place);
        box->t.storage = m->storage;
        return 0;
    }
    if (!storage) { return 0; }
    box->bytes = (char *)malloc((size_t)box->t.storage_bytes + 1);
    if (!box->bytes) { return opd_fail(OPD_ERROR_MEMORY, "shim: out of memory"); }
    box->t.data = box->bytes + ((char *)box->t.data - storage);
    box->t.storage = box->bytes;
    return opd_copy_(shim_bytes(box->bytes, box->t.storage_bytes, opd_device_make(OPD_CPU, -1)),
                     shim_bytes(storage, box->t.storage_bytes, shim_device)) ? 0 : -1;
}

static int shim_out_tensor(const shim_state *s, opd_tensor *t, odx_value *out) {
    shim_box *box;
    if (t) { t = opd_resolve_neg(opd_resolve_conj(t)); }       /* the ABI knows no tensors that are negated when read */
    if (!t) { return opd_ok() ? 0 : -1; }
    box = (shim_box *)calloc(1, sizeof *box);
    if (!box) { return opd_fail(OPD_ERROR_MEMORY, "shim: out of memory"); }
    box->kept = opd_keep(t);
    box->t.data = shim_device.type == OPD_CPU ? opd_data(t) : opd_device_data(t, (opd_backend)shim_device.type);
    box->t.dtype = (int32_t)opd_dtype(t);
    box->t.ndim = opd_ndim(t);
    box->t.size = opd_sizes(t);
    box->t.stride = opd_strides(t);
    box->t.storage_bytes = opd_tensor_storage_bytes(t);
    if (box->t.data) { box->t.storage = (char *)box->t.data - opd_tensor_offset(t) * (int64_t)opd_dtype_size(opd_dtype(t)); }
    out->tag = ODX_TENSOR;
    out->u.t = &box->t;
    return shim_device.type == OPD_CPU ? 0 : shim_from_device(s, box);
}

static int shim_out(const shim_state *s, opd_value v, odx_value *out);

static opd_value shim_item(opd_value v, int i) {
    switch (v.tag) {
    case OPD_TAG_INTS: return opd_value_int(v.u.ints[i]);
    case OPD_TAG_FLOATS: return opd_value_double(v.u.floats[i]);
    case OPD_TAG_BOOLS: return opd_value_bool(v.u.bools[i]);
    case OPD_TAG_TENSORS: return opd_value_tensor(v.u.tensors[i]);
    default: return v.u.list[i];
    }
}
static bool shim_is_list(opd_value v) {
    return v.tag == OPD_TAG_INTS || v.tag == OPD_TAG_FLOATS || v.tag == OPD_TAG_BOOLS || v.tag == OPD_TAG_TENSORS ||
           v.tag == OPD_TAG_LIST;
}
static int shim_out_list(const shim_state *s, opd_value v, odx_value *out) {
    int i;
    out->u.list = (odx_value *)calloc((size_t)(v.n > 0 ? v.n : 1), sizeof(odx_value));
    if (!out->u.list) { return opd_fail(OPD_ERROR_MEMORY, "shim: out of memory"); }
    out->tag = ODX_LIST;
    out->n = v.n;
    for (i = 0; i < v.n; i++) {
        if (shim_out(s, shim_item(v, i), &out->u.list[i])) { return -1; }
    }
    return 0;
}
static int shim_out_str(const char *text, odx_value *out) {
    size_t size = strlen(text) + 1;
    char *copy = (char *)malloc(size);
    if (!copy) { return opd_fail(OPD_ERROR_MEMORY, "shim: out of memory"); }
    memcpy(copy, text, size);
    out->tag = ODX_STR;
    out->u.s = copy;
    return 0;
}
/* out is zero (NONE) on entry, and safe for odx_free after a failure. */
static int shim_out(const shim_state *s, opd_value v, odx_value *out) {
    char device[64];
    if (shim_is_list(v)) { return shim_out_list(s, v, out); }
    switch (v.tag) {
    case OPD_TAG_TENSOR: return shim_out_tensor(s, v.u.t, out);
    case OPD_TAG_INT: out->tag = ODX_INT; out->u.i = v.u.i; return 0;
    case OPD_TAG_BOOL: out->tag = ODX_BOOL; out->u.i = v.u.i; return 0;
    case OPD_TAG_FLOAT: out->tag = ODX_DOUBLE; out->u.d = v.u.d; return 0;
    case OPD_TAG_COMPLEX: out->tag = ODX_COMPLEX; out->u.c[0] = v.u.c[0]; out->u.c[1] = v.u.c[1]; return 0;
    case OPD_TAG_STR: return shim_out_str(v.u.s, out);
    case OPD_TAG_DEVICE: (void)opd_device_print(v.u.device, device, sizeof device); return shim_out_str(device, out);
    default: return 0;
    }
}

static void shim_free_value(odx_value *v) {
    int i;
    if (v->tag == ODX_LIST) {
        for (i = 0; i < v->n; i++) { shim_free_value(&v->u.list[i]); }
        free(v->u.list);
    } else if (v->tag == ODX_TENSOR) {
        shim_box *box = (shim_box *)(void *)v->u.t;            /* its first member */
        opd_release(box->kept);
        free(box->bytes);
        free(box);
    } else if (v->tag == ODX_STR) {
        char *text;
        memcpy(&text, &v->u.s, sizeof text);
        free(text);
    }
}
void odx_free(odx_value *outs, int nouts) {
    int i;
    for (i = 0; outs && i < nouts; i++) { shim_free_value(&outs[i]); }
    free(outs);
}

/* Hands n values out, or none when one fails. */
static void shim_give(shim_state *s, const opd_value *values, int n, odx_value **outs, int *nouts) {
    int i;
    odx_value *list = (odx_value *)calloc((size_t)(n > 0 ? n : 1), sizeof *list);
    shim_write_back(s);
    if (!list) { (void)opd_fail(OPD_ERROR_MEMORY, "shim: out of memory"); return; }
    for (i = 0; i < n; i++) {
        if (shim_out(s, values[i], &list[i])) { odx_free(list, n); return; }
    }
    *outs = list;
    *nouts = n;
}

//-- the four functions ------------------------------------------------------------------------------------------------

/* Operators with a card that has cases, in the order of definition; NULL begins, and ends. */
const char *odx_next(const char *op) {
    opd_op *h = opd_op_next(op ? opd_find_quiet(op) : NULL);
    while (h && !*odx_cases(opd_op_name(h))) { h = opd_op_next(h); }
    return h ? opd_op_name(h) : NULL;
}
const char *odx_cases(const char *op) {
    opd_op *h = opd_find_quiet(op);
    const opd_op_desc *card = h ? opd_op_card(h) : NULL;
    return card && card->cases ? card->cases : "";
}
int odx_has(const char *op) {
    opd_op *found = opd_find_quiet(op);
    return found && opd_op_schema(found) ? 1 : 0;
}

int odx_call(const char *op, const odx_value *args, int nargs, odx_value **outs, int *nouts, char *err, int errlen) {
    shim_state s;
    *outs = NULL;
    *nouts = 0;
    shim_begin(&s);
    if (shim_run(&s, op, args, nargs) == 0 && opd_ok()) { shim_give(&s, s.rets, s.nrets, outs, nouts); }
    return shim_end(&s, err, errlen);
}

/* The results that have a cotangent and a history, with their cotangents; -1 when one could not be converted. */
static int shim_outputs(shim_state *s, const odx_value *cot, int ncot, opd_tensor **outputs, opd_tensor **cotangents) {
    int i, k, leaf = 0, n = 0;
    s->nwrt = 0;                                               /* cotangents want no gradient */
    s->device = shim_device;
    for (i = 0; i < s->nrets; i++) {
        int count = shim_is_list(s->rets[i]) ? s->rets[i].n : 1;
        for (k = 0; k < count; k++, leaf++) {
            opd_value v = count == 1 && !shim_is_list(s->rets[i]) ? s->rets[i] : shim_item(s->rets[i], k);
            if (leaf >= ncot || cot[leaf].tag != ODX_TENSOR || v.tag != OPD_TAG_TENSOR) { continue; }
            if (!opd_tensor_requires_grad(v.u.t)) { continue; }
            outputs[n] = v.u.t;
            cotangents[n] = shim_tensor(s, cot[leaf].u.t);
            if (!cotangents[n++]) { return -1; }
        }
    }
    return n;
}

static int shim_backward(shim_state *s, int nwrt, const odx_value *cot, int ncot, opd_tensor **grads) {
    opd_backward_options options;
    size_t room = (size_t)(ncot > 0 ? ncot : 1) * sizeof(opd_tensor *);
    opd_tensor **outputs = (opd_tensor **)shim_alloc(s, room), **cotangents = (opd_tensor **)shim_alloc(s, room);
    int i, n;
    if (!outputs || !cotangents) { return -1; }
    for (i = 0; i < nwrt; i++) {
        if (!s->leaves[i]) { s->unsupported = "shim: no tensor at a position that wants a gradient"; return -1; }
    }
    n = shim_outputs(s, cot, ncot, outputs, cotangents);
    if (n <= 0 || nwrt == 0) { return n < 0 ? -1 : 0; }        /* nothing recorded: no gradients */
    memset(&options, 0, sizeof options);
    options.grad_outputs = cotangents;
    options.allow_unused = true;
    return opd_autograd_grad(outputs, n, s->leaves, nwrt, &options, grads);
}

int odx_grad(const char *op, const odx_value *args, int nargs, const int *wrt, int nwrt, const odx_value *cot, int ncot,
             odx_value **grads, int *ngrads, char *err, int errlen) {
    shim_state s;
    size_t room = (size_t)(nwrt > 0 ? nwrt : 1);
    opd_tensor **got;
    opd_value *values;
    int i;
    *grads = NULL;
    *ngrads = 0;
    shim_begin(&s);
    s.leaves = (opd_tensor **)shim_alloc(&s, room * sizeof *s.leaves);
    got = (opd_tensor **)shim_alloc(&s, room * sizeof *got);
    values = (opd_value *)shim_alloc(&s, room * sizeof *values);
    if (!s.leaves || !got || !values) { return shim_end(&s, err, errlen); }
    s.wrt = wrt;
    s.nwrt = nwrt;
    if (shim_run(&s, op, args, nargs) == 0 && opd_ok() && shim_backward(&s, nwrt, cot, ncot, got) == 0 && opd_ok()) {
        for (i = 0; i < nwrt; i++) { values[i] = opd_value_tensor(got[i]); }
        shim_give(&s, values, nwrt, grads, ngrads);
    }
    return shim_end(&s, err, errlen);
}
