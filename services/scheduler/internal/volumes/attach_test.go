package volumes_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/scheduler/internal/rulestest"
	"keelson.dev/services/scheduler/internal/volumes"
)

// ofDriver makes the volume one of a CSI driver.
func ofDriver(driver, handle string) func(*volume) {
	return func(v *volume) { v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle} }
}

// attachment attaches the volume of a claim, by its driver.
func attachment(claim, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "at-" + claim},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: rulestest.Provisioner, NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("pv-" + claim)}}}
}

// What a Pod with claims a and b brings to a node: so many new volumes of each driver, and those that are in use.
func TestFreshAndShared(t *testing.T) {
	const disk = rulestest.Provisioner
	has := func(b *volumes.Book, claim, handle string) {
		b.SetVolume(rulestest.Volume("pv-"+claim, "1Gi", ofDriver(disk, handle)))
		b.SetClaim(rulestest.Claim(claim, bound("pv-"+claim)))
	}
	user := rulestest.Pod("user", rulestest.Claiming("a"))
	for name, test := range map[string]struct {
		happens func(*volumes.Book)
		want    string
	}{
		"two that no other Pod has": {func(*volumes.Book) {}, "[{example.com/disk 2}] []"},
		"one that a Pod has":        {func(b *volumes.Book) { b.Use(user, "n") }, "[{example.com/disk 1}] [a]"},
		"one that a Pod waits with": {func(b *volumes.Book) { b.Wait(user) }, "[{example.com/disk 2}] []"},
		"one that room is kept for": {func(b *volumes.Book) {
			b.Wait(user)
			b.Keep(user.UID, true)
		}, "[{example.com/disk 1}] [a]"},
		"one that room was kept for": {func(b *volumes.Book) {
			b.Wait(user)
			b.Keep(user.UID, true)
			b.Keep(user.UID, false)
		}, "[{example.com/disk 2}] []"},
		"one that a Pod had": {func(b *volumes.Book) {
			b.Use(user, "n")
			b.Forget(user.UID)
		}, "[{example.com/disk 2}] []"},
		"one that a Pod lost its node with": {func(b *volumes.Book) {
			b.Use(user, "n")
			b.Wait(user)
		}, "[{example.com/disk 2}] []"},
		"one that is attached": {func(b *volumes.Book) { b.SetAttachment(attachment("a", "n")) },
			"[{example.com/disk 1}] [a]"},
		"one that was attached": {func(b *volumes.Book) {
			b.SetAttachment(attachment("a", "n"))
			b.RemoveAttachment("at-a")
		}, "[{example.com/disk 2}] []"},
		"one that is attached, and that a Pod had": {func(b *volumes.Book) {
			b.SetAttachment(attachment("a", "n"))
			b.Use(user, "n")
			b.Forget(user.UID)
		}, "[{example.com/disk 1}] [a]"},
		"two claims of one disk": {func(b *volumes.Book) { has(b, "b", "a") }, "[{example.com/disk 1}] []"},
		"one without a handle":   {func(b *volumes.Book) { has(b, "b", "") }, "[{example.com/disk 1}] []"},
		"one of no driver": {func(b *volumes.Book) { b.SetVolume(rulestest.Volume("pv-b", "1Gi")) },
			"[{example.com/disk 1}] []"},
		"one of another driver": {func(b *volumes.Book) {
			b.SetVolume(rulestest.Volume("pv-b", "1Gi", ofDriver("b.example.com", "b")))
		}, "[{b.example.com 1} {example.com/disk 1}] []"},
		"one that is to be made": {func(b *volumes.Book) { b.SetClaim(rulestest.Claim("b", version("2"))) },
			"[{example.com/disk 2}] []"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook()
			has(b, "a", "a")
			has(b, "b", "b")
			test.happens(b)
			d := b.Demand(rulestest.Pod("p", rulestest.Claiming("a", "b", "a")))
			handles := []string{}
			for _, v := range d.Shared {
				handles = append(handles, v.Handle)
			}
			if got := fmt.Sprint(d.Fresh, handles); got != test.want {
				t.Errorf("it brings %s, want %s", got, test.want)
			}
		})
	}
}

// Drivers that must be on the node of a Pod are those that want it and of which the Pod has a volume.
func TestRequired(t *testing.T) {
	wants := func(driver string, is *bool) *storagev1.CSIDriver {
		return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver},
			Spec: storagev1.CSIDriverSpec{PreventPodSchedulingIfMissing: is}}
	}
	b := newBook(rulestest.Claim("a", bound("pv-a")))
	b.SetVolume(rulestest.Volume("pv-a", "1Gi", ofDriver(rulestest.Provisioner, "a")))
	want := func(step string, want ...string) {
		t.Helper()
		if got := b.Demand(rulestest.Pod("p", rulestest.Claiming("a"))).Required; !slices.Equal(got, want) {
			t.Errorf("%s: required are %q, want %q", step, got, want)
		}
	}
	want("no CSIDriver")
	b.SetDriver(wants("other", ptr.To(true)))
	want("another wants it")
	b.SetDriver(wants(rulestest.Provisioner, nil))
	want("it says nothing")
	b.SetDriver(wants(rulestest.Provisioner, ptr.To(true)))
	want("it wants it", rulestest.Provisioner)
	b.SetDriver(wants(rulestest.Provisioner, ptr.To(false)))
	want("it wants it no longer")
	b.SetDriver(wants(rulestest.Provisioner, ptr.To(true)))
	b.RemoveDriver(rulestest.Provisioner)
	want("it is gone")
}

// A node takes any number of volumes of a driver that says no count, and none of one that says 0.
func TestDrivers(t *testing.T) {
	n := &storagev1.CSINode{Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: "two", Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To[int32](2)}},
		{Name: "none", Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To[int32](0)}},
		{Name: "any"}, {Name: "also-any", Allocatable: &storagev1.VolumeNodeResources{}}}}}
	drivers, limits := volumes.Drivers(n)
	if want := []string{"also-any", "any", "none", "two"}; !slices.Equal(drivers, want) {
		t.Errorf("the drivers are %q, want %q", drivers, want)
	}
	if want := map[string]int32{"two": 2, "none": 0}; !maps.Equal(limits, want) {
		t.Errorf("the limits are %v, want %v", limits, want)
	}
}
