/* Objects that one thread makes and another thread frees, while the first makes others, and after it has ended.
   THREADED.  C ONLY: pthreads with C function types. */
#include "../../opdispatch.h"
#include "../check.h"

#if defined(OPD_NO_THREADS) || defined(__TINYC__) || defined(_WIN32)
TEST(no_threads) { SKIP("built without pthreads"); }
#else
#include <pthread.h>
#include <sched.h>

enum { EACH = 20 };
/* A kind of object: how to make one, and how to free it. */
typedef struct kind { const char *name; void *(*make)(void); void (*free)(void *object); } kind;

static opd_tensor *leaf(void) {
    return opd_tensor_set_requires_grad(opd_full(OPD_INTS(5), opd_value_double(2), OPD_FLOAT32), true);
}
static void tensor_free(void *object) { opd_release((opd_tensor *)object); }
static void *make_view(void) { return opd_keep(opd_select(opd_ones(OPD_INTS(4, 4), OPD_FLOAT32), 0, 1)); }
static opd_tensor *same(opd_tensor *grad, void *user) {
    (void)user;
    return grad;
}
static void hook_free(void *user) { free(user); }
static void *make_tape(void) {
    opd_tensor *y = leaf();
    for (int i = 0; i < 300; i++) { y = opd_sin(y); }
    CHECK(opd_tensor_hook_add(y, same, malloc(8), hook_free) != 0);
    return opd_keep(y);
}
static void *make_view_with_writes(void) {
    opd_tensor *y = opd_exp(leaf());
    (void)opd_sin_(opd_select(y, 0, 2));
    return opd_keep(y);
}
static void *make_grad(void) {
    opd_tensor *x = leaf();
    CHECK_INT(opd_backward(opd_sum(opd_exp(x))), 0);
    return opd_keep(x);
}
static int polynomial(void *user, opd_tensor *const *inputs, int count, opd_tensor **outputs) {
    (void)user;
    (void)count;
    outputs[0] = opd_add(opd_mul(inputs[0], inputs[0]), opd_exp(inputs[0]));
    return 1;
}
#if !defined(OPD_NO_GRAPHS)
static void graph_free(void *object) { opd_graph_free((opd_graph *)object); }
static void *make_graph(void) {
    opd_tensor *x = opd_ones(OPD_INTS(3), OPD_FLOAT32), *out;
    opd_graph *graph = opd_graph_trace(polynomial, NULL, &x, 1, NULL);
    CHECK_INT(opd_graph_run(graph, &x, 1, &out, 1), 1);
    return graph;
}
#endif
#if !defined(OPD_NO_SCRIPTS)
static const char source[] = "class C:\n    def __init__(self, n: int):\n        self.n = n\n"
    "def f(x: Tensor) -> List[Tensor]:\n    c = C(1)\n    return [x, x + c.n]\n";
static void script_free(void *object) { opd_script_free((opd_script *)object); }
static void *make_script(void) {
    opd_script *script = opd_script_compile(source, NULL);
    CHECK(script && opd_script_graph(script, "f"));
    return script;
}
/* A value of a script that its maker has freed. */
static void *make_value(void) {
    opd_script *script = opd_script_compile(source, NULL);
    const opd_value x = opd_value_tensor(opd_ones(OPD_INTS(3), OPD_FLOAT32));
    opd_value *value = (opd_value *)malloc(sizeof *value);
    CHECK_INT(opd_script_run(script, "f", &x, 1, value), 0);
    *value = opd_value_keep(*value);
    opd_script_free(script);
    return value;
}
static void value_free(void *object) {
    opd_value_release(*(opd_value *)object);
    free(object);
}
#endif
static void module_free(void *object) { opd_module_free((opd_module *)object); }
static void *make_module(void) {
    opd_module *module = opd_module_new();
    CHECK_INT(opd_module_add(module, "weight", leaf(), OPD_MODULE_PARAMETER), 0);
    return module;
}
static void optimizer_free(void *object) { opd_optimizer_free((opd_optimizer *)object); }
static void *make_optimizer(void) {
    opd_tensor *x = leaf();
    opd_optimizer *optimizer = opd_adam_new(&x, 1, NULL);
    CHECK_INT(opd_backward(opd_sum(opd_exp(x))), 0);
    CHECK_INT(opd_optimizer_step(optimizer), 0);
    return optimizer;
}
static void generator_free(void *object) { opd_generator_free((opd_generator *)object); }
static void *make_generator(void) { return opd_generator_new(7); }
static void json_free(void *object) { opd_json_free((opd_json *)object); }
static void *make_json(void) { return opd_json_parse("{\"a\": [1, {\"b\": null}]}", 23); }
static void schema_free(void *object) { opd_schema_free((opd_schema *)object); }
static void *make_schema(void) { return opd_schema_parse("f(Tensor a, int[] b=[1, 2]) -> (Tensor, Tensor)"); }
static void *make_kernel(void) { return opd_kernel_get(opd_find("aten::exp"), "CPU"); }

static const kind kinds[] = {
    {"view", make_view, tensor_free}, {"tape", make_tape, tensor_free}, {"view with writes", make_view_with_writes, tensor_free},
    {"gradient", make_grad, tensor_free},
#if !defined(OPD_NO_GRAPHS)
    {"graph", make_graph, graph_free},
#endif
#if !defined(OPD_NO_SCRIPTS)
    {"script", make_script, script_free}, {"value", make_value, value_free},
#endif
    {"module", make_module, module_free}, {"optimizer", make_optimizer, optimizer_free},
    {"generator", make_generator, generator_free}, {"json", make_json, json_free}, {"schema", make_schema, schema_free},
    {"kernel", make_kernel, opd_kernel_free}};
enum { KINDS = (int)(sizeof kinds / sizeof kinds[0]) };

static void *made[EACH * KINDS];                  /* the objects, each NULL until it is made */
static void *maker(void *arg) {
    for (int i = 0; i < EACH * KINDS; i++) OPD_SCOPE {
        void *const object = kinds[i % KINDS].make();
        if (!object) {
            printf("no %s: %s\n", kinds[i % KINDS].name, opd_error_message());
            exit(1);
        }
        __atomic_store_n(&made[i], object, __ATOMIC_RELEASE);
    }
    return arg;
}
static void *freer(void *arg) {
    for (int i = 0; i < EACH * KINDS; i++) {
        void *object;
        while (!(object = __atomic_load_n(&made[i], __ATOMIC_ACQUIRE))) { (void)sched_yield(); }
        kinds[i % KINDS].free(object);
    }
    CHECK_OK();
    return arg;
}
static void check_threads(bool ended) {
    pthread_t first, second;
    memset(made, 0, sizeof made);
    CHECK_INT(pthread_create(&first, NULL, maker, NULL), 0);
    if (ended) { CHECK_INT(pthread_join(first, NULL), 0); }
    CHECK_INT(pthread_create(&second, NULL, freer, NULL), 0);
    if (!ended) { CHECK_INT(pthread_join(first, NULL), 0); }
    CHECK_INT(pthread_join(second, NULL), 0);
}
TEST(freed_while_the_maker_runs) { check_threads(false); }
TEST(freed_after_the_maker_has_ended) { check_threads(true); }
#endif
CHECK_MAIN()
