#include "graphs.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>builtin_numbers builtin functions of graphs: numbers, conversions, numbers from tensors
//
//  Builtin functions are the functions that TorchScript registers in addition to its tensor operators.  Their schemas
//  and results are the same as in TorchScript.  Several schemas may share one C function.
//----------------------------------------------------------------------------------------------------------------------

//== arguments and results of builtin functions ========================================================================

OPDI_INTERNAL int opdi_builtin_unknown(opdi_bcall *call);

OPDI_INTERNAL int64_t opdi_call_int(const opdi_bcall *call, int i) { return call->args[i].u.i; }
OPDI_INTERNAL bool opdi_call_none(const opdi_bcall *call, int i) {
    return i >= call->nargs || call->args[i].tag == OPD_TAG_NONE;
}
/* Returns the cell of argument i, which must be of the kind `kind`.  On failure, returns NULL and sets an error. */
OPDI_INTERNAL opdi_cell *opdi_call_cell(const opdi_bcall *call, int i, opd_cell_kind kind) {
    opdi_cell *cell = i < call->nargs ? opdi_cell_of(&call->args[i]) : NULL;
    if (cell && cell->kind == kind) { return cell; }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: argument %d is %s", call->builtin->schema, i,
                   i < call->nargs ? opdi_value_kind_name(&call->args[i]) : "missing");
    return NULL;
}
OPDI_INTERNAL opdi_cell *opdi_call_list(const opdi_bcall *call, int i) {
    return opdi_call_cell(call, i, OPD_CELL_LIST);
}
/* Returns the text of argument i and sets *length.  If the argument is not a text, returns NULL and sets an error. */
OPDI_INTERNAL const char *opdi_call_text(const opdi_bcall *call, int i, int64_t *length) {
    const char *text = i < call->nargs ? opdi_value_text(&call->args[i], length) : NULL;
    if (!text) { (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: argument %d is not a str", call->builtin->schema, i); }
    return text;
}
OPDI_INTERNAL opd_tensor *opdi_call_tensor(const opdi_bcall *call, int i) {
    if (i < call->nargs && call->args[i].tag == OPD_TAG_TENSOR) { return call->args[i].u.t; }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: argument %d is not a Tensor", call->builtin->schema, i);
    return NULL;
}
OPDI_INTERNAL int opdi_return_value(opdi_bcall *call, opd_value value) {
    call->rets[0] = value;
    return 0;
}
OPDI_INTERNAL int opdi_return_cell(opdi_bcall *call, opdi_cell *cell) {
    call->rets[0] = opdi_cell_value(cell);
    return cell ? 0 : -1;
}
OPDI_INTERNAL int opdi_return_text(opdi_bcall *call, const char *text, int64_t length) {
    return opdi_return_cell(call, opdi_cell_text(text, length));
}
/* Sets the call's result to a new reference to `value`.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_return_borrowed(opdi_bcall *call, opd_value value) {
    if (opdi_value_hold(&value)) { return -1; }
    return opdi_return_value(call, value);
}
OPDI_INTERNAL int opdi_return_complex(opdi_bcall *call, double re, double im) {
    const double pair[2] = {re, im};
    return opdi_return_borrowed(call, opd_value_complex(pair));
}
OPDI_INTERNAL int opdi_return_tensor(opdi_bcall *call, opd_tensor *tensor) {
    return tensor ? opdi_return_value(call, opd_value_tensor(opdi_keep(tensor))) : -1;
}

OPDI_INTERNAL const double *opdi_complex_of(const opd_value *value) {
    const opdi_cell *cell = opdi_cell_of(value);
    return value->tag == OPD_TAG_COMPLEX ? value->u.c : cell && cell->kind == OPD_CELL_COMPLEX ? cell->u.pair : NULL;
}
OPDI_INTERNAL double opdi_real_of(const opd_value *value) {
    const double *pair = opdi_complex_of(value);
    return pair ? pair[0] : value->tag == OPD_TAG_FLOAT ? value->u.d : (double)value->u.i;
}
OPDI_INTERNAL bool opdi_whole(const opd_value *value) {
    return value->tag == OPD_TAG_INT || value->tag == OPD_TAG_BOOL;
}

//== numbers ===========================================================================================================

OPDI_INTERNAL int64_t opdi_wrap(uint64_t bits) { return (int64_t)bits; }
static int opdi_no_division(const char *what) {
    return opd_fail(OPD_ERROR_ARGUMENT, "ZeroDivisionError: %s by zero", what);
}
static int64_t opdi_int_floordiv(int64_t a, int64_t b) {
    if (b == -1) { return opdi_wrap(0 - (uint64_t)a); }
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}
static int64_t opdi_int_mod(int64_t a, int64_t b) {
    if (b == -1) { return 0; }
    const int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
static int64_t opdi_int_pow(int64_t base, int64_t to) {
    uint64_t product = 1, factor = (uint64_t)base;
    for (; to > 0; to >>= 1) {
        if (to & 1) { product *= factor; }
        factor *= factor;
    }
    return opdi_wrap(product);
}
static int64_t opdi_int_gcd(int64_t a, int64_t b) {
    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    while (y) {
        const uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return opdi_wrap(x);
}
static int opdi_binary_ints(opdi_bcall *call, int64_t a, int64_t b, int32_t what) {
    int64_t value = 0;
    switch (what) {
    case OPDI_FN_ADD: value = opdi_wrap((uint64_t)a + (uint64_t)b); break;
    case OPDI_FN_SUB: value = opdi_wrap((uint64_t)a - (uint64_t)b); break;
    case OPDI_FN_MUL: value = opdi_wrap((uint64_t)a * (uint64_t)b); break;
    case OPDI_FN_FLOORDIV:
        if (b == 0) { return opdi_no_division("integer division or modulo"); }
        value = opdi_int_floordiv(a, b);
        break;
    case OPDI_FN_ROUND_TO_ZERO:
        if (b == 0) { return opdi_no_division("integer division or modulo"); }
        value = b == -1 ? opdi_wrap(0 - (uint64_t)a) : a / b;
        break;
    case OPDI_FN_REMAINDER:
        if (b == 0) { return opdi_no_division("integer division or modulo"); }
        value = opdi_int_mod(a, b);
        break;
    case OPDI_FN_POW_INT:
        if (b < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "Integers to negative integer powers are not allowed."); }
        value = opdi_int_pow(a, b);
        break;
    case OPDI_FN_AND: value = a & b; break;
    case OPDI_FN_OR: value = a | b; break;
    case OPDI_FN_XOR: value = a ^ b; break;
    case OPDI_FN_LSHIFT: case OPDI_FN_RSHIFT:
        if (b < 0 || b > 63) {
            return opd_fail(OPD_ERROR_ARGUMENT, "a shift by %lld bits is not possible", (long long)b);
        }
        value = what == OPDI_FN_LSHIFT ? opdi_wrap((uint64_t)a << b) : a < 0 ? ~(~a >> b) : a >> b;
        break;
    case OPDI_FN_GCD: value = opdi_int_gcd(a, b); break;
    case OPDI_FN_MIN: value = OPDI_MIN(a, b); break;
    case OPDI_FN_MAX: value = OPDI_MAX(a, b); break;
    default: return 1;
    }
    return opdi_return_value(call, opd_value_int(value));
}
static int opdi_binary_floats(opdi_bcall *call, double a, double b, int32_t what) {
    double value = 0;
    switch (what) {
    case OPDI_FN_ADD: value = a + b; break;
    case OPDI_FN_SUB: value = a - b; break;
    case OPDI_FN_MUL: value = a * b; break;
    case OPDI_FN_DIV:
        value = a / b;
        break;
    case OPDI_FN_FLOORDIV: value = floor(a / b); break;
    case OPDI_FN_REMAINDER: value = fmod(b + fmod(a, b), b); break;
    case OPDI_FN_MATHREMAINDER: value = remainder(a, b); break;
    case OPDI_FN_FMOD: value = fmod(a, b); break;
    case OPDI_FN_POW:
        if (a >= 0 && a <= 0 && b < 0) {
            return opd_fail(OPD_ERROR_ARGUMENT, "0.0 cannot be raised to a negative power");
        }
        value = opdi_pow_f64(a, b);
        break;
    case OPDI_FN_COPYSIGN: value = copysign(a, b); break;
    case OPDI_FN_ATAN2: value = opdi_atan2_f64(a, b); break;
    case OPDI_FN_MIN: value = a < b ? a : b; break;                /* takes b, as PyTorch does, if a and b are equal or
                                                                      one of them is NaN */
    case OPDI_FN_MAX: value = a > b ? a : b; break;
    default: return opd_fail(OPD_ERROR_ARGUMENT, "%s is not possible for floats", call->builtin->schema);
    }
    return opdi_return_value(call, opd_value_double(value));
}
/* Sets the call's result to (a + bi) / (c + di), by Smith's method, which computes no squares that could overflow.
   Division by zero gives the same results as in PyTorch.  Returns 0, or -1 and sets an error. */
static int opdi_divide_complex(opdi_bcall *call, double a, double b, double c, double d) {
    if (fabs(c) >= fabs(d)) {
        if (!(fabs(c) > 0) && !isnan(c)) { return opdi_return_complex(call, a / fabs(c), b / fabs(c)); }
        const double ratio = d / c, by = c + d * ratio;
        return opdi_return_complex(call, (a + b * ratio) / by, (b - a * ratio) / by);
    }
    const double ratio = c / d, by = c * ratio + d;
    return opdi_return_complex(call, (a * ratio + b) / by, (b * ratio - a) / by);
}
/* Computes the binary operation `what` (an OPDI_FN_...) of two numbers, at least one of which is complex.  Returns 0,
   or -1 and sets an error. */
static int opdi_binary_complex(opdi_bcall *call, const opd_value *left, const opd_value *right, int32_t what) {
    const double *const first = opdi_complex_of(left), *const second = opdi_complex_of(right);
    const double a = opdi_real_of(left), b = first ? first[1] : 0, c = opdi_real_of(right), d = second ? second[1] : 0;
    const double size = c * c + d * d;
    switch (what) {
    case OPDI_FN_ADD: return opdi_return_complex(call, a + c, b + d);
    case OPDI_FN_SUB: return opdi_return_complex(call, a - c, b - d);
    case OPDI_FN_MUL: return opdi_return_complex(call, a * c - b * d, a * d + b * c);
    case OPDI_FN_DIV: return opdi_divide_complex(call, a, b, c, d);
    case OPDI_FN_POW: {
        const double radius = opdi_hypot_f64(a, b), angle = opdi_atan2_f64(b, a);
        if (radius <= 0) { return opdi_return_complex(call, size > 0 ? 0 : 1, 0); }
        const double log_radius = opdi_log_f64(radius), turn = d * log_radius + c * angle;
        const double scale = opdi_exp_f64(c * log_radius - d * angle);
        return opdi_return_complex(call, scale * opdi_cos_f64(turn), scale * opdi_sin_f64(turn));
    }
    default: return opd_fail(OPD_ERROR_ARGUMENT, "%s is not possible for complex numbers", call->builtin->schema);
    }
}
/* Runs a binary operation of two numbers.  A power of two ints is a float, unless the schema declares an int.  Returns
   0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_fn_binary(opdi_bcall *call) {
    const opd_value *const left = &call->args[0], *const right = &call->args[1];
    const int32_t what = call->builtin->what;
    if (opdi_complex_of(left) || opdi_complex_of(right)) { return opdi_binary_complex(call, left, right, what); }
    if (left->tag == OPD_TAG_BOOL && right->tag == OPD_TAG_BOOL && what >= OPDI_FN_AND && what <= OPDI_FN_XOR) {
        return opdi_return_value(call, opd_value_bool(what == OPDI_FN_AND ? left->u.i & right->u.i : what == OPDI_FN_OR
                                                      ? left->u.i | right->u.i : left->u.i ^ right->u.i));
    }
    if (opdi_whole(left) && opdi_whole(right)) {
        const int rc = opdi_binary_ints(call, left->u.i, right->u.i, what);
        if (rc <= 0) { return rc; }
    }
    return opdi_binary_floats(call, opdi_real_of(left), opdi_real_of(right), what);
}
/* Runs divmod of two numbers, as Python computes it.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_fn_divmod(opdi_bcall *call) {
    const opd_value *const left = &call->args[0], *const right = &call->args[1];
    const double a = opdi_real_of(left), b = opdi_real_of(right);
    if (b >= 0 && b <= 0) {
        return opdi_no_division(opdi_whole(right) ? "integer division or modulo" : "float divmod()");
    }
    if (opdi_whole(left) && opdi_whole(right)) {
        call->rets[0] = opd_value_int(opdi_int_floordiv(left->u.i, right->u.i));
        call->rets[1] = opd_value_int(opdi_int_mod(left->u.i, right->u.i));
        return 0;
    }
    const double rest = fmod(a, b), shifted = rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    call->rets[0] = opd_value_double((a - shifted) / b);
    call->rets[1] = opd_value_double(shifted);
    return 0;
}

/* Compares two strings or two numbers.  Returns -1, 0 or 1 if `left` is less than, equal to or greater than `right`,
   and 2 if they have no order (NaN). */
OPDI_INTERNAL int opdi_compare(const opd_value *left, const opd_value *right) {
    int64_t first, second;
    const char *const text = opdi_value_text(left, &first), *const other = opdi_value_text(right, &second);
    if (text && other) {
        const int order = memcmp(text, other, (size_t)OPDI_MIN(first, second));
        return order ? order < 0 ? -1 : 1 : first < second ? -1 : first > second;
    }
    if (opdi_whole(left) && opdi_whole(right)) { return left->u.i < right->u.i ? -1 : left->u.i > right->u.i; }
    const double a = opdi_real_of(left), b = opdi_real_of(right);
    return a < b ? -1 : a > b ? 1 : a >= b ? 0 : 2;
}
/* Returns 1 if two values are equal, 0 if not, or -1 and sets an error. */
OPDI_INTERNAL int opdi_equal(const opd_value *left, const opd_value *right, int depth) {
    const opdi_cell *const first = opdi_cell_of(left), *const second = opdi_cell_of(right);
    const double *const a = opdi_complex_of(left), *const b = opdi_complex_of(right);
    int64_t count, other;
    if (depth > OPDI_MAX_CELL_DEPTH) { return opd_fail(OPD_ERROR_ARGUMENT, "values are nested too deeply"); }
    if (opdi_value_text(left, &count) || opdi_value_text(right, &other)) {
        return opdi_value_text(left, &count) && opdi_value_text(right, &other) && opdi_compare(left, right) == 0;
    }
    if (a || b) {
        return opdi_real_of(left) >= opdi_real_of(right) && opdi_real_of(left) <= opdi_real_of(right) &&
            (a ? a[1] : 0) >= (b ? b[1] : 0) && (a ? a[1] : 0) <= (b ? b[1] : 0);
    }
    if (left->tag == OPD_TAG_TENSOR && right->tag == OPD_TAG_TENSOR) {
        opd_scope scope = opd_scope_open();
        opd_tensor *same = opd_eq(left->u.t, right->u.t), *all = same ? opd_all(same) : NULL;
        const int rc = all ? opd_item_i64(all) != 0 : -1;
        opd_scope_close(&scope);
        return opd_ok() ? rc : -1;
    }
    if (first && second) {
        const bool dict = first->kind == OPD_CELL_DICT;
        if (first == second) { return 1; }
        if (first->kind != second->kind || first->count != second->count) { return 0; }
        if (first->kind == OPD_CELL_OBJECT) {
            return first->klass == second->klass && first->klass->kind == OPDI_CLASS_ENUM && first->count == 2 &&
                opdi_equal(&first->u.values[1], &second->u.values[1], depth + 1) == 1;
        }
        for (int64_t i = 0; i < first->count; i++) {
            const int64_t at = dict ? opdi_dict_find(second, &first->u.values[2 * i]) : i;
            if (at < 0) { return 0; }
            const opd_value x = dict ? first->u.values[2 * i + 1] : opdi_cell_at(first, i);
            const opd_value y = dict ? second->u.values[2 * at + 1] : opdi_cell_at(second, at);
            const int rc = opdi_equal(&x, &y, depth + 1);
            if (rc != 1) { return rc; }
        }
        return 1;
    }
    if (left->tag == OPD_TAG_DEVICE && right->tag == OPD_TAG_DEVICE) {
        return left->u.device.type == right->u.device.type && left->u.device.index == right->u.device.index;
    }
    if ((opdi_whole(left) || left->tag == OPD_TAG_FLOAT) && (opdi_whole(right) || right->tag == OPD_TAG_FLOAT)) {
        return opdi_compare(left, right) == 0;
    }
    return left->tag == right->tag && left->u.i == right->u.i;
}
OPDI_INTERNAL int opdi_fn_compare(opdi_bcall *call) {
    const int32_t what = call->builtin->what;
    if (what == OPDI_FN_EQ || what == OPDI_FN_NE) {
        const int rc = opdi_equal(&call->args[0], &call->args[1], 0);
        return rc < 0 ? -1 : opdi_return_value(call, opd_value_bool((rc != 0) == (what == OPDI_FN_EQ)));
    }
    const int order = opdi_compare(&call->args[0], &call->args[1]);
    const bool holds = what == OPDI_FN_LT ? order == -1 : what == OPDI_FN_LE ? order == -1 || order == 0
        : what == OPDI_FN_GT ? order == 1 : order == 1 || order == 0;
    return opdi_return_value(call, opd_value_bool(holds));
}
/* Tests identity: the result is true if both arguments are None, or if both are the same object.  Returns 0, or -1 and
   sets an error. */
OPDI_INTERNAL int opdi_fn_is(opdi_bcall *call) {
    const opd_value *const left = &call->args[0], *const right = &call->args[1];
    const bool same = left->tag == right->tag && (left->tag == OPD_TAG_NONE || left->u.i == right->u.i);
    return opdi_return_value(call, opd_value_bool(same == (call->builtin->what == OPDI_FN_IS)));
}
OPDI_INTERNAL int opdi_fn_not(opdi_bcall *call) {
    return opdi_return_value(call, opd_value_bool(call->args[0].u.i == 0));
}

static double opdi_unary_float(double x, int32_t what) {
    const double pi = 3.14159265358979323846;
    switch (what) {
    case OPDI_FN_NEG: return -x;
    case OPDI_FN_ABS: case OPDI_FN_FABS: return fabs(x);
    case OPDI_FN_SQRT: return sqrt(x);
    case OPDI_FN_EXP: return opdi_exp_f64(x);
    case OPDI_FN_LOG: return opdi_log_f64(x);
    case OPDI_FN_LOG10: return log10(x);
    case OPDI_FN_LOG1P: return opdi_log1p_f64(x);
    case OPDI_FN_EXPM1: return opdi_expm1_f64(x);
    case OPDI_FN_SIN: return opdi_sin_f64(x);
    case OPDI_FN_COS: return opdi_cos_f64(x);
    case OPDI_FN_TAN: return opdi_tan_f64(x);
    case OPDI_FN_ASIN: return asin(x);
    case OPDI_FN_ACOS: return opdi_acos_f64(x);
    case OPDI_FN_ATAN: return atan(x);
    case OPDI_FN_SINH: return opdi_sinh_f64(x);
    case OPDI_FN_COSH: return opdi_cosh_f64(x);
    case OPDI_FN_TANH: return opdi_tanh_f64(x);
    case OPDI_FN_ASINH: return asinh(x);
    case OPDI_FN_ACOSH: return acosh(x);
    case OPDI_FN_ATANH: return atanh(x);
    case OPDI_FN_ERF: return erf(x);
    case OPDI_FN_ERFC: return opdi_erfc_f64(x);
    case OPDI_FN_GAMMA: return tgamma(x);
    case OPDI_FN_LGAMMA: return lgamma(x);
    case OPDI_FN_ROUND: return nearbyint(x);
    case OPDI_FN_DEGREES: return x * (180 / pi);
    case OPDI_FN_RADIANS: return x * (pi / 180);
    default: return signbit(x) ? pi : 0;          /* OPDI_FN_ANGLE */
    }
}
/* Calls the operator `name` for the complex number pair[0] + pair[1] i, and stores the result in out[2].  Returns 0, or
   -1 and sets an error. */
static int opdi_complex_call(const char *name, const double *pair, double *out) {
    const int64_t none = 0;
    opd_op *const op = opd_find(name);
    opd_scope scope = opd_scope_open();
    opd_value arg = opd_value_tensor(op ? opd_tensor_from(pair, opd_ints_of(&none, 0), OPD_COMPLEX128) : NULL);
    opd_tensor *const result = arg.u.t ? opd_call_op(op, &arg, 1) : NULL;
    const double *const parts = result ? (const double *)opd_data(result) : NULL;
    for (int i = 0; parts && i < 2; i++) { out[i] = parts[i]; }
    opd_scope_close(&scope);
    return parts ? 0 : -1;
}
/* Calls the operator with the builtin's name for a complex number, and sets the call's result.  Returns 0, or -1 and
   sets an error. */
static int opdi_unary_complex(opdi_bcall *call, const double *pair) {
    char name[64];
    double out[2];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(call->builtin->schema, "."), call->builtin->schema);
    return opdi_complex_call(name, pair, out) ? -1 : opdi_return_complex(call, out[0], out[1]);
}
OPDI_INTERNAL int opdi_fn_unary(opdi_bcall *call) {
    const opd_value *const value = &call->args[0];
    const double *const pair = opdi_complex_of(value), x = opdi_real_of(value);
    const int32_t what = call->builtin->what;
    if (pair) {
        if (what == OPDI_FN_NEG) { return opdi_return_complex(call, -pair[0], -pair[1]); }
        if (what == OPDI_FN_ABS) { return opdi_return_value(call, opd_value_double(opdi_hypot_f64(pair[0], pair[1]))); }
        if (what == OPDI_FN_ANGLE) {
            return opdi_return_value(call, opd_value_double(opdi_atan2_f64(pair[1], pair[0])));
        }
        return opdi_unary_complex(call, pair);
    }
    if (value->tag != OPD_TAG_FLOAT) {
        if (what == OPDI_FN_NEG) { return opdi_return_value(call, opd_value_int(opdi_wrap(0 - (uint64_t)value->u.i))); }
        if (what == OPDI_FN_ABS) {
            return opdi_return_value(call,
                                     opd_value_int(value->u.i < 0 ? opdi_wrap(0 - (uint64_t)value->u.i) : value->u.i));
        }
        if (what == OPDI_FN_FLOOR || what == OPDI_FN_CEIL || what == OPDI_FN_TRUNC) {
            return opdi_return_value(call, *value);
        }
    }
    if (what == OPDI_FN_FLOOR || what == OPDI_FN_CEIL || what == OPDI_FN_TRUNC) {
        const double whole = what == OPDI_FN_FLOOR ? floor(x) : what == OPDI_FN_CEIL ? ceil(x) : trunc(x);
        if (!opdi_fits_i64(whole)) { return opd_fail(OPD_ERROR_ARGUMENT, "cannot convert float %g to integer", x); }
        return opdi_return_value(call, opd_value_int((int64_t)whole));
    }
    return opdi_return_value(call, opd_value_double(opdi_unary_float(x, what)));
}
OPDI_INTERNAL int opdi_fn_abs(opdi_bcall *call) {
    opd_tensor *const tensor = opdi_call_tensor(call, 0);
    opd_scope scope = opd_scope_open();
    const int rc = tensor ? opdi_return_tensor(call, opd_abs(tensor)) : -1;
    opd_scope_close(&scope);
    return rc;
}
OPDI_INTERNAL int opdi_fn_log_base(opdi_bcall *call) {
    double logs[2][2];
    for (int i = 0; i < 2 && (opdi_complex_of(&call->args[0]) || opdi_complex_of(&call->args[1])); i++) {
        const double *const pair = opdi_complex_of(&call->args[i]);
        const double parts[2] = {opdi_real_of(&call->args[i]), pair ? pair[1] : 0};
        if (opdi_complex_call("aten::log", parts, logs[i])) { return -1; }
        if (i == 0) { continue; }
        const double *const x = logs[0], *const y = logs[1], size = y[0] * y[0] + y[1] * y[1];
        return opdi_return_complex(call, (x[0] * y[0] + x[1] * y[1]) / size, (x[1] * y[0] - x[0] * y[1]) / size);
    }
    return opdi_return_value(call,
                             opd_value_double(opdi_log_f64(opdi_real_of(&call->args[0])) /
                                              opdi_log_f64(opdi_real_of(&call->args[1]))));
}
OPDI_INTERNAL int opdi_fn_polar(opdi_bcall *call) {
    const double size = opdi_real_of(&call->args[0]), angle = opdi_real_of(&call->args[1]);
    return opdi_return_complex(call, size * opdi_cos_f64(angle), size * opdi_sin_f64(angle));
}
OPDI_INTERNAL int opdi_fn_test(opdi_bcall *call) {
    const double *const pair = opdi_complex_of(&call->args[0]);
    const double x = opdi_real_of(&call->args[0]), y = pair ? pair[1] : 0;
    const int32_t what = call->builtin->what;
    return opdi_return_value(call, opd_value_bool(what == OPDI_FN_ISNAN ? isnan(x) || isnan(y) : what == OPDI_FN_ISINF
                                                  ? isinf(x) || isinf(y) : isfinite(x) && isfinite(y)));
}
OPDI_INTERNAL int opdi_fn_factorial(opdi_bcall *call) {
    uint64_t product = 1;
    if (opdi_call_int(call, 0) < 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "factorial() not defined for negative values");
    }
    if (opdi_call_int(call, 0) > 20) {
        return opd_fail(OPD_ERROR_ARGUMENT, "factorial(%lld) has more than 64 bits", (long long)opdi_call_int(call, 0));
    }
    for (int64_t k = 2; k <= opdi_call_int(call, 0); k++) { product *= (uint64_t)k; }
    return opdi_return_value(call, opd_value_int(opdi_wrap(product)));
}
OPDI_INTERNAL int opdi_fn_modf(opdi_bcall *call) {
    double whole;
    const double part = modf(opdi_real_of(&call->args[0]), &whole);
    call->rets[1] = opd_value_double(whole);
    return opdi_return_value(call, opd_value_double(part));
}
OPDI_INTERNAL int opdi_fn_frexp(opdi_bcall *call) {
    int power;
    const double part = frexp(opdi_real_of(&call->args[0]), &power);
    call->rets[1] = opd_value_int(power);
    return opdi_return_value(call, opd_value_double(part));
}
OPDI_INTERNAL int opdi_fn_ldexp(opdi_bcall *call) {
    const int64_t power = OPDI_MAX(-100000, OPDI_MIN(opdi_call_int(call, 1), 100000));
    return opdi_return_value(call, opd_value_double(ldexp(opdi_real_of(&call->args[0]), (int)power)));
}
OPDI_INTERNAL int opdi_fn_range_length(opdi_bcall *call) {
    const int64_t lo = opdi_call_int(call, 0), hi = opdi_call_int(call, 1), step = opdi_call_int(call, 2);
    if (step == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "range() arg 3 must not be zero"); }
    const uint64_t span = step > 0 ? (uint64_t)hi - (uint64_t)lo : (uint64_t)lo - (uint64_t)hi;
    const uint64_t size = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    return opdi_return_value(call,
                             opd_value_int((step > 0 ? lo < hi : lo > hi) ? opdi_wrap((span - 1) / size + 1) : 0));
}
OPDI_INTERNAL int opdi_fn_derive_index(opdi_bcall *call) {
    const uint64_t offset = (uint64_t)opdi_call_int(call, 0) * (uint64_t)opdi_call_int(call, 2);
    return opdi_return_value(call, opd_value_int(opdi_wrap((uint64_t)opdi_call_int(call, 1) + offset)));
}
OPDI_INTERNAL int opdi_fn_rangelist(opdi_bcall *call) {
    opdi_cell *cell = opdi_cell_new(OPD_CELL_LIST, OPD_TAG_INTS, 0);
    if (!cell || opdi_cell_reserve(cell, opdi_call_int(call, 0))) {
        if (cell) { opdi_cell_drop(cell); }
        return -1;
    }
    for (; cell->count < opdi_call_int(call, 0); cell->count++) { cell->u.ints[cell->count] = cell->count; }
    return opdi_return_cell(call, cell);
}

//== conversions =======================================================================================================

/* Sets *value to the number in a tensor of one element.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_tensor_scalar(opd_tensor *tensor, opd_value *value) {
    opd_scope scope = opd_scope_open();
    int rc = opd_numel(tensor) == 1 ? 0 : opd_fail(OPD_ERROR_ARGUMENT, "a Tensor with %lld elements cannot be "
                                                   "converted to Scalar", (long long)opd_numel(tensor));
    if (rc == 0) { *value = opd_item(tensor); }
    rc = opd_ok() ? opdi_value_hold(value) : -1;
    opd_scope_close(&scope);
    return rc;
}
/* Sets *value to the number in the text of argument 0, which is read as Python's int() (`what` is OPDI_FN_INT) or
   float() (OPDI_FN_FLOAT) reads it.  Returns 0, or -1 and sets an error. */
static int opdi_text_number(const opdi_bcall *call, int32_t what, opd_value *value) {
    int64_t length;
    char buf[400];
    char *end;
    const char *text = opdi_call_text(call, 0, &length);
    if (!text) { return -1; }
    while (length && strchr(" \t\n\r\f\v", *text) && *text) { text++, length--; }
    while (length && strchr(" \t\n\r\f\v", text[length - 1]) && text[length - 1]) { length--; }
    (void)snprintf(buf, sizeof buf, "%.*s", (int)OPDI_MIN(length, 399), text);
    errno = 0;
    *value = what == OPDI_FN_INT ? opd_value_int(strtoll(buf, &end, 10)) : opd_value_double(strtod(buf, &end));
    if (end == buf || *end || (what == OPDI_FN_INT && errno) || strpbrk(buf, "xX")) {
        return opd_fail(OPD_ERROR_ARGUMENT, what == OPDI_FN_INT ? "invalid literal for int() with base 10: '%s'"
                        : "could not convert string to float: '%s'", buf);
    }
    return 0;
}
OPDI_INTERNAL int opdi_fn_convert(opdi_bcall *call) {
    const int32_t what = call->builtin->what;
    opd_value value = call->args[0];
    int64_t length;
    if (opdi_value_text(&value, &length)) {
        if (opdi_text_number(call, what, &value)) { return -1; }
    } else if (value.tag == OPD_TAG_TENSOR) {
        if (opdi_tensor_scalar(value.u.t, &value)) { return -1; }
    } else if (opdi_value_hold(&value)) { return -1; }
    if (opdi_complex_of(&value) && what != OPDI_FN_SCALAR && what != OPDI_FN_COMPLEX) {
        opdi_value_drop(value);
        return opd_fail(OPD_ERROR_ARGUMENT, "a complex number cannot be converted to %s", what == OPDI_FN_INT ? "int"
                        : "float");
    }
    if (what == OPDI_FN_FLOAT) { value = opd_value_double(opdi_real_of(&value)); }
    if (what == OPDI_FN_BOOL) { value = opd_value_bool(opdi_real_of(&value) < 0 || !(opdi_real_of(&value) <= 0)); }
    if (what == OPDI_FN_INT) {
        if (value.tag == OPD_TAG_FLOAT && !opdi_fits_i64(value.u.d)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "cannot convert float %g to integer", value.u.d);
        }
        value = opd_value_int(value.tag == OPD_TAG_FLOAT ? (int64_t)value.u.d : value.u.i);
    }
    if (what == OPDI_FN_COMPLEX && !opdi_complex_of(&value)) {
        return opdi_return_complex(call, opdi_real_of(&value), 0);
    }
    return opdi_return_value(call, value);
}
OPDI_INTERNAL int opdi_fn_complex(opdi_bcall *call) {
    double parts[2];
    for (int i = 0; i < 2; i++) {
        opd_value value = call->args[i];
        if (value.tag == OPD_TAG_TENSOR && opdi_tensor_scalar(value.u.t, &value)) { return -1; }
        parts[i] = opdi_real_of(&value);
        if (call->args[i].tag == OPD_TAG_TENSOR) { opdi_value_drop(value); }
    }
    return opdi_return_complex(call, parts[0], parts[1]);
}
/* Converts a tensor to a number, for an argument that must be a number.  Fails if the tensor requires grad, if it has
   dims, or if an int is needed and its dtype is not integral.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_fn_implicit(opdi_bcall *call) {
    opd_tensor *const tensor = opdi_call_tensor(call, 0);
    const int32_t what = call->builtin->what;
    if (!tensor) { return -1; }
    if (opdi_requires_grad(tensor)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Cannot input a tensor that requires grad as a scalar argument");
    }
    if (opd_ndim(tensor) != 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Cannot input a tensor of dimension other than 0 as a scalar argument");
    }
    if (what == OPDI_FN_INT && !opd_dtype_is_integral(opd_dtype(tensor), false)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Cannot input a tensor of type %s as an integral argument",
                        opd_dtype_name(opd_dtype(tensor)));
    }
    return opdi_fn_convert(call);
}
