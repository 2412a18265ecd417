#include "scene.h"
#include <pthread.h>
#include <unistd.h>

size_t size;
unsigned char *blocks[N_BLOCKS];
unsigned char *victim;

unsigned char *allocate(size_t bytes) {
    void *block = hide(malloc(hide(bytes)));
    if (!block) _exit(4);
    return (unsigned char *)block;
}

void release(void *block) { free(hide(block)); }

void release_by_another_thread(void *block) {
    auto run = [](void *argument) -> void * {
        release(argument);
        return nullptr;
    };
    pthread_t thread;
    if (pthread_create(&thread, nullptr, run, block)) exit(4);
    pthread_join(thread, nullptr);
}

void move_in() {
    for (unsigned char *&block : blocks) {
        block = allocate(size);
        memset(block, 0x5a, size);
    }
    victim = blocks[VICTIM];
}

void forget_victim() { blocks[VICTIM] = nullptr; }

void committed() {
    if (write(STDOUT_FILENO, "committed\n", 10) != 10) _exit(4);
}

void go_on() {
    for (unsigned char *&block : blocks) {
        release(block);
        block = nullptr;
    }
    enum { MORE = 512, LARGE_MORE = 64 };
    static unsigned char *more[MORE];
    int n = size > 100000 ? LARGE_MORE : MORE;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < n; i++) {
            more[i] = allocate(size);
            memset(more[i], round, size < 64 ? size : 64);
        }
        for (int i = 0; i < n; i++) release(more[i]);
    }
}

bool is_zero(const volatile unsigned char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (bytes[i]) return false;
    return true;
}
