/* A shared library of which a test makes several that differ only in the size of a frame: `FRAME`. */
#include <stddef.h>

void *plugin_block(void *(*allocate)(size_t)) {
    volatile unsigned char frame[FRAME];
    for (size_t n = 0; n < FRAME; n++) frame[n] = 0x41;
    void *block = allocate(100);
    return frame[FRAME - 1] == 0x41 ? block : NULL;
}
