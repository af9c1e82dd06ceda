package gc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// addresses releases the addresses that host-local keeps for sandboxes that failed or were forgotten. Each network
// has a folder with a file per address and one, named lock, that host-local locks while it allocates and releases.
func (c *Collector) addresses(ctx context.Context) error {
	if c.AddressesDir == "" {
		return nil
	}
	networks, err := filepath.Glob(filepath.Join(c.AddressesDir, "*", "lock"))
	if err != nil || len(networks) == 0 {
		return err
	}
	pods, err := c.Runtime.ListPods(ctx)
	if err != nil {
		return err
	}
	var problems []error
	for _, lock := range networks {
		problems = append(problems, locked(lock, func() error {
			kept, err := reservations(filepath.Dir(lock))
			for _, file := range lostReservations(kept, pods, time.Now()) {
				c.Log.Info("giving an address back that no sandbox has", zap.String("address", filepath.Base(file)))
				err = errors.Join(err, os.Remove(file))
			}
			return err
		}))
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("giving addresses back: %w", err)
	}
	return nil
}

// locked calls do while it holds a lock file. If host-local holds it, that is left to the next time.
func locked(path string, do func() error) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	switch err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil
	case err != nil:
		return fmt.Errorf("locking %s: %w", path, err)
	}
	return do() // closing the file unlocks it
}

// reservations reads the reservations of one network.
func reservations(dir string) ([]reservation, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []reservation
	for _, entry := range entries {
		if _, err := netip.ParseAddr(entry.Name()); err != nil {
			continue
		}
		file := filepath.Join(dir, entry.Name())
		content, err := os.ReadFile(file)
		if err != nil {
			return out, err
		}
		info, err := entry.Info()
		if err != nil {
			return out, err
		}
		sandbox, _, _ := strings.Cut(string(content), "\n") // the name of the interface follows
		out = append(out, reservation{file: file, sandbox: strings.TrimSpace(sandbox), since: info.ModTime()})
	}
	return out, nil
}
