package plan

import "testing"

// The configuration of another network plugin is never overridden.
func TestWhenPodsNeedAStandInNetwork(t *testing.T) {
	for _, row := range []struct {
		files []string
		want  bool
	}{
		{nil, true},
		{[]string{"99-keelson-down.conflist"}, true}, // an earlier keel down was killed
		{[]string{".10-keelson.conflist123", "README"}, true},
		{[]string{"10-keelson.conflist"}, false},
		{[]string{"99-keelson-down.conflist", "10-calico.conflist"}, false},
		{[]string{"net.conf"}, false},
		{[]string{"net.json"}, false},
	} {
		if got := NeedsStandInNetwork(row.files); got != row.want {
			t.Errorf("%v: %t", row.files, got)
		}
	}
}
