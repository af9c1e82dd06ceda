package gather

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

const pause = 10 * time.Millisecond

// feed is a socket that bytes come to, and which reports when it was read.
type feed struct {
	arrived chan byte
	reads   []int
	wakeAt  int
	end     error
}

func (f *feed) Read(p []byte) (int, error) {
	b, open := <-f.arrived
	if !open {
		return 0, f.end
	}
	p[0] = b
	n := 1
	if more, err := f.take(p[1:]); err == nil {
		n += more
	}
	f.reads = append(f.reads, n)
	return n, nil
}

func (f *feed) ReadNow(p []byte) (int, error) {
	n, err := f.take(p)
	if err == nil {
		f.reads = append(f.reads, n)
	}
	return n, err
}

func (f *feed) take(p []byte) (n int, err error) {
	for n < len(p) {
		select {
		case b, open := <-f.arrived:
			if !open && n == 0 {
				return 0, f.end
			}
			if !open {
				return n, nil
			}
			p[n] = b
			n++
			continue
		default:
		}
		break
	}
	if n == 0 {
		return 0, errNothing
	}
	return n, nil
}

func (f *feed) WakeAt(bytes int) { f.wakeAt = bytes }

// arrival is a byte that was handed out, and when.
type arrival struct {
	b  byte
	at time.Duration
}

// run sends a byte at each of the times, and returns when each was handed out.
func run(t *testing.T, f *feed, times ...time.Duration) []arrival {
	t.Helper()
	f.arrived = make(chan byte, 1000)
	c := &conn{from: f, pause: pause, gap: 2 * pause, buffer: make([]byte, room)}
	start := time.Now()
	go func() {
		for i, at := range times {
			time.Sleep(at - time.Since(start))
			f.arrived <- byte(i)
		}
		time.Sleep(time.Second)
		close(f.arrived)
	}()
	var got []arrival
	p := make([]byte, 3)
	for {
		n, err := c.Read(p)
		for _, b := range p[:n] {
			got = append(got, arrival{b, time.Since(start)})
		}
		if err != nil {
			if !errors.Is(err, f.end) {
				t.Errorf("the end is %v, want %v", err, f.end)
			}
			return got
		}
	}
}

// What comes after a while waits for nothing; what follows closely waits for others, but never longer than the pause.
func TestPace(t *testing.T) {
	ms := func(all ...int) []time.Duration {
		var times []time.Duration
		for _, n := range all {
			times = append(times, time.Duration(n)*time.Millisecond)
		}
		return times
	}
	for name, row := range map[string]struct {
		come, go_ []time.Duration
		reads     int
	}{
		"a single one":              {ms(100), ms(100), 1},
		"some at once":              {ms(100, 100, 100), ms(100, 100, 100), 1},
		"two with a while between":  {ms(100, 116), ms(100, 116), 2},
		"many with a while between": {ms(100, 200, 300, 400), ms(100, 200, 300, 400), 4},
		// The second shows that there are many; the third and the fourth wait.
		"many":                   {ms(100, 101, 102, 110, 112, 119), ms(100, 101, 111, 111, 121, 121), 4},
		"many, and then silence": {ms(100, 101, 102, 200, 300), ms(100, 101, 111, 200, 300), 5},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &feed{end: io.EOF}
			got := run(t, f, row.come...)
			if len(got) != len(row.go_) {
				t.Fatalf("%s: %v", name, got)
			}
			for i, a := range got {
				if int(a.b) != i || a.at != row.go_[i] {
					t.Errorf("%s: byte %d at %v, want %d at %v", name, a.b, a.at, i, row.go_[i])
				}
			}
			if len(f.reads) != row.reads || f.wakeAt > 1 {
				t.Errorf("%s: %d reads, and woken up at %d; want %d reads, and at 1", name, len(f.reads), f.wakeAt,
					row.reads)
			}
		})
	}
}

// What comes in bulk waits for nothing.
func TestBulk(t *testing.T) {
	const gap, pause = time.Millisecond, 10 * time.Millisecond
	for _, row := range []struct {
		read int
		gap  time.Duration
		want bool
	}{{1, gap, true}, {32<<10 - 1, gap, true}, {32 << 10, gap, false}, {64 << 10, gap, false},
		{1, 15 * time.Millisecond, true}, {1, 15*time.Millisecond + 1, false}} {
		if got := paced(row.read, row.gap, pause); got != row.want {
			t.Errorf("%d bytes after %v: %t", row.read, row.gap, got)
		}
	}
}

// Ten chunks that come a millisecond apart are read together, and nothing waits longer than the pause.
func TestManyAreReadTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var times []time.Duration
		for i := range 200 {
			times = append(times, time.Duration(i)*time.Millisecond)
		}
		f := &feed{end: io.EOF}
		got := run(t, f, times...)
		for i, a := range got {
			if int(a.b) != i || a.at < times[i] || a.at > times[i]+pause {
				t.Fatalf("byte %d, sent at %v, comes as %d at %v", i, times[i], a.b, a.at)
			}
		}
		if len(got) != 200 || len(f.reads) > 25 {
			t.Errorf("%d bytes in %d reads, want 200 in 25 or fewer", len(got), len(f.reads))
		}
	})
}

func TestErrorsComeThrough(t *testing.T) {
	broken := errors.New("broken")
	for _, times := range [][]time.Duration{nil, {0}, {0, 1, 2}} {
		synctest.Test(t, func(t *testing.T) { run(t, &feed{end: broken}, times...) })
	}
}

// pipe returns both ends of a connection of TCP, the second one paced.
func pipe(t *testing.T, pause time.Duration) (net.Conn, net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	near, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	paced := newConn(near, pause)
	if _, ok := paced.(*conn); !ok {
		t.Fatalf("a connection of TCP is read by a %T", paced)
	}
	return far, paced
}

// Over a real connection every byte and the end arrive in order, for all sizes of writes and reads.
func TestOverTCP(t *testing.T) {
	for seed := range uint64(5) {
		far, near := pipe(t, time.Millisecond)
		r := rand.New(rand.NewPCG(seed, 1))
		sent := make([]byte, 300_000)
		for i := range sent {
			sent[i] = byte(r.Uint32())
		}
		go func() {
			for rest := sent; len(rest) > 0; {
				n := min(len(rest), 1+r.IntN(4000))
				if _, err := far.Write(rest[:n]); err != nil {
					t.Error(err)
				}
				rest = rest[n:]
			}
			_ = far.Close()
		}()
		if got, err := io.ReadAll(near); err != nil || !bytes.Equal(got, sent) {
			t.Errorf("seed %d: %d bytes of %d, %v", seed, len(got), len(sent), err)
		}
	}
}

// A reader that waits, for the pause or for something to come, ends when the connection is closed.
func TestCloseEndsReading(t *testing.T) {
	for _, begun := range []bool{false, true} {
		far, near := pipe(t, time.Millisecond)
		p := make([]byte, 1)
		if begun {
			for range 3 {
				if _, err := far.Write(p); err != nil {
					t.Fatal(err)
				}
				if _, err := near.Read(p); err != nil {
					t.Fatal(err)
				}
			}
		}
		ended := make(chan error)
		go func() {
			_, err := near.Read(p)
			ended <- err
		}()
		if err := near.Close(); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("begun %t: %v", begun, err)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("begun %t: the reader waits on", begun)
		}
	}
}
