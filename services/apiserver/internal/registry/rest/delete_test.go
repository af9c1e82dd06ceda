package rest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	genericrest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/registry/batch/job"
	"keelson.dev/services/apiserver/internal/registry/core/configmap"
	"keelson.dev/services/apiserver/internal/registry/core/pod"
	"keelson.dev/services/apiserver/internal/registry/core/serviceaccount"
	"keelson.dev/services/apiserver/internal/registry/rest"
	"keelson.dev/services/apiserver/internal/resource"
)

var (
	now        = &metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	background = &metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
	foreground = &metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}
)

// aPod is a Pod on node, which is none if empty.
func aPod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: 1},
		Spec:       corev1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: ptr.To[int64](30)},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
}

// deleted marks the object as a delete with this grace period has just done.
func deleted[O resource.Object](obj O, grace int64) O {
	at := metav1.NewTime(time.Now().Add(time.Duration(grace) * time.Second).Truncate(time.Second))
	obj.SetDeletionTimestamp(&at)
	obj.SetDeletionGracePeriodSeconds(&grace)
	return obj
}

func finalized[O resource.Object](obj O, finalizers ...string) O {
	obj.SetFinalizers(finalizers)
	return obj
}

func remove[O resource.Object](o opened[O], name string, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	return o.Delete(o.ctx(), name, genericrest.ValidateAllObjectFunc, options.DeepCopy())
}

// POD-152, SAF-128, SAF-145: a delete is one call of the store and one event, whether the object goes or is marked.
func TestDeleteIsOneCall(t *testing.T) {
	w := newWorld(t, rest.Serve(pod.Resource), rest.Serve(job.Resource))
	pods, jobs := open(t, w, pod.Resource), open(t, w, job.Resource)
	ended := aPod("ended", "n")
	ended.Status.Phase = corev1.PodSucceeded
	for _, row := range []struct {
		pod     *corev1.Pod
		options *metav1.DeleteOptions
		want    watch.EventType
	}{
		{aPod("unbound", ""), &metav1.DeleteOptions{}, watch.Deleted},
		{aPod("forced", "n"), now, watch.Deleted},
		{deleted(aPod("last", "n"), 30), now, watch.Deleted},
		{ended, &metav1.DeleteOptions{}, watch.Deleted},
		{finalized(aPod("released", ""), metav1.FinalizerDeleteDependents), background, watch.Deleted},
		{aPod("graceful", "n"), &metav1.DeleteOptions{}, watch.Modified},
		{deleted(aPod("shortened", "n"), 30), &metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](5)},
			watch.Modified},
		{finalized(aPod("held", ""), "example.com/x"), now, watch.Modified},
	} {
		checkOneCall(t, pods, row.pod, row.options, row.want)
	}
	object := func(name string) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u"}}
	}
	checkOneCall(t, jobs, object("background"), background, watch.Deleted)
	checkOneCall(t, jobs, object("foreground"), foreground, watch.Modified)
	checkOneCall(t, jobs, object("orphaning"), &metav1.DeleteOptions{}, watch.Modified)
}

func checkOneCall[O resource.Object](t *testing.T, o opened[O], obj O, options *metav1.DeleteOptions,
	want watch.EventType) {
	t.Helper()
	name := obj.GetName()
	stored := o.put(obj)
	o.settle(stored)
	before, asked := o.world.calls.Load(), 0
	answer, gone, err := o.Delete(o.ctx(), name, func(context.Context, runtime.Object) error {
		asked++
		return nil
	}, options.DeepCopy())
	if calls := o.world.calls.Load() - before; err != nil || calls != 1 || asked != 1 ||
		gone != (want == watch.Deleted) {
		t.Errorf("%s: %d calls, admission asked %d times, gone %v, %v; want one each", name, calls, asked, gone, err)
	}
	events := o.events(stored.GetResourceVersion(), name+"-end")
	if len(events) != 1 || events[0].Type != want {
		t.Errorf("%s: %d events, want one %s", name, len(events), want)
		return
	}
	seen, answered := events[0].Object.(O), answer
	if status, ok := answered.(*metav1.Status); ok {
		if status.Details.UID != obj.GetUID() || status.Details.Name != name {
			t.Errorf("%s: answered %+v", name, status)
		}
		return
	}
	m, err := meta.Accessor(answered)
	if err != nil || m.GetResourceVersion() != seen.GetResourceVersion() || m.GetDeletionTimestamp() == nil {
		t.Errorf("%s: answered %+v, watchers saw version %s, %v", name, m, seen.GetResourceVersion(), err)
	}
	if newer, err := resourceversion.CompareResourceVersion(m.GetResourceVersion(),
		stored.GetResourceVersion()); err != nil || newer != 1 {
		t.Errorf("%s: the delete's version is %s, that of the object before %s, %v", name, m.GetResourceVersion(),
			stored.GetResourceVersion(), err)
	}
}

// What a delete meets is what the store has, however old the cache is. SAF-127, SAF-139.
func TestDeleteOfWhatTheCacheHasNot(t *testing.T) {
	w := newWorld(t, rest.Serve(pod.Resource))
	pods := open(t, w, pod.Resource)
	uid := func(uid types.UID) *metav1.DeleteOptions {
		return &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid},
			GracePeriodSeconds: ptr.To[int64](0)}
	}
	again := func(name string) {
		if _, _, err := remove(pods, name, now); err != nil {
			t.Fatalf("deleting the first %s: %v", name, err)
		}
		next := aPod(name, "")
		next.UID = "second"
		pods.put(next)
	}
	check := func(name string, before *corev1.Pod,
		meanwhile func(name string, stored *corev1.Pod) *metav1.DeleteOptions,
		verdict func(gone bool, err error, left *corev1.Pod) string) {
		t.Helper()
		before.Name = name
		stored := pods.put(before)
		pods.settle(stored)
		w.held.Lock()
		defer w.held.Unlock()
		options := meanwhile(name, stored)
		_, gone, err := remove(pods, name, options)
		left, _ := pods.read(name).(*corev1.Pod)
		if wrong := verdict(gone, err, left); wrong != "" {
			t.Errorf("%s: %s: gone %v, %v, left %s", name, wrong, gone, err, describe(pods.read(name)))
		}
	}
	check("finalizer", aPod("", ""), func(name string, _ *corev1.Pod) *metav1.DeleteOptions {
		pods.change(name, func(p *corev1.Pod) { p.Finalizers = []string{"example.com/x"} })
		return now
	}, func(gone bool, err error, left *corev1.Pod) string {
		if gone || err != nil || left == nil || left.DeletionTimestamp == nil || len(left.Finalizers) != 1 {
			return "want it marked and kept by its finalizer"
		}
		return ""
	})
	check("released", finalized(aPod("", ""), "example.com/x"), func(name string, _ *corev1.Pod) *metav1.DeleteOptions {
		pods.change(name, func(p *corev1.Pod) { p.Finalizers = nil })
		return now
	}, func(gone bool, err error, left *corev1.Pod) string {
		if !gone || err != nil || left != nil {
			return "want it gone"
		}
		return ""
	})
	bound := func(gone bool, err error, left *corev1.Pod) string {
		if gone || err != nil || left == nil || ptr.Deref(left.DeletionGracePeriodSeconds, 0) != 30 {
			return "want its 30 seconds of grace"
		}
		return ""
	}
	bind := func(name string, _ *corev1.Pod) *metav1.DeleteOptions {
		pods.change(name, func(p *corev1.Pod) { p.Spec.NodeName = "n" })
		return &metav1.DeleteOptions{}
	}
	check("bound", aPod("", ""), bind, bound)
	check("bound-and-held", finalized(aPod("", ""), "example.com/x"), bind, bound)
	check("gone", aPod("", ""), func(name string, _ *corev1.Pod) *metav1.DeleteOptions {
		_, _, _ = remove(pods, name, now)
		return now
	}, func(gone bool, err error, _ *corev1.Pod) string {
		if gone || !apierrors.IsNotFound(err) {
			return "want not found"
		}
		return ""
	})
	check("another", aPod("", ""), func(name string, stored *corev1.Pod) *metav1.DeleteOptions {
		again(name)
		return uid(stored.UID)
	}, func(gone bool, err error, left *corev1.Pod) string {
		if gone || !apierrors.IsConflict(err) || left == nil || left.DeletionTimestamp != nil {
			return "want a conflict, and the second untouched"
		}
		return ""
	})
	removed := func(gone bool, err error, left *corev1.Pod) string {
		if !gone || err != nil || left != nil {
			return "want the second gone"
		}
		return ""
	}
	check("the-second", aPod("", ""), func(name string, _ *corev1.Pod) *metav1.DeleteOptions {
		again(name)
		return uid("second")
	}, removed)
	check("after-one-that-was-leaving", deleted(aPod("", "n"), 30),
		func(name string, _ *corev1.Pod) *metav1.DeleteOptions {
			again(name)
			return &metav1.DeleteOptions{}
		}, removed)
	version := func(newest bool) func(string, *corev1.Pod) *metav1.DeleteOptions {
		return func(name string, stored *corev1.Pod) *metav1.DeleteOptions {
			next := pods.change(name, func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} })
			if !newest {
				next = stored
			}
			return &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &next.ResourceVersion}}
		}
	}
	check("newest-version", aPod("", ""), version(true), removed)
	check("older-version", aPod("", ""), version(false), func(gone bool, err error, left *corev1.Pod) string {
		if gone || !apierrors.IsConflict(err) || left == nil || left.DeletionTimestamp != nil {
			return "want a conflict"
		}
		return ""
	})
}

// A delete does to an object, and answers, what the library's own does, in whatever state the object is.
func TestDeleteIsTheLibrarys(t *testing.T) {
	w := newWorld(t, rest.Serve(pod.Resource), rest.Serve(job.Resource), rest.Serve(configmap.Resource),
		rest.Serve(serviceaccount.Resource))
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	compareDeletes(t, open(t, w, pod.Resource), random, func() *corev1.Pod {
		p := aPod("", []string{"", "n"}[random.IntN(2)])
		p.Status.Phase = []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodFailed}[random.IntN(3)]
		return p
	})
	compareDeletes(t, open(t, w, job.Resource), random, func() *batchv1.Job { return &batchv1.Job{} })
	compareDeletes(t, open(t, w, configmap.Resource), random, func() *corev1.ConfigMap { return &corev1.ConfigMap{} })
	compareDeletes(t, open(t, w, serviceaccount.Resource), random,
		func() *corev1.ServiceAccount { return &corev1.ServiceAccount{} })
}

func compareDeletes[O resource.Object](t *testing.T, o opened[O], random *rand.Rand, next func() O) {
	t.Helper()
	for i := range 150 {
		obj, options := randomMeta(random, next()), randomOptions(random)
		if wrongInTheLibrary(obj, options) {
			continue
		}
		outcome := func(name string, remove func(context.Context, string, genericrest.ValidateObjectFunc,
			*metav1.DeleteOptions) (runtime.Object, bool, error)) string {
			obj := obj.DeepCopyObject().(O)
			obj.SetName(name)
			stored, options := o.put(obj), options.DeepCopy()
			if p := options.Preconditions; p != nil && p.ResourceVersion != nil && *p.ResourceVersion == "current" {
				p.ResourceVersion = ptr.To(stored.GetResourceVersion())
			}
			if random.IntN(2) == 0 {
				o.settle(stored)
			}
			refuse := func(_ context.Context, obj runtime.Object) error {
				if m, err := meta.Accessor(obj); err != nil || m.GetLabels()["refused"] != "" {
					return apierrors.NewBadRequest("refused")
				}
				return nil
			}
			answer, gone, err := remove(o.ctx(), name, refuse, options)
			if err != nil {
				answer = nil
			}
			refusal := strings.ReplaceAll(fmt.Sprint(err), stored.GetResourceVersion(), "VERSION")
			return strings.ReplaceAll(fmt.Sprintf("answer %s\ngone %v, error %s\nleft %s", describe(answer), gone,
				refusal, describe(o.read(name))), name, "NAME")
		}
		ours := outcome(fmt.Sprintf("ours-%d", i), o.Delete)
		theirs := outcome(fmt.Sprintf("libs-%d", i), o.Store.Delete)
		if ours != theirs {
			t.Errorf("deleting %s\nwith %+v:\n%s\n\nthe library:\n%s", describe(obj), options, ours, theirs)
		}
	}
}

// wrongInTheLibrary tells of deletes that take an object's finalizer away. There the library holds a resourceVersion
// against an empty one, and answers a dry run with an empty object.
func wrongInTheLibrary(obj metav1.Object, options *metav1.DeleteOptions) bool {
	takes := slices.Contains(obj.GetFinalizers(), metav1.FinalizerOrphanDependents) ||
		slices.Contains(obj.GetFinalizers(), metav1.FinalizerDeleteDependents)
	version := options.Preconditions != nil && options.Preconditions.ResourceVersion != nil
	return takes && (version || len(options.DryRun) > 0)
}

// describe is what does not depend on when the object was deleted.
func describe(obj runtime.Object) string {
	if status, ok := obj.(*metav1.Status); ok {
		return fmt.Sprintf("%+v", *status.Details)
	}
	m, ok := obj.(metav1.Object)
	if !ok {
		return "nothing"
	}
	at := "never"
	if marked := m.GetDeletionTimestamp(); marked != nil {
		at = time.Until(marked.Time).Round(20 * time.Second).String()
	}
	return fmt.Sprintf("%s, deleted in %s with grace %v, generation %d, finalizers %q", m.GetName(), at,
		ptr.Deref(m.GetDeletionGracePeriodSeconds(), -1), m.GetGeneration(), m.GetFinalizers())
}

// randomMeta gives the object metadata that matters to a delete. Times are far from where they would be rounded apart.
func randomMeta[O resource.Object](random *rand.Rand, obj O) O {
	obj.SetUID("right")
	obj.SetGeneration(int64(random.IntN(3)))
	var finalizers []string
	for _, f := range []string{"example.com/x", metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents} {
		if random.IntN(4) == 0 && len(finalizers) < 2 {
			finalizers = append(finalizers, f)
		}
	}
	obj.SetFinalizers(finalizers)
	if random.IntN(3) == 0 {
		obj = deleted(obj, []int64{0, 1, 40, 80}[random.IntN(4)])
	}
	if random.IntN(8) == 0 {
		obj.SetLabels(map[string]string{"refused": "yes"})
	}
	return obj
}

func randomOptions(random *rand.Rand) *metav1.DeleteOptions {
	options := &metav1.DeleteOptions{}
	if random.IntN(2) == 0 {
		options.GracePeriodSeconds = ptr.To([]int64{-5, 0, 0, 0, 20, 40, 60}[random.IntN(7)])
	}
	switch policies := []metav1.DeletionPropagation{metav1.DeletePropagationOrphan, metav1.DeletePropagationForeground,
		metav1.DeletePropagationBackground}; random.IntN(4) {
	case 0:
		options.OrphanDependents = ptr.To(random.IntN(2) == 0)
	case 1, 2:
		options.PropagationPolicy = &policies[random.IntN(3)]
	}
	if random.IntN(4) == 0 {
		options.Preconditions = &metav1.Preconditions{UID: ptr.To([]types.UID{"right", "wrong"}[random.IntN(2)])}
	}
	if random.IntN(4) == 0 {
		options.Preconditions = &metav1.Preconditions{ResourceVersion: ptr.To([]string{"current", "1"}[random.IntN(2)])}
	}
	if random.IntN(6) == 0 {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return options
}
