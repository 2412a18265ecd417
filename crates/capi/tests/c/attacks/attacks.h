/*
 * What the attacks share. An attack knows the source and the addresses of its own blocks, and what else its description says. It wants
 * `malloc` to return an address of its choice, or a block that is in use already; then it has succeeded.
 */
#ifndef ATTACKS_H
#define ATTACKS_H

#include "../crimes/scene.h"

/* The address of the attacker's choice, aligned like a block, in writable memory that is not the heap's. */
extern unsigned char *const target;

/* Ends the program: the attack has succeeded. Whatever the allocator would notice now comes too late. */
[[noreturn]] void succeed();

/* Allocates blocks that stay in use, so many that the neighbourhood of the victim is full. */
void crowd();

/* Allocates blocks, and ends the program if one is the target, or overlaps one that is in use. */
void harvest();

/* Frees a neighbour of the victim, which is the victim's neighbour no more. */
void release_neighbour(int distance);

/* The word at an address. */
inline uint64_t &word(unsigned char *address, int index = 0) { return ((uint64_t *)hide(address))[index]; }

extern const Crime links[], twice[], foreign_styles[], records[];

#endif
