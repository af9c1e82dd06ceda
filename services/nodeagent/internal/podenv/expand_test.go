package podenv

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func known(name string) (string, bool) {
	value, ok := map[string]string{"A": "1", "EMPTY": "", "REF": "$(A)", "": "nameless"}[name]
	return value, ok
}

// POD-038: the documented forms of references.
func TestExpand(t *testing.T) {
	for text, want := range map[string]string{
		"":                "",
		"plain":           "plain",
		"$(A)":            "1",
		"x$(A)y$(A)":      "x1y1",
		"$(EMPTY)|":       "|",
		"$(UNKNOWN)":      "$(UNKNOWN)",
		"$$(A)":           "$(A)",
		"$$$(A)":          "$1",
		"$$$$(A)":         "$$(A)",
		"$A ${A} $":       "$A ${A} $",
		"$(A":             "$(A",
		"$(A$(A)":         "$(A$(A)",
		"$(REF)":          "$(A)",
		"$()":             "nameless",
		"cost: $$5":       "cost: $5",
		"$(A)$(UNKNOWN)$": "1$(UNKNOWN)$",
	} {
		if got := Expand(text, known); got != want {
			t.Errorf("Expand(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestExpandAllWantsEveryName(t *testing.T) {
	if got, err := ExpandAll("logs/$(A)", known); got != "logs/1" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := ExpandAll("logs/$(A)/$(B)", known); err == nil || !strings.Contains(err.Error(), `"B"`) {
		t.Errorf("got %v", err)
	}
}

// Text without a dollar sign never changes; doubling each dollar sign protects any text.
func TestExpandProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("$()ABé "))).Draw(t, "text")
		if got := Expand(strings.ReplaceAll(text, "$", "$$"), known); got != text {
			t.Fatalf("escaped text changed: %q became %q", text, got)
		}
		if got := Expand(text, func(string) (string, bool) { return "", false }); !strings.Contains(text, "$$") && got != text {
			t.Fatalf("without known names %q became %q", text, got)
		}
	})
}

func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"$(A)", "$$(A)", "$(", "$", "a$(A$(A))"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got := Expand(strings.ReplaceAll(text, "$", "$$"), known); got != text {
			t.Errorf("escaped text changed: %q became %q", text, got)
		}
		Expand(text, known)
	})
}
