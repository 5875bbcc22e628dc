/* Pickles for the fuzz targets checkpoint and script_archive.

   An input is 'p' and the bytes of a pickle; or 'm' and a list of choices.  A choice that is the number of a row of `calls`
   stands for this row, a whole valid call; other choices are bytes of the pickle.  'Q' and 'M' mean the same, but the
   next byte tells how many nodes come before the rest (sometimes 100,000), so that the numbers of later nodes are
   large. */
#ifndef OPD_TESTS_FUZZ_PICKLE_H
#define OPD_TESTS_FUZZ_PICKLE_H

#define ROW(literal) {literal, sizeof(literal) - 1}
#define PICKLED_STORAGE(klass, key) "(X\7\0\0\0storagectorch\n" klass "\nX\1\0\0\0" key "X\3\0\0\0cpuK\4tQ"
#define PICKLED_TENSOR(klass, key) \
    "ctorch._utils\n_rebuild_tensor_v2\n(" PICKLED_STORAGE(klass, key) "K\0K\4\x85K\1\x85\x89" "ccollections\nOrderedDict\n)RtR"
#define PICKLED_NUMBER "\0\0\0\0\0\0\0"
/* The numbers of the rows are from 0x9a on, which are no opcodes. */
static const struct { const char *code; size_t length; } calls[] = {
    ROW(PICKLED_STORAGE("FloatStorage", "0")), ROW(PICKLED_STORAGE("UntypedStorage", "1")), ROW(PICKLED_TENSOR("FloatStorage", "0")),
    ROW(PICKLED_TENSOR("LongStorage", "1")), ROW(PICKLED_TENSOR("ComplexFloatStorage", "0")),
    ROW("ctorch._utils\n_rebuild_tensor_v3\n(" PICKLED_STORAGE("UntypedStorage", "0") "K\0K\4\x85K\1\x85\x89}ctorch\nfloat8_e5m2\ntR"),
    ROW("ctorch._utils\n_rebuild_parameter\n(" PICKLED_TENSOR("FloatStorage", "0") "\x88}tR"),
    ROW("ctorch._utils\n_rebuild_qtensor\n(" PICKLED_STORAGE("QInt8Storage", "0") "K\0K\4\x85K\1\x85" "ctorch\nper_tensor_affine\n"
        "G?\xe0" "\0\0\0\0\0\0" "K\0\x87\x89}tR"),
    ROW("ctorch._utils\n_rebuild_qtensor\n(" PICKLED_STORAGE("QInt32Storage", "1") "K\0K\4\x85K\1\x85(" "ctorch\nper_channel_affine\n"
        PICKLED_TENSOR("FloatStorage", "0") PICKLED_TENSOR("LongStorage", "1") "K\0t\x89}tR"),
    ROW("ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_tensor_v2\nctorch\nTensor\n(" PICKLED_STORAGE("HalfStorage", "0")
        "K\0K\4\x85K\1\x85\x89}t}tR"),
    ROW("ctorch._utils\n_rebuild_sparse_tensor\n(K\0tR"), ROW("ccollections\nOrderedDict\n)R"),
    ROW("ccollections\nOrderedDict\n(]](X\1\0\0\0aK\1eatR"), ROW("ccollections\ndefaultdict\ncbuiltins\nlist\n\x85R"),
    ROW("ctorch\nSize\n(K\1K\2t\x85R"), ROW("ctorch\ndevice\nX\4\0\0\0cudaK\1\x86R"),
    ROW("cbuiltins\ncomplex\nG@" PICKLED_NUMBER "G@" PICKLED_NUMBER "\x86R"), ROW("c_codecs\nencode\nX\3\0\0\0" "a\xc2\x80X\6\0\0\0latin1\x86R"),
    ROW("cbuiltins\nrange\nK\1K\5K\2\x87R"), ROW("cbuiltins\nslice\nK\1K\5N\x87R"), ROW("cbuiltins\nset\n](K\1K\2e\x85R"),
    ROW("cnumpy\ndtype\nX\2\0\0\0f8\x85R(K\3X\1\0\0\0<NNNtb"),
    ROW("cnumpy.core.multiarray\nscalar\ncnumpy\ndtype\nX\2\0\0\0f8\x85RU\x08" "12345678\x86R"),
    ROW("cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\0\x85U\1btR(K\1K\2\x85Ntb"),
    ROW("ccopyreg\n_reconstructor\n(ca\nB\ncbuiltins\nobject\nNtR}X\1\0\0\0aK\1sb"), ROW("ca\nNet\n)\x81}X\1\0\0\0aK\1sb"),
    ROW("ca\nNet\n)\x81}(X\x0b\0\0\0_parametersccollections\nOrderedDict\n)RX\1\0\0\0w" PICKLED_TENSOR("FloatStorage", "0")
        "sX\x08\0\0\0_buffers}X\x08\0\0\0_modules}X\x08\0\0\0training\x88ub"),
    ROW("c__torch__\nM\n)\x81}X\1\0\0\0aK\1sb"), ROW("c__torch__.torch.classes.quantized\nLinearPackedParamsBase\n)\x81"),
    ROW("c__torch__\nColor\nK\1\x85R"), ROW("ctorch.jit._pickle\nbuild_intlist\n](K\1K\2e\x85R"),
    ROW("ctorch.jit._pickle\nrestore_type_tag\n}X\x0e\0\0\0Dict[str, int]\x86R")};

/* Returns the zip file of a pickle and of two storages, *size bytes to be freed. */
static uint8_t *pickle_wrap(const uint8_t *data, size_t n, size_t *size) {
    static const char zeros[64] = {0};
    char *bytes = NULL;
    opdi_zip_writer zip;
    opdi_sink sink;
    memset(&sink, 0, sizeof sink);
    sink.file = open_memstream(&bytes, size);
    MUST(sink.file);
    opdi_zip_writer_init(&zip, &sink);
    const int rc = opdi_zip_add(&zip, "a/data.pkl", data, n) || opdi_zip_add(&zip, "a/data/0", zeros, 64) ||
        opdi_zip_add(&zip, "a/data/1", zeros, 64) ? -1 : 0;
    const bool right = opdi_zip_close(&zip, rc) == 0;
    fclose(sink.file);
    if (!right) { *size = 0; }
    return (uint8_t *)bytes;
}
/* Returns the zip file of the pickle that an input stands for, *size bytes to be freed; or NULL if the input is not a
   pickle. */
static uint8_t *pickle_archive(const uint8_t *data, size_t n, size_t *size) {
    const bool padded = n > 1 && (data[0] == 'Q' || data[0] == 'M'), chosen = n && (data[0] == 'm' || data[0] == 'M');
    if (!n || (data[0] != 'p' && !padded && !chosen)) { return NULL; }
    const size_t nodes = !padded ? 0 : data[1] == 255 ? 100000 : data[1], from = padded ? 2 : 1;
    char *bytes = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&bytes, &length);
    MUST(out);
    for (size_t i = 0; i < nodes; i++) { fputs("N0", out); }
    for (size_t i = from; i < n; i++) {
        const size_t row = (size_t)data[i] - 0x9a;
        if (chosen && data[i] >= 0x9a && row < COUNT(calls)) { fwrite(calls[row].code, 1, calls[row].length, out); }
        else { fputc(data[i], out); }
    }
    fclose(out);
    uint8_t *const made = pickle_wrap((const uint8_t *)bytes, length, size);
    free(bytes);
    return made;
}
/* Returns the archive that an input stands for, *size bytes to be freed: its pickle in a zip file, or a copy of its bytes with
   correct checksums.  If memory runs out, an error is pending. */
static uint8_t *pickle_input(const uint8_t *data, size_t n, size_t *size) {
    uint8_t *made = pickle_archive(data, n, size);
    if (made || !opd_ok()) { return made; }
    made = (uint8_t *)malloc(n ? n : 1);
    MUST(made);
    memcpy(made, data, n);
    mend(made, n);
    *size = n;
    return made;
}

#endif /* OPD_TESTS_FUZZ_PICKLE_H */
