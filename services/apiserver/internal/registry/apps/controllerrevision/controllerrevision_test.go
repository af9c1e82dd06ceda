package controllerrevision

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/kit/fieldcheck/fieldtest"
	"keelson.dev/services/apiserver/internal/registry/table/tabletest"
)

func revision(number int64, data string) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "web-1"},
		Data: runtime.RawExtension{Raw: []byte(data)}, Revision: number}
}

func TestValidate(t *testing.T) {
	for name, row := range map[string]struct {
		revision *appsv1.ControllerRevision
		want     []string
	}{
		"the first":       {revision(0, `{}`), nil},
		"below the first": {revision(-1, `{}`), []string{"revision: Invalid value: -1"}},
		"no data":         {revision(1, ""), []string{"data: Required value: data is mandatory"}},
		"no JSON":         {revision(1, `{"a":`), []string{"data: Invalid value: must be valid JSON"}},
	} {
		t.Run(name, func(t *testing.T) { fieldtest.Check(t, Validate(row.revision), row.want...) })
	}
	old := revision(1, `{"a":1}`)
	fieldtest.Check(t, ValidateUpdate(revision(2, `{"a":1}`), old))
	fieldtest.Check(t, ValidateUpdate(revision(1, `{"a":2}`), old), `data: Invalid value: {"a":2}: field is immutable`)
}

func TestColumns(t *testing.T) { tabletest.Golden(t, Resource) }
