package csivolume

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/kit/failpoint"
)

// A Pod's volume is in use from before it is mounted until it is unstaged; the driver gets each call once, and
// nothing is left.
//
// SAF-185 SAF-187
func TestAVolumesLife(t *testing.T) {
	r := newRig(t)
	s := source("u-1")
	began := make(chan error, 1)
	go func() {
		_, err := r.SetUp(t.Context(), s)
		began <- err
	}()
	r.eventually("the volume to be in use", func() bool {
		return slices.Equal(r.InUse(), []corev1.UniqueVolumeName{uniqueName})
	})
	r.attached() // left from an earlier Pod: it does not count until the API knows that the volume is in use
	r.Look()
	select {
	case err := <-began:
		t.Fatalf("it was set up before the API knew that it is in use: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	r.wantCalls()
	r.Reported(r.InUse())
	if err := <-began; err != nil {
		t.Fatal(err)
	}
	r.wantCalls("stage vol-1", "publish vol-1")
	want := filepath.Join(r.root.Dir, "pods/u-1/volumes/kubernetes.io~csi/pv-1/mount")
	staging := filepath.Join(r.root.Dir, "plugins/kubernetes.io/csi", disk,
		"d2e8363faaac7ae76def3b14091d8eb5755f6b92e9531627aeec833a8731cc49", "globalmount")
	if path := r.setUp(s); path != want {
		t.Errorf("containers mount %s, want %s", path, want)
	}
	r.wantCalls() // no call the second time
	stage, publish := r.driver.Staged()[0], r.driver.Published()[0]
	if stage.GetStagingTargetPath() != staging || publish.GetStagingTargetPath() != staging ||
		publish.GetTargetPath() != want || publish.GetPublishContext()["device"] != "sdx" ||
		stage.GetPublishContext()["device"] != "sdx" || publish.GetVolumeContext()["size"] != "big" {
		t.Errorf("the driver was asked %v and %v", stage, publish)
	}
	r.tearDown(s)
	r.wantCalls("unpublish vol-1")
	if names := r.InUse(); len(names) != 1 {
		t.Errorf("a staged volume is no longer in use: %v", names)
	}
	r.reap("the volume to be let go", func() bool { return len(r.InUse()) == 0 })
	r.wantCalls("unstage vol-1")
	r.wantNothingLeft()
}

// SAF-187 SAF-190: a volume that is not attached to this node is not mounted, however long it takes and even if
// others are attached; a Pod that is deleted meanwhile leaves nothing.
func TestNotAttached(t *testing.T) {
	r := newRig(t)
	r.node.Status.VolumesAttached = []corev1.AttachedVolume{{Name: "kubernetes.io/csi/disk.example.com^vol-2"}}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	s := source("u-1")
	go func() {
		r.eventually("it to be in use", func() bool { return len(r.InUse()) > 0 })
		r.Reported(r.InUse())
	}()
	if _, err := r.SetUp(ctx, s); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	r.tearDown(s)
	r.wantCalls()
	r.wantNothingLeft()
}

// The attachment must be of this volume and node, and complete.
func TestTheAttachmentIsLookedAt(t *testing.T) {
	for name, change := range map[string]func(*storagev1.VolumeAttachment){
		"of another node":   func(a *storagev1.VolumeAttachment) { a.Spec.NodeName = "m" },
		"of another driver": func(a *storagev1.VolumeAttachment) { a.Spec.Attacher = "x" },
		"of another volume": func(a *storagev1.VolumeAttachment) {
			a.Spec.Source.PersistentVolumeName = ptr.To("pv-2")
		},
		"not yet": func(a *storagev1.VolumeAttachment) { a.Status.Attached = false },
	} {
		r := newRig(t)
		r.attached()
		for _, a := range r.attach {
			change(a)
		}
		s := source("u-1")
		if err := r.put(s.at(), record{Driver: disk, Handle: "vol-1", Name: "pv-1", Pod: "u-1",
			Attachment: slices.Sorted(maps.Keys(r.attach))[0]}); err != nil {
			t.Fatal(err)
		}
		r.Reported(r.InUse())
		if _, err := r.SetUp(t.Context(), s); err == nil || !strings.Contains(err.Error(), "volumeattachment csi-") {
			t.Errorf("%s: %v", name, err)
		}
		r.wantCalls()
	}
}

// Several Pods share what is staged; the last one's end unstages it.
func TestPodsShareAStage(t *testing.T) {
	r := newRig(t)
	r.says(unattached)
	one, two := source("u-1"), source("u-2")
	r.setUp(one)
	r.setUp(two)
	// The driver finds that the volume is staged.
	r.wantCalls("stage vol-1", "publish vol-1", "stage vol-1", "publish vol-1")
	if staged := len(r.mounter.Mounts()); staged != 3 {
		t.Errorf("%d mounts, want one stage and two Pods' own", staged)
	}
	r.tearDown(one)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	r.Run(ctx)
	cancel()
	r.wantCalls("unpublish vol-1")
	r.tearDown(two)
	r.reap("the volume to be unstaged", func() bool { return len(r.mounter.Mounts()) == 0 })
	r.wantCalls("unpublish vol-1", "unstage vol-1")
	r.wantNothingLeft()
}

// SAF-185: a second Pod does not get a volume for a single Pod, also while the first one's driver has yet to
// unpublish it.
func TestReadWriteOncePod(t *testing.T) {
	r := newRig(t)
	r.says(unattached)
	one, two := source("u-1"), source("u-2")
	one.Single, two.Single = true, true
	r.setUp(one)
	const want = `persistentvolume "pv-1" has access mode ReadWriteOncePod and is in use by pod u-1`
	if _, err := r.SetUp(t.Context(), two); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	r.tearDown(one)
	r.setUp(two)
	r.tearDown(two)
}

// A driver that does not undo what it is called for delays its Pod by two minutes, no longer; its volume stays in
// use until it has undone it. Other drivers and Pods are not affected.
//
// SAF-185 SAF-190
func TestADeadDriver(t *testing.T) {
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
	r.attached()
	s := source("u-1")
	go func() {
		r.eventually("it to be in use", func() bool { return len(r.InUse()) > 0 })
		r.Reported(r.InUse())
	}()
	r.setUp(s)
	pass := func(d time.Duration) { r.mu.Lock(); defer r.mu.Unlock(); r.now = r.now.Add(d) }
	err := r.TearDown(t.Context(), "u-1", "pv-1")
	if err == nil || !strings.Contains(err.Error(), "NodeUnpublishVolume") {
		t.Fatalf("got %v", err)
	}
	pass(2*time.Minute - time.Second)
	r.restart()
	if err := r.TearDown(t.Context(), "u-1", "pv-1"); err == nil {
		t.Error("the pod's end did not wait for two minutes")
	}
	pass(time.Second)
	r.tearDown(s)
	if err := r.root.Remove("u-1"); err != nil {
		t.Errorf("the pod's folder: %v", err)
	}
	r.restart()
	if names := r.InUse(); !slices.Equal(names, []corev1.UniqueVolumeName{uniqueName}) {
		t.Errorf("in use are %v", names)
	}
	two := source("u-2")
	two.Single = true
	if _, err := r.SetUp(t.Context(), two); err == nil || !strings.Contains(err.Error(), "in use by pod u-1") {
		t.Errorf("a second pod: %v", err)
	}
	r.driver.Calls()
	r.mu.Lock()
	dead = false
	r.mu.Unlock()
	r.reap("the volume to be let go", func() bool { return len(r.InUse()) == 0 })
	r.wantCalls("unpublish vol-1", "unstage vol-1")
	r.wantNothingLeft()
}

// An agent that is killed at any step of setting up or taking down carries on from there: nothing is mounted twice,
// and nothing is left.
//
// SAF-197
func TestKilledAtEveryStep(t *testing.T) {
	for _, block := range []bool{false, true} {
		testKilledAtEveryStep(t, block)
	}
}

func testKilledAtEveryStep(t *testing.T, block bool) {
	steps := []string{"stage.before", "stage.after", "publish.before", "publish.after", "unpublish.before",
		"unpublish.after", "forget.before", "forget.after", "unstage.before", "unstage.after"}
	for _, step := range steps {
		t.Run(fmt.Sprint(step, block), func(t *testing.T) {
			r := newRig(t)
			r.says(unattached)
			point := "nodeagent/csi." + step
			if err := failpoint.Arm(point, "1*error(killed)"); err != nil {
				t.Fatal(err)
			}
			defer failpoint.Disarm(point)
			s := source("u-1")
			s.Block = block
			passed := false
			again := func(do func() error) {
				t.Helper()
				err := do()
				if errors.Is(err, failpoint.ErrInjected) {
					passed = true
					r.restart()
					err = do()
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			again(func() error { _, err := r.SetUp(t.Context(), s); return err })
			if mounts := r.mounter.Mounts(); len(mounts) != 2 {
				t.Errorf("%d mounts, want one stage and one Pod's: %v", len(mounts), mounts)
			}
			again(func() error { return r.TearDown(t.Context(), "u-1", "pv-1") })
			for id := range r.staged {
				again(func() error { return r.unstage(t.Context(), id) })
			}
			if !passed {
				t.Error("the failpoint was not passed")
			}
			r.restart()
			r.wantNothingLeft()
		})
	}
}

// What a driver reports is checked before containers get it.
func TestADriverThatLies(t *testing.T) {
	for name, lie := range map[string]func(t *testing.T, r *rig, target string){
		"mounts nothing": func(*testing.T, *rig, string) {},
		"makes a folder": func(t *testing.T, _ *rig, target string) { must(t, os.Mkdir(target, 0o700)) },
		"makes a link":   func(t *testing.T, _ *rig, target string) { must(t, os.Symlink("/etc", target)) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.says(unattached)
			s := source("u-1")
			s.Pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To[int64](1234)}
			s.FSType = "ext4"
			target := r.target("u-1", "pv-1")
			r.Volumes.Driver = func(string) (Driver, error) { return liar{func() { lie(t, r, target) }}, nil }
			_, err := r.SetUp(t.Context(), s)
			if err == nil || !strings.Contains(err.Error(), "says that volume pv-1 is published") {
				t.Errorf("got %v", err)
			}
			if info, err := os.Stat("/etc"); err != nil || info.Mode().Perm() != 0o755 {
				t.Errorf("/etc is %v, %v", info.Mode(), err)
			}
			r.tearDown(s)
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Damaged records do not keep the agent from its other volumes, and are removed from disk with the Pod.
func TestDamagedRecords(t *testing.T) {
	r := newRig(t)
	r.says(unattached)
	one, two := source("u-1"), source("u-2")
	two.Name, two.Handle = "pv-2", "vol-2"
	r.setUp(one)
	r.setUp(two)
	must(t, os.WriteFile(filepath.Join(r.pod("u-1", "pv-1"), "vol_data.json"), []byte("{"), 0o600))
	must(t, os.WriteFile(filepath.Join(r.stage(two.id()), "vol_data.json"), nil, 0o600))
	r.restart()
	r.driver.Calls()
	r.node.Status.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/other^v"}
	if names := r.InUse(); !slices.Equal(names, r.node.Status.VolumesInUse) {
		t.Errorf("while it is uncertain what a pod uses, %v are in use", names)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	r.Run(ctx)
	cancel()
	r.wantCalls() // the volume of the damaged record is not removed while its Pod uses it
	r.tearDown(one)
	r.tearDown(two)
	r.wantCalls("unpublish vol-2")
	r.reap("both volumes to be unstaged", func() bool { return len(r.mounter.Mounts()) == 0 })
	r.wantNothingLeft()
}
