package backup

import (
	"reflect"
	"strings"
	"testing"

	"keelson.dev/services/apiserver/internal/storage"
	"keelson.dev/services/apiserver/internal/storage/storedir"
)

func TestDecideMigration(t *testing.T) {
	const mesh, move = "0b2c", "1a"
	here, elsewhere := &storedir.Moved{Move: move}, &storedir.Moved{Move: "2b", Servers: []string{"http://f"}}
	arriving := storage.Mark{Kind: storage.Arriving, Mesh: mesh, Move: move}
	present := storage.Mark{Kind: storage.Here, Mesh: mesh, Move: move}
	left := storage.Mark{Kind: storage.Left, Mesh: mesh, Move: move}
	foreign := storage.Mark{Kind: storage.Arriving, Mesh: "ffff", Move: move}
	const copies, finishes = "", "finish"
	for name, row := range map[string]struct {
		store bool
		moved *storedir.Moved
		mark  storage.Mark
		// forth and back are what the two directions decide: a step, or a part of the error.
		forth, back string
	}{
		"before":                        {true, nil, storage.Mark{}, copies, "holds a store, which was not moved"},
		"no store yet":                  {false, nil, storage.Mark{}, "holds no store", ""},
		"copying was cut off":           {true, nil, arriving, copies, "holds a store, which was not moved"},
		"noted, and cut off":            {true, here, arriving, finishes, "forward"},
		"marked, and cut off":           {true, here, present, finishes, "forward"},
		"moved":                         {false, here, present, finishes, ""},
		"aside before it was marked":    {false, here, arriving, finishes, "forward"},
		"leaving was cut off":           {false, here, left, "is on its way back", "release"},
		"left without a note":           {false, nil, left, "holds no store", "release"},
		"back, and cut off":             {true, here, left, "is on its way back", "installed"},
		"back":                          {true, nil, left, "still holds the store that was moved away", "installed"},
		"not marked, though moved":      {false, here, storage.Mark{}, "was moved to the etcd", "give the servers"},
		"part of it, the rest is gone":  {false, nil, arriving, "holds no store", "is missing, from which it came"},
		"moved to another cluster":      {false, elsewhere, present, "cluster at http://f", "give the servers"},
		"moved to another, cut off":     {true, elsewhere, arriving, "cluster at http://f", "give the servers"},
		"the mark of another mesh":      {true, nil, foreign, "is of the mesh ffff", "is of the mesh ffff"},
		"the mark of another, moved":    {false, here, foreign, "is of the mesh ffff", "is of the mesh ffff"},
		"the mark of another, no store": {false, nil, foreign, "is of the mesh ffff", "is of the mesh ffff"},
	} {
		s := seen{paths: storedir.Of("/d"), store: row.store, identity: mesh, moved: row.moved, servers: "http://e",
			mark: row.mark}
		finish, err := decideToEtcd(s)
		if got := step(err, map[string]bool{finishes: finish}); !strings.Contains(got, row.forth) || row.forth == "" &&
			got != "" {
			t.Errorf("%s: to the cluster: %q, want %q", name, got, row.forth)
		}
		b, err := decideToEmbedded(s)
		if got := step(err, map[string]bool{"installed": b.installed, "forward": b.forward,
			"release": b.release}); !strings.Contains(got, row.back) || row.back == "" && got != "" {
			t.Errorf("%s: back: %q, want %q", name, got, row.back)
		}
	}
}

// step names what was decided.
func step(err error, decided map[string]bool) (text string) {
	if err != nil {
		return err.Error()
	}
	for name, is := range decided {
		if is {
			text += name
		}
	}
	return text
}

func TestDecideTarget(t *testing.T) {
	object := func(value byte, lease, revision int64) entry {
		return entry{value: digest{value}, lease: lease, revision: revision}
	}
	source := holding{identity: "m", revision: 9, entries: map[string]entry{"a": object(1, 0, 5), "b": object(2, 0, 7),
		"event": object(3, 77, 8)}}
	with := func(change func(map[string]entry)) holding {
		h := source.without()
		change(h.entries)
		return h
	}
	for name, row := range map[string]struct {
		mark   string
		target holding
		want   string
	}{
		"empty":                {"", holding{}, ""},
		"restored":             {"", with(func(map[string]entry) {}), ""},
		"its lease ended":      {"", with(func(m map[string]entry) { delete(m, "event") }), ""},
		"a lease's key is new": {"", with(func(m map[string]entry) { m["more"] = object(1, 78, 3) }), ""},
		"a key is missing":     {"", with(func(m map[string]entry) { delete(m, "b") }), `as it was at another time, with 1 other keys, "b"`},
		"a key is another":     {"", with(func(m map[string]entry) { m["a"] = object(9, 0, 5) }), `with 1 other keys, "a"`},
		"a key is older":       {"", with(func(m map[string]entry) { m["a"] = object(1, 0, 4) }), `with 1 other keys, "a"`},
		"of something else": {"", holding{entries: map[string]entry{"y": {}, "x": {}}},
			`is not empty: it holds 2 keys, "x" among them`},
		"cut off before": {storage.Arriving, holding{entries: map[string]entry{"x": {}}}, ""},
	} {
		err := decideTarget(seen{servers: "s", mark: storage.Mark{Kind: row.mark}}, source, row.target)
		if (row.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
}

func TestCompare(t *testing.T) {
	type keys = map[string]entry
	original := holding{entries: keys{"a": {revision: 5}, "event": {lease: 7, revision: 6}, "z": {revision: 2}}}
	for name, row := range map[string]struct {
		copied keys
		want   difference
	}{
		"as it is": {keys{"a": {revision: 5}, "event": {lease: 7, revision: 6}, "z": {revision: 2}}, difference{}},
		"later":    {keys{"a": {revision: 9}, "event": {lease: 7, revision: 9}, "z": {revision: 9}}, difference{}},
		"expired":  {keys{"a": {revision: 9}, "z": {revision: 9}}, difference{expired: []string{"event"}}},
		"all is wrong": {keys{"a": {revision: 4}, "event": {revision: 9}, "more": {}},
			difference{wrong: []string{"a", "event", "z", "more"}}},
	} {
		if got := compare(original, holding{entries: row.copied}); !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
	}
}

func TestBackBy(t *testing.T) {
	for _, row := range []struct{ snapshot, cluster, want int64 }{
		{100, 100, 1000}, {100, 5100, 6000}, {101, 100, 1000},
	} {
		if got := backBy(row.snapshot, row.cluster); got != row.want {
			t.Errorf("%+v: %d", row, got)
		}
	}
}

func TestDecideRaise(t *testing.T) {
	for _, row := range []struct {
		source, target, want int64
		refused              bool
	}{
		{100, 1, 101, false}, {100, 101, 1, false}, {100, 102, 0, false}, {100, 5000, 0, false},
		{raiseLimit, 2, raiseLimit, false}, {raiseLimit, 1, 0, true},
	} {
		got, err := decideRaise(row.source, row.target, "s")
		if got != row.want || (err != nil) != row.refused {
			t.Errorf("%+v: %d, %v", row, got, err)
		}
	}
}
