package admit

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Which Pods make room for a static Pod. POD-064
func TestMakeRoom(t *testing.T) {
	pod := func(name, cpu string, priority int32) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Priority: ptr.To(priority),
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}}}
	}
	stays := func(name, cpu string, priority int32) Resident { return Resident{Pod: pod(name, cpu, priority)} }
	leaves := func(name, cpu string) Resident { return Resident{Pod: pod(name, cpu, 0), Leaving: true} }
	static := func(name, cpu string) Resident { return Resident{Pod: pod(name, cpu, 0), Static: true} }
	guaranteed := stays("guaranteed", "1", 0)
	guaranteed.Pod.Status.QOSClass = corev1.PodQOSGuaranteed
	none := stays("none", "0", 0)
	for _, r := range []struct {
		name      string
		cpu       string
		residents []Resident
		wait      bool
		victims   string
	}{
		{"an empty node", "4", nil, false, ""},
		{"exactly enough", "3", []Resident{stays("a", "1", 0)}, false, ""},
		{"a thousandth too much", "3001m", []Resident{stays("a", "1", 0)}, true, "a"},
		{"never enough", "4001m", []Resident{stays("a", "1", 0)}, false, ""},
		{"the lowest priority", "2", []Resident{stays("a", "2", 5), stays("b", "2", 4)}, true, "b"},
		{"the lowest quality of service", "3", []Resident{guaranteed, stays("b", "1", 0)}, true, "b"},
		{"no more than needed", "2", []Resident{stays("a", "1", 0), stays("b", "2", 1), stays("c", "1", 2)}, true, "b"},
		{"several", "3", []Resident{stays("a", "1", 0), stays("b", "1", 1), stays("c", "2", 2)}, true, "a c"},
		{"not for a place", "4", []Resident{none}, false, ""},
		{"those that leave are enough", "3", []Resident{leaves("a", "2"), stays("b", "1", 0)}, true, ""},
		{"those that leave are not enough", "4", []Resident{leaves("a", "2"), stays("b", "1", 0)}, true, "b"},
		{"no static Pod", "4", []Resident{static("a", "1")}, false, ""},
		{"just not critical", "4", []Resident{stays("a", "1", 1999999999)}, true, "a"},
		{"critical", "4", []Resident{stays("a", "1", 2000000000)}, false, ""},
		{"a place", "1", []Resident{stays("a", "0", 0), stays("b", "0", 0), stays("c", "0", 1)}, true, "a"},
	} {
		t.Run(r.name, func(t *testing.T) {
			room := MakeRoom(pod("static", r.cpu, 0), r.residents, corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("3")})
			var victims []string
			for _, v := range room.Victims {
				victims = append(victims, v.Name)
			}
			if got := strings.Join(victims, " "); got != r.victims || room.Wait != r.wait {
				t.Errorf("ends %q and waits %v, want %q and %v", got, room.Wait, r.victims, r.wait)
			}
		})
	}
}
