package podfiles

import (
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"keelson.dev/services/nodeagent/internal/userns"
)

// program puts a getsubids on the PATH that answers with a shell script.
func program(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, getsubids), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// SAF-106: the program's answer is understood for users and groups.
func TestSubordinates(t *testing.T) {
	program(t, `[ "$1" = -g ] && echo "0: kubelet 131072 65536" || printf '0: kubelet 65536 7208960\n1: kubelet 9 9\n'`)
	if got, err := subordinates(t.Context(), "kubelet"); err != nil || got != "kubelet:65536:7208960\nkubelet:9:9\n" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := subordinates(t.Context(), "-g", "kubelet"); err != nil || got != "kubelet:131072:65536\n" {
		t.Errorf("%q, %v", got, err)
	}
	program(t, "exit 1")
	if got, err := subordinates(t.Context(), "kubelet"); err != nil || got != "" {
		t.Errorf("%q, %v", got, err)
	}
}

// SAF-101, SAF-102: a custom range needs the user kubelet, the program getsubids and ranges of that user. If one of
// them is missing, the default range applies; if they exist and are wrong, no range is guessed.
func TestHostRange(t *testing.T) {
	// The host answers only for kubelet: another user has other IDs.
	const mine = `[ "$*" = kubelet ] || [ "$*" = "-g kubelet" ] || { echo "0: $* 7 7"; exit; }
`
	defaults := userns.Range{First: 65536, Length: 7208960}
	custom := userns.Range{First: 655360, Length: 7208960}
	const none = "-" // no such program
	for _, r := range []struct {
		name   string
		users  []string
		script string
		want   userns.Range
		wrong  string
	}{
		{"all three", []string{"kubelet"}, mine + "echo '0: kubelet 655360 7208960'", custom, ""},
		{"no user", nil, mine + "echo '0: kubelet 655360 7208960'", defaults, ""},
		{"a user of another name", []string{"kube", "Kubelet", "kubelet2"}, mine + "echo '0: kubelet 655360 7208960'",
			defaults, ""},
		{"no program", []string{"kubelet"}, none, defaults, ""},
		{"no ranges", []string{"kubelet"}, mine + "exit 1", defaults, ""},
		{"ranges of another user alone", []string{"kubelet"}, mine + "echo '0: somebody 655360 7208960'", defaults, ""},
		{"users and groups differ", []string{"kubelet"}, mine + `[ $1 = -g ] && f=655360 || f=131072
echo "0: kubelet $f 7208960"`, userns.Range{}, "same range"},
		{"no group range", []string{"kubelet"}, mine + "[ $1 = -g ] && exit 1\necho '0: kubelet 655360 7208960'",
			userns.Range{}, "exactly one range"},
		{"too few", []string{"kubelet"}, mine + "echo '0: kubelet 655360 7143424'", userns.Range{}, "at least 7208960"},
	} {
		t.Run(r.name, func(t *testing.T) {
			if r.script == none {
				t.Setenv("PATH", t.TempDir())
			} else {
				program(t, r.script)
			}
			lookup := func(name string) (*user.User, error) {
				if slices.Contains(r.users, name) {
					return &user.User{Username: name}, nil
				}
				return nil, user.UnknownUserError(name)
			}
			got, err := hostRange(t.Context(), 110, lookup)
			if got != r.want || (err != nil) != (r.wrong != "") || err != nil && !strings.Contains(err.Error(),
				r.wrong) {
				t.Errorf("%v, %v; want %v, error %q", got, err, r.want, r.wrong)
			}
		})
	}
}

// SAF-102: a host that cannot report whether the user exists gets no range.
func TestHostRangeWithoutAnswer(t *testing.T) {
	program(t, "echo '0: kubelet 655360 7208960'")
	broken := func(string) (*user.User, error) { return nil, errors.New("no answer") }
	if got, err := hostRange(t.Context(), 110, broken); err == nil {
		t.Errorf("got %v, want an error", got)
	}
}
