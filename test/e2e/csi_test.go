package e2e

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/namespaces"
	"keelson.dev/kit/subprocess"
	"keelson.dev/kit/volumename"
	"keelson.dev/test/csidriver"
	"keelson.dev/test/mesh"
	"keelson.dev/test/mesh/processes"
	"keelson.dev/test/scenario"
)

const (
	csiName   = "folder.example.com"
	csiHandle = "vol-1"
)

// csiObjects are a driver that has its volumes attached, and a claim with its volume; NS is the namespace.
const csiObjects = `
{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: folder.example.com}, spec: {attachRequired: true}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: NS}, spec: {capacity: {storage: 1Gi}, storageClassName: "",
  accessModes: [ReadWriteOnce], claimRef: {namespace: NS, name: data}, persistentVolumeReclaimPolicy: Retain,
  csi: {driver: folder.example.com, volumeHandle: vol-1}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce],
  storageClassName: "", volumeName: NS, resources: {requests: {storage: 1Gi}}}}
`

const csiPod = `
{apiVersion: v1, kind: Pod, metadata: {name: POD}, spec: {terminationGracePeriodSeconds: 1,
  nodeSelector: {kubernetes.io/hostname: NODE},
  containers: [{name: c, image: keelson.dev/hello:1, volumeMounts: [{name: d, mountPath: /data}]}],
  volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]}}
`

// TestCSIDriver moves the volume of a CSI driver between two nodes with real daemons and containers: after the end of
// its Pod; from a node that is cut off, only after the Pod was forced to end and the node was declared to be off; and
// while agent and driver are killed at each call. Then volumes grow, and Pods have one as a device.
//
// SAF-187 SAF-189 SAF-190 SAF-191 SAF-192 SAF-197
func TestCSIDriver(t *testing.T) {
	m := processes.New(t, 2)
	c := newCSI(scenario.In(t, m), m)
	c.movesAfterItsPod()
	c.staysWithANodeThatIsCutOff()
	c.outlivesAgentAndDriver()
	c.growsInUse()
	c.haveDevices()
}

// csiWorld is a mesh of two nodes with a driver on each.
type csiWorld struct {
	*scenario.World
	m       *processes.Mesh
	storage *csidriver.Storage
	drivers map[string]*csidriver.Driver
	a, b    string
}

// newCSI starts the drivers of a mesh's nodes, and makes the world's objects of them.
func newCSI(w *scenario.World, m *processes.Mesh) *csiWorld {
	w.Helper()
	c := &csiWorld{World: w, m: m, storage: csidriver.NewStorage(csiName, w.TempDir()),
		drivers: map[string]*csidriver.Driver{}, a: m.Nodes()[0], b: m.Nodes()[1]}
	for _, agent := range m.Of(w, mesh.NodeAgent) {
		node := strings.TrimPrefix(agent.Name, string(mesh.NodeAgent)+"-")
		at := slices.IndexFunc(agent.Args, func(arg string) bool { return strings.HasPrefix(arg, "--root-dir=") })
		c.drivers[node] = &csidriver.Driver{Storage: c.storage, Node: node,
			AgentRoot: strings.TrimPrefix(agent.Args[at], "--root-dir="),
			// As those of Pods that mount Bidirectional, its mounts are the node's.
			Mounts: namespaces.Files{Mount: agent.MountNS}}
		c.startDriver(node)
		w.Cleanup(func() { c.drivers[node].Kill() })
	}
	c.attach()
	for _, node := range m.Nodes() {
		c.Await("the driver of "+node, func() scenario.Answer {
			return scenario.Left(c.TryKubectl("", "wait", "csinode", node,
				"--for=jsonpath={.spec.drivers[0].nodeID}="+node+"-id", "--timeout=1s").Complaint())
		})
	}
	c.KubectlWith(strings.ReplaceAll(csiObjects, "NS", c.Namespace), "apply", "-f", "-")
	return c
}

// attach runs the attacher until the test ends.
func (c *csiWorld) attach() {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	c.Cleanup(func() {
		stop()
		<-done
	})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			_ = c.storage.Serve(ctx, c.Client) // again soon
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}()
}

// movesAfterItsPod has a second Pod on the other node wait until the first is gone and its node has let go.
func (c *csiWorld) movesAfterItsPod() {
	c.Helper()
	c.run("one", c.a)
	c.ready("one")
	c.Kubectl("exec", "one", "--", "sh", "-c", "echo precious > /data/file")
	if data, err := os.ReadFile(filepath.Join(c.storage.Folder, csiHandle, "file")); string(data) != "precious\n" {
		c.Fatalf("the driver's folder holds %q, %v", data, err)
	}
	c.run("two", c.b)
	c.waits("two", 2*time.Second)

	// The first node is paused when it is to end its Pod.
	agent := c.agent(c.a)
	signal(c, agent, syscall.SIGSTOP)
	c.Cleanup(func() { signal(c, agent, syscall.SIGCONT) })
	c.Kubectl("delete", "pod", "one", "--wait=false")
	c.waits("two", 3*time.Second)
	c.heldBy(c.a)
	signal(c, agent, syscall.SIGCONT)

	c.ready("two")
	if left := c.TryKubectl("", "get", "pod", "one").Stdout; left != "" {
		c.Errorf("the second Pod runs beside the first: %s", left)
	}
	c.heldBy(c.b)
	c.finds("two", "precious\n")
	c.orderly()
}

// staysWithANodeThatIsCutOff has a Pod wait for a node whose agent is dead: neither the request to end the Pod there
// nor its forced end is enough, as long as no taint says that the node is off.
func (c *csiWorld) staysWithANodeThatIsCutOff() {
	c.Helper()
	c.m.StopNode(c, c.b)
	c.Kubectl("delete", "pod", "two", "--wait=false")
	c.run("three", c.a)
	c.waits("three", 3*time.Second)
	c.Kubectl("delete", "pod", "two", "--force", "--grace-period=0")
	c.waits("three", 3*time.Second)
	c.heldBy(c.b)
	c.orderly()

	c.Kubectl("taint", "node", c.b, "node.kubernetes.io/out-of-service=gone:NoExecute")
	c.ready("three")
	c.finds("three", "precious\n")
	if early := c.storage.Early(); len(early) != 1 {
		c.Errorf("the node that was declared to be off had the volume mounted, and it was taken away so: %v", early)
	}
	// The node comes back, and ends what it still ran.
	c.m.StartNode(c, c.b)
	c.Await("the node that was cut off to let go", func() scenario.Answer {
		return scenario.Left(strings.Join(append(c.mounts(c.b), c.inUse(c.b)...), " "))
	})
	c.Kubectl("taint", "node", c.b, "node.kubernetes.io/out-of-service-")
	c.Kubectl("delete", "pod", "three")
	c.gone(c.a)
	c.orderly()
}

// outlivesAgentAndDriver kills both after each call of the driver, before the agent has noted its answer.
func (c *csiWorld) outlivesAgentAndDriver() {
	c.Helper()
	for i, step := range []string{"stage.after", "publish.after", "unpublish.after", "unstage.after"} {
		c.m.StopNode(c, c.a)
		c.drivers[c.a].Kill()
		c.startDriver(c.a)
		doomed := c.m.StartArmed(c, mesh.NodeAgent, "nodeagent/csi."+step+"=crash") // the first node's
		switch i {
		case 0:
			c.run("four", c.a)
		case 2:
			c.ready("four")
			c.finds("four", "precious\n")
			c.Kubectl("delete", "pod", "four", "--wait=false")
		}
		awaitEnd(c.World, doomed)
		c.heldBy(c.a)
	}
	c.m.StartNode(c, c.a)
	c.Kubectl("wait", "pod", "four", "--for=delete", "--timeout=60s")
	c.gone(c.a)
	c.orderly()
}

func (c *csiWorld) startDriver(node string) {
	c.Helper()
	if err := c.drivers[node].Start(); err != nil {
		c.Fatalf("starting the driver of %s: %v", node, err)
	}
}

func (c *csiWorld) agent(node string) subprocess.Process {
	return sleeper{c.m}.agent(c, node)
}

func (c *csiWorld) run(pod, node string) {
	c.Helper()
	c.KubectlWith(strings.NewReplacer("POD", pod, "NODE", node).Replace(csiPod), "apply", "-f", "-")
}

func (c *csiWorld) ready(pod string) {
	c.Helper()
	c.Kubectl("wait", "pod", pod, "--for=condition=Ready", "--timeout=60s")
}

// finds makes sure of what a Pod reads from the volume.
func (c *csiWorld) finds(pod, want string) {
	c.Helper()
	if got := c.Kubectl("exec", pod, "--", "cat", "/data/file"); got != want {
		c.Errorf("Pod %s finds %q, want %q", pod, got, want)
	}
}

// waits looks on for a while that a Pod is bound and does not start.
func (c *csiWorld) waits(pod string, d time.Duration) {
	c.Helper()
	c.Kubectl("wait", "pod", pod, "--for=condition=PodScheduled", "--timeout=60s")
	for end := time.Now().Add(d); time.Now().Before(end); {
		p, err := c.Client.CoreV1().Pods(c.Namespace).Get(c.Context(), pod, metav1.GetOptions{})
		if err != nil || p.Status.Phase != corev1.PodPending {
			c.Fatalf("Pod %s starts while another node has its volume: %v, %v", pod, p.Status.Phase, err)
		}
		select {
		case <-c.Context().Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// heldBy makes sure that the volume is attached to a node alone, and mounted nowhere else.
func (c *csiWorld) heldBy(node string) {
	c.Helper()
	all, err := c.Client.StorageV1().VolumeAttachments().List(c.Context(), metav1.ListOptions{})
	if err != nil {
		c.Fatal(err)
	}
	if len(all.Items) != 1 || all.Items[0].Name != volumename.Attachment(csiName, csiHandle, node) {
		c.Errorf("the volume is to be attached to %s alone; there are %v", node, all.Items)
	}
	if on := c.storage.StagedOn(csiHandle); slices.ContainsFunc(on, func(n string) bool { return n != node }) {
		c.Errorf("the volume is to be mounted on %s alone, and is on %v", node, on)
	}
}

// orderly makes sure that the volume was taken from no node that had it mounted.
func (c *csiWorld) orderly() {
	c.Helper()
	if early := c.storage.Early(); len(early) > 0 {
		c.Errorf("taken away too early: %v", early)
	}
}

// gone waits until nothing of the volume is left: no mount on the node, no use, no attachment.
func (c *csiWorld) gone(node string) {
	c.Helper()
	c.Await("nothing of the volume to be left", func() scenario.Answer {
		return scenario.Left(strings.Join(append(c.mounts(node), c.inUse(node)...), " ") +
			c.Kubectl("get", "volumeattachments", "--output=name"))
	})
}

// mounts are the mounts of CSI volumes in the folder of a node's agent.
func (c *csiWorld) mounts(node string) []string {
	c.Helper()
	var found []string
	must(c, c.m.OnNode(node, func() (err error) {
		found, err = mountsBelow(c.drivers[node].AgentRoot)
		return err
	}))
	return slices.DeleteFunc(found, func(at string) bool {
		return !strings.Contains(at, "kubernetes.io~csi") && !strings.Contains(at, "kubernetes.io/csi/")
	})
}

// inUse are the volumes that a Node says it uses.
func (c *csiWorld) inUse(node string) []string {
	c.Helper()
	n, err := c.Client.CoreV1().Nodes().Get(c.Context(), node, metav1.GetOptions{})
	if err != nil {
		return []string{err.Error()}
	}
	var names []string
	for _, name := range n.Status.VolumesInUse {
		names = append(names, string(name))
	}
	return names
}
