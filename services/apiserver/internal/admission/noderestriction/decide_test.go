package noderestriction

import (
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

func TestForbiddenLabels(t *testing.T) {
	was := map[string]string{"kubernetes.io/hostname": "n1", "node-restriction.kubernetes.io/kept": "x", "mine": "1"}
	for _, row := range []struct {
		name string
		edit func(map[string]string)
		want []string
	}{
		{"nothing", func(map[string]string) {}, nil},
		{"its own to say", func(l map[string]string) {
			l["kubernetes.io/hostname"], l["topology.kubernetes.io/zone"], l["mine"],
				l["x.kubelet.kubernetes.io/y"] = "n2", "z", "2", "w"
		}, nil},
		{"a role", func(l map[string]string) { l["node-role.kubernetes.io/control-plane"] = "" },
			[]string{"node-role.kubernetes.io/control-plane"}},
		{"a restricted one", func(l map[string]string) { l["a.node-restriction.kubernetes.io/b"] = "" },
			[]string{"a.node-restriction.kubernetes.io/b"}},
		{"taking a restricted one away", func(l map[string]string) { delete(l, "node-restriction.kubernetes.io/kept") },
			[]string{"node-restriction.kubernetes.io/kept"}},
		{"changing a restricted one", func(l map[string]string) { l["node-restriction.kubernetes.io/kept"] = "y" },
			[]string{"node-restriction.kubernetes.io/kept"}},
		{"leaving out all", func(l map[string]string) { clear(l) }, []string{"node-restriction.kubernetes.io/kept"}},
		{"the API's own namespaces", func(l map[string]string) {
			l["kubernetes.io/a"], l["k8s.io/b"],
				l["x.k8s.io/c"] = "", "", ""
		},
			[]string{"k8s.io/b", "kubernetes.io/a", "x.k8s.io/c"}},
		{"namespaces that only end or begin alike", func(l map[string]string) {
			l["mykubernetes.io/a"], l["kubernetes.io.example.com/b"], l["node-restriction.kubernetes.io.example.com/c"],
				l["k8s.io"], l["kubernetes.io"] = "", "", "", "", ""
		}, []string{"k8s.io", "kubernetes.io"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			now := map[string]string{}
			for key, value := range was {
				now[key] = value
			}
			row.edit(now)
			if len(now) == 0 {
				now = nil
			}
			if got := forbiddenLabels(now, was); !slices.Equal(got, row.want) {
				t.Errorf("got %v, want %v", got, row.want)
			}
		})
	}
}

func TestNodes(t *testing.T) {
	node := func(name string, edits ...func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, edit := range edits {
			edit(n)
		}
		return n
	}
	tainted := func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "a", Effect: "NoSchedule"}} }
	owned := func(n *corev1.Node) { n.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} }
	restricted := func(n *corev1.Node) { n.Labels = map[string]string{"node-restriction.kubernetes.io/a": "b"} }
	reported := func(n *corev1.Node) { n.Status.NodeInfo.KernelVersion = "6" }
	for name, row := range map[string]struct {
		err error
		ok  bool
	}{
		"registers, with taints":   {checkNewNode("n1", node("n1", tainted)), true},
		"registers another":        {checkNewNode("n1", node("n2")), false},
		"registers with a label":   {checkNewNode("n1", node("n1", restricted)), false},
		"reports":                  {checkNodeUpdate("n1", node("n1", reported), node("n1")), true},
		"reports for another":      {checkNodeUpdate("n1", node("n2", reported), node("n2")), false},
		"takes its taints away":    {checkNodeUpdate("n1", node("n1"), node("n1", tainted)), false},
		"takes an owner":           {checkNodeUpdate("n1", node("n1", owned), node("n1")), false},
		"gives itself a label":     {checkNodeUpdate("n1", node("n1", restricted), node("n1")), false},
		"heartbeat":                {checkLease("n1", "kube-node-lease", "n1"), true},
		"heartbeat of another":     {checkLease("n1", "kube-node-lease", "n2"), false},
		"a lease of somebody else": {checkLease("n1", "kube-system", "n1"), false},
		"deletes a Pod of another": {checkPodRemoval("n1", "delete",
			&corev1.Pod{Spec: corev1.PodSpec{NodeName: "n2"}}), false},
		"deletes a Pod of no Node": {checkPodRemoval("n1", "delete", &corev1.Pod{}), false},
		"deletes a Pod of its own": {checkPodRemoval("n1", "delete",
			&corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1"}}), true},
		"reports on a Pod of its own": {checkPodStatus("n1", &corev1.Pod{},
			&corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1"}}), true},
		"reports on a Pod of another": {checkPodStatus("n1", &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1"}},
			&corev1.Pod{Spec: corev1.PodSpec{NodeName: "n2"}}), false},
		"labels a Pod by its status": {checkPodStatus("n1",
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}},
			&corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1"}}), false},
	} {
		if (row.err == nil) != row.ok {
			t.Errorf("%s: %v", name, row.err)
		}
	}
}

func TestMirrorPods(t *testing.T) {
	owner := func(edit func(*metav1.OwnerReference)) func(*corev1.Pod) {
		return func(p *corev1.Pod) { edit(&p.OwnerReferences[0]) }
	}
	volume := func(source corev1.VolumeSource) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}} }
	}
	object := corev1.LocalObjectReference{Name: "o"}
	const reaches = `node "n1" can only create pods that reference nothing of the API, not `
	const mustOwn = `node "n1" can only create pods with an owner reference set to itself`
	const alone = `node "n1" can only create pods with a single owner reference set to itself`
	for _, row := range []struct {
		name string
		edit func(*corev1.Pod)
		want string
	}{
		{"a mirror", func(*corev1.Pod) {}, ""},
		{"an ordinary Pod", func(p *corev1.Pod) { p.Annotations = nil },
			`pod does not have "kubernetes.io/config.mirror" annotation, node "n1" can only create mirror pods`},
		{"of another Node", func(p *corev1.Pod) { p.Spec.NodeName = "n2" },
			`node "n1" can only create pods with spec.nodeName set to itself`},
		{"owned by nobody", func(p *corev1.Pod) { p.OwnerReferences = nil }, alone},
		{"owned by two", func(p *corev1.Pod) { p.OwnerReferences = append(p.OwnerReferences, p.OwnerReferences[0]) },
			alone},
		{"owned by another kind", owner(func(o *metav1.OwnerReference) { o.Kind = "ReplicaSet" }), mustOwn},
		{"owned by another group", owner(func(o *metav1.OwnerReference) { o.APIVersion = "apps/v1" }), mustOwn},
		{"owned by another Node", owner(func(o *metav1.OwnerReference) { o.Name = "n2" }), mustOwn},
		{"owned by a Node that was", owner(func(o *metav1.OwnerReference) { o.UID = "u0" }),
			`node "n1" can only create pods with its own UID in the owner reference: u1, not u0`},
		{"expressly not controlled", owner(func(o *metav1.OwnerReference) { o.Controller = ptr.To(false) }),
			`node "n1" can only create pods with a controller owner reference set to itself`},
		{"expressly not held", owner(func(o *metav1.OwnerReference) { o.BlockOwnerDeletion = ptr.To(false) }), ""},
		{"not controlled", owner(func(o *metav1.OwnerReference) { o.Controller = nil }),
			`node "n1" can only create pods with a controller owner reference set to itself`},
		{"held by the Node", owner(func(o *metav1.OwnerReference) { o.BlockOwnerDeletion = ptr.To(true) }),
			`node "n1" must not set blockOwnerDeletion on an owner reference`},
		{"with an account", func(p *corev1.Pod) { p.Spec.ServiceAccountName = "default" },
			reaches + "serviceaccounts default"},
		{"with a pull secret", func(p *corev1.Pod) { p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{object} },
			reaches + "secrets o"},
		{"with a secret", volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "o"}}),
			reaches + "secrets o"},
		{"with a projected token", volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}}}}}),
			reaches + "serviceaccounts/token"},
		{"with a driver's secret", volume(corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{SecretRef: &object}}),
			reaches + "secrets o"},
		{"with a claim of its own", volume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}),
			reaches + "persistentvolumeclaims static-v"},
		{"with a device's claim", func(p *corev1.Pod) {
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &object.Name}}
		}, reaches + "resourceclaims o"},
		{"with a directory", volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/x"}}), ""},
		{"with a variable", func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{Env: []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{
				ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: object}}}}}}
		}, reaches + "configmaps o"},
		{"with two", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{
				{EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: object}},
					{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: object}}}}}
		}, reaches + "secrets o, configmaps o"},
	} {
		t.Run(row.name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Name: "static", Annotations: map[string]string{"kubernetes.io/config.mirror": "x"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "u1",
					Controller: ptr.To(true)}},
			}, Spec: corev1.PodSpec{NodeName: "n1"}}
			row.edit(pod)
			got := ""
			if err := checkNewPod("n1", "u1", pod); err != nil {
				got = err.Error()
			}
			if got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// What says that a Pod is a node's own, and which, is said once.
func TestStatusKeepsTheOrigin(t *testing.T) {
	old := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"kubernetes.io/config.mirror": "x",
		"kubernetes.io/config.hash": "x"}},
		Spec: corev1.PodSpec{NodeName: "n1"}}
	for key, ok := range map[string]bool{
		"kubernetes.io/config.mirror": false, "kubernetes.io/config.hash": false, "kubernetes.io/config.source": false,
		"example.com/network": true,
	} {
		changed, gone := old.DeepCopy(), old.DeepCopy()
		changed.Annotations[key] = "y"
		if err := checkPodStatus("n1", changed, old); (err == nil) != ok {
			t.Errorf("setting %s: %v", key, err)
		}
		delete(gone.Annotations, key)
		if _, had := old.Annotations[key]; had && checkPodStatus("n1", gone, old) == nil {
			t.Errorf("%s could be taken away", key)
		}
	}
}

// A node reads the claims that the status of its Pod names, so it does not say which those are.
func TestStatusKeepsTheClaims(t *testing.T) {
	old := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1"}, Status: corev1.PodStatus{
		ResourceClaimStatuses: []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: ptr.To("mine")}}}}
	for name, change := range map[string]func(*corev1.PodStatus){
		"another claim": func(s *corev1.PodStatus) { s.ResourceClaimStatuses[0].ResourceClaimName = ptr.To("theirs") },
		"one more": func(s *corev1.PodStatus) {
			s.ResourceClaimStatuses = append(s.ResourceClaimStatuses, corev1.PodResourceClaimStatus{Name: "x"})
		},
		"none": func(s *corev1.PodStatus) { s.ResourceClaimStatuses = nil },
		"one for what is asked for otherwise": func(s *corev1.PodStatus) {
			s.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "theirs"}
		},
	} {
		updated := old.DeepCopy()
		if change(&updated.Status); checkPodStatus("n1", updated, old) == nil {
			t.Errorf("%s is taken", name)
		}
	}
	updated := old.DeepCopy()
	updated.Status.Phase = corev1.PodRunning
	if err := checkPodStatus("n1", updated, old); err != nil {
		t.Errorf("what a node says is refused: %v", err)
	}
}

func TestTokens(t *testing.T) {
	request := func(kind, name, uid string) *authenticationv1.TokenRequest {
		return &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: kind, Name: name,
				UID: types.UID("u" + uid)}}}
	}
	good := request("Pod", "web", "1")
	if checkTokenRequest(good) != nil || checkTokenRequest(&authenticationv1.TokenRequest{}) == nil ||
		checkTokenRequest(request("Secret", "a", "1")) == nil {
		t.Error("only a token for a Pod may be asked for")
	}
	for name, edit := range map[string]func(*authenticationv1.BoundObjectReference){
		"no UID":        func(r *authenticationv1.BoundObjectReference) { r.UID = "" },
		"no name":       func(r *authenticationv1.BoundObjectReference) { r.Name = "" },
		"another group": func(r *authenticationv1.BoundObjectReference) { r.APIVersion = "apps/v1" },
	} {
		other := request("Pod", "web", "1")
		if edit(other.Spec.BoundObjectRef); checkTokenRequest(other) == nil {
			t.Errorf("%s: the Pod must be named with its UID", name)
		}
	}
	for n, want := range []bool{true, true, false} {
		other := request("Pod", "web", "1")
		other.Spec.Audiences = make([]string, n)
		if got := checkTokenRequest(other) == nil; got != want {
			t.Errorf("%d audiences at once: allowed %v", n, got)
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u1"}, Spec: corev1.PodSpec{NodeName: "n1"}}
	if err := checkTokenPod("n1", good, pod); err != nil {
		t.Errorf("its own Pod: %v", err)
	}
	if checkTokenPod("n2", good, pod) == nil || checkTokenPod("n1", request("Pod", "web", "2"), pod) == nil {
		t.Error("a Pod of another Node, or one that was there before, was accepted")
	}
}

// A request that creates may leave the name to its object, which is then what is judged.
func TestNameOf(t *testing.T) {
	object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "inside"}}
	if got := nameOf("", object); got != "inside" {
		t.Errorf("the object's name is %q", got)
	}
	if got := nameOf("path", object); got != "path" {
		t.Errorf("the request's name is %q", got)
	}
	if got := nameOf("", nil); got != "" {
		t.Errorf("without an object the name is %q", got)
	}
}
