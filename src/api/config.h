#ifndef OPDISPATCH_H
#define OPDISPATCH_H

#if !defined(__cplusplus) && !defined(__TINYC__) && !defined(_MSC_VER)
#if !defined(__STDC_VERSION__) || __STDC_VERSION__ < 201112L
#error "opdispatch.h needs C11: compile with -std=c11 or later, or without -std"
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
#define OPD_VERSION_MINOR 4
#define OPD_VERSION_PATCH 0
#define OPD_VERSION "0.4.0"

#if defined(__cplusplus)
#define OPD_CAST(T, x) static_cast<T>(x)          /* a C cast would warn under -Wold-style-cast */
#else
#define OPD_CAST(T, x) ((T)(x))
#endif
#if defined(__GNUC__)
#define OPD_PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define OPD_UNUSED __attribute__((unused))
#else
#define OPD_PRINTF_LIKE(f, a)
#define OPD_UNUSED
#endif
#if defined(_WIN32) || !defined(__GNUC__)
#define OPD_EXPORT
#else
#define OPD_EXPORT __attribute__((visibility("default")))       /* works with -fvisibility=hidden too */
#endif
#if defined(OPDISPATCH_PLUGIN) && defined(OPDISPATCH_IMPLEMENTATION)
#error "a plug-in uses the implementation of the program that loads it: do not define OPDISPATCH_IMPLEMENTATION"
#endif
#if defined(OPD_LEAN) && !defined(OPDISPATCH_PLUGIN)
#if defined(OPDISPATCH_PART)
#error "OPD_LEAN is for a program of one file: do not define OPDISPATCH_PART and OPD_LEAN together"
#endif
#if !defined(OPDISPATCH_IMPLEMENTATION)
#error "OPD_LEAN is for a program of one file, which defines OPDISPATCH_IMPLEMENTATION before it includes opdispatch.h"
#endif
#define OPDI_LEAN_DECLARED
#if !defined(OPD_STATIC)
#define OPD_STATIC
#endif
#endif
#if defined(OPD_STATIC) || defined(OPDISPATCH_PLUGIN)
#define OPD_API static OPD_UNUSED
#else
#define OPD_API extern OPD_EXPORT
#endif
#if defined(OPDISPATCH_PLUGIN)
#define OPD_API_OPEN extern      /* variadic functions; plug-ins call them by macros, see >>api:host */
#else
#define OPD_API_OPEN OPD_API
#endif
#define OPD_INLINE static inline OPD_UNUSED

#define OPD_MAX_DIMS 64          /* the largest number of dimensions of a tensor */
#define OPD_MAX_ARGS 64          /* the largest number of arguments of an operator */

#ifdef __cplusplus
extern "C" {
#endif

