/* A small program. The library has no reason to read the clock in it, whose code would be resident: it would read it by the function below. And of the
   library's own code it uses none but the first 64 KiB: the kernel maps files in windows of that length. */
#define _GNU_SOURCE
#include "first_code.h"
#include <time.h>

#define N_BLOCKS 400
#define CODE_KIB 64

int clock_gettime(clockid_t clock, struct timespec *now) {
    static const char text[] = "the clock was read\n";
    (void)clock;
    (void)!write(2, text, sizeof text - 1);
    *now = (struct timespec){0};
    return 0;
}

int main(void) {
    static char *blocks[N_BLOCKS];
    uint64_t state = 88172645463325252;
    only_first_code(CODE_KIB);
    for (int i = 0; i < 200000; i++) {
        char **block = &blocks[next_random(&state) % N_BLOCKS];
        size_t bytes = 16 + next_random(&state) % 1024;
        free(*block);
        *block = malloc(bytes);
        EXPECT(*block);
        memset(*block, 1, bytes);
    }
    return 0;
}
