package attachdetach

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"keelson.dev/kit/localvolume"
)

// SAF-187 SAF-190 SAF-191 SAF-192: a volume is attached to the node of the Pod that waits for it; a volume that
// only one node may have is not attached to a second node while an attachment exists.
func TestDecideVolume(t *testing.T) {
	const used = `Warning FailedAttachVolume Multi-Attach error for volume "pv" Volume is already used by pod(s) one`
	const held = `Warning FailedAttachVolume Multi-Attach error for volume "pv" Volume is already exclusively attached ` +
		`to one node and can't be attached to another`
	far := func(p *corev1.Pod) { p.Namespace = "far" }
	older := func(p *corev1.Pod) { p.CreationTimestamp.Time = start.Add(-time.Second) }
	for name, row := range map[string]struct {
		modes    []corev1.PersistentVolumeAccessMode
		pods     []*corev1.Pod
		held     []*storagev1.VolumeAttachment
		nodes    []*corev1.Node
		reserved string
		other    bool // the driver needs no attachments
		attach   []string
		blocked  int
		event    string
	}{
		"a Pod waits":         {pods: []*corev1.Pod{podOn("one", "a")}, attach: []string{"a"}},
		"it has it":           {pods: []*corev1.Pod{podOn("one", "a")}, held: attachments("a")},
		"nobody waits":        {},
		"a driver that needs": {pods: []*corev1.Pod{podOn("one", "a")}, other: true},
		"the Pod is leaving":  {pods: []*corev1.Pod{podOn("one", "a", leaving)}},
		"its node is off":     {pods: []*corev1.Pod{podOn("one", "a")}, nodes: []*corev1.Node{nodeOf("a", off)}},
		"its node is gone":    {pods: []*corev1.Pod{podOn("one", "z")}},
		"another node has it": {pods: []*corev1.Pod{podOn("one", "a", leaving), podOn("two", "b")},
			held: attachments("a"), blocked: 1, event: used},
		"a node of others has it": {pods: []*corev1.Pod{podOn("one", "a", far), podOn("two", "b")},
			held: attachments("a"), blocked: 1, event: `Warning FailedAttachVolume Multi-Attach error for volume "pv" ` +
				`Volume is already used by 1 pod(s) in different namespaces`},
		"it is on its way out of another": {pods: []*corev1.Pod{podOn("two", "b")}, blocked: 1, event: held,
			held: []*storagev1.VolumeAttachment{attachmentTo("a", done, ending)}},
		"two wait": {pods: []*corev1.Pod{podOn("one", "a"), podOn("two", "b", older)}, attach: []string{"b"},
			blocked: 1},
		"two wait, reserved": {pods: []*corev1.Pod{podOn("one", "a"), podOn("two", "b", older)}, reserved: "a",
			attach: []string{"a"}, blocked: 1},
		"one has lost it": {pods: []*corev1.Pod{podOn("one", "a", running, older), podOn("two", "b")}, reserved: "a",
			attach: []string{"b"}, blocked: 1},
		"one alone has lost it": {pods: []*corev1.Pod{podOn("one", "a", running)}, reserved: "a",
			attach: []string{"a"}},
		"several may have it": {modes: []corev1.PersistentVolumeAccessMode{"ReadWriteOnce", "ReadWriteMany"},
			pods: []*corev1.Pod{podOn("one", "a"), podOn("two", "b")}, held: attachments("c"),
			attach: []string{"a", "b"}},
		"several may read it": {modes: []corev1.PersistentVolumeAccessMode{"ReadOnlyMany"},
			pods: []*corev1.Pod{podOn("two", "b")}, held: attachments("a"), attach: []string{"b"}},
		"one Pod only": {modes: []corev1.PersistentVolumeAccessMode{"ReadWriteOncePod"}, blocked: 1, event: used,
			pods: []*corev1.Pod{podOn("one", "a"), podOn("two", "b")}, held: attachments("a")},
		"the driver failed": {pods: []*corev1.Pod{podOn("one", "a")}, event: `Warning FailedAttachVolume ` +
			`AttachVolume.Attach failed for volume "pv" : full`, held: []*storagev1.VolumeAttachment{attachmentTo("a",
			func(a *storagev1.VolumeAttachment) { a.Status.AttachError = &storagev1.VolumeError{Message: "full"} })}},
	} {
		if row.modes == nil {
			row.modes = []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"}
		}
		in := VolumeInput{Volume: vol, PV: pvOf(row.modes...), Required: !row.other, Attachments: row.held,
			Nodes: map[string]*corev1.Node{"a": nodeOf("a"), "b": nodeOf("b"), "c": nodeOf("c")}}
		if row.reserved != "" {
			metav1.SetMetaDataAnnotation(&in.PV.ObjectMeta, "attachdetach.keelson.dev/reserved-for", row.reserved)
		}
		for _, node := range row.nodes {
			in.Nodes[node.Name] = node
		}
		for _, pod := range row.pods {
			in.Users = append(in.Users, User{Pod: pod, HasClaim: true})
		}
		before := in.PV.DeepCopy()
		plan := DecideVolume(in)
		event := ""
		for _, e := range plan.Events {
			event += e.Event.Type + " " + e.Event.Reason + " " + e.Event.Message
		}
		if !slices.Equal(plan.Attach, row.attach) || len(plan.Blocked) != row.blocked || event != row.event {
			t.Errorf("%s: attaches to %v, %d blocked, %q; want %v, %d, %q", name, plan.Attach, len(plan.Blocked), event,
				row.attach, row.blocked, row.event)
		}
		if exclusive := len(row.modes) == 1 && row.modes[0] != "ReadOnlyMany"; len(plan.Attach) > 0 &&
			plan.Reserve != exclusive {
			t.Errorf("%s: reserves: %t", name, plan.Reserve)
		}
		if !apiequality.Semantic.DeepEqual(in.PV, before) {
			t.Errorf("%s: the input was changed", name)
		}
	}
}

func attachments(node string) []*storagev1.VolumeAttachment {
	return []*storagev1.VolumeAttachment{attachmentTo(node, done)}
}

// A Pod gets no volume through a claim that is not its own, or that the volume is not bound to.
func TestWhoseClaim(t *testing.T) {
	pv := pvOf("ReadWriteOnce")
	claim := claimOf("pv")
	elsewhere := pvOf("ReadWriteOnce")
	elsewhere.Spec.ClaimRef.UID = "other"
	template := podOn("one", "a", func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{
			Ephemeral: &corev1.EphemeralVolumeSource{}}}}
	})
	ephemeral := claimOf("pv")
	ephemeral.Name = "one-d"
	owned := ephemeral.DeepCopy()
	owned.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(template,
		corev1.SchemeGroupVersion.WithKind("Pod"))}
	for name, row := range map[string]struct {
		pod   *corev1.Pod
		claim *corev1.PersistentVolumeClaim
		pv    *corev1.PersistentVolume
		want  bool
	}{
		"bound":                      {podOn("one", "a"), claim, pv, true},
		"no claim":                   {podOn("one", "a"), nil, pv, false},
		"no volume":                  {podOn("one", "a"), claim, nil, false},
		"the claim names another":    {podOn("one", "a"), claimOf("other"), pv, false},
		"the volume is another's":    {podOn("one", "a"), claim, elsewhere, false},
		"made for the Pod":           {template, owned, pv, true},
		"of the name of one made so": {template, ephemeral, pv, false},
	} {
		if got := hasClaim(row.pod, row.claim, row.pv); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestWhichDriversAttach(t *testing.T) {
	no, yes := false, true
	for name, row := range map[string]struct {
		driver   string
		required *bool
		there    bool
		want     bool
	}{
		"one of which nothing is known": {driver: "disk.example.com", want: true},
		"one that does not say":         {driver: "disk.example.com", there: true, want: true},
		"one that does":                 {driver: "disk.example.com", there: true, required: &yes, want: true},
		"one that does not":             {driver: "disk.example.com", there: true, required: &no},
		"folders of a node":             {driver: localvolume.Driver},
	} {
		var driver *storagev1.CSIDriver
		if row.there {
			driver = &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{AttachRequired: row.required}}
		}
		if got := needsAttaching(row.driver, driver); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
