package cgroup

import (
	"reflect"
	"testing"

	"github.com/opencontainers/cgroups"
)

func TestParseStall(t *testing.T) {
	const some, full = "some avg10=1.50 avg60=2.25 avg300=3.00 total=48972300371\n",
		"full avg10=0.10 avg60=0.20 avg300=0.30 total=7\n"
	waited := Waits{Avg10: 1.5, Avg60: 2.25, Avg300: 3, Total: 48972300371}
	for _, r := range []struct {
		name, text string
		want       *Stall
	}{
		{"both", some + full, &Stall{Some: waited, Full: Waits{Avg10: 0.1, Avg60: 0.2, Avg300: 0.3, Total: 7}}},
		{"an old kernel's processors", some, &Stall{Some: waited}},
		{"a line that comes some day", some + "most avg10=0.00 avg60=0.00 avg300=0.00 total=1\n", &Stall{Some: waited}},
		{"nothing", "", nil},
		{"full alone", full, nil},
		{"cut off", some[:len(some)-12], nil},
		{"no number", "some avg10=x avg60=2.25 avg300=3.00 total=4\n", nil},
		{"below nothing", "some avg10=0.00 avg60=0.00 avg300=0.00 total=-1\n", nil},
	} {
		if got := ParseStall(r.text); !reflect.DeepEqual(got, r.want) {
			t.Errorf("%s: %+v, want %+v", r.name, got, r.want)
		}
	}
}

func TestStallOf(t *testing.T) {
	if got := stallOf(nil); got != nil {
		t.Errorf("%+v of nothing", got)
	}
	got := stallOf(&cgroups.PSIStats{Some: cgroups.PSIData{Avg10: 1, Avg60: 2, Avg300: 3, Total: 4},
		Full: cgroups.PSIData{Total: 5}})
	if want := (&Stall{Some: Waits{1, 2, 3, 4}, Full: Waits{Total: 5}}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
