package podenv

import (
	"errors"
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
		if got, err := Expand(text, len(want), known); got != want || err != nil {
			t.Errorf("Expand(%q) = %q, %v, want %q", text, got, err, want)
		}
		if got, err := Expand(text, len(want)-1, known); !errors.Is(err, ErrTooLong) || got != "" {
			t.Errorf("Expand(%q) with one byte less than it needs: %q, %v", text, got, err)
		}
	}
}

func TestExpandAllWantsEveryName(t *testing.T) {
	if got, err := ExpandAll("logs/$(A)", 6, known); got != "logs/1" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := ExpandAll("logs/$(A)", 5, known); !errors.Is(err, ErrTooLong) || !strings.Contains(err.Error(),
		"at most 5 bytes") {
		t.Errorf("beyond the limit: %v", err)
	}
	if _, err := ExpandAll("logs/$(A)/$(B)", 100, known); err == nil || !strings.Contains(err.Error(), `"B"`) {
		t.Errorf("got %v", err)
	}
}

// Text without a dollar sign never changes; doubling each dollar sign protects any text.
func TestExpandProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("$()ABé "))).Draw(t, "text")
		if got, _ := Expand(strings.ReplaceAll(text, "$", "$$"), len(text), known); got != text {
			t.Fatalf("escaped text changed: %q became %q", text, got)
		}
		if got, _ := Expand(text, len(text), func(string) (string, bool) { return "", false }); !strings.Contains(text,
			"$$") && got != text {
			t.Fatalf("without known names %q became %q", text, got)
		}
	})
}

func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"$(A)", "$$(A)", "$(", "$", "a$(A$(A))"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, _ := Expand(strings.ReplaceAll(text, "$", "$$"), len(text), known); got != text {
			t.Errorf("escaped text changed: %q became %q", text, got)
		}
		if got, err := Expand(text, 10, known); err == nil && len(got) > 10 {
			t.Errorf("%d bytes of at most 10", len(got))
		}
	})
}
