package pod

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var objectWrites, statusWrites = Resource.ObjectWrites(), Resource.StatusWrites()

var now = metav1.NewTime(time.Date(2026, time.January, 10, 12, 0, 0, 0, time.UTC))

// nginx is a defaulted Pod with one container and one init container, on a node.
func nginx() *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "nginx", Generation: 1},
		Spec: corev1.PodSpec{
			NodeName:       "node-1",
			Containers:     []corev1.Container{{Name: "nginx", Image: "nginx:1.14.2"}},
			InitContainers: []corev1.Container{{Name: "init", Image: "busybox:1.28"}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBestEffort},
	}
	Default(p)
	return p
}

func quantities(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = apiresource.MustParse(pairs[i+1])
	}
	return list
}

func wantErrors(t *testing.T, got field.ErrorList, want ...string) {
	t.Helper()
	list := make([]string, 0, len(got))
	for _, err := range got {
		list = append(list, err.Error())
	}
	slices.Sort(list)
	slices.Sort(want)
	if !slices.Equal(list, want) {
		t.Errorf("got  %q\nwant %q", list, want)
	}
}
