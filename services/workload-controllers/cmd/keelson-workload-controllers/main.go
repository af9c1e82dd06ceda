// Command keelson-workload-controllers reconciles workloads: Deployments, ReplicaSets and what their Pods stand on.
package main

import (
	"os"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/workload-controllers/internal/app"
)

func main() {
	options := app.NewOptions()
	os.Exit(daemon.Main(daemon.Daemon{
		Name: "workload-controllers", Short: "Reconciles Deployments, ReplicaSets and what their Pods stand on",
		Options: options, Run: options.Run,
	}))
}
