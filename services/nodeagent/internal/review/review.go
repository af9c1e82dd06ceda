// Package review asks the API server for the user of a bearer token (TokenReview) and what a user may do with the
// node (SubjectAccessReview), and remembers the answers for a while. Every client of the node API can cause such
// questions. So the remembered and the concurrent questions are bounded, and so is how often the API refuses one
// network address: beyond that, the API is not asked.
package review

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
)

// The errors of a client; any other error means that the API could not be asked.
var (
	// ErrUnknown means that the token belongs to no user.
	ErrUnknown = errors.New("the bearer token is not valid")
	// ErrTooOften means that the API is not asked because it has refused this network address too often.
	ErrTooOften = errors.New("the API server has refused this network address too often: try again in some seconds")
)

// maxToken is the size of the largest token that the API is asked about.
const maxToken = 16 << 10

// refusedTTL is how long an invalid token is remembered: it may become valid.
const refusedTTL = 10 * time.Second

// TokenReviews asks the API server for the users of tokens; a client's interface of the same name implements it.
type TokenReviews interface {
	Create(ctx context.Context, review *authenticationv1.TokenReview, options metav1.CreateOptions) (
		*authenticationv1.TokenReview, error)
}

// AccessReviews asks the API server what users may do; a client's SubjectAccessReviewInterface implements it.
type AccessReviews interface {
	Create(ctx context.Context, review *authorizationv1.SubjectAccessReview, options metav1.CreateOptions) (
		*authorizationv1.SubjectAccessReview, error)
}

// Config is what a Reviewer needs.
type Config struct {
	Settings
	TokenReviews  TokenReviews
	AccessReviews AccessReviews
	Log           *zap.Logger
	// Node is the name of the node.
	Node string
}

// Access is what a user wants to do with the node: a verb of the API, and the subresource of nodes.
type Access struct{ Verb, Subresource string }

// Reviewer asks the API, and remembers the answers. Create it with New.
type Reviewer struct {
	Config
	// salt keeps tokens out of the memory of answers.
	salt   []byte
	users  *answers[authenticationv1.UserInfo]
	rights *answers[struct{}]
	// failing means that the last question to the API failed.
	failing atomic.Bool

	mu     sync.Mutex // guards the changes of blamed
	blamed *cache.LRUExpireCache
}

// New returns a Reviewer that remembers nothing yet.
func New(config Config) *Reviewer {
	salt := make([]byte, sha256.Size)
	_, _ = rand.Read(salt) // this does not fail: the process would end
	return &Reviewer{Config: config, salt: salt, users: newAnswers[authenticationv1.UserInfo](),
		rights: newAnswers[struct{}](), blamed: cache.NewLRUExpireCache(remembered)}
}

// User returns the user of the token.
func (r *Reviewer) User(ctx context.Context, from netip.Addr, token string) (authenticationv1.UserInfo, error) {
	if !r.Tokens || len(token) > maxToken {
		return authenticationv1.UserInfo{}, ErrUnknown
	}
	said, err := r.users.get(ctx, r.key([]byte(token)),
		func(ctx context.Context) (answer[authenticationv1.UserInfo], error) {
			return ask(r, from, func() (answer[authenticationv1.UserInfo], error) { return r.reviewToken(ctx, token) })
		})
	if err == nil && !said.yes {
		err = ErrUnknown
	}
	return said.value, err
}

// Allowed reports whether the user may have the access.
func (r *Reviewer) Allowed(ctx context.Context, from netip.Addr, user authenticationv1.UserInfo,
	access Access) (bool, error) {
	spec := r.specOf(user, access)
	text, err := json.Marshal(spec)
	if err != nil {
		return false, fmt.Errorf("encoding the review: %w", err)
	}
	said, err := r.rights.get(ctx, r.key(text), func(ctx context.Context) (answer[struct{}], error) {
		return ask(r, from, func() (answer[struct{}], error) { return r.reviewAccess(ctx, spec) })
	})
	return said.yes, err
}

func (r *Reviewer) key(of []byte) string {
	sum := hmac.New(sha256.New, r.salt)
	_, _ = sum.Write(of)
	return string(sum.Sum(nil))
}

func (r *Reviewer) reviewToken(ctx context.Context, token string) (answer[authenticationv1.UserInfo], error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	review, err := r.TokenReviews.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return answer[authenticationv1.UserInfo]{}, fmt.Errorf("reviewing a token: %w", err)
	}
	if !review.Status.Authenticated || review.Status.User.Username == "" {
		return answer[authenticationv1.UserInfo]{life: min(r.TokenTTL, refusedTTL)}, nil
	}
	return answer[authenticationv1.UserInfo]{value: review.Status.User, yes: true,
		life: lifeOf(token, time.Now(), r.TokenTTL)}, nil
}

func (r *Reviewer) specOf(user authenticationv1.UserInfo, access Access) authorizationv1.SubjectAccessReviewSpec {
	spec := authorizationv1.SubjectAccessReviewSpec{User: user.Username, UID: user.UID, Groups: user.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: access.Verb, Version: "v1", Resource: "nodes",
			Subresource: access.Subresource, Name: r.Node}}
	for name, values := range user.Extra {
		if spec.Extra == nil {
			spec.Extra = map[string]authorizationv1.ExtraValue{}
		}
		spec.Extra[name] = authorizationv1.ExtraValue(values)
	}
	return spec
}

func (r *Reviewer) reviewAccess(ctx context.Context,
	spec authorizationv1.SubjectAccessReviewSpec) (answer[struct{}], error) {
	review, err := r.AccessReviews.Create(ctx,
		&authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return answer[struct{}]{}, fmt.Errorf("reviewing an access: %w", err)
	}
	if !review.Status.Allowed || review.Status.Denied {
		return answer[struct{}]{life: r.DeniedTTL}, nil
	}
	return answer[struct{}]{yes: true, life: r.AllowedTTL}, nil
}

// ask asks the API unless it has refused the address too often.
func ask[T any](r *Reviewer, from netip.Addr, question func() (answer[T], error)) (answer[T], error) {
	who := neighbours(from)
	if !r.charge(who) {
		return answer[T]{}, ErrTooOften
	}
	said, err := question()
	if err != nil || said.yes {
		r.spare(who)
	}
	if failed := err != nil; r.failing.Swap(failed) != failed && failed {
		r.Log.Warn("the API server cannot be asked who may use the node API", zap.Error(err))
	}
	return said, err
}

// charge counts a question of the addresses; false if too many were refused.
func (r *Reviewer) charge(who netip.Prefix) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	next, ok := r.blameOf(who).with(time.Now())
	if ok {
		r.blamed.Add(who, next, refusals*refusalEvery)
	}
	return ok
}

// spare takes back a question.
func (r *Reviewer) spare(who netip.Prefix) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blamed.Add(who, r.blameOf(who).without(), refusals*refusalEvery)
}

func (r *Reviewer) blameOf(who netip.Prefix) blame {
	had, _ := r.blamed.Get(who)
	b, _ := had.(blame)
	return b
}
