package pod_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/servertest"
)

// POD-001 POD-002 POD-020 POD-021 POD-023 POD-024 POD-073 SAF-077
func testCreate(t *testing.T, _ *cluster, pods typedcorev1.PodInterface) {
	p := create(t, pods, nginx(func(p *corev1.Pod) { p.Name, p.Generation = "nginx.v1", 7 }))
	if p.UID == "" || p.Generation != 1 || p.Status.Phase != corev1.PodPending ||
		p.Status.QOSClass != corev1.PodQOSBestEffort ||
		*p.Spec.TerminationGracePeriodSeconds != 30 || p.Spec.Containers[0].TerminationMessagePath == "" {
		t.Errorf("created %+v", p)
	}
	must(t, pods.Delete(t.Context(), p.Name, metav1.DeleteOptions{}))
	if again := create(t, pods, nginx(func(p *corev1.Pod) { p.Name = "nginx.v1" })); again.UID == p.UID {
		t.Error("the second Pod of the name has the first one's UID")
	}
	_, err := pods.Create(t.Context(), nginx(func(p *corev1.Pod) { p.Name = "web_1" }), metav1.CreateOptions{})
	wantError(t, err, apierrors.IsInvalid, `metadata.name: Invalid value: "web_1"`)
	_, err = pods.Create(t.Context(), nginx(func(p *corev1.Pod) { p.Spec.Containers = nil }), metav1.CreateOptions{})
	wantError(t, err, apierrors.IsInvalid, `spec.containers: Required value`)
}

// POD-047 POD-048 POD-051 POD-056 SAF-003: patch and replace, within the rules.
func testUpdate(t *testing.T, _ *cluster, pods typedcorev1.PodInterface) {
	p := create(t, pods, nginx())
	patch := func(patch string) (*corev1.Pod, error) {
		return pods.Patch(t.Context(), "nginx", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	}
	patched, err := patch(`{"spec":{"containers":[{"name":"nginx","image":"nginx:2"}]}}`)
	must(t, err)
	if patched.Spec.Containers[0].Image != "nginx:2" || patched.Generation != 2 {
		t.Errorf("patched %+v", patched)
	}
	patched.Annotations = map[string]string{"description": "my frontend running nginx"}
	replaced, err := pods.Update(t.Context(), patched, metav1.UpdateOptions{})
	must(t, err)
	if replaced.Generation != 2 || replaced.Annotations["description"] == "" {
		t.Errorf("replaced %+v", replaced)
	}
	_, err = patch(`{"spec":{"containers":[{"name":"b","image":"b"}]}}`)
	wantError(t, err, apierrors.IsInvalid, `spec.containers: Forbidden: pod updates may not add or remove containers`)
	_, err = patch(`{"spec":{"restartPolicy":"Never"}}`)
	wantError(t, err, apierrors.IsInvalid, `spec: Forbidden: pod updates may not change fields other than`)
	_, err = patch(`{"metadata":{"uid":"other"}}`)
	wantError(t, err, apierrors.IsInvalid, `metadata.uid: Invalid value: "other": field is immutable`)
	if now := get(t, pods, "nginx"); now.UID != p.UID || now.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		t.Errorf("a refused patch left its trace: %+v", now)
	}
}

// POD-071 POD-114 POD-122 POD-188 SAF-083 SAF-122
func testStatus(t *testing.T, _ *cluster, pods typedcorev1.PodInterface) {
	create(t, pods, nginx())
	patch := func(patch string) (*corev1.Pod, error) {
		return pods.Patch(t.Context(), "nginx", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{},
			"status")
	}
	p, err := patch(
		`{"spec":{"nodeName":"node-2"},"status":{"phase":"Failed","qosClass":"Guaranteed","podIP":"10.0.0.1","conditions":[{"type":"www.example.com/feature-1","status":"False"}],"initContainerStatuses":[{"name":"init","ready":true,"restartCount":0,"image":"i","imageID":""}]}}`,
	)
	must(t, err)
	if p.Spec.NodeName != "" || p.Status.QOSClass != corev1.PodQOSBestEffort || p.Status.PodIPs[0].IP != "10.0.0.1" ||
		p.Generation != 1 ||
		len(p.Status.InitContainerStatuses) != 1 {
		t.Errorf("status %+v of %+v", p.Status, p.Spec)
	}
	_, err = patch(`{"status":{"phase":"Running"}}`)
	wantError(t, err, apierrors.IsInvalid, "a Pod that has Failed may not become Running")
	p, err = patch(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`)
	must(t, err)
	if len(p.Status.Conditions) != 2 {
		t.Errorf("a foreign condition was lost: %+v", p.Status.Conditions)
	}
	raw, err := pods.Patch(t.Context(), "nginx", types.MergePatchType, []byte(`{"status":{"phase":"Running"}}`),
		metav1.PatchOptions{})
	must(t, err)
	if raw.Status.Phase != corev1.PodFailed {
		t.Error("the Pod's own resource changed its status")
	}
}

// POD-025: a node's agent sees the Pods of its node, as they come and go.
func testWatchByNode(t *testing.T, c *cluster, pods typedcorev1.PodInterface) {
	create(t, pods, nginx(func(p *corev1.Pod) { p.Name = "elsewhere"; p.Spec.NodeName = "node-2" }))
	create(t, pods, nginx())
	selector := metav1.ListOptions{FieldSelector: "spec.nodeName=node-1", TimeoutSeconds: ptr.To[int64](20)}
	list, err := pods.List(t.Context(), selector)
	must(t, err)
	if len(list.Items) != 0 {
		t.Fatalf("listed %d Pods", len(list.Items))
	}
	selector.ResourceVersion = list.ResourceVersion
	watch, err := pods.Watch(t.Context(), selector)
	must(t, err)
	defer watch.Stop()
	bind(t, pods, "nginx", "node-1")
	event := <-watch.ResultChan()
	if p, ok := event.Object.(*corev1.Pod); !ok || event.Type != "ADDED" || p.Name != "nginx" {
		t.Errorf("got %+v", event)
	}
	_, err = pods.List(t.Context(),
		metav1.ListOptions{FieldSelector: "spec.restartPolicy=Always,status.phase=Pending,spec.hostNetwork=false"})
	must(t, err)
	_, err = pods.List(t.Context(), metav1.ListOptions{FieldSelector: "spec.priority=1"})
	wantError(t, err, apierrors.IsBadRequest, "field label not supported: spec.priority")
}

// POD-150 POD-151 POD-152 POD-168 SAF-124 SAF-127 SAF-128 SAF-129 SAF-130 SAF-139 SAF-145
func testDeleteGracefully(t *testing.T, _ *cluster, pods typedcorev1.PodInterface) {
	created := create(t, pods, nginx(onNode))
	remove := func(seconds *int64) {
		must(t, pods.Delete(t.Context(), "nginx", metav1.DeleteOptions{GracePeriodSeconds: seconds}))
	}
	before := time.Now()
	remove(nil)
	p := get(t, pods, "nginx")
	until := p.DeletionTimestamp.Sub(before)
	if *p.DeletionGracePeriodSeconds != 30 || until < 28*time.Second || until > 35*time.Second || p.Generation != 2 {
		t.Errorf("going away in %s with %d s, generation %d", until, *p.DeletionGracePeriodSeconds, p.Generation)
	}
	remove(ptr.To[int64](60))
	if again := get(t, pods, "nginx"); *again.DeletionGracePeriodSeconds != 30 ||
		!again.DeletionTimestamp.Equal(p.DeletionTimestamp) {
		t.Errorf("a longer period changed %s to %s", p.DeletionTimestamp, again.DeletionTimestamp)
	}
	remove(ptr.To[int64](5))
	again := get(t, pods, "nginx")
	if *again.DeletionGracePeriodSeconds != 5 ||
		p.DeletionTimestamp.Sub(again.DeletionTimestamp.Time) != 25*time.Second {
		t.Errorf("a shorter period changed %s to %s", p.DeletionTimestamp, again.DeletionTimestamp)
	}
	cleared := again.DeepCopy()
	cleared.DeletionTimestamp, cleared.DeletionGracePeriodSeconds = nil, nil
	if kept, err := pods.Update(t.Context(), cleared, metav1.UpdateOptions{}); err == nil &&
		kept.DeletionTimestamp == nil {
		t.Error("SAF-122: an update took the deletion back")
	}
	other := types.UID("other")
	err := pods.Delete(t.Context(), "nginx", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0),
		Preconditions: &metav1.Preconditions{UID: &other}})
	wantError(t, err, apierrors.IsConflict, "UID")
	err = pods.Delete(t.Context(), "nginx", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0),
		Preconditions: &metav1.Preconditions{UID: &created.UID}})
	must(t, err)
	if missing := gone(t.Context(), pods, "nginx"); missing != "" {
		t.Error(missing)
	}
}

// POD-172 POD-174 SAF-144 SAF-150
func testDeleteAtOnce(t *testing.T, _ *cluster, pods typedcorev1.PodInterface) {
	for name, p := range map[string]*corev1.Pod{"unscheduled": nginx(), "ended": nginx(onNode),
		"forced": nginx(onNode)} {
		created := create(t, pods, p)
		options := metav1.DeleteOptions{}
		switch name {
		case "ended":
			created.Status.Phase = corev1.PodSucceeded
			_, err := pods.UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
			must(t, err)
		case "forced":
			options.GracePeriodSeconds = ptr.To[int64](0)
		}
		must(t, pods.Delete(t.Context(), "nginx", options))
		if missing := gone(t.Context(), pods, "nginx"); missing != "" {
			t.Errorf("%s: %s", name, missing)
		}
	}
}

// POD-050 SAF-126
func testFinalizers(t *testing.T, _ *cluster, pods typedcorev1.PodInterface) {
	create(t, pods, nginx(onNode, func(p *corev1.Pod) { p.Finalizers = []string{"example.com/a"} }))
	must(t, pods.Delete(t.Context(), "nginx", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))
	p := get(t, pods, "nginx")
	p.Finalizers = append(p.Finalizers, "example.com/b")
	_, err := pods.Update(t.Context(), p, metav1.UpdateOptions{})
	wantError(t, err, apierrors.IsInvalid,
		"metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted")
	p = get(t, pods, "nginx")
	p.Finalizers = nil
	_, err = pods.Update(t.Context(), p, metav1.UpdateOptions{})
	must(t, err)
	if missing := gone(t.Context(), pods, "nginx"); missing != "" {
		t.Error(missing)
	}
}

// SAF-148: whoever may delete Pods may delete them at once, and needs no other right.
func testForceDeleteByOwner(t *testing.T, c *cluster, pods typedcorev1.PodInterface) {
	p := create(t, pods, nginx(onNode))
	rbac := c.Client.RbacV1()
	_, err := rbac.Roles(p.Namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "owner"},
		Rules: []rbacv1.PolicyRule{{Verbs: []string{"delete"}, APIGroups: []string{""}, Resources: []string{"pods"}}}},
		metav1.CreateOptions{})
	must(t, err)
	_, err = rbac.RoleBindings(p.Namespace).Create(t.Context(),
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "owner"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "owner"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "ann"}}},
		metav1.CreateOptions{})
	must(t, err)
	owner := c.As(t, "ann").CoreV1().Pods(p.Namespace)
	servertest.Eventually(t, "deleting as the owner", func(ctx context.Context) string {
		if err := owner.Delete(ctx, "nginx", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
			return err.Error()
		}
		return ""
	})
	if missing := gone(t.Context(), pods, "nginx"); missing != "" {
		t.Error(missing)
	}
	_, err = owner.Get(t.Context(), "nginx", metav1.GetOptions{})
	wantError(t, err, apierrors.IsForbidden, `cannot get resource "pods"`)
}

// SAF-176: one Pod of a name, and no write on top of one that its writer has not seen.
func testConsistency(t *testing.T, _ *cluster, pods typedcorev1.PodInterface) {
	stale := create(t, pods, nginx())
	_, err := pods.Create(t.Context(), nginx(), metav1.CreateOptions{})
	wantError(t, err, apierrors.IsAlreadyExists, `pods "nginx" already exists`)
	bind(t, pods, "nginx", "node-1")
	stale.Labels = map[string]string{"a": "b"}
	_, err = pods.Update(t.Context(), stale, metav1.UpdateOptions{})
	wantError(t, err, apierrors.IsConflict, "the object has been modified")
	_, err = pods.UpdateStatus(t.Context(), stale, metav1.UpdateOptions{})
	wantError(t, err, apierrors.IsConflict, "the object has been modified")
}
