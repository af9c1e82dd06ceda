package pod

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/util/dryrun"

	"keelson.dev/kit/conditions"
	"keelson.dev/services/apiserver/internal/nodeproxy"
	"keelson.dev/services/apiserver/internal/registry/core/pod/room"
)

// Binding is pods/binding: it assigns a Pod to a node, once, and only to one that exists and has room for it.
type Binding struct {
	store *genericregistry.Store
	node  nodeproxy.Lookup
	rooms *room.Rooms
}

func newBinding(store *genericregistry.Store, node nodeproxy.Lookup, rooms *room.Rooms) *Binding {
	return &Binding{store: store, node: node, rooms: rooms}
}

var (
	_ genericrest.NamedCreater                   = &Binding{}
	_ genericrest.SubresourceObjectMetaPreserver = &Binding{}
)

// New returns an empty Binding.
func (b *Binding) New() runtime.Object { return &corev1.Binding{} }

// Destroy leaves the store, which belongs to the Pods, open.
func (b *Binding) Destroy() { b.rooms.Close() }

// NamespaceScoped tells that a Binding lives beside its Pod.
func (b *Binding) NamespaceScoped() bool { return true }

// PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate keeps the UID and resourceVersion of the Pod that is meant.
func (b *Binding) PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate() bool { return true }

// GetSingularName implements the API machinery's SingularNameProvider.
func (b *Binding) GetSingularName() string { return "binding" }

// Create assigns the Pod called name to the binding's target.
func (b *Binding) Create(ctx context.Context, name string, obj runtime.Object, validate genericrest.ValidateObjectFunc,
	options *metav1.CreateOptions) (runtime.Object, error) {
	binding, ok := obj.(*corev1.Binding)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a Binding object: %T", obj))
	}
	if binding.Name == "" {
		binding.Name = name
	}
	if name != binding.Name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Binding object")
	}
	if errs := ValidateBinding(binding); len(errs) > 0 {
		return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Binding").GroupKind(), name, errs)
	}
	if validate != nil {
		if err := validate(ctx, binding.DeepCopy()); err != nil {
			return nil, err
		}
	}
	if err := b.assign(ctx, binding, dryrun.IsDryRun(options.DryRun)); err != nil {
		return nil, err
	}
	return &metav1.Status{Status: metav1.StatusSuccess}, nil
}

// assign writes the binding's node into its Pod, unless the Pod is another one or no longer the same, or the node is
// none that would take it in.
func (b *Binding) assign(ctx context.Context, binding *corev1.Binding, dryRun bool) error {
	key, err := b.store.KeyFunc(ctx, binding.Name)
	if err != nil {
		return err
	}
	preconditions := &storage.Preconditions{}
	if binding.UID != "" {
		preconditions.UID = &binding.UID
	}
	if binding.ResourceVersion != "" {
		preconditions.ResourceVersion = &binding.ResourceVersion
	}
	// held is the room of the last try, which may be one of several.
	var held *room.Reservation
	update := func(obj runtime.Object) (runtime.Object, error) {
		held.Release()
		held = nil
		pod, ok := obj.(*corev1.Pod)
		if !ok {
			return nil, fmt.Errorf("binding to a node: unexpected object %T", obj)
		}
		if err := bind(pod, binding, metav1.Now()); err != nil {
			return nil, err
		}
		held, err = b.reserve(ctx, pod, binding.Target.Name)
		return pod, err
	}
	err = b.store.Storage.GuaranteedUpdate(ctx, key, &corev1.Pod{}, false, preconditions, storage.SimpleUpdate(update),
		dryRun, nil)
	if dryRun {
		held.Release()
	} else {
		// A write that failed may yet have been made.
		held.Keep()
	}
	return bindingError(err, binding.Name)
}

// reserve holds room for the Pod on the node that is named.
func (b *Binding) reserve(ctx context.Context, pod *corev1.Pod, name string) (*room.Reservation, error) {
	node, err := b.node(ctx, name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("node %q does not exist", name)
	}
	if err != nil {
		return nil, err
	}
	return b.rooms.Reserve(ctx, pod, node)
}

// bindingError says in the API's terms why a Pod was not bound: it is gone, or it is not what the binding was made for.
func bindingError(err error, name string) error {
	pods := corev1.Resource("pods")
	switch {
	case err == nil:
		return nil
	case storage.IsNotFound(err):
		return apierrors.NewNotFound(pods, name)
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return err
	}
	return apierrors.NewConflict(corev1.Resource("pods/binding"), name, err)
}

// bind makes the Pod one of the binding's node. A Pod is bound once: not again, and not on its way out.
func bind(p *corev1.Pod, binding *corev1.Binding, now metav1.Time) error {
	switch {
	case p.DeletionTimestamp != nil:
		return fmt.Errorf("pod %s is being deleted, cannot be assigned to a host", p.Name)
	case p.Spec.NodeName != "":
		return fmt.Errorf("pod %v is already assigned to node %q", p.Name, p.Spec.NodeName)
	case len(p.Spec.SchedulingGates) > 0:
		return fmt.Errorf("pod %v has non-empty .spec.schedulingGates", p.Name)
	}
	old := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: maps.Clone(p.Annotations)}}
	p.Annotations = merged(p.Annotations, binding.Annotations)
	p.Labels = merged(p.Labels, binding.Labels)
	if errs := validateBound(p, old); len(errs) > 0 {
		return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Binding").GroupKind(), binding.Name, errs)
	}
	p.Spec.NodeName = binding.Target.Name
	p.Status.NominatedNodeName = ""
	p.Status.Conditions, _ = conditions.Pod.Set(p.Status.Conditions,
		corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, now.Time)
	return nil
}

// validateBound checks what a binding added to the Pod, as any other update would.
func validateBound(p, old *corev1.Pod) field.ErrorList {
	return slices.Concat(
		validateAnnotationsUpdate(p, old),
		apivalidation.ValidateAnnotations(p.Annotations, annotationsPath),
		metav1validation.ValidateLabels(p.Labels, field.NewPath("metadata", "labels")),
	)
}

func merged(into, from map[string]string) map[string]string {
	if into == nil && len(from) > 0 {
		into = map[string]string{}
	}
	maps.Copy(into, from)
	return into
}

// ValidateBinding checks what a Pod is to be bound to: a node, by its name.
func ValidateBinding(b *corev1.Binding) field.ErrorList {
	var errs field.ErrorList
	target := field.NewPath("target")
	if kind := b.Target.Kind; kind != "" && kind != "Node" {
		errs = append(errs, field.NotSupported(target.Child("kind"), kind, []string{"Node", "<empty>"}))
	}
	if b.Target.Name == "" {
		errs = append(errs, field.Required(target.Child("name"), ""))
	}
	return errs
}

// LegacyBinding is the resource bindings: a Binding whose own name is the Pod's.
type LegacyBinding struct{ binding *Binding }

var _ genericrest.Creater = &LegacyBinding{} //nolint:misspell // the API machinery's own spelling

// New returns an empty Binding.
func (l *LegacyBinding) New() runtime.Object { return l.binding.New() }

// Destroy leaves the store, which belongs to the Pods, open.
func (l *LegacyBinding) Destroy() {}

// NamespaceScoped tells that a Binding lives beside its Pod.
func (l *LegacyBinding) NamespaceScoped() bool { return true }

// GetSingularName implements the API machinery's SingularNameProvider.
func (l *LegacyBinding) GetSingularName() string { return "binding" }

// Create assigns the Pod that the binding is named after.
func (l *LegacyBinding) Create(ctx context.Context, obj runtime.Object, validate genericrest.ValidateObjectFunc,
	options *metav1.CreateOptions) (runtime.Object, error) {
	binding, ok := obj.(*corev1.Binding)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a Binding object: %T", obj))
	}
	return l.binding.Create(ctx, binding.Name, obj, validate, options)
}
