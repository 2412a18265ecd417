// Proxy measures kinds of buffers in an HTTP proxy that reads each answer of its origin completely, 64 KiB to 1 MiB, and
// then forwards it, so that a slow client does not block the origin. That is how nginx ("By default NGINX buffers responses from
// proxied servers", its admin guide) and Traefik's Buffering middleware work (up to 1 MiB of an answer in memory, any number at
// once: DefaultMemBodyBytes in vulcand/oxy). The buffers come from make, from sync.Pool, or from an off-heap TLSF with a hard cap.
//
//	go run ./bench/proxy                     all of them, in interleaved rounds, and whether the goals are met
//	go run ./bench/proxy -kinds pool,tlsf:4,tlsf:8 -out FILE     several caps, in several runs: FILE keeps the rounds
//	go run ./bench/proxy -serve=tlsf         the proxy alone; -h lists the rest
//
//	this process                                    a process of its own for each run
//	clients ── requests, open loop ──▶              proxy ── live heap, metadata, buffers
//	origin  ◀───────────────────────────────────────  │
//
// Its assumptions, the same for all kinds of buffers; those without a source are choices:
//
//   - Beside the buffers there is a live heap of small linked objects (-live), such as sessions or a cache: each collection
//     marks it. That is the cost of a collection; buffers contain no pointers.
//   - Memory: the process has a budget (-budget), as in a container. GOGC is off, and GOMEMLIMIT is the budget less what is off
//     the heap: all of the region, touched or not. So buffers of every kind reduce the memory that garbage can
//     use. Proxies do set GOMEMLIMIT from their container's limit (Caddy since its pull request 6809). The budget is
//     twice the live heap, as GOGC=100 would allow without buffers; in the model far, the cap is added. (-gogc sets GOGC too.)
//   - Sizes are spread evenly over their logarithm. sync.Pool has one pool for each power of two: a single pool for all sizes, as
//     in Caddy's reverse_proxy, ends up with buffers of the largest size only. TLSF has the requested size, and one lock: a
//     buffer's life is ten thousand times as long as the lock is held, and shards would split the cap. ("sharded" has them.)
//   - Small answers, without a buffer, come at an even rate all the time (-small). Every kind gets the same requests at the
//     same times; the next is sent whether or not the last was answered.
//   - Model near: large answers are requested in bursts (-burst, at once), five bursts in a second, then a pause of half a
//     second. Clients read answers at once, as within a data centre or behind another proxy: buffers are held only while
//     the processors work.
//   - Model far: 2 seconds of 150 large answers a second, arrivals Poisson; then nothing for 1 to 10 seconds, Pareto with shape
//     1.5. Source of such heavy tails: Crovella, Bestavros, "Self-similarity in World Wide Web traffic", 1997. A client reads
//     ten segments, then twice as much in each round trip, as slow start lets a sender send (RFC 6928, RFC 5681); round trips are
//     log-normal with a median of 50 ms. Socket buffers are small, because the loopback's would hold whole answers.
//   - The cap (-cap): at it, requests wait in order. Far, 32 MiB: one and a half times the most that was ever held, so
//     that no request waits. Near, a request that waits for a buffer would wait for a processor anyway: 6 MiB, three of the largest
//     for each of two processors, one being filled, one being sent, one next; -kinds=tlsf:4,tlsf:8 measures other caps.
//   - Each request leaves garbage as in a server with logs and traces (garbage.go), about 20 KiB, beside net/http's; a small
//     one also the 32 KiB with which net/http/httputil's ReverseProxy copies an answer.
//   - Only the kernel accesses the contents: read writes them once, write reads them once. Clients and origin do not collect.
//
// Latency is from the request to the answer's last byte, of the large answers, less the round trips that the client waits by
// itself. "none" is the lower bound: the same proxy, which forwards answers in small pieces. "capped" is
// sync.Pool behind a queue that limits it to the same cap, which sync.Pool does not have: it separates the effect of the cap from
// that of the heap. GC CPU is /cpu/classes/gc/total of runtime/metrics, for the proxy's process. The runtime takes it from
// the clock, so on a busy machine it includes time in which the collector did not run; the number of cycles does not, nor does
// "CPU", the processor time of the process. But on a busy machine more answers pile up, and cycles with them: measure on
// a quiet one. A goal is met when the whole interval lies below 1.
//
// Not measured: TLS, HTTP/2, many idle connections. RSS is Linux's VmHWM.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
)

// loadMemory is the memory that the clients and the origin may use before they collect.
const loadMemory = 1 << 30

// config is one comparison. Sizes in MiB, rates per second.
type config struct {
	Model              string
	Requests           int
	Burst, Small       int
	LiveMiB, BudgetMiB int
	CapMiB, GOGC       int
}

func main() {
	var c config
	flag.StringVar(&c.Model, "model", "near", "near: bursts of clients close by; far: busy and idle times, clients far away")
	flag.IntVar(&c.Requests, "requests", 4000, "large answers in a run")
	flag.IntVar(&c.Burst, "burst", 128, "near: large answers requested at once")
	flag.IntVar(&c.Small, "small", 600, "small answers a second")
	flag.IntVar(&c.LiveMiB, "live", 64, "MiB of small linked objects in Go's heap")
	flag.IntVar(&c.BudgetMiB, "budget", 0, "MiB that the process may use; 0 is twice the live heap, far: and the cap")
	flag.IntVar(&c.CapMiB, "cap", 0, "MiB that buffers may take: tlsf's region, and what capped gives out; 0 is 6, far: 32")
	flag.IntVar(&c.GOGC, "gogc", -1, "GOGC of the proxy; negative is off")
	kind := flag.String("serve", "", "be the proxy with these buffers: make, pool, capped, tlsf, sharded or none")
	origin := flag.String("origin", "", "the origin's URL, for -serve")
	kinds := flag.String("kinds", "make,pool,capped,tlsf,none", "what to compare; tlsf:6 is tlsf with a cap of 6 MiB")
	rounds := flag.Int("rounds", 5, "rounds of the comparison")
	out := flag.String("out", "", "file of rounds to add to: the report is about all of them")
	flag.Parse()
	err := c.complete()
	switch {
	case err != nil:
	case *kind == "":
		debug.SetGCPercent(-1) // so that the load's own collector does not run
		debug.SetMemoryLimit(loadMemory)
		err = compare(c, strings.Split(*kinds, ","), *rounds, *out)
	default:
		err = serve(c, *kind, *origin)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "proxy:", err)
		os.Exit(1)
	}
}

// complete fills in the settings that follow from the model.
func (c *config) complete() error {
	if c.Model != "near" && c.Model != "far" {
		return fmt.Errorf("no model %q; use near or far", c.Model)
	}
	if c.Burst < 1 || c.Requests < 1 {
		return fmt.Errorf("bursts of %d and %d requests in all; request at least one", c.Burst, c.Requests)
	}
	if c.CapMiB == 0 {
		c.CapMiB = map[string]int{"near": 6, "far": 32}[c.Model]
	}
	if c.BudgetMiB == 0 {
		c.BudgetMiB = 2 * c.LiveMiB
		if c.Model == "far" {
			c.BudgetMiB += c.CapMiB
		}
	}
	return nil
}
