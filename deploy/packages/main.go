// Command packages makes the packages of Keelson, a .deb, an .rpm and a tarball, from programs and images that are
// built already: what packages.yaml lists. The same input gives the same bytes.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	var in input
	var epoch int64
	flag.StringVar(&in.root, "root", ".", "folder of the repository")
	flag.StringVar(&in.bin, "bin", "", "folder of the programs and images")
	flag.StringVar(&in.reference, "reference", "", "folder that keel-reference has written")
	flag.StringVar(&in.out, "out", "", "folder for the packages, of which it has no others afterwards")
	flag.StringVar(&in.description, "version", "", "what git describe --tags --always --dirty prints")
	flag.StringVar(&in.modules, "modules", "", "what go env GOMODCACHE prints: licences of others are there")
	flag.StringVar(&in.goroot, "goroot", "", "what go env GOROOT prints")
	flag.Int64Var(&epoch, "epoch", 0, "date of everything in the packages, in seconds since 1970")
	flag.Parse()
	in.committed = time.Unix(epoch, 0).UTC()
	made, err := in.packages()
	if err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
	for _, file := range made {
		fmt.Println("    " + file)
	}
}
