package objectcache

import (
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
)

// resource is how the object or list that a key names is read.
type resource struct {
	get   func(ctx context.Context) (runtime.Object, error)
	watch func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
	// selector selects what is watched.
	selector fields.Selector
	// after returns the held object after an event; nil: it does not exist.
	after func(held runtime.Object, event watch.Event) runtime.Object
}

// typed is the part of a client of one kind that the cache uses.
type typed[T runtime.Object] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// resourceOf returns how the object that the key names is read.
func resourceOf(client kubernetes.Interface, key key) resource {
	core, bundles := client.CoreV1(), client.CertificatesV1().ClusterTrustBundles()
	switch key.kind {
	case configMap:
		return read(core.ConfigMaps(key.namespace), key.name)
	case secret:
		return read(core.Secrets(key.namespace), key.name)
	case persistentVolumeClaim:
		return read(core.PersistentVolumeClaims(key.namespace), key.name)
	case clusterTrustBundle:
		return read(bundles, key.name)
	case signerTrustBundles:
		return readSigner(bundles, key.name)
	default:
		return read(core.PersistentVolumes(), key.name)
	}
}

func read[T runtime.Object](from typed[T], name string) resource {
	return resource{
		get: func(ctx context.Context) (runtime.Object, error) {
			object, err := from.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return nil, err // not a nil pointer in an interface
			}
			return object, nil
		},
		watch:    from.Watch,
		selector: fields.OneTermEqualSelector(metav1.ObjectNameField, name),
		after: func(_ runtime.Object, event watch.Event) runtime.Object {
			if event.Type == watch.Deleted {
				return nil
			}
			return event.Object
		},
	}
}

// readSigner reads all bundles of a signer as one list.
func readSigner(from certificatesclient.ClusterTrustBundleInterface, signer string) resource {
	selector := fields.OneTermEqualSelector("spec.signerName", signer)
	return resource{
		get: func(ctx context.Context) (runtime.Object, error) {
			list, err := from.List(ctx, metav1.ListOptions{FieldSelector: selector.String()})
			if err != nil {
				return nil, err
			}
			return list, nil
		},
		watch:    from.Watch,
		selector: selector,
		after: func(held runtime.Object, event watch.Event) runtime.Object {
			list, _ := held.(*certificatesv1.ClusterTrustBundleList)
			object, is := event.Object.(*certificatesv1.ClusterTrustBundle)
			if !is {
				return held
			}
			return bundlesAfter(list, event.Type, object)
		},
	}
}
