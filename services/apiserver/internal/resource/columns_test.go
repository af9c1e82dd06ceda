package resource

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The rows of a list stand as it lists them, unless the kind has an order of its own.
func TestOrderOfRows(t *testing.T) {
	list := &corev1.ConfigMapList{}
	for _, name := range []string{"b", "a", "c"} {
		list.Items = append(list.Items, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	columns := NewColumns(NameColumn[*corev1.ConfigMap]())
	ordered := columns
	ordered.Order = func(a, b *corev1.ConfigMap) int { return strings.Compare(a.Name, b.Name) }
	for want, c := range map[string]Columns[*corev1.ConfigMap]{"b a c": columns, "a b c": ordered} {
		table, err := c.Table(list, nil, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, row := range table.Rows {
			names = append(names, row.Cells[0].(string))
		}
		if got := strings.Join(names, " "); got != want || list.Items[0].Name != "b" {
			t.Errorf("rows %s, want %s, of a list that begins with %s", got, want, list.Items[0].Name)
		}
	}
}
