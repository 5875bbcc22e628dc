/* GGUF files: golden/gguf, with models and vocabularies of a few kilobytes, and damaged files with verdicts. */
#include "../check.h"

static const char *golden(const char *name) {
    static char path[2][700];
    static int k;
    const char *const folder = getenv("OPD_GOLDEN");
    k = !k;
    (void)snprintf(path[k], sizeof path[k], "%s/gguf/%s", folder && *folder ? folder : "tests/golden", name);
    return path[k];
}

TEST(a_vocabulary_is_read) {
    opd_tensor_file *const file = opd_tensor_file_open(golden("vocab_llama-bpe.gguf"));
    CHECK_OK();
    CHECK_STR(opd_tensor_file_metadata(file, "tokenizer.ggml.pre"), "llama-bpe");
    opd_tensor_file_close(file);
}
CHECK_MAIN()
