// Package tabletest checks a resource's table columns against golden files: testdata/columns/<case>.yaml holds an
// object (or several, separated by ---), <case>.txt beside it the table that kubectl would print, normal and wide. `go
// test ./... -update-testdata` rewrites the .txt files.
package tabletest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"keelson.dev/services/apiserver/internal/resource"
)

var update = flag.Bool("update-testdata", false, "write the golden files under testdata anew")

// Now is the moment at which the golden tables are taken; ages in them count from creation to it.
var Now = time.Date(2026, time.January, 10, 12, 0, 0, 0, time.UTC)

// Golden renders each testdata/columns/*.yaml of the resource's folder with its columns and compares it with its .txt.
func Golden[O resource.Object](t *testing.T, of resource.Resource[O]) {
	t.Helper()
	inputs, err := filepath.Glob(filepath.Join("testdata", "columns", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(inputs) == 0 {
		t.Fatal("no object under testdata/columns")
	}
	for _, input := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(input), ".yaml"), func(t *testing.T) {
			objects := load(t, input, of.New)
			compare(t, strings.TrimSuffix(input, ".yaml")+".txt", render(of.Columns, objects))
		})
	}
}

func load[O resource.Object](t *testing.T, path string, newObject func() O) []O {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var objects []O
	for _, document := range strings.Split(string(content), "\n---\n") {
		obj := newObject()
		if err := yaml.UnmarshalStrict([]byte(document), obj); err != nil {
			t.Fatalf("decoding %s: %v", path, err)
		}
		objects = append(objects, obj)
	}
	return objects
}

// render prints the table twice: as kubectl get shows it, then with the wide columns.
func render[O resource.Object](columns resource.Columns[O], objects []O) string {
	var out bytes.Buffer
	definitions := columns.Headings()
	for _, wide := range []bool{false, true} {
		writer := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
		fmt.Fprintln(writer, strings.Join(headings(definitions, wide), "\t"))
		for _, obj := range objects {
			fmt.Fprintln(writer, strings.Join(cells(definitions, columns.Row(obj, Now), wide), "\t"))
		}
		writer.Flush()
		if !wide {
			out.WriteString("\n")
		}
	}
	return trimLines(out.String())
}

func headings(definitions []metav1.TableColumnDefinition, wide bool) []string {
	var names []string
	for _, definition := range definitions {
		if wide || definition.Priority == 0 {
			names = append(names, strings.ToUpper(definition.Name))
		}
	}
	return names
}

func cells(definitions []metav1.TableColumnDefinition, row []any, wide bool) []string {
	var shown []string
	for i, definition := range definitions {
		if wide || definition.Priority == 0 {
			shown = append(shown, fmt.Sprint(row[i]))
		}
	}
	return shown
}

func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("reading the golden file (write it with -update-testdata): %v", err)
	}
	if got != string(want) {
		t.Errorf("the table differs from %s\n--- got\n%s\n--- want\n%s", path, got, want)
	}
}
