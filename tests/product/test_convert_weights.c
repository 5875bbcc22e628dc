/* The example examples/convert_weights.c: a GGUF model in several files becomes one that can be opened.
   C ONLY: main under another name. */
#define _GNU_SOURCE 1             /* for mkdtemp */
#include "../../opdispatch.h"
#include "../check.h"
#define OPDI_IMPLEMENTED          /* the example must not compile the library again */
#define OPDISPATCH_WRAPPERS
#define main convert_main
#define opd_finish() (opd_ok() ? 0 : 1)      /* it would end the scope of the test */
#include "../../examples/convert_weights.c"
#undef main
#undef opd_finish
#if defined(_WIN32)
#include <direct.h>
#include <io.h>
#define rmdir _rmdir
#else
#include <unistd.h>
#endif

static char folder[100];
static const char *scratch(int which, const char *name) {
    static char path[4][200];
    const char *tmp = getenv("TMPDIR");
    if (!*folder) {
        (void)snprintf(folder, sizeof folder, "%.60s/opd_convert_XXXXXX", tmp && *tmp ? tmp : "/tmp");
#if defined(_WIN32)
        CHECK(_mktemp(folder) != NULL && _mkdir(folder) == 0);
#else
        CHECK(mkdtemp(folder) != NULL);
#endif
    }
    (void)snprintf(path[which], sizeof *path, "%s/%s", folder, name);
    return path[which];
}
static int convert_file(const char *in, const char *out) {
    const char *words[] = {"convert_weights", in, out, NULL};
    return convert_main(3, (char **)words);
}
TEST(parts_become_one_file) {
    static const char *const names[] = {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"};
    static const char *const keys[] = {"split.no:u16", "split.count:u16", "a.first:u32", "split.tensors.count:i32",
                                       "a.last"};
    static const char *const tensors[] = {"t0", "t1"};
    double number = 0;
    for (int i = 0; i < 2; i++) {
        const opd_value values[] = {opd_value_int(i), opd_value_int(2), opd_value_int(7), opd_value_int(2),
                                    opd_value_str("here")};
        CHECK_INT(opd_gguf_save(scratch(0, names[i]), &tensors[i],
                                OPD_TENSORS(opd_full(OPD_INTS(3), OPD_V(i), OPD_FLOAT32)), keys, values, 5), 0);
    }
    CHECK_INT(convert_file(scratch(0, names[0]), scratch(1, "one.gguf")), 0);
    opd_tensor_file *const file = opd_tensor_file_open(scratch(1, "one.gguf"));
    CHECK_OR_RETURN(file != NULL);
    CHECK_INT(opd_tensor_file_count(file), 2);
    for (int i = 0; i < 2; i++) { CHECK_NEAR(opd_data_f32(opd_tensor_file_get(file, tensors[i]))[2], i, 0); }
    CHECK(opd_tensor_file_metadata_type(file, "split.count") == NULL);
    CHECK_INT(opd_tensor_file_metadata_number(file, "a.first", 0, &number), 0);
    CHECK_NEAR(number, 7, 0);
    CHECK_STR(opd_tensor_file_metadata(file, "a.last"), "here");
    opd_tensor_file_close(file);
    CHECK_OK();
}
TEST(files_are_removed) {
    static const char *const names[] = {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf", "one.gguf"};
    for (int i = 0; i < 3; i++) { (void)remove(scratch(0, names[i])); }
    CHECK_INT(rmdir(folder), 0);                  /* nothing else was left there */
}
CHECK_MAIN()
