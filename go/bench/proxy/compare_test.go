package main

import (
	"math"
	"math/rand/v2"
	"slices"
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

func TestAPooledPercentileIsThatOfAllAnswersTogether(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		var results []result
		var all []float64
		for range 1 + random.IntN(5) {
			ms := make([]float64, 1+random.IntN(400))
			for k := range ms {
				ms[k] = random.ExpFloat64()
			}
			slices.Sort(ms)
			results = append(results, result{Ms: ms})
			all = append(all, ms...)
		}
		slices.Sort(all)
		for _, q := range []float64{0.99, 0.999} {
			if got := pooled(results, every(len(results)), q); got != at(all, q) {
				t.Errorf("%d rounds, %v: %v, want %v", len(results), q, got, at(all, q))
			}
		}
	}
}

func TestThePooledIntervalTellsADifferenceFromNone(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	kind := func(factor float64) (results []result) {
		for range 20 {
			ms := make([]float64, 1000)
			for k := range ms {
				ms[k] = factor * (10 + random.ExpFloat64())
			}
			slices.Sort(ms)
			results = append(results, result{Ms: ms})
		}
		return results
	}
	if between := pooledInterval(kind(1), kind(1), 0.999); between[0] > 1 || between[1] < 1 {
		t.Errorf("the same twice: %v leaves 1 out", between)
	}
	if between := pooledInterval(kind(0.7), kind(1), 0.999); between[1] >= 1 || between[0] > 0.7 || between[1] < 0.7 {
		t.Errorf("0.7 times as long: %v", between)
	}
}
