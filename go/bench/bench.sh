#!/bin/sh
# Experiment A: the benchmarks in interleaved rounds, ready for benchstat, and a plot.
#
#   bench/bench.sh [ROUNDS] [DIR]      default: 5 rounds, results in bench/results
#
# Writes DIR/all.txt (for `benchstat -col /alloc DIR/all.txt`) and DIR/pair.svg, and prints medians and ratios.
# With GOEXPERIMENT=arenas in the environment, arena.MakeSlice is measured too; without, only its lines are missing.
set -eu
rounds=${1:-5}
cd "$(dirname "$0")/.."
dir=${2:-bench/results}
mkdir -p "$dir"
go test -c -o "$dir/bench.test" ./bench
: >"$dir/all.txt"
round=1
while [ "$round" -le "$rounds" ]; do
	echo "round $round of $rounds" >&2
	"$dir/bench.test" -test.run '^$' -test.bench . -test.benchtime 200ms >>"$dir/all.txt"
	round=$((round + 1))
done
go run ./bench/plot -out "$dir/pair.svg" "$dir/all.txt"
echo "raw: $dir/all.txt   plot: $dir/pair.svg" >&2
