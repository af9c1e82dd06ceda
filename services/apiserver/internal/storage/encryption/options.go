package encryption

import (
	"errors"

	"github.com/spf13/pflag"
)

// Options are the settings; the doc of each is its flag's text.
type Options struct {
	// ConfigFile is empty where nothing is encrypted.
	ConfigFile string
	Reload     bool
}

// AddFlags binds the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.ConfigFile, "encryption-provider-config", o.ConfigFile,
		"file with an apiserver.config.k8s.io/v1 EncryptionConfiguration: objects of which resources are encrypted in "+
			"the store, and by what; default: none")
	fs.BoolVar(&o.Reload, "encryption-provider-config-automatic-reload", o.Reload,
		"follow changes of --encryption-provider-config, once a minute; all its KMS plugins are then one health check")
}

// Validate says what is wrong with the values.
func (o *Options) Validate() []error {
	if o.Reload && o.ConfigFile == "" {
		return []error{errors.New("--encryption-provider-config-automatic-reload: needs --encryption-provider-config")}
	}
	return nil
}
