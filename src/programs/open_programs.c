#include "programs.h"

//== open sizes of loaded programs =====================================================================================
//
//  The graph of a loaded program gets the names and ranges of the program's symbols, and the expressions of its inputs'
//  sizes, so that copies of the graph check them, too.

static const opdi_gexpr *opdi_program_gexpr(opd_graph *graph, const char **at, int depth);
/* Reads the arguments of Add, Mul, FloorDiv or Pow (`what`) up to the closing parenthesis, and combines them.  Returns
   NULL if they are not understood. */
static const opdi_gexpr *opdi_program_gexpr_args(opd_graph *graph, const char **at, int depth, char what) {
    const opdi_gexpr *all = NULL;
    for (int count = 0; **at && **at != ')'; count++) {
        *at += strspn(*at, " ,");
        if (strncmp(*at, "evaluate=False", 14) == 0) {
            *at += 14;
            continue;
        }
        const opdi_gexpr *const next = opdi_program_gexpr(graph, at, depth + 1);
        const bool root = all && all->kind == OPDI_GEXPR_DIV && all->args[0]->kind == OPDI_GEXPR_NAME;
        if (!next || (count > 1 && what != 'A' && what != 'M')) { return NULL; }
        if (what == 'P' && count && (next->kind != OPDI_GEXPR_NUMBER || next->number != 2)) { return NULL; }
        const bool swapped = what == 'M' && count == 1 && next->kind == OPDI_GEXPR_DIV && next->args[1] == all;
        all = !count ? next : swapped ? next->args[0] : root && what == 'M' && all->args[1] == next ? all->args[0]
            : opdi_gexpr_of(graph, what == 'A' ? OPDI_GEXPR_ADD : what == 'F' ? OPDI_GEXPR_DIV : OPDI_GEXPR_MUL, all,
                            what == 'P' ? all : next);
        if (!all) { return NULL; }
    }
    *at += **at == ')';
    return all;
}
/* Returns the expression of a graph for a symbol.  T__by_4 is T // 4, where T is a multiple of 4. */
static const opdi_gexpr *opdi_program_gexpr_name(opd_graph *graph, const char *name, size_t length) {
    for (int32_t i = 0; i < graph->sizes->count; i++) {
        const opdi_gsize *const size = &graph->sizes->names[i];
        char text[200];
        const int count = size->step == 1 ? snprintf(text, sizeof text, "%.150s", size->name)
            : snprintf(text, sizeof text, "%.150s__by_%lld", size->name, (long long)size->step);
        if ((size_t)count != length || memcmp(text, name, length) != 0) { continue; }
        return opdi_gexpr_of(graph, OPDI_GEXPR_DIV, opdi_gexpr_name(graph, i), opdi_gexpr_number(graph, size->step));
    }
    return NULL;
}
/* Reads an expression in the notation of sympy at *at, and moves *at to its end.  Returns NULL if it is not understood;
   sets an error if memory runs out. */
static const opdi_gexpr *opdi_program_gexpr(opd_graph *graph, const char **at, int depth) {
    static const char *const words[] = {"Add(", "Mul(", "FloorDiv(", "CleanDiv(", "Pow("};
    static const char kinds[] = "AMFFP";
    if (depth > 30) { return NULL; }
    if (strncmp(*at, "Integer(", 8) == 0) {
        char *end;
        const int64_t number = strtoll(*at + 8, &end, 10);
        if (*end != ')') { return NULL; }
        *at = end + 1;
        return opdi_gexpr_number(graph, number);
    }
    if (strncmp(*at, "Symbol('", 8) == 0) {
        const char *const name = *at + 8;
        const size_t length = strcspn(name, "'");
        *at = name + length + strcspn(name + length, ")");
        *at += **at == ')';
        return opdi_program_gexpr_name(graph, name, length);
    }
    for (int k = 0; k < 5; k++) {
        const size_t length = strlen(words[k]);
        if (strncmp(*at, words[k], length) != 0) { continue; }
        *at += length;
        return opdi_program_gexpr_args(graph, at, depth, kinds[k]);
    }
    const size_t word = strspn(*at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    const opdi_gexpr *const plain = word ? opdi_program_gexpr_name(graph, *at, word) : NULL;     /* older files */
    if (plain) { *at += word; }
    return plain;
}
/* Gives the graph the names and ranges of the program's symbols.  Returns 0, or -1 and sets an error. */
static int opdi_program_open_names(const opd_program *program, opd_graph *graph) {
    for (int32_t i = 0; i < program->nsymbols; i++) {
        const opdi_program_symbol *const symbol = &program->symbols[i];
        const char *const by = strstr(symbol->name, "__by_");
        const int64_t step = by ? strtoll(by + 5, NULL, 10) : 1;
        const size_t length = by && step > 1 && step < 1 << 20 ? (size_t)(by - symbol->name) : strlen(symbol->name);
        const int32_t name = opdi_gsizes_find(graph, symbol->name, length, true);
        if (name < 0) { return -1; }
        opdi_gsize *const size = &graph->sizes->names[name];
        size->step = length < strlen(symbol->name) ? step : 1;
        size->least = OPDI_MIN(OPDI_MAX(symbol->least, 0), OPDI_OPEN_MOST / size->step) * size->step;
        size->most = OPDI_MIN(OPDI_MAX(symbol->most, 0), OPDI_OPEN_MOST / size->step) * size->step;
        if (size->most / size->step == OPDI_OPEN_MOST / size->step) { size->most = OPDI_OPEN_MOST; }
    }
    return 0;
}
/* Gives an input of the graph the sizes that the program expects.  Returns 0, or -1 and sets an error. */
static int opdi_program_open_input(const opdi_program_input *input, opd_graph *graph, opdi_gvalue *value) {
    const size_t count = 2 * (size_t)input->ndim;
    if (input->tag != OPD_TAG_TENSOR || value->tag != OPD_TAG_TENSOR || value->dims) { return 0; }
    const opdi_gexpr **const open = (const opdi_gexpr **)opdi_graph_alloc(graph, count * sizeof *open);
    int64_t *const dims = (int64_t *)opdi_graph_alloc(graph, count * sizeof *dims);
    if (!open || !dims) { return -1; }
    for (int k = 0; k < input->ndim; k++) {
        const char *at = input->dims[k].text;
        dims[k] = input->dims[k].size;
        if (!at) { continue; }
        open[k] = opdi_program_gexpr(graph, &at, 0);
        if (!opd_ok()) { return -1; }
        if ((!open[k] || *at) && !(open[k] = opdi_gexpr_unknown(graph))) { return -1; }
    }
    value->ndim = (uint8_t)input->ndim;
    value->dims = dims;
    value->open = open;
    return 0;
}
/* Gives the graph of a loaded program the open sizes of the program.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_program_open_sizes(opd_program *program) {
    opd_graph *const graph = program->graph;
    bool any = false;
    for (int32_t i = 0; i < program->ninputs; i++) {
        for (int k = 0; k < program->inputs[i].ndim; k++) { any = any || program->inputs[i].dims[k].text; }
    }
    if (!any || !program->nsymbols || program->nsymbols > OPDI_OPEN_NAMES) { return 0; }
    if (opdi_program_open_names(program, graph)) { return -1; }
    for (int32_t i = 0; i < graph->ninputs; i++) {
        const opdi_program_place *const from = &program->from[i];
        if (from->kind == OPDI_FROM_USER &&
            opdi_program_open_input(&program->inputs[from->at], graph, graph->inputs[i])) { return -1; }
    }
    return opdi_graph_open_complete(graph);
}
