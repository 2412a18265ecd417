/*
 * freestone_tlsf.h: heaps with bounded-time calls over memory that you provide.
 *
 * Link with `-lfreestone_tlsf`, a library without dependencies: no C library, no operating system, no `malloc`. Or with `-lfreestone`, which has the
 * same functions. freestone_error.h says how calls are refused, and what `size` in structures is for.
 *
 * Threads: every function may be called by any thread, one at a time for each heap; freestone_tlsf_error_text at any time. Signals and interrupts: a
 * handler may call every function for a heap if it cannot interrupt a call for the same heap. No function waits or makes a system call.
 */
#ifndef FREESTONE_TLSF_H
#define FREESTONE_TLSF_H

#include "freestone_error.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A heap over memory that you provide, where allocating and freeing take a bounded number of instructions: for an audio callback, a control loop, a
 * game frame. Two steps take time that depends on the number of blocks. If neither a list above its own nor the top can serve a request, the heap looks
 * through the request's own list, as a last resort. And if a block to be freed or resized is refused, the heap looks for what is wrong.
 *
 * The heap makes no system calls. A block in use costs 8 bytes; the heap itself takes FREESTONE_TLSF_CONTROL_BYTES at most, at the start of its memory.
 * docs/tlsf.md explains how it works.
 *
 * One thread at a time may use a heap; different threads may use different heaps at once.
 */
typedef struct freestone_tlsf freestone_tlsf_t;

/* The heap itself takes at most this much of its memory. */
#define FREESTONE_TLSF_CONTROL_BYTES 9728

/* Why a TLSF heap refused a call. `bytes` stands for the member `value`. */
enum {
    FREESTONE_TLSF_REGION_MISALIGNED = 1, /* the region at `address` of `bytes`: start or length is not a multiple of 16 */
    FREESTONE_TLSF_REGION_TOO_SMALL = 2,  /* `bytes`, where `limit` are needed */
    FREESTONE_TLSF_REGION_TOO_LARGE = 3,  /* `bytes`, where `limit` is the most */
    FREESTONE_TLSF_REGION_OVERLAPS = 4,   /* the region at `address` overlaps the heap's region, or the heap itself, at `block` */
    FREESTONE_TLSF_TOO_MANY_REGIONS = 5,  /* the heap has its `limit` regions */
    FREESTONE_TLSF_NO_SUCH_REGION = 6,    /* no region starts at `address` */
    FREESTONE_TLSF_REGION_IN_USE = 7,     /* `block` of `bytes` is in use in it */
    FREESTONE_TLSF_ZERO_SIZE = 8,         /* a block of 0 bytes was requested */
    FREESTONE_TLSF_BAD_ALIGNMENT = 9,     /* `value` is not a power of two */
    FREESTONE_TLSF_TOO_LARGE = 10,        /* `bytes`, where `limit` is the most that any region could hold */
    FREESTONE_TLSF_EXHAUSTED = 11,        /* no free block holds `bytes` aligned to `limit` */
    FREESTONE_TLSF_FOREIGN = 12,          /* `address` is in no region of this heap */
    FREESTONE_TLSF_INTERIOR = 13,         /* `address` is inside `block` of `bytes` */
    FREESTONE_TLSF_DOUBLE_FREE = 14,      /* `address` is in the free `block` of `bytes` */
    FREESTONE_TLSF_OVERRUN = 15,          /* `block` of `bytes` was written past its end */
    FREESTONE_TLSF_DAMAGED = 16,          /* the bookkeeping of `block` was overwritten */
    FREESTONE_TLSF_REGION_TOO_LOW = 17    /* the region at `address`: regions begin at `limit` or above */
};

/*
 * Creates a heap in the `bytes` at `memory`, both multiples of 16, which it uses until it is destroyed. NULL, with the reason
 * in `*error` (which may be NULL), if they are misaligned, too few or too many.
 */
FREESTONE_ATTR_NODISCARD
freestone_tlsf_t *freestone_tlsf_new(void *memory, size_t bytes, freestone_error_t *error) FREESTONE_NOTHROW;

/*
 * Ends a heap: its memory is the caller's again, including blocks still in use. NULL does nothing.
 */
void freestone_tlsf_delete(freestone_tlsf_t *heap) FREESTONE_NOTHROW;

/*
 * Adds the `bytes` at `start` to the heap. Blocks of two regions never merge, even if the regions touch. Returns a code:
 * FREESTONE_TLSF_REGION_OVERLAPS if some of it belongs to a region or is the heap's control structure.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
freestone_code_t freestone_tlsf_add_region(freestone_tlsf_t *heap, void *start, size_t bytes) FREESTONE_NOTHROW;

/*
 * Grows the region that starts at `start` (for the first one: the memory the heap was created in) by the `bytes` directly
 * behind it, a multiple of 16 and at least 32. Returns a code.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
freestone_code_t freestone_tlsf_grow_region(freestone_tlsf_t *heap, void *start, size_t bytes) FREESTONE_NOTHROW;

/*
 * Removes the region that starts at `start`, if no block in it is in use. Returns a code. The heap's control structure stays where it is: the first
 * region can be added again from FREESTONE_TLSF_CONTROL_BYTES behind it.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
freestone_code_t freestone_tlsf_remove_region(freestone_tlsf_t *heap, void *start) FREESTONE_NOTHROW;

/*
 * Frees a block; NULL does nothing. Returns a code: a double free, a foreign or interior pointer and a block that was written past its
 * end are refused and change nothing.
 */
FREESTONE_ATTR_NONNULL(1)
freestone_code_t freestone_tlsf_free(freestone_tlsf_t *heap, void *block) FREESTONE_NOTHROW;

/*
 * Allocates `size` bytes, aligned to 16. NULL if no free block is large enough, or `size` is 0.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_ALLOC_SIZE(2) FREESTONE_ATTR_NONNULL(1)
FREESTONE_ATTR_FREED_BY(freestone_tlsf_free)
void *freestone_tlsf_malloc(freestone_tlsf_t *heap, size_t size) FREESTONE_NOTHROW;

/*
 * Allocates `count * size` zero bytes, aligned to 16. NULL as for freestone_tlsf_malloc, and if the product overflows. Takes time proportional to the
 * bytes.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_ALLOC_SIZE(2, 3) FREESTONE_ATTR_NONNULL(1)
FREESTONE_ATTR_FREED_BY(freestone_tlsf_free)
void *freestone_tlsf_calloc(freestone_tlsf_t *heap, size_t count, size_t size) FREESTONE_NOTHROW;

/*
 * Allocates `size` bytes, aligned to `align`. NULL as for freestone_tlsf_malloc, and if `align` is not a power of two.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_ALLOC_ALIGN(2) FREESTONE_ATTR_ALLOC_SIZE(3)
FREESTONE_ATTR_NONNULL(1) FREESTONE_ATTR_FREED_BY(freestone_tlsf_free)
void *freestone_tlsf_aligned_alloc(freestone_tlsf_t *heap, size_t align, size_t size) FREESTONE_NOTHROW;

/*
 * Resizes a block to `size` bytes, in place if possible, aligned to 16, and keeps its contents up to the smaller size. A `block` of NULL allocates.
 * NULL if that is refused, also for a `size` of 0: the block is unchanged. A block that moves is copied, in time proportional to its bytes.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_ALLOC_SIZE(3) FREESTONE_ATTR_NONNULL(1)
void *freestone_tlsf_realloc(freestone_tlsf_t *heap, void *block, size_t size) FREESTONE_NOTHROW;

/*
 * Resizes a block as freestone_tlsf_realloc does, at a multiple of `align`: pass what it was allocated with.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_ALLOC_SIZE(4) FREESTONE_ATTR_NONNULL(1)
void *freestone_tlsf_aligned_realloc(freestone_tlsf_t *heap, void *block, size_t align, size_t size) FREESTONE_NOTHROW;

/*
 * Bytes of a block that may be used; 0 if it is not a block of this heap that is in use.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_PURE FREESTONE_ATTR_NONNULL(1)
size_t freestone_tlsf_usable_size(const freestone_tlsf_t *heap, const void *block) FREESTONE_NOTHROW;

/*
 * Checks every invariant of the heap. Returns a code. Takes time proportional to the number of blocks.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
freestone_code_t freestone_tlsf_check(freestone_tlsf_t *heap) FREESTONE_NOTHROW;

/*
 * The error of the last call on this heap that was refused; all members are 0 if none was.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
freestone_error_t freestone_tlsf_last_error(const freestone_tlsf_t *heap) FREESTONE_NOTHROW;

/*
 * Writes the message of an error of a TLSF heap, such as "0x7f00 is in no region of this heap: free it where it was allocated", into `buffer` as
 * snprintf does: cut to `size` - 1 bytes and ended by a zero. Returns the length of the whole message. `buffer` may be NULL if `size` is 0.
 */
FREESTONE_ATTR_NONNULL(1)
size_t freestone_tlsf_error_text(const freestone_error_t *error, char *buffer, size_t size) FREESTONE_NOTHROW;

/*
 * The contents of a heap: region_bytes = used_bytes + free_bytes + overhead_bytes.
 */
typedef struct freestone_tlsf_stats {
    size_t size;                     /* in: sizeof(freestone_tlsf_stats_t); out: how much of it was filled */
    uint64_t region_bytes;           /* of all regions */
    uint64_t n_used_blocks;
    uint64_t used_bytes;             /* usable bytes of blocks in use */
    uint64_t n_free_blocks;
    uint64_t free_bytes;             /* headers included */
    uint64_t largest_free_bytes;     /* the largest request that would succeed now */
    uint64_t overhead_bytes;         /* headers of blocks in use, and the ends of regions */
    uint64_t fragmentation_permille; /* thousandths of the free bytes that are outside the largest free block */
} freestone_tlsf_stats_t;

/*
 * Fills `*stats` as far as `stats->size` says, and sets `stats->size` to the bytes filled. Returns a code: FREESTONE_BAD_STRUCT if `stats` is NULL or
 * its size less than that of the member itself. Takes time proportional to the number of blocks.
 */
FREESTONE_ATTR_NONNULL(1)
freestone_code_t freestone_tlsf_stats(const freestone_tlsf_t *heap, freestone_tlsf_stats_t *stats) FREESTONE_NOTHROW;

/* A block, in use or free. */
typedef struct freestone_tlsf_block {
    void *address; /* of its usable bytes */
    size_t usable_bytes;
    size_t block_bytes; /* with its header */
    int used;           /* 1 if it is in use: at the end of a program, a leak */
} freestone_tlsf_block_t;

/*
 * Calls `visit` with every block, region by region in address order, until it returns something other than 0, and returns that.
 * `visit` must not touch the heap.
 */
FREESTONE_ATTR_NONNULL(1)
int freestone_tlsf_walk(const freestone_tlsf_t *heap, int (*visit)(const freestone_tlsf_block_t *block, void *context),
                        void *context);

#ifdef __cplusplus
}
#endif

#endif
