package noderestriction

import (
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
			l["kubernetes.io/hostname"], l["topology.kubernetes.io/zone"], l["mine"], l["x.kubelet.kubernetes.io/y"] = "n2", "z", "2", "w"
		}, nil},
		{"a role", func(l map[string]string) { l["node-role.kubernetes.io/control-plane"] = "" }, []string{"node-role.kubernetes.io/control-plane"}},
		{"a restricted one", func(l map[string]string) { l["a.node-restriction.kubernetes.io/b"] = "" }, []string{"a.node-restriction.kubernetes.io/b"}},
		{"taking a restricted one away", func(l map[string]string) { delete(l, "node-restriction.kubernetes.io/kept") }, []string{"node-restriction.kubernetes.io/kept"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			now := map[string]string{}
			for key, value := range was {
				now[key] = value
			}
			row.edit(now)
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
		"registers, with taints":      {checkNewNode("n1", node("n1", tainted)), true},
		"registers another":           {checkNewNode("n1", node("n2")), false},
		"registers with a label":      {checkNewNode("n1", node("n1", restricted)), false},
		"reports":                     {checkNodeUpdate("n1", node("n1", reported), node("n1")), true},
		"reports for another":         {checkNodeUpdate("n1", node("n2", reported), node("n2")), false},
		"takes its taints away":       {checkNodeUpdate("n1", node("n1"), node("n1", tainted)), false},
		"takes an owner":              {checkNodeUpdate("n1", node("n1", owned), node("n1")), false},
		"gives itself a label":        {checkNodeUpdate("n1", node("n1", restricted), node("n1")), false},
		"heartbeat":                   {checkLease("n1", "kube-node-lease", "n1"), true},
		"heartbeat of another":        {checkLease("n1", "kube-node-lease", "n2"), false},
		"a lease of somebody else":    {checkLease("n1", "kube-system", "n1"), false},
		"deletes a Pod of another":    {checkPodRemoval("n1", "delete", &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n2"}}), false},
		"deletes a Pod of no Node":    {checkPodRemoval("n1", "delete", &corev1.Pod{}), false},
		"deletes a Pod of its own":    {checkPodRemoval("n1", "delete", &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1"}}), true},
		"reports on a Pod of its own": {checkPodStatus("n1", &corev1.Pod{}, &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1"}}), true},
		"reports on a Pod of another": {checkPodStatus("n1", &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1"}}, &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n2"}}), false},
		"labels a Pod by its status": {checkPodStatus("n1", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}},
			&corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1"}}), false},
	} {
		if (row.err == nil) != row.ok {
			t.Errorf("%s: %v", name, row.err)
		}
	}
}

func TestMirrorPods(t *testing.T) {
	for _, row := range []struct {
		name string
		edit func(*corev1.Pod)
		ok   bool
	}{
		{"a mirror", func(*corev1.Pod) {}, true},
		{"an ordinary Pod", func(p *corev1.Pod) { p.Annotations = nil }, false},
		{"of another Node", func(p *corev1.Pod) { p.Spec.NodeName = "n2" }, false},
		{"owned by the Node", func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n1"}}
		}, true},
		{"owned by something else", func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "n1"}}
		}, false},
		{"with an account", func(p *corev1.Pod) { p.Spec.ServiceAccountName = "default" }, false},
		{"with a secret", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}}}
		}, false},
		{"with a projected token", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}}}}}}}
		}, false},
		{"with a directory", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/x"}}}}
		}, true},
		{"with a variable from a config map", func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{Env: []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{}}}}}}
		}, false},
		{"with all variables of a secret", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{}}}}}
		}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"}}, Spec: corev1.PodSpec{NodeName: "n1"}}
			row.edit(pod)
			if err := checkNewPod("n1", pod); (err == nil) != row.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTokens(t *testing.T) {
	request := func(kind, name, uid string) *authenticationv1.TokenRequest {
		return &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: kind, Name: name, UID: types.UID("u" + uid)}}}
	}
	good := request("Pod", "web", "1")
	if checkTokenRequest(good) != nil || checkTokenRequest(&authenticationv1.TokenRequest{}) == nil || checkTokenRequest(request("Secret", "a", "1")) == nil {
		t.Error("only a token for a Pod may be asked for")
	}
	nameless := request("Pod", "web", "1")
	nameless.Spec.BoundObjectRef.UID = ""
	if checkTokenRequest(nameless) == nil {
		t.Error("the Pod must be named with its UID")
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u1"}, Spec: corev1.PodSpec{NodeName: "n1"}}
	if err := checkTokenPod("n1", good, pod); err != nil {
		t.Errorf("its own Pod: %v", err)
	}
	if checkTokenPod("n2", good, pod) == nil || checkTokenPod("n1", request("Pod", "web", "2"), pod) == nil {
		t.Error("a Pod of another Node, or one that was there before, was accepted")
	}
}
