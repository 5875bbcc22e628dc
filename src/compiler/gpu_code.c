#include "compiler.h"

//== graphs as code for a GPU ==========================================================================================
//
//  A graph is recorded and fused as for C code.  Each group of nests then becomes a kernel in the language of CUDA,
//  which is also that of HIP.  A group of one nest that reduces nothing has a thread for each element.  In every other
//  group, a block computes one row after another: the threads of the block share the loops inside of the row, and
//  buffers for one row are in shared memory.

/* OPDI_GPU_THREADS: threads of a block that computes elements.  OPDI_GPU_SHARED: the most bytes of shared memory that
   a kernel declares.  OPDI_GPU_LONGEST: the longest loop that the threads of a block share, if there are too few rows
   to keep a GPU busy.  OPDI_GPU_ROWS: this number of rows is enough.  OPDI_GPU_NEAR: a buffer with at most this number
   of elements is near to all threads, in a cache, so that the order of reads does not matter. */
enum {
    OPDI_GPU_THREADS = 256, OPDI_GPU_SHARED = 48 << 10, OPDI_GPU_LONGEST = 1 << 15, OPDI_GPU_ROWS = 64,
    OPDI_GPU_NEAR = 1 << 16
};

static const char opdi_gpu_prelude[] =
    "#if defined(__CUDACC_RTC__)\n"
    "typedef signed char int8_t;\ntypedef unsigned char uint8_t;\ntypedef short int16_t;\n"
    "typedef unsigned short uint16_t;\ntypedef int int32_t;\ntypedef unsigned int uint32_t;\n"
    "typedef long long int64_t;\ntypedef unsigned long long uint64_t;\n"
    "#define INT8_MIN (-128)\n#define INT8_MAX 127\n#define INT16_MIN (-32768)\n#define INT16_MAX 32767\n"
    "#define INT32_MIN (-2147483647 - 1)\n#define INT32_MAX 2147483647\n"
    "#define INT64_MIN (-9223372036854775807LL - 1)\n#define INT64_MAX 9223372036854775807LL\n"
    "#define INFINITY __int_as_float(0x7f800000)\n#define NAN __int_as_float(0x7fc00000)\n"
    "#else\n#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n#endif\n"
    "#define RESTRICT __restrict__\n"
    "struct sum_of { template <typename T> static __device__ T two(T x, T y) { return x + y; } };\n"
    "struct product_of { template <typename T> static __device__ T two(T x, T y) { return x * y; } };\n"
    "struct most_of { template <typename T> static __device__ T two(T x, T y) "
    "{ return y > x || y != y ? y : x; } };\n"
    "struct least_of { template <typename T> static __device__ T two(T x, T y) "
    "{ return y < x || y != y ? y : x; } };\n"
    "/* Combines the values of all threads of a block; each thread gets the result. */\n"
    "template <class F, typename T> static __device__ T of_block(T x, void *memory /* 256 bytes */) {\n"
    "    T *const parts = (T *)memory;\n"
    "    const int warps = (int)blockDim.x / 32;\n"
    "    for (int lane = 16; lane > 0; lane /= 2) { x = F::two(x, (T)__shfl_xor_sync(0xffffffffu, x, lane)); }\n"
    "    if (warps == 1) { return x; }\n"
    "    __syncthreads();\n"
    "    if (threadIdx.x % 32 == 0) { parts[threadIdx.x / 32] = x; }\n"
    "    __syncthreads();\n"
    "    x = parts[0];\n"
    "    for (int i = 1; i < warps; i++) { x = F::two(x, parts[i]); }\n"
    "    return x;\n"
    "}\n";

/* What is written of one graph. */
typedef struct opdi_gpu_writer {
    opdi_unit unit;
    opdi_cfile file;
    opdi_string text, groups;
    opd_gpu_code *code;                           /* what is returned; its memory is `memory` */
    opdi_arena memory;
} opdi_gpu_writer;
/* A code together with the memory of all that it points to. */
typedef struct opdi_gpu_owned { opd_gpu_code code; opdi_arena memory; opdi_string text; } opdi_gpu_owned;

static int opdi_gpu_refuse(const opdi_nest *nest, const char *why) {
    return opd_fail(OPD_ERROR_NO_KERNEL, "opd_graph_gpu_code: %s %s", nest->what ? nest->what : "copy", why);
}
/* Returns the product of the sizes of loops [from, to) of a nest. */
static int64_t opdi_gpu_rounds(const opdi_nest *nest, int from, int to) {
    int64_t count = 1;
    for (int i = from; i < to; i++) { count *= nest->sizes[i]; }
    return count;
}
/* What the accesses of a nest have.  wide: an offset may not fit into 32 bits; constant: memory of the host is read;
   across: neighbouring threads read elements that are far apart, although a loop over adjacent elements exists. */
typedef struct opdi_gpu_range { const opdi_nest *nest; bool wide, constant, across; } opdi_gpu_range;
static void opdi_gpu_seen(opdi_access *access, void *user) {
    opdi_gpu_range *const range = (opdi_gpu_range *)user;
    const opdi_nest *const nest = range->nest;
    int64_t low, high;
    opdi_access_range(access, nest, 0, nest->ndim, &low, &high);
    range->wide = range->wide || low < 0 || high > INT32_MAX;
    range->constant = range->constant || access->buffer->role == OPDI_BUFFER_CONSTANT;
    for (int i = 0; i + 1 < nest->ndim && high - low > OPDI_GPU_NEAR; i++) {
        range->across = range->across || (access->strides[nest->ndim - 1] > 1 && nest->sizes[nest->ndim - 1] > 1 &&
                                          access->strides[i] == 1 && nest->sizes[i] >= 8);
    }
}
static bool opdi_gpu_indexed(const opdi_expr *expr) {
    if (!expr) { return false; }
    if (expr->kind == OPDI_EXPR_LOAD && expr->nin) { return true; }
    for (int i = 0; i < expr->nin; i++) { if (opdi_gpu_indexed(expr->in[i])) { return true; } }
    return false;
}
/* Returns whether an expression divides integers by numbers that may be 0, which C code reports. */
static bool opdi_gpu_divides(const opdi_expr *expr) {
    if (!expr) { return false; }
    for (int i = 0; i < expr->nin; i++) { if (opdi_gpu_divides(expr->in[i])) { return true; } }
    return opdi_expr_divides(expr);
}
/* Checks that a nest can be written.  Sets *wide if an offset may not fit into 32 bits.  Returns 0, or -1 and sets an
   error. */
static int opdi_gpu_check(const opdi_nest *nest, bool *wide) {
    opdi_gpu_range range = {nest, false, false, false};
    const opdi_over how = nest->reduction;
    if (nest->called || nest->inner || nest->place || nest->follows || nest->open || nest->conv ||
        opdi_nest_stays(nest)) { return opdi_gpu_refuse(nest, "cannot be written as a kernel"); }
    if (how != OPDI_REDUCTION_NONE && how != OPDI_REDUCTION_SUM && how != OPDI_REDUCTION_PROD &&
        how != OPDI_REDUCTION_MAX && how != OPDI_REDUCTION_MIN) {
        return opdi_gpu_refuse(nest, "reduces in a way that cannot be written as a kernel");
    }
    if (opdi_gpu_indexed(nest->value) || opdi_gpu_indexed(nest->finish)) {
        return opdi_gpu_refuse(nest, "reads elements at indices that are computed");
    }
    if (opdi_gpu_divides(nest->value) || opdi_gpu_divides(nest->finish)) {
        return opdi_gpu_refuse(nest, "divides integers");
    }
    opdi_nest_walk((opdi_nest *)(uintptr_t)nest, opdi_gpu_seen, &range);
    opdi_gpu_seen((opdi_access *)(uintptr_t)&nest->out, &range);
    if (range.constant) { return opdi_gpu_refuse(nest, "reads a constant in the memory of the host"); }
    if (range.across) { return opdi_gpu_refuse(nest, "reads columns"); }
    if (nest->out.buffer->role != OPDI_BUFFER_TEMPORARY) { return opdi_gpu_refuse(nest, "writes an input"); }
    *wide = *wide || range.wide || opdi_gpu_rounds(nest, 0, nest->ndim) > INT32_MAX / 2;
    return 0;
}
/* Writes lines that compute the indices of loops [from, to) from the number `at` of their common iteration. */
static void opdi_gpu_write_indices(opdi_cfile *file, const opdi_nest *nest, int from, int to, const char *type,
                                   const char *at) {
    int64_t below = 1;
    for (int i = to - 1; i >= from; i--) {
        char divided[48] = "", rest[48] = "";
        if (below > 1) { (void)snprintf(divided, sizeof divided, " / %lld", (long long)below); }
        if (i > from) { (void)snprintf(rest, sizeof rest, " %% %lld", (long long)nest->sizes[i]); }
        opdi_c_write_line(file, "const %s i%d = %s%s%s;", type, i, at, divided, rest);
        below *= nest->sizes[i];
    }
}
/* Writes a kernel with a thread for each element.  `type` is the C type of offsets. */
static void opdi_gpu_write_elements(opdi_cfile *file, opdi_nest *nest, const char *type) {
    const long long all = (long long)opdi_gpu_rounds(nest, 0, nest->ndim);
    char value[32];
    opdi_c_write_line(file, "const %s step = (%s)gridDim.x * %d;", type, type, (int)OPDI_GPU_THREADS);
    opdi_c_write_line(file, "#pragma unroll 4");
    opdi_c_write_open(file, "for (%s at = (%s)blockIdx.x * %d + (%s)threadIdx.x; at < %lld; at += step) {", type, type,
                      (int)OPDI_GPU_THREADS, type, all);
    opdi_gpu_write_indices(file, nest, 0, nest->ndim, type, "at");
    opdi_expr_round++;
    opdi_c_write_value(file, nest->value, nest->ndim, value);
    opdi_c_write_store(file, nest, value);
    opdi_c_write_close(file, 1);
}
/* Writes lines that reduce the innermost loops of a nest, with all threads of the block, to the C variable `sum`. */
static void opdi_gpu_write_reduction(opdi_cfile *file, opdi_nest *nest, const char *type, const char *sum) {
    static const char *const functions[] = {"", "sum_of", "product_of", "most_of", "least_of"};
    const int first = nest->ndim - nest->nreduce;
    char value[32];
    opdi_c_write_indent(file);
    opdi_c_write(file, "%s %s = ", opdi_c_value(nest->value->dtype), sum);
    opdi_c_write_first(file, nest, nest->value->dtype);
    opdi_c_write(file, ";\n");
    opdi_c_write_open(file, "for (%s at = (%s)threadIdx.x; at < %lld; at += (%s)blockDim.x) {", type, type,
                      (long long)opdi_gpu_rounds(nest, first, nest->ndim), type);
    opdi_gpu_write_indices(file, nest, first, nest->ndim, type, "at");
    opdi_expr_round++;
    opdi_c_write_value(file, nest->value, nest->ndim, value);
    opdi_c_write_reduce(file, nest, sum, value);
    opdi_c_write_close(file, 1);
    opdi_c_write_line(file, "%s = of_block<%s>(%s, parts);", sum, functions[nest->reduction], sum);
}
/* Writes the part of a kernel that computes one row of a nest with all threads of the block. */
static void opdi_gpu_write_row(opdi_cfile *file, opdi_nest *nest, int outer, const char *type) {
    const int inner = nest->ndim - nest->nreduce;
    const long long results = (long long)opdi_gpu_rounds(nest, outer, inner);
    char value[32], sum[32];
    opdi_c_write_line(file, "/* %s */", nest->what ? nest->what : "copy");
    if (!nest->reduction) {
        opdi_c_write_open(file, "for (%s at = (%s)threadIdx.x; at < %lld; at += (%s)blockDim.x) {", type, type, results,
                          type);
        opdi_gpu_write_indices(file, nest, outer, inner, type, "at");
        opdi_expr_round++;
        opdi_c_write_value(file, nest->value, nest->ndim, value);
        opdi_c_write_store(file, nest, value);
        opdi_c_write_close(file, 1);
        return;
    }
    if (results > 1) {
        opdi_c_write_open(file, "for (%s result = 0; result < %lld; result++) {", type, results);
        opdi_gpu_write_indices(file, nest, outer, inner, type, "result");
    } else { opdi_c_write_open(file, "{"); }
    for (int i = outer; i < inner && results == 1; i++) { opdi_c_write_line(file, "const %s i%d = 0;", type, i); }
    (void)snprintf(sum, sizeof sum, "v%d", (int)++file->next);
    opdi_gpu_write_reduction(file, nest, type, sum);
    (void)snprintf(value, sizeof value, "%s", sum);
    opdi_c_write_open(file, "if (threadIdx.x == 0) {");
    if (nest->finish) {
        file->result = sum;
        opdi_expr_round++;
        opdi_c_write_value(file, nest->finish, nest->ndim, value);
    }
    opdi_c_write_store(file, nest, value);
    opdi_c_write_close(file, 2);
}
/* Returns the number of bytes of the elements of a row buffer of a group, and sets *count to their number. */
static int64_t opdi_gpu_row_bytes(const opdi_group *group, const opdi_buffer *buffer, int64_t *count) {
    int64_t low = 0, high = -1;
    for (int k = 0; k < group->nnests; k++) {
        const opdi_nest *const nest = group->nests[k];
        if (nest->out.buffer == buffer) {
            opdi_access_range(&nest->out, nest, group->outer, nest->ndim - nest->nreduce, &low, &high);
        }
    }
    *count = high - low + 1;
    return *count * (int64_t)opd_dtype_size(buffer->dtype);
}
/* Finds how many blocks and threads compute a group whose rows are `outer` loops.  Returns 0, or -1 and sets an error
   if too few threads would have work. */
static int opdi_gpu_shape(const opdi_group *group, int outer, opd_gpu_call *call) {
    const int64_t rows = opdi_gpu_rounds(group->nests[0], 0, outer);
    int64_t longest = 1, work = 0;
    for (int i = 0; i < group->nnests; i++) {
        const opdi_nest *const nest = group->nests[i];
        const int inner = nest->ndim - nest->nreduce;
        const int64_t results = opdi_gpu_rounds(nest, outer, inner);
        const int64_t loop = nest->reduction ? opdi_gpu_rounds(nest, inner, nest->ndim) : results;
        if (nest->reduction && results > 1 && loop < 64) {
            return opdi_gpu_refuse(nest, "has many short sums in a row");
        }
        longest = OPDI_MAX(longest, loop);
        work += opdi_gpu_rounds(nest, outer, nest->ndim);
    }
    if (rows < OPDI_GPU_ROWS && work > OPDI_GPU_LONGEST) {
        return opdi_gpu_refuse(group->nests[0], "has too few rows to keep a GPU busy");
    }
    call->threads = longest <= 64 ? 32 : longest <= 256 ? 64 : longest <= 1024 ? 128 : longest <= 4096 ? 256 : 512;
    call->blocks = OPDI_MIN(rows, (int64_t)INT32_MAX);
    return 0;
}
/* Writes a kernel in which a block computes row after row of a group.  Returns 0, or -1 and sets an error. */
static int opdi_gpu_write_rows(opdi_cfile *file, opdi_group *group, const opdi_group_buffers *buffers, int outer,
                               const char *type, opd_gpu_call *call) {
    int64_t bytes = 256, count;
    if (opdi_gpu_shape(group, outer, call)) { return -1; }
    opdi_c_write_line(file, "__shared__ double parts[32];");
    opdi_c_write_line(file, "(void)parts;");
    for (int i = 0; i < buffers->count; i++) {
        char name[64];
        if (!buffers->all[i]->group) { continue; }
        bytes += (opdi_gpu_row_bytes(group, buffers->all[i], &count) + 15) / 16 * 16;
        opdi_c_name(buffers->all[i], name);
        opdi_c_write_line(file, "__shared__ %s %s[%lld];", opdi_c_type(buffers->all[i]->dtype), name, (long long)count);
    }
    if (bytes > OPDI_GPU_SHARED) { return opdi_gpu_refuse(group->nests[0], "needs too much shared memory"); }
    opdi_c_write_open(file, "for (%s row = (%s)blockIdx.x; row < %lld; row += (%s)gridDim.x) {", type, type,
                      (long long)opdi_gpu_rounds(group->nests[0], 0, outer), type);
    opdi_gpu_write_indices(file, group->nests[0], 0, outer, type, "row");
    for (int i = 0; i < group->nnests; i++) {
        opdi_gpu_write_row(file, group->nests[i], outer, type);
        opdi_c_write_line(file, "__syncthreads();");
    }
    opdi_c_write_close(file, 1);
    return 0;
}
/* Sets the arguments of a kernel to the buffers that a group uses, except those in shared memory, and writes its
   parameters.  Returns 0, or -1 and sets an error. */
static int opdi_gpu_arguments(opdi_gpu_writer *writer, const opdi_group_buffers *buffers, opd_gpu_call *call) {
    const opdi_unit *const unit = &writer->unit;
    opd_gpu_argument *const all = (opd_gpu_argument *)opdi_arena_alloc(&writer->memory,
                                                                      (size_t)(buffers->count + 1) * sizeof *all);
    if (!all) { return -1; }
    call->arguments = all;
    for (int i = 0; i < buffers->count; i++) {
        const opdi_buffer *const buffer = buffers->all[i];
        char name[64];
        if (buffer->group) { continue; }
        opdi_c_name(buffer, name);
        opdi_c_write(&writer->file, "%s%s%s *RESTRICT %s", call->narguments ? ", " : "", buffers->written[i] ? ""
                     : "const ", opdi_c_type(buffer->dtype), name);
        opd_gpu_argument *const argument = &all[call->narguments++];
        argument->kind = buffer->role == OPDI_BUFFER_INPUT ? OPD_GPU_INPUT : OPD_GPU_MEMORY;
        argument->index = buffer->role == OPDI_BUFFER_INPUT ? (int32_t)buffer->index : 0;
        argument->offset = argument->kind == OPD_GPU_MEMORY
            ? (size_t)(buffer->place + (buffer->fixed ? unit->arena : 0)) : 0;
        for (int k = 0; k < unit->noutputs; k++) {
            if (unit->outputs[k].buffer != buffer) { continue; }
            argument->kind = OPD_GPU_OUTPUT;
            argument->index = k;
            argument->offset = 0;
        }
    }
    return 0;
}
/* Writes the kernel of a group.  Returns 0, or -1 and sets an error. */
static int opdi_gpu_write_group(opdi_gpu_writer *writer, opdi_group *group, opd_gpu_call *call) {
    opdi_cfile *const file = &writer->file;
    opdi_nest *const nest = group->nests[0];
    const bool elements = group->nnests == 1 && !nest->reduction;
    const int outer = group->nnests == 1 ? nest->ndim - nest->nreduce : group->outer;
    opdi_group_buffers buffers;
    bool wide = false;
    char name[64];
    for (int i = 0; i < group->nnests; i++) { if (opdi_gpu_check(group->nests[i], &wide)) { return -1; } }
    const char *const type = wide ? "int64_t" : "int32_t";
    opdi_group_name(group, name);
    call->name = opdi_arena_copy(&writer->memory, name, strlen(name));
    if (!call->name || opdi_group_uses(group, &buffers)) { return -1; }
    file->group = group;
    file->next = 0;
    opdi_c_write(file, "extern \"C\" __global__ void %s(", name);
    if (opdi_gpu_arguments(writer, &buffers, call)) { return -1; }
    opdi_c_write(file, ") {\n");
    file->indent = 1;
    if (elements) {
        const int64_t all = opdi_gpu_rounds(nest, 0, nest->ndim);
        call->threads = OPDI_GPU_THREADS;
        call->blocks = OPDI_MIN((all + 4 * OPDI_GPU_THREADS - 1) / (4 * OPDI_GPU_THREADS), (int64_t)INT32_MAX);
        opdi_gpu_write_elements(file, nest, type);
    } else if (opdi_gpu_write_rows(file, group, &buffers, outer, type, call)) { return -1; }
    opdi_c_write(file, "}\n");
    return 0;
}
/* Adds the text of a helper function, which becomes a function of the device. */
static void opdi_gpu_write_helper(opdi_string *text, const char *helper) {
    const char *const from = "static inline ";
    for (const char *at; (at = strstr(helper, from)) != NULL; helper = at + strlen(from)) {
        opdi_string_add_n(text, helper, (size_t)(at - helper));
        opdi_string_add(text, "static __device__ inline ");
    }
    opdi_string_add(text, helper);
}
/* Describes the tensors that runs have to make, and the results.  Returns 0, or -1 and sets an error. */
static int opdi_gpu_results(opdi_gpu_writer *writer, int nresults) {
    const opdi_unit *const unit = &writer->unit;
    opd_gpu_code *const code = writer->code;
    opd_gpu_tensor *const made = (opd_gpu_tensor *)opdi_arena_alloc(&writer->memory,
                                                                   (size_t)(unit->noutputs + 1) * sizeof *made);
    opd_gpu_result *const results = (opd_gpu_result *)opdi_arena_alloc(&writer->memory,
                                                                      (size_t)(nresults + 1) * sizeof *results);
    opd_tensor **const constants = (opd_tensor **)opdi_arena_alloc(&writer->memory,
                                                                  (size_t)(unit->nconstants + 1) * sizeof *constants);
    if (!made || !results || !constants) { return -1; }
    for (int i = 0; i < unit->noutputs; i++) {
        const opdi_unit_port *const port = &unit->outputs[i];
        made[i].dtype = port->dtype;
        made[i].ndim = port->ndim;
        memcpy(made[i].sizes, port->sizes, sizeof port->sizes);
        memcpy(made[i].strides, port->strides, sizeof port->strides);
    }
    for (int i = 0; i < nresults; i++) {
        const opdi_unit_view *const view = &unit->views[i];
        memset(&results[i], 0, sizeof results[i]);
        results[i].of = unit->from[i];
        if (unit->from[i] == OPDI_FROM_NUMBER) {
            return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_gpu_code: result %d is a number", i);
        }
        if (unit->from[i] != OPDI_FROM_VIEW) { continue; }
        results[i].of = view->of;
        results[i].view = true;
        results[i].offset = view->offset;
        results[i].ndim = view->ndim;
        memcpy(results[i].sizes, view->sizes, sizeof view->sizes);
        memcpy(results[i].strides, view->strides, sizeof view->strides);
    }
    for (int i = 0; i < unit->nconstants; i++) { constants[i] = (opd_tensor *)(uintptr_t)unit->constants[i]; }
    code->made = made;
    code->nmade = unit->noutputs;
    code->results = results;
    code->nresults = nresults;
    code->constants = constants;
    code->nconstants = unit->nconstants;
    code->memory = (size_t)(unit->arena + unit->fixed);
    return 0;
}
/* Writes the kernels of a unit that was recorded and fused.  Returns 0, or -1 and sets an error. */
static int opdi_gpu_write_unit(opdi_gpu_writer *writer, int nresults) {
    opdi_unit *const unit = &writer->unit;
    opd_gpu_call *const calls = (opd_gpu_call *)opdi_arena_alloc(&writer->memory,
                                                                (size_t)(unit->ngroups + 1) * sizeof *calls);
    int count = 0;
    if (!calls) { return -1; }
    memset(calls, 0, (size_t)(unit->ngroups + 1) * sizeof *calls);
    writer->file.out = &writer->groups;
    for (opdi_group *group = unit->groups; group; group = group->next) {
        if (opdi_gpu_write_group(writer, group, &calls[count++])) { return -1; }
    }
    writer->code->calls = calls;
    writer->code->ncalls = count;
    opdi_string_add(&writer->text, opdi_gpu_prelude);
    for (int i = 0; i < OPDI_C_HELPERS; i++) {
        if (writer->file.helpers[i / 64] >> (i % 64) & 1) {
            opdi_gpu_write_helper(&writer->text, opdi_c_helpers[i].text);
        }
    }
    if (writer->groups.length) { opdi_string_add_n(&writer->text, writer->groups.data, writer->groups.length); }
    if (writer->file.failed || writer->text.failed || writer->groups.failed) {
        return opd_ok() ? opd_fail(OPD_ERROR_MEMORY, "opd_graph_gpu_code: the text is too long") : -1;
    }
    return opdi_gpu_results(writer, nresults);
}
/* Checks that all inputs are on one device.  Returns 0, or -1 and sets an error. */
static int opdi_gpu_inputs(const opd_graph *graph, opd_tensor *const *inputs, int ninputs) {
    if (!graph || ninputs != graph->ninputs || ninputs < 1 || !inputs) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_gpu_code: a graph and an example of each of its inputs are "
                        "needed");
    }
    for (int i = 0; i < ninputs; i++) {
        if (!inputs[i]) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_gpu_code: input %d is NULL", i); }
        const opd_device first = opd_tensor_device(inputs[0]), device = opd_tensor_device(inputs[i]);
        if (device.type != first.type || device.index != first.index) {
            return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_gpu_code: inputs 0 and %d are on different devices", i);
        }
    }
    return 0;
}
opd_gpu_code *opd_graph_gpu_code(const opd_graph *graph, opd_tensor *const *inputs, int ninputs) {
    opdi_gpu_writer writer;
    if (!opd_ok() || opdi_gpu_inputs(graph, inputs, ninputs)) { return NULL; }
    opdi_gpu_owned *const owned = (opdi_gpu_owned *)opdi_alloc(sizeof *owned);
    const size_t size = (size_t)ninputs * sizeof(opd_value);
    opd_value *const values = owned ? (opd_value *)opdi_alloc(size) : NULL;
    if (!values) {
        if (owned) { opdi_free(owned, sizeof *owned); }
        return NULL;
    }
    memset(owned, 0, sizeof *owned);
    memset(&writer, 0, sizeof writer);
    writer.code = &owned->code;
    for (int i = 0; i < ninputs; i++) { values[i] = opd_value_tensor(inputs[i]); }
    const opdi_unit_source source = {"opd_graph_gpu_code", graph, NULL, values, ninputs, NULL, false, NULL, NULL};
    int rc = opdi_unit_begin(&writer.unit, source.what, NULL);
    if (rc == 0) {
        const bool was = opd_same_bits_set(false);                        /* the mode does not concern GPUs */
        opdi_unit_job job = opdi_unit_job_begin(&writer.unit);
        writer.unit.here = writer.unit.exact = true;
        writer.unit.device = opd_tensor_device(inputs[0]);
        rc = opdi_unit_record(&writer.unit, &source, values) || opdi_unit_fuse(&writer.unit) ||
            opdi_gpu_write_unit(&writer, graph->noutputs) ? -1 : 0;
        opdi_unit_job_end(&job);
        (void)opd_same_bits_set(was);
    }
    opdi_unit_free(&writer.unit);
    opdi_string_free(&writer.groups);
    opdi_free(values, size);
    owned->memory = writer.memory;
    owned->text = writer.text;
    owned->code.text = owned->text.data;
    if (rc == 0) { return &owned->code; }
    opd_gpu_code_free(&owned->code);
    return NULL;
}
void opd_gpu_code_free(opd_gpu_code *code) {
    if (!code) { return; }
    opdi_gpu_owned *const owned = (opdi_gpu_owned *)(void *)code;         /* code is its first member */
    opdi_string_free(&owned->text);
    opdi_arena_free(&owned->memory);
    opdi_free(owned, sizeof *owned);
}
