#include "base.h"

//== arenas ============================================================================================================

/* If OPDI_ARENA_TIGHT is true, every piece gets a separate block, so that a test can let each allocation fail. */
#if !defined(OPDI_ARENA_TIGHT)
#define OPDI_ARENA_TIGHT 0
#endif

/* Adds a new block, with room for at least `count` bytes, to the arena.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_arena_grow(opdi_arena *arena, size_t count) {
    const size_t head = sizeof(opdi_arena_block);
    size_t size = count < 1024 - head - 8 ? 1024 : count + head + 8;
    if (size < count) {
        return opd_fail(OPD_ERROR_MEMORY, "out of memory: an allocation of %llu bytes failed",
                        (unsigned long long)count);
    }
    opdi_arena_block *block = (opdi_arena_block *)opdi_alloc(size);
    if (block == NULL) { return -1; }
    block->next = arena->blocks;
    block->size = size;
    arena->blocks = block;
    arena->at = (char *)block + head;
    arena->end = (char *)block + size;
    return 0;
}

/* Returns `size` bytes of the arena, which are aligned to 8 and not cleared.  Returns NULL and sets an error if memory
   runs out. */
OPDI_INTERNAL void *opdi_arena_alloc(opdi_arena *arena, size_t size) {
    size_t pad = (size_t)(0u - (uintptr_t)arena->at) & 7u;
    if (OPDI_UNLIKELY(OPDI_ARENA_TIGHT || arena->at == NULL || (size_t)(arena->end - arena->at) < pad ||
                      (size_t)(arena->end - arena->at) - pad < size)) {
        if (opdi_arena_grow(arena, size) < 0) { return NULL; }
        pad = (size_t)(0u - (uintptr_t)arena->at) & 7u;
    }
    void *memory = arena->at + pad;
    arena->at += pad + size;
    return memory;
}

/* Returns a copy of the `length` bytes at `text`, with a terminating zero, in the arena.  The copy is not aligned.
   Returns NULL and sets an error if memory runs out. */
OPDI_INTERNAL char *opdi_arena_copy(opdi_arena *arena, const char *text, size_t length) {
    if (OPDI_UNLIKELY(OPDI_ARENA_TIGHT || arena->at == NULL || (size_t)(arena->end - arena->at) <= length)) {
        if (length == SIZE_MAX || opdi_arena_grow(arena, length + 1) < 0) { return NULL; }
    }
    char *at = arena->at;
    arena->at += length + 1;
    if (length > 0) { memcpy(at, text, length); }
    at[length] = 0;
    return at;
}

OPDI_INTERNAL void opdi_arena_free(opdi_arena *arena) {
    opdi_arena_block *block = arena->blocks;
    while (block != NULL) {
        opdi_arena_block *next = block->next;
        opdi_free(block, block->size);
        block = next;
    }
    arena->blocks = NULL;
    arena->at = arena->end = NULL;
}

static int64_t opdi_pointer_set_slot(const opdi_pointer_set *found, uintptr_t p) {
    const uint64_t mask = (uint64_t)(2 * found->cap - 1);
    uint64_t hash = (uint64_t)p * 0x9e3779b97f4a7c15u;
    for (hash = (hash ^ hash >> 29) & mask; found->table[hash] >= 0 && found->at[found->table[hash]] != p;
         hash = (hash + 1) & mask) { }
    return (int64_t)hash;
}
OPDI_INTERNAL void opdi_pointer_set_free(opdi_pointer_set *found) {
    opdi_free(found->at, (size_t)found->cap * sizeof *found->at);
    opdi_free(found->table, (size_t)(2 * found->cap) * sizeof *found->table);
}
/* Doubles the capacity of `found`.  Returns 0, or -1 with an error and `found` unchanged. */
static int opdi_pointer_set_grow(opdi_pointer_set *found) {
    opdi_pointer_set big;
    big.count = found->count;
    big.cap = found->cap ? 2 * found->cap : 64;
    big.at = (uintptr_t *)opdi_alloc((size_t)big.cap * sizeof *big.at);
    big.table = big.at ? (int64_t *)opdi_alloc((size_t)(2 * big.cap) * sizeof *big.table) : NULL;
    if (!big.table) {
        opdi_free(big.at, (size_t)big.cap * sizeof *big.at);
        return -1;
    }
    for (int64_t i = 0; i < 2 * big.cap; i++) { big.table[i] = -1; }
    for (int64_t i = 0; i < found->count; i++) {
        big.at[i] = found->at[i];
        big.table[opdi_pointer_set_slot(&big, found->at[i])] = i;
    }
    opdi_pointer_set_free(found);
    *found = big;
    return 0;
}
/* Returns the index of the pointer `p` in `found`, and adds `p` if it is new.  Returns -1 and sets an error if memory
   runs out. */
OPDI_INTERNAL int64_t opdi_pointer_set_add(opdi_pointer_set *found, uintptr_t p) {
    if (found->count == found->cap && opdi_pointer_set_grow(found)) { return -1; }
    int64_t slot = opdi_pointer_set_slot(found, p);
    if (found->table[slot] < 0) {
        found->at[found->count] = p;
        found->table[slot] = found->count++;
    }
    return found->table[slot];
}

//== tables of names ===================================================================================================

/* Returns the number on which all hashes of this process depend. */
static uint64_t opdi_index_seed(void) {
    static uintptr_t seed;
    uintptr_t was = OPDI_LOAD(&seed);
    const uintptr_t fresh = was ? was : ((uintptr_t)&was ^ (uintptr_t)time(NULL) * 31 ^ (uintptr_t)clock() << 12) | 1;
    while (!was && !OPDI_EXCHANGE(&seed, &was, fresh)) { }
    return (was ? was : fresh) * (uint64_t)0x9E3779B97F4A7C15u;
}
static uint64_t opdi_index_hash(const char *key, size_t length) {
    const uint64_t seed = opdi_index_seed();
    uint64_t hash = seed ^ length, word = 0;
    for (; length >= 8; length -= 8, key += 8) {
        memcpy(&word, key, 8);
        hash = ((hash ^ word) * 0x9E3779B97F4A7C15u) ^ seed;
        hash ^= hash >> 29;
    }
    for (word = 0; length > 0; length--) { word = word << 8 | (uint8_t)key[length - 1]; }
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
}
static opdi_index_slot *opdi_index_slot_of(const opdi_index *index, const char *key, size_t length, uint64_t hash) {
    size_t i = (size_t)hash & (index->cap - 1);
    for (; index->slots[i].entry; i = (i + 1) & (index->cap - 1)) {
        const opdi_index_slot *const slot = &index->slots[i];
        if (slot->hash == hash && slot->length == length && memcmp(slot->key, key, length) == 0) { break; }
    }
    return &index->slots[i];
}
/* Returns the entry with the key, or NULL. */
OPDI_INTERNAL void *opdi_index_get(const opdi_index *index, const char *key, size_t length) {
    return index->count ? opdi_index_slot_of(index, key, length, opdi_index_hash(key, length))->entry : NULL;
}
/* Returns the entry whose key is a text, or NULL. */
OPDI_INTERNAL void *opdi_index_named(const opdi_index *index, const char *name) {
    return opdi_index_get(index, name, strlen(name));
}
/* Makes `entry` the entry with the key.  The key must stay where it is.  The table is in the arena; an arena that is
   freed frees it.  Returns 0, or -1 and sets an error if memory runs out. */
OPDI_INTERNAL int opdi_index_set(opdi_index *index, opdi_arena *arena, const char *key, size_t length, void *entry) {
    if (4 * (index->count + 1) > 3 * index->cap) {
        opdi_index big;
        big.count = index->count;
        big.cap = index->cap ? 2 * index->cap : 8;
        big.slots = (opdi_index_slot *)opdi_arena_alloc(arena, big.cap * sizeof *big.slots);
        if (!big.slots) { return -1; }
        memset(big.slots, 0, big.cap * sizeof *big.slots);
        for (size_t i = 0; i < index->cap; i++) {
            const opdi_index_slot *const slot = &index->slots[i];
            if (slot->entry) { *opdi_index_slot_of(&big, slot->key, slot->length, slot->hash) = *slot; }
        }
        *index = big;
    }
    const uint64_t hash = opdi_index_hash(key, length);
    opdi_index_slot *const slot = opdi_index_slot_of(index, key, length, hash);
    index->count += !slot->entry;
    slot->key = key;
    slot->length = length;
    slot->hash = hash;
    slot->entry = entry;
    return 0;
}
