// Command keelson-apiserver stores and serves the API of a mesh.
package main

import (
	"os"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/apiserver/internal/app"
)

func main() { os.Exit(daemon.Main(app.Daemon())) }
