package rest

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"keelson.dev/services/apiserver/internal/resource"
)

type tableConvertor[O resource.Object] struct{ columns resource.Columns[O] }

func newTableConvertor[O resource.Object](c resource.Columns[O]) tableConvertor[O] {
	return tableConvertor[O]{c.OrNameAndAge()}
}

// ConvertToTable implements the API machinery's TableConvertor for one object and for lists.
func (t tableConvertor[O]) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	asked, _ := options.(*metav1.TableOptions)
	return t.columns.Table(object, asked, time.Now())
}
