/* Attacks on the records of heaps, which have the heads of their lists. */
#include "attacks.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

/* The attacker goes no further than this. */
static const uintptr_t REACH = 4 << 20;

/* The writable memory around an address, which the attacker knows: a write beyond it would end the program. */
struct Writable {
    uintptr_t start, end;
};

/* Reads the kernel's list, without the heap. */
static Writable writable_around(unsigned char *address) {
    static char text[1 << 16];
    int file = open("/proc/self/maps", O_RDONLY);
    size_t n = 0;
    for (ssize_t got; n < sizeof text - 1 && (got = read(file, text + n, sizeof text - 1 - n)) > 0;) n += got;
    close(file);
    Writable around = {0, 0};
    for (char *line = text; line && *line; line = strchr(line, '\n') + 1) {
        uintptr_t start, end;
        char rights[5];
        if (sscanf(line, "%lx-%lx %4s", &start, &end, rights) != 3) exit(4);
        if (rights[1] != 'w') continue;
        if (around.end == start)
            around.end = end;
        else if (around.end <= (uintptr_t)address)
            around = {start, end};
    }
    return around;
}

/* Writes the target's address to every word before the first block. */
static Outcome by_underflow() {
    unsigned char *lowest = victim;
    for (unsigned char *block : blocks) lowest = block < lowest ? block : lowest;
    uintptr_t bytes = (uintptr_t)lowest - writable_around(lowest).start;
    for (int i = 1; i <= (int)((bytes < REACH ? bytes : REACH) / 8); i++) word(lowest, -i) = (uint64_t)target;
    committed();
    harvest();
    return NO_EFFECT;
}

static pthread_barrier_t barrier;

/* A thread that has a heap waits until the attacker is done, and allocates. */
static void *other_thread(void *) {
    release(allocate(size));
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    if (allocate(size) == target) succeed();
    return nullptr;
}

/* Writes the target's address to every word behind the last block, among which the record of another thread may be. */
static Outcome by_overflow() {
    pthread_barrier_init(&barrier, nullptr, 2);
    pthread_t thread;
    if (pthread_create(&thread, nullptr, other_thread, nullptr)) exit(4);
    pthread_barrier_wait(&barrier);
    unsigned char *highest = victim;
    for (unsigned char *block : blocks) highest = block > highest ? block : highest;
    uintptr_t bytes = writable_around(highest).end - (uintptr_t)(highest + size);
    for (int i = 0; i < (int)((bytes < REACH ? bytes : REACH) / 8); i++) word(highest + size, i) = (uint64_t)target;
    committed();
    pthread_barrier_wait(&barrier);
    pthread_join(thread, nullptr);
    return NO_EFFECT;
}

const Crime records[] = {
    {"record_by_underflow", by_underflow, true, true, "writes an address to each word before its blocks, as far as it gets"},
    {"record_by_overflow", by_overflow, true, true, "writes an address to each word behind its blocks, as far as it gets; another thread allocates"},
    {},
};
