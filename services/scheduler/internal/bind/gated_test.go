package bind

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/typed/core/v1"
)

// gated calls enter before each binding; the fake client serializes its own reactors.
type gated struct {
	v1.PodsGetter
	enter func()
}

func (g *gated) Pods(namespace string) v1.PodInterface {
	return &gatedPods{PodInterface: g.PodsGetter.Pods(namespace), enter: g.enter}
}

type gatedPods struct {
	v1.PodInterface
	enter func()
}

func (p *gatedPods) Bind(ctx context.Context, b *corev1.Binding, o metav1.CreateOptions) error {
	p.enter()
	return p.PodInterface.Bind(ctx, b, o)
}
