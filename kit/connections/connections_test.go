package connections

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"time"
)

func TestWithin(t *testing.T) {
	for files, want := range map[uint64]Limits{
		0:          {1, 1, 0, 1},
		1024:       {128, 512, 0, 128},
		20_000:     {1024, 10_000, 0, 1024},
		1_048_576:  {1024, 16_384, 0, 1024},
		^uint64(0): {1024, 16_384, 0, 1024},
	} {
		if got := Within(files); got != want {
			t.Errorf("of %d files: %+v, want %+v", files, got, want)
		}
	}
}

// silent is a connection of which only the end is looked at.
type silent struct {
	net.Conn
	closed bool
}

func (s *silent) Close() error {
	s.closed = true
	return nil
}

// TestWhoHasTheMostLosesTheOldest tries connections in any order against a list of them that is searched through: there
// are never more than may be, and a client that loses one has as many as any.
func TestWhoHasTheMostLosesTheOldest(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		l := Bound(nil, Limits{Unknown: 1 + random.IntN(16), Known: 1 + random.IntN(16)})
		var unknown, known []*conn
		lose := func(of *[]*conn, most int) {
			has := map[string]int{}
			for _, c := range *of {
				has[c.owner]++
			}
			last := (*of)[len(*of)-1].owner
			alone := has[last] > max(most/4, 1)
			if len(*of) <= most && !alone {
				return
			}
			i := slices.IndexFunc(*of, func(c *conn) bool {
				if alone {
					return c.owner == last
				}
				for _, n := range has {
					if n > has[c.owner] {
						return false
					}
				}
				return !slices.ContainsFunc(*of, func(o *conn) bool {
					return has[o.owner] == has[c.owner] && o.number < c.number
				})
			})
			if !(*of)[i].Conn.(*silent).closed {
				t.Fatalf("seed %d: number %d of %s is not closed", seed, (*of)[i].number, (*of)[i].owner)
			}
			*of = slices.Delete(*of, i, i+1)
		}
		for port := range uint16(120) {
			address := fmt.Sprintf("192.0.2.%d", random.IntN(6))
			switch of := random.IntN(4); {
			case of < 2:
				c := &conn{Conn: &silent{}, of: l, owner: address,
					at: ends{remote: netip.AddrPortFrom(netip.MustParseAddr(address), port)}}
				l.begin(c).end()
				unknown = append(unknown, c)
				lose(&unknown, l.unknown.most)
			case of == 2 && len(unknown) > 0:
				i := random.IntN(len(unknown))
				c := unknown[i]
				l.know(c.at, fmt.Sprint("client", random.IntN(6))).end()
				l.know(c.at, "another").end()
				unknown, known = slices.Delete(unknown, i, i+1), append(known, c)
				lose(&known, l.known.most)
			case len(known) > 0:
				i := random.IntN(len(known))
				_ = known[i].Close()
				_ = known[i].Close()
				known = slices.Delete(known, i, i+1)
			}
			for _, c := range slices.Concat(unknown, known) {
				if c.Conn.(*silent).closed {
					t.Fatalf("seed %d: number %d of %s is closed", seed, c.number, c.owner)
				}
			}
			if l.unknown.size != len(unknown) || l.known.size != len(known) || len(l.open) != len(unknown)+len(known) {
				t.Fatalf("seed %d: %d and %d of %d, want %d and %d", seed, l.unknown.size, l.known.size, len(l.open),
					len(unknown), len(known))
			}
		}
	}
}

// TestSilentConnectionsKeepNobodyOut: many silent connections are closed for new ones, and one on which a known
// client speaks stays, however many follow.
func TestSilentConnectionsKeepNobodyOut(t *testing.T) {
	const silent = 40
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Bound(inner, Limits{Unknown: 16, Known: 4})
	server := &http.Server{ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			l.Known(r, "ann")
			_, _ = io.WriteString(w, r.RemoteAddr)
		})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() { _ = server.Close(); <-done })
	client := &http.Client{Transport: &http.Transport{}}
	ask := func() string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+inner.Addr().String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := ask()
	ended := make(chan int, silent)
	for i := range silent {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		go func() {
			if _, err := c.Read(make([]byte, 1)); err != nil {
				ended <- i
			}
		}()
	}
	for range silent - 4 {
		<-ended
	}
	if second := ask(); second != first {
		t.Errorf("the known client had to connect again: %s, then %s", first, second)
	}
}
