//go:build !linux || !cgo || !seccomp

// Package seccomp takes the place, when runc is built, of the file with which runc refuses seccomp profiles where it
// has no libseccomp.
package seccomp

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runtime-spec/specs-go"

	"keelson.dev/tools/pins/runc/filter"
)

// ErrSeccompNotEnabled is part of the package's surface.
var ErrSeccompNotEnabled = errors.New("seccomp: config provided but seccomp not supported")

// Enabled is true: the filter is compiled without libseccomp.
const Enabled = true

// InitSeccomp installs the filter of the profile. There is never a file descriptor to hand on.
func InitSeccomp(config *configs.Seccomp) (int, error) {
	if config == nil {
		return -1, nil
	}
	program, err := filter.Compile(config, runtime.GOARCH)
	if err != nil {
		return -1, fmt.Errorf("compiling the seccomp profile: %w", err)
	}
	return -1, filter.Load(program, config.Flags)
}

// FlagSupported returns an error if a profile may not name a flag.
func FlagSupported(flag specs.LinuxSeccompFlag) error { return filter.FlagSupported(flag) }

// Version is libseccomp's, which is not there.
func Version() (uint, uint, uint) { return 0, 0, 0 }
