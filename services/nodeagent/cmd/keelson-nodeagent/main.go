// Command keelson-nodeagent runs the Pods of one node.
package main

import (
	"os"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/nodeagent/internal/app"
)

func main() { os.Exit(daemon.Main(app.Daemon())) }
