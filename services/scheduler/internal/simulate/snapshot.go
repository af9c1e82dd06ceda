package simulate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"keelson.dev/kit/defaultclass"
	"keelson.dev/services/scheduler/internal/feed"
)

// source lists the objects of one kind.
type source struct {
	kind string
	list func(context.Context, kubernetes.Interface) (runtime.Object, error)
}

// sources are the kinds that make a snapshot.
func sources() []source {
	all := metav1.ListOptions{}
	return []source{
		{"Node", func(ctx context.Context, c kubernetes.Interface) (runtime.Object, error) {
			return c.CoreV1().Nodes().List(ctx, all)
		}},
		{"Pod", func(ctx context.Context, c kubernetes.Interface) (runtime.Object, error) {
			return c.CoreV1().Pods("").List(ctx, all)
		}},
		{"Namespace", func(ctx context.Context, c kubernetes.Interface) (runtime.Object, error) {
			return c.CoreV1().Namespaces().List(ctx, all)
		}},
		{"Service", func(ctx context.Context, c kubernetes.Interface) (runtime.Object, error) {
			return c.CoreV1().Services("").List(ctx, all)
		}},
		{"PersistentVolumeClaim", func(ctx context.Context, c kubernetes.Interface) (runtime.Object, error) {
			return c.CoreV1().PersistentVolumeClaims("").List(ctx, all)
		}},
		{"PersistentVolume", func(ctx context.Context, c kubernetes.Interface) (runtime.Object, error) {
			return c.CoreV1().PersistentVolumes().List(ctx, all)
		}},
		{"StorageClass", func(ctx context.Context, c kubernetes.Interface) (runtime.Object, error) {
			return c.StorageV1().StorageClasses().List(ctx, all)
		}},
		{"CSINode", func(ctx context.Context, c kubernetes.Interface) (runtime.Object, error) {
			return c.StorageV1().CSINodes().List(ctx, all)
		}},
		{"VolumeAttachment", func(ctx context.Context, c kubernetes.Interface) (runtime.Object, error) {
			return c.StorageV1().VolumeAttachments().List(ctx, all)
		}},
		{"CSIDriver", func(ctx context.Context, c kubernetes.Interface) (runtime.Object, error) {
			return c.StorageV1().CSIDrivers().List(ctx, all)
		}},
		{"CSIStorageCapacity", func(ctx context.Context, c kubernetes.Interface) (runtime.Object, error) {
			return c.StorageV1().CSIStorageCapacities("").List(ctx, all)
		}},
		{"ResourceClaim", func(ctx context.Context, c kubernetes.Interface) (runtime.Object, error) {
			return c.ResourceV1().ResourceClaims("").List(ctx, all)
		}},
		{"ReplicationController", func(ctx context.Context, c kubernetes.Interface) (runtime.Object, error) {
			return c.CoreV1().ReplicationControllers("").List(ctx, all)
		}},
		{"ReplicaSet", func(ctx context.Context, c kubernetes.Interface) (runtime.Object, error) {
			return c.AppsV1().ReplicaSets("").List(ctx, all)
		}},
		{"StatefulSet", func(ctx context.Context, c kubernetes.Interface) (runtime.Object, error) {
			return c.AppsV1().StatefulSets("").List(ctx, all)
		}},
		{"DaemonSet", func(ctx context.Context, c kubernetes.Interface) (runtime.Object, error) {
			return c.AppsV1().DaemonSets("").List(ctx, all)
		}},
		{"PodDisruptionBudget", func(ctx context.Context, c kubernetes.Interface) (runtime.Object, error) {
			return c.PolicyV1().PodDisruptionBudgets("").List(ctx, all)
		}},
		{"PodGroup", func(ctx context.Context, c kubernetes.Interface) (runtime.Object, error) {
			return c.SchedulingV1beta1().PodGroups("").List(ctx, all)
		}},
		{"PriorityClass", func(ctx context.Context, c kubernetes.Interface) (runtime.Object, error) {
			return c.SchedulingV1().PriorityClasses().List(ctx, all)
		}},
		{"RuntimeClass", func(ctx context.Context, c kubernetes.Interface) (runtime.Object, error) {
			return c.NodeV1().RuntimeClasses().List(ctx, all)
		}},
	}
}

// kindNames lists the kinds that make a snapshot.
func kindNames() string {
	var names []string
	for _, s := range sources() {
		names = append(names, s.kind)
	}
	return strings.Join(names, ", ")
}

// list reads the mesh: one list of each kind.
func list(ctx context.Context, client kubernetes.Interface) ([]runtime.Object, error) {
	var out []runtime.Object
	for _, s := range sources() {
		answer, err := s.list(ctx, client)
		if err != nil {
			return nil, fmt.Errorf("listing each %s: %w", s.kind, err)
		}
		objects, err := meta.ExtractList(answer)
		if err != nil {
			return nil, fmt.Errorf("reading the list of each %s: %w", s.kind, err)
		}
		for _, o := range objects {
			if kept, err := reduce(o); err != nil {
				return nil, err
			} else if kept {
				out = append(out, o)
			}
		}
	}
	return out, nil
}

// reduce keeps of an object what decisions depend on; false where that is nothing.
func reduce(object runtime.Object) (bool, error) {
	switch o := object.(type) {
	case *corev1.Pod:
		if o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed {
			return false, nil
		}
		return true, reducePod(o)
	case *appsv1.DaemonSet:
		pod := &corev1.Pod{Spec: o.Spec.Template.Spec}
		if err := feed.Trim(pod); err != nil {
			return false, err
		}
		o.ManagedFields, o.Annotations, o.Status = nil, nil, appsv1.DaemonSetStatus{}
		pod.Spec.RuntimeClassName = o.Spec.Template.Spec.RuntimeClassName
		o.Spec.Template.Annotations, o.Spec.Template.Spec = nil, pod.Spec
		return true, nil
	case *schedulingv1.PriorityClass:
		o.ManagedFields, o.Annotations = nil, nil
		return true, nil
	case *nodev1.RuntimeClass:
		o.ManagedFields, o.Annotations = nil, nil
		return true, nil
	case *storagev1.StorageClass:
		isDefault := defaultclass.Storage.Mark(o)
		err := feed.Trim(o)
		if isDefault {
			o.Annotations = map[string]string{defaultclass.StorageAnnotation: "true"}
		}
		return true, err
	}
	return true, feed.Trim(object)
}

// reducePod keeps of a Pod what the scheduler reads of it with its node and what it would read without: the Pod may be
// made again.
func reducePod(p *corev1.Pod) error {
	var owners []metav1.OwnerReference
	if owner := metav1.GetControllerOf(p); owner != nil {
		owners = []metav1.OwnerReference{*owner}
	}
	waiting := p.DeepCopy()
	waiting.Spec.NodeName = ""
	if err := errors.Join(feed.Trim(p), feed.Trim(waiting)); err != nil {
		return err
	}
	node := p.Spec.NodeName
	p.OwnerReferences, p.Spec = owners, waiting.Spec
	p.Spec.NodeName = node
	return nil
}

// write writes a snapshot, a List that any other program reads too.
func write(file string, objects []runtime.Object) (err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriter(f)
	fmt.Fprint(out, `{"apiVersion":"v1","kind":"List","items":[`)
	for i, o := range objects {
		kinds, _, err := scheme.Scheme.ObjectKinds(o)
		if err != nil {
			return fmt.Errorf("--save: %w", err)
		}
		o.GetObjectKind().SetGroupVersionKind(kinds[0])
		data, err := json.Marshal(o)
		if err != nil {
			return fmt.Errorf("--save: %w", err)
		}
		if i > 0 {
			fmt.Fprint(out, ",")
		}
		fmt.Fprintf(out, "\n%s", data)
	}
	fmt.Fprint(out, "\n]}\n")
	return out.Flush()
}

// read reads a snapshot, also one that kubectl has written.
func read(file string) ([]runtime.Object, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--snapshot: %w", err)
	}
	var list corev1.List
	decoder := json.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&list); err != nil {
		return nil, fmt.Errorf("--snapshot: %s is no List of objects in JSON, as --save writes it: %w", file, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) || list.Kind != "List" {
		return nil, fmt.Errorf("--snapshot: %s must be one List of objects, as --save writes it", file)
	}
	objects := make([]runtime.Object, 0, len(list.Items))
	for i, item := range list.Items {
		o, _, err := scheme.Codecs.UniversalDeserializer().Decode(item.Raw, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("--snapshot: %s: items[%d]: %w", file, i, err)
		}
		kept, err := reduce(o)
		if err != nil {
			return nil, fmt.Errorf("--snapshot: %s: items[%d]: %w", file, i, err)
		}
		if kept {
			objects = append(objects, o)
		}
	}
	return slices.Clip(objects), nil
}
