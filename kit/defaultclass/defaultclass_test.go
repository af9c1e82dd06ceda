package defaultclass

import (
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	annotation = "storageclass.kubernetes.io/is-default-class"
	beta       = "storageclass.beta.kubernetes.io/is-default-class"
)

// class was made at a minute; marks are annotations and their values.
func class(name string, minute int, marks ...string) *storagev1.StorageClass {
	c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{},
		CreationTimestamp: metav1.NewTime(time.Unix(int64(60*minute), 0))}}
	for i := 0; i < len(marks); i += 2 {
		c.Annotations[marks[i]] = marks[i+1]
	}
	return c
}

func TestAmong(t *testing.T) {
	for _, row := range []struct {
		name    string
		classes []*storagev1.StorageClass
		want    string
	}{
		{"none", nil, ""},
		{"SET-053 no default", []*storagev1.StorageClass{class("a", 1), class("b", 2, annotation, "false")}, ""},
		{"SET-053 one", []*storagev1.StorageClass{class("a", 1, annotation, "true"), class("b", 2)}, "a"},
		{"by the old annotation", []*storagev1.StorageClass{class("a", 1, beta, "true"), class("b", 2)}, "a"},
		{"by a value that is not true", []*storagev1.StorageClass{class("a", 1, annotation, "yes")}, ""},
		{"by the annotation of another kind", []*storagev1.StorageClass{
			class("a", 1, "ingressclass.kubernetes.io/is-default-class", "true")}, ""},
		{"of two the newest", []*storagev1.StorageClass{class("a", 1, annotation, "true"),
			class("c", 2, annotation, "true"), class("b", 0, annotation, "true")}, "c"},
		{"of two as new the first by name", []*storagev1.StorageClass{class("b", 1, annotation, "true"),
			class("a", 1, annotation, "true"), class("c", 1, annotation, "true")}, "a"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := ""
			chosen, found := Among(row.classes, Storage)
			if found {
				got = chosen.Name
			}
			if got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}
