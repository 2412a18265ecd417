package main

// The comparison: rounds, the table, the bars.

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
)

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

// measured is a line of the results file: one round of one comparison.
type measured struct {
	Config  config
	Results map[string]result
}

// compare measures each kind in turn, round after round. It continues after the rounds that the file at path contains, and appends to
// it, so that several short runs make one comparison. Without a path there is no file.
func compare(c config, kinds []string, rounds int, path string) error {
	all, err := readRounds(c, kinds, path)
	if err != nil {
		return err
	}
	for range rounds {
		one := measured{c, map[string]result{}}
		for k := range kinds {
			kind := kinds[(k+len(all))%len(kinds)]
			fmt.Fprintf(os.Stderr, "round %d: %s\n", len(all)+1, kind)
			if one.Results[kind], err = measure(c, kind, len(all)); err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
		}
		all = append(all, one)
		if err := addRound(one, path); err != nil {
			return err
		}
	}
	results := map[string][]result{}
	for _, one := range all {
		for kind, r := range one.Results {
			results[kind] = append(results[kind], r)
		}
	}
	printTable(kinds, results)
	printBars(kinds, results)
	return nil
}

// readRounds refuses rounds of another configuration.
func readRounds(c config, kinds []string, path string) (all []measured, err error) {
	file, err := os.Open(path)
	if path == "" || errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for decoder := json.NewDecoder(file); decoder.More(); {
		var one measured
		if err := decoder.Decode(&one); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if one.Config != c || !slices.Equal(slices.Sorted(maps.Keys(one.Results)), slices.Sorted(slices.Values(kinds))) {
			return nil, fmt.Errorf("%s: rounds of another configuration: %+v", path, one.Config)
		}
		all = append(all, one)
	}
	return all, nil
}

func addRound(one measured, path string) error {
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(file).Encode(one), file.Close())
}

func printTable(kinds []string, results map[string][]result) {
	fmt.Printf("%-8s", "medians")
	for _, col := range columns {
		fmt.Printf("%11s", col.title)
	}
	fmt.Printf("%17s\n", "p99.9 ms, pooled")
	for _, kind := range kinds {
		fmt.Printf("%-8s", kind)
		for _, col := range columns {
			fmt.Printf("%11.2f", median(values(results[kind], col.value)))
		}
		fmt.Printf("%17.2f\n", pooled(results[kind], every(len(results[kind])), 0.999))
	}
}

// printBars prints for each goal whether it is met.
func printBars(kinds []string, results map[string][]result) {
	fmt.Printf("\n%-36s%8s%18s   bar: below 1 (capped is no bar, but shows what the cap alone does)\n", "ratio", "", "interval")
	for _, ours := range kinds {
		for _, other := range kinds {
			if !strings.HasPrefix(ours, "tlsf") || !slices.Contains([]string{"make", "pool", "capped"}, other) {
				continue
			}
			between := ours + " / " + other
			verdict("p99.9 of "+between, pooledRatio(results[ours], results[other], every(len(results[ours])), 0.999),
				pooledInterval(results[ours], results[other], 0.999))
			bar("GC cycles of "+between, results[ours], results[other], func(r result) float64 { return r.GCCycles })
			bar("GC CPU of "+between, results[ours], results[other], func(r result) float64 { return r.GCCPUMs })
		}
	}
	_, confidence := interval(make([]float64, len(results[kinds[0]])))
	fmt.Printf("GC: medians over %d rounds, intervals hold the median with %.0f %% confidence. p99.9: of the answers of all rounds together,\n"+
		"interval of 90 %% from %d drawings of as many rounds\n", len(results[kinds[0]]), 100*confidence, drawings)
}

func bar(title string, ours, others []result, value func(result) float64) {
	ratios := pairs(ours, others, func(a, b result) float64 { return value(a) / value(b) })
	between, _ := interval(ratios)
	verdict(title, median(ratios), between)
}

// verdict prints a ratio, and whether its interval meets the goal.
func verdict(title string, ratio float64, between [2]float64) {
	says := "open: the interval reaches 1"
	switch {
	case between[1] < 1:
		says = "holds"
	case between[0] >= 1:
		says = "does not hold"
	}
	fmt.Printf("%-36s%8.3f%18s   %s\n", title, ratio, fmt.Sprintf("%.3f to %.3f", between[0], between[1]), says)
}

// drawings of a bootstrap.
const drawings = 2000

// pooled is the quantile q, 0.99 or more, of the answers of some rounds together. A round's percentile depends on one burst; the
// cost of rare waits shows only over all rounds.
func pooled(results []result, rounds []int, q float64) float64 {
	var all int
	for _, round := range rounds {
		all += len(results[round].Ms)
	}
	beyond := all - 1 - int(q*float64(all-1)) // how many answers took longer
	var tail []float64
	for _, round := range rounds {
		ms := results[round].Ms // sorted
		tail = append(tail, ms[max(0, len(ms)-1-beyond):]...)
	}
	slices.Sort(tail)
	return tail[len(tail)-1-beyond]
}

func pooledRatio(ours, others []result, rounds []int, q float64) float64 {
	return pooled(ours, rounds, q) / pooled(others, rounds, q)
}

// pooledInterval contains the ratio in 90 % of drawings: as many rounds as there are, each drawn from all of them with replacement, and both
// kinds' answers of the rounds drawn.
func pooledInterval(ours, others []result, q float64) [2]float64 {
	random := rand.New(rand.NewPCG(1, 2))
	ratios := make([]float64, drawings)
	rounds := make([]int, len(ours))
	for n := range ratios {
		for k := range rounds {
			rounds[k] = random.IntN(len(ours))
		}
		ratios[n] = pooledRatio(ours, others, rounds, q)
	}
	slices.Sort(ratios)
	return [2]float64{at(ratios, 0.05), at(ratios, 0.95)}
}

// every is the numbers of n rounds.
func every(n int) []int {
	rounds := make([]int, n)
	for k := range rounds {
		rounds[k] = k
	}
	return rounds
}

func values(results []result, value func(result) float64) []float64 {
	var all []float64
	for _, r := range results {
		all = append(all, value(r))
	}
	return all
}

// pairs combines the figures of two kinds in the same round.
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

// interval is the narrowest pair of the values between which the median of their distribution lies with a confidence of 90 % or
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
