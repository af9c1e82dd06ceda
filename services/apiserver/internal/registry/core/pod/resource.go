// Package pod is the resource Pod of the core group with its subresources: status, binding, eviction,
// resize, ephemeralcontainers, and the connections to its containers: log, exec, attach and portforward.
package pod

import (
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/kit/podspec"
	"keelson.dev/services/apiserver/internal/nodeproxy"
	"keelson.dev/services/apiserver/internal/registry/core/pod/room"
	"keelson.dev/services/apiserver/internal/registry/policy/poddisruptionbudget"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

// Resource is the Pod with its /status.
var Resource = rest.Resource[*corev1.Pod]{
	Name:       "pods",
	Singular:   "pod",
	ShortNames: []string{"po"},
	Categories: []string{"all"},
	New:        func() *corev1.Pod { return &corev1.Pod{} },
	NewList:    func() runtime.Object { return &corev1.PodList{} },
	Default:    Default,
	Spec:       rest.PartOf(func(p *corev1.Pod) *corev1.PodSpec { return &p.Spec }),
	Status:     rest.PartOf(func(p *corev1.Pod) *corev1.PodStatus { return &p.Status }),
	Strategy: rest.Strategy[*corev1.Pod]{
		PrepareForCreate: prepareForCreate,
		PrepareForUpdate: func(p, _ *corev1.Pod) { podspec.DropUnserved(&p.Spec) },
		Validate:         Validate,
		ValidateUpdate:   ValidateUpdate,
		Graceful:         graceful,
	},
	StatusStrategy: rest.Strategy[*corev1.Pod]{
		PrepareForUpdate: prepareForStatusUpdate,
		ValidateUpdate:   ValidateStatusUpdate,
	},
	Columns:       columns,
	Fields:        fields,
	ReturnDeleted: true,
}

// Entry is the Pod with all its subresources. The nodes are where logs come from and commands run, node finds the one
// that a Pod is bound to, the budgets say which Pods may be evicted, the transport reaches the Pods' ports.
func Entry(nodes *nodeproxy.Nodes, node nodeproxy.Lookup, budgets *poddisruptionbudget.Budgets,
	transport http.RoundTripper) rest.Entry {
	r := Resource
	var shared *Binding
	binding := func(s *rest.Storage) *Binding {
		if shared == nil {
			shared = newBinding(s.Store, node, room.New(s.Store))
		}
		return shared
	}
	r.Subresources = map[string]func(*rest.Storage) genericrest.Storage{
		"pods/binding": func(s *rest.Storage) genericrest.Storage { return binding(s) },
		"bindings":     func(s *rest.Storage) genericrest.Storage { return &LegacyBinding{binding(s)} },
		"pods/eviction": func(s *rest.Storage) genericrest.Storage {
			return &Eviction{store: s, budgets: budgets}
		},

		"pods/ephemeralcontainers": rest.Writes(ephemeralStrategy),
		"pods/resize":              rest.Writes(resizeStrategy),

		"pods/log": func(s *rest.Storage) genericrest.Storage {
			return &Log{pods: podSource{s.Store},
				nodes: nodes}
		},
		"pods/exec":   func(s *rest.Storage) genericrest.Storage { return newExec(podSource{s.Store}, nodes) },
		"pods/attach": func(s *rest.Storage) genericrest.Storage { return newAttach(podSource{s.Store}, nodes) },
		"pods/proxy":  func(s *rest.Storage) genericrest.Storage { return newProxy(podSource{s.Store}, transport) },
		"pods/portforward": func(s *rest.Storage) genericrest.Storage {
			return newPortForward(podSource{s.Store},
				nodes)
		},
	}
	return r
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
	agreeOnIPs(&p.Status)
}
