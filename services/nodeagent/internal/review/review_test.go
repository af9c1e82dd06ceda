package review

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var here, there = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")

// api answers reviews: every token that begins with "good" belongs to ann, who may get nodes/metrics.
type api struct {
	*Reviewer
	mu       sync.Mutex
	tokens   []authenticationv1.TokenReviewSpec
	accesses []authorizationv1.SubjectAccessReviewSpec
	// now counts the reviews under way, most is their maximum.
	now, most int
	takes     time.Duration
	fails     error
	denied    bool
}

func newAPI(settings Settings) *api {
	a := &api{}
	a.Reviewer = New(Config{Settings: settings, TokenReviews: tokenReviews{a}, AccessReviews: accessReviews{a},
		Log: zap.NewNop(), Node: "n1"})
	return a
}

// begin returns when it is time to answer, or ctx has ended, with the lock held.
func (a *api) begin(ctx context.Context) error {
	a.mu.Lock()
	a.now++
	a.most = max(a.most, a.now)
	takes := a.takes
	a.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-time.After(takes):
	}
	a.mu.Lock()
	a.now--
	return cmp.Or(ctx.Err(), a.fails)
}

type tokenReviews struct{ *api }

// Create implements TokenReviews.
func (a tokenReviews) Create(ctx context.Context, review *authenticationv1.TokenReview, _ metav1.CreateOptions) (
	*authenticationv1.TokenReview, error) {
	err := a.begin(ctx)
	defer a.mu.Unlock()
	review = review.DeepCopy()
	a.tokens = append(a.tokens, review.Spec)
	if review.Status.Authenticated = strings.HasPrefix(review.Spec.Token, "good"); review.Status.Authenticated {
		review.Status.User = authenticationv1.UserInfo{Username: "ann", UID: "u", Groups: []string{"g"},
			Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}}}
	}
	if review.Spec.Token == "nobody" {
		review.Status.Authenticated = true
	}
	return review, err
}

type accessReviews struct{ *api }

// Create implements AccessReviews.
func (a accessReviews) Create(ctx context.Context, review *authorizationv1.SubjectAccessReview,
	_ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	err := a.begin(ctx)
	defer a.mu.Unlock()
	review = review.DeepCopy()
	a.accesses = append(a.accesses, review.Spec)
	review.Status.Allowed = review.Spec.User == "ann" && review.Spec.ResourceAttributes.Subresource == "metrics"
	review.Status.Denied = a.denied
	return review, err
}

func (a *api) asked() (tokens, accesses int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.tokens), len(a.accesses)
}

func (a *api) user(from netip.Addr, token string) string {
	user, err := a.User(context.Background(), from, token)
	if err != nil {
		return err.Error()
	}
	return user.Username
}

func (a *api) may(subresource string) string {
	user := authenticationv1.UserInfo{Username: "ann", Groups: []string{"g"}}
	return fmt.Sprint(a.Allowed(context.Background(), here, user, Access{"get", subresource}))
}

func TestUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(DefaultSettings())
		for _, row := range []struct {
			after time.Duration
			token string
			want  string
			asked int
		}{
			{0, "good", "ann", 1},
			{2 * time.Minute, "good", "ann", 1},
			{1, "good", "ann", 2},
			{0, "bad", ErrUnknown.Error(), 3},
			{refusedTTL, "bad", ErrUnknown.Error(), 3},
			{1, "bad", ErrUnknown.Error(), 4},
			{0, "nobody", ErrUnknown.Error(), 5},
			{0, jwtUntil(time.Now().Add(2*time.Minute + refusedTTL + 2)), ErrUnknown.Error(), 6},
			{0, strings.Repeat("x", maxToken), ErrUnknown.Error(), 7},
			{0, strings.Repeat("x", maxToken+1), ErrUnknown.Error(), 7},
		} {
			time.Sleep(row.after)
			if got := a.user(here, row.token); got != row.want {
				t.Errorf("%.20s after %v: %s, want %s", row.token, row.after, got, row.want)
			}
			if got, _ := a.asked(); got != row.asked {
				t.Errorf("%.20s after %v: the API was asked %d times, want %d", row.token, row.after, got, row.asked)
			}
		}
		if spec := a.tokens[0]; spec.Token != "good" || len(spec.Audiences) > 0 {
			t.Errorf("the API was asked for %+v, want an audience of its own", spec)
		}
	})
}

func jwtUntil(end time.Time) string { return jwt(fmt.Sprintf(`{"exp":%d}`, end.Unix())) }

// An accepted token is reviewed again as soon as it expires.
func TestExpiredToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(DefaultSettings())
		token := "good" + jwtUntil(time.Now().Add(30*time.Second))
		for _, row := range []struct {
			after time.Duration
			asked int
		}{{0, 1}, {30 * time.Second, 1}, {1, 2}, {0, 3}} {
			time.Sleep(row.after)
			if got := a.user(here, token); got != "ann" {
				t.Errorf("after %v: %s", row.after, got)
			}
			if got, _ := a.asked(); got != row.asked {
				t.Errorf("after %v: the API was asked %d times, want %d", row.after, got, row.asked)
			}
		}
	})
}

func TestTokensSwitchedOff(t *testing.T) {
	a := newAPI(Settings{TokenTTL: time.Minute})
	if got := a.user(here, "good"); got != ErrUnknown.Error() {
		t.Error(got)
	}
	if got, _ := a.asked(); got != 0 {
		t.Errorf("the API was asked %d times", got)
	}
}

func TestAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(DefaultSettings())
		for _, row := range []struct {
			after       time.Duration
			subresource string
			want        string
			asked       int
		}{
			{0, "metrics", "true <nil>", 1},
			{5 * time.Minute, "metrics", "true <nil>", 1},
			{1, "metrics", "true <nil>", 2},
			{0, "proxy", "false <nil>", 3},
			{30 * time.Second, "proxy", "false <nil>", 3},
			{1, "proxy", "false <nil>", 4},
		} {
			time.Sleep(row.after)
			if got := a.may(row.subresource); got != row.want {
				t.Errorf("%s after %v: %s, want %s", row.subresource, row.after, got, row.want)
			}
			if _, got := a.asked(); got != row.asked {
				t.Errorf("%s after %v: the API was asked %d times, want %d", row.subresource, row.after, got, row.asked)
			}
		}
		a.denied = true
		time.Sleep(time.Hour)
		if got := a.may("metrics"); got != "false <nil>" {
			t.Errorf("allowed and denied: %s", got)
		}
	})
}

// The API gets everything about the user, and an answer about one user does not apply to another that differs in
// anything.
func TestWhatIsAsked(t *testing.T) {
	a := newAPI(DefaultSettings())
	full := authenticationv1.UserInfo{Username: "ann", UID: "u", Groups: []string{"g"},
		Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}}}
	users := []authenticationv1.UserInfo{full}
	for _, change := range []func(*authenticationv1.UserInfo){
		func(u *authenticationv1.UserInfo) { u.Username = "bob" },
		func(u *authenticationv1.UserInfo) { u.UID = "w" },
		func(u *authenticationv1.UserInfo) { u.Groups = nil },
		func(u *authenticationv1.UserInfo) { u.Extra = nil },
	} {
		user := *full.DeepCopy()
		change(&user)
		users = append(users, user)
	}
	for i, user := range users {
		for range 2 {
			if _, err := a.Allowed(t.Context(), here, user, Access{"get", "stats"}); err != nil {
				t.Fatal(err)
			}
		}
		if _, got := a.asked(); got != i+1 {
			t.Errorf("user %d: the API was asked %d times", i, got)
		}
	}
	want := authorizationv1.SubjectAccessReviewSpec{User: "ann", UID: "u", Groups: []string{"g"},
		Extra: map[string]authorizationv1.ExtraValue{"k": {"v"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Version: "v1", Resource: "nodes",
			Subresource: "stats", Name: "n1"}}
	if !reflect.DeepEqual(a.accesses[0], want) {
		t.Errorf("the API was asked for %+v, want %+v", a.accesses[0], want)
	}
}

// If the API fails or gives no answer, no user is admitted, and the API is asked again the next time.
func TestFailingReviews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(DefaultSettings())
		a.fails = errors.New("no such host")
		for range 2 * refusals { // which do not count as refusals
			if got := a.user(here, "good"); got != "reviewing a token: no such host" {
				t.Fatal(got)
			}
			if got := a.may("metrics"); got != "false reviewing an access: no such host" {
				t.Fatal(got)
			}
		}
		a.fails = nil
		if got := a.user(here, "good") + " " + a.may("metrics"); got != "ann true <nil>" {
			t.Error(got)
		}
	})
}

// However many clients ask about a token at the same time, the API is asked once, and about different tokens only a
// few at a time; a client that gives up does not cancel the question of others.
func TestReviewsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(DefaultSettings())
		a.takes = time.Second
		hasty, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := a.User(hasty, here, "good0"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who does not wait gets %v", err)
		}
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				if got := a.user(here, fmt.Sprintf("good%d", i%10/9)); got != "ann" {
					t.Error(got)
				}
			})
			all.Go(func() {
				if got := a.user(there, fmt.Sprintf("good and other %d", i%20)); got != "ann" {
					t.Error(got)
				}
			})
		}
		all.Wait()
		if got, _ := a.asked(); got != 2+20 {
			t.Errorf("the API was asked %d times, want once for each of 22 tokens", got)
		}
		if a.most != askedAtOnce {
			t.Errorf("%d reviews at once, want %d", a.most, askedAtOnce)
		}
	})
}

// A client that waits too long for its turn gets the error that the API cannot be asked.
func TestTurnsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(DefaultSettings())
		a.takes = time.Minute
		var all sync.WaitGroup
		for i := range askedAtOnce {
			all.Go(func() { a.user(here, fmt.Sprint("good", i)) })
		}
		synctest.Wait()
		began := time.Now()
		if got := a.user(here, "good and late"); !strings.HasSuffix(got, context.DeadlineExceeded.Error()) ||
			time.Since(began) != askFor {
			t.Errorf("%s after %v", got, time.Since(began))
		}
		all.Wait()
	})
}

// For a client that floods the node with invalid tokens, the API is asked only about some of them; for known users
// and other addresses nothing changes.
func TestFloodOfBadTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(DefaultSettings())
		if got := a.user(here, "good"); got != "ann" {
			t.Fatal(got)
		}
		counts := map[string]int{}
		for i := range 2 * remembered {
			counts[a.user(here, fmt.Sprint("bad", i))]++
		}
		if counts[ErrUnknown.Error()] != refusals || counts[ErrTooOften.Error()] != 2*remembered-refusals {
			t.Errorf("answers: %v", counts)
		}
		if got, _ := a.asked(); got != 1+refusals {
			t.Errorf("the API was asked %d times, want %d", got, 1+refusals)
		}
		if got := a.user(here, "good") + a.user(here, "good too") + a.user(there, "good too"); got !=
			"ann"+ErrTooOften.Error()+"ann" {
			t.Error(got)
		}
		if got := a.may("proxy"); got != "false "+ErrTooOften.Error() {
			t.Errorf("rights: %s", got)
		}
		for i := range 2 * remembered { // many addresses cannot evict accepted users
			a.user(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), fmt.Sprint("bad ", i))
		}
		asked, _ := a.asked()
		if got := a.user(here, "good"); got != "ann" {
			t.Error(got)
		}
		if got, _ := a.asked(); got != asked {
			t.Error("who was let in is forgotten")
		}
		time.Sleep(time.Minute)
		if got := a.user(here, "good three"); got != "ann" {
			t.Errorf("a minute later: %s", got)
		}
	})
}
