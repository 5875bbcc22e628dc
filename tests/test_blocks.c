/* Graphs with blocks, and their values that are no tensors: strings, lists, dicts, tuples, objects. */
#include "../opdispatch.h"
#include "check.h"

static bool prints(opd_value value, const char *want) {
    char text[500];
    (void)opd_value_print(value, text, sizeof text);
    if (strcmp(text, want) != 0) { fprintf(stderr, "printed: %s\n", text); }
    return strcmp(text, want) == 0;
}

TEST(cells_are_made_read_and_printed) {
    OPD_SCOPE {
        opd_value list = opd_list_new(OPD_TAG_INTS), dict = opd_dict_new(), parts[3], got;
        for (int i = 0; i < 20; i++) { CHECK_INT(opd_list_append(list, opd_value_int(i * i)), 0); }
        CHECK_INT(opd_list_count(list), 20);
        CHECK_INT(opd_list_at(list, -1).u.i, 361);
        CHECK(opd_value_cell(list) == OPD_CELL_LIST);
        CHECK_INT(opd_list_append(list, opd_value_str("x")), -1);
        opd_error_clear();
        for (int i = 0; i < 100; i++) {
            char key[20];
            (void)snprintf(key, sizeof key, "k%d", i);
            CHECK_INT(opd_dict_set(dict, opd_value_str(key), opd_value_int(i)), 0);
            CHECK_INT(opd_dict_set(dict, opd_string_new(key, -1), opd_value_int(i + 1)), 0);
        }
        CHECK_INT(opd_list_count(dict), 100);
        CHECK_INT(opd_dict_get(dict, opd_value_str("k77"), &got), 1);
        CHECK_INT(got.u.i, 78);
        CHECK_INT(opd_dict_get(dict, opd_value_str("k100"), &got), 0);
        got = opd_value_str("a");
        CHECK_STR(opd_string_text(&got, NULL), "a");
        parts[0] = opd_string_new("text", -1);
        parts[1] = opd_value_float(0.1);
        parts[2] = opd_dict_new();
        CHECK_INT(opd_dict_set(parts[2], opd_value_int(3), opd_value_of_ints(OPD_INTS(1, 2))), 0);
        CHECK(prints(opd_tuple_new(parts, 3), "(text, 0.10000000000000001, {3: [1, 2]})"));
        CHECK(prints(opd_tuple_new(parts, 1), "(text,)"));
        CHECK(prints(opd_value_float(-0.0), "0."));
    }
    CHECK_OK();
}

CHECK_MAIN()
