/*
 * Memory functions that are called while a library is loaded, by a resolver of one of its indirect functions: before a preloaded library is
 * relocated. Compiled with LIBRARY it is the library, without the program that needs it.
 */
#define _GNU_SOURCE
#include "expect.h"

#ifdef LIBRARY
#include "memory_functions.h"

enum { LENGTH = 41 };
static int right;

static void nothing(void) {}

/* Whether a function does what a loop over bytes does. */
static int is_right(int function) {
    char from[LENGTH], to[LENGTH + 1];
    write_text(from, LENGTH);
    for (int i = 0; i <= LENGTH; i++) to[i] = 'x';
    functions[function].use(to, from, LENGTH);
    int is_right = to[LENGTH] == 'x';
    for (int i = 0; i < LENGTH; i++) {
        enum Effect effect = functions[function].effect;
        is_right &= to[i] == (effect == COPIES ? from[i] : effect == SETS ? 7 : 0);
    }
    return is_right;
}

/* Not exported: a symbol that is would be resolved before this library itself is relocated. */
static void (*resolve(void))(void) {
    for (int i = 0; i < N_FUNCTIONS; i++) right += is_right(i);
    return nothing;
}

static void resolved(void) __attribute__((ifunc("resolve")));

int all_were_right(void) {
    resolved();
    return right == N_FUNCTIONS;
}
#else
int all_were_right(void);

int main(void) {
    EXPECT(all_were_right());
    return 0;
}
#endif
