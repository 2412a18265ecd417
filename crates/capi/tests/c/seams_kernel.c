/* What the kernel may refuse or configure: mappings, files under /proc and /sys, overcommit, huge pages, sizes beyond 32
 * bits. By argument. Parts that need rights, or change a setting of the machine, say that they skip. */
#define _GNU_SOURCE
#include "expect.h"
#include "freestone.h"
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>

static void *churn(void *seed) {
    uint64_t state = (uint64_t)(uintptr_t)seed * 7919 + 1;
    unsigned char *blocks[200] = {0};
    for (int i = 0; i < 20000; i++) {
        unsigned at = next_random(&state) % 200;
        EXPECT(!blocks[at] || *blocks[at] == at);
        free(blocks[at]);
        EXPECT(blocks[at] = malloc(next_random(&state) % (next_random(&state) % 64 ? 2000 : 400000) + 1));
        *blocks[at] = (unsigned char)at;
    }
    for (int i = 0; i < 200; i++) {
        free(blocks[i]);
    }
    return NULL;
}

/* Threads, forks, a burst that is purged, statistics: the work of an ordinary program. */
static int an_ordinary_day(void) {
    pthread_t threads[3];
    for (intptr_t i = 0; i < 3; i++) {
        EXPECT(pthread_create(&threads[i], NULL, churn, (void *)i) == 0);
    }
    for (int i = 0; i < 3; i++) {
        EXPECT(pthread_join(threads[i], NULL) == 0);
    }
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        churn(NULL);
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    char *burst[64];
    for (int i = 0; i < 64; i++) {
        EXPECT(burst[i] = malloc(1 << 20));
        memset(burst[i], 1, 1 << 20);
    }
    for (int i = 0; i < 64; i++) {
        free(burst[i]);
    }
    freestone_purge();
    freestone_stats_t stats = {.size = sizeof stats};
    EXPECT(freestone_stats(&stats) == 0 && stats.dirty == 0 && stats.committed < (size_t)32 << 20);
    char *zero = calloc(1, 8 << 20);
    EXPECT(zero);
    for (int i = 0; i < 8 << 20; i += 512) {
        EXPECT(zero[i] == 0);
    }
    free(zero);
    return 0;
}

/* As many mappings as the kernel allows: `malloc` refuses or works, `free` and a purge always work; afterwards all is as before. */
static int mappings(void) {
    enum { N = 32, BYTES = 2 << 20, MOST = 200000 };
    long most = 0;
    FILE *file = fopen("/proc/sys/vm/max_map_count", "r");
    if (!file || fscanf(file, "%ld", &most) != 1 || most > MOST) {
        return skip("no mapping limit that a test can reach");
    }
    fclose(file);
    char *large[N], *small[N];
    for (int i = 0; i < N; i++) {
        EXPECT((large[i] = malloc(BYTES)) && (small[i] = malloc(200)));
        memset(large[i], i, BYTES);
        memset(small[i], i, 200);
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *area = mmap(0, (size_t)(most + 10) * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT(area != MAP_FAILED);
    long n = 0;
    while (mprotect(area + n * page, page, PROT_READ) == 0) {
        n += 2;
        EXPECT(n < most + 10);
    }
    EXPECT(errno == ENOMEM);
    for (int i = 0; i < N; i += 2) {
        EXPECT(large[i][BYTES - 1] == i && small[i][199] == i);
        errno = 77;
        free(large[i]);
        free(small[i]);
        EXPECT(errno == 77);
    }
    freestone_purge();
    int refused = 0;
    for (int i = 0; i < 2000; i++) {
        size_t bytes = i % 16 ? (size_t)i * 10 + 1 : (size_t)1 << 20;
        errno = 0;
        char *block = calloc(1, bytes);
        EXPECT(block || errno == ENOMEM);
        refused += !block;
        for (size_t at = 0; block && at < bytes; at += 256) {
            EXPECT(block[at] == 0);
        }
        free(block);
    }
    /* Memory that was freed can be allocated again: 34 MiB were freed. */
    EXPECT(refused == 0);
    EXPECT(munmap(area, (size_t)(most + 10) * page) == 0);
    for (int i = 1; i < N; i += 2) {
        EXPECT(large[i][BYTES - 1] == i && small[i][199] == i);
        free(large[i]);
        free(small[i]);
    }
    return an_ordinary_day();
}

/* Starts itself again, with empty file systems over /proc and /sys. */
static int no_files(char **argv) {
    if (argv[2]) {
        EXPECT(access("/proc/self", F_OK) != 0 && access("/sys/kernel", F_OK) != 0);
        return an_ordinary_day();
    }
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", "/proc", "tmpfs", 0, NULL) != 0 || mount("none", "/sys", "tmpfs", 0, NULL) != 0) {
        return skip("mounting is not permitted");
    }
    char *again[] = {argv[0], argv[1], "again", NULL};
    execv(argv[0], again);
    EXPECT(!"started");
    return 1;
}

/* Runs a part in a child, in which nothing was allocated before. Returns how it ended. */
static int in_child(int (*part)(void)) {
    pid_t child = fork();
    if (child == 0) {
        alarm(30);
        _exit(part());
    }
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child ? status : 1;
}

static char root[] = "/tmp/freestone-empty-XXXXXX";

static int in_empty_root(void) {
    return chroot(root) != 0 || chdir("/") != 0 ? skip("chroot is not permitted") : an_ordinary_day();
}

/* Reaches the first call in a root without a single file. */
static int empty_root(void) {
    EXPECT(mkdtemp(root));
    int status = in_child(in_empty_root);
    EXPECT(rmdir(root) == 0);
    return status != 0;
}

/* Sets a machine-wide setting, a file, to a word while a child runs a part. */
static int with_setting(const char *file, const char *word, int (*part)(void)) {
    char before[100] = {0};
    int at = open(file, O_RDWR);
    if (!getenv("SEAMS_MACHINE") || at < 0) {
        return skip("settings of the machine are changed only with SEAMS_MACHINE=1, as root");
    }
    ssize_t n = read(at, before, sizeof before - 1);
    EXPECT(n > 0);
    char *chosen = strchr(before, '['), *end = strchr(before, ']');
    if (chosen && end) {
        *end = 0;
    }
    const char *old = chosen ? chosen + 1 : before;
    if (pwrite(at, word, strlen(word), 0) < 0) {
        return skip("the setting cannot be changed");
    }
    int status = in_child(part);
    EXPECT(pwrite(at, old, strlen(old), 0) > 0 && status == 0);
    printf("seen with %s in %s\n", word, file);
    return 0;
}

/* Huge pages for everything that fits: purged memory still goes back, and a small heap stays small. */
static int huge_pages(void) {
    long before = resident_kib();
    churn(NULL);
    char *block = malloc(64 << 20);
    EXPECT(block);
    memset(block, 1, 64 << 20);
    free(block);
    freestone_purge();
    long grown = resident_kib() - before;
    if (grown > 8 << 10) {
        fprintf(stderr, "%ld KiB stay\n", grown);
        return 1;
    }
    return an_ordinary_day();
}

/* Blocks beyond 4 GiB, of which only some pages are written. */
static int huge_sizes(void) {
    const size_t gib = (size_t)1 << 30;
    char *block = malloc(5 * gib);
    if (!block) {
        return skip("5 GiB of address space are not available");
    }
    EXPECT(malloc_usable_size(block) >= 5 * gib && malloc_usable_size(block) < 6 * gib);
    block[0] = 1;
    block[4 * gib] = 2;
    block[5 * gib - 1] = 3;
    free(block);
    EXPECT((block = calloc(5, gib)));
    for (size_t at = 0; at < 5 * gib; at += gib / 4 + 7) {
        EXPECT(block[at] == 0);
    }
    EXPECT(block[4 * gib] == 0 && block[5 * gib - 1] == 0);
    block[5 * gib - 1] = 9;
    EXPECT((block = realloc(block, 5 * gib + 123)) && block[5 * gib - 1] == 9);
    free(block);
    /* Across 4 GiB, up and down. */
    EXPECT((block = malloc(3 * gib)));
    block[0] = 1;
    block[3 * gib - 1] = 2;
    EXPECT((block = realloc(block, 5 * gib)) && block[0] == 1 && block[3 * gib - 1] == 2);
    block[5 * gib - 1] = 3;
    block[4 * gib + 5] = 4;
    EXPECT((block = realloc(block, 9 * gib)) && block[5 * gib - 1] == 3 && block[4 * gib + 5] == 4);
    EXPECT((block = realloc(block, 4 * gib + 6)) && block[4 * gib + 5] == 4 && block[0] == 1);
    EXPECT((block = realloc(block, 1000)) && block[0] == 1);
    free(block);
    void *aligned = aligned_alloc(gib, 4 * gib + 1);
    EXPECT(aligned && (uintptr_t)aligned % gib == 0);
    ((char *)aligned)[4 * gib] = 1;
    free(aligned);
    freestone_heap_t *heap = freestone_heap_new();
    EXPECT(heap && (block = freestone_heap_malloc(heap, 6 * gib)));
    block[6 * gib - 1] = 1;
    freestone_heap_delete(heap);
    EXPECT(resident_kib() < 64 << 10);
    return 0;
}

int main(int argc, char **argv) {
    alarm(100);
    EXPECT(argc >= 2);
    const char *part = argv[1], *overcommit = "/proc/sys/vm/overcommit_memory";
    if (!strcmp(part, "mappings")) {
        return mappings();
    } else if (!strcmp(part, "no_files")) {
        return no_files(argv);
    } else if (!strcmp(part, "empty_root")) {
        return empty_root();
    } else if (!strcmp(part, "huge_sizes")) {
        return huge_sizes();
    } else if (!strcmp(part, "huge_pages")) {
        return with_setting("/sys/kernel/mm/transparent_hugepage/enabled", "always", huge_pages);
    } else if (!strncmp(part, "overcommit_", 11)) {
        return with_setting(overcommit, part + 11, an_ordinary_day);
    }
    return 2;
}
