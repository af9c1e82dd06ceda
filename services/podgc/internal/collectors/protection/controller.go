// Package protection keeps a claim that is deleted until no Pod uses it, a volume that is deleted until no claim has
// it, a VolumeAttributesClass that is deleted until no claim and no volume names it, and a PodGroup that is deleted
// until its Pods have ended. The apiserver gives new objects the finalizers; older ones get them here.
//
//	decide.go      who is protected, and when that ends (pure)
//	decide_explain.go  the explanation of a decision
//	reconcile.go   the second look, and the finalizers
//	controller.go  the four collectors: what they read and write, and what wakes an object up
package protection

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"keelson.dev/kit/controller"
	"keelson.dev/kit/explain"
	"keelson.dev/kit/podview"
	"keelson.dev/services/podgc/internal/podfeed"
)

// The collectors' names, and those of the finalizers.
const (
	ClaimsName      = "pvcprotection"
	VolumesName     = "pvprotection"
	ClassesName     = "vacprotection"
	GroupsName      = "podgroupprotection"
	claimFinalizer  = "kubernetes.io/pvc-protection"
	volumeFinalizer = "kubernetes.io/pv-protection"
	classFinalizer  = "kubernetes.io/vac-protection"
	groupFinalizer  = "scheduling.k8s.io/podgroup-protection"
)

const (
	// workers is how many objects are looked at at once.
	workers = 5
	// letGo is how long a class waits after a claim or a volume has changed, so that a burst of them costs one look.
	letGo = time.Second
	// field is the name of the index of Pods by claim, groupField that of the one by PodGroup.
	field      = "claim"
	groupField = "podGroup"
)

// kind is what the collectors differ in.
type kind struct {
	name      string // in failpoints and errors
	api       schema.GroupVersionKind
	finalizer string
	// user returns the user of an object; empty if it is unused.
	user func(ctx context.Context, c *collector, o object) (string, error)
}

// blank is what the cache knows such an object by: its metadata alone is watched.
func (k kind) blank() object {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(k.api)
	return o
}

var (
	claims = kind{"persistentvolumeclaim", corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), claimFinalizer,
		podUser(field, usesClaim)}
	volumes = kind{"persistentvolume", corev1.SchemeGroupVersion.WithKind("PersistentVolume"), volumeFinalizer,
		volumeUser}
	classes = kind{"volumeattributesclass", storagev1.SchemeGroupVersion.WithKind("VolumeAttributesClass"),
		classFinalizer, classUser}
	groups = kind{"podgroup", schedulingv1beta1.SchemeGroupVersion.WithKind("PodGroup"), groupFinalizer,
		podUser(groupField, usesGroup)}
)

// Registrations describe the four collectors.
func Registrations(feed *podfeed.Feed) []controller.Registration {
	return []controller.Registration{ofClaims(feed), ofVolumes(), ofClasses(), ofGroups(feed)}
}

func ofClaims(feed *podfeed.Feed) controller.Registration {
	return controller.Registration{
		Name: ClaimsName, Explains: []string{claims.api.Kind},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"list", "watch",
				"patch"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
		},
		Index: index(field, podview.ClaimNames),
		Setup: func(s *controller.Setup) (controller.Runnable, error) {
			return claims.build(s).Watch(podsThatName(s, feed, podview.ClaimNames)).Runnable()
		},
	}
}

func ofGroups(feed *podfeed.Feed) controller.Registration {
	return controller.Registration{
		Name: GroupsName, Explains: []string{groups.api.Kind},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{groups.api.Group}, Resources: []string{"podgroups"}, Verbs: []string{"list", "watch",
				"patch"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
		},
		Index: index(groupField, groupOf),
		Setup: func(s *controller.Setup) (controller.Runnable, error) {
			return groups.build(s).Watch(podsThatName(s, feed, groupOf)).Runnable()
		},
	}
}

func ofVolumes() controller.Registration {
	return controller.Registration{
		Name: VolumesName, Explains: []string{volumes.api.Kind},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"persistentvolumes"}, Verbs: []string{"get", "list", "watch",
				"patch"}},
			{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"get"}},
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) { return volumes.build(s).Runnable() },
	}
}

func ofClasses() controller.Registration {
	return controller.Registration{
		Name: ClassesName, Explains: []string{classes.api.Kind},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{classes.api.Group}, Resources: []string{"volumeattributesclasses"},
				Verbs: []string{"list", "watch", "patch"}},
			{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims", "persistentvolumes"},
				Verbs: []string{"list", "watch"}},
		},
		Setup: func(s *controller.Setup) (controller.Runnable, error) {
			return classes.build(s).
				Watch(source.Kind(s.Cache, claims.blank(), onUser(s.Client)),
					source.Kind(s.Cache, volumes.blank(), onUser(s.Client))).
				Runnable()
		},
	}
}

// build begins the collector of a kind.
func (k kind) build(s *controller.Setup) *controller.Builder[reconcile.Request] {
	c := &collector{cached: s.Client, live: s.Live, writer: s.Client, kind: k}
	wanted := predicate.NewTypedPredicateFuncs(func(o object) bool { return NeedsWork(o, k.finalizer) })
	return controller.Build(s, workers, c.steps()).
		Explain(explain.Explainer(c.steps(), account, leaves)).
		Watch(controller.Objects(s.Cache, k.blank(), wanted))
}

// podsThatName watches the Pods for what they name.
func podsThatName(s *controller.Setup, feed *podfeed.Feed, named func(*corev1.Pod) []string) *podfeed.Source {
	return &podfeed.Source{Feed: feed, Cache: s.Cache, Wake: onPod(named)}
}

// index makes the cache keep Pods by what they name.
func index(field string, named func(*corev1.Pod) []string) func(context.Context, client.FieldIndexer) error {
	return func(ctx context.Context, indexer client.FieldIndexer) error {
		return indexer.IndexField(ctx, &corev1.Pod{}, field, func(o client.Object) []string {
			if pod, ok := o.(*corev1.Pod); ok {
				return named(pod)
			}
			return nil
		})
	}
}

// onPod wakes up what a Pod lets go of: it has ended, or is gone.
func onPod(named func(*corev1.Pod) []string) func(last, now *corev1.Pod, q podfeed.Queue) {
	return func(last, now *corev1.Pod, q podfeed.Queue) {
		if last == nil || now != nil && (podview.IsTerminal(last) || !podview.IsTerminal(now)) {
			return
		}
		for _, name := range named(last) {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: last.Namespace, Name: name}})
		}
	}
}

// onUser wakes up the classes that are on their way out, of which there is mostly none, when a claim or a volume
// changes or is gone: its metadata, which alone is watched, does not tell which of them it has let go of.
func onUser(cached client.Reader) handler.TypedEventHandler[object, reconcile.Request] {
	wake := func(ctx context.Context, q podfeed.Queue) {
		all := &metav1.PartialObjectMetadataList{}
		all.SetGroupVersionKind(classes.api.GroupVersion().WithKind(classes.api.Kind + "List"))
		if cached.List(ctx, all, client.UnsafeDisableDeepCopy) != nil {
			return // The cache ends, and the collector with it.
		}
		for i := range all.Items {
			if class := &all.Items[i]; isGoing(class) && NeedsWork(class, classFinalizer) {
				q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: class.Name}}, letGo)
			}
		}
	}
	return handler.TypedFuncs[object, reconcile.Request]{
		UpdateFunc: func(ctx context.Context, _ event.TypedUpdateEvent[object], q podfeed.Queue) { wake(ctx, q) },
		DeleteFunc: func(ctx context.Context, _ event.TypedDeleteEvent[object], q podfeed.Queue) { wake(ctx, q) },
	}
}
