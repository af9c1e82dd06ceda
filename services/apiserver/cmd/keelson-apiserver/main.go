// Command keelson-apiserver stores and serves the API of a mesh.
package main

import (
	"context"
	"os"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/apiserver/inproc"
)

func main() {
	config := inproc.NewConfig()
	os.Exit(daemon.Main(daemon.Daemon{
		Name:    "apiserver",
		Short:   "Store and serve the Kubernetes API of a Keelson mesh",
		Options: config,
		Run:     func(ctx context.Context, e *daemon.Environment) error { return inproc.Run(ctx, e, config) },
	}))
}
