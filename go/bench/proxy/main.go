// Proxy measures buffers where they matter: an HTTP proxy that reads each answer of its origin whole, 64 KiB to 1 MiB, before
// it passes it on, as buffering proxies do. The buffers come from make, from sync.Pool (one pool for each power of two), or
// from a sharded off-heap TLSF with a hard cap.
//
//	go run ./bench/proxy                     all three, in interleaved rounds, each in a process of its own
//	go run ./bench/proxy -buffers=tlsf       one of them; prints one line of JSON
//
// What it models: a proxy under a fixed number of busy connections, beside a live heap of small linked objects (-live), such as
// sessions or a cache, which every collection has to mark. Client, proxy and origin share the process and talk over loopback.
// What it does not show: slow clients, TLS, many idle connections. RSS is Linux's VmHWM.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	var c config
	flag.StringVar(&c.Buffers, "buffers", "", "make, pool or tlsf; empty compares all three")
	flag.IntVar(&c.Requests, "requests", 6000, "requests in a run")
	flag.IntVar(&c.Clients, "clients", 8, "busy connections")
	flag.IntVar(&c.LiveMiB, "live", 64, "MiB of small linked objects in Go's heap")
	flag.IntVar(&c.CapMiB, "cap", 64, "MiB that tlsf may use")
	rounds := flag.Int("rounds", 5, "rounds of the comparison")
	flag.Parse()
	var err error
	if c.Buffers == "" {
		err = compare(c, *rounds)
	} else {
		var r result
		if r, err = run(c); err == nil {
			err = json.NewEncoder(os.Stdout).Encode(r)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "proxy:", err)
		os.Exit(1)
	}
}

// kinds of buffers, in the order of the rounds.
var kinds = []string{"make", "pool", "tlsf"}

// compare runs each kind in a process of its own, in turn, and prints medians.
func compare(c config, rounds int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	results := map[string][]result{}
	for round := range rounds {
		for _, kind := range kinds {
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, rounds, kind)
			out, err := exec.Command(self, "-buffers="+kind, fmt.Sprintf("-requests=%d", c.Requests),
				fmt.Sprintf("-clients=%d", c.Clients), fmt.Sprintf("-live=%d", c.LiveMiB), fmt.Sprintf("-cap=%d", c.CapMiB)).Output()
			if err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
			var r result
			if err := json.Unmarshal(out, &r); err != nil {
				return fmt.Errorf("%s printed %q: %w", kind, out, err)
			}
			results[kind] = append(results[kind], r)
		}
	}
	printTable(results)
	return nil
}

// columns of the table; every one is better when smaller, but for requests.
var columns = []struct {
	title string
	value func(result) float64
}{
	{"requests/s", func(r result) float64 { return r.PerSecond }},
	{"p50 ms", func(r result) float64 { return r.P50Ms }},
	{"p99 ms", func(r result) float64 { return r.P99Ms }},
	{"p99.9 ms", func(r result) float64 { return r.P999Ms }},
	{"max ms", func(r result) float64 { return r.MaxMs }},
	{"GC CPU ms", func(r result) float64 { return r.GCCPUMs }},
	{"GC cycles", func(r result) float64 { return r.GCCycles }},
	{"pause ms", func(r result) float64 { return r.PauseMs }},
	{"RSS MiB", func(r result) float64 { return r.PeakRSSMiB }},
}

func printTable(results map[string][]result) {
	fmt.Printf("%-10s", "median")
	for _, column := range columns {
		fmt.Printf("%12s", column.title)
	}
	fmt.Println()
	for _, kind := range kinds {
		fmt.Printf("%-10s", kind)
		for _, column := range columns {
			fmt.Printf("%12.2f", median(results[kind], column.value))
		}
		fmt.Println()
	}
	for _, kind := range kinds[:2] {
		fmt.Printf("%-10s", "tlsf/"+kind)
		for _, column := range columns {
			fmt.Printf("%12.2f", medianRatio(results["tlsf"], results[kind], column.value))
		}
		fmt.Println()
	}
	fmt.Println(strings.Repeat("-", 10), "ratios are medians of the ratios within a round")
}

func median(results []result, value func(result) float64) float64 {
	var all []float64
	for _, r := range results {
		all = append(all, value(r))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func medianRatio(a, b []result, value func(result) float64) float64 {
	var all []float64
	for n := range a {
		all = append(all, value(a[n])/value(b[n]))
	}
	slices.Sort(all)
	return all[len(all)/2]
}
