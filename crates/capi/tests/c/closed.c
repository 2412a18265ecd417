/* At the level `full`: one access to memory that cannot be accessed, by argument; or correct use of blocks of no bytes. */
#include "expect.h"

/* Blocks of no bytes are distinct, can be freed and resized, and hold nothing. */
static void behave(void) {
    enum { N = 20000 };
    static char *blocks[N];
    for (int i = 0; i < N; i++) {
        blocks[i] = i % 2 ? malloc(HIDE(0ul)) : calloc(HIDE(0ul), 8);
        EXPECT(blocks[i]);
        for (int k = i > 8 ? i - 8 : 0; k < i; k++) EXPECT(blocks[i] != blocks[k]);
    }
    for (int i = 0; i < N; i++) {
        if (i % 3 == 0) {
            char *grown = realloc(blocks[i], 40);
            EXPECT(grown);
            memset(grown, 1, 40);
            free(grown);
        } else {
            free(HIDE(blocks[i]));
        }
    }
    for (int i = 0; i < 200; i++) {
        char *large = malloc(1 << 20);
        EXPECT(large);
        memset(large, 1, 1 << 20);
        free(large);
    }
}

int main(int argc, char **argv) {
    EXPECT(argc > 1);
    const char *what = argv[1];
    volatile char *block = NULL;
    if (!strcmp(what, "behave")) {
        behave();
    } else if (!strcmp(what, "empty_read")) {
        block = malloc(HIDE(0ul));
        (void)block[0];
    } else if (!strcmp(what, "empty_write")) {
        block = malloc(HIDE(0ul));
        block[1] = 1;
    } else if (!strcmp(what, "empty_twice")) {
        char *empty = malloc(HIDE(0ul));
        free(empty);
        free(HIDE(empty));
    } else if (!strcmp(what, "large_read")) {
        block = malloc(200000);
        free((void *)HIDE(block));
        (void)block[100000];
    } else if (!strcmp(what, "large_write")) {
        block = malloc(200000);
        free((void *)HIDE(block));
        block[0] = 1;
    } else if (!strcmp(what, "large_overflow")) {
        block = malloc(200000);
        block[4 << 16] = 1;
    } else if (!strcmp(what, "span_overflow")) {
        block = malloc(1000);
        for (size_t at = 0; at < 4 << 20; at++) block[at] = 1;
    } else if (!strcmp(what, "elsewhere")) {
        *(volatile char *)16 = 1;
    } else if (!strcmp(what, "damaged_realloc")) {
        char *damaged = malloc(40);
        memset(HIDE(damaged), 1, 48);
        EXPECT(realloc(damaged, 1000) == NULL);
    } else {
        EXPECT(!"a known argument");
    }
    puts("went on");
    return 0;
}
