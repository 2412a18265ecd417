/* The message of every test program when an expectation fails: the place and the expectation. */
#ifndef EXPECT_H
#define EXPECT_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPECT(condition) \
    do { \
        if (!(condition)) { \
            char expect_text[300]; \
            int expect_errno = errno; \
            int expect_len = snprintf(expect_text, sizeof expect_text, "%s:%d: not so: %s (errno %d)\n", __FILE__, __LINE__, \
                                      #condition, expect_errno); \
            (void)!write(2, expect_text, (size_t)expect_len); \
            _exit(1); \
        } \
    } while (0)

/* Hides a value from the compiler. */
#define HIDE(value) ({ __auto_type hidden_ = (value) + 0; __asm__ volatile("" : "+r"(hidden_)); hidden_; })

/* Says why a part of a test does not run here; the status of a program that does no more. */
static inline int skip(const char *why) {
    printf("skipped: %s\n", why);
    return 0;
}

/* One step of a xorshift generator. */
static inline uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Resident set in KiB; 0 under an emulator, because it would be the emulator's. Allocates nothing. */
static inline long resident_kib(void) {
    if (getenv("EMULATED")) {
        return 0;
    }
    long pages = 0;
    char text[256];
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = read(file, text, sizeof text - 1);
    EXPECT(bytes > 0);
    text[bytes] = 0;
    EXPECT(sscanf(text, "%*d %ld", &pages) == 1);
    close(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

#endif
