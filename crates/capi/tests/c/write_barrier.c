/* A write barrier, as collectors have it: the handler of SIGSEGV opens the page, and SIGUSR1, whose handler writes to such a page, is in its mask. So that never
   writes while SIGSEGV is blocked. The allocator's handler of faults comes before the program's. */
#define _GNU_SOURCE
#include "expect.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

enum { PAGE = 4096, WRITES = 100000 };

static char *pages[2];
static int is_over;
static volatile long n_faults;

static void opens(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    char *page = (char *)((uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1));
    EXPECT(page == pages[0] || page == pages[1]);
    EXPECT(!mprotect(page, PAGE, PROT_READ | PROT_WRITE));
    n_faults++;
}

static void closes_and_writes(char *page) {
    EXPECT(!mprotect(page, PAGE, PROT_READ));
    (*(volatile char *)page)++;
}

static void interrupts(int signal) {
    (void)signal;
    closes_and_writes(pages[1]);
}

static void *sends(void *thread) {
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) EXPECT(!pthread_kill(*(pthread_t *)thread, SIGUSR1));
    return NULL;
}

static void handle(int signal, struct sigaction action) {
    action.sa_flags |= SA_RESTART;
    EXPECT(!sigaction(signal, &action, NULL));
}

int main(void) {
    struct sigaction barrier = {.sa_sigaction = opens, .sa_flags = SA_SIGINFO};
    EXPECT(!sigaddset(&barrier.sa_mask, SIGUSR1));
    handle(SIGSEGV, barrier);
    handle(SIGUSR1, (struct sigaction){.sa_handler = interrupts});
    for (int i = 0; i < 2; i++) {
        pages[i] = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        EXPECT(pages[i] != MAP_FAILED);
    }
    /* The allocator looks whether its handler was replaced. */
    for (int i = 0; i < 1000; i++) free(HIDE(malloc(100)));
    pthread_t self = pthread_self(), sender;
    EXPECT(!pthread_create(&sender, NULL, sends, &self));
    for (int i = 0; i < WRITES; i++) closes_and_writes(pages[0]);
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    EXPECT(!pthread_join(sender, NULL));
    EXPECT(n_faults >= WRITES);
    return 0;
}
