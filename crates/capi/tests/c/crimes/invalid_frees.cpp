#include "scene.h"
#include <alloca.h>
#include <stdio.h>
#include <sys/mman.h>

static Outcome free_invalid(void *address) {
    release(address);
    committed();
    return UNNOTICED;
}

/* An address inside memory that is aligned like a block. */
static unsigned char *aligned_in(unsigned char *memory) {
    return (unsigned char *)(((uintptr_t)memory + 31) & ~(uintptr_t)15);
}

static Outcome of_the_stack() {
    unsigned char *local = (unsigned char *)alloca(size + 64);
    memset(local, 0, size + 64);
    return free_invalid(aligned_in(local));
}

static Outcome of_static_data() {
    static unsigned char data[262144 + 64];
    return free_invalid(aligned_in(data) + (size & ~(size_t)15));
}

static Outcome of_code() {
    return free_invalid((void *)(((uintptr_t)&printf & ~(uintptr_t)15) + (size & ~(size_t)15)));
}

static Outcome of_a_mapping() {
    void *map = mmap(nullptr, size + 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) return NO_EFFECT;
    return free_invalid((char *)map + 4096 + 16);
}

static Outcome of_the_inside() { return free_invalid(victim + (size < 32 ? 8 : size / 2)); }

static Outcome misaligned() { return free_invalid(victim + 1); }

static Outcome far_away() { return free_invalid(victim + ((size_t)1 << 36)); }

const Crime invalid_frees[] = {
    {"free_of_the_stack", of_the_stack, true, true, "a local variable is freed"},
    {"free_of_static_data", of_static_data, true, true, "static data is freed"},
    {"free_of_code", of_code, true, true, "an address in code is freed"},
    {"free_of_a_mapping", of_a_mapping, true, true, "an address in a mapping of the program is freed"},
    {"free_of_the_inside", of_the_inside, true, true, "the middle of a block is freed"},
    {"free_misaligned", misaligned, true, true, "a block's second byte is freed"},
    {"free_far_away", far_away, true, true, "an address 64 GiB behind a block is freed"},
    {},
};
