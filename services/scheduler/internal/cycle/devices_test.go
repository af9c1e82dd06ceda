package cycle_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func deviceClaim(changes ...func(*resourcev1.ResourceClaim)) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gpu"}}
	for _, change := range changes {
		change(c)
	}
	return c
}

// tried decides once, wants the Pod to get no node, and returns why; empty where the Pod is not looked at, which
// without news is not for minutes.
func (f *fixture) tried() string {
	f.t.Helper()
	f.wait(time.Minute)
	v, ok := f.Next(f.now)
	if !ok {
		return ""
	}
	if v.Node != "" {
		f.t.Fatalf("Pod %s got node %s", v.Pod.Name, v.Node)
	}
	return v.Message()
}

// A Pod that claims devices gets no node, whatever becomes of its claim, and says at once why. A Pod that claims none
// is not held up.
func TestPodsThatClaimDevices(t *testing.T) {
	f := newFixture(t)
	f.node("n", "4")
	f.add(pod("p", "1", func(p *corev1.Pod) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: ptr.To("gpu")}}
	}))
	says := func(when, want string) {
		t.Helper()
		if got := f.tried(); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	says("at first", "ResourceClaim gpu does not exist")
	f.SetDeviceClaim(deviceClaim())
	says("with a claim", "ResourceClaim gpu is not allocated, and nobody in this cluster allocates devices")
	f.SetDeviceClaim(deviceClaim(func(c *resourcev1.ResourceClaim) { c.Labels = map[string]string{"a": "b"} }))
	says("after a change of something else", "")
	f.SetDeviceClaim(deviceClaim(func(c *resourcev1.ResourceClaim) {
		c.Status.Allocation = &resourcev1.AllocationResult{}
	}))
	says("when somebody has allocated it", "no node of this cluster prepares the devices")
	f.RemoveDeviceClaim(deviceClaim())
	says("without the claim", "ResourceClaim gpu does not exist")
	f.add(pod("q", "1"))
	f.want("q:n")
}
