/* How memory is returned: the background thread, limits, the callback; by argument. Every part must end; an alarm enforces that.
   Long because: one program, so that its parts share the helpers that read the figures of the process. */
#define _GNU_SOURCE
#include "expect.h"
#include "freestone.h"
#include <dirent.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

static void sleep_ms(long ms) {
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static long resident_mib(void) {
    return resident_kib() / 1024;
}

/* Finds the line of a file that begins with `name`. */
static int line_of(const char *path, const char *name, char *line, int size) {
    FILE *file = fopen(path, "r");
    int found = 0;
    while (file && !found && fgets(line, size, file)) {
        found = strncmp(line, name, strlen(name)) == 0;
    }
    if (file) {
        fclose(file);
    }
    return found;
}

/* Threads of this process called "freestone"; each has all signals blocked that can be. */
static int background_threads(void) {
    int n = 0;
    char path[300], line[300];
    DIR *tasks = opendir("/proc/self/task");
    EXPECT(tasks);
    for (struct dirent *task; (task = readdir(tasks));) {
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        if (line_of(path, "Name:", line, sizeof line) && strstr(line, "freestone")) {
            n++;
            EXPECT(line_of(path, "SigBlk:", line, sizeof line));
            unsigned long long blocked = strtoull(line + 7, NULL, 16);
            /* All but SIGKILL, SIGSTOP and the C library's own two or three; an emulator keeps some for itself. */
            EXPECT(getenv("EMULATED") || (blocked | 1ull << 8 | 1ull << 18 | 7ull << 31) == ~0ull);
        }
    }
    closedir(tasks);
    return n;
}

/* Waits until there are as many of these threads as expected, however busy the machine is: a thread names itself, once it runs. */
static void expect_background_threads(int expected) {
    while (background_threads() != expected) {
        sleep_ms(10);
    }
}

enum { N_BLOCKS = 200000, BLOCK_BYTES = 500 };
static void *blocks[N_BLOCKS];

static void burst(void) {
    for (int i = 0; i < N_BLOCKS; i++) {
        EXPECT((blocks[i] = malloc(BLOCK_BYTES)));
        memset(blocks[i], 1, BLOCK_BYTES);
    }
    for (int i = 0; i < N_BLOCKS; i++) {
        free(blocks[i]);
    }
}

static pthread_barrier_t burst_over, leave;

static void *burst_and_wait(void *unused) {
    burst();
    pthread_barrier_wait(&burst_over);
    pthread_barrier_wait(&leave);
    return unused;
}

static void *small_block(void *unused) {
    free(malloc(10));
    return unused;
}

/* A thread has a burst, and then no thread makes a call: memory goes back all the same. */
static void background(int expected) {
    burst();
    EXPECT(background_threads() == 0);
    pthread_t thread;
    pthread_barrier_init(&burst_over, NULL, 2);
    pthread_barrier_init(&leave, NULL, 2);
    EXPECT(pthread_create(&thread, NULL, burst_and_wait, NULL) == 0);
    pthread_barrier_wait(&burst_over);
    expect_background_threads(expected);
    if (expected) {
        freestone_stats_t stats = {.size = sizeof stats};
        do {
            sleep_ms(50);
            EXPECT(freestone_stats(&stats) == 0);
        } while (stats.dirty != 0);
        EXPECT(resident_mib() < 30);
    }
    pid_t child = fork();
    if (child == 0) {
        EXPECT(background_threads() == 0);
        burst();
        EXPECT(pthread_create(&thread, NULL, small_block, NULL) == 0 && pthread_join(thread, NULL) == 0);
        /* It started with the second thread, or never. */
        _exit(background_threads() <= expected ? 0 : 1);
    }
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    pthread_barrier_wait(&leave);
    EXPECT(pthread_join(thread, NULL) == 0);
}

/* Nanoseconds of processor time of the background thread; 0 if there is none. */
static unsigned long long background_ran_ns(void) {
    char path[300], line[300];
    unsigned long long ns = 0;
    DIR *tasks = opendir("/proc/self/task");
    EXPECT(tasks);
    for (struct dirent *task; (task = readdir(tasks));) {
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        if (line_of(path, "Name:", line, sizeof line) && strstr(line, "freestone")) {
            snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", task->d_name);
            EXPECT(line_of(path, "", line, sizeof line));
            ns = strtoull(line, NULL, 10);
        }
    }
    closedir(tasks);
    return ns;
}

/* Much memory is dirty and never expires: the background thread still sleeps. */
static void dirty_for_good(void) {
    pthread_t thread;
    pthread_barrier_init(&burst_over, NULL, 2);
    pthread_barrier_init(&leave, NULL, 2);
    EXPECT(pthread_create(&thread, NULL, burst_and_wait, NULL) == 0);
    pthread_barrier_wait(&burst_over);
    expect_background_threads(1);
    freestone_stats_t stats = {.size = sizeof stats};
    EXPECT(freestone_stats(&stats) == 0 && stats.dirty > 0);
    unsigned long long before;
    do {
        before = background_ran_ns();
        sleep_ms(100);
    } while (before == 0 || background_ran_ns() != before);
    pthread_barrier_wait(&leave);
    EXPECT(pthread_join(thread, NULL) == 0);
}

static void *wait_a_moment(void *main_thread) {
    free(malloc(1000));
    pthread_join(*(pthread_t *)main_thread, NULL);
    sleep_ms(100);
    return NULL;
}

/* The main thread leaves, then the other: the background thread does not keep the process. */
static void main_thread_leaves(void) {
    static pthread_t self, thread;
    self = pthread_self();
    free(malloc(10));
    EXPECT(pthread_create(&thread, NULL, wait_a_moment, &self) == 0);
    pthread_exit(NULL);
}

/* The C library's header tells compilers that `malloc` never calls back. */
static void *volatile reserve;
static volatile int n_calls;

static void give_reserve(size_t in_use, void *argument) {
    EXPECT(in_use > 10 << 20 && argument == &reserve);
    free(malloc(100));
    n_calls++;
    free(reserve);
    reserve = NULL;
}

/* Under FREESTONE_LIMIT=32m and FREESTONE_LIMIT_HARD=64m. */
static void pressure(void) {
    enum { MIB = 1 << 20 };
    freestone_heap_t *heap = freestone_heap_new();
    freestone_on_pressure(give_reserve, (void *)&reserve);
    EXPECT((reserve = malloc(20 * MIB)) && n_calls == 0);
    void *more = malloc(20 * MIB);
    EXPECT(more && n_calls == 1 && !reserve);
    void *most = malloc(30 * MIB);
    EXPECT(most && n_calls == 2);
    errno = 0;
    EXPECT(!malloc(20 * MIB) && errno == ENOMEM && n_calls == 3);
    /* Memory that the callback of a failing allocation frees is used for it. */
    reserve = most;
    void *again = malloc(35 * MIB);
    EXPECT(again && n_calls == 4 && !reserve);
    void *same = realloc(more, 60 * MIB);
    EXPECT(!same && malloc_usable_size(more) >= 20 * MIB);
    /* A request beyond this machine's memory calls the callback; one beyond any machine's does not. */
    n_calls = 0;
    EXPECT(!malloc((size_t)1 << 50) && n_calls == 1);
    EXPECT(!malloc((size_t)1 << 56) && !malloc(PTRDIFF_MAX) && !malloc(SIZE_MAX) && !realloc(more, SIZE_MAX / 2) && n_calls == 1);
    EXPECT(!freestone_heap_malloc(heap, (size_t)1 << 60) && n_calls == 1);
    freestone_on_pressure(NULL, NULL);
    EXPECT(!malloc(40 * MIB) && n_calls == 1);
    EXPECT(freestone_option_set("limit_hard", "2m") == FREESTONE_BAD_VALUE);
    EXPECT(freestone_option_set("limit_hard", "0") == FREESTONE_BAD_VALUE && freestone_option_set("limit_hard", "much") == FREESTONE_BAD_VALUE);
    free(more);
    free(again);
    freestone_heap_delete(heap);
}

static void heap_limit(void) {
    freestone_heap_t *heap = freestone_heap_new();
    EXPECT(heap && freestone_heap_set_limit(heap, 100) == FREESTONE_BAD_LIMIT);
    EXPECT(freestone_heap_set_limit(heap, 4 << 20) == 0);
    EXPECT(freestone_heap_malloc(heap, 3 << 20));
    errno = 0;
    EXPECT(!freestone_heap_malloc(heap, 2 << 20) && errno == ENOMEM);
    int n = 0;
    while (freestone_heap_malloc(heap, 1000)) {
        n++;
    }
    EXPECT(n > 900 && n < 1100);
    EXPECT(freestone_heap_set_limit(heap, 1 << 20) == FREESTONE_BAD_LIMIT);
    EXPECT(freestone_heap_set_limit(heap, 0) == 0 && freestone_heap_malloc(heap, 8 << 20));
    freestone_heap_delete(heap);
}

static int by_address(const void *a, const void *b) {
    uintptr_t first = *(const uintptr_t *)a, second = *(const uintptr_t *)b;
    return first < second ? -1 : first > second;
}

/* A block of 16 to 1039 bytes, written to. */
static void *random_block(unsigned *state, size_t *size) {
    *state = *state * 1664525 + 1013904223;
    *size = 16 + (*state >> 8) % 1024;
    void *block = malloc(*size);
    EXPECT(block);
    return memset(block, 1, *size);
}

/* One thread has a burst of 256 MiB and keeps every 20th block: at most 1.35 times the OS pages that contain one stay resident. */
static void scattered(void) {
    enum { N = 500000, KEEP = 20 };
    static void *all[N];
    static uintptr_t pages[2 * N / KEEP + 2];
    memset(all, 1, sizeof all);
    memset(pages, 1, sizeof pages);
    long before = resident_mib(), page = sysconf(_SC_PAGESIZE), n_pages = 0, held = 0;
    unsigned state = 1;
    for (int i = 0; i < N; i++) {
        size_t size;
        all[i] = random_block(&state, &size);
    }
    for (int i = 0; i < N; i++) {
        if (i % KEEP) {
            free(all[i]);
        } else {
            uintptr_t start = (uintptr_t)all[i], end = start + malloc_usable_size(all[i]) - 1;
            pages[n_pages++] = start / page;
            pages[n_pages++] = end / page;
        }
    }
    long after = resident_mib() - before;
    qsort(pages, n_pages, sizeof *pages, by_address);
    for (long i = 0; i < n_pages; i++) {
        held += i == 0 || pages[i] != pages[i - 1];
    }
    held = held * page >> 20;
    if (after * 100 > held * 135) {
        fprintf(stderr, "%ld MiB resident, %ld MiB of OS pages hold a block\n", after, held);
        abort();
    }
}

enum { N_SLEEPERS = 64, BURST_BYTES = 4 << 20 };
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* Whether each thread keeps a small block of its burst. */
static int keeps_one;

static void *burst_of_many_sizes(void *seed) {
    static void *all[BURST_BYTES / 16];
    unsigned state = (unsigned)(uintptr_t)seed;
    EXPECT(pthread_mutex_lock(&turn) == 0);
    void *kept = keeps_one ? malloc(40) : NULL;
    int n_all = 0;
    for (size_t bytes = 0; bytes < BURST_BYTES; n_all++) {
        size_t size;
        all[n_all] = random_block(&state, &size);
        bytes += size;
    }
    for (int i = 0; i < n_all; i++) {
        free(all[i]);
    }
    EXPECT(pthread_mutex_unlock(&turn) == 0);
    pthread_barrier_wait(&burst_over);
    pthread_barrier_wait(&leave);
    free(kept);
    return NULL;
}

/* Starts threads with small stacks, each with its number, and waits until all are at `burst_over`. Returns what was resident before, in KiB. */
static long start(pthread_t *threads, int n, void *(*run)(void *)) {
    pthread_barrier_init(&burst_over, NULL, n + 1);
    pthread_barrier_init(&leave, NULL, n + 1);
    long before = resident_kib();
    pthread_attr_t small_stack;
    EXPECT(pthread_attr_init(&small_stack) == 0 && pthread_attr_setstacksize(&small_stack, 256 << 10) == 0);
    for (intptr_t i = 0; i < n; i++) {
        EXPECT(pthread_create(&threads[i], &small_stack, run, (void *)i) == 0);
    }
    pthread_barrier_wait(&burst_over);
    return before;
}

static void join(const pthread_t *threads, int n) {
    for (int i = 0; i < n; i++) {
        EXPECT(pthread_join(threads[i], NULL) == 0);
    }
}

/* Threads have a burst of 4 MiB each, in turn, and sleep: at most 64 KiB each stay resident, half of it their stack and heap; whether or not a small block
 * of the burst stays. The first of them has one in any case: what the background thread was started with. */
static void sleepers(int keep) {
    keeps_one = keep;
    pthread_t threads[N_SLEEPERS];
    long before = start(threads, N_SLEEPERS, burst_of_many_sizes);
    freestone_purge();
    long stays = resident_kib() - before;
    if (stays > 64 * N_SLEEPERS) {
        fprintf(stderr, "%ld KiB stay with %d sleeping threads\n", stays, N_SLEEPERS);
        abort();
    }
    pthread_barrier_wait(&leave);
    join(threads, N_SLEEPERS);
}

enum { KEPT_BYTES = 5 << 16 };

/* Large blocks of one length that are allocated and freed in turn: counted exactly, and as cached while they are free. */
static void *comes_and_goes(void *unused) {
    freestone_stats_t before = {.size = sizeof before}, after = before;
    for (int i = 0; i < 40; i++) {
        char *block = malloc(KEPT_BYTES - 100);
        EXPECT(block);
        memset(block, 1, KEPT_BYTES - 100);
        free(HIDE(block));
    }
    EXPECT(freestone_stats(&before) == 0);
    for (int i = 0; i < 1000; i++) {
        char *block = calloc(1, KEPT_BYTES - 100);
        EXPECT(block && block[i] == 0);
        memset(block, 1, KEPT_BYTES - 100);
        if (i == 500) {
            EXPECT(freestone_stats(&after) == 0);
            EXPECT(after.live == before.live + KEPT_BYTES && after.cached == before.cached - KEPT_BYTES);
            EXPECT(after.n_allocations == before.n_allocations + 501 && after.n_frees == before.n_frees + 500);
        }
        free(HIDE(block));
    }
    EXPECT(freestone_stats(&after) == 0);
    EXPECT(after.n_allocations == before.n_allocations + 1000 && after.n_frees == before.n_frees + 1000);
    EXPECT(after.live == before.live && after.cached == before.cached && after.committed == before.committed);
    uint64_t seen = before.live + KEPT_BYTES;
    EXPECT(after.peak_live == (before.peak_live > seen ? before.peak_live : seen) && after.cached >= KEPT_BYTES);
    pthread_barrier_wait(&burst_over);
    pthread_barrier_wait(&leave);
    return unused;
}

/* And the memory goes back while the thread sleeps. Nothing expires before that, so the counts depend on no clock. */
static void kept(void) {
    pthread_t thread;
    EXPECT(freestone_option_set("decay_ms", "4294967295") == 0);
    pthread_barrier_init(&burst_over, NULL, 2);
    pthread_barrier_init(&leave, NULL, 2);
    EXPECT(pthread_create(&thread, NULL, comes_and_goes, NULL) == 0);
    pthread_barrier_wait(&burst_over);
    freestone_stats_t stats = {.size = sizeof stats};
    EXPECT(freestone_stats(&stats) == 0 && stats.cached >= KEPT_BYTES);
    EXPECT(freestone_option_set("decay_ms", "200") == 0);
    /* The background thread still sleeps for the old decay time: this wakes it. */
    free(HIDE((char *)malloc(KEPT_BYTES)));
    while (stats.cached + stats.dirty >= KEPT_BYTES) {
        sleep_ms(50);
        EXPECT(freestone_stats(&stats) == 0);
    }
    pthread_barrier_wait(&leave);
    EXPECT(pthread_join(thread, NULL) == 0);
}

enum { N_SCATTERED = 40000, SCATTERED_BYTES = 1000 };
static char *scattered_blocks[N_SCATTERED];

static void *allocate_scattered(void *unused) {
    for (int i = 0; i < N_SCATTERED; i++) {
        scattered_blocks[i] = malloc(SCATTERED_BYTES);
        EXPECT(scattered_blocks[i]);
        memset(scattered_blocks[i], 1, SCATTERED_BYTES);
    }
    return unused;
}

/* After a purge a block that stays keeps its OS pages, mostly one, and no others; also if its thread has ended. */
static void purged(void) {
    /* One block in four OS pages stays. */
    int page_kib = (int)(sysconf(_SC_PAGESIZE) / 1024), apart = 4 * page_kib;
    for (int in_thread = 0; in_thread < 2; in_thread++) {
        long before = resident_kib();
        if (in_thread) {
            pthread_t thread;
            EXPECT(pthread_create(&thread, NULL, allocate_scattered, NULL) == 0 && pthread_join(thread, NULL) == 0);
        } else {
            allocate_scattered(NULL);
        }
        for (int i = 0; i < N_SCATTERED; i++) {
            if (i % apart) {
                free(HIDE(scattered_blocks[i]));
            }
        }
        EXPECT(freestone_purge() > 0);
        long stays = resident_kib() - before, expected = N_SCATTERED / apart * page_kib;
        if (stays > expected + expected / 4 + 2048) {
            fprintf(stderr, "in a thread: %d: %ld KiB stay, not %ld\n", in_thread, stays, expected);
            abort();
        }
        for (int i = 0; i < N_SCATTERED; i += apart) {
            EXPECT(scattered_blocks[i][0] == 1 && scattered_blocks[i][SCATTERED_BYTES - 1] == 1);
            free(HIDE(scattered_blocks[i]));
        }
        EXPECT(freestone_purge() > 0);
    }
}

/* A block that moves although the program has made several mappings of it leaves no memory behind that does not count. */
static void moved(void) {
    size_t mib = 1 << 20, bytes = 16 * mib;
    char *block = malloc(bytes), *in_its_way = malloc(mib);
    EXPECT(block && in_its_way);
    memset(block, 1, bytes);
    /* Inside the huge pages, so that one of the pieces in which it is moved is several mappings. */
    EXPECT(madvise(block + (bytes / 2 & ~(mib - 1)), mib, MADV_DONTDUMP) == 0);
    long before = resident_mib();
    char *grown = realloc(HIDE(block), 4 * bytes);
    EXPECT(grown && grown[0] == 1 && grown[bytes - 1] == 1);
    freestone_stats_t stats = {.size = sizeof stats};
    EXPECT(freestone_stats(&stats) == 0 && resident_mib() <= before + (long)(stats.dirty / mib) + 8);
    free(grown);
    free(in_its_way);
}

/* Tables of which little is written are allocated and freed in turn: none of them gets all its memory. */
static void sparse(void) {
    long before = resident_mib();
    for (int i = 0; i < 20; i++) {
        const size_t bytes = 64 << 20;
        char *table = calloc(1, bytes);
        EXPECT(table && table[0] == 0 && table[bytes / 2] == 0 && table[bytes - 1] == 0);
        table[i << 20] = 1;
        EXPECT(resident_mib() <= before + 16);
        free(table);
    }
}

/* After blocks that are written everywhere, tables of which a byte in each 2 MiB is written: where the kernel grants huge pages, no more than two of them have
 * some. */
static void tables(void) {
    const size_t mib = 1 << 20, bytes = 16 * mib;
    for (int i = 0; i < 3; i++) {
        char *dense = malloc(bytes);
        EXPECT(dense);
        memset(dense, 1, bytes);
        free(HIDE(dense));
    }
    freestone_purge();
    long before = resident_mib();
    char *all[10];
    for (int i = 0; i < 10; i++) {
        all[i] = malloc(bytes);
        EXPECT(all[i]);
        for (size_t at = 0; at < bytes; at += 2 * mib) {
            all[i][at] = 1;
        }
    }
    EXPECT(resident_mib() <= before + 40);
    for (int i = 0; i < 10; i++) {
        free(all[i]);
    }
}

/* Many blocks are made a little longer once, or cut to half: they take little more than what was asked for. */
static void resized(void) {
    enum { N = 20000 };
    static char *all[N];
    const size_t sizes[][2] = {{120, 130}, {500, 520}, {700, 760}, {2000, 2100}, {1024, 520}, {8192, 4200}};
    for (size_t pair = 0; pair < sizeof sizes / sizeof *sizes; pair++) {
        const size_t size = sizes[pair][0], then = sizes[pair][1];
        size_t usable = 0;
        for (int i = 0; i < N; i++) {
            EXPECT((all[i] = malloc(size)));
            memset(all[i], 1, size);
            EXPECT((all[i] = realloc(HIDE(all[i]), then)));
            memset(all[i], 2, then);
            usable += malloc_usable_size(all[i]);
        }
        if (usable > (size_t)N * then / 4 * 5) {
            fprintf(stderr, "%zu to %zu: %zu bytes each\n", size, then, usable / N);
            abort();
        }
        for (int i = 0; i < N; i++) {
            free(all[i]);
        }
    }
}

enum { N_ENDING = 500, PER_ENDING = 64 };

static void *burst_and_end(void *unused) {
    void *all[PER_ENDING];
    for (int i = 0; i < PER_ENDING; i++) {
        EXPECT((all[i] = malloc(64 * (i + 1))));
        memset(all[i], 1, 64 * (i + 1));
    }
    pthread_barrier_wait(&burst_over);
    for (int i = 0; i < PER_ENDING; i++) {
        free(all[i]);
    }
    return unused;
}

/* Threads end together, and none is left but one that makes no calls: no more stays dirty than may. */
static void ended(void) {
    pthread_t threads[N_ENDING];
    start(threads, N_ENDING, burst_and_end);
    join(threads, N_ENDING);
    freestone_stats_t stats = {.size = sizeof stats};
    EXPECT(freestone_stats(&stats) == 0);
    if (stats.dirty > 32 << 20) {
        fprintf(stderr, "%zu bytes stay dirty\n", (size_t)stats.dirty);
        abort();
    }
}

enum { N_REPLACING = 200, N_HELD = 20, LONGEST = 30000 };

/* Replaces one of a few blocks at random, many times, and holds them until all threads have. */
static void *replace_few(void *number) {
    char *held[N_HELD] = {NULL};
    unsigned random = (unsigned)(uintptr_t)number * 7919 + 1;
    for (int i = 0; i < 3000; i++) {
        random = random * 1103515245 + 12345;
        int at = (random >> 16) % N_HELD;
        size_t bytes = 1024 + (random >> 8) % (LONGEST - 1024);
        free(held[at]);
        held[at] = malloc(bytes);
        EXPECT(held[at]);
        memset(held[at], at, bytes);
    }
    pthread_barrier_wait(&burst_over);
    pthread_barrier_wait(&leave);
    for (int at = 0; at < N_HELD; at++) {
        EXPECT(!held[at] || held[at][15] == at);
        free(held[at]);
    }
    return NULL;
}

/* Many threads that hold little each share what is free: resident is not for each thread what it had of each size at its most. */
static void few_each(void) {
    pthread_t threads[N_REPLACING];
    long before = start(threads, N_REPLACING, replace_few);
    long holds = resident_kib() - before, least = N_REPLACING * N_HELD * LONGEST / 2 / 1024;
    if (holds > 7 * least / 2) {
        fprintf(stderr, "%ld KiB resident for %ld KiB\n", holds, least);
        abort();
    }
    pthread_barrier_wait(&leave);
    join(threads, N_REPLACING);
}

int main(int n, char **arguments) {
    alarm(120);
    EXPECT(n == 2);
    const char *part = arguments[1];
    if (!strcmp(part, "background")) {
        background(1);
    } else if (!strcmp(part, "dirty_for_good")) {
        dirty_for_good();
    } else if (!strcmp(part, "no_background")) {
        background(0);
    } else if (!strcmp(part, "main_thread_leaves")) {
        main_thread_leaves();
    } else if (!strcmp(part, "pressure")) {
        pressure();
    } else if (!strcmp(part, "heap_limit")) {
        heap_limit();
    } else if (!strcmp(part, "scattered")) {
        scattered();
    } else if (!strcmp(part, "kept")) {
        kept();
    } else if (!strcmp(part, "sleepers")) {
        sleepers(0);
    } else if (!strcmp(part, "sleepers_with_a_block")) {
        sleepers(1);
    } else if (!strcmp(part, "purged")) {
        purged();
    } else if (!strcmp(part, "moved")) {
        moved();
    } else if (!strcmp(part, "sparse")) {
        sparse();
    } else if (!strcmp(part, "tables")) {
        tables();
    } else if (!strcmp(part, "resized")) {
        resized();
    } else if (!strcmp(part, "ended")) {
        ended();
    } else if (!strcmp(part, "few_each")) {
        few_each();
    } else {
        return 2;
    }
    return 0;
}
