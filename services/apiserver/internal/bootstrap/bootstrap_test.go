package bootstrap

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/authz/answerform"
	"keelson.dev/services/apiserver/internal/authz/rbac"
)

func TestAggregation(t *testing.T) {
	selecting := func(label string) *rbacv1.AggregationRule {
		return &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
			{MatchLabels: map[string]string{label: "true"}}}}
	}
	r := func(name, label string, aggregation *rbacv1.AggregationRule, resources ...string) rbacv1.ClusterRole {
		out := rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, AggregationRule: aggregation}
		if label != "" {
			out.Labels = map[string]string{label: "true"}
		}
		for _, resource := range resources {
			out.Rules = append(out.Rules, rule(read, "", resource))
		}
		return out
	}
	resources := func(c *rbacv1.ClusterRole) string {
		var all []string
		for _, rule := range c.Rules {
			all = append(all, rule.Resources...)
		}
		return c.Name + ": " + strings.Join(all, " ")
	}
	rows := []struct {
		name  string
		roles []rbacv1.ClusterRole
		want  []string
	}{
		{"in two steps", []rbacv1.ClusterRole{
			r("all", "", selecting("to-all")), r("some", "to-all", selecting("to-some")),
			r("part", "to-some", nil, "pods"), r("other", "to-all", nil, "nodes"),
		}, []string{"all: nodes pods", "some: pods"}},
		{"nothing to do", []rbacv1.ClusterRole{r("all", "", selecting("x"), "pods"), r("part", "x", nil, "pods")}, nil},
		{"equal rules once", []rbacv1.ClusterRole{r("all", "", selecting("x")), r("a", "x", nil, "pods"),
			r("b", "x", nil, "pods")}, []string{"all: pods"}},
		{"a part taken away", []rbacv1.ClusterRole{r("all", "", selecting("x"), "pods", "nodes"),
			r("a", "x", nil, "nodes")}, []string{"all: nodes"}},
		{"never itself", []rbacv1.ClusterRole{r("all", "x", selecting("x"), "pods")}, []string{"all: "}},
		{"without a rule it is left alone", []rbacv1.ClusterRole{r("plain", "x", nil, "pods")}, nil},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			before := slices.Clone(row.roles)
			var got []string
			for _, c := range decideAggregation(row.roles) {
				got = append(got, resources(c))
			}
			if !slices.Equal(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
			for i := range before {
				if len(before[i].Rules) != len(row.roles[i].Rules) {
					t.Errorf("the input %s was changed", before[i].Name)
				}
			}
		})
	}
}

// TestDaemonsMayDoTheirWork: each daemon has what it needs, and not what others have.
func TestDaemonsMayDoTheirWork(t *testing.T) {
	p := rbac.NewPolicy(Confined()...)
	for _, r := range append(append([]role{}, userRoles...), daemonRoles...) {
		p.SetRole(rbac.Name{Name: r.name}, r.rules)
		if b := r.binding(); b != nil {
			p.SetBinding(rbac.Name{Name: r.name}, b.RoleRef, b.Subjects)
		}
	}
	const (
		scheduler   = "system:kube-scheduler"
		controllers = "system:keelson:workload-controllers"
		podgc       = "system:keelson:podgc"
		proxy       = "system:kube-proxy"
	)
	rows := []struct {
		user, verb, group, path string
		allowed                 bool
	}{
		{scheduler, "create", "", "pods/binding", true},
		{scheduler, "update", "coordination.k8s.io", "leases", true},
		{scheduler, "patch", "", "pods/status", true},
		{scheduler, "list", "scheduling.k8s.io", "priorityclasses", false},
		{scheduler, "list", "scheduling.k8s.io", "podgroups", true},
		{scheduler, "patch", "scheduling.k8s.io", "podgroups/status", true},
		{scheduler, "patch", "scheduling.k8s.io", "podgroups", false},
		{scheduler, "create", "", "pods", false},
		{scheduler, "get", "", "secrets", false},
		// SAF-024: no daemon may evict, but the nodeagent its own Pods.
		{scheduler, "create", "", "pods/eviction", false},
		{controllers, "create", "", "pods/eviction", false}, // SAF-039: nor ask a budget for what its own workloads do.
		{podgc, "create", "", "pods/eviction", false},
		{controllers, "patch", "", "pods/ephemeralcontainers", false}, // SAF-002: none is added by a controller.
		{controllers, "update", "", "pods/ephemeralcontainers", false},
		{scheduler, "patch", "", "pods/ephemeralcontainers", false},
		{controllers, "create", "", "pods", true},
		{controllers, "update", "apps", "deployments/status", true},
		{controllers, "create", "apps", "replicasets", true},
		{controllers, "update", "apps", "replicasets/scale", true}, // DEP-211: autoscalers write there, and read.
		{controllers, "update", "example.com", "foos/scale", true},
		{controllers, "update", "example.com", "foos", false},
		{controllers, "patch", "apps", "replicasets/scale", false},
		{controllers, "list", "metrics.k8s.io", "pods", true},
		{controllers, "update", "autoscaling", "horizontalpodautoscalers/status", true},
		{controllers, "update", "autoscaling", "horizontalpodautoscalers", false},
		{controllers, "list", "", "secrets", false}, // A quota counts them, by their metadata.
		{controllers, "get", "", "secrets", false},
		{controllers, "get", "custom.metrics.k8s.io", "pods/requests", true},
		{controllers, "list", "", "pods/log", false},
		{controllers, "update", "", "secrets", false},
		{controllers, "update", "coordination.k8s.io", "leases", false}, // Those of others.
		{controllers, "create", "", "configmaps", true},
		{controllers, "patch", "", "nodes", true},        // It gives them their Pod ranges.
		{controllers, "patch", "", "nodes/status", true}, // It says which volumes are attached.
		{controllers, "update", "", "nodes/status", false},
		{controllers, "delete", "", "nodes", false},
		{controllers, "create", "", "pods/binding", false},
		{controllers, "create", "rbac.authorization.k8s.io", "clusterroles", false},
		{controllers, "update", "certificates.k8s.io", "clustertrustbundles", true},
		{controllers, "attest", "certificates.k8s.io", "signers", false}, // Of one signer alone.
		{podgc, "delete", "apps", "replicasets", true},
		{podgc, "list", "example.com", "widgets", true},
		{podgc, "deletecollection", "", "configmaps", true},
		{podgc, "list", "", "secrets", false},
		{podgc, "watch", "", "secrets", false},
		{podgc, "patch", "", "secrets", false},
		{podgc, "list", "example.com", "secrets", true}, // Not those.
		{podgc, "get", "", "pods/exec", false},
		{podgc, "get", "", "nodes/proxy", false},
		{podgc, "patch", "", "pods/status", true},
		{podgc, "patch", "", "nodes/status", true},
		{podgc, "patch", "apps", "deployments/status", false},
		{podgc, "update", "", "namespaces/finalize", true},
		{podgc, "create", "", "pods", false},
		{"system:keelson:apiserver", "get", "", "nodes/proxy", true},
		{proxy, "watch", "discovery.k8s.io", "endpointslices", true},
		{proxy, "list", "", "services", true},
		{proxy, "list", "", "nodes", true},
		{proxy, "patch", "", "nodes", false},
		{proxy, "list", "", "pods", false},
		{"stranger", "get", "", "pods", false},
	}
	for _, row := range rows {
		resource, sub, _ := strings.Cut(row.path, "/")
		_, got := p.Decide(rbac.Request{User: row.user, Groups: []string{"system:authenticated"}, Verb: row.verb,
			Namespace: "ns", APIGroup: row.group, Resource: resource, Subresource: sub, Name: "x"})
		if got != row.allowed {
			t.Errorf("%s may %s %s: %v, want %v", row.user, row.verb, row.path, got, row.allowed)
		}
	}
}

// Every account may read the trust bundles of Pods, and no user without an account may from the start.
func TestAccountsReadTrustBundles(t *testing.T) {
	p := rbac.NewPolicy()
	for _, r := range append(append([]role{}, userRoles...), certificateRoles...) {
		p.SetRole(rbac.Name{Name: r.name}, r.rules)
		if b := r.binding(); b != nil {
			p.SetBinding(rbac.Name{Name: r.name}, b.RoleRef, b.Subjects)
		}
	}
	for _, row := range []struct {
		group, verb string
		allowed     bool
	}{
		{"system:serviceaccounts", "get", true},
		{"system:serviceaccounts", "list", true},
		{"system:serviceaccounts", "watch", true},
		{"system:serviceaccounts", "create", false},
		{"system:authenticated", "get", false},
		{"system:unauthenticated", "list", false},
	} {
		_, got := p.Decide(rbac.Request{User: "x", Groups: []string{row.group}, Verb: row.verb,
			APIGroup: "certificates.k8s.io", Resource: "clustertrustbundles"})
		if got != row.allowed {
			t.Errorf("%s may %s bundles: %v, want %v", row.group, row.verb, got, row.allowed)
		}
	}
}

// Who works on objects of every kind may know which Secrets there are, and not what is in them; what it patches of all
// is what lets objects go.
func TestDaemonsSeeTheMetadataOfSecrets(t *testing.T) {
	p := rbac.NewPolicy(Confined()...)
	for _, r := range daemonRoles {
		p.SetRole(rbac.Name{Name: r.name}, r.rules)
		// The chart binds a service account, whatever its name.
		p.SetBinding(rbac.Name{Name: r.name}, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole",
			Name: r.name}, []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "kube-system", Name: r.name}})
	}
	for role, verbs := range map[string][]string{"system:keelson:podgc": {"get", "list", "watch", "patch", "delete",
		"deletecollection"},
		"system:keelson:workload-controllers": {"list", "watch"}} {
		for _, verb := range verbs {
			request := rbac.Request{User: "system:serviceaccount:kube-system:" + role, Verb: verb, Resource: "secrets"}
			if _, allowed := p.Decide(request); allowed {
				t.Errorf("%s may %s what is in Secrets", role, verb)
			}
			request.Form = answerform.Form{Metadata: true}
			if _, allowed := p.Decide(request); allowed != (verb != "patch") {
				t.Errorf("%s may %s the metadata of Secrets: %v", role, verb, allowed)
			}
			request.Form.Release = true
			if _, allowed := p.Decide(request); !allowed {
				t.Errorf("%s may not %s the finalizers of Secrets", role, verb)
			}
		}
	}
}

// TestEditorsLeadNowhere: who may edit a namespace writes no endpoints, which would lead a Service's clients to Pods of
// other namespaces. The roles of the field leave them out since 1.22.
func TestEditorsLeadNowhere(t *testing.T) {
	p := rbac.NewPolicy()
	for _, r := range userRoles {
		if r.labels[aggregateToView] != "" || r.labels[aggregateToEdit] != "" || r.labels[aggregateToAdmin] != "" {
			p.SetRole(rbac.Name{Name: r.name}, r.rules)
			p.SetBinding(rbac.Name{Name: r.name}, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole",
				Name: r.name}, []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "editor"}})
		}
	}
	for _, row := range []struct {
		verb, group, path string
		allowed           bool
	}{
		{"update", "", "services", true},
		{"get", "", "endpoints", true},
		{"get", "discovery.k8s.io", "endpointslices", true},
		{"create", "", "endpoints", false},
		{"patch", "", "endpoints", false},
		{"create", "discovery.k8s.io", "endpointslices", false},
		{"update", "discovery.k8s.io", "endpointslices", false},
		{"update", "", "services/status", false},
		{"create", "networking.k8s.io", "ipaddresses", false},
		{"create", "networking.k8s.io", "servicecidrs", false},
	} {
		resource, sub, _ := strings.Cut(row.path, "/")
		_, got := p.Decide(rbac.Request{User: "editor", Groups: []string{"system:authenticated"}, Verb: row.verb,
			Namespace: "ns", APIGroup: row.group, Resource: resource, Subresource: sub, Name: "x"})
		if got != row.allowed {
			t.Errorf("an editor may %s %s: %v, want %v", row.verb, row.path, got, row.allowed)
		}
	}
}

// TestVacantBinding: nodes have their rights from the Node authorizer alone, also in a mesh that bound the role to them
// once.
func TestVacantBinding(t *testing.T) {
	bound := &rbacv1.ClusterRoleBinding{
		ObjectMeta: systemMeta("system:node"),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:nodes"}},
	}
	for name, objects := range map[string][]runtime.Object{"a new mesh": nil, "a mesh that bound it": {bound}} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(objects...)
			if err := New(Config{Client: client}).ensureRoles(); err != nil {
				t.Fatalf("making the roles: %v", err)
			}
			bindings, err := client.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatalf("listing the bindings: %v", err)
			}
			for _, binding := range bindings.Items {
				if binding.RoleRef.Name == "system:node" && len(binding.Subjects) > 0 {
					t.Errorf("the role system:node is bound to %v, want nobody", binding.Subjects)
				}
			}
			if role, err := client.RbacV1().ClusterRoles().Get(t.Context(), "system:node",
				metav1.GetOptions{}); err != nil || len(role.Rules) == 0 {
				t.Errorf("the role system:node is %+v, %v, want its rules", role, err)
			}
		})
	}
}

func TestMembers(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	lease := func(name, address string, age time.Duration) coordinationv1.Lease {
		return coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &address, LeaseDurationSeconds: ptr.To(int32(45)),
			RenewTime: ptr.To(metav1.NewMicroTime(now.Add(-age))),
		}}
	}
	alive, expired := members([]coordinationv1.Lease{
		lease("c", "10.0.0.3:6443", 0), lease("b", "10.0.0.2:6443", 40*time.Second), lease("dead", "10.0.0.9:6443",
			46*time.Second),
		lease("twice", "10.0.0.2:6443", 0), lease("odd", "nonsense", 0), lease("port", "10.0.0.1:7443", 0), {},
	}, now)
	if got := fmt.Sprint(alive, expired); got != "[10.0.0.1:7443 10.0.0.2:6443 10.0.0.3:6443] [dead]" {
		t.Errorf("members: %s", got)
	}
	var got []string
	for _, subset := range subsets(alive) {
		for _, address := range subset.Addresses {
			got = append(got, fmt.Sprintf("%s:%d", address.IP, subset.Ports[0].Port))
		}
		got = append(got, "|")
	}
	if want := "10.0.0.2:6443 10.0.0.3:6443 | 10.0.0.1:7443 |"; strings.Join(got, " ") != want {
		t.Errorf("subsets: %s, want %s", strings.Join(got, " "), want)
	}
	if none := subsets(nil); len(none) != 0 {
		t.Errorf("nobody alive: %v", none)
	}
	for age, want := range map[time.Duration]string{45 * time.Second: "[10.0.0.2:6443] []",
		45*time.Second + time.Microsecond: "[] [b]", -time.Hour: "[10.0.0.2:6443] []"} {
		alive, expired := members([]coordinationv1.Lease{lease("b", "10.0.0.2:6443", age)}, now)
		if got := fmt.Sprint(alive, expired); got != want {
			t.Errorf("renewed %v ago: %s, want %s", age, got, want)
		}
	}
	// A Lease that does not say all is neither alive nor anybody's to delete.
	for what, edit := range map[string]func(*coordinationv1.LeaseSpec){
		"holder":   func(s *coordinationv1.LeaseSpec) { s.HolderIdentity = nil },
		"duration": func(s *coordinationv1.LeaseSpec) { s.LeaseDurationSeconds = nil },
		"renewal":  func(s *coordinationv1.LeaseSpec) { s.RenewTime = nil },
	} {
		partial := lease("b", "10.0.0.2:6443", time.Hour)
		edit(&partial.Spec)
		alive, expired := members([]coordinationv1.Lease{partial, lease("c", "10.0.0.3:6443", 0)}, now)
		if got := fmt.Sprint(alive, expired); got != "[10.0.0.3:6443] []" {
			t.Errorf("without its %s: %s, want the other one alone", what, got)
		}
	}
}

// SET-053: a mesh has a class for claims that name none. An operator's choice of another default stays.
func TestStorageClass(t *testing.T) {
	const isDefault = "storageclass.kubernetes.io/is-default-class"
	class := func(name, asDefault string) *storagev1.StorageClass {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name,
			Annotations: map[string]string{isDefault: asDefault}}, Provisioner: "disk.example.com"}
	}
	inTheOldWay := class("gold", "false")
	inTheOldWay.Annotations["storageclass.beta.kubernetes.io/is-default-class"] = "true"
	for _, row := range []struct {
		name    string
		objects []runtime.Object
		want    string // its provisioner and the annotation
	}{
		{"a new mesh", nil, "local.keelson.dev true"},
		{"there are others, none the default", []runtime.Object{class("gold", "false")}, "local.keelson.dev true"},
		{"another is the default", []runtime.Object{class("gold", "true")}, "local.keelson.dev "},
		{"another is by the annotation of the beta", []runtime.Object{inTheOldWay}, "local.keelson.dev "},
		{"the operator changed it", []runtime.Object{class("keelson-local", "false")}, "disk.example.com false"},
	} {
		t.Run(row.name, func(t *testing.T) {
			client := fake.NewClientset(row.objects...)
			for range 2 {
				if err := New(Config{Client: client}).ensureStorageClass(t.Context()); err != nil {
					t.Fatalf("making the class: %v", err)
				}
			}
			made, err := client.StorageV1().StorageClasses().Get(t.Context(), "keelson-local", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := made.Provisioner + " " + made.Annotations[isDefault]; got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
			if row.objects == nil && (*made.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer ||
				*made.ReclaimPolicy != "Delete" || *made.AllowVolumeExpansion) {
				t.Errorf("the class is %+v", made)
			}
		})
	}
}
