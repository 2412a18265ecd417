#include "scene.h"

enum { MIB = 1 << 20 };

static unsigned char pattern[MIB];

static Outcome free_victim() {
    committed();
    release(victim);
    forget_victim();
    return UNNOTICED;
}

/* Copies bytes that differ from those that are there, in case they are random. */
static void copy(unsigned char *to, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) pattern[i] = hide(to)[i] ^ 0xa5;
    memcpy(hide(to), hide(pattern), hide(bytes));
}

template <size_t bytes> static Outcome overflow() {
    volatile unsigned char *end = hide(victim + size);
    for (size_t i = 0; i < bytes; i++) end[i] = end[i] ^ 0xa5;
    return free_victim();
}

template <size_t bytes> static Outcome overflow_by_memcpy() {
    copy(victim + size, bytes);
    return free_victim();
}

template <size_t bytes> static Outcome underflow() {
    volatile unsigned char *start = hide(victim);
    for (size_t i = 1; i <= bytes; i++) start[-(ptrdiff_t)i] = start[-(ptrdiff_t)i] ^ 0xa5;
    return free_victim();
}

template <size_t bytes> static Outcome underflow_by_memcpy() {
    copy(victim - bytes, bytes);
    return free_victim();
}

/* From one half of the block into the other: only the compiler can tell that there are two. */
static Outcome overflow_of_a_field() {
    memset(hide(victim), 0xa5, size / 2 + 1);
    return free_victim();
}

const Crime bounds[] = {
    {"overflow_1", overflow<1>, true, true, "one byte behind a block is written"},
    {"overflow_32", overflow<32>, true, true, "32 bytes behind a block are written"},
    {"overflow_1m", overflow<MIB>, true, true, "1 MiB behind a block is written"},
    {"overflow_1_memcpy", overflow_by_memcpy<1>, true, true, "one byte behind a block is written by `memcpy`"},
    {"overflow_32_memcpy", overflow_by_memcpy<32>, true, true, "32 bytes behind a block are written by `memcpy`"},
    {"overflow_1m_memcpy", overflow_by_memcpy<MIB>, true, true, "1 MiB behind a block is written by `memcpy`"},
    {"underflow_1", underflow<1>, true, true, "one byte before a block is written"},
    {"underflow_32", underflow<32>, true, true, "32 bytes before a block are written"},
    {"underflow_1m", underflow<MIB>, true, true, "1 MiB before a block is written"},
    {"underflow_1_memcpy", underflow_by_memcpy<1>, true, true, "one byte before a block is written by `memcpy`"},
    {"underflow_32_memcpy", underflow_by_memcpy<32>, true, true, "32 bytes before a block are written by `memcpy`"},
    {"underflow_1m_memcpy", underflow_by_memcpy<MIB>, true, true, "1 MiB before a block is written by `memcpy`"},
    {"overflow_8", overflow<8>, false, true, "8 bytes behind a block are written"},
    {"underflow_8", underflow<8>, false, true, "8 bytes before a block are written"},
    {"overflow_of_a_field", overflow_of_a_field, false, true, "a field of a block is written beyond its end, into the next field"},
    {},
};
