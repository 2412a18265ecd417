/*
 * A program with an allocator of its own that uses explicit heaps by the C++ interface; and one whose static objects end after all others.
 *
 *   own malloc   (-DOWN) blocks of a handle never reach the program's free
 *   statics      a container that was made from the default resource ends after main, when static objects of functions are gone
 */
#include "freestone.hpp"
#include <cstdio>
#include <cstring>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#ifdef OWN
alignas(16) static char arena[1 << 24];
static std::size_t used;

extern "C" void *malloc(std::size_t bytes) noexcept {
    void *block = arena + used;
    used += (bytes + 15) / 16 * 16;
    return block;
}

extern "C" void free(void *block) noexcept {
    char *at = static_cast<char *>(block);
    if (at && (at < arena || at >= arena + sizeof arena)) {
        std::fputs("a block of another allocator reached the program's free\n", stderr);
        std::_Exit(1);
    }
}

int main() {
    freestone::heap heap;
    for (std::size_t bytes : {24, 1000, 100000}) {
        void *block = heap.allocate(bytes);
        if (!block) return 2;
        heap.deallocate(block);
    }
    freestone::memory_resource<freestone::heap> resource(heap);
    {
        std::pmr::vector<int> numbers(&resource);
        numbers.resize(10000);
    }
    return heap.stats().live == 0 ? 0 : 3;
}
#else
struct Registry {
    std::optional<std::pmr::vector<std::pmr::string>> names;
};
static Registry registry;

int main() {
    std::pmr::set_default_resource(freestone::process_resource());
    registry.names.emplace();
    registry.names->emplace_back("a text that is long enough not to be kept inside of the string itself");
    return 0;
}
#endif
