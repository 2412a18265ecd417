#!/bin/sh
# All checks of the Go module: format, vet, tests, the program in README.md, the race detector, 32 bits, builds for the other
# systems, a short fuzz. Takes half a minute, two the first time; needs only a Go toolchain.
set -eu
cd "$(dirname "$0")"
export GOFLAGS="${GOFLAGS:-} -buildvcs=false"

step() { echo "== $*" >&2; }

step gofmt
unformatted=$(gofmt -l .)
if [ -n "$unformatted" ]; then
	echo "not formatted: run gofmt -w on" $unformatted >&2
	exit 1
fi

step "the licences are those of the project"
for licence in LICENSE-MIT LICENSE-APACHE; do
	cmp "$licence" "../$licence"
done

step vet
go vet ./...
GOEXPERIMENT=arenas go vet ./bench

step "tests"
go test ./...

step "the program in README.md"
program=$(mktemp -d)
trap 'rm -rf "$program"' EXIT
awk '/^```go$/ {inside = 1; next} /^```$/ {inside = 0} inside' README.md >"$program/main.go"
go vet "$program/main.go"
go run "$program/main.go" >"$program/output"
grep -q "already free" "$program/output" || {
	echo "the program in README.md does not print what its comments say: $(cat "$program/output")" >&2
	exit 1
}

step "tests, every benchmark once"
go test -run '^$' -bench . -benchtime 1x ./bench >/dev/null
for load in "-burst 64 -requests 256" "-model far -requests 64 -kinds pool,tlsf:8,sharded"; do
	go run ./bench/proxy -rounds 1 -live 4 -budget 64 $load >/dev/null 2>&1 || {
		echo "the proxy benchmark failed: go run ./bench/proxy -rounds 1 -live 4 -budget 64 $load" >&2
		exit 1
	}
done

case "$(go env GOOS)/$(go env CGO_ENABLED)" in
linux/1 | darwin/1 | windows/1)
	step "race detector, short"
	go test -race -short ./tlsf/... ./internal/...
	;;
*) step "race detector: skipped, it needs cgo" ;;
esac

if [ "$(go env GOOS)/$(go env GOARCH)" = linux/amd64 ]; then
	step "32 bits"
	GOARCH=386 go test ./tlsf/... ./internal/...
fi

# The module itself everywhere; the benchmarks, which pull in net/http, only where they are run.
for target in windows/amd64 windows/386 darwin/arm64 linux/arm64 linux/386; do
	step "build for $target"
	GOOS=${target%/*} GOARCH=${target#*/} go build ./tlsf/... ./internal/...
done

step "fuzz, short"
# A number of runs, not a time: up to Go 1.26 a fuzz test that ends by its time may fail with "context deadline exceeded" (https://go.dev/issue/75804).
go test -run '^$' -fuzz FuzzOps -fuzztime "${FUZZTIME:-12000x}" ./tlsf

step "all passed"
