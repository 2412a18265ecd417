/* Allocates for a quarter of a second: long enough for files that are made by a slow path. */
#define _POSIX_C_SOURCE 200809L
#include "clock.h"
#include <stdlib.h>

int main(void) {
    void *blocks[1000] = {0};
    double end = now_us() + 250e3;
    for (size_t size = 1; now_us() < end; size = size * 7 % 50021) {
        for (int n = 0; n < 1000; n++) {
            free(blocks[n]);
            blocks[n] = malloc(size);
        }
    }
    for (int n = 0; n < 1000; n++) free(blocks[n]);
    return 7;
}
