/* The ways in which the tests of blocks compute: each level of instructions of the processor, with and without those for words
   of 8-bit integers and for tiles, and one or three threads. */
#ifndef OPD_TESTS_BLOCK_WAYS_H
#define OPD_TESTS_BLOCK_WAYS_H
#include "../inside.h"

enum { BLOCKS_TILES = 4 };                        /* OPDI_HAS_TILES */
static int blocks_level, blocks_words;
/* Returns the number of the first way. */
static int blocks_begin(void) {
    inside_cpu_level_set(-1);
    inside_words_set(-1);
    blocks_level = inside_cpu_level();
    blocks_words = inside_words();
    return 0;
}
/* Prepares a way.  Returns false if there are no more ways. */
static bool blocks_way(int way) {
    if (way / 2 > blocks_level + (blocks_words != 0) + ((blocks_words & BLOCKS_TILES) != 0)) return false;
    opd_threads_set(way % 2 ? 3 : 1);
    inside_cpu_level_set(way / 2 < blocks_level ? way / 2 : blocks_level);
    const int words = way / 2 == blocks_level + 1 ? blocks_words & ~BLOCKS_TILES : blocks_words;
    inside_words_set(way / 2 > blocks_level ? words : 0);
    return true;
}
/* Returns whether the result of a way has the same bits as that of the way before it. */
static bool blocks_way_same(int way) { return way % 2 == 1 || way / 2 == blocks_level + 2; }
/* Prepares the way that other programs use. */
static void blocks_end(void) {
    opd_threads_set(0);
    inside_cpu_level_set(-1);
    inside_words_set(-1);
}
#endif
