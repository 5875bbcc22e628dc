/* OPDI_LANES_ROOT sets r to the square root of x.  OPDI_LANES_MAX sets r to the maximum of r and x, but leaves r
   unchanged if r or x is NaN.  r and x are vectors, or numbers at level 0.  Assembly is used because sqrtf would have
   to set errno. */
#if OPDI_LEVEL == 0
#define OPDI_LANES_ROOT(r, x) r = OPDI_FN(sqrt)(x)
#define OPDI_LANES_MAX(r, x) if ((x) > (r)) { r = (x); }
#else
#define OPDI_LANES_ROOT(r, x) OPDI_ASM_ROOT(OPDI_ASM, r, x)
#define OPDI_LANES_MAX(r, x) OPDI_ASM_MAX(OPDI_ASM, r, x)
#endif
/* Makes a step of Adam for elements i, i + 1, .. below `count`, as long as they fill whole vectors.  The operands
   data[] are x, m, v to be written (with amsgrad also the largest v so far), the same tensors again as inputs, and
   grad.  Returns the index of the first element that is left. */
OPDI_TARGET static int64_t OPDI_WIDE(adam)(void *const *data, int64_t count, int64_t i, const opdi_adam *other) {
    const OPDI_T sign = (OPDI_T)other->sign, l2 = (OPDI_T)other->l2, decay = (OPDI_T)other->decay,
        w1 = (OPDI_T)other->w1, beta2 = (OPDI_T)other->beta2, w2 = (OPDI_T)other->w2, step = (OPDI_T)other->step,
        scale = (OPDI_T)other->scale, eps = (OPDI_T)other->eps;
    const int64_t lanes = (int64_t)(sizeof(OPDI_V) / sizeof(OPDI_T));
    const bool l2_on = !(other->l2 >= 0 && other->l2 <= 0), amsgrad = other->amsgrad;
    const int k = amsgrad ? 4 : 3;
    for (; i + lanes <= count; i += lanes) {
        OPDI_V x = *(const OPDI_V *)(const void *)((const OPDI_T *)data[k] + i);
        OPDI_V m = *(const OPDI_V *)(const void *)((const OPDI_T *)data[k + 1] + i);
        OPDI_V v = *(const OPDI_V *)(const void *)((const OPDI_T *)data[k + 2] + i);
        OPDI_V grad = *(const OPDI_V *)(const void *)((const OPDI_T *)data[2 * k] + i), root;
        grad = grad * sign;
        if (l2_on) { grad = grad + x * l2; }
        m = m + (grad - m) * w1;
        v = v * beta2 + grad * grad * w2;
        *(OPDI_V *)(void *)((OPDI_T *)data[1] + i) = m;
        *(OPDI_V *)(void *)((OPDI_T *)data[2] + i) = v;
        if (amsgrad) {
            const OPDI_V most = *(const OPDI_V *)(const void *)((const OPDI_T *)data[k + 3] + i);
            OPDI_LANES_MAX(v, most);
            *(OPDI_V *)(void *)((OPDI_T *)data[3] + i) = v;
        }
        OPDI_LANES_ROOT(root, v);
        *(OPDI_V *)(void *)((OPDI_T *)data[0] + i) = x * decay - m * step / (root * scale + eps);
    }
    return i;
}
#undef OPDI_LANES_ROOT
#undef OPDI_LANES_MAX
/* Makes a step of SGD for elements i, i + 1, .. below `count`, as long as they fill whole vectors.  The operands data[]
   are x, b, x, b, grad if there is a momentum buffer b, else x, x, grad.  Returns the index of the first element that
   is left. */
OPDI_TARGET static int64_t OPDI_WIDE(sgd)(void *const *data, int64_t count, int64_t i, const opdi_sgd *other) {
    const OPDI_T sign = (OPDI_T)other->sign, l2 = (OPDI_T)other->l2, momentum = (OPDI_T)other->momentum,
        w = (OPDI_T)other->w, lr = (OPDI_T)other->lr;
    const int64_t lanes = (int64_t)(sizeof(OPDI_V) / sizeof(OPDI_T));
    const bool l2_on = !(other->l2 >= 0 && other->l2 <= 0), buffer = !(other->momentum >= 0 && other->momentum <= 0),
        first = other->first, nesterov = other->nesterov;
    const int k = buffer ? 2 : 1;
    for (; i + lanes <= count; i += lanes) {
        OPDI_V x = *(const OPDI_V *)(const void *)((const OPDI_T *)data[k] + i);
        OPDI_V grad = *(const OPDI_V *)(const void *)((const OPDI_T *)data[2 * k] + i);
        grad = grad * sign;
        if (l2_on) { grad = grad + x * l2; }
        if (buffer) {
            OPDI_V b = grad;
            if (!first) { b = *(const OPDI_V *)(const void *)((const OPDI_T *)data[3] + i) * momentum + grad * w; }
            *(OPDI_V *)(void *)((OPDI_T *)data[1] + i) = b;
            if (nesterov) { grad = grad + b * momentum; } else { grad = b; }
        }
        *(OPDI_V *)(void *)((OPDI_T *)data[0] + i) = x - grad * lr;
    }
    return i;
}
