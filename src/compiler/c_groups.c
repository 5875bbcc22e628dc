#include "compiler.h"

//== groups of nests: the buffers that they use, and their names =======================================================

/* What follows "open_size" in the name of each open size. */
OPDI_INTERNAL const char opdi_open_suffixes[OPDI_OPEN_SIZES][3] = {"", "_2", "_3", "_4"};

OPDI_INTERNAL int opdi_group_uses(opdi_group *group, opdi_group_buffers *buffers) {
    opdi_group_find_buffers(group, buffers);
    return buffers->count < OPDI_GROUP_BUFFERS ? 0
        : opd_fail(OPD_ERROR_ARGUMENT, "a group of loops reads and writes more than %d buffers",
            OPDI_GROUP_BUFFERS);
}
static void opdi_c_write_sizes(opdi_cfile *file, const opdi_nest *nest) {
    for (int i = 0; i < nest->ndim; i++) {
        if (i == nest->ndim - nest->nreduce) { opdi_c_write(file, "%s|", i ? " " : ""); }
        opdi_c_write(file, "%s%lld", i ? " " : "", (long long)nest->sizes[i]);
    }
}
OPDI_INTERNAL bool opdi_group_contracts(const opdi_group *group) {
    return group->nnests == 1 && opdi_nest_contracts(group->nests[0]);
}
/* Writes a group's name to `name`: "k3_add" for group 3, if the operator add has recorded its last nest; "k1_3_add" if
   the group is in body 1 of a condition or loop.  If an earlier group has the same C function, it is the name of that
   group. */
OPDI_INTERNAL void opdi_group_name(const opdi_group *group, char name[64]) {
    if (group->same) { group = group->same; }
    const char *what = group->nests[group->nnests - 1]->what;
    size_t length = (size_t)(group->inside ? snprintf(name, 64, "k%d_%d_", (int)group->inside, (int)group->id)
        : snprintf(name, 64, "k%d_", (int)group->id));
    for (what = what ? what : "copy"; *what && length < 40; what++) {
        name[length++] = opdi_c_letter(*what) ? *what : '_';
    }
    name[length] = 0;
}
//== calls of operators ================================================================================================
//
//  If the code in a file may call operators, the file has C functions for these calls.  They make tensors of the bytes
//  in a buffer and call functions of opdispatch.

static void opdi_c_write_given(opdi_cfile *file, const opdi_extern_call *called, const opd_value *value, const char *to,
                               bool written);
/* Writes a line that declares the array `name` of `count` sizes or strides. */
static void opdi_c_write_dims(opdi_cfile *file, const char *name, const int64_t *sizes, int count) {
    opdi_c_write_indent(file);
    opdi_c_write(file, "static const int64_t %s[] = {", name);
    for (int i = 0; i < count; i++) { opdi_c_write(file, "%lld, ", (long long)sizes[i]); }
    opdi_c_write(file, "0};\n");
}
/* Writes lines that set the C variable `to` to tensor number `number` of a call's arguments.  If `written` is true, the
   operator writes the tensor, so the variable is set to a copy. */
static void opdi_c_write_tensor(opdi_cfile *file, const opdi_extern_call *called, int64_t number, const char *to,
                                bool written) {
    const opdi_extern_tensor *const slot = &called->in[number];
    char name[24];
    (void)snprintf(name, sizeof name, "v%d", (int)++file->next);
    if (slot->place == -1) {
        opdi_c_write_line(file, "%s = NULL;", to);
    } else if (slot->place == OPDI_EXTERN_NUMBER) {
        const opd_value is = opdi_extern_number(slot);
        opdi_c_write_line(file, "opd_value %s;", name);
        opdi_c_write_given(file, called, &is, name, false);
        opdi_c_write_line(file, "%s = opd_tensor_wrapped_number(%s);", to, name);
    } else {
        char strides[32] = "NULL";
        opdi_c_write_dims(file, name, slot->sizes, slot->ndim);
        if (slot->laid) {
            (void)snprintf(strides, sizeof strides, "%s_strides", name);
            opdi_c_write_dims(file, strides, slot->strides, slot->ndim);
        }
        if (written && !slot->laid) {
            opdi_c_write_line(file, "%s = opd_tensor_from(in + %lld, opd_ints_of(%s, %d), (opd_scalar_type)%d);", to,
                              (long long)slot->place, name, (int)slot->ndim, (int)slot->dtype);
            return;
        }
        opdi_c_write_line(file, "%s = opd_tensor_wrap((void *)(in + %lld), opd_ints_of(%s, %d), %s, "
                          "(opd_scalar_type)%d, NULL, NULL);", to, (long long)slot->place, name, (int)slot->ndim,
                          strides, (int)slot->dtype);
        if (written) {
            opdi_c_write_line(file, "%s = opd_copy_(opd_empty_strided(opd_ints_of(%s, %d), opd_ints_of(%s, %d), "
                              "(opd_scalar_type)%d), %s);", to, name, (int)slot->ndim, strides, (int)slot->ndim,
                              (int)slot->dtype, to);
        }
    }
}
/* Writes an array variable that has the elements of `value`, an argument of a call.  Then writes a line that stores the
   array in the C variable `to`. */
static void opdi_c_write_array(opdi_cfile *file, const opdi_extern_call *called, const opd_value *value, const char *to,
                               bool written) {
    static const char *const kinds[OPD_TAG_COUNT] = {
        NULL, NULL, NULL, NULL, NULL, "complex", NULL, NULL, NULL, "ints", "floats", "bools", "tensors", "list"};
    static const char *const types[OPD_TAG_COUNT] = {
        NULL, NULL, NULL, NULL, NULL, "double", NULL, NULL, NULL, "int64_t", "double", "bool", "opd_tensor *",
        "opd_value"};
    const int count = value->tag == OPD_TAG_COMPLEX ? 2 : value->n, id = (int)++file->next;
    opdi_c_write_line(file, "%s v%d[%d];", types[value->tag], id, OPDI_MAX(count, 1));
    for (int i = 0; i < count; i++) {
        char place[48];
        (void)snprintf(place, sizeof place, "v%d[%d]", id, i);
        if (value->tag == OPD_TAG_TENSORS) {
            opdi_c_write_tensor(file, called, value->u.i + i, place, written);
            continue;
        }
        if (value->tag == OPD_TAG_LIST) {
            opdi_c_write_given(file, called, &value->u.list[i], place, written);
            continue;
        }
        opdi_c_write_indent(file);
        opdi_c_write(file, "%s = ", place);
        if (value->tag == OPD_TAG_INTS) { opdi_c_write_number(file, OPD_INT64, 0, value->u.ints[i]); }
        else if (value->tag == OPD_TAG_BOOLS) { opdi_c_write(file, "%d", value->u.bools[i]); }
        else {
            opdi_c_write_number(file, OPD_FLOAT64, (value->tag == OPD_TAG_COMPLEX ? value->u.c : value->u.floats)[i],
                                0);
        }
        opdi_c_write(file, ";\n");
    }
    if (value->tag == OPD_TAG_COMPLEX) { opdi_c_write_line(file, "%s = opd_value_complex(v%d);", to, id); }
    else { opdi_c_write_line(file, "%s = opd_value_%s(v%d, %d);", to, kinds[value->tag], id, count); }
}
/* Writes lines that set `to`, an argument of a call such as "args[2]", to `value`.  An example is "args[2] =
   opd_value_int(3);". */
static void opdi_c_write_given(opdi_cfile *file, const opdi_extern_call *called, const opd_value *value, const char *to,
                               bool written) {
    char name[24];
    switch (value->tag) {
    case OPD_TAG_TENSOR:
        (void)snprintf(name, sizeof name, "v%d", (int)++file->next);
        opdi_c_write_line(file, "opd_tensor *%s;", name);
        opdi_c_write_tensor(file, called, value->n, name, written);
        opdi_c_write_line(file, "%s = opd_value_tensor(%s);", to, name);
        break;
    case OPD_TAG_INT: case OPD_TAG_BOOL: case OPD_TAG_FLOAT:
        opdi_c_write_indent(file);
        opdi_c_write(file, "%s = opd_value_%s(", to, value->tag == OPD_TAG_INT ? "int"
                     : value->tag == OPD_TAG_BOOL ? "bool" : "float");
        opdi_c_write_number(file, value->tag == OPD_TAG_FLOAT ? OPD_FLOAT64 : OPD_INT64,
                            value->tag == OPD_TAG_FLOAT ? value->u.d : 0, value->tag == OPD_TAG_FLOAT ? 0 : value->u.i);
        opdi_c_write(file, ");\n");
        break;
    case OPD_TAG_STR:
        opdi_c_write_indent(file);
        opdi_c_write(file, "%s = opd_value_str(\"", to);
        for (const char *at = value->u.s; *at; at++) {
            const bool plain = opdi_c_letter(*at) || *at == ' ' || *at == ',' || *at == '.' || *at == '-' || *at == '>';
            opdi_c_write(file, plain ? "%c" : "\\%03o", plain ? *at : (int)(unsigned char)*at);
        }
        opdi_c_write(file, "\");\n");
        break;
    case OPD_TAG_DEVICE: opdi_c_write_line(file, "%s = opd_value_device(opd_device_make(OPD_CPU, -1));", to); break;
    case OPD_TAG_DEFAULT: opdi_c_write_line(file, "%s = opd_value_default();", to); break;
    case OPD_TAG_NONE: opdi_c_write_line(file, "%s = opd_value_none();", to); break;
    default: opdi_c_write_array(file, called, value, to, written); break;
    }
}
/* The text of a C function that copies a result of a call to the output buffer of the call. */
OPDI_INTERNAL const char opdi_c_given[] =
    "static int called_gives(const opd_value *value, int element, uint8_t *to, const int64_t *sizes, int ndim,\n"
    "                        opd_scalar_type dtype) {\n"
    "    opd_tensor *tensor = element < 0 && value->tag == OPD_TAG_TENSOR ? value->u.t\n"
    "        : element >= 0 && value->tag == OPD_TAG_TENSORS && element < value->n ? value->u.tensors[element]\n"
    "        : NULL;\n"
    "    if (!tensor || opd_dtype(tensor) != dtype || opd_ndim(tensor) != ndim ||\n"
    "        memcmp(opd_sizes(tensor), sizes, (size_t)ndim * sizeof *sizes) != 0) {\n"
    "        (void)opd_fail(OPD_ERROR_KERNEL, \"an operator gives other results than its fake kernel says\");\n"
    "        return 4;\n"
    "    }\n"
    "    tensor = opd_copy_(opd_tensor_wrap(to, opd_ints_of(sizes, ndim), NULL, dtype, NULL, NULL), tensor);\n"
    "    return tensor && opd_ok() ? 0 : 4;\n"
    "}\n";
/* Writes the C function that calls an operator.  Code that runs in this process calls opdi_c_model.call instead, and
   needs no such function. */
static void opdi_c_write_extern(opdi_cfile *file, opdi_group *group) {
    const opdi_extern_call *const called = group->nests[0]->called;
    char name[64], place[32];
    if (file->table) { return; }
    file->next = 0;
    opdi_group_name(group, name);
    opdi_c_write(file, "/* %s */\nstatic int %s(const uint8_t *in, uint8_t *out) {\n", opd_op_name(called->op), name);
    file->indent = 1;
    opdi_c_write_line(file, "opd_scope scope = opd_scope_open();");
    opdi_c_write_line(file, "opd_value args[%d], rets[%d];", OPDI_MAX(called->nargs, 1),
                      OPDI_MAX(called->op->nrets, 1));
    for (int i = 0; i < called->nargs; i++) {
        (void)snprintf(place, sizeof place, "args[%d]", i);
        opdi_c_write_given(file, called, &called->args[i], place, called->written >> i & 1);
    }
    opdi_c_write_line(file, "int rc = opd_call_all(opd_find(\"%s\"), rets, args, %d) || !opd_ok() ? 4 : 0;",
                      opd_op_name(called->op), (int)called->nargs);
    for (int i = 0; i < called->nout; i++) {
        const opdi_extern_tensor *const slot = &called->out[i];
        (void)snprintf(place, sizeof place, "sizes_%d", i);
        opdi_c_write_dims(file, place, slot->sizes, slot->ndim);
        opdi_c_write_line(file,
                          "rc = rc ? rc : called_gives(&%s[%d], %d, out + %lld, sizes_%d, %d, (opd_scalar_type)%d);",
                          slot->from < 0 ? "args" : "rets", (int)(slot->from < 0 ? ~slot->from : slot->from),
                          (int)slot->element, (long long)slot->place, i, (int)slot->ndim, (int)slot->dtype);
    }
    opdi_c_write_line(file, "(void)in;");
    opdi_c_write_line(file, "(void)out;");
    opdi_c_write_line(file, "opd_scope_close(&scope);");
    opdi_c_write_line(file, "return rc;");
    opdi_c_write(file, "}\n");
}

//== groups of nests, written as C functions ===========================================================================

/* Writes the C functions of a group, which use these buffers. */
static void opdi_c_write_function(opdi_cfile *file, opdi_group *group, const opdi_group_buffers *buffers) {
    char name[64];
    const bool product = opdi_group_contracts(group);
    file->group = group;
    file->next = 0;
    opdi_group_name(group, name);
    if (product) {
        opdi_contraction all;
        opdi_contraction_of(&all, group->nests[0]);
        opdi_c_write_early_packs(file, &all, name);
    }
    opdi_c_write(file, "/* ");
    for (int i = 0; i < group->nnests; i++) {
        const opdi_nest *const nest = group->nests[i];
        opdi_c_write(file, "%s%s: ", i ? ";\n   " : "", nest->what ? nest->what : "copy");
        opdi_c_write_sizes(file, nest);
    }
    opdi_c_write(file, " */\n%sint %s(", opdi_c_linkage(file), name);
    bool any = false;
    for (int i = 0; i < buffers->count; i++) {
        char buffer[64];
        if (buffers->all[i]->group) { continue; }
        opdi_c_name(buffers->all[i], buffer);
        opdi_c_write(file, "%s%s%s *RESTRICT %s", any ? ", " : "", buffers->written[i] ? "" : "const ",
                 opdi_c_type(buffers->all[i]->dtype), buffer);
        any = true;
    }
    const bool wide = product && group->nests[0]->value->dtype == OPD_FLOAT64;
    if (product) {
        opdi_c_write(file, ", %s *RESTRICT left_rows, %s *RESTRICT right_rows", wide ? "double" : "float", wide
            ? "double" : "float");
    }
    const int nopen = group->early ? 0 : file->open;
    for (int i = 0; i < nopen; i++) { opdi_c_write(file, ", ptrdiff_t open_size%s", opdi_open_suffixes[i]); }
    opdi_c_write(file, ") {\n");
    for (int i = 0; i < nopen; i++) { opdi_c_write(file, "    (void)open_size%s;\n", opdi_open_suffixes[i]); }
    file->indent = 1;
    for (int i = 0; i < group->outer; i++) { opdi_c_write_for(file, i, group->nests[0]->sizes[i]); }
    for (int i = 0; i < buffers->count; i++) {
        char buffer[64];
        int64_t low = 0, high = 0;
        if (!buffers->all[i]->group) { continue; }
        for (int k = 0; k < group->nnests; k++) {
            const opdi_nest *const nest = group->nests[k];
            if (nest->out.buffer == buffers->all[i]) {
                opdi_access_range(&nest->out, nest, group->outer, nest->ndim - nest->nreduce, &low, &high);
            }
        }
        opdi_c_name(buffers->all[i], buffer);
        opdi_c_write_line(file, "%s %s[%lld];", opdi_c_type(buffers->all[i]->dtype), buffer,
                          (long long)(high - low + 1));
    }
    for (int i = 0; i < group->nnests; i++) {
        if (product) { opdi_c_write_contraction(file, group->nests[i]); }
        else { opdi_c_write_nest(file, group->nests[i], group->outer); }
    }
    opdi_c_write_close(file, group->outer);
    opdi_c_write(file, "    return 0;\n}\n");
}
/* Writes a copy of `text`, the C functions of a group, to `out`.  The copy has numbers in the place of the names of
   buffers, and no name of the group. */
static void opdi_c_write_nameless(const opdi_group *group, const opdi_group_buffers *buffers, const char *text,
                                  opdi_string *out) {
    char own[64], names[OPDI_GROUP_BUFFERS][64];
    int numbers[OPDI_GROUP_BUFFERS], count = 0;
    opdi_group_name(group, own);
    const size_t shared = strlen(own);
    for (int i = 0; i < buffers->count; i++) {
        opdi_c_name(buffers->all[i], names[i]);
        numbers[i] = -1;
    }
    while (*text) {
        size_t length = 0;
        char number[16];
        int at = 0;
        while (opdi_c_letter(text[length])) { length++; }
        while (at < buffers->count && (strncmp(names[at], text, length) != 0 || names[at][length])) { at++; }
        if (length && at < buffers->count) {
            if (numbers[at] < 0) { numbers[at] = count++; }
            opdi_string_add_n(out, number, (size_t)snprintf(number, sizeof number, "@%d", numbers[at]));
        } else if (length >= shared && strncmp(own, text, shared) == 0) {
            opdi_string_add(out, "@");
            opdi_string_add_n(out, text + shared, length - shared);
        } else { opdi_string_add_n(out, text, OPDI_MAX(length, (size_t)1)); }
        text += OPDI_MAX(length, (size_t)1);
    }
}
/* Sets group->same to an earlier group with the same C functions, except for names, and removes the functions of this
   group, which are the text from byte `start` on.  If there is none, later groups may find this group. */
static void opdi_c_share(opdi_cfile *file, opdi_group *group, const opdi_group_buffers *buffers, size_t start) {
    opdi_string text = {NULL, 0, 0, false};
    if (file->out->failed) { return; }
    opdi_c_write_nameless(group, buffers, file->out->data + start, &text);
    group->same = text.failed ? NULL : (const opdi_group *)opdi_index_get(&file->functions, text.data, text.length);
    if (group->same) {
        file->out->length = start;
        file->out->data[start] = 0;
    } else {
        const char *const key = text.failed ? NULL : opdi_arena_copy(&file->memory, text.data, text.length);
        file->failed = file->failed || !key ||
            opdi_index_set(&file->functions, &file->memory, key, text.length, group);
    }
    opdi_string_free(&text);
}
/* Writes the C functions of a group.  If an earlier group, such as that of another layer, has the same loops, its
   functions are called instead. */
OPDI_INTERNAL void opdi_c_write_group(opdi_cfile *file, opdi_group *group) {
    opdi_group_buffers buffers;
    const size_t start = file->out->length;
    if (group->nests[0]->called) {
        opdi_c_write_extern(file, group);
        return;
    }
    group->same = NULL;
    opdi_group_uses(group, &buffers);
    opdi_c_write_function(file, group, &buffers);
    opdi_c_share(file, group, &buffers, start);
    const opdi_nest_kernel *const kernel = group->nests[0]->kernel;
    if (!kernel || !kernel->after) { return; }
    kernel->after->id = group->id;
    kernel->after->inside = group->inside;
    opdi_c_write_group(file, kernel->after);
}
