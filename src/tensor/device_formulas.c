#include "tensor.h"

//== pointwise formulas on devices =====================================================================================

OPDI_INTERNAL const opdi_params opdi_no_params = {
    /* f64, f32, i64 */ {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, /* zero, beyond */ NULL, false,
    /* imaginary, pairs */ {0, 0, 0, 0}, false};

/* Fills in *operand for `tensor`, which has one element in host memory (a number, or a tensor without dims), while
   other operands are on a device.  `common` is the dtype to which operands are promoted, `compute` the type in which
   the formula is computed.  Returns 0, or -1 and sets an error. */
static int opdi_operand_number(opd_operand *operand, const opd_tensor *tensor, opd_scalar_type common, int compute) {
    const opd_scalar_type dtype = (opd_scalar_type)tensor->dtype;
    uint64_t count[2] = {0, 0}, raw[2];
    if (opd_dtype_is_complex(dtype) || compute == OPDI_C128) {
        const opdi_convert load = opdi_load_of(OPDI_C128, dtype);
        if (!load) {
            return opd_fail(OPD_ERROR_DTYPE, "not implemented for '%s'", opd_dtype_name(dtype));
        }
        load(operand->f64, tensor->data, 1);
        for (int i = 0; i < 2 && common == OPD_COMPLEX64; i++) { operand->f64[i] = (double)(float)operand->f64[i]; }
        operand->i64 = opdi_f64_to_i64(operand->f64[0]);
        return 0;
    }
    if (!opdi_load_of(compute, dtype)) {
        return opd_fail(OPD_ERROR_DTYPE, "not implemented for '%s'", opd_dtype_name(dtype));
    }
    opdi_load_of(compute, dtype)(count, tensor->data, 1);
    if (dtype != common && common != OPD_DTYPE_NONE && (int)common != opdi_compute_dtype[compute]) {
        opdi_store_of(compute, common)(raw, count, 1);
        opdi_load_of(compute, common)(count, raw, 1);
    }
    if (compute == OPDI_I64) {
        memcpy(&operand->i64, count, 8);
        operand->f64[0] = (double)operand->i64;
        return 0;
    }
    if (compute == OPDI_F64) { memcpy(operand->f64, count, 8); }
    else {
        float f;
        memcpy(&f, count, 4);
        operand->f64[0] = f;
    }
    operand->i64 = opdi_f64_to_i64(operand->f64[0]);
    return 0;
}
/* Computes a pointwise formula (OPD_FORMULA_..) on a device, in one pass of the backend's function.  ops[0] is the
   result, ops[1] to ops[nops - 1] are the inputs.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_device_run(opd_tensor *const *ops, int nops, int formula, opd_scalar_type common, int compute,
                                  const opdi_params *params) {
    static const int64_t one = 1, none = 0;
    opdi_backend *backend = opdi_backend_of(ops[0]->backend);
    opd_tensor *many[4];
    opd_pointwise pointwise;
    opdi_iter iter;
    int k, m = 0;
    if (!backend || !backend->desc.pointwise) {
        return opd_fail(OPD_ERROR_NO_KERNEL, "backend %s has no pointwise function: set `pointwise` in its "
                        "opd_backend_desc", opdi_device_name(ops[0]->backend));
    }
    if (ops[0]->numel == 0) { return 0; }
    memset(&pointwise, 0, sizeof pointwise);
    pointwise.formula = (opd_formula)formula;
    pointwise.noperands = nops;
    pointwise.common = common;
    pointwise.numel = ops[0]->numel;
    pointwise.compute = (opd_scalar_type)opdi_compute_dtype[compute];
    pointwise.zero = params->zero;
    memcpy(pointwise.f64, params->f64, sizeof pointwise.f64);
    if (compute == OPDI_C128) { pointwise.f64[1] = params->imaginary[0]; }
    memcpy(pointwise.f32, params->f32, sizeof pointwise.f32);
    memcpy(pointwise.i64, params->i64, sizeof pointwise.i64);
    pointwise.linear = true;
    pointwise.ndim = 1;
    pointwise.sizes = &pointwise.numel;
    for (k = 0; k < nops; k++) {
        opd_operand *operand = &pointwise.operands[k];
        operand->dtype = (opd_scalar_type)ops[k]->dtype;
        operand->data = ops[k]->data;
        operand->strides = &one;
        if (ops[k]->backend == OPD_CPU) {
            if (opdi_operand_number(operand, ops[k], common, compute)) { return -1; }
            operand->data = NULL;
            operand->strides = &none;
            continue;
        }
        many[m++] = ops[k];
        pointwise.linear = pointwise.linear && (ops[k]->flags & OPDI_CONTIGUOUS) && ops[k]->numel == pointwise.numel &&
                   (k == 0 || ops[k]->data == ops[0]->data || !opdi_same_memory(ops[k], ops[0]));
    }
    if (!pointwise.linear) {
        if (opdi_iter_init(&iter, many, m, 1, common, compute)) { return -1; }
        pointwise.ndim = iter.ndim;
        pointwise.sizes = iter.sizes;
        for (k = 0, m = 0; k < nops; k++) {
            opd_operand *operand = &pointwise.operands[k];
            const int64_t size = (int64_t)opd_dtype_size(operand->dtype);
            if (!operand->data) { continue; }
            for (int dim = 0; dim < iter.ndim; dim++) { iter.op[m].stride[dim] /= size; }
            operand->strides = iter.op[m++].stride;
        }
    }
    return opdi_backend_rc(backend->desc.pointwise(backend->desc.user, ops[0]->storage->index, &pointwise),
                           ops[0]->backend, "pointwise");
}
/* Copies src to dst, on the device of dst, by the backend's function for pointwise operators (desc.pointwise).  src is
   on the same device, or is a CPU tensor with one element.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_copy_by_formula(opd_tensor *dst, const opd_tensor *src) {
    opd_tensor *ops[2];
    ops[0] = dst;
    ops[1] = (opd_tensor *)(uintptr_t)src;
    if (dst->numel == 0) { return 0; }
    return opdi_device_run(ops, 2, OPD_FORMULA_copy, OPD_DTYPE_NONE, opdi_compute_type((opd_scalar_type)src->dtype),
                           &opdi_no_params);
}
/* Begins (if `on` is true) or ends a series of operators on a list of tensors, of which this is the first: the backend
   may then run their pointwise computations as one (desc.gather).  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_gather_device(const opd_tensor *tensor, bool on) {
    const opdi_backend *backend = tensor->data && tensor->backend != OPD_CPU ? opdi_backend_of(tensor->backend) : NULL;
    return backend && backend->desc.gather
        ? opdi_backend_rc(backend->desc.gather(backend->desc.user, tensor->storage->index, on), tensor->backend,
                          "gather") : 0;
}
