/* Every name of PyTorch that torch.jit.script accepts is called in source text (golden/script_names.json, made by
   golden/make_script_names.py).  Each call compiles here, too, and gives the same result.  Exceptions are listed
   with a reason in golden/script_names_left_out.txt, and this list must be exact.  Functions that PyTorch has in
   Python are also called from an archive.  OPD_SCRIPT_NAME=torch.stft tests only this name.  C ONLY: arrays of
   values with initialisers. */
#include "../inside.h"
#include "../check.h"

enum { MOST_NAMES = 4000 };
static opd_json *golden;
static int64_t pool;
static char *left_out;                            /* "\nNAME | REASON\n..." */

/* Returns a file of golden/ as a text that free() takes, after an end of line. */
static char *text_of(const char *name, size_t *size) {
    FILE *file = check_golden(name);
    char *text = NULL;
    long length = 0;
    *size = 0;
    if (!file) { return NULL; }
    if (fseek(file, 0, SEEK_END) == 0 && (length = ftell(file)) > 0 && fseek(file, 0, SEEK_SET) == 0 &&
        (text = (char *)malloc((size_t)length + 2)) != NULL) {
        *size = fread(text + 1, 1, (size_t)length, file);
        text[0] = '\n';
        text[*size + 1] = 0;
    }
    (void)fclose(file);
    return text;
}
static double number_of(int64_t at) {
    const int64_t word = opd_json_get(golden, at, "float");
    return opd_json_kind_of(golden, at) == OPD_JSON_OBJECT ? strtod(opd_json_text(golden, word, "nan"), NULL)
        : opd_json_double(golden, at, 0);
}
static opd_scalar_type dtype_of(const char *name) {
    static const struct { const char *name; opd_scalar_type dtype; } all[] = {
        {"uint8", OPD_UINT8}, {"int8", OPD_INT8}, {"int16", OPD_INT16}, {"int32", OPD_INT32}, {"int64", OPD_INT64},
        {"float16", OPD_FLOAT16}, {"float64", OPD_FLOAT64}, {"complex64", OPD_COMPLEX64},
        {"complex128", OPD_COMPLEX128}, {"bool", OPD_BOOL}, {"bfloat16", OPD_BFLOAT16},
        {"complex32", OPD_COMPLEX32}, {"uint16", OPD_UINT16}, {"uint32", OPD_UINT32}, {"uint64", OPD_UINT64}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) { if (!strcmp(all[i].name, name)) { return all[i].dtype; } }
    return OPD_FLOAT32;
}
static opd_tensor *tensor_of(int64_t at, bool filled) {
    double numbers[1000];
    int64_t sizes[10], ndim = 0, n = 0;
    const opd_scalar_type dtype = dtype_of(opd_json_text(golden, opd_json_get(golden, at, "dtype"), ""));
    for (int64_t e = opd_json_first(golden, opd_json_get(golden, at, "sizes")); e >= 0;
         e = opd_json_next(golden, e)) { sizes[ndim++] = opd_json_int(golden, e, 0); }
    for (int64_t e = opd_json_first(golden, opd_json_get(golden, at, "tensor")); e >= 0 && n < 1000;
         e = opd_json_next(golden, e)) { numbers[n++] = number_of(e); }
    if (!filled) { return opd_zeros(opd_ints_of(sizes, ndim), dtype); }
    if (!opd_dtype_is_complex(dtype)) {
        return opd_to_dtype(opd_tensor_from(numbers, opd_ints_of(sizes, ndim), OPD_FLOAT64), dtype);
    }
    sizes[ndim] = 2;
    opd_tensor *parts = opd_tensor_from(numbers, opd_ints_of(sizes, ndim + 1), OPD_FLOAT64);
    return opd_to_dtype(opd_view_as_complex(parts), dtype);
}
/* Returns an argument: a tensor by its name in the pool, numbers, texts, lists of these. */
static opd_value argument_of(int64_t at) {
    opd_value parts[20];
    int count = 0;
    switch (opd_json_kind_of(golden, at)) {
    case OPD_JSON_BOOL: return opd_value_bool(opd_json_bool(golden, at, false));
    case OPD_JSON_INT: return opd_value_int(opd_json_int(golden, at, 0));
    case OPD_JSON_FLOAT: return opd_value_double(opd_json_double(golden, at, 0));
    case OPD_JSON_TEXT: {
        const char *word = opd_json_text(golden, at, "");
        const int64_t tensor = opd_json_get(golden, pool, word);
        return tensor >= 0 ? opd_value_tensor(tensor_of(tensor, true)) : opd_string_new(word, -1);
    }
    case OPD_JSON_LIST: break;
    default: return opd_value_none();
    }
    for (int64_t e = opd_json_first(golden, at); e >= 0 && count < 20; e = opd_json_next(golden, e)) {
        parts[count++] = argument_of(e);
    }
    opd_value made = opd_list_new(!count ? OPD_TAG_LIST : parts[0].tag == OPD_TAG_TENSOR ? OPD_TAG_TENSORS
        : parts[0].tag == OPD_TAG_INT ? OPD_TAG_INTS : parts[0].tag == OPD_TAG_FLOAT ? OPD_TAG_FLOATS
        : parts[0].tag == OPD_TAG_BOOL ? OPD_TAG_BOOLS : OPD_TAG_LIST);
    for (int i = 0; i < count; i++) { (void)opd_list_append(made, parts[i]); }
    return made;
}
static bool near(double a, double b) {
    return isnan(a) || isnan(b) ? isnan(a) && isnan(b) : a <= b && a >= b ? true
        : fabs(a - b) <= 2e-4 * (1 + fabs(b));
}
static bool same_tensor(opd_tensor *got, int64_t want) {
    const bool filled = opd_json_get(golden, want, "tensor") >= 0;
    opd_tensor *wanted = tensor_of(want, filled);
    if (opd_dtype(got) != opd_dtype(wanted) || opd_ndim(got) != opd_ndim(wanted) ||
        memcmp(opd_sizes(got), opd_sizes(wanted), (size_t)opd_ndim(got) * sizeof(int64_t)) != 0) { return false; }
    if (!filled) { return true; }
    const bool complex = opd_dtype_is_complex(opd_dtype(got));
    got = complex ? opd_view_as_real(opd_resolve_conj(opd_detach(got))) : opd_detach(got);
    wanted = complex ? opd_view_as_real(wanted) : wanted;
    got = opd_reshape(opd_to_dtype(got, OPD_FLOAT64), OPD_INTS(-1));
    wanted = opd_reshape(opd_to_dtype(wanted, OPD_FLOAT64), OPD_INTS(-1));
    if (!opd_ok()) { return false; }
    for (int64_t i = 0; i < opd_numel(got); i++) {
        if (!near(opd_item_f64(opd_select(got, 0, i)), opd_item_f64(opd_select(wanted, 0, i)))) { return false; }
    }
    return true;
}
static bool same(opd_value got, int64_t want) {
    char text[500];
    const int64_t list = opd_json_get(golden, want, "list"), tuple = opd_json_get(golden, want, "tuple");
    switch (opd_json_kind_of(golden, want)) {
    case OPD_JSON_BOOL: return got.tag == OPD_TAG_BOOL && (got.u.i != 0) == opd_json_bool(golden, want, false);
    case OPD_JSON_INT: return got.tag == OPD_TAG_INT && got.u.i == opd_json_int(golden, want, 0);
    case OPD_JSON_FLOAT: return got.tag == OPD_TAG_FLOAT && near(got.u.d, opd_json_double(golden, want, 0));
    case OPD_JSON_TEXT: return opd_string_text(&got, NULL) &&
        strcmp(opd_string_text(&got, NULL), opd_json_text(golden, want, "")) == 0;
    case OPD_JSON_OBJECT: break;
    default: return got.tag == OPD_TAG_NONE;
    }
    if (opd_json_get(golden, want, "sizes") >= 0) { return got.tag == OPD_TAG_TENSOR && same_tensor(got.u.t, want); }
    if (opd_json_get(golden, want, "float") >= 0) { return got.tag == OPD_TAG_FLOAT && near(got.u.d, number_of(want)); }
    if (opd_json_get(golden, want, "any") >= 0) { return got.tag == OPD_TAG_FLOAT; }
    if (opd_json_get(golden, want, "text") >= 0) {
        (void)opd_value_print(got, text, sizeof text);
        return strstr(text, opd_json_text(golden, opd_json_get(golden, want, "text"), "")) != NULL;
    }
    if (opd_json_get(golden, want, "complex") >= 0) {
        const int64_t real = opd_json_first(golden, opd_json_get(golden, want, "complex"));
        double parts[2];
        char *end = NULL;
        (void)opd_value_print(got, text, sizeof text);               /* "1.5+2j" */
        parts[0] = strtod(text + (*text == '('), &end);
        parts[1] = strtod(end, NULL);
        return near(parts[0], number_of(real)) && near(parts[1], number_of(opd_json_next(golden, real)));
    }
    if (got.tag == OPD_TAG_NONE) { return tuple >= 0 && opd_json_first(golden, tuple) < 0; }    /* () of nothing */
    int64_t i = 0;
    const opd_cell_kind kind = opd_value_cell(got);
    if (kind != (list >= 0 ? OPD_CELL_LIST : OPD_CELL_TUPLE)) { return false; }
    for (int64_t e = opd_json_first(golden, list >= 0 ? list : tuple); e >= 0; e = opd_json_next(golden, e), i++) {
        if (i >= opd_list_count(got) || !same(opd_list_at(got, i), e)) { return false; }
    }
    return i == opd_list_count(got);
}
/* Runs a method with a case's arguments; says what is wrong, in at most cap bytes; false if something is. */
static bool gives(const opd_script *script, const char *method, int64_t at, char *wrong, size_t cap) {
    opd_value args[20], got = opd_value_none();
    char text[300] = "";
    int count = 0;
    for (int64_t e = opd_json_first(golden, opd_json_get(golden, at, "args")); e >= 0 && count < 20;
         e = opd_json_next(golden, e)) { args[count++] = argument_of(e); }
    opd_manual_seed(1);
    bool right = opd_script_run(script, method, args, count, &got) == 0;
    if (!right) { (void)snprintf(wrong, cap, "fails: %s", opd_error_message()); }
    if (right && !same(got, opd_json_get(golden, at, "result"))) {
        (void)opd_value_print(got, text, sizeof text);
        (void)snprintf(wrong, cap, "gives %s%s", text, opd_ok() ? "" : opd_error_message());
        right = false;
    }
    opd_error_clear();
    return right;
}
/* Compiles and runs a case; says what is wrong, in at most cap bytes; false if something is. */
static bool works(int64_t at, char *wrong, size_t cap) {
    const char *source = opd_json_text(golden, opd_json_get(golden, at, "source"), "");
    bool missing = false;
    opd_script *script = opd_script_compile(source, NULL);
    if (!script || !opd_script_graph(script, "f")) {
        (void)snprintf(wrong, cap, "%s", opd_error_message());
        opd_error_clear();
        opd_script_free(script);
        return false;
    }
    for (int64_t i = 0; !missing; i++) {
        const char *name = opd_script_operator(script, i, NULL, &missing);
        if (!name) { break; }
        if (missing) { (void)snprintf(wrong, cap, "%s is missing", name); }
    }
    const bool right = !missing && (!opd_json_bool(golden, opd_json_get(golden, at, "runs"), false) ||
                                    gives(script, "f", at, wrong, cap));
    opd_script_free(script);
    return right;
}
/* True if the list of what is left out has the name. */
static bool is_left_out(const char *name) {
    char line[300];
    (void)snprintf(line, sizeof line, "\n%s | ", name);
    return left_out && strstr(left_out, line);
}
/* Reads what is golden; false where it cannot. */
static bool open_golden(void) {
    size_t size;
    char *text = text_of("script_names.json", &size);
    golden = text ? opd_json_parse(text + 1, size) : NULL;
    free(text);
    left_out = text_of("script_names_left_out.txt", &size);
    pool = opd_json_get(golden, 0, "pool");
    return golden && pool >= 0;
}
static void close_golden(void) {
    opd_json_free(golden);
    free(left_out);
}
TEST_KEEPS(names_that_pytorch_takes_are_taken_and_give_the_same) {       /* operators stay registered */
    static const char *names[MOST_NAMES];
    static bool fails[MOST_NAMES];
    char wrong[1000];
    int count = 0, shown = 0, unlisted = 0, needless = 0, listed = 0;
    const char *only = getenv("OPD_SCRIPT_NAME");
    CHECK_OR_RETURN(open_golden());
    for (int64_t at = opd_json_first(golden, opd_json_get(golden, 0, "cases")); at >= 0;
         at = opd_json_next(golden, at)) {
        OPD_SCOPED;
        const char *name = opd_json_text(golden, opd_json_get(golden, at, "name"), "");
        if (only && strcmp(only, name) != 0) { continue; }
        if (!count || strcmp(names[count - 1], name) != 0) {
            int i = 0;
            while (i < count && strcmp(names[i], name) != 0) { i++; }
            CHECK_OR_RETURN(i < count || count < MOST_NAMES);
            if (i == count) { names[count++] = name; }
            else { CHECK(!"cases of a name stand together"); }
        }
        if (works(at, wrong, sizeof wrong)) { continue; }
        fails[count - 1] = true;
        if (is_left_out(name) && !getenv("OPD_SCRIPT_NAMES_ALL")) { continue; }
        printf("%s\n%s  %s\n", name, opd_json_text(golden, opd_json_get(golden, at, "source"), ""), wrong);
        unlisted++;
    }
    for (int i = 0; i < count; i++) {
        const bool known = is_left_out(names[i]);
        const bool own = strrchr(names[i], '.')[1] == '_';               /* of PyTorch's insides */
        shown += !own;
        listed += known && !own;
        if (known && !fails[i]) {
            printf("%s is on the list of what is left out, and works\n", names[i]);
            needless++;
        }
    }
    CHECK_INT(unlisted, 0);
    CHECK_INT(needless, 0);
    CHECK(only || (count > 1800 && shown > 1500 && listed * 20 <= shown));           /* at most one of twenty */
    close_golden();
}
TEST_KEEPS(functions_of_python_in_archives_give_the_same) {
    char wrong[1000];
    int count = 0;
    CHECK_OR_RETURN(open_golden());
    size_t size;
    char *bytes = text_of("scripts/functional.pt", &size);
    opd_script *script = bytes ? opd_script_from_bytes(bytes + 1, size) : NULL;
    free(bytes);
    for (int64_t at = opd_json_first(golden, opd_json_get(golden, 0, "cases")); script && at >= 0;
         at = opd_json_next(golden, at)) {
        OPD_SCOPED;
        const char *method = opd_json_text(golden, opd_json_get(golden, at, "method"), NULL);
        if (!method) { continue; }
        count++;
        if (!gives(script, method, at, wrong, sizeof wrong)) {
            printf("%s\n  %s\n", opd_json_text(golden, opd_json_get(golden, at, "source"), ""), wrong);
            CHECK(!"the same");
        }
    }
    CHECK_OK();
    CHECK(count > 140);
    opd_script_free(script);
    close_golden();
}
/* Runs f of a source with one tensor of n numbers 1, 2, ... that requires grad; returns what it gives as a number. */
static double run(const char *source, int n, opd_tensor **input) {
    float numbers[] = {1, 2, 3, 4, 5, 6, 7, 8};
    opd_script *script = opd_script_compile(source, NULL);
    opd_tensor *x = opd_tensor_set_requires_grad(opd_tensor_from(numbers, OPD_INTS(n), OPD_FLOAT32), true);
    opd_value value = opd_value_tensor(x), got = opd_value_none();
    if (input) { *input = x; }
    const int rc = script ? opd_script_run(script, "f", &value, 1, &got) : -1;
    const double number = rc == 0 && got.tag == OPD_TAG_TENSOR ? opd_item_f64(opd_sum(opd_detach(got.u.t)))
        : got.tag == OPD_TAG_FLOAT ? got.u.d : got.tag == OPD_TAG_INT ? (double)got.u.i : -1;
    opd_script_free(script);
    return number;
}
/* d/dx of the sum of (3 x^2)^2 is 36 x^3, by a gradient of a gradient. */
static const char twice[] =
    "def f(x: Tensor) -> Tensor:\n"
    "    g = torch.autograd.grad([(x ** 3).sum()], [x], create_graph=True)[0]\n"
    "    assert g is not None\n"
    "    h = torch.autograd.grad([(g * g).sum()], [x])[0]\n"
    "    assert h is not None\n"
    "    return h\n";
static const char given[] =
    "def f(x: Tensor) -> Tensor:\n"
    "    w: List[Optional[Tensor]] = [torch.ones([2]) * 3]\n"
    "    g = torch.autograd.grad([x * x], [x], w)[0]\n"
    "    assert g is not None\n"
    "    return g\n";
static const char unused[] =
    "def f(x: Tensor) -> int:\n"
    "    w = torch.ones([2]).requires_grad_()\n"
    "    a, b = torch.autograd.grad([(x * x).sum()], [x, w], allow_unused=True)\n"
    "    return int(a is None) + 2 * int(b is None)\n";
static const char both[] =
    "def f(x: Tensor) -> Tensor:\n"
    "    torch.autograd.backward([(x * x).sum()])\n"
    "    return x.grad\n";
static const char more[] =
    "def f(x: Tensor) -> int:\n"
    "    w: List[Optional[Tensor]] = [x, x]\n"
    "    return len(torch.autograd.grad([x], [x], w))\n";
TEST_KEEPS(scripts_differentiate) {
    opd_tensor *x;
    CHECK_NEAR(run(twice, 2, NULL), 36 + 36 * 8, 1e-3);
    CHECK_NEAR(run(given, 2, NULL), 18, 1e-5);
    CHECK_NEAR(run(unused, 2, NULL), 2, 0);
    CHECK_NEAR(run("def f(x: Tensor) -> int:\n    (x * x).sum().backward()\n    return 0\n", 2, &x), 0, 0);
    CHECK_NEAR(opd_item_f64(opd_sum(opd_tensor_grad(x))), 6, 1e-6);
    CHECK_NEAR(run(both, 2, NULL), 6, 1e-6);
    CHECK_OK();
    CHECK_NEAR(run(more, 2, NULL), -1, 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "each of the 1 outputs needs a gradient, but 2 gradients are given");
}
TEST_KEEPS(flags_that_choose_the_type_are_written_out) {
    CHECK_NEAR(run("def f(x: Tensor) -> int:\n    flag = x.size(0) > 1\n"
                   "    return len(F.max_pool1d(x.view(1, 1, -1), 2, return_indices=flag))\n", 8, NULL), -1, 0);
    CHECK_ERROR(OPD_ERROR_SCHEMA, "the argument 'return_indices' must be the constant True or False");
    CHECK_NEAR(run("def f(x: Tensor) -> int:\n    return int(x.q_scale())\n", 2, NULL), -1, 0);
    CHECK_ERROR(OPD_ERROR_NO_KERNEL, "aten::q_scale is for quantized tensors, but they are float32 tensors");
}
/* torch.stft in source is PyTorch's function of Python, centred unless told not to be. */
TEST_KEEPS(pieces_of_a_signal_are_centred) {
    static const char *const calls[] = {"", ", center=True", ", center=False"};
    static const int pieces[] = {3, 3, 2};
    for (int i = 0; i < 3; i++) {
        char source[200];
        (void)snprintf(source, sizeof source, "def f(x: Tensor) -> int:\n    return torch.stft(x, 4, 4, "
                       "return_complex=True%s).size(-1)\n", calls[i]);
        CHECK_INT(run(source, 8, NULL), pieces[i]);
    }
    CHECK_OK();
}
CHECK_MAIN()
