// Command racing reads packages as `go list -json` prints them, and prints the import paths of those that can have a
// data race; with -not, of the others. Packages that are its arguments are in neither list.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"keelson.dev/tools/racing"
)

func main() {
	others := flag.Bool("not", false, "print the packages that cannot")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *others, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "racing:", err)
		os.Exit(1)
	}
}

// listed is a package as the go command lists it.
type listed struct {
	Dir, ImportPath                              string
	GoFiles, CgoFiles, TestGoFiles, XTestGoFiles []string
}

func run(in io.Reader, out io.Writer, others bool, except []string) error {
	packages := json.NewDecoder(in)
	for {
		var p listed
		if err := packages.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading packages: %w", err)
		}
		files := slices.Concat(p.GoFiles, p.CgoFiles, p.TestGoFiles, p.XTestGoFiles)
		for i, name := range files {
			files[i] = filepath.Join(p.Dir, name)
		}
		can, err := racing.Any(files)
		if err != nil {
			return err
		}
		if can != others && !slices.Contains(except, p.ImportPath) {
			if _, err := fmt.Fprintln(out, p.ImportPath); err != nil {
				return fmt.Errorf("printing: %w", err)
			}
		}
	}
}
