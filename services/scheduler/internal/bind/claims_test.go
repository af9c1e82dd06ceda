package bind

import (
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"keelson.dev/services/scheduler/internal/volumes"
)

// Each step is written in the very version that the decision read. What the API says already is not written, and the
// first refusal ends it.
func TestPrepare(t *testing.T) {
	claim := func(name string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name,
			UID: "uid-a", ResourceVersion: "7"}}
	}
	chosen := claim("chosen")
	chosen.Annotations = map[string]string{"volume.kubernetes.io/selected-node": "n"}
	volume := func(name string, ref *corev1.ObjectReference) *corev1.PersistentVolume {
		v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-v", ResourceVersion: "8"}}
		v.Spec.ClaimRef = ref
		return v
	}
	const (
		meta    = `{"metadata":{"annotations":{`
		version = `},"resourceVersion":"7","uid":"uid-a"}}`
		ref     = `"spec":{"claimRef":{"kind":"PersistentVolumeClaim","namespace":"ns","name":"a","uid":"uid-a",` +
			`"apiVersion":"v1"}}}`
		of = `"resourceVersion":"8","uid":"uid-v"},`
	)
	for name, row := range map[string]struct {
		steps []volumes.Step
		fail  string // the object whose write is refused
		want  []string
	}{
		"a volume is asked for": {[]volumes.Step{{Claim: claim("a"), Node: "n"}}, "",
			[]string{"a " + meta + `"volume.kubernetes.io/selected-node":"n"` + version}},
		"asked for already": {[]volumes.Step{{Claim: chosen, Node: "n"}}, "", nil},
		"asked for on another node": {[]volumes.Step{{Claim: chosen, Node: "m"}}, "",
			[]string{"chosen " + meta + `"volume.kubernetes.io/selected-node":"m"` + version}},
		"a volume that nobody has": {[]volumes.Step{{Claim: claim("a"), Volume: volume("v", nil), Node: "n"}}, "",
			[]string{"v " + meta + `"pv.kubernetes.io/bound-by-controller":"yes"},` + of + ref}},
		"a volume that a user has reserved": {[]volumes.Step{{Claim: claim("a"), Node: "n",
			Volume: volume("v", &corev1.ObjectReference{Namespace: "ns", Name: "a"})}}, "",
			[]string{`v {"metadata":{` + of + ref}},
		"reserved already": {[]volumes.Step{{Claim: claim("a"), Node: "n",
			Volume: volume("v", &corev1.ObjectReference{UID: "uid-a"})}}, "", nil},
		"refused": {[]volumes.Step{{Claim: claim("x"), Node: "n"}, {Claim: claim("a"), Node: "n"}}, "x", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var patches []string
			client := fake.NewClientset()
			client.PrependReactor("patch", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
				patch := a.(clienttesting.PatchAction)
				if patch.GetName() == row.fail {
					return true, nil, errors.New("conflict")
				}
				patches = append(patches, patch.GetName()+" "+string(patch.GetPatch()))
				if patch.GetResource().Resource == "persistentvolumes" {
					return true, volume(patch.GetName(), nil), nil
				}
				return true, claim(patch.GetName()), nil
			})
			b := NewBinder(client.CoreV1(), client.CoreV1(), &Terms{}, nil)
			done := make(chan Prepared, 1)
			b.Prepare(t.Context(), Preparation{Pod: &corev1.Pod{}, Node: "n", Steps: row.steps},
				func(p Prepared) { done <- p })
			got := <-done
			if !slices.Equal(patches, row.want) || (got.Err != nil) != (row.fail != "") ||
				len(got.Claims)+len(got.Volumes) != len(row.want) {
				t.Errorf("wrote %q, want %q; %v", patches, row.want, got.Err)
			}
		})
	}
}
