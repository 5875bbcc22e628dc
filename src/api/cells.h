//----------------------------------------------------------------------------------------------------------------------
//  >>api:cells      strings, lists, dicts, tuples and objects of graphs and scripts (may change)
//----------------------------------------------------------------------------------------------------------------------

/* The kinds of cells.  Graphs and scripts keep values other than tensors and numbers in cells: an opd_value with
   OPD_TAG_CELL is a counted reference to a cell.  A new cell belongs to the innermost scope, as tensors do.  A cell
   owns its elements; an element that is read from it is borrowed.  Lists of one kind of number, and lists of tensors,
   can be passed to operators as they are.  Cells that refer to each other in a cycle are never freed.  On failure,
   functions set an error and return None or -1. */
typedef enum opd_cell_kind {
    OPD_CELL_NONE = 0,           /* not a cell */
    OPD_CELL_STR,
    OPD_CELL_COMPLEX,
    OPD_CELL_LIST,
    OPD_CELL_DICT,               /* keeps the order in which keys were added */
    OPD_CELL_TUPLE,
    OPD_CELL_OBJECT
} opd_cell_kind;
OPD_NEW opd_cell_kind opd_value_cell(opd_value value);
/* opd_value_keep keeps the cell or tensor of a value alive after its scope ends, and returns the value.
   opd_value_release releases it again.  For a value without a cell or tensor, neither function has an effect.  For a
   tensor, they do the same as opd_keep and opd_release. */
OPD_NEW opd_value opd_value_keep(opd_value value);
OPD_NEW void opd_value_release(opd_value value);
/* Makes a string of `length` bytes, which are copied.  If length is -1, the string ends before the first zero byte. */
OPD_NEW opd_value opd_string_new(const char *text, int64_t length);
/* Returns the text of a string, zero-terminated; NULL, without an error, if the value is not a string.  Writes the
   length to *length, unless length is NULL. */
OPD_NEW const char *opd_string_text(const opd_value *value, int64_t *length);
/* Makes an empty list of elements of one kind: OPD_TAG_INTS, OPD_TAG_FLOATS, OPD_TAG_BOOLS or OPD_TAG_TENSORS (may
   contain None).  A list of OPD_TAG_LIST takes any values. */
OPD_NEW opd_value opd_list_new(opd_tag elements);
/* opd_list_append adds an element at the end of a list.  opd_list_set replaces the element at a place; negative places
   count from the end.  Both return 0, or -1 with an error. */
OPD_NEW int opd_list_append(opd_value list, opd_value element);
OPD_NEW int opd_list_set(opd_value list, int64_t place, opd_value element);
/* Returns the number of elements of a list (also of a list that is not a cell), tuple or dict; -1 with an error for
   another value. */
OPD_NEW int64_t opd_list_count(opd_value list);
/* Returns an element of a list or tuple, or the real (0) or imaginary (1) part of a complex number.  Negative places
   count from the end. */
OPD_NEW opd_value opd_list_at(opd_value list, int64_t place);
/* Makes a tuple of count values. */
OPD_NEW opd_value opd_tuple_new(const opd_value *elements, int64_t count);
/* Returns the name of a named tuple's element; NULL if it has none. */
OPD_NEW const char *opd_tuple_name(opd_value tuple, int64_t place);
/* Makes an empty dict. */
OPD_NEW opd_value opd_dict_new(void);
/* Sets the value of a key in a dict.  A key is an int, float, bool, string or tensor (compared by identity).  Returns
   0, or -1 with an error. */
OPD_NEW int opd_dict_set(opd_value dict, opd_value key, opd_value value);
/* Writes the value of a key to *value.  Returns 1; 0 if the key is missing; or -1 with an error. */
OPD_NEW int opd_dict_get(opd_value dict, opd_value key, opd_value *value);
/* opd_dict_key_at and opd_dict_value_at return the key and the value at a place of a dict, in order. */
OPD_NEW opd_value opd_dict_key_at(opd_value dict, int64_t place);
OPD_NEW opd_value opd_dict_value_at(opd_value dict, int64_t place);
/* Returns the qualified name of an object's class ("__torch__.M"), or of a named tuple's; NULL for other tuples. */
OPD_NEW const char *opd_object_class(opd_value object);
/* opd_object_get returns an attribute of an object by name.  opd_object_set sets it. */
OPD_NEW opd_value opd_object_get(opd_value object, const char *name);
OPD_NEW int opd_object_set(opd_value object, const char *name, opd_value value);
/* Writes a value to buf as TorchScript's print does, cut to `cap` bytes including the final zero.  Returns the full
   length. */
OPD_NEW size_t opd_value_print(opd_value value, char *buf, size_t cap);

