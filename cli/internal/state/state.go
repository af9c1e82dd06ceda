// Package state records what `keel up` has started, or `keel init` or `keel join` has installed, so that a later call
// starts only what is missing and `keel down` ends only what is ours.
package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/google/renameio/v2"

	"keelson.dev/cli/internal/filelock"
	"keelson.dev/cli/internal/plan"
	"keelson.dev/kit/subprocess"
)

// version is raised when an older keel could not read the file.
const version = 1

// State is the content of keel.json.
type State struct {
	Version int `json:"version"`
	// Ranges, Ports, BindAddress and Advertise are kept from the first run on.
	Ranges      plan.Ranges    `json:"ranges"`
	Ports       map[string]int `json:"ports"`
	BindAddress string         `json:"bindAddress"`
	Advertise   string         `json:"advertiseAddress"`
	// Endpoint is the HOST:PORT at which other machines reach any live apiserver of the mesh; empty if they reach
	// the one of this machine.
	Endpoint string `json:"controlPlaneEndpoint,omitempty"`
	// PodNetwork, ServiceProxy, DNS and Domain (the cluster domain) are the values of plan's settings: kept as
	// well.
	PodNetwork   string `json:"podNetwork"`
	ServiceProxy string `json:"serviceProxy,omitempty"`
	DNS          string `json:"dns"`
	Domain       string `json:"clusterDomain"`
	// CgroupDriver is plan.Cgroupfs or plan.Systemd: kept as well.
	CgroupDriver string `json:"cgroupDriver,omitempty"`
	// Units is set where `keel init` or `keel join` has made the mesh: units run its processes, which are not recorded
	// here. They are systemd's where CgroupDriver is, else keel's own.
	Units bool `json:"systemd,omitempty"`
	// ControlPlane is set where `keel join` has made the machine one of the control plane. StorePeers are the URLs
	// of the store on the other machines, at the time when this machine joined or left them.
	ControlPlane bool     `json:"controlPlane,omitempty"`
	StorePeers   []string `json:"storePeers,omitempty"`
	// Etcd is the etcd cluster in which the mesh has its store; nil means the embedded store.
	Etcd *plan.Etcd `json:"etcd,omitempty"`
	// Server is the URL of the mesh's apiserver, set if `keel join` has made the machine a worker. VXLAN is the
	// VXLAN ID of the mesh's network, set if `keel join` has run.
	Server string `json:"server,omitempty"`
	VXLAN  int    `json:"vxlan,omitempty"`
	Nodes  []Node `json:"nodes"`
	// Processes are in the order of their starts. One that has ended stays until it is started again or the mesh goes
	// down.
	Processes []subprocess.Process `json:"processes"`
}

// Node is one node of the mesh.
type Node struct {
	Name string `json:"name"`
	// Images maps the archives that its containerd has to their checksums.
	Images map[string]string `json:"images,omitempty"`
}

// Worker reports whether the machine has a node of another machine's mesh.
func (s *State) Worker() bool { return s.Server != "" }

// SharesStore reports whether other machines may have the mesh's embedded store, too.
func (s *State) SharesStore() bool { return s.Etcd == nil && s.Ports[plan.StorePort] != 0 }

// Find returns the record of a process.
func (s *State) Find(name string) (subprocess.Process, bool) {
	i := slices.IndexFunc(s.Processes, func(p subprocess.Process) bool { return p.Name == name })
	if i < 0 {
		return subprocess.Process{}, false
	}
	return s.Processes[i], true
}

// Put records a process in place of the one of its name.
func (s *State) Put(process subprocess.Process) {
	s.Processes = slices.DeleteFunc(s.Processes, func(p subprocess.Process) bool { return p.Name == process.Name })
	s.Processes = append(s.Processes, process)
}

// NodeNames lists the nodes in their order.
func (s *State) NodeNames() []string {
	names := make([]string, len(s.Nodes))
	for i, node := range s.Nodes {
		names[i] = node.Name
	}
	return names
}

// Load reads keel.json. Without one it returns an empty State and fs.ErrNotExist.
func Load(layout plan.Layout) (*State, error) {
	fresh := &State{Version: version, Ports: map[string]int{}}
	content, err := os.ReadFile(layout.State())
	if err != nil {
		return fresh, err
	}
	loaded := &State{}
	if err := json.Unmarshal(content, loaded); err != nil {
		return fresh, fmt.Errorf("reading %s: %w", layout.State(), err)
	}
	if loaded.Version != version {
		return fresh, fmt.Errorf("%s has version %d, and this keel knows version %d: use the keel that wrote it",
			layout.State(), loaded.Version, version)
	}
	if loaded.Ports == nil {
		loaded.Ports = map[string]int{}
	}
	return loaded, nil
}

// Save writes keel.json; a reader sees the old content or the new one, also after a power failure.
func (s *State) Save(layout plan.Layout) error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("rendering %s: %w", layout.State(), err)
	}
	if err := renameio.WriteFile(layout.State(), append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", layout.State(), err)
	}
	return nil
}

// Open creates a missing data directory, refuses one of another user, and locks it. The returned function, or the
// end of the process, releases the lock. Other users may traverse the directory, because Pods with other users
// reach their root file systems below it; secret files and folders in it have their own permissions.
func Open(layout plan.Layout) (unlock func(), err error) {
	if err := os.MkdirAll(layout.Dir, 0o711); err != nil {
		return nil, fmt.Errorf("--data-dir: %w", err)
	}
	if err := checkOwner(layout); err != nil {
		return nil, err
	}
	unlock, err = filelock.Try(layout.Lock())
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("--data-dir: another keel is at work in %s: wait for it to end", layout.Dir)
	}
	return unlock, err
}

// LockMachine prevents meshes that start together from choosing the same ports and ranges. It waits for another
// keel that is choosing.
func LockMachine(ctx context.Context) (unlock func(), err error) {
	file := filepath.Join(os.TempDir(), fmt.Sprintf("keelson-%d.lock", os.Geteuid()))
	unlock, err = filelock.Wait(ctx, file)
	if err != nil {
		return nil, fmt.Errorf("waiting for another keel, which is choosing ports and holds %s: %w", file, err)
	}
	return unlock, nil
}

// Check returns an error if Open would refuse the directory, and changes nothing.
func Check(layout plan.Layout) error {
	if _, err := os.Lstat(layout.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return checkOwner(layout)
}

func checkOwner(layout plan.Layout) error {
	info, err := os.Stat(layout.Dir)
	if err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	if status, ok := info.Sys().(*syscall.Stat_t); ok && int(status.Uid) != os.Geteuid() {
		return fmt.Errorf("--data-dir: %s belongs to user %d and keel runs as user %d", layout.Dir, status.Uid,
			os.Geteuid())
	}
	entries, err := os.ReadDir(layout.Dir)
	if err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	known := func(entry fs.DirEntry) bool {
		return entry.Name() == filepath.Base(layout.State()) || entry.Name() == filepath.Base(layout.Lock())
	}
	if len(entries) > 0 && !slices.ContainsFunc(entries, known) {
		return fmt.Errorf("--data-dir: %s holds files and no keel.json: choose an empty or a new folder", layout.Dir)
	}
	return nil
}
