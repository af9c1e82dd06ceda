package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/google/renameio/v2"

	"keelson.dev/kit/subprocess"
)

// record describes a unit's process; its file lies beside the unit's file.
type record struct {
	// Wanted is set while the process should run: the supervisor restarts it when it has ended.
	Wanted bool `json:"wanted"`
	// Restarts counts these restarts.
	Restarts int                `json:"restarts"`
	Process  subprocess.Process `json:"process"`
}

// load reads the record of a unit, or of the supervisor; it is empty if that was never started.
func (u *Units) load(name string) (record, error) {
	var r record
	file := u.Path(name + recordSuffix)
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("reading the record of a unit: %w", err)
	}
	if err := json.Unmarshal(content, &r); err != nil {
		return r, fmt.Errorf("reading %s: %w: remove the file", file, err)
	}
	return r, nil
}

// save writes a record; a reader sees the old content or the new one, also after a power failure.
func (u *Units) save(name string, r record) error {
	file := u.Path(name + recordSuffix)
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("rendering %s: %w", file, err)
	}
	if err := renameio.WriteFile(file, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the record of a unit: %w", err)
	}
	return nil
}
