package resources

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

type server struct {
	lists []*metav1.APIResourceList
	err   error
}

func (s server) ServerPreferredResources() ([]*metav1.APIResourceList, error) { return s.lists, s.err }

func TestDiscover(t *testing.T) {
	broken := schema.GroupVersion{Group: "broken.example.com", Version: "v1"}
	set, err := Discover(server{
		lists: []*metav1.APIResourceList{
			{GroupVersion: "v1", APIResources: []metav1.APIResource{
				{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: []string{"list", "watch", "delete"}},
				{Name: "pods/status", Kind: "Pod", Namespaced: true, Verbs: []string{"patch"}},
			}},
			{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Kind: "Deployment",
				Namespaced: true}}},
		},
		err: &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{broken: errors.New("down")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(set.List) != 2 || set.List[0].Resource != "pods" || set.List[1].Resource != "deployments" {
		t.Errorf("list: %v", set.List)
	}
	if len(set.Failed) != 1 || set.Failed[0] != broken {
		t.Errorf("failed: %v", set.Failed)
	}
	pods, ok := set.OfKind(schema.GroupKind{Kind: "Pod"})
	if !ok || !pods.Can("list", "delete") || pods.Can("list", "create") {
		t.Errorf("pods: %v %v", pods, ok)
	}
	if _, ok := set.OfKind(schema.GroupKind{Group: "apps", Kind: "Pod"}); ok {
		t.Error("a kind was found in another group")
	}
	if _, err := Discover(server{err: errors.New("refused")}); err == nil {
		t.Error("a server that does not answer is no empty server")
	}
}
