/* The background thread starts and ends with the program's threads, which start and end in every way; by argument. Every part must
   end: an alarm enforces that.
   Long because: one program, so that its parts share the helpers that count threads. */
#define _GNU_SOURCE
#include "expect.h"
#include "freestone.h"
#include <dirent.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

static void *volatile sink;

/* Counts the threads of this process, and finds the background thread among them (0: none). Nothing here allocates with `malloc`. */
static int tasks(int *own) {
    char entries[4096];
    int n = 0, folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY);
    EXPECT(folder >= 0);
    *own = 0;
    long bytes;
    while ((bytes = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0) {
        for (long at = 0; at < bytes; at += *(unsigned short *)(entries + at + 16)) {
            const char *name = entries + at + 19;
            char path[64], comm[32] = "";
            if (name[0] == '.') {
                continue;
            }
            n++;
            snprintf(path, sizeof path, "/proc/self/task/%s/comm", name);
            int file = open(path, O_RDONLY);
            if (file >= 0 && read(file, comm, sizeof comm - 1) > 0 && !strcmp(comm, "freestone\n")) {
                *own = atoi(name);
            }
            close(file);
        }
    }
    close(folder);
    return n;
}

static void allocates(void) {
    void *blocks[300];
    for (int i = 0; i < 300; i++) {
        EXPECT(blocks[i] = malloc((size_t)i * 100 + 1));
        memset(blocks[i], i, (size_t)i * 100 + 1);
    }
    for (int i = 0; i < 300; i++) {
        free(blocks[i]);
    }
}

static int is_over;

/* Allocates until the flag says to end, including sizes that no cache of its thread has. */
static void *works(void *unused) {
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        allocates();
        EXPECT(sink = malloc(3 << 20));
        free(sink);
        usleep(1000);
    }
    return unused;
}

static void *visits(void *unused) {
    allocates();
    return unused;
}

static void start(pthread_t *thread, void *(*body)(void *)) {
    EXPECT(pthread_create(thread, NULL, body, NULL) == 0);
}

/* The kernel may list a joined thread for another moment; a thread that is never ended stays for ever. */
static void wait_until_alone(void) {
    int own;
    while (tasks(&own) != 1) {
        usleep(1000);
    }
}

static void wait_until_there(int *own) {
    while (tasks(own), *own == 0) {
        usleep(1000);
    }
}

/* It runs while there are threads, ends before the last of them is joined, and starts again with the next ones. */
static void comes_and_goes(void) {
    for (int round = 0; round < 3; round++) {
        pthread_t threads[4];
        int own;
        is_over = 0;
        allocates();
        for (int i = 0; i < 4; i++) {
            start(&threads[i], works);
        }
        wait_until_there(&own);
        is_over = 1;
        for (int i = 0; i < 4; i++) {
            EXPECT(pthread_join(threads[i], NULL) == 0);
        }
        wait_until_alone();
        while (unshare(CLONE_NEWUSER) != 0 && errno == EINVAL) {
            usleep(1000);
        }
    }
}

static void *cancels_itself(void *unused) {
    works(unused);
    pthread_cancel(pthread_self());
    return unused;
}

static void *leaves(void *unused) {
    works(unused);
    pthread_exit(unused);
}

/* The last thread ends by its return with a cancellation pending, and by `pthread_exit`. */
static void ends_in_every_way(void) {
    void *(*bodies[])(void *) = {cancels_itself, leaves};
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        int own;
        is_over = 0;
        allocates();
        start(&thread, bodies[i]);
        wait_until_there(&own);
        is_over = 1;
        EXPECT(pthread_join(thread, NULL) == 0);
        wait_until_alone();
    }
}

/* Many threads end at once, while others start and the process forks. */
static void storm(void) {
    allocates();
    for (int round = 0; round < 150; round++) {
        pthread_t threads[8];
        for (int i = 0; i < 8; i++) {
            start(&threads[i], visits);
        }
        pid_t child = fork();
        EXPECT(child >= 0);
        if (child == 0) {
            alarm(60);
            pthread_t thread;
            int own;
            is_over = 0;
            if (round % 50 == 0) {
                start(&thread, works);
                wait_until_there(&own);
                is_over = 1;
                EXPECT(pthread_join(thread, NULL) == 0);
            }
            wait_until_alone();
            _exit(0);
        }
        int status;
        EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        for (int i = 0; i < 8; i++) {
            EXPECT(pthread_join(threads[i], NULL) == 0);
        }
        if (round % 10 == 0) {
            /* Waits until its period is over, so that it starts again. */
            usleep(25000);
        }
    }
    wait_until_alone();
}

static void *outlives(void *unused) {
    usleep(50000);
    allocates();
    return unused;
}

/* The first thread leaves before the others; the process ends with the last of them. */
static void first_leaves(void) {
    pthread_t thread;
    allocates();
    start(&thread, works);
    int own;
    wait_until_there(&own);
    start(&thread, outlives);
    is_over = 1;
    pthread_exit(NULL);
}

/* Under `background=on` and `off`, changed while it runs. */
static void follows_the_option(void) {
    pthread_t thread;
    int own;
    allocates();
    start(&thread, works);
    wait_until_there(&own);
    EXPECT(freestone_option_set("background", "off") == 0);
    while (tasks(&own), own != 0) {
        usleep(1000);
    }
    EXPECT(freestone_option_set("background", "on") == 0);
    wait_until_there(&own);
    is_over = 1;
    EXPECT(pthread_join(thread, NULL) == 0);
    EXPECT(tasks(&own) >= 2 && own != 0);
    EXPECT(freestone_option_set("background", "auto") == 0);
    wait_until_alone();
}

static int may_begin;

static void *works_when_told(void *unused) {
    while (!__atomic_load_n(&may_begin, __ATOMIC_ACQUIRE)) {
        usleep(1000);
    }
    return works(unused);
}

/* Where the user may have no further process for now, it starts as soon as he may. Root always may: another user is taken. */
static void tries_again(void) {
    pthread_t thread;
    int own;
    allocates();
    start(&thread, works_when_told);
    if (geteuid() == 0) {
        EXPECT(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
    }
    struct rlimit limit;
    EXPECT(getrlimit(RLIMIT_NPROC, &limit) == 0);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = 0;
    EXPECT(setrlimit(RLIMIT_NPROC, &limit) == 0);
    __atomic_store_n(&may_begin, 1, __ATOMIC_RELEASE);
    usleep(300000);
    EXPECT(tasks(&own) == 2 && own == 0);
    limit.rlim_cur = before;
    EXPECT(setrlimit(RLIMIT_NPROC, &limit) == 0);
    wait_until_there(&own);
    is_over = 1;
    EXPECT(pthread_join(thread, NULL) == 0);
    wait_until_alone();
}

static pthread_mutex_t looked_for = PTHREAD_MUTEX_INITIALIZER;
static int is_locked, is_looking;

/* The loader calls it with a lock of its own held. */
static int looks(struct dl_phdr_info *object, size_t bytes, void *unused) {
    (void)object, (void)bytes, (void)unused;
    __atomic_store_n(&is_looking, 1, __ATOMIC_RELEASE);
    EXPECT(pthread_mutex_lock(&looked_for) == 0 && pthread_mutex_unlock(&looked_for) == 0);
    return 1;
}

static void *allocates_locked(void *unused) {
    int own;
    EXPECT(pthread_mutex_lock(&looked_for) == 0);
    __atomic_store_n(&is_locked, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&is_looking, __ATOMIC_ACQUIRE)) {
    }
    allocates();
    wait_until_there(&own);
    EXPECT(pthread_mutex_unlock(&looked_for) == 0);
    return unused;
}

/* A thread that allocates holds what a thread waits for that looks at the loaded objects: the start of the background thread must not look at them. */
static void beside_the_loader(void) {
    pthread_t thread;
    allocates();
    start(&thread, allocates_locked);
    while (!__atomic_load_n(&is_locked, __ATOMIC_ACQUIRE)) {
    }
    EXPECT(dl_iterate_phdr(looks, NULL) == 1);
    EXPECT(pthread_join(thread, NULL) == 0);
    wait_until_alone();
}

/* A thread with its own scheduling starts it; it is scheduled like the first thread. */

static void *is_scheduled_otherwise(void *unused) {
    struct sched_param none = {0};
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(*(int *)unused, &one);
    EXPECT(sched_setscheduler(0, SCHED_BATCH, &none) == 0);
    EXPECT(sched_setaffinity(0, sizeof one, &one) == 0);
    EXPECT(setpriority(PRIO_PROCESS, 0, 7) == 0);
    return works(NULL);
}

static void scheduling(void) {
    cpu_set_t all, own_set;
    EXPECT(sched_getaffinity(0, sizeof all, &all) == 0);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &all)) {
        cpu++;
    }
    allocates();
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, is_scheduled_otherwise, &cpu) == 0);
    int own;
    wait_until_there(&own);
    /* Its first steps may be under way; only root may lower niceness again. */
    for (;;) {
        EXPECT(sched_getaffinity(own, sizeof own_set, &own_set) == 0);
        if (CPU_EQUAL(&all, &own_set) && sched_getscheduler(own) == SCHED_OTHER &&
            (geteuid() != 0 || getpriority(PRIO_PROCESS, (id_t)own) == getpriority(PRIO_PROCESS, 0))) {
            break;
        }
        usleep(1000);
    }
    is_over = 1;
    EXPECT(pthread_join(thread, NULL) == 0);
}

/* A child that a raw system call made, for which no handler ran, has no background thread, and waits for none. */
static void raw_child(void) {
    allocates();
    int own;
    wait_until_there(&own);
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    EXPECT(child >= 0);
    if (child == 0) {
        alarm(10);
        EXPECT(freestone_option_set("background", "off") == 0);
        EXPECT(freestone_option_set("background", "on") == 0);
        allocates();
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#if defined __x86_64__ && defined __GLIBC__
/* A signal handler allocates after one step or another of the first `malloc`: the processor stops after every instruction. To be run with
   `background=off`, because a thread that is started meanwhile cannot handle the signal. */

static volatile long n_steps, at_step;
static void *volatile from_handler;
static void *volatile to_free;
static volatile int was_refused;

static void steps(int signal) {
    (void)signal;
    if (++n_steps == at_step) {
        int before = errno;
        errno = 0;
        from_handler = malloc(100);
        was_refused = !from_handler;
        EXPECT(from_handler || errno == ENOMEM);
        free(to_free);
        free(from_handler);
        errno = before;
    }
}

static void *lends(void *unused) {
    (void)unused;
    return malloc(3000);
}

static void *is_interrupted(void *unused) {
    __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
    void *block = malloc(200);
    __asm__ volatile("pushfq; andq $-0x101, (%%rsp); popfq" ::: "memory", "cc");
    EXPECT(block);
    memset(block, 1, 200);
    free(block);
    return unused;
}

static void interrupt_at(long step, int in_thread) {
    struct sigaction action = {.sa_handler = steps};
    EXPECT(sigaction(SIGTRAP, &action, NULL) == 0);
    at_step = step;
    pthread_t thread;
    if (in_thread) {
        /* A block of another thread for the handler to free. */
        start(&thread, lends);
        void *lent;
        EXPECT(pthread_join(thread, &lent) == 0);
        to_free = lent;
        start(&thread, is_interrupted);
        EXPECT(pthread_join(thread, NULL) == 0);
    } else {
        is_interrupted(NULL);
    }
    allocates();
    /* What the handler freed is freed: the block of 3000 bytes is not live. */
    freestone_stats_t stats = {.size = sizeof stats};
    EXPECT(freestone_stats(&stats) == 0 && stats.live < 3000);
}

/* How a handler at one step ends: it gets a block, gets null, is not called because `malloc` takes fewer steps, or waits for ever. */
enum ending { GETS_BLOCK, GETS_NULL, NOT_CALLED, WAITS };

static enum ending interrupted(long step, int in_thread) {
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        alarm(5);
        interrupt_at(step, in_thread);
        _exit(n_steps < step ? NOT_CALLED : was_refused ? GETS_NULL : GETS_BLOCK);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
        return WAITS;
    }
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) <= NOT_CALLED);
    return (enum ending)WEXITSTATUS(status);
}

/* While its heap is set up the handler gets null and returns; so does the handler at the first step after it, which gets a block. Later steps
   hold a lock of the heap, for which a handler would wait for ever. */
static void interrupted_everywhere(int in_thread) {
    int n_refused = 0;
    long last_null = 0, step = 1;
    for (;; step += 1 + step / 10) {
        enum ending ending = interrupted(step, in_thread);
        if (ending == GETS_NULL) {
            n_refused++;
            last_null = step;
        } else if (n_refused > 0) {
            break;
        } else {
            EXPECT(ending == GETS_BLOCK);
        }
    }
    EXPECT(n_refused > 3);
    while (step - last_null > 1) {
        long middle = last_null + (step - last_null) / 2;
        if (interrupted(middle, in_thread) == GETS_NULL) {
            last_null = middle;
        } else {
            step = middle;
        }
    }
    EXPECT(interrupted(step, in_thread) == GETS_BLOCK);
}
#else
static void interrupted_everywhere(int in_thread) {
    (void)in_thread;
}
#endif

/* How often the timer has expired. */
static atomic_int expirations;

static void expires(union sigval unused) {
    (void)unused;
    sink = malloc(100);
    free(sink);
    expirations++;
}

/* A timer that calls a function in a thread: the C library has a thread for that, which blocks a signal of the library's own and waits for it. It is the first
   that starts threads, and allocates for each, so it starts the background thread. */
static void timer_of_the_library(void) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = expires};
    struct itimerspec often = {{0, 10000000}, {0, 10000000}};
    timer_t timer;
    sink = malloc(100);
    EXPECT(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    EXPECT(timer_settime(timer, 0, &often, NULL) == 0);
    while (expirations < 10) {
        usleep(1000);
    }
}

/* Before the program's first `malloc`: `fork` and `waitpid` do not allocate, nor does `alarm`. */
int main(int argc, char **argv) {
    EXPECT(argc > 1);
    alarm(100);
    const char *part = argv[1];
    if (!strcmp(part, "comes_and_goes")) {
        comes_and_goes();
    } else if (!strcmp(part, "ends_in_every_way")) {
        ends_in_every_way();
    } else if (!strcmp(part, "storm")) {
        storm();
    } else if (!strcmp(part, "first_leaves")) {
        first_leaves();
    } else if (!strcmp(part, "follows_the_option")) {
        follows_the_option();
    } else if (!strcmp(part, "tries_again")) {
        tries_again();
    } else if (!strcmp(part, "beside_the_loader")) {
        beside_the_loader();
    } else if (!strcmp(part, "scheduling")) {
        scheduling();
    } else if (!strcmp(part, "timer")) {
        timer_of_the_library();
    } else if (!strcmp(part, "raw_child")) {
        raw_child();
    } else if (!strcmp(part, "interrupted")) {
        interrupted_everywhere(0);
    } else if (!strcmp(part, "interrupted_thread")) {
        interrupted_everywhere(1);
    } else {
        EXPECT(!"a part of that name");
    }
    return 0;
}
