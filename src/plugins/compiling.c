#include "plugins.h"

//== the size of the cache =============================================================================================

static int opdi_cached_compare(const void *first, const void *second) {
    const int64_t a = ((const opdi_cached *)first)->used, b = ((const opdi_cached *)second)->used;
    return a < b ? -1 : a > b;
}
/* Returns the number of bytes that the cache may have: $OPD_CACHE_MB, or 512 MB. */
static int64_t opdi_cache_limit(void) {
    const char *const text = getenv("OPD_CACHE_MB");
    char *end = NULL;
    const long long count = text ? strtoll(text, &end, 10) : 0;
    return (text && end != text && count >= 0 && count < 1 << 30 ? (int64_t)count : 512) << 20;
}
/* Removes the files that were not used for the longest time until the cache has 7/8 of its limit, if it has more than
   the limit.  Files that were used within the last hour stay, because another process may be about to load them.  Looks
   after the first of 16 compilations of this process. */
static void opdi_cache_shrink(const char *dir) {
    static uint32_t builds;
    opdi_string list = {NULL, 0, 0, false};
    char path[OPDI_PATH];
    int64_t bytes = 0;
    const int64_t limit = opdi_cache_limit(), now = (int64_t)time(NULL);
    if ((OPDI_ADD(&builds, 1) & 15) != 0) { return; }
    opdi_cache_list(dir, &list);
    const size_t count = list.length / sizeof(opdi_cached);
    opdi_cached *const all = (opdi_cached *)(void *)list.data;
    for (size_t i = 0; i < count; i++) { bytes += all[i].bytes; }
    if (bytes > limit) { qsort(all, count, sizeof *all, opdi_cached_compare); }
    for (size_t i = 0; bytes > limit - limit / 8 && i < count && all[i].used < now - 60 * 60; i++) {
        if (snprintf(path, sizeof path, "%s/%s", dir, all[i].name) < OPDI_PATH && opdi_file_remove(path) == 0) {
            bytes -= all[i].bytes;
        }
    }
    if (list.failed) { opd_error_clear(); }
    opdi_string_free(&list);
}

//== compiling at run time =============================================================================================
//
//  The result of a compilation is the file <name>-<key>-<contents>.so, or .dll on Windows.  <key> is a hash of flags,
//  compiler, version and paths.  <contents> is a hash of every file that the compiler read; <name>-<key>.deps lists
//  these files.  All files are made as tmp.*, or in a new folder tmp.*, and then renamed.  The remains of a killed
//  build are ignored, and removed after a day.

/* Mixes the contents of the file at `path` into *hash.  Returns false if the file cannot be read. */
static bool opdi_hash_file(uint64_t *hash, const char *path) {
    char part[16384];
    size_t count;
    FILE *file = opdi_file_open(path, "rb");
    if (!file) { return false; }
    while ((count = fread(part, 1, sizeof part, file)) > 0) { *hash = opdi_hash_bytes(*hash, part, count); }
    count = (size_t)ferror(file);
    (void)fclose(file);
    return count == 0;
}

/* Reads a whole file as text into *string.  Returns false, without an error, if the file cannot be opened. */
static bool opdi_string_read(opdi_string *string, const char *path) {
    char part[4096];
    size_t count;
    FILE *file = opdi_file_open(path, "rb");
    if (!file) { return false; }
    opdi_string_add_n(string, "", 0);
    while ((count = fread(part, 1, sizeof part, file)) > 0) { opdi_string_add_n(string, part, count); }
    (void)fclose(file);
    return !string->failed;
}

/* Appends data to the open file `fd`, makes it readable only for this user, writes it to the disk, and closes it.
   Returns false on failure. */
static bool opdi_file_end(int fd, const char *data, size_t length) {
    bool ok = fd >= 0 && opdi_fd_private(fd);
    while (ok && length) {
        const int64_t put = opdi_fd_write(fd, data, length);
        ok = put >= 0 || errno == EINTR;
        if (put > 0) {
            data += put;
            length -= (size_t)put;
        }
    }
    ok = ok && opdi_fd_flush(fd);
    return fd >= 0 && close(fd) == 0 && ok;
}

/* Writes the file `path` completely or not at all, through a temporary file in the folder `dir`.  Returns 0, or -1 and
   sets an error. */
static int opdi_file_write(const char *dir, const char *path, const char *data, size_t length) {
    char tmp[OPDI_PATH];
    if (opdi_path(tmp, "%s/tmp.XXXXXX", dir)) { return -1; }
    int fd = opdi_temporary_file(tmp);
    if (opdi_file_end(fd, data, length) && opdi_file_replace(tmp, path) == 0) { return 0; }
    (void)opdi_cache_fails(path);
    if (fd >= 0) { (void)opdi_file_remove(tmp); }
    return -1;
}

/* Returns true if the file at `path` has this text. */
static bool opdi_file_is(const char *path, const char *text) {
    opdi_string string = {NULL, 0, 0, false};
    const bool same = opdi_string_read(&string, path) && string.length == strlen(text) &&
        memcmp(string.data, text, string.length) == 0;
    opdi_string_free(&string);
    return same;
}

/* Returns the language of a file, by the end of its name. */
static opdi_language opdi_language_of(const char *file) {
    const char *dot = strrchr(file, '.');
    if (dot && !strcmp(dot, ".cu")) { return OPDI_LANGUAGE_CUDA; }
    return dot && (!strcmp(dot, ".cpp") || !strcmp(dot, ".cc") || !strcmp(dot, ".cxx") || !strcmp(dot, ".C"))
        ? OPDI_LANGUAGE_CXX : OPDI_LANGUAGE_C;
}

/* Returns the compiler command for a language: $CC, $CXX or $NVCC, or else the system's default, and nvcc.  `out` has
   room for it. */
static const char *opdi_compiler(int language, char out[OPDI_PATH]) {
    static const char *const names[] = {"CC", "CXX", "NVCC"};
    const char *command = opdi_setting(names[language], out);
    if (command) { command += strspn(command, " \t\n"); }
    if (command && *command) { return command; }
    if (language != OPDI_LANGUAGE_CUDA) { return opdi_default_compiler(language == OPDI_LANGUAGE_CXX); }
    return !getenv("PATH") || opdi_is_readable("/usr/local/cuda/bin/nvcc") ? "/usr/local/cuda/bin/nvcc" : "nvcc";
}

/* Finds the folder of opdispatch.h: $OPD_INCLUDE, or else the folder from which this file was compiled.  If the header
   is not found, the compiler may still find it through the flags or the system's folders; otherwise the compiler's
   error will contain `hint`.  Returns 0, or -1 and sets an error. */
static int opdi_build_include(opdi_build *build) {
    char own[OPDI_PATH], path[OPDI_PATH];
    const char *given = opdi_setting("OPD_INCLUDE", own);
    if (given && *given) {
        build->hint = "not in the folder that $OPD_INCLUDE names";
        if (opdi_path(path, "%s/opdispatch.h", given)) { return -1; }
        return opdi_is_readable(path) ? opdi_path(build->include, "%s", given) : 0;
    }
    build->hint = "not found from the program's folder or one above, by the path that the program was compiled with";
    return opdi_header_search(build, __FILE__);
}

/* Returns `hash` mixed with what -march=native depends on, because computers with other processors may share the
   folder.  If the processor cannot be asked, its name is that of the computer. */
static uint64_t opdi_hash_processor(uint64_t hash) {
#if defined(OPDI_CPUID)
    uint32_t words[OPDI_PROCESSOR_WORDS];
    opdi_processor_words(words);
    return opdi_hash_bytes(hash, words, sizeof words);
#else
    char host[256] = "";
    opdi_host_name(host, sizeof host);
    return opdi_hash_text(hash, host);
#endif
}
/* Sets `include` and `stem` (which contains the key).  Returns 0, or -1 and sets an error. */
static int opdi_build_key(opdi_build *build) {
    uint64_t hash = opdi_hash_text(1, OPD_VERSION);
    char command[OPDI_PATH];
    if (opdi_build_include(build)) { return -1; }
    for (int i = OPDI_LANGUAGE_C; i <= build->language; i++) {
        hash = opdi_hash_compiler(hash, opdi_compiler(i, command));
    }
    hash = opdi_hash_text(opdi_hash_text(hash, build->flags), build->include);
    if (strstr(build->flags, "native") || strstr(opdi_compiler(build->language, command), "native")) {
        hash = opdi_hash_processor(hash);
    }
    for (int i = 0; build->files[i]; i++) { hash = opdi_hash_text(hash, build->files[i]); }
    return opdi_path(build->stem, "%s/%s-%016llx", build->dir, build->name, (unsigned long long)hash);
}

/* Writes the path of the result to `out`.  The path depends on the contents of the files in `deps`, which the compiler
   read.  Returns false if one of these files cannot be read. */
static bool opdi_build_result(const opdi_build *build, const opdi_string *deps, char *out) {
    uint64_t hash = 2;
    for (size_t at = 0; at < deps->length; at += strlen(deps->data + at) + 1) {
        hash = opdi_hash_text(hash, deps->data + at);
        if (!opdi_hash_file(&hash, deps->data + at)) { return false; }
    }
    return snprintf(out, OPDI_PATH, "%s-%016llx" OPDI_LIBRARY_ENDING, build->stem,
                    (unsigned long long)hash) < OPDI_PATH;
}

/* Adds the paths in `rule`, a make rule "object: a b" as compilers write it, to `deps`, a list of strings that each end
   with a 0. */
static void opdi_deps_add(opdi_string *deps, const char *rule) {
    const char *at = strstr(rule, ": ");
    bool in = false;
    for (at = at ? at + 1 : ""; *at; at++) {
        const bool escaped = *at == '\\' && at[1], newline = escaped && (at[1] == '\n' || at[1] == '\r');
        if (newline || (!escaped && strchr(" \t\r\n", *at))) {
            if (in) { opdi_string_add_n(deps, "", 1); }
            if (*at == '\n') {  /* end of the rule */
                in = false;
                break;
            }
            at += newline;
            in = false;
            continue;
        }
        if ((escaped && strchr(OPDI_ESCAPED, at[1])) || (*at == '$' && at[1] == '$')) { at++; }
        opdi_string_add_n(deps, at, 1);
        in = true;
    }
    if (in) { opdi_string_add_n(deps, "", 1); }
}

/* Adds a word of a command, with its final 0, to `words`. */
static void opdi_argv_add(opdi_string *words, const char *word) { opdi_string_add_n(words, word, strlen(word) + 1); }
static void opdi_argv_split(opdi_string *words, const char *text) {
    for (text += strspn(text, " \t\n"); *text; text += strspn(text, " \t\n")) {
        const size_t length = strcspn(text, " \t\n");
        opdi_string_add_n(words, text, length);
        opdi_string_add_n(words, "", 1);
        text += length;
    }
}
static void opdi_argv_command(opdi_string *words, const char *command) {
    const size_t length = opdi_command_name(command);
    opdi_string_add_n(words, command, length);
    opdi_string_add_n(words, "", 1);
    opdi_argv_split(words, command + length);
}

/* Adds the user's flags for the compiler of a language.  nvcc gets flags that it does not know by -Xcompiler, those for
   the linker by -Xlinker, and -arch=native unless a flag or the command names a GPU. */
static void opdi_argv_flags(const opdi_build *build, opdi_string *words, int language) {
    static const char *const known[] = {"-I", "-D", "-U", "-O", "-l", "-L", "-g", "-G", "-std", "-arch", "-gencode",
        "-code", "-rdc", "-use_fast_math", "--", "-X", "-maxrregcount", "-t", "-ccbin", "-cudart"};
    char command[OPDI_PATH];
    const char *text = opdi_compiler(language, command), *flags = build->flags;
    if (language != OPDI_LANGUAGE_CUDA) {
        opdi_argv_split(words, flags);
        return;
    }
    if (!strstr(text, "-arch") && !strstr(text, "-gencode") && !strstr(flags, "-arch") && !strstr(flags, "-gencode")) {
        opdi_argv_add(words, "-arch=native");
    }
    for (bool follows = false; *(flags += strspn(flags, " \t\n")); flags += strcspn(flags, " \t\n")) {
        const size_t length = strcspn(flags, " \t\n");
        const bool linker = strncmp(flags, "-Wl,", 4) == 0;
        bool knows = follows || *flags != '-';
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
            knows = knows || strncmp(flags, known[i], strlen(known[i])) == 0;
        }
        if (!knows) { opdi_argv_add(words, linker ? "-Xlinker" : "-Xcompiler"); }
        opdi_string_add_n(words, flags + (linker && !knows ? 4 : 0), length - (linker && !knows ? 4 : 0));
        opdi_string_add_n(words, "", 1);
        follows = !follows && strncmp(flags, "-X", 2) == 0 && !memchr(flags, '=', length);
    }
}

static void opdi_print_command(char *const *argv) {
    opdi_string line = {NULL, 0, 0, false};
    for (; *argv; argv++) {
        opdi_string_add(&line, *argv);
        opdi_string_add(&line, argv[1] ? " " : "");
    }
    if (!line.failed) { opdi_log_write(opdi_self(), -1, line.data, false); }
    opdi_string_free(&line);
}

static bool opdi_verbose(void) {
    const char *value = getenv("OPD_VERBOSE");
    return value && *value && strcmp(value, "0") != 0;
}

/* A command of a build, which runs in a process of its own. */
typedef struct opdi_step {
    opdi_build *build;
    opdi_string words;                            /* the words of the command, each with its final 0 */
    intptr_t process;
    int rc;                                       /* see opdi_command_start */
    bool begun;
    char log[OPDI_PATH], made[OPDI_PATH];         /* the files of its output and of its result */
} opdi_step;

/* Starts the command of a step, without a shell.  Returns 0, or -1 and sets an error. */
static int opdi_step_begin(opdi_step *step, int number) {
    const opdi_string *const words = &step->words;
    size_t length = 0, i = 0;
    if (words->failed || opdi_path(step->log, "%s/log%d", step->build->tmp, number)) { return -1; }
    for (size_t at = 0; at < words->length; at += strlen(words->data + at) + 1) { length++; }
    char **argv = (char **)opdi_alloc((length + 1) * sizeof *argv);
    if (!argv) { return -1; }
    for (size_t at = 0; at < words->length; at += strlen(words->data + at) + 1) { argv[i++] = words->data + at; }
    argv[length] = NULL;
    if (opdi_verbose()) { opdi_print_command(argv); }
    step->rc = opdi_command_start(argv, step->log, &step->process);
    step->begun = true;
    opdi_free(argv, (length + 1) * sizeof *argv);
    return 0;
}
/* Sets the error of a step whose command could not be started, or has failed with the output `said`. */
static void opdi_step_fails(const opdi_step *step, const opdi_string *said) {
    const opdi_build *const build = step->build;
    const char *const program = step->words.data;
    if (step->rc) {
        const bool full = strcmp(opdi_cache_advice(step->rc), opdi_cache_advice(ENOSPC)) == 0;
        char number[40];
        (void)snprintf(number, sizeof number, "error %d of Windows", -step->rc);
        (void)opd_fail(step->rc == ENOMEM ? OPD_ERROR_MEMORY : OPD_ERROR_REGISTER,
                       "%s: cannot run the compiler '%s': %s%s", build->what, program,
                       step->rc < 0 ? number : strerror(step->rc), full ? opdi_cache_advice(step->rc) : "");
        return;
    }
    const bool lost = !*build->include && strstr(said->data, "opdispatch.h");
    (void)opd_fail(OPD_ERROR_REGISTER, "%s: '%s' failed for %s:\n%.1700s%s%s%s%s", build->what, program, build->name,
                   said->data, said->length ? "" : "it gave no message: perhaps the disk of the cache is full",
                   lost ? "opdispatch.h: " : "", lost ? build->hint : "",
                   lost ? "; set $OPD_INCLUDE to its folder" : "");
}
/* Waits for the command of a step, if it was started.  Returns 0.  If the command fails or has not
   made the file step->made, returns -1 and sets an error with the command's output, unless there is an error
   already. */
static int opdi_step_end(opdi_step *step) {
    opdi_string said = {NULL, 0, 0, false};
    bool failed = !step->begun || step->rc || !opdi_command_wait(step->process);
    failed = failed || !opdi_is_readable(step->made);
    if (step->begun && opd_ok()) {
        if (step->rc) { opdi_step_fails(step, &said); }
        else if (opdi_string_read(&said, step->log) && failed) { opdi_step_fails(step, &said); }
        else if (said.length && !said.failed && opdi_verbose()) {
            opdi_log_write(opdi_self(), -1, said.data, false);
        }
    }
    if (failed && opd_ok()) { (void)opd_fail(OPD_ERROR_REGISTER, "%s: the compiler failed", step->build->what); }
    opdi_string_free(&said);
    return failed || !opd_ok() ? -1 : 0;
}
/* Runs `count` steps, as many at the same time as there are processors.  After a failure, waits for those that have
   begun.  Returns 0, or -1 and sets an error. */
static int opdi_steps_run(opdi_step *steps, int count) {
    const int most = opdi_processors();
    int rc = 0;
    for (int done = 0, begun = 0; done < count; done++) {
        for (; rc == 0 && begun < count && begun - done < most; begun++) { rc = opdi_step_begin(&steps[begun], begun); }
        if (opdi_step_end(&steps[done])) { rc = -1; }
    }
    return rc;
}

/* Sets the words of the command that compiles file number `i`.  Returns 0, or -1 and sets an error. */
static int opdi_build_object(opdi_build *build, int i, opdi_step *step) {
    opdi_string *const words = &step->words;
    char dep[OPDI_PATH], command[OPDI_PATH];
    const opdi_language language = opdi_language_of(build->files[i]);
    step->build = build;
    if (opdi_path(step->made, "%s/%d.o", build->tmp, i) || opdi_path(dep, "%s/%d.d", build->tmp, i)) { return -1; }
    opdi_argv_command(words, opdi_compiler((int)language, command));
    opdi_argv_add(words, "-O2");
    opdi_argv_flags(build, words, (int)language);
    opdi_argv_add(words, "-DOPDISPATCH_PLUGIN");
    if (language == OPDI_LANGUAGE_CUDA && sizeof OPDI_PIC > 1) { opdi_argv_add(words, "-Xcompiler"); }
    opdi_argv_split(words, *build->include ? OPDI_PIC " -I" : OPDI_PIC);
    words->length -= words->length > 0 && *build->include;  /* drops the last 0, so that -I and the folder are one
                                                               word */
    if (*build->include) { opdi_argv_add(words, build->include); }
    opdi_argv_split(words, "-MD -MF");
    opdi_argv_add(words, dep);
    opdi_argv_add(words, "-c");
    opdi_argv_add(words, build->files[i]);
    opdi_argv_add(words, "-o");
    opdi_argv_add(words, step->made);
    return words->failed ? -1 : 0;
}
/* Adds the files that the compiler read for file number `i` to `deps`.  Returns 0, or -1 and sets an error. */
static int opdi_build_read(const opdi_build *build, int i, opdi_string *deps) {
    opdi_string rule = {NULL, 0, 0, false};
    char dep[OPDI_PATH];
    const size_t before = deps->length;
    if (opdi_path(dep, "%s/%d.d", build->tmp, i)) { return -1; }
    if (opdi_string_read(&rule, dep)) { opdi_deps_add(deps, rule.data); }
    if (deps->length == before) { opdi_argv_add(deps, build->files[i]); }
    opdi_string_free(&rule);
    return opd_ok() ? 0 : -1;
}

/* The end of a result file: a checksum of its name and of everything before it.  The checksum shows whether a crash or
   a full disk has cut off the file, and whether it was made under this name. */
typedef struct opdi_checksum { char mark[8]; uint64_t sum; } opdi_checksum;
static opdi_checksum opdi_checksum_of(const char *path, const char *data, size_t length) {
    opdi_checksum trailer = {{'o', 'p', 'd', ' ', 's', 'e', 'a', 'l'}, 0};
    const char *const slash = strrchr(path, '/');
    trailer.sum = opdi_hash_bytes(opdi_hash_text(4, slash ? slash : path), data, length);
    return trailer;
}
static bool opdi_checksum_matches(const char *path) {
    opdi_string string = {NULL, 0, 0, false};
    bool ok = opdi_string_read(&string, path) && string.length > sizeof(opdi_checksum);
    if (ok) {
        const opdi_checksum trailer = opdi_checksum_of(path, string.data, string.length - sizeof trailer);
        ok = memcmp(string.data + string.length - sizeof trailer, &trailer, sizeof trailer) == 0;
    }
    opdi_string_free(&string);
    return ok;
}
static int opdi_checksum_append(const char *path, const char *out) {
    opdi_string string = {NULL, 0, 0, false};
    bool ok = opdi_string_read(&string, path);
    if (ok) {
        const opdi_checksum trailer = opdi_checksum_of(out, string.data, string.length);
        ok = opdi_file_end(open(path, O_WRONLY | O_APPEND | OPDI_BINARY), (const char *)&trailer, sizeof trailer) &&
            opdi_file_replace(path, out) == 0;
    }
    opdi_string_free(&string);
    return ok ? 0 : opdi_cache_fails(out);
}

/* Links the object files.  Moves the result, and the list of the files that were read, to their final places.  Writes
   the path of the result to build->out.  Returns 0, or -1 and sets an error. */
static int opdi_build_link(opdi_build *build) {
    opdi_string deps = {NULL, 0, 0, false};
    opdi_step step;
    char path[OPDI_PATH], list[OPDI_PATH], command[OPDI_PATH];
    int rc = 0;
    memset(&step, 0, sizeof step);
    step.build = build;
    opdi_argv_command(&step.words, opdi_compiler(build->language, command));
    opdi_argv_split(&step.words, OPDI_SHARED);
    for (int i = 0; build->files[i] && rc == 0; i++) {
        rc = opdi_build_read(build, i, &deps) || opdi_path(path, "%s/%d.o", build->tmp, i) ? -1 : 0;
        opdi_argv_add(&step.words, path);
    }
    opdi_argv_flags(build, &step.words, build->language);
    opdi_argv_split(&step.words, "-lm -o");
    if (rc == 0) { rc = opdi_path(step.made, "%s/library" OPDI_LIBRARY_ENDING, build->tmp); }
    opdi_argv_add(&step.words, step.made);
    rc = rc || opdi_steps_run(&step, 1) ? -1 : 0;
    if (rc == 0 && !opdi_build_result(build, &deps, build->out)) {
        rc = opd_fail(OPD_ERROR_REGISTER, "%s: a file that the compiler read no longer exists", build->what);
    }
    rc = rc || opdi_checksum_append(step.made, build->out) || opdi_path(list, "%s.deps", build->stem) ||
        opdi_file_write(build->dir, list, deps.data, deps.length) ? -1 : 0;
    opdi_string_free(&step.words);
    opdi_string_free(&deps);
    return rc;
}
/* Compiles the files of builds whose results are not in the cache, all at the same time.  `count` is the number of
   their files.  Returns 0, or -1 and sets an error. */
static int opdi_builds_all(opdi_build *builds, int nbuilds, int count) {
    opdi_step *const steps = (opdi_step *)opdi_alloc((size_t)count * sizeof *steps);
    int rc = steps ? 0 : -1, next = 0;
    if (steps) { memset(steps, 0, (size_t)count * sizeof *steps); }
    for (int b = 0; b < nbuilds && rc == 0; b++) {
        opdi_build *const build = &builds[b];
        if (build->known) { continue; }
        opdi_cache_sweep(build->dir);
        rc = opdi_path(build->tmp, "%s/tmp.XXXXXX", build->dir);
        build->opened = rc == 0 && opdi_temporary_folder(build->tmp);
        if (rc == 0 && !build->opened) { rc = opdi_cache_fails(build->tmp); }
        for (int i = 0; build->files[i] && rc == 0; i++) { rc = opdi_build_object(build, i, &steps[next++]); }
    }
    if (rc == 0) { rc = opdi_steps_run(steps, count); }
    for (int i = 0; i < count && steps; i++) { opdi_string_free(&steps[i].words); }
    if (steps) { opdi_free(steps, (size_t)count * sizeof *steps); }
    for (int b = 0; b < nbuilds; b++) {
        if (rc == 0 && !builds[b].known) { rc = opdi_build_link(&builds[b]); }
        if (builds[b].opened) { opdi_folder_remove(builds[b].tmp); }
        builds[b].opened = false;
        if (rc == 0 && !builds[b].known) { opdi_cache_shrink(builds[b].dir); }
    }
    return rc;
}

static int opdi_build_open(opdi_build *build, const char *what, const char *name, const char *flags, int language) {
    size_t length = name ? strlen(name) : 0;
    if (!opd_ok() || opd_code_forbidden(what)) { return -1; }
    if (length < 1 || length > 64 || *name == '.' ||
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
               "_.+-") != length) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: a name must have 1 to 64 letters, digits or characters of _.+-", what);
    }
    memset(build, 0, sizeof *build);
    build->what = what;
    build->name = name;
    build->flags = flags ? flags : "";
    build->language = language;
    return opdi_cache_dir(build->dir);
}

/* Finds out whether the result of a build is in the cache; then writes its path to build->out.  Returns 0, or -1 and
   sets an error. */
static int opdi_build_find(opdi_build *build) {
    opdi_string deps = {NULL, 0, 0, false};
    char list[OPDI_PATH];
    if (opdi_build_key(build) || opdi_path(list, "%s.deps", build->stem)) { return -1; }
    build->known = opdi_string_read(&deps, list) && deps.length > 0 && deps.data[deps.length - 1] == '\0' &&
        opdi_build_result(build, &deps, build->out);         /* a list that was cut off has no 0 at its end */
    if (build->known) {                           /* first marks them as used, so that no other process removes them */
        opdi_cache_touch(list);
        opdi_cache_touch(build->out);
        build->known = opdi_checksum_matches(build->out);
    }
    opdi_string_free(&deps);
    return opd_ok() ? 0 : -1;
}
/* Compiles the files of builds whose results are not in the cache yet, and writes the paths of the results to their
   `out`.  Returns 0, or -1 and sets an error. */
static int opdi_builds_make(opdi_build *builds, int nbuilds) {
    int count = 0;
    if (opdi_stack_short("the compiler", OPDI_STACK_CALL)) { return -1; }
    for (int b = 0; b < nbuilds; b++) {
        if (opdi_build_find(&builds[b])) { return -1; }
        for (int i = 0; builds[b].files[i] && !builds[b].known; i++) { count++; }
    }
    return count ? opdi_builds_all(builds, nbuilds, count) : 0;
}
/* Prepares a build of the texts `sources`, a list of strings that each end with a 0.  `name` is the file name of each.
   build->files becomes a list of their files, which opdi_texts_close frees.  Returns 0, or -1 and sets an error. */
static int opdi_texts_open(opdi_build *build, const char *what, const char *name, const opdi_string *sources,
                           const char *flags) {
    static const char *const endings[] = {"c", "cpp", "cu"};
    const opdi_language language = name ? opdi_language_of(name) : OPDI_LANGUAGE_C;
    size_t count = 0, n = 0;
    if (opdi_build_open(build, what, name, flags, (int)language)) { return -1; }
    if (!sources->length) { return opd_fail(OPD_ERROR_ARGUMENT, "%s: the source is NULL", what); }
    for (size_t at = 0; at < sources->length; at += strlen(sources->data + at) + 1) { count++; }
    build->texts_bytes = (count + 1) * sizeof(char *) + count * OPDI_PATH;
    const char **const files = build->texts = (const char **)opdi_alloc(build->texts_bytes);
    if (!files) { return -1; }
    build->files = files;
    for (size_t at = 0; at < sources->length; at += strlen(sources->data + at) + 1) {
        const char *const source = sources->data + at;
        char *const path = (char *)(files + count + 1) + n * OPDI_PATH;
        files[n++] = path;
        if (opdi_path(path, "%s/%s-%016llx.%s", build->dir, name, (unsigned long long)opdi_hash_text(3, source),
                      endings[language])) { return -1; }
        if (opdi_file_is(path, source)) { opdi_cache_touch(path); }
        else if (!opd_ok() || opdi_file_write(build->dir, path, source, strlen(source))) { return -1; }
    }
    files[n] = NULL;
    return 0;
}
static void opdi_texts_close(opdi_build *build) {
    if (build->texts) { opdi_free((void *)build->texts, build->texts_bytes); }
}
/* Compiles texts instead of files: `sources` is a list of strings that each end with a 0, and `name` their file name.
   Writes the path of the result to `out`, which has OPDI_PATH bytes.  If `also` is not NULL, compiles this text at the
   same time, and leaves its result in the cache.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_build_texts(const char *what, const char *name, const opdi_string *sources, const char *flags,
                                   char *out, const opdi_build_also *also) {
    opdi_build builds[2];
    memset(builds, 0, sizeof builds);
    int rc = opdi_texts_open(&builds[0], what, name, sources, flags);
    if (rc == 0 && also) { rc = opdi_texts_open(&builds[1], what, also->name, &also->source, also->flags); }
    if (rc == 0) { rc = opdi_builds_make(builds, also ? 2 : 1); }
    if (rc == 0) { memcpy(out, builds[0].out, OPDI_PATH); }
    for (int i = 0; i < 2; i++) { opdi_texts_close(&builds[i]); }
    return rc;
}
/* Compiles one text, as opdi_build_texts does. */
OPDI_INTERNAL int opdi_build_text(const char *what, const char *name, const char *source, const char *flags,
                                  char *out) {
    opdi_string sources = {NULL, 0, 0, false};
    sources.data = (char *)(uintptr_t)source;
    sources.length = source ? strlen(source) + 1 : 0;
    return opdi_build_texts(what, name, &sources, flags, out, NULL);
}

opd_plugin *opd_compile_and_load(const char *name, const char *const *files, const char *flags) {
    opdi_build build;
    int i, language = OPDI_LANGUAGE_C;
    for (i = 0; files && files[i]; i++) { language = OPDI_MAX(language, (int)opdi_language_of(files[i])); }
    if (opdi_build_open(&build, "opd_compile_and_load", name, flags, language)) { return NULL; }
    if (i == 0) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_compile_and_load: no files to compile");
        return NULL;
    }
    build.files = files;
    return opdi_builds_make(&build, 1) ? NULL : opd_plugin_load(build.out);
}

opd_plugin *opd_compile_and_load_inline(const char *name, const char *source, const char *flags) {
    char out[OPDI_PATH];
    return opdi_build_text("opd_compile_and_load_inline", name, source, flags, out) ? NULL : opd_plugin_load(out);
}
