package servertest_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregatorclient "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	apiregistrationclient "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"

	"keelson.dev/services/apiserver/internal/servertest"
)

func apiServices(t *testing.T, s *servertest.Server) apiregistrationclient.APIServiceInterface {
	t.Helper()
	client, err := aggregatorclient.NewForConfig(s.ConfigAs(servertest.Admin))
	if err != nil {
		t.Fatal(err)
	}
	return client.ApiregistrationV1().APIServices()
}

// Each version that is served has an APIService that says so, and a version that is defined has one while it is. What
// a user makes of that is undone, unless it is no longer labelled as kept.
func TestLocalAPIServices(t *testing.T) {
	s := servertest.Start(t)
	services := apiServices(t, s)
	groups, err := s.Client.Discovery().ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			if group.Name != apiregistration.GroupName && group.Name != "metrics.k8s.io" {
				want = append(want, version.Version+"."+group.Name+" onstart True Local")
			}
		}
	}
	awaitLocal(t, services, want...)

	config := s.ConfigAs(servertest.Admin)
	define(t, config, widgetDefinition(t))
	const name, kept = "v1.example.com", "v1.example.com true True Local"
	awaitLocal(t, services, append(want, kept)...)
	for _, patch := range []string{
		`{"spec":{"versionPriority":7}}`,
		`{"spec":{"service":{"namespace":"default","name":"kubernetes"},"insecureSkipTLSVerify":true}}`,
	} {
		_, err := services.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		servertest.Eventually(t, "the APIService as it was", func(ctx context.Context) string {
			got, err := services.Get(ctx, name, metav1.GetOptions{})
			if err != nil || got.Spec.VersionPriority != 100 || got.Spec.GroupPriorityMinimum != 1000 ||
				got.Spec.Service != nil || got.Spec.InsecureSkipTLSVerify {
				return fmt.Sprintf("%v, %+v", err, got)
			}
			return ""
		})
	}
	if err := services.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitLocal(t, services, append(want, kept)...)
	if err := definitions(t, config).Delete(t.Context(), "widgets.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitLocal(t, services, want...)

	define(t, config, widgetDefinition(t))
	awaitLocal(t, services, append(want, kept)...)
	const given = `{"metadata":{"labels":{"kube-aggregator.kubernetes.io/automanaged":null}},` +
		`"spec":{"service":{"namespace":"default","name":"none"}}}`
	if _, err := services.Patch(t.Context(), name, types.MergePatchType, []byte(given),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := definitions(t, config).Delete(t.Context(), "widgets.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitLocal(t, services, append(want, "v1.example.com  False ServiceNotFound")...)
}

// awaitLocal waits until these are the APIServices, each NAME LABEL AVAILABLE REASON.
func awaitLocal(t *testing.T, services apiregistrationclient.APIServiceInterface, want ...string) {
	t.Helper()
	want = slices.Sorted(slices.Values(want))
	var last []string
	servertest.Eventually(t, "the APIServices", func(ctx context.Context) string {
		list, err := services.List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Sprintf("%v, after\n%s", err, strings.Join(last, "\n"))
		}
		got := map[string]bool{}
		for i := range list.Items {
			a := &list.Items[i]
			line := a.Name + " " + a.Labels["kube-aggregator.kubernetes.io/automanaged"]
			for _, c := range a.Status.Conditions {
				line += " " + string(c.Status) + " " + c.Reason
			}
			got[line] = true
		}
		if last = slices.Sorted(maps.Keys(got)); !slices.Equal(last, want) {
			return fmt.Sprintf("have\n%s\nwant\n%s", strings.Join(last, "\n"), strings.Join(want, "\n"))
		}
		return ""
	})
}

// An apiserver that begins on a store of before takes away what was kept for versions that are no longer there, and
// nothing else.
func TestLocalAPIServicesOfBefore(t *testing.T) {
	store := servertest.SharedStore(t)
	services := apiServices(t, servertest.Start(t, store))
	for name, label := range map[string]string{"v7.apps": "onstart", "v1.mine.example.com": ""} {
		version, group, _ := strings.Cut(name, ".")
		a := &apiregistration.APIService{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{"kube-aggregator.kubernetes.io/automanaged": label}},
			Spec: apiregistration.APIServiceSpec{Group: group, Version: version, GroupPriorityMinimum: 10,
				VersionPriority: 10}}
		if _, err := services.Create(t.Context(), a, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	servertest.Start(t, store, settings("batch/v1=false"))
	for _, name := range []string{"v7.apps", "v1.batch"} {
		servertest.Eventually(t, name+" to be gone", func(ctx context.Context) string {
			if _, err := services.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Sprint("it is there: ", err)
			}
			return ""
		})
	}
	if _, err := services.Get(t.Context(), "v1.mine.example.com", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// A defined kind does not hide a built-in one of its name: clients take the first group that has it, and those of the
// apiserver itself come first.
func TestBuiltInGroupsComeFirst(t *testing.T) {
	s := servertest.Start(t)
	definition := widgetDefinition(t)
	definition.Name, definition.Spec.Group = "widgets.acme.example", "acme.example"
	define(t, s.ConfigAs(servertest.Admin), definition)
	servertest.Eventually(t, "discovery in order", func(ctx context.Context) string {
		list, err := discovered(ctx, s)
		if err != nil {
			return err.Error()
		}
		var names []string
		for _, group := range list.Items {
			names = append(names, group.Name)
		}
		built := []string{"apps", "events.k8s.io", "autoscaling", "batch", "policy"}
		order := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			return name != "acme.example" && !slices.Contains(built, name)
		})
		if want := append(built, "acme.example"); !slices.Equal(order, want) {
			return fmt.Sprintf("%v of %v, want %v", order, names, want)
		}
		return ""
	})
}
