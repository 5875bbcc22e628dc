/* Malicious checkpoints: small pickles that expand to huge values, wrong numbers, names that lead to other files,
   and strange pickles that PyTorch writes.  This file makes them. */
#include "../../opdispatch.h"
#include "../check.h"
#include <time.h>
#include <unistd.h>

//-- making files ------------------------------------------------------------------------------------------------------

static unsigned char *made;
static size_t length, room, made_at;
static void put(const void *bytes, size_t count) {
    while (length + count > room) { made = (unsigned char *)realloc(made, room = 2 * room + 1000); }
    memcpy(made + length, bytes, count);
    length += count;
}
#define PUT(literal) put(literal, sizeof(literal) - 1)
#define BYTES(literal) literal, sizeof(literal) - 1
static void put_number(uint64_t number, int bytes) {
    for (int i = 0; i < bytes; i++) {
        const unsigned char byte = (unsigned char)(i < 8 ? number >> 8 * i : 0);
        put(&byte, 1);
    }
}
static void put_text(const char *text) { put(text, strlen(text)); }
/* A text of `count` letters as a pickle has it. */
static void put_letters(size_t count) {
    put_text("X");
    put_number(count, 4);
    for (size_t i = 0; i < count; i++) { put_text("k"); }
}
static void put_times(const char *text, size_t count) { while (count-- > 0) { put_text(text); } }
static uint32_t crc_of(const unsigned char *data, size_t count) {
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < count; i++) {
        crc ^= data[i];
        for (int k = 0; k < 8; k++) { crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0); }
    }
    return ~crc;
}
typedef struct part { const char *name; size_t begin, bytes; uint32_t at; } part;
/* Makes a zip file of parts of what was made up to now, which stay in front; returns where it begins. */
static size_t zip(part *parts, int count) {
    const size_t start = length;
    for (int i = 0; i < 2 * count; i++) {
        part *const one = &parts[i % count];
        const size_t name = strlen(one->name);
        if (i < count) {
            one->at = (uint32_t)(length - start);
            put_number(0x04034b50, 4);
        } else {
            put_number(0x02014b50, 4);
            put_number(0, 2);
        }
        put_number(0, 10);
        put_number(crc_of(made + one->begin, one->bytes), 4);
        put_number(one->bytes, 4);
        put_number(one->bytes, 4);
        put_number(name, 2);
        put_number(0, i < count ? 2 : 12);
        if (i >= count) { put_number(one->at, 4); }
        put_text(one->name);
        if (i >= count) { continue; }
        unsigned char *copy = (unsigned char *)malloc(one->bytes + 1);
        memcpy(copy, made + one->begin, one->bytes);
        put(copy, one->bytes);
        free(copy);
    }
    size_t directory = 0;
    for (int i = 0; i < count; i++) { directory += 46 + strlen(parts[i].name); }
    put_number(0x06054b50, 4);
    put_number(0, 4);
    put_number((uint64_t)count, 2);
    put_number((uint64_t)count, 2);
    put_number(directory, 4);
    put_number(length - start - directory - 16, 4);
    put_number(0, 2);
    return start;
}
/* Opens what was made as the pickle of a checkpoint with one storage, "0", of four bytes. */
static opd_tensor_file *open_pickle(void) {
    part parts[2] = {{"x/data.pkl", 0, 0, 0}, {"x/data/0", 0, 4, 0}};
    parts[0].bytes = length;
    parts[1].begin = length;
    PUT("abcd");
    const size_t start = made_at = zip(parts, 2);
    return opd_tensor_file_parse(made + start, length - start, NULL, NULL);
}
static void begin_pickle(void) {
    length = 0;
    PUT("\x80\x02");
}
static void put_tensor(const char *sizes) {
    put_text("ctorch._utils\n_rebuild_tensor_v2\n((X");
    PUT("\7\0\0\0storage");
    put_text("ctorch\nByteStorage\nX");
    PUT("\1\0\0\0" "0X\3\0\0\0cpuK\4tQK");
    PUT("\0");
    put_text(sizes);
}

//-- much out of little ------------------------------------------------------------------------------------------------

static void check_refused(const char *what) {
    const clock_t begin = clock();
    opd_tensor_file *file = open_pickle();
    CHECK(!file);
    if (file) { printf("%s: %lld entries\n", what, (long long)opd_tensor_file_count(file)); }
    CHECK_ERROR(OPD_ERROR_FILE, "makes too many objects");
    CHECK((double)(clock() - begin) / CLOCKS_PER_SEC < 20);
    opd_tensor_file_close(file);
}
TEST(what_is_shared_is_counted) {
    begin_pickle();                                /* a dict of 2,000 pairs, made 20,000 times */
    put_text("ccollections\nOrderedDict\nq");
    PUT("\0](");
    for (int i = 0; i < 2000; i++) { PUT("K\0K\1\x86"); }
    PUT("e\x85q\1" "0");
    for (int i = 0; i < 20000; i++) { PUT("h\0h\1R0"); }
    put_text("N.");
    check_refused("pairs");
    begin_pickle();                                /* a text of 100,000 letters, looked through 3,000 times */
    put_text("c_codecs\nencode\nq");
    PUT("\0" "0");
    put_letters(100000);
    PUT("X\6\0\0\0latin1\x86q\1" "0");
    for (int i = 0; i < 3000; i++) { PUT("h\0h\1R0"); }
    put_text("N.");
    check_refused("bytes");
    begin_pickle();                                /* a key of 100,000 letters, for 3,000 empty lists */
    put_letters(100000);
    PUT("q\0" "0](");
    for (int i = 0; i < 3000; i++) { PUT("}h\0]s"); }
    put_text("e.");
    check_refused("keys");
    begin_pickle();                                /* 1,000 lists of 1,000 */
    PUT("](K\1q\0");
    for (int i = 0; i < 999; i++) { PUT("h\0"); }
    PUT("eq\1" "0](");
    for (int i = 0; i < 1000; i++) { PUT("h\1"); }
    put_text("e.");
    check_refused("lists");
    begin_pickle();                                /* metadata of 100,000, of 100 tensors */
    put_text("ctorch._utils\n_rebuild_tensor_v2\nq");
    PUT("\0" "0((X\7\0\0\0storagectorch\nByteStorage\nX\1\0\0\0" "0X\3\0\0\0cpuK\4tQK\0K\1\x85K\1\x85\x89}}(");
    for (int i = 0; i < 100000; i++) { PUT("K\0\x89"); }
    PUT("utq\1" "0");
    for (int i = 0; i < 3000; i++) { PUT("h\0h\1R0"); }
    put_text("N.");
    check_refused("metadata");
}
TEST(circles_and_depth_end) {
    begin_pickle();
    PUT("]q\0h\0a.");
    CHECK(!open_pickle());
    CHECK_ERROR(OPD_ERROR_FILE, "more than 100 deep");
    begin_pickle();
    put_times("]", 100000);
    put_times("a", 99999);
    put_text(".");
    CHECK(!open_pickle());
    CHECK_ERROR(OPD_ERROR_FILE, "more than 100 deep");
    begin_pickle();
    put_times("(", 100000);
    put_text("N.");
    opd_tensor_file *file = open_pickle();         /* marks do no harm */
    CHECK_INT(opd_tensor_file_count(file), 1);
    opd_tensor_file_close(file);
}

//-- wrong data --------------------------------------------------------------------------------------------------------

TEST(numbers_that_lie) {
    static const struct { const char *pickle; size_t bytes; const char *text; } bad[] = {
        {BYTES("Nr\xff\xff\xff\x7f."), "the memo would have 2147483647 entries"}, {BYTES("h\5."), "reads entry 5 of its memo"},
        {BYTES("X\xff\xff\xff\xff."), "ends within an opcode"}, {BYTES("\x8d\xff\xff\xff\xff\xff\xff\xff\xff."), "ends within an opcode"},
        {BYTES("\x8b\xff\xff\xff\xff."), "ends within an opcode"}, {BYTES("0."), "an empty stack"}, {BYTES("t."), "no mark"},
        {BYTES("Ne."), "no mark"}, {BYTES("(e."), "has nothing to append to"}, {BYTES("N(e."), "not a list or dict"}, {BYTES("}(Nu."), "a key of a dict has no value"},
        {BYTES("NNR."), "cannot be called"}, {BYTES("NQ."), "not the id of a storage"}, {BYTES("NNb."), "not a dict"}, {BYTES("."), "an empty stack"},
        {BYTES("cos\nsystem\n0."), "an empty stack"}, {BYTES("cos\nsystem\nNR."), "cannot be called"}, {BYTES("c"), "within a line"},
        {BYTES("c__torch__\nNet\n."), "this is a TorchScript program"}, {BYTES("cos\nsystem\nN\x81."), "not a tuple"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        begin_pickle();
        put(bad[i].pickle, bad[i].bytes);
        CHECK(!open_pickle());
        CHECK_ERROR(OPD_ERROR_FILE, bad[i].text);
    }
}
/* torchao stores the names of dtypes of less than 8 bits beside its tensors. */
TEST(names_of_dtypes_are_texts) {
    for (int bits = 0; bits < 8; bits++) {
        for (int i = 0; i < 2; i++) {
            opd_value value;
            char name[20];
            (void)snprintf(name, sizeof name, "%s%d", i ? "uint" : "int", bits ? bits : 8);
            begin_pickle();
            put_text("ctorch\n");
            put_text(name);
            put_text("\n.");
            opd_tensor_file *file = open_pickle();
            CHECK_INT(opd_tensor_file_value_at(file, 0, &value), 0);
            CHECK(value.tag == OPD_TAG_STR && strcmp(value.u.s, name) == 0);
            CHECK_OK();
            opd_tensor_file_close(file);
        }
    }
}
/* No function that a pickle names is called.  An entry that is not data gives an error that says so. */
TEST(what_would_be_run) {
    static const struct { const char *pickle; size_t bytes; const char *text; } all[] = {
        {BYTES("cos\nsystem\n."), "<class 'os.system'>, which is not one of"}, {BYTES("cbuiltins\neval\nN\x85R."), "<builtins.eval>, which"},
        {BYTES("ca\nB\n)\x81."), "<a.B>"}, {BYTES("ca\nB\n)}\x92."), "<a.B>"}, {BYTES("ca\nB\n)R)R."), "<a.B>"},
        {BYTES("ca\nB\n)R(NNu."), "<a.B>"}, {BYTES("ca\nB\n)RNa."), "<a.B>"}, {BYTES("ca\nB\n)R(NNe."), "<a.B>"},
        {BYTES("ca\nB\n)RNNs."), "<a.B>"}, {BYTES("ca\nB\n)R}b."), "<a.B>"}, {BYTES("ca\nB\n)Rq\0h\0b."), "<a.B>"},
        {BYTES("ccopyreg\n_reconstructor\n(ca\nB\ncbuiltins\nobject\nNtR."), "<a.B>"},
        {BYTES("ccollections\nOrderedDict\nca\nB\n)R\x85R."), "collections.OrderedDict, which cannot be read"},
        {BYTES("ctorch\ndevice\nca\nB\n\x85R."), "torch.device, which cannot be read"},
        {BYTES("ctorch._utils\n_rebuild_tensor_v2\n(ca\nB\nNNNtR."), "_rebuild_tensor_v2, which cannot be read"},
        {BYTES("ctorch._utils\n_rebuild_parameter\n(ca\nB\nNNtR."), "<class 'a.B'>"},
        {BYTES("cnumpy\ndtype\nca\nB\n\x85R."), "numpy.dtype, which cannot be read"},
        {BYTES("c_codecs\nencode\nca\nB\n\x85R."), "_codecs.encode, which cannot be read"}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        opd_value value;
        begin_pickle();
        put(all[i].pickle, all[i].bytes);
        opd_tensor_file *file = open_pickle();
        CHECK_OK();
        CHECK_INT(opd_tensor_file_count(file), 1);
        CHECK_INT(opd_tensor_file_value_at(file, 0, &value), -1);
        CHECK_ERROR(OPD_ERROR_FILE, all[i].text);
        CHECK(!opd_tensor_file_at(file, 0));
        CHECK_ERROR(OPD_ERROR_FILE, all[i].text);
        opd_tensor_file_close(file);
    }
}
/* Code for the value of each kind of node. */
#define STORAGE(klass) "(X\7\0\0\0storagectorch\n" klass "\nX\1\0\0\0" "0X\3\0\0\0cpuK\4tQ"
#define QUANTIZED "ctorch._utils\n_rebuild_qtensor\n(" STORAGE("QInt8Storage") "K\0K\4\x85K\1\x85" "ctorch\nper_tensor_affine\n" \
    "G?\xe0\0\0\0\0\0\0K\0\x87tR"
static const struct { const char *code; size_t bytes; } each_kind[] = {
    {BYTES("N")}, {BYTES("\x88")}, {BYTES("K\2")}, {BYTES("G@\0\0\0\0\0\0\0")}, {BYTES("X\2\0\0\0f8")}, {BYTES("](K\1K\2e")},
    {BYTES("(K\1K\2t")}, {BYTES("}(K\1K\2u")}, {BYTES("ctorch\nfloat32\n")}, {BYTES(STORAGE("FloatStorage"))},
    {BYTES("ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE("ByteStorage") "K\0K\4\x85K\1\x85\x89}tR")}, {BYTES(QUANTIZED)},
    {BYTES("ctorch\ndevice\nX\3\0\0\0cpu\x85R")},
    {BYTES("cbuiltins\ncomplex\nG@\0\0\0\0\0\0\0G@\0\0\0\0\0\0\0\x86R")}, {BYTES("cbuiltins\nrange\nK\1K\2\x86R")},
    {BYTES("cnumpy\ndtype\nX\2\0\0\0f8\x85R")}, {BYTES("\x8a\x09\1\2\3\4\5\6\7\x88\0")}, {BYTES("ca\nB\n")},
    {BYTES("ca\nB\n)R")}, {BYTES("c_codecs\nencode\nX\2\0\0\0\xc2\x80X\6\0\0\0latin1\x86R")}};
enum { KINDS = sizeof each_kind / sizeof each_kind[0] };
static void put_kind(int kind, int count) { while (count-- > 0) { put(each_kind[kind].code, each_kind[kind].bytes); } }
/* Opens the pickle, and reads all entries, of which none must be read out of bounds. */
static void check_opens(const char *what) {
    OPD_SCOPE {
        opd_tensor_file *file = open_pickle();
        opd_value value;
        if (!file && opd_error_code() != OPD_ERROR_FILE) { printf("%s: %s\n", what, opd_error_message()); }
        CHECK(file || opd_error_code() == OPD_ERROR_FILE);
        opd_error_clear();
        for (int64_t i = 0; i < opd_tensor_file_count(file); i++) {
            CHECK(opd_tensor_file_value_at(file, i, &value) == 0 || opd_error_code() == OPD_ERROR_FILE);
            opd_error_clear();
        }
        opd_tensor_file_close(file);
    }
}
/* A function or an opcode gets a value of a kind that it does not expect.  Nodes in front make the numbers of nodes
   larger than any number of an item. */
TEST(values_of_every_kind) {
    static const char *const functions[] = {
        "collections\nOrderedDict", "collections\ndefaultdict", "torch.jit._pickle\nbuild_intlist", "torch.jit._pickle\nrestore_type_tag",
        "torch._utils\n_rebuild_tensor_v2", "torch._utils\n_rebuild_tensor_v3", "torch._utils\n_rebuild_parameter",
        "torch._tensor\n_rebuild_from_type_v2", "torch._utils\n_rebuild_qtensor", "torch._utils\n_rebuild_sparse_tensor", "torch\ndevice",
        "builtins\ncomplex", "_codecs\nencode", "builtins\nslice", "builtins\nrange", "numpy\ndtype", "numpy.core.multiarray\nscalar",
        "copyreg\n_reconstructor", "a\nB"};
    static const char *const opcodes[] = {"b", "a", "R", "\x81", "Q", "\x93", "(NNu", "(e", "NNs"};
    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t k = 0; k < sizeof functions / sizeof functions[0]; k++) {
            for (int count = 1; count < 9; count++) {
                begin_pickle();
                put_times("N0", count == 1 ? 5000 : 0);
                put_text("c");
                put_text(functions[k]);
                put_text("\n(");
                put_kind(kind, count);
                put_text("tR}b.");
                check_opens(functions[k]);
            }
        }
        for (int other = 0; other < KINDS; other++) {
            for (size_t k = 0; k < sizeof opcodes / sizeof opcodes[0]; k++) {
                begin_pickle();
                put_kind(kind, 1);
                put_kind(other, 1);
                put_text(opcodes[k]);
                put_text(".");
                check_opens(opcodes[k]);
            }
        }
    }
}
/* A dict that is made of a quantized tensor is empty: the tensor has no pairs. */
TEST(quantized_tensors_have_no_pairs) {
    for (int pad = 0; pad <= 400000; pad += 400000) {
        begin_pickle();
        put_times("N0", (size_t)pad);
        PUT("ccollections\nOrderedDict\n" QUANTIZED "\x85" "R.");
        opd_tensor_file *file = open_pickle();
        CHECK(!file);
        CHECK_ERROR(OPD_ERROR_FILE, "a dict is not made of pairs");
        opd_tensor_file_close(file);
    }
}
/* A module that was saved as a whole: names as in its state_dict, and plain attributes as values.  Nothing is called. */
#define DICT(items) "ccollections\nOrderedDict\n)R(" items "u"
#define WEIGHT "ctorch._utils\n_rebuild_parameter\n(ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE("ByteStorage") \
    "K\0K\4\x85K\1\x85\x89}tR\x89}tR"
#define LINEAR "ctorch.nn\nLinear\n)\x81}(X\x8\0\0\0trainingX\2\0\0\0noX\xb\0\0\0_parameters" \
    DICT("X\6\0\0\0weight" WEIGHT "X\4\0\0\0biasN") "X\x8\0\0\0_buffers}X\x8\0\0\0_modules}X\2\0\0\0inK\4u" "b"
TEST(whole_modules_are_data) {
    opd_value value;
    OPD_SCOPE {
        begin_pickle();
        PUT("c__main__\nNet\n)\x81q\0}(X\xb\0\0\0_parameters}X\x8\0\0\0_buffers}(X\1\0\0\0sK\3u" "X\x8\0\0\0_modules}(X\1\0\0\0" "0"
            LINEAR "uX\4\0\0\0selfh\0X\4\0\0\0codecos\nsystem\n)RX\3\0\0\0" "cfg}X\1\0\0\0dK\7su" "b.");
        opd_tensor_file *file = open_pickle();
        CHECK_OK();
        CHECK_INT(opd_tensor_file_count(file), 8);
        CHECK_INT(opd_numel(opd_tensor_file_get(file, "0.weight")), 4);
        CHECK_INT(opd_tensor_file_value(file, "0.bias", &value), 0);
        CHECK_INT(value.tag, OPD_TAG_NONE);
        CHECK_INT(opd_tensor_file_value(file, "0.in", &value), 0);
        CHECK_INT(value.u.i, 4);
        CHECK_INT(opd_tensor_file_value(file, "s", &value), 0);
        CHECK_INT(opd_tensor_file_value(file, "cfg/d", &value), 0);
        CHECK_INT(value.u.i, 7);
        CHECK_INT(opd_tensor_file_value(file, "code", &value), -1);
        CHECK_ERROR(OPD_ERROR_FILE, "<os.system>, which is not one of");
        CHECK_INT(opd_tensor_file_value(file, "self", &value), -1);
        CHECK_ERROR(OPD_ERROR_FILE, "<__main__.Net>, which is not one of");
        opd_tensor_file_close(file);
        begin_pickle();
        PUT("}(X\5\0\0\0model" LINEAR "X\1\0\0\0eK\1u.");
        file = open_pickle();
        CHECK_STR(opd_tensor_file_name(file, 1), "model/weight");
        CHECK_INT(opd_tensor_file_count(file), 5);
        opd_tensor_file_close(file);
    }
}
TEST(tensors_beyond_their_storage) {
    static const struct { const char *sizes; size_t bytes; bool right; } all[] = {
        {BYTES("K\4\x85K\1\x85\x89}tR."), true}, {BYTES("K\5\x85K\1\x85\x89}tR."), false}, {BYTES("K\2\x85K\3\x85\x89}tR."), true},
        {BYTES("K\2\x85K\4\x85\x89}tR."), false}, {BYTES("K\xff\x85K\0\x85\x89}tR."), true}, {BYTES("J\xff\xff\xff\xff\x85K\1\x85\x89}tR."), false},
        {BYTES("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x85\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x85\x89}tR."), false},
        {BYTES("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x85K\1\x85\x89}tR."), false}, {BYTES("K\2\x85)\x89}tR."), false},
        {BYTES("X\1\0\0\0a\x85K\1\x85\x89}tR."), false}, {BYTES("NN\x89}tR."), false}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        OPD_SCOPE {
            begin_pickle();
            put_tensor("");
            put(all[i].sizes, all[i].bytes);
            opd_tensor_file *file = open_pickle();
            if ((file != NULL) != all[i].right) { printf("case %d: %s\n", (int)i, file ? "taken" : opd_error_message()); }
            CHECK((file != NULL) == all[i].right);
            opd_error_clear();
            if (file) { CHECK(opd_sum(opd_tensor_file_get(file, "")) != NULL); }
            CHECK_OK();
            opd_tensor_file_close(file);
        }
    }
}
/* Zip entries that overlap, occur twice, have a path outside of the folder, or claim data that is missing. */
TEST(zips_that_lie) {
    OPD_SCOPE {
        length = 0;
        PUT("\x80\2K\5.abcd");
        part parts[3] = {{"x/data.pkl", 0, 5, 0}, {"../../y", 5, 4, 0}, {"x/data.pkl", 0, 5, 0}};
        size_t start = zip(parts, 2);
        opd_tensor_file *file = opd_tensor_file_parse(made + start, length - start, NULL, NULL);
        CHECK_INT(opd_tensor_file_count(file), 1);
        CHECK_STR(opd_tensor_file_name(file, 0), "");
        opd_tensor_file_close(file);
        start = zip(parts, 3);
        CHECK(!opd_tensor_file_parse(made + start, length - start, NULL, NULL));
        CHECK_ERROR(OPD_ERROR_FILE, "two entries have this name");
        start = zip(parts, 2);                     /* the second begins where the first does */
        const size_t second = length - 22 - 46 - strlen(parts[1].name);
        memset(made + second + 42, 0, 4);
        CHECK(!opd_tensor_file_parse(made + start, length - start, NULL, NULL));
        CHECK_ERROR(OPD_ERROR_FILE, "another name");
        for (int i = 0; i < 4; i++) {              /* sizes */
            start = zip(parts, 2);
            memset(made + length - 22 - 46 - strlen(parts[1].name) + 20, 0x7f, (size_t)(4 << i % 2));
            if (i > 1) { made[length - 22 - 46 - strlen(parts[1].name) + 10] = 8; }
            file = opd_tensor_file_parse(made + start, length - start, NULL, NULL);
            CHECK(file || opd_error_code() == OPD_ERROR_FILE);
            opd_error_clear();
            opd_tensor_file_close(file);
        }
    }
}

//-- odd, and right ----------------------------------------------------------------------------------------------------

/* One entry that cannot be read does not keep others from being read. */
TEST(what_is_odd_is_read) {
    opd_value value;
    OPD_SCOPE {
        begin_pickle();
        PUT("}(X\4\0\0\0seed\x8a\x09\1\2\3\4\5\6\7\x88\0X\1\0\0\0bc__builtin__\nbytes\n)RX\1\0\0\0s");
        put_text("cbuiltins\nfrozenset\n](K");
        PUT("\7" "e\x85RX\1\0\0\0ac__builtin__\nbytearray\n)Ru.");
        opd_tensor_file *file = open_pickle();
        CHECK_INT(opd_tensor_file_count(file), 4);
        CHECK_INT(opd_tensor_file_value(file, "seed", &value), -1);
        CHECK_ERROR(OPD_ERROR_FILE, "the integer has more than 64 bits");
        CHECK_INT(opd_tensor_file_value(file, "b", &value), 0);
        CHECK(value.tag == OPD_TAG_STR && value.n == 0);
        CHECK_INT(opd_tensor_file_value(file, "a", &value), 0);
        CHECK(value.tag == OPD_TAG_STR && value.n == 0);
        CHECK_INT(opd_tensor_file_value(file, "s/0", &value), 0);
        CHECK(value.tag == OPD_TAG_INT && value.u.i == 7);
        opd_tensor_file_close(file);
        begin_pickle();
        PUT("}(X\1\0\0\0a\x96\2\0\0\0\0\0\0\0xyu.");
        file = open_pickle();
        CHECK_INT(opd_tensor_file_value(file, "a", &value), 0);
        CHECK(value.tag == OPD_TAG_STR && value.n == 2 && value.u.s[1] == 'y');
        opd_tensor_file_close(file);
    }
}
/* If several entries have the same name, every look-up by this name fails.  Each entry can be read by its index. */
TEST(names_of_several) {
    static const char *const names[] = {"1", "a/b", "8", "r/3"};
    const int64_t first[] = {0, 2, 4, 9};
    opd_value value;
    double number;
    OPD_SCOPE {
        begin_pickle();                            /* 1, '1'; 'a/b', 'a': {'b'}; 8, '8'; 'r': [0, ... 8], 'r/3' */
        PUT("}(K\1K\nX\1\0\0\0" "1K\13X\3\0\0\0a/bK\14X\1\0\0\0a}X\1\0\0\0bK\15sK\10K\16X\1\0\0\0" "8K\17"
            "X\1\0\0\0r](K\0K\1K\2K\3K\4K\5K\6K\7K\10eX\3\0\0\0r/3K\20X\4\0\0\0r/03K\21u.");
        opd_tensor_file *file = open_pickle();
        CHECK_INT(opd_tensor_file_count(file), 17);
        for (int i = 0; i < 4; i++) {
            CHECK_INT(opd_tensor_file_find(file, names[i]), -1);
            CHECK_ERROR(OPD_ERROR_FILE, "2 entries have this name");
            CHECK_INT(opd_tensor_file_value(file, names[i], &value), -1);
            CHECK_ERROR(OPD_ERROR_FILE, "2 entries have this name");
            CHECK_INT(opd_tensor_file_number(file, names[i], &number), -1);
            CHECK_ERROR(OPD_ERROR_FILE, "2 entries have this name");
            CHECK(opd_tensor_file_get(file, names[i]) == NULL);
            CHECK_ERROR(OPD_ERROR_FILE, "2 entries have this name");
            CHECK_STR(opd_tensor_file_name(file, first[i]), names[i]);
        }
        for (int i = 0; i < 6; i++) {
            CHECK_INT(opd_tensor_file_value_at(file, i, &value), 0);
            CHECK(value.tag == OPD_TAG_INT && value.u.i == 10 + i);
        }
        for (int i = 6; i < 15; i++) {
            CHECK_INT(opd_tensor_file_value_at(file, i, &value), 0);
            CHECK(value.tag == OPD_TAG_INT && value.u.i == i - 6);
        }
        CHECK_INT(opd_tensor_file_find(file, "r/4"), 10);
        CHECK_INT(opd_tensor_file_find(file, "r/03"), 16);
        CHECK_INT(opd_tensor_file_find(file, "r/9"), -1);
        CHECK_INT(opd_tensor_file_find(file, "r/"), -1);
        CHECK_INT(opd_tensor_file_find(file, "r/-1"), -1);
        CHECK_INT(opd_tensor_file_find(file, "r"), -1);
        CHECK_OK();
        CHECK_INT(opd_tensor_file_value_at(file, 17, &value), -1);
        CHECK_ERROR(OPD_ERROR_INDEX, "no entry 17: the file has 17");
        opd_tensor_file_close(file);
    }
}
/* A module is not loaded if tensors have the same name.  Other entries that cannot be read do not prevent loading. */
TEST(modules_of_odd_files) {
    char path[] = "/tmp/opd_odd_XXXXXX";
    const int fd = mkstemp(path);
    OPD_SCOPE {
        begin_pickle();
        PUT("}(K\1");
        put_tensor("K\4\x85K\1\x85\x89}tR");
        PUT("X\1\0\0\0" "1");
        put_tensor("K\3\x85K\1\x85\x89}tRu.");
        opd_tensor_file *file = open_pickle();
        opd_module *module = opd_module_new();
        const int64_t four = 4;
        opd_module_add(module, "1", opd_zeros(opd_ints_of(&four, 1), OPD_UINT8), OPD_MODULE_BUFFER);
        CHECK_INT(opd_tensor_file_count(file), 2);
        CHECK_INT(opd_module_load(module, file, NULL), -1);
        CHECK_ERROR(OPD_ERROR_FILE, "2 entries have this name");
        opd_tensor_file_close(file);
        opd_module_free(module);
        begin_pickle();
        PUT("}(X\4\0\0\0seed\x8a\x09\1\2\3\4\5\6\7\x88\0X\1\0\0\0n](K\0K\1K\2K\3K\4K\5K\6K\7K\10eX\1\0\0\0w");
        put_tensor("K\4\x85K\1\x85\x89}tRu.");
        file = open_pickle();
        CHECK_INT(opd_tensor_file_count(file), 11);
        FILE *out = fdopen(fd, "wb");
        CHECK(out && fwrite(made + made_at, 1, length - made_at, out) == length - made_at);
        if (out) { fclose(out); }
        opd_tensor_file_close(file);
        module = opd_module_open(path, NULL);
        CHECK_INT(opd_module_count(module), 1);
        CHECK_STR(opd_module_name(module, 0), "w");
        opd_module_free(module);
        CHECK_OK();
    }
    remove(path);
}
/* The format of PyTorch before 1.6, for {'a': tensor([1., 2.])}, in every pickle protocol that PyTorch could use. */
TEST(old_streams_of_all_protocols) {
    for (int protocol = 2; protocol <= 5; protocol++) {
        OPD_SCOPE {
            const char head[2] = {(char)0x80, (char)protocol};
            length = 0;
            put(head, 2);
            if (protocol > 3) { PUT("\x95\x0d\0\0\0\0\0\0\0"); }
            PUT("\x8a\nl\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.");
            put(head, 2);
            PUT("M\xe9\3.");
            put(head, 2);
            PUT("}.");
            put(head, 2);
            put_text("}X");
            PUT("\1\0\0\0a");
            put_text("ctorch._utils\n_rebuild_tensor_v2\n((X");
            PUT("\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0" "0X\3\0\0\0cpuK\2NtQK\0K\2\x85K\1\x85\x89}tRs.");
            put(head, 2);
            PUT("]X\1\0\0\0" "0a.");
            const float numbers[2] = {1, 2};
            put_number(2, 8);
            put(numbers, sizeof numbers);
            opd_tensor_file *file = opd_tensor_file_parse(made, length, NULL, NULL);
            opd_tensor *a = opd_tensor_file_get(file, "a");
            if (a) { CHECK_INT(opd_item_i64(opd_select(a, 0, 1)), 2); }
            CHECK_OK();
            opd_tensor_file_close(file);
        }
    }
}
CHECK_MAIN()
