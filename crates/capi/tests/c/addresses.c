/*
 * Where an allocator's memory is in this process: `addresses LIBRARY` prints a line for each address, its name and the number in hexadecimal.
 *
 * The library is loaded, not preloaded: so the mappings that its first two allocations make can be told from those of the process.
 *
 *     small      a block of 8 bytes
 *     large      a block of 1 MiB
 *     N-K        the K-th mapping of N KiB that the allocations made, apart from those with the two blocks
 */
#include "expect.h"
#include <dlfcn.h>

enum { MAPPINGS_MOST = 512 };

struct mapping {
    unsigned long start, end;
};

/* The mappings that the process may access, ascending; neighbours as one. */
static int read_mappings(struct mapping *mappings) {
    FILE *file = fopen("/proc/self/maps", "r");
    EXPECT(file);
    static char line[4096];
    int n = 0;
    while (fgets(line, sizeof line, file)) {
        unsigned long start, end;
        char readable;
        EXPECT(sscanf(line, "%lx-%lx %c", &start, &end, &readable) == 3);
        if (readable != 'r') continue;
        if (n && mappings[n - 1].end == start) {
            mappings[n - 1].end = end;
            continue;
        }
        EXPECT(n < MAPPINGS_MOST);
        mappings[n++] = (struct mapping){start, end};
    }
    fclose(file);
    return n;
}

int main(int n_words, char **words) {
    static struct mapping before[MAPPINGS_MOST], after[MAPPINGS_MOST];
    EXPECT(n_words == 2);
    void *library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
    EXPECT(library);
    void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(library, "malloc");
    EXPECT(allocate);
    int n_before = read_mappings(before);
    unsigned long small = (unsigned long)allocate(8), large = (unsigned long)allocate(1 << 20);
    EXPECT(small && large);
    int n_after = read_mappings(after);
    printf("small %lx\nlarge %lx\n", small, large);
    for (int i = 0; i < n_after; i++) {
        struct mapping new = after[i];
        int is_known = (new.start <= small && small < new.end) || (new.start <= large && large < new.end);
        for (int j = 0; j < n_before; j++) is_known |= before[j].start < new.end && new.start < before[j].end;
        if (is_known) continue;
        int rank = 1;
        for (int j = 0; j < i; j++) rank += after[j].end - after[j].start == new.end - new.start;
        printf("%lu-%d %lx\n", (new.end - new.start) / 1024, rank, new.start);
    }
    return 0;
}
