package clusterdns

import (
	"encoding/json"
	"net/netip"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"
)

func input(nodes int) Input {
	return Input{Address: netip.MustParseAddr("10.96.0.10"), Domain: "kube.local", Nodes: nodes,
		Resolver: "nameserver 192.0.2.1\n"}
}

// render returns the objects by kind; a field that the API does not know fails the test.
func render(t *testing.T, in Input) map[string]any {
	t.Helper()
	all, err := objects(in)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]any{
		"ServiceAccount": &corev1.ServiceAccount{}, "ClusterRole": &rbacv1.ClusterRole{},
		"ClusterRoleBinding": &rbacv1.ClusterRoleBinding{}, "ConfigMap": &corev1.ConfigMap{},
		"Service": &corev1.Service{}, "PodDisruptionBudget": &policyv1.PodDisruptionBudget{},
		"Deployment": &appsv1.Deployment{},
	}
	if len(all) != len(known) {
		t.Fatalf("%d objects, want %d", len(all), len(known))
	}
	for _, object := range all {
		text, err := json.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(text, known[object.GetKind()]); err != nil {
			t.Errorf("%s: %v", object.GetKind(), err)
		}
	}
	return known
}

// On one node one answers, on more two do, of which no drain and no roll takes both.
func TestHowManyAnswer(t *testing.T) {
	for nodes, want := range map[int]int32{1: 1, 2: 2, 3: 2} {
		all := render(t, input(nodes))
		d := all["Deployment"].(*appsv1.Deployment)
		if *d.Spec.Replicas != want {
			t.Errorf("%d nodes: %d replicas", nodes, *d.Spec.Replicas)
		}
		rolling := d.Spec.Strategy.RollingUpdate
		if rolling.MaxUnavailable.IntValue() != 0 || rolling.MaxSurge.IntValue() != 1 {
			t.Errorf("a roll takes %v away and adds %v", rolling.MaxUnavailable, rolling.MaxSurge)
		}
		budget := all["PodDisruptionBudget"].(*policyv1.PodDisruptionBudget)
		if budget.Spec.MaxUnavailable.IntValue() != 1 || !reflect.DeepEqual(budget.Spec.Selector, d.Spec.Selector) {
			t.Errorf("the budget is %+v", budget.Spec)
		}
	}
}

func TestItRunsWithLimitsAndWithoutRights(t *testing.T) {
	all := render(t, input(1))
	pod := all["Deployment"].(*appsv1.Deployment).Spec.Template.Spec
	c := pod.Containers[0]
	if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() ||
		c.Resources.Requests.Memory().IsZero() {
		t.Errorf("resources %+v", c.Resources)
	}
	if !*pod.SecurityContext.RunAsNonRoot || !*c.SecurityContext.ReadOnlyRootFilesystem ||
		*c.SecurityContext.AllowPrivilegeEscalation || c.SecurityContext.Capabilities.Drop[0] != "ALL" {
		t.Errorf("%+v, %+v", pod.SecurityContext, c.SecurityContext)
	}
	if pod.PriorityClassName != "system-cluster-critical" || pod.DNSPolicy != corev1.DNSDefault {
		t.Errorf("priority %s, DNS %s", pod.PriorityClassName, pod.DNSPolicy)
	}
	for _, rule := range all["ClusterRole"].(*rbacv1.ClusterRole).Rules {
		if !reflect.DeepEqual(rule.Verbs, []string{"list", "watch"}) {
			t.Errorf("it may %v %v", rule.Verbs, rule.Resources)
		}
	}
	service := all["Service"].(*corev1.Service)
	if service.Spec.ClusterIP != "10.96.0.10" || service.Name != "kube-dns" || len(service.Spec.Ports) != 3 {
		t.Errorf("the Service is %+v", service.Spec)
	}
}

// CoreDNS forwards queries to the servers that the nodes use, unless that would be CoreDNS itself.
func TestCorefile(t *testing.T) {
	for name, row := range map[string]struct {
		resolver, upstream string
		forwards           bool
	}{
		"a server":                      {"search a\nnameserver 192.0.2.1\n", "", true},
		"a stub, and what it asks":      {"nameserver 127.0.0.53\n", "nameserver 2001:db8::1", true},
		"a stub alone":                  {"nameserver 127.0.0.53\nnameserver ::1\n", "", false},
		"nothing":                       {"", "", false},
		"words that are no server":      {"#nameserver 192.0.2.1\nnameserver\nnameserver here", "", false},
		"without a newline at the end":  {"nameserver 127.0.0.1\nnameserver 192.0.2.1", "nameserver 127.0.0.2", true},
		"the stub's stub is nobody too": {"nameserver 127.0.0.53", "nameserver 127.0.0.1", false},
	} {
		in := input(1)
		in.Resolver, in.Upstream = row.resolver, row.upstream
		corefile := render(t, in)["ConfigMap"].(*corev1.ConfigMap).Data["Corefile"]
		forwards := strings.Contains(corefile, "forward . /etc/resolv.conf {")
		if forwards != row.forwards || strings.Contains(corefile, "loop\n") != row.forwards ||
			in.Forwards() != row.forwards {
			t.Errorf("%s: %s", name, corefile)
		}
		if strings.Count(corefile, " kube.local") != 3 || strings.Count(corefile, "{") != strings.Count(corefile, "}") {
			t.Errorf("%s: %s", name, corefile)
		}
	}
}

// The image that make images packs, the one that keel runs, and the chart's default are one.
func TestTheImageIsThePinnedOne(t *testing.T) {
	for file, want := range map[string]string{
		"../../../tools/pins/coredns/go.mod":                      `github\.com/coredns/coredns (v\S+)`,
		"../../../deploy/helm/keelson/charts/coredns/values.yaml": `(?m)^  tag: (\S+)$`,
	} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := regexp.MustCompile(want).FindSubmatch(content); got == nil || string(got[1]) != tag {
			t.Errorf("%s names %q, keel runs %s", file, got, tag)
		}
	}
}

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

// An existing Corefile stays; objects that others have changed stay too, and are listed.
func TestApplyLeavesWhatOthersChanged(t *testing.T) {
	corefile := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": Name, "namespace": Namespace},
		"data": map[string]any{"Corefile": "mine"},
	}}
	for name, row := range map[string]struct {
		conflicts func(kind string, replicas bool) bool
		want      []string
	}{
		"nothing": {func(string, bool) bool { return false }, nil},
		"scaled":  {func(kind string, replicas bool) bool { return kind == "deployments" && replicas }, nil},
		"another image": {func(kind string, _ bool) bool { return kind == "deployments" },
			[]string{"Deployment coredns"}},
		"the Service's too": {func(kind string, _ bool) bool { return kind == "services" },
			[]string{"Service kube-dns"}},
	} {
		t.Run(name, func(t *testing.T) {
			client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), corefile)
			applied := map[string]int{}
			client.PrependReactor("patch", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
				patch := a.(clienttesting.PatchAction)
				resource := a.GetResource().GroupResource()
				replicas := strings.Contains(string(patch.GetPatch()), `"replicas"`)
				if row.conflicts(resource.Resource, replicas) {
					return true, nil, apierrors.NewConflict(resource, patch.GetName(), nil)
				}
				applied[resource.Resource]++
				return true, &unstructured.Unstructured{Object: map[string]any{}}, nil
			})
			left, err := Apply(t.Context(), client, input(1))
			if err != nil || !reflect.DeepEqual(left, row.want) {
				t.Fatalf("left %v, %v; want %v", left, err, row.want)
			}
			if len(applied) != 6-len(row.want) {
				t.Errorf("applied %v", applied)
			}
			for _, action := range client.Actions() {
				if action.GetResource().Resource == "configmaps" && action.GetVerb() != "create" {
					t.Errorf("the Corefile met with %s", action.GetVerb())
				}
			}
		})
	}
	refused := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
	refused.PrependReactor("patch", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(deployments.GroupResource(), Name, nil)
	})
	refused.PrependReactor("patch", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return a.GetResource() != deployments, &unstructured.Unstructured{Object: map[string]any{}}, nil
	})
	if _, err := Apply(t.Context(), refused, input(1)); err == nil ||
		!strings.Contains(err.Error(), "applying Deployment coredns of cluster DNS: ") {
		t.Errorf("refused: %v", err)
	}
}
