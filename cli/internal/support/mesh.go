package support

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"time"

	"keelson.dev/cli/internal/mesh"
	"keelson.dev/cli/internal/redact"
	"keelson.dev/cli/internal/view"
	"keelson.dev/kit/daemon"
)

// ofMesh are the files of what keel knows of the mesh: its versions, its record, its state and its certificates.
func ofMesh(m *mesh.Mesh, now time.Time) []source {
	return []source{
		{"version.txt", func(context.Context) ([]byte, string, error) {
			return fmt.Appendf(nil, "keel %s, %s, %s/%s\n", daemon.Version(), runtime.Version(), runtime.GOOS,
				runtime.GOARCH), "", nil
		}},
		{"keel.json", func(context.Context) ([]byte, string, error) {
			record, err := json.MarshalIndent(m.State, "", "  ")
			return []byte(redact.Text(string(record))), "", err
		}},
		{"status.json", func(ctx context.Context) ([]byte, string, error) {
			var out bytes.Buffer
			err := view.Collect(ctx, m).WriteJSON(&out)
			return []byte(redact.Text(out.String())), "", err
		}},
		{"certificates.json", func(context.Context) ([]byte, string, error) {
			reports, err := m.Certificates(now)
			if err != nil {
				return nil, "", err
			}
			var out bytes.Buffer
			err = view.Certificates{DataDir: m.Layout.Dir, Make: m.Maker(), Reports: reports}.WriteJSON(&out)
			return out.Bytes(), "", err
		}},
	}
}
