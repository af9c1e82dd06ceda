// Package attachdetach attaches the volumes of CSI drivers to the nodes of the Pods that use them, and detaches them
// when no Pod uses them: it creates and deletes VolumeAttachments, which the drivers act on, and lists the attached
// volumes in each Node's status, which the node agent waits for before it starts a Pod.
//
//	volume.go            what a volume is, who uses it, and what nodes say (pure)
//	decide_attach.go     to which nodes a volume goes, and who waits (pure)
//	decide_node.go       what a node's record lists, and which attachments end (pure)
//	decide_explain.go    the explanation of what a Pod waits for; explain.go answers requests for it
//	events.go            the events that users see (pure)
//	settings.go          the flags
//	stores.go            the indexes of the caches; observe.go: the inputs of decisions
//	unused.go            since when an attachment has had no users
//	target.go            what a pass is about
//	reconcile.go         apply, for volumes; reconcile_node.go for nodes
//	controller.go        what it reads and writes; watch.go: what wakes a volume or a node up
//
// At most one of two controllers attaches a volume that only one node may have: each first writes the
// PersistentVolume at the version that it decided on. See docs/decisions/0018.
package attachdetach

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/rights"
	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/write"
)

// Name is the controller's folder, half of its Lease's name, and its field manager.
const Name = "attachdetach"

// Registration describes the controller. concurrent is how many volumes and nodes it works on at once.
func Registration(settings Settings, concurrent int) controller.Registration {
	read := []string{"get", "list", "watch"}
	return controller.Registration{
		Name:        Name,
		Explains:    []string{"Pod"},
		EventSource: eventSource,
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: read},
			{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch"}},
			{APIGroups: []string{""}, Resources: []string{"pods", "persistentvolumeclaims"}, Verbs: []string{"list",
				"watch"}},
			{APIGroups: []string{""}, Resources: []string{"persistentvolumes"}, Verbs: []string{"list", "update",
				"watch"}},
			{APIGroups: []string{"storage.k8s.io"}, Resources: []string{"csidrivers"}, Verbs: []string{"list",
				"watch"}},
			{APIGroups: []string{"storage.k8s.io"}, Resources: []string{"volumeattachments"}, Verbs: []string{"create",
				"delete", "get", "list", "watch"}},
			rights.Events,
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, settings, concurrent) },
	}
}

func setup(s *controller.Setup, settings Settings, concurrent int) (controller.Runnable, error) {
	c := build(write.By(s).Client, s.Live, storesOf(s), settings, s.Recorder)
	return controller.Build(s, concurrent, reconcile.TypedReconciler[target](c)).
		Explain(c.explain).
		Watch(source.TypedKind(s.Cache, &corev1.Pod{}, c.onPod()),
			source.TypedKind(s.Cache, &corev1.PersistentVolumeClaim{}, c.onClaim()),
			source.TypedKind(s.Cache, &corev1.PersistentVolume{}, c.onPV()),
			source.TypedKind(s.Cache, &storagev1.VolumeAttachment{}, c.onAttachment()),
			source.TypedKind(s.Cache, &corev1.Node{}, c.onNode()),
			source.TypedKind(s.Cache, &storagev1.CSIDriver{}, c.onDriver())).
		Runnable()
}

func build(api client.Client, live client.Reader, stores *stores, settings Settings, to recorder) *Controller {
	pending := gate.New()
	return &Controller{
		live: live, stores: stores, settings: settings, gate: pending, unused: newUnused(), recorder: to, now: time.Now,
		pvs:    &write.Writer{Client: api, Kind: "persistentvolume.reserve", Gate: pending, Store: stores.pvs},
		attach: &write.Writer{Client: api, Kind: "volumeattachment", Gate: pending, Store: stores.attachments},
		nodes:  &write.Writer{Client: api, Kind: "node.attached", Gate: pending, Store: stores.nodes},
	}
}
