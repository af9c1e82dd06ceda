package deviceplugin

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"keelson.dev/services/nodeagent/internal/wholefile"
)

// recordVersion is the version of the records that are written and read.
const recordVersion = 1

// record is the saved state of a Pod's devices.
type record struct {
	Version int `json:"version"`
	// Sum detects a record that was changed after it was written.
	Sum string `json:"sum"`
	// Devices are its devices, Grants what the plugins give each container with them; nil before they have answered.
	Devices Allocation       `json:"devices"`
	Grants  map[string]Grant `json:"grants,omitempty"`
}

const suffix = ".json"

// records are the files in the agent's folder: one for each Pod with devices, and an empty one for each resource
// that has had a plugin.
type records struct{ root string }

func (r records) podsDir() string { return filepath.Join(r.root, "devices", "pods") }

func (r records) resourcesDir() string { return filepath.Join(r.root, "devices", "resources") }

func (r records) file(uid types.UID) string { return filepath.Join(r.podsDir(), string(uid)+suffix) }

// open creates the folders and returns the resources.
func (r records) open() ([]corev1.ResourceName, error) {
	for _, dir := range []string{r.podsDir(), r.resourcesDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("making the folder of the records of devices: %w", err)
		}
	}
	if err := wholefile.Clear(r.podsDir(), "*"+suffix); err != nil {
		return nil, fmt.Errorf("opening the records of devices: %w", err)
	}
	entries, err := os.ReadDir(r.resourcesDir())
	if err != nil {
		return nil, fmt.Errorf("listing the resources of device plugins: %w", err)
	}
	var out []corev1.ResourceName
	for _, e := range entries {
		if name := resourceOf(e.Name()); checkPlugin(string(name), api.Version) == nil {
			out = append(out, name)
		}
	}
	return out, nil
}

// know records that a resource has had a plugin.
func (r records) know(name corev1.ResourceName) error {
	file := filepath.Join(r.resourcesDir(), fileName(name))
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	if err := wholefile.Write(file, nil, 0o600); err != nil {
		return fmt.Errorf("keeping the name of resource %s: %w", name, err)
	}
	return nil
}

// pods returns the Pods that have a record.
func (r records) pods() ([]types.UID, error) {
	entries, err := os.ReadDir(r.podsDir())
	if err != nil {
		return nil, fmt.Errorf("listing the records of devices: %w", err)
	}
	var out []types.UID
	for _, e := range entries {
		if uid, ok := strings.CutSuffix(e.Name(), suffix); ok && !strings.HasPrefix(uid, ".") {
			out = append(out, types.UID(uid))
		}
	}
	return out, nil
}

// load reads the record of a Pod. The error about a damaged one is a sentence that says what to do.
func (r records) load(uid types.UID) (record, error) {
	data, err := os.ReadFile(r.file(uid))
	if err != nil {
		return record{}, fmt.Errorf("reading the record of the devices of pod %s: %w", uid, err)
	}
	var out record
	err = json.Unmarshal(data, &out)
	switch {
	case err != nil:
	case out.Version != recordVersion:
		err = fmt.Errorf("version %d, not %d", out.Version, recordVersion)
	case out.Sum != out.sum():
		err = errors.New("the sum is that of another content")
	}
	if err != nil {
		return record{}, fmt.Errorf("the record %s is damaged: %w; delete that pod", r.file(uid), err)
	}
	return out, nil
}

// sum returns the checksum of the content.
func (kept record) sum() string {
	kept.Sum = ""
	data, _ := json.Marshal(kept) // text and numbers: this cannot fail
	return fmt.Sprintf("%x", sha256.Sum256(data))
}

// save replaces the record of a Pod.
func (r records) save(uid types.UID, kept record) error {
	kept.Version = recordVersion
	kept.Sum = kept.sum()
	data, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("encoding the record of the devices of pod %s: %w", uid, err)
	}
	if err := wholefile.Write(r.file(uid), data, 0o600); err != nil {
		return fmt.Errorf("writing the record of the devices of pod %s: %w", uid, err)
	}
	return nil
}

// remove forgets a Pod.
func (r records) remove(uid types.UID) error {
	if err := os.Remove(r.file(uid)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the record of the devices of pod %s: %w", uid, err)
	}
	return nil
}
