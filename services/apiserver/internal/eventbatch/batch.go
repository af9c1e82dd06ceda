// Package eventbatch stores many Events by one request: a POST of a v1 EventList to the path where the Events of all
// namespaces are listed, which takes no POST otherwise.
package eventbatch

import (
	"fmt"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/metrics"
	"k8s.io/apiserver/pkg/warning"

	"keelson.dev/services/apiserver/internal/negotiated"
)

const (
	// path is where a batch is sent to.
	path = "/api/v1/events"
	// maxEvents is how many Events a batch may have: a request is to be answered in well under a second.
	maxEvents = 500
)

var (
	version  = corev1.SchemeGroupVersion
	listKind = version.WithKind("EventList")
	resource = version.WithResource("events")
)

// Batches takes batches of Events once it is open.
type Batches struct {
	config Config
	writer *writer
	answer negotiated.Writer
}

// Open makes b take batches from now on. It must be called before anything is served.
func (b *Batches) Open(c Config) error {
	register()
	w, err := newWriter(c)
	if err != nil {
		return err
	}
	b.config, b.writer, b.answer = c, w, negotiated.Writer{Serializer: c.Serializer, Version: version}
	return nil
}

// Over serves batches, and lets next serve everything else.
func (b *Batches) Over(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b.writer == nil || r.Method != http.MethodPost || r.URL.Path != path {
			next.ServeHTTP(w, r)
			return
		}
		list, options, err := b.read(r)
		if list == nil && err == nil {
			next.ServeHTTP(w, r)
			return
		}
		metrics.InstrumentHandlerFunc(http.MethodPost, resource.Group, resource.Version, resource.Resource, "",
			"cluster",
			metrics.APIServerComponent, false, "", func(w http.ResponseWriter, r *http.Request) {
				if err != nil {
					b.answer.Error(w, r, err)
					return
				}
				b.serve(w, r, list, options)
			})(w, r)
	})
}

// serve stores the Events and answers which of them are refused.
func (b *Batches) serve(w http.ResponseWriter, r *http.Request, list *corev1.EventList, options *metav1.CreateOptions) {
	audit.LogRequestObject(r.Context(), list, version, resource, "", b.config.Serializer)
	answer := summary(b.writer.createAll(r.Context(), list.Items, options, manager(options, r.UserAgent())))
	b.answer.Object(w, r, http.StatusOK, answer)
}

// read returns the batch of the request; none without an error if it brings anything else.
func (b *Batches) read(r *http.Request) (*corev1.EventList, *metav1.CreateOptions, error) {
	serializer, err := negotiation.NegotiateInputSerializer(r, false, b.config.Serializer)
	if err != nil {
		return nil, nil, nil //nolint:nilerr // It is not for a batch to say what bodies there may be.
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, b.config.MaxBytes+1))
	switch {
	case err != nil:
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("reading the body: %v", err))
	case int64(len(body)) > b.config.MaxBytes:
		return nil, nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", b.config.MaxBytes))
	}
	options, optionsErr := createOptions(r)
	strict := optionsErr == nil && options.FieldValidation != metav1.FieldValidationIgnore
	from := serializer.Serializer
	if strict {
		from = serializer.StrictSerializer
	}
	hub := schema.GroupVersion{Group: version.Group, Version: runtime.APIVersionInternal}
	obj, kind, err := b.config.Serializer.DecoderToVersion(from, hub).Decode(body, nil, nil)
	if kind == nil || *kind != listKind {
		return nil, nil, nil
	}
	if optionsErr != nil {
		return nil, nil, optionsErr
	}
	if err := tolerate(r, obj, err, options); err != nil {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("reading the body as an EventList: %v", err))
	}
	list := obj.(*corev1.EventList)
	if len(list.Items) > maxEvents {
		return nil, nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"items: a batch has at most %d Events, not %d", maxEvents, len(list.Items)))
	}
	return list, options, nil
}

// tolerate makes a warning of what the client only wants to be warned of.
func tolerate(r *http.Request, obj runtime.Object, err error, options *metav1.CreateOptions) error {
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok || obj == nil || options.FieldValidation == metav1.FieldValidationStrict {
		return err
	}
	for _, e := range strict.Errors() {
		warning.AddWarning(r.Context(), "", e.Error())
	}
	return nil
}

// createOptions are those of the request, for each of its Events.
func createOptions(r *http.Request) (*metav1.CreateOptions, error) {
	options := &metav1.CreateOptions{}
	err := metainternalversionscheme.ParameterCodec.DecodeParameters(r.URL.Query(), metav1.SchemeGroupVersion, options)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if errs := metavalidation.ValidateCreateOptions(options); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "CreateOptions"}, "", errs)
	}
	options.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("CreateOptions"))
	return options, nil
}

// reason is why an Event is refused. It distinguishes a namespace that ends, where Events are always refused, from
// errors that an operator should look at.
func reason(err error, status *metav1.Status) metav1.CauseType {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return corev1.NamespaceTerminatingCause
	}
	return metav1.CauseType(status.Reason)
}

// summary names each Event that is refused, by its place in the batch; the others are stored.
func summary(refused []error) *metav1.Status {
	details := &metav1.StatusDetails{Kind: resource.Resource}
	for i, err := range refused {
		if err == nil {
			continue
		}
		status := negotiated.Status(err)
		details.Causes = append(details.Causes, metav1.StatusCause{
			Type: reason(err, status), Message: status.Message, Field: fmt.Sprintf("items[%d]", i),
		})
	}
	count(len(refused)-len(details.Causes), len(details.Causes))
	return &metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusOK, Details: details,
		Message: fmt.Sprintf("%d of %d Events are stored", len(refused)-len(details.Causes), len(refused))}
}
