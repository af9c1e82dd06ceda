package protection

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"keelson.dev/kit/podview"
)

const protects = "kubernetes.io/pvc-protection"

func TestDecide(t *testing.T) {
	going := &metav1.Time{Time: time.Unix(1, 0)}
	for _, row := range []struct {
		name       string
		deleted    *metav1.Time
		finalizers []string
		used       bool
		change     bool
		want       []string
	}{
		{"an old one", nil, []string{"a/b"}, false, true, []string{"a/b", protects}},
		{"an old one that is used", nil, nil, true, true, []string{protects}},
		{"a protected one", nil, []string{protects}, true, false, nil},
		{"SET-101 used and going", going, []string{protects}, true, false, nil},
		{"SET-101 going", going, []string{"a/b", protects, "c/d"}, false, true, []string{"a/b", "c/d"}},
		{"going without", going, []string{"a/b"}, false, false, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := &metav1.ObjectMeta{DeletionTimestamp: row.deleted, Finalizers: row.finalizers}
			before := slices.Clone(row.finalizers)
			plan := Decide(Input{Object: o, Finalizer: protects, User: map[bool]string{true: "Pod web"}[row.used]})
			if plan.Change != row.change || !slices.Equal(plan.Finalizers, row.want) {
				t.Errorf("got %+v", plan)
			}
			if !slices.Equal(before, o.Finalizers) {
				t.Error("the input was changed")
			}
		})
	}
}

type podEdit = func(*corev1.Pod)

// pod runs on a node and names the claim data, and one of its own by the volume scratch.
func pod(edits ...podEdit) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p"}}
	p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning
	p.Spec.Volumes = []corev1.Volume{
		{Name: "x", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "y", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
			ClaimName: "data"}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
	}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func ended(p *corev1.Pod)      { p.Status.Phase = corev1.PodFailed }
func waiting(p *corev1.Pod)    { p.Spec.NodeName = "" }
func elsewhere(p *corev1.Pod)  { p.Namespace = "other" }
func leaving(p *corev1.Pod)    { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
func stopping(p *corev1.Pod)   { leaving(p); p.Finalizers = []string{"a/b"} }
func withoutAny(p *corev1.Pod) { p.Spec.Volumes = p.Spec.Volumes[:1] }

func TestUsesClaim(t *testing.T) {
	for name, row := range map[string]struct {
		pod   *corev1.Pod
		claim string
		want  bool
	}{
		"SET-101 runs":           {pod(), "data", true},
		"of its own":             {pod(), "p-scratch", true},
		"SET-101 on its way out": {pod(leaving), "data", true},
		"has ended":              {pod(ended), "data", false},
		"has no node":            {pod(waiting), "data", false},
		"of another namespace":   {pod(elsewhere), "data", false},
		"names another":          {pod(), "x", false},
		"names none":             {pod(withoutAny), "data", false},
	} {
		claim := &metav1.ObjectMeta{Namespace: "ns", Name: row.claim}
		if got := usesClaim(row.pod, claim); got != row.want {
			t.Errorf("%s: %t, want %t", name, got, row.want)
		}
		kept := row.pod.DeepCopy()
		kept.Spec.Volumes = KeepClaims(kept.Spec.Volumes)
		if got := usesClaim(kept, claim); got != row.want || len(kept.Spec.Volumes) > 2 {
			t.Errorf("%s: by what is kept of the Pod %t, want %t", name, got, row.want)
		}
	}
}

// apis are what the cache shows and what the apiserver has.
type apis struct {
	cached, live []client.Object
	refuse       error // what a look at the apiserver fails with
}

// finalizersAfter makes one pass over the object and returns the finalizers that the apiserver has then; gone: none.
func (a apis) finalizersAfter(t *testing.T, k kind, name, namespace string) ([]string, error) {
	t.Helper()
	build := func(objects []client.Object, refuse error) client.WithWatch {
		return fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).
			WithIndex(&corev1.Pod{}, field, func(o client.Object) []string {
				return podview.ClaimNames(o.(*corev1.Pod))
			}).
			WithIndex(&corev1.Pod{}, groupField, func(o client.Object) []string { return groupOf(o.(*corev1.Pod)) }).
			WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, l client.ObjectList,
					options ...client.ListOption) error {
					if refuse != nil {
						return refuse
					}
					return c.List(ctx, l, options...)
				},
			}).Build()
	}
	live := build(a.live, a.refuse)
	c := &collector{cached: build(a.cached, nil), live: live, writer: live, kind: k}
	_, err := c.steps().Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{
		Namespace: namespace, Name: name}})
	o := k.blank()
	if live.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o) != nil {
		return []string{"gone"}, err
	}
	return o.Finalizers, err
}

func claim(finalizers ...string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "c",
		ResourceVersion: "7", Finalizers: finalizers}}
}

func goingClaim() *corev1.PersistentVolumeClaim {
	c := claim(protects)
	c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	return c
}

// SET-101: a claim goes when no Pod uses it any more, by the word of the cache and of the apiserver.
func TestClaims(t *testing.T) {
	for name, row := range map[string]struct {
		apis
		want string
		err  bool
	}{
		"nobody uses it": {apis{cached: []client.Object{goingClaim()}, live: []client.Object{goingClaim()}},
			"gone", false},
		"a Pod uses it": {apis{cached: []client.Object{goingClaim(), pod()}, live: []client.Object{goingClaim(),
			pod()}}, protects, false},
		"a Pod that is new": {apis{cached: []client.Object{goingClaim()}, live: []client.Object{goingClaim(),
			pod()}}, protects, false},
		"a Pod that has ended": {apis{cached: []client.Object{goingClaim(), pod(ended)},
			live: []client.Object{goingClaim(), pod(ended)}}, "gone", false},
		"the apiserver fails": {apis{cached: []client.Object{goingClaim()}, live: []client.Object{goingClaim()},
			refuse: errors.New("no")}, protects, true},
		"an old claim": {apis{cached: []client.Object{claim()}, live: []client.Object{claim()}}, protects,
			false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := row.finalizersAfter(t, claims, "data", "ns")
			if !slices.Equal(got, []string{row.want}) || (err != nil) != row.err {
				t.Errorf("%v, %v, want %s", got, err, row.want)
			}
		})
	}
}

// A PodGroup goes when all its Pods have ended, whether they had a node or not.
func TestGroups(t *testing.T) {
	const keeps = "scheduling.k8s.io/podgroup-protection"
	group := func(going bool, finalizers ...string) *schedulingv1beta1.PodGroup {
		g := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "g", UID: "g",
			ResourceVersion: "7", Finalizers: finalizers}}
		if going {
			g.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		return g
	}
	member := func(of string, edits ...podEdit) *corev1.Pod {
		p := pod(edits...)
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &of}
		return p
	}
	for name, row := range map[string]struct {
		group        *schedulingv1beta1.PodGroup
		cached, live []client.Object
		want         string
	}{
		"no Pod":                 {group(true, keeps), nil, nil, "gone"},
		"a Pod that is in none":  {group(true, keeps), []client.Object{pod()}, []client.Object{pod()}, "gone"},
		"a Pod of another group": {group(true, keeps), nil, []client.Object{member("h")}, "gone"},
		"a Pod that runs": {group(true, keeps), []client.Object{member("g")}, []client.Object{member("g")},
			keeps},
		"a Pod without a node": {group(true, keeps), []client.Object{member("g", waiting)},
			[]client.Object{member("g", waiting)}, keeps},
		"a Pod that is new":      {group(true, keeps), nil, []client.Object{member("g")}, keeps},
		"a Pod on its way out":   {group(true, keeps), nil, []client.Object{member("g", stopping)}, keeps},
		"a Pod that has ended":   {group(true, keeps), nil, []client.Object{member("g", ended)}, "gone"},
		"of another namespace":   {group(true, keeps), nil, []client.Object{member("g", elsewhere)}, "gone"},
		"one that stays, an old": {group(false), nil, nil, keeps},
	} {
		t.Run(name, func(t *testing.T) {
			world := apis{cached: append([]client.Object{row.group.DeepCopy()}, row.cached...),
				live: append([]client.Object{row.group.DeepCopy()}, row.live...)}
			got, err := world.finalizersAfter(t, groups, "g", "ns")
			if err != nil || !slices.Equal(got, []string{row.want}) {
				t.Errorf("%v, %v, want %s", got, err, row.want)
			}
		})
	}
}

// A volume goes when no claim has it, whatever it says itself.
func TestVolumes(t *testing.T) {
	const keeps = "kubernetes.io/pv-protection"
	volume := func(phase corev1.PersistentVolumePhase, going bool, finalizers ...string) *corev1.PersistentVolume {
		v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v", UID: "v", ResourceVersion: "7",
			Finalizers: finalizers}, Status: corev1.PersistentVolumeStatus{Phase: phase},
			Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: "ns", Name: "data",
				UID: "c"}}}
		if going {
			v.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		return v
	}
	has := func(uid types.UID, name string) *corev1.PersistentVolumeClaim {
		c := claim()
		c.UID, c.Spec.VolumeName = uid, name
		return c
	}
	released := volume("Released", true, keeps)
	for name, row := range map[string]struct {
		volume *corev1.PersistentVolume
		others []client.Object
		want   string
	}{
		"released":                         {released, nil, "gone"},
		"bound":                            {volume("Bound", true, keeps), nil, keeps},
		"not said to be bound yet":         {volume("Pending", true, keeps), []client.Object{has("c", "v")}, keeps},
		"the claim has another":            {released, []client.Object{has("c", "w")}, "gone"},
		"another claim of the name has it": {released, []client.Object{has("later", "v")}, "gone"},
		"free":                             {volume("Available", true, keeps), nil, "gone"},
		"an old one":                       {volume("Bound", false), nil, keeps},
	} {
		t.Run(name, func(t *testing.T) {
			world := apis{cached: []client.Object{row.volume.DeepCopy()},
				live: append([]client.Object{row.volume.DeepCopy()}, row.others...)}
			if got, err := world.finalizersAfter(t, volumes, "v", ""); err != nil ||
				!slices.Equal(got, []string{row.want}) {
				t.Errorf("%v, %v, want %s", got, err, row.want)
			}
		})
	}
}

// class is a VolumeAttributesClass.
func class(going bool, finalizers ...string) *storagev1.VolumeAttributesClass {
	c := &storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: "gold", UID: "g", ResourceVersion: "7",
		Finalizers: finalizers}}
	if going {
		c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	}
	return c
}

// A class of attributes goes when no claim has it, asks for it or is on its way to it, and no volume has it.
func TestClasses(t *testing.T) {
	const keeps = "kubernetes.io/vac-protection"
	claimWith := func(edit func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		c := claim()
		edit(c)
		return c
	}
	name := func(name string) *string { return &name }
	asks := func(class string) *corev1.PersistentVolumeClaim {
		return claimWith(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = name(class) })
	}
	has := claimWith(func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeAttributesClassName, c.Status.CurrentVolumeAttributesClassName = name("tin"), name("gold")
	})
	becomes := claimWith(func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeAttributesClassName = name("tin")
		c.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: "gold"}
	})
	volume := func(class *string) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"},
			Spec: corev1.PersistentVolumeSpec{VolumeAttributesClassName: class}}
	}
	for name, row := range map[string]struct {
		class  *storagev1.VolumeAttributesClass
		others []client.Object
		refuse error
		want   string
	}{
		"nothing has it":          {class(true, keeps), nil, nil, "gone"},
		"a claim asks for it":     {class(true, keeps), []client.Object{asks("gold")}, nil, keeps},
		"a claim has it":          {class(true, keeps), []client.Object{has}, nil, keeps},
		"a claim becomes of it":   {class(true, keeps), []client.Object{becomes}, nil, keeps},
		"a claim has another":     {class(true, keeps), []client.Object{asks("golden")}, nil, "gone"},
		"a claim has none":        {class(true, keeps), []client.Object{claim()}, nil, "gone"},
		"a volume has it":         {class(true, keeps), []client.Object{asks("tin"), volume(name("gold"))}, nil, keeps},
		"a volume has another":    {class(true, keeps), []client.Object{volume(name("tin"))}, nil, "gone"},
		"a volume has none":       {class(true, keeps), []client.Object{volume(nil)}, nil, "gone"},
		"the apiserver fails":     {class(true, keeps), nil, errors.New("no"), keeps},
		"one that stays, an old":  {class(false), nil, nil, keeps},
		"one that stays and used": {class(false, keeps), []client.Object{asks("gold")}, nil, keeps},
	} {
		t.Run(name, func(t *testing.T) {
			world := apis{cached: []client.Object{row.class.DeepCopy()},
				live: append([]client.Object{row.class.DeepCopy()}, row.others...), refuse: row.refuse}
			got, err := world.finalizersAfter(t, classes, "gold", "")
			if !slices.Equal(got, []string{row.want}) || (err != nil) != (row.refuse != nil) {
				t.Errorf("%v, %v, want %s", got, err, row.want)
			}
		})
	}
}

// pages is an apiserver of many claims, of which it shows one at a time.
type pages struct {
	client.Reader
	claims []*corev1.PersistentVolumeClaim
}

// List implements Reader.
func (p pages) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	claims, ok := list.(*corev1.PersistentVolumeClaimList)
	if !ok {
		return nil
	}
	at, _ := strconv.Atoi((&client.ListOptions{}).ApplyOptions(options).Continue)
	claims.Items = []corev1.PersistentVolumeClaim{*p.claims[at]}
	if at+1 < len(p.claims) {
		claims.Continue = strconv.Itoa(at + 1)
	}
	return nil
}

// A claim of the last page is found, and the look ends with that page.
func TestClassUserLooksAtAllPages(t *testing.T) {
	gold, last := "gold", claim()
	last.Name, last.Spec.VolumeAttributesClassName = "last", &gold
	for want, claims := range map[string][]*corev1.PersistentVolumeClaim{
		"": {claim(), claim(), claim()}, "PersistentVolumeClaim ns/last": {claim(), claim(), last},
	} {
		o := classes.blank()
		o.Name = gold
		if got, err := classUser(t.Context(), &collector{live: pages{claims: claims}}, o); got != want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}

// What wakes up when a claim or a volume lets go of something are the classes that are on their way out, once for a
// burst, and no other.
func TestOnUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keeps = "kubernetes.io/vac-protection"
		named := func(name string, c *storagev1.VolumeAttributesClass) client.Object {
			c.Name = name
			return c
		}
		cached := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(named("going", class(true, keeps)),
			named("staying", class(false, keeps)), named("let-go", class(true, "a/b"))).Build()
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer q.ShutDown()
		wakes := onUser(cached)
		for name, happens := range map[string]func(){
			"a change": func() { wakes.Update(t.Context(), event.TypedUpdateEvent[object]{}, q) },
			"the end":  func() { wakes.Delete(t.Context(), event.TypedDeleteEvent[object]{}, q) },
		} {
			happens()
			happens()
			if synctest.Wait(); q.Len() != 0 {
				t.Errorf("%s: %d are looked at at once", name, q.Len())
			}
			time.Sleep(letGo)
			if synctest.Wait(); q.Len() != 1 {
				t.Fatalf("%s: %d are looked at, want 1", name, q.Len())
			}
			woken, _ := q.Get()
			if q.Done(woken); woken.Name != "going" {
				t.Errorf("%s: %v is looked at", name, woken)
			}
		}
		wakes.Create(t.Context(), event.TypedCreateEvent[object]{}, q)
		time.Sleep(letGo)
		if synctest.Wait(); q.Len() != 0 {
			t.Error("what is new has let go of nothing, and wakes up somebody")
		}
	})
}

// Who uses an object is told by who was found to use it.
func TestAccount(t *testing.T) {
	going := &metav1.Time{Time: time.Unix(1, 0)}
	for _, row := range []struct {
		name       string
		deleted    *metav1.Time
		finalizers []string
		user, want string
	}{
		{"new", nil, []string{"a/b"}, "", "in its next pass gives it the finalizer " + protects},
		{"in use", nil, []string{protects}, "Pod web",
			"waits for nothing: it is protected from deletion while it is used"},
		{"going and used", going, []string{protects}, "Pod web",
			"waits for Pod web to let go of it, which protects it from deletion"},
		{"going", going, []string{protects}, "",
			"in its next pass takes off the finalizer " + protects + ": nobody uses it"},
		{"held by others", going, []string{"a/b"}, "",
			"has nothing to decide: nobody uses it, and it waits for others who take off its finalizers: a/b"},
	} {
		o := claims.blank()
		o.DeletionTimestamp, o.Finalizers = row.deleted, row.finalizers
		got := leaves(o)
		if NeedsWork(o, protects) {
			in := Input{Object: o, Finalizer: protects, User: row.user}
			got = account(in, Decide(in)).Explanation().Summary
		}
		if got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}
