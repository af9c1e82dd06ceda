package groups

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func about(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func service(name string, selector map[string]string) *corev1.Service {
	return &corev1.Service{ObjectMeta: about("ns", name), Spec: corev1.ServiceSpec{Selector: selector}}
}

func replicaSet(name string, selector *metav1.LabelSelector) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: about("ns", name), Spec: appsv1.ReplicaSetSpec{Selector: selector}}
}

func replicationController(name string, selector map[string]string) *corev1.ReplicationController {
	return &corev1.ReplicationController{ObjectMeta: about("ns", name),
		Spec: corev1.ReplicationControllerSpec{Selector: selector}}
}

// podOf is a Pod with the labels app=web and tier=front whose controller is of that version, kind and name.
func podOf(version, kind, name string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: about("ns", "p")}
	p.Labels = map[string]string{"app": "web", "tier": "front"}
	if kind != "" {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name,
			Controller: new(true)}}
	}
	return p
}

func matching(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func bookOf(t *testing.T, objects ...metav1.Object) *Book {
	b := New()
	for _, o := range objects {
		g, ok := Of(o)
		if !ok {
			t.Fatalf("a %T is no group", o)
		}
		b.Set(g)
	}
	return b
}

// What selects the Pods of the groups of a Pod in namespace ns with the labels app=web and tier=front.
func TestSelector(t *testing.T) {
	alone := podOf("", "", "")
	web := service("s", map[string]string{"app": "web"})
	more := service("s", map[string]string{"app": "web", "x": "y"})
	away := service("s", map[string]string{"app": "web"})
	away.Namespace = "other"
	for name, test := range map[string]struct {
		pod    *corev1.Pod
		groups []metav1.Object
		want   string
	}{
		"no group":                      {alone, nil, ""},
		"a service":                     {alone, []metav1.Object{web}, "app=web"},
		"a service of another":          {alone, []metav1.Object{service("s", map[string]string{"app": "db"})}, ""},
		"a service that asks for more":  {alone, []metav1.Object{more}, ""},
		"a service that selects nobody": {alone, []metav1.Object{service("s", nil)}, ""},
		"a service elsewhere":           {alone, []metav1.Object{away}, ""},
		"two services": {alone, []metav1.Object{service("s", map[string]string{"app": "web"}),
			service("o", map[string]string{"tier": "front"})}, "app=web,tier=front"},
		"its replica set": {podOf("apps/v1", "ReplicaSet", "r"),
			[]metav1.Object{replicaSet("r", matching("app", "web"))}, "app=web"},
		"its replica set, which selects what the Pod is not": {podOf("apps/v1", "ReplicaSet", "r"),
			[]metav1.Object{replicaSet("r", matching("app", "db"))}, "app=db"},
		"its replica set and a service": {podOf("apps/v1", "ReplicaSet", "r"), []metav1.Object{
			replicaSet("r", matching("app", "web")), service("s", map[string]string{"tier": "front"})},
			"app=web,tier=front"},
		"another replica set": {podOf("apps/v1", "ReplicaSet", "r"),
			[]metav1.Object{replicaSet("o", matching("app", "web"))}, ""},
		"a replica set of another group": {podOf("example.com/v1", "ReplicaSet", "r"),
			[]metav1.Object{replicaSet("r", matching("app", "web"))}, ""},
		"a stateful set of the name": {podOf("apps/v1", "StatefulSet", "r"),
			[]metav1.Object{replicaSet("r", matching("app", "web"))}, ""},
		"a replica set that selects all": {podOf("apps/v1", "ReplicaSet", "r"),
			[]metav1.Object{replicaSet("r", &metav1.LabelSelector{})}, ""},
		"its stateful set": {podOf("apps/v1", "StatefulSet", "r"), []metav1.Object{&appsv1.StatefulSet{
			ObjectMeta: about("ns", "r"), Spec: appsv1.StatefulSetSpec{Selector: matching("app", "web")}}}, "app=web"},
		"its replication controller": {podOf("v1", "ReplicationController", "r"),
			[]metav1.Object{replicationController("r", map[string]string{"app": "web"})}, "app=web"},
		"a replication controller that it does not name": {alone,
			[]metav1.Object{replicationController("r", map[string]string{"app": "web"})}, ""},
	} {
		got := ""
		if s := bookOf(t, test.groups...).Selector(test.pod); s != nil {
			got = s.String()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// Only a reference to the controller counts.
func TestControllerOf(t *testing.T) {
	p := podOf("apps/v1", "ReplicaSet", "r")
	if ControllerOf(p) == nil {
		t.Error("the controller is not known")
	}
	p.OwnerReferences[0].Controller = new(false)
	if ControllerOf(p) != nil {
		t.Error("an owner that is no controller counts")
	}
	if ControllerOf(podOf("batch/v1", "Job", "j")) != nil {
		t.Error("a Job is a group")
	}
}

// The Pods of a group are looked at again when it comes, selects otherwise or goes, and only then.
func TestTakeChanged(t *testing.T) {
	web, db := podOf("", "", ""), podOf("", "", "")
	db.Labels = map[string]string{"app": "db"}
	b := New()
	step := func(what string, change func(), wantWeb, wantDB bool) {
		t.Helper()
		change()
		is := b.TakeChanged()
		if is == nil {
			is = func(*corev1.Pod) bool { return false }
		}
		if is(web) != wantWeb || is(db) != wantDB {
			t.Errorf("%s: the Pods changed are web %v, db %v, want %v, %v", what, is(web), is(db), wantWeb, wantDB)
		}
	}
	set := func(selector map[string]string) func() {
		return func() {
			g, _ := Of(service("s", selector))
			b.Set(g)
		}
	}
	name := Name{Service, types.NamespacedName{Namespace: "ns", Name: "s"}}
	step("nothing", func() {}, false, false)
	step("it comes", set(map[string]string{"app": "web"}), true, false)
	step("the same again", set(map[string]string{"app": "web"}), false, false)
	step("it selects others", set(map[string]string{"app": "db"}), true, true)
	step("it goes", func() { b.Remove(name) }, false, true)
	step("it is gone", func() { b.Remove(name) }, false, false)
	if b.Selector(db) != nil || len(b.services) != 0 {
		t.Error("something is left of it")
	}
}
