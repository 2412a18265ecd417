package main

// The comparison: rounds, the table, the bars.

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
)

// kinds of buffers, in the order of the rounds.
var kinds = []string{"make", "pool", "capped", "tlsf", "none"}

// column of the table.
type column struct {
	title string
	value func(result) float64
}

var columns = []column{
	{"p50 ms", func(r result) float64 { return r.P50Ms }},
	{"p99 ms", func(r result) float64 { return r.P99Ms }},
	{"p99.9 ms", func(r result) float64 { return r.P999Ms }},
	{"max ms", func(r result) float64 { return r.MaxMs }},
	{"GC CPU ms", func(r result) float64 { return r.GCCPUMs }},
	{"GC cycles", func(r result) float64 { return r.GCCycles }},
	{"CPU ms", func(r result) float64 { return r.CPUMs }},
	{"pauses ms", func(r result) float64 { return r.PauseMs }},
	{"heap MiB", func(r result) float64 { return r.AllocatedMiB }},
	{"held MiB", func(r result) float64 { return r.PeakHeldMiB }},
	{"RSS MiB", func(r result) float64 { return r.PeakRSSMiB }},
}

// compare measures each kind in turn, round after round.
func compare(c config, rounds int) error {
	results := map[string][]result{}
	for round := range rounds {
		for k := range kinds {
			c.Buffers = kinds[(k+round)%len(kinds)]
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, rounds, c.Buffers)
			r, err := measure(c, round)
			if err != nil {
				return fmt.Errorf("%s: %w", c.Buffers, err)
			}
			results[c.Buffers] = append(results[c.Buffers], r)
		}
	}
	printTable(results)
	printBars(results)
	return nil
}

func printTable(results map[string][]result) {
	fmt.Printf("%-8s", "medians")
	for _, col := range columns {
		fmt.Printf("%11s", col.title)
	}
	fmt.Println()
	for _, kind := range kinds {
		fmt.Printf("%-8s", kind)
		for _, col := range columns {
			fmt.Printf("%11.2f", median(values(results[kind], col.value)))
		}
		fmt.Println()
	}
}

// printBars says of each bar whether it holds. GC CPU also comes as what is above that of the proxy without buffers.
func printBars(results map[string][]result) {
	fmt.Printf("\n%-32s%8s%18s   bar: below 1 (capped is no bar, but shows what the cap alone does)\n", "within a round", "median", "interval")
	for _, other := range []string{"make", "pool", "capped"} {
		bar("p99.9", other, results, func(r result) float64 { return r.P999Ms })
		bar("GC cycles", other, results, func(r result) float64 { return r.GCCycles })
		bar("GC CPU", other, results, func(r result) float64 { return r.GCCPUMs })
	}
	for _, kind := range kinds[:4] {
		above := median(pairs(results[kind], results["none"], func(r, none result) float64 { return r.GCCPUMs - none.GCCPUMs }))
		fmt.Printf("%-32s%8.0f ms\n", "GC CPU of "+kind+" above none", above)
	}
	_, confidence := interval(make([]float64, len(results["tlsf"])))
	fmt.Println(strings.Repeat("-", 8), fmt.Sprintf("ratios and differences are medians over the rounds; intervals hold the median with %.0f %% confidence",
		100*confidence))
}

func bar(title, other string, results map[string][]result, value func(result) float64) {
	ratios := pairs(results["tlsf"], results[other], func(a, b result) float64 { return value(a) / value(b) })
	between, _ := interval(ratios)
	verdict := "open: the interval reaches 1"
	switch {
	case between[1] < 1:
		verdict = "holds"
	case between[0] >= 1:
		verdict = "does not hold"
	}
	fmt.Printf("%-32s%8.2f%18s   %s\n", title+" of tlsf / "+other, median(ratios), fmt.Sprintf("%.2f to %.2f", between[0], between[1]), verdict)
}

func values(results []result, value func(result) float64) []float64 {
	var all []float64
	for _, r := range results {
		all = append(all, value(r))
	}
	return all
}

// pairs combines what two kinds cost in the same round.
func pairs(a, b []result, combine func(a, b result) float64) []float64 {
	var all []float64
	for n := range a {
		all = append(all, combine(a[n], b[n]))
	}
	return all
}

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

// interval is the narrowest pair of the values that has the median of their distribution between it with a confidence of 90 % or
// more, and that confidence: of n values, the chance that the median lies below the k-th is that of fewer than k heads in n
// throws. With fewer than five values it is the widest pair there is.
func interval(all []float64) (between [2]float64, confidence float64) {
	all = slices.Sorted(slices.Values(all))
	n := len(all)
	heads := math.Pow(0.5, float64(n)) // the chance of k heads
	below, k := heads, 0
	for ; k+1 < (n+1)/2; k++ {
		heads *= float64(n-k) / float64(k+1)
		if 2*(below+heads) > 0.1 {
			break
		}
		below += heads
	}
	return [2]float64{all[k], all[n-1-k]}, 1 - 2*below
}
