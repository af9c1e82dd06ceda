package containerd

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// setup is what containerd's configuration says of the containers of CRI.
type setup struct {
	runcs []runc
	// bundles is the folder with a bundle for each container that has a task.
	bundles string
	// endpoint is where containerd listens, as its shims are told; empty where it is not known.
	endpoint string
}

// nothing says that nothing can be looked for.
func (s setup) nothing() bool { return len(s.runcs) == 0 && s.endpoint == "" }

// runc is an OCI runtime and the folder in which it has one for each container of this namespace.
type runc struct {
	program, root string
	// shared says that the folder is the one which every containerd of the machine takes that was told of none.
	shared bool
}

// readSetup reads the configuration that containerd tells with its verbose status. An empty one, of another runtime, is
// an empty setup.
func readSetup(config string) (setup, error) {
	if config == "" {
		return setup{}, nil
	}
	var told struct {
		Containerd struct {
			Runtimes map[string]struct {
				RuntimeType string `json:"runtimeType"`
				Options     struct{ BinaryName, Root string }
			} `json:"runtimes"`
		} `json:"containerd"`
		// StateDir is CRI's own folder below containerd's.
		StateDir           string `json:"stateDir"`
		ContainerdEndpoint string `json:"containerdEndpoint"`
	}
	if err := json.Unmarshal([]byte(config), &told); err != nil {
		return setup{}, fmt.Errorf("containerd: reading its configuration: %w", err)
	}
	if !filepath.IsAbs(told.StateDir) {
		return setup{}, nil
	}
	out := setup{bundles: filepath.Join(filepath.Dir(told.StateDir), "io.containerd.runtime.v2.task", namespace),
		endpoint: told.ContainerdEndpoint}
	for _, r := range told.Containerd.Runtimes {
		if r.RuntimeType != runcShim {
			continue
		}
		program, root := orDefaults(r.Options.BinaryName, r.Options.Root)
		one := runc{program: program, root: root, shared: r.Options.Root == ""}
		if !slices.ContainsFunc(out.runcs, func(other runc) bool { return other.root == one.root }) {
			out.runcs = append(out.runcs, one)
		}
	}
	return out, nil
}

// folder is what runc has of one container.
type folder struct {
	id string
	// bundle is the container's, as runc has noted it. It is empty where runc was ended before it had noted anything,
	// or has just begun, and where the note is damaged.
	bundle string
	since  time.Time
}

// minSharedAge is longer than runc may take from the folder of a container to its note.
const minSharedAge = 10 * time.Minute

// idForm is the form of the IDs that CRI gives.
var idForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// orphans returns the folders of containers of which containerd has no record. The records must have been listed after
// the folders: containerd writes a record before runc is asked for the container, and IDs are never used again, so that
// what is without a record will not get one.
//
// A folder of which nothing tells whose it is may be another containerd's where it is shared, and is left alone while
// runc may be making the container.
func orphans(folders []folder, recorded map[string]bool, bundles []string, shared bool, now time.Time) []folder {
	var out []folder
	for _, f := range folders {
		ours := slices.Contains(bundles, filepath.Dir(f.bundle)) && filepath.Base(f.bundle) == f.id
		if f.bundle == "" {
			ours = !shared || now.Sub(f.since) >= minSharedAge
		}
		if idForm.MatchString(f.id) && !recorded[f.id] && ours {
			out = append(out, f)
		}
	}
	return out
}

// shim is a process between containerd and the containers of one sandbox.
type shim struct {
	pid int
	// id is the sandbox's, or the container's where it has a shim of its own.
	id string
	// endpoint is where its containerd listens.
	endpoint string
}

// shimOf returns whom the process with this command line serves if it is a shim that serves this namespace of the
// containerd which listens there. Those that only start a shim or clean up after one have a further word.
func shimOf(commandLine []string, endpoint string) (id string, ok bool) {
	const idWord, words = 4, 7
	if len(commandLine) < words || endpoint == "" || filepath.Base(commandLine[0]) != "containerd-shim-runc-v2" {
		return "", false
	}
	id = commandLine[idWord]
	want := []string{"-namespace", namespace, "-id", id, "-address", endpoint}
	rest := commandLine[words:]
	return id, slices.Equal(commandLine[1:words], want) && (len(rest) == 0 || slices.Equal(rest, []string{"-debug"}))
}

// orphanShims returns the shims of sandboxes and containers of which containerd has no record. Such a shim took up a
// container whose start was given up meanwhile: it waits for the container's deletion, which nobody asks for. As in
// orphans, the records must have been listed after the shims.
func orphanShims(shims []shim, recorded map[string]bool) []shim {
	return slices.DeleteFunc(slices.Clone(shims), func(s shim) bool {
		return recorded[s.id] || !idForm.MatchString(s.id)
	})
}
