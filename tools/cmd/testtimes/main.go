// Command testtimes prints the 30 slowest packages and 20 slowest tests of runs whose events (`go test -json`) are in
// the files that it is given.
package main

import (
	"fmt"
	"io"
	"os"

	"keelson.dev/tools/testevents"
	"keelson.dev/tools/testtimes"
)

const (
	slowestPackages = 30
	slowestTests    = 20
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "testtimes:", err)
		os.Exit(1)
	}
}

func run(files []string) error {
	var packages, tests []testevents.End
	err := testevents.Files(files, func(file io.Reader) error {
		ofPackages, ofTests, err := testtimes.Read(file)
		packages, tests = append(packages, ofPackages...), append(tests, ofTests...)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Printf("==> the %d slowest packages\n", slowestPackages)
	if err := testtimes.Print(os.Stdout, testtimes.Slowest(packages, slowestPackages)); err != nil {
		return err
	}
	fmt.Printf("==> the %d slowest tests\n", slowestTests)
	return testtimes.Print(os.Stdout, testtimes.Slowest(tests, slowestTests))
}
