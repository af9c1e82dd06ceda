package applet

import (
	"bufio"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"keelson.dev/test/images/sctp"
)

// Answers are counted, the most frequent last, and every failure makes the whole fail.
func TestRequestsAreCounted(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1)
		if r.URL.Path == "/broken" && n == 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprintln(w, []string{"one", "two", "two", "two"}[n%4])
	}))
	defer server.Close()
	for _, c := range []struct {
		line, want string
		code       int
	}{
		{"-n 8 " + server.URL, "2 one\n6 two\n", 0},
		{"-n 8 -c 3 " + server.URL, "2 one\n6 two\n", 0},
		{server.URL, "1 two\n", 0},
		{"-n 4 " + server.URL + "/broken", "1 one\n2 two\n1 failed: server returned 503 Service Unavailable\n", 1},
	} {
		asked.Store(0)
		code, out, errOut := call(t, "", "requests", strings.Fields(c.line)...)
		if code != c.code || out != c.want || errOut != "" {
			t.Errorf("%s: status %d, %q, %q", c.line, code, out, errOut)
		}
	}
	server.Close()
	if code, out, _ := call(t, "", "requests", "-n", "2", server.URL); code != 1 || out !=
		"2 failed: connection refused\n" {
		t.Errorf("nobody there: status %d, %q", code, out)
	}
}

// An account's token is only sent to a server with a certificate of its authority.
func TestRequestsOfAnAccount(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, r.Header.Get("Authorization"))
	}))
	defer server.Close()
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	folder := t.TempDir()
	write := func(name string, content []byte) {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ask := func() (int, string, string) { return call(t, "", "requests", "-a", folder, "-n", "2", server.URL) }
	if code, _, errOut := ask(); code != 1 || !strings.Contains(errOut, "token: no such file") {
		t.Errorf("without files: status %d, %q", code, errOut)
	}
	write("token", []byte("me\n"))
	write("ca.crt", []byte("nothing"))
	if code, _, errOut := ask(); code != 1 || !strings.Contains(errOut, "ca.crt holds no certificate") {
		t.Errorf("without an authority: status %d, %q", code, errOut)
	}
	write("ca.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	if code, out, errOut := ask(); code != 0 || out != "2 Bearer me\n" {
		t.Errorf("status %d, %q, %q", code, out, errOut)
	}
	if code, out, _ := call(t, "", "requests", server.URL); code != 1 || !strings.Contains(out, "unknown authority") {
		t.Errorf("as nobody: status %d, %q", code, out)
	}
}

func TestDatagramsAreCounted(t *testing.T) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		datagram := make([]byte, 16)
		for {
			_, from, err := conn.ReadFrom(datagram)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo([]byte("me\n"), from)
		}
	}()
	target := conn.LocalAddr().String()
	if code, out, errOut := call(t, "", "requests", "-u", "-n", "3", target); code != 0 || out != "3 me\n" {
		t.Errorf("status %d, %q, %q", code, out, errOut)
	}
	_ = conn.Close()
	if code, out, _ := call(t, "", "requests", "-u", target); code != 1 || out != "1 failed: connection refused\n" {
		t.Errorf("nobody there: status %d, %q", code, out)
	}
}

// Datagrams from one port are what a client sends that keeps its socket.
func TestDatagramsFromOnePort(t *testing.T) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	go func() {
		datagram := make([]byte, 16)
		for {
			_, from, err := conn.ReadFrom(datagram)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo([]byte(from.String()), from)
		}
	}()
	free, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(free.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = free.Close()
	code, out, errOut := call(t, "", "requests", "-u", "-p", port, "-n", "3", conn.LocalAddr().String())
	if code != 0 || out != "3 127.0.0.1:"+port+"\n" {
		t.Errorf("status %d, %q, %q", code, out, errOut)
	}
}

func TestAssociationsAreCounted(t *testing.T) {
	stop, err := sctp.Serve(47134, "me")
	if err != nil {
		t.Fatalf("this test needs CAP_NET_RAW: %v", err)
	}
	defer stop()
	if code, out, errOut := call(t, "", "requests", "-s", "-n", "3", "127.0.0.1:47134"); code != 0 || out != "3 me\n" {
		t.Errorf("status %d, %q, %q", code, out, errOut)
	}
	if code, out, _ := call(t, "", "requests", "-s", "-w", "1", "127.0.0.1:47135"); code != 1 ||
		out != "1 failed: no answer in time\n" {
		t.Errorf("nobody there: status %d, %q", code, out)
	}
}

func TestWrongUseOfTheNetwork(t *testing.T) {
	for line, want := range map[string]string{
		"requests":                 "usage: requests ",
		"requests a b":             "usage: requests ",
		"requests -n 0 a":          `-n: "0" is not a number of 1 or more`,
		"requests -w soon a":       `-w: "soon" is not a number of 1 or more`,
		"nslookup":                 "usage: nslookup ",
		"nslookup a b c":           "usage: nslookup ",
		"nslookup -type=MX x":      `"MX" is no type of records that is known`,
		"nslookup nosuch. 0.0.0.0": "nosuch.",
	} {
		words := strings.Fields(line)
		if code, out, errOut := call(t, "", words[0], words[1:]...); code != 1 || !strings.Contains(errOut, want) {
			t.Errorf("%s: status %d, %q, %q", line, code, out, errOut)
		}
	}
}

func TestNslookupPrintsAddresses(t *testing.T) {
	if code, out, errOut := call(t, "", "nslookup", "localhost"); code != 0 || !strings.Contains(out, "127.0.0.1\n") {
		t.Errorf("status %d, %q, %q", code, out, errOut)
	}
	if code, out, errOut := call(t, "", "nslookup", "-type=AAAA", "::1"); code != 0 || out != "::1\n" {
		t.Errorf("of IPv6: status %d, %q, %q", code, out, errOut)
	}
	if code, out, _ := call(t, "", "nslookup", "-type=AAAA", "127.0.0.1"); code != 1 || out != "" {
		t.Errorf("of IPv6 where there is IPv4 alone: status %d, %q", code, out)
	}
}

// The longest time without an answer is that between two answers, before the first, or after the last.
func TestRequestsTellTheLongestPause(t *testing.T) {
	for _, silent := range []int32{1, 2, 3} { // the request that has no answer
		var count atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if count.Add(1) == silent {
				<-r.Context().Done()
			}
		}))
		code, out, errOut := call(t, "", "requests", "-l", "-n", "3", "-w", "1", server.URL)
		server.Close()
		_, text, _ := strings.Cut(out, "longest pause ")
		pause, err := time.ParseDuration(strings.TrimSpace(text))
		if code != 1 || err != nil || pause < time.Second || pause > 10*time.Second {
			t.Errorf("request %d: status %d, %q, %q, want about a second", silent, code, out, errOut)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	if _, out, _ := call(t, "", "requests", "-n", "3", server.URL); strings.Contains(out, "pause") {
		t.Errorf("without being asked to: %q", out)
	}
}

func TestRequestsGoOnUntilTheInputEnds(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "me") }))
	defer server.Close()
	in, more := io.Pipe()
	said, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		code := Run("requests", []string{"-i", server.URL}, Streams{In: in, Out: out, Err: io.Discard})
		_ = out.Close()
		ended <- code
	}()
	lines := bufio.NewReader(said)
	if line, err := lines.ReadString('\n'); line != "asking\n" || err != nil {
		t.Fatalf("it began with %q (%v)", line, err)
	}
	if err := more.Close(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	if err != nil || !regexp.MustCompile(`^[1-9][0-9]* me\n$`).Match(rest) {
		t.Errorf("it ended with %q (%v)", rest, err)
	}
	if code := <-ended; code != 0 {
		t.Errorf("its status is %d", code)
	}
}
