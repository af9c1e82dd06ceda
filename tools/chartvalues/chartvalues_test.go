package chartvalues

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each value has a row with its default and its comment, and nothing but what is between the marks changes.
func TestUpdate(t *testing.T) {
	chart := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		file := filepath.Join(chart, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("README.md", "# Above\n"+begin+"old\n"+end+"# Below\n")
	write("values.yaml", "# About all.\n\n# One\n# of two | lines.\na: 1\nempty: \"\"\nsub:\n  enabled: true\n")
	write("charts/sub/values.yaml",
		"# What is below.\nmap:\n  # Flow.\n  flow: {cpu: 50m}\n  list: [\"*\"]\nnone: {}\n")
	want := "# Above\n" + begin + "\nAbout all.\n\n| value | default | |\n|---|---|---|\n" +
		"| `a` | `1` | One of two \\| lines. |\n| `empty` | `\"\"` | |\n| `sub.enabled` | `true` | |\n\n" +
		"### sub\n\n| value | default | |\n|---|---|---|\n" +
		"| `sub.map` | | What is below. |\n| `sub.map.flow` | `{cpu: 50m}` | Flow. |\n" +
		"| `sub.map.list` | `[\"*\"]` | |\n| `sub.none` | `{}` | |\n\n" + end + "# Below\n"
	got, _, err := Update(chart)
	if err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	write("README.md", "# Above\n")
	if _, _, err := Update(chart); err == nil {
		t.Error("a page without the marks is taken")
	}
	write("README.md", begin+end)
	write("values.yaml", "# Nothing.\n")
	if _, _, err := Update(chart); err == nil || !strings.Contains(err.Error(), "holds no values") {
		t.Errorf("a file without values: %v", err)
	}
}

// TestTheChartsPageIsCurrent checks that the page of the chart lists the chart's values.
func TestTheChartsPageIsCurrent(t *testing.T) {
	updated, before, err := Update("../../deploy/helm/keelson")
	if err != nil {
		t.Fatal(err)
	}
	if updated != before {
		t.Error("deploy/helm/keelson/README.md tells of other values: run make generate")
	}
}
