package objectcache

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

// rig is a cache over a client in memory, with the Pods that were notified of changes.
type rig struct {
	*Cache
	client   *fake.Clientset
	mu       sync.Mutex
	notified []types.UID
}

// run runs the test in a bubble of its own time and ends the cache's watches at its end.
func run(t *testing.T, test func(t *testing.T, r *rig), objects ...runtime.Object) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := &rig{client: fake.NewClientset(objects...)}
		r.Cache = New(ctx, r.client, func(pod types.UID) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.notified = append(r.notified, pod)
		})
		r.client.PrependWatchReactor("*", r.watch)
		test(t, r)
		cancel()
		r.Wait()
	})
}

// watch does what the client in memory leaves out: it obeys the name, or the signer, in the field selector.
func (r *rig) watch(action clienttesting.Action) (bool, watch.Interface, error) {
	restrictions := action.(clienttesting.WatchAction).GetWatchRestrictions()
	selector := restrictions.Fields
	events, err := r.client.Tracker().Watch(action.GetResource(), action.GetNamespace())
	if err != nil {
		return true, nil, err
	}
	return true, watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
		return event, selector.Matches(selectable(event.Object))
	}), nil
}

// selectable returns the fields by which the cache watches.
func selectable(object runtime.Object) fields.Set {
	set := fields.Set{}
	if accessor, err := meta.Accessor(object); err == nil {
		set["metadata.name"] = accessor.GetName()
	}
	if bundle, is := object.(*certificatesv1.ClusterTrustBundle); is {
		set["spec.signerName"] = bundle.Spec.SignerName
	}
	return set
}

func (r *rig) notifiedPods() []types.UID {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	notified := r.notified
	r.notified = nil
	return notified
}

func (r *rig) actions(verb, resource string) int {
	count := 0
	for _, action := range r.client.Actions() {
		if action.Matches(verb, resource) {
			count++
		}
	}
	return count
}

func podUsing(uid types.UID, names ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p-" + string(uid), Namespace: "ns", UID: uid},
		Spec: corev1.PodSpec{ServiceAccountName: "robot"}}
	for _, name := range names {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}})
	}
	return pod
}

func configMapWith(name, version, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "cm",
		ResourceVersion: version}, Data: map[string]string{"k": value}}
}

// SAF-120: a change of an object reaches exactly the Pods that name it.
func TestChangesReachThePodsThatNameTheObject(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		r.Register(podUsing("a", "one"))
		r.Register(podUsing("b", "one", "two"))
		r.Register(podUsing("c", "two"))
		object, err := r.ConfigMap(t.Context(), "ns", "one")
		if err != nil || object.Data["k"] != "old" {
			t.Fatalf("got %v, %v", object, err)
		}
		if notified := r.notifiedPods(); len(notified) != 0 {
			t.Errorf("the first read notified %v", notified)
		}
		if _, err := r.client.CoreV1().ConfigMaps("ns").Update(t.Context(), configMapWith("one", "2", "new"),
			metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		notified := map[types.UID]bool{}
		for _, pod := range r.notifiedPods() {
			notified[pod] = true
		}
		if !reflect.DeepEqual(notified, map[types.UID]bool{"a": true, "b": true}) {
			t.Errorf("notified %v", notified)
		}
		if object, _ := r.ConfigMap(t.Context(), "ns", "one"); object.Data["k"] != "new" {
			t.Errorf("got %v", object.Data)
		}
	}, configMapWith("one", "1", "old"), configMapWith("two", "1", ""))
}

func TestMissingObjectsAppearAndDisappear(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		r.Register(podUsing("a", "one"))
		if _, err := r.ConfigMap(t.Context(), "ns", "one"); !apierrors.IsNotFound(err) ||
			err.Error() != `configmap "one" not found` {
			t.Fatalf("got %v", err)
		}
		synctest.Wait() // until it watches: a watch of the client in memory does not include earlier changes
		if _, err := r.client.CoreV1().ConfigMaps("ns").Create(t.Context(), configMapWith("one", "1", "x"),
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if notified := r.notifiedPods(); len(notified) != 1 {
			t.Errorf("notified %v", notified)
		}
		if object, err := r.ConfigMap(t.Context(), "ns", "one"); err != nil || object.Data["k"] != "x" {
			t.Errorf("got %v, %v", object, err)
		}
		if err := r.client.CoreV1().ConfigMaps("ns").Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		r.notifiedPods()
		if _, err := r.ConfigMap(t.Context(), "ns", "one"); !apierrors.IsNotFound(err) {
			t.Errorf("after the deletion: %v", err)
		}
	})
}

// One watch per object, for any number of Pods; none when no Pod is left; never a list.
func TestReferencesAreCounted(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		for _, uid := range []types.UID{"a", "b", "c"} {
			r.Register(podUsing(uid, "one"))
			r.Register(podUsing(uid, "one"))
		}
		synctest.Wait()
		if gets, watches, lists := r.actions("get", "configmaps"), r.actions("watch", "configmaps"),
			r.actions("list", "configmaps"); gets != 1 || watches != 1 || lists != 0 {
			t.Errorf("%d gets, %d watches, %d lists", gets, watches, lists)
		}
		r.Unregister("a")
		r.Register(podUsing("b")) // no longer names it
		if _, err := r.ConfigMap(t.Context(), "ns", "one"); err != nil {
			t.Errorf("while c is left: %v", err)
		}
		r.Unregister("c")
		r.Unregister("c")
		if _, err := r.ConfigMap(t.Context(), "ns", "one"); err == nil ||
			err.Error() != `object "ns"/"one" not registered` {
			t.Errorf("after the last: %v", err)
		}
	}, configMapWith("one", "1", ""))
}

func TestAServerThatFailsIsAskedAgain(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		var broken atomic.Bool
		broken.Store(true)
		r.client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			return broken.Load(), nil, errors.New("connection refused")
		})
		r.Register(podUsing("a", "one"))
		if _, err := r.ConfigMap(t.Context(), "ns", "one"); err == nil || apierrors.IsNotFound(err) {
			t.Fatalf("got %v", err)
		}
		broken.Store(false)
		pass(2 * time.Second) // in the bubble: the time that a first retry may take
		if notified := r.notifiedPods(); len(notified) != 1 {
			t.Errorf("notified %v", notified)
		}
		if object, err := r.ConfigMap(t.Context(), "ns", "one"); err != nil || object.Data["k"] != "x" {
			t.Errorf("got %v, %v", object, err)
		}
	}, configMapWith("one", "1", "x"))
}

func TestImmutableObjectsAreNotWatched(t *testing.T) {
	object := configMapWith("one", "1", "x")
	object.Immutable = ptr.To(true)
	run(t, func(t *testing.T, r *rig) {
		r.Register(podUsing("a", "one"))
		synctest.Wait()
		if watches := r.actions("watch", "configmaps"); watches != 0 {
			t.Errorf("%d watches", watches)
		}
		if got, err := r.ConfigMap(t.Context(), "ns", "one"); err != nil || got.Data["k"] != "x" {
			t.Errorf("got %v, %v", got, err)
		}
	}, object)
}

func TestGetEndsWithItsContext(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		r.client.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
			pass(time.Minute)
			return false, nil, nil
		})
		pod := podUsing("a")
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
		r.Register(pod)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.Secret(ctx, "ns", "pull"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// issue makes the fake client issue numbered tokens of the requested lifetime.
func (r *rig) issue(t *testing.T) (count *int, fail *error) {
	count, fail = new(int), new(error)
	r.client.PrependReactor("create", "serviceaccounts/token", func(action clienttesting.Action) (bool, runtime.Object,
		error) {
		if *fail != nil {
			return true, nil, *fail
		}
		request := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenRequest).DeepCopy()
		if request.Spec.BoundObjectRef.UID != "a" || request.Spec.BoundObjectRef.Kind != "Pod" {
			t.Errorf("bound to %v", request.Spec.BoundObjectRef)
		}
		*count++
		request.Status.Token = "token-" + string(rune('0'+*count))
		request.Status.ExpirationTimestamp = metav1.NewTime(
			time.Now().Add(time.Duration(*request.Spec.ExpirationSeconds) * time.Second))
		return true, request, nil
	})
	return count, fail
}

// POD-212: tokens are renewed after 80 % of their life, and a failed renewal does not remove a valid token.
func TestTokens(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		_, fail := r.issue(t)
		ask := func() (string, time.Duration, error) {
			token, err := r.ServiceAccountToken(t.Context(), podUsing("a"), "vault", time.Hour)
			return token.Value, time.Until(token.RefreshAt), err
		}
		if value, in, err := ask(); value != "token-1" || in != 48*time.Minute || err != nil {
			t.Fatalf("got %s, %v, %v", value, in, err)
		}
		pass(47 * time.Minute)
		if value, in, err := ask(); value != "token-1" || in != time.Minute || err != nil {
			t.Errorf("before its time: %s, %v, %v", value, in, err)
		}
		pass(time.Minute)
		*fail = errors.New("no answer")
		if value, in, err := ask(); value != "token-1" || in != 10*time.Second || err != nil {
			t.Errorf("renewal fails: %s, %v, %v", value, in, err)
		}
		*fail = nil
		if value, _, err := ask(); value != "token-2" || err != nil {
			t.Errorf("renewed: %s, %v", value, err)
		}
		*fail = errors.New("no answer")
		pass(time.Hour)
		if _, _, err := ask(); err == nil || err.Error() != "failed to fetch token: no answer" {
			t.Errorf("expired: %v", err)
		}
	})
}

func TestTokensAreForgottenWithThePod(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		count, _ := r.issue(t)
		for range 2 {
			if _, err := r.ServiceAccountToken(t.Context(), podUsing("a"), "", time.Hour); err != nil {
				t.Fatal(err)
			}
			r.Unregister("a")
		}
		if *count != 2 {
			t.Errorf("%d tokens were issued", *count)
		}
	})
}

func TestRefreshAt(t *testing.T) {
	issued := time.Unix(0, 0)
	for life, want := range map[time.Duration]time.Duration{
		10 * time.Minute: 8 * time.Minute, time.Hour: 48 * time.Minute, 365 * 24 * time.Hour: 24 * time.Hour,
	} {
		if got := refreshAt(issued, issued.Add(life)).Sub(issued); got != want {
			t.Errorf("%v: %v, want %v", life, got, want)
		}
	}
}

func TestReferences(t *testing.T) {
	ref := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	pod := podUsing("a", "volume")
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{ref("pull"), ref("")}
	pod.Spec.InitContainers = []corev1.Container{{EnvFrom: []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("init")}},
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref("init")}}}}}
	pod.Spec.Containers = []corev1.Container{{Env: []corev1.EnvVar{
		{Name: "A", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: ref("env")}}},
		{Name: "B", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: ref("env")}}}, {Name: "C"}}}}
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{
		{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref("debug")}}}}}}
	pod.Spec.Volumes = append(pod.Spec.Volumes,
		corev1.Volume{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "volume"}}},
		corev1.Volume{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: ref("projected")}},
				{Secret: &corev1.SecretProjection{LocalObjectReference: ref("projected")}},
				{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Name: ptr.To("bundle")}},
				{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{SignerName: ptr.To("e.io/s")}}}}}})
	want := map[key]bool{}
	for _, name := range []string{"volume", "init", "env", "projected"} {
		want[key{configMap, "ns", name}], want[key{secret, "ns", name}] = true, true
	}
	want[key{secret, "ns", "pull"}], want[key{secret, "ns", "debug"}] = true, true
	want[key{clusterTrustBundle, "", "bundle"}], want[key{signerTrustBundles, "", "e.io/s"}] = true, true
	if got := references(pod); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// pass lets time go by in the bubble of a test.
func pass(d time.Duration) { <-time.After(d) }

// A claim is followed while a Pod names it, its volume until it is bound; both by name, never by a list.
func TestClaimsAndVolumes(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "ns", UID: "c"}}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv", UID: "v", ResourceVersion: "1"}}
	run(t, func(t *testing.T, r *rig) {
		pod := podUsing("a")
		pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		if _, err := r.PersistentVolume(t.Context(), "a", "pv"); err == nil {
			t.Error("a pod that is not registered has a volume")
		}
		r.Register(pod)
		if got, err := r.Claim(t.Context(), "ns", "data"); err != nil || got.UID != "c" {
			t.Fatalf("got %v, %v", got, err)
		}
		if _, err := r.PersistentVolume(t.Context(), "a", "other"); !apierrors.IsNotFound(err) ||
			err.Error() != `persistentvolume "other" not found` {
			t.Errorf("got %v", err)
		}
		if got, err := r.PersistentVolume(t.Context(), "a", "pv"); err != nil || got.UID != "v" {
			t.Fatalf("got %v, %v", got, err)
		}
		synctest.Wait()
		bound := pv.DeepCopy()
		bound.ResourceVersion, bound.Status.Phase = "2", corev1.VolumeBound
		if _, err := r.client.CoreV1().PersistentVolumes().Update(t.Context(), bound,
			metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if notified := r.notifiedPods(); !reflect.DeepEqual(notified, []types.UID{"a"}) {
			t.Errorf("notified %v", notified)
		}
		pass(20 * time.Minute)
		before := r.actions("get", "persistentvolumes")
		r.Register(pod) // what it names is the same; its volumes stay
		pass(20 * time.Minute)
		if got, err := r.PersistentVolume(t.Context(), "a", "pv"); err != nil ||
			got.Status.Phase != corev1.VolumeBound {
			t.Errorf("got %v, %v", got, err)
		}
		if after := r.actions("get", "persistentvolumes"); after != before {
			t.Errorf("read %d times more", after-before)
		}
		r.Unregister("a")
		if _, err := r.Claim(t.Context(), "ns", "data"); err == nil {
			t.Error("followed after the last pod")
		}
	}, claim, pv)
}

// The volume of a driver is followed as long as a Pod has it, since it may grow; a folder of the node's own is not.
func TestVolumesThatGrow(t *testing.T) {
	for driver, grows := range map[string]bool{"disk.example.com": true, "local.keelson.dev": false} {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv", UID: "v", ResourceVersion: "1"},
			Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: driver}}},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}}
		run(t, func(t *testing.T, r *rig) {
			r.Register(podUsing("a"))
			if _, err := r.PersistentVolume(t.Context(), "a", "pv"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			grown := pv.DeepCopy()
			grown.ResourceVersion = "2"
			grown.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: apiresource.MustParse("2Gi")}
			if _, err := r.client.CoreV1().PersistentVolumes().Update(t.Context(), grown,
				metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			got, err := r.PersistentVolume(t.Context(), "a", "pv")
			if err != nil || (len(got.Spec.Capacity) > 0) != grows || (len(r.notifiedPods()) > 0) != grows {
				t.Errorf("%s: it is %v, %v", driver, got.Spec.Capacity, err)
			}
		}, pv)
	}
}

// The handler is the one that the class names, not the class's own name.
func TestRuntimeHandler(t *testing.T) {
	client := fake.NewClientset(&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "safe"}, Handler: "kata"})
	c := New(t.Context(), client, func(types.UID) {})
	if got, err := c.RuntimeHandler(t.Context(), "safe"); got != "kata" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := c.RuntimeHandler(t.Context(), "gone"); err == nil ||
		err.Error() != `failed to get sandbox runtime: runtimeclasses.node.k8s.io "gone" not found` {
		t.Errorf("a class that is not there: %v", err)
	}
}
