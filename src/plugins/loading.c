#include "plugins.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>plugins      loading libraries of operators, compiling at run time, addresses of code as text
//
//  A loaded library is described by an opd_plugin with the addresses at which it is mapped.  A kernel, a backward
//  function or a deleter finds its library by its address and pins it: a kernel while it is registered, nodes and
//  foreign storages until they are freed.  Unloading a plug-in closes the libraries (opd_library) whose blocks are in
//  it.  The plug-in is unmapped when it has no pins and no call is running that began before the unloading.
//----------------------------------------------------------------------------------------------------------------------

OPDI_HOST_STRUCT;

OPDI_ONCE_BEGIN

/* Appends `length` bytes of text to `string`.  If memory runs out, sets string->failed; then later calls do nothing. */
OPD_UNUSED OPDI_INTERNAL void opdi_string_add_n(opdi_string *string, const char *text, size_t length) {
    if (!string->failed && string->length + length + 1 > string->cap) {
        const size_t cap = OPDI_MAX(2 * string->cap, string->length + length + 256);
        char *data = (char *)opdi_alloc(cap);
        if (!data) {
            string->failed = true;
            return;
        }
        if (string->data) {
            memcpy(data, string->data, string->length);
            opdi_free(string->data, string->cap);
        }
        string->data = data;
        string->cap = cap;
    }
    if (string->failed) { return; }
    memcpy(string->data + string->length, text, length);
    string->length += length;
    string->data[string->length] = 0;
}
OPD_UNUSED OPDI_INTERNAL void opdi_string_add(opdi_string *string, const char *text) {
    opdi_string_add_n(string, text, strlen(text));
}
OPD_UNUSED OPDI_INTERNAL void opdi_string_free(opdi_string *string) {
    if (string->data) { opdi_free(string->data, string->cap); }
}

//== pins ==============================================================================================================

static bool opdi_plugin_has(const opd_plugin *plugin, uintptr_t address) {
    return address >= plugin->begin && address < plugin->end;
}

/* Frees a plug-in's operator descriptors and backward functions, which were kept because a call might have been using
   them.  The caller holds the lock. */
static void opdi_plugin_forget(const opd_plugin *plugin) {
    size_t i = 0;
    opd_op *op;
    while ((op = opdi_entries(&i)) != NULL) {
        opdi_card **cards = &op->cards;
        while (*cards) {
            opdi_card *old = *cards;
            if (old->formula.plugin != plugin) {
                cards = &old->next;
                continue;
            }
            *cards = old->next;
            opdi_free(old, sizeof *old);
        }
        opdi_schema_release(op, plugin->left);
    }
    opdi_manuals_forget(plugin);
}

/* One thread at a time maps or unmaps libraries.  So a library is not unmapped after the loader has returned it and
   before it is in opdi_plugins, and the loader does not return a library that has already left opdi_plugins.
   Constructors and destructors of libraries run under this lock. */
OPDI_INTERNAL opdi_mutex opdi_mapping_lock = OPDI_MUTEX_INIT;

/* Returns an address that differs in each thread.  It does not make the state of a thread. */
static opdi_thread **opdi_mapping_id(void) { return &opdi_thread_self; }

/* Unmaps each unloaded plug-in that has no pins and that no call can be using.  The caller holds opdi_mapping_lock. */
static void opdi_plugins_unmap(void) {
    opd_plugin *plugin;
    do {
        opd_plugin **at = &opdi_plugins;
        opdi_lock(&opdi_registry.lock);
        const uint64_t oldest = opdi_oldest_call();
        while ((plugin = *at) != NULL && (OPDI_ACQUIRE(&plugin->pins) != 0 || plugin->left >= oldest)) {
            at = &plugin->next;
        }
        if (plugin) {
            opdi_plugin_forget(plugin);
            OPDI_STORE(at, plugin->next);
            OPDI_STORE(&opdi_unmapped_begin, OPDI_MIN(opdi_unmapped_begin, plugin->begin));
            OPDI_STORE(&opdi_unmapped_end, OPDI_MAX(opdi_unmapped_end, plugin->end));
        }
        opdi_unlock(&opdi_registry.lock);
        if (plugin) {
            opdi_dlclose(plugin->handle);
            opdi_free(plugin, plugin->bytes);
        }
    } while (plugin);
}
/* Unmaps unloaded plug-ins that nothing uses.  Does not wait: if another thread is mapping or unmapping a library, that
   thread does it instead, when it has released the lock. */
OPDI_INTERNAL void opdi_plugins_sweep(void) {
    static int sweeps;                            /* how often this function has wanted the lock */
    int seen;
    if (!OPDI_LOAD(&opdi_plugins)) { return; }
    opdi_retired_reclaim();                       /* frees kernels that waited for calls to end */
    do {
        seen = OPDI_SUB(&sweeps, -1);            /* adds 1, in order with other memory accesses */
        if (OPDI_LOAD(&opdi_registry.mapper) == opdi_mapping_id() || !opdi_try_lock(&opdi_mapping_lock)) { return; }
        OPDI_STORE(&opdi_registry.mapper, opdi_mapping_id());
        opdi_plugins_unmap();
        OPDI_STORE(&opdi_registry.mapper, (opdi_thread **)NULL);
        opdi_unlock(&opdi_mapping_lock);
    } while (OPDI_SUB(&sweeps, 0) != seen);
}

//== loading ===========================================================================================================

/* Begins registering or loading, which only one thread does at a time.  Returns false if this thread is already
   doing it. */
static bool opdi_start_enter(opdi_thread *thread) {
    if (OPDI_LOAD(&opdi_registry.starter) == thread) { return false; }
    opdi_lock(&opdi_registry.start);
    OPDI_STORE(&opdi_registry.starter, thread);
    OPDI_PUBLISH(&opdi_registry.making, 1);
    return true;
}
static void opdi_start_leave(bool entered) {
    if (!entered) { return; }
    OPDI_PUBLISH(&opdi_registry.making, 0);
    OPDI_STORE(&opdi_registry.starter, (opdi_thread *)NULL);
    opdi_unlock(&opdi_registry.start);
}

#if !defined(OPD_NO_PLUGINS)
/* Waits until no other thread is mapping or unmapping a library.  Returns false if this thread is already doing it: the
   constructor of a library may load another one. */
static bool opdi_mapping_enter(void) {
    if (OPDI_LOAD(&opdi_registry.mapper) == opdi_mapping_id()) { return false; }
    opdi_lock(&opdi_mapping_lock);
    OPDI_STORE(&opdi_registry.mapper, opdi_mapping_id());
    return true;
}
static void opdi_mapping_leave(bool entered) {
    if (!entered) { return; }
    OPDI_STORE(&opdi_registry.mapper, (opdi_thread **)NULL);
    opdi_unlock(&opdi_mapping_lock);
    opdi_plugins_sweep();                         /* another thread may have left it to this one */
}
#endif

/* Moves those blocks of `plugin` that have not run from the registry's list to the plug-in's own list. */
static void opdi_plugin_take_blocks(opd_plugin *plugin) {
    opd_block **from = &opdi_registry.blocks, **to = &plugin->blocks, *block;
    while (*to) { to = &(*to)->next; }
    opdi_lock(&opdi_registry.lock);
    while ((block = *from) != NULL) {
        if (!opdi_plugin_has(plugin, (uintptr_t)block)) {
            from = &block->next;
            continue;
        }
        *from = block->next;
        block->next = NULL;
        *to = block;
        to = &block->next;
    }
    opdi_registry.blocks_end = from;
    opdi_unlock(&opdi_registry.lock);
}

/* Returns a library (opd_library) that was opened by code of `plugin`, or NULL. */
static opd_library *opdi_plugin_library(const opd_plugin *plugin) {
    opd_library *lib;
    opdi_lock(&opdi_registry.lock);
    for (lib = opdi_registry.libraries; lib && !opdi_plugin_has(plugin, (uintptr_t)lib->file); lib = lib->next) { }
    opdi_unlock(&opdi_registry.lock);
    return lib;
}

/* Returns a listener whose code is in `plugin`, or NULL. */
static opd_listener *opdi_plugin_listener(const opd_plugin *plugin) {
    opd_listener *listener;
    opdi_lock(&opdi_registry.lock);
    for (listener = opdi_registry.listeners; listener; listener = listener->next) {
        if (opdi_plugin_has(plugin, (uintptr_t)listener->defined) ||
            opdi_plugin_has(plugin, (uintptr_t)listener->undefined)) {
            break;
        }
    }
    opdi_unlock(&opdi_registry.lock);
    return listener;
}

/* Records the library that is being closed because its plug-in is unloaded, or NULL if there is none. */
static void opdi_library_unloads(const opd_library *lib) {
    opdi_lock(&opdi_registry.lock);
    opdi_registry.unloading = lib;
    opdi_unlock(&opdi_registry.lock);
}

/* Undoes all registrations of a plug-in, and removes the pin that the plug-in had while it was loaded.  The caller then
   releases its locks and calls opdi_plugins_sweep. */
static void opdi_plugin_undo(opd_plugin *plugin) {
    opd_listener *listener;
    opd_library *lib;
    opdi_plugin_take_blocks(plugin);
    opdi_observers_unload(plugin);
    while ((lib = opdi_plugin_library(plugin)) != NULL) {
        opdi_library_unloads(lib);
        opd_library_close(lib);
    }
    opdi_library_unloads(NULL);
    while ((listener = opdi_plugin_listener(plugin)) != NULL) { opd_listener_remove(listener); }
    opdi_lock(&opdi_log.lock);
    if (opdi_plugin_has(plugin, (uintptr_t)opdi_log.fn)) {
        opdi_log.fn = opdi_log_default;
        opdi_log.user = NULL;
    }
    opdi_unlock(&opdi_log.lock);
    opdi_lock(&opdi_registry.lock);
    plugin->left = opdi_epoch;
    OPDI_PUBLISH(&opdi_epoch, opdi_epoch + 1);
    OPDI_STORE(&plugin->loaded, false);
    opdi_unlock(&opdi_registry.lock);
    opdi_backends_unload(plugin);
    (void)OPDI_SUB(&plugin->pins, 1);             /* the caller calls opdi_plugins_sweep */
}

/* Undoes the registrations of `plugin`.  The plug-in is unmapped as soon as none of its code and data is in use.
   Returns 0, or -1 and sets an error. */
int opd_plugin_unload(opd_plugin *plugin) {
    opdi_thread *thread = opdi_self();
    const bool entered = opdi_start_enter(thread);
    const char *wrong = NULL;
    opd_plugin *other;
    opdi_lock(&opdi_registry.lock);
    for (other = opdi_plugins; other && other != plugin; other = other->next) { }
    if (!other || !other->loaded) { wrong = "opd_plugin_unload: this library is not loaded"; }
    for (const opd_library *lib = opdi_registry.libraries; lib && !wrong; lib = lib->next) {
        if (lib->in_block && opdi_plugin_has(other, (uintptr_t)lib->file)) {
            wrong = "opd_plugin_unload was called inside a block of the same library";
        }
    }
    opdi_unlock(&opdi_registry.lock);
    if (!wrong) { opdi_plugin_undo(other); }
    opdi_start_leave(entered);
    opdi_plugins_sweep();
    return wrong ? opd_fail(OPD_ERROR_REGISTER, "%s", wrong) : 0;
}

#if defined(OPD_NO_PLUGINS)
static opd_plugin *opdi_no_plugins(const char *who) {
    (void)opd_fail(OPD_ERROR_REGISTER, "%s: this program was built with OPD_NO_PLUGINS", who);
    return NULL;
}
opd_plugin *opd_compile_and_load(const char *name, const char *const *files, const char *flags) {
    (void)name;
    (void)files;
    (void)flags;
    return opdi_no_plugins("opd_compile_and_load");
}
opd_plugin *opd_compile_and_load_inline(const char *name, const char *source, const char *flags) {
    (void)name;
    (void)source;
    (void)flags;
    return opdi_no_plugins("opd_compile_and_load_inline");
}
opd_plugin *opd_plugin_load(const char *path) {
    (void)path;
    return opdi_no_plugins("opd_plugin_load");
}

#else

/* Defines an operator for a plug-in.  `size` is the size of the plug-in's opd_op_desc, which is smaller in older
   plug-ins; the fields that it lacks become zero.  Returns 0, or -1 and sets an error. */
static int opdi_host_define(opd_library *lib, const opd_op_desc *desc, size_t size) {
    opd_op_desc whole;
    if (!desc) { return opd_define(lib, NULL); }
    memset(&whole, 0, sizeof whole);
    memcpy(&whole, desc, OPDI_MIN(size, sizeof whole));
    return opd_define(lib, &whole);
}

#define OPDI_HOST_ENTRY(R, name, n, types) name,
#define OPDI_HOST_ENTRY_V(name, n, types) name,
static const struct opd_host opdi_host_table = {
    /* major, minor */ OPD_VERSION_MAJOR, OPD_VERSION_MINOR,
    opd_fail, opd_warn, /* define, impl, fallback */ opdi_host_define, opd_impl_key, opd_fallback,
    OPDI_HOST_FUNCTIONS(OPDI_HOST_ENTRY, OPDI_HOST_ENTRY_V)};

#if defined(OPDI_SPAWNS)
static const char *opdi_machine_name(const unsigned char *elf) {
    const unsigned machine = elf[5] == 2 ? (unsigned)elf[18] << 8 | elf[19] : (unsigned)elf[19] << 8 | elf[18];
    switch (machine) {
    case 3: return "i386";
    case 21: return "ppc64";
    case 22: return "s390";
    case 40: return "arm";
    case 62: return elf[4] == 1 ? "x32" : "x86-64";
    case 183: return "aarch64";
    case 243: return elf[4] == 1 ? "riscv32" : "riscv64";
    default: return "another machine";
    }
}

/* Reads the first 20 bytes of a file into `elf`.  Returns 0 if it is an ELF file, 1 if not, or -1 if it cannot be
   opened. */
static int opdi_elf_read(const char *path, unsigned char *elf) {
    FILE *file = fopen(path, "rb");
    size_t length = file ? fread(elf, 1, 20, file) : 0;
    if (file) { (void)fclose(file); }
    return file ? length == 20 && memcmp(elf, "\177ELF", 4) == 0 ? 0 : 1 : -1;
}

/* Returns true if a file ends before the end of the part that would be mapped.  Accessing the missing part would
   kill the process. */
static bool opdi_elf_truncated(const char *path) {
    FILE *file = fopen(path, "rb");
    struct stat s;
    opdi_elf elf;
    bool cut = !file || stat(path, &s) || fread(&elf, sizeof elf, 1, file) != 1;
    for (int i = 0; !cut && i < elf.e_phnum; i++) {
        opdi_elf_segment segment;
        cut = fseek(file, (long)(elf.e_phoff + (size_t)i * elf.e_phentsize), SEEK_SET) ||
            fread(&segment, sizeof segment, 1, file) != 1 ||
            (segment.p_type == PT_LOAD && (uint64_t)segment.p_offset + segment.p_filesz > (uint64_t)s.st_size);
    }
    if (file) { (void)fclose(file); }
    return cut;
}

/* Checks a library's file for errors that the loader does not report clearly: the file is missing, is not a library,
   is cut off, or is for another machine.  Returns 0, or -1 and sets an error. */
static int opdi_plugin_file_check(const char *path) {
    unsigned char elf[20], own[20];
    const int rc = opdi_elf_read(path, elf);
    if (rc < 0) {
        return opd_fail(opdi_errno_code(OPD_ERROR_NOT_FOUND), "opd_plugin_load: cannot open '%s': %s", path,
                        strerror(errno));
    }
    if (rc > 0 || elf[elf[5] == 2 ? 17 : 16] != 3) {
        return opd_fail(OPD_ERROR_REGISTER, "opd_plugin_load: '%s' is not a shared library (build one with cc -shared "
                        "-fPIC -DOPDISPATCH_PLUGIN)", path);
    }
    if (opdi_elf_read("/proc/self/exe", own)) { return 0; }
    if (memcmp(elf + 4, own + 4, 2) != 0 || memcmp(elf + 18, own + 18, 2) != 0) {
        return opd_fail(OPD_ERROR_REGISTER, "opd_plugin_load: '%s' is for %s, this program for %s", path,
                        opdi_machine_name(elf), opdi_machine_name(own));
    }
    return opdi_elf_truncated(path) ? opd_fail(OPD_ERROR_REGISTER, "opd_plugin_load: '%s' is incomplete", path) : 0;
}

OPDI_INTERNAL void *opdi_dlopen(const char *path) {
    void *handle = NULL;
    opdi_string file = {NULL, 0, 0, false};
    if (opd_code_forbidden("opd_plugin_load") || opdi_plugin_file_check(path)) { return NULL; }
    opdi_string_add(&file, strchr(path, '/') ? "" : "./");    /* without a /, the loader would search for the file */
    opdi_string_add(&file, path);
    errno = 0;
    if (!file.failed && !(handle = dlopen(file.data, RTLD_NOW | RTLD_LOCAL))) {
        const opd_code code = opdi_errno_code(OPD_ERROR_REGISTER);
        const char *why = dlerror();
        const bool ours = why && strstr(why, "undefined symbol: opd_");
        (void)opd_fail(code, "opd_plugin_load: %s%s", why ? why : path, ours
                       ? " (build the library with -DOPDISPATCH_PLUGIN, or link the program with -rdynamic)" : "");
    }
    opdi_string_free(&file);
    return handle;
}

/* The first members of two structs of the system's loader: its record of a library (struct link_map), and its
   information about each library (struct dl_phdr_info). */
typedef struct opdi_linked { uintptr_t moved; const char *name; const void *dynamic; } opdi_linked;
typedef struct opdi_loaded {
    uintptr_t moved;                              /* difference from addresses in the file */
    const char *name;
    const opdi_elf_segment *segments;
    uint16_t count;
} opdi_loaded;
typedef struct opdi_plugin_place { opd_plugin *plugin; const void *dynamic; } opdi_plugin_place;

/* Returns the address of a library's dynamic section, which identifies the library.  The loader guards `map` by its own
   lock, which sanitizers do not see. */
#if defined(__GNUC__) && !defined(__TINYC__)
__attribute__((no_sanitize("thread")))
#endif
static const void *opdi_linked_dynamic(const void *map) { return ((const opdi_linked *)map)->dynamic; }

/* Called for each loaded library.  `user` is an opdi_plugin_place.  If it describes this library, stores the
   library's addresses in the opd_plugin and returns 1, else returns 0. */
static int opdi_plugin_mapped(const void *told, size_t size, void *user) {
    const opdi_loaded *loaded = (const opdi_loaded *)told;
    const opdi_plugin_place *place = (const opdi_plugin_place *)user;
    uintptr_t from = UINTPTR_MAX, to = 0;
    bool found = false;
    for (int i = 0; size >= sizeof *loaded && i < loaded->count; i++) {
        const opdi_elf_segment *segment = &loaded->segments[i];
        const uintptr_t begin = loaded->moved + segment->p_vaddr;
        found = found || (segment->p_type == PT_DYNAMIC && begin == (uintptr_t)place->dynamic);
        if (segment->p_type != PT_LOAD) { continue; }
        from = OPDI_MIN(from, begin);
        to = OPDI_MAX(to, begin + segment->p_memsz);
    }
    if (!found || from >= to) { return 0; }
    place->plugin->begin = from;
    place->plugin->end = to;
    return 1;
}

/* Sets the range of addresses at which a library is mapped.  Looks up the loader's functions by name, because strict
   C does not declare them.  Returns 0, or -1 and sets an error. */
static int opdi_plugin_range(opd_plugin *plugin) {
    void *self = dlopen(NULL, RTLD_NOW), *info = self ? dlsym(self, "dlinfo") : NULL, *map = NULL;
    void *iterate = self ? dlsym(self, "dl_iterate_phdr") : NULL;
    int (*ask)(void *, int, void *);
    int (*walk)(int (*)(const void *, size_t, void *), void *);
    opdi_plugin_place place;
    bool found = false;
    memcpy(&ask, &info, sizeof info);
    memcpy(&walk, &iterate, sizeof iterate);
    if (info && iterate && ask(plugin->handle, 2, &map) == 0) {            /* 2 is RTLD_DI_LINKMAP */
        place.plugin = plugin;
        place.dynamic = opdi_linked_dynamic(map);
        found = walk(opdi_plugin_mapped, &place) == 1;
    }
    if (self) { (void)dlclose(self); }
    return found ? 0
        : opd_fail(OPD_ERROR_REGISTER, "opd_plugin_load: cannot see where '%s' is mapped", plugin->path);
}
#endif

/* Checks the version and kind of a library that has just been mapped, and connects it with this host.  Returns 0, or
   -1 and sets an error. */
static int opdi_plugin_check(opd_plugin *plugin) {
    const uintptr_t own = (uintptr_t)opdi_dlsym(plugin->handle, "opd_plugin_load");
    const opd_plugin_info *info = (const opd_plugin_info *)opdi_dlsym(plugin->handle, "opd_plugin_entry");
    if (opdi_plugin_has(plugin, own) && own != (uintptr_t)opd_plugin_load) {
        return opd_fail(OPD_ERROR_REGISTER, "opd_plugin_load: '%s' contains its own implementation of opdispatch: "
                        "build it with -DOPDISPATCH_PLUGIN and without OPDISPATCH_IMPLEMENTATION", plugin->path);
    }
    if (!opdi_plugin_has(plugin, (uintptr_t)info)) { return 0; }
    if (memcmp(info->magic, OPDI_PLUGIN_MAGIC, sizeof OPDI_PLUGIN_MAGIC) != 0) {
        return opd_fail(OPD_ERROR_REGISTER, "opd_plugin_load: the function opd_plugin_entry of '%s' is not the one of "
                        "opdispatch.h", plugin->path);
    }
    if (info->major != OPD_VERSION_MAJOR || info->minor > OPD_VERSION_MINOR) {
        return opd_fail(OPD_ERROR_REGISTER, "opd_plugin_load: '%s' was built with opdispatch %d.%d, which a program "
                        "with opdispatch %d.%d cannot load: the major versions must agree, and the library's minor "
                        "version must not be newer", plugin->path, (int)info->major, (int)info->minor,
                        OPD_VERSION_MAJOR, OPD_VERSION_MINOR);
    }
    if (*info->host && *info->host != &opdi_host_table) {
        return opd_fail(OPD_ERROR_REGISTER, "opd_plugin_load: '%s' is loaded already, by another copy of opdispatch "
                        "in this program", plugin->path);
    }
    plugin->info = info;
    if (!*info->host) { *info->host = &opdi_host_table; }     /* set only once: the code may already be running */
    return 0;
}

/* Makes the opd_plugin of the library at `path`, without adding it to the list.  Returns NULL if memory runs out. */
static opd_plugin *opdi_plugin_new(const char *path) {
    const size_t length = strlen(path) + 1;
    opd_plugin *plugin = (opd_plugin *)opdi_alloc(sizeof *plugin + length);
    if (!plugin) { return NULL; }
    memset(plugin, 0, sizeof *plugin);
    plugin->unpinned = opdi_plugins_sweep;
    plugin->bytes = sizeof *plugin + length;
    plugin->path = (char *)(plugin + 1);
    memcpy(plugin->path, path, length);
    return plugin;
}

/* Moves the blocks of `plugin` that were linked while it was mapped to the plug-in's own list.  If `all` is true, moves
   the blocks of other libraries, which it needs, to the registry's list. */
static void opdi_plugin_sort_blocks(opd_plugin *plugin, bool all) {
    opd_block **from = &opdi_registry.mapped, **to = &plugin->blocks, *block;
    opdi_lock(&opdi_registry.lock);
    while (*to) { to = &(*to)->next; }
    if (!opdi_registry.blocks_end) { opdi_registry.blocks_end = &opdi_registry.blocks; }
    while ((block = *from) != NULL) {
        const bool own = opdi_plugin_has(plugin, (uintptr_t)block);
        if (!own && !all) {
            from = &block->next;
            continue;
        }
        opd_block ***const end = own ? &to : &opdi_registry.blocks_end;
        *from = block->next;
        block->next = NULL;
        **end = block;
        *end = &block->next;
        if (!own) { OPDI_PUBLISH(&opdi_registry.started, 0); }
    }
    opdi_unlock(&opdi_registry.lock);
}
/* Returns the opd_plugin of a library that has just been mapped: its old opd_plugin if it has one, or else `fresh`,
   which is then added to the list.  Pins it.  outermost: no other library is being mapped.  Returns NULL and sets an
   error on failure.  The caller holds opdi_mapping_lock. */
static opd_plugin *opdi_plugin_enter(opd_plugin *fresh, bool outermost) {
    opd_plugin *plugin;
    if (opdi_plugin_range(fresh)) { return NULL; }
    opdi_lock(&opdi_registry.lock);
    for (plugin = opdi_plugins; plugin && plugin->handle != fresh->handle; plugin = plugin->next) { }
    if (!plugin) {
        fresh->next = opdi_plugins;
        OPDI_PUBLISH(&opdi_plugins, fresh);
        plugin = fresh;
    }
    opdi_plugin_pin(plugin);
    opdi_unlock(&opdi_registry.lock);
    opdi_plugin_sort_blocks(plugin, outermost);
    return plugin;
}
/* Maps the library at fresh->path, and returns its opd_plugin with one more pin: see opdi_plugin_enter. */
static opd_plugin *opdi_plugin_map(opd_plugin *fresh) {
    const bool entered = opdi_mapping_enter();
    fresh->handle = opdi_dlopen(fresh->path);
    opd_plugin *const plugin = fresh->handle ? opdi_plugin_enter(fresh, entered) : NULL;
    if (entered) { opdi_registry.mapped = NULL; } /* not empty only if the library is unmapped again */
    /* an older opd_plugin has its own handle; without any opd_plugin, no handle is needed */
    if (plugin != fresh && fresh->handle) { opdi_dlclose(fresh->handle); }
    opdi_mapping_leave(entered);
    return plugin;
}
/* Marks a pinned plug-in as loaded.  Returns true if it was loaded before; otherwise the pin now stands for being
   loaded. */
static bool opdi_plugin_mark(opd_plugin *plugin) {
    opdi_lock(&opdi_registry.lock);
    const bool known = plugin->loaded;
    OPDI_STORE(&plugin->loaded, true);
    opdi_unlock(&opdi_registry.lock);
    return known;
}

/* Runs the library blocks of a plug-in until one fails.  Returns 0, or -1 and sets an error. */
static int opdi_plugin_run(opd_plugin *plugin) {
    opdi_plugin_take_blocks(plugin);
    opd_block *block = plugin->info ? *plugin->info->blocks : plugin->blocks;
    if (!block && !opdi_plugin_library(plugin)) {
        return opd_fail(OPD_ERROR_REGISTER, "opd_plugin_load: '%s' registers nothing: it has no OPD_LIBRARY block, "
                        "was built by a compiler without constructors, or contains its own implementation of "
                        "opdispatch", plugin->path);
    }
    for (; block && opd_ok(); block = block->next) { opdi_block_run(block); }
    return opd_ok() ? 0 : -1;
}

/* Warns if the code of a library may end the program, because the processor lacks its instructions.  This is no error:
   perhaps only functions that nothing calls have these instructions. */
static void opdi_plugin_warn(const char *path) {
    const char *const lacks = opd_code_forbidden(NULL) ? NULL : opd_plugin_lacks(path);
    if (lacks) {
        opd_warn("opd_plugin_load: '%s' has instructions of %s, which this processor lacks: running them ends the "
                 "program with SIGILL; build the library on this machine, or without -march=native", path, lacks);
    }
}
/* Maps the library at `path` and runs its blocks.  On failure, undoes everything, returns NULL and sets an error. */
opd_plugin *opd_plugin_load(const char *path) {
    OPDI_NEEDS_ALL();
    opdi_thread *thread = opdi_self();
    opd_plugin *plugin = NULL;
    bool known = false;
    if (!opd_ok()) { return NULL; }
    if (!path) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_plugin_load: the path is NULL");
        return NULL;
    }
    opdi_started();
    opd_plugin *fresh = opd_ok() ? opdi_plugin_new(path) : NULL;
    if (!fresh) { return NULL; }
    opdi_plugin_warn(path);
    plugin = opdi_plugin_map(fresh);
    if (plugin) {
        const bool entered = opdi_start_enter(thread);
        known = opdi_plugin_mark(plugin);
        if (!known && (!opd_ok() || opdi_plugin_check(plugin) || opdi_plugin_run(plugin))) { opdi_plugin_undo(plugin); }
        opdi_start_leave(entered);
    }
    if (known) { opdi_plugin_unpin(plugin); }
    if (plugin != fresh) { opdi_free(fresh, fresh->bytes); }
    if (!opd_ok()) {
        opdi_plugins_sweep();
        return NULL;
    }
    return plugin;
}
#endif
OPDI_ONCE_END
