/* Splits a complex matrix into matrices of its real and imaginary parts, at `to`.  The imaginary parts begin `apart`
   numbers after the real parts; rows of both are ld apart. */
static void OPDI_TYPED(complex_split)(const opd_tensor *from, char *to, int64_t ld, int64_t apart) {
    const OPDI_T *x = (const OPDI_T *)(const void *)from->data;
    OPDI_T *re = (OPDI_T *)(void *)to, *im = re + apart;
    const int64_t rs = 2 * opdi_strides(from)[0], cs = 2 * opdi_strides(from)[1];
    for (int64_t row = 0; row < opdi_sizes(from)[0]; row++, re += ld, im += ld, x += rs) {
        for (int64_t column = 0; column < opdi_sizes(from)[1]; column++) {
            re[column] = x[column * cs];
            im[column] = x[column * cs + 1];
        }
    }
}
/* Combines the products of the real and imaginary parts of two matrices into their complex product `out` [rows,
   columns].  `product` is [2, rows, 2, columns]: part of the first factor, row, part of the second factor, column. */
static void OPDI_TYPED(complex_merge)(opd_tensor *out, const char *product) {
    const int64_t rows = opdi_sizes(out)[0], columns = opdi_sizes(out)[1];
    const int64_t rs = 2 * opdi_strides(out)[0], cs = 2 * opdi_strides(out)[1];
    const OPDI_T *real = (const OPDI_T *)(const void *)product, *imaginary = real + 2 * rows * columns;
    OPDI_T *y = (OPDI_T *)(void *)out->data;
    for (int64_t row = 0; row < rows; row++, real += 2 * columns, imaginary += 2 * columns, y += rs) {
        for (int64_t column = 0; column < columns; column++) {
            y[column * cs] = real[column] - imaginary[columns + column];
            y[column * cs + 1] = real[columns + column] + imaginary[column];
        }
    }
}
