// Package answerform lets an authorizer know what Attributes do not tell: in which form a request wants its answer, and
// what of objects a patch changes. Who may know that a Secret exists need not be one who may read it, and who lets
// objects go need not be one who may change what they say.
//
//	answerform.go      marks requests
//	decide_release.go  what a patch changes (pure)
package answerform

import (
	"bytes"
	"context"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Form is what an authorizer may know of a request.
type Form struct {
	// Metadata says that the request is answered with the metadata of objects only.
	Metadata bool
	// Release says that the request is a patch of nothing but an object's finalizers and owners.
	Release bool
}

type key struct{}

// metadataKind is the kind of an answer that holds the metadata of an object.
const metadataKind = "PartialObjectMetadata"

// With marks requests that prefer the metadata of objects, and sees to it that these get nothing else: what they would
// accept besides is struck out.
func With(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if info, ok := request.RequestInfoFrom(r.Context()); ok && info.IsResourceRequest {
			if accept := metadataOf(r.Header.Values("Accept")); accept != "" {
				r = r.WithContext(WithForm(r.Context(), Form{Metadata: true, Release: releases(r)}))
				r.Header = r.Header.Clone()
				r.Header.Set("Accept", accept)
			}
		}
		h.ServeHTTP(w, r)
	})
}

// WithForm returns the context of a request of that form.
func WithForm(ctx context.Context, form Form) context.Context {
	return context.WithValue(ctx, key{}, form)
}

// Of returns the form of a context's request.
func Of(ctx context.Context) Form {
	form, _ := ctx.Value(key{}).(Form)
	return form
}

// maxRelease is more than finalizers and owners take of a patch.
const maxRelease = 64 << 10

// releases reports whether the request is a patch that only lets an object go. The body can be read again.
func releases(r *http.Request) bool {
	if r.Method != http.MethodPatch || r.Body == nil || r.Header.Get("Content-Type") != string(types.MergePatchType) {
		return false
	}
	read, err := io.ReadAll(io.LimitReader(r.Body, maxRelease+1))
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(read), r.Body), r.Body}
	return err == nil && len(read) <= maxRelease && isRelease(read)
}

// metadataOf returns what a request accepts of the metadata of objects; empty if that is not what it accepts first. Who
// weighs one form against the other is not taken to prefer it. Hardly any request names the form, and only those that
// do are read closely.
func metadataOf(accept []string) string {
	if !slices.ContainsFunc(accept, func(line string) bool { return strings.Contains(line, metadataKind) }) {
		return ""
	}
	var kept []string
	for at, clause := range strings.Split(strings.Join(accept, ","), ",") {
		_, parameters, err := mime.ParseMediaType(clause)
		_, weighed := parameters["q"]
		as := parameters["as"]
		is := parameters["g"] == "meta.k8s.io" && (as == metadataKind || as == metadataKind+"List")
		if err != nil || weighed || at == 0 && !is {
			return ""
		}
		if is {
			kept = append(kept, clause)
		}
	}
	return strings.Join(kept, ",")
}
