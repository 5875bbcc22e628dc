#include "../ops.h"

//== packed forms of weights ===========================================================================================
//
//  Some kernels read a weight in another order than it has.  The packed form stays with the memory of the weight, and
//  later calls use it.  They recognise the bytes of the weight by two numbers of 64 bits, of which one depends on each
//  byte.  So each write to the weight is noticed, also one through a pointer, which no version counts.

enum { OPDI_PACKINGS = 64 };                      /* most packed forms of one memory */

/* Mixes the bits of a number; different numbers stay different.  A product alone would leave a change of the highest
   bit a change of this bit, which changes of signs in the next word could undo. */
OPDI_ALWAYS uint64_t opdi_packing_mix(uint64_t x) {
    x = (x ^ x >> 32) * UINT64_C(0x9fb21c651e98df25);
    return x ^ x >> 32;
}
/* Sets print[2] to the numbers by which `count` bytes are recognised. */
static void opdi_packing_print(const uint8_t *bytes, int64_t count, uint64_t print[2]) {
    uint64_t a = 0, b = 0, c = 0, d = 0, e = 1, f = 1, g = 1, h = 1, words[8];
    for (int64_t at = 0; at < count; at += 64) {
        if (at + 64 > count) { memset(words, 0, sizeof words); }
        memcpy(words, bytes + at, (size_t)OPDI_MIN((int64_t)64, count - at));
        a = opdi_packing_mix(a ^ words[0]);
        b = opdi_packing_mix(b ^ words[1]);
        c = opdi_packing_mix(c ^ words[2]);
        d = opdi_packing_mix(d ^ words[3]);
        e = opdi_packing_mix(e ^ words[4]);
        f = opdi_packing_mix(f ^ words[5]);
        g = opdi_packing_mix(g ^ words[6]);
        h = opdi_packing_mix(h ^ words[7]);
    }
    a = opdi_packing_mix(opdi_packing_mix(opdi_packing_mix(a) ^ b) ^ c) ^ d;
    e = opdi_packing_mix(opdi_packing_mix(opdi_packing_mix(e) ^ f) ^ g) ^ h;
    print[0] = a;
    print[1] = e;
}
/* Drops a reference to a packed form. */
OPDI_INTERNAL void opdi_packing_drop(opdi_packing *packing) {
    if (opdi_ref_down(&packing->refs) == 0) { opdi_free(packing, packing->block_bytes); }
}
/* Takes the packed forms of a storage away from it, so that no other thread changes them. */
static opdi_packing *opdi_packings_take(opdi_storage *storage) {
    opdi_packing *list = OPDI_ACQUIRE(&storage->packed), *const none = NULL;
    while (list && !OPDI_EXCHANGE(&storage->packed, &list, none)) { }
    return list;
}
/* Gives packed forms to a storage, before those that another thread has given to it. */
static void opdi_packings_give(opdi_storage *storage, opdi_packing *list) {
    opdi_packing *last = list, *now = OPDI_ACQUIRE(&storage->packed);
    if (!list) { return; }
    while (last->next) { last = last->next; }
    do { last->next = now; } while (!OPDI_EXCHANGE(&storage->packed, &now, list));
}
static void opdi_packings_drop(opdi_storage *storage) {
    opdi_packing *next, *list = opdi_packings_take(storage);
    for (; list; list = next) {
        next = list->next;
        opdi_packing_drop(list);
    }
}
/* Returns a reference to the packed form of weights with this key, if the storage has it.  Drops such a form of other
   bytes, and the forms that several threads have added above the limit.  Sets *count to the number of forms that the
   storage has. */
static opdi_packing *opdi_packing_find(opdi_storage *storage, const opdi_packing_key *key, int *count) {
    opdi_packing *list = opdi_packings_take(storage), *found = NULL;
    *count = 0;
    for (opdi_packing **at = &list; *at;) {
        opdi_packing *const packing = *at;
        const bool same = memcmp(&packing->key, key, offsetof(opdi_packing_key, print)) == 0;
        const bool equal = same && memcmp(packing->key.print, key->print, sizeof key->print) == 0;
        if (equal && !found) {
            found = packing;
            opdi_ref_up(&found->refs);
        } else if (same || *count >= OPDI_PACKINGS) {
            *at = packing->next;
            opdi_packing_drop(packing);
            continue;
        }
        at = &packing->next;
        ++*count;
    }
    opdi_packings_give(storage, list);
    return found;
}
/* Returns a reference to the packed form of the `count` bytes of a weight, which are at `bytes`: the one that the
   memory of `weight` has, or a new one.  pack(user, data) writes its key->bytes bytes to data, whose address is a
   multiple of 64; it returns 0, or -1 and sets an error.  The caller sets the other members of the key.  Returns NULL
   and sets an error on failure. */
OPDI_INTERNAL opdi_packing *opdi_packing_of(const opd_tensor *weight, const void *bytes, int64_t count,
                                            opdi_packing_key *key, opdi_packing_fn *pack, void *user) {
    opdi_storage *const storage = weight->storage;
    int found;
    key->place = weight->data - storage->data;
    key->count = count;
    opdi_packing_print((const uint8_t *)bytes, count, key->print);
    opdi_packing *packing = opdi_packing_find(storage, key, &found);
    if (packing) { return packing; }
    const size_t block_bytes = sizeof *packing + 64 + (size_t)key->bytes;
    packing = (opdi_packing *)opdi_alloc(block_bytes);
    if (!packing) { return NULL; }
    packing->next = NULL;
    packing->refs = 1;
    packing->key = *key;
    packing->block_bytes = block_bytes;
    packing->data = (char *)(((uintptr_t)(packing + 1) + 63) & ~(uintptr_t)63);
    if (pack(user, packing->data)) {
        opdi_packing_drop(packing);
        return NULL;
    }
    if (found < OPDI_PACKINGS) {
        OPDI_PUBLISH(&opdi_on_release.packed, &opdi_packings_drop);
        opdi_ref_up(&packing->refs);
        opdi_packings_give(storage, packing);
    }
    return packing;
}
