package supervise

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coreos/go-systemd/v22/unit"

	"keelson.dev/kit/subprocess"
)

// program is the part of a unit file that describes its process.
type program struct {
	// modules are the kernel modules to load first; one that cannot be loaded is built in, or the process reports
	// the error.
	modules []string
	command subprocess.Command
	// oomScore is the process's oom_score_adj; empty without one.
	oomScore string
}

// modprobe is the prefix of the ExecStartPre with which units load a kernel module.
const modprobe = "-/sbin/modprobe "

// parse parses the file of a unit. It ignores options for systemd alone, such as order and limits.
func parse(content string) (program, error) {
	options, err := unit.DeserializeOptions(strings.NewReader(strings.ReplaceAll(content, "\\\n", " ")))
	if err != nil {
		return program{}, fmt.Errorf("reading a unit: %w", err)
	}
	var p program
	for _, option := range options {
		if option.Section != "Service" {
			continue
		}
		switch option.Name {
		case "WorkingDirectory":
			p.command.Dir = option.Value
		case "Environment":
			p.command.Env = append(p.command.Env, option.Value)
		case "OOMScoreAdjust":
			if _, err := strconv.Atoi(option.Value); err != nil {
				return program{}, fmt.Errorf("reading a unit: OOMScoreAdjust: %w", err)
			}
			p.oomScore = option.Value
		case "ExecStartPre":
			module, ok := strings.CutPrefix(option.Value, modprobe)
			if !ok {
				return program{}, fmt.Errorf("reading a unit: ExecStartPre=%s is not understood", option.Value)
			}
			p.modules = append(p.modules, module)
		case "ExecStart":
			words := strings.Fields(option.Value)
			if len(words) == 0 || p.command.Path != "" {
				return program{}, errors.New("reading a unit: ExecStart must name one program")
			}
			p.command.Path, p.command.Args = words[0], slices.Clone(words[1:])
		}
	}
	if p.command.Path == "" {
		return program{}, errors.New("reading a unit: ExecStart is missing")
	}
	return p, nil
}
