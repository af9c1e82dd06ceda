package aggregation

import (
	"encoding/json"
	"fmt"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints"
)

// maxAnswer bounds the bytes that a server may say of the resources of a version.
const maxAnswer = 4 << 20

// whole is the status of an answer that counts, OK of HTTP.
const whole = 200

// decideAnswer reads what a server says of the resources of a version. body has at most one byte more than maxAnswer.
func decideAnswer(version schema.GroupVersion, code int, body []byte) ([]apidiscoveryv2.APIResourceDiscovery, error) {
	if code != whole {
		return nil, fmt.Errorf("the answer has the status %d, want 200", code)
	}
	if len(body) > maxAnswer {
		return nil, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("the answer is no APIResourceList: %w", err)
	}
	if list.GroupVersion != version.String() {
		return nil, fmt.Errorf("the answer is about the group version %q, want %q", list.GroupVersion, version)
	}
	for i := range list.APIResources {
		if r := &list.APIResources[i]; r.Name == "" || r.Kind == "" {
			return nil, fmt.Errorf("resources[%d] of the answer has no name or no kind", i)
		}
	}
	resources, err := endpoints.ConvertGroupVersionIntoToDiscovery(list.APIResources)
	if err != nil {
		return nil, fmt.Errorf("reading the resources of the answer: %w", err)
	}
	// Those without a group version of their own are of that of the list.
	for i := range resources {
		own(resources[i].ResponseKind, version)
		for j := range resources[i].Subresources {
			own(resources[i].Subresources[j].ResponseKind, version)
		}
	}
	return resources, nil
}

func own(kind *metav1.GroupVersionKind, version schema.GroupVersion) {
	if kind != nil && kind.Version == "" {
		kind.Group, kind.Version = version.Group, version.Version
	}
}
