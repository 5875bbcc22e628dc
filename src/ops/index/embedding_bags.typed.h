/* Computes bags [begin, end) of ctx, an opdi_bags: writes the sum, mean or maximum of each bag's rows to out, and the
   number of rows to counts.  For maxima, also writes to `most` the row that each maximum comes from. */
static void OPDI_TYPED(bags)(void *ctx, int64_t begin, int64_t end) {
    const opdi_bags *bags = (const opdi_bags *)ctx;
    int64_t channel;
    for (int64_t batch = begin; batch < end; batch++) {
        OPDI_T *out = (OPDI_T *)bags->out + batch * bags->d;
        int64_t count = 0, *most = bags->mode == OPDI_BAG_MAX ? bags->most + batch * bags->d : NULL;
        memset(out, 0, (size_t)bags->d * sizeof *out);
        if (most) { memset(most, 0, (size_t)bags->d * sizeof *most); }
        for (int64_t i = bags->begin[batch]; i < bags->begin[batch + 1]; i++) {
            const int64_t place = bags->index[i];
            const OPDI_T *row = (const OPDI_T *)bags->rows + (bags->packed ? i : place) * bags->d;
            if (place == bags->skip) { continue; }
            if (most) {
                for (channel = 0; channel < bags->d; channel++) {
                    if (count == 0 || row[channel] > out[channel]) {
                        out[channel] = row[channel];
                        most[channel] = place;
                    }
                }
            } else {
                const OPDI_T w = bags->weights ? ((const OPDI_T *)bags->weights)[i] : 1;
                for (channel = 0; channel + 16 <= bags->d; channel += 16) {
                    OPDI_T lane[16];
                    for (int j = 0; j < 16; j++) { lane[j] = out[channel + j] + w * row[channel + j]; }
                    for (int j = 0; j < 16; j++) { out[channel + j] = lane[j]; }
                }
                for (; channel < bags->d; channel++) { out[channel] += w * row[channel]; }
            }
            count++;
        }
        if (bags->mode == OPDI_BAG_MEAN && count > 1) {
            for (channel = 0; channel < bags->d; channel++) { out[channel] /= (OPDI_T)count; }
        }
        bags->counts[batch] = count;
    }
}
