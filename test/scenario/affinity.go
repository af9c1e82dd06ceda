package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// expectSessionAffinity keeps each client with the Pod that it met first.
func expectSessionAffinity(w *World, all clients, names []string) {
	met := map[string]string{}
	for range 2 {
		for name, a := range w.traffic().each(all, "-n", "20", "http://sticky/hostname") {
			if len(a.failed) > 0 || len(a.by) != 1 || !slices.Contains(names, a.from()[0]) {
				w.Errorf("%s: %v, want one of %v for all requests", name, a, names)
				continue
			}
			if before := met[name]; before != "" && before != a.from()[0] {
				w.Errorf("%s met %s first and %v now", name, before, a)
			}
			met[name] = a.from()[0]
		}
	}
}

// timeouts are how long a client keeps its Pod at each port of these Services. A slow machine asks too seldom within
// two seconds: there the second Service is asked.
var timeouts = []struct {
	service string
	timeout time.Duration
}{{"brief", 2 * time.Second}, {"patient", 15 * time.Second}}

const (
	// affinityScript asks each port of an address, time and again within a timeout, and once more after it. It prints
	// the port, when the request began, how often who answered, and when it had ended.
	affinityScript = `
ask() {
  for port in 80 81 82 83; do
    echo $port $(date +%%s%%N) $(requests http://%s:$port/hostname) $(date +%%s%%N)
  done
}
for again in 1 2 3 4 5; do ask; sleep %.2f; done
sleep %.2f
ask`
	// enoughRenewed is how many ports keep their Pods beyond the timeout, if no request renews the time and each Pod
	// that comes next has an even chance: once in 2^10 times.
	enoughRenewed = 10
)

// expectAffinityTimeout keeps each client with its Pod for the timeout of the Service, which each request renews,
// and no longer.
func expectAffinityTimeout(w *World, all clients, family int) {
	var sum stay
	for _, s := range timeouts {
		seconds := s.timeout.Seconds()
		script := fmt.Sprintf(affinityScript, w.service(s.service).Spec.ClusterIPs[family], 0.35*seconds, 0.75*seconds)
		for range 2 {
			for client, requests := range runInClients(w, all, script) {
				k := judgeStay(requests, s.timeout)
				for _, moved := range k.moved {
					w.Errorf("%s: %s", client, moved)
				}
				sum.renewed, sum.freed = sum.renewed+k.renewed, sum.freed+k.freed
			}
			if w.Failed() || sum.renewed >= enoughRenewed && sum.freed > 0 {
				return
			}
		}
	}
	w.Errorf("%d ports kept their Pod beyond the timeout, as requests came within it, want %d or more; "+
		"%d got another Pod after it, want 1 or more", sum.renewed, enoughRenewed, sum.freed)
}

// runInClients runs the script in all clients at once.
func runInClients(w *World, all clients, script string) map[string][]asked {
	w.Helper()
	results := make([]Result, len(all))
	var group sync.WaitGroup
	for i, client := range all {
		group.Go(func() { results[i] = w.TryKubectl("", "exec", client, "--", "sh", "-c", script) })
	}
	group.Wait()
	by := map[string][]asked{}
	for i, r := range results {
		requests, err := parseAsked(r.Stdout)
		if err != nil || r.Code != 0 {
			w.Fatalf("%s: status %d, %v\n%s%s", all[i], r.Code, err, r.Stdout, r.Stderr)
		}
		by[all[i]] = requests
	}
	return by
}

// asked is one request of a client, with the client's clock.
type asked struct {
	port         string
	began, ended time.Time
	by           string // who answered
}

func parseAsked(out string) (all []asked, err error) {
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) != 5 || fields[2] != "1" {
			return nil, fmt.Errorf("%q is not a request that was answered", line)
		}
		r := asked{port: fields[0], by: fields[3]}
		for at, text := range map[*time.Time]string{&r.began: fields[1], &r.ended: fields[4]} {
			nanoseconds, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			*at = time.Unix(0, nanoseconds)
		}
		all = append(all, r)
	}
	return all, nil
}

// stay is what requests show of a timeout.
type stay struct {
	// moved are requests that were answered by another though they came within the timeout.
	moved []string
	// renewed counts the ports whose Pod still answered beyond the timeout of the first request, each request having
	// come within that of the one before.
	renewed int
	// freed counts the requests that were answered by another after the timeout.
	freed int
}

// judgeStay compares each request with the one before at its port. The proxy sees a request between its beginning and
// its end, and the kernel's clock is not exact: what may have come before or after the timeout shows nothing.
func judgeStay(all []asked, timeout time.Duration) stay {
	const inexact = 100 * time.Millisecond
	var k stay
	first, last, counted := map[string]asked{}, map[string]asked{}, map[string]bool{}
	for _, r := range all {
		before, again := last[r.port]
		last[r.port] = r
		within := again && r.ended.Sub(before.began) < timeout-inexact
		switch {
		case within && r.by != before.by:
			k.moved = append(k.moved, fmt.Sprintf("port %s: %s answered, and %s at most %v later", r.port, before.by,
				r.by, r.ended.Sub(before.began)))
		case within && !counted[r.port] && r.began.Sub(first[r.port].ended) > timeout+inexact:
			counted[r.port] = true
			k.renewed++
		case again && r.began.Sub(before.ended) > timeout+inexact && r.by != before.by:
			k.freed++
		}
		if !within {
			first[r.port] = r
		}
	}
	return k
}
