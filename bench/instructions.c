/* Calls one operator a number of times.  bench/instructions.sh counts the instructions of this program in an emulator.
   cc -O2 bench/instructions.c -o instructions -lm -lpthread -ldl
   ci: matmul-f32 1

   instructions NAME TIMES   calls the operator TIMES times; the names are in the list below
   instructions --list       prints each name, and the elements (or multiply-adds) of one call
   instructions --help       prints the usage */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIDE 256
#define COUNT 65536

static const struct { const char *name; int operator_number; opd_scalar_type dtype; } rows[] = {
    {"matmul-f32", 0, OPD_FLOAT32}, {"matmul-f64", 0, OPD_FLOAT64},
    {"exp-f32", 1, OPD_FLOAT32}, {"exp-f64", 1, OPD_FLOAT64},
    {"log-f32", 2, OPD_FLOAT32}, {"log-f64", 2, OPD_FLOAT64},
    {"tanh-f32", 3, OPD_FLOAT32}, {"tanh-f64", 3, OPD_FLOAT64},
    {"sqrt-f32", 4, OPD_FLOAT32}, {"sqrt-f64", 4, OPD_FLOAT64},
    {"add-f32", 5, OPD_FLOAT32}, {"add-f64", 5, OPD_FLOAT64},
    {"add-f16", 5, OPD_FLOAT16}, {"add-bf16", 5, OPD_BFLOAT16},
    {"sum-f32", 6, OPD_FLOAT32}, {"sum-f64", 6, OPD_FLOAT64},
    {"max-f32", 7, OPD_FLOAT32},
    {"to-f16", 8, OPD_FLOAT32}, {"from-f16", 9, OPD_FLOAT16}};
enum { ROWS = sizeof rows / sizeof *rows };

static opd_tensor *call(int operator_number, opd_tensor *x, opd_tensor *y) {
    switch (operator_number) {
        case 0: return opd_mm(x, y);
        case 1: return opd_exp(x);
        case 2: return opd_log(x);
        case 3: return opd_tanh(x);
        case 4: return opd_sqrt(x);
        case 5: return opd_add(x, y);
        case 6: return opd_sum(x);
        case 7: return opd_max(x);
        case 8: return opd_to_dtype(x, OPD_FLOAT16);
        default: return opd_to_dtype(x, OPD_FLOAT32);
    }
}
int main(int argc, char **argv) {
    int row = 0;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (row = 0; row < ROWS; row++) {
            printf("%s %d\n", rows[row].name, rows[row].operator_number ? COUNT : SIDE * SIDE * SIDE);
        }
        return 0;
    }
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        printf("usage: instructions NAME TIMES, or instructions --list\n");
        return 0;
    }
    while (argc == 3 && row < ROWS && strcmp(argv[1], rows[row].name) != 0) { row++; }
    if (argc != 3 || row == ROWS) {
        fprintf(stderr, "usage: instructions NAME TIMES, or instructions --list\n");
        return 2;
    }
    opd_threads_set(1);
    OPD_SCOPE {
        opd_tensor *x = opd_to_dtype(opd_rand(OPD_INTS(SIDE, SIDE), OPD_FLOAT32), rows[row].dtype);
        opd_tensor *y = opd_to_dtype(opd_rand(OPD_INTS(SIDE, SIDE), OPD_FLOAT32), rows[row].dtype);
        for (int i = atoi(argv[2]); i > 0 && opd_ok(); i--) { OPD_SCOPE { (void)call(rows[row].operator_number, x, y); } }
    }
    return opd_finish();
}
