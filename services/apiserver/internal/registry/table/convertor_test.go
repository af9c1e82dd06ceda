package table

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var testColumns = Columns[*corev1.ConfigMap]{
	Name[*corev1.ConfigMap](),
	{Name: "Data", Type: "integer", Cell: func(c *corev1.ConfigMap, _ time.Time) any { return int64(len(c.Data)) }},
	Age[*corev1.ConfigMap](),
	{Name: "Namespace", Wide: true, Cell: func(c *corev1.ConfigMap, _ time.Time) any { return c.Namespace }},
}

func TestConvertToTable(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 10, 0, 0, time.UTC)
	convertor := New(testColumns)
	convertor.now = func() time.Time { return now }
	list := &corev1.ConfigMapList{
		ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "next"},
		Items: []corev1.ConfigMap{
			{ObjectMeta: metav1.ObjectMeta{Name: "a", CreationTimestamp: metav1.NewTime(now.Add(-5 * time.Minute))}},
			{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Data: map[string]string{"k": "v"}},
		},
	}
	got, err := convertor.ConvertToTable(context.Background(), list, &metav1.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.ResourceVersion != "7" || got.Continue != "next" {
		t.Errorf("list metadata lost: %+v", got.ListMeta)
	}
	if len(got.ColumnDefinitions) != 4 || got.ColumnDefinitions[3].Priority != 1 || got.ColumnDefinitions[0].Priority != 0 {
		t.Errorf("column definitions: %+v", got.ColumnDefinitions)
	}
	if len(got.Rows) != 2 || got.Rows[0].Cells[2] != "5m" || got.Rows[1].Cells[2] != Unknown || got.Rows[1].Cells[1] != int64(1) {
		t.Errorf("rows: %+v", got.Rows)
	}
}

func TestConvertToTableWithoutHeaders(t *testing.T) {
	got, err := New(testColumns).ConvertToTable(context.Background(), &corev1.ConfigMap{}, &metav1.TableOptions{NoHeaders: true})
	if err != nil {
		t.Fatal(err)
	}
	if got.ColumnDefinitions != nil {
		t.Errorf("headings sent although the client has them: %+v", got.ColumnDefinitions)
	}
}

func TestConvertToTableRefusesForeignObject(t *testing.T) {
	_, err := New(testColumns).ConvertToTable(context.Background(), &corev1.Secret{}, nil)
	if err == nil || !strings.Contains(err.Error(), "*v1.Secret") {
		t.Errorf("want an error naming the type, got %v", err)
	}
}
