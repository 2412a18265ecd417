/* Calls that recording.rs finds in a trace again. The argument selects a part. */
#define _GNU_SOURCE
#include "freestone.h"
#include "weak.h"
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define N 20000

/* Sizes that no library asks for by chance. */
static void calls(void) {
    char *one = malloc(12321);
    char *two = calloc(3, 4109);
    char *large = malloc(10000019);
    void *aligned = NULL;
    one = realloc(one, 54321);
    if (posix_memalign(&aligned, 4096, 12323) != 0 || !one || !two || !large) abort();
    if (malloc(SIZE_MAX / 2 - 7) != NULL || errno != ENOMEM) abort();
    free(one), free(two), free(large), free(aligned);
    free(NULL);
}

/* The second block of an explicit heap ends with the heap. */
static void explicit_heap(void) {
    freestone_heap_t *heap = freestone_heap_new();
    void *freed = freestone_heap_malloc(heap, 12329), *kept = freestone_heap_malloc(heap, 12331);
    if (!freed || !kept) abort();
    printf("%ju %ju\n", (uintmax_t)(uintptr_t)freed, (uintmax_t)(uintptr_t)kept);
    if (freestone_heap_free(heap, freed) != FREESTONE_OK) abort();
    freestone_heap_delete(heap);
}

static void *passed[N];
static pthread_barrier_t barrier;

static void *frees(void *unused) {
    for (int round = 0; round < 10; round++) {
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < N; i++) free(passed[i]);
        pthread_barrier_wait(&barrier);
    }
    return unused;
}

/* Every block is freed by the other thread, and its address is used again. */
static void passing(void) {
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    if (pthread_create(&thread, NULL, frees, NULL) != 0) abort();
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < N; i++) passed[i] = malloc(3001 + i % 7);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
    }
    pthread_join(thread, NULL);
}

static void *short_life(void *block) {
    free(block);
    return malloc(4441);
}

static void threads(void) {
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        void *block;
        if (pthread_create(&thread, NULL, short_life, malloc(4443)) != 0) abort();
        pthread_join(thread, &block);
        free(block);
    }
}

/* A thread whose stack is as short as can be. */
static void short_stack(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    void *block;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN) != 0) abort();
    if (pthread_create(&thread, &attributes, short_life, malloc(4443)) != 0) abort();
    pthread_join(thread, &block);
    free(block);
}

static void forks(void) {
    free(malloc(7001));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 1000; i++) free(malloc(7003));
        exit(0);
    }
    for (int i = 0; i < 1000; i++) free(malloc(7001));
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) abort();
    printf("%d\n", (int)child);
}

static pid_t child_of_callback = -1;

static void forks_once(size_t in_use, void *unused) {
    (void)in_use;
    if (child_of_callback == -1) child_of_callback = fork();
    (void)unused;
}

static void *allocates_meanwhile(void *unused) {
    free(malloc(8003));
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return unused;
}

/* The callback for memory pressure forks, in the middle of a call; the child starts a thread. */
static void callback(void) {
    freestone_on_pressure(forks_once, NULL);
    if (freestone_option_set("limit", "64M") != 0) abort();
    for (int i = 0; i < 200 && child_of_callback == -1; i++) malloc(1 << 20);
    if (child_of_callback == 0) {
        pthread_t thread;
        pthread_barrier_init(&barrier, NULL, 2);
        free(malloc(8001));
        if (pthread_create(&thread, NULL, allocates_meanwhile, NULL) != 0) abort();
        pthread_barrier_wait(&barrier);
        free(malloc(8001));
        pthread_barrier_wait(&barrier);
        pthread_join(thread, NULL);
        exit(0);
    }
    int status;
    if (child_of_callback == -1 || waitpid(child_of_callback, &status, 0) != child_of_callback || status != 0) abort();
    printf("%d\n", (int)child_of_callback);
}

static void killed(void) {
    for (int i = 0; i < N; i++) free(malloc(5003));
    raise(SIGKILL);
}

/* More than fits into a small disk or under a small limit. */
static void many(void) {
    for (int i = 0; i < 2000000; i++) free(malloc(1 + i % 1000));
}

static void on_signal(int signal) {
    int before = errno;
    free(malloc(6007));
    errno = before;
    (void)signal;
}

/* A handler that allocates, in the middle of calls. */
static void signals(void) {
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGALRM, &action, NULL);
    /* The calls in the middle of which the handler comes hold no lock: there are blocks at hand, more than one for each of the two. */
    void *blocks[40];
    for (int i = 0; i < 40; i++) blocks[i] = malloc(6003);
    for (int i = 0; i < 40; i++) free(blocks[i]);
    ualarm(1000, 200);
    for (int i = 0; i < 3000000; i++) free(malloc(6001));
    ualarm(0, 0);
}

int main(int argc, char **argv) {
    const char *part = argc > 1 ? argv[1] : "";
    struct { const char *name; void (*run)(void); } parts[] = {
        {"calls", calls}, {"explicit_heap", explicit_heap}, {"passing", passing}, {"threads", threads}, {"short_stack", short_stack},
        {"forks", forks}, {"callback", callback}, {"killed", killed}, {"many", many}, {"signals", signals},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(part, parts[i].name) == 0) return parts[i].run(), 0;
    return 2;
}
