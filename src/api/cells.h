//----------------------------------------------------------------------------------------------------------------------
//  >>api:cells      strings, lists, dicts, tuples and objects of graphs and scripts
//----------------------------------------------------------------------------------------------------------------------

/* What graphs and scripts have beside tensors and numbers lives in cells: opd_value with OPD_TAG_CELL, counted
   references.  One that a function here makes belongs to the innermost scope, as tensors do; opd_value_keep holds it
   (or a tensor; other values need nothing) across scopes, opd_value_release ends that.  A cell holds what is in it.
   What is read from one is borrowed: it is there as long as the cell has it.  Lists of one kind of number, and lists of
   tensors, pass to operators as they are.  Cells that hold each other are never freed.  A failing function gives None
   or -1, with an error. */
typedef enum opd_cell_kind {
    OPD_CELL_NONE = 0,           /* no cell */
    OPD_CELL_STR, OPD_CELL_COMPLEX, OPD_CELL_LIST, OPD_CELL_DICT, OPD_CELL_TUPLE, OPD_CELL_OBJECT
} opd_cell_kind;
OPD_API opd_cell_kind opd_value_cell(opd_value value);
OPD_API opd_value opd_value_keep(opd_value value);
OPD_API void opd_value_release(opd_value value);
/* A string of length bytes, which are copied; -1: up to its zero. */
OPD_API opd_value opd_string_new(const char *text, int64_t length);
/* The text of a string, zero-terminated; NULL, without an error, for what is none.  length: NULL or where it goes. */
OPD_API const char *opd_string_text(const opd_value *value, int64_t *length);
/* An empty list of: OPD_TAG_INTS, OPD_TAG_FLOATS, OPD_TAG_BOOLS, OPD_TAG_TENSORS (None may be in it), or OPD_TAG_LIST:
   anything. */
OPD_API opd_value opd_list_new(opd_tag elements);
OPD_API int opd_list_append(opd_value list, opd_value element);
OPD_API int opd_list_set(opd_value list, int64_t place, opd_value element);
/* Of lists, plain ones too, tuples, and dicts; -1 with an error for another value. */
OPD_API int64_t opd_list_count(opd_value list);
/* An element of a list or tuple, or a part of a complex number; negative places count from the end. */
OPD_API opd_value opd_list_at(opd_value list, int64_t place);
OPD_API opd_value opd_tuple_new(const opd_value *elements, int64_t count);
/* The name of a named tuple's element, NULL where it has none. */
OPD_API const char *opd_tuple_name(opd_value tuple, int64_t place);
/* Dicts keep the order in which keys came.  Keys: int, float, bool, string, tensor (the very one). */
OPD_API opd_value opd_dict_new(void);
OPD_API int opd_dict_set(opd_value dict, opd_value key, opd_value value);
/* Writes the value of a key to *value: 1, 0 if there is none, or -1 with an error. */
OPD_API int opd_dict_get(opd_value dict, opd_value key, opd_value *value);
OPD_API opd_value opd_dict_key_at(opd_value dict, int64_t place);
OPD_API opd_value opd_dict_value_at(opd_value dict, int64_t place);
/* An object's class by its qualified name ("__torch__.M"), or a named tuple's (NULL: it has none); an object's
   attributes. */
OPD_API const char *opd_object_class(opd_value object);
OPD_API opd_value opd_object_get(opd_value object, const char *name);
OPD_API int opd_object_set(opd_value object, const char *name, opd_value value);
/* Writes a value as TorchScript's print does, cut to cap bytes with the zero; returns the full length. */
OPD_API size_t opd_value_print(opd_value value, char *buf, size_t cap);

