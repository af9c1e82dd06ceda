package mesh

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"keelson.dev/cli/internal/plan"
	"keelson.dev/kit/subprocess"
)

// startTier starts the processes of one tier that do not run, and waits until all are ready. If the tier has a
// containerd, it then imports the images.
func (m *Mesh) startTier(ctx context.Context, tier []plan.Process, options Options) error {
	var names []string
	for _, process := range tier {
		if recorded, ok := m.State.Find(process.Name); !ok || !recorded.Alive() {
			names = append(names, process.Name)
		}
	}
	what := "checking " + fmt.Sprint(len(tier)) + " running processes"
	if len(names) > 0 {
		what = "starting " + strings.Join(names, ", ")
	}
	if err := m.step(ctx, what, func(ctx context.Context) error {
		return m.startAll(ctx, tier, options.Programs)
	}); err != nil {
		return err
	}
	for _, process := range tier {
		if _, ok := plan.NodeOfContainerd(process.Name); ok {
			return m.importImages(ctx, options)
		}
	}
	return nil
}

func (m *Mesh) startAll(ctx context.Context, tier []plan.Process, programs string) error {
	for _, process := range tier {
		if err := m.startOne(process, programs); err != nil {
			return err
		}
	}
	return awaitTier(m, tier, func(client *http.Client, process plan.Process) error {
		recorded, _ := m.State.Find(process.Name)
		return subprocess.WaitReady(ctx, recorded, m.readiness(client, process))
	})
}

// awaitTier waits for all members of a tier concurrently.
func awaitTier[T any](m *Mesh, tier []T, ready func(*http.Client, T) error) error {
	client, err := m.httpClient()
	if err != nil {
		return err
	}
	errs := make([]error, len(tier))
	var wait sync.WaitGroup
	for i, one := range tier {
		wait.Go(func() { errs[i] = ready(client, one) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// startOne starts a process unless it runs, and records it at once.
func (m *Mesh) startOne(process plan.Process, programs string) error {
	if recorded, ok := m.State.Find(process.Name); ok && recorded.Alive() {
		return nil
	}
	if err := removeStaleSocket(process.Socket); err != nil {
		return err
	}
	process = m.where(process)
	started, err := subprocess.Start(subprocess.Command{
		Name: process.Name, Path: filepath.Join(programs, process.Program), Args: process.Args,
		// containerd looks for its shim in PATH.
		Env: []string{"PATH=" + programs + string(os.PathListSeparator) + os.Getenv("PATH")},
		Dir: m.Layout.Dir, Log: m.Layout.Log(process.Name),
		NetNS: process.NetNS, UTSNS: process.UTSNS, MountNS: process.MountNS,
	})
	if err != nil {
		return err
	}
	m.State.Put(started)
	return m.State.Save(m.Layout)
}

// where puts a node's process into the namespaces in which the node's runtime was started since the last Down,
// because the mounts of its Pods are there: an earlier keel gave nodes no mount namespaces.
func (m *Mesh) where(process plan.Process) plan.Process {
	node, ok := plan.NodeOfAgent(process.Name)
	if !ok {
		node, ok = plan.NodeOfContainerd(process.Name)
	}
	if runtime, started := m.State.Find(plan.ContainerdProcess(node)); ok && started {
		process.NetNS, process.UTSNS, process.MountNS = runtime.NetNS, runtime.UTSNS, runtime.MountNS
	}
	return process
}

// removeStaleSocket removes the socket that a killed containerd has left; a live containerd is protected by its
// lock on the folder.
func removeStaleSocket(socket string) error {
	if socket == "" {
		return nil
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing a left-over socket: %w", err)
	}
	return nil
}
