//== results that are the same in each run =============================================================================
//
//  Kernels that add or write at indices use atomic operations, in any order.  If opd_deterministic_set is on, the
//  functions below do the same in one order: they sort the positions by the place to which each belongs, and keep the
//  order of positions with the same place.

/* Sets keys[i] to the offset in `a` of position i of the indices, or to -1 if the index is out of range, and values[i]
   to the element of b, times alpha if elements are added. */
template <class T, bool adds> struct opdi_cu_order_keys : opdi_cu_indexed {
    int64_t *keys;
    T *values;
    opdi_cu_order_keys(const opdi_cu_indexed &x, int64_t *keys_, T *values_)
        : opdi_cu_indexed(x), keys(keys_), values(values_) { }
    __device__ void operator()(int64_t i) const {
        int64_t pa, pb;
        const bool there = place(i, &pa, &pb);
        const T v = ((const T *)b)[pb];
        keys[i] = there ? pa : -1;
        if constexpr (adds) { values[i] = opdi_cu_times((T)alpha, v); } else { values[i] = v; }
    }
};
/* Writes values [nb, nq, na] to `self`.  If a key occurs several times, the value of its last position remains.  keys
   [nq] are sorted; order[q] is the position of keys[q] before sorting. */
template <class T> struct opdi_cu_order_write {
    opdi_cu_list list;
    const int64_t *keys, *order;
    T *self;
    const T *values;
    __device__ void operator()(int64_t i) const {
        int64_t a, q;
        const int64_t b = opdi_cu_divide(opdi_cu_divide(i, list.na, &a), list.nq, &q), key = keys[q];
        if (key < 0 || (q + 1 < list.nq && keys[q + 1] == key)) { return; }
        self[key + list.rest(b, a)] = values[(b * list.nq + order[q]) * list.na + a];
    }
};
static int opdi_cu_order_write_all(const opdi_cu_list *p, opd_tensor *const *sorted, opd_tensor *self,
                                   opd_tensor *values) {
    OPDI_CU_SIZES(opd_dtype(self), T, {
        const opdi_cu_order_write<T> f = {*p, opdi_cu_data<int64_t>(sorted[0]), opdi_cu_data<int64_t>(sorted[1]),
                                          opdi_cu_data<T>(self), opdi_cu_data<T>(values)};
        return opdi_cu_each(p->nb * p->nq * p->na, f);
    })
    return 0;
}
/* Writes `values` to the positions of `self` that the plan lists, as opdi_cu_list_run does. */
static int opdi_cu_list_write_ordered(opdi_cu_list *p, opd_tensor *self, opd_tensor *values) {
    opd_tensor *const keys = opdi_cu_new(opd_ints_of(&p->nq, 1), OPD_INT64), *sorted[2];
    if (!keys || !opd_ok()) { return -1; }
    const opdi_cu_list_keys f = {*p, opdi_cu_data<int64_t>(keys), -1};
    if (opdi_cu_each(p->nq, f) || opd_sort_stable(sorted, keys, opd_value_bool(true), 0, false)) { return -1; }
    return opdi_cu_order_write_all(p, sorted, self, values);
}
/* Scatters (f.how is OPDI_CU_SCATTER) or adds n elements of f.b to `a`, as opdi_cu_indexed_run does.  Returns 0, or -1
   and sets an error: products (OPDI_CU_MUL) have no fixed order. */
static int opdi_cu_indexed_ordered(const opd_call *call, const opdi_cu_indexed &f, int64_t n, opd_tensor *a) {
    opd_tensor *const keys = opdi_cu_new(opd_ints_of(&n, 1), OPD_INT64), *values, *sorted[2];
    int64_t *const k = opdi_cu_data<int64_t>(keys);
    opdi_cu_list p;
    if (f.how == OPDI_CU_MUL) {
        if (opd_deterministic_alert(call, " of products")) { return -1; }
        return opd_dtype(a) == OPD_FLOAT32 ? opdi_cu_each(n, opdi_cu_scatter_fold<float>(f))
            : opdi_cu_each(n, opdi_cu_scatter_fold<double>(f));
    }
    values = keys ? opdi_cu_new(opd_ints_of(&n, 1), opd_dtype(a)) : NULL;
    if (!values) { return -1; }
    if (f.how == OPDI_CU_SCATTER) {
        OPDI_CU_SIZES(opd_dtype(a), T, {
            if (opdi_cu_each(n, opdi_cu_order_keys<T, false>(f, k, opdi_cu_data<T>(values)))) { return -1; }
        })
    } else if (opd_dtype(a) == OPD_FLOAT32
               ? opdi_cu_each(n, opdi_cu_order_keys<float, true>(f, k, opdi_cu_data<float>(values)))
               : opdi_cu_each(n, opdi_cu_order_keys<double, true>(f, k, opdi_cu_data<double>(values)))) { return -1; }
    if (opd_sort_stable(sorted, keys, opd_value_bool(true), 0, false)) { return -1; }
    p.n = 0; p.nb = p.na = p.one = 1; p.nq = n;
    p.before.begin(); p.after.begin();
    p.guard = f.guard;
    return f.how == OPDI_CU_SCATTER ? opdi_cu_order_write_all(&p, sorted, a, values)
        : opdi_cu_list_sums_of(&p, sorted, a, values, false);
}

