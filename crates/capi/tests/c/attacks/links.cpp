/* Attacks on the links of free blocks. */
#include "attacks.h"
#include <pthread.h>

/* Frees three neighbours, then the victim: the victim is first in its list, and the neighbour at distance 3 next. */
static unsigned char *free_four() {
    unsigned char *next = blocks[VICTIM + 3];
    for (int distance = 1; distance <= 3; distance++) release_neighbour(distance);
    release(victim);
    forget_victim();
    return next;
}

static Outcome poisoned() {
    free_four();
    word(victim) = (uint64_t)target;
    committed();
    harvest();
    return NO_EFFECT;
}

static Outcome to_a_live_block() {
    free_four();
    word(victim) = (uint64_t)blocks[0];
    committed();
    harvest();
    return NO_EFFECT;
}

/* The lowest two bytes of a link are overwritten: the high ones, and what they are mixed with, stay. */
static Outcome in_part() {
    free_four();
    *(uint16_t *)hide(victim) = (uint16_t)(uintptr_t)blocks[0];
    committed();
    harvest();
    return NO_EFFECT;
}

/* The link leads to another block of the same page: nothing else of it changes. */
static Outcome redirected() {
    crowd();
    free_four();
    word(victim) ^= 1 << 12;
    committed();
    harvest();
    return NO_EFFECT;
}

/* A link that leads back makes a ring, of which each block is handed out twice. */
static Outcome replayed() {
    unsigned char *third = blocks[VICTIM + 2];
    free_four();
    word(third) = word(victim);
    committed();
    harvest();
    return NO_EFFECT;
}

/* What a link is mixed with is what it is, less what it leads to. */
static Outcome forged() {
    unsigned char *next = free_four();
    uint64_t key = word(victim) ^ (uint64_t)next;
    word(victim) = (uint64_t)target ^ key;
    committed();
    harvest();
    return NO_EFFECT;
}

/* Another thread frees blocks; until their owner takes them back they wait in a list. */
static Outcome of_a_remote_free() {
    auto run = [](void *) -> void * {
        for (int distance = 1; distance <= 3; distance++) release_neighbour(distance);
        release(victim);
        return nullptr;
    };
    unsigned char *freed[] = {victim, blocks[VICTIM + 1], blocks[VICTIM + 2], blocks[VICTIM + 3]};
    pthread_t thread;
    if (pthread_create(&thread, nullptr, run, nullptr)) exit(4);
    pthread_join(thread, nullptr);
    forget_victim();
    for (unsigned char *block : freed) word(block) = (uint64_t)blocks[0];
    committed();
    harvest();
    return NO_EFFECT;
}

const Crime links[] = {
    {"poisoned", poisoned, true, true, "writes an address into a free block's link"},
    {"to_a_live_block", to_a_live_block, true, true, "writes the address of a block in use into a free block's link"},
    {"in_part", in_part, true, true, "overwrites the lowest two bytes of a free block's link"},
    {"redirected", redirected, true, true, "changes one bit of a free block's link"},
    {"replayed", replayed, true, true, "copies the link of one free block to another; reads a free block"},
    {"forged", forged, true, true, "works out what links are mixed with, and writes a link; reads a free block, and knows what it leads to"},
    {"of_a_remote_free", of_a_remote_free, true, true, "writes into the links of blocks that another thread has freed"},
    {},
};
