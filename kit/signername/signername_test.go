package signername

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

func TestCheck(t *testing.T) {
	label, object := strings.Repeat("a", 63), strings.Repeat("b", 253)
	domain := label + "." + label + "." + label + "." + strings.Repeat("a", 61)
	const at = "spec.signerName: Invalid value: "
	for name, want := range map[string][]string{
		"kubernetes.io/kube-apiserver-client":  nil,
		"example.com/a.b":                      nil,
		"example.com/" + object:                nil,
		"example.com/" + object + "." + object: nil,
		domain + "/a":                          nil,
		domain + "/" + label + "." + object:    nil,
		"":                                     {"spec.signerName: Required value"},
		"example.com":                          {at + `"example.com": must be a fully`},
		"example.com/a/b":                      {at + `"example.com/a/b": must be a fully`},
		"com/a":                                {at + `"com": should be a domain with at least two`},
		"/a":                                   {at + `"": validating`, at + `"": should be`},
		"Example.com/a":                        {at + `"Example.com": validating label "Example"`},
		"example.com./a":                       {at + `"example.com.": validating label ""`},
		label + "a.com/a":                      {at + `"` + label + `a.com": validating label`},
		domain + "a/a":                         {"spec.signerName: Too long: may not be more than 253"},
		"example.com/":                         {at + `"": validating`},
		"example.com/A_b":                      {at + `"A_b": validating`},
		"example.com/a..b":                     {at + `"a..b": validating label ""`},
		"example.com/*":                        {at + `"*": validating label`},
		"example.com/" + object + "b":          {at + `"` + object + `b": validating label`},
		domain + "/" + label + ".c." + object[:252]: {"spec.signerName: Too long: may not be more than 571"},
		domain + "/" + label + "a." + object:        {"spec.signerName: Too long: may not be more than 571"},
	} {
		fieldtest.Check(t, Check(name, field.NewPath("spec", "signerName")), want...)
	}
}
