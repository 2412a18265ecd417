/* A heap for each request: whatever the request allocates goes at once when it ends. */
#include <freestone.h>
#include <stdio.h>
#include <string.h>

static int handle(int number) {
    freestone_heap_t *heap = freestone_heap_new();
    if (!heap) {
        return -1;
    }
    size_t total = 0;
    for (int i = 0; i < 1000; i++) {
        char *line = freestone_heap_malloc(heap, 40 + (size_t)i % 100);
        if (!line) {
            freestone_heap_delete(heap);
            return -1;
        }
        snprintf(line, 40, "request %d, line %d", number, i);
        total += strlen(line);
    }
    freestone_heap_delete(heap);
    return (int)total;
}

int main(void) {
    for (int i = 0; i < 3; i++) {
        printf("request %d: %d characters\n", i, handle(i));
    }
    return 0;
}
