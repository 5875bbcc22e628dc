/* The angles of the rotation of examples/llama.c: how the settings of a GGUF file lower its frequencies, and tables of
   the cosines and sines of all positions.  folder.h reads the settings of folders.  llama.c includes this file behind
   its own types. */
/* Reads how much the frequencies of the rotation are lowered: a text `rope.scaling.type`, and its settings.  which: as
   in read_angles.  As in llama.cpp, "none" holds in layers without a window only, and layers of gemma3 with a window
   have the magnitude alone. */
static stretch stretch_of(const model *m, int64_t pairs, int which) {
    const bool own = m->family == GEMMA3 && which;
    const double base = real(m, "rope.freq_base", 1, 1e12, 10000);
    stretch s = {which ? real(m, "rope.freq_base_swa", 1, 1e12, own ? 10000 : base) : base, 1, 1, 0, 0, false, NULL};
    char name[96];
    (void)snprintf(name, sizeof name, "%s.rope.scaling.type", m->arch);
    const char *type = opd_tensor_file_metadata(m->file, name);
    const double original = real(m, "rope.scaling.original_context_length", 1, 1e9, (double)m->trained_context);
    if (type && strcmp(type, "linear") != 0 && strcmp(type, "yarn") != 0 && strcmp(type, "none") != 0 &&
        strcmp(type, "longrope") != 0) {
        (void)bad(m, "is not none, linear, yarn or longrope", name);
    }
    /* no type: linear; 0: no factor; scale_linear: old files */
    double factor = real(m, "rope.scaling.factor", 0, 1e6, real(m, "rope.scale_linear", 0, 1e6, 0));
    if (factor > 0 && factor < 1e-3) { (void)bad(m, "has a factor below 0.001", "rope.scaling"); }
    if (!(factor > 0) || (type && strcmp(type, "none") == 0 && !which)) { factor = 1; }
    s.magnitude = real(m, "rope.scaling.attn_factor", 1e-3, 1e3, 1);
    if (own) {
        if (type && strcmp(type, "yarn") == 0) { s.magnitude /= 1 + 0.1 * log(fmin(1, factor)); }
        return s;
    }
    s.factor = factor;
    if (type && strcmp(type, "yarn") == 0 && factor != 1) {
        const double fast = real(m, "rope.scaling.yarn_beta_fast", 1e-3, 1e6, 32),
                     slow = real(m, "rope.scaling.yarn_beta_slow", 1e-3, 1e6, 1);
        const double turns = 2 * 3.14159265358979323846, ln = 2 * log(s.base);
        s.yarn = true;
        s.low = fmax(0, floor(2 * (double)pairs * log(original / (fast * turns)) / ln));
        s.high = fmin(2 * (double)pairs - 1, ceil(2 * (double)pairs * log(original / (slow * turns)) / ln));
        s.high = fmax(s.low + 0.001, s.high);
        s.magnitude *= 1 + 0.1 * log(fmax(1, factor));
    }
    opd_tensor *factors = weight(m, "rope_freqs.weight", 0, 0, pairs, false);
    if (!factors && opd_ok()) {
        factors = weight(m, (double)m->context > original ? "rope_factors_long.weight" : "rope_factors_short.weight",
                         0, 0, pairs, false);
    }
    OPD_SCOPED;
    const float *data = factors ? opd_data_f32(back(factors)) : NULL;
    s.divide = data ? (double *)malloc((size_t)(pairs ? pairs : 1) * sizeof *s.divide) : NULL;
    if (data && !s.divide) { (void)opd_fail(OPD_ERROR_MEMORY, "%s: no memory for its rotation", m->path); }
    for (int64_t j = 0; s.divide && j < pairs; j++) { s.divide[j] = data[j]; }
    opd_release(factors);
    return s;
}
/* Makes the tables of the angles of all positions.  which: 1 for layers with a window. */
static int read_angles(model *m, int which) {
    const double share = m->file ? 1 : folder_rope_share(m->folder, which);
    if (!opd_ok()) { return -1; }
    const int64_t size = integer(m, "rope.dimension_count", 0, m->key_size, (int64_t)((double)m->key_size * share));
    const int64_t pairs = size / 2;
    if (opd_ok() && which && integer(m, "rope.dimension_count_swa", 0, m->key_size, size) != size) {
        (void)bad(m, "is not rope.dimension_count, which this program does not know", "rope.dimension_count_swa");
    }
    stretch s = {1, 1, 1, 0, 0, false, NULL};
    if (opd_ok()) { s = m->folder ? folder_stretch(m->folder, which, pairs, m->context) : stretch_of(m, pairs, which); }
    if (opd_ok() && (size % 2 || m->key_size < 2)) { (void)bad(m, "is odd", "rope.dimension_count"); }
    OPD_SCOPED;
    opd_tensor *cosines = opd_tensor_new(OPD_INTS(m->context, pairs), OPD_FLOAT32), *sines = opd_empty_like(cosines);
    float *co = opd_ok() ? opd_data_f32(cosines) : NULL, *si = opd_ok() ? opd_data_f32(sines) : NULL;
    for (int64_t j = 0; co && si && j < pairs; j++) {
        const double plain = pow(s.base, -2.0 * (double)j / (double)size) / (s.divide ? s.divide[j] : 1);
        const double ramp = !s.yarn ? 0 : 1 - fmin(1, fmax(0, ((double)j - s.low) / (s.high - s.low)));
        const double frequency = plain / s.factor * (1 - ramp) + plain * ramp;
        for (int64_t i = 0; i < m->context; i++) {
            co[i * pairs + j] = (float)(cos((double)i * frequency) * s.magnitude);
            si[i * pairs + j] = (float)(sin((double)i * frequency) * s.magnitude);
        }
    }
    free(s.divide);
    if (opd_ok()) {
        m->cosines[which] = opd_keep(there(cosines));
        m->sines[which] = opd_keep(there(sines));
    }
    return opd_ok() ? 0 : -1;
}
