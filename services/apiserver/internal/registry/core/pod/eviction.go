package pod

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"

	"keelson.dev/kit/conditions"
	"keelson.dev/services/apiserver/internal/registry/policy/disruptions"
	"keelson.dev/services/apiserver/internal/registry/rest"
)

// evictionTries is how often an eviction reads a Pod again that changes while it is judged.
const evictionTries = 10

// errPodChanged is that a Pod is not what it was when it was judged.
var errPodChanged = errors.New("the Pod changes too often to be evicted, try again")

// Eviction is pods/eviction: it deletes a Pod gracefully if its budget allows; a condition on the Pod says why.
type Eviction struct {
	store   *rest.Storage
	budgets *disruptions.Budgets
}

var (
	_ genericrest.NamedCreater             = &Eviction{}
	_ genericrest.GroupVersionKindProvider = &Eviction{}
	_ genericrest.GroupVersionAcceptor     = &Eviction{}
)

// New returns an empty Eviction.
func (e *Eviction) New() runtime.Object { return &policyv1.Eviction{} }

// Destroy leaves the store, which belongs to the Pods, open.
func (e *Eviction) Destroy() {}

// GroupVersionKind tells that the object is of policy/v1, though the path is of v1.
func (e *Eviction) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return policyv1.SchemeGroupVersion.WithKind("Eviction")
}

// AcceptsGroupVersion tells that the object may be of policy/v1beta1, too.
func (e *Eviction) AcceptsGroupVersion(version schema.GroupVersion) bool {
	return version == policyv1.SchemeGroupVersion || version == policyv1beta1.SchemeGroupVersion
}

// Create evicts the Pod called name.
func (e *Eviction) Create(ctx context.Context, name string, obj runtime.Object, validate genericrest.ValidateObjectFunc,
	options *metav1.CreateOptions) (runtime.Object, error) {
	eviction, ok := obj.(*policyv1.Eviction)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a Eviction object: %T", obj))
	}
	if eviction.Name == "" {
		eviction.Name = name
	}
	if name != eviction.Name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	if validate != nil {
		if err := validate(ctx, eviction.DeepCopy()); err != nil {
			return nil, err
		}
	}
	if err := e.evict(ctx, name, deletionOf(eviction, options)); err != nil {
		return nil, err
	}
	return &metav1.Status{Status: metav1.StatusSuccess}, nil
}

func (e *Eviction) evict(ctx context.Context, name string, deletion *metav1.DeleteOptions) error {
	for range evictionTries {
		if err := e.evictOnce(ctx, name, deletion.DeepCopy()); !errors.Is(err, errPodChanged) {
			return err
		}
	}
	return apierrors.NewConflict(corev1.Resource("pods"), name, errPodChanged)
}

// evictOnce evicts the Pod as it is now. What is taken off the budget and then not carried out, the budget's controller
// gives back.
func (e *Eviction) evictOnce(ctx context.Context, name string, deletion *metav1.DeleteOptions) error {
	pod, err := podSource{e.store.Store}.pod(ctx, name)
	if err != nil {
		return err
	}
	if err := matches(pod, deletion.Preconditions); err != nil {
		return err
	}
	budgets, err := e.budgets.List(ctx)
	if err != nil {
		return err
	}
	way, err := judgeEviction(pod, budgets)
	if err != nil {
		return err
	}
	if way.budget != "" {
		err := e.budgets.Spend(ctx, way.budget, deletion.DryRun, func(budget *policyv1.PodDisruptionBudget) error {
			return spend(budget, name, time.Now())
		})
		if err != nil {
			return err
		}
	}
	judged := deletion.DeepCopy()
	if way.asSeen {
		pin(judged, pod)
	}
	if err := e.remove(ctx, name, judged); !way.asSeen || !apierrors.IsConflict(err) {
		return err
	}
	return errPodChanged
}

// pin lets the deletion be of the Pod as it was seen only.
func pin(deletion *metav1.DeleteOptions, pod *corev1.Pod) {
	if deletion.Preconditions == nil {
		deletion.Preconditions = &metav1.Preconditions{}
	}
	deletion.Preconditions.UID, deletion.Preconditions.ResourceVersion = &pod.UID, &pod.ResourceVersion
}

// remove deletes the Pod, which says why.
func (e *Eviction) remove(ctx context.Context, name string, deletion *metav1.DeleteOptions) error {
	reason := rest.Reason(announce)
	if dryrun.IsDryRun(deletion.DryRun) {
		reason = nil
	}
	_, _, err := e.store.DeleteFor(ctx, reason, name, genericrest.ValidateAllObjectFunc, deletion)
	return err
}

// deletionOf is how the Pod will be deleted: as the eviction says, and dry if either it or its request is.
func deletionOf(eviction *policyv1.Eviction, options *metav1.CreateOptions) *metav1.DeleteOptions {
	deletion := eviction.DeleteOptions.DeepCopy()
	if deletion == nil {
		deletion = &metav1.DeleteOptions{}
	}
	if len(deletion.DryRun) == 0 {
		deletion.DryRun = options.DryRun
	}
	return deletion
}

// announce lets whoever sees the Pod go see why.
func announce(obj, was runtime.Object) {
	pod, ok := obj.(*corev1.Pod)
	before, had := was.(*corev1.Pod)
	if !ok || !had {
		return
	}
	pod.Status.Conditions, _ = conditions.Pod.Set(pod.Status.Conditions, corev1.PodCondition{
		Type:               corev1.DisruptionTarget,
		Status:             corev1.ConditionTrue,
		ObservedGeneration: before.Generation,
		Reason:             "EvictionByEvictionAPI",
		Message:            "Eviction API: evicting",
	}, time.Now())
}

// matches refuses a Pod that is not the one, or no longer in the state, that the caller meant.
func matches(pod *corev1.Pod, preconditions *metav1.Preconditions) error {
	if preconditions == nil {
		return nil
	}
	conflict := func(what string, got, want any) error {
		return apierrors.NewConflict(corev1.Resource("pods"), pod.Name,
			fmt.Errorf("the %s in the precondition (%v) does not match the %s in record (%v)", what, want, what, got))
	}
	if uid := preconditions.UID; uid != nil && *uid != pod.UID {
		return conflict("UID", pod.UID, *uid)
	}
	if version := preconditions.ResourceVersion; version != nil && *version != pod.ResourceVersion {
		return conflict("ResourceVersion", pod.ResourceVersion, *version)
	}
	return nil
}
