/* A view of a matrix: element (i, j) is at[i * rs + j * cs]. */
typedef struct OPDI_TYPED(block) OPDI_TYPED(block);
struct OPDI_TYPED(block) {
    OPDI_T *at;
    int64_t rs, cs;
};
OPDI_ALWAYS OPDI_TYPED(block) OPDI_TYPED(block_of)(OPDI_T *at, int64_t rs, int64_t cs) {
    OPDI_TYPED(block) block;
    block.at = at;
    block.rs = rs;
    block.cs = cs;
    return block;
}
OPDI_ALWAYS OPDI_TYPED(block) OPDI_TYPED(part)(OPDI_TYPED(block) block, int64_t i, int64_t j) {
    return OPDI_TYPED(block_of)(block.at + i * block.rs + j * block.cs, block.rs, block.cs);
}
OPDI_ALWAYS OPDI_TYPED(block) OPDI_TYPED(transposed)(OPDI_TYPED(block) block) {
    return OPDI_TYPED(block_of)(block.at, block.cs, block.rs);
}
/* Returns matrix number `at` of tensor solver->data[which], whose rows have `width` elements. */
OPDI_ALWAYS OPDI_TYPED(block) OPDI_TYPED(matrix_at)(const opdi_solver *solver, int which, int64_t at, int64_t width) {
    return OPDI_TYPED(block_of)((OPDI_T *)opdi_solver_at(solver, which, at, sizeof(OPDI_T)), width, 1);
}
