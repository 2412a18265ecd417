/* Attacks on allocators that keep sizes and links beside blocks; the names are those that they have for the C library. */
#include "attacks.h"

/* The two words before a block are a header: its size is made larger, and the block is freed. */
static Outcome overlap_by_size() {
    word(victim, -1) = 8 * (size + 16) | 1;
    committed();
    release(victim);
    forget_victim();
    unsigned char *larger = allocate(8 * size);
    for (unsigned char *block : blocks)
        if (block && block < larger + 8 * size && larger < block + size) succeed();
    release(larger);
    return NO_EFFECT;
}

/* A free block is made up inside the victim, with links that are to be exchanged when the next block is freed and merged with it. */
static Outcome unsafe_unlink() {
    static unsigned char *pointer;
    pointer = victim;
    unsigned char *next = blocks[VICTIM + 1];
    if (size >= 64) {
        word(victim, 1) = size - 16;
        word(victim, 2) = (uint64_t)&pointer - 24;
        word(victim, 3) = (uint64_t)&pointer - 16;
    }
    word(next, -2) = size - 16;
    word(next, -1) &= ~(uint64_t)1;
    committed();
    release(next);
    blocks[VICTIM + 1] = nullptr;
    if (hide(pointer) != victim) succeed();
    return NO_EFFECT;
}

/* A block is made up in memory of the attacker, and freed. */
static Outcome house_of_spirit() {
    word(target, -1) = (size + 8 + 15) / 16 * 16 | 1;
    word(target + (size + 8 + 15) / 16 * 16, -1) = 0x1234;
    release(target);
    committed();
    harvest();
    return NO_EFFECT;
}

/* The size of what is left is made endless; an allocation up to the target follows. */
static Outcome house_of_force() {
    unsigned char *last = blocks[N_BLOCKS - 1];
    memset(hide(last + size), 0xff, 32);
    committed();
    free(hide(malloc(hide((size_t)(target - last) - size - 64))));
    harvest();
    return NO_EFFECT;
}

const Crime foreign_styles[] = {
    {"overlap_by_size", overlap_by_size, true, true, "makes a size larger that would be before the block"},
    {"unsafe_unlink", unsafe_unlink, true, true, "makes a free block up, with links that a merge would exchange"},
    {"house_of_spirit", house_of_spirit, true, true, "makes a block up in memory of its own, and frees it"},
    {"house_of_force", house_of_force, true, true, "makes a size endless that would be behind the last block"},
    {},
};
