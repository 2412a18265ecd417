# Uses an installed Freestone: its command is in PATH, pkg-config and CMake find it. Examples are in $examples, the library's folder is $lib.
say() { echo "-- $*"; }
for tool in cargo rustc rustup; do
    if command -v $tool; then echo "$tool is here: the trial proves nothing" >&2; exit 1; fi
done
mkdir -p /root/work
cd /root/work

say "a C program, linked"
gcc -std=c11 -Wall -Wextra -Werror "$examples/request_heap.c" $(pkg-config --cflags --libs freestone) $rpath -o request_heap
./request_heap | head -n 1

say "a C++ program, linked"
g++ -std=c++17 -Wall -Wextra -Werror "$examples/watch_memory.cpp" $(pkg-config --cflags --libs freestone) $rpath -o watch_memory
./watch_memory | tail -n 1

say "TLSF and a pool, of the same library"
for example in audio_engine connection_table; do
    gcc -std=gnu11 "$examples/$example.c" $(pkg-config --cflags --libs freestone) $rpath -lm -o $example
    ./$example | tail -n 1
done

say "TLSF as a library of its own"
cat > alone.c <<END
#include <freestone_tlsf.h>
static _Alignas(16) unsigned char memory[65536];
int main(void) {
    freestone_tlsf_t *heap = freestone_tlsf_new(memory, sizeof memory, NULL);
    void *block = heap ? freestone_tlsf_malloc(heap, 1000) : NULL;
    return block ? freestone_tlsf_free(heap, block) : 1;
}
END
gcc -std=c11 alone.c $(pkg-config --cflags --libs freestone_tlsf) -o alone
./alone

say "CMake"
cat > CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.16)
project(try CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(freestone 0.1 REQUIRED COMPONENTS malloc static tlsf pool)
add_executable(by_cmake $examples/watch_memory.cpp)
target_link_libraries(by_cmake freestone::freestone)
END
cmake -S . -B build ${prefix:+-DCMAKE_PREFIX_PATH=$prefix} > cmake.log
cmake --build build >> cmake.log
./build/by_cmake | tail -n 1

say "preloaded"
LD_PRELOAD=$lib/libfreestone.so.0 grep -m 1 -o 'libfreestone.so.*' /proc/self/maps

say "freestone run"
freestone run -- sort /etc/passwd > sorted 2> run.log
grep -i allocations run.log
freestone run > demo 2>&1
tail -n 3 demo

say "freestone compare and report"
freestone compare --rounds 3 --out results.jsonl -- gcc -c -x c -o /dev/null "$examples/request_heap.c" -I"$include" > compare.txt 2> compare.log
grep 'freestone 0' compare.txt
freestone bench random_mixed --quick --rounds 2 --no-report --out bench.jsonl > bench.txt 2>> compare.log
freestone report results.jsonl bench.jsonl -o page.html
grep -q '<svg' page.html

say "profile, leaks, options"
freestone profile -- ./watch_memory > profile.txt 2>&1
freestone leaks -- ./request_heap > leaks.txt 2>&1
freestone options | head -n 3
cd /root
