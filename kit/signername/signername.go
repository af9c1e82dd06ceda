// Package signername says what the name of a signer of certificates is: example.com/signer-name. Who serves requests
// and bundles, and who validates Pods that ask for them, know it alike.
package signername

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// longest has a domain, a slash, and the name of an object after its namespace and a dot.
const longest = validation.DNS1123SubdomainMaxLength + 1 +
	validation.DNS1123LabelMaxLength + 1 + validation.DNS1123SubdomainMaxLength

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
	var errs field.ErrorList
	if len(domain) > validation.DNS1123SubdomainMaxLength {
		errs = append(errs, field.TooLong(path, domain, validation.DNS1123SubdomainMaxLength))
	}
	errs = append(errs, checkParts(domain, validation.IsDNS1123Label, path)...)
	if !strings.Contains(domain, ".") {
		errs = append(errs, field.Invalid(path, domain,
			"should be a domain with at least two segments separated by dots"))
	}
	// A part may be as long as the name of an object.
	errs = append(errs, checkParts(rest, validation.IsDNS1123Subdomain, path)...)
	if len(name) > longest {
		errs = append(errs, field.TooLong(path, name, longest))
	}
	return errs
}

// checkParts returns what is wrong with the first malformed part of text between its dots.
func checkParts(text string, check func(string) []string, path *field.Path) field.ErrorList {
	for part := range strings.SplitSeq(text, ".") {
		var errs field.ErrorList
		for _, message := range check(part) {
			errs = append(errs, field.Invalid(path, text, fmt.Sprintf("validating label %q: %s", part, message)))
		}
		if len(errs) > 0 {
			return errs
		}
	}
	return nil
}
