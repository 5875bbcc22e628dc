/* The paths of the files in golden/programs, and the inputs that belong to a program. */
#ifndef OPD_TESTS_PROGRAM_FILES_H
#define OPD_TESTS_PROGRAM_FILES_H

#include "../opdispatch.h"
#include "check.h"

/* Returns the path of a golden file, valid until the next call. */
static const char *golden(const char *name, const char *end) {
    static char path[1100];
    const char *const slash = strrchr(__FILE__, '/');
    (void)snprintf(path, sizeof path, "%.*sgolden/programs/%s%s", slash ? (int)(slash - __FILE__ + 1) : 0, __FILE__, name, end);
    return path;
}
/* Returns a tensor of an .npz file, where bfloat16 is stored as int16 with the suffix .bf16; NULL if there is none. */
static opd_tensor *array(const opd_tensor_file *file, const char *key) {
    char name[200];
    (void)snprintf(name, sizeof name, "%s.bf16", key);
    if (opd_tensor_file_find(file, name) >= 0) { return opd_view_dtype(opd_tensor_file_get(file, name), OPD_BFLOAT16); }
    return opd_tensor_file_find(file, key) >= 0 ? opd_tensor_file_get(file, key) : NULL;
}
/* Reads the inputs of a program from a file.  Returns their number. */
static int fill(const opd_program *program, const opd_tensor_file *file, opd_value *inputs) {
    const int count = opd_program_ninputs(program);
    for (int i = 0; i < count; i++) {
        char key[20], type[200];
        (void)snprintf(key, sizeof key, "in%d", i);
        (void)opd_program_input_type(program, i, type, sizeof type);
        inputs[i] = opd_value_default();
        if (opd_program_input_constant(program, i, NULL)) { continue; }
        opd_tensor *const tensor = array(file, key);
        CHECK(tensor != NULL);
        inputs[i] = strcmp(type, "int") == 0 ? opd_value_int(opd_item_i64(tensor)) : opd_value_tensor(opd_clone(tensor));
    }
    return count;
}
#endif
