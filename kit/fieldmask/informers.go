package fieldmask

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// NewInformer makes an informer, as controller-runtime's cache has it made.
type NewInformer = func(cache.ListerWatcher, runtime.Object, time.Duration, cache.Indexers) cache.SharedIndexInformer

// Informers returns how to make informers over a connection without a mask. For kinds that share fields, the informers
// watch all objects of the cluster that the rule of the kind selects, and decode each event where it lies. Objects that
// are alike share memory, so a reader must not change what is in them.
func (m *Mask) Informers(config *rest.Config) (NewInformer, error) {
	watches := map[reflect.Type]cache.WatchFuncWithContext{}
	for _, s := range m.shared {
		client, err := m.client(config, s)
		if err != nil {
			return nil, fmt.Errorf("watching %s: %w", s.resource, err)
		}
		codec := runtime.NewParameterCodec(m.scheme)
		watches[s.of] = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.Watch, o.AllowWatchBookmarks, o.FieldSelector = true, true, s.selector.String()
			return client.Get().Resource(s.resource).VersionedParams(&o, codec).Watch(ctx)
		}
	}
	return func(lists cache.ListerWatcher, example runtime.Object, resync time.Duration,
		indexers cache.Indexers) cache.SharedIndexInformer {
		if watch := watches[reflect.TypeOf(example).Elem()]; watch != nil {
			lists = &cache.ListWatch{ListWithContextFunc: cache.ToListerWatcherWithContext(lists).ListWithContext,
				WatchFuncWithContext: watch}
		}
		return cache.NewSharedIndexInformer(lists, example, resync, indexers)
	}, nil
}

// client returns one for the objects of a kind.
func (m *Mask) client(config *rest.Config, s *sharing) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	version := s.kind.GroupVersion()
	config.GroupVersion, config.APIPath = &version, "/apis"
	if version.Group == "" {
		config.APIPath = "/api"
	}
	config.NegotiatedSerializer = negotiated{serializer.WithoutConversionCodecFactory{
		CodecFactory: serializer.NewCodecFactory(m.scheme)}, m}
	return rest.RESTClientFor(config)
}

// negotiated decodes what is in protobuf by the mask.
type negotiated struct {
	serializer.WithoutConversionCodecFactory

	mask *Mask
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (n negotiated) SupportedMediaTypes() []runtime.SerializerInfo {
	all := slices.Clone(n.WithoutConversionCodecFactory.SupportedMediaTypes())
	for i := range all {
		if all[i].MediaType == runtime.ContentTypeProtobuf {
			stream := *all[i].StreamSerializer
			stream.Serializer = eventSerializer{stream.Serializer}
			all[i].Serializer, all[i].StreamSerializer = objectSerializer{all[i].Serializer, n.mask}, &stream
		}
	}
	return all
}

// eventSerializer decodes the events of a watch, whose objects stay where they are.
type eventSerializer struct{ runtime.Serializer }

// Decode implements runtime.Decoder.
func (e eventSerializer) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object,
	*schema.GroupVersionKind, error) {
	event, ok := into.(*metav1.WatchEvent)
	if !ok {
		return e.Serializer.Decode(data, defaults, into)
	}
	what, err := last(data, typeOfEvent)
	if err != nil {
		return nil, nil, fmt.Errorf("damaged watch event: %w", err)
	}
	object, err := last(data, objectOfEvent)
	if err != nil {
		return nil, nil, fmt.Errorf("damaged watch event: %w", err)
	}
	if event.Object.Raw, err = last(object, rawOfObject); err != nil {
		return nil, nil, fmt.Errorf("damaged watch event: %w", err)
	}
	event.Type = nameOf(what)
	return event, defaults, nil
}

// nameOf returns what has happened without a copy of it.
func nameOf(what []byte) string {
	for _, known := range [...]watch.EventType{watch.Modified, watch.Added, watch.Deleted, watch.Bookmark} {
		if string(known) == string(what) {
			return string(known)
		}
	}
	return string(what)
}

// objectSerializer decodes what is kept of objects, and overwrites what they are decoded from.
type objectSerializer struct {
	runtime.Serializer

	mask *Mask
}

// Decode implements runtime.Decoder.
func (o objectSerializer) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object,
	*schema.GroupVersionKind, error) {
	shared, raw, err := o.mask.sharingOf(data)
	if err != nil {
		return nil, nil, fmt.Errorf("damaged object: %w", err)
	}
	if shared == nil || into != nil {
		return o.Serializer.Decode(data, defaults, into)
	}
	object, err := shared.decode(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("damaged object: %w", err)
	}
	return object, &shared.kind, nil
}
