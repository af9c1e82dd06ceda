// Command keel runs and inspects a Keelson mesh on this machine.
package main

import (
	"os"

	"keelson.dev/cli/internal/command"
)

func main() { os.Exit(command.Main()) }
