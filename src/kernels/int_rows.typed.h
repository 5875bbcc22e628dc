/* Functions for rows of integers with scales (opdi_block_row_fn), whose row->q is the row as opdi_block_four. */

#if OPDI_LEVEL == 2
#define OPDI_INT_FOUR opdi_int_four_quads
#else
#define OPDI_INT_FOUR opdi_int_four_bytes
#endif
OPDI_TARGET OPDI_ALWAYS float OPDI_WIDE(int_row)(const opdi_block_form *form, int64_t k, const opdi_block_row *row,
                                                 const uint8_t *w, int kind) {
    const opdi_block_info *const info = &((const opdi_int_form *)(const void *)form)->info;
    const int bits = kind == OPDI_ROW_FOURS ? 4 : 8, head = info->zero ? 8 : 4;
    const opdi_int_strides steps = opdi_int_strides_of(info, bits);
    const opdi_block_four *x = (const opdi_block_four *)(const void *)row->q;
    opdi_int_sums to = {{0}, {0}};
    opdi_int_four four = {NULL, NULL, NULL, NULL, {0}, {0}};
    int64_t left = k / 32;
    while (steps.blocks && left >= 4) {
        const uint8_t *const last = w + steps.scale_pair;
        four.scales = opdi_int_numbers(w, w + steps.scale, last, last + steps.scale);
        if (info->zero) {
            four.zeros = opdi_int_numbers(w + 4, w + steps.scale + 4, last + 4, last + steps.scale + 4);
        }
        four.at0 = w + head;
        for (int64_t end = left - OPDI_MAX(info->elements / 32, 4); left > end; left -= 4, x++) {
            four.at1 = four.at0 + steps.group;
            four.at2 = four.at0 + steps.pair;
            four.at3 = four.at2 + steps.group;
            opdi_block_ahead(four.at0, 16 * bits);
            OPDI_INT_FOUR(x, &four, kind, &to);
            four.at0 += 16 * bits;
        }
        w += steps.blocks * info->bytes;
    }
    for (opdi_int_walk walk = {w, w + head, w + head, info->elements / 32, left}; walk.count > 0; x++) {
        uint64_t step[4], zero[4];
        four.at0 = opdi_int_step(info, &walk, &step[0], &zero[0]);
        four.at1 = opdi_int_step(info, &walk, &step[1], &zero[1]);
        four.at2 = opdi_int_step(info, &walk, &step[2], &zero[2]);
        four.at3 = opdi_int_step(info, &walk, &step[3], &zero[3]);
        const opdi_v2w scales = {step[0] | step[1] << 32, step[2] | step[3] << 32};
        const opdi_v2w zeros = {zero[0] | zero[1] << 32, zero[2] | zero[3] << 32};
        four.scales = (opdi_v4f)scales;
        four.zeros = (opdi_v4f)zeros;
        OPDI_INT_FOUR(x, &four, kind, &to);
    }
    return opdi_block_lanes8(to.sum, to.more);
}
OPDI_TARGET static float OPDI_WIDE(int_fours)(const opdi_block_form *form, int64_t k, const opdi_block_row *row,
                                              const uint8_t *w) {
    return OPDI_WIDE(int_row)(form, k, row, w, OPDI_ROW_FOURS);
}
OPDI_TARGET static float OPDI_WIDE(int_wholes)(const opdi_block_form *form, int64_t k, const opdi_block_row *row,
                                               const uint8_t *w) {
    return OPDI_WIDE(int_row)(form, k, row, w, OPDI_ROW_WHOLES);
}
#undef OPDI_INT_FOUR
