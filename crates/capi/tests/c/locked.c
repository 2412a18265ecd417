/* Memory that the program locks within its blocks: the kernel puts no guard there, and half of a guard would close what is handed out next. */
#include "expect.h"
#include <sys/mman.h>

#define PAGE 65536

static void use(int n, size_t size) {
    char *blocks[6];
    for (int i = 0; i < n; i++) {
        EXPECT(blocks[i] = malloc(size));
        memset(blocks[i], i, size);
    }
    while (n-- > 0) {
        free(HIDE(blocks[n]));
    }
}

/* A block of which a part is locked grows, and others take its place. */
static void grows(void) {
    char *block = malloc(20 * PAGE), *behind = malloc(4 * PAGE);
    memset(block, 1, 20 * PAGE);
    memset(behind, 1, 4 * PAGE);
    if (mlock(block + 8 * PAGE + 4096, 20000) != 0) {
        fprintf(stderr, "skipped: memory cannot be locked\n");
        return;
    }
    EXPECT(block = realloc(block, 60 * PAGE));
    memset(block, 2, 60 * PAGE);
    use(6, 8 * PAGE - 100);
    use(6, 14 * PAGE - 100);
    free(HIDE(block));
    free(HIDE(behind));
}

/* A block of which a part is locked is freed, and others take its place. */
static void is_freed(size_t at, size_t bytes) {
    char *block = malloc(20 * PAGE);
    memset(block, 1, 20 * PAGE);
    if (mlock(block + at, bytes) == 0) {
        free(HIDE(block));
        use(4, 20 * PAGE);
        use(6, 3 * PAGE - 100);
    }
}

int main(void) {
    grows();
    for (size_t at = 4096; at < 18 * PAGE; at += 3 * PAGE + 4096) {
        is_freed(at, 20000);
        is_freed(at, 2 * PAGE);
    }
    return 0;
}
