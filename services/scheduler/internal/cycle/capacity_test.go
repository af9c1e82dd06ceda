package cycle_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/scheduler/internal/config"
	"keelson.dev/services/scheduler/internal/cycle"
	"keelson.dev/services/scheduler/internal/rulestest"
)

// storing is what a driver reports of the storage of a zone; none if the capacity is empty.
func storing(zone, capacity string, change ...func(*storagev1.CSIStorageCapacity)) *storagev1.CSIStorageCapacity {
	s := &storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Namespace: "csi", Name: zone},
		StorageClassName: "wait", NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{"zone": zone}}}
	if capacity != "" {
		s.Capacity = ptr.To(resource.MustParse(capacity))
	}
	for _, change := range change {
		change(s)
	}
	return s
}

func largest(size string) func(*storagev1.CSIStorageCapacity) {
	return func(s *storagev1.CSIStorageCapacity) { s.MaximumVolumeSize = ptr.To(resource.MustParse(size)) }
}

func driver(tells *bool) *storagev1.CSIDriver {
	return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: disk},
		Spec: storagev1.CSIDriverSpec{StorageCapacity: tells}}
}

// newStored is newClaims with node n in zone a and a driver that reports its storage. The claim asks for 1Gi.
func newStored(t *testing.T) *fixture {
	f, _ := newClaims(t)
	f.node("n", "4", rulestest.Labelled("zone", "a"))
	f.SetDriver(driver(ptr.To(true)))
	return f
}

// A node is refused if no object reports enough storage for the claim, and the driver wants that.
func TestStorageCapacity(t *testing.T) {
	const byteLess = "1073741823"
	for name, test := range map[string]struct {
		told func(*fixture)
		fits bool
	}{
		"nothing":          {func(*fixture) {}, false},
		"just enough":      {func(f *fixture) { f.SetStorage(storing("a", "1Gi")) }, true},
		"a byte less":      {func(f *fixture) { f.SetStorage(storing("a", byteLess)) }, false},
		"no capacity":      {func(f *fixture) { f.SetStorage(storing("a", "")) }, false},
		"no volume as big": {func(f *fixture) { f.SetStorage(storing("a", "9Gi", largest(byteLess))) }, false},
		"a volume as big":  {func(f *fixture) { f.SetStorage(storing("a", "1", largest("1Gi"))) }, true},
		"another zone":     {func(f *fixture) { f.SetStorage(storing("b", "9Gi")) }, false},
		"two halves": {func(f *fixture) {
			f.SetStorage(storing("a", "512Mi"))
			f.SetStorage(storing("a", "512Mi", func(s *storagev1.CSIStorageCapacity) { s.Namespace = "other" }))
		}, false},
		"another class": {func(f *fixture) {
			f.SetStorage(storing("a", "9Gi", func(s *storagev1.CSIStorageCapacity) { s.StorageClassName = "other" }))
		}, false},
		"of no node": {func(f *fixture) {
			f.SetStorage(storing("a", "9Gi", func(s *storagev1.CSIStorageCapacity) { s.NodeTopology = nil }))
		}, false},
		"of every node": {func(f *fixture) {
			f.SetStorage(storing("a", "9Gi", func(s *storagev1.CSIStorageCapacity) {
				s.NodeTopology = &metav1.LabelSelector{}
			}))
		}, true},
		"no driver":                   {func(f *fixture) { f.RemoveDriver(disk) }, true},
		"a driver that says nothing":  {func(f *fixture) { f.SetDriver(driver(nil)) }, true},
		"a driver that does not tell": {func(f *fixture) { f.SetDriver(driver(ptr.To(false))) }, true},
		"a volume that is there": {func(f *fixture) {
			v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
			v.Spec.StorageClassName, v.Status.Phase = "wait", corev1.VolumeAvailable
			v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
			v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
			f.SetVolume(v)
		}, true},
		"a claim of no size": {func(f *fixture) {
			f.SetClaim(waiting("data", func(c *corev1.PersistentVolumeClaim) { c.Spec.Resources.Requests = nil }))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newStored(t)
			test.told(f)
			f.add(pod("p", "1", claiming("data")))
			v, _ := f.Next(f.now)
			const text = "0/1 nodes are available: 1 node(s) did not have enough free storage."
			if (v.Node == "n") != test.fits || !test.fits && !strings.HasPrefix(v.Message(), text) {
				t.Errorf("node %q: %s", v.Node, v.Message())
			}
		})
	}
}

// A Pod that waits for storage is tried again when some is reported that may do, or when its driver asks for it no
// longer, and by nothing else. SCH-032
func TestWhatStorageRequeues(t *testing.T) {
	for name, test := range map[string]struct {
		event func(*fixture)
		want  string
	}{
		"the zone is told of":      {func(f *fixture) { f.SetStorage(storing("b", "1Gi")) }, "p:m"},
		"too little is told of":    {func(f *fixture) { f.SetStorage(storing("b", "512Mi")) }, ""},
		"another zone is told of":  {func(f *fixture) { f.SetStorage(storing("c", "9Gi")) }, ""},
		"it grows":                 {func(f *fixture) { f.SetStorage(storing("a", "1Gi")) }, "p:n"},
		"it grows too little":      {func(f *fixture) { f.SetStorage(storing("a", "600Mi")) }, ""},
		"its largest volume grows": {func(f *fixture) { f.SetStorage(storing("a", "512Mi", largest("1Gi"))) }, "p:n"},
		"it shrinks":               {func(f *fixture) { f.SetStorage(storing("a", "1Mi")) }, ""},
		"it is gone":               {func(f *fixture) { f.RemoveStorage(storing("a", "512Mi")) }, ""},
		"the driver does not tell": {func(f *fixture) { f.SetDriver(driver(ptr.To(false))) }, "p:n"},
		"the driver is gone":       {func(f *fixture) { f.RemoveDriver(disk) }, "p:n"},
		"the driver is as it was":  {func(f *fixture) { f.SetDriver(driver(ptr.To(true))) }, ""},
		"a node comes to a zone":   {func(f *fixture) { f.node("o", "4", rulestest.Labelled("zone", "full")) }, "p:o"},
		"a node comes to no zone":  {func(f *fixture) { f.node("o", "4") }, ""},
		"the claim asks for less": {func(f *fixture) {
			f.SetClaim(waiting("data", func(c *corev1.PersistentVolumeClaim) {
				c.ResourceVersion = "2"
				c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("512Mi")
			}))
		}, "p:n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newStored(t)
			f.node("m", "0", rulestest.Labelled("zone", "b"))
			f.SetStorage(storing("a", "512Mi"))
			f.SetStorage(storing("full", "9Gi"))
			f.add(pod("p", "0", claiming("data")))
			f.want("p:-")
			f.wait(time.Minute)
			f.want("")
			test.event(f)
			f.want(test.want)
		})
	}
}

// The most storage that stays free is best, whichever node has it, or the least where the profile says so.
func TestScoreOfStorage(t *testing.T) {
	for name, test := range map[string]struct{ args, best, others string }{
		"by default":    {"", "4Gi", "2Gi"},
		"by args":       {"shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]", "2Gi", "4Gi"},
		"only its size": {"", "4Gi", "3Gi"},
	} {
		for _, best := range []string{"a", "b", "c"} {
			settings, err := config.Parse([]byte("{apiVersion: kubescheduler.config.k8s.io/v1, " +
				"kind: KubeSchedulerConfiguration, profiles: [{pluginConfig: [{name: VolumeBinding, args: {" +
				test.args + "}}]}]}"))
			if err != nil {
				t.Fatal(err)
			}
			f := &fixture{Cycle: cycle.New(cycle.Config{Profiles: settings.Profiles, Seed: 1}), t: t, now: start}
			f.Lead(corev1.DefaultSchedulerName, true, start)
			f.SetClass(waitClass())
			f.SetClaim(waiting("data"))
			f.SetDriver(driver(ptr.To(true)))
			for _, zone := range []string{"a", "b", "c"} {
				f.node(zone, "4", rulestest.Labelled("zone", zone))
				f.SetStorage(storing(zone, map[bool]string{true: test.best, false: test.others}[zone == best]))
			}
			f.add(pod("p", "1", claiming("data")))
			if v, _ := f.Next(f.now); v.Node != best {
				t.Errorf("%s: node %q, want %s", name, v.Node, best)
			}
		}
	}
}
