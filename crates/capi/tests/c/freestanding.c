/*
 * A program without a C library and without an operating system's header, on the libraries of TLSF and of pools alone. It ends with 0, or with the
 * line of an expectation that did not hold. On a Cortex-M it is the whole image, vector table included.
 */
#ifdef TLSF
#include <freestone_tlsf.h>
#endif
#ifdef POOL
#include <freestone_pool.h>
#endif

#define EXPECT(condition) \
    do { \
        if (!(condition)) return __LINE__; \
    } while (0)

#ifdef TLSF
static unsigned char region[16384] __attribute__((aligned(16)));

static int tlsf(void) {
    freestone_error_t error;
    EXPECT(!freestone_tlsf_new(region + 1, sizeof region - 16, &error) && error.code == FREESTONE_TLSF_REGION_MISALIGNED);
    freestone_tlsf_t *heap = freestone_tlsf_new(region, sizeof region, &error);
    EXPECT(heap);
    unsigned char *first = freestone_tlsf_malloc(heap, 100);
    unsigned char *second = freestone_tlsf_aligned_alloc(heap, 256, 40);
    EXPECT(first && second && (size_t)second % 256 == 0);
    for (int i = 0; i < 100; i++) first[i] = (unsigned char)i;
    first = freestone_tlsf_realloc(heap, first, 1000);
    EXPECT(first);
    for (int i = 0; i < 100; i++) EXPECT(first[i] == i);
    EXPECT(!freestone_tlsf_malloc(heap, 1 << 20) && freestone_tlsf_last_error(heap).code == FREESTONE_TLSF_EXHAUSTED);
    void *volatile again = first;
    EXPECT(freestone_tlsf_free(heap, first) == FREESTONE_OK);
    EXPECT(freestone_tlsf_free(heap, again) == FREESTONE_TLSF_DOUBLE_FREE);
    EXPECT(freestone_tlsf_free(heap, second) == FREESTONE_OK);
#ifdef ALL
    char text[100];
    error = freestone_tlsf_last_error(heap);
    EXPECT(freestone_tlsf_error_text(&error, text, sizeof text) > 20 && text[0] == 'd');
    freestone_tlsf_stats_t stats;
    stats.size = sizeof stats;
    EXPECT(freestone_tlsf_check(heap) == FREESTONE_OK && freestone_tlsf_stats(heap, &stats) == FREESTONE_OK);
    EXPECT(stats.n_used_blocks == 0 && stats.n_free_blocks == 1);
    unsigned char *zeros = freestone_tlsf_calloc(heap, 30, 30);
    for (int i = 0; i < 900; i++) EXPECT(zeros[i] == 0);
    EXPECT(freestone_tlsf_free(heap, zeros) == FREESTONE_OK);
#endif
    freestone_tlsf_delete(heap);
    return 0;
}
#endif

#ifdef POOL
static unsigned char blocks[4096] __attribute__((aligned(16)));

static int pool(void) {
    freestone_pool_shape_t shape = {0, 24, 8, 0, 0};
    freestone_error_t error;
    size_t bytes;
    EXPECT(freestone_pool_bytes(&shape, &bytes, &error) == FREESTONE_BAD_STRUCT);
    shape.size = sizeof shape;
    EXPECT(freestone_pool_bytes(&shape, &bytes, &error) == FREESTONE_OK && bytes <= sizeof blocks);
    freestone_pool_t *pool = freestone_pool_new_at(blocks, sizeof blocks, &shape, &error);
    EXPECT(pool);
    void *taken[8];
    for (int i = 0; i < 8; i++) EXPECT((taken[i] = freestone_pool_calloc(pool)));
    EXPECT(!freestone_pool_malloc(pool) && freestone_pool_last_error(pool).code == FREESTONE_POOL_EXHAUSTED);
    EXPECT(freestone_pool_delete(pool) == FREESTONE_POOL_IN_USE);
    void *volatile again = taken[3];
    for (int i = 0; i < 8; i++) EXPECT(freestone_pool_free(pool, taken[i]) == FREESTONE_OK);
    EXPECT(freestone_pool_free(pool, again) == FREESTONE_POOL_DOUBLE_FREE);
    EXPECT(freestone_pool_check(pool) == FREESTONE_OK && freestone_pool_delete(pool) == FREESTONE_OK);
    return 0;
}
#endif

static int run(void) {
    int line = 0;
#ifdef TLSF
    line = tlsf();
#endif
#ifdef POOL
    if (line == 0) line = pool();
#endif
    return line;
}

#if defined(__x86_64__)
static void end(int status) { __asm__ volatile("syscall" : : "a"(60), "D"((long)(status ? 1 : 0))); }
#elif defined(__i386__)
static void end(int status) { __asm__ volatile("int $0x80" : : "a"(1), "b"(status ? 1 : 0)); }
#elif defined(__arm__)
/* Semihosting: the debugger, or the emulator, ends the program. 0x20026 is "the application exited", 0x20023 a run-time error. */
static void end(int status) {
    register int operation __asm__("r0") = 0x18;
    register int reason __asm__("r1") = status ? 0x20023 : 0x20026;
    __asm__ volatile("bkpt 0xab" : : "r"(operation), "r"(reason) : "memory");
}
extern char stack_end[];
#endif

/* Nothing calls it, so the stack is not as a called function finds it. */
#if defined(__x86_64__) || defined(__i386__)
#define REALIGN __attribute__((force_align_arg_pointer))
#else
#define REALIGN
#endif

REALIGN __attribute__((noreturn)) void _start(void) {
    end(run());
    for (;;) {
    }
}

#if defined(__arm__)
__attribute__((section(".vectors"), used)) static const void *const vectors[] = {stack_end, (const void *)_start};
#endif
