/* Every operator with an out= form, with the sample arguments of its descriptor, and every way in which an out=
   tensor can be wrong: it is also an input, overlaps an input, has other sizes, another dtype or device, is a
   number, overlaps itself, requires grad, is also another out, or is NULL.  The results equal those of the
   functional form, or there is an error and nothing was written.  One case per operator. */
#include "../cases.h"

#define OUTS 4
typedef struct out_trial {
    const opd_op *op, *form;
    const char *text;                             /* the case */
    int index, first, nouts;                      /* the form's arguments from `first` on are its nouts outs, */
    bool list;                                    /* or it is one list of so many */
    op_case c;
    opd_value args[OPD_MAX_ARGS];
    opd_tensor *want[MOST_RESULTS], *outs[MOST_RESULTS];
    opd_tensor *inputs[MOST_INPUTS];
    opd_tensor **place[MOST_INPUTS];              /* where each stands among the arguments */
    int ninputs;
} out_trial;

//-- the arguments -----------------------------------------------------------------------------------------------------

static void note_input(out_trial *t, opd_tensor **place) {
    if (*place && t->ninputs < MOST_INPUTS) {
        t->place[t->ninputs] = place;
        t->inputs[t->ninputs++] = *place;
    }
}
/* Makes the arguments of the case again, and out tensors with the right sizes and dtypes.  t->want has the results. */
static bool arguments(out_trial *t, const char *doing) {
    const char *text = t->text;
    int i, k;
    (void)snprintf(what, sizeof what, "    %s case %d \"%.*s\", out %s", opd_op_name(t->form), t->index,
                   (int)strcspn(t->text + (*t->text == ';'), ";"), t->text + (*t->text == ';'), doing);
    t->c.op = t->op;
    t->c.dtype = OPD_FLOAT32;
    if (!case_read_next(&t->c, &text) || !other_form(&t->c, t->form, t->args, &t->first)) { return false; }
    for (i = 0, t->ninputs = 0; i < t->first; i++) {
        opd_value *v = &t->args[i];
        if (v->tag == OPD_TAG_TENSOR) { note_input(t, &v->u.t); }
        for (k = 0; v->tag == OPD_TAG_TENSORS && k < v->n; k++) { note_input(t, (opd_tensor **)(uintptr_t)&v->u.tensors[k]); }
    }
    for (i = 0; i < t->nouts; i++) {
        t->outs[i] = opd_tensor_new(opd_ints_of(opd_sizes(t->want[i]), opd_ndim(t->want[i])), opd_dtype(t->want[i]));
        if (t->outs[i]) { (void)opd_zero_(t->outs[i]); }
    }
    return opd_ok();
}
/* Calls the out= form. */
static int call_form(out_trial *t) {
    opd_value rets[MOST_RESULTS];
    int i;
    if (t->list) { t->args[t->first] = opd_value_tensors(t->outs, t->nouts); }
    for (i = 0; i < t->nouts && !t->list; i++) { t->args[t->first + i] = opd_value_tensor(t->outs[i]); }
    return opd_call_all((opd_op *)(uintptr_t)t->form, rets, t->args, opd_schema_nargs(opd_op_schema(t->form)));
}

//-- conditions --------------------------------------------------------------------------------------------------------

/* A snapshot of a tensor that a call may read or write: its sizes, and the bytes of its storage. */
typedef struct shot { opd_tensor *t; int ndim; int64_t sizes[OPD_MAX_DIMS], bytes; unsigned char *data; } shot;
static shot shots[MOST_INPUTS + MOST_RESULTS];
static int nshots;
static void take_shot(opd_tensor *t) {
    shot *s = &shots[nshots++];
    s->t = t;
    s->ndim = opd_ndim(t);
    memcpy(s->sizes, opd_sizes(t), (size_t)s->ndim * sizeof *s->sizes);
    s->bytes = opd_data(t) ? opd_tensor_storage_bytes(t) : 0;
    s->data = (unsigned char *)malloc((size_t)s->bytes + 1);
    if (s->data && s->bytes) { memcpy(s->data, (char *)opd_data(t) - opd_tensor_offset(t) * (int64_t)opd_dtype_size(opd_dtype(t)), (size_t)s->bytes); }
}
static void take_shots(const out_trial *t) {
    int i;
    for (i = 0; i < t->ninputs; i++) { take_shot(t->inputs[i]); }
    for (i = 0; i < t->nouts; i++) { if (t->outs[i]) { take_shot(t->outs[i]); } }
}
static bool as_before(const shot *s) {
    return s->ndim == opd_ndim(s->t) && memcmp(s->sizes, opd_sizes(s->t), (size_t)s->ndim * sizeof *s->sizes) == 0 &&
        (!s->bytes || memcmp(s->data, (char *)opd_data(s->t) - opd_tensor_offset(s->t) * (int64_t)opd_dtype_size(opd_dtype(s->t)),
                             (size_t)s->bytes) == 0);
}
static void drop_shots(void) { while (nshots) { free(shots[--nshots].data); } }

static bool is_target(const out_trial *t, const opd_tensor *x) {
    int i;
    for (i = 0; i < t->nouts; i++) { if (t->outs[i] && opd_tensor_same_storage(t->outs[i], x)) { return true; } }
    return false;
}
static void same_numbers(const opd_tensor *a, const opd_tensor *b) {
    if (opd_dtype_is_complex(opd_dtype(a)) || opd_dtype_is_complex(opd_dtype(b))) { (void)say(same_shape(a, b), "shapes differ"); return; }
    OPD_SCOPE { same_values(opd_to_dtype((opd_tensor *)(uintptr_t)a, OPD_FLOAT64), opd_to_dtype((opd_tensor *)(uintptr_t)b, OPD_FLOAT64), 1e-5); }
}
/* Runs the form: right results with the other inputs as they were, or an error (NULL: none is right) and everything so. */
static bool run_form(out_trial *t, bool may_fail, bool must_fail) {
    int i, rc;
    bool right = true;
    take_shots(t);
    rc = call_form(t);
    right = say((rc < 0) == !opd_ok(), "return code and error differ");
    if (!opd_ok()) {
        if (!may_fail && !must_fail) { printf("%s: %s\n", what, opd_error_message()); }
        right = say(may_fail || must_fail, "an error") && right;
        opd_error_clear();
        for (i = 0; i < nshots; i++) {            /* one of several outs may be ready when another one is refused */
            if (t->nouts > 1 && is_target(t, shots[i].t)) { continue; }
            right = say(as_before(&shots[i]), "an error, and something was written") && right;
        }
    } else {
        right = say(!must_fail, "no error") && right;
        for (i = 0; i < t->ninputs; i++) {
            if (!is_target(t, shots[i].t)) { right = say(as_before(&shots[i]), "an input was written") && right; }
        }
        for (i = 0; i < t->nouts && right && !is_random(t->op); i++) { same_numbers(t->outs[i], t->want[i]); }
    }
    drop_shots();
    return right;
}

//-- the traps ---------------------------------------------------------------------------------------------------------

/* Out tensor i is also input k. */
static void out_is_input(out_trial *t, int i) {
    int k;
    for (k = 0; k < t->ninputs; k++) {
        OPD_SCOPE { if (arguments(t, "is an input")) { t->outs[i] = t->inputs[k]; (void)run_form(t, true, false); } }
    }
}
/* Input k is moved into a buffer that out tensor i overlaps: it begins `shift` elements later, and has every
   `step`-th. */
static void out_across_input(out_trial *t, int i, int64_t shift, int64_t step) {
    int k;
    for (k = 0; k < t->ninputs; k++) {
        OPD_SCOPE {
            opd_tensor *in, *out, *buffer, *moved;
            int64_t n;
            if (!arguments(t, step > 1 ? "lies across an input, with gaps" : "lies across an input")) { continue; }
            in = t->inputs[k];
            out = t->outs[i];
            if (opd_dtype(in) != opd_dtype(out) || !opd_numel(in)) { continue; }
            n = opd_numel(in) > step * opd_numel(out) ? opd_numel(in) : step * opd_numel(out);
            buffer = opd_zeros(OPD_INTS(n + shift), opd_dtype(in));
            moved = opd_view(opd_narrow(buffer, 0, 0, opd_numel(in)), opd_ints_of(opd_sizes(in), opd_ndim(in)));
            (void)opd_copy_(moved, in);
            t->outs[i] = opd_view(opd_slice(buffer, 0, opd_value_int(shift), opd_value_int(shift + step * opd_numel(out)), step),
                                  opd_ints_of(opd_sizes(out), opd_ndim(out)));
            *t->place[k] = t->inputs[k] = moved;
            if (opd_ok()) { (void)run_form(t, true, false); }
            opd_error_clear();
        }
    }
}
static void out_of_size(out_trial *t, int i, int64_t n) {
    OPD_SCOPE {
        if (arguments(t, n ? "is larger" : "is empty")) {
            t->outs[i] = opd_zeros(OPD_INTS(n ? opd_numel(t->outs[i]) + n : 0), opd_dtype(t->outs[i]));
            (void)run_form(t, false, false);
        }
    }
}
static void out_of_dtype(out_trial *t, int i) {
    static const opd_scalar_type dtypes[] = {OPD_FLOAT64, OPD_FLOAT32, OPD_INT64, OPD_UINT8, OPD_BOOL, OPD_COMPLEX64};
    size_t k;
    for (k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
        OPD_SCOPE {
            if (arguments(t, opd_dtype_name(dtypes[k])) && opd_dtype(t->outs[i]) != dtypes[k]) {
                const bool castable = opd_can_cast(opd_dtype(t->outs[i]), dtypes[k]);
                opd_tensor *was = t->want[i];
                t->outs[i] = opd_zeros(opd_ints_of(opd_sizes(was), opd_ndim(was)), dtypes[k]);
                if (dtypes[k] == OPD_UINT8 || dtypes[k] == OPD_BOOL) { t->want[i] = opd_to_dtype(was, dtypes[k]); }
                if (arg_named(t->op, "dtype") < 0) { (void)run_form(t, true, !castable); }
                else { (void)call_form(t); opd_error_clear(); }           /* it computes in the out's */
                t->want[i] = was;
            }
        }
    }
}
static void out_elsewhere(out_trial *t, int i) {
    OPD_SCOPE {
        if (arguments(t, "is on meta") && t->ninputs) {
            t->outs[i] = opd_tensor_new_on(opd_ints_of(opd_sizes(t->want[i]), opd_ndim(t->want[i])), opd_dtype(t->want[i]),
                                           opd_device_make(OPD_META, -1));
            (void)run_form(t, false, true);
        }
    }
}
static void out_is_number(out_trial *t, int i) {
    OPD_SCOPE {
        if (arguments(t, "is a number")) {
            t->outs[i] = opd_tensor_wrapped_number(opd_value_double(1));
            (void)run_form(t, false, true);
        }
    }
}
static void out_overlaps_itself(out_trial *t, int i) {
    OPD_SCOPE {
        if (arguments(t, "is expanded") && opd_numel(t->outs[i]) > 1) {
            t->outs[i] = opd_expand(opd_zeros(OPD_INTS(1), opd_dtype(t->want[i])),
                                    opd_ints_of(opd_sizes(t->want[i]), opd_ndim(t->want[i])));
            (void)run_form(t, false, true);
        }
    }
}
static void out_with_gaps(out_trial *t, int i, int layout) {
    OPD_SCOPE {
        if (arguments(t, layout == CASE_SLICED ? "has gaps" : "is transposed")) {
            t->outs[i] = case_tensor(opd_sizes(t->want[i]), opd_ndim(t->want[i]), opd_dtype(t->want[i]), layout, false);
            if (opd_ok()) { (void)run_form(t, false, false); }
        }
    }
}
static void out_requires_grad(out_trial *t, int i) {
    OPD_SCOPE {
        if (arguments(t, "requires grad") && opd_dtype_is_floating(opd_dtype(t->outs[i]))) {
            (void)opd_tensor_set_requires_grad(t->outs[i], true);
            (void)run_form(t, false, true);
        }
    }
}
static void out_is_missing(out_trial *t, int i) {
    OPD_SCOPE { if (arguments(t, "is NULL")) { t->outs[i] = NULL; (void)run_form(t, false, true); } }
}
/* Two out tensors begin one element apart in the same memory, or would overlap once they are resized. */
static void outs_share(out_trial *t, int i, int k, bool empty) {
    opd_tensor *parts[2], *buffer;
    const int which[2] = {k, i};
    int n;
    if (!arguments(t, empty ? "would lie across another" : "lies across another") || opd_numel(t->want[i]) < 2 ||
        opd_numel(t->want[k]) < 2 || opd_dtype(t->want[i]) != opd_dtype(t->want[k])) { return; }
    buffer = opd_zeros(OPD_INTS(opd_numel(t->want[i]) + opd_numel(t->want[k])), opd_dtype(t->want[i]));
    for (n = 0; n < 2; n++) {
        const opd_tensor *want = t->want[which[n]];
        parts[n] = opd_narrow(buffer, 0, n, empty ? 0 : opd_numel(want));
        t->outs[which[n]] = empty ? parts[n] : opd_view(parts[n], opd_ints_of(opd_sizes(want), opd_ndim(want)));
    }
    (void)run_form(t, false, true);
}
static void outs_meet(out_trial *t) {
    int i, k;
    for (i = 1; i < t->nouts; i++) {
        for (k = 0; k < i; k++) {
            OPD_SCOPE { if (arguments(t, "twice")) { t->outs[i] = t->outs[k]; (void)run_form(t, false, true); } }
            OPD_SCOPE { outs_share(t, i, k, false); }
            OPD_SCOPE { outs_share(t, i, k, true); }
        }
    }
}
/* In a fake mode, no real tensor is written. */
static void out_in_fake_mode(out_trial *t, int i, bool number) {
    OPD_SCOPE {
        if (arguments(t, number ? "is a number in a fake mode" : "in a fake mode")) {
            int k;
            if (number) { t->outs[i] = opd_tensor_wrapped_number(opd_value_double(1)); }
            take_shots(t);
            OPD_FAKE_MODE { (void)call_form(t); }
            opd_error_clear();
            for (k = 0; k < nshots; k++) { (void)say(as_before(&shots[k]), "something was written in a fake mode"); }
            drop_shots();
        }
    }
}

//-- out= tensors that PyTorch accepts (golden/out_rules.txt, made by golden/make_out_rules.py) ------------------------

static char rules[1 << 17];
/* Copies the rule's letters and overlaps to text.  Returns false if there is no rule. */
static bool rule_for(const out_trial *t, int i, char *text, size_t size) {
    char key[160];
    const char *line;
    if (!*rules) {
        FILE *file = check_golden("out_rules.txt");
        if (!file) { return false; }
        rules[fread(rules, 1, sizeof rules - 1, file)] = 0;
        (void)fclose(file);
    }
    (void)snprintf(key, sizeof key, "\n%s %d %d ", opd_op_name(t->form) + strlen("aten::"), t->index, i);
    line = strstr(rules, key);
    if (!line) { return false; }
    line += strlen(key);
    (void)snprintf(text, size, "%.*s", (int)strcspn(line, "\n"), line);
    return true;
}
/* Returns whether the form accepts its current out tensors. */
static bool takes(out_trial *t) {
    const bool taken = call_form(t) == 0 && opd_ok();
    opd_error_clear();
    return taken;
}
static bool among(const char *form, const char *names) {
    char name[128];
    (void)snprintf(name, sizeof name, " %s ", form + strlen("aten::"));
    return strstr(names, name) != NULL;
}
/* Left as they are: an out that is computed in its own dtype, whatever that is (sum prod nansum); that is refused where
   the result cannot be cast to it (bernoulli, _fft_r2c); real numbers into complex outs; what PyTorch hands to its parts,
   and that depends on the exponent or the number of matrices. */
static bool other_dtypes_here(const char *form) {
    return among(form, " sum.out prod.out nansum.out bernoulli.out _fft_r2c.out cumsum.out cumprod.out empty.out "
                 "fft_hfft.out fft_hfft2.out fft_hfftn.out fft_irfft.out fft_irfft2.out fft_irfftn.out fft_fftfreq.out "
                 "std.out std.correction_out var.out var.correction_out nanmean.out gelu_backward.grad_input "
                 "linalg_matrix_power.out chain_matmul.out ");
}
/* And over memory: PyTorch computes apart, then copies, in forms that its Python does not reach (add.Scalar_out, relu.out
   and their like); pointwise ones are all checked here.  Others look at what one of their parts writes. */
static bool other_overlaps_here(const char *form) {
    return among(form, " rsub.Tensor_out rsub.Scalar_out _standard_gamma_grad.out threshold_backward.grad_input threshold.out "
                 "add.Scalar_out sub.Scalar_out mul.Scalar_out div.Scalar_out div.Scalar_mode_out masked_fill.Scalar_out "
                 "masked_fill.Tensor_out hardswish_backward.out copy.out clone.out _to_copy.out celu.out relu.out ldexp.out "
                 "fill.Tensor_out _conj_physical.out bitwise_and.Scalar_Tensor_out bitwise_or.Scalar_Tensor_out "
                 "bitwise_xor.Scalar_Tensor_out bitwise_left_shift.Scalar_Tensor_out bitwise_right_shift.Scalar_Tensor_out "
                 "aminmax.out median.dim_values nanmedian.dim_values soft_margin_loss.out "
                 "soft_margin_loss_backward.grad_input sort.values addr.out linalg_solve.out linalg_solve_triangular.out "
                 "_linalg_solve_ex.result _linalg_eigh.eigenvalues linalg_matrix_power.out chain_matmul.out linear.out "
                 "thnn_conv2d.out glu.out _unsafe_view.out _chunk_cat.out ");
}
static void dtypes_as_pytorch(out_trial *t, int i, const char *letters) {
    static const opd_scalar_type dtypes[] = {OPD_UINT8, OPD_INT32, OPD_INT64, OPD_FLOAT16, OPD_BFLOAT16, OPD_FLOAT32, OPD_FLOAT64,
                                             OPD_COMPLEX64, OPD_COMPLEX128, OPD_BOOL};
    int k;
    for (k = 0; k < 10; k++) {
        if (letters[k] == '-') { continue; }
        OPD_SCOPE {
            if (arguments(t, opd_dtype_name(dtypes[k])) && opd_dtype(t->want[i]) != dtypes[k]) {
                t->outs[i] = opd_zeros(opd_ints_of(opd_sizes(t->want[i]), opd_ndim(t->want[i])), dtypes[k]);
                (void)say(takes(t) == (letters[k] == '1'), letters[k] == '1' ? "PyTorch takes it" : "PyTorch refuses it");
            }
        }
    }
}
/* Input k is moved to the beginning of out tensor i, or one element before. */
static void overlap_as_pytorch(out_trial *t, int i, int k, int shift, char letter) {
    opd_tensor *in, *memory, *moved;
    if (letter == '-' || !arguments(t, shift ? "an element after an input" : "where an input begins") || k >= t->ninputs) { return; }
    in = t->inputs[k];
    memory = opd_zeros(OPD_INTS(opd_numel(in) + opd_numel(t->outs[i]) + 1), opd_dtype(in));
    moved = opd_view(opd_narrow(memory, 0, 0, opd_numel(in)), opd_ints_of(opd_sizes(in), opd_ndim(in)));
    (void)opd_copy_(moved, in);
    t->outs[i] = opd_view(opd_narrow(memory, 0, shift, opd_numel(t->outs[i])),
                          opd_ints_of(opd_sizes(t->outs[i]), opd_ndim(t->outs[i])));
    *t->place[k] = moved;
    (void)say(takes(t) == (letter == 'T'), letter == 'T' ? "PyTorch takes it" : "PyTorch refuses it");
}
static void as_pytorch(out_trial *t, int i) {
    char text[512];
    const char *at;
    if (!rule_for(t, i, text, sizeof text)) { return; }
    if (!other_dtypes_here(opd_op_name(t->form))) { dtypes_as_pytorch(t, i, text); }
    if (other_overlaps_here(opd_op_name(t->form))) { return; }
    for (at = strchr(text, ' '); at; at = strchr(at + 1, ' ')) {
        const int k = atoi(at + 1);
        const char *letters = strchr(at, ':') + 1;
        OPD_SCOPE { overlap_as_pytorch(t, i, k, 0, letters[0]); }
        OPD_SCOPE { overlap_as_pytorch(t, i, k, 1, letters[1]); }
    }
}

//-- the walk ----------------------------------------------------------------------------------------------------------

static void all_traps(out_trial *t) {
    int i;
    OPD_SCOPE { if (arguments(t, "as it should be")) { (void)run_form(t, false, false); } }
    for (i = 0; i < t->nouts; i++) {
        out_is_input(t, i);
        out_across_input(t, i, 0, 1);
        out_across_input(t, i, 1, 1);
        out_across_input(t, i, 0, 2);
        out_of_size(t, i, 0);
        out_of_size(t, i, 3);
        out_of_dtype(t, i);
        out_elsewhere(t, i);
        out_is_number(t, i);
        out_overlaps_itself(t, i);
        out_with_gaps(t, i, CASE_SLICED);
        out_with_gaps(t, i, CASE_TRANSPOSED);
        out_requires_grad(t, i);
        out_is_missing(t, i);
        out_in_fake_mode(t, i, false);
        out_in_fake_mode(t, i, true);
        as_pytorch(t, i);
    }
    outs_meet(t);
}
/* Computes the results of the functional form.  Returns false if the case does not fit the out= form. */
static bool wanted(out_trial *t) {
    opd_value rets[MOST_RESULTS];
    const char *text = t->text;
    int i, n;
    t->c.op = t->op;
    t->c.dtype = OPD_FLOAT32;
    if (!case_read_next(&t->c, &text) || !other_form(&t->c, t->form, t->args, &t->first)) { return false; }
    if (opd_call_all((opd_op *)(uintptr_t)t->op, rets, t->c.args, t->c.nargs)) { return went_well(-1); }
    t->nouts = results_of(t->op, rets, t->want);
    n = opd_schema_nargs(opd_op_schema(t->form)) - t->first;
    t->list = rets[0].tag == OPD_TAG_TENSORS;
    for (i = 0; i < t->nouts; i++) {
        if (opd_dtype(t->want[i]) == OPD_FLOAT32 || opd_numel(t->want[i])) { t->want[i] = opd_clone(t->want[i]); }
    }
    return t->list ? n == 1 && t->nouts <= MOST_RESULTS : n == t->nouts;
}
static void test_out_form(void *arg) {
    static out_trial t;
    t.op = (const opd_op *)arg;
    t.form = form_of(t.op, opd_op_card(t.op)->out);
    t.text = cases_of(t.op);
    t.index = 0;
    CHECK_OR_RETURN(t.form != NULL);
    while (*t.text) {
        OPD_SCOPE { if (wanted(&t)) { all_traps(&t); } }
        t.text += *t.text == ';';
        t.text += strcspn(t.text, ";");
        t.index++;
    }
    CHECK_OK();
}

//-- in-place forms ----------------------------------------------------------------------------------------------------

/* An in-place form that takes self and another tensor refuses one that self overlaps in part, for each dtype, and writes
   nothing then.  It takes self itself.  Returns whether the form has this dtype. */
static bool overlap_in_place(opd_op *form, opd_scalar_type dtype) {
    OPD_SCOPED;
    opd_tensor *const memory = opd_ones(OPD_INTS(7), dtype), *const was = opd_clone(memory);
    opd_tensor *const self = opd_narrow(memory, 0, 1, 6), *const other = opd_narrow(memory, 0, 0, 6);
    const bool has = OPD_CALL(form, opd_clone(self), opd_clone(other)) != NULL;
    (void)snprintf(what, sizeof what, "    %s of %s", opd_op_name(form), opd_dtype_name(dtype));
    opd_error_clear();
    if (!has) { return false; }
    (void)OPD_CALL(form, self, other);
    (void)say(!opd_ok() && strstr(opd_error_message(), "single memory location"), "an overlap is not refused");
    opd_error_clear();
    (void)say(memcmp(opd_data(memory), opd_data(was), 7 * opd_dtype_size(dtype)) == 0, "something was written");
    (void)say(OPD_CALL(form, self, self) != NULL, "self is refused as the other argument");
    opd_error_clear();
    return true;
}
TEST(in_place_forms_refuse_a_tensor_that_self_overlaps_in_part) {
    static const opd_scalar_type dtypes[] = {OPD_UINT8, OPD_INT32, OPD_INT64, OPD_FLOAT16, OPD_BFLOAT16, OPD_FLOAT32,
                                             OPD_FLOAT64, OPD_COMPLEX64, OPD_BOOL};
    int i, k, ran = 0;
    for (i = 0; i < OPD_OP_COUNT; i++) {
        const opd_op *const op = opd_op_builtin((opd_op_id)i);
        const char *const name = op && opd_op_card(op) ? opd_op_card(op)->inplace : NULL;
        opd_op *const form = name ? (opd_op *)(uintptr_t)form_of(op, name) : NULL;
        if (!form || among(opd_op_name(form), " ldexp_ ")) { continue; }      /* PyTorch computes 2^other apart */
        for (k = 0; k < 9; k++) { ran += overlap_in_place(form, dtypes[k]); }
    }
    CHECK(ran > 200);
}
/* The value of masked_fill_ and fill_ may be an element of self. */
TEST(self_is_filled_with_one_of_its_elements) {
    OPD_SCOPED;
    opd_tensor *const x = opd_arange(opd_value_int(4), OPD_FLOAT32);
    const float *const row = (const float *)opd_data(x);
    CHECK(OPD_CALL(opd_find("aten::masked_fill_.Tensor"), x, opd_ge_Scalar(x, opd_value_int(1)), opd_select(x, 0, 2)));
    CHECK_OK();
    CHECK(row[0] == 0 && row[1] == 2 && row[2] == 2 && row[3] == 2);
    CHECK(OPD_CALL(opd_find("aten::fill_.Tensor"), x, opd_select(x, 0, 0)));
    CHECK_OK();
    CHECK(row[0] == 0 && row[1] == 0 && row[2] == 0 && row[3] == 0);
}
/* bernoulli_ and fill_ refuse an expanded self.  Probabilities that are broadcast may be elements of self. */
TEST(expanded_tensors_are_not_drawn_or_filled) {
    OPD_SCOPED;
    opd_op *const draw = opd_find("aten::bernoulli_.Tensor"), *const fill = opd_find("aten::fill_.Tensor");
    opd_tensor *const memory = opd_ones(OPD_INTS(3), OPD_FLOAT32);
    opd_tensor *const wide = opd_expand(opd_ones(OPD_INTS(1), OPD_FLOAT32), OPD_INTS(3));
    CHECK(!OPD_CALL(draw, wide, memory) && strstr(opd_error_message(), "more than one element"));
    opd_error_clear();
    CHECK(!OPD_CALL(fill, wide, opd_select(memory, 0, 0)) && strstr(opd_error_message(), "more than one element"));
    opd_error_clear();
    CHECK(OPD_CALL(draw, memory, opd_narrow(memory, 0, 1, 1)) != NULL);
    CHECK_OK();
}

static bool has_out_form(const opd_op *op) { return has_cases(op) && opd_op_card(op)->out; }
static void add_out_forms(void) { add_builtin_operators(test_out_form, has_out_form); }
CHECK_MAIN_ADD(add_out_forms)
