/* Ends the program with a message when it reads or executes what lies behind the first part of the library. The kernel maps code in windows of 64 KiB or in
   what its page cache has as one piece, so how much is resident says little of how much is used. */
#ifndef FIRST_CODE_H
#define FIRST_CODE_H

#include "expect.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>

static char *first_code_start;

static void on_code_behind(int signal, siginfo_t *info, void *context) {
    static const char digits[] = "0123456789abcdef";
    char text[] = "the library is used beyond its first part, at 0x00000000\n";
    uintptr_t offset = (uintptr_t)info->si_addr - (uintptr_t)first_code_start;
    (void)signal, (void)context;
    for (int at = 0; at < 8; at++) {
        text[sizeof text - 3 - at] = digits[offset >> (4 * at) & 15];
    }
    (void)!write(2, text, sizeof text - 1);
    _exit(1);
}

/* Only the first `kib` of the library may be used from now on, in OS pages of 4 KiB. Allocates nothing. */
static inline void only_first_code(size_t kib) {
    static char maps[1 << 16];
    size_t len = 0;
    ssize_t n;
    int file = open("/proc/self/maps", O_RDONLY);
    EXPECT(file >= 0);
    while ((n = read(file, maps + len, sizeof maps - 1 - len)) > 0) {
        len += (size_t)n;
    }
    close(file);
    for (char *line = maps; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        unsigned long start, end;
        char access[5], name[512];
        if (sscanf(line, "%lx-%lx %4s %*s %*s %*s %511s", &start, &end, access, name) == 4 && strcmp(access, "r-xp") == 0 &&
            strstr(name, "libfreestone.so")) {
            struct sigaction action = {.sa_sigaction = on_code_behind, .sa_flags = SA_SIGINFO};
            first_code_start = (char *)start;
            EXPECT(sysconf(_SC_PAGESIZE) == 4096 && start + kib * 1024 < end);
            EXPECT(sigaction(SIGSEGV, &action, NULL) == 0);
            EXPECT(mprotect((void *)(start + kib * 1024), end - start - kib * 1024, PROT_NONE) == 0);
            return;
        }
    }
    EXPECT(!"the library is mapped");
}

#endif
