#include "use.h"
int main(void) { return use_library(); }
