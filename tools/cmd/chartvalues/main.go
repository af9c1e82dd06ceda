// Command chartvalues writes what can be set in a chart, whose folder it is told, into the chart's README.md.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"keelson.dev/tools/chartvalues"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: chartvalues CHART")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(chart string) error {
	updated, _, err := chartvalues.Update(chart)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(chart, "README.md"), []byte(updated), 0o644)
}
