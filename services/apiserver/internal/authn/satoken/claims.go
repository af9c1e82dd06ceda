// Package satoken makes and verifies service-account tokens: JSON web tokens
// bound to a service account and, optionally, to a Pod, Secret or Node.
package satoken

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"keelson.dev/kit/seconds"
)

const (
	// clockSkew is how far the clocks of the mesh may be apart.
	clockSkew = 10 * time.Second
	// deletionLeeway is how long a token outlives the deletion time of what it
	// is bound to, so that a terminating Pod can finish its work.
	deletionLeeway = 60 * time.Second
)

// ref names an object at one point of its life.
type ref struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid,omitempty"`
}

// private are the claims beyond those of RFC 7519.
type private struct {
	Kubernetes struct {
		Namespace      string           `json:"namespace,omitempty"`
		ServiceAccount ref              `json:"serviceaccount,omitzero"`
		Pod            *ref             `json:"pod,omitempty"`
		Secret         *ref             `json:"secret,omitempty"`
		Node           *ref             `json:"node,omitempty"`
		WarnAfter      *jwt.NumericDate `json:"warnafter,omitempty"`
	} `json:"kubernetes.io,omitzero"`
}

// Bound are the objects that a token was asked for. Only ServiceAccount is always set.
type Bound struct {
	ServiceAccount *corev1.ServiceAccount
	Pod            *corev1.Pod
	Secret         *corev1.Secret
	Node           *corev1.Node
}

// claimsFor decides what a token says.
func claimsFor(b Bound, spec authenticationv1.TokenRequestSpec, issuer, id string, now time.Time) (jwt.Claims,
	private) {
	account := b.ServiceAccount
	lifetime := seconds.Of(*spec.ExpirationSeconds)
	public := jwt.Claims{
		Issuer:    issuer,
		Subject:   serviceaccount.MakeUsername(account.Namespace, account.Name),
		Audience:  jwt.Audience(spec.Audiences),
		IssuedAt:  jwt.NewNumericDate(now),
		NotBefore: jwt.NewNumericDate(now),
		Expiry:    jwt.NewNumericDate(now.Add(lifetime)),
		ID:        id,
	}
	var p private
	p.Kubernetes.Namespace = account.Namespace
	p.Kubernetes.ServiceAccount = ref{account.Name, account.UID}
	if b.Pod != nil {
		p.Kubernetes.Pod = &ref{b.Pod.Name, b.Pod.UID}
	}
	if b.Secret != nil {
		p.Kubernetes.Secret = &ref{b.Secret.Name, b.Secret.UID}
	}
	if b.Node != nil {
		p.Kubernetes.Node = &ref{b.Node.Name, b.Node.UID}
	}
	return public, p
}

// check decides whether claims with a good signature are believed: at this
// time, and with the objects that the token is bound to as they are now. A nil
// object does not exist any more.
func check(public jwt.Claims, p private, b Bound, now time.Time) error {
	if err := public.ValidateWithLeeway(jwt.Expected{Time: now}, clockSkew); err != nil {
		return fmt.Errorf("checking the token's times: %w", err)
	}
	k := p.Kubernetes
	if k.Namespace == "" || k.ServiceAccount.Name == "" || k.ServiceAccount.UID == "" {
		return fmt.Errorf("the token names no service account")
	}
	if public.Subject != serviceaccount.MakeUsername(k.Namespace, k.ServiceAccount.Name) {
		return fmt.Errorf("the token's subject is not its service account")
	}
	if err := stillThere("service account", &k.ServiceAccount, b.ServiceAccount, now); err != nil {
		return err
	}
	if err := stillThere("pod", k.Pod, b.Pod, now); err != nil {
		return err
	}
	if err := stillThere("secret", k.Secret, b.Secret, now); err != nil {
		return err
	}
	if k.Pod != nil {
		// The Node of a Pod-bound token only informs: the Pod's life bounds the token.
		return nil
	}
	return stillThere("node", k.Node, b.Node, now)
}

// stillThere fails when the object that r names is gone, has been replaced, or
// was deleted a while ago.
func stillThere[T any, O interface {
	*T
	metav1.Object
}](kind string, r *ref, obj O, now time.Time) error {
	if r == nil {
		return nil
	}
	if obj == nil {
		return fmt.Errorf("the token's %s %q does not exist any more", kind, r.Name)
	}
	if r.UID != obj.GetUID() {
		return fmt.Errorf("the token's %s %q has been replaced by another of that name", kind, r.Name)
	}
	if deleted := obj.GetDeletionTimestamp(); deleted != nil && now.After(deleted.Add(deletionLeeway)) {
		return fmt.Errorf("the token's %s %q has been deleted", kind, r.Name)
	}
	return nil
}

// common are the audiences that both the token and the server know.
func common(token jwt.Audience, server []string) []string {
	var both []string
	for _, a := range token {
		if slices.Contains(server, a) {
			both = append(both, a)
		}
	}
	return both
}
