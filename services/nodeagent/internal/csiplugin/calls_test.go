package csiplugin

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// What a driver says about a volume arrives whole, and its error is one sentence.
func TestStats(t *testing.T) {
	r := newRig(t)
	d := r.driver("disk.example.com")
	d.Can = append(d.Can, csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csi.NodeServiceCapability_RPC_VOLUME_CONDITION)
	d.Stats = &csi.NodeGetVolumeStatsResponse{VolumeCondition: &csi.VolumeCondition{Abnormal: true},
		Usage: []*csi.VolumeUsage{{Unit: csi.VolumeUsage_BYTES, Total: 9}}}
	d.Serve(t, r.socket("disk.sock"))
	r.await("disk.example.com")
	driver, err := r.Driver("disk.example.com")
	if err != nil {
		t.Fatal(err)
	}
	if can := driver.Can(); !can.Stats || !can.Condition {
		t.Errorf("it can %+v", can)
	}
	answer, err := driver.Stats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: "v", VolumePath: "/t",
		StagingTargetPath: "/s"})
	if err != nil || !answer.GetVolumeCondition().GetAbnormal() || answer.GetUsage()[0].GetTotal() != 9 {
		t.Errorf("it says %v, %v", answer, err)
	}
	if q := d.Asked()[0]; q.GetVolumeId() != "v" || q.GetVolumePath() != "/t" || q.GetStagingTargetPath() != "/s" {
		t.Errorf("it was asked %v", q)
	}
	d.Before = func(context.Context, string) error {
		return status.Error(codes.Internal, "no\nidea"+strings.Repeat("!", 9999))
	}
	_, err = driver.Stats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: "v"})
	if err == nil ||
		!strings.HasPrefix(err.Error(), "NodeGetVolumeStats of CSI driver disk.example.com: Internal: no idea!") ||
		len(err.Error()) > 1000 {
		t.Errorf("it fails with %v", err)
	}
}

// The code of a driver's error is kept: it says whether a volume can ever grow.
func TestExpand(t *testing.T) {
	r := newRig(t)
	d := r.driver("disk.example.com")
	d.Can = append(d.Can, csi.NodeServiceCapability_RPC_EXPAND_VOLUME)
	d.Serve(t, r.socket("disk.sock"))
	r.await("disk.example.com")
	driver, err := r.Driver("disk.example.com")
	if err != nil {
		t.Fatal(err)
	}
	if can := driver.Can(); !can.Expand || can.Stats {
		t.Errorf("it can %+v", can)
	}
	request := &csi.NodeExpandVolumeRequest{VolumeId: "v", VolumePath: "/t",
		CapacityRange: &csi.CapacityRange{RequiredBytes: 9}}
	if err := driver.Expand(t.Context(), request); err != nil {
		t.Error(err)
	}
	if q := d.Grown()[0]; q.GetVolumePath() != "/t" || q.GetCapacityRange().GetRequiredBytes() != 9 {
		t.Errorf("it was asked %v", q)
	}
	d.Before = func(context.Context, string) error { return status.Error(codes.OutOfRange, "too large") }
	var refusal *Refusal
	err = driver.Expand(t.Context(), request)
	if !errors.As(err, &refusal) || refusal.Code != codes.OutOfRange ||
		err.Error() != "NodeExpandVolume of CSI driver disk.example.com: OutOfRange: too large" {
		t.Errorf("it fails with %v", err)
	}
}
