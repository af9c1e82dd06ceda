// Command keelson-scheduler gives Pods their nodes. As `keelson-scheduler simulate` it reports what it would do, as
// `keelson-scheduler leases` whether the Lease of the default profile is held.
package main

import (
	"os"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/daemon"
	"keelson.dev/kit/leases"
	"keelson.dev/services/scheduler/internal/app"
	"keelson.dev/services/scheduler/internal/simulate"
)

func main() {
	d, command, args := app.Daemon(), "", []string(nil)
	if len(os.Args) > 1 {
		command, args = os.Args[1], os.Args[2:]
	}
	switch command {
	case simulate.Name:
		os.Exit(simulate.Main(args))
	case leases.Name:
		os.Exit(leases.Main(d.Name, []string{corev1.DefaultSchedulerName}, args))
	}
	os.Exit(daemon.Main(d))
}
