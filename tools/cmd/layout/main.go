// Command layout checks the repository that it is given (default: the working directory) and prints what breaks its
// layout.
package main

import (
	"fmt"
	"os"

	"keelson.dev/tools/layout"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	findings, err := layout.Check(os.DirFS(root))
	for _, finding := range findings {
		fmt.Println(finding)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "layout:", err)
	}
	if err != nil || len(findings) > 0 {
		os.Exit(1)
	}
}
