/* A program with ThreadSanitizer, beside the preloaded library: `malloc` is the sanitizer's, which finds races. */
#define _GNU_SOURCE
#include "expect.h"
#include <pthread.h>

static int *shared;

static void *work(void *is_racing) {
    for (int i = 0; i < 2000; i++) {
        char *block = malloc((size_t)i + 1);
        EXPECT(block);
        memset(block, 1, (size_t)i + 1);
        free(block);
    }
    if (is_racing) {
        ++*shared;
    }
    return NULL;
}

int main(int argc, char **argv) {
    alarm(100);
    EXPECT(argc == 2);
    shared = calloc(1, sizeof *shared);
    EXPECT(shared);
    void *is_racing = strcmp(argv[1], "race") ? NULL : shared;
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        EXPECT(pthread_create(&threads[i], NULL, work, is_racing) == 0);
    }
    for (int i = 0; i < 2; i++) {
        EXPECT(pthread_join(threads[i], NULL) == 0);
    }
    free(shared);
    return 0;
}
