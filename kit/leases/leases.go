// Package leases is the command `leases` of the daemons that lead: it reports whether a process holds and renews each
// of the daemon's Leases. The chart's test runs it, with the rights of the daemon itself.
package leases

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"keelson.dev/kit/client"
	"keelson.dev/kit/daemon"
	"keelson.dev/kit/election"
)

// Name is the command's.
const Name = "leases"

const (
	// patience is how long Leases may take, as another process takes over meanwhile.
	patience = time.Minute
	// glance is between two looks: a Lease is renewed about every two seconds.
	glance = time.Second
)

// none is when a Lease was renewed that never was.
var none metav1.MicroTime

// Main runs the command of a daemon whose Leases are SERVICE.ROLE, and returns the exit status: 0 where each Lease that
// there is, and at least one, is held and renewed, 1 where one is not, and 2 after wrong usage.
func Main(service string, roles []string, args []string) int {
	flags := pflag.NewFlagSet("keelson-"+service+" "+Name, pflag.ContinueOnError)
	var connection client.Options
	connection.AddFlags(flags)
	wait := flags.Duration("timeout", patience, "how long each Lease may take until it is held and renewed")
	err := flags.Parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q, only flags are taken", flags.Arg(0))
	}
	if err := errors.Join(err, connection.Validate()); err != nil {
		return fail(flags.Name(), daemon.UsageError(err))
	}
	config, err := connection.Config(service)
	if err != nil {
		return fail(flags.Name(), daemon.UsageError(err))
	}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fail(flags.Name(), err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), *wait)
	defer cancel()
	names := make([]string, len(roles))
	for i, role := range roles {
		names[i] = service + "." + role
	}
	if err := Await(ctx, api.CoordinationV1().Leases(election.Namespace), names, os.Stdout); err != nil {
		return fail(flags.Name(), err)
	}
	return 0
}

func fail(name string, err error) int {
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	if daemon.IsUsage(err) {
		return 2
	}
	return 1
}

// Await reads the Leases of these names until each that there is has a holder that renews it, and prints the holders.
// There must be one. Its error says of each what was wrong with it when ctx ended.
func Await(ctx context.Context, leases coordinationv1client.LeaseInterface, names []string, out io.Writer) error {
	first := map[string]look{}
	for {
		wrong, held := examine(ctx, leases, names, first)
		if len(wrong) == 0 {
			fmt.Fprint(out, strings.Join(held, ""))
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.New(strings.Join(wrong, "; "))
		case <-time.After(glance):
		}
	}
}

// examine looks at each Lease once; first is what they said when they were first seen. Who asks too late asks for what
// it knows already.
func examine(ctx context.Context, leases coordinationv1client.LeaseInterface, names []string,
	first map[string]look) (wrong, held []string) {
	for _, name := range slices.Sorted(slices.Values(names)) {
		lease, err := leases.Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			wrong = append(wrong, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		now := lookOf(lease)
		if _, seen := first[name]; !seen {
			first[name] = now
		}
		if what := complaint(first[name], now); what != "" {
			wrong = append(wrong, name+": "+what)
			continue
		}
		held = append(held, fmt.Sprintf("%s: %s holds it and renews it\n", name, now.holder))
	}
	if len(wrong)+len(held) == 0 {
		wrong = append(wrong, "there is none of the Leases "+strings.Join(names, ", "))
	}
	return wrong, held
}
