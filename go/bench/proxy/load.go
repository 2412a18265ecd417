package main

// One run: the origin and the clients, in this process, and the figures of the proxy.

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

	// near: large answers are requested in trains of bursts, with a pause after each train.
	trainBursts = 5
	burstEvery  = 200 * time.Millisecond
	trainPause  = 500 * time.Millisecond

	// far: a busy time of so many large answers a second, then an idle time, Pareto between its shortest and its longest.
	busyRate  = 150
	busyTime  = 2 * time.Second
	idleShape = 1.5
	idleMin   = 1 * time.Second
	idleMax   = 10 * time.Second
	// far: round-trip times are log-normal.
	roundTrip       = 50 * time.Millisecond // the median
	roundTripSpread = 0.5                   // the standard deviation of the logarithm
	firstWindow     = 10 * 1460             // bytes that a sender sends before the first acknowledgement
)

// result has the figures of one run, without its warm-up.
type result struct {
	figures
	P50Ms, P99Ms, P999Ms, MaxMs float64
	Ms                          []float64 // all latencies, in order
	CPUMs                       float64   // of the proxy's process, its start and warm-up included, as the system counts it
}

// arrival is one request.
type arrival struct {
	at        time.Duration
	bytes     int
	roundTrip time.Duration // between the client and the proxy; 0 is next to nothing
}

// arrivals of this many large answers, and of the small ones beside them, which come evenly.
func arrivals(c config, large int, seed uint64) []arrival {
	rng := rand.New(rand.NewPCG(seed, 7))
	var all []arrival
	if c.Model == "far" {
		all = busyTimes(rng, large)
	} else {
		all = bursts(large, c.Burst)
	}
	end := time.Duration(0)
	for n := range all {
		all[n].bytes = int(minLarge * math.Pow(maxLarge/minLarge, rng.Float64()))
		end = all[n].at
	}
	for n := range int(end.Seconds() * float64(c.Small)) {
		all = append(all, arrival{at: time.Duration(float64(n) / float64(c.Small) * 1e9), bytes: smallBytes})
	}
	slices.SortFunc(all, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	return all
}

// bursts are the large requests of the model near.
func bursts(large, burst int) []arrival {
	all, at := make([]arrival, large), time.Duration(0)
	for n := range all {
		all[n].at = at
		if (n+1)%burst == 0 {
			at += burstEvery
		}
		if (n+1)%(burst*trainBursts) == 0 {
			at += trainPause
		}
	}
	return all
}

// busyTimes are the large requests of the model far.
func busyTimes(rng *rand.Rand, large int) []arrival {
	all, at, end := make([]arrival, large), time.Duration(0), busyTime
	for n := range all {
		at += time.Duration(rng.ExpFloat64() / busyRate * 1e9)
		if at > end {
			at = end + min(time.Duration(float64(idleMin)/math.Pow(1-rng.Float64(), 1/idleShape)), idleMax)
			end = at + busyTime
		}
		all[n].at = at
		all[n].roundTrip = time.Duration(float64(roundTrip) * math.Exp(roundTripSpread*rng.NormFloat64()))
	}
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
func measure(c config, kind string, round int) (result, error) {
	origin := newOrigin()
	defer origin.Close()
	self, err := os.Executable()
	if err != nil {
		return result{}, err
	}
	kind, capMiB, ok := strings.Cut(kind, ":")
	if !ok {
		capMiB = fmt.Sprint(c.CapMiB)
	}
	child := exec.Command(self, "-serve="+kind, "-model="+c.Model, "-origin="+origin.URL, fmt.Sprintf("-live=%d", c.LiveMiB),
		fmt.Sprintf("-budget=%d", c.BudgetMiB), "-cap="+capMiB, fmt.Sprintf("-gogc=%d", c.GOGC))
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
	if c.Model == "far" {
		clients.client.Transport = newFarTransport()
	}
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
	return result{after.since(before), at(ms, 0.5), at(ms, 0.99), at(ms, 0.999), at(ms, 1), ms, 0}, err
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
			ms[n], failures[n] = c.fetch(a)
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

// fetch makes a request and reads the answer. It returns how many milliseconds that took, without those in which the
// client itself did not read what was available.
func (c *clients) fetch(a arrival) (float64, error) {
	began := time.Now()
	answer, err := c.client.Get(fmt.Sprintf("%s/%d", c.url, a.bytes))
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	x := c.pieces.get()
	defer c.pieces.put(x)
	got, waited, err := take(answer.Body, a.roundTrip, x)
	if err == nil && got != int64(a.bytes) {
		err = fmt.Errorf("got %d bytes of %d: %s", got, a.bytes, answer.Status)
	}
	return float64(time.Since(began)-waited) / 1e6, err
}

// take reads the body as a distant client receives it: one window in a round trip, twice as much in the next.
func take(body io.Reader, roundTrip time.Duration, x *piece) (got int64, waited time.Duration, err error) {
	if roundTrip == 0 {
		got, err = passInPieces(io.Discard, body, x)
		return got, 0, err
	}
	for window := int64(firstWindow); ; window *= 2 {
		n, err := passInPieces(io.Discard, io.LimitReader(body, window), x)
		got += n
		if err != nil || n < window {
			return got, waited, err
		}
		began := time.Now()
		time.Sleep(roundTrip)
		waited += time.Since(began)
	}
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
