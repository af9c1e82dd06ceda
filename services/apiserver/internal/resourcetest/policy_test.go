package resourcetest

import (
	"context"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"keelson.dev/services/apiserver/internal/servertest"
)

// A user cannot grant rights that the user does not have, neither by a role nor by a binding.
func testEscalation(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	ns := s.Namespace(t, "escalation")
	roles := s.Client.RbacV1().Roles(ns)
	must[*rbacv1.Role](t, "creating")(roles.Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "delegate"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "rolebindings"},
				Verbs: []string{"create", "update", "get"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}},
		}}, metav1.CreateOptions{}))
	must[*rbacv1.RoleBinding](t, "binding")(s.Client.RbacV1().RoleBindings(ns).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "delegate"}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "delegate"},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: "bob"}}}, metav1.CreateOptions{}))
	bob := s.As(t, "bob")
	role := func(name string, verbs ...string) *rbacv1.Role {
		return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: verbs}}}
	}
	servertest.Eventually(t, "bob may grant what he has", func(ctx context.Context) string {
		if _, err := bob.RbacV1().Roles(ns).Create(ctx, role("same", "get"), metav1.CreateOptions{}); err != nil &&
			!apierrors.IsAlreadyExists(err) {
			return err.Error()
		}
		return ""
	})
	_, err := bob.RbacV1().Roles(ns).Create(ctx, role("more", "get", "delete"), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(),
		"is attempting to grant RBAC permissions not currently held") {
		t.Errorf("granting more by a role: %v", err)
	}
	_, err = bob.RbacV1().Roles(ns).Update(ctx, role("same", "delete"), metav1.UpdateOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("granting more by an update: %v", err)
	}
	bind := func(name, role string) error {
		_, err := bob.RbacV1().RoleBindings(ns).Create(ctx,
			&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
				RoleRef:  rbacv1.RoleRef{Kind: "ClusterRole", Name: role},
				Subjects: []rbacv1.Subject{{Kind: "User", Name: "bob"}}}, metav1.CreateOptions{})
		return err
	}
	if err := bind("admin", "cluster-admin"); !apierrors.IsForbidden(err) {
		t.Errorf("binding cluster-admin: %v", err)
	}
	must[*rbacv1.Role](t, "allowing bob to bind")(roles.Update(ctx,
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "delegate"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, Verbs: []string{"create"}},
			{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"},
				ResourceNames: []string{"view"},
				Verbs:         []string{"bind"}},
		}}, metav1.UpdateOptions{}))
	servertest.Eventually(t, "the verb bind is enough", func(context.Context) string {
		if err := bind("view", "view"); err != nil {
			return err.Error()
		}
		return ""
	})
	changed := must[*rbacv1.RoleBinding](t, "reading")(s.Client.RbacV1().RoleBindings(ns).Get(ctx, "view",
		metav1.GetOptions{}))
	changed.RoleRef.Name = "edit"
	_, err = s.Client.RbacV1().RoleBindings(ns).Update(ctx, changed, metav1.UpdateOptions{})
	refusedAt(t, err, "roleRef")
}

func newClass(name string, value int32, isDefault bool) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value,
		GlobalDefault: isDefault}
}

// SCH-006, SCH-008, SCH-010, SCH-011, SCH-012, SCH-013, SCH-015, SCH-019.
func testPriorityClasses(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	classes := s.Client.SchedulingV1().PriorityClasses()
	for name, value := range map[string]int32{"system-cluster-critical": 2000000000,
		"system-node-critical": 2000001000} {
		servertest.Eventually(t, "SCH-008: "+name+" is there", func(ctx context.Context) string {
			class, err := classes.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			if class.Value != value {
				return "its value differs"
			}
			return ""
		})
		if err := classes.Delete(ctx, name, metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("deleting %s: %v", name, err)
		}
	}
	earlier := must[*corev1.Pod](t, "creating")(s.Client.CoreV1().Pods(s.Namespace(t, "earlier")).Create(ctx,
		newPod("earlier"), metav1.CreateOptions{}))
	if *earlier.Spec.Priority != 0 || earlier.Spec.PriorityClassName != "" {
		t.Errorf("SCH-019: without a default a Pod has priority %d", *earlier.Spec.Priority)
	}
	stored := must[*schedulingv1.PriorityClass](t, "creating")(classes.Create(ctx, newClass("first", 5, true),
		metav1.CreateOptions{}))
	if *stored.PreemptionPolicy != corev1.PreemptLowerPriority {
		t.Errorf("SCH-013: policy %s", *stored.PreemptionPolicy)
	}
	_, err := classes.Create(ctx, newClass("second", 6, true), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(),
		"PriorityClass first is already marked as default. Only one default can exist") {
		t.Errorf("SCH-011: a second default: %v", err)
	}
	second := must[*schedulingv1.PriorityClass](t, "creating")(classes.Create(ctx, newClass("second", 6, false),
		metav1.CreateOptions{}))
	second.GlobalDefault = true
	if _, err := classes.Update(ctx, second, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("SCH-011: making a second the default: %v", err)
	}
	// SCH-015: the default holds for Pods from now on, and for no other.
	ns := s.Namespace(t, "default-class")
	servertest.Eventually(t, "SCH-010: Pods without a class get the default's value", func(ctx context.Context) string {
		pod := newPod("")
		pod.GenerateName = "p-"
		created, err := s.Client.CoreV1().Pods(ns).Create(ctx, pod, metav1.CreateOptions{})
		if err != nil {
			return err.Error()
		}
		if *created.Spec.Priority != 5 || created.Spec.PriorityClassName != "first" {
			return "the Pod has another priority"
		}
		return ""
	})
	if kept := must[*corev1.Pod](t, "reading")(s.Client.CoreV1().Pods("earlier").Get(ctx, "earlier",
		metav1.GetOptions{})); *kept.Spec.Priority != 0 {
		t.Errorf("SCH-015: an earlier Pod has priority %d", *kept.Spec.Priority)
	}
	stored.Value = 7
	_, err = classes.Update(ctx, stored, metav1.UpdateOptions{})
	refusedAt(t, err, "value")
	stored.Value, stored.GlobalDefault, stored.Description = 5, false, "for nobody"
	must[*schedulingv1.PriorityClass](t, "SCH-012: changing the rest")(classes.Update(ctx, stored,
		metav1.UpdateOptions{}))
}

// SCH-016, SCH-017, SCH-018, SCH-020, SCH-021, SCH-022, SCH-024.
func testPodPriorities(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	ns := s.Namespace(t, "priorities")
	pods := s.Client.CoreV1().Pods(ns)
	class := newClass("high-priority", 1000000, false)
	class.PreemptionPolicy = ptr.To(corev1.PreemptNever)
	must[*schedulingv1.PriorityClass](t, "creating")(s.Client.SchedulingV1().PriorityClasses().Create(ctx, class,
		metav1.CreateOptions{}))
	pod := func(name, class string, priority *int32) *corev1.Pod {
		pod := newPod(name)
		pod.Spec.PriorityClassName, pod.Spec.Priority = class, priority
		return pod
	}
	stored := must[*corev1.Pod](t, "creating")(pods.Create(ctx, pod("nginx", "high-priority", nil),
		metav1.CreateOptions{}))
	if *stored.Spec.Priority != 1000000 || *stored.Spec.PreemptionPolicy != corev1.PreemptNever {
		t.Errorf("SCH-017, SCH-024: %v, %v", *stored.Spec.Priority, *stored.Spec.PreemptionPolicy)
	}
	if _, err := pods.Create(ctx, pod("unknown", "unknown", nil),
		metav1.CreateOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(),
		"no PriorityClass with name unknown was found") {
		t.Errorf("SCH-018: %v", err)
	}
	if _, err := pods.Create(ctx, pod("other", "high-priority", ptr.To[int32](3)),
		metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("SCH-020: another priority: %v", err)
	}
	must[*corev1.Pod](t, "SCH-020: the same priority")(pods.Create(ctx,
		pod("same", "high-priority", ptr.To[int32](1000000)), metav1.CreateOptions{}))
	changed := stored.DeepCopy()
	changed.Spec.Priority = ptr.To[int32](7)
	if _, err := pods.Update(ctx, changed, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("SCH-021: %v", err)
	}
	if err := s.Client.SchedulingV1().PriorityClasses().Delete(ctx, "high-priority",
		metav1.DeleteOptions{}); err != nil {
		t.Fatalf("deleting the class: %v", err)
	}
	servertest.Eventually(t, "SCH-016: a deleted class is refused", func(ctx context.Context) string {
		p := newPod("")
		p.GenerateName, p.Spec.PriorityClassName = "late-", "high-priority"
		if _, err := pods.Create(ctx, p, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
			return "it was accepted"
		}
		return ""
	})
	if kept := must[*corev1.Pod](t, "reading")(pods.Get(ctx, "nginx",
		metav1.GetOptions{})); *kept.Spec.Priority != 1000000 || kept.Spec.PriorityClassName != "high-priority" {
		t.Errorf("SCH-016: a running Pod lost its priority: %+v", kept.Spec)
	}
}

// Tokens are bound to Pods that run as the account.
func testTokens(t *testing.T, s *servertest.Server) {
	ctx := t.Context()
	ns := s.Namespace(t, "bound-tokens")
	pod := newPod("web")
	pod.Spec.NodeName = "somewhere"
	pod = must[*corev1.Pod](t, "creating")(s.Client.CoreV1().Pods(ns).Create(ctx, pod, metav1.CreateOptions{}))
	must[*corev1.ServiceAccount](t, "creating")(s.Client.CoreV1().ServiceAccounts(ns).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, metav1.CreateOptions{}))
	ask := func(account string, ref *authenticationv1.BoundObjectReference,
		seconds int64) (*authenticationv1.TokenRequest, error) {
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: ref,
			ExpirationSeconds: &seconds}}
		return s.Client.CoreV1().ServiceAccounts(ns).CreateToken(ctx, account, request, metav1.CreateOptions{})
	}
	web := &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "web", UID: pod.UID}
	if got, err := ask("default", web, 3607); err != nil || got.Status.Token == "" ||
		got.Status.ExpirationTimestamp.IsZero() {
		t.Errorf("a token for the Pod: %+v, %v", got, err)
	}
	_, err := ask("default", web, 5)
	refusedAt(t, err, "spec.expirationSeconds")
	if _, err := ask("other", web, 3600); !apierrors.IsBadRequest(err) {
		t.Errorf("a token for a Pod of another account: %v", err)
	}
	stale := *web
	stale.UID = "gone"
	if _, err := ask("default", &stale, 3600); !apierrors.IsConflict(err) {
		t.Errorf("a token for a Pod that was there before: %v", err)
	}
	if _, err := ask("default", &authenticationv1.BoundObjectReference{APIVersion: "apps/v1", Kind: "Deployment",
		Name: "web"}, 3600); !apierrors.IsBadRequest(err) {
		t.Errorf("a token for a Deployment: %v", err)
	}
	if _, err := ask("missing", nil, 3600); !apierrors.IsNotFound(err) {
		t.Errorf("a token of nobody: %v", err)
	}
	node := impersonate(t, s, "system:node:elsewhere", "system:nodes", "system:masters")
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: web}}
	if _, err := node.CoreV1().ServiceAccounts(ns).CreateToken(ctx, "default", request,
		metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a node asks for a token of another node's Pod: %v", err)
	}
}
