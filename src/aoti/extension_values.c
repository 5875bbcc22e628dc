#include "aoti.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>ext_kernels  extensions of PyTorch: values, kernels, functions that extensions call
//----------------------------------------------------------------------------------------------------------------------

//== extensions: values on the stack of a kernel =======================================================================

//  A kernel of an extension gets its arguments on a stack of 64-bit words, and leaves its results there.  A tensor is a
//  handle, a list or string is a pointer to an opdi_ext_list or opdi_ext_text, and an optional value is a pointer to a
//  cell on the heap, or NULL.  The receiver of a word owns the object that it points to.

typedef struct opdi_ext_list { uint64_t *words; size_t count, capacity; } opdi_ext_list;
typedef struct opdi_ext_text { size_t length; char *data; } opdi_ext_text;
OPDI_INTERNAL pthread_mutex_t opdi_ext_lock = PTHREAD_MUTEX_INITIALIZER;
OPDI_INTERNAL pthread_mutex_t opdi_ext_load_lock = PTHREAD_MUTEX_INITIALIZER;
OPDI_INTERNAL opdi_ext *opdi_ext_first;
OPDI_INTERNAL OPDI_AOTI_THREAD opdi_ext *opdi_ext_loading, *opdi_ext_running;

OPDI_INTERNAL opdi_ext_memory_of_cxx opdi_ext_heap;

OPDI_INTERNAL int32_t opdi_ext_cell_new(uint64_t **out) {
    *out = (uint64_t *)(opdi_ext_heap.make ? opdi_ext_heap.make(sizeof **out) : malloc(sizeof **out));
    return *out ? 0 : (int32_t)-opdi_aoti_no_memory();
}
OPDI_INTERNAL int32_t opdi_ext_cell_free(uint64_t *cell) {
    if (!cell) { return 1; }
    if (opdi_ext_heap.unmake) { opdi_ext_heap.unmake(cell); }
    else { free(cell); }
    return 0;
}
OPDI_INTERNAL int32_t opdi_ext_list_new(size_t capacity, void **out) {
    opdi_ext_list *list = (opdi_ext_list *)calloc(1, sizeof *list);
    *out = NULL;
    if (list && capacity < SIZE_MAX / sizeof *list->words) {
        list->words = (uint64_t *)calloc(capacity + 1, sizeof *list->words);
    }
    if (!list || !list->words) {
        free(list);
        return (int32_t)-opdi_aoti_no_memory();
    }
    list->capacity = capacity + 1;
    *out = list;
    return 0;
}
OPDI_INTERNAL int32_t opdi_ext_list_size(void *self, size_t *out) {
    const opdi_ext_list *list = (const opdi_ext_list *)self;
    *out = list ? list->count : 0;
    return list ? 0 : 1;
}
OPDI_INTERNAL int32_t opdi_ext_list_get(void *self, size_t i, uint64_t *out) {
    const opdi_ext_list *list = (const opdi_ext_list *)self;
    if (!list || i >= list->count) {
        (void)opd_fail(OPD_ERROR_INDEX, "an extension reads item %zu of a list of %zu", i, list ? list->count : 0);
        return 1;
    }
    *out = list->words[i];
    return 0;
}
OPDI_INTERNAL int32_t opdi_ext_list_set(void *self, size_t i, uint64_t word) {
    uint64_t before;
    if (opdi_ext_list_get(self, i, &before)) { return 1; }
    ((opdi_ext_list *)self)->words[i] = word;
    return 0;
}
OPDI_INTERNAL int32_t opdi_ext_list_push(void *self, uint64_t word) {
    opdi_ext_list *list = (opdi_ext_list *)self;
    if (!list) { return 1; }
    if (list->count == list->capacity) {
        uint64_t *words = (uint64_t *)realloc(list->words, 2 * list->capacity * sizeof *words);
        if (!words) { return (int32_t)-opdi_aoti_no_memory(); }
        list->words = words;
        list->capacity *= 2;
    }
    list->words[list->count++] = word;
    return 0;
}
OPDI_INTERNAL int32_t opdi_ext_list_free(void *self) {
    opdi_ext_list *list = (opdi_ext_list *)self;
    if (list) { free(list->words); }
    free(list);
    return 0;
}
OPDI_INTERNAL int32_t opdi_ext_text_new(const char *data, size_t length, void **out) {
    opdi_ext_text *text = length < SIZE_MAX - sizeof *text - 1 ? (opdi_ext_text *)malloc(sizeof *text + length + 1)
        : NULL;
    *out = text;
    if (!text) { return (int32_t)-opdi_aoti_no_memory(); }
    text->length = length;
    text->data = (char *)(text + 1);
    if (length) { memcpy(text->data, data, length); }
    text->data[length] = 0;
    return 0;
}
OPDI_INTERNAL int32_t opdi_ext_text_free(void *text) {
    free(text);
    return 0;
}
OPDI_INTERNAL int32_t opdi_ext_text_length(void *self, size_t *out) {
    const opdi_ext_text *text = (const opdi_ext_text *)self;
    *out = text ? text->length : 0;
    return text ? 0 : 1;
}
OPDI_INTERNAL int32_t opdi_ext_text_data(void *self, const char **out) {
    const opdi_ext_text *text = (const opdi_ext_text *)self;
    *out = text ? text->data : "";
    return text ? 0 : 1;
}
static int32_t opdi_ext_tensor_export(opd_tensor *tensor, void **out) {
    return tensor ? opdi_aoti_box(tensor, out) : opdi_aoti_new_undefined(out);
}
static opd_tensor *opdi_ext_tensor_import(void *handle) {
    return handle ? ((opdi_aoti_handle *)handle)->tensor : NULL;
}
OPDI_INTERNAL const opdi_ext_side opdi_ext_ours = {
    opdi_ext_list_new, opdi_ext_list_size, opdi_ext_list_get, opdi_ext_list_push, opdi_ext_list_free,
    opdi_ext_text_new, opdi_ext_text_data, opdi_ext_text_free, opdi_ext_cell_new, opdi_ext_cell_free,
    opdi_aoti_free_handle, opdi_ext_tensor_export, opdi_ext_tensor_import
};

/* Reads the types of a schema from *from up to the closing parenthesis into `params`.  `named` is true for arguments,
   which have names.  Returns the number of types.  If a type is unknown, writes the type to `unknown` and returns
   -1. */
static int opdi_ext_read_types(const char **from, opdi_aoti_param *params, bool named, char *unknown) {
    const char *at = *from;
    int count = 0;
    while (*at && *at != ')') {
        at += strspn(at, " ,");
        if (*at == '*' && (at[1] == ',' || at[1] == ')')) {
            at++;
            continue;
        }
        if (*at == ')' || !*at) { break; }
        const bool scalar = strncmp(at, "Scalar", 6) == 0 && at[6] != 'T';
        const char *type = at;
        if (count == OPD_MAX_ARGS || !opdi_aoti_read_type(&at, &params[count]) || *at == '[') {
            snprintf(unknown, 60, "%.*s", (int)(strcspn(type, " ,)") < 59 ? strcspn(type, " ,)") : 59), type);
            return -1;
        }
        if (scalar) { params[count].kind = 'S'; }
        count++;
        if (named) { at = opdi_aoti_next_arg(at); }
        else { at += strcspn(at, ",)"); }
    }
    *from = at;
    return count;
}
/* Reads a schema, "ns::name(...) -> ...", into `signature`.  If a type is unknown, returns false and writes the type to
   signature->unknown. */
OPDI_INTERNAL bool opdi_ext_read_signature(const char *schema, opdi_ext_signature *signature) {
    const char *at = strchr(schema, '(');
    memset(signature, 0, sizeof *signature);
    if (!at) { return false; }
    at++;
    signature->nargs = opdi_ext_read_types(&at, signature->args, true, signature->unknown);
    at = signature->nargs >= 0 ? strstr(at, "->") : NULL;
    if (!at) { return false; }
    at += 2 + strspn(at + 2, " ");
    at += *at == '(';
    signature->nrets = opdi_ext_read_types(&at, signature->rets, false, signature->unknown);
    return signature->nrets >= 0;
}
OPDI_INTERNAL bool opdi_ext_signature_of(opd_op *op, opdi_ext_signature *signature) {
    char text[4000];
    const opd_schema *schema = opd_op_schema(op);
    if (!schema || opd_schema_print(schema, text, sizeof text) >= sizeof text) {
        (void)opd_fail(OPD_ERROR_SCHEMA, "%s has no schema, or its schema is too long", opd_op_name(op));
        return false;
    }
    if (opdi_ext_read_signature(text, signature)) { return true; }
    (void)opd_fail(OPD_ERROR_SCHEMA, "%s: PyTorch's stable interface cannot pass '%s'", opd_op_name(op),
                   signature->unknown);
    return false;
}

static double opdi_ext_number(const opd_value *value) {
    return value->tag == OPD_TAG_FLOAT ? value->u.d : (double)value->u.i;
}
OPDI_INTERNAL opd_value opdi_ext_item(const opd_value *value, int i) {
    switch (value->tag) {
    case OPD_TAG_TENSORS: return opd_value_tensor(value->u.tensors[i]);
    case OPD_TAG_INTS: return opd_value_int(value->u.ints[i]);
    case OPD_TAG_FLOATS: return opd_value_double(value->u.floats[i]);
    case OPD_TAG_BOOLS: return opd_value_bool(value->u.bools[i]);
    default: return value->u.list[i];
    }
}
OPDI_INTERNAL uint64_t opdi_ext_to_word(const opdi_ext_side *side, const opdi_aoti_param *param,
                                        const opd_value *value);
static uint64_t opdi_ext_list_to_word(const opdi_ext_side *side, const opdi_aoti_param *param, const opd_value *value) {
    opdi_aoti_param item = *param;
    void *list;
    item.list = false;
    item.optional = param->optional_items;
    const int count = value->tag == OPD_TAG_NONE ? 0 : value->n;
    if (side->list_new((size_t)count, &list)) { return 0; }
    for (int i = 0; i < count; i++) {
        const opd_value one = opdi_ext_item(value, i);
        (void)side->list_push(list, opdi_ext_to_word(side, &item, &one));
    }
    return (uint64_t)(uintptr_t)list;
}
/* Returns the word that represents a value on a stack.  The word owns the object that it points to.  Returns 0 and sets
   an error if it fails. */
OPDI_INTERNAL uint64_t opdi_ext_to_word(const opdi_ext_side *side, const opdi_aoti_param *param,
                                        const opd_value *value) {
    void *handle = NULL;
    uint64_t word = 0;
    if (param->optional) {
        opdi_aoti_param inner = *param;
        uint64_t *cell;
        inner.optional = false;
        if (value->tag == OPD_TAG_NONE || side->cell_new(&cell)) { return 0; }
        *cell = opdi_ext_to_word(side, &inner, value);
        return (uint64_t)(uintptr_t)cell;
    }
    if (param->list) { return opdi_ext_list_to_word(side, param, value); }
    switch (param->kind) {
    case 'T':
        (void)side->tensor_give(value->tag == OPD_TAG_TENSOR ? value->u.t : NULL, &handle);
        return (uint64_t)(uintptr_t)handle;
    case 'i': return (uint64_t)value->u.i;
    case 'b': return value->u.i != 0;
    case 'e': return (uint32_t)value->u.i;
    case 'd': {
        const double number = opdi_ext_number(value);
        memcpy(&word, &number, sizeof word);
        return word;
    }
    case 's':
        (void)side->text_new(value->u.s, strlen(value->u.s), &handle);
        return (uint64_t)(uintptr_t)handle;
    case 'D':
        word = (uint64_t)(uint32_t)opdi_aoti_device_number(value->u.device) << 32;
        return word | (uint32_t)(value->u.device.type == OPD_CPU ? -1 : value->u.device.index);
    default:
        (void)opd_fail(OPD_ERROR_ARGUMENT, "PyTorch's stable interface cannot pass a %s",
                       param->kind == 'S' ? "Scalar" : "Generator");
        return 0;
    }
}

static opdi_ext_taken *opdi_ext_keep(const opdi_ext_side *side, opdi_ext_taken **all, size_t bytes) {
    opdi_ext_taken *taken = (opdi_ext_taken *)calloc(1, sizeof *taken + bytes);
    if (!taken) {
        (void)opdi_aoti_no_memory();
        return NULL;
    }
    taken->next = *all;
    taken->side = side;
    *all = taken;
    return taken;
}
OPDI_INTERNAL void opdi_ext_taken_release(opdi_ext_taken *all) {
    while (all) {
        opdi_ext_taken *next = all->next;
        if (all->handle) { (void)all->side->tensor_free(all->handle); }
        if (all->text) { (void)all->side->text_free(all->text); }
        free(all);
        all = next;
    }
}
OPDI_INTERNAL opd_value opdi_ext_from_word(const opdi_ext_side *side, const opdi_aoti_param *param, uint64_t word,
                                           opdi_ext_taken **all);
/* Returns a list of `count` items, in the form that the parameter's type needs. */
static opd_value opdi_ext_list_value(const opdi_aoti_param *param, opd_value *items, int count) {
    void *memory = items + count;                 /* after the items, there is as much free memory again */
    for (int i = 0; i < count; i++) {
        switch (param->kind) {
        case 'T': ((opd_tensor **)memory)[i] = items[i].tag == OPD_TAG_TENSOR ? items[i].u.t : NULL; break;
        case 'd': ((double *)memory)[i] = opdi_ext_number(&items[i]); break;
        case 'b': ((bool *)memory)[i] = items[i].u.i != 0; break;
        default: ((int64_t *)memory)[i] = items[i].u.i; break;
        }
    }
    if (param->kind == 'T') { return opd_value_tensors((opd_tensor **)memory, count); }
    if (param->optional_items || strchr("sDGS", param->kind)) { return opd_value_list(items, count); }
    if (param->kind == 'd') { return opd_value_doubles((const double *)memory, count); }
    if (param->kind == 'b') { return opd_value_bools((const bool *)memory, count); }
    return opd_value_ints((const int64_t *)memory, count);
}
static opd_value opdi_ext_list_from_word(const opdi_ext_side *side, const opdi_aoti_param *param, uint64_t word,
                                         opdi_ext_taken **all) {
    void *list = (void *)(uintptr_t)word;
    opdi_aoti_param item = *param;
    size_t count = 0;
    if (list && (side->list_size(list, &count) || count >= INT32_MAX / 64)) { count = 0; }
    opdi_ext_taken *taken = opdi_ext_keep(side, all, 2 * (count + 1) * sizeof(opd_value));
    opd_value *items = taken ? (opd_value *)(void *)(taken + 1) : NULL;
    item.list = false;
    item.optional = param->optional_items;
    for (size_t i = 0; items && i < count; i++) {
        uint64_t one = 0;
        items[i] = side->list_get(list, i, &one) ? opd_value_none() : opdi_ext_from_word(side, &item, one, all);
    }
    if (list) { (void)side->list_free(list); }
    else { (void)opd_fail(OPD_ERROR_ARGUMENT, "an extension passed a list that is NULL"); }
    return items ? opdi_ext_list_value(param, items, (int)count) : opd_value_none();
}
/* Takes a word from a stack and returns its value.  Objects that the value needs are added to *all, and live until
   opdi_ext_taken_release(*all). */
OPDI_INTERNAL opd_value opdi_ext_from_word(const opdi_ext_side *side, const opdi_aoti_param *param, uint64_t word,
                                           opdi_ext_taken **all) {
    opdi_ext_taken *taken = NULL;
    const char *text = "";
    double number;
    if (param->optional) {
        opdi_aoti_param inner = *param;
        uint64_t *cell = (uint64_t *)(uintptr_t)word;
        inner.optional = false;
        if (!cell) { return opd_value_none(); }
        const uint64_t held = *cell;
        (void)side->cell_free(cell);
        return opdi_ext_from_word(side, &inner, held, all);
    }
    if (param->list) { return opdi_ext_list_from_word(side, param, word, all); }
    switch (param->kind) {
    case 'T':
        taken = opdi_ext_keep(side, all, 0);
        if (!taken) { return opd_value_none(); }
        taken->handle = (void *)(uintptr_t)word;
        taken->tensor = word ? side->tensor_take(taken->handle) : NULL;
        return opd_value_tensor(taken->tensor);
    case 'i': return opd_value_int((int64_t)word);
    case 'b': return opd_value_bool((word & 255) != 0);
    case 'e': return opd_value_int((int32_t)(uint32_t)word);
    case 'd':
        memcpy(&number, &word, sizeof number);
        return opd_value_double(number);
    case 's':
        taken = opdi_ext_keep(side, all, 0);
        if (taken) { taken->text = (void *)(uintptr_t)word; }
        if (word) { (void)side->text_data((void *)(uintptr_t)word, &text); }
        return opd_value_str(text);
    case 'D': return opd_value_device(opdi_aoti_device((int32_t)(word >> 32), (int32_t)(uint32_t)word));
    default:
        (void)opd_fail(OPD_ERROR_ARGUMENT, "PyTorch's stable interface cannot pass a %s",
                       param->kind == 'S' ? "Scalar" : "Generator");
        return opd_value_none();
    }
}

