/* Double frees that end in two owners of one block. */
#include "attacks.h"
#include <pthread.h>

static Outcome again() {
    release(victim);
    committed();
    forget_victim();
    harvest();
    return NO_EFFECT;
}

static Outcome at_once() {
    release(victim);
    return again();
}

static Outcome between_others() {
    release(victim);
    release_neighbour(1);
    return again();
}

static Outcome with_everything_erased() {
    release(victim);
    memset(hide(victim), 0, size < 64 ? 16 : 64);
    return again();
}

static Outcome after_reuse() {
    release(victim);
    unsigned char *other = allocate(size);
    release(victim);
    unsigned char *third = allocate(size);
    committed();
    if (third == other) succeed();
    forget_victim();
    return NO_EFFECT;
}

static Outcome across_threads() {
    release_by_another_thread(victim);
    return again();
}

const Crime twice[] = {
    {"freed_at_once", at_once, true, true, "frees a block twice in a row"},
    {"freed_between_others", between_others, true, true, "frees a block twice, and its neighbour between"},
    {"freed_with_everything_erased", with_everything_erased, true, true, "frees a block twice, and clears it between; writes to a free block"},
    {"freed_after_reuse", after_reuse, true, true, "frees a block that has been given to another owner"},
    {"freed_across_threads", across_threads, true, true, "frees a block in two threads"},
    {},
};
