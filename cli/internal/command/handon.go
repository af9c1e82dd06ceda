package command

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// endGrace is how long a program may take to end after it was asked to.
const endGrace = 20 * time.Second

// handOn runs the program of a daemon, which knows the flags. Its output and its exit status become keel's.
func handOn(c *cobra.Command, program string, args []string) error {
	path, err := besideKeel(program)
	if err != nil {
		return err
	}
	var said bytes.Buffer
	//nolint:forbidigo // The program works as long as that takes.
	run := exec.CommandContext(c.Context(), path, args...)
	run.Stdin, run.Stdout, run.Stderr = c.InOrStdin(), c.OutOrStdout(), &said
	run.Cancel = func() error { return run.Process.Signal(syscall.SIGTERM) }
	run.WaitDelay = endGrace
	err = run.Run()
	var status *exec.ExitError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &status) || said.Len() == 0:
		return fmt.Errorf("running %s: %w", path, err)
	}
	err = errors.New(strings.TrimSpace(said.String()))
	if status.ExitCode() == exitUsage {
		return usageError{err}
	}
	return err
}

// besideKeel returns the path of a daemon's program in keel's folder.
func besideKeel(name string) (string, error) {
	own, err := ownFolder()
	if err != nil {
		return "", err
	}
	program := filepath.Join(own, name)
	if _, err := os.Stat(program); err != nil {
		return "", fmt.Errorf("%s is missing in %s, beside keel: make build makes both", name, own)
	}
	return program, nil
}

// takeDataDir removes --data-dir from the arguments, because it is the only flag among them that is keel's.
func takeDataDir(dataDir string, args []string) (string, []string) {
	var rest []string
	for i := 0; i < len(args); i++ {
		value, joined := strings.CutPrefix(args[i], "--data-dir=")
		switch {
		case joined:
			dataDir = value
		case args[i] == "--data-dir" && i+1 < len(args):
			i++
			dataDir = args[i]
		default:
			rest = append(rest, args[i])
		}
	}
	return dataDir, rest
}

// names reports whether one of the flags is among the arguments.
func names(args []string, flags ...string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return slices.Contains(flags, name)
	})
}
