package backup

import (
	"strings"
	"testing"

	"keelson.dev/services/apiserver/internal/storage/storedir"
)

// crashed runs a program that a failpoint ends.
func crashed(t *testing.T, failpoints string, args []string) {
	t.Helper()
	out, err := program(t, failpoints, args...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "crash") {
		t.Fatalf("it was not killed: %v, %s", err, out)
	}
}

// A move to a cluster that is killed leaves the store for the apiserver, and a cluster that it does not use; or the
// note that the store was moved. At no moment can both be used. The next run ends as if nothing had been, also if the
// mesh went on meanwhile.
func TestMigrateKilled(t *testing.T) {
	for _, place := range []struct {
		failpoint string
		// store and cluster are what an apiserver can use afterwards.
		store, cluster bool
	}{
		{"mark.before=crash", true, true},
		{"mark.after=crash", true, false},
		{"raise.after=crash", true, false},
		{"copy.before=1*off->crash", true, false},
		{"copy.after=1*off->crash", true, false},
		{"verify.before=crash", true, false},
		{"compact.after=crash", true, false},
		{"give.before=crash", true, false},
		{"give.after=crash", false, false},
		{"here.before=crash", false, false},
		{"here.after=crash", false, true},
		{"aside.before=crash", false, true},
		{"aside.after=crash", false, true},
	} {
		t.Run(place.failpoint, func(t *testing.T) {
			s, c := filled(t), newCluster(t)
			want := s.hold(t)
			s.Close()
			crashed(t, "apiserver/migrate."+place.failpoint, c.forth(s.dir))
			if err := c.usable(t); (err == nil) != place.cluster {
				t.Errorf("the cluster: %v", err)
			}
			if place.store {
				again := open(t, s.dir)
				if got := again.hold(t).content(); got.Checksum != want.content().Checksum {
					t.Errorf("the store holds %+v", got)
				}
				again.put(t, "/registry/pods/default/p1", "changed meanwhile")
				again.put(t, "/registry/pods/default/more", "1")
				if _, err := again.client.KV.Delete(t.Context(), "/registry/pods/default/p2"); err != nil {
					t.Fatal(err)
				}
				want = again.hold(t)
				again.Close()
			} else {
				s.unusable(t, "was moved to the etcd cluster")
			}
			must(t, c.forth(s.dir)...)
			if d := compare(want, c.hold(t)); len(d.wrong) > 0 || len(d.expired) > 0 {
				t.Errorf("the cluster differs: %+v", d)
			}
			c.compactedBefore(t, want.revision)
			if err := c.usable(t); err != nil {
				t.Error(err)
			}
			if exists(storedir.Of(s.dir).Store) {
				t.Errorf("there is %v", list(t, s.dir))
			}
		})
	}
}

// A move back that is killed leaves the cluster for the apiserver; or marked, and no embedded store; or the embedded
// store. The next run ends as if nothing had been.
func TestMigrateBackKilled(t *testing.T) {
	for _, place := range []struct {
		failpoint      string
		store, cluster bool
	}{
		{"stage.before=crash", false, true},
		{"stage.after=crash", false, true},
		{"leave.before=crash", false, true},
		{"leave.after=crash", false, false},
		{"install.before=crash", false, false},
		{"install.after=crash", false, false},
		{"return.before=crash", false, false},
		{"return.after=crash", true, false},
	} {
		t.Run(place.failpoint, func(t *testing.T) {
			s, c := filled(t), newCluster(t)
			s.Close()
			must(t, c.forth(s.dir)...)
			want := c.hold(t)
			crashed(t, "apiserver/migrate."+place.failpoint, c.back(s.dir))
			if err := c.usable(t); (err == nil) != place.cluster {
				t.Errorf("the cluster: %v", err)
			}
			if place.store {
				open(t, s.dir).Close()
			} else {
				s.unusable(t, "was moved to the etcd cluster")
			}
			must(t, c.back(s.dir)...)
			e := open(t, s.dir)
			if d := compare(want, e.hold(t)); len(d.wrong) > 0 || len(d.expired) > 0 {
				t.Errorf("it differs: %+v", d)
			}
			e.compactedBefore(t, want.revision)
			if err := c.usable(t); err == nil {
				t.Error("the cluster can be used, too")
			}
			for _, name := range list(t, s.dir) {
				if strings.HasSuffix(name, stagingSuffix) || strings.HasPrefix(name, incomingName) {
					t.Errorf("%s is left", name)
				}
			}
		})
	}
}
