/* odx_abi.h: the binary interface between the library under test and the harness that compares it with PyTorch.
   Plain C types only, so that a harness in any language can speak it.  shim.c implements it; it exports

     int  odx_has (const char *op);
     const char *odx_next (const char *op);    the operator after op (NULL: the first) whose card has cases; NULL: none
     const char *odx_cases(const char *op);    those cases
     int  odx_call(const char *op, const odx_value *args, int nargs, odx_value **outs, int *nouts,
                   char *err, int errlen);
     int  odx_grad(const char *op, const odx_value *args, int nargs, const int *wrt, int nwrt,
                   const odx_value *cot, int ncot, odx_value **grads, int *ngrads, char *err, int errlen);
     void odx_free(odx_value *outs, int nouts);

   Operators are named "aten::add.Tensor", or "aten::mm" where there is no overload name.  Arguments stand in schema
   order with all defaults filled in: nargs is the number of the schema's arguments.  Answers: 0 done; 1 refused, where
   PyTorch would refuse too (text in err); 2 this dtype or form is not supported.
   A number in a Tensor slot is PyTorch's wrapped number, as the 2 in x + 2.
   outs has one value a return, a list for Tensor[].  A result that is a view of an argument reports that argument's
   storage; in-place and out= operators write into the argument's memory and return it as well.
   odx_grad: wrt are positions among all tensors of args in order, lists flattened; cot has a value for every leaf of
   the results (NONE: no gradient comes in there); a TENSOR or NONE comes back for each wrt.
   What outs points to stays the library's until odx_free, which is called with what odx_call or odx_grad gave. */
#ifndef ODX_ABI_H
#define ODX_ABI_H

#include <stdint.h>

enum {
    ODX_NONE, ODX_TENSOR, ODX_INT, ODX_DOUBLE, ODX_BOOL, ODX_STR, ODX_COMPLEX, ODX_DTYPE, ODX_LAYOUT, ODX_MEMFMT,
    ODX_DEVICE, ODX_GENERATOR, ODX_LIST
};

typedef struct odx_tensor {
    void *data;                       /* first element: the storage and the offset */
    int32_t dtype, ndim;              /* dtype: ATen's ScalarType number, as in opd_scalar_type */
    const int64_t *size, *stride;     /* [ndim], strides in elements */
    void *storage;                    /* start of the memory that the tensor looks at */
    int64_t storage_bytes;
} odx_tensor;

typedef struct odx_value {
    int32_t tag, n;                   /* n: length of a list */
    union {
        int64_t i;                    /* INT, BOOL, DTYPE, LAYOUT, MEMFMT */
        double d;                     /* DOUBLE */
        double c[2];                  /* COMPLEX: real, imaginary */
        const char *s;                /* STR, DEVICE */
        odx_tensor *t;                /* TENSOR */
        struct odx_value *list;       /* LIST */
    } u;
} odx_value;

#endif /* ODX_ABI_H */
