OPDI_TARGET static void OPDI_WIDE(outer)(int64_t rows, int64_t count, const OPDI_T *a, int64_t as, const OPDI_T *b,
                                         OPDI_T *out_row, int64_t rs, int stream) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    for (int64_t i = 0; i < rows; i++) {
        const OPDI_T sum = a[i * as];
        OPDI_T *to = out_row + i * rs;
        int64_t j = 0;
        for (; j + WIDTH <= count; j += WIDTH) {
            const OPDI_V v8f = *(const OPDI_V *)(const void *)(b + j) * sum;
            if (stream) { OPDI_ASM_STREAM(OPDI_ASM, (OPDI_V *)(void *)(to + j), v8f); }
            else { *(OPDI_V *)(void *)(to + j) = v8f; }
        }
        for (; j < count; j++) { to[j] = sum * b[j]; }
    }
}
