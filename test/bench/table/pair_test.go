package main

import (
	"bytes"
	"os"
	"path/filepath"
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
BenchmarkX 1 5 ns/op 1.0 cpu-ms/pod 0 ends
BenchmarkX 1 6 ns/op 3.0 cpu-ms/pod 0 ends
BenchmarkY 1 6 ns/op 3.0 gone/pod
`)
	work := file("work", "BenchmarkX 1 7 ns/op 1.0 cpu-ms/pod 2 ends 9 new/pod\n")
	var out bytes.Buffer
	if err := compare(&out, base, work); err != nil {
		t.Fatal(err)
	}
	const want = "" +
		"  base  work  ratio  of base's runs  figure\n" +
		"  2.00  1.00   0.50            3.00  X cpu-ms/pod\n" +
		"  0.00  2.00      -               -  X ends\n"
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", &out, want)
	}
}
