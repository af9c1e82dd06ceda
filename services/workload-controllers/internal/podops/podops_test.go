package podops

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"keelson.dev/services/workload-controllers/internal/gate"
	"keelson.dev/services/workload-controllers/internal/podfeed"
	"keelson.dev/services/workload-controllers/internal/rank"
)

var prototype = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-", Namespace: "default"}}

// newOperator returns an operator whose creations are answered by answer, which gets their number.
func newOperator(answer func(n int32) error) (*Operator, *fake.Clientset, *atomic.Int32) {
	clientset, requests := fake.NewClientset(), &atomic.Int32{}
	clientset.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		n := requests.Add(1)
		if err := answer(n); err != nil {
			return true, nil, err
		}
		pod := action.(clienttesting.CreateAction).GetObject().(*corev1.Pod).DeepCopy()
		pod.Name, pod.UID = fmt.Sprint("web-", n), types.UID(fmt.Sprint(n))
		return true, pod, nil
	})
	return &Operator{Client: clientset.CoreV1(), FieldManager: "replicaset", Gate: gate.New(), Feed: podfeed.New(),
		Log: zap.NewNop()}, clientset, requests
}

// DEP-157: a refusal costs few requests, success doubles the next batch.
func TestCreateStartsSlowly(t *testing.T) {
	refusal := errors.New("refused")
	for _, c := range []struct {
		name                 string
		n                    int
		failsFrom            int32 // the first request that is refused; 0 for none
		requests, successful int
	}{
		{"all", 20, 0, 20, 20},
		{"one", 1, 0, 1, 1},
		{"none", 0, 0, 0, 0},
		{"refused at once", 1000, 1, 1, 0},
		{"refused in the third batch", 1000, 4, 7, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, _, requests := newOperator(func(n int32) error {
				if c.failsFrom > 0 && n >= c.failsFrom {
					return refusal
				}
				return nil
			})
			outcomes := o.Create(t.Context(), "owner", c.n, func(int) (*corev1.Pod, error) {
				return prototype, nil
			})
			successful := 0
			for _, outcome := range outcomes {
				if outcome.Err == nil && strings.HasPrefix(outcome.Name, "web-") {
					successful++
				}
			}
			if int(requests.Load()) != c.requests || successful != c.successful {
				t.Errorf("%d requests, %d successful; want %d, %d", requests.Load(), successful, c.requests,
					c.successful)
			}
			if failed := Failure(outcomes); (c.failsFrom > 0) != errors.Is(failed, refusal) {
				t.Errorf("failure %v", failed)
			}
		})
	}
	if prototype.Name != "" || prototype.Kind != "" {
		t.Error("the prototype changed")
	}
}

// Pods that have names of their own come as they were asked for, and so do their outcomes.
func TestCreateOfUnlikePods(t *testing.T) {
	refusal := errors.New("refused")
	o, clientset, _ := newOperator(func(int32) error { return nil })
	clientset.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		pod := action.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
		if pod.Name == "web-5" {
			return true, nil, refusal
		}
		return true, pod, nil
	})
	outcomes := o.Create(t.Context(), "owner", 9, func(i int) (*corev1.Pod, error) {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("web-", i),
			UID: types.UID(fmt.Sprint(i))}}, nil
	})
	if len(outcomes) != 7 {
		t.Fatalf("%d outcomes, want those of the batches of 1, 2 and 4", len(outcomes))
	}
	for i, outcome := range outcomes {
		if outcome.Name != fmt.Sprint("web-", i) || (outcome.Err != nil) != (i == 5) {
			t.Errorf("outcome %d: %+v", i, outcome)
		}
	}
}

// JOB-160: a Pod that is gone needs no patch, any other failure is told after all Pods had theirs.
func TestPatchFinalizers(t *testing.T) {
	gone, refusal := schema.GroupResource{Resource: "pods"}, errors.New("refused")
	answers := map[string]error{"gone": apierrors.NewNotFound(gone, "gone"), "replaced": apierrors.NewInvalid(
		schema.GroupKind{Kind: "Pod"}, "replaced", field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), "",
			"")}), "changed": apierrors.NewConflict(gone, "changed", refusal)}
	for _, c := range []struct {
		pods    []string
		failure string
	}{
		{[]string{"there", "gone", "replaced"}, ""},
		{[]string{"changed", "there"}, "changing the finalizers of Pod changed"},
	} {
		o, clientset, _ := newOperator(func(int32) error { return nil })
		var patched atomic.Int32
		clientset.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
			patch := action.(clienttesting.PatchAction)
			if string(patch.GetPatch()) != "patch of "+patch.GetName() {
				t.Errorf("%s gets %s", patch.GetName(), patch.GetPatch())
			}
			patched.Add(1)
			return true, &corev1.Pod{}, answers[patch.GetName()]
		})
		var pods []*corev1.Pod
		for _, name := range c.pods {
			pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
		}
		err := o.PatchFinalizers(t.Context(), "owner", pods, func(p *corev1.Pod) []byte {
			return []byte("patch of " + p.Name)
		})
		if (err == nil) != (c.failure == "") || err != nil && (!strings.HasPrefix(err.Error(), c.failure) ||
			!apierrors.IsConflict(err)) {
			t.Errorf("%v: %v", c.pods, err)
		}
		if int(patched.Load()) != len(pods) {
			t.Errorf("%d of %d are patched", patched.Load(), len(pods))
		}
	}
}

func TestDelete(t *testing.T) {
	o, clientset, _ := newOperator(func(int32) error { return nil })
	gone := schema.GroupResource{Resource: "pods"}
	answers := map[string]error{
		"there": nil, "gone": apierrors.NewNotFound(gone, "gone"),
		"replaced": apierrors.NewConflict(gone, "replaced", errors.New("uid")), "guarded": errors.New("refused"),
	}
	clientset.PrependReactor("*", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		request, ok := action.(clienttesting.DeleteActionImpl)
		if !ok {
			t.Errorf("%s of %s: nothing precedes a deletion", action.GetVerb(), action.GetSubresource()) // SAF-071
			return true, nil, nil
		}
		// SAF-158, SAF-152: the Pod's own grace period; SAF-176: only this Pod.
		if options := request.DeleteOptions; options.GracePeriodSeconds != nil || options.Preconditions == nil ||
			*options.Preconditions.UID != types.UID("uid-"+request.Name) {
			t.Errorf("options %+v of %s", options, request.Name)
		}
		return true, nil, answers[request.Name]
	})
	var pods []rank.Pod
	for _, name := range []string{"there", "gone", "replaced", "guarded"} {
		pods = append(pods, rank.Pod{Namespace: "default", Name: name, UID: types.UID("uid-" + name)})
	}
	words := map[string]bool{}
	for _, reason := range reasons {
		t.Run(reason.String(), func(t *testing.T) {
			core, logged := observer.New(zap.DebugLevel)
			o.Log = zap.New(core)
			counted := deletions.WithLabelValues("replicaset", reason.String())
			before := testutil.ToFloat64(counted)
			for i, outcome := range o.Delete(t.Context(), "owner", reason, pods) {
				if outcome.Name != pods[i].Name || (outcome.Err != nil) != (outcome.Name == "guarded") {
					t.Errorf("outcome %+v", outcome)
				}
			}
			// Only what this controller ended is counted and logged.
			if more := testutil.ToFloat64(counted) - before; more != 1 {
				t.Errorf("%v deletions are counted, want 1", more)
			}
			if lines := logged.All(); len(lines) != 1 || lines[0].ContextMap()["name"] != "there" ||
				lines[0].ContextMap()["reason"] != reason.String() {
				t.Errorf("logged %v", lines)
			}
		})
		if words[reason.String()] || reason.String() == "" {
			t.Errorf("two reasons have the word %q", reason)
		}
		words[reason.String()] = true
	}
}

// A Pod that is another by now than was looked at is left alone: its version is asked for beside its UID.
func TestDeleteUnchanged(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, row := range map[string]struct {
		answer       error
		failed, seen bool
	}{
		"there":   {nil, false, true},
		"gone":    {apierrors.NewNotFound(pods, "web"), false, true},
		"changed": {apierrors.NewConflict(pods, "web", errors.New("version")), true, false},
		"guarded": {errors.New("refused"), true, false},
	} {
		o, clientset, _ := newOperator(func(int32) error { return nil })
		clientset.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
			options := action.(clienttesting.DeleteActionImpl).DeleteOptions
			if options.GracePeriodSeconds != nil || *options.Preconditions.UID != "uid" ||
				*options.Preconditions.ResourceVersion != "7" {
				t.Errorf("%s: options %+v", name, options)
			}
			return true, nil, row.answer
		})
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "uid",
			ResourceVersion: "7"}}
		o.Feed.Index.Upsert(pod)
		err := o.DeleteUnchanged(t.Context(), "owner", Recreated, pod)
		if (err != nil) != row.failed || apierrors.IsConflict(err) != (name == "changed") {
			t.Errorf("%s: %v", name, err)
		}
		if o.Gate.IsOpen("owner") == row.seen {
			t.Errorf("%s: the gate is open: %t", name, !row.seen)
		}
	}
}
