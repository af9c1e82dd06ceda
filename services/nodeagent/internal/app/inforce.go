package app

import (
	"cmp"

	"github.com/spf13/pflag"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"keelson.dev/services/nodeagent/internal/cgroup"
	"keelson.dev/services/nodeagent/internal/kubeletconfig"
)

// inForce returns the agent's configuration in the form of a kubelet's file, regardless of its origin.
func (c Config) inForce(driver cgroup.Driver) (*kubeletv1beta1.KubeletConfiguration, error) {
	o := &options{config: c}
	for i := range c.Taints {
		o.taints = append(o.taints, c.Taints[i].ToString())
	}
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	o.AddFlags(flags)
	config, err := kubeletconfig.InForce(flags)
	if err != nil {
		return nil, err
	}
	serial, many := c.ImagePulls.Show()
	config.SerializeImagePulls, config.MaxParallelImagePulls = &serial, many
	config.CgroupDriver = cmp.Or(config.CgroupDriver, string(driver))
	return config, nil
}
