/* The example examples/llama.c inside of a test: its functions, and RUN, which runs it. */
#define OPDI_IMPLEMENTED          /* the example must not compile the library again */
#define OPDISPATCH_WRAPPERS
#define main llama_main
#define opd_finish() (opd_ok() ? 0 : 1)      /* it would end the scope of the test */
#include "../../examples/llama.c"
#undef main
#undef opd_finish

static int run_words(int argc, const char **argv) {
    const int status = llama_main(argc, (char **)argv);
    (void)opd_log_set(NULL, NULL);
    opd_exact_blocks_set(false);
    return status;
}
/* Runs `llama ...`. */
#define RUN(...) run_words((int)(sizeof (const char *[]){__VA_ARGS__} / sizeof (const char *)) + 1, \
                           (const char *[]){"llama", __VA_ARGS__, NULL})
