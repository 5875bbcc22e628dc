#include "ops.h"

#if defined(OPDI_OPERATORS)

//----------------------------------------------------------------------------------------------------------------------
//  >>builtins     the list of all cards, and their registration
//
//  A built-in operator is registered when somebody first asks for its name or for all; opdi_families has the list.
//
//  opdi_started ------> opdi_start             at the first use, and whenever library blocks wait
//    opdi_register_builtins                    once, first: the library, opdi_register_fallbacks, no operator yet
//    opdi_block_run                            then: each library block that waits
//  opdi_find_waiting, opd_op_builtin, opdi_overloads_of and whatever registers for a name
//  opdi_not_found, opd_op_next, opd_op_list, opd_listener_add: for all
//    \--> opdi_builtins_make(name or NULL)     other threads wait meanwhile, see `starter` and `making`
//      opdi_register_card(i)                   for each card that waits and is of the name's family (opdi_family)
//        its card --> opd_define              the card fills a description: schema, kernels, derived forms
//        opdi_registry.builtin[i]              is the operator from now on
//----------------------------------------------------------------------------------------------------------------------

