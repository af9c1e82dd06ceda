package localvolume

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/nodeagent/internal/wholefile"
)

// KindName is the name of the type's field in a volume, and so of the folder of the records of Pods' uses.
const KindName = "persistentVolumeClaim"

// Use is one volume of one Pod, as it was when it was set up.
type Use struct {
	// Claim is the claim's namespace/name, Volume the name of its PersistentVolume.
	Claim  string `json:"claim"`
	Volume string `json:"volume"`
	// Path is what containers mount.
	Path     string `json:"path"`
	ReadOnly bool   `json:"readOnly,omitempty"`
	// Handle names a folder that this node has created; empty for a path of a user.
	Handle string `json:"handle,omitempty"`
	// Driver is the CSI driver that mounts the volume; empty for the agent's own.
	Driver string `json:"driver,omitempty"`
	// Block means that the driver provides a block device.
	Block bool `json:"block,omitempty"`
	// Single means that no other Pod may use the claim.
	Single bool `json:"single,omitempty"`
	// Shared means that the contents get the group of the Pod (fsGroup).
	Shared bool `json:"shared,omitempty"`
	// Ready is set when containers may mount the volume.
	Ready bool `json:"ready,omitempty"`
}

// Begin records the use of a volume by a Pod, and creates the folder of a handle. It fails if a second Pod may not
// use the claim.
func (s *Store) Begin(pod types.UID, volume string, use Use) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if use.Single {
		users, err := s.users(func(other Use) bool { return other.Claim == use.Claim })
		if err != nil {
			return err
		}
		if users = slices.DeleteFunc(users, func(user types.UID) bool { return user == pod }); len(users) > 0 {
			return fmt.Errorf("persistentvolumeclaim %q has access mode ReadWriteOncePod and is in use by pod %s",
				name(use.Claim), users[0])
		}
	}
	if use.Handle != "" {
		if err := s.ensure(use.Handle); err != nil {
			return err
		}
	}
	return s.Note(pod, volume, use)
}

// Note updates the record of a volume's use, after Begin.
func (s *Store) Note(pod types.UID, volume string, use Use) error {
	data, err := json.Marshal(use)
	if err != nil {
		return fmt.Errorf("encoding what the pod uses: %w", err)
	}
	file := s.files.Volume(pod, KindName, volume)
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return fmt.Errorf("making the folder of what the pod uses: %w", err)
	}
	if err := wholefile.Write(file, data, 0o600); err != nil {
		return fmt.Errorf("noting what the pod uses: %w", err)
	}
	return nil
}

// Begun returns the use of a volume by a Pod since Begin; nil before. A folder that has disappeared since is an
// error.
func (s *Store) Begun(pod types.UID, volume string) (*Use, error) {
	use, err := s.load(s.files.Volume(pod, KindName, volume))
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, new(*json.SyntaxError)) {
		return nil, nil // a damaged one must not keep the Pod from running
	}
	if err != nil {
		return nil, err
	}
	if use.Handle == "" {
		return &use, nil
	}
	found, err := s.look(use.Handle)
	if err == nil && !found {
		err = fmt.Errorf("the folder %s is gone: put its data back, or delete the claim", s.Path(use.Handle))
	}
	return &use, err
}

func (s *Store) usesOf(pod types.UID) ([]Use, error) {
	dir := filepath.Dir(s.files.Volume(pod, KindName, "any"))
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing what pod %s uses: %w", pod, err)
	}
	var uses []Use
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue // never finished
		}
		use, err := s.load(filepath.Join(dir, entry.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // its Pod is gone meanwhile
		}
		if err != nil {
			return nil, err
		}
		uses = append(uses, use)
	}
	return uses, nil
}

func (s *Store) load(path string) (Use, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Use{}, fmt.Errorf("reading what a pod uses: %w", err)
	}
	var use Use
	if err := json.Unmarshal(data, &use); err != nil {
		return Use{}, fmt.Errorf("reading what a pod uses from %s: %w", path, err)
	}
	return use, nil
}

func name(claim string) string {
	_, name, _ := strings.Cut(claim, "/")
	return name
}
