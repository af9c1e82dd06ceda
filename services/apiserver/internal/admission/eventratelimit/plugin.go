// Package eventratelimit is the admission plugin EventRateLimit: who writes Events faster than the operator wants is
// told to wait. It is off unless an operator asks for it.
package eventratelimit

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/lru"

	"keelson.dev/services/apiserver/internal/admission/pluginconfig"
)

// PluginName is the name by which Kubernetes knows the plugin.
const PluginName = "EventRateLimit"

// Plugin counts Events.
type Plugin struct {
	*admission.Handler
	limits []*buckets
}

var _ admission.ValidationInterface = &Plugin{}

// Register makes the plugin known to the chain.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(from io.Reader) (admission.Interface, error) {
		data, err := pluginconfig.Content(from)
		if err != nil {
			return nil, err
		}
		return newPlugin(data)
	})
}

func newPlugin(data []byte) (*Plugin, error) {
	c, err := parse(data)
	if err != nil {
		return nil, err
	}
	p := &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}
	for _, l := range c.Limits {
		p.limits = append(p.limits, &buckets{limit: l, of: lru.New(int(l.CacheSize))})
	}
	return p, nil
}

// Validate counts an Event that is to be stored, and refuses it where there are too many.
func (p *Plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	e, isEvent := a.GetObject().(*corev1.Event)
	if !isEvent || a.IsDryRun() {
		return nil
	}
	for _, b := range p.limits {
		if whose := key(b.limit.Type, a, e); !b.take(whose) {
			return apierrors.NewTooManyRequestsError(fmt.Sprintf("limit reached on type %s for key %s", b.limit.Type,
				whose))
		}
	}
	return nil
}

// key is whose limit an Event counts against.
func key(of limitType, a admission.Attributes, e *corev1.Event) string {
	switch of {
	case namespace:
		return a.GetNamespace()
	case user:
		return a.GetUserInfo().GetName()
	case sourceAndObject:
		o := &e.InvolvedObject
		return strings.Join([]string{e.Source.Component, e.Source.Host, o.Kind, o.Namespace, o.Name, string(o.UID),
			o.APIVersion}, "/")
	default:
		return ""
	}
}

// buckets are those of one limit.
type buckets struct {
	limit limit

	// mu makes one bucket of each key.
	mu sync.Mutex
	of *lru.Cache
}

func (b *buckets) take(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	found, ok := b.of.Get(key)
	if !ok {
		found = flowcontrol.NewTokenBucketRateLimiter(float32(b.limit.QPS), int(b.limit.Burst))
		b.of.Add(key, found)
	}
	return found.(flowcontrol.RateLimiter).TryAccept()
}
