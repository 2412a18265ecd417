package main

import (
	"math"
	"testing"
)

func TestAnIntervalIsTheNarrowestThatStillHasItsConfidence(t *testing.T) {
	for _, c := range []struct {
		n          int
		cut        int
		confidence float64
	}{
		{1, 0, 0}, {2, 0, 0.5}, {5, 0, 0.9375}, {7, 0, 1 - 2.0/128}, {8, 1, 1 - 18.0/256}, {11, 2, 1 - 2*67.0/2048},
	} {
		var all []float64
		for k := range c.n {
			all = append(all, float64(c.n-k))
		}
		between, confidence := interval(all)
		if between != [2]float64{float64(1 + c.cut), float64(c.n - c.cut)} || math.Abs(confidence-c.confidence) > 1e-12 {
			t.Errorf("%d values: %v with %v, want %d cut off at each end with %v", c.n, between, confidence, c.cut, c.confidence)
		}
	}
}
