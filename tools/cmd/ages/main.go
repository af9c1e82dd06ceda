// Command ages gives the files of a fresh clone, the folder that it is given, ages that follow from what is in them.
package main

import (
	"fmt"
	"os"

	"keelson.dev/tools/ages"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: ages FOLDER")
		os.Exit(2)
	}
	if err := ages.Settle(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "ages:", err)
		os.Exit(1)
	}
}
