package satoken

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Objects reads what tokens are bound to, as it was a moment ago, or, with Current, as it is. A missing object is a
// NotFound error.
type Objects interface {
	ServiceAccount(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error)
	CurrentServiceAccount(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error)
	Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	CurrentSecret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	Node(ctx context.Context, name string) (*corev1.Node, error)
}

// Verifier authenticates service-account tokens.
type Verifier struct {
	issuers   []string
	audiences []string
	keys      Keys
	objects   Objects
	record    func(ctx context.Context, secret *corev1.Secret, day string)
	now       func() time.Time
}

var _ authenticator.Token = &Verifier{}

var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.ES384, jose.ES512}

// NewVerifier believes tokens of the issuers that the keys verify. A token
// without an audience that the caller asks for must have one of audiences. record is called when the use of a token
// that a Secret holds is to be recorded, which is once a day.
func NewVerifier(issuers, audiences []string, keys Keys, objects Objects,
	record func(ctx context.Context, secret *corev1.Secret, day string)) *Verifier {
	return &Verifier{issuers: issuers, audiences: audiences, keys: keys, objects: objects, record: record,
		now: time.Now}
}

// AuthenticateToken implements authenticator.Token. A token of someone else is no error.
func (v *Verifier) AuthenticateToken(ctx context.Context, text string) (*authenticator.Response, bool, error) {
	token, err := v.parse(text)
	if err != nil || token == nil {
		return nil, false, nil //nolint:nilerr // not our kind of token: another authenticator may know it.
	}
	var public jwt.Claims
	var p private
	var l Legacy
	if err := v.verify(token, &public, &p, &l); err != nil {
		return nil, false, err
	}
	if l != (Legacy{}) || !slices.Contains(v.issuers, public.Issuer) {
		return v.authenticateLegacy(ctx, text, public, l)
	}
	audiences, err := v.meantFor(ctx, public.Audience)
	if err != nil {
		return nil, false, err
	}
	bound, err := v.bound(ctx, p)
	if err != nil {
		return nil, false, err
	}
	if err := check(public, p, bound, v.now()); err != nil {
		return nil, false, err
	}
	return &authenticator.Response{User: userOf(public, p), Audiences: audiences}, true, nil
}

// meantFor returns the audiences that the caller asks for and that a token for these audiences is meant for.
func (v *Verifier) meantFor(ctx context.Context, audiences jwt.Audience) (authenticator.Audiences, error) {
	asked, ok := authenticator.AudiencesFrom(ctx)
	if !ok {
		asked = v.audiences
	}
	both := common(audiences, asked)
	if len(both) == 0 {
		return nil, fmt.Errorf("the token is for %q, not for %q", audiences, asked)
	}
	return both, nil
}

// parse returns nil for what is not a token of one of our issuers.
func (v *Verifier) parse(text string) (*jwt.JSONWebToken, error) {
	if strings.Count(text, ".") != 2 {
		return nil, nil
	}
	token, err := jwt.ParseSigned(text, algorithms)
	if err != nil {
		return nil, fmt.Errorf("parsing a token: %w", err)
	}
	var claims jwt.Claims
	if err := token.UnsafeClaimsWithoutVerification(&claims); err != nil {
		return nil, fmt.Errorf("parsing a token's claims: %w", err)
	}
	if claims.Issuer != LegacyIssuer && !slices.Contains(v.issuers, claims.Issuer) {
		return nil, nil
	}
	return token, nil
}

// verify reads the claims of a token whose signature one of the keys confirms.
func (v *Verifier) verify(token *jwt.JSONWebToken, claims ...any) error {
	if len(token.Headers) == 1 && token.Headers[0].KeyID != "" {
		if key, ok := v.keys[token.Headers[0].KeyID]; ok {
			return token.Claims(key, claims...)
		}
	}
	err := errors.New("no key verifies the token")
	for _, key := range v.keys {
		if err = token.Claims(key, claims...); err == nil {
			return nil
		}
	}
	return fmt.Errorf("verifying a token: %w", err)
}

// bound reads what the token names; an object that is gone stays nil.
func (v *Verifier) bound(ctx context.Context, p private) (Bound, error) {
	k := p.Kubernetes
	var b Bound
	var errs [4]error
	b.ServiceAccount, errs[0] = v.objects.ServiceAccount(ctx, k.Namespace, k.ServiceAccount.Name)
	if k.Pod != nil {
		b.Pod, errs[1] = v.objects.Pod(ctx, k.Namespace, k.Pod.Name)
	}
	if k.Secret != nil {
		b.Secret, errs[2] = v.objects.Secret(ctx, k.Namespace, k.Secret.Name)
	}
	if k.Node != nil && k.Pod == nil {
		b.Node, errs[3] = v.objects.Node(ctx, k.Node.Name)
	}
	for _, err := range errs {
		if err != nil && !apierrors.IsNotFound(err) {
			return Bound{}, fmt.Errorf("reading what a token is bound to: %w", err)
		}
	}
	return b, nil
}

func userOf(public jwt.Claims, p private) user.Info {
	k := p.Kubernetes
	info := serviceaccount.ServiceAccountInfo{
		Namespace:    k.Namespace,
		Name:         k.ServiceAccount.Name,
		UID:          string(k.ServiceAccount.UID),
		CredentialID: "JTI=" + public.ID,
	}
	if k.Pod != nil {
		info.PodName, info.PodUID = k.Pod.Name, string(k.Pod.UID)
	}
	if k.Node != nil {
		info.NodeName, info.NodeUID = k.Node.Name, string(k.Node.UID)
	}
	return info.UserInfo()
}
