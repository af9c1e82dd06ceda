package app

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"keelson.dev/kit/daemon"
	"keelson.dev/services/nodeagent/internal/kubeletconfig"
)

// kubeletFile is the flag of the kubelet's configuration file, and the settings from that file.
type kubeletFile struct {
	path  string
	flags *pflag.FlagSet
	// used are the settings that applied because their flags were set nowhere else.
	used []kubeletconfig.Setting
}

func (k *kubeletFile) addFlags(fs *pflag.FlagSet) {
	k.flags = fs
	fs.StringVar(
		&k.path,
		"kubelet-config",
		"",
		"KubeletConfiguration `file` (kubelet.config.k8s.io/v1beta1) of values for the "+
			"other flags, which win over it",
	)
}

// fill sets the flags that the file has a value for and that nothing else has set.
func (k *kubeletFile) fill() error {
	if k.path == "" {
		return nil
	}
	data, err := os.ReadFile(k.path)
	if err != nil {
		return fmt.Errorf("--kubelet-config: %w", err)
	}
	settings, err := kubeletconfig.Read(data)
	if err != nil {
		return k.inFile(err)
	}
	var errs []error
	for _, setting := range settings {
		if k.flags.Changed(setting.Flag) {
			continue
		}
		k.used = append(k.used, setting)
		if err := k.flags.Set(setting.Flag, setting.Value); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", setting.Field, daemon.FlagError(err)))
		}
	}
	return k.inFile(errors.Join(errs...))
}

// blame adds the file and field to an error about a value from the file: the error begins with the flag.
func (k *kubeletFile) blame(err error) error {
	if err == nil {
		return nil
	}
	for _, setting := range k.used {
		if strings.HasPrefix(err.Error(), "--"+setting.Flag+": ") {
			return k.inFile(fmt.Errorf("%s: %w", setting.Field, err))
		}
	}
	return err
}

// inFile prefixes each line of an error with the file.
func (k *kubeletFile) inFile(err error) error {
	if err == nil {
		return nil
	}
	before := "--kubelet-config: " + k.path + ": "
	return errors.New(before + strings.ReplaceAll(err.Error(), "\n", "\n"+before))
}
