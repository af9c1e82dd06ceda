package containerd

import (
	"cmp"
	"fmt"
	"path/filepath"

	"github.com/containerd/containerd/api/types/runc/options"
	"google.golang.org/protobuf/types/known/anypb"
)

// The defaults of containerd's shim for runc, for containers without options.
const (
	runcShim    = "io.containerd.runc.v2"
	defaultRunc = "runc"
	defaultRoot = "/run/containerd/runc"
)

// deletion returns the command with which the OCI runtime of a container ends and forgets it, from the runtime's
// name and options in containerd's record. known is false for runtimes whose command is unknown.
func deletion(name string, opaque *anypb.Any, id string) (program string, args []string, known bool, err error) {
	if name != runcShim {
		return "", nil, false, nil
	}
	opts := &options.Options{}
	if opaque != nil {
		if err := opaque.UnmarshalTo(opts); err != nil {
			return "", nil, false, fmt.Errorf("containerd: reading the runtime's options of container %s: %w", id, err)
		}
	}
	program, root := orDefaults(opts.GetBinaryName(), opts.GetRoot())
	return program, deletionArgs(root, id), true, nil
}

// orDefaults returns runc's program and its folder for containers of this namespace, from the configured values.
func orDefaults(program, root string) (string, string) {
	return cmp.Or(program, defaultRunc), filepath.Join(cmp.Or(root, defaultRoot), namespace)
}

// deletionArgs make runc end and forget a container.
func deletionArgs(root, id string) []string { return []string{"--root", root, "delete", "--force", id} }
