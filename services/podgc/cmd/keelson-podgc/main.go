// Command keelson-podgc takes objects away: what owners leave behind, Pods of nodes that are gone, namespaces being
// deleted. As `keelson-podgc leases` it reports whether its Leases are held.
package main

import (
	"os"

	"keelson.dev/kit/daemon"
	"keelson.dev/kit/leases"
	"keelson.dev/services/podgc/internal/app"
)

func main() {
	d := app.Daemon()
	if len(os.Args) > 1 && os.Args[1] == leases.Name {
		os.Exit(leases.Main(d.Name, app.Collectors(), os.Args[2:]))
	}
	os.Exit(daemon.Main(d))
}
