// Command operator is an operator as the users of controller-runtime write them: it keeps a ConfigMap for each Page,
// registers it in an index outside of its namespace, and has webhooks for defaults, validation and conversion. Tests
// run it in Pods.
package main

import (
	"flag"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

func main() {
	certificates := flag.String("certificates", "/certificates", "folder of the webhooks' tls.crt and tls.key")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(*certificates); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
}

func run(certificates string) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, addPages} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("building the scheme: %w", err)
		}
	}
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme: scheme, LeaderElection: true, LeaderElectionID: "operator.example.com",
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress:        ":8081",
		WebhookServer:                 webhook.NewServer(webhook.Options{CertDir: certificates}),
	})
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	if err := mgr.AddReadyzCheck("webhooks", mgr.GetWebhookServer().StartedChecker()); err != nil {
		return fmt.Errorf("adding the readiness check: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding the liveness check: %w", err)
	}
	if err := ctrl.NewWebhookManagedBy(mgr, &Page{}).WithDefaulter(admit{}).WithValidator(admit{}).
		Complete(); err != nil {
		return fmt.Errorf("registering the webhooks: %w", err)
	}
	if err := (&pages{Client: mgr.GetClient(), index: os.Getenv("POD_NAMESPACE")}).watch(mgr); err != nil {
		return fmt.Errorf("registering the controller: %w", err)
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}
