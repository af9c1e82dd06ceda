package podfiles

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"os/user"
	"regexp"

	"keelson.dev/services/nodeagent/internal/userns"
)

// getsubids is the program that reads a user's subordinate IDs, wherever the host keeps them.
const getsubids = "getsubids"

// HostRange returns the host IDs for Pods with user namespaces. On a host with the user userns.User and the program
// getsubids they come from there; a wrong answer is an error. Any other host gets userns.Default.
func HostRange(ctx context.Context, maxPods int) (userns.Range, error) {
	return hostRange(ctx, maxPods, user.Lookup)
}

// hostRange is HostRange with a function that looks up a user.
func hostRange(ctx context.Context, maxPods int, lookup func(name string) (*user.User, error)) (userns.Range, error) {
	if _, err := lookup(userns.User); err != nil {
		if unknown := user.UnknownUserError(""); errors.As(err, &unknown) {
			return userns.Default(maxPods), nil
		}
		return userns.Range{}, fmt.Errorf("looking up user %s: %w", userns.User, err)
	}
	if _, err := exec.LookPath(getsubids); err != nil {
		return userns.Default(maxPods), nil
	}
	users, err := subordinates(ctx, userns.User)
	if err != nil {
		return userns.Range{}, err
	}
	groups, err := subordinates(ctx, "-g", userns.User)
	if err != nil {
		return userns.Range{}, err
	}
	custom, ok, err := userns.Custom(users, groups, maxPods)
	if err != nil {
		return userns.Range{}, fmt.Errorf("reading the ID ranges of user namespaces: %w", err)
	}
	if !ok {
		return userns.Default(maxPods), nil
	}
	return custom, nil
}

// listed is a line of getsubids, for example "0: kubelet 65536 7208960".
var listed = regexp.MustCompile(`(?m)^\d+: (\S+) (\d+) (\d+)$`)

// subordinates asks getsubids and returns its answer in the form of subuid(5). No ranges at all are no error.
func subordinates(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, getsubids, args...).Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) && len(out) == 0 {
		return "", nil // it ends so when the user has none
	}
	if err != nil {
		return "", fmt.Errorf("running %s: %w", getsubids, err)
	}
	return listed.ReplaceAllString(string(out), "$1:$2:$3"), nil
}
