/* A function of an image library as an operator: crops a photograph with ImageMagick's MagickWand.
   cc -O2 examples/crop.c -o crop $(pkg-config --cflags --libs MagickWand) -lm && ./crop
   ci: examples/data/cat.jpg $tmp/before.png $tmp/after.png

   opdispatch cannot see what the library does.  Therefore, the plain C function fails while a graph is recorded: the
   numbers that it reads would become constants of the graph.  The operator is one node of the graph, computes sizes
   without numbers, has a derivative and runs under vmap.  The library computes with 16 bits per channel, so values are
   clamped to [0, 1] and rounded.
   Needs the development files of MagickWand: libmagickwand-dev, pkg-config of Debian. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <stdio.h>
#include <string.h>
#if __has_include(<MagickWand/MagickWand.h>)
#include <MagickWand/MagickWand.h>      /* ImageMagick 7 */
#else
#include <wand/MagickWand.h>
#endif

static int magick_failed(MagickWand *wand) {
    ExceptionType severity;
    char *text = MagickGetException(wand, &severity);
    (void)opd_fail(OPD_ERROR_USER, "MagickWand: %s", text);
    MagickRelinquishMemory(text);
    return -1;
}

/* Sets *type to MagickWand's type for the elements of a picture.  Returns 0, or -1 and sets an error. */
static int storage_of(opd_tensor *pic, StorageType *type) {
    const opd_scalar_type dtype = opd_dtype(pic);
    *type = dtype == OPD_FLOAT64 ? DoublePixel : dtype == OPD_FLOAT32 ? FloatPixel : CharPixel;
    if (dtype != OPD_FLOAT64 && dtype != OPD_FLOAT32 && dtype != OPD_UINT8) {
        return opd_fail(OPD_ERROR_DTYPE, "pic must be float32, float64 or uint8, got %s", opd_dtype_name(dtype));
    }
    if (opd_ndim(pic) != 3 || opd_sizes(pic)[0] != 3) {
        return opd_fail(OPD_ERROR_SHAPE, "pic must have sizes (3, height, width)");
    }
    return 0;
}

/* Crops pic to the box (left, top, right, bottom), and writes the result to out, which must be contiguous. */
static int magick_crop(opd_tensor *pic, const int64_t *box, opd_tensor *out) {
    const size_t width = (size_t)(box[2] - box[0]), height = (size_t)(box[3] - box[1]);
    opd_tensor *pixels = opd_contiguous(opd_permute(pic, OPD_INTS(1, 2, 0)));
    const void *from = opd_data(pixels);
    void *to = opd_data(out);
    StorageType type;
    MagickWand *wand;
    int rc = 0;
    if (!opd_ok() || storage_of(pic, &type)) { return -1; }
    wand = NewMagickWand();
    if (!MagickConstituteImage(wand, (size_t)opd_sizes(pic)[2], (size_t)opd_sizes(pic)[1], "RGB", type, from) ||
        !MagickCropImage(wand, width, height, (ssize_t)box[0], (ssize_t)box[1]) ||
        !MagickExportImagePixels(wand, 0, 0, width, height, "RGB", type, to)) { rc = magick_failed(wand); }
    DestroyMagickWand(wand);
    return rc;
}

/* ---- the operator ---- */

/* Makes the result.  The kernel and the fake kernel must give it the same sizes, strides and dtype. */
static opd_tensor *crop_result(opd_call *call, opd_device device) {
    opd_tensor *pic = opd_arg_tensor(call, 0);
    const opd_ints box = opd_arg_ints(call, 1);
    const int64_t *s = opd_sizes(pic), *b = box.data;
    StorageType type;
    if (storage_of(pic, &type)) { return NULL; }
    if (box.n != 4 || b[0] < 0 || b[1] < 0 || b[2] > s[2] || b[3] > s[1] || b[0] >= b[2] || b[1] >= b[3]) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "box must be left, top, right, bottom with left < right <= %lld and "
                       "top < bottom <= %lld", (long long)s[2], (long long)s[1]);
        return NULL;
    }
    const int64_t sizes[] = {3, b[3] - b[1], b[2] - b[0]}, strides[] = {1, sizes[2] * 3, 3};
    return opd_result_strided(call, 0, sizes, strides, 3, opd_dtype(pic), device);
}
static int crop_fake(opd_call *call) { return crop_result(call, opd_tensor_device(opd_arg_tensor(call, 0))) ? 0 : -1; }

/* For any device: copies the tensor to the CPU, crops it there, and copies the result back. */
static int crop_any(opd_call *call) {
    const opd_device cpu = opd_device_make(OPD_CPU, -1);
    opd_tensor *pic = opd_arg_tensor(call, 0), *out = crop_result(call, cpu);
    if (!out || magick_crop(opd_to_device(pic, cpu, opd_dtype(pic)), opd_arg_ints(call, 1).data, out)) { return -1; }
    return opd_return_tensor(call, opd_to_device(out, opd_tensor_device(pic), opd_dtype(pic)));
}

/* The gradient of pic: zeros, with the gradient of the result inside the box. */
static int crop_backward(opd_backward_call *bw) {
    const opd_value box = opd_bw_value(bw, 1);
    const int64_t *b = box.u.ints, *s = opd_bw_sizes(bw, 0).data;
    return opd_bw_return(bw, 0, opd_constant_pad_nd(opd_bw_grad(bw, 0),
                                                    OPD_INTS(b[0], s[2] - b[2], b[1], s[1] - b[3])));
}

OPD_LIBRARY(mylib, lib) {
    opd_define(lib, &(opd_op_desc){
        .schema = "crop(Tensor pic, int[] box) -> Tensor", .any = crop_any, .fake = crop_fake,
        .backward = crop_backward, .save = "pic.sizes", .vmap = OPD_BATCH_LOOP });
}
static opd_tensor *crop(opd_tensor *pic, opd_ints box) {
    static opd_op *op;
    return OPD_CALL(OPD_OP(&op, "mylib::crop"), pic, box);
}

/* ---- uses of the operator ---- */

static const int64_t face[] = {60, 40, 190, 140};

static int plain(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_permute(opd_zeros(OPD_INTS(face[3] - face[1], face[2] - face[0], 3), OPD_FLOAT32), OPD_INTS(2, 0, 1));
    return magick_crop(in[0], face, out[0]) ? -1 : 1;
}
static int registered(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_sqrt(crop(opd_flip(in[0], OPD_INTS(2)), opd_ints_of(face, 4)));        /* mirrored, and lighter */
    return out[0] ? 1 : -1;
}
static int some(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = crop(in[0], OPD_INTS(1, 1, 4, 3));
    return out[0] ? 1 : -1;
}

static opd_tensor *read_picture(const char *path) {
    MagickWand *wand = NewMagickWand();
    opd_tensor *pixels = NULL;
    if (MagickReadImage(wand, path)) {
        const size_t h = MagickGetImageHeight(wand), w = MagickGetImageWidth(wand);
        pixels = opd_zeros(OPD_INTS((int64_t)h, (int64_t)w, 3), OPD_FLOAT32);
        if (pixels) { MagickExportImagePixels(wand, 0, 0, w, h, "RGB", FloatPixel, opd_data(pixels)); }
    } else { magick_failed(wand); }
    DestroyMagickWand(wand);
    return opd_permute(pixels, OPD_INTS(2, 0, 1));
}
static void write_picture(opd_tensor *pic, const char *path) {
    opd_tensor *pixels = opd_contiguous(opd_permute(opd_detach(pic), OPD_INTS(1, 2, 0)));
    MagickWand *wand = NewMagickWand();
    if (opd_ok() && (!MagickConstituteImage(wand, (size_t)opd_sizes(pixels)[1], (size_t)opd_sizes(pixels)[0], "RGB",
                                            FloatPixel, opd_data(pixels)) ||
                     !MagickWriteImage(wand, path))) { magick_failed(wand); }
    else { printf("%s: %d x %d\n", path, (int)opd_sizes(pic)[2], (int)opd_sizes(pic)[1]); }
    DestroyMagickWand(wand);
}
static bool same(const char *what, opd_tensor *a, opd_tensor *b) {
    opd_tensor *most = opd_max(opd_abs(opd_sub(a, b)));
    const bool is = most && opd_item_f64(most) < 1e-4;
    printf("%-60s %s\n", what, is ? "yes" : "NO");
    return is || opd_fail(OPD_ERROR_USER, "the check failed: %s", what);
}

static void graphs(opd_tensor *pic) {
    char text[4000];
    const char *name = "pic";
    opd_tensor *mirrored = opd_flip(pic, OPD_INTS(2)), *got, *want;
    opd_graph *graph = opd_graph_trace(plain, NULL, &pic, 1, NULL);
    printf("\nThe plain function is refused: %s\n", opd_error_message());
    opd_error_clear();
    opd_graph_free(graph);
    if (graph) { opd_fail(OPD_ERROR_USER, "the plain function was not refused"); return; }
    graph = opd_graph_trace(registered, NULL, &pic, 1, &(opd_trace_options){.names = &name, .nnames = 1});
    if (!graph) { return; }
    opd_graph_print(graph, text, sizeof text);
    printf("\nThe operator is captured:\n%s\n", text);
    opd_graph_run(graph, &mirrored, 1, &got, 1);
    registered(NULL, &mirrored, 1, &want);
    same("another picture through the graph gives its own result", got, want);
    opd_graph_free(graph);
}

/* Tests the operator with the inputs of PyTorch's tutorial: both dtypes, with and without a gradient.  opcheck also
   tries other sizes. */
static void checks(void) {
    static const struct { int64_t size; opd_scalar_type dtype; bool grad; int64_t box[4]; } examples[] = {
        {64, OPD_FLOAT32, false, {0, 0, 10, 10}}, {91, OPD_FLOAT32, true, {10, 0, 20, 10}},
        {60, OPD_FLOAT64, false, {3, 4, 32, 20}}, {512, OPD_FLOAT64, true, {3, 4, 32, 45}}};
    size_t i;
    for (i = 0; i < sizeof examples / sizeof *examples && opd_ok(); i++) {
        opd_tensor *pic = opd_randn(OPD_INTS(3, examples[i].size, examples[i].size), examples[i].dtype);
        const opd_value args[] = {OPD_V(opd_tensor_set_requires_grad(pic, examples[i].grad)),
                                  opd_value_ints(examples[i].box, 4)};
        printf("opcheck %3d x %-3d %-42s %s\n", (int)examples[i].size, (int)examples[i].size,
               examples[i].dtype == OPD_FLOAT64 ? "double" : "float",
               opd_opcheck(opd_find("mylib::crop"), args, 2, NULL) == 0 ? "yes" : "NO");
    }
}

static void derivatives(opd_tensor *pic) {
    opd_gradcheck_options check = opd_gradcheck_defaults();
    opd_tensor *small = opd_clamp(opd_rand(OPD_INTS(3, 4, 5), OPD_FLOAT64), OPD_V(0.1), OPD_V(0.9));
    opd_tensor *leaf = opd_detach(pic), *inside = opd_ones(OPD_INTS(3, 100, 130), OPD_FLOAT32);
    opd_tensor_set_requires_grad(small, true);
    check.eps = 1e-2;   /* a channel has 16 bits: smaller steps would get lost in rounding */
    check.atol = 2e-3;
    check.check_forward_ad = true;
    printf("%-60s %s\n", "gradcheck", opd_gradcheck(some, NULL, &small, 1, &check) == 0 ? "yes" : "NO");
    printf("%-60s %s\n", "gradgradcheck", opd_gradgradcheck(some, NULL, &small, 1, NULL, &check) == 0 ? "yes" : "NO");
    opd_tensor_set_requires_grad(leaf, true);
    opd_backward(opd_sum(crop(leaf, opd_ints_of(face, 4))));
    inside = opd_constant_pad_nd(inside, OPD_INTS(face[0], opd_sizes(pic)[2] - face[2], face[1],
                                                  opd_sizes(pic)[1] - face[3]));
    same("the gradient of the sum is 1 inside of the box, else 0", opd_tensor_grad(leaf), inside);
}

static void batches(opd_tensor *pic) {
    opd_tensor *pics = opd_stack(OPD_TENSORS(pic, opd_flip(pic, OPD_INTS(2)), opd_flip(pic, OPD_INTS(1))), 0), *all;
    opd_tensor *fake = opd_to_device(pic, opd_device_make(OPD_META, -1), OPD_FLOAT32);
    opd_vmap_fallback_set(OPD_VMAP_FALLBACK_SILENT);        /* no warning: a loop is intended here */
    if (opd_vmap(some, NULL, &pics, 1, NULL, &all, 1) < 0) { return; }
    same("vmap gives each picture's crop", opd_select(all, 0, 2), crop(opd_select(pics, 0, 2), OPD_INTS(1, 1, 4, 3)));
    printf("shapes alone: ");
    opd_print(crop(fake, opd_ints_of(face, 4)));
    crop(fake, OPD_INTS(0, 0, 500, 10));
    printf("a wrong box: %s\n", opd_error_message());
    opd_error_clear();
}

int main(int argc, char **argv) {
    if (argc > 4 || (argc > 1 && argv[1][0] == '-')) {
        const bool asked = argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
        fputs("usage: crop [PICTURE [BEFORE [AFTER]]]\n  reads examples/data/cat.jpg, writes crop_before.png and crop_after.png\n", asked ? stdout : stderr);
        return asked ? 0 : 2;
    }
    MagickWandGenesis();
    OPD_SCOPE {
        opd_tensor *pic = read_picture(argc > 1 ? argv[1] : "examples/data/cat.jpg"), *cropped;
        if (!pic) { return opd_finish(); }
        cropped = crop(pic, opd_ints_of(face, 4));
        write_picture(pic, argc > 2 ? argv[2] : "crop_before.png");
        write_picture(cropped, argc > 3 ? argv[3] : "crop_after.png");
        same("the crop is that part of the picture", cropped,
             opd_narrow(opd_narrow(pic, 1, face[1], face[3] - face[1]), 2, face[0], face[2] - face[0]));
        graphs(pic);
        checks();
        derivatives(pic);
        batches(pic);
    }
    MagickWandTerminus();
    return opd_finish();
}
