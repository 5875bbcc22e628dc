/* Returns the sum of the lanes of a vector: adds the upper half to the lower half, until one lane is left. */
OPDI_TARGET OPDI_ALWAYS OPDI_T OPDI_WIDE(lanes_sum)(OPDI_V sum) {
    enum { LANES = 16 / (int)sizeof(OPDI_T) };
    typedef OPDI_T opdi_low __attribute__((vector_size(16)));
#if defined(OPDI_NEON)
    const opdi_low low = sum;
#else
    opdi_low parts[2];
#if OPDI_LEVEL == 2
    typedef OPDI_T opdi_half __attribute__((vector_size(32)));
    opdi_half halves[2];
    memcpy(halves, &sum, sizeof halves);
    halves[0] += halves[1];
    memcpy(parts, &halves[0], sizeof parts);
#else
    memcpy(parts, &sum, sizeof parts);
#endif
    const opdi_low low = parts[0] + parts[1];
#endif
    return LANES == 2 ? low[0] + low[1] : (low[0] + low[LANES / 2]) + (low[1] + low[LANES - 1]);
}
