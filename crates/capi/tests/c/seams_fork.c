/* Processes made while threads work: fork beside stdio, vfork, posix_spawn, memory that children do not inherit. Arguments: a part, and a number. */
#define _GNU_SOURCE
#include "expect.h"
#include "freestone.h"
#include <malloc.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

extern char **environ;

static volatile int stop;

/* Allocates and frees small and large blocks in a table of the thread. */
static void *churn(void *seed) {
    uint64_t state = (uint64_t)(uintptr_t)seed * 7919 + 1;
    unsigned char *blocks[100] = {0};
    while (!stop) {
        unsigned at = next_random(&state) % 100;
        EXPECT(!blocks[at] || *blocks[at] == at);
        free(blocks[at]);
        EXPECT(blocks[at] = malloc(next_random(&state) % (next_random(&state) % 64 ? 2000 : 200000) + 1));
        *blocks[at] = (unsigned char)at;
    }
    for (int i = 0; i < 100; i++) {
        free(blocks[i]);
    }
    return NULL;
}

/* Reads and writes through stdio: a line that grows, from 1 byte to some hundred thousand, so that the C library allocates while it
 * holds the stream's lock. The streams are in memory, because the offset of a file is shared with the children. */
static void *uses_stdio(void *unused) {
    enum { BYTES = 300000 };
    while (!stop) {
        char *line = NULL, *text = NULL;
        size_t size = 0, text_size = 0;
        FILE *file = open_memstream(&text, &text_size);
        EXPECT(file);
        for (int i = 0; i < BYTES; i += 1000) {
            EXPECT(fprintf(file, "%01000d", 7) == 1000);
        }
        EXPECT(fclose(file) == 0 && text_size == BYTES && (file = fmemopen(text, text_size, "r")));
        EXPECT(getdelim(&line, &size, '\n', file) == BYTES);
        EXPECT(fclose(file) == 0);
        free(text);
        free(line);
    }
    return unused;
}

/* Takes the lock of the list of streams, and then each stream's: the locks that a fork takes, in the other order. */
static void *flushes_all(void *unused) {
    while (!stop) {
        fflush(NULL);
    }
    return unused;
}

static int n_forks, n_threads = 16;

/* A child allocates, opens, prints and closes: no lock may be held by a thread that does not exist in it. */
static void child_of_fork(void *block) {
    alarm(60);
    EXPECT(*(char *)block == 1);
    free(block);
    for (int i = 0; i < 50; i++) {
        free(HIDE((char *)malloc((size_t)i * 200 + 1)));
    }
    FILE *file = fopen("/dev/null", "w");
    EXPECT(file && fprintf(file, "%0300d\n", 1) > 300);
    fclose(file);
    _exit(0);
}

static void *forks(void *unused) {
    for (int i = 0; i < n_forks; i++) {
        char *block = malloc(300);
        EXPECT(block);
        memset(block, 1, 300);
        pid_t child = fork();
        EXPECT(child >= 0);
        if (child == 0) {
            child_of_fork(block);
        }
        int status;
        EXPECT(waitpid(child, &status, 0) == child && status == 0);
        free(block);
    }
    return unused;
}

static void *spawns(void *unused) {
    char *arguments[] = {"true", NULL};
    for (int i = 0; i < n_forks; i++) {
        char *block = malloc(3000);
        EXPECT(block);
        memset(block, 1, 3000);
        posix_spawn_file_actions_t actions;
        EXPECT(posix_spawn_file_actions_init(&actions) == 0);
        EXPECT(posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", 1, 0) == 0);
        pid_t child;
        int status;
        EXPECT(posix_spawnp(&child, "true", &actions, NULL, arguments, environ) == 0);
        EXPECT(waitpid(child, &status, 0) == child && status == 0);
        EXPECT(posix_spawn_file_actions_destroy(&actions) == 0 && block[2999] == 1);
        free(block);
    }
    return unused;
}

/* A child of vfork runs on this thread's stack and in this heap until it ends. POSIX allows it nothing else, yet there are programs that
 * free a block there, and no lock may stay held. */
static void *vforks(void *unused) {
    for (volatile int i = 0; i < n_forks; i++) {
        char *volatile block = malloc(3000);
        EXPECT(block);
        memset(block, 1, 3000);
        pid_t child = vfork();
        EXPECT(child >= 0);
        if (child == 0) {
            if (i % 2) {
                free(block);
                block = NULL;
            }
            _exit(i % 100);
        }
        int status;
        EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == i % 100);
        EXPECT((block == NULL) == i % 2);
        free(block);
    }
    return unused;
}

/* `n_threads` threads run a body while others allocate and use stdio. */
static void storm(void *(*body)(void *)) {
    enum { MOST = 64, BESIDE = 4 };
    void *(*const others[BESIDE])(void *) = {uses_stdio, flushes_all, churn, churn};
    pthread_t threads[MOST], beside[BESIDE];
    for (intptr_t i = 0; i < BESIDE; i++) {
        EXPECT(pthread_create(&beside[i], NULL, others[i], (void *)i) == 0);
    }
    for (int i = 0; i < n_threads; i++) {
        EXPECT(pthread_create(&threads[i], NULL, body, NULL) == 0);
    }
    for (int i = 0; i < n_threads; i++) {
        EXPECT(pthread_join(threads[i], NULL) == 0);
    }
    stop = 1;
    for (int i = 0; i < BESIDE; i++) {
        EXPECT(pthread_join(beside[i], NULL) == 0);
    }
    printf("%d in all\n", n_threads * n_forks);
}

/* Blocks whose pages children do not inherit (as for memory that a device writes): the child runs without them, the parent keeps them, and
 * after MADV_DOFORK and `free` their memory is like any other, for children too. */
static void not_for_children(void) {
    enum { BYTES = 6 << 20, N = 4 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *blocks[N], *small = malloc(100);
    memset(small, 5, 100);
    for (int i = 0; i < N; i++) {
        EXPECT(blocks[i] = aligned_alloc(page, BYTES));
        memset(blocks[i], i + 1, BYTES);
        EXPECT(madvise(blocks[i], BYTES, MADV_DONTFORK) == 0);
    }
    for (int round = 0; round < 3; round++) {
        pid_t child = fork();
        EXPECT(child >= 0);
        if (child == 0) {
            alarm(30);
            EXPECT(small[99] == 5);
            free(small);
            for (int i = 0; i < 2000; i++) {
                char *block = malloc((size_t)i * 17 + 1);
                EXPECT(block);
                memset(block, 1, (size_t)i * 17 + 1);
                free(block);
            }
            char *large = calloc(1, 2 * BYTES);
            EXPECT(large && large[BYTES] == 0);
            memset(large, 1, 2 * BYTES);
            free(large);
            freestone_purge();
            _exit(0);
        }
        int status;
        EXPECT(waitpid(child, &status, 0) == child && status == 0);
        for (int i = 0; i < N; i++) {
            EXPECT(blocks[i][0] == i + 1 && blocks[i][BYTES - 1] == i + 1);
        }
    }
    for (int i = 0; i < N; i++) {
        EXPECT(madvise(blocks[i], BYTES, MADV_DOFORK) == 0);
        free(blocks[i]);
    }
    char *again[N];
    for (int i = 0; i < N; i++) {
        EXPECT(again[i] = malloc(BYTES));
        memset(again[i], i, BYTES);
    }
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        for (int i = 0; i < N; i++) {
            EXPECT(again[i][BYTES / 2] == i);
            free(again[i]);
        }
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

static void *leaves_a_block(void *slot) {
    char *block = malloc(48), *other = malloc(3000);
    EXPECT(block && other);
    memset(block, 1, 48);
    free(other);
    *(void **)slot = block;
    return NULL;
}

/* Many threads, some at a time, each of which ends while its block is live. */
static void threads_that_die(int n) {
    enum { AT_ONCE = 50 };
    void **blocks = calloc((size_t)n, sizeof *blocks);
    EXPECT(blocks);
    memset(blocks, 0, (size_t)n * sizeof *blocks);
    pthread_t threads[AT_ONCE];
    for (int i = 0; i < n; i += AT_ONCE) {
        int some = n - i < AT_ONCE ? n - i : AT_ONCE;
        for (int j = 0; j < some; j++) {
            EXPECT(pthread_create(&threads[j], NULL, leaves_a_block, &blocks[i + j]) == 0);
        }
        for (int j = 0; j < some; j++) {
            EXPECT(pthread_join(threads[j], NULL) == 0);
        }
    }
    freestone_stats_t stats = {.size = sizeof stats};
    EXPECT(freestone_stats(&stats) == 0);
    /* Blocks of 48 bytes and this table, not a span for each thread that exited. */
    size_t live = (size_t)n * (48 + sizeof *blocks), most = live + live / 4 + (8 << 20);
    if (stats.committed > most) {
        fprintf(stderr, "%zu KiB committed for %zu KiB of blocks of %d dead threads\n", (size_t)stats.committed >> 10, live >> 10, n);
        exit(1);
    }
    for (int i = 0; i < n; i++) {
        EXPECT(*(char *)blocks[i] == 1);
        free(blocks[i]);
    }
    free(blocks);
    freestone_purge();
    EXPECT(freestone_stats(&stats) == 0);
    printf("%d threads, %zu KiB committed at the end\n", n, (size_t)stats.committed >> 10);
    EXPECT(stats.committed < (size_t)8 << 20);
}

static void *forks_for_ever(void *unused) {
    for (;;) {
        pid_t child = fork();
        if (child == 0) {
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    return unused;
}

/* Processes end while other threads of theirs are within `fork`, for most of the time: the more memory is touched, the longer that takes. */
static void exits(int n) {
    enum { TOUCHED = 16 << 20, THREADS = 4 };
    for (int i = 0; i < n; i++) {
        pid_t process = fork();
        EXPECT(process >= 0);
        if (process == 0) {
            alarm(30);
            pthread_t threads[THREADS];
            memset(HIDE(malloc(TOUCHED)), 1, TOUCHED);
            for (int t = 0; t < THREADS; t++) {
                EXPECT(pthread_create(&threads[t], NULL, forks_for_ever, NULL) == 0);
            }
            usleep(2000 + (useconds_t)i % 10 * 100);
            exit(0);
        }
        int status;
        EXPECT(waitpid(process, &status, 0) == process && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

int main(int argc, char **argv) {
    EXPECT(argc == 3);
    int n = atoi(argv[2]);
    /* The long forms take long. */
    alarm(n > 10000 ? 0 : 60);
    n_forks = n / n_threads;
    if (!strcmp(argv[1], "forks")) {
        storm(forks);
    } else if (!strcmp(argv[1], "spawns")) {
        storm(spawns);
    } else if (!strcmp(argv[1], "vforks")) {
        storm(vforks);
    } else if (!strcmp(argv[1], "not_for_children")) {
        not_for_children();
    } else if (!strcmp(argv[1], "exits")) {
        exits(n);
    } else if (!strcmp(argv[1], "threads")) {
        threads_that_die(n);
    } else {
        return 2;
    }
    return 0;
}
