package objectcache

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

func trustBundle(name, signer, version string) *certificatesv1.ClusterTrustBundle {
	return &certificatesv1.ClusterTrustBundle{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), ResourceVersion: version},
		Spec:       certificatesv1.ClusterTrustBundleSpec{SignerName: signer, TrustBundle: version},
	}
}

// podTrusting has a volume of the bundle of this name, or else of the bundles of the signer.
func podTrusting(uid types.UID, name, signer string) *corev1.Pod {
	pod := podUsing(uid)
	source := &corev1.ClusterTrustBundleProjection{Path: "p"}
	if name != "" {
		source.Name = &name
	} else {
		source.SignerName, source.LabelSelector = &signer, &metav1.LabelSelector{}
	}
	pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ClusterTrustBundle: source}}}}}}
	return pod
}

// selectLists does what the client in memory leaves out: lists obey the signer in the field selector.
func (r *rig) selectLists(t *testing.T) {
	r.client.PrependReactor("list", "clustertrustbundles", func(action clienttesting.Action) (bool, runtime.Object,
		error) {
		all, err := r.client.Tracker().List(action.GetResource(),
			certificatesv1.SchemeGroupVersion.WithKind("ClusterTrustBundle"), "")
		if err != nil {
			return true, nil, err
		}
		list := all.(*certificatesv1.ClusterTrustBundleList)
		selector := action.(clienttesting.ListAction).GetListRestrictions().Fields
		if _, exact := selector.RequiresExactMatch("spec.signerName"); !exact {
			t.Errorf("lists by %s", selector)
		}
		list.Items = slices.DeleteFunc(list.Items, func(b certificatesv1.ClusterTrustBundle) bool {
			return !selector.Matches(selectable(&b))
		})
		return true, list, nil
	})
}

func (r *rig) texts(t *testing.T, signer string) (texts []string) {
	t.Helper()
	bundles, err := r.TrustBundles(t.Context(), signer)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bundles {
		texts = append(texts, b.Name+" "+b.Spec.TrustBundle)
	}
	slices.Sort(texts)
	return texts
}

// A Pod is notified of changes to the bundles that its volume shows, by name or of a signer, and of no others.
func TestBundlesAreFollowed(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		r.selectLists(t)
		r.Register(podTrusting("named", "mine", ""))
		r.Register(podTrusting("signer", "", "e.io/s"))
		r.Register(podTrusting("none", "", "e.io/none"))
		if b, err := r.TrustBundle(t.Context(), "mine"); err != nil || b.Spec.TrustBundle != "1" {
			t.Fatalf("got %v, %v", b, err)
		}
		if got := r.texts(t, "e.io/s"); !slices.Equal(got, []string{"a 1"}) {
			t.Fatalf("of the signer there are %q", got)
		}
		if got := r.texts(t, "e.io/none"); len(got) != 0 {
			t.Fatalf("of a signer of nothing there are %q", got)
		}
		bundles := r.client.CertificatesV1().ClusterTrustBundles()
		must := func(_ any, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, step := range []struct {
			name string
			do   func()
			told []types.UID
			want []string
		}{
			{"nothing", func() {}, nil, []string{"a 1"}},
			{"another one of the signer", func() {
				must(bundles.Create(t.Context(), trustBundle("b", "e.io/s", "2"), metav1.CreateOptions{}))
			}, []types.UID{"signer"}, []string{"a 1", "b 2"}},
			{"a change", func() {
				must(bundles.Update(t.Context(), trustBundle("a", "e.io/s", "3"), metav1.UpdateOptions{}))
			}, []types.UID{"signer"}, []string{"a 3", "b 2"}},
			{"one of another signer", func() {
				must(bundles.Create(t.Context(), trustBundle("c", "e.io/t", "4"), metav1.CreateOptions{}))
			}, nil, []string{"a 3", "b 2"}},
			{"one by name", func() {
				must(bundles.Update(t.Context(), trustBundle("mine", "", "5"), metav1.UpdateOptions{}))
			}, []types.UID{"named"}, []string{"a 3", "b 2"}},
			{"one is gone", func() {
				must(nil, bundles.Delete(t.Context(), "a", metav1.DeleteOptions{}))
			}, []types.UID{"signer"}, []string{"b 2"}},
			{"all are gone", func() {
				must(nil, bundles.Delete(t.Context(), "b", metav1.DeleteOptions{}))
				must(nil, bundles.Delete(t.Context(), "mine", metav1.DeleteOptions{}))
			}, []types.UID{"named", "signer"}, nil},
		} {
			synctest.Wait() // until it watches: a watch of the client in memory does not include earlier changes
			step.do()
			told := r.notifiedPods()
			slices.Sort(told)
			if got := r.texts(t, "e.io/s"); !slices.Equal(told, step.told) || !slices.Equal(got, step.want) {
				t.Errorf("%s: told are %v, of the signer there are %q; want %v, %q", step.name, told, got, step.told,
					step.want)
			}
		}
		if _, err := r.TrustBundle(t.Context(), "mine"); !apierrors.IsNotFound(err) ||
			err.Error() != `clustertrustbundle "mine" not found` {
			t.Errorf("one that is gone: %v", err)
		}
	}, trustBundle("mine", "", "1"), trustBundle("a", "e.io/s", "1"))
}

// Bundles are not read while no Pod uses any, one watch serves all Pods that use the same, and it ends with the
// last of them.
func TestBundlesCostWhereTheyAreUsed(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		r.selectLists(t)
		r.Register(podUsing("a", "one"))
		synctest.Wait()
		for _, verb := range []string{"get", "list", "watch"} {
			if n := r.actions(verb, "clustertrustbundles"); n != 0 {
				t.Errorf("without a Pod that has bundles: %d times %s", n, verb)
			}
		}
		for _, uid := range []types.UID{"b", "c", "d"} {
			r.Register(podTrusting(uid, "", "e.io/s"))
		}
		synctest.Wait()
		if gets, lists, watches := r.actions("get", "clustertrustbundles"), r.actions("list", "clustertrustbundles"),
			r.actions("watch", "clustertrustbundles"); gets != 0 || lists != 1 || watches != 1 {
			t.Errorf("%d gets, %d lists, %d watches", gets, lists, watches)
		}
		for _, uid := range []types.UID{"b", "c", "d"} {
			if r.texts(t, "e.io/s") == nil {
				t.Errorf("while %s is left there are none", uid)
			}
			r.Unregister(uid)
		}
		if _, err := r.TrustBundles(t.Context(), "e.io/s"); err == nil {
			t.Error("they are followed for nobody")
		}
	}, trustBundle("a", "e.io/s", "1"))
}

// A list that is read again, as whenever a watch ends, counts as changed only if something in it has changed; an
// empty list counts as changed after an error.
func TestBundlesAreReadAgain(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		var broken atomic.Bool
		broken.Store(true)
		r.selectLists(t)
		r.client.PrependReactor("list", "clustertrustbundles", func(clienttesting.Action) (bool, runtime.Object,
			error) {
			return broken.Load(), nil, errors.New("connection refused")
		})
		watches := 0
		r.client.PrependWatchReactor("clustertrustbundles", func(clienttesting.Action) (bool, watch.Interface, error) {
			watches++
			ended := watch.NewFake()
			ended.Stop()
			return true, ended, nil
		})
		r.Register(podTrusting("a", "", "e.io/s"))
		if _, err := r.TrustBundles(t.Context(), "e.io/s"); err == nil || apierrors.IsNotFound(err) {
			t.Fatalf("got %v", err)
		}
		broken.Store(false)
		pass(2 * time.Second)
		if told := r.notifiedPods(); len(told) != 1 || len(r.texts(t, "e.io/s")) != 0 {
			t.Errorf("after an error told are %v", told)
		}
		pass(5 * time.Minute)
		if told := r.notifiedPods(); len(told) != 0 || watches < 3 {
			t.Errorf("without a change told are %v, in %d watches", told, watches)
		}
		if _, err := r.client.CertificatesV1().ClusterTrustBundles().Create(t.Context(),
			trustBundle("a", "e.io/s", "2"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Minute)
		if told := r.notifiedPods(); len(told) != 1 || len(r.texts(t, "e.io/s")) != 1 {
			t.Errorf("after a change told are %v", told)
		}
	})
}

// bundlesAfter does not change the held list, which others read.
func TestBundlesAfter(t *testing.T) {
	held := &certificatesv1.ClusterTrustBundleList{Items: []certificatesv1.ClusterTrustBundle{
		*trustBundle("a", "s", "1"), *trustBundle("b", "s", "1")}}
	for _, row := range []struct {
		held  *certificatesv1.ClusterTrustBundleList
		event watch.EventType
		about string
		want  []string
	}{
		{nil, watch.Added, "a", []string{"a 2"}},
		{nil, watch.Deleted, "a", nil},
		{held, watch.Added, "c", []string{"a 1", "b 1", "c 2"}},
		{held, watch.Modified, "a", []string{"a 2", "b 1"}},
		{held, watch.Added, "a", []string{"a 2", "b 1"}},
		{held, watch.Deleted, "a", []string{"b 1"}},
		{held, watch.Deleted, "c", []string{"a 1", "b 1"}},
	} {
		var got []string
		next := bundlesAfter(row.held, row.event, trustBundle(row.about, "s", "2"))
		for _, b := range next.Items {
			got = append(got, b.Name+" "+b.ResourceVersion)
		}
		slices.Sort(got)
		if !slices.Equal(got, row.want) || next.ResourceVersion != "2" {
			t.Errorf("%s %s: %q of %s, want %q", row.event, row.about, got, next.ResourceVersion, row.want)
		}
	}
	if len(held.Items) != 2 || held.Items[0].ResourceVersion != "1" || held.Items[1].Name != "b" {
		t.Errorf("what is held was changed: %+v", held.Items)
	}
}
