package webhookcall_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	apiserverwebhook "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"

	"keelson.dev/services/apiserver/internal/httpproxy"
	"keelson.dev/services/apiserver/internal/webhookcall"
)

// saying answers in place of a webhook.
type saying func() *http.Response

// RoundTrip implements http.RoundTripper.
func (s saying) RoundTrip(*http.Request) (*http.Response, error) { return s(), nil }

// identify chooses the connection to any webhook.
func identify(config *rest.Config) apiserverwebhook.AuthenticationInfoResolverWrapper {
	return func(apiserverwebhook.AuthenticationInfoResolver) apiserverwebhook.AuthenticationInfoResolver {
		return &apiserverwebhook.AuthenticationInfoResolverDelegator{
			ClientConfigForFunc:        func(string) (*rest.Config, error) { return config, nil },
			ClientConfigForServiceFunc: func(string, string, int) (*rest.Config, error) { return config, nil },
		}
	}
}

// transport is what a webhook is reached by, which answers what it is told.
func transport(t *testing.T, answers saying) http.RoundTripper {
	t.Helper()
	resolver := webhookcall.Bounded(identify(&rest.Config{}), webhookcall.Config{MaxAnswer: webhookcall.MaxAnswer})(nil)
	config, err := resolver.ClientConfigFor("a:443")
	if err != nil {
		t.Fatal(err)
	}
	return config.WrapTransport(answers)
}

func ask(ctx context.Context, t *testing.T, by http.RoundTripper) (int, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://a/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := by.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return len(body), err
}

func TestAnswers(t *testing.T) {
	long := func(n, told int64) saying {
		return func() *http.Response {
			return &http.Response{StatusCode: http.StatusOK, ContentLength: told,
				Body: io.NopCloser(strings.NewReader(strings.Repeat("x", int(n))))}
		}
	}
	status := func(code int) saying {
		return func() *http.Response {
			return &http.Response{StatusCode: code, Status: strconv.Itoa(code), Body: http.NoBody}
		}
	}
	for _, row := range []struct {
		name    string
		answers saying
		want    string
	}{
		{"the longest", long(webhookcall.MaxAnswer, webhookcall.MaxAnswer), ""},
		{"one byte more, told", long(1, webhookcall.MaxAnswer+1), "its answer has 5242881 bytes, more than 5242880"},
		{"one byte more, not told", long(webhookcall.MaxAnswer+1, -1), "its answer has more than 5242880 bytes"},
		{"no redirect", status(299), ""},
		{"the first redirect", status(300), "no redirect is followed"},
		{"a redirect", status(http.StatusTemporaryRedirect), "it answers 307, and no redirect is followed"},
		{"the last redirect", status(399), "no redirect is followed"},
		{"an error", status(400), ""},
	} {
		_, err := ask(t.Context(), t, transport(t, row.answers))
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
	}
}

// endless is a body that is longer than small and then waits.
type endless struct{ released chan struct{} }

// Read implements io.Reader.
func (e endless) Read(p []byte) (int, error) {
	select {
	case <-e.released:
		return 0, io.EOF
	default:
		return len(p), nil
	}
}

// Of large answers few are read at a time, the others wait with their requests, and small ones do not wait.
func TestLargeAnswersTakeTurns(t *testing.T) {
	released := make(chan struct{})
	var body io.Reader
	by := transport(t, func() *http.Response {
		return &http.Response{StatusCode: http.StatusOK, ContentLength: -1, Body: io.NopCloser(body)}
	})
	open := func(ctx context.Context, b io.Reader) *http.Response {
		body = b
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://a/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := by.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	var held []*http.Response
	much := make([]byte, 256<<10)
	for range 8 {
		response := open(t.Context(), endless{released})
		for range 2 {
			if _, err := io.ReadFull(response.Body, much); err != nil {
				t.Fatal(err)
			}
		}
		held = append(held, response)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ninth := open(ctx, endless{released})
	defer ninth.Body.Close()
	if _, err := io.ReadFull(ninth.Body, much); err != nil {
		t.Errorf("the small part of a ninth: %v", err)
	}
	cancel()
	if _, err := ninth.Body.Read(much); err == nil {
		t.Error("a ninth large answer is read")
	}
	if n, err := ask(t.Context(), t, transport(t, func() *http.Response {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("small"))}
	})); n != 5 || err != nil {
		t.Errorf("a small one: %d, %v", n, err)
	}
	if err := held[0].Body.Close(); err != nil {
		t.Error(err)
	}
	tenth := open(t.Context(), endless{released})
	for range 2 {
		if _, err := io.ReadFull(tenth.Body, much); err != nil {
			t.Errorf("after one has ended: %v", err)
		}
	}
	for _, response := range append(held[1:], tenth) {
		_ = response.Body.Close()
	}
}

// A Service does not lead to the apiserver's own machine, whatever its endpoints say; a URL may.
func TestAddressesOfServices(t *testing.T) {
	resolver := webhookcall.Bounded(identify(&rest.Config{}),
		webhookcall.Config{MaxAnswer: webhookcall.MaxAnswer, CheckAddress: httpproxy.CheckAddress})(nil)
	config, err := resolver.ClientConfigForService("hook", "default", 443)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := config.Dial(t.Context(), "tcp", "127.0.0.1:1"); err == nil ||
		!strings.Contains(err.Error(), "no request is handed on to 127.0.0.1") {
		t.Errorf("the machine's own address: %v", err)
	}
	if config, err := resolver.ClientConfigFor("localhost:443"); err != nil || config.Dial != nil {
		t.Errorf("a URL: %v", err)
	}
}
