package objectcache

import (
	"context"
	"fmt"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/volume"
)

// tokens keeps the tokens that were issued for Pods, so that setting up a volume again requests none.
type tokens struct {
	client kubernetes.Interface
	mu     sync.Mutex // guards held
	held   map[tokenKey]held
}

type tokenKey struct {
	pod      types.UID
	account  string
	audience string
	lifetime time.Duration
}

type held struct {
	volume.Token
	expires time.Time
}

// ServiceAccountToken implements volume.Sources. If a renewal fails while the old token is still valid, it returns
// the old one, to be renewed soon.
func (c *Cache) ServiceAccountToken(ctx context.Context, pod *corev1.Pod, audience string,
	lifetime time.Duration) (volume.Token, error) {
	key := tokenKey{pod.UID, pod.Spec.ServiceAccountName, audience, lifetime}
	old, ok := c.tokens.lookup(key)
	now := time.Now()
	if ok && now.Before(old.RefreshAt) {
		return old.Token, nil
	}
	fresh, err := c.tokens.request(ctx, pod, key)
	if err != nil {
		if ok && now.Add(tokenRetry).Before(old.expires) {
			return volume.Token{Value: old.Value, RefreshAt: now.Add(tokenRetry)}, nil
		}
		return volume.Token{}, fmt.Errorf("failed to fetch token: %w", err)
	}
	c.tokens.keep(key, fresh)
	return fresh.Token, nil
}

func (t *tokens) request(ctx context.Context, pod *corev1.Pod, key tokenKey) (held, error) {
	seconds := int64(key.lifetime / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &seconds,
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name,
			UID: pod.UID},
	}}
	if key.audience != "" {
		request.Spec.Audiences = []string{key.audience}
	}
	issued := time.Now()
	err := failpoint.Around("nodeagent/token.create", func() (err error) {
		request, err = t.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, key.account, request,
			metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return held{}, err
	}
	expires := request.Status.ExpirationTimestamp.Time
	return held{
		Token:   volume.Token{Value: request.Status.Token, RefreshAt: refreshAt(issued, expires)},
		expires: expires,
	}, nil
}

func (t *tokens) lookup(key tokenKey) (held, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	token, ok := t.held[key]
	return token, ok
}

func (t *tokens) keep(key tokenKey, token held) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held[key] = token
}

func (t *tokens) forget(pod types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key := range t.held {
		if key.pod == pod {
			delete(t.held, key)
		}
	}
}
