package eventbatch

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"

	"keelson.dev/kit/contained"
	"keelson.dev/kit/lanes"
	"keelson.dev/services/apiserver/internal/carriedfields"
)

// atOnce is how many Events of a batch are stored at a time: the store puts what comes together into one write to disk.
const atOnce = 32

// Config is what a single create of an Event goes through.
type Config struct {
	Scheme     *runtime.Scheme
	Serializer runtime.NegotiatedSerializer
	// Events is the store.
	Events genericrest.Creater //nolint:misspell // The library spells it so.
	// Admission is the whole chain. It sees each Event as a create of its own.
	Admission admission.Interface
	// Equivalents are the resources that webhooks may have in mind with Events.
	Equivalents runtime.EquivalentResourceMapper
	// Types are those by which the managers of an Event's fields are known.
	Types managedfields.TypeConverter
	// MaxBytes is how long the body of a request may be.
	MaxBytes int64
}

// writer creates Events as the library's handler creates any object.
type writer struct {
	*runtime.Scheme
	Config
	kind   schema.GroupVersionKind
	fields *managedfields.FieldManager
	// admit is the chain with the check of the managed fields that a webhook has changed.
	admit admission.Interface
}

var _ admission.ObjectInterfaces = &writer{}

func newWriter(c Config) (*writer, error) {
	kind := version.WithKind("Event")
	fields, err := managedfields.NewDefaultFieldManager(c.Types, runtime.UnsafeObjectConvertor(c.Scheme), c.Scheme,
		c.Scheme, kind, schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal}, "", nil)
	if err != nil {
		return nil, fmt.Errorf("managing the fields of Events: %w", err)
	}
	return &writer{Scheme: c.Scheme, Config: c, kind: kind, fields: fields,
		admit: fieldmanager.NewManagedFieldsValidatingAdmissionController(carriedfields.Over(c.Admission))}, nil
}

// createAll stores the Events, those about one object in their order, and returns what is wrong with each. What breaks
// off is one Event alone.
func (w *writer) createAll(ctx context.Context, events []corev1.Event, options *metav1.CreateOptions,
	manager string) []error {
	errs := make([]error, len(events))
	about := func(i int) corev1.ObjectReference {
		o := &events[i].InvolvedObject
		return corev1.ObjectReference{Namespace: o.Namespace, Name: o.Name, UID: o.UID}
	}
	lanes.Run(atOnce, len(events), about, func(i int) bool {
		broken := contained.Do("storing an Event", func() { errs[i] = w.create(ctx, &events[i], options, manager) })
		if broken != nil {
			errs[i] = apierrors.NewInternalError(broken)
		}
		return true
	})
	return errs
}

// create stores one Event.
func (w *writer) create(ctx context.Context, e *corev1.Event, options *metav1.CreateOptions,
	manager string) error {
	if ctx.Err() != nil {
		return apierrors.NewTimeoutError("the time of the request was up before this Event", 0)
	}
	ctx = request.WithNamespace(ctx, e.Namespace)
	user, _ := request.UserFrom(ctx)
	w.Default(e)
	genericrest.WipeObjectMetaSystemFields(e)
	obj := w.fields.UpdateNoErrors(&corev1.Event{}, e, manager)
	attributes := admission.NewAttributesRecord(obj, nil, w.kind, e.Namespace, e.Name, resource, "", admission.Create,
		options, dryrun.IsDryRun(options.DryRun), user)
	ctx = carriedfields.Offer(ctx, nil)
	admit := admission.WithAudit(w.admit)
	if mutating, ok := admit.(admission.MutationInterface); ok && mutating.Handles(admission.Create) {
		if err := mutating.Admit(ctx, attributes, w); err != nil {
			return err
		}
	}
	_, err := w.Events.Create(ctx, obj, genericrest.AdmissionToValidateObjectFunc(admit, attributes, w), options)
	return err
}

// manager is whom the fields belong to: who says so, else the program by its user agent.
func manager(options *metav1.CreateOptions, userAgent string) string {
	if options.FieldManager != "" {
		return options.FieldManager
	}
	program, _, _ := strings.Cut(userAgent, "/")
	program = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, program)
	for len(program) > metavalidation.FieldManagerMaxLength {
		program = strings.ToValidUTF8(program[:metavalidation.FieldManagerMaxLength], "")
	}
	return program
}

// GetObjectCreater implements admission.ObjectInterfaces.
func (w *writer) GetObjectCreater() runtime.ObjectCreater { return w.Scheme }

// GetObjectTyper implements admission.ObjectInterfaces.
func (w *writer) GetObjectTyper() runtime.ObjectTyper { return w.Scheme }

// GetObjectDefaulter implements admission.ObjectInterfaces.
func (w *writer) GetObjectDefaulter() runtime.ObjectDefaulter { return w.Scheme }

// GetObjectConvertor implements admission.ObjectInterfaces.
func (w *writer) GetObjectConvertor() runtime.ObjectConvertor { return w.Scheme }

// GetEquivalentResourceMapper implements admission.ObjectInterfaces.
func (w *writer) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper { return w.Equivalents }
