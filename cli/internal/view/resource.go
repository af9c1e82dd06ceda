package view

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"

	"keelson.dev/cli/internal/mesh"
	"keelson.dev/cli/internal/plan"
	introspectionv1 "keelson.dev/proto/keelson/introspection/v1"
)

const (
	// metadataKind is the kind under which podgc's collector owners describes objects of any kind, given the UID.
	metadataKind = "PartialObjectMetadata"
	// metadataOnly requests only the metadata of an object, if its server supports that.
	metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json"
)

// served finds the kind that a user means by a word among all kinds that the API serves. Only the metadata of its
// objects is read, and only the daemon that knows every owner is asked.
func served(ctx context.Context, api discovery.ServerResourcesInterfaceWithContext, word string) (Kind, error) {
	_, lists, err := api.ServerGroupsAndResourcesWithContext(ctx)
	if kind, found := among(lists, word); found {
		return kind, nil
	}
	if err != nil {
		return Kind{}, fmt.Errorf("looking for the kind %q: %w", word, err)
	}
	return Kind{}, fmt.Errorf("%q is no kind that the API serves; kubectl api-resources lists them", word)
}

// among finds the kind that a word means in the API's lists, the preferred ones first: by its plural, its name or
// a short name, optionally followed by the group, or by the version and the group.
func among(lists []*metav1.APIResourceList, word string) (Kind, bool) {
	name, where, qualified := strings.Cut(strings.ToLower(word), ".")
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || qualified && where != version.Group && where != version.Version+"."+version.Group {
			continue
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			words := append([]string{r.Name, r.SingularName, strings.ToLower(r.Kind)}, r.ShortNames...)
			if name != "" && slices.Contains(r.Verbs, "get") && !strings.Contains(r.Name, "/") &&
				slices.Contains(words, name) {
				return kindServed(version.WithResource(r.Name), r), true
			}
		}
	}
	return Kind{}, false
}

// kindServed returns the kind of a resource: one that controllers explain, or one of which only the metadata is
// known.
func kindServed(resource schema.GroupVersionResource, r *metav1.APIResource) Kind {
	for _, kind := range kinds {
		if kind.is(resource.Group, resource.Resource) {
			return kind
		}
	}
	return Kind{Name: r.Kind, group: resource.Group, plural: resource.Resource, cluster: !r.Namespaced,
		get: func(ctx context.Context, client kubernetes.Interface, namespace, name string) (metav1.Object, error) {
			return metadataOf(ctx, client, resource, namespace, name)
		}}
}

// metadataOf reads the metadata of an object; a cluster-scoped object has no namespace.
func metadataOf(ctx context.Context, client kubernetes.Interface, resource schema.GroupVersionResource, namespace,
	name string) (metav1.Object, error) {
	path := []string{"/apis", resource.Group, resource.Version}
	if resource.Group == "" {
		path = []string{"/api", resource.Version}
	}
	answer, err := client.Discovery().RESTClient().Get().AbsPath(path...).NamespaceIfScoped(namespace, namespace != "").
		Resource(resource.Resource).Name(name).SetHeader("Accept", metadataOnly).DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	object := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(answer, object); err != nil {
		return nil, fmt.Errorf("the answer cannot be read: %w", err)
	}
	if object.UID == "" {
		return nil, errors.New("the answer is no object that is stored: it has no UID")
	}
	return object, nil
}

// missing returns an error that says what is missing: an object or even its namespace.
func missing(ctx context.Context, client kubernetes.Interface, kind, namespace, name string) error {
	if namespace == "" {
		return fmt.Errorf("there is no %s %s", kind, name)
	}
	_, err := client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no %s %s in namespace %s: there is no such namespace", kind, name, namespace)
	}
	return fmt.Errorf("there is no %s %s in namespace %s", kind, name, namespace)
}

// askOwners asks what keeps an object of any kind, and what its deletion waits for.
func askOwners(ctx context.Context, m *mesh.Mesh, object metav1.Object) DaemonView {
	view := ask(ctx, m, plan.PodGC, &introspectionv1.ObjectReference{Kind: metadataKind, Name: string(object.GetUID())},
		"has not seen it yet, or does not watch objects of its kind")
	view.Daemon += ", on owners and finalizers"
	return view
}
