#ifndef OPDISPATCH_H
#define OPDISPATCH_H

#if !defined(__cplusplus) && !defined(__TINYC__)
#if !defined(__STDC_VERSION__) || __STDC_VERSION__ < 201112L
#if defined(_MSC_VER)
#error "opdispatch.h needs C11: compile with /std:c11 or /std:c17 (Visual Studio 2019 16.8 or later), or as C++: /TP"
#else
#error "opdispatch.h needs C11: compile with -std=c11 or later, or without -std"
#endif
#elif defined(_MSVC_TRADITIONAL)
#if _MSVC_TRADITIONAL
#error "the macros of opdispatch.h need the standard preprocessor: compile with /Zc:preprocessor, or as C++: /TP"
#endif
#endif
#endif

#include <stdint.h>
#include <stddef.h>
#include <stdbool.h>

#if defined(OPDISPATCH_IN_TORCH) && defined(__INCLUDE_LEVEL__)
#if __INCLUDE_LEVEL__ == 0                        /* cc ... -x c opdispatch.h, without an include */
#define OPDISPATCH_IMPLEMENTATION
#define OPD_AOTI
#endif
#endif

#define OPD_VERSION_MAJOR 0
#define OPD_VERSION_MINOR 9
#define OPD_VERSION_PATCH 0
#define OPD_VERSION "0.9.0"
/* OPD_SOURCE_ID identifies the files from which this header was joined: 16 digits that src/join.py computes from the
   contents of src/.  Two headers with the same OPD_SOURCE_ID are the same. */
#include "source_id.printed.h"

#if defined(__cplusplus)
#define OPDI_CAST(T, x) static_cast<T>(x)          /* a C cast would warn under -Wold-style-cast */
#else
#define OPDI_CAST(T, x) ((T)(x))
#endif
#if defined(__GNUC__)
#define OPD_PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define OPD_UNUSED __attribute__((unused))
#else
#define OPD_PRINTF_LIKE(f, a)
#define OPD_UNUSED
#endif
#if defined(_WIN32)
#if defined(__GNUC__)
#define OPD_EXPORT               /* a DLL of mingw-w64 exports everything */
#else
#define OPD_EXPORT __declspec(dllexport)
#endif
#if !defined(OPD_DLL)
#define OPDI_API_EXPORT
#elif defined(OPDISPATCH_IMPLEMENTATION)
#define OPDI_API_EXPORT __declspec(dllexport)
#else
#define OPDI_API_EXPORT __declspec(dllimport)
#endif
#else
#if defined(__GNUC__)
#define OPD_EXPORT __attribute__((visibility("default")))       /* works with -fvisibility=hidden too */
#else
#define OPD_EXPORT
#endif
/* The functions of the API are exported, also from a program that is compiled with -fvisibility=hidden: libraries of
   operators call them.  But a library (-fPIC) that is compiled with this option keeps its copy of opdispatch to itself,
   and so do files with OPD_HIDDEN.  If opdispatch itself is a shared library that is compiled with this option, define
   OPD_DLL to export them. */
#if defined(OPD_HIDDEN) && defined(__GNUC__)
#define OPDI_API_EXPORT __attribute__((visibility("hidden")))
#elif defined(__ELF__) && defined(__PIC__) && !defined(__PIE__) && !defined(OPD_DLL)
#define OPDI_API_EXPORT           /* as the command line says */
#else
#define OPDI_API_EXPORT OPD_EXPORT
#endif
#endif
#if defined(OPDISPATCH_PLUGIN) && defined(OPDISPATCH_IMPLEMENTATION)
#error "a plug-in uses the implementation of the program that loads it: do not define OPDISPATCH_IMPLEMENTATION"
#endif
#if defined(OPD_LEAN) && !defined(OPDISPATCH_PLUGIN)
#define OPDI_LEAN_DECLARED
#endif
#if defined(OPD_STATIC) || defined(OPDISPATCH_PLUGIN)
#if defined(_MSC_VER)
#define OPD_API static inline    /* without `inline`, Microsoft's compiler warns of each unused function */
#else
#define OPD_API static OPD_UNUSED
#endif
#else
#define OPD_API extern OPDI_API_EXPORT
#endif
#if defined(OPDISPATCH_PLUGIN)
#define OPDI_API_OPEN extern      /* variadic functions; plug-ins call them by macros, see >>api:host */
#else
#define OPDI_API_OPEN OPD_API
#endif
/* Functions with OPD_API are stable: they will be the same in all versions 1.x.  Functions with OPD_NEW stand in
   chapters whose titles end with "(may change)", and may change with each minor version.  With OPD_STABLE_ONLY, gcc and
   clang warn of calls of these functions, in files without the implementation. */
#if defined(OPD_STABLE_ONLY) && !defined(OPDISPATCH_IMPLEMENTATION) && defined(__has_attribute)
#if __has_attribute(warning)
#define OPD_NEW __attribute__((warning("this function may change with the next minor version"))) OPD_API
#endif
#endif
#if !defined(OPD_NEW)
#define OPD_NEW OPD_API
#endif
#define OPD_INLINE static inline OPD_UNUSED

#define OPD_MAX_DIMS 64          /* the largest number of dimensions of a tensor */
#define OPD_MAX_ARGS 64          /* the largest number of arguments of an operator */

#ifdef __cplusplus
extern "C" {
#endif

/* The next macros read and write a handle of OPD_OP, which other threads may read and write at the same time. */
#if defined(__GNUC__) && !defined(__TINYC__)
#define OPDI_HANDLE_READ(handle) __atomic_load_n(handle, __ATOMIC_ACQUIRE)
#define OPDI_HANDLE_WRITE(handle, op) __atomic_store_n(handle, op, __ATOMIC_RELEASE)
#elif defined(_MSC_VER)
void *_InterlockedExchangePointer(void *volatile *target, void *value);
#pragma intrinsic(_InterlockedExchangePointer)
#define OPDI_HANDLE_READ(handle) (*OPDI_CAST(opd_op *volatile *, handle))
#define OPDI_HANDLE_WRITE(handle, op) \
    ((void)_InterlockedExchangePointer(OPDI_CAST(void *volatile *, OPDI_CAST(void *, handle)), op))
#else
#define OPDI_HANDLE_READ(handle) (*(handle))
#define OPDI_HANDLE_WRITE(handle, op) ((void)(*(handle) = (op)))
#endif
#if defined(_MSC_VER)
/* Microsoft's C library calls the functions in the section .CRT$XCU before main, or when the DLL is loaded.  /include
   keeps the variable, which nothing else uses.  So the variable is external, and its name contains the namespace, the
   number and the line of the block.  If the linker reports that two files define the variable, move one of the blocks
   to another line. */
#pragma section(".CRT$XCU", read)
#define OPDI_MICROSOFT_AT_LOAD(fn, id, n, line) OPDI_MICROSOFT_AT_LOAD_(fn, id, n, line)
#define OPDI_MICROSOFT_AT_LOAD_(fn, id, n, line) OPDI_MICROSOFT_POINTER(fn, id##_##n##_##line)
#define OPDI_MICROSOFT_POINTER(fn, pointer) \
    __pragma(comment(linker, "/include:" OPDI_MICROSOFT_SYMBOL(pointer))) \
    __declspec(allocate(".CRT$XCU")) void (__cdecl *const pointer)(void) = fn;
#if defined(_M_IX86)
#define OPDI_MICROSOFT_SYMBOL(name) "_" #name
#else
#define OPDI_MICROSOFT_SYMBOL(name) #name
#endif
#endif

