package pace

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

var start = time.Unix(1_700_000_000, 0)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func failed(seconds ...int) []Pod { return made(corev1.PodFailed, seconds...) }

func made(phase corev1.PodPhase, seconds ...int) []Pod {
	var pods []Pod
	for _, s := range seconds {
		pods = append(pods, Pod{Created: at(s), Phase: phase})
	}
	return pods
}

func TestAllow(t *testing.T) {
	const pending, running, succeeded = corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded
	nine := []int{0, 2, 6, 14, 30, 62, 126, 254, 510}
	for _, c := range []struct {
		name    string
		pods    []Pod
		missing int
		now     int
		create  int
		wake    int // 0 for never
	}{
		{"DEP-157 none has failed", made(running, 0), 100, 1, 100, 0},
		{"none at all", nil, 100, 0, 100, 0},
		{"one round failed: 2 seconds", failed(0, 0, 1, 1), 100, 2, 0, 3},
		{"and then half as many", failed(0, 0, 1, 1), 100, 3, 50, 0},
		{"two rounds failed: 4 seconds", failed(0, 2), 100, 5, 0, 6},
		{"and then a quarter", failed(0, 2), 100, 6, 25, 0},
		{"at least one", failed(0, 2), 3, 6, 1, 0},
		{"eight rounds failed: 256 seconds", failed(nine[:8]...), 1000, 509, 0, 510},
		{"and then 1 of 256", failed(nine[:8]...), 1000, 510, 3, 0},
		{"nine rounds failed: 5 minutes are the most", failed(nine...), 1000, 809, 0, 810},
		{"and then one", failed(nine...), 1000, 810, 1, 0},
		{"what was made after the failures and is not known to run counts as a try",
			append(failed(0), made(pending, 5)...), 100, 6, 0, 7},
		{"one that was made later runs", append(failed(0, 2), made(running, 3)...), 100, 3, 100, 0},
		{"one of the same second runs", append(failed(2), made(running, 2)...), 100, 2, 100, 0},
		{"one that was made before runs", append(made(running, 0), failed(1)...), 100, 2, 0, 3},
		{"failures before one that runs do not count", append(failed(0, 2, 6, 20), made(running, 10)...), 100, 21, 0,
			22},
		{"one that has succeeded is none that runs", append(failed(0), made(succeeded, 1)...), 100, 2, 0, 3},
		{"10 minutes apart they belong together", failed(0, 600), 100, 603, 0, 604},
		{"longer apart they do not", failed(0, 601), 100, 602, 0, 603},
		{"after 10 minutes it is still half", failed(0), 100, 600, 50, 0},
		{"after longer all is forgotten", failed(0), 100, 601, 100, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			create, wake := Allow(c.pods, c.missing, at(c.now))
			want := time.Time{}
			if c.wake > 0 {
				want = at(c.wake)
			}
			if create != c.create || !wake.Equal(want) {
				t.Errorf("%d, again at %v; want %d, %v", create, wake, c.create, want)
			}
		})
	}
}

// Where every Pod fails at once, the number of tries is bounded, however many Pods are missing.
func TestTriesAreFew(t *testing.T) {
	for _, missing := range []int{1, 10, 500} {
		// At most twice the missing by halves, then one each time: 9 rounds until the longest wait, 12 of those in an
		// hour.
		most := 2*missing + 21
		var pods []Pod
		for now := start.Add(900 * time.Millisecond); now.Before(at(3600)) && len(pods) <= most; {
			create, wake := Allow(pods, missing, now)
			if (create == 0) != wake.After(now) {
				t.Fatalf("%d Pods and wake at %v of %v", create, wake, now)
			}
			for range create {
				pods = append(pods, Pod{Created: now.Truncate(time.Second), Phase: corev1.PodFailed})
			}
			if now = now.Add(100 * time.Millisecond); wake.After(now) {
				now = wake
			}
		}
		if len(pods) > most {
			t.Errorf("%d tries in an hour with %d missing, want at most %d", len(pods), missing, most)
		}
	}
}
