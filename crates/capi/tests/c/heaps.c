/* Explicit heaps beside thread heaps: deleting one must not change blocks of others, even while remote frees are in flight; by argument. */
#include "expect.h"
#include "freestone.h"
#include <pthread.h>

enum { BLOCK = 64 };

static char *filled(char *block, int value) {
    EXPECT(block);
    return memset(block, value, BLOCK);
}

static void expect_filled(const char *block, char value) {
    for (int i = 0; i < BLOCK; i++) {
        EXPECT(block[i] == value);
    }
}

enum { N_KEPT = 64 };
static char *kept[N_KEPT];

static void *keeps(void *unused) {
    for (int i = 0; i < N_KEPT; i++) {
        kept[i] = filled(malloc(BLOCK), 'K');
    }
    return unused;
}

/* A thread exits with live blocks; a heap of the same size class is made and deleted; the pages are reused. */
static void abandoned_spans(void) {
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, keeps, NULL) == 0 && pthread_join(thread, NULL) == 0);
    freestone_heap_t *heap = freestone_heap_new();
    for (int i = 0; i < 1000; i++) {
        filled(freestone_heap_malloc(heap, BLOCK), 'H');
    }
    freestone_heap_delete(heap);
    for (int i = 0; i < 300; i++) {
        char *other = malloc(40000);
        EXPECT(other);
        memset(other, 'O', 40000);
    }
    for (int i = 0; i < N_KEPT; i++) {
        expect_filled(kept[i], 'K');
        free(kept[i]);
    }
}

enum { N_LIVE = 1500, N_FREED = 20 };

/* Blocks are freed by `free`, their heap is deleted, the next heap gets its record and its pages: no block may be handed out twice. */
static void freed_before_deletion(void) {
    static char *live[N_LIVE];
    free(HIDE(malloc(BLOCK)));
    for (int round = 0; round < 50; round++) {
        freestone_heap_t *heap = freestone_heap_new();
        char *freed[N_FREED];
        for (int i = 0; i < N_FREED; i++) {
            freed[i] = filled(freestone_heap_malloc(heap, BLOCK), 'F');
        }
        for (int i = 0; i < N_FREED; i++) {
            free(freed[i]);
        }
        freestone_heap_delete(heap);
        heap = freestone_heap_new();
        for (int i = 0; i < N_LIVE; i++) {
            if (i == 900) {
                /* New spans make threads hand over their remote frees. */
                for (int n = 0; n < 3000; n++) {
                    EXPECT(HIDE(malloc(200 + (size_t)(round * 16) % 800)));
                }
            }
            live[i] = freestone_heap_malloc(heap, BLOCK);
            EXPECT(live[i]);
            memset(live[i], 0, BLOCK);
            memcpy(live[i], &i, sizeof i);
        }
        for (int i = 0; i < N_LIVE; i++) {
            int number;
            memcpy(&number, live[i], sizeof number);
            EXPECT(number == i);
        }
        freestone_heap_delete(heap);
    }
}

enum { N_THREADS = 4, N_ROUNDS = 200, N_SHARED = 400 };
static char *shared[N_SHARED];
static freestone_heap_t *shared_heap;
static pthread_barrier_t barrier;

static void *frees_a_share(void *argument) {
    int share = (int)(intptr_t)argument;
    uint64_t state = (uint64_t)share + 1;
    char *own[50] = {0};
    for (int round = 0; round < N_ROUNDS; round++) {
        pthread_barrier_wait(&barrier);
        for (int i = share; i < N_SHARED; i += N_THREADS) {
            if (i % 3) {
                expect_filled(shared[i], 'S');
                free(shared[i]);
            }
            char **slot = &own[next_random(&state) % 50];
            if (*slot) {
                expect_filled(*slot, 'T');
            }
            free(*slot);
            *slot = filled(malloc(BLOCK), 'T');
        }
        pthread_barrier_wait(&barrier);
    }
    for (int i = 0; i < 50; i++) {
        free(own[i]);
    }
    return NULL;
}

/* All threads free blocks of one heap, which is deleted when they have; some of its blocks are never freed. */
static void freed_by_all(void) {
    pthread_t threads[N_THREADS];
    EXPECT(pthread_barrier_init(&barrier, NULL, N_THREADS + 1) == 0);
    for (int i = 0; i < N_THREADS; i++) {
        EXPECT(pthread_create(&threads[i], NULL, frees_a_share, (void *)(intptr_t)i) == 0);
    }
    for (int round = 0; round < N_ROUNDS; round++) {
        shared_heap = freestone_heap_new();
        for (int i = 0; i < N_SHARED; i++) {
            shared[i] = filled(freestone_heap_malloc(shared_heap, BLOCK), 'S');
        }
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        freestone_heap_delete(shared_heap);
    }
    for (int i = 0; i < N_THREADS; i++) {
        EXPECT(pthread_join(threads[i], NULL) == 0);
    }
    freestone_stats_t stats = {.size = sizeof stats};
    EXPECT(freestone_stats(&stats) == 0 && stats.live < 1 << 20);
}

/* A heap's limit holds however its blocks grow. */
static void limit_and_realloc(void) {
    enum { MIB = 1 << 20 };
    /* There is a long free run for the block to grow into. */
    free(HIDE(malloc(64 * MIB)));
    freestone_heap_t *heap = freestone_heap_new();
    EXPECT(freestone_heap_set_limit(heap, 2 * MIB) == 0);
    char *block = freestone_heap_malloc(heap, 100000);
    EXPECT(block);
    memset(block, 'R', 100000);
    size_t size = 100000;
    for (char *moved; size < 64 * MIB && (moved = freestone_heap_realloc(heap, block, size * 2)); size *= 2) {
        block = moved;
    }
    EXPECT(size >= 400000 && size <= 2 * MIB && errno == ENOMEM);
    expect_filled(block, 'R');
    /* Plain realloc belongs to no explicit heap: it moves the block out of this one, and does not count towards its limit. */
    block = realloc(block, 8 * MIB);
    EXPECT(block);
    expect_filled(block, 'R');
    char *all = freestone_heap_malloc(heap, MIB + MIB / 2);
    EXPECT(all);
    freestone_heap_delete(heap);
    expect_filled(block, 'R');
    free(block);
}

/* Spans are as long as the option `span_size` says where there is room for that, and all that a heap's limit allows is used. */
static void limit_and_long_spans(void) {
    enum { PAGE = 1 << 16 };
    for (size_t n_pages = 1; n_pages <= 5; n_pages++) {
        freestone_heap_t *heap = freestone_heap_new();
        EXPECT(heap && freestone_heap_set_limit(heap, n_pages * PAGE) == FREESTONE_OK);
        size_t n_blocks = 0;
        while (freestone_heap_malloc(heap, 1024)) n_blocks++;
        EXPECT(errno == ENOMEM && n_blocks == n_pages * PAGE / 1024);
        freestone_heap_delete(heap);
    }
}

static int n_calls;
static freestone_heap_t *evicts_from;
static char *evicted;

static void on_pressure(size_t in_use_bytes, void *unused) {
    (void)in_use_bytes;
    (void)unused;
    n_calls++;
    freestone_heap_free(evicts_from, evicted);
    evicted = NULL;
}

static freestone_stats_t stats(void) {
    freestone_stats_t stats = {.size = sizeof stats};
    EXPECT(freestone_stats(&stats) == 0);
    return stats;
}

/* At a heap's limit the program is asked for room, and what the rest of the process has stays as it is. */
static void limit_beside_others(void) {
    enum { MIB = 1 << 20 };
    EXPECT(freestone_option_set("decay_ms", "100000") == FREESTONE_OK);
    freestone_heap_t *heap = evicts_from = freestone_heap_new();
    EXPECT(freestone_heap_set_limit(heap, 2 * MIB) == 0);
    EXPECT(evicted = freestone_heap_malloc(heap, MIB));
    for (int i = 0; i < 20; i++) {
        char *block = malloc(100000);
        memset(HIDE(block), i, 100000);
        free(block);
    }
    uint64_t purged = stats().purged;
    EXPECT(!freestone_heap_malloc(heap, HIDE((size_t)MIB + MIB / 2)) && errno == ENOMEM);
    EXPECT(stats().purged == purged);
    freestone_on_pressure(on_pressure, NULL);
    EXPECT(freestone_heap_malloc(heap, MIB + MIB / 2) && n_calls == 1 && !evicted);
    EXPECT(!freestone_heap_malloc(heap, HIDE((size_t)MIB)) && n_calls == 2);
    freestone_on_pressure(NULL, NULL);
    freestone_heap_delete(heap);
}

static freestone_heap_t *hardened_heap(const char *level, freestone_error_t *error) {
    freestone_heap_shape_t shape = {.size = sizeof shape, .harden = level};
    return freestone_heap_new_with(&shape, error);
}

/* Blocks of a hardened heap are checked, whatever the level of the process, and those of another heap are as they were. */
static void hardened(void) {
    freestone_error_t error;
    errno = 0;
    EXPECT(!hardened_heap("very", &error) && errno == EINVAL && error.code == FREESTONE_NO_SUCH_LEVEL);
    for (int i = 0; i < 4; i++) {
        static const char *const levels[] = {"off", "default", "checks", "full"};
        freestone_heap_t *heap = hardened_heap(levels[i], NULL);
        EXPECT(heap);
        for (size_t size = 0; size < 300000; size = size * 2 + 7) {
            char *block = freestone_heap_malloc(heap, size);
            EXPECT(block && malloc_usable_size(block) >= size);
            memset(block, 1, size);
            free(HIDE(block));
        }
        freestone_heap_delete(heap);
    }
}

/* One byte behind a block of a hardened heap is written, and the block freed. */
static void overflow(void) {
    freestone_heap_t *heap = hardened_heap("checks", NULL);
    char *block = freestone_heap_malloc(heap, 20);
    HIDE(block)[20] ^= 0x5a;
    free(HIDE(block));
    EXPECT(!"an overflow that was reported");
}

/* A refused call returns NULL or a code, and the heap says the rest. */
static void refusals(void) {
    freestone_error_t error;
    freestone_heap_shape_t shape = {.size = sizeof shape, .limit = 1000};
    errno = 0;
    EXPECT(!freestone_heap_new_with(&shape, &error) && errno == EINVAL && error.code == FREESTONE_BAD_LIMIT && error.value == 1000);
    freestone_heap_shape_t none = {.size = 0};
    EXPECT(!freestone_heap_new_with(&none, &error) && error.code == FREESTONE_BAD_STRUCT && error.limit == sizeof none);
    shape.limit = 1 << 20;
    freestone_heap_t *heap = freestone_heap_new_with(&shape, NULL);
    EXPECT(heap && freestone_heap_last_error(heap).code == FREESTONE_OK);
    EXPECT(!freestone_heap_malloc(heap, HIDE((size_t)2 << 20)) && errno == ENOMEM);
    error = freestone_heap_last_error(heap);
    EXPECT(error.code == FREESTONE_NO_MEMORY && error.value == 2 << 20);
    EXPECT(!freestone_heap_aligned_alloc(heap, HIDE((size_t)24), 1) && errno == EINVAL);
    EXPECT(freestone_heap_last_error(heap).code == FREESTONE_BAD_ALIGNMENT && freestone_heap_last_error(heap).value == 24);
    EXPECT(!freestone_heap_calloc(heap, HIDE(SIZE_MAX), 2) && freestone_heap_last_error(heap).value == SIZE_MAX);
    char text[200];
    error = freestone_heap_last_error(heap);
    EXPECT(freestone_error_text(&error, text, sizeof text) == strlen(text) && strstr(text, "18446744073709551615 bytes"));
    char *block = freestone_heap_malloc(heap, 100);
    errno = 77;
    EXPECT(freestone_heap_set_limit(heap, 65536 - 1) == FREESTONE_BAD_LIMIT && errno == 77);
    EXPECT(freestone_heap_free(heap, block) == FREESTONE_OK && freestone_heap_free(heap, NULL) == FREESTONE_OK);
    freestone_heap_delete(heap);
}

/* Whose a block is, small or large; and what a block of a size has. */
static void owners(void) {
    freestone_heap_t *first = freestone_heap_new(), *second = freestone_heap_new(), *owner = first;
    char on_stack[64];
    EXPECT(freestone_owner(on_stack, &owner) == FREESTONE_FOREIGN && freestone_owner(NULL, &owner) == FREESTONE_FOREIGN);
    for (size_t size = 1; size < 300000; size = size * 2 + 7) {
        char *of_first = freestone_heap_malloc(first, size), *of_second = freestone_heap_malloc(second, size);
        char *of_none = malloc(size);
        EXPECT(freestone_owner(of_first, &owner) == FREESTONE_OK && owner == first);
        EXPECT(freestone_owner(of_second, &owner) == FREESTONE_OK && owner == second);
        EXPECT(freestone_owner(of_none, &owner) == FREESTONE_OK && owner == NULL);
        EXPECT(freestone_heap_usable_size(first, of_first) >= size && freestone_heap_usable_size(first, of_second) == 0);
        EXPECT(freestone_heap_free(first, of_second) == FREESTONE_FOREIGN && freestone_heap_free(first, of_none) == FREESTONE_FOREIGN);
        EXPECT(freestone_heap_last_error(first).address == of_none);
        EXPECT(freestone_heap_free(first, of_first) == FREESTONE_OK && freestone_heap_free(second, of_second) == FREESTONE_OK);
        EXPECT(freestone_good_size(size) >= size);
        uint64_t level = 0;
        EXPECT(freestone_option_get("harden", &level) == FREESTONE_OK);
        EXPECT(level >= 2 || freestone_good_size(size) == malloc_usable_size(of_none));
        free(of_none);
    }
    EXPECT(freestone_good_size(0) == malloc_usable_size(malloc(0)) || freestone_good_size(0) == 16);
    EXPECT(freestone_good_size(SIZE_MAX) == SIZE_MAX);
    freestone_heap_delete(first);
    freestone_heap_delete(second);
}

/* Blocks of the first of many heaps are told from others, and freed, millions of times: a search through the heaps would take minutes. */
static void many_heaps(void) {
    enum { N_HEAPS = 4000, N_TIMES = 5000000 };
    static freestone_heap_t *heaps[N_HEAPS];
    for (int i = 0; i < N_HEAPS; i++) {
        EXPECT(heaps[i] = freestone_heap_new());
    }
    char *large = freestone_heap_malloc(heaps[0], 100000);
    for (int i = 0; i < N_TIMES; i++) {
        char *block = freestone_heap_malloc(heaps[0], 100);
        EXPECT(freestone_heap_usable_size(heaps[0], large) >= 100000 && freestone_heap_usable_size(heaps[1], large) == 0);
        EXPECT(freestone_heap_free(heaps[0], block) == FREESTONE_OK);
    }
    EXPECT(freestone_heap_free(heaps[0], large) == FREESTONE_OK);
    for (int i = 0; i < N_HEAPS; i++) {
        freestone_heap_delete(heaps[i]);
    }
}

int main(int argc, char **argv) {
    alarm(60);
    const char *part = argc > 1 ? argv[1] : "";
    if (strcmp(part, "abandoned_spans") == 0) abandoned_spans();
    else if (strcmp(part, "freed_before_deletion") == 0) freed_before_deletion();
    else if (strcmp(part, "freed_by_all") == 0) freed_by_all();
    else if (strcmp(part, "limit_and_realloc") == 0) limit_and_realloc();
    else if (strcmp(part, "limit_and_long_spans") == 0) limit_and_long_spans();
    else if (strcmp(part, "limit_beside_others") == 0) limit_beside_others();
    else if (strcmp(part, "hardened") == 0) hardened();
    else if (strcmp(part, "overflow") == 0) overflow();
    else if (strcmp(part, "refusals") == 0) refusals();
    else if (strcmp(part, "owners") == 0) owners();
    else if (strcmp(part, "many_heaps") == 0) many_heaps();
    else EXPECT(!"a part of this program");
    return 0;
}
