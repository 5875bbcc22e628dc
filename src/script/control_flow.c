#include "script.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>scripts      compiling scripts: statements, functions and methods
//
//  Values are in static single assignment form from the start: branches and loops join the values of the variables that
//  they set.  If it is not known at compile time whether a break, continue or return runs, a flag records it at run
//  time, as in the code that the passes of TorchScript make.
//----------------------------------------------------------------------------------------------------------------------

//== branches ==========================================================================================================

OPDI_INTERNAL int opdi_script_branch_begin(opdi_emitter *task, opdi_script_branch *branch, opdi_gvalue *value) {
    memset(branch, 0, sizeof *branch);
    if (!(branch->node = opdi_emit_if(task, value))) { return -1; }
    for (int i = 0; i < 2; i++) { branch->blocks[i] = &branch->node->blocks[i]; }
    for (int i = 0; i < 2; i++) { branch->frames[i].up = task->frame; }
    branch->before = opdi_emit_goto(task, branch->blocks[0]);
    return 0;
}
/* Makes the end of block i of a branch the insertion point, and the variables of this block the current variables. */
OPDI_INTERNAL void opdi_script_branch_side(opdi_emitter *task, opdi_script_branch *branch, int i) {
    opdi_emit_goto(task, branch->blocks[i]);
    task->frame = &branch->frames[i];
}
static int opdi_script_name_order(const void *first, const void *second) {
    return strcmp(*(const char *const *)first, *(const char *const *)second);
}
/* Sorts an array of names and removes duplicates.  Returns the number of names that remain. */
static int opdi_script_names_sort(const char **names, int count) {
    int unique = 0;
    qsort(names, (size_t)count, sizeof *names, opdi_script_name_order);
    for (int i = 0; i < count; i++) {
        if (!unique || strcmp(names[unique - 1], names[i]) != 0) { names[unique++] = names[i]; }
    }
    return unique;
}
/* Returns a placeholder for a variable that block `side` does not set, because the block ends with a return, break or
   raise. */
static opdi_gvalue *opdi_script_branch_unset(opdi_emitter *task, const opdi_script_branch *branch, int side,
                                             const opdi_gtype *type) {
    opdi_gblock *before = opdi_emit_goto(task, branch->blocks[side]);
    opdi_gvalue *value = opdi_emit_unset(task, type);
    opdi_emit_goto(task, before);
    return value;
}
/* Joins the values that the variable `name` has at the ends of the two blocks into a result of the branch.  If one
   block does not set the variable, but reaches its end, the variable is not set after the branch.  Returns 0, or -1 and
   sets an error. */
static int opdi_script_branch_join(opdi_emitter *task, opdi_script_branch *branch, const char *name) {
    opdi_script_var *vars[2], *outer = opdi_script_var_find(task->frame, name);
    opdi_gvalue *values[2] = {NULL, NULL};
    const bool hidden = *name == '$';
    for (int i = 0; i < 2; i++) {
        vars[i] = opdi_script_var_find(&branch->frames[i], name);
        const bool gone = branch->leaves[i] == OPDI_EXIT_RETURN || branch->leaves[i] == OPDI_EXIT_RAISE;
        values[i] = vars[i] && vars[i]->sugared.kind == OPDI_SUGARED_VALUE && (hidden || !gone)
            ? vars[i]->sugared.value : NULL;
    }
    if (vars[0] && vars[1] && vars[0]->sugared.kind != OPDI_SUGARED_VALUE &&
        memcmp(&vars[0]->sugared, &vars[1]->sugared, sizeof vars[0]->sugared) == 0) {
        return opdi_script_var_put(task, name, vars[0]->sugared, vars[0]->type);
    }
    const opdi_script_var *known = values[0] ? vars[0] : vars[1];
    if (!values[0] && !values[1]) { return 0; }
    if (values[0] == values[1]) { return opdi_script_var_put(task, name, known->sugared, known->type); }
    const opdi_gtype *type = opdi_emit_type(values[0] ? values[0] : values[1]);
    for (int i = 0; i < 2; i++) {
        if (!values[i] && branch->leaves[i] < OPDI_EXIT_ITERATION) {      /* this block does not set the variable, but
                                                                             reaches its end */
            return outer ? 0 : opdi_script_var_put(task, name, opdi_sugared_of(OPDI_SUGARED_NOTHING), NULL);
        }
        if (!values[i] && !(values[i] = opdi_script_branch_unset(task, branch, i, type))) { return -1; }
    }
    if (task->body->unset && values[0] == task->body->unset) { type = opdi_emit_type(values[1]); }
    else if (!task->body->unset || values[1] != task->body->unset) {
        type = opdi_gtype_unify(task->space, opdi_emit_type(values[0]), opdi_emit_type(values[1]));
        for (int i = 0; !type && i < 3; i++) {     /* takes a declared type: that of the outer variable, or that of a
                                                      block */
            const opdi_script_var *const said = i ? vars[i - 1] : outer;
            if (said && said->type && opdi_gtype_fits(opdi_emit_type(values[0]), said->type) &&
                opdi_gtype_fits(opdi_emit_type(values[1]), said->type)) { type = said->type; }
        }
        for (int i = 0; !type && i < 2; i++) {
            if (opdi_emit_is_unknown(values[i])) { type = opdi_emit_type(values[!i]); }
        }
    }
    if (!type) { return opdi_script_var_put(task, name, opdi_sugared_of(OPDI_SUGARED_NOTHING), NULL); }
    for (int i = 0; i < 2; i++) { if (opdi_emit_output(task, branch->blocks[i], values[i])) { return -1; } }
    opdi_gvalue *out = opdi_emit_out(task, branch->node, type);
    if (!out) { return -1; }
    if (!branch->unnamed) { opdi_emit_name_later(task, out, name); }
    return opdi_script_var_put(task, name, opdi_sugared_value(out), outer && outer->type ? outer->type : type);
}
/* Marks as taken the names of the variables that the blocks set, because TorchScript reads these variables at the end
   of both blocks.  `taken` is true if the statements after the branch were moved into one block. */
OPDI_INTERNAL void opdi_script_branch_read(opdi_emitter *task, opdi_script_branch *branch, bool taken) {
    const bool ends[2] = {branch->leaves[0] >= OPDI_EXIT_ITERATION, branch->leaves[1] >= OPDI_EXIT_ITERATION};
    for (int i = 0; i < 2; i++) {
        for (const opdi_script_var *var = branch->frames[i].vars; var; var = var->next) {
            const char *const name = var->name;
            const bool outer = opdi_script_var_find(branch->frames[0].up, name) != NULL;
            const bool other = opdi_script_frame_find(&branch->frames[!i], name) != NULL;
            if (!opdi_emit_means(name) || var->sugared.kind != OPDI_SUGARED_VALUE) { continue; }
            if (i && other) { continue; }
            if (other || outer) { opdi_emit_loaded(task, name); }
            if (!(other || outer || ends[!i])) { continue; }
            if (other) { opdi_emit_loaded(task, name); }
            for (int k = 0; k < 2; k++) { if (!ends[k]) { opdi_emit_loaded(task, name); } }
            if (ends[0] && ends[1]) { continue; }
            if (outer) { opdi_emit_loaded(task, name); }
            if (taken) { opdi_emit_name_later(task, NULL, name); }
        }
    }
}
/* Makes the end of the block that contains a branch the insertion point, and joins the variables that the branch sets.
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_script_branch_end(opdi_emitter *task, opdi_script_branch *branch) {
    const bool both = branch->leaves[0] >= OPDI_EXIT_RETURN && branch->leaves[1] >= OPDI_EXIT_RETURN;
    int count = 0;
    for (int i = 0; i < 2; i++) {
        for (opdi_script_var *var = branch->frames[i].vars; var; var = var->next) { count++; }
    }
    const char **names = (const char **)opdi_emit_alloc(task, (size_t)(count + 1) * sizeof *names);
    if (!names) { return -1; }
    count = 0;
    for (int i = 0; i < 2; i++) {
        for (opdi_script_var *var = branch->frames[i].vars; var; var = var->next) { names[count++] = var->name; }
    }
    task->frame = branch->frames[0].up;
    opdi_emit_goto(task, branch->before);
    count = opdi_script_names_sort(names, count);
    for (int i = 0; i < count; i++) {
        if ((!both || *names[i] == '$') && opdi_script_branch_join(task, branch, names[i])) { return -1; }
    }
    return 0;
}
/* Returns how a branch ends if its blocks end as `first` and `second`. */
OPDI_INTERNAL opdi_script_exit opdi_script_exit_of(opdi_script_exit first, opdi_script_exit second) {
    if (first == OPDI_EXIT_ERROR || second == OPDI_EXIT_ERROR) { return OPDI_EXIT_ERROR; }
    if (first == OPDI_EXIT_RAISE) { return second; }
    if (second == OPDI_EXIT_RAISE) { return first; }
    if (first >= OPDI_EXIT_ITERATION && second >= OPDI_EXIT_ITERATION) { return OPDI_MIN(first, second); }
    return first == second ? first : OPDI_EXIT_MAYBE;
}

//== loops =============================================================================================================

OPDI_INTERNAL opdi_script_iter *opdi_emit_iterate(opdi_emitter *task, const opdi_syntax *node);

static opdi_script_iter *opdi_script_iter_new(opdi_emitter *task, opdi_script_iter_kind kind) {
    opdi_script_iter *iter = (opdi_script_iter *)opdi_emit_alloc(task, sizeof *iter);
    if (!iter) { return NULL; }
    iter->kind = kind;
    iter->count = -1;
    return iter;
}
static opdi_script_iter *opdi_script_iter_range(opdi_emitter *task, const opdi_syntax *call) {
    opdi_script_iter *iter = opdi_script_iter_new(task, OPDI_SCRIPT_ITER_RANGE);
    opdi_gvalue *args[3] = {NULL, NULL, NULL};
    const int count = call->nparts - 1;
    if (!iter || count < 1 || count > 3) {
        if (iter) { (void)OPDI_EMIT_FAIL(task, "range expected 1 to 3 arguments, got %d", count); }
        return NULL;
    }
    for (int i = 0; i < count; i++) {
        args[i] = opdi_emit_expr(task, call->parts[1 + i], NULL);
        args[i] = opdi_emit_become(task, args[i], opdi_gtype_simple(OPDI_GTYPE_INT), "argument of %s", "range");
        if (!args[i]) { return NULL; }
    }
    if (count == 1) {
        iter->length = args[0];
        return iter;
    }
    iter->start = args[0];
    const opdi_syntax *const at = task->at;
    task->at = call;
    iter->step = count == 3 ? args[2] : opdi_emit_int(task, 1);
    task->at = at;
    iter->length = opdi_emit_op3(task, "aten::__range_length", args[0], args[1], iter->step);
    return iter->length ? iter : NULL;
}
/* Compiles enumerate(x, start) (if `counted` is true) or zip(x, ...) as the expression of a for loop.  Returns a
   description of the iteration, or NULL and sets an error. */
static opdi_script_iter *opdi_script_iter_zip(opdi_emitter *task, const opdi_syntax *call, bool counted) {
    opdi_script_iter *iter = opdi_script_iter_new(task, OPDI_SCRIPT_ITER_ZIP);
    opdi_gvalue *lengths[OPDI_SCRIPT_ZIPPED];
    int nlengths = 0;
    if (!iter) { return NULL; }
    if (call->nparts < 2 || call->nparts > OPDI_SCRIPT_ZIPPED) {
        (void)OPDI_EMIT_FAIL(task, "enumerate and zip take 1 to %d arguments", OPDI_SCRIPT_ZIPPED - 1);
        return NULL;
    }
    if (counted) {
        opdi_script_iter *numbers = opdi_script_iter_new(task, OPDI_SCRIPT_ITER_RANGE);
        if (!numbers) { return NULL; }
        iter->parts[iter->nparts++] = numbers;
        if (call->nparts == 3) {
            const opdi_syntax *start = call->parts[2]->kind == OPDI_SYNTAX_KEYWORD ? call->parts[2]->parts[0]
                : call->parts[2];
            if (!(numbers->start = opdi_emit_expr(task, start, NULL)) ||
                !(numbers->step = opdi_emit_int(task, 1))) { return NULL; }
        }
        const opdi_syntax *const at = task->at;
        task->at = call;
        lengths[nlengths] = opdi_emit_literal(task, opd_value_int(INT64_MAX), opdi_gtype_simple(OPDI_GTYPE_INT));
        task->at = at;
        if (!lengths[nlengths++]) { return NULL; }
    }
    for (int i = 1; i < (counted ? 2 : call->nparts); i++) {
        opdi_script_iter *part = opdi_emit_iterate(task, call->parts[i]);
        if (!part) { return NULL; }
        iter->parts[iter->nparts++] = part;
        if (part->kind == OPDI_SCRIPT_ITER_UNROLLED || part->count >= 0) {
            iter->count = iter->count < 0 ? part->count : OPDI_MIN(iter->count, part->count);
        } else if (part->length) { lengths[nlengths++] = part->length; }
    }
    if (iter->count >= 0) { return iter; }
    opdi_gvalue *list = opdi_emit_construct(task, opdi_gtype_list(task->space,
                                            opdi_gtype_simple(OPDI_GTYPE_INT)), lengths, nlengths);
    iter->length = opdi_emit_op1(task, "prim::min", list);
    return iter->length ? iter : NULL;
}
/* Compiles the expression over which a for loop iterates.  Returns a description of the iteration, or NULL and sets an
   error. */
OPDI_INTERNAL opdi_script_iter *opdi_emit_iterate(opdi_emitter *task, const opdi_syntax *node) {
    char said[200];
    if (node->kind == OPDI_SYNTAX_CALL && node->parts[0]->kind == OPDI_SYNTAX_NAME &&
        !opdi_script_var_find(task->frame, node->parts[0]->word)) {
        const char *name = node->parts[0]->word;
        if (strcmp(name, "range") == 0) { return opdi_script_iter_range(task, node); }
        if (strcmp(name, "enumerate") == 0 || strcmp(name, "zip") == 0) {
            return opdi_script_iter_zip(task, node, *name == 'e');
        }
    }
    opdi_gvalue *value = opdi_emit_expr(task, node, NULL);
    if (!value) { return NULL; }
    if (opdi_emit_is(value, OPDI_GTYPE_TUPLE)) {
        opdi_script_iter *iter = opdi_script_iter_new(task, OPDI_SCRIPT_ITER_UNROLLED);
        const int count = opdi_emit_type(value)->nparts;
        if (!iter || !(iter->items = (opdi_gvalue **)opdi_emit_alloc(task,
                                                                     (size_t)(count + 1) * sizeof *iter->items)) ||
            opdi_emit_unpack(task, value, iter->items, count)) { return NULL; }
        iter->count = count;
        return iter;
    }
    if (opdi_emit_is(value, OPDI_GTYPE_TENSOR)) {
        value = opdi_emit_op2(task, "aten::unbind", value, opdi_emit_int(task, 0));
    } else if (opdi_emit_is(value, OPDI_GTYPE_DICT)) { value = opdi_emit_op1(task, "aten::keys", value); }
    if (!value) { return NULL; }
    if (!opdi_emit_is(value, OPDI_GTYPE_LIST) && !opdi_emit_is(value, OPDI_GTYPE_STR)) {
        (void)OPDI_EMIT_FAIL(task, "'%s' object is not iterable",
                             opdi_emit_type_text(opdi_emit_type(value), said, sizeof said));
        return NULL;
    }
    opdi_script_iter *iter = opdi_script_iter_new(task, OPDI_SCRIPT_ITER_LIST);
    if (!iter) { return NULL; }
    iter->value = value;
    iter->length = opdi_emit_op1(task, "aten::len", value);
    return iter->length ? iter : NULL;
}
/* Returns the element for iteration number `at`, which is a value of the graph.  If the loop is unrolled, `turn` is
   this number at compile time. */
static opdi_gvalue *opdi_script_iter_at(opdi_emitter *task, const opdi_script_iter *iter, opdi_gvalue *at, int turn) {
    opdi_gvalue *parts[OPDI_SCRIPT_ZIPPED];
    switch (iter->kind) {
    case OPDI_SCRIPT_ITER_UNROLLED: return iter->items[turn];
    case OPDI_SCRIPT_ITER_LIST: return opdi_emit_op2(task, "aten::__getitem__", iter->value, at);
    case OPDI_SCRIPT_ITER_RANGE:
        return iter->start ? opdi_emit_op3(task, "aten::__derive_index", at, iter->start, iter->step) : at;
    case OPDI_SCRIPT_ITER_ZIP: default: break;
    }
    for (int i = 0; i < iter->nparts; i++) {
        if (!(parts[i] = opdi_script_iter_at(task, iter->parts[i], at, turn))) { return NULL; }
    }
    return opdi_emit_tuple(task, parts, iter->nparts);
}

/* The result of a search in the body of a loop: the names that it sets, and whether it has a break, continue or
   return. */
typedef struct opdi_script_scan {
    opdi_string names;                            /* const char *[] */
    bool leaves_turn, returns;                    /* leaves_turn: it has a break or continue of this loop; returns: it
                                                     has a return */
} opdi_script_scan;
static void opdi_script_scan_target(opdi_script_scan *scan, const opdi_syntax *node) {
    if (node->kind == OPDI_SYNTAX_NAME) {
        opdi_string_add_n(&scan->names, (const char *)(const void *)&node->word, sizeof node->word);
    } else if (node->kind == OPDI_SYNTAX_TUPLE || node->kind == OPDI_SYNTAX_LIST || node->kind == OPDI_SYNTAX_STAR) {
        for (int i = 0; i < node->nparts; i++) { opdi_script_scan_target(scan, node->parts[i]); }
    }
}
static void opdi_script_scan_statement(opdi_script_scan *scan, const opdi_syntax *node, bool inner) {
    while (node && node->kind >= OPDI_SYNTAX_EXPR && node->kind != OPDI_SYNTAX_DEF && node->kind != OPDI_SYNTAX_CLASS) {
        scan->returns = scan->returns || node->kind == OPDI_SYNTAX_RETURN;
        scan->leaves_turn = scan->leaves_turn || (!inner && (node->kind == OPDI_SYNTAX_BREAK ||
                                                             node->kind == OPDI_SYNTAX_CONTINUE));
        if (node->kind == OPDI_SYNTAX_ASSIGN) {
            for (int i = 1; i < node->nparts; i++) { opdi_script_scan_target(scan, node->parts[i]); }
            return;
        }
        if (node->kind == OPDI_SYNTAX_ANNOTATED || node->kind == OPDI_SYNTAX_AUGMENTED ||
            node->kind == OPDI_SYNTAX_FOR) { opdi_script_scan_target(scan, node->parts[0]); }
        if (node->kind == OPDI_SYNTAX_WITH && node->parts[1]) { opdi_script_scan_target(scan, node->parts[1]); }
        inner = inner || node->kind == OPDI_SYNTAX_FOR || node->kind == OPDI_SYNTAX_WHILE;
        for (int i = 0; i < node->nparts - 1; i++) { opdi_script_scan_statement(scan, node->parts[i], inner); }
        node = node->nparts ? node->parts[node->nparts - 1] : NULL;      /* an `elif` is in the last part of the `if` */
    }
}

OPDI_INTERNAL opdi_script_exit opdi_statement_statements(opdi_emitter *task, opdi_syntax *const *nodes, int count);
OPDI_INTERNAL int opdi_statement_assign(opdi_emitter *task, const opdi_syntax *target, opdi_gvalue *value);
static int opdi_statement_collect(opdi_emitter *task, const opdi_script_loop *loop);
/* If the type of a value is the result type of the function, and this type is not known yet, adds the value to the list
   `awaiting`.  Returns 0, or -1 if memory runs out. */
static int opdi_emit_await(opdi_emitter *task, opdi_gvalue *value) {
    opdi_value_entry *pooled = (opdi_value_entry *)opdi_emit_alloc(task, sizeof *pooled);
    if (!pooled) { return -1; }
    if (!opdi_emit_is(value, OPDI_GTYPE_ANY) || task->body->result) { return 0; }
    pooled->value = value;
    pooled->next = task->body->awaiting;
    task->body->awaiting = pooled;
    return 0;
}
/* Called when the result type of the function is known: gives this type to the values in the list `awaiting`. */
OPDI_INTERNAL void opdi_emit_awaited(opdi_emitter *task, const opdi_gtype *type) {
    for (; task->body->awaiting; task->body->awaiting = task->body->awaiting->next) {
        opdi_emit_type_set(task->body->awaiting->value, type);
    }
    if (task->body->unset) {
        opdi_emit_type_set(task->body->unset, type);
        (void)opdi_emit_unset_of(task, type, task->body->unset);
    }
}
static const char *opdi_emit_flag(opdi_emitter *task, const char *flag, int depth) {
    char text[16];
    snprintf(text, sizeof text, "%d", depth);
    return opdi_emit_join(task, flag, text, "");
}
OPDI_INTERNAL int opdi_statement_set_flag(opdi_emitter *task, const char *flag, bool value) {
    const char *name = opdi_emit_flag(task, flag, task->body->loops);
    return name ? opdi_script_var_value(task, name, opdi_emit_flag_value(task, value)) : -1;
}
OPDI_INTERNAL opdi_gvalue *opdi_statement_flag(opdi_emitter *task, const char *flag, int depth) {
    const char *name = depth ? opdi_emit_flag(task, flag, depth) : flag;
    const opdi_script_var *var = name ? opdi_script_var_find(task->frame, name) : NULL;
    return var ? var->sugared.value : NULL;
}
/* Finds the variables whose values a loop carries from one iteration to the next.  Returns 0, or -1 if memory runs
   out. */
static int opdi_script_loop_scan(opdi_emitter *task, opdi_script_loop *loop) {
    opdi_script_scan scan;
    memset(&scan, 0, sizeof scan);
    if (loop->target && loop->node->kind == OPDI_SYNTAX_FOR) { opdi_script_scan_target(&scan, loop->target); }
    if (loop->body->kind == OPDI_SYNTAX_BLOCK) { opdi_script_scan_statement(&scan, loop->body, false); }
    loop->returns = scan.returns;
    loop->flags = scan.returns || scan.leaves_turn;
    const int count = (int)(scan.names.length / sizeof(char *));
    loop->names = scan.names.failed ? NULL
        : (const char **)opdi_emit_alloc(task, (size_t)(count + 4) * sizeof *loop->names);
    if (loop->names && count) { memcpy(loop->names, scan.names.data, scan.names.length); }
    opdi_string_free(&scan.names);
    if (!loop->names) { return -1; }
    int unique = opdi_script_names_sort(loop->names, count);
    for (int i = 0; i < unique; i++) {
        const opdi_script_var *var = opdi_script_var_find(task->frame, loop->names[i]);
        if (var && var->sugared.kind == OPDI_SUGARED_VALUE) { loop->names[loop->ncarried++] = loop->names[i]; }
    }
    if (loop->returns) {
        loop->names[loop->ncarried++] = "$done";
        loop->names[loop->ncarried++] = "$ret";
    }
    if (loop->iter && loop->flags) { loop->names[loop->ncarried++] = "$turn"; }
    return 0;
}
/* Compiles the condition of a while loop again, at the end of an iteration, and fills *cond.  Returns 0, or -1 and sets
   an error. */
static int opdi_script_loop_condition(opdi_emitter *task, const opdi_syntax *condition, opdi_cond_value *cond) {
    const bool before = task->quiet;
    task->quiet = true;
    const int rc = opdi_emit_cond(task, condition, cond);
    task->quiet = before;
    return rc;
}
/* Sets the flag $go of the loop, which tells if the loop continues: to the value of `condition`, or to True if
   `condition` is NULL.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_script_loop_continues(opdi_emitter *task, const opdi_syntax *condition) {
    opdi_cond_value cond;
    const char *name = opdi_emit_flag(task, "$go", task->body->loops);
    if (!name) { return -1; }
    if (!condition) { return opdi_script_var_value(task, name, task->body->always); }
    return opdi_script_loop_condition(task, condition, &cond) ? -1 : opdi_script_var_value(task, name, cond.value);
}
/* Compiles the body of a loop that has a break, continue or return.  Adds a statement OPDI_SYNTAX_AGAIN at its end,
   which evaluates the condition of the loop.  Returns 0, or -1 and sets an error. */
static int opdi_script_loop_body(opdi_emitter *task, const opdi_script_loop *loop) {
    const opdi_syntax *const before = task->body->again;
    opdi_gvalue *const always = task->body->always;
    const int count = loop->body->nparts;
    opdi_syntax **parts = (opdi_syntax **)opdi_emit_alloc(task, (size_t)(count + 1) * sizeof *parts);
    opdi_syntax *last = (opdi_syntax *)opdi_emit_alloc(task, sizeof *last);
    if (!parts || !last) { return -1; }
    memcpy(parts, loop->body->parts, (size_t)count * sizeof *parts);
    *last = *loop->node;
    last->kind = OPDI_SYNTAX_AGAIN;
    parts[count] = last;
    task->body->again = loop->condition;
    task->body->always = loop->always;
    const opdi_script_exit leave = opdi_statement_statements(task, parts, count + 1);
    task->body->again = before;
    task->body->always = always;
    return leave == OPDI_EXIT_ERROR ? -1 : 0;
}
/* Adds 1 to the counter of a for loop that may end early, at the end of an iteration.  *again tells if the body lets
   the loop continue; it becomes false if there are no more elements.  Returns 0, or -1 and sets an error. */
static int opdi_script_loop_count(opdi_emitter *task, const opdi_script_loop *loop, opdi_gvalue *at,
                                  opdi_gvalue **again) {
    task->nowhere = true;
    opdi_gvalue *next = opdi_emit_op2(task, "aten::add", at, loop->one);
    *again = opdi_emit_op2(task, "aten::__and__", opdi_emit_op2(task, "aten::lt", next, loop->length), *again);
    task->nowhere = false;
    return *again ? opdi_script_var_value(task, "$turn", next) : -1;
}
/* Compiles one iteration in the block of the loop.  Sets *again to a value that tells if the loop continues.  Returns
   0, or -1 and sets an error. */
static int opdi_script_loop_iteration(opdi_emitter *task, const opdi_script_loop *loop, opdi_gvalue *at,
                                      const opdi_cond_value *first, opdi_gvalue **again) {
    opdi_cond_value cond;
    if (loop->flags && (opdi_statement_set_flag(task, "$skip", false) || opdi_statement_set_flag(task, "$go", true))) {
        return -1;
    }
    if (loop->returns && (opdi_script_var_value(task, "$done", opdi_emit_flag_value(task, false)) ||
                          opdi_script_var_value(task, "$ret", task->body->unset))) { return -1; }
    if (first && opdi_emit_apply(task, first->holds)) { return -1; }
    if (loop->iter) {
        opdi_gvalue *item = opdi_script_iter_at(task, loop->iter, at, 0);
        if (!item || opdi_statement_assign(task, loop->target, item)) { return -1; }
    }
    if (loop->list) { return opdi_statement_collect(task, loop); }
    if (loop->flags) {
        if (opdi_script_loop_body(task, loop)) { return -1; }
        *again = opdi_statement_flag(task, "$go", task->body->loops);
        task->at = loop->node;
        return !*again ? -1 : loop->iter ? opdi_script_loop_count(task, loop, at, again) : 0;
    }
    if (opdi_statement_statements(task, loop->body->parts, loop->body->nparts) == OPDI_EXIT_ERROR) { return -1; }
    task->at = loop->node;
    if (!loop->condition) { return 0; }
    if (opdi_script_loop_condition(task, loop->condition, &cond)) { return -1; }
    *again = cond.value;
    return 0;
}
/* Adds the values that the carried variables have at the end of an iteration to the outputs of the loop's block.
   Returns 0, or -1 and sets an error. */
static int opdi_script_loop_outputs(opdi_emitter *task, const opdi_script_loop *loop, opdi_gblock *block,
                                    const opdi_gtype *const *types) {
    for (int i = 0; i < loop->ncarried; i++) {
        const opdi_script_var *var = opdi_script_var_find(task->frame, loop->names[i]);
        opdi_gvalue *value = var && var->sugared.kind == OPDI_SUGARED_VALUE ? var->sugared.value : NULL;
        if (!value) {
            return OPDI_EMIT_FAIL(task, "variable '%s' is not set on every path through the loop", loop->names[i]);
        }
        if (*loop->names[i] != '$' && !(value = opdi_emit_become(task, value, types[i], "variable '%s' of a loop",
                                                                 loop->names[i]))) { return -1; }
        if (opdi_emit_output(task, block, value)) { return -1; }
    }
    return 0;
}
/* Adds the node of a loop with at most `limit` iterations, the condition `start` and the carried variables of `loop`.
   Returns the node, or NULL and sets an error. */
static opdi_gnode *opdi_emit_loop(opdi_emitter *task, const opdi_script_loop *loop, opdi_gvalue *limit,
                                  opdi_gvalue *start) {
    char place[400];
    opdi_gvalue **carried = (opdi_gvalue **)opdi_emit_alloc(task, (size_t)(loop->ncarried + 1) * sizeof *carried);
    for (int i = 0; carried && i < loop->ncarried; i++) {
        carried[i] = opdi_script_var_find(task->frame, loop->names[i])->sugared.value;
    }
    task->at = loop->node;
    return carried ? opdi_append_loop(task->graph, limit, start, carried, loop->ncarried,
                                      opdi_emit_place(task, place, sizeof place)) : NULL;
}
/* Compiles a loop that is not unrolled.  Returns how the loop ends. */
OPDI_INTERNAL opdi_script_exit opdi_statement_loop(opdi_emitter *task, opdi_script_loop *loop) {
    opdi_cond_value cond;
    const opdi_gtype *const number = opdi_gtype_simple(OPDI_GTYPE_INT);
    opdi_gvalue *limit = loop->iter ? loop->iter->length : opdi_emit_literal(task, opd_value_int(INT64_MAX), number);
    if (!limit || opdi_script_loop_scan(task, loop)) { return OPDI_EXIT_ERROR; }
    memset(&cond, 0, sizeof cond);
    if (loop->condition && opdi_emit_cond(task, loop->condition, &cond)) { return OPDI_EXIT_ERROR; }
    opdi_gvalue *start = loop->condition ? cond.value : opdi_emit_bool(task, true), *again = start;
    loop->always = start;
    if (loop->iter && loop->flags) {               /* The loop may end early: counts its iterations in a variable, and
                                                      tests in its condition if all elements were visited. */
        opdi_gvalue *zero = opdi_append_constant(task->graph, opd_value_int(0), number, NULL);
        loop->length = limit;
        loop->one = opdi_append_constant(task->graph, opd_value_int(1), number, NULL);
        task->nowhere = true;
        start = opdi_emit_op2(task, "aten::gt", limit, zero);
        task->nowhere = false;
        limit = opdi_append_constant(task->graph, opd_value_int(INT64_MAX), number, NULL);
        if (!loop->one || !start || !limit || opdi_script_var_value(task, "$turn", zero)) { return OPDI_EXIT_ERROR; }
    }
    const opdi_gtype **types = (const opdi_gtype **)opdi_emit_alloc(task, (size_t)(loop->ncarried + 1) * sizeof *types);
    opdi_gnode *node = start && types ? opdi_emit_loop(task, loop, limit, start) : NULL;
    if (!node) { return OPDI_EXIT_ERROR; }
    opdi_gblock *block = &node->blocks[0];
    opdi_gvalue *at = block->inputs[0];
    opdi_script_frame frame;
    opdi_script_frame_enter(task, &frame);
    for (int i = 0; i < loop->ncarried; i++) {
        const opdi_script_var *var = opdi_script_var_find(frame.up, loop->names[i]);
        types[i] = var->type ? var->type : opdi_emit_type(var->sugared.value);
        opdi_gvalue *param = block->inputs[1 + i];
        opdi_emit_type_set(param, types[i]);
        param->first = opdi_emit_means(loop->names[i]);
        if (opdi_script_var_put(task, loop->names[i], opdi_sugared_value(param), types[i]) ||
            (*loop->names[i] == '$' && opdi_emit_await(task, param))) { return OPDI_EXIT_ERROR; }
        if (loop->iter && loop->flags && i + 1 == loop->ncarried) { at = param; }
    }
    opdi_gblock *before = opdi_emit_goto(task, block);
    task->body->loops++;
    int rc = opdi_script_loop_iteration(task, loop, at, loop->condition ? &cond : NULL, &again);
    rc = rc || opdi_emit_output(task, block, again) || opdi_script_loop_outputs(task, loop, block, types);
    task->body->loops--;
    opdi_emit_goto(task, before);
    task->frame = frame.up;
    if (rc) { return OPDI_EXIT_ERROR; }
    for (int i = 0; i < loop->ncarried; i++) {
        opdi_gvalue *out = opdi_emit_out(task, node, types[i]);
        if (!out || opdi_script_var_put(task, loop->names[i], opdi_sugared_value(out), types[i])) {
            return OPDI_EXIT_ERROR;
        }
        opdi_emit_name_later(task, block->inputs[1 + i], loop->names[i]);
        opdi_emit_name_later(task, out, loop->names[i]);
        if (*loop->names[i] == '$' && opdi_emit_await(task, out)) { return OPDI_EXIT_ERROR; }
    }
    if (loop->iter && loop->flags) { opdi_emit_name_later(task, at, NULL); }
    if (!loop->returns) { return OPDI_EXIT_NONE; }
    if (task->body->loops) {                       /* after a return inside of the loop, the outer loop has to end,
                                                      too */
        opdi_gvalue *done = opdi_statement_flag(task, "$done", 0);
        const char *skip = opdi_emit_flag(task, "$skip", task->body->loops);
        const char *go = opdi_emit_flag(task, "$go", task->body->loops);
        if (!skip || !go || opdi_script_var_value(task, skip, done) ||
            opdi_script_var_value(task, go, opdi_emit_op1(task, "aten::__not__", done))) { return OPDI_EXIT_ERROR; }
    }
    return OPDI_EXIT_MAYBE;
}
/* Compiles iteration number `turn` of an unrolled loop.  Returns how the iteration ends. */
OPDI_INTERNAL opdi_script_exit opdi_script_loop_unrolled_iteration(opdi_emitter *task, const opdi_script_loop *loop,
                                                                   int turn) {
    opdi_gvalue *at = opdi_emit_int(task, turn), *item = at ? opdi_script_iter_at(task, loop->iter, at, turn) : NULL;
    if (!item || opdi_statement_assign(task, loop->target, item)) { return OPDI_EXIT_ERROR; }
    if (loop->list) { return opdi_statement_collect(task, loop) ? OPDI_EXIT_ERROR : OPDI_EXIT_NONE; }
    const opdi_script_loop *const around = task->body->unrolled;
    const opdi_script_exit leave = opdi_statement_statements(task, loop->body->parts, loop->body->nparts);
    task->body->unrolled = around;
    return leave;
}
/* Unrolls a loop whose length is known.  Each iteration is compiled like a statement, so that a return in one iteration
   skips the iterations after it.  Returns how the loop ends. */
OPDI_INTERNAL opdi_script_exit opdi_statement_unrolled(opdi_emitter *task, opdi_script_loop *loop) {
    const int count = loop->iter->count;
    opdi_script_scan scan;
    memset(&scan, 0, sizeof scan);
    if (loop->body->kind == OPDI_SYNTAX_BLOCK) { opdi_script_scan_statement(&scan, loop->body, false); }
    opdi_string_free(&scan.names);
    if (scan.leaves_turn) {
        (void)OPDI_EMIT_FAIL(task, "break and continue are not supported in a loop over a tuple: loop over a list");
        return OPDI_EXIT_ERROR;
    }
    opdi_syntax *turns = (opdi_syntax *)opdi_emit_alloc(task, (size_t)(count + 1) * sizeof *turns);
    opdi_syntax **nodes = (opdi_syntax **)opdi_emit_alloc(task, (size_t)(count + 1) * sizeof *nodes);
    if (!turns || !nodes) { return OPDI_EXIT_ERROR; }
    for (int i = 0; i < count; i++) {
        turns[i] = *loop->node;
        turns[i].kind = OPDI_SYNTAX_TURN;
        turns[i].integer = i;
        nodes[i] = &turns[i];
    }
    const opdi_script_loop *const around = task->body->unrolled;
    task->body->unrolled = loop;
    const opdi_script_exit leave = opdi_statement_statements(task, nodes, count);
    task->body->unrolled = around;
    return leave;
}
/* Compiles the element of a comprehension and appends it to loop->list.  The first element determines the type of the
   list.  Returns 0, or -1 and sets an error. */
static int opdi_statement_collect(opdi_emitter *task, const opdi_script_loop *loop) {
    opdi_script_branch branch;
    opdi_cond_value cond;
    if (loop->only) {
        if (opdi_emit_cond(task, loop->only, &cond) || opdi_script_branch_begin(task, &branch, cond.value)) {
            return -1;
        }
        opdi_script_branch_side(task, &branch, 0);
        if (opdi_emit_apply(task, cond.holds)) { return -1; }
    }
    opdi_gvalue *key = loop->key ? opdi_emit_expr(task, loop->key, NULL) : NULL;
    opdi_gvalue *value = loop->key && !key ? NULL : opdi_emit_expr(task, loop->body, NULL);
    if (!value) { return -1; }
    if (opdi_emit_untyped(task, loop->list)) {
        opdi_emit_retype(task, loop->list, key
                         ? opdi_gtype_dict(task->space, opdi_emit_type(key), opdi_emit_type(value))
                         : opdi_gtype_list(task->space, opdi_emit_type(value)));
    }
    task->at = loop->node;
    if (key ? !opdi_emit_op3(task, "aten::_set_item", loop->list, key, value)
        : !opdi_emit_op2(task, "aten::append", loop->list, value)) { return -1; }
    return loop->only ? opdi_script_branch_end(task, &branch) : 0;
}
/* Compiles a comprehension, such as [f(x) for x in y if c] or {k: v for ...}.  `hint` is the type that the result
   should have, or NULL.  Returns the list or dict, or NULL and sets an error. */
OPDI_INTERNAL opdi_gvalue *opdi_emit_comprehension(opdi_emitter *task, const opdi_syntax *node,
                                                   const opdi_gtype *hint) {
    const int first = node->kind == OPDI_SYNTAX_DICTCOMP ? 2 : 1;
    opdi_script_loop loop;
    opdi_script_frame frame;
    memset(&loop, 0, sizeof loop);
    if (hint && hint->kind == OPDI_GTYPE_OPTIONAL) { hint = hint->parts[0]; }
    loop.node = node;
    loop.key = first == 2 ? node->parts[0] : NULL;
    loop.body = node->parts[first - 1];
    loop.target = node->parts[first];
    loop.only = node->parts[first + 2];
    loop.list = opdi_emit_empty(task, first == 2);
    if (!loop.list) { return NULL; }
    opdi_emit_retype(task, loop.list,
                     hint && hint->kind == (first == 2 ? OPDI_GTYPE_DICT : OPDI_GTYPE_LIST) ? hint : NULL);
    loop.iter = opdi_emit_iterate(task, node->parts[first + 1]);
    if (!loop.iter) { return NULL; }
    opdi_script_frame_enter(task, &frame);
    task->at = node;
    const opdi_script_exit leave = loop.iter->count >= 0 ? opdi_statement_unrolled(task, &loop)
        : opdi_statement_loop(task, &loop);
    task->frame = frame.up;
    return leave == OPDI_EXIT_ERROR ? NULL : loop.list;
}
