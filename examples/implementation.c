/* The C file that contains the library, for programs whose other files are not C: see cuda_op.cu.
   cc -O2 -shared -fPIC examples/implementation.c -o implementation.so -lm -lpthread */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
