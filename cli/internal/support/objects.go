package support

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"keelson.dev/cli/internal/mesh"
	"keelson.dev/cli/internal/redact"
)

// objectLimit is how many objects of a kind are collected.
const objectLimit = 5000

// pageSize is how many objects are asked for at once.
const pageSize = 500

// kinds are those whose objects are collected. A kind that is not listed is not read: not Secrets and ConfigMaps, not
// ControllerRevisions, which repeat Pod templates, and not custom resources, whose secret fields keel does not know.
var kinds = []schema.GroupVersionResource{
	{Version: "v1", Resource: "namespaces"},
	{Version: "v1", Resource: "nodes"},
	{Version: "v1", Resource: "pods"},
	{Version: "v1", Resource: "services"},
	{Version: "v1", Resource: "endpoints"},
	{Version: "v1", Resource: "events"},
	{Version: "v1", Resource: "limitranges"},
	{Version: "v1", Resource: "persistentvolumeclaims"},
	{Version: "v1", Resource: "persistentvolumes"},
	{Version: "v1", Resource: "replicationcontrollers"},
	{Version: "v1", Resource: "resourcequotas"},
	{Version: "v1", Resource: "serviceaccounts"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
	{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
	{Group: "apps", Version: "v1", Resource: "daemonsets"},
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apps", Version: "v1", Resource: "replicasets"},
	{Group: "apps", Version: "v1", Resource: "statefulsets"},
	{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
	{Group: "batch", Version: "v1", Resource: "cronjobs"},
	{Group: "batch", Version: "v1", Resource: "jobs"},
	{Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"},
	{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
	{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
	{Group: "networking.k8s.io", Version: "v1", Resource: "ipaddresses"},
	{Group: "networking.k8s.io", Version: "v1", Resource: "servicecidrs"},
	{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"},
	{Group: "storage.k8s.io", Version: "v1", Resource: "csidrivers"},
	{Group: "storage.k8s.io", Version: "v1", Resource: "csinodes"},
	{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"},
	{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments"},
}

// ofAPI are the files of the objects, one for each kind. If the apiserver does not answer the first question, it is
// asked no other.
func ofAPI(ctx context.Context, m *mesh.Mesh) []source {
	sources := make([]source, len(kinds))
	client := sync.OnceValues(func() (dynamic.Interface, error) { return connect(ctx, m) })
	for i, kind := range kinds {
		sources[i] = source{"api/" + kind.GroupResource().String() + ".json",
			func(ctx context.Context) ([]byte, string, error) {
				client, err := client()
				if err != nil {
					return nil, "", err
				}
				return objects(ctx, client, kind)
			}}
	}
	return sources
}

// connect returns a connection to an apiserver that answers within askLimit.
func connect(ctx context.Context, m *mesh.Mesh) (dynamic.Interface, error) {
	client, err := m.DynamicClient()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if _, err := client.Resource(kinds[0]).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return nil, fmt.Errorf("asking the apiserver: %w", err)
	}
	return client, nil
}

// objects lists the objects of a kind and renders them as a List in JSON, each on a line of its own.
func objects(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource) (content []byte,
	note string, err error) {
	var out bytes.Buffer
	out.WriteString(`{"apiVersion":"v1","kind":"List","items":[`)
	count, whole, err := eachObject(ctx, client, resource, func(count int, text []byte) bool {
		if count == objectLimit || out.Len()+len(text) > sizeLimit {
			return false
		}
		if count > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, "\n%s", text)
		return true
	})
	if count == 0 && err != nil {
		return nil, "", err
	}
	out.WriteString("\n]}\n")
	note = fmt.Sprint(count)
	if !whole {
		note = fmt.Sprintf("the first %d", count)
	}
	return out.Bytes(), note, err
}

// eachObject hands each object of a kind to take, redacted and in JSON, with how many it has taken before. It returns
// how many take has taken, and whether these are all: it ends when take refuses one.
func eachObject(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource,
	take func(count int, text []byte) bool) (count int, whole bool, err error) {
	for next := ""; ; {
		list, err := client.Resource(resource).List(ctx, metav1.ListOptions{Limit: pageSize, Continue: next})
		if err != nil {
			return count, false, fmt.Errorf("listing %s: %w", resource.Resource, err)
		}
		for _, item := range list.Items {
			redact.Object(item.Object)
			text, err := json.Marshal(item.Object)
			if err != nil {
				return count, false, fmt.Errorf("rendering %s %s: %w", resource.Resource, item.GetName(), err)
			}
			if !take(count, text) {
				return count, false, nil
			}
			count++
		}
		if next = list.GetContinue(); next == "" {
			return count, true, nil
		}
	}
}
