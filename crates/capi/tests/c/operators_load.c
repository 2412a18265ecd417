/* A C program that loads a C++ library late, or calls an operator although no C++ runtime is there. Run by tests/operators.rs. */
#include "expect.h"
#include <dlfcn.h>

int main(int argc, char **argv) {
    EXPECT(argc == 2);
    if (!strcmp(argv[1], "alone")) {
        void *(*operator_new)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "_Znwm");
        void *(*operator_new_nothrow)(size_t, const void *) = (void *(*)(size_t, const void *))dlsym(RTLD_DEFAULT, "_ZnwmRKSt9nothrow_t");
        void (*operator_delete)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "_ZdlPv");
        EXPECT(operator_new && operator_new_nothrow && operator_delete);
        operator_delete(operator_new(48));
        EXPECT(operator_new_nothrow((size_t)PTRDIFF_MAX + 1, "") == NULL);
        operator_new((size_t)PTRDIFF_MAX + 1);
    } else {
        void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        EXPECT(plugin);
        void (*plugin_tests)(void) = (void (*)(void))dlsym(plugin, "plugin_tests");
        EXPECT(plugin_tests);
        plugin_tests();
    }
    return 0;
}
