package containerd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	containers "github.com/containerd/containerd/api/services/containers/v1"
	sandboxes "github.com/containerd/containerd/api/services/sandbox/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"keelson.dev/services/nodeagent/internal/plainfile"
)

// EndOrphans ends and removes the sandboxes that CRI no longer knows, runc's remains of sandboxes and containers
// without a record in containerd, and the shims that serve nothing else, and returns their IDs. config is the
// configuration that containerd reports with its status. It touches nothing that is being created or belongs to
// another containerd of the machine.
func (c *Client) EndOrphans(ctx context.Context, config string, listed Listed) (ended []string, err error) {
	with, err := readSetup(config)
	if err != nil || with.nothing() {
		return nil, err
	}
	lost, failed := c.endLost(ctx, listed)
	unrecorded, err := c.endUnrecorded(ctx, with) // including what ending the lost ones has left
	return append(lost, unrecorded...), errors.Join(failed, err)
}

// endUnrecorded ends what containerd has no record of.
func (c *Client) endUnrecorded(ctx context.Context, with setup) (ended []string, err error) {
	found, err := look(with)
	problems := []error{err}
	if found.nothing() {
		return nil, err
	}
	recorded, err := c.recorded(ctx) // after look, see orphans
	if err != nil {
		return nil, errors.Join(append(problems, err)...)
	}
	for _, of := range found.folders {
		for _, f := range orphans(of.folders, recorded, found.bundles, of.shared, time.Now()) {
			if err := c.endOrphan(ctx, of.runc, f); err != nil {
				problems = append(problems, err)
				continue
			}
			ended = append(ended, f.id)
		}
	}
	shims := orphanShims(found.shims, recorded)
	for _, s := range shims {
		ended = append(ended, s.id)
	}
	return ended, errors.Join(append(problems, endShims(ctx, shims))...)
}

// findings is what look finds of containers, whether containerd knows them or not.
type findings struct {
	bundles []string
	folders []foldersOf
	shims   []shim
}

type foldersOf struct {
	runc
	folders []folder
}

func (f findings) nothing() bool { return len(f.folders) == 0 && len(f.shims) == 0 }

// look returns what it could read, and the errors for what it could not.
func look(with setup) (findings, error) {
	found := findings{bundles: []string{with.bundles}}
	if resolved, err := filepath.EvalSymlinks(with.bundles); err == nil {
		found.bundles = append(found.bundles, resolved) // runc records the resolved path
	}
	var problems []error
	for _, r := range with.runcs {
		folders, err := r.list()
		problems = append(problems, err)
		if len(folders) > 0 {
			found.folders = append(found.folders, foldersOf{runc: r, folders: folders})
		}
	}
	shims, err := listShims(with.endpoint)
	found.shims = shims
	return found, errors.Join(append(problems, err)...)
}

// recorded returns the IDs of all containers and sandboxes of which containerd has a record.
func (c *Client) recorded(ctx context.Context) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(inNamespace(ctx), callTime)
	defer cancel()
	ids := map[string]bool{}
	return ids, errors.Join(c.recordedContainers(ctx, ids), c.recordedSandboxes(ctx, ids))
}

// recordedContainers adds the containers that match one of the filters, or all without a filter.
func (c *Client) recordedContainers(ctx context.Context, into map[string]bool, filters ...string) error {
	stream, err := c.containers.ListStream(ctx, &containers.ListContainersRequest{Filters: filters})
	for err == nil {
		var record *containers.ListContainerMessage
		if record, err = stream.Recv(); err == nil {
			into[record.GetContainer().GetID()] = true
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("containerd: listing containers: %w", err)
}

// recordedSandboxes adds the sandboxes without a container of their own: which ones depends on containerd's
// configuration.
func (c *Client) recordedSandboxes(ctx context.Context, into map[string]bool) error {
	answer, err := c.sandboxes.List(ctx, &sandboxes.StoreListRequest{})
	if err != nil && status.Code(err) != codes.Unimplemented {
		return fmt.Errorf("containerd: listing sandboxes: %w", err)
	}
	for _, sandbox := range answer.GetList() {
		into[sandbox.GetSandboxID()] = true
	}
	return nil
}

// endOrphan makes runc end the processes of a container that it has recorded. Without a bundle, the folder is all
// that exists.
func (c *Client) endOrphan(ctx context.Context, r runc, f folder) error {
	if f.bundle == "" {
		return os.RemoveAll(filepath.Join(r.root, f.id))
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return c.run(ctx, r.program, deletionArgs(r.root, f.id)...)
}

// list returns runc's folders of this namespace's containers; none if runc never had any.
func (r runc) list() ([]folder, error) {
	entries, err := os.ReadDir(r.root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing the containers of runc: %w", err)
	}
	var out []folder
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.IsDir() { // it has gone, or runc did not create it
			continue
		}
		out = append(out, folder{id: entry.Name(), bundle: r.bundle(entry.Name()), since: info.ModTime()})
	}
	return out, nil
}

// noteSize bounds how much of a record is read: it holds the configuration of a container.
const noteSize = 16 << 20

// bundle returns the bundle that runc has recorded for a container; empty if none.
func (r runc) bundle(id string) string {
	file, err := plainfile.Root(r.root).Open(filepath.Join(r.root, id, "state.json"))
	if err != nil {
		return ""
	}
	defer file.Close()
	var note struct {
		Config struct{ Labels []string }
	}
	if err := json.NewDecoder(io.LimitReader(file, noteSize)).Decode(&note); err != nil {
		return ""
	}
	for _, label := range note.Config.Labels {
		if bundle, ok := strings.CutPrefix(label, "bundle="); ok {
			return bundle
		}
	}
	return ""
}
