// Package persistentvolume binds PersistentVolumeClaims to PersistentVolumes, creates volumes that are folders on a
// node, and reclaims volumes whose claims are gone.
//
//	decide_claim.go      which volume a claim gets, or what it waits for (pure), by concern:
//	  decide_match       whether a volume suffices for a claim
//	  decide_bind        how claim and volume record that they are bound
//	  decide_class       which class is the default
//	  decide_provision   the volume that is created for a claim
//	decide_volume.go     the state of a volume, and its end (pure)
//	decide_explain.go    the explanations of decisions; explain.go answers requests
//	names.go             labels, annotations and finalizers
//	events.go            the events that users see (pure)
//	index.go             the free volumes, by what claims request
//	stores.go            the indexes of the caches
//	reconcile.go         observe and apply, for claims; reconcile_volume.go for volumes
//	controller.go        what it reads and writes; watch.go: what wakes a claim or a volume up
package persistentvolume

import (
	"context"
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
const Name = "persistentvolume"

// Registration describes the controller. concurrent is how many claims and volumes it works on at once. It sets the
// explainer of volumes while the controller leads.
func Registration(volumes *Volumes, concurrent int) controller.Registration {
	return controller.Registration{
		Name:        Name,
		Explains:    []string{"PersistentVolumeClaim"},
		EventSource: eventSource,
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"persistentvolumes"}, Verbs: []string{"create", "delete",
				"get", "list", "update", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"get", "list",
				"update", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"persistentvolumes/status",
				"persistentvolumeclaims/status"}, Verbs: []string{"update"}},
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{"storage.k8s.io"}, Resources: []string{"csidrivers", "storageclasses"},
				Verbs: []string{"list", "watch"}},
			rights.Events,
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return setup(s, volumes, concurrent) },
	}
}

func setup(s *controller.Setup, volumes *Volumes, concurrent int) (controller.Runnable, error) {
	c := build(write.By(s).Client, s.Live, storesOf(s), s.Recorder)
	return controller.Build(s, concurrent, reconcile.Reconciler(c)).
		Explain(c.explainClaims()).
		Watch(source.Kind(s.Cache, &corev1.PersistentVolume{}, c.onVolume()),
			source.Kind(s.Cache, &corev1.PersistentVolumeClaim{}, c.onClaim()),
			source.Kind(s.Cache, &storagev1.StorageClass{}, c.onClass()),
			source.Kind(s.Cache, &corev1.Node{}, c.onNode())).
		First(func(context.Context) error {
			volumes.lead(c.explainVolumes())
			return nil
		}).
		Last(func() { volumes.lead(nil) }).
		Runnable()
}

func build(api client.Client, live client.Reader, stores stores, to recorder) *Controller {
	pending := gate.New()
	return &Controller{
		client: api, live: live, stores: stores, free: newFree(), gate: pending, recorder: to, now: time.Now,
		claims:  &write.Writer{Client: api, Kind: "persistentvolumeclaim.bind", Gate: pending, Store: stores.claims},
		volumes: &write.Writer{Client: api, Kind: "persistentvolume", Gate: pending, Store: stores.volumes},
	}
}
