package table

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Convertor fills tables from a resource's columns; it serves as rest.TableConvertor.
type Convertor[T Object] struct {
	columns    Columns[T]
	conditions func(T) []metav1.TableRowCondition
	now        func() time.Time
}

var _ rest.TableConvertor = Convertor[Object]{}

// New returns the convertor for columns.
func New[T Object](columns Columns[T]) Convertor[T] {
	return Convertor[T]{columns: columns, now: time.Now}
}

// WithConditions returns a convertor whose rows also carry row conditions, by which kubectl recognises finished objects.
func (c Convertor[T]) WithConditions(conditions func(T) []metav1.TableRowCondition) Convertor[T] {
	c.conditions = conditions
	return c
}

// ConvertToTable returns object, or the items of a list, as a table.
func (c Convertor[T]) ConvertToTable(_ context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	now := c.now()
	add := func(item runtime.Object) error {
		obj, ok := item.(T)
		if !ok {
			return fmt.Errorf("converting %T to a table row: the columns are those of %T", item, obj)
		}
		table.Rows = append(table.Rows, c.row(obj, now))
		return nil
	}
	if err := eachItem(object, add); err != nil {
		return nil, err
	}
	copyListMeta(table, object)
	if options, ok := tableOptions.(*metav1.TableOptions); !ok || !options.NoHeaders {
		table.ColumnDefinitions = c.columns.Definitions()
	}
	return table, nil
}

func (c Convertor[T]) row(obj T, now time.Time) metav1.TableRow {
	row := metav1.TableRow{Cells: c.columns.Cells(obj, now), Object: runtime.RawExtension{Object: obj}}
	if c.conditions != nil {
		row.Conditions = c.conditions(obj)
	}
	return row
}

func eachItem(object runtime.Object, visit func(runtime.Object) error) error {
	if meta.IsListType(object) {
		return meta.EachListItem(object, visit)
	}
	return visit(object)
}

func copyListMeta(table *metav1.Table, object runtime.Object) {
	if list, err := meta.ListAccessor(object); err == nil {
		table.ResourceVersion = list.GetResourceVersion()
		table.Continue = list.GetContinue()
		table.RemainingItemCount = list.GetRemainingItemCount()
		return
	}
	if single, err := meta.CommonAccessor(object); err == nil {
		table.ResourceVersion = single.GetResourceVersion()
	}
}
