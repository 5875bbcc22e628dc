#include "collective.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>collectives  process groups, running transfers, and waiting for them
//
//  A work (opd_work) is a transfer of a group that was begun.  While a work runs, it has references to the storages of
//  its tensors and is in the list opdi_groups.works.  During that time, all calls take a rarely used path
//  (opdi_beyond_limit), which checks whether a work in this list uses the memory of an argument.  So calls have no
//  additional cost while no work is running.  For the operators, see >>op:collective.  This section does not know
//  autograd.
//----------------------------------------------------------------------------------------------------------------------

OPDI_INTERNAL opd_work *opdi_group_move(opd_group *group, const opd_transfer *transfer, const opd_tensor *read,
                                        opd_tensor *written);
OPDI_INTERNAL opd_group *opdi_group_of_size(const char *name, int64_t size);
OPDI_INTERNAL bool opdi_group_can_move(opd_group *group, const opd_tensor *tensor, const opd_transfer *transfer);
OPDI_INTERNAL int opdi_reduction_of(const char *name);
OPDI_INTERNAL opd_group *opdi_group_given(const opd_value *value);
/* Waits for a work and for the works joined to it, without releasing them.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_works_finish(opd_work *work);
/* Joins the works `others` to the work `first`, which has just begun, and sets the time limit of `first` (0: that of
   the group).  Returns `first`. */
OPDI_INTERNAL opd_work *opdi_work_joined(opd_work *first, opd_work *others, int64_t timeout_ms);
/* Returns a finished work without a transfer, or NULL and sets an error. */
OPDI_INTERNAL opd_work *opdi_work_none(opd_group *group);
/* Records that `tensor` was written: increases the version of its storage. */
OPDI_INTERNAL void opdi_move_writes(const opd_tensor *tensor);

//== groups ============================================================================================================

OPDI_INTERNAL int opdi_group_elsewhere(const opd_group *group, const opd_tensor *tensor);
OPDI_INTERNAL opdi_group_list opdi_groups = {OPDI_MUTEX_INIT, NULL, NULL};

OPDI_INTERNAL void opdi_group_release(opd_group *group) {
    if (opdi_ref_down(&group->refs) != 0) { return; }
#if !defined(OPD_NO_THREADS)
    (void)pthread_mutex_destroy(&group->lock);
#endif
    opdi_free(group, sizeof *group);
}
/* Returns the group `name`, or NULL.  The caller holds the lock. */
OPDI_INTERNAL opd_group *opdi_group_named(const char *name) {
    opd_group *group = opdi_groups.groups;
    while (group && strcmp(group->name, name) != 0) { group = group->next; }
    return group;
}
static int opdi_group_check(const opd_group_desc *desc) {
    if (!desc->name || !*desc->name || strlen(desc->name) > 63) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_group_register: the name of a group must have 1 to 63 bytes");
    }
    if (desc->size < 1 || desc->rank < 0 || desc->rank >= desc->size) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_group_register: group '%s' cannot have rank %d of %d", desc->name,
                        (int)desc->rank, (int)desc->size);
    }
    if ((desc->size > 1 && !desc->start) || !desc->start != !desc->test || desc->timeout_ms < 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_group_register: group '%s' lacks a function, or its timeout_ms is "
                        "negative", desc->name);
    }
    return 0;
}
opd_group *opdi_group_register_sized(const opd_group_desc *desc, size_t size) {
    opd_group_desc whole;
    memset(&whole, 0, sizeof whole);
    if (!opd_ok()) { return NULL; }
    if (!desc || size < offsetof(opd_group_desc, timeout_ms)) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_group_register: the descriptor is NULL");
        return NULL;
    }
    memcpy(&whole, desc, OPDI_MIN(size, sizeof whole));
    opd_group *const group = opdi_group_check(&whole) ? NULL : (opd_group *)opdi_alloc(sizeof *group);
    if (!group) { return NULL; }
    const opdi_mutex fresh = OPDI_MUTEX_INIT;
    memset(group, 0, sizeof *group);
    group->refs = 1;
    group->lock = fresh;
    group->desc = whole;
    memcpy(group->name, whole.name, strlen(whole.name));
    group->desc.name = group->name;
    if (whole.timeout_ms == 0) { group->desc.timeout_ms = 600000; }
    opdi_lock(&opdi_groups.lock);
    const bool taken = opdi_group_named(group->name) != NULL;
    if (!taken) {
        group->next = opdi_groups.groups;
        opdi_groups.groups = group;
    }
    opdi_unlock(&opdi_groups.lock);
    if (!taken) { return group; }
    (void)opd_fail(OPD_ERROR_REGISTER, "opd_group_register: there is already a process group '%s'", group->name);
    opdi_group_release(group);
    return NULL;
}
/* Returns the group that contains only this process; registers it at the first call.  On failure, returns NULL and
   sets an error. */
static opd_group *opdi_group_self(void) {
    opd_group_desc desc;
    opdi_lock(&opdi_groups.lock);
    opd_group *group = opdi_group_named("self");
    opdi_unlock(&opdi_groups.lock);
    if (group) { return group; }
    memset(&desc, 0, sizeof desc);
    desc.name = "self";
    desc.size = 1;
    return opd_group_register(&desc);
}
opd_group *opd_group_find(const char *name) {
    char names[300];
    opdi_text text = opdi_text_of(names, sizeof names);
    if (!opd_ok()) { return NULL; }
    if (!name || !*name) {
        (void)opd_fail(OPD_ERROR_NOT_FOUND, "the name of the process group is NULL or empty");
        return NULL;
    }
    if (strcmp(name, "self") == 0) { return opdi_group_self(); }
    opdi_lock(&opdi_groups.lock);
    opd_group *const group = opdi_group_named(name);
    for (const opd_group *other = opdi_groups.groups; other && !group; other = other->next) {
        if (strcmp(other->name, "self") != 0) { opdi_text_add(&text, ", '%s'", other->name); }
    }
    opdi_unlock(&opdi_groups.lock);
    if (!group) {
        (void)opd_fail(OPD_ERROR_NOT_FOUND, "there is no process group '%.63s': register it with opd_group_register. "
                       "The registered groups are 'self'%s", name, names);
    }
    return group;
}
/* Returns the group in `value`, an argument of class ProcessGroup: a registered group, or the name of one.  Returns
   NULL and sets an error if there is none. */
OPDI_INTERNAL opd_group *opdi_group_given(const opd_value *value) {
    if (value->tag == OPD_TAG_STR) { return opd_group_find(value->u.s); }
    opdi_lock(&opdi_groups.lock);
    opd_group *group = opdi_groups.groups;
    while (group && (value->tag != OPD_TAG_OBJECT || group != value->u.object)) { group = group->next; }
    opdi_unlock(&opdi_groups.lock);
    if (!group) {
        (void)opd_fail(OPD_ERROR_NOT_FOUND, "process_group is not a registered process group (an opd_group, or its "
                       "name)");
    }
    return group;
}
/* Returns false if `group` is not NULL.  Otherwise sets an error, with `who` as the function's name, and returns
   true. */
OPDI_INTERNAL bool opdi_group_none(const opd_group *group, const char *who) {
    return !group && (!opd_ok() || opd_fail(OPD_ERROR_ARGUMENT, "%s: the process group is NULL", who));
}
int opd_group_rank(const opd_group *group) { return opdi_group_none(group, "opd_group_rank") ? -1 : group->desc.rank; }
int opd_group_size(const opd_group *group) { return opdi_group_none(group, "opd_group_size") ? -1 : group->desc.size; }
const char *opd_group_name(const opd_group *group) {
    return opdi_group_none(group, "opd_group_name") ? NULL : group->name;
}
int opd_group_abandon(opd_group *group, const char *why) {
    const bool was_ok = opd_ok();
    int rc = 0;
    if (opdi_group_none(group, "opd_group_abandon")) { return -1; }
    opdi_lock(&group->lock);
    if (!group->abandoned[0]) {
        (void)snprintf(group->abandoned, sizeof group->abandoned, "rank %d of process group '%s' has given up: %.180s",
                       (int)group->desc.rank, group->name, why ? why : "it gave no reason");
        rc = group->desc.abandon ? group->desc.abandon(group->desc.user, group->abandoned) : 0;
        if (group->moves && group->mover.abandon(group->mover.user, group->abandoned)) { rc = -1; }
    }
    opdi_unlock(&group->lock);
    if (rc && was_ok && opd_ok()) {
        (void)opd_fail(OPD_ERROR_KERNEL, "opd_group_abandon: the other ranks could not be informed");
    }
    return rc ? -1 : 0;
}
/* Returns true if an error is pending.  If memory ran out, also tells the other ranks, which would otherwise wait
   for this rank. */
OPDI_INTERNAL bool opdi_group_lost(opd_group *group) {
    if (opd_ok()) { return false; }
    if (group && group->desc.size > 1 && opd_error_code() == OPD_ERROR_MEMORY) {
        (void)opd_group_abandon(group, opd_error_message());
    }
    return true;
}
OPDI_INTERNAL opd_group *opdi_group_of_size(const char *name, int64_t size) {
    opd_group *const group = opd_group_find(name);
    if (!group || size < 0 || group->desc.size == size) { return group; }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "group_size is %lld, but process group '%s' has %d rank(s)", (long long)size,
                   group->name, (int)group->desc.size);
    return NULL;
}
OPDI_INTERNAL int opdi_reduction_of(const char *name) {
    static const char *const names[] = {"sum", "avg", "product", "min", "max", "band", "bor", "bxor"};
    for (int i = 0; name && i < 8; i++) { if (strcmp(name, names[i]) == 0) { return i; } }
    return opd_fail(OPD_ERROR_ARGUMENT, "reduce_op must be sum, avg, product, min, max, band, bor or bxor, not '%.40s'",
                    name ? name : "");
}
