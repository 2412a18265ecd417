#include "scene.h"

enum { TRIES = 4096, LARGE_TRIES = 256 };

/* Bytes that are looked at in one place. */
static const size_t SAMPLE = 64;

static int tries() { return size > 100000 ? LARGE_TRIES : TRIES; }

static Outcome reuse() {
    release(victim);
    unsigned char *next = allocate(size);
    committed();
    Outcome outcome = next == victim ? UNNOTICED : NO_EFFECT;
    release(next);
    forget_victim();
    return outcome;
}

static Outcome read_after_free() {
    release(victim);
    bool has_nothing = is_zero(hide(victim), size);
    committed();
    forget_victim();
    return has_nothing ? NO_EFFECT : UNNOTICED;
}

/* Looks at the start, the middle and the end of each block that is allocated until the victim comes back; frees none, so that none comes
 * twice. */
static Outcome read_of_old_contents() {
    release(victim);
    forget_victim();
    size_t n = size < SAMPLE ? size : SAMPLE;
    for (int i = tries(); i > 0; i--) {
        const unsigned char *next = hide(allocate(size));
        if (!is_zero(next, n) || !is_zero(next + size / 2 - n / 2, n) || !is_zero(next + size - n, n)) {
            committed();
            return UNNOTICED;
        }
        if (next == victim) break;
    }
    committed();
    return NO_EFFECT;
}

/* With neighbours freed before the victim, so that a list of free blocks has more than one. */
static Outcome write_to_the_link() {
    alignas(16) static unsigned char target[262144];
    unsigned char *address = target + 64;
    for (int i = VICTIM + 1; i < VICTIM + 4; i++) {
        release(blocks[i]);
        blocks[i] = nullptr;
    }
    release(victim);
    forget_victim();
    memcpy(hide(victim), &address, sizeof address);
    committed();
    for (int i = 0; i < 32; i++) {
        if (allocate(size) == address) return UNNOTICED;
    }
    return NO_EFFECT;
}

static Outcome write_after_free() {
    release(victim);
    forget_victim();
    memset(hide(victim), 0xee, size);
    committed();
    return UNNOTICED;
}

static Outcome write_after_reuse() {
    release(victim);
    unsigned char *stale = hide(victim);
    forget_victim();
    unsigned char *next = nullptr;
    for (int i = tries(); i > 0 && next != stale; i--) next = allocate(size);
    if (next != stale) {
        committed();
        return NO_EFFECT;
    }
    memset(next, 1, size);
    stale[size / 2] = 2;
    committed();
    release(next);
    return UNNOTICED;
}

/* Allocates and frees until the victim comes back, or until an attacker would lose patience. */
static unsigned char *wait_for_victim() {
    enum { ROUND = 32 };
    static const size_t PATIENCE = (size_t)64 << 20;
    static const size_t FREES_MOST = 1 << 18;
    size_t frees = PATIENCE / size < FREES_MOST ? PATIENCE / size : FREES_MOST;
    unsigned char *others[ROUND];
    for (size_t i = 0; i < frees; i += ROUND) {
        for (unsigned char *&other : others) {
            other = allocate(size);
            if (other == hide(victim)) return other;
        }
        for (unsigned char *other : others) release(other);
    }
    return nullptr;
}

static Outcome read_of_old_contents_in_time() {
    release(victim);
    forget_victim();
    const unsigned char *old = hide(wait_for_victim());
    bool is_kept = old && !is_zero(old, size);
    committed();
    return is_kept ? UNNOTICED : NO_EFFECT;
}

static Outcome write_after_reuse_in_time() {
    release(victim);
    forget_victim();
    bool is_back = hide(wait_for_victim());
    committed();
    return is_back ? UNNOTICED : NO_EFFECT;
}

const Crime stale_uses[] = {
    {"reuse", reuse, true, true, "a freed block is what the next allocation returns"},
    {"read_after_free", read_after_free, true, true, "a freed block is read, and has contents"},
    {"read_of_old_contents", read_of_old_contents, true, true, "a new block is read, and has contents"},
    {"write_to_the_link", write_to_the_link, true, true, "an address is written into a freed block's first word, and allocated"},
    {"write_after_free", write_after_free, true, true, "a freed block is overwritten"},
    {"write_after_reuse", write_after_reuse, true, true, "a freed block is allocated again, and the old owner writes to it"},
    {"read_of_old_contents_in_time", read_of_old_contents_in_time, false, true, "blocks are allocated and freed until the old one comes back; it is read, and has contents"},
    {"write_after_reuse_in_time", write_after_reuse_in_time, false, true, "blocks are allocated and freed until the old one comes back; the old owner writes to it"},
    {},
};
