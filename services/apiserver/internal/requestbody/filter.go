// Package requestbody looks at the bodies of requests before the library decodes them, and refuses those that would
// keep it busy for seconds or make it break off.
package requestbody

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/yaml"

	"keelson.dev/services/apiserver/internal/negotiated"
)

// Limits is how bodies are judged.
type Limits struct {
	// MaxBytes is how long a body may be.
	MaxBytes int64
	// Streams tells requests whose body is a stream, not an object.
	Streams request.LongRunningRequestCheck
	// Serializer encodes a refusal as the client asks for it.
	Serializer runtime.NegotiatedSerializer
}

// With lets requests through to the handler whose bodies can be decoded in time.
func (l Limits) With(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if check := l.checkFor(r); check != nil {
			body, err := Whole(r, l.MaxBytes)
			if err == nil {
				err = check(body)
			}
			if err != nil {
				negotiated.Writer{Serializer: l.Serializer, Version: metav1.Unversioned}.Error(w, r, err)
				return
			}
		}
		handler.ServeHTTP(w, r)
	})
}

// checkFor is what to check of a request's body; nil if it has none, or one that cannot nest.
func (l Limits) checkFor(r *http.Request) func([]byte) error {
	if r.Body == nil || r.Body == http.NoBody || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	info, found := request.RequestInfoFrom(r.Context())
	if !found || !info.IsResourceRequest || l.Streams(r, info) {
		return nil
	}
	header := r.Header.Get("Content-Type")
	kind, _, err := mime.ParseMediaType(header)
	switch {
	case header == "", kind == runtime.ContentTypeJSON,
		kind == string(types.JSONPatchType), kind == string(types.MergePatchType):
		return checkDepth
	case kind == string(types.StrategicMergePatchType):
		return func(body []byte) error {
			if err := checkDepth(body); err != nil {
				return err
			}
			return checkStrategic(body)
		}
	case kind == runtime.ContentTypeProtobuf:
		return checkProtobuf
	case kind == runtime.ContentTypeYAML, kind == string(types.ApplyYAMLPatchType), err != nil:
		return func(body []byte) error { return checkYAML(body, l.MaxBytes) }
	}
	return nil
}

// Length is how many bytes of body the request brings at most, of which it may bring maxBytes.
func Length(r *http.Request, maxBytes int64) int64 {
	switch {
	case r.Body == nil, r.Body == http.NoBody:
		return 0
	case r.ContentLength < 0:
		return maxBytes
	}
	return min(r.ContentLength, maxBytes)
}

// Whole waits for the whole body, which the request keeps, and returns it. The error of one that has more than maxBytes
// or breaks off is for the client. Whoever asks next, before it is read, waits for nothing.
func Whole(r *http.Request, maxBytes int64) ([]byte, error) {
	if of, is := r.Body.(*body); is && int64(len(of.content)) <= maxBytes {
		return of.content, nil
	}
	content, err := readAll(io.LimitReader(r.Body, maxBytes+1), min(r.ContentLength, maxBytes))
	switch {
	case err != nil:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("reading the body: %v", err))
	case int64(len(content)) > maxBytes:
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBytes))
	}
	r.Body = Of(content)
	return content, nil
}

// body is one that is there.
type body struct {
	*bytes.Reader
	content []byte
}

// Of is the body of a request that is there already.
func Of(content []byte) io.ReadCloser { return &body{bytes.NewReader(content), content} }

// Close implements io.Closer.
func (*body) Close() error { return nil }

// readAll is io.ReadAll of about so many bytes, for which it makes room at once.
func readAll(from io.Reader, length int64) ([]byte, error) {
	to := bytes.NewBuffer(make([]byte, 0, max(length, 0)+bytes.MinRead))
	_, err := to.ReadFrom(from)
	return to.Bytes(), err
}

// checkYAML judges YAML by the JSON that it stands for. What clients send to apply is mostly JSON already.
func checkYAML(body []byte, maxBytes int64) error {
	if json.Valid(body) {
		return checkDepth(body)
	}
	if err := checkAliases(body, maxBytes); err != nil {
		return err
	}
	converted, err := yaml.YAMLToJSON(body)
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("reading the body as YAML: %v", err))
	}
	return checkDepth(converted)
}
