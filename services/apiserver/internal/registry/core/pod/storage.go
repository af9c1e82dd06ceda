// Package pod is the resource Pod of the core group with its subresources: status, binding, eviction,
// ephemeralcontainers, and the connections to its containers: log, exec, attach and portforward.
package pod

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrest "k8s.io/apiserver/pkg/registry/rest"

	"keelson.dev/services/apiserver/internal/nodeproxy"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

var resource = rest.Resource[*corev1.Pod]{
	Name:          "pods",
	Singular:      "pod",
	ShortNames:    []string{"po"},
	Categories:    []string{"all"},
	New:           func() *corev1.Pod { return &corev1.Pod{} },
	NewList:       func() runtime.Object { return &corev1.PodList{} },
	Default:       Default,
	Strategy:      strategy,
	Status:        &statusStrategy,
	Columns:       columns,
	Fields:        fields,
	ReturnDeleted: true,
}

// AddToScheme registers defaults and field selectors.
func AddToScheme(scheme *runtime.Scheme) error { return resource.AddToScheme(scheme) }

// NewStorage opens the store. The nodes are where logs come from and commands run.
func NewStorage(o rest.Options, nodes *nodeproxy.Nodes) (map[string]genericrest.Storage, error) {
	storage, err := resource.NewStorage(o)
	if err != nil {
		return nil, err
	}
	paths := storage.Map()
	binding := &Binding{store: storage.Store}
	paths["pods/binding"] = binding
	paths["bindings"] = &LegacyBinding{binding}
	paths["pods/eviction"] = &Eviction{store: storage.Store, status: storage.Status}
	paths["pods/ephemeralcontainers"] = storage.Subresource(rest.NewUpdateStrategy(o, ephemeralStrategy))
	source := podSource{storage.Store}
	paths["pods/log"] = &Log{pods: source, nodes: nodes}
	paths["pods/exec"] = newExec(source, nodes)
	paths["pods/attach"] = newAttach(source, nodes)
	paths["pods/portforward"] = newPortForward(source, nodes)
	return paths, nil
}
