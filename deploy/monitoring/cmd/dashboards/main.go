// Command dashboards writes the dashboards to the folder that it is told: go generate runs it.
package main

import (
	"fmt"
	"os"

	"keelson.dev/deploy/monitoring"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: dashboards DIR")
		os.Exit(2)
	}
	if err := monitoring.Write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
