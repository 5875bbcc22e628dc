/* Plays an extension that was built with PyTorch's headers: registers operators with the stable C functions, with
   kernels of each kind.  test_extension.c compiles it as C, or as C++ with kernels that throw.  PLAY selects a
   mistake. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __cplusplus
#include <stdexcept>
#include <string>
extern "C" {
#endif

typedef void (*kernel_fn)(uint64_t *stack, uint64_t nargs, uint64_t nrets);
int32_t aoti_torch_library_init_def(const char *ns, const char *file, uint32_t line, void **out);
int32_t aoti_torch_library_init_fragment(const char *ns, const char *file, uint32_t line, void **out);
int32_t aoti_torch_library_init_impl(const char *ns, const char *key, const char *file, uint32_t line, void **out);
int32_t aoti_torch_library_def(void *library, const char *schema);
int32_t aoti_torch_library_impl(void *library, const char *name, kernel_fn fn);
int32_t torch_library_impl(void *library, const char *name, kernel_fn fn, uint64_t version);
int32_t torch_library_def_with_tags(void *library, const char *schema, const int32_t *tags, int32_t count);
int32_t torch_tag_pointwise(void);
int32_t torch_tag_out_variant(void);
int32_t aoti_torch_delete_library_object(void *library);
int32_t torch_call_dispatcher(const char *name, const char *overload, uint64_t *stack, uint64_t version);
int32_t aoti_torch_call_dispatcher(const char *name, const char *overload, uint64_t *stack);
int32_t torch_new_list_reserve_size(size_t room, void **out);
int32_t torch_list_size(void *list, size_t *out);
int32_t torch_list_get_item(void *list, size_t i, uint64_t *out);
int32_t torch_list_set_item(void *list, size_t i, uint64_t word);
int32_t torch_list_push_back(void *list, uint64_t word);
int32_t torch_delete_list(void *list);
int32_t torch_new_string_handle(const char *data, size_t length, void **out);
int32_t torch_delete_string(void *text);
int32_t torch_string_length(void *text, size_t *out);
int32_t torch_string_c_str(void *text, const char **out);
int32_t torch_new_stable_ivalue(uint64_t **out);
int32_t torch_delete_stable_ivalue(uint64_t *cell);
int32_t torch_get_const_data_ptr(void *tensor, const void **out);
int32_t torch_get_mutable_data_ptr(void *tensor, void **out);
int32_t aoti_torch_get_numel(void *tensor, int64_t *out);
int32_t aoti_torch_get_dtype(void *tensor, int32_t *out);
int32_t aoti_torch_dtype_float32(void);
int32_t aoti_torch_delete_tensor_object(void *tensor);
int32_t aoti_torch_new_tensor_handle(void *tensor, void **out);
int32_t torch_parallel_for(int64_t begin, int64_t end, int64_t grain, void (*body)(int64_t, int64_t, void *),
                           void *user);
int32_t torch_get_num_threads(uint32_t *out);
int32_t torch_parse_device_string(const char *text, uint32_t *type, int32_t *index);
int32_t torch_from_blob(void *data, int64_t ndim, const int64_t *sizes, const int64_t *strides, int64_t offset,
                        int32_t dtype, int32_t device, int32_t index, void **out, int32_t layout,
                        const uint8_t *metadata, int64_t metadata_size, void (*deleter)(void *, void *), void *user);
#if PLAY == 3
int32_t torch_function_of_the_future(void);
int32_t aoti_torch_another_one(void);
#endif

#define POINTER(word) ((void *)(uintptr_t)(word))
#define WORD(pointer) ((uint64_t)(uintptr_t)(pointer))

/* twice(Tensor x, float by) -> Tensor */
struct scaling { const float *from; float *to; double by; };
static void scale_part(int64_t begin, int64_t end, void *user) {
    const struct scaling *self = (const struct scaling *)user;
    for (int64_t i = begin; i < end; i++) { self->to[i] = (float)(self->from[i] * self->by); }
}
static void fail(const char *text) {
#ifdef __cplusplus
    throw std::runtime_error(std::string("extension.c: ") + text);
#else
    (void)text;
    abort();
#endif
}
static void scale(uint64_t *stack, uint64_t nargs, uint64_t nrets) {
    uint64_t call[6] = {0, 0, 0, 0, 0, 0};
    struct scaling self;
    void *x = POINTER(stack[0]), *copy;
    int64_t count;
    int32_t dtype;
    (void)nargs;
    (void)nrets;
    memcpy(&self.by, &stack[1], 8);
    (void)aoti_torch_get_dtype(x, &dtype);
    if (dtype != aoti_torch_dtype_float32()) {
        (void)aoti_torch_delete_tensor_object(x);
        fail("x must be float32");
    }
    (void)aoti_torch_new_tensor_handle(x, &copy);
    call[0] = WORD(copy);
    if (torch_call_dispatcher("aten::empty_like", "", call, (uint64_t)2 << 56)) {
        (void)aoti_torch_delete_tensor_object(x);
        fail("empty_like failed");
    }
    (void)torch_get_const_data_ptr(x, (const void **)&self.from);
    (void)torch_get_mutable_data_ptr(POINTER(call[0]), (void **)&self.to);
    (void)aoti_torch_get_numel(x, &count);
    (void)torch_parallel_for(0, count, 1, scale_part, &self);
    (void)aoti_torch_delete_tensor_object(x);
    stack[0] = call[0];
}
/* fan(Tensor x, int n=2) -> (Tensor[], int, str, float?, int[]) */
static void fan(uint64_t *stack, uint64_t nargs, uint64_t nrets) {
    void *x = POINTER(stack[0]), *list, *text, *numbers, *one;
    const int64_t count = (int64_t)stack[1];
    uint64_t *cell;
    const double half = 0.5;
    (void)nargs;
    (void)nrets;
    (void)torch_new_list_reserve_size((size_t)count, &list);
    (void)torch_new_list_reserve_size(0, &numbers);
    for (int64_t i = 0; i < count; i++) {
        (void)aoti_torch_new_tensor_handle(x, &one);
        (void)torch_list_push_back(list, WORD(one));
        (void)torch_list_push_back(numbers, 0);
        (void)torch_list_set_item(numbers, (size_t)i, (uint64_t)(i * i));
    }
    (void)aoti_torch_delete_tensor_object(x);
    (void)torch_new_string_handle("fan out", 7, &text);
    (void)torch_new_stable_ivalue(&cell);
    memcpy(cell, &half, 8);
    stack[0] = WORD(list);
    stack[1] = (uint64_t)count;
    stack[2] = WORD(text);
    stack[3] = WORD(cell);
    stack[4] = WORD(numbers);
}
/* count(Tensor[] xs, Tensor? y, int[]? sizes, str s, bool flag, ScalarType? dtype, Device device) -> int: what it got,
   as digits */
static void count_args(uint64_t *stack, uint64_t nargs, uint64_t nrets) {
    size_t items, sizes = 9, length;
    uint64_t word;
    uint64_t *cell;
    (void)nargs;
    (void)nrets;
    (void)torch_list_size(POINTER(stack[0]), &items);
    for (size_t i = 0; i < items; i++) {
        (void)torch_list_get_item(POINTER(stack[0]), i, &word);
        (void)aoti_torch_delete_tensor_object(POINTER(word));
    }
    (void)torch_delete_list(POINTER(stack[0]));
    cell = (uint64_t *)POINTER(stack[1]);
    const int with = cell != NULL;
    if (cell) {
        (void)aoti_torch_delete_tensor_object(POINTER(*cell));
        (void)torch_delete_stable_ivalue(cell);
    }
    cell = (uint64_t *)POINTER(stack[2]);
    if (cell) {
        (void)torch_list_size(POINTER(*cell), &sizes);
        (void)torch_delete_list(POINTER(*cell));
        (void)torch_delete_stable_ivalue(cell);
    }
    (void)torch_string_length(POINTER(stack[3]), &length);
    (void)torch_delete_string(POINTER(stack[3]));
    const int flag = (stack[4] & 255) != 0;
    cell = (uint64_t *)POINTER(stack[5]);
    const int64_t dtype = cell ? (int32_t)*cell : 9;
    if (cell) { (void)torch_delete_stable_ivalue(cell); }
    const int64_t device = (int64_t)(stack[6] >> 32);
    stack[0] = (uint64_t)(((((((int64_t)items * 10 + with) * 10 + (int64_t)sizes) * 10 + (int64_t)length) * 10 + flag)
                           * 10 + dtype) * 10 + device);
}
/* add_one_(Tensor(a!) x) -> Tensor(a!) */
static void add_one(uint64_t *stack, uint64_t nargs, uint64_t nrets) {
    void *data;
    int64_t count;
    (void)nargs;
    (void)nrets;
    (void)torch_get_mutable_data_ptr(POINTER(stack[0]), &data);
    (void)aoti_torch_get_numel(POINTER(stack[0]), &count);
    for (int64_t i = 0; i < count; i++) { ((float *)data)[i] += 1; }
}
/* composed(Tensor x) -> Tensor: x * x + x, by operators */
static void composed(uint64_t *stack, uint64_t nargs, uint64_t nrets) {
    uint64_t call[3];
    void *copies[3];
    (void)nargs;
    (void)nrets;
    for (int i = 0; i < 2; i++) { (void)aoti_torch_new_tensor_handle(POINTER(stack[0]), &copies[i]); }
    call[0] = WORD(copies[0]);
    call[1] = WORD(copies[1]);
    if (aoti_torch_call_dispatcher("aten::mul", "Tensor", call)) { fail("mul failed"); }
    copies[2] = POINTER(call[0]);
    call[0] = stack[0];
    call[1] = WORD(copies[2]);
    if (aoti_torch_call_dispatcher("aten::maximum", "", call)) { fail("maximum failed"); }
    stack[0] = call[0];
}
/* wrong(Tensor x) -> Tensor: an operator that fails */
static void wrong(uint64_t *stack, uint64_t nargs, uint64_t nrets) {
    uint64_t call[2];
    void *copy;
    (void)nargs;
    (void)nrets;
    (void)aoti_torch_new_tensor_handle(POINTER(stack[0]), &copy);
    call[0] = stack[0];
    call[1] = WORD(copy);
    if (aoti_torch_call_dispatcher("aten::mm", "", call)) { fail("mm failed"); }
    stack[0] = call[0];
}
#ifdef __cplusplus
struct guarded {
    int *count;
    ~guarded() { ++*count; }
};
static int freed;
/* throws(Tensor x, int what) -> int: a std::exception, a number, or one that it catches itself; how many objects were
   destroyed on the way */
static void throws(uint64_t *stack, uint64_t nargs, uint64_t nrets) {
    const int64_t what = (int64_t)stack[1];
    (void)nargs;
    (void)nrets;
    (void)aoti_torch_delete_tensor_object(POINTER(stack[0]));
    try {
        struct guarded guard = {&freed};
        if (what == 1) { throw std::out_of_range("out of range, says the kernel"); }
        if (what == 2) { throw 42; }
        if (what == 3) { throw std::string("caught"); }
    } catch (const std::string &) {
    }
    stack[0] = (uint64_t)freed;
}
#endif
static int blobs;
static void blob_free(void *data, void *user) {
    (void)user;
    free(data);
    blobs--;
}
/* blob(Tensor x) -> (Tensor, int): memory of its own, and how much of that there is */
static void blob(uint64_t *stack, uint64_t nargs, uint64_t nrets) {
    const int64_t size = 2, stride = 1;
    float *data = (float *)malloc(8);
    void *out;
    (void)nargs;
    (void)nrets;
    data[0] = 3;
    data[1] = 4;
    blobs++;
    (void)aoti_torch_delete_tensor_object(POINTER(stack[0]));
    (void)torch_from_blob(data, 1, &size, &stride, 0, 6, 0, -1, &out, 0, NULL, 0, blob_free, NULL);
    stack[0] = WORD(out);
    stack[1] = (uint64_t)blobs;
}
/* The same at CUDA, which is left out. */
static void elsewhere(uint64_t *stack, uint64_t nargs, uint64_t nrets) {
    (void)stack;
    (void)nargs;
    (void)nrets;
    abort();
}

static void *libraries[4];
__attribute__((constructor)) static void load(void) {
    int32_t tags[2];
    uint32_t threads, type;
    int32_t index;
    tags[0] = torch_tag_pointwise();
    tags[1] = torch_tag_out_variant();
    (void)torch_get_num_threads(&threads);
    (void)torch_parse_device_string("cpu", &type, &index);
    /* kernels come before what they belong to */
    (void)aoti_torch_library_init_impl("play", "CPU", __FILE__, __LINE__, &libraries[0]);
    (void)torch_library_impl(libraries[0], "scale", scale, (uint64_t)2 << 56);
    (void)torch_library_impl(libraries[0], "play::fan", fan, (uint64_t)2 << 56);
    (void)aoti_torch_library_impl(libraries[0], "add_one_", add_one);
    (void)aoti_torch_library_impl(libraries[0], "count", count_args);
    (void)aoti_torch_library_impl(libraries[0], "wrong", wrong);
    (void)aoti_torch_library_impl(libraries[0], "blob", blob);
    (void)aoti_torch_library_init_def("play", __FILE__, __LINE__, &libraries[1]);
    (void)torch_library_def_with_tags(libraries[1], "scale(Tensor x, float by) -> Tensor", tags, 2);
    (void)aoti_torch_library_def(libraries[1], "fan(Tensor x, int n=2) -> (Tensor[], int, str, float?, int[])");
    (void)aoti_torch_library_def(libraries[1], "add_one_(Tensor(a!) x) -> Tensor(a!)");
    (void)aoti_torch_library_def(libraries[1], "count(Tensor[] xs, Tensor? y, int[]? sizes, str s, bool flag, "
                                 "ScalarType? dtype, Device device) -> int");
    (void)aoti_torch_library_def(libraries[1], "composed(Tensor x) -> Tensor");
    (void)aoti_torch_library_def(libraries[1], "wrong(Tensor x) -> Tensor");
    (void)aoti_torch_library_def(libraries[1], "blob(Tensor x) -> (Tensor, int)");
#ifdef __cplusplus
    (void)aoti_torch_library_def(libraries[1], "throws(Tensor x, int what) -> int");
    (void)aoti_torch_library_impl(libraries[0], "throws", throws);
#endif
#if PLAY == 1
    (void)aoti_torch_library_def(libraries[1], "bad(Tensor x -> Tensor");
#elif PLAY == 2
    (void)aoti_torch_library_def(libraries[1], "scale(Tensor x, float by) -> Tensor");
#elif PLAY == 4
    (void)aoti_torch_library_impl(libraries[1], "scalar", scale);
    (void)aoti_torch_library_def(libraries[1], "scalar(Tensor x, Scalar s) -> Tensor");
#elif PLAY == 5
    (void)aoti_torch_library_impl(libraries[1], "dicts", scale);
    (void)aoti_torch_library_def(libraries[1], "dicts(Tensor x, Dict(str, Tensor) d) -> Tensor");
#elif PLAY == 6
    (void)aoti_torch_library_init_impl("play", "NoSuchKey", __FILE__, __LINE__, &libraries[3]);
    (void)aoti_torch_library_impl(libraries[3], "scale", scale);
#endif
    (void)aoti_torch_library_init_impl("play", "CompositeImplicitAutograd", __FILE__, __LINE__, &libraries[2]);
    (void)aoti_torch_library_impl(libraries[2], "composed", composed);
    (void)aoti_torch_library_init_impl("play", "CUDA", __FILE__, __LINE__, &libraries[3]);
    (void)aoti_torch_library_impl(libraries[3], "scale", elsewhere);
}
__attribute__((destructor)) static void unload(void) {
    for (int i = 0; i < 4; i++) { (void)aoti_torch_delete_library_object(libraries[i]); }
}
#if PLAY == 3
int use(void) { return torch_function_of_the_future() + aoti_torch_another_one(); }
#endif

#ifdef __cplusplus
}
#endif
