/* Threads that start and exit, forks, first calls from anywhere, limits: by argument. Every part must end; an alarm enforces that. */
#define _GNU_SOURCE
#include "expect.h"
#include "freestone.h"
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

static void *volatile sink;

/* Every entry point, by number; 0 when there are no more. */
static int call_entry(int number) {
    void *block = NULL;
    switch (number) {
    case 0: block = malloc(10); break;
    case 1: block = calloc(3, 5); break;
    case 2: block = realloc(NULL, 20); break;
    case 3: block = aligned_alloc(64, 64); break;
    case 4: EXPECT(posix_memalign(&block, 32, 40) == 0); break;
    case 5: block = memalign(128, 7); break;
    case 6: block = valloc(5); break;
    case 7: free(NULL); return 1;
    case 8: EXPECT(malloc_usable_size(NULL) == 0); return 1;
    case 9: {
        freestone_heap_t *heap = freestone_heap_new();
        EXPECT(heap && freestone_heap_malloc(heap, 9));
        freestone_heap_delete(heap);
        return 1;
    }
    case 10: {
        freestone_stats_t stats = {.size = sizeof stats};
        EXPECT(freestone_stats(&stats) == 0);
        return 1;
    }
    case 11: freestone_purge(); return 1;
    case 12: EXPECT(freestone_option_set("decay_ms", "500") == 0); return 1;
    case 13: block = malloc(1 << 20); break;
    default: return 0;
    }
    EXPECT(block);
    memset(block, 1, 5);
    free(block);
    return 1;
}

static int entry;
static int in_constructor = -1;

__attribute__((constructor)) static void before_main(void) {
    const char *number = getenv("FIRST_IN_CONSTRUCTOR");
    if (number) {
        in_constructor = call_entry(atoi(number));
    }
}

static void at_end(void) {
    call_entry(entry);
}

static void in_destructor(void *value) {
    call_entry((int)(intptr_t)value - 1);
}

static pthread_key_t keys[64];

static void *only_destructor(void *number) {
    pthread_setspecific(keys[40], number);
    return NULL;
}

static void *calls(void *number) {
    EXPECT(call_entry((int)(intptr_t)number));
    return NULL;
}

static void run_thread(void *(*body)(void *), void *argument) {
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, body, argument) == 0);
    EXPECT(pthread_join(thread, NULL) == 0);
}

/* Each entry point in turn is the first call of a process, a thread, an exiting thread, and a child. */
static void first_calls(const char *place) {
    int is_known = 1;
    for (entry = 0; is_known; entry++) {
        pid_t child = fork();
        EXPECT(child >= 0);
        if (child == 0) {
            if (!strcmp(place, "main")) {
                is_known = call_entry(entry);
            } else if (!strcmp(place, "thread")) {
                run_thread(calls, (void *)(intptr_t)(entry % 14));
            } else if (!strcmp(place, "destructor")) {
                for (int i = 0; i < 64; i++) {
                    EXPECT(pthread_key_create(&keys[i], in_destructor) == 0);
                }
                run_thread(only_destructor, (void *)(intptr_t)(entry % 14 + 1));
            } else if (!strcmp(place, "atexit")) {
                EXPECT(atexit(at_end) == 0);
                exit(entry < 14 ? 0 : 7);
            }
            _exit(is_known && entry < 14 ? 0 : 7);
        }
        int status;
        EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status));
        is_known = WEXITSTATUS(status) == 0;
        EXPECT(is_known || WEXITSTATUS(status) == 7);
    }
    EXPECT(entry == 15);
}

static volatile int stop;

static void *churn(void *seed) {
    uint64_t state = (uint64_t)(uintptr_t)seed * 7919 + 1;
    void *blocks[200] = {0};
    while (!stop) {
        unsigned at = next_random(&state) % 200;
        free(blocks[at]);
        size_t size = next_random(&state) % (next_random(&state) % 64 ? 2000 : 200000);
        blocks[at] = malloc(size);
        EXPECT(blocks[at]);
    }
    for (int i = 0; i < 200; i++) {
        free(blocks[i]);
    }
    return NULL;
}

static void *volatile shared_blocks[4][64];

static void *forks(void *number) {
    for (int round = 0; round < 40; round++) {
        void *own = malloc(100);
        pid_t child = fork();
        EXPECT(child >= 0);
        if (child == 0) {
            alarm(20);
            /* Blocks of this thread, of threads that do not exist in the child, and new ones. */
            free(own);
            for (int i = 0; i < 64; i++) {
                free(shared_blocks[(intptr_t)number][i]);
                EXPECT(sink = malloc(i * 300 + 1));
                free(sink);
                EXPECT(sink = malloc(i * 3000 + 1));
                free(sink);
            }
            pthread_t thread;
            EXPECT(pthread_create(&thread, NULL, calls, NULL) == 0 && pthread_join(thread, NULL) == 0);
            _exit(0);
        }
        int status;
        EXPECT(waitpid(child, &status, 0) == child);
        EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        free(own);
    }
    return NULL;
}

static void *fills(void *number) {
    for (int i = 0; i < 64; i++) {
        shared_blocks[(intptr_t)number][i] = malloc(i * 50 + 1);
    }
    return NULL;
}

static void fork_storm(void) {
    pthread_t churners[2], forkers[4];
    for (intptr_t i = 0; i < 4; i++) {
        run_thread(fills, (void *)i);
    }
    for (intptr_t i = 0; i < 2; i++) {
        EXPECT(pthread_create(&churners[i], NULL, churn, (void *)i) == 0);
    }
    for (intptr_t i = 0; i < 4; i++) {
        EXPECT(pthread_create(&forkers[i], NULL, forks, (void *)i) == 0);
    }
    for (int i = 0; i < 4; i++) {
        EXPECT(pthread_join(forkers[i], NULL) == 0);
    }
    stop = 1;
    for (int i = 0; i < 2; i++) {
        EXPECT(pthread_join(churners[i], NULL) == 0);
    }
}

static void *leaves_a_block(void *slot) {
    *(void **)slot = malloc(16 + (uintptr_t)slot / 8 % 1000);
    memset(*(void **)slot, 1, 16);
    void *other = malloc(5000);
    EXPECT(other);
    free(other);
    return NULL;
}

/* Threads that each leave a live block behind: once those are freed, and two decay times are over, nothing is left of them. */
static void threads_leave_blocks(long n) {
    void **kept = calloc((size_t)n, sizeof *kept);
    memset(kept, 0, (size_t)n * sizeof *kept);
    for (int i = 0; i < 64; i++) {
        run_thread(leaves_a_block, &kept[0]);
        free(kept[0]);
    }
    long start = resident_kib();
    for (long i = 0; i < n; i++) {
        run_thread(leaves_a_block, &kept[i]);
    }
    for (long i = 0; i < n; i++) {
        EXPECT(*(char *)kept[i] == 1);
        free(kept[i]);
    }
    /* Expired memory is purged when the program makes calls: one decay time for the thread's caches, one for their contents. */
    for (int i = 0; i < 2; i++) {
        usleep(1200 * 1000);
        free(HIDE((char *)malloc(40000)));
    }
    EXPECT(resident_kib() - start <= 1024);
}

/* As many mappings as the kernel allows: further allocations are refused, and live blocks keep their contents. */
static void many_mappings(void) {
    char *large[8];
    for (int i = 0; i < 8; i++) {
        EXPECT(large[i] = malloc(4 << 20));
        memset(large[i], i, 4 << 20);
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *area = mmap(0, 70000 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT(area != MAP_FAILED);
    for (long i = 0; i < 70000; i += 2) {
        if (mprotect(area + i * page, page, PROT_READ) != 0) {
            break;
        }
    }
    for (int i = 0; i < 8; i++) {
        EXPECT(large[i][(4 << 20) - 1] == i);
        free(large[i]);
    }
    freestone_purge();
    for (int i = 0; i < 1000; i++) {
        char *block = calloc(1, (size_t)i * 100 + 1);
        EXPECT(!block || block[i * 50] == 0);
        free(block);
    }
}

/* Locked pages cannot be purged: calloc is zero all the same. */
static void locked(void) {
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        return;
    }
    for (int round = 0; round < 3; round++) {
        char *block = malloc(3 << 20);
        EXPECT(block);
        memset(block, 0xA5, 3 << 20);
        free(block);
        freestone_purge();
        block = calloc(1, 3 << 20);
        EXPECT(block);
        for (int i = 0; i < 3 << 20; i++) {
            EXPECT(block[i] == 0);
        }
        free(block);
    }
}

static void ordinary(void) {
    void *blocks[1000];
    for (int i = 0; i < 1000; i++) {
        EXPECT(blocks[i] = malloc((size_t)i * 20 + 1));
        memset(blocks[i], i, (size_t)i * 20 + 1);
    }
    for (int i = 0; i < 1000; i++) {
        EXPECT(((unsigned char *)blocks[i])[i * 20] == (unsigned char)i);
        free(blocks[i]);
    }
}

int main(int argc, char **argv) {
    EXPECT(argc > 1);
    alarm(100);
    const char *part = argv[1];
    if (!strcmp(part, "first")) {
        first_calls(argv[2]);
    } else if (!strcmp(part, "constructor")) {
        EXPECT(in_constructor == 1);
        ordinary();
    } else if (!strcmp(part, "fork_storm")) {
        fork_storm();
    } else if (!strcmp(part, "threads")) {
        threads_leave_blocks(atol(argv[2]));
    } else if (!strcmp(part, "mappings")) {
        many_mappings();
    } else if (!strcmp(part, "locked")) {
        locked();
    } else {
        ordinary();
    }
    return 0;
}
