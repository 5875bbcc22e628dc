#include "aoti.h"

//== extensions: loading ===============================================================================================

/* Replaces dlsym in extensions.  For the names of PyTorch's functions, returns the functions of this library. */
OPDI_INTERNAL void *opdi_ext_symbol(void *library, const char *name) {
    void *found = NULL;
    const bool torch = name && (strncmp(name, "aoti_torch_", 11) == 0 || strncmp(name, "torch_", 6) == 0);
    for (size_t i = 0; torch && i < opdi_aoti_nsymbols; i++) {
        if (strcmp(opdi_aoti_symbols[i].name, name) == 0 && opdi_aoti_symbols[i].kind == OPDI_AOTI_PLAIN) {
            memcpy(&found, &opdi_aoti_symbols[i].fn, sizeof found);
        }
    }
    return torch || library == (void *)&opdi_ext_torch ? found : dlsym(library, name);
}
/* Returns true if a library is part of CUDA or HIP.  Such a library need not be installed, because its functions are
   never called here. */
static bool opdi_ext_is_cuda(const char *name) {
    static const char *const begins[] = {"libcuda", "libnv", "libcu", "libamdhip", "libhip"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        if (strncmp(name, begins[i], strlen(begins[i])) == 0 && strncmp(name, "libcurl", 7) != 0) { return true; }
    }
    return false;
}
/* Finds a library that the extension expects in or below its own folder ($ORIGIN).  The loader would not find the
   library, because it loads a copy of the extension, which is in another folder.  Writes the library's path to `text`.
   Returns false if there is no such library. */
static bool opdi_ext_beside(const opdi_aoti_elf *elf, const char *needed, char *text, size_t cap) {
    const uint64_t runpath = opdi_aoti_entry(elf, DT_RUNPATH), rpath = opdi_aoti_entry(elf, DT_RPATH);
    const uint64_t at = runpath ? runpath : rpath;
    const char *path = elf->model->path, *slash = strrchr(path, '/');
    const char *part = at < elf->names_size ? elf->names + at : "";
    while (at && *part) {
        const size_t length = strcspn(part, ":");
        if (strncmp(part, "$ORIGIN", 7) == 0 && length < 400) {
            snprintf(text, cap, "%.*s%.*s/%.200s", slash ? (int)(slash - path < 1200 ? slash - path : 1200) : 1,
                     slash ? path : ".", (int)length - 7, part + 7, needed);
            if (access(text, R_OK) == 0) { return true; }
        }
        part += length + (part[length] == ':');
    }
    return false;
}
/* Returns true if a library is removed from the dependencies of the extension's copy, because it is part of CUDA or
   HIP, or is in the folder of the extension.  In the second case, the library of stubs depends on it instead. */
static bool opdi_ext_is_replaced(const opdi_aoti_elf *elf, const char *name) {
    char text[2000];
    return opdi_ext_is_cuda(name) || opdi_ext_beside(elf, name, text, sizeof text);
}
static void opdi_ext_need_beside(const opdi_aoti_elf *elf, opdi_aoti_library *library) {
    char text[2000];
    for (size_t i = 0; i < elf->ndynamic; i++) {
        if (elf->dynamic[i].d_tag != DT_NEEDED || elf->dynamic[i].d_un.d_val >= elf->names_size) { continue; }
        const char *needed = elf->names + elf->dynamic[i].d_un.d_val;
        if (opdi_aoti_is_torch(needed) || opdi_ext_is_cuda(needed) || library->nneeded == 16 ||
            !opdi_ext_beside(elf, needed, text, sizeof text)) {
            continue;
        }
        library->needed[library->nneeded++] = (uint32_t)library->names.length;
        char *whole = realpath(text, NULL);
        opdi_aoti_put(&library->names, whole ? whole : text, strlen(whole ? whole : text) + 1);
        free(whole);
    }
}
/* Returns the name of the library that provides the version of a symbol, or NULL if the symbol has no version. */
static const char *opdi_ext_library_of(const opdi_aoti_elf *elf, size_t symbol) {
    const uint16_t version = elf->versions ? elf->versions[symbol] & 0x7fff : 0;
    uint64_t at = version > 1 ? opdi_aoti_entry(elf, DT_VERNEED) : 0;
    for (uint64_t left = at ? opdi_aoti_entry(elf, 0x6fffffff) : 0; left; left--) {
        const Elf64_Verneed *need = (const Elf64_Verneed *)opdi_aoti_at(elf, at, sizeof *need);
        uint64_t one = need ? at + need->vn_aux : 0;
        for (int i = 0; need && i < need->vn_cnt; i++) {
            const Elf64_Vernaux *aux = (const Elf64_Vernaux *)opdi_aoti_at(elf, one, sizeof *aux);
            if (aux && aux->vna_other == version) { return elf->names + need->vn_file; }
            one += aux ? aux->vna_next : 0;
        }
        at += need ? need->vn_next : 0;
    }
    return NULL;
}
/* Removes replaced libraries from the list of required versions. */
static void opdi_ext_drop_versions(opdi_aoti_elf *elf) {
    Elf64_Dyn *first = NULL, *count = NULL;
    Elf64_Verneed *before = NULL;
    for (size_t i = 0; i < elf->ndynamic; i++) {
        if (elf->dynamic[i].d_tag == DT_VERNEED) { first = &elf->dynamic[i]; }
        if (elf->dynamic[i].d_tag == 0x6fffffff) { count = &elf->dynamic[i]; }
    }
    uint64_t at = first ? first->d_un.d_ptr : 0;
    for (uint64_t left = at && count ? count->d_un.d_val : 0; left; left--) {
        Elf64_Verneed *need = (Elf64_Verneed *)opdi_aoti_at(elf, at, sizeof *need);
        if (!need) { return; }
        const uint64_t next = need->vn_next ? at + need->vn_next : 0;
        if (!opdi_ext_is_replaced(elf, elf->names + need->vn_file)) { before = need; }
        else {
            if (before) { before->vn_next = next ? before->vn_next + need->vn_next : 0; }
            else { first->d_un.d_ptr = next; }
            count->d_un.d_val--;
        }
        at = next;
    }
    /* if the list is empty now, disable both entries */
    if (count && count->d_un.d_val == 0) { first->d_tag = count->d_tag = 0x6ffffef5; }
}
/* The replacement of a symbol that an extension imports.
   OTHER: none.
   STUB: a stub of a function in this library.
   CUDA: a stub that returns an error or NULL.
   MISSING: none; loading fails, because the symbol is a C++ function of PyTorch that does not exist here.
   BESIDE: none; a library in the extension's folder provides the symbol. */
typedef enum opdi_ext_choice {
    OPDI_EXT_OTHER, OPDI_EXT_STUB, OPDI_EXT_CUDA, OPDI_EXT_MISSING, OPDI_EXT_BESIDE
} opdi_ext_choice;
static opdi_ext_choice opdi_ext_choose(opdi_aoti_elf *elf, size_t i, const char *name) {
    static const char *const ours[] = {"dlopen", "dlclose", "dlsym"};
    const Elf64_Sym *symbol = &elf->symbols[i];
    if (symbol->st_shndx != SHN_UNDEF || !*name || strlen(name) >= 300) { return OPDI_EXT_OTHER; }
    const char *library = opdi_ext_library_of(elf, i);
    if (library && opdi_ext_is_cuda(library)) { return OPDI_EXT_CUDA; }
    if (library && opdi_ext_is_replaced(elf, library)) { return OPDI_EXT_BESIDE; }
    for (size_t k = 0; k < sizeof ours / sizeof *ours; k++) {
        if (strcmp(name, ours[k]) == 0) { return OPDI_EXT_STUB; }
    }
    if (elf->versions && (elf->versions[i] & 0x7fff) > 1) { return OPDI_EXT_OTHER; }
    if (!opdi_ext_heap.replace && strcmp(name, OPDI_EXT_STRING_REPLACE) == 0) { return OPDI_EXT_STUB; }
    if (strncmp(name, "aoti_", 5) == 0 || strncmp(name, "torch_", 6) == 0) { return OPDI_EXT_STUB; }
    const bool torch = strstr(name, "3c10") || strstr(name, "2at6") || strstr(name, "5torch");
    return torch && ELF64_ST_BIND(symbol->st_info) != STB_WEAK ? OPDI_EXT_MISSING
        : strncmp(name, "cuda", 4) == 0 || strncmp(name, "__cuda", 6) == 0 ? OPDI_EXT_CUDA : OPDI_EXT_OTHER;
}
static void opdi_ext_note_missing(char *missing, size_t cap, const char *name) {
    const size_t length = strlen(missing);
    if (length + strlen(name) + 16 < cap) {
        snprintf(missing + length, cap - length, "%s%s", length ? ", " : "", name);
    } else if (length + 5 < cap && !strstr(missing, " ...")) { strcat(missing, " ..."); }
}
static int opdi_ext_report_missing(const opdi_aoti_elf *elf, const char *missing, bool cxx) {
    char text[900];
    snprintf(text, sizeof text, cxx
             ? "the library uses PyTorch's C++ interface (it needs %.600s), but only libraries that use the stable "
             "interface can be loaded" : "the library needs %.700s, which opdispatch does not have", missing);
    return opdi_aoti_bad(elf->model, text);
}
/* Returns true if the first letter of symbol `at`'s name also belongs to the name of a symbol that is not replaced.
   (Names may share their ends in the table of names.)  Replaced symbols are renamed by changing this letter, so such a
   symbol cannot be renamed. */
static bool opdi_ext_shared(const opdi_aoti_elf *elf, const char *names, const uint8_t *choices, size_t at) {
    const size_t place = elf->symbols[at].st_name;
    for (size_t i = 1; i < elf->nsymbols; i++) {
        const size_t first = elf->symbols[i].st_name;
        const bool theirs = choices[i] == OPDI_EXT_OTHER || choices[i] == OPDI_EXT_BESIDE;
        if (theirs && first <= place && place < first + strlen(names + first)) { return true; }
    }
    return false;
}
/* Makes the stub of function `name` under the changed name `as`.  Returns 1, or 0 if there is no such function, or -1
   and sets an error. */
static int opdi_ext_stub(const opdi_aoti_elf *elf, opdi_aoti_library *library, const char *name, const char *as,
                         opdi_ext_choice choice) {
    if (choice != OPDI_EXT_CUDA) { return opdi_aoti_stub(elf->model, library, name, as); }
    const bool pointer = strcmp(name, "__cudaRegisterFatBinary") == 0 || strcmp(name, "cudaGetErrorString") == 0;
    opdi_aoti_name(library, as);
    opdi_aoti_code_jump(&library->code, pointer ? (opdi_aoti_fn)opdi_ext_cuda_null : (opdi_aoti_fn)opdi_ext_cuda, NULL);
    return 1;
}
/* Makes stubs for all functions of PyTorch and CUDA that the extension imports.  Returns 0, or -1 and sets an error. */
static int opdi_ext_bind(opdi_aoti_elf *elf, opdi_aoti_library *library) {
    char missing[700] = "";
    bool cxx = false;
    uint8_t *choices = (uint8_t *)calloc(elf->nsymbols, 1);
    char *names = (char *)malloc(elf->names_size);
    if (!choices || !names) { (void)opdi_aoti_no_memory(); }
    else { memcpy(names, elf->names, elf->names_size); }
    for (size_t i = 1; i < elf->nsymbols && opd_ok(); i++) {
        choices[i] = (uint8_t)opdi_ext_choose(elf, i, names + elf->symbols[i].st_name);
    }
    for (size_t i = 1; i < elf->nsymbols && opd_ok(); i++) {
        const bool ours = choices[i] == OPDI_EXT_STUB || choices[i] == OPDI_EXT_CUDA;
        if (choices[i] == OPDI_EXT_BESIDE) { elf->versions[i] = 1; }
        if (!ours) { continue; }
        if (elf->versions) { elf->versions[i] = 1; }
        if (!opdi_ext_shared(elf, names, choices, i)) { elf->names[elf->symbols[i].st_name] = '.'; }
    }
    for (size_t i = 1; i < elf->nsymbols && opd_ok(); i++) {
        const char *name = names + elf->symbols[i].st_name;
        if (choices[i] == OPDI_EXT_OTHER || choices[i] == OPDI_EXT_BESIDE) { continue; }
        const int there = choices[i] == OPDI_EXT_MISSING ? 0
            : opdi_ext_stub(elf, library, name, elf->names + elf->symbols[i].st_name, (opdi_ext_choice)choices[i]);
        if (there == 0 && ELF64_ST_BIND(elf->symbols[i].st_info) != STB_WEAK) {
            cxx = cxx || choices[i] == OPDI_EXT_MISSING;
            opdi_ext_note_missing(missing, sizeof missing, name);
        }
    }
    if (*missing && opd_ok()) { (void)opdi_ext_report_missing(elf, missing, cxx); }
    free(choices);
    free(names);
    return opd_ok() ? 0 : -1;
}
/* Replaces the dependencies on PyTorch and CUDA by the library of stubs, called `name`.  This name overwrites the name
   of one of PyTorch's libraries.  Returns 0, or -1 and sets an error. */
static int opdi_ext_redirect(opdi_aoti_elf *elf, const char *name) {
    uint64_t first = 0;
    bool asks = false;
    for (size_t i = 0; i < elf->ndynamic; i++) {
        if (elf->dynamic[i].d_tag != DT_NEEDED) { continue; }
        if (elf->dynamic[i].d_un.d_val >= elf->names_size) {
            return opdi_aoti_damaged(elf, "its list of needed libraries");
        }
        const char *needed = elf->names + elf->dynamic[i].d_un.d_val;
        if (!first && opdi_aoti_is_torch(needed) && strlen(needed) >= strlen(name)) {
            first = elf->dynamic[i].d_un.d_val;
        }
    }
    for (size_t i = 1; i < elf->nsymbols; i++) {
        asks = asks || strstr(elf->names + elf->symbols[i].st_name, "oti_torch_library_init_") != NULL;
    }
    if (!asks) {
        return opdi_aoti_bad(elf->model, "the library does not register operators through PyTorch's stable interface "
                             "(it does not use aoti_torch_library_init_...)");
    }
    if (!first) { return opdi_aoti_bad(elf->model, "the library was not linked with libtorch (-ltorch)"); }
    for (size_t i = 0; i < elf->ndynamic; i++) {
        if (elf->dynamic[i].d_tag != DT_NEEDED) { continue; }
        const char *needed = elf->names + elf->dynamic[i].d_un.d_val;
        if (opdi_aoti_is_torch(needed) || opdi_ext_is_replaced(elf, needed)) { elf->dynamic[i].d_un.d_val = first; }
    }
    memcpy(elf->names + first, name, strlen(name) + 1);
    return 0;
}
/* Finds a function in the process (where a sanitizer may have its own) or else in `library`.  Stores its address, or
   NULL, in *out. */
static void opdi_ext_find(void *library, const char *name, void *out) {
    opdi_aoti_find(NULL, name, out);
    if (!*(void **)out) { opdi_aoti_find(library, name, out); }
}
/* Finds the C++ functions that must be known before an extension's code runs. */
OPDI_INTERNAL void opdi_ext_find_cxx(void) {
    if (opd_code_forbidden(NULL)) { return; }     /* then no extension is loaded */
    void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
    void *unwinder = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library || !unwinder) { return; }        /* without these libraries, there are no C++ extensions */
    opdi_ext_find(library, "_Znwm", &opdi_ext_heap.make);
    opdi_ext_find(library, "_ZdlPv", &opdi_ext_heap.unmake);
    opdi_ext_find(library, OPDI_EXT_STRING_REPLACE, &opdi_ext_heap.replace);
    opdi_ext_find(library, "__cxa_begin_catch", &opdi_ext_cxx.caught);
    opdi_ext_find(library, "__cxa_end_catch", &opdi_ext_cxx.done);
    opdi_ext_find(library, "__cxa_current_exception_type", &opdi_ext_cxx.type);
    opdi_ext_find(library, "_ZTISt9exception", &opdi_ext_cxx.base);
    opdi_ext_find(unwinder, "_Unwind_SetGR", &opdi_ext_cxx.set_register);
    opdi_ext_find(unwinder, "_Unwind_SetIP", &opdi_ext_cxx.set_place);
    opdi_ext_find(unwinder, "_Unwind_GetRegionStart", &opdi_ext_cxx.begin);
}
/* Loads an extension from the bytes of its file, which are changed.  Runs the extension's own code, which records its
   registrations.  Returns 0, or -1 and sets an error. */
static int opdi_ext_load_library(opdi_ext *ext, unsigned char *data, size_t size) {
    static uint32_t libraries;
    opdi_aoti_elf elf;
    opdi_aoti_library library;
    opdi_aoti_bytes file;
    char name[16];
    int rc;
    memset(&elf, 0, sizeof elf);
    memset(&library, 0, sizeof library);
    memset(&file, 0, sizeof file);
    elf.model = &ext->model;
    elf.data = data;
    elf.size = size;
    if (opdi_aoti_elf_head(&elf) || opdi_aoti_elf_tables(&elf) || opdi_aoti_elf_check(&elf)) { return -1; }
    snprintf(name, sizeof name, "ope%05x.so", OPDI_AOTI_NEXT(libraries) & 0xfffff);
    opdi_aoti_name(&library, "");
    memset(library.symbols.data, 0, library.symbols.length);
    opdi_aoti_code_common(&library.code);
    opdi_aoti_name(&library, ".call");
    library.call_at = library.code.length;
    opdi_ext_code_call(&library.code);
    library.call_size = library.code.length - library.call_at;
    opdi_ext_need_beside(&elf, &library);
    opdi_ext_find_cxx();
    rc = opdi_ext_bind(&elf, &library);
    if (rc == 0) {
        opdi_ext_drop_versions(&elf);
        rc = opdi_ext_redirect(&elf, name);
    }
    if (rc == 0) {
        opdi_aoti_link(&library, name, &file);
        rc = opd_ok() ? opdi_aoti_image_load(&ext->model, &ext->model.stubs, file.data, file.length) : -1;
    }
    if (rc == 0) {
        opdi_aoti_find(ext->model.stubs.handle, ".call", &ext->call);
        opdi_ext_loading = ext;
        rc = opdi_aoti_image_load(&ext->model, &ext->model.image, data, size);
        opdi_ext_loading = NULL;
        rc = rc == 0 && opd_ok() ? 0 : -1;
    }
    free(library.code.data);
    free(library.names.data);
    free(library.symbols.data);
    free(file.data);
    return rc;
}
static int opdi_ext_read(opdi_ext *ext) {
    size_t size;
    unsigned char *const data = opdi_aoti_map(&ext->model, &size);
    if (!data) { return -1; }
    const int rc = opdi_ext_load_library(ext, data, size);
    (void)munmap(data, size);
    return rc;
}
/* Returns true if a dispatch key belongs to a device on which extensions are not supported. */
static bool opdi_ext_is_other_device(const char *key) {
    static const char *const ends[] = {"CUDA", "HIP", "XPU", "MPS", "MTIA", "HPU", "XLA", "PrivateUse1"};
    for (size_t i = 0; key && i < sizeof ends / sizeof *ends; i++) {
        if (opdi_aoti_ends(key, ends[i])) { return true; }
    }
    return false;
}
static int opdi_ext_commit_kernel(opdi_ext *ext, opdi_ext_library *library, opdi_ext_entry *entry) {
    char name[400];
    snprintf(name, sizeof name, "%.150s::%.200s", library->ns, entry->text);
    const opd_op *known = opd_find_quiet(strstr(entry->text, "::") ? entry->text : name);
    if (known && opd_op_schema(known)) {
        opd_op *op = opd_find(opd_op_name(known));
        entry->signature = (opdi_ext_signature *)malloc(sizeof *entry->signature);
        if (!entry->signature) { return opdi_aoti_no_memory(); }
        if (!op || !opdi_ext_signature_of(op, entry->signature)) { return -1; }
    }
    opdi_ext_hold(ext);
    if (opd_impl_key(library->library, entry->text, NULL, opdi_ext_kernel, entry, opdi_ext_kernel_release) == 0) {
        return 0;
    }
    opdi_ext_release(ext);
    return -1;
}
/* Returns true if an entry defines an operator of torchvision that opdispatch.h defines, too.  If so, the definition of
   opdispatch.h stays, with its backward function, and gets the extension's kernels. */
static bool opdi_ext_is_builtin(const opdi_ext_library *library, const opdi_ext_entry *entry) {
    static const char *const names[] = {"nms(", "roi_align(", "_roi_align_backward("};
    char text[600], name[100];
    opd_op *there = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && strcmp(library->ns, "torchvision") == 0; i++) {
        if (strncmp(entry->text, names[i], strlen(names[i])) != 0) { continue; }
        snprintf(name, sizeof name, "torchvision::%.*s", (int)strlen(names[i]) - 1, names[i]);
        /* opd_find or listing the namespace would register the operators of opdispatch.h */
        for (opd_op *op = opd_op_next(NULL); op && !there; op = opd_op_next(op)) {
            if (strcmp(opd_op_name(op), name) == 0) { there = op; }
        }
    }
    return there && opd_op_schema(there) && opd_schema_print(opd_op_schema(there), text, sizeof text) < sizeof text &&
        strcmp(text + 13, entry->text) == 0;
}
static void opdi_ext_define(opdi_ext *ext, const opdi_ext_library *library, opdi_ext_entry *entry) {
    opd_def_options options;
    memset(&options, 0, sizeof options);
    options.tags = entry->tags & 0xffff;
    entry->builtin = opdi_ext_is_builtin(library, entry);
    if (entry->builtin || opd_def_with(library->library, entry->text, &options) == 0) { ext->operators++; }
}
/* Carries out all recorded registrations: first the definitions, then the kernels.  Returns 0, or -1 and sets an
   error. */
static int opdi_ext_commit(opdi_ext *ext) {
    for (opdi_ext_library *library = ext->libraries; library && opd_ok(); library = library->next) {
        if (!library->ns) { return opdi_aoti_bad(&ext->model, "the library registers operators without a namespace"); }
        if (opdi_ext_is_other_device(library->key)) { continue; }
        library->library = opd_library_open(library->kind, library->ns, library->key, library->file, library->line);
        for (opdi_ext_entry *entry = library->entries; library->library && entry && opd_ok(); entry = entry->next) {
            if (!entry->fn) { opdi_ext_define(ext, library, entry); }
        }
    }
    for (opdi_ext_library *library = ext->libraries; library && opd_ok(); library = library->next) {
        for (opdi_ext_entry *entry = library->entries; entry && opd_ok(); entry = entry->next) {
            if (entry->fn && library->library) { (void)opdi_ext_commit_kernel(ext, library, entry); }
        }
    }
    ext->committed = true;
    return opd_ok() ? 0 : -1;
}
/* Undoes all registrations of an extension.  The extension's library is unloaded as soon as nothing needs its code any
   more. */
static void opdi_ext_undo(opdi_ext *ext) {
    opd_library_close(ext->derivatives);
    ext->derivatives = NULL;
    for (opdi_ext_library *library = ext->libraries; library; library = library->next) {
        if (library->library) { opd_library_close(library->library); }
        library->library = NULL;
    }
    opdi_ext_release(ext);
}
static opdi_ext **opdi_ext_place(const char *path) {
    opdi_ext **place = &opdi_ext_first;
    while (*place && strcmp((*place)->model.path, path) != 0) { place = &(*place)->next; }
    return place;
}
static int opdi_ext_loaded(const char *path) {
    (void)pthread_mutex_lock(&opdi_ext_lock);
    const opdi_ext *ext = *opdi_ext_place(path);
    const int operators = ext ? ext->operators : -1;
    (void)pthread_mutex_unlock(&opdi_ext_lock);
    return operators;
}
/* Puts the extension's path in front of a pending error of the registry. */
static void opdi_ext_explain(const opdi_ext *ext) {
    char text[1200];
    const opd_code code = opd_error_code();
    if (strncmp(opd_error_message(), "opd_extension_load", 18) == 0) { return; }
    snprintf(text, sizeof text, "%s", opd_error_message());
    opd_error_clear();
    (void)opd_fail(code, "opd_extension_load: %.400s: %s", ext->model.path, text);
}
static int opdi_ext_load(const char *path) {
    if (!path) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_extension_load: the path is NULL"); }
    const int before = opdi_ext_loaded(path);
    if (before >= 0) { return before; }
    opdi_ext *ext = (opdi_ext *)calloc(1, sizeof *ext);
    if (!ext || !(ext->model.path = opdi_aoti_copy_text(path, strlen(path)))) {
        free(ext);
        return opdi_aoti_no_memory();
    }
    ext->model.who = "opd_extension_load";
    ext->model.extension = true;
    ext->model.image.fd = ext->model.stubs.fd = -1;
    ext->holds = 1;
    if (opdi_ext_read(ext) || opdi_ext_commit(ext) || opdi_ext_vision(ext)) {
        opdi_ext_explain(ext);
        opdi_ext_undo(ext);
        return -1;
    }
    (void)pthread_mutex_lock(&opdi_ext_lock);
    ext->next = opdi_ext_first;
    opdi_ext_first = ext;
    (void)pthread_mutex_unlock(&opdi_ext_lock);
    return ext->operators;
}
int opd_extension_load(const char *path) {
#if defined(OPD_LEAN)
    OPDI_NEEDS_ALL();
#endif
    if (!opd_ok() || opd_code_forbidden("opd_extension_load")) { return -1; }
    (void)pthread_mutex_lock(&opdi_ext_load_lock);            /* only one thread loads at a time */
    const int operators = opdi_ext_load(path);
    (void)pthread_mutex_unlock(&opdi_ext_load_lock);
    return operators;
}
int opd_extension_unload(const char *path) {
    (void)pthread_mutex_lock(&opdi_ext_lock);
    opdi_ext **place = path ? opdi_ext_place(path) : NULL;
    opdi_ext *ext = place ? *place : NULL;
    if (ext) { *place = ext->next; }
    (void)pthread_mutex_unlock(&opdi_ext_lock);
    if (!ext) {
        return opd_fail(OPD_ERROR_NOT_FOUND, "opd_extension_unload: %.400s is not loaded", path ? path : "NULL");
    }
    opdi_ext_undo(ext);
    return 0;
}

