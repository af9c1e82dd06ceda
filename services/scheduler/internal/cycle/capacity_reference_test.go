package cycle_test

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// capacities is what the slow scheduler knows of how much storage there is.
type capacities struct {
	Tracked    map[string]bool // drivers that report their storage
	Capacities map[string]*storagev1.CSIStorageCapacity
}

func newCapacities() capacities {
	return capacities{Tracked: map[string]bool{}, Capacities: map[string]*storagev1.CSIStorageCapacity{}}
}

const noStorage = "node(s) did not have enough free storage"

// tracks reports whether a claim of the Pod depends on what storage a node has.
func (c *cluster) tracks(p *corev1.Pod) bool {
	tracked := false
	for _, name := range claimNames(p) {
		claim := c.Claims[name]
		if claim.Spec.VolumeName != "" {
			if c.Volumes[claim.Spec.VolumeName] == nil {
				return false // it depends on nothing but that
			}
			continue
		}
		class := c.Classes[*claim.Spec.StorageClassName]
		tracked = tracked || c.Tracked[class.Provisioner] && c.meant(claim) == nil
	}
	return tracked
}

// stored reports whether the node has storage enough for the claim.
func (c *cluster) stored(claim *corev1.PersistentVolumeClaim, n *corev1.Node) bool {
	return !c.Tracked[c.Classes[*claim.Spec.StorageClassName].Provisioner] || len(c.reported(claim, n)) > 0
}

// reported returns the capacities that a volume for the claim may be part of on the node.
func (c *cluster) reported(claim *corev1.PersistentVolumeClaim, n *corev1.Node) (found []int64) {
	for _, s := range c.Capacities {
		largest, quantity := s.Capacity, ptr.Deref(s.Capacity, resource.Quantity{})
		if s.MaximumVolumeSize != nil {
			largest = s.MaximumVolumeSize
		}
		if s.StorageClassName == *claim.Spec.StorageClassName && within(s.NodeTopology, n) && largest != nil &&
			largest.Cmp(*claim.Spec.Resources.Requests.Storage()) >= 0 {
			found = append(found, quantity.Value())
		}
	}
	return found
}

func within(topology *metav1.LabelSelector, n *corev1.Node) bool {
	if topology == nil {
		return false
	}
	for key, value := range topology.MatchLabels {
		if have, has := n.Labels[key]; !has || have != value {
			return false
		}
	}
	for _, r := range topology.MatchExpressions {
		have, has := n.Labels[r.Key]
		if in := has && slices.Contains(r.Values, have); in != (r.Operator == metav1.LabelSelectorOpIn) {
			return false
		}
	}
	return true
}

// storageLeft is the mean, over the classes of the Pod's claims, of the share that stays free: of the volumes that they
// get or, where they get none, of the storage that theirs are made of.
func (c *cluster) storageLeft(p *corev1.Pod, n *corev1.Node) int64 {
	if len(claimNames(p)) == 0 {
		return 0
	}
	got := c.onNode(p, n)
	fixed := slices.ContainsFunc(got.volumes, func(pv *corev1.PersistentVolume) bool { return pv != nil })
	asked, there := map[string]int64{}, map[string]int64{}
	for i, claim := range got.claims {
		class := *claim.Spec.StorageClassName
		switch {
		case fixed && got.volumes[i] == nil, !fixed && !c.Tracked[c.Classes[class].Provisioner]:
			continue
		case fixed:
			there[class] += got.volumes[i].Spec.Capacity.Storage().Value()
		default:
			there[class] += slices.Max(c.reported(claim, n))
		}
		asked[class] += claim.Spec.Resources.Requests.Storage().Value()
	}
	sum := 0.0
	for class := range asked {
		if there[class] >= asked[class] {
			sum += float64(100 - asked[class]*100/there[class])
		}
	}
	return int64(math.Round(sum / float64(max(1, len(asked)))))
}

// capacityStep does one random thing to what drivers report of their storage.
func (w *world) capacityStep() {
	g := w.gen
	if g.chance(25) {
		setDriver(g, w.fast, &w.slow.storage)
		return
	}
	name := fmt.Sprintf("s%d", g.IntN(6))
	old := w.slow.Capacities[name]
	if old != nil && g.chance(30) {
		delete(w.slow.Capacities, name)
		w.fast.RemoveStorage(old)
		return
	}
	s := g.capacity(name)
	if old != nil && g.chance(60) { // only how much there is has changed
		s.NodeTopology, s.StorageClassName = old.NodeTopology, old.StorageClassName
	}
	w.slow.Capacities[name] = s
	w.fast.SetStorage(s)
}

func (g *generator) capacity(name string) *storagev1.CSIStorageCapacity {
	amount := func() *resource.Quantity {
		if g.chance(20) {
			return nil
		}
		return ptr.To(resource.MustParse(pick(g, "0", "1Gi", "1536Mi", "2Gi", "10Gi")))
	}
	s := &storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Namespace: "csi", Name: name},
		StorageClassName: pick(g, "wait", "wait", "zoned", "static"), Capacity: amount()}
	if g.chance(30) {
		s.MaximumVolumeSize = amount()
	}
	switch g.IntN(7) {
	case 0:
		return s
	case 1:
		s.NodeTopology = &metav1.LabelSelector{}
	case 2:
		s.NodeTopology = &metav1.LabelSelector{MatchLabels: map[string]string{
			corev1.LabelHostname: fmt.Sprintf("n%d", g.IntN(max(1, g.nodes)))}}
	case 3:
		s.NodeTopology = &metav1.LabelSelector{MatchLabels: map[string]string{"zone": pick(g, "a", "b"),
			"disk": pick(g, "ssd", "hdd")}}
	case 4:
		s.NodeTopology = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "zone", Operator: pick(g, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn),
				Values: []string{"a", "b"}}}}
	default:
		s.NodeTopology = &metav1.LabelSelector{MatchLabels: map[string]string{"zone": pick(g, "a", "b", "c")}}
	}
	return s
}
