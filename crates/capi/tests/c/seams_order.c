/* The order of a process's start and end: each entry point is the first call of the process in each place where code can run, and a
 * block of each place is freed in each later one. The program starts itself again for each case (a variable names it), so that
 * nothing was allocated before. An alarm ends a case that hangs. */
#define _GNU_SOURCE
#include "expect.h"
#include "freestone.h"
#include <malloc.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

/* A function for the end of this thread, as C++ registers the destructor of a thread_local object: glibc's and musl's own entry. */
extern int __cxa_thread_atexit_impl(void (*function)(void *), void *argument, void *library) __attribute__((weak));
extern void *__dso_handle;

/* Where code runs, in the order of time. */
enum place { CONSTRUCTOR, MAIN, THREAD, KEY_DESTRUCTOR, TLS_DESTRUCTOR, CHILD, AT_EXIT, DESTRUCTOR, N_PLACES };

enum { N_ENTRIES = 16 };

/* Entry points by number; the block that one gives is returned, others return NULL. */
static void *call_entry(int number) {
    void *block = NULL;
    switch (number) {
    case 0: EXPECT((block = malloc(10))); break;
    case 1: EXPECT((block = calloc(3, 5)) && *(char *)block == 0); break;
    case 2: EXPECT((block = realloc(NULL, 20))); break;
    case 3: EXPECT((block = aligned_alloc(64, 64)) && (uintptr_t)block % 64 == 0); break;
    case 4: EXPECT(posix_memalign(&block, 32, 40) == 0 && block); break;
    case 5: EXPECT((block = memalign(128, 7))); break;
    case 6: EXPECT((block = valloc(5))); break;
    case 7: EXPECT((block = malloc(1 << 20))); break;
    case 8: free(NULL); break;
    case 9: EXPECT(malloc_usable_size(NULL) == 0); break;
    case 10: {
        freestone_heap_t *heap = freestone_heap_new();
        EXPECT(heap && freestone_heap_malloc(heap, 9));
        freestone_heap_delete(heap);
        break;
    }
    case 11: {
        freestone_stats_t stats = {.size = sizeof stats};
        EXPECT(freestone_stats(&stats) == 0);
        break;
    }
    case 12: freestone_purge(); break;
    case 13: EXPECT(freestone_option_set("decay_ms", "500") == 0); break;
    case 14: EXPECT(reallocarray(NULL, SIZE_MAX / 2, 3) == NULL && errno == ENOMEM); break;
    case 15: EXPECT(malloc(SIZE_MAX / 2 + 2) == NULL && errno == ENOMEM); break;
    }
    if (block) {
        memset(block, 0x5A, 5);
    }
    return block;
}

static int first_place = -1, first_entry, last_place = -1;
static void *volatile block_of_first;

/* Reads the case from the environment itself: `getenv` is no entry point, and the constructor has no arguments. */
static void read_case(void) {
    const char *text = getenv("SEAMS_CASE");
    if (text) {
        EXPECT(sscanf(text, "%d.%d.%d", &first_place, &first_entry, &last_place) == 3);
    }
}

static void an_ordinary_day(void) {
    void *blocks[300];
    for (int i = 0; i < 300; i++) {
        EXPECT(blocks[i] = malloc((size_t)i * i + 1));
        memset(blocks[i], i, (size_t)i * i + 1);
    }
    for (int i = 0; i < 300; i++) {
        EXPECT(((unsigned char *)blocks[i])[i * i] == (unsigned char)i);
        free(blocks[i]);
    }
}

/* The action in a place: the first call of the process, or the free of its block; a dot on standard output shows that the place was
 * reached; the test counts the dots. */
static void reach(enum place place) {
    if ((int)place == first_place) {
        block_of_first = call_entry(first_entry);
    }
    if ((int)place == last_place) {
        if (block_of_first) {
            EXPECT(*(unsigned char *)block_of_first == 0x5A);
        }
        free(block_of_first);
        block_of_first = NULL;
        an_ordinary_day();
        (void)!write(1, ".", 1);
    }
}

__attribute__((constructor)) static void before_main(void) {
    read_case();
    reach(CONSTRUCTOR);
}

__attribute__((destructor)) static void after_main(void) {
    reach(DESTRUCTOR);
}

static void at_end(void) {
    reach(AT_EXIT);
}

static void end_of_key(void *unused) {
    (void)unused;
    reach(KEY_DESTRUCTOR);
}

static void end_of_object(void *unused) {
    (void)unused;
    reach(TLS_DESTRUCTOR);
}

static pthread_key_t key;

static void *thread_body(void *unused) {
    reach(THREAD);
    pthread_setspecific(key, &key);
    return unused;
}

/* `__cxa_thread_atexit_impl` allocates its record: a thread of its own, so that it is not the first call elsewhere. */
static void *thread_with_object(void *unused) {
    EXPECT(__cxa_thread_atexit_impl(end_of_object, NULL, &__dso_handle) == 0);
    return unused;
}

static void run_thread(void *(*body)(void *)) {
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, body, NULL) == 0 && pthread_join(thread, NULL) == 0);
}

/* One case: every place is reached in the order of time, except those that would allocate before the first call. */
static int one_case(void) {
    alarm(30);
    EXPECT(atexit(at_end) == 0);
    reach(MAIN);
    if (first_place <= TLS_DESTRUCTOR) {
        EXPECT(pthread_key_create(&key, end_of_key) == 0);
        run_thread(thread_body);
        if (__cxa_thread_atexit_impl && first_place != CHILD) {
            run_thread(thread_with_object);
        } else {
            reach(TLS_DESTRUCTOR);
        }
    }
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        reach(CHILD);
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    if (first_place == CHILD || last_place == CHILD) {
        _exit(0);
    }
    return 0;
}

/* Starts this program again for one case. */
static void run_case(char *program, int first, int entry, int last) {
    char variable[64];
    snprintf(variable, sizeof variable, "SEAMS_CASE=%d.%d.%d", first, entry, last);
    char *keep[64] = {variable};
    int n = 1;
    for (char **each = environ; *each && n < 63; each++) {
        keep[n++] = *each;
    }
    char *arguments[] = {program, NULL};
    pid_t child;
    int status;
    EXPECT(posix_spawn(&child, program, NULL, NULL, arguments, keep) == 0 && waitpid(child, &status, 0) == child);
    if (status != 0) {
        fprintf(stderr, "first in place %d by entry %d, freed in place %d: status %#x\n", first, entry, last, status);
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (first_place >= 0) {
        return one_case();
    }
    EXPECT(argc == 2);
    alarm(110);
    int n = 0;
    if (!strcmp(argv[1], "first")) {
        /* Each entry point first in each place. */
        for (int place = 0; place < N_PLACES; place++) {
            for (int entry = 0; entry < N_ENTRIES; entry++, n++) {
                run_case(argv[0], place, entry, place);
            }
        }
    } else if (!strcmp(argv[1], "pairs")) {
        /* A small block and a large one, from each place to each later place. */
        for (int first = 0; first < N_PLACES; first++) {
            for (int last = first; last < N_PLACES; last++) {
                if (first != CHILD || last == CHILD) {
                    run_case(argv[0], first, 0, last);
                    run_case(argv[0], first, 7, last);
                    n += 2;
                }
            }
        }
    } else {
        return 2;
    }
    printf(" %d cases\n", n);
    return 0;
}
