package storage

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/version"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/registry/generic"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	genericstorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/etcd3"
	etcdfeature "k8s.io/apiserver/pkg/storage/feature"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	flowcontrolrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"keelson.dev/services/apiserver/internal/intern"
	"keelson.dev/services/apiserver/internal/objectsize"
	"keelson.dev/services/apiserver/internal/scheme"
	"keelson.dev/services/apiserver/internal/watchstream"
)

const (
	// prefix begins the key of every object.
	prefix    = "/registry"
	healthKey = prefix + "/health"
	// deleteWorkers bounds how many objects a delete of a collection takes at a time.
	deleteWorkers    = 4
	countInterval    = time.Minute
	compactInterval  = 5 * time.Minute
	healthProbeLimit = 2 * time.Second
)

// uncached are the resources without a watch cache: much is written and hardly anybody watches. Lists and watches of
// them are the store's own.
var uncached = sets.New(schema.GroupResource{Resource: "events"})

// Cached reports whether a watch cache keeps late versions of the resource's objects in memory.
func Cached(resource schema.GroupResource) bool { return !uncached.Has(resource) }

// Store hands out the storage of each resource. All share one client and one compactor.
type Store struct {
	client    *kubernetes.Client
	compactor etcd3.Compactor
	progress  *progress
	interned  *intern.Pool
	sizes     *objectsize.Book
	health    *probe
	encrypted value.ResourceTransformers
	scheme    *runtime.Scheme
	codecs    serializer.CodecFactory
	stop      func()

	// Counts is told how many objects of each resource there are, and how large; it may be nil.
	Counts flowcontrolrequest.StorageObjectCountTracker
}

var _ generic.RESTOptionsGetter = &Store{}

// New returns the store behind client, which notes how large objects are, and keeps them as the transformers encrypt
// them. Close it before the client's server ends.
func New(client *kubernetes.Client, scheme *runtime.Scheme, codecs serializer.CodecFactory,
	sizes *objectsize.Book, encrypted value.ResourceTransformers) *Store {
	if len(client.Endpoints()) == 0 {
		// The in-process client has no endpoint that the library could ask for its version.
		etcdfeature.DefaultFeatureSupportChecker.CheckClient(client.Ctx(), embeddedVersion{},
			genericstorage.RequestWatchProgress)
	}
	client.KV = etcd3.NewETCDLatencyTracker(client.KV)
	keepNoSnapshots()
	compactor := etcd3.NewCompactor(client.Client, compactInterval, clock.RealClock{}, nil)
	endGrowth := followGrowth(client.Client)
	s := &Store{client: client, compactor: compactor, progress: &progress{now: time.Now}, interned: intern.New(),
		sizes: sizes, encrypted: encrypted, scheme: scheme, codecs: codecs,
		stop: func() { endGrowth(); compactor.Stop() }}
	s.health = newProbe(s.ask)
	return s
}

// keepNoSnapshots switches off, for the whole process, that watch caches keep a snapshot of each version of the last 75
// seconds: every write pays for it, and only lists in pages and lists of an exact version, which the store answers as
// well, are read from it (docs/decisions/0014).
var keepNoSnapshots = sync.OnceFunc(func() {
	utilruntime.Must(utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{
		string(features.ListFromCacheSnapshot): false,
	}))
})

// Check fails when the store does not answer.
func (s *Store) Check() error { return s.health.check() }

// ask reads from the store.
func (s *Store) ask(ctx context.Context) error {
	if _, err := s.client.KV.Get(ctx, healthKey); err != nil {
		return fmt.Errorf("reading from the store: %w", err)
	}
	return nil
}

// Close ends the compactor and the client.
func (s *Store) Close() {
	s.stop()
	_ = s.client.Close()
}

// GetRESTOptions says how a resource is stored: as protobuf, with a watch cache if it is not one of uncached.
func (s *Store) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	config, err := s.config(resource, example)
	if err != nil {
		return generic.RESTOptions{}, fmt.Errorf("finding the storage form of %s: %w", resource, err)
	}
	return s.options(resource, config), nil
}

func (s *Store) options(resource schema.GroupResource, config *storagebackend.ConfigForResource) generic.RESTOptions {
	return generic.RESTOptions{
		StorageConfig:           config,
		Decorator:               s.open,
		EnableGarbageCollection: true,
		DeleteCollectionWorkers: deleteWorkers,
		ResourcePrefix:          strings.TrimPrefix(resource.Group+"/"+resource.Resource, "/"),
		CountMetricPollPeriod:   countInterval,

		StorageObjectCountTracker: s.Counts,
	}
}

func (s *Store) config(resource schema.GroupResource, example runtime.Object) (*storagebackend.ConfigForResource,
	error) {
	version, err := scheme.StorageVersion(s.scheme, resource.Group, example)
	if err != nil {
		return nil, err
	}
	return configOf(resource, s.codecs, version)
}

// configOf stores a resource as protobuf of a version.
func configOf(
	resource schema.GroupResource, codecs serializer.CodecFactory, version schema.GroupVersion,
) (*storagebackend.ConfigForResource, error) {
	codec, versioner, err := serverstorage.NewStorageCodec(serverstorage.StorageCodecConfig{
		StorageMediaType:  runtime.ContentTypeProtobuf,
		StorageSerializer: codecs,
		StorageVersion:    version,
		MemoryVersion:     schema.GroupVersion{Group: resource.Group, Version: runtime.APIVersionInternal},
	})
	if err != nil {
		return nil, err
	}
	config := storagebackend.NewDefaultConfig(prefix, codec)
	config.EncodeVersioner = versioner
	return config.ForResource(resource), nil
}

// open makes one resource's storage: the library's store over the shared
// client, which encrypts and names what it cannot read, failpoints around its
// writes, and if it has one the watch cache on top, with a queue for each watch.
func (s *Store) open(
	config *storagebackend.ConfigForResource,
	resourcePrefix string,
	keyFunc func(runtime.Object) (string, error),
	newFunc, newListFunc func() runtime.Object,
	attributes genericstorage.AttrFunc,
	triggers genericstorage.IndexerFuncs,
	indexers *cache.Indexers,
) (genericstorage.Interface, factory.DestroyFunc, error) {
	versioner := genericstorage.APIObjectVersioner{}
	watched := watched{config.Codec, config.GroupResource, s.interned, s.sizes}
	store, err := etcd3.New(s.client, s.compactor, watched, newFunc, newListFunc, config.Prefix, resourcePrefix,
		config.GroupResource,
		etcd3.WithCorruptObjErrorHandlingTransformer(s.encrypted.TransformerForResource(config.GroupResource)),
		config.LeaseManagerConfig,
		etcd3.WithCorruptObjErrorHandlingDecoder(etcd3.NewDefaultDecoder(config.Codec, versioner)), versioner)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the store of %s: %w", config.GroupResource, err)
	}
	plain := faulty{etcd3.NewStoreWithUnsafeCorruptObjectDeletion(store, config.GroupResource)}
	if !Cached(config.GroupResource) {
		return apart{plain}, store.Close, nil
	}
	backend := progressing{plain, s.progress, func() { _ = store.RequestWatchProgress(s.client.Ctx()) }}
	cached, err := cacher.NewCacherFromConfig(cacher.Config{
		Storage:             backend,
		Versioner:           versioner,
		GroupResource:       config.GroupResource,
		EventsHistoryWindow: config.EventsHistoryWindow,
		ResourcePrefix:      resourcePrefix,
		KeyFunc:             keyFunc,
		NewFunc:             newFunc,
		NewListFunc:         newListFunc,
		GetAttrsFunc:        attributes,
		IndexerFuncs:        triggers,
		Indexers:            indexers,
		Codec:               config.Codec,
	})
	if err != nil {
		store.Close()
		return nil, nil, fmt.Errorf("opening the watch cache of %s: %w", config.GroupResource, err)
	}
	delegator := cacher.NewCacheDelegator(cached, backend)
	destroy := sync.OnceFunc(func() {
		delegator.Stop()
		cached.Stop()
		store.Close()
	})
	return watchstream.New(delegator, config.GroupResource), func() { destroy() }, nil
}

// watched is the codec of what the store's watches bring. The watch cache keeps these objects, no code changes them,
// and most of them are alike in most fields. Objects that are read to be changed are decoded by the library's decoder,
// without it.
type watched struct {
	runtime.Codec

	of       schema.GroupResource
	interned *intern.Pool
	sizes    *objectsize.Book
}

// Decode implements runtime.Decoder.
func (w watched) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object,
	*schema.GroupVersionKind, error) {
	object, kind, err := w.Codec.Decode(data, defaults, into)
	if err == nil {
		w.sizes.Note(func() objectsize.Object { return w.name(object) }, int64(len(data)))
		w.interned.Object(object, len(data))
	}
	return object, kind, err
}

// name says which object one is.
func (w watched) name(object runtime.Object) objectsize.Object {
	of, err := meta.Accessor(object)
	if err != nil {
		return objectsize.Object{Resource: w.of}
	}
	return objectsize.Object{Resource: w.of, Namespace: of.GetNamespace(), Name: of.GetName()}
}

// embeddedVersion answers the library's question which version the in-process etcd has.
type embeddedVersion struct{}

func (embeddedVersion) Endpoints() []string { return []string{"in-process"} }

func (embeddedVersion) Status(context.Context, string) (*clientv3.StatusResponse, error) {
	return (*clientv3.StatusResponse)(&pb.StatusResponse{Version: version.Version}), nil
}
