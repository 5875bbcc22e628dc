/* SHA-256 of tensors, and audits: a run that is repeated, runs that part in each part of a training, and files that are
   cut, of other runs, or no audits. */
#include <unistd.h>
#if (defined(__unix__) || defined(__APPLE__)) && !defined(__EMSCRIPTEN__)
#include <sys/wait.h>
#define FORKS
#endif
#include "../inside.h"
#include "../check.h"

//-- files -------------------------------------------------------------------------------------------------------------

static char folder[512];
/* Returns the path of a file in a new folder, which `clean` removes. */
static const char *file(const char *name) {
    static char paths[4][600];
    static int k;
    const char *const tmp = getenv("TMPDIR");
    if (!folder[0]) {
        (void)snprintf(folder, sizeof folder, "%s/opd_audit_XXXXXX", tmp && *tmp ? tmp : "/tmp");
        CHECK(mkdtemp(folder) != NULL);
    }
    k = (k + 1) % 4;
    (void)snprintf(paths[k], sizeof paths[k], "%s/%s", folder, name);
    return paths[k];
}
static void clean(void) {
    static const char *const names[] = {"one", "two", "cut"};
    for (int i = 0; i < 3; i++) { (void)remove(file(names[i])); }
    CHECK(rmdir(folder) == 0);
    folder[0] = 0;
}
static void write_file(const char *path, const char *text, size_t length) {
    FILE *const to = fopen(path, "wb");
    CHECK_OR_RETURN(to != NULL);
    CHECK(fwrite(text, 1, length, to) == length);
    (void)fclose(to);
}
static size_t read_file(const char *path, char *text, size_t cap) {
    FILE *const from = fopen(path, "rb");
    const size_t length = from ? fread(text, 1, cap - 1, from) : 0;
    text[length] = 0;
    if (from) { (void)fclose(from); }
    return length;
}

//-- hashes, as Python's hashlib computes them -------------------------------------------------------------------------

static void wants(opd_tensor *const *tensors, int count, const char *want) {
    char text[65];
    CHECK(opd_tensor_sha256(tensors, count, text) == 0);
    CHECK_STR(text, want);
}
static void want(opd_tensor *tensor, const char *hash) { wants(&tensor, 1, hash); }
TEST(hashes_are_those_of_hashlib) {
    static const double two[] = {1.5, NAN, -0.0}, minus_nan = -NAN;
    double other[3];
    opd_tensor *const six = opd_reshape(opd_arange(opd_value_int(6), OPD_INT64), OPD_INTS(2, 3));
    opd_tensor *all[2], *x = opd_to_dtype(six, OPD_FLOAT32);
    wants(NULL, 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    want(x, "4a4c3e33896b7ac24144d526244dab63fba9df50bc2c2d299cd97bb2710885f8");
    want(opd_t(x), "d082b56d62105736d0ed8b9d7c46e2ddd7df8615843fc1449b2354eb179cde70");
    want(opd_contiguous(opd_t(x)), "d082b56d62105736d0ed8b9d7c46e2ddd7df8615843fc1449b2354eb179cde70");
    want(opd_zeros(OPD_INTS(0, 2), OPD_FLOAT32), "c9e2313b1151bf0f50910c3867e1792ee89cbf2baa2360257f85637df4f8cf24");
    want(opd_full(opd_ints_of(NULL, 0), opd_value_int(3), OPD_FLOAT32),
         "51f72d4687189a7f69dc3cd4aa4d8dcafa97790106bdd7560e7393a99adcc2b0");
    memcpy(other, two, sizeof two);
    other[1] = minus_nan;
    want(opd_tensor_from(two, OPD_INTS(3), OPD_FLOAT64),
         "af81355ab3897d09e29da3a3b81c1eac2a1940145f489db85493f12a38f75522");
    want(opd_tensor_from(other, OPD_INTS(3), OPD_FLOAT64),
         "af81355ab3897d09e29da3a3b81c1eac2a1940145f489db85493f12a38f75522");
    want(opd_arange(opd_value_int(5000), OPD_INT64),
         "0ff66c5cf54b032d028f425b70e7551b92d1bf00694ddc3d57baf8569daf16a6");
    all[0] = x;
    all[1] = opd_arange(opd_value_int(5000), OPD_INT64);
    wants(all, 2, "1404a65a07442a85d238a7c90293f82d72099ce49b803dcfc6168ef03c81f577");
}
TEST(hashes_of_short_and_complex_numbers) {
    static const uint16_t brain[] = {0x3f80, 0xffc1}, half[] = {0x3c00, 0xfe01};
    static const float complexes[] = {1, 2, 3, -4};
    opd_tensor *const z = opd_tensor_from(complexes, OPD_INTS(2), OPD_COMPLEX64);
    want(opd_tensor_from(brain, OPD_INTS(2), OPD_BFLOAT16),
         "221f444974900d061f1df63a2040a487a5b85e33540b8dbcc1d4a2eeec21fd95");
    want(opd_tensor_from(half, OPD_INTS(2), OPD_FLOAT16),
         "a4948dfda81a869d830a013165bc15ba7b7d2231cf1eff63c199be35e12f009c");
    want(z, "4da5abf2b68f4416335539c895c562bb3b0d9e56107201bb557eae01a6a88132");
    want(opd_conj(opd_resolve_conj(opd_conj(z))), "4da5abf2b68f4416335539c895c562bb3b0d9e56107201bb557eae01a6a88132");
}
/* The sign and the digits of NaN do not count in floats of 8 bits either; infinity does. */
TEST(hashes_of_floats_of_8_bits) {
    static const uint8_t four[2][3] = {{0x7f, 0x38, 0xff}, {0xff, 0x38, 0x7f}}, five[2][3] = {{0x7d, 0xff, 0x7c},
                                                                                           {0xfe, 0x7e, 0x7c}};
    char texts[4][65];
    for (int i = 0; i < 4; i++) {
        opd_tensor *const bits = opd_tensor_from(i < 2 ? four[i] : five[i - 2], OPD_INTS(3), OPD_UINT8);
        opd_tensor *x = opd_view_dtype(bits, i < 2 ? OPD_FLOAT8_E4M3FN : OPD_FLOAT8_E5M2);
        CHECK(opd_tensor_sha256(&x, 1, texts[i]) == 0);
    }
    CHECK_STR(texts[0], texts[1]);
    CHECK_STR(texts[2], texts[3]);
    want(opd_view_dtype(opd_tensor_from(five[0] + 2, OPD_INTS(1), OPD_UINT8), OPD_FLOAT8_E5M2),
         "bc03fe93fd29f110d6ad04dbb37b0f6f4a8bf7cde3089e64740f7767aeabaafd");
    want(opd_view_dtype(opd_tensor_from(four[0] + 1, OPD_INTS(1), OPD_UINT8), OPD_FLOAT8_E4M3FN),
         "0a6dfd08a59d4c46fdbe71c6c35b89fe3273f169acd173c5b581c6c9ee3045e5");
}
TEST(mistakes_of_hashes) {
    char text[65] = "x";
    opd_tensor *meta = opd_tensor_new_on(OPD_INTS(2), OPD_FLOAT32, opd_device_make(OPD_META, -1)), *none = NULL;
    opd_tensor *const blocks = opd_quantize_blocks(opd_ones(OPD_INTS(2, 64), OPD_FLOAT32), OPD_Q8_0);
    CHECK(opd_tensor_sha256(&meta, 1, text) == -1 && !text[0]);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_tensor_sha256");
    CHECK(opd_tensor_sha256(&none, 1, text) == -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_tensor_sha256");
    CHECK(opd_tensor_sha256(NULL, 1, text) == -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "tensors is NULL");
    CHECK(opd_tensor_sha256(&meta, 0, NULL) == -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "text is NULL");
    CHECK(opd_tensor_sha256((opd_tensor *const *)&blocks, 1, text) == 0 && strlen(text) == 64);
}

//-- a training --------------------------------------------------------------------------------------------------------

/* What one of two runs does otherwise. */
enum { SAME, SEED, INPUT, FORWARD, BACKWARD, UPDATE, BUFFER, CALLS, FIRST_VALUES };
typedef struct training {
    opd_module *module;
    opd_optimizer *sgd, *other;                   /* other: of a second optimizer, for the bias */
    opd_tensor *w, *b, *mean;
} training;
static int twist_at, twist;
static void training_make(training *t) {
    opd_manual_seed(3);
    t->module = opd_module_new();
    OPD_SCOPE {
        opd_tensor *const w = opd_randn(OPD_INTS(4, 3), OPD_FLOAT32), *const b = opd_zeros(OPD_INTS(4), OPD_FLOAT32);
        opd_module_add(t->module, "w", opd_tensor_set_requires_grad(w, true), OPD_MODULE_PARAMETER);
        opd_module_add(t->module, "b", opd_tensor_set_requires_grad(b, true), OPD_MODULE_PARAMETER);
        opd_module_add(t->module, "mean", opd_zeros(OPD_INTS(4), OPD_FLOAT32), OPD_MODULE_BUFFER);
        opd_module_add(t->module, "two", opd_ones(OPD_INTS(1), OPD_FLOAT32), OPD_MODULE_CONSTANT);
        t->sgd = opd_module_sgd(t->module, "w", NULL);
        t->other = opd_module_adam(t->module, "b", NULL);
    }
    t->w = opd_module_get(t->module, "w");
    t->b = opd_module_get(t->module, "b");
    t->mean = opd_module_get(t->module, "mean");
    if (twist == FIRST_VALUES) { (void)opd_add_(opd_detach(t->w), opd_ones(OPD_INTS(1), OPD_FLOAT32)); }
}
static void training_free(training *t) {
    opd_optimizer_free(t->sgd);
    opd_optimizer_free(t->other);
    opd_module_free(t->module);
}
/* Trains one step.  Returns 0, or -1 with the error of the audit. */
static int train_step(training *t, opd_audit *audit, int step) {
    OPD_SCOPED;
    const int odd = step == twist_at ? twist : SAME;
    opd_tensor *x = opd_randn(OPD_INTS(5, 3), OPD_FLOAT32);
    if (odd == INPUT) { x = opd_neg(x); }
    if (odd == SEED) { (void)opd_randn(OPD_INTS(1), OPD_FLOAT32); }
    if (opd_audit_tensor(audit, odd == CALLS ? "other" : "x", x)) { return -1; }
    opd_tensor *y = opd_linear(x, t->w, t->b);
    if (odd == FORWARD) { y = opd_mul(y, y); }
    (void)opd_add_(t->mean, opd_mean_dim(opd_detach(y), OPD_INTS(0), false));
    if (odd == BUFFER) { (void)opd_neg_(t->mean); }
    opd_tensor *const loss = opd_sum(opd_mul(y, y));
    if (opd_audit_tensor(audit, "loss", loss)) { return -1; }
    CHECK(opd_backward(loss) == 0);
    if (odd == BACKWARD) { (void)opd_neg_(opd_tensor_grad(t->w)); }
    if (opd_audit_step(audit)) { return -1; }
    if (odd == UPDATE) { (void)opd_optimizer_set_lr(t->sgd, 0.5); }
    opd_optimizer_step(t->sgd);
    opd_optimizer_step(t->other);
    opd_optimizer_zero_grad(t->sgd);
    opd_optimizer_zero_grad(t->other);
    return 0;
}
/* Trains `steps` steps with an audit.  Returns the result of the audit. */
static int train(opd_audit *audit, int steps) {
    training t;
    int rc = audit ? 0 : -1;
    if (!audit) { return -1; }
    training_make(&t);
    rc = opd_audit_module(audit, "net.", t.module);
    for (int step = 0; step < steps && rc == 0; step++) { rc = train_step(&t, audit, step); }
    training_free(&t);
    return opd_audit_end(audit) || rc ? -1 : 0;
}
static int twisted(opd_audit *audit, int steps, int what, int at) {
    twist = what;
    twist_at = at;
    const int rc = train(audit, steps);
    twist = SAME;
    return rc;
}
TEST(a_run_that_is_repeated_is_the_same) {
    char text[400];
    CHECK(train(opd_audit_begin(file("one"), 0), 4) == 0);
    CHECK(train(opd_audit_begin(file("two"), 0), 4) == 0);
    CHECK(train(opd_audit_check(file("one"), 0), 4) == 0);
    CHECK(train(opd_audit_check(file("one"), 0), 2) == 0);
    CHECK(opd_audit_compare(file("one"), file("two"), text, sizeof text) == 0);
    CHECK_STR(text, "");
    CHECK_OK();
    clean();
}
TEST(the_file_has_this_form) {
    static const char *const begins[] = {
        "opdispatch audit 1", "step 0", "parameter ", "parameter ", "buffer ", "random 3 128", "tensor ", "tensor ",
        "gradient ", "gradient ", "step 1", "parameter ", "parameter ", "buffer ", "end 1"};
    static const char *const ends[] = {"1", "0", " net.w", " net.b", " net.mean", "", " x", " loss", " net.b", " net.w",
                                       "1", " net.w", " net.b", " net.mean", " 1"};
    char text[4000], *at = text;
    CHECK(train(opd_audit_begin(file("one"), 0), 1) == 0);
    (void)read_file(file("one"), text, sizeof text);
    for (int i = 0; i < 15; i++) {
        char *const end = strchr(at, '\n');
        CHECK_OR_RETURN(end != NULL);
        *end = 0;
        CHECK(strncmp(at, begins[i], strlen(begins[i])) == 0);
        CHECK(strlen(at) >= strlen(ends[i]) && strcmp(at + strlen(at) - strlen(ends[i]), ends[i]) == 0);
        at = end + 1;
    }
    CHECK(*at == 0);
    clean();
}
TEST(the_first_difference_is_named) {
    static const struct { int what, at; const char *says; } cases[] = {
        {SEED, 1, "step 1: the random state (seed, numbers drawn) differs: 'random 3 "},
        {INPUT, 1, "step 1: tensor 'x' of this run is not that of"},
        {INPUT, 1, "the runs part in forward, or have other inputs"},
        {FORWARD, 2, "step 2: tensor 'loss' of this run"},
        {BACKWARD, 2, "step 2: gradient 'net.w' of this run"},
        {BACKWARD, 2, "the runs part in backward"},
        {UPDATE, 1, "step 2: parameter 'net.w' of this run"},
        {UPDATE, 1, "the runs part in the update of the step before"},
        {BUFFER, 0, "step 1: buffer 'net.mean' of this run"},
        {BUFFER, 0, "the runs part in the step before, which writes it"},
        {CALLS, 1, "is 'tensor x', but this run has 'tensor other' here"},
        {FIRST_VALUES, 0, "step 0: parameter 'net.w' of this run"},
        {FIRST_VALUES, 0, "the runs begin with other values"},
        {UPDATE, 3, "opd_audit_end: step 4: parameter 'net.w' of this run"}};
    char text[1000];
    CHECK(train(opd_audit_begin(file("one"), 0), 4) == 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK(twisted(opd_audit_check(file("one"), 0), 4, cases[i].what, cases[i].at) == -1);
        CHECK_ERROR(OPD_ERROR_FILE, cases[i].says);
        CHECK(twisted(opd_audit_begin(file("two"), 0), 4, cases[i].what, cases[i].at) == 0);
        CHECK(opd_audit_compare(file("one"), file("two"), text, sizeof text) == 1);
        char *const said = strstr(text, file("two"));
        CHECK(said != NULL);
        if (said && strstr(cases[i].says, "this run") == NULL) { CHECK(strstr(text, cases[i].says) != NULL); }
        CHECK_OK();
    }
    clean();
}
TEST(without_losses_forward_and_backward_are_one) {
    opd_tensor *const w = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(2), OPD_FLOAT32), true);
    for (int k = 0; k < 2; k++) {
        opd_audit *const audit = k ? opd_audit_check(file("one"), 0) : opd_audit_begin(file("one"), 0);
        CHECK(opd_audit_watch(audit, "w", w) == 0 && opd_audit_step(audit) == 0);       /* no gradient */
        CHECK(opd_backward(opd_sum(k ? opd_mul(w, w) : w)) == 0);
        CHECK(opd_audit_step(audit) == -k);
        if (k) { CHECK_ERROR(OPD_ERROR_FILE, "step 1: gradient 'w' of this run"); }
        CHECK(opd_audit_step(audit) == -k);
        if (k) { CHECK_ERROR(OPD_ERROR_ARGUMENT, "an earlier call for this audit"); }
        CHECK(opd_audit_end(audit) == -k);
        if (k) { CHECK_ERROR(OPD_ERROR_ARGUMENT, "an earlier call for this audit"); }
        (void)opd_tensor_set_grad(w, NULL);
    }
    clean();
}
TEST(a_run_can_be_repeated_from_a_step) {
    training t;
    char path[600], text[400];
    CHECK(train(opd_audit_begin(file("one"), 0), 6) == 0);
    /* a run of 3 steps without an audit, and then with one */
    for (int way = 0; way < 3; way++) {
        training_make(&t);
        opd_audit *audit = opd_audit_begin(file("two"), 0);
        for (int step = 0; step < 3; step++) { CHECK(train_step(&t, audit, step) == 0); }
        CHECK(opd_audit_end(audit) == 0);
        audit = way == 0 ? opd_audit_check(file("one"), 3) : opd_audit_begin(file("two"), 3);
        CHECK(opd_audit_module(audit, "net.", t.module) == 0);
        twist = way == 2 ? FORWARD : SAME;
        twist_at = 4;
        for (int step = 3; step < 6; step++) { CHECK(train_step(&t, audit, step) == 0); }
        twist = SAME;
        CHECK(opd_audit_end(audit) == 0);
        training_free(&t);
    }
    CHECK(opd_audit_compare(file("one"), file("two"), text, sizeof text) == 1);
    CHECK(strstr(text, "step 4: tensor 'loss'") != NULL);
    (void)snprintf(path, sizeof path, "%s", file("one"));
    CHECK(opd_audit_check(path, 7) == NULL);
    CHECK_ERROR(OPD_ERROR_FILE, "has no step 7: it has the steps 0 to 6");
    CHECK_OK();
    clean();
}

//-- other files, and mistakes -----------------------------------------------------------------------------------------

TEST(cut_files_are_errors) {
    static char text[20000];
    char says[1000];
    CHECK(train(opd_audit_begin(file("one"), 0), 2) == 0);
    const size_t length = read_file(file("one"), text, sizeof text);
    CHECK(length > 100);
    for (size_t n = 0; n < length; n += n < 40 ? 1 : 37) {
        write_file(file("cut"), text, n);
        opd_audit *const audit = opd_audit_check(file("cut"), 0);
        const int rc = train(audit, 2);
        /* only the line "end" is missing: the run is the same, as far as the file goes */
        CHECK(rc == -1 || (n > length - 8 && rc == 0));
        if (rc) { CHECK_ERROR(OPD_ERROR_FILE, file("cut")); }
        const int both = opd_audit_compare(file("one"), file("cut"), says, sizeof says);
        CHECK(both == 1 || both == -1);
        if (both == 1) { CHECK(strstr(says, "the file is cut") != NULL); }
        else { CHECK_ERROR(OPD_ERROR_FILE, file("cut")); }
    }
    CHECK(train(opd_audit_begin(file("two"), 0), 1) == 0);
    CHECK(opd_audit_compare(file("one"), file("two"), says, sizeof says) == 1);
    CHECK(strstr(says, "ends here, and the other goes on") != NULL && strstr(says, "step 1: ") == says);
    CHECK(train(opd_audit_check(file("two"), 0), 2) == -1);
    CHECK_ERROR(OPD_ERROR_FILE, "ends in step 1, and this run goes on");
    clean();
}
TEST(files_that_are_no_audits) {
    char text[100];
    write_file(file("one"), "hello\n", 6);
    CHECK(opd_audit_check(file("one"), 0) == NULL);
    CHECK_ERROR(OPD_ERROR_FILE, "is no audit: it does not begin with 'opdispatch audit 1'");
    write_file(file("one"), "opdispatch audit 1\n", 19);
    CHECK(opd_audit_check(file("one"), 0) == NULL);
    CHECK_ERROR(OPD_ERROR_FILE, "has no step");
    CHECK(opd_audit_compare(file("one"), file("one"), text, sizeof text) == -1);
    CHECK_ERROR(OPD_ERROR_FILE, "has no step");
    CHECK(opd_audit_check(file("two"), 0) == NULL);
    CHECK_ERROR(OPD_ERROR_FILE, "cannot be read");
    CHECK(opd_audit_begin("/nonexistent/folder/file", 0) == NULL);
    CHECK_ERROR(OPD_ERROR_FILE, "cannot be written");
    char *const longer = (char *)malloc(2000);
    memset(longer, 'x', 2000);
    memcpy(longer, "opdispatch audit 1\nstep 0\n", 26);
    write_file(file("one"), longer, 2000);
    free(longer);
    opd_audit *const audit = opd_audit_check(file("one"), 0);
    CHECK(opd_audit_step(audit) == -1);
    CHECK_ERROR(OPD_ERROR_FILE, "line 3: this is no line of an audit");
    CHECK(opd_audit_end(audit) == -1);
    opd_error_clear();
    clean();
}
/* A damaged line of a step may not hide the step: files would look the same that are not. */
TEST(damaged_lines_of_steps_are_errors) {
    static const char *const lines[] = {"stxp 0", "step0", "step", "step 0x", "step 00", "step -1", "step +0", "step 0 ", "",
                                        "step 99999999999999999999", "end 0"};
    char text[100];
    write_file(file("two"), "opdispatch audit 1\nstep 0\nrandom 0 0\nstep 1\nend 1\n", 50);
    for (int i = 0; i < (int)(sizeof lines / sizeof *lines); i++) {
        char damaged[120];
        const int length = snprintf(damaged, sizeof damaged, "opdispatch audit 1\n%s\nrandom 0 0\nstep 1\nend 1\n",
                                    lines[i]);
        write_file(file("one"), damaged, (size_t)length);
        CHECK(opd_audit_compare(file("one"), file("two"), text, sizeof text) == -1);
        CHECK_ERROR(OPD_ERROR_FILE, "line 2: ");
        CHECK(opd_audit_check(file("one"), 1) == NULL);
        CHECK_ERROR(OPD_ERROR_FILE, "line 2: ");
    }
    clean();
}
TEST(mistakes) {
    char name[600], path[600];
    opd_tensor *const w = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(2), OPD_FLOAT32), true);
    opd_tensor *const meta = opd_tensor_new_on(OPD_INTS(2), OPD_FLOAT32, opd_device_make(OPD_META, -1));
    (void)snprintf(path, sizeof path, "%s", file("one"));
    memset(name, 'n', 599);
    name[512] = 0;
    CHECK(opd_audit_begin(NULL, 0) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_audit_begin: the path is NULL");
    CHECK(opd_audit_check(path, -1) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the step is negative (-1)");
    CHECK(opd_audit_step(NULL) == -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_audit_step: the audit is NULL");
    CHECK(opd_audit_end(NULL) == 0);
    opd_audit *const audit = opd_audit_begin(path, 0);
    CHECK(opd_audit_watch(audit, "w", w) == 0 && opd_audit_watch(audit, "w", w) == -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the name 'w' is taken");
    CHECK(opd_audit_watch(audit, "y", opd_mul(w, w)) == -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "'y' is no leaf");
    CHECK(opd_audit_watch(audit, "y", NULL) == -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "'y' is NULL");
    CHECK(opd_audit_watch(audit, "", w) == -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the name is NULL or empty");
    CHECK(opd_audit_tensor(audit, name, w) == -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "longer than 511 bytes");
    CHECK(opd_audit_tensor(audit, "a\nb", w) == -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "control character");
    CHECK(opd_audit_module(audit, NULL, NULL) == -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the module is NULL");
    CHECK(opd_audit_step(audit) == 0);
    CHECK(opd_audit_tensor(audit, "meta", meta) == -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_audit_tensor");
    CHECK(opd_audit_end(audit) == -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "an earlier call");
    CHECK(opd_audit_compare(path, NULL, name, sizeof name) == -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "a path or the text is NULL");
    clean();
}
TEST(a_module_is_watched_whole_or_not) {
    opd_module *const module = opd_module_new();
    opd_tensor *const w = opd_ones(OPD_INTS(2), OPD_FLOAT32);
    CHECK(opd_module_add(module, "a", w, OPD_MODULE_BUFFER) == 0);
    CHECK(opd_module_add(module, "b", w, OPD_MODULE_BUFFER) == 0);
    opd_audit *const audit = opd_audit_begin(file("one"), 0);
    CHECK(opd_audit_watch(audit, "b", w) == 0 && opd_audit_module(audit, NULL, module) == -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the name 'b' is taken");
    CHECK(opd_audit_watch(audit, "a", w) == 0);
    CHECK(opd_audit_end(audit) == 0);
    opd_module_free(module);
    CHECK_OK();
    clean();
}
TEST(allocations_that_fail_are_errors) {
    opd_module *const module = opd_module_new();
    CHECK(opd_module_add(module, "a", opd_ones(OPD_INTS(2), OPD_FLOAT32), OPD_MODULE_BUFFER) == 0);
    for (int n = 1; n < 100; n++) {
        opd_tensor *const one = opd_ones(OPD_INTS(2), OPD_FLOAT32), *const x = opd_conj(opd_complex(one, one));
        (void)opd_memory_fail_at(n, n % 2 == 0);
        opd_audit *const audit = opd_audit_begin(file("one"), 0);
        int rc = audit && opd_audit_module(audit, NULL, module) == 0 && opd_audit_tensor(audit, "x", x) == 0 &&
            opd_audit_step(audit) == 0 ? 0 : -1;
        rc = opd_audit_end(audit) || rc ? -1 : 0;
        if (opd_memory_fail_at(0, false) < n) { CHECK_INT(rc, 0); CHECK_OK(); break; }
        CHECK(rc == 0 || opd_error_code() == OPD_ERROR_MEMORY);
        opd_error_clear();
    }
    opd_module_free(module);
    clean();
}
#if defined(FORKS) && !defined(CHECK_SANITIZED)
static void quiet(void *user, int is_error, const char *text) {
    (void)user;
    (void)is_error;
    (void)text;
}
/* Children that end during a step neither write lines a second time nor move the place where their parent reads. */
TEST(children_do_not_disturb_an_audit) {
    OPD_SCOPED;
    char path[64], name[80];
    opd_tensor *const w = opd_ones(OPD_INTS(4), OPD_FLOAT32);
    (void)snprintf(path, sizeof path, "/tmp/opd_audit.%d", (int)getpid());
    for (int check = 0; check < 2; check++) {
        opd_audit *const audit = check ? opd_audit_check(path, 0) : opd_audit_begin(path, 0);
        CHECK_OR_RETURN(audit != NULL);
        for (int i = 0; i < 90; i++) {            /* more than one buffer of lines */
            (void)snprintf(name, sizeof name, "a tensor with a long name, number %040d", i);
            CHECK_INT(opd_audit_watch(audit, name, w), 0);
        }
        for (int step = 0; step < 3; step++) {
            int status = 1;
            CHECK_INT(opd_audit_tensor(audit, "x", w), 0);
            (void)fflush(NULL);
            const pid_t child = fork();
            if (child == 0) {
                opd_log_set(quiet, NULL);
                const bool right = opd_audit_tensor(audit, "y", w) == -1 && strstr(opd_error_message(), "belongs to the process");
                opd_error_clear();
                if (step == 1) { (void)opd_audit_end(audit); }
                opd_error_clear();
                exit(right ? 0 : 1);
            }
            CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
            CHECK_INT(opd_audit_step(audit), 0);
        }
        CHECK_INT(opd_audit_end(audit), 0);
    }
    CHECK_OK();
    (void)remove(path);
}
#endif
CHECK_MAIN()
