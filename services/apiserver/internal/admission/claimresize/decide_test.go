package claimresize

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func claim(size string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{}
	if size != "" {
		c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	}
	return c
}

func TestGrows(t *testing.T) {
	for _, row := range []struct {
		before, size string
		want         bool
	}{
		{"1Gi", "1Gi", false},
		{"1Gi", "1024Mi", false},
		{"1Gi", "1073741825", true},
		{"1Gi", "1073741823", false},
		{"", "1", true},
	} {
		if got := grows(claim(row.size), claim(row.before)); got != row.want {
			t.Errorf("from %q to %q: %t, want %t", row.before, row.size, got, row.want)
		}
	}
}

func TestClassName(t *testing.T) {
	annotated := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		"volume.beta.kubernetes.io/storage-class": "old"}}}
	named := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("gold")}}
	for want, c := range map[string]*corev1.PersistentVolumeClaim{"": claim("1"), "old": annotated, "gold": named} {
		if got := className(c); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	for name, row := range map[string]struct {
		class *storagev1.StorageClass
		fine  bool
	}{
		"no class":                  {nil, false},
		"a class that does not say": {&storagev1.StorageClass{}, false},
		"one that cannot":           {&storagev1.StorageClass{AllowVolumeExpansion: ptr.To(false)}, false},
		"one that can":              {&storagev1.StorageClass{AllowVolumeExpansion: ptr.To(true)}, true},
	} {
		if err := check(row.class); (err == nil) != row.fine {
			t.Errorf("%s: %v", name, err)
		}
	}
}
