package authn

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/user"
)

// from is a request with a token from an address.
func from(address, token string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = address + ":1"
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// TestFloodOfUnknownTokens: one address has so many requests wait for others at most, and locks no client out: neither
// one from another address, nor one with a token that the server knows.
func TestFloodOfUnknownTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type answer = *authenticator.Response
		own := authenticator.TokenFunc(func(_ context.Context, token string) (answer, bool, error) {
			return &authenticator.Response{User: &user.DefaultInfo{Name: "own"}}, token == "own", nil
		})
		release := make(chan struct{})
		silent := authenticator.TokenFunc(func(ctx context.Context, token string) (answer, bool, error) {
			if token != "good" {
				select {
				case <-release:
				case <-ctx.Done():
				}
				return nil, false, nil
			}
			return &authenticator.Response{User: &user.DefaultInfo{Name: "good"}}, true, nil
		})
		all, err := New(Config{ServiceAccounts: own, Webhook: silent, Anonymous: anonymous.NewAuthenticator(nil)})
		if err != nil {
			t.Fatal(err)
		}
		const most = lookUps / 4
		waiting, ended := 0, make(chan struct{}, 2*most)
		for n := range most {
			waiting++
			go func() {
				_, _, _ = all.Request.AuthenticateRequest(from("192.0.2.1", fmt.Sprint("made-up-", n)))
				ended <- struct{}{}
			}()
		}
		synctest.Wait()
		if len(ended) > 0 {
			t.Fatalf("%d of the first %d did not wait", len(ended), most)
		}
		for _, row := range []struct {
			name, address, token string
			want                 string
		}{
			{"one more", "192.0.2.1", "one-more", ""},
			{"the same address in another form", "[::ffff:192.0.2.1]", "one-more", ""},
			{"a good one from there", "192.0.2.1", "good", ""},
			{"one that the server knows from there", "192.0.2.1", "own", "own"},
			{"a good one from elsewhere", "192.0.2.2", "good", "good"},
			{"none from there", "192.0.2.1", "", user.Anonymous},
		} {
			request := from(row.address, row.token)
			if row.token == "" {
				request.Header.Del("Authorization")
			}
			response, ok, err := all.Request.AuthenticateRequest(request)
			switch {
			case row.want == "" && (ok || err == nil || !strings.Contains(err.Error(), errPlaceIsFull.Error())):
				t.Errorf("%s: %v, %v", row.name, response, err)
			case row.want != "" && (!ok || response.User.GetName() != row.want):
				t.Errorf("%s: %v, %v", row.name, response, err)
			}
		}
		close(release)
		for range waiting {
			<-ended
		}
		if _, ok, err := all.Request.AuthenticateRequest(from("192.0.2.1", "good")); !ok {
			t.Errorf("afterwards: %v", err)
		}
		time.Sleep(time.Minute) // of the bubble's clock: what the caches started ends
	})
}

// TestLengthOfTokens: the server does not examine a token that is longer than any.
func TestLengthOfTokens(t *testing.T) {
	looked := 0
	all, err := New(Config{Webhook: authenticator.TokenFunc(
		func(context.Context, string) (*authenticator.Response, bool, error) {
			looked++
			return &authenticator.Response{User: &user.DefaultInfo{Name: "ann"}}, true, nil
		})})
	if err != nil {
		t.Fatal(err)
	}
	for length, want := range map[int]bool{maxToken: true, maxToken + 1: false} {
		looked = 0
		_, ok, err := all.Request.AuthenticateRequest(from("192.0.2.1", strings.Repeat("x", length)))
		if ok != want || (looked == 1) != want || want != (err == nil) {
			t.Errorf("%d bytes: %v, looked at %d times, %v", length, ok, looked, err)
		}
	}
}

// TestEverybodyIsAuthenticatedOnce: who is in the group already is not in it twice.
func TestEverybodyIsAuthenticatedOnce(t *testing.T) {
	for _, groups := range [][]string{nil, {"a"}, {user.AllAuthenticated, "a"}} {
		given := strings.Join(groups, " ")
		all, err := New(Config{Webhook: authenticator.TokenFunc(
			func(context.Context, string) (*authenticator.Response, bool, error) {
				return &authenticator.Response{User: &user.DefaultInfo{Groups: groups}}, true, nil
			})})
		if err != nil {
			t.Fatal(err)
		}
		response, _, err := all.Token.AuthenticateToken(t.Context(), "t")
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(response.User.GetGroups(), " ")
		if strings.Count(got, user.AllAuthenticated) != 1 || strings.Join(groups, " ") != given {
			t.Errorf("of %q: %q", given, got)
		}
	}
}
