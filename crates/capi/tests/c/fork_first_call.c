/* A process forks while another thread makes the first call of an allocator that was loaded meanwhile (`fork_first_call LIBRARY`): in the child, too, an access
   to a freed block is reported. The thread is held where the allocator installs its handler of faults, by this program's `sigaction`. */
#define _GNU_SOURCE
#include "expect.h"
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

static void *(*allocate)(size_t);
static void (*release)(void *);
static int is_installing;

/* Long enough for the fork, which does not end before, to have begun. */
enum { HELD_US = 300000, BLOCKS = 30 };

int sigaction(int signal, const struct sigaction *action, struct sigaction *before) {
    static int (*next)(int, const struct sigaction *, struct sigaction *);
    if (!next) next = (int (*)(int, const struct sigaction *, struct sigaction *))dlsym(RTLD_NEXT, "sigaction");
    if (signal == SIGSEGV && action && !__atomic_exchange_n(&is_installing, 1, __ATOMIC_ACQ_REL)) usleep(HELD_US);
    return next(signal, action, before);
}

static void *calls_first(void *unused) {
    release(allocate(100));
    return unused;
}

int main(int n, char **words) {
    EXPECT(n == 2);
    alarm(60);
    void *library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
    EXPECT(library);
    allocate = (void *(*)(size_t))dlsym(library, "malloc");
    release = (void (*)(void *))dlsym(library, "free");
    EXPECT(allocate && release);
    pthread_t thread;
    EXPECT(!pthread_create(&thread, NULL, calls_first, NULL));
    while (!__atomic_load_n(&is_installing, __ATOMIC_ACQUIRE)) usleep(1000);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (!child) {
        for (int i = 0; i < BLOCKS; i++) {
            volatile char *block = allocate(20);
            release((void *)block);
            block[1] = 2;
        }
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT(!pthread_join(thread, NULL));
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    return 0;
}
