/* Every function of the library of checked memory functions, in a table. */
#ifndef MEMORY_FUNCTIONS_H
#define MEMORY_FUNCTIONS_H

#include "expect.h"
#include <string.h>
#include <strings.h>

void *__memcpy_chk(void *, const void *, size_t, size_t);
void *__memmove_chk(void *, const void *, size_t, size_t);
void *__mempcpy_chk(void *, const void *, size_t, size_t);
void *__memset_chk(void *, int, size_t, size_t);
char *__strcpy_chk(char *, const char *, size_t);
char *__stpcpy_chk(char *, const char *, size_t);
char *__strncpy_chk(char *, const char *, size_t, size_t);
char *__stpncpy_chk(char *, const char *, size_t, size_t);
char *__strcat_chk(char *, const char *, size_t);
char *__strncat_chk(char *, const char *, size_t, size_t);
void __explicit_bzero_chk(void *, size_t, size_t);
void *mempcpy(void *, const void *, size_t);
void *__mempcpy(void *, const void *, size_t);
char *__stpcpy(char *, const char *);
void explicit_bzero(void *, size_t);

/* Each writes `n` bytes at `to`, the last of them a zero if they are text, and reads no more at `from`. The fortified ones have `room`. */
static size_t room = SIZE_MAX;
#define FUNCTION(name, call) \
    static void use_##name(char *to, const char *from, size_t n) { \
        (void)from, (void)n; \
        call; \
    }
FUNCTION(memcpy, memcpy(to, from, n))
FUNCTION(memmove, memmove(to, from, n))
FUNCTION(mempcpy, EXPECT(mempcpy(to, from, n) == to + n))
FUNCTION(__mempcpy, EXPECT(__mempcpy(to, from, n) == to + n))
FUNCTION(bcopy, bcopy(from, to, n))
FUNCTION(memccpy, EXPECT(memccpy(to, from, 0, n) == to + n))
FUNCTION(memset, memset(to, 7, n))
FUNCTION(bzero, bzero(to, n))
FUNCTION(explicit_bzero, explicit_bzero(to, n))
FUNCTION(strcpy, strcpy(to, from))
FUNCTION(stpcpy, EXPECT(stpcpy(to, from) == to + n - 1))
FUNCTION(__stpcpy, EXPECT(__stpcpy(to, from) == to + n - 1))
FUNCTION(strncpy, strncpy(to, from, n))
FUNCTION(stpncpy, EXPECT(stpncpy(to, from, n) == to + n - 1))
FUNCTION(strcat, (to[0] = 0, strcat(to, from)))
FUNCTION(strncat, (to[0] = 0, strncat(to, from, n)))
FUNCTION(__memcpy_chk, __memcpy_chk(to, from, n, room))
FUNCTION(__memmove_chk, __memmove_chk(to, from, n, room))
FUNCTION(__mempcpy_chk, EXPECT(__mempcpy_chk(to, from, n, room) == to + n))
FUNCTION(__memset_chk, __memset_chk(to, 7, n, room))
FUNCTION(__strcpy_chk, __strcpy_chk(to, from, room))
FUNCTION(__stpcpy_chk, EXPECT(__stpcpy_chk(to, from, room) == to + n - 1))
FUNCTION(__strncpy_chk, __strncpy_chk(to, from, n, room))
FUNCTION(__stpncpy_chk, EXPECT(__stpncpy_chk(to, from, n, room) == to + n - 1))
FUNCTION(__strcat_chk, (to[0] = 0, __strcat_chk(to, from, room)))
FUNCTION(__strncat_chk, (to[0] = 0, __strncat_chk(to, from, n, room)))
FUNCTION(__explicit_bzero_chk, __explicit_bzero_chk(to, n, room))

enum Effect { COPIES, SETS, CLEARS };

static const struct {
    const char *name;
    void (*use)(char *, const char *, size_t);
    enum Effect effect;
    /* It copies text up to its end. */
    int is_text;
} functions[] = {
#define ROW(name, effect, is_text) {#name, use_##name, effect, is_text}
    ROW(memcpy, COPIES, 0),         ROW(memmove, COPIES, 0),       ROW(mempcpy, COPIES, 0),              ROW(__mempcpy, COPIES, 0),
    ROW(memccpy, COPIES, 1),        ROW(bcopy, COPIES, 0),         ROW(memset, SETS, 0),                 ROW(bzero, CLEARS, 0),
    ROW(explicit_bzero, CLEARS, 0), ROW(strcpy, COPIES, 1),        ROW(stpcpy, COPIES, 1),               ROW(__stpcpy, COPIES, 1),
    ROW(strncpy, COPIES, 1),        ROW(stpncpy, COPIES, 1),       ROW(strcat, COPIES, 1),               ROW(strncat, COPIES, 1),
    ROW(__memcpy_chk, COPIES, 0),   ROW(__memmove_chk, COPIES, 0), ROW(__mempcpy_chk, COPIES, 0),        ROW(__memset_chk, SETS, 0),
    ROW(__strcpy_chk, COPIES, 1),   ROW(__stpcpy_chk, COPIES, 1),  ROW(__strncpy_chk, COPIES, 1),        ROW(__stpncpy_chk, COPIES, 1),
    ROW(__strcat_chk, COPIES, 1),   ROW(__strncat_chk, COPIES, 1), ROW(__explicit_bzero_chk, CLEARS, 0),
};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions };

/* Letters with an end. */
static void write_text(char *at, size_t n) {
    for (size_t i = 0; i + 1 < n; i++) at[i] = (char)('a' + i % 26);
    if (n) at[n - 1] = 0;
}

#endif
