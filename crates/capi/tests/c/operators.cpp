// The C++ operators: every form, what they do without memory, and programs that lean on them. Run by tests/operators.rs.
#include "expect.h"
#include <algorithm>
#include <csignal>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <memory_resource>
#include <new>
#include <set>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <unordered_map>
#include <vector>

// Keeps the compiler from knowing an address, and so from leaving out allocations.
static void *hide(void *block) {
    asm volatile("" : "+r"(block) : : "memory");
    return block;
}

// Larger than any object.
static size_t absurd() {
    size_t size = size_t(PTRDIFF_MAX) + 1;
    asm volatile("" : "+r"(size));
    return size;
}

static bool aligned(void *block, size_t align) { return (uintptr_t)block % align == 0; }

static void fill(void *block, size_t size) {
    EXPECT(block != nullptr && aligned(block, 16));
    memset(block, 0xA5, size);
}

static void forms() {
    static const size_t sizes[] = {0, 1, 16, 17, 48, 100, 1000, 8192, 32768, 32769, 100000, 5 << 20};
    for (size_t size : sizes) {
        for (int round = 0; round < 3; round++) {
            void *blocks[] = {::operator new(size), ::operator new[](size), ::operator new(size, std::nothrow),
                              ::operator new[](size, std::nothrow)};
            for (void *block : blocks) fill(block, size);
            for (int i = 0; i < 4; i++) for (int j = 0; j < i; j++) EXPECT(blocks[i] != blocks[j]);
            switch (round) {
            case 0:
                ::operator delete(blocks[0]), ::operator delete[](blocks[1]), ::operator delete(blocks[2], std::nothrow),
                    ::operator delete[](blocks[3], std::nothrow);
                break;
            case 1:
                ::operator delete(blocks[0], size), ::operator delete[](blocks[1], size), ::operator delete(blocks[2], size),
                    ::operator delete[](blocks[3], size);
                break;
            default:
                for (void *block : {blocks[0], blocks[2]}) std::thread([block, size] { ::operator delete(block, size); }).join();
                for (void *block : {blocks[1], blocks[3]}) std::thread([block, size] { ::operator delete[](block, size); }).join();
            }
        }
        for (size_t align = 16; align <= 1 << 16; align *= 2) {
            std::align_val_t told{align};
            for (int round = 0; round < 3; round++) {
                void *blocks[] = {::operator new(size, told), ::operator new[](size, told), ::operator new(size, told, std::nothrow),
                                  ::operator new[](size, told, std::nothrow)};
                for (void *block : blocks) {
                    fill(block, size);
                    EXPECT(aligned(block, align));
                }
                if (round == 0) {
                    ::operator delete(blocks[0], told), ::operator delete[](blocks[1], told);
                    ::operator delete(blocks[2], told, std::nothrow), ::operator delete[](blocks[3], told, std::nothrow);
                } else {
                    ::operator delete(blocks[0], size, told), ::operator delete[](blocks[1], size, told);
                    ::operator delete(blocks[2], size, told), ::operator delete[](blocks[3], size, told);
                }
            }
        }
    }
    void *null = hide(nullptr);
    std::align_val_t told{64};
    ::operator delete(null), ::operator delete[](null), ::operator delete(null, std::nothrow), ::operator delete[](null, std::nothrow);
    ::operator delete(null, 48), ::operator delete[](null, 48), ::operator delete(null, told), ::operator delete[](null, told);
    ::operator delete(null, 48, told), ::operator delete[](null, 48, told);
    ::operator delete(null, told, std::nothrow), ::operator delete[](null, told, std::nothrow);
}

// A size that is not the block's corrupts nothing: the block is freed as what it is.
static void wrong_sizes() {
    for (size_t told : {size_t(0), size_t(1), size_t(40), size_t(4096), size_t(1) << 20}) {
        std::set<char *> blocks;
        for (int i = 0; i < 2000; i++) ::operator delete(hide(::operator new(48)), told);
        for (int i = 0; i < 2000; i++) {
            char *block = (char *)::operator new(told ? told : 1);
            auto after = blocks.lower_bound(block);
            EXPECT(after == blocks.end() || block + told <= *after);
            EXPECT(after == blocks.begin() || *std::prev(after) + told <= block);
            blocks.insert(block);
        }
        for (char *block : blocks) ::operator delete(block);
    }
}

static int n_calls;
static void three_times() {
    if (++n_calls == 3) std::set_new_handler(nullptr);
}
struct Derived : std::bad_alloc {};
static void throws_at_once() {
    n_calls++;
    throw Derived();
}

template <class F> static bool throws(F allocate) {
    try {
        hide(allocate());
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

static void no_memory() {
    static const std::align_val_t told{64}, bad{48};
    std::function<void *()> throwing[] = {[] { return ::operator new(absurd()); }, [] { return ::operator new[](absurd()); },
                                          [] { return ::operator new(absurd(), told); }, [] { return ::operator new[](absurd(), told); }};
    std::function<void *()> quiet[] = {
        [] { return ::operator new(absurd(), std::nothrow); }, [] { return ::operator new[](absurd(), std::nothrow); },
        [] { return ::operator new(absurd(), told, std::nothrow); }, [] { return ::operator new[](absurd(), told, std::nothrow); }};
    for (auto &allocate : throwing) {
        EXPECT(throws(allocate));
        n_calls = 0, std::set_new_handler(three_times);
        EXPECT(throws(allocate) && n_calls == 3);
        n_calls = 0, std::set_new_handler(throws_at_once);
        bool caught = false;
        try {
            allocate();
        } catch (const Derived &) {
            caught = true;
        }
        EXPECT(caught && n_calls == 1);
        std::set_new_handler(nullptr);
    }
    // No handler can help an alignment that is none: it is not called.
    for (auto handler : {std::new_handler(nullptr), std::new_handler(throws_at_once)}) {
        n_calls = 0, std::set_new_handler(handler);
        EXPECT(throws([] { return ::operator new(100, bad); }) && throws([] { return ::operator new[](100, bad); }));
        EXPECT(::operator new(100, bad, std::nothrow) == nullptr && ::operator new[](100, bad, std::nothrow) == nullptr);
        EXPECT(n_calls == 0);
    }
    std::set_new_handler(nullptr);
    EXPECT(throws([] { return ::operator new(SIZE_MAX); }) && throws([] { return new char[absurd() - 1]; }));
    for (auto &allocate : quiet) {
        EXPECT(allocate() == nullptr);
        if (getenv("NO_LOADER")) continue;
        n_calls = 0, std::set_new_handler(three_times);
        EXPECT(allocate() == nullptr && n_calls == 3);
        n_calls = 0, std::set_new_handler(throws_at_once);
        EXPECT(allocate() == nullptr && n_calls == 1);
        std::set_new_handler(nullptr);
    }
    EXPECT(throws([] {
        std::vector<std::string> many;
        many.reserve(many.max_size());
        return nullptr;
    }));
}

// With a limit of 64 MiB: the new-handler gives back what the program can spare, and the allocation succeeds.
static char *spare;
static void give_spare_back() {
    n_calls++;
    delete[] spare;
    spare = nullptr;
    std::set_new_handler(nullptr);
}
static void makes_room() {
    spare = (char *)hide(new char[40 << 20]);
    std::set_new_handler(give_spare_back);
    char *block = (char *)hide(new char[40 << 20]);
    EXPECT(n_calls == 1 && spare == nullptr);
    delete[] block;
}

struct Fails {
    char bytes[4096];
    Fails() { throw 7; }
};
struct alignas(128) FailsAligned {
    char bytes[4096];
    FailsAligned() { throw 7; }
};
template <class T> static void leaks_nothing() {
    int n_caught = 0;
    for (int i = 0; i < 100000; i++) {
        try {
            if (i % 4 == 0) hide(new T);
            if (i % 4 == 1) hide(new T[2]);
            if (i % 4 == 2) hide(new (std::nothrow) T);
            if (i % 4 == 3) hide(new (std::nothrow) T[2]);
        } catch (int) {
            n_caught++;
        }
    }
    EXPECT(n_caught == 100000 && resident_kib() < 65536);
}
static void constructors() {
    leaks_nothing<Fails>();
    leaks_nothing<FailsAligned>();
}

struct Node {
    std::string name;
    std::vector<int> numbers;
    std::shared_ptr<Node> next;
};
template <class Map> static uint64_t churn(Map &map, uint64_t seed) {
    uint64_t sum = 0;
    for (int i = 0; i < 20000; i++) {
        uint64_t key = next_random(&seed) % 3000;
        auto node = std::make_shared<Node>(Node{std::string(key % 90, 'x'), std::vector<int>(key % 50, (int)key), nullptr});
        auto &place = map[key];
        node->next = i % 3 ? place : nullptr;
        place = node;
        if (i % 7 == 0) map.erase(next_random(&seed) % 3000);
    }
    for (auto &[key, node] : map) for (auto *it = node.get(); it; it = it->next.get()) sum += key + it->name.size() + it->numbers.size();
    for (auto &[key, node] : map) while (node) node = std::move(node->next);
    return sum;
}
static void containers() {
    std::map<uint64_t, std::shared_ptr<Node>> tree;
    std::unordered_map<uint64_t, std::shared_ptr<Node>> table;
    EXPECT(churn(tree, 42) == churn(table, 42));
    std::list<std::function<size_t()>> functions;
    std::deque<std::string> words;
    for (int i = 0; i < 5000; i++) {
        words.push_front(std::to_string(i) + std::string(i % 100, '-'));
        functions.push_back([text = words.front()] { return text.size(); });
    }
    size_t total = 0;
    for (auto &function : functions) total += function();
    for (auto &word : words) total -= word.size();
    EXPECT(total == 0);
    std::sort(words.begin(), words.end());
    std::stable_sort(words.begin(), words.end(), [](auto &a, auto &b) { return a.size() < b.size(); });
    EXPECT(words.front().size() == 1);
}

static void resources() {
    std::pmr::synchronized_pool_resource shared;
    std::pmr::unsynchronized_pool_resource pool(&shared);
    std::pmr::monotonic_buffer_resource arena(&pool);
    for (std::pmr::memory_resource *resource : {std::pmr::new_delete_resource(), (std::pmr::memory_resource *)&shared,
                                                (std::pmr::memory_resource *)&pool, (std::pmr::memory_resource *)&arena}) {
        std::pmr::map<int, std::pmr::string> map(resource);
        for (int i = 0; i < 5000; i++) map[i * 7919 % 5003].assign(i % 200, 'x');
        EXPECT(map.size() > 4000);
        void *block = resource->allocate(1000, 256);
        EXPECT(aligned(block, 256));
        resource->deallocate(block, 1000, 256);
    }
}

// Each thread deletes what the one before it made.
static void threads() {
    std::vector<std::unique_ptr<std::string>> passed(4000);
    for (int round = 0; round < 8; round++) {
        std::vector<std::thread> all;
        for (size_t part = 0; part < 4; part++) {
            all.emplace_back([&passed, part, round] {
                for (size_t i = part; i < passed.size(); i += 4) {
                    if (passed[i]) EXPECT(passed[i]->size() == (i * (size_t)round) % 777);
                    passed[i] = std::make_unique<std::string>((i * (size_t)(round + 1)) % 777, 'y');
                }
            });
        }
        for (auto &thread : all) thread.join();
    }
}

int main(int argc, char **argv) {
    static const std::map<std::string, void (*)()> parts = {
        {"forms", forms},           {"wrong_sizes", wrong_sizes}, {"no_memory", no_memory}, {"makes_room", makes_room},
        {"constructors", constructors}, {"containers", containers},   {"resources", resources}, {"threads", threads}};
    EXPECT(argc == 2 && parts.count(argv[1]));
    parts.at(argv[1])();
    return 0;
}
