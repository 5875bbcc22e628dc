/* Prints and runs files of PyTorch: exported programs (.pt2), TorchScript (.pt), and models that AOTInductor compiled
   (.pt2, .so).  It also prints checkpoints (.pt) and GGUF files.
   cc -O2 examples/run_model.c -o run_model -lm && ./run_model examples/data/four_digits.pt2 --list
   ci: examples/data/four_digits.pt2 --list

   ./run_model --help explains how to give inputs, and where results are written. */
#define OPDISPATCH_IMPLEMENTATION
#define OPD_AOTI
#include "../opdispatch.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#define IS_TERMINAL isatty(2)
#else
#define IS_TERMINAL 0
#endif

typedef struct options {
    const char *model, *inputs, *outputs, *method, *save, *quantize, *layers, *trace, *load[16];
    int nload;
    bool list, profile, cost, code;
    int repeat;
} options;

static void usage(void) {
    fputs("usage: run_model MODEL [--list] [--inputs FILE] [--outputs FILE] [--method NAME]\n"
          "                       [--save FILE] [--profile [TRACE]] [--cost] [--repeat N] [--load PLUGIN]\n"
          "                       [--quantize HOW [--layers PATTERN]] [--code]\n"
          "  MODEL           a file of PyTorch: an exported program (.pt2), TorchScript or a checkpoint (.pt, .pth; the\n"
          "                  kind is found from the contents); .safetensors, .npz or .gguf; a model that AOTInductor compiled\n"
          "                  (.pt2, or its .so), which is code: see --code\n"
          "  --list          lists the contents: inputs, outputs, parameters, operators, and missing operators;\n"
          "                  for a checkpoint a line `path dtype [sizes]` for each tensor, and `path = value` for other values;\n"
          "                  for .gguf also the metadata, and the bytes of each tensor\n"
          "  --inputs FILE   for exported programs and compiled models: .npz with in0, in1, ... in the order of the inputs\n"
          "                  for TorchScript: .json with \"in\", a list of arguments: numbers, strings, true, false, null,\n"
          "                  {\"tensor\": key} of the .npz beside it, {\"list\": [...]}, {\"tuple\": [...]},\n"
          "                  {\"dict\": [[key, value], ...]}, {\"namedtuple\": name, \"v\": [...]},\n"
          "                  {\"complex\": [real, imaginary]}; devices are strings\n"
          "  --outputs FILE  the file for the results: .npz with out0, ..., in_after0, ... and buf_after.NAME, or .json\n"
          "                  with \"out\" and an .npz beside it; for a checkpoint all tensors by path (a single one: `tensor`),\n"
          "                  and weights in blocks of a .gguf as float32\n"
          "                  bfloat16, which NumPy does not have, is saved as int16 with the same bits, as NAME.bf16; floats\n"
          "                  of 8 bits are saved as uint8, as NAME.float8_e4m3fn and similar names\n"
          "                  (for a checkpoint also under NAME)\n"
          "  --method NAME   the method of TorchScript (forward), or the program of an archive with several (the first)\n"
          "  --save FILE     saves the model for PyTorch, with its parameters, buffers and attributes after the first run:\n"
          "                  .pt2 for an exported program, .pt for TorchScript\n"
          "  --quantize HOW  rounds the weights of an exported program to few bits first, and prints the errors; HOW is a text\n"
          "                  such as \"int8\", \"int4, group 32, dynamic\" or \"int8, static, histogram\" (opd_quantize_program);\n"
          "                  the ranges of the layers' inputs are found from --inputs.  The saved program has these weights\n"
          "  --layers PATTERN  the weights that --quantize rounds: a name with * and ?, or !NAME for all others\n"
          "  --load PLUGIN   loads a library with operators of the model first: a plug-in (examples/plugin.c) or an extension\n"
          "                  of PyTorch; may be given several times\n"
          "  --code          runs code of MODEL: a compiled model, which is machine code and can do anything that you may\n"
          "                  do, or methods __setstate__ of TorchScript that compute something while the file is loaded;\n"
          "                  use it only if you trust the source of MODEL\n"
          "  --profile       prints a table of the time of each operator; TRACE: a file for ui.perfetto.dev\n"
          "  --cost          prints operators, floating-point operations, bytes and peak memory of one run\n"
          "  --repeat N      runs N times, and prints the first, the median and the shortest time\n"
          "  Without --inputs, a model without inputs is run if an option needs a run; other models are listed.\n"
          "  exit status     0, or 1 with one line that describes the error\n", stdout);
}

//-- text ---------------------------------------------------------------------------------------------------------

/* Prints a text that may come from a file: control characters, which could change the terminal, become '?'. */
static void print_clean(FILE *to, const char *text) {
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        const bool two = at[0] == 0xc2 && (at[1] & 0xe0) == 0x80;          /* one of U+0080 to U+009F */
        (void)fputc(*at < 32 || *at == 127 || two ? '?' : *at, to);
        at += two;
    }
}
/* Ends the program: fails if something that was printed could not be written. */
static int finish(void) {
    if ((fflush(stdout) != 0 || ferror(stdout)) && opd_ok()) {
        (void)opd_fail(OPD_ERROR_FILE, "the output cannot be written");
    }
    return opd_finish();
}

/* Writes a float as Python does: the shortest text that reads back as the same number, with a point. */
static void float_text(double v, char text[40]) {
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, 40, "%.*g", digits, v);
        if (strtod(text, NULL) == v || v != v) { break; }
    }
    const char *exponent = strchr(text, 'e');
    if (v != v) { strcpy(text, "nan"); }           /* without a sign */
    if (exponent && atoi(exponent + 1) > 0 && atoi(exponent + 1) < 16) { snprintf(text, 40, "%.1f", v); }
    if (!strpbrk(text, ".einf")) { strcat(text, ".0"); }
}
static void print_float(FILE *to, double v) {
    char text[40];
    float_text(v, text);
    fputs(text, to);
}

/* (1.5-2j), 2j */
static void print_complex(FILE *to, const double *pair) {
    const bool imaginary = pair[0] == 0 && !signbit(pair[0]);
    char text[2][40];
    for (int i = 0; i < 2; i++) {
        float_text(pair[i], text[i]);
        const size_t length = strlen(text[i]);
        if (length > 2 && strcmp(text[i] + length - 2, ".0") == 0) { text[i][length - 2] = 0; }
    }
    if (imaginary) { fprintf(to, "%sj", text[1]); }
    else { fprintf(to, "(%s%s%sj)", text[0], text[1][0] == '-' ? "" : "+", text[1]); }
}

/* float32 [2, 3] */
static void print_type(FILE *to, const opd_tensor *tensor) {
    fprintf(to, "%s [", opd_dtype_name(opd_dtype(tensor)));
    for (int i = 0; i < opd_ndim(tensor); i++) { fprintf(to, "%s%lld", i ? ", " : "", (long long)opd_size(tensor, i)); }
    fprintf(to, "]");
}

/* Prints a value of a checkpoint as Python does. */
static void print_plain(FILE *to, const opd_value *value) {
    switch (value->tag) {
    case OPD_TAG_INT: fprintf(to, "%lld", (long long)value->u.i); break;
    case OPD_TAG_BOOL: fputs(value->u.i ? "True" : "False", to); break;
    case OPD_TAG_FLOAT: print_float(to, value->u.d); break;
    case OPD_TAG_STR: fputs(value->u.s, to); break;
    case OPD_TAG_NONE: fputs("None", to); break;
    case OPD_TAG_COMPLEX: print_complex(to, value->u.c); break;
    default: fputs("?", to); break;
    }
}

//-- tensors for the output file ----------------------------------------------------------------------------------

/* Tensors with names, which are written to an .npz file. */
typedef struct results {
    char **names;
    opd_tensor **tensors;
    int count, cap;
    bool plain;                          /* names of bfloat16 tensors may lack .bf16 */
} results;

static int results_put(results *all, const char *name, const char *suffix, opd_tensor *tensor) {
    const size_t length = strlen(name) + strlen(suffix) + 1;
    if (all->count == all->cap) {
        const size_t cap = all->cap ? 2 * (size_t)all->cap : 64;
        char **names = (char **)realloc(all->names, cap * sizeof *names);
        if (names) { all->names = names; }
        opd_tensor **tensors = (opd_tensor **)realloc(all->tensors, cap * sizeof *tensors);
        if (tensors) { all->tensors = tensors; }
        if (!names || !tensors) { return opd_fail(OPD_ERROR_MEMORY, "out of memory"); }
        all->cap = (int)cap;
    }
    char *copy = (char *)malloc(length);
    if (!copy || !tensor) { free(copy); return opd_ok() ? opd_fail(OPD_ERROR_MEMORY, "out of memory") : -1; }
    snprintf(copy, length, "%s%s", name, suffix);
    all->names[all->count] = copy;
    all->tensors[all->count++] = tensor;
    return 0;
}
/* Dtypes that NumPy lacks are stored as their bits, int16 or uint8, with these ends of the names. */
static const struct bits { opd_scalar_type dtype; const char *end; } bits[] = {
    {OPD_BFLOAT16, ".bf16"}, {OPD_FLOAT8_E4M3FN, ".float8_e4m3fn"}, {OPD_FLOAT8_E5M2, ".float8_e5m2"},
    {OPD_FLOAT8_E4M3FNUZ, ".float8_e4m3fnuz"}, {OPD_FLOAT8_E5M2FNUZ, ".float8_e5m2fnuz"},
    {OPD_FLOAT8_E8M0FNU, ".float8_e8m0fnu"}};
enum { KINDS_OF_BITS = sizeof bits / sizeof *bits };
static int bits_of(opd_scalar_type dtype) {
    int kind = KINDS_OF_BITS;
    while (kind > 0 && bits[kind - 1].dtype != dtype) { kind--; }
    return kind - 1;
}
/* Returns the tensor with this name, also if it is stored as bits.  Returns NULL if there is none, or on an error. */
static opd_tensor *tensor_or_bits(const opd_tensor_file *file, const char *name) {
    char key[256];
    for (int kind = 0; kind < KINDS_OF_BITS; kind++) {
        snprintf(key, sizeof key, "%s%s", name, bits[kind].end);
        if (opd_tensor_file_find(file, key) < 0) { continue; }
        return opd_view_dtype(opd_tensor_file_get(file, key), bits[kind].dtype);
    }
    return opd_tensor_file_find(file, name) < 0 ? NULL : opd_tensor_file_get(file, name);
}
static int results_add(results *all, const char *name, opd_tensor *tensor) {
    if (!tensor) { return -1; }
    tensor = opd_detach(tensor);
    const int kind = bits_of(opd_dtype(tensor));
    if (kind < 0) { return results_put(all, name, "", tensor); }
    tensor = opd_view_dtype(opd_contiguous(tensor), kind ? OPD_UINT8 : OPD_INT16);
    return all->plain && results_put(all, name, "", tensor) ? -1 : results_put(all, name, bits[kind].end, tensor);
}
static int results_write(results *all, const char *path) {
    int rc = opd_ok() ? opd_npz_save(path, (const char *const *)all->names, opd_tensors_of(all->tensors, all->count)) : -1;
    for (int i = 0; i < all->count; i++) { free(all->names[i]); }
    free(all->names);
    free(all->tensors);
    return rc;
}

//-- values as trees of JSON --------------------------------------------------------------------------------------

static opd_value tree_value(const opd_json *json, int64_t at, const opd_tensor_file *tensors);

/* Returns the tag of a list with these elements: of one kind of number, of tensors, or of any values. */
static opd_tag list_kind(const opd_json *json, int64_t list) {
    opd_tag kind = OPD_TAG_NONE;
    for (int64_t e = opd_json_first(json, list); e >= 0; e = opd_json_next(json, e)) {
        opd_tag is = OPD_TAG_LIST;
        switch (opd_json_kind_of(json, e)) {
        case OPD_JSON_INT: is = OPD_TAG_INTS; break;
        case OPD_JSON_FLOAT: is = OPD_TAG_FLOATS; break;
        case OPD_JSON_BOOL: is = OPD_TAG_BOOLS; break;
        case OPD_JSON_OBJECT: is = opd_json_get(json, e, "tensor") >= 0 ? OPD_TAG_TENSORS : OPD_TAG_LIST; break;
        default: break;
        }
        if (kind != OPD_TAG_NONE && kind != is) { return OPD_TAG_LIST; }
        kind = is;
    }
    return kind == OPD_TAG_NONE ? OPD_TAG_LIST : kind;
}

static opd_value tree_list(const opd_json *json, int64_t list, const opd_tensor_file *tensors) {
    opd_value value = opd_list_new(list_kind(json, list));
    for (int64_t e = opd_json_first(json, list); e >= 0 && opd_ok(); e = opd_json_next(json, e)) {
        opd_list_append(value, tree_value(json, e, tensors));
    }
    return value;
}
static opd_value tree_tuple(const opd_json *json, int64_t list, const opd_tensor_file *tensors) {
    enum { MOST = 256 };
    opd_value parts[MOST];
    int n = 0;
    for (int64_t e = opd_json_first(json, list); e >= 0 && n < MOST && opd_ok(); e = opd_json_next(json, e)) {
        parts[n++] = tree_value(json, e, tensors);
    }
    return opd_tuple_new(parts, n);
}
static opd_value tree_dict(const opd_json *json, int64_t list, const opd_tensor_file *tensors) {
    opd_value value = opd_dict_new();
    for (int64_t e = opd_json_first(json, list); e >= 0 && opd_ok(); e = opd_json_next(json, e)) {
        const int64_t key = opd_json_first(json, e);
        opd_dict_set(value, tree_value(json, key, tensors), tree_value(json, opd_json_next(json, key), tensors));
    }
    return value;
}

/* Reads {"tensor": "in0"} from the .npz file, also if it is stored as bits. */
static opd_value tree_tensor(const char *key, const opd_tensor_file *tensors) {
    if (!tensors) { opd_fail(OPD_ERROR_ARGUMENT, "the tensor '%s' is needed, but there is no .npz beside the .json", key); }
    opd_tensor *tensor = opd_ok() ? tensor_or_bits(tensors, key) : NULL;
    return opd_value_tensor(tensor || !opd_ok() ? tensor : opd_tensor_file_get(tensors, key));
}

/* {"complex": [1.5, -2]} */
static opd_value tree_complex(const opd_json *json, int64_t list) {
    const int64_t first = opd_json_first(json, list), second = opd_json_next(json, first);
    const double pair[2] = {opd_json_double(json, first, 0), opd_json_double(json, second, 0)};
    const opd_value number = opd_value_complex(pair);
    return opd_list_at(opd_tuple_new(&number, 1), 0);
}

/* Reads a value, which belongs to the innermost scope. */
static opd_value tree_value(const opd_json *json, int64_t at, const opd_tensor_file *tensors) {
    int64_t line, column, part;
    switch (opd_json_kind_of(json, at)) {
    case OPD_JSON_NULL: return opd_value_none();
    case OPD_JSON_BOOL: return opd_value_bool(opd_json_bool(json, at, false));
    case OPD_JSON_INT: return opd_value_int(opd_json_int(json, at, 0));
    case OPD_JSON_FLOAT: return opd_value_double(opd_json_double(json, at, 0));
    case OPD_JSON_TEXT: return opd_string_new(opd_json_text(json, at, ""), -1);
    default: break;
    }
    if ((part = opd_json_get(json, at, "tensor")) >= 0) { return tree_tensor(opd_json_text(json, part, ""), tensors); }
    if ((part = opd_json_get(json, at, "list")) >= 0) { return tree_list(json, part, tensors); }
    if ((part = opd_json_get(json, at, "tuple")) >= 0) { return tree_tuple(json, part, tensors); }
    if ((part = opd_json_get(json, at, "v")) >= 0) { return tree_tuple(json, part, tensors); }
    if ((part = opd_json_get(json, at, "complex")) >= 0) { return tree_complex(json, part); }
    if ((part = opd_json_get(json, at, "dict")) >= 0) { return tree_dict(json, part, tensors); }
    opd_json_place(json, at, &line, &column);
    opd_fail(OPD_ERROR_ARGUMENT, "line %lld, byte %lld: this is not a value (see --help)", (long long)line, (long long)column);
    return opd_value_none();
}

static void write_text(FILE *to, const char *text, int64_t length) {
    putc('"', to);
    for (int64_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\') { fprintf(to, "\\%c", c); }
        else if (c < 0x20) { fprintf(to, "\\u%04x", c); }
        else { putc(c, to); }
    }
    putc('"', to);
}

/* Infinities and NaN are written as Python's json writes them. */
static void write_float(FILE *to, double v) {
    if (v != v) { fputs("NaN", to); }
    else if (v - v != 0) { fputs(v > 0 ? "Infinity" : "-Infinity", to); }
    else { print_float(to, v); }
}

static void write_complex(FILE *to, double real, double imaginary) {
    fputs("{\"complex\": [", to);
    write_float(to, real);
    fputs(", ", to);
    write_float(to, imaginary);
    fputs("]}", to);
}

static void write_tree(FILE *to, opd_value value, const char *path, results *tensors);

/* {"list": [...]}: the elements of a list or tuple, by their path; {"namedtuple": "Point", "v": [...]} */
static void write_parts(FILE *to, const char *kind, opd_value value, const char *path, results *tensors) {
    const int64_t count = opd_list_count(value);
    const char *class = opd_value_cell(value) == OPD_CELL_TUPLE ? opd_object_class(value) : NULL;
    const char *dot = class ? strrchr(class, '.') : NULL;
    if (class) { fprintf(to, "{\"namedtuple\": \"%s\", \"v\": [", dot ? dot + 1 : class); }
    else { fprintf(to, "{\"%s\": [", kind); }
    for (int64_t i = 0; i < count && opd_ok(); i++) {
        char below[256];
        snprintf(below, sizeof below, "%s.%lld", path, (long long)i);
        if (i) { fputs(", ", to); }
        write_tree(to, opd_list_at(value, i), below, tensors);
    }
    fputs("]}", to);
}
static void write_dict(FILE *to, opd_value value, const char *path, results *tensors) {
    const int64_t count = opd_list_count(value);
    fputs("{\"dict\": [", to);
    for (int64_t i = 0; i < count && opd_ok(); i++) {
        char key[256], below[256];
        snprintf(key, sizeof key, "%s.key%lld", path, (long long)i);
        snprintf(below, sizeof below, "%s.%lld", path, (long long)i);
        fputs(i ? ", [" : "[", to);
        write_tree(to, opd_dict_key_at(value, i), key, tensors);
        fputs(", ", to);
        write_tree(to, opd_dict_value_at(value, i), below, tensors);
        fputs("]", to);
    }
    fputs("]}", to);
}
static void write_cell(FILE *to, opd_value value, const char *path, results *tensors) {
    int64_t length;
    const char *text;
    switch (opd_value_cell(value)) {
    case OPD_CELL_STR:
        text = opd_string_text(&value, &length);
        write_text(to, text, length);
        break;
    case OPD_CELL_DICT: write_dict(to, value, path, tensors); break;
    case OPD_CELL_TUPLE: write_parts(to, "tuple", value, path, tensors); break;
    case OPD_CELL_LIST: write_parts(to, "list", value, path, tensors); break;
    case OPD_CELL_COMPLEX: write_complex(to, opd_list_at(value, 0).u.d, opd_list_at(value, 1).u.d); break;
    default: opd_fail(OPD_ERROR_ARGUMENT, "%s is an object, which JSON cannot contain", path);
    }
}
static void write_tree(FILE *to, opd_value value, const char *path, results *tensors) {
    char device[64];
    switch (value.tag) {
    case OPD_TAG_TENSOR:
        fputs("{\"tensor\": ", to);
        write_text(to, path, (int64_t)strlen(path));
        fputs("}", to);
        results_add(tensors, path, value.u.t);
        break;
    case OPD_TAG_INT: fprintf(to, "%lld", (long long)value.u.i); break;
    case OPD_TAG_BOOL: fputs(value.u.i ? "true" : "false", to); break;
    case OPD_TAG_FLOAT: write_float(to, value.u.d); break;
    case OPD_TAG_NONE: fputs("null", to); break;
    case OPD_TAG_STR: write_text(to, value.u.s, (int64_t)strlen(value.u.s)); break;
    case OPD_TAG_COMPLEX: write_complex(to, value.u.c[0], value.u.c[1]); break;
    case OPD_TAG_DEVICE: 
        (void)opd_device_print(value.u.device, device, sizeof device);
        fprintf(to, "\"%s\"", device);
        break;
    case OPD_TAG_CELL: write_cell(to, value, path, tensors); break;
    default: write_parts(to, "list", value, path, tensors); break;
    }
}

/* x.json -> x.npz */
static void beside(const char *path, char *buf, size_t cap) {
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    const int length = dot && (!slash || dot > slash) ? (int)(dot - path) : (int)strlen(path);
    snprintf(buf, cap, "%.*s.npz", length, path);
}

//-- checkpoints --------------------------------------------------------------------------------------------------

static int checkpoint_list(const opd_tensor_file *file) {
    for (int64_t i = 0; i < opd_tensor_file_count(file); i++) {
        OPD_SCOPED;
        const char *name = opd_tensor_file_name(file, i);
        opd_value value;
        if (!name) { return -1; }
        if (opd_tensor_file_value_at(file, i, &value)) {
            if (opd_error_code() == OPD_ERROR_MEMORY) { return -1; }
            printf("%s: %s\n", name, opd_error_message());   /* for example, an unsupported dtype */
            opd_error_clear();
            continue;
        }
        fputs(name, stdout);
        if (value.tag == OPD_TAG_TENSOR) {
            putchar(' ');
            print_type(stdout, value.u.t);
        } else {
            fputs(" = ", stdout);
            print_plain(stdout, &value);
        }
        putchar('\n');
    }
    return 0;
}

/* Prints a string in one line and without control characters, at most 60 bytes of it. */
static void print_text(const char *text, size_t length) {
    size_t end = length > 60 ? 57 : length;
    while (end < length && ((unsigned char)text[end] & 0xc0) == 0x80) { end--; }          /* not inside a character */
    putchar('"');
    for (size_t i = 0; i < end; i++) {
        const unsigned char ch = (unsigned char)text[i];
        if (ch == '\n') { fputs("\\n", stdout); }
        else if (ch < 32 || ch == 127) { printf("\\x%02x", ch); }
        else { putchar(ch); }
    }
    fputs(end < length ? "...\"" : "\"", stdout);
}
/* key u32 = 2, key str[319] = "a", "b", "c", ... */
static int gguf_metadata(const opd_tensor_file *file, const char *key) {
    const int64_t count = opd_tensor_file_metadata_count(file, key), shown = count < 0 ? 1 : count < 5 ? count : 4;
    const char *const type = opd_tensor_file_metadata_type(file, key);
    opd_value value = opd_value_none();
    if (strchr("iu", *type) && opd_tensor_file_metadata_value(file, key, &value)) { return -1; }
    print_clean(stdout, key);
    printf(" %s", type);
    if (count >= 0) { printf("[%lld]", (long long)count); }
    fputs(" = ", stdout);
    for (int64_t i = 0; i < shown; i++) {
        double number;
        size_t length;
        if (i) { fputs(", ", stdout); }
        if (strcmp(type, "str") == 0) {
            const char *const text = opd_tensor_file_metadata_text(file, key, i, &length);
            if (!text) { return -1; }
            print_text(text, length);
        } else if (value.tag != OPD_TAG_NONE) {
            const int64_t integer = count < 0 ? value.u.i : value.u.ints[i];
            printf(*type == 'u' ? "%llu" : "%lld", (long long)integer);
        } else if (opd_tensor_file_metadata_number(file, key, i, &number)) {
            return -1;
        } else if (strcmp(type, "bool") == 0) {
            fputs(number != 0 ? "true" : "false", stdout);
        } else {
            printf(strcmp(type, "f32") == 0 ? "%.9g" : "%.17g", number);
        }
    }
    puts(shown < count ? ", ..." : "");
    return 0;
}
static int64_t bytes_of(const opd_tensor *tensor) {
    int64_t bytes;
    const int64_t block = opd_dtype_block(opd_dtype(tensor), &bytes);
    return opd_numel(tensor) / block * bytes;
}
/* Prints the metadata, a line `name dtype [sizes] bytes` for each tensor, and the sum of the bytes. */
static int gguf_list(const opd_tensor_file *file) {
    const char *key;
    int64_t sum = 0;
    for (int64_t i = 0; (key = opd_tensor_file_metadata_key(file, i)) != NULL; i++) {
        if (gguf_metadata(file, key)) { return -1; }
    }
    for (int64_t i = 0; i < opd_tensor_file_count(file); i++) {
        OPD_SCOPED;
        opd_tensor *const tensor = opd_tensor_file_at(file, i);
        if (!tensor) { return -1; }
        print_clean(stdout, opd_tensor_file_name(file, i));
        putchar(' ');
        print_type(stdout, tensor);
        printf(" %lld\n", (long long)bytes_of(tensor));
        sum += bytes_of(tensor);
    }
    printf("%lld tensors, %lld bytes\n", (long long)opd_tensor_file_count(file), (long long)sum);
    return 0;
}

/* Writes the tensors, and prints to stderr which entries cannot be read.  Fails if one of these has tensors, or if
   there is nothing to write because of them. */
static int checkpoint_write(const opd_tensor_file *file, const char *path) {
    results all = {.plain = true};
    int left_out = 0, with_tensors = 0;
    for (int64_t i = 0; i < opd_tensor_file_count(file) && opd_ok(); i++) {
        opd_value value;
        if (opd_tensor_file_value_at(file, i, &value) == 0) {
            if (value.tag != OPD_TAG_TENSOR) { continue; }
            const char *name = opd_tensor_file_name(file, i);
            const bool block = opd_dtype_block(opd_dtype(value.u.t), NULL) > 1;
            if (name) { results_add(&all, *name ? name : "tensor", block ? opd_dequantize(value.u.t) : value.u.t); }
        } else if (opd_error_code() != OPD_ERROR_MEMORY) {
            fprintf(stderr, "left out: %s\n", opd_error_message());
            left_out++;
            with_tensors += strstr(opd_error_message(), "contains tensors") || strstr(opd_error_message(), "dtype");
            opd_error_clear();
        }
    }
    if (opd_ok() && left_out && !all.count) {
        (void)opd_fail(OPD_ERROR_FILE, "nothing is written to %s: no tensor of the file can be read", path);
    }
    if (results_write(&all, path)) { return -1; }
    return !with_tensors ? 0
        : opd_fail(OPD_ERROR_FILE, "%d entries with tensors cannot be read; %s has the other tensors", with_tensors, path);
}

/* gguf: the file is a GGUF file, otherwise another file of tensors. */
static int checkpoint(const options *o, bool gguf) {
    const char *const not_for_it = o->inputs ? "--inputs" : o->method ? "--method" : o->save ? "--save" : o->profile ? "--profile"
        : o->quantize ? "--quantize" : o->cost ? "--cost" : o->repeat ? "--repeat" : NULL;
    if (not_for_it) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s has only tensors, so %s cannot be used", o->model, not_for_it);
    }
    opd_tensor_file *file = opd_tensor_file_open(o->model);
    if (!file) { return -1; }
    int rc = !o->list && o->outputs ? 0 : gguf ? gguf_list(file) : checkpoint_list(file);
    if (rc == 0 && o->outputs) { rc = checkpoint_write(file, o->outputs); }
    opd_tensor_file_close(file);
    return rc;
}

//-- runs and their times -----------------------------------------------------------------------------------------

static double now(void) {
#if defined(TIME_UTC)
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#else                            /* on Windows, clock() counts the time that has passed */
    return (double)clock() / CLOCKS_PER_SEC;
#endif
}
static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Runs N more times, and prints how long a run takes.  Each run changes buffers and inputs that the model writes to. */
static int repeated(const options *o, int (*once)(void *state), void *state) {
    double *times = (double *)malloc((size_t)o->repeat * sizeof *times), shown = now();
    int rc = times ? 0 : opd_fail(OPD_ERROR_MEMORY, "out of memory");
    for (int i = 0; i < o->repeat && rc == 0; i++) {
        OPD_SCOPED;
        const double start = now();
        rc = once(state);
        times[i] = now() - start;
        if (IS_TERMINAL && now() - shown > 0.2) {
            fprintf(stderr, "\r%d of %d", i + 1, o->repeat);
            shown = now();
        }
    }
    if (IS_TERMINAL) { fprintf(stderr, "\r                    \r"); }
    if (rc == 0) {
        const double first = times[0];
        qsort(times, (size_t)o->repeat, sizeof *times, by_size);
        printf("%d runs: the first %.3f ms, median %.3f ms, the least %.3f ms\n", o->repeat, 1e3 * first,
               1e3 * times[o->repeat / 2], 1e3 * times[0]);
    }
    free(times);
    return rc;
}

static int profiled(const options *o, int (*once)(void *state), void *state) {
    opd_profiler_options options = {.order = OPD_PROFILE_BY_SELF};
    if (opd_profiler_begin(&options)) { return -1; }
    int rc = once(state);
    opd_profile *profile = opd_profiler_end();
    if (!profile) { return -1; }
    opd_profile_print(profile);
    if (o->trace && opd_profile_write_trace(profile, o->trace) == 0) { printf("%s: open it in ui.perfetto.dev\n", o->trace); }
    opd_profile_free(profile);
    return rc;
}

static int costed(int (*once)(void *state), void *state) {
    opd_cost *cost = opd_cost_begin();
    int rc = once(state);
    opd_cost_end(cost);
    size_t length = opd_cost_print(cost, NULL, 0);
    char *text = (char *)malloc(length + 1);
    if (text) {
        opd_cost_print(cost, text, length + 1);
        fputs(text, stdout);
    }
    free(text);
    opd_cost_free(cost);
    return rc;
}

/* Returns whether to run: if inputs are given, or if the model has none and an option needs a run.  -1: an error. */
static int runs(const options *o, int ninputs) {
    if (o->inputs) { return 1; }
    if (!o->outputs && !o->save && !o->quantize && !o->profile && !o->cost && !o->repeat) { return 0; }
    return ninputs == 0 ? 1
        : opd_fail(OPD_ERROR_ARGUMENT, "%s takes %d input%s: give them with --inputs FILE (see --help)", o->model, ninputs,
                   ninputs == 1 ? "" : "s");
}
/* Makes the run whose results are written, and then the runs that are timed. */
static int first(const options *o, int (*once)(void *state), void *state) {
    return o->profile ? profiled(o, once, state) : once(state);
}
static int again(const options *o, int (*once)(void *state), void *state) {
    int rc = 0;
    OPD_SCOPE {
        if (o->cost) { rc = costed(once, state); }
        if (rc == 0 && o->repeat > 0) { rc = repeated(o, once, state); }
    }
    return rc;
}

//-- exported programs --------------------------------------------------------------------------------------------

static void list_module(const opd_module *module) {
    static const char *const kinds[] = {"parameter", "buffer", "constant"};
    for (int64_t i = 0; i < opd_module_count(module); i++) {
        const opd_tensor *tensor = opd_module_at(module, i);
        printf("%s %s ", kinds[opd_module_kind_at(module, i)], opd_module_name(module, i));
        print_type(stdout, tensor);
        puts(opd_module_kind_at(module, i) == OPD_MODULE_PARAMETER && !opd_tensor_requires_grad(tensor) ? " (fixed)" : "");
    }
}

static void program_list(const opd_program *program) {
    const char *missing;
    int64_t count;
    printf("program %s\n", opd_program_name(program));
    for (int i = 1; opd_program_file_name(program, i); i++) {
        if (i == 1) { printf("the file has %s", opd_program_file_name(program, 0)); }
        printf(", %s", opd_program_file_name(program, i));
        if (!opd_program_file_name(program, i + 1)) { puts(": --method NAME"); }
    }
    for (int i = 0; i < opd_program_ninputs(program); i++) {
        char sizes[256] = "";
        opd_value fixed;
        printf("input %s", opd_program_input_name(program, i));
        if (opd_program_input_constant(program, i, &fixed) == 1) {
            fputs(" = ", stdout);
            print_plain(stdout, &fixed);
        } else if (opd_program_input_type(program, i, sizes, sizeof sizes)) { printf(" %s", sizes); }
        putchar('\n');
    }
    for (int i = 0; i < opd_program_noutputs(program); i++) { printf("output %s\n", opd_program_output_name(program, i)); }
    list_module(opd_program_module(program));
    for (int64_t i = 0; opd_program_operator(program, i, &count, &missing); i++) {
        const char *name = opd_program_operator(program, i, NULL, NULL);
        printf("%s %s %lld\n", missing ? "missing" : "operator", name, (long long)count);
        if (missing) { printf("    %s\n", missing); }
    }
    for (int64_t i = 0; opd_program_note(program, i); i++) { printf("note: %s\n", opd_program_note(program, i)); }
}

/* If the program takes a number, returns the number in a tensor without dimensions. */
static opd_value as_declared(const opd_program *program, int i, opd_value value) {
    char type[256] = "";
    opd_program_input_type(program, i, type, sizeof type);
    if (value.tag != OPD_TAG_TENSOR) { return value; }
    if (strcmp(type, "int") == 0) { return opd_value_int(opd_item_i64(value.u.t)); }
    if (strcmp(type, "float") == 0) { return opd_value_double(opd_item_f64(value.u.t)); }
    if (strcmp(type, "bool") == 0) { return opd_value_bool(opd_item_i64(value.u.t) != 0); }
    return value;
}
/* Reads in0, in1, ... of the file, for the inputs that are not fixed.  Returns 0, or -1 and sets an error. */
static int program_inputs(const opd_program *program, const char *path, opd_value *inputs) {
    opd_tensor_file *file = opd_tensor_file_open(path);
    for (int i = 0; i < opd_program_ninputs(program) && file && opd_ok(); i++) {
        char key[32];
        if (opd_program_input_constant(program, i, &inputs[i]) == 1) { continue; }
        snprintf(key, sizeof key, "in%d", i);
        opd_tensor *input = tensor_or_bits(file, key);
        if (input) { inputs[i] = as_declared(program, i, opd_value_tensor(input)); }
        else { opd_fail(OPD_ERROR_ARGUMENT, "%s has no %s, the input '%s'", path, key, opd_program_input_name(program, i)); }
    }
    opd_tensor_file_close(file);
    return opd_ok() ? 0 : -1;
}

typedef struct run {
    const options *o;
    opd_program *program;
    opd_value *inputs, *outputs;         /* of the program */
    int ninputs, noutputs;
} run;

static int program_once(void *state) {
    run *r = (run *)state;
    int n = opd_program_run(r->program, r->inputs, r->ninputs, r->outputs, r->noutputs);
    return n < 0 ? -1 : 0;
}

/* Writes out0, ..., in_after0, ... and buf_after.NAME. */
static int program_write(const run *r, const char *path) {
    const opd_module *module = opd_program_module(r->program);
    results all = {0};
    char key[600];
    for (int i = 0; i < r->noutputs && opd_ok(); i++) {
        const opd_value *v = &r->outputs[i];
        snprintf(key, sizeof key, "out%d", i);
        if (v->tag == OPD_TAG_TENSOR) { results_add(&all, key, v->u.t); }
        else if (v->tag == OPD_TAG_INT) { results_add(&all, key, opd_scalar_tensor(*v, OPD_INT64)); }
        else if (v->tag == OPD_TAG_FLOAT) { results_add(&all, key, opd_scalar_tensor(*v, OPD_FLOAT64)); }
        else if (v->tag == OPD_TAG_BOOL) { results_add(&all, key, opd_scalar_tensor(*v, OPD_BOOL)); }
    }
    for (int i = 0; i < r->ninputs && opd_ok(); i++) {
        snprintf(key, sizeof key, "in_after%d", i);
        if (r->inputs[i].tag == OPD_TAG_TENSOR) { results_add(&all, key, r->inputs[i].u.t); }
    }
    for (int64_t i = 0; i < opd_module_count(module) && opd_ok(); i++) {
        if (opd_module_kind_at(module, i) == OPD_MODULE_PARAMETER) { continue; }
        snprintf(key, sizeof key, "buf_after.%s", opd_module_name(module, i));
        results_add(&all, key, opd_module_at(module, i));
    }
    return results_write(&all, path);
}

static void print_quantized(void *user, const opd_quantized *line) {
    char text[600];
    (void)user;
    (void)opd_quantized_print(line, text, sizeof text);
    print_clean(stdout, text);
    (void)putchar('\n');
}
/* Quantises the program, as --quantize says.  Returns 0, or -1 and sets an error. */
static int program_quantize(const run *r) {
    opd_quantize_options how;
    const opd_value *const batches[1] = {r->inputs};
    memset(&how, 0, sizeof how);
    how.layers = r->o->layers;
    how.report = print_quantized;
    how.batches = batches;
    how.nbatches = opd_program_writes(r->program) ? 0 : 1;
    how.ninputs = r->ninputs;
    return opd_quantize_program(r->program, r->o->quantize, &how) < 0 ? -1 : 0;
}

static int program(const options *o) {
    opd_program *loaded = opd_program_load(o->model, o->method);
    if (!loaded) { return -1; }
    const int nin = opd_program_ninputs(loaded), nout = opd_program_noutputs(loaded);
    run r = {o, loaded, (opd_value *)calloc((size_t)nin + 1, sizeof(opd_value)),
             (opd_value *)calloc((size_t)nout + 1, sizeof(opd_value)), nin, nout};
    if (!r.inputs || !r.outputs) { opd_fail(OPD_ERROR_MEMORY, "out of memory"); }
    int needed = 0;
    for (int i = 0; i < nin; i++) { needed += opd_program_input_constant(loaded, i, &r.inputs[i]) != 1; }
    const int run_it = opd_ok() ? runs(o, needed) : -1;
    if (run_it >= 0 && (o->list || !run_it)) { program_list(loaded); }
    if (run_it > 0 && opd_ok() && (!o->inputs || program_inputs(loaded, o->inputs, r.inputs) == 0) &&
        (!o->quantize || program_quantize(&r) == 0) && first(o, program_once, &r) == 0 &&
        (!o->outputs || program_write(&r, o->outputs) == 0) &&
        (!o->save || opd_program_save_all(&loaded, NULL, 1, o->save) == 0)) { again(o, program_once, &r); }
    free(r.inputs);
    free(r.outputs);
    opd_program_free(loaded);
    return opd_ok() ? 0 : -1;
}

//-- compiled models ----------------------------------------------------------------------------------------------

typedef struct compiled_run { opd_aoti *model; opd_tensor **inputs, **outputs; } compiled_run;

static int compiled_once(void *state) {
    compiled_run *r = (compiled_run *)state;
    return opd_aoti_run(r->model, opd_tensors_of(r->inputs, opd_aoti_ninputs(r->model)), r->outputs,
                        opd_aoti_noutputs(r->model)) < 0 ? -1 : 0;
}
static void compiled_list(const opd_aoti *model) {
    static const char *const keys[] = {"AOTI_DEVICE_KEY", "AOTI_PLATFORM", "AOTI_MACHINE", "AOTI_CPU_ISA"};
    printf("compiled %s\n", opd_aoti_name(model));
    for (int i = 0; i < 4; i++) {
        const char *text = opd_aoti_metadata(model, keys[i]);
        if (text) { printf("for %s\n", text); }
    }
    for (int i = 0; i < opd_aoti_ninputs(model); i++) { printf("input %s\n", opd_aoti_input_name(model, i)); }
    for (int i = 0; i < opd_aoti_noutputs(model); i++) { printf("output %s\n", opd_aoti_output_name(model, i)); }
    for (int64_t i = 0; i < opd_aoti_constants(model); i++) {
        opd_aoti_constant c;
        if (opd_aoti_constant_at(model, i, &c)) { return; }
        printf("%s %s %s %lld bytes\n", c.folded ? "folded" : c.buffer ? "buffer" : "constant", c.name,
               opd_dtype_name(c.dtype), (long long)c.bytes);
    }
}
/* Reads in0, in1, ... of the file.  Returns 0, or -1 and sets an error. */
static int compiled_inputs(const opd_aoti *model, const char *path, opd_tensor **inputs) {
    opd_tensor_file *file = opd_tensor_file_open(path);
    for (int i = 0; i < opd_aoti_ninputs(model) && file && opd_ok(); i++) {
        char key[32];
        snprintf(key, sizeof key, "in%d", i);
        opd_tensor *input = tensor_or_bits(file, key);
        if (input) { inputs[i] = input; }
        else { opd_fail(OPD_ERROR_ARGUMENT, "%s has no %s, the input '%s'", path, key, opd_aoti_input_name(model, i)); }
    }
    opd_tensor_file_close(file);
    return opd_ok() ? 0 : -1;
}
/* Writes out0, ..., in_after0, ... and buf_after.NAME. */
static int compiled_write(const compiled_run *r, const char *path) {
    results all = {0};
    char key[600];
    for (int i = 0; i < opd_aoti_noutputs(r->model) && opd_ok(); i++) {
        snprintf(key, sizeof key, "out%d", i);
        if (r->outputs[i]) { results_add(&all, key, r->outputs[i]); }       /* else None */
    }
    for (int i = 0; i < opd_aoti_ninputs(r->model) && opd_ok(); i++) {
        snprintf(key, sizeof key, "in_after%d", i);
        results_add(&all, key, r->inputs[i]);
    }
    for (int64_t i = 0; i < opd_aoti_constants(r->model) && opd_ok(); i++) {
        opd_aoti_constant c;
        if (opd_aoti_constant_at(r->model, i, &c) || !c.buffer) { continue; }
        const int mark = opd_error_mark();
        opd_tensor *tensor = opd_aoti_constant_get(r->model, c.name);
        opd_error_rewind(mark);          /* older models lack this function */
        snprintf(key, sizeof key, "buf_after.%s", c.name);
        if (tensor) { results_add(&all, key, tensor); }
    }
    return results_write(&all, path);
}
static int compiled(const options *o) {
    const opd_aoti_options which = {.name = o->method};
    if (!o->code) {
        return opd_fail(OPD_ERROR_FORBIDDEN, "%s is machine code, which can do anything that you may do. If you trust "
                        "its source, run it with --code.", o->model);
    }
    if (o->save || o->quantize) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s is compiled: it cannot be %s", o->model, o->save ? "saved" : "quantised");
    }
    opd_aoti *model = opd_aoti_load(o->model, &which);
    if (!model) { return -1; }
    compiled_run r = {model, (opd_tensor **)calloc((size_t)opd_aoti_ninputs(model) + 1, sizeof(opd_tensor *)),
                      (opd_tensor **)calloc((size_t)opd_aoti_noutputs(model) + 1, sizeof(opd_tensor *))};
    if (!r.inputs || !r.outputs) { opd_fail(OPD_ERROR_MEMORY, "out of memory"); }
    const int run_it = opd_ok() ? runs(o, opd_aoti_ninputs(model)) : -1;
    if (run_it >= 0 && (o->list || !run_it)) { compiled_list(model); }
    if (run_it > 0 && opd_ok() && (!o->inputs || compiled_inputs(model, o->inputs, r.inputs) == 0) &&
        first(o, compiled_once, &r) == 0 && (!o->outputs || compiled_write(&r, o->outputs) == 0)) {
        again(o, compiled_once, &r);
    }
    free(r.inputs);
    free(r.outputs);
    opd_aoti_free(model);
    return opd_ok() ? 0 : -1;
}
/* Whether a file is a shared library. */
static bool is_library(const char *path) {
    char head[4] = "";
    FILE *file = fopen(path, "rb");
    const bool elf = file && fread(head, 1, 4, file) == 4 && memcmp(head, "\177ELF", 4) == 0;
    if (file) { fclose(file); }
    return elf;
}

//-- TorchScript --------------------------------------------------------------------------------------------------

typedef struct script_run {
    const opd_script *script;
    const char *method;
    opd_value *args, result;
    int nargs;
} script_run;

static int script_once(void *state) {
    script_run *r = (script_run *)state;
    return opd_script_run(r->script, r->method, r->args, r->nargs, &r->result);
}

static void script_list(const opd_script *script) {
    char type[512];
    for (int i = 0; i < opd_script_count(script) && opd_ok(); i++) {
        const char *name = opd_script_name(script, i);
        const int n = opd_script_nargs(script, name);
        printf("method %s(", name);
        for (int k = 0; k < n && opd_ok(); k++) {
            opd_script_arg_type(script, name, k, type, sizeof type);
            printf("%s%s: %s", k ? ", " : "", opd_script_arg_name(script, name, k), type);
        }
        opd_script_arg_type(script, name, -1, type, sizeof type);
        printf(") -> %s\n", type);
    }
    if (opd_script_module(script)) { list_module(opd_script_module(script)); }
    int64_t count;
    bool missing;
    for (int64_t i = 0; opd_script_operator(script, i, &count, &missing); i++) {
        printf("%s %s %lld\n", missing ? "missing" : "operator", opd_script_operator(script, i, NULL, NULL), (long long)count);
    }
}

/* Reads arguments from {"in": [...]}, in memory that the caller frees.  Returns 0, or -1 and sets an error. */
static int script_inputs(const char *path, script_run *r) {
    char npz[1024];
    beside(path, npz, sizeof npz);
    opd_json *json = opd_json_load(path);
    FILE *there = json ? fopen(npz, "rb") : NULL;   /* the file is missing if there are no tensors */
    opd_tensor_file *tensors = there ? opd_tensor_file_open(npz) : NULL;
    const int64_t in = opd_json_get(json, 0, "in");
    if (there) { fclose(there); }
    if (json && opd_ok() && opd_json_kind_of(json, in) != OPD_JSON_LIST) {
        opd_fail(OPD_ERROR_FILE, "%s has no list \"in\"", path);
    }
    r->args = (opd_value *)calloc((size_t)opd_json_count(json, in) + 1, sizeof *r->args);
    for (int64_t e = opd_json_first(json, in); e >= 0 && r->args && opd_ok(); e = opd_json_next(json, e)) {
        r->args[r->nargs++] = tree_value(json, e, tensors);
    }
    opd_tensor_file_close(tensors);
    opd_json_free(json);
    return opd_ok() && r->args ? 0 : -1;
}

/* Writes {"out": tree}, and the tensors to the .npz file. */
static int script_write(const script_run *r, const char *path) {
    char npz[1024];
    results all = {0};
    beside(path, npz, sizeof npz);
    if (strcmp(path, npz) == 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the results of TorchScript are a .json and an .npz beside it: give "
                        "the name of the .json", path);
    }
    FILE *to = fopen(path, "w");
    if (!to) { return opd_fail(OPD_ERROR_FILE, "%s cannot be written", path); }
    fputs("{\"out\": ", to);
    write_tree(to, r->result, "out", &all);
    fputs("}\n", to);
    if (fclose(to)) { opd_fail(OPD_ERROR_FILE, "%s cannot be written", path); }
    if (results_write(&all, npz) == 0) { return 0; }
    remove(path);                        /* do not leave an incomplete file */
    return -1;
}

static int script(const options *o) {
    if (o->quantize) { return opd_fail(OPD_ERROR_ARGUMENT, "%s is TorchScript: only exported programs can be quantised", o->model); }
    const opd_script_options trust = {.run_setstate = o->code};
    opd_script *loaded = opd_script_load_with(o->model, &trust);
    script_run r = {loaded, o->method, NULL, opd_value_none(), 0};
    if (!loaded) { return -1; }
    const int needed = runs(o, 0) > 0 ? opd_script_nargs(loaded, o->method) : 0, run_it = opd_ok() ? runs(o, needed) : -1;
    if (o->method && opd_ok()) { opd_script_nargs(loaded, o->method); }     /* fails if there is no such method */
    if (run_it >= 0 && opd_ok() && (o->list || !run_it)) { script_list(loaded); }
    if (run_it > 0 && opd_ok() && (!o->inputs || script_inputs(o->inputs, &r) == 0) && first(o, script_once, &r) == 0 &&
        (!o->outputs || script_write(&r, o->outputs) == 0) && (!o->save || opd_script_save(loaded, o->save) == 0)) {
        again(o, script_once, &r);
    }
    free(r.args);
    opd_script_free(loaded);
    return opd_ok() ? 0 : -1;
}

/* Reads the command line.  Returns 0, or -1 and sets an error. */
static int read_options(int argc, char **argv, options *o) {
    for (int i = 1; i < argc; i++) {
        static const char *const names[] = {"--inputs", "--outputs", "--method", "--save", "--repeat", "--load", "--quantize", "--layers"};
        const char *value = NULL, **const values[] = {&o->inputs, &o->outputs, &o->method, &o->save, &value, &value, &o->quantize, &o->layers};
        int k = 0;
        while (k < 8 && strcmp(argv[i], names[k]) != 0) { k++; }
        if (k < 8 && (i + 1 == argc || argv[i + 1][0] == '-')) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s needs an argument (see --help)", names[k]);
        }
        if (k < 8) {
            *values[k] = argv[++i];
            if (k == 5 && o->nload == 16) { return opd_fail(OPD_ERROR_ARGUMENT, "--load: at most 16 libraries can be loaded"); }
            if (k == 5) { o->load[o->nload++] = value; }
            if (k == 4 && ((o->repeat = atoi(value)) <= 0 || o->repeat > 100000000)) {
                return opd_fail(OPD_ERROR_ARGUMENT, "--repeat needs a number of at least 1, not '%s'", value);
            }
        } else if (strcmp(argv[i], "--list") == 0) { o->list = true; }
        else if (strcmp(argv[i], "--code") == 0) { o->code = true; }
        else if (strcmp(argv[i], "--cost") == 0) { o->cost = true; }
        else if (strcmp(argv[i], "--profile") == 0) {
            o->profile = true;
            if (o->model && i + 1 < argc && argv[i + 1][0] != '-') { o->trace = argv[++i]; }
        } else if (argv[i][0] != '-' && !o->model) { o->model = argv[i]; }
        else { return opd_fail(OPD_ERROR_ARGUMENT, "'%s' is not understood (see --help)", argv[i]); }
    }
    if (o->model && o->save && strcmp(o->model, o->save) == 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "--save needs another file than %s, which is still in use", o->model);
    }
    return o->model ? 0 : opd_fail(OPD_ERROR_ARGUMENT, "the model is missing (see --help)");
}

/* Loads a library of operators: a plug-in of this library, or an extension of PyTorch. */
static void load(const char *path) {
    char first[600];
    const int mark = opd_error_mark();
    if (opd_plugin_load(path)) { return; }
    snprintf(first, sizeof first, "%s", opd_error_message());
    opd_error_rewind(mark);
    if (opd_extension_load(path) >= 0) { return; }
    char second[600];
    snprintf(second, sizeof second, "%s", opd_error_message());
    opd_error_rewind(mark);
    opd_fail(OPD_ERROR_FILE, "--load %s: the file is neither a plug-in (%s) nor an extension of PyTorch (%s)", path, first, second);
}

/* Prints why this program cannot read a file. */
static void unknown(const char *path) {
    unsigned char head[8];
    char text[40] = "";
    FILE *file = fopen(path, "rb");
    const size_t count = file ? fread(head, 1, sizeof head, file) : 0;
    if (file) { fclose(file); }
    if (!count) { opd_fail(OPD_ERROR_FILE, "%s: the file is empty", path); }
    for (size_t i = 0; i < count; i++) { snprintf(text + 3 * i, sizeof text - 3 * i, " %02x", head[i]); }
    if (count > 1 && memcmp(head, "PK", 2) == 0) {
        opd_fail(OPD_ERROR_FILE, "%s: the zip file has no data.pkl, program, model or .npy in it, so it is not a file "
                 "of PyTorch", path);
    } else if (count) {
        opd_fail(OPD_ERROR_FILE, "%s: this is not a file of PyTorch: it begins with the bytes%s, but a zip file begins "
                 "with 50 4b, an old checkpoint with 80 02, and a compiled model with 7f 45 4c 46", path, text);
    }
}

int main(int argc, char **argv) {
    options o = {0};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            usage();
            return 0;
        }
    }
    if (read_options(argc, argv, &o)) { return opd_finish(); }
    opd_grad_mode_set(false);
    for (int i = 0; i < o.nload && opd_ok(); i++) { load(o.load[i]); }
    if (!o.code) { opd_code_forbid(); }
    OPD_SCOPE {
        switch (!opd_ok() ? OPD_FILE_NONE : is_library(o.model) ? OPD_FILE_COMPILED : opd_file_kind_of(o.model)) {
        case OPD_FILE_COMPILED: compiled(&o); break;
        case OPD_FILE_PROGRAM: program(&o); break;
        case OPD_FILE_SCRIPT: script(&o); break;
        case OPD_FILE_CHECKPOINT: case OPD_FILE_SAFETENSORS: case OPD_FILE_NPZ: checkpoint(&o, false); break;
        case OPD_FILE_GGUF: checkpoint(&o, true); break;
        default: if (opd_ok()) { unknown(o.model); }
        }
    }
    return finish();
}
