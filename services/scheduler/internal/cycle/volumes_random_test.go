package cycle_test

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"keelson.dev/services/scheduler/internal/cycle"
	"keelson.dev/services/scheduler/internal/volumes"
)

// claims are those of a random Pod, of few names.
func (g *generator) claims() (out []corev1.Volume) {
	for i := range 1 + g.IntN(2) {
		out = append(out, corev1.Volume{Name: strconv.Itoa(i), VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: fmt.Sprintf("c%d",
				g.IntN(6))}}})
	}
	return out
}

func (w *world) setClasses() {
	wait := ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
	for _, class := range []*storagev1.StorageClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "wait"}, Provisioner: "example.com/disk", VolumeBindingMode: wait},
		{ObjectMeta: metav1.ObjectMeta{Name: "zoned"}, Provisioner: "example.com/disk", VolumeBindingMode: wait,
			AllowedTopologies: []corev1.TopologySelectorTerm{
				{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
					{Key: "zone", Values: []string{"a", "b"}}}}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "static"}, Provisioner: "kubernetes.io/no-provisioner",
			VolumeBindingMode: wait},
		{ObjectMeta: metav1.ObjectMeta{Name: "now"}, Provisioner: "example.com/disk",
			VolumeBindingMode: ptr.To(storagev1.VolumeBindingImmediate)},
	} {
		w.slow.Classes[class.Name] = class
		w.fast.SetClass(class)
	}
}

func (w *world) setClaim(c *corev1.PersistentVolumeClaim) {
	w.slow.Claims[c.Name] = c
	w.fast.SetClaim(c)
}

func (w *world) setVolume(v *corev1.PersistentVolume) {
	w.slow.Volumes[v.Name] = v
	w.fast.SetVolume(v)
}

// storageStep does one random thing to claims and volumes, but for those that a Pod on its way waits for.
func (w *world) storageStep() {
	g, name := w.gen, w.claimName()
	if w.inPreparation(name) {
		return
	}
	claim := w.slow.Claims[name]
	switch n := g.IntN(12); {
	case claim == nil || n == 0:
		if claim != nil {
			w.fast.RemoveClaim(claim)
		}
		w.setClaim(w.newClaim(name))
	case n == 1:
		delete(w.slow.Claims, name)
		w.fast.RemoveClaim(claim)
	case n == 2 && claim.Spec.VolumeName == "":
		w.bindClaim(claim, nil, g.affinityOfVolume())
		if g.chance(20) { // the volume is lost
			lost := w.slow.Volumes[w.slow.Claims[name].Spec.VolumeName]
			delete(w.slow.Volumes, lost.Name)
			w.fast.RemoveVolume(lost)
		}
	case n == 3 && claim.Spec.VolumeName == "":
		chosen := claim.DeepCopy()
		chosen.Annotations = map[string]string{"volume.kubernetes.io/selected-node": fmt.Sprintf("n%d", g.IntN(5))}
		w.setClaim(chosen)
	case n == 4:
		changed := claim.DeepCopy()
		if g.chance(50) {
			changed.Status.Phase = corev1.ClaimLost
		} else {
			changed.DeletionTimestamp = &metav1.Time{Time: start}
		}
		w.setClaim(changed)
	case n > 7:
		w.capacityStep()
	default:
		w.volumeStep()
	}
}

func (w *world) volumeStep() {
	g, name := w.gen, fmt.Sprintf("v%d", w.gen.IntN(8))
	if _, promised := w.slow.PromisedVolumes[name]; promised {
		return
	}
	old := w.slow.Volumes[name]
	if old == nil {
		w.setVolume(g.volume(name))
	} else if old.Status.Phase == corev1.VolumeAvailable {
		delete(w.slow.Volumes, name)
		w.fast.RemoveVolume(old)
	}
}

func (g *generator) claim(name string) *corev1.PersistentVolumeClaim {
	g.pods++
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(fmt.Sprintf("c-%d", g.pods))},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To(pick(g, "wait", "wait", "zoned", "static", "static", "now")),
			AccessModes: []corev1.PersistentVolumeAccessMode{pick(g, corev1.ReadWriteOnce, corev1.ReadWriteOnce,
				corev1.ReadWriteOncePod)},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceStorage: resource.MustParse(pick(g, "1Gi", "2Gi"))}},
		},
	}
}

func (g *generator) volume(name string) *corev1.PersistentVolume {
	g.pods++
	v := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(fmt.Sprintf("v-%d", g.pods))},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: pick(g, "static", "static", "wait"),
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(pick(g, "1Gi", "2Gi",
				"3Gi"))},
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteOncePod},
			NodeAffinity:           g.affinityOfVolume(),
			PersistentVolumeSource: g.source(name),
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable},
	}
	if g.chance(10) {
		v.Status.Phase = corev1.VolumeReleased
	}
	v.Labels = g.zones()
	return v
}

func (g *generator) affinityOfVolume() *corev1.VolumeNodeAffinity {
	r := corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn,
		Values: []string{fmt.Sprintf("n%d", g.IntN(max(1, g.nodes)))}}
	switch g.IntN(4) {
	case 0:
		return nil
	case 1:
		r.Key, r.Values = "zone", []string{pick(g, "a", "b", "c")}
	}
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{r}}}}}
}

// bindClaim binds a claim to a volume, or to a new one of that affinity.
func (w *world) bindClaim(claim *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume,
	affinity *corev1.VolumeNodeAffinity) {
	if v == nil {
		v = &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(claim.UID)}}
		v.Spec.NodeAffinity, v.Spec.PersistentVolumeSource = affinity, w.gen.source(v.Name)
		v.Labels = w.gen.zones()
	}
	v = v.DeepCopy()
	v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: claim.Name, UID: claim.UID}
	v.Status.Phase = corev1.VolumeBound
	bound := claim.DeepCopy()
	bound.Spec.VolumeName = v.Name
	bound.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	if w.gen.chance(50) {
		w.setVolume(v)
		w.setClaim(bound)
	} else {
		w.setClaim(bound)
		w.setVolume(v)
	}
}

// prepare notes what the claims of a Pod are to get.
func (w *world) prepare(v cycle.Verdict) {
	if len(v.Steps) == 0 {
		return
	}
	w.preparing[v.Pod.UID] = v.Steps
	for _, step := range v.Steps {
		if step.Node != v.Node {
			w.t.Fatalf("pod %s: a claim gets its volume on %s, the pod goes to %s", v.Pod.Name, step.Node, v.Node)
		}
		if step.Volume == nil {
			w.slow.PromisedNodes[step.Claim.Name] = v.Node
			continue
		}
		if other, ok := w.slow.PromisedVolumes[step.Volume.Name]; ok && other != step.Claim.Name {
			w.t.Fatalf("volume %s is given to %s and to %s", step.Volume.Name, other, step.Claim.Name)
		}
		w.slow.PromisedVolumes[step.Volume.Name] = step.Claim.Name
	}
}

// unprepare takes back what the claims of a Pod were to get, unless another waits for it.
func (w *world) unprepare(uid types.UID) {
	steps := w.preparing[uid]
	delete(w.preparing, uid)
	for _, step := range steps {
		if w.inPreparation(step.Claim.Name) {
			continue
		}
		delete(w.slow.PromisedNodes, step.Claim.Name)
		if step.Volume != nil {
			delete(w.slow.PromisedVolumes, step.Volume.Name)
		}
	}
}

func (w *world) inPreparation(claim string) bool {
	for _, steps := range w.preparing {
		if slices.ContainsFunc(steps, func(s volumes.Step) bool { return s.Claim.Name == claim }) {
			return true
		}
	}
	return false
}

// settleClaims lets the API give a Pod's claims what they are to get, or refuse it.
func (w *world) settleClaims(p *corev1.Pod) {
	if w.gen.chance(20) {
		w.unprepare(p.UID)
		w.refuse(p)
		return
	}
	moved := false // the node is no longer what it was when it was chosen
	for _, step := range w.preparing[p.UID] {
		claim := w.slow.Claims[step.Claim.Name]
		if claim.Spec.VolumeName == "" {
			w.bindClaim(claim, step.Volume, nil)
		}
		n := w.slow.Nodes[step.Node]
		v := w.slow.Volumes[w.slow.Claims[step.Claim.Name].Spec.VolumeName]
		moved = moved || n == nil && v.Spec.NodeAffinity != nil || n != nil && !usableOn(v, n)
	}
	w.unprepare(p.UID)
	w.fast.Await(p.UID, w.now)
	if s, ok := w.fast.NextSettled(w.now); !ok || (s.Err != nil) != moved || s.Pod.UID != p.UID ||
		s.Node != p.Spec.NodeName {
		w.t.Fatalf("the claims of pod %s are bound, and the wait ends with %+v, %v", p.Name, s, ok)
	}
	if moved {
		w.refuse(p) // once more than the Cycle has done itself
	}
}
