package mesh

import (
	"context"
	"fmt"
	"strings"
	"time"

	"keelson.dev/cli/internal/pki"
	"keelson.dev/cli/internal/plan"
)

// rotation replaces the authority of a mesh.
type rotation struct {
	*Mesh
	others others
}

// others are the parts of a mesh that follow its authority without a restart by keel.
type others interface {
	// reach returns an error if the mesh does not answer.
	reach(ctx context.Context) error
	// controlPlane returns the addresses of the machines that have the authority's key and the store.
	controlPlane(ctx context.Context) ([]string, error)
	// publish publishes the trusted authorities to machines that join and to Pods.
	publish(ctx context.Context, pins []string) error
	// followers returns the nodes of other machines.
	followers(ctx context.Context) ([]plan.Follower, error)
}

// RotateAuthority replaces the authority of an opened mesh. It stops when both authorities are trusted and the new
// one signs; with finish it goes on until only the new one is trusted. Each run continues where an earlier one
// ended.
func RotateAuthority(ctx context.Context, m *Mesh, finish bool) error {
	if m.State.Worker() {
		return fmt.Errorf("--data-dir: %s is of a worker, which follows the authority of its mesh: run keel certs "+
			"rotate-ca on the machine of keel init, and then keel join here", m.Layout.Dir)
	}
	unlock, err := m.lockKeys()
	if err != nil {
		return err
	}
	defer unlock()
	return (&rotation{m, &apiOthers{m}}).run(ctx, finish)
}

// run makes all processes, machines and Pods follow the files on disk before it writes the next step, so that none
// of them is two steps behind.
func (r *rotation) run(ctx context.Context, finish bool) error {
	// Nothing is begun if the next step is not possible.
	have, err := pki.Authorities(r.Layout)
	if err != nil {
		return err
	}
	if _, err := plan.DecideRotation(have, finish); err != nil {
		return err
	}
	if err := r.others.reach(ctx); err != nil {
		return fmt.Errorf("the mesh does not answer, and has to run while its authority is replaced (%s starts it): %w",
			r.Maker(), err)
	}
	if err := r.expectAlone(ctx); err != nil {
		return err
	}
	heard := false
	for {
		if have, err = pki.Authorities(r.Layout); err != nil {
			return err
		}
		if !heard {
			if err := r.converge(ctx, have); err != nil {
				return err
			}
			// converge has completed an interrupted switch.
			if have, err = pki.Authorities(r.Layout); err != nil {
				return err
			}
		}
		step, err := plan.DecideRotation(have, finish)
		if err != nil {
			return err
		}
		if step == plan.RotationRest {
			return r.rest(ctx, have)
		}
		if step == plan.RotationFinish {
			if err := r.expectFollowers(ctx, have.Bundle[0]); err != nil {
				return err
			}
		}
		if err := r.step(ctx, string(step), func(ctx context.Context) error { return r.write(ctx, step) }); err != nil {
			return err
		}
		heard = !step.Heard()
	}
}

// expectAlone returns an error if other machines have the key of the old authority, and would go on signing with
// it.
func (r *rotation) expectAlone(ctx context.Context) error {
	machines, err := r.others.controlPlane(ctx)
	if err != nil {
		return err
	}
	if len(machines) > 1 {
		return fmt.Errorf("the control plane has %d machines (%s), and rotate-ca replaces the authority of one alone: "+
			"take the others out (keel reset), run this here to its end, and join them again", len(machines),
			strings.Join(machines, ", "))
	}
	return nil
}

// write writes the files of a step.
func (r *rotation) write(ctx context.Context, step plan.RotationStep) error {
	if err := r.awaitClocks(ctx); err != nil {
		return err
	}
	return pki.Rotate(r.Layout, step, time.Now())
}

// awaitClocks waits until files written now are certain to be newer than every process: the start time of a
// process that keel runs is known to the second only.
func (r *rotation) awaitClocks(ctx context.Context) error {
	var last time.Time
	for _, process := range r.State.Processes {
		if process.Started.After(last) {
			last = process.Started
		}
	}
	left := time.Until(last.Add(time.Second + clockGrain))
	if left <= 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(left):
		return nil
	}
}

// converge makes running processes, joining machines and Pods follow the files on disk.
func (r *rotation) converge(ctx context.Context, have plan.Authorities) error {
	begun := time.Now()
	if err := r.Mesh.step(ctx, "preparing certificates", func(context.Context) error {
		return r.preparePKI()
	}); err != nil {
		return err
	}
	if have.Switching() {
		have.Bundle = []string{have.Bundle[1], have.Bundle[0]}
	}
	if err := r.restart(ctx, begun); err != nil {
		return err
	}
	return r.Mesh.step(ctx, "telling machines and Pods whom the mesh trusts", func(ctx context.Context) error {
		return r.others.publish(ctx, have.Bundle)
	})
}

// expectFollowers returns an error that lists the nodes that would be lost without the old authority.
func (r *rotation) expectFollowers(ctx context.Context, authority string) error {
	followers, err := r.others.followers(ctx)
	if err != nil {
		return err
	}
	if behind := plan.NotFollowing(authority, followers); len(behind) > 0 {
		return fmt.Errorf("the old authority is still needed, and stays:\n  %s", strings.Join(behind, "\n  "))
	}
	return nil
}

// rest prints the state of the rotation, and what is next.
func (r *rotation) rest(ctx context.Context, have plan.Authorities) error {
	followers, err := r.others.followers(ctx)
	if err != nil {
		return err
	}
	if len(have.Bundle) == 1 {
		r.say("The mesh trusts one authority, %s: nothing is left to finish.", have.Bundle[0])
		if len(followers) > 0 {
			r.say("Its other machines trust the old one too until keel join is run there.")
		}
		return nil
	}
	r.say("\nThe new authority signs, and the mesh trusts the old one too: nobody is refused. What is next:\n")
	for _, sentence := range plan.NotFollowing(have.Bundle[0], followers) {
		r.say("  * %s", sentence)
	}
	r.say("  * copies of %s elsewhere have a certificate of the old authority: copy the file again, and ask anew for\n"+
		"    every other certificate that the mesh has signed", r.Layout.Kubeconfig(plan.AdminCertificate))
	r.say("  * then, at any time: keel certs rotate-ca --finish takes the old authority away\n")
	return nil
}
