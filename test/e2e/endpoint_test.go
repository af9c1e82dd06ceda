package e2e

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"keelson.dev/test/scenario"
)

// endpoint is the address of the control plane, which moves from machine to machine as one of VRRP does.
var endpoint = netip.MustParsePrefix("192.168.78.100/32")

// lead moves the endpoint to a machine of the control plane, and the others learn of it.
func (c *controlPlane) lead(i int) {
	c.Helper()
	for _, m := range c.machines {
		m.Release(c, endpoint)
	}
	c.machines[i].Assign(c, endpoint)
	for _, m := range append(slices.Clone(c.machines), c.worker) {
		m.Forget(c, endpoint.Addr())
	}
}

// joinWorker has a worker join by what another machine than the first one prints: all of them name the endpoint.
func (c *controlPlane) joinWorker() {
	said := c.keel(1, "token", "create", "--print-join-command")
	line, ok := strings.CutPrefix(strings.TrimSpace(said), "keel ")
	if want := "join " + endpoint.Addr().String() + ":6443 --token "; !ok || !strings.HasPrefix(line, want) {
		c.Fatalf("it does not have machines join at the endpoint:\n%s", said)
	}
	c.keelOn(c.worker, strings.Fields(line)...)
}

// workerOutlivesTheFirst kills the first machine: the worker goes on with the one that has the endpoint now.
func (c *controlPlane) workerOutlivesTheFirst() {
	c.fail(0)
	c.lead(1)
	manifest := filepath.Join(c.TempDir(), "late.yaml")
	late := `{apiVersion: v1, kind: Pod, metadata: {name: late}, spec: {nodeName: worker, terminationGracePeriodSeconds: 1,
  containers: [{name: c, image: "` + scenario.HelloV1 + `"}]}}`
	if err := os.WriteFile(manifest, []byte(late), 0o600); err != nil {
		c.Fatal(err)
	}
	eventually(c.T, "the store to have another leader", func(ctx context.Context) bool {
		_, err := c.machines[1].Kubectl(ctx, "apply", "-f", manifest)
		return err == nil
	})
	c.kubectl(1, "wait", "--for=condition=Ready", "pod/late", "--timeout=90s")
	c.kubectl(1, "delete", "pod", "late", "--wait")
	if out := c.keelOn(c.worker, "join"); slices.ContainsFunc([]string{"starting", "writing", "goes on with"},
		func(said string) bool { return strings.Contains(out, said) }) {
		c.Errorf("keel join found something to do:\n%s", out)
	}
	c.revive(0)
	c.keelOn(c.worker, "reset", "--yes")
	c.kubectl(0, "delete", "node", "worker")
}
