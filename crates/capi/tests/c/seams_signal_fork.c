/* Forks in a signal handler that interrupts its own thread within the allocator. Arguments: a part, and a number of forks.
 *   alone: the process has one thread. A child returns from the handler, goes on in the code that was interrupted, and uses the heap.
 *   beside: other threads allocate, and one forks. A child does what POSIX allows it: it ends. */
#define _GNU_SOURCE
#include "expect.h"
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

enum { BLOCKS = 200 };

struct table {
    uint64_t state;
    unsigned char *blocks[BLOCKS];
    size_t sizes[BLOCKS];
};

static volatile sig_atomic_t n_forks, is_child;
static int wanted, is_alone;

/* Frees blocks and allocates others, of 1 byte to 600 KB, and looks at what was written into them. */
static void churn(struct table *table, int n) {
    for (int i = 0; i < n; i++) {
        unsigned at = next_random(&table->state) % BLOCKS;
        unsigned char *block = table->blocks[at];
        EXPECT(!block || (block[0] == at && block[table->sizes[at] - 1] == at));
        size_t size = next_random(&table->state) % (next_random(&table->state) % 8 ? 2000 : 600000) + 1;
        if (next_random(&table->state) % 8) {
            free(block);
            block = malloc(size);
        } else {
            block = realloc(block, size);
        }
        EXPECT(block && malloc_usable_size(block) >= size);
        block[0] = block[size - 1] = (unsigned char)at;
        table->blocks[at] = block;
        table->sizes[at] = size;
    }
}

static void empty(struct table *table) {
    for (unsigned at = 0; at < BLOCKS; at++) {
        EXPECT(!table->blocks[at] || *table->blocks[at] == at);
        free(table->blocks[at]);
        table->blocks[at] = NULL;
    }
}

/* Once, so that the thread goes on between two interruptions however long a fork takes. */
static void interrupt_soon(void) {
    const struct itimerval soon = {{0, 0}, {0, 1000}};
    EXPECT(setitimer(ITIMER_PROF, &soon, NULL) == 0);
}

static void forks(int signal) {
    (void)signal;
    int before = errno;
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0 && !is_alone) {
        _exit(0);
    }
    if (child == 0) {
        is_child = 1;
        alarm(60);
    } else {
        int status = 0;
        while (waitpid(child, &status, 0) < 0) {
            EXPECT(errno == EINTR);
        }
        EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        if (++n_forks < wanted) {
            interrupt_soon();
        }
    }
    errno = before;
}

static void *churns(void *seed) {
    struct table table = {.state = (uint64_t)(uintptr_t)seed * 7919 + 1};
    while (n_forks < wanted && !is_child) {
        churn(&table, 10);
    }
    if (is_child) {
        churn(&table, 1000);
    }
    empty(&table);
    return NULL;
}

/* In the child: the allocator is as in any process. It serves another thread, and is forked. */
static void be_a_process(void) {
    pthread_t thread;
    wanted = n_forks + 1;
    EXPECT(pthread_create(&thread, NULL, churns, (void *)7) == 0);
    EXPECT(pthread_join(thread, NULL) == 0);
    pid_t child = fork();
    if (child == 0) {
        churns((void *)8);
        _exit(0);
    }
    int status = 0;
    EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    exit(0);
}

int main(int argc, char **argv) {
    EXPECT(argc == 3);
    is_alone = !strcmp(argv[1], "alone");
    wanted = atoi(argv[2]);
    struct sigaction action = {.sa_handler = forks, .sa_flags = SA_RESTART};
    EXPECT(sigaction(SIGPROF, &action, NULL) == 0);
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPROF);
    EXPECT(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    for (int t = 0; t < THREADS && !is_alone; t++) {
        EXPECT(pthread_create(&threads[t], NULL, churns, (void *)(uintptr_t)(t + 1)) == 0);
    }
    EXPECT(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
    interrupt_soon();
    churns((void *)99);
    if (is_child) {
        be_a_process();
    }
    for (int t = 0; t < THREADS && !is_alone; t++) {
        EXPECT(pthread_join(threads[t], NULL) == 0);
    }
    printf("%d forks\n", (int)n_forks);
    return 0;
}
