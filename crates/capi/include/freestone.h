/*
 * freestone.h: the C interface of Freestone, a general-purpose memory allocator.
 *
 * Link with `-lfreestone`, or preload libfreestone.so: `malloc` and its family are Freestone's then, in the whole process. What is
 * declared here beyond <stdlib.h> are Freestone's own functions: explicit heaps, options, statistics, pools.
 *
 *   section              what it has
 *   -------------------  ------------------------------------------------------------
 *   Explicit heaps       memory with a life of its own, given back at once
 *   Options              by environment, link-time symbol, or function
 *   Statistics           one snapshot that adds up
 *   The malloc family    what <stdlib.h> and <malloc.h> declare, with glibc's semantics
 *   TLSF                 bounded-time heaps over memory that you give
 *   Pools                blocks of one size, in memory you give or the library takes
 *
 * Every function may be called from any thread, before `main`, in `atexit` and thread-exit functions, and in the child of a
 * `fork`; none from a signal handler. Functions that fail return NULL or -1 and set `errno`: ENOMEM when memory runs out (or a size
 * exceeds PTRDIFF_MAX), EINVAL for an argument that makes no sense. `free` never fails and never changes `errno`.
 *
 * A pointer that was never allocated, is freed already, or points inside a block is named on standard error where it is seen, and
 * the process is aborted (option `misuse`).
 */
#ifndef FREESTONE_H
#define FREESTONE_H

#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The version of this header. The library's soname changes with the first number. */
#define FREESTONE_VERSION_MAJOR 0
#define FREESTONE_VERSION_MINOR 1
#define FREESTONE_VERSION_PATCH 0

/* What compilers are told. Each expands to nothing where it is not understood. */
#if defined(__GNUC__) || defined(__clang__)
#define FREESTONE_ATTR_MALLOC __attribute__((__malloc__))
#define FREESTONE_ATTR_ALLOC_SIZE(...) __attribute__((__alloc_size__(__VA_ARGS__)))
#define FREESTONE_ATTR_ALLOC_ALIGN(n) __attribute__((__alloc_align__(n)))
#define FREESTONE_ATTR_NODISCARD __attribute__((__warn_unused_result__))
#define FREESTONE_ATTR_NONNULL(...) __attribute__((__nonnull__(__VA_ARGS__)))
#else
#define FREESTONE_ATTR_MALLOC
#define FREESTONE_ATTR_ALLOC_SIZE(...)
#define FREESTONE_ATTR_ALLOC_ALIGN(n)
#define FREESTONE_ATTR_NODISCARD
#define FREESTONE_ATTR_NONNULL(...)
#endif

/* In C++, glibc's <stdlib.h> declares functions `noexcept` and musl's does not; declaring them again has to agree. */
#if defined(__cplusplus) && defined(__GLIBC__)
#define FREESTONE_NOTHROW noexcept
#elif !defined(__cplusplus) && (defined(__GNUC__) || defined(__clang__))
#define FREESTONE_NOTHROW __attribute__((__nothrow__))
#else
#define FREESTONE_NOTHROW
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------------------------------------------------------- */
/* Explicit heaps                                                                                                               */
/* ---------------------------------------------------------------------------------------------------------------------------- */

/*
 * A heap of its own. Any thread may allocate from it; `free` takes its blocks back, and `malloc_usable_size` knows them. (A Rust program
 * that uses Freestone as its global allocator must not drop them as a Box or a Vec: free them with `free`.) What makes it different is its end: freestone_heap_delete gives all of it back at once, blocks that are still out
 * included, in time that depends on the number of its spans and not of its blocks.
 *
 * Threads that allocate from one heap at the same time take turns. A block of a heap is moved by freestone_heap_realloc; plain
 * `realloc` may move it out of the heap.
 */
typedef struct freestone_heap freestone_heap_t;

/*
 * A new heap. NULL and ENOMEM when memory runs out.
 */
FREESTONE_ATTR_NODISCARD
freestone_heap_t *freestone_heap_new(void) FREESTONE_NOTHROW;

/*
 * Lets `heap` have at most `bytes`, counted in whole pages of 64 KiB; 0: as much as there is, which is how a heap begins. Beyond the
 * limit its functions empty the heap's caches, call what freestone_on_pressure was given, and return NULL with ENOMEM.
 *
 * Returns 0; -1 and EINVAL if the heap has more already, or if that is less than a page.
 */
FREESTONE_ATTR_NONNULL(1)
int freestone_heap_set_limit(freestone_heap_t *heap, size_t bytes) FREESTONE_NOTHROW;

/*
 * Ends a heap and every block of it at once. NULL is nothing.
 *
 * The caller promises that nobody uses a block of the heap any more, and that every `free` of one has returned. Blocks freed before, by
 * whichever thread, are no concern: they are back in the heap.
 */
void freestone_heap_delete(freestone_heap_t *heap) FREESTONE_NOTHROW;

/*
 * `size` bytes from `heap`, aligned to 16; a size of 0 gives a block of its own. NULL and ENOMEM when memory runs out.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_ALLOC_SIZE(2) FREESTONE_ATTR_NONNULL(1)
void *freestone_heap_malloc(freestone_heap_t *heap, size_t size) FREESTONE_NOTHROW;

/*
 * `count * size` zero bytes from `heap`, aligned to 16. NULL and ENOMEM when memory runs out or the product overflows.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_ALLOC_SIZE(2, 3) FREESTONE_ATTR_NONNULL(1)
void *freestone_heap_calloc(freestone_heap_t *heap, size_t count, size_t size) FREESTONE_NOTHROW;

/*
 * `size` bytes from `heap`, aligned to `align`. NULL and EINVAL if that is not a power of two; NULL and ENOMEM when memory runs
 * out.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_ALLOC_ALIGN(2) FREESTONE_ATTR_ALLOC_SIZE(3)
FREESTONE_ATTR_NONNULL(1)
void *freestone_heap_aligned_alloc(freestone_heap_t *heap, size_t align, size_t size) FREESTONE_NOTHROW;

/*
 * Makes a block of `heap` hold `size` bytes, where it is or in a new block of the same heap, keeping its contents up to the smaller
 * size. A `block` of NULL allocates; a `size` of 0 frees the block and returns NULL. The result is aligned to 16, whatever the
 * block was. NULL and ENOMEM when memory runs out: the block is as it was then.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_ALLOC_SIZE(3) FREESTONE_ATTR_NONNULL(1)
void *freestone_heap_realloc(freestone_heap_t *heap, void *block, size_t size) FREESTONE_NOTHROW;

/* ---------------------------------------------------------------------------------------------------------------------------- */
/* Options                                                                                                                      */
/* ---------------------------------------------------------------------------------------------------------------------------- */

/*
 * Options come, the last word winning, from the environment (FREESTONE_MISUSE=report), from the symbol below, and from
 * freestone_option_set. Bytes may end in k, m or g. Unknown or malformed ones are named on standard error and ignored. A process
 * that has more rights than its caller (setuid) obeys neither environment nor symbol. `freestone options` and docs/tuning.md list
 * them all.
 */

/*
 * A program may define this symbol to choose its options when it is linked:
 *
 *     const char freestone_options[] = "decay_ms=100,dirty_max=64m";
 *
 * (`extern` in C++.) The library does not define it. A program that is preloaded or linked against the shared library has to
 * export it: `-Wl,--export-dynamic-symbol=freestone_options`, or `-rdynamic`.
 */
extern const char freestone_options[];

/*
 * Sets the option `name` (as in the symbol: lower case, without prefix) to `value`. 0; -1 and EINVAL if there is none of that name,
 * the value does not suit it, or either is NULL: nothing has changed then. The option `report` counts only at the start, so it can
 * be set in the environment and in the symbol alone: here it is refused with EINVAL.
 */
int freestone_option_set(const char *name, const char *value) FREESTONE_NOTHROW;

/*
 * The value of the option `name` as a number: bytes, milliseconds, or the place among its words; at most INT64_MAX; 0 for paths.
 * -1 and EINVAL if there is none of that name, or it is NULL.
 */
FREESTONE_ATTR_NODISCARD
int64_t freestone_option_get(const char *name) FREESTONE_NOTHROW;

/* ---------------------------------------------------------------------------------------------------------------------------- */
/* Statistics                                                                                                                   */
/* ---------------------------------------------------------------------------------------------------------------------------- */

/*
 * A snapshot. Bytes unless the name begins with `n_`. Taken while other threads run, the numbers are those of slightly different
 * moments, but always:
 *
 *     committed = live + cached + fragmented + dirty + metadata        and none is negative
 *
 * The structure grows at its end with the library; `size` keeps old programs and new libraries apart, and new programs and old
 * libraries.
 */
typedef struct freestone_stats {
    size_t size;             /* in: sizeof(freestone_stats_t); out: how much of it was filled */
    uint64_t live;           /* in blocks that the program holds (whole blocks, not what was asked for) */
    uint64_t cached;         /* in free blocks that threads keep, or on their way home */
    uint64_t fragmented;     /* in spans but in no block that is out */
    uint64_t dirty;          /* in free runs that still have memory behind them */
    uint64_t metadata;       /* for Freestone itself */
    uint64_t committed;      /* the sum of the above */
    uint64_t peak_committed; /* the most that `committed` was, without metadata */
    uint64_t peak_live;      /* the most that `live` was seen to be */
    uint64_t purged;         /* given back to the operating system, ever */
    uint64_t n_allocations;  /* blocks allocated, ever */
    uint64_t n_frees;        /* blocks freed, ever */
    uint64_t n_remote_frees; /* blocks freed by a thread that did not own them, ever */
    uint64_t n_handovers;    /* atomic operations it took to hand those over */
    uint64_t n_threads;      /* threads that have a heap now, and explicit heaps */
    uint64_t fresh;          /* handed out without memory behind it, ever: a page fault for each OS page of it that was written */
    uint64_t dirty_by_age[4]; /* of `dirty`: free for less than 1/4 of the decay time, than 1/2, than all of it, and longer */
} freestone_stats_t;

/*
 * Fills `*stats`, as much of it as `stats->size` says, and sets `stats->size` to what it filled. 0; -1 and EINVAL if `stats` is NULL
 * or its size is less than that of the member itself.
 *
 *     freestone_stats_t stats = {.size = sizeof stats};
 *     if (freestone_stats(&stats) == 0) printf("%" PRIu64 " bytes live\n", stats.live);
 *
 * Costs time in proportion to the number of threads there have been at once.
 */
int freestone_stats(freestone_stats_t *stats) FREESTONE_NOTHROW;

/*
 * Gives all memory that is free, the calling thread's caches included, back to the operating system now. Returns how many bytes.
 * Memory also goes back by itself, after the time that option `decay_ms` says.
 */
size_t freestone_purge(void) FREESTONE_NOTHROW;

/*
 * Makes `callback` what is called when memory is short: when the soft limit (option `limit`; by default 15/16 of what the control
 * group allows) was passed, again with every 1/64 of it beyond, and before an allocation fails. Caches have been emptied by then. It
 * gets the bytes that count against the limit, and `argument`. NULL: nothing is called, which is how a process begins.
 *
 * It is called by the thread that allocates, which may hold locks of the program; the library holds none. It may allocate and free;
 * what it allocates brings no further call. It must not end by `longjmp` or an exception. What it changes and the caller of `malloc`
 * reads has to be volatile or atomic: compilers are told that `malloc` calls nothing back.
 */
void freestone_on_pressure(void (*callback)(size_t in_use_bytes, void *argument), void *argument) FREESTONE_NOTHROW;

/** The library's version, such as "0.1.0"; lives for ever. */
const char *freestone_version(void) FREESTONE_NOTHROW;

/* ---------------------------------------------------------------------------------------------------------------------------- */
/* The malloc family                                                                                                            */
/* ---------------------------------------------------------------------------------------------------------------------------- */

/*
 * What <stdlib.h> and <malloc.h> declare, and C23's sized frees. Blocks are aligned to 16. A size of 0 gives a block of
 * its own, which has to be freed. Where standards leave a choice the semantics are glibc's.
 */

/* `size` bytes. NULL and ENOMEM when memory runs out. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_ALLOC_SIZE(1)
void *malloc(size_t size) FREESTONE_NOTHROW;

/* `count * size` zero bytes. NULL and ENOMEM when memory runs out or the product overflows. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_ALLOC_SIZE(1, 2)
void *calloc(size_t count, size_t size) FREESTONE_NOTHROW;

/*
 * Makes a block hold `size` bytes, keeping its contents up to the smaller size. A `block` of NULL allocates; a `size` of 0 frees the
 * block and returns NULL. NULL and ENOMEM when memory runs out: the block is as it was then.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_ALLOC_SIZE(2)
void *realloc(void *block, size_t size) FREESTONE_NOTHROW;

/* realloc to `count * size` bytes; NULL and ENOMEM also when the product overflows. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_ALLOC_SIZE(2, 3)
void *reallocarray(void *block, size_t count, size_t size) FREESTONE_NOTHROW;

/* Frees a block. NULL is nothing. `errno` is kept. */
void free(void *block) FREESTONE_NOTHROW;

/* Frees a block of malloc, calloc or realloc whose size is known (C23): `size` is what was asked for. */
void free_sized(void *block, size_t size) FREESTONE_NOTHROW;

/* Frees a block of aligned_alloc whose alignment and size are known (C23): both are what was asked for. */
void free_aligned_sized(void *block, size_t align, size_t size) FREESTONE_NOTHROW;

/*
 * `size` bytes aligned to `align`, which is rounded up to a power of two, as glibc 2.36 does; the size need not be a multiple of it. NULL
 * and EINVAL if no power of two is that large; NULL and ENOMEM when memory runs out. Alignments to 1 GiB and beyond are really given.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_ALLOC_ALIGN(1) FREESTONE_ATTR_ALLOC_SIZE(2)
void *aligned_alloc(size_t align, size_t size) FREESTONE_NOTHROW;

/* As aligned_alloc. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_ALLOC_ALIGN(1) FREESTONE_ATTR_ALLOC_SIZE(2)
void *memalign(size_t align, size_t size) FREESTONE_NOTHROW;

/*
 * Stores a block of `size` bytes aligned to `align` in `*block` and returns 0. Returns EINVAL if `align` is not a power of two or not
 * a multiple of sizeof(void *), ENOMEM when memory runs out; `*block` and `errno` are as they were then.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
int posix_memalign(void **block, size_t align, size_t size) FREESTONE_NOTHROW;

/* `size` bytes aligned to the OS page. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_ALLOC_SIZE(1)
void *valloc(size_t size) FREESTONE_NOTHROW;

/* `size` bytes rounded up to whole OS pages (at least one), aligned to them. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC
void *pvalloc(size_t size) FREESTONE_NOTHROW;

/*
 * Bytes of a block that may be used, at least what was asked for; 0 for NULL. For a block of malloc, calloc or aligned_alloc they depend on
 * the size and alignment asked for alone; realloc may leave a block more.
 */
size_t malloc_usable_size(void *block) FREESTONE_NOTHROW;

/* Gives memory back as freestone_purge does, whatever `pad` says. 1 if there was any, else 0. */
int malloc_trim(size_t pad) FREESTONE_NOTHROW;

/* glibc's parameters have no counterpart here: accepted, ignored, 1. */
int mallopt(int parameter, int value) FREESTONE_NOTHROW;

/* Writes a line of statistics to standard error. */
void malloc_stats(void) FREESTONE_NOTHROW;

/* Writes statistics to `stream` as XML. 0; EINVAL if `options` is not 0; -1 if the stream fails. */
FREESTONE_ATTR_NONNULL(2)
int malloc_info(int options, FILE *stream) FREESTONE_NOTHROW;

#ifdef __GLIBC__
/*
 * The statistics in glibc's form: `arena` is what is committed, `uordblks` what is live, `fordblks` the rest, `keepcost` what
 * malloc_trim could give back; the other members are 0. Other C libraries have no such structures.
 */
struct mallinfo2 mallinfo2(void) FREESTONE_NOTHROW;

/* As mallinfo2, in `int`s that wrap. */
struct mallinfo mallinfo(void) FREESTONE_NOTHROW;
#endif

/* ---------------------------------------------------------------------------------------------------------------------------- */
/* TLSF                                                                                                                         */
/* ---------------------------------------------------------------------------------------------------------------------------- */

/*
 * A heap over memory that you give it, whose calls take a bounded number of instructions whatever happened before: for an audio
 * callback, a control loop, a game frame. It asks the system for nothing. A used block pays 8 bytes; the heap itself pays
 * FREESTONE_TLSF_CONTROL_BYTES at most, at the start of its memory. docs/tlsf.md explains how it works.
 *
 * One thread at a time may use a heap. A call that is refused leaves the heap as it was, says why by its code (or NULL), and
 * freestone_tlsf_last_fault says which block it was about.
 */
typedef struct freestone_tlsf freestone_tlsf_t;

/* At most so much of a heap's memory is the heap itself. */
#define FREESTONE_TLSF_CONTROL_BYTES 9728

/* Why a call was refused. */
typedef enum freestone_tlsf_error {
    FREESTONE_TLSF_OK = 0,
    FREESTONE_TLSF_REGION_MISALIGNED = 1, /* start or length is not a multiple of 16 */
    FREESTONE_TLSF_REGION_TOO_SMALL = 2,
    FREESTONE_TLSF_REGION_TOO_LARGE = 3,
    FREESTONE_TLSF_REGION_OVERLAPS = 4,   /* another region of the heap */
    FREESTONE_TLSF_TOO_MANY_REGIONS = 5,  /* a heap has four at most */
    FREESTONE_TLSF_NO_SUCH_REGION = 6,
    FREESTONE_TLSF_REGION_IN_USE = 7,     /* `block` is in use in it */
    FREESTONE_TLSF_ZERO_SIZE = 8,
    FREESTONE_TLSF_BAD_ALIGNMENT = 9,     /* not a power of two */
    FREESTONE_TLSF_TOO_LARGE = 10,        /* for any region */
    FREESTONE_TLSF_EXHAUSTED = 11,        /* no free block is large enough */
    FREESTONE_TLSF_FOREIGN = 12,          /* the address is in no region of this heap */
    FREESTONE_TLSF_INTERIOR = 13,         /* the address is inside `block` */
    FREESTONE_TLSF_DOUBLE_FREE = 14,      /* the address is in the free `block` */
    FREESTONE_TLSF_OVERRUN = 15,          /* `block` was written past its end */
    FREESTONE_TLSF_DAMAGED = 16           /* the bookkeeping of `block` was overwritten */
} freestone_tlsf_error_t;

/* What a refusal was about. Members that its error has nothing to say of are 0. */
typedef struct freestone_tlsf_fault {
    int error;         /* a freestone_tlsf_error_t */
    uintptr_t address; /* what was passed */
    uintptr_t block;   /* the block (or region) in question */
    size_t bytes;      /* its usable size, or what was asked for */
} freestone_tlsf_fault_t;

/*
 * Makes a heap over the `bytes` at `memory`, both multiples of 16, and writes its handle to `*heap`. FREESTONE_TLSF_OK or why not:
 * nothing is written then but the memory.
 */
FREESTONE_ATTR_NODISCARD
int freestone_tlsf_create(freestone_tlsf_t **heap, void *memory, size_t bytes) FREESTONE_NOTHROW;

/*
 * Ends a heap: its memory is yours again, that of blocks still out included. NULL is nothing.
 */
void freestone_tlsf_destroy(freestone_tlsf_t *heap) FREESTONE_NOTHROW;

/*
 * Adds the `bytes` at `start` to the heap. Blocks of two regions never merge, even if the regions touch.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
int freestone_tlsf_add_region(freestone_tlsf_t *heap, void *start, size_t bytes) FREESTONE_NOTHROW;

/*
 * Lengthens the region that starts at `start` (for the first one: the memory the heap was created over) by the `bytes` directly
 * behind it, a multiple of 16 and 32 or more.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
int freestone_tlsf_append(freestone_tlsf_t *heap, void *start, size_t bytes) FREESTONE_NOTHROW;

/*
 * Gives the region that starts at `start` back, if no block in it is used. The heap itself stays where it is.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
int freestone_tlsf_remove_region(freestone_tlsf_t *heap, void *start) FREESTONE_NOTHROW;

/*
 * `size` bytes, aligned to 16. NULL and errno (ENOMEM, or EINVAL for a size of 0) if there are none.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_ALLOC_SIZE(2) FREESTONE_ATTR_NONNULL(1)
void *freestone_tlsf_malloc(freestone_tlsf_t *heap, size_t size) FREESTONE_NOTHROW;

/*
 * `size` bytes, aligned to `align`. As freestone_tlsf_malloc, and EINVAL if `align` is not a power of two.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_ALLOC_ALIGN(2) FREESTONE_ATTR_ALLOC_SIZE(3)
FREESTONE_ATTR_NONNULL(1)
void *freestone_tlsf_aligned_alloc(freestone_tlsf_t *heap, size_t align, size_t size) FREESTONE_NOTHROW;

/*
 * Makes a block hold `size` bytes, where it is if that is possible, at a multiple of `align` (pass what it was allocated with), with
 * its contents up to the smaller size. A `block` of NULL allocates. NULL and errno if it cannot be done: the block is as it was.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_ALLOC_SIZE(4) FREESTONE_ATTR_NONNULL(1)
void *freestone_tlsf_realloc(freestone_tlsf_t *heap, void *block, size_t align, size_t size) FREESTONE_NOTHROW;

/*
 * Takes a block back; NULL is nothing. A double free, a foreign or interior pointer and a block that was written past are told by
 * the code, and change nothing.
 */
FREESTONE_ATTR_NONNULL(1)
int freestone_tlsf_free(freestone_tlsf_t *heap, void *block) FREESTONE_NOTHROW;

/*
 * Bytes of a block that may be used; 0 if it is no block of this heap.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
size_t freestone_tlsf_usable_size(freestone_tlsf_t *heap, void *block) FREESTONE_NOTHROW;

/*
 * Checks everything the heap knows about itself. Takes time in proportion to its blocks.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
int freestone_tlsf_check(freestone_tlsf_t *heap) FREESTONE_NOTHROW;

/*
 * What the last call of this heap that was refused was about; all 0 if none was.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
freestone_tlsf_fault_t freestone_tlsf_last_fault(const freestone_tlsf_t *heap) FREESTONE_NOTHROW;

/*
 * A sentence that says what a freestone_tlsf_error_t means, for people. Never NULL.
 */
FREESTONE_ATTR_NODISCARD
const char *freestone_tlsf_error_message(int error) FREESTONE_NOTHROW;

/*
 * What a heap holds at one moment: region_bytes = used_bytes + free_bytes + overhead_bytes. The structure grows at its end with the
 * library; `size` keeps old programs and new libraries apart.
 */
typedef struct freestone_tlsf_stats {
    size_t size;                     /* in: sizeof(freestone_tlsf_stats_t); out: how much of it was filled */
    uint64_t region_bytes;           /* of all regions */
    uint64_t n_used_blocks;
    uint64_t used_bytes;             /* that owners may write */
    uint64_t n_free_blocks;
    uint64_t free_bytes;             /* headers included */
    uint64_t largest_free_bytes;     /* the largest request that would succeed now */
    uint64_t overhead_bytes;         /* headers of used blocks, and the regions' ends */
    uint64_t fragmentation_permille; /* thousandths of the free bytes that lie outside the largest free block */
} freestone_tlsf_stats_t;

/*
 * Fills `stats` as far as its `size` says. 0; -1 and EINVAL if it is NULL or too small. Takes time in proportion to the blocks.
 */
FREESTONE_ATTR_NONNULL(1)
int freestone_tlsf_stats(const freestone_tlsf_t *heap, freestone_tlsf_stats_t *stats) FREESTONE_NOTHROW;

/* A block, used or free. */
typedef struct freestone_tlsf_block {
    void *address; /* where its owner's bytes start */
    size_t usable_bytes;
    size_t block_bytes; /* with its header */
    int used;           /* 1 if it is in use: at the end of a program, a leak */
} freestone_tlsf_block_t;

/*
 * Calls `visit` with each block, region by region in address order, until it returns something other than 0, and returns that.
 * `visit` must leave the heap alone.
 */
FREESTONE_ATTR_NONNULL(1)
int freestone_tlsf_walk(const freestone_tlsf_t *heap, int (*visit)(const freestone_tlsf_block_t *block, void *context),
                        void *context);

/* ---------------------------------------------------------------------------------------------------------------------------- */
/* Pools                                                                                                                        */
/* ---------------------------------------------------------------------------------------------------------------------------- */

/*
 * A pool hands out blocks of one size. Each call takes the same short time whatever happened before; no block carries a header; a
 * free that is wrong is told with the block's name and changes nothing: a second one, of the inside of a block, of a stranger's pointer.
 *
 *     freestone_pool_shape_t shape = {.block_size = sizeof(connection_t), .count = 1000};
 *     freestone_pool_t *pool = freestone_pool_new(&shape, NULL);
 *     connection_t *connection = freestone_pool_allocate_zeroed(pool);
 *     ...
 *     freestone_pool_free(pool, connection, NULL);
 *     freestone_pool_delete(pool, NULL);
 *
 * A pool is one thread's at a time, unless it is made with `.shared = 1`: then every function but freestone_pool_delete may be called by
 * any thread at any time, and none waits for another. A thread that allocates much from a shared pool takes a magazine.
 *
 * Blocks of a pool are not blocks of `malloc`: they go back by freestone_pool_free (or freestone_magazine_free), never by `free`.
 */
typedef struct freestone_pool freestone_pool_t;

/* What a pool is made of. Blocks lie a power of two apart, the next that holds `block_size`. */
typedef struct freestone_pool_shape {
    size_t block_size; /* bytes of a block, 1 or more */
    size_t count;      /* how many blocks, 1 or more */
    size_t align;      /* a power of two; 0: 16, or 8 for blocks of up to 8 bytes */
    int shared;        /* whether more than one thread may use it */
} freestone_pool_shape_t;

/* Why a pool refused. */
typedef enum freestone_pool_code {
    FREESTONE_POOL_OK = 0,
    FREESTONE_POOL_ZERO_BLOCK_SIZE = 1,
    FREESTONE_POOL_ZERO_COUNT = 2,
    FREESTONE_POOL_BAD_ALIGNMENT = 3,     /* `value` is not a power of two */
    FREESTONE_POOL_TOO_LARGE = 4,         /* `limit` blocks of `value` bytes */
    FREESTONE_POOL_REGION_MISALIGNED = 5, /* memory at `address`, not at a multiple of `limit` */
    FREESTONE_POOL_REGION_TOO_SMALL = 6,  /* memory of `value` bytes, where `limit` are needed */
    FREESTONE_POOL_EXHAUSTED = 7,         /* all `limit` blocks of `value` bytes are in use */
    FREESTONE_POOL_FOREIGN = 8,           /* `address` is no block of this pool */
    FREESTONE_POOL_INTERIOR = 9,          /* `address` is inside `block` of `value` bytes */
    FREESTONE_POOL_DOUBLE_FREE = 10,      /* `block` of `value` bytes is free already */
    FREESTONE_POOL_NEVER_ALLOCATED = 11,  /* `block` of `value` bytes was never handed out */
    FREESTONE_POOL_IN_USE = 12,           /* `value` blocks are in use, the first at `block` */
    FREESTONE_POOL_DAMAGED = 13,          /* the bookkeeping of `block` was overwritten */
    FREESTONE_POOL_NO_MEMORY = 14,        /* the library has no `value` bytes */
    FREESTONE_POOL_MAGAZINE_OUT = 15,     /* `value` magazines were not deleted */
    FREESTONE_POOL_NOT_SHARED = 16        /* a magazine was asked of one thread's pool */
} freestone_pool_code_t;

/* A refusal: what the code's comment names is set, the rest is 0. The pool is as it was. */
typedef struct freestone_pool_error {
    freestone_pool_code_t code;
    const void *address;
    const void *block;
    size_t value;
    size_t limit;
} freestone_pool_error_t;

/* What a pool holds: n_used + n_free + n_fresh is its count. Blocks that magazines keep are free. */
typedef struct freestone_pool_stats {
    size_t n_used;        /* blocks in use */
    size_t n_free;        /* blocks that were in use once; n_used + n_free is the most there ever were */
    size_t n_fresh;       /* blocks that were never in use: their memory has not been touched */
    size_t block_bytes;   /* bytes of a block */
    size_t spacing_bytes; /* bytes from one block to the next */
} freestone_pool_stats_t;

/*
 * The sentence that `error` stands for, such as "double free of 0x7f00: the block of 48 bytes is free already", written into `buffer` as
 * snprintf does: cut to `size` - 1 bytes and ended by a zero. Returns the length of the whole sentence. `buffer` may be NULL if `size` is
 * 0.
 */
FREESTONE_ATTR_NONNULL(1)
size_t freestone_pool_error_text(const freestone_pool_error_t *error, char *buffer, size_t size) FREESTONE_NOTHROW;

/*
 * Bytes of memory that freestone_pool_new_at needs for a pool of this shape. 0, `errno` and the reason in `*error` (which may be NULL) if
 * there can be none.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
size_t freestone_pool_bytes(const freestone_pool_shape_t *shape, freestone_pool_error_t *error) FREESTONE_NOTHROW;

/*
 * A pool in memory of its own, taken at once and given back by freestone_pool_delete. Memory of blocks that were never used is not
 * touched. NULL and the reason in `*error` (which may be NULL), with ENOMEM when memory runs out or the shape is larger than an address
 * space, EINVAL when the shape makes no sense.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
freestone_pool_t *freestone_pool_new(const freestone_pool_shape_t *shape, freestone_pool_error_t *error) FREESTONE_NOTHROW;

/*
 * A pool in the `bytes` at `memory`, which it uses until it is deleted, and no other. The memory is aligned to 16, or to the shape's
 * alignment if that is more. NULL, `errno` and the reason in `*error` (which may be NULL) if it does not suit.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(3)
freestone_pool_t *freestone_pool_new_at(void *memory, size_t bytes, const freestone_pool_shape_t *shape,
                                        freestone_pool_error_t *error) FREESTONE_NOTHROW;

/*
 * Ends a pool. FREESTONE_POOL_OK; or the code of what is in the way, with its details in `*error` (which may be NULL): a block that was not
 * given back, a magazine that was not deleted. The pool lives on then. A `pool` of NULL is nothing. No other thread may be using the pool.
 */
int freestone_pool_delete(freestone_pool_t *pool, freestone_pool_error_t *error) FREESTONE_NOTHROW;

/*
 * A block. Its contents are whatever they are. NULL and ENOMEM if all are in use (in a shared pool: or kept by other threads'
 * magazines); NULL and EINVAL if the pool's bookkeeping was found written over.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_NONNULL(1)
void *freestone_pool_allocate(freestone_pool_t *pool) FREESTONE_NOTHROW;

/* A block of zeroes. Memory known to be zero is not cleared again. NULL as freestone_pool_allocate. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_NONNULL(1)
void *freestone_pool_allocate_zeroed(freestone_pool_t *pool) FREESTONE_NOTHROW;

/*
 * Takes a block back. FREESTONE_POOL_OK; or the code of what is wrong with `block`, with its details in `*error` (which may be NULL): nothing
 * has changed then. A `block` of NULL is nothing. `errno` is kept.
 */
FREESTONE_ATTR_NONNULL(1)
int freestone_pool_free(freestone_pool_t *pool, void *block, freestone_pool_error_t *error) FREESTONE_NOTHROW;

/* Bytes of a block that may be used: the shape's block_size; 0 if `block` is none of this pool's in use. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
size_t freestone_pool_usable_size(freestone_pool_t *pool, const void *block) FREESTONE_NOTHROW;

/*
 * Checks everything a pool knows about itself. FREESTONE_POOL_OK; or FREESTONE_POOL_DAMAGED with the block in `*error` (which may be NULL);
 * or FREESTONE_POOL_MAGAZINE_OUT. Takes time in proportion to the blocks that were ever in use. No other thread may be using the pool.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
int freestone_pool_check(freestone_pool_t *pool, freestone_pool_error_t *error) FREESTONE_NOTHROW;

/* Fills `*stats`. Costs time in proportion to the blocks that were ever in use. */
FREESTONE_ATTR_NONNULL(1, 2)
void freestone_pool_stats(freestone_pool_t *pool, freestone_pool_stats_t *stats) FREESTONE_NOTHROW;

/*
 * One thread's store of up to 64 free blocks in front of a shared pool: most calls then touch nothing that another thread writes. Blocks
 * may be allocated by one magazine and freed by another, or without one. While a magazine keeps a block no other thread gets it.
 */
typedef struct freestone_magazine freestone_magazine_t;

/*
 * An empty magazine. NULL and the reason in `*error` (which may be NULL), with EINVAL if the pool is not shared, ENOMEM when memory runs
 * out.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
freestone_magazine_t *freestone_magazine_new(freestone_pool_t *pool, freestone_pool_error_t *error) FREESTONE_NOTHROW;

/* Ends a magazine: its free blocks go back to the pool. Blocks in use stay so. NULL is nothing. */
void freestone_magazine_delete(freestone_magazine_t *magazine) FREESTONE_NOTHROW;

/* As freestone_pool_allocate. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_NONNULL(1)
void *freestone_magazine_allocate(freestone_magazine_t *magazine) FREESTONE_NOTHROW;

/* As freestone_pool_allocate_zeroed. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_NONNULL(1)
void *freestone_magazine_allocate_zeroed(freestone_magazine_t *magazine) FREESTONE_NOTHROW;

/* As freestone_pool_free. */
FREESTONE_ATTR_NONNULL(1)
int freestone_magazine_free(freestone_magazine_t *magazine, void *block, freestone_pool_error_t *error) FREESTONE_NOTHROW;

#ifdef __cplusplus
}
#endif

#endif
