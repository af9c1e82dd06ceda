// Package config turns a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1) into rules.
package config

import (
	"fmt"
	"os"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"

	"keelson.dev/kit/backoff"
	"keelson.dev/kit/configfile"
	"keelson.dev/services/scheduler/internal/rules"
)

const (
	defaultProfile = corev1.DefaultSchedulerName
	apiVersion     = "kubescheduler.config.k8s.io/v1"
	kind           = "KubeSchedulerConfiguration"
)

// Config is what the scheduler reads of the file.
type Config struct {
	Profiles []rules.Profile
	Backoff  backoff.Policy
	// Extenders are the services of others that have a say, each with its defaults.
	Extenders []schedulerv1.Extender
	// Unused names fields of the file that have no effect here, with the reason.
	Unused []string
}

// Default is the configuration without a file: one profile with every rule, retries after 1 s doubling to 10 s.
func Default() Config {
	return Config{Profiles: []rules.Profile{DefaultProfile()}, Backoff: backoff.Policy{First: time.Second,
		Max: 10 * time.Second}}
}

// Load reads the file; an empty path gives the default.
func Load(path string) (Config, error) {
	if path == "" {
		return Default(), nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("reading the scheduler configuration: %w", err)
	}
	c, err := Parse(data)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Parse reads a configuration in YAML or JSON. An error says in a sentence each, with its path, what is
// wrong.
func Parse(data []byte) (Config, error) {
	var file schedulerv1.KubeSchedulerConfiguration
	if err := (configfile.Kind{APIVersion: apiVersion, Name: kind}).Decode(data, &file); err != nil {
		return Config{}, err
	}
	c := Default()
	var err error
	if c.Unused, err = unused(&file); err != nil {
		return Config{}, err
	}
	if err := readExtenders(file.Extenders); err != nil {
		return Config{}, err
	}
	c.Extenders = file.Extenders
	if err := readBackoff(&file, &c.Backoff); err != nil {
		return Config{}, err
	}
	if len(file.Profiles) == 0 {
		file.Profiles = []schedulerv1.KubeSchedulerProfile{{}}
	}
	c.Profiles = nil
	for i := range file.Profiles {
		profile, unused, err := readProfile(&file.Profiles[i], ignoredByScheduler(file.Extenders))
		if err != nil {
			return Config{}, fmt.Errorf("profiles[%d].%w", i, err)
		}
		for _, text := range unused {
			c.Unused = append(c.Unused, fmt.Sprintf("profiles[%d].%s", i, text))
		}
		for _, other := range c.Profiles {
			if other.Name == profile.Name {
				return Config{}, fmt.Errorf("profiles[%d].schedulerName: %q stands twice, each profile needs its own",
					i, profile.Name)
			}
		}
		c.Profiles = append(c.Profiles, profile)
	}
	return c, nil
}

func readBackoff(file *schedulerv1.KubeSchedulerConfiguration, policy *backoff.Policy) (err error) {
	if s := file.PodInitialBackoffSeconds; s != nil {
		if policy.First, err = period("podInitialBackoffSeconds", *s, 1); err != nil {
			return err
		}
	}
	if s := file.PodMaxBackoffSeconds; s != nil {
		if policy.Max, err = period("podMaxBackoffSeconds", *s, 1); err != nil {
			return err
		}
	}
	if policy.Max < policy.First {
		return fmt.Errorf("podMaxBackoffSeconds: %d, it must not be less than podInitialBackoffSeconds, which is %d",
			int(policy.Max.Seconds()), int(policy.First.Seconds()))
	}
	return nil
}

// unused lists fields that other schedulers need and this one does not.
func unused(file *schedulerv1.KubeSchedulerConfiguration) ([]string, error) {
	if n := file.Parallelism; n != nil && *n <= 0 {
		return nil, fmt.Errorf("parallelism: %d, it must be greater than 0", *n)
	}
	if err := checkShare(file.PercentageOfNodesToScore); err != nil {
		return nil, err
	}
	var out []string
	note := func(field any, text string) {
		if !reflect.ValueOf(field).IsZero() {
			out = append(out, text)
		}
	}
	note(file.Parallelism, "parallelism: decisions follow what changed and need no worker pool")
	note(file.PercentageOfNodesToScore, "percentageOfNodesToScore: "+everyNode)
	note(file.DelayCacheUntilActive, "delayCacheUntilActive: a standby replica always keeps its picture of the cluster")
	note(file.LeaderElection, "leaderElection: each profile is led by the holder of its own Lease")
	note(file.ClientConnection, "clientConnection: use the flag --kubeconfig; requests are not throttled here")
	note(file.EnableProfiling, "enableProfiling: use the flag --profiling")
	note(file.EnableContentionProfiling, "enableContentionProfiling: use the flag --profiling")
	return out, nil
}

// everyNode is why no share of the nodes can be given.
const everyNode = "every node is considered"

func checkShare(percent *int32) error {
	if percent != nil && (*percent < 0 || *percent > 100) {
		return fmt.Errorf("percentageOfNodesToScore: %d, it must be from 0 to 100", *percent)
	}
	return nil
}
