// Command keelson-scheduler gives Pods their nodes.
package main

import (
	"os"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/scheduler/internal/app"
)

func main() { os.Exit(daemon.Main(app.Daemon())) }
