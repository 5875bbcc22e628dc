/* Converts files of weights: checkpoints of PyTorch (.pt), safetensors, .npz and GGUF.
   cc -O2 examples/convert_weights.c -o convert_weights -lm && ./convert_weights tests/golden/gguf/gpt2_BF16.gguf gpt2.gguf --type q8_0
   ci: tests/golden/gguf/gpt2_BF16.gguf $tmp/gpt2.gguf --type q8_0

   Weights with rows that fill whole blocks get the dtype of --type; all others, such as biases, keep theirs.  A GGUF file
   becomes floats again: weights in blocks are dequantised.  Names are kept as they are: llama.cpp can only run a file
   whose tensors have its names, and whose metadata describes a model. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    const char *in, *out, *type;
} options;

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
static void usage(void) {
    fputs("usage: convert_weights IN OUT [--type DTYPE]\n"
          "  IN            .safetensors, .pt, .npz or .gguf; the contents tell the kind\n"
          "  OUT           .gguf, .safetensors, .npz or .pt; the ending tells the kind\n"
          "  --type DTYPE  the dtype of weights: float32, float16, bfloat16, or for .gguf also one in blocks, such as q8_0,\n"
          "                q4_0 or q4_K.  Without it, tensors keep their dtype; if OUT is no .gguf, blocks become float32.\n"
          "  Prints each tensor, how many bytes all tensors have before and after, and what OUT cannot hold.\n"
          "  exit status   0, or 1 with one line that describes the error\n", stdout);
}
static int read_options(int argc, char **argv, options *o) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--type") == 0 && i + 1 < argc) { o->type = argv[++i]; }
        else if (argv[i][0] == '-' || o->out) {
            return opd_fail(OPD_ERROR_ARGUMENT, "unknown argument %s: see --help", argv[i]);
        } else if (o->in) { o->out = argv[i]; } else { o->in = argv[i]; }
    }
    return o->out ? 0 : opd_fail(OPD_ERROR_ARGUMENT, "usage: convert_weights IN OUT [--type DTYPE]; see --help");
}
static bool ends_with(const char *text, const char *end) {
    const size_t length = strlen(text), its = strlen(end);
    return length >= its && strcmp(text + length - its, end) == 0;
}
static bool same_name(const char *a, const char *b) {
    for (; *a && tolower((unsigned char)*a) == tolower((unsigned char)*b); a++, b++) { }
    return !*a && !*b;
}
/* Can weights get this dtype?  Tries it with one block. */
static bool can_be_written(opd_scalar_type dtype) {
    const int64_t block = opd_dtype_block(dtype, NULL);
    bool can = false;
    if (block < 1 || (block == 1 && !opd_dtype_is_floating(dtype))) { return false; }
    OPD_SCOPE {
        const int mark = opd_error_mark();
        can = opd_to_dtype(opd_zeros(OPD_INTS(1, block), OPD_FLOAT32), dtype) != NULL;
        (void)opd_error_rewind(mark);
    }
    return can;
}
/* Returns the dtype with that name, or OPD_DTYPE_NONE and sets an error. */
static opd_scalar_type dtype_named(const char *name) {
    char all[600] = "";
    bool known = false;
    for (int dtype = 0; dtype < 128; dtype++) {
        if (!opd_dtype_block((opd_scalar_type)dtype, NULL)) { continue; }
        const char *const its = opd_dtype_name((opd_scalar_type)dtype);
        const bool same = same_name(its, name), can = can_be_written((opd_scalar_type)dtype);
        const size_t used = strlen(all);
        if (same && can) { return (opd_scalar_type)dtype; }
        known |= same;
        if (can) { (void)snprintf(all + used, sizeof all - used, "%s%s", used ? ", " : "", its); }
    }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "--type %s: %s; use one of %s", name,
                   known ? "weights cannot be written in this dtype" : "there is no such dtype", all);
    return OPD_DTYPE_NONE;
}
static bool in_blocks(opd_scalar_type dtype) { return opd_dtype_block(dtype, NULL) > 1; }
static int64_t bytes_of(const opd_tensor *tensor) {
    int64_t bytes;
    const int64_t block = opd_dtype_block(opd_dtype(tensor), &bytes);
    return opd_numel(tensor) / block * bytes;
}

/* Returns the tensor with the dtype that it shall have in the new file.  type: the dtype of --type, or OPD_DTYPE_NONE. */
static opd_tensor *converted(opd_tensor *tensor, opd_scalar_type type, bool to_gguf) {
    const int ndim = opd_ndim(tensor);
    const bool block = in_blocks(opd_dtype(tensor)), floating = block || opd_dtype_is_floating(opd_dtype(tensor));
    const bool fits = type != OPD_DTYPE_NONE && ndim >= 2 && opd_size(tensor, ndim - 1) % opd_dtype_block(type, NULL) == 0;
    if (!floating || (fits && opd_dtype(tensor) == type)) { return tensor; }
    if (block && (fits || !to_gguf)) { tensor = opd_dequantize(tensor); }
    return fits ? opd_to_dtype(opd_contiguous(tensor), type) : tensor;
}
/* The contents of the new file. */
typedef struct contents {
    const char **names, **keys;
    char **keys_of_types;                          /* keys with the types of their values: "llama.block_count:u32" */
    opd_tensor **tensors;
    opd_value *values, *tensor_values;
    int64_t count, nkeys, kept;                    /* kept: of the keys, those that the new file gets */
} contents;
static void *allocate(int64_t count, size_t size) {
    void *const memory = calloc((size_t)count + 1, size);
    if (!memory) { (void)opd_fail(OPD_ERROR_MEMORY, "out of memory"); }
    return memory;
}
static int contents_new(contents *all, const opd_tensor_file *file) {
    while (opd_tensor_file_metadata_key(file, all->nkeys)) { all->nkeys++; }
    const int64_t count = opd_tensor_file_count(file);
    all->names = (const char **)allocate(count, sizeof *all->names);
    all->tensors = (opd_tensor **)allocate(count, sizeof *all->tensors);
    all->tensor_values = (opd_value *)allocate(count, sizeof *all->tensor_values);
    all->keys = (const char **)allocate(2 * all->nkeys, sizeof *all->keys);
    all->keys_of_types = (char **)allocate(all->nkeys, sizeof *all->keys_of_types);
    all->values = (opd_value *)allocate(all->nkeys, sizeof *all->values);
    return opd_ok() ? 0 : -1;
}
static void contents_free(contents *all) {
    for (int64_t i = 0; all->keys_of_types && i < all->nkeys; i++) { free(all->keys_of_types[i]); }
    free(all->keys_of_types);
    free((void *)all->names);
    free((void *)all->keys);
    free((void *)all->tensors);
    free(all->values);
    free(all->tensor_values);
}
/* Reads the metadata for the file that is written: all of it for GGUF; if `strings` is true (safetensors), only strings;
   else nothing, because the format has no metadata.  Prints what is left out. */
static int metadata_of(const opd_tensor_file *file, contents *all, bool to_gguf, bool strings) {
    int64_t kept = 0, dropped = 0;
    for (int64_t i = 0; i < all->nkeys; i++) {
        const char *const key = opd_tensor_file_metadata_key(file, i);
        const char *const type = opd_tensor_file_metadata_type(file, key);
        const size_t length = strlen(key) + strlen(type) + 2;
        opd_value *const value = &all->values[kept];
        if (opd_tensor_file_metadata_value(file, key, value)) { return -1; }
        if (to_gguf && strncmp(key, "split.", 6) == 0) { continue; }       /* the new file has all parts of a model */
        if (!to_gguf && (!strings || value->tag != OPD_TAG_STR)) {
            fputs(dropped++ ? ", " : "left out, because the new file cannot hold it: the metadata ", stderr);
            print_clean(stderr, key);
        } else if (strings) {
            all->keys[2 * kept] = key;
            all->keys[2 * kept++ + 1] = value->u.s;
        } else {
            all->keys_of_types[kept] = (char *)allocate((int64_t)length, 1);
            if (!all->keys_of_types[kept]) { return -1; }
            (void)snprintf(all->keys_of_types[kept], length, "%s:%s", key, type);
            all->keys[kept] = all->keys_of_types[kept];
            kept++;
        }
    }
    all->kept = kept;
    if (dropped) { fputc('\n', stderr); }
    return 0;
}
/* Puts the name of a tensor in front of the text of the pending error. */
static int error_of(const char *name) {
    char text[1024];
    const opd_code code = opd_error_code();
    (void)snprintf(text, sizeof text, "%s", opd_error_message());
    opd_error_clear();
    return opd_fail(code, "the tensor '%.200s': %s", name, text);
}
static int tensors_of(const opd_tensor_file *file, contents *all, opd_scalar_type type, bool to_gguf) {
    int64_t before = 0, after = 0;
    for (int64_t i = 0; i < opd_tensor_file_count(file); i++) {
        opd_value value;
        const char *const name = opd_tensor_file_name(file, i);
        if (!name || opd_tensor_file_value_at(file, i, &value)) { return -1; }
        if (value.tag != OPD_TAG_TENSOR) {
            fputs("left out: ", stderr);
            print_clean(stderr, name);
            fputs(" is not a tensor\n", stderr);
            continue;
        }
        opd_tensor *const tensor = converted(value.u.t, type, to_gguf);
        if (!tensor) { return error_of(name); }
        print_clean(stdout, name);
        printf("%*s %-10s %s\n", strlen(name) < 40 ? 40 - (int)strlen(name) : 0, "",
               opd_dtype_name(opd_dtype(value.u.t)), opd_dtype_name(opd_dtype(tensor)));
        before += bytes_of(value.u.t);
        after += bytes_of(tensor);
        all->names[all->count] = name;
        all->tensor_values[all->count] = opd_value_tensor(tensor);
        all->tensors[all->count++] = tensor;
    }
    printf("%lld tensors: %lld bytes, now %lld\n", (long long)all->count, (long long)before, (long long)after);
    return 0;
}
static int convert(const options *o) {
    contents all;
    const bool to_gguf = ends_with(o->out, ".gguf"), to_safetensors = ends_with(o->out, ".safetensors");
    const bool to_npz = ends_with(o->out, ".npz"), to_checkpoint = ends_with(o->out, ".pt") || ends_with(o->out, ".pth");
    const opd_scalar_type type = o->type ? dtype_named(o->type) : OPD_DTYPE_NONE;
    if (!to_gguf && !to_safetensors && !to_npz && !to_checkpoint) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the name must end with .gguf, .safetensors, .npz or .pt", o->out);
    }
    if (opd_ok() && in_blocks(type) && !to_gguf) {
        return opd_fail(OPD_ERROR_ARGUMENT, "only a .gguf file has the dtype %s", o->type);
    }
    opd_tensor_file *const file = opd_ok() ? opd_tensor_file_open(o->in) : NULL;
    if (!file) { return -1; }
    memset(&all, 0, sizeof all);
    int rc = contents_new(&all, file) || metadata_of(file, &all, to_gguf, to_safetensors) ? -1 : 0;
    if (rc == 0) { rc = tensors_of(file, &all, type, to_gguf); }
    const opd_tensors tensors = opd_tensors_of(all.tensors, all.count);
    if (rc == 0) {
        rc = to_gguf ? opd_gguf_save(o->out, all.names, tensors, all.keys, all.values, all.kept)
            : to_safetensors ? opd_safetensors_save(o->out, all.names, tensors, all.keys[0] ? all.keys : NULL)
            : to_npz ? opd_npz_save(o->out, all.names, tensors)
            : opd_checkpoint_file_save(o->out, all.names, all.tensor_values, all.count);
    }
    contents_free(&all);
    opd_tensor_file_close(file);
    return rc;
}

int main(int argc, char **argv) {
    options o = {NULL, NULL, NULL};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            usage();
            return 0;
        }
    }
    opd_grad_mode_set(false);
    OPD_SCOPE {
        if (read_options(argc, argv, &o) == 0) { (void)convert(&o); }
    }
    return finish();
}
