/* Writes a model that PyTorch exported as C code: a folder with its functions, its weights and a program that runs it.
   cc -O2 examples/model_to_c.c -o model_to_c -lm && ./model_to_c examples/data/four_digits.pt2 four_digits --size 1
   ci: examples/data/four_digits.pt2 /tmp/opd_model_to_c --size 1

   The code in the folder needs neither PyTorch nor opdispatch.h, but with --calls it includes opdispatch.h.  At the
   end, this program prints the command that builds and runs the code. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#if defined(_WIN32)
#include <direct.h>
#define mkdir(path, mode) _mkdir(path)
#endif

#define MOST 64

static void usage(void) {
    fputs("usage: model_to_c MODEL.pt2 FOLDER [--name NAME] [--inputs FILE.npz] [--size N] [--open N:M] [--calls]\n"
          "  MODEL.pt2       an exported program (torch.export.save)\n"
          "  FOLDER          the folder for NAME.c, NAME.h, NAME.weights and main.c; it is made if necessary\n"
          "  --name NAME     the name of files and functions: letters, digits and _ (model)\n"
          "  --inputs FILE   examples of the inputs, in0, in1, ...; the C functions get their sizes\n"
          "  --size N        without examples: the value for sizes that may differ between runs\n"
          "  --open N:M      the first such size becomes an argument of the C functions, from N to M; N:M,N:M: also the\n"
          "                  second; -,N:M: only the second.  main.c calls the functions with the sizes of the examples\n"
          "  --calls         the C code calls operators that cannot be written in C (linear algebra, Fourier transforms,\n"
          "                  operators of libraries); the folder must then be built with opdispatch.h\n"
          "  exit status     0, or 1 with one line that describes the error\n", stdout);
}
/* Makes an input from its type, such as "float32 [s0=1..64, 4*s1, 3]" or "int".  Sizes that may differ between runs are
   `open`. */
static int input_of_type(const char *type, int64_t open, opd_value *value) {
    static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_FLOAT16, OPD_BFLOAT16, OPD_INT64, OPD_INT32,
                                             OPD_INT16, OPD_INT8, OPD_UINT8, OPD_BOOL};
    int64_t sizes[OPD_MAX_DIMS];
    int ndim = 0, i;
    const char *at = strchr(type, '[');
    if (!at) { return opd_fail(OPD_ERROR_USER, "an input has the type %s: give examples with --inputs", type); }
    for (at++; *at && *at != ']' && ndim < OPD_MAX_DIMS; at += *at == ',' ? 2 : 0) {
        char *end;
        sizes[ndim] = strtoll(at, &end, 10);
        if (end == at || *end == '*') { sizes[ndim] = open < 1 ? 0 : end == at ? open : sizes[ndim] * open; }
        if (at[strcspn(at, "(,]")] == '(') {
            return opd_fail(OPD_ERROR_USER, "an input is %.150s: give examples with --inputs", type);
        }
        if (sizes[ndim] < 1) {
            return opd_fail(OPD_ERROR_USER, "an input is %s: give its open sizes with --size or --inputs", type);
        }
        ndim++;
        at += strcspn(at, ",]");
    }
    for (i = 0; i < (int)(sizeof dtypes / sizeof *dtypes); i++) {
        const char *const name = opd_dtype_name(dtypes[i]);
        if (strncmp(type, name, strlen(name)) != 0 || type[strlen(name)] != ' ') { continue; }
        opd_tensor *const tensor = opd_zeros(opd_ints_of(sizes, ndim), dtypes[i]);
        *value = opd_value_tensor(tensor);
        return tensor ? 0 : -1;
    }
    return opd_fail(OPD_ERROR_USER, "an input is %s, which is not supported in C", type);
}
/* Finds the dims of an input that have the first and the second open size, by their names in "float32 [s0=1..64, s1,
   3]". -1: there is none. */
static void open_dims(const char *type, char names[2][80], int dims[2]) {
    int dim = 0, k;
    const char *at = strchr(type, '[');
    dims[0] = dims[1] = -1;
    for (at = at ? at + 1 : ""; *at && *at != ']'; dim++, at += *at == ',' ? 2 : 0) {
        const int length = (int)strcspn(at, "=,]");
        for (k = 0; k < 2 && (*at < '0' || *at > '9'); k++) {
            if (!*names[k]) { (void)snprintf(names[k], sizeof names[k], "%.*s", length, at); }
            if ((int)strlen(names[k]) != length || strncmp(names[k], at, (size_t)length) != 0) { continue; }
            dims[k] = dim;
            break;
        }
        at += strcspn(at, ",]");
    }
}
/* Reads "1:64", "1:64,1:512" or "-,1:512". */
static void open_ranges(const char *text, opd_c_options *options, int *const dims[2]) {
    char *end = (char *)(uintptr_t)text + 1;
    int k = *text == '-' && text[1] == ',';
    options->open = dims[k];
    options->least = strtoll(k ? text + 2 : text, &end, 10);
    options->most = *end == ':' ? strtoll(end + 1, &end, 10) : 0;
    if (k || *end != ',') { return; }
    options->open_2 = dims[1];
    options->least_2 = strtoll(end + 1, &end, 10);
    options->most_2 = *end == ':' ? strtoll(end + 1, &end, 10) : 0;
}
/* Reads an input from a file.  bfloat16 is stored as int16 with the name NAME.bf16. */
static int input_of_file(const opd_tensor_file *file, int i, const char *type, opd_value *value) {
    char name[40];
    (void)snprintf(name, sizeof name, "in%d.bf16", i);
    const int bits = opd_tensor_file_find(file, name) >= 0;
    if (!bits) { (void)snprintf(name, sizeof name, "in%d", i); }
    opd_tensor *tensor = opd_tensor_file_get(file, name);
    if (tensor && bits) { tensor = opd_view_dtype(tensor, OPD_BFLOAT16); }
    if (!tensor) { return -1; }
    *value = strcmp(type, "int") == 0 ? opd_value_int(opd_item_i64(tensor))
        : strcmp(type, "float") == 0 ? opd_value_double(opd_item_f64(tensor))
        : strcmp(type, "bool") == 0 ? opd_value_bool(opd_item_i64(tensor) != 0) : opd_value_tensor(tensor);
    return opd_ok() ? 0 : -1;
}

/* Returns NumPy's name of a dtype with its element size.  bfloat16 is stored as its bits. */
static const char *numpy_name(opd_scalar_type dtype) {
    switch (dtype) {
    case OPD_FLOAT32: return "<f4";
    case OPD_FLOAT64: return "<f8";
    case OPD_FLOAT16: return "<f2";
    case OPD_BFLOAT16: return "<i2";
    case OPD_INT64: return "<i8";
    case OPD_INT32: return "<i4";
    case OPD_INT16: return "<i2";
    case OPD_INT8: return "|i1";
    case OPD_UINT8: return "|u1";
    default: return "|b1";
    }
}
static void write_shape(FILE *file, opd_tensor *tensor) {
    int i;
    for (i = 0; i < opd_ndim(tensor); i++) { fprintf(file, "%lld,%s", (long long)opd_sizes(tensor)[i], i + 1 < opd_ndim(tensor) ? " " : ""); }
}
static void write_end(FILE *file, opd_tensor *tensor) {
    fprintf(file, "    {\"%s\", \"(", numpy_name(opd_dtype(tensor)));
    write_shape(file, tensor);
    fprintf(file, ")\", %lld},\n", (long long)(opd_numel(tensor) * (int64_t)opd_dtype_size(opd_dtype(tensor))));
}
/* The part of main.c that reads and writes files. */
static const char main_text[] =
    "/* Reads a file whole, into memory from a multiple of 64 bytes on. */\n"
    "static unsigned char *read_all(const char *path, long *size) {\n"
    "    FILE *file = fopen(path, \"rb\");\n"
    "    unsigned char *data = NULL;\n"
    "    if (file && fseek(file, 0, SEEK_END) == 0 && (*size = ftell(file)) >= 0 && fseek(file, 0, SEEK_SET) == 0) {\n"
    "        data = malloc((size_t)*size + 64);\n"
    "        if (data) { data += 64 - (uintptr_t)data % 64; }\n"
    "        if (data && fread(data, 1, (size_t)*size, file) != (size_t)*size) { data = NULL; }\n"
    "    }\n"
    "    if (file) { fclose(file); }\n"
    "    if (!data) { fprintf(stderr, \"cannot read %s\\n\", path); exit(1); }\n"
    "    return data;\n"
    "}\n"
    "static unsigned char *memory(long size) {\n"
    "    unsigned char *data = calloc((size_t)size + 64, 1);\n"
    "    if (!data) { fprintf(stderr, \"out of memory\\n\"); exit(1); }\n"
    "    return data + (64 - (uintptr_t)data % 64);\n"
    "}\n"
    "/* Returns the elements of a .npy file, which must be of that dtype and size. */\n"
    "static void *read_npy(const char *path, const struct array *array) {\n"
    "    long size = 0, head;\n"
    "    const unsigned char *data = read_all(path, &size);\n"
    "    char text[1024];\n"
    "    unsigned char *elements;\n"
    "    if (size < 12 || memcmp(data, \"\\x93NUMPY\", 6) != 0) { fprintf(stderr, \"%s is not a .npy file\\n\", path); exit(1); }\n"
    "    head = data[6] == 1 ? 10 + data[8] + 256 * data[9] : 12 + data[8] + 256 * data[9];\n"
    "    snprintf(text, sizeof text, \"%.*s\", (int)(head < size ? head - 10 : 0), (const char *)data + 10);\n"
    "    if (!strstr(text, array->dtype) || strstr(text, \"True,\") || size - head != array->bytes) {\n"
    "        fprintf(stderr, \"%s: expected %s %s in C order, got %s\\n\", path, array->dtype, array->shape, text);\n"
    "        exit(1);\n"
    "    }\n"
    "    elements = memory(array->bytes);\n"
    "    memcpy(elements, data + head, (size_t)array->bytes);\n"
    "    return elements;\n"
    "}\n"
    "static void write_npy(const char *path, const struct array *array, const void *data) {\n"
    "    char head[256];\n"
    "    int n = snprintf(head, sizeof head, \"%c%s%c%c__{'descr': '%s', 'fortran_order': False, 'shape': %s, }\", 0x93, \"NUMPY\", 1,\n"
    "                     1, array->dtype, array->shape);\n"
    "    FILE *file = fopen(path, \"wb\");\n"
    "    head[7] = 0;\n"
    "    while ((n + 1) % 64) { head[n++] = ' '; }\n"
    "    head[n++] = '\\n';\n"
    "    head[8] = (char)((n - 10) % 256);\n"
    "    head[9] = (char)((n - 10) / 256);\n"
    "    if (!file || fwrite(head, 1, (size_t)n, file) != (size_t)n ||\n"
    "        fwrite(data, 1, (size_t)array->bytes, file) != (size_t)array->bytes || fclose(file)) {\n"
    "        fprintf(stderr, \"cannot write %s\\n\", path);\n"
    "        exit(1);\n"
    "    }\n"
    "}\n";
static int write_main(const char *folder, const opd_c_options *options, const opd_value *in, int nin, opd_value *out,
                      int nout, const int64_t *open) {
    const char *const name = options->name;
    char path[1200], size[60] = "";
    int i, inputs = 0, outputs = 0;
    (void)snprintf(path, sizeof path, "%s/main.c", folder);
    FILE *const file = fopen(path, "w");
    if (!file) { return opd_fail(OPD_ERROR_FILE, "cannot write %s: %s", path, strerror(errno)); }
    for (i = 0; i < 2; i++) {
        if (open[i]) { (void)snprintf(size + strlen(size), sizeof size - strlen(size), "%lld, ", (long long)open[i]); }
    }
    fprintf(file, "/* Runs %s on .npy files: ./%s %s.weights INPUT.npy ... OUTPUT.npy ...\n   cc -O3 -march=native %smain.c %s.c -o %s -lm */\n",
            name, name, name, options->calls ? "-I WHERE_OPDISPATCH_IS " : "", name, name);
    if (options->calls) { fprintf(file, "#define OPDISPATCH_IMPLEMENTATION\n#include \"opdispatch.h\"\n"); }
    fprintf(file, "#include \"%s.h\"\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n", name);
    fprintf(file, "struct array { const char *dtype, *shape; long bytes; };\nstatic const struct array arrays[] = {\n");
    for (i = 0; i < nin; i++) { if (in[i].tag == OPD_TAG_TENSOR) { write_end(file, in[i].u.t); inputs++; } }
    for (i = 0; i < nout; i++) { if (out[i].tag == OPD_TAG_TENSOR) { write_end(file, out[i].u.t); outputs++; } }
    fprintf(file, "};\nenum { INPUTS = %d, OUTPUTS = %d };\n\n%s", inputs, outputs, main_text);
    fprintf(file, "int main(int argc, char **argv) {\n    %s model;\n    void *in[INPUTS + 1], *out[OUTPUTS + 1];\n    long size = 0;\n    int i, rc;\n", name);
    fprintf(file, "    if (argc != 2 + INPUTS + OUTPUTS) {\n        fprintf(stderr, \"usage: %%s %s.weights, %%d .npy files to read, %%d to write\\n\",\n"
            "                argv[0], INPUTS, OUTPUTS);\n        return 1;\n    }\n", name);
    fprintf(file, "    for (i = 0; i < INPUTS; i++) { in[i] = read_npy(argv[2 + i], &arrays[i]); }\n");
    fprintf(file, "    for (i = 0; i < OUTPUTS; i++) { out[i] = memory(arrays[INPUTS + i].bytes); }\n");
    fprintf(file, "    rc = %s_init(&model, read_all(argv[1], &size), memory(%s_FIXED_BYTES), memory(%s_ARENA_BYTES));\n", name, name, name);
    fprintf(file, "    if (rc == 0) { rc = %s_call(&model, %sin, out); }\n    if (rc) {\n        fprintf(stderr, \"%s: error %%d, see %s.h%s);\n        return 1;\n    }\n",
            name, size, name, name, options->calls ? ": %s\\n\", rc, opd_error_message()" : "\\n\", rc");
    fprintf(file, "    for (i = 0; i < OUTPUTS; i++) { write_npy(argv[2 + INPUTS + i], &arrays[INPUTS + i], out[i]); }\n    return 0;\n}\n");
    return fclose(file) ? opd_fail(OPD_ERROR_FILE, "cannot write %s: %s", path, strerror(errno)) : 0;
}
static int fail(void) {
    fprintf(stderr, "model_to_c: %s\n", opd_error_message());
    opd_error_clear();
    return 1;
}
int main(int argc, char **argv) {
    const char *model = NULL, *folder = NULL, *inputs = NULL;
    opd_c_options options;
    opd_value in[MOST], out[MOST];
    int64_t open = 0, run[2] = {0, 0};
    char names[2][80] = {"", ""};
    int i, k, n, nout = -1, rc = 0, first[MOST], second[MOST], *const dims[2] = {first, second};
    memset(&options, 0, sizeof options);
    options.name = "model";
    for (i = 1; i < argc; i++) {
        const int more = i + 1 < argc;
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) { usage(); return 0; }
        else if (strcmp(argv[i], "--name") == 0 && more) { options.name = argv[++i]; }
        else if (strcmp(argv[i], "--inputs") == 0 && more) { inputs = argv[++i]; }
        else if (strcmp(argv[i], "--size") == 0 && more) { open = strtoll(argv[++i], NULL, 10); }
        else if (strcmp(argv[i], "--open") == 0 && more) { open_ranges(argv[++i], &options, dims); }
        else if (strcmp(argv[i], "--calls") == 0) { options.calls = 1; }
        else if (argv[i][0] == '-') { fprintf(stderr, "model_to_c: unknown option %s, see --help\n", argv[i]); return 1; }
        else if (!model) { model = argv[i]; }
        else if (!folder) { folder = argv[i]; }
        else { fprintf(stderr, "model_to_c: too many arguments, see --help\n"); return 1; }
    }
    if (!model || !folder) { usage(); return 1; }
    (void)opd_grad_mode_set(false);
    if (mkdir(folder, 0777) && errno != EEXIST) {
        fprintf(stderr, "model_to_c: cannot make %s: %s\n", folder, strerror(errno));
        return 1;
    }
    opd_program *const program = opd_program_load(model, NULL);
    opd_tensor_file *const file = program && inputs ? opd_tensor_file_open(inputs) : NULL;
    if (!program || (inputs && !file)) { return fail(); }
    if ((n = opd_program_ninputs(program)) > MOST) { fprintf(stderr, "model_to_c: the program has more than %d inputs\n", MOST); return 1; }
    if (options.open && !open) { open = options.open_2 && options.most_2 < options.most ? options.most_2 : options.most; }
    for (i = 0; i < n && rc == 0; i++) {
        char type[400];
        (void)opd_program_input_type(program, i, type, sizeof type);
        in[i] = opd_value_default();
        first[i] = second[i] = -1;
        if (opd_program_input_constant(program, i, NULL)) { continue; }
        int of[2];
        open_dims(type, names, of);
        first[i] = of[0];
        second[i] = of[1];
        rc = file ? input_of_file(file, i, type, &in[i]) : input_of_type(type, open, &in[i]);
    }
    for (i = 0; i < n && rc == 0; i++) {         /* the inputs of main.c */
        for (k = 0; k < 2 && in[i].tag == OPD_TAG_TENSOR; k++) {
            const int *const is = k ? options.open_2 : options.open;
            if (is && is[i] >= 0) { run[k] = opd_sizes(in[i].u.t)[is[i]]; }
        }
    }
    if (rc || opd_program_write_c(program, in, n, folder, &options)) { return fail(); }
    OPD_SCOPE {
        if ((nout = opd_program_run(program, in, n, out, MOST)) >= 0) {          /* to get the sizes of the outputs */
            rc = write_main(folder, &options, in, n, out, nout, run);
        }
    }
    if (nout < 0 || rc) { return fail(); }
    printf("%s/%s.c, %s.h, %s.weights and main.c were written.  To build and run them:\n"
           "  cc -O3 -march=native %s%s/main.c %s/%s.c -o %s/%s -lm\n  %s/%s %s/%s.weights", folder, options.name, options.name,
           options.name, options.calls ? "-I WHERE_OPDISPATCH_IS " : "", folder, folder, options.name, folder, options.name, folder, options.name, folder, options.name);
    for (i = 0; i < n; i++) { if (in[i].tag == OPD_TAG_TENSOR) { printf(" %s.npy", opd_program_input_name(program, i)); } }
    for (i = 0; i < nout; i++) { printf(" %s.npy", opd_program_output_name(program, i)); }
    printf("\n");
    if (file) { opd_tensor_file_close(file); }
    opd_program_free(program);
    return opd_finish();
}
