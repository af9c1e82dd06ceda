package clustertrustbundle

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/kit/signername"
	"keelson.dev/kit/trustbundle"
)

var (
	namePath   = field.NewPath("metadata", "name")
	signerPath = field.NewPath("spec", "signerName")
	bundlePath = field.NewPath("spec", "trustBundle")
)

// Validate returns what is wrong with a new bundle.
func Validate(b *bundle) field.ErrorList {
	errs := fieldcheck.Messages(b.Name, namePath, trustbundle.CheckName(b.Name, b.Spec.SignerName))
	if b.Spec.SignerName != "" {
		errs = append(errs, signername.Check(b.Spec.SignerName, signerPath)...)
	}
	return append(errs, checkBundle(b.Spec.TrustBundle)...)
}

// ValidateUpdate returns what is wrong with b as the successor of old. Certificates that stay are not looked at again:
// what reads them may have become stricter.
func ValidateUpdate(b, old *bundle) field.ErrorList {
	errs := fieldcheck.Immutable(b.Spec.SignerName, old.Spec.SignerName, signerPath)
	if b.Spec.TrustBundle != old.Spec.TrustBundle {
		errs = append(errs, checkBundle(b.Spec.TrustBundle)...)
	}
	return errs
}

func checkBundle(text string) field.ErrorList {
	if len(text) > trustbundle.MaxSize {
		return field.ErrorList{field.TooLong(bundlePath, "", trustbundle.MaxSize)}
	}
	return fieldcheck.Messages("<certificates>", bundlePath, trustbundle.Check(text))
}
