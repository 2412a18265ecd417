// Three functions that hold memory: one at the peak only, one through a container of C++, one until the end.

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

namespace cache {

struct Cache {
    std::map<int, std::string> items;
    __attribute__((noinline)) void fill(int n) {
        for (int at = 0; at < n; at++) items[at] = std::string(1000, 'x');
    }
};

} // namespace cache

__attribute__((noinline)) char *burst(size_t bytes) {
    auto *made = static_cast<char *>(malloc(bytes));
    memset(made, 1, bytes);
    return made;
}

__attribute__((noinline)) char *keep(size_t bytes) {
    auto *made = static_cast<char *>(malloc(bytes));
    memset(made, 2, bytes);
    return made;
}

char *volatile kept;

int main() {
    auto *cache = new cache::Cache;
    cache->fill(20000);
    char *volatile first = burst(64 << 20);
    free(first);
    kept = keep(8 << 20);
    return 0;
}
