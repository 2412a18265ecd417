package main

// One run: origin, proxy and clients in this process, and what they cost.

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type config struct {
	Buffers           string
	Requests, Clients int
	LiveMiB, CapMiB   int
}

// result is what one run cost. GC figures are those of the measured part only.
type result struct {
	config
	PerSecond                   float64
	P50Ms, P99Ms, P999Ms, MaxMs float64
	GCCPUMs, GCCycles, PauseMs  float64
	PeakRSSMiB                  float64
}

const (
	minBody = 64 << 10
	maxBody = 1 << 20
)

func run(c config) (result, error) {
	live := makeLive(c.LiveMiB << 20)
	buffers, err := newSource(c)
	if err != nil {
		return result{}, err
	}
	body := make([]byte, maxBody)
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &n); err != nil || n > len(body) {
			http.Error(w, "no such body", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(n))
		_, _ = w.Write(body[:n]) // a client that has gone shows up as its own error
	}))
	defer origin.Close()
	upstream := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: c.Clients, DisableCompression: true}}
	proxy := httptest.NewServer(&handler{origin.URL, upstream, buffers})
	defer proxy.Close() // the second time it does nothing

	if _, err := load(c, proxy.URL, c.Requests/10); err != nil { // warm-up
		return result{}, err
	}
	runtime.GC()
	before, start := readGC(), time.Now()
	latencies, err := load(c, proxy.URL, c.Requests)
	if err != nil {
		return result{}, err
	}
	elapsed, after := time.Since(start), readGC()
	proxy.Close() // waits for handlers that have answered but not yet put their buffer back
	runtime.KeepAlive(live)
	r := result{config: c, PerSecond: float64(c.Requests) / elapsed.Seconds(), PeakRSSMiB: peakRSSMiB()}
	r.GCCPUMs, r.GCCycles, r.PauseMs = after.cpuMs-before.cpuMs, after.cycles-before.cycles, after.pauseMs-before.pauseMs
	r.P50Ms, r.P99Ms, r.P999Ms, r.MaxMs = at(latencies, 0.5), at(latencies, 0.99), at(latencies, 0.999), at(latencies, 1)
	return r, buffers.close()
}

// handler is the proxy.
type handler struct {
	origin   string
	upstream *http.Client
	buffers  source
}

func (p *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := p.pass(w, r); err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
	}
}

// pass reads the origin's answer whole and passes it on.
func (p *handler) pass(w http.ResponseWriter, r *http.Request) error {
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, p.origin+r.URL.Path, nil)
	if err != nil {
		return err
	}
	answer, err := p.upstream.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	buffer, err := p.buffers.get(r.Context(), int(answer.ContentLength))
	if err != nil {
		return err
	}
	_, err = io.ReadFull(answer.Body, buffer)
	if err == nil {
		w.Header().Set("Content-Length", fmt.Sprint(len(buffer)))
		_, err = w.Write(buffer)
	}
	return errors.Join(err, p.buffers.put(buffer))
}

// load sends requests from c.Clients goroutines and returns the sorted latencies in milliseconds.
func load(c config, url string, requests int) ([]float64, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: c.Clients, DisableCompression: true}}
	defer client.CloseIdleConnections()
	latencies := make([]float64, requests)
	failures := make([]error, c.Clients)
	var next atomic.Int64
	var group sync.WaitGroup
	for id := range c.Clients {
		group.Add(1)
		go func() {
			defer group.Done()
			rng := rand.New(rand.NewPCG(uint64(id), 7))
			scratch := make([]byte, 64<<10)
			for n := next.Add(1) - 1; n < int64(requests); n = next.Add(1) - 1 {
				start := time.Now()
				if failures[id] = fetch(client, url, minBody+rng.IntN(maxBody-minBody+1), scratch); failures[id] != nil {
					return
				}
				latencies[n] = float64(time.Since(start)) / 1e6
			}
		}()
	}
	group.Wait()
	slices.Sort(latencies)
	return latencies, errors.Join(failures...)
}

func fetch(client *http.Client, url string, n int, scratch []byte) error {
	answer, err := client.Get(fmt.Sprintf("%s/%d", url, n))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	got, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, answer.Body, scratch)
	if err == nil && got != int64(n) {
		err = fmt.Errorf("got %d bytes of %d: %s", got, n, answer.Status)
	}
	return err
}

// at is the quantile q of sorted values.
func at(sorted []float64, q float64) float64 { return sorted[int(q*float64(len(sorted)-1))] }

type node struct {
	left, right *node
	_           [48]byte
}

// makeLive is a tree of small objects of this many bytes in all.
func makeLive(bytes int) *node {
	if bytes < 64 {
		return nil
	}
	return &node{left: makeLive((bytes - 64) / 2), right: makeLive((bytes - 64) / 2)}
}

type gcFigures struct{ cpuMs, cycles, pauseMs float64 }

func readGC() gcFigures {
	samples := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(samples)
	var stats debug.GCStats
	debug.ReadGCStats(&stats)
	return gcFigures{samples[0].Value.Float64() * 1e3, float64(samples[1].Value.Uint64()), float64(stats.PauseTotal) / 1e6}
}

// peakRSSMiB is Linux's VmHWM; 0 where there is none.
func peakRSSMiB() float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	var kib float64
	if _, err := fmt.Sscanf(rest, "%f", &kib); err != nil {
		return 0
	}
	return kib / 1024
}
