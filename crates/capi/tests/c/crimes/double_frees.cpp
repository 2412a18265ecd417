#include "scene.h"
#include <pthread.h>

static Outcome free_victim_again() {
    release(victim);
    committed();
    forget_victim();
    return UNNOTICED;
}

static Outcome at_once() {
    release(victim);
    return free_victim_again();
}

static Outcome after_another() {
    release(victim);
    release(blocks[VICTIM + 1]);
    blocks[VICTIM + 1] = nullptr;
    return free_victim_again();
}

static Outcome after_many() {
    enum { MANY = 300, LARGE_MANY = 32 };
    static unsigned char *others[MANY];
    int n = size > 100000 ? LARGE_MANY : MANY;
    for (int i = 0; i < n; i++) others[i] = allocate(size);
    release(victim);
    for (int i = 0; i < n; i++) release(others[i]);
    return free_victim_again();
}

/* If the block came back, the stale free is that of somebody else's block, and the owner's free is the second. */
static Outcome after_reuse() {
    release(victim);
    unsigned char *other = allocate(size);
    release(victim);
    release(other);
    committed();
    forget_victim();
    return UNNOTICED;
}

static Outcome by_another_thread() {
    release_by_another_thread(victim);
    return free_victim_again();
}

const Crime double_frees[] = {
    {"double_free_at_once", at_once, true, true, "a block is freed twice in a row"},
    {"double_free_after_another", after_another, true, true, "a block is freed twice, with a free of its neighbour between"},
    {"double_free_after_many", after_many, true, true, "a block is freed twice, with hundreds of frees between"},
    {"double_free_after_reuse", after_reuse, true, true, "a block is freed, allocated again, and freed by the old owner and the new one"},
    {"double_free_by_another_thread", by_another_thread, true, true, "a block is freed by another thread, then by the thread that allocated it"},
    {},
};
