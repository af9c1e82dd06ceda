package cri

import (
	"context"

	"go.uber.org/zap"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// EndOrphans implements runtime.Runtime. It does nothing for runtimes other than containerd.
func (r *Runtime) EndOrphans(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shortCall)
	defer cancel()
	answer, err := r.runtime.Status(ctx, &cri.StatusRequest{Verbose: true})
	if err != nil {
		return failed("asking for its configuration", err)
	}
	ended, err := r.behind.EndOrphans(ctx, answer.Info["config"], r.listSandboxes)
	if len(ended) > 0 {
		r.log.Info("ended containers of which the container runtime knew nothing", zap.Strings("containers", ended))
	}
	return err
}

// listSandboxes returns the IDs of all sandboxes, the nodeagent's and others.
func (r *Runtime) listSandboxes(ctx context.Context) (map[string]bool, error) {
	answer, err := r.runtime.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	if err != nil {
		return nil, failed("listing sandboxes", err)
	}
	ids := make(map[string]bool, len(answer.GetItems()))
	for _, s := range answer.GetItems() {
		ids[s.GetId()] = true
	}
	return ids, nil
}
