package csivolume

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
)

// The published volumes are those that Pods have, after a restart as well, and no others.
func TestStanding(t *testing.T) {
	r := newRig(t)
	r.says(unattached)
	if all := r.Standing(); len(all) != 0 {
		t.Errorf("at first there are %v", all)
	}
	one, two := source("u-1"), source("u-2")
	one.Claim, two.Claim = "data", "data"
	r.setUp(two)
	r.setUp(one)
	staging := filepath.Join(r.root.Dir, "plugins/kubernetes.io/csi", disk,
		"d2e8363faaac7ae76def3b14091d8eb5755f6b92e9531627aeec833a8731cc49", "globalmount")
	want := []Standing{
		{Pod: "u-1", Name: "pv-1", Claim: "data", Driver: disk, Handle: "vol-1", Staging: staging,
			Target: filepath.Join(r.root.Dir, "pods/u-1/volumes/kubernetes.io~csi/pv-1/mount")},
		{Pod: "u-2", Name: "pv-1", Claim: "data", Driver: disk, Handle: "vol-1", Staging: staging,
			Target: filepath.Join(r.root.Dir, "pods/u-2/volumes/kubernetes.io~csi/pv-1/mount")},
	}
	r.restart()
	if all := r.Standing(); !slices.Equal(all, want) {
		t.Errorf("there are %+v, want %+v", all, want)
	}
	r.driver.Before = func(_ context.Context, method string) error {
		if all := r.Standing(); method == "unpublish" && slices.ContainsFunc(all, func(s Standing) bool {
			return s.Pod == "u-1"
		}) {
			t.Errorf("while a volume is unpublished there are %v", all)
		}
		return nil
	}
	r.tearDown(one)
	r.tearDown(two)
	if all := r.Standing(); len(all) != 0 {
		t.Errorf("after the last Pod there are %v", all)
	}
}

// A volume that is not staged has no staging path.
func TestStandingInline(t *testing.T) {
	r := newRig(t)
	r.says(func(s *storagev1.CSIDriverSpec) {
		s.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecycleEphemeral}
	})
	s := source("u-1")
	s.Inline = true
	r.setUp(s)
	if all := r.Standing(); len(all) != 1 || all[0].Staging != "" || all[0].Claim != "" {
		t.Errorf("there are %+v", all)
	}
	r.tearDown(s)
}
