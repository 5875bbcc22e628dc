/* inside.h: for tests of private functions.  Includes the header, and declares functions of the tests that call
   static functions of the implementation.  Tests can also replace its memory functions and limits (seams.h).

   If OPDISPATCH_IMPLEMENTATION is defined, this header also defines these functions: in test_kernels.c, whose object
   is the implementation with which run.sh links all tests. */
#ifndef OPD_TESTS_INSIDE_H
#define OPD_TESTS_INSIDE_H

#include "seams.h"
#if defined(OPDISPATCH_IMPLEMENTATION) && defined(OPDI_APART)
#include "ops/ops.h"
#define OPDISPATCH_WRAPPERS          /* typed functions are linked */
#else
#include "../opdispatch.h"
#endif

#if defined(OPDISPATCH_IMPLEMENTATION)
size_t inside_most = SIZE_MAX;
bool inside_tight;
int64_t inside_mallocs;
#endif

#if defined(OPDISPATCH_IMPLEMENTATION)
#define INSIDE(type, name, args, answer) type inside_##name args; type inside_##name args { return answer; }
#else
#define INSIDE(type, name, args, answer) type inside_##name args;
#endif

#if defined(__cplusplus)
extern "C" {
#endif

/* keys */
INSIDE(bool, key_is_runtime, (opd_key key), opdi_key_is_runtime(key))
INSIDE(bool, key_is_backend, (opd_key slot), opdi_key_is_backend(slot))
INSIDE(bool, key_in_autograd_other, (opd_key slot), opdi_key_in_autograd_other(slot))
INSIDE(bool, key_covers, (opd_key alias, opd_key slot), opdi_key_covers(alias, slot))
INSIDE(int, key_functionality, (opd_key key), opdi_key_functionality(key))
INSIDE(bool, functionality_is_user, (int functionality), opdi_functionality_is_user(functionality))
INSIDE(opd_key, autograd_key_of, (opd_key slot), opdi_autograd_key_of(slot))
INSIDE(int, slot_of, (opd_keyset set), opdi_slot_of(set))
INSIDE(int, key_expand, (opd_key key, uint8_t *slots), (opdi_key_expand(key, slots), 0))
INSIDE(int, name_user_key, (int functionality, const char *name), (OPDI_PUBLISH(&opdi_user_names[functionality], name), 0))

/* schemas */
INSIDE(opd_schema *, schema_parse, (const char *text, const char *ns, bool variables),
       opdi_schema_parse(text, strlen(text), ns, variables))
INSIDE(opd_schema *, schema_read, (const char *text, const char *ns), opdi_schema_read(text, strlen(text), ns, true))
INSIDE(const char *, schema_ns, (const opd_schema *s), s->ns)
INSIDE(const char *, schema_name, (const opd_schema *s), s->name)
INSIDE(const char *, schema_overload, (const opd_schema *s), s->overload)
INSIDE(int, arg_tag, (const opd_schema *s, int i), s->args[i].tag)
INSIDE(bool, arg_is_keyword_only, (const opd_schema *s, int i), s->args[i].keyword_only)
INSIDE(bool, arg_is_written, (const opd_schema *s, int i), s->args[i].written)
INSIDE(bool, arg_is_optional, (const opd_schema *s, int i), s->args[i].type->kind == OPDI_TYPE_OPTIONAL)
/* Splits a name into namespace, name and overload. */
int inside_name_parse(const char *text, int lengths[3], const char **overload);
/* Returns whether the type of an argument or result is, or may be, a list, tuple, dictionary or object. */
bool inside_holds_others(const opd_schema *s, int place);
#if defined(OPDISPATCH_IMPLEMENTATION)
int inside_name_parse(const char *text, int lengths[3], const char **overload) {
    opdi_name name;
    const int rc = opdi_name_parse(text, strlen(text), &name);
    if (rc == 0) {
        lengths[0] = (int)name.nns; lengths[1] = (int)name.nname; lengths[2] = (int)name.noverload;
        *overload = name.overload;
    }
    return rc;
}
bool inside_holds_others(const opd_schema *s, int place) {
    const opdi_type *t = opdi_place_arg(s, place)->type;
    if (t->kind == OPDI_TYPE_OPTIONAL) { t = t->elems[0]; }
    return t->kind == OPDI_TYPE_LIST || t->kind == OPDI_TYPE_TUPLE || t->kind == OPDI_TYPE_DICT ||
        t->kind == OPDI_TYPE_CLASS;
}
#endif

/* files */
/* Unpacks a deflated stream: writes `length` bytes to out, and sets *crc to their checksum.  Returns NULL, or an
   error message. */
const char *inside_inflate(const unsigned char *in, size_t n, unsigned char *out, size_t length, uint32_t *crc);
INSIDE(bool, is_special, (const char *path), opdi_is_special(path))
INSIDE(int, zip64_from, (uint64_t size), (opdi_zip64_from = size, 0))
/* Sets how many events a profile keeps. */
INSIDE(int, profile_most, (int64_t n), (opdi_profile_most = n, 0))
#if defined(OPDISPATCH_IMPLEMENTATION)
const char *inside_inflate(const unsigned char *in, size_t n, unsigned char *out, size_t length, uint32_t *crc) {
    static opdi_inflate state;
    static opdi_crc table;
    const char *wrong = opdi_inflate_all(&state, in, n, out, length);
    opdi_crc_init(&table);
    if (!wrong) { *crc = opdi_crc_add(&table, 0, out, length); }
    return wrong;
}
#endif

/* copies */
INSIDE(int, move, (void *to, const void *from, size_t bytes), (opdi_move(to, from, bytes), 0))
/* kernels: the instructions for words of small numbers, OPDI_HAS_...; -1: not determined */
INSIDE(int, words, (void), opdi_cpu_words())
INSIDE(int, words_set, (int has), opdi_words_known = has)
/* kernels: the level of instructions; -1: not determined */
INSIDE(int, cpu_level, (void), opdi_cpu_level())
INSIDE(int, cpu_level_set, (int level), opdi_cpu_known = level)
INSIDE(int, cpu_most, (void), opdi_cpu_most)
INSIDE(int, cpu_most_set, (int level), opdi_cpu_most = level)
INSIDE(int, same_level, (void), opdi_cpu_same_level())
/* kernels: whether this build and this processor give the bits of AVX2 in the mode of same bits */
#if defined(OPDI_VECTORS)
INSIDE(bool, same_everywhere, (void), opdi_cpu_same_level() > 0)
#else
INSIDE(bool, same_everywhere, (void), false)
#endif
/* kernels: products with weights in blocks, y = x wT or (back) y = x w */
typedef struct inside_block_job {
    int dtype;
    bool exact, back;
    int64_t m, n, k;
    const void *w;
    int64_t w_stride;
    const float *x;
    int64_t x_stride;
    float *y;
    int64_t y_stride;
} inside_block_job;
int inside_block_product(const inside_block_job *from);
#if defined(OPDISPATCH_IMPLEMENTATION)
int inside_block_product(const inside_block_job *from) {
    opdi_block_job job;
    memset(&job, 0, sizeof job);
    job.dtype = (opd_scalar_type)from->dtype;
    job.exact = from->exact;
    job.m = from->m;
    job.n = from->n;
    job.k = from->k;
    job.w = from->w;
    job.w_stride = from->w_stride;
    job.x = from->x;
    job.x_stride = from->x_stride;
    job.y = from->y;
    job.y_stride = from->y_stride;
    return from->back ? opdi_block_product_back(&job) : opdi_block_product(&job);
}
#endif
/* kernels: numbers in blocks; see block_formats.c */
INSIDE(int, blocks_readable, (opd_scalar_type dtype), opdi_blocks_readable(dtype))
INSIDE(int, blocks_decode, (opd_scalar_type dtype, const void *blocks, float *out, int64_t n),
       opdi_blocks_decode(dtype, blocks, out, n))
INSIDE(int, blocks_encode, (opd_scalar_type dtype, const float *in, void *blocks, int64_t n),
       opdi_blocks_encode(dtype, in, blocks, n))
/* plug-ins: the instruction sets that a function of machine code needs, as bits, and whether it asks the processor; the
   name of the first of these sets, or NULL; and the sets that the processor has from now on (0: what it has) */
#if !defined(OPDISPATCH_IMPLEMENTATION) || defined(OPDI_READS_CODE)
INSIDE(uint32_t, function_sets, (const uint8_t *code, uint64_t length, bool *asks), opdi_function_sets(code, length, asks))
INSIDE(const char *, sets_name, (uint32_t sets), opdi_sets_name(sets))
INSIDE(int, sets_assume, (uint32_t sets), (opdi_sets_assumed = sets, 0))
#else
INSIDE(uint32_t, function_sets, (const uint8_t *code, uint64_t length, bool *asks), ((void)code, (void)length, *asks = false, 0))
INSIDE(const char *, sets_name, (uint32_t sets), ((void)sets, (const char *)NULL))
INSIDE(int, sets_assume, (uint32_t sets), ((void)sets, 0))
#endif
/* errors: the text of the last error, even if it was cleared; operators: whether a built-in operator is registered */
INSIDE(const char *, last_error, (void), opdi_self()->message)
INSIDE(bool, is_registered, (int id), opdi_registry.builtin[id] != NULL)

/* graphs: bytes of the planned memory for the values of the next run; 0: each value is allocated separately */
INSIDE(int64_t, planned_bytes, (const opd_graph *graph), graph->memory ? graph->memory->bytes : 0)
INSIDE(const opd_graph *, program_graph, (const opd_program *program), program->graph)
/* Runs the function of numbers with the name `target` in programs.  Returns 0, or -1 and sets an error. */
int inside_sym_run(const char *target, const opd_value *args, int count, opd_value *ret);
#if defined(OPDISPATCH_IMPLEMENTATION)
int inside_sym_run(const char *target, const opd_value *args, int count, opd_value *ret) {
    opdi_gnode node;
    memset(&node, 0, sizeof node);
    node.function = opdi_sym_find(target);
    node.nin = count;
    node.nout = 1;
    return node.function ? opdi_sym_run(&node, args, ret) : opd_fail(OPD_ERROR_ARGUMENT, "no function %s", target);
}
#endif
/* Returns the largest sum of bytes of the live values after a step of a run, or -1 and sets an error. */
int64_t inside_most_alive(const opd_graph *graph, opd_tensor *const *inputs);
#if defined(OPDISPATCH_IMPLEMENTATION)
static int64_t inside_alive(const opd_graph *graph, const opdi_graph_plan *plan, const opd_value *values) {
    const opdi_storage *seen[256];
    int64_t sum = 0;
    int count = 0;
    for (int32_t k = 0; k < plan->nowned; k++) {
        const opd_value *value = &values[plan->owned[k]];
        const opdi_storage *storage = value->tag == OPD_TAG_TENSOR ? value->u.t->storage : NULL;
        bool other = storage == NULL;
        for (int i = 0; i < graph->ninputs && !other; i++) { other = values[i].u.t->storage == storage; }
        for (int i = 0; i < count && !other; i++) { other = seen[i] == storage; }
        if (!other && count < 256) { seen[count++] = storage; }
        if (!other) { sum += storage->bytes; }
    }
    return sum;
}
int64_t inside_most_alive(const opd_graph *graph, opd_tensor *const *inputs) {
    const opdi_graph_plan *const plan = opdi_graph_plan_of(graph);
    opd_value *const values = plan ? (opd_value *)malloc(((size_t)plan->nslots + 1) * sizeof *values + plan->scratch + 16) : NULL;
    int64_t most = 0;
    if (!values) { return -1; }
    memcpy(values, plan->start, (size_t)plan->nslots * sizeof *values);
    for (int i = 0; i < graph->ninputs; i++) { values[i] = opd_value_tensor(inputs[i]); }
    for (const opdi_gstep *step = plan->steps; step && step != plan->steps + plan->nsteps;) {
        const int32_t *const slots = plan->slots + step->slots;
        opdi_gstep alone = *step;
        alone.ndrop = 0;
        if (step->code == OPDI_STEP_OP) { if (opdi_graph_step(opdi_self(), &alone, slots, values)) { break; } }
        else if (!opdi_graph_other(opdi_self(), plan, &alone, values, (char *)(values + plan->nslots))) { break; }
        const int64_t sum = inside_alive(graph, plan, values);
        most = sum > most ? sum : most;
        for (int32_t i = 0; i < step->ndrop; i++) {
            opdi_graph_value_release(&values[slots[step->nin + step->nout + i]]);
        }
        step++;
    }
    for (int32_t i = 0; i < plan->nowned; i++) { opdi_graph_value_release(&values[plan->owned[i]]); }
    free(values);
    return opd_ok() ? most : -1;
}
#endif

/* compiled graphs: returns how many pairs of pieces of the arena are in use at the same time and overlap, or are
   outside of the arena.  Finds this from the memory that each group of nests accesses, not from the plan.  Returns
   -1 and sets an error if the graph cannot be written as C.  Sets *pieces to the number of pieces. */
int inside_arena_clashes(const opd_graph *graph, const opd_program *program, const opd_value *inputs, int ninputs,
                         bool frozen, int *pieces);
#if defined(OPDISPATCH_IMPLEMENTATION)
enum { INSIDE_PIECES = 4096 };
typedef struct inside_piece { const void *of; int64_t from, to; int first, last; } inside_piece;
typedef struct inside_arena { inside_piece pieces[INSIDE_PIECES]; int count, step; } inside_arena;
static void inside_touch(inside_arena *arena, const void *of, int64_t from, int64_t bytes) {
    int i = 0;
    while (i < arena->count && arena->pieces[i].of != of) { i++; }
    if (i == INSIDE_PIECES || bytes <= 0) { return; }
    if (i == arena->count) {
        arena->pieces[arena->count].of = of;
        arena->pieces[arena->count].from = from;
        arena->pieces[arena->count].to = from + bytes;
        arena->pieces[arena->count++].first = arena->step;
    }
    arena->pieces[i].last = arena->step;
}
static void inside_access(opdi_access *access, void *user) {
    const opdi_buffer *const buffer = access->buffer;
    if (buffer->place >= 0 && !buffer->fixed) {
        inside_touch((inside_arena *)user, buffer, buffer->place, (int64_t)buffer->bytes);
    }
}
static void inside_walk(inside_arena *arena, opdi_group *group) {
    for (int i = 0; i < group->nnests; i++) {
        opdi_nest_walk(group->nests[i], inside_access, arena);
        inside_access(&group->nests[i]->out, arena);
    }
    if (opdi_group_contracts(group)) {
        opdi_contraction all;
        opdi_contraction_of(&all, group->nests[0]);
        if (!all.left_early) {
            inside_touch(arena, &group->left, group->scratch + group->left, opdi_contraction_left(&all));
        }
        if (!all.right_early) {
            inside_touch(arena, &group->right, group->scratch + group->right, opdi_contraction_right(&all));
        }
    }
}
static int inside_clashes(const inside_arena *arena, int64_t bytes) {
    int count = 0;
    for (int i = 0; i < arena->count; i++) {
        const inside_piece *const a = &arena->pieces[i];
        count += a->from < 0 || a->to > bytes || a->from % 64;
        for (int k = 0; k < i; k++) {
            const inside_piece *const b = &arena->pieces[k];
            count += a->first <= b->last && b->first <= a->last && a->from < b->to && b->from < a->to;
        }
    }
    return count;
}
int inside_arena_clashes(const opd_graph *graph, const opd_program *program, const opd_value *inputs, int ninputs,
                         bool frozen, int *pieces) {
    static inside_arena arena;
    static opd_c_options options;
    static opdi_unit unit;
    const opdi_unit_source source = {"a plan", graph, program, inputs, ninputs, options.name, false, NULL, NULL};
    int clashes = -1;
    memset(&arena, 0, sizeof arena);
    if (opdi_unit_begin(&unit, "a plan", NULL)) { return -1; }
    opdi_unit_job job = opdi_unit_job_begin(&unit);
    unit.here = unit.recording.calls = unit.recording.draws = true;
    unit.frozen = frozen;
    if (opdi_unit_record(&unit, &source, inputs) == 0 && opdi_unit_fuse(&unit) == 0) {
        for (int early = 1; early >= 0; early--) {
            for (opdi_group *group = unit.groups; group; group = group->next) {
                arena.step++;
                if (group->early == (early != 0)) { inside_walk(&arena, group); }
            }
        }
        clashes = arena.count == INSIDE_PIECES ? -1 : inside_clashes(&arena, unit.arena);
    }
    opdi_unit_job_end(&job);
    opdi_unit_free(&unit);
    *pieces = arena.count;
    return clashes;
}
#endif

#if defined(__cplusplus)
}
#endif

#endif /* OPD_TESTS_INSIDE_H */
