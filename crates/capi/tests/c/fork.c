/* Forks: beside stdio, with handlers of every kind, in generations, beside heaps and purges; by argument. Every part must end: an alarm
   enforces that.
   Long because: one program, so that its parts share the handlers and the children. */
#define _GNU_SOURCE
#include "expect.h"
#include "freestone.h"
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static void *volatile sink;

/* Allocates blocks that every layer serves, and checks them. */
static void allocates_up_to(size_t largest) {
    for (size_t size = 1; size <= largest; size *= 3) {
        unsigned char *block = malloc(size);
        EXPECT(block);
        memset(block, 0x5A, size);
        block = realloc(block, size * 2);
        EXPECT(block && block[size - 1] == 0x5A);
        free(block);
    }
    freestone_heap_t *heap = freestone_heap_new();
    EXPECT(heap && (sink = freestone_heap_malloc(heap, 5000)));
    freestone_heap_delete(heap);
}

static void allocates(void) {
    allocates_up_to(1 << 20);
}

static void fork_once(void (*in_child)(void)) {
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        alarm(60);
        in_child();
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void start(pthread_t *thread, void *(*body)(void *), void *argument) {
    EXPECT(pthread_create(thread, NULL, body, argument) == 0);
}

/* A fork handler that waits until another thread has allocated. It can, because our locks are taken after the last other handler. */

enum { IDLE, ASKED, DONE };
static int answer = IDLE;
static int is_answering;

static void *answers(void *unused) {
    for (;;) {
        int asked = ASKED;
        if (__atomic_load_n(&answer, __ATOMIC_ACQUIRE) == asked) {
            allocates();
            __atomic_store_n(&answer, DONE, __ATOMIC_RELEASE);
        }
        sched_yield();
    }
    return unused;
}

static void asks(void) {
    if (__atomic_load_n(&is_answering, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&answer, ASKED, __ATOMIC_RELEASE);
        while (__atomic_load_n(&answer, __ATOMIC_ACQUIRE) != DONE) {
            sched_yield();
        }
    }
}

/* Handlers that are registered as early as a program can: before the constructors of all libraries except those that are initialised first. */

static int is_allocating;
static int n_prepared, n_parent, n_child;

static void in_prepare(void) {
    if (is_allocating) {
        allocates();
        n_prepared++;
    }
}

static void in_parent(void) {
    if (is_allocating) {
        allocates();
        n_parent++;
    }
}

static void in_child(void) {
    if (is_allocating) {
        allocates();
        n_child++;
    }
}

static void register_early(void) {
    pthread_atfork(in_prepare, in_parent, in_child);
#ifdef ASKS_FIRST
    pthread_atfork(asks, NULL, NULL);
#endif
}

__attribute__((section(".preinit_array"), used)) static void (*early)(void) = register_early;

__attribute__((constructor(101))) static void register_handlers(void) {
    pthread_atfork(asks, NULL, NULL);
}

static void last(void) {
    pthread_t thread;
    start(&thread, answers, NULL);
    __atomic_store_n(&is_answering, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < 20; i++) {
        fork_once(allocates);
    }
    _exit(0);
}

static int is_over;

static void *churns(void *seed) {
    uint64_t state = (uint64_t)(uintptr_t)seed * 7919 + 1;
    void *blocks[100] = {0};
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        unsigned at = next_random(&state) % 100;
        free(blocks[at]);
        blocks[at] = malloc(next_random(&state) % (next_random(&state) % 16 ? 2000 : 200000));
        EXPECT(blocks[at]);
    }
    for (int i = 0; i < 100; i++) {
        free(blocks[i]);
    }
    return NULL;
}

static void child_of_handlers(void) {
    EXPECT(n_child == 1);
    n_child = 0;
    fork_once(allocates);
    pthread_t thread;
    is_over = 1;
    start(&thread, churns, NULL);
    EXPECT(pthread_join(thread, NULL) == 0);
}

static void *forks_with_handlers(void *rounds) {
    for (intptr_t i = 0; i < (intptr_t)rounds; i++) {
        fork_once(allocates);
    }
    return NULL;
}

static void handlers(int n_threads) {
    pthread_t threads[4];
    is_allocating = 1;
    fork_once(child_of_handlers);
    EXPECT(n_prepared == 1 && n_parent == 1);
    for (intptr_t i = 0; i < n_threads; i++) {
        start(&threads[i], churns, (void *)i);
    }
    pthread_t forkers[2];
    for (int i = 0; i < 2; i++) {
        start(&forkers[i], forks_with_handlers, (void *)(intptr_t)10);
    }
    forks_with_handlers((void *)(intptr_t)10);
    for (int i = 0; i < 2; i++) {
        EXPECT(pthread_join(forkers[i], NULL) == 0);
    }
    is_over = 1;
    for (int i = 0; i < n_threads; i++) {
        EXPECT(pthread_join(threads[i], NULL) == 0);
    }
}

/* A handler that forks itself. */

static int is_inner, n_inner;

static void forks_within(void) {
    if (is_inner) {
        is_inner = 0;
        fork_once(allocates);
        n_inner++;
        is_inner = 1;
    }
}

static void inner(void) {
    EXPECT(pthread_atfork(forks_within, NULL, NULL) == 0);
    is_allocating = is_inner = 1;
    for (int i = 0; i < 5; i++) {
        fork_once(allocates);
    }
    EXPECT(n_inner == 5);
}

/* stdio: a thread with the list of streams waits for one with a stream, which allocates. */

static char long_line[] = "/tmp/freestone-long-line-XXXXXX";

static void *reads(void *unused) {
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        FILE *file = fopen(long_line, "r");
        EXPECT(file);
        char *line = NULL;
        size_t size = 0;
        EXPECT(getdelim(&line, &size, '\n', file) == 400001);
        free(line);
        fclose(file);
    }
    return unused;
}

static void *flushes(void *unused) {
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        fflush(NULL);
    }
    return unused;
}

static void opens_and_closes(void) {
    FILE *file = fopen("/dev/null", "w");
    EXPECT(file && fprintf(file, "%d", 5) == 1 && fclose(file) == 0);
    allocates();
}

static void uses_stdio(void) {
    opens_and_closes();
    EXPECT(fflush(NULL) == 0);
}

static void *forks_beside_stdio(void *rounds) {
    for (intptr_t i = 0; i < (intptr_t)rounds; i++) {
        fork_once(uses_stdio);
    }
    return NULL;
}

static void beside_stdio(void) {
    int file = mkstemp(long_line);
    EXPECT(file >= 0);
    char *text = malloc(400001);
    memset(text, 'x', 400000);
    text[400000] = '\n';
    EXPECT(write(file, text, 400001) == 400001);
    close(file);
    pthread_t others[6], forkers[16];
    for (int i = 0; i < 6; i++) {
        start(&others[i], i < 4 ? reads : flushes, NULL);
    }
    for (int i = 0; i < 16; i++) {
        start(&forkers[i], forks_beside_stdio, (void *)(intptr_t)12);
    }
    for (int i = 0; i < 16; i++) {
        EXPECT(pthread_join(forkers[i], NULL) == 0);
    }
    is_over = 1;
    for (int i = 0; i < 6; i++) {
        EXPECT(pthread_join(others[i], NULL) == 0);
    }
    unlink(long_line);
}

static void *uses_stdio_too(void *unused) {
    uses_stdio();
    return unused;
}

static void another_uses_stdio(void) {
    pthread_t thread;
    start(&thread, uses_stdio_too, NULL);
    EXPECT(pthread_join(thread, NULL) == 0);
}

/* A program of one thread forks, also from within stdio: before, the thread owns the lock of the list of streams; in the child it is free. */

static ssize_t forks_in_write(void *unused, const char *text, size_t size) {
    (void)unused;
    (void)text;
    fork_once(opens_and_closes);
    return (ssize_t)size;
}

static void within_stdio(void) {
    fork_once(another_uses_stdio);
    cookie_io_functions_t functions = {.write = forks_in_write};
    FILE *file = fopencookie(NULL, "w", functions);
    EXPECT(file && fputs("text", file) >= 0);
    EXPECT(fflush(NULL) == 0);
    fclose(file);
    another_uses_stdio();
}

static void generations(int n) {
    char *block = malloc(1000);
    EXPECT(block);
    block[999] = (char)n;
    allocates_up_to(40000);
    if (n > 0) {
        pid_t child = fork();
        EXPECT(child >= 0);
        if (child == 0) {
            EXPECT(block[999] == (char)n);
            free(block);
            generations(n - 1);
            _exit(0);
        }
        int status;
        EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    free(block);
}

static void *makes_heaps(void *seed) {
    uint64_t state = (uint64_t)(uintptr_t)seed + 11;
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        freestone_heap_t *heap = freestone_heap_new();
        EXPECT(heap);
        for (int i = 0; i < 20; i++) {
            size_t size = next_random(&state) % 40000;
            char *block = freestone_heap_malloc(heap, size);
            EXPECT(block);
            memset(block, 1, size);
        }
        freestone_heap_delete(heap);
    }
    return NULL;
}

static void *frees_and_purges(void *unused) {
    enum { N = 400 };
    static _Thread_local char *blocks[N];
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        for (int i = 0; i < N; i++) {
            EXPECT(blocks[i] = malloc(65000));
            memset(blocks[i], 1, 65000);
        }
        for (int i = 0; i < N; i++) {
            free(blocks[i]);
        }
        freestone_purge();
    }
    return unused;
}

/* Forks beside busy threads; the child uses every part of the allocator, including what other threads were changing. */
static void beside(void *(*body)(void *), int n_forks) {
    pthread_t threads[3];
    for (intptr_t i = 0; i < 3; i++) {
        start(&threads[i], body, (void *)i);
    }
    for (int i = 0; i < n_forks; i++) {
        fork_once(allocates);
    }
    is_over = 1;
    for (int i = 0; i < 3; i++) {
        EXPECT(pthread_join(threads[i], NULL) == 0);
    }
}

/* A thread whose heap has ended, in the last round of its keys' destructors, shares a heap with others of its kind. */

static pthread_key_t last_words;

static void purges_in_the_last_round(void *round) {
    if ((intptr_t)round < PTHREAD_DESTRUCTOR_ITERATIONS) {
        EXPECT(pthread_setspecific(last_words, (void *)((intptr_t)round + 1)) == 0);
        return;
    }
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        freestone_purge();
    }
}

static void *ends_slowly(void *unused) {
    (void)unused;
    free(sink = malloc(100));
    EXPECT(pthread_setspecific(last_words, (void *)1) == 0);
    return NULL;
}

static void beside_threads_that_end(void) {
    EXPECT(pthread_key_create(&last_words, purges_in_the_last_round) == 0);
    beside(ends_slowly, 300);
}

/* Starting processes without fork handlers. */
static void without_handlers(void) {
    pthread_t thread;
    is_allocating = 1;
    start(&thread, churns, NULL);
    for (int i = 0; i < 10; i++) {
        EXPECT(system("true") == 0);
        FILE *pipe = popen("echo 5", "r");
        int five = 0;
        EXPECT(pipe && fscanf(pipe, "%d", &five) == 1 && five == 5 && pclose(pipe) == 0);
        pid_t child;
        char *arguments[] = {"true", NULL};
        int status;
        EXPECT(posix_spawnp(&child, "true", NULL, NULL, arguments, environ) == 0);
        EXPECT(waitpid(child, &status, 0) == child && status == 0);
        child = vfork();
        if (child == 0) {
            _exit(0);
        }
        EXPECT(waitpid(child, &status, 0) == child && status == 0);
    }
    EXPECT(n_prepared == 0 && n_parent == 0);
    is_over = 1;
    EXPECT(pthread_join(thread, NULL) == 0);
}

/* The thread that was calling the pressure callback does not exist in the child: the child calls the callback again. */

static int told, may_go, n_told;

static void hears(size_t in_use, void *unused) {
    (void)in_use;
    (void)unused;
    n_told++;
    __atomic_store_n(&told, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&may_go, __ATOMIC_ACQUIRE)) {
        sched_yield();
    }
}

static void *asks_too_much(void *unused) {
    sink = malloc((size_t)512 << 20);
    EXPECT(!sink);
    return unused;
}

static void child_is_told(void) {
    may_go = 1;
    n_told = 0;
    asks_too_much(NULL);
    asks_too_much(NULL);
    EXPECT(n_told == 2);
}

/* Forks in the callback, and allocates too much: no further call, in the child as in the parent. */
static void forks_while_told(size_t in_use, void *unused) {
    (void)in_use;
    (void)unused;
    n_told++;
    EXPECT(n_told == 1);
    pid_t child = fork();
    EXPECT(child >= 0);
    asks_too_much(NULL);
    if (child == 0) {
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void pressure(void) {
    EXPECT(freestone_option_set("limit_hard", "256m") == 0);
    freestone_on_pressure(hears, NULL);
    pthread_t thread;
    start(&thread, asks_too_much, NULL);
    while (!__atomic_load_n(&told, __ATOMIC_ACQUIRE)) {
        sched_yield();
    }
    fork_once(child_is_told);
    __atomic_store_n(&may_go, 1, __ATOMIC_RELEASE);
    EXPECT(pthread_join(thread, NULL) == 0);
    n_told = 0;
    freestone_on_pressure(forks_while_told, NULL);
    asks_too_much(NULL);
}

int main(int argc, char **argv) {
    EXPECT(argc > 1);
    alarm(100);
    const char *part = argv[1];
    if (!strcmp(part, "last")) {
        last();
    } else if (!strcmp(part, "handlers")) {
        handlers(argc > 2 ? atoi(argv[2]) : 0);
    } else if (!strcmp(part, "inner")) {
        inner();
    } else if (!strcmp(part, "beside_stdio")) {
        beside_stdio();
    } else if (!strcmp(part, "within_stdio")) {
        within_stdio();
    } else if (!strcmp(part, "generations")) {
        generations(300);
    } else if (!strcmp(part, "beside_heaps")) {
        beside(makes_heaps, 150);
    } else if (!strcmp(part, "beside_purges")) {
        beside(frees_and_purges, 60);
    } else if (!strcmp(part, "beside_threads_that_end")) {
        beside_threads_that_end();
    } else if (!strcmp(part, "without_handlers")) {
        without_handlers();
    } else if (!strcmp(part, "pressure")) {
        pressure();
    } else {
        EXPECT(!"a part of that name");
    }
    return 0;
}
