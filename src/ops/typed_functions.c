#include "ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>wrappers     the typed functions of the built-in operators
//
//  They are compiled in the implementation, and once more in each plug-in.  Their code is generated: see
//  src/printing.py.
//----------------------------------------------------------------------------------------------------------------------

#if (defined(OPDI_CORE) || defined(OPDISPATCH_PLUGIN)) && !defined(OPDISPATCH_WRAPPERS)
#define OPDISPATCH_WRAPPERS
#include <stdarg.h>

#if defined(OPDISPATCH_PLUGIN)
static const char *const opd_builtin_names[] = {
#include "operator_names.printed.h"
};
#ifdef __cplusplus
extern "C" {
#endif
/* Finds a built-in operator by its name, because the program may have another version of the library, with other
   numbers. */
opd_op *opd_op_builtin(opd_op_id id) {
    return (unsigned)id < (unsigned)OPD_OP_COUNT ? opd_find_quiet(opd_builtin_names[id]) : NULL;
}
#elif defined(__cplusplus)
extern "C" {
#endif

/* Begins a typed function: it keeps the handle of its operator. */
#if defined(OPDISPATCH_PLUGIN)
#define OPD_HANDLE(card) static opd_op *op
#else
#define OPD_HANDLE(card) static opd_op *op; OPDI_NEEDS(card)
#endif
#define OPD_GIVEN_MAX 20         /* no typed function takes more */
/* Reads the arguments of a typed function into args, by the letters of its signature (see opd_op_check).  Returns their
   number. */
static OPD_UNUSED int opd_given(opd_value *args, const char *letters, va_list *list) {
    int n;
    for (n = 0; letters[n + 1]; n++) {
        switch (letters[n + 1]) {
            case 'T': args[n] = opd_value_tensor(va_arg(*list, opd_tensor *)); break;
            case 'i': args[n] = opd_value_int(va_arg(*list, int64_t)); break;
            case 'd': args[n] = opd_value_float(va_arg(*list, double)); break;
            case 'b': args[n] = opd_value_bool(va_arg(*list, int) != 0); break;
            case 's': args[n] = opd_value_str(va_arg(*list, const char *)); break;
            case 'I': args[n] = opd_value_of_ints(va_arg(*list, opd_ints)); break;
            case 'L': args[n] = opd_value_of_tensors(va_arg(*list, opd_tensors)); break;
            case 'D': args[n] = opd_value_device(va_arg(*list, opd_device)); break;
            case 'G': args[n] = opd_value_generator(va_arg(*list, opd_generator *)); break;
            default:  args[n] = va_arg(*list, opd_value); break;
        }
    }
    return n;
}
static OPD_UNUSED opd_tensor *opd_given_op(opd_op **op, const char *name, const char *letters, ...) {
    opd_value args[OPD_GIVEN_MAX];
    va_list list;
    int n;
    va_start(list, letters);
    n = opd_given(args, letters, &list);
    va_end(list);
    return opd_call_op(opd_op_typed(op, name, letters), args, n);
}
static OPD_UNUSED opd_value opd_given_value(opd_op **op, const char *name, const char *letters, ...) {
    opd_value args[OPD_GIVEN_MAX];
    va_list list;
    int n;
    va_start(list, letters);
    n = opd_given(args, letters, &list);
    va_end(list);
    return opd_call_value(opd_op_typed(op, name, letters), args, n);
}
static OPD_UNUSED opd_tensors opd_given_list(opd_op **op, const char *name, const char *letters, ...) {
    opd_value args[OPD_GIVEN_MAX];
    va_list list;
    int n;
    va_start(list, letters);
    n = opd_given(args, letters, &list);
    va_end(list);
    return opd_call_list(opd_op_typed(op, name, letters), args, n);
}
static OPD_UNUSED int opd_given_all(opd_op **op, const char *name, const char *letters, ...) {
    opd_value args[OPD_GIVEN_MAX];
    va_list list;
    int n;
    va_start(list, letters);
    n = opd_given(args, letters, &list);
    va_end(list);
    return opd_call_all(opd_op_typed(op, name, letters), NULL, args, n);
}
static OPD_UNUSED int opd_given_tensors(opd_op **op, const char *name, const char *letters, opd_tensor **rets, ...) {
    opd_value args[OPD_GIVEN_MAX];
    va_list list;
    int n;
    va_start(list, rets);
    n = opd_given(args, letters, &list);
    va_end(list);
    return opd_call_tensors(opd_op_typed(op, name, letters), rets, args, n);
}

#if !defined(OPDISPATCH_IMPLEMENTATION)
#define OPDI_COLD_BEGIN
#define OPDI_COLD_END
#define OPDI_ONCE_BEGIN
#define OPDI_ONCE_END
#endif

#include "typed_functions.printed.h"
#ifdef __cplusplus
}
#endif
#endif /* OPDISPATCH_WRAPPERS */

