//----------------------------------------------------------------------------------------------------------------------
//  >>api:host       the function table through which plug-ins call the program
//
//  A plug-in contains no implementation and needs no symbol of the program.  opd_plugin_load looks up its only
//  exported symbol, opd_plugin_entry, checks the version in it, and sets the plug-in's pointer to a table of functions.
//  In a plug-in, the functions of the API are small static functions that call through this table.  The table and some
//  structs, such as opd_op_desc, grow only at their ends, and other structs never change, so that a plug-in of an older
//  minor version can be loaded.
//----------------------------------------------------------------------------------------------------------------------

/* The list of the functions above, without the functions that are written out below.  A function has a row X(result,
   name, number of parameters, (their types)).  A function that returns void has a row V(...) without the result. */
#define OPDI_HOST_FUNCTIONS(X, V) \
#include "host_table.printed.h"

#define OPDI_X0() (void)
#define OPDI_X1(a) (a x0)
#define OPDI_X2(a, b) (a x0, b x1)
#define OPDI_X3(a, b, c) (a x0, b x1, c x2)
#define OPDI_X4(a, b, c, d) (a x0, b x1, c x2, d x3)
#define OPDI_X5(a, b, c, d, e) (a x0, b x1, c x2, d x3, e x4)
#define OPDI_X6(a, b, c, d, e, f) (a x0, b x1, c x2, d x3, e x4, f x5)
#define OPDI_X7(a, b, c, d, e, f, g) (a x0, b x1, c x2, d x3, e x4, f x5, g x6)
#define OPDI_X8(a, b, c, d, e, f, g, h) (a x0, b x1, c x2, d x3, e x4, f x5, g x6, h x7)
#define OPDI_X9(a, b, c, d, e, f, g, h, i) (a x0, b x1, c x2, d x3, e x4, f x5, g x6, h x7, i x8)
#define OPDI_X10(a, b, c, d, e, f, g, h, i, j) (a x0, b x1, c x2, d x3, e x4, f x5, g x6, h x7, i x8, j x9)
#define OPDI_X11(a, b, c, d, e, f, g, h, i, j, k) (a x0, b x1, c x2, d x3, e x4, f x5, g x6, h x7, i x8, j x9, k x10)
#define OPDI_Y0 ()
#define OPDI_Y1 (x0)
#define OPDI_Y2 (x0, x1)
#define OPDI_Y3 (x0, x1, x2)
#define OPDI_Y4 (x0, x1, x2, x3)
#define OPDI_Y5 (x0, x1, x2, x3, x4)
#define OPDI_Y6 (x0, x1, x2, x3, x4, x5)
#define OPDI_Y7 (x0, x1, x2, x3, x4, x5, x6)
#define OPDI_Y8 (x0, x1, x2, x3, x4, x5, x6, x7)
#define OPDI_Y9 (x0, x1, x2, x3, x4, x5, x6, x7, x8)
#define OPDI_Y10 (x0, x1, x2, x3, x4, x5, x6, x7, x8, x9)
#define OPDI_Y11 (x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10)
#define OPDI_HOST_FIELD(R, name, n, types) R (*name) OPDI_X##n types;
#define OPDI_HOST_FIELD_V(name, n, types) void (*name) OPDI_X##n types;
#define OPDI_HOST_STRUCT struct opd_host { \
    int32_t major, minor; \
    int (*opd_fail)(opd_code, const char *, ...); \
    void (*opd_warn)(const char *, ...); \
    int (*define)(opd_library *, const opd_op_desc *, size_t); \
    int (*impl)(opd_library *, const char *, const char *, opd_kernel, void *, opd_destroy); \
    int (*fallback)(opd_library *, opd_kernel); \
    OPDI_HOST_FUNCTIONS(OPDI_HOST_FIELD, OPDI_HOST_FIELD_V) }

#ifdef __cplusplus
extern "C" {
#endif

struct opd_host;
/* The struct that a plug-in exports as opd_plugin_entry. */
typedef struct opd_plugin_info {
    char magic[12];                               /* "opdispatch" */
    int32_t major, minor;                         /* version of the header that the plug-in was built with */
    const struct opd_host **host;                 /* opd_plugin_load stores the table's address here */
    opd_block **blocks;                           /* the list of blocks that the plug-in's constructors have linked */
} opd_plugin_info;
#define OPDI_PLUGIN_MAGIC "opdispatch"

#if defined(OPDISPATCH_PLUGIN)
/* If a plug-in consists of several files, they share one copy of each of these variables. */
#if defined(_WIN32)
#define OPDI_PLUGIN_ONCE __declspec(selectany)
#if defined(__cplusplus)
#define OPDI_PLUGIN_ENTRY extern __declspec(selectany) __declspec(dllexport)       /* without extern, a C++ constant
                                                                                     would be static */
#else
#define OPDI_PLUGIN_ENTRY __declspec(selectany) __declspec(dllexport)
#endif
#else
#define OPDI_PLUGIN_ONCE
#define OPDI_PLUGIN_ENTRY
#define OPDI_PLUGIN_HIDDEN __attribute__((weak, visibility("hidden")))
extern const struct opd_host *opd_plugin_host OPDI_PLUGIN_HIDDEN;
extern opd_block *opd_plugin_blocks OPDI_PLUGIN_HIDDEN;
extern const opd_plugin_info opd_plugin_entry __attribute__((weak, visibility("default")));
#endif
OPDI_HOST_STRUCT;
OPDI_PLUGIN_ONCE const struct opd_host *opd_plugin_host = NULL;
OPDI_PLUGIN_ONCE opd_block *opd_plugin_blocks = NULL;
OPDI_PLUGIN_ENTRY const opd_plugin_info opd_plugin_entry = {
    OPDI_PLUGIN_MAGIC, OPD_VERSION_MAJOR, OPD_VERSION_MINOR, &opd_plugin_host, &opd_plugin_blocks};
#if !defined(_WIN32)
/* Called when a plug-in is unloaded.  Warns if the plug-in was loaded by dlopen alone and not by opd_plugin_load: then
   nothing in the plug-in was registered, and no error was set. */
extern int dprintf(int file, const char *format, ...);
extern void opd_plugin_unused(void) __attribute__((weak, visibility("hidden"), destructor));
void opd_plugin_unused(void) {
    if (!opd_plugin_host && opd_plugin_blocks) {
        (void)dprintf(2, "opdispatch: warning: %s is a plug-in that opd_plugin_load has not loaded: nothing in it was "
                      "registered\n", opd_plugin_blocks->file);
    }
}
#endif

#define OPDI_FORWARD(R, name, n, types) static R name OPDI_X##n types { return opd_plugin_host->name OPDI_Y##n; }
#define OPDI_FORWARD_V(name, n, types) static void name OPDI_X##n types { opd_plugin_host->name OPDI_Y##n; }
OPDI_HOST_FUNCTIONS(OPDI_FORWARD, OPDI_FORWARD_V)
#define opd_fail (opd_plugin_host->opd_fail)
#define opd_warn (opd_plugin_host->opd_warn)

static void opdi_block_link(opd_block *block) {
    opd_block **blocks = &opd_plugin_blocks;
#if defined(_WIN32)                               /* Windows runs the constructors of a file in reverse order */
    while (*blocks && ((*blocks)->file != block->file || (*blocks)->line < block->line)) { blocks = &(*blocks)->next; }
#else
    while (*blocks && *blocks != block) { blocks = &(*blocks)->next; }
#endif
    if (*blocks == block) { return; }
    block->next = *blocks;
    *blocks = block;
}

/* Returns the program's function for a kernel with a special meaning, which the dispatcher recognises by its address.
   In a plug-in, the API's name is a static function with another address.  Other kernels are returned as they are. */
static opd_kernel opd_plugin_kernel(opd_kernel kernel) {
    const struct opd_host *host = opd_plugin_host;
    return kernel == opd_fallthrough ? host->opd_fallthrough : kernel == opd_batch_pointwise ? host->opd_batch_pointwise
        : kernel == opd_batch_shift_dim ? host->opd_batch_shift_dim : kernel == opd_batch_matmul
        ? host->opd_batch_matmul : kernel == opd_batch_fold ? host->opd_batch_fold : kernel == opd_batch_view
        ? host->opd_batch_view : kernel == opd_batch_decompose ? host->opd_batch_decompose : kernel == opd_batch_factory
        ? host->opd_batch_factory : kernel == opd_batch_loop ? host->opd_batch_loop
        : kernel == opd_autograd_not_implemented ? host->opd_autograd_not_implemented
        : kernel == opd_inplace_or_view_not_implemented ? host->opd_inplace_or_view_not_implemented : kernel;
}
static int opd_impl_key(opd_library *lib, const char *name, const char *key, opd_kernel kernel, void *user,
                        opd_destroy destroy) {
    return opd_plugin_host->impl(lib, name, key, opd_plugin_kernel(kernel), user, destroy);
}
static int opd_impl(opd_library *lib, const char *name, opd_kernel kernel) {
    return opd_impl_key(lib, name, NULL, kernel, NULL, NULL);
}
static int opd_fallback(opd_library *lib, opd_kernel kernel) {
    return opd_plugin_host->fallback(lib, opd_plugin_kernel(kernel));
}
static int opd_define(opd_library *lib, const opd_op_desc *desc) {
    opd_op_desc other;
    if (!desc) { return opd_plugin_host->define(lib, NULL, 0); }
    other = *desc;
    other.cpu = opd_plugin_kernel(other.cpu);
    other.cuda = opd_plugin_kernel(other.cuda);
    other.fake = opd_plugin_kernel(other.fake);
    other.composite = opd_plugin_kernel(other.composite);
    other.any = opd_plugin_kernel(other.any);
    other.autograd = opd_plugin_kernel(other.autograd);
    other.vmap = opd_plugin_kernel(other.vmap);
    if (other.backward == opd_not_differentiable) { other.backward = opd_plugin_host->opd_not_differentiable; }
    return opd_plugin_host->define(lib, &other, sizeof other);
}
#endif

#ifdef __cplusplus
}
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
static inline int opdi_caught() {
    try { throw; }
    catch (const std::bad_alloc &e) { return opd_fail(OPD_ERROR_MEMORY, "%s", e.what()); }
    catch (const std::exception &e) {
        const char *what = e.what();
        int count = 0;
        while (what[count]) { count++; }
        while (count && what[count - 1] == '\n') { count--; }
        return opd_fail(OPD_ERROR_USER, "%.*s", count, what);
    }
    catch (...) { return opd_fail(OPD_ERROR_USER, "a kernel threw an exception that is not a std::exception"); }
}
#endif
#endif

#endif /* OPDISPATCH_H */

