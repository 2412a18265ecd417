package main

// The proxy, in a process of its own. Its first line of output is the address that it listens on; it ends when its input ends.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"time"
)

// connections is the maximum from the clients to the proxy, and from it to the origin. A request waits for one.
const connections = 400

func serve(c config, kind, origin string) error {
	live := makeLive(c.LiveMiB << 20)
	buffers, err := newSource(c, kind)
	if err != nil {
		return err
	}
	limit := c.BudgetMiB << 20
	if buffers != nil {
		limit -= buffers.offHeapBytes()
	}
	debug.SetGCPercent(c.GOGC)
	debug.SetMemoryLimit(int64(limit))

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	p := &handler{origin: origin, upstream: http.Client{Transport: newTransport()}, buffers: buffers}
	server := &http.Server{Handler: p}
	if c.Model == "far" {
		server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
			_ = conn.(*net.TCPConn).SetWriteBuffer(farWriteBuffer) // on an error the system's own size stays
			return ctx
		}
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	fmt.Println("http://" + listener.Addr().String())
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	if err := server.Shutdown(context.Background()); err != nil { // waits for buffers to be put back
		return err
	}
	runtime.KeepAlive(live)
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	if buffers == nil {
		return nil
	}
	return buffers.close()
}

// handler is the proxy.
type handler struct {
	origin   string
	upstream http.Client
	buffers  source // nil: answers are forwarded in pieces
	pieces   pieces

	held, peak atomic.Int64 // bytes in use
}

func (p *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := error(nil)
	if r.URL.Path == "/figures" {
		err = json.NewEncoder(w).Encode(p.figures())
	} else {
		err = p.pass(w, r)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
	}
}

// pass reads the origin's answer completely and forwards it.
func (p *handler) pass(w http.ResponseWriter, r *http.Request) error {
	if err := describe(io.Discard, r, time.Now()); err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, p.origin+r.URL.Path, nil)
	if err != nil {
		return err
	}
	answer, err := p.upstream.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	w.Header().Set("Content-Length", fmt.Sprint(answer.ContentLength))
	if answer.ContentLength < minLarge {
		_, err = passInPieces(w, answer.Body, new(piece))
		return err
	}
	if p.buffers == nil {
		x := p.pieces.get()
		defer p.pieces.put(x)
		_, err = passInPieces(w, answer.Body, x)
		return err
	}
	buffer, err := p.buffers.get(r.Context(), int(answer.ContentLength))
	if err != nil {
		return err
	}
	held := p.held.Add(answer.ContentLength)
	defer p.held.Add(-answer.ContentLength)
	for peak := p.peak.Load(); held > peak && !p.peak.CompareAndSwap(peak, held); {
		peak = p.peak.Load()
	}
	if _, err = io.ReadFull(answer.Body, buffer); err == nil {
		_, err = w.Write(buffer)
	}
	return errors.Join(err, p.buffers.put(buffer))
}

// passInPieces asks neither side to copy by itself: net/http would make a buffer.
func passInPieces(w io.Writer, body io.Reader, x *piece) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{body}, x[:])
}

// newTransport keeps its connections.
func newTransport() *http.Transport {
	return &http.Transport{MaxConnsPerHost: connections, MaxIdleConnsPerHost: connections, DisableCompression: true}
}

// Socket buffers of the model far: a sender buffers the data in flight, not the megabytes that Linux would between processes.
const (
	farWriteBuffer = 64 << 10
	farReadBuffer  = 32 << 10
)

// newFarTransport is newTransport for clients that leave unread data in the proxy.
func newFarTransport() *http.Transport {
	t := newTransport()
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(farReadBuffer)
		}
		return conn, err
	}
	return t
}

// figures of the proxy's process since it began.
type figures struct {
	GCCPUMs, GCCycles, PauseMs, AllocatedMiB, PeakHeldMiB, PeakRSSMiB float64
}

func (p *handler) figures() figures {
	samples := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(samples)
	var stats debug.GCStats
	debug.ReadGCStats(&stats)
	return figures{
		GCCPUMs:      samples[0].Value.Float64() * 1e3,
		GCCycles:     float64(samples[1].Value.Uint64()),
		AllocatedMiB: float64(samples[2].Value.Uint64()) / (1 << 20),
		PauseMs:      float64(stats.PauseTotal) / 1e6,
		PeakHeldMiB:  float64(p.peak.Load()) / (1 << 20),
		PeakRSSMiB:   peakRSSMiB(),
	}
}

// since is the difference of two readings.
func (f figures) since(before figures) figures {
	f.GCCPUMs -= before.GCCPUMs
	f.GCCycles -= before.GCCycles
	f.PauseMs -= before.PauseMs
	f.AllocatedMiB -= before.AllocatedMiB
	return f
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
