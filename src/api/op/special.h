//----------------------------------------------------------------------------------------------------------------------
//  >>api:op:special    special functions
//----------------------------------------------------------------------------------------------------------------------

/* lgamma: log of |gamma(self)| */
OPD_API opd_tensor *opd_lgamma(opd_tensor *self);
OPD_API opd_tensor *opd_lgamma_(opd_tensor *self);
/* digamma: derivative of lgamma */
OPD_API opd_tensor *opd_digamma(opd_tensor *self);
OPD_API opd_tensor *opd_digamma_(opd_tensor *self);
/* polygamma: derivative n of digamma */
OPD_API opd_tensor *opd_polygamma(int64_t n, opd_tensor *self);
/* polygamma_: polygamma in place */
OPD_API opd_tensor *opd_polygamma_(opd_tensor *self, int64_t n);
/* mvlgamma: log of the gamma function of p dims */
OPD_API opd_tensor *opd_mvlgamma(opd_tensor *self, int64_t p);
OPD_API opd_tensor *opd_mvlgamma_(opd_tensor *self, int64_t p);
/* erfinv: inverse of erf */
OPD_API opd_tensor *opd_erfinv(opd_tensor *self);
OPD_API opd_tensor *opd_erfinv_(opd_tensor *self);
/* special_ndtri: inverse of special_ndtr */
OPD_API opd_tensor *opd_special_ndtri(opd_tensor *self);
/* special_log_ndtr: log of special_ndtr */
OPD_API opd_tensor *opd_special_log_ndtr(opd_tensor *self);
/* special_erfcx: exp(self^2) erfc(self) */
OPD_API opd_tensor *opd_special_erfcx(opd_tensor *self);
/* special_entr: -self log(self) */
OPD_API opd_tensor *opd_special_entr(opd_tensor *self);
/* special_ndtr: the normal distribution: how much is below self */
OPD_API opd_tensor *opd_special_ndtr(opd_tensor *self);
/* i0: modified Bessel function of order 0 */
OPD_API opd_tensor *opd_i0(opd_tensor *self);
OPD_API opd_tensor *opd_i0_(opd_tensor *self);
/* special_i0e: i0(self) exp(-|self|) */
OPD_API opd_tensor *opd_special_i0e(opd_tensor *self);
/* special_i1: modified Bessel function of order 1 */
OPD_API opd_tensor *opd_special_i1(opd_tensor *self);
/* special_i1e: special_i1(self) exp(-|self|) */
OPD_API opd_tensor *opd_special_i1e(opd_tensor *self);
/* special_modified_bessel_i0: i0 */
OPD_API opd_tensor *opd_special_modified_bessel_i0(opd_tensor *self);
/* special_modified_bessel_i1: special_i1 */
OPD_API opd_tensor *opd_special_modified_bessel_i1(opd_tensor *self);
/* special_modified_bessel_k0: modified Bessel function of the second kind, order 0 */
OPD_API opd_tensor *opd_special_modified_bessel_k0(opd_tensor *self);
/* special_modified_bessel_k1: modified Bessel function of the second kind, order 1 */
OPD_API opd_tensor *opd_special_modified_bessel_k1(opd_tensor *self);
/* special_scaled_modified_bessel_k0: special_modified_bessel_k0(x) exp(x) */
OPD_API opd_tensor *opd_special_scaled_modified_bessel_k0(opd_tensor *x);
/* special_scaled_modified_bessel_k1: special_modified_bessel_k1(x) exp(x) */
OPD_API opd_tensor *opd_special_scaled_modified_bessel_k1(opd_tensor *x);
/* special_bessel_j0: Bessel function of order 0 */
OPD_API opd_tensor *opd_special_bessel_j0(opd_tensor *self);
/* special_bessel_j1: Bessel function of order 1 */
OPD_API opd_tensor *opd_special_bessel_j1(opd_tensor *self);
/* special_bessel_y0: Bessel function of the second kind, order 0 */
OPD_API opd_tensor *opd_special_bessel_y0(opd_tensor *self);
/* special_bessel_y1: Bessel function of the second kind, order 1 */
OPD_API opd_tensor *opd_special_bessel_y1(opd_tensor *self);
/* special_spherical_bessel_j0: sin(x) / x */
OPD_API opd_tensor *opd_special_spherical_bessel_j0(opd_tensor *x);
/* special_airy_ai: the Airy function Ai */
OPD_API opd_tensor *opd_special_airy_ai(opd_tensor *x);
/* igamma: the part of gamma(self) below other */
OPD_API opd_tensor *opd_igamma(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_igamma_(opd_tensor *self, opd_tensor *other);
/* igammac: the part of gamma(self) above other */
OPD_API opd_tensor *opd_igammac(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_igammac_(opd_tensor *self, opd_tensor *other);
/* special_zeta: sum of (other + k)^-self, k from 0 on */
OPD_API opd_tensor *opd_special_zeta(opd_tensor *self, opd_tensor *other);
/* special_xlog1py: self log(1 + other), 0 where self is */
OPD_API opd_tensor *opd_special_xlog1py(opd_tensor *self, opd_tensor *other);
/* special_xlog1py.self_scalar: special_xlog1py of a number */
OPD_API opd_tensor *opd_special_xlog1py_self_scalar(opd_value self, opd_tensor *other);
/* special_xlog1py.other_scalar: special_xlog1py of a number */
OPD_API opd_tensor *opd_special_xlog1py_other_scalar(opd_tensor *self, opd_value other);
/* special_zeta.self_scalar: special_zeta of a number */
OPD_API opd_tensor *opd_special_zeta_self_scalar(opd_value self, opd_tensor *other);
/* special_zeta.other_scalar: special_zeta of a number */
OPD_API opd_tensor *opd_special_zeta_other_scalar(opd_tensor *self, opd_value other);
/* special_chebyshev_polynomial_t: Chebyshev polynomial of degree n, first kind */
OPD_API opd_tensor *opd_special_chebyshev_polynomial_t(opd_tensor *x, opd_tensor *n);
/* special_chebyshev_polynomial_t.x_scalar: special_chebyshev_polynomial_t of a number */
OPD_API opd_tensor *opd_special_chebyshev_polynomial_t_x_scalar(opd_value x, opd_tensor *n);
/* special_chebyshev_polynomial_t.n_scalar: special_chebyshev_polynomial_t of a number */
OPD_API opd_tensor *opd_special_chebyshev_polynomial_t_n_scalar(opd_tensor *x, opd_value n);
/* special_chebyshev_polynomial_u: Chebyshev polynomial of degree n, second kind */
OPD_API opd_tensor *opd_special_chebyshev_polynomial_u(opd_tensor *x, opd_tensor *n);
/* special_chebyshev_polynomial_u.x_scalar: special_chebyshev_polynomial_u of a number */
OPD_API opd_tensor *opd_special_chebyshev_polynomial_u_x_scalar(opd_value x, opd_tensor *n);
/* special_chebyshev_polynomial_u.n_scalar: special_chebyshev_polynomial_u of a number */
OPD_API opd_tensor *opd_special_chebyshev_polynomial_u_n_scalar(opd_tensor *x, opd_value n);
/* special_chebyshev_polynomial_v: Chebyshev polynomial of degree n, third kind */
OPD_API opd_tensor *opd_special_chebyshev_polynomial_v(opd_tensor *x, opd_tensor *n);
/* special_chebyshev_polynomial_v.x_scalar: special_chebyshev_polynomial_v of a number */
OPD_API opd_tensor *opd_special_chebyshev_polynomial_v_x_scalar(opd_value x, opd_tensor *n);
/* special_chebyshev_polynomial_v.n_scalar: special_chebyshev_polynomial_v of a number */
OPD_API opd_tensor *opd_special_chebyshev_polynomial_v_n_scalar(opd_tensor *x, opd_value n);
/* special_chebyshev_polynomial_w: Chebyshev polynomial of degree n, fourth kind */
OPD_API opd_tensor *opd_special_chebyshev_polynomial_w(opd_tensor *x, opd_tensor *n);
/* special_chebyshev_polynomial_w.x_scalar: special_chebyshev_polynomial_w of a number */
OPD_API opd_tensor *opd_special_chebyshev_polynomial_w_x_scalar(opd_value x, opd_tensor *n);
/* special_chebyshev_polynomial_w.n_scalar: special_chebyshev_polynomial_w of a number */
OPD_API opd_tensor *opd_special_chebyshev_polynomial_w_n_scalar(opd_tensor *x, opd_value n);
/* special_shifted_chebyshev_polynomial_t: special_chebyshev_polynomial_t at 2 x - 1 */
OPD_API opd_tensor *opd_special_shifted_chebyshev_polynomial_t(opd_tensor *x, opd_tensor *n);
/* special_shifted_chebyshev_polynomial_t.x_scalar: special_shifted_chebyshev_polynomial_t of a number */
OPD_API opd_tensor *opd_special_shifted_chebyshev_polynomial_t_x_scalar(opd_value x, opd_tensor *n);
/* special_shifted_chebyshev_polynomial_t.n_scalar: special_shifted_chebyshev_polynomial_t of a number */
OPD_API opd_tensor *opd_special_shifted_chebyshev_polynomial_t_n_scalar(opd_tensor *x, opd_value n);
/* special_shifted_chebyshev_polynomial_u: special_chebyshev_polynomial_u at 2 x - 1 */
OPD_API opd_tensor *opd_special_shifted_chebyshev_polynomial_u(opd_tensor *x, opd_tensor *n);
/* special_shifted_chebyshev_polynomial_u.x_scalar: special_shifted_chebyshev_polynomial_u of a number */
OPD_API opd_tensor *opd_special_shifted_chebyshev_polynomial_u_x_scalar(opd_value x, opd_tensor *n);
/* special_shifted_chebyshev_polynomial_u.n_scalar: special_shifted_chebyshev_polynomial_u of a number */
OPD_API opd_tensor *opd_special_shifted_chebyshev_polynomial_u_n_scalar(opd_tensor *x, opd_value n);
/* special_shifted_chebyshev_polynomial_v: special_chebyshev_polynomial_v at 2 x - 1 */
OPD_API opd_tensor *opd_special_shifted_chebyshev_polynomial_v(opd_tensor *x, opd_tensor *n);
/* special_shifted_chebyshev_polynomial_v.x_scalar: special_shifted_chebyshev_polynomial_v of a number */
OPD_API opd_tensor *opd_special_shifted_chebyshev_polynomial_v_x_scalar(opd_value x, opd_tensor *n);
/* special_shifted_chebyshev_polynomial_v.n_scalar: special_shifted_chebyshev_polynomial_v of a number */
OPD_API opd_tensor *opd_special_shifted_chebyshev_polynomial_v_n_scalar(opd_tensor *x, opd_value n);
/* special_shifted_chebyshev_polynomial_w: special_chebyshev_polynomial_w at 2 x - 1 */
OPD_API opd_tensor *opd_special_shifted_chebyshev_polynomial_w(opd_tensor *x, opd_tensor *n);
/* special_shifted_chebyshev_polynomial_w.x_scalar: special_shifted_chebyshev_polynomial_w of a number */
OPD_API opd_tensor *opd_special_shifted_chebyshev_polynomial_w_x_scalar(opd_value x, opd_tensor *n);
/* special_shifted_chebyshev_polynomial_w.n_scalar: special_shifted_chebyshev_polynomial_w of a number */
OPD_API opd_tensor *opd_special_shifted_chebyshev_polynomial_w_n_scalar(opd_tensor *x, opd_value n);
/* special_hermite_polynomial_h: physicists' Hermite polynomial of degree n */
OPD_API opd_tensor *opd_special_hermite_polynomial_h(opd_tensor *x, opd_tensor *n);
/* special_hermite_polynomial_h.x_scalar: special_hermite_polynomial_h of a number */
OPD_API opd_tensor *opd_special_hermite_polynomial_h_x_scalar(opd_value x, opd_tensor *n);
/* special_hermite_polynomial_h.n_scalar: special_hermite_polynomial_h of a number */
OPD_API opd_tensor *opd_special_hermite_polynomial_h_n_scalar(opd_tensor *x, opd_value n);
/* special_hermite_polynomial_he: statisticians' Hermite polynomial of degree n */
OPD_API opd_tensor *opd_special_hermite_polynomial_he(opd_tensor *x, opd_tensor *n);
/* special_hermite_polynomial_he.x_scalar: special_hermite_polynomial_he of a number */
OPD_API opd_tensor *opd_special_hermite_polynomial_he_x_scalar(opd_value x, opd_tensor *n);
/* special_hermite_polynomial_he.n_scalar: special_hermite_polynomial_he of a number */
OPD_API opd_tensor *opd_special_hermite_polynomial_he_n_scalar(opd_tensor *x, opd_value n);
/* special_laguerre_polynomial_l: Laguerre polynomial of degree n */
OPD_API opd_tensor *opd_special_laguerre_polynomial_l(opd_tensor *x, opd_tensor *n);
/* special_laguerre_polynomial_l.x_scalar: special_laguerre_polynomial_l of a number */
OPD_API opd_tensor *opd_special_laguerre_polynomial_l_x_scalar(opd_value x, opd_tensor *n);
/* special_laguerre_polynomial_l.n_scalar: special_laguerre_polynomial_l of a number */
OPD_API opd_tensor *opd_special_laguerre_polynomial_l_n_scalar(opd_tensor *x, opd_value n);
/* special_legendre_polynomial_p: Legendre polynomial of degree n */
OPD_API opd_tensor *opd_special_legendre_polynomial_p(opd_tensor *x, opd_tensor *n);
/* special_legendre_polynomial_p.x_scalar: special_legendre_polynomial_p of a number */
OPD_API opd_tensor *opd_special_legendre_polynomial_p_x_scalar(opd_value x, opd_tensor *n);
/* special_legendre_polynomial_p.n_scalar: special_legendre_polynomial_p of a number */
OPD_API opd_tensor *opd_special_legendre_polynomial_p_n_scalar(opd_tensor *x, opd_value n);
/* frexp.Tensor: mantissa and exponent: self = mantissa * 2^exponent */
OPD_API int opd_frexp_Tensor(opd_tensor **rets, opd_tensor *self);
/* special_psi: digamma */
OPD_API opd_tensor *opd_special_psi(opd_tensor *self);
/* special_digamma: digamma */
OPD_API opd_tensor *opd_special_digamma(opd_tensor *self);
/* special_gammaln: lgamma */
OPD_API opd_tensor *opd_special_gammaln(opd_tensor *self);
/* special_multigammaln: mvlgamma */
OPD_API opd_tensor *opd_special_multigammaln(opd_tensor *self, int64_t p);
/* special_polygamma: polygamma */
OPD_API opd_tensor *opd_special_polygamma(int64_t n, opd_tensor *self);
/* special_gammainc: igamma */
OPD_API opd_tensor *opd_special_gammainc(opd_tensor *self, opd_tensor *other);
/* special_gammaincc: igammac */
OPD_API opd_tensor *opd_special_gammaincc(opd_tensor *self, opd_tensor *other);
/* special_i0: i0 */
OPD_API opd_tensor *opd_special_i0(opd_tensor *self);
/* special_erf: erf */
OPD_API opd_tensor *opd_special_erf(opd_tensor *self);
/* special_erfc: erfc */
OPD_API opd_tensor *opd_special_erfc(opd_tensor *self);
/* special_erfinv: erfinv */
OPD_API opd_tensor *opd_special_erfinv(opd_tensor *self);
/* special_exp2: exp2 */
OPD_API opd_tensor *opd_special_exp2(opd_tensor *self);
/* special_expm1: expm1 */
OPD_API opd_tensor *opd_special_expm1(opd_tensor *self);
/* special_log1p: log1p */
OPD_API opd_tensor *opd_special_log1p(opd_tensor *self);
/* special_expit: sigmoid */
OPD_API opd_tensor *opd_special_expit(opd_tensor *self);
/* special_logit: logit */
OPD_API opd_tensor *opd_special_logit(opd_tensor *self);
OPD_API opd_tensor *opd_special_logit_full(opd_tensor *self, opd_value eps);
/* special_sinc: sinc */
OPD_API opd_tensor *opd_special_sinc(opd_tensor *self);
/* special_round: round.decimals */
OPD_API opd_tensor *opd_special_round(opd_tensor *self);
OPD_API opd_tensor *opd_special_round_full(opd_tensor *self, int64_t decimals);
/* special_xlogy: xlogy.Tensor */
OPD_API opd_tensor *opd_special_xlogy(opd_tensor *self, opd_tensor *other);
/* special_xlogy.self_scalar: xlogy.Scalar_Self */
OPD_API opd_tensor *opd_special_xlogy_self_scalar(opd_value self, opd_tensor *other);
/* special_xlogy.other_scalar: xlogy.Scalar_Other */
OPD_API opd_tensor *opd_special_xlogy_other_scalar(opd_tensor *self, opd_value other);
/* _standard_gamma_grad: how a gamma number moves with its shape */
OPD_API opd_tensor *opd_standard_gamma_grad(opd_tensor *self, opd_tensor *output);
/* _dirichlet_grad: how a beta number moves with its first parameter, over 1 - x */
OPD_API opd_tensor *opd_dirichlet_grad(opd_tensor *x, opd_tensor *alpha, opd_tensor *total);

