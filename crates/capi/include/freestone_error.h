/*
 * freestone_error.h: how the functions of Freestone say that they refused a call. freestone.h, freestone_tlsf.h and freestone_pool.h include it.
 *
 * One model for heaps, TLSF heaps and pools:
 *
 *   - A function that returns a pointer returns NULL if the call is refused. Every other function that can be refused returns a code: FREESTONE_OK,
 *     which is 0, or why not. Numbers are stored through a pointer.
 *   - A refused call changes nothing, but for what follows.
 *   - The object keeps the last refusal with its details: freestone_heap_last_error, freestone_tlsf_last_error, freestone_pool_last_error. Where
 *     there is none, a function that has details (those that create an object, freestone_profile_dump) stores them in `*error`, its last parameter,
 *     which may be NULL. Of an object that several threads use, the last refusal may be another thread's; the code that a function returns is
 *     always the caller's own.
 *   - freestone_error_text makes a sentence of it.
 *   - Functions of libfreestone that return a pointer to memory of the process set errno besides, as malloc does: ENOMEM or EINVAL. Functions of
 *     TLSF heaps, functions of pools other than freestone_pool_new and freestone_magazine_new, and functions that return a code leave errno alone.
 *
 * One rule for structures: the first member is `size`, which the caller sets to sizeof the structure. New versions add members at the end. A library
 * fills or reads what both know, so that old programs run with new libraries, and new programs with old ones: a member that the program does not
 * have is 0, one that the library does not know stays as it is. Two structures have no such member: freestone_error_t never changes, and
 * freestone_tlsf_block_t is only ever passed by the library.
 *
 * One set of verbs, those of C: `_new` and `_delete`, `_malloc`, `_calloc`, `_aligned_alloc`, `_realloc`, `_free`, `_usable_size`; `_stats`, `_check`,
 * `_last_error`. The object is the first parameter.
 */
#ifndef FREESTONE_ERROR_H
#define FREESTONE_ERROR_H

#include <stddef.h>
#include <stdint.h>

/* Attributes for compilers that understand them; nothing for others. */
#if defined(__GNUC__) || defined(__clang__)
#define FREESTONE_ATTR_MALLOC __attribute__((__malloc__))
#define FREESTONE_ATTR_ALLOC_SIZE(...) __attribute__((__alloc_size__(__VA_ARGS__)))
#define FREESTONE_ATTR_ALLOC_ALIGN(n) __attribute__((__alloc_align__(n)))
#define FREESTONE_ATTR_NODISCARD __attribute__((__warn_unused_result__))
#define FREESTONE_ATTR_NONNULL(...) __attribute__((__nonnull__(__VA_ARGS__)))
#define FREESTONE_ATTR_RETURNS_NONNULL __attribute__((__returns_nonnull__))
/* The result depends on the parameters alone. */
#define FREESTONE_ATTR_CONST __attribute__((__const__))
/* The result depends on the parameters and on memory; nothing is written. */
#define FREESTONE_ATTR_PURE __attribute__((__pure__))
#else
#define FREESTONE_ATTR_MALLOC
#define FREESTONE_ATTR_ALLOC_SIZE(...)
#define FREESTONE_ATTR_ALLOC_ALIGN(n)
#define FREESTONE_ATTR_NODISCARD
#define FREESTONE_ATTR_NONNULL(...)
#define FREESTONE_ATTR_RETURNS_NONNULL
#define FREESTONE_ATTR_CONST
#define FREESTONE_ATTR_PURE
#endif

/* What `function` frees by its second parameter: compilers that know this attribute warn of blocks that are freed by another function. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#define FREESTONE_ATTR_FREED_BY(function) __attribute__((__malloc__(function, 2)))
#else
#define FREESTONE_ATTR_FREED_BY(function)
#endif

#if defined(__cplusplus)
#define FREESTONE_NOTHROW noexcept
#elif defined(__GNUC__) || defined(__clang__)
#define FREESTONE_NOTHROW __attribute__((__nothrow__))
#else
#define FREESTONE_NOTHROW
#endif

/* FREESTONE_OK or why a call was refused. Codes keep their numbers for ever; no two have the same. */
typedef int freestone_code_t;

enum {
    FREESTONE_OK = 0,
    FREESTONE_BAD_STRUCT = 301 /* the structure of `value` bytes is smaller than its first version, which has `limit`; or it is NULL */
};

/* Why a call was refused: the code, and the members that the comment at the code names; all others are 0. Its members never change. */
typedef struct freestone_error {
    freestone_code_t code;
    const void *address; /* what was passed */
    const void *block;   /* the block or region in question */
    size_t value;
    size_t limit;
} freestone_error_t;

#endif
