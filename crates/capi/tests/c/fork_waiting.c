/* A forked child, and the blocks of a thread that does not exist there: a fork touches none of those that were free and waited for the thread, the child frees
 * and allocates the others, and a second free of one is reported. */
#define _GNU_SOURCE
#include "expect.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 64, N = (64 << 20) / BYTES, KEPT = 20000 };

static unsigned char *blocks[N];
static pthread_barrier_t barrier;

static void *allocates(void *unused) {
    for (int i = 0; i < N; i++) {
        EXPECT(blocks[i] = malloc(BYTES));
        memset(blocks[i], 1, BYTES);
    }
    pthread_barrier_wait(&barrier);
    pause();
    return unused;
}

static long faults(void) {
    struct rusage usage;
    EXPECT(getrusage(RUSAGE_SELF, &usage) == 0);
    return usage.ru_minflt;
}

static int by_address(const void *a, const void *b) {
    uintptr_t x = *(uintptr_t *)a, y = *(uintptr_t *)b;
    return (x > y) - (x < y);
}

/* Allocates blocks, writes each, and counts how many of them are among the first KEPT of `blocks`. None may be there twice. */
static int n_reused(void) {
    static unsigned char *again[2 * KEPT];
    for (int i = 0; i < 2 * KEPT; i++) {
        EXPECT(again[i] = malloc(BYTES));
        memset(again[i], 2, BYTES);
    }
    qsort(again, 2 * KEPT, sizeof *again, by_address);
    int n = 0;
    for (int i = 0; i < 2 * KEPT; i++) {
        EXPECT(i == 0 || again[i] != again[i - 1]);
        n += bsearch(&again[i], blocks, KEPT, sizeof *blocks, by_address) != NULL;
    }
    return n;
}

/* Runs `body` in a child; returns its status. */
static int in_child(void (*body)(void)) {
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        alarm(60);
        body();
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child);
    return status;
}

static void frees_and_allocates(void) {
    /* 64 MiB waited at the fork: 16384 pages of 4 KiB. */
    EXPECT(faults() < 2000);
    for (int i = 0; i < KEPT; i++) {
        EXPECT(blocks[i][BYTES - 1] == 1);
        free(blocks[i]);
    }
    qsort(blocks, KEPT, sizeof *blocks, by_address);
    EXPECT(n_reused() > KEPT / 2);
}

static void frees_twice(void) {
    EXPECT(freopen("/dev/null", "w", stderr));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 640; i++) {
            free(blocks[i]);
        }
    }
    n_reused();
}

int main(void) {
    alarm(100);
    pthread_t thread;
    EXPECT(pthread_barrier_init(&barrier, NULL, 2) == 0);
    EXPECT(pthread_create(&thread, NULL, allocates, NULL) == 0);
    pthread_barrier_wait(&barrier);
    for (int i = KEPT; i < N; i++) {
        free(blocks[i]);
    }
    int status = in_child(frees_and_allocates);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    status = in_child(frees_twice);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    return 0;
}
