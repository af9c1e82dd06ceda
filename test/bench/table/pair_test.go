package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPairPrintsMeansAndRatios(t *testing.T) {
	file := func(name, content string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	base := file("base", `
cpu: Some Processor
BenchmarkAPI/PodCreate 1 5 ns/op 1.0 all-cpu-ms/op
BenchmarkX 1 5 ns/op 1.0 cpu-ms/pod 0 ends
BenchmarkX 1 6 ns/op 3.0 cpu-ms/pod 0 ends
BenchmarkY 1 6 ns/op 3.0 gone/pod
`)
	work := file("work", "cpu: Some Processor\nBenchmarkAPI/PodCreate 1 5 ns/op 0.5 all-cpu-ms/op\n"+
		"BenchmarkX 1 7 ns/op 0.8 cpu-ms/pod 2 ends 9 new/pod\n"+
		"BenchmarkX 1 7 ns/op 1.2 cpu-ms/pod 2 ends\n")
	page := file("page", preface+"\n## Figures\n\nfirst\n\n## Change since v0\n\nold\n")
	var out bytes.Buffer
	if err := compare(&out, "v1", base, work, page); err != nil {
		t.Fatal(err)
	}
	const want = "" +
		"  base  work  ratio  of base's runs  of work's  figure\n" +
		"  1.00  0.50   0.50            1.00       1.00  API/PodCreate all-cpu-ms/op\n" +
		"  2.00  1.00   0.50            3.00       1.50  X cpu-ms/pod\n" +
		"  0.00  2.00      -               -       1.00  X ends\n"
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", &out, want)
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const row = "| Pod create, server and store, CPU ms | 1.00 | 0.50 | 0.50 | 1.00, 1.00 |\n"
	if !strings.HasPrefix(string(got), preface+"\n## Figures\n\nfirst\n\n## Change since v1\n\nWhat ") ||
		!strings.HasSuffix(string(got), "|---|--:|--:|--:|--:|\n"+row) {
		t.Errorf("the page is\n%s", got)
	}
}
