// Command failures names what failed of the tests whose events (`go test -json`) are in the files that it is given.
package main

import (
	"fmt"
	"os"

	"keelson.dev/tools/failures"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "failures:", err)
		os.Exit(1)
	}
}

func run(files []string) error {
	all := failures.New()
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		err = all.Add(file)
		file.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	fmt.Println("==> what failed")
	return all.Print(os.Stdout)
}
