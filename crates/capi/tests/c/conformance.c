/*
 * The malloc family against C, POSIX and glibc's manual, on a lattice of sizes and alignments. Products are computed in 128
 * bits, so that the test does not overflow where the code might.
 *
 * Argument: which part.
 *
 * Long because: one program, so that its parts share the lattice.
 */
#define _GNU_SOURCE
#include "expect.h"
#include <freestone.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>

typedef unsigned __int128 u128;

static const size_t SIZES[] = {
    0, 1, 7, 8, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 100, 127, 128, 129, 255, 256, 257, 288, 511, 512, 513, 1000, 1023, 1024,
    1025, 2047, 2048, 2049, 3000, 4095, 4096, 4097, 8191, 8192, 8193, 16384, 20000, 28672, 32767, 32768, 32769, 40960, 65535, 65536,
    65537, 100000, 131072, 131073, 262144, 1048575, 1048576, 1048577, 2097152, 2097153, 5000000, 33554432,
};
#define N_SIZES (sizeof SIZES / sizeof *SIZES)

/* Sizes that no machine has, around every limit. */
static const size_t ABSURD[] = {
    PTRDIFF_MAX - 65536ul, PTRDIFF_MAX - 16ul, PTRDIFF_MAX - 1ul, PTRDIFF_MAX, PTRDIFF_MAX + 1ul, PTRDIFF_MAX + 2ul, PTRDIFF_MAX + 65536ul,
    SIZE_MAX / 2 + 100, SIZE_MAX - 1048576, SIZE_MAX - 65536, SIZE_MAX - 65535, SIZE_MAX - 4096, SIZE_MAX - 4095, SIZE_MAX - 64,
    SIZE_MAX - 32, SIZE_MAX - 16, SIZE_MAX - 15, SIZE_MAX - 8, SIZE_MAX - 1, SIZE_MAX, (size_t)1 << 62, (size_t)1 << 50, (size_t)1 << 48,
};
#define N_ABSURD (sizeof ABSURD / sizeof *ABSURD)

static int is_aligned(void *block, size_t align) { return (uintptr_t)block % align == 0; }

/* Writes both ends of a block and an OS page's word here and there. */
static void use(void *block, size_t size) {
    unsigned char *bytes = block;
    for (size_t at = 0; at < size; at += 4096) bytes[at] = 0x5A;
    if (size > 0) bytes[size - 1] = 0xA5;
}

static void expect_no_memory(void *block) {
    EXPECT(block == NULL);
    EXPECT(errno == ENOMEM);
    errno = 0;
}

static void sizes(void) {
    for (size_t i = 0; i < N_SIZES; i++) {
        size_t size = SIZES[i];
        errno = 77;
        char *block = malloc(HIDE(size));
        EXPECT(block != NULL && errno == 77);
        EXPECT(is_aligned(block, 16));
        EXPECT(malloc_usable_size(block) >= size);
        use(block, malloc_usable_size(block));
        char *other = malloc(HIDE(size));
        EXPECT(other != NULL && other != block);
        EXPECT(other >= block + size || block >= other + size);
        free(other);
        free(block);
        EXPECT(errno == 77);
    }
    void *empty[64];
    for (int i = 0; i < 64; i++) {
        empty[i] = malloc(HIDE((size_t)0));
        EXPECT(empty[i] != NULL);
        for (int j = 0; j < i; j++) EXPECT(empty[i] != empty[j]);
    }
    for (int i = 0; i < 64; i++) free(empty[i]);
    free(NULL);
    EXPECT(malloc_usable_size(NULL) == 0);
    free_sized(malloc(40), 40);
    free_sized(NULL, 0);
    free_aligned_sized(aligned_alloc(64, 100), 64, 100);
    /* Alignments that aligned_alloc rounds up. */
    for (size_t align = 0; align < 5000; align = align * 3 + 1) {
        free_aligned_sized(aligned_alloc(HIDE(align), 10), align, 10);
    }
    free_aligned_sized(NULL, 64, 0);
}

static void absurd(void) {
    void *kept = malloc(100);
    memset(kept, 0x3C, 100);
    for (size_t i = 0; i < N_ABSURD; i++) {
        size_t size = HIDE(ABSURD[i]);
        errno = 0;
        expect_no_memory(malloc(size));
        expect_no_memory(calloc(1, size));
        expect_no_memory(calloc(size, 1));
        expect_no_memory(realloc(NULL, size));
        expect_no_memory(realloc(kept, size));
        expect_no_memory(reallocarray(kept, size, 1));
        expect_no_memory(reallocarray(kept, 1, size));
        expect_no_memory(aligned_alloc(16, size));
        expect_no_memory(memalign(4096, size));
        expect_no_memory(aligned_alloc((size_t)1 << 30, size));
        expect_no_memory(valloc(size));
        expect_no_memory(pvalloc(size));
        void *untouched = kept;
        errno = 5;
        EXPECT(posix_memalign(&untouched, 64, size) == ENOMEM);
        EXPECT(untouched == kept && errno == ENOMEM);
        for (int byte = 0; byte < 100; byte++) EXPECT(((char *)kept)[byte] == 0x3C);
    }
    free(kept);
}

static void overflow(void) {
    static const size_t FACTORS[] = {
        0, 1, 2, 3, 16, 255, 4096, 65536, 65537, 0x7FFFFFFFul, 0x80000000ul, 0xFFFFFFFFul, 0x100000000ul, 0x100000001ul,
        PTRDIFF_MAX / 3 + 1, PTRDIFF_MAX / 2, PTRDIFF_MAX / 2 + 1, PTRDIFF_MAX, PTRDIFF_MAX + 1ul, SIZE_MAX / 3, SIZE_MAX / 2, SIZE_MAX - 1, SIZE_MAX,
    };
    const size_t n = sizeof FACTORS / sizeof *FACTORS;
    freestone_heap_t *heap = freestone_heap_new();
    EXPECT(heap != NULL);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            size_t a = HIDE(FACTORS[i]), b = HIDE(FACTORS[j]);
            u128 product = (u128)a * b;
            if (product > PTRDIFF_MAX) {
                errno = 0;
                expect_no_memory(calloc(a, b));
                expect_no_memory(reallocarray(NULL, a, b));
                expect_no_memory(freestone_heap_calloc(heap, a, b));
            } else if (product <= 1 << 20) {
                unsigned char *block = calloc(a, b);
                EXPECT(block != NULL && malloc_usable_size(block) >= product);
                for (size_t at = 0; at < product; at++) EXPECT(block[at] == 0);
                free(block);
                block = reallocarray(NULL, a, b);
                EXPECT(block != NULL && malloc_usable_size(block) >= product);
                free(block);
            }
        }
    }
    freestone_heap_delete(heap);
}

static void alignments(void) {
    for (int log2 = 0; log2 <= 30; log2++) {
        size_t align = (size_t)1 << log2;
        for (size_t i = 0; i < N_SIZES; i++) {
            size_t size = SIZES[i];
            if (log2 > 21 && size > 1 << 20) continue;
            errno = 9;
            void *blocks[3] = {aligned_alloc(align, size), memalign(align, size), NULL};
            EXPECT(blocks[0] != NULL && blocks[1] != NULL && errno == 9);
            if (align >= sizeof(void *)) EXPECT(posix_memalign(&blocks[2], align, size) == 0 && blocks[2] != NULL);
            for (int b = 0; b < 3; b++) {
                EXPECT(is_aligned(blocks[b], align));
                EXPECT(blocks[b] == NULL || malloc_usable_size(blocks[b]) >= size);
                for (int other = 0; other < b; other++) EXPECT(blocks[b] != blocks[other]);
                if (blocks[b]) use(blocks[b], size);
            }
            for (int b = 0; b < 3; b++) free(blocks[b]);
        }
        EXPECT(errno == 9);
    }
}

/* glibc's memalign rounds an alignment up to a power of two, and answers EINVAL where there is none. */
static void expect_rounded_up(void *(*allocate)(size_t, size_t), size_t align, size_t size) {
    errno = 0;
    unsigned char *block = allocate(align, size);
    if (align > PTRDIFF_MAX + 1ul) {
        EXPECT(block == NULL && errno == EINVAL);
    } else if (align == PTRDIFF_MAX) {
        EXPECT(block == NULL && errno == ENOMEM);
    } else {
        size_t power = 16;
        while (power < align) power *= 2;
        EXPECT(block && (uintptr_t)block % power == 0 && malloc_usable_size(block) >= size);
        free(block);
    }
}

static void bad_alignments(void) {
    static const size_t BAD[] = {0, 3, 5, 6, 7, 9, 12, 15, 17, 24, 48, 100, 4095, 4097, 65537, PTRDIFF_MAX, PTRDIFF_MAX + 2ul, SIZE_MAX - 1, SIZE_MAX};
    freestone_heap_t *heap = freestone_heap_new();
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        size_t align = HIDE(BAD[i]);
        for (size_t size = 0; size < 300; size += 99) {
            expect_rounded_up(aligned_alloc, align, size);
            expect_rounded_up(memalign, align, size);
            errno = 0;
            EXPECT(freestone_heap_aligned_alloc(heap, align, size) == NULL && errno == EINVAL);
            void *untouched = &heap;
            errno = 5;
            EXPECT(posix_memalign(&untouched, align, size) == EINVAL && untouched == &heap && errno == 5);
        }
    }
    void *untouched = &heap;
    EXPECT(posix_memalign(&untouched, 1, 8) == EINVAL && posix_memalign(&untouched, 2, 8) == EINVAL);
    EXPECT(posix_memalign(&untouched, 4, 8) == EINVAL && untouched == &heap);
    for (int log2 = 41; log2 < 64; log2++) {
        size_t align = HIDE((size_t)1 << log2);
        const size_t around[] = {0, 1, 100, 65536, PTRDIFF_MAX, SIZE_MAX - align, SIZE_MAX};
        for (size_t i = 0; i < sizeof around / sizeof *around; i++) {
            errno = 0;
            expect_no_memory(aligned_alloc(align, around[i]));
            expect_no_memory(memalign(align, around[i]));
            expect_no_memory(freestone_heap_aligned_alloc(heap, align, around[i]));
            errno = 5;
            EXPECT(posix_memalign(&untouched, align, around[i]) == ENOMEM && untouched == &heap && errno == ENOMEM);
        }
    }
    freestone_heap_delete(heap);
}

static void pages(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < N_SIZES; i++) {
        void *v = valloc(SIZES[i]), *p = pvalloc(SIZES[i]);
        EXPECT(v != NULL && is_aligned(v, page) && malloc_usable_size(v) >= SIZES[i]);
        EXPECT(p != NULL && is_aligned(p, page));
        size_t whole = (SIZES[i] + page - 1) / page * page;
        EXPECT(malloc_usable_size(p) >= whole && malloc_usable_size(p) >= page);
        use(p, whole);
        free(v);
        free(p);
    }
}

static void reallocs(void) {
    void *fresh = realloc(NULL, 100);
    EXPECT(fresh != NULL && malloc_usable_size(fresh) >= 100);
    errno = 3;
    EXPECT(realloc(fresh, 0) == NULL && errno == 3);
    EXPECT(reallocarray(malloc(10), 0, 5) == NULL && errno == 3);
    void *empty = realloc(NULL, 0);
    EXPECT(empty != NULL);
    free(empty);
    for (size_t i = 0; i < N_SIZES; i++) {
        for (size_t j = 0; j < N_SIZES; j++) {
            size_t from = SIZES[i], to = SIZES[j];
            if (to == 0 || from + to > 6000000) continue;
            unsigned char *block = malloc(from);
            EXPECT(block != NULL);
            for (size_t at = 0; at < from; at++) block[at] = (unsigned char)(at * 31 + i);
            block = realloc(block, to);
            EXPECT(block != NULL && is_aligned(block, 16) && malloc_usable_size(block) >= to);
            for (size_t at = 0; at < from && at < to; at++) EXPECT(block[at] == (unsigned char)(at * 31 + i));
            use(block, to);
            free(block);
        }
    }
    for (int log2 = 4; log2 <= 22; log2++) {
        unsigned char *block = aligned_alloc((size_t)1 << log2, 3000);
        memset(block, log2, 3000);
        block = realloc(block, 100000);
        EXPECT(block != NULL);
        for (int at = 0; at < 3000; at++) EXPECT(block[at] == log2);
        free(block);
    }
    /* Each block is in the other's way: they move, and large ones are not copied. */
    unsigned char *both[2] = {NULL, NULL};
    const size_t step = 700000;
    for (size_t n = 1; n <= 12; n++) {
        for (int k = 0; k < 2; k++) {
            both[k] = realloc(both[k], n * step);
            EXPECT(both[k] != NULL);
            memset(both[k] + (n - 1) * step, (int)n + 100 * k, step);
            for (size_t at = 0; at < n * step; at += 499) EXPECT(both[k][at] == at / step + 1 + 100u * (unsigned)k);
        }
    }
    free(both[0]);
    free(both[1]);
}

static void zeroes(void) {
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < N_SIZES; i++) {
            size_t size = SIZES[i];
            void *dirty[4];
            for (int k = 0; k < 4; k++) {
                dirty[k] = malloc(size);
                EXPECT(dirty[k] != NULL);
                memset(dirty[k], 0xFF, malloc_usable_size(dirty[k]));
            }
            for (int k = 0; k < 4; k++) free(dirty[k]);
            if (round == 2) freestone_purge();
            for (int k = 0; k < 4; k++) {
                unsigned char *block = calloc(k % 2 ? 1 : size, k % 2 ? size : 1);
                EXPECT(block != NULL);
                for (size_t at = 0; at < size; at++) EXPECT(block[at] == 0);
                memset(block, 0xEE, size);
                dirty[k] = block;
            }
            for (int k = 0; k < 4; k++) free(dirty[k]);
        }
    }
}

/* Frees an array of blocks that another thread allocated. */
static void *free_all(void *argument) {
    void **blocks = argument;
    for (int i = 0; i < 20000; i++) {
        errno = 1234;
        free(blocks[i]);
        EXPECT(errno == 1234);
    }
    return NULL;
}

static void kept_errno(void) {
    static void *blocks[20000];
    static const size_t kinds[] = {16, 100, 1000, 9000, 30000};
    for (size_t k = 0; k < 5; k++) {
        for (int i = 0; i < 20000; i++) EXPECT((blocks[i] = malloc(kinds[k])) != NULL);
        free_all(blocks);
        for (int i = 0; i < 20000; i++) EXPECT((blocks[i] = malloc(kinds[k])) != NULL);
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, free_all, blocks) == 0);
        EXPECT(pthread_join(thread, NULL) == 0);
    }
    /* Large ones, beyond the dirty bound, so that freeing purges. */
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 20; i++) {
            blocks[i] = malloc((size_t)(i + 1) << 20);
            EXPECT(blocks[i] != NULL);
            memset(blocks[i], 1, (size_t)(i + 1) << 20);
        }
        for (int i = 0; i < 20; i++) {
            errno = 4321;
            free(blocks[i]);
            EXPECT(errno == 4321);
        }
    }
    errno = 11;
    free(NULL);
    EXPECT(errno == 11);
}

/* The usable size of a block depends on the requested size, not on what happened before. */
static void usable_sizes(void) {
    enum { N_SLOTS = 500 };
    static void *slots[N_SLOTS];
    static const size_t ASKED[] = {1, 17, 100, 640, 1000, 5000, 9000, 16384, 16385, 32768, 40000, 70000, 300000, 1 << 20, 5 << 20, 9000000};
    uint64_t state = 3;
    for (size_t i = 0; i < sizeof ASKED / sizeof *ASKED; i++) {
        size_t expected = 0;
        for (int round = 0; round < 200; round++) {
            void **slot = &slots[next_random(&state) % N_SLOTS];
            free(*slot);
            *slot = malloc(next_random(&state) % (2 * ASKED[i] + 1));
            void *block = round % 2 ? malloc(ASKED[i]) : calloc(1, ASKED[i]);
            EXPECT(block);
            if (round == 0) expected = malloc_usable_size(block);
            EXPECT(malloc_usable_size(block) == expected);
            if (round % 3 == 0) *(char *)block = 1;
            slot = &slots[next_random(&state) % N_SLOTS];
            free(*slot);
            *slot = block;
        }
    }
    for (int i = 0; i < N_SLOTS; i++) free(slots[i]);
}

static void heaps(void) {
    freestone_heap_t *heap = freestone_heap_new();
    EXPECT(heap != NULL);
    for (size_t i = 0; i < N_SIZES; i++) {
        for (size_t j = 0; j < N_SIZES; j += 3) {
            size_t from = SIZES[i], to = SIZES[j];
            if (from + to > 3000000) continue;
            unsigned char *block = freestone_heap_malloc(heap, from);
            EXPECT(block != NULL && is_aligned(block, 16) && malloc_usable_size(block) >= from);
            memset(block, 0x77, from);
            unsigned char *moved = freestone_heap_realloc(heap, block, to);
            EXPECT((moved == NULL) == (to == 0));
            for (size_t at = 0; at < from && at < to; at++) EXPECT(moved[at] == 0x77);
            if (i % 2) free(moved);
        }
        unsigned char *zero = freestone_heap_calloc(heap, SIZES[i], 1);
        EXPECT(zero != NULL);
        for (size_t at = 0; at < SIZES[i]; at++) EXPECT(zero[at] == 0);
        memset(zero, 1, SIZES[i]);
        free(zero);
        void *aligned = freestone_heap_aligned_alloc(heap, 4096, SIZES[i]);
        EXPECT(aligned != NULL && is_aligned(aligned, 4096));
    }
    char *kept = freestone_heap_malloc(heap, 50);
    memset(kept, 5, 50);
    errno = 0;
    expect_no_memory(freestone_heap_realloc(heap, kept, HIDE((size_t)SIZE_MAX)));
    expect_no_memory(freestone_heap_malloc(heap, HIDE((size_t)PTRDIFF_MAX + 1)));
    for (int at = 0; at < 50; at++) EXPECT(kept[at] == 5);
    void *same = freestone_heap_realloc(heap, kept, 49);
    EXPECT(same == kept);
    freestone_heap_delete(heap);
    freestone_heap_delete(NULL);
    /* Deleting a heap frees all its memory: a hundred heaps in turn need no more than one. */
    long before = 0;
    for (int life = 0; life < 100; life++) {
        heap = freestone_heap_new();
        for (int i = 0; i < 2000; i++) memset(freestone_heap_malloc(heap, 1000), life, 1000);
        memset(freestone_heap_malloc(heap, 3 << 20), life, 3 << 20);
        freestone_heap_delete(heap);
        if (life == 10) before = resident_kib();
    }
    EXPECT(resident_kib() < before + 2048);
}

static void questions(void) {
    void *block = malloc(1 << 20);
#ifdef __GLIBC__
    struct mallinfo2 info = mallinfo2();
    EXPECT(info.uordblks >= 1 << 20 && info.arena >= info.uordblks && info.fordblks == info.arena - info.uordblks);
#endif
    EXPECT(mallopt(-3, 1 << 20) == 1);
    memset(block, 1, 1 << 20);
    free(block);
    /* Small ones: with `harden=full` the memory of a large one is given back when it is freed. */
    static void *small[8000];
    for (int i = 0; i < 8000; i++) small[i] = memset(malloc(500), 1, 500);
    for (int i = 0; i < 8000; i++) free(small[i]);
    EXPECT(malloc_trim(0) == 1);
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    EXPECT(malloc_info(0, stream) == 0);
    EXPECT(malloc_info(1, stream) == EINVAL);
    fclose(stream);
    EXPECT(strstr(text, "<malloc version=\"1\">") == text && strstr(text, "</malloc>\n") != NULL);
    free(text);
    FILE *full = fopen("/dev/full", "w");
    setvbuf(full, NULL, _IONBF, 0);
    EXPECT(malloc_info(0, full) == -1);
    fclose(full);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } PARTS[] = {
        {"sizes", sizes}, {"absurd", absurd}, {"overflow", overflow}, {"alignments", alignments}, {"bad_alignments", bad_alignments},
        {"pages", pages}, {"reallocs", reallocs}, {"zeroes", zeroes}, {"kept_errno", kept_errno}, {"usable_sizes", usable_sizes}, {"heaps", heaps}, {"questions", questions},
    };
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++) {
        if (argc == 2 && strcmp(argv[1], PARTS[i].name) == 0) {
            PARTS[i].run();
            return 0;
        }
    }
    return 2;
}
