// Package table turns API objects into the tables that kubectl prints: a resource declares its columns once, each with
// the pure function that fills its cells, and gets the convertor that the server asks for.
package table

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is what every row shows: an API object with metadata.
type Object interface {
	runtime.Object
	metav1.Object
}

// Column is one column of a resource's table.
type Column[T Object] struct {
	// Name is the heading; kubectl shows it in capitals.
	Name string
	// Type is the OpenAPI type of the cells; empty means string.
	Type string
	// Format refines Type; only the name column has one.
	Format string
	// Wide columns are shown with -o wide only.
	Wide bool
	// Description is what clients may show as help for the column.
	Description string
	// Cell computes the cell of one object as of now.
	Cell func(obj T, now time.Time) any
}

// Columns is the list of a resource's columns, from left to right.
type Columns[T Object] []Column[T]

// Definitions returns the column headings in the API's form.
func (c Columns[T]) Definitions() []metav1.TableColumnDefinition {
	definitions := make([]metav1.TableColumnDefinition, 0, len(c))
	for _, column := range c {
		definition := metav1.TableColumnDefinition{
			Name: column.Name, Type: column.Type, Format: column.Format, Description: column.Description,
		}
		if definition.Type == "" {
			definition.Type = "string"
		}
		if column.Wide {
			definition.Priority = 1
		}
		definitions = append(definitions, definition)
	}
	return definitions
}

// Cells returns the row of one object as of now.
func (c Columns[T]) Cells(obj T, now time.Time) []any {
	cells := make([]any, 0, len(c))
	for _, column := range c {
		cells = append(cells, column.Cell(obj, now))
	}
	return cells
}

var metadataHelp = metav1.ObjectMeta{}.SwaggerDoc()

// Name is the first column of every table: the object's name.
func Name[T Object]() Column[T] {
	return Column[T]{
		Name: "Name", Format: "name", Description: metadataHelp["name"],
		Cell: func(obj T, _ time.Time) any { return obj.GetName() },
	}
}

// Age is the column with the time since the object was created.
func Age[T Object]() Column[T] {
	return Column[T]{
		Name: "Age", Description: metadataHelp["creationTimestamp"],
		Cell: func(obj T, now time.Time) any { return Since(obj.GetCreationTimestamp(), now) },
	}
}

// CreatedAt is the column with the creation time itself, which the RBAC tables show in place of the age.
func CreatedAt[T Object]() Column[T] {
	return Column[T]{
		Name: "Created At", Description: metadataHelp["creationTimestamp"],
		Cell: func(obj T, _ time.Time) any { return obj.GetCreationTimestamp().UTC().Format(time.RFC3339) },
	}
}
