/* Ends the program with a message when it reads or executes what lies behind the first part of the library. The kernel maps code in windows of 64 KiB or in
   what its page cache has as one piece, so how much is resident says little of how much is used. */
#ifndef FIRST_CODE_H
#define FIRST_CODE_H

#include "expect.h"
#include <link.h>
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

/* Closes the library's code but for the first `*kib`, in OS pages of 4 KiB. */
static int close_code_behind(struct dl_phdr_info *object, size_t size, void *kib) {
    (void)size;
    if (!strstr(object->dlpi_name, "libfreestone.so")) {
        return 0;
    }
    for (int at = 0; at < object->dlpi_phnum; at++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[at];
        size_t open = *(const size_t *)kib * 1024;
        if (part->p_type == PT_LOAD && part->p_flags & PF_X) {
            first_code_start = (char *)object->dlpi_addr + part->p_vaddr;
            EXPECT(open < part->p_memsz);
            EXPECT(mprotect(first_code_start + open, part->p_memsz - open, PROT_NONE) == 0);
        }
    }
    return 1;
}

/* Only the first `kib` of the library may be used from now on. Allocates nothing. */
static inline void only_first_code(size_t kib) {
    struct sigaction action = {.sa_sigaction = on_code_behind, .sa_flags = SA_SIGINFO};
    EXPECT(sigaction(SIGSEGV, &action, NULL) == 0);
    EXPECT(dl_iterate_phdr(close_code_behind, &kib) == 1 && first_code_start);
}

#endif
