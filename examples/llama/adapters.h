/* Adapters (LoRA) of examples/llama.c: putting them on layers, and their files, as PEFT or llama.cpp writes them.
   llama.c includes this file behind its own types. */
enum { LINEARS = 8 };
static linear *linear_at(block *b, int i) {
    linear *list[LINEARS] = {&b->wq, &b->wk, &b->wv, &b->wqkv, &b->wo, &b->gate, &b->up, &b->down};
    return list[i];
}
/* Is `name` in a list like "attn_q,attn_v"? */
static bool is_target(const char *list, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += length) {
        if ((at == list || at[-1] == ',') && (at[length] == 0 || at[length] == ',')) { return true; }
    }
    return false;
}
/* Puts an adapter of A [rank, in] and B [out, rank] on a linear layer.  Keeps both. */
static int adapter_put(const model *m, linear *l, opd_tensor *a, opd_tensor *b) {
    if (!a || !b) { return -1; }
    const int64_t rank = opd_size(a, 0);
    if (opd_ndim(a) != 2 || opd_ndim(b) != 2 || opd_dtype(a) != OPD_FLOAT32 || opd_dtype(b) != OPD_FLOAT32 ||
        opd_size(a, 1) != opd_size(l->weight, 1) || opd_size(b, 0) != opd_size(l->weight, 0) ||
        opd_size(b, 1) != rank) {
        return opd_fail(OPD_ERROR_ARGUMENT, "the adapter of blk.%d.%s does not fit the weight [%lld, %lld] of %s",
                        l->block, l->name, (long long)opd_size(l->weight, 0), (long long)opd_size(l->weight, 1),
                        m->path);
    }
    if (rank < 1) { return opd_fail(OPD_ERROR_ARGUMENT, "the adapter of blk.%d.%s has rank 0", l->block, l->name); }
    opd_release(l->a); opd_release(l->b);
    l->a = opd_keep(there(a));
    l->b = opd_keep(there(b));
    return 0;
}
/* Puts new adapters on the layers whose names are in `targets`.  B is zero, so the model is as before. */
static int adapters_new(model *m, const char *targets, int64_t rank, double alpha) {
    m->adapter_scale = alpha / (double)rank;
    for (const char *at = targets; ; at++) {               /* each name of the list */
        const size_t length = strcspn(at, ",");
        bool found = false;
        for (int64_t i = 0; i < m->blocks * LINEARS && !found; i++) {
            const linear *l = linear_at(&m->block[i / LINEARS], (int)(i % LINEARS));
            found = l->weight && strlen(l->name) == length && memcmp(l->name, at, length) == 0;
        }
        if (!found) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s has no layers '%.*s' (--targets)", m->path, (int)length, at);
        }
        at += length;
        if (!*at) { break; }
    }
    for (int64_t i = 0; i < m->blocks * LINEARS && opd_ok(); i++) {
        linear *l = linear_at(&m->block[i / LINEARS], (int)(i % LINEARS));
        if (!l->weight || !is_target(targets, l->name)) { continue; }
        OPD_SCOPE {
            const int64_t in = opd_size(l->weight, 1);
            opd_tensor *a = opd_init_uniform_(opd_tensor_new(OPD_INTS(rank, in), OPD_FLOAT32), -1 / sqrt((double)in),
                                              1 / sqrt((double)in));
            (void)adapter_put(m, l, a, opd_zeros(OPD_INTS(opd_size(l->weight, 0), rank), OPD_FLOAT32));
        }
    }
    return opd_ok() ? 0 : -1;
}
/* The names that PEFT gives the layers. */
static int peft_name(const model *m, const linear *l, const char *factor, char *buf, size_t cap) {
    static const char *const names[][3] = {
        {"attn_q", "self_attn.q_proj", ""},
        {"attn_k", "self_attn.k_proj", ""},
        {"attn_v", "self_attn.v_proj", ""},
        {"attn_qkv", "self_attn.qkv_proj", "attn.c_attn"},
        {"attn_output", "self_attn.o_proj", "attn.c_proj"},
        {"ffn_gate", "mlp.gate_proj", ""},
        {"ffn_up", "mlp.up_proj", "mlp.c_fc"},
        {"ffn_down", "mlp.down_proj", "mlp.c_proj"},
    };
    const bool gpt2 = m->family == GPT2;
    const char *name = "";
    for (int i = 0; i < LINEARS; i++) { if (strcmp(names[i][0], l->name) == 0) { name = names[i][gpt2 ? 2 : 1]; } }
    if (m->family == PHI3 && strcmp(l->name, "ffn_up") == 0) { name = "mlp.gate_up_proj"; }
    return snprintf(buf, cap, "base_model.model.%s.%d.%s%s", gpt2 ? "transformer.h" : "model.layers", l->block, name,
                    factor);
}
/* GGUF files of llama pair neighbouring rows of queries and keys, Hugging Face's files rows half a head apart.  Orders
   the rows of B [out, rank]; from_gguf, to_gguf: as in GGUF files, or else as in Hugging Face's. */
static opd_tensor *reorder(const model *m, const linear *l, opd_tensor *b, bool from_gguf, bool to_gguf) {
    const bool q = strcmp(l->name, "attn_q") == 0, k = strcmp(l->name, "attn_k") == 0;
    if (m->family != LLAMA || from_gguf == to_gguf || !(q || k) || !b) { return b; }
    const int64_t heads = opd_size(b, 0) / m->key_size, half = m->key_size / 2, rank = opd_size(b, 1);
    b = opd_view(opd_contiguous(b), to_gguf ? OPD_INTS(heads, 2, half, rank) : OPD_INTS(heads, half, 2, rank));
    return opd_reshape(opd_transpose(b, 1, 2), OPD_INTS(heads * m->key_size, rank));
}
/* Writes the text of a file beside `path`. */
static void beside(const char *path, const char *name, char *buf, size_t cap) {
    const char *slash = strrchr(path, '/');
    (void)snprintf(buf, cap, "%.*s%s", slash ? (int)(slash - path + 1) : 0, path, name);
}
static int save_config(const model *m, const char *path, int64_t rank, double alpha) {
    char name[1024], part[1032];
    beside(path, "adapter_config.json", name, sizeof name);
    (void)snprintf(part, sizeof part, "%s.part", name);    /* the file gets its name when it is complete */
    FILE *f = fopen(part, "w");
    if (!f) { return opd_fail(OPD_ERROR_FILE, "%s cannot be written: %s", part, strerror(errno)); }
    (void)fprintf(
        f,
        "{\"peft_type\": \"LORA\", \"task_type\": \"CAUSAL_LM\", \"r\": %lld, \"lora_alpha\": %.17g, "
        "\"bias\": \"none\", \"base_model_name_or_path\": null, \"fan_in_fan_out\": %s, \"target_modules\": [",
        (long long)rank, alpha, m->family == GPT2 ? "true" : "false");
    const char *comma = "";
    for (int i = 0; i < LINEARS; i++) {
        const linear *l = linear_at(&m->block[0], i);
        char peft[160];
        if (!l->a) { continue; }
        (void)peft_name(m, l, "", peft, sizeof peft);
        const char *end = strrchr(peft, '.');
        while (end > peft && end[-1] != '.') { end--; }    /* the last two words, such as self_attn.q_proj */
        (void)fprintf(f, "%s\"%s\"", comma, end);
        comma = ", ";
    }
    (void)fprintf(f, "]}\n");
    const bool written = !ferror(f);
    if (fclose(f) == 0 && written && rename(part, name) == 0) { return 0; }
    (void)opd_fail(OPD_ERROR_FILE, "%s cannot be written: %s", name, strerror(errno));
    (void)remove(part);
    return -1;
}
/* Saves the adapters: as safetensors with the names of PEFT, or as GGUF if the name ends with .gguf. */
static int adapters_save(model *m, const char *path, int64_t rank, double alpha) {
    OPD_SCOPED;
    const int64_t most = 2 * m->blocks * LINEARS;
    char (*names)[160] = (char (*)[160])calloc((size_t)most, sizeof *names), text[32];
    const char **list = (const char **)calloc((size_t)most, sizeof *list);
    opd_tensor **tensors = (opd_tensor **)calloc((size_t)most, sizeof *tensors);
    const bool gguf = ends_with(path, ".gguf");
    int64_t n = 0;
    if (!names || !list || !tensors) {
        (void)opd_fail(OPD_ERROR_MEMORY, "no memory for %lld adapters", (long long)most);
    }
    for (int64_t i = 0; i < m->blocks * LINEARS && opd_ok(); i++) {
        const linear *l = linear_at(&m->block[i / LINEARS], (int)(i % LINEARS));
        for (int factor = 0; factor < 2 && l->a; factor++, n++) {
            list[n] = names[n];
            tensors[n] = back(opd_detach(factor ? l->b : l->a));
            if (factor) { tensors[n] = reorder(m, l, tensors[n], !m->folder, gguf); }
            if (gguf) {
                (void)snprintf(names[n], sizeof *names, "blk.%d.%s.weight.lora_%c", l->block, l->name, "ab"[factor]);
                continue;
            }
            (void)peft_name(m, l, factor ? ".lora_B.weight" : ".lora_A.weight", names[n], sizeof *names);
        }
    }
    (void)snprintf(text, sizeof text, "%.17g", alpha);
    const char *const metadata[] = {"format", "pt", "lora_alpha", text, NULL};
    if (opd_ok() && gguf) {
        static const char *const keys[] = {"general.type", "general.architecture", "adapter.type",
                                           "adapter.lora.alpha"};
        const opd_value values[] = {OPD_V("adapter"), OPD_V(m->arch), OPD_V("lora"), OPD_V(alpha)};
        (void)opd_gguf_save(path, list, opd_tensors_of(tensors, n), keys, values, 4);
    } else if (opd_ok()) { (void)opd_safetensors_save(path, list, opd_tensors_of(tensors, n), metadata); }
    if (opd_ok() && !gguf && ends_with(path, "adapter_model.safetensors")) { (void)save_config(m, path, rank, alpha); }
    free(names); free(list); free(tensors);
    return opd_ok() ? 0 : -1;
}
/* Returns a value of adapter_config.json that is true or false, false if it is missing or null.  Sets an error if it is
   anything else. */
static bool peft_true(const opd_json *json, const char *path, const char *key) {
    const int64_t value = opd_json_get(json, 0, key);
    const opd_json_kind kind = opd_json_kind_of(json, value);
    if (kind != OPD_JSON_NONE && kind != OPD_JSON_NULL && kind != OPD_JSON_BOOL) {
        (void)opd_fail(OPD_ERROR_FILE, "%s: %s is neither true nor false", path, key);
    }
    return opd_json_bool(json, value, false);
}
/* Returns what a file adapter_config.json says that makes other results than y = W x + scale B A x, or NULL.  With some
   init_lora_weights, PEFT subtracts the first adapter from W. */
static const char *peft_other(const opd_json *json) {
    static const struct { const char *key, *text; } lists[] = {
        {"alpha_pattern", "alpha_pattern is not empty"}, {"rank_pattern", "rank_pattern is not empty"},
        {"layer_replication", "layer_replication is not empty"},
        {"alora_invocation_tokens", "alora_invocation_tokens is not empty"},
    };
    static const struct { const char *name, *text; } starts[] = {
        {"pissa", "init_lora_weights is pissa"}, {"olora", "init_lora_weights is olora"},
        {"corda", "init_lora_weights is corda"}, {"loftq", "init_lora_weights is loftq"},
        {"lora_ga", "init_lora_weights is lora_ga"},
    };
    const char *init = opd_json_text(json, opd_json_get(json, 0, "init_lora_weights"), "");
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (opd_json_count(json, opd_json_get(json, 0, lists[i].key)) > 0) { return lists[i].text; }
    }
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        size_t n = 0;
        while (starts[i].name[n] && tolower((unsigned char)init[n]) == starts[i].name[n]) { n++; }
        if (!starts[i].name[n]) { return starts[i].text; }
    }
    return NULL;
}
/* Reads the scale of adapters from the file adapter_config.json that PEFT writes beside them. */
static double peft_scale(const char *path, int64_t rank) {
    char name[1024];
    beside(path, "adapter_config.json", name, sizeof name);
    opd_json *json = opd_json_load(name);
    if (!json) { return NAN; }
    const int64_t alpha = opd_json_get(json, 0, "lora_alpha");
    const opd_json_kind kind = opd_json_kind_of(json, alpha);
    const bool number = kind == OPD_JSON_INT || kind == OPD_JSON_FLOAT;
    const double root = peft_true(json, name, "use_rslora") ? sqrt((double)rank) : 1;
    const double scale = number ? opd_json_double(json, alpha, 0) / (double)rank * root : 0;
    const char *type = opd_json_text(json, opd_json_get(json, 0, "peft_type"), "LORA");
    const char *cannot = strcmp(type, "LORA") != 0 ? "peft_type is not LORA"
                       : peft_true(json, name, "use_dora") ? "use_dora is true" : peft_other(json);
    if (cannot) { (void)opd_fail(OPD_ERROR_FILE, "%s: %s, which this program does not know", name, cannot); }
    if (opd_json_int(json, opd_json_get(json, 0, "r"), rank) != rank) {
        (void)opd_fail(OPD_ERROR_FILE, "%s: r is not %lld, the rank of the tensors", name, (long long)rank);
    }
    if (!number || !(scale > 0)) {
        (void)opd_fail(OPD_ERROR_FILE, "%s: lora_alpha is %s", name, alpha < 0 ? "missing" : "no positive number");
    }
    opd_json_free(json);
    return scale;
}
/* Returns the scale of adapters, alpha / rank: alpha is in the metadata of their file, or PEFT's file says it. */
static double scale_of(const opd_tensor_file *file, const char *path, bool gguf, int64_t rank) {
    const char *key = gguf ? "adapter.lora.alpha" : "lora_alpha", *text = NULL;
    double alpha = NAN;
    if (gguf) {
        if (opd_tensor_file_metadata_number(file, key, 0, &alpha) != 0) { return NAN; }
    } else if ((text = opd_tensor_file_metadata(file, key)) != NULL) {
        char *end;
        alpha = strtod(text, &end);
        if (*end || end == text) { alpha = NAN; }
    } else { return peft_scale(path, rank); }
    if (!(alpha > 0 && isfinite(alpha))) {
        (void)opd_fail(OPD_ERROR_FILE, "%s: %s is no positive number", path, key);
    }
    return alpha / (double)rank;
}
/* Loads adapters that adapters_save, PEFT or llama.cpp's converter wrote. */
static int adapters_load(model *m, const char *path) {
    OPD_SCOPED;
    opd_tensor_file *file = opd_tensor_file_open(path);
    const bool gguf = ends_with(path, ".gguf");
    const int64_t all = file ? opd_tensor_file_count(file) : 0;
    bool *const used = (bool *)calloc((size_t)all + 2, sizeof *used);
    int64_t rank = 0, other = 0;                  /* other: the first tensor that belongs to no layer */
    if (!used) { (void)opd_fail(OPD_ERROR_MEMORY, "%s: no memory for its tensors", path); }
    const char *arch = file && gguf ? opd_tensor_file_metadata(file, "general.architecture") : m->arch;
    if (file && (!arch || strcmp(arch, m->arch) != 0)) {
        (void)opd_fail(OPD_ERROR_FILE, "%s is for the architecture %s, but %s is %s", path, arch ? arch : "?", m->path,
                       m->arch);
    }
    for (int64_t i = 0; i < m->blocks * LINEARS && opd_ok(); i++) {
        linear *l = linear_at(&m->block[i / LINEARS], (int)(i % LINEARS));
        char names[2][160];
        if (!l->weight) { continue; }
        for (int factor = 0; factor < 2; factor++) {
            if (gguf) {
                (void)snprintf(names[factor], sizeof names[factor], "blk.%d.%s.weight.lora_%c", l->block, l->name,
                               "ab"[factor]);
            } else {
                (void)peft_name(m, l, factor ? ".lora_B.weight" : ".lora_A.weight", names[factor],
                                sizeof names[factor]);
            }
        }
        const int64_t first = opd_tensor_file_find(file, names[0]), second = opd_tensor_file_find(file, names[1]);
        if (first < 0) { continue; }
        used[first] = used[second < 0 ? all : second] = true;
        opd_tensor *a = opd_tensor_file_get(file, names[0]), *b = opd_tensor_file_get(file, names[1]);
        a = a ? opd_to_dtype(a, OPD_FLOAT32) : NULL;
        b = b ? opd_to_dtype(b, OPD_FLOAT32) : NULL;
        if (a && b && rank && rank != opd_size(a, 0)) {
            (void)opd_fail(OPD_ERROR_FILE, "%s: the adapters have different ranks", path);
        }
        if (a && b && opd_ndim(b) == 2 && opd_size(b, 0) == opd_size(l->weight, 0)) {
            b = reorder(m, l, b, gguf, !m->folder);
        }
        if (adapter_put(m, l, a, b) == 0) { rank = opd_size(a, 0); }
    }
    const char *const only = "adapter.alora.invocation_tokens";
    if (opd_ok() && rank) { m->adapter_scale = scale_of(file, path, gguf, rank); }
    if (opd_ok() && gguf && opd_tensor_file_metadata_type(file, only)) {
        (void)opd_fail(OPD_ERROR_FILE, "%s: %s is there: an adapter for some tokens only, which this program does not "
                       "know", path, only);
    }
    while (opd_ok() && used[other]) { other++; }
    if (opd_ok() && other < all) {
        const char *name = opd_tensor_file_name(file, other);
        (void)opd_fail(OPD_ERROR_FILE, "%s: the tensor '%.200s' is no factor of an adapter of a layer of %s", path,
                       name ? name : "?", m->path);
    } else if (opd_ok() && !rank) { (void)opd_fail(OPD_ERROR_FILE, "%s has no tensors", path); }
    free(used);
    if (opd_ok() && !isfinite(m->adapter_scale)) {
        (void)opd_fail(OPD_ERROR_FILE, "%s: its alpha is too large", path);
    }
    opd_tensor_file_close(file);
    return opd_ok() ? 0 : -1;
}
