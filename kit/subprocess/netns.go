package subprocess

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// startIn starts a child in a network namespace: a child is in that of the thread that starts it.
func startIn(netns string, child *exec.Cmd) error {
	if netns == "" {
		return child.Start()
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread, which has left its namespace, ends with the goroutine
		started <- enterAndStart(netns, child)
	}()
	return <-started
}

func enterAndStart(netns string, child *exec.Cmd) error {
	file, err := os.Open(netns)
	if err != nil {
		return fmt.Errorf("opening its network namespace: %w", err)
	}
	defer file.Close()
	if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("entering the network namespace %s: %w", netns, err)
	}
	return child.Start()
}
