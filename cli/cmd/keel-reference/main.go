// Command keel-reference writes keel's manual pages and the completions of shells into the folder that it is given, as
// of SOURCE_DATE_EPOCH. Packages have what it writes; it is in none itself.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"keelson.dev/cli/internal/command"
	"keelson.dev/cli/internal/reference"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		//nolint:forbidigo // It is no command of keel's.
		fmt.Fprintln(os.Stderr, "keel-reference:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("one folder to write into is needed, and there are %d arguments", len(args))
	}
	epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %q must be the seconds since 1970 that the pages are dated by",
			os.Getenv("SOURCE_DATE_EPOCH"))
	}
	return reference.Write(command.Root(), args[0], time.Unix(epoch, 0))
}
