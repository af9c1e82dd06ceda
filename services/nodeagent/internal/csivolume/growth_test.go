package csivolume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/failpoint"
)

// growingRig is a rig whose driver grows volumes; the claim has 1Gi, and so has its volume.
func growingRig(t *testing.T) *rig {
	r := newRigWith(t, csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME, csi.NodeServiceCapability_RPC_EXPAND_VOLUME)
	r.says(unattached)
	r.claim, r.pv = boundClaim(""), boundVolume("1Gi")
	r.claim.Status.Conditions = nil
	return r
}

// grows is what the driver's controller does.
func (r *rig) grows() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pv.Spec.Capacity = storage("2Gi")
	setState(&r.claim.Status, corev1.PersistentVolumeClaimNodeResizePending)
	r.claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{
		{Type: "FileSystemResizePending", Status: "True"}}
}

// claimed is the volume of the Pods that use the claim.
func claimed(readOnly bool) *corev1.Volume {
	return &corev1.Volume{Name: "d", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data", ReadOnly: readOnly}}}
}

// sourceNow is the volume of the claim for a Pod, as the API has it.
func (r *rig) sourceNow(uid types.UID) Source {
	p := pod(uid)
	p.Spec.Volumes = []corev1.Volume{*claimed(false)}
	return OfVolume(p, &p.Spec.Volumes[0], r.pv).WithClaim(r.claim, r.pv)
}

// compareNow compares a Pod's volume with the API.
func (r *rig) compareNow(s Source) error {
	r.Compare(s.Pod, &s.Pod.Spec.Volumes[0], s.Name)
	return r.compare(r.t.Context(), s.at())
}

// told is what the claim says: its size, its state of growth and the types of its conditions.
func (r *rig) told() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := r.claim.Status.Capacity[corev1.ResourceStorage]
	out := fmt.Sprint(size.String(), " ", r.claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage])
	for _, c := range r.claim.Status.Conditions {
		out += " " + string(c.Type)
	}
	return out
}

func (r *rig) wantTold(want string) {
	r.t.Helper()
	if got := r.told(); got != want {
		r.t.Errorf("the claim says %q, want %q", got, want)
	}
}

// A volume that Pods have grows at its published path, once however many Pods have it, and the claim says so.
func TestGrowsInUse(t *testing.T) {
	r := growingRig(t)
	one, two := r.sourceNow("u-1"), r.sourceNow("u-2")
	target := r.setUp(one)
	r.setUp(two)
	must(t, r.compareNow(one))
	r.driver.Calls()
	r.grows()
	r.Compare(one.Pod, &one.Pod.Spec.Volumes[0], one.Name)
	r.Compare(two.Pod, &two.Pod.Spec.Volumes[0], two.Name)
	r.reap("the claim to have grown", func() bool { return r.told() == "2Gi " })
	r.wantCalls("expand vol-1")
	q := r.driver.Grown()[0]
	if path := q.GetVolumePath(); path != target && path != r.target("u-2", "pv-1") ||
		q.GetStagingTargetPath() != r.staging(one.id()) || q.GetCapacityRange().GetRequiredBytes() != 2*gi ||
		q.GetVolumeCapability().GetMount() == nil {
		t.Errorf("the driver was asked %v", q)
	}
	if len(r.events) != 2 || !strings.HasSuffix(r.events[0], " FileSystemResizeSuccessful") ||
		r.events[1] != "data FileSystemResizeSuccessful" {
		t.Errorf("told %q", r.events)
	}
	r.restart()
	must(t, r.compareNow(one))
	must(t, r.compareNow(two))
	r.wantCalls()
	r.tearDown(one)
	r.tearDown(two)
}

// A volume that has grown in the storage before the Pod gets it grows before its containers see it: where it is staged,
// or where it is published if the driver does not stage it.
func TestGrowsBeforeThePod(t *testing.T) {
	const expand = csi.NodeServiceCapability_RPC_EXPAND_VOLUME
	for _, row := range []struct {
		can   []csi.NodeServiceCapability_RPC_Type
		calls []string
	}{
		{[]csi.NodeServiceCapability_RPC_Type{expand, csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME},
			[]string{"stage vol-1", "expand vol-1", "publish vol-1"}},
		{[]csi.NodeServiceCapability_RPC_Type{expand}, []string{"publish vol-1", "expand vol-1"}},
		{[]csi.NodeServiceCapability_RPC_Type{csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME},
			[]string{"stage vol-1", "publish vol-1"}},
	} {
		r := newRigWith(t, row.can...)
		r.says(unattached)
		r.claim, r.pv = boundClaim(""), boundVolume("1Gi")
		r.pv.Spec.CSI.NodeExpandSecretRef = &corev1.SecretReference{Namespace: "d", Name: "s"}
		r.secrets["d/s"] = &corev1.Secret{Data: map[string][]byte{"key": []byte("hush")}}
		r.grows()
		s := r.sourceNow("u-1")
		target := r.setUp(s)
		r.wantCalls(row.calls...)
		if !slices.Contains(row.can, expand) {
			r.wantTold("1Gi NodeResizePending FileSystemResizePending")
			must(t, r.compareNow(s))
			r.wantCalls()
			continue
		}
		r.wantTold("2Gi ")
		want := r.staging(s.id())
		if len(row.can) == 1 {
			want = target
		}
		if q := r.driver.Grown()[0]; q.GetVolumePath() != want || q.GetSecrets()["key"] != "hush" ||
			(q.GetStagingTargetPath() == "") != (len(row.can) == 1) {
			t.Errorf("the driver was asked %v, want %s", q, want)
		}
		must(t, r.compareNow(s))
		r.wantCalls()
		r.tearDown(s)
	}
}

// What a driver's error means for a volume in use: whether it is tried again, and what the claim says meanwhile.
func TestAGrowthThatFails(t *testing.T) {
	for _, row := range []struct {
		code  codes.Code
		again bool
		told  string
	}{
		{codes.OutOfRange, false, "1Gi NodeResizeInfeasible FileSystemResizePending NodeResizeError"},
		{codes.InvalidArgument, false, "1Gi NodeResizeInfeasible FileSystemResizePending NodeResizeError"},
		{codes.NotFound, false, "1Gi NodeResizeInfeasible FileSystemResizePending NodeResizeError"},
		{codes.FailedPrecondition, false, "1Gi NodeResizePending FileSystemResizePending NodeResizeError"},
		{codes.Internal, true, "1Gi NodeResizeInProgress FileSystemResizePending NodeResizeError"},
		{codes.Unavailable, true, "1Gi NodeResizeInProgress FileSystemResizePending"},
		{codes.Aborted, true, "1Gi NodeResizeInProgress FileSystemResizePending"},
		{codes.DeadlineExceeded, true, "1Gi NodeResizeInProgress FileSystemResizePending"},
	} {
		t.Run(row.code.String(), func(t *testing.T) {
			r := growingRig(t)
			s := r.sourceNow("u-1")
			r.setUp(s)
			r.grows()
			bad := true
			r.driver.Before = func(_ context.Context, method string) error {
				r.mu.Lock()
				defer r.mu.Unlock()
				if bad && method == "expand" {
					return status.Error(row.code, "no")
				}
				return nil
			}
			r.driver.Calls()
			if err := r.compareNow(s); (err != nil) != row.again {
				t.Errorf("got %v, want another attempt: %v", err, row.again)
			}
			r.wantTold(row.told)
			if len(r.wishes.places()) == 1 != row.again || r.events[1] != "data VolumeResizeFailed" {
				t.Errorf("the volume is to be looked at again: %v; told %q", r.wishes.places(), r.events)
			}
			r.mu.Lock()
			bad = false
			r.mu.Unlock()
			r.wantCalls("expand vol-1")
			must(t, r.compareNow(s))
			if row.again {
				r.wantTold("2Gi ")
				r.wantCalls("expand vol-1")
			} else {
				r.wantTold(row.told)
				r.wantCalls()
			}
			r.tearDown(s)
		})
	}
}

// A volume that cannot grow in use grows when it is staged for the next Pod. Until then the driver is not asked again.
func TestGrowsOnlyUnused(t *testing.T) {
	r := growingRig(t)
	s := r.sourceNow("u-1")
	r.setUp(s)
	r.grows()
	r.driver.Before = func(_ context.Context, method string) error {
		if method == "expand" && len(r.mounter.Mounts()) > 1 {
			return status.Error(codes.FailedPrecondition, "published")
		}
		return nil
	}
	must(t, r.compareNow(s))
	r.tearDown(s)
	next := r.sourceNow("u-2")
	r.setUp(next)
	r.wantTold("2Gi ")
	r.wantCalls("stage vol-1", "publish vol-1", "expand vol-1", "unpublish vol-1", "stage vol-1", "expand vol-1",
		"publish vol-1")
	r.tearDown(next)
}

// A Pod gets a volume that can never grow, and does not get one that has yet to.
func TestAGrowthThatFailsBeforeThePod(t *testing.T) {
	for code, starts := range map[codes.Code]bool{codes.OutOfRange: true, codes.FailedPrecondition: true,
		codes.Internal: false, codes.Unavailable: false} {
		r := growingRig(t)
		r.grows()
		r.driver.Before = func(_ context.Context, method string) error {
			if method == "expand" {
				return status.Error(code, "no")
			}
			return nil
		}
		s := r.sourceNow("u-1")
		if _, err := r.SetUp(t.Context(), s); (err == nil) != starts {
			t.Errorf("%s: %v", code, err)
		}
		r.tearDown(s)
	}
}

// An agent that is killed at any step of a growth carries on from there.
func TestAGrowthIsKilledAtEveryStep(t *testing.T) {
	for _, step := range []string{"expand.before=1*error(killed)", "expand.after=1*error(killed)",
		"claim.before=1*error(killed)", "claim.after=1*error(killed)", "claim.before=1*off->1*error(killed)",
		"claim.after=1*off->1*error(killed)"} {
		for _, published := range []bool{true, false} {
			t.Run(fmt.Sprint(step, published), func(t *testing.T) {
				r := growingRig(t)
				s := r.sourceNow("u-1")
				run := func() error { _, err := r.SetUp(t.Context(), r.sourceNow("u-1")); return err }
				if published {
					must(t, run())
					run = func() error { return r.compareNow(s) }
				}
				r.grows()
				point, program, _ := strings.Cut(step, "=")
				if err := failpoint.Arm("nodeagent/csi."+point, program); err != nil {
					t.Fatal(err)
				}
				defer failpoint.Disarm("nodeagent/csi." + point)
				if err := run(); err == nil {
					t.Error("the failpoint was not passed")
				}
				r.restart()
				must(t, run())
				if !published {
					must(t, r.compareNow(s))
				}
				r.wantTold("2Gi ")
				r.restart()
				r.driver.Calls()
				must(t, r.compareNow(s))
				r.wantCalls()
				r.tearDown(s)
			})
		}
	}
}

// A volume that another node has grown grows here as well, and the claim is left alone.
func TestAnotherNodeWasFirst(t *testing.T) {
	r := growingRig(t)
	s := r.sourceNow("u-1")
	r.setUp(s)
	r.pv.Spec.Capacity, r.claim.Status.Capacity = storage("2Gi"), storage("2Gi")
	r.driver.Calls()
	must(t, r.compareNow(s))
	r.wantCalls("expand vol-1")
	if r.claim.ResourceVersion != "1" {
		t.Error("the claim was written")
	}
	must(t, r.compareNow(s))
	r.wantCalls()
	r.tearDown(s)
}

// A claim that somebody else has just changed is read again before the driver is asked.
func TestAClaimThatChanges(t *testing.T) {
	r := growingRig(t)
	s := r.sourceNow("u-1")
	r.setUp(s)
	r.grows()
	r.driver.Calls()
	r.broken = errors.New("conflict")
	if err := r.compareNow(s); err == nil {
		t.Error("the claim was written")
	}
	r.wantCalls()
	r.broken = nil
	must(t, r.compareNow(s))
	r.wantCalls("expand vol-1")
	r.tearDown(s)
}

// A volume that the Pod only reads does not grow, and neither does one that the Pod no longer has, or whose claim or
// volume is gone or another one.
func TestDoesNotGrow(t *testing.T) {
	for name, change := range map[string]func(*rig, Source){
		"read-only":         func(_ *rig, s Source) { s.Pod.Spec.Volumes[0] = *claimed(true) },
		"no claim":          func(r *rig, _ Source) { r.claim = nil },
		"no volume":         func(r *rig, _ Source) { r.pv = nil },
		"another source":    func(r *rig, _ Source) { r.pv.Spec.CSI = nil },
		"another handle":    func(r *rig, _ Source) { r.pv.Spec.CSI.VolumeHandle = "vol-2" },
		"another driver":    func(r *rig, _ Source) { r.pv.Spec.CSI.Driver = "x" },
		"the Pod has ended": func(r *rig, s Source) { r.tearDown(s) },
	} {
		t.Run(name, func(t *testing.T) {
			r := growingRig(t)
			s := r.sourceNow("u-1")
			r.setUp(s)
			r.grows()
			change(r, s)
			r.driver.Calls()
			must(t, r.compareNow(s))
			if calls := r.driver.Calls(); len(calls) > 0 {
				t.Errorf("the driver was called %v", calls)
			}
			r.tearDown(s)
		})
	}
}

// The record of an agent that did not know claims and sizes is completed.
func TestRecordsOfAnOlderAgent(t *testing.T) {
	r := growingRig(t)
	s := r.sourceNow("u-1")
	r.setUp(s)
	must(t, os.WriteFile(filepath.Join(r.pod("u-1", "pv-1"), "vol_data.json"),
		[]byte(`{"driverName":"disk.example.com","volumeHandle":"vol-1","podUID":"u-1","asked":true,"published":true}`),
		0o600))
	r.restart()
	must(t, r.compareNow(s))
	r.restart()
	if got, _ := r.of(s.at()); got.Claim != "data" || got.Size != gi {
		t.Errorf("the record is %+v", got)
	}
	r.tearDown(s)
}
