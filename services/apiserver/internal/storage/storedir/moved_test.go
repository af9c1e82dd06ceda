package storedir

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// A store that was moved is not opened, whether it still lies there or not, until the note is gone.
func TestMoved(t *testing.T) {
	p := Of(t.TempDir())
	if moved, err := ReadMoved(p); moved != nil || err != nil {
		t.Fatalf("%+v, %v", moved, err)
	}
	want := Moved{Move: "1a", Servers: []string{"https://a:2379", "https://b:2379"}}
	if err := WriteMoved(p, want); err != nil {
		t.Fatal(err)
	}
	if moved, err := ReadMoved(p); err != nil || !reflect.DeepEqual(*moved, want) {
		t.Errorf("%+v, %v", moved, err)
	}
	if _, err := Check(p); err == nil || !strings.Contains(err.Error(), "was moved to the etcd cluster at "+
		"https://a:2379,https://b:2379, as "+p.Moved+" says") {
		t.Errorf("%v", err)
	}
	for range 2 {
		if err := ForgetMoved(p); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Check(p); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(p.Moved, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(p); err == nil || !strings.Contains(err.Error(), "does not say where the store was moved to") {
		t.Errorf("%v", err)
	}
}

// Whatever else is wrong, that it was moved is what is said, except of a member that others took out.
func TestDecideMoved(t *testing.T) {
	p := Paths{Store: "/d/etcd", Moved: "/d/moved"}
	moved := &Moved{Servers: []string{"http://e"}}
	for want, f := range map[string]Found{
		"the store of /d/etcd was moved to the etcd cluster at http://e": {Paths: p, Moved: moved, Identity: "m"},
		"the store of /d/etcd was moved": {Paths: p, Moved: moved, Database: &Database{Index: 1},
			Log: &Log{Last: 1, Committed: 1}},
		"was taken out of the store": {Paths: p, Moved: moved, Left: true},
	} {
		if err := Decide(f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
