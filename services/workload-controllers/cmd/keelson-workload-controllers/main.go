// Command keelson-workload-controllers reconciles workloads: Deployments, ReplicaSets and what their Pods stand on.
package main

import (
	"os"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/workload-controllers/internal/app"
)

func main() { os.Exit(daemon.Main(app.Daemon())) }
