/*
 * freestone_pool.h: pools of equal blocks in memory that you provide.
 *
 * Link with `-lfreestone_pool`, a library without dependencies: no C library, no operating system, no `malloc`. Or with `-lfreestone`, which has the
 * same functions, and besides pools in memory of its own, and magazines (freestone.h). freestone_error.h says how calls are refused, and what `size`
 * in structures is for.
 *
 * Threads and signals: neither a function waits nor makes a system call.
 *
 *   function                                           threads                                   in a signal or interrupt handler
 *   -------------------------------------------------  ----------------------------------------  ---------------------------------
 *   freestone_pool_bytes, freestone_pool_error_text    any, at any time                          yes
 *   freestone_pool_malloc, _calloc, _free,             of a pool with `shared`: any, at any      of a pool with `shared`: yes;
 *     _usable_size, _stats, _last_error                  time; else any, one at a time for         else if it cannot interrupt a
 *                                                        each pool                                 call for the same pool
 *   freestone_pool_new_at, _delete, _check             any; no other uses memory or pool         if it cannot interrupt a call for
 *                                                        meanwhile                                 the same pool
 */
#ifndef FREESTONE_POOL_H
#define FREESTONE_POOL_H

#include "freestone_error.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A pool allocates blocks of one size. Each call takes the same short time; blocks have no header; an invalid free (of a block that is
 * free already, of the inside of a block, of a pointer that is not the pool's) is refused with a code and changes nothing.
 *
 *     freestone_pool_shape_t shape = {.size = sizeof shape, .block_size = sizeof(connection_t), .count = 1000};
 *     freestone_pool_t *pool = freestone_pool_new_at(memory, sizeof memory, &shape, NULL);
 *     connection_t *connection = freestone_pool_calloc(pool);
 *     ...
 *     freestone_pool_free(pool, connection);
 *     freestone_pool_delete(pool);
 *
 * One thread at a time may use a pool, unless it is created with `.shared = 1`: then any thread may call every function but
 * freestone_pool_delete and freestone_pool_check at any time, and none waits for another. A thread that allocates much from a shared
 * pool creates a magazine.
 *
 * Free blocks of a pool with freestone_pool_free (or freestone_magazine_free), never with `free`.
 */
typedef struct freestone_pool freestone_pool_t;

/* The shape of a pool. Blocks are a power of two apart: the smallest that holds `block_size`. */
typedef struct freestone_pool_shape {
    size_t size;       /* in: sizeof(freestone_pool_shape_t) */
    size_t block_size; /* bytes of a block, 1 or more */
    size_t count;      /* how many blocks, 1 or more */
    size_t align;      /* a power of two; 0: 16, or 8 for blocks of up to 8 bytes */
    int shared;        /* 1 if several threads may use it at once */
} freestone_pool_shape_t;

/* Why a pool refused a call. */
enum {
    FREESTONE_POOL_ZERO_BLOCK_SIZE = 101,   /* the shape has blocks of 0 bytes */
    FREESTONE_POOL_ZERO_COUNT = 102,        /* the shape has 0 blocks */
    FREESTONE_POOL_BAD_ALIGNMENT = 103,     /* `value` is not a power of two */
    FREESTONE_POOL_TOO_LARGE = 104,         /* `limit` blocks of `value` bytes */
    FREESTONE_POOL_REGION_MISALIGNED = 105, /* memory at `address`, which is not a multiple of `limit` */
    FREESTONE_POOL_REGION_TOO_SMALL = 106,  /* memory of `value` bytes, where `limit` are needed */
    FREESTONE_POOL_EXHAUSTED = 107,         /* all `limit` blocks of `value` bytes are in use */
    FREESTONE_POOL_FOREIGN = 108,           /* `address` is not that of a block of this pool */
    FREESTONE_POOL_INTERIOR = 109,          /* `address` is inside `block` of `value` bytes */
    FREESTONE_POOL_DOUBLE_FREE = 110,       /* `block` of `value` bytes, at `address`, is free already */
    FREESTONE_POOL_NEVER_ALLOCATED = 111,   /* `block` of `value` bytes, at `address`, was never allocated */
    FREESTONE_POOL_IN_USE = 112,            /* `value` blocks are in use, the first at `block` */
    FREESTONE_POOL_DAMAGED = 113,           /* the bookkeeping of `block` was overwritten */
    FREESTONE_POOL_NO_MEMORY = 114,         /* the library has no `value` bytes */
    FREESTONE_POOL_MAGAZINES_EXIST = 115,   /* `value` magazines were not destroyed */
    FREESTONE_POOL_NOT_SHARED = 116,        /* a magazine was requested from a pool that is not shared */
    FREESTONE_POOL_NO_ATOMICS = 117         /* a shared pool was requested, and the processor has no atomic operations of 64 bits */
};

/* The contents of a pool: n_used + n_free + n_fresh is its count. Blocks that magazines cache are free. */
typedef struct freestone_pool_stats {
    size_t size;          /* in: sizeof(freestone_pool_stats_t); out: how much of it was filled */
    size_t n_used;        /* blocks in use */
    size_t n_free;        /* free blocks that were in use before: n_used + n_free is the most that ever were in use at once */
    size_t n_fresh;       /* blocks that were never in use: their memory is untouched */
    size_t block_bytes;   /* bytes of a block */
    size_t spacing_bytes; /* bytes from the start of one block to the next */
} freestone_pool_stats_t;

/*
 * Stores the bytes of memory that freestone_pool_new_at needs for a pool of this shape in `*bytes`. Returns a code, and stores the reason in `*error`
 * (which may be NULL), if there can be no such pool.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1, 2)
freestone_code_t freestone_pool_bytes(const freestone_pool_shape_t *shape, size_t *bytes, freestone_error_t *error) FREESTONE_NOTHROW;

/*
 * Creates a pool in the `bytes` at `memory`, which it uses until it is destroyed. The memory is aligned to 16, or to the shape's alignment if that
 * is larger. NULL, with the reason in `*error` (which may be NULL), if it is misaligned or too small.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(3)
freestone_pool_t *freestone_pool_new_at(void *memory, size_t bytes, const freestone_pool_shape_t *shape,
                                        freestone_error_t *error) FREESTONE_NOTHROW;

/*
 * Ends a pool. Returns a code: of a pool with a block in use, or with a magazine, nothing ends. A `pool` of NULL does nothing. No other thread may
 * use the pool.
 */
freestone_code_t freestone_pool_delete(freestone_pool_t *pool) FREESTONE_NOTHROW;

/*
 * Frees a block. Returns a code: what is wrong with `block`, if it is no block of this pool that is in use. A `block` of NULL does nothing.
 */
FREESTONE_ATTR_NONNULL(1)
freestone_code_t freestone_pool_free(freestone_pool_t *pool, void *block) FREESTONE_NOTHROW;

/*
 * Allocates a block; its contents are undefined. NULL if all are in use (in a shared pool: or cached by other threads' magazines), or if the pool's
 * bookkeeping was overwritten.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_NONNULL(1) FREESTONE_ATTR_FREED_BY(freestone_pool_free)
void *freestone_pool_malloc(freestone_pool_t *pool) FREESTONE_NOTHROW;

/* Allocates a block of zeros. Memory known to be zero is not cleared again. NULL as for freestone_pool_malloc. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_NONNULL(1) FREESTONE_ATTR_FREED_BY(freestone_pool_free)
void *freestone_pool_calloc(freestone_pool_t *pool) FREESTONE_NOTHROW;

/* Bytes of a block that may be used: the shape's block_size; 0 if `block` is not a block of this pool that is in use. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
size_t freestone_pool_usable_size(const freestone_pool_t *pool, const void *block) FREESTONE_NOTHROW;

/*
 * Checks every invariant of a pool. Returns a code, FREESTONE_POOL_DAMAGED or FREESTONE_POOL_MAGAZINES_EXIST. Takes time proportional to the number
 * of blocks that were ever in use. No other thread may use the pool.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
freestone_code_t freestone_pool_check(freestone_pool_t *pool) FREESTONE_NOTHROW;

/*
 * The error of the last call on this pool, or on one of its magazines, that was refused; all members are 0 if none was.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
freestone_error_t freestone_pool_last_error(const freestone_pool_t *pool) FREESTONE_NOTHROW;

/*
 * Writes the message of an error of a pool, such as "double free of 0x7f00: the block of 48 bytes is free already", into `buffer` as snprintf does:
 * cut to `size` - 1 bytes and ended by a zero. Returns the length of the whole message. `buffer` may be NULL if `size` is 0.
 */
FREESTONE_ATTR_NONNULL(1)
size_t freestone_pool_error_text(const freestone_error_t *error, char *buffer, size_t size) FREESTONE_NOTHROW;

/*
 * Fills `*stats` as far as `stats->size` says, and sets `stats->size` to the bytes filled. Returns a code: FREESTONE_BAD_STRUCT if `stats` is NULL or
 * its size less than that of the member itself. Takes time proportional to the number of blocks that were ever in use.
 */
FREESTONE_ATTR_NONNULL(1)
freestone_code_t freestone_pool_stats(const freestone_pool_t *pool, freestone_pool_stats_t *stats) FREESTONE_NOTHROW;

#ifdef __cplusplus
}
#endif

#endif
