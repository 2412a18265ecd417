/* A program with AddressSanitizer, beside the library: `malloc` is the sanitizer's and finds faults; the
 * library's explicit heaps work beside it, and the sanitizer does not check them. */
#define _GNU_SOURCE
#include "expect.h"
#include "freestone.h"
#include <pthread.h>

static void *volatile sink;

static void *work(void *heap) {
    for (int i = 0; i < 2000; i++) {
        char *block = malloc((size_t)i + 1), *own = freestone_heap_malloc(heap, (size_t)i + 1);
        EXPECT(block && own);
        memset(block, 1, (size_t)i + 1);
        memset(own, 2, (size_t)i + 1);
        free(block);
        char *grown = realloc(malloc(20), 3000);
        EXPECT(grown);
        free(HIDE(grown));
    }
    return NULL;
}

int main(int argc, char **argv) {
    alarm(100);
    EXPECT(argc == 2);
    freestone_heap_t *heap = freestone_heap_new();
    EXPECT(heap);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        EXPECT(pthread_create(&threads[i], NULL, work, heap) == 0);
    }
    for (int i = 0; i < 3; i++) {
        EXPECT(pthread_join(threads[i], NULL) == 0);
    }
    freestone_heap_delete(heap);
    freestone_purge();
    if (!strcmp(argv[1], "use_after_free")) {
        char *block = malloc(100);
        sink = block;
        free(HIDE(block));
        return ((char *)sink)[50];
    }
    return 0;
}
