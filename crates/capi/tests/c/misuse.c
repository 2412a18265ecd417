/* One invalid free each, by argument. Under a policy that continues, the program must end normally afterwards. */
#include "expect.h"
#include "freestone.h"
#include <sys/mman.h>

static void flush(void) {
    freestone_purge();
}

int main(int argc, char **argv) {
    EXPECT(argc > 1);
    const char *what = argv[1];
    char on_stack[64];
    static char is_static[64];
    if (!strcmp(what, "double_small")) {
        char *block = malloc(48);
        free(block);
        free(HIDE(block));
        flush();
    } else if (!strcmp(what, "double_of_heap")) {
        /* Heaps have numbers in the order of their first use: the thread's comes first, whether the C library has allocated or not. */
        free(HIDE(malloc(48)));
        freestone_heap_t *heap = freestone_heap_new();
        char *blocks[8];
        for (int i = 0; i < 8; i++) {
            EXPECT(blocks[i] = freestone_heap_malloc(heap, 48));
        }
        freestone_heap_free(heap, blocks[3]);
        freestone_heap_free(heap, HIDE(blocks[3]));
        EXPECT(freestone_heap_malloc(heap, 48));
        freestone_heap_delete(heap);
    } else if (!strcmp(what, "double_large")) {
        char *block = malloc(1 << 20);
        free(block);
        free(HIDE(block));
    } else if (!strcmp(what, "double_kept")) {
        /* Of a length that is freed and allocated in turn, so that the thread caches it. */
        char *block = NULL;
        for (int i = 0; i < 40; i++) {
            block = malloc(1 << 20);
            EXPECT(block);
            free(HIDE(block));
        }
        free(HIDE(block));
    } else if (!strcmp(what, "interior_small")) {
        char *block = malloc(96);
        free(HIDE(block) + 16);
        flush();
    } else if (!strcmp(what, "interior_large")) {
        char *block = malloc(1 << 20);
        free(HIDE(block) + 65536);
    } else if (!strcmp(what, "stack")) {
        free(HIDE((char *)on_stack));
    } else if (!strcmp(what, "static")) {
        free(HIDE((char *)is_static));
    } else if (!strcmp(what, "mapping")) {
        void *mapping = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        free(mapping);
    } else if (!strcmp(what, "window")) {
        char *block = malloc(16);
        free(HIDE(block) + ((uintptr_t)1 << 36));
    } else if (!strcmp(what, "realloc_foreign")) {
        char *foreign = HIDE((char *)is_static);
        EXPECT(realloc(foreign, 100) == NULL);
    } else if (!strcmp(what, "usable_foreign")) {
        EXPECT(malloc_usable_size(HIDE((char *)is_static)) == 0);
    } else {
        EXPECT(!"a known misuse");
    }
    char *after = malloc(100);
    EXPECT(after);
    memset(after, 1, 100);
    free(after);
    puts("went on");
    return 0;
}
