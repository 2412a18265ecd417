/*
 * Pools, as freestone.h describes them: what they hand out, what they refuse with which message, and threads on a shared one.
 *
 * Argument: which part.
 */
#define _GNU_SOURCE
#include "expect.h"
#include <freestone.h>
#include <pthread.h>

/* The same checks for one thread's pools and for shared ones, over the library's memory and over ours. */
#define EACH_KIND(shared, given) \
    for (int shared = 0; shared < 2; shared++) \
        for (int given = 0; given < 2; given++)

static _Alignas(4096) char memory[1 << 16];

static freestone_pool_t *make(size_t block_size, size_t count, size_t align, int shared, int given) {
    freestone_pool_shape_t shape = {.size = sizeof shape, .block_size = block_size, .count = count, .align = align, .shared = shared};
    freestone_error_t error;
    if (!given) return freestone_pool_new(&shape, &error);
    memset(memory, 0xA5, sizeof memory);
    size_t bytes = 0;
    EXPECT(freestone_pool_bytes(&shape, &bytes, &error) == FREESTONE_OK);
    EXPECT(bytes > block_size * count && bytes <= sizeof memory);
    return freestone_pool_new_at(memory, bytes, &shape, &error);
}

/* Stores the pool's last error and passes on the code, which is the same. */
static freestone_code_t told(const freestone_pool_t *pool, freestone_code_t code, freestone_error_t *error) {
    if (code != FREESTONE_OK) {
        *error = freestone_pool_last_error(pool);
        EXPECT(error->code == code);
    }
    return code;
}

static int is_zero(const char *block, size_t size) {
    while (size > 0 && block[size - 1] == 0) size--;
    return size == 0;
}

static void expect_text(const freestone_error_t *error, const char *format, const void *a, const void *b) {
    char expected[300], text[300];
    snprintf(expected, sizeof expected, format, a, b);
    size_t len = freestone_error_text(error, text, sizeof text);
    EXPECT(len == strlen(text));
    EXPECT(strcmp(text, expected) == 0);
    EXPECT(freestone_error_text(error, NULL, 0) == len);
    char shorter[9];
    EXPECT(freestone_error_text(error, shorter, sizeof shorter) == len);
    EXPECT(strlen(shorter) == 8 && strncmp(shorter, text, 8) == 0);
}

static void blocks(void) {
    EACH_KIND(shared, given) {
        freestone_pool_t *pool = make(48, 20, 0, shared, given);
        EXPECT(pool);
        char *block[20];
        for (int i = 0; i < 20; i++) {
            block[i] = i % 2 ? freestone_pool_calloc(pool) : freestone_pool_malloc(pool);
            EXPECT(block[i] && (uintptr_t)block[i] % 16 == 0);
            EXPECT(i % 2 == 0 || is_zero(block[i], 48));
            EXPECT(freestone_pool_usable_size(pool, block[i]) == 48);
            memset(block[i], i + 1, 48);
        }
        errno = 77;
        EXPECT(freestone_pool_malloc(pool) == NULL && freestone_pool_last_error(pool).code == FREESTONE_POOL_EXHAUSTED && errno == 77);
        errno = 77;
        EXPECT(freestone_pool_calloc(pool) == NULL && freestone_pool_last_error(pool).code == FREESTONE_POOL_EXHAUSTED && errno == 77);
        errno = 77;
        for (int i = 0; i < 20; i++) {
            for (int at = 0; at < 48; at++) EXPECT(block[i][at] == i + 1);
            EXPECT(freestone_pool_free(pool, block[i]) == FREESTONE_OK);
        }
        EXPECT(freestone_pool_free(pool, NULL) == FREESTONE_OK && errno == 77);
        char *again = freestone_pool_calloc(pool);
        EXPECT(again && is_zero(again, 48));
        freestone_pool_stats_t stats = {.size = sizeof stats};
        EXPECT(freestone_pool_stats(pool, &stats) == FREESTONE_OK && stats.size == sizeof stats);
        EXPECT(stats.n_used == 1 && stats.n_free == 19 && stats.n_fresh == 0);
        EXPECT(stats.block_bytes == 48 && stats.spacing_bytes == 64);
        EXPECT(freestone_pool_free(pool, again) == FREESTONE_OK);
        EXPECT(freestone_pool_delete(pool) == FREESTONE_OK);
    }
    EXPECT(freestone_pool_delete(NULL) == FREESTONE_OK);
}

static void alignments(void) {
    EACH_KIND(shared, given) {
        for (size_t align = 1; align <= 4096; align *= 2) {
            freestone_pool_t *pool = make(24, 4, align, shared, given);
            EXPECT(pool);
            for (int i = 0; i < 4; i++) {
                void *block = freestone_pool_malloc(pool);
                EXPECT(block && (uintptr_t)block % align == 0);
                memset(block, 1, 24);
            }
        }
    }
}

#define SHAPE sizeof(freestone_pool_shape_t)

static void refused(const freestone_pool_shape_t *shape, int code, int number) {
    freestone_error_t error = {FREESTONE_OK, NULL, NULL, 0, 0};
    errno = 0;
    EXPECT(freestone_pool_new(shape, &error) == NULL && error.code == code && errno == number);
    size_t bytes = 77;
    EXPECT(freestone_pool_bytes(shape, &bytes, NULL) == code && bytes == 77);
    errno = 77;
    EXPECT(freestone_pool_new_at(memory, sizeof memory, shape, NULL) == NULL && errno == 77);
    char text[300];
    EXPECT(freestone_error_text(&error, text, sizeof text) > 20);
}

static void shapes(void) {
    for (int shared = 0; shared < 2; shared++) {
        refused(&(freestone_pool_shape_t){SHAPE, 0, 4, 0, shared}, FREESTONE_POOL_ZERO_BLOCK_SIZE, EINVAL);
        refused(&(freestone_pool_shape_t){SHAPE, 4, 0, 0, shared}, FREESTONE_POOL_ZERO_COUNT, EINVAL);
        refused(&(freestone_pool_shape_t){SHAPE, 4, 4, 3, shared}, FREESTONE_POOL_BAD_ALIGNMENT, EINVAL);
        refused(&(freestone_pool_shape_t){SHAPE - 1, 4, 4, 0, shared}, FREESTONE_BAD_STRUCT, EINVAL);
        refused(&(freestone_pool_shape_t){SHAPE, 8, 1, (size_t)1 << (8 * sizeof(size_t) - 2), shared}, FREESTONE_POOL_TOO_LARGE, ENOMEM);
        if (shared && SIZE_MAX > UINT32_MAX) {
            refused(&(freestone_pool_shape_t){SHAPE, 8, (size_t)UINT32_MAX - 1, 0, shared}, FREESTONE_POOL_TOO_LARGE, ENOMEM);
        }
        const size_t absurd[] = {SIZE_MAX, SIZE_MAX / 2, (size_t)1 << (8 * sizeof(size_t) - 2), PTRDIFF_MAX - 8ul};
        for (int i = 0; i < 4; i++) {
            refused(&(freestone_pool_shape_t){SHAPE, absurd[i], 8, 0, shared}, FREESTONE_POOL_TOO_LARGE, ENOMEM);
            refused(&(freestone_pool_shape_t){SHAPE, 8, absurd[i], 0, shared}, FREESTONE_POOL_TOO_LARGE, ENOMEM);
            refused(&(freestone_pool_shape_t){SHAPE, absurd[i], absurd[i], 0, shared}, FREESTONE_POOL_TOO_LARGE, ENOMEM);
        }
        freestone_pool_shape_t huge = {SHAPE, (size_t)1 << 50, 64, 0, shared};
        freestone_error_t error;
        errno = 0;
        EXPECT(freestone_pool_new(&huge, &error) == NULL && error.code == FREESTONE_POOL_NO_MEMORY && errno == ENOMEM);
        freestone_pool_shape_t shape = {SHAPE, 64, 10, 0, shared};
        size_t bytes = 0;
        EXPECT(freestone_pool_bytes(&shape, &bytes, NULL) == FREESTONE_OK);
        EXPECT(freestone_pool_new_at(memory, bytes - 1, &shape, &error) == NULL && error.code == FREESTONE_POOL_REGION_TOO_SMALL);
        EXPECT(error.value == bytes - 1 && error.limit == bytes);
        EXPECT(freestone_pool_new_at(memory + 8, bytes, &shape, &error) == NULL && error.code == FREESTONE_POOL_REGION_MISALIGNED);
        EXPECT(error.address == memory + 8 && error.limit == 16);
        EXPECT(freestone_pool_new_at(NULL, bytes, &shape, &error) == NULL && error.code == FREESTONE_POOL_REGION_MISALIGNED);
        expect_text(&error, "the region is null: pass memory", NULL, NULL);
    }
}

static void wrong_frees(void) {
    EACH_KIND(shared, given) {
        freestone_pool_t *pool = make(48, 20, 0, shared, given), *other = make(48, 20, 0, shared, 0);
        char *block = freestone_pool_malloc(pool), *theirs = freestone_pool_malloc(other), *heap = malloc(48);
        freestone_error_t error;
        EXPECT(told(pool, freestone_pool_free(pool, block + 8), &error) == FREESTONE_POOL_INTERIOR);
        EXPECT(error.code == FREESTONE_POOL_INTERIOR && error.address == block + 8 && error.block == block && error.value == 48);
        expect_text(&error, "%p is inside block %p of 48 bytes: pass the block's start", block + 8, block);
        EXPECT(told(pool, freestone_pool_free(pool, block + 64), &error) == FREESTONE_POOL_NEVER_ALLOCATED);
        expect_text(&error, "free of %p: the block of 48 bytes was never handed out", block + 64, NULL);
        void *strangers[] = {theirs, heap, &error, HIDE(memory) + sizeof memory - 1};
        for (int i = 0; i < 4; i++) {
            EXPECT(told(pool, freestone_pool_free(pool, strangers[i]), &error) == FREESTONE_POOL_FOREIGN && error.address == strangers[i]);
            EXPECT(freestone_pool_usable_size(pool, strangers[i]) == 0);
        }
        expect_text(&error, "%p is no block of this pool: it came from elsewhere", strangers[3], NULL);
        EXPECT(told(pool, freestone_pool_delete(pool), &error) == FREESTONE_POOL_IN_USE && error.block == block && error.value == 1);
        expect_text(&error, "1 blocks are still in use, the first at %p: free them first", block, NULL);
        EXPECT(told(pool, freestone_pool_free(pool, block), &error) == FREESTONE_OK);
        EXPECT(told(pool, freestone_pool_free(pool, block), &error) == FREESTONE_POOL_DOUBLE_FREE && error.block == block);
        expect_text(&error, "double free of %p: the block of 48 bytes is free already", block, NULL);
        EXPECT(freestone_pool_usable_size(pool, block) == 0);
        freestone_pool_stats_t stats = {.size = sizeof stats};
        EXPECT(freestone_pool_stats(pool, &stats) == FREESTONE_OK && stats.size == sizeof stats);
        EXPECT(stats.n_used == 0 && stats.n_free == 1 && stats.n_fresh == 19);
        EXPECT(freestone_pool_delete(pool) == FREESTONE_OK);
        EXPECT(freestone_pool_free(other, theirs) == FREESTONE_OK && freestone_pool_delete(other) == FREESTONE_OK);
        free(heap);
    }
}

static void write_after_free(void) {
    for (int shared = 0; shared < 2; shared++) {
        freestone_pool_t *pool = make(48, 4, 0, shared, 0);
        char *block = freestone_pool_malloc(pool), *other = freestone_pool_calloc(pool);
        EXPECT(freestone_pool_free(pool, block) == FREESTONE_OK);
        memset(block, 0x7F, 48);
        EXPECT(freestone_pool_calloc(pool) == block && is_zero(block, 48) && is_zero(other, 48));
        EXPECT(freestone_pool_free(pool, block) == FREESTONE_OK);
        EXPECT(freestone_pool_free(pool, other) == FREESTONE_OK);
        EXPECT(freestone_pool_delete(pool) == FREESTONE_OK);
    }
}

/* The check reports whatever is written over the bookkeeping behind the blocks; the pool is not used again. */
static void damage(void) {
    for (int shared = 0; shared < 2; shared++) {
        freestone_pool_t *pool = make(48, 4, 0, shared, 1);
        freestone_error_t error;
        char *block = freestone_pool_malloc(pool), *other = freestone_pool_malloc(pool);
        EXPECT(told(pool, freestone_pool_check(pool), &error) == FREESTONE_OK);
        EXPECT(freestone_pool_free(pool, block) == FREESTONE_OK);
        EXPECT(told(pool, freestone_pool_check(pool), &error) == FREESTONE_OK);
        memset(other + 3 * 64, 0x7F, 16);
        EXPECT(told(pool, freestone_pool_check(pool), &error) == FREESTONE_POOL_DAMAGED);
        EXPECT((char *)error.block >= block && (char *)error.block < block + 4 * 64);
        EXPECT(freestone_pool_check(pool) == FREESTONE_POOL_DAMAGED);
    }
}

#define N_THREADS 4
#define N_STEPS 100000

static void *work(void *argument) {
    freestone_pool_t *pool = argument;
    freestone_magazine_t *magazine = freestone_magazine_new(pool, NULL);
    EXPECT(magazine);
    uint64_t random = (uintptr_t)magazine | 1, *held[32] = {0};
    for (int step = 0; step < N_STEPS; step++) {
        uint64_t choice = next_random(&random), **place = &held[choice % 32];
        int direct = choice >> 32 & 1;
        if (*place) {
            EXPECT((*place)[0] == (uintptr_t)place && (*place)[2] == (uintptr_t)place);
            EXPECT((direct ? freestone_pool_free(pool, *place) : freestone_magazine_free(magazine, *place)) == 0);
            *place = NULL;
            continue;
        }
        *place = direct ? freestone_pool_calloc(pool) : freestone_magazine_calloc(magazine);
        if (!*place) continue;
        EXPECT(is_zero((char *)*place, 24));
        (*place)[0] = (*place)[1] = (*place)[2] = (uintptr_t)place;
    }
    for (int i = 0; i < 32; i++) EXPECT(freestone_magazine_free(magazine, held[i]) == FREESTONE_OK);
    freestone_magazine_delete(magazine);
    return NULL;
}

static void threads(void) {
    freestone_pool_t *pool = make(24, 200, 0, 1, 0);
    pthread_t thread[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) EXPECT(pthread_create(&thread[i], NULL, work, pool) == 0);
    for (int i = 0; i < N_THREADS; i++) EXPECT(pthread_join(thread[i], NULL) == 0);
    freestone_pool_stats_t stats = {.size = sizeof stats};
    EXPECT(freestone_pool_stats(pool, &stats) == FREESTONE_OK);
    EXPECT(stats.n_used == 0 && stats.n_free + stats.n_fresh == 200);
    /* An older program's structure ends behind `n_fresh`. */
    stats = (freestone_pool_stats_t){.size = offsetof(freestone_pool_stats_t, block_bytes), .block_bytes = 4711};
    EXPECT(freestone_pool_stats(pool, &stats) == FREESTONE_OK && stats.n_free + stats.n_fresh == 200 && stats.block_bytes == 4711);
    EXPECT(freestone_pool_delete(pool) == FREESTONE_OK);
}

static void magazines(void) {
    freestone_error_t error;
    freestone_pool_t *alone = make(24, 8, 0, 0, 0);
    errno = 0;
    EXPECT(freestone_magazine_new(alone, &error) == NULL && errno == EINVAL && error.code == FREESTONE_POOL_NOT_SHARED);
    expect_text(&error, "the pool is not shared: create it with .shared = 1 to have magazines", NULL, NULL);
    EXPECT(freestone_pool_delete(alone) == FREESTONE_OK);

    freestone_pool_t *pool = make(24, 8, 0, 1, 1);
    freestone_magazine_t *magazine = freestone_magazine_new(pool, &error);
    EXPECT(magazine);
    char *block = freestone_magazine_malloc(magazine);
    EXPECT(block && told(pool, freestone_magazine_free(magazine, block + 1), &error) == FREESTONE_POOL_INTERIOR && error.block == block);
    EXPECT(told(pool, freestone_magazine_free(magazine, NULL), &error) == FREESTONE_OK);
    EXPECT(told(pool, freestone_magazine_free(magazine, block), &error) == FREESTONE_OK);
    EXPECT(told(pool, freestone_magazine_free(magazine, block), &error) == FREESTONE_POOL_DOUBLE_FREE);
    EXPECT(told(pool, freestone_pool_free(pool, block), &error) == FREESTONE_POOL_DOUBLE_FREE);
    /* No other caller gets the blocks that the magazine keeps. */
    void *others[8];
    int n = 0;
    errno = 0;
    while (n < 8 && (others[n] = freestone_pool_malloc(pool))) n++;
    EXPECT(n < 8 && freestone_pool_last_error(pool).code == FREESTONE_POOL_EXHAUSTED);
    while (n > 0) EXPECT(freestone_pool_free(pool, others[--n]) == FREESTONE_OK);
    EXPECT(told(pool, freestone_pool_check(pool), &error) == FREESTONE_POOL_MAGAZINES_EXIST && error.value == 1);
    EXPECT(told(pool, freestone_pool_delete(pool), &error) == FREESTONE_POOL_MAGAZINES_EXIST && error.value == 1);
    expect_text(&error, "the pool still has 1 magazines: destroy them first", NULL, NULL);
    freestone_magazine_delete(magazine);
    freestone_magazine_delete(NULL);
    block = freestone_pool_malloc(pool);
    EXPECT(block && freestone_pool_free(pool, block) == FREESTONE_OK);
    EXPECT(freestone_pool_delete(pool) == FREESTONE_OK);
}

int main(int argc, char **argv) {
    EXPECT(argc == 2);
#define PART(name) if (strcmp(argv[1], #name) == 0) return name(), 0
    PART(blocks);
    PART(alignments);
    PART(shapes);
    PART(wrong_frees);
    PART(write_after_free);
    PART(damage);
    PART(threads);
    PART(magazines);
    EXPECT(!"a part of that name");
}
