package attachdetach

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func summary(t *testing.T, name string, objects ...client.Object) (text, facts string) {
	t.Helper()
	b := newBench(t, server(objects...))
	e, known := b.c.explain(t.Context(), "ns", name)
	if !known {
		return "unknown", ""
	}
	for _, fact := range e.Facts {
		facts += fact.Reason + ": " + fact.Message + "\n"
	}
	return e.Summary, facts
}

// SAF-191 SAF-192: the explanation of a waiting Pod says which node has the volume, since when, for which Pod,
// what ends the wait, and what breaking the attachment by hand means.
func TestExplain(t *testing.T) {
	base := []client.Object{pvOf("ReadWriteOnce"), claimOf("pv"), nodeOf("a", listing), nodeOf("b")}
	with := func(more ...client.Object) []client.Object { return append(base[:len(base):len(base)], more...) }
	failed := func(a *storagev1.VolumeAttachment) { a.Status.AttachError = &storagev1.VolumeError{Message: "full"} }
	for name, row := range map[string]struct {
		pod     string
		objects []client.Object
		want    string
	}{
		"next": {"one", with(podOn("one", "a")), "in its next pass attaches PersistentVolume pv to node a"},
		"driver": {"one", with(podOn("one", "a"), attachmentTo("a")),
			"waits for driver disk.example.com to attach PersistentVolume pv to node a"},
		"failed": {"one", with(podOn("one", "a"), attachmentTo("a", failed)),
			"waits for driver disk.example.com to attach PersistentVolume pv to node a, which said: full"},
		"record": {"one", with(podOn("one", "b"), attachmentTo("b", done)),
			"in its next pass writes into node b that PersistentVolume pv is attached"},
		"there": {"one", with(podOn("one", "a"), attachmentTo("a", done)), "waits for nothing: attached to node a: pv"},
		"held": {"two", with(podOn("one", "a"), podOn("two", "b"), attachmentTo("a", done)),
			"waits for PersistentVolume pv to be attached to node b: " +
				"node a holds it since 2026-11-23T12:00:00Z for Pod ns/one"},
		"held by nobody": {"two", with(podOn("two", "b"), attachmentTo("a", done)),
			"waits for PersistentVolume pv to be attached to node b: node a holds it since 2026-11-23T12:00:00Z"},
		"without a node":                    {"one", with(podOn("one", "")), "unknown"},
		"without a volume that is attached": {"one", []client.Object{podOn("one", "a"), nodeOf("a")}, "unknown"},
	} {
		got, facts := summary(t, row.pod, row.objects...)
		if got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
		if strings.HasPrefix(name, "held") && (!strings.Contains(facts, "kubectl delete volumeattachment "+
			vol.attachment("a")) || !strings.Contains(facts, "as dangerous as forcing the deletion of a Pod")) {
			t.Errorf("%s: does not say what breaking it means: %s", name, facts)
		}
	}
}

// SAF-183 SAF-184: the explanation warns of a volume that restricts access to one node although nothing keeps
// other nodes from using it.
func TestExplainWarnsOfVolumesWithoutGuarantee(t *testing.T) {
	no := false
	driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "disk.example.com"},
		Spec: storagev1.CSIDriverSpec{AttachRequired: &no}}
	local := func(pv *corev1.PersistentVolume) { pv.Spec.CSI.Driver = "local.keelson.dev" }
	for name, row := range map[string]struct {
		mode   corev1.PersistentVolumeAccessMode
		change func(*corev1.PersistentVolume)
		warned bool
	}{
		"NFS": {"ReadWriteOnce", func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{}}
		}, true},
		"iSCSI": {"ReadWriteOnce", func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{}}
		}, true},
		"Fibre Channel": {"ReadWriteOncePod", func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{FC: &corev1.FCVolumeSource{}}
		}, true},
		"a driver that attaches nothing": {"ReadWriteOnce", func(*corev1.PersistentVolume) {}, true},
		"a driver that does": {"ReadWriteOnce", func(pv *corev1.PersistentVolume) {
			pv.Spec.CSI.Driver = "x"
		}, false},
		"one that is for many": {"ReadWriteMany", func(*corev1.PersistentVolume) {}, false},
		"a folder of a node":   {"ReadWriteOnce", local, false},
	} {
		pv := pvOf(row.mode)
		row.change(pv)
		got, _ := summary(t, "one", pv, claimOf("pv"), nodeOf("a"), podOn("one", "a"), driver)
		warned := strings.Contains(got, "nothing keeps PersistentVolume pv from two nodes at a time, although it says "+
			string(row.mode)) && strings.Contains(got, "two of a Deployment or ReplicaSet of one replica")
		if warned != row.warned {
			t.Errorf("%s: %q", name, got)
		}
	}
}
