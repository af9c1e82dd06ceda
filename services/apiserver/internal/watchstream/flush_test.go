package watchstream

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"
)

// client is the response to a watch: what it gets, and when since its begin. It is touched by one at a time.
type client struct {
	begin   time.Time
	written strings.Builder
	sent    []string
	err     error
	gone    bool
	t       *testing.T
}

func (c *client) Header() http.Header      { return http.Header{} }
func (c *client) WriteHeader(int)          {}
func (c *client) CloseNotify() <-chan bool { return nil }

func (c *client) Write(p []byte) (int, error) {
	if c.gone {
		c.t.Error("written after the handler was done")
	}
	c.written.Write(p)
	return len(p), c.err
}

func (c *client) Flush() {
	if c.gone {
		c.t.Error("flushed after the handler was done")
	}
	c.sent = append(c.sent, fmt.Sprintf("%v %s", time.Since(c.begin), c.written.String()))
	c.written.Reset()
}

// serve lets a handler answer a watch to the client.
func (c *client) serve(handler http.HandlerFunc) {
	r := httptest.NewRequest(http.MethodGet, "/api/v1/pods?watch=1", nil)
	r = r.WithContext(request.WithRequestInfo(r.Context(), &request.RequestInfo{Verb: "watch"}))
	c.begin = time.Now()
	WithJoinedFlushes(handler).ServeHTTP(c, r)
	c.gone = true
}

// Each row writes and flushes one letter at each time, in milliseconds; the handler is done at the last.
func TestJoinedFlushes(t *testing.T) {
	for name, row := range map[string]struct {
		at   []int
		want string
	}{
		"lone events at once":       {[]int{0, 10, 20, 99}, "0s a, 10ms b, 20ms c"},
		"a stream in turns":         {[]int{0, 1, 2, 3, 4, 6, 7, 99}, "0s a, 5ms bcde, 10ms fg"},
		"one soon after another":    {[]int{0, 4, 99}, "0s a, 5ms b"},
		"one when the wait is over": {[]int{0, 6, 99}, "0s a, 6ms b"},
		"what the end finds":        {[]int{0, 11, 12, 13}, "0s a, 11ms b, 13ms c"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &client{t: t}
				c.serve(func(w http.ResponseWriter, _ *http.Request) {
					for i, at := range row.at {
						time.Sleep(time.Until(c.begin.Add(time.Duration(at) * time.Millisecond)))
						if i < len(row.at)-1 {
							_, _ = w.Write([]byte{byte('a' + i)})
							w.(http.Flusher).Flush()
						}
					}
				})
				time.Sleep(time.Minute)
				if got := strings.Join(c.sent, ", "); got != row.want {
					t.Errorf("sent %s, want %s", got, row.want)
				}
			})
		})
	}
}

// What does not fit is written without waiting; it stays in its order.
func TestMoreThanFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &client{t: t}
		want := ""
		c.serve(func(w http.ResponseWriter, _ *http.Request) {
			for i := range 100 {
				part := strings.Repeat(string(rune('a'+i%26)), []int{1000, 40000, 20000, 20000, 0}[i%5])
				want += part
				if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
					t.Errorf("wrote %d of %d, %v", n, len(part), err)
				}
				w.(http.Flusher).Flush()
				if waiting := len(want) - c.written.Len() - lengths(c.sent); waiting > 32<<10 {
					t.Errorf("%d bytes wait", waiting)
				}
			}
		})
		if got := strings.ReplaceAll(strings.Join(c.sent, ""), "0s ", ""); got != want {
			t.Errorf("%d bytes came, want %d, or not in their order", len(got), len(want))
		}
	})
}

func lengths(sent []string) (sum int) {
	for _, s := range sent {
		sum += len(s) - len("0s ")
	}
	return sum
}

// A client that is gone is noticed with the event after the one that was lost.
func TestWriteErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &client{t: t, err: errors.New("gone")}
		c.serve(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("a"))
			w.(http.Flusher).Flush()
			if _, err := w.Write([]byte("b")); !errors.Is(err, c.err) {
				t.Errorf("the second write: %v", err)
			}
		})
	})
}

// What is no watch, or a web socket, is as it was.
func TestOnlyWatches(t *testing.T) {
	for name, change := range map[string]func(*http.Request, *request.RequestInfo){
		"a list": func(_ *http.Request, i *request.RequestInfo) { i.Verb = "list" },
		"a web socket": func(r *http.Request, _ *request.RequestInfo) {
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", "websocket")
		},
	} {
		info := &request.RequestInfo{Verb: "watch"}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		change(r, info)
		c := &client{t: t}
		WithJoinedFlushes(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if w != http.ResponseWriter(c) {
				t.Errorf("%s is answered to %T", name, w)
			}
		})).ServeHTTP(c, r.WithContext(request.WithRequestInfo(r.Context(), info)))
	}
}

// Over both protocols, everything comes and in its order, however the writes and the clock meet.
func TestStreams(t *testing.T) {
	const lines = 3000
	for _, protocol := range []int{1, 2} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx := request.WithRequestInfo(r.Context(), &request.RequestInfo{Verb: "watch"})
			WithJoinedFlushes(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				tick := time.NewTicker(100 * time.Microsecond)
				defer tick.Stop()
				for i := range lines {
					fmt.Fprintf(w, "%d\n", i)
					w.(http.Flusher).Flush()
					if i%3 == 0 {
						<-tick.C
					}
				}
			})).ServeHTTP(w, r.WithContext(ctx))
		}))
		s.EnableHTTP2 = protocol == 2
		s.StartTLS()
		response, err := s.Client().Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		if response.ProtoMajor != protocol {
			t.Errorf("the protocol is %s", response.Proto)
		}
		scanner, next := bufio.NewScanner(response.Body), 0
		for ; scanner.Scan() && scanner.Text() == fmt.Sprint(next); next++ {
		}
		if next != lines || scanner.Err() != nil {
			t.Errorf("%s: %d of %d lines came, then %q, %v", response.Proto, next, lines, scanner.Text(), scanner.Err())
		}
		response.Body.Close()
		s.Close()
	}
}
