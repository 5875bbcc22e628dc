//----------------------------------------------------------------------------------------------------------------------
//  >>api:op:pointwise  element by element, operands broadcast
//----------------------------------------------------------------------------------------------------------------------

/* exp: e^self */
OPD_API opd_tensor *opd_exp(opd_tensor *self);
OPD_API opd_tensor *opd_exp_(opd_tensor *self);
/* exp2: 2^self */
OPD_API opd_tensor *opd_exp2(opd_tensor *self);
OPD_API opd_tensor *opd_exp2_(opd_tensor *self);
/* expm1: e^self - 1, exact near 0 */
OPD_API opd_tensor *opd_expm1(opd_tensor *self);
OPD_API opd_tensor *opd_expm1_(opd_tensor *self);
/* log: natural logarithm */
OPD_API opd_tensor *opd_log(opd_tensor *self);
OPD_API opd_tensor *opd_log_(opd_tensor *self);
/* log2: logarithm to base 2 */
OPD_API opd_tensor *opd_log2(opd_tensor *self);
OPD_API opd_tensor *opd_log2_(opd_tensor *self);
/* log10: logarithm to base 10 */
OPD_API opd_tensor *opd_log10(opd_tensor *self);
OPD_API opd_tensor *opd_log10_(opd_tensor *self);
/* log1p: log(1 + self), exact near 0 */
OPD_API opd_tensor *opd_log1p(opd_tensor *self);
OPD_API opd_tensor *opd_log1p_(opd_tensor *self);
/* sqrt: square root */
OPD_API opd_tensor *opd_sqrt(opd_tensor *self);
OPD_API opd_tensor *opd_sqrt_(opd_tensor *self);
/* rsqrt: 1 / sqrt(self) */
OPD_API opd_tensor *opd_rsqrt(opd_tensor *self);
OPD_API opd_tensor *opd_rsqrt_(opd_tensor *self);
/* reciprocal: 1 / self */
OPD_API opd_tensor *opd_reciprocal(opd_tensor *self);
OPD_API opd_tensor *opd_reciprocal_(opd_tensor *self);
/* square: self * self */
OPD_API opd_tensor *opd_square(opd_tensor *self);
OPD_API opd_tensor *opd_square_(opd_tensor *self);
/* sin: sine */
OPD_API opd_tensor *opd_sin(opd_tensor *self);
OPD_API opd_tensor *opd_sin_(opd_tensor *self);
/* cos: cosine */
OPD_API opd_tensor *opd_cos(opd_tensor *self);
OPD_API opd_tensor *opd_cos_(opd_tensor *self);
/* tan: tangent */
OPD_API opd_tensor *opd_tan(opd_tensor *self);
OPD_API opd_tensor *opd_tan_(opd_tensor *self);
/* asin: arc sine */
OPD_API opd_tensor *opd_asin(opd_tensor *self);
OPD_API opd_tensor *opd_asin_(opd_tensor *self);
/* acos: arc cosine */
OPD_API opd_tensor *opd_acos(opd_tensor *self);
OPD_API opd_tensor *opd_acos_(opd_tensor *self);
/* atan: arc tangent */
OPD_API opd_tensor *opd_atan(opd_tensor *self);
OPD_API opd_tensor *opd_atan_(opd_tensor *self);
/* sinh: hyperbolic sine */
OPD_API opd_tensor *opd_sinh(opd_tensor *self);
OPD_API opd_tensor *opd_sinh_(opd_tensor *self);
/* cosh: hyperbolic cosine */
OPD_API opd_tensor *opd_cosh(opd_tensor *self);
OPD_API opd_tensor *opd_cosh_(opd_tensor *self);
/* asinh: inverse of sinh */
OPD_API opd_tensor *opd_asinh(opd_tensor *self);
OPD_API opd_tensor *opd_asinh_(opd_tensor *self);
/* acosh: inverse of cosh */
OPD_API opd_tensor *opd_acosh(opd_tensor *self);
OPD_API opd_tensor *opd_acosh_(opd_tensor *self);
/* atanh: inverse of tanh */
OPD_API opd_tensor *opd_atanh(opd_tensor *self);
OPD_API opd_tensor *opd_atanh_(opd_tensor *self);
/* tanh: hyperbolic tangent */
OPD_API opd_tensor *opd_tanh(opd_tensor *self);
OPD_API opd_tensor *opd_tanh_(opd_tensor *self);
/* erf: error function */
OPD_API opd_tensor *opd_erf(opd_tensor *self);
OPD_API opd_tensor *opd_erf_(opd_tensor *self);
/* erfc: 1 - erf(self) */
OPD_API opd_tensor *opd_erfc(opd_tensor *self);
OPD_API opd_tensor *opd_erfc_(opd_tensor *self);
/* sigmoid: 1 / (1 + e^-self) */
OPD_API opd_tensor *opd_sigmoid(opd_tensor *self);
OPD_API opd_tensor *opd_sigmoid_(opd_tensor *self);
/* sinc: sin(pi self) / (pi self), 1 at 0 */
OPD_API opd_tensor *opd_sinc(opd_tensor *self);
OPD_API opd_tensor *opd_sinc_(opd_tensor *self);
/* floor: the greatest integer not above self */
OPD_API opd_tensor *opd_floor(opd_tensor *self);
OPD_API opd_tensor *opd_floor_(opd_tensor *self);
/* frac: self - trunc(self) */
OPD_API opd_tensor *opd_frac(opd_tensor *self);
OPD_API opd_tensor *opd_frac_(opd_tensor *self);
/* sign: -1, 0 or 1 */
OPD_API opd_tensor *opd_sign(opd_tensor *self);
OPD_API opd_tensor *opd_sign_(opd_tensor *self);
/* abs: absolute value */
OPD_API opd_tensor *opd_abs(opd_tensor *self);
OPD_API opd_tensor *opd_abs_(opd_tensor *self);
/* hardsigmoid: relu6(self + 3) / 6 */
OPD_API opd_tensor *opd_hardsigmoid(opd_tensor *self);
OPD_API opd_tensor *opd_hardsigmoid_(opd_tensor *self);
/* hardswish: self * relu6(self + 3) / 6 */
OPD_API opd_tensor *opd_hardswish(opd_tensor *self);
OPD_API opd_tensor *opd_hardswish_(opd_tensor *self);
/* mish: self * tanh(log(1 + e^self)) */
OPD_API opd_tensor *opd_mish(opd_tensor *self);
OPD_API opd_tensor *opd_mish_(opd_tensor *self);
/* ceil: the least integer not below self */
OPD_API opd_tensor *opd_ceil(opd_tensor *self);
OPD_API opd_tensor *opd_ceil_(opd_tensor *self);
/* round: the nearest integer (of decimals digits), halves to even */
OPD_API opd_tensor *opd_round(opd_tensor *self);
OPD_API opd_tensor *opd_round_(opd_tensor *self);
/* trunc: the integer part */
OPD_API opd_tensor *opd_trunc(opd_tensor *self);
OPD_API opd_tensor *opd_trunc_(opd_tensor *self);
/* sgn: sign; of complex numbers self / |self| */
OPD_API opd_tensor *opd_sgn(opd_tensor *self);
OPD_API opd_tensor *opd_sgn_(opd_tensor *self);
/* isnan: whether NaN */
OPD_API opd_tensor *opd_isnan(opd_tensor *self);
OPD_API opd_tensor *opd_isnan_(opd_tensor *self);
/* isinf: whether infinite */
OPD_API opd_tensor *opd_isinf(opd_tensor *self);
OPD_API opd_tensor *opd_isinf_(opd_tensor *self);
/* isfinite: whether neither infinite nor NaN */
OPD_API opd_tensor *opd_isfinite(opd_tensor *self);
OPD_API opd_tensor *opd_isfinite_(opd_tensor *self);
/* isposinf: whether +infinity */
OPD_API opd_tensor *opd_isposinf(opd_tensor *self);
OPD_API opd_tensor *opd_isposinf_(opd_tensor *self);
/* isneginf: whether -infinity */
OPD_API opd_tensor *opd_isneginf(opd_tensor *self);
OPD_API opd_tensor *opd_isneginf_(opd_tensor *self);
/* signbit: whether the sign is minus, of -0 too */
OPD_API opd_tensor *opd_signbit(opd_tensor *self);
OPD_API opd_tensor *opd_signbit_(opd_tensor *self);
/* logical_not: whether 0 */
OPD_API opd_tensor *opd_logical_not(opd_tensor *self);
OPD_API opd_tensor *opd_logical_not_(opd_tensor *self);
/* neg: -self */
OPD_API opd_tensor *opd_neg(opd_tensor *self);
OPD_API opd_tensor *opd_neg_(opd_tensor *self);
/* bitwise_not: every bit the other one; of bool: not */
OPD_API opd_tensor *opd_bitwise_not(opd_tensor *self);
OPD_API opd_tensor *opd_bitwise_not_(opd_tensor *self);
/* relu: max(self, 0) */
OPD_API opd_tensor *opd_relu(opd_tensor *self);
OPD_API opd_tensor *opd_relu_(opd_tensor *self);
/* silu: self * sigmoid(self) */
OPD_API opd_tensor *opd_silu(opd_tensor *self);
OPD_API opd_tensor *opd_silu_(opd_tensor *self);
/* clamp: min(max(self, min), max) */
OPD_API opd_tensor *opd_clamp(opd_tensor *self);
OPD_API opd_tensor *opd_clamp_full(opd_tensor *self, opd_value min, opd_value max);
OPD_API opd_tensor *opd_clamp_(opd_tensor *self);
OPD_API opd_tensor *opd_clamp_full_(opd_tensor *self, opd_value min, opd_value max);
/* clamp_min: max(self, min) */
OPD_API opd_tensor *opd_clamp_min(opd_tensor *self, opd_value min);
OPD_API opd_tensor *opd_clamp_min_(opd_tensor *self, opd_value min);
/* clamp_max: min(self, max) */
OPD_API opd_tensor *opd_clamp_max(opd_tensor *self, opd_value max);
OPD_API opd_tensor *opd_clamp_max_(opd_tensor *self, opd_value max);
/* hardtanh: self between min_val and max_val */
OPD_API opd_tensor *opd_hardtanh(opd_tensor *self);
OPD_API opd_tensor *opd_hardtanh_full(opd_tensor *self, opd_value min_val, opd_value max_val);
OPD_API opd_tensor *opd_hardtanh_(opd_tensor *self);
OPD_API opd_tensor *opd_hardtanh_full_(opd_tensor *self, opd_value min_val, opd_value max_val);
/* relu6: self between 0 and 6 */
OPD_API opd_tensor *opd_relu6(opd_tensor *self);
OPD_API opd_tensor *opd_relu6_(opd_tensor *self);
/* gelu: self * Phi(self); approximate "tanh": by tanh */
OPD_API opd_tensor *opd_gelu(opd_tensor *self);
OPD_API opd_tensor *opd_gelu_full(opd_tensor *self, const char *approximate);
OPD_API opd_tensor *opd_gelu_(opd_tensor *self);
OPD_API opd_tensor *opd_gelu_full_(opd_tensor *self, const char *approximate);
/* leaky_relu: self, times negative_slope below 0 */
OPD_API opd_tensor *opd_leaky_relu(opd_tensor *self);
OPD_API opd_tensor *opd_leaky_relu_full(opd_tensor *self, opd_value negative_slope);
OPD_API opd_tensor *opd_leaky_relu_(opd_tensor *self);
OPD_API opd_tensor *opd_leaky_relu_full_(opd_tensor *self, opd_value negative_slope);
/* elu: self, alpha * (e^self - 1) below 0 */
OPD_API opd_tensor *opd_elu(opd_tensor *self);
OPD_API opd_tensor *opd_elu_full(opd_tensor *self, opd_value alpha, opd_value scale, opd_value input_scale);
OPD_API opd_tensor *opd_elu_(opd_tensor *self);
OPD_API opd_tensor *opd_elu_full_(opd_tensor *self, opd_value alpha, opd_value scale, opd_value input_scale);
/* selu: elu with the constants that keep mean and variance */
OPD_API opd_tensor *opd_selu(opd_tensor *self);
OPD_API opd_tensor *opd_selu_(opd_tensor *self);
/* celu: self, alpha * (e^(self / alpha) - 1) below 0 */
OPD_API opd_tensor *opd_celu(opd_tensor *self);
OPD_API opd_tensor *opd_celu_full(opd_tensor *self, opd_value alpha);
OPD_API opd_tensor *opd_celu_(opd_tensor *self);
OPD_API opd_tensor *opd_celu_full_(opd_tensor *self, opd_value alpha);
/* softplus: log(1 + e^(beta self)) / beta */
OPD_API opd_tensor *opd_softplus(opd_tensor *self);
OPD_API opd_tensor *opd_softplus_full(opd_tensor *self, opd_value beta, opd_value threshold);
/* threshold: self where above threshold, else value */
OPD_API opd_tensor *opd_threshold(opd_tensor *self, opd_value threshold, opd_value value);
OPD_API opd_tensor *opd_threshold_(opd_tensor *self, opd_value threshold, opd_value value);
/* round.decimals: the nearest integer (of decimals digits), halves to even */
OPD_API opd_tensor *opd_round_decimals(opd_tensor *self, int64_t decimals);
OPD_API opd_tensor *opd_round_decimals_(opd_tensor *self, int64_t decimals);
/* softshrink: self moved towards 0 by lambd */
OPD_API opd_tensor *opd_softshrink(opd_tensor *self);
OPD_API opd_tensor *opd_softshrink_full(opd_tensor *self, opd_value lambd);
/* hardshrink: self, 0 within lambd of 0 */
OPD_API opd_tensor *opd_hardshrink(opd_tensor *self);
OPD_API opd_tensor *opd_hardshrink_full(opd_tensor *self, opd_value lambd);
/* softshrink_backward: derivative of softshrink */
OPD_API opd_tensor *opd_softshrink_backward(opd_tensor *grad_output, opd_tensor *self, opd_value lambd);
/* hardshrink_backward: derivative of hardshrink */
OPD_API opd_tensor *opd_hardshrink_backward(opd_tensor *grad_out, opd_tensor *self, opd_value lambd);
/* nan_to_num: NaN and infinities as these numbers */
OPD_API opd_tensor *opd_nan_to_num(opd_tensor *self);
OPD_API opd_tensor *opd_nan_to_num_full(opd_tensor *self, opd_value nan, opd_value posinf, opd_value neginf);
OPD_API opd_tensor *opd_nan_to_num_(opd_tensor *self);
OPD_API opd_tensor *opd_nan_to_num_full_(opd_tensor *self, opd_value nan, opd_value posinf, opd_value neginf);
/* deg2rad: degrees as radians */
OPD_API opd_tensor *opd_deg2rad(opd_tensor *self);
OPD_API opd_tensor *opd_deg2rad_(opd_tensor *self);
/* rad2deg: radians as degrees */
OPD_API opd_tensor *opd_rad2deg(opd_tensor *self);
OPD_API opd_tensor *opd_rad2deg_(opd_tensor *self);
/* logit: log(self / (1 - self)), self between eps and 1 - eps */
OPD_API opd_tensor *opd_logit(opd_tensor *self);
OPD_API opd_tensor *opd_logit_full(opd_tensor *self, opd_value eps);
OPD_API opd_tensor *opd_logit_(opd_tensor *self);
OPD_API opd_tensor *opd_logit_full_(opd_tensor *self, opd_value eps);
/* logit_backward: derivative of logit */
OPD_API opd_tensor *opd_logit_backward(opd_tensor *grad_output, opd_tensor *self);
OPD_API opd_tensor *opd_logit_backward_full(opd_tensor *grad_output, opd_tensor *self, opd_value eps);
/* add.Tensor: self + alpha * other */
OPD_API opd_tensor *opd_add(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_add_full(opd_tensor *self, opd_tensor *other, opd_value alpha);
OPD_API opd_tensor *opd_add_(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_add_full_(opd_tensor *self, opd_tensor *other, opd_value alpha);
/* add.Scalar: self + alpha * other */
OPD_API opd_tensor *opd_add_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_add_Scalar_full(opd_tensor *self, opd_value other, opd_value alpha);
OPD_API opd_tensor *opd_add_Scalar_(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_add_Scalar_full_(opd_tensor *self, opd_value other, opd_value alpha);
/* sub.Tensor: self - alpha * other */
OPD_API opd_tensor *opd_sub(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_sub_full(opd_tensor *self, opd_tensor *other, opd_value alpha);
OPD_API opd_tensor *opd_sub_(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_sub_full_(opd_tensor *self, opd_tensor *other, opd_value alpha);
/* sub.Scalar: self - alpha * other */
OPD_API opd_tensor *opd_sub_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_sub_Scalar_full(opd_tensor *self, opd_value other, opd_value alpha);
OPD_API opd_tensor *opd_sub_Scalar_(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_sub_Scalar_full_(opd_tensor *self, opd_value other, opd_value alpha);
/* rsub.Tensor: other - alpha * self */
OPD_API opd_tensor *opd_rsub(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_rsub_full(opd_tensor *self, opd_tensor *other, opd_value alpha);
/* rsub.Scalar: other - alpha * self */
OPD_API opd_tensor *opd_rsub_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_rsub_Scalar_full(opd_tensor *self, opd_value other, opd_value alpha);
/* mul.Tensor: self * other */
OPD_API opd_tensor *opd_mul(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_mul_(opd_tensor *self, opd_tensor *other);
/* mul.Scalar: self * other */
OPD_API opd_tensor *opd_mul_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_mul_Scalar_(opd_tensor *self, opd_value other);
/* div.Tensor: self / other; rounding_mode "trunc" or "floor" rounds */
OPD_API opd_tensor *opd_div(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_div_(opd_tensor *self, opd_tensor *other);
/* div.Scalar: self / other; rounding_mode "trunc" or "floor" rounds */
OPD_API opd_tensor *opd_div_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_div_Scalar_(opd_tensor *self, opd_value other);
/* div.Tensor_mode: self / other; rounding_mode "trunc" or "floor" rounds */
OPD_API opd_tensor *opd_div_Tensor_mode(opd_tensor *self, opd_tensor *other, const char *rounding_mode);
OPD_API opd_tensor *opd_div_Tensor_mode_(opd_tensor *self, opd_tensor *other, const char *rounding_mode);
/* div.Scalar_mode: self / other; rounding_mode "trunc" or "floor" rounds */
OPD_API opd_tensor *opd_div_Scalar_mode(opd_tensor *self, opd_value other, const char *rounding_mode);
OPD_API opd_tensor *opd_div_Scalar_mode_(opd_tensor *self, opd_value other, const char *rounding_mode);
/* floor_divide: floor(self / other) */
OPD_API opd_tensor *opd_floor_divide(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_floor_divide_(opd_tensor *self, opd_tensor *other);
/* floor_divide.Scalar: floor(self / other) */
OPD_API opd_tensor *opd_floor_divide_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_floor_divide_Scalar_(opd_tensor *self, opd_value other);
/* fmod.Tensor: the remainder, with self's sign */
OPD_API opd_tensor *opd_fmod(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_fmod_(opd_tensor *self, opd_tensor *other);
/* fmod.Scalar: the remainder, with self's sign */
OPD_API opd_tensor *opd_fmod_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_fmod_Scalar_(opd_tensor *self, opd_value other);
/* remainder.Tensor: the remainder, with other's sign */
OPD_API opd_tensor *opd_remainder(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_remainder_(opd_tensor *self, opd_tensor *other);
/* remainder.Scalar: the remainder, with other's sign */
OPD_API opd_tensor *opd_remainder_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_remainder_Scalar_(opd_tensor *self, opd_value other);
/* remainder.Scalar_Tensor: the remainder, with other's sign */
OPD_API opd_tensor *opd_remainder_Scalar_Tensor(opd_value self, opd_tensor *other);
/* pow.Tensor_Tensor: self^exponent */
OPD_API opd_tensor *opd_pow_Tensor_Tensor(opd_tensor *self, opd_tensor *exponent);
OPD_API opd_tensor *opd_pow_Tensor_Tensor_(opd_tensor *self, opd_tensor *exponent);
/* pow.Tensor_Scalar: self^exponent */
OPD_API opd_tensor *opd_pow_Tensor_Scalar(opd_tensor *self, opd_value exponent);
OPD_API opd_tensor *opd_pow_Tensor_Scalar_(opd_tensor *self, opd_value exponent);
/* pow.Scalar: self^exponent */
OPD_API opd_tensor *opd_pow_Scalar(opd_value self, opd_tensor *exponent);
/* maximum: the greater one; NaN when either is */
OPD_API opd_tensor *opd_maximum(opd_tensor *self, opd_tensor *other);
/* minimum: the smaller one; NaN when either is */
OPD_API opd_tensor *opd_minimum(opd_tensor *self, opd_tensor *other);
/* fmax: the greater one; NaN when both are */
OPD_API opd_tensor *opd_fmax(opd_tensor *self, opd_tensor *other);
/* fmin: the smaller one; NaN when both are */
OPD_API opd_tensor *opd_fmin(opd_tensor *self, opd_tensor *other);
/* clamp.Tensor: min(max(self, min), max) */
OPD_API opd_tensor *opd_clamp_Tensor(opd_tensor *self);
OPD_API opd_tensor *opd_clamp_Tensor_full(opd_tensor *self, opd_tensor *min, opd_tensor *max);
OPD_API opd_tensor *opd_clamp_Tensor_(opd_tensor *self);
OPD_API opd_tensor *opd_clamp_Tensor_full_(opd_tensor *self, opd_tensor *min, opd_tensor *max);
/* clamp_min.Tensor: max(self, min) */
OPD_API opd_tensor *opd_clamp_min_Tensor(opd_tensor *self, opd_tensor *min);
OPD_API opd_tensor *opd_clamp_min_Tensor_(opd_tensor *self, opd_tensor *min);
/* clamp_max.Tensor: min(self, max) */
OPD_API opd_tensor *opd_clamp_max_Tensor(opd_tensor *self, opd_tensor *max);
OPD_API opd_tensor *opd_clamp_max_Tensor_(opd_tensor *self, opd_tensor *max);
/* eq.Tensor: self == other */
OPD_API opd_tensor *opd_eq(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_eq_(opd_tensor *self, opd_tensor *other);
/* eq.Scalar: self == other */
OPD_API opd_tensor *opd_eq_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_eq_Scalar_(opd_tensor *self, opd_value other);
/* ne.Tensor: self != other */
OPD_API opd_tensor *opd_ne(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_ne_(opd_tensor *self, opd_tensor *other);
/* ne.Scalar: self != other */
OPD_API opd_tensor *opd_ne_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_ne_Scalar_(opd_tensor *self, opd_value other);
/* lt.Tensor: self < other */
OPD_API opd_tensor *opd_lt(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_lt_(opd_tensor *self, opd_tensor *other);
/* lt.Scalar: self < other */
OPD_API opd_tensor *opd_lt_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_lt_Scalar_(opd_tensor *self, opd_value other);
/* le.Tensor: self <= other */
OPD_API opd_tensor *opd_le(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_le_(opd_tensor *self, opd_tensor *other);
/* le.Scalar: self <= other */
OPD_API opd_tensor *opd_le_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_le_Scalar_(opd_tensor *self, opd_value other);
/* gt.Tensor: self > other */
OPD_API opd_tensor *opd_gt(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_gt_(opd_tensor *self, opd_tensor *other);
/* gt.Scalar: self > other */
OPD_API opd_tensor *opd_gt_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_gt_Scalar_(opd_tensor *self, opd_value other);
/* ge.Tensor: self >= other */
OPD_API opd_tensor *opd_ge(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_ge_(opd_tensor *self, opd_tensor *other);
/* ge.Scalar: self >= other */
OPD_API opd_tensor *opd_ge_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_ge_Scalar_(opd_tensor *self, opd_value other);
/* logical_and: whether both are not 0 */
OPD_API opd_tensor *opd_logical_and(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_logical_and_(opd_tensor *self, opd_tensor *other);
/* logical_or: whether either is not 0 */
OPD_API opd_tensor *opd_logical_or(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_logical_or_(opd_tensor *self, opd_tensor *other);
/* logical_xor: whether one of the two is not 0 */
OPD_API opd_tensor *opd_logical_xor(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_logical_xor_(opd_tensor *self, opd_tensor *other);
/* bitwise_and.Tensor: self & other */
OPD_API opd_tensor *opd_bitwise_and(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_bitwise_and_(opd_tensor *self, opd_tensor *other);
/* bitwise_and.Scalar: self & other */
OPD_API opd_tensor *opd_bitwise_and_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_bitwise_and_Scalar_(opd_tensor *self, opd_value other);
/* bitwise_and.Scalar_Tensor: self & other */
OPD_API opd_tensor *opd_bitwise_and_Scalar_Tensor(opd_value self, opd_tensor *other);
/* bitwise_or.Tensor: self | other */
OPD_API opd_tensor *opd_bitwise_or(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_bitwise_or_(opd_tensor *self, opd_tensor *other);
/* bitwise_or.Scalar: self | other */
OPD_API opd_tensor *opd_bitwise_or_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_bitwise_or_Scalar_(opd_tensor *self, opd_value other);
/* bitwise_or.Scalar_Tensor: self | other */
OPD_API opd_tensor *opd_bitwise_or_Scalar_Tensor(opd_value self, opd_tensor *other);
/* bitwise_xor.Tensor: self ^ other */
OPD_API opd_tensor *opd_bitwise_xor(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_bitwise_xor_(opd_tensor *self, opd_tensor *other);
/* bitwise_xor.Scalar: self ^ other */
OPD_API opd_tensor *opd_bitwise_xor_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_bitwise_xor_Scalar_(opd_tensor *self, opd_value other);
/* bitwise_xor.Scalar_Tensor: self ^ other */
OPD_API opd_tensor *opd_bitwise_xor_Scalar_Tensor(opd_value self, opd_tensor *other);
/* bitwise_left_shift.Tensor: self << other */
OPD_API opd_tensor *opd_bitwise_left_shift(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_bitwise_left_shift_(opd_tensor *self, opd_tensor *other);
/* bitwise_left_shift.Tensor_Scalar: self << other */
OPD_API opd_tensor *opd_bitwise_left_shift_Tensor_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_bitwise_left_shift_Tensor_Scalar_(opd_tensor *self, opd_value other);
/* bitwise_left_shift.Scalar_Tensor: self << other */
OPD_API opd_tensor *opd_bitwise_left_shift_Scalar_Tensor(opd_value self, opd_tensor *other);
/* bitwise_right_shift.Tensor: self >> other */
OPD_API opd_tensor *opd_bitwise_right_shift(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_bitwise_right_shift_(opd_tensor *self, opd_tensor *other);
/* bitwise_right_shift.Tensor_Scalar: self >> other */
OPD_API opd_tensor *opd_bitwise_right_shift_Tensor_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_bitwise_right_shift_Tensor_Scalar_(opd_tensor *self, opd_value other);
/* bitwise_right_shift.Scalar_Tensor: self >> other */
OPD_API opd_tensor *opd_bitwise_right_shift_Scalar_Tensor(opd_value self, opd_tensor *other);
/* __and__.Tensor: self & other */
OPD_API opd_tensor *opd_and_Tensor(opd_tensor *self, opd_tensor *other);
/* __iand__.Tensor: self & other into self */
OPD_API opd_tensor *opd_iand_Tensor(opd_tensor *self, opd_tensor *other);
/* __and__.Scalar: self & other */
OPD_API opd_tensor *opd_and_Scalar(opd_tensor *self, opd_value other);
/* __iand__.Scalar: self & other into self */
OPD_API opd_tensor *opd_iand_Scalar(opd_tensor *self, opd_value other);
/* __or__.Tensor: self | other */
OPD_API opd_tensor *opd_or_Tensor(opd_tensor *self, opd_tensor *other);
/* __ior__.Tensor: self | other into self */
OPD_API opd_tensor *opd_ior_Tensor(opd_tensor *self, opd_tensor *other);
/* __or__.Scalar: self | other */
OPD_API opd_tensor *opd_or_Scalar(opd_tensor *self, opd_value other);
/* __ior__.Scalar: self | other into self */
OPD_API opd_tensor *opd_ior_Scalar(opd_tensor *self, opd_value other);
/* __xor__.Tensor: self ^ other */
OPD_API opd_tensor *opd_xor_Tensor(opd_tensor *self, opd_tensor *other);
/* __ixor__.Tensor: self ^ other into self */
OPD_API opd_tensor *opd_ixor_Tensor(opd_tensor *self, opd_tensor *other);
/* __xor__.Scalar: self ^ other */
OPD_API opd_tensor *opd_xor_Scalar(opd_tensor *self, opd_value other);
/* __ixor__.Scalar: self ^ other into self */
OPD_API opd_tensor *opd_ixor_Scalar(opd_tensor *self, opd_value other);
/* __lshift__.Tensor: self << other */
OPD_API opd_tensor *opd_lshift_Tensor(opd_tensor *self, opd_tensor *other);
/* __ilshift__.Tensor: self << other into self */
OPD_API opd_tensor *opd_ilshift_Tensor(opd_tensor *self, opd_tensor *other);
/* __lshift__.Scalar: self << other */
OPD_API opd_tensor *opd_lshift_Scalar(opd_tensor *self, opd_value other);
/* __ilshift__.Scalar: self << other into self */
OPD_API opd_tensor *opd_ilshift_Scalar(opd_tensor *self, opd_value other);
/* __rshift__.Tensor: self >> other */
OPD_API opd_tensor *opd_rshift_Tensor(opd_tensor *self, opd_tensor *other);
/* __irshift__.Tensor: self >> other into self */
OPD_API opd_tensor *opd_irshift_Tensor(opd_tensor *self, opd_tensor *other);
/* __rshift__.Scalar: self >> other */
OPD_API opd_tensor *opd_rshift_Scalar(opd_tensor *self, opd_value other);
/* __irshift__.Scalar: self >> other into self */
OPD_API opd_tensor *opd_irshift_Scalar(opd_tensor *self, opd_value other);
/* gcd: greatest common divisor */
OPD_API opd_tensor *opd_gcd(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_gcd_(opd_tensor *self, opd_tensor *other);
/* lcm: least common multiple */
OPD_API opd_tensor *opd_lcm(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_lcm_(opd_tensor *self, opd_tensor *other);
/* atan2: the angle of (other, self) */
OPD_API opd_tensor *opd_atan2(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_atan2_(opd_tensor *self, opd_tensor *other);
/* hypot: sqrt(self^2 + other^2) */
OPD_API opd_tensor *opd_hypot(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_hypot_(opd_tensor *self, opd_tensor *other);
/* xlogy.Tensor: self * log(other), 0 where self is 0 */
OPD_API opd_tensor *opd_xlogy(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_xlogy_(opd_tensor *self, opd_tensor *other);
/* xlogy.Scalar_Other: self * log(other), 0 where self is 0 */
OPD_API opd_tensor *opd_xlogy_Scalar_Other(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_xlogy_Scalar_Other_(opd_tensor *self, opd_value other);
/* xlogy.Scalar_Self: self * log(other), 0 where self is 0 */
OPD_API opd_tensor *opd_xlogy_Scalar_Self(opd_value self, opd_tensor *other);
/* logaddexp: log(e^self + e^other) */
OPD_API opd_tensor *opd_logaddexp(opd_tensor *self, opd_tensor *other);
/* logaddexp2: log2(2^self + 2^other) */
OPD_API opd_tensor *opd_logaddexp2(opd_tensor *self, opd_tensor *other);
/* copysign.Tensor: self with other's sign */
OPD_API opd_tensor *opd_copysign(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_copysign_(opd_tensor *self, opd_tensor *other);
/* copysign.Scalar: self with other's sign */
OPD_API opd_tensor *opd_copysign_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_copysign_Scalar_(opd_tensor *self, opd_value other);
/* nextafter: the next number from self towards other */
OPD_API opd_tensor *opd_nextafter(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_nextafter_(opd_tensor *self, opd_tensor *other);
/* heaviside: 0 below 0, values at 0, 1 above */
OPD_API opd_tensor *opd_heaviside(opd_tensor *self, opd_tensor *values);
OPD_API opd_tensor *opd_heaviside_(opd_tensor *self, opd_tensor *values);
/* where.self: self where condition, else other */
OPD_API opd_tensor *opd_where_self(opd_tensor *condition, opd_tensor *self, opd_tensor *other);
/* where.ScalarOther: self where condition, else other */
OPD_API opd_tensor *opd_where_ScalarOther(opd_tensor *condition, opd_tensor *self, opd_value other);
/* where.ScalarSelf: self where condition, else other */
OPD_API opd_tensor *opd_where_ScalarSelf(opd_tensor *condition, opd_value self, opd_tensor *other);
/* masked_fill.Scalar: value where mask, else self */
OPD_API opd_tensor *opd_masked_fill_Scalar(opd_tensor *self, opd_tensor *mask, opd_value value);
OPD_API opd_tensor *opd_masked_fill_Scalar_(opd_tensor *self, opd_tensor *mask, opd_value value);
/* masked_fill.Tensor: value where mask, else self */
OPD_API opd_tensor *opd_masked_fill(opd_tensor *self, opd_tensor *mask, opd_tensor *value);
OPD_API opd_tensor *opd_masked_fill_(opd_tensor *self, opd_tensor *mask, opd_tensor *value);
/* lerp.Scalar: self + weight * (end - self) */
OPD_API opd_tensor *opd_lerp_Scalar(opd_tensor *self, opd_tensor *end, opd_value weight);
OPD_API opd_tensor *opd_lerp_Scalar_(opd_tensor *self, opd_tensor *end, opd_value weight);
/* lerp.Tensor: self + weight * (end - self) */
OPD_API opd_tensor *opd_lerp(opd_tensor *self, opd_tensor *end, opd_tensor *weight);
OPD_API opd_tensor *opd_lerp_(opd_tensor *self, opd_tensor *end, opd_tensor *weight);
/* addcmul: self + value * tensor1 * tensor2 */
OPD_API opd_tensor *opd_addcmul(opd_tensor *self, opd_tensor *tensor1, opd_tensor *tensor2);
OPD_API opd_tensor *opd_addcmul_full(opd_tensor *self, opd_tensor *tensor1, opd_tensor *tensor2, opd_value value);
OPD_API opd_tensor *opd_addcmul_(opd_tensor *self, opd_tensor *tensor1, opd_tensor *tensor2);
OPD_API opd_tensor *opd_addcmul_full_(opd_tensor *self, opd_tensor *tensor1, opd_tensor *tensor2, opd_value value);
/* addcdiv: self + value * tensor1 / tensor2 */
OPD_API opd_tensor *opd_addcdiv(opd_tensor *self, opd_tensor *tensor1, opd_tensor *tensor2);
OPD_API opd_tensor *opd_addcdiv_full(opd_tensor *self, opd_tensor *tensor1, opd_tensor *tensor2, opd_value value);
OPD_API opd_tensor *opd_addcdiv_(opd_tensor *self, opd_tensor *tensor1, opd_tensor *tensor2);
OPD_API opd_tensor *opd_addcdiv_full_(opd_tensor *self, opd_tensor *tensor1, opd_tensor *tensor2, opd_value value);
/* tanh_backward: derivative of tanh, by its output */
OPD_API opd_tensor *opd_tanh_backward(opd_tensor *grad_output, opd_tensor *output);
/* sigmoid_backward: derivative of sigmoid, by its output */
OPD_API opd_tensor *opd_sigmoid_backward(opd_tensor *grad_output, opd_tensor *output);
/* threshold_backward: derivative of threshold and relu */
OPD_API opd_tensor *opd_threshold_backward(opd_tensor *grad_output, opd_tensor *self, opd_value threshold);
/* hardtanh_backward: derivative of hardtanh */
OPD_API opd_tensor *opd_hardtanh_backward(opd_tensor *grad_output, opd_tensor *self, opd_value min_val,
                                        opd_value max_val);
/* leaky_relu_backward: derivative of leaky_relu */
OPD_API opd_tensor *opd_leaky_relu_backward(opd_tensor *grad_output, opd_tensor *self, opd_value negative_slope,
                                        bool self_is_result);
/* hardsigmoid_backward: derivative of hardsigmoid */
OPD_API opd_tensor *opd_hardsigmoid_backward(opd_tensor *grad_output, opd_tensor *self);
/* hardswish_backward: derivative of hardswish */
OPD_API opd_tensor *opd_hardswish_backward(opd_tensor *grad_output, opd_tensor *self);
/* softplus_backward: derivative of softplus */
OPD_API opd_tensor *opd_softplus_backward(opd_tensor *grad_output, opd_tensor *self, opd_value beta,
                                        opd_value threshold);
/* silu_backward: derivative of silu */
OPD_API opd_tensor *opd_silu_backward(opd_tensor *grad_output, opd_tensor *self);
/* mish_backward: derivative of mish */
OPD_API opd_tensor *opd_mish_backward(opd_tensor *grad_output, opd_tensor *self);
/* gelu_backward: derivative of gelu */
OPD_API opd_tensor *opd_gelu_backward(opd_tensor *grad_output, opd_tensor *self);
OPD_API opd_tensor *opd_gelu_backward_full(opd_tensor *grad_output, opd_tensor *self, const char *approximate);
/* elu_backward: derivative of elu */
OPD_API opd_tensor *opd_elu_backward(opd_tensor *grad_output, opd_value alpha, opd_value scale, opd_value input_scale,
                                     bool is_result, opd_tensor *self_or_result);
/* true_divide.Tensor: self / other */
OPD_API opd_tensor *opd_true_divide(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_true_divide_(opd_tensor *self, opd_tensor *other);
/* true_divide.Scalar: self / other */
OPD_API opd_tensor *opd_true_divide_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_true_divide_Scalar_(opd_tensor *self, opd_value other);
/* ldexp.Tensor: self * 2^other */
OPD_API opd_tensor *opd_ldexp(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_ldexp_(opd_tensor *self, opd_tensor *other);
/* absolute: abs */
OPD_API opd_tensor *opd_absolute(opd_tensor *self);
OPD_API opd_tensor *opd_absolute_(opd_tensor *self);
/* arccos: acos */
OPD_API opd_tensor *opd_arccos(opd_tensor *self);
OPD_API opd_tensor *opd_arccos_(opd_tensor *self);
/* arccosh: acosh */
OPD_API opd_tensor *opd_arccosh(opd_tensor *self);
OPD_API opd_tensor *opd_arccosh_(opd_tensor *self);
/* arcsin: asin */
OPD_API opd_tensor *opd_arcsin(opd_tensor *self);
OPD_API opd_tensor *opd_arcsin_(opd_tensor *self);
/* arcsinh: asinh */
OPD_API opd_tensor *opd_arcsinh(opd_tensor *self);
OPD_API opd_tensor *opd_arcsinh_(opd_tensor *self);
/* arctan: atan */
OPD_API opd_tensor *opd_arctan(opd_tensor *self);
OPD_API opd_tensor *opd_arctan_(opd_tensor *self);
/* arctanh: atanh */
OPD_API opd_tensor *opd_arctanh(opd_tensor *self);
OPD_API opd_tensor *opd_arctanh_(opd_tensor *self);
/* fix: trunc */
OPD_API opd_tensor *opd_fix(opd_tensor *self);
OPD_API opd_tensor *opd_fix_(opd_tensor *self);
/* negative: neg */
OPD_API opd_tensor *opd_negative(opd_tensor *self);
OPD_API opd_tensor *opd_negative_(opd_tensor *self);
/* arctan2: atan2 */
OPD_API opd_tensor *opd_arctan2(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_arctan2_(opd_tensor *self, opd_tensor *other);
/* clip: clamp */
OPD_API opd_tensor *opd_clip(opd_tensor *self);
OPD_API opd_tensor *opd_clip_full(opd_tensor *self, opd_value min, opd_value max);
OPD_API opd_tensor *opd_clip_(opd_tensor *self);
OPD_API opd_tensor *opd_clip_full_(opd_tensor *self, opd_value min, opd_value max);
/* clip.Tensor: clamp.Tensor */
OPD_API opd_tensor *opd_clip_Tensor(opd_tensor *self);
OPD_API opd_tensor *opd_clip_Tensor_full(opd_tensor *self, opd_tensor *min, opd_tensor *max);
OPD_API opd_tensor *opd_clip_Tensor_(opd_tensor *self);
OPD_API opd_tensor *opd_clip_Tensor_full_(opd_tensor *self, opd_tensor *min, opd_tensor *max);
/* subtract.Tensor: sub.Tensor */
OPD_API opd_tensor *opd_subtract_Tensor(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_subtract_Tensor_full(opd_tensor *self, opd_tensor *other, opd_value alpha);
OPD_API opd_tensor *opd_subtract_Tensor_(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_subtract_Tensor_full_(opd_tensor *self, opd_tensor *other, opd_value alpha);
/* subtract.Scalar: sub.Scalar */
OPD_API opd_tensor *opd_subtract_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_subtract_Scalar_full(opd_tensor *self, opd_value other, opd_value alpha);
OPD_API opd_tensor *opd_subtract_Scalar_(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_subtract_Scalar_full_(opd_tensor *self, opd_value other, opd_value alpha);
/* multiply.Tensor: mul.Tensor */
OPD_API opd_tensor *opd_multiply_Tensor(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_multiply_Tensor_(opd_tensor *self, opd_tensor *other);
/* multiply.Scalar: mul.Scalar */
OPD_API opd_tensor *opd_multiply_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_multiply_Scalar_(opd_tensor *self, opd_value other);
/* divide.Tensor: div.Tensor */
OPD_API opd_tensor *opd_divide_Tensor(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_divide_Tensor_(opd_tensor *self, opd_tensor *other);
/* divide.Scalar: div.Scalar */
OPD_API opd_tensor *opd_divide_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_divide_Scalar_(opd_tensor *self, opd_value other);
/* divide.Tensor_mode: div.Tensor_mode */
OPD_API opd_tensor *opd_divide_Tensor_mode(opd_tensor *self, opd_tensor *other, const char *rounding_mode);
OPD_API opd_tensor *opd_divide_Tensor_mode_(opd_tensor *self, opd_tensor *other, const char *rounding_mode);
/* divide.Scalar_mode: div.Scalar_mode */
OPD_API opd_tensor *opd_divide_Scalar_mode(opd_tensor *self, opd_value other, const char *rounding_mode);
OPD_API opd_tensor *opd_divide_Scalar_mode_(opd_tensor *self, opd_value other, const char *rounding_mode);
/* greater.Tensor: gt.Tensor */
OPD_API opd_tensor *opd_greater_Tensor(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_greater_Tensor_(opd_tensor *self, opd_tensor *other);
/* greater.Scalar: gt.Scalar */
OPD_API opd_tensor *opd_greater_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_greater_Scalar_(opd_tensor *self, opd_value other);
/* greater_equal.Tensor: ge.Tensor */
OPD_API opd_tensor *opd_greater_equal_Tensor(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_greater_equal_Tensor_(opd_tensor *self, opd_tensor *other);
/* greater_equal.Scalar: ge.Scalar */
OPD_API opd_tensor *opd_greater_equal_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_greater_equal_Scalar_(opd_tensor *self, opd_value other);
/* less.Tensor: lt.Tensor */
OPD_API opd_tensor *opd_less_Tensor(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_less_Tensor_(opd_tensor *self, opd_tensor *other);
/* less.Scalar: lt.Scalar */
OPD_API opd_tensor *opd_less_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_less_Scalar_(opd_tensor *self, opd_value other);
/* less_equal.Tensor: le.Tensor */
OPD_API opd_tensor *opd_less_equal_Tensor(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_less_equal_Tensor_(opd_tensor *self, opd_tensor *other);
/* less_equal.Scalar: le.Scalar */
OPD_API opd_tensor *opd_less_equal_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_less_equal_Scalar_(opd_tensor *self, opd_value other);
/* not_equal.Tensor: ne.Tensor */
OPD_API opd_tensor *opd_not_equal_Tensor(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_not_equal_Tensor_(opd_tensor *self, opd_tensor *other);
/* not_equal.Scalar: ne.Scalar */
OPD_API opd_tensor *opd_not_equal_Scalar(opd_tensor *self, opd_value other);
OPD_API opd_tensor *opd_not_equal_Scalar_(opd_tensor *self, opd_value other);
/* float_power.Tensor_Tensor: self ^ exponent in float64, or complex128 */
OPD_API opd_tensor *opd_float_power_Tensor_Tensor(opd_tensor *self, opd_tensor *exponent);
OPD_API opd_tensor *opd_float_power_Tensor_Tensor_(opd_tensor *self, opd_tensor *exponent);
/* float_power.Scalar: self ^ exponent in float64, or complex128 */
OPD_API opd_tensor *opd_float_power_Scalar(opd_value self, opd_tensor *exponent);
/* float_power.Tensor_Scalar: self ^ exponent in float64, or complex128 */
OPD_API opd_tensor *opd_float_power_Tensor_Scalar(opd_tensor *self, opd_value exponent);
OPD_API opd_tensor *opd_float_power_Tensor_Scalar_(opd_tensor *self, opd_value exponent);

