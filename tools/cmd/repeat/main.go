// Command repeat runs the tests of packages, or those of a target of make, again and again beside a load, in another
// order each time, and prints those that did not pass every time. It exits with 1 if there is one.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"keelson.dev/tools/repeat"
)

func main() {
	var o repeat.Options
	flags, events := "", ""
	flag.IntVar(&o.Rounds, "n", 20, "how often each test runs")
	flag.Int64Var(&o.First, "seed", time.Now().Unix(), "the seed of the first round; each further round has the next")
	flag.StringVar(&flags, "flags", "-race", "flags of go test -c")
	flag.BoolVar(&o.Load, "load", true, "keep all processors busy meanwhile")
	flag.StringVar(&o.Target, "make", "", "what make is asked for, in place of running the packages")
	flag.StringVar(&events, "events", "", "patterns of the files in which that leaves the tests' events")
	flag.Parse()
	o.Flags, o.Events, o.Packages = strings.Fields(flags), strings.Fields(events), flag.Args()
	outcomes, err := repeat.Run(o, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "repeat:", err)
		os.Exit(2)
	}
	fmt.Printf("==> did not pass every time, of %d\n", o.Rounds)
	if err := outcomes.Print(os.Stdout); err != nil || outcomes.Failed() {
		os.Exit(1)
	}
}
