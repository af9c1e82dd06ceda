package rest

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Columns says how an object is printed in a Table.
type Columns[O Object] struct {
	// Definitions are the headings. Priority 1 shows a column only with -o wide.
	Definitions []metav1.TableColumnDefinition
	// Row returns one cell per definition. Ages are counted up to now.
	Row func(obj O, now time.Time) []any
	// Conditions are what kubectl's --watch and wait see of a row; optional.
	Conditions func(obj O) []metav1.TableRowCondition
}

// Column returns a heading of the given type ("string" or "integer").
func Column(name, kind, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: kind, Description: description}
}

// WideColumn is a Column that is shown only with -o wide.
func WideColumn(name, kind, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: kind, Description: description, Priority: 1}
}

// NameColumn is the first column of every table.
func NameColumn() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]}
}

// AgeColumn is the column of Age cells.
func AgeColumn() metav1.TableColumnDefinition {
	return Column("Age", "string", metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"])
}

// Age is the time from t to now as kubectl prints it.
func Age(t metav1.Time, now time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

func (c Columns[O]) withDefaults() Columns[O] {
	if c.Row != nil {
		return c
	}
	c.Definitions = []metav1.TableColumnDefinition{NameColumn(), AgeColumn()}
	c.Row = func(obj O, now time.Time) []any { return []any{obj.GetName(), Age(obj.GetCreationTimestamp(), now)} }
	return c
}

type tableConvertor[O Object] struct{ columns Columns[O] }

// ConvertToTable implements the API machinery's TableConvertor for one object and for lists.
func (t tableConvertor[O]) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		table.ColumnDefinitions = t.columns.Definitions
	}
	now := time.Now()
	if !meta.IsListType(object) {
		if err := t.appendRow(table, object, now); err != nil {
			return nil, err
		}
		if m, err := meta.CommonAccessor(object); err == nil {
			table.ResourceVersion = m.GetResourceVersion()
		}
		return table, nil
	}
	if err := meta.EachListItem(object, func(item runtime.Object) error { return t.appendRow(table, item, now) }); err != nil {
		return nil, err
	}
	list, err := meta.ListAccessor(object)
	if err != nil {
		return nil, fmt.Errorf("reading the list's metadata: %w", err)
	}
	table.ResourceVersion = list.GetResourceVersion()
	table.Continue = list.GetContinue()
	table.RemainingItemCount = list.GetRemainingItemCount()
	return table, nil
}

func (t tableConvertor[O]) appendRow(table *metav1.Table, object runtime.Object, now time.Time) error {
	obj, ok := object.(O)
	if !ok {
		return fmt.Errorf("printing a %T: not of this resource", object)
	}
	row := metav1.TableRow{Cells: t.columns.Row(obj, now), Object: runtime.RawExtension{Object: object}}
	if t.columns.Conditions != nil {
		row.Conditions = t.columns.Conditions(obj)
	}
	table.Rows = append(table.Rows, row)
	return nil
}
