package resourcetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"keelson.dev/services/apiserver/internal/servertest"
)

// DEP-044, DEP-056, POD-223: one store, two views, field selectors in both.
func testEvents(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	ns := s.Namespace(t, "events")
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	old := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "old"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: ns, Name: "web", UID: "u1",
			FieldPath: "spec.containers{nginx}"},
		Reason: "Pulled", Message: "done", Type: corev1.EventTypeNormal, Count: 3, FirstTimestamp: now,
		LastTimestamp: now,
		Source:        corev1.EventSource{Component: "kubelet", Host: "n1"},
	}
	stored, err := s.Client.CoreV1().Events(ns).Create(ctx, old, metav1.CreateOptions{})
	if err != nil || stored.Count != 3 || stored.Source.Host != "n1" || !stored.FirstTimestamp.Equal(&now) {
		t.Fatalf("storing an Event of the older form: %+v, %v", stored, err)
	}
	fresh := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "new"}, EventTime: metav1.NowMicro(),
		ReportingController: "keelson.dev/scheduler",
		ReportingInstance:   "s1", Action: "Binding", Reason: "Scheduled", Type: corev1.EventTypeNormal,
		Note:      "assigned",
		Regarding: corev1.ObjectReference{Kind: "Pod", Namespace: ns, Name: "other"},
	}
	if _, err := s.Client.EventsV1().Events(ns).Create(ctx, fresh, metav1.CreateOptions{}); err != nil {
		t.Fatalf("storing an Event of the newer form: %v", err)
	}
	for selector, want := range map[string]string{
		"involvedObject.name=web": "old", "involvedObject.uid=u1": "old", "reason=Scheduled": "new",
		"involvedObject.kind=Pod,type=Normal,source=kubelet": "old",
		"reportingComponent=keelson.dev/scheduler":           "new",
	} {
		list, err := s.Client.CoreV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: selector})
		if err != nil || len(list.Items) != 1 || list.Items[0].Name != want {
			t.Errorf("core, %s: %+v, %v", selector, list, err)
		}
	}
	list, err := s.Client.EventsV1().Events(ns).List(ctx, metav1.ListOptions{FieldSelector: "regarding.name=web"})
	if err != nil || len(list.Items) != 1 || list.Items[0].Note != "done" || list.Items[0].DeprecatedCount != 3 {
		t.Errorf("the older Event in the newer view: %+v, %v", list, err)
	}
	if core, err := s.Client.CoreV1().Events(ns).Get(ctx, "new", metav1.GetOptions{}); err != nil ||
		core.Message != "assigned" || core.InvolvedObject.Name != "other" {
		t.Errorf("the newer Event in the older view: %+v, %v", core, err)
	}
	bare := fresh.DeepCopy()
	bare.Name, bare.EventTime = "bare", metav1.MicroTime{}
	_, err = s.Client.EventsV1().Events(ns).Create(ctx, bare, metav1.CreateOptions{})
	refusedAt(t, err, "eventTime")
	elsewhere := old.DeepCopy()
	elsewhere.Name, elsewhere.InvolvedObject.Namespace = "elsewhere", "default"
	_, err = s.Client.CoreV1().Events(ns).Create(ctx, elsewhere, metav1.CreateOptions{})
	refusedAt(t, err, "involvedObject.namespace")
}

func testSecrets(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	secrets := s.Client.CoreV1().Secrets(s.Namespace(t, "secrets"))
	stored := must[*corev1.Secret](t, "creating")(secrets.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, StringData: map[string]string{"user": "ann"}},
		metav1.CreateOptions{}))
	if string(stored.Data["user"]) != "ann" || len(stored.StringData) != 0 || stored.Type != corev1.SecretTypeOpaque {
		t.Errorf("stored %+v", stored)
	}
	patched := must[*corev1.Secret](t, "patching")(secrets.Patch(ctx, "a", types.MergePatchType,
		[]byte(`{"stringData":{"password":"x"}}`), metav1.PatchOptions{}))
	if string(patched.Data["password"]) != "x" || string(patched.Data["user"]) != "ann" {
		t.Errorf("patched to %v", patched.Data)
	}
	_, err := secrets.Patch(ctx, "a", types.MergePatchType, []byte(`{"type":"kubernetes.io/tls"}`),
		metav1.PatchOptions{})
	refusedAt(t, err, "type")
	if _, err := secrets.Patch(ctx, "a", types.MergePatchType, []byte(`{"immutable":true}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatalf("making it immutable: %v", err)
	}
	_, err = secrets.Patch(ctx, "a", types.MergePatchType, []byte(`{"stringData":{"password":"y"}}`),
		metav1.PatchOptions{})
	refusedAt(t, err, "data")
	list, err := secrets.List(ctx, metav1.ListOptions{FieldSelector: "type=Opaque"})
	if err != nil || len(list.Items) != 1 {
		t.Errorf("by type: %+v, %v", list, err)
	}
}

func newPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:1.14.2"}}}}
}

// Every Pod runs as an account and gets its token.
func testPodAccounts(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	ns := s.Namespace(t, "accounts")
	pod := must[*corev1.Pod](t, "creating")(s.Client.CoreV1().Pods(ns).Create(ctx, newPod("web"),
		metav1.CreateOptions{}))
	if pod.Spec.ServiceAccountName != "default" || pod.Spec.DeprecatedServiceAccount != "default" ||
		len(pod.Spec.Volumes) != 1 || len(pod.Spec.Containers[0].VolumeMounts) != 1 {
		t.Errorf("the Pod got %+v", pod.Spec)
	}
	if len(pod.Spec.Tolerations) != 2 || *pod.Spec.Tolerations[0].TolerationSeconds != 300 {
		t.Errorf("tolerations %+v", pod.Spec.Tolerations)
	}
	missing := newPod("missing")
	missing.Spec.ServiceAccountName = "missing"
	if _, err := s.Client.CoreV1().Pods(ns).Create(ctx, missing, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("an unknown account: %v", err)
	}
	// DEP-230: a Pod in a new namespace waits for the controller that makes the default account.
	if _, err := s.Client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fresh"}}, metav1.CreateOptions{}); err != nil {
		t.Fatalf("creating the namespace: %v", err)
	}
	created := make(chan error, 1)
	go func() {
		_, err := s.Client.CoreV1().Pods("fresh").Create(ctx, newPod("web"), metav1.CreateOptions{})
		created <- err
	}()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	must[*corev1.ServiceAccount](t, "creating the account")(s.Client.CoreV1().ServiceAccounts("fresh").Create(ctx,
		account, metav1.CreateOptions{}))
	if err := <-created; err != nil {
		t.Errorf("a Pod in a new namespace: %v", err)
	}
}

// A node writes about itself alone.
func testNodeRestriction(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	ns := s.Namespace(t, "nodes")
	client := impersonate(t, s, "system:node:n1", "system:nodes", "system:authenticated", "system:masters")
	own := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1",
		Labels: map[string]string{"kubernetes.io/hostname": "n1"}}}
	if _, err := client.CoreV1().Nodes().Create(ctx, own, metav1.CreateOptions{}); err != nil {
		t.Fatalf("registering: %v", err)
	}
	for name, node := range map[string]*corev1.Node{
		"another node": {ObjectMeta: metav1.ObjectMeta{Name: "n2"}},
		"a role": {ObjectMeta: metav1.ObjectMeta{Name: "n1",
			Labels: map[string]string{"node-restriction.kubernetes.io/x": "y"}}},
	} {
		if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("registering %s: %v", name, err)
		}
	}
	taints := `{"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}}`
	if _, err := client.CoreV1().Nodes().Patch(ctx, "n1", types.StrategicMergePatchType, []byte(taints),
		metav1.PatchOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("tainting itself: %v", err)
	}
	for name, placed := range map[string]string{"mine": "n1", "theirs": "n2"} {
		pod := newPod(name)
		pod.Spec.NodeName = placed
		must[*corev1.Pod](t, "creating")(s.Client.CoreV1().Pods(ns).Create(ctx, pod, metav1.CreateOptions{}))
	}
	report := []byte(`{"status":{"phase":"Running"}}`)
	if _, err := client.CoreV1().Pods(ns).Patch(ctx, "mine", types.StrategicMergePatchType, report,
		metav1.PatchOptions{}, "status"); err != nil {
		t.Errorf("reporting on its own Pod: %v", err)
	}
	if _, err := client.CoreV1().Pods(ns).Patch(ctx, "theirs", types.StrategicMergePatchType, report,
		metav1.PatchOptions{}, "status"); !apierrors.IsForbidden(err) {
		t.Errorf("reporting on another node's Pod: %v", err)
	}
	zero := int64(0)
	if err := client.CoreV1().Pods(ns).Delete(ctx, "theirs",
		metav1.DeleteOptions{GracePeriodSeconds: &zero}); !apierrors.IsForbidden(err) {
		t.Errorf("deleting another node's Pod: %v", err)
	}
	if err := client.CoreV1().Pods(ns).Delete(ctx, "mine",
		metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		t.Errorf("deleting its own Pod: %v", err)
	}
	servertest.Eventually(t, "its own Pod is gone", func(ctx context.Context) string {
		if _, err := s.Client.CoreV1().Pods(ns).Get(ctx, "mine", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprint(err)
		}
		return ""
	})
}
