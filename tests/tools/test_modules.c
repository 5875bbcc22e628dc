/* Named parameters and buffers: collections, selection by patterns, files and optimizers, initialisers. */
#include "../../opdispatch.h"
#include "../check.h"
#include "../python.h"
#include <unistd.h>

static opd_tensor *ones(int64_t n) { return opd_ones(opd_ints_of(&n, 1), OPD_FLOAT32); }

//-- the collection ----------------------------------------------------------------------------------------------------

TEST(names_find_tensors) {
    opd_module *module = opd_module_new();
    CHECK_INT(opd_module_count(module), 0);
    CHECK_INT(opd_module_find(module, "x"), -1);
    OPD_SCOPE {
        char name[40];
        for (int64_t i = 0; i < 100; i++) {
            (void)snprintf(name, sizeof name, "layers.%lld.weight", (long long)i);
            CHECK_INT(opd_module_add(module, name, ones(i), (opd_module_kind)(i % 3)), 0);
        }
    }
    CHECK_INT(opd_module_count(module), 100);
    for (int64_t i = 0; i < 100; i++) {
        char name[40];
        (void)snprintf(name, sizeof name, "layers.%lld.weight", (long long)i);
        CHECK_STR(opd_module_name(module, i), name);
        CHECK_INT(opd_module_find(module, name), i);
        CHECK_INT(opd_module_kind_at(module, i), i % 3);
        CHECK_INT(opd_numel(opd_module_get(module, name)), i);
        CHECK(opd_module_at(module, i) == opd_module_get(module, name));
    }
    CHECK(!opd_module_name(module, 100) && !opd_module_at(module, 100) && !opd_module_at(module, -1));
    CHECK(opd_module_keep(module) == module);
    opd_module_free(module);
    OPD_SCOPE { CHECK_INT(opd_module_set(module, "layers.5.weight", ones(3)), 0); }
    CHECK_INT(opd_numel(opd_module_at(module, 5)), 3);
    opd_module_free(module);
    opd_module_free(NULL);
}
TEST(what_is_refused) {
    opd_module *module = opd_module_new();
    OPD_SCOPE {
        opd_tensor *leaf = opd_tensor_set_requires_grad(ones(2), true), *sum = opd_add(leaf, leaf);
        CHECK_INT(opd_module_add(module, "w", leaf, OPD_MODULE_PARAMETER), 0);
        CHECK_INT(opd_module_add(module, "w", leaf, OPD_MODULE_BUFFER), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "the module already has a 'w'");
        CHECK_INT(opd_module_add(module, "", leaf, OPD_MODULE_BUFFER), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "the name is empty");
        CHECK_INT(opd_module_add(module, NULL, leaf, OPD_MODULE_BUFFER), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "the name is NULL");
        CHECK_INT(opd_module_add(module, "v", NULL, OPD_MODULE_BUFFER), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "the tensor is NULL");
        CHECK_INT(opd_module_add(module, "v", leaf, (opd_module_kind)3), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "3 is not a kind of entry");
        CHECK_INT(opd_module_add(module, "v", sum, OPD_MODULE_PARAMETER), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "cannot assign a non-leaf Tensor to parameter 'v'");
        CHECK_INT(opd_module_set(module, "w", sum), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "cannot assign a non-leaf Tensor to parameter 'w'");
        CHECK_INT(opd_module_set(module, "v", leaf), -1);
        CHECK_ERROR(OPD_ERROR_NOT_FOUND, "the module has no 'v'");
        CHECK(!opd_module_get(module, "W"));
        CHECK_ERROR(OPD_ERROR_NOT_FOUND, "the module has no 'W'; did you mean 'w'");
        CHECK(!opd_module_get(module, "v"));
        CHECK_ERROR(OPD_ERROR_NOT_FOUND, "the module has no 'v'");
        CHECK(!opd_module_get(NULL, "v"));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "the module is NULL");
        CHECK_INT(opd_module_add(module, "v", sum, OPD_MODULE_BUFFER), 0);
    }
    CHECK_INT(opd_module_count(module), 2);
    opd_module_free(module);
}
static int fill_one(void *unused) {
    opd_module *module = opd_module_new();
    int rc = module ? 0 : -1;
    (void)unused;
    for (int64_t i = 0; i < 40 && rc == 0; i++) {
        char name[20];
        (void)snprintf(name, sizeof name, "%lld", (long long)i);
        rc = opd_module_add(module, name, ones(1), OPD_MODULE_BUFFER);
    }
    opd_module_free(module);
    return rc;
}
TEST(without_memory) {
    CHECK(check_allocations_at(fill_one, NULL, "module", 200, true, __FILE__, __LINE__) > 40);
}

//-- files -------------------------------------------------------------------------------------------------------------

static char folder[] = "/tmp/opd_modules_XXXXXX";
static const char *in_folder(const char *name) {
    static char paths[2][100];
    static int k;
    k = !k;
    if (strstr(folder, "XXXXXX")) { CHECK(mkdtemp(folder) != NULL); }
    (void)snprintf(paths[k], sizeof paths[k], "%s/%s", folder, name);
    return paths[k];
}
static void forget(void) {
    static const char *const files[] = {"a.pt", "a.safetensors", "b.pt", "sgd.pt", "adam.pt", "adamw.pt", "sgd_10.pt", "adam_10.pt",
        "adamw_10.pt", "sgd_torch.pt", "adam_torch.pt", "adamw_torch.pt", "a.npz"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) { (void)remove(in_folder(files[i])); }
    (void)rmdir(folder);
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
}
/* A network of two layers, of numbers that seed says, and two buffers. */
static opd_module *net_new(uint64_t seed) {
    opd_module *net = opd_module_new();
    const int64_t sizes[][2] = {{4, 3}, {4, 0}, {2, 4}, {2, 0}};
    const char *const names[] = {"one.weight", "one.bias", "two.weight", "two.bias"};
    opd_manual_seed(seed);
    OPD_SCOPE {
        for (int i = 0; i < 4; i++) {
            opd_tensor *tensor = opd_init_uniform_(opd_empty(opd_ints_of(sizes[i], 2 - i % 2), OPD_FLOAT32), -0.5, 0.5);
            CHECK_INT(opd_module_add(net, names[i], opd_tensor_set_requires_grad(tensor, true), OPD_MODULE_PARAMETER), 0);
        }
        CHECK_INT(opd_module_add(net, "norm.running_mean", ones(3), OPD_MODULE_BUFFER), 0);
        CHECK_INT(opd_module_add(net, "norm.num_batches_tracked", opd_full(opd_ints_of(NULL, 0), OPD_V(7), OPD_INT64), OPD_MODULE_BUFFER), 0);
        CHECK_INT(opd_module_add(net, "grid", ones(3), OPD_MODULE_CONSTANT), 0);
    }
    return net;
}
static opd_tensor *input(void) {
    const int64_t sizes[] = {5, 3};
    return opd_sin(opd_view(opd_arange(OPD_V(15), OPD_FLOAT32), opd_ints_of(sizes, 2)));
}
static opd_tensor *loss_of(const opd_module *net) {
    opd_tensor *x = opd_tanh(opd_linear(input(), opd_module_get(net, "one.weight"), opd_module_get(net, "one.bias")));
    x = opd_tanh(opd_linear(x, opd_module_get(net, "two.weight"), opd_module_get(net, "two.bias")));
    return opd_sum(opd_square(opd_sub_Scalar(x, OPD_V(0.5))));
}
static void train(const opd_module *net, opd_optimizer *optimizer, int steps) {
    for (int step = 0; step < steps; step++) {
        OPD_SCOPE {
            CHECK_INT(opd_optimizer_zero_grad(optimizer), 0);
            CHECK_INT(opd_backward(loss_of(net)), 0);
            CHECK_INT(opd_optimizer_step(optimizer), 0);
        }
    }
}
static bool same_bits(const opd_module *one, const opd_module *other) {
    bool same = opd_module_count(one) == opd_module_count(other);
    for (int64_t i = 0; same && i < opd_module_count(one); i++) {
        const opd_tensor *a = opd_module_at(one, i), *b = opd_module_get(other, opd_module_name(one, i));
        same = b && opd_numel(a) == opd_numel(b) && opd_dtype(a) == opd_dtype(b) &&
            memcmp(opd_data(a), opd_data(b), (size_t)opd_numel(a) * opd_dtype_size(opd_dtype(a))) == 0;
    }
    return same;
}
static double element(const opd_module *net, const char *name) {
    return opd_item_f64(opd_select(opd_reshape(opd_detach(opd_module_get(net, name)), OPD_INTS(-1)), 0, 0));
}

TEST(saved_and_filled) {
    const char *const files[] = {"a.pt", "a.safetensors"};
    for (int i = 0; i < 2; i++) {
        OPD_SCOPE {
            opd_module *net = net_new(1), *other = net_new(2);
            CHECK(!same_bits(net, other));
            CHECK_INT(opd_module_save(net, in_folder(files[i])), 0);
            opd_tensor_file *file = opd_tensor_file_open(in_folder(files[i]));
            CHECK_INT(opd_tensor_file_count(file), 6);
            CHECK_INT(opd_module_load(other, file, NULL), 0);
            CHECK(same_bits(net, other));
            CHECK(opd_tensor_requires_grad(opd_module_get(other, "one.weight")));
            opd_tensor_file_close(file);
            opd_module *third = opd_module_open(in_folder(files[i]), NULL);
            CHECK_INT(opd_module_count(third), 6);
            CHECK_INT(opd_module_kind_at(third, opd_module_find(third, "one.bias")), OPD_MODULE_PARAMETER);
            CHECK(opd_tensor_requires_grad(opd_module_get(third, "two.weight")));
            CHECK_INT(opd_module_kind_at(third, opd_module_find(third, "norm.running_mean")), OPD_MODULE_BUFFER);
            CHECK_INT(opd_module_kind_at(third, opd_module_find(third, "norm.num_batches_tracked")), OPD_MODULE_BUFFER);
            opd_optimizer *sgd = opd_module_sgd(third, NULL, NULL);
            train(third, sgd, 1);                 /* the file stays as it is */
            file = opd_tensor_file_open(in_folder(files[i]));
            CHECK_INT(opd_module_load(third, file, NULL), 0);
            CHECK_NEAR(element(third, "one.weight"), element(net, "one.weight"), 0);
            opd_tensor_file_close(file);
            opd_optimizer_free(sgd);
            opd_module_free(net);
            opd_module_free(other);
            opd_module_free(third);
        }
    }
    CHECK(opd_module_open(in_folder("a.pt"), "encoder/") == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "a.pt has no tensors under encoder/");
    CHECK(opd_module_open(in_folder("none.pt"), NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_FILE, "none.pt");
    forget();
}
typedef struct matches { int counts[4]; char last[4][100]; } matches;
static void note(opd_module_match match, const char *name, void *user) {
    matches *all = (matches *)user;
    all->counts[match]++;
    (void)snprintf(all->last[match], sizeof all->last[match], "%s", name);
}
TEST(what_does_not_fit) {
    OPD_SCOPE {
        opd_module *net = net_new(1), *was = net_new(1);
        const char *names[] = {"model/one.weight", "model/one.bias", "model/two.weight", "model/more", "epoch"};
        opd_value values[] = {opd_value_tensor(opd_zeros_like(opd_module_get(net, "one.weight"))),
            opd_value_tensor(opd_to_dtype(opd_zeros_like(opd_module_get(net, "one.bias")), OPD_FLOAT16)),
            opd_value_tensor(ones(3)), opd_value_tensor(ones(1)), opd_value_int(4)};
        opd_module_load_options options;
        matches found;
        memset(&options, 0, sizeof options);
        memset(&found, 0, sizeof found);
        CHECK_INT(opd_checkpoint_file_save(in_folder("a.pt"), names, values, 5), 0);
        opd_tensor_file *file = opd_tensor_file_open(in_folder("a.pt"));
        CHECK_INT(opd_module_load(net, file, NULL), -1);
        CHECK_ERROR(OPD_ERROR_NOT_FOUND, "missing in the file: \"one.weight\", \"one.bias\", \"two.weight\", \"two.bias\", "
                    "\"norm.running_mean\", \"norm.num_batches_tracked\"; unexpected there: \"model/one.weight\"");
        options.strip = "model/";
        options.report = note;
        options.user = &found;
        CHECK_INT(opd_module_load(net, file, &options), -1);
        CHECK_ERROR(OPD_ERROR_NOT_FOUND, "unexpected there: \"more\"; of other sizes: \"two.weight\" ([3] in the file, [2, 4] in the "
                    "module)");
        CHECK(found.counts[0] == 2 && found.counts[1] == 3 && found.counts[2] == 1 && found.counts[3] == 1);
        CHECK_STR(found.last[OPD_MODULE_UNEXPECTED], "more");
        CHECK_STR(found.last[OPD_MODULE_MIS_SIZED], "two.weight");
        options.lenient = true;
        CHECK_INT(opd_module_load(net, file, &options), -1);
        CHECK_ERROR(OPD_ERROR_NOT_FOUND, "opd_module_load: of other sizes: \"two.weight\"");
        CHECK(same_bits(net, was));
        options.skip_sizes = true;
        CHECK_INT(opd_module_load(net, file, &options), 0);
        CHECK(element(net, "one.weight") == 0 && element(net, "one.bias") == 0);
        CHECK_INT(opd_dtype(opd_module_get(net, "one.bias")), OPD_FLOAT32);
        CHECK_NEAR(element(net, "two.weight"), element(was, "two.weight"), 0);
        opd_module *deep = opd_module_new();
        CHECK_INT(opd_module_add(deep, "encoder.one.bias", ones(4), OPD_MODULE_PARAMETER), 0);
        options.add = "encoder.";
        CHECK_INT(opd_module_load(deep, file, &options), 0);
        CHECK(element(deep, "encoder.one.bias") == 0);
        CHECK_INT(opd_module_load(deep, NULL, &options), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "the file is NULL");
        opd_tensor_file_close(file);
        opd_module_free(deep);
        opd_module_free(net);
        opd_module_free(was);
    }
    forget();
}

//-- patterns ----------------------------------------------------------------------------------------------------------

TEST(patterns_choose_parameters) {
    OPD_SCOPE {
        opd_module *net = net_new(1);
        opd_tensor *params[8];
        CHECK_INT(opd_module_parameters(net, NULL, params, 8), 4);
        CHECK_INT(opd_module_parameters(net, "*.bias", params, 8), 2);
        CHECK(params[0] == opd_module_get(net, "one.bias") && params[1] == opd_module_get(net, "two.bias"));
        CHECK_INT(opd_module_parameters(net, "!*.bias", params, 1), 2);
        CHECK_INT(opd_module_parameters(net, "?ne.*t", NULL, 0), 1);
        CHECK_INT(opd_module_parameters(net, "three", NULL, 0), 0);
        CHECK_INT(opd_module_numel(net, NULL), 12 + 4 + 8 + 2);
        CHECK_INT(opd_module_numel(net, "two*"), 10);
        CHECK_INT(opd_module_add(net, "tied", opd_module_get(net, "one.weight"), OPD_MODULE_PARAMETER), 0);
        CHECK_INT(opd_module_parameters(net, NULL, NULL, 0), 4);
        CHECK_INT(opd_module_set_requires_grad(net, "one.*", false), 2);
        CHECK(!opd_tensor_requires_grad(opd_module_get(net, "one.bias")) && opd_tensor_requires_grad(opd_module_get(net, "two.bias")));
        CHECK_INT(opd_module_set_requires_grad(net, "on.*", false), -1);
        CHECK_ERROR(OPD_ERROR_NOT_FOUND, "no parameter is named 'on.*'");
        CHECK_INT(opd_backward(loss_of(net)), 0);
        CHECK(opd_tensor_grad(opd_module_get(net, "two.bias")) && !opd_tensor_grad(opd_module_get(net, "one.bias")));
        CHECK_INT(opd_module_zero_grad(net), 0);
        CHECK(!opd_tensor_grad(opd_module_get(net, "two.bias")));
        opd_optimizer *adam = opd_module_adamw(net, "two.*", NULL);
        CHECK_INT(opd_module_group(net, adam, "*.bias"), 1);
        CHECK_INT(opd_optimizer_group_size(adam, 0), 1);
        CHECK(opd_optimizer_param(adam, 1) == opd_module_get(net, "two.bias"));
        CHECK_INT(opd_module_group(net, adam, "none"), -1);
        CHECK_ERROR(OPD_ERROR_NOT_FOUND, "no parameter is named 'none'");
        CHECK(!opd_module_sgd(net, "none", NULL));
        CHECK_ERROR(OPD_ERROR_NOT_FOUND, "no parameter is named 'none'");
        opd_optimizer_free(adam);
        opd_module_free(net);
    }
}
TEST(other_dtypes) {
    OPD_SCOPE {
        opd_module *net = net_new(1);
        opd_tensor *weight = opd_module_get(net, "one.weight");
        const double was = element(net, "one.weight");
        opd_optimizer *sgd = opd_module_sgd(net, NULL, NULL);
        CHECK_INT(opd_backward(loss_of(net)), 0);
        CHECK_INT(opd_module_to(net, NULL, OPD_FLOAT64), 0);
        CHECK(opd_module_get(net, "one.weight") == weight && opd_dtype(weight) == OPD_FLOAT64);
        CHECK(opd_tensor_requires_grad(weight) && opd_tensor_is_leaf(weight));
        CHECK_INT(opd_dtype(opd_tensor_grad(weight)), OPD_FLOAT64);
        CHECK_INT(opd_dtype(opd_module_get(net, "norm.num_batches_tracked")), OPD_INT64);
        CHECK_INT(opd_dtype(opd_module_get(net, "norm.running_mean")), OPD_FLOAT64);
        CHECK_NEAR(element(net, "one.weight"), was, 0);
        CHECK_INT(opd_optimizer_step(sgd), 0);
        CHECK(fabs(element(net, "one.weight") - was) > 0);
        CHECK_INT(opd_module_to(net, NULL, OPD_INT64), -1);
        CHECK_ERROR(OPD_ERROR_DTYPE, "only accepts floating point dtypes");
        opd_optimizer_free(sgd);
        opd_module_free(net);
    }
}

//-- trainings that go on ----------------------------------------------------------------------------------------------

enum { SGD, ADAM, ADAMW };
static opd_optimizer *optimizer_new(int kind, const opd_module *net, bool plain) {
    opd_sgd_options sgd = opd_sgd_defaults();
    opd_adam_options adam = opd_adam_defaults();
    if (!plain) {
        sgd.lr = 0.1; sgd.momentum = 0.9; sgd.nesterov = true; sgd.weight_decay = 0.01;
        adam.lr = 0.05; adam.amsgrad = true; adam.beta1 = 0.8;
    } else {
        sgd.momentum = 0.5;
    }
    if (kind == SGD) { return opd_module_sgd(net, NULL, &sgd); }
    if (kind == ADAM) { return opd_module_adam(net, NULL, &adam); }
    adam.weight_decay = plain ? 0 : 0.1;
    opd_optimizer *optimizer = opd_module_adamw(net, NULL, &adam);
    const int group = opd_module_group(net, optimizer, "*.bias");
    CHECK_INT(group, 1);
    if (!plain) { CHECK_INT(opd_optimizer_set_option(optimizer, group, "weight_decay", 0), 0); }
    return optimizer;
}
/* Five steps, saving, loading, and five more steps give the same bits as ten steps. */
TEST(five_and_five_are_ten) {
    const char *const files[] = {"a.pt", "a.safetensors"}, *const epoch = "epoch";
    const opd_value five = opd_value_int(5);
    for (int kind = SGD; kind <= ADAMW; kind++) {
        for (int i = 0; i < 2; i++) {
            OPD_SCOPE {
                opd_module *net = net_new(3), *other = net_new(4);
                opd_optimizer *optimizer = optimizer_new(kind, net, false), *again = optimizer_new(kind, other, true);
                double seen = 0;
                train(net, optimizer, 5);
                train(other, again, 2);           /* what it has is replaced */
                CHECK_INT(opd_training_save(in_folder(files[i]), net, optimizer, &epoch, &five, 1), 0);
                opd_tensor_file *file = opd_tensor_file_open(in_folder(files[i]));
                CHECK_INT(opd_training_load(file, other, again), 0);
                CHECK_INT(opd_tensor_file_number(file, "epoch", &seen), 0);
                CHECK_NEAR(seen, 5, 0);
                CHECK_INT(opd_tensor_file_number(file, "model/one.weight", &seen), -1);
                CHECK_ERROR(OPD_ERROR_DTYPE, "'model/one.weight' is not a number");
                opd_tensor_file_close(file);
                train(net, optimizer, 5);
                train(other, again, 5);
                CHECK(same_bits(net, other));
                if (kind == ADAMW) { CHECK_NEAR(opd_optimizer_option(again, 0, "weight_decay"), 0.1, 0); }
                opd_optimizer_free(optimizer);
                opd_optimizer_free(again);
                opd_module_free(net);
                opd_module_free(other);
            }
        }
    }
    forget();
}
/* A training can also be continued before its first step.  A file of another training is not loaded. */
TEST(what_cannot_go_on) {
    OPD_SCOPE {
        opd_module *net = net_new(3), *other = net_new(4);
        opd_optimizer *sgd = optimizer_new(SGD, net, false), *adam = optimizer_new(ADAM, net, false);
        opd_optimizer *adamw = opd_module_adamw(net, NULL, NULL), *few = opd_module_adam(net, "one.*", NULL);
        opd_optimizer *groups = optimizer_new(ADAMW, net, false);
        CHECK_INT(opd_training_save(in_folder("a.pt"), net, adam, NULL, NULL, 0), 0);
        opd_tensor_file *file = opd_tensor_file_open(in_folder("a.pt"));
        CHECK_INT(opd_training_load(file, other, sgd), -1);
        CHECK_ERROR(OPD_ERROR_NOT_FOUND, "the file has no 'optimizer/param_groups/0/momentum', so it does not contain the state of SGD");
        CHECK_INT(opd_training_load(file, other, adamw), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "the file contains the state of Adam, but the optimizer is AdamW");
        CHECK_INT(opd_training_load(file, other, few), -1);
        CHECK_ERROR(OPD_ERROR_SHAPE, "doesn't match the size of optimizer's group (0)");
        CHECK(element(other, "one.weight") > element(net, "one.weight") || element(other, "one.weight") < element(net, "one.weight"));
        CHECK_INT(opd_optimizer_load(adam, file, "other/"), -1);
        CHECK_ERROR(OPD_ERROR_NOT_FOUND, "the file has no 'other/param_groups/0/lr'");
        train(net, adam, 1);
        CHECK_INT(opd_optimizer_load(adam, file, "optimizer/"), 0);
        CHECK(opd_optimizer_state(adam, 0, "exp_avg") == NULL);
        CHECK_INT(opd_training_load(file, other, NULL), 0);
        CHECK_INT(opd_training_load(NULL, other, NULL), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "the file is NULL");
        opd_tensor_file_close(file);
        CHECK_INT(opd_training_save(in_folder("a.pt"), NULL, adamw, NULL, NULL, 0), 0);
        file = opd_tensor_file_open(in_folder("a.pt"));
        CHECK_INT(opd_optimizer_load(groups, file, "optimizer/"), -1);
        CHECK_ERROR(OPD_ERROR_SHAPE, "a different number of parameter groups");
        opd_tensor_file_close(file);
        opd_optimizer_free(sgd);
        opd_optimizer_free(adam);
        opd_optimizer_free(adamw);
        opd_optimizer_free(few);
        opd_optimizer_free(groups);
        opd_module_free(net);
        opd_module_free(other);
    }
    forget();
}
static int go_on(void *unused) {
    opd_module *net = opd_module_open(in_folder("a.pt"), "model/");
    opd_optimizer *adam = net ? opd_module_adam(net, NULL, NULL) : NULL;
    opd_tensor_file *file = adam ? opd_tensor_file_open(in_folder("a.pt")) : NULL;
    int rc = file ? opd_training_load(file, net, adam) : -1;
    (void)unused;
    if (rc == 0) { rc = opd_training_save(in_folder("b.pt"), net, adam, NULL, NULL, 0); }
    opd_tensor_file_close(file);
    opd_optimizer_free(adam);
    opd_module_free(net);
    return rc;
}
TEST(trainings_without_memory) {
    OPD_SCOPE {
        opd_module *net = net_new(3);
        opd_optimizer *adam = optimizer_new(ADAM, net, false);
        train(net, adam, 1);
        CHECK_INT(opd_training_save(in_folder("a.pt"), net, adam, NULL, NULL, 0), 0);
        opd_optimizer_free(adam);
        opd_module_free(net);
    }
    CHECK(check_allocations_at(go_on, NULL, "going on", 300, false, __FILE__, __LINE__) > 100);
    forget();
}

//-- tied weights ------------------------------------------------------------------------------------------------------

/* One weight under two names, a part of it under a third, and a buffer that is the weight, too. */
static opd_module *tied_new(void) {
    opd_module *net = opd_module_new();
    OPD_SCOPE {
        opd_tensor *w = opd_tensor_set_requires_grad(opd_full(OPD_INTS(2, 2), OPD_V(0.5), OPD_FLOAT32), true);
        opd_tensor *buffer = opd_zeros(OPD_INTS(3), OPD_FLOAT32);
        CHECK_INT(opd_module_add(net, "embed.weight", w, OPD_MODULE_PARAMETER), 0);
        CHECK_INT(opd_module_add(net, "head.weight", w, OPD_MODULE_PARAMETER), 0);
        CHECK_INT(opd_module_add(net, "one.running_mean", buffer, OPD_MODULE_BUFFER), 0);
        CHECK_INT(opd_module_add(net, "two.running_mean", buffer, OPD_MODULE_BUFFER), 0);
    }
    return net;
}
static opd_optimizer *tied_adam(const opd_module *net) {
    opd_adam_options options = opd_adam_defaults();
    options.lr = 0.1;
    return opd_module_adam(net, NULL, &options);
}
/* What the weight is after two steps from 0.5: 0.3034 (torch.optim.Adam of the same loss), 0.1235 where each step is two. */
static void tied_train(const opd_module *net, opd_optimizer *adam, int steps) {
    CHECK_INT(opd_module_numel(net, "*.weight"), 4);
    CHECK_INT(opd_module_parameters(net, NULL, NULL, 0), 1);
    CHECK(opd_module_get(net, "embed.weight") == opd_module_get(net, "head.weight"));
    CHECK(opd_module_get(net, "one.running_mean") == opd_module_get(net, "two.running_mean"));
    for (int i = 0; i < steps; i++) {
        OPD_SCOPE {
            opd_tensor *a = opd_module_get(net, "embed.weight"), *b = opd_module_get(net, "head.weight");
            CHECK_INT(opd_backward(opd_sum(opd_mm(opd_mul(a, a), b))), 0);
            CHECK_INT(opd_optimizer_step(adam), 0);
            CHECK_INT(opd_optimizer_zero_grad(adam), 0);
        }
    }
}
static void tied_check(const opd_module *net) {
    CHECK_NEAR(element(net, "embed.weight"), 0.3034, 5e-5);
    CHECK_NEAR(element(net, "head.weight"), 0.3034, 5e-5);
}
TEST(tied_weights_are_stepped_once) {
    static const char *const files[] = {"a.pt", "a.safetensors"};
    for (int i = 0; i < 2; i++) {
        OPD_SCOPE {
            opd_module *net = tied_new();
            CHECK_INT(opd_module_save(net, in_folder(files[i])), 0);
            opd_module *opened = opd_module_open(in_folder(files[i]), NULL), *filled = tied_new();
            CHECK_OK();
            CHECK_INT(opd_module_count(opened), 4);
            opd_optimizer *adam = tied_adam(opened), *again;
            tied_train(opened, adam, 1);
            CHECK_INT(opd_training_save(in_folder(files[i]), opened, adam, NULL, NULL, 0), 0);
            tied_train(opened, adam, 1);
            tied_check(opened);
            opd_optimizer_free(adam);
            opd_module_free(opened);
            opened = opd_module_open(in_folder(files[i]), "model/");     /* a training goes on in a new module, and in one */
            opd_tensor_file *file = opd_tensor_file_open(in_folder(files[i]));
            adam = tied_adam(opened);
            again = tied_adam(filled);
            CHECK_INT(opd_training_load(file, opened, adam), 0);
            CHECK_INT(opd_training_load(file, filled, again), 0);
            CHECK_OK();
            tied_train(opened, adam, 1);
            tied_train(filled, again, 1);
            tied_check(opened);
            tied_check(filled);
            opd_tensor_file_close(file);
            opd_optimizer_free(adam);
            opd_optimizer_free(again);
            opd_module_free(net);
            opd_module_free(opened);
            opd_module_free(filled);
        }
    }
    forget();
}
/* A safetensors file has each tensor once, and lists its other names, like safetensors.torch.save_model. */
TEST(tied_weights_are_written_once) {
    static const char *const mine[] = {"embed.weight", "one.running_mean"};
    OPD_SCOPE {
        opd_module *net = tied_new(), *apart = opd_module_new();
        opd_module_load_options options;
        memset(&options, 0, sizeof options);
        CHECK_INT(opd_module_save(net, in_folder("a.safetensors")), 0);
        opd_tensor_file *file = opd_tensor_file_open(in_folder("a.safetensors"));
        CHECK_INT(opd_tensor_file_count(file), 2);
        CHECK_STR(opd_tensor_file_metadata(file, "head.weight"), "embed.weight");
        CHECK_STR(opd_tensor_file_metadata(file, "two.running_mean"), "one.running_mean");
        CHECK_INT(opd_module_load(net, file, NULL), 0);
        CHECK_INT(opd_module_add(apart, "embed.weight", opd_zeros(OPD_INTS(2, 2), OPD_FLOAT32), OPD_MODULE_PARAMETER), 0);
        CHECK_INT(opd_module_add(apart, "one.running_mean", opd_ones(OPD_INTS(3), OPD_FLOAT32), OPD_MODULE_BUFFER), 0);
        CHECK_INT(opd_module_load(apart, file, NULL), 0);      /* names that stand for others are none that is unexpected */
        CHECK_INT(opd_module_add(apart, "head.weight", opd_zeros(OPD_INTS(2, 2), OPD_FLOAT32), OPD_MODULE_PARAMETER), 0);
        CHECK_INT(opd_module_load(apart, file, NULL), 0);
        CHECK_NEAR(element(apart, "head.weight"), 0.5, 0);
        CHECK_INT(opd_module_add(apart, "tail.weight", opd_zeros(OPD_INTS(2, 2), OPD_FLOAT32), OPD_MODULE_PARAMETER), 0);
        CHECK_INT(opd_module_load(apart, file, NULL), -1);
        CHECK_ERROR(OPD_ERROR_NOT_FOUND, "missing in the file: \"tail.weight\"");
        opd_tensor_file_close(file);
        /* a file that has one of the names, and does not say so */
        opd_tensor *const tensors[] = {opd_ones(OPD_INTS(2, 2), OPD_FLOAT32), opd_ones(OPD_INTS(3), OPD_FLOAT32)};
        CHECK_INT(opd_safetensors_save(in_folder("a.safetensors"), mine, opd_tensors_of(tensors, 2), NULL), 0);
        file = opd_tensor_file_open(in_folder("a.safetensors"));
        CHECK_INT(opd_module_load(net, file, NULL), 0);
        CHECK_NEAR(element(net, "head.weight"), 1, 0);
        CHECK(opd_module_get(net, "embed.weight") == opd_module_get(net, "head.weight"));
        options.strip = "model.";
        CHECK_INT(opd_module_load(net, file, &options), -1);
        CHECK_ERROR(OPD_ERROR_NOT_FOUND, "\"embed.weight\", \"head.weight\"");
        opd_tensor_file_close(file);
        opd_module_free(net);
        opd_module_free(apart);
    }
    forget();
}
static int tied_out_and_in(void *unused) {
    opd_module *const net = opd_module_open(in_folder("a.pt"), NULL);
    int rc = net ? opd_module_save(net, in_folder("a.safetensors")) : -1;
    opd_module *const other = rc == 0 ? opd_module_open(in_folder("a.safetensors"), NULL) : NULL;
    (void)unused;
    if (!other) { rc = -1; }
    opd_module_free(net);
    opd_module_free(other);
    return rc;
}
TEST(tied_weights_without_memory) {
    opd_module *const net = tied_new();
    CHECK_INT(opd_module_save(net, in_folder("a.pt")), 0);
    opd_module_free(net);
    CHECK(check_allocations_at(tied_out_and_in, NULL, "tied", 200, false, __FILE__, __LINE__) > 40);
    forget();
}
/* In PyTorch, the saved tensors share one storage, and a step of Adam gives the same. */
TEST(tied_weights_with_pytorch) {
    char said[1000] = "", arguments[200];
    opd_module *const net = tied_new();
    opd_optimizer *const adam = tied_adam(net);
    tied_train(net, adam, 1);
    CHECK_INT(opd_training_save(in_folder("a.pt"), net, adam, NULL, NULL, 0), 0);
    (void)snprintf(arguments, sizeof arguments, "tied '%s'", folder);
    const int status = python("checkpoints.py", "torch", arguments, said, sizeof said);
    if (status == 0) {
        opd_module *const opened = opd_module_open(in_folder("b.pt"), "model/");
        opd_tensor_file *const file = opd_tensor_file_open(in_folder("b.pt"));
        opd_optimizer *const again = tied_adam(opened);
        CHECK_INT(opd_training_load(file, opened, again), 0);
        tied_train(opened, again, 1);
        tied_check(opened);
        opd_tensor_file_close(file);
        opd_optimizer_free(again);
        opd_module_free(opened);
    }
    opd_optimizer_free(adam);
    opd_module_free(net);
    forget();
    if (status == 77) { SKIP_WITHOUT_PYTHON("torch"); }
    if (status) { printf("%s\n", said); }
    CHECK_INT(status, 0);
}

//-- trainings with PyTorch --------------------------------------------------------------------------------------------

/* PyTorch continues a training that was saved after five steps, and has the same parameters as this library after ten;
   and vice versa. */
TEST(trainings_with_pytorch) {
    static const char *const names[] = {"sgd", "adam", "adamw"};
    char said[1000] = "", name[40], arguments[200];
    (void)in_folder("");
    for (int kind = SGD; kind <= ADAMW; kind++) {
        OPD_SCOPE {
            opd_module *net = net_new(5);
            opd_optimizer *optimizer = optimizer_new(kind, net, false);
            const char *const x = "x";
            const opd_value values = opd_value_tensor(input());
            train(net, optimizer, 5);
            (void)snprintf(name, sizeof name, "%s.pt", names[kind]);
            CHECK_INT(opd_training_save(in_folder(name), net, optimizer, &x, &values, 1), 0);
            train(net, optimizer, 5);
            (void)snprintf(name, sizeof name, "%s_10.pt", names[kind]);
            CHECK_INT(opd_training_save(in_folder(name), net, optimizer, NULL, NULL, 0), 0);
            opd_optimizer_free(optimizer);
            opd_module_free(net);
        }
    }
    (void)snprintf(arguments, sizeof arguments, "train '%s'", folder);
    const int status = python("checkpoints.py", "torch", arguments, said, sizeof said);
    for (int kind = SGD; kind <= ADAMW && status == 0; kind++) {
        OPD_SCOPE {
            opd_module *net = net_new(6);
            opd_optimizer *optimizer = optimizer_new(kind, net, true);
            (void)snprintf(name, sizeof name, "%s_torch.pt", names[kind]);
            opd_tensor_file *file = opd_tensor_file_open(in_folder(name));
            CHECK_INT(opd_training_load(file, net, optimizer), 0);
            train(net, optimizer, 5);
            opd_module *after = opd_module_open(in_folder(name), "after/");
            for (int64_t i = 0; i < opd_module_count(after); i++) {
                opd_tensor *want = opd_detach(opd_module_at(after, i)), *got = opd_detach(opd_module_get(net, opd_module_name(after, i)));
                CHECK_NEAR(opd_item_f64(opd_max(opd_abs(opd_sub(got, want)))), 0, 2e-6);
            }
            CHECK_INT(opd_module_count(after), 6);
            opd_module_free(after);
            opd_tensor_file_close(file);
            opd_optimizer_free(optimizer);
            opd_module_free(net);
        }
    }
    forget();
    if (status == 77) { SKIP_WITHOUT_PYTHON("torch"); }
    if (status) { printf("%s\n", said); }
    CHECK_INT(status, 0);
    CHECK(strstr(said, "checked: 1 files") != NULL);
}

//-- initialisers ------------------------------------------------------------------------------------------------------

static opd_tensor *empty(const int64_t *sizes, int count) {
    return opd_tensor_set_requires_grad(opd_empty(opd_ints_of(sizes, count), OPD_FLOAT32), true);
}
static double least(opd_tensor *tensor) { return opd_item_f64(opd_min(opd_detach(tensor))); }
static double most(opd_tensor *tensor) { return opd_item_f64(opd_max(opd_detach(tensor))); }
static double spread(opd_tensor *tensor) { return opd_item_f64(opd_std(opd_detach(tensor))); }
static double mean(opd_tensor *tensor) { return opd_item_f64(opd_mean(opd_detach(tensor))); }

TEST(distributions) {
    const int64_t sizes[] = {64, 32, 3, 3};
    opd_manual_seed(1);
    OPD_SCOPE {
        opd_tensor *t = empty(sizes, 4);
        const double in = 32 * 9, out = 64 * 9;
        CHECK(opd_init_uniform_(t, -2, 3) == t && opd_tensor_is_leaf(t) && opd_tensor_requires_grad(t));
        CHECK(least(t) >= -2 && least(t) < -1.99 && most(t) < 3 && most(t) > 2.99);
        CHECK(opd_init_normal_(t, 1, 2) == t);
        CHECK_NEAR(mean(t), 1, 0.06);
        CHECK_NEAR(spread(t), 2, 0.06);
        CHECK(opd_init_trunc_normal_(t, 0, 1, -2, 2) == t);
        CHECK(least(t) >= -2 && most(t) <= 2);
        CHECK_NEAR(spread(t), 0.8796, 0.02);
        CHECK(opd_init_trunc_normal_(t, 0, 1, 2, 4) == t);   /* a tail: its mean is (p(2) - p(4)) / (P(4) - P(2)) */
        CHECK(least(t) >= 2 && most(t) <= 4);
        CHECK_NEAR(mean(t), 2.366, 0.02);
        CHECK(opd_init_xavier_uniform_(t, 2) == t);
        CHECK_NEAR(most(t), 2 * sqrt(6 / (in + out)), 1e-3);
        CHECK_NEAR(least(t), -2 * sqrt(6 / (in + out)), 1e-3);
        CHECK(opd_init_xavier_normal_(t, 1) == t);
        CHECK_NEAR(spread(t), sqrt(2 / (in + out)), 2e-3);
        /* the initial values of PyTorch's layers */
        CHECK(opd_init_kaiming_uniform_(t, sqrt(5), false, "leaky_relu") == t);
        CHECK_NEAR(most(t), 1 / sqrt(in), 1e-3);
        CHECK(opd_init_kaiming_normal_(t, 0, true, "relu") == t);
        CHECK_NEAR(spread(t), sqrt(2 / out), 2e-3);
        CHECK(opd_init_ones_(t) == t && least(t) > 0.9);
        CHECK(opd_init_constant_(t, 0.25) == t && most(t) < 0.3);
        CHECK(opd_init_zeros_(t) == t && most(t) < 0.1);
    }
}
TEST(matrices) {
    const int64_t sizes[][2] = {{3, 5}, {5, 3}}, kernel[] = {4, 3, 3, 5}, cube[] = {6, 2, 4};
    OPD_SCOPE {
        for (int i = 0; i < 2; i++) {
            opd_tensor *t = empty(sizes[i], 2);
            CHECK(opd_init_orthogonal_(t, 2) == t);
            opd_tensor *d = opd_detach(t), *product = i ? opd_mm(opd_t(d), d) : opd_mm(d, opd_t(d));
            opd_tensor *off = opd_sub(product, opd_mul_Scalar(opd_eye(3, OPD_FLOAT32), OPD_V(4)));
            CHECK_NEAR(opd_item_f64(opd_max(opd_abs(off))), 0, 1e-5);
            CHECK(opd_init_eye_(t) == t);
            CHECK_NEAR(opd_item_f64(opd_sum(opd_detach(t))), 3, 0);
            CHECK_NEAR(opd_item_f64(opd_select(opd_select(opd_detach(t), 0, 2), 0, 2)), 1, 0);
            CHECK(opd_init_sparse_(t, 0.4, 1) == t);
            opd_tensor *zeros = opd_sum_dim(opd_eq_Scalar(opd_detach(t), OPD_V(0)), OPD_INTS(0), false);
            CHECK_NEAR(opd_item_f64(opd_min(zeros)), 2, 0);
            CHECK_NEAR(opd_item_f64(opd_max(zeros)), 2, 0);
        }
        opd_tensor *t = empty(kernel, 4);
        CHECK(opd_init_dirac_(t, 1) == t);
        CHECK_NEAR(opd_item_f64(opd_sum(opd_detach(t))), 3, 0);
        for (int i = 0; i < 3; i++) {
            CHECK_NEAR(opd_item_f64(opd_select(opd_select(opd_select(opd_select(opd_detach(t), 0, i), 0, i), 0, 1), 0, 2)), 1, 0);
        }
        t = empty(cube, 3);
        CHECK(opd_init_dirac_(t, 2) == t);
        CHECK_NEAR(opd_item_f64(opd_sum(opd_detach(t))), 4, 0);
        CHECK_NEAR(opd_item_f64(opd_select(opd_select(opd_select(opd_detach(t), 0, 4), 0, 1), 0, 2)), 1, 0);
        CHECK(opd_init_orthogonal_(empty(kernel, 4), 1) != NULL);
    }
}
TEST(gains_fans_and_errors) {
    const int64_t sizes[] = {4, 3, 2};
    int64_t in, out;
    CHECK_NEAR(opd_init_calculate_gain("tanh", NAN), 5.0 / 3, 0);
    CHECK_NEAR(opd_init_calculate_gain("relu", NAN), sqrt(2), 1e-15);
    CHECK_NEAR(opd_init_calculate_gain("leaky_relu", NAN), sqrt(2 / 1.0001), 1e-15);
    CHECK_NEAR(opd_init_calculate_gain("leaky_relu", 1), 1, 1e-15);
    CHECK_NEAR(opd_init_calculate_gain("selu", 0), 0.75, 0);
    CHECK_NEAR(opd_init_calculate_gain("conv_transpose3d", 0), 1, 0);
    CHECK(isnan(opd_init_calculate_gain("swish", 0)));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Unsupported nonlinearity swish");
    OPD_SCOPE {
        opd_tensor *t = empty(sizes, 3), *line = empty(sizes, 1);
        CHECK_INT(opd_init_fans(t, &in, &out), 0);
        CHECK(in == 6 && out == 8);
        CHECK_INT(opd_init_fans(line, &in, &out), -1);
        CHECK_ERROR(OPD_ERROR_SHAPE, "fewer than 2 dimensions");
        CHECK(!opd_init_xavier_uniform_(line, 1));
        CHECK_ERROR(OPD_ERROR_SHAPE, "fewer than 2 dimensions");
        CHECK(!opd_init_kaiming_normal_(t, 0, false, "gelu"));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "Unsupported nonlinearity gelu");
        CHECK(!opd_init_eye_(t));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "Only tensors with 2 dimensions are supported");
        CHECK(!opd_init_sparse_(line, 0.5, 1));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "Only tensors with 2 dimensions are supported");
        CHECK(!opd_init_dirac_(line, 1));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "Only tensors with 3, 4, or 5 dimensions are supported");
        CHECK(!opd_init_dirac_(t, 3));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "dim 0 must be divisible by groups");
        CHECK(!opd_init_orthogonal_(line, 1));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "Only tensors with 2 or more dimensions are supported");
        CHECK(!opd_init_trunc_normal_(t, 0, 1, 2, 1));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "expected std > 0 and from < to");
        CHECK(!opd_init_uniform_(NULL, 0, 1));
        CHECK(!opd_ok());
        opd_error_clear();
    }
}
CHECK_MAIN()
