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

	"github.com/spf13/cobra"

	"keelson.dev/cli/internal/mesh"
	"keelson.dev/cli/internal/plan"
)

// schedulerProgram is what answers, with the code that decides.
const schedulerProgram = "keelson-scheduler"

// newSimulate hands its flags to the scheduler's program, which knows them.
func newSimulate(g *global) *cobra.Command {
	return &cobra.Command{
		Use:                "simulate",
		Short:              "tell which Pods of manifests would get a node, and what nodes more or less would change",
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			dataDir, args := takeDataDir(g.either(), args)
			program, err := scheduler()
			if err != nil {
				return err
			}
			if !names(args, "--snapshot", "--kubeconfig", "--help", "-h") {
				m, err := mesh.Open(dataDir, c.OutOrStdout())
				if err != nil {
					return err
				}
				args = append(args, "--kubeconfig="+m.Layout.Kubeconfig(plan.AdminCertificate))
			}
			var said bytes.Buffer
			//nolint:forbidigo // The program computes, as long as that takes.
			run := exec.CommandContext(c.Context(), program, append([]string{"simulate"}, args...)...)
			run.Stdin, run.Stdout, run.Stderr = c.InOrStdin(), c.OutOrStdout(), &said
			err = run.Run()
			var status *exec.ExitError
			switch {
			case err == nil:
				return nil
			case !errors.As(err, &status) || said.Len() == 0:
				return fmt.Errorf("running %s: %w", program, err)
			}
			err = errors.New(strings.TrimSpace(said.String()))
			if status.ExitCode() == exitUsage {
				return usageError{err}
			}
			return err
		},
	}
}

// scheduler returns the path of the scheduler's program, which lies beside keel.
func scheduler() (string, error) {
	own, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding keel's own folder: %w", err)
	}
	program := filepath.Join(filepath.Dir(own), schedulerProgram)
	if _, err := os.Stat(program); err != nil {
		return "", fmt.Errorf("%s is missing in %s, beside keel: make build makes both", schedulerProgram,
			filepath.Dir(own))
	}
	return program, nil
}

// takeDataDir takes --data-dir from the arguments, which are not keel's but for this one.
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
