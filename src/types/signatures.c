#include "types.h"

//== signatures of C functions =========================================================================================
//
//  A signature has a letter for each type of a C function, the result first: "Tid" is opd_tensor *(int64_t, double).

/* Returns 1 if an argument of this type may be passed as the C type that `letter` means in a signature, else 0. */
OPDI_INTERNAL int opdi_signature_type(const opdi_type *type, char letter) {
    const opdi_type *inner = type->kind == OPDI_TYPE_OPTIONAL ? type->elems[0] : type;
    const opdi_type *elem = inner->kind == OPDI_TYPE_LIST ? inner->elems[0] : NULL;
    switch (letter) {
    case 'T': return inner->kind == OPDI_TYPE_TENSOR;
    case 'i': return inner->kind == OPDI_TYPE_INT || inner->kind == OPDI_TYPE_NUMBER;
    case 'd': return inner->kind == OPDI_TYPE_FLOAT || inner->kind == OPDI_TYPE_NUMBER;
    case 'b': return inner->kind == OPDI_TYPE_BOOL;
    case 's': return inner->kind == OPDI_TYPE_STR;
    case 'D': return inner->kind == OPDI_TYPE_DEVICE;
    case 'G': return inner->kind == OPDI_TYPE_GENERATOR;
    case 'I': return elem && elem->kind == OPDI_TYPE_INT;
    case 'F': return elem && elem->kind == OPDI_TYPE_FLOAT;
    case 'L': return elem && (elem->kind == OPDI_TYPE_TENSOR || elem->kind == OPDI_TYPE_OPTIONAL);
    case 'V': return 1;
    default: return 0;
    }
}

/* Returns the name that the C type of `letter` in a signature has in schemas. */
OPDI_INTERNAL const char *opdi_signature_word(char letter) {
    static const char words[] = "TTensor\0iint\0dfloat\0bbool\0sstr\0DDevice\0GGenerator?\0Iint[]\0Ffloat[]\0"
        "LTensor[]\0VScalar\0";
    const char *at = words;
    while (*at && *at != letter) { at += strlen(at) + 1; }
    return *at ? at + 1 : "unknown type";
}

/* Writes a C function's signature (a letter for each type, the result first) as a schema, such as "(Tensor _0, int _1)
   -> Tensor _0", to buf.  Returns buf. */
OPDI_INTERNAL const char *opdi_inferred_print(const char *signature, char *buf, size_t cap) {
    (void)snprintf(buf, cap, "(");
    for (int i = 1; signature[0] && signature[i]; i++) {
        size_t length = strlen(buf);
        (void)snprintf(buf + length, cap - length, "%s%s _%d", i > 1 ? ", " : "", opdi_signature_word(signature[i]),
                       i - 1);
    }
    size_t length = strlen(buf);
    if (signature[0] == 'v' || !signature[0]) { (void)snprintf(buf + length, cap - length, ") -> ()"); }
    else { (void)snprintf(buf + length, cap - length, ") -> %s _0", opdi_signature_word(signature[0])); }
    return buf;
}
