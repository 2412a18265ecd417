/* Options from the environment, from the link-time symbol (when compiled with LINKED), and from the API. */
#include "expect.h"
#include "freestone.h"

#ifdef LINKED
const char freestone_options[] = "decay_ms=222,nonsense=1";
#endif

int main(int argc, char **argv) {
    EXPECT(argc > 1);
    if (argc > 2) {
        EXPECT(freestone_option_set("decay_ms", argv[2]) == 0);
    }
    uint64_t value = 77;
    EXPECT(freestone_option_get("decay_ms", &value) == FREESTONE_OK && value == (uint64_t)atoi(argv[1]));
    EXPECT(freestone_option_set("decay_ms", "soon") == FREESTONE_BAD_VALUE);
    EXPECT(freestone_option_set("no_such", "1") == FREESTONE_NO_SUCH_OPTION);
    EXPECT(freestone_option_get("no_such", &value) == FREESTONE_NO_SUCH_OPTION);
    EXPECT(freestone_option_set("report", "anywhere") == FREESTONE_BAD_VALUE);
    EXPECT(freestone_option_set(NULL, "1") == FREESTONE_NO_SUCH_OPTION && freestone_option_set("decay_ms", NULL) == FREESTONE_BAD_VALUE);
    EXPECT(freestone_option_get(NULL, &value) == FREESTONE_NO_SUCH_OPTION && value == (uint64_t)atoi(argv[1]));
    EXPECT(freestone_option_set("dirty_max", "18446744073709551615") == 0);
    EXPECT(freestone_option_get("dirty_max", &value) == FREESTONE_OK && value == UINT64_MAX);
    EXPECT(freestone_option_get("decay_ms", &value) == FREESTONE_OK && value == (uint64_t)atoi(argv[1]));
    return 0;
}
