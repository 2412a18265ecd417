/* The kernel allows a process 65,530 mappings: blocks that are resized, and blocks with huge pages, stay far from that. By argument. */
#include "expect.h"

/* Mappings of this process. */
static long n_mappings(void) {
    FILE *file = fopen("/proc/self/maps", "r");
    EXPECT(file);
    long n = 0;
    for (int c; (c = getc(file)) != EOF;) {
        n += c == '\n';
    }
    fclose(file);
    return n;
}

/* Blocks of so many GiB in all, which are not written: 0 if they cannot be had. The kernel may refuse one that is longer than all memory. */
static int take_addresses(int gib) {
    for (; gib > 0; gib--) {
        if (!HIDE(malloc((size_t)1 << 30))) {
            return 0;
        }
    }
    return 1;
}

/* Mappings of this process for which huge pages were requested. */
static long n_with_huge_pages(void) {
    FILE *file = fopen("/proc/self/smaps", "r");
    EXPECT(file);
    char line[1000];
    long n = 0;
    while (fgets(line, sizeof line, file)) {
        n += !strncmp(line, "VmFlags:", 8) && strstr(line, " hg");
    }
    fclose(file);
    return n;
}

/* Mappings that blocks of so many bytes, written as a whole, get with huge pages. */
static long huge_of_blocks(size_t bytes) {
    long before = n_with_huge_pages();
    for (int i = 0; i < 4; i++) {
        char *block = malloc(bytes);
        EXPECT(block);
        memset(block, 1, bytes);
    }
    return n_with_huge_pages() - before;
}

/* Blocks that are short beside all addresses get no huge pages, which would be mappings of their own. */
static int huge(void) {
    if (huge_of_blocks(6 << 20) == 0) {
        return skip("the kernel has no huge pages on request");
    }
    if (!take_addresses(160)) {
        return skip("160 GiB of addresses cannot be had");
    }
    EXPECT(huge_of_blocks(6 << 20) == 0 && huge_of_blocks(24 << 20) > 0);
    return 0;
}

/* Blocks that are resized again and again, short ones beside the 4 GiB of all addresses: each that is moved would leave mappings behind. */
static int resized(void) {
    enum { N = 300, LEAST = 270 << 10 };
    if (!take_addresses(4)) {
        return skip("4 GiB of addresses cannot be had");
    }
    static char *blocks[N];
    static size_t sizes[N];
    uint64_t state = 1;
    long before = n_mappings();
    for (int i = 0; i < 6000; i++) {
        int at = (int)(next_random(&state) % N);
        int begins = sizes[at] == 0 || sizes[at] > LEAST + LEAST / 2;
        if (begins) {
            free(blocks[at]);
            blocks[at] = NULL;
        }
        size_t old = begins ? 0 : sizes[at];
        sizes[at] = begins ? LEAST : old + old / 10;
        EXPECT(blocks[at] = realloc(blocks[at], sizes[at]));
        EXPECT(old == 0 || (blocks[at][0] == (char)at && blocks[at][old - 1] == (char)at));
        blocks[at][0] = blocks[at][sizes[at] - 1] = (char)at;
    }
    printf("%ld mappings, %ld before\n", n_mappings(), before);
    EXPECT(n_mappings() < before + N / 4);
    return 0;
}

int main(int argc, char **argv) {
    alarm(100);
    EXPECT(argc >= 2);
    if (!strcmp(argv[1], "resized")) {
        return resized();
    } else if (!strcmp(argv[1], "huge")) {
        return huge();
    }
    return 2;
}
