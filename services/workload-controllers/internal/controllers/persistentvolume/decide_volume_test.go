package persistentvolume

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

func (p VolumePlan) summary() string {
	text := string(p.Status.Phase)
	if p.Volume != nil {
		text += fmt.Sprintf(" finalizers=%v", p.Volume.Finalizers)
		if ref := p.Volume.Spec.ClaimRef; ref != nil {
			text += fmt.Sprintf(" for %s %q", ref.Name, ref.UID)
		}
	}
	if p.Delete {
		text += " is deleted"
	}
	for _, e := range p.Events {
		text += "; " + e.Type + " " + e.Reason
	}
	return text
}

func TestDecideVolume(t *testing.T) {
	mine := kept("a", "uid-a")
	external := func(v *corev1.PersistentVolume) {
		v.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": "disk.example.com"}
	}
	const deletes, recycles = corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle
	for _, row := range []struct {
		name string
		in   VolumeInput
		want string
	}{
		{"new", VolumeInput{Volume: volume("v", phase("Pending"))}, "Available"},
		{"kept for a claim to come", VolumeInput{Volume: volume("v", kept("a", ""), phase("Pending"))}, "Available"},
		{"about to be bound", VolumeInput{Volume: volume("v", mine), Claim: claim("a")}, "Available"},
		{"made, about to be bound", VolumeInput{Volume: volume("v", mine, folder, phase("Pending")), Claim: claim("a")},
			"Pending"},
		{"bound", VolumeInput{Volume: volume("v", mine), Claim: claim("a", naming("v"))}, "Bound"},
		{"SET-055 its claim is gone", VolumeInput{Volume: volume("v", mine, phase("Bound"))}, "Released"},
		{"SET-055 its claim is gone, to be kept", VolumeInput{Volume: volume("v", mine, folder,
			policy("Retain"), phase("Bound"))}, "Released"},
		{"its claim is gone, a folder", VolumeInput{Volume: volume("v", mine, folder, phase("Bound"))},
			"Released is deleted"},
		{"its claim is gone, going already", VolumeInput{Volume: volume("v", mine, folder, ending)}, "Released"},
		{"its claim is gone, somebody deletes it", VolumeInput{Volume: volume("v", mine, external, policy(deletes))},
			"Released"},
		{"somebody failed to", VolumeInput{Volume: volume("v", mine, external, policy(deletes), phase("Failed"))},
			"Failed"},
		{"nobody deletes it", VolumeInput{Volume: volume("v", mine, policy(deletes), phase("Bound"))},
			"Failed; Warning VolumeFailedDelete"},
		{"nobody deletes it, told before", VolumeInput{Volume: volume("v", mine, policy(deletes), phase("Failed"))},
			"Failed"},
		{"to be recycled", VolumeInput{Volume: volume("v", mine, policy(recycles), phase("Bound"))},
			"Failed; Warning VolumeFailedRecycle"},
		{"to be kept after all", VolumeInput{Volume: volume("v", mine, phase("Failed"))}, "Released"},
		{"the claim chose another", VolumeInput{Volume: volume("v", mine, byController), Claim: claim("a",
			naming("w"))}, "Available finalizers=[]"},
		{"the claim chose another, people kept it", VolumeInput{Volume: volume("v", mine), Claim: claim("a",
			naming("w"))}, `Available finalizers=[] for a ""`},
		{"the claim chose another, made for it", VolumeInput{Volume: volume("v", mine, folder), Claim: claim("a",
			naming("w"))}, "Released is deleted"},
		{"let go by people", VolumeInput{Volume: volume("v", phase("Released"))}, "Available"},
		{"the node is gone, the volume stays", VolumeInput{NodeGone: true, Volume: volume("v", mine, folder),
			Claim: claim("a", naming("v"))}, "Bound"},
		{"the node is gone, the volume goes", VolumeInput{NodeGone: true, Volume: volume("v", mine, folder, ending)},
			"Released finalizers=[kubernetes.io/pv-protection kubernetes.io/pv-protection] for a \"uid-a\"; " +
				"Normal NodeGone"},
		{"the node is there, the volume goes", VolumeInput{Volume: volume("v", mine, folder, ending)}, "Released"},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.in.Now = now
			before := row.in.Volume.DeepCopy()
			plan := DecideVolume(row.in)
			if got := plan.summary(); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
			changed := plan.Status.Phase != before.Status.Phase
			if at := plan.Status.LastPhaseTransitionTime; changed != (at != nil) ||
				changed && !at.Time.Equal(now) {
				t.Errorf("the phase is %s, then %s: it changed at %v", before.Status.Phase, plan.Status.Phase, at)
			}
			if failed := plan.Status.Phase == corev1.VolumeFailed && len(plan.Events) > 0; failed !=
				(plan.Status.Message != "") && changed {
				t.Errorf("the message is %q", plan.Status.Message)
			}
			if !apiequality.Semantic.DeepEqual(before, row.in.Volume) {
				t.Error("the input was changed")
			}
			row.in.Volume = row.in.Volume.DeepCopy()
			row.in.Volume.Status, row.in.Now = plan.Status, now.Add(time.Minute)
			if again := DecideVolume(row.in); !apiequality.Semantic.DeepEqual(again.Status, plan.Status) {
				t.Errorf("a second look changes the status to %+v", again.Status)
			}
		})
	}
}
