#include "lean.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>definitions  defining operators by operator descriptors and C functions
//
//  Splits an operator descriptor (opd_op_desc) into the schema, a registration for each kernel, and the in-place and
//  out= forms.  These forms are derived from the functional operator, which writes no argument.  This section uses the
//  registry.
//----------------------------------------------------------------------------------------------------------------------

//== C functions =======================================================================================================

/* Sets argument number `arg` as the next result of the call.  If it is a list of lists of tensors, these tensors still
   belong to the caller.  Returns 0, or -1 and sets an error. */

/* Checks the signature of a C function.  Returns 0, or -1 and sets an error.  If operators cannot have one of its
   types, the error names the type to use instead (c10/core/op_registration/infer_schema.h). */
static int opdi_function_check(const opd_function *function, const char *what) {
    if (!function || !function->kernel || !function->signature || strlen(function->signature) > 9) {
        return opd_fail(OPD_ERROR_REGISTER, "%s: the function is NULL or has no signature", what);
    }
    for (const char *at = function->signature; *at; at++) {
        const char *found = strchr(at == function->signature ? "TidbsLVv" : "TidbsDIFLV", *at);
        if (found) { continue; }
        return opd_fail(OPD_ERROR_REGISTER, "%s: INVALID TYPE in %s %d: %s", what, at == function->signature ? "return"
                        : "argument", at == function->signature ? 1 : (int)(at - function->signature), *at == 'f'
                        ? "float is not supported as an argument type, use double instead" : strchr("nlu", *at)
                        ? "Only int64_t and bool are supported as an integral argument type, use int64_t instead"
                        : "operators cannot have this type, use double, int64_t, bool, const char *, opd_tensor *, "
                        "opd_device, opd_ints, opd_doubles, opd_tensors or opd_value");
    }
    return 0;
}

/* Defines an operator by a name or schema and a C function, which becomes its composite kernel.  Returns 0, or -1 and
   sets an error, with nothing defined. */
static int opdi_def_function(opd_library *lib, const char *name, const opd_function *function) {
    const opdi_registration *before = lib->registrations;
    const opd_def_options options = {0, strchr(name, '(') ? OPD_ALIAS_FROM_SCHEMA : OPD_ALIAS_CONSERVATIVE, 0};
    char inferred[300], text[700];
    if (opdi_function_check(function, name)) { return opdi_library_error(lib); }
    (void)snprintf(text, sizeof text, "%s%s", name,
                   strchr(name, '(') ? "" : opdi_inferred_print(function->signature, inferred, sizeof inferred));
    const opd_op *op = opdi_def_text(lib, text, &options);
    if (!op) { return -1; }
    if (opdi_impl_typed(lib, op->name, OPD_KEY_COMPOSITE_IMPLICIT, function->kernel, NULL, NULL, function->signature)) {
        opdi_library_undo(lib, before);
        return opdi_library_error(lib);
    }
    return 0;
}

int opd_def_function(opd_library *lib, const char *name_or_schema, const opd_function *function) {
    if (!opdi_library_defines(lib, "opd_def_function")) { return -1; }
    if (!name_or_schema) { return opd_fail(OPD_ERROR_REGISTER, "opd_def_function: the name is NULL"); }
    return opdi_def_function(lib, name_or_schema, function);
}

int opd_impl_function(opd_library *lib, const char *name, const char *key, const opd_function *function) {
    if (!opdi_library_usable(lib, "opd_impl_function")) { return -1; }
    if (opdi_function_check(function, name ? name : "NULL") ||
        opdi_impl_checked(lib, name, key, function->kernel, NULL, NULL, function->signature)) {
        return opdi_library_error(lib);
    }
    return 0;
}

/* Returns true if a program may replace the built-in fallback `kernel`, because PyTorch has no fallback at this key. */
static bool opdi_fallback_yields(const opdi_kernel *kernel) {
    const int backend = opdi_key_backend(kernel->key), functionality = opdi_key_functionality(kernel->key);
    return !kernel->next &&
        (functionality == OPD_F_AUTOGRAD_NESTED_TENSOR ||
         ((functionality == OPD_F_AUTOGRAD || functionality == OPD_F_AUTOCAST) &&
          (backend == OPD_HIP || backend == OPD_IPU || backend == OPD_VE ||
           (backend >= OPD_PRIVATEUSE1 && backend <= OPD_PRIVATEUSE3))));
}

/* Registers a fallback at one runtime key.  Returns 0, or -1 and sets an error, also if the key already has a fallback
   that may not be replaced. */
OPDI_INTERNAL int opdi_fallback_at(opd_library *lib, opd_key key, opd_kernel fn) {
    opdi_registration *registration = opdi_registration_new(lib, 2, key, fn);
    opdi_kernel *kernel = registration ? registration->kernel : NULL, *other = NULL;
    char places[2][300];
    if (!kernel) { return -1; }
    opdi_lock(&opdi_registry.lock);
    other = opdi_registry.fallbacks[key];
    if (other && opdi_registry.aten && opdi_fallback_yields(other)) {
        kernel->next = other;
        other = NULL;
    }
    if (!other) {
        opdi_registry.fallbacks[key] = kernel;
        opdi_registration_add(lib, registration);
        opdi_tables_retire_all();
    } else {
        (void)opdi_place_text(other->place, places[0], sizeof places[0]);
    }
    opdi_unlock(&opdi_registry.lock);
    if (!other) { return 0; }
    opdi_registration_free(registration);
    return opd_fail(OPD_ERROR_REGISTER, "Tried to register multiple backend fallbacks for the same dispatch key %s; "
                    "previous registration %s, new registration %s", opd_key_name(key), places[0],
                    opdi_place_text(lib->place, places[1], sizeof places[1]));
}

/* Checks the library of a fallback and registers the fallback at the library's key or, for an alias key, at each key
   that the alias key stands for.  Returns 0, or -1 and sets an error. */
static int opdi_fallback_checked(opd_library *lib, opd_kernel kernel) {
    uint8_t slots[OPD_KEY_SLOTS];
    const opdi_registration *before = lib->registrations;
    if (lib->kind != OPD_IMPL) {
        return opd_fail(OPD_ERROR_REGISTER, "opd_fallback: Cannot define an operator inside of a %s block. Did you "
                        "mean to call this function inside an OPD_LIBRARY_IMPL block?", opdi_kind_names[lib->kind]);
    }
    if (strcmp(lib->ns, "_") != 0) {
        return opd_fail(OPD_ERROR_REGISTER, "Fallback functions which apply to only a single namespace (you "
                        "specified %s) are not supported. If you intended to apply this fallback function globally, "
                        "please define a separate block: OPD_LIBRARY_IMPL(_, %s, lib) { opd_fallback(lib, ...); }",
                        lib->ns, lib->key == OPD_KEY_INVALID ? "KEY" : opd_key_name(lib->key));
    }
    if (lib->key == OPD_KEY_INVALID || !kernel) {
        return opd_fail(OPD_ERROR_REGISTER,
                        "opd_fallback: the block needs a dispatch key and the kernel must not be NULL");
    }
    if (lib->key < OPD_KEY_SLOTS) { return opdi_fallback_at(lib, lib->key, kernel); }
    memset(slots, 0, sizeof slots);
    opdi_key_expand(lib->key, slots);
    for (int i = 0; i < OPD_KEY_SLOTS; i++) {
        if (slots[i] && opdi_fallback_at(lib, i, kernel)) {
            opdi_library_undo(lib, before);
            return -1;
        }
    }
    return 0;
}

int opd_fallback(opd_library *lib, opd_kernel kernel) {
    if (!opdi_library_usable(lib, "opd_fallback")) { return -1; }
    return opdi_fallback_checked(lib, kernel) ? opdi_library_error(lib) : 0;
}

//== operator descriptors ==============================================================================================

/* Returns the index of the result that an entry of `save` names ("result", "result1", or the result's name in the
   schema), or -1. */
static int opdi_result_index(const opd_schema *schema, const char *name, size_t length) {
    for (int i = 0; i < schema->nreturns; i++) {
        if (length > 0 && strlen(schema->returns[i].name) == length && strncmp(schema->returns[i].name, name,
                length) == 0) {
            return i;
        }
    }
    if (length < 6 || strncmp(name, "result", 6) != 0) { return -1; }
    int i = length == 6 ? 0 : length == 7 ? name[6] - '0' : -1;
    return i >= 0 && i < schema->nreturns ? i : -1;
}

/* Moves *p past the comma, to the next name of a list.  Returns 0, or -1 and sets an error if the comma is missing. */
static int opdi_card_next(const char **p, const opd_schema *schema, const char *what) {
    *p += strspn(*p, " ");
    if (**p && **p != ',') {
        return opd_fail(OPD_ERROR_REGISTER, "%s: %s: a comma is missing before '%s'", schema->name, what, *p);
    }
    *p += strspn(*p, ", ");
    return 0;
}

/* Parses the field `save` of a descriptor, such as "self, weight.sizes, other(self), result".  The names are the
   schema's names.  ".sizes" after a name saves only the sizes and the dtype.  A name in brackets is a condition: save
   only if the gradient of that argument is needed.  Returns 0, or -1 and sets an error. */
static int opdi_card_save(opdi_card *card, const opd_schema *schema) {
    const char *at = card->desc.save ? card->desc.save : "";
    while (*at) {
        size_t length = strcspn(at, "(, ");
        const bool sizes = length > 6 && strncmp(at + length - 6, ".sizes", 6) == 0;
        const size_t name = length - (sizes ? 6 : 0);
        int arg = opdi_arg_index(schema, at, name), result = arg < 0 && !sizes ? opdi_result_index(schema, at, length)
            : -1;
        if (arg >= 0) { card->save_args |= (uint64_t)1 << arg; }
        else if (result >= 0) { card->save_results |= 1u << result; }
        if (sizes && arg >= 0) { card->save_sizes |= (uint64_t)1 << arg; }
        if (arg < 0 && result < 0) {
            return opd_fail(OPD_ERROR_REGISTER, "%s: `save` names '%.*s', which is neither an argument nor a result of "
                            "the schema", schema->name, (int)length, at);
        }
        at += length;
        if (*at == '(') {
            length = strcspn(++at, ")");
            int wanted = opdi_arg_index(schema, at, length);
            if (wanted < 0) {
                return opd_fail(OPD_ERROR_REGISTER, "%s: `save` has '(%.*s)', but the schema has no such argument",
                                schema->name, (int)length, at);
            }
            if (arg >= 0) { card->save_if[arg] = (int8_t)wanted; }
            else { card->save_result_if[result] = (int8_t)wanted; }
            at += length + (at[length] == ')');
        }
        if (opdi_card_next(&at, schema, "save")) { return -1; }
    }
    return 0;
}

/* Parses the field `constant` of a descriptor, such as "weight, total_weight": the arguments and results without a
   derivative.  Returns 0, or -1 and sets an error. */
static int opdi_card_constant(opdi_card *card, const opd_schema *schema) {
    const char *at = card->desc.constant ? card->desc.constant : "";
    while (*at) {
        size_t length = strcspn(at, ", ");
        int arg = opdi_arg_index(schema, at, length), result = arg < 0 ? opdi_result_index(schema, at, length) : -1;
        if (arg >= 0) { card->constant_args |= (uint64_t)1 << arg; }
        else if (result >= 0) { card->constant_results |= 1u << result; }
        else {
            return opd_fail(OPD_ERROR_REGISTER, "%s: `constant` names '%.*s', which is neither an argument nor a "
                            "result of the schema", schema->name, (int)length, at);
        }
        at += length;
        if (opdi_card_next(&at, schema, "constant")) { return -1; }
    }
    return 0;
}

/* Writes the name of an operator's autograd node to out: "native_layer_norm" gives "NativeLayerNormBackward0". */
static void opdi_node_name(const char *op, char *out, size_t cap) {
    size_t count = 0;
    bool up = true;
    for (; *op && count + 11 < cap; op++) {
        if (*op == '_') {
            up = true;
            continue;
        }
        out[count++] = (char)(up && *op >= 'a' && *op <= 'z' ? *op - 'a' + 'A' : *op);
        up = false;
    }
    strcpy(out + count, "Backward0");
}

/* Sets the parts of a descriptor that depend on its operator: the names of nodes, the backward functions, and which
   arguments are tensors. */
static void opdi_card_init(opdi_card *card, opd_op *op) {
    card->op = op;
    memset(card->save_if, -1, sizeof card->save_if);
    memset(card->save_result_if, -1, sizeof card->save_result_if);
    opdi_node_name(op->schema->name, card->node_name, sizeof card->node_name);
    card->formula.name = card->node_name;
    card->missing.name = "NotImplemented";
    card->warning.name = "WarnNotImplemented";
    card->formula.fn = card->desc.backward;
    card->missing.fn = opdi_missing_formula;
    card->warning.fn = opdi_warn_formula;
    card->formula.card = card->missing.card = card->warning.card = card;
    card->formula.context = card->desc.setup_context != NULL;
    card->formula.once = card->desc.once_differentiable;
    card->formula.fresh = op->written_args == 0;
    card->formula.real = card->desc.backward && !card->desc.setup_context && !card->desc.once_differentiable &&
        !(card->desc.tags & OPDI_OPTAG_CONJUGATES) && card->desc.jvp != opd_jvp_linear &&
        strncmp(op->name, "aten::", 6) == 0;
    card->nargs = op->nargs;
    card->tensor_args = op->tensor_args;
    card->list_args = op->list_args;
}

/* Determines which values the nodes of a descriptor keep, and in which order: arguments that are not tensors, lists
   (for their length), and the values that `save` names.  Also determines the edge of each argument. */
static void opdi_card_layout(opdi_card *card) {
    uint64_t all = card->nargs == 64 ? ~(uint64_t)0 : ((uint64_t)1 << card->nargs) - 1;
    card->kept_args = (all & ~card->tensor_args) | card->save_args;
    for (int i = 0; i < OPD_MAX_ARGS; i++) {
        const uint64_t bit = (uint64_t)1 << i;
        card->kept_at[i] = (int8_t)(card->kept_args & bit ? opdi_popcount(card->kept_args & (bit - 1)) : -1);
        card->edge_at[i] = (int8_t)(card->list_args ? OPDI_EDGE_COUNTED
                                    : card->tensor_args & bit ? opdi_popcount(card->tensor_args & (bit - 1)) : -1);
    }
    card->nkept = (uint8_t)opdi_popcount(card->kept_args);
    card->nresults = (uint8_t)opdi_popcount(card->save_results);
}

/* Returns true if the nodes of both descriptors have the same layout. */
static bool opdi_card_same_layout(const opdi_card *card, const opdi_card *other) {
    return card->nargs == other->nargs && card->tensor_args == other->tensor_args &&
        card->list_args == other->list_args && card->kept_args == other->kept_args;
}

/* Returns a descriptor of an earlier, undone definition of the operator that equals `card`, or NULL.  Descriptors are
   reused, so that memory does not grow if a program defines and undefines an operator in a loop. */
static opdi_card *opdi_card_known(const opdi_card *card) {
    opdi_card *known;
    for (known = card->op->cards; known; known = known->next) {
        if (known->base == card->base && known->inplace == card->inplace && known->save_args == card->save_args &&
            known->save_results == card->save_results && known->constant_args == card->constant_args &&
            known->constant_results == card->constant_results && opdi_card_same_layout(known, card) &&
            memcmp(&known->desc, &card->desc, sizeof known->desc) == 0 &&
            memcmp(known->save_if, card->save_if, sizeof known->save_if) == 0 &&
            memcmp(known->save_result_if, card->save_result_if, sizeof known->save_result_if) == 0 &&
            memcmp(known->map, card->map, sizeof known->map) == 0) {
            break;
        }
    }
    return known;
}

/* Makes the opdi_card of an operator that was just defined.  `base` and `inplace` are for a derived form.  If `own` is
   true, the opdi_card becomes the operator's descriptor; otherwise only one kernel at Autograd uses it.  Returns NULL
   and sets an error if that fails. */
OPDI_INTERNAL opdi_card *opdi_card_new(opd_op *op, const opd_op_desc *desc, opdi_card *base, bool inplace, bool own) {
    opdi_card *card = (opdi_card *)opdi_alloc(sizeof *card);
    if (!card) { return NULL; }
    memset(card, 0, sizeof *card);
    card->desc = *desc;
    card->with_user = desc->user != NULL;
    card->desc.user = NULL;                       /* the kernels own the user pointer, and `card` outlives them */
    card->desc.destroy = NULL;
    card->base = base;
    card->inplace = inplace;
    opdi_card_init(card, op);
    if (opdi_card_save(card, op->schema) || opdi_card_constant(card, op->schema)) {
        opdi_free(card, sizeof *card);
        return NULL;
    }
    opdi_card_layout(card);
    for (int i = 0; base && i < base->op->nargs; i++) {
        const char *first = base->op->schema->args[i].name;
        card->map[i] = (int8_t)opdi_arg_index(op->schema, first, strlen(first));
    }
    opdi_lock(&opdi_registry.lock);
    card->formula.plugin = opdi_plugin_at(desc->backward ? (uintptr_t)desc->backward
                                          : (uintptr_t)op->definition->lib->file);
    card->missing.plugin = card->warning.plugin = card->formula.plugin;
    opdi_card *known = opdi_card_known(card);
    if (known) {
        opdi_free(card, sizeof *card);
        card = known;
    } else {
        card->next = op->cards;
        op->cards = card;
    }
    if (own) {
        OPDI_PUBLISH(&op->card, card);
        opdi_overloads_changed(op);
    }
    opdi_unlock(&opdi_registry.lock);
    return card;
}

/* Returns an opdi_card for an operator that was defined without a descriptor.  Nodes of such an opdi_card only report
   that there is no backward function.  Such an opdi_card is kept for each layout of arguments that the operator has
   had.  Returns NULL and sets an error if that fails. */
OPDI_INTERNAL opdi_card *opdi_bare_card(opd_op *op) {
    opdi_card *card = (opdi_card *)opdi_alloc(sizeof *card), *known;
    if (!card) { return NULL; }
    memset(card, 0, sizeof *card);
    opdi_lock(&opdi_registry.lock);
    if (!op->definition) {
        opdi_unlock(&opdi_registry.lock);
        opdi_free(card, sizeof *card);
        (void)opdi_undefined_error(op);
        return NULL;
    }
    opdi_card_init(card, op);
    opdi_card_layout(card);
    for (known = op->bare; known && !opdi_card_same_layout(known, card); known = known->next) { }
    if (!known) {
        card->next = op->bare;
        op->bare = card;
    }
    opdi_unlock(&opdi_registry.lock);
    if (known) { opdi_free(card, sizeof *card); }
    return known ? known : card;
}

/* Appends a formatted text to text[cap], whose length is `length`.  Returns the new length, which may be larger than
   `cap`. */
OPD_PRINTF_LIKE(4, 5) static size_t opdi_schema_add(char *text, size_t cap, size_t length, const char *format, ...) {
    va_list list;
    if (length >= cap) { return length; }
    va_start(list, format);
    const int count = vsnprintf(text + length, cap - length, format, list);
    va_end(list);
    return count < 0 ? cap : length + (size_t)count;
}

/* Returns true if `name` is one of the options (dtype, layout, device, pin_memory) of operators that make tensors.  An
   out argument determines all of them. */
static bool opdi_is_option(const char *name) {
    return strcmp(name, "dtype") == 0 || strcmp(name, "layout") == 0 || strcmp(name, "device") == 0 ||
        strcmp(name, "pin_memory") == 0;
}

/* Appends the out arguments of an out= form, such as "Tensor(a!) values, Tensor(b!) indices", and its results, to text.
   Results have the names that they have in the functional schema.  `names` is "(values, indices)", or "" for one
   argument called out.  Returns the new length. */
static size_t opdi_outs_add(char *text, size_t cap, size_t length, const opd_schema *schema, const char *names) {
    const bool list = schema->nreturns == 1 && schema->returns[0].type->kind == OPDI_TYPE_LIST;
    const char *at = *names ? names + 1 : "out)";
    int count = 0;
    for (size_t n; (n = strcspn(at, ",)")) > 0 && count < 26; count++) {
        length = opdi_schema_add(text, cap, length, ", Tensor(%c!)%s %.*s", 'a' + count, list ? "[]" : "", (int)n, at);
        at += n + (at[n] == ',');
        at += strspn(at, " ");
    }
    length = opdi_schema_add(text, cap, length, ") -> %s", count == 1 && !list ? "" : "(");
    for (int i = 0; i < count && !list; i++) {
        const char *const name = count > 1 && i < schema->nreturns ? schema->returns[i].name : "";
        length = opdi_schema_add(text, cap, length, "%sTensor(%c!)%s%s", i ? ", " : "", 'a' + i,
                                 name && *name ? " " : "", name ? name : "");
    }
    return opdi_schema_add(text, cap, length, "%s", count == 1 && !list ? "" : ")");
}

/* Makes the schema of a derived form from a functional schema.  If `inplace` is true, self is written; otherwise out
   arguments follow the other arguments.  `name` is "add.out", or "sort.values(values, indices)" to name several out
   arguments.  If `name` is a whole schema, it is only parsed.  Returns NULL and sets an error if that fails. */
static opd_schema *opdi_derived_schema(const opd_library *lib, const opd_schema *schema, const char *name,
                                       bool inplace) {
    char text[1600], item[600];
    const size_t cap = sizeof text;
    size_t length = opdi_schema_add(text, cap, 0, "%.*s(", (int)strcspn(name, "("), name);
    bool star = false, first = true;
    int options = 0;
    const char *const names = strchr(name, '(');
    if (names && (strstr(name, "->") || inplace || names[1] == ')' || !strchr(names, ')'))) {
        return lib->parse(name, strlen(name), lib->ns, true);
    }
    for (int i = 0; !inplace && i < schema->nargs; i++) { options += opdi_is_option(schema->args[i].name); }
    for (int i = 0; i < schema->nargs; i++) {
        const opdi_arg *arg = &schema->args[i];
        if (options == 4 && opdi_is_option(arg->name)) { continue; }      /* the out argument has this option */
        (void)opdi_arg_print(arg, item, sizeof item);
        if (arg->keyword_only && !star) {
            star = true;
            length = opdi_schema_add(text, cap, length, "%s*", first ? "" : ", ");
            first = false;
        }
        length = inplace && i == 0 ? opdi_schema_add(text, cap, length, "Tensor(a!) %s", arg->name)
            : opdi_schema_add(text, cap, length, "%s%s", first ? "" : ", ", item);
        first = false;
    }
    if (inplace) { length = opdi_schema_add(text, cap, length, ") -> Tensor(a!)"); }
    else {
        length = opdi_schema_add(text, cap, length, "%s", star ? "" : first ? "*" : ", *");
        length = opdi_outs_add(text, cap, length, schema, names ? names : "");
    }
    if (length >= cap) {
        (void)opd_fail(OPD_ERROR_REGISTER, "the schema of %s is too long", name);
        return NULL;
    }
    return lib->parse(text, strlen(text), lib->ns, true);
}

/* Returns true if the form `own` writes one list of tensors and the functional schema returns one list. */
static bool opdi_derives_list(const opd_schema *schema, const opd_schema *own) {
    int lists = 0, written = 0;
    for (int i = 0; i < own->nargs; i++) {
        written += own->args[i].written;
        lists += own->args[i].written && own->args[i].type->kind == OPDI_TYPE_LIST;
    }
    return lists == 1 && written == 1 && own->nreturns == 0 && schema->nreturns == 1 &&
        schema->returns[0].type->kind == OPDI_TYPE_LIST;
}

/* Checks that the form `own` can be derived from `schema`.  The form must write one tensor for each result of `schema`,
   and must have every argument of `schema` that has no default, except dtype and device.  Returns 0, or -1 and sets an
   error. */
static int opdi_derive_check(const opd_schema *schema, const opd_schema *own, const char *name, bool inplace) {
    int k, written = 0;
    const char *why = NULL;
    const bool list = !inplace && opdi_derives_list(schema, own);
    for (int i = 0; i < own->nargs; i++) {
        if (!own->args[i].written) { continue; }
        written++;
        if (own->args[i].type->kind != OPDI_TYPE_TENSOR && !list) { why = "arguments that it writes must be Tensors"; }
    }
    if (written != schema->nreturns || (inplace && written != 1)) { why = "it must write a tensor for each result"; }
    if (inplace && (schema->nargs < 1 || schema->args[0].type->kind != OPDI_TYPE_TENSOR)) {
        why = "the first argument must be a Tensor";
    }
    for (int i = 0; i < schema->nreturns; i++) {
        if (schema->returns[i].type->kind != OPDI_TYPE_TENSOR && !list) { why = "results must be Tensors"; }
    }
    for (int i = 0; i < schema->nargs && !why; i++) {
        const opdi_arg *arg = &schema->args[i];
        for (k = 0; k < own->nargs && strcmp(own->args[k].name, arg->name) != 0; k++) { }
        if (k == own->nargs && !arg->has_default && strcmp(arg->name, "dtype") != 0 &&
            strcmp(arg->name, "device") != 0) {
            why = "an argument is missing";
        }
    }
    return why ? opd_fail(OPD_ERROR_REGISTER, "%.200s cannot be derived: %s", name, why) : 0;
}

OPDI_INTERNAL uint32_t opdi_desc_tags(const opd_op_desc *desc) {
    return desc->tags | (desc->vmap == OPD_BATCH_POINTWISE ? (uint32_t)OPD_OPTAG_POINTWISE : 0u);
}
/* Returns the tags of a form that is derived from a descriptor.  Forms of built-in operators have PyTorch's tags: CORE
   and DYNAMIC_OUTPUT_SHAPE only for the few out= forms that have these tags in PyTorch. */
static uint32_t opdi_derived_tags(const opd_library *lib, const opd_op_desc *desc, bool inplace) {
    uint32_t tags = opdi_desc_tags(desc) & ~(uint32_t)OPD_OPTAG_CORE;
    if (lib != opdi_registry.aten) { return tags; }
    tags &= ~(uint32_t)(OPD_OPTAG_MAYBE_ALIASING_OR_MUTATING | OPD_OPTAG_DYNAMIC_OUTPUT_SHAPE);
    if (!inplace && (tags & OPDI_OPTAG_OUT_CORE)) { tags |= OPD_OPTAG_CORE; }
    if (!inplace && (tags & OPDI_OPTAG_OUT_DYNAMIC)) { tags |= OPD_OPTAG_DYNAMIC_OUTPUT_SHAPE; }
    return tags;
}

/* Defines an in-place or out= form of the functional operator of `base` and registers its kernels: one for every
   backend (or a composite one), the matching autograd kernel, and the kernel that counts writes.  Returns 0, or -1 and
   sets an error. */
static int opdi_derive(opd_library *lib, opdi_card *base, const char *name, bool inplace) {
    opd_op_desc desc = base->desc;
    opd_schema *schema = opdi_derived_schema(lib, base->op->schema, name, inplace);
    bool wrong = schema && opdi_derive_check(base->op->schema, schema, name, inplace);
    opd_def_options options = {opdi_derived_tags(lib, &desc, inplace), OPD_ALIAS_FROM_SCHEMA, desc.same_again};
    opd_op *op = schema && !wrong ? opdi_def_schema(lib, schema, &options) : NULL;
    const bool list = op && !inplace && opdi_derives_list(base->op->schema, op->schema);
    bool composite = desc.composite != NULL && !desc.cpu && !desc.any && !list;
    if (wrong) { opd_schema_free(schema); }
    if (!op) { return -1; }
    desc.inplace = desc.out = NULL;
    desc.schema = name;
    if (!inplace && lib == opdi_registry.aten && !list &&
        !(opdi_desc_tags(&desc) & (OPD_OPTAG_POINTWISE | OPDI_OPTAG_OUT_CASTS))) { desc.tags |= OPDI_OPTAG_OUT_EXACT; }
    if (inplace) { desc.save = base->desc.save; } else { desc.save = NULL; }
    if (!inplace) { desc.cases = NULL; }
    opdi_card *card = opdi_card_new(op, &desc, base, inplace, true);
    if (!card) { return -1; }
    if (composite) {
        return opdi_impl_at(lib, op->name, OPD_KEY_COMPOSITE_IMPLICIT, opdi_derived_composite, card, NULL);
    }
    if (opdi_impl_at(lib, op->name, OPD_KEY_AUTOGRAD, inplace ? opdi_autograd_inplace_kernel : opdi_autograd_out_kernel,
                     card, NULL) ||
        opdi_impl_at(lib, op->name, OPD_KEY_AD_INPLACE_OR_VIEW, opdi_version_kernel, NULL, NULL)) { return -1; }
    return opdi_impl_at(lib, op->name, OPD_KEY_COMPOSITE_EXPLICIT, list ? opdi_derived_list : opdi_derived_kernel, card,
                        NULL);
}

/* Returns true if the only kernel of the descriptor is composite.  The operator is then differentiated through the
   operators that the kernel calls. */
static bool opdi_desc_decomposes(const opd_op_desc *desc) {
    return desc->composite && !desc->cpu && !desc->cuda && !desc->any && !desc->function;
}
/* Checks that a descriptor has no combination of fields in which one field would never be used.  Returns 0, or -1 and
   sets an error. */
static int opdi_check_desc(const opd_op *op, const opd_op_desc *desc) {
    const bool formula = desc->backward && desc->backward != opd_not_differentiable;
    if (desc->autograd && formula) {
        return opd_fail(OPD_ERROR_REGISTER, "%s: `autograd` and `backward` are both set: the kernel in `autograd` "
                        "replaces the recording for `backward`, which would never be called", op->name);
    }
    if (desc->composite && (desc->any || desc->function)) {
        return opd_fail(OPD_ERROR_REGISTER, "%s: `any` and `composite` are both set: `any` is the kernel of every "
                        "backend, so `composite` would never be called", op->name);
    }
    return formula && opdi_desc_decomposes(desc)
        ? opd_fail(OPD_ERROR_REGISTER, "%s: `composite` and `backward` are both set: a composite kernel is "
                   "differentiated through the operators that it calls, so `backward` would never be called. Set `any` "
                   "instead of `composite` to use `backward`", op->name) : 0;
}

/* Registers the kernels of a descriptor, beginning with the highest key.  So a thread that sees one of the kernels also
   sees the kernels above it.  Then defines the derived forms.  Returns 0, or -1 and sets an error. */
static int opdi_define_kernels(opd_library *lib, opdi_card *card, void *user) {
    const opd_op_desc *desc = &card->desc;
    const char *name = card->op->name;
    opd_kernel autograd = desc->autograd ? desc->autograd : !desc->backward || opdi_desc_decomposes(desc) ? NULL :
                          card->op->written_args & 1 ? opdi_autograd_inplace_kernel : opdi_autograd_kernel;
    if (autograd && opdi_impl_at(lib, name, OPD_KEY_AUTOGRAD, autograd, desc->autograd ? user : (void *)card, NULL)) {
        return -1;
    }
    if (card->op->written_args && desc->any != opdi_detach__kernel &&               /* detach_ writes no data */
        opdi_impl_at(lib, name, OPD_KEY_AD_INPLACE_OR_VIEW, opdi_version_kernel, NULL, NULL)) { return -1; }
    if (desc->cpu && opdi_impl_at(lib, name, OPD_KEY_CPU, desc->cpu, user, NULL)) { return -1; }
    if (desc->cuda && opdi_impl_at(lib, name, OPD_KEY_CUDA, desc->cuda, user, NULL)) { return -1; }
    if (desc->fake && opdi_impl_at(lib, name, OPD_KEY_META, desc->fake, user, NULL)) { return -1; }
    if (desc->any && opdi_impl_at(lib, name, OPD_KEY_COMPOSITE_EXPLICIT, desc->any, user, NULL)) { return -1; }
    if (desc->function && opdi_impl_typed(lib, name, OPD_KEY_COMPOSITE_EXPLICIT, desc->function->kernel, user, NULL,
                                          desc->function->signature)) { return -1; }
    if (desc->composite && opdi_impl_at(lib, name, OPD_KEY_COMPOSITE_IMPLICIT, desc->composite, user, NULL)) {
        return -1;
    }
    if (desc->inplace && opdi_derive(lib, card, desc->inplace, true)) { return -1; }
    return desc->out ? opdi_derive(lib, card, desc->out, false) : 0;
}

/* Makes the library destroy the descriptor's user pointer when the definition is undone.  Returns 0, or -1 if memory
   runs out. */
static int opdi_hold_user(opd_library *lib, const opd_op_desc *desc) {
    opdi_registration *registration;
    if (!desc->destroy) { return 0; }
    if (!(registration = opdi_registration_new(lib, 3, 0, NULL))) { return -1; }
    registration->kernel->user = desc->user;
    registration->kernel->destroy = desc->destroy;
    opdi_lock(&opdi_registry.lock);
    opdi_registration_add(lib, registration);
    opdi_unlock(&opdi_registry.lock);
    return 0;
}

/* Checks that op is functional (writes nothing, returns no views), because setup_context sees only arguments and
   results.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_check_functional(const opd_op *op) {
    bool wrong = op->written_args != 0 || op->nrets < 1;
    for (int i = 0; i < op->nrets; i++) { wrong = wrong || opd_schema_is_aliasing(op->schema, OPD_RESULT(i)); }
    return !wrong ? 0 : opd_fail(OPD_ERROR_REGISTER, "Cannot register autograd formula for non-functional operator %s. "
                                 "Please create a functional operator and register an autograd formula for that.",
                                 op->name);
}
static int opdi_check_setup(const opd_op *op, const opd_op_desc *desc) {
    if (!desc->setup_context) { return 0; }
    if (!desc->backward || desc->backward == opd_not_differentiable || desc->inplace || desc->autograd) {
        return opd_fail(OPD_ERROR_REGISTER, "%s: `setup_context` needs a backward function (`backward`), and cannot be "
                        "used together with `autograd` or `inplace`", op->name);
    }
    return opdi_check_functional(op);
}

/* Defines the operator of a descriptor, by its schema or by a name and the signature of its C function.  Returns NULL
   and sets an error if that fails. */
static opd_op *opdi_define_schema(opd_library *lib, const opd_op_desc *desc, const opd_def_options *options) {
    char inferred[300], text[600];
    const opd_function *function = desc->function;
    if (function && (desc->any || opdi_function_check(function, desc->schema ? desc->schema : "NULL"))) {
        if (opd_ok()) {
            (void)opd_fail(OPD_ERROR_REGISTER, "opd_define: `function` and `any` are both set: `function` is used "
                           "instead of `any`");
        }
        (void)opdi_library_error(lib);
        return NULL;
    }
    if (!function || !desc->schema || strchr(desc->schema, '(') || strlen(desc->schema) > 250) {
        return opdi_def_text(lib, desc->schema, options);
    }
    (void)snprintf(text, sizeof text, "%s%s", desc->schema, opdi_inferred_print(function->signature, inferred,
                                                                                sizeof inferred));
    return opdi_def_text(lib, text, options);
}

/* Returns 0 if `policy` is a policy of autocast, else -1 and sets an error. */
OPDI_INTERNAL int opdi_check_policy(opd_autocast policy) {
    const int place = (int)policy;
    return place >= 0 && place < 256 && (place & 15) < OPDI_POLICIES && place >> 4 < OPDI_POLICIES ? 0
        : opd_fail(OPD_ERROR_REGISTER, "%d is not a policy of autocast (OPD_AUTOCAST_...)", place);
}

/* Defines an operator and registers all parts of the descriptor.  Returns 0, or -1 and sets an error.  On failure
   everything is undone, and the caller still owns `user`. */
OPDI_INTERNAL int opdi_define(opd_library *lib, const opd_op_desc *desc) {
    opd_def_options options;
    if (!desc) { return opd_fail(OPD_ERROR_REGISTER, "opd_define: the descriptor is NULL"); }
    if (opdi_check_policy(desc->autocast)) { return opdi_library_error(lib); }
    const opdi_registration *before = lib->registrations;
    options.tags = opdi_desc_tags(desc);
    options.alias = OPD_ALIAS_FROM_SCHEMA;
    options.same_again = desc->same_again;
    opd_op *op = opdi_define_schema(lib, desc, &options);
    if (!op) { return -1; }
    opdi_card *card = opdi_check_setup(op, desc) || opdi_check_desc(op, desc)
        ? NULL : opdi_card_new(op, desc, NULL, false, true);
    /* the user pointer is taken over last, so that the caller owns it after a failure */
    if (!card || opdi_define_kernels(lib, card, desc->user) || opdi_hold_user(lib, desc)) {
        opdi_library_undo(lib, before);
        return opdi_library_error(lib);
    }
    return 0;
}

int opd_define(opd_library *lib, const opd_op_desc *desc) {
    return opdi_library_defines(lib, "opd_define") ? opdi_define(lib, desc) : -1;
}
