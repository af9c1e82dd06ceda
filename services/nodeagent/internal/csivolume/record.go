package csivolume

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/nodeagent/internal/wholefile"
)

// record is a file about what the agent has to undo: for one Pod's volume or, without a Pod, for a staged one. The
// names of the first fields are the kubelet's.
type record struct {
	Driver string `json:"driverName"`
	Handle string `json:"volumeHandle"`
	// Name is the name of the PersistentVolume, or of an inline volume in its Pod.
	Name string `json:"specVolID,omitempty"`
	// Attachment is the name of the VolumeAttachment; empty if the volume is not attached to nodes.
	Attachment string    `json:"attachmentID,omitempty"`
	Pod        types.UID `json:"podUID,omitempty"`
	// Claim is the name of the Pod's claim; empty for an inline volume, and if an older agent has written the record.
	Claim string `json:"claim,omitempty"`
	// Block means that the Pod gets the volume as a block device. Boot is the boot of the machine in which it was
	// published so: a device of an earlier one may have become another.
	Block bool   `json:"block,omitempty"`
	Boot  string `json:"boot,omitempty"`
	// Size is what the volume of a claim is known to have on the node, in bytes; 0 if it is not known.
	Size int64 `json:"size,omitempty"`
	// Asked is set before the first call to the driver.
	Asked bool `json:"asked,omitempty"`
	// Published is set when containers may mount the volume.
	Published bool `json:"published,omitempty"`
	// FailingSince is when unpublishing first failed.
	FailingSince *time.Time `json:"failingSince,omitempty"`
}

func (r record) id() volumeID { return volumeID{r.Driver, r.Handle} }

// largestRecord is more than the size of any record, in bytes.
const largestRecord = 64 << 10

// save writes a record durably, in one visible step, and creates its folder.
func save(file string, r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding what is known of the volume: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return fmt.Errorf("making the volume's folder: %w", err)
	}
	if err := wholefile.Write(file, data, 0o600); err != nil {
		return fmt.Errorf("noting what is known of the volume: %w", err)
	}
	return nil
}

// load reads a record. One that names no volume is damaged.
func load(read func(string) ([]byte, error), file string) (record, error) {
	var r record
	data, err := read(file)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%w: %s: %w", errDamaged, file, err)
	}
	if r.Driver == "" || r.Handle == "" {
		return r, fmt.Errorf("%w: %s names no driver or no volume", errDamaged, file)
	}
	return r, nil
}
