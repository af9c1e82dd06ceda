package support

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/renameio/v2"

	"keelson.dev/cli/internal/mesh"
)

// FileName is the name of a bundle that was collected at that time, if its user chooses none.
func FileName(now time.Time) string {
	return "keel-support-" + now.UTC().Format("20060102T150405Z") + ".tar.gz"
}

// Collect writes a bundle of the mesh to a file that only its owner can read, in place of a file of that name. A daemon
// or an apiserver that does not answer is no error: the summary says what is missing. Until the bundle is complete, a
// file of that name stays as it was.
func Collect(ctx context.Context, m *mesh.Mesh, path string, now time.Time) (summary Summary, err error) {
	pending, err := renameio.NewPendingFile(path, renameio.WithStaticPermissions(0o600))
	if err != nil {
		return Summary{}, fmt.Errorf("--output: %w", err)
	}
	defer func() { err = errors.Join(err, pending.Cleanup()) }()
	sources := slices.Concat(ofMesh(m, now), ofMachine(m.Layout.Dir), ofDaemons(ctx, m), ofAPI(ctx, m))
	if summary, err = write(pending, gather(ctx, sources), now); err != nil {
		return summary, err
	}
	if err := pending.CloseAtomicallyReplace(); err != nil {
		return summary, fmt.Errorf("--output: %w", err)
	}
	return summary, nil
}
