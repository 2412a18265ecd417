/*
 * What every crime has: sixteen neighbouring blocks of one size, of which the eighth is the victim.
 *
 * A crime calls `committed` when its deed is done. The program that lives to see it has not been stopped at once.
 */
#ifndef SCENE_H
#define SCENE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* How a crime ended whose program was not ended by a signal; exit statuses of the program. */
enum Outcome {
    UNNOTICED = 0,
    /* The request was refused, the memory was zero, the block did not come back, the attacker's address was not returned. */
    NO_EFFECT = 10,
};

enum { N_BLOCKS = 16, VICTIM = 7 };

/* The size of every block. */
extern size_t size;
extern unsigned char *blocks[N_BLOCKS];
extern unsigned char *victim;

/* Keeps the compiler from knowing what a value is. */
template <typename T> T hide(T value) {
    __asm__ volatile("" : "+r"(value) : : "memory");
    return value;
}

/* `malloc`, which must succeed. */
unsigned char *allocate(size_t bytes);

/* `free`. */
void release(void *block);

/* `free` in a thread that ends then. */
void release_by_another_thread(void *block);

/* Allocates the blocks and fills them with 0x5a. */
void move_in();

/* The victim is free, or belongs to the crime: `go_on` leaves it alone. */
void forget_victim();

/* Says on standard output that the deed is done. */
void committed();

/* What a program does afterwards: frees the blocks that are left, and allocates, writes and frees more of their size. */
void go_on();

/* Whether all bytes are zero. */
bool is_zero(const volatile unsigned char *bytes, size_t n);

/* A crime of the list. */
struct Crime {
    const char *name;
    Outcome (*commit)();
    /* One of the 113 that are counted. */
    bool is_counted;
    /* Committed with blocks of each size; else once. */
    bool has_sizes;
    const char *what;
};

/* The crimes of each file; a crime without a name ends each list. */
extern const Crime double_frees[], invalid_frees[], stale_uses[], bounds[], requests[], mismatches[];

/* The program's lists of crimes, up to null. */
extern const Crime *const lists[];

#endif
