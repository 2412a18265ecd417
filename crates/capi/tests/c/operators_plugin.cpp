// A C++ library that is loaded late, and not for everybody.
#include "expect.h"
#include <new>
#include <string>
#include <vector>

static int n_calls;
static void throws_at_once() {
    n_calls++;
    throw std::bad_alloc();
}

extern "C" {
std::string *plugin_new(size_t length) { return new std::string(length, 'p'); }
void plugin_delete(std::string *text) { delete text; }
void plugin_fails() { throw std::bad_alloc(); }

// What the operators do without memory.
void plugin_tests() {
    size_t absurd = size_t(PTRDIFF_MAX) + 1;
    asm volatile("" : "+r"(absurd));
    for (std::new_handler handler : {std::new_handler(nullptr), std::new_handler(throws_at_once)}) {
        std::set_new_handler(handler);
        bool caught = false;
        n_calls = 0;
        try {
            plugin_delete((std::string *)::operator new(absurd));
        } catch (const std::bad_alloc &) {
            caught = true;
        }
        EXPECT(caught && n_calls == (handler ? 1 : 0));
        EXPECT(::operator new(absurd, std::nothrow) == nullptr && n_calls == (handler ? 2 : 0));
    }
    std::set_new_handler(nullptr);
    std::vector<std::string> words;
    for (int i = 0; i < 10000; i++) words.push_back(std::string(i % 300, 'w'));
}
}
