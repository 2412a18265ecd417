/*
 * freestone.hpp: Freestone for C++17, over the C interface of freestone.h. Nothing to compile: link with `-lfreestone`.
 *
 *   freestone::heap, tlsf, pool       handles that end what they hold when they are destroyed; they move and are not copied
 *   freestone::memory_resource<H>     a std::pmr::memory_resource over such a handle, or over freestone::process
 *   freestone::allocator<T, H>        an allocator for the standard containers, over the same
 *
 *     freestone::heap heap;
 *     freestone::memory_resource resource(heap);
 *     std::pmr::vector<int> numbers(&resource);
 *     freestone::allocator<int, freestone::heap> of_heap(heap);
 *     std::vector<int, freestone::allocator<int, freestone::heap>> others(of_heap);
 *
 * A handle may be empty: it could not be created, or was moved from. `if (heap)` tells; an empty handle allocates nothing. Members of handles never throw
 * and return nullptr or a code as the C functions do. Resources and allocators throw std::bad_alloc when memory runs out; compiled with
 * -fno-exceptions, they end the process with std::abort. Neither needs RTTI.
 *
 * A resource or an allocator refers to its handle, which has to stay where it is and outlive it. Threads: process and heap may be used by any thread at any
 * time; a tlsf by one thread at a time; a pool too, unless it was created with `shared`.
 */
#ifndef FREESTONE_HPP
#define FREESTONE_HPP

#include "freestone.h"

#include <cstddef>
#include <cstdlib>
#include <memory_resource>
#include <new>
#include <type_traits>
#include <utility>

namespace freestone {

/* The C interface's error: code, addresses, sizes. `code` is FREESTONE_OK if no call was refused. */
using error = freestone_error_t;

/* FREESTONE_OK, or why a call was refused. */
using code = freestone_code_t;

/* The process's own allocator: what malloc and free call. It holds nothing, and all its values are one. */
class process {
  public:
    /* A block, or nullptr when memory runs out. `align` is a power of two. */
    [[nodiscard]] void *allocate(std::size_t bytes, std::size_t align = alignof(std::max_align_t)) noexcept {
        return align <= alignof(std::max_align_t) ? ::malloc(bytes) : ::aligned_alloc(align, bytes);
    }

    /* Frees a block of any heap of the process; nullptr does nothing. */
    void deallocate(void *block, std::size_t = 0, std::size_t = 0) noexcept { ::free(block); }
};

namespace detail {

/* A C handle that is ended by END. */
template <class T, auto END>
class handle {
  public:
    explicit handle(T *raw = nullptr) noexcept : raw_(raw) {}
    handle(handle &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    handle &operator=(handle &&other) noexcept {
        if (this != &other) reset(std::exchange(other.raw_, nullptr));
        return *this;
    }
    handle(const handle &) = delete;
    handle &operator=(const handle &) = delete;
    ~handle() { reset(nullptr); }

    /* Whether there is something behind it. */
    explicit operator bool() const noexcept { return raw_ != nullptr; }

    /* The C handle, which stays this object's. */
    [[nodiscard]] T *get() const noexcept { return raw_; }

    /* The C handle, which is the caller's from now on. */
    [[nodiscard]] T *release() noexcept { return std::exchange(raw_, nullptr); }

  private:
    void reset(T *raw) noexcept {
        if (raw_) END(raw_);
        raw_ = raw;
    }

    T *raw_;
};

inline void end_heap(freestone_heap_t *raw) noexcept { freestone_heap_delete(raw); }
inline void end_tlsf(freestone_tlsf_t *raw) noexcept { freestone_tlsf_delete(raw); }

/* A pool with blocks in use cannot end: whoever holds one would write to memory of others. Its memory stays. */
inline void end_pool(freestone_pool_t *raw) noexcept { (void)freestone_pool_delete(raw); }

[[noreturn]] inline void fail() {
#if defined(__cpp_exceptions)
    throw std::bad_alloc();
#else
    std::abort();
#endif
}

} // namespace detail

/* An explicit heap: destroying it frees all its blocks at once. Any thread may use it. */
class heap : public detail::handle<freestone_heap_t, detail::end_heap> {
  public:
    /* A new heap; empty when memory runs out. */
    heap() noexcept : handle(freestone_heap_new()) {}

    /* A new heap hardened as the word `level` of the option `harden` says (nullptr: as the process is), and limited to `limit` bytes (0: without a limit);
     * empty if that is refused, and `*why` says why. */
    explicit heap(const char *level, std::size_t limit = 0, error *why = nullptr) noexcept : handle(create(level, limit, why)) {}

    /* Limits the heap to `bytes`, in whole pages of 64 KiB; 0 removes the limit. FREESTONE_BAD_LIMIT if it has more already. */
    [[nodiscard]] code set_limit(std::size_t bytes) noexcept {
        return *this ? freestone_heap_set_limit(get(), bytes) : FREESTONE_BAD_LIMIT;
    }

    /* What the heap has; all zero for an empty handle. */
    [[nodiscard]] freestone_heap_stats_t stats() const noexcept {
        freestone_heap_stats_t all{};
        all.size = sizeof all;
        if (*this) (void)freestone_heap_stats(get(), &all);
        return all;
    }

    /* The error of the last call that was refused. */
    [[nodiscard]] error last_error() const noexcept { return *this ? freestone_heap_last_error(get()) : error{}; }

    /* A block, or nullptr when memory runs out. `align` is a power of two. */
    [[nodiscard]] void *allocate(std::size_t bytes, std::size_t align = alignof(std::max_align_t)) noexcept {
        return *this ? freestone_heap_aligned_alloc(get(), align, bytes) : nullptr;
    }

    /* Frees a block of the heap; nullptr does nothing. */
    void deallocate(void *block, std::size_t = 0, std::size_t = 0) noexcept {
        if (*this) freestone_heap_free(get(), block);
    }

  private:
    static freestone_heap_t *create(const char *level, std::size_t limit, error *why) noexcept {
        freestone_heap_shape_t shape{};
        shape.size = sizeof shape;
        shape.harden = level;
        shape.limit = limit;
        return freestone_heap_new_with(&shape, why);
    }
};

/* A TLSF heap in memory of the caller: allocating and freeing take a bounded number of instructions, except for a request that neither a list above its own
 * nor the top can serve, and a free that is refused (freestone_tlsf.h). One thread at a time may use it. */
class tlsf : public detail::handle<freestone_tlsf_t, detail::end_tlsf> {
  public:
    /* A heap in the `bytes` at `memory`, both multiples of 16; empty if they are refused, and `*why` says why. */
    tlsf(void *memory, std::size_t bytes, error *why = nullptr) noexcept : handle(freestone_tlsf_new(memory, bytes, why)) {}

    /* Adds the `bytes` at `start`. An empty handle has room for no region: FREESTONE_TLSF_TOO_MANY_REGIONS. */
    [[nodiscard]] code add_region(void *start, std::size_t bytes) noexcept {
        return *this ? freestone_tlsf_add_region(get(), start, bytes) : FREESTONE_TLSF_TOO_MANY_REGIONS;
    }

    /* A block, or nullptr if no free block is large enough. `align` is a power of two. A size of 0 gets a block, too. */
    [[nodiscard]] void *allocate(std::size_t bytes, std::size_t align = alignof(std::max_align_t)) noexcept {
        return *this ? freestone_tlsf_aligned_alloc(get(), align, bytes ? bytes : 1) : nullptr;
    }

    /* Frees a block; nullptr does nothing. A block that is not this heap's or was freed already is refused: last_error() says so. */
    void deallocate(void *block, std::size_t = 0, std::size_t = 0) noexcept {
        if (*this) (void)freestone_tlsf_free(get(), block);
    }

    /* The error of the last call that was refused. */
    [[nodiscard]] error last_error() const noexcept { return *this ? freestone_tlsf_last_error(get()) : error{}; }

    /* Checks every invariant, in time proportional to the number of blocks. */
    [[nodiscard]] bool check() noexcept { return *this && freestone_tlsf_check(get()) == FREESTONE_OK; }
};

/* A pool: blocks of one size. One thread at a time may use it, or any if its shape says `shared`. It has to be empty when it is destroyed: with blocks
 * in use, it and its memory stay. */
class pool : public detail::handle<freestone_pool_t, detail::end_pool> {
  public:
    /* A pool of that shape; empty if there can be none, and `*why` says why. */
    explicit pool(const freestone_pool_shape_t &shape, error *why = nullptr) noexcept
        : handle(freestone_pool_new(&shape, why)), block_bytes_(shape.block_size), align_(align_of(shape)) {}

    /* A pool in the `bytes` at `memory`, which allocates nothing. */
    pool(void *memory, std::size_t bytes, const freestone_pool_shape_t &shape, error *why = nullptr) noexcept
        : handle(freestone_pool_new_at(memory, bytes, &shape, why)), block_bytes_(shape.block_size), align_(align_of(shape)) {}

    /* A pool of `count` blocks for values of T. */
    template <class T>
    [[nodiscard]] static pool of(std::size_t count, bool shared = false) noexcept {
        freestone_pool_shape_t shape{};
        shape.size = sizeof shape;
        shape.block_size = sizeof(T);
        shape.count = count;
        shape.align = alignof(T);
        shape.shared = shared;
        return pool(shape);
    }

    /* A block; nullptr if all are in use, or `bytes` or `align` is more than a block has. */
    [[nodiscard]] void *allocate(std::size_t bytes, std::size_t align = 1) noexcept {
        return *this && bytes <= block_bytes_ && align <= align_ ? freestone_pool_malloc(get()) : nullptr;
    }

    /* Frees a block; nullptr does nothing. Anything else than a block of this pool in use is refused, and changes nothing. */
    void deallocate(void *block, std::size_t = 0, std::size_t = 0) noexcept {
        if (*this) (void)freestone_pool_free(get(), block);
    }

    /* The error of the last call that was refused. */
    [[nodiscard]] error last_error() const noexcept { return *this ? freestone_pool_last_error(get()) : error{}; }

  private:
    static std::size_t align_of(const freestone_pool_shape_t &shape) noexcept {
        return shape.align ? shape.align : shape.block_size <= 8 ? 8 : 16;
    }

    std::size_t block_bytes_;
    std::size_t align_;
};

/* A std::pmr::memory_resource over a handle, or over the process. What a handle cannot give, such as a pool a larger block, fails. */
template <class H = process>
class memory_resource final : public std::pmr::memory_resource {
  public:
    explicit memory_resource(H &source) noexcept : source_(&source) {}

  private:
    void *do_allocate(std::size_t bytes, std::size_t align) override {
        if (void *block = source_->allocate(bytes, align)) return block;
        detail::fail();
    }

    void do_deallocate(void *block, std::size_t bytes, std::size_t align) override {
        source_->deallocate(block, bytes, align);
    }

    /* Blocks of one may be freed by another only if that is the same; there is no RTTI to ask whether it is of this class. */
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override { return this == &other; }

    H *source_;
};

/* The resource over the process; one for all. It is never destroyed: objects that use it may end later than any other static one. */
[[nodiscard]] inline std::pmr::memory_resource *process_resource() noexcept {
    static process source;
    alignas(memory_resource<process>) static unsigned char place[sizeof(memory_resource<process>)];
    static std::pmr::memory_resource *const resource = ::new (static_cast<void *>(place)) memory_resource<process>(source);
    return resource;
}

/* An allocator for the standard containers, over a handle; without one, over the process. */
template <class T, class H = process>
class allocator {
  public:
    using value_type = T;
    using is_always_equal = std::false_type;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;

    explicit allocator(H &source) noexcept : source_(&source) {}
    template <class U>
    allocator(const allocator<U, H> &other) noexcept : source_(other.source()) {}

    [[nodiscard]] T *allocate(std::size_t n) {
        if (n > std::size_t(PTRDIFF_MAX) / sizeof(T)) detail::fail();
        if (void *block = source_->allocate(n * sizeof(T), alignof(T))) return static_cast<T *>(block);
        detail::fail();
    }

    void deallocate(T *block, std::size_t n) noexcept { source_->deallocate(block, n * sizeof(T), alignof(T)); }

    [[nodiscard]] H *source() const noexcept { return source_; }

    template <class U>
    friend bool operator==(const allocator &one, const allocator<U, H> &other) noexcept {
        return one.source() == other.source();
    }
    template <class U>
    friend bool operator!=(const allocator &one, const allocator<U, H> &other) noexcept {
        return one.source() != other.source();
    }

  private:
    H *source_;
};

/* Over the process: nothing to refer to, and all values are equal. */
template <class T>
class allocator<T, process> {
  public:
    using value_type = T;
    using is_always_equal = std::true_type;

    allocator() noexcept = default;
    template <class U>
    allocator(const allocator<U, process> &) noexcept {}

    [[nodiscard]] T *allocate(std::size_t n) {
        if (n > std::size_t(PTRDIFF_MAX) / sizeof(T)) detail::fail();
        if (void *block = process().allocate(n * sizeof(T), alignof(T))) return static_cast<T *>(block);
        detail::fail();
    }

    void deallocate(T *block, std::size_t) noexcept { process().deallocate(block); }

    template <class U>
    friend bool operator==(const allocator &, const allocator<U, process> &) noexcept {
        return true;
    }
    template <class U>
    friend bool operator!=(const allocator &, const allocator<U, process> &) noexcept {
        return false;
    }
};

} // namespace freestone

#endif
