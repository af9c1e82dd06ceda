package attachdetach

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cluster simulates the nodes and the driver of one volume, with a controller that crashes.
type cluster struct {
	*bench
	r *rand.Rand
	// mounted are the Pods that use the volume, by node; storage is where it is really attached.
	mounted map[types.UID]string
	storage map[string]bool
	made    int
}

var nodeNames = []string{"a", "b", "c"}

// SAF-187 SAF-188 SAF-190 SAF-191: whatever comes and goes and whichever component crashes, the volume is attached
// to one node at a time, is never detached while a Pod uses it, is detached when no Pod wants it, and the waiting
// Pod gets it.
func TestOneNodeAtATime(t *testing.T) {
	for seed := range uint64(20) {
		c := &cluster{r: rand.New(rand.NewPCG(seed, 3)), mounted: map[types.UID]string{}, storage: map[string]bool{}}
		c.bench = newBench(t, server(pvOf("ReadWriteOnce"), claimOf("pv"), nodeOf("a"), nodeOf("b"), nodeOf("c")))
		for step := range 80 {
			c.step()
			if wrong := c.wrong(); wrong != "" {
				t.Fatalf("seed %d, step %d: %s", seed, step, wrong)
			}
		}
		c.quiet(seed)
	}
}

// step does something at random.
func (c *cluster) step() {
	switch c.r.IntN(12) {
	case 0, 1:
		c.made++
		pod := podOn(fmt.Sprint("p", c.made), nodeNames[c.r.IntN(3)])
		must(c, c.api.Create(c.Context(), pod))
	case 2:
		if all := c.pods(); len(all) > 0 {
			must(c, client.IgnoreNotFound(c.api.Delete(c.Context(), &all[c.r.IntN(len(all))])))
		}
	case 3, 4, 5:
		c.agent(nodeNames[c.r.IntN(3)])
	case 6, 7:
		c.driver()
	case 8:
		c.refresh(c.r.IntN(6))
	case 9:
		c.refresh()
		c.restart(c.c.stores)
	default:
		c.crashing()
	}
}

// crashing makes a pass whose write may fail before or after it is carried out; then another controller takes
// over.
func (c *cluster) crashing() {
	at := c.writes + 1 + c.r.IntN(4)
	lost := errors.New("crash")
	c.refuse = func(write int) (before, after error) {
		if write != at {
			return nil, nil
		}
		if c.r.IntN(2) == 0 {
			return lost, nil
		}
		return nil, lost
	}
	err := c.pass([]string{"", "a", "b", "c"}[c.r.IntN(4)])
	c.refuse = nil
	if errors.Is(err, lost) {
		c.restart(c.c.stores)
	} else if err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) pods() []corev1.Pod {
	list := &corev1.PodList{}
	must(c, c.api.List(c.Context(), list))
	return list.Items
}

func (c *cluster) node(name string) *corev1.Node {
	node := &corev1.Node{}
	must(c, c.api.Get(c.Context(), client.ObjectKey{Name: name}, node))
	return node
}

// agent first reports which volumes it uses, then starts the Pods whose volume the record lists; Pods that are
// being deleted end.
func (c *cluster) agent(name string) {

	var starting, ending []corev1.Pod
	for _, pod := range c.pods() {
		if pod.Spec.NodeName == name && pod.DeletionTimestamp == nil {
			starting = append(starting, pod)
		} else if pod.Spec.NodeName == name {
			ending = append(ending, pod)
		}
	}
	for _, pod := range ending {
		delete(c.mounted, pod.UID)
	}
	node := c.node(name)
	node.Status.VolumesInUse = nil
	if len(starting) > 0 {
		node.Status.VolumesInUse = []corev1.UniqueVolumeName{volName}
	}
	must(c, c.api.Status().Update(c.Context(), node))
	if len(node.Status.VolumesAttached) > 0 {
		for i := range starting {
			c.mounted[starting[i].UID] = name
			starting[i].Status.Phase = corev1.PodRunning
			must(c, c.api.Status().Update(c.Context(), &starting[i]))
		}
	}
	for i := range ending {
		ending[i].Finalizers = nil
		must(c, c.api.Update(c.Context(), &ending[i]))
	}
}

// driver carries out the attachments, one after the other.
func (c *cluster) driver() {

	list := &storagev1.VolumeAttachmentList{}
	must(c, c.api.List(c.Context(), list))
	for i := range list.Items {
		a := &list.Items[i]
		switch {
		case a.DeletionTimestamp != nil:
			delete(c.storage, a.Spec.NodeName)
			a.Finalizers = nil
			must(c, c.api.Update(c.Context(), a))
		case !a.Status.Attached && !slices.Contains(a.Finalizers, "driver"):
			a.Finalizers = append(a.Finalizers, "driver")
			must(c, c.api.Update(c.Context(), a))
		case !a.Status.Attached:
			c.storage[a.Spec.NodeName], a.Status.Attached = true, true
			must(c, c.api.Status().Update(c.Context(), a))
		}
	}
}

// wrong returns a violation of the invariants, or "".
func (c *cluster) wrong() string {
	if len(c.storage) > 1 || len(c.attachments()) > 1 {
		return fmt.Sprintf("attached to %v, attachments to %v", c.storage, c.attachments())
	}
	for uid, node := range c.mounted {
		if !c.storage[node] {
			return fmt.Sprintf("Pod %s runs on node %s, the volume is attached to %v", uid, node, c.storage)
		}
	}
	return ""
}

// settle runs every component until nothing is left to do.
func (c *cluster) settle() {
	for range 8 {
		for _, about := range []string{"", "a", "b", "c"} {
			c.refresh()
			if err := c.pass(about); err != nil {
				c.Fatal(err)
			}
			c.driver()
		}
		for _, name := range nodeNames {
			c.agent(name)
		}
	}
}

// quiet checks that a Pod gets the volume in the end, and that no attachment is left once there is no Pod.
func (c *cluster) quiet(seed uint64) {
	for _, pod := range c.pods() {
		must(c, client.IgnoreNotFound(c.api.Delete(c.Context(), &pod)))
	}
	last := podOn("last", nodeNames[c.r.IntN(3)])
	must(c, c.api.Create(c.Context(), last))
	c.settle()
	if wrong := c.wrong(); wrong != "" || c.mounted[last.UID] == "" {
		c.Fatalf("seed %d: the last Pod runs: %t; %s", seed, c.mounted[last.UID] != "", wrong)
	}
	must(c, c.api.Delete(c.Context(), last))
	c.settle()
	if err := c.api.Get(c.Context(), client.ObjectKeyFromObject(last), last); !apierrors.IsNotFound(err) ||
		len(c.attachments()) > 0 || len(c.storage) > 0 {
		c.Fatalf("seed %d: nobody wants it, and it is attached to %v", seed, c.attachments())
	}
}
