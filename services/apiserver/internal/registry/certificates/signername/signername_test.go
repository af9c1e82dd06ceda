package signername

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"keelson.dev/kit/fieldcheck/fieldtest"
)

func TestCheck(t *testing.T) {
	label := strings.Repeat("a", 63)
	longest := label + "." + label + "." + label + "." + strings.Repeat("a", 61)
	for name, want := range map[string][]string{
		"kubernetes.io/kube-apiserver-client": nil,
		"example.com/a.b":                     nil,
		"example.com/" + longest:              nil,
		"":                                    {"spec.signerName: Required value"},
		"example.com":                         {"spec.signerName: Invalid value: \"example.com\": must be a fully"},
		"example.com/a/b":                     {"spec.signerName: Invalid value: \"example.com/a/b\": must be a fully"},
		"com/a":                               {"spec.signerName: Invalid value: \"com\""},
		"/a":                                  {"spec.signerName: Required value"},
		"Example.com/a":                       {"spec.signerName: Invalid value: \"Example.com\""},
		"example.com/":                        {"spec.signerName: Invalid value: \"example.com/\": validating"},
		"example.com/A_b":                     {"spec.signerName: Invalid value: \"example.com/A_b\": validating"},
		"example.com/a..b":                    {"spec.signerName: Invalid value: \"example.com/a..b\": validating"},
		"example.com/*":                       {"spec.signerName: Invalid value: \"example.com/*\": validating label"},
		"example.com/" + longest + "a":        {"spec.signerName: Too long"},
	} {
		fieldtest.Check(t, Check(name, field.NewPath("spec", "signerName")), want...)
	}
}
