// Package simnode plays the nodeagents of a mesh without containers: it registers Nodes, says of Pods bound to them
// that they run and are ready, or have ended where their command is just that, and completes their deletion, and that
// of local volumes. One watch of each serves all nodes.
package simnode

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"keelson.dev/kit/follow"
	"keelson.dev/kit/podview"
)

// NeverReady is an image whose containers start and never get ready; NeverStart is one that cannot be pulled.
const (
	NeverReady = "sim.keelson.dev/never-ready:1"
	NeverStart = "sim.keelson.dev/never-start:1"
)

// workers is how many Pods are worked on at once.
const workers = 16

// Options say which nodes to play.
type Options struct {
	Names []string
	// Renew is how often each renews its Lease; 0 means never, for a mesh whose podgc was told to be patient.
	Renew time.Duration
}

// Nodes are the simulated nodes that run.
type Nodes struct {
	client kubernetes.Interface
	mine   map[string]bool
	queue  workqueue.TypedRateLimitingInterface[cache.ObjectName]
	pods   cache.Store
	done   chan struct{}
	// addressed is how many Pods have got an address.
	addressed atomic.Uint32

	mu sync.Mutex // guards silent
	// silent nodes are cut off: they neither hear nor say anything.
	silent map[string]bool

	// volumes are the attached volumes that Pods use.
	volumes inUse
}

// Start registers the nodes and plays them until ctx ends.
func Start(ctx context.Context, config *rest.Config, o Options) (*Nodes, error) {
	config = rest.CopyConfig(config)
	config.DisableCompression = true // as the daemons have it
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building the client of the simulated nodes: %w", err)
	}
	n := &Nodes{
		client: client, mine: map[string]bool{}, done: make(chan struct{}), silent: map[string]bool{},
		volumes: inUse{pods: map[string]map[types.UID][]corev1.UniqueVolumeName{}},
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](10*time.Millisecond, time.Second)),
	}
	for _, name := range o.Names {
		n.mine[name] = true
		if err := Register(ctx, client, name); err != nil {
			return nil, err
		}
	}
	store, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll,
			fields.OneTermNotEqualSelector("spec.nodeName", "")),
		ObjectType: &corev1.Pod{},
		Handler:    follow.Handler(n.enqueue, func(*corev1.Pod) {}),
	})
	n.pods = store
	go controller.RunWithContext(ctx)
	go n.followVolumes(ctx)
	go func() {
		defer close(n.done)
		<-ctx.Done()
		n.queue.ShutDown()
	}()
	for range workers {
		go n.work(ctx)
	}
	if o.Renew > 0 {
		go n.beat(ctx, o)
	}
	return n, nil
}

// Wait returns when the nodes have stopped.
func (n *Nodes) Wait() { <-n.done }

// Node returns the object of a simulated node of ordinary size.
func Node(name string) *corev1.Node {
	size := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("32Gi"),
		corev1.ResourcePods: resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{
			Capacity: size, Allocatable: size,
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Simulated",
				LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
			}},
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}},
		},
	}
}

// Register creates the Node, or leaves the one that is there.
func Register(ctx context.Context, client kubernetes.Interface, name string) error {
	_, err := client.CoreV1().Nodes().Create(ctx, Node(name), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("registering node %s: %w", name, err)
	}
	return report(ctx, client, name)
}

// report writes that a node is ready, also if others have changed the node meanwhile, as podgc does with its
// taints.
func report(ctx context.Context, client kubernetes.Interface, name string) error {
	before, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading node %s: %w", name, err)
	}
	node := before.DeepCopy()
	node.ResourceVersion, node.Status = "", Node(name).Status
	node.Status.VolumesInUse, node.Status.VolumesAttached = before.Status.VolumesInUse, before.Status.VolumesAttached
	if _, err := client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("writing the status of node %s: %w", name, err)
	}
	return nil
}

func (n *Nodes) enqueue(pod *corev1.Pod) {
	if n.mine[pod.Spec.NodeName] {
		n.queue.Add(cache.ObjectName{Namespace: pod.Namespace, Name: pod.Name})
	}
}

func (n *Nodes) work(ctx context.Context) {
	for {
		key, stopped := n.queue.Get()
		if stopped {
			return
		}
		if err := n.sync(ctx, key); err != nil && ctx.Err() == nil {
			n.queue.AddRateLimited(key)
		} else {
			n.queue.Forget(key)
		}
		n.queue.Done(key)
	}
}

func (n *Nodes) sync(ctx context.Context, key cache.ObjectName) error {
	object, exists, err := n.pods.GetByKey(key.String())
	if err != nil || !exists {
		return err
	}
	pod := object.(*corev1.Pod)
	if n.isSilent(pod.Spec.NodeName) {
		return nil
	}
	if pod.DeletionTimestamp != nil {
		if len(pod.Finalizers) > 0 && !podview.IsTerminal(pod) {
			// The ended Pod stays for clients that wait for its end.
			return n.write(ctx, pod, killed(pod, metav1.Now()))
		}
		if err := n.giveBack(ctx, pod); err != nil {
			return err
		}
		now := int64(0)
		err := n.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID},
		})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	if pod.Status.StartTime == nil {
		if err := n.awaitVolumes(ctx, pod); err != nil {
			return err
		}
		return n.write(ctx, pod, status(pod, n.address(), metav1.Now()))
	}
	if code, ends := exitCode(pod); ends && !podview.IsTerminal(pod) {
		return n.write(ctx, pod, ended(pod, code, metav1.Now()))
	}
	if next, wrong := readiness(pod, metav1.Now()); wrong {
		return n.write(ctx, pod, next)
	}
	return nil
}

// address returns one that no other Pod of these nodes has. Nothing answers there.
func (n *Nodes) address() string {
	count := n.addressed.Add(1)
	return netip.AddrFrom4([4]byte{10, 128 | byte(count>>16), byte(count >> 8), byte(count)}).String()
}

func (n *Nodes) write(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	next := pod.DeepCopy()
	next.Status = status
	_, err := n.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	return err
}
