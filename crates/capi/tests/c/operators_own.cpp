// A program that brings its own functions. With OWN_MALLOC its own malloc family, without operators; otherwise its own operators: the plain
// ones, with OWN_ALIGNED the aligned ones too. Run by tests/operators.rs.
#include "expect.h"
#include <new>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <vector>

static const size_t AREA = size_t(1) << 30;
static char *area;
static size_t used;
static long n_allocated, n_freed;
static bool refuses;

// Blocks that are never reused, each behind a word that says that it is live.
static void *take(size_t size, size_t align) {
    if (refuses || size > AREA / 2) return nullptr;
    if (!area) {
        area = (char *)mmap(nullptr, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        EXPECT(area != MAP_FAILED);
    }
    align = align < 16 ? 16 : align;
    size_t start = __atomic_fetch_add(&used, size + 2 * align, __ATOMIC_RELAXED) + 16;
    start = (start + align - 1) & ~(align - 1);
    EXPECT(start + size <= AREA);
    ((uint64_t *)(area + start))[-1] = 0x11FE11FE;
    ((uint64_t *)(area + start))[-2] = size;
    __atomic_fetch_add(&n_allocated, 1, __ATOMIC_RELAXED);
    return area + start;
}
static bool is_own(void *block) { return area && block > area && block < area + AREA; }
static void give(void *block) {
    if (!block) return;
    EXPECT(is_own(block) && ((uint64_t *)block)[-1] == 0x11FE11FE);
    ((uint64_t *)block)[-1] = 0;
    __atomic_fetch_add(&n_freed, 1, __ATOMIC_RELAXED);
}

#ifdef OWN_MALLOC
extern "C" {
void *malloc(size_t size) { return take(size, 16); }
void free(void *block) { give(block); }
void *calloc(size_t count, size_t size) { return take(count * size, 16); }
void *aligned_alloc(size_t align, size_t size) {
    EXPECT(size % align == 0);
    return take(size, align);
}
void *memalign(size_t align, size_t size) { return take(size, align); }
int posix_memalign(void **block, size_t align, size_t size) {
    *block = take(size, align);
    return *block ? 0 : ENOMEM;
}
void *realloc(void *block, size_t size) {
    void *moved = take(size, 16);
    if (block && moved) memcpy(moved, block, ((uint64_t *)block)[-2] < size ? ((uint64_t *)block)[-2] : size), give(block);
    return moved;
}
size_t malloc_usable_size(void *block) { return block ? ((uint64_t *)block)[-2] : 0; }
}
#else
void *operator new(size_t size) {
    if (void *block = take(size, 16)) return block;
    throw std::bad_alloc();
}
void operator delete(void *block) noexcept { give(block); }
#ifdef OWN_ALIGNED
void *operator new(size_t size, std::align_val_t align) {
    if (void *block = take(size, (size_t)align)) return block;
    throw std::bad_alloc();
}
void operator delete(void *block, std::align_val_t) noexcept { give(block); }
#endif
#endif

static void *checked(void *block) {
    asm volatile("" : "+r"(block) : : "memory");
    EXPECT(is_own(block));
    return block;
}

struct alignas(64) Wide {
    char bytes[200];
    ~Wide() { asm volatile("" : : "r"(this) : "memory"); }
};

static void all_forms(size_t size) {
    ::operator delete(checked(::operator new(size)));
    ::operator delete(checked(::operator new(size)), size);
    ::operator delete(checked(::operator new(size, std::nothrow)), std::nothrow);
    ::operator delete[](checked(::operator new[](size)));
    ::operator delete[](checked(::operator new[](size)), size);
    ::operator delete[](checked(::operator new[](size, std::nothrow)), std::nothrow);
#if defined OWN_MALLOC || defined OWN_ALIGNED
    std::align_val_t align{256};
    ::operator delete(checked(::operator new(size, align)), align);
    ::operator delete(checked(::operator new(size, align)), size, align);
    ::operator delete(checked(::operator new(size, align, std::nothrow)), align, std::nothrow);
    ::operator delete[](checked(::operator new[](size, align)), align);
    ::operator delete[](checked(::operator new[](size, align)), size, align);
    ::operator delete[](checked(::operator new[](size, align, std::nothrow)), align, std::nothrow);
    delete (Wide *)checked(new Wide);
    delete[] new Wide[3];
#endif
}

int main() {
    for (size_t size : {0, 1, 48, 100, 5000, 40000, 1000000}) all_forms(size);
    std::thread([] { all_forms(48); }).join();
    void *block = checked(::operator new(48));
    std::thread([block] { ::operator delete(block, 48); }).join();
    std::vector<std::string> words;
    for (int i = 0; i < 1000; i++) words.push_back(std::string(100, 'x'));
    checked(words.data()), checked(words[7].data());
    refuses = true;
    bool caught = false;
    try {
        checked(::operator new[](48));
    } catch (const std::bad_alloc &) {
        caught = true;
    }
    EXPECT(caught);
    EXPECT(::operator new(48, std::nothrow) == nullptr && ::operator new[](48, std::nothrow) == nullptr);
#if defined OWN_MALLOC || defined OWN_ALIGNED
    EXPECT(::operator new(48, std::align_val_t{64}, std::nothrow) == nullptr);
    EXPECT(::operator new[](48, std::align_val_t{64}, std::nothrow) == nullptr);
#endif
    refuses = false;
    words.clear(), words.shrink_to_fit();
    EXPECT(n_allocated > 1000 && n_freed > 1000);
    return 0;
}
