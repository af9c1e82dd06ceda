package storedir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Moved says to which etcd cluster a store was moved.
type Moved struct {
	// Move tells the move from others.
	Move string `json:"move"`
	// Servers are the URLs by which it was reached.
	Servers []string `json:"servers"`
}

// At names the cluster by its servers.
func (m *Moved) At() string { return strings.Join(m.Servers, ",") }

// ReadMoved returns where the store was moved to; nil: it was not.
func ReadMoved(p Paths) (*Moved, error) {
	text, err := os.ReadFile(p.Moved)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking whether the store was moved: %w", err)
	}
	m := &Moved{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("%s does not say where the store was moved to: %w", p.Moved, err)
	}
	return m, nil
}

// WriteMoved notes where the store was moved to, so that no process opens it again. When it returns, the note survives
// a crash.
func WriteMoved(p Paths, m Moved) error {
	text, err := json.Marshal(m)
	if err == nil {
		err = replace(p.Moved, string(text)+"\n")
	}
	if err != nil {
		return fmt.Errorf("noting where the store was moved to: %w", err)
	}
	return nil
}

// ForgetMoved removes the note. When it returns, that survives a crash.
func ForgetMoved(p Paths) error {
	err := os.Remove(p.Moved)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = syncFolder(filepath.Dir(p.Moved))
	}
	if err != nil {
		return fmt.Errorf("forgetting that the store was moved: %w", err)
	}
	return nil
}

func syncFolder(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	return dir.Sync()
}
