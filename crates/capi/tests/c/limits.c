/* How much can be allocated under limits of address space, set before the start, after it, and raised; what an idle program costs. */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

/* The first block of a program, so that the allocator has started. */
static void *volatile first;

static void say(const char *what, size_t number) {
    char line[100];
    int length = snprintf(line, sizeof line, "%s %zu\n", what, number);
    if (write(1, line, (size_t)length) != length) {
        _exit(3);
    }
}

static void limit(int resource, rlim_t soft) {
    struct rlimit both;
    getrlimit(resource, &both);
    both.rlim_cur = soft;
    if (setrlimit(resource, &both)) {
        perror("setrlimit");
        _exit(2);
    }
}

/* Allocates pieces until that fails, or up to `most` bytes; writes to each. */
static size_t fill(size_t piece, size_t most) {
    size_t got = 0;
    char *volatile block;
    while (got < most && (block = malloc(piece))) {
        *block = 1;
        got += piece;
    }
    return got;
}

#define FREED_MOST 1000

static void *freed[FREED_MOST];
static size_t n_freed;
static pthread_barrier_t all_memory_is_used, all_is_freed;

static void *free_without_memory(void *unused) {
    pthread_barrier_wait(&all_memory_is_used);
    for (size_t n = 0; n < n_freed; n++) {
        free(freed[n]);
    }
    pthread_barrier_wait(&all_is_freed);
    return unused;
}

/* A thread frees blocks that has never allocated, while no address space is left for anything of its own. How much can be allocated then? */
static void freed_without_memory(void) {
    const size_t piece = 2000000;
    pthread_t thread;
    pthread_barrier_init(&all_memory_is_used, NULL, 2);
    pthread_barrier_init(&all_is_freed, NULL, 2);
    if (pthread_create(&thread, NULL, free_without_memory, NULL)) {
        _exit(4);
    }
    limit(RLIMIT_AS, 200 * MIB);
    while (n_freed < FREED_MOST && (freed[n_freed] = malloc(piece))) {
        n_freed++;
    }
    limit(RLIMIT_AS, 1);
    for (size_t rest = 300000; rest; rest /= 10) {
        fill(rest, SIZE_MAX);
    }
    pthread_barrier_wait(&all_memory_is_used);
    pthread_barrier_wait(&all_is_freed);
    limit(RLIMIT_AS, 210 * MIB);
    say("again", fill(piece, 2000 * MIB));
    limit(RLIMIT_AS, RLIM_INFINITY);
    pthread_join(thread, NULL);
}

/* Frees a list of blocks, each of which begins with the address of the next. */
static void *free_all(void *block) {
    while (block) {
        void *next = *(void **)block;
        free(block);
        block = next;
    }
    return NULL;
}

/* Another thread frees what this one has allocated, hundreds of thousands of blocks, when there is no more. How much can be allocated then, in longer blocks? */
static void freed_by_another(void) {
    pthread_t thread;
    void *list = NULL;
    limit(RLIMIT_AS, 280 * MIB);
    for (void **block; (block = malloc(500)); list = block) {
        *block = list;
    }
    /* For the thread's stack. */
    limit(RLIMIT_AS, 300 * MIB);
    if (pthread_create(&thread, NULL, free_all, list) || pthread_join(thread, NULL)) {
        _exit(4);
    }
    say("again", fill(3000, SIZE_MAX));
}

/* KiB of a line of /proc/self/status. */
static size_t status(const char *key) {
    static char line[256];
    size_t kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, file)) {
        if (!strncmp(line, key, strlen(key))) {
            sscanf(line + strlen(key), ": %zu", &kib);
        }
    }
    fclose(file);
    return kib;
}

/* KiB of private writable mappings: what is charged where memory is not overcommitted. */
static size_t charge(void) {
    static char line[1024];
    size_t bytes = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, file)) {
        size_t start, end;
        char access[5];
        sscanf(line, "%zx-%zx %4s", &start, &end, access);
        if (access[1] == 'w' && access[3] == 'p') {
            bytes += end - start;
        }
    }
    fclose(file);
    return bytes >> 10;
}

/* Page faults of the process so far: OS pages that it was given, whether it waited for them or the kernel populated them. */
static size_t faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_minflt;
}

/* Replaces 400 blocks of 16 to 1039 bytes at random. */
static void replace(void) {
    static char *volatile blocks[400];
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < 200000; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        size_t place = (random >> 20) % 400;
        free(blocks[place]);
        blocks[place] = malloc(16 + (random >> 40) % 1024);
        *blocks[place] = 1;
    }
}

/* Allocates and frees `n` blocks, at most 40,000, and gives all back. */
static void use_blocks(size_t n, size_t bytes) {
    static void *volatile blocks[40000];
    for (size_t i = 0; i < n; i++) {
        if (!(blocks[i] = malloc(bytes))) {
            _exit(4);
        }
        memset(blocks[i], 1, bytes);
    }
    for (size_t i = 0; i < n; i++) {
        free(blocks[i]);
    }
    malloc_trim(0);
}

/* 60 MB of long blocks, and of short ones. */
static void use_much(void) {
    use_blocks(60, 1000000);
    use_blocks(40000, 1500);
}

static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;

static void *wait_until_counted(void *unused) {
    pthread_mutex_lock(&counting);
    pthread_mutex_unlock(&counting);
    return unused;
}

/* How many threads with stacks of 1 MiB can exist at once. */
static size_t count_threads(void) {
    static pthread_t threads[1000];
    size_t n = 0;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, MIB);
    pthread_mutex_lock(&counting);
    while (n < 1000 && !pthread_create(&threads[n], &attributes, wait_until_counted, NULL)) {
        n++;
    }
    pthread_mutex_unlock(&counting);
    for (size_t i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
    }
    return n;
}

int main(int argc, char **argv) {
    size_t loaded = faults();
    const char *part = argc > 1 ? argv[1] : "";
    size_t piece = argc > 2 ? strtoul(argv[2], NULL, 10) : 65536;
    first = malloc(1000);
    if (!strcmp(part, "fill")) {
        say("got", fill(piece, SIZE_MAX));
    } else if (!strcmp(part, "later")) {
        limit(RLIMIT_AS, 48 * MIB);
        say("got", fill(piece, SIZE_MAX));
    } else if (!strcmp(part, "raised")) {
        say("got", fill(piece, 2048 * MIB));
        limit(RLIMIT_AS, RLIM_INFINITY);
        say("got", fill(piece, 2048 * MIB));
    } else if (!strcmp(part, "freed_without_memory")) {
        freed_without_memory();
    } else if (!strcmp(part, "freed_by_another")) {
        freed_by_another();
    } else if (!strcmp(part, "locked") || !strcmp(part, "locked_and_freed")) {
        if (mlockall(MCL_CURRENT | MCL_FUTURE)) {
            say("refused", 0);
            return 0;
        }
        if (!strcmp(part, "locked")) {
            free(malloc(100));
            free(malloc(100000));
        } else {
            use_much();
        }
        say("resident", status("VmRSS"));
    } else if (!strcmp(part, "threads_after")) {
        use_much();
        say("threads", count_threads());
    } else if (!strcmp(part, "charge_after")) {
        use_much();
        say("charge", charge());
    } else if (!strcmp(part, "charge")) {
        say("charge", charge());
    } else if (!strcmp(part, "faults")) {
        size_t allocated = faults();
        replace();
        size_t replaced = faults();
        say("loaded", loaded);
        say("allocated", allocated);
        say("replaced", replaced);
    } else {
        return 1;
    }
    return first ? 0 : 4;
}
