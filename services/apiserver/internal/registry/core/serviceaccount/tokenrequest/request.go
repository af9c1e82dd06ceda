package tokenrequest

import (
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/defaults"
)

// Limits of how long a token can be asked for, in seconds.
const (
	defaultExpirationSeconds = int64(60 * 60)
	minExpirationSeconds     = int64(10 * 60)
	maxExpirationSeconds     = int64(1) << 32
)

// Kinds that a token can be bound to.
const (
	kindPod    = "Pod"
	kindSecret = "Secret"
	kindNode   = "Node"
)

// Default fills in how long the token is to last.
func Default(r *authenticationv1.TokenRequest) {
	defaults.SetPtr(&r.Spec.ExpirationSeconds, defaultExpirationSeconds)
}

// Validate returns what is wrong with a defaulted request.
func Validate(r *authenticationv1.TokenRequest) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	seconds := ptr.Deref(r.Spec.ExpirationSeconds, 0)
	if seconds < minExpirationSeconds {
		errs = append(errs, field.Invalid(path.Child("expirationSeconds"), seconds,
			"may not specify a duration less than 10 minutes"))
	}
	if seconds > maxExpirationSeconds {
		errs = append(errs, field.Invalid(path.Child("expirationSeconds"), seconds,
			"may not specify a duration larger than 2^32 seconds"))
	}
	if ref := r.Spec.BoundObjectRef; ref != nil && ref.Name == "" {
		errs = append(errs, field.Required(path.Child("boundObjectRef", "name"), ""))
	}
	return errs
}

// checkBound tells why a token cannot be bound to a kind of object.
func checkBound(ref *authenticationv1.BoundObjectReference) error {
	if ref.APIVersion == "v1" && (ref.Kind == kindPod || ref.Kind == kindSecret || ref.Kind == kindNode) {
		return nil
	}
	return fmt.Errorf("cannot bind token to object of type %s, Kind=%s: only v1 Pod, Secret and Node are possible",
		ref.APIVersion, ref.Kind)
}

// checkUID wants the object found to be the one that the request means.
func checkUID(asked, found types.UID) error {
	if asked == "" || asked == found {
		return nil
	}
	return fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object might "+
		"have been deleted and then recreated", asked)
}
