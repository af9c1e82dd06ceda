// Package lookup is for the admission plugins that look objects of one kind up for each request: in memory, and in the
// store where they are too new for that.
package lookup

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Informer keeps the objects of a kind in memory; those of client-go's factory are such.
type Informer[Lister any] interface {
	Informer() cache.SharedIndexInformer
	Lister() Lister
}

// Handler is the admission.Handler of a plugin that looks objects up; a plugin embeds it. The plugin is ready when the
// informer has read the objects.
type Handler[Lister any] struct {
	*admission.Handler
	// Objects are those in memory, Client reads the store.
	Objects Lister
	Client  kubernetes.Interface

	informer func(informers.SharedInformerFactory) Informer[Lister]
	informed bool
}

var (
	_ initializer.WantsExternalKubeClientSet       = &Handler[any]{}
	_ initializer.WantsExternalKubeInformerFactory = &Handler[any]{}
	_ admission.InitializationValidator            = &Handler[any]{}
)

// NewHandler returns one for the operations, of the objects of an informer.
func NewHandler[Lister any](informer func(informers.SharedInformerFactory) Informer[Lister],
	operations ...admission.Operation) *Handler[Lister] {
	return &Handler[Lister]{Handler: admission.NewHandler(operations...), informer: informer}
}

// SetExternalKubeClientSet implements WantsExternalKubeClientSet.
func (h *Handler[Lister]) SetExternalKubeClientSet(client kubernetes.Interface) { h.Client = client }

// SetExternalKubeInformerFactory implements WantsExternalKubeInformerFactory.
func (h *Handler[Lister]) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	informer := h.informer(factory)
	h.Objects, h.informed = informer.Lister(), true
	h.SetReadyFunc(informer.Informer().HasSynced)
}

// ValidateInitialization implements InitializationValidator.
func (h *Handler[Lister]) ValidateInitialization() error {
	switch {
	case h.Client == nil:
		return errors.New("it has no client")
	case !h.informed:
		return errors.New("it has no informers")
	}
	return nil
}

// Get returns the object of a name from memory, or else from the store: it may have been made a moment ago.
func Get[O any](ctx context.Context, name string, memory interface{ Get(name string) (O, error) },
	store interface {
		Get(ctx context.Context, name string, options metav1.GetOptions) (O, error)
	}) (O, error) {
	object, err := memory.Get(name)
	if apierrors.IsNotFound(err) {
		return store.Get(ctx, name, metav1.GetOptions{})
	}
	return object, err
}
