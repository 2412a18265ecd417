/* Threads in unusual states: small stacks, signal handlers on stacks of their own, cancellation, locked memory. By argument. */
#define _GNU_SOURCE
#include "expect.h"
#include "freestone.h"
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* Blocks that another thread allocated, so that freeing them is remote. */
static void *volatile of_others[256];

static void *fill_others(void *unused) {
    for (int i = 0; i < 256; i++) {
        EXPECT(of_others[i] = malloc((size_t)i * 40 + 1));
    }
    return unused;
}

/* Every kind of call, slow paths included: the stack must have room for the deepest. */
static void all_calls(void) {
    static const size_t sizes[] = {0, 1, 16, 100, 1000, 10000, 33000, 70000, 300000, 3000000};
    void *blocks[10];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 10; i++) {
            EXPECT(blocks[i] = round == 1 ? calloc(1, sizes[i]) : malloc(sizes[i]));
            EXPECT(blocks[i] = realloc(blocks[i], sizes[i] * 2 + 9));
            EXPECT(malloc_usable_size(blocks[i]) >= sizes[i]);
        }
        for (int i = 0; i < 10; i++) {
            free(blocks[i]);
        }
        EXPECT(blocks[0] = aligned_alloc(1 << 20, 5000));
        free(blocks[0]);
        for (int i = round; i < 256; i += 3) {
            free(of_others[i]);
        }
        freestone_heap_t *heap = freestone_heap_new();
        EXPECT(heap);
        for (int i = 0; i < 500; i++) {
            EXPECT(freestone_heap_malloc(heap, (size_t)i * 30));
        }
        freestone_heap_delete(heap);
        freestone_stats_t stats = {.size = sizeof stats};
        EXPECT(freestone_stats(&stats) == 0);
        freestone_purge();
        EXPECT(freestone_option_set("decay_ms", "1000") == 0);
        errno = 0;
        EXPECT(!malloc(SIZE_MAX / 2) && errno == ENOMEM);
    }
}

static void *all_calls_of_a_thread(void *unused) {
    all_calls();
    return unused;
}

static void *nothing(void *unused) {
    return unused;
}

static void *a_pair(void *unused) {
    free(malloc(20));
    return unused;
}

enum { GUARD = 1 << 16, STACK = 1 << 16, PAINT = 0x6B };

/* Runs a body on a stack of 64 KiB below a guard; returns the bytes of it that were written. */
static size_t stack_used(void *(*body)(void *)) {
    char *area = mmap(NULL, GUARD + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(area != MAP_FAILED && mprotect(area, GUARD, PROT_NONE) == 0);
    char *stack = area + GUARD;
    memset(stack, PAINT, STACK);
    pthread_attr_t attributes;
    pthread_t thread;
    EXPECT(pthread_attr_init(&attributes) == 0 && pthread_attr_setstack(&attributes, stack, STACK) == 0);
    EXPECT(pthread_create(&thread, &attributes, body, NULL) == 0 && pthread_join(thread, NULL) == 0);
    size_t untouched = 0;
    while (untouched < STACK && stack[untouched] == PAINT) {
        untouched++;
    }
    EXPECT(munmap(area, GUARD + STACK) == 0 && pthread_attr_destroy(&attributes) == 0);
    return STACK - untouched;
}

static void small_stacks(void) {
    size_t least = stack_used(nothing);
    pthread_t filler;
    EXPECT(pthread_create(&filler, NULL, fill_others, NULL) == 0 && pthread_join(filler, NULL) == 0);
    size_t first = stack_used(a_pair), most = stack_used(all_calls_of_a_thread);
    printf("stack: %zu bytes without us, %zu more for a first pair, %zu more for every call\n", least, first - least, most - least);
    /* PTHREAD_STACK_MIN is 16 KiB, of which the C library takes 2 to 4: a thread of that size must be able to allocate. */
    EXPECT(most - least <= 8 * 1024);
    for (int i = 0; i < 500; i++) {
        pthread_attr_t attributes;
        pthread_t thread;
        size_t size = PTHREAD_STACK_MIN > 32 * 1024 ? (size_t)PTHREAD_STACK_MIN : 32 * 1024;
        EXPECT(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, size) == 0);
        EXPECT(pthread_create(&thread, &attributes, a_pair, NULL) == 0 && pthread_join(thread, NULL) == 0);
        pthread_attr_destroy(&attributes);
    }
}

static void *volatile handed_in, *volatile handed_out;
static volatile int n_handled;

static void handler(int number) {
    (void)number;
    free(handed_in);
    handed_in = NULL;
    all_calls();
    EXPECT(handed_out = malloc(5000));
    memset(handed_out, 3, 5000);
    n_handled++;
}

static void use_alternate_stack(void) {
    stack_t stack = {.ss_size = 64 * 1024};
    stack.ss_sp = mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(stack.ss_sp != MAP_FAILED && sigaltstack(&stack, NULL) == 0);
}

/* `raise` runs the handler before it returns, so no call of ours is interrupted: which is documented to work. */
static void *signalled_thread(void *first) {
    use_alternate_stack();
    int before = n_handled;
    if (!first) {
        EXPECT(handed_in = malloc(3000));
    }
    EXPECT(raise(SIGUSR1) == 0 && n_handled == before + 1);
    EXPECT(((char *)handed_out)[4999] == 3);
    free(handed_out);
    all_calls();
    return NULL;
}

/* A crash reporter: the handler of SIGSEGV allocates, writes its report and ends the process. */
static void crash_reporter(int number) {
    char *text = malloc(100000);
    EXPECT(text && number == SIGSEGV);
    snprintf(text, 100000, "reported");
    free(text);
    _exit(0);
}

static void signals(void) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    EXPECT(sigaction(SIGUSR1, &action, NULL) == 0);
    memset((void *)of_others, 0, sizeof of_others);
    pthread_t thread;
    for (intptr_t first = 0; first < 2; first++) {
        EXPECT(pthread_create(&thread, NULL, signalled_thread, (void *)first) == 0 && pthread_join(thread, NULL) == 0);
        signalled_thread((void *)first);
    }
    action.sa_handler = crash_reporter;
    EXPECT(sigaction(SIGSEGV, &action, NULL) == 0);
    *(volatile int *)HIDE((intptr_t)8) = 1;
    EXPECT(!"reached");
}

static volatile int reached_the_end;

/* No function of the library is a cancellation point, even if it makes a system call: a pending request stays pending. */
static void *cancelled_later(void *unused) {
    EXPECT(pthread_cancel(pthread_self()) == 0);
    all_calls();
    reached_the_end = 1;
    pthread_testcancel();
    EXPECT(!"cancelled here");
    return unused;
}

static pthread_barrier_t ready;
static volatile unsigned long spins;

/* Cancelled in its own code, asynchronously, while it has blocks and cached blocks. POSIX forbids calling `malloc` while
 * cancellation is asynchronous; a thread that obeys this may be cancelled. */
static void *cancelled_at_once(void *kept) {
    all_calls();
    EXPECT(*(void **)kept = malloc(100));
    EXPECT(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL) == 0);
    pthread_barrier_wait(&ready);
    for (;;) {
        spins++;
    }
    return NULL;
}

static void cancellation(void) {
    pthread_t thread;
    void *result, *kept;
    memset((void *)of_others, 0, sizeof of_others);
    EXPECT(pthread_create(&thread, NULL, cancelled_later, NULL) == 0 && pthread_join(thread, &result) == 0);
    EXPECT(reached_the_end && result == PTHREAD_CANCELED);
    EXPECT(pthread_barrier_init(&ready, NULL, 2) == 0);
    for (int i = 0; i < 100; i++) {
        EXPECT(pthread_create(&thread, NULL, cancelled_at_once, &kept) == 0);
        pthread_barrier_wait(&ready);
        EXPECT(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
        free(kept);
    }
    all_calls();
}

/* Everything is locked before the first block, and purging is refused: only what the program uses is resident, and calloc is zero. */
static void locked(void) {
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        printf("skipped: mlockall is not permitted\n");
        return;
    }
    long before = resident_kib();
    for (int round = 0; round < 3; round++) {
        char *block = malloc(3 << 20), *small = malloc(3000);
        EXPECT(block && small);
        memset(block, 0xA5, 3 << 20);
        memset(small, 0xA5, 3000);
        free(block);
        free(small);
        freestone_purge();
        EXPECT((block = calloc(1, 3 << 20)) && (small = calloc(1, 3000)));
        for (int i = 0; i < 3 << 20; i++) {
            EXPECT(block[i] == 0 && small[i % 3000] == 0);
        }
        free(block);
        free(small);
    }
    long grown = resident_kib() - before;
    printf("%ld KiB more are resident\n", grown);
    EXPECT(grown < 24 << 10);
}

int main(int argc, char **argv) {
    alarm(100);
    EXPECT(argc == 2);
    if (!strcmp(argv[1], "small_stacks")) {
        small_stacks();
    } else if (!strcmp(argv[1], "signals")) {
        signals();
    } else if (!strcmp(argv[1], "cancellation")) {
        cancellation();
    } else if (!strcmp(argv[1], "locked")) {
        locked();
    } else {
        return 2;
    }
    return 0;
}
