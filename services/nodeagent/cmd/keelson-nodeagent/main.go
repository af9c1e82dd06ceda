// Command keelson-nodeagent runs the Pods of one node.
package main

import (
	"os"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/nodeagent/internal/app"
)

func main() {
	options := app.NewOptions()
	os.Exit(daemon.Main(daemon.Daemon{Name: "nodeagent", Short: "Run the Pods of one node", Options: options, Run: options.Run}))
}
