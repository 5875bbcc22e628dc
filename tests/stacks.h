/* stacks.h: applies stacks of transforms to functions of one tensor, and computes the same without transforms.

   The text of a function is a list of calls, like `y = clone(x); v = select(y, 0, 1); mul_(v, x); y`.  Variables are
   letters, x is the input, and the last word is the output.  Arguments: a variable, 2, 1.5, True, None, 'text',
   (1,2) a list of integers, {x,y} a list of tensors, i[0,2] a tensor of integers, b[1,0] a tensor of bools.  `y, i =
   sort(x, 0)` has several results.

   A stack is a list of transforms around the function, the outermost first.  stack_run applies the transforms.
   stack_plain computes the same with only autograd: a loop for vmap, a Jacobian row by row, and the product of rows
   and tangent for jvp. */
#ifndef OPD_TESTS_STACKS_H
#define OPD_TESTS_STACKS_H

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

//-- functions as text -------------------------------------------------------------------------------------------------

#define TEXT_ARGS 10
#define TEXT_LIST 8
typedef struct text_call {
    const char *at;
    opd_tensor *vars[26];
    opd_value args[TEXT_ARGS];
    opd_tensor *tensors[TEXT_ARGS][TEXT_LIST];
    int64_t ints[TEXT_ARGS][TEXT_LIST];
    char words[TEXT_ARGS][16];
} text_call;

static void text_space(text_call *c) { while (*c->at == ' ') { c->at++; } }
static bool text_if(text_call *c, char x) {
    text_space(c);
    if (*c->at != x) { return false; }
    c->at++;
    return true;
}
static bool text_word(text_call *c, const char *word) {
    const size_t n = strlen(word);
    text_space(c);
    if (strncmp(c->at, word, n) != 0) { return false; }
    c->at += n;
    return true;
}
static int text_ints(text_call *c, int64_t *to, char close) {
    int n = 0;
    char *end;
    while (!text_if(c, close) && n < TEXT_LIST) {
        to[n++] = strtoll(c->at, &end, 10);
        c->at = end;
        (void)text_if(c, ',');
    }
    return n;
}
static opd_tensor *text_variable(text_call *c) {
    text_space(c);
    return c->vars[(*c->at++ - 'a') % 26];
}
static opd_value text_number(text_call *c) {
    const size_t n = strspn(c->at, "+-0123456789");
    char *end;
    opd_value v;
    if (c->at[n] == '.') { v = opd_value_double(strtod(c->at, &end)); }
    else { v = opd_value_int(strtoll(c->at, &end, 10)); }
    if (end == c->at) { (void)opd_fail(OPD_ERROR_ARGUMENT, "cannot be read: %s", c->at); end += *end != 0; }
    c->at = end;
    return v;
}
/* Returns a tensor of integers or of bools. */
static opd_value text_tensor(text_call *c, int k, bool bools) {
    bool b[TEXT_LIST];
    const int n = text_ints(c, c->ints[k], ']');
    const int64_t size = n;
    int i;
    for (i = 0; i < n; i++) { b[i] = c->ints[k][i] != 0; }
    return opd_value_tensor(opd_tensor_from(bools ? (const void *)b : (const void *)c->ints[k], opd_ints_of(&size, 1),
                                            bools ? OPD_BOOL : OPD_INT64));
}
static opd_value text_argument(text_call *c, int k) {
    int n = 0;
    text_space(c);
    if (text_word(c, "i[")) { return text_tensor(c, k, false); }
    if (text_word(c, "b[")) { return text_tensor(c, k, true); }
    if (text_word(c, "None")) { return opd_value_none(); }
    if (text_word(c, "True")) { return opd_value_bool(true); }
    if (text_word(c, "False")) { return opd_value_bool(false); }
    if (text_if(c, '(')) { n = text_ints(c, c->ints[k], ')'); return opd_value_ints(c->ints[k], n); }
    if (text_if(c, '\'')) {
        while (*c->at && *c->at != '\'' && n < 15) { c->words[k][n++] = *c->at++; }
        c->words[k][n] = 0;
        (void)text_if(c, '\'');
        return opd_value_str(c->words[k]);
    }
    if (text_if(c, '{')) {
        while (!text_if(c, '}') && n < TEXT_LIST) {
            c->tensors[k][n++] = text_word(c, "None") ? NULL : text_word(c, "i[") ? text_tensor(c, k, false).u.t
                : text_word(c, "b[") ? text_tensor(c, k, true).u.t : text_variable(c);
            (void)text_if(c, ',');
        }
        return opd_value_tensors(c->tensors[k], n);
    }
    return islower((unsigned char)*c->at) ? opd_value_tensor(text_variable(c)) : text_number(c);
}
/* Runs one statement.  If it is only a name, returns this output. */
static opd_tensor *text_step(text_call *c) {
    char name[64] = "aten::";
    int to[4], nto = 0, n = 0;
    opd_value rets[16];
    size_t k;
    while (text_space(c), islower((unsigned char)c->at[0]) && strchr(" ,=", c->at[1]) && c->at[1] && nto < 4) {
        to[nto++] = *c->at++ - 'a';
        if (!text_if(c, ',')) { break; }
    }
    if (nto && !text_if(c, '=')) { return c->vars[to[0]]; }
    text_space(c);
    if (!nto && !strchr(c->at, '(')) { return text_variable(c); }
    k = strcspn(c->at, "(");
    if (k > 50) { (void)opd_fail(OPD_ERROR_ARGUMENT, "cannot be read: %s", c->at); return NULL; }
    memcpy(name + 6, c->at, k);
    name[6 + k] = 0;
    c->at += k + 1;
    while (!text_if(c, ')') && *c->at && n < TEXT_ARGS && opd_ok()) { c->args[n] = text_argument(c, n); n++; (void)text_if(c, ','); }
    (void)text_if(c, ';');
    if (strchr(name, '.')) {
        opd_op *op = opd_find(name);
        if (!op || opd_call_all(op, rets, c->args, n)) { return NULL; }
    } else {
        opd_overloads *f = opd_overloads_find(name);
        if (!f || opd_overloads_call(f, rets, c->args, n, NULL, 0)) { return NULL; }
    }
    for (n = 0; n < nto; n++) { c->vars[to[n]] = rets[n].tag == OPD_TAG_TENSOR ? rets[n].u.t : NULL; }
    return NULL;
}
static opd_tensor *text_run(const char *text, opd_tensor *x) {
    text_call c;
    opd_tensor *out = NULL;
    memset(&c, 0, sizeof c);
    c.at = text;
    c.vars['x' - 'a'] = x;
    while (opd_ok() && !out && *c.at) { out = text_step(&c); }
    return opd_ok() ? out : NULL;
}

//-- stacks ------------------------------------------------------------------------------------------------------------

/* VMAP: the batch dim is first.  VMAP_LAST: the batch dim of input and output is last.  VMAP_AROUND: the input is
   the same for all examples, and is multiplied by a batched factor.  The last three can only be outermost. */
enum { GRAD, JVP, VJP, VMAP, VMAP_LAST, VMAP_AROUND, JACREV, JACFWD, HESSIAN, NESTING, TAPE = NESTING, DUAL, TRACE, KINDS };
OPD_UNUSED static const char *const kind_names[KINDS] = {"grad", "jvp", "vjp", "vmap", "vmap_last", "vmap_around", "jacrev",
                                                         "jacfwd", "hessian", "tape", "dual", "trace"};
OPD_UNUSED static const int kind_order[KINDS] = {1, 1, 1, 0, 0, 0, 1, 1, 2, 1, 1, 0};
#define EXAMPLES 2

/* A function and its transforms.  The function is text, or fn with user.  at: the number of transforms already
   applied. */
typedef opd_tensor *(*stack_fn)(void *user, opd_tensor *x);
typedef struct stack_of {
    int n, kinds[8], at;
    const char *text;
    stack_fn fn;
    void *user;
    opd_tensor *around;                           /* VMAP_AROUND: the input */
} stack_of;

static stack_of stack_inner(const stack_of *s) { stack_of t = *s; t.at++; return t; }

static int stack_call(void *user, opd_tensor *const *in, int nin, opd_tensor **out);
static int stack_sum(void *user, opd_tensor *const *in, int nin, opd_tensor **out) {
    if (stack_call(user, in, nin, out) < 0) { return -1; }
    out[0] = opd_sum(opd_sin(out[0]));
    return out[0] ? 1 : -1;
}
static int stack_times(void *user, opd_tensor *const *in, int nin, opd_tensor **out) {
    stack_of *s = (stack_of *)user;
    opd_tensor *x = opd_mul(s->around, in[0]);
    return x ? stack_call(user, &x, nin, out) : -1;
}
static opd_tensor *stack_factor(const opd_tensor *like) {
    const double factors[EXAMPLES] = {1.0, 0.9};
    const int64_t n = EXAMPLES;
    return opd_to_dtype(opd_tensor_from(factors, opd_ints_of(&n, 1), OPD_FLOAT64), opd_dtype(like));
}
static opd_tensor *stack_leaf(opd_tensor *x) { return opd_tensor_set_requires_grad(opd_detach(x), true); }
/* Returns the gradient of sum(sin(f(x))) by x, computed with opd_backward inside of the function. */
static opd_tensor *stack_tape(stack_of *s, opd_tensor *x) {
    opd_tensor *y = stack_leaf(x), *out[1];
    if (stack_sum(s, &y, 1, out) < 0) { return NULL; }
    if (!opd_tensor_requires_grad(out[0])) { return opd_zeros_like(x); }
    if (opd_backward(out[0])) { return NULL; }
    return opd_tensor_grad(y) ? opd_clone(opd_tensor_grad(y)) : opd_zeros_like(x);
}
/* Returns the tangent of f at x for the tangent cos x, in a level of forward mode inside of the function. */
static opd_tensor *stack_dual(stack_of *s, opd_tensor *x) {
    opd_tensor *y, *out[1], *tangent = NULL;
    OPD_DUAL_LEVEL {
        y = opd_dual_new(x, opd_cos(x));
        if (y && stack_call(s, &y, 1, out) >= 0 && opd_dual_unpack(out[0], &tangent) && !tangent) {
            tangent = opd_zeros_like(out[0]);
        }
    }
    return tangent;
}
/* Records the function with other numbers, and runs the graph with these. */
static opd_tensor *stack_trace(stack_of *s, opd_tensor *x) {
    opd_tensor *other = opd_mul_Scalar(x, opd_value_double(0.8125)), *out = NULL;
    opd_graph *g = other ? opd_graph_trace(stack_call, s, &other, 1, NULL) : NULL;
    if (g) { (void)opd_graph_run(g, &x, 1, &out, 1); }
    opd_graph_free(g);
    return opd_ok() ? out : NULL;
}
/* Applies the next transform of the stack. */
static int stack_call(void *user, opd_tensor *const *in, int nin, opd_tensor **out) {
    const stack_of *const s = (const stack_of *)user;
    stack_of inner = stack_inner(s);
    opd_tensor *t, *o[1];
    opd_derivative *d;
    opd_vmap_options last;
    const int dim = -1;
    if (nin != 1) { return -1; }
    if (s->at == s->n) {
        out[0] = s->text ? text_run(s->text, in[0]) : s->fn(s->user, in[0]);
        return out[0] ? 1 : -1;
    }
    memset(&last, 0, sizeof last);
    last.in_dims = last.out_dims = &dim;
    last.nin_dims = last.nout_dims = 1;
    switch (s->kinds[s->at]) {
    case GRAD: return opd_grad(stack_sum, &inner, in, 1, NULL, out, OPD_TRANSFORM_OUTPUTS);
    case JVP:
        t = opd_cos(in[0]);
        return t ? opd_jvp(stack_call, &inner, in, &t, 1, NULL, o, out, 1) : -1;
    case VJP:
        if (opd_vjp(stack_call, &inner, in, 1, NULL, o, 1, &d) < 0 || !(t = opd_cos(o[0]))) { return -1; }
        return opd_derivative_call(d, &t, 1, 0, out, OPD_TRANSFORM_OUTPUTS);
    case VMAP: return opd_vmap(stack_call, &inner, in, 1, NULL, out, OPD_TRANSFORM_OUTPUTS);
    case VMAP_LAST: return opd_vmap(stack_call, &inner, in, 1, &last, out, OPD_TRANSFORM_OUTPUTS);
    case VMAP_AROUND:
        inner.around = in[0];
        t = stack_factor(in[0]);
        return t ? opd_vmap(stack_times, &inner, &t, 1, NULL, out, OPD_TRANSFORM_OUTPUTS) : -1;
    case JACREV: return opd_jacrev(stack_call, &inner, in, 1, NULL, out, OPD_TRANSFORM_OUTPUTS);
    case JACFWD: return opd_jacfwd(stack_call, &inner, in, 1, NULL, out, OPD_TRANSFORM_OUTPUTS);
    case HESSIAN: return opd_hessian(stack_call, &inner, in, 1, NULL, out, OPD_TRANSFORM_OUTPUTS);
    case TAPE: out[0] = stack_tape(&inner, in[0]); break;
    case DUAL: out[0] = stack_dual(&inner, in[0]); break;
    default: out[0] = stack_trace(&inner, in[0]); break;
    }
    return out[0] && opd_ok() ? 1 : -1;
}
OPD_UNUSED static opd_tensor *stack_run(stack_of *s, opd_tensor *x) {
    opd_tensor *out[1];
    return stack_call(s, &x, 1, out) == 1 && opd_ok() ? out[0] : NULL;
}

//-- with only autograd ------------------------------------------------------------------------------------------------

static opd_tensor *stack_plain(const stack_of *s, opd_tensor *x);
/* Returns d<y, v>/dx, which can be differentiated again; zeros if y does not depend on x. */
static opd_tensor *plain_pull(opd_tensor *y, opd_tensor *v, opd_tensor *x) {
    opd_backward_options o;
    opd_tensor *g = NULL;
    memset(&o, 0, sizeof o);
    o.grad_outputs = &v;
    o.create_graph = o.allow_unused = true;
    if (!opd_ok() || (opd_tensor_requires_grad(y) && opd_autograd_grad(&y, 1, &x, 1, &o, &g))) { return NULL; }
    return g ? g : opd_zeros_like(x);
}
/* The Jacobian: y's sizes, then x's; of at most so many rows. */
#define STACK_ROWS 30
#define STACK_TOO_LARGE "a Jacobian of too many rows for this"
static opd_tensor *plain_rows(opd_tensor *y, opd_tensor *x) {
    opd_tensor *rows[STACK_ROWS], *flat = opd_reshape(y, OPD_INTS(-1));
    int64_t sizes[64];
    const int64_t n = y && flat ? opd_numel(y) : 0;
    int64_t i;
    int k = 0, d;
    if (n > STACK_ROWS) { (void)opd_fail(OPD_ERROR_ARGUMENT, STACK_TOO_LARGE); }
    if (!flat || n > STACK_ROWS) { return NULL; }
    for (d = 0; d < opd_ndim(y); d++) { sizes[k++] = opd_sizes(y)[d]; }
    for (d = 0; d < opd_ndim(x); d++) { sizes[k++] = opd_sizes(x)[d]; }
    if (n == 0) { return opd_new_zeros(x, opd_ints_of(sizes, k)); }
    for (i = 0; i < n; i++) {
        opd_tensor *one = opd_select(flat, 0, i);
        if (!one || !(rows[i] = plain_pull(one, opd_ones_like(one), x))) { return NULL; }
    }
    flat = opd_stack(opd_tensors_of(rows, n), 0);
    return flat ? opd_reshape(flat, opd_ints_of(sizes, k)) : NULL;
}
static opd_tensor *plain_loop(const stack_of *inner, opd_tensor *x, int kind) {
    opd_tensor *all[EXAMPLES], *factor = stack_factor(x);
    int64_t i;
    for (i = 0; i < EXAMPLES; i++) {
        opd_tensor *one = !factor ? NULL : kind == VMAP_AROUND ? opd_mul(x, opd_select(factor, 0, i))
            : opd_select(x, kind == VMAP_LAST ? -1 : 0, i);
        if (!one || !(all[i] = stack_plain(inner, one))) { return NULL; }
    }
    return opd_stack(opd_tensors_of(all, EXAMPLES), kind == VMAP_LAST ? -1 : 0);
}
static opd_tensor *stack_plain(const stack_of *s, opd_tensor *x) {
    stack_of inner = stack_inner(s);
    opd_tensor *leaf, *y, *rows;
    const int kind = s->at < s->n ? s->kinds[s->at] : -1;
    if (!x || !opd_ok()) { return NULL; }
    if (kind < 0) { return s->text ? text_run(s->text, x) : s->fn(s->user, x); }
    if (kind == TRACE) { return stack_plain(&inner, x); }
    if (kind == VMAP || kind == VMAP_LAST || kind == VMAP_AROUND) { return plain_loop(&inner, x, kind); }
    if (kind == HESSIAN) { inner.kinds[--inner.at] = JACREV; }
    leaf = opd_tensor_requires_grad(x) ? opd_alias(x) : stack_leaf(x);
    if (!leaf || !(y = stack_plain(&inner, leaf))) { return NULL; }
    if (kind == GRAD || kind == TAPE) { return plain_pull(y, opd_cos(y), leaf); }
    if (kind == VJP) { return plain_pull(y, opd_cos(y), leaf); }
    rows = plain_rows(y, leaf);
    if (kind != JVP && kind != DUAL) { return rows; }
    if (!rows || !(rows = opd_reshape(opd_mul(rows, opd_cos(x)), OPD_INTS(opd_numel(y), opd_numel(x))))) { return NULL; }
    return opd_reshape(opd_sum_dim(rows, OPD_INTS(1), false), opd_ints_of(opd_sizes(y), opd_ndim(y)));
}

/* Returns the input of a stack: x is one example, and each vmap adds a batch dim. */
OPD_UNUSED static opd_tensor *stack_input(const stack_of *s, opd_tensor *x) {
    int i, k;
    for (i = s->n; i-- > 0 && x;) {
        opd_tensor *all[EXAMPLES];
        if (s->kinds[i] != VMAP && s->kinds[i] != VMAP_LAST) { continue; }
        for (k = 0; k < EXAMPLES; k++) { all[k] = opd_mul_Scalar(x, opd_value_double(1 - 0.0625 * k)); }
        x = opd_stack(opd_tensors_of(all, EXAMPLES), s->kinds[i] == VMAP ? 0 : -1);
    }
    return x;
}
OPD_UNUSED static const char *stack_name(const stack_of *s, char *buf, size_t cap) {
    size_t n = 0;
    int i;
    buf[0] = 0;
    for (i = 0; i < s->n && n + 16 < cap; i++) { n += (size_t)snprintf(buf + n, cap - n, "%s%s", i ? " " : "", kind_names[s->kinds[i]]); }
    return buf;
}
/* Returns how often the function is differentiated. */
OPD_UNUSED static int stack_order(const stack_of *s) {
    int i, n = 0;
    for (i = 0; i < s->n; i++) { n += kind_order[s->kinds[i]]; }
    return n;
}
/* From now on, new memory is filled with a number that no computation gives. */
OPD_UNUSED static void stack_poison(void) {
    int64_t n;
    int k;
    OPD_SCOPE {
        for (n = 1; n <= 32; n += n < 8 ? 1 : 3) { for (k = 0; k < 3; k++) { (void)opd_full(OPD_INTS(n), opd_value_double(777.0), OPD_FLOAT64); } }
    }
}
/* Returns the difference of two results, relative to 1 + |b|; infinity if their sizes or dtypes differ. */
OPD_UNUSED static double stack_apart(opd_tensor *a, opd_tensor *b) {
    double most = 0;
    int64_t i;
    const double *p, *q;
    if (!a || !b || opd_ndim(a) != opd_ndim(b) || opd_dtype(a) != OPD_FLOAT64 || opd_dtype(b) != OPD_FLOAT64 ||
        memcmp(opd_sizes(a), opd_sizes(b), (size_t)opd_ndim(a) * sizeof(int64_t)) != 0) { return INFINITY; }
    a = opd_contiguous(opd_detach(a));
    b = opd_contiguous(opd_detach(b));
    p = a ? opd_data_f64(a) : NULL;
    q = b ? opd_data_f64(b) : NULL;
    for (i = 0; p && q && i < opd_numel(a); i++) {
        const double d = fabs(p[i] - q[i]) / (1 + fabs(q[i]));
        if (isnan(p[i]) != isnan(q[i])) { return INFINITY; }
        if (d > most) { most = d; }
    }
    return p && q ? most : opd_numel(b) ? INFINITY : 0;
}
#endif
