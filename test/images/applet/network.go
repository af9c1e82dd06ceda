package applet

import (
	"cmp"
	"context"
	"crypto/tls"
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

	"keelson.dev/test/images/sctp"
)

// nslookup prints the records of one type that a name has: nslookup [-type=TYPE] NAME [SERVER]. Short names mean what
// the search paths of resolv.conf make of them. TYPE is A (IPv4 and IPv6 addresses), AAAA (those of IPv6 alone), CNAME,
// PTR, SRV or TXT.
func nslookup(args []string, s Streams) error {
	kind := "A"
	if len(args) > 0 && strings.HasPrefix(args[0], "-type=") {
		kind, args = strings.ToUpper(strings.TrimPrefix(args[0], "-type=")), args[1:]
	}
	if len(args) == 0 || len(args) > 2 {
		return errors.New("usage: nslookup [-type=A|AAAA|CNAME|PTR|SRV|TXT] NAME [SERVER]")
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
	case "AAAA":
		addresses, err := resolver.LookupNetIP(ctx, "ip6", name)
		for _, address := range addresses {
			records = append(records, address.String())
		}
		return records, err
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
	return nil, fmt.Errorf("%q is no type of records that is known, only A, AAAA, CNAME, PTR, SRV and TXT are", kind)
}

// requests asks one URL again and again and prints how often each answer came, the most frequent last: requests [-n
// COUNT|-t SECONDS|-i] [-l] [-c PARALLEL] [-w SECONDS] [-a FOLDER|-u [-p PORT]|-s] TARGET. With -i it goes on until its
// input ends, and prints a line once it has its first answer; with -l it prints last for how long it had no answer at
// the longest. Each request has a connection of its own. With -a it is made as the ServiceAccount whose files are in
// the folder; with -u the target is HOST:PORT, and what is sent is one datagram, from PORT if it is given: all that
// comes from there is one flow to the kernel, as from a socket that is kept; with -s it is ADDRESS:PORT, and an
// association of SCTP is begun. -w is how long one answer may take. A request without an answer, or with one of status
// 400 or above, means failure in the end.
func requests(args []string, s Streams) error {
	set, args, err := options(args, "ilus", "antcwp")
	if err != nil {
		return err
	}
	if len(args) != 1 {
		return errors.New("usage: requests [-n COUNT|-t SECONDS|-i] [-l] [-c PARALLEL] [-w SECONDS] " +
			"[-a FOLDER|-u [-p PORT]|-s] TARGET")
	}
	numbers := map[rune]int{'n': 1, 't': 0, 'c': 1, 'w': 3, 'p': 0}
	if err := readNumbers(set, numbers); err != nil {
		return err
	}
	ask, err := asker(args[0], set, numbers)
	if err != nil {
		return err
	}
	t := &tally{left: numbers['n'], answers: map[string]int{}, failures: map[string]int{},
		answered: time.Now()}
	if numbers['t'] > 0 {
		t.until = time.Now().Add(time.Duration(numbers['t']) * time.Second)
	}
	if set['i'] != "" {
		t.begun, t.ended = s.Out, inputEnd(s.In)
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
	if set['l'] != "" {
		t.pause()
		fmt.Fprintln(s.Out, "longest pause", t.longest)
	}
	if len(t.failures) > 0 {
		return status(1)
	}
	return nil
}

// readNumbers replaces the numbers of the options that are set.
func readNumbers(set map[rune]string, numbers map[rune]int) (err error) {
	for option, text := range set {
		if _, ok := numbers[option]; !ok {
			continue
		}
		if numbers[option], err = strconv.Atoi(text); err != nil || numbers[option] < 1 {
			return fmt.Errorf("-%c: %q is not a number of 1 or more", option, text)
		}
	}
	return nil
}

// asker returns what makes one request of the kind that is set.
func asker(target string, set map[rune]string, numbers map[rune]int) (func() (string, error), error) {
	limit := time.Duration(numbers['w']) * time.Second
	switch {
	case set['u'] != "":
		return func() (string, error) { return askUDP(target, numbers['p'], limit) }, nil
	case set['s'] != "":
		return func() (string, error) { return askSCTP(target, limit) }, nil
	}
	who, err := readAccount(set['a'])
	return func() (string, error) { return askHTTP(target, who, limit) }, err
}

// tally counts what requests came to.
type tally struct {
	mu       sync.Mutex // guards all but until and ended
	left     int        // requests to begin, unless until or ended is set
	until    time.Time
	ended    <-chan struct{}
	begun    io.Writer // is told of the first answer, unless nil
	answers  map[string]int
	failures map[string]int
	answered time.Time     // when there was an answer last, or the first request
	longest  time.Duration // without an answer
}

// inputEnd is closed when there is nothing more to read.
func inputEnd(in io.Reader) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, in)
	}()
	return ended
}

func (t *tally) more() bool {
	if t.ended != nil {
		select {
		case <-t.ended:
			return false
		default:
			return true
		}
	}
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
	if t.begun != nil {
		fmt.Fprintln(t.begun, "asking")
		t.begun = nil
	}
	if err != nil {
		t.failures[err.Error()]++
		return
	}
	t.answers[answer]++
	t.pause()
}

// pause ends a time without an answer.
func (t *tally) pause() {
	now := time.Now()
	t.longest, t.answered = max(t.longest, now.Sub(t.answered)), now
}

func (t *tally) print(out io.Writer, prefix string, counts map[string]int) {
	for _, text := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[a], counts[b]), strings.Compare(a, b))
	}) {
		fmt.Fprintf(out, "%d %s%s\n", counts[text], prefix, text)
	}
}

func askHTTP(url string, who account, limit time.Duration) (string, error) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	if who.token != "" {
		request.Header.Set("Authorization", "Bearer "+who.token)
	}
	client := http.Client{Timeout: limit, Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: who.authorities}}}
	answer, err := client.Do(request)
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

// askUDP sends a request from a port, or from any free port if that is 0.
func askUDP(target string, port int, limit time.Duration) (string, error) {
	dialer := net.Dialer{LocalAddr: &net.UDPAddr{Port: port}}
	conn, err := dialer.Dial("udp", target)
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

func askSCTP(target string, limit time.Duration) (string, error) {
	answer, err := sctp.Ask(target, limit)
	if err != nil {
		return "", withoutPorts(err)
	}
	return answer, nil
}
