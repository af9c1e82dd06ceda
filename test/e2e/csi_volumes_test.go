package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"keelson.dev/test/csidriver"
	"keelson.dev/test/mesh"
	"keelson.dev/test/scenario"
)

// sizedObjects are a claim of 1Mi that may grow, with its volume.
const sizedObjects = `
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: sized}, provisioner: folder.example.com,
  allowVolumeExpansion: true}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: NS-CLAIM}, spec: {capacity: {storage: 1Mi}, volumeMode: MODE,
  storageClassName: sized, accessModes: [ReadWriteOnce], claimRef: {namespace: NS, name: CLAIM},
  persistentVolumeReclaimPolicy: Retain,
  csi: {driver: folder.example.com, volumeHandle: CLAIM, volumeAttributes: {medium: memory}}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: CLAIM}, spec: {accessModes: [ReadWriteOnce],
  volumeMode: MODE, storageClassName: sized, volumeName: NS-CLAIM, resources: {requests: {storage: 1Mi}}}}
`

// sizedPod uses a claim.
const sizedPod = `
{apiVersion: v1, kind: Pod, metadata: {name: POD}, spec: {terminationGracePeriodSeconds: 1,
  nodeSelector: {kubernetes.io/hostname: NODE}, containers: [{name: c, image: keelson.dev/hello:1, USE}],
  volumes: [{name: d, persistentVolumeClaim: {claimName: CLAIM, readOnly: READONLY}}]}}
`

const mi = 1 << 20

// sized makes a claim of a volume of 1Mi.
func (c *csiWorld) sized(claim, mode string) {
	c.Helper()
	if err := c.storage.Create(claim, mi); err != nil {
		c.Fatal(err)
	}
	c.KubectlWith(strings.NewReplacer("NS", c.Namespace, "CLAIM", claim, "MODE", mode).Replace(sizedObjects), "apply",
		"-f", "-")
}

// use runs a Pod on the first node that mounts a claim, or has it as a device.
func (c *csiWorld) use(pod, claim string, device, readOnly bool) {
	c.Helper()
	how := "volumeMounts: [{name: d, mountPath: /data}]"
	if device {
		how = "volumeDevices: [{name: d, devicePath: /dev/disk}]"
	}
	c.KubectlWith(strings.NewReplacer("POD", pod, "NODE", c.a, "CLAIM", claim, "USE", how, "READONLY",
		fmt.Sprint(readOnly)).Replace(sizedPod), "apply", "-f", "-")
}

// end ends a Pod, and waits until nothing is left of its volume.
func (c *csiWorld) end(pods ...string) {
	c.Helper()
	c.Kubectl(append([]string{"delete", "pod"}, pods...)...)
	c.gone(c.a)
}

// grow asks for more for a claim, and has the storage grow its volume.
func (c *csiWorld) grow(claim, size string) {
	c.Helper()
	c.Kubectl("patch", "pvc", claim, "-p", `{"spec":{"resources":{"requests":{"storage":"`+size+`"}}}}`)
	if err := c.storage.Grow(c.Context(), c.Client, c.Namespace, claim); err != nil {
		c.Fatal(err)
	}
}

// grown waits until a claim says that it has a size, and nothing of the growth is left in its status.
func (c *csiWorld) grown(claim, size string) {
	c.Helper()
	want := resource.MustParse(size)
	c.Await("the claim "+claim+" to have "+size, func() scenario.Answer {
		found, err := c.Client.CoreV1().PersistentVolumeClaims(c.Namespace).Get(c.Context(), claim, metav1.GetOptions{})
		if err != nil {
			return scenario.Saw(err.Error())
		}
		has := found.Status.Capacity[corev1.ResourceStorage]
		if has.Cmp(want) != 0 || len(found.Status.AllocatedResourceStatuses) > 0 || len(found.Status.Conditions) > 0 {
			return scenario.Sawf("%s, %v, %v", has.String(), found.Status.AllocatedResourceStatuses,
				found.Status.Conditions)
		}
		return ""
	})
}

// growsInUse has a volume with a file system grow under a running Pod, once while the agent is killed after the
// driver's answer, and then for the next Pod before that gets it.
func (c *csiWorld) growsInUse() {
	c.Helper()
	c.sized("memory", "Filesystem")
	c.use("grower", "memory", false, false)
	c.ready("grower")
	c.tells("grower", "memory")
	c.grow("memory", "2Mi")
	c.grown("memory", "2Mi")
	c.holds("grower", 2*mi)

	c.m.StopNode(c, c.a)
	doomed := c.m.StartArmed(c, mesh.NodeAgent, "nodeagent/csi.expand.after=crash")
	c.grow("memory", "3Mi")
	awaitEnd(c.World, doomed)
	c.m.StartNode(c, c.a)
	c.grown("memory", "3Mi")
	c.holds("grower", 3*mi)
	c.Kubectl("exec", "grower", "--", "sh", "-c", "echo still > /data/there; cat /data/there")
	c.end("grower")

	c.grow("memory", "4Mi")
	c.use("grown", "memory", false, false)
	c.ready("grown")
	c.grown("memory", "4Mi")
	c.holds("grown", 4*mi)
	c.end("grown")
}

// holds makes sure of the size of the file system that a Pod has.
func (c *csiWorld) holds(pod string, want int64) {
	c.Helper()
	found, err := c.Client.CoreV1().Pods(c.Namespace).Get(c.Context(), pod, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	target := filepath.Join(c.drivers[c.a].AgentRoot, "pods", string(found.UID), "volumes/kubernetes.io~csi",
		c.Namespace+"-memory", "mount")
	var fs unix.Statfs_t
	must(c, c.m.OnNode(c.a, func() error { return unix.Statfs(target, &fs) }))
	if got := int64(fs.Blocks) * fs.Bsize; got != want {
		c.Errorf("Pod %s has a file system of %d bytes, want %d", pod, got, want)
	}
}

// tells makes sure that node and metrics report how full a volume is, and that it is out of order.
func (c *csiWorld) tells(pod, claim string) {
	c.Helper()
	c.storage.Sicken(claim, "a cable is loose")
	defer c.storage.Sicken(claim, "")
	c.Kubectl("exec", pod, "--", "sh", "-c", "seq 1 50000 > /data/file")
	c.Await("the Summary to report the volume", func() scenario.Answer {
		said := c.Kubectl("get", "--raw", "/api/v1/nodes/"+c.a+"/proxy/stats/summary")
		summary := &statsapi.Summary{}
		if err := json.Unmarshal([]byte(said), summary); err != nil {
			return scenario.Saw(err.Error())
		}
		for _, p := range summary.Pods {
			for _, v := range p.VolumeStats {
				if p.PodRef.Name == pod && v.PVCRef != nil && v.PVCRef.Name == claim && *v.CapacityBytes == mi &&
					*v.UsedBytes > 250_000 && *v.UsedBytes+*v.AvailableBytes == mi && *v.InodesUsed == 2 {
					return ""
				}
			}
		}
		return scenario.Saw(said)
	})
	shown := scenario.MetricsOf(c, c.m.Admin(), c.m.Admin().Host+"/api/v1/nodes/"+c.a+"/proxy")
	for name, want := range map[string]float64{"kubelet_volume_stats_capacity_bytes": mi,
		"kubelet_volume_stats_inodes_used": 2, "kubelet_volume_stats_health_status_abnormal": 1} {
		if got := ofClaim(shown[name], claim); got != want {
			c.Errorf("%s of claim %s is %v, want %v", name, claim, got, want)
		}
	}
	c.Await("an event about the volume", func() scenario.Answer {
		said := c.Kubectl("get", "events", "--field-selector=reason=VolumeConditionAbnormal")
		if strings.Contains(said, "Volume "+c.Namespace+"-"+claim+": a cable is loose") {
			return ""
		}
		return scenario.Saw(said)
	})
}

// ofClaim returns the value of a metric of a claim; -1 if there is none.
func ofClaim(family *dto.MetricFamily, claim string) float64 {
	for _, metric := range family.GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "persistentvolumeclaim" && label.GetValue() == claim {
				return metric.GetGauge().GetValue()
			}
		}
	}
	return -1
}

// haveDevices gives Pods a volume as a device, to write and to read alone, has it grow, and kills the agent after each
// call of the driver.
func (c *csiWorld) haveDevices() {
	c.Helper()
	if err := csidriver.NoDevices(); err != nil {
		c.Logf("not shown: this machine has no loop devices: %v", err)
		return
	}
	c.sized("disk", "Block")
	c.use("writer", "disk", true, false)
	c.ready("writer")
	const size = "wc -c /dev/disk"
	c.says("writer", "test -b /dev/disk && echo device; "+size+"; echo precious > /dev/disk && head -c 9 /dev/disk",
		"device\n1048576\nprecious\n")
	c.grow("disk", "2Mi")
	c.grown("disk", "2Mi")
	c.says("writer", size, "2097152\n")
	c.use("reader", "disk", true, true)
	c.ready("reader")
	c.says("reader", "head -c 9 /dev/disk; echo lost > /dev/disk || echo read-only", "precious\nread-only\n")
	c.end("writer", "reader")
	data, err := os.ReadFile(filepath.Join(c.storage.Folder, "disk.image"))
	if err != nil || !strings.HasPrefix(string(data), "precious\n") {
		c.Errorf("the storage has %.20q, %v", data, err)
	}
	c.use("mounter", "disk", false, false)
	c.Await("a Pod that mounts the device to be told", func() scenario.Answer {
		said := c.Kubectl("get", "events", "--field-selector=involvedObject.name=mounter")
		if strings.Contains(said, "volume d has volumeMode Block, but is specified in volumeMounts") {
			return ""
		}
		return scenario.Saw(said)
	})
	c.end("mounter")
	c.devicesOutliveTheAgent()
}

// devicesOutliveTheAgent kills the agent after each call of the driver about a device.
func (c *csiWorld) devicesOutliveTheAgent() {
	c.Helper()
	for i, step := range []string{"stage.after", "publish.after", "unpublish.after", "unstage.after"} {
		c.m.StopNode(c, c.a)
		doomed := c.m.StartArmed(c, mesh.NodeAgent, "nodeagent/csi."+step+"=crash")
		switch i {
		case 0:
			c.use("last", "disk", true, false)
		case 2:
			c.ready("last")
			c.says("last", "head -c 9 /dev/disk", "precious\n")
			c.Kubectl("delete", "pod", "last", "--wait=false")
		}
		awaitEnd(c.World, doomed)
	}
	c.m.StartNode(c, c.a)
	c.Kubectl("wait", "pod", "last", "--for=delete", "--timeout=60s")
	c.gone(c.a)
	c.orderly()
}

// says makes sure of what a script in a Pod prints.
func (c *csiWorld) says(pod, script, want string) {
	c.Helper()
	if got := c.Kubectl("exec", pod, "--", "sh", "-c", script); got != want {
		c.Errorf("in Pod %s, %s prints %q, want %q", pod, script, got, want)
	}
}
