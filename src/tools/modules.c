#include "tools.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>modules      named parameters and buffers: filling, saving and training; initialisers
//
//  A module is a list of named tensors, with a hash table of the names.  This section uses files and optimizers through
//  their public functions.  It follows torch/nn/modules/module.py (load_state_dict), torch/optim/optimizer.py
//  (state_dict) and torch/nn/init.py.
//----------------------------------------------------------------------------------------------------------------------

//== the list of named tensors =========================================================================================

opd_module *opd_module_new(void) {
    opd_module *module = opd_ok() ? (opd_module *)opdi_alloc(sizeof *module) : NULL;
    if (!module) { return NULL; }
    memset(module, 0, sizeof *module);
    module->refs = 1;
    return module;
}
opd_module *opd_module_keep(opd_module *module) {
    if (module) { opdi_ref_up(&module->refs); }
    return module;
}
static void opdi_module_lists_free(opd_module *module) {
    opdi_free(module->items, (size_t)module->cap * sizeof *module->items);
    opdi_free(module->table, (size_t)(2 * module->cap) * sizeof *module->table);
}
void opd_module_free(opd_module *module) {
    if (!module || opdi_ref_down(&module->refs)) { return; }
    for (int64_t i = 0; i < module->count; i++) {
        opdi_release(module->items[i].tensor);
        opdi_free(module->items[i].name, module->items[i].bytes);
    }
    opdi_module_lists_free(module);
    opdi_free(module, sizeof *module);
}
/* Returns the slot of the hash table that has `name`, or the empty slot where it would be inserted. */
static int64_t opdi_module_slot(const opd_module *module, const char *name) {
    const uint64_t mask = (uint64_t)(2 * module->cap - 1);
    uint64_t slot = opdi_schema_hash_text(UINT64_C(0xcbf29ce484222325), name);
    for (slot = (slot ^ slot >> 29) & mask;
         module->table[slot] >= 0 && strcmp(module->items[module->table[slot]].name, name) != 0;
         slot = (slot + 1) & mask) { }
    return (int64_t)slot;
}
/* Doubles the capacity.  Returns 0.  On failure, returns -1, sets an error and does not change the module. */
static int opdi_module_grow(opd_module *module) {
    opd_module big = *module;
    big.cap = module->cap ? 2 * module->cap : 16;
    big.items = (opdi_module_item *)opdi_alloc((size_t)big.cap * sizeof *big.items);
    big.table = big.items ? (int64_t *)opdi_alloc((size_t)(2 * big.cap) * sizeof *big.table) : NULL;
    if (!big.table) {
        opdi_free(big.items, (size_t)big.cap * sizeof *big.items);
        return -1;
    }
    for (int64_t i = 0; i < 2 * big.cap; i++) { big.table[i] = -1; }
    for (int64_t i = 0; i < big.count; i++) {
        big.items[i] = module->items[i];
        big.table[opdi_module_slot(&big, big.items[i].name)] = i;
    }
    opdi_module_lists_free(module);
    module->cap = big.cap;
    module->items = big.items;
    module->table = big.table;
    return 0;
}
int64_t opd_module_find(const opd_module *module, const char *name) {
    return module && name && module->cap ? module->table[opdi_module_slot(module, name)] : -1;
}
OPDI_INTERNAL int opdi_null_module(const opd_module *module, const char *function) {
    return module ? 0 : opd_fail(OPD_ERROR_ARGUMENT, "%s: the module is NULL", function);
}
/* Checks that `tensor` can be added under `name` as an item of the kind `kind`.  `function` is the caller's name in
   errors.  Returns 0, or -1 and sets an error. */
static int opdi_module_check(const char *name, const opd_tensor *tensor, opd_module_kind kind, const char *function) {
    if (opdi_null_tensor(tensor, function)) { return -1; }
    if ((int)kind < OPD_MODULE_PARAMETER || kind > OPD_MODULE_CONSTANT) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: %d is not a kind of entry (OPD_MODULE_...)", function, (int)kind);
    }
    if (kind == OPD_MODULE_PARAMETER && tensor->grad_fn) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: cannot assign a non-leaf Tensor to parameter '%.300s'", function,
                        name);
    }
    return 0;
}
int opd_module_add(opd_module *module, const char *name, opd_tensor *tensor, opd_module_kind kind) {
    if (!opd_ok() || opdi_null_module(module, "opd_module_add")) { return -1; }
    if (!name || !*name) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_module_add: the name is %s", name ? "empty" : "NULL");
    }
    if (opdi_module_check(name, tensor, kind, "opd_module_add")) { return -1; }
    if (opd_module_find(module, name) >= 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_module_add: the module already has a '%.300s'", name);
    }
    if (module->count == module->cap && opdi_module_grow(module)) { return -1; }
    opdi_module_item item;
    item.bytes = strlen(name) + 1;
    if (!(item.name = (char *)opdi_alloc(item.bytes))) { return -1; }
    memcpy(item.name, name, item.bytes);
    item.tensor = opdi_keep(tensor);
    item.kind = kind;
    module->table[opdi_module_slot(module, name)] = module->count;
    module->items[module->count++] = item;
    return 0;
}
static const char *opdi_module_name_at(const void *module, int64_t i) {
    return opd_module_name((const opd_module *)module, i);
}
/* Returns the index of item `name`.  Returns -1 and sets an error that names `function` if the module has no such
   item. */
static int64_t opdi_module_place(const opd_module *module, const char *name, const char *function) {
    if (opdi_null_module(module, function)) { return -1; }
    const int64_t i = opd_module_find(module, name);
    char near_text[400];
    if (i < 0) {
        (void)opd_fail(OPD_ERROR_NOT_FOUND, "%s: the module has no '%.300s'%s", function, name ? name : "NULL",
                       opdi_did_you_mean(near_text, name, opdi_module_name_at, module, "opd_module_name"));
    }
    return i;
}
int opd_module_set(opd_module *module, const char *name, opd_tensor *tensor) {
    const int64_t i = opd_ok() ? opdi_module_place(module, name, "opd_module_set") : -1;
    if (i < 0 || opdi_module_check(name, tensor, module->items[i].kind, "opd_module_set")) { return -1; }
    opd_tensor *was = module->items[i].tensor;
    module->items[i].tensor = opdi_keep(tensor);
    module->changes++;
    opdi_release(was);
    return 0;
}
opd_tensor *opd_module_get(const opd_module *module, const char *name) {
    const int64_t i = opdi_module_place(module, name, "opd_module_get");
    return i < 0 ? NULL : module->items[i].tensor;
}
int64_t opd_module_count(const opd_module *module) { return module ? module->count : 0; }
const char *opd_module_name(const opd_module *module, int64_t i) {
    return module && i >= 0 && i < module->count ? module->items[i].name : NULL;
}
opd_tensor *opd_module_at(const opd_module *module, int64_t i) {
    return module && i >= 0 && i < module->count ? module->items[i].tensor : NULL;
}
opd_module_kind opd_module_kind_at(const opd_module *module, int64_t i) {
    return module && i >= 0 && i < module->count ? module->items[i].kind : OPD_MODULE_CONSTANT;
}

//== choosing parameters by patterns ===================================================================================

/* Returns true if `pattern` matches `text`: '*' stands for any number of characters, '?' for one character. */
static bool opdi_glob(const char *pattern, const char *text) {
    const char *star = NULL, *again = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            again = text;
        } else if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++again;
        } else {
            return false;
        }
    }
    while (*pattern == '*') { pattern++; }
    return !*pattern;
}
OPDI_INTERNAL bool opdi_module_matches(const char *pattern, const char *name) {
    return !pattern || (*pattern == '!' ? !opdi_glob(pattern + 1, name) : opdi_glob(pattern, name));
}
/* Calls `visit` once for each floating-point or complex parameter whose name matches `pattern`.  Returns the number
   of these parameters.  Returns -1 and sets an error if `visit` fails, if memory runs out, or if `some` is true and
   no parameter matches. */
static int opdi_module_each(const opd_module *module, const char *pattern, bool some, const char *function,
                            int (*visit)(opd_tensor *tensor, void *user), void *user) {
    opdi_pointer_set found;
    int count = 0, rc = 0;
    memset(&found, 0, sizeof found);
    if (!opd_ok() || opdi_null_module(module, function)) { return -1; }
    for (int64_t i = 0; i < module->count && rc == 0; i++) {
        const opdi_module_item *item = &module->items[i];
        if (item->kind != OPD_MODULE_PARAMETER || !opdi_module_matches(pattern, item->name) ||
            opd_dtype_is_integral((opd_scalar_type)item->tensor->dtype, true)) { continue; }
        const int64_t was = found.count;
        if (opdi_pointer_set_add(&found, (uintptr_t)item->tensor) < 0) { rc = -1; }
        if (rc == 0 && found.count > was) {
            count++;
            rc = visit(item->tensor, user);
        }
    }
    opdi_pointer_set_free(&found);
    if (rc == 0 && some && !count) {
        rc = opd_fail(OPD_ERROR_NOT_FOUND, "%s: no parameter is named '%.300s'", function, pattern ? pattern : "*");
    }
    return rc ? -1 : count;
}

typedef struct opdi_param_list { opd_tensor **tensors; int count, cap; } opdi_param_list;
static int opdi_list_visit(opd_tensor *tensor, void *user) {
    opdi_param_list *const list = (opdi_param_list *)user;
    if (list->count < list->cap) { list->tensors[list->count] = tensor; }
    list->count++;
    return 0;
}
int opd_module_parameters(const opd_module *module, const char *pattern, opd_tensor **tensors, int cap) {
    opdi_param_list list = {tensors, 0, 0};
    list.cap = tensors ? cap : 0;
    return opdi_module_each(module, pattern, false, "opd_module_parameters", opdi_list_visit, &list);
}
static int opdi_numel_visit(opd_tensor *tensor, void *user) {
    *(int64_t *)user += tensor->numel;
    return 0;
}
int64_t opd_module_numel(const opd_module *module, const char *pattern) {
    int64_t numel = 0;
    return opdi_module_each(module, pattern, false, "opd_module_numel", opdi_numel_visit, &numel) < 0 ? -1 : numel;
}
static int opdi_grad_visit(opd_tensor *tensor, void *user) {
    return opd_tensor_set_requires_grad(tensor, *(const bool *)user) ? 0 : -1;
}
int opd_module_set_requires_grad(opd_module *module, const char *pattern, bool on) {
    return opdi_module_each(module, pattern, true, "opd_module_set_requires_grad", opdi_grad_visit, &on);
}
int opd_module_zero_grad(opd_module *module) {
    if (!opd_ok() || opdi_null_module(module, "opd_module_zero_grad")) { return -1; }
    for (int64_t i = 0; i < module->count; i++) {
        opd_tensor *const tensor = module->items[i].tensor;
        if (opd_tensor_grad(tensor) && opd_tensor_set_grad(tensor, NULL)) { return -1; }
    }
    return 0;
}
int opd_module_to(opd_module *module, const opd_device *device, opd_scalar_type dtype) {
    if (!opd_ok() || opdi_null_module(module, "opd_module_to")) { return -1; }
    if (dtype != OPD_DTYPE_NONE && !opd_dtype_is_floating(dtype)) {
        return opd_fail(OPD_ERROR_DTYPE, "opd_module_to only accepts floating point dtypes, but got %s",
                        opd_dtype_name(dtype));
    }
    const bool was = opd_grad_mode_set(false);
    for (int64_t i = 0; i < module->count && opd_ok(); i++) {
        OPD_SCOPE {
            opd_tensor *tensor = module->items[i].tensor;
            const opd_scalar_type its = (opd_scalar_type)tensor->dtype;
            opd_tensor *moved = opd_to_device(opd_detach(tensor), device ? *device : opd_tensor_device(tensor),
                dtype != OPD_DTYPE_NONE && opd_dtype_is_floating(its) ? dtype : its);
            opd_tensor *grad = opd_tensor_grad(tensor);
            if (grad && moved) {
                grad = opd_to_device(opd_detach(grad), opd_tensor_device(moved), (opd_scalar_type)moved->dtype);
            }
            if (opd_ok() && moved->dtype == tensor->dtype && moved->data == tensor->data) { moved = NULL; }
            if (opd_ok() && moved && opd_tensor_set_grad(tensor, NULL) == 0 &&
                opd_tensor_set_data(tensor, moved) == 0) {
                (void)opd_tensor_set_grad(tensor, grad);
            }
        }
    }
    (void)opd_grad_mode_set(was);
    return opd_ok() ? 0 : -1;
}

/* Sets *list to the parameters whose names match `pattern`, in memory of the innermost scope.  If `optimizer` is not
   NULL, takes only parameters of that optimizer.  Returns 0, or -1 and sets an error, also if no parameter matches. */
static int opdi_module_list(const opd_module *module, const char *pattern, const opd_optimizer *optimizer,
                            const char *function, opdi_param_list *list) {
    int kept = 0;
    list->count = list->cap = 0;
    list->tensors = NULL;
    if (opdi_module_each(module, pattern, true, function, opdi_list_visit, list) < 0 ||
        !(list->tensors = opdi_scope_tensors(list->count))) { return -1; }
    list->cap = list->count;
    list->count = 0;
    if (opdi_module_each(module, pattern, true, function, opdi_list_visit, list) < 0) { return -1; }
    for (int i = 0; optimizer && i < list->count; i++) {
        int at = 0;
        while (opd_optimizer_param(optimizer, at) && opd_optimizer_param(optimizer, at) != list->tensors[i]) { at++; }
        if (opd_optimizer_param(optimizer, at)) { list->tensors[kept++] = list->tensors[i]; }
    }
    if (optimizer) { list->count = kept; }
    return 0;
}
opd_optimizer *opd_module_sgd(const opd_module *module, const char *pattern, const opd_sgd_options *options) {
    opd_optimizer *optimizer = NULL;
    opdi_param_list list;
    OPD_SCOPE {
        if (opdi_module_list(module, pattern, NULL, "opd_module_sgd", &list) == 0) {
            optimizer = opd_sgd_new(list.tensors, list.count, options);
        }
    }
    return optimizer;
}
opd_optimizer *opd_module_adam(const opd_module *module, const char *pattern, const opd_adam_options *options) {
    opd_optimizer *optimizer = NULL;
    opdi_param_list list;
    OPD_SCOPE {
        if (opdi_module_list(module, pattern, NULL, "opd_module_adam", &list) == 0) {
            optimizer = opd_adam_new(list.tensors, list.count, options);
        }
    }
    return optimizer;
}
opd_optimizer *opd_module_adamw(const opd_module *module, const char *pattern, const opd_adam_options *options) {
    opd_optimizer *optimizer = NULL;
    opdi_param_list list;
    OPD_SCOPE {
        if (opdi_module_list(module, pattern, NULL, "opd_module_adamw", &list) == 0) {
            optimizer = opd_adamw_new(list.tensors, list.count, options);
        }
    }
    return optimizer;
}
int opd_module_group(const opd_module *module, opd_optimizer *optimizer, const char *pattern) {
    int group = -1;
    opdi_param_list list;
    if (!optimizer) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_module_group: the optimizer is NULL"); }
    OPD_SCOPE {
        if (opdi_module_list(module, pattern, optimizer, "opd_module_group", &list) == 0) {
            group = opd_optimizer_move_group(optimizer, list.tensors, list.count);
        }
    }
    return group;
}
