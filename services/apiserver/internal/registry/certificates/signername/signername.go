// Package signername says what the name of a signer of certificates is: example.com/signer-name.
package signername

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Check returns what is wrong with a signer's name.
func Check(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	domain, rest, found := strings.Cut(name, "/")
	if !found || strings.Contains(rest, "/") {
		return field.ErrorList{field.Invalid(path, name,
			"must be a fully qualified domain and path of the form 'example.com/signer-name'")}
	}
	errs := validation.IsFullyQualifiedDomainName(path, domain)
	if len(rest) > validation.DNS1123SubdomainMaxLength {
		errs = append(errs, field.TooLong(path, name, validation.DNS1123SubdomainMaxLength))
	}
	for label := range strings.SplitSeq(rest, ".") {
		for _, message := range validation.IsDNS1123Label(label) {
			errs = append(errs, field.Invalid(path, name, fmt.Sprintf("validating label %q: %s", label, message)))
		}
	}
	return errs
}
