// Command keelson-workload-controllers reconciles workloads: Deployments, ReplicaSets and the objects that their
// Pods need. Called as `keelson-workload-controllers leases` it reports whether its Leases are held.
package main

import (
	"os"

	"keelson.dev/kit/daemon"
	"keelson.dev/kit/leases"
	"keelson.dev/services/workload-controllers/internal/app"
)

func main() {
	d := app.Daemon()
	if len(os.Args) > 1 && os.Args[1] == leases.Name {
		os.Exit(leases.Main(d.Name, app.Controllers(), os.Args[2:]))
	}
	os.Exit(daemon.Main(d))
}
