package clustertrustbundle

import (
	"fmt"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/kit/trustbundle"
	"keelson.dev/services/apiserver/internal/registry/certificates/signername"
)

var (
	namePath   = field.NewPath("metadata", "name")
	signerPath = field.NewPath("spec", "signerName")
	bundlePath = field.NewPath("spec", "trustBundle")
)

// Validate returns what is wrong with a new bundle.
func Validate(b *bundle) field.ErrorList {
	errs := fieldcheck.Messages(b.Name, namePath, checkName(b.Name, b.Spec.SignerName))
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

// checkName says what is wrong with the name of a bundle of the signer; empty: of none. The name says whose it is.
func checkName(name, signer string) []string {
	if signer == "" && strings.Contains(name, ":") {
		return []string{`must not contain ":", as the names of signers' bundles do: there is no signerName`}
	}
	if signer != "" {
		prefix := trustbundle.NamePrefix(signer)
		rest, its := strings.CutPrefix(name, prefix)
		if !its {
			return []string{fmt.Sprintf("must begin with %q, as the names of all bundles of the signer %s", prefix,
				signer)}
		}
		name = rest
	}
	return apivalidation.NameIsDNSSubdomain(name, false)
}

func checkBundle(text string) field.ErrorList {
	if len(text) > trustbundle.MaxSize {
		return field.ErrorList{field.TooLong(bundlePath, "", trustbundle.MaxSize)}
	}
	return fieldcheck.Messages("<certificates>", bundlePath, trustbundle.Check(text))
}
