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

// program is what the file of a unit says of its process.
type program struct {
	// modules are those of the kernel that are loaded first; one that cannot be loaded is built in, or the process says
	// so.
	modules []string
	command subprocess.Command
	// oomScore is how the kernel ranks the process when memory runs out.
	oomScore string
}

// modprobe is how units load a module of the kernel.
const modprobe = "-/sbin/modprobe "

// parse reads the file of a unit. What says how systemd treats a unit, as its order and limits, is left to it.
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
