// A program that gets no memory, and catches nothing. Run by tests/operators.rs.
#include <cstddef>
#include <cstdint>
#include <new>

int main() {
    size_t absurd = size_t(PTRDIFF_MAX) + 1;
    void *block = nullptr;
    asm volatile("" : "+r"(absurd));
    block = ::operator new(absurd);
    asm volatile("" : "+r"(block) : : "memory");
    return 0;
}
