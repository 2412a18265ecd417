/* A program that loads a library which is to prefer its own dependencies' functions. Run by tests/deep_binding.rs: the library, a library that only this one
   finds, and whether they share blocks with the program. */
#define _GNU_SOURCE
#include "expect.h"
#include <dlfcn.h>

#ifdef OWN
/* A malloc of the program's own, of which the library knows nothing. */
static _Alignas(16) char memory[16 << 20];
static size_t used;
void *malloc(size_t bytes) {
    size_t start = __atomic_fetch_add(&used, (bytes + 31) / 16 * 16, __ATOMIC_RELAXED);
    if (start + bytes + 16 > sizeof memory) return NULL;
    *(size_t *)&memory[start] = bytes;
    return &memory[start + 16];
}
void free(void *block) { (void)block; }
void *calloc(size_t n, size_t bytes) { return malloc(n * bytes); }
void *realloc(void *block, size_t bytes) {
    void *other = malloc(bytes);
    if (other && block) memcpy(other, block, ((size_t *)block)[-2] < bytes ? ((size_t *)block)[-2] : bytes);
    return other;
}
#endif

int main(int argc, char **argv) {
    EXPECT(argc == 4);
    int shares = strcmp(argv[3], "shares") == 0;
    EXPECT(!dlopen("/no/such/library.so", RTLD_NOW | RTLD_DEEPBIND) && strstr(dlerror(), "/no/such/library.so"));
    EXPECT(dlopen(NULL, RTLD_NOW | RTLD_DEEPBIND));
    EXPECT(!dlopen(argv[2], RTLD_NOW | RTLD_DEEPBIND));

    void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    EXPECT(plugin && plugin == dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD | RTLD_DEEPBIND));
    char *(*plugin_makes)(size_t) = (char *(*)(size_t))dlsym(plugin, "plugin_makes");
    void (*plugin_takes)(char *) = (void (*)(char *))dlsym(plugin, "plugin_takes");
    void *(*plugin_malloc)(void) = (void *(*)(void))dlsym(plugin, "plugin_malloc");
    void *(*plugin_loads)(const char *) = (void *(*)(const char *))dlsym(plugin, "plugin_loads");
    EXPECT(plugin_makes && plugin_takes && plugin_malloc && plugin_loads);
    EXPECT(!dlsym(RTLD_DEFAULT, "plugin_makes"));
    EXPECT(plugin_loads(argv[2]));

    EXPECT((plugin_malloc() == dlsym(RTLD_DEFAULT, "malloc")) == shares);
    for (size_t length = 0; shares && length < 10000000; length = length * 2 + 1) {
        char *text = plugin_makes(length);
        EXPECT(strlen(text) == length);
        free(text);
        plugin_takes(strdup(argv[1]));
    }
    return 0;
}
