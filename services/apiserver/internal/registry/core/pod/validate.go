package pod

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ephemeralvolume "k8s.io/component-helpers/storage/ephemeral"

	"keelson.dev/kit/podspec"
)

// mirrorAnnotation marks the image in the API of a Pod that a node runs by itself.
const mirrorAnnotation = corev1.MirrorPodAnnotationKey

var (
	specPath        = field.NewPath("spec")
	annotationsPath = field.NewPath("metadata", "annotations")
)

// Validate checks a new Pod.
func Validate(p *corev1.Pod) field.ErrorList {
	errs := podspec.ValidateAnnotations(p.Annotations, annotationsPath)
	if _, mirror := p.Annotations[mirrorAnnotation]; mirror && p.Spec.NodeName == "" {
		errs = append(errs, field.Invalid(annotationsPath.Key(mirrorAnnotation), "",
			"must set spec.nodeName if mirror pod annotation is set"))
	}
	if len(p.Spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(specPath.Child("ephemeralContainers"), "cannot be set on create"))
	}
	errs = append(errs, validateSize(p)...)
	errs = append(errs, validateOwnClaims(p)...)
	return append(errs, podspec.Validate(&p.Spec, specPath, podspec.Options{})...)
}

// validateOwnClaims checks the names of the claims that are made for the Pod's ephemeral volumes, and that no other
// volume is one of them. They depend on the Pod's name, and neither that nor the volumes ever change.
func validateOwnClaims(p *corev1.Pod) field.ErrorList {
	var errs field.ErrorList
	made := map[string]bool{}
	for i := range p.Spec.Volumes {
		volume := &p.Spec.Volumes[i]
		if volume.Ephemeral == nil || volume.Name == "" || p.Name == "" {
			continue
		}
		claim := ephemeralvolume.VolumeClaimName(p, volume)
		made[claim] = true
		for _, msg := range validation.IsDNS1123Subdomain(claim) {
			errs = append(errs, field.Invalid(specPath.Child("volumes").Index(i).Child("name"), volume.Name,
				fmt.Sprintf("PVC name %q: %s", claim, msg)))
		}
	}
	for i := range p.Spec.Volumes {
		source := p.Spec.Volumes[i].PersistentVolumeClaim
		if source != nil && made[source.ClaimName] {
			errs = append(errs, field.Invalid(
				specPath.Child("volumes").Index(i).Child("persistentVolumeClaim", "claimName"), source.ClaimName,
				"must not reference a PVC that gets created for an ephemeral volume"))
		}
	}
	return errs
}

// mostBytes bounds a Pod without its status, as it is stored. What is stored takes 1.5 MiB at most: the rest is for a
// status that names all of the spec again, and for who wrote it.
const mostBytes = 512 << 10

func validateSize(p *corev1.Pod) field.ErrorList {
	if size := bytesOf(p); size > mostBytes {
		return field.ErrorList{field.Forbidden(specPath, fmt.Sprintf(
			"metadata and spec of a Pod take at most %d bytes together, not %d", mostBytes, size))}
	}
	return nil
}

// bytesOf is how long a Pod without its status is as it is stored.
func bytesOf(p *corev1.Pod) int {
	return p.ObjectMeta.Size() + p.Spec.Size()
}

// ValidateUpdate checks a changed Pod: as a new one, and what of its old self it may have changed.
func ValidateUpdate(p, old *corev1.Pod) field.ErrorList {
	errs := validateChanged(p, old)
	if len(p.Spec.Containers) != len(old.Spec.Containers) {
		return append(errs, field.Forbidden(specPath.Child("containers"),
			"pod updates may not add or remove containers"))
	}
	if len(p.Spec.InitContainers) != len(old.Spec.InitContainers) {
		return append(errs, field.Forbidden(specPath.Child("initContainers"),
			"pod updates may not add or remove containers"))
	}
	return append(errs, validateSpecUpdate(&p.Spec, &old.Spec)...)
}

// validateChanged checks what holds for every update that may change the spec.
func validateChanged(p, old *corev1.Pod) field.ErrorList {
	errs := validateAnnotationsUpdate(p, old)
	// A Pod on its way out loses its finalizers, however large it is.
	if len(p.Finalizers) >= len(old.Finalizers) && bytesOf(p) > bytesOf(old) {
		errs = append(errs, validateSize(p)...)
	}
	return append(errs, podspec.Validate(&p.Spec, specPath,
		podspec.Options{DeadlineLowered: old.Spec.ActiveDeadlineSeconds != nil})...)
}

// validateAnnotationsUpdate checks what holds for every update, through whichever subresource: the rights of a node
// depend on whether a Pod is a mirror, so it stays what it was created as.
func validateAnnotationsUpdate(p, old *corev1.Pod) field.ErrorList {
	errs := podspec.ValidateAnnotations(p.Annotations, annotationsPath)
	mirror, is := p.Annotations[mirrorAnnotation]
	oldMirror, was := old.Annotations[mirrorAnnotation]
	switch at := annotationsPath.Key(mirrorAnnotation); {
	case is != was:
		errs = append(errs, field.Forbidden(at, "may not remove or add mirror pod annotation"))
	case mirror != oldMirror:
		errs = append(errs, field.Invalid(at, mirror, "field is immutable"))
	}
	return errs
}
