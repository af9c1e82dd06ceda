package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/component-base/tracing"
	"k8s.io/klog/v2"

	"keelson.dev/kit/contained"
	"keelson.dev/kit/daemon"
)

const (
	// recordsDrain is how long a stop waits for the last audit records to be taken, spansDrain for the last spans.
	recordsDrain = 10 * time.Second
	spansDrain   = 2 * time.Second
)

// addObservabilityFlags binds the flags of what is told about requests.
func (o *Options) addObservabilityFlags(fs *pflag.FlagSet) {
	o.Audit.AddFlags(fs)
	reword(fs, map[string]string{
		"audit-policy-file": "file with an audit.k8s.io/v1 Policy that says which requests are recorded, and how " +
			"much of them; needs --audit-log-path or --audit-webhook-config-file",
		"audit-log-path":      "file that takes the audit records, one JSON object on each line; - is standard output",
		"audit-log-maxsize":   "size in MiB at which the audit log is rotated; 0 is never",
		"audit-log-maxbackup": "how many rotated audit logs are kept; 0 is any number",
		"audit-log-maxage":    "how many days a rotated audit log is kept; 0 is for ever",
		"audit-webhook-config-file": "kubeconfig of the receiver that takes the audit records, as an audit.k8s.io/v1 " +
			"EventList in the body of a POST",
	})
	fs.StringVar(&o.Tracing.ConfigFile, "tracing-config-file", o.Tracing.ConfigFile,
		"file with an apiserver.config.k8s.io/v1 TracingConfiguration: the OTLP endpoint that takes the spans of "+
			"requests, and how many of a million are sampled")
}

func (o *Options) checkObservability() []error {
	errs := o.Audit.Validate()
	if (o.Audit.PolicyFile == "") != (o.Audit.LogOptions.Path == "" && o.Audit.WebhookOptions.ConfigFile == "") {
		errs = append(errs, errors.New(
			"--audit-policy-file: needs --audit-log-path or --audit-webhook-config-file, and the reverse"))
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
	if file := o.Audit.WebhookOptions.ConfigFile; file != "" {
		if _, err := webhook.LoadKubeconfig(file, nil); err != nil {
			return daemon.UsageError(fmt.Errorf("--audit-webhook-config-file: %s: %w", file, err))
		}
	}
	if err := o.Audit.ApplyTo(config); err != nil {
		return daemon.UsageError(fmt.Errorf("--audit-log-path: %w", err))
	}
	if config.AuditBackend != nil {
		config.AuditBackend = leaving{config.AuditBackend}
	}
	if err := o.Tracing.ApplyTo(nil, config); err != nil {
		return daemon.UsageError(fmt.Errorf("--tracing-config-file: %w", err))
	}
	config.TracerProvider = hasty{config.TracerProvider}
	return nil
}

// leaving keeps a receiver that takes no records from holding up the end of the server: the library tries each batch
// for minutes.
type leaving struct{ audit.Backend }

// Shutdown implements audit.Backend: it sends the records that wait to be sent.
func (l leaving) Shutdown() {
	sent := make(chan struct{})
	contained.Go("sending the last audit records", func() {
		defer close(sent)
		l.Backend.Shutdown()
	}, nil)
	select {
	case <-sent:
	case <-time.After(recordsDrain):
		klog.ErrorS(context.DeadlineExceeded, "Audit records are lost: their receiver did not take them",
			"receiver", l.Backend.String(), "waited", recordsDrain)
	}
}

// hasty keeps a collector that does not answer from holding up the end of the server.
type hasty struct{ tracing.TracerProvider }

// Shutdown implements TracerProvider: it sends the spans that wait to be sent.
func (h hasty) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, spansDrain)
	defer cancel()
	return h.TracerProvider.Shutdown(ctx)
}
