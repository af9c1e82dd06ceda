package pod

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/podview"
	"keelson.dev/services/apiserver/internal/resource"
)

// resizeStrategy rules the writes of /resize, the only way to change what a Pod and its containers ask for.
var resizeStrategy = resource.Strategy[*corev1.Pod]{
	PrepareForUpdate: prepareForResize,
	ValidateUpdate:   ValidateResize,
	ResetFields:      []string{"status"},
}

// prepareForResize takes all but resources and resize policies from the old Pod. Containers that are not those of the
// old Pod stay as they are: the checks refuse them.
func prepareForResize(p, old *corev1.Pod) {
	requested := p.Spec
	p.Spec, p.Status = *old.Spec.DeepCopy(), old.Status
	p.Spec.Resources = requested.Resources
	p.Spec.Containers = resizedContainers(p.Spec.Containers, requested.Containers)
	p.Spec.InitContainers = resizedContainers(p.Spec.InitContainers, requested.InitContainers)
	metav1.ResetObjectMetaForStatus(&p.ObjectMeta, &old.ObjectMeta)
	resource.RaiseGeneration(p, old, !apiequality.Semantic.DeepEqual(p.Spec, old.Spec))
}

// resizedContainers are the kept ones with the resources of the requested ones.
func resizedContainers(kept, requested []corev1.Container) []corev1.Container {
	if !slices.EqualFunc(kept, requested, sameName) {
		return requested
	}
	for i := range kept {
		kept[i].Resources, kept[i].ResizePolicy = requested[i].Resources, requested[i].ResizePolicy
	}
	return kept
}

func sameName(a, b corev1.Container) bool { return a.Name == b.Name }

// ValidateResize lets CPU and memory change, so far as the Pod stays of its class and keeps saying what it said.
func ValidateResize(p, old *corev1.Pod) field.ErrorList {
	if _, mirror := old.Annotations[mirrorAnnotation]; mirror {
		return field.ErrorList{field.Forbidden(specPath, "static pods cannot be resized")}
	}
	if old.Spec.OS != nil && old.Spec.OS.Name == corev1.Windows {
		return field.ErrorList{field.Forbidden(specPath, "windows pods cannot be resized")}
	}
	errs := validateSameContainers(p.Spec.Containers, old.Spec.Containers, "containers")
	errs = append(errs, validateSameContainers(p.Spec.InitContainers, old.Spec.InitContainers, "initContainers")...)
	if len(errs) > 0 {
		return errs
	}
	errs = append(errs, validateChanged(p, old)...)
	if class := qosClass(&p.Spec); class != qosClass(&old.Spec) {
		errs = append(errs, field.Invalid(specPath, class, "Pod QOS Class may not change as a result of resizing"))
	}
	if !reportsResources(old) {
		errs = append(errs, field.Forbidden(specPath, "Pod running on node without support for resize"))
	}
	if len(old.Status.NodeAllocatableResourceClaimStatuses) > 0 {
		errs = append(errs, field.Forbidden(specPath, "pods with node allocatable resource claims cannot be resized"))
	}
	errs = append(errs, validatePodResize(p.Spec.Resources, old.Spec.Resources, specPath.Child("resources"))...)
	for i := range p.Spec.InitContainers {
		errs = append(errs, validateInitResize(&p.Spec.InitContainers[i], &old.Spec.InitContainers[i],
			specPath.Child("initContainers").Index(i))...)
	}
	for i := range p.Spec.Containers {
		errs = append(errs, validateContainerResize(&p.Spec.Containers[i], &old.Spec.Containers[i],
			specPath.Child("containers").Index(i))...)
	}
	return errs
}

// validateSameContainers wants the same names in the same order.
func validateSameContainers(containers, old []corev1.Container, list string) field.ErrorList {
	at := specPath.Child(list)
	if len(containers) != len(old) {
		return field.ErrorList{field.Forbidden(at, list+" may not be added or removed on resize")}
	}
	var errs field.ErrorList
	for i := range old {
		if containers[i].Name != old[i].Name {
			errs = append(errs, field.Forbidden(at.Index(i).Child("name"),
				list+" may not be renamed or reordered on resize"))
		}
	}
	return errs
}

// reportsResources reports whether the Pod's node can resize it: one that can says what running containers have.
func reportsResources(p *corev1.Pod) bool {
	for i := range p.Status.ContainerStatuses {
		if status := &p.Status.ContainerStatuses[i]; status.State.Running != nil {
			return status.Resources != nil
		}
	}
	return true
}

// validatePodResize checks the resources of the Pod as a whole.
func validatePodResize(resources, old *corev1.ResourceRequirements, fldPath *field.Path) field.ErrorList {
	switch {
	case old == nil && resources == nil:
		return nil
	case resources == nil:
		return field.ErrorList{field.Forbidden(fldPath, "pod-level resources cannot be removed")}
	case old == nil:
		old = &corev1.ResourceRequirements{}
	}
	return validateResourcesResize(resources, old, fldPath, "pod-level resource")
}

// validateInitResize: an init container that runs once is resized in place or not at all. A sidecar is as any other
// container.
func validateInitResize(c, old *corev1.Container, fldPath *field.Path) field.ErrorList {
	errs := validateContainerResize(c, old, fldPath)
	restarts := func(p corev1.ContainerResizePolicy) bool { return p.RestartPolicy == corev1.RestartContainer }
	if !podview.IsSidecar(old) && slices.ContainsFunc(old.ResizePolicy, restarts) &&
		!apiequality.Semantic.DeepEqual(c.Resources, old.Resources) {
		errs = append(errs, field.Forbidden(fldPath,
			"non-sidecar init containers with a resize policy of RestartContainer cannot be resized"))
	}
	return errs
}

func validateContainerResize(c, old *corev1.Container, fldPath *field.Path) field.ErrorList {
	if !apiequality.Semantic.DeepEqual(c.ResizePolicy, old.ResizePolicy) {
		return field.ErrorList{field.Forbidden(fldPath.Child("resizePolicy"), onlyCPUAndMemory)}
	}
	return validateResourcesResize(&c.Resources, &old.Resources, fldPath.Child("resources"), "resource")
}

// onlyCPUAndMemory is the sentence that clients know.
const onlyCPUAndMemory = "only cpu and memory resources are mutable"

// validateResourcesResize keeps what was said from being taken back, and all but CPU and memory from changing.
func validateResourcesResize(r, old *corev1.ResourceRequirements, fldPath *field.Path, what string) field.ErrorList {
	var errs field.ErrorList
	if lacks(r.Requests, old.Requests) {
		errs = append(errs, field.Forbidden(fldPath.Child("requests"), fmt.Sprintf("%s requests cannot be removed",
			what)))
	}
	if lacks(r.Limits, old.Limits) {
		errs = append(errs, field.Forbidden(fldPath.Child("limits"), fmt.Sprintf("%s limits cannot be removed", what)))
	}
	if !apiequality.Semantic.DeepEqual(r.Claims, old.Claims) ||
		!apiequality.Semantic.DeepEqual(fixed(r.Requests), fixed(old.Requests)) ||
		!apiequality.Semantic.DeepEqual(fixed(r.Limits), fixed(old.Limits)) {
		errs = append(errs, field.Forbidden(fldPath, onlyCPUAndMemory))
	}
	return errs
}

// lacks reports whether something of the old list is not in the list any more.
func lacks(list, old corev1.ResourceList) bool {
	for name := range old {
		if _, kept := list[name]; !kept {
			return true
		}
	}
	return false
}

// fixed is the part of a list that no resize changes.
func fixed(list corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, quantity := range list {
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory {
			out[name] = quantity
		}
	}
	return out
}
