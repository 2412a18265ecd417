// A program that replaces forms of the operators which the standard defines by other forms, with functions of C.
#include "expect.h"
#include <new>
#include <stdlib.h>

void operator delete(void *block, size_t) noexcept { free(block); }
void *operator new(size_t size, const std::nothrow_t &) noexcept { return malloc(size); }

template <typename T> static T *hide(T *pointer) {
    asm volatile("" : "+r"(pointer) : : "memory");
    return pointer;
}

struct Thing {
    char bytes[100];
};

int main() {
    for (int i = 0; i < 1000; i++) {
        delete hide(new Thing);
        delete hide(new (std::nothrow) Thing);
        ::operator delete(hide(::operator new(100, std::nothrow)));
    }
    return 0;
}
