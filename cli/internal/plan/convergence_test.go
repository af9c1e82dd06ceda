package plan

import (
	"slices"
	"strings"
	"testing"
)

func TestDecideUnitChanges(t *testing.T) {
	units := []Unit{{Name: "a", Content: "A"}, {Name: "b", Content: "B"}}
	well := UnitState{Active: true, Enabled: true}
	for name, row := range map[string]struct {
		files  map[string]string
		states map[string]UnitState
		write  string
		reload bool
		enable string
	}{
		"a new machine": {write: "a b", reload: true, enable: "a b"},
		"as it is to be": {files: map[string]string{"a": "A", "b": "B"},
			states: map[string]UnitState{"a": well, "b": well}},
		"one was changed": {files: map[string]string{"a": "A", "b": "X"},
			states: map[string]UnitState{"a": well, "b": well}, write: "b", reload: true},
		"one is gone": {files: map[string]string{"b": "B"}, states: map[string]UnitState{"a": well, "b": well},
			write: "a", reload: true},
		"cut off after writing": {files: map[string]string{"a": "A", "b": "B"},
			states: map[string]UnitState{"a": {Stale: true}, "b": {}}, reload: true, enable: "a b"},
		"cut off after reloading": {files: map[string]string{"a": "A", "b": "B"}, enable: "a b"},
		"one was disabled": {files: map[string]string{"a": "A", "b": "B"},
			states: map[string]UnitState{"a": well, "b": {Active: true}}, enable: "b"},
		"another's file": {files: map[string]string{"a": "A", "b": "B", "c": "C"},
			states: map[string]UnitState{"a": well, "b": well, "c": {Stale: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := DecideUnitChanges(units, row.files, row.states)
			var write []string
			for _, unit := range got.Write {
				write = append(write, unit.Name)
			}
			if strings.Join(write, " ") != row.write || got.Reload != row.reload ||
				strings.Join(got.Enable, " ") != row.enable {
				t.Errorf("got %v, %t, %v", write, got.Reload, got.Enable)
			}
		})
	}
}

func TestDecideRestarts(t *testing.T) {
	units := []Unit{{Name: "a", Revision: "1"}}
	for name, row := range map[string]struct {
		state UnitState
		want  bool
	}{
		"never started":               {UnitState{}, true},
		"as it is to be":              {UnitState{Active: true, Revision: "1"}, false},
		"not enabled":                 {UnitState{Active: true, Revision: "1", Enabled: false}, false},
		"stopped":                     {UnitState{Revision: "1"}, true},
		"of an earlier file":          {UnitState{Active: true, Revision: "0"}, true},
		"of a file without revision":  {UnitState{Active: true}, true},
		"of a program that is gone":   {UnitState{Active: true, Revision: "1", Outdated: true}, true},
		"systemd has not read it yet": {UnitState{Active: true, Revision: "1", Stale: true}, false},
	} {
		got := DecideRestarts(units, map[string]UnitState{"a": row.state})
		if slices.Contains(got, "a") != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
