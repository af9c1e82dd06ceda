package applet

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
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
}
