package csivolume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/services/nodeagent/internal/volume/mountfake"
)

// block is the volume vol-1 for a Pod, as a device.
func block(uid types.UID) Source {
	s := source(uid)
	s.Block = true
	return s
}

// A block device is published at the kubelet's path, beside what is staged, and nothing is left of it.
func TestABlockVolumesLife(t *testing.T) {
	r := newRig(t)
	r.says(unattached)
	s := block("u-1")
	s.Pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To[int64](1234)}
	s.FSType = "ext4"
	want := filepath.Join(r.root.Dir, "plugins/kubernetes.io/csi/volumeDevices/publish/pv-1/u-1")
	if path := r.setUp(s); path != want {
		t.Errorf("containers get %s, want %s", path, want)
	}
	stage, publish := r.driver.Staged()[0], r.driver.Published()[0]
	if stage.GetVolumeCapability().GetBlock() == nil || publish.GetVolumeCapability().GetBlock() == nil ||
		publish.GetTargetPath() != want || publish.GetStagingTargetPath() != r.staging(s.id()) ||
		stage.GetVolumeCapability().GetAccessMode().GetMode().String() != "SINGLE_NODE_WRITER" {
		t.Errorf("the driver was asked %v and %v", stage, publish)
	}
	r.wantCalls("stage vol-1", "publish vol-1")
	r.restart()
	if _, err := openStore(r.paths, func() {}); err != nil {
		t.Errorf("the records of a device: %v", err)
	}
	r.setUp(s)
	r.wantCalls() // it stands
	if all := r.Standing(); len(all) != 1 || all[0].Target != want {
		t.Errorf("published are %v", all)
	}
	r.tearDown(s)
	r.reap("the volume to be unstaged", func() bool { return len(r.mounter.Mounts()) == 0 })
	r.wantCalls("unpublish vol-1", "unstage vol-1")
	r.wantNothingLeft()
}

// A device that another boot of the machine left may be another one: it is published again.
func TestADeviceAfterAReboot(t *testing.T) {
	r := newRig(t)
	r.says(unattached)
	r.boot = "one"
	r.restart()
	s := block("u-1")
	r.setUp(s)
	r.boot = "two"
	r.restart()
	r.driver.Calls()
	r.setUp(s)
	r.wantCalls("stage vol-1", "publish vol-1")
	r.setUp(s)
	r.wantCalls()
	r.tearDown(s)
}

// Pods that share a device have one each, and the end of one leaves the other's.
func TestPodsShareADevice(t *testing.T) {
	r := newRig(t)
	r.says(unattached)
	one, two := block("u-1"), block("u-2")
	r.setUp(one)
	path := r.setUp(two)
	r.tearDown(one)
	if is, err := r.mounter.IsDevice(path); !is || err != nil {
		t.Errorf("the other Pod's device: %v, %v", is, err)
	}
	if _, err := os.Lstat(r.device("u-1", "pv-1")); !os.IsNotExist(err) {
		t.Errorf("the first Pod's device: %v", err)
	}
	r.tearDown(two)
}

// What is no device is not given to containers, and nothing of it is left.
func TestADriverThatPublishesNoDevice(t *testing.T) {
	for name, lie := range map[string]func(target string) error{
		"nothing": func(string) error { return nil },
		"a file":  func(target string) error { return os.WriteFile(target, nil, 0o600) },
		"a link":  func(target string) error { return os.Symlink("/dev/null", target) },
	} {
		r := newRig(t)
		r.says(unattached)
		s := block("u-1")
		r.Volumes.Driver = func(string) (Driver, error) {
			return liar{func() { must(t, lie(r.device("u-1", "pv-1"))) }}, nil
		}
		_, err := r.SetUp(t.Context(), s)
		if err == nil || !strings.Contains(err.Error(), "but no block device is at") {
			t.Errorf("%s: %v", name, err)
		}
		r.tearDown(s)
		r.wantNothingLeft()
	}
}

// A driver that does not unpublish a device delays its Pod by two minutes, no longer; the volume stays in use until it
// has.
func TestADeadDriverWithADevice(t *testing.T) {
	r := newRig(t)
	dead := true
	r.driver.Before = func(_ context.Context, method string) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if dead && method == "unpublish" {
			return errors.New("dead")
		}
		return nil
	}
	r.says(unattached)
	s := block("u-1")
	r.setUp(s)
	if err := r.TearDown(t.Context(), "u-1", "pv-1"); err == nil {
		t.Error("the driver was not waited for")
	}
	r.mu.Lock()
	r.now = r.now.Add(2 * time.Minute)
	r.mu.Unlock()
	r.tearDown(s)
	if slices.ContainsFunc(r.mounter.Mounts(), func(m mountfake.Mount) bool {
		return m.Target == r.device("u-1", "pv-1")
	}) {
		t.Error("the device is still there")
	}
	must(t, r.root.Remove("u-1"))
	r.restart()
	r.driver.Calls()
	r.mu.Lock()
	dead = false
	r.mu.Unlock()
	r.reap("the volume to be let go", func() bool { return len(r.mounter.Mounts()) == 0 })
	r.wantCalls("unpublish vol-1", "unstage vol-1")
	r.wantNothingLeft()
}

// A Pod whose record is damaged loses its device with its other mounts.
func TestADamagedRecordOfADevice(t *testing.T) {
	r := newRig(t)
	r.says(unattached)
	s := block("u-1")
	path := r.setUp(s)
	must(t, os.WriteFile(filepath.Join(r.pod("u-1", "pv-1"), "vol_data.json"), []byte("{"), 0o600))
	r.restart()
	r.tearDown(s)
	if is, err := r.mounter.IsDevice(path); is || err != nil {
		t.Errorf("the device is still there: %v", err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("its file: %v", err)
	}
}

// A volume that a Pod has as a folder does not become a device, and the other way round.
func TestAVolumeKeepsItsMode(t *testing.T) {
	r := newRig(t)
	r.says(unattached)
	s := block("u-1")
	must(t, r.put(s.at(), record{Driver: disk, Handle: "vol-1", Name: "pv-1", Pod: "u-1"}))
	if _, err := r.SetUp(t.Context(), s); err == nil || !strings.Contains(err.Error(), "cannot become another one") {
		t.Errorf("got %v", err)
	}
}
