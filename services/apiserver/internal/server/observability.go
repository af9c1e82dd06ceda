package server

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/audit/policy"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/tracing"

	"keelson.dev/kit/daemon"
)

// spansDrain is how long a stop waits for the last spans to be taken.
const spansDrain = 2 * time.Second

// addObservabilityFlags binds the flags of what is told about requests.
func (o *Options) addObservabilityFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Audit.PolicyFile, "audit-policy-file", o.Audit.PolicyFile,
		"file with an audit.k8s.io/v1 Policy that says which requests are recorded, and how much of them; needs "+
			"--audit-log-path")
	log := &o.Audit.LogOptions
	fs.StringVar(&log.Path, "audit-log-path", log.Path,
		"file that takes the audit records, one JSON object on each line; - is standard output")
	fs.IntVar(&log.MaxSize, "audit-log-maxsize", log.MaxSize,
		"size in MiB at which the audit log is rotated; 0 is never")
	fs.IntVar(&log.MaxBackups, "audit-log-maxbackup", log.MaxBackups,
		"how many rotated audit logs are kept; 0 is any number")
	fs.IntVar(&log.MaxAge, "audit-log-maxage", log.MaxAge,
		"how many days a rotated audit log is kept; 0 is for ever")
	fs.StringVar(&o.Tracing.ConfigFile, "tracing-config-file", o.Tracing.ConfigFile,
		"file with an apiserver.config.k8s.io/v1 TracingConfiguration: the OTLP endpoint that takes the spans of "+
			"requests, and how many of a million are sampled")
}

func (o *Options) checkObservability() []error {
	errs := o.Audit.LogOptions.Validate()
	if (o.Audit.PolicyFile == "") != (o.Audit.LogOptions.Path == "") {
		errs = append(errs, fmt.Errorf("--audit-policy-file: needs --audit-log-path, and the reverse"))
	}
	return errs
}

// observe fills in where audit records and spans go.
func (o *Options) observe(config *genericapiserver.Config) error {
	if o.Audit.PolicyFile != "" {
		if _, err := policy.LoadPolicyFromFile(o.Audit.PolicyFile); err != nil {
			return daemon.UsageError(fmt.Errorf("--audit-policy-file: %w", err))
		}
	}
	if err := o.Audit.ApplyTo(config); err != nil {
		return daemon.UsageError(fmt.Errorf("--audit-log-path: %w", err))
	}
	if err := o.Tracing.ApplyTo(nil, config); err != nil {
		return daemon.UsageError(fmt.Errorf("--tracing-config-file: %w", err))
	}
	config.TracerProvider = hasty{config.TracerProvider}
	return nil
}

// hasty keeps a collector that does not answer from holding up the end of the server.
type hasty struct{ tracing.TracerProvider }

// Shutdown implements TracerProvider: it sends the spans that wait to be sent.
func (h hasty) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, spansDrain)
	defer cancel()
	return h.TracerProvider.Shutdown(ctx)
}
