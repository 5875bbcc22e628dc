/* Compares examples/llama.c with the results of llama.cpp and of transformers (the option --check).  llama.c includes
   this file behind its own functions. */

static const char *verdict(bool good) { return good ? "ok" : "WRONG"; }

/* Compares logits and greedy tokens with FILE.npz.  allowed: how far products with rounded activations may be off. */
static bool check_logits(model *m, const opd_tensor_file *file, bool exact, double allowed, bool figures) {
    opd_tensor *ids = opd_tensor_file_get(file, "ids"), *want = opd_tensor_file_get(file, "logits_exact");
    opd_tensor *greedy = opd_tensor_file_get(file, "greedy_exact");
    settings s;
    writing w;
    tok_ids *list = &w.ids;
    memset(&w, 0, sizeof w);
    (void)opd_exact_blocks_set(exact);
    opd_tensor *got = ids ? back(forward(m, ids, true, false)) : NULL, *off = got ? opd_sub(got, want) : NULL;
    if (!off || !greedy || opd_numel(want) == 0 || opd_numel(greedy) == 0) { return false; }
    const bool gelu = m->family == GPT2 || m->family == GEMMA || m->family == GEMMA2 || m->family == GEMMA3;
    const double most = opd_item_f64(opd_max(opd_abs(off))) / opd_item_f64(opd_max(opd_abs(want)));
    const double spread = sqrt(opd_item_f64(opd_mean(opd_mul(off, off)))) / opd_item_f64(opd_std(want));
    memset(&s, 0, sizeof s);
    s.tokens = opd_size(greedy, 0);
    s.penalty = 1;
    const int64_t n = opd_size(ids, 0);
    for (int64_t i = 0; i < n; i++) { (void)tok_push(list, (int32_t)opd_data_i64(ids)[i]); }
    bool same = generate(m, &w, 1, false, &s, NULL) == 0 && list->count == n + s.tokens;
    for (int64_t i = 0; same && i < s.tokens; i++) { same = list->at[n + i] == opd_data_i64(greedy)[i]; }
    free(list->at); free(w.text.at);
    const bool near = exact ? most < (gelu && !m->folder ? 1e-3 : 1e-5) : spread < allowed;
    if (figures || !near || !same) {
        (void)fprintf(stderr, "%s: %s: largest difference %.2g of the largest logit, spread %.2g; greedy tokens %s\n",
                      m->path, exact ? "exact" : "rounded", most, spread, verdict(same));
    }
    return near && same && opd_ok();
}
/* Compares the gradients and losses of adapters with FILE.lora.npz. */
static bool check_training(model *m, const opd_tensor_file *file, opd_tensor *ids) {
    opd_tensor *list[64], *losses = opd_tensor_file_get(file, "losses");
    bool good = losses != NULL;
    m->adapter_scale = 2;
    for (int64_t i = 0; i < m->blocks * LINEARS && opd_ok(); i++) {
        linear *l = linear_at(&m->block[i / LINEARS], (int)(i % LINEARS));
        char names[2][64];
        for (int factor = 0; factor < 2; factor++) {
            (void)snprintf(names[factor], sizeof names[factor], "blk.%d.%s.lora_%c", l->block, l->name ? l->name : "",
                           "ab"[factor]);
        }
        if (!l->weight || opd_tensor_file_find(file, names[0]) < 0) { continue; }
        (void)adapter_put(m, l, opd_clone(opd_tensor_file_get(file, names[0])),
                          opd_clone(opd_tensor_file_get(file, names[1])));
    }
    const int count = opd_ok() ? adapters_of(m, list, 64) : 0;
    opd_sgd_options options = opd_sgd_defaults();
    options.lr = 0.05;
    opd_optimizer *sgd = count ? opd_sgd_new(list, count, &options) : NULL;
    for (int step = 0; sgd && step < 4 && opd_ok(); step++) {
        OPD_SCOPED;
        opd_tensor *loss = loss_of(m, ids);
        (void)opd_backward(loss);
        good &= fabs(opd_item_f64(loss) / opd_data_f64(losses)[step] - 1) < 1e-3;
        for (int64_t i = 0; step == 0 && i < m->blocks * LINEARS && opd_ok(); i++) {
            const linear *l = linear_at(&m->block[i / LINEARS], (int)(i % LINEARS));
            for (int factor = 0; factor < 2 && l->a; factor++) {
                char name[64];
                (void)snprintf(name, sizeof name, "grad.blk.%d.%s.lora_%c", l->block, l->name, "ab"[factor]);
                opd_tensor *want = opd_tensor_file_get(file, name), *got = back(opd_tensor_grad(factor ? l->b : l->a));
                if (!want || !got) { good = false; continue; }
                good &=
                    opd_item_f64(opd_max(opd_abs(opd_sub(got, want)))) < 1e-4 * opd_item_f64(opd_max(opd_abs(want)));
            }
        }
        (void)opd_optimizer_step(sgd);
        (void)opd_optimizer_zero_grad(sgd);
    }
    good &= count > 0 && opd_ok();
    opd_optimizer_free(sgd);
    return good;
}
/* Compares a model, or a file with only a vocabulary, with the files FILE.json, FILE.npz and FILE.lora.npz.  For a
   folder, the files are golden.json and golden.npz in it. */
static int check(const char *path, bool figures) {
    char beside_it[4][1024];
    static const char *const ends[] = {".json", ".npz", ".lora.npz"};
    const int stem = (int)(strlen(path) - (ends_with(path, ".gguf") ? 5 : 0));
    const bool whole = is_folder(path);
    for (int i = 0; i < 3; i++) {
        (void)snprintf(beside_it[i], sizeof *beside_it, "%.*s%s%s", stem, path, whole ? "/golden" : "", ends[i]);
    }
    FILE *logits = fopen(beside_it[1], "rb"), *adapters = fopen(beside_it[2], "rb");
    if (logits) { (void)fclose(logits); }
    if (adapters) { (void)fclose(adapters); }
    OPD_SCOPED;
    opd_json *json = opd_json_load(beside_it[0]);
    if (!json) { return -1; }
    model m;
    bool good = false;
    if (!logits) {
        opd_tensor_file *file = opd_tensor_file_open(path);
        tok_vocabulary *v = file ? tok_open(file) : NULL;
        good = v && tok_wrong(v, json) == 0;
        printf("%s: tokens %s\n", path, verdict(good));
        tok_free(v);
        opd_tensor_file_close(file);
    } else if (model_open(&m, path, whole ? 32 : 0) != 0 || cache_open(&m, 1, m.context, OPD_FLOAT32) != 0) {
        model_close(&m);
    }
    else {
        const double spread = opd_json_double(json, opd_json_get(json, 0, "rms_difference_over_std"), 0);
        opd_tensor_file *file = opd_tensor_file_open(beside_it[1]),
                        *lora = adapters ? opd_tensor_file_open(beside_it[2]) : NULL;
        bool tokens = tok_wrong(m.vocabulary, json) == 0, exact = false, rounded = false, trained = true;
        OPD_NO_GRAD {
            exact = check_logits(&m, file, true, 0, figures);
            rounded = check_logits(&m, file, false, fmax(0.03, 1.5 * spread), figures);
        }
        (void)opd_exact_blocks_set(true);
        if (lora) { trained = check_training(&m, lora, opd_tensor_file_get(file, "ids")); }
        printf("%s: tokens %s, exact %s, rounded %s%s%s\n", path, verdict(tokens), verdict(exact), verdict(rounded),
               lora ? ", training " : "", lora ? verdict(trained) : "");
        good = tokens && exact && rounded && trained;
        opd_tensor_file_close(file);
        opd_tensor_file_close(lora);
        model_close(&m);
    }
    opd_json_free(json);
    return good && opd_ok() ? 0 : -1;
}
