/* freestone.hpp: handles, memory resources and allocators. A part is named by the first argument. */
#include "expect.h"
#include "freestone.hpp"

#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

/* Live bytes of the process. */
static uint64_t live() {
    freestone_stats_t stats{};
    stats.size = sizeof stats;
    EXPECT(freestone_stats(&stats) == 0);
    return stats.live;
}

alignas(64) static char memory[1 << 20];

/* Fills containers of several kinds through a resource. */
static void fill(std::pmr::memory_resource *resource, std::size_t n) {
    std::pmr::vector<int> numbers(resource);
    std::pmr::map<int, std::pmr::string> names(resource);
    for (std::size_t i = 0; i < n; i++) {
        numbers.push_back(int(i));
        names.emplace(int(i), "a string that is too long to lie in its object");
    }
    EXPECT(numbers.size() == n && names.size() == n && names.at(int(n - 1)).get_allocator().resource() == resource);
    void *aligned = resource->allocate(100, 256);
    EXPECT(reinterpret_cast<uintptr_t>(aligned) % 256 == 0);
    resource->deallocate(aligned, 100, 256);
    void *nothing = resource->allocate(0, 1);
    EXPECT(nothing != nullptr);
    resource->deallocate(nothing, 0, 1);
}

static void resources() {
    fill(freestone::process_resource(), 1000);
    EXPECT(*freestone::process_resource() == *freestone::process_resource());
    freestone::heap heap;
    EXPECT(heap);
    freestone::memory_resource of_heap(heap);
    fill(&of_heap, 1000);
    freestone::tlsf tlsf(memory, sizeof memory);
    EXPECT(tlsf);
    freestone::memory_resource of_tlsf(tlsf);
    fill(&of_tlsf, 1000);
    EXPECT(tlsf.check() && of_heap != of_tlsf);
    freestone_tlsf_stats_t stats{};
    stats.size = sizeof stats;
    EXPECT(freestone_tlsf_stats(tlsf.get(), &stats) == 0 && stats.n_used_blocks == 0);
    /* A node of a list is larger than its value; all are of one size. */
    freestone_pool_shape_t shape{};
    shape.size = sizeof shape;
    shape.block_size = 64;
    shape.count = 100;
    freestone::pool pool(shape);
    freestone::memory_resource of_pool(pool);
    {
        std::pmr::list<int> numbers(&of_pool);
        for (int i = 0; i < 100; i++) numbers.push_back(i);
        EXPECT(pool.allocate(1) == nullptr && numbers.back() == 99);
    }
    void *block = pool.allocate(64, 16);
    EXPECT(block != nullptr && pool.allocate(65) == nullptr && pool.allocate(1, 32) == nullptr);
    pool.deallocate(block);
}

static void allocators() {
    std::vector<int, freestone::allocator<int>> numbers(1000, 7);
    std::map<int, int, std::less<int>, freestone::allocator<std::pair<const int, int>>> squares;
    for (int i = 0; i < 100; i++) squares[i] = i * i;
    EXPECT(numbers[999] == 7 && squares[9] == 81 && freestone::allocator<int>() == freestone::allocator<char>());
    static_assert(std::is_empty_v<freestone::allocator<int>>);
    freestone::heap one, other;
    using In = freestone::allocator<long, freestone::heap>;
    EXPECT(In(one) == In(one) && In(one) != In(other));
    std::vector<long, In> here(100, 1, In(one)), there(200, 2, In(other));
    here.swap(there);
    EXPECT(here.size() == 200 && here.get_allocator() == In(other));
    here = std::move(there);
    EXPECT(here.size() == 100 && here.get_allocator() == In(one) && here[99] == 1);
    auto shared = std::allocate_shared<long>(In(one), 5L);
    EXPECT(*shared == 5);
    struct alignas(128) Wide {
        char bytes[128];
    };
    std::vector<Wide, freestone::allocator<Wide>> wide(3);
    EXPECT(reinterpret_cast<uintptr_t>(wide.data()) % 128 == 0);
}

static void handles() {
    static_assert(!std::is_copy_constructible_v<freestone::heap> && std::is_nothrow_move_constructible_v<freestone::heap>);
    static_assert(!std::is_copy_constructible_v<freestone::pool> && std::is_nothrow_move_assignable_v<freestone::tlsf>);
    uint64_t before = live();
    {
        freestone::heap heap;
        void *block = heap.allocate(1 << 20);
        EXPECT(block != nullptr && live() >= before + (1 << 20));
        freestone::heap moved = std::move(heap);
        EXPECT(!heap && moved && heap.allocate(1) == nullptr && heap.set_limit(1 << 20) == FREESTONE_BAD_LIMIT);
        EXPECT(moved.allocate(1) != nullptr);
        freestone::heap third;
        third = std::move(moved);
        EXPECT(!moved && third.allocate(1) != nullptr && third.set_limit(4 << 20) == FREESTONE_OK);
        EXPECT(third.allocate(8 << 20) == nullptr && errno == ENOMEM && third.last_error().code == FREESTONE_NO_MEMORY);
        EXPECT(third.stats().limit == 4 << 20);
    }
    EXPECT(live() < before + (1 << 20));
    freestone::error why{};
    EXPECT(!freestone::heap("no such level", 0, &why) && why.code == FREESTONE_NO_SUCH_LEVEL && freestone::heap("checks"));
    EXPECT(!freestone::tlsf(memory + 1, 4096, &why) && why.code == FREESTONE_TLSF_REGION_MISALIGNED);
    freestone::tlsf tlsf(memory, sizeof memory / 2);
    freestone::tlsf filled = std::move(tlsf);
    char *rest = memory + sizeof memory / 2;
    EXPECT(!tlsf && tlsf.add_region(rest, sizeof memory / 2) == FREESTONE_TLSF_TOO_MANY_REGIONS && !tlsf.check());
    tlsf = std::move(filled);
    EXPECT(tlsf.add_region(rest, sizeof memory / 2) == FREESTONE_OK);
    void *block = tlsf.allocate(100);
    /* Hidden: the compiler knows what frees a block, and would refuse the second free. */
    void *volatile again = block;
    tlsf.deallocate(again);
    tlsf.deallocate(again);
    EXPECT(tlsf.last_error().code == FREESTONE_TLSF_DOUBLE_FREE);
    auto pool = freestone::pool::of<double>(10);
    EXPECT(pool && pool.get() != nullptr);
    freestone_pool_t *raw = pool.release();
    EXPECT(!pool && freestone_pool_delete(raw) == FREESTONE_OK);
    EXPECT(!freestone::pool(freestone_pool_shape_t{}, &why) && why.code == FREESTONE_BAD_STRUCT);
}

/* Without memory a resource throws; without exceptions it ends the process, which the test expects. */
static void no_memory() {
    freestone::heap heap;
    EXPECT(heap.set_limit(1 << 20) == FREESTONE_OK);
    freestone::memory_resource resource(heap);
#if defined(__cpp_exceptions)
    int caught = 0;
    try {
        (void)resource.allocate(2 << 20);
    } catch (const std::bad_alloc &) {
        caught++;
    }
    try {
        (void)freestone::allocator<long>().allocate(SIZE_MAX / 4);
    } catch (const std::bad_alloc &) {
        caught++;
    }
    EXPECT(caught == 2);
#else
    (void)resource.allocate(2 << 20);
#endif
}

int main(int argc, char **argv) {
    const char *part = argc > 1 ? argv[1] : "";
    if (!std::strcmp(part, "resources")) resources();
    else if (!std::strcmp(part, "allocators")) allocators();
    else if (!std::strcmp(part, "handles")) handles();
    else if (!std::strcmp(part, "no_memory")) no_memory();
    else return 2;
    return 0;
}
