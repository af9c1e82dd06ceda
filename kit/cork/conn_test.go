package cork

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// wire is a connection that notes each write.
type wire struct {
	net.Conn

	mu   sync.Mutex
	sent []string
}

func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	w.sent = append(w.sent, string(p))
	w.mu.Unlock()
	return w.Conn.Write(p)
}

func (w *wire) writes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sent)
}

// pipe returns a connection of ours, what it is sent over and the other end, which takes nothing unless it reads.
func pipe(t *testing.T) (*conn, *wire, net.Conn) {
	t.Helper()
	near, far := net.Pipe()
	w := &wire{Conn: near}
	c := newConn(w)
	t.Cleanup(func() {
		far.Close()
		near.Close()
	})
	return c, w, far
}

func write(t *testing.T, c net.Conn, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if n, err := c.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("wrote %d of %q, %v", n, text, err)
		}
	}
}

// What is written while something is being sent goes out as one, in order.
func TestWritesGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w, far := pipe(t)
		write(t, c, "a")
		synctest.Wait()
		write(t, c, "b", "", "c", "d")
		got := make([]byte, 4)
		if _, err := io.ReadFull(far, got); err != nil || string(got) != "abcd" {
			t.Errorf("%q arrives, %v", got, err)
		}
		synctest.Wait()
		if sent := w.writes(); !slices.Equal(sent, []string{"a", "bcd"}) {
			t.Errorf("sent %q", sent)
		}
	})
}

// A goroutine that is ready to write when something is to be sent writes first.
func TestOthersWriteFirst(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	joined := 0
	for range 100 {
		c, w, far := pipe(t)
		go func() { _, _ = io.Copy(io.Discard, far) }()
		var both sync.WaitGroup
		both.Go(func() { write(t, c, "b") })
		write(t, c, "a")
		both.Wait()
		for strings.Join(w.writes(), "") != "ab" && strings.Join(w.writes(), "") != "ba" {
			runtime.Gosched()
		}
		if len(w.writes()) == 1 {
			joined++
		}
	}
	if joined < 80 {
		t.Errorf("of 100 pairs of writes %d are sent as one, want 80", joined)
	}
}

// Writes of several goroutines, of any size and read at any pace, arrive whole and in order.
func TestWholeAndInOrder(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			c, _, far := pipe(t)
			random := rand.New(rand.NewPCG(seed, 1))
			const writers, each = 3, 20
			var written sync.WaitGroup
			for i := range byte(writers) {
				sizes := make([]int, each)
				for n := range sizes {
					sizes[n] = 3 + random.IntN(1<<(1+random.IntN(17)))
				}
				written.Go(func() {
					for n, size := range sizes {
						p := bytes.Repeat([]byte{'a' + i}, size)
						p[0], p[size-1] = '0'+byte(n), '.'
						if _, err := c.Write(p); err != nil {
							t.Error(err)
						}
					}
				})
			}
			go func() {
				written.Wait()
				_ = c.Close()
			}()
			var got []byte
			for {
				p := make([]byte, 1+random.IntN(100_000))
				n, err := far.Read(p)
				got = append(got, p[:n]...)
				if errors.Is(err, io.EOF) {
					break
				}
				if random.IntN(4) == 0 {
					time.Sleep(time.Millisecond)
				}
			}
			next := map[byte]byte{}
			parts := bytes.Split(bytes.TrimSuffix(got, []byte(".")), []byte("."))
			for _, part := range parts {
				who := part[len(part)-1]
				if part[0] != '0'+next[who] || len(bytes.Trim(part[1:], string(who))) > 0 {
					t.Fatalf("seed %d: a write of %c is torn or out of its order", seed, who)
				}
				next[who]++
			}
			if len(parts) != writers*each {
				t.Fatalf("seed %d: %d writes arrive, want %d", seed, len(parts), writers*each)
			}
		})
	}
}

// A peer that reads nothing holds 64 KiB at most, and what was taken waits for it.
func TestBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, far := pipe(t)
		var mu sync.Mutex
		taken := 0
		go func() {
			for range 100 {
				write(t, c, strings.Repeat("x", 1<<10))
				mu.Lock()
				taken += 1 << 10
				mu.Unlock()
			}
			_ = c.Close()
		}()
		time.Sleep(time.Hour)
		mu.Lock()
		if taken < 32<<10 || taken > 64<<10 {
			t.Errorf("%d KiB are taken, want 32 to 64", taken>>10)
		}
		mu.Unlock()
		if got, err := io.ReadAll(far); len(got) != 100<<10 || err != nil {
			t.Errorf("%d bytes arrive, %v", len(got), err)
		}
	})
}

// After Close nothing is read or written any more, but bytes taken before are sent, for all deadlines that TLS
// sets at its close.
func TestCloseSendsWhatWaits(t *testing.T) {
	for name, before := range map[string]func(){"at once": func() {}, "while it is being sent": synctest.Wait} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _, far := pipe(t)
				reads := make(chan error)
				go func() {
					_, err := c.Read(make([]byte, 1))
					reads <- err
				}()
				write(t, c, "last ")
				before()
				write(t, c, "words")
				_ = c.SetWriteDeadline(time.Now().Add(5 * time.Second))
				_ = c.SetWriteDeadline(time.Now())
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				if err := <-reads; !errors.Is(err, net.ErrClosed) {
					t.Errorf("a read ends with %v", err)
				}
				if _, err := c.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
					t.Errorf("a write ends with %v", err)
				}
				for _, err := range []error{c.Close(), c.SetDeadline(time.Time{}), c.SetReadDeadline(time.Time{}),
					c.SetWriteDeadline(time.Time{})} {
					if !errors.Is(err, net.ErrClosed) {
						t.Errorf("after Close: %v", err)
					}
				}
				time.Sleep(29 * time.Second)
				if got, err := io.ReadAll(far); string(got) != "last words" || err != nil {
					t.Errorf("%q arrives, %v", got, err)
				}
			})
		})
	}
}

// After Close, the connection waits for its peer for half a minute at most.
func TestCloseOfAPeerThatReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, far := pipe(t)
		write(t, c, "x")
		synctest.Wait()
		start := time.Now()
		if err := c.Close(); err != nil || time.Since(start) > 0 {
			t.Errorf("closed after %v, %v", time.Since(start), err)
		}
		time.Sleep(30*time.Second + time.Nanosecond)
		if _, err := far.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the connection is open: %v", err)
		}
	})
}

// A connection that breaks fails the next writer, and writers that wait for room.
func TestBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, far := pipe(t)
		write(t, c, "x")
		synctest.Wait()
		write(t, c, strings.Repeat("x", 32<<10))
		waits := make(chan error)
		go func() {
			_, err := c.Write([]byte("x"))
			waits <- err
		}()
		synctest.Wait()
		far.Close()
		if err := <-waits; !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("who waits is told %v", err)
		}
		if _, err := c.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the next is told %v", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A write that has run out of time goes on when it is given more: nothing is lost and nothing is sent twice.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, far := pipe(t)
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		write(t, c, "abc")
		synctest.Wait()
		write(t, c, strings.Repeat("x", 32<<10))
		half := make([]byte, 2)
		if _, err := far.Read(half); err != nil || string(half) != "ab" {
			t.Errorf("%q arrives, %v", half, err)
		}
		start := time.Now()
		if _, err := c.Write([]byte("y")); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("after %v a write ends with %v", time.Since(start), err)
		}
		_ = c.SetWriteDeadline(time.Time{})
		write(t, c, "z")
		_ = c.Close()
		got, err := io.ReadAll(far)
		if want := "c" + strings.Repeat("x", 32<<10) + "z"; string(got) != want || err != nil {
			t.Errorf("%d bytes arrive, want %d, %v", len(got), len(want), err)
		}
	})
}
