/* Computes gw [groups, og, element] as the sum of the shift->parts parts in shift->gw.  Each part is [groups, kp,
   ldg], with the last two dims transposed and padded. */
static void OPDI_TYPED(shift_sum)(const opdi_shift *shift, int64_t element, int64_t kp, OPDI_T *gw) {
    const int64_t og = shift->conv.og, groups = shift->conv.groups;
    for (int64_t i = 0; i < groups; i++) {
        const OPDI_T *from = (const OPDI_T *)(const void *)shift->gw + i * kp * shift->ldg;
        for (int64_t o = 0; o < og; o++, gw += element) {
            for (int64_t step = 0; step < element; step++) {
                double sum = 0;
                for (int64_t plane = 0; plane < shift->parts; plane++) {
                    sum += (double)from[(plane * groups * kp + step) * shift->ldg + o];
                }
                gw[step] = (OPDI_T)sum;
            }
        }
    }
}
