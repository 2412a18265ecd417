/*
 * freestone.h: the C interface of Freestone, a general-purpose memory allocator.
 *
 * Link with `-lfreestone`, or preload libfreestone.so: `malloc` and its family are then Freestone's in the whole process. The other
 * functions declared here are Freestone's own.
 *
 *   section              contents
 *   -------------------  ------------------------------------------------------------
 *   Explicit heaps       heaps that are destroyed with all their blocks at once
 *   Options              set by environment, link-time symbol, or function
 *   Statistics           a snapshot whose parts add up; purging; memory pressure
 *   The malloc family    what <stdlib.h> and <malloc.h> declare, with glibc's semantics
 *   Errors               why a TLSF heap or a pool refused a call
 *   TLSF                 heaps with bounded-time calls, over memory that you provide
 *   Pools                blocks of one size, in memory that you provide or the library allocates
 *
 * One set of verbs, those of C, serves all: `_new` and `_delete`, `_malloc`, `_calloc`, `_aligned_alloc`, `_realloc` and `_free`.
 *
 * Long because: a program includes one header for the whole interface.
 *
 * Every function may be called before `main`, in `atexit` and thread-exit functions, and in the child of a `fork`. Which threads may call it at once,
 * and whether a signal handler may:
 *
 *   function                                      threads                                   in a signal handler
 *   --------------------------------------------  ----------------------------------------  ------------------------------------
 *   the malloc family; freestone_heap_*, but for  any, at any time                          no: it may have interrupted one that
 *     freestone_heap_delete; freestone_option_*;                                              holds a lock
 *     freestone_stats, freestone_purge,
 *     freestone_on_pressure; freestone_pool_new
 *   freestone_heap_delete                         any; no other uses the heap meanwhile     no
 *   freestone_version, freestone_error_text,      any, at any time                          yes
 *     freestone_checked_range,
 *     freestone_check_access
 *   freestone_tlsf_*; freestone_pool_*,           any, one at a time for each heap,         if the signal cannot interrupt a call
 *     freestone_magazine_* not named elsewhere      pool, magazine                            for the same heap, pool, magazine
 *   freestone_pool_malloc, _calloc, _free,        of a pool with `shared`: any, at any      the same
 *     _usable_size, _stats                          time
 *   freestone_pool_delete of a pool that          any; no other uses the pool or magazine   no
 *     freestone_pool_new made,                      meanwhile
 *     freestone_magazine_new, _delete
 *
 * Functions that fail return NULL or -1 and set `errno`: ENOMEM when
 * memory runs out (or a size exceeds PTRDIFF_MAX), EINVAL for an invalid argument. `free` never fails and never changes `errno`.
 *
 * An invalid pointer (never allocated, already freed, or inside a block) is reported on standard error where it is detected, and the
 * process aborts (option `misuse`).
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

/* Attributes for compilers that understand them; nothing for others. */
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

/* In C++, glibc's <stdlib.h> declares functions `noexcept` and musl's does not; declarations here have to match. */
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
 * A heap separate from that of `malloc`. Any thread may allocate from it; threads that do so at the same time take turns. `free` and
 * `malloc_usable_size` accept its blocks. (A Rust program whose global allocator is Freestone must not drop them as a Box or a
 * Vec: it must free them with `free`.) freestone_heap_delete frees the heap and all of its blocks at once, in time proportional to the
 * number of its spans, not of its blocks.
 *
 * freestone_heap_realloc keeps a block in its heap; plain `realloc` may move it to the heap of `malloc`.
 */
typedef struct freestone_heap freestone_heap_t;

/*
 * Creates a heap. NULL and ENOMEM when memory runs out.
 */
FREESTONE_ATTR_NODISCARD
freestone_heap_t *freestone_heap_new(void) FREESTONE_NOTHROW;

/*
 * Creates a heap whose blocks are hardened as `level` says, a word of the option `harden` ("checks", for example), or as the process is if that
 * is more. From "checks" on every operation on its blocks is checked, whichever thread makes it. What "full" does besides, it does only
 * for the process as a whole. NULL and EINVAL if there is no such level or `level` is NULL, ENOMEM when memory runs out.
 */
FREESTONE_ATTR_NODISCARD
freestone_heap_t *freestone_heap_new_hardened(const char *level) FREESTONE_NOTHROW;

/*
 * Limits `heap` to `bytes`, counted in whole pages of 64 KiB; 0 removes the limit (a new heap has none). At the limit the heap's functions
 * empty its caches, call the function that freestone_on_pressure registered, and then return NULL with ENOMEM.
 *
 * Returns 0; -1 and EINVAL if the heap already has more, or `bytes` is less than a page.
 */
FREESTONE_ATTR_NONNULL(1)
int freestone_heap_set_limit(freestone_heap_t *heap, size_t bytes) FREESTONE_NOTHROW;

/*
 * Ends a heap and frees all of its blocks. NULL does nothing.
 *
 * No code may use a block of the heap any more, and every `free` of one has to have returned. Blocks freed earlier, by any thread, are
 * accounted for: the heap gets them back first.
 */
void freestone_heap_delete(freestone_heap_t *heap) FREESTONE_NOTHROW;

/*
 * Allocates `size` bytes of `heap`, aligned to 16; a size of 0 gives a block of its own. NULL and ENOMEM when memory runs out.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_ALLOC_SIZE(2) FREESTONE_ATTR_NONNULL(1)
void *freestone_heap_malloc(freestone_heap_t *heap, size_t size) FREESTONE_NOTHROW;

/*
 * Allocates `count * size` zero bytes of `heap`, aligned to 16. NULL and ENOMEM when memory runs out or the product overflows.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_ALLOC_SIZE(2, 3) FREESTONE_ATTR_NONNULL(1)
void *freestone_heap_calloc(freestone_heap_t *heap, size_t count, size_t size) FREESTONE_NOTHROW;

/*
 * Allocates `size` bytes of `heap`, aligned to `align`. NULL and EINVAL if that is not a power of two; NULL and ENOMEM when memory runs
 * out.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_ALLOC_ALIGN(2) FREESTONE_ATTR_ALLOC_SIZE(3)
FREESTONE_ATTR_NONNULL(1)
void *freestone_heap_aligned_alloc(freestone_heap_t *heap, size_t align, size_t size) FREESTONE_NOTHROW;

/*
 * Resizes a block of `heap` to `size` bytes, in place or in a new block of the same heap, and keeps its contents up to the smaller size.
 * A `block` of NULL allocates; a `size` of 0 frees the block and returns NULL. The result is aligned to 16, whatever the block's
 * alignment was. NULL and ENOMEM when memory runs out: the block is unchanged.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_ALLOC_SIZE(3) FREESTONE_ATTR_NONNULL(1)
void *freestone_heap_realloc(freestone_heap_t *heap, void *block, size_t size) FREESTONE_NOTHROW;

/* ---------------------------------------------------------------------------------------------------------------------------- */
/* Options                                                                                                                      */
/* ---------------------------------------------------------------------------------------------------------------------------- */

/*
 * Options are read from the environment (FREESTONE_MISUSE=report), then from the symbol below, and are set by freestone_option_set; a
 * later source overrides an earlier one. Bytes may end in k, m or g. Unknown options and invalid values are reported on standard error
 * and ignored. A process with more rights than its caller (setuid) ignores both environment and symbol. `freestone options` and
 * docs/tuning.md list all options.
 */

/*
 * A program may define this symbol to choose its options at link time:
 *
 *     const char freestone_options[] = "decay_ms=100,dirty_max=64m";
 *
 * (`extern` in C++.) The library does not define it. A program that preloads the library or links against the shared one has to
 * export it: `-Wl,--export-dynamic-symbol=freestone_options`, or `-rdynamic`.
 */
extern const char freestone_options[];

/*
 * Sets the option `name` (as in the symbol: lower case, without prefix) to `value`. Returns 0; -1 and EINVAL, with nothing changed, if
 * there is no such option, the value is not valid for it, or either is NULL. The option `report` takes effect only at start: it can be
 * set in the environment and in the symbol, and is refused here with EINVAL.
 */
int freestone_option_set(const char *name, const char *value) FREESTONE_NOTHROW;

/*
 * The value of the option `name` as a number: bytes, milliseconds, or the index of its word; at most INT64_MAX; 0 for paths, and for
 * guard_sample if it is not set.
 * -1 and EINVAL if there is no such option, or `name` is NULL.
 */
FREESTONE_ATTR_NODISCARD
int64_t freestone_option_get(const char *name) FREESTONE_NOTHROW;

/* ---------------------------------------------------------------------------------------------------------------------------- */
/* Checked memory functions                                                                                                     */
/* ---------------------------------------------------------------------------------------------------------------------------- */

/*
 * What libfreestone_memory.so asks, a library with `memcpy` and its kin that is preloaded beside this one. Own memory functions may ask too.
 */

/*
 * Which addresses are worth a check. Returns 1, and stores in `*start` and `*bytes` where blocks are; 0 before the first allocation, when that
 * is not known; -1 if the level of the option `harden` is lower than `full`, and nothing is checked. 1 and -1 are final. Allocates nothing.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1, 2)
int freestone_checked_range(const void **start, size_t *bytes) FREESTONE_NOTHROW;

/*
 * Reports an access to `bytes` at `address` that begins in a block and does not end in it, or that begins in a freed one; then the process
 * aborts, unless the option `misuse` says otherwise. `writes` is 0 for a read. `function` names the function that makes the access: ASCII text
 * that is never changed. Allocates nothing and waits for no lock.
 */
FREESTONE_ATTR_NONNULL(4)
void freestone_check_access(const void *address, size_t bytes, int writes, const char *function) FREESTONE_NOTHROW;

/* ---------------------------------------------------------------------------------------------------------------------------- */
/* Heap profile                                                                                                                 */
/* ---------------------------------------------------------------------------------------------------------------------------- */

/*
 * Which stacks allocated what is live, found by sampling: one byte in `heap_profile_interval` (an option, by default 512 KiB). With the option
 * heap_profile=on it starts with the program and is written at exit. docs/profiling.md says more.
 *
 * Profiles are text in the format heap_v2, which `pprof` and `go tool pprof` open.
 */

/* What a dump shows. Every dump shows as well what was allocated since profiling started first. */
typedef enum freestone_profile_of {
    FREESTONE_PROFILE_LIVE = 0, /* blocks that are live now */
    FREESTONE_PROFILE_PEAK = 1  /* blocks that were live when the most bytes were */
} freestone_profile_of_t;

/*
 * Starts to sample allocations; does so anew with the option's interval if it has started. Returns 0; -1 and ENOMEM without memory for it, or with the
 * option `sandbox`.
 */
int freestone_profile_start(void) FREESTONE_NOTHROW;

/* Samples no more. What was sampled stays in the profile until it is freed. */
void freestone_profile_stop(void) FREESTONE_NOTHROW;

/*
 * Writes the profile to the file at `path`, which is created or emptied; NULL: to the file that the option heap_profile_file names. `of` is
 * a freestone_profile_of_t. Returns 0; -1 and EINVAL of an invalid `of`, or the error number of the file. Allocates nothing.
 */
int freestone_profile_dump(const char *path, int of) FREESTONE_NOTHROW;

/* As freestone_profile_dump, to an open descriptor. */
int freestone_profile_dump_fd(int descriptor, int of) FREESTONE_NOTHROW;

/*
 * As freestone_profile_dump, to a function, which gets the text piece by piece: `bytes` bytes at `piece`, and `argument`. It returns 0 to go on;
 * any other number ends the dump, which then returns -1 with that number in errno.
 */
int freestone_profile_dump_to(int (*sink)(const void *piece, size_t bytes, void *argument), void *argument, int of) FREESTONE_NOTHROW;

/* ---------------------------------------------------------------------------------------------------------------------------- */
/* Statistics                                                                                                                   */
/* ---------------------------------------------------------------------------------------------------------------------------- */

/*
 * A snapshot. Members are bytes unless their name begins with `n_`. While other threads run, the numbers are of slightly different
 * moments, but always
 *
 *     committed = live + cached + fragmented + dirty + metadata        and none is negative
 *
 * New versions of the library add members at the end; `size` lets old programs run with new libraries, and new programs with old ones.
 */
typedef struct freestone_stats {
    size_t size;             /* in: sizeof(freestone_stats_t); out: how much of it was filled */
    uint64_t live;           /* in blocks in use (their usable size, not the requested size) */
    uint64_t cached;         /* in free blocks that threads cache, or that are in flight to their owner */
    uint64_t fragmented;     /* in spans, outside blocks that are in use or cached */
    uint64_t dirty;          /* in free pages that still have physical memory */
    uint64_t metadata;       /* the library's own */
    uint64_t committed;      /* the sum of the above */
    uint64_t peak_committed; /* the highest `committed`, without metadata */
    uint64_t peak_live;      /* the highest `live` that was observed */
    uint64_t purged;         /* given back to the operating system since the start */
    uint64_t n_allocations;  /* blocks allocated since the start */
    uint64_t n_frees;        /* blocks freed since the start */
    uint64_t n_remote_frees; /* blocks freed in a span that another heap owned, since the start */
    uint64_t n_handovers;    /* atomic operations that handed those to their owners */
    uint64_t n_threads;      /* threads that have a heap now, plus explicit heaps */
    uint64_t fresh;          /* handed out without physical memory since the start: writing an OS page of it faults */
    uint64_t dirty_by_age[4]; /* `dirty`, free for less than 1/4, 1/2 and all of the decay time, and longer */
} freestone_stats_t;

/*
 * Fills `*stats` as far as `stats->size` says, and sets `stats->size` to the bytes filled. Returns 0; -1 and EINVAL if `stats` is NULL
 * or its size is less than that of the member itself.
 *
 *     freestone_stats_t stats = {.size = sizeof stats};
 *     if (freestone_stats(&stats) == 0) printf("%" PRIu64 " bytes live\n", stats.live);
 *
 * Takes time proportional to the largest number of threads that ever existed at once.
 */
int freestone_stats(freestone_stats_t *stats) FREESTONE_NOTHROW;

/*
 * Gives all free memory, the calling thread's caches included, back to the operating system now. Returns the bytes given back. Memory
 * also goes back by itself, after the time that option `decay_ms` sets.
 */
size_t freestone_purge(void) FREESTONE_NOTHROW;

/*
 * Registers `callback` to be called when memory is short: when the soft limit is passed (option `limit`; by default 15/16 of the control
 * group's), again with every further 1/64 of it, and before an allocation fails. Caches are empty by then. It gets the bytes that count
 * against the limit, and `argument`. NULL unregisters; a process starts with none.
 *
 * The thread that allocates calls it, possibly while the program holds locks; the library holds none. It may allocate and free; its own
 * allocations cause no further call. It must not leave by `longjmp` or an exception. Variables that it changes and the caller of `malloc`
 * reads have to be volatile or atomic: `malloc` is declared as a function that calls nothing back.
 */
void freestone_on_pressure(void (*callback)(size_t in_use_bytes, void *argument), void *argument) FREESTONE_NOTHROW;

/* The library's version, such as "0.1.0". The string is never freed. */
const char *freestone_version(void) FREESTONE_NOTHROW;

/* ---------------------------------------------------------------------------------------------------------------------------- */
/* The malloc family                                                                                                            */
/* ---------------------------------------------------------------------------------------------------------------------------- */

/*
 * The functions of <stdlib.h> and <malloc.h>, and C23's sized frees. Blocks are aligned to 16. A size of 0 gives a block of
 * its own, which has to be freed. Where standards leave a choice, semantics are glibc's.
 */

/* Allocates `size` bytes. NULL and ENOMEM when memory runs out. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_ALLOC_SIZE(1)
void *malloc(size_t size) FREESTONE_NOTHROW;

/* Allocates `count * size` zero bytes. NULL and ENOMEM when memory runs out or the product overflows. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_ALLOC_SIZE(1, 2)
void *calloc(size_t count, size_t size) FREESTONE_NOTHROW;

/*
 * Resizes a block to `size` bytes and keeps its contents up to the smaller size. A `block` of NULL allocates; a `size` of 0 frees the
 * block and returns NULL. NULL and ENOMEM when memory runs out: the block is unchanged.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_ALLOC_SIZE(2)
void *realloc(void *block, size_t size) FREESTONE_NOTHROW;

/* Resizes a block to `count * size` bytes, as realloc; NULL and ENOMEM also when the product overflows. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_ALLOC_SIZE(2, 3)
void *reallocarray(void *block, size_t count, size_t size) FREESTONE_NOTHROW;

/* Frees a block. NULL does nothing. Does not change `errno`. */
void free(void *block) FREESTONE_NOTHROW;

/* Frees a block of malloc, calloc or realloc; `size` is the requested size in bytes, which is not checked (C23). */
void free_sized(void *block, size_t size) FREESTONE_NOTHROW;

/* Frees a block of aligned_alloc; `align` and `size` are those of the request, which are not checked (C23). */
void free_aligned_sized(void *block, size_t align, size_t size) FREESTONE_NOTHROW;

/*
 * Allocates `size` bytes aligned to `align`, which is rounded up to a power of two, as in glibc 2.36; the size need not be a multiple of
 * it. NULL and EINVAL if no power of two is that large; NULL and ENOMEM when memory runs out.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_ALLOC_ALIGN(1) FREESTONE_ATTR_ALLOC_SIZE(2)
void *aligned_alloc(size_t align, size_t size) FREESTONE_NOTHROW;

/* Allocates as aligned_alloc does, with the same results. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_ALLOC_ALIGN(1) FREESTONE_ATTR_ALLOC_SIZE(2)
void *memalign(size_t align, size_t size) FREESTONE_NOTHROW;

/*
 * Stores a block of `size` bytes aligned to `align` in `*block` and returns 0. Returns EINVAL if `align` is not a power of two or not
 * a multiple of sizeof(void *), ENOMEM when memory runs out; `*block` and `errno` are then unchanged.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
int posix_memalign(void **block, size_t align, size_t size) FREESTONE_NOTHROW;

/* Allocates `size` bytes aligned to the OS page. NULL and ENOMEM when memory runs out. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_ALLOC_SIZE(1)
void *valloc(size_t size) FREESTONE_NOTHROW;

/* Allocates `size` bytes, rounded up to whole OS pages (at least one) and aligned to them. NULL and ENOMEM when memory runs out. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC
void *pvalloc(size_t size) FREESTONE_NOTHROW;

/*
 * Bytes of a block that may be used, at least as many as were requested; 0 for NULL. For a block of malloc, calloc or aligned_alloc the
 * result depends only on the requested size and alignment; realloc may leave a block more.
 */
size_t malloc_usable_size(void *block) FREESTONE_NOTHROW;

/* Gives memory back as freestone_purge does; `pad` is ignored. Returns 1 if there was any, else 0. */
int malloc_trim(size_t pad) FREESTONE_NOTHROW;

/* Accepts and ignores every parameter (glibc's have no counterpart here). Returns 1. */
int mallopt(int parameter, int value) FREESTONE_NOTHROW;

/* Writes a line of statistics to standard error. */
void malloc_stats(void) FREESTONE_NOTHROW;

/* Writes statistics to `stream` as XML. Returns 0; EINVAL if `options` is not 0; -1 if the stream fails. */
FREESTONE_ATTR_NONNULL(2)
int malloc_info(int options, FILE *stream) FREESTONE_NOTHROW;

#ifdef __GLIBC__
/*
 * The statistics in glibc's form: `arena` is what is committed, `uordblks` what is live, `fordblks` the rest, `keepcost` what
 * malloc_trim could give back; the other members are 0. Only with glibc: other C libraries have no such structures.
 */
struct mallinfo2 mallinfo2(void) FREESTONE_NOTHROW;

/* As mallinfo2, in `int`s, which wrap. */
struct mallinfo mallinfo(void) FREESTONE_NOTHROW;
#endif

/* ---------------------------------------------------------------------------------------------------------------------------- */
/* Errors                                                                                                                       */
/* ---------------------------------------------------------------------------------------------------------------------------- */

/* The code of a call that succeeded. Other codes are a freestone_tlsf_code_t or a freestone_pool_code_t; no two have the same number. */
#define FREESTONE_OK 0

/* Why a TLSF heap or a pool refused a call: the code, and the members that the comment at the code names; all others are 0. */
typedef struct freestone_error {
    int code;            /* a freestone_tlsf_code_t, a freestone_pool_code_t, or FREESTONE_OK */
    const void *address; /* what was passed */
    const void *block;   /* the block or region in question */
    size_t value;
    size_t limit;
} freestone_error_t;

/*
 * Writes the message of `error`, such as "double free of 0x7f00: the block of 48 bytes is free already", into `buffer` as snprintf does:
 * cut to `size` - 1 bytes and ended by a zero. Returns the length of the whole message. `buffer` may be NULL if `size` is 0.
 */
FREESTONE_ATTR_NONNULL(1)
size_t freestone_error_text(const freestone_error_t *error, char *buffer, size_t size) FREESTONE_NOTHROW;

/* ---------------------------------------------------------------------------------------------------------------------------- */
/* TLSF                                                                                                                         */
/* ---------------------------------------------------------------------------------------------------------------------------- */

/*
 * A heap over memory that you provide, whose calls take a bounded number of instructions: for an audio callback, a control loop, a game
 * frame. It makes no system calls. A block in use costs 8 bytes; the heap itself takes FREESTONE_TLSF_CONTROL_BYTES at most, at the
 * start of its memory. docs/tlsf.md explains how it works.
 *
 * One thread at a time may use a heap; different threads may use different heaps at once. A call that is refused leaves the heap
 * unchanged and returns a code (or NULL); freestone_tlsf_last_error returns the details.
 */
typedef struct freestone_tlsf freestone_tlsf_t;

/* The heap itself takes at most this much of its memory. */
#define FREESTONE_TLSF_CONTROL_BYTES 9728

/* Why a TLSF heap refused a call. `bytes` stands for the member `value`. */
typedef enum freestone_tlsf_code {
    FREESTONE_TLSF_REGION_MISALIGNED = 1, /* the region at `address` of `bytes`: start or length is not a multiple of 16 */
    FREESTONE_TLSF_REGION_TOO_SMALL = 2,  /* `bytes`, where `limit` are needed */
    FREESTONE_TLSF_REGION_TOO_LARGE = 3,  /* `bytes`, where `limit` is the most */
    FREESTONE_TLSF_REGION_OVERLAPS = 4,   /* the region at `address` overlaps the heap's region at `block` */
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
    FREESTONE_TLSF_DAMAGED = 16           /* the bookkeeping of `block` was overwritten */
} freestone_tlsf_code_t;

/*
 * Creates a heap in the `bytes` at `memory`, both multiples of 16, which it uses until it is destroyed. NULL, EINVAL and the reason in
 * `*error` (which may be NULL) if they are misaligned, too few or too many.
 */
FREESTONE_ATTR_NODISCARD
freestone_tlsf_t *freestone_tlsf_new(void *memory, size_t bytes, freestone_error_t *error) FREESTONE_NOTHROW;

/*
 * Ends a heap: its memory is the caller's again, including blocks still in use. NULL does nothing.
 */
void freestone_tlsf_delete(freestone_tlsf_t *heap) FREESTONE_NOTHROW;

/*
 * Adds the `bytes` at `start` to the heap. Blocks of two regions never merge, even if the regions touch. Returns a code.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
int freestone_tlsf_add_region(freestone_tlsf_t *heap, void *start, size_t bytes) FREESTONE_NOTHROW;

/*
 * Grows the region that starts at `start` (for the first one: the memory the heap was created in) by the `bytes` directly
 * behind it, a multiple of 16 and at least 32. Returns a code.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
int freestone_tlsf_grow_region(freestone_tlsf_t *heap, void *start, size_t bytes) FREESTONE_NOTHROW;

/*
 * Removes the region that starts at `start`, if no block in it is in use. The heap's control structure stays where it is. Returns a code.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
int freestone_tlsf_remove_region(freestone_tlsf_t *heap, void *start) FREESTONE_NOTHROW;

/*
 * Allocates `size` bytes, aligned to 16. NULL and ENOMEM, or EINVAL for a size of 0, if that is refused.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_ALLOC_SIZE(2) FREESTONE_ATTR_NONNULL(1)
void *freestone_tlsf_malloc(freestone_tlsf_t *heap, size_t size) FREESTONE_NOTHROW;

/*
 * Allocates `size` bytes, aligned to `align`. As freestone_tlsf_malloc, and EINVAL if `align` is not a power of two.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_ALLOC_ALIGN(2) FREESTONE_ATTR_ALLOC_SIZE(3)
FREESTONE_ATTR_NONNULL(1)
void *freestone_tlsf_aligned_alloc(freestone_tlsf_t *heap, size_t align, size_t size) FREESTONE_NOTHROW;

/*
 * Resizes a block to `size` bytes, in place if possible, at a multiple of `align` (pass what it was allocated with), and keeps its
 * contents up to the smaller size. A `block` of NULL allocates. NULL and errno if that is refused: the block is unchanged.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_ALLOC_SIZE(4) FREESTONE_ATTR_NONNULL(1)
void *freestone_tlsf_realloc(freestone_tlsf_t *heap, void *block, size_t align, size_t size) FREESTONE_NOTHROW;

/*
 * Frees a block; NULL does nothing. Returns a code: a double free, a foreign or interior pointer and a block that was written past its
 * end are refused and change nothing.
 */
FREESTONE_ATTR_NONNULL(1)
int freestone_tlsf_free(freestone_tlsf_t *heap, void *block) FREESTONE_NOTHROW;

/*
 * Bytes of a block that may be used; 0 if it is not a block of this heap that is in use.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
size_t freestone_tlsf_usable_size(freestone_tlsf_t *heap, void *block) FREESTONE_NOTHROW;

/*
 * Checks every invariant of the heap. Returns a code. Takes time proportional to the number of blocks.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
int freestone_tlsf_check(freestone_tlsf_t *heap) FREESTONE_NOTHROW;

/*
 * The error of the last call on this heap that was refused; all members are 0 if none was.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
freestone_error_t freestone_tlsf_last_error(const freestone_tlsf_t *heap) FREESTONE_NOTHROW;

/*
 * The contents of a heap: region_bytes = used_bytes + free_bytes + overhead_bytes. New versions of the library add members at the end;
 * `size` lets old programs run with new libraries, and new programs with old ones.
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
 * Fills `*stats` as far as `stats->size` says, and sets `stats->size` to the bytes filled. Returns 0; -1 and EINVAL if `stats` is NULL or
 * its size is less than that of the member itself. Takes time proportional to the number of blocks.
 */
FREESTONE_ATTR_NONNULL(1)
int freestone_tlsf_stats(const freestone_tlsf_t *heap, freestone_tlsf_stats_t *stats) FREESTONE_NOTHROW;

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

/* ---------------------------------------------------------------------------------------------------------------------------- */
/* Pools                                                                                                                        */
/* ---------------------------------------------------------------------------------------------------------------------------- */

/*
 * A pool allocates blocks of one size. Each call takes the same short time; blocks have no header; an invalid free (of a block that is
 * free already, of the inside of a block, of a pointer that is not the pool's) is refused with a code and changes nothing.
 *
 *     freestone_pool_shape_t shape = {.block_size = sizeof(connection_t), .count = 1000};
 *     freestone_pool_t *pool = freestone_pool_new(&shape, NULL);
 *     connection_t *connection = freestone_pool_calloc(pool);
 *     ...
 *     freestone_pool_free(pool, connection, NULL);
 *     freestone_pool_delete(pool, NULL);
 *
 * One thread at a time may use a pool, unless it is created with `.shared = 1`: then any thread may call every function but
 * freestone_pool_delete and freestone_pool_check at any time, and none waits for another. A thread that allocates much from a shared
 * pool creates a magazine.
 *
 * Free blocks of a pool with freestone_pool_free or freestone_magazine_free, never with `free`.
 */
typedef struct freestone_pool freestone_pool_t;

/* The shape of a pool. Blocks are a power of two apart: the smallest that holds `block_size`. */
typedef struct freestone_pool_shape {
    size_t block_size; /* bytes of a block, 1 or more */
    size_t count;      /* how many blocks, 1 or more */
    size_t align;      /* a power of two; 0: 16, or 8 for blocks of up to 8 bytes */
    int shared;        /* 1 if several threads may use it at once */
} freestone_pool_shape_t;

/* Why a pool refused a call. */
typedef enum freestone_pool_code {
    FREESTONE_POOL_ZERO_BLOCK_SIZE = 101,   /* the shape has blocks of 0 bytes */
    FREESTONE_POOL_ZERO_COUNT = 102,        /* the shape has 0 blocks */
    FREESTONE_POOL_BAD_ALIGNMENT = 103,     /* `value` is not a power of two */
    FREESTONE_POOL_TOO_LARGE = 104,         /* `limit` blocks of `value` bytes */
    FREESTONE_POOL_REGION_MISALIGNED = 105, /* memory at `address`, which is not a multiple of `limit` */
    FREESTONE_POOL_REGION_TOO_SMALL = 106,  /* memory of `value` bytes, where `limit` are needed */
    FREESTONE_POOL_EXHAUSTED = 107,         /* all `limit` blocks of `value` bytes are in use */
    FREESTONE_POOL_FOREIGN = 108,           /* `address` is not that of a block of this pool */
    FREESTONE_POOL_INTERIOR = 109,          /* `address` is inside `block` of `value` bytes */
    FREESTONE_POOL_DOUBLE_FREE = 110,       /* `block` of `value` bytes is free already */
    FREESTONE_POOL_NEVER_ALLOCATED = 111,   /* `block` of `value` bytes was never allocated */
    FREESTONE_POOL_IN_USE = 112,            /* `value` blocks are in use, the first at `block` */
    FREESTONE_POOL_DAMAGED = 113,           /* the bookkeeping of `block` was overwritten */
    FREESTONE_POOL_NO_MEMORY = 114,         /* the library has no `value` bytes */
    FREESTONE_POOL_MAGAZINES_EXIST = 115,   /* `value` magazines were not destroyed */
    FREESTONE_POOL_NOT_SHARED = 116         /* a magazine was requested from a pool that is not shared */
} freestone_pool_code_t;

/* The contents of a pool: n_used + n_free + n_fresh is its count. Blocks that magazines cache are free. */
typedef struct freestone_pool_stats {
    size_t n_used;        /* blocks in use */
    size_t n_free;        /* free blocks that were in use before: n_used + n_free is the most that ever were in use at once */
    size_t n_fresh;       /* blocks that were never in use: their memory is untouched */
    size_t block_bytes;   /* bytes of a block */
    size_t spacing_bytes; /* bytes from the start of one block to the next */
} freestone_pool_stats_t;

/*
 * Bytes of memory that freestone_pool_new_at needs for a pool of this shape. 0, errno and the reason in `*error` (which may be NULL)
 * if there can be no such pool.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
size_t freestone_pool_bytes(const freestone_pool_shape_t *shape, freestone_error_t *error) FREESTONE_NOTHROW;

/*
 * Creates a pool in memory that the library allocates at once and freestone_pool_delete frees. Memory of blocks that were never in use
 * is not touched. NULL and the reason in `*error` (which may be NULL), with ENOMEM when memory runs out or the shape exceeds the address
 * space, EINVAL when the shape is invalid.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
freestone_pool_t *freestone_pool_new(const freestone_pool_shape_t *shape, freestone_error_t *error) FREESTONE_NOTHROW;

/*
 * Creates a pool in the `bytes` at `memory`, which it uses until it is destroyed; it allocates nothing. The memory is aligned to 16, or to
 * the shape's alignment if that is larger. NULL, errno and the reason in `*error` (which may be NULL) if it is misaligned or too small.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(3)
freestone_pool_t *freestone_pool_new_at(void *memory, size_t bytes, const freestone_pool_shape_t *shape,
                                        freestone_error_t *error) FREESTONE_NOTHROW;

/*
 * Ends a pool. Returns FREESTONE_OK; or, with the pool unchanged, the code of what prevents it, and its details in `*error` (which may be
 * NULL): a block that is in use, a magazine that was not destroyed. A `pool` of NULL does nothing. No other thread may use the pool.
 */
int freestone_pool_delete(freestone_pool_t *pool, freestone_error_t *error) FREESTONE_NOTHROW;

/*
 * Allocates a block; its contents are undefined. NULL and ENOMEM if all are in use (in a shared pool: or cached by other threads'
 * magazines); NULL and EINVAL if the pool's bookkeeping was overwritten.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_NONNULL(1)
void *freestone_pool_malloc(freestone_pool_t *pool) FREESTONE_NOTHROW;

/* Allocates a block of zeros. Memory known to be zero is not cleared again. NULL and errno as for freestone_pool_malloc. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_NONNULL(1)
void *freestone_pool_calloc(freestone_pool_t *pool) FREESTONE_NOTHROW;

/*
 * Frees a block. Returns FREESTONE_OK; or, with nothing changed, the code of what is wrong with `block`, and its details in `*error` (which
 * may be NULL). A `block` of NULL does nothing. Does not change `errno`.
 */
FREESTONE_ATTR_NONNULL(1)
int freestone_pool_free(freestone_pool_t *pool, void *block, freestone_error_t *error) FREESTONE_NOTHROW;

/* Bytes of a block that may be used: the shape's block_size; 0 if `block` is not a block of this pool that is in use. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
size_t freestone_pool_usable_size(freestone_pool_t *pool, const void *block) FREESTONE_NOTHROW;

/*
 * Checks every invariant of a pool. Returns FREESTONE_OK; or FREESTONE_POOL_DAMAGED or FREESTONE_POOL_MAGAZINES_EXIST, with details in
 * `*error` (which may be NULL). Takes time proportional to the number of blocks that were ever in use. No other thread may use the pool.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
int freestone_pool_check(freestone_pool_t *pool, freestone_error_t *error) FREESTONE_NOTHROW;

/* Fills `*stats`. Takes time proportional to the number of blocks that were ever in use. */
FREESTONE_ATTR_NONNULL(1, 2)
void freestone_pool_stats(freestone_pool_t *pool, freestone_pool_stats_t *stats) FREESTONE_NOTHROW;

/*
 * One thread's cache of up to 64 free blocks of a shared pool: most of its calls then access nothing that another thread writes. A block
 * of one magazine may be freed through another, or directly to the pool. Other threads cannot allocate the blocks that a magazine caches.
 */
typedef struct freestone_magazine freestone_magazine_t; /* one thread at a time may use it */

/*
 * Creates an empty magazine. NULL and the reason in `*error` (which may be NULL), with EINVAL if the pool is not shared, ENOMEM when
 * memory runs out.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
freestone_magazine_t *freestone_magazine_new(freestone_pool_t *pool, freestone_error_t *error) FREESTONE_NOTHROW;

/* Ends a magazine: the blocks that it caches go back to the pool; blocks in use stay in use. NULL does nothing. */
void freestone_magazine_delete(freestone_magazine_t *magazine) FREESTONE_NOTHROW;

/* Allocates a block through the magazine. NULL and errno as for freestone_pool_malloc. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_NONNULL(1)
void *freestone_magazine_malloc(freestone_magazine_t *magazine) FREESTONE_NOTHROW;

/* Allocates a block of zeros through the magazine. NULL and errno as for freestone_pool_malloc. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_NONNULL(1)
void *freestone_magazine_calloc(freestone_magazine_t *magazine) FREESTONE_NOTHROW;

/* Frees a block of the magazine's pool into the magazine. Returns a code and fills `*error` as freestone_pool_free does. */
FREESTONE_ATTR_NONNULL(1)
int freestone_magazine_free(freestone_magazine_t *magazine, void *block, freestone_error_t *error) FREESTONE_NOTHROW;

#ifdef __cplusplus
}
#endif

#endif
