// Plot reads Go benchmark output (of bench.sh) and draws BenchmarkPair: nanoseconds for a pair over the block's size, one line
// per allocator, both axes logarithmic, as one SVG file. It prints the medians and their ratios as a table.
//
//	go run ./bench/plot -out pair.svg results.txt
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
)

func main() {
	out := flag.String("out", "pair.svg", "the SVG file to write")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "plot: give one file of benchmark output, as bench.sh writes it")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *out); err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}

func run(in, out string) error {
	file, err := os.Open(in)
	if err != nil {
		return err
	}
	defer file.Close()
	medians, err := read(file)
	if err != nil {
		return err
	}
	if len(medians) == 0 {
		return fmt.Errorf("%s has no BenchmarkPair lines; run bench.sh first", in)
	}
	printTable(os.Stdout, medians)
	return os.WriteFile(out, draw(medians), 0o644)
}

// allocators in the order and the colours of every plot.
var allocators = []struct{ name, colour string }{
	{"tlsf", "#0b6e4f"}, {"locked", "#4c9f70"}, {"sharded", "#98c9a3"},
	{"sync.Pool", "#3366cc"}, {"make", "#cc3311"}, {"arena", "#ee7733"},
}

var sizes = []struct {
	name  string
	bytes float64
}{{"1KiB", 1 << 10}, {"10KiB", 10 << 10}, {"100KiB", 100 << 10}, {"500KiB", 500 << 10}}

// table is the median ns/op by allocator and size.
type table map[string]map[string]float64

var line = regexp.MustCompile(`^BenchmarkPair/alloc=([^/]+)/size=(\w+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op`)

func read(r io.Reader) (table, error) {
	samples := map[[2]string][]float64{}
	scanner := bufio.NewScanner(r)
	for scanner.Scan() {
		if m := line.FindStringSubmatch(scanner.Text()); m != nil {
			ns, err := strconv.ParseFloat(m[3], 64)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", scanner.Text(), err)
			}
			key := [2]string{m[1], m[2]}
			samples[key] = append(samples[key], ns)
		}
	}
	medians := table{}
	for key, values := range samples {
		slices.Sort(values)
		if medians[key[0]] == nil {
			medians[key[0]] = map[string]float64{}
		}
		medians[key[0]][key[1]] = values[len(values)/2]
	}
	return medians, scanner.Err()
}

func printTable(w io.Writer, medians table) {
	fmt.Fprintf(w, "%-10s", "ns/pair")
	for _, size := range sizes {
		fmt.Fprintf(w, "%12s", size.name)
	}
	fmt.Fprintf(w, "%12s%18s\n", "max/min", "make/it, 500KiB")
	for _, a := range allocators {
		row := medians[a.name]
		if row == nil {
			continue
		}
		fmt.Fprintf(w, "%-10s", a.name)
		low, high := math.Inf(1), 0.0
		for _, size := range sizes {
			fmt.Fprintf(w, "%12.1f", row[size.name])
			low, high = min(low, row[size.name]), max(high, row[size.name])
		}
		fmt.Fprintf(w, "%12.2f%18.1f\n", high/low, medians["make"]["500KiB"]/row["500KiB"])
	}
}

// The plot's frame in pixels.
const left, right, top, bottom = 80.0, 560.0, 50.0, 400.0

// place maps bytes and nanoseconds to pixels.
func place(bytes, ns, lowest, highest float64) (x, y float64) {
	x = left + (right-left)*math.Log(bytes/sizes[0].bytes)/math.Log(sizes[len(sizes)-1].bytes/sizes[0].bytes)
	y = bottom - (bottom-top)*math.Log(ns/lowest)/math.Log(highest/lowest)
	return x, y
}

func draw(medians table) []byte {
	highest := 10.0
	for _, row := range medians {
		for _, ns := range row {
			for ns > highest {
				highest *= 10
			}
		}
	}
	svg := fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" width="720" height="460" font-family="sans-serif" font-size="14">
<rect width="720" height="460" fill="white"/>
<text x="%g" y="28" font-size="17">Taking and giving back one block in Go</text>
`, left)
	for ns := 1.0; ns <= highest; ns *= 10 {
		_, y := place(1024, ns, 1, highest)
		svg = fmt.Appendf(svg, `<path d="M%g %g H%g" stroke="#ddd"/><text x="%g" y="%g" text-anchor="end">%s</text>
`, left, y, right, left-8, y+5, nanoseconds(ns))
	}
	for _, size := range sizes {
		x, _ := place(size.bytes, 1, 1, highest)
		svg = fmt.Appendf(svg, `<text x="%g" y="%g" text-anchor="middle">%s</text>
`, x, bottom+22, size.name)
	}
	for n, a := range allocators {
		if medians[a.name] != nil {
			svg = drawLine(svg, medians[a.name], a.name, a.colour, highest, top+20+24*float64(n))
		}
	}
	return append(svg, "</svg>\n"...)
}

func drawLine(svg []byte, row map[string]float64, name, colour string, highest, legend float64) []byte {
	svg = fmt.Appendf(svg, `<polyline fill="none" stroke="%s" stroke-width="2.5" points="`, colour)
	for _, size := range sizes {
		x, y := place(size.bytes, row[size.name], 1, highest)
		svg = fmt.Appendf(svg, "%.1f,%.1f ", x, y)
	}
	return fmt.Appendf(svg, `"/><path d="M%g %g h24" stroke="%s" stroke-width="4"/><text x="%g" y="%g">%s</text>
`, right+30, legend, colour, right+62, legend+5, name)
}

func nanoseconds(ns float64) string {
	switch {
	case ns >= 1e6:
		return fmt.Sprintf("%g ms", ns/1e6)
	case ns >= 1e3:
		return fmt.Sprintf("%g µs", ns/1e3)
	}
	return fmt.Sprintf("%g ns", ns)
}
