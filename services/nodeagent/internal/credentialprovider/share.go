package credentialprovider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"
	credentialproviderv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

// flight is how a run ended that several callers may have waited for.
type flight struct {
	asked question
	said  answer
	err   error
	// kept means that it is kept for others.
	kept bool
}

// answers reports whether the flight answers a question: its own, or one to which its answer would be taken from
// memory.
func (f flight) answers(provider string, q question) bool {
	return f.asked == q || f.err == nil && f.kept && f.asked.at(provider, f.said.kind) == q.at(provider, f.said.kind)
}

// share returns the answer to a question. Of questions that would find the same answer in memory, one is put to the
// plugin while the others wait for its answer.
func (p *Providers) share(ctx context.Context, one *provider, q question,
	request credentialproviderv1.CredentialProviderRequest) (answer, error) {
	kind := credentialproviderv1.ImagePluginCacheKeyType
	if last := one.last.Load(); last != nil {
		kind = *last
	}
	var got flight
	// If the answer turns out to be another one's, only those with the same question wait for each other.
	for _, together := range []any{q.at(one.Name, kind), exactly{one.Name, q}} {
		if said, ok := p.recall(one, q); ok {
			return said, nil
		}
		joined := p.join(together, func() flight { return p.fly(one, q, request) })
		select {
		case <-ctx.Done():
			return answer{}, fmt.Errorf("has not answered yet: %w", ctx.Err())
		case <-time.After(p.limit + 10*lastWords): // not even the kernel ended it
			return answer{}, fmt.Errorf("did not end within %s", p.limit)
		case <-joined.landed:
			got = joined.flight
		}
		if got.answers(one.Name, q) {
			break
		}
	}
	return got.said, got.err
}

// exactly is what only those with the same question share.
type exactly struct {
	provider string
	question
}

// pending is a flight that is over when landed is closed.
type pending struct {
	landed chan struct{}
	flight
}

// join returns the flight under way for the key, which it starts if there is none. Unlike a singleflight.Group, it
// starts the flight before it returns, so that Wait misses none.
func (p *Providers) join(key any, fly func() flight) *pending {
	p.mu.Lock()
	defer p.mu.Unlock()
	if under := p.flights[key]; under != nil {
		return under
	}
	one := &pending{landed: make(chan struct{})}
	p.flights[key] = one
	p.running.Go(func() {
		one.flight = fly()
		p.mu.Lock()
		delete(p.flights, key)
		p.mu.Unlock()
		close(one.landed)
	})
	return one
}

// recall returns a kept answer.
func (p *Providers) recall(one *provider, q question) (answer, bool) {
	for _, kind := range kinds {
		if said, ok := p.kept.Get(q.at(one.Name, kind)); ok {
			return said.(answer), true
		}
	}
	return answer{}, false
}

// fly runs the plugin, unless there is an answer by now, and keeps its answer.
func (p *Providers) fly(one *provider, q question,
	request credentialproviderv1.CredentialProviderRequest) flight {
	if said, ok := p.recall(one, q); ok {
		return flight{asked: q, said: said, kept: true}
	}
	said, err := p.exec(one, request)
	if err != nil {
		p.Log.Warn("a credential provider failed", zap.String("plugin", one.Name), zap.String("image", q.image),
			zap.Error(err))
		return flight{asked: q, err: err}
	}
	one.last.Store(&said.kind)
	lasts := one.DefaultCacheDuration.Duration
	if said.lasts != nil {
		lasts = *said.lasts
	}
	if lasts > 0 {
		p.kept.Add(q.at(one.Name, said.kind), said, lasts)
	}
	return flight{asked: q, said: said, kept: lasts > 0}
}

// exec puts the request to the plugin. Its error has nothing of the token or the plugin's variables.
func (p *Providers) exec(one *provider, request credentialproviderv1.CredentialProviderRequest) (answer, error) {
	input, err := json.Marshal(request)
	if err != nil {
		return answer{}, err
	}
	began := time.Now()
	printed, err := p.run(p.ctx, call{binDir: p.BinDir, name: one.Name, args: one.Args, env: one.env, request: input,
		limit: p.limit})
	var said answer
	if err == nil {
		said, err = readAnswer(printed)
	}
	p.Observer.PluginRan(one.Name, time.Since(began), err == nil)
	if failed := (*failure)(nil); errors.As(err, &failed) {
		if text := shown(failed.said, one.secrets(request)); text != "" {
			return answer{}, fmt.Errorf("%w: %s", err, text)
		}
	}
	return said, err
}

// shortest is how long the value of a variable is at least that may be a secret.
const shortest = 8

// secrets are the texts that a plugin is given and that nobody else may see.
func (one *provider) secrets(request credentialproviderv1.CredentialProviderRequest) []string {
	out := []string{request.ServiceAccountToken}
	for _, env := range one.Env {
		if len(env.Value) >= shortest {
			out = append(out, strings.TrimSpace(env.Value))
		}
	}
	return out
}
