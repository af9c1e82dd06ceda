package review

import (
	"context"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/util/cache"

	"keelson.dev/kit/contained"
)

// The maximum numbers of remembered and of concurrent questions, of tokens and of rights each.
const (
	remembered  = 1024
	askedAtOnce = 4
)

// askFor is how long a question may take, including its wait for a turn.
const askFor = 10 * time.Second

// answer is the API's answer: yes with a value, or no.
type answer[T any] struct {
	value T
	yes   bool
	// life is how long it is remembered.
	life time.Duration
}

// answers remembers the API's answers. A question is asked once at a time, however many callers wait for it.
type answers[T any] struct {
	// yes and no are separate: refusals, however many, do not evict accepted ones.
	yes, no *cache.LRUExpireCache
	flights singleflight.Group
	turns   chan struct{}
}

func newAnswers[T any]() *answers[T] {
	return &answers[T]{yes: cache.NewLRUExpireCache(remembered), no: cache.NewLRUExpireCache(remembered),
		turns: make(chan struct{}, askedAtOnce)}
}

// get returns the answer to the question of the key. A question that other callers also wait for outlives the
// request that asked it first.
func (a *answers[T]) get(ctx context.Context, key string,
	ask func(context.Context) (answer[T], error)) (answer[T], error) {
	for _, known := range []*cache.LRUExpireCache{a.yes, a.no} {
		if had, ok := known.Get(key); ok {
			return had.(answer[T]), nil
		}
	}
	result := a.flights.DoChan(key, func() (any, error) { return a.fly(context.WithoutCancel(ctx), key, ask) })
	select {
	case <-ctx.Done():
		return answer[T]{}, ctx.Err()
	case got := <-result:
		return got.Val.(answer[T]), got.Err
	}
}

// fly asks when its turn comes, and remembers the answer.
func (a *answers[T]) fly(ctx context.Context, key string,
	ask func(context.Context) (answer[T], error)) (said answer[T], err error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	select {
	case <-ctx.Done():
		return answer[T]{}, ctx.Err()
	case a.turns <- struct{}{}:
		defer func() { <-a.turns }()
	}
	if broken := contained.Do("a review", func() { said, err = ask(ctx) }); broken != nil {
		return answer[T]{}, broken
	}
	if err == nil && said.life > 0 {
		into := a.no
		if said.yes {
			into = a.yes
		}
		into.Add(key, said, said.life)
	}
	return said, err
}
