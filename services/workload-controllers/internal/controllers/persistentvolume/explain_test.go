package persistentvolume

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// The explanation of a claim for which no volume is created says so, not only that it waits for its first Pod.
func TestAccountOfAClaimThatIsNeverProvisioned(t *testing.T) {
	many := claim("a", modes(corev1.ReadWriteMany))
	chosen := []claimEdit{on("n1"), marked(annotationProvisioner, "disk.example.com"),
		marked(annotationProvisionerV1, "disk.example.com")}
	const first = "WaitForFirstConsumer: waits for a volume: waiting for first consumer to be created before " +
		"binding; it ends when a Pod that uses the claim is given a node"
	const byHand = `somebody makes a PersistentVolume of StorageClass "fast" that suffices`
	const missing = `ProvisionerMissing: waits for the provisioner disk.example.com of StorageClass "fast" to run: ` +
		"nothing shows that it does, neither a CSIDriver of that name nor a PersistentVolume that it has made; it " +
		"ends when somebody installs it, or " + byHand
	for _, row := range []struct {
		name string
		in   observedClaim
		want []string
	}{
		{"a folder will do", observedClaim{ClaimInput: ClaimInput{Claim: claim("a"), Class: local()}},
			[]string{first + ", on which this controller then makes the volume"}},
		{"no folder will do", observedClaim{ClaimInput: ClaimInput{Claim: many, Class: local()}}, []string{
			"NeverProvisioned: waits for a volume that local.keelson.dev makes on no node: spec.accessModes[0]: " +
				"ReadWriteMany is not possible for a volume on one node: use ReadWriteOnce or ReadWriteOncePod; it " +
				"ends when that is put right in a claim that is made anew, or somebody makes a PersistentVolume of " +
				`StorageClass "` + localClass + `" that suffices`,
			first + ", on which this controller then makes the volume"}},
		{"people make them", observedClaim{ClaimInput: ClaimInput{Claim: many,
			Class: storageClass("fast", noProvisioner, delayed)}}, []string{
			first + ` where a free PersistentVolume of StorageClass "fast" can be used: the provisioner ` +
				noProvisioner + " makes none"}},
		{"somebody makes them", observedClaim{ClaimInput: ClaimInput{Claim: many,
			Class: storageClass("fast", "disk.example.com", delayed)}},
			[]string{first + ", for which the provisioner disk.example.com then makes the volume"}},
		{"nobody makes them", observedClaim{ClaimInput: ClaimInput{Claim: claim("a"),
			Class: storageClass("fast", "disk.example.com", delayed)}, unheard: true},
			[]string{missing, first + ", for which the provisioner disk.example.com then makes the volume"}},
		{"nobody makes one for the node", observedClaim{ClaimInput: ClaimInput{Claim: claim("a", chosen...),
			Class: storageClass("fast", "disk.example.com", delayed)}, unheard: true}, []string{missing,
			"ExternalProvisioning: waits for a volume: " + externalProvisioning("disk.example.com").Message +
				"; it ends when that provisioner has made a volume and bound it"}},
		{"it has its volume", observedClaim{ClaimInput: ClaimInput{Claim: claim("a", naming("v"), complete),
			Volume: volume("v", kept("a", "uid-a")), Class: storageClass("fast", "disk.example.com", delayed)},
			unheard: true}, nil},
		{"it asks for a volume by its name", observedClaim{ClaimInput: ClaimInput{Claim: claim("a", naming("v")),
			Class: storageClass("fast", "disk.example.com", delayed)}, unheard: true}, []string{
			`VolumeMissing: waits for PersistentVolume "v", which spec.volumeName asks for; it ends when there is ` +
				"one of that name"}},
	} {
		var got []string
		for _, fact := range claimAccount(row.in, DecideClaim(row.in.ClaimInput)).Explanation().Facts {
			got = append(got, fact.Reason+": "+fact.Message)
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: got\n%q, want\n%q", row.name, got, row.want)
		}
	}
}

// A provisioner shows through its CSIDriver, a volume of its driver, or a volume that names it as its creator.
func TestIsUnheard(t *testing.T) {
	made := func(by string) volumeEdit {
		return func(v *corev1.PersistentVolume) { v.Annotations = map[string]string{annotationProvisionedBy: by} }
	}
	of := func(driver string) volumeEdit {
		return func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: driver, VolumeHandle: v.Name}}
		}
	}
	driver := func(name string) *storagev1.CSIDriver {
		return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	for _, row := range []struct {
		name, provisioner string
		objects           []client.Object
		want              bool
	}{
		{"of nothing", "disk.example.com", nil, true},
		{"of others", "disk.example.com", []client.Object{driver("other"), volume("v"), volume("w", made("other")),
			volume("x", of("other"))}, true},
		{"its CSIDriver", "disk.example.com", []client.Object{driver("disk.example.com")}, false},
		{"the CSIDriver of who took over", "kubernetes.io/aws-ebs", []client.Object{driver("ebs.csi.aws.com")}, false},
		{"its driver's volume", "disk.example.com", []client.Object{volume("v", of("disk.example.com"))}, false},
		{"a volume that it made", "example.com/nfs", []client.Object{volume("v", made("example.com/nfs"))}, false},
		{"people", noProvisioner, nil, false},
		{"the mesh itself", "local.keelson.dev", nil, false},
	} {
		got, err := newBench(t, row.objects...).controller.isUnheard(t.Context(), row.provisioner)
		if err != nil || got != row.want {
			t.Errorf("%s: %t, %v", row.name, got, err)
		}
	}
}

// An explanation reserves no volume: the next pass over another claim finds it.
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
