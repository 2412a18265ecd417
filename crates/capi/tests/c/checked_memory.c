/*
 * The library of checked memory functions, which is preloaded; `checked_memory PART [FUNCTION]`.
 *
 * Functions are called through a table, so that the compiler knows nothing of them.
 */
#define _GNU_SOURCE
#include "memory_functions.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <dlfcn.h>

static void names(const char *unused) {
    (void)unused;
    for (int i = 0; i < N_FUNCTIONS; i++) puts(functions[i].name);
}

static int number_of(const char *name) {
    for (int i = 0; i < N_FUNCTIONS; i++)
        if (!strcmp(functions[i].name, name)) return i;
    EXPECT(!"a function of that name");
    return 0;
}

/* Uses a function between two blocks that are exactly long enough, at the end of each. */
static void use_in_blocks(int function, size_t size, size_t n) {
    char *from = malloc(size), *to = malloc(size);
    EXPECT(from && to);
    write_text(from + size - n, n);
    functions[function].use(to + size - n, from + size - n, n);
    free(HIDE(from));
    free(HIDE(to));
}

/* Every function up to the last byte of blocks of every kind: no report. */
static void inside(const char *unused) {
    (void)unused;
    static const size_t sizes[] = {1, 8, 28, 100, 1000, 4096, 20000, 40000, 262144, 5 << 20};
    for (int i = 0; i < N_FUNCTIONS; i++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            use_in_blocks(i, sizes[s], sizes[s]);
            use_in_blocks(i, sizes[s], 1);
            if (!functions[i].is_text) use_in_blocks(i, sizes[s], 0);
        }
    /* Nothing at the end of a block is no access beyond it. */
    char *block = malloc(8);
    memcpy(HIDE(block + 8), HIDE(block), HIDE(0ul));
    free(HIDE(block));
}

/* One byte behind a block is written. */
static void write_behind(const char *name) {
    char text[65], *block = malloc(64);
    write_text(text, sizeof text);
    functions[number_of(name)].use(HIDE(block), text, sizeof text);
    puts("done");
}

/* One byte behind a block is read. */
static void read_behind(const char *name) {
    char to[65], *block = malloc(64), *end = malloc(64);
    /* Strings end in the next block. */
    memset(block, 'x', 64);
    memset(end, 0, 64);
    functions[number_of(name)].use(to, HIDE(block), sizeof to);
    puts("done");
}

/* A freed block is written. */
static void write_freed(const char *name) {
    char text[64], *block = malloc(64);
    write_text(text, sizeof text);
    free(HIDE(block));
    functions[number_of(name)].use(HIDE(block), text, sizeof text);
    puts("done");
}

/* From the middle of a large block beyond its end. */
static void behind_a_large_block(const char *unused) {
    (void)unused;
    size_t size = (40 << 20) + 77;
    char *block = malloc(size);
    for (size_t at = 0; at < size; at += 999983) memset(HIDE(block) + at, 1, size - at < 10000 ? size - at : 10000);
    memset(HIDE(block) + (30 << 20), 1, size - (30 << 20) + 1);
    puts("done");
}

/* More than the compiler says there is room for. */
static void beyond_the_room(const char *name) {
    char text[64], to[64];
    write_text(text, sizeof text);
    room = 63;
    functions[number_of(name)].use(to, text, sizeof text);
    puts("done");
}

/* Every function does what a loop over bytes does, in blocks and in static memory, overlapping where that is allowed. */
static void model(const char *unused) {
    (void)unused;
    enum { LENGTH = 1 << 14 };
    uint64_t state = 1;
    static char memory[LENGTH], expected[LENGTH];
    char *block = malloc(LENGTH), *area[2] = {memory, block};
    for (int round = 0; round < 20000; round++) {
        int function = (int)(next_random(&state) % N_FUNCTIONS), is_block = round & 1, is_text = functions[function].is_text;
        char *at = area[is_block];
        size_t n = next_random(&state) % (round % 64 ? 300 : LENGTH / 2);
        n += is_text && !n;
        size_t from = next_random(&state) % (LENGTH - n + 1), to = next_random(&state) % (LENGTH - n + 1);
        if (is_text && from < to + n && to < from + n) continue;
        for (size_t i = 0; i < 16; i++) at[next_random(&state) % LENGTH] = (char)next_random(&state);
        if (is_text) write_text(at + from, n);
        size_t least = from < to ? from : to, most = (from > to ? from : to) + n;
        for (size_t i = least; i < most; i++) expected[i] = at[i];
        for (size_t i = 0; i < n; i++) {
            enum Effect effect = functions[function].effect;
            expected[to + i] = effect == COPIES ? at[from + i] : effect == SETS ? 7 : 0;
        }
        functions[function].use(at + to, at + from, n);
        for (size_t i = least; i < most; i++) EXPECT(expected[i] == at[i]);
    }
    free(HIDE(block));
}

static char *volatile in_handler;

static void copies(int signal) {
    (void)signal;
    char buffer[100];
    memcpy(in_handler, HIDE(&buffer[0]), sizeof buffer);
    memcpy(HIDE(&buffer[0]), in_handler + (3 << 20), sizeof buffer);
}

static void *allocates(void *unused) {
    uint64_t state = 1;
    for (int i = 0; i < 20000; i++) {
        char *block = malloc(1 + next_random(&state) % 100000);
        EXPECT(block);
        block[0] = 1;
        free(HIDE(block));
    }
    return unused;
}

/* Signal handlers copy while the thread that they interrupt is in the allocator. */
static void in_signal_handlers(const char *unused) {
    (void)unused;
    in_handler = malloc(4 << 20);
    signal(SIGALRM, copies);
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    pthread_t thread;
    EXPECT(!pthread_create(&thread, NULL, allocates, NULL));
    EXPECT(!pthread_join(thread, NULL));
    setitimer(ITIMER_REAL, &never, NULL);
    free(HIDE((char *)in_handler));
}

/* A forked child copies in the blocks that it has from its parent and in its own, and is told of a write behind one. */
static void in_a_child(const char *name) {
    char *block = malloc(64);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (!child) {
        memset(HIDE(block), 1, 64);
        inside(name);
        write_behind(name);
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    inside(name);
    free(HIDE(block));
}

/* Blocks of an explicit heap, up to their last byte, and behind it. */
static void in_an_explicit_heap(const char *name) {
    void *(*new_heap)(void) = (void *(*)(void))dlsym(RTLD_DEFAULT, "freestone_heap_new");
    void *(*allocate)(void *, size_t) = (void *(*)(void *, size_t))dlsym(RTLD_DEFAULT, "freestone_heap_malloc");
    EXPECT(new_heap && allocate);
    char text[65], *block = NULL;
    void *heap = new_heap();
    EXPECT(heap);
    write_text(text, sizeof text);
    for (int i = 0; i < 1000; i++) {
        block = allocate(heap, 65);
        EXPECT(block);
        functions[number_of(name)].use(HIDE(block), text, sizeof text);
    }
    char *large = allocate(heap, 1 << 20);
    EXPECT(large);
    memset(HIDE(large), 1, 1 << 20);
    EXPECT(puts("inside") >= 0 && !fflush(stdout));
    functions[number_of(name)].use(HIDE(block) + 1, text, sizeof text);
    puts("done");
}

int main(int n, char **words) {
    static const struct {
        const char *name;
        void (*run)(const char *);
    } parts[] = {
        {"names", names},
        {"inside", inside},
        {"write_behind", write_behind},
        {"read_behind", read_behind},
        {"write_freed", write_freed},
        {"behind_a_large_block", behind_a_large_block},
        {"beyond_the_room", beyond_the_room},
        {"model", model},
        {"in_signal_handlers", in_signal_handlers},
        {"in_a_child", in_a_child},
        {"in_an_explicit_heap", in_an_explicit_heap},
    };
    EXPECT(n >= 2);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strcmp(parts[i].name, words[1])) return parts[i].run(n > 2 ? words[2] : ""), 0;
    return 2;
}
