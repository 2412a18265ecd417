// What a program holds, before and after it gives memory back.
#include <freestone.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

static void show(const char *when) {
    freestone_stats_t stats{};
    stats.size = sizeof stats;
    if (freestone_stats(&stats) == 0) {
        std::printf("%-12s live %llu KiB, committed %llu KiB\n", when, static_cast<unsigned long long>(stats.live >> 10),
                    static_cast<unsigned long long>(stats.committed >> 10));
    }
}

int main() {
    {
        std::vector<std::unique_ptr<std::string>> lines;
        for (int i = 0; i < 200000; i++) {
            lines.push_back(std::make_unique<std::string>(std::string("a line long enough to be on the heap: ") + std::to_string(i)));
        }
        show("loaded");
    }
    show("dropped");
    freestone_purge();
    show("purged");
    return 0;
}
