package containerd

import (
	"cmp"
	"fmt"
	"path/filepath"

	"github.com/containerd/containerd/api/types/runc/options"
	"google.golang.org/protobuf/types/known/anypb"
)

// What containerd's shim for runc takes where the container's options say nothing.
const (
	runcShim    = "io.containerd.runc.v2"
	defaultRunc = "runc"
	defaultRoot = "/run/containerd/runc"
)

// deletion is the command by which the OCI runtime of a container ends and forgets it, from the runtime's name and
// options as containerd keeps them. known is false for runtimes of which the command is not known.
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

// orDefaults returns the program of runc and where it has its containers of this namespace, from what is configured.
func orDefaults(program, root string) (string, string) {
	return cmp.Or(program, defaultRunc), filepath.Join(cmp.Or(root, defaultRoot), namespace)
}

// deletionArgs let runc end and forget a container.
func deletionArgs(root, id string) []string { return []string{"--root", root, "delete", "--force", id} }
