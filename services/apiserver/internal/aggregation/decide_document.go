package aggregation

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/url"
	"slices"
	"strings"
	"time"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/aggregator"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	openapiproto "k8s.io/kube-openapi/pkg/util/proto"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const (
	// freshFor is how long what a server said of its documents is not asked for again; after a failure it is failedFor.
	freshFor  = 10 * time.Second
	failedFor = 30 * time.Second
	// maxV2 bounds the bytes of a document of OpenAPI v2. Reading it takes more than a hundred times its size, and up
	// to fifty times stays where it says nothing but that fields exist. A v3 document is handed on as it is.
	maxV2 = 1 << 20
	// maxHash bounds what a server may call the hash of a document.
	maxHash = 256
	// These are Not Found, Not Acceptable and Not Modified of HTTP.
	missing       = 404
	notAcceptable = 406
	notModified   = 304
	// kindsKey is the extension that says of which kinds a definition is.
	kindsKey = "x-kubernetes-group-version-kind"
)

// decideDue reports whether a server that was last asked then is asked again.
func decideDue(now, asked time.Time, failed bool) bool {
	if failed {
		return now.Sub(asked) >= failedFor
	}
	return now.Sub(asked) >= freshFor
}

// pathV3 is where the document of a version is.
func pathV3(version schema.GroupVersion) string { return rootV3 + "/apis/" + version.String() }

// decideURL reads where a server's index says that the document of the version is; empty if nowhere. Of what the server
// says only the hash counts: the place is ours.
func decideURL(version schema.GroupVersion, code int, body []byte) (string, error) {
	if code == missing {
		return "", nil
	}
	if err := decideWhole(code, body, maxAnswer); err != nil {
		return "", err
	}
	var index handler3.OpenAPIV3Discovery
	if err := json.Unmarshal(body, &index); err != nil {
		return "", fmt.Errorf("the answer is no index of documents: %w", err)
	}
	entry, ok := index.Paths["apis/"+version.String()]
	if !ok {
		return "", nil
	}
	at, err := url.Parse(entry.ServerRelativeURL)
	if err != nil {
		return "", fmt.Errorf("reading the place of the document: %w", err)
	}
	hash := at.Query().Get("hash")
	if len(hash) > maxHash {
		return "", fmt.Errorf("the hash of the document has %d bytes, want %d at most", len(hash), maxHash)
	}
	ours := url.URL{Path: pathV3(version)}
	if hash != "" {
		ours.RawQuery = url.Values{"hash": {hash}}.Encode()
	}
	return ours.String(), nil
}

// decideWhole refuses what is not all of an answer, or has more bytes than the limit, which is maxAnswer at most: body
// has no more than one byte more than that.
func decideWhole(code int, body []byte, limit int) error {
	if code != whole {
		return fmt.Errorf("the answer has the status %d, want 200", code)
	}
	if len(body) > limit {
		return fmt.Errorf("the answer has more than %d bytes", limit)
	}
	return nil
}

// decideHandedBack refuses an answer that is not for the client: it gets a document, or that there is none, none in
// this form, or, if it has said which it knows, no other one.
func decideHandedBack(code int, conditional bool, contentType string, body []byte) error {
	if code == missing || code == notAcceptable || code == notModified && conditional {
		return nil
	}
	return decideV3(code, contentType, body)
}

// decideV3 refuses what is no document of OpenAPI v3 in the form that the server says it has.
func decideV3(code int, contentType string, body []byte) error {
	if err := decideWhole(code, body, maxAnswer); err != nil {
		return err
	}
	form, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return fmt.Errorf("reading the type of the answer: %w", err)
	}
	var version string
	switch form {
	case "application/json":
		var document struct {
			OpenAPI string `json:"openapi"`
		}
		err = json.Unmarshal(body, &document)
		version = document.OpenAPI
	case "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
		"application/com.github.proto-openapi.spec.v3@v1.0+protobuf":
		var document openapi_v3.Document
		err = proto.Unmarshal(body, &document)
		version = document.GetOpenapi()
	default:
		return fmt.Errorf("the answer is of the type %q, which is no form of OpenAPI", form)
	}
	if err != nil {
		return fmt.Errorf("the answer is no OpenAPI document: %w", err)
	}
	if !strings.HasPrefix(version, "3.") {
		return fmt.Errorf("the answer is of the version %q of OpenAPI, want 3", version)
	}
	return nil
}

// decideV2 reads what a server's document of OpenAPI v2 says of the version; nil if the server has none. What comes of
// it says nothing of other versions, and clients can read it: they get that of all servers in one.
func decideV2(version schema.GroupVersion, code int, body []byte) (*spec.Swagger, error) {
	if code == missing {
		return nil, nil
	}
	if err := decideWhole(code, body, maxV2); err != nil {
		return nil, err
	}
	document := &spec.Swagger{}
	if err := document.UnmarshalJSON(body); err != nil {
		return nil, fmt.Errorf("the answer is no OpenAPI document: %w", err)
	}
	if document.Swagger != "2.0" {
		return nil, fmt.Errorf("the answer is of the version %q of OpenAPI, want 2.0", document.Swagger)
	}
	prefix := "/apis/" + version.String() + "/"
	document = aggregator.FilterSpecByPathsWithoutSideEffects(document, []string{prefix})
	if document.Paths == nil || len(document.Paths.Paths) == 0 {
		return nil, fmt.Errorf("the document has no path below %s", prefix)
	}
	for name, definition := range document.Definitions {
		keepKinds(&definition, version)
		document.Definitions[name] = definition
	}
	document.Definitions = handler.PruneDefaults(document.Definitions)
	return document, readable(document)
}

// keepKinds takes from a definition that it is of kinds of other versions.
func keepKinds(definition *spec.Schema, version schema.GroupVersion) {
	said, ok := definition.Extensions[kindsKey]
	if !ok {
		return
	}
	all, _ := said.([]any)
	own := slices.DeleteFunc(all, func(one any) bool {
		kind, ok := one.(map[string]any)
		return !ok || kind["group"] != version.Group || kind["version"] != version.Version
	})
	if len(own) == 0 {
		delete(definition.Extensions, kindsKey)
		return
	}
	definition.Extensions[kindsKey] = own
}

// readable refuses a document that the clients' library does not read.
func readable(document *spec.Swagger) error {
	body, err := document.MarshalJSON()
	if err != nil {
		return fmt.Errorf("writing the document: %w", err)
	}
	parsed, err := openapi_v2.ParseDocument(body)
	if err != nil {
		return fmt.Errorf("the document cannot be written as protobuf: %w", err)
	}
	if _, err := openapiproto.NewOpenAPIData(parsed); err != nil {
		return fmt.Errorf("clients cannot read the document: %w", err)
	}
	return nil
}
