#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:recurrent recurrent layers
//
//  lstm, gru, rnn_tanh and rnn_relu of sequences [T, B, features].  One product computes the contributions of the input
//  for all steps.  Then public operators compute one step after another; for an lstm of floats, one function
//  (opdi_lstm) computes all steps.
//----------------------------------------------------------------------------------------------------------------------

OPDI_COLD_BEGIN
typedef enum opdi_rnn_kind { OPDI_RNN_LSTM, OPDI_RNN_GRU, OPDI_RNN_TANH, OPDI_RNN_RELU } opdi_rnn_kind;
/* A layer in one direction: its state h [B, H] (lstm: also c), and its weights.  w_hr is NULL if there is no
   projection. */
typedef struct opdi_recurrent {
    opdi_rnn_kind cell;
    opd_tensor *h, *c, *w_ih, *w_hh, *b_ih, *b_hh, *w_hr;
} opdi_recurrent;

/* Returns part i of gates [B, n H].  Each part has H columns; `size` is H. */
static opd_tensor *opdi_recurrent_gate(opd_tensor *gates, int64_t i, int64_t size) {
    return gates ? opd_slice(gates, -1, opd_value_int(i * size), opd_value_int((i + 1) * size), 1) : NULL;
}
/* Returns whether a step calls the operator for an lstm's or gru's cell, which is one kernel on CUDA. */
static bool opdi_recurrent_fused(const opdi_recurrent *layer, const opd_tensor *gates) {
    const opd_tensor *const h = layer->h, *const state = layer->c ? layer->c : h;
    return (layer->cell == OPDI_RNN_LSTM || layer->cell == OPDI_RNN_GRU) && gates && state &&
        opd_tensor_device(gates).type == OPD_CUDA && opd_dtype_is_floating(OPDI_DTYPE(gates)) && gates->ndim == 2 &&
        h->ndim == 2 && state->ndim == 2 && opdi_sizes(h)[0] == opdi_sizes(gates)[0] &&
        opdi_sizes(state)[0] == opdi_sizes(gates)[0] && gates->dtype == state->dtype &&
        gates->dtype == layer->w_hh->dtype && (h->flags & OPDI_CONTIGUOUS) && (state->flags & OPDI_CONTIGUOUS) &&
        !opd_autocast_enabled(OPD_CUDA);          /* results would get the strides of other states */
}
/* Makes one step: replaces the state in *layer by the next one.  `gates` is the contribution of the input to the
   gates. */
static void opdi_recurrent_step(opdi_recurrent *layer, opd_tensor *gates) {
    if (opdi_recurrent_fused(layer, gates)) {
        const bool lstm = layer->cell == OPDI_RNN_LSTM;
        opd_tensor *const product = opd_linear(layer->h, layer->w_hh, layer->b_hh), *rets[3];
        if (!product || (lstm ? opd__thnn_fused_lstm_cell(rets, gates, product, layer->c)
            : opd__thnn_fused_gru_cell(rets, gates, product, layer->h))) { return; }
        layer->h = rets[0];
        if (lstm) { layer->c = rets[1]; }
        if (layer->w_hr) { layer->h = opd_linear(layer->h, layer->w_hr, NULL); }
        return;
    }
    opd_tensor *own = opd_linear(layer->h, layer->w_hh, layer->b_hh), *sum = NULL;
    const int64_t size = layer->cell == OPDI_RNN_LSTM ? opd_size(layer->c, -1) : opd_size(layer->h, -1);
    if (layer->cell != OPDI_RNN_GRU) { sum = opd_add(gates, own); }
    if (layer->cell == OPDI_RNN_TANH) { layer->h = opd_tanh(sum); }
    if (layer->cell == OPDI_RNN_RELU) { layer->h = opd_relu(sum); }
    if (layer->cell == OPDI_RNN_LSTM) {
        opd_tensor *in = opd_sigmoid(opdi_recurrent_gate(sum, 0, size)),
            *forget = opd_sigmoid(opdi_recurrent_gate(sum, 1, size)),
            *fresh = opd_tanh(opdi_recurrent_gate(sum, 2, size)),
            *out = opd_sigmoid(opdi_recurrent_gate(sum, 3, size));
        opd_tensor *const first_product = opd_mul(forget, layer->c);
        layer->c = opd_add(first_product, opd_mul(in, fresh));
        layer->h = opd_mul(out, opd_tanh(layer->c));
        if (layer->w_hr) { layer->h = opd_linear(layer->h, layer->w_hr, NULL); }
    }
    if (layer->cell == OPDI_RNN_GRU) {
        opd_tensor *parts[3];
        for (int i = 0; i < 3; i++) { parts[i] = opdi_recurrent_gate(gates, i, size); }
        opd_tensor *const reset = opd_sigmoid(opd_add(parts[0], opdi_recurrent_gate(own, 0, size))),
            *const keep = opd_sigmoid(opd_add(parts[1], opdi_recurrent_gate(own, 1, size))),
            *const fresh = opd_tanh(opd_add(parts[2], opd_mul(reset, opdi_recurrent_gate(own, 2, size))));
        layer->h = opd_add(opd_mul(opd_sub(layer->h, fresh), keep), fresh);
    }
}
/* Checks that `gates`, computed from the weights, are as wide as the state requires.  Returns 0, or -1 and sets an
   error. */
static int opdi_recurrent_check(const opdi_recurrent *layer, const opd_tensor *gates) {
    const int64_t parts = layer->cell == OPDI_RNN_LSTM ? 4 : layer->cell == OPDI_RNN_GRU ? 3 : 1;
    const int64_t size = opd_size(layer->cell == OPDI_RNN_LSTM ? layer->c : layer->h, -1);
    const int64_t wide = gates ? opd_size(gates, -1) : 0;
    if (!gates || (wide % parts == 0 && wide / parts == size)) { return gates ? 0 : -1; }
    return opd_fail(OPD_ERROR_SHAPE, "a hidden state of size %lld needs weights with %d times as many rows, but they "
                    "have %lld rows", (long long)size, (int)parts, (long long)wide);
}
/* Makes the steps over gates [T, B, n H] in order or, if `back` is true, from the last step to the first.  Returns
   the outputs [T, B, H]. */
static opd_tensor *opdi_recurrent_steps(opdi_recurrent *layer, opd_tensor *gates, bool back) {
    const int64_t steps = opd_size(gates, 0);
    const opd_tensors each = opd_unbind(gates);   /* its gradient is one stack; select's would be as large as gates */
    opd_tensor **list = each.n == steps ? opdi_list_alloc(steps) : NULL;
    for (int64_t i = 0; i < steps && list; i++) {
        const int64_t at = back ? steps - 1 - i : i;
        opdi_recurrent_step(layer, each.data[at]);
        if (!opd_ok()) { return NULL; }
        list[at] = layer->h;
    }
    return list ? opd_stack(opd_tensors_of(list, steps), 0) : NULL;
}

/* All steps of an lstm of floats as one function for autograd, which is only used if no layer but autograd handles the
   operators.  Weights are packed once, and the gradient of the weight is one product over all steps.  Rows of gates
   have four parts of H columns: input, forget, cell candidate ("fresh") and output gates.  The right side of a product
   is packed as panels, see opdi_lstm_pack. */
typedef struct opdi_lstm {
    int64_t steps, batch, size;                   /* T, B, H */
    const float *gates, *h, *c, *w_hh;            /* gates [T, B, 4 H], h [B, H], c [B, H], w_hh [4 H, H] */
    float *out, *states, *acts;                   /* out: h [T, B, H]; states: c [kept, B, H]; acts: activated gates
                                                     [kept, B, wide] */
    int64_t kept, wide;                           /* kept: number of steps whose states are kept (T, or 2 in turn);
                                                     wide: length of a row of acts */
    bool back;
    float *panels;
    int64_t nr, depth;                            /* a panel: depth rows of nr columns */
    const float *left;                            /* the current product: left [B, depth], product [B, row] */
    float *product;
    int64_t row;                                  /* columns of the product, rounded up to whole panels */
    const float *out_grad;                        /* backward: [T, B, H] or NULL */
    float *gates_grad, *h_grad, *c_grad, *tanhs;  /* gates_grad [T, B, 4 H], h_grad [B, row], c_grad [B, H], tanhs [B,
                                                     H] */
    int64_t step;                                 /* number of the current step, in the layer's direction */
} opdi_lstm;

#define OPDI_LSTM_ROWS 7                          /* batches of so many examples fill a tile of the micro-kernel */

/* Returns the index in time of step number `step`, which counts from the end if the layer runs backwards. */
static int64_t opdi_lstm_at(const opdi_lstm *lstm, int64_t step) {
    return lstm->back ? lstm->steps - 1 - step : step;
}
static opd_tensor *opdi_lstm_buffer(int64_t steps, int64_t rows, int64_t count) {
    const int64_t sizes[3] = {steps, rows, count};
    return opd_tensor_new(opd_ints_of(sizes, 3), OPD_FLOAT32);
}
/* Packs a matrix [depth, count] of the weight, with strides rs and cs, as panels for the right side of products.
   The last panel is filled up with zeros.  Returns 0, or -1 if memory runs out. */
static int opdi_lstm_pack(opdi_lstm *lstm, int64_t depth, int64_t count, int64_t rs, int64_t cs) {
    const opdi_gemm_in in = opdi_gemm_in_of(lstm->w_hh, OPD_FLOAT32, rs, cs);
    lstm->nr = opdi_micro_of(OPD_FLOAT32).nr;
    lstm->depth = depth;
    lstm->row = opdi_round_up(count, lstm->nr);
    opd_tensor *const buffer = opdi_lstm_buffer(1, depth, lstm->row);
    lstm->panels = buffer ? (float *)(void *)buffer->data : NULL;
    for (int64_t j = 0; buffer && j < count; j += lstm->nr) {
        opdi_pack_panel(&in, 4, 0, depth, j, OPDI_MIN(lstm->nr, count - j), lstm->nr, lstm->panels + j * depth);
    }
    return buffer ? 0 : -1;
}
/* Multiplies lstm->left by panels [begin, end) of the weight. */
static void opdi_lstm_panels(void *ctx, int64_t begin, int64_t end) {
    const opdi_lstm *lstm = (const opdi_lstm *)ctx;
    const int64_t nr = lstm->nr, part = 8192 / nr, depth = lstm->depth;
    if (lstm->batch >= OPDI_LSTM_ROWS) {
        opdi_gemm_packed(lstm->batch, depth, lstm->left, lstm->panels, lstm->product, lstm->row, begin, end);
        return;
    }
    for (int64_t panel = begin; panel < end; panel++) {               /* few rows: kernels for them read less */
        const float *const right = lstm->panels + panel * nr * depth;
        for (int64_t k = 0; k < depth; k += part) {
            (void)opdi_gemm_f32(lstm->batch, nr, OPDI_MIN(part, depth - k), lstm->left + k, depth, 1, right + k * nr,
                                nr, 1, k > 0, lstm->product + panel * nr, lstm->row, 1);
        }
    }
}
static void opdi_lstm_multiply(opdi_lstm *lstm, const float *left, float *product) {
    const int64_t cost = lstm->batch * lstm->nr * lstm->depth;
    lstm->left = left;
    lstm->product = product;
    opdi_parallel_for(lstm->row / lstm->nr, OPDI_MAX((int64_t)1, 1048576 / cost), opdi_lstm_panels, lstm);
}
/* The rows of one example in one step.  acts (the activated gates), gates and gates_grad have 4 * H elements, the other
   rows H. */
typedef struct opdi_lstm_row {
    float *acts, *c, *h;
    const float *gates, *before, *grad;           /* before: c of the previous step */
    float *gates_grad, *h_grad, *c_grad, *tanhs;
} opdi_lstm_row;
OPDI_COLD_END
OPDI_ROW_AVX2 static void opdi_lstm_sum(float *to, const float *from, int64_t count) {
    int64_t i;
    OPDI_SIXTEENS(to[j] += from[j])
    for (; i < count; i++) { to[i] += from[i]; }
}
OPDI_ROW_AVX2 static void opdi_lstm_cells(const opdi_lstm_row *row, int64_t count) {
    const float *in = row->acts, *forget = in + count, *fresh = forget + count, *before = row->before;
    float *c = row->c;
    int64_t i;
    OPDI_SIXTEENS(c[j] = forget[j] * before[j] + in[j] * fresh[j])
    for (; i < count; i++) { c[i] = forget[i] * before[i] + in[i] * fresh[i]; }
}
OPDI_ROW_AVX2 static void opdi_lstm_outputs(const opdi_lstm_row *row, int64_t count) {
    const float *out = row->acts + 3 * count;
    float *h = row->h;
    int64_t i;
    OPDI_SIXTEENS(h[j] *= out[j])
    for (; i < count; i++) { h[i] *= out[i]; }
}
/* Computes the gradients for element j of a row of `count` elements.  d is the gradient of h.  row->c_grad has the
   gradient of c from later steps. */
OPDI_ALWAYS void opdi_lstm_back_one(const opdi_lstm_row *row, int64_t count, int64_t j) {
    const float in = row->acts[j], forget = row->acts[count + j], fresh = row->acts[2 * count + j],
        out = row->acts[3 * count + j], t = row->tanhs[j], d = row->h_grad[j],
        c = row->c_grad[j] + d * out * (1 - t * t);
    float *const to = row->gates_grad;
    to[j] = c * fresh * (in * (1 - in));
    to[count + j] = c * row->before[j] * (forget * (1 - forget));
    to[2 * count + j] = c * in * (1 - fresh * fresh);
    to[3 * count + j] = d * t * (out * (1 - out));
    row->c_grad[j] = c * forget;
}
OPDI_ROW_AVX2 static void opdi_lstm_back(const opdi_lstm_row *given, int64_t count) {
    const opdi_lstm_row row = *given;
    int64_t i;
    OPDI_SIXTEENS(opdi_lstm_back_one(&row, count, j))
    for (; i < count; i++) { opdi_lstm_back_one(&row, count, i); }
}
OPDI_COLD_BEGIN
/* Prefetches the cache lines of `count` floats. */
static void opdi_lstm_prefetch(const float *at, int64_t count) {
    for (int64_t i = 0; i < count; i += 16) { OPDI_PREFETCH(at + i); }
}
/* Finishes a step for examples [begin, end): adds the product with the state to their gates, then computes the new
   state. */
static void opdi_lstm_forward(void *ctx, int64_t begin, int64_t end) {
    const opdi_lstm *lstm = (const opdi_lstm *)ctx;
    const int64_t step = lstm->step, size = lstm->size, at = opdi_lstm_at(lstm, step), all = lstm->batch;
    for (int64_t i = begin; i < end; i++) {
        opdi_lstm_row row;
        memset(&row, 0, sizeof row);
        row.acts = lstm->acts + (step % lstm->kept * all + i) * lstm->wide;
        row.c = lstm->states + (step % lstm->kept * all + i) * size;
        row.before = step ? lstm->states + ((step - 1) % lstm->kept * all + i) * size : lstm->c + i * size;
        row.h = lstm->out + (at * all + i) * size;
        if (i + 1 < end) { opdi_lstm_prefetch(lstm->gates + (at * all + i + 1) * 4 * size, 4 * size); }
        opdi_lstm_sum(row.acts, lstm->gates + (at * all + i) * 4 * size, 4 * size);
        opdi_vsigmoid(2 * size, row.acts, row.acts);
        opdi_vtanh(size, row.acts + 2 * size, row.acts + 2 * size);
        opdi_vsigmoid(size, row.acts + 3 * size, row.acts + 3 * size);
        opdi_lstm_cells(&row, size);
        opdi_vtanh(size, row.h, row.c);
        opdi_lstm_outputs(&row, size);
    }
}
/* Computes the gradients of the current step's gates for examples [begin, end). */
static void opdi_lstm_backward(void *ctx, int64_t begin, int64_t end) {
    const opdi_lstm *lstm = (const opdi_lstm *)ctx;
    const int64_t step = lstm->step, size = lstm->size, at = opdi_lstm_at(lstm, step), all = lstm->batch;
    for (int64_t i = begin; i < end; i++) {
        opdi_lstm_row row;
        memset(&row, 0, sizeof row);
        row.acts = lstm->acts + (step * all + i) * lstm->wide;
        row.before = step ? lstm->states + ((step - 1) * all + i) * size : lstm->c + i * size;
        row.gates_grad = lstm->gates_grad + (at * all + i) * 4 * size;
        row.h_grad = lstm->h_grad + i * lstm->row;
        row.c_grad = lstm->c_grad + i * size;
        row.tanhs = lstm->tanhs + i * size;
        if (i + 1 < end) {
            opdi_lstm_prefetch(row.acts + lstm->wide, 4 * size);
            opdi_lstm_prefetch(row.gates_grad + 4 * size, 4 * size);
            opdi_lstm_prefetch(row.before + size, size);
        }
        opdi_vtanh(size, row.tanhs, lstm->states + (step * all + i) * size);
        if (lstm->out_grad) { opdi_lstm_sum(row.h_grad, lstm->out_grad + (at * all + i) * size, size); }
        opdi_lstm_back(&row, size);
    }
}
/* Computes all steps for the tensors in[0] to in[3]: gates, h, c and w_hh.  If `back` is true, begins with the last
   step.  Sets out[0] to the outputs and out[1] to the last c.  If `keep` is true, sets out[2] and out[3] to every c and
   to the activated gates, for the backward pass.  Returns 0, or -1 and sets an error. */
static int opdi_lstm_run(opd_tensor *const *in, bool back, bool keep, opd_tensor **out) {
    opd_tensor *dense[4];
    opdi_lstm lstm;
    memset(&lstm, 0, sizeof lstm);
    for (int i = 0; i < 4; i++) { if (!(dense[i] = opd_contiguous(in[i]))) { return -1; } }
    lstm.steps = opd_size(in[0], 0);
    lstm.batch = opd_size(in[1], 0);
    lstm.size = opd_size(in[1], 1);
    lstm.back = back;
    lstm.gates = (const float *)(const void *)dense[0]->data;
    lstm.h = (const float *)(const void *)dense[1]->data;
    lstm.c = (const float *)(const void *)dense[2]->data;
    lstm.w_hh = (const float *)(const void *)dense[3]->data;
    if (opdi_lstm_pack(&lstm, lstm.size, 4 * lstm.size, 1, lstm.size)) { return -1; }
    lstm.wide = lstm.row;
    lstm.kept = keep ? lstm.steps : 2;
    out[0] = opdi_lstm_buffer(lstm.steps, lstm.batch, lstm.size);
    out[2] = opdi_lstm_buffer(lstm.kept, lstm.batch, lstm.size);
    out[3] = opdi_lstm_buffer(lstm.kept, lstm.batch, lstm.wide);
    if (!out[0] || !out[2] || !out[3]) { return -1; }
    lstm.out = (float *)(void *)out[0]->data;
    lstm.states = (float *)(void *)out[2]->data;
    lstm.acts = (float *)(void *)out[3]->data;
    const float *h = lstm.h;
    for (lstm.step = 0; lstm.step < lstm.steps; lstm.step++) {
        opdi_lstm_multiply(&lstm, h, lstm.acts + lstm.step % lstm.kept * lstm.batch * lstm.wide);
        opdi_parallel_for(lstm.batch, OPDI_MAX((int64_t)1, 8192 / lstm.size), opdi_lstm_forward, &lstm);
        h = lstm.out + opdi_lstm_at(&lstm, lstm.step) * lstm.batch * lstm.size;
    }
    out[1] = opd_clone(opd_select(out[2], 0, (lstm.steps - 1) % lstm.kept));
    return out[1] ? 0 : -1;
}
/* Writes the gradient of w_hh to `to`: one product of the gradients of gates with the states before each step, over all
   steps but the first, plus the product for the first step.  Returns 0, or -1 if memory runs out. */
static int opdi_lstm_weight(const opdi_lstm *lstm, float *to) {
    const int64_t one = lstm->batch * lstm->size, rest = lstm->steps - 1, size = lstm->size;
    const float *const after = lstm->gates_grad + (lstm->back ? 0 : 4 * one),
        *const first = lstm->gates_grad + opdi_lstm_at(lstm, 0) * 4 * one;
    if (opdi_gemm_f32(4 * size, size, lstm->batch, first, 1, 4 * size, lstm->h, size, 1, 0, to, size, 1)) { return -1; }
    return opdi_gemm_f32(4 * size, size, rest * lstm->batch, after, 1, 4 * size, lstm->out + (lstm->back ? one : 0),
                         size, 1, 1, to, size, 1);
}
/* Runs the steps backward.  saved: gates, h, c, weight, outputs, every c, and the activated gates.  grads: the
   gradients of outputs and of the last c; each may be NULL.  Sets results[0] to results[3] to the gradients of the
   first four saved tensors.  If `back` is true, the forward pass began with the last step.  Returns 0, or -1 and sets
   an error. */
static int opdi_lstm_run_back(opd_tensor *const *saved, opd_tensor *const *grads, bool back, opd_tensor **results) {
    opd_tensor *dense[3], *given = grads[0] ? opd_contiguous(grads[0]) : NULL;
    opdi_lstm lstm;
    memset(&lstm, 0, sizeof lstm);
    for (int i = 0; i < 3; i++) { if (!(dense[i] = opd_contiguous(saved[i + 1]))) { return -1; } }
    lstm.steps = lstm.kept = opd_size(saved[0], 0);
    lstm.batch = opd_size(saved[1], 0);
    lstm.size = opd_size(saved[1], 1);
    lstm.wide = opd_size(saved[6], 2);
    lstm.back = back;
    lstm.h = (const float *)(const void *)dense[0]->data;
    lstm.c = (const float *)(const void *)dense[1]->data;
    lstm.w_hh = (const float *)(const void *)dense[2]->data;
    lstm.out = (float *)(void *)saved[4]->data;
    lstm.states = (float *)(void *)saved[5]->data;
    lstm.acts = (float *)(void *)saved[6]->data;
    if (!opd_ok() || opdi_lstm_pack(&lstm, 4 * lstm.size, lstm.size, lstm.size, 1)) { return -1; }
    opd_tensor *h = opdi_lstm_buffer(1, lstm.batch, lstm.row), *tanhs = opd_empty_like(dense[1]);
    results[0] = opdi_lstm_buffer(lstm.steps, lstm.batch, 4 * lstm.size);
    results[2] = grads[1] ? opd_contiguous(opd_clone(grads[1])) : opd_zeros_like(dense[1]);
    results[3] = opd_empty_like(dense[2]);
    if (!h || !tanhs || !results[0] || !results[2] || !results[3]) { return -1; }
    lstm.out_grad = given ? (const float *)(const void *)given->data : NULL;
    lstm.gates_grad = (float *)(void *)results[0]->data;
    lstm.h_grad = (float *)(void *)h->data;
    lstm.c_grad = (float *)(void *)results[2]->data;
    lstm.tanhs = (float *)(void *)tanhs->data;
    memset(lstm.h_grad, 0, (size_t)(lstm.batch * lstm.row) * sizeof(float));
    for (lstm.step = lstm.steps - 1; lstm.step >= 0; lstm.step--) {
        opdi_parallel_for(lstm.batch, OPDI_MAX((int64_t)1, 8192 / lstm.size), opdi_lstm_backward, &lstm);
        opdi_lstm_multiply(&lstm, lstm.gates_grad + opdi_lstm_at(&lstm, lstm.step) * lstm.batch * 4 * lstm.size,
                           lstm.h_grad);
    }
    if (opdi_lstm_weight(&lstm, (float *)(void *)results[3]->data)) { return -1; }
    results[1] = opd_narrow(opd_select(h, 0, 0), 1, 0, lstm.size);
    return results[1] ? 0 : -1;
}
/* Does the same as opdi_lstm_run, on CUDA: a step is a product and the operator for the cell. */
static int opdi_lstm_run_cuda(opd_tensor *const *in, bool back, bool keep, opd_tensor **out) {
    const int64_t steps = opd_size(in[0], 0);
    const opd_tensors gates = opd_unbind(in[0]);
    opd_tensor *const weight = opd_t(in[3]), *h = in[1], *c = in[2], *rets[3];
    opd_tensor **const hs = opdi_list_alloc(steps), **const cs = opdi_list_alloc(steps),
        **const acts = opdi_list_alloc(steps);
    if (gates.n != steps || !weight || !hs || !cs || !acts) { return -1; }
    for (int64_t step = 0; step < steps; step++) {
        const int64_t at = back ? steps - 1 - step : step;
        opd_tensor *const product = opd_mm(h, weight);
        if (!product || opd__thnn_fused_lstm_cell(rets, gates.data[at], product, c)) { return -1; }
        h = hs[at] = rets[0];
        c = cs[step] = rets[1];
        acts[step] = rets[2];
    }
    out[0] = opd_stack(opd_tensors_of(hs, steps), 0);
    out[1] = c;
    out[2] = keep ? opd_stack(opd_tensors_of(cs, steps), 0) : NULL;
    out[3] = keep ? opd_stack(opd_tensors_of(acts, steps), 0) : NULL;
    return opd_ok() ? 0 : -1;
}
/* Does the same as opdi_lstm_run_back, on CUDA. */
static int opdi_lstm_run_back_cuda(opd_tensor *const *saved, opd_tensor *const *grads, bool back,
                                   opd_tensor **results) {
    const int64_t steps = opd_size(saved[0], 0), size = opd_size(saved[1], 1), rows = opd_size(saved[1], 0);
    const opd_tensors cs = opd_unbind(saved[5]), acts = opd_unbind(saved[6]);
    /* the gradients of outputs; the products for the previous steps are added to them in place */
    opd_tensor *const given = grads[0] ? opd_clone_full(grads[0], opd_value_int(0)) : NULL;
    const opd_tensors each = given ? opd_unbind(given) : opd_tensors_of(NULL, 0);
    opd_tensor **const list = opdi_list_alloc(steps), *c = grads[1], *rets[3], *states[2];
    if (cs.n != steps || acts.n != steps || !list || (grads[0] && each.n != steps)) { return -1; }
    for (int64_t step = steps - 1; step >= 0; step--) {
        const int64_t at = back ? steps - 1 - step : step, later = back ? at - 1 : at + 1;
        opd_tensor *const before = step ? cs.data[step - 1] : saved[2];
        opd_tensor *h = given ? each.data[at] : NULL;
        if (step < steps - 1) { h = h ? opd_addmm_(h, list[later], saved[3]) : opd_mm(list[later], saved[3]); }
        if (!opd_ok() || opd__thnn_fused_lstm_cell_backward_impl(rets, h, c, before, cs.data[step], acts.data[step],
                                                                 false)) { return -1; }
        list[at] = rets[0];
        c = rets[1];
    }
    results[0] = opd_stack(opd_tensors_of(list, steps), 0);
    results[1] = opd_mm(list[back ? steps - 1 : 0], saved[3]);
    results[2] = c;
    opd_tensor *const first = opd_unsqueeze(saved[1], 0);       /* the states before each step, in the order of time */
    states[back ? 1 : 0] = first;
    states[back ? 0 : 1] = opd_narrow(saved[4], 0, back ? 1 : 0, steps - 1);
    if (!opd_ok()) { return -1; }
    const int64_t all[2] = {steps * rows, size}, wide[2] = {steps * rows, 4 * size};
    opd_tensor *const flat = opd_reshape(opd_cat(opd_tensors_of(states, 2), 0), opd_ints_of(all, 2)),
        *const slopes = opd_reshape(results[0], opd_ints_of(wide, 2));
    results[3] = opd_ok() ? opd_mm(opd_t(slopes), flat) : NULL;
    return results[3] ? 0 : -1;
}
/* Returns true if `tensor` holds floats in memory, or floating point numbers on CUDA.  opdi_nothing_follows tells
   whether no layer but autograd handles its operators. */
static bool opdi_lstm_plain(const opd_tensor *tensor) {
    return tensor->backend == OPD_CUDA ? opd_dtype_is_floating(OPDI_DTYPE(tensor))
        : opdi_in_memory(tensor) && tensor->dtype == OPD_FLOAT32;
}
/* Returns true if both tensors are plain, with the same dtype and device. */
static bool opdi_lstm_alike(const opd_tensor *one, const opd_tensor *other) {
    const opd_device first = opd_tensor_device(one), second = opd_tensor_device(other);
    return opdi_lstm_plain(one) && opdi_lstm_plain(other) && one->dtype == other->dtype &&
        first.type == second.type && first.index == second.index;
}
/* Computes the gradients by operators, from the saved tensors: if grad mode is on, because the gradients may be
   differentiated, or if another layer than autograd handles the operators.  Returns 0, or -1 and sets an error. */
static int opdi_lstm_formula_of(opd_backward_call *bw, opd_context *ctx, opd_tensor *const *saved) {
    opd_tensor *outs[2], *grads[2], *in[4], *results[4];
    opd_backward_options options;
    const bool was = opd_grad_mode_set(true);
    int count = 0, inputs = 0, rc = 0;
    opdi_recurrent layer;
    memset(&layer, 0, sizeof layer);
    memset(&options, 0, sizeof options);
    layer.cell = OPDI_RNN_LSTM;
    layer.h = saved[1];
    layer.c = saved[2];
    layer.w_hh = saved[3];
    opd_tensor *const output = opdi_recurrent_steps(&layer, saved[0], opd_context_get(ctx, "back").u.i != 0);
    for (int i = 0; i < 2; i++) {
        if (!(grads[count] = opd_bw_grad(bw, i))) { continue; }
        outs[count++] = i ? layer.c : output;
    }
    for (int i = 0; i < 4; i++) { if (opd_context_needs_input_grad(ctx, i)) { in[inputs++] = saved[i]; } }
    options.grad_outputs = grads;
    options.create_graph = was;
    options.allow_unused = true;
    if (!opd_ok() || (count && opd_autograd_grad(outs, count, in, inputs, &options, results))) { rc = -1; }
    (void)opd_grad_mode_set(was);
    for (int i = 0, k = 0; i < 4 && !rc && count; i++) {
        if (!opd_context_needs_input_grad(ctx, i)) { continue; }
        if (opd_bw_return(bw, i, results[k])) { rc = -1; }
        k++;
    }
    return rc;
}
static int opdi_lstm_formula(opd_backward_call *bw) {
    opd_context *const ctx = opd_bw_context(bw);
    opd_tensor *saved[7], *grads[2], *results[4];
    for (int i = 0; i < 7; i++) { if (!(saved[i] = opd_context_saved(ctx, i))) { return -1; } }
    for (int i = 0; i < 2; i++) { grads[i] = opd_bw_grad(bw, i); }
    bool plain = opdi_nothing_follows() && !opd_grad_mode_enabled();
    for (int i = 0; i < 2; i++) { plain = plain && (!grads[i] || opdi_lstm_alike(grads[i], saved[0])); }
    for (int i = 0; i < 7; i++) { plain = plain && opdi_lstm_alike(saved[i], saved[0]); }
    if (!plain) { return opdi_lstm_formula_of(bw, ctx, saved); }
    if ((saved[0]->backend == OPD_CUDA ? opdi_lstm_run_back_cuda : opdi_lstm_run_back)
        (saved, grads, opd_context_get(ctx, "back").u.i != 0, results)) { return -1; }
    for (int i = 0; i < 4; i++) {
        if (opd_context_needs_input_grad(ctx, i) && opd_bw_return(bw, i, results[i])) { return -1; }
    }
    return 0;
}
static int opdi_lstm_record(opd_context *ctx) {
    opd_tensor *saved[7], *out[4];
    const opd_value back = opd_context_input(ctx, 4);
    for (int i = 0; i < 4; i++) { saved[i] = opd_context_tensor(ctx, i); }
    if ((saved[0]->backend == OPD_CUDA ? opdi_lstm_run_cuda : opdi_lstm_run)(saved, back.u.i != 0, true, out)) {
        return -1;
    }
    saved[4] = out[0];
    saved[5] = out[2];
    saved[6] = out[3];
    opd_context_set_materialize_grads(ctx, false);
    return opd_context_set(ctx, "back", back) || opd_context_save_for_backward(ctx, saved, 7) ||
        opd_context_return(ctx, out[0]) ? -1 : opd_context_return(ctx, out[1]);
}
/* Returns true if the steps of this layer can run as one function (opdi_lstm). */
static bool opdi_lstm_fits(const opdi_recurrent *layer, const opd_tensor *input) {
    const opd_tensor *const h = layer->h, *const c = layer->c, *const w = layer->w_hh;
    if (layer->cell != OPDI_RNN_LSTM || layer->w_hr || !h || !c || !input || !opdi_nothing_follows() ||
        !opdi_lstm_alike(input, h) || !opdi_lstm_alike(input, c) || !opdi_lstm_alike(input, w) ||
        !opdi_lstm_alike(input, layer->w_ih) || input->numel == 0 || h->numel == 0) {
        return false;
    }
    for (int i = 0; i < 2; i++) {
        const opd_tensor *const bias = i ? layer->b_hh : layer->b_ih;
        if (bias && (!opdi_lstm_alike(input, bias) || bias->ndim != 1 || bias->dims[0] != w->dims[0])) { return false; }
    }
    return h->ndim == 2 && c->ndim == 2 && w->ndim == 2 && layer->w_ih->ndim == 2 && h->dims[0] == input->dims[1] &&
        opdi_same_sizes(h, c) && w->dims[1] == h->dims[1] && w->dims[0] == 4 * h->dims[1] &&
        layer->w_ih->dims[0] == w->dims[0] && layer->w_ih->dims[1] == input->dims[2];
}
/* Runs an lstm for which opdi_lstm_fits is true.  Returns the outputs [T, B, H], or NULL and sets an error. */
static opd_tensor *opdi_lstm_layer(opdi_recurrent *layer, opd_tensor *input, bool back) {
    opd_tensor *bias = layer->b_ih && layer->b_hh ? opd_add(layer->b_ih, layer->b_hh) : layer->b_ih ? layer->b_ih
        : layer->b_hh, *in[4], *out[4];
    bool learns = false;
    in[0] = opd_linear(input, layer->w_ih, bias);
    in[1] = layer->h;
    in[2] = layer->c;
    in[3] = layer->w_hh;
    for (int i = 0; i < 4 && opd_ok(); i++) { learns = learns || opdi_tracked(in[i]); }
    if (!opd_ok()) { return NULL; }
    if (!learns || !opd_grad_mode_enabled()) {
        if ((input->backend == OPD_CUDA ? opdi_lstm_run_cuda : opdi_lstm_run)(in, back, false, out)) { return NULL; }
    } else {
        opd_autograd_function function;
        opd_value values[5], outs[2];
        memset(&function, 0, sizeof function);
        function.name = "Lstm";
        function.forward = opdi_lstm_record;
        function.backward = opdi_lstm_formula;
        for (int i = 0; i < 4; i++) { values[i] = opd_value_tensor(in[i]); }
        values[4] = opd_value_bool(back);
        if (opd_autograd_apply(&function, values, 5, outs, 2) < 0) { return NULL; }
        for (int i = 0; i < 2; i++) { out[i] = outs[i].u.t; }
    }
    layer->h = opd_select(out[0], 0, back ? 0 : opd_size(out[0], 0) - 1);
    layer->c = out[1];
    return opd_ok() ? out[0] : NULL;
}
/* Runs a layer in one direction over input [T, B, I], from the first step to the last or, if `back` is true, from the
   last to the first.  Returns the outputs [T, B, H]. */
static opd_tensor *opdi_recurrent_run(opdi_recurrent *layer, opd_tensor *input, bool back) {
    if (opdi_lstm_fits(layer, input)) { return opdi_lstm_layer(layer, input, back); }
    opd_tensor *const gates = opd_linear(input, layer->w_ih, layer->b_ih);
    return opdi_recurrent_check(layer, gates) ? NULL : opdi_recurrent_steps(layer, gates, back);
}
/* Runs a layer over packed sequences: input [sum of sizes, I], in which step i has sizes[i] rows, at most as many as
   step i - 1.  If `back` is true, begins with the last step.  Examples that have ended keep their last state.  Returns
   the outputs [sum of sizes, H], or NULL and sets an error. */
static opd_tensor *opdi_recurrent_run_packed(opdi_recurrent *layer, opd_tensor *input, opd_ints sizes, bool back) {
    opd_tensor *const gates = opd_linear(input, layer->w_ih, layer->b_ih), **list = opdi_list_alloc(sizes.n),
        *h = layer->h, *c = layer->c, *both[2];
    if (opdi_recurrent_check(layer, gates)) { return NULL; }
    const opd_tensors each = opd_split_with_sizes(gates, sizes, 0);
    for (int64_t k = 0; k < sizes.n && each.n == sizes.n && list; k++) {
        const int64_t i = back ? sizes.n - 1 - k : k, size = sizes.data[i];
        layer->h = opd_narrow(h, 0, 0, size);
        layer->c = c ? opd_narrow(c, 0, 0, size) : NULL;
        if (!opd_ok()) { return NULL; }
        opdi_recurrent_step(layer, each.data[i]);
        list[i] = both[0] = layer->h;
        if (h && h->dims[0] > size) {             /* examples that have ended keep their states */
            both[1] = opd_narrow(h, 0, size, h->dims[0] - size);
            layer->h = opd_cat(opd_tensors_of(both, 2), 0);
            both[0] = layer->c;
            both[1] = c ? opd_narrow(c, 0, size, c->dims[0] - size) : NULL;
            if (c) { layer->c = opd_cat(opd_tensors_of(both, 2), 0); }
        }
        h = layer->h;
        c = layer->c;
        if (!opd_ok()) { return NULL; }
    }
    return opd_ok() && list ? opd_cat(opd_tensors_of(list, sizes.n), 0) : NULL;
}
/* Reads the weights of direction number `at`, counted over all layers, from params into *layer.  `biases` and `more`
   tell whether params include biases and projections. */
static void opdi_recurrent_weights(opdi_recurrent *layer, const opd_tensors *params, int64_t at, bool biases,
                                   bool more) {
    opd_tensor *const *each = params->data + at * ((biases ? 4 : 2) + more);
    layer->w_ih = each[0];
    layer->w_hh = each[1];
    layer->b_ih = biases ? each[2] : NULL;
    layer->b_hh = biases ? each[3] : NULL;
    layer->w_hr = more ? each[biases ? 4 : 2] : NULL;
}
/* Runs all layers over input, which is packed if `sizes` is not empty.  The arguments from number `at` on are the
   states, the parameters and their description.  Does not handle batch_first.  Sets ends[0] to the final h and, for
   lstm, ends[1] to the final c of all layers.  Returns the outputs, or NULL and sets an error. */
static opd_tensor *opdi_recurrent_layers(opd_call *call, opdi_rnn_kind cell, opd_tensor *input, opd_ints sizes, int at,
                                         opd_tensor **ends) {
    const bool lstm = cell == OPDI_RNN_LSTM, biases = opd_arg_bool(call, at + 2);
    const opd_tensors states = lstm ? opd_arg_tensors(call, at) : opd_tensors_of(NULL, 0),
        params = opd_arg_tensors(call, at + 1);
    opd_tensor *both[2];
    const int64_t layers = opd_arg_int(call, at + 3), ways = opd_arg_bool(call, at + 6) ? 2 : 1;
    opdi_recurrent layer;
    if (lstm && states.n != 2) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "lstm expects two hidden states");
        return NULL;
    }
    opd_tensor *h = lstm ? states.data[0] : opd_arg_tensor(call, at), *c = lstm ? states.data[1] : NULL;
    if (input->ndim != (sizes.n ? 2 : 3) || h->ndim != 3 || (c && c->ndim != 3)) {
        (void)opd_fail(OPD_ERROR_SHAPE, "input must have %d dimensions and hidden states 3", sizes.n ? 2 : 3);
        return NULL;
    }
    const bool more = c && opd_size(c, 2) != opd_size(h, 2);
    if (layers < 1 || layers > params.n || params.n != layers * ways * ((biases ? 4 : 2) + more) ||
        opd_size(h, 0) != layers * ways || (c && opd_size(c, 0) != layers * ways)) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%lld RNN parameters and %lld hidden states do not fit num_layers %lld",
                       (long long)params.n, (long long)opd_size(h, 0), (long long)layers);
        return NULL;
    }
    if (sizes.n && (opd_size(h, 1) != sizes.data[0] || (c && opd_size(c, 1) != sizes.data[0]))) {
        (void)opd_fail(OPD_ERROR_SHAPE, "hidden states have %lld examples, but batch_sizes[0] is %lld",
                       (long long)opd_size(h, 1), (long long)sizes.data[0]);
        return NULL;
    }
    opd_tensor **hs = opdi_list_alloc(layers * ways), **cs = opdi_list_alloc(layers * ways);
    for (int64_t i = 0; i < layers && hs && cs; i++) {
        for (int64_t way = 0; way < ways; way++) {
            const int64_t count = i * ways + way;
            layer.cell = cell;
            layer.h = opd_select(h, 0, count);
            layer.c = c ? opd_select(c, 0, count) : NULL;
            opdi_recurrent_weights(&layer, &params, count, biases, more);
            both[way] = sizes.n ? opdi_recurrent_run_packed(&layer, input, sizes, way == 1)
                : opdi_recurrent_run(&layer, input, way == 1);
            hs[count] = layer.h;
            cs[count] = layer.c;
            if (!opd_ok()) { return NULL; }
        }
        input = ways == 2 ? opd_cat(opd_tensors_of(both, 2), -1) : both[0];
        if (opd_arg_bool(call, at + 5) && opd_arg_double(call, at + 4) > 0 && i + 1 < layers) {
            input = opd_dropout(input, opd_arg_double(call, at + 4), true);
        }
    }
    if (!opd_ok()) { return NULL; }
    ends[0] = opd_stack(opd_tensors_of(hs, layers * ways), 0);
    ends[1] = lstm ? opd_stack(opd_tensors_of(cs, layers * ways), 0) : NULL;
    return opd_ok() ? input : NULL;
}
/* Sets the results of the call to the outputs and the final states.  Returns 0, or -1 and sets an error. */
static int opdi_recurrent_return(opd_call *call, opd_tensor *output, opd_tensor *const *ends) {
    if (!output || opd_return_tensor(call, output) || opd_return_tensor(call, ends[0])) { return -1; }
    return ends[1] ? opd_return_tensor(call, ends[1]) : 0;
}
/* Runs lstm.input and similar operators.  The results are the outputs and the final states (two for lstm). */
static int opdi_recurrent_input(opd_call *call, opdi_rnn_kind cell) {
    const bool first = opd_arg_bool(call, 8);
    opd_tensor *input = opd_arg_tensor(call, 0), *ends[2] = {NULL, NULL};
    if (first && input->ndim == 3) { input = opd_transpose(input, 0, 1); }
    if (input && input->ndim == 3 && input->dims[0] == 0) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected sequence length to be larger than 0 in RNN");
    }
    opd_tensor *output = input ? opdi_recurrent_layers(call, cell, input, opd_ints_of(NULL, 0), 1, ends) : NULL;
    return opdi_recurrent_return(call, output && first ? opd_transpose(output, 0, 1) : output, ends);
}
/* Returns the numbers in `counts`, a tensor of counts that must be at least 1 and never grow, and sets *sum to their
   sum.  `name` is the name of `counts` in errors.  On failure, returns an empty list and sets an error. */
static opd_ints opdi_shrinking_counts(opd_tensor *counts, const char *name, int64_t *sum) {
    const opd_ints none = opd_ints_of(NULL, 0);
    *sum = 0;
    if (counts->backend != OPD_CPU || counts->dtype != OPD_INT64 || counts->ndim != 1 || counts->numel == 0) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s must be a one-dimensional int64 tensor on cpu and must not be empty",
                       name);
        return none;
    }
    counts = opd_contiguous(counts);
    const int64_t *numbers = counts ? opd_data_i64(counts) : NULL;
    for (int64_t i = 0; numbers && i < counts->numel; i++) {
        if (numbers[i] < 1 || (i > 0 && numbers[i] > numbers[i - 1])) {
            (void)opd_fail(OPD_ERROR_ARGUMENT, "%s must be at least 1 and must not increase, but element %lld is %lld",
                           name, (long long)i, (long long)numbers[i]);
            return none;
        }
        *sum = opdi_size_plus(*sum, numbers[i]);
    }
    return numbers ? opd_ints_of(numbers, counts->numel) : none;
}
/* Runs lstm.data and similar operators over packed sequences; batch_sizes has the number of examples of each step. */
static int opdi_recurrent_data(opd_call *call, opdi_rnn_kind cell) {
    opd_tensor *input = opd_arg_tensor(call, 0), *ends[2] = {NULL, NULL};
    int64_t sum;
    const opd_ints sizes = opdi_shrinking_counts(opd_arg_tensor(call, 1), "batch_sizes", &sum);
    if (sizes.n == 0) { return -1; }
    if (input->ndim != 2 || input->dims[0] != sum) {
        return opd_fail(OPD_ERROR_SHAPE, "data must have 2 dimensions and %lld rows, the sum of batch_sizes",
                        (long long)sum);
    }
    return opdi_recurrent_return(call, opdi_recurrent_layers(call, cell, input, sizes, 2, ends), ends);
}
/* Packs sequences [steps, examples, ...], sorted from the longest to the shortest: first the first steps of all
   examples, then the second steps, and so on.  Result 1 is the number of examples in each step.  Lengths and counts are
   on the CPU, even if input is not. */
static int opdi_pack_padded_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    int64_t sum, place = 0;
    const opd_ints lengths = opdi_shrinking_counts(opd_arg_tensor(call, 1), "lengths", &sum);
    if (lengths.n == 0) { return -1; }
    if (input->ndim < 2) {
        return opd_fail(OPD_ERROR_SHAPE, "input must have 2 dimensions or more, but has %d", input->ndim);
    }
    if (opd_arg_bool(call, 2) && !(input = opd_transpose(input, 0, 1))) { return -1; }
    const int64_t steps = lengths.data[0];
    if (lengths.n != input->dims[1]) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected `len(lengths)` to be equal to batch_size, but got %lld (batch_size="
                        "%lld)", (long long)lengths.n, (long long)input->dims[1]);
    }
    if (steps > input->dims[0]) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected lengths of at most %lld, the steps of input, but got %lld",
                        (long long)input->dims[0], (long long)steps);
    }
    opd_tensor *rows = opd_tensor_new(opd_ints_of(&sum, 1), OPD_INT64),
        *sizes = opd_tensor_new(opd_ints_of(&steps, 1), OPD_INT64);
    int64_t *row = rows ? opd_data_i64(rows) : NULL, *size = sizes ? opd_data_i64(sizes) : NULL;
    if (!row || !size) { return -1; }
    for (int64_t step = 0, examples = lengths.n; step < steps; step++) {
        while (lengths.data[examples - 1] <= step) { examples--; }
        for (int64_t k = 0; k < examples; k++) { row[place++] = step * lengths.n + k; }
        size[step] = examples;
    }
    rows = opd_to_device(rows, opd_tensor_device(input), OPD_INT64);
    return opd_return_tensor(call, opd_index_select(opd_flatten(input, 0, 1), 0, rows)) ||
        opd_return_tensor(call, sizes) ? -1 : 0;
}
/* Unpacks packed sequences to [steps, examples, ...], and fills the steps after the end of each example with
   padding_value.  Result 1 has the lengths. */
static int opdi_pad_packed_kernel(opd_call *call) {
    opd_tensor *data = opd_arg_tensor(call, 0);
    const int64_t total = opd_arg_int(call, 4);
    int64_t sum, place = 0, sizes[OPD_MAX_DIMS + 1];
    const opd_ints counts = opdi_shrinking_counts(opd_arg_tensor(call, 1), "batch_sizes", &sum);
    if (counts.n == 0) { return -1; }
    if (data->ndim < 1 || data->ndim >= OPD_MAX_DIMS || data->dims[0] != sum) {
        return opd_fail(OPD_ERROR_SHAPE, "data must have %lld rows, the sum of batch_sizes", (long long)sum);
    }
    if (total > 0 && total < counts.n) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Expected total_length to be at least the length of the longest sequence "
                        "in input, but got total_length=%lld and max sequence length being %lld", (long long)total,
                        (long long)counts.n);
    }
    const int64_t steps = OPDI_MAX(total, counts.n), examples = counts.data[0];
    sizes[0] = steps;
    sizes[1] = examples;
    for (int i = 1; i < data->ndim; i++) { sizes[i + 1] = data->dims[i]; }
    opd_tensor *rows = opd_tensor_new(opd_ints_of(sizes, 2), OPD_INT64),
        *lengths = opd_tensor_new(opd_ints_of(&examples, 1), OPD_INT64);
    int64_t *row = rows ? opd_data_i64(rows) : NULL, *length = lengths ? opd_data_i64(lengths) : NULL;
    if (!row || !length) { return -1; }
    for (int64_t step = 0; step < steps; step++) {
        for (int64_t k = 0; k < examples; k++) {
            const bool there = step < counts.n && k < counts.data[step];
            row[step * examples + k] = there ? place++ : sum;
            if (there) { length[k] = step + 1; }
        }
    }
    const int64_t ndim = data->ndim;
    int64_t pad[2 * OPD_MAX_DIMS] = {0};
    pad[2 * ndim - 1] = 1;
    data = opd_constant_pad_nd_full(data, opd_ints_of(pad, 2 * ndim), opd_arg_value(call, 3));
    rows = opd_to_device(opd_flatten(rows, 0, 1), opd_tensor_device(opd_arg_tensor(call, 0)), OPD_INT64);
    data = opd_index_select(data, 0, rows);
    data = opd_view(data, opd_ints_of(sizes, ndim + 1));
    return opd_return_tensor(call, opd_arg_bool(call, 2) ? opd_transpose(data, 0, 1) : data) ||
        opd_return_tensor(call, lengths) ? -1 : 0;
}
/* Computes the derivative of packing: moves each row back to its original place. */
static int opdi_pack_padded_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0);
    const opd_ints input = opd_arg_ints(call, 1);
    const bool first = opd_arg_bool(call, 3);
    int64_t sum;
    const opd_ints counts = opdi_shrinking_counts(opd_arg_tensor(call, 2), "batch_sizes", &sum);
    if (counts.n == 0) { return -1; }
    if (input.n < 2 || input.n != grad->ndim + 1 || grad->dims[0] != sum || input.data[first ? 1 : 0] < counts.n ||
        input.data[first ? 0 : 1] < counts.data[0]) {
        return opd_fail(OPD_ERROR_SHAPE, "grad must have %lld rows, the sum of batch_sizes, and input_size %d "
                        "elements, at least %lld steps and %lld examples", (long long)sum, grad->ndim + 1,
                        (long long)counts.n, (long long)counts.data[0]);
    }
    opd_tensor *padded[2];
    if (opd__pad_packed_sequence(padded, grad, opd_arg_tensor(call, 2), first, opd_value_int(0),
                                input.data[first ? 1 : 0])) { return -1; }
    const int64_t lack = input.data[first ? 0 : 1] - counts.data[0];
    int64_t pad[2 * OPD_MAX_DIMS] = {0};
    if (lack == 0) { return opd_return_tensor(call, padded[0]); }
    pad[2 * input.n - (first ? 1 : 3)] = lack;
    return opd_return_tensor(call, opd_constant_pad_nd(padded[0], opd_ints_of(pad, 2 * input.n)));
}
/* Checks the arguments of a cell: hidden state number i, `state`, must fit the input and the weights w_hh.  Returns 0,
   or -1 and sets an error. */
static int opdi_cell_check(const opd_tensor *input, const opd_tensor *state, const opd_tensor *w_hh, int i) {
    if (input->ndim != 2 || state->ndim != 2 || w_hh->ndim != 2) {
        return opd_fail(OPD_ERROR_SHAPE, "input, hidden states and weights must have 2 dimensions");
    }
    if (input->dims[0] != state->dims[0]) {
        return opd_fail(OPD_ERROR_SHAPE, "Input batch size %lld doesn't match hidden%d batch size %lld",
                        (long long)input->dims[0], i, (long long)state->dims[0]);
    }
    if (state->dims[1] != w_hh->dims[1]) {
        return opd_fail(OPD_ERROR_SHAPE, "hidden%d has inconsistent hidden_size: got %lld, expected %lld", i,
                        (long long)state->dims[1], (long long)w_hh->dims[1]);
    }
    return 0;
}
/* Runs one step of a cell.  The results are the new state (two for lstm). */
static int opdi_recurrent_cell(opd_call *call, opdi_rnn_kind cell) {
    const bool lstm = cell == OPDI_RNN_LSTM;
    const opd_tensors states = lstm ? opd_arg_tensors(call, 1) : opd_tensors_of(NULL, 0);
    opd_tensor *input = opd_arg_tensor(call, 0);
    opdi_recurrent layer;
    if (opd_arg_tensor(call, 2) && opd_arg_tensor(call, 3) &&
        (opdi_is_complex(opd_arg_tensor(call, 2)) || opdi_is_complex(opd_arg_tensor(call, 3))) &&
        opdi_same_dtype(opd_arg_tensor(call, 2), opd_arg_tensor(call, 3))) { return -1; }
    if (lstm && states.n != 2) { return opd_fail(OPD_ERROR_ARGUMENT, "lstm_cell expects two hidden states"); }
    layer.cell = cell;
    layer.h = lstm ? states.data[0] : opd_arg_tensor(call, 1);
    layer.c = lstm ? states.data[1] : NULL;
    layer.w_ih = opd_arg_tensor(call, 2);
    layer.w_hh = opd_arg_tensor(call, 3);
    layer.b_ih = opd_arg_tensor(call, 4);
    layer.b_hh = opd_arg_tensor(call, 5);
    layer.w_hr = NULL;
    if (input->ndim == 2 && layer.w_ih->ndim == 2 && input->dims[1] != layer.w_ih->dims[1]) {
        return opd_fail(OPD_ERROR_SHAPE, "input has inconsistent input_size: got %lld expected %lld",
                        (long long)input->dims[1], (long long)layer.w_ih->dims[1]);
    }
    if (opdi_cell_check(input, layer.h, layer.w_hh, 0) || (lstm && opdi_cell_check(input, layer.c, layer.w_hh, 1))) {
        return -1;
    }
    opd_tensor *gates = opd_linear(input, layer.w_ih, layer.b_ih);
    if (opdi_recurrent_check(&layer, gates)) { return -1; }
    opdi_recurrent_step(&layer, gates);
    if (!opd_ok() || opd_return_tensor(call, layer.h)) { return -1; }
    return lstm ? opd_return_tensor(call, layer.c) : 0;
}
static int opdi_lstm_input_kernel(opd_call *call) { return opdi_recurrent_input(call, OPDI_RNN_LSTM); }
static int opdi_gru_input_kernel(opd_call *call) { return opdi_recurrent_input(call, OPDI_RNN_GRU); }
static int opdi_rnn_tanh_input_kernel(opd_call *call) { return opdi_recurrent_input(call, OPDI_RNN_TANH); }
static int opdi_rnn_relu_input_kernel(opd_call *call) { return opdi_recurrent_input(call, OPDI_RNN_RELU); }
static int opdi_lstm_data_kernel(opd_call *call) { return opdi_recurrent_data(call, OPDI_RNN_LSTM); }
static int opdi_lstm_cell_kernel(opd_call *call) { return opdi_recurrent_cell(call, OPDI_RNN_LSTM); }
static int opdi_gru_data_kernel(opd_call *call) { return opdi_recurrent_data(call, OPDI_RNN_GRU); }
static int opdi_gru_cell_kernel(opd_call *call) { return opdi_recurrent_cell(call, OPDI_RNN_GRU); }
static int opdi_rnn_tanh_data_kernel(opd_call *call) { return opdi_recurrent_data(call, OPDI_RNN_TANH); }
static int opdi_rnn_tanh_cell_kernel(opd_call *call) { return opdi_recurrent_cell(call, OPDI_RNN_TANH); }
static int opdi_rnn_relu_data_kernel(opd_call *call) { return opdi_recurrent_data(call, OPDI_RNN_RELU); }
static int opdi_rnn_relu_cell_kernel(opd_call *call) { return opdi_recurrent_cell(call, OPDI_RNN_RELU); }
/* opd_lstm: long short-term memory over sequences: the outputs, and both final states */
OPDI_OP(lstm_input) {
    op->schema = "lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float "
        "dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)";
    op->composite = opdi_lstm_input_kernel;
    op->vmap = OPD_BATCH_DECOMPOSE; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "[3,2,2], {[1,2,2],[1,2,2]}, {[8,2],[8,2],[8],[8]}, True, 1, 0.0, False, False, False";
}
/* opd_gru: gated recurrent units over sequences: outputs, and the final state */
OPDI_OP(gru_input) {
    op->schema = "gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float "
        "dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)";
    op->composite = opdi_gru_input_kernel;
    op->vmap = OPD_BATCH_DECOMPOSE; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "[2,3,2], [1,2,2], {[6,2],[6,2],[6],[6]}, True, 1, 0.0, False, False, True";
}
/* opd_rnn_tanh: h = tanh(w_ih x + w_hh h) over sequences: outputs, and the final state */
OPDI_OP(rnn_tanh_input) {
    op->schema = "rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float "
        "dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)";
    op->composite = opdi_rnn_tanh_input_kernel;
    op->vmap = OPD_BATCH_DECOMPOSE; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "[2,3,2], [1,2,2], {[2,2],[2,2],[2],[2]}, True, 1, 0.0, False, False, True";
}
/* opd_rnn_relu: h = relu(w_ih x + w_hh h) over sequences: outputs, and the final state */
OPDI_OP(rnn_relu_input) {
    op->schema = "rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float "
        "dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)";
    op->composite = opdi_rnn_relu_input_kernel;
    op->vmap = OPD_BATCH_DECOMPOSE; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "[2,3,2], [1,2,2], {[2,2],[2,2],[2],[2]}, True, 1, 0.0, False, False, True";
}
/* opd_lstm_data: long short-term memory over packed sequences; batch_sizes: the number of examples of each step */
OPDI_OP(lstm_data) {
    op->schema = "lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, int "
        "num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor, Tensor)";
    op->composite = opdi_lstm_data_kernel;
    op->vmap = OPD_BATCH_DECOMPOSE; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "";
}
/* opd__pack_padded_sequence: packs [steps, examples, ...] step by step, without padding; counts examples per step */
OPDI_OP(_pack_padded_sequence) {
    op->schema = "_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)";
    op->composite = opdi_pack_padded_kernel;
    op->cases = "";
}
/* opd__pack_padded_sequence_backward: the gradient of _pack_padded_sequence's input */
OPDI_OP(_pack_padded_sequence_backward) {
    op->schema = "_pack_padded_sequence_backward(Tensor grad, SymInt[] input_size, Tensor batch_sizes, bool "
        "batch_first) -> Tensor";
    op->composite = opdi_pack_padded_backward_kernel;
    op->cases = "";
}
/* opd__pad_packed_sequence: unpacks sequences, padded with padding_value (to total_length if > 0), and their lengths */
OPDI_OP(_pad_packed_sequence) {
    op->schema = "_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, int "
        "total_length) -> (Tensor, Tensor)";
    op->composite = opdi_pad_packed_kernel;
    op->cases = "";
}
/* Checks the tensors of pad_sequence: all have the same number of dims and the same sizes, except for the first dim.
   Sets *longest to the longest first dim.  Returns 0, or -1 and sets an error. */
static int opdi_pad_sequence_checked(opd_tensors list, int64_t *longest) {
    const int ndim = list.n ? list.data[0]->ndim : 1;
    *longest = 0;
    if (!list.n) { return opd_fail(OPD_ERROR_ARGUMENT, "sequences must not be empty"); }
    for (int64_t k = 0; k < list.n; k++) {
        const opd_tensor *const sequence = list.data[k];
        bool fits = ndim > 0 && ndim < OPD_MAX_DIMS && sequence->ndim == ndim;
        for (int dim = 1; fits && dim < ndim; dim++) { fits = opd_size(sequence, dim) == opd_size(list.data[0], dim); }
        if (!fits) {
            char text[256];
            return opd_fail(OPD_ERROR_SHAPE, "sequences must have one dimension or more, and the same sizes but for "
                            "the first, but sequences[%lld] has sizes %s", (long long)k,
                            opdi_shape_text(sequence, text));
        }
        *longest = OPDI_MAX(*longest, opd_size(sequence, 0));
    }
    return 0;
}
static int opdi_pad_sequence_kernel(opd_call *call) {
    const opd_tensors list = opd_arg_tensors(call, 0);
    const char *const side = opd_arg_str(call, 3);
    const bool left = strcmp(side, "left") == 0;
    int64_t longest;
    opd_tensor *all = NULL;
    if (!left && strcmp(side, "right") != 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "padding_side must be 'left' or 'right', but is '%.100s'", side);
    }
    if (opdi_pad_sequence_checked(list, &longest)) { return -1; }
    const int ndim = list.data[0]->ndim;
    opd_tensor **const padded = opdi_list_alloc(list.n);
    for (int64_t k = 0; padded && k < list.n; k++) {
        int64_t pads[2 * OPD_MAX_DIMS] = {0};
        pads[2 * ndim - (left ? 2 : 1)] = longest - opd_size(list.data[k], 0);
        padded[k] = opd_to_dtype(list.data[k], (opd_scalar_type)list.data[0]->dtype);
        padded[k] = padded[k] ? opd_constant_pad_nd_full(padded[k], opd_ints_of(pads, 2 * ndim), opd_arg_value(call, 2))
            : NULL;
        if (!padded[k]) { return -1; }
    }
    if (padded) { all = opd_stack(opd_tensors_of(padded, list.n), opd_arg_bool(call, 1) ? 0 : 1); }
    return all ? opd_return_tensor(call, all) : -1;
}
/* opd_pad_sequence: sequences side by side, padded with padding_value to the longest; padding_side: right or left */
OPDI_OP(pad_sequence) {
    op->schema = "pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0.0, str "
        "padding_side=\"right\") -> Tensor";
    op->composite = opdi_pad_sequence_kernel;
    op->cases = "{[3,2], [1,2]}; {[2], [4], [1]}, True, 0.5; {[2], [3]}, padding_value=-1, padding_side='left'";
}
/* opd_lstm_cell: one step of long short-term memory: the new states */
OPDI_OP(lstm_cell) {
    op->schema = "lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) "
        "-> (Tensor, Tensor)";
    op->composite = opdi_lstm_cell_kernel;
    op->autocast = OPD_AUTOCAST_LOWER_NOT_CPU;
    op->cases = "[3,4], {[3,2],[3,2]}, [8,4], [8,2]; [3,4], {[3,2],[3,2]}, [8,4], [8,2], [8], [8]";
}
/* opd_gru_data: gated recurrent units over packed sequences; batch_sizes: the number of examples of each step */
OPDI_OP(gru_data) {
    op->schema = "gru.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int "
        "num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)";
    op->composite = opdi_gru_data_kernel;
    op->vmap = OPD_BATCH_DECOMPOSE; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "";
}
/* opd_gru_cell: one step of gated recurrent units: the new state */
OPDI_OP(gru_cell) {
    op->schema = "gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "
        "b_hh=None) -> Tensor";
    op->composite = opdi_gru_cell_kernel;
    op->autocast = OPD_AUTOCAST_LOWER_NOT_CPU;
    op->cases = "[3,4], [3,2], [6,4], [6,2]; [3,4], [3,2], [6,4], [6,2], [6], [6]";
}
/* opd_rnn_tanh_data: h = tanh(w_ih x + w_hh h) over packed sequences; batch_sizes: number of examples of each step */
OPDI_OP(rnn_tanh_data) {
    op->schema = "rnn_tanh.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int "
        "num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)";
    op->composite = opdi_rnn_tanh_data_kernel;
    op->vmap = OPD_BATCH_DECOMPOSE; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "";
}
/* opd_rnn_tanh_cell: one step of rnn_tanh: the new state */
OPDI_OP(rnn_tanh_cell) {
    op->schema = "rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "
        "b_hh=None) -> Tensor";
    op->composite = opdi_rnn_tanh_cell_kernel;
    op->autocast = OPD_AUTOCAST_LOWER_NOT_CPU;
    op->cases = "[3,4], [3,2], [2,4], [2,2]; [3,4], [3,2], [2,4], [2,2], [2], [2]";
}
/* opd_rnn_relu_data: h = relu(w_ih x + w_hh h) over packed sequences; batch_sizes: number of examples of each step */
OPDI_OP(rnn_relu_data) {
    op->schema = "rnn_relu.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int "
        "num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)";
    op->composite = opdi_rnn_relu_data_kernel;
    op->vmap = OPD_BATCH_DECOMPOSE; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "";
}
/* opd_rnn_relu_cell: one step of rnn_relu: the new state */
OPDI_OP(rnn_relu_cell) {
    op->schema = "rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "
        "b_hh=None) -> Tensor";
    op->composite = opdi_rnn_relu_cell_kernel;
    op->autocast = OPD_AUTOCAST_LOWER_NOT_CPU;
    op->cases = "[3,4], [3,2], [2,4], [2,2]; [3,4], [3,2], [2,4], [2,2], [2], [2]";
}
OPDI_COLD_END
