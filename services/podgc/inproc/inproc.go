// Package inproc runs podgc inside a process: the daemon's own, or a test's.
package inproc

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kitclient "keelson.dev/kit/client"
	"keelson.dev/kit/controller"
	"keelson.dev/kit/introspect"
	"keelson.dev/services/podgc/internal/collectors"
)

// service is the folder's name, and so the first half of the Leases' names.
const service = "podgc"

// Config says what to collect where.
type Config struct {
	// Client reaches the apiserver.
	Client *rest.Config
	// TerminatedPodThreshold is how many finished Pods may stay; 0 or less keeps them all.
	TerminatedPodThreshold int
	Log                    logr.Logger
	// State is told of leases, queues and errors; nil keeps a private one.
	State *introspect.State
}

// Handle is a running podgc.
type Handle = controller.Running

// Start begins to stand for the collectors' Leases. It returns at once; Wait tells how it ends.
func Start(ctx context.Context, c Config) (*Handle, error) {
	if c.State == nil {
		c.State = introspect.NewState(service, "")
	}
	h, err := controller.Start(ctx, controller.Options{
		Service: service,
		Config:  kitclient.ForDaemon(c.Client, service),
		Scheme:  clientgoscheme.Scheme,
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:  {Transform: stripPod},
			&corev1.Node{}: {Transform: stripNode},
		}},
		Log: c.Log, State: c.State,
		Controllers: collectors.All(collectors.Options{TerminatedPodThreshold: c.TerminatedPodThreshold}),
	})
	if err != nil {
		return nil, fmt.Errorf("starting podgc: %w", err)
	}
	return h, nil
}

// stripPod keeps of a Pod what the sweeps decide on; the cache holds every Pod of the cluster.
func stripPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	return &corev1.Pod{
		ObjectMeta: stripMeta(pod.ObjectMeta),
		Spec:       corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status:     corev1.PodStatus{Phase: pod.Status.Phase, Conditions: pod.Status.Conditions},
	}, nil
}

func stripNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	return &corev1.Node{
		ObjectMeta: stripMeta(node.ObjectMeta),
		Spec:       corev1.NodeSpec{Taints: node.Spec.Taints},
		Status:     corev1.NodeStatus{Conditions: node.Status.Conditions},
	}, nil
}

func stripMeta(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
	}
}
