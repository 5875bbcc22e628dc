#include "compiler.h"

//== conditions and loops, written as C functions ======================================================================

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
/* Writes the call of the function of a condition or loop. */
OPDI_INTERNAL void opdi_c_write_inner_call(opdi_cfile *file, opdi_group *group) {
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
/* Writes the functions of the groups in the bodies of a condition or loop, and the function that calls them. */
OPDI_INTERNAL void opdi_c_write_inner(opdi_cfile *file, opdi_group *group) {
    const opdi_inner *const inner = group->nests[0]->inner;
    const char *const fixed = file->fixed, *const arena = file->arena;
    char name[64];
    for (int i = 0; i < inner->nbodies; i++) {
        for (opdi_group *in = inner->bodies[i].unit.groups; in && !file->failed; in = in->next) {
            opdi_c_write_group(file, in);
        }
    }
    opdi_group_name(group, name);
    if (inner->kind == OPDI_RECORDED_SCAN) {
        opdi_c_write(file, "/* %s: a loop of %lld rounds */\n", inner->what, (long long)inner->length);
    } else {
        opdi_c_write(file, "/* %s: a %s */\n", inner->what, inner->kind == OPDI_RECORDED_WHILE ? "loop" : "condition");
    }
    opdi_c_write(file, "static int %s(const %s *model, unsigned char *arena", name, file->model);
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
