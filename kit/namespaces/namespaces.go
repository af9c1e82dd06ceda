// Package namespaces does something in other namespaces of the kernel than those of this process.
package namespaces

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Files are where namespaces are kept, one of each kind. A kind without a file stands for this process's own.
type Files struct{ Net, UTS, Mount string }

// Do calls a function in the namespaces. A process that it starts is in them too.
func (f Files) Do(do func() error) error {
	if f == (Files{}) {
		return do()
	}
	return OnThread(func() error {
		if err := f.enter(); err != nil {
			return err
		}
		return do()
	})
}

// enter moves the calling thread, which no other goroutine may use any more.
func (f Files) enter() (err error) {
	kinds := []struct {
		file, what string
		kind       int
	}{{f.Net, "network", unix.CLONE_NEWNET}, {f.UTS, "UTS", unix.CLONE_NEWUTS}, {f.Mount, "mount", unix.CLONE_NEWNS}}
	// All are opened before the first is entered: among other mounts the files are not there.
	opened := make([]*os.File, len(kinds))
	for i, k := range kinds {
		if k.file == "" {
			continue
		}
		if opened[i], err = os.Open(k.file); err != nil {
			return fmt.Errorf("opening its %s namespace: %w", k.what, err)
		}
		defer func(file *os.File) { err = errors.Join(err, file.Close()) }(opened[i])
	}
	// The kernel does not let a thread enter a mount namespace while it shares its working directory with others.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("leaving the working directory of the other threads: %w", err)
	}
	for i, k := range kinds {
		if opened[i] == nil {
			continue
		}
		if err := unix.Setns(int(opened[i].Fd()), k.kind); err != nil {
			return fmt.Errorf("entering the %s namespace %s: %w", k.what, k.file, err)
		}
	}
	return nil
}

// OnThread calls do on a thread that ends with the call, so that no other goroutine runs in namespaces that do
// entered.
func OnThread(do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The first thread stands for the process in /proc/self and cannot end: while it waits here, locked,
			// another is taken.
			defer runtime.UnlockOSThread()
			done <- OnThread(do)
			return
		}
		done <- do() // never unlocked: the thread ends with the goroutine
	}()
	return <-done
}
