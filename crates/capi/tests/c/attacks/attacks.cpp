#include "attacks.h"
#include <unistd.h>

alignas(4096) static unsigned char target_memory[1 << 20];
unsigned char *const target = target_memory + 4096;

const Crime *const lists[] = {links, twice, foreign_styles, records, nullptr};

void succeed() { _exit(UNNOTICED); }

enum { CROWD = 8192 };

static unsigned char *crowded[CROWD];

void crowd() {
    size_t n = size < 64 ? CROWD : size < 65536 ? 64 : 8;
    for (size_t i = 0; i < n; i++) crowded[i] = allocate(size);
}

static bool overlap(const unsigned char *one, const unsigned char *other) {
    return one && other && one < other + size && other < one + size;
}

void harvest() {
    enum { MORE = 128, LARGE_MORE = 32 };
    static unsigned char *more[MORE];
    int n = size > 100000 ? LARGE_MORE : MORE;
    for (int i = 0; i < n; i++) {
        more[i] = allocate(size);
        if (more[i] == target) succeed();
        for (int j = 0; j < i; j++)
            if (overlap(more[j], more[i])) succeed();
        for (const unsigned char *block : blocks)
            if (overlap(block, more[i])) succeed();
        for (const unsigned char *block : crowded)
            if (overlap(block, more[i])) succeed();
    }
}

void release_neighbour(int distance) {
    release(blocks[VICTIM + distance]);
    blocks[VICTIM + distance] = nullptr;
}
