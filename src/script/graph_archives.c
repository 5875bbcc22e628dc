#include "script.h"

//== archives of graphs ================================================================================================
//
//  A graph becomes the method "forward" of a class, whose objects have the tensors of a module.  A tensor such as
//  "layers.0.weight" is an attribute of an object in an object; these objects form a tree, and each has its own class.

/* An object of the archive, or a tensor in it. */
typedef struct opdi_archive_part {
    const char *name;                             /* as attribute of its object; of the root: NULL */
    size_t length;
    int64_t tensor;                               /* the number of the module's tensor, or -1 for an object */
    int number;                                   /* of an object: of its class; the root has 0 */
    struct opdi_archive_part *first, *last, *next;
} opdi_archive_part;
typedef struct opdi_graph_archive {
    const opd_module *module;
    opd_graph *graph;                             /* a copy of the graph */
    opdi_archive_part root;
    int classes;
    opdi_string code;
    opdi_script_pickler saving;
} opdi_graph_archive;

#define OPDI_ARCHIVE_CLASS "Graph"
static const char opdi_archive_words[] = "False None True and as assert async await break class continue def del elif "
    "else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield "
    "self torch ops annotate uninitialized unchecked_cast int float bool str complex print isinstance range inf nan "
    "__torch__ getattr CONSTANTS Tensor List Tuple Dict Optional training forward ";
/* Returns whether text[length] can be a name in the text of an archive. */
static bool opdi_archive_is_name(const char *text, size_t length) {
    if (!length || opdi_is_digit(text[0]) || opdi_word_in(text, (int)length, opdi_archive_words)) { return false; }
    for (size_t i = 0; i < length; i++) {
        const bool letter = (text[i] | 32) >= 'a' && (text[i] | 32) <= 'z';
        if (!letter && !opdi_is_digit(text[i]) && text[i] != '_') { return false; }
    }
    return true;
}
static int opdi_archive_fail(const char *name, const char *why) {
    return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_save_script: the module's tensor '%.200s' cannot be saved: %s", name,
                    why);
}

//-- the tree of the module's tensors ----------------------------------------------------------------------------------

/* Finds or adds a part of an object.  Returns NULL and sets an error on failure. */
static opdi_archive_part *opdi_archive_child(opdi_graph_archive *archive, opdi_archive_part *object, const char *whole,
                                             const char *name, size_t length, int64_t tensor) {
    for (opdi_archive_part *child = object->first; child; child = child->next) {
        if (child->length != length || memcmp(child->name, name, length) != 0) { continue; }
        if (tensor < 0 && child->tensor < 0) { return child; }
        (void)opdi_archive_fail(whole, "another name begins with it, or it begins with another name");
        return NULL;
    }
    opdi_archive_part *const child = (opdi_archive_part *)opdi_scope_alloc(sizeof *child);
    if (!child) { return NULL; }
    memset(child, 0, sizeof *child);
    child->name = name;
    child->length = length;
    child->tensor = tensor;
    child->number = tensor < 0 ? archive->classes++ : 0;
    *(object->last ? &object->last->next : &object->first) = child;
    object->last = child;
    return child;
}
/* Adds the module's tensor number `i` to the tree.  Returns 0, or -1 and sets an error. */
static int opdi_archive_add(opdi_graph_archive *archive, int64_t i) {
    const char *const whole = opd_module_name(archive->module, i);
    opdi_archive_part *at = &archive->root;
    const char *name = whole;
    for (int depth = 0; ; depth++) {
        const size_t length = strcspn(name, ".");
        const bool last = !name[length];
        bool plain = length != 0 && depth < 60;
        for (size_t k = 0; k < length; k++) {
            plain = plain && (unsigned char)name[k] >= 32 && (unsigned char)name[k] < 127 && !strchr("\"\\'", name[k]);
        }
        if (!plain || opdi_word_in(name, (int)length, "training forward ") ||
            (depth == 0 && strncmp(name, "graph_constant_", 15) == 0)) {
            return opdi_archive_fail(whole, "an attribute of a TorchScript module cannot have this name");
        }
        if (!(at = opdi_archive_child(archive, at, whole, name, length, last ? i : -1))) { return -1; }
        if (last) { return 0; }
        name += length + 1;
    }
}

//-- the text ----------------------------------------------------------------------------------------------------------

/* Writes the list of parameters or of buffers of a class. */
static void opdi_archive_list(opdi_graph_archive *archive, opdi_script_printer *print, const opdi_archive_part *object,
                              const char *list, opd_module_kind kind) {
    opdi_script_print(print, list);
    for (const opdi_archive_part *child = object->first; child; child = child->next) {
        if (child->tensor < 0 || opd_module_kind_at(archive->module, child->tensor) != kind) { continue; }
        opdi_script_print_quoted(print, child->name, (int64_t)child->length);
        opdi_script_print(print, ", ");
    }
    opdi_script_print(print, "]\n");
}
/* Writes the beginning of the class of an object: its name and attributes. */
static void opdi_archive_class(opdi_graph_archive *archive, opdi_script_printer *print,
                               const opdi_archive_part *object) {
    char text[80];
    (void)snprintf(text, sizeof text, object->number ? "class " OPDI_ARCHIVE_CLASS "_%d(Module):\n"
                   : "class " OPDI_ARCHIVE_CLASS "(Module):\n", object->number);
    opdi_script_print(print, text);
    opdi_archive_list(archive, print, object, "  __parameters__ = [", OPD_MODULE_PARAMETER);
    opdi_archive_list(archive, print, object, "  __buffers__ = [", OPD_MODULE_BUFFER);
    opdi_script_print(print, "  training : bool\n");
    for (const opdi_archive_part *child = object->first; child; child = child->next) {
        const bool plain = opdi_archive_is_name(child->name, child->length);
        opdi_script_print(print, plain ? "  " : "  __annotations__[");
        if (plain) { opdi_string_add_n(print->code, child->name, child->length); }
        else { opdi_script_print_quoted(print, child->name, (int64_t)child->length); }
        (void)snprintf(text, sizeof text, child->tensor < 0 ? "__torch__." OPDI_ARCHIVE_CLASS "_%d\n" : "Tensor\n",
                       child->number);
        opdi_script_print(print, plain ? " : " : "] = ");
        opdi_script_print(print, text);
    }
}
static void opdi_archive_classes(opdi_graph_archive *archive, opdi_script_printer *print,
                                 const opdi_archive_part *object) {
    for (const opdi_archive_part *child = object->first; child; child = child->next) {
        if (child->tensor >= 0) { continue; }
        opdi_archive_class(archive, print, child);
        opdi_archive_classes(archive, print, child);
    }
}
/* Sets the names of the graph's inputs that are tensors of the module: the text that reads them, such as
   "(self.layers).weight".  `text` reads the object.  Returns 0, or -1 if memory runs out. */
static int opdi_archive_paths(const opdi_archive_part *object, const char *text, opdi_script_formal *formals) {
    for (const opdi_archive_part *child = object->first; child; child = child->next) {
        const size_t bytes = strlen(text) + child->length + 20;
        char *const path = (char *)opdi_scope_alloc(bytes);
        if (!path) { return -1; }
        (void)snprintf(path, bytes, opdi_archive_is_name(child->name, child->length) ? "(%s).%.*s"
                       : "getattr(%s, \"%.*s\")", text, (int)child->length, child->name);
        if (child->tensor >= 0) { formals[child->tensor].name = path; }
        else if (opdi_archive_paths(child, path, formals)) { return -1; }
    }
    return 0;
}
/* Sets the names of the other inputs, which are the parameters of forward.  Returns 0, or -1 if memory runs out. */
static int opdi_archive_parameters(const opd_graph *graph, int32_t first, opdi_script_formal *formals) {
    for (int32_t i = first; i < graph->ninputs; i++) {
        const char *const name = graph->inputs[i]->name;
        bool fits = name && *name != '_' && opdi_archive_is_name(name, strlen(name)) &&
            strncmp(name, "input_", 6) != 0;
        for (int32_t k = first; k < i && fits; k++) { fits = strcmp(formals[k].name, name) != 0; }
        char *const own = (char *)opdi_scope_alloc(24);
        if (!own) { return -1; }
        (void)snprintf(own, 24, "input_%d", (int)(i - first));
        formals[i].name = fits ? name : own;
    }
    return 0;
}
/* Writes the method forward.  Returns 0, or -1 and sets an error. */
static int opdi_archive_forward(const opdi_graph_archive *archive, opdi_script_printer *print, int32_t first) {
    opd_graph *const graph = archive->graph;
    const opdi_gtype *const result = graph->result ? opdi_gvalue_gtype(graph, graph->result)
        : opdi_gtype_simple(OPDI_GTYPE_NONE);
    opdi_script_print(print, "  def forward(self: __torch__." OPDI_ARCHIVE_CLASS);
    for (int32_t i = first; i < graph->ninputs; i++) {
        const opdi_gtype *const type = opdi_gvalue_gtype(graph, graph->inputs[i]);
        opdi_script_print(print, ",\n    ");
        opdi_script_print(print, print->function->formals[i].name);
        opdi_script_print(print, ": ");
        if (!type || opdi_script_print_type(print, type)) { return -1; }
    }
    opdi_script_print(print, ") -> ");
    if (!result || opdi_script_print_type(print, result)) { return -1; }
    opdi_script_print(print, ":");
    if (opdi_script_print_block(print, &graph->body)) { return -1; }
    opdi_script_print(print, "\n    return ");
    if (!graph->result) { opdi_script_print(print, "None"); }
    else if (opdi_script_print_as(print, graph->result, result)) { return -1; }
    opdi_script_print(print, "\n");
    return print->code->failed ? -1 : 0;
}
/* Returns the next node after `node` (NULL: the first) that is a constant tensor with an attribute, or NULL. */
static const opdi_gnode *opdi_archive_constant(const opd_graph *graph, const opdi_gnode *node) {
    for (node = node ? opdi_gnode_after(node) : graph->body.first; node; node = opdi_gnode_after(node)) {
        if (node->kind == OPDI_GNODE_CONSTANT && node->constant.tag == OPD_TAG_TENSOR) { return node; }
    }
    return NULL;
}
/* Writes the text of all classes.  Returns 0, or -1 and sets an error. */
static int opdi_archive_code(opdi_graph_archive *archive) {
    const int32_t count = (int32_t)opd_module_count(archive->module);
    opdi_script_function function;
    opdi_script_printer print;
    char text[80];
    memset(&function, 0, sizeof function);
    memset(&print, 0, sizeof print);
    function.name = "forward";
    function.nformals = archive->graph->ninputs;
    function.formals = (opdi_script_formal *)opdi_scope_alloc(((size_t)function.nformals + 1) *
                                                              sizeof *function.formals);
    print.code = &archive->code;
    print.who = "opd_graph_save_script";
    print.graph = archive->graph;
    print.function = &function;
    print.named = "_";
    print.attributes = true;
    print.indent = 2;
    print.none = opd_value_none();
    if (!function.formals || opdi_archive_paths(&archive->root, "self", function.formals) ||
        opdi_archive_parameters(archive->graph, count, function.formals)) { return -1; }
    opdi_archive_class(archive, &print, &archive->root);
    for (const opdi_gnode *node = NULL; (node = opdi_archive_constant(archive->graph, node)) != NULL;) {
        (void)snprintf(text, sizeof text, "  " OPDI_SCRIPT_CONSTANT " : Tensor\n", (int)node->out[0]->id);
        opdi_script_print(&print, text);
    }
    if (opdi_archive_forward(archive, &print, count)) { return -1; }
    opdi_archive_classes(archive, &print, &archive->root);
    return archive->code.failed ? -1 : 0;
}

//-- the pickle --------------------------------------------------------------------------------------------------------

static int opdi_archive_attribute(opdi_graph_archive *archive, const char *name, size_t length, opd_tensor *tensor) {
    const opd_value value = opd_value_tensor(tensor);
    return opdi_pickle_put_text(&archive->saving.writer, name, length) ||
        opdi_script_pickle_value(&archive->saving, &value, NULL, 0) ? -1 : 0;
}
/* Writes an object with its attributes.  Returns 0, or -1 and sets an error. */
static int opdi_archive_object(opdi_graph_archive *archive, const opdi_archive_part *object) {
    static const char begin[] = ")\x81}(" "X\x08\0\0\0training\x89";
    char name[80];
    (void)snprintf(name, sizeof name, object->number ? OPDI_ARCHIVE_CLASS "_%d" : OPDI_ARCHIVE_CLASS, object->number);
    opdi_script_pickle_global(&archive->saving, "__torch__", 9, name);
    opdi_string_add_n(&archive->saving.writer.pickle, begin, sizeof begin - 1);
    for (const opdi_archive_part *child = object->first; child; child = child->next) {
        const int rc = child->tensor >= 0
            ? opdi_archive_attribute(archive, child->name, child->length,
                                     opd_module_at(archive->module, child->tensor))
            : opdi_pickle_put_text(&archive->saving.writer, child->name, child->length) ||
              opdi_archive_object(archive, child) ? -1 : 0;
        if (rc) { return -1; }
    }
    for (const opdi_gnode *node = NULL;
         object == &archive->root && (node = opdi_archive_constant(archive->graph, node)) != NULL;) {
        (void)snprintf(name, sizeof name, OPDI_SCRIPT_CONSTANT, (int)node->out[0]->id);
        if (opdi_archive_attribute(archive, name, strlen(name), node->constant.u.t)) { return -1; }
    }
    opdi_string_add(&archive->saving.writer.pickle, "ub");
    return archive->saving.writer.pickle.failed ? -1 : 0;
}

int opd_graph_save_script(const opd_graph *graph, const opd_module *module, const char *path) {
    opdi_graph_archive archive;
    if (!opd_ok()) { return -1; }
    if (!graph || !path || opd_module_count(module) > graph->ninputs) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_save_script: the %s", !graph ? "graph is NULL" : !path
                        ? "path is NULL" : "graph has fewer inputs than the module has tensors");
    }
    memset(&archive, 0, sizeof archive);
    archive.module = module;
    archive.root.tensor = -1;
    archive.classes = 1;
    archive.saving.writer.source.who = "opd_graph_save_script";
    archive.saving.writer.source.path = path;
    opd_scope scope = opd_scope_open();
    archive.graph = opd_graph_copy(graph);        /* types are made in the copy, so that threads can share `graph` */
    int rc = archive.graph && opdi_graph_space(archive.graph) ? 0 : -1;
    for (int64_t i = 0; i < opd_module_count(module) && rc == 0; i++) { rc = opdi_archive_add(&archive, i); }
    if (rc == 0) { rc = opdi_archive_code(&archive); }
    opdi_string_add(&archive.saving.writer.pickle, "\x80\x02");
    if (rc == 0) { rc = opdi_archive_object(&archive, &archive.root); }
    rc = opdi_script_write_all(&archive.saving, NULL, &archive.code, rc);
    opdi_string_free(&archive.code);
    opd_graph_free(archive.graph);
    opd_scope_close(&scope);
    return rc;
}
