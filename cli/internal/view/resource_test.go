package view

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"keelson.dev/cli/internal/plan"
)

// lists are what an API serves, in the order of its discovery.
func lists() []*metav1.APIResourceList {
	get := metav1.Verbs{"list", "get"}
	return []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "pods", SingularName: "pod", Kind: "Pod", Namespaced: true, Verbs: get, ShortNames: []string{"po"}},
			{Name: "pods/log", Kind: "Log", Namespaced: true, Verbs: get},
			{Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: get, ShortNames: []string{"cm"}},
			{Name: "bindings", Kind: "Binding", Namespaced: true, Verbs: metav1.Verbs{"create"}},
		}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
			{Name: "deployments", Kind: "Deployment", Namespaced: true, Verbs: get}}},
		{GroupVersion: "serving.knative.dev/v1", APIResources: []metav1.APIResource{
			{Name: "services", Kind: "Service", Namespaced: true, Verbs: get, ShortNames: []string{"kservice"}}}},
		{GroupVersion: "example.com/v2", APIResources: []metav1.APIResource{
			{Name: "widgets", SingularName: "widget", Kind: "Widget", Verbs: get, ShortNames: []string{"wi", "wid"}}}},
		{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{
			{Name: "widgets", SingularName: "widget", Kind: "Widget", Verbs: get},
			{Name: "things", Kind: "Thing", Verbs: get}}},
		{GroupVersion: "a/b/c", APIResources: []metav1.APIResource{{Name: "odd", Kind: "Odd", Verbs: get}}},
	}
}

func TestAmong(t *testing.T) {
	for _, row := range []struct{ word, want string }{
		{"configmaps", "ConfigMap configmaps."}, {"ConfigMap", "ConfigMap configmaps."},
		{"cm", "ConfigMap configmaps."},
		{"configmaps.v1", ""}, {"configmaps.v1.", "ConfigMap configmaps."}, {"configmaps.", "ConfigMap configmaps."},
		{"configmap.apps", ""},
		{"widget", "Widget widgets.example.com of the cluster"}, {"WID", "Widget widgets.example.com of the cluster"},
		{"widgets.example.com", "Widget widgets.example.com of the cluster"},
		{"widgets.v1.example.com", "Widget widgets.example.com of the cluster"},
		{"things.v2.example.com", ""}, {"things.v1.example.com", "Thing things.example.com of the cluster"},
		{"widgets.com", ""}, {"widgets.v3.example.com", ""},
		{"services.serving.knative.dev", "Service services.serving.knative.dev"},
		{"kservice", "Service services.serving.knative.dev"},
		{"deployments.v1.apps", "Deployment deployments.apps asks workload-controllers"},
		{"pods/log", ""}, {"log", ""}, {"bindings", ""}, {"odd", ""}, {"", ""}, {"nosuch", ""},
	} {
		kind, found := among(lists(), row.word)
		got := ""
		if found {
			got = kind.Name + " " + kind.plural + "." + kind.group
			if kind.cluster {
				got += " of the cluster"
			}
			for _, daemon := range kind.daemons {
				got += " asks " + daemon
			}
		}
		if got != row.want {
			t.Errorf("%q: %q, want %q", row.word, got, row.want)
		}
	}
}

// partial is a discovery that answers with the lists and the error.
type partial struct {
	discovery.ServerResourcesInterfaceWithContext
	lists []*metav1.APIResourceList
	err   error
}

func (p partial) ServerGroupsAndResourcesWithContext(context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList,
	error) {
	return nil, p.lists, p.err
}

// A group that cannot be read hides no kind of the others.
func TestServed(t *testing.T) {
	broken := errors.New("metrics.k8s.io/v1beta1: no endpoints")
	for _, row := range []struct {
		api        partial
		word, want string
	}{
		{partial{lists: lists()}, "wi", ""},
		{partial{lists: lists(), err: broken}, "wi", ""},
		{partial{lists: lists()}, "nosuch",
			`"nosuch" is no kind that the API serves; kubectl api-resources lists them`},
		{partial{lists: lists(), err: broken}, "nosuch",
			`looking for the kind "nosuch": metrics.k8s.io/v1beta1: no endpoints`},
	} {
		kind, err := served(t.Context(), row.api, row.word)
		if got := fmt.Sprint(err); row.want != "" && got != row.want || row.want == "" && (err != nil ||
			kind.Name != "Widget") {
			t.Errorf("%s: %s, %v, want %q", row.word, kind.Name, err, row.want)
		}
	}
}

// Only metadata is asked for, so that what Secrets hold stays where it is.
func TestMetadataOf(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Header.Get("Accept"), "application/json;as=PartialObjectMetadata;") {
			t.Errorf("it accepts %q", r.Header.Get("Accept"))
		}
		asked = append(asked, r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		switch name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]; name {
		case "gone":
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		case "garbled":
			fmt.Fprint(w, "<html>")
		case "fleeting":
			fmt.Fprint(w, `{"metadata":{"name":"fleeting"}}`)
		default:
			fmt.Fprintf(w, `{"metadata":{"name":%q,"uid":"u"},"data":{"password":"x"}}`, name)
		}
	}))
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	core, custom := schema.GroupVersionResource{Version: "v1", Resource: "secrets"},
		schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "widgets"}
	for _, row := range []struct {
		resource              schema.GroupVersionResource
		namespace, name, path string
		fails                 string
	}{
		{core, "ns", "a", "/api/v1/namespaces/ns/secrets/a", ""},
		{custom, "", "a", "/apis/example.com/v2/widgets/a", ""},
		{custom, "ns", "gone", "/apis/example.com/v2/namespaces/ns/widgets/gone", "not found"},
		{core, "ns", "garbled", "/api/v1/namespaces/ns/secrets/garbled", "the answer cannot be read: "},
		{core, "ns", "fleeting", "/api/v1/namespaces/ns/secrets/fleeting", "it has no UID"},
		{core, "ns", "..", "", `invalid resource name ".."`},
		{core, "ns", "a/b", "", `invalid resource name "a/b"`},
	} {
		asked = nil
		object, err := metadataOf(t.Context(), client, row.resource, row.namespace, row.name)
		switch {
		case row.fails == "" && (err != nil || object.GetName() != row.name || object.GetUID() != "u"):
			t.Errorf("%s: %+v, %v", row.name, object, err)
		case row.fails == "not found" && !apierrors.IsNotFound(err):
			t.Errorf("%s: %v", row.name, err)
		case row.fails != "" && row.fails != "not found" && (err == nil || !strings.Contains(err.Error(), row.fails)):
			t.Errorf("%s: %v, want %q", row.name, err, row.fails)
		}
		if got := strings.Join(asked, " "); got != row.path {
			t.Errorf("%s: it asks for %q, want %q", row.name, got, row.path)
		}
	}
}

func TestMissing(t *testing.T) {
	client := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "there"}})
	for namespace, want := range map[string]string{
		"":      "there is no Secret x",
		"there": "there is no Secret x in namespace there",
		"gone":  "there is no Secret x in namespace gone: there is no such namespace",
	} {
		if got := missing(t.Context(), client, "Secret", namespace, "x").Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What is waited for is a claim that is there and has no volume, once.
func TestUnboundClaims(t *testing.T) {
	claim := func(name string, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
			Status: corev1.PersistentVolumeClaimStatus{Phase: phase}}
	}
	client := fake.NewClientset(claim("bound", corev1.ClaimBound), claim("pending", corev1.ClaimPending),
		claim("new", ""), claim("p-own", corev1.ClaimPending))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
	for _, name := range []string{"bound", "pending", "new", "gone", "pending"} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "own", VolumeSource: corev1.VolumeSource{
		Ephemeral: &corev1.EphemeralVolumeSource{}}}, corev1.Volume{Name: "empty"})
	if got, want := unboundClaims(t.Context(), client, pod), []string{"pending", "new",
		"p-own"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	pod.Status.Phase = corev1.PodFailed
	if got := unboundClaims(t.Context(), client, pod); got != nil {
		t.Errorf("of a Pod that has ended: %v", got)
	}
}

func TestFind(t *testing.T) {
	for word, want := range map[string]string{
		"deploy": "Deployment", "Deployment": "Deployment", "DEPLOYMENTS": "Deployment",
		"deployments.apps":  "Deployment",
		"deployments.batch": "", "deployment.apps": "", "pod": "Pod", "po": "Pod", "pods": "Pod", "svc": "Service",
		"endpointslice": "EndpointSlice", "endpointslices": "EndpointSlice", "sa": "ServiceAccount",
		"secret": "", "": "",
	} {
		if kind, found := find(word); kind.Name != want || found != (want != "") {
			t.Errorf("%q: %q, %t, want %q", word, kind.Name, found, want)
		}
	}
	if names := KindNames(); names[0] != "pod" || !slices.Contains(names, "serviceaccount") ||
		len(names) != len(kinds) {
		t.Errorf("the kinds are %v", names)
	}
}

func TestCheckKind(t *testing.T) {
	for word, right := range map[string]bool{"pod": true, "Widgets.example.com": true, "nosuch": true, "": false,
		"deploy/web": false, "a b": false, "../pods": false, "pods.": false} {
		err := CheckKind(word)
		if (err == nil) != right ||
			err != nil && !strings.HasPrefix(err.Error(), fmt.Sprintf("%q is no kind: ", word)) {
			t.Errorf("%q: %v", word, err)
		}
	}
}

// About its node too, a Node is asked for; a kind of another group that has its name is not.
func TestAsked(t *testing.T) {
	node, _ := find("node")
	if got, want := node.asked("n"), []string{plan.NodeagentProcess("n"), plan.WorkloadControllers,
		plan.PodGC}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := (Kind{Name: "Node", plural: "nodes", group: "example.com"}).asked("n"); len(got) > 0 {
		t.Errorf("of another group: %v", got)
	}
}
