/* Crimes against guarded blocks, and what a program may do beside them, by argument. With guard_sample=1 every small block is guarded. */
#include "expect.h"
#include "freestone.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char *volatile block;

__attribute__((noinline)) static void allocate_it(size_t size) {
    block = malloc(size);
    EXPECT(block);
}

__attribute__((noinline)) static void free_it(void) {
    free(block);
}

__attribute__((noinline)) static char read_it(long offset) {
    return *(volatile char *)(block + offset);
}

__attribute__((noinline)) static void write_it(long offset) {
    *(volatile char *)(block + offset) = 'x';
}

static void *free_in_thread(void *unused) {
    free_it();
    return unused;
}

static void own_handler(int signal, siginfo_t *info, void *context) {
    (void)context;
    EXPECT(signal == SIGSEGV && info->si_addr);
    static const char text[] = "the program's handler\n";
    EXPECT(write(1, text, sizeof text - 1) > 0);
    _exit(7);
}

static void install_own_handler(void) {
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK, .sa_sigaction = own_handler};
    EXPECT(sigaction(SIGSEGV, &action, NULL) == 0);
}

/* Before the first allocation: the library's constructors have not allocated. */
__attribute__((constructor)) static void early(void) {
    if (getenv("HANDLER_FIRST")) {
        install_own_handler();
    }
}

static void *allocate_and_free(void *unused) {
    allocate_it(100);
    free_it();
    return unused;
}

/* Says which thread does so. */
static void *use_freed(void *unused) {
    printf("%ld\n", (long)syscall(SYS_gettid));
    fflush(stdout);
    allocate_it(100);
    free_it();
    read_it(8);
    return unused;
}

static void in_thread(void *(*what)(void *)) {
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, what, NULL) == 0 && pthread_join(thread, NULL) == 0);
}

static struct sigaction replaced;

static void passes_on(int signal, siginfo_t *info, void *context) {
    static const char text[] = "the program's handler\n";
    EXPECT(write(1, text, sizeof text - 1) > 0);
    replaced.sa_sigaction(signal, info, context);
}

/* In place of the library's, and before the next allocation: as a runtime does that starts. */
static void install_handler_that_passes_on(void) {
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK, .sa_sigaction = passes_on};
    EXPECT(sigaction(SIGSEGV, &action, &replaced) == 0 && replaced.sa_sigaction && replaced.sa_flags & SA_SIGINFO);
    allocate_it(100);
}

static sigjmp_buf back;

static void jump_back(int signal) {
    siglongjmp(back, signal);
}

/* Blocks lie either at the end or at the start of their slot: takes one that an access at the offset faults beside. */
static void allocate_at_edge(size_t size, long offset) {
    long page = sysconf(_SC_PAGESIZE);
    for (int i = 0; i < 200; i++) {
        allocate_it(size);
        uintptr_t at = (uintptr_t)block;
        int at_end = (at + size + 15) / 16 * 16 % (uintptr_t)page == 0;
        int at_start = at % (uintptr_t)page == 0;
        if (offset < 0 ? at_start : at_end) {
            return;
        }
    }
    EXPECT(!"one of 200 blocks lies there");
}

static void behave(void) {
    enum { N = 2000 };
    static unsigned char *blocks[N];
    static size_t sizes[N], aligns[N];
    unsigned seed = 1;
    for (int i = 0; i < 200000; i++) {
        seed = seed * 1664525u + 1013904223u;
        int at = (int)(seed >> 8) % N;
        if (blocks[at]) {
            for (size_t byte = 0; byte < sizes[at]; byte++) {
                EXPECT(blocks[at][byte] == (unsigned char)at);
            }
            EXPECT(malloc_usable_size(blocks[at]) >= sizes[at]);
        }
        size_t size = (seed >> 20) % 3 ? (seed >> 12) % 200 : (seed >> 12) % 9000;
        switch ((seed >> 4) % 5) {
        case 0:
            free(blocks[at]);
            blocks[at] = NULL;
            continue;
        case 1: {
            size_t kept = blocks[at] && sizes[at] < size ? sizes[at] : size;
            unsigned char *moved = realloc(blocks[at], size);
            EXPECT(moved || size == 0);
            for (size_t byte = 0; blocks[at] && moved && byte < kept; byte++) {
                EXPECT(moved[byte] == (unsigned char)at);
            }
            blocks[at] = moved;
            break;
        }
        case 2: {
            free(blocks[at]);
            blocks[at] = calloc(1, size);
            EXPECT(blocks[at]);
            for (size_t byte = 0; byte < size; byte++) {
                EXPECT(blocks[at][byte] == 0);
            }
            break;
        }
        case 3:
            free(blocks[at]);
            aligns[at] = (size_t)16 << (seed >> 16) % 9;
            blocks[at] = aligned_alloc(aligns[at], size);
            EXPECT(blocks[at] && (uintptr_t)blocks[at] % aligns[at] == 0);
            break;
        default:
            free(blocks[at]);
            blocks[at] = malloc(size);
            EXPECT(blocks[at] && (uintptr_t)blocks[at] % 16 == 0);
        }
        sizes[at] = blocks[at] ? size : 0;
        if (blocks[at]) {
            memset(blocks[at], at, size);
        }
    }
    for (int at = 0; at < N; at++) {
        free(blocks[at]);
    }
}

static void *churn(void *unused) {
    for (int i = 0; i < 3000; i++) {
        char *blocks[8];
        for (int j = 0; j < 8; j++) {
            blocks[j] = malloc((size_t)(i % 100 + j));
            EXPECT(blocks[j]);
            memset(blocks[j], j, (size_t)(i % 100 + j));
        }
        for (int j = 0; j < 8; j++) {
            free(blocks[j]);
        }
    }
    return unused;
}

static void threads(void) {
    pthread_t started[4];
    for (int i = 0; i < 4; i++) {
        EXPECT(pthread_create(&started[i], NULL, churn, NULL) == 0);
    }
    allocate_it(40);
    pthread_t freeing;
    EXPECT(pthread_create(&freeing, NULL, free_in_thread, NULL) == 0);
    pthread_join(freeing, NULL);
    for (int i = 0; i < 4; i++) {
        pthread_join(started[i], NULL);
    }
}

int main(int argc, char **argv) {
    EXPECT(argc > 1);
    const char *what = argv[1];
    long offset = argc > 2 ? atol(argv[2]) : 0;
    if (!strcmp(what, "overflow") || !strcmp(what, "underflow")) {
        allocate_at_edge(48, offset);
        write_it(offset);
    } else if (!strcmp(what, "overread")) {
        allocate_at_edge(48, offset);
        printf("%d\n", read_it(offset));
    } else if (!strcmp(what, "overflow_in_page")) {
        allocate_at_edge(41, 41);
        write_it(41);
        free_it();
    } else if (!strcmp(what, "read_after_free")) {
        allocate_it(100);
        free_it();
        read_it(8);
    } else if (!strcmp(what, "write_after_free")) {
        allocate_it(100);
        free_it();
        write_it(8);
    } else if (!strcmp(what, "free_in_thread_then_use")) {
        allocate_it(100);
        pthread_t freeing;
        EXPECT(pthread_create(&freeing, NULL, free_in_thread, NULL) == 0);
        pthread_join(freeing, NULL);
        read_it(0);
    } else if (!strcmp(what, "use_freed_in_a_later_thread")) {
        in_thread(allocate_and_free);
        in_thread(use_freed);
    } else if (!strcmp(what, "use_freed_in_a_child")) {
        allocate_and_free(NULL);
        pid_t child = fork();
        EXPECT(child >= 0);
        if (!child) {
            use_freed(NULL);
        }
        EXPECT(waitpid(child, NULL, 0) == child);
    } else if (!strcmp(what, "double_free")) {
        allocate_it(100);
        free_it();
        free_it();
    } else if (!strcmp(what, "free_as_larger")) {
        allocate_it(100);
        free_sized(block, 200);
    } else if (!strcmp(what, "interior_free")) {
        allocate_it(100);
        free(HIDE(block) + 32);
    } else if (!strcmp(what, "null_write")) {
        allocate_it(100);
        block = NULL;
        write_it(0);
    } else if (!strcmp(what, "later_handler")) {
        allocate_it(100);
        install_own_handler();
        free_it();
        read_it(8);
    } else if (!strcmp(what, "passing_handler")) {
        allocate_it(100);
        install_handler_that_passes_on();
        free_it();
        read_it(8);
    } else if (!strcmp(what, "passing_handler_null_write")) {
        allocate_it(100);
        install_handler_that_passes_on();
        block = NULL;
        write_it(0);
    } else if (!strcmp(what, "sent_signal")) {
        allocate_it(100);
        raise(SIGSEGV);
    } else if (!strcmp(what, "jumping_handler")) {
        allocate_it(100);
        signal(SIGSEGV, jump_back);
        volatile int n = 0;
        if (sigsetjmp(back, 1) < 20 && n++ < 5) {
            *(volatile char *)0 = 1;
        }
        EXPECT(n == 6 || n == 5);
    } else if (!strcmp(what, "child")) {
        allocate_it(100);
        char *other = block;
        allocate_it(100);
        pid_t child = fork();
        EXPECT(child >= 0);
        if (!child) {
            free(other);
            behave();
            free_it();
            read_it(8);
            _exit(0);
        }
        int status;
        EXPECT(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        memset(other, 1, 100);
        memset(block, 1, 100);
        free(other);
        free_it();
    } else if (!strcmp(what, "behave")) {
        behave();
    } else if (!strcmp(what, "threads")) {
        threads();
    } else if (!strcmp(what, "exhaust")) {
        for (int i = 0; i < 1000; i++) {
            allocate_it(40);
            memset(block, 1, 40);
        }
    } else if (!strcmp(what, "set_late")) {
        allocate_it(40);
        EXPECT(freestone_option_set("guard_sample", "1") == 0);
        for (int i = 0; i < 5000; i++) {
            allocate_it(40);
        }
        free_it();
        read_it(8);
    } else if (!strcmp(what, "refused")) {
        uint64_t sample = 1;
        EXPECT(freestone_option_get("guard_sample", &sample) == FREESTONE_OK && sample == 0);
        EXPECT(freestone_option_set("guard_sample", "0") == FREESTONE_BAD_VALUE);
        EXPECT(freestone_option_set("guard_sample", "1073741825") == FREESTONE_BAD_VALUE);
        EXPECT(freestone_option_get("guard_sample", &sample) == FREESTONE_OK && sample == 0);
    } else {
        EXPECT(!"a known argument");
    }
    puts("went on");
    return 0;
}
