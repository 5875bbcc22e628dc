/* Named parameters and buffers. */
#include "../opdispatch.h"
#include "check.h"

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
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "there is a 'w' already");
        CHECK_INT(opd_module_add(module, "", leaf, OPD_MODULE_BUFFER), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "the name is empty");
        CHECK_INT(opd_module_add(module, NULL, leaf, OPD_MODULE_BUFFER), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "the name is NULL");
        CHECK_INT(opd_module_add(module, "v", NULL, OPD_MODULE_BUFFER), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "the tensor is NULL");
        CHECK_INT(opd_module_add(module, "v", leaf, (opd_module_kind)3), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "there is no kind 3");
        CHECK_INT(opd_module_add(module, "v", sum, OPD_MODULE_PARAMETER), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "cannot assign a non-leaf Tensor to parameter 'v'");
        CHECK_INT(opd_module_set(module, "w", sum), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "cannot assign a non-leaf Tensor to parameter 'w'");
        CHECK_INT(opd_module_set(module, "v", leaf), -1);
        CHECK_ERROR(OPD_ERROR_NOT_FOUND, "the module has no 'v'");
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
CHECK_MAIN()
