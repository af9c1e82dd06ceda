package resource

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
)

// TableColumn is one column of a table: its heading, and the cell that an object has under it. V is the object, or what
// is made of it once for all cells of its row.
type TableColumn[V any] struct {
	Heading metav1.TableColumnDefinition
	// Cell is what is shown. Ages are counted up to now.
	Cell func(v V, now time.Time) any
}

// Columns says how an object is printed in a Table. The zero value prints name and age.
type Columns[O Object] struct {
	headings []metav1.TableColumnDefinition
	cells    func(obj O, now time.Time) []any
	// Conditions are what kubectl's --watch and wait see of a row; optional.
	Conditions func(obj O) []metav1.TableRowCondition
	// Order is that of the rows of a list; nil: as they are listed.
	Order func(a, b O) int
}

// NewColumns puts the columns of a table side by side.
func NewColumns[O Object](columns ...TableColumn[O]) Columns[O] {
	return NewColumnsOf(func(obj O) O { return obj }, columns...)
}

// NewColumnsOf is NewColumns for cells that share what view makes of the object.
func NewColumnsOf[O Object, V any](view func(O) V, columns ...TableColumn[V]) Columns[O] {
	c := Columns[O]{cells: func(obj O, now time.Time) []any {
		seen, row := view(obj), make([]any, len(columns))
		for i := range columns {
			row[i] = columns[i].Cell(seen, now)
		}
		return row
	}}
	for _, column := range columns {
		c.headings = append(c.headings, column.Heading)
	}
	return c
}

// OrNameAndAge are the columns, name and age if there are none.
func (c Columns[O]) OrNameAndAge() Columns[O] {
	if c.headings == nil {
		return NewColumns(NameColumn[O](), AgeColumn[O]())
	}
	return c
}

// Headings are the columns' names, types and descriptions. Priority 1 shows a column only with -o wide.
func (c Columns[O]) Headings() []metav1.TableColumnDefinition { return c.headings }

// Row is one cell per heading.
func (c Columns[O]) Row(obj O, now time.Time) []any { return c.cells(obj, now) }

// Column is a column of the given type ("string" or "integer").
func Column[V any](name, kind, description string, cell func(V) any) TableColumn[V] {
	return TableColumn[V]{
		Heading: metav1.TableColumnDefinition{Name: name, Type: kind, Description: description},
		Cell:    func(v V, _ time.Time) any { return cell(v) },
	}
}

// AgoColumn is a column that tells how long ago something was.
func AgoColumn[V any](name, description string, when func(V) metav1.Time) TableColumn[V] {
	return TableColumn[V]{
		Heading: metav1.TableColumnDefinition{Name: name, Type: "string", Description: description},
		Cell:    func(v V, now time.Time) any { return Age(when(v), now) },
	}
}

// Wide is the column shown only with -o wide.
func (c TableColumn[V]) Wide() TableColumn[V] {
	c.Heading.Priority = 1
	return c
}

// NameColumn is the first column of almost every table.
func NameColumn[V metav1.Object]() TableColumn[V] {
	return NameColumnOf(func(v V) any { return v.GetName() })
}

// NameColumnOf is a NameColumn whose cell says more than the name.
func NameColumnOf[V any](cell func(V) any) TableColumn[V] {
	column := Column("Name", "string", metav1.ObjectMeta{}.SwaggerDoc()["name"], cell)
	column.Heading.Format = "name"
	return column
}

// AgeColumn tells how long ago the object was created.
func AgeColumn[V metav1.Object]() TableColumn[V] {
	return AgoColumn("Age", metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"], V.GetCreationTimestamp)
}

// Age is the time from t to now as kubectl prints it.
func Age(t metav1.Time, now time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

// Table prints an object, or a list of them, as it is now.
func (c Columns[O]) Table(object runtime.Object, options *metav1.TableOptions, now time.Time) (*metav1.Table, error) {
	c = c.OrNameAndAge()
	table := &metav1.Table{}
	if options == nil || !options.NoHeaders {
		table.ColumnDefinitions = c.headings
	}
	if !meta.IsListType(object) {
		if err := c.appendRow(table, object, now); err != nil {
			return nil, err
		}
		if m, err := meta.CommonAccessor(object); err == nil {
			table.ResourceVersion = m.GetResourceVersion()
		}
		return table, nil
	}
	if err := meta.EachListItem(object, func(item runtime.Object) error {
		return c.appendRow(table, item, now)
	}); err != nil {
		return nil, err
	}
	if c.Order != nil {
		slices.SortStableFunc(table.Rows, func(a, b metav1.TableRow) int {
			return c.Order(a.Object.Object.(O), b.Object.Object.(O))
		})
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

func (c Columns[O]) appendRow(table *metav1.Table, object runtime.Object, now time.Time) error {
	obj, ok := object.(O)
	if !ok {
		return fmt.Errorf("printing a %T: not of this resource", object)
	}
	row := metav1.TableRow{Cells: c.cells(obj, now), Object: runtime.RawExtension{Object: object}}
	if c.Conditions != nil {
		row.Conditions = c.Conditions(obj)
	}
	table.Rows = append(table.Rows, row)
	return nil
}
