// Package client builds the daemons' connections to the apiserver.
package client

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Options say how to reach the apiserver.
type Options struct {
	// Kubeconfig is a file; empty means the service account of the Pod that the daemon runs in.
	Kubeconfig string
}

// AddFlags binds --kubeconfig.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"kubeconfig file; without it the service account of the Pod that this daemon runs in")
}

// Validate checks that the file is there.
func (o *Options) Validate() error {
	if o.Kubeconfig == "" {
		return nil
	}
	if _, err := os.Stat(o.Kubeconfig); err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	return nil
}

// Config returns the connection of a daemon. Requests name it as user agent.
func (o *Options) Config(daemon string) (*rest.Config, error) {
	config, err := o.load()
	if err != nil {
		return nil, err
	}
	return ForDaemon(config, daemon), nil
}

// ForDaemon returns a copy of the connection as the daemons use it: protobuf where the server has it, no throttle
// of the client's own, because flow control is the server's, and nothing compressed: the apiserver compresses each
// event of a watch separately, which costs both ends more than it saves. Warnings of the API are dropped, since a
// daemon handles all kinds that exist, deprecated ones too.
func ForDaemon(config *rest.Config, daemon string) *rest.Config {
	config = rest.CopyConfig(config)
	config.UserAgent = "keelson-" + daemon
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.ContentType = runtime.ContentTypeProtobuf
	config.QPS = -1
	config.DisableCompression = true
	config.WarningHandler = rest.NoWarnings{}
	return config
}

func (o *Options) load() (*rest.Config, error) {
	if o.Kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("--kubeconfig is not set and this is no Pod with a service account: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	return config, nil
}
