// Package answerform lets an authorizer know in which form a request wants its answer. Attributes do not tell, and who
// may know that a Secret exists need not be one who may read it.
package answerform

import (
	"context"
	"mime"
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/endpoints/request"
)

type key struct{}

// With marks requests about Secrets that prefer their metadata, and sees to it that these get nothing else: what they
// would accept besides is struck out.
func With(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if info, ok := request.RequestInfoFrom(r.Context()); ok && info.IsResourceRequest && info.APIGroup == "" &&
			info.Resource == "secrets" {
			if accept := metadataOf(r.Header.Values("Accept")); accept != "" {
				r = r.WithContext(WithMetadata(r.Context()))
				r.Header = r.Header.Clone()
				r.Header.Set("Accept", accept)
			}
		}
		h.ServeHTTP(w, r)
	})
}

// WithMetadata returns the context of a request that is answered with the metadata of objects only.
func WithMetadata(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// IsMetadata says whether the request of a context is answered with the metadata of objects only.
func IsMetadata(ctx context.Context) bool { return ctx.Value(key{}) != nil }

// metadataOf returns what a request accepts of the metadata of objects; empty if that is not what it accepts first. Who
// weighs one form against the other is not taken to prefer it.
func metadataOf(accept []string) string {
	var kept []string
	for at, clause := range strings.Split(strings.Join(accept, ","), ",") {
		_, parameters, err := mime.ParseMediaType(clause)
		_, weighed := parameters["q"]
		as := parameters["as"]
		is := parameters["g"] == "meta.k8s.io" && (as == "PartialObjectMetadata" || as == "PartialObjectMetadataList")
		if err != nil || weighed || at == 0 && !is {
			return ""
		}
		if is {
			kept = append(kept, clause)
		}
	}
	return strings.Join(kept, ",")
}
