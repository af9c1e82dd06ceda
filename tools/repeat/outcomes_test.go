package repeat

import (
	"strings"
	"testing"
)

func TestOutcomes(t *testing.T) {
	const (
		passed = `{"Action":"pass","Package":"keelson.dev/a","Test":"T/row"}{"Action":"pass","Package":"keelson.dev/a",` +
			`"Test":"T"}{"Action":"pass","Package":"keelson.dev/a"}`
		failed = `{"Action":"fail","Package":"keelson.dev/a","Test":"T/row"}{"Action":"fail","Package":"keelson.dev/a",` +
			`"Test":"T"}{"Action":"skip","Package":"keelson.dev/a","Test":"S"}{"Action":"fail","Package":"keelson.dev/a"}`
		broke = `{"Action":"pass","Package":"keelson.dev/a","Test":"T"}{"Action":"fail","Package":"keelson.dev/a"}`
	)
	for _, row := range []struct {
		rounds []string
		want   string
	}{
		{[]string{passed, passed}, ""},
		{[]string{passed, failed, passed}, "  1 of 3  a T  seeds 1\n"},
		{[]string{failed, passed, failed}, "  2 of 3  a T  seeds 0 2\n"},
		{[]string{broke}, "  1 of 1  a   seeds 0\n"},
		{[]string{failed, broke, failed}, "  2 of 3  a T  seeds 0 2\n  1 of 3  a   seeds 1\n"},
	} {
		o := NewOutcomes()
		for seed, events := range row.rounds {
			if err := o.Add(int64(seed), strings.NewReader(events)); err != nil {
				t.Fatal(err)
			}
		}
		var got strings.Builder
		if err := o.Print(&got); err != nil || got.String() != row.want || o.Failed() != (row.want != "") {
			t.Errorf("%q, %v, failed %v, want %q", got.String(), err, o.Failed(), row.want)
		}
	}
}

func TestAddSaysWhatIsNoEvent(t *testing.T) {
	if err := NewOutcomes().Add(1, strings.NewReader("FAIL\n")); err == nil {
		t.Error("FAIL passed for an event")
	}
}
