/* Statistics for monitoring: what is written, and that it adds up; by argument. */
#include "expect.h"
#include "freestone.h"
#include <pthread.h>

struct text {
    char bytes[1 << 20];
    size_t len;
    int n_calls;
    int refuse_at;
};

static int gather(const char *text, size_t bytes, void *context) {
    struct text *all = context;
    /* The library holds no lock: its functions may be called. */
    free(HIDE(malloc(100)));
    if (++all->n_calls == all->refuse_at) {
        return 7;
    }
    EXPECT(bytes > 0 && all->len + bytes < sizeof all->bytes);
    memcpy(all->bytes + all->len, text, bytes);
    all->len += bytes;
    all->bytes[all->len] = 0;
    return 0;
}

static struct text text;

static const char *written(int format) {
    memset(&text, 0, sizeof text);
    EXPECT(freestone_stats_write(format, gather, &text) == 0 && text.n_calls > 0);
    return text.bytes;
}

/* The number behind `name` at the start of a line, or in JSON behind `"name":`. */
static unsigned long long number(const char *all, const char *name) {
    const char *at = strstr(all, name);
    EXPECT(at);
    return strtoull(at + strlen(name), NULL, 10);
}

static void formats(void) {
    char *block = malloc(3 << 20);
    EXPECT(block);
    const char *all = written(FREESTONE_STATS_OPENMETRICS);
    EXPECT(strcmp(all + strlen(all) - 6, "# EOF\n") == 0);
    EXPECT(number(all, "\nfreestone_live_bytes ") >= 3 << 20);
    EXPECT(number(all, "\nfreestone_class_live_bytes{size=\"large\"} ") >= 3 << 20);
    EXPECT(strstr(all, "\nfreestone_heap_span_bytes{heap=\"1\",kind=\"thread\"} "));
    all = written(FREESTONE_STATS_JSON);
    EXPECT(all[0] == '{' && strcmp(all + strlen(all) - 2, "}\n") == 0 && strchr(all, '\n')[1] == 0);
    EXPECT(number(all, "\"live_bytes\":") >= 3 << 20);
    free(block);
}

static void refusals(void) {
    errno = 0;
    EXPECT(freestone_stats_write(2, gather, &text) == FREESTONE_BAD_FORMAT);
    errno = 0;
    EXPECT(freestone_stats_write(FREESTONE_STATS_JSON, NULL, &text) == FREESTONE_BAD_FORMAT);
    memset(&text, 0, sizeof text);
    text.refuse_at = 2;
    EXPECT(freestone_stats_write(FREESTONE_STATS_OPENMETRICS, gather, &text) == 7 && text.n_calls == 2);
    freestone_heap_t *heap = freestone_heap_new();
    freestone_heap_stats_t stats = {.size = 4};
    errno = 0;
    EXPECT(freestone_heap_stats(heap, &stats) == FREESTONE_BAD_STRUCT);
    EXPECT(freestone_heap_stats(heap, NULL) == FREESTONE_BAD_STRUCT);
    stats.size = offsetof(freestone_heap_stats_t, large);
    stats.large = 4711;
    EXPECT(freestone_heap_stats(heap, &stats) == 0 && stats.large == 4711);
    /* An older program's figures of the process end before `fresh`. */
    freestone_stats_t old = {.size = offsetof(freestone_stats_t, fresh), .fresh = 4711};
    freestone_code_t code = freestone_stats(&old);
    EXPECT(code == FREESTONE_OK && old.committed > 0 && old.fresh == 4711 && old.size == offsetof(freestone_stats_t, fresh));
    freestone_heap_delete(heap);
}

static void *frees(void *block) {
    free(block);
    return NULL;
}

static void heap_stats(void) {
    freestone_heap_t *heap = freestone_heap_new();
    freestone_heap_stats_t stats = {.size = sizeof stats};
    EXPECT(freestone_heap_stats(heap, &stats) == 0 && stats.size == sizeof stats);
    EXPECT(stats.live == 0 && stats.spans == 0 && stats.large == 0 && stats.limit == 0);
    EXPECT(freestone_heap_set_limit(heap, 8 << 20) == 0);
    char *large = freestone_heap_malloc(heap, 1 << 20), *blocks[100];
    for (int i = 0; i < 100; i++) {
        blocks[i] = freestone_heap_malloc(heap, 1000);
        EXPECT(blocks[i]);
    }
    EXPECT(large && freestone_heap_stats(heap, &stats) == 0);
    EXPECT(stats.large == 1 << 20 && stats.live == stats.large + 100 * 1024 && stats.limit == 8 << 20);
    EXPECT(stats.live + stats.cached <= stats.spans + stats.large && stats.n_allocations >= 100);
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, frees, blocks[0]) == 0 && pthread_join(thread, NULL) == 0);
    free(blocks[1]);
    EXPECT(freestone_heap_stats(heap, &stats) == 0 && stats.live == stats.large + 98 * 1024);
    free(large);
    EXPECT(freestone_heap_stats(heap, &stats) == 0 && stats.live == 98 * 1024 && stats.large == 0);
    freestone_heap_delete(heap);
}

/* The elements that readers of glibc's output look for, and the sums. */
static void malloc_info_as_glibcs(void) {
    char *xml = NULL, *block = malloc(200000);
    size_t len = 0;
    free(HIDE(malloc(40)));
    FILE *stream = open_memstream(&xml, &len);
    EXPECT(stream && block && malloc_info(0, stream) == 0 && fclose(stream) == 0);
    EXPECT(strstr(xml, "<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n") == xml);
    EXPECT(strcmp(xml + len - 10, "</malloc>\n") == 0);
    const char *of_all = strstr(xml, "</heap>\n");
    EXPECT(of_all && strstr(xml, "  <size from=\""));
    const char *parts[] = {"<total type=\"fast\" count=\"", "<total type=\"rest\" count=\"", "<system type=\"current\" size=\"",
                           "<system type=\"max\" size=\"", "<aspace type=\"total\" size=\"", "<aspace type=\"mprotect\" size=\""};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        EXPECT(strstr(xml, parts[i]) < of_all && strstr(of_all, parts[i]));
    }
    EXPECT(number(of_all, "<total type=\"mmap\" count=\"") >= 1);
    EXPECT(number(of_all, parts[2]) <= number(of_all, parts[3]));
    EXPECT(malloc_info(1, stdout) == EINVAL);
    free(block);
    free(xml);
}

enum { N_THREADS = 8 };
static volatile int stop;

static void *churns(void *seed_of) {
    uint64_t seed = (uintptr_t)seed_of;
    void *held[64] = {0};
    while (!stop) {
        void **place = &held[next_random(&seed) % 64];
        free(*place);
        *place = malloc(next_random(&seed) % 100000);
    }
    for (int i = 0; i < 64; i++) {
        free(held[i]);
    }
    return NULL;
}

static unsigned long long sum_of(const char *all, const char *name) {
    unsigned long long sum = 0;
    for (const char *at = all; (at = strstr(at, name)); at++) {
        sum += strtoull(strchr(at, ' ') + 1, NULL, 10);
    }
    return sum;
}

/* Eight threads allocate while the figures are written. */
static void adds_up(void) {
    pthread_t threads[N_THREADS];
    for (uintptr_t i = 0; i < N_THREADS; i++) {
        EXPECT(pthread_create(&threads[i], NULL, churns, (void *)(i + 1)) == 0);
    }
    unsigned long long frees = 0;
    for (int round = 0; round < 200; round++) {
        const char *all = written(FREESTONE_STATS_OPENMETRICS);
        EXPECT(number(all, "\nfreestone_frees_total ") >= frees);
        frees = number(all, "\nfreestone_frees_total ");
        unsigned long long live = number(all, "\nfreestone_live_bytes "), cached = number(all, "\nfreestone_cached_bytes ");
        unsigned long long parts = live + cached + number(all, "\nfreestone_fragmented_bytes ") +
                                   number(all, "\nfreestone_dirty_bytes ") + number(all, "\nfreestone_metadata_bytes ");
        EXPECT(parts == number(all, "\nfreestone_committed_bytes ") && number(all, "\nfreestone_resident_bytes ") <= parts);
        EXPECT(sum_of(all, "\nfreestone_class_live_bytes{") == live);
        EXPECT(sum_of(all, "\nfreestone_class_cached_bytes{") == cached);
        EXPECT(sum_of(all, "\nfreestone_class_allocations_total{") == number(all, "\nfreestone_allocations_total "));
        EXPECT(sum_of(all, "\nfreestone_class_frees_total{") == number(all, "\nfreestone_frees_total "));
        EXPECT(sum_of(all, "\nfreestone_dirty_age_bytes{") <= number(all, "\nfreestone_dirty_bytes "));
        EXPECT(live <= number(all, "\nfreestone_peak_live_bytes "));
        EXPECT(number(all, "\nfreestone_density_bytes ") == live * 4096 / number(all, "\nfreestone_resident_bytes "));
        EXPECT(live < (uint64_t)1 << 30 && number(all, "\nfreestone_committed_bytes ") < (uint64_t)2 << 30);
    }
    stop = 1;
    for (int i = 0; i < N_THREADS; i++) {
        EXPECT(pthread_join(threads[i], NULL) == 0);
    }
}

int main(int argc, char **argv) {
    EXPECT(argc == 2);
    const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {{"formats", formats}, {"refusals", refusals}, {"heap_stats", heap_stats},
                 {"malloc_info", malloc_info_as_glibcs}, {"adds_up", adds_up}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (strcmp(argv[1], parts[i].name) == 0) {
            parts[i].run();
            return 0;
        }
    }
    return 2;
}
