#include "compiler.h"

//== writing files =====================================================================================================

/* Writes the address of a buffer as a C expression. */
static void opdi_c_write_pointer(opdi_cfile *file, const opdi_buffer *buffer) {
    const char *const type = opdi_c_type(buffer->dtype);
    if (buffer->place >= 0) {
        opdi_c_write(file, "(%s *)(%s + %lld)", type, buffer->fixed ? file->fixed : file->arena,
                     (long long)buffer->place);
    } else if (buffer->role == OPDI_BUFFER_CONSTANT) {
        opdi_c_write(file, file->table ? "(const %s *)((const void *const *)(const void *)model->weights)[%lld]"
                     : "(const %s *)(model->weights + %lld)", type, (long long)buffer->index);
    } else { opdi_c_write(file, "%s", buffer->name); }
}
static void opdi_c_write_port(opdi_cfile *file, const opdi_unit_port *end) {
    opdi_c_write(file, "%s [", opd_dtype_name(end->dtype));
    for (int i = 0; i < end->ndim; i++) { opdi_c_write(file, "%s%lld", i ? ", " : "", (long long)end->sizes[i]); }
    opdi_c_write(file, "]");
}
/* If an input is not contiguous, writes its strides into the comment in the header. */
static void opdi_c_write_strides(opdi_cfile *file, const opdi_unit_port *end) {
    int64_t next = 1;
    bool rows = true;
    for (int i = end->ndim - 1; i >= 0; i--) {
        rows = rows && (end->sizes[i] == 1 || end->strides[i] == next);
        next *= OPDI_MAX(end->sizes[i], (int64_t)1);
    }
    if (rows) { return; }
    for (int i = 0; i < end->ndim; i++) {
        opdi_c_write(file, "%s%lld", i ? ", " : ", strides ", (long long)end->strides[i]);
    }
}
/* Writes the open sizes as parameters or arguments of a C function: each with `before` before it and `after` after it,
   such as ", ptrdiff_t open_size". */
static void opdi_c_write_open_sizes(opdi_cfile *file, const opdi_unit *unit, const char *before, const char *after) {
    for (int i = 0; i < unit->nopen; i++) {
        opdi_c_write(file, "%sopen_size%s%s", before, opdi_open_suffixes[i], after);
    }
}
/* Writes the parameters of the function that runs a unit, such as "model *model, const float *in_x, float *out_y". */
static void opdi_c_write_signature(opdi_cfile *file, const opdi_unit *unit) {
    opdi_c_write(file, "int %s_run(const %s *model", unit->name, unit->name);
    opdi_c_write_open_sizes(file, unit, ", ptrdiff_t ", "");
    for (int i = 0; i < unit->ninputs; i++) {
        const opdi_buffer *const buffer = unit->inputs[i].buffer;
        opdi_c_write(file, ", %s%s *%s", buffer->writes ? "" : "const ", opdi_c_type(buffer->dtype), buffer->name);
    }
    for (int i = 0; i < unit->noutputs; i++) {
        opdi_c_write(file, ", %s *%s", opdi_c_type(unit->outputs[i].buffer->dtype), unit->outputs[i].buffer->name);
    }
    opdi_c_write(file, ")");
}
static void opdi_c_write_header(opdi_cfile *file, const opdi_unit *unit) {
    const char *const name = unit->name;
    opdi_c_write(file, "/* %s: a graph of %d operators, written as C by opdispatch.\n\n", name, unit->nodes);
    for (int i = 0; i < unit->ninputs; i++) {
        opdi_c_write(file, "   in:  %s, ", unit->inputs[i].buffer->name);
        opdi_c_write_port(file, &unit->inputs[i]);
        opdi_c_write_strides(file, &unit->inputs[i]);
        opdi_c_write(file, unit->inputs[i].buffer->writes ? ", which a run writes to\n" : "\n");
    }
    for (int i = 0; i < unit->noutputs; i++) {
        opdi_c_write(file, "   out: %s, ", unit->outputs[i].buffer->name);
        opdi_c_write_port(file, &unit->outputs[i]);
        opdi_c_write(file, "\n");
    }
    for (int i = 0; i < unit->nopen; i++) {
        const char *const end = opdi_open_suffixes[i];
        char is[80] = "";
        if (unit->open->graph) {
            const opdi_gsize *const size = &unit->open->graph->sizes->names[i];
            (void)snprintf(is, sizeof is, size->step > 1 ? " is %.40s / %lld," : " is %.40s,", size->name,
                           (long long)size->step);
        }
        opdi_c_write(file, "%s   open_size%s%s%s an argument, from %s_LEAST%s to %s_MOST%s.  "
                     "The arena is for the largest.\n",
                     i ? "" : "\n", end, is, *is ? "" : " is", name, end, name, end);
    }
    opdi_c_write(file, "\n   A bool is stored in a byte, float16 and bfloat16 in 16 bits.  No memory is allocated.\n"
                 "   Several threads may run one model, each with its own copy of the struct and its own arena. */\n");
    opdi_c_write(file, "#ifndef %s_H\n#define %s_H\n#include <stddef.h>\n#include <stdint.h>\n", name, name);
    opdi_c_write(file, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    opdi_c_write(file, "#define %s_WEIGHTS_BYTES %lld   /* of %s.weights */\n", name, (long long)unit->weights, name);
    opdi_c_write(file, "#define %s_FIXED_BYTES %lld   /* state, and values computed from weights */\n", name,
                 (long long)OPDI_MAX(unit->fixed, 1));
    opdi_c_write(file, "#define %s_ARENA_BYTES %lld   /* memory for a run */\n\n", name,
                 (long long)OPDI_MAX(unit->arena,
        1));
    for (int i = 0; i < unit->nopen; i++) {
        opdi_c_write(file, "#define %s_LEAST%s %lld\n#define %s_MOST%s %lld\n\n", name, opdi_open_suffixes[i],
                     (long long)unit->open->least[i], name, opdi_open_suffixes[i], (long long)unit->open->most[i]);
    }
    opdi_c_write(file, "typedef struct %s {\n    const unsigned char *weights;\n"
                 "    unsigned char *fixed, *arena;\n%s} %s;\n\n", name, !unit->here ? ""
                 : "    int (*call)(void *context, int which, const void *in, void *out);\n"
                 "    int (*kernel)(void *context, int which, const void *left, const void *right, void *out);\n"
                 "    void (*clock)(void *context, int which);\n"
                 "    const unsigned char *ways;\n    void *context;\n", name);
    opdi_c_write(file, "/* Sets the memory of a model, each block aligned to 64 bytes, and computes values that\n"
                 "   need only weights.  Returns the same as the next function. */\n");
    opdi_c_write(file, "int %s_init(%s *model, const void *weights, void *fixed, void *arena);\n",
                 name, name);
    opdi_c_write(file, "/* Runs the model.  Returns 0; 1 if an index is out of range; 2 for an integer division "
                 "by zero%s%s. */\n",
                 unit->nopen ? ";\n   3 if an open_size is out of its range" : "",
                 unit->recording.called ? ";\n   4 if an operator that it calls fails, with opdispatch's error" : "");
    opdi_c_write_signature(file, unit);
    opdi_c_write(file, ";\n/* The same, with arrays of pointers to the inputs and outputs, in their order. */\n");
    opdi_c_write(file, "int %s_call(const %s *model, ", name, name);
    opdi_c_write_open_sizes(file, unit, "ptrdiff_t ", ", ");
    opdi_c_write(file, "void *const *inputs, void *const *outputs);\n\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
}
/* Writes the address of a packed operand of a product: `place` bytes after the beginning of the memory for packed
   operands. */
static void opdi_c_write_side(opdi_cfile *file, const opdi_group *group, const opdi_contraction *all, bool early,
                              int64_t place) {
    opdi_c_write(file, "(%s *)(%s + %lld)", opdi_contraction_type(all), early ? file->fixed : file->arena,
                 (long long)(place + (early ? 0 : group->scratch)));
}
/* Writes the calls of the functions that pack a product's constant operands. */
static void opdi_c_write_early_calls(opdi_cfile *file, opdi_group *group) {
    opdi_contraction all;
    char name[64];
    opdi_group_name(group, name);
    opdi_contraction_of(&all, group->nests[0]);
    for (int i = 0; i < 2; i++) {
        if (!(i ? all.right_early : all.left_early)) { continue; }
        opdi_c_write_indent(file);
        opdi_c_write(file, "FRESH; %s_%s(", name, i ? "right" : "left");
        opdi_c_write_pointer(file, i ? all.right->buffer : all.left->buffer);
        opdi_c_write(file, ", ");
        opdi_c_write_side(file, group, &all, true, i ? group->right : group->left);
        opdi_c_write(file, ");\n");
    }
}
/* Writes the addresses of the buffers that a group uses, as arguments of a C function. */
static void opdi_c_write_buffers(opdi_cfile *file, opdi_group *group) {
    opdi_group_buffers buffers;
    bool any = false;
    (void)opdi_group_uses(group, &buffers);
    for (int i = 0; i < buffers.count; i++) {
        if (buffers.all[i]->group) { continue; }
        opdi_c_write(file, "%s", any ? ", " : "");
        opdi_c_write_pointer(file, buffers.all[i]);
        any = true;
    }
}
/* Writes the call of the kernel that may compute a group, and of the loops after it.  Opens the block of the other
   way. */
static void opdi_c_write_kernel(opdi_cfile *file, const opdi_nest *nest) {
    const opdi_nest_kernel *const kernel = nest->kernel;
    char name[64];
    opdi_c_write_line(file, "if (model->clock) { model->clock(model->context, %d); }", (int)kernel->id);
    opdi_c_write_open(file, "if (model->ways[%d]) {", (int)kernel->id);
    opdi_c_write_indent(file);
    opdi_c_write(file, "FRESH; if ((rc = model->kernel(model->context, %d, ", (int)kernel->id);
    for (int i = 0; i < 2; i++) {
        opdi_c_write_pointer(file, kernel->operands[i]->buffer);
        opdi_c_write(file, ", ");
    }
    opdi_c_write_pointer(file, kernel->raw ? kernel->raw : nest->out.buffer);
    opdi_c_write(file, ")) != 0) { return rc; }\n");
    if (kernel->after) {
        opdi_group_name(kernel->after, name);
        opdi_c_write_indent(file);
        opdi_c_write(file, "FRESH; if ((rc = %s(", name);
        opdi_c_write_buffers(file, kernel->after);
        opdi_c_write(file, ")) != 0) { return rc; }\n");
    }
    file->indent--;
    opdi_c_write_open(file, "} else {");
}
static void opdi_c_write_inner_call(opdi_cfile *file, opdi_group *group);
/* Writes the call of a group's function, and a line that returns if the call has failed. */
static void opdi_c_write_call(opdi_cfile *file, const opdi_unit *unit, opdi_group *group) {
    char name[64];
    const opdi_nest *const nest = group->nests[0];
    const bool choice = nest->kernel && !group->early;
    if (nest->inner) {
        if (nest->inner->group == group) { opdi_c_write_inner_call(file, group); }
        return;
    }
    opdi_group_name(group, name);
    if (choice) { opdi_c_write_kernel(file, nest); }
    opdi_c_write_indent(file);
    if (unit->here && nest->called) {
        opdi_c_write(file, "FRESH; if ((rc = model->call(model->context, %d, ", (int)nest->called->id);
    } else { opdi_c_write(file, "FRESH; if ((rc = %s(", name); }
    opdi_c_write_buffers(file, group);
    if (opdi_group_contracts(group)) {
        opdi_contraction all;
        opdi_contraction_of(&all, group->nests[0]);
        opdi_c_write(file, ", ");
        opdi_c_write_side(file, group, &all, all.left_early, group->left);
        opdi_c_write(file, ", ");
        opdi_c_write_side(file, group, &all, all.right_early, group->right);
    }
    if (!group->early) { opdi_c_write_open_sizes(file, unit, ", ", ""); }
    opdi_c_write(file, ")) != 0) { return rc; }\n");
    if (choice) {
        opdi_c_write_close(file, 1);
        opdi_c_write_line(file, "if (model->clock) { model->clock(model->context, -1); }");
    }
}
//== conditions and loops, written as C functions ======================================================================

/* Returns the load of operand `at` of a condition or loop in a nest that writes a result of it. */
static const opdi_access *opdi_inner_load(const opdi_nest *nest, int at) {
    const opdi_expr *expr = nest->value;
    for (; at > 0; at--) { expr = expr->in[1]; }
    return &expr->in[0]->access;
}
/* Writes the address of operand `at` of a condition or loop in the recording around it, as a C expression. */
static void opdi_c_write_inner_operand(opdi_cfile *file, const opdi_inner *inner, int at) {
    const opdi_inner_operand *const operand = &inner->operands[at];
    const char *const type = opdi_c_type(operand->dtype);
    opdi_buffer *const buffer = opdi_inner_load(inner->group->nests[0], at)->buffer;
    if (operand->place || buffer->dtype != operand->dtype) {
        opdi_c_write(file, "(const %s *)(const void *)((const unsigned char *)", type);
        opdi_c_write_pointer(file, buffer);
        opdi_c_write(file, " + %lld)", (long long)operand->place);
    } else { opdi_c_write_pointer(file, buffer); }
}
/* Writes the function that packs the constant operands of kernel number `which`, for code that runs in this process.
   Other constant operands are packed by the function init. */
static void opdi_c_write_pack(opdi_cfile *file, const opdi_unit *unit) {
    opdi_c_write(file, "\nvoid %s_pack(const %s *model, int which) {\n    (void)model;\n    (void)which;\n", unit->name,
                 unit->name);
    for (opdi_group *group = unit->groups; group; group = group->next) {
        const opdi_nest_kernel *const kernel = group->nests[0]->kernel;
        if (!kernel || !kernel->packed_bytes) { continue; }
        opdi_c_write_line(file, "if (which == %d) {", (int)kernel->id);
        opdi_c_write_early_calls(file, group);
        opdi_c_write_line(file, "}");
    }
    opdi_c_write(file, "}\n");
}
/* Writes the call of the function of a condition or loop. */
static void opdi_c_write_inner_call(opdi_cfile *file, opdi_group *group) {
    const opdi_inner *const inner = group->nests[0]->inner;
    char name[64];
    opdi_group_name(group, name);
    opdi_c_write_indent(file);
    opdi_c_write(file, "FRESH; if ((rc = %s(model, %s + %lld", name, file->arena, (long long)group->scratch);
    for (int i = 0; i < inner->noperands; i++) {
        opdi_c_write(file, ", ");
        opdi_c_write_inner_operand(file, inner, i);
    }
    for (int i = 0; i < inner->nresults - (inner->kind == OPDI_RECORDED_WHILE); i++) {
        const opdi_inner_result *const result = &inner->results[i];
        opdi_c_write(file, ", ");
        if (result->unused < 0) { opdi_c_write_pointer(file, result->nest->out.buffer); }
        else {
            opdi_c_write(file, "(%s *)(%s + %lld)", opdi_c_type(result->dtype), file->arena,
                         (long long)(group->scratch + result->unused));
        }
    }
    opdi_c_write(file, ")) != 0) { return rc; }\n");
}
/* Writes the groups of a body: those that read only what is the same in all rounds if `early` is true, else the
   others. */
static void opdi_c_write_inner_groups(opdi_cfile *file, const opdi_inner_body *body, bool early) {
    for (opdi_group *group = body->unit.groups; group; group = group->next) {
        if (early && opdi_group_contracts(group)) { opdi_c_write_early_calls(file, group); }
    }
    for (opdi_group *group = body->unit.groups; group; group = group->next) {
        if (group->early == early) { opdi_c_write_call(file, &body->unit, group); }
    }
}
static bool opdi_inner_has_early(const opdi_inner_body *body) {
    for (opdi_group *group = body->unit.groups; group; group = group->next) {
        opdi_contraction all;
        if (group->early) { return true; }
        if (!opdi_group_contracts(group)) { continue; }
        opdi_contraction_of(&all, group->nests[0]);
        if (all.left_early || all.right_early) { return true; }
    }
    return false;
}
/* Writes lines that declare the inputs of a body.  With `rounds`, declares those that differ from round to round, but
   not the carried ones; else the others. */
static void opdi_c_write_inner_inputs(opdi_cfile *file, const opdi_inner *inner, const opdi_inner_body *body,
                                      bool rounds) {
    const int first = inner->kind != OPDI_RECORDED_SCAN;
    for (int i = 0; i < body->ninputs; i++) {
        const opdi_buffer *const buffer = body->inputs[i];
        const int at = body->operands[i];
        const int64_t step = inner->operands[at].step;
        const bool carried = at >= first && at < first + inner->ncarried, sliced = step != 0;
        if (sliced != rounds || (buffer->first < 0 && !carried)) { continue; }
        opdi_c_write_indent(file);
        opdi_c_write(file, "const %s *%s%s = a%d", opdi_c_type(buffer->dtype), carried ? "" : "const ", buffer->name,
                     at);
        if (sliced) { opdi_c_write(file, " + %lld * at", (long long)step); }
        opdi_c_write(file, ";\n");
        if (carried && buffer->first < 0) { opdi_c_write_line(file, "(void)%s;", buffer->name); }
    }
}
/* Writes lines that declare the outputs of a body: where a round writes them. */
static void opdi_c_write_inner_outputs(opdi_cfile *file, const opdi_inner *inner, const opdi_inner_body *body) {
    for (int i = 0; i < inner->nresults; i++) {
        const opdi_inner_result *const result = &inner->results[i];
        const opdi_buffer *const buffer = body->unit.outputs[i].buffer;
        const char *const type = opdi_c_type(buffer->dtype);
        opdi_c_write_indent(file);
        opdi_c_write(file, "%s *const %s = ", type, buffer->name);
        if (inner->kind == OPDI_RECORDED_WHILE && i == inner->nresults - 1) {
            opdi_c_write(file, "(%s *)(arena + %lld);\n", type, (long long)inner->test);
        } else if (inner->kind == OPDI_RECORDED_COND) { opdi_c_write(file, "r%d;\n", i); }
        else if (i >= inner->ncarried) { opdi_c_write(file, "r%d + %lld * at;\n", i, (long long)result->step); }
        else if (inner->kind == OPDI_RECORDED_WHILE) {
            opdi_c_write(file, "round %% 2 ? (%s *)(arena + %lld) : r%d;\n", type, (long long)result->other, i);
        } else {
            opdi_c_write(file, "(%lld - round) %% 2 ? r%d : (%s *)(arena + %lld);\n", (long long)inner->length, i,
                         type, (long long)result->other);
        }
        if (buffer->first < 0) { opdi_c_write_line(file, "(void)%s;", buffer->name); }
    }
}
/* Writes lines that make the outputs of a round the carried inputs of the next one. */
static void opdi_c_write_inner_next(opdi_cfile *file, const opdi_inner *inner, const opdi_inner_body *body) {
    const int first = inner->kind != OPDI_RECORDED_SCAN;
    for (int i = 0; i < body->ninputs; i++) {
        const int at = body->operands[i] - first;
        if (at < 0 || at >= inner->ncarried) { continue; }
        opdi_c_write_line(file, "%s = %s;", body->inputs[i]->name, body->unit.outputs[at].buffer->name);
    }
}
static void opdi_c_write_inner_while(opdi_cfile *file, const opdi_inner *inner) {
    const opdi_inner_body *const body = &inner->bodies[0];
    opdi_c_write_inner_inputs(file, inner, body, false);
    opdi_c_write_line(file, "const uint8_t *test = a0;");
    if (opdi_inner_has_early(body)) {
        opdi_c_write_open(file, "if (*test) {");
        opdi_c_write_inner_groups(file, body, true);
        opdi_c_write_close(file, 1);
    }
    opdi_c_write_open(file, "for (int64_t round = 0; *test; round++) {");
    opdi_c_write_inner_outputs(file, inner, body);
    opdi_c_write_inner_groups(file, body, false);
    opdi_c_write_inner_next(file, inner, body);
    opdi_c_write_line(file, "test = %s;", body->unit.outputs[inner->nresults - 1].buffer->name);
    opdi_c_write_close(file, 1);
    for (int i = 0; i < inner->ncarried; i++) {
        const char *const name = body->inputs[i]->name;
        opdi_c_write_line(file, "if (%s != r%d) { memcpy(r%d, %s, %lld); }", name, i, i, name,
                          (long long)inner->results[i].bytes);
    }
}
static void opdi_c_write_inner_scan(opdi_cfile *file, const opdi_inner *inner) {
    const opdi_inner_body *const body = &inner->bodies[0];
    opdi_c_write_inner_inputs(file, inner, body, false);
    opdi_c_write_inner_groups(file, body, true);
    opdi_c_write_open(file, "for (int64_t round = 0; round < %lld; round++) {", (long long)inner->length);
    bool indexed = inner->nresults > inner->ncarried;
    for (int i = 0; i < body->ninputs; i++) {
        indexed = indexed || (inner->operands[body->operands[i]].step && body->inputs[i]->first >= 0);
    }
    if (indexed && inner->reverse) {
        opdi_c_write_line(file, "const int64_t at = %lld - round;", (long long)inner->length - 1);
    } else if (indexed) { opdi_c_write_line(file, "const int64_t at = round;"); }
    opdi_c_write_inner_inputs(file, inner, body, true);
    opdi_c_write_inner_outputs(file, inner, body);
    opdi_c_write_inner_groups(file, body, false);
    opdi_c_write_inner_next(file, inner, body);
    opdi_c_write_close(file, 1);
}
static void opdi_c_write_inner_cond(opdi_cfile *file, const opdi_inner *inner) {
    for (int i = 0; i < 2; i++) {
        const opdi_inner_body *const body = &inner->bodies[i];
        opdi_c_write_open(file, i ? "} else {" : "if (*a0) {");
        opdi_c_write_inner_inputs(file, inner, body, false);
        opdi_c_write_inner_outputs(file, inner, body);
        opdi_c_write_inner_groups(file, body, true);
        opdi_c_write_inner_groups(file, body, false);
        file->indent--;
    }
    opdi_c_write_line(file, "}");
}
/* Returns whether the function of a condition or loop uses operand `at`. */
static bool opdi_inner_reads(const opdi_inner *inner, int at) {
    const int first = inner->kind != OPDI_RECORDED_SCAN;
    if (at < first + inner->ncarried) { return true; }
    for (int k = 0; k < inner->nbodies; k++) {
        const opdi_inner_body *const body = &inner->bodies[k];
        for (int i = 0; i < body->ninputs; i++) {
            if (body->operands[i] == at && body->inputs[i]->first >= 0) { return true; }
        }
    }
    return false;
}
static void opdi_c_write_groups(opdi_cfile *file, opdi_group *first);
/* Writes the functions of the groups in the bodies of a condition or loop, and the function that calls them. */
static void opdi_c_write_inner(opdi_cfile *file, opdi_group *group) {
    const opdi_inner *const inner = group->nests[0]->inner;
    const char *const fixed = file->fixed, *const arena = file->arena;
    char name[64];
    for (int i = 0; i < inner->nbodies; i++) {
        opdi_c_write_groups(file, inner->bodies[i].unit.groups);
    }
    opdi_group_name(group, name);
    if (inner->kind == OPDI_RECORDED_SCAN) {
        opdi_c_write(file, "/* %s: a loop of %lld rounds */\n", inner->what, (long long)inner->length);
    } else {
        opdi_c_write(file, "/* %s: a %s */\n", inner->what, inner->kind == OPDI_RECORDED_WHILE ? "loop" : "condition");
    }
    opdi_c_write(file, "%sint %s(const %s *model, unsigned char *arena", file->table ? "GROUP " : "static ", name,
                 file->model);
    for (int i = 0; i < inner->noperands; i++) {
        opdi_c_write(file, ", const %s *a%d", opdi_c_type(inner->operands[i].dtype), i);
    }
    for (int i = 0; i < inner->nresults - (inner->kind == OPDI_RECORDED_WHILE); i++) {
        opdi_c_write(file, ", %s *r%d", opdi_c_type(inner->results[i].dtype), i);
    }
    opdi_c_write(file, ") {\n");
    file->indent = 1;
    file->fixed = "fixed";
    file->arena = "arena";
    opdi_c_write_line(file, "int rc = 0;");
    opdi_c_write_line(file, "unsigned char *const fixed = arena + %lld;", (long long)inner->fixed);
    opdi_c_write_line(file, "(void)model; (void)fixed;");
    for (int i = 0; i < inner->noperands; i++) {
        if (!opdi_inner_reads(inner, i)) { opdi_c_write_line(file, "(void)a%d;", i); }
    }
    if (inner->kind == OPDI_RECORDED_SCAN) { opdi_c_write_inner_scan(file, inner); }
    else if (inner->kind == OPDI_RECORDED_WHILE) { opdi_c_write_inner_while(file, inner); }
    else { opdi_c_write_inner_cond(file, inner); }
    opdi_c_write_line(file, "return rc;");
    opdi_c_write(file, "}\n");
    file->fixed = fixed;
    file->arena = arena;
}
/* Writes the functions of groups. */
static void opdi_c_write_groups(opdi_cfile *file, opdi_group *first) {
    for (opdi_group *group = first; group && !file->failed; group = group->next) {
        const opdi_inner *const inner = group->nests[0]->inner;
        if (file->table && (!inner || inner->group == group)) { opdi_c_write(file, "\f\n"); }
        if (!inner) { opdi_c_write_group(file, group); }
        else if (inner->group == group) { opdi_c_write_inner(file, group); }
    }
}

//== functions that users call, and files ==============================================================================

/* Writes the functions that users call: init, run and call. */
static void opdi_c_write_functions(opdi_cfile *file, opdi_unit *unit) {
    const char *const name = unit->name;
    const opdi_recording *const recording = &unit->recording;
    file->indent = 1;
    if (file->table) { opdi_c_write_pack(file, unit); }
    opdi_c_write(file, "\nint %s_init(%s *model, const void *weights, void *fixed, void *arena) {\n    int rc = 0;\n",
        name, name);
    opdi_c_write(file, "    model->weights = (const unsigned char *)weights;\n"
                 "    model->fixed = (unsigned char *)fixed;\n"
                 "    model->arena = (unsigned char *)arena;\n");
    for (int i = 0; i < recording->nbuffers; i++) {
        const opdi_buffer *const buffer = recording->buffers[i];
        if (buffer->role == OPDI_BUFFER_CONSTANT && buffer->place >= 0) {
            opdi_c_write(file, "    memcpy(model->fixed + %lld, model->weights + %lld, %lld);   /* %s */\n",
                (long long)buffer->place,
                         (long long)buffer->index, (long long)buffer->bytes, buffer->name);
        }
    }
    for (opdi_group *group = unit->groups; group; group = group->next) {
        const bool later = file->table && group->nests[0]->kernel;
        if (!later && opdi_group_contracts(group)) { opdi_c_write_early_calls(file, group); }
    }
    for (opdi_group *group = unit->groups; group; group = group->next) {
        if (group->early) { opdi_c_write_call(file, unit, group); }
    }
    opdi_c_write(file, "    return rc;\n}\n\n");
    opdi_c_write_signature(file, unit);
    opdi_c_write(file, " {\n    int rc = 0;\n    (void)model;\n");
    for (int i = 0; i < unit->nopen; i++) {
        const char *const end = opdi_open_suffixes[i];
        opdi_c_write(file, "    if (open_size%s < %s_LEAST%s || open_size%s > %s_MOST%s) { return 3; }\n", end, name,
                     end,
                     end, name, end);
    }
    for (int i = 0; i < unit->ninputs; i++) { opdi_c_write(file, "    (void)%s;\n", unit->inputs[i].buffer->name); }
    for (int i = 0; i < unit->noutputs; i++) {
        const opdi_buffer *const buffer = unit->outputs[i].buffer;
        if (!buffer->used) { opdi_c_write(file, "    (void)%s;\n", buffer->name); }   /* a buffer without elements is
                                                                                         not used */
    }
    for (opdi_group *group = unit->groups; group; group = group->next) {
        if (!group->early) { opdi_c_write_call(file, unit, group); }
    }
    opdi_c_write(file, "    return rc;\n}\n\n");
    opdi_c_write(file, "int %s_call(const %s *model, ", name, name);
    opdi_c_write_open_sizes(file, unit, "ptrdiff_t ", ", ");
    opdi_c_write(file, "void *const *inputs, void *const *outputs) {\n    (void)inputs;\n    (void)outputs;\n"
                 "    return %s_run(model", name);
    opdi_c_write_open_sizes(file, unit, ", ", "");
    for (int i = 0; i < unit->ninputs; i++) {
        opdi_c_write(file, ", (%s *)inputs[%d]", opdi_c_type(unit->inputs[i].buffer->dtype), i);
    }
    for (int i = 0; i < unit->noutputs; i++) {
        opdi_c_write(file, ", (%s *)outputs[%d]", opdi_c_type(unit->outputs[i].buffer->dtype), i);
    }
    opdi_c_write(file, ");\n}\n");
}
#if defined(OPDI_COMPILES)
/* Returns the number of texts into which functions with this number of bytes are divided: at most one for each
   processor, because each text costs the compiler a tenth of a second. */
static size_t opdi_c_parts(size_t bytes) {
    return OPDI_MAX((size_t)1, OPDI_MIN(bytes / 10000, OPDI_MIN((size_t)opdi_processors(), (size_t)8)));
}
/* Adds prototypes of the functions in `groups` to `out`: the lines that begin with GROUP, up to the brace. */
static void opdi_c_write_prototypes(const char *groups, opdi_string *out) {
    for (const char *line = groups; (line = strstr(line, "\nGROUP ")) != NULL; line++) {
        const size_t length = strcspn(line + 1, "{");
        opdi_string_add_n(out, line + 1, length);
        opdi_string_add(out, ";\n");
    }
}
/* Divides code for this process into a list of texts, which each end with a 0, so that compilers can work on several of
   them at the same time.  In `text`, a form feed is before each function of a group and before the code after them. */
OPDI_INTERNAL void opdi_c_divide(const opdi_string *text, opdi_string *list) {
    const char *const groups = strchr(text->data, '\f'), *const last = strrchr(text->data, '\f'), *at = groups;
    const size_t all = (size_t)(last - groups), parts = opdi_c_parts(all);
    opdi_string prototypes = {NULL, 0, 0, false};
    opdi_string_add(&prototypes, parts > 1 ? "#if (defined(__GNUC__) || defined(__clang__)) && !defined(_WIN32)\n"
                    "#define GROUP APART __attribute__((visibility(\"hidden\")))\n"
                    "#else\n#define GROUP APART\n#endif\n" : "#define GROUP APART static\n");
    if (parts > 1) { opdi_c_write_prototypes(groups, &prototypes); }
    for (size_t part = 1; part <= parts && !prototypes.failed; part++) {
        const char *end = part == parts ? last : OPDI_MAX(at, groups + all * part / parts);
        while (*end != '\f') { end++; }
        opdi_string_add_n(list, text->data, (size_t)(groups - text->data));
        opdi_string_add_n(list, prototypes.data, prototypes.length);
        opdi_string_add_n(list, at, (size_t)(end - at));
        if (part == parts) { opdi_string_add(list, last); }
        opdi_string_add_n(list, "", 1);
        at = end;
    }
    list->failed = list->failed || prototypes.failed;
    opdi_string_free(&prototypes);
}
#endif
/* Writes the C text to `source`, and the text of the header to `header`.  If unit->file is true, the C text includes
   the header; otherwise it contains the text of the header.  opdi_c_divide divides code for this process.  Returns
   0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_unit_text(opdi_unit *unit, opdi_string *source, opdi_string *header) {
    opdi_string groups = {NULL, 0, 0, false};
    opdi_cfile file;
    memset(&file, 0, sizeof file);
    file.table = unit->here;
    file.open = unit->nopen;
    file.model = unit->name;
    file.fixed = "model->fixed";
    file.arena = "model->arena";
    file.out = &groups;
    opdi_c_write_groups(&file, unit->groups);
    file.out = header;
    opdi_c_write_header(&file, unit);
    file.out = source;
    opdi_c_write(&file, "/* The comment above each function has the names of its operators and the sizes of its "
                 "loops.\n   Sizes of loops that are summed follow a bar. */\n");
    const bool calls = unit->file && unit->recording.called;
    if (calls) { opdi_c_write(&file, "#include \"opdispatch.h\"       /* has the operators that are called */\n"); }
    if (unit->file) { opdi_c_write(&file, "#include \"%s.h\"\n", unit->name); }
    else if (header->length) { opdi_string_add_n(source, header->data, header->length); }
    opdi_string_add(source, opdi_c_prelude);
    if (!unit->here && opd_same_bits()) { opdi_string_add(source, opdi_c_apart); }
    for (int i = 0; i < OPDI_C_HELPERS; i++) {
        if (file.helpers[i / 64] >> (i % 64) & 1) { opdi_string_add(source, opdi_c_helpers[i].text); }
    }
    opdi_c_write_families(&file);
    if (calls) { opdi_string_add(source, opdi_c_given); }
    if (groups.length) { opdi_string_add_n(source, groups.data, groups.length); }
    if (file.table) { opdi_string_add(source, "\f"); }
    opdi_c_write_functions(&file, unit);
    const bool failed = file.failed || groups.failed || source->failed || header->failed;
    opdi_string_free(&groups);
    opdi_arena_free(&file.memory);
    if (failed && opd_ok()) { (void)opd_fail(OPD_ERROR_MEMORY, "%s: the text is too long", unit->what); }
    return failed ? -1 : 0;
}
/* Writes the weights to a file; each begins at a multiple of 64 bytes.  Returns 0, or -1 and sets an error. */
static int opdi_unit_weights(const opdi_unit *unit, opdi_sink *sink) {
    static const char zeros[64] = {0};
    for (int i = 0; i < unit->recording.nbuffers; i++) {
        const opdi_buffer *const buffer = unit->recording.buffers[i];
        if (buffer->role != OPDI_BUFFER_CONSTANT || buffer->first < 0) { continue; }
        if (opdi_sink_put(sink, buffer->data, buffer->bytes) ||
            opdi_sink_put(sink, zeros, (64 - buffer->bytes % 64) % 64)) { return -1; }
    }
    return 0;
}
/* Writes the file `folder`/NAME`end`, completely or not at all.  The contents are `text` or, if `text` is NULL, the
   weights.  Returns 0, or -1 and sets an error. */
static int opdi_unit_file(const opdi_unit *unit, const char *folder, const char *end, const opdi_string *text) {
    opdi_sink sink;
    const size_t size = strlen(folder) + strlen(unit->name) + strlen(end) + 2;
    char *const path = (char *)opdi_scope_alloc(size);
    if (!path) { return -1; }
    (void)snprintf(path, size, "%s/%s%s", folder, unit->name, end);
    if (opdi_sink_open(&sink, unit->what, path)) { return -1; }
    return opdi_sink_close(&sink, text ? opdi_sink_put(&sink, text->data, text->length) : opdi_unit_weights(unit,
        &sink));
}
OPDI_INTERNAL int opdi_unit_files(opdi_unit *unit, const char *folder, const opdi_string *source,
                                  const opdi_string *header) {
    return opdi_unit_file(unit, folder, ".weights", NULL) || opdi_unit_file(unit, folder, ".c", source) ||
        opdi_unit_file(unit, folder, ".h", header) ? -1 : 0;
}
OPDI_INTERNAL int opdi_unit_write(opdi_unit *unit, const char *folder) {
    opdi_string source = {NULL, 0, 0, false}, header = {NULL, 0, 0, false};
    unit->file = true;
    const int rc = opdi_unit_text(unit, &source, &header) || opdi_unit_files(unit, folder, &source, &header) ? -1 : 0;
    opdi_string_free(&source);
    opdi_string_free(&header);
    return rc;
}
