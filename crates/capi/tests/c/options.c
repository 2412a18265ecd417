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
    EXPECT(freestone_option_get("decay_ms") == atoi(argv[1]));
    errno = 0;
    EXPECT(freestone_option_set("decay_ms", "soon") == -1 && errno == EINVAL);
    EXPECT(freestone_option_set("no_such", "1") == -1);
    EXPECT(freestone_option_get("no_such") == -1);
    errno = 0;
    EXPECT(freestone_option_set("report", "anywhere") == -1 && errno == EINVAL);
    EXPECT(freestone_option_set(NULL, "1") == -1 && freestone_option_set("decay_ms", NULL) == -1);
    EXPECT(freestone_option_get(NULL) == -1 && errno == EINVAL);
    EXPECT(freestone_option_set("dirty_max", "18446744073709551615") == 0);
    EXPECT(freestone_option_get("dirty_max") == INT64_MAX);
    EXPECT(freestone_option_get("decay_ms") == atoi(argv[1]));
    return 0;
}
