package claim

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var web = Owner{
	Namespace: "default", Name: "web", UID: "web-uid",
	Kind:     schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	Selector: labels.SelectorFromSet(labels.Set{"app": "web"}),
}

func pod(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", UID: "p-uid",
		Labels: map[string]string{"app": "web"}}}
	change(p)
	return p
}

func ownedBy(uid types.UID) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{UID: uid, Controller: &yes}}
	}
}

func TestDecide(t *testing.T) {
	relabelled := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "debug"} }
	for _, c := range []struct {
		name     string
		pod      func(*corev1.Pod)
		deleting bool
		want     string
	}{
		{name: "DEP-158 without an owner", pod: func(*corev1.Pod) {}, want: "adopt"},
		{name: "DEP-158 with an owner that is no controller", pod: func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{UID: "x"}}
		}, want: "adopt"},
		{name: "DEP-159 of another controller", pod: ownedBy("other"), want: "ignore"},
		{name: "DEP-159 being deleted", pod: func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} },
			want: "ignore"},
		{name: "DEP-159 by an owner that is being deleted", pod: func(*corev1.Pod) {}, deleting: true, want: "ignore"},
		{name: "own and matching", pod: ownedBy("web-uid"), want: "own"},
		{name: "DEP-175 own but no longer matching", pod: func(p *corev1.Pod) { ownedBy("web-uid")(p); relabelled(p) },
			want: "release"},
		{name: "own, not matching, of an owner that is being deleted",
			pod: func(p *corev1.Pod) { ownedBy("web-uid")(p); relabelled(p) }, deleting: true, want: "own"},
		{name: "without an owner and not matching", pod: relabelled, want: "ignore"},
		{name: "of another namespace", pod: func(p *corev1.Pod) { p.Namespace = "other" }, want: "ignore"},
	} {
		t.Run(c.name, func(t *testing.T) {
			owner := web
			owner.Deleting = c.deleting
			p := pod(c.pod)
			before := p.DeepCopy()
			claims := Decide(owner, []*corev1.Pod{p})
			got := map[bool]string{len(claims.Owned) == 1: "own", len(claims.Adopt) == 1: "adopt",
				len(claims.Release) == 1: "release"}[true]
			if got == "" {
				got = "ignore"
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if claims.Settled() != (got == "own" || got == "ignore") {
				t.Errorf("settled = %t", claims.Settled())
			}
			if !reflect.DeepEqual(before, p) {
				t.Error("the input changed")
			}
		})
	}
}

// The objects of each list keep their order, and what is to be adopted does not weigh up what is to be released.
func TestDecideSeveral(t *testing.T) {
	var pods []*corev1.Pod
	for i, change := range []func(*corev1.Pod){
		func(*corev1.Pod) {}, ownedBy("web-uid"), ownedBy("other"),
		func(p *corev1.Pod) { ownedBy("web-uid")(p); p.Labels = nil },
		ownedBy("web-uid"), func(*corev1.Pod) {}, func(p *corev1.Pod) { ownedBy("web-uid")(p); p.Labels = nil },
	} {
		p := pod(change)
		p.Name = string(rune('0' + i))
		pods = append(pods, p)
	}
	names := func(pods []*corev1.Pod) (names string) {
		for _, p := range pods {
			names += p.Name
		}
		return names
	}
	claims := Decide(web, pods)
	if names(claims.Owned) != "14" || names(claims.Adopt) != "05" || names(claims.Release) != "36" {
		t.Errorf("owns %s, adopts %s, releases %s; want 14, 05, 36", names(claims.Owned), names(claims.Adopt),
			names(claims.Release))
	}
	if claims.Settled() {
		t.Error("settled, with two to adopt and two to release")
	}
	if none := Decide[*corev1.Pod](web, nil); !none.Settled() || len(none.Owned) != 0 {
		t.Errorf("of nothing: %+v", none)
	}
}

func TestPatches(t *testing.T) {
	p := pod(func(*corev1.Pod) {})
	take := `{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"web-uid","controller":true,"blockOwnerDeletion":true}],"uid":"p-uid"}}`
	if got := string(AdoptPatch(web, p)); got != take { // DEP-148
		t.Errorf("take = %s", got)
	}
	release := `{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"web-uid"}],"uid":"p-uid"}}`
	if got := string(ReleasePatch(web, p)); got != release {
		t.Errorf("release = %s", got)
	}
	p.ResourceVersion = "7"
	for what, c := range map[string]struct{ got, want string }{ // JOB-158, JOB-160
		"take with a finalizer": {string(AdoptPatch(web, p, "a/b")), strings.Replace(take, `"ownerReferences"`,
			`"finalizers":["a/b"],"ownerReferences"`, 1)},
		"release with a finalizer": {string(ReleasePatch(web, p, "a/b")), strings.Replace(release, `"ownerReferences"`,
			`"$deleteFromPrimitiveList/finalizers":["a/b"],"ownerReferences"`, 1)},
		"take a finalizer off": {string(FinalizerPatch(p, "a/b")),
			`{"metadata":{"$deleteFromPrimitiveList/finalizers":["a/b"],"uid":"p-uid"}}`},
		"take a finalizer off what has not changed": {string(UnchangedFinalizerPatch(p, "a/b")),
			`{"metadata":{"$deleteFromPrimitiveList/finalizers":["a/b"],"resourceVersion":"7","uid":"p-uid"}}`},
	} {
		if c.got != c.want {
			t.Errorf("%s = %s, want %s", what, c.got, c.want)
		}
	}
}
