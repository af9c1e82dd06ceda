// Command keelson-scheduler gives Pods their nodes. As `keelson-scheduler simulate` it tells what it would do.
package main

import (
	"os"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/scheduler/internal/app"
	"keelson.dev/services/scheduler/internal/simulate"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == simulate.Name {
		os.Exit(simulate.Main(os.Args[2:]))
	}
	os.Exit(daemon.Main(app.Daemon()))
}
