/* Every function of the C interface beside every other: threads call them in an order drawn from a seed, begin and end threads, and fork. Blocks keep
 * their contents, and a child finds every lock free. The arguments are the number of calls of each thread, and a seed.
 *
 * Long because: it has a function for each kind of call. */
#include "expect.h"
#include "freestone.h"
#include <locale.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include <wchar.h>

#pragma weak _Znwm
#pragma weak _Znam
#pragma weak _ZdlPv
#pragma weak _ZdlPvm
#pragma weak _ZdaPv
void *_Znwm(size_t size);
void *_Znam(size_t size);
void _ZdlPv(void *block);
void _ZdlPvm(void *block, size_t size);
void _ZdaPv(void *block);

enum { THREADS = 4, OWN_MOST = 200, PASSED_MOST = 400, KEPT_OF_THREAD = 8 };

/* Which function frees a block. */
enum kind { OF_C, OF_ALIGNED, OF_NEW, OF_NEW_ARRAY, OF_HEAP };

struct block {
    unsigned char *start;
    size_t size;
    size_t align;
    enum kind kind;
    unsigned char filling;
};

struct thread {
    uint64_t state;
    int is_child;
    size_t n_own;
    struct block own[OWN_MOST];
};

static int n_calls;
static uint64_t seed;
/* Whether memory is so short that any allocation may fail. */
static int is_short;
static freestone_heap_t *common_heap;
static pthread_key_t last_block;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t n_passed;
static struct block passed[PASSED_MOST];

static size_t below(struct thread *self, size_t bound) {
    return (size_t)(next_random(&self->state) >> 11) % bound;
}

static size_t draw_size(struct thread *self) {
    switch (below(self, 40)) {
    case 0: return 1 + below(self, 3 << 20);
    case 1: case 2: case 3: return 1 + below(self, 100000);
    case 4: return below(self, 3);
    default: return 1 + below(self, 2000);
    }
}

/* So many bytes at each end of a block are looked at: blocks of some MiB would take all of the time. */
static size_t at_each_end(size_t size) {
    return size < 300 ? size : 300;
}

static void fill(struct block *block) {
    size_t n = at_each_end(block->size);
    memset(block->start, block->filling, n);
    memset(block->start + block->size - n, block->filling, n);
}

static void check(const struct block *block) {
    size_t n = at_each_end(block->size);
    for (size_t i = 0; i < n; i++) {
        EXPECT(block->start[i] == block->filling);
        EXPECT(block->start[block->size - 1 - i] == block->filling);
    }
    EXPECT(malloc_usable_size(block->start) >= block->size);
    EXPECT((uintptr_t)block->start % block->align == 0);
}

/* A block that is there; without memory none, and the reason. */
static int is_there(const void *start) {
    EXPECT(start || (is_short && errno == ENOMEM));
    return start != NULL;
}

static void add(struct thread *self, struct block block) {
    if (!is_there(block.start)) {
        return;
    }
    block.filling = (unsigned char)below(self, 255);
    fill(&block);
    self->own[self->n_own++] = block;
}

static void allocate(struct thread *self) {
    size_t size = draw_size(self), align = (size_t)16 << below(self, 10);
    void *start = NULL;
    /* Blocks of fewer bytes than 16 may have an alignment of 8. */
    size_t of_c = size < 16 ? 8 : 16;
    switch (below(self, 12)) {
    case 0:
        start = calloc(1, size);
        for (size_t i = 0; start && i < size; i += 97) {
            EXPECT(((unsigned char *)start)[i] == 0);
        }
        return add(self, (struct block){start, size, of_c, OF_C, 0});
    case 1: return add(self, (struct block){aligned_alloc(align, size), size, align, OF_ALIGNED, 0});
    case 2:
        errno = posix_memalign(&start, align, size);
        return add(self, (struct block){start, size, align, OF_C, 0});
    case 3: return add(self, (struct block){memalign(align, size), size, align, OF_C, 0});
    case 4: return add(self, (struct block){reallocarray(NULL, size, 1), size, of_c, OF_C, 0});
    case 5:
        if (_Znwm && _ZdlPvm && !is_short) {
            return add(self, (struct block){_Znwm(size), size, of_c, OF_NEW, 0});
        }
        break;
    case 6:
        if (_Znam && _ZdaPv && !is_short) {
            return add(self, (struct block){_Znam(size), size, of_c, OF_NEW_ARRAY, 0});
        }
        break;
    case 7: return add(self, (struct block){freestone_heap_malloc(common_heap, size), size, 16, OF_HEAP, 0});
    default: break;
    }
    add(self, (struct block){malloc(size), size, of_c, OF_C, 0});
}

static void release(struct thread *self, struct block block) {
    check(&block);
    switch (block.kind) {
    case OF_NEW: return below(self, 2) ? _ZdlPvm(block.start, block.size) : _ZdlPv(block.start);
    case OF_NEW_ARRAY: return _ZdaPv(block.start);
    case OF_ALIGNED:
        if (below(self, 2)) {
            return free_aligned_sized(block.start, block.align, block.size);
        }
        break;
    case OF_HEAP:
        if (below(self, 2)) {
            EXPECT(freestone_heap_free(common_heap, block.start) == 0);
            return;
        }
        break;
    case OF_C:
        if (block.align <= 16 && below(self, 2)) {
            return free_sized(block.start, block.size);
        }
        break;
    }
    free(block.start);
}

/* A block of this thread's, which is its no more. */
static struct block taken(struct thread *self) {
    size_t at = below(self, self->n_own);
    struct block block = self->own[at];
    self->own[at] = self->own[--self->n_own];
    return block;
}

static void resize(struct thread *self) {
    struct block block = taken(self);
    check(&block);
    if (block.kind != OF_C && block.kind != OF_HEAP) {
        return release(self, block);
    }
    size_t size = 1 + draw_size(self), kept = at_each_end(block.size < size ? block.size : size);
    unsigned char *start = block.kind == OF_HEAP ? freestone_heap_realloc(common_heap, block.start, size)
                                                 : realloc(block.start, size);
    if (!is_there(start)) {
        check(&block);
        self->own[self->n_own++] = block;
        return;
    }
    for (size_t i = 0; i < kept; i++) {
        EXPECT(start[i] == block.filling);
    }
    add(self, (struct block){start, size, size < 16 ? 8 : 16, block.kind, 0});
}

static int takes_all(const void *piece, size_t bytes, void *argument) {
    (void)piece, (void)bytes, (void)argument;
    return 0;
}

static int takes_text(const char *text, size_t bytes, void *context) {
    (void)text, (void)bytes, (void)context;
    return 0;
}

static void under_pressure(size_t in_use_bytes, void *argument) {
    (void)in_use_bytes, (void)argument;
    free(malloc(100));
}

static void ask(struct thread *self) {
    freestone_stats_t stats = {.size = sizeof stats};
    freestone_heap_stats_t of_heap = {.size = sizeof of_heap};
    uint64_t value;
    switch (below(self, 9)) {
    case 0: EXPECT(freestone_stats(&stats) == 0 && stats.committed > 0); break;
    case 1: EXPECT(freestone_stats_write(FREESTONE_STATS_JSON, takes_text, NULL) == 0 || is_short); break;
    case 2: EXPECT(freestone_heap_stats(common_heap, &of_heap) == 0); break;
    case 3: freestone_purge(); break;
    case 4:
#ifdef __GLIBC__
        malloc_trim(0);
#endif
        break;
    case 5: freestone_on_pressure(below(self, 4) ? under_pressure : NULL, NULL); break;
    case 6: EXPECT(freestone_option_get("decay_ms", &value) == 0); break;
    case 7: {
        FILE *nothing = fopen("/dev/null", "w");
        if (!is_there(nothing)) {
            break;
        }
#ifdef __GLIBC__
        errno = 0;
        EXPECT(malloc_info(0, nothing) == 0 || (is_short && errno == ENOMEM));
#endif
        fprintf(nothing, "%ls %.3000f", L"text", 1.0);
        fclose(nothing);
        break;
    }
    default: {
        locale_t locale = newlocale(LC_ALL_MASK, "C", NULL);
        if (is_there(locale)) {
            freelocale(locale);
        }
    }
    }
}

static void set(struct thread *self) {
    static const char *const settings[][2] = {
        {"decay_ms", "0"},      {"decay_ms", "1"},       {"decay_ms", "1000"},  {"dirty_max", "0"},      {"dirty_max", "16m"},
        {"background", "on"},   {"background", "off"},   {"background", "auto"}, {"purge", "free"},       {"purge", "dontneed"},
        {"thp", "off"},         {"thp", "on"},           {"thp", "auto"},       {"prefault", "touch"},   {"prefault", "off"},
        {"bin_max", "1"},       {"bin_max", "65536"},    {"bin_max", "64"},     {"span_size", "64k"},    {"span_size", "256k"},
        {"guard_sample", "1"},  {"guard_sample", "100"}, {"limit", "1m"},       {"limit", "1g"},         {"profile", "lean"},
        {"profile", "balanced"}, {"heap_profile_interval", "1k"}, {"heap_profile_interval", "512k"},
    };
    const char *const *setting = settings[below(self, sizeof settings / sizeof *settings)];
    /* A limit below what is in use is refused. */
    EXPECT(freestone_option_set(setting[0], setting[1]) == 0 || strcmp(setting[0], "limit") == 0);
}

static void profile(struct thread *self) {
    switch (below(self, 4)) {
    /* A sandbox refuses that. */
    case 0: EXPECT(freestone_profile_start() == 0 || getenv("FREESTONE_SANDBOX") || is_short); break;
    case 1: freestone_profile_stop(); break;
    case 2: EXPECT(freestone_profile_dump_to(takes_all, NULL, FREESTONE_PROFILE_LIVE, NULL) == 0); break;
    default: EXPECT(freestone_profile_dump("/dev/null", FREESTONE_PROFILE_PEAK, NULL) == 0);
    }
}

/* A heap whose last blocks end with it, and whose others are freed by `free`. */
static void heap_of_its_own(struct thread *self) {
    static const char *const levels[] = {NULL, "off", "checks", "full"};
    freestone_heap_shape_t shape = {.size = sizeof shape, .harden = levels[below(self, 4)], .limit = 64 << 20};
    freestone_heap_t *heap = freestone_heap_new_with(&shape, NULL), *owner = NULL;
    if (!is_there(heap)) {
        return;
    }
    for (size_t i = below(self, 30); i > 0; i--) {
        size_t size = 1 + draw_size(self);
        unsigned char *block = below(self, 2) ? freestone_heap_malloc(heap, size) : freestone_heap_calloc(heap, 1, size);
        if (!is_there(block)) {
            break;
        }
        block[size - 1] = 7;
        EXPECT(freestone_owner(block, &owner) == 0 && owner == heap);
        EXPECT(freestone_heap_usable_size(heap, block) >= size);
        if (i % 3) {
            free(block);
        }
    }
    freestone_heap_delete(heap);
}

static void call(struct thread *self);

/* The child of a fork has the one thread that forked, and may do everything. (qemu's own locks are not free in the child of a process with threads.) */
static void forks(struct thread *self) {
    if (getenv("EMULATED")) {
        return;
    }
    pid_t child = fork();
    EXPECT(child >= 0 || is_short);
    if (child == 0) {
        alarm(60);
        self->is_child = 1;
        for (int i = 0; i < 100; i++) {
            call(self);
        }
        _exit(0);
    }
    int status;
    EXPECT(child < 0 || (waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

/* Frees what it was given, and returns blocks of its own; its last one is freed when its heap is about to end. */
static void *lives_shortly(void *given) {
    struct block *blocks = given;
    struct thread self = {.state = (uint64_t)(uintptr_t)given | 1};
    for (int i = 0; i < KEPT_OF_THREAD; i++) {
        release(&self, blocks[i]);
        struct block block = {malloc(100 + 64 * (size_t)i), 100 + 64 * (size_t)i, 16, OF_C, (unsigned char)i};
        if (is_there(block.start)) {
            fill(&block);
        }
        blocks[i] = block;
    }
    EXPECT(pthread_setspecific(last_block, malloc(below(&self, 5000))) == 0 || is_short);
    return given;
}

static void begins_a_thread(struct thread *self) {
    if (self->n_own < KEPT_OF_THREAD) {
        return;
    }
    struct block *blocks = malloc(KEPT_OF_THREAD * sizeof *blocks);
    if (!is_there(blocks)) {
        return;
    }
    for (int i = 0; i < KEPT_OF_THREAD; i++) {
        blocks[i] = taken(self);
    }
    pthread_t thread;
    int error = pthread_create(&thread, NULL, lives_shortly, blocks);
    EXPECT(error == 0 ? pthread_join(thread, NULL) == 0 : is_short);
    for (int i = 0; i < KEPT_OF_THREAD; i++) {
        if (blocks[i].start) {
            self->own[self->n_own++] = blocks[i];
        }
    }
    free(blocks);
}

/* Gives a block to the others, or takes one of theirs. Another thread may have had the lock when a child was born. */
static void exchange(struct thread *self) {
    if (self->is_child) {
        return;
    }
    pthread_mutex_lock(&lock);
    if (self->n_own > 0 && n_passed < PASSED_MOST && below(self, 2)) {
        passed[n_passed++] = taken(self);
    } else if (n_passed > 0 && self->n_own < OWN_MOST) {
        self->own[self->n_own++] = passed[--n_passed];
    }
    pthread_mutex_unlock(&lock);
}

static void call(struct thread *self) {
    size_t what = below(self, 1000);
    if (self->n_own == OWN_MOST || what < 20) {
        while (self->n_own > OWN_MOST / 2) {
            release(self, taken(self));
        }
    } else if (what < 400 || self->n_own == 0) {
        allocate(self);
    } else if (what < 600) {
        release(self, taken(self));
    } else if (what < 720) {
        resize(self);
    } else if (what < 900) {
        exchange(self);
    } else if (what < 940) {
        ask(self);
    } else if (what < 960) {
        set(self);
    } else if (what < 970) {
        profile(self);
    } else if (what < 980) {
        heap_of_its_own(self);
    } else if (what < 990 && !self->is_child) {
        begins_a_thread(self);
    } else if (what < 992 && !self->is_child) {
        forks(self);
    }
}

static void *runs(void *number) {
    static struct thread threads[THREADS];
    struct thread *self = &threads[(uintptr_t)number];
    self->state = (seed * THREADS + (uint64_t)(uintptr_t)number + 1) * 0x9E3779B97F4A7C15;
    for (int i = 0; i < n_calls; i++) {
        call(self);
    }
    while (self->n_own > 0) {
        release(self, taken(self));
    }
    return NULL;
}

int main(int argc, char **argv) {
    EXPECT(argc == 3);
    is_short = getenv("MEMORY_IS_SHORT") != NULL;
    n_calls = atoi(argv[1]);
    seed = strtoull(argv[2], NULL, 10);
    common_heap = freestone_heap_new();
    EXPECT(common_heap && pthread_key_create(&last_block, free) == 0);
    pthread_t threads[THREADS];
    pthread_attr_t attributes;
    EXPECT(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, 256 << 10) == 0);
    size_t n_started = 0;
    while (n_started < THREADS && pthread_create(&threads[n_started], &attributes, runs, (void *)n_started) == 0) {
        n_started++;
    }
    EXPECT(n_started == THREADS || is_short);
    for (size_t i = 0; i < n_started; i++) {
        EXPECT(pthread_join(threads[i], NULL) == 0);
    }
    struct thread self = {.state = 77};
    while (n_passed > 0) {
        release(&self, passed[--n_passed]);
    }
    freestone_heap_delete(common_heap);
    return 0;
}
