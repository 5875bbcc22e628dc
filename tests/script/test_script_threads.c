/* The first use of the methods of an archive by several threads at the same time.  THREADED.  C ONLY: pthreads with C
   function types. */
#include "../../opdispatch.h"
#include "../check.h"

#if defined(OPD_NO_THREADS) || defined(__TINYC__) || defined(_WIN32)
TEST(no_threads) { SKIP("built without threads"); }
CHECK_MAIN()
#else
#include <pthread.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 20 };
static const char source[] =
    "class Layer(Module):\n"
    "    scale: float\n"
    "    def __init__(self):\n        self.scale = 2.0\n"
    "    def gate(self, x: Tensor) -> Tensor:\n"
    "        if bool(x.sum() > 0):\n            return x * self.scale\n        else:\n            return -x\n"
    "    def twice(self, x: Tensor, more: List[int] = [1, 2]) -> Tensor:\n"
    "        return self.gate(x) + more[0]\n"
    "    def forward(self, x: Tensor, n: int = 3) -> Tensor:\n"
    "        parts = {'a': x, 'b': self.twice(x)}\n"
    "        for i in range(n):\n            x = self.gate(x) + self.twice(parts['b']) + i\n"
    "        return x\n";
static opd_script *shared;
static pthread_barrier_t start;
static double numbers[THREADS];
static void *use(void *at) {
    double *number = (double *)at;
    (void)pthread_barrier_wait(&start);
    OPD_SCOPE {
        opd_value x = opd_value_tensor(opd_ones(OPD_INTS(3), OPD_FLOAT64)), first, second;
        char type[40];
        int64_t count;
        bool missing;
        if ((number - numbers) % 2) {
            CHECK_INT(opd_script_nargs(shared, "twice"), 2);
            CHECK(opd_script_operator(shared, 0, &count, &missing) != NULL && !missing);
        } else {
            CHECK(opd_script_graph(shared, "gate") != NULL);
            CHECK_INT(opd_script_arg_type(shared, "forward", 1, type, sizeof type), 3);
        }
        CHECK_INT(opd_script_run(shared, NULL, &x, 1, &first), 0);
        CHECK_INT(opd_script_run(shared, "twice", &x, 1, &second), 0);
        *number = opd_ok() ? opd_item_f64(opd_sum(opd_add(first.u.t, second.u.t))) : -1;
        CHECK_OK();
    }
    return NULL;
}
TEST(threads_use_an_archive_for_the_first_time) {
    char path[64];
    opd_script *script = opd_script_compile(source, NULL);
    int i, round;
    CHECK_OR_RETURN(script != NULL);
    (void)snprintf(path, sizeof path, "/tmp/opd_script_threads_%ld.pt", (long)getpid());
    CHECK_INT(opd_script_save(script, path), 0);
    opd_script_free(script);
    CHECK_INT(pthread_barrier_init(&start, NULL, THREADS), 0);
    for (round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        shared = opd_script_load(path);
        CHECK_OR_RETURN(shared != NULL);
        for (i = 0; i < THREADS; i++) { CHECK_INT(pthread_create(&threads[i], NULL, use, &numbers[i]), 0); }
        for (i = 0; i < THREADS; i++) { (void)pthread_join(threads[i], NULL); }
        for (i = 1; i < THREADS; i++) { CHECK_NEAR(numbers[i], numbers[0], 0); }
        opd_script_free(shared);
    }
    CHECK(numbers[0] > 0);
    (void)pthread_barrier_destroy(&start);
    (void)remove(path);
}
CHECK_MAIN()
#endif
