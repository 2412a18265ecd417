// A C++ program that loads a C++ library which prefers its own and its dependencies' functions to those of the process. Run by
// tests/operators.rs.
#include "expect.h"
#include <dlfcn.h>
#include <new>
#include <string>

int main(int, char **argv) {
    for (int mode : {RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND, RTLD_NOW | RTLD_GLOBAL}) {
        void *plugin = dlopen(argv[1], mode);
        EXPECT(plugin);
        auto plugin_new = (std::string * (*)(size_t)) dlsym(plugin, "plugin_new");
        auto plugin_delete = (void (*)(std::string *))dlsym(plugin, "plugin_delete");
        auto plugin_fails = (void (*)())dlsym(plugin, "plugin_fails");
        auto plugin_tests = (void (*)())dlsym(plugin, "plugin_tests");
        EXPECT(plugin_new && plugin_delete && plugin_fails && plugin_tests);
        for (size_t length = 0; length < 100000; length = length * 2 + 1) {
            std::string *text = plugin_new(length);
            EXPECT(text->size() == length);
            delete text;
            plugin_delete(new std::string(length, 'm'));
        }
        bool caught = false;
        try {
            plugin_fails();
        } catch (const std::bad_alloc &) {
            caught = true;
        }
        EXPECT(caught);
        plugin_tests();
    }
    return 0;
}
