package csivolume

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/csiplugin"
)

func TestCheck(t *testing.T) {
	both := &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{
		"Persistent", "Ephemeral"}}}
	ephemeral := &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{
		VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{"Ephemeral"}}}
	tokens := &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{TokenRequests: []storagev1.TokenRequest{{}}}}
	for name, row := range map[string]struct {
		change func(*Source)
		driver *storagev1.CSIDriver
		want   string
	}{
		"plain":                  {},
		"inline":                 {change: func(s *Source) { s.Inline = true }, driver: both},
		"inline, not said":       {change: func(s *Source) { s.Inline = true }, want: `only supports ["Persistent"]`},
		"inline, another driver": {change: func(s *Source) { s.Inline = true }, driver: &storagev1.CSIDriver{}, want: `"Ephemeral" not supported`},
		"only inline":            {driver: ephemeral, want: `"Persistent" not supported by driver disk.example.com`},
		"asks for tokens":        {driver: tokens, want: "tokenRequests"},
		"a driver that is a path": {change: func(s *Source) { s.Driver = "../x" },
			want: `the name "../x" of the CSI driver is invalid`},
		"no driver":             {change: func(s *Source) { s.Driver = "" }, want: "is invalid"},
		"a name that is a path": {change: func(s *Source) { s.Name = "a/../b" }, want: "no name of a folder"},
		"the folder above":      {change: func(s *Source) { s.Name = ".." }, want: "no name of a folder"},
		"no name":               {change: func(s *Source) { s.Name = "" }, want: "no name of a folder"},
		"no handle":             {change: func(s *Source) { s.Handle = "" }, want: "names no volumeHandle"},
	} {
		s := source("u-1")
		if row.change != nil {
			row.change(&s)
		}
		err := check(s, row.driver)
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
}

// SAF-187: which volumes have to be attached.
func TestAttachment(t *testing.T) {
	says := func(required *bool) *storagev1.CSIDriver {
		return &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{AttachRequired: required}}
	}
	for name, row := range map[string]struct {
		inline bool
		driver *storagev1.CSIDriver
		want   bool
	}{
		"no object": {want: true}, "not said": {driver: says(nil), want: true},
		"said":   {driver: says(ptr.To(true)), want: true},
		"denied": {driver: says(ptr.To(false))}, "inline": {inline: true, driver: says(ptr.To(true))},
	} {
		s := source("u-1")
		s.Inline = row.inline
		if got := attachment(s, row.driver, "n"); (got != "") != row.want {
			t.Errorf("%s: %q, want one: %v", name, got, row.want)
		}
	}
}

func TestAccessMode(t *testing.T) {
	for mode, want := range map[corev1.PersistentVolumeAccessMode][2]string{
		"ReadWriteOnce":    {"SINGLE_NODE_WRITER", "SINGLE_NODE_MULTI_WRITER"},
		"ReadWriteOncePod": {"SINGLE_NODE_WRITER", "SINGLE_NODE_SINGLE_WRITER"},
		"ReadOnlyMany":     {"MULTI_NODE_READER_ONLY", "MULTI_NODE_READER_ONLY"},
		"ReadWriteMany":    {"MULTI_NODE_MULTI_WRITER", "MULTI_NODE_MULTI_WRITER"},
		"Else":             {"UNKNOWN", "UNKNOWN"},
	} {
		modes := []corev1.PersistentVolumeAccessMode{mode, "ReadWriteMany"}
		if got := [2]string{accessMode(modes, false).String(), accessMode(modes, true).String()}; got != want {
			t.Errorf("%s: %v, want %v", mode, got, want)
		}
	}
	if got := accessMode(nil, true); got != csi.VolumeCapability_AccessMode_UNKNOWN {
		t.Errorf("without a mode: %v", got)
	}
}

// The group of a volume, and who sets it.
func TestGroup(t *testing.T) {
	policy := func(p storagev1.FSGroupPolicy) func(*call) {
		return func(c *call) { c.driver = &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{FSGroupPolicy: &p}} }
	}
	for name, row := range map[string]struct {
		change []func(*call)
		want   int64
	}{
		"by default":            {want: 1234},
		"without a file system": {change: []func(*call){func(c *call) { c.FSType = "" }}, want: -1},
		"of several nodes": {change: []func(*call){func(c *call) {
			c.AccessModes = []corev1.PersistentVolumeAccessMode{"ReadWriteMany"}
		}}, want: -1},
		"of one Pod": {change: []func(*call){func(c *call) {
			c.AccessModes = []corev1.PersistentVolumeAccessMode{"ReadWriteOncePod"}
		}}, want: 1234},
		"none": {change: []func(*call){policy("None")}, want: -1},
		"file": {change: []func(*call){policy("File"), func(c *call) { c.FSType = "" }}, want: 1234},
		"by file system": {change: []func(*call){policy("ReadWriteOnceWithFSType"),
			func(c *call) { c.FSType = "" }}, want: -1},
		"read-only":             {change: []func(*call){policy("File"), func(c *call) { c.ReadOnly = true }}, want: -1},
		"a Pod without a group": {change: []func(*call){func(c *call) { c.Pod.Spec.SecurityContext = nil }}, want: -1},
	} {
		c := call{Source: source("u-1")}
		c.FSType = "ext4"
		c.Pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To[int64](1234)}
		for _, change := range row.change {
			change(&c)
		}
		if got := c.group(); got != row.want {
			t.Errorf("%s: %d, want %d", name, got, row.want)
		}
		c.can.MountGroup = true
		told := map[int64]string{-1: "", 1234: "1234"}[row.want]
		if got := c.capability().GetMount().GetVolumeMountGroup(); got != told {
			t.Errorf("%s: a driver that does it is told %q, want %q", name, got, told)
		}
	}
}

// What a driver gets about a Pod, and what it does not.
func TestRequests(t *testing.T) {
	c := call{Source: source("u-1"), staging: "/s", target: "/t", can: csiplugin.Capabilities{Stage: true},
		stageSecrets: map[string]string{"a": "1"}, publishSecrets: map[string]string{"b": "2"}}
	c.MountOptions, c.ReadOnly = []string{"noatime"}, true
	stage, publish := c.stageRequest(), c.publishRequest()
	if stage.GetSecrets()["a"] != "1" || len(stage.GetSecrets()) != 1 || publish.GetSecrets()["b"] != "2" ||
		len(publish.GetSecrets()) != 1 || !publish.GetReadonly() ||
		publish.GetVolumeCapability().GetMount().GetMountFlags()[0] != "noatime" ||
		publish.GetStagingTargetPath() != "/s" {
		t.Errorf("%v\n%v", stage, publish)
	}
	if !maps.Equal(publish.GetVolumeContext(), map[string]string{"size": "big"}) {
		t.Errorf("the driver is told of the Pod: %v", publish.GetVolumeContext())
	}
	c.driver = &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{PodInfoOnMount: ptr.To(true)}}
	if got, want := c.publishRequest().GetVolumeContext(), map[string]string{"size": "big",
		"csi.storage.k8s.io/pod.name": "p-u-1", "csi.storage.k8s.io/pod.namespace": "ns",
		"csi.storage.k8s.io/pod.uid": "u-1", "csi.storage.k8s.io/serviceAccount.name": "robot",
		"csi.storage.k8s.io/ephemeral": "false"}; !maps.Equal(got, want) {
		t.Errorf("the driver is told %v, want %v", got, want)
	}
	if len(c.Attributes) != 1 {
		t.Errorf("the input has changed: %v", c.Attributes)
	}
	if c.Inline = true; c.stages() || c.publishRequest().GetStagingTargetPath() != "" {
		t.Error("an inline volume is staged")
	}
}

func TestSources(t *testing.T) {
	p := pod("u-1")
	use := func(readOnly bool) corev1.Volume {
		return corev1.Volume{Name: "d", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c", ReadOnly: readOnly}}}
	}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{"ReadWriteOncePod"},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: disk,
			VolumeHandle: "h"}}}}
	for name, row := range map[string]struct {
		volumes []corev1.Volume
		always  bool
		want    bool
	}{
		"writes": {volumes: []corev1.Volume{use(false)}}, "reads": {volumes: []corev1.Volume{use(true)}, want: true},
		"reads and writes": {volumes: []corev1.Volume{use(true), use(false)}},
		"of the volume":    {volumes: []corev1.Volume{use(false)}, always: true, want: true},
	} {
		p.Spec.Volumes = row.volumes
		pv.Spec.CSI.ReadOnly = row.always
		got := OfVolume(p, &row.volumes[0], pv)
		if got.ReadOnly != row.want || !got.Single || got.Name != "pv" || got.Handle != "h" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	inline := OfPod(p, &corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
		Driver: disk, NodePublishSecretRef: &corev1.LocalObjectReference{Name: "s"}}}})
	if !inline.Inline || inline.PublishSecret.Namespace != "ns" || inline.Name != "v" || len(inline.Handle) != 68 {
		t.Errorf("inline: %+v", inline)
	}
}

// A Pod's end waits two minutes for a driver.
func TestLetGo(t *testing.T) {
	since := time.Unix(1000, 0)
	for after, want := range map[time.Duration]bool{0: false, 119 * time.Second: false, 120 * time.Second: true} {
		if got := letGo(since, since.Add(after)); got != want {
			t.Errorf("after %v: %v", after, got)
		}
	}
}
