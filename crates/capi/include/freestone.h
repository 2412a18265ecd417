/*
 * freestone.h: the C interface of Freestone, a general-purpose memory allocator.
 *
 * Link with `-lfreestone`, or preload libfreestone.so: `malloc` and its family are then Freestone's in the whole process. The other
 * functions declared here are Freestone's own.
 *
 *   section                  contents
 *   -----------------------  ------------------------------------------------------------
 *   Explicit heaps           heaps that are destroyed with all their blocks at once
 *   Options                  set by environment, link-time symbol, or function
 *   Checked memory functions what a library of checked memory functions asks
 *   Heap profile             which stacks allocated what is live
 *   Statistics               a snapshot whose parts add up; purging; memory pressure
 *   The malloc family        what <stdlib.h> and <malloc.h> declare, with glibc's semantics
 *   Errors                   why a function of the process or an explicit heap refused a call
 *   Pools                    pools in memory of the process, and magazines
 *
 * TLSF heaps (freestone_tlsf.h) and pools in memory that you provide (freestone_pool.h) are included. freestone_error.h says how calls are refused,
 * and what `size` in structures is for.
 *
 * Long because: a program includes one header for the whole interface.
 *
 * Every function may be called before `main`, in `atexit` and thread-exit functions, and in the child of a `fork`. Which threads may call it at once,
 * and whether a signal handler may; for freestone_tlsf_* and freestone_pool_*, their headers say that:
 *
 *   function                                      threads                                   in a signal handler
 *   --------------------------------------------  ----------------------------------------  ------------------------------------
 *   the malloc family, freestone_heap_new,        any, at any time                          no: it may have interrupted a call
 *     freestone_heap_new_with, freestone_heap_                                                that holds a lock
 *     malloc, _calloc, _aligned_alloc, _realloc,
 *     _free, _usable_size, _set_limit, _stats
 *   freestone_heap_delete                         any; no other uses the heap meanwhile     no
 *   freestone_heap_last_error                     any, at any time                          yes
 *   freestone_option_set, freestone_option_get,   any, at any time                          no
 *     freestone_stats, freestone_stats_write,
 *     freestone_purge, freestone_on_pressure,
 *     freestone_profile_*, freestone_owner
 *   freestone_version, freestone_good_size,       any, at any time                          yes
 *     freestone_error_text,
 *     freestone_checked_range,
 *     freestone_check_access
 *   freestone_pool_new                            any, at any time                          no
 *   freestone_pool_delete of a pool that it made  any; no other uses the pool meanwhile     no
 *   freestone_magazine_new, _delete               any, one at a time for each magazine      no
 *   freestone_magazine_malloc, _calloc, _free     any, one at a time for each magazine      if it cannot interrupt a call for the
 *                                                                                             same magazine
 *
 * An invalid pointer that is passed to `free` and its kin (never allocated, already freed, or inside a block) is reported on standard error where it
 * is detected, and the process aborts (option `misuse`). `free` never fails and never changes `errno`.
 */
#ifndef FREESTONE_H
#define FREESTONE_H

#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "freestone_error.h"
#include "freestone_pool.h"
#include "freestone_tlsf.h"

/* The version of this header. The library's soname changes with the first number. */
#define FREESTONE_VERSION_MAJOR 0
#define FREESTONE_VERSION_MINOR 1
#define FREESTONE_VERSION_PATCH 0

/* In C++, glibc's <stdlib.h> declares functions `noexcept` and musl's does not; the declarations of the malloc family here have to match. */
#if defined(__cplusplus) && !defined(__GLIBC__)
#define FREESTONE_LIBC_NOTHROW
#else
#define FREESTONE_LIBC_NOTHROW FREESTONE_NOTHROW
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

/* What a heap is to be like. Members that are 0 leave it as freestone_heap_new makes it. */
typedef struct freestone_heap_shape {
    size_t size;        /* in: sizeof(freestone_heap_shape_t) */
    const char *harden; /* a word of the option `harden` ("checks", for example), or NULL */
    size_t limit;       /* as for freestone_heap_set_limit */
} freestone_heap_shape_t;

/*
 * Creates a heap of that shape. Its blocks are hardened as its member `harden` says, or as the process is if that is more. From "checks" on every
 * operation on its blocks is checked, whichever thread makes it. What "full" does besides, it does only for the process as a whole. NULL, errno and
 * the reason in `*error` (which may be NULL) if memory runs out, there is no such level, or the limit is less than a page.
 *
 *     freestone_heap_shape_t shape = {.size = sizeof shape, .harden = "checks"};
 *     freestone_heap_t *heap = freestone_heap_new_with(&shape, NULL);
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
freestone_heap_t *freestone_heap_new_with(const freestone_heap_shape_t *shape, freestone_error_t *error) FREESTONE_NOTHROW;

/*
 * Limits `heap` to `bytes`, counted in whole pages of 64 KiB; 0 removes the limit (a new heap has none). At the limit the heap's functions
 * empty its caches, call the function that freestone_on_pressure registered, and then return NULL with ENOMEM.
 *
 * Returns a code: FREESTONE_BAD_LIMIT if the heap already has more, or `bytes` is less than a page.
 */
FREESTONE_ATTR_NONNULL(1)
freestone_code_t freestone_heap_set_limit(freestone_heap_t *heap, size_t bytes) FREESTONE_NOTHROW;

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

/*
 * Frees a block of `heap`. Returns a code: FREESTONE_FOREIGN, with nothing freed, for a block of another heap. NULL does nothing. `free` frees blocks of
 * any heap and is faster: this function finds out whether the block is of `heap` first.
 */
FREESTONE_ATTR_NONNULL(1)
freestone_code_t freestone_heap_free(freestone_heap_t *heap, void *block) FREESTONE_NOTHROW;

/* Bytes of a block that may be used; 0 if it is NULL or a block of another heap. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
size_t freestone_heap_usable_size(const freestone_heap_t *heap, const void *block) FREESTONE_NOTHROW;

/* The error of the last call on this heap that was refused; all members are 0 if none was. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
freestone_error_t freestone_heap_last_error(const freestone_heap_t *heap) FREESTONE_NOTHROW;

/*
 * Stores the explicit heap that a block is of in `*heap`; NULL if it is a block of `malloc`. Returns a code: FREESTONE_FOREIGN if no block of the
 * library can start at `block`: it is not the library's memory, lies inside a large block, or, among small blocks, is no multiple of 16. Whether a
 * small block starts at a multiple of 16, and whether the block was freed, is not examined. Takes time proportional to the
 * number of heaps for blocks of explicit heaps and for large blocks.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(2)
freestone_code_t freestone_owner(const void *block, freestone_heap_t **heap) FREESTONE_NOTHROW;

/* ---------------------------------------------------------------------------------------------------------------------------- */
/* Options                                                                                                                      */
/* ---------------------------------------------------------------------------------------------------------------------------- */

/*
 * Options are read from the environment (FREESTONE_MISUSE=report), then from the symbol below, and are set by freestone_option_set; a
 * later source overrides an earlier one. Bytes may end in k, m or g. Unknown options and invalid values are reported on standard error
 * and ignored. In a process with more rights than its caller (setuid) environment and symbol can raise `harden` above its default, and are
 * ignored otherwise. `freestone options` and docs/tuning.md list all options.
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
 * Sets the option `name` (as in the symbol: lower case, without prefix) to `value`. Returns a code, with nothing changed: FREESTONE_NO_SUCH_OPTION; or
 * FREESTONE_BAD_VALUE if the value is not valid for it, or is a limit (`limit`, `limit_hard`) of less than is in use. The options that are paths, and those that docs/tuning.md calls set only at the start,
 * can be set in the environment and in the symbol, and are refused here; so is `harden` after the first allocation. NULL is refused.
 */
freestone_code_t freestone_option_set(const char *name, const char *value) FREESTONE_NOTHROW;

/*
 * Stores the value of the option `name` in `*value`, as a number: bytes, milliseconds, or the index of its word; 0 for paths, and for guard_sample if it
 * is not set; SIZE_MAX for limit and limit_hard if they are not set. Returns a code: FREESTONE_NO_SUCH_OPTION, also for NULL.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(2)
freestone_code_t freestone_option_get(const char *name, uint64_t *value) FREESTONE_NOTHROW;

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
 * Starts to sample allocations; does so anew with the option's interval if it has started. Returns a code: FREESTONE_NO_PROFILE without memory for it, or
 * with the option `sandbox`.
 */
freestone_code_t freestone_profile_start(void) FREESTONE_NOTHROW;

/* Samples no more. What was sampled stays in the profile until it is freed. */
void freestone_profile_stop(void) FREESTONE_NOTHROW;

/*
 * Writes the profile to the file at `path`, which is created or emptied; NULL: to the file that the option heap_profile_file names. `of` is
 * a freestone_profile_of_t. Returns a code: FREESTONE_NO_SUCH_SNAPSHOT, or FREESTONE_NOT_WRITTEN with the error number of the file as `value` in
 * `*error`, which may be NULL. Allocates nothing.
 */
freestone_code_t freestone_profile_dump(const char *path, int of, freestone_error_t *error) FREESTONE_NOTHROW;

/* As freestone_profile_dump, to an open descriptor. */
freestone_code_t freestone_profile_dump_fd(int descriptor, int of, freestone_error_t *error) FREESTONE_NOTHROW;

/*
 * As freestone_profile_dump, to a function, which gets the text piece by piece: `bytes` bytes at `piece`, and `argument`. It returns 0 to go on;
 * any other number ends the dump, which then returns that number: let it be negative, which no code is. FREESTONE_NO_SUCH_SNAPSHOT also if `sink` is NULL.
 */
freestone_code_t freestone_profile_dump_to(int (*sink)(const void *piece, size_t bytes, void *argument), void *argument, int of,
                                           freestone_error_t *error) FREESTONE_NOTHROW;

/* ---------------------------------------------------------------------------------------------------------------------------- */
/* Statistics                                                                                                                   */
/* ---------------------------------------------------------------------------------------------------------------------------- */

/*
 * A snapshot. Members are bytes unless their name begins with `n_`. While other threads run, the numbers are of slightly different
 * moments, but always
 *
 *     committed = live + cached + fragmented + dirty + metadata        and none is negative
 */
typedef struct freestone_stats {
    size_t size;             /* in: sizeof(freestone_stats_t); out: how much of it was filled */
    uint64_t live;           /* in blocks in use (whole blocks, not the requested size) */
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
    uint64_t density;        /* `live` in each 4096 bytes of `resident`, on average */
    uint64_t resident;       /* `committed`, less OS pages of spans without a block: what the kernel counts, if every block has been written */
} freestone_stats_t;

/*
 * Fills `*stats` as far as `stats->size` says, and sets `stats->size` to the bytes filled. Returns a code: FREESTONE_BAD_STRUCT if `stats` is NULL or
 * its size less than that of the member itself.
 *
 *     freestone_stats_t stats = {.size = sizeof stats};
 *     if (freestone_stats(&stats) == FREESTONE_OK) printf("%" PRIu64 " bytes live\n", stats.live);
 *
 * Takes time proportional to the largest number of threads that ever existed at once.
 */
freestone_code_t freestone_stats(freestone_stats_t *stats) FREESTONE_NOTHROW;

/* What one explicit heap has. Members are bytes unless their name begins with `n_`; live + cached is never more than spans + large. */
typedef struct freestone_heap_stats {
    size_t size;            /* in: sizeof(freestone_heap_stats_t); out: how much of it was filled */
    uint64_t live;          /* in blocks in use (whole blocks, not the requested size) */
    uint64_t large;         /* the part of `live` in blocks of more than 32 KiB */
    uint64_t cached;        /* in free blocks that the heap has at hand */
    uint64_t spans;         /* in spans, which hold the smaller blocks, free and in use */
    uint64_t limit;         /* what freestone_heap_set_limit allows `spans` and `large` together; 0 if there is no limit */
    uint64_t number;        /* the label `heap` of freestone_stats_write; a later heap may get it again */
    uint64_t n_allocations; /* blocks allocated from heaps with this number */
} freestone_heap_stats_t;

/*
 * Fills `*stats` with what `heap` has, as freestone_stats does. Blocks that other threads have freed go back to the heap first. (In a heap
 * hardened with "checks" or "full", freed blocks that wait in its quarantine count as live.)
 */
FREESTONE_ATTR_NONNULL(1)
freestone_code_t freestone_heap_stats(const freestone_heap_t *heap, freestone_heap_stats_t *stats) FREESTONE_NOTHROW;

/* Texts for monitoring systems. docs/monitoring.md explains each figure. */
typedef enum freestone_stats_format {
    FREESTONE_STATS_OPENMETRICS = 0, /* OpenMetrics 1.0, which Prometheus scrapes */
    FREESTONE_STATS_JSON = 1         /* one JSON object, on one line */
} freestone_stats_format_t;

/*
 * Writes all statistics, also per size class and per heap, as text: calls `write` with one piece after the other, of `bytes` bytes and without
 * a final zero, and with `context`, until it returns something other than 0. Returns a code, FREESTONE_BAD_FORMAT or
 * FREESTONE_NO_MEMORY; or what `write` returned, if that was not 0: let that be negative, which no code is.
 *
 *     static int to_file(const char *text, size_t bytes, void *context) {
 *         return fwrite(text, 1, bytes, context) == bytes ? 0 : -1;
 *     }
 *     ...
 *     freestone_stats_write(FREESTONE_STATS_OPENMETRICS, to_file, stdout);
 *
 * The snapshot is taken before the first call: `write` may allocate and free, and the library holds no lock meanwhile. It must not leave
 * by `longjmp` or an exception.
 */
freestone_code_t freestone_stats_write(freestone_stats_format_t format, int (*write)(const char *text, size_t bytes, void *context),
                                       void *context);

/*
 * Gives free memory, the calling thread's caches included, back to the operating system now. Returns the bytes given back. What stays: the caches of
 * other threads, and what is free beside blocks in use of theirs; and of what waits for other threads that are idle about a sixteenth, or from
 * harden=checks on all. What is free beside blocks in use of the calling thread goes back at most once in `decay_ms`, unless 1 MiB more has become
 * free. Memory also goes back by itself, after the time that option `decay_ms` sets.
 */
size_t freestone_purge(void) FREESTONE_NOTHROW;

/*
 * Registers `callback` to be called when memory is short: when the soft limit is passed (option `limit`; by default 15/16 of the control
 * group's), again with every further 1/64 of it, and before an allocation fails. Caches are empty by then; those of one heap only, if that
 * heap's limit is reached. It gets the bytes that count against the limit, and `argument`. NULL unregisters; a process starts with none.
 * While a call is under way, allocations of other threads fail without one.
 *
 * The thread that allocates calls it, possibly while the program holds locks; the library holds none. It may allocate and free; its own
 * allocations cause no further call. It must not leave by `longjmp` or an exception. Variables that it changes and the caller of `malloc`
 * reads have to be volatile or atomic: `malloc` is declared as a function that calls nothing back.
 */
void freestone_on_pressure(void (*callback)(size_t in_use_bytes, void *argument), void *argument) FREESTONE_NOTHROW;

/* The library's version, such as "0.1.0". The string is never freed. */
FREESTONE_ATTR_CONST FREESTONE_ATTR_RETURNS_NONNULL
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
void *malloc(size_t size) FREESTONE_LIBC_NOTHROW;

/* Allocates `count * size` zero bytes. NULL and ENOMEM when memory runs out or the product overflows. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_ALLOC_SIZE(1, 2)
void *calloc(size_t count, size_t size) FREESTONE_LIBC_NOTHROW;

/*
 * Resizes a block to `size` bytes and keeps its contents up to the smaller size. A `block` of NULL allocates; a `size` of 0 frees the
 * block and returns NULL. NULL and ENOMEM when memory runs out: the block is unchanged.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_ALLOC_SIZE(2)
void *realloc(void *block, size_t size) FREESTONE_LIBC_NOTHROW;

/* Resizes a block to `count * size` bytes, as realloc; NULL and ENOMEM also when the product overflows. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_ALLOC_SIZE(2, 3)
void *reallocarray(void *block, size_t count, size_t size) FREESTONE_LIBC_NOTHROW;

/* Frees a block. NULL does nothing. Does not change `errno`. */
void free(void *block) FREESTONE_LIBC_NOTHROW;

/* Frees a block of malloc, calloc or realloc; `size` is the requested size in bytes (C23). Checked from harden=checks on, but not of guarded blocks. */
void free_sized(void *block, size_t size) FREESTONE_LIBC_NOTHROW;

/* Frees a block of aligned_alloc; `align` and `size` are those of the request (C23), checked likewise. */
void free_aligned_sized(void *block, size_t align, size_t size) FREESTONE_LIBC_NOTHROW;

/*
 * Allocates `size` bytes aligned to `align`, which is rounded up to a power of two, as in glibc 2.36; the size need not be a multiple of
 * it. NULL and EINVAL if no power of two is that large; NULL and ENOMEM when memory runs out.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_ALLOC_ALIGN(1) FREESTONE_ATTR_ALLOC_SIZE(2)
void *aligned_alloc(size_t align, size_t size) FREESTONE_LIBC_NOTHROW;

/* Allocates as aligned_alloc does, with the same results. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_ALLOC_ALIGN(1) FREESTONE_ATTR_ALLOC_SIZE(2)
void *memalign(size_t align, size_t size) FREESTONE_LIBC_NOTHROW;

/*
 * Stores a block of `size` bytes aligned to `align` in `*block` and returns 0. Returns EINVAL if `align` is not a power of two or not
 * a multiple of sizeof(void *), ENOMEM when memory runs out, which `errno` then says as well, as with glibc and musl; `*block` is then
 * unchanged.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
int posix_memalign(void **block, size_t align, size_t size) FREESTONE_LIBC_NOTHROW;

/* Allocates `size` bytes aligned to the OS page. NULL and ENOMEM when memory runs out. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_ALLOC_SIZE(1)
void *valloc(size_t size) FREESTONE_LIBC_NOTHROW;

/* Allocates `size` bytes, rounded up to whole OS pages (at least one) and aligned to them. NULL and ENOMEM when memory runs out. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC
void *pvalloc(size_t size) FREESTONE_LIBC_NOTHROW;

/*
 * Bytes of a block that may be used, at least as many as were requested; 0 for NULL. For a block of malloc, calloc or aligned_alloc the
 * result depends only on the requested size and alignment; realloc may leave a block more. A block that the option guard_sample guards (so does
 * profile=production) has exactly the bytes that were requested, and from harden=checks on every block has.
 */
size_t malloc_usable_size(void *block) FREESTONE_LIBC_NOTHROW;

/*
 * Bytes that malloc(size) rounds up to: a program that can use more than it needs asks for that many. Never less than `size`. It does not depend on
 * options: a block of malloc(size) may have fewer, see malloc_usable_size, and a large one more.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_CONST
size_t freestone_good_size(size_t size) FREESTONE_NOTHROW;

/* Gives memory back as freestone_purge does; `pad` is ignored. Returns 1 if there was any, else 0. */
int malloc_trim(size_t pad) FREESTONE_LIBC_NOTHROW;

/* Accepts and ignores every parameter (glibc's have no counterpart here). Returns 1. */
int mallopt(int parameter, int value) FREESTONE_LIBC_NOTHROW;

/* Writes statistics to standard error: sums, counts, and a line for each size class in use. */
void malloc_stats(void) FREESTONE_LIBC_NOTHROW;

/*
 * Writes statistics to `stream` as XML with glibc's elements: one `heap` for all; its `sizes` and `fast` are free blocks that threads cache,
 * `rest` other free memory (counted in pages of 64 KiB), `mmap` blocks of more than 32 KiB. Returns 0; EINVAL if `options` is not 0; -1 if the stream
 * fails.
 */
FREESTONE_ATTR_NONNULL(2)
int malloc_info(int options, FILE *stream) FREESTONE_LIBC_NOTHROW;

#ifdef __GLIBC__
/*
 * The statistics in glibc's form: `arena` is what is committed, `uordblks` what is live, `fordblks` the rest, `keepcost` what
 * malloc_trim could give back; the other members are 0. Only with glibc: other C libraries have no such structures.
 */
struct mallinfo2 mallinfo2(void) FREESTONE_LIBC_NOTHROW;

/* As mallinfo2, in `int`s, which wrap. */
struct mallinfo mallinfo(void) FREESTONE_LIBC_NOTHROW;
#endif

/* ---------------------------------------------------------------------------------------------------------------------------- */
/* Errors                                                                                                                       */
/* ---------------------------------------------------------------------------------------------------------------------------- */

/* Why a function of the process or of an explicit heap refused a call. freestone_error.h says how refusals are told. */
enum {
    FREESTONE_NO_MEMORY = 201,        /* there are no `value` bytes (0: for a snapshot): memory runs out, or the heap's limit is reached */
    FREESTONE_BAD_ALIGNMENT = 202,    /* `value` is not a power of two */
    FREESTONE_FOREIGN = 203,          /* `address` is no block of the heap; of freestone_owner: of no heap */
    FREESTONE_BAD_LIMIT = 204,        /* the limit of `value` bytes is less than a page, or than the `limit` bytes that the heap has */
    FREESTONE_NO_SUCH_LEVEL = 205,    /* the option `harden` has no such level */
    FREESTONE_NO_SUCH_OPTION = 206,
    FREESTONE_BAD_VALUE = 207,        /* the option does not take that value, or cannot be set now: see freestone_option_set */
    FREESTONE_BAD_FORMAT = 208,       /* there is no such format of statistics, or no function to write them */
    FREESTONE_NO_PROFILE = 209,       /* there is no memory for the heap profile, or the option sandbox forbids it */
    FREESTONE_NO_SUCH_SNAPSHOT = 210, /* a heap profile has no such part, or there is no function to write it */
    FREESTONE_NOT_WRITTEN = 211       /* the system's error number is `value` */
};

/*
 * Writes the message of `error`, whichever function refused the call, into `buffer` as snprintf does: cut to `size` - 1 bytes and ended by a zero.
 * Returns the length of the whole message. `buffer` may be NULL if `size` is 0.
 */
FREESTONE_ATTR_NONNULL(1)
size_t freestone_error_text(const freestone_error_t *error, char *buffer, size_t size) FREESTONE_NOTHROW;

/* ---------------------------------------------------------------------------------------------------------------------------- */
/* Pools in memory of the process, and magazines                                                                                */
/* ---------------------------------------------------------------------------------------------------------------------------- */

/*
 * Creates a pool in memory that the library allocates at once and freestone_pool_delete frees. Memory of blocks that were never in use
 * is not touched. NULL and the reason in `*error` (which may be NULL), with ENOMEM when memory runs out or the shape exceeds the address
 * space, EINVAL when the shape is invalid.
 */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_NONNULL(1)
freestone_pool_t *freestone_pool_new(const freestone_pool_shape_t *shape, freestone_error_t *error) FREESTONE_NOTHROW;

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

/*
 * Frees a block of the magazine's pool into the magazine. Returns a code as freestone_pool_free does; the pool's last error has the details.
 */
FREESTONE_ATTR_NONNULL(1)
freestone_code_t freestone_magazine_free(freestone_magazine_t *magazine, void *block) FREESTONE_NOTHROW;

/* Allocates a block through the magazine. NULL as for freestone_pool_malloc. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_NONNULL(1)
void *freestone_magazine_malloc(freestone_magazine_t *magazine) FREESTONE_NOTHROW;

/* Allocates a block of zeros through the magazine. NULL as for freestone_pool_malloc. */
FREESTONE_ATTR_NODISCARD FREESTONE_ATTR_MALLOC FREESTONE_ATTR_NONNULL(1)
void *freestone_magazine_calloc(freestone_magazine_t *magazine) FREESTONE_NOTHROW;

#ifdef __cplusplus
}
#endif

#endif
