/* What most programs of one thread do: blocks of many sizes that come and go, some cleared, aligned or growing, and structures that are freed as a whole. Of the
   library they use none but what its linker script (`order.ld`) lays out first. */
#define _GNU_SOURCE
#include "first_code.h"

#define N_BLOCKS 4000
#define CODE_KIB 132

static char *blocks[N_BLOCKS];

/* Replaces a block by another of up to `most` bytes. */
static void replace(uint64_t *state, size_t most) {
    char **block = &blocks[next_random(state) % N_BLOCKS];
    size_t bytes = 1 + next_random(state) % most;
    switch (next_random(state) % 8) {
    case 0:
        *block = realloc(*block, bytes);
        break;
    case 1:
        free(*block);
        *block = calloc(1, bytes);
        break;
    case 2:
        free(*block);
        EXPECT(posix_memalign((void **)block, 64, bytes) == 0);
        break;
    default:
        free(*block);
        *block = malloc(bytes);
    }
    EXPECT(*block);
    memset(*block, 1, bytes);
}

int main(void) {
    uint64_t state = 88172645463325252;
    only_first_code(CODE_KIB);
    for (int round = 0; round < 3; round++) {
        char *growing = NULL;
        for (int i = 0; i < 40000; i++) {
            replace(&state, i % 100 ? (i % 10 ? 300 : 9000) : 300000);
            if (i % 100 == 0) {
                growing = realloc(growing, (size_t)(i + 1) * 20);
                EXPECT(growing);
            }
        }
        free(growing);
        for (int i = 0; i < N_BLOCKS; i++) {
            free(blocks[i]);
            blocks[i] = NULL;
        }
    }
    return 0;
}
