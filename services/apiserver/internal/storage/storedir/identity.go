package storedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
)

// ReadIdentity returns the identity that is recorded beside the store; empty: none.
func ReadIdentity(p Paths) (string, error) {
	data, err := os.ReadFile(p.Identity)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("the record of the store's identity cannot be read: %w", err)
	}
	identity := strings.TrimSpace(string(data))
	if _, err := uuid.Parse(identity); err != nil {
		return "", fmt.Errorf("%s does not hold the identity of a store; if %s is the right one, move this file away",
			p.Identity, p.Store)
	}
	return identity, nil
}

// WriteIdentity records the identity beside the store. When it returns, the record survives a crash.
func WriteIdentity(p Paths, identity string) error {
	if err := replace(p.Identity, identity+"\n"); err != nil {
		return fmt.Errorf("recording the store's identity: %w", err)
	}
	return nil
}

// replace writes a file so that it holds either what it did or all of text, whatever happens.
func replace(path, text string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	next := path + ".next"
	file, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	return dir.Sync()
}
