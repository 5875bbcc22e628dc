#include "tools.h"

//== hashes of tensors, and audits =====================================================================================
//
//  An audit is a text file with the SHA-256 of each tensor of each step of a training.  A run that is checked makes the
//  same lines and compares them with the lines of the file.  The guide's chapter "The same bits" describes the file.

/* SHA-256 (FIPS 180-4) */
typedef struct opdi_sha {
    uint32_t state[8];
    uint64_t length;                              /* bytes so far */
    unsigned char part[64];                       /* the bytes after the last whole block */
} opdi_sha;

static void opdi_sha_begin(opdi_sha *sha) {
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memset(sha, 0, sizeof *sha);
    memcpy(sha->state, first, sizeof first);
}
OPDI_ALWAYS uint32_t opdi_sha_turn(uint32_t x, int by) { return x >> by | x << (32 - by); }
static void opdi_sha_block(uint32_t state[8], const unsigned char *block) {
    static const uint32_t rounds[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
    uint32_t w[64];
    for (int i = 0; i < 16; i++) {
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
            (uint32_t)block[4 * i + 3];
    }
    for (int i = 16; i < 64; i++) {
        const uint32_t x = w[i - 15], y = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + (opdi_sha_turn(x, 7) ^ opdi_sha_turn(x, 18) ^ x >> 3) +
            (opdi_sha_turn(y, 17) ^ opdi_sha_turn(y, 19) ^ y >> 10);
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int i = 0; i < 64; i++) {
        const uint32_t one = h + (opdi_sha_turn(e, 6) ^ opdi_sha_turn(e, 11) ^ opdi_sha_turn(e, 25)) +
            ((e & f) ^ (~e & g)) + rounds[i] + w[i];
        const uint32_t two = (opdi_sha_turn(a, 2) ^ opdi_sha_turn(a, 13) ^ opdi_sha_turn(a, 22)) +
            ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + one;
        d = c;
        c = b;
        b = a;
        a = one + two;
    }
    const uint32_t sum[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++) { state[i] += sum[i]; }
}
static void opdi_sha_add(opdi_sha *sha, const void *data, size_t size) {
    const unsigned char *at = (const unsigned char *)data;
    size_t filled = (size_t)(sha->length % 64);
    sha->length += size;
    for (; size; filled %= 64) {
        const size_t some = OPDI_MIN(size, 64 - filled);
        if (some == 64) { opdi_sha_block(sha->state, at); }
        else {
            memcpy(sha->part + filled, at, some);
            if (filled + some == 64) { opdi_sha_block(sha->state, sha->part); }
        }
        filled += some;
        at += some;
        size -= some;
    }
}
/* Ends the hash, and writes it as 64 hexadecimal digits and a final 0. */
static void opdi_sha_end(opdi_sha *sha, char text[65]) {
    static const unsigned char padding[64] = {0x80};
    const uint64_t bits = 8 * sha->length;
    unsigned char length[8];
    opdi_sha_add(sha, padding, (size_t)((119 - sha->length % 64) % 64 + 1));
    for (int i = 0; i < 8; i++) { length[i] = (unsigned char)(bits >> (56 - 8 * i)); }
    opdi_sha_add(sha, length, 8);
    for (int i = 0; i < 8; i++) { (void)snprintf(text + 8 * i, 9, "%08lx", (unsigned long)sha->state[i]); }
}

/* Returns the largest bits, without a sign, that are no NaN in a dtype whose numbers, or parts of complex numbers, have
   `bytes` bytes; 0: the dtype has no floating-point numbers, or only one NaN. */
static uint64_t opdi_infinity_of(int dtype, size_t bytes) {
    const opd_scalar_type type = (opd_scalar_type)dtype;
    if (type == OPD_FLOAT8_E5M2) { return 0x7c; }
    if (type == OPD_FLOAT8_E4M3FN) { return 0x7e; }                  /* no infinity: the largest number */
    if (!opd_dtype_is_floating(type) && !opd_dtype_is_complex(type)) { return 0; }
    return bytes == 8 ? UINT64_C(0x7ff0000000000000) : bytes == 4 ? 0x7f800000u : bytes != 2 ? 0
        : type == OPD_BFLOAT16 ? 0x7f80u : 0x7c00u;
}
/* Replaces each NaN by the same NaN, because its sign depends on the processor.  Numbers begin with the lowest byte. */
static void opdi_one_nan(char *at, size_t count, size_t bytes, uint64_t infinity) {
    for (const char *const end = at + count; infinity && at < end; at += bytes) {
        uint64_t bits = 0;
        for (size_t i = bytes; i--;) { bits = bits << 8 | (unsigned char)at[i]; }
        bits &= (UINT64_C(1) << (8 * bytes - 1)) - 1;
        if (bits <= infinity) { continue; }
        bits = infinity | infinity >> 1;
        for (size_t i = 0; i < bytes; i++) { at[i] = (char)(bits >> (8 * i) & 255); }
    }
}
/* Adds the elements of a tensor in host memory to the hash, in the order of contiguous tensors. */
static void opdi_sha_elements(opdi_sha *sha, const opd_tensor *tensor) {
    const size_t element = opd_dtype_size((opd_scalar_type)tensor->dtype);      /* 0 for a tensor in blocks */
    const size_t bytes = element >> opd_dtype_is_complex((opd_scalar_type)tensor->dtype);
    const uint64_t infinity = opdi_infinity_of(tensor->dtype, bytes);
    int64_t at[OPD_MAX_DIMS] = {0};
    const char *here = tensor->data;
    char part[4096];
    size_t count = 0;
    if (!element) {
        opdi_sha_add(sha, here, (size_t)opdi_elements_bytes(tensor->dtype, tensor->numel));
        return;
    }
    for (int64_t left = tensor->numel; left > 0; left--) {
        memcpy(part + count, here, element);
        count += element;
        if (count == sizeof part || left == 1) {
            if (opdi_big_endian()) { opdi_swap(part, count, bytes); }
            opdi_one_nan(part, count, bytes, infinity);
            opdi_sha_add(sha, part, count);
            count = 0;
        }
        for (int dim = tensor->ndim - 1; dim >= 0; dim--) {
            here += tensor->dims[tensor->ndim + dim] * (int64_t)element;
            if (++at[dim] < tensor->dims[dim]) { break; }
            here -= tensor->dims[tensor->ndim + dim] * tensor->dims[dim] * (int64_t)element;
            at[dim] = 0;
        }
    }
}
/* Adds dtype, sizes and elements of a tensor to the hash.  Returns 0, or -1 and sets an error. */
static int opdi_sha_tensor(opdi_sha *sha, opd_tensor *tensor, const char *who) {
    char head[OPD_MAX_DIMS * 22 + 64], sizes[OPD_MAX_DIMS * 22 + 4];
    opd_tensor *const host = opdi_host_of(tensor, who);
    if (!host) { return -1; }
    const opd_scalar_type dtype = (opd_scalar_type)host->dtype;
    const bool whole = opd_dtype_size(dtype) > 0 || (host->flags & OPDI_CONTIGUOUS) || host->numel == 0;
    if (whole) {
        (void)opdi_sizes_text(host->dims, host->ndim, sizes, sizeof sizes);
        (void)snprintf(head, sizeof head, "%s %s\n", opd_dtype_name(dtype), sizes);
        opdi_sha_add(sha, head, strlen(head));
        opdi_sha_elements(sha, host);
    }
    else {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: a tensor of %s, stored in blocks, must be contiguous", who,
                       opd_dtype_name(dtype));
    }
    opdi_release(host);
    return whole ? 0 : -1;
}
int opd_tensor_sha256(opd_tensor *const *tensors, int count, char *text) {
    opdi_sha sha;
    opdi_sha_begin(&sha);
    if (text) { text[0] = 0; }
    if (!opd_ok()) { return -1; }
    OPD_CHECK(text && (tensors || count == 0) && count >= 0,
              "opd_tensor_sha256: text is NULL, tensors is NULL, or count is negative (%d)", count);
    for (int i = 0; i < count; i++) { if (opdi_sha_tensor(&sha, tensors[i], "opd_tensor_sha256")) { return -1; } }
    opdi_sha_end(&sha, text);
    return 0;
}

//== the lines of an audit =============================================================================================

#define OPDI_AUDIT_HEAD "opdispatch audit 1"
#define OPDI_AUDIT_CUT ", without a last line (its run was broken off, or the file is cut)"
enum { OPDI_AUDIT_NAME = 512, OPDI_AUDIT_LINE = OPDI_AUDIT_NAME + 128 };

/* A file whose lines are read and compared with other lines. */
typedef struct opdi_audit_file {
    FILE *file;
    const char *path;
    int64_t line, step;                           /* of the last line */
    bool tensors;                                 /* the step has a line of opd_audit_tensor */
    char text[OPDI_AUDIT_LINE];                   /* the last line */
    size_t at, filled;                            /* the next byte of `part`, and its bytes */
    char part[4096];                              /* what was read from the file */
} opdi_audit_file;
typedef struct opdi_audit_item { char *name; size_t bytes; opd_tensor *tensor; } opdi_audit_item;
struct opd_audit {
    opdi_audit_file from;                         /* from.file is NULL if the audit writes a file */
    FILE *to;
    int process;                                  /* that has begun the audit */
    bool failed, open, found;                     /* open: the step has begun; found: its line was read already */
    int64_t step, first;                          /* first: the number of the first step */
    opdi_audit_item *items;
    int64_t count, cap;
    size_t bytes;                                 /* of this block, which ends with the path */
    char path[1];
};

static int opdi_audit_bad(const opdi_audit_file *from, const char *who, const char *what) {
    return opd_fail(OPD_ERROR_FILE, "%s: %.400s, line %lld: %s", who, from->path, (long long)from->line, what);
}
/* Reads a line and its end into from->text, as fgets does.  The file itself has no buffer: else the end of a child
   process would move the place from which its parent reads.  Returns whether there is one. */
static bool opdi_audit_gets(opdi_audit_file *from) {
    size_t length = 0;
    while (length + 1 < sizeof from->text && (!length || from->text[length - 1] != '\n')) {
        if (from->at == from->filled) {
            from->at = 0;
            from->filled = fread(from->part, 1, sizeof from->part, from->file);
            if (!from->filled) { break; }
        }
        from->text[length++] = from->part[from->at++];
    }
    from->text[length] = 0;
    return length > 0;
}
/* Reads the next line into from->text.  Returns 1, 0 at the end of the file, or -1 and sets an error. */
static int opdi_audit_read(opdi_audit_file *from, const char *who) {
    if (!opdi_audit_gets(from)) {
        if (!ferror(from->file)) { return 0; }
        return opdi_audit_bad(from, who, "cannot be read");
    }
    const size_t length = strlen(from->text);
    from->line++;
    if (length == 0 || from->text[length - 1] != '\n') {
        return opdi_audit_bad(from, who, length + 1 < sizeof from->text ? "the file is cut in this line"
                                                                        : "this is no line of an audit");
    }
    from->text[length - 1] = 0;
    if (length > 1 && from->text[length - 2] == '\r') { from->text[length - 2] = 0; }
    if (strncmp(from->text, "step ", 5) == 0) {
        char line[32];
        from->step = strtoll(from->text + 5, NULL, 10);
        from->tensors = false;
        (void)snprintf(line, sizeof line, "step %lld", (long long)from->step);
        if (from->step < 0 || strcmp(line, from->text) != 0) {
            return opdi_audit_bad(from, who, "this is no line of an audit");
        }
    }
    if (strncmp(from->text, "tensor ", 7) == 0) { from->tensors = true; }
    return 1;
}
/* Opens an audit and reads its first line.  Returns 0, or -1 and sets an error. */
static int opdi_audit_open(opdi_audit_file *from, const char *path, const char *who) {
    memset(from, 0, sizeof *from);
    from->path = path;
    from->step = -1;
    if (!(from->file = opdi_file_open(path, "rb"))) {
        return opd_fail(opdi_errno_code(OPD_ERROR_FILE), "%s: %.400s cannot be read: %s", who, path, opdi_errno_text());
    }
    (void)setvbuf(from->file, NULL, _IONBF, 0);
    const int got = opdi_audit_read(from, who);
    if (got > 0 && strcmp(from->text, OPDI_AUDIT_HEAD) == 0) { return 0; }
    if (got >= 0) {
        (void)opd_fail(OPD_ERROR_FILE, "%s: %.400s is no audit: it does not begin with '%s'", who, path,
                       OPDI_AUDIT_HEAD);
    }
    (void)fclose(from->file);
    from->file = NULL;
    return -1;
}
/* Reads up to the line "step N".  Returns 0, or -1 and sets an error. */
static int opdi_audit_seek(opdi_audit_file *from, int64_t step, const char *who) {
    int64_t first = -1;
    int got;
    while ((got = opdi_audit_read(from, who)) > 0) {
        if (from->step < 0) { return opdi_audit_bad(from, who, "the first step must begin here"); }
        if (first < 0) { first = from->step; }
        if (strncmp(from->text, "step ", 5) == 0 && from->step >= step) { break; }
    }
    if (got < 0) { return -1; }
    if (got && (step < 0 || from->step == step)) { return 0; }
    if (first < 0) { return opd_fail(OPD_ERROR_FILE, "%s: %.400s has no step", who, from->path); }
    return opd_fail(OPD_ERROR_FILE, "%s: %.400s has no step %lld: it has the steps %lld to %lld", who, from->path,
                    (long long)step, (long long)first, (long long)from->step);
}
/* Returns the place of the name in a line "KIND HASH NAME", or NULL. */
static const char *opdi_audit_name(const char *line) {
    const char *const hash = strchr(line, ' '), *const name = hash ? strchr(hash + 1, ' ') : NULL;
    return name ? name + 1 : NULL;
}
static bool opdi_audit_is(const char *line, const char *kind) {
    return strncmp(line, kind, strlen(kind)) == 0 && line[strlen(kind)] == ' ';
}
/* Says in which part of a training the runs part, if this line of the file is not that of the other run. */
static const char *opdi_audit_part(const opdi_audit_file *from, bool first) {
    const char *const line = from->text;
    return opdi_audit_is(line, "tensor") ? "the runs part in forward, or have other inputs"
        : opdi_audit_is(line, "gradient") && from->tensors ? "the runs part in backward"
        : opdi_audit_is(line, "gradient") ? "the runs part in forward or backward"
        : first ? "the runs begin with other values"
        : opdi_audit_is(line, "parameter") ? "the runs part in the update of the step before"
        : "the runs part in the step before, which writes it";
}
/* Writes what it means that `line` of `other`, which is "this run" or a path, is not the last line of the file. */
static void opdi_audit_explain(const opdi_audit_file *from, const char *line, const char *other, bool first, char *text,
                               size_t cap) {
    const char *const want = from->text, *const name = opdi_audit_name(want), *const has = opdi_audit_name(line);
    const int kind = (int)strcspn(want, " "), its = (int)strcspn(line, " ");
    const long long step = (long long)from->step, at = (long long)from->line;
    if (opdi_audit_is(want, "random") && opdi_audit_is(line, "random")) {
        (void)snprintf(text, cap, "step %lld: the random state (seed, numbers drawn) differs: '%.60s' in line %lld of "
                       "%.200s, '%.60s' in %.200s", step, want, at, from->path, line, other);
    }
    else if (kind == its && strncmp(want, line, (size_t)kind) == 0 && name && has && strcmp(name, has) == 0) {
        (void)snprintf(text, cap, "step %lld: %.*s '%.300s' of %.200s is not that of %.200s, line %lld: %s", step, kind,
                       want, name, other, from->path, at, opdi_audit_part(from, first));
    }
    else {
        (void)snprintf(text, cap, "step %lld: the calls are others: line %lld of %.200s is '%.*s %.200s', but %.200s "
                       "has '%.*s %.200s' here", step, at, from->path, kind, want, name ? name : want + kind, other,
                       its, line, has ? has : line + its);
    }
}

//== audits ============================================================================================================

static int opdi_audit_unwritten(const opd_audit *audit, const char *who) {
    return opd_fail(opdi_errno_code(OPD_ERROR_FILE), "%s: %.400s cannot be written: %s", who, audit->path,
                    opdi_errno_text());
}
/* Writes the line, or compares it with the next line of the file.  Returns 0, or -1 and sets an error. */
static int opdi_audit_line(opd_audit *audit, const char *who, const char *line) {
    opdi_audit_file *const from = &audit->from;
    char text[1024];
    if (audit->to) {
        if (fprintf(audit->to, "%s\n", line) > 0) { return 0; }
        return opdi_audit_unwritten(audit, who);
    }
    const int64_t before = from->step;
    const int got = opdi_audit_read(from, who);
    if (got < 0 || (got && strcmp(from->text, line) == 0)) { return got < 0 ? -1 : 0; }
    if (!got || opdi_audit_is(from->text, "end")) {
        return opd_fail(OPD_ERROR_FILE, "%s: %.400s ends in step %lld%s, and this run goes on", who, audit->path,
                        (long long)before, got ? "" : OPDI_AUDIT_CUT);
    }
    opdi_audit_explain(from, line, "this run", audit->first == audit->step, text, sizeof text);
    return opd_fail(OPD_ERROR_FILE, "%s: %s", who, text);
}
static int opdi_audit_hash(opd_audit *audit, const char *who, const char *kind, const char *name, opd_tensor *tensor) {
    char line[OPDI_AUDIT_LINE], hash[65] = "none";
    opdi_sha sha;
    opdi_sha_begin(&sha);
    if (tensor && opdi_sha_tensor(&sha, tensor, who)) { return -1; }
    if (tensor) { opdi_sha_end(&sha, hash); }
    (void)snprintf(line, sizeof line, "%s %s %s", kind, hash, name);
    return opdi_audit_line(audit, who, line);
}
/* Begins a step, if it has not begun: the values of all watched tensors, and the random state, unless the run ends. */
static int opdi_audit_enter(opd_audit *audit, const char *who, bool ends) {
    char line[80];
    uint64_t state[2];
    int rc = 0;
    if (audit->open) { return 0; }
    audit->open = true;
    (void)snprintf(line, sizeof line, "step %lld", (long long)audit->step);
    if (!audit->found && opdi_audit_line(audit, who, line)) { return -1; }
    audit->found = false;
    for (int64_t i = 0; rc == 0 && i < audit->count; i++) {
        const opdi_audit_item *const item = &audit->items[i];
        const char *const kind = opd_tensor_requires_grad(item->tensor) ? "parameter" : "buffer";
        rc = opdi_audit_hash(audit, who, kind, item->name, item->tensor);
    }
    opdi_random_get(NULL, state);
    (void)snprintf(line, sizeof line, "random %llu %llu", (unsigned long long)state[0], (unsigned long long)state[1]);
    return rc || ends ? rc : opdi_audit_line(audit, who, line);
}
static int opdi_audit_process(void) {
#if defined(OPDI_MAPS)
    return (int)getpid();
#else
    return 0;
#endif
}
/* Returns 0 if an audit can be used, otherwise -1 with an error. */
static int opdi_audit_usable(const opd_audit *audit, const char *who) {
    if (!opd_ok()) { return -1; }
    OPD_CHECK(audit, "%s: the audit is NULL", who);
    OPD_CHECK(audit->process == opdi_audit_process(), "%s: the audit (%.400s) belongs to the process that began it",
              who, audit->path);
    OPD_CHECK(!audit->failed, "%s: an earlier call for this audit (%.400s) failed; end it with opd_audit_end", who,
              audit->path);
    return 0;
}
static int opdi_audit_name_check(const char *name, const char *who) {
    const size_t length = name ? strlen(name) : 0;
    OPD_CHECK(length, "%s: the name is NULL or empty", who);
    OPD_CHECK(length < OPDI_AUDIT_NAME, "%s: the name is longer than %d bytes", who, OPDI_AUDIT_NAME - 1);
    for (const char *at = name; *at; at++) {
        OPD_CHECK((unsigned char)*at >= 32 && *at != 127, "%s: the name has a control character", who);
    }
    return 0;
}
static opd_audit *opdi_audit_new(const char *path, int64_t step, const char *who) {
    if (!opd_ok()) { return NULL; }
    if (!path || step < 0) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: the path is NULL, or the step is negative (%lld)", who,
                       (long long)step);
        return NULL;
    }
    const size_t bytes = sizeof(opd_audit) + strlen(path);
    opd_audit *const audit = (opd_audit *)opdi_alloc(bytes);
    if (!audit) { return NULL; }
    memset(audit, 0, sizeof *audit);
    audit->bytes = bytes;
    audit->step = audit->first = step;
    audit->process = opdi_audit_process();
    memcpy(audit->path, path, strlen(path) + 1);
    return audit;
}
opd_audit *opd_audit_begin(const char *path, int64_t step) {
    opd_audit *const audit = opdi_audit_new(path, step, "opd_audit_begin");
    if (!audit) { return NULL; }
    if (!(audit->to = opdi_file_open(path, "wb"))) { (void)opdi_audit_unwritten(audit, "opd_audit_begin"); }
    else { (void)setvbuf(audit->to, NULL, _IOLBF, BUFSIZ); }     /* a child process writes no line a second time */
    if (!audit->to || opdi_audit_line(audit, "opd_audit_begin", OPDI_AUDIT_HEAD)) {
        (void)opd_audit_end(audit);
        return NULL;
    }
    return audit;
}
opd_audit *opd_audit_check(const char *path, int64_t step) {
    const char *const who = "opd_audit_check";
    opd_audit *const audit = opdi_audit_new(path, step, who);
    if (!audit) { return NULL; }
    if (opdi_audit_open(&audit->from, audit->path, who) || opdi_audit_seek(&audit->from, step, who)) {
        (void)opd_audit_end(audit);
        return NULL;
    }
    audit->found = true;
    return audit;
}
/* Forgets the watched tensors from number `from`. */
static void opdi_audit_forget(opd_audit *audit, int64_t from) {
    for (; audit->count > from; audit->count--) {
        const opdi_audit_item *const item = &audit->items[audit->count - 1];
        opdi_release(item->tensor);
        opdi_free(item->name, item->bytes);
    }
}
int opd_audit_watch(opd_audit *audit, const char *name, opd_tensor *tensor) {
    const char *const who = "opd_audit_watch";
    if (opdi_audit_usable(audit, who) || opdi_audit_name_check(name, who)) { return -1; }
    OPD_CHECK(tensor, "%s: the tensor '%s' is NULL", who, name);
    OPD_CHECK(!opd_tensor_requires_grad(tensor) || opd_tensor_is_leaf(tensor),
              "%s: '%s' is no leaf, so it has no gradient; hash it with opd_audit_tensor", who, name);
    for (int64_t i = 0; i < audit->count; i++) {
        OPD_CHECK(strcmp(audit->items[i].name, name) != 0, "%s: the name '%s' is taken", who, name);
    }
    if (audit->count == audit->cap) {
        const int64_t cap = audit->cap ? 2 * audit->cap : 16;
        opdi_audit_item *const items = (opdi_audit_item *)opdi_alloc((size_t)cap * sizeof *items);
        if (!items) { return -1; }
        if (audit->count) { memcpy(items, audit->items, (size_t)audit->count * sizeof *items); }
        opdi_free(audit->items, (size_t)audit->cap * sizeof *items);
        audit->items = items;
        audit->cap = cap;
    }
    opdi_audit_item *const item = &audit->items[audit->count];
    item->bytes = strlen(name) + 1;
    item->name = (char *)opdi_alloc(item->bytes);
    if (!item->name) { return -1; }
    memcpy(item->name, name, item->bytes);
    opdi_retain(item->tensor = tensor);
    audit->count++;
    return 0;
}
int opd_audit_module(opd_audit *audit, const char *prefix, const opd_module *module) {
    char name[2 * OPDI_AUDIT_NAME];
    if (opdi_audit_usable(audit, "opd_audit_module")) { return -1; }
    OPD_CHECK(module, "opd_audit_module: the module is NULL");
    const int64_t before = audit->count;
    for (int64_t i = 0; i < module->count; i++) {
        const opdi_module_item *const item = &module->items[i];
        if (item->kind == OPD_MODULE_CONSTANT) { continue; }
        (void)snprintf(name, sizeof name, "%s%s", prefix ? prefix : "", item->name);
        if (opd_audit_watch(audit, name, item->tensor)) {
            opdi_audit_forget(audit, before);
            return -1;
        }
    }
    return 0;
}
int opd_audit_tensor(opd_audit *audit, const char *name, opd_tensor *tensor) {
    const char *const who = "opd_audit_tensor";
    if (opdi_audit_usable(audit, who) || opdi_audit_name_check(name, who)) { return -1; }
    OPD_CHECK(tensor, "%s: the tensor '%s' is NULL", who, name);
    const int rc = opdi_audit_enter(audit, who, false) ? -1 : opdi_audit_hash(audit, who, "tensor", name, tensor);
    audit->failed = rc != 0;
    return rc;
}
int opd_audit_step(opd_audit *audit) {
    const char *const who = "opd_audit_step";
    if (opdi_audit_usable(audit, who)) { return -1; }
    int rc = opdi_audit_enter(audit, who, false);
    for (int64_t i = audit->count - 1; rc == 0 && i >= 0; i--) {       /* about the order of backward */
        const opdi_audit_item *const item = &audit->items[i];
        if (!opd_tensor_requires_grad(item->tensor)) { continue; }
        rc = opdi_audit_hash(audit, who, "gradient", item->name, opd_tensor_grad(item->tensor));
    }
    if (rc == 0 && audit->to && fflush(audit->to)) { rc = opdi_audit_unwritten(audit, who); }
    audit->failed = rc != 0;
    audit->open = false;
    audit->step++;
    return rc;
}
int opd_audit_end(opd_audit *audit) {
    const char *const who = "opd_audit_end";
    char line[40];
    if (!audit) { return opd_ok() ? 0 : -1; }
    int rc = opdi_audit_usable(audit, who);
    if (rc == 0) { rc = opdi_audit_enter(audit, who, true); }
    (void)snprintf(line, sizeof line, "end %lld", (long long)audit->step);
    if (rc == 0 && audit->to) { rc = opdi_audit_line(audit, who, line); }
    if (audit->to && fclose(audit->to) && rc == 0) { rc = opdi_audit_unwritten(audit, who); }
    if (audit->from.file) { (void)fclose(audit->from.file); }
    opdi_audit_forget(audit, 0);
    opdi_free(audit->items, (size_t)audit->cap * sizeof *audit->items);
    opdi_free(audit, audit->bytes);
    return rc;
}

//== comparing two files ===============================================================================================

/* Reads both files up to the first step that both have.  Returns 0, or -1 and sets an error. */
static int opdi_audit_align(opdi_audit_file *a, opdi_audit_file *b, const char *who) {
    if (opdi_audit_seek(a, -1, who) || opdi_audit_seek(b, -1, who)) { return -1; }
    if (a->step < b->step) { return opdi_audit_seek(a, b->step, who); }
    return a->step > b->step ? opdi_audit_seek(b, a->step, who) : 0;
}
/* Compares the lines of both files.  Returns as opd_audit_compare. */
static int opdi_audit_both(opdi_audit_file *a, opdi_audit_file *b, char *text, size_t cap, const char *who) {
    const int64_t first = a->step;
    for (;;) {
        const int64_t step = a->step;
        const int one = opdi_audit_read(a, who), two = one < 0 ? -1 : opdi_audit_read(b, who);
        if (one < 0 || two < 0) { return -1; }
        if (!one && !two) { return 0; }
        const bool a_ends = !one || opdi_audit_is(a->text, "end"), b_ends = !two || opdi_audit_is(b->text, "end");
        if (one && two && strcmp(a->text, b->text) == 0) { continue; }
        if (a_ends || b_ends) {
            const bool cut = a_ends ? !one : !two;
            (void)snprintf(text, cap, "step %lld: %.400s ends here%s", (long long)step, a_ends ? a->path : b->path,
                           cut ? OPDI_AUDIT_CUT : ", and the other goes on");
        }
        else { opdi_audit_explain(a, b->text, b->path, a->step == first, text, cap); }
        return 1;
    }
}
int opd_audit_compare(const char *path, const char *other, char *text, size_t cap) {
    const char *const who = "opd_audit_compare";
    opdi_audit_file a, b;
    if (text && cap) { text[0] = 0; }
    if (!opd_ok()) { return -1; }
    OPD_CHECK(path && other && (text || cap == 0), "%s: a path or the text is NULL", who);
    if (opdi_audit_open(&a, path, who)) { return -1; }
    int rc = opdi_audit_open(&b, other, who);
    if (rc == 0) {
        rc = opdi_audit_align(&a, &b, who);
        if (rc == 0) { rc = opdi_audit_both(&a, &b, text, cap, who); }
        (void)fclose(b.file);
    }
    (void)fclose(a.file);
    return rc;
}
