// Package pod is the resource Pod of the core group with its subresources: status, binding, eviction,
// resize, ephemeralcontainers, and the connections to its containers: log, exec, attach and portforward.
package pod

import (
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/kit/podspec"
	"keelson.dev/services/apiserver/internal/nodeproxy"
	"keelson.dev/services/apiserver/internal/registry/core/pod/room"
	"keelson.dev/services/apiserver/internal/registry/policy/disruptions"
	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/resource"
)

// Resource is the Pod with its /status, /ephemeralcontainers and /resize.
var Resource = resource.Resource[*corev1.Pod]{
	Name:       "pods",
	Singular:   "pod",
	ShortNames: []string{"po"},
	Categories: []string{"all"},
	New:        func() *corev1.Pod { return &corev1.Pod{} },
	NewList:    func() runtime.Object { return &corev1.PodList{} },
	Default:    Default,
	Spec:       resource.PartOf(func(p *corev1.Pod) *corev1.PodSpec { return &p.Spec }),
	Status:     resource.PartOf(func(p *corev1.Pod) *corev1.PodStatus { return &p.Status }),
	Strategy: resource.Strategy[*corev1.Pod]{
		PrepareForCreate: prepareForCreate,
		PrepareForUpdate: func(p, _ *corev1.Pod) { podspec.DropUnserved(&p.Spec) },
		Validate:         Validate,
		ValidateUpdate:   ValidateUpdate,
		Graceful:         graceful,
	},
	StatusStrategy: resource.Strategy[*corev1.Pod]{
		PrepareForUpdate: prepareForStatusUpdate,
		ValidateUpdate:   ValidateStatusUpdate,
	},
	Writes: map[string]resource.Strategy[*corev1.Pod]{
		"pods/ephemeralcontainers": ephemeralStrategy,
		"pods/resize":              resizeStrategy,
	},
	Columns:       columns,
	Fields:        fields,
	ReturnDeleted: true,
}

// Config is what a Pod's subresources need beyond its store.
type Config struct {
	// Nodes are where logs come from and commands run, Node finds the one that a Pod is bound to.
	Nodes *nodeproxy.Nodes
	Node  nodeproxy.Lookup
	// Budgets say which Pods may be evicted.
	Budgets *disruptions.Budgets
	// Transport reaches the Pods' ports.
	Transport http.RoundTripper
	// Authorizer says who may be joined to containers.
	Authorizer authorizer.Authorizer
}

// Entry is the Pod with all its subresources.
func Entry(c Config) rest.Entry {
	r := rest.Serve(Resource)
	var shared *Binding
	binding := func(s *rest.Storage) *Binding {
		if shared == nil {
			shared = newBinding(s.Store, c.Node, room.New(s.Store))
		}
		return shared
	}
	r.Subresources = map[string]func(*rest.Storage) genericrest.Storage{
		"pods/binding": func(s *rest.Storage) genericrest.Storage { return binding(s) },
		"bindings":     func(s *rest.Storage) genericrest.Storage { return &LegacyBinding{binding(s)} },
		"pods/eviction": func(s *rest.Storage) genericrest.Storage {
			return &Eviction{store: s, budgets: c.Budgets}
		},

		"pods/log": func(s *rest.Storage) genericrest.Storage {
			return &Log{pods: podSource{s.Store}, nodes: c.Nodes}
		},
		"pods/exec":        c.connection(newExec),
		"pods/attach":      c.connection(newAttach),
		"pods/portforward": c.connection(newPortForward),
		"pods/proxy": func(s *rest.Storage) genericrest.Storage {
			return newProxy(podSource{s.Store}, c.Transport)
		},
	}
	return r
}

func (c Config) connection(connect func(connected) genericrest.Storage) func(*rest.Storage) genericrest.Storage {
	return func(s *rest.Storage) genericrest.Storage {
		return connect(connected{pods: podSource{s.Store}, nodes: c.Nodes, authorizer: c.Authorizer})
	}
}

// prepareForCreate gives a new Pod the status that it has before anything happened to it.
func prepareForCreate(p *corev1.Pod) {
	podspec.DropUnserved(&p.Spec)
	joinMatchLabelKeys(p)
	p.Status.Phase, p.Status.QOSClass = corev1.PodPending, qosClass(&p.Spec)
	if len(p.Spec.SchedulingGates) > 0 {
		p.Status.Conditions = []corev1.PodCondition{{
			Type:    corev1.PodScheduled,
			Status:  corev1.ConditionFalse,
			Reason:  corev1.PodReasonSchedulingGated,
			Message: "Scheduling is blocked due to non-empty scheduling gates",
		}}
	}
}

func prepareForStatusUpdate(p, old *corev1.Pod) {
	p.Generation = old.Generation
	p.OwnerReferences = old.OwnerReferences
	p.Status.QOSClass = old.Status.QOSClass
	dropUnservedStatus(&p.Status)
	agreeOnIPs(&p.Status)
}
