package applet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// nslookup prints the records of one type that a name has: nslookup [-type=TYPE] NAME [SERVER]. Short names mean what
// the search paths of resolv.conf make of them. TYPE is A (IPv4 and IPv6 addresses), CNAME, PTR, SRV or TXT.
func nslookup(args []string, s Streams) error {
	kind := "A"
	if len(args) > 0 && strings.HasPrefix(args[0], "-type=") {
		kind, args = strings.ToUpper(strings.TrimPrefix(args[0], "-type=")), args[1:]
	}
	if len(args) == 0 || len(args) > 2 {
		return errors.New("usage: nslookup [-type=A|CNAME|PTR|SRV|TXT] NAME [SERVER]")
	}
	resolver := &net.Resolver{PreferGo: true}
	if len(args) == 2 {
		resolver.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(args[1], "53"))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	records, err := lookup(ctx, resolver, kind, args[0])
	if err != nil {
		return err
	}
	slices.Sort(records)
	for _, record := range records {
		fmt.Fprintln(s.Out, record)
	}
	return nil
}

func lookup(ctx context.Context, resolver *net.Resolver, kind, name string) (records []string, err error) {
	switch kind {
	case "A":
		return resolver.LookupHost(ctx, name)
	case "CNAME":
		record, err := resolver.LookupCNAME(ctx, name)
		return []string{record}, err
	case "PTR":
		return resolver.LookupAddr(ctx, name)
	case "TXT":
		return resolver.LookupTXT(ctx, name)
	case "SRV":
		_, services, err := resolver.LookupSRV(ctx, "", "", name)
		for _, service := range services {
			records = append(records, fmt.Sprintf("%s:%d", service.Target, service.Port))
		}
		return records, err
	}
	return nil, fmt.Errorf("%q is no type of records that is known, only A, CNAME, PTR, SRV and TXT are", kind)
}

// requests asks one URL again and again and prints how often each answer came, the most frequent last: requests [-n
// COUNT] [-t SECONDS] [-c PARALLEL] [-w SECONDS] [-u] TARGET. Each request has a connection of its own. With -u the
// target is HOST:PORT, and what is sent is one datagram. -w is how long one answer may take. A request without an
// answer, or with one of status 400 or above, means failure in the end.
func requests(args []string, s Streams) error {
	set, args, err := options(args, "u", "ntcw")
	if err != nil {
		return err
	}
	if len(args) != 1 {
		return errors.New("usage: requests [-n COUNT] [-t SECONDS] [-c PARALLEL] [-w SECONDS] [-u] TARGET")
	}
	numbers := map[rune]int{'n': 1, 't': 0, 'c': 1, 'w': 3}
	for option, text := range set {
		if option == 'u' {
			continue
		}
		if numbers[option], err = strconv.Atoi(text); err != nil || numbers[option] < 1 {
			return fmt.Errorf("-%c: %q is not a number of 1 or more", option, text)
		}
	}
	limit := time.Duration(numbers['w']) * time.Second
	ask := func() (string, error) { return askHTTP(args[0], limit) }
	if set['u'] != "" {
		ask = func() (string, error) { return askUDP(args[0], limit) }
	}
	t := &tally{left: numbers['n'], answers: map[string]int{}, failures: map[string]int{}}
	if numbers['t'] > 0 {
		t.until = time.Now().Add(time.Duration(numbers['t']) * time.Second)
	}
	var wait sync.WaitGroup
	for range numbers['c'] {
		wait.Go(func() {
			for t.more() {
				t.count(ask())
			}
		})
	}
	wait.Wait()
	t.print(s.Out, "", t.answers)
	t.print(s.Out, "failed: ", t.failures)
	if len(t.failures) > 0 {
		return status(1)
	}
	return nil
}

// tally counts what requests came to.
type tally struct {
	mu       sync.Mutex // guards all but until
	left     int        // requests to begin, unless until is set
	until    time.Time
	answers  map[string]int
	failures map[string]int
}

func (t *tally) more() bool {
	if !t.until.IsZero() {
		return time.Now().Before(t.until)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left--
	return t.left >= 0
}

func (t *tally) count(answer string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.failures[err.Error()]++
		return
	}
	t.answers[answer]++
}

func (t *tally) print(out io.Writer, prefix string, counts map[string]int) {
	for _, text := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[a], counts[b]), strings.Compare(a, b))
	}) {
		fmt.Fprintf(out, "%d %s%s\n", counts[text], prefix, text)
	}
}

func askHTTP(url string, limit time.Duration) (string, error) {
	client := http.Client{Timeout: limit, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url)
	if err != nil {
		return "", withoutPorts(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", withoutPorts(err)
	}
	if answer.StatusCode >= http.StatusBadRequest {
		return "", fmt.Errorf("server returned %s", answer.Status)
	}
	return strings.TrimSpace(string(body)), nil
}

// withoutPorts makes failures of one kind alike: what is at their bottom names no port of the client.
func withoutPorts(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return errors.New("no answer in time")
	}
	for bottom := err; bottom != nil; bottom = errors.Unwrap(bottom) {
		err = bottom
	}
	return err
}

func askUDP(target string, limit time.Duration) (string, error) {
	conn, err := net.Dial("udp", target)
	if err != nil {
		return "", withoutPorts(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	if _, err := conn.Write([]byte("who")); err != nil {
		return "", withoutPorts(err)
	}
	answer := make([]byte, 1024)
	n, err := conn.Read(answer)
	if err != nil {
		return "", withoutPorts(err)
	}
	return strings.TrimSpace(string(answer[:n])), nil
}
