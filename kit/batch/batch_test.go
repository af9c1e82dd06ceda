package batch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// remote is an apiserver as a transport sees it. It keeps how many requests came together, and when.
type remote struct {
	begin time.Time
	// whole answers a batch as one; items answers one request; both may be nil.
	whole func(r *http.Request, items []Request) (*http.Response, error)
	items func(r *http.Request, item Request) (int, string)

	mu   sync.Mutex
	came []string
}

func (s *remote) note(format string, values ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.came = append(s.came, fmt.Sprintf(format, values...)+fmt.Sprintf(" at %v", time.Since(s.begin)))
}

func (s *remote) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil || int64(len(body)) != r.ContentLength {
		panic(fmt.Sprint("a body of ", len(body), " bytes: ", err))
	}
	if r.URL.Path != Path {
		s.note("1")
		status, text := s.one(r, Request{Method: r.Method, Target: r.URL.RequestURI(), Body: body})
		return plain(status, text), nil
	}
	items, err := ReadRequests(body)
	if err != nil {
		panic(err)
	}
	s.note("%d", len(items))
	if s.whole != nil {
		return s.whole(r, items)
	}
	from, to := io.Pipe()
	go func() {
		var done sync.WaitGroup
		var mu sync.Mutex
		for i, item := range slices.Backward(items) {
			done.Go(func() {
				status, text := s.one(r, item)
				mu.Lock()
				defer mu.Unlock()
				_, _ = to.Write(AppendAnswer(nil, Answer{Item: i, Status: status,
					Header: http.Header{"Content-Type": {"text/plain"}}, Body: []byte(text)}))
			})
		}
		done.Wait()
		_ = to.Close()
	}()
	response := plain(http.StatusOK, "")
	response.Header.Set("Content-Type", ContentType)
	response.Body = from
	return response, nil
}

// one answers as asked for, else the path and body of the request after 10 ms.
func (s *remote) one(r *http.Request, item Request) (int, string) {
	if s.items != nil {
		return s.items(r, item)
	}
	time.Sleep(10 * time.Millisecond)
	return http.StatusOK, item.Target + string(item.Body)
}

func plain(status int, text string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text))}
}

func to(s *remote) transport {
	return transport{&joiner{may: func(context.Context) error { return nil }}, s}
}

// busy lets the next writes wait, as if one had just been sent.
func busy(over transport) {
	over.mu.Lock()
	defer over.mu.Unlock()
	over.newest = &flight{sent: time.Now()}
}

// write makes one write, and returns status, answer and error in one.
func write(ctx context.Context, to http.RoundTripper, name, body string) string {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://server/api/v1/"+name, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	response, err := to.RoundTrip(r)
	if err != nil {
		return "error: " + err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		panic(err)
	}
	return fmt.Sprint(response.StatusCode, " ", string(text))
}

// burst makes n writes at once and returns what became of each.
func burst(ctx context.Context, to http.RoundTripper, n int, body string) []string {
	outcomes := make([]string, n)
	var done sync.WaitGroup
	for i := range n {
		done.Go(func() { outcomes[i] = write(ctx, to, fmt.Sprint("w", i), body) })
	}
	done.Wait()
	return outcomes
}

func TestWhatGoesTogether(t *testing.T) {
	long := strings.Repeat("x", 64<<10)
	for name, row := range map[string]struct {
		writes func(ctx context.Context, to transport) []string
		want   []string
	}{
		"one goes at once": {func(ctx context.Context, to transport) []string {
			return burst(ctx, to, 1, "a")
		}, []string{"1 at 0s"}},
		"two go by themselves": {func(ctx context.Context, to transport) []string {
			return burst(ctx, to, 2, "a")
		}, []string{"1 at 0s", "1 at 2ms"}},
		"many wait for the first, for 2 ms": {func(ctx context.Context, to transport) []string {
			return burst(ctx, to, 60, "a")
		}, []string{"1 at 0s", "59 at 2ms"}},
		"128 go together": {func(ctx context.Context, to transport) []string {
			return burst(ctx, to, 129, "a")
		}, []string{"1 at 0s", "128 at 0s"}},
		"129 do not": {func(ctx context.Context, to transport) []string {
			return burst(ctx, to, 130, "a")
		}, []string{"1 at 0s", "128 at 0s", "1 at 2ms"}},
		"bytes have a bound": {func(ctx context.Context, to transport) []string {
			return burst(ctx, to, 1+2*4+1, long)
		}, []string{"1 at 0s", "4 at 0s", "4 at 0s", "1 at 2ms"}},
		"one too long goes by itself": {func(ctx context.Context, to transport) []string {
			return burst(ctx, to, 3, long+"x")
		}, []string{"1 at 0s", "1 at 0s", "1 at 0s"}},
		"one after the other wait for nothing": {func(ctx context.Context, to transport) []string {
			return []string{write(ctx, to, "w0", "a"), write(ctx, to, "w1", "a")}
		}, []string{"1 at 0s", "1 at 10ms"}},
		"a slow one holds up nobody for longer": {func(ctx context.Context, to transport) []string {
			var outcomes []string
			var first sync.WaitGroup
			first.Go(func() { outcomes = append(outcomes, write(ctx, to, "w0", "a")) })
			time.Sleep(5 * time.Millisecond)
			second := write(ctx, to, "w1", "a")
			first.Wait()
			return append(outcomes, second)
		}, []string{"1 at 0s", "1 at 5ms"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &remote{begin: time.Now()}
				for i, got := range row.writes(t.Context(), to(s)) {
					if want := fmt.Sprintf("200 /api/v1/w%d", i); !strings.HasPrefix(got, want) {
						t.Errorf("write %d: %.40s", i, got)
					}
				}
				// What comes at one moment comes in any order.
				slices.Sort(s.came)
				slices.Sort(row.want)
				if !slices.Equal(s.came, row.want) {
					t.Errorf("%q came, want %q", s.came, row.want)
				}
			})
		})
	}
}

// What comes quickly is answered quickly, although another of its batch hangs, and may be given up.
func TestOneHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &remote{begin: time.Now()}
		ended := make(chan struct{})
		s.items = func(r *http.Request, item Request) (int, string) {
			if strings.HasSuffix(item.Target, "hangs") {
				<-r.Context().Done()
				close(ended)
			}
			return http.StatusOK, ""
		}
		over := to(s)
		var done sync.WaitGroup
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("too slow"))
		defer cancel()
		busy(over)
		for i := range 9 {
			done.Go(func() {
				if got := write(t.Context(), over, fmt.Sprint("w", i), ""); got != "200 " ||
					time.Since(s.begin) > 2*time.Millisecond {
					t.Errorf("write %d: %s after %v", i, got, time.Since(s.begin))
				}
			})
		}
		hangs := write(ctx, over, "hangs", "")
		done.Wait()
		<-ended // no caller waits for an answer any more
		if hangs != "error: too slow" || time.Since(s.begin) != time.Second || s.came[0] != "10 at 2ms" {
			t.Errorf("the one that hangs: %s after %v, %q came", hangs, time.Since(s.begin), s.came)
		}
	})
}

// What is given up or loses its right while it waits is not sent.
func TestNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &remote{begin: time.Now()}
		over := to(s)
		type who struct{}
		over.may = func(ctx context.Context) error {
			if ctx.Value(who{}) != nil {
				return errors.New("not leading")
			}
			return nil
		}
		var done sync.WaitGroup
		for _, row := range []struct {
			ctx  context.Context
			want string
		}{
			{t.Context(), "200"}, {t.Context(), "200"}, {t.Context(), "200"},
			{context.WithValue(t.Context(), who{}, 1), "error: not leading"},
		} {
			synctest.Wait()
			done.Go(func() {
				if got := write(row.ctx, over, "w", ""); !strings.HasPrefix(got, row.want) {
					t.Errorf("%s, want %s", got, row.want)
				}
			})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if got := write(ctx, over, "w", ""); got != "error: context deadline exceeded" {
			t.Errorf("given up: %s", got)
		}
		done.Wait()
		if want := []string{"1 at 0s", "2 at 2ms"}; !slices.Equal(s.came, want) {
			t.Errorf("%q came, want %q", s.came, want)
		}
	})
}

// An answer that is cut leaves open what became of the requests that it lacks, and of no others.
func TestCut(t *testing.T) {
	for name, row := range map[string]struct {
		answers []Answer
		more    string
		want    map[int]string
	}{
		"in the middle": {[]Answer{{Item: 2, Status: 201}, {Item: 0, Status: 409}}, "\x01",
			map[int]string{2: "201", 0: "409"}},
		"between two":       {[]Answer{{Item: 1, Status: 201}}, "", map[int]string{1: "201"}},
		"at once":           {nil, "", nil},
		"the same twice":    {[]Answer{{Item: 1, Status: 201}, {Item: 1, Status: 201}}, "", map[int]string{1: "201"}},
		"one not asked for": {[]Answer{{Item: 1, Status: 201}, {Item: 9, Status: 201}}, "", map[int]string{1: "201"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &remote{begin: time.Now()}
				s.whole = func(_ *http.Request, items []Request) (*http.Response, error) {
					var body []byte
					for _, a := range row.answers {
						a.Header = http.Header{}
						if a.Item < len(items) {
							a.Body = []byte(items[a.Item].Target)
						}
						body = AppendAnswer(body, a)
					}
					response := plain(http.StatusOK, string(body)+row.more)
					response.Header.Set("Content-Type", ContentType)
					return response, nil
				}
				over := to(s)
				busy(over)
				got := burst(t.Context(), over, 4, "")
				told, unknown := 0, 0
				for i, o := range got {
					switch {
					case strings.HasPrefix(o, "error: "+errCut.Error()):
						unknown++
					case strings.HasSuffix(o, fmt.Sprintf("/w%d", i)):
						told++
					}
				}
				if told != len(row.want) || unknown != 4-told || len(s.came) != 1 {
					t.Errorf("%q, %q came", got, s.came)
				}
			})
		})
	}
}

// An apiserver that takes no batches gets each write alone, and no further batch is tried; one that has too many
// batches gets the writes of this one alone; the answer of one that fails goes to each write.
func TestRefusedBatches(t *testing.T) {
	for status, row := range map[int]struct {
		want       string // of each
		remembered bool
	}{
		404: {"200", true}, 403: {"200", true}, 405: {"200", true}, 400: {"200", true}, 415: {"200", true},
		401: {"200", false}, 413: {"200", false}, 429: {"200", false},
		408: {"200", false}, 503: {"503 later", false}, 504: {"504 later", false},
		200: {"error: " + errCut.Error(), true}, 302: {"error: " + errCut.Error(), true},
		0: {"error: broken", false},
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &remote{begin: time.Now()}
				s.whole = func(*http.Request, []Request) (*http.Response, error) {
					if status == 0 {
						return nil, errors.New("broken")
					}
					return plain(status, "later"), nil
				}
				over := to(s)
				round := func() (batches, others int) {
					s.came = nil
					busy(over)
					for i, got := range burst(t.Context(), over, 4, "") {
						if !strings.HasPrefix(got, row.want) && !strings.HasPrefix(got, "200 /api") {
							t.Errorf("write %d: %s", i, got)
						}
					}
					for _, came := range s.came {
						if strings.HasPrefix(came, "4 ") {
							batches++
						} else {
							others++
						}
					}
					return batches, others
				}
				alone := 0
				if row.want == "200" {
					alone = 4
				}
				if batches, others := round(); batches != 1 || others != alone {
					t.Errorf("at first %d batches, %d by themselves", batches, others)
				}
				time.Sleep(5*time.Minute - time.Second)
				if batches, others := round(); (batches == 0) != row.remembered || row.remembered && others != 4 {
					t.Errorf("then %d batches, %d by themselves", batches, others)
				}
				time.Sleep(time.Second)
				if batches, _ := round(); batches != 1 {
					t.Errorf("after five minutes %d batches", batches)
				}
			})
		})
	}
}

func named(method, path string) func(*http.Request) {
	return func(r *http.Request) { r.Method, r.URL.Path = method, path }
}

// If the answer to a successful write was omitted, its caller gets an error instead of a wrong object; a refused
// write stays refused, whether or not there was room for the reason.
func TestOmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &remote{begin: time.Now()}
		s.whole = func(_ *http.Request, items []Request) (*http.Response, error) {
			var body []byte
			for i := range items {
				body = AppendAnswer(body, Answer{Item: i, Status: []int{201, 409, 201}[i%3],
					Header: http.Header{OmittedHeader: [][]string{{"5"}, {"5"}, nil}[i%3]}, Body: []byte("text")})
			}
			response := plain(http.StatusOK, string(body))
			response.Header.Set("Content-Type", ContentType)
			return response, nil
		}
		over := to(s)
		busy(over)
		got := burst(t.Context(), over, 3, "")
		slices.Sort(got)
		want := []string{"201 text", "409 text", "error: " + errOmitted.Error() + ": status 201"}
		if !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	})
}

// Only what loses nothing in a batch goes into one, and only with what is sent in the same name.
func TestJoinable(t *testing.T) {
	for name, row := range map[string]struct {
		edit func(*http.Request)
		want bool
	}{
		"a create":           {func(*http.Request) {}, true},
		"a read":             {func(r *http.Request) { r.Method = http.MethodGet }, false},
		"another path":       {func(r *http.Request) { r.URL.Path = "/version" }, false},
		"of another version": {func(r *http.Request) { r.URL.Path = "/apis/apps/v1/deployments" }, true},
		"no length":          {func(r *http.Request) { r.ContentLength = -1 }, false},
		"a delete":           {named(http.MethodDelete, "/api/v1/namespaces/n/pods/p"), true},
		"of a namespace":     {named(http.MethodDelete, "/api/v1/namespaces/n"), true},
		"of a node":          {named(http.MethodDelete, "/api/v1/nodes/n"), true},
		"of all nodes":       {named(http.MethodDelete, "/api/v1/nodes"), false},
		"of all Deployments": {named(http.MethodDelete, "/apis/apps/v1/namespaces/n/deployments"), false},
		"of all in the mesh": {named(http.MethodDelete, "/apis/apps/v1/deployments"), false},
		"no body":            {func(r *http.Request) { r.Body, r.ContentLength = nil, 0 }, true},
		"in another name":    {func(r *http.Request) { r.Header.Set("Impersonate-User", "ann") }, false},
		"with its token":     {func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, true},
		"two types":          {func(r *http.Request) { r.Header["Accept"] = []string{"a", "b"} }, false},
	} {
		r, err := http.NewRequest(http.MethodPost, "http://server/api/v1/w", bytes.NewReader([]byte("a")))
		if err != nil {
			t.Fatal(err)
		}
		if row.edit(r); joinable(r) != row.want {
			t.Errorf("%s: %v", name, !row.want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s := &remote{begin: time.Now()}
		tokens := map[string]string{}
		s.whole = func(r *http.Request, items []Request) (*http.Response, error) {
			s.mu.Lock()
			for _, item := range items {
				tokens[item.Target] = r.Header.Get("Authorization")
			}
			s.mu.Unlock()
			time.Sleep(time.Millisecond)
			return plain(http.StatusServiceUnavailable, ""), nil
		}
		over := to(s)
		busy(over)
		var done sync.WaitGroup
		for i := range 4 {
			done.Go(func() {
				r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprint("http://server/api/", i),
					nil)
				r.Header.Set("Authorization", fmt.Sprint("Bearer ", i/2))
				_, _ = over.RoundTrip(r)
			})
			synctest.Wait()
		}
		done.Wait()
		want := map[string]string{"/api/0": "Bearer 0", "/api/1": "Bearer 0", "/api/2": "Bearer 1",
			"/api/3": "Bearer 1"}
		if fmt.Sprint(tokens) != fmt.Sprint(want) {
			t.Errorf("sent %v, want %v", tokens, want)
		}
	})
}
