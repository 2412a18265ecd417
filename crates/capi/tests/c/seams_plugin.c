/* A shared library that a test loads and unloads: it allocates in its constructor, in its functions, at the end of a thread and in its
 * destructor. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void *of_constructor;
static pthread_key_t key;

/* A thread's block is freed at its end, and one more block is allocated and freed. */
static void at_thread_end(void *block) {
    free(block);
    char *more = malloc(3000);
    if (!more) {
        abort();
    }
    memset(more, 1, 3000);
    free(more);
}

__attribute__((constructor)) static void loaded(void) {
    of_constructor = malloc(1000);
    if (!of_constructor || pthread_key_create(&key, at_thread_end) != 0) {
        abort();
    }
    memset(of_constructor, 7, 1000);
}

__attribute__((destructor)) static void unloaded(void) {
    if (((char *)of_constructor)[999] != 7) {
        abort();
    }
    free(of_constructor);
    free(malloc(50));
    /* A library with thread-exit functions must delete their key before it is unloaded: running threads would call unmapped code. */
    pthread_key_delete(key);
}

/* A block of the plugin's. */
void *plugin_block(size_t bytes) {
    void *block = malloc(bytes);
    if (block) {
        memset(block, 9, bytes);
    }
    return block;
}

/* The calling thread keeps a block to its end. */
void plugin_keep(void) {
    if (pthread_setspecific(key, malloc(100)) != 0) {
        abort();
    }
}
