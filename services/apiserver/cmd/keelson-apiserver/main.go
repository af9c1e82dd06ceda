// Command keelson-apiserver stores and serves the API of a mesh. As `keelson-apiserver store` it backs the store up.
package main

import (
	"os"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/apiserver/internal/app"
	"keelson.dev/services/apiserver/internal/storage/backup"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == backup.Name {
		os.Exit(backup.Main(os.Args[2:]))
	}
	os.Exit(daemon.Main(app.Daemon()))
}
