/* A plug-in as version 0.4 built it: it knows the functions of the program by their places in the table of 0.4, and calls
   those whose parameters or results are others now.  Its operator old::calls returns the number of wrong results. */
#define OPD_STATIC                    /* only the types of the header are used: no symbol of this version */
#include "opdispatch.h"
#include <string.h>

typedef struct host_0_4 {
    int32_t major, minor;
    int (*fail)(opd_code, const char *, ...);
    void (*warn)(const char *, ...);
    int (*define)(opd_library *, const opd_op_desc *, size_t);
    int (*impl)(opd_library *, const char *, const char *, opd_kernel, void *, opd_destroy);
    int (*fallback)(opd_library *, opd_kernel);
    void (*functions[684])(void);
} host_0_4;
static const host_0_4 *host;
/* The function at a place of the table, with its type in version 0.4. */
#define AT(place, result, types) ((result (*) types)host->functions[place])
typedef int (*transform)(opd_transform_fn, void *, opd_tensor *const *, int, const void *, opd_tensor **);

static opd_tensor *square(opd_tensor *x) {
    opd_value args[2], result;
    args[0] = args[1] = opd_value_tensor(x);
    result = AT(70, opd_value, (opd_op *, const opd_value *, int))(
        AT(57, opd_op *, (const char *))("aten::mul.Tensor"), args, 2);
    return result.tag == OPD_TAG_TENSOR ? result.u.t : NULL;
}
static int squared(void *user, opd_tensor *const *in, int count, opd_tensor **out) {
    (void)user;
    (void)count;
    return (out[0] = square(in[0])) != NULL ? 1 : -1;
}
static int forward(opd_context *context) {
    return AT(256, int, (opd_context *, opd_tensor *))(
        context, square(AT(254, opd_tensor *, (opd_context *, int))(context, 0)));
}
/* Returns 1 unless a call has written `written` outputs, and the first element of the first one is `first`. */
static int wrong(int written, int count, opd_tensor **out, double first) {
    const double got = written == count && out[0] ? AT(132, double, (opd_tensor *))(out[0]) : -1;
    out[0] = NULL;
    return got < first || got > first;
}
/* The transforms, whose outputs had no length.  x is the number 3: its square is 9, with the derivatives 6 and 2. */
static int transforms(opd_tensor *x) {
    static const struct row { int place, count; double first; } rows[] = {
        {403, 1, 6}, {404, 2, 6}, {406, 1, 6}, {407, 1, 6}, {408, 1, 2}};
    opd_tensor *out[4] = {NULL, NULL, NULL, NULL}, *along[4] = {NULL, NULL, NULL, NULL};
    opd_derivative *derivative = NULL;
    int bad = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const int got = ((transform)host->functions[rows[i].place])(squared, NULL, &x, 1, NULL, out);
        bad += wrong(got, rows[i].count, out, rows[i].first);
    }
    bad += wrong(AT(409, int, (opd_transform_fn, void *, opd_tensor *const *, opd_tensor *const *, int, const void *,
                               opd_tensor **, opd_tensor **))(squared, NULL, &x, &x, 1, NULL, out, along), 1, along, 18);
    for (int place = 410; place < 412; place++) {
        bad += wrong(AT(place, int, (opd_transform_fn, void *, opd_tensor *const *, int, const void *, opd_tensor **,
                                     opd_derivative **))(squared, NULL, &x, 1, NULL, out, &derivative), 1, out, 9);
        bad += wrong(AT(412, int, (opd_derivative *, opd_tensor *const *, int, unsigned, opd_tensor **))(
            derivative, &x, 1, 0, out), 1, out, 18);
    }
    return bad + wrong(AT(662, int, (opd_transform_fn, void *, opd_destroy, opd_tensor *const *, int, const void *,
                                     opd_tensor **))(squared, NULL, NULL, &x, 1, NULL, out), 1, out, 9);
}
static int calls(opd_call *call) {
    opd_tensor *x = AT(81, opd_tensor *, (opd_call *, int))(call, 0), *out[4] = {NULL, NULL, NULL, NULL};
    const double factor = AT(83, double, (const opd_call *, int))(call, 1);
    opd_value values[2], given = opd_value_tensor(x);
    opd_autograd_function function;
    opd_op_filter filter;
    opd_op *ops[2] = {NULL, NULL};
    char text[64];
    int bad = transforms(x) + (factor < 0.5 || factor > 0.5);
    memset(&function, 0, sizeof function);
    function.name = "square";
    function.forward = forward;
    const int applied = AT(251, int, (const opd_autograd_function *, opd_value *, int, const opd_value *, int))(
        &function, values, 2, &given, 1);
    out[0] = applied == 1 ? values[0].u.t : NULL;
    bad += wrong(applied, 1, out, 9);
    bad += strcmp(AT(23, const char *, (opd_device, char *, size_t))(opd_device_make(OPD_CUDA, 2), text, sizeof text),
                  "cuda:2") != 0;
    bad += strcmp(AT(39, const char *, (opd_keyset, char *, size_t))(OPD_KEYS_EMPTY, text, sizeof text),
                  "DispatchKeySet()") != 0;
    memset(&filter, 0, sizeof filter);
    filter.ns = "old";
    bad += AT(210, size_t, (const opd_op_filter *, opd_op **, size_t))(&filter, ops, SIZE_MAX) != 1 || !ops[0];
    filter.key = "no such key";
    bad += AT(210, size_t, (const opd_op_filter *, opd_op **, size_t))(&filter, ops, 2) != 0;
    AT(3, void, (void))();
    return AT(97, int, (opd_call *, opd_value))(call, opd_value_int(bad));
}
static void run(opd_library *lib) {
    opd_op_desc op;
    memset(&op, 0, sizeof op);
    op.schema = "calls(Tensor x, float factor) -> int";
    op.composite = calls;
    (void)host->define(lib, &op, sizeof op);
}
static opd_block block = {run, OPD_DEF, "old", NULL, "plugin_0_4.c", 1, NULL, NULL, 1};
static opd_block *blocks = &block;
typedef struct info_0_4 { char magic[12]; int32_t major, minor; const host_0_4 **host; opd_block **blocks; } info_0_4;
extern const info_0_4 opd_plugin_entry;
const info_0_4 opd_plugin_entry = {"opdispatch", 0, 4, &host, &blocks};
