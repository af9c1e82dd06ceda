// Command testserver is what tests and samples run in their containers. Under its own name it serves, under the name of
// a small Unix command it is that command.
package main

import (
	"os"
	"path/filepath"

	"keelson.dev/test/images/applet"
	"keelson.dev/test/images/server"
)

func main() {
	name, args := filepath.Base(os.Args[0]), os.Args[1:]
	if name == "testserver" && len(args) > 0 {
		name, args = args[0], args[1:]
	}
	if name == "serve" || name == "testserver" {
		os.Exit(server.Main(args, os.Stdout, os.Stderr))
	}
	os.Exit(applet.Run(name, args, applet.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
