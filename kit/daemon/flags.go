package daemon

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"keelson.dev/kit/logging"
	"keelson.dev/kit/memory"
	"keelson.dev/kit/telemetry"
)

// commonFlags are the flags of every daemon.
type commonFlags struct {
	config  string
	logging logging.Options
	status  telemetry.Options
	memory  memory.Options
}

func newCommonFlags(heapTarget int64) *commonFlags {
	return &commonFlags{logging: logging.Options{Level: "info", Format: "json"},
		status: telemetry.Options{Address: "127.0.0.1:0"}, memory: memory.NewOptions(heapTarget)}
}

func (c *commonFlags) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.config, "config", "",
		"YAML file of flag-name: value lines; the environment (KEELSON_FLAG_NAME) and the command line win over it")
	fs.StringVar(&c.logging.Level, "log-level", c.logging.Level, "debug, info, warn or error")
	fs.StringVar(&c.logging.Format, "log-format", c.logging.Format, "json or console")
	fs.StringVar(&c.status.Address, "status-address", c.status.Address,
		"HOST:PORT of metrics, health and introspection over TLS; port 0 takes a free one, empty switches it off")
	fs.StringVar(&c.status.CertFile, "status-cert-file", "",
		"PEM certificate of the status address; without it a self-signed one is made in memory")
	fs.StringVar(&c.status.KeyFile, "status-key-file", "", "PEM key of --status-cert-file")
	fs.StringVar(&c.status.ClientCAFile, "status-client-ca-file", "",
		"PEM bundle; with it all but health asks for a client certificate of this CA")
	c.memory.AddFlags(fs)
	fs.BoolVar(&c.status.Profiling, "profiling", false, "serve /debug/pprof/ on the status address")
}

// fill sets every flag that the command line left alone, from the environment or else from the config file. The result
// names every wrong entry.
func fill(fs *pflag.FlagSet, configFile string, lookup func(string) (string, bool)) error {
	if value, ok := lookup(envName("config")); ok && !fs.Changed("config") {
		configFile = value
	}
	values, err := readConfig(configFile)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if fs.Lookup(name) == nil || name == "config" {
			errs = append(errs, fmt.Errorf("--config: %s: %q is no flag of this daemon", configFile, name))
		}
	}
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" || f.Name == "version" {
			return
		}
		source, value, ok := "", "", false
		if value, ok = lookup(envName(f.Name)); ok {
			source = envName(f.Name)
		} else if value, ok = values[f.Name]; ok {
			source = "--config: " + configFile + ": " + f.Name
		} else {
			return
		}
		if err := fs.Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", source, FlagError(err)))
		}
	})
	return errors.Join(errs...)
}

func envName(flag string) string {
	return "KEELSON_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// readConfig returns flag values as text. Lists become comma-separated, as on the command line.
func readConfig(file string) (map[string]string, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	var raw map[string]any
	if err := yaml.UnmarshalStrict(data, &raw); err != nil {
		return nil, fmt.Errorf("--config: %s must hold `flag-name: value` lines: %w", file, err)
	}
	values := make(map[string]string, len(raw))
	for name, value := range raw {
		switch v := value.(type) {
		case []any:
			parts := make([]string, len(v))
			for i := range v {
				parts[i] = fmt.Sprint(v[i])
			}
			values[name] = strings.Join(parts, ",")
		case map[string]any:
			return nil, fmt.Errorf("--config: %s: %s must be a value or a list", file, name)
		case float64:
			values[name] = strconv.FormatFloat(v, 'f', -1, 64)
		default:
			values[name] = fmt.Sprint(v)
		}
	}
	return values, nil
}
