/* Blocks that change threads, with the counts of the operations for that; statistics while threads run. */
#include "expect.h"
#include "freestone.h"
#include <pthread.h>

enum { ROUNDS = 300, BATCH = 1000 };

static void *batches[2][BATCH];
static pthread_barrier_t barrier;

static void *consumes(void *unused) {
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < BATCH; i++) {
            EXPECT(*(int *)batches[round % 2][i] == round * BATCH + i);
            free(batches[round % 2][i]);
        }
    }
    return unused;
}

/* One thread allocates, another frees: at most one atomic operation for 16 blocks. */
static void producer_consumer(void) {
    pthread_t consumer;
    EXPECT(pthread_barrier_init(&barrier, NULL, 2) == 0);
    EXPECT(pthread_create(&consumer, NULL, consumes, NULL) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < BATCH; i++) {
            int *block = malloc(16 + (size_t)(i % 20) * 16);
            EXPECT(block);
            *block = round * BATCH + i;
            batches[round % 2][i] = block;
        }
        pthread_barrier_wait(&barrier);
    }
    EXPECT(pthread_join(consumer, NULL) == 0);
    freestone_stats_t stats = {.size = sizeof stats};
    EXPECT(freestone_stats(&stats) == 0);
    EXPECT(stats.n_remote_frees >= (uint64_t)(ROUNDS - 1) * BATCH);
    EXPECT(stats.n_handovers * 16 <= stats.n_remote_frees);
}

enum { SLOTS = 2000 };
static void *slots[SLOTS];

static void *passes(void *seed) {
    uint64_t state = (uint64_t)(uintptr_t)seed * 31 + 7;
    for (int i = 0; i < 100000; i++) {
        size_t size = 16 + next_random(&state) % 1000;
        unsigned char *block = malloc(size);
        EXPECT(block);
        memset(block, (int)(size & 0xFF), size);
        *(size_t *)block = size;
        unsigned char *old = __atomic_exchange_n(&slots[next_random(&state) % SLOTS], block, __ATOMIC_ACQ_REL);
        if (old) {
            size_t old_size = *(size_t *)old;
            for (size_t at = sizeof old_size; at < old_size; at += 37) {
                EXPECT(old[at] == (old_size & 0xFF));
            }
            free(old);
        }
    }
    return NULL;
}

static void adds_up(void) {
    freestone_stats_t stats = {.size = sizeof stats};
    EXPECT(freestone_stats(&stats) == 0);
    EXPECT(stats.committed == stats.live + stats.cached + stats.fragmented + stats.dirty + stats.metadata);
    EXPECT((int64_t)stats.live >= 0 && (int64_t)stats.cached >= 0 && (int64_t)stats.fragmented >= 0);
    EXPECT(stats.live < (uint64_t)1 << 40 && stats.committed < (uint64_t)1 << 40);
}

/* Threads free the blocks of earlier threads, generation after generation; statistics add up at every moment. */
static void generations(void) {
    for (int generation = 0; generation < 5; generation++) {
        pthread_t threads[4];
        for (intptr_t i = 0; i < 4; i++) {
            EXPECT(pthread_create(&threads[i], NULL, passes, (void *)(generation * 4 + i)) == 0);
        }
        for (int i = 0; i < 200; i++) {
            adds_up();
        }
        for (int i = 0; i < 4; i++) {
            EXPECT(pthread_join(threads[i], NULL) == 0);
        }
    }
    for (int i = 0; i < SLOTS; i++) {
        free(slots[i]);
    }
    adds_up();
}

int main(int argc, char **argv) {
    EXPECT(argc > 1);
    alarm(100);
    if (!strcmp(argv[1], "producer_consumer")) {
        producer_consumer();
    } else {
        generations();
    }
    return 0;
}
