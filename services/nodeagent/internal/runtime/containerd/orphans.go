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
	"google.golang.org/grpc/metadata"

	"keelson.dev/services/nodeagent/internal/plainfile"
)

// EndOrphans ends and removes what runc has of sandboxes and containers of which containerd has no record any more, and
// returns their IDs. config is the configuration that containerd tells with its status. What is being made, and what
// belongs to another containerd of the machine, is not touched.
func (c *Client) EndOrphans(ctx context.Context, config string) (ended []string, err error) {
	with, err := readSetup(config)
	if err != nil {
		return nil, err
	}
	bundles := []string{with.bundles}
	if resolved, err := filepath.EvalSymlinks(with.bundles); err == nil {
		bundles = append(bundles, resolved) // runc notes the folder that it runs in
	}
	var problems []error
	for _, r := range with.runcs {
		folders, err := r.folders()
		if err != nil || len(folders) == 0 {
			problems = append(problems, err)
			continue
		}
		recorded, err := c.recorded(ctx) // after the folders, see orphans
		if err != nil {
			problems = append(problems, err)
			continue
		}
		for _, f := range orphans(folders, recorded, bundles, r.shared, time.Now()) {
			if err := c.endOrphan(ctx, r, f); err != nil {
				problems = append(problems, err)
				continue
			}
			ended = append(ended, f.id)
		}
	}
	return ended, errors.Join(problems...)
}

// recorded returns the IDs of all containers and sandboxes of which containerd has a record.
func (c *Client) recorded(ctx context.Context) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(ctx, "containerd-namespace", namespace),
		callTime)
	defer cancel()
	stream, err := c.containers.ListStream(ctx, &containers.ListContainersRequest{})
	if err != nil {
		return nil, fmt.Errorf("containerd: listing containers: %w", err)
	}
	ids := map[string]bool{}
	for {
		record, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return ids, nil
		case err != nil:
			return nil, fmt.Errorf("containerd: listing containers: %w", err)
		}
		ids[record.GetContainer().GetID()] = true
	}
}

// endOrphan lets runc end the processes of a container that it has noted. A folder without a note is all there is.
func (c *Client) endOrphan(ctx context.Context, r runc, f folder) error {
	if f.bundle == "" {
		return os.RemoveAll(filepath.Join(r.root, f.id))
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return c.run(ctx, r.program, deletionArgs(r.root, f.id)...)
}

// folders returns what runc has of this namespace's containers; nothing where it never had any.
func (r runc) folders() ([]folder, error) {
	entries, err := os.ReadDir(r.root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing the containers of runc: %w", err)
	}
	var out []folder
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.IsDir() { // it has gone, or is nothing that runc makes
			continue
		}
		out = append(out, folder{id: entry.Name(), bundle: r.bundle(entry.Name()), since: info.ModTime()})
	}
	return out, nil
}

// noteSize is how much of a note is read at most: it holds the configuration of a container.
const noteSize = 16 << 20

// bundle returns the bundle that runc has noted of a container; empty if it has noted none.
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
