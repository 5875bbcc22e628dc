/* Computes gw [groups, og, element] as the sum of the shift->parts parts in shift->gw.  Each part is [groups, kp, ldg],
   with the last two dims transposed and padded.  Reads 16 rows of a part at a time. */
static void OPDI_TYPED(shift_sum)(const opdi_shift *shift, int64_t element, OPDI_T *gw) {
    const int64_t og = shift->conv.og, groups = shift->conv.groups, blocks = (element - 1) / 16 + 1;
    for (int64_t item = 0; item < groups * blocks * og; item++) {
        const int64_t group = item / og / blocks, begin = item / og % blocks * 16, o = item % og;
        const OPDI_T *from = (const OPDI_T *)(const void *)shift->gw + (group * shift->kp + begin) * shift->ldg + o;
        OPDI_T *const to = gw + (group * og + o) * element + begin;
        for (int64_t step = 0; step < OPDI_MIN(16, element - begin); step++) {
            double sum = 0;
            for (int64_t part = 0; part < shift->parts; part++) {
                sum += (double)from[(part * groups * shift->kp + step) * shift->ldg];
            }
            to[step] = (OPDI_T)sum;
        }
    }
}
