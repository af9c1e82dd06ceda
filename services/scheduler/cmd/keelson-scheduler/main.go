// Command keelson-scheduler gives Pods their nodes.
package main

import (
	"os"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/scheduler/internal/app"
)

func main() {
	options := app.NewOptions()
	os.Exit(daemon.Main(daemon.Daemon{Name: "scheduler", Short: "Give Pods their nodes", Options: options, Run: options.Run}))
}
