package main

// One run: the origin and the clients, in this process, and what the proxy cost them.

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	minLarge   = 64 << 10
	maxLarge   = 1 << 20
	smallBytes = 2 << 10

	// Large answers are asked for in trains of bursts, with a pause behind each train.
	trainBursts = 5
	burstEvery  = 200 * time.Millisecond
	trainPause  = 500 * time.Millisecond
)

// result is what one run cost. The figures are those of the measured part only.
type result struct {
	figures
	P50Ms, P99Ms, P999Ms, MaxMs float64
	CPUMs                       float64 // of the proxy's process, its start and warm-up included, as the system counts it
}

// arrival is one request.
type arrival struct {
	at    time.Duration
	bytes int
}

// arrivals of this many large answers in bursts, and of the small ones between them, which come evenly.
func arrivals(c config, large int, seed uint64) []arrival {
	rng := rand.New(rand.NewPCG(seed, 7))
	var all []arrival
	at := time.Duration(0)
	for n := range large {
		all = append(all, arrival{at, int(minLarge * math.Pow(maxLarge/minLarge, rng.Float64()))})
		if (n+1)%c.Burst == 0 {
			at += burstEvery
		}
		if (n+1)%(c.Burst*trainBursts) == 0 {
			at += trainPause
		}
	}
	for n := range int(at.Seconds() * float64(c.Small)) {
		all = append(all, arrival{time.Duration(float64(n) / float64(c.Small) * 1e9), smallBytes})
	}
	slices.SortFunc(all, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	return all
}

// newOrigin answers /N with N bytes.
func newOrigin() *httptest.Server {
	body := make([]byte, maxLarge)
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &n); err != nil || n > len(body) {
			http.Error(w, "no such body", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(n))
		_, _ = w.Write(body[:n]) // a client that has gone shows up as its own error
	}))
}

// measure starts a proxy with these buffers, sends it the requests of this round, and stops it.
func measure(c config, round int) (result, error) {
	origin := newOrigin()
	defer origin.Close()
	self, err := os.Executable()
	if err != nil {
		return result{}, err
	}
	child := exec.Command(self, "-serve="+c.Buffers, "-origin="+origin.URL, fmt.Sprintf("-live=%d", c.LiveMiB),
		fmt.Sprintf("-budget=%d", c.BudgetMiB), fmt.Sprintf("-cap=%d", c.CapMiB), fmt.Sprintf("-gogc=%d", c.GOGC))
	child.Stderr = os.Stderr
	input, err := child.StdinPipe()
	if err != nil {
		return result{}, err
	}
	output, err := child.StdoutPipe()
	if err != nil {
		return result{}, err
	}
	if err := child.Start(); err != nil {
		return result{}, err
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	r := result{}
	if err == nil {
		r, err = drive(c, strings.TrimSpace(line), uint64(round))
	}
	err = errors.Join(err, input.Close(), child.Wait())
	r.CPUMs = float64(child.ProcessState.UserTime()+child.ProcessState.SystemTime()) / 1e6
	return r, err
}

// drive warms the proxy up, then measures.
func drive(c config, url string, seed uint64) (result, error) {
	clients := &clients{url: url}
	clients.client.Transport = newTransport()
	defer clients.client.CloseIdleConnections()
	if _, err := clients.send(arrivals(c, c.Requests/10, seed+1<<32)); err != nil {
		return result{}, err
	}
	before, err := clients.figures()
	if err != nil {
		return result{}, err
	}
	ms, err := clients.send(arrivals(c, c.Requests, seed))
	if err != nil {
		return result{}, err
	}
	after, err := clients.figures()
	return result{after.since(before), at(ms, 0.5), at(ms, 0.99), at(ms, 0.999), at(ms, 1), 0}, err
}

type clients struct {
	client http.Client
	url    string
	pieces pieces
}

// send sends each request when its time has come, and returns the latencies of the large answers in order, in milliseconds.
func (c *clients) send(all []arrival) ([]float64, error) {
	ms, failures := make([]float64, len(all)), make([]error, len(all))
	var group sync.WaitGroup
	began := time.Now()
	for n, a := range all {
		time.Sleep(a.at - time.Since(began))
		group.Add(1)
		go func() {
			defer group.Done()
			ms[n], failures[n] = c.fetch(a.bytes)
		}()
	}
	group.Wait()
	var large []float64
	for n, a := range all {
		if a.bytes >= minLarge {
			large = append(large, ms[n])
		}
	}
	slices.Sort(large)
	if failed := slices.IndexFunc(failures, func(err error) bool { return err != nil }); failed >= 0 {
		return nil, failures[failed]
	}
	return large, nil
}

// fetch asks for n bytes and takes them. It returns how many milliseconds that took.
func (c *clients) fetch(n int) (float64, error) {
	began := time.Now()
	answer, err := c.client.Get(fmt.Sprintf("%s/%d", c.url, n))
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	x := c.pieces.get()
	defer c.pieces.put(x)
	got, err := passInPieces(io.Discard, answer.Body, x)
	if err == nil && got != int64(n) {
		err = fmt.Errorf("got %d bytes of %d: %s", got, n, answer.Status)
	}
	return float64(time.Since(began)) / 1e6, err
}

func (c *clients) figures() (f figures, err error) {
	answer, err := c.client.Get(c.url + "/figures")
	if err != nil {
		return f, err
	}
	defer answer.Body.Close()
	return f, json.NewDecoder(answer.Body).Decode(&f)
}

// at is the quantile q of sorted values.
func at(sorted []float64, q float64) float64 { return sorted[int(q*float64(len(sorted)-1))] }
