package attachdetach

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SAF-187 SAF-190 SAF-191 SAF-192: the record lists what is attached; an attachment ends when the object of the
// last Pod is gone and the node reports the volume as unused, or a user declares the node to be off.
func TestDecideNode(t *testing.T) {
	user, leavers := []*corev1.Pod{podOn("one", "a")}, []*corev1.Pod{podOn("one", "a", leaving)}
	attached := attachmentTo("a", done)
	for name, row := range map[string]struct {
		node      *corev1.Node
		held      *storagev1.VolumeAttachment
		users     []*corev1.Pod
		unused    time.Duration // for how long
		forever   bool
		foreign   bool
		misplaced bool
		listed    bool
		added     int
		detach    Why
		wake      time.Duration
	}{
		"being attached":      {node: nodeOf("a"), held: attachmentTo("a"), users: user},
		"attached":            {node: nodeOf("a"), held: attached, users: user, listed: true, added: 1},
		"attached and listed": {node: nodeOf("a", listing), held: attached, users: user, listed: true},
		"its Pod is leaving":  {node: nodeOf("a", listing), held: attached, users: leavers, listed: true},
		"its Pod is leaving a dead node": {node: nodeOf("a", listing, inUse, notReady, off), held: attached,
			users: leavers, unused: time.Hour, listed: true},
		"its Pod is gone":    {node: nodeOf("a", listing), held: attached, detach: Free},
		"its Pod went early": {node: nodeOf("a"), held: attachmentTo("a"), detach: Free},
		"the node uses it": {node: nodeOf("a", listing, inUse), held: attached, unused: time.Hour,
			listed: true},
		"the node is off":  {node: nodeOf("a", listing, inUse, off), held: attached, detach: OutOfService},
		"the node is gone": {held: attached, detach: NodeGone},
		"not ready, a moment short": {node: nodeOf("a", listing, inUse, notReady), held: attached,
			unused: 6*time.Minute - time.Second, listed: true, wake: time.Second},
		"not ready for six minutes": {node: nodeOf("a", listing, inUse, notReady), held: attached,
			unused: 6 * time.Minute, detach: TimedOut},
		"not ready, and it is switched off": {node: nodeOf("a", listing, inUse, notReady), held: attached,
			unused: time.Hour, forever: true, listed: true},
		"somebody else's": {node: nodeOf("a"), held: attached, foreign: true, listed: true, added: 1},
		"broken by hand":  {node: nodeOf("a", listing, inUse), held: attachmentTo("a", done, ending), users: user},
		"reserved for another node": {node: nodeOf("a"), held: attached, users: user, misplaced: true,
			detach: Free},
		"reserved for another, in use": {node: nodeOf("a", listing, inUse), held: attached, users: user,
			misplaced: true, listed: true},
	} {
		in := NodeInput{Name: "a", Node: row.node, Now: start, KeepForever: row.forever, Attachments: []Attachment{{
			Object: row.held, Volume: vol, Ours: !row.foreign, Misplaced: row.misplaced}}}
		for _, pod := range row.users {
			in.Attachments[0].Users = append(in.Attachments[0].Users, User{Pod: pod, HasClaim: true})
		}
		if len(row.users) == 0 {
			in.Attachments[0].Unused = start.Add(-row.unused)
		}
		plan := DecideNode(in)
		var why Why
		if len(plan.Detach) > 0 {
			why = plan.Detach[0].Why
		}
		listed := slices.Equal(plan.Attached, []corev1.AttachedVolume{{Name: volName}})
		if listed != row.listed || len(plan.Added) != row.added || why != row.detach {
			t.Errorf("%s: lists %v, adds %d, detaches %q; want %t, %d, %q", name, plan.Attached, len(plan.Added), why,
				row.listed, row.added, row.detach)
		}
		before := row.node != nil && len(row.node.Status.VolumesAttached) > 0
		if plan.Record != (row.node != nil && before != row.listed) {
			t.Errorf("%s: writes the record: %t", name, plan.Record)
		}
		if row.wake > 0 != !plan.Wake.IsZero() || row.wake > 0 && plan.Wake.Sub(start) != row.wake {
			t.Errorf("%s: wakes at %v", name, plan.Wake)
		}
	}
}

// Neither time in which a Pod had the volume counts, nor the time of an earlier attachment.
func TestUnused(t *testing.T) {
	u := newUnused()
	look := func(at time.Duration, uid types.UID, users ...User) time.Duration {
		a := attachmentTo("a")
		a.UID = uid
		in := NodeInput{Name: "a", Now: start.Add(at), Attachments: []Attachment{{Object: a, Users: users}}}
		u.note(&in)
		if in.Attachments[0].Unused.IsZero() {
			return -1
		}
		return in.Attachments[0].Unused.Sub(start)
	}
	if got := look(time.Minute, "x"); got != time.Minute {
		t.Errorf("at first %v", got)
	}
	if got := look(3*time.Minute, "x"); got != time.Minute {
		t.Errorf("later %v", got)
	}
	if got := look(4*time.Minute, "x", User{Pod: podOn("one", "a")}); got != -1 {
		t.Errorf("with a Pod %v", got)
	}
	if got := look(5*time.Minute, "x"); got != 5*time.Minute {
		t.Errorf("afterwards %v", got)
	}
	if got := look(6*time.Minute, "y"); got != 6*time.Minute {
		t.Errorf("of another attachment %v", got)
	}
}
