package sctp

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

// A listener answers only at its port, over both families.
func TestAnAssociationIsAnswered(t *testing.T) {
	const port = 47132
	stop, err := Serve(port, "me")
	if err != nil {
		t.Fatalf("this test needs CAP_NET_RAW: %v", err)
	}
	defer stop()
	for _, target := range []string{"127.0.0.1:47132", "[::1]:47132"} {
		if got, err := Ask(target, 10*time.Second); err != nil || got != "me" {
			t.Errorf("%s: %q, %v", target, got, err)
		}
	}
	var timeout net.Error
	if got, err := Ask("127.0.0.1:47133", 200*time.Millisecond); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("another port: %q, %v", got, err)
	}
	if _, err := Ask("localhost:1", time.Second); err == nil || !strings.Contains(err.Error(), "localhost") {
		t.Errorf("no address: %v", err)
	}
}

func TestWhatIsEncodedIsDecoded(t *testing.T) {
	for _, p := range []packet{
		{from: 40000, to: 80, own: 7, chunk: chunkInit},
		{from: 80, to: 40000, tag: 7, own: 9, chunk: chunkInitAck, cookie: "name"},
		{from: 80, to: 40000, tag: 7, own: 9, chunk: chunkInitAck, cookie: "names"},
	} {
		if got, err := decode(p.encode()); err != nil || got != p {
			t.Errorf("got %+v, %v, want %+v", got, err, p)
		}
	}
}

// A packet of any length with any byte changed is refused, and never read beyond its end.
func TestDamagedPacketsAreRefused(t *testing.T) {
	whole := packet{from: 80, to: 40000, tag: 7, own: 9, chunk: chunkInitAck, cookie: "name"}.encode()
	for n := range len(whole) {
		if got, err := decode(whole[:n]); err == nil {
			t.Errorf("the first %d bytes: %+v", n, got)
		}
		changed := append([]byte(nil), whole...)
		changed[n] ^= 0x55
		if got, err := decode(changed); err == nil {
			t.Errorf("with byte %d changed: %+v", n, got)
		}
	}
	for _, parameters := range []string{"\x00\x07\x00\x03", "\x00\x07\x00\x09name", "\x00\x01\x00\x05n", "\x00\x07"} {
		if got := cookieOf([]byte(parameters)); got != "" {
			t.Errorf("%q: %q", parameters, got)
		}
	}
}
