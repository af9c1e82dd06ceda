package e2e

import (
	"context"
	"sync"
	"testing"
	"time"

	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/mesh/simnode"
	"keelson.dev/test/scenario"
)

// TestVolumeAttachmentThroughCrashes ends the controller that attaches volumes by SIGKILL at each of its writes, on
// nodes whose Pods need no containers.
func TestVolumeAttachmentThroughCrashes(t *testing.T) {
	m := processes.Shared(t, 0)
	ctx, stop := context.WithCancel(context.Background())
	nodes, err := simnode.Start(ctx, m.Admin(), simnode.Options{Names: []string{"from", "to"}, Renew: 5 * time.Second})
	if err != nil {
		stop()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		nodes.Wait()
	})
	scenario.VolumeAttachmentThroughCrashes(bare(t, m).World, "from", "to",
		func(w *scenario.World, d mesh.Daemon, failpoint string, ask func()) {
			var once sync.Once
			killAt(w, m, d, failpoint, func() string { once.Do(ask); return "" })
			m.Restart(w, d) // keel would look at the networks of the nodes, of which there are none
		})
}
