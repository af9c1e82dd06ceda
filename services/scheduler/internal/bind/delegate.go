package bind

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/election"
)

var (
	// ErrRefused is wrapped by the error of a Delegate that says that it did not bind.
	ErrRefused = errors.New("refused")
	// ErrPassed is wrapped by the error of a Delegate in whose place the Binder may bind.
	ErrPassed = errors.New("passed over")
)

// errUnbound is the error of a binding of which a Delegate says what is not so.
var errUnbound = errors.New("the extender says that the Pod is bound to the node, and it is not")

// Delegate binds Pods in place of the Binder.
type Delegate interface {
	Binds(pod *corev1.Pod) bool
	Bind(ctx context.Context, pod *corev1.Pod, node string) error
}

// delegate lets the Delegate bind, and looks whether it did.
func (b *Binder) delegate(ctx context.Context, binding Binding) error {
	err := b.Delegate.Bind(b.terms.Writing(ctx, binding.Pod), binding.Pod, binding.Node)
	switch {
	case errors.Is(err, election.ErrNotLeading), errors.Is(err, ErrRefused) && !errors.Is(err, ErrPassed):
		return err
	case err == nil:
		err = errUnbound
	}
	return b.settle(ctx, binding, err)
}
