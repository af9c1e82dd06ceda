package scenario

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/volumename"
	"keelson.dev/test/mesh"
)

// attachable is a volume that one node of two may have at a time, and the claim that it is for.
const attachable = `
{apiVersion: v1, kind: PersistentVolume, metadata: {name: NS}, spec: {capacity: {storage: 1Gi},
  accessModes: [ReadWriteOnce], storageClassName: NS, claimRef: {namespace: NS, name: data},
  persistentVolumeReclaimPolicy: Retain, csi: {driver: NS.example.com, volumeHandle: disk}, nodeAffinity: {required:
  {nodeSelectorTerms: [{matchExpressions: [{key: storagecluster, operator: In, values: [NS]}]}]}}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: NS}, spec: {storageClassName: NS,
  accessModes: [ReadWriteOnce], volumeName: NS, resources: {requests: {storage: 1Gi}}}}
`

// attaching is a Pod that uses the volume; on is more of its spec.
func attaching(name, on string) string {
	return `{apiVersion: v1, kind: Pod, metadata: {name: ` + name + `}, spec: {terminationGracePeriodSeconds: 1, ` + on +
		`containers: [{name: c, image: ` + HelloV1 + `, volumeMounts: [{name: d, mountPath: /data}]}],
  volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]}}`
}

// hold is for how long a scenario looks on that something does not happen.
const hold = 2 * time.Second

// VolumeAttachAndDetach moves a volume that one node may have at a time from node to node. It is attached where its Pod
// is bound, and the Pod starts after that. Another Pod on another node waits until the object of the first is gone,
// however long that takes; an attachment that is broken by hand lets it go on.
//
// SAF-187 SAF-188 SAF-189 SAF-190 SAF-191 SAF-192
func VolumeAttachAndDetach(t *testing.T, m mesh.Mesh) {
	w := In(t, m)
	a, two := attachTo(w), m.Nodes()[:2]

	// Part 1. The driver takes its time: the Pod is bound to one of the two nodes, and waits there.
	w.KubectlWith(attaching("one", ""), "apply", "-f", "-")
	w.Kubectl("wait", "pod", "one", "--for=condition=PodScheduled", "--timeout=60s")
	from := w.pod("one").Spec.NodeName
	if !slices.Contains(two, from) {
		t.Fatalf("bound to node %s, where the volume cannot be used", from)
	}
	a.awaitAttachment(from)
	a.staysPending("one")
	a.drive()
	w.Kubectl("wait", "pod", "one", "--for=condition=Ready", "--timeout=60s")
	a.expect(from)

	// Part 2. The node of the first Pod is cut off while it is to end it: the second waits.
	to := two[1-slices.Index(two, from)]
	m.StopNode(t, from)
	w.Kubectl("delete", "pod", "one", "--wait=false")
	w.KubectlWith(attaching("two", "nodeSelector: {kubernetes.io/hostname: "+to+"}, "), "apply", "-f", "-")
	a.told("two", `Multi-Attach error for volume "`+w.Namespace+`" Volume is already used by pod(s) one`)
	a.staysPending("two")
	a.expect(from)
	m.StartNode(t, from)
	w.Kubectl("wait", "pod", "two", "--for=condition=Ready", "--timeout=60s")
	if left := w.TryKubectl("", "get", "pod", "one").Stdout; left != "" {
		t.Errorf("the second Pod runs beside the first: %s", left)
	}
	a.expect(to)

	// Part 3. The second node is cut off for good, and a user breaks the attachment.
	m.StopNode(t, to)
	w.Kubectl("delete", "pod", "two", "--wait=false")
	w.KubectlWith(attaching("three", "nodeSelector: {kubernetes.io/hostname: "+from+"}, "), "apply", "-f", "-")
	a.told("three", `Multi-Attach error for volume "`+w.Namespace+`" Volume is already used by pod(s) two`)
	a.staysPending("three")
	a.expect(to)
	w.Kubectl("delete", "volumeattachment", volumename.Attachment(a.driver, "disk", to))
	w.Kubectl("wait", "pod", "three", "--for=condition=Ready", "--timeout=60s")
	if p := w.pod("two"); p.DeletionTimestamp == nil {
		t.Error("the Pod that lost the volume is not as it was")
	}
	a.expect(from)

	m.StartNode(t, to)
	w.Kubectl("delete", "pod", "two", "three", "--ignore-not-found")
	a.expect("")
}

// attached is a scenario about one volume, of which it plays the driver.
type attached struct {
	*World
	driver string
	// audit sees each attachment that the driver comes to, among all, and reports whether it goes on; nil: always.
	audit func(ctx context.Context, va *storagev1.VolumeAttachment, all []storagev1.VolumeAttachment) bool
}

// attachTo makes a volume that may be attached to two nodes, with its claim, until the test ends.
func attachTo(w *World) *attached {
	w.Helper()
	nodes := w.Mesh.Nodes()[:2]
	for _, node := range nodes {
		w.Kubectl("label", "node", node, "storagecluster="+w.Namespace)
	}
	w.Cleanup(func() {
		for _, node := range nodes {
			_, _ = w.Client.CoreV1().Nodes().Patch(context.Background(), node, types.MergePatchType,
				[]byte(`{"metadata":{"labels":{"storagecluster":null}}}`), metav1.PatchOptions{})
		}
		_ = w.Client.CoreV1().PersistentVolumes().Delete(context.Background(), w.Namespace, metav1.DeleteOptions{})
	})
	w.KubectlWith(strings.ReplaceAll(attachable, "NS", w.Namespace), "apply", "-f", "-")
	w.prints("pvc/data", "{.status.phase}", "Bound")
	return &attached{World: w, driver: w.Namespace + ".example.com"}
}

// drive attaches and detaches what it is asked for, until the test ends.
func (a *attached) drive() {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	a.Cleanup(func() {
		stop()
		<-ended
	})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			list, err := a.Client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
			if err == nil {
				for i := range list.Items {
					a.serve(ctx, &list.Items[i], list.Items)
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(interval):
			}
		}
	}()
}

// serve does the next step that a driver does about an attachment. One that fails is done again.
func (a *attached) serve(ctx context.Context, va *storagev1.VolumeAttachment, among []storagev1.VolumeAttachment) {
	const finalizer = "example.com/attacher"
	all := a.Client.StorageV1().VolumeAttachments()
	switch has := slices.Contains(va.Finalizers, finalizer); {
	case va.Spec.Attacher != a.driver:
	case a.audit != nil && !a.audit(ctx, va, among):
	case va.DeletionTimestamp != nil && has:
		va.Finalizers = slices.DeleteFunc(va.Finalizers, func(f string) bool { return f == finalizer })
		_, _ = all.Update(ctx, va, metav1.UpdateOptions{})
	case va.DeletionTimestamp == nil && !has:
		va.Finalizers = append(va.Finalizers, finalizer)
		_, _ = all.Update(ctx, va, metav1.UpdateOptions{})
	case va.DeletionTimestamp == nil && !va.Status.Attached:
		va.Status.Attached = true
		_, _ = all.UpdateStatus(ctx, va, metav1.UpdateOptions{})
	}
}

// awaitAttachment waits for the attachment to a node to be made.
func (a *attached) awaitAttachment(node string) {
	a.Helper()
	a.Await("an attachment to node "+node, func() Answer {
		_, err := a.Client.StorageV1().VolumeAttachments().Get(a.Context(),
			volumename.Attachment(a.driver, "disk", node), metav1.GetOptions{})
		if err != nil {
			return Saw(err.Error())
		}
		return ""
	})
}

// expect waits until the volume is attached to the node alone, or to none, and the Nodes say so.
func (a *attached) expect(node string) {
	a.Helper()
	a.Await("the volume to be attached to node "+node+" alone", func() Answer {
		nodes, err := a.Client.CoreV1().Nodes().List(a.Context(), metav1.ListOptions{})
		if err != nil {
			return Saw(err.Error())
		}
		list, err := a.Client.StorageV1().VolumeAttachments().List(a.Context(), metav1.ListOptions{})
		if err != nil {
			return Saw(err.Error())
		}
		var recorded, made []string
		for _, n := range nodes.Items {
			if slices.ContainsFunc(n.Status.VolumesAttached, func(v corev1.AttachedVolume) bool {
				return v.Name == volumename.Unique(a.driver, "disk")
			}) {
				recorded = append(recorded, n.Name)
			}
		}
		for _, va := range list.Items {
			if va.Spec.Attacher == a.driver {
				made = append(made, va.Spec.NodeName)
			}
		}
		if want := strings.Fields(node); !slices.Equal(recorded, want) || !slices.Equal(made, want) {
			return Saw("attachments to " + strings.Join(made, " ") + ", recorded by " + strings.Join(recorded, " "))
		}
		return ""
	})
}

// told waits for an Event about a Pod.
func (a *attached) told(pod, message string) {
	a.Helper()
	a.Await("Pod "+pod+" to be told why it waits", func() Answer {
		text := a.Kubectl("get", "events", "--field-selector=involvedObject.name="+pod,
			"--output=jsonpath={range .items[*]}{.type} {.reason} {.message}{'\\n'}{end}")
		if !strings.Contains(text, "Warning FailedAttachVolume "+message) {
			return Saw(text)
		}
		return ""
	})
}

// staysPending looks on for a while that a Pod which is bound does not start.
func (a *attached) staysPending(pod string) {
	a.Helper()
	for end := time.Now().Add(hold); time.Now().Before(end); {
		if p := a.pod(pod); p.Status.StartTime != nil {
			a.Fatalf("Pod %s starts without its volume", pod)
		}
		select {
		case <-a.Context().Done():
		case <-time.After(interval):
		}
	}
}
