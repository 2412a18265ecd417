#include "scene.h"

static Outcome read_of_no_bytes() {
    const volatile unsigned char *block = allocate(0);
    (void)block[0];
    committed();
    release((void *)block);
    return UNNOTICED;
}

static Outcome write_to_no_bytes() {
    volatile unsigned char *block = allocate(0);
    block[0] = 1;
    committed();
    release((void *)block);
    return UNNOTICED;
}

/* A size that went below zero, a product and a new size that do not fit. */
static Outcome impossible_size() {
    size_t negative = hide((size_t)0 - size);
    bool is_granted = hide(malloc(negative)) || hide(calloc(hide(SIZE_MAX / size + 2), size)) || hide(realloc(victim, negative));
    committed();
    return is_granted ? UNNOTICED : NO_EFFECT;
}

static Outcome execution() {
#if defined(__x86_64__)
    victim[0] = 0xc3; /* ret */
#else
    memcpy(victim, "\xc0\x03\x5f\xd6", 4); /* ret */
    __builtin___clear_cache((char *)victim, (char *)victim + 4);
#endif
    ((void (*)())hide(victim))();
    committed();
    return UNNOTICED;
}

const Crime requests[] = {
    {"read_of_no_bytes", read_of_no_bytes, true, false, "a block of no bytes is read"},
    {"write_to_no_bytes", write_to_no_bytes, true, false, "a block of no bytes is written"},
    {"impossible_size", impossible_size, true, true, "a size below zero, or beyond what fits into one, is allocated"},
    {"execution", execution, true, true, "a block is executed"},
    {},
};
