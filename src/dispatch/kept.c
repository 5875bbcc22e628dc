#include "dispatch.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>kept         the places where a program keeps tensors
//
//  opd_keep, opd_assign and opd_release write notes.  A thread collects a few notes, most of which cancel each other,
//  and then moves them to a table with the tensors that are kept.  Only functions that a program calls write notes: the
//  library itself keeps tensors by opdi_keep.
//----------------------------------------------------------------------------------------------------------------------

/* A tensor in the table. */
typedef struct opdi_kept_entry {
    opd_tensor *tensor;                           /* NULL: the entry is free */
    const char *place;                            /* where it was kept last; may be in an unloaded plug-in */
    int64_t count;                                /* how often it was kept, less how often it was released */
} opdi_kept_entry;
OPDI_INTERNAL opdi_mutex opdi_keeping_lock = OPDI_MUTEX_INIT; /* protects opdi_keeping_table */
OPDI_INTERNAL const opdi_kept_hooks *opdi_on_kept;
/* A hash table with open addressing.  Its memory does not count as memory of the program. */
static struct opdi_keeping_table {
    opdi_kept_entry *entries;                     /* [mask + 1] */
    size_t mask, used;
    bool partial;                                 /* memory ran out, so notes are missing */
    bool news;                                    /* a tensor was kept since the last report */
} opdi_keeping_table;

static size_t opdi_keeping_slot(const opd_tensor *tensor) {
    const uint64_t hash = ((uint64_t)(uintptr_t)tensor >> 4) * 0x9E3779B97F4A7C15u;
    return (size_t)(hash >> 32) & opdi_keeping_table.mask;
}
/* Returns the entry of a tensor, or the free entry where it belongs. */
static opdi_kept_entry *opdi_keeping_find(const opd_tensor *tensor) {
    size_t i = opdi_keeping_slot(tensor);
    while (opdi_keeping_table.entries[i].tensor && opdi_keeping_table.entries[i].tensor != tensor) {
        i = (i + 1) & opdi_keeping_table.mask;
    }
    return &opdi_keeping_table.entries[i];
}
/* Makes room for one more entry.  Returns false if memory runs out. */
static bool opdi_keeping_reserve(void) {
    struct opdi_keeping_table *const table = &opdi_keeping_table;
    opdi_kept_entry *const old = table->entries;
    const size_t size = old ? table->mask + 1 : 0, wanted = size ? 2 * size : 64;
    if (2 * (table->used + 1) <= size) { return true; }
    opdi_kept_entry *entries = (opdi_kept_entry *)OPD_MALLOC(wanted * sizeof *entries);
    if (!entries) { return false; }
    memset(entries, 0, wanted * sizeof *entries);
    table->entries = entries;
    table->mask = wanted - 1;
    for (size_t i = 0; i < size; i++) {
        if (old[i].tensor) { *opdi_keeping_find(old[i].tensor) = old[i]; }
    }
    if (old) { OPD_FREE(old); }
    return true;
}
/* Takes an entry out of the table, and moves entries behind it to where a look-up finds them. */
static void opdi_keeping_remove(const opdi_kept_entry *entry) {
    opdi_kept_entry *const entries = opdi_keeping_table.entries;
    const size_t mask = opdi_keeping_table.mask;
    size_t hole = (size_t)(entry - entries);
    for (size_t i = (hole + 1) & mask; entries[i].tensor; i = (i + 1) & mask) {
        const size_t home = opdi_keeping_slot(entries[i].tensor);
        if (((i - home) & mask) < ((i - hole) & mask)) { continue; }
        entries[hole] = entries[i];
        hole = i;
    }
    entries[hole].tensor = NULL;
    opdi_keeping_table.used--;
}
/* Adds a note to the table.  The caller holds the lock. */
static void opdi_keeping_count(const opdi_note *note) {
    if (!opdi_keeping_reserve()) {
        opdi_keeping_table.partial = true;
        return;
    }
    opdi_kept_entry *const entry = opdi_keeping_find(note->tensor);
    if (!entry->tensor) {
        entry->tensor = note->tensor;
        entry->place = "";
        entry->count = 0;
        opdi_keeping_table.used++;
    }
    if (note->place) {
        entry->place = note->place;
        opdi_keeping_table.news = true;
    }
    entry->count += note->place ? 1 : -1;
    if (entry->count == 0) { opdi_keeping_remove(entry); }
}
/* Moves the notes of a thread to the table.  The caller holds the lock. */
static void opdi_keeping_take(opdi_thread *thread) {
    if (!thread->keeps) { return; }
    for (int32_t i = OPDI_NOTES; i-- > thread->notes_left;) { opdi_keeping_count(&thread->notes[i]); }
    thread->notes_left = OPDI_NOTES;
}
static void opdi_keeping_flush(opdi_thread *thread) {
    opdi_lock(&opdi_keeping_lock);
    opdi_keeping_take(thread);
    opdi_unlock(&opdi_keeping_lock);
}
/* Empties the table in the child of a fork, which does not have the notes of other threads. */
static void opdi_keeping_forget(void) {
    if (opdi_thread_self && opdi_thread_self->keeps) { opdi_thread_self->notes_left = OPDI_NOTES; }
    if (opdi_keeping_table.entries) {
        memset(opdi_keeping_table.entries, 0, (opdi_keeping_table.mask + 1) * sizeof *opdi_keeping_table.entries);
    }
    opdi_keeping_table.used = 0;
}

static void opdi_keeping_report(opdi_thread *thread);
static const opdi_kept_hooks opdi_keeping_calls = {opdi_keeping_flush, opdi_keeping_report, opdi_keeping_forget};
/* Makes room for a note of this thread. */
OPDI_NOINLINE static void opdi_notes_room(opdi_thread *thread) {
    if (thread->keeps) {
        opdi_keeping_flush(thread);
        return;
    }
    thread->notes_left = OPDI_NOTES;
    OPDI_STORE(&thread->keeps, true);
    OPDI_PUBLISH(&opdi_on_kept, &opdi_keeping_calls);
}
static inline void opdi_note_add(opdi_thread *thread, opd_tensor *tensor, const char *place) {
    if (OPDI_UNLIKELY(thread->notes_left == 0)) { opdi_notes_room(thread); }
    opdi_note *const note = &thread->notes[--thread->notes_left];
    note->tensor = tensor;
    note->place = place;
}
/* Writes a note that a tensor was released, or cancels one of the last notes that it was kept. */
static inline void opdi_note_release(opdi_thread *thread, opd_tensor *tensor) {
    const int32_t first = thread->notes_left;
    for (int32_t i = first; thread->keeps && i < OPDI_NOTES && i < first + 4; i++) {
        if (thread->notes[i].tensor == tensor && thread->notes[i].place) {
            thread->notes[i] = thread->notes[first];
            thread->notes_left = first + 1;
            return;
        }
    }
    opdi_note_add(thread, tensor, NULL);
}

opd_tensor *opd_keep_at(opd_tensor *tensor, const char *place) {
    if (!tensor || OPDI_UNLIKELY(opdi_is_dead(tensor))) { return opdi_keep(tensor); }
    opdi_retain(tensor);
    opdi_note_add(opdi_self(), tensor, place ? place : "");
    return tensor;
}
opd_tensor *opd_keep(opd_tensor *tensor) { return opd_keep_at(tensor, ""); }
void opd_release(opd_tensor *tensor) {
    if (!tensor) { return; }
    if (OPDI_LIKELY(!opdi_is_dead(tensor))) { opdi_note_release(opdi_self(), tensor); }
    if (opdi_drop_last(tensor)) { opdi_release_last(tensor); }
}
opd_tensor *opd_assign_at(opd_tensor **handle, opd_tensor *tensor, const char *place) {
    if (!handle) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_assign: the handle's address is NULL");
        return NULL;
    }
    opd_tensor *old = *handle;
    *handle = opd_keep_at(tensor, place);
    opd_release(old);
    return tensor;
}
opd_tensor *opd_assign(opd_tensor **handle, opd_tensor *tensor) { return opd_assign_at(handle, tensor, ""); }

OPDI_COLD_BEGIN

//== lists of kept tensors =============================================================================================

static int opdi_keeping_by_storage(const void *first, const void *second) {
    const uintptr_t p = (uintptr_t)((const opd_kept *)first)->tensor->storage;
    const uintptr_t q = (uintptr_t)((const opd_kept *)second)->tensor->storage;
    return p < q ? -1 : p > q;
}
static int opdi_keeping_by_bytes(const void *first, const void *second) {
    const opd_kept *const a = (const opd_kept *)first, *const b = (const opd_kept *)second;
    return a->bytes > b->bytes ? -1 : a->bytes < b->bytes ? 1 : strcmp(a->place, b->place);
}
static int opdi_keeping_by_place(const void *first, const void *second) {
    return strcmp(((const opd_kept *)first)->place, ((const opd_kept *)second)->place);
}
/* Returns the text of a place.  A text of a plug-in that was unloaded must not be read. */
static const char *opdi_keeping_place(const char *place) {
    const uintptr_t at = (uintptr_t)place;
    return at >= OPDI_LOAD(&opdi_unmapped_begin) && at < OPDI_LOAD(&opdi_unmapped_end) ? "a plug-in that was unloaded"
        : place;
}
/* Returns a list of the tensors in the table, those with the most memory first, and sets *count to their number.  The
   caller holds the lock, and frees the list with OPD_FREE.  Returns NULL if there are none or memory runs out. */
static opd_kept *opdi_keeping_all(size_t *count) {
    const size_t size = opdi_keeping_table.entries ? opdi_keeping_table.mask + 1 : 0;
    opd_kept *list = opdi_keeping_table.used ? (opd_kept *)OPD_MALLOC(opdi_keeping_table.used * sizeof *list) : NULL;
    *count = 0;
    for (size_t i = 0; i < size; i++) {
        const opdi_kept_entry *const entry = &opdi_keeping_table.entries[i];
        if (!entry->tensor || entry->count <= 0) { continue; }
        if (list) {
            list[*count].tensor = entry->tensor;
            list[*count].place = opdi_keeping_place(entry->place);
            list[*count].count = entry->count;
            list[*count].bytes = (int64_t)entry->tensor->storage->bytes;
        }
        ++*count;
    }
    if (!list) { return NULL; }
    qsort(list, *count, sizeof *list, opdi_keeping_by_storage);
    for (size_t i = *count; i-- > 1;) {
        if (list[i].tensor->storage == list[i - 1].tensor->storage) { list[i].bytes = 0; }
    }
    qsort(list, *count, sizeof *list, opdi_keeping_by_bytes);
    return list;
}

size_t opd_kept_list(opd_kept *list, size_t cap) {
    size_t count;
    opdi_lock(&opdi_threads_lock);
    opdi_lock(&opdi_keeping_lock);
    for (opdi_thread *thread = opdi_all_threads; thread; thread = thread->next) { opdi_keeping_take(thread); }
    opd_kept *all = opdi_keeping_all(&count);
    const bool failed = opdi_keeping_table.partial || (count && !all);
    opdi_unlock(&opdi_keeping_lock);
    opdi_unlock(&opdi_threads_lock);
    if (failed) {
        (void)opdi_out_of_memory(count * sizeof *all);
        count = 0;
    }
    if (list && count) { memcpy(list, all, OPDI_MIN(count, cap) * sizeof *list); }
    if (all) { OPD_FREE(all); }
    return count;
}

//== the report of kept tensors ========================================================================================

#define OPDI_KEPT_LINES 5
/* The tensors that were kept at one place.  graphs: how many of them have an autograd graph. */
typedef struct opdi_kept_group { const char *place; int64_t count, bytes, graphs; } opdi_kept_group;

/* Writes a number of bytes as text, such as "52.00 MB", to buf.  Returns buf. */
OPDI_INTERNAL const char *opdi_bytes_text(int64_t bytes, char *buf, size_t cap) {
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    double x = (double)bytes;
    int u = 0;
    for (; x >= 1024 && u < 4; u++) { x /= 1024; }
    (void)snprintf(buf, cap, u ? "%.2f %s" : "%.0f %s", x, units[u]);
    return buf;
}
static void opdi_kept_group_add(opdi_kept_group *group, const opd_kept *kept) {
    group->count++;
    group->bytes += kept->bytes;
    group->graphs += kept->tensor->grad_fn != NULL;
}
static bool opdi_kept_group_more(const opdi_kept_group *group, const opdi_kept_group *other) {
    return group->bytes != other->bytes ? group->bytes > other->bytes : group->count > other->count;
}
/* Puts the tensors of a list, which is sorted by place, into groups by place.  Writes the largest groups to
   top[OPDI_KEPT_LINES], the largest first, and all tensors together to *sum.  Returns the number of groups. */
static int opdi_kept_groups(const opd_kept *list, size_t count, opdi_kept_group *top, opdi_kept_group *sum) {
    int groups = 0;
    memset(sum, 0, sizeof *sum);
    for (size_t i = 0; i < count; groups++) {
        opdi_kept_group group = {list[i].place, 0, 0, 0};
        for (; i < count && strcmp(list[i].place, group.place) == 0; i++) {
            opdi_kept_group_add(&group, &list[i]);
            opdi_kept_group_add(sum, &list[i]);
        }
        int at = OPDI_MIN(groups, OPDI_KEPT_LINES);
        for (; at > 0 && opdi_kept_group_more(&group, &top[at - 1]); at--) {
            if (at < OPDI_KEPT_LINES) { top[at] = top[at - 1]; }
        }
        if (at < OPDI_KEPT_LINES) { top[at] = group; }
    }
    return groups;
}
/* Writes the warning about the tensors of a list that were kept at a known place.  The others may belong to another
   language, which releases them in its own way. */
static void opdi_keeping_say(opd_kept *list, size_t count) {
    opdi_kept_group top[OPDI_KEPT_LINES], sum;
    char buf[1600], bytes[32], graphs[80];        /* a line has at most 220 characters */
    size_t length = 0;
    qsort(list, count, sizeof *list, opdi_keeping_by_place);
    for (; count && !*list->place; count--) { list++; }
    const int groups = opdi_kept_groups(list, count, top, &sum);
    if (!count) { return; }
    buf[0] = 0;
    for (int i = 0; i < groups && i < OPDI_KEPT_LINES; i++) {
        graphs[0] = 0;
        if (top[i].graphs) {
            (void)snprintf(graphs, sizeof graphs, "; %lld of them with autograd graphs, which hold more memory",
                           (long long)top[i].graphs);
        }
        const size_t cut = strlen(top[i].place) > 80 ? strlen(top[i].place) - 80 : 0;       /* long names of folders */
        const int n = snprintf(buf + length, sizeof buf - length, "\n  %lld tensor%s, %s, kept at %s%s%s",
                               (long long)top[i].count, top[i].count == 1 ? "" : "s",
                               opdi_bytes_text(top[i].bytes, bytes, sizeof bytes), cut ? "..." : "",
                               top[i].place + cut, graphs);
        length += n > 0 ? (size_t)n : 0;
    }
    if (groups > OPDI_KEPT_LINES) {
        (void)snprintf(buf + length, sizeof buf - length, "\n  and more at %d other places", groups - OPDI_KEPT_LINES);
    }
    opd_warn("%lld tensor%s kept and not released (opd_release, or opd_assign with NULL): %s%s", (long long)sum.count,
             sum.count == 1 ? " was" : "s were", opdi_bytes_text(sum.bytes, bytes, sizeof bytes), buf);
}
/* Warns of tensors that were kept and not released.  Does nothing if no tensor was kept since the last warning, if
   `thread` is not the first thread of the program, or if another thread is still running that has kept or released
   tensors. */
static void opdi_keeping_report(opdi_thread *thread) {
    bool alone = thread == &opdi_main_thread;
    size_t count = 0;
    opd_kept *list = NULL;
    opdi_lock(&opdi_threads_lock);
    for (const opdi_thread *other = opdi_all_threads; other; other = other->next) {
        alone = alone && (other == thread || !OPDI_LOAD(&other->keeps));
    }
    if (alone) {
        opdi_lock(&opdi_keeping_lock);
        opdi_keeping_take(thread);
        if (opdi_keeping_table.news && !opdi_keeping_table.partial) { list = opdi_keeping_all(&count); }
        opdi_keeping_table.news = false;
        opdi_unlock(&opdi_keeping_lock);
    }
    opdi_unlock(&opdi_threads_lock);
    if (!list) { return; }
    opdi_keeping_say(list, count);
    OPD_FREE(list);
}
OPDI_COLD_END
