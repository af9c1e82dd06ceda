package simnode

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/kit/localvolume"
	"keelson.dev/kit/volumename"
)

// inUse are the attached volumes that Pods use, by node and Pod.
type inUse struct {
	mu   sync.Mutex // guards pods
	pods map[string]map[types.UID][]corev1.UniqueVolumeName
}

// awaitVolumes says to the Node which volumes the Pod uses, and fails until the answer says that all of them are
// attached.
func (n *Nodes) awaitVolumes(ctx context.Context, pod *corev1.Pod) error {
	names, err := n.attachedVolumes(ctx, pod)
	if err != nil || len(names) == 0 {
		return err
	}
	node, err := n.use(ctx, pod, names)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !slices.ContainsFunc(node.Status.VolumesAttached, func(a corev1.AttachedVolume) bool {
			return a.Name == name
		}) {
			return fmt.Errorf("volume %s is not attached to node %s", name, node.Name)
		}
	}
	return nil
}

// giveBack says that the Pod uses no volumes any more.
func (n *Nodes) giveBack(ctx context.Context, pod *corev1.Pod) error {
	n.volumes.mu.Lock()
	used := len(n.volumes.pods[pod.Spec.NodeName][pod.UID]) > 0
	n.volumes.mu.Unlock()
	if !used {
		return nil
	}
	_, err := n.use(ctx, pod, nil)
	return err
}

// use writes down what the Pod uses, and all that is used into the Node.
func (n *Nodes) use(ctx context.Context, pod *corev1.Pod, names []corev1.UniqueVolumeName) (*corev1.Node, error) {
	n.volumes.mu.Lock()
	defer n.volumes.mu.Unlock()
	used := n.volumes.pods[pod.Spec.NodeName]
	if used == nil {
		used = map[types.UID][]corev1.UniqueVolumeName{}
		n.volumes.pods[pod.Spec.NodeName] = used
	}
	before := used[pod.UID]
	used[pod.UID] = names
	all := []corev1.UniqueVolumeName{}
	for _, of := range used {
		all = append(all, of...)
	}
	slices.Sort(all)
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"volumesInUse": slices.Compact(all)}})
	if err != nil {
		return nil, err
	}
	node, err := n.client.CoreV1().Nodes().Patch(ctx, pod.Spec.NodeName, types.MergePatchType, patch,
		metav1.PatchOptions{}, "status")
	if err != nil {
		used[pod.UID] = before
		return nil, fmt.Errorf("saying which volumes node %s uses: %w", pod.Spec.NodeName, err)
	}
	if names == nil {
		delete(used, pod.UID)
	}
	return node, nil
}

// attachedVolumes are the names of the Pod's volumes that a driver attaches.
func (n *Nodes) attachedVolumes(ctx context.Context, pod *corev1.Pod) ([]corev1.UniqueVolumeName, error) {
	var names []corev1.UniqueVolumeName
	for i := range pod.Spec.Volumes {
		source := pod.Spec.Volumes[i].PersistentVolumeClaim
		if source == nil {
			continue
		}
		claim, err := n.client.CoreV1().PersistentVolumeClaims(pod.Namespace).Get(ctx, source.ClaimName,
			metav1.GetOptions{})
		if err != nil || claim.Spec.VolumeName == "" {
			return nil, err // as it was without volumes that are attached: a Pod runs with any claim
		}
		pv, err := n.client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if driver, handle := volumename.CSI(pv); driver != "" && driver != localvolume.Driver {
			names = append(names, volumename.Unique(driver, handle))
		}
	}
	return names, nil
}
