/* Allocates for a quarter of a second: long enough for files that are made by a slow path. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <time.h>

static long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(void) {
    void *blocks[1000] = {0};
    long end = now_ms() + 250;
    for (size_t size = 1; now_ms() < end; size = size * 7 % 50021) {
        for (int n = 0; n < 1000; n++) {
            free(blocks[n]);
            blocks[n] = malloc(size);
        }
    }
    for (int n = 0; n < 1000; n++) free(blocks[n]);
    return 7;
}
