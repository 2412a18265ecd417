/* Heap profiles. Arguments: what to do, and how often. */
#include <dlfcn.h>
#include <errno.h>
#include <freestone_error.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "expect.h"

int freestone_profile_start(void) __attribute__((weak));
void freestone_profile_stop(void) __attribute__((weak));
int freestone_profile_dump(const char *, int, freestone_error_t *) __attribute__((weak));
int freestone_profile_dump_fd(int, int, freestone_error_t *) __attribute__((weak));
int freestone_profile_dump_to(int (*)(const void *, size_t, void *), void *, int, freestone_error_t *) __attribute__((weak));
size_t freestone_error_text(const freestone_error_t *, char *, size_t) __attribute__((weak));

static long n_times;

/* Code without call frame information: calls `function` with 100, and returns. */
static void *generated(void *(*function)(size_t)) {
#ifdef __x86_64__
    /* sub rsp, 8; mov edi, 100; mov rax, function; call rax; add rsp, 8; ret */
    unsigned char code[] = {0x48, 0x83, 0xec, 8, 0xbf, 100, 0, 0, 0, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0, 0x48, 0x83, 0xc4, 8, 0xc3};
    memcpy(code + 11, &function, 8);
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(page != MAP_FAILED);
    memcpy(page, code, sizeof code);
    EXPECT(!mprotect(page, 4096, PROT_READ | PROT_EXEC));
    return ((void *(*)(void))page)();
#else
    return function(100);
#endif
}

/* Whether a profile with this number is there, where the environment says. */
static int is_written(int number) {
    char path[4096];
    snprintf(path, sizeof path, "%s.%d", getenv("PROFILE"), number);
    return access(path, F_OK) == 0;
}

static void wait_for(int number) {
    for (int n = 0; !is_written(number); n++) {
        EXPECT(n < 6000);
        usleep(10000);
    }
}

/* Signals until a profile is there: the first of them starts profiling. Nothing is allocated meanwhile. */
static void signals(void) {
    free(malloc(100));
    for (int n = 0; !is_written(1); n++) {
        EXPECT(n < 6000 && !kill(getpid(), SIGUSR1));
        usleep(10000);
    }
    /* A child of one thread. */
    pid_t child = fork();
    if (child == 0) {
        free(malloc(5000));
        for (int n = 0, was = !is_written(3); was && !is_written(3); n++) {
            EXPECT(n < 6000 && !kill(getpid(), SIGUSR1));
            usleep(10000);
        }
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

static int n_handled;
static void on_own_signal(int number) { n_handled += number == SIGUSR1; }

/* A handler of the program's own. */
static void handled(void) {
    free(malloc(100));
    signal(SIGUSR1, on_own_signal);
    EXPECT(!raise(SIGUSR1) && n_handled == 1);
}

/* 10 MiB, of which little is live at any time. */
static void pass(void) {
    for (int n = 0; n < 10 << 10; n++) free(malloc(1024));
}

/* 10 MiB, twice. */
static void *grow(void *argument) {
    void *blocks[20];
    for (int round = 0; round < 2; round++) {
        for (int n = 0; n < 20; n++) EXPECT(blocks[n] = malloc(512 << 10));
        for (int n = 0; n < 20; n++) free(blocks[n]);
    }
    return argument;
}

/* On the smallest stack there is. */
static void grow_on_tiny(void) {
    pthread_t thread;
    pthread_attr_t attributes;
    EXPECT(!pthread_attr_init(&attributes) && !pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN)));
    EXPECT(!pthread_create(&thread, &attributes, grow, NULL) && !pthread_join(thread, NULL));
}

enum { STACK = 256 << 10, UNUSED = 0x5a, MOST_USED = 6 << 10 };
static char stack[STACK] __attribute__((aligned(4096)));
static char *top;

/* Grows by large blocks, and by small ones. */
static void *grow_measured(void *argument) {
    char here;
    top = &here;
    grow(NULL);
    for (int n = 0; n < 4000; n++) EXPECT(malloc(1000));
    return argument;
}

/* On a stack of which the deepest byte that is used is told afterwards: the smallest stacks have 9 KiB for program and allocator. */
static void grow_on_measured(void) {
    pthread_t thread;
    pthread_attr_t attributes;
    memset(stack, UNUSED, STACK);
    EXPECT(!pthread_attr_init(&attributes) && !pthread_attr_setstack(&attributes, stack, STACK));
    EXPECT(!pthread_create(&thread, &attributes, grow_measured, NULL) && !pthread_join(thread, NULL));
    char *deepest = stack;
    while (*deepest == UNUSED) deepest++;
    if (top - deepest > MOST_USED) fprintf(stderr, "%td bytes of the stack were used\n", top - deepest);
}

__attribute__((noinline)) void *site_small(void) { return malloc(100); }
__attribute__((noinline)) void *site_large(void) { return malloc(3 << 20); }

static int refuse(const void *piece, size_t bytes, void *argument) {
    EXPECT(piece && bytes && argument);
    return -7;
}

static int n_pieces;
static int count(const void *piece, size_t bytes, void *argument) {
    EXPECT(piece && bytes && !argument);
    n_pieces++;
    return 0;
}

/* Each refusal is a code, has its details in the error, and leaves errno alone. */
static void refusals(void) {
    freestone_error_t error;
    char text[200];
    EXPECT(freestone_profile_start() == FREESTONE_OK);
    errno = EDOM;
    EXPECT(freestone_profile_dump("/dev/full", 0, &error) == 211 && error.code == 211 && error.value == ENOSPC);
    EXPECT(freestone_error_text(&error, text, sizeof text) && strstr(text, "28"));
    EXPECT(freestone_profile_dump("/no/such/folder", 0, &error) == 211 && error.value == ENOENT);
    EXPECT(freestone_profile_dump("/dev/full", 0, NULL) == 211);
    EXPECT(freestone_profile_dump(NULL, 7, &error) == 210 && error.code == 210 && error.value == 0);
    EXPECT(freestone_profile_dump_fd(99, 0, &error) == 211 && error.value == EBADF);
    EXPECT(freestone_profile_dump_to(NULL, NULL, 0, &error) == 210);
    EXPECT(freestone_profile_dump_to(count, NULL, -1, &error) == 210 && n_pieces == 0);
    EXPECT(freestone_profile_dump_to(refuse, &error, 0, NULL) == -7);
    EXPECT(freestone_profile_dump_to(count, NULL, 0, NULL) == FREESTONE_OK && n_pieces > 0);
    EXPECT(errno == EDOM);
}

static char dumped[1 << 20];
static size_t n_dumped;
static int keep(const void *piece, size_t bytes, void *argument) {
    EXPECT(n_dumped + bytes < sizeof dumped && !argument);
    memcpy(dumped + n_dumped, piece, bytes);
    dumped[n_dumped += bytes] = 0;
    return 0;
}

/* How many stacks of the profile go through `inner`, and how many of these go on to `outer`: functions of at most 256 bytes. */
static void count_stacks(const char *inner, const char *outer, int counts[2]) {
    counts[0] = counts[1] = 0;
    for (char *line = strtok(dumped, "\n"); line && strcmp(line, "MAPPED_LIBRARIES:"); line = strtok(NULL, "\n")) {
        int has[2] = {0, 0};
        for (char *at = strstr(line, " 0x"); at; at = strstr(at + 1, " 0x")) {
            unsigned long address = strtoul(at, NULL, 16);
            has[0] |= address - (unsigned long)inner < 256;
            has[1] |= address - (unsigned long)outer < 256;
        }
        counts[0] += has[0];
        counts[1] += has[0] && has[1];
    }
}

typedef void *plugin_function(void *(*)(size_t));
__attribute__((noinline)) static void *call_plugin(plugin_function *function) {
    void *block = function(malloc);
    EXPECT(block);
    return block;
}

/* Libraries that are loaded one after the other, mostly at one address: their functions have frames of other sizes. */
static void reload(const char *paths) {
    char *copy = strdup(paths), *last = NULL;
    int n_same = 0;
    for (char *path = strtok_r(copy, ":", &last), *before = NULL; path; path = strtok_r(NULL, ":", &last)) {
        void *plugin = dlopen(path, RTLD_NOW);
        EXPECT(plugin);
        plugin_function *function = (plugin_function *)dlsym(plugin, "plugin_block");
        EXPECT(function);
        n_same += (char *)function == before;
        before = (char *)function;
        void *block = call_plugin(function);
        n_dumped = 0;
        EXPECT(!freestone_profile_dump_to(keep, NULL, 0, NULL));
        int counts[2];
        count_stacks(before, (char *)call_plugin, counts);
        EXPECT(counts[0] >= 1 && counts[0] == counts[1]);
        free(block);
        EXPECT(!dlclose(plugin));
    }
    free(copy);
    printf("%d\n", n_same);
}

int main(int argc, char **argv) {
    EXPECT(argc == 3);
    if (!strcmp(argv[1], "reload")) {
        reload(argv[2]);
        return 0;
    }
    n_times = atol(argv[2]);
    if (!strcmp(argv[1], "signals")) signals();
    if (!strcmp(argv[1], "handled")) handled();
    if (!strcmp(argv[1], "pass")) pass();
    if (!strcmp(argv[1], "grow")) grow(NULL);
    if (!strcmp(argv[1], "grow_on_tiny")) grow_on_tiny();
    if (!strcmp(argv[1], "grow_on_measured")) grow_on_measured();
    if (!strcmp(argv[1], "wait")) {
        free(malloc(100));
        /* When there is a fourth, the third is whole. */
        wait_for(4);
    }
    if (!strcmp(argv[1], "generated"))
        for (long n = 0; n < n_times; n++) free(generated(malloc));
    if (!strcmp(argv[1], "sites")) {
        for (long n = 0; n < n_times; n++) EXPECT(site_small());
        for (int n = 0; n < 20; n++) EXPECT(site_large());
    }
    if (!strcmp(argv[1], "dump")) {
        refusals();
        freestone_profile_stop();
        EXPECT(!freestone_profile_dump_fd(1, 1, NULL));
    }
    return 0;
}
