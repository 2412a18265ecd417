// A program whose plain operators count and call malloc and free. Every other form calls them, although a block is this thread's, and small. Run by
// tests/operators.rs.
#include "expect.h"
#include <new>
#include <stdlib.h>
#include <thread>

static long n_allocated, n_freed;

void *operator new(size_t size) {
    __atomic_fetch_add(&n_allocated, 1, __ATOMIC_RELAXED);
    if (void *block = malloc(size)) return block;
    throw std::bad_alloc();
}

void operator delete(void *block) noexcept {
    __atomic_fetch_add(&n_freed, 1, __ATOMIC_RELAXED);
    free(block);
}

static void free_all(void *const (&blocks)[5], size_t size) {
    ::operator delete(blocks[0]);
    ::operator delete(blocks[1], size);
    ::operator delete(blocks[2], std::nothrow);
    ::operator delete[](blocks[3]);
    ::operator delete[](blocks[4], size);
}

int main() {
    long n_expected = 0;
    static const size_t sizes[] = {16, 100, 3000, 30000, 100000};
    for (size_t size : sizes) {
        for (int i = 0; i < 200; i++) {
            void *blocks[] = {::operator new(size), ::operator new(size), ::operator new(size, std::nothrow), ::operator new[](size),
                              ::operator new[](size, std::nothrow)};
            long before = n_freed;
            if (i % 50 == 0) {
                std::thread([&] { free_all(blocks, size); }).join();
                EXPECT(n_freed >= before + 5); // A thread's own state may be freed too.
            } else {
                free_all(blocks, size);
                EXPECT(n_freed == before + 5);
            }
            n_expected += 5;
        }
    }
    EXPECT(n_allocated >= n_expected);
    return 0;
}
