package main

import (
	"bytes"
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestArrivalsAreTheSameForTheSameSeedAndKeepTheirModel(t *testing.T) {
	for _, model := range []string{"near", "far"} {
		c := config{Model: model, Burst: 128, Small: 600}
		all := arrivals(c, 2000, 3)
		if !slices.Equal(all, arrivals(c, 2000, 3)) || slices.Equal(all, arrivals(c, 2000, 4)) {
			t.Errorf("%s: the seed does not decide", model)
		}
		var large []arrival
		for n, a := range all {
			if n > 0 && a.at < all[n-1].at {
				t.Fatalf("%s: arrival %d comes before the one before", model, n)
			}
			if a.bytes != smallBytes {
				large = append(large, a)
			}
			if a.bytes != smallBytes && (a.bytes < minLarge || a.bytes > maxLarge) {
				t.Fatalf("%s: %d bytes", model, a.bytes)
			}
			if (model == "far" && a.bytes != smallBytes) != (a.roundTrip > 0) {
				t.Fatalf("%s: a round trip of %v for %d bytes", model, a.roundTrip, a.bytes)
			}
		}
		if rate := float64(len(all)-len(large)) / all[len(all)-1].at.Seconds(); len(large) != 2000 || math.Abs(rate-600) > 1 {
			t.Errorf("%s: %d large answers, %.1f small ones a second", model, len(large), rate)
		}
	}
}

func TestBusyTimesAndIdleTimesTakeTurns(t *testing.T) {
	all := arrivals(config{Model: "far"}, 30_000, 5)
	var busy, idle []time.Duration
	began := time.Duration(0)
	for n := 1; n < len(all); n++ {
		if gap := all[n].at - all[n-1].at; gap >= idleMin {
			busy, idle = append(busy, all[n-1].at-began), append(idle, gap)
			began = all[n].at
		}
	}
	if len(idle) < 80 || slices.Max(busy) > busyTime || slices.Max(idle) > idleMax+100*time.Millisecond {
		t.Fatalf("%d idle times up to %v, busy times up to %v", len(idle), slices.Max(idle), slices.Max(busy))
	}
	// Half of all Pareto values lie below this.
	if half := time.Duration(float64(idleMin) * math.Pow(2, 1/idleShape)); math.Abs(float64(middle(idle)-half)) > 0.3e9 {
		t.Errorf("half of the idle times are below %v, want %v", middle(idle), half)
	}
}

func middle(all []time.Duration) time.Duration { return slices.Sorted(slices.Values(all))[len(all)/2] }

func TestAFarClientTakesWindowsThatDouble(t *testing.T) {
	for _, c := range []struct{ bytes, trips int }{{0, 0}, {firstWindow - 1, 0}, {firstWindow, 1}, {3*firstWindow - 1, 1}, {1 << 18, 4}} {
		began := time.Now()
		got, waited, err := take(bytes.NewReader(make([]byte, c.bytes)), 10*time.Millisecond, new(piece))
		if err != nil || got != int64(c.bytes) || waited < time.Duration(c.trips)*10*time.Millisecond || waited > time.Since(began) {
			t.Errorf("%d bytes: got %d, waited %v, want %d round trips of 10 ms: %v", c.bytes, got, waited, c.trips, err)
		}
	}
}

func TestAFileOfRoundsGoesOnOnlyWithTheSameComparison(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rounds")
	c, kinds := config{Model: "near"}, []string{"tlsf", "pool"}
	one := measured{c, map[string]result{"pool": {Ms: []float64{1}}, "tlsf": {Ms: []float64{2}}}}
	for n := range 3 {
		if all, err := readRounds(c, kinds, path); err != nil || len(all) != n {
			t.Fatalf("%d rounds, want %d: %v", len(all), n, err)
		}
		if err := addRound(one, path); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := readRounds(config{Model: "far"}, kinds, path); err == nil {
		t.Error("another model was taken")
	}
	if _, err := readRounds(c, []string{"tlsf:6", "pool"}, path); err == nil {
		t.Error("other buffers were taken")
	}
}
