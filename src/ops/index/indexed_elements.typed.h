/* indexed_get returns an element of dtype `dtype` as an OPDI_T, the type in which folds are computed.  indexed_set
   writes an OPDI_T as an element of dtype `dtype`. */
#if OPDI_WHOLE
OPDI_ALWAYS OPDI_T OPDI_TYPED(indexed_get)(const void *data, int dtype) {
    switch (dtype) {
        case OPD_INT64: return *(const int64_t *)data;
        case OPD_INT32: return *(const int32_t *)data;
        case OPD_INT16: return *(const int16_t *)data;
        case OPD_INT8: return *(const int8_t *)data;
        default: return *(const uint8_t *)data;
    }
}
OPDI_ALWAYS void OPDI_TYPED(indexed_set)(void *data, OPDI_T v, int dtype) {
    switch (dtype) {
        case OPD_INT64: *(int64_t *)data = v; break;
        case OPD_INT32: *(int32_t *)data = (int32_t)v; break;
        case OPD_INT16: *(int16_t *)data = (int16_t)v; break;
        case OPD_INT8: *(int8_t *)data = (int8_t)v; break;
        case OPD_BOOL: *(uint8_t *)data = v != 0; break;
        default: *(uint8_t *)data = (uint8_t)v; break;
    }
}
#else
OPDI_ALWAYS OPDI_T OPDI_TYPED(indexed_get)(const void *data, int dtype) {
    switch (dtype) {
        case OPD_BFLOAT16: return (OPDI_T)opdi_bf16_to_f32(*(const uint16_t *)data);
        case OPD_FLOAT16: return (OPDI_T)opdi_f16_to_f32(*(const uint16_t *)data);
        default: return *(const OPDI_T *)data;
    }
}
OPDI_ALWAYS void OPDI_TYPED(indexed_set)(void *data, OPDI_T v, int dtype) {
    switch (dtype) {
        case OPD_BFLOAT16: *(uint16_t *)data = opdi_f32_to_bf16((float)v); break;
        case OPD_FLOAT16: *(uint16_t *)data = opdi_f32_to_f16((float)v); break;
        default: *(OPDI_T *)data = v; break;
    }
}
#endif
/* Folds *rows into elements whose dtype is `dtype` and which take `size` bytes.  `bs` is the distance between elements
   of b.  Every caller passes compile-time constants for dtype and size, so the function is specialized when it is
   inlined. */
OPDI_ALWAYS void OPDI_TYPED(indexed_fold_as)(const opdi_indexed *indexed, const opdi_indexed_rows *rows, int64_t bs,
                                             int dtype, int64_t size) {
    opdi_indexed_rows other = *rows;
    const int64_t as = indexed->as[indexed->row] * size, xs = indexed->xs[indexed->row], at = indexed->at * size;
    const int kind = indexed->kind;
    int64_t k;
    for (; other.m > 0; other.m--, other.self += other.as, other.source += other.bs, other.index += other.xs) {
        const OPDI_T *pb = (const OPDI_T *)(const void *)other.source;
        const int64_t *places = other.index;
        char *here = other.self;
        if (kind == OPDI_WALK_ADD && xs == 0) {
            for (here += *places * at, k = other.n; k > 0; k--, here += as, pb += bs) {
                OPDI_TYPED(indexed_set)(here, OPDI_PLUS(OPDI_TYPED(indexed_get)(here, dtype), *pb), dtype);
            }
            continue;
        }
        if (kind == OPDI_WALK_ADD) {
            for (k = other.n; k > 0; k--, places += xs, here += as, pb += bs) {
                char *to = here + *places * at;
                OPDI_TYPED(indexed_set)(to, OPDI_PLUS(OPDI_TYPED(indexed_get)(to, dtype), *pb), dtype);
            }
            continue;
        }
        for (k = other.n; k > 0; k--, places += xs, here += as, pb += bs) {
            char *to = here + *places * at;
            const OPDI_T u = OPDI_TYPED(indexed_get)(to, dtype), v = *pb;
            switch (kind) {
                case OPDI_WALK_MUL: OPDI_TYPED(indexed_set)(to, OPDI_TIMES(u, v), dtype); break;
                case OPDI_WALK_MAX: OPDI_TYPED(indexed_set)(to, u > v || OPDI_IS_NAN(u) ? u : v, dtype); break;
                default: OPDI_TYPED(indexed_set)(to, u < v || OPDI_IS_NAN(u) ? u : v, dtype); break;
            }
        }
    }
}
static void OPDI_TYPED(indexed_fold)(const opdi_indexed *indexed, const opdi_indexed_rows *rows, int64_t bs) {
    switch (indexed->dtype) {
#if OPDI_WHOLE
        case OPD_INT64: OPDI_TYPED(indexed_fold_as)(indexed, rows, bs, OPD_INT64, 8); break;
        case OPD_INT32: OPDI_TYPED(indexed_fold_as)(indexed, rows, bs, OPD_INT32, 4); break;
        case OPD_INT16: OPDI_TYPED(indexed_fold_as)(indexed, rows, bs, OPD_INT16, 2); break;
        case OPD_INT8: OPDI_TYPED(indexed_fold_as)(indexed, rows, bs, OPD_INT8, 1); break;
        case OPD_BOOL: OPDI_TYPED(indexed_fold_as)(indexed, rows, bs, OPD_BOOL, 1); break;
        default: OPDI_TYPED(indexed_fold_as)(indexed, rows, bs, OPD_UINT8, 1); break;
#else
#if OPDI_BYTES == 4
        case OPD_BFLOAT16: OPDI_TYPED(indexed_fold_as)(indexed, rows, bs, OPD_BFLOAT16, 2); break;
        case OPD_FLOAT16: OPDI_TYPED(indexed_fold_as)(indexed, rows, bs, OPD_FLOAT16, 2); break;
#endif
        default: OPDI_TYPED(indexed_fold_as)(indexed, rows, bs, OPD_DTYPE_NONE, OPDI_BYTES); break;
#endif
    }
}
