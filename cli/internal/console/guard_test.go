package console

import (
	"context"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes/fake"

	"keelson.dev/cli/internal/view"
)

// Only the user who knows the token is answered, for the loopback address, by GET, from the page itself.
func TestWhoIsAnswered(t *testing.T) {
	s := serve(t, fake.NewClientset(objects()...))
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	noToken := func(r *http.Request) { r.Header.Del("Authorization") }
	method := func(name string) func(*http.Request) { return func(r *http.Request) { r.Method = name } }
	sites := func(site, mode string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", site)
			r.Header.Set("Sec-Fetch-Mode", mode)
		}
	}
	const explain, static = "/api/explain?topic=pods&namespace=n&name=web-1", "/main.js"
	for name, row := range map[string]struct {
		path   string
		change func(*http.Request)
		want   int
	}{
		"the page":                 {explain, sites("same-origin", "cors"), 200},
		"a program":                {explain, func(*http.Request) {}, 200},
		"without a token":          {explain, noToken, 401},
		"with another token":       {explain, header("Authorization", "Bearer THETOKEX"), 401},
		"with a part of the token": {explain, header("Authorization", "Bearer THETOKE"), 401},
		"with an empty token":      {explain, header("Authorization", "Bearer "), 401},
		"with the bare token":      {explain, header("Authorization", token), 401},
		"with the token as a cookie": {explain, func(r *http.Request) {
			noToken(r)
			r.Header.Set("Cookie", "token="+token)
		}, 401},
		"a stream without a token":      {"/api/stream?topics=pods", noToken, 401},
		"logs without a token":          {"/api/logs", noToken, 401},
		"something else without one":    {"/api/nosuch", noToken, 401},
		"something else":                {"/api/nosuch", func(*http.Request) {}, 404},
		"a name that was rebound":       {explain, host("evil.example:80"), 421},
		"a name that begins alike":      {explain, host("127.0.0.1.evil.example"), 421},
		"another address":               {explain, host("192.0.2.1:80"), 421},
		"localhost, a forwarded port":   {explain, host("localhost:8080"), 200},
		"IPv6":                          {explain, host("[::1]:80"), 200},
		"without a port":                {explain, host("127.0.0.1"), 200},
		"static, a name that was bound": {static, host("evil.example"), 421},
		"POST":                          {explain, method(http.MethodPost), 405},
		"PUT":                           {explain, method(http.MethodPut), 405},
		"DELETE":                        {static, method(http.MethodDelete), 405},
		"HEAD":                          {static, method(http.MethodHead), 405},
		"OPTIONS, of another site":      {explain, method(http.MethodOptions), 405},
		"another site":                  {explain, sites("cross-site", "cors"), 403},
		"a link of another site":        {explain, sites("cross-site", "navigate"), 403},
		"another port of the machine":   {explain, sites("same-site", "no-cors"), 403},
		"static, as another's script":   {static, sites("cross-site", "no-cors"), 403},
		"the page, by a link":           {"/", sites("cross-site", "navigate"), 200},
		"the page, as it is typed":      {"/", sites("none", "navigate"), 200},
	} {
		t.Run(name, func(t *testing.T) {
			response := s.ask(row.path, row.change)
			text := s.reads(response)
			if response.StatusCode != row.want {
				t.Errorf("%d, want %d: %s", response.StatusCode, row.want, text)
			}
			if refused := response.StatusCode != 200; refused && strings.Contains(text, "web-1") {
				t.Errorf("it is refused, and answered: %s", text)
			}
			if response.StatusCode == 405 && response.Header.Get("Allow") != "GET" {
				t.Errorf("it allows %q", response.Header.Get("Allow"))
			}
		})
	}
}

// Every answer has the headers that keep other sites and other scripts out, and none that lets one in.
func TestHeaders(t *testing.T) {
	s := serve(t, fake.NewClientset())
	for _, path := range []string{"/", "/main.js", "/nosuch", "/api/about", "/api/stream?topics=pods"} {
		response := s.ask(path)
		policy := response.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'",
			"base-uri 'none'", "form-action 'none'", "connect-src 'self'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: the policy lacks %s: %s", path, want, policy)
			}
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
			t.Errorf("%s: the policy is %s", path, policy)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
			"Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
			"Cross-Origin-Opener-Policy": "same-origin", "Access-Control-Allow-Origin": "", "Set-Cookie": ""} {
			if got := response.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
	if stored := s.ask("/api/about").Header.Get("Cache-Control"); stored != "no-store" {
		t.Errorf("an answer may be stored: %q", stored)
	}
}

// A token is long, is another each time, and needs no escape in an address.
func TestToken(t *testing.T) {
	a, b := NewToken(), NewToken()
	if a == b || !regexp.MustCompile(`^[A-Z0-9]{26,}$`).MatchString(a) {
		t.Errorf("%s, %s", a, b)
	}
}

// pipes is a listener whose connections are in memory, without a buffer.
type pipes struct {
	conns chan net.Conn
	close sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	conn, open := <-p.conns
	if !open {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p *pipes) Close() error {
	p.close.Do(func() { close(p.conns) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// A page that does not read what it is sent is dropped, and leaves its place to others. The console ends with its
// context, whatever pages do.
func TestAPageThatDoesNotReadIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := New(ctx, Config{Client: fake.NewClientset(), Daemons: func(context.Context) ([]view.Daemon, []view.Leader,
			string) {
			return nil, nil, ""
		}}, token)
		listener, ended := &pipes{conns: make(chan net.Conn)}, make(chan error, 1)
		go func() { ended <- c.Serve(ctx, listener) }()
		connect := func() net.Conn {
			mine, its := net.Pipe()
			listener.conns <- its
			request := "GET /api/stream?topics=daemons HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + token +
				"\r\n\r\n"
			if _, err := mine.Write([]byte(request)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return mine
		}
		defer connect().Close()
		if n := len(c.streams); n != 1 {
			t.Errorf("%d streams", n)
		}
		time.Sleep(writeLimit + time.Second)
		synctest.Wait()
		if n := len(c.streams); n != 0 {
			t.Errorf("%d streams when the page has not read for %s", n, writeLimit)
		}
		defer connect().Close()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
