/* Libraries that are loaded and unloaded, and several copies of the allocator in one process. Arguments: a part, and the libraries it loads. */
#define _GNU_SOURCE
#include "expect.h"
#include "freestone.h"
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>

/* One copy of the allocator, by its own functions. */
struct copy {
    void *library;
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    size_t (*usable)(void *);
    size_t (*purge)(void);
};

static void *symbol(void *library, const char *name) {
    void *found = dlsym(library, name);
    EXPECT(found);
    return found;
}

static struct copy copy_of(void *library) {
    if (!library) {
        const char *why = dlerror();
        fprintf(stderr, "%s\n", why ? why : "not loaded");
        exit(1);
    }
    struct copy copy = {
        .library = library,
        .malloc = symbol(library, "malloc"),
        .calloc = symbol(library, "calloc"),
        .realloc = symbol(library, "realloc"),
        .free = symbol(library, "free"),
        .usable = symbol(library, "malloc_usable_size"),
        .purge = symbol(library, "freestone_purge"),
    };
    return copy;
}

static struct copy own(void) {
    struct copy copy = {.malloc = malloc, .calloc = calloc, .realloc = realloc, .free = free, .usable = malloc_usable_size};
    return copy;
}

/* A stream of every size through one copy; contents are checked, and each block is freed by the copy that allocated it. */
static void use(const struct copy *copy, uint64_t seed) {
    enum { N = 128 };
    unsigned char *blocks[N] = {0};
    size_t sizes[N];
    uint64_t state = seed * 2654435761u + 1;
    for (int round = 0; round < 4000; round++) {
        int at = (int)(next_random(&state) % N);
        if (blocks[at]) {
            EXPECT(blocks[at][0] == (unsigned char)at && blocks[at][sizes[at] - 1] == (unsigned char)at);
            EXPECT(copy->usable(blocks[at]) >= sizes[at]);
            copy->free(blocks[at]);
            blocks[at] = NULL;
            continue;
        }
        sizes[at] = next_random(&state) % (next_random(&state) % 32 ? 3000 : 300000) + 1;
        blocks[at] = round % 3 ? copy->malloc(sizes[at]) : copy->calloc(1, sizes[at]);
        EXPECT(blocks[at] && (round % 3 || blocks[at][sizes[at] - 1] == 0));
        if (round % 7 == 0) {
            sizes[at] += 1000;
            EXPECT(blocks[at] = copy->realloc(blocks[at], sizes[at]));
        }
        memset(blocks[at], at, sizes[at]);
    }
    for (int at = 0; at < N; at++) {
        copy->free(blocks[at]);
    }
}

static struct copy copies[3];
static int n_copies;

/* A thread uses every copy, leaves a block of each behind and ends. */
static void *thread_body(void *blocks) {
    for (int i = 0; i < n_copies; i++) {
        use(&copies[i], (uintptr_t)blocks);
        EXPECT(((void **)blocks)[i] = memset(copies[i].malloc(700), i, 700));
    }
    return NULL;
}

/* Threads that start and exit with heaps in all copies at once, in turn and together. */
static void use_all(void) {
    for (int round = 0; round < 20; round++) {
        enum { N = 4 };
        pthread_t threads[N];
        void *left[N][3];
        for (int i = 0; i < N; i++) {
            EXPECT(pthread_create(&threads[i], NULL, thread_body, left[i]) == 0);
        }
        for (int i = 0; i < N; i++) {
            EXPECT(pthread_join(threads[i], NULL) == 0);
            for (int j = 0; j < n_copies; j++) {
                EXPECT(*(char *)left[i][j] == j);
                copies[j].free(left[i][j]);
            }
        }
        for (int j = 0; j < n_copies; j++) {
            use(&copies[j], (uint64_t)round + 100);
            if (copies[j].purge) {
                copies[j].purge();
            }
        }
    }
}

/* A thread that has a heap in the last copy only. It frees a block that a thread with a heap in each has from that copy. */
static void *thread_of_last_copy(void *block) {
    use(&copies[n_copies - 1], 7);
    copies[n_copies - 1].free(block);
    return NULL;
}

static void *(*plugin_block)(size_t);
static void (*plugin_keep)(void);

static void *thread_of_plugin(void *unused) {
    plugin_keep();
    return unused;
}

/* A plugin is loaded and unloaded; its blocks outlive it. */
static void come_and_go(const char *path) {
    void *left[64] = {0};
    for (int round = 0; round < 300; round++) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        EXPECT(library);
        *(void **)&plugin_block = symbol(library, "plugin_block");
        *(void **)&plugin_keep = symbol(library, "plugin_keep");
        size_t bytes = round % 16 ? 16 + (size_t)round * 8 : 200000;
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, thread_of_plugin, NULL) == 0 && pthread_join(thread, NULL) == 0);
        void **slot = &left[round % 64];
        EXPECT(!*slot || *(char *)*slot == 9);
        free(*slot);
        EXPECT(*slot = plugin_block(bytes));
        EXPECT(dlclose(library) == 0 && !dlopen(path, RTLD_NOW | RTLD_NOLOAD));
    }
    for (int i = 0; i < 64; i++) {
        free(left[i]);
    }
}

/* The library itself is opened and closed: it stays loaded, with its blocks and its thread-exit hooks. */
static void closed_library_stays(const char *path) {
    copies[n_copies++] = copy_of(dlopen(path, RTLD_NOW | RTLD_LOCAL));
    void *block = copies[0].malloc(100);
    EXPECT(block && dlclose(copies[0].library) == 0);
    memset(block, 1, 100);
    copies[0].free(block);
    use_all();
}

int main(int argc, char **argv) {
    alarm(100);
    EXPECT(argc >= 3);
    if (!strcmp(argv[1], "plugin")) {
        come_and_go(argv[2]);
        return 0;
    }
    if (!strcmp(argv[1], "close")) {
        closed_library_stays(argv[2]);
        return 0;
    }
    copies[n_copies++] = own();
    if (!strcmp(argv[1], "copies")) {
        /* Each file is a copy of its own, because its name differs. */
        for (int i = 2; i < argc; i++) {
            copies[n_copies++] = copy_of(dlopen(argv[i], RTLD_NOW | RTLD_LOCAL));
        }
    } else if (!strcmp(argv[1], "namespace")) {
        /* Their C libraries number the threads' values alike, and all keep them in one place. */
        for (int i = 2; i < argc; i++) {
            copies[n_copies++] = copy_of(dlmopen(LM_ID_NEWLM, argv[i], RTLD_NOW | RTLD_LOCAL));
        }
    } else {
        return 2;
    }
    for (int i = 1; i < n_copies; i++) {
        EXPECT(copies[i].malloc != copies[i - 1].malloc);
    }
    use_all();
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        void *block = copies[n_copies - 1].malloc(1000);
        EXPECT(block && pthread_create(&thread, NULL, thread_of_last_copy, block) == 0 && pthread_join(thread, NULL) == 0);
    }
    /* The heaps of all threads have ended with them, and no others. Those of a copy in another namespace have not: glibc runs no hooks there. */
    freestone_stats_t stats = {.size = sizeof stats};
    EXPECT(freestone_stats(&stats) == 0);
    if (stats.n_threads > 4) {
        fprintf(stderr, "%d heaps of threads that are gone\n", (int)stats.n_threads);
        return 1;
    }
    return 0;
}
