// An allocation that fails throws what the program catches, without a word.
#include <cstdint>
#include <new>

static int n_calls;

static void gives_up() {
    n_calls++;
    std::set_new_handler(nullptr);
}

int main() {
    volatile std::size_t size = PTRDIFF_MAX;
    std::set_new_handler(gives_up);
    try {
        ::operator delete(::operator new(size));
    } catch (const std::bad_alloc &) {
        return n_calls == 1 ? 0 : 2;
    }
    return 1;
}
