#include "collective.h"

//== sharded checkpoints ===============================================================================================

/* The tensors that a checkpoint can have for each parameter: the parameter's values and its optimizer states. */
#define OPDI_SHARDED_STATES 6
static const char *const opdi_sharded_states[OPDI_SHARDED_STATES] = {"model", "exp_avg", "exp_avg_sq", "max_exp_avg_sq",
                                                               "momentum_buffer", "step"};
static const char *const opdi_sharded_options[] = {"lr", "momentum", "dampening", "nesterov", "beta1", "beta2", "eps",
                                                "weight_decay", "amsgrad", "maximize"};
enum { OPDI_SHARDED_OPTIONS = 10, OPDI_SLOTS = 2 };

/* A checkpoint while it is being written or read. */
typedef struct opdi_sharded_file {
    opd_parallel *parallel;
    const char *folder;
    const opd_module *module;
    const opd_optimizer *optimizer;
    int ranks, slot;             /* ranks: number of ranks that wrote the checkpoint, perhaps not as many as now; slot:
                                    0 or 1, a part of the names of the checkpoint's files */
    opd_tensor_file *index, **files;              /* [ranks] */
} opdi_sharded_file;
/* Returns a formatted text, whose memory belongs to the innermost scope.  On failure, returns NULL and sets an
   error. */
OPD_PRINTF_LIKE(1, 2) static const char *opdi_sharded_text(const char *format, ...) {
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    const int length = vsnprintf(NULL, 0, format, list);
    char *const text = length < 0 ? NULL : (char *)opdi_scope_alloc((size_t)length + 1);
    if (text) { (void)vsnprintf(text, (size_t)length + 1, format, again); }
    va_end(again);
    va_end(list);
    return text;
}
static const char *opdi_sharded_index(const opdi_sharded_file *sharded) {
    return opdi_sharded_text("%s/index.pt", sharded->folder);
}
static const char *opdi_sharded_part(const opdi_sharded_file *sharded, int slot, int rank, int ranks) {
    return opdi_sharded_text("%s/part-%c-%d-of-%d.safetensors", sharded->folder, 'a' + slot, rank, ranks);
}
/* Reads a whole file, and sets sum[0] to its number of bytes and sum[1] to their checksum.  Returns 0, or -1 and sets
   an error. */
static int opdi_sharded_sum(const char *path, int64_t sum[2]) {
    unsigned char block[4096];
    uint64_t hash = 0xCBF29CE484222325u;
    size_t got;
    FILE *const file = path ? opdi_file_open(path, "rb") : NULL;
    if (!file) {
        return opd_ok() ? opd_fail(OPD_ERROR_FILE, "%s: %s", path, opdi_errno_text()) : -1;
    }
    sum[0] = 0;
    while ((got = fread(block, 1, sizeof block, file)) > 0) {
        sum[0] += (int64_t)got;
        memset(block + got, 0, sizeof block - got);
        for (size_t i = 0; i < (got + 7) / 8; i++) {
            uint64_t word;
            memcpy(&word, block + 8 * i, 8);
            hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
            hash ^= hash >> 29;
        }
    }
    const bool failed = ferror(file) != 0;
    (void)fclose(file);
    sum[1] = (int64_t)(hash >> 1);
    return failed ? opd_fail(OPD_ERROR_FILE, "%s: the file cannot be read", path) : 0;
}
/* Tells all ranks whether this rank failed (rc), and the `count` numbers in `mine`.  If `all` is not NULL, fills it
   with these values of all ranks, [ranks][1 + count].  Returns 0 if no rank failed.  Otherwise returns -1: with this
   rank's error if it has one, else with an error that names the first rank that failed. */
static int opdi_sharded_agree(const opdi_sharded_file *sharded, int rc, const int64_t *mine, int count, int64_t *all,
                           const char *who) {
    const opd_group *const group = sharded->parallel->group;
    const size_t row = 1 + (size_t)count, bytes = row * (size_t)group->desc.size * sizeof(int64_t);
    const opd_code code = rc ? opd_error_code() : OPD_OK;
    char message[500];
    int64_t says[8];
    opd_transfer transfer;
    (void)snprintf(message, sizeof message, "%s", rc ? opd_error_message() : "");
    if (rc) { opd_error_clear(); }
    says[0] = rc != 0;
    for (int i = 0; i < count; i++) { says[1 + i] = rc ? 0 : mine[i]; }
    int64_t *const got = (int64_t *)opdi_alloc(bytes);
    memset(&transfer, 0, sizeof transfer);
    transfer.kind = OPD_COLLECTIVE_ALL_GATHER;
    transfer.dtype = OPD_INT64;
    transfer.count = (int64_t)row;
    transfer.send = says;
    transfer.recv = got;
    const int sent = got ? opd_work_wait(opd_group_start(sharded->parallel->group, &transfer)) : -1;
    int failed = -1;
    for (int rank = group->desc.size - 1; rank >= 0 && !sent; rank--) {
        if (got[row * (size_t)rank]) { failed = rank; }
    }
    if (all && !sent) { memcpy(all, got, bytes); }
    if (got) { opdi_free(got, bytes); }
    if (rc) {
        opd_error_clear();
        return opd_fail(code, "%s", message);
    }
    return sent ? -1 : failed < 0 ? 0 : opd_fail(OPD_ERROR_FILE, "%s: rank %d of process group '%s' failed: see the "
                                                 "error of that rank", who, failed, group->name);
}
/* Returns the sharded parameter for a tensor, or NULL if the tensor is not sharded. */
static const opdi_parallel_param *opdi_sharded_param(const opdi_sharded_file *sharded, const opd_tensor *tensor) {
    const int at = opdi_part_find(sharded->parallel, tensor);
    return at < 0 ? NULL : &sharded->parallel->params[at];
}
/* Returns the number of the parameter `tensor` in the optimizer, or -1. */
static int opdi_sharded_number(const opdi_sharded_file *sharded, const opd_tensor *tensor) {
    for (int i = 0; sharded->optimizer; i++) {
        const opd_tensor *const param = opd_optimizer_param(sharded->optimizer, i);
        if (!param || param == tensor) { return param ? i : -1; }
    }
    return -1;
}
/* Returns true if the optimizer has the state `state`. */
static bool opdi_sharded_has(const opdi_sharded_file *sharded, const char *state) {
    const bool sgd = sharded->optimizer && strcmp(opd_optimizer_name(sharded->optimizer), "SGD") == 0;
    if (!sharded->optimizer) { return false; }
    if (strcmp(state, "momentum_buffer") == 0) {
        return sgd && opd_optimizer_option(sharded->optimizer, 0, "momentum") > 0;
    }
    if (strcmp(state, "max_exp_avg_sq") == 0) {
        return !sgd && opd_optimizer_option(sharded->optimizer, 0, "amsgrad") > 0;
    }
    return !sgd;
}
/* Returns the number of the module's next tensor, from number i on, that checkpoints contain, or -1. */
static int64_t opdi_sharded_next(const opdi_sharded_file *sharded, int64_t i) {
    const int64_t count = opd_module_count(sharded->module);
    while (i < count && opd_module_kind_at(sharded->module, i) == OPD_MODULE_CONSTANT) { i++; }
    return i < count ? i : -1;
}
/* Fails if the module or the optimizer does not belong to the opd_parallel.  Returns 0, or -1 and sets an error. */
static int opdi_sharded_check(const opdi_sharded_file *sharded, const char *who) {
    if (!opd_ok()) { return -1; }
    if (!sharded->parallel || !sharded->parallel->sharded || !sharded->folder || !sharded->module) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s", who, !sharded->parallel ? "the parallel is NULL"
                        : !sharded->parallel->sharded ? "the parameters are not sharded: make the opd_parallel with "
                            "opd_sharded_parallel"
                        : !sharded->folder ? "the folder is NULL" : "the module is NULL");
    }
    for (int i = 0; i < sharded->parallel->count; i++) {
        int64_t at = 0;
        while (at < opd_module_count(sharded->module) &&
               opd_module_at(sharded->module, at) != sharded->parallel->params[i].tensor) { at++; }
        if (at == opd_module_count(sharded->module)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: sharded parameter %d is not in the module", who, i);
        }
    }
    return 0;
}

/* Writes this rank's file: this rank's parts and, on rank 0, all tensors that are not sharded.  Returns 0, or -1 and
   sets an error. */
static int opdi_sharded_write_part(const opdi_sharded_file *sharded, const char *path) {
    const size_t capacity = (size_t)opd_module_count(sharded->module) * OPDI_SHARDED_STATES + 1;
    const char **const names = (const char **)opdi_scope_alloc(capacity * sizeof *names);
    opd_tensor **const tensors = (opd_tensor **)opdi_scope_alloc(capacity * sizeof *tensors);
    int64_t count = 0;
    if (!names || !tensors || !path) { return -1; }
    for (int64_t i = opdi_sharded_next(sharded, 0); i >= 0; i = opdi_sharded_next(sharded, i + 1)) {
        opd_tensor *const tensor = opd_module_at(sharded->module, i);
        const int number = opdi_sharded_number(sharded, tensor);
        if (!opdi_sharded_param(sharded, tensor) && sharded->parallel->group->desc.rank != 0) { continue; }
        for (int k = 0; k < OPDI_SHARDED_STATES && opd_ok(); k++) {
            const char *const state = opdi_sharded_states[k];
            opd_tensor *const value = k == 0 ? tensor : number < 0 || !opdi_sharded_has(sharded, state) ? NULL
                : opd_optimizer_state(sharded->optimizer, number, state);
            if (!value) { continue; }
            names[count] = opdi_sharded_text("%s/%s", state, opd_module_name(sharded->module, i));
            tensors[count++] = opd_detach(value);
        }
    }
    return opd_ok() ? opd_safetensors_save(path, names, opd_tensors_of(tensors, count), NULL) : -1;
}
/* The entries of an index while it is being written. */
typedef struct opdi_sharded_list { const char **names; opd_value *values; int64_t count, capacity; } opdi_sharded_list;
static void opdi_sharded_put(opdi_sharded_list *list, const char *name, opd_value value) {
    if (!name || list->count == list->capacity) { return; }
    list->names[list->count] = name;
    list->values[list->count++] = value;
}
/* Adds the index entries for the module's tensors. */
static void opdi_sharded_put_module(const opdi_sharded_file *sharded, opdi_sharded_list *list) {
    char sizes[400];
    int k = 0;
    for (int64_t i = opdi_sharded_next(sharded, 0); i >= 0; i = opdi_sharded_next(sharded, i + 1)) {
        const opd_tensor *const tensor = opd_module_at(sharded->module, i);
        const opdi_parallel_param *const param = opdi_sharded_param(sharded, tensor);
        const char *const text = opdi_sharded_text("%s", opdi_sizes_text(param ? param->sizes : tensor->dims,
                                                param ? param->ndim : tensor->ndim, sizes, sizeof sizes));
        if (!text) { return; }
        const char *const name = opd_module_name(sharded->module, i);
        opdi_sharded_put(list, opdi_sharded_text("sharded/names/[%d]", k), opd_value_str(name));
        opdi_sharded_put(list, opdi_sharded_text("sharded/sizes/[%d]", k), opd_value_str(text));
        opdi_sharded_put(list, opdi_sharded_text("sharded/parts/[%d]", k++), opd_value_int(param ? param->part : -1));
    }
}
/* Returns true if optimizers of this kind have option number `option` of opdi_sharded_options. */
static bool opdi_sharded_has_option(const opdi_sharded_file *sharded, int option) {
    const bool sgd = strcmp(opd_optimizer_name(sharded->optimizer), "SGD") == 0;
    return option == 0 || option == 7 || option == 9 || (sgd ? option <= 3 : option >= 4);
}
/* Writes the index file, on rank 0.  opdi_sharded_agree has filled `said` [ranks][3]: for each rank, its rc, and
   the number of bytes and the checksum of its file.  `names` and `values` are `count` entries that the program adds.
   Returns 0, or -1 and sets an error. */
static int opdi_sharded_write_index(const opdi_sharded_file *sharded, const int64_t *said, const char *const *names,
                                 const opd_value *values, int64_t count) {
    const int groups = sharded->optimizer ? opd_optimizer_groups(sharded->optimizer) : 0;
    opdi_sharded_list list;
    list.count = 0;
    list.capacity = 8 + 2 * sharded->ranks + 3 * opd_module_count(sharded->module) +
        groups * (OPDI_SHARDED_OPTIONS + 1) +
        count;
    list.names = (const char **)opdi_scope_alloc((size_t)list.capacity * sizeof *list.names);
    list.values = (opd_value *)opdi_scope_alloc((size_t)list.capacity * sizeof *list.values);
    if (!list.names || !list.values) { return -1; }
    opdi_sharded_put(&list, "sharded/format", opd_value_int(1));
    opdi_sharded_put(&list, "sharded/ranks", opd_value_int(sharded->ranks));
    opdi_sharded_put(&list, "sharded/slot", opd_value_int(sharded->slot));
    opdi_sharded_put(&list, "sharded/optimizer", opd_value_str(groups ? opd_optimizer_name(sharded->optimizer) : ""));
    opdi_sharded_put(&list, "sharded/groups", opd_value_int(groups));
    for (int rank = 0; rank < sharded->ranks; rank++) {
        opdi_sharded_put(&list, opdi_sharded_text("sharded/bytes/[%d]", rank), opd_value_int(said[3 * rank + 1]));
        opdi_sharded_put(&list, opdi_sharded_text("sharded/sums/[%d]", rank), opd_value_int(said[3 * rank + 2]));
    }
    opdi_sharded_put_module(sharded, &list);
    for (int group = 0; group < groups; group++) {
        opdi_sharded_put(&list, opdi_sharded_text("sharded/options/[%d]/size", group),
                      opd_value_int(opd_optimizer_group_size(sharded->optimizer, group)));
        for (int k = 0; k < OPDI_SHARDED_OPTIONS; k++) {
            if (!opdi_sharded_has_option(sharded, k)) { continue; }
            opdi_sharded_put(&list, opdi_sharded_text("sharded/options/[%d]/%s", group, opdi_sharded_options[k]),
                          opd_value_double(opd_optimizer_option(sharded->optimizer, group, opdi_sharded_options[k])));
        }
    }
    for (int64_t i = 0; i < count; i++) { opdi_sharded_put(&list, names[i], values[i]); }
    return opd_ok() ? opd_checkpoint_file_save(opdi_sharded_index(sharded), list.names, list.values, list.count) : -1;
}
/* Returns the integer `name` of the index, which must be between -1 and `most`.  On failure, returns a negative number
   and sets an error. */
static int64_t opdi_sharded_int(const opdi_sharded_file *sharded, const char *name, int64_t most) {
    opd_value value;
    if (!name || opd_tensor_file_value(sharded->index, name, &value)) { return -1; }
    if (value.tag == OPD_TAG_INT && value.u.i >= -1 && value.u.i <= most) { return value.u.i; }
    (void)opd_fail(OPD_ERROR_FILE, "%s/index.pt: '%s' is not a valid number", sharded->folder, name);
    return -2;
}
/* Finds out which checkpoint is in the folder.  Returns 1 and sets sharded->ranks and sharded->slot.  Returns 0 if
   there is no checkpoint or it is damaged, or -1 and sets an error if that cannot be found out. */
static int opdi_sharded_old(opdi_sharded_file *sharded) {
    const int mark = opd_error_mark();
    const char *const path = opdi_sharded_index(sharded);
    FILE *const file = path ? opdi_file_open(path, "rb") : NULL;
    if (!path || (!file && errno == ENOENT)) { return path ? 0 : -1; }
    if (!file) { return opd_fail(OPD_ERROR_FILE, "%s: %s", path, opdi_errno_text()); }
    (void)fclose(file);
    sharded->index = opd_tensor_file_open(path);
    sharded->ranks = sharded->index ? (int)opdi_sharded_int(sharded, "sharded/ranks", 1 << 20) : -1;
    sharded->slot = sharded->ranks > 0 ? (int)opdi_sharded_int(sharded, "sharded/slot", OPDI_SLOTS - 1) : -1;
    opd_tensor_file_close(sharded->index);
    sharded->index = NULL;
    if (opdi_error_passes()) { return -1; }
    (void)opd_error_rewind(mark);
    return sharded->ranks > 0 && sharded->slot >= 0;
}
/* Writes all files of a checkpoint, in such an order that the previous checkpoint stays intact until the end.  `rc`
   tells whether this rank has already failed.  Returns 0, or -1 and sets an error. */
static int opdi_sharded_write(opdi_sharded_file *sharded, int rc, const char *const *names, const opd_value *values,
                              int64_t count) {
    const opd_group *const group = sharded->parallel->group;
    const bool first = group->desc.rank == 0;
    opdi_sharded_file old = *sharded;
    const int found = rc || !first ? 0 : opdi_sharded_old(&old);
    const bool has_old = found > 0;
    int64_t slot = has_old ? (old.slot + 1) % OPDI_SLOTS : 0, sum[2] = {0, 0};
    int64_t *const said = rc ? NULL : (int64_t *)opdi_scope_alloc(3 * (size_t)group->desc.size * sizeof *said);
    if (!said || found < 0) { rc = -1; }
    if (opdi_sharded_agree(sharded, rc, NULL, 0, NULL, "opd_sharded_save")) { return -1; }
    if (opdi_parallel_move(sharded->parallel, OPD_COLLECTIVE_BROADCAST, OPD_REDUCTION_SUM, OPD_INT64, &slot, 1)) {
        return -1;
    }
    sharded->slot = (int)slot;
    sharded->ranks = group->desc.size;
    const char *const path = opdi_sharded_part(sharded, sharded->slot, group->desc.rank, sharded->ranks);
    rc = opdi_sharded_write_part(sharded, path) || opdi_sharded_sum(path, sum) ? -1 : 0;
    if (opdi_sharded_agree(sharded, rc, sum, 2, said, "opd_sharded_save")) { return -1; }
    rc = first ? opdi_sharded_write_index(sharded, said, names, values, count) : 0;
    if (opdi_sharded_agree(sharded, rc, NULL, 0, NULL, "opd_sharded_save")) { return -1; }
    for (int rank = 0; has_old && rank < old.ranks; rank++) {
        const char *const part = opdi_sharded_part(&old, old.slot, rank, old.ranks);
        if (part) { (void)opdi_file_remove(part); }
    }
    return 0;
}
int opd_sharded_save(opd_parallel *parallel, const char *folder, const opd_module *module,
                     const opd_optimizer *optimizer, const char *const *names, const opd_value *values,
                     int64_t count) {
    opdi_sharded_file sharded;
    int rc = 0;
    memset(&sharded, 0, sizeof sharded);
    sharded.parallel = parallel;
    sharded.folder = folder;
    sharded.module = module;
    sharded.optimizer = optimizer;
    if (opdi_sharded_check(&sharded, "opd_sharded_save")) { return -1; }
    for (int64_t i = 0; i < count && !rc; i++) {
        if (!names || !values || !names[i] || strncmp(names[i], "sharded", 7) == 0) {
            rc = opd_fail(OPD_ERROR_ARGUMENT, "opd_sharded_save: value %lld needs a name, which must not begin with "
                          "'sharded'", (long long)i);
        }
    }
    const bool was = opd_grad_mode_set(false);
    OPD_SCOPE { rc = opdi_sharded_write(&sharded, rc, names, values, count); }
    (void)opd_grad_mode_set(was);
    return rc;
}

/* Opens the files of a checkpoint.  Checks the bytes of those files whose number, modulo the number of ranks, is the
   number of this rank.  Returns 0, or -1 and sets an error. */
static int opdi_sharded_open(opdi_sharded_file *sharded) {
    const opd_group *const group = sharded->parallel->group;
    const char *const path = opdi_sharded_index(sharded);
    sharded->index = path ? opd_tensor_file_open(path) : NULL;
    if (!sharded->index) { return -1; }
    if (opd_tensor_file_find(sharded->index, "sharded/format") < 0) {
        return opd_fail(OPD_ERROR_FILE, "%s: the file is not the index of a sharded checkpoint", path);
    }
    const int64_t format = opdi_sharded_int(sharded, "sharded/format", INT64_MAX);
    const int64_t ranks = opdi_sharded_int(sharded, "sharded/ranks", 1 << 20),
        slot = opdi_sharded_int(sharded, "sharded/slot",
                                                                                              OPDI_SLOTS - 1);
    if (opd_ok() && (format != 1 || ranks < 1 || slot < 0)) {
        return opd_fail(OPD_ERROR_FILE, "%s: the index has version %lld of the format, which cannot be read", path,
                        (long long)format);
    }
    if (!opd_ok()) { return -1; }
    sharded->files = (opd_tensor_file **)opdi_scope_alloc((size_t)ranks * sizeof *sharded->files);
    if (!sharded->files) { return -1; }
    memset(sharded->files, 0, (size_t)ranks * sizeof *sharded->files);
    sharded->ranks = (int)ranks;
    sharded->slot = (int)slot;
    for (int rank = 0; rank < sharded->ranks; rank++) {
        const char *const part = opdi_sharded_part(sharded, sharded->slot, rank, sharded->ranks);
        const int64_t bytes = opdi_sharded_int(sharded, opdi_sharded_text("sharded/bytes/%d", rank), INT64_MAX);
        const int64_t right = opdi_sharded_int(sharded, opdi_sharded_text("sharded/sums/%d", rank), INT64_MAX);
        int64_t sum[2] = {bytes, right};
        if (!opd_ok() || (rank % group->desc.size == group->desc.rank && opdi_sharded_sum(part, sum))) { return -1; }
        if (sum[0] != bytes || sum[1] != right) {
            return opd_fail(OPD_ERROR_FILE, "%s: the file is damaged: it has %lld bytes, and should have %lld%s", part,
                            (long long)sum[0], (long long)bytes, sum[0] == bytes
                            ? ", but not the bytes that were written" : "");
        }
        sharded->files[rank] = opd_tensor_file_open(part);
        if (!sharded->files[rank]) { return -1; }
    }
    return 0;
}
static void opdi_sharded_close(opdi_sharded_file *sharded) {
    for (int rank = 0; sharded->files && rank < sharded->ranks; rank++) { opd_tensor_file_close(sharded->files[rank]); }
    opd_tensor_file_close(sharded->index);
}
/* Copies flat->numel elements of tensor `name` of a checkpoint, from element `begin` on, into `flat`.  The
   checkpoint has the tensor in parts of `part` elements or, if `part` is -1, as a whole in the first file.  Returns
   0, or -1 and sets an error. */
static int opdi_sharded_fill(const opdi_sharded_file *sharded, const char *name, int64_t part, int64_t begin,
                             opd_tensor *flat,
                          int64_t numel) {
    const int64_t end = OPDI_MIN(begin + flat->numel, numel), row = -1;
    for (int rank = 0; rank < (part < 0 ? 1 : sharded->ranks); rank++) {
        const int64_t first = part < 0 ? 0 : rank * part, behind = part < 0 ? numel : first + part;
        const int64_t from = OPDI_MAX(first, begin), to = OPDI_MIN(behind, end);
        if (from >= to) { continue; }
        opd_tensor *const its = opd_tensor_file_get(sharded->files[rank], name);
        if (!its) { return -1; }
        if (its->numel != (part < 0 ? numel : part)) {
            return opd_fail(OPD_ERROR_FILE, "%s: '%s' has %lld element(s), and should have %lld",
                            opdi_sharded_part(sharded, sharded->slot, rank, sharded->ranks), name,
                                (long long)its->numel,
                            (long long)(part < 0 ? numel : part));
        }
        opd_tensor *const values = opd_narrow(opd_reshape(its, opd_ints_of(&row, 1)), 0, from - first, to - from);
        if (!opd_copy_(opd_narrow(flat, 0, from - begin, to - from), values)) { return -1; }
    }
    return 0;
}
/* Reads this rank's part of the tensor `name` (values or an optimizer state) into a new tensor like `like`.  `param` is
   NULL if the tensor is not sharded.  Returns NULL and sets an error on failure. */
static opd_tensor *opdi_sharded_read(const opdi_sharded_file *sharded, const char *name, int64_t part,
                                     const opd_tensor *like,
                                  const opdi_parallel_param *param) {
    const int64_t begin = param ? sharded->parallel->group->desc.rank * param->part : 0;
    opd_tensor *const flat = opd_zeros(opd_ints_of(&like->numel, 1), (opd_scalar_type)like->dtype);
    if (!flat || opdi_sharded_fill(sharded, name, part, begin, flat, param ? param->numel : like->numel)) {
        return NULL;
    }
    return opd_view(flat, opd_ints_of(like->dims, like->ndim));
}
/* Returns the row of the index for tensor i of the module, or -1 and sets an error.  The search begins at row
   `hint`. */
static int opdi_sharded_row(const opdi_sharded_file *sharded, int64_t i, int hint) {
    const char *const name = opd_module_name(sharded->module, i);
    for (int row = hint, seen = 0; seen < 2; row++) {
        const char *const key = opdi_sharded_text("sharded/names/%d", row);
        opd_value value;
        if (!key) { return -1; }
        if (opd_tensor_file_find(sharded->index, key) < 0) {   /* after the last row, go on at the first */
            seen++;
            row = -1;
            continue;
        }
        if (opd_tensor_file_value(sharded->index, key, &value)) { return -1; }
        if (value.tag == OPD_TAG_STR && strcmp(value.u.s, name) == 0) { return row; }
    }
    return opd_fail(OPD_ERROR_NOT_FOUND, "opd_sharded_load: the checkpoint in %s has no '%s'", sharded->folder, name);
}
/* Reads the values and the optimizer states of tensor i of the module into staged[OPDI_SHARDED_STATES].  The search
   for its row in the index begins at `hint`.  Returns this row, or -1 and sets an error. */
static int opdi_sharded_stage(const opdi_sharded_file *sharded, int64_t i, int hint, opd_tensor **staged) {
    opd_tensor *const tensor = opd_module_at(sharded->module, i);
    const opdi_parallel_param *const param = opdi_sharded_param(sharded, tensor);
    const int row = opdi_sharded_row(sharded, i, hint), number = opdi_sharded_number(sharded, tensor);
    const char *const name = opd_module_name(sharded->module, i);
    char sizes[400];
    opd_value value;
    if (row < 0 || opd_tensor_file_value(sharded->index, opdi_sharded_text("sharded/sizes/%d", row), &value)) {
        return -1;
    }
    const char *const here = opdi_sizes_text(param ? param->sizes : tensor->dims, param ? param->ndim : tensor->ndim,
                                             sizes, sizeof sizes);
    if (value.tag != OPD_TAG_STR || strcmp(value.u.s, here) != 0) {
        return opd_fail(OPD_ERROR_SHAPE, "opd_sharded_load: '%s' has the sizes [%s], but in the checkpoint [%s]", name,
                        here, value.tag == OPD_TAG_STR ? value.u.s : "?");
    }
    const int64_t part = opdi_sharded_int(sharded, opdi_sharded_text("sharded/parts/%d", row),
                                          INT64_MAX / sharded->ranks);
    for (int k = 0; k < OPDI_SHARDED_STATES && opd_ok(); k++) {
        const char *const state = opdi_sharded_states[k], *const key = opdi_sharded_text("%s/%s", state, name);
        if (k > 0 && (number < 0 || !opdi_sharded_has(sharded, state) || !key ||
                      opd_tensor_file_find(sharded->files[0], key) < 0)) { continue; }
        staged[k] = k == OPDI_SHARDED_STATES - 1 ? opd_tensor_file_get(sharded->files[0], key)
            : opdi_sharded_read(sharded, key, part, tensor, param);
    }
    return opd_ok() ? row : -1;
}
/* Reads the optimizer's options into options[groups][OPDI_SHARDED_OPTIONS].  Fails if the checkpoint is of another
   kind of optimizer.  Returns 0, or -1 and sets an error. */
static int opdi_sharded_options_read(const opdi_sharded_file *sharded, double *options) {
    const int groups = opd_optimizer_groups(sharded->optimizer);
    opd_value value;
    if (opd_tensor_file_value(sharded->index, "sharded/optimizer", &value)) { return -1; }
    if (value.tag != OPD_TAG_STR || strcmp(value.u.s, opd_optimizer_name(sharded->optimizer)) != 0 ||
        opdi_sharded_int(sharded, "sharded/groups", INT64_MAX) != groups) {
        return opd_ok() ? opd_fail(OPD_ERROR_ARGUMENT, "opd_sharded_load: the optimizer is %s with %d group(s), but "
                                   "the optimizer of the checkpoint is %s", opd_optimizer_name(sharded->optimizer),
                                   groups, value.tag != OPD_TAG_STR ? "?" : *value.u.s ? value.u.s : "none") : -1;
    }
    for (int group = 0; group < groups; group++) {
        const int size = opd_optimizer_group_size(sharded->optimizer, group);
        if (opdi_sharded_int(sharded, opdi_sharded_text("sharded/options/%d/size", group), INT64_MAX) != size) {
            return opd_ok() ? opd_fail(OPD_ERROR_ARGUMENT, "opd_sharded_load: group %d of the optimizer has %d "
                                       "parameter(s), but another number in the checkpoint", group, size) : -1;
        }
        for (int k = 0; k < OPDI_SHARDED_OPTIONS; k++) {
            const char *const key = opdi_sharded_text("sharded/options/%d/%s", group, opdi_sharded_options[k]);
            if (!key) { return -1; }
            if (!opdi_sharded_has_option(sharded, k)) { continue; }
            if (opd_tensor_file_number(sharded->index, key, &options[group * OPDI_SHARDED_OPTIONS + k])) { return -1; }
        }
    }
    return 0;
}
/* Copies the staged values and options into the module and the optimizer.  Returns 0, or -1 and sets an error. */
static int opdi_sharded_commit(const opdi_sharded_file *sharded, opd_optimizer *optimizer, opd_tensor *const *staged,
                            const double *options) {
    for (int group = 0; optimizer && group < opd_optimizer_groups(optimizer); group++) {
        for (int k = 0; k < OPDI_SHARDED_OPTIONS; k++) {
            if (opdi_sharded_has_option(sharded, k) &&
                opd_optimizer_set_option(optimizer, group, opdi_sharded_options[k],
                                                                     options[group * OPDI_SHARDED_OPTIONS + k])) {
                return -1;
            }
        }
    }
    for (int64_t i = opdi_sharded_next(sharded, 0); i >= 0; i = opdi_sharded_next(sharded, i + 1)) {
        opd_tensor *const *const its = staged + i * OPDI_SHARDED_STATES,
            *const tensor = opd_module_at(sharded->module, i);
        const int number = opdi_sharded_number(sharded, tensor);
        if (!opd_copy_(tensor, its[0])) { return -1; }
        if (number >= 0 && opd_optimizer_forget(optimizer, number)) { return -1; }
        for (int k = 1; k < OPDI_SHARDED_STATES; k++) {
            if (its[k] && opd_optimizer_set_state(optimizer, number, opdi_sharded_states[k], its[k])) { return -1; }
        }
    }
    return 0;
}
int opd_sharded_load(opd_parallel *parallel, const char *folder, opd_module *module, opd_optimizer *optimizer) {
    opdi_sharded_file sharded;
    int rc = 0, row = 0;
    memset(&sharded, 0, sizeof sharded);
    sharded.parallel = parallel;
    sharded.folder = folder;
    sharded.module = module;
    sharded.optimizer = optimizer;
    if (opdi_sharded_check(&sharded, "opd_sharded_load")) { return -1; }
    const bool was = opd_grad_mode_set(false);
    OPD_SCOPE {
        const size_t count = (size_t)opd_module_count(module) * OPDI_SHARDED_STATES + 1;
        const size_t groups = optimizer ? (size_t)opd_optimizer_groups(optimizer) : 0;
        opd_tensor **const staged = (opd_tensor **)opdi_scope_alloc(count * sizeof *staged);
        double *const options = (double *)opdi_scope_alloc((groups * OPDI_SHARDED_OPTIONS + 1) * sizeof *options);
        rc = !staged || !options || opdi_sharded_open(&sharded) ? -1 : 0;
        if (staged) { memset(staged, 0, count * sizeof *staged); }
        if (!rc && optimizer) { rc = opdi_sharded_options_read(&sharded, options); }
        for (int64_t i = opdi_sharded_next(&sharded, 0); !rc && i >= 0; i = opdi_sharded_next(&sharded, i + 1)) {
            row = opdi_sharded_stage(&sharded, i, row, staged + i * OPDI_SHARDED_STATES);
            rc = row++ < 0 ? -1 : 0;
        }
        if (!rc && opd_tensor_file_find(sharded.index, opdi_sharded_text("sharded/names/%d", row)) >= 0) {
            rc = opd_fail(OPD_ERROR_ARGUMENT, "opd_sharded_load: the checkpoint in %s has more tensors than the module",
                          folder);
        }
        rc = opdi_sharded_agree(&sharded, rc, NULL, 0, NULL, "opd_sharded_load");
        if (!rc) { rc = opdi_sharded_commit(&sharded, optimizer, staged, options); }
        opdi_sharded_close(&sharded);
    }
    (void)opd_grad_mode_set(was);
    return rc;
}
