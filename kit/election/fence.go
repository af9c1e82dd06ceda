package election

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"keelson.dev/kit/batch"
)

// ErrNotLeading is wrapped by the error of a write that was not sent because its role is not held, or no longer.
var ErrNotLeading = errors.New("not leading")

// Fence returns a copy of the connection over which only a leader writes: a request that is not a read is sent
// only if its context comes from the one that lead got from Run, and the Lease still holds at that moment. A
// process that was paused for longer than its Lease thus writes nothing when it continues, even if it was about
// to write. A refused write fails with ErrNotLeading.
func Fence(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return fence{next} })
	return config
}

// FenceJoined is Fence over a connection on which writes go together (batch.Over). The Lease must hold as well when a
// write that has waited for others is sent.
func FenceJoined(config *rest.Config) *rest.Config { return Fence(batch.Over(config, mayWrite)) }

// WithTermOf returns a copy of ctx that may write only during the term of the other context. It serves work that
// must not end with the term, but must not write after it either.
func WithTermOf(ctx, leading context.Context) context.Context {
	return context.WithValue(ctx, termKey{}, leading.Value(termKey{}))
}

// termKey is where lead's context carries its *term.
type termKey struct{}

type fence struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (f fence) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		if err := mayWrite(r.Context()); err != nil {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, err
		}
	}
	return f.next.RoundTrip(r)
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (f fence) WrappedRoundTripper() http.RoundTripper { return f.next }

var _ utilnet.RoundTripperWrapper = fence{}

func mayWrite(ctx context.Context) error {
	t, _ := ctx.Value(termKey{}).(*term)
	if t == nil {
		return fmt.Errorf("%w: the write belongs to no role", ErrNotLeading)
	}
	return t.check()
}
