package persistentvolume

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestClaimAccount(t *testing.T) {
	for _, row := range []struct {
		name string
		in   ClaimInput
		want string
	}{
		{"bound", ClaimInput{Claim: claim("a", naming("v"), complete), Volume: volume("v", kept("a", "uid-a"))},
			"waits for nothing: it has PersistentVolume v"},
		{"its volume is gone", ClaimInput{Claim: claim("a", naming("v"), complete)},
			"waits for PersistentVolume v, which is no longer its own"},
		{"one is kept for it", ClaimInput{Claim: claim("a"), Claiming: []*corev1.PersistentVolume{
			volume("v", kept("a", ""))}}, "in its next pass gives it PersistentVolume v"},
		{"one is made for it", ClaimInput{Claim: claim("a", on("n1")), Class: local(), Node: node("n1")},
			"in its next pass makes PersistentVolume pvc-uid-a on node n1 for it"},
		{"no consumer", ClaimInput{Claim: claim("a"), Class: local()},
			"waits for a volume: waiting for first consumer to be created before binding"},
		{"no volume", ClaimInput{Claim: claim("a", ofClass(""))},
			"waits for a volume: no persistent volumes available for this claim and no storage class is set"},
		{"no volume of the name", ClaimInput{Claim: claim("a", naming("v"))},
			`waits for PersistentVolume "v", which spec.volumeName asks for`},
		{"another's", ClaimInput{Claim: claim("a", naming("v")), Volume: volume("v", kept("b", "uid-b"))},
			`waits for a volume: volume "v" already bound to a different claim.`},
		{"no such class", ClaimInput{Claim: claim("a")},
			`waits for a volume: storageclass.storage.k8s.io "fast" not found`},
		{"going", ClaimInput{Claim: claim("a", going)}, "waits for nothing: it is being deleted and gets no volume"},
	} {
		e := claimAccount(observedClaim{ClaimInput: row.in}, DecideClaim(row.in)).Explanation()
		if e.Summary != row.want {
			t.Errorf("%s: got %q, want %q", row.name, e.Summary, row.want)
		}
		for _, fact := range e.Facts {
			if strings.HasSuffix(fact.Message, "it ends when ") {
				t.Errorf("%s: it does not tell what ends %s", row.name, fact.Reason)
			}
		}
	}
}

func TestVolumeAccount(t *testing.T) {
	mine := kept("a", "uid-a")
	for _, row := range []struct {
		name string
		in   VolumeInput
		want string
	}{
		{"free", VolumeInput{Volume: volume("v")}, "waits for nothing: it is free for a claim that it suffices for"},
		{"bound", VolumeInput{Volume: volume("v", mine), Claim: claim("a", naming("v"))},
			"waits for nothing: claim ns/a has it"},
		{"kept when its claim is gone", VolumeInput{Volume: volume("v", mine, phase("Bound"))},
			"waits for somebody to decide about its data: its claim is gone, and its reclaim policy is Retain"},
		{"a folder whose claim is gone", VolumeInput{Volume: volume("v", mine, folder, phase("Bound"))},
			"in its next pass deletes it: its claim is gone, and its reclaim policy is Delete"},
		{"a folder that goes", VolumeInput{Volume: volume("v", mine, folder, ending)},
			"waits for node n1 to remove the folder"},
		{"a folder that goes with its node", VolumeInput{Volume: volume("v", mine, folder, ending), NodeGone: true},
			"in its next pass writes into the volume what has become of it"},
		{"nobody deletes it", VolumeInput{Volume: volume("v", mine, policy("Delete"), phase("Bound"))},
			"waits for somebody to put it right: " + noDeletion},
	} {
		row.in.Now = now
		if got := volumeAccount(row.in, DecideVolume(row.in)).Explanation().Summary; got != row.want {
			t.Errorf("%s: got %q, want %q", row.name, got, row.want)
		}
	}
}

// Asking about a claim takes no volume in hand: the next pass over another claim finds it.
func TestExplainingTakesNothing(t *testing.T) {
	b := newBench(t, storageClass("fast", "disk.example.com"), volume("v"), claim("a"), claim("b"))
	for range 2 {
		if e, known := b.controller.explainClaims()(t.Context(), "ns", "a"); !known || !strings.Contains(e.Summary,
			"disk.example.com") && !strings.Contains(e.Summary, "what has become of it") {
			t.Errorf("%q, %t", e.Summary, known)
		}
	}
	if len(b.controller.free.taken) > 0 || len(b.controller.free.known) != 1 || len(b.writes) > 0 {
		t.Errorf("in hand %v, free %v, wrote %v", b.controller.free.taken, b.controller.free.known, b.writes)
	}
	var volumes Volumes
	if e, known := volumes.Explain(t.Context(), "", "v"); !known || !strings.HasPrefix(e.Summary, "does not lead") {
		t.Errorf("without a leader: %q", e.Summary)
	}
	volumes.lead(b.controller.explainVolumes())
	if e, known := volumes.Explain(t.Context(), "", "v"); !known ||
		e.Summary != "waits for nothing: it is free for a claim that it suffices for" {
		t.Errorf("%q, %t", e.Summary, known)
	}
}
