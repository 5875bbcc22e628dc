//----------------------------------------------------------------------------------------------------------------------
//  >>api:typed      typed functions for custom operators
//----------------------------------------------------------------------------------------------------------------------

/* The letters of a signature.  Arguments: T tensor, i int64_t, d double, b bool, s string, I opd_ints, F opd_doubles, L
   opd_tensors, D opd_device, G opd_generator, V opd_value (numbers and None: OPD_V(2), OPD_NONE).  Results: T one
   tensor, N several tensors (the function writes them to an array `rets` and returns 0 or -1), L a list, V a number. */
#define OPDI_C_T opd_tensor *
#define OPDI_C_i int64_t
#define OPDI_C_d double
#define OPDI_C_b bool
#define OPDI_C_s const char *
#define OPDI_C_I opd_ints
#define OPDI_C_F opd_doubles
#define OPDI_C_L opd_tensors
#define OPDI_C_D opd_device
#define OPDI_C_G opd_generator *
#define OPDI_C_V opd_value
#define OPDI_W_T opd_value_tensor
#define OPDI_W_i opd_value_int
#define OPDI_W_d opd_value_double
#define OPDI_W_b opd_value_bool
#define OPDI_W_s opd_value_str
#define OPDI_W_I opd_value_of_ints
#define OPDI_W_F opd_value_of_doubles
#define OPDI_W_L opd_value_of_tensors
#define OPDI_W_D opd_value_device
#define OPDI_W_G opd_value_generator
#define OPDI_W_V opdi_value_same
#define OPDI_PARAMS_1(A) OPDI_C_##A a
#define OPDI_PARAMS_2(A, B) OPDI_C_##A a, OPDI_C_##B b
#define OPDI_PARAMS_3(A, B, C) OPDI_C_##A a, OPDI_C_##B b, OPDI_C_##C c
#define OPDI_PARAMS_4(A, B, C, D) OPDI_C_##A a, OPDI_C_##B b, OPDI_C_##C c, OPDI_C_##D d
#define OPDI_PARAMS_5(A, B, C, D, E) OPDI_C_##A a, OPDI_C_##B b, OPDI_C_##C c, OPDI_C_##D d, OPDI_C_##E e
#define OPDI_PARAMS_6(A, B, C, D, E, F) OPDI_C_##A a, OPDI_C_##B b, OPDI_C_##C c, OPDI_C_##D d, OPDI_C_##E e, \
    OPDI_C_##F f
#define OPDI_PARAMS_7(A, B, C, D, E, F, G) \
    OPDI_C_##A a, OPDI_C_##B b, OPDI_C_##C c, OPDI_C_##D d, OPDI_C_##E e, OPDI_C_##F f, OPDI_C_##G g
#define OPDI_PARAMS_8(A, B, C, D, E, F, G, H) \
    OPDI_C_##A a, OPDI_C_##B b, OPDI_C_##C c, OPDI_C_##D d, OPDI_C_##E e, OPDI_C_##F f, OPDI_C_##G g, OPDI_C_##H h
#define OPDI_PARAMS_9(A, B, C, D, E, F, G, H, I) \
    OPDI_C_##A a, OPDI_C_##B b, OPDI_C_##C c, OPDI_C_##D d, OPDI_C_##E e, OPDI_C_##F f, OPDI_C_##G g, OPDI_C_##H h, \
    OPDI_C_##I i
#define OPDI_PARAMS_10(A, B, C, D, E, F, G, H, I, J) \
    OPDI_C_##A a, OPDI_C_##B b, OPDI_C_##C c, OPDI_C_##D d, OPDI_C_##E e, OPDI_C_##F f, OPDI_C_##G g, OPDI_C_##H h, \
    OPDI_C_##I i, OPDI_C_##J j
#define OPDI_PARAMS_11(A, B, C, D, E, F, G, H, I, J, K) \
    OPDI_C_##A a, OPDI_C_##B b, OPDI_C_##C c, OPDI_C_##D d, OPDI_C_##E e, OPDI_C_##F f, OPDI_C_##G g, OPDI_C_##H h, \
    OPDI_C_##I i, OPDI_C_##J j, OPDI_C_##K k
#define OPDI_PARAMS_12(A, B, C, D, E, F, G, H, I, J, K, L) \
    OPDI_C_##A a, OPDI_C_##B b, OPDI_C_##C c, OPDI_C_##D d, OPDI_C_##E e, OPDI_C_##F f, OPDI_C_##G g, OPDI_C_##H h, \
    OPDI_C_##I i, OPDI_C_##J j, OPDI_C_##K k, OPDI_C_##L l
#define OPDI_FILL_1(A) v[0] = OPDI_W_##A(a);
#define OPDI_FILL_2(A, B) v[0] = OPDI_W_##A(a); v[1] = OPDI_W_##B(b);
#define OPDI_FILL_3(A, B, C) v[0] = OPDI_W_##A(a); v[1] = OPDI_W_##B(b); v[2] = OPDI_W_##C(c);
#define OPDI_FILL_4(A, B, C, D) v[0] = OPDI_W_##A(a); v[1] = OPDI_W_##B(b); v[2] = OPDI_W_##C(c); v[3] = OPDI_W_##D(d);
#define OPDI_FILL_5(A, B, C, D, E) \
    v[0] = OPDI_W_##A(a); v[1] = OPDI_W_##B(b); v[2] = OPDI_W_##C(c); v[3] = OPDI_W_##D(d); v[4] = OPDI_W_##E(e);
#define OPDI_FILL_6(A, B, C, D, E, F) \
    v[0] = OPDI_W_##A(a); v[1] = OPDI_W_##B(b); v[2] = OPDI_W_##C(c); v[3] = OPDI_W_##D(d); v[4] = OPDI_W_##E(e); \
    v[5] = OPDI_W_##F(f);
#define OPDI_FILL_7(A, B, C, D, E, F, G) \
    v[0] = OPDI_W_##A(a); v[1] = OPDI_W_##B(b); v[2] = OPDI_W_##C(c); v[3] = OPDI_W_##D(d); v[4] = OPDI_W_##E(e); \
    v[5] = OPDI_W_##F(f); v[6] = OPDI_W_##G(g);
#define OPDI_FILL_8(A, B, C, D, E, F, G, H) \
    v[0] = OPDI_W_##A(a); v[1] = OPDI_W_##B(b); v[2] = OPDI_W_##C(c); v[3] = OPDI_W_##D(d); v[4] = OPDI_W_##E(e); \
    v[5] = OPDI_W_##F(f); v[6] = OPDI_W_##G(g); v[7] = OPDI_W_##H(h);
#define OPDI_FILL_9(A, B, C, D, E, F, G, H, I) \
    v[0] = OPDI_W_##A(a); v[1] = OPDI_W_##B(b); v[2] = OPDI_W_##C(c); v[3] = OPDI_W_##D(d); v[4] = OPDI_W_##E(e); \
    v[5] = OPDI_W_##F(f); v[6] = OPDI_W_##G(g); v[7] = OPDI_W_##H(h); v[8] = OPDI_W_##I(i);
#define OPDI_FILL_10(A, B, C, D, E, F, G, H, I, J) \
    v[0] = OPDI_W_##A(a); v[1] = OPDI_W_##B(b); v[2] = OPDI_W_##C(c); v[3] = OPDI_W_##D(d); v[4] = OPDI_W_##E(e); \
    v[5] = OPDI_W_##F(f); v[6] = OPDI_W_##G(g); v[7] = OPDI_W_##H(h); v[8] = OPDI_W_##I(i); v[9] = OPDI_W_##J(j);
#define OPDI_FILL_11(A, B, C, D, E, F, G, H, I, J, K) \
    v[0] = OPDI_W_##A(a); v[1] = OPDI_W_##B(b); v[2] = OPDI_W_##C(c); v[3] = OPDI_W_##D(d); v[4] = OPDI_W_##E(e); \
    v[5] = OPDI_W_##F(f); v[6] = OPDI_W_##G(g); v[7] = OPDI_W_##H(h); v[8] = OPDI_W_##I(i); v[9] = OPDI_W_##J(j); \
    v[10] = OPDI_W_##K(k);
#define OPDI_FILL_12(A, B, C, D, E, F, G, H, I, J, K, L) \
    v[0] = OPDI_W_##A(a); v[1] = OPDI_W_##B(b); v[2] = OPDI_W_##C(c); v[3] = OPDI_W_##D(d); v[4] = OPDI_W_##E(e); \
    v[5] = OPDI_W_##F(f); v[6] = OPDI_W_##G(g); v[7] = OPDI_W_##H(h); v[8] = OPDI_W_##I(i); v[9] = OPDI_W_##J(j); \
    v[10] = OPDI_W_##K(k); v[11] = OPDI_W_##L(l);
#define OPDI_SIG_1(A) #A
#define OPDI_SIG_2(A, B) #A #B
#define OPDI_SIG_3(A, B, C) #A #B #C
#define OPDI_SIG_4(A, B, C, D) #A #B #C #D
#define OPDI_SIG_5(A, B, C, D, E) #A #B #C #D #E
#define OPDI_SIG_6(A, B, C, D, E, F) #A #B #C #D #E #F
#define OPDI_SIG_7(A, B, C, D, E, F, G) #A #B #C #D #E #F #G
#define OPDI_SIG_8(A, B, C, D, E, F, G, H) #A #B #C #D #E #F #G #H
#define OPDI_SIG_9(A, B, C, D, E, F, G, H, I) #A #B #C #D #E #F #G #H #I
#define OPDI_SIG_10(A, B, C, D, E, F, G, H, I, J) #A #B #C #D #E #F #G #H #I #J
#define OPDI_SIG_11(A, B, C, D, E, F, G, H, I, J, K) #A #B #C #D #E #F #G #H #I #J #K
#define OPDI_SIG_12(A, B, C, D, E, F, G, H, I, J, K, L) #A #B #C #D #E #F #G #H #I #J #K #L
/* OPD_TYPED(T, myadd, "myops::myadd", (T, T)) defines `opd_tensor *myadd(opd_tensor *a, opd_tensor *b)`, a typed
   function that calls an operator.  The first word is the kind of result, and the letters are the argument types above.
   The first call looks the operator up and checks the signature against the schema.  Later calls do not.  If
   <complex.h> is included, write #undef I after it, because <complex.h> defines a macro I. */
#define OPD_TYPED(kind, fn, name, types) OPDI_TYPED_BY(OPDI_BODY_##kind, fn, name, OPDI_COUNT_ARGS types, types)
#define OPDI_TYPED_BY(body, fn, name, n, types) OPDI_TYPED_OF(body, fn, name, n, types)
#define OPDI_TYPED_OF(body, fn, name, n, types) \
    body(fn, name, n, OPDI_PARAMS_##n types, OPDI_FILL_##n types, OPDI_SIG_##n types)
/* Function bodies, one macro per kind of result.  n is the number of arguments, P their declarations, F the code that
   fills v with their values, S their letters. */
#define OPDI_BODY_T(fn, name, n, P, F, S) static inline opd_tensor *fn(P) { \
    static opd_op *op; opd_value v[n]; F return opd_call_op(opdi_op_typed(&op, name, "T" S), v, n); }
#define OPDI_BODY_N(fn, name, n, P, F, S) static inline int fn(opd_tensor **rets, P) { \
    static opd_op *op; opd_value v[n]; F return opd_call_tensors(opdi_op_typed(&op, name, "N" S), rets, v, n); }
#define OPDI_BODY_V(fn, name, n, P, F, S) static inline opd_value fn(P) { \
    static opd_op *op; opd_value v[n]; F return opd_call_value(opdi_op_typed(&op, name, "V" S), v, n); }
#define OPDI_BODY_L(fn, name, n, P, F, S) static inline opd_tensors fn(P) { \
    static opd_op *op; opd_value v[n]; F return opd_call_list(opdi_op_typed(&op, name, "L" S), v, n); }

