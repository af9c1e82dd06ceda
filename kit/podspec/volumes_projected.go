package podspec

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck"
	"keelson.dev/kit/signername"
	"keelson.dev/kit/trustbundle"
)

const (
	shortestTokenSeconds       = 10 * 60
	longestTokenSeconds        = 1 << 32
	shortestCertificateSeconds = 60 * 60
	longestCertificateSeconds  = 91 * 24 * 60 * 60
)

// validateProjected checks each source of a projected volume and that no two of them write one file.
func validateProjected(volume *corev1.ProjectedVolumeSource, fldPath *field.Path) field.ErrorList {
	errs := fileMode(volume.DefaultMode, fldPath.Child("defaultMode"))
	var files []string
	for i := range volume.Sources {
		at := fldPath.Child("sources").Index(i)
		errs = append(errs, validateProjection(&volume.Sources[i], at)...)
		for _, file := range projectedFiles(&volume.Sources[i]) {
			if file != "" && pathTaken(file, &files) {
				errs = append(errs, field.Invalid(at, file, "conflicting duplicate paths"))
			}
		}
	}
	return errs
}

// validateProjection wants exactly one source and checks that one.
func validateProjection(projection *corev1.VolumeProjection, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	chosen := false
	value := reflect.ValueOf(projection).Elem()
	for i := range value.NumField() {
		if value.Field(i).IsNil() {
			continue
		}
		at := fldPath.Child(jsonName(value.Type().Field(i)))
		if chosen {
			errs = append(errs, field.Forbidden(at, "may not specify more than 1 volume type per source"))
			continue
		}
		chosen = true
		errs = append(errs, validateProjectionSource(projection, at)...)
	}
	if !chosen {
		errs = append(errs, field.Required(fldPath, "must specify a volume type"))
	}
	return errs
}

func validateProjectionSource(projection *corev1.VolumeProjection, fldPath *field.Path) field.ErrorList {
	switch {
	case projection.Secret != nil:
		errs := fieldcheck.Required(projection.Secret.Name, fldPath.Child("name"), fieldcheck.NotEmpty)
		return append(errs, validateKeys(projection.Secret.Items, fldPath.Child("items"))...)
	case projection.DownwardAPI != nil:
		return validateDownwardFiles(projection.DownwardAPI.Items, fldPath.Child("items"))
	case projection.ConfigMap != nil:
		errs := fieldcheck.Required(projection.ConfigMap.Name, fldPath.Child("name"), fieldcheck.NotEmpty)
		return append(errs, validateKeys(projection.ConfigMap.Items, fldPath.Child("items"))...)
	case projection.ServiceAccountToken != nil:
		return validateToken(projection.ServiceAccountToken, fldPath)
	case projection.ClusterTrustBundle != nil:
		return validateTrustBundle(projection.ClusterTrustBundle, fldPath)
	case projection.PodCertificate != nil:
		return validateCertificate(projection.PodCertificate, fldPath)
	}
	return nil
}

func validateToken(token *corev1.ServiceAccountTokenProjection, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if seconds := token.ExpirationSeconds; seconds != nil {
		at := fldPath.Child("expirationSeconds")
		if *seconds < shortestTokenSeconds {
			errs = append(errs, field.Invalid(at, *seconds, "may not specify a duration less than 10 minutes"))
		}
		if *seconds > longestTokenSeconds {
			errs = append(errs, field.Invalid(at, *seconds, "may not specify a duration larger than 2^32 seconds"))
		}
	}
	return append(errs, projectedFile(token.Path, fldPath.Child("path"))...)
}

// validateTrustBundle lets a bundle be chosen by its name or by its signer, not by both.
func validateTrustBundle(bundle *corev1.ClusterTrustBundleProjection, fldPath *field.Path) field.ErrorList {
	errs := projectedFile(bundle.Path, fldPath.Child("path"))
	switch {
	case bundle.Name != nil && bundle.SignerName != nil:
		return append(errs, field.Invalid(fldPath, bundle, "only one of name and signerName may be used"))
	case bundle.Name != nil:
		errs = append(errs, fieldcheck.Required(*bundle.Name, fldPath.Child("name"), func(name string) []string {
			return trustbundle.CheckName(name, trustbundle.SignerOf(name))
		})...)
		if bundle.LabelSelector != nil {
			errs = append(errs, field.Invalid(fldPath.Child("labelSelector"), bundle.LabelSelector,
				"labelSelector must be unset if name is specified"))
		}
	case bundle.SignerName != nil:
		errs = append(errs, signername.Check(*bundle.SignerName, fldPath.Child("signerName"))...)
		errs = append(errs, fieldcheck.LabelSelector(bundle.LabelSelector, fldPath.Child("labelSelector"))...)
	default:
		errs = append(errs, field.Required(fldPath, "either name or signerName must be specified"))
	}
	return errs
}

func validateCertificate(certificate *corev1.PodCertificateProjection, fldPath *field.Path) field.ErrorList {
	errs := signername.Check(certificate.SignerName, fldPath.Child("signerName"))
	errs = append(errs, fieldcheck.OneOf(certificate.KeyType, fldPath.Child("keyType"),
		"RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")...)
	if seconds := certificate.MaxExpirationSeconds; seconds != nil &&
		(*seconds < shortestCertificateSeconds || *seconds > longestCertificateSeconds) {
		errs = append(errs, field.Invalid(fldPath.Child("maxExpirationSeconds"), *seconds,
			validation.InclusiveRangeError(shortestCertificateSeconds, longestCertificateSeconds)))
	}
	paths := 0
	for _, file := range []struct{ name, path string }{
		{"credentialBundlePath", certificate.CredentialBundlePath},
		{"keyPath", certificate.KeyPath},
		{"certificateChainPath", certificate.CertificateChainPath},
	} {
		if file.path != "" {
			paths++
			errs = append(errs, projectedFile(file.path, fldPath.Child(file.name))...)
		}
	}
	if paths == 0 {
		errs = append(errs, field.Required(fldPath,
			"specify at least one of credentialBundlePath, keyPath, and certificateChainPath"))
	}
	return errs
}

// projectedFiles lists the files that a source writes, as far as the spec says.
func projectedFiles(projection *corev1.VolumeProjection) []string {
	var files []string
	keys := func(items []corev1.KeyToPath) {
		for _, item := range items {
			files = append(files, item.Path)
		}
	}
	switch {
	case projection.Secret != nil:
		keys(projection.Secret.Items)
	case projection.ConfigMap != nil:
		keys(projection.ConfigMap.Items)
	case projection.DownwardAPI != nil:
		for _, item := range projection.DownwardAPI.Items {
			files = append(files, item.Path)
		}
	case projection.ServiceAccountToken != nil:
		files = append(files, projection.ServiceAccountToken.Path)
	case projection.ClusterTrustBundle != nil:
		files = append(files, projection.ClusterTrustBundle.Path)
	case projection.PodCertificate != nil:
		c := projection.PodCertificate
		files = append(files, c.CredentialBundlePath, c.KeyPath, c.CertificateChainPath)
	}
	return files
}
