package tlsf

// Statistics by name, in the style of runtime/metrics, for programs that collect those.

// Metric describes one number of Stats.
type Metric struct {
	Name        string // "/freestone/tlsf/...:unit"
	Description string
	Cumulative  bool // never falls
	value       func(Stats) uint64
}

// Sample is one number to be read. Read fills in Value, and Known when there is a metric of this name.
type Sample struct {
	Name  string
	Value uint64
	Known bool
}

var metrics = []Metric{
	{"/freestone/tlsf/regions:bytes", "Memory given to the heap.", false, func(s Stats) uint64 { return s.RegionBytes }},
	{"/freestone/tlsf/used:blocks", "Blocks in use.", false, func(s Stats) uint64 { return s.UsedBlocks }},
	{"/freestone/tlsf/used:bytes", "Memory of blocks in use, with headers.", false, func(s Stats) uint64 { return s.UsedBytes }},
	{"/freestone/tlsf/used-peak:bytes", "The peak of used bytes.", false, func(s Stats) uint64 { return s.PeakBytes }},
	{"/freestone/tlsf/free:blocks", "Free blocks.", false, func(s Stats) uint64 { return s.FreeBlocks }},
	{"/freestone/tlsf/free:bytes", "Memory of free blocks.", false, func(s Stats) uint64 { return s.FreeBytes }},
	{"/freestone/tlsf/free-largest:bytes", "The largest free block.", false, func(s Stats) uint64 { return s.LargestFree }},
	{"/freestone/tlsf/overhead:bytes", "Headers, footers and frames.", false, func(s Stats) uint64 { return s.OverheadBytes }},
	{"/freestone/tlsf/allocs:blocks", "Allocations so far.", true, func(s Stats) uint64 { return s.Allocs }},
	{"/freestone/tlsf/frees:blocks", "Frees so far.", true, func(s Stats) uint64 { return s.Frees }},
}

// Metrics is the list of all metrics, in a fixed order.
func Metrics() []Metric { return append([]Metric(nil), metrics...) }

// Read fills in samples by name.
func (s Stats) Read(samples []Sample) {
	for n := range samples {
		samples[n].Value, samples[n].Known = 0, false
		for _, m := range metrics {
			if m.Name == samples[n].Name {
				samples[n].Value, samples[n].Known = m.value(s), true
			}
		}
	}
}
