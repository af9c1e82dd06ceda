package storedir

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

var at = Paths{Identity: "/d/identity", Store: "/d/etcd", Database: "/d/etcd/member/snap/db", Log: "/d/etcd/member/wal"}

// TestDecide has a row on each side of every bound. A wanted sentence begins with the file that is wrong.
func TestDecide(t *testing.T) {
	const id = "0b2c"
	whole := Log{Start: 10, Last: 20, Committed: 20, LastFile: 15}
	rows := []struct {
		name     string
		identity string
		database *Database
		log      *Log
		want     string
	}{
		{"a new directory", "", nil, nil, ""},
		{"nothing is left", id, nil, nil,
			"/d/etcd holds no store, but /d/identity says that the mesh 0b2c was kept there"},
		{"no database", "", nil, &whole, "/d/etcd/member/snap/db is missing"},
		{"no log", "", &Database{Index: 1}, nil, "/d/etcd/member/wal holds no log"},
		{"no log, nothing in the database: the first start was interrupted", "", &Database{}, nil, ""},
		{"no log, an empty database in place of the mesh", id, &Database{}, nil, "/d/etcd/member/wal holds no log"},
		{"whole, older than identities", "", &Database{Index: 20}, &whole, ""},
		{"whole", id, &Database{Index: 20}, &whole, ""},
		{"the log is ahead after a crash", id, &Database{Index: 10}, &whole, ""},
		{"the database is ahead", id, &Database{Index: 21}, &whole,
			"/d/etcd/member/wal is cut off or older than the database: it ends at entry 20, but the database holds " +
				"entry 21"},
		{"the database is behind", id, &Database{Index: 9}, &whole,
			"/d/etcd/member/snap/db is older than its log: it ends at entry 9, but the log begins after entry 10"},
		{"committed beyond the end", id, &Database{Index: 20}, &Log{Start: 10, Last: 20, Committed: 21},
			"/d/etcd/member/wal is cut off: it ends at entry 20, but entry 21 was committed"},
		{"the last file follows at once", id, &Database{Index: 20}, &Log{Last: 20, Committed: 20, LastFile: 21}, ""},
		{"entries are missing before the last file", id, &Database{Index: 20}, &Log{Last: 20, Committed: 20,
			LastFile: 22},
			"/d/etcd/member/wal is cut off in the middle: entries 21 to 21 are missing"},
		{"many are missing", id, &Database{Index: 20}, &Log{Last: 20, Committed: 20, LastFile: 31},
			"/d/etcd/member/wal is cut off in the middle: entries 21 to 30 are missing"},
		{"more in the log than was committed", id, &Database{Index: 19}, &Log{Last: 20, Committed: 19}, ""},
		{"a new store before its first entry", "", &Database{}, &Log{}, ""},
		{"cut off, with a database that is older", id, &Database{Index: 9}, &Log{Start: 10, Last: 20, Committed: 21},
			"/d/etcd/member/wal is cut off: it ends at entry 20"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			err := Decide(Found{Paths: at, Identity: row.identity, Database: row.database, Log: row.log})
			if row.want == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), row.want) {
				t.Fatalf("%v, want %q", err, row.want)
			}
			restore, anew := "keel store restore SNAPSHOT --replace",
				"move away both /d/etcd and /d/identity"
			for _, way := range []string{restore, anew} {
				if !strings.Contains(err.Error(), way) {
					t.Errorf("%q does not say %q", err, way)
				}
			}
		})
	}
}

func TestIdentify(t *testing.T) {
	rows := []struct {
		name     string
		recorded string
		stored   Stored
		want     string
		refused  string
	}{
		{"a new mesh", "", Stored{Empty: true}, "fresh", ""},
		{"a store older than identities", "", Stored{}, "fresh", ""},
		{"the crash between store and record", "", Stored{Identity: "a"}, "a", ""},
		{"every later start", "a", Stored{Identity: "a"}, "a", ""},
		{"restored from a snapshot older than identities", "a", Stored{}, "a", ""},
		{"an empty store", "a", Stored{Empty: true}, "",
			"/d/etcd is empty, but /d/identity says that the mesh a was kept there"},
		{"the store of another mesh", "a", Stored{Identity: "b"}, "",
			"/d/etcd keeps the mesh b, but /d/identity says a"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got, err := Identify(at, row.recorded, row.stored, "fresh")
			refused := err != nil && strings.HasPrefix(err.Error(), row.refused)
			if got != row.want || (row.refused != "") != refused || (row.refused == "") != (err == nil) {
				t.Errorf("%q, %v, want %q or %q", got, err, row.want, row.refused)
			}
		})
	}
}

// Whatever a crash leaves: an entry is in the log before it is committed, committed before it is applied, and the log
// is cleared only of what the database holds. Such a store is opened; one that lacks an entry of those is not.
func TestACrashIsNoDamage(t *testing.T) {
	const last = 8
	for committed := range uint64(last + 1) {
		for applied := range committed + 1 {
			for start := range applied + 1 {
				log := Log{Start: start, Last: last, Committed: committed, LastFile: start}
				found := Found{Paths: at, Identity: "0b2c", Database: &Database{Index: applied}, Log: &log}
				if err := Decide(found); err != nil {
					t.Fatalf("applied %d, log %+v: %v", applied, log, err)
				}
				log.Last = committed
				if err := Decide(found); err != nil {
					t.Fatalf("applied %d, log %+v: %v", applied, log, err)
				}
				if log.Last = committed - 1; committed > 0 && Decide(found) == nil {
					t.Fatalf("applied %d, log %+v: the last committed entry is missing", applied, log)
				}
			}
		}
	}
}

// The caller can distinguish this error from every other error of the start, so that it does not try again.
func TestDamageIsAnError(t *testing.T) {
	var damage *Damage
	err := fmt.Errorf("opening: %w", Decide(Found{Paths: at, Identity: "0b2c"}))
	if !errors.As(err, &damage) || damage.File != "/d/etcd" || damage.Store != "/d/etcd" ||
		damage.Identity != "/d/identity" {
		t.Errorf("%v is %+v", err, damage)
	}
}
