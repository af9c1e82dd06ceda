// Command keelson-podgc takes objects away: what owners leave behind, Pods of nodes that are gone, namespaces being
// deleted.
package main

import (
	"os"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/podgc/internal/app"
)

func main() { os.Exit(daemon.Main(app.Daemon())) }
