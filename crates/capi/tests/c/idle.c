/* Blocks of a thread that is idle, freed by others: their memory goes back, and what is in use beside them stays. By argument. */
#define _GNU_SOURCE
#include "clock.h"
#include "expect.h"
#include "freestone.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

#define N_BLOCKS 200000

static struct {
    unsigned char *start;
    unsigned bytes;
    unsigned char mark;
} blocks[N_BLOCKS];

static void allocate_all(uint64_t *random, unsigned most) {
    for (int i = 0; i < N_BLOCKS; i++) {
        blocks[i].bytes = 1 + (unsigned)(next_random(random) % most);
        blocks[i].mark = (unsigned char)(1 + i % 255);
        EXPECT(blocks[i].start = malloc(blocks[i].bytes));
        memset(blocks[i].start, blocks[i].mark, blocks[i].bytes);
    }
}

static void check(int i) {
    for (unsigned at = 0; at < blocks[i].bytes; at++) {
        EXPECT(blocks[i].start[at] == blocks[i].mark);
    }
}

static pthread_barrier_t freed;

/* Of every 64 blocks one stays. */
static void *free_half(void *half) {
    free(HIDE(malloc(10)));
    for (int i = (int)(intptr_t)half; i < N_BLOCKS; i += 2) {
        if (i % 64 != 0) {
            check(i);
            free(blocks[i].start);
        }
    }
    pthread_barrier_wait(&freed);
    pthread_barrier_wait(&freed);
    return NULL;
}

static void pause_ms(long ms) {
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void *purge(void *unused) {
    freestone_purge();
    return unused;
}

/* The first thread allocates, two that stay free, and the first then waits. The memory goes back because another thread `purges`, or in the background. */
static void waits(int purges) {
    uint64_t random = 12345;
    allocate_all(&random, 1000);
    long before = resident_kib();
    pthread_t threads[2], purger;
    EXPECT(pthread_barrier_init(&freed, NULL, 3) == 0);
    for (intptr_t i = 0; i < 2; i++) {
        EXPECT(pthread_create(&threads[i], NULL, free_half, (void *)i) == 0);
    }
    pthread_barrier_wait(&freed);
    if (purges) {
        EXPECT(pthread_create(&purger, NULL, purge, NULL) == 0 && pthread_join(purger, NULL) == 0);
    }
    /* A loaded machine may be slow. */
    for (int i = 0; !purges && i < 2400 && resident_kib() > before / 2; i++) {
        pause_ms(50);
    }
    EXPECT(resident_kib() <= before / 2);
    for (int i = 0; i < N_BLOCKS; i += 64) {
        check(i);
        free(blocks[i].start);
    }
    allocate_all(&random, 1000);
    for (int i = 0; i < N_BLOCKS; i++) {
        check(i);
        free(blocks[i].start);
    }
    pthread_barrier_wait(&freed);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* Frees blocks of the first thread, looks through them, and then frees one more before each allocation that fails. */
static void *fail_one_after_another(void *unused) {
    for (int i = 0; i < N_BLOCKS; i++) {
        if (i % 64 != 0) {
            free(blocks[i].start);
        }
    }
    double began = now_us();
    freestone_purge();
    double one_look = now_us() - began;
    began = now_us();
    for (int i = 0; i < 200; i++) {
        free(blocks[i * 64].start);
        EXPECT(!malloc((size_t)1 << 46));
    }
    EXPECT(now_us() - began < 20 * one_look);
    return unused;
}

static void fails(void) {
    uint64_t random = 12345;
    allocate_all(&random, 1000);
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, fail_one_after_another, NULL) == 0);
    EXPECT(pthread_join(thread, NULL) == 0);
}

/* A block of its thread's on its way to another: each thread fills the places of its own and empties those of the others. */
static _Atomic(unsigned char *) places[4][4096];
static atomic_int is_over;

/* The size is in the first words, the mark everywhere else. */
static unsigned char *make(uint64_t *random) {
    static const unsigned sizes[] = {16, 40, 100, 500, 1024, 4096, 9000, 20000};
    unsigned bytes = sizes[next_random(random) % 8];
    unsigned char *block = malloc(bytes);
    EXPECT(block);
    memset(block, (int)(bytes & 0x7F) + 1, bytes);
    memcpy(block, &bytes, sizeof bytes);
    return block;
}

static void use_up(unsigned char *block) {
    unsigned bytes;
    memcpy(&bytes, block, sizeof bytes);
    for (unsigned at = sizeof bytes; at < bytes; at++) {
        EXPECT(block[at] == (bytes & 0x7F) + 1);
    }
    free(block);
}

static void *exchange(void *number) {
    uint64_t random = 99 + (uint64_t)(uintptr_t)number;
    int own = (int)((intptr_t)number & 3);
    int n_steps = 200 + (int)(next_random(&random) % 400);
    for (int step = 0; step < n_steps && !atomic_load(&is_over); step++) {
        unsigned what = (unsigned)(next_random(&random) % 8);
        int from = (int)(next_random(&random) % 4096), n = 1 + (int)(next_random(&random) % 1000);
        for (int at = from; what > 0 && at < from + n && at < 4096; at++) {
            if (what < 4) {
                unsigned char *before = atomic_exchange(&places[own][at], make(&random));
                if (before) {
                    use_up(before);
                }
            } else {
                unsigned char *block = atomic_exchange(&places[next_random(&random) % 4][at], NULL);
                if (block) {
                    use_up(block);
                }
            }
        }
        if (what == 0) {
            pause_ms((long)(next_random(&random) % 8));
        }
    }
    return NULL;
}

static void *purge_all_the_time(void *unused) {
    while (!atomic_load(&is_over)) {
        freestone_purge();
        pause_ms(1);
    }
    return unused;
}

/* Threads that free each other's blocks are idle for a while and end, others follow them, the memory of what waits goes back all the time, and the process
   forks. */
static void storm(int seconds) {
    time_t end = time(NULL) + seconds;
    pthread_t purger, threads[4];
    EXPECT(pthread_create(&purger, NULL, purge_all_the_time, NULL) == 0);
    intptr_t number = 0;
    for (int i = 0; i < 4; i++, number++) {
        EXPECT(pthread_create(&threads[i], NULL, exchange, (void *)number) == 0);
    }
    uint64_t random = 7;
    for (int n = 0; time(NULL) < end; n++) {
        EXPECT(pthread_join(threads[n % 4], NULL) == 0);
        EXPECT(pthread_create(&threads[n % 4], NULL, exchange, (void *)number++) == 0);
        pid_t child = fork();
        EXPECT(child >= 0);
        if (child == 0) {
            /* Threads were between the exchange and the free: those blocks stay as they are. */
            for (int of = 0; of < 4; of++) {
                for (int at = 0; at < 4096; at++) {
                    unsigned char *block = atomic_exchange(&places[of][at], NULL);
                    if (block) {
                        use_up(block);
                    }
                    if (at % 8 == 0) {
                        use_up(make(&random));
                    }
                }
            }
            freestone_purge();
            _exit(0);
        }
        int status;
        EXPECT(waitpid(child, &status, 0) == child && status == 0);
    }
    atomic_store(&is_over, 1);
    for (int i = 0; i < 4; i++) {
        EXPECT(pthread_join(threads[i], NULL) == 0);
    }
    EXPECT(pthread_join(purger, NULL) == 0);
    for (int of = 0; of < 4; of++) {
        for (int at = 0; at < 4096; at++) {
            unsigned char *block = atomic_exchange(&places[of][at], NULL);
            if (block) {
                use_up(block);
            }
        }
    }
}

enum { N_OF_HEAP = 500000, BYTES_OF_HEAP = 128 };

static void *of_heap[N_OF_HEAP];
static freestone_heap_t *heap;

/* An explicit heap that nobody allocates from any more. Its blocks are freed by its own function, or by `free`: then their memory goes back
 * because of a purge, or in the background. */
static void explicit_heap(int by_its_function, int purges) {
    EXPECT(heap = freestone_heap_new());
    for (int i = 0; i < N_OF_HEAP; i++) {
        EXPECT(of_heap[i] = freestone_heap_malloc(heap, BYTES_OF_HEAP));
        memset(of_heap[i], 1, BYTES_OF_HEAP);
    }
    long before = resident_kib();
    EXPECT(before > N_OF_HEAP / 1024L * BYTES_OF_HEAP);
    if (by_its_function) {
        for (int i = 0; i < N_OF_HEAP; i++) {
            EXPECT(freestone_heap_free(heap, of_heap[i]) == FREESTONE_OK);
        }
    } else {
        /* The background thread has nothing to do any more, and must be woken. */
        pause_ms(purges ? 0 : 1000);
        for (int i = 0; i < N_OF_HEAP; i++) {
            free(of_heap[i]);
        }
    }
    if (purges) {
        freestone_purge();
    }
    for (int i = 0; !by_its_function && !purges && i < 2400 && resident_kib() > before / 2; i++) {
        pause_ms(50);
    }
    EXPECT(resident_kib() <= before * 3 / 4);
    freestone_heap_delete(heap);
}

int main(int argc, char **argv) {
    EXPECT(argc > 1);
    if (!strcmp(argv[1], "background")) {
        waits(0);
    } else if (!strcmp(argv[1], "purge")) {
        waits(1);
    } else if (!strcmp(argv[1], "heap_background")) {
        explicit_heap(0, 0);
    } else if (!strcmp(argv[1], "heap_purge")) {
        explicit_heap(0, 1);
    } else if (!strcmp(argv[1], "heap_free")) {
        explicit_heap(1, 0);
    } else if (!strcmp(argv[1], "fails")) {
        fails();
    } else if (!strcmp(argv[1], "storm")) {
        storm(argc > 2 ? atoi(argv[2]) : 3);
    } else {
        EXPECT(!"a known part");
    }
    return 0;
}
