#include "script.h"

//== statements ========================================================================================================

/* Assigns a value to the variable `name`.  `declared` is the type in the annotation, or NULL.  Returns 0, or -1 and
   sets an error. */
static int opdi_statement_set(opdi_emitter *task, const char *name, opdi_gvalue *value, const opdi_gtype *declared) {
    char is[200], was[200];
    const opdi_script_var *here = opdi_script_frame_find(task->frame, name);
    const opdi_script_var *outer = opdi_script_var_find(task->frame->up, name);
    const opdi_gtype *type = declared ? declared : here && here->type && opdi_gtype_fits(opdi_emit_type(value),
        here->type) && here->type->kind == OPDI_GTYPE_OPTIONAL ? here->type : opdi_emit_type(value);
    if (outer && outer->sugared.kind == OPDI_SUGARED_VALUE && outer->type) {
        if (!opdi_gtype_fits(opdi_emit_type(value), outer->type)) {
            opdi_gvalue *changed = opdi_emit_convert(task, value, outer->type, false);
            if (!changed) { return -1; }
            if (!opdi_gtype_fits(opdi_emit_type(changed), outer->type)) {
                return OPDI_EMIT_FAIL(task, "Variable '%s' previously had type %s but is now being assigned to a value "
                                      "of type %s", name, opdi_emit_type_text(outer->type, was, sizeof was),
                                      opdi_emit_type_text(opdi_emit_type(value), is, sizeof is));
            }
            value = changed;
        }
        type = outer->type;
    }
    opdi_emit_name(task, value, name);
    const opdi_script_frame *frame = task->frame;
    while (frame->rest && frame->up) { frame = frame->up; }
    if (frame->up && opdi_script_var_find(frame->up, name)) { opdi_emit_loaded(task, name); }
    value->first = value->first || opdi_emit_means(name);
    return opdi_script_var_put(task, name, opdi_sugared_value(value), type);
}
/* Converts a number to a tensor with the dtype and device of `like`, so that it can be written into `like`.  Returns
   the tensor, or NULL and sets an error. */
static opdi_gvalue *opdi_emit_as_tensor(opdi_emitter *task, opdi_gvalue *value, opdi_gvalue *like) {
    const char *const names[] = {"dtype", "device"};
    opdi_gvalue *args[3] = {NULL, NULL, NULL};
    if (!value || opdi_emit_is(value, OPDI_GTYPE_TENSOR) || !like) { return value; }
    task->nowhere = true;
    args[0] = value;
    args[1] = opdi_emit_op1(task, "prim::dtype", like);
    args[2] = opdi_emit_op1(task, "prim::device", like);
    value = args[1] && args[2] ? opdi_emit_op(task, "aten::tensor", args, 3, names, 2) : NULL;
    task->nowhere = false;
    return value;
}
/* Compiles target[...] = value.  Returns 0, or -1 and sets an error. */
static int opdi_statement_set_item(opdi_emitter *task, const opdi_syntax *target, opdi_gvalue *value) {
    opdi_gvalue *tensors[OPDI_SCRIPT_ARGS], *args[3] = {NULL, NULL, NULL};
    opdi_gvalue *into = opdi_emit_expr(task, target->parts[0], NULL);
    if (!into) { return -1; }
    if (opdi_emit_is(into, OPDI_GTYPE_TENSOR)) {
        const int count = opdi_emit_indices(task, &into, target, tensors);
        if (count < 0 || !(value = opdi_emit_as_tensor(task, value, into))) { return -1; }
        if (!count) { return opdi_emit_op2(task, "aten::copy_", into, value) ? 0 : -1; }
        return opdi_emit_op3(task, "aten::index_put_", into, opdi_emit_index_list(task, tensors, count), value) ? 0
            : -1;
    }
    if (target->nparts != 2 || target->parts[1]->kind == OPDI_SYNTAX_SLICE) {
        return OPDI_EMIT_FAIL(task, "Sliced expression not yet supported for subscripted assignment of a list");
    }
    args[0] = into;
    if (!(args[1] = opdi_emit_expr(task, target->parts[1], NULL))) { return -1; }
    args[2] = value;
    if (opdi_emit_is(into, OPDI_GTYPE_CLASS)) {
        return opdi_emit_method(task, into, "__setitem__", args + 1, 2) ? 0 : -1;
    }
    const opdi_gtype *type = opdi_emit_type(into);
    if ((type->kind == OPDI_GTYPE_DICT || type->kind == OPDI_GTYPE_LIST) &&
        !(args[2] = opdi_emit_convert(task, value, type->parts[type->nparts - 1], true))) { return -1; }
    return opdi_emit_op(task, "aten::_set_item", args, 3, NULL, 0) ? 0 : -1;
}
/* Compiles object.name = value.  In the method __init__ of a class from source text, the first assignment creates the
   attribute; `declared` is the type in its annotation, or NULL.  Returns 0, or -1 and sets an error. */
static int opdi_statement_set_attr(opdi_emitter *task, const opdi_syntax *target, opdi_gvalue *value,
                                   const opdi_gtype *declared) {
    char said[200];
    opdi_gvalue *object = opdi_emit_expr(task, target->parts[0], NULL);
    if (!object) { return -1; }
    if (!opdi_emit_is(object, OPDI_GTYPE_CLASS)) {
        return OPDI_EMIT_FAIL(task, "cannot set an attribute of this value");
    }
    opdi_gclass *gclass = opdi_emit_type(object)->klass;
    if (gclass->kind == OPDI_CLASS_ENUM) { return OPDI_EMIT_FAIL(task, "a member of an enum cannot be changed"); }
    const opdi_script_class *klass = (const opdi_script_class *)gclass->user;
    int32_t slot = opdi_gclass_slot(gclass, target->word);
    (void)snprintf(said, sizeof said, "%.150s.setter", target->word);
    if (slot < 0 && opdi_emit_method_of(task, object, said)) {
        return opdi_emit_method(task, object, said, &value, 1) ? 0 : -1;
    }
    const bool inside = task->graph->into && task->graph->into != &task->graph->body;
    if (slot < 0 && !gclass->open && klass && klass->state == 1 && inside) {
        return OPDI_EMIT_FAIL(task,
                              "First assignment cannot be in a control-flow block. Initialize the field at the top "
                              "level first");
    }
    if (slot < 0 && (gclass->open || (klass && klass->state == 1))) {
        const char *name = opdi_arena_copy(&task->space->arena, target->word, strlen(target->word));
        const opdi_gtype *type = declared ? declared : opdi_emit_type(value);
        if (!name || (slot = opdi_gclass_add(gclass, name, type, 0)) < 0) { return -1; }
    }
    if (slot >= 0 && value == task->parameter && klass && klass->state == 1) {
        gclass->attributes[slot].flags |= OPDI_SCRIPT_CLASS_PARAMETER;
    }
    if (slot < 0) {
        return OPDI_EMIT_FAIL(task, "Tried to set nonexistent attribute: %s. Did you forget to initialize it in "
                              "__init__()? (%s)", target->word,
                                  opdi_emit_type_text(opdi_emit_type(object), said, sizeof said));
    }
    value = opdi_emit_become(task, value, gclass->attributes[slot].type, "attribute '%s'", target->word);
    return value && opdi_emit_attribute(task, object, gclass->attributes[slot].name, value) ? 0 : -1;
}
/* Assigns a value to a target: a variable, attribute, element, or a tuple of targets.  Returns 0, or -1 and sets an
   error. */
OPDI_INTERNAL int opdi_statement_assign(opdi_emitter *task, const opdi_syntax *target, opdi_gvalue *value) {
    opdi_gvalue *parts[OPDI_SCRIPT_ARGS];
    const opdi_syntax *const before = task->at;
    int rc = 0;
    switch (target->kind) {
    case OPDI_SYNTAX_NAME: return opdi_statement_set(task, target->word, value, NULL);
    case OPDI_SYNTAX_ATTR: return opdi_statement_set_attr(task, target, value, NULL);
    case OPDI_SYNTAX_SUBSCRIPT:
        task->at = target;
        rc = opdi_statement_set_item(task, target, value);
        task->at = before;
        return rc;
    case OPDI_SYNTAX_TUPLE: case OPDI_SYNTAX_LIST: {
        int star = -1;
        for (int i = 0; i < target->nparts; i++) {
            if (target->parts[i]->kind != OPDI_SYNTAX_STAR) { continue; }
            if (star >= 0) { return OPDI_EMIT_FAIL(task, "only one target of an assignment can have a star"); }
            star = i;
        }
        int count = target->nparts;
        if (star >= 0) {
            if (!opdi_emit_is(value, OPDI_GTYPE_TUPLE)) {
                return OPDI_EMIT_FAIL(task, "a target with a star takes the rest of a tuple, but the value is not a "
                                      "tuple");
            }
            if (opdi_emit_type(value)->nparts < count - 1) {
                return OPDI_EMIT_FAIL(task, "need at least %d values to unpack, but there are %d", count - 1,
                                      opdi_emit_type(value)->nparts);
            }
            count = opdi_emit_type(value)->nparts;
        }
        if (count > OPDI_SCRIPT_ARGS) {
            return OPDI_EMIT_FAIL(task, "there are %d targets, which is more than can be used", count);
        }
        if (opdi_emit_unpack(task, value, parts, count)) { return -1; }
        const int extra = count - target->nparts;
        for (int i = 0; !rc && i < target->nparts; i++) {
            if (i == star) {
                opdi_gvalue *rest = opdi_emit_tuple(task, parts + i, extra + 1);
                rc = rest ? opdi_statement_assign(task, target->parts[i]->parts[0], rest) : -1;
            } else { rc = opdi_statement_assign(task, target->parts[i], parts[star >= 0 && i > star ? i + extra : i]); }
        }
        return rc;
    }
    default:
        task->at = target;
        return OPDI_EMIT_FAIL(task, "cannot assign to this");
    }
}
/* Compiles an augmented assignment, such as target += value.  Returns 0, or -1 and sets an error. */
static int opdi_statement_augmented(opdi_emitter *task, const opdi_syntax *node) {
    const opdi_syntax *target = node->parts[0];
    const bool item = target->kind == OPDI_SYNTAX_SUBSCRIPT;
    opdi_gvalue *tensors[OPDI_SCRIPT_ARGS], *old = NULL, *into = NULL;
    int count = 0;
    if (item) {
        if (!(into = opdi_emit_expr(task, target->parts[0], NULL))) { return -1; }
        if (opdi_emit_is(into, OPDI_GTYPE_TENSOR)) {
            opdi_gvalue *part = into;
            if ((count = opdi_emit_indices(task, &part, target, tensors)) < 0) { return -1; }
            into = part;
            old = count ? opdi_emit_op2(task, "aten::index", part, opdi_emit_index_list(task, tensors, count)) : part;
        }
    }
    if (!old && !(old = opdi_emit_expr(task, target, NULL))) { return -1; }
    opdi_gvalue *value = opdi_emit_expr(task, node->parts[1], NULL);
    if (!value) { return -1; }
    task->at = node;
    const bool repeated = node->op == OPDI_SCRIPT_OP_MUL && opdi_emit_is(value, OPDI_GTYPE_INT);
    const bool tensor = opdi_emit_is(old, OPDI_GTYPE_TENSOR);
    const bool list = opdi_emit_is(old, OPDI_GTYPE_LIST) && (!node->op || repeated) && !item;
    if (list && !repeated) { value = opdi_emit_convert(task, value, opdi_emit_type(old), false); }
    char method[24];
    (void)snprintf(method, sizeof method, "__i%s", opdi_script_operators[node->op].method + 2);
    opdi_gvalue *now = value && opdi_emit_method_of(task, old, method)
        ? opdi_emit_method(task, old, method, &value, 1) : (tensor && node->op != OPDI_SCRIPT_OP_MATMUL) || list
        ? opdi_emit_op2(task, opdi_script_operators[node->op].written, old, value)
        : opdi_emit_operator(task, node->op, old, value);
    if (!now) { return -1; }
    if (count) {
        return opdi_emit_op3(task, "aten::index_put_", into, opdi_emit_index_list(task, tensors, count), now) ? 0 : -1;
    }
    if (item && tensor && opdi_emit_is(into, OPDI_GTYPE_TENSOR)) { return 0; }
    if (target->kind == OPDI_SYNTAX_ATTR && (tensor || list)) { return 0; }
    return opdi_statement_assign(task, target, now);
}
/* Compiles `return value`; if `value` is NULL, the end of a function that returns None.  Returns how the statement
   ends. */
OPDI_INTERNAL opdi_script_exit opdi_statement_return(opdi_emitter *task, const opdi_syntax *value) {
    opdi_script_body *body = task->body;
    char is[200], was[200];
    opdi_gvalue *out = value ? opdi_emit_expr(task, value, body->result) : opdi_emit_none(task);
    if (!out) { return OPDI_EXIT_ERROR; }
    if (body->result) {
        if (!(out = opdi_emit_convert(task, out, body->result, true))) { return OPDI_EXIT_ERROR; }
        if (!opdi_gtype_fits(opdi_emit_type(out), body->result)) {
            (void)OPDI_EMIT_FAIL(task, value ? "Return value was annotated as having type %s but is actually of type %s"
                                 : "Function was annotated as having type %s, but does not return along all paths (%s)",
                                 opdi_emit_type_text(body->result, was, sizeof was),
                                 opdi_emit_type_text(opdi_emit_type(out), is, sizeof is));
            return OPDI_EXIT_ERROR;
        }
    } else {
        body->result = opdi_emit_type(out);
        opdi_emit_awaited(task, body->result);
    }
    if (opdi_script_var_put(task, "$ret", opdi_sugared_value(out), body->result) ||
        opdi_script_var_value(task, "$done", opdi_emit_flag_value(task, true))) { return OPDI_EXIT_ERROR; }
    if (body->loops && (opdi_statement_set_flag(task, "$skip", true) || opdi_statement_set_flag(task, "$go", false))) {
        return OPDI_EXIT_ERROR;
    }
    return OPDI_EXIT_RETURN;
}
/* Compiles `raise X("text")`.  Returns how the statement ends. */
static opdi_script_exit opdi_statement_raise(opdi_emitter *task, const opdi_syntax *node) {
    const opdi_syntax *what = node->parts[0];
    char name[256];
    opdi_gvalue *args[2] = {NULL, NULL};
    if (!what) {
        (void)OPDI_EMIT_FAIL(task, "raise without an exception");
        return OPDI_EXIT_ERROR;
    }
    const opdi_syntax *called = what->kind == OPDI_SYNTAX_CALL ? what->parts[0] : what;
    if (!opdi_syntax_dotted(called, name, sizeof name)) {
        (void)OPDI_EMIT_FAIL(task, "raise needs an exception");
        return OPDI_EXIT_ERROR;
    }
    if (what->kind == OPDI_SYNTAX_CALL && what->nparts > 1) {
        args[0] = opdi_emit_expr(task, what->parts[1], NULL);
        if (args[0] && !opdi_emit_is(args[0], OPDI_GTYPE_STR)) { args[0] = opdi_emit_op1(task, "aten::str", args[0]); }
    } else { args[0] = opdi_emit_text(task, ""); }
    const char *full = strchr(name, '.') ? name : opdi_emit_join(task, "builtins.", name, "");
    task->at = called;
    args[1] = full ? opdi_emit_text(task, full) : NULL;
    task->at = node;
    return args[0] && args[1] && opdi_emit_builtin(task, "prim::RaiseException", args, 2, NULL) ? OPDI_EXIT_RAISE
        : OPDI_EXIT_ERROR;
}
/* Compiles `assert condition, text`.  Returns how the statement ends. */
static opdi_script_exit opdi_statement_assert(opdi_emitter *task, const opdi_syntax *node) {
    opdi_cond_value cond;
    opdi_script_branch branch;
    if (opdi_emit_cond(task, node->parts[0], &cond)) { return OPDI_EXIT_ERROR; }
    if (cond.fixed == 1) { return OPDI_EXIT_NONE; }
    if (opdi_script_branch_begin(task, &branch, cond.value)) { return OPDI_EXIT_ERROR; }
    opdi_script_branch_side(task, &branch, 1);
    branch.leaves[1] = OPDI_EXIT_RAISE;
    opdi_gvalue *text = NULL;
    task->nowhere = true;
    if (node->parts[1] && node->parts[1]->kind == OPDI_SYNTAX_TEXT) {
        const char *whole = opdi_emit_join(task, "AssertionError: ", node->parts[1]->word, "");
        text = whole ? opdi_emit_text(task, whole) : NULL;
    } else if (node->parts[1]) {
        task->nowhere = false;
        text = opdi_emit_expr(task, node->parts[1], NULL);
        if (text && !opdi_emit_is(text, OPDI_GTYPE_STR)) { text = opdi_emit_op1(task, "aten::str", text); }
        text = opdi_emit_op2(task, "aten::add", opdi_emit_text(task, "AssertionError: "), text);
    } else { text = opdi_emit_text(task, "AssertionError: "); }
    task->at = node;
    opdi_gvalue *args[2] = {NULL, NULL};
    args[0] = text;
    args[1] = text ? opdi_emit_none(task) : NULL;
    task->nowhere = false;
    if (!args[1] || !opdi_emit_builtin(task, "prim::RaiseException", args, 2, NULL) ||
        opdi_script_branch_end(task, &branch) || opdi_emit_apply(task, cond.holds)) { return OPDI_EXIT_ERROR; }
    return OPDI_EXIT_NONE;
}
/* Compiles the statement `with value as target: body`.  Returns how the statement ends. */
static opdi_script_exit opdi_statement_with(opdi_emitter *task, const opdi_syntax *node) {
    const opdi_syntax *what = node->parts[0], *body = node->parts[2];
    const char *end = NULL;
    opdi_gvalue *held = opdi_emit_region(task, what, &end);
    if (end) {
        const opdi_script_exit leave = held
            ? opdi_statement_statements(task, body->parts, body->nparts) : OPDI_EXIT_ERROR;
        return leave == OPDI_EXIT_ERROR || opdi_emit_op1(task, end, held) ? leave : OPDI_EXIT_ERROR;
    }
    opdi_gvalue *value = opdi_emit_expr(task, what, NULL), *args[3] = {NULL, NULL, NULL}, *region = NULL;
    opdi_gvalue *entered = value ? opdi_emit_method(task, value, "__enter__", NULL, 0) : NULL;
    if (!entered || (node->parts[1] && opdi_statement_assign(task, node->parts[1], entered))) {
        return OPDI_EXIT_ERROR;
    }
    const char *const klass = opdi_emit_is(value, OPDI_GTYPE_CLASS) ? opdi_emit_type(value)->klass->name : "";
    if (strcmp(klass, "__torch__.torch.amp.autocast_mode.autocast") == 0 ||
        strcmp(klass, "__torch__.torch.cpu.amp.autocast_mode.autocast") == 0 ||
        strcmp(klass, "__torch__.torch.cuda.amp.autocast_mode.autocast") == 0) {
        if (!(region = opdi_emit_autocast(task, value))) { return OPDI_EXIT_ERROR; }
    }
    const opdi_script_exit leave = opdi_statement_statements(task, body->parts, body->nparts);
    if (leave == OPDI_EXIT_ERROR || (region && !opdi_emit_builtin(task, "prim::autocast_end", &region, 1, NULL))) {
        return OPDI_EXIT_ERROR;
    }
    for (int i = 0; i < 3; i++) { if (!(args[i] = opdi_emit_none(task))) { return OPDI_EXIT_ERROR; } }
    return opdi_emit_method(task, value, "__exit__", args, 3) ? leave : OPDI_EXIT_ERROR;
}
static opdi_script_exit opdi_statement_delete(opdi_emitter *task, const opdi_syntax *target) {
    if (target->kind == OPDI_SYNTAX_NAME) {
        return opdi_script_var_put(task, target->word, opdi_sugared_of(OPDI_SUGARED_NOTHING), NULL) ? OPDI_EXIT_ERROR
            : OPDI_EXIT_NONE;
    }
    if (target->kind == OPDI_SYNTAX_TUPLE) {
        for (int i = 0; i < target->nparts; i++) {
            if (opdi_statement_delete(task, target->parts[i]) == OPDI_EXIT_ERROR) { return OPDI_EXIT_ERROR; }
        }
        return OPDI_EXIT_NONE;
    }
    if (target->kind != OPDI_SYNTAX_SUBSCRIPT || target->nparts != 2) {
        (void)OPDI_EMIT_FAIL(task, "del statements are only supported for deleting from lists and dicts");
        return OPDI_EXIT_ERROR;
    }
    opdi_gvalue *from = opdi_emit_expr(task, target->parts[0], NULL);
    opdi_gvalue *index = from ? opdi_emit_expr(task, target->parts[1], NULL) : NULL;
    if (index && opdi_emit_is(from, OPDI_GTYPE_CLASS)) {
        return opdi_emit_method(task, from, "__delitem__", &index, 1) ? OPDI_EXIT_NONE : OPDI_EXIT_ERROR;
    }
    task->at = target;
    return opdi_emit_op2(task, "aten::Delete", from, index) ? OPDI_EXIT_NONE : OPDI_EXIT_ERROR;
}
static opdi_script_exit opdi_statement_annotated(opdi_emitter *task, const opdi_syntax *node) {
    const opdi_syntax *target = node->parts[0];
    const opdi_gtype *type = opdi_emit_annotation(task, node->parts[1]);
    if (!type) { return OPDI_EXIT_ERROR; }
    if (!node->parts[2]) { return OPDI_EXIT_NONE; }
    opdi_gvalue *value = opdi_emit_expr(task, node->parts[2], type);
    task->at = node;
    value = opdi_emit_become(task, value, type, "'%s'", target->kind == OPDI_SYNTAX_NAME ? target->word : "assignment");
    if (!value) { return OPDI_EXIT_ERROR; }
    if (target->kind == OPDI_SYNTAX_ATTR) {
        return opdi_statement_set_attr(task, target, value, type) ? OPDI_EXIT_ERROR : OPDI_EXIT_NONE;
    }
    if (target->kind != OPDI_SYNTAX_NAME) {
        return opdi_statement_assign(task, target, value) ? OPDI_EXIT_ERROR : OPDI_EXIT_NONE;
    }
    return opdi_statement_set(task, target->word, value, type) ? OPDI_EXIT_ERROR : OPDI_EXIT_NONE;
}
static opdi_script_exit opdi_statement_assignment(opdi_emitter *task, const opdi_syntax *node) {
    const opdi_gtype *hint = NULL;
    if (node->nparts == 2 && node->parts[1]->kind == OPDI_SYNTAX_NAME) {
        const opdi_script_var *var = opdi_script_var_find(task->frame, node->parts[1]->word);
        hint = var && var->sugared.kind == OPDI_SUGARED_VALUE ? var->type : NULL;
        if (hint && hint->kind == OPDI_GTYPE_TENSOR) { hint = NULL; }
    }
    const opdi_syntax *value = node->parts[0];
    if (node->nparts == 2 && node->parts[1]->kind == OPDI_SYNTAX_NAME && (value->kind == OPDI_SYNTAX_ATTR ||
        value->kind == OPDI_SYNTAX_NAME || value->kind == OPDI_SYNTAX_CALL)) {
        const opdi_sugared sugared = opdi_emit_sugared(task, value, hint);     /* the value may be a function or a
                                                                                  module */
        if (sugared.kind == OPDI_SUGARED_NOTHING) { return OPDI_EXIT_ERROR; }
        if (sugared.kind != OPDI_SUGARED_VALUE) {
            return opdi_script_var_put(task, node->parts[1]->word, sugared, NULL) ? OPDI_EXIT_ERROR : OPDI_EXIT_NONE;
        }
        task->at = node;
        sugared.value->first = sugared.value->first || value->kind == OPDI_SYNTAX_NAME; /* `b = a`: the value keeps the
                                                                                           name a */
        if (value->kind == OPDI_SYNTAX_NAME && !opdi_emit_means(value->word)) {
            opdi_emit_loaded(task, node->parts[1]->word);
        }
        const int rc = opdi_statement_assign(task, node->parts[1], sugared.value);
        return rc ? OPDI_EXIT_ERROR : OPDI_EXIT_NONE;
    }
    if (value->kind != OPDI_SYNTAX_LIST && value->kind != OPDI_SYNTAX_DICT && value->kind != OPDI_SYNTAX_LISTCOMP &&
        value->kind != OPDI_SYNTAX_DICTCOMP && value->kind != OPDI_SYNTAX_TERNARY) { hint = NULL; }
    opdi_gvalue *out = opdi_emit_expr(task, value, hint);
    for (int i = 1; out && i < node->nparts; i++) {
        if (opdi_statement_assign(task, node->parts[i], out)) { return OPDI_EXIT_ERROR; }
    }
    return out ? OPDI_EXIT_NONE : OPDI_EXIT_ERROR;
}
/* Compiles an if statement.  If one of its blocks always ends with a return, break or continue, and the other never
   does, compiles the `nrest` statements `rest` after the if statement into the other block, and sets *taken to true.
   Returns how the statements end. */
static opdi_script_exit opdi_statement_if(opdi_emitter *task, const opdi_syntax *node, opdi_syntax *const *rest,
                                          int nrest, bool *taken) {
    opdi_cond_value cond;
    opdi_script_branch branch;
    if (opdi_emit_cond(task, node->parts[0], &cond)) { return OPDI_EXIT_ERROR; }
    if (cond.fixed >= 0) {
        const opdi_syntax *body = node->parts[cond.fixed ? 1 : 2];
        if (opdi_emit_apply(task, cond.fixed ? cond.holds : cond.fails)) { return OPDI_EXIT_ERROR; }
        return body ? opdi_statement_statements(task, body->parts, body->nparts) : OPDI_EXIT_NONE;
    }
    if (opdi_script_branch_begin(task, &branch, cond.value)) { return OPDI_EXIT_ERROR; }
    for (int i = 0; i < 2; i++) {
        const opdi_syntax *body = node->parts[1 + i];
        opdi_script_branch_side(task, &branch, i);
        if (opdi_emit_apply(task, i ? cond.fails : cond.holds)) { return OPDI_EXIT_ERROR; }
        branch.leaves[i] = body ? opdi_statement_statements(task, body->parts, body->nparts) : OPDI_EXIT_NONE;
        if (branch.leaves[i] == OPDI_EXIT_ERROR) { return OPDI_EXIT_ERROR; }
    }
    int into = -1;
    for (int i = 0; i < 2 && nrest && into < 0; i++) {
        const opdi_script_exit other = branch.leaves[!i];
        const bool leaves = other == OPDI_EXIT_ITERATION || other == OPDI_EXIT_RETURN;
        if (leaves && branch.leaves[i] == OPDI_EXIT_NONE) { into = i; }
    }
    opdi_script_branch_read(task, &branch, into >= 0);
    if (into >= 0) {
        *taken = branch.unnamed = branch.frames[into].rest = true;
        opdi_script_branch_side(task, &branch, into);
        task->moved++;
        branch.leaves[into] = opdi_statement_statements(task, rest, nrest);
        task->moved--;
    }
    task->at = node;
    if (branch.leaves[0] == OPDI_EXIT_ERROR || branch.leaves[1] == OPDI_EXIT_ERROR ||
        opdi_script_branch_end(task, &branch)) { return OPDI_EXIT_ERROR; }
    return opdi_script_exit_of(branch.leaves[0], branch.leaves[1]);
}
/* Compiles the `nrest` statements `rest` (if nrest is 0, a return of None) in a branch that runs only if no return,
   break or continue has run before.  Returns how the statements end. */
OPDI_INTERNAL opdi_script_exit opdi_statement_guarded(opdi_emitter *task, opdi_syntax *const *rest, int nrest) {
    const int loops = task->body->loops;
    opdi_gvalue *left = opdi_statement_flag(task, loops ? "$skip" : "$done", loops);
    opdi_script_branch branch;
    task->nowhere = true;
    const int begun = left ? opdi_script_branch_begin(task, &branch, left) : -1;
    task->nowhere = false;
    if (begun) { return OPDI_EXIT_ERROR; }
    branch.leaves[0] = loops ? OPDI_EXIT_ITERATION : OPDI_EXIT_RETURN;
    branch.unnamed = branch.frames[1].rest = true;
    opdi_script_branch_side(task, &branch, 1);
    branch.leaves[1] = nrest ? opdi_statement_statements(task, rest, nrest) : opdi_statement_return(task, NULL);
    if (branch.leaves[1] == OPDI_EXIT_ERROR || opdi_script_branch_end(task, &branch)) { return OPDI_EXIT_ERROR; }
    return opdi_script_exit_of(branch.leaves[0], branch.leaves[1]);
}
static opdi_script_exit opdi_statement_for(opdi_emitter *task, const opdi_syntax *node) {
    opdi_script_loop loop;
    memset(&loop, 0, sizeof loop);
    loop.node = node;
    loop.target = node->parts[0];
    loop.body = node->parts[2];
    loop.iter = opdi_emit_iterate(task, node->parts[1]);
    if (!loop.iter) { return OPDI_EXIT_ERROR; }
    task->at = node;
    return loop.iter->count >= 0 ? opdi_statement_unrolled(task, &loop) : opdi_statement_loop(task, &loop);
}
static opdi_script_exit opdi_statement_while(opdi_emitter *task, const opdi_syntax *node) {
    opdi_script_loop loop;
    memset(&loop, 0, sizeof loop);
    loop.node = node;
    loop.condition = node->parts[0];
    loop.body = node->parts[1];
    return opdi_statement_loop(task, &loop);
}
/* Declares a nested function, which can use the variables of the outer function.  Returns how the statement ends. */
static opdi_script_exit opdi_statement_def(opdi_emitter *task, const opdi_syntax *node) {
    opdi_script_function *function = (opdi_script_function *)opdi_emit_alloc(task, sizeof *function);
    opdi_sugared sugared = opdi_sugared_of(OPDI_SUGARED_FUNCTION);
    if (!function) { return OPDI_EXIT_ERROR; }
    function->name = node->word;
    function->def = node;
    function->unit = task->unit;
    function->around = task->frame;
    sugared.function = function;
    return opdi_script_var_put(task, node->word, sugared, NULL) ? OPDI_EXIT_ERROR : OPDI_EXIT_NONE;
}
static opdi_script_exit opdi_statement_break(opdi_emitter *task, bool ends) {
    if (!task->body->loops) {
        (void)OPDI_EMIT_FAIL(task, ends ? "break is only allowed in loops" : "continue is only allowed in loops");
        return OPDI_EXIT_ERROR;
    }
    if (opdi_statement_set_flag(task, "$skip", true) || (ends && opdi_statement_set_flag(task, "$go", false)) ||
        (!ends && opdi_script_loop_continues(task, task->body->again))) { return OPDI_EXIT_ERROR; }
    return OPDI_EXIT_ITERATION;
}
/* Returns whether `call` is super().__init__() in the method __init__ of a module, which does nothing here. */
static bool opdi_statement_is_super(const opdi_emitter *task, const opdi_syntax *call) {
    char name[80];
    if (!opdi_emit_in_module(task) || call->kind != OPDI_SYNTAX_CALL || call->parts[0]->kind != OPDI_SYNTAX_ATTR ||
        strcmp(call->parts[0]->word, "__init__") != 0) { return false; }
    const opdi_syntax *of = call->parts[0]->parts[0];
    if (of->kind == OPDI_SYNTAX_CALL) {
        of = of->parts[0];
    } else {
        return opdi_syntax_dotted(of, name, sizeof name) && opdi_word_in(name, (int)strlen(name), opdi_script_modules);
    }
    return of->kind == OPDI_SYNTAX_NAME && strcmp(of->word, "super") == 0;
}
/* Compiles self.register_buffer("name", tensor, persistent=True) or self.register_parameter("name", parameter).
   Returns 1 if `call` is one of these calls, 0 if not, or -1 and sets an error. */
static int opdi_statement_registers(opdi_emitter *task, const opdi_syntax *call) {
    char name[80];
    if (!opdi_emit_in_module(task) || call->kind != OPDI_SYNTAX_CALL || call->parts[0]->kind != OPDI_SYNTAX_ATTR ||
        !opdi_syntax_dotted(call->parts[0]->parts[0], name, sizeof name) ||
        strcmp(name, task->body->function->formals[0].name) != 0) { return 0; }
    const bool buffer = strcmp(call->parts[0]->word, "register_buffer") == 0;
    if (!buffer && strcmp(call->parts[0]->word, "register_parameter") != 0) { return 0; }
    bool kept = true;
    const opdi_syntax *value = call->nparts > 2 ? call->parts[2] : NULL;
    const opdi_syntax *persistent = call->nparts == 4 ? call->parts[3] : NULL;
    if (value && value->kind == OPDI_SYNTAX_KEYWORD) { value = value->parts[0]; }
    if (persistent && persistent->kind == OPDI_SYNTAX_KEYWORD) { persistent = persistent->parts[0]; }
    if (persistent) { kept = persistent->kind == OPDI_SYNTAX_TRUE; }
    if (!value || call->nparts > (buffer ? 4 : 3) || call->parts[1]->kind != OPDI_SYNTAX_TEXT ||
        (persistent && !kept && persistent->kind != OPDI_SYNTAX_FALSE)) {
        return OPDI_EMIT_FAIL(task, "%s needs a name in quotes and a tensor%s", call->parts[0]->word,
                              buffer ? "; it may also have persistent=True or persistent=False" : "");
    }
    opdi_syntax target = *call->parts[0];
    target.word = call->parts[1]->word;
    opdi_gvalue *const given = opdi_emit_expr(task, value, NULL);
    if (!given || opdi_statement_set_attr(task, &target, given, NULL)) { return -1; }
    opdi_gclass *const gclass = task->body->function->owner->gclass;
    const int32_t slot = opdi_gclass_slot(gclass, target.word);
    if (slot >= 0 && buffer && kept && opdi_emit_is(given, OPDI_GTYPE_TENSOR)) {
        gclass->attributes[slot].flags |= OPDI_SCRIPT_CLASS_BUFFER;
    }
    return 1;
}
static opdi_script_exit opdi_statement_expression(opdi_emitter *task, const opdi_syntax *node) {
    if (node->kind == OPDI_SYNTAX_TEXT || node->kind == OPDI_SYNTAX_DOTS || opdi_statement_is_super(task, node)) {
        return OPDI_EXIT_NONE;
    }
    const int registered = opdi_statement_registers(task, node);
    if (registered) { return registered < 0 ? OPDI_EXIT_ERROR : OPDI_EXIT_NONE; }
    return opdi_emit_sugared(task, node, NULL).kind == OPDI_SUGARED_NOTHING ? OPDI_EXIT_ERROR : OPDI_EXIT_NONE;
}
static opdi_script_exit opdi_statement_statement(opdi_emitter *task, const opdi_syntax *node) {
    task->at = node;
    switch (node->kind) {
    case OPDI_SYNTAX_EXPR: return opdi_statement_expression(task, node->parts[0]);
    case OPDI_SYNTAX_ASSIGN: return opdi_statement_assignment(task, node);
    case OPDI_SYNTAX_ANNOTATED: return opdi_statement_annotated(task, node);
    case OPDI_SYNTAX_AUGMENTED: return opdi_statement_augmented(task, node) ? OPDI_EXIT_ERROR : OPDI_EXIT_NONE;
    case OPDI_SYNTAX_WHILE: return opdi_statement_while(task, node);
    case OPDI_SYNTAX_FOR: return opdi_statement_for(task, node);
    case OPDI_SYNTAX_RETURN: return opdi_statement_return(task, node->parts[0]);
    case OPDI_SYNTAX_PASS: return OPDI_EXIT_NONE;
    case OPDI_SYNTAX_BREAK: return opdi_statement_break(task, true);
    case OPDI_SYNTAX_CONTINUE: return opdi_statement_break(task, false);
    case OPDI_SYNTAX_RAISE: return opdi_statement_raise(task, node);
    case OPDI_SYNTAX_ASSERT: return opdi_statement_assert(task, node);
    case OPDI_SYNTAX_DELETE: return opdi_statement_delete(task, node->parts[0]);
    case OPDI_SYNTAX_WITH: return opdi_statement_with(task, node);
    case OPDI_SYNTAX_DEF: return opdi_statement_def(task, node);
    case OPDI_SYNTAX_AGAIN: return opdi_script_loop_continues(task, task->body->again)
        ? OPDI_EXIT_ERROR : OPDI_EXIT_NONE;
    case OPDI_SYNTAX_TURN: return opdi_script_loop_unrolled_iteration(task, task->body->unrolled, (int)node->integer);
    default:
        (void)OPDI_EMIT_FAIL(task, "this statement is not supported");
        return OPDI_EXIT_ERROR;
    }
}
/* Compiles statements.  Leaves out those after a statement that always ends with a return, break, continue or raise.
   Returns how the statements end. */
OPDI_INTERNAL opdi_script_exit opdi_statement_statements(opdi_emitter *task, opdi_syntax *const *nodes, int count) {
    if (opdi_emit_enter(task)) { return OPDI_EXIT_ERROR; }
    opdi_script_exit leave = OPDI_EXIT_NONE;
    for (int i = 0; i < count && leave == OPDI_EXIT_NONE; i++) {
        bool taken = false;
        task->at = nodes[i];
        leave = nodes[i]->kind == OPDI_SYNTAX_IF
            ? opdi_statement_if(task, nodes[i], nodes + i + 1, count - i - 1, &taken)
                : opdi_statement_statement(task, nodes[i]);
        if (leave == OPDI_EXIT_ERROR && opd_ok()) { (void)OPDI_EMIT_FAIL(task, "this cannot be compiled"); }
        if (taken) { break; }
        if (leave == OPDI_EXIT_MAYBE && i + 1 < count) {
            leave = opdi_statement_guarded(task, nodes + i + 1, count - i - 1);
            break;
        }
    }
    task->depth--;
    return opd_ok() ? leave : OPDI_EXIT_ERROR;
}
