/*
 * The library of checked memory functions, which is preloaded; `checked_memory PART [FUNCTION]`.
 *
 * Functions are called through a table, so that the compiler knows nothing of them.
 */
#define _GNU_SOURCE
#include "expect.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <dlfcn.h>

void *__memcpy_chk(void *, const void *, size_t, size_t);
void *__memmove_chk(void *, const void *, size_t, size_t);
void *__mempcpy_chk(void *, const void *, size_t, size_t);
void *__memset_chk(void *, int, size_t, size_t);
char *__strcpy_chk(char *, const char *, size_t);
char *__stpcpy_chk(char *, const char *, size_t);
char *__strncpy_chk(char *, const char *, size_t, size_t);
char *__stpncpy_chk(char *, const char *, size_t, size_t);
char *__strcat_chk(char *, const char *, size_t);
char *__strncat_chk(char *, const char *, size_t, size_t);
void __explicit_bzero_chk(void *, size_t, size_t);
void *mempcpy(void *, const void *, size_t);
void *__mempcpy(void *, const void *, size_t);
char *__stpcpy(char *, const char *);
void explicit_bzero(void *, size_t);

/* Each writes `n` bytes at `to`, the last of them a zero if they are text, and reads no more at `from`. The fortified ones have `room`. */
static size_t room = SIZE_MAX;
#define FUNCTION(name, call) \
    static void use_##name(char *to, const char *from, size_t n) { \
        (void)from, (void)n; \
        call; \
    }
FUNCTION(memcpy, memcpy(to, from, n))
FUNCTION(memmove, memmove(to, from, n))
FUNCTION(mempcpy, EXPECT(mempcpy(to, from, n) == to + n))
FUNCTION(__mempcpy, EXPECT(__mempcpy(to, from, n) == to + n))
FUNCTION(bcopy, bcopy(from, to, n))
FUNCTION(memset, memset(to, 7, n))
FUNCTION(bzero, bzero(to, n))
FUNCTION(explicit_bzero, explicit_bzero(to, n))
FUNCTION(strcpy, strcpy(to, from))
FUNCTION(stpcpy, EXPECT(stpcpy(to, from) == to + n - 1))
FUNCTION(__stpcpy, EXPECT(__stpcpy(to, from) == to + n - 1))
FUNCTION(strncpy, strncpy(to, from, n))
FUNCTION(stpncpy, EXPECT(stpncpy(to, from, n) == to + n - 1))
FUNCTION(strcat, (to[0] = 0, strcat(to, from)))
FUNCTION(strncat, (to[0] = 0, strncat(to, from, n)))
FUNCTION(__memcpy_chk, __memcpy_chk(to, from, n, room))
FUNCTION(__memmove_chk, __memmove_chk(to, from, n, room))
FUNCTION(__mempcpy_chk, EXPECT(__mempcpy_chk(to, from, n, room) == to + n))
FUNCTION(__memset_chk, __memset_chk(to, 7, n, room))
FUNCTION(__strcpy_chk, __strcpy_chk(to, from, room))
FUNCTION(__stpcpy_chk, EXPECT(__stpcpy_chk(to, from, room) == to + n - 1))
FUNCTION(__strncpy_chk, __strncpy_chk(to, from, n, room))
FUNCTION(__stpncpy_chk, EXPECT(__stpncpy_chk(to, from, n, room) == to + n - 1))
FUNCTION(__strcat_chk, (to[0] = 0, __strcat_chk(to, from, room)))
FUNCTION(__strncat_chk, (to[0] = 0, __strncat_chk(to, from, n, room)))
FUNCTION(__explicit_bzero_chk, __explicit_bzero_chk(to, n, room))

enum Effect { COPIES, SETS, CLEARS };

static const struct {
    const char *name;
    void (*use)(char *, const char *, size_t);
    enum Effect effect;
    /* It copies text up to its end. */
    int is_text;
} functions[] = {
#define ROW(name, effect, is_text) {#name, use_##name, effect, is_text}
    ROW(memcpy, COPIES, 0),        ROW(memmove, COPIES, 0),       ROW(mempcpy, COPIES, 0),       ROW(__mempcpy, COPIES, 0),
    ROW(bcopy, COPIES, 0),         ROW(memset, SETS, 0),          ROW(bzero, CLEARS, 0),         ROW(explicit_bzero, CLEARS, 0),
    ROW(strcpy, COPIES, 1),        ROW(stpcpy, COPIES, 1),        ROW(__stpcpy, COPIES, 1),      ROW(strncpy, COPIES, 1),
    ROW(stpncpy, COPIES, 1),       ROW(strcat, COPIES, 1),        ROW(strncat, COPIES, 1),       ROW(__memcpy_chk, COPIES, 0),
    ROW(__memmove_chk, COPIES, 0), ROW(__mempcpy_chk, COPIES, 0), ROW(__memset_chk, SETS, 0),    ROW(__strcpy_chk, COPIES, 1),
    ROW(__stpcpy_chk, COPIES, 1),  ROW(__strncpy_chk, COPIES, 1), ROW(__stpncpy_chk, COPIES, 1), ROW(__strcat_chk, COPIES, 1),
    ROW(__strncat_chk, COPIES, 1), ROW(__explicit_bzero_chk, CLEARS, 0),
};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions };

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

/* Letters with an end. */
static void write_text(char *at, size_t n) {
    for (size_t i = 0; i + 1 < n; i++) at[i] = (char)('a' + i % 26);
    if (n) at[n - 1] = 0;
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
