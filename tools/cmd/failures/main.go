// Command failures names what failed of the tests whose events (`go test -json`) are in the files that it is given.
package main

import (
	"fmt"
	"os"

	"keelson.dev/tools/failures"
	"keelson.dev/tools/testevents"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "failures:", err)
		os.Exit(1)
	}
}

func run(files []string) error {
	all := failures.New()
	if err := testevents.Files(files, all.Add); err != nil {
		return err
	}
	fmt.Println("==> what failed")
	return all.Print(os.Stdout)
}
