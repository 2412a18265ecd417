/* What glibc exports of its malloc under other names is this library's: a block of one goes to any other. */
#define _GNU_SOURCE
#include "expect.h"
#include <dlfcn.h>
#include <malloc.h>

static void *named(const char *name) {
    void *function = dlsym(RTLD_DEFAULT, name);
    EXPECT(function);
    return function;
}

#define NAMED(type, ...) ((type (*)(__VA_ARGS__))named(name))

int main(void) {
    const char *name = "__libc_malloc";
    void *blocks[8];
    EXPECT(blocks[0] = NAMED(void *, size_t)(100));
    name = "__libc_calloc";
    EXPECT(blocks[1] = NAMED(void *, size_t, size_t)(10, 100));
    name = "__libc_memalign";
    EXPECT(blocks[2] = NAMED(void *, size_t, size_t)(4096, 100));
    EXPECT((uintptr_t)blocks[2] % 4096 == 0);
    name = "__libc_valloc";
    EXPECT(blocks[3] = NAMED(void *, size_t)(100));
    name = "__libc_pvalloc";
    EXPECT(blocks[4] = NAMED(void *, size_t)(100));
    name = "__libc_realloc";
    EXPECT(blocks[5] = NAMED(void *, void *, size_t)(malloc(10), 100000));
    EXPECT(blocks[6] = malloc(100));
    EXPECT(blocks[7] = malloc(100));
    for (int i = 0; i < 8; i++) {
        EXPECT(malloc_usable_size(blocks[i]) >= 100);
        memset(blocks[i], 1, 100);
    }
    for (int i = 0; i < 6; i++) {
        free(blocks[i]);
    }
    name = "__libc_free";
    NAMED(void, void *)(blocks[6]);
    name = "cfree";
    NAMED(void, void *)(blocks[7]);
    return 0;
}
