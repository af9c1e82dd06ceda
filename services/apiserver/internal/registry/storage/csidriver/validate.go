package csidriver

import (
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/fieldcheck"
)

var specPath = field.NewPath("spec")

// The API's bounds, in seconds: how long a token lives, and how often a node may count its volumes again.
const (
	minTokenSeconds  = 10 * 60
	maxTokenSeconds  = 1 << 32
	minUpdateSeconds = 10
)

// validName wants the name of a driver; a generated name is not one.
func validName(name string, _ bool) []string { return fieldcheck.DriverName(name) }

// Validate returns what is wrong with a defaulted driver.
func Validate(d *storagev1.CSIDriver) field.ErrorList {
	spec := &d.Spec
	errs := fieldcheck.OneOfPtr(spec.FSGroupPolicy, specPath.Child("fsGroupPolicy"),
		storagev1.FileFSGroupPolicy, storagev1.NoneFSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
	for i, mode := range spec.VolumeLifecycleModes {
		errs = append(errs, fieldcheck.OneOf(mode, specPath.Child("volumeLifecycleModes").Index(i),
			storagev1.VolumeLifecycleEphemeral, storagev1.VolumeLifecyclePersistent)...)
	}
	if seconds := spec.NodeAllocatableUpdatePeriodSeconds; seconds != nil && *seconds < minUpdateSeconds {
		errs = append(errs, field.Invalid(specPath.Child("nodeAllocatableUpdatePeriodSeconds"), *seconds,
			"must be greater than or equal to 10 seconds"))
	}
	if spec.ServiceAccountTokenInSecrets != nil && len(spec.TokenRequests) == 0 {
		errs = append(errs, field.Invalid(specPath.Child("serviceAccountTokenInSecrets"),
			*spec.ServiceAccountTokenInSecrets, "must not be specified without tokenRequests"))
	}
	return append(errs, validateTokens(spec.TokenRequests, specPath.Child("tokenRequests"))...)
}

func validateTokens(requests []storagev1.TokenRequest, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	audiences := sets.New[string]()
	for i, request := range requests {
		if audiences.Has(request.Audience) {
			errs = append(errs, field.Duplicate(path.Index(i).Child("audience"), request.Audience))
		}
		audiences.Insert(request.Audience)
		seconds := ptr.Deref(request.ExpirationSeconds, minTokenSeconds)
		if seconds < minTokenSeconds || seconds > maxTokenSeconds {
			errs = append(errs, field.Invalid(path.Index(i).Child("expirationSeconds"), seconds,
				validation.InclusiveRangeError(minTokenSeconds, maxTokenSeconds)))
		}
	}
	return errs
}

// ValidateUpdate returns what is wrong with d as the successor of old: whether volumes are attached, and what kinds of
// them there are, is settled for the driver's life.
func ValidateUpdate(d, old *storagev1.CSIDriver) field.ErrorList {
	errs := append(Validate(d), fieldcheck.Immutable(d.Spec.AttachRequired, old.Spec.AttachRequired,
		specPath.Child("attachRequired"))...)
	return append(errs, fieldcheck.Immutable(d.Spec.VolumeLifecycleModes, old.Spec.VolumeLifecycleModes,
		specPath.Child("volumeLifecycleModes"))...)
}
