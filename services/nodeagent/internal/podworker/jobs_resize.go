package podworker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	corev1 "k8s.io/api/core/v1"

	"keelson.dev/kit/failpoint"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/qos"
	"keelson.dev/services/nodeagent/internal/resize"
	"keelson.dev/services/nodeagent/internal/sizes"
)

// resize brings the Pod's cgroup and its running instances to the allocated size: it makes room in the cgroup,
// resizes the instances one after the other, and brings the cgroup to its final size. Each step may be repeated;
// completed steps are remembered when a later one fails. Containers may start as soon as the cgroup has room for
// them, even if the rest of the resize cannot go on.
func (j *job) resize(ctx context.Context) outcome {
	r := j.action.Resize
	if err := j.resizeCgroup(r.Max); err != nil {
		return j.resizeFailed(err, nil)
	}
	if err := j.mayLower(r); err != nil {
		return j.resizeFailed(err, remember(nil, r.Max))
	}
	done := map[string]sizes.Instance{}
	for _, i := range r.Instances {
		if ctx.Err() != nil {
			return j.resizeFailed(ctx.Err(), remember(done, r.Max))
		}
		limits := j.config.Steps.Limits(j.pod, i.Container.Spec)
		err := failpoint.Around("nodeagent/container.update", func() error {
			return j.config.Runtime.UpdateContainer(context.WithoutCancel(ctx), i.ID, limits)
		})
		if err != nil {
			return j.resizeFailed(err, remember(done, r.Max))
		}
		done[i.ID] = i.Allocated
	}
	if err := j.resizeCgroup(r.Target); err != nil {
		return j.resizeFailed(err, remember(done, r.Max))
	}
	return outcome{observe: true, remember: remember(done, r.Target)}
}

func (j *job) resizeCgroup(size sizes.Size) error {
	return failpoint.Around("nodeagent/cgroup.resize", func() error {
		return j.config.Steps.ResizeCgroup(size.Apply(j.pod))
	})
}

func (j *job) resizeFailed(err error, remember func(*podstate.Memory)) outcome {
	if !errors.Is(err, context.Canceled) {
		j.warn(reasonResizeError, "Pod resize error: %s", describeResize(j.pod, err))
	}
	return outcome{err: err, reason: corev1.PodReasonError, observe: true, remember: remember}
}

// remember notes which instances have been resized, and the size that the cgroup has.
func remember(done map[string]sizes.Instance, actuated sizes.Size) func(*podstate.Memory) {
	return func(m *podstate.Memory) { m.Resize.Note(done, actuated) }
}

// mayLower refuses to lower memory limits below what is in use.
func (j *job) mayLower(r *podstate.Resizing) error {
	var limits []resize.LoweredLimit
	lower := func(container, id string, before, after int64) error {
		if after == 0 || before != 0 && after >= before { // 0 means no limit
			return nil
		}
		used, err := j.config.Steps.MemoryUsed(j.pod, id)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("reading the memory in use: %w", err)
		}
		limits = append(limits, resize.LoweredLimit{Container: container, Limit: uint64(after), Used: used})
		return nil
	}
	err := lower("", "", qos.PodMemoryLimit(r.Actuated.Apply(j.pod)), qos.PodMemoryLimit(r.Target.Apply(j.pod)))
	for _, i := range r.Instances {
		err = errors.Join(err, lower(i.Container.Spec.Name, i.ID, i.Actuated.MemoryLimit(), i.Allocated.MemoryLimit()))
	}
	return errors.Join(err, resize.MayLower(limits))
}
