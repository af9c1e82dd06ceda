package config

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"
)

const (
	// defaultExtenderTimeout bounds a call to an extender that names no bound.
	defaultExtenderTimeout = 5 * time.Second
	// maxExtenderWeight keeps sums of scores far from overflow.
	maxExtenderWeight = 1_000_000
)

// readExtenders checks the extenders and fills in their defaults.
func readExtenders(list []schedulerv1.Extender) error {
	binder, manager := -1, map[string]int{}
	for i := range list {
		e := &list[i]
		if err := readExtender(e); err != nil {
			return fmt.Errorf("extenders[%d].%w", i, err)
		}
		if e.BindVerb != "" && binder >= 0 {
			return fmt.Errorf("extenders[%d].bindVerb: extenders[%d] binds already, only one may", i, binder)
		} else if e.BindVerb != "" {
			binder = i
		}
		for r := range e.ManagedResources {
			name := e.ManagedResources[r].Name
			if other, ok := manager[name]; ok {
				return fmt.Errorf("extenders[%d].managedResources[%d].name: extenders[%d] manages %q already", i, r,
					other, name)
			}
			manager[name] = i
		}
	}
	return nil
}

func readExtender(e *schedulerv1.Extender) error {
	if err := checkURL(e); err != nil {
		return err
	}
	if e.HTTPTimeout.Duration < 0 {
		return fmt.Errorf("httpTimeout: %s, it must not be negative", e.HTTPTimeout.Duration)
	}
	if e.HTTPTimeout.Duration == 0 {
		e.HTTPTimeout.Duration = defaultExtenderTimeout
	}
	if e.PrioritizeVerb != "" && (e.Weight < 1 || e.Weight > maxExtenderWeight) {
		return fmt.Errorf("weight: %d, it must be from 1 to %d with a prioritizeVerb", e.Weight, maxExtenderWeight)
	}
	for i := range e.ManagedResources {
		if err := checkManaged(e.ManagedResources[i].Name); err != nil {
			return fmt.Errorf("managedResources[%d].name: %w", i, err)
		}
	}
	return checkTLS(e)
}

func checkURL(e *schedulerv1.Extender) error {
	scheme := "http"
	if e.EnableHTTPS {
		scheme = "https"
	}
	u, err := url.Parse(e.URLPrefix)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("urlPrefix: %q, it must be a URL such as %q", e.URLPrefix, scheme+"://host:8888/scheduler")
	}
	if u.Scheme != scheme {
		return fmt.Errorf("urlPrefix: it begins with %q, with enableHTTPS %t it must begin with %q", u.Scheme+"://",
			e.EnableHTTPS, scheme+"://")
	}
	return nil
}

// checkManaged checks the name of a resource that others than the mesh may define.
func checkManaged(name string) error {
	if err := checkResource(name); err != nil {
		return err
	}
	if !extended(name) {
		return fmt.Errorf("%q, it must be an extended resource, such as \"example.com/gpu\"", name)
	}
	return nil
}

// extended reports whether others than the mesh may define the resource.
func extended(name string) bool {
	domain, _, found := strings.Cut(name, "/")
	return found && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io") &&
		!strings.HasPrefix(name, corev1.DefaultResourceRequestsPrefix)
}

// checkTLS reads the certificates once, so that wrong ones end the start.
func checkTLS(e *schedulerv1.Extender) error {
	t := e.TLSConfig
	switch {
	case t == nil:
		return nil
	case !e.EnableHTTPS:
		return errors.New("tlsConfig: it needs enableHTTPS")
	case t.Insecure && (t.CAFile != "" || len(t.CAData) > 0):
		return errors.New("tlsConfig.insecure: it must not stand beside caFile or caData")
	case (t.CertFile == "" && len(t.CertData) == 0) != (t.KeyFile == "" && len(t.KeyData) == 0):
		return errors.New("tlsConfig: a certificate and its key must stand together")
	}
	if _, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: TLSOf(t)}); err != nil {
		return fmt.Errorf("tlsConfig: %w", err)
	}
	return nil
}

// TLSOf returns what a client makes of the TLS settings of an extender.
func TLSOf(t *schedulerv1.ExtenderTLSConfig) rest.TLSClientConfig {
	if t == nil {
		return rest.TLSClientConfig{}
	}
	return rest.TLSClientConfig{Insecure: t.Insecure, ServerName: t.ServerName,
		CertFile: t.CertFile, KeyFile: t.KeyFile, CAFile: t.CAFile,
		CertData: t.CertData, KeyData: t.KeyData, CAData: t.CAData}
}

// ignoredByScheduler returns the resources that the extenders look at in place of the scheduler.
func ignoredByScheduler(list []schedulerv1.Extender) (names []string) {
	for i := range list {
		for _, r := range list[i].ManagedResources {
			if r.IgnoredByScheduler {
				names = append(names, r.Name)
			}
		}
	}
	return names
}
