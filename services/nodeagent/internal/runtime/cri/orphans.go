package cri

import (
	"context"

	"go.uber.org/zap"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// EndOrphans implements runtime.Runtime. Where the runtime is not containerd, nothing is known of what lies behind it.
func (r *Runtime) EndOrphans(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shortCall)
	defer cancel()
	answer, err := r.runtime.Status(ctx, &cri.StatusRequest{Verbose: true})
	if err != nil {
		return failed("asking for its configuration", err)
	}
	ended, err := r.behind.EndOrphans(ctx, answer.Info["config"])
	if len(ended) > 0 {
		r.log.Info("ended containers of which the container runtime knew nothing", zap.Strings("containers", ended))
	}
	return err
}
