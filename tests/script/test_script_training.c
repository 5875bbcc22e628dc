/* Training of scripts that PyTorch saved: golden/scripts and golden/script_training.json, made by
   golden/make_script_training.py.  Losses equal PyTorch's at each step; also under vmap, autocast, fake mode and the
   profiler.  C ONLY: arrays of values with initialisers. */
#include "../../opdispatch.h"
#include "../check.h"

static opd_json *open_golden(void) {
    static char text[1 << 16];
    FILE *file = check_golden("script_training.json");
    if (!file) { return NULL; }
    const size_t size = fread(text, 1, sizeof text, file);
    (void)fclose(file);
    return opd_json_parse(text, size);
}
static opd_script *load(const char *name) {
    char path[600];
    (void)snprintf(path, sizeof path, "golden/scripts/%s.pt", name);
    return opd_script_load(check_path(path));
}
/* Fills x and t of a step, as the script does. */
static void batch(opd_tensor **inputs, int step) {
    inputs[0] = opd_tensor_new(OPD_INTS(6, 1, 8, 8), OPD_FLOAT32);
    inputs[1] = opd_tensor_new(OPD_INTS(6, 3), OPD_FLOAT32);
    for (int i = 0; opd_ok() && i < 6 * 64; i++) { opd_data_f32(inputs[0])[i] = (float)sin(i * 0.37 + step); }
    for (int i = 0; opd_ok() && i < 6 * 3; i++) { opd_data_f32(inputs[1])[i] = (float)cos(i * 0.71 + step); }
}
static opd_tensor *loss_of(const opd_script *script, opd_tensor *const *inputs) {
    opd_value args[2] = {opd_value_tensor(inputs[0]), opd_value_tensor(inputs[1])}, result;
    return opd_script_run(script, NULL, args, 2, &result) == 0 && result.tag == OPD_TAG_TENSOR ? result.u.t : NULL;
}
static double loss_at(const opd_script *script, int step) {
    double loss = NAN;
    OPD_SCOPE {
        opd_tensor *inputs[2];
        batch(inputs, step);
        loss = opd_item_f64(loss_of(script, inputs));
    }
    return loss;
}
static opd_optimizer *optimizer_of(const opd_script *script, const char *kind) {
    if (strcmp(kind, "sgd") == 0) {
        opd_sgd_options options = opd_sgd_defaults();
        options.lr = 0.1;
        options.momentum = 0.9;
        return opd_module_sgd(opd_script_module(script), NULL, &options);
    }
    opd_adam_options options = opd_adam_defaults();
    options.lr = 0.01;
    return opd_module_adam(opd_script_module(script), NULL, &options);
}
/* The sums of parameters or buffers are PyTorch's. */
static void check_sums(const opd_json *golden, int64_t sums, const opd_script *script) {
    for (int64_t at = opd_json_first(golden, sums); at >= 0; at = opd_json_next(golden, at)) {
        OPD_SCOPED;
        /* the keys' bias moves no output: its gradient is rounding, which Adam makes a step of */
        if (strstr(opd_json_key(golden, at), "in_proj_bias")) { continue; }
        opd_tensor *tensor = opd_module_get(opd_script_module(script), opd_json_key(golden, at));
        const double want = opd_json_double(golden, at, NAN);
        const double got = opd_item_f64(opd_sum(opd_to_dtype(opd_detach(tensor), OPD_FLOAT64)));
        if (!(fabs(got - want) < 2e-3 * (1 + fabs(want)))) {
            CHECK(!"another number");
            printf("%s: %.9g, not %.9g\n", opd_json_key(golden, at), got, want);
        }
    }
}
static void check_training(const opd_json *golden, int64_t at) {
    const char *name = opd_json_text(golden, opd_json_get(golden, at, "name"), "");
    const int64_t losses = opd_json_get(golden, at, "losses");
    opd_script *script = load(name);
    opd_optimizer *optimizer = script
        ? optimizer_of(script, opd_json_text(golden, opd_json_get(golden, at, "optimizer"), "")) : NULL;
    int step = 0;
    CHECK_OK();
    for (int64_t e = opd_json_first(golden, losses); e >= 0 && optimizer; e = opd_json_next(golden, e), step++) {
        OPD_SCOPED;
        opd_tensor *inputs[2];
        batch(inputs, step);
        opd_tensor *loss = loss_of(script, inputs);
        const double want = opd_json_double(golden, e, NAN), got = opd_item_f64(loss);
        if (!(fabs(got - want) < 1e-4 * (1 + fabs(want)))) {
            CHECK(!"another number");
            printf("%s, step %d: %.9g, not %.9g: %s\n", name, step, got, want, opd_error_message());
        }
        opd_optimizer_zero_grad(optimizer);
        opd_backward(loss);
        opd_optimizer_step(optimizer);
    }
    CHECK_OK();
    CHECK_INT(step, 10);
    check_sums(golden, opd_json_get(golden, at, "parameters"), script);
    check_sums(golden, opd_json_get(golden, at, "buffers"), script);
    opd_optimizer_free(optimizer);
    opd_script_free(script);
}
TEST(losses_follow_those_of_pytorch) {
    opd_json *golden = open_golden();
    CHECK_OR_RETURN(golden != NULL);
    for (int64_t at = opd_json_first(golden, 0); at >= 0; at = opd_json_next(golden, at)) { check_training(golden, at); }
    opd_json_free(golden);
}
TEST(autocast_gives_the_losses_that_it_gives_in_pytorch) {
    opd_json *golden = open_golden();
    CHECK_OR_RETURN(golden != NULL);
    for (int64_t at = opd_json_first(golden, 0); at >= 0; at = opd_json_next(golden, at)) {
        const char *name = opd_json_text(golden, opd_json_get(golden, at, "name"), "");
        const double want = opd_json_double(golden, opd_json_get(golden, at, "autocast"), NAN);
        opd_script *script = load(name);
        double got = NAN;
        OPD_NO_GRAD { OPD_AUTOCAST(OPD_CPU) { got = loss_at(script, 0); } }
        if (!(fabs(got - want) < 1e-2 * (1 + fabs(want)))) {
            CHECK(!"another number");
            printf("%s: %.9g, not %.9g: %s\n", name, got, want, opd_error_message());
        }
        opd_script_free(script);
    }
    opd_json_free(golden);
}
/* The loss of one example, which has no dimension for the batch. */
static int example(void *script, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    opd_tensor *batched[2];
    (void)ninputs;
    for (int i = 0; i < 2; i++) { batched[i] = opd_unsqueeze(inputs[i], 0); }
    return opd_script_function(script, batched, 2, outputs);
}
TEST(vmap_gives_the_losses_of_single_examples) {
    static const char *const names[] = {"lstm", "transformer"};
    for (int k = 0; k < 2; k++) {
        OPD_SCOPED;
        opd_tensor *inputs[2], *losses = NULL;
        opd_script *script = load(names[k]);
        CHECK_OR_RETURN(script != NULL);
        batch(inputs, 3);
        const int count = opd_vmap(example, script, inputs, 2, NULL, &losses, 1);
        CHECK_INT(count, 1);
        CHECK_OK();
        for (int64_t i = 0; count == 1 && i < 6; i++) {
            opd_tensor *one[2] = {opd_narrow(inputs[0], 0, i, 1),
                                  opd_narrow(inputs[1], 0, i, 1)};
            const double want = opd_item_f64(loss_of(script, one)), got = opd_item_f64(opd_select(losses, 0, i));
            CHECK(fabs(got - want) < 1e-5);
        }
        CHECK_OK();
        opd_script_free(script);
    }
}
TEST(fake_tensors_pass_through) {
    static const char *const names[] = {"conv", "lstm", "mlp", "transformer"};
    for (int k = 0; k < 4; k++) {
        OPD_SCOPED;
        opd_script *script = load(names[k]);
        CHECK_OR_RETURN(script != NULL);
        OPD_FAKE_MODE {
            opd_tensor *inputs[2];
            batch(inputs, 0);
            for (int i = 0; i < 2; i++) { inputs[i] = opd_fake_tensor(inputs[i]); }
            opd_tensor *loss = loss_of(script, inputs);
            CHECK(loss != NULL && opd_ndim(loss) == 0);
            if (!loss) { printf("%s: %s\n", names[k], opd_error_message()); }
        }
        CHECK_OK();
        opd_script_free(script);
    }
}
TEST(the_profiler_sees_what_runs) {
    OPD_SCOPED;
    int64_t count = 0, calls = 0;
    opd_script *script = load("lstm");
    CHECK_OR_RETURN(script != NULL);
    CHECK_INT(opd_profiler_begin(NULL), 0);
    const double profiled = loss_at(script, 2);
    opd_profile *profile = opd_profiler_end();
    CHECK_OR_RETURN(profile != NULL);
    const opd_profile_row *rows = opd_profile_rows(profile, &count);
    for (int64_t i = 0; i < count; i++) { calls += strcmp(rows[i].name, "aten::mse_loss") == 0 ? rows[i].calls : 0; }
    CHECK_INT(calls, 1);
    CHECK(profiled == loss_at(script, 2));
    opd_profile_free(profile);
    opd_script_free(script);
}
/* Numbers that were traced are numbers again where PyTorch has them so: second operands of sums and products. */
TEST(traced_numbers_yield_in_promotion) {
    OPD_SCOPED;
    static const opd_scalar_type want[] = {OPD_FLOAT32, OPD_FLOAT32, OPD_FLOAT32, OPD_FLOAT32, OPD_FLOAT32, OPD_INT64,
                                           OPD_FLOAT16, OPD_FLOAT64, OPD_FLOAT64, OPD_FLOAT32};
    opd_script *script = load("numbers");
    opd_value x = opd_value_tensor(opd_ones(OPD_INTS(3), OPD_FLOAT32)), results;
    CHECK_OR_RETURN(script != NULL);
    CHECK_INT(opd_script_run(script, NULL, &x, 1, &results), 0);
    CHECK_INT(opd_list_count(results), 10);
    for (int i = 0; opd_ok() && i < 10; i++) {
        CHECK_STR(opd_dtype_name(opd_dtype(opd_list_at(results, i).u.t)), opd_dtype_name(want[i]));
    }
    CHECK_NEAR(opd_item_f64(opd_list_at(results, 0).u.t), -1.5, 1e-6);
    opd_script_free(script);
}
/* Writes what forward gives for ones. */
static void said(const opd_script *script, char *text, size_t cap) {
    opd_value arg = opd_value_tensor(opd_ones(OPD_INTS(2, 2), OPD_FLOAT32)), result;
    CHECK(opd_script_run(script, NULL, &arg, 1, &result) == 0);
    CHECK(opd_value_print(result, text, cap) < cap);
}
static void save_again(opd_script **script) {
    const char *path = "/tmp/opd_script_saved_again.pt";
    CHECK(opd_script_save(*script, path) == 0);
    opd_script_free(*script);
    *script = opd_script_load(path);
    CHECK(*script != NULL);
    (void)remove(path);
}
/* Attributes of all kinds, changed by a run and by training, come back; what is shared stays so. */
TEST(loaded_archives_are_saved_again) {
    char first[6000], second[6000];
    OPD_SCOPED;
    opd_script *script = load("attributes"), *other = load("attributes");
    CHECK(script && other);
    said(script, first, sizeof first);
    said(other, second, sizeof second);
    CHECK_STR(first, second);
    opd_tensor *weight = opd_module_get(opd_script_module(script), "first.lin.weight");
    opd_tensor *theirs = opd_module_get(opd_script_module(other), "first.lin.weight");
    opd_data_f32(weight)[1] = opd_data_f32(theirs)[1] = 2.5f;
    save_again(&script);
    weight = opd_module_get(opd_script_module(script), "first.lin.weight");
    CHECK(opd_data_f32(weight)[1] == 2.5f && opd_tensor_requires_grad(weight));
    CHECK(opd_data_f32(weight) == opd_data_f32(opd_module_get(opd_script_module(script), "shared.weight")));
    said(script, first, sizeof first);
    said(other, second, sizeof second);
    CHECK_STR(first, second);
    save_again(&script);
    said(script, first, sizeof first);
    said(other, second, sizeof second);
    CHECK_STR(first, second);
    opd_script_free(script);
    opd_script_free(other);
}
/* A module behind an interface is run as what it is. */
TEST(interfaces_stand_for_modules) {
    char text[200];
    OPD_SCOPED;
    opd_script *script = load("interface");
    CHECK_OR_RETURN(script != NULL);
    said(script, text, sizeof text);
    CHECK_STR(text, " 6  6\n 6  6\n[ CPUFloatType{2,2} ]");
    save_again(&script);
    said(script, text, sizeof text);
    CHECK_STR(text, " 6  6\n 6  6\n[ CPUFloatType{2,2} ]");
    opd_script_free(script);
}
CHECK_MAIN()
