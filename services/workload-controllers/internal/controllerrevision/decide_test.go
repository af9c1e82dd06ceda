package controllerrevision

import (
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation"

	"keelson.dev/services/workload-controllers/internal/claim"
)

var agent = claim.Owner{
	Namespace: "default", Name: "agent", UID: "agent-uid", Kind: appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
	Selector: labels.SelectorFromSet(labels.Set{"app": "agent"}),
}

func template(image string) *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "agent"}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"disk": "ssd"},
			Containers:   []corev1.Container{{Name: "agent", Image: image}},
		},
	}
}

// revisionOf is a revision as an earlier pass made it.
func revisionOf(image string, number int64, change ...func(*appsv1.ControllerRevision)) *appsv1.ControllerRevision {
	r := Decide(In{Owner: agent, Template: template(image)}).Create
	r.Revision, r.UID = number, types.UID(image)
	r.CreationTimestamp = metav1.Unix(1_700_000_000+number, 0)
	for _, f := range change {
		f(r)
	}
	return r
}

func numbers(revisions []*appsv1.ControllerRevision) []int64 {
	var all []int64
	for _, r := range revisions {
		all = append(all, r.Revision)
	}
	return all
}

// SET-158: the first revision of a template carries what kubectl and the Pods need to find it by.
func TestTheFirstRevision(t *testing.T) {
	in := In{Owner: agent, Template: template("agent:1"), Annotations: map[string]string{
		"kubernetes.io/change-cause": "first", corev1.LastAppliedConfigAnnotation: "{}"}}
	annotations := maps.Clone(in.Annotations)
	plan := Decide(in)
	r := plan.Create
	if r == nil || plan.Current != r || plan.Renumber != nil || len(plan.Old) > 0 {
		t.Fatalf("plan %+v", plan)
	}
	hash := r.Labels["controller-revision-hash"]
	if r.Revision != 1 || r.Name != "agent-"+hash || len(hash) == 0 || r.Labels["app"] != "agent" ||
		!slices.Equal(plan.Alike, []string{hash}) {
		t.Errorf("revision %d, name %s, labels %v, alike %v", r.Revision, r.Name, r.Labels, plan.Alike)
	}
	if owner := metav1.GetControllerOf(r); owner == nil || owner.UID != agent.UID || !*owner.BlockOwnerDeletion {
		t.Errorf("owner %+v", owner)
	}
	if want := map[string]string{"kubernetes.io/change-cause": "first"}; !maps.Equal(r.Annotations, want) {
		t.Errorf("annotations %v, want %v", r.Annotations, want)
	}
	if !maps.Equal(in.Annotations, annotations) || len(in.Template.Labels) != 1 {
		t.Error("the input changed")
	}
}

// kubectl rollout undo sends a revision's data as a strategic merge patch: it brings the template back as it was,
// without what only the later one had.
func TestDataBringsTheTemplateBack(t *testing.T) {
	r := revisionOf("agent:1", 1)
	later := template("agent:2")
	later.Labels["later"], later.Spec.HostNetwork = "yes", true
	set := appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{MinReadySeconds: 7, Template: *later}}
	before, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := strategicpatch.StrategicMergePatch(before, r.Data.Raw, set)
	if err != nil {
		t.Fatal(err)
	}
	var after appsv1.DaemonSet
	if err := json.Unmarshal(patched, &after); err != nil {
		t.Fatal(err)
	}
	if !apiequality.Semantic.DeepEqual(after.Spec.Template, *template("agent:1")) || after.Spec.MinReadySeconds != 7 {
		t.Errorf("the patched spec is %+v", after.Spec)
	}
	if remembered, err := Template(r); err != nil || !apiequality.Semantic.DeepEqual(remembered, template("agent:1")) {
		t.Errorf("remembered %+v, %v", remembered, err)
	}
}

// Data is bytes that may not change: a patch of the revision, which goes through maps, must leave them as they are.
func TestDataOutlivesAPatch(t *testing.T) {
	pod := template("agent:1")
	big := int64(1)<<60 + 1
	pod.Spec.ActiveDeadlineSeconds = &big
	r := Decide(In{Owner: agent, Template: pod}).Create
	before, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := strategicpatch.StrategicMergePatch(before, claim.AdoptPatch(agent, r), appsv1.ControllerRevision{})
	if err != nil {
		t.Fatal(err)
	}
	var after appsv1.ControllerRevision
	if err := json.Unmarshal(patched, &after); err != nil {
		t.Fatal(err)
	}
	if string(after.Data.Raw) != string(r.Data.Raw) || !strings.Contains(string(r.Data.Raw), "1152921504606846977") {
		t.Errorf("data was %s, is %s", r.Data.Raw, after.Data.Raw)
	}
}

func TestTemplateOfUnreadableData(t *testing.T) {
	for _, raw := range []string{"", "{", `{"spec":{}}`, `{"spec":{"template":null}}`} {
		r := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "agent-1"},
			Data: runtime.RawExtension{Raw: []byte(raw)}}
		if got, err := Template(r); err == nil || !strings.Contains(err.Error(), "ControllerRevision default/agent-1") {
			t.Errorf("%q is read as %v, %v", raw, got, err)
		}
	}
}

func TestWhichRevisionStandsForTheTemplate(t *testing.T) {
	rewritten := func(r *appsv1.ControllerRevision) {
		var fields any
		if err := json.Unmarshal(r.Data.Raw, &fields); err != nil {
			t.Fatal(err)
		}
		indented, _ := json.MarshalIndent(fields, "", " ")
		r.Data.Raw = indented
	}
	renamed := func(r *appsv1.ControllerRevision) {
		r.Name, r.UID, r.Labels = "agent-twin", "twin", map[string]string{"app": "agent", HashLabel: "twin"}
	}
	orphan := func(r *appsv1.ControllerRevision) { r.OwnerReferences = nil }
	for _, c := range []struct {
		name      string
		revisions []*appsv1.ControllerRevision
		current   int64 // its number; the highest of all is that of a new one
		creates   bool
		renumbers bool
		old       []int64
		alike     int
	}{
		{name: "none", current: 1, creates: true, alike: 1},
		{name: "only others", revisions: []*appsv1.ControllerRevision{revisionOf("agent:3", 4),
			revisionOf("agent:2", 2)},
			current: 5, creates: true, old: []int64{2, 4}, alike: 1},
		{name: "the newest", revisions: []*appsv1.ControllerRevision{revisionOf("agent:1", 3),
			revisionOf("agent:2", 2)},
			current: 3, old: []int64{2}, alike: 1},
		{name: "one that came back gets the highest number",
			revisions: []*appsv1.ControllerRevision{revisionOf("agent:1", 1), revisionOf("agent:2", 2),
				revisionOf("agent:3", 3)}, current: 4, renumbers: true, old: []int64{2, 3}, alike: 1},
		{name: "one whose number another has, too",
			revisions: []*appsv1.ControllerRevision{revisionOf("agent:1", 2), revisionOf("agent:2", 2)},
			current:   3, renumbers: true, old: []int64{2}, alike: 1},
		{name: "one that was restored and is written another way",
			revisions: []*appsv1.ControllerRevision{revisionOf("agent:1", 1, rewritten)}, current: 1, alike: 1},
		{name: "twins: the one with the higher number, and the Pods of both are up to date",
			revisions: []*appsv1.ControllerRevision{revisionOf("agent:1", 5, renamed), revisionOf("agent:1", 1)},
			current:   5, old: []int64{1}, alike: 2},
		{name: "another owner's does not count",
			revisions: []*appsv1.ControllerRevision{revisionOf("agent:1", 1, func(r *appsv1.ControllerRevision) {
				r.OwnerReferences[0].UID = "other"
			})}, current: 1, creates: true, alike: 1},
		{name: "nobody's that the selector does not match does not count",
			revisions: []*appsv1.ControllerRevision{revisionOf("agent:1", 1, orphan,
				func(r *appsv1.ControllerRevision) {
					r.Labels = nil
				})}, current: 1, creates: true, alike: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := In{Owner: agent, Template: template("agent:1"), Revisions: c.revisions}
			var before []*appsv1.ControllerRevision
			for _, r := range c.revisions {
				before = append(before, r.DeepCopy())
			}
			plan := Decide(in)
			if plan.Current.Revision != c.current || (plan.Create != nil) != c.creates ||
				(plan.Renumber != nil) != c.renumbers {
				t.Errorf("current %d, create %v, renumber %v", plan.Current.Revision, plan.Create, plan.Renumber)
			}
			if got := numbers(plan.Old); !slices.Equal(got, c.old) {
				t.Errorf("old are %v, want %v", got, c.old)
			}
			if len(plan.Alike) != c.alike || !slices.Contains(plan.Alike, plan.Current.Labels[HashLabel]) {
				t.Errorf("alike are %v, want %d with the current one", plan.Alike, c.alike)
			}
			if !reflect.DeepEqual(before, c.revisions) {
				t.Error("the input changed")
			}
		})
	}
}

// SET-155: a history that an owner left behind belongs to the next one with its selector.
func TestOrphansAreAdoptedFirst(t *testing.T) {
	left := revisionOf("agent:1", 3)
	left.OwnerReferences = nil
	plan := Decide(In{Owner: agent, Template: template("agent:2"), Revisions: []*appsv1.ControllerRevision{left}})
	if len(plan.Claims.Adopt) != 1 || plan.Create != nil || plan.Current != nil {
		t.Errorf("plan %+v", plan)
	}
}

func TestCollisionsGiveAnotherName(t *testing.T) {
	names := map[string]bool{}
	var count *int32
	for want := int32(1); want <= 3; want++ {
		names[Decide(In{Owner: agent, Template: template("agent:1"), Collisions: count}).Create.Name] = true
		if count = AfterCollision(count); *count != want {
			t.Errorf("%d collisions after %d", *count, want)
		}
	}
	if len(names) != 3 {
		t.Errorf("names %v", names)
	}
}

// A name fits, however long the owner's is, and wherever it is cut.
func TestNamesFit(t *testing.T) {
	for _, name := range []string{strings.Repeat("a", 223), strings.Repeat("a", 253),
		strings.Repeat("a", 222) + ".b", strings.Repeat("a", 221) + "-.b"} {
		owner := agent
		owner.Name = name
		got := Decide(In{Owner: owner, Template: template("agent:1")}).Create.Name
		if problems := validation.IsDNS1123Subdomain(got); len(problems) > 0 || !strings.HasPrefix(got, "aaaa") {
			t.Errorf("%d characters become %q: %v", len(name), got, problems)
		}
	}
	owner := agent
	owner.Name = strings.Repeat("a", 223) + "b"
	if got := Decide(In{Owner: owner, Template: template("agent:1")}).Create.Name; strings.Contains(got, "b") ||
		!strings.HasPrefix(got, strings.Repeat("a", 223)+"-") {
		t.Errorf("a name of 224 characters becomes %s", got)
	}
}

func TestSurplus(t *testing.T) {
	var old []*appsv1.ControllerRevision
	for number := int64(1); number <= 5; number++ {
		old = append(old, revisionOf("agent:1", number))
	}
	old[3].DeletionTimestamp = &metav1.Time{Time: time.Unix(1_700_000_000, 0)}
	number := func(n int32) *int32 { return &n }
	for _, c := range []struct {
		name  string
		limit *int32
		used  []int64
		want  []int64
	}{
		{name: "as many as the limit", limit: number(4)},
		{name: "one more", limit: number(3), want: []int64{1}},
		{name: "none is kept", limit: number(0), want: []int64{1, 2, 3, 5}},
		{name: "those in use stay and do not count", limit: number(1), used: []int64{1, 5}, want: []int64{2}},
		{name: "no limit"},
		{name: "the greatest limit", limit: number(math.MaxInt32)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := numbers(Surplus(old, c.limit, func(r *appsv1.ControllerRevision) bool {
				return slices.Contains(c.used, r.Revision)
			}))
			if !slices.Equal(got, c.want) || len(old) != 5 {
				t.Errorf("%v go, want %v", got, c.want)
			}
		})
	}
}

// SET-112: kubectl rollout undo says that a template is a revision's already only where its own encoding is the data,
// byte by byte: the keys in alphabetical order, numbers as they are.
func TestDataIsAsKubectlEncodesIt(t *testing.T) {
	grace := int64(1 << 60)
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"b": "<1>", "a": "2"}},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{Name: "web", Image: "web:1", Command: []string{"run"}}}},
	}
	const want = `{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"a":"2","b":"\u003c1\u003e"}},` +
		`"spec":{"containers":[{"command":["run"],"image":"web:1","name":"web","resources":{}}],` +
		`"terminationGracePeriodSeconds":1152921504606846976}}}}`
	if got := string(encode(&template)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
