package objectcache

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// resource is how objects of a kind are read.
type resource struct {
	get   func(ctx context.Context, name string) (runtime.Object, error)
	watch func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// typed is what a client of one kind has.
type typed[T runtime.Object] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// resourceOf returns how the object of the key is read.
func resourceOf(client kubernetes.Interface, key key) resource {
	core := client.CoreV1()
	switch key.kind {
	case configMap:
		return read(core.ConfigMaps(key.namespace))
	case secret:
		return read(core.Secrets(key.namespace))
	case persistentVolumeClaim:
		return read(core.PersistentVolumeClaims(key.namespace))
	default:
		return read(core.PersistentVolumes())
	}
}

func read[T runtime.Object](from typed[T]) resource {
	return resource{
		get: func(ctx context.Context, name string) (runtime.Object, error) {
			object, err := from.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return nil, err // not a nil pointer in an interface
			}
			return object, nil
		},
		watch: from.Watch,
	}
}
