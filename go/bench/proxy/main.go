// Proxy measures buffers where they matter: an HTTP proxy that reads each answer of its origin whole, 64 KiB to 1 MiB, and
// then passes it on, as buffering proxies do, so that a slow client does not hold the origin. The buffers come from make, from
// sync.Pool, or from a sharded off-heap TLSF with a hard cap.
//
//	go run ./bench/proxy                     all of them, in interleaved rounds, and whether the bars hold
//	go run ./bench/proxy -serve=tlsf         the proxy alone; -h lists the rest
//
//	this process                                    a process of its own for each run
//	clients ── requests, open loop ──▶              proxy ── live heap, metadata, buffers
//	origin  ◀───────────────────────────────────────  │
//
// What it assumes, the same for all kinds of buffers:
//
//   - Beside the buffers there is a live heap of small linked objects (-live), such as sessions or a cache: each collection
//     marks it. It is what a collection costs; buffers hold no pointers.
//   - Memory: the process has a budget (-budget), as in a container: twice the live heap, which is what GOGC=100 would take
//     without buffers. GOGC is off, and GOMEMLIMIT is the budget less what lies off the heap: all of the region, touched or
//     not. So memory that buffers take is memory that garbage cannot use, whatever they come from. (-gogc sets GOGC too.)
//   - Sizes are spread evenly over their logarithm. sync.Pool has one pool for each power of two. TLSF has the size asked for.
//   - Large answers are asked for in bursts (-burst, at once), five bursts in a second, then a pause of half a second. Small
//     answers, without a buffer, come at an even rate all the time (-small). Every kind gets the same requests at the same
//     times; the next is sent whether or not the last was answered.
//   - Clients are fast, as within a data centre or behind another proxy. So buffers are held only while the processors work,
//     and the cap (-cap) is sized for them, not for the burst: 6 MiB for each of two. At the cap a request waits for its turn.
//   - Each request leaves garbage as in a server with logs and traces (garbage.go), about 20 KiB, beside net/http's; a small
//     one also the 32 KiB with which net/http/httputil's ReverseProxy copies an answer.
//   - Contents are touched by the kernel alone: written once by read, read once by write.
//
// Latency is from the request to the answer's last byte, of the large answers. "none" is the floor: the same proxy, which
// passes answers on in pieces and has no buffers to speak of. "capped" is sync.Pool behind a queue that holds it to the same
// cap, which no sync.Pool has by itself: it tells what the cap does from what the heap does. GC CPU is
// /cpu/classes/gc/total of runtime/metrics, for the proxy's process. The runtime takes it from the clock, so on a busy machine
// it counts time in which the collector did not run; the number of cycles does not, nor does "CPU", what the system says the
// process took. But on a busy machine more answers pile up, and cycles with them: measure on a quiet one. A bar holds when the whole interval lies below 1.
//
// What it does not show: slow clients, for whom buffers are held as long as they read: then the region must be sized for the
// peak, sync.Pool gives back what is idle, and which of them collects less depends on how even the load is. Nor TLS, HTTP/2,
// many idle connections. RSS is Linux's VmHWM.
package main

import (
	"flag"
	"fmt"
	"os"
)

// config is one run. Sizes in MiB, rates per second.
type config struct {
	Buffers            string
	Requests           int
	Burst, Small       int
	LiveMiB, BudgetMiB int
	CapMiB, GOGC       int
}

func main() {
	var c config
	flag.StringVar(&c.Buffers, "serve", "", "be the proxy with these buffers: make, pool, capped, tlsf or none")
	flag.IntVar(&c.Requests, "requests", 10000, "large answers in a run")
	flag.IntVar(&c.Burst, "burst", 128, "large answers asked for at once")
	flag.IntVar(&c.Small, "small", 600, "small answers a second")
	flag.IntVar(&c.LiveMiB, "live", 64, "MiB of small linked objects in Go's heap")
	flag.IntVar(&c.BudgetMiB, "budget", 128, "MiB that the process may use")
	flag.IntVar(&c.CapMiB, "cap", 12, "MiB that buffers may take: tlsf's region, and what capped gives out")
	flag.IntVar(&c.GOGC, "gogc", -1, "GOGC of the proxy; negative is off")
	origin := flag.String("origin", "", "the origin's URL, for -serve")
	rounds := flag.Int("rounds", 5, "rounds of the comparison")
	flag.Parse()
	var err error
	if c.Buffers == "" {
		err = compare(c, *rounds)
	} else {
		err = serve(c, *origin)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "proxy:", err)
		os.Exit(1)
	}
}
