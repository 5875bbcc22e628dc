/* Kernels that a call can reach only after the program has called a certain function, for example opd_vmap_begin.  Here
   it calls none of these functions before the first test, which includes the keys nevertheless. */
#include "../check.h"

TEST(keys_without_their_kernels) {
    static const int keys[] = {OPD_F_DYNAMIC_LAYER_FRONT, OPD_F_DYNAMIC_LAYER_BACK, OPD_F_BATCHED, OPD_F_TRACER, OPD_F_FAKE};
    for (int i = 0; i < 5; i++) {
        const opd_key_guard guard = opd_keys_include(opd_keyset_make((uint64_t)1 << (keys[i] - 1), 0));
        opd_tensor *sum = opd_add(opd_ones(OPD_INTS(2), OPD_FLOAT32), opd_ones(OPD_INTS(2), OPD_FLOAT32));
        opd_keys_restore(guard);
        CHECK_OK();
        CHECK(sum && opd_data_f32(sum)[1] == 2);
    }
}
TEST(batching_rules_outside_of_vmap) {
    static const struct { opd_kernel rule; const char *name; } rules[] = {
        {opd_batch_pointwise, "opd_batch_pointwise"}, {opd_batch_shift_dim, "opd_batch_shift_dim"},
        {opd_batch_view, "opd_batch_view"}, {opd_batch_decompose, "opd_batch_decompose"},
        {opd_batch_factory, "opd_batch_factory"}, {opd_batch_loop, "opd_batch_loop"}};
    opd_library *lib = opd_library_open(OPD_DEF, "late", NULL, __FILE__, __LINE__);
    for (int i = 0; i < 6; i++) {
        char name[60];
        opd_op_desc desc;
        memset(&desc, 0, sizeof desc);
        (void)snprintf(name, sizeof name, "rule%d(Tensor x) -> Tensor", i);
        desc.schema = name;
        desc.cpu = rules[i].rule;
        CHECK_INT(opd_define(lib, &desc), 0);
        (void)snprintf(name, sizeof name, "late::rule%d", i);
        CHECK(!OPD_CALL(opd_find(name), opd_ones(OPD_INTS(2), OPD_FLOAT32)));
        CHECK(strstr(opd_error_message(), rules[i].name) != NULL);
        CHECK(strstr(opd_error_message(), "no batching rule is running") != NULL);
        opd_error_clear();
    }
    opd_library_close(lib);
}
CHECK_MAIN()
