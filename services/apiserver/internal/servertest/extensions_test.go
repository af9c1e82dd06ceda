package servertest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"keelson.dev/services/apiserver/internal/servertest"
)

// A kind that a user defines is served as the built-in ones are, and goes with its objects. POD-015
func TestCustomResources(t *testing.T) {
	s := servertest.Start(t)
	config := s.ConfigAs(servertest.Admin)
	define(t, config, widgetDefinition(t))
	namespace := s.Namespace(t, "shop")
	of := objects(t, config).Resource(widgets).Namespace(namespace)

	seen, err := of.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		w := widget(fmt.Sprint("w", i), "color", "red")
		if _, err := of.Create(t.Context(), w, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		if event := <-seen.ResultChan(); event.Type != watch.Added {
			t.Errorf("event %d: %+v", i, event)
		}
	}
	seen.Stop()
	first, err := of.List(t.Context(), metav1.ListOptions{Limit: 2})
	if err != nil || len(first.Items) != 2 || first.GetContinue() == "" {
		t.Fatalf("the first two: %v, %v", first, err)
	}
	rest, err := of.List(t.Context(), metav1.ListOptions{Limit: 2, Continue: first.GetContinue()})
	if err != nil || len(rest.Items) != 1 || rest.GetContinue() != "" {
		t.Errorf("the rest: %v, %v", rest, err)
	}
	t.Run("Access", func(t *testing.T) { testAccessToWidgets(t, s, namespace) })
	t.Run("Discovery", func(t *testing.T) { wantDiscovered(t, s, true) })
	t.Run("Deletion", func(t *testing.T) { testDefinitionGoes(t, s, namespace) })
	t.Run("Again", func(t *testing.T) {
		define(t, config, widgetDefinition(t))
		left, err := of.List(t.Context(), metav1.ListOptions{})
		if err != nil || len(left.Items) != 0 {
			t.Errorf("of the first definition are left: %v, %v", left, err)
		}
	})
}

// Who has the role edit may do with a kind what a role says that aggregates to it.
func testAccessToWidgets(t *testing.T, s *servertest.Server, namespace string) {
	ann := objects(t, s.ConfigAs("ann")).Resource(widgets).Namespace(namespace)
	if _, err := ann.List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Fatalf("somebody without a role: %v", err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "widgets",
		Labels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-edit": "true"}},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"example.com"}, Resources: []string{"widgets"},
			Verbs: []string{"list"}}}}
	if _, err := s.Client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "ann"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "ann"}}}
	if _, err := s.Client.RbacV1().RoleBindings(namespace).Create(t.Context(), binding,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "ann may list widgets", func(ctx context.Context) string {
		if _, err := ann.List(ctx, metav1.ListOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
	if err := ann.Delete(t.Context(), "w0", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a verb that the role does not name: %v", err)
	}
}

// wantDiscovered: all forms of discovery and of OpenAPI tell of the kind, or none does.
func wantDiscovered(t *testing.T, s *servertest.Server, there bool) {
	t.Helper()
	for path, want := range map[string][]string{
		"/apis":             {`"groupVersion":"example.com/v1"`},
		"/apis/example.com": {`"groupVersion":"example.com/v1"`},
		"/apis/example.com/v1": {`"name":"widgets"`, `"shortNames":["wd"]`, `"widgets/status"`,
			`"widgets/scale"`},
		"/openapi/v3": {`"apis/example.com/v1"`},
		"/openapi/v3/apis/example.com/v1": {`"com.example.v1.Widget"`, "How large the widget is.",
			"/widgets/{name}/scale"},
		"/openapi/v2":                  {`"com.example.v1.Widget"`, "How large the widget is."},
		"/apis/example.com/v1/widgets": {`"kind":"WidgetList"`},
	} {
		servertest.Eventually(t, path, func(ctx context.Context) string {
			body, err := s.Client.Discovery().RESTClient().Get().AbsPath(path).DoRaw(ctx)
			if err != nil && !apierrors.IsNotFound(err) {
				return err.Error()
			}
			for _, part := range want {
				if strings.Contains(string(body), part) != there {
					return fmt.Sprintf("the answer with %s is %.300s", part, body)
				}
			}
			return ""
		})
	}
	servertest.Eventually(t, "the one document of discovery", func(ctx context.Context) string {
		list, err := discovered(ctx, s)
		if err != nil {
			return err.Error()
		}
		at := slices.IndexFunc(list.Items, func(g apidiscoveryv2.APIGroupDiscovery) bool {
			return g.Name == "example.com"
		})
		if at < 0 || !there {
			if (at >= 0) != there {
				return fmt.Sprintf("the group is at %d of %d", at, len(list.Items))
			}
			return ""
		}
		if of := list.Items[at].Versions[0].Resources[0]; !slices.Equal(of.Categories, []string{"all", "gear"}) ||
			len(of.Subresources) != 2 {
			return fmt.Sprintf("%+v", of)
		}
		return ""
	})
	if _, err := s.Client.Discovery().RESTClient().Get().AbsPath("/openapi/v3/apis/example.com/v7").DoRaw(
		t.Context()); !apierrors.IsNotFound(err) {
		t.Errorf("the document of a version that there is not: %v", err)
	}
}

// discovered is the one document of discovery, of all groups.
func discovered(ctx context.Context, s *servertest.Server) (groups apidiscoveryv2.APIGroupDiscoveryList, err error) {
	body, err := s.Client.Discovery().RESTClient().Get().AbsPath("/apis").SetHeader("Accept",
		"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList").DoRaw(ctx)
	if err != nil {
		return groups, err
	}
	return groups, json.Unmarshal(body, &groups)
}

// testDefinitionGoes: a definition takes its objects with it, waits for those with finalizers, and lets none be made
// meanwhile.
func testDefinitionGoes(t *testing.T, s *servertest.Server, namespace string) {
	config := s.ConfigAs(servertest.Admin)
	of := objects(t, config).Resource(widgets).Namespace(namespace)
	held := widget("held")
	held.SetFinalizers([]string{"example.com/held"})
	if _, err := of.Create(t.Context(), held, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	client := definitions(t, config)
	if err := client.Delete(t.Context(), "widgets.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "all but the one that is held go", func(ctx context.Context) string {
		list, err := of.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		if len(list.Items) != 1 || list.Items[0].GetDeletionTimestamp() == nil {
			return fmt.Sprint(len(list.Items), " are there")
		}
		return lacks(ctx, client, "widgets.example.com", apiextensionsv1.Terminating)
	})
	if _, err := of.Create(t.Context(), widget("late"), metav1.CreateOptions{}); !refusedByTermination(err) {
		t.Errorf("making one while the definition goes: %v", err)
	}
	if _, err := of.Patch(t.Context(), "held", "application/merge-patch+json",
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "the definition goes", func(ctx context.Context) string {
		if _, err := client.Get(ctx, "widgets.example.com", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprint("it is there: ", err)
		}
		return ""
	})
	wantDiscovered(t, s, false)
	if _, err := of.List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a kind that is gone: %v", err)
	}
}

// Of two definitions with one name for their kinds the first is served; the second when the first is gone.
func TestCustomResourceNamesConflict(t *testing.T) {
	s := servertest.Start(t)
	client := definitions(t, s.ConfigAs(servertest.Admin))
	define(t, s.ConfigAs(servertest.Admin), widgetDefinition(t))
	second := widgetDefinition(t)
	second.Name, second.Spec.Names.Plural, second.Spec.Names.Singular = "gadgets.example.com", "gadgets", "gadget"
	second.Spec.Names.ShortNames = nil
	if _, err := client.Create(t.Context(), second, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "the conflict is told", func(ctx context.Context) string {
		d, err := client.Get(ctx, second.Name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		for _, c := range d.Status.Conditions {
			if c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionFalse &&
				strings.Contains(c.Message, "is already in use") {
				return ""
			}
		}
		return fmt.Sprint(d.Status.Conditions)
	})
	if why := lacks(t.Context(), client, second.Name, apiextensionsv1.Established); why == "" {
		t.Error("both are served")
	}
	if err := client.Delete(t.Context(), "widgets.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "the second is served", func(ctx context.Context) string {
		return lacks(ctx, client, second.Name, apiextensionsv1.Established)
	})
}

// A definition that is deleted while its objects are written leaves none behind, and each writer gets an answer that
// says what happened.
func TestCustomResourcesAreWrittenWhileTheirKindGoes(t *testing.T) {
	s := servertest.Start(t)
	config := s.ConfigAs(servertest.Admin)
	define(t, config, widgetDefinition(t))
	of := objects(t, config).Resource(widgets).Namespace(metav1.NamespaceDefault)
	var writers sync.WaitGroup
	begun := make(chan struct{}, 4)
	for w := range cap(begun) {
		writers.Go(func() {
			for i := 0; ; i++ {
				_, err := of.Create(t.Context(), widget(fmt.Sprintf("w-%d-%d", w, i)), metav1.CreateOptions{})
				switch {
				case err == nil && i == 5:
					begun <- struct{}{}
				case err == nil:
				case apierrors.IsNotFound(err), refusedByTermination(err):
					if i <= 5 {
						begun <- struct{}{}
					}
					return
				default:
					t.Errorf("writer %d: %v", w, err)
					begun <- struct{}{}
					return
				}
			}
		})
	}
	for range cap(begun) {
		<-begun
	}
	client := definitions(t, config)
	if err := client.Delete(t.Context(), "widgets.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	writers.Wait()
	servertest.Eventually(t, "the definition goes", func(ctx context.Context) string {
		if _, err := client.Get(ctx, "widgets.example.com", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprint("it is there: ", err)
		}
		return ""
	})
	define(t, config, widgetDefinition(t))
	if left, err := of.List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) != 0 {
		t.Errorf("of the first definition are left: %v, %v", left, err)
	}
}

// refusedByTermination is whether an error says that nothing is made of a kind that goes.
func refusedByTermination(err error) bool {
	return apierrors.IsForbidden(err) &&
		strings.Contains(err.Error(), "create not allowed while custom resource definition is terminating")
}

// Quotas count what a definition has made servable. Of objects that a quota has no room for none is made.
func TestQuotaOfCustomResources(t *testing.T) {
	s := servertest.Start(t)
	config := s.ConfigAs(servertest.Admin)
	define(t, config, widgetDefinition(t))
	namespace := s.Namespace(t, "bounded")
	const what = corev1.ResourceName("count/widgets.example.com")
	name := bounded(t, []*servertest.Server{s}, namespace, what, "2")
	of := objects(t, config).Resource(widgets).Namespace(namespace)
	for i, want := range []bool{true, true, false} {
		_, err := of.Create(t.Context(), widget(fmt.Sprint("w", i)), metav1.CreateOptions{})
		refused := apierrors.IsForbidden(err) && strings.Contains(err.Error(), string(what))
		if want && err != nil || !want && !refused {
			t.Errorf("widget %d: %v", i, err)
		}
	}
	q, err := s.Client.CoreV1().ResourceQuotas(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if used := q.Status.Used[what]; err != nil || used.Value() != 2 {
		t.Errorf("%s are charged, %v", used.String(), err)
	}
}
