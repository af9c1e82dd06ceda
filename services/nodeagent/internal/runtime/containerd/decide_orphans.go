package containerd

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// setup is what containerd's configuration contains about the containers of CRI.
type setup struct {
	runcs []runc
	// bundles is the folder with a bundle for each container that has a task.
	bundles string
	// endpoint is where containerd listens, as its shims know it; empty if unknown.
	endpoint string
}

// nothing reports whether the setup leaves nothing to look for.
func (s setup) nothing() bool { return len(s.runcs) == 0 && s.endpoint == "" }

// runc is an OCI runtime and the folder in which it has a folder for each container of this namespace.
type runc struct {
	program, root string
	// shared means that the folder is the default for all containerds of the machine without a setting.
	shared bool
}

// readSetup parses the configuration that containerd reports with its verbose status. An empty one, of another
// runtime, gives an empty setup.
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

// folder is runc's folder of one container.
type folder struct {
	id string
	// bundle is the container's, as recorded by runc. It is empty if runc was killed before it had recorded anything,
	// or has just begun, and if the record is damaged.
	bundle string
	since  time.Time
}

// minSharedAge is longer than runc may take between creating a container's folder and recording the bundle.
const minSharedAge = 10 * time.Minute

// idForm is the form of the IDs that CRI assigns.
var idForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// orphans returns the folders of containers without a record in containerd. The records must have been listed after
// the folders: containerd writes a record before it calls runc for the container, and IDs are never reused, so that
// a container without a record will not get one.
//
// In a shared folder, a container's folder without a bundle may belong to another containerd, and is left alone
// while runc may be creating the container.
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
	// id is the sandbox's, or the container's if it has a shim of its own.
	id string
	// endpoint is where its containerd listens.
	endpoint string
}

// shimOf returns the ID of the sandbox or container that the process with this command line serves, if it is a shim
// of this namespace for the containerd at the endpoint. Processes that only start a shim or clean up after one have
// a further word.
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

// orphanShims returns the shims of sandboxes and containers without a record in containerd. Such a shim took up a
// container whose start was abandoned meanwhile: it waits for the container's deletion, which will never be
// requested. As in orphans, the records must have been listed after the shims.
func orphanShims(shims []shim, recorded map[string]bool) []shim {
	return slices.DeleteFunc(slices.Clone(shims), func(s shim) bool {
		return recorded[s.id] || !idForm.MatchString(s.id)
	})
}
