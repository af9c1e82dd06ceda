package authz_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"

	"keelson.dev/services/apiserver/internal/servertest"
)

// nodes are two nodes, each with a Pod that names a Secret and an account, in a namespace of a real server.
type nodes struct {
	*servertest.Server
	namespace string
	a         kubernetes.Interface
	mine      *corev1.Pod
}

const unrelated = "no relationship found between node 'a' and this object"

func TestNodes(t *testing.T) {
	n := newNodes(t)
	for name, test := range map[string]func(*testing.T, *nodes){
		"secrets": testSecrets, "no longer": testNoLonger, "pods": testPods, "tokens": testTokens,
		"nodes and leases": testNodesAndLeases,
		"reviews":          testReviews, "rules": testRules,
	} {
		t.Run(name, func(t *testing.T) { test(t, n) })
	}
}

func newNodes(t *testing.T) *nodes {
	s := servertest.Start(t)
	n := &nodes{Server: s, namespace: s.Namespace(t, "nodes")}
	config := s.ConfigAs(servertest.Admin)
	config.Impersonate = restclient.ImpersonationConfig{UserName: "system:node:a", Groups: []string{"system:nodes",
		"system:authenticated"}}
	var err error
	if n.a, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatalf("making the client of node a: %v", err)
	}
	for _, name := range []string{"mine", "theirs", "later"} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := s.Client.CoreV1().Secrets(n.namespace).Create(t.Context(), secret,
			metav1.CreateOptions{}); err != nil {
			t.Fatalf("creating the Secret %s: %v", name, err)
		}
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := s.Client.CoreV1().ServiceAccounts(n.namespace).Create(t.Context(), account,
			metav1.CreateOptions{}); err != nil {
			t.Fatalf("creating the account %s: %v", name, err)
		}
	}
	n.mine = n.run(t, "a", "mine")
	n.run(t, "b", "theirs")
	return n
}

// run puts a Pod on the node, which names the Secret and the account of its own name.
func (n *nodes) run(t *testing.T, node, name string) *corev1.Pod {
	t.Helper()
	pod, err := n.Client.CoreV1().Pods(n.namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeName: node, ServiceAccountName: name, Volumes: volumes(name),
			Containers: []corev1.Container{{Name: "c", Image: "i", EnvFrom: []corev1.EnvFromSource{
				{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}},
			}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating the Pod %s: %v", name, err)
	}
	return pod
}

// volumes are a token for an audience, one of a driver, and a claim.
func volumes(claim string) []corev1.Volume {
	return []corev1.Volume{
		{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
				Audience: "vault", Path: "token"}}}}}},
		{Name: "inline", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "inline.example.com"}}},
		{Name: "claimed", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.
			PersistentVolumeClaimVolumeSource{ClaimName: claim}}},
	}
}

// refused wants a 403 with the reason.
func refused(t *testing.T, what string, err error, reason string) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), reason) {
		t.Errorf("%s: %v, want it forbidden: %s", what, err, reason)
	}
}

func allowed(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v, want it allowed", what, err)
	}
}

func testSecrets(t *testing.T, n *nodes) {
	ctx, secrets := t.Context(), n.a.CoreV1().Secrets(n.namespace)
	_, err := secrets.Get(ctx, "mine", metav1.GetOptions{})
	allowed(t, "reading the Secret of its Pod", err)
	one := metav1.ListOptions{FieldSelector: "metadata.name=mine"}
	_, err = secrets.List(ctx, one)
	allowed(t, "listing the Secret of its Pod by name", err)
	w, err := secrets.Watch(ctx, one)
	allowed(t, "watching the Secret of its Pod by name", err)
	if err == nil {
		w.Stop()
	}
	_, err = secrets.Get(ctx, "theirs", metav1.GetOptions{})
	refused(t, "reading the Secret of another node's Pod", err, unrelated)
	_, err = secrets.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=theirs"})
	refused(t, "watching the Secret of another node's Pod", err, unrelated)
	_, err = secrets.List(ctx, metav1.ListOptions{})
	refused(t, "listing Secrets", err, "No Object name found")
	_, err = n.a.CoreV1().Secrets("").List(ctx, one)
	refused(t, "listing Secrets of all namespaces", err, "can only read namespaced object of this type")
	_, err = n.a.CoreV1().ConfigMaps(n.namespace).List(ctx, metav1.ListOptions{})
	refused(t, "listing ConfigMaps", err, "No Object name found")
}

// A node reads a Secret from the moment its Pod is bound, and not after the Pod is gone.
func testNoLonger(t *testing.T, n *nodes) {
	ctx, secrets := t.Context(), n.a.CoreV1().Secrets(n.namespace)
	_, err := secrets.Get(ctx, "later", metav1.GetOptions{})
	refused(t, "reading the Secret of a Pod to come", err, unrelated)
	n.run(t, "a", "later")
	_, err = secrets.Get(ctx, "later", metav1.GetOptions{})
	allowed(t, "reading the Secret of a Pod that has just come", err)
	now := int64(0)
	if err := n.Client.CoreV1().Pods(n.namespace).Delete(ctx, "later",
		metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatalf("deleting the Pod: %v", err)
	}
	servertest.Eventually(t, "the Secret of a Pod that is gone cannot be read", func(ctx context.Context) string {
		if _, err := secrets.Get(ctx, "later", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
			return fmt.Sprintf("reading it: %v", err)
		}
		return ""
	})
}

func testPods(t *testing.T, n *nodes) {
	ctx, pods := t.Context(), n.a.CoreV1().Pods(n.namespace)
	_, err := pods.Get(ctx, "mine", metav1.GetOptions{})
	allowed(t, "reading its Pod", err)
	_, err = pods.Get(ctx, "theirs", metav1.GetOptions{})
	refused(t, "reading another node's Pod", err, unrelated)
	err = n.a.CoreV1().RESTClient().Get().Namespace(n.namespace).Resource("pods").Name("theirs").SubResource(
		"status").Do(ctx).Error()
	refused(t, "reading the status of another node's Pod", err, "")
	const own = "can only list/watch pods with spec.nodeName field selector"
	_, err = pods.List(ctx, metav1.ListOptions{})
	refused(t, "listing Pods", err, own)
	_, err = n.a.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=b"})
	refused(t, "listing another node's Pods", err, own)
	list, err := n.a.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=a"})
	allowed(t, "listing its Pods", err)
	for _, pod := range list.Items {
		if pod.Spec.NodeName != "a" {
			t.Errorf("the list of its Pods has %s of node %q", pod.Name, pod.Spec.NodeName)
		}
	}
}

func testTokens(t *testing.T, n *nodes) {
	accounts := n.a.CoreV1().ServiceAccounts(n.namespace)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: "mine", UID: n.mine.UID,
		}}}
	_, err := accounts.CreateToken(t.Context(), "mine", request, metav1.CreateOptions{})
	allowed(t, "a token for its Pod", err)
	_, err = accounts.CreateToken(t.Context(), "theirs", request, metav1.CreateOptions{})
	refused(t, "a token of another node's account", err, unrelated)
	testAudiences(t, n, request)
	_, err = accounts.Get(t.Context(), "mine", metav1.GetOptions{})
	allowed(t, "reading the account of its Pod", err)
	_, err = accounts.Get(t.Context(), "theirs", metav1.GetOptions{})
	refused(t, "reading the account of another node's Pod", err, unrelated)
}

// testAudiences: with a token for any audience a node could act in its Pod's name there. So the audience must be one
// that the Pod names, a driver of its volumes, or a role.
func testAudiences(t *testing.T, n *nodes, request *authenticationv1.TokenRequest) {
	ctx := t.Context()
	ask := func(audiences ...string) error {
		with := request.DeepCopy()
		with.Spec.Audiences = audiences
		_, err := n.a.CoreV1().ServiceAccounts(n.namespace).CreateToken(ctx, "mine", with, metav1.CreateOptions{})
		return err
	}
	allowed(t, "a token for who its Pod names", ask("vault"))
	refused(t, "a token for two", ask("vault", "bank"), "spec.audiences: node may only request 0 or 1 audiences, not 2")
	refused(t, "a token for somebody else", ask("bank"), `spec.audiences: audience "bank" not found in pod spec volume`)
	for name, audience := range map[string]string{"inline.example.com": "inline", "claimed.example.com": "claimed",
		"others.example.com": "others"} {
		driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: storagev1.CSIDriverSpec{TokenRequests: []storagev1.TokenRequest{{Audience: audience}}}}
		if _, err := n.Client.StorageV1().CSIDrivers().Create(ctx, driver, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	claimVolume(t, n)
	servertest.Eventually(t, "a token for the driver of a claimed volume", func(context.Context) string {
		if err := ask("claimed"); err != nil {
			return err.Error()
		}
		return ""
	})
	allowed(t, "a token for the driver of a volume that the Pod describes", ask("inline"))
	refused(t, "a token for another driver", ask("others"), "not found in pod spec volume")
	rule := rbacv1.PolicyRule{Verbs: []string{"request-serviceaccounts-token-audience"}, APIGroups: []string{""},
		Resources: []string{"bank"}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "bank-tokens"}, Rules: []rbacv1.PolicyRule{rule}}
	if _, err := n.Client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	given := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{
		APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}, Subjects: []rbacv1.Subject{{
		APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:nodes"}}}
	if _, err := n.Client.RbacV1().ClusterRoleBindings().Create(ctx, given, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "a token for whom a role names", func(context.Context) string {
		if err := ask("bank"); err != nil {
			return err.Error()
		}
		return ""
	})
}

// claimVolume makes the volume of a driver and binds it to the claim of the Pod mine.
func claimVolume(t *testing.T, n *nodes) {
	t.Helper()
	class := ""
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Spec: corev1.PersistentVolumeSpec{
		Capacity: size, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: "claimed.example.com", VolumeHandle: "1"}}}}
	if _, err := n.Client.CoreV1().PersistentVolumes().Create(t.Context(), volume, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "mine"},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume.Name, StorageClassName: &class,
			AccessModes: volume.Spec.AccessModes, Resources: corev1.VolumeResourceRequirements{Requests: size}}}
	if _, err := n.Client.CoreV1().PersistentVolumeClaims(n.namespace).Create(t.Context(), claim,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func testNodesAndLeases(t *testing.T, n *nodes) {
	ctx, nodes := t.Context(), n.a.CoreV1().Nodes()
	if _, err := nodes.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("reading itself before it is registered: %v, want not found", err)
	}
	_, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	allowed(t, "registering", err)
	_, err = nodes.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=a"})
	allowed(t, "listing itself", err)
	// By its role, not by the authorizer of nodes: a nodeagent leads to the Pods of the others.
	_, err = nodes.List(ctx, metav1.ListOptions{})
	allowed(t, "listing nodes", err)
	if _, err := nodes.Get(ctx, "b", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("reading another node: %v, want not found", err)
	}
	refused(t, "deleting another node", nodes.Delete(ctx, "b", metav1.DeleteOptions{}), "")
	if _, err := n.a.CoordinationV1().Leases("kube-node-lease").Get(ctx, "a",
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("reading its own lease: %v, want not found", err)
	}
	_, err = n.a.CoordinationV1().Leases("kube-node-lease").Get(ctx, "b", metav1.GetOptions{})
	refused(t, "reading another node's lease", err,
		"can only access node lease with the same name as the requesting node")
}

// What kubectl auth can-i asks gets the answer that the request itself would get.
func testReviews(t *testing.T, n *nodes) {
	onA := &authorizationv1.FieldSelectorAttributes{RawSelector: "spec.nodeName=a"}
	for _, row := range []struct {
		attributes authorizationv1.ResourceAttributes
		allowed    bool
		reason     string
	}{
		{authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Name: "mine"}, true, ""},
		{authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Name: "theirs"}, false,
			"Node: " + unrelated},
		{authorizationv1.ResourceAttributes{Verb: "list", Resource: "secrets"}, false, "Node: No Object name found"},
		{authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", FieldSelector: onA}, true, ""},
		{authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"}, false,
			"Node: can only list/watch pods with spec.nodeName field selector"},
		{authorizationv1.ResourceAttributes{Verb: "list", Group: "apps", Resource: "deployments"}, false, ""},
	} {
		row.attributes.Namespace = n.namespace
		review, err := n.Client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
			&authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{User: "system:node:a", Groups: []string{"system:nodes"},
					ResourceAttributes: &row.attributes},
			}, metav1.CreateOptions{})
		if err != nil || review.Status.Allowed != row.allowed || review.Status.Reason != row.reason {
			t.Errorf("may node a %s %s %s: %+v, %v, want %v %q", row.attributes.Verb, row.attributes.Resource,
				row.attributes.Name, review.Status, err, row.allowed, row.reason)
		}
	}
}

func testRules(t *testing.T, n *nodes) {
	review, err := n.a.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
		&authorizationv1.SelfSubjectRulesReview{
			Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: n.namespace},
		}, metav1.CreateOptions{})
	if err != nil || !review.Status.Incomplete || !strings.Contains(fmt.Sprint(review.Status.ResourceRules),
		"pods/eviction") {
		t.Errorf("the node's rules: %+v, %v, want its static rules, and that they are not all", review.Status, err)
	}
}
