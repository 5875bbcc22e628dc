/* Scripts: sources, arguments and PyTorch's results are in golden/scripts.json and golden/script_saves.json.  Also
   errors, graphs, gradients, archives, damaged files, and each allocation failing.  C ONLY: arrays of values with
   initialisers. */
#include "../inside.h"
#include "../check.h"

static opd_json *golden;

/* Returns a value of a tree: numbers and texts as they are, {"tensor": [...], "sizes", "dtype"}, {"list"}, {"tuple"},
   {"dict": [[key, value], ...]}. */
static opd_value value_of(int64_t at) {
    opd_value parts[100];
    int count = 0;
    switch (opd_json_kind_of(golden, at)) {
    case OPD_JSON_BOOL: return opd_value_bool(opd_json_bool(golden, at, false));
    case OPD_JSON_INT: return opd_value_int(opd_json_int(golden, at, 0));
    case OPD_JSON_FLOAT: return opd_value_double(opd_json_double(golden, at, 0));
    case OPD_JSON_TEXT: return opd_string_new(opd_json_text(golden, at, ""), -1);
    case OPD_JSON_OBJECT: break;
    default: return opd_value_none();
    }
    const int64_t tensor = opd_json_get(golden, at, "tensor"), dict = opd_json_get(golden, at, "dict");
    const int64_t list = opd_json_get(golden, at, "list"), tuple = opd_json_get(golden, at, "tuple");
    const int64_t far = opd_json_get(golden, at, "far");
    if (far >= 0) { return opd_value_double((double)opd_json_int(golden, far, 0) * HUGE_VAL); }
    if (tensor >= 0) {
        double numbers[200];
        int64_t sizes[8], ndim = 0, n = 0;
        const char *dtype = opd_json_text(golden, opd_json_get(golden, at, "dtype"), "");
        for (int64_t e = opd_json_first(golden, tensor); e >= 0; e = opd_json_next(golden, e)) {
            numbers[n++] = opd_json_double(golden, e, 0);
        }
        for (int64_t e = opd_json_first(golden, opd_json_get(golden, at, "sizes")); e >= 0;
             e = opd_json_next(golden, e)) { sizes[ndim++] = opd_json_int(golden, e, 0); }
        opd_tensor *made = opd_tensor_from(numbers, opd_ints_of(sizes, ndim), OPD_FLOAT64);
        return opd_value_tensor(opd_to_dtype(made, strcmp(dtype, "int64") == 0 ? OPD_INT64
                                             : strcmp(dtype, "float64") == 0 ? OPD_FLOAT64
                                             : strcmp(dtype, "bool") == 0 ? OPD_BOOL : OPD_FLOAT32));
    }
    if (dict >= 0) {
        opd_value made = opd_dict_new();
        for (int64_t e = opd_json_first(golden, dict); e >= 0; e = opd_json_next(golden, e)) {
            const int64_t key = opd_json_first(golden, e);
            (void)opd_dict_set(made, value_of(key), value_of(opd_json_next(golden, key)));
        }
        return made;
    }
    for (int64_t e = opd_json_first(golden, list >= 0 ? list : tuple); e >= 0 && count < 100;
         e = opd_json_next(golden, e)) { parts[count++] = value_of(e); }
    if (tuple >= 0) { return opd_tuple_new(parts, count); }
    bool mixed = false;
    for (int i = 1; i < count; i++) { mixed = mixed || parts[i].tag != parts[0].tag; }
    opd_value made = opd_list_new(!count || mixed ? OPD_TAG_LIST : parts[0].tag == OPD_TAG_TENSOR ? OPD_TAG_TENSORS
        : parts[0].tag == OPD_TAG_INT ? OPD_TAG_INTS : parts[0].tag == OPD_TAG_FLOAT ? OPD_TAG_FLOATS : OPD_TAG_LIST);
    for (int i = 0; i < count; i++) { (void)opd_list_append(made, parts[i]); }
    return made;
}
static bool same(opd_value got, opd_value want) {
    char first[500] = "", second[500] = "";
    opd_value found;
    if (want.tag == OPD_TAG_TENSOR) {
        if (got.tag != OPD_TAG_TENSOR || opd_dtype(got.u.t) != opd_dtype(want.u.t) ||
            opd_ndim(got.u.t) != opd_ndim(want.u.t) ||
            memcmp(opd_sizes(got.u.t), opd_sizes(want.u.t), (size_t)opd_ndim(got.u.t) * sizeof(int64_t))) {
            return false;
        }
        opd_tensor *far = opd_sub(opd_to_dtype(got.u.t, OPD_FLOAT64), opd_to_dtype(want.u.t, OPD_FLOAT64));
        return opd_numel(far) == 0 || opd_item_f64(opd_max(opd_abs(far))) < 1e-5;
    }
    const opd_cell_kind kind = opd_value_cell(want);
    if (kind != opd_value_cell(got)) { return false; }
    if (kind == OPD_CELL_LIST || kind == OPD_CELL_TUPLE || kind == OPD_CELL_DICT) {
        bool equal = opd_list_count(got) == opd_list_count(want);
        for (int64_t i = 0; equal && i < opd_list_count(want); i++) {
            equal = kind == OPD_CELL_DICT ? opd_dict_get(got, opd_dict_key_at(want, i), &found) == 1 &&
                same(found, opd_dict_value_at(want, i)) : same(opd_list_at(got, i), opd_list_at(want, i));
        }
        return equal;
    }
    if (want.tag == OPD_TAG_FLOAT) {
        return got.tag == OPD_TAG_FLOAT &&
            (got.u.d == want.u.d || (got.u.d - want.u.d < 1e-9 && want.u.d - got.u.d < 1e-9));
    }
    (void)opd_value_print(got, first, sizeof first);
    (void)opd_value_print(want, second, sizeof second);
    return got.tag == want.tag && strcmp(first, second) == 0;
}
static void check_call(const opd_script *script, int64_t call) {
    const char *name = opd_json_text(golden, opd_json_get(golden, call, "call"), "");
    const int64_t result = opd_json_get(golden, call, "result");
    opd_value args[8], got;
    int count = 0;
    for (int64_t e = opd_json_first(golden, opd_json_get(golden, call, "args")); e >= 0;
         e = opd_json_next(golden, e)) { args[count++] = value_of(e); }
    const int rc = opd_script_run(script, name, args, count, &got);
    if (opd_json_get(golden, call, "error") >= 0) {
        const char *what = opd_json_text(golden, opd_json_get(golden, call, "error"), "");
        const char *part = strstr(what, ": ") ? strstr(what, ": ") + 2 : what;
        CHECK(rc == -1);
        CHECK(strstr(opd_error_message(), part) != NULL);
        if (!strstr(opd_error_message(), part)) { printf("%s: %s, not %s\n", name, opd_error_message(), part); }
        opd_error_clear();
    } else if (rc || !same(got, value_of(result))) {
        char text[1000] = "", want[1000] = "";
        if (!rc) {
            (void)opd_value_print(got, text, sizeof text);
            (void)opd_value_print(value_of(result), want, sizeof want);
        }
        printf("%s: %s%s, not %s\n", name, rc ? opd_error_message() : "", text, want);
        CHECK(!"another result");
        opd_error_clear();
    }
}
static bool open_golden(const char *name) {
    static char text[1 << 20];
    FILE *file = check_golden(name);
    if (!file) { return false; }
    const size_t size = fread(text, 1, sizeof text, file);
    (void)fclose(file);
    golden = opd_json_parse(text, size);
    CHECK_OK();
    return golden != NULL;
}
/* Operators of the archive's spelling, of which many are no operators at all: their names are only tried. */
static const char tried[] =
    "def forward(x: Tensor, names: List[str]) -> Dict[str, Tensor]:\n"
    "  d = annotate(Dict[str, Tensor], {})\n"
    "  _0 = [9223372036854775807, torch.len(names)]\n"
    "  for i in range(ops.prim.min(_0)):\n"
    "    n = names[i]\n"
    "    _1 = torch.mul(torch.select(x, 0, i), i)\n"
    "    torch._set_item(d, torch.format(\"{}_{}\", n, i), _1)\n"
    "    if torch.__contains__(d, n):\n"
    "      torch._set_item(d, n, torch.add(d[n], 1))\n"
    "    else:\n"
    "      torch._set_item(d, n, torch.select(x, 0, i))\n"
    "  ks = sorted(torch.list(torch.keys(d)))\n"
    "  if torch.gt(torch.len(ks), 3):\n"
    "    torch.Delete(d, ks[-1])\n"
    "  else:\n"
    "    pass\n"
    "  _2 = torch.__isnot__(torch.upper(ks[0]), None)\n"
    "  return d\n";
static int registered(void) {
    int count = 0;
    for (int i = 0; i < OPD_OP_COUNT; i++) { count += inside_is_registered(i); }
    return count;
}
TEST(names_that_are_only_tried_make_no_message_and_register_nothing_else) {
    float numbers[] = {1, 2, 3, 4};
    opd_value args[2];
    (void)opd_fail(OPD_ERROR_USER, "of before");
    opd_error_clear();
    const int before = registered();
    opd_script *script = opd_script_compile(tried, "tried.py");
    CHECK_STR(inside_last_error(), "of before");
    args[0] = opd_value_tensor(opd_tensor_from(numbers, OPD_INTS(2, 2), OPD_FLOAT32));
    args[1] = opd_list_new(OPD_TAG_LIST);
    (void)opd_list_append(args[1], opd_string_new("a", -1));
    (void)opd_list_append(args[1], opd_string_new("b", -1));
    opd_value got = opd_value_none();
    CHECK(opd_script_run(script, "forward", args, 2, &got) == 0);
    CHECK(opd_list_count(got) == 3);
    CHECK_STR(inside_last_error(), "of before");
    CHECK(before > OPD_OP_COUNT / 2 || registered() - before < 40);       /* one case alone: some 20 of 1,270 */
    opd_script_free(script);
}

TEST(sources_give_what_they_give_in_pytorch) {
    CHECK_OR_RETURN(open_golden("scripts.json"));
    for (int64_t at = opd_json_first(golden, 0); at >= 0; at = opd_json_next(golden, at)) {
        OPD_SCOPED;
        const char *source = opd_json_text(golden, opd_json_get(golden, at, "source"), "");
        opd_script *script = opd_script_compile(source, NULL);
        if (!script) {
            printf("%s\n%s\n", source, opd_error_message());
            CHECK(!"compiles");
            opd_error_clear();
            continue;
        }
        for (int64_t call = opd_json_first(golden, opd_json_get(golden, at, "calls")); call >= 0;
             call = opd_json_next(golden, call)) { check_call(script, call); }
        opd_script_free(script);
    }
    opd_json_free(golden);
}
static const char control[] =
    "def gate(x: Tensor) -> Tensor:\n    if bool(x.sum() > 0):\n        return x * 2\n    else:\n        return -x\n"
    "def loop(x: Tensor, n: int = 3) -> Tensor:\n    for i in range(n):\n        x = gate(x) + i\n    return x\n";
TEST(a_source_is_saved_and_runs_again) {
    OPD_SCOPED;
    opd_value args[] = {opd_value_tensor(opd_ones(OPD_INTS(2), OPD_FLOAT32)), opd_value_int(2)}, first, second;
    bool missing = true;
    opd_script *script = opd_script_compile(control, "control.py");
    CHECK_OR_RETURN(script != NULL);
    CHECK_INT(opd_script_count(script), 2);
    CHECK_INT(opd_script_nargs(script, "loop"), 2);
    CHECK_STR(opd_script_arg_name(script, "loop", 1), "n");
    CHECK(opd_script_operator(script, 0, NULL, &missing) != NULL && !missing);
    CHECK_INT(opd_script_save(script, "/tmp/opd_script_saved.pt"), 0);
    CHECK_INT(opd_script_run(script, NULL, args, 2, &first), 0);
    opd_script_free(script);
    script = opd_script_load("/tmp/opd_script_saved.pt");
    CHECK_OK();
    CHECK_OR_RETURN(script != NULL);
    CHECK_INT(opd_script_run(script, "forward", args, 2, &second), 0);
    CHECK(same(second, first));
    CHECK_INT(opd_script_run(script, "gate", args, 1, &second), 0);
    CHECK_NEAR(opd_item_f64(opd_sum(second.u.t)), 4, 0);
    CHECK_INT(opd_script_run(script, "gates", args, 1, &second), -1);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "the script has no method 'gates'; did you mean 'gate'");
    opd_script_free(script);
    (void)remove("/tmp/opd_script_saved.pt");
}
/* Checks that the code in a saved file has nothing of Python that torch.jit.load refuses. */
static void check_grammar(const char *path) {
    static const char *const refused[] = {"torch.ops.", "@", "import ", "F.", "math.", "(object)", "lambda", "global ",
        "nn.", " += ", " -= ", "f'", "#", " is ", " and ", " not ", "torch.Tensor"};
    static char bytes[1 << 18];
    FILE *file = fopen(path, "rb");
    CHECK_OR_RETURN(file != NULL);
    const size_t size = fread(bytes, 1, sizeof bytes - 1, file);
    (void)fclose(file);
    for (size_t i = 0; i < size; i++) { if (!bytes[i]) { bytes[i] = ' '; } }
    bytes[size] = 0;
    char *const code = strstr(bytes, "(Module):");
    CHECK_OR_RETURN(code != NULL);
    char *const end = strstr(code, "PK");
    CHECK_OR_RETURN(end != NULL);
    *end = 0;
    bool texts = false;
    for (char *at = code; at < end; at++) {        /* what texts say is no grammar */
        if (*at == '"') { texts = !texts; }
        else if (texts) {
            if (*at == '\\') { *at++ = '_'; }
            *at = '_';
        }
    }
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const char *const found = strstr(code, refused[i]);
        if (found) { printf("%s in %.200s\n", refused[i], found > code + 40 ? found - 40 : code); }
        CHECK(found == NULL);
    }
}
/* Checks the parameters of a source's module, [[name, requires_grad], ...]. */
static void check_parameters(const opd_script *script, int64_t wanted) {
    const opd_module *const module = opd_script_module(script);
    int64_t count = 0;
    for (int64_t e = wanted >= 0 ? opd_json_first(golden, wanted) : -1; e >= 0; e = opd_json_next(golden, e)) {
        const int64_t name = opd_json_first(golden, e);
        const opd_tensor *const found = opd_module_get(module, opd_json_text(golden, name, ""));
        CHECK(found != NULL);
        CHECK(found && opd_tensor_requires_grad(found) == opd_json_bool(golden, opd_json_next(golden, name), false));
        count++;
    }
    for (int64_t i = 0; i < opd_module_count(module); i++) {
        count -= opd_module_kind_at(module, i) == OPD_MODULE_PARAMETER;
    }
    CHECK_INT(count, 0);
}
static void check_saved(const char *name) {
    const char *const path = "/tmp/opd_script_saves.pt";
    CHECK_OR_RETURN(open_golden(name));
    for (int64_t at = opd_json_first(golden, 0); at >= 0; at = opd_json_next(golden, at)) {
        OPD_SCOPED;
        opd_script *script = opd_script_compile(opd_json_text(golden, opd_json_get(golden, at, "source"), ""), NULL);
        CHECK_OK();
        for (int again = 0; again < 3 && script; again++) {
            for (int64_t call = opd_json_first(golden, opd_json_get(golden, at, "calls")); call >= 0;
                 call = opd_json_next(golden, call)) { check_call(script, call); }
            check_parameters(script, opd_json_get(golden, at, "parameters"));
            CHECK_INT(opd_script_save(script, path), 0);
            CHECK_OK();
            check_grammar(path);
            opd_script_free(script);
            script = opd_script_load(path);
            CHECK_OK();
        }
        opd_script_free(script);
    }
    (void)remove(path);
    opd_json_free(golden);
}
/* What torch.jit.load makes of these files is checked by golden/make_script_saves.py --check. */
TEST(what_is_saved_gives_the_same_again) {
    check_saved("script_saves.json");
    check_saved("scripts.json");
}
static int warp_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_mul_Scalar(opd_arg_tensor(call, 0), opd_value_int(opd_arg_int(call, 1))));
}
/* An archive says ops.saved.warp of what source calls torch.ops.saved.warp. */
TEST(operators_of_a_library_are_saved_by_their_names) {
    OPD_SCOPED;
    static const char source[] =
        "@torch.jit.script\ndef compute(x, y):\n  x = torch.ops.saved.warp(x, n=3) + torch.ops.saved.warp(y)\n  return x\n";
    const char *const path = "/tmp/opd_script_custom.pt";
    opd_value args[] = {opd_value_tensor(opd_ones(OPD_INTS(2), OPD_FLOAT32)),
                        opd_value_tensor(opd_ones(OPD_INTS(2), OPD_FLOAT32))}, got;
    opd_script *script = opd_script_compile(source, NULL);
    CHECK(opd_script_run(script, NULL, args, 2, &got) == -1);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "there is no function saved::warp: load the library that defines this operator "
                "(opd_plugin_load, or a file with its OPD_LIBRARY block)");
    CHECK(opd_script_save(script, path) == -1);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "compute calls saved::warp, but there is no function with this name: load the");
    opd_script_free(script);
    opd_library *lib = opd_library_open(OPD_DEF, "saved", NULL, __FILE__, __LINE__);
    CHECK_INT(opd_def(lib, "warp(Tensor x, *, int n=2) -> Tensor"), 0);
    CHECK_INT(opd_impl(lib, "warp", warp_kernel), 0);
    script = opd_script_compile(source, NULL);
    for (int again = 0; again < 2; again++) {
        CHECK_INT(opd_script_run(script, NULL, args, 2, &got), 0);
        CHECK_NEAR(opd_item_f64(opd_sum(got.u.t)), 10, 0);
        CHECK_INT(opd_script_save(script, path), 0);
        CHECK_OK();
        check_grammar(path);
        opd_script_free(script);
        script = again ? NULL : opd_script_load(path);
    }
    (void)remove(path);
    opd_library_close(lib);
}
/* Sources that an archive has no text for; of others with odd names the module or its values have other names. */
TEST(what_cannot_be_saved_is_an_error) {
    OPD_SCOPED;
    static const char *const wrong[][2] = {
        {"def f(torch: Tensor) -> Tensor:\n    return torch + 1\n", "f has a parameter 'torch', but this name is reserved"},
        {"def f(x: Tensor, self: int) -> Tensor:\n    return x + self\n", "f has a parameter 'self', but this name is reserved"},
        {"def f(x: Tensor) -> Tensor:\n    return torch.not_here(x)\n", "f calls aten::not_here, but there is no"},
        {"class I(Interface):\n    def g(self, x: Tensor) -> Tensor:\n        pass\ndef f(x: Tensor):\n    return x\n",
         "I is an interface, which cannot be saved"}};
    static const char odd[] = "class PlaceholderModule:\n    def __init__(self, _0: int):\n        self._0 = _0\n"
        "def forward(_3: int, __1: int) -> int:\n    m = PlaceholderModule(_3)\n    return m._0 * __1\n";
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        opd_script *script = opd_script_compile(wrong[i][0], NULL);
        CHECK_OK();
        CHECK(opd_script_save(script, "/tmp/opd_script_odd.pt") == -1);
        if (!strstr(opd_error_message(), wrong[i][1])) { printf("%s\n", opd_error_message()); }
        CHECK(strstr(opd_error_message(), wrong[i][1]) != NULL);
        opd_error_clear();
        opd_script_free(script);
    }
    opd_value args[] = {opd_value_int(5), opd_value_int(7)}, got;
    opd_script *script = opd_script_compile(odd, NULL);
    CHECK_INT(opd_script_save(script, "/tmp/opd_script_odd.pt"), 0);
    opd_script_free(script);
    script = opd_script_load("/tmp/opd_script_odd.pt");
    CHECK_INT(opd_script_run(script, NULL, args, 2, &got), 0);
    CHECK_INT(got.u.i, 35);
    opd_script_free(script);
    (void)remove("/tmp/opd_script_odd.pt");
}
/* A module of a source is trained through opd_script_module, and saved as it is then; its buffers change. */
TEST(a_module_of_a_source_keeps_its_state) {
    OPD_SCOPED;
    static const char source[] = "import torch\nclass M(torch.nn.Module):\n    def __init__(self, n: int = 2):\n"
        "        super().__init__()\n        self.w = torch.nn.Parameter(torch.ones(n))\n"
        "        self.register_buffer('seen', torch.zeros(1))\n        self.calls = 0\n"
        "    def forward(self, x):\n        self.seen += x.sum()\n        self.calls += 1\n        return (x * self.w).sum()\n"
        "    def told(self) -> Tuple[Tensor, int]:\n        return self.seen, self.calls\n";
    opd_value x = opd_value_tensor(opd_ones(OPD_INTS(2), OPD_FLOAT32)), got;
    opd_script *script = opd_script_compile(source, NULL);
    CHECK_OR_RETURN(script != NULL);
    CHECK_INT(opd_script_count(script), 2);
    CHECK_STR(opd_script_name(script, 0), "forward");
    CHECK_STR(opd_script_name(script, 1), "told");
    opd_optimizer *sgd = opd_module_sgd(opd_script_module(script), NULL, NULL);
    for (int again = 0; again < 2; again++) {
        CHECK_INT(opd_script_run(script, NULL, &x, 1, &got), 0);
        CHECK_NEAR(opd_item_f64(got.u.t), again ? 1.998 : 2, 1e-6);             /* by 0.001 each */
        if (!again) {
            CHECK_INT(opd_backward(got.u.t), 0);
            CHECK_INT(opd_optimizer_step(sgd), 0);
            opd_optimizer_free(sgd);
        }
        CHECK_INT(opd_script_run(script, "told", NULL, 0, &got), 0);
        CHECK_NEAR(opd_item_f64(opd_list_at(got, 0).u.t), 2 + 2 * again, 0);
        CHECK_INT(opd_list_at(got, 1).u.i, 1 + again);
        CHECK_INT(opd_script_save(script, "/tmp/opd_script_module.pt"), 0);
        opd_script_free(script);
        script = again ? NULL : opd_script_load("/tmp/opd_script_module.pt");
    }
    (void)remove("/tmp/opd_script_module.pt");
    CHECK_OK();
}
TEST(modules_that_a_source_cannot_make_are_errors) {
    static const char *const wrong[][2] = {
        {"class M(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.l = torch.nn.Linear(3, 4)\n"
         "    def forward(self, x):\n        return self.l(x)\n", "torch.nn.Linear is a class of Python, which a source cannot"},
        {"class M(torch.nn.Module):\n    def __init__(self, k: int):\n        self.k = k\n    def forward(self, x):\n"
         "        return x * self.k\n", "its __init__ needs 'k': give it a default, or make M in a function"},
        {"class M(torch.nn.Module):\n    def __init__(self):\n        self.register_buffer('b')\n",
         "register_buffer needs a name in quotes and a tensor; it may also have persistent=True"},
        {"class M(torch.nn.Module):\n    def __init__(self):\n        self.p = torch.nn.Parameter()\n",
         "Parameter() takes a tensor and requires_grad"},
        {"class M(torch.nn.Module):\n    def forward(self, x):\n        return x.nothing()\n", "has no attribute or method"},
        {"class M(torch.nn.Module):\n    def __init__(self):\n        assert 1 == 2, 'no'\n        self.k = 1\n"
         "    def forward(self, x):\n        return x\n", "AssertionError: no"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK(opd_script_compile(wrong[i][0], NULL) == NULL);
        if (!strstr(opd_error_message(), wrong[i][1])) { printf("%s\n", opd_error_message()); }
        CHECK(strstr(opd_error_message(), wrong[i][1]) != NULL);
        opd_error_clear();
    }
    /* Functions that make modules, or have nothing to do with them, are the script as before. */
    static const char *const still[] = {
        "class M(torch.nn.Module):\n    def forward(self, x):\n        return x * 3\ndef f(x):\n    m = M()\n    return m.forward(x)\n",
        "def f(x):\n    return x * 3\nclass M(torch.nn.Module):\n    def __init__(self, k: int):\n        self.k = k\n",
        "def f(x):\n    return x * 3\nclass M(torch.nn.Module):\n    def forward(self, x):\n        return f(x)\n"};
    for (size_t i = 0; i < sizeof still / sizeof still[0]; i++) {
        OPD_SCOPED;
        opd_value x = opd_value_tensor(opd_ones(OPD_INTS(2), OPD_FLOAT32)), got = opd_value_none();
        opd_script *script = opd_script_compile(still[i], NULL);
        CHECK_INT(opd_script_run(script, "f", &x, 1, &got), 0);
        CHECK_NEAR(opd_item_f64(opd_sum(got.u.t)), 6, 0);
        CHECK_INT(opd_script_run(script, NULL, &x, 1, &got), 0);
        CHECK_NEAR(opd_item_f64(opd_sum(got.u.t)), 6, 0);
        opd_script_free(script);
    }
    CHECK_OK();
}
TEST(arguments_are_given_by_name) {
    OPD_SCOPED;
    opd_script *script = opd_script_compile("def f(x: int, y: int = 2, *, z: int = 3) -> int:\n    return 100 * x + 10 * y + z\n", NULL);
    const opd_value one = opd_value_int(1);
    opd_keyword names[] = {{"z", opd_value_int(7)}, {"y", opd_value_int(5)}};
    opd_value got = opd_value_none();
    CHECK_OR_RETURN(script != NULL);
    CHECK_INT(opd_script_run_named(script, "f", &one, 1, names, 2, &got), 0);
    CHECK(got.tag == OPD_TAG_INT && got.u.i == 157);
    CHECK_INT(opd_script_run_named(script, "f", &one, 1, names, 1, &got), 0);
    CHECK_INT(got.u.i, 127);
    names[0].name = "x";
    CHECK_INT(opd_script_run_named(script, "f", &one, 1, names, 1, &got), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "'x'");
    names[0].name = NULL;
    CHECK_INT(opd_script_run_named(script, "f", &one, 1, names, 1, &got), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "f() has no argument with the name ''");
    CHECK_INT(opd_script_run_named(script, "f", NULL, 1, names, 0, &got), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "f(): the pointer to its arguments is NULL");
    CHECK_INT(opd_script_run_named(script, "f", &one, 1, NULL, 1, &got), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "f(): the pointer to its arguments by name is NULL");
    names[0].name = "other";
    CHECK_INT(opd_script_run_named(script, "f", &one, 1, names, 1, &got), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "'other'");
    opd_script_free(script);
}
TEST(defaults_are_what_the_source_says) {
    OPD_SCOPED;
    opd_value got;
    opd_script *script = opd_script_compile("def f(t: Tuple[int, float] = (1, 2.), d: int = torch.float64, x: float = 3,"
        " l: List[int] = [], s: int = 1 << 3):\n    return t, d, x, l, s\n", NULL);
    for (int again = 0; again < 2; again++) {
        char text[200] = "";
        CHECK_INT(opd_script_run(script, NULL, NULL, 0, &got), 0);
        CHECK_STR((opd_value_print(got, text, sizeof text), text), "((1, 2.), 7, 3., [], 8)");
        CHECK_INT(opd_script_save(script, "/tmp/opd_script_defaults.pt"), 0);
        opd_script_free(script);
        script = again ? NULL : opd_script_load("/tmp/opd_script_defaults.pt");
    }
    (void)remove("/tmp/opd_script_defaults.pt");
    CHECK_OK();
}
TEST(gradients_flow_through_branches_and_loops) {
    OPD_SCOPED;
    opd_tensor *x = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(2), OPD_FLOAT32), true);
    opd_value args[] = {opd_value_tensor(x)}, out;
    opd_script *script = opd_script_compile(control, NULL);
    CHECK_OR_RETURN(script != NULL);
    CHECK_INT(opd_script_run(script, "loop", args, 1, &out), 0);
    opd_backward(opd_sum(out.u.t));
    CHECK_OK();
    CHECK_NEAR(opd_item_f64(opd_sum(opd_tensor_grad(x))), 16, 0);
    char text[4000];
    (void)opd_graph_print(opd_script_graph(script, "loop"), text, sizeof text);
    CHECK(strstr(text, "prim::Loop(") != NULL && strstr(text, "prim::If(") != NULL && strstr(text, "block1():") != NULL);
    opd_script_free(script);
}
/* A function of numbers does not take a tensor where PyTorch has a function of tensors by that name. */
TEST(tensors_become_no_numbers_unasked) {
    static const char *const names[] = {"lgamma", "angle", "sqrt", "floor", "exp", "erf", "tanh", "__and__", "neg"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        OPD_SCOPED;
        char source[200];
        opd_value args[] = {opd_value_tensor(opd_ones(OPD_INTS(1), OPD_FLOAT32))}, result;
        (void)snprintf(source, sizeof source, "def f(x: Tensor):\n    return torch.%s(%s)\n", names[i],
                       strcmp(names[i], "__and__") == 0 ? "x > 0, x > 1" : "x");
        opd_script *script = opd_script_compile(source, NULL);
        CHECK(script != NULL);
        CHECK(opd_script_run(script, "f", args, 1, &result) || result.tag == OPD_TAG_TENSOR);
        if (!opd_ok()) { CHECK(strstr(opd_error_message(), "there is no function") != NULL); }
        opd_error_clear();
        opd_script_free(script);
    }
}
TEST(grad_mode_is_as_before_when_a_run_fails) {
    OPD_SCOPED;
    opd_value args[] = {opd_value_tensor(opd_ones(OPD_INTS(2), OPD_FLOAT32)), opd_value_int(1)}, result;
    opd_script *script = opd_script_compile("def f(x: Tensor, n: int):\n    with torch.no_grad():\n        if n > 0:\n"
                                            "            raise ValueError('no')\n        x = x * 2\n    return x\n",
                                            NULL);
    CHECK_OR_RETURN(script != NULL);
    CHECK_INT(opd_script_run(script, "f", args, 2, &result), -1);
    opd_error_clear();
    CHECK(opd_grad_mode_enabled());
    CHECK_INT(opd_graph_run_values(opd_script_graph(script, "f"), args, 2, &result, 1), -1);
    opd_error_clear();
    CHECK(opd_grad_mode_enabled());
    args[1] = opd_value_int(0);
    CHECK_INT(opd_script_run(script, "f", args, 2, &result), 0);
    CHECK(opd_grad_mode_enabled());
    opd_script_free(script);
}
static void check_archive(const char *name, const char *want);
TEST(record_function_is_a_span) {
    OPD_SCOPED;
    const char *const source =
        "def f(x: Tensor, n: int):\n    with torch.profiler.record_function('twice_' + str(n)):\n        if n > 2:\n"
        "            raise ValueError('no')\n        x = x * 2\n    return x\n";
    opd_value args[] = {opd_value_tensor(opd_ones(OPD_INTS(2), OPD_FLOAT32)), opd_value_int(1)}, result;
    opd_script *script = opd_script_compile(source, NULL);
    int64_t count = 0;
    CHECK_OR_RETURN(script != NULL);
    CHECK_INT(opd_script_run(script, "f", args, 2, &result), 0);              /* nobody observes */
    CHECK_INT(opd_profiler_begin(NULL), 0);
    CHECK_INT(opd_script_run(script, "f", args, 2, &result), 0);
    args[1] = opd_value_int(3);
    CHECK_INT(opd_script_run(script, "f", args, 2, &result), -1);
    opd_error_clear();
    opd_profile *profile = opd_profiler_end();
    CHECK_OR_RETURN(profile != NULL);
    const opd_profile_row *rows = opd_profile_rows(profile, &count);
    int found = 0;
    for (int64_t i = 0; i < count; i++) {
        found += strcmp(rows[i].name, "twice_1") == 0 ? 1 : strcmp(rows[i].name, "twice_3") == 0 ? 10 : 0;
    }
    CHECK_INT(found, 11);                                                     /* an error ends it, too */
    opd_profile_free(profile);
    opd_script_free(script);
    script = opd_script_compile("def f(x: Tensor):\n    torch.ops.profiler._record_function_exit(x)\n    return x\n",
                                NULL);
    CHECK_OR_RETURN(script != NULL);
    CHECK_INT(opd_script_run(script, "f", args, 1, &result), -1);
    CHECK(strstr(opd_error_message(), "was not entered before") != NULL);
    opd_error_clear();
    opd_script_free(script);
    CHECK_INT(opd_profiler_begin(NULL), 0);
    check_archive("scripts/spans.pt", " 3\n 5\n[ CPUFloatType{2} ]");
    CHECK_OR_RETURN((profile = opd_profiler_end()) != NULL);
    rows = opd_profile_rows(profile, &count);
    for (int64_t i = 0; i < count; i++) { found += strcmp(rows[i].name, "doubled") == 0; }
    CHECK_INT(found, 12);
    opd_profile_free(profile);
}
/* A class that others are derived from. */
#define BASE "class A:\n    def __init__(self, x: int):\n        self.x = x\n    def f(self) -> int:\n        return self.x\n"
TEST(errors_show_the_line) {
    static const char *const wrong[][2] = {
        {"def f(x: Tensor) -> Tensor:\n    return y\n", "undefined value y"},
        {"def f(x: Tensor) -> int:\n    return x.foo()\n", "has no attribute or method 'foo'"},
        {"def f(x: Tensor) -> str:\n    return x\n", "annotated as having type str"},
        {"def f(x: int) -> int:\n    if x > 0:\n        x = 2.5\n    return x\n", "previously had type int"},
        {"def f(x: int) -> int:\n    return f(x)\n", "called recursively"},
        {"def f(x: int) -> int:\n  return (x\n", "expected"},
        {"def f(x: int)\n    return x\n", "expected : but found"},
        {"def f(x: Optional[int]) -> int:\n    return x + 1\n", "Arguments for call are not valid"},
        {"def f(x: Tensor) -> bool:\n    return isinstance(x, Tensor, 3)\n", "exactly 2 arguments but found 3"},
        {"def f(x: List[int]) -> List[int]:\n    return list(x, x)\n", "between 0 and 1 but found 2"},
        {"def f(x: Tensor):\n    return torch.jit.fork()\n", "between 1 and 64 but found 0"},
        {"class V(object):\n    def __init__(self, n: int):\n        if n > 1:\n            self.m = 2\n"
         "def f() -> int:\n    return V(1).m\n", "First assignment cannot be in a control-flow block"},
        {"def f(x: int) -> int:\n    try:\n        return x\n    except ValueError:\n        return 2\n",
         "found 'try' here, which TorchScript does not have; exceptions cannot be caught, test with `if`"},
        {"def f(x: int) -> int:\n    g = lambda y: y\n    return g(x)\n",
         "found 'lambda' here, which TorchScript does not have; write a function (def)"},
        {"def f(x: int) -> int:\n    global y\n    return y\n", "'global' here, which TorchScript does not have"},
        {"def f(x: int) -> int:\n    nonlocal y\n    return y\n", "'nonlocal' here, which TorchScript does not have"},
        {"def f(x: int) -> int:\n    yield x\n", "append to a list and return it"},
        {"def f(x: int) -> int:\n    return await g(x)\n", "torch.jit.fork and torch.jit.wait"},
        {"def f(x: int) -> int:\n    return (y := x)\n", "write the assignment on a separate line"},
        {"PI = 3.14\ndef f(x: float) -> float:\n    return x * PI\n", "a script has no global variables, pass the value"},
        {"PI: float = 3.14\ndef f(x: float) -> float:\n    return x * PI\n", "a script has no global variables"},
        {BASE "class B(A):\n    def g(self) -> int:\n        return 3\ndef f(x: int) -> int:\n    return B(x).g()\n",
         "B() has no __init__ and received 1 argument(s). In TorchScript, a class inherits nothing from 'A'"},
        {BASE "class B(A):\n    def __init__(self, x: int):\n        self.x = x\n"
         "def f(x: int) -> int:\n    return B(x).f()\n",
         "no attribute or method 'f'. In TorchScript, a class inherits nothing from 'A': write the needed members "
         "into 'B'"},
        {BASE "class B(A):\n    def __init__(self, x: int):\n        super().__init__(x)\n"
         "def f(x: int) -> int:\n    return B(x).x\n", "undefined value super. In TorchScript, a class inherits nothing from 'A'"},
        {"class C:\n    @staticmethod\n    def h(a: int, b: int) -> int:\n        return a + b\n"
         "def f(x: int) -> int:\n    return C.h(x, x, x)\n", "expected at most 2 argument(s) but received 3"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(opd_script_compile(wrong[i][0], NULL) == NULL);
        CHECK(strstr(opd_error_message(), "<--- HERE") != NULL && strstr(opd_error_message(), "line ") != NULL);
        CHECK_ERROR(OPD_ERROR_SCHEMA, wrong[i][1]);
    }
}
/* A class derived from another one has what it says itself; a static method of a module has no self. */
TEST(derived_classes_and_static_methods) {
    OPD_SCOPED;
    opd_value args[3], got;
    char type[20];
    opd_script *script = opd_script_compile(BASE
        "class B(A):\n    def __init__(self, x: int):\n        self.x = x + 1\n    def g(self) -> int:\n"
        "        return self.x\ndef f(x: int) -> int:\n    return B(x).g()\n", NULL);
    for (int i = 0; i < 3; i++) { args[i] = opd_value_int(i + 4); }
    CHECK_INT(opd_script_run(script, "f", args, 1, &got), 0);
    CHECK_INT(got.u.i, 5);
    opd_script_free(script);
    script = opd_script_compile("class M(torch.nn.Module):\n    @staticmethod\n    def h(a: int, b: float = 2.5) -> float:\n"
                                "        return a * b\n    def forward(self, x: int) -> float:\n"
                                "        return self.h(x) + M.h(x, 1.0)\n", NULL);
    CHECK_INT(opd_script_run(script, "forward", args, 1, &got), 0);
    CHECK(got.u.d == 14);
    CHECK_INT(opd_script_nargs(script, "h"), 2);
    CHECK_STR(opd_script_arg_name(script, "h", 0), "a");
    CHECK(opd_script_arg_name(script, "h", 2) == NULL);
    CHECK(opd_script_arg_type(script, "h", 1, type, sizeof type) == 5 && strcmp(type, "float") == 0);
    CHECK_INT(opd_script_run(script, "h", args, 1, &got), 0);
    CHECK(got.u.d == 10);
    CHECK_INT(opd_script_run(script, "h", args, 3, &got), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "h() takes 2 argument(s), but got 3");
    CHECK_INT(opd_script_run(script, "h", args, 0, &got), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "missing value for argument 'a'");
    opd_script_free(script);
    CHECK_OK();
}
/* tolist() gives what is written on its left, as numbers and lists of lists. */
/* A function that is not here is an error when it is reached, whatever stands beside what it would give. */
TEST(objects_that_sort_without_end_or_change_what_is_sorted) {
    static const char *const wrong[][2] = {
        {"class V(object):\n    def __init__(self, n: int):\n        self.n = n\n"
         "    def __lt__(self, o: \"V\") -> bool:\n        return self.less()\n"
         "    def less(self) -> bool:\n        x = [V(1), V(2)]\n        x.sort()\n        return True\n"
         "def f() -> int:\n    x = [V(2), V(1)]\n    x.sort()\n    return x[0].n\n", "sorts a list of its own class without end"},
        {"class V(object):\n    def __init__(self, n: int):\n        self.n = n\n"
         "        self.all = torch.jit.annotate(Dict[str, List[V]], {})\n"
         "    def __lt__(self, o: \"V\") -> bool:\n        self.all[\"x\"].pop()\n        return self.n < o.n\n"
         "def f() -> int:\n    x = [V(3), V(2), V(1), V(0)]\n    x[3].all[\"x\"] = x\n    x[1].all[\"x\"] = x\n"
         "    x[0].all[\"x\"] = x\n    x[2].all[\"x\"] = x\n    x.sort()\n    return x[0].n\n",
         "a list was changed while it was sorted"},
        {"class V(object):\n    def __init__(self, n: int):\n        self.n = n\n"
         "    def __lt__(self, o: int) -> bool:\n        return True\n"
         "def f() -> int:\n    x = [V(2), V(1)]\n    x.sort()\n    return x[0].n\n", "must define a __lt__ method"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        OPD_SCOPED;
        opd_value got;
        opd_script *script = opd_script_compile(wrong[i][0], NULL);
        CHECK_OK();
        CHECK(opd_script_run(script, "f", NULL, 0, &got) != 0);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, wrong[i][1]);
        opd_script_free(script);
    }
}
TEST(what_is_not_known_fails_when_it_is_reached) {
    OPD_SCOPED;
    static const char source[] =
        "def f(t: str, known: bool):\n    if known:\n        return [t, t.upper()]\n"
        "    d = {'a': 1, 'b': torch.not_here(t)}\n    u = t if known else torch.not_here(t)\n"
        "    return [t, torch.not_here(t), u]\n";
    opd_script *script = opd_script_compile(source, NULL);
    opd_value args[] = {opd_value_str("ab"), opd_value_bool(true)}, result;
    char text[100];
    CHECK_OR_RETURN(script != NULL);
    CHECK_INT(opd_script_run(script, "f", args, 2, &result), 0);
    CHECK_STR((opd_value_print(result, text, sizeof text), text), "[ab, AB]");
    args[1] = opd_value_bool(false);
    CHECK_INT(opd_script_run(script, "f", args, 2, &result), -1);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "there is no function aten::not_here");
    opd_script_free(script);
}
/* Lists that are of no type yet, several in one call. */
TEST(empty_lists_beside_each_other) {
    OPD_SCOPED;
    opd_script *script = opd_script_compile("def f(x: Tensor):\n    return torch.as_strided(x, [], [])\n", NULL);
    opd_value x = opd_value_tensor(opd_ones(OPD_INTS(2), OPD_FLOAT32)), result;
    CHECK_OR_RETURN(script != NULL);
    CHECK_INT(opd_script_run(script, "f", &x, 1, &result), 0);
    CHECK(result.tag == OPD_TAG_TENSOR && opd_ndim(result.u.t) == 0);
    opd_script_free(script);
}
/* A type that one side of an `if` declares is the variable's behind it; archives are written so. */
TEST(unions_that_one_side_declares) {
    OPD_SCOPED;
    static const char source[] =
        "def f(x: Tensor, k: int) -> Union[Tensor, List[int], int]:\n"
        "    if k > 1:\n        r : Union[Tensor, List[int], int] = k + 1\n"
        "    else:\n        if k > 0:\n            r0 : Union[Tensor, List[int]] = x + 1\n"
        "        else:\n            r0 = [k]\n        r = r0\n    return r\n";
    static const char *const want[] = {"[0]", " 2\n[ CPUFloatType{1} ]", "3"};
    opd_script *script = opd_script_compile(source, NULL);
    CHECK_OR_RETURN(script != NULL);
    for (int i = 0; i < 3; i++) {
        opd_value args[2] = {opd_value_tensor(opd_ones(OPD_INTS(1), OPD_FLOAT32)), opd_value_int(i)}, result;
        char text[100];
        CHECK_INT(opd_script_run(script, "f", args, 2, &result), 0);
        CHECK_STR((opd_value_print(result, text, sizeof text), text), want[i]);
    }
    opd_script_free(script);
}
/* Lists that are repeated in place; numbers and torch.nn.init's values written into tensors. */
TEST(what_is_repeated_and_written) {
    OPD_SCOPED;
    static const char source[] =
        "def f(x: Tensor, n: int):\n    l = [1, 2]\n    k = l\n    l *= n\n    e = [1.5]\n    e *= 0\n"
        "    y = x.clone()\n    y[0].copy_(n)\n    y[1].copy_(2.5)\n    torch._no_grad_fill_(x, 7.)\n"
        "    z = torch._no_grad_zero_(x.clone())\n    torch._no_grad_uniform_(z, 2., 2.)\n"
        "    return k, e, y, x, z, torch.broadcast_shapes([1, 2], [3, 1, 1])\n"
        "def g():\n    return torch.broadcast_shapes([2], [3])\n";
    opd_script *script = opd_script_compile(source, NULL);
    char text[300];
    CHECK_OR_RETURN(script != NULL);
    opd_value args[2] = {opd_value_tensor(opd_ones(OPD_INTS(2), OPD_FLOAT32)), opd_value_int(3)}, result;
    CHECK_INT(opd_script_run(script, "f", args, 2, &result), 0);
    CHECK_STR((opd_value_print(result, text, sizeof text), text),
              "([1, 2, 1, 2, 1, 2], [],  3.0000\n 2.5000\n[ CPUFloatType{2} ],  7\n 7\n[ CPUFloatType{2} ],  2\n 2\n"
              "[ CPUFloatType{2} ], [3, 1, 2])");
    CHECK_INT(opd_script_run(script, "g", NULL, 0, &result), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "must match the size of tensor b (3)");
    CHECK(opd_grad_mode_enabled());
    opd_script_free(script);
}
/* What tensors are asked for besides their sizes, with what PyTorch says. */
TEST(tensors_say_what_they_are) {
    OPD_SCOPED;
    static const char source[] =
        "def f(x: Tensor):\n    y = x.permute(0, 2, 3, 1)\n    z = y.contiguous().permute(0, 3, 1, 2)\n"
        "    last = torch.channels_last\n"
        "    asked = [x.is_contiguous(), y.is_contiguous(), z.is_contiguous(), x.is_contiguous(memory_format=last),\n"
        "             z.is_contiguous(memory_format=last), x[0].is_contiguous(memory_format=last)]\n"
        "    other = [x.is_leaf, x.is_signed(), x.byte().is_signed() if False else False, x.is_conj(), x.is_pinned()]\n"
        "    return asked, other, z.stride(), x.get_device(), torch.promote_types(4, 5), torch.can_cast(6, 4)\n"
        "def g(x: Tensor):\n    y = x.detach().clone().requires_grad_()\n    return y.requires_grad, x.requires_grad\n";
    opd_script *script = opd_script_compile(source, NULL);
    opd_value x = opd_value_tensor(opd_ones(OPD_INTS(2, 3, 4, 5), OPD_FLOAT32)), result;
    char text[200];
    CHECK_OR_RETURN(script != NULL);
    CHECK_INT(opd_script_run(script, "f", &x, 1, &result), 0);
    CHECK_STR((opd_value_print(result, text, sizeof text), text),
              "([True, False, False, False, True, False], [True, True, False, False, False], [60, 1, 15, 3], -1, 5, False)");
    CHECK_INT(opd_script_run(script, "g", &x, 1, &result), 0);
    CHECK_STR((opd_value_print(result, text, sizeof text), text), "(True, False)");
    opd_script_free(script);
}
/* A tuple whose parts have one type is indexed by what is known when it runs, as torch.lu in archives does. */
TEST(tuples_are_indexed_by_numbers_that_run) {
    OPD_SCOPED;
    static const char source[] =
        "def f(n: int):\n    t = (10, 20, 30)\n    r: List[int] = []\n"
        "    for i in range(n):\n        r.append(t[i])\n        r.append(t[-1 - i])\n    return r\n";
    opd_script *script = opd_script_compile(source, NULL);
    opd_value n = opd_value_int(2), result;
    char text[200];
    CHECK_OR_RETURN(script != NULL);
    CHECK_INT(opd_script_run(script, "f", &n, 1, &result), 0);
    CHECK_STR((opd_value_print(result, text, sizeof text), text), "[10, 30, 20, 20]");
    n = opd_value_int(4);
    CHECK(opd_script_run(script, "f", &n, 1, &result) == -1 && strstr(opd_error_message(), "out of range"));
    opd_error_clear();
    opd_script_free(script);
    CHECK(!opd_script_compile("def f(i: int):\n    t = (10, 'a')\n    return t[i]\n", NULL));
    CHECK(strstr(opd_error_message(), "tuple index must be a compile time constant if the elements have different types") != NULL);
    opd_error_clear();
    CHECK(!opd_script_compile("def f(i: str):\n    t = (10, 20)\n    return t[i]\n", NULL));
    CHECK(strstr(opd_error_message(), "tuple index must be an integer") != NULL);
    opd_error_clear();
}
TEST(tensors_say_what_they_are_made_of) {
    OPD_SCOPED;
    static const char source[] =
        "def f(x: Tensor):\n    z = x.conj()\n    last = torch.channels_last\n"
        "    e = torch.zeros([0, 3, 4, 5])\n"
        "    asked = [z.is_conj(), torch.imag(z).is_neg(), z.resolve_conj().is_conj(), x.is_neg(), x.is_inference()]\n"
        "    return asked, [e.is_contiguous(), e.is_contiguous(memory_format=last)]\n";
    opd_script *script = opd_script_compile(source, NULL);
    opd_value x = opd_value_tensor(opd_ones(OPD_INTS(2), OPD_COMPLEX64)), result;
    char text[200];
    CHECK_OR_RETURN(script != NULL);
    CHECK_INT(opd_script_run(script, "f", &x, 1, &result), 0);
    CHECK_STR((opd_value_print(result, text, sizeof text), text),
              "([True, True, False, False, False], [True, False])");
    OPD_INFERENCE_MODE(true) { x = opd_value_tensor(opd_ones(OPD_INTS(2), OPD_COMPLEX64)); }
    CHECK_INT(opd_script_run(script, "f", &x, 1, &result), 0);
    CHECK_STR((opd_value_print(result, text, sizeof text), text),
              "([True, True, False, False, True], [True, False])");
    opd_script_free(script);
}
TEST(tensors_become_lists) {
    OPD_SCOPED;
    static const char source[] =
        "def whole(x: Tensor) -> List[int]:\n    a: List[int] = x.tolist()\n    return a\n"
        "def rows(x: Tensor) -> Tuple[List[List[float]], float]:\n    a: List[List[float]] = x.tolist()\n"
        "    b = annotate(float, x[1, 0].tolist())\n    return a, b\n";
    opd_script *script = opd_script_compile(source, NULL);
    opd_value x = opd_value_tensor(opd_arange(opd_value_int(4), OPD_INT64)), result;
    char text[200];
    CHECK_OR_RETURN(script != NULL);
    CHECK_INT(opd_script_run(script, "whole", &x, 1, &result), 0);
    CHECK_STR((opd_value_print(result, text, sizeof text), text), "[0, 1, 2, 3]");
    x = opd_value_tensor(opd_reshape(x.u.t, OPD_INTS(2, 2)));
    CHECK_INT(opd_script_run(script, "whole", &x, 1, &result), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "dimension must match for tolist()");
    CHECK_INT(opd_script_run(script, "rows", &x, 1, &result), -1);
    CHECK_ERROR(OPD_ERROR_DTYPE, "element type must match for tolist(): float vs int64");
    x = opd_value_tensor(opd_to_dtype(x.u.t, OPD_FLOAT32));
    CHECK_INT(opd_script_run(script, "rows", &x, 1, &result), 0);
    CHECK_STR((opd_value_print(result, text, sizeof text), text), "([[0., 1.], [2., 3.]], 2.)");
    opd_script_free(script);
    CHECK(opd_script_compile("def f(x: Tensor):\n    return x.tolist()\n", NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_SCHEMA, "Expected type hint for result of tolist()");
}
/* Loads an archive of golden/scripts; NULL with an error. */
static opd_script *load_archive(const char *name) {
    static uint8_t bytes[20000];
    FILE *file = check_golden(name);
    if (!file) { return NULL; }
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    (void)fclose(file);
    return opd_script_from_bytes(bytes, size);
}
/* Enums, hooks, futures in lists, and lists that grow in place: of make_script_kinds.py, with what PyTorch gives. */
static void check_archive(const char *name, const char *want) {
    const float numbers[] = {1, 2};
    char text[1000];
    opd_value x = opd_value_tensor(opd_tensor_from(numbers, OPD_INTS(2), OPD_FLOAT32)), result;
    opd_script *script = load_archive(name);
    for (int i = 0; i < 2; i++) {
        CHECK_OR_RETURN(script != NULL);
        CHECK_INT(opd_script_run(script, NULL, &x, 1, &result), 0);
        CHECK_STR((opd_value_print(result, text, sizeof text), text), want);
        CHECK_INT(opd_script_save(script, "/tmp/opd_script_kinds.pt"), 0);
        opd_script_free(script);
        script = i == 0 ? opd_script_load("/tmp/opd_script_kinds.pt") : NULL;
    }
    (void)remove("/tmp/opd_script_kinds.pt");
}
TEST(archives_with_enums_and_hooks_run_and_are_saved) {
    OPD_SCOPED;
    check_archive("scripts/enums.pt", "( 4\n 5\n[ CPUFloatType{2} ], [RED, GREEN], True, slow)");
    check_archive("scripts/kinds.pt", "[ 0\n 0\n[ CPUFloatType{2} ],  2\n 4\n[ CPUFloatType{2} ],  4\n 8\n[ CPUFloatType{2} ], "
                  "6\n[ CPUFloatType{} ]]");
}
/* What an archive holds and what its text names are objects of their own, which are equal: `is` tells them apart. */
TEST(members_of_enums_in_archives_are_many_objects) {
    OPD_SCOPED;
    check_archive("scripts/same.pt", "[False, True, False, True, False, False, False, False, True, False, False, True, True, "
                  "True, True, True]");
}
/* A tuple without a name that is given for one with a name is of that class in what is returned. */
TEST(tuples_that_are_given_get_their_names) {
    OPD_SCOPED;
    static const char source[] = "class P(NamedTuple):\n    a: int\n    b: int\n"
        "def f(p: P, q: Optional[P]) -> Tuple[List[P], int]:\n    return [p, P(p.b, p.a)], p.b\n";
    opd_script *script = opd_script_compile(source, NULL);
    opd_value result;
    const opd_value pair[] = {opd_value_int(1), opd_value_int(2)};
    const opd_value tuple = opd_tuple_new(pair, 2), args[] = {tuple, tuple};
    CHECK_OR_RETURN(script != NULL);
    CHECK_INT(opd_script_run(script, "f", args, 2, &result), 0);
    CHECK_OK();
    const opd_value list = opd_list_at(result, 0);
    CHECK_INT(opd_list_count(list), 2);
    for (int i = 0; i < 2; i++) {
        const char *name = opd_object_class(opd_list_at(list, i));
        CHECK_STR(name ? name : "none", opd_object_class(opd_list_at(list, 1)));
    }
    CHECK(opd_object_class(tuple) == NULL);
    opd_script_free(script);
}
/* Texts that are not ASCII are constants of an archive, and so is what has them in it; functions of complex numbers. */
TEST(archives_with_words_of_all_kinds) {
    OPD_SCOPED;
    check_archive("scripts/words.pt", "[(\xc3\xbcn\xc3\xafz, [a, \xc3\xbc], (\xc3\xbc, 1), [(\xc3\xbc, 1), (b, 2)], 2, {1} {0} z, "
                  "False),   1.6113   0.3103\n  6.5822  10.2512\n  1.2825   0.5880\n  0.9235  -0.9415\n"
                  "  1.3390   0.1469\n  0.7506  -0.0474\n -1.0404   2.2732\n  3.6056   0.5880\n"
                  "[ CPUFloatType{8,2} ],  1\n 0\n[ CPUFloatType{2} ], [1, 2], [6, 7, 6, 9, 4], "
                  "[True, True, False, False, False]]");
}
/* Of make_old_scripts.py, with what PyTorch gives: an archive's operators do what its version says. */
TEST(archives_of_older_versions_do_what_they_did) {
    OPD_SCOPED;
    static const char same[] = "[ CPUFloatType{2} ],  3.5000\n 7.0000\n[ CPUFloatType{2} ],  0.5000\n 1.0000\n"
        "[ CPUFloatType{2} ],  0.1429\n 0.1429\n[ CPUFloatType{2} ],  2\n 4\n[ CPULongType{2} ],  3\n 3\n";
    static const char rest[] = "[ CPULongType{2} ],  2.5000\n[ CPUFloatType{1} ],  0.0000\n 0.5000\n 1.0000\n"
        "[ CPUFloatType{3} ],   1\n 10\n[ CPUFloatType{2} ]]";
    char text[1000];
    (void)snprintf(text, sizeof text, "[ 3\n 7\n[ CPULongType{2} ], -1\n-1\n[ CPULongType{2} ],%s[ CPUFloatType{2} ],"
                   "  3\n 3\n%s", strstr(same, "  3.5"), rest);
    check_archive("scripts/version_3.pt", text);
    (void)snprintf(text, sizeof text, "[ 3.5000\n 7.0000\n[ CPUFloatType{2} ], -1\n-1\n%s[ CPULongType{2} ],"
                   "  3\n 3\n%s", same, rest);
    check_archive("scripts/version_10.pt", text);
}
TEST(modules_are_chosen_by_number_and_by_name) {
    OPD_SCOPED;
    const float numbers[] = {1, 2};
    char text[300];
    opd_script *script = load_archive("scripts/choices.pt");
    CHECK_OR_RETURN(script != NULL);
    opd_value args[] = {opd_value_tensor(opd_tensor_from(numbers, OPD_INTS(2), OPD_FLOAT32)), opd_value_none(),
                        opd_value_str("one")}, result;
    CHECK_INT(opd_script_run(script, NULL, args, 1, &result), 0);
    CHECK_STR((opd_value_print(result, text, sizeof text), text), " 1100\n 1460\n[ CPUFloatType{2} ]");
    args[1] = opd_value_int(1);
    args[2] = opd_value_str("two");
    CHECK_INT(opd_script_run(script, NULL, args, 3, &result), 0);
    CHECK_STR((opd_value_print(result, text, sizeof text), text), " 1001.0000\n 2001.5000\n[ CPUFloatType{2} ]");
    args[1] = opd_value_int(3);
    CHECK_INT(opd_script_run(script, NULL, args, 3, &result), -1);
    CHECK_ERROR(OPD_ERROR_INDEX, "ModuleList has no module '3'");
    args[1] = opd_value_int(0);
    args[2] = opd_value_str("three");
    CHECK_INT(opd_script_run(script, NULL, args, 3, &result), -1);
    CHECK_ERROR(OPD_ERROR_INDEX, "ModuleDict has no module 'three'");
    opd_script_free(script);
}
TEST(regions_of_autocast_in_archives) {
    OPD_SCOPED;
    check_archive("scripts/autocast.pt", "[15, 6, 15, 6]");
    CHECK(!opd_autocast_enabled(OPD_CPU));
}
TEST(objects_with_a_state_of_their_own) {
    OPD_SCOPED;
    const float numbers[] = {1, 2};
    char text[200];
    opd_script_options options;
    memset(&options, 0, sizeof options);
    options.run_setstate = true;
    CHECK(!load_archive("scripts/states.pt"));
    CHECK_ERROR(OPD_ERROR_FORBIDDEN, "an object of __torch__.Own is restored by a method __setstate__ that calls aten::mul");
    opd_script *script = opd_script_load_with(check_path("golden/scripts/states.pt"), &options);
    CHECK_OR_RETURN(script != NULL);
    opd_value x = opd_value_tensor(opd_tensor_from(numbers, OPD_INTS(2), OPD_FLOAT32)), result;
    CHECK_INT(opd_script_run(script, NULL, &x, 1, &result), 0);
    CHECK_STR((opd_value_print(result, text, sizeof text), text), "( 6\n 8\n[ CPUFloatType{2} ], True, True)");
    x = opd_value_tensor(opd_zeros(OPD_INTS(2), OPD_FLOAT32));
    CHECK_INT(opd_script_run(script, NULL, &x, 1, &result), -1);
    CHECK_ERROR(OPD_ERROR_USER, "ValueError: no");
    CHECK(!opd_autocast_enabled(OPD_CPU));
    CHECK_INT(opd_script_save(script, "/tmp/opd_script_states.pt"), 0);
    opd_script_free(script);
    CHECK(!opd_script_load("/tmp/opd_script_states.pt"));
    CHECK_ERROR(OPD_ERROR_FORBIDDEN, "To let loading run code of the archive, set run_setstate");
    FILE *const file = fopen("/tmp/opd_script_states.pt", "rb");
    static char bytes[20000];
    const size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file) { (void)fclose(file); }
    CHECK(!opd_script_from_bytes(bytes, size));
    CHECK_ERROR(OPD_ERROR_FORBIDDEN, "set run_setstate of opd_script_load_with");
    script = opd_script_from_bytes_with(bytes, size, &options);      /* as __getstate__ and __setstate__ make it */
    (void)remove("/tmp/opd_script_states.pt");
    CHECK_OR_RETURN(script != NULL);
    x = opd_value_tensor(opd_tensor_from(numbers, OPD_INTS(2), OPD_FLOAT32));
    CHECK_INT(opd_script_run(script, NULL, &x, 1, &result), 0);
    CHECK_STR((opd_value_print(result, text, sizeof text), text), "(  9\n 13\n[ CPUFloatType{2} ], True, True)");
    opd_script_free(script);
}
/* A state may be a dict of the attributes' names.  A run that fails inside a region ends it, and with it the casts of
   weights that are kept for it. */
TEST(objects_with_a_state_by_name) {
    OPD_SCOPED;
    const float numbers[] = {1, 2};
    char text[200];
    opd_script_options options;
    memset(&options, 0, sizeof options);
    options.run_setstate = true;
    CHECK(!load_archive("scripts/named.pt"));
    CHECK_ERROR(OPD_ERROR_FORBIDDEN, "an object of __torch__.Scaled is restored by a method __setstate__ that calls aten::mul");
    opd_script *script = opd_script_load_with(check_path("golden/scripts/named.pt"), &options);
    CHECK_OR_RETURN(script != NULL);
    opd_value x = opd_value_tensor(opd_tensor_from(numbers, OPD_INTS(2), OPD_FLOAT32)), result;
    CHECK_INT(opd_script_run(script, NULL, &x, 1, &result), 0);
    CHECK_STR((opd_value_print(result, text, sizeof text), text), " 30\n 60\n[ CPUFloatType{2} ]");
    CHECK_INT(opd_script_run(script, "over", &x, 1, &result), 0);
    CHECK_STR((opd_value_print(result, text, sizeof text), text), " 1\n 1\n[ CPUFloatType{2} ]");
    x = opd_value_tensor(opd_zeros(OPD_INTS(2), OPD_FLOAT32));
    for (int i = 0; i < 2; i++) {
        opd_scope scope = opd_scope_open();
        const int64_t live = opd_memory_stats().live;
        CHECK_INT(opd_script_run(script, NULL, &x, 1, &result), -1);
        CHECK_ERROR(OPD_ERROR_USER, "ValueError: no");
        CHECK(!opd_autocast_enabled(OPD_CPU));
        opd_scope_close(&scope);
        CHECK_INT(opd_memory_stats().live, live);
    }
    opd_script_free(script);
}
TEST(overloads_that_are_rarely_chosen) {
    OPD_SCOPED;
    check_archive("scripts/odds.pt", "[ 1\n 0\n 2\n[ CPUFloatType{3} ],  1\n 2\n[ CPULongType{2} ], 0\n[ CPUFloatType{} ],"
                  " 2.2360680103302002\n[ CPUFloatType{} ], 1.0986123085021973\n[ CPUFloatType{} ]]");
}
/* What PyTorch gives: inputs are rounded to 128 steps, weights have 8 bits. */
TEST(quantized_layers_of_archives) {
    OPD_SCOPED;
    const float numbers[] = {1, 2};
    char text[300];
    opd_value x = opd_value_tensor(opd_tensor_from(numbers, OPD_INTS(2), OPD_FLOAT32)), result;
    opd_script *script = load_archive("scripts/quantized.pt");
    CHECK_OR_RETURN(script != NULL);
    CHECK_INT(opd_script_run(script, NULL, &x, 1, &result), 0);
    CHECK_STR((opd_value_print(result, text, sizeof text), text), "-0.3025 -0.0779\n-1.3999  1.2727\n[ CPUFloatType{2,2} ]");
    CHECK(opd_script_save(script, "/tmp/opd_script_kinds.pt") == -1);
    CHECK(strstr(opd_error_message(), "LinearPackedParamsBase cannot be saved: its class is not known") != NULL);
    opd_error_clear();
    x = opd_value_tensor(opd_to_dtype(x.u.t, OPD_FLOAT64));
    CHECK(opd_script_run(script, NULL, &x, 1, &result) == -1 && strstr(opd_error_message(), "X must be float32"));
    opd_error_clear();
    x = opd_value_tensor(opd_full(OPD_INTS(3), opd_value_double(1), OPD_FLOAT32));
    CHECK(opd_script_run(script, NULL, &x, 1, &result) == -1 && strstr(opd_error_message(), "2 elements in the last"));
    opd_error_clear();
    x = opd_value_tensor(opd_full(OPD_INTS(2), opd_value_double(INFINITY), OPD_FLOAT32));
    CHECK(opd_script_run(script, NULL, &x, 1, &result) == -1 && strstr(opd_error_message(), "not finite"));
    opd_error_clear();
    opd_script_free(script);
}
TEST(enums_of_sources) {
    OPD_SCOPED;
    static const char source[] = "from enum import Enum\nclass Color(Enum):\n    RED = 1\n    GREEN = 2\n"
        "def f(n: int) -> Tuple[int, str, bool]:\n    c = Color.RED if n == 1 else Color.GREEN\n"
        "    total = 0\n    for k in Color:\n        total += k.value\n    return total, c.name, c != Color.RED\n";
    opd_value n = opd_value_int(2), result;
    char text[100];
    opd_script *script = opd_script_compile(source, NULL);
    CHECK_OR_RETURN(script != NULL);
    CHECK_INT(opd_script_run(script, "f", &n, 1, &result), 0);
    CHECK_STR((opd_value_print(result, text, sizeof text), text), "(3, GREEN, True)");
    opd_script_free(script);
    CHECK(opd_script_compile("class C(Enum):\n    A = 1\n    B = 'x'\n", NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_SCHEMA, "the values of an enum must have the same type");
    CHECK(opd_script_compile("class C(Enum):\n    A = [1]\n", NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_SCHEMA, "the values of an enum must be numbers or strings");
    CHECK(opd_script_compile("class C(Enum):\n    A = 1\ndef f() -> int:\n    c = C.A\n    c.value = 3\n"
                             "    return C.A.value\n", NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_SCHEMA, "a member of an enum cannot be changed");
    CHECK(opd_script_compile("class C(Enum):\n    A = 1\ndef f() -> int:\n    return C(1).value\n", NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_SCHEMA, "cannot be called: use a member");
}
/* A member of an enum is one object for all who have it. */
TEST(members_of_enums_cannot_be_changed) {
    OPD_SCOPED;
    opd_value member;
    opd_script *script = opd_script_compile("class C(Enum):\n    A = 1\ndef f() -> C:\n    return C.A\n", NULL);
    CHECK_OR_RETURN(script != NULL);
    CHECK_INT(opd_script_run(script, "f", NULL, 0, &member), 0);
    CHECK_INT(opd_object_set(member, "value", opd_value_int(2)), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "a member of an enum cannot be changed");
    CHECK_INT(opd_object_get(member, "value").u.i, 1);
    opd_script_free(script);
}
/* fft is a module of torch, and a function of that. */
TEST(a_function_named_as_its_module) {
    OPD_SCOPED;
    static const char source[] = "def f(x):\n    return torch.fft.fft(x) - torch.fft.ifft(x) * 4\n";
    opd_script *script = opd_script_compile(source, "fft.py");
    opd_value arg = opd_value_tensor(opd_ones(OPD_INTS(4), OPD_FLOAT32)), out;
    CHECK_OK();
    CHECK_OR_RETURN(script != NULL);
    CHECK(opd_script_run(script, "f", &arg, 1, &out) == 0);
    CHECK(out.tag == OPD_TAG_TENSOR && opd_item_f64(opd_max(opd_abs(out.u.t))) == 0);
    opd_script_free(script);
}
/* How many dims a convolution's result has is known, unless something in place gives it others.  Attributes that nobody
   reads are not in the graph. */
TEST(functions_that_are_called_are_simplified_without_harm) {
    OPD_SCOPED;
    static const char source[] =
        "def known(x: Tensor, w: Tensor) -> int:\n    x = torch.conv2d(x, w)\n    return x.dim()\n"
        "def written(x: Tensor, w: Tensor) -> int:\n    x = torch.conv2d(x, w)\n    x.unsqueeze_(0)\n"
        "    return x.dim()\n"
        "def dims(x: Tensor, w: Tensor) -> Tuple[int, int]:\n    return known(x, w), written(x, w)\n"
        "class Pair:\n    def __init__(self, a: int):\n        self.a = a\n"
        "def unread(n: int) -> int:\n    pair = Pair(n)\n    a = pair.a\n    return n\n";
    opd_value args[] = {opd_value_tensor(opd_ones(OPD_INTS(1, 2, 3, 3), OPD_FLOAT32)),
                        opd_value_tensor(opd_ones(OPD_INTS(1, 2, 2, 2), OPD_FLOAT32))}, result;
    char text[2000];
    opd_script *script = opd_script_compile(source, NULL);
    CHECK_OR_RETURN(script != NULL);
    CHECK_INT(opd_script_run(script, "dims", args, 2, &result), 0);
    CHECK_STR((opd_value_print(result, text, sizeof text), text), "(4, 5)");
    (void)opd_graph_print(opd_script_graph(script, "unread"), text, sizeof text);
    CHECK(strstr(text, "prim::SetAttr") != NULL && strstr(text, "prim::GetAttr") == NULL);
    opd_script_free(script);
}
static int load_and_run(void *user) {
    const float numbers[] = {1, 2};
    opd_value x = opd_value_tensor(opd_tensor_from(numbers, OPD_INTS(2), OPD_FLOAT32)), result;
    opd_script *script = load_archive((const char *)user);
    const int rc = script ? opd_script_run(script, NULL, &x, 1, &result) : -1;
    opd_script_free(script);
    return rc;
}
static int compile_control(void *user) {
    (void)user;
    opd_script *script = opd_script_compile(control, NULL);
    opd_script_free(script);
    return script ? 0 : -1;
}
static const char sorting[] =
    "class V(object):\n    def __init__(self, n: int):\n        self.n = n\n"
    "    def __lt__(self, o: \"V\") -> bool:\n        return self.n < o.n\n"
    "def f(n: int) -> int:\n    x = [V(3), V(n), V(2)]\n    x.sort()\n    return sorted(x)[0].n\n";
static int sort_objects(void *user) {
    OPD_SCOPED;
    opd_value n = opd_value_int(1), got = opd_value_none();
    opd_script *script = opd_script_compile(sorting, "sorting.py");
    (void)user;
    const int rc = script ? opd_script_run(script, "f", &n, 1, &got) : -1;
    CHECK(rc || got.u.i == 1);
    opd_script_free(script);
    return rc;
}
TEST(every_allocation_may_fail) {
    OPD_SCOPED;
    CHECK(check_allocations_at(compile_control, NULL, "scripts", 4000, false, __FILE__, __LINE__) > 1);
    CHECK(check_allocations_at(sort_objects, NULL, "objects", 4000, false, __FILE__, __LINE__) > 1);
    CHECK(check_allocations_at(load_and_run, (void *)(uintptr_t)"scripts/enums.pt", "enums", 4000, false, __FILE__,
                               __LINE__) > 1);
}
TEST(nested_lists_of_other_lengths) {
    OPD_SCOPED;
    opd_value result;
    opd_script *script = opd_script_compile("def f() -> Tensor:\n    return torch.tensor([[1, 2], [3]])\n"
                                            "def g() -> Tensor:\n    return torch.tensor([[[1], [2]], [[3], [4, 5]]])\n", NULL);
    CHECK_INT(opd_script_run(script, "f", NULL, 0, &result), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Expected a list of 2 elements at dim 1, as in the lists before, but got a list of 1");
    CHECK_INT(opd_script_run(script, "g", NULL, 0, &result), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Expected a list of 1 elements at dim 2, as in the lists before, but got a list of 2");
    opd_script_free(script);
}
/* Links of a chain are compiled one after another, and so are the branches of an `elif`. */
TEST(long_chains) {
    static char source[200000];
    OPD_SCOPED;
    char *at = source + sprintf(source, "def f(x: Tensor, k: int):\n    if k < 0:\n        return x\n");
    for (int i = 0; i < 2000; i++) { at += sprintf(at, "    elif k == %d:\n        y = x + %d\n", i, i); }
    at += sprintf(at, "    else:\n        y = x\n    return y");
    for (int i = 0; i < 3000; i++) { at += sprintf(at, ".relu()"); }
    for (int i = 0; i < 1000; i++) { at += sprintf(at, "[0:].T"); }
    opd_script *script = opd_script_compile(source, NULL);
    CHECK_OR_RETURN(script != NULL);
    const int64_t tried[] = {-1, 0, 1000, 1999, 2000}, wanted[] = {-3, 0, 997, 1996, 0};
    for (int i = 0; i < 5; i++) {
        opd_value in[2], result = opd_value_none();
        in[0] = opd_value_tensor(opd_full(OPD_INTS(1), opd_value_double(-3), OPD_FLOAT32));
        in[1] = opd_value_int(tried[i]);
        CHECK_INT(opd_script_run(script, "f", in, 2, &result), 0);
        CHECK_NEAR(opd_item_f64(result.u.t), wanted[i], 0);
    }
    opd_script_free(script);
}
CHECK_MAIN()
