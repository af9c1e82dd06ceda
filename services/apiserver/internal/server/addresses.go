package server

import (
	"context"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilwait "k8s.io/apimachinery/pkg/util/wait"

	"keelson.dev/kit/contained"
	"keelson.dev/services/apiserver/internal/clusterip"
)

const (
	// repairInterval is how often cluster IPs and IPAddresses are compared while nothing is written.
	repairInterval = 3 * time.Minute
	// tellTimeout bounds how long an Event about an address may take.
	tellTimeout = 5 * time.Second
	repairer    = "ipallocator-repair-controller"
)

// repairAddresses brings cluster IPs and IPAddresses together until ctx ends.
func (s *Server) repairAddresses(ctx context.Context) {
	services, ok := s.objects.storages["services"].(interface{ Repair(context.Context) error })
	if !ok {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(utilwait.Jitter(repairInterval, 0.1)):
		}
		if err := services.Repair(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("comparing cluster IPs and IPAddresses", zap.Error(err))
		}
	}
}

// tellOfAddress writes an Event about what a repair found. A write of a Service does not wait for it.
func (s *Server) tellOfAddress(f clusterip.Finding) {
	about := corev1.ObjectReference{APIVersion: "networking.k8s.io/v1", Kind: "IPAddress"}
	if f.Service != nil {
		about = corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: f.Service.Namespace,
			Name: f.Service.Name, UID: f.Service.UID}
	} else {
		about.Name, about.UID = f.Address.Name, f.Address.UID
	}
	namespace := about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	now := metav1.Now()
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: repairer + "-", Namespace: namespace},
		InvolvedObject: about, Type: corev1.EventTypeWarning, Reason: f.Reason, Message: f.Message,
		Source: corev1.EventSource{Component: repairer}, ReportingController: repairer,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
	contained.Go("telling of an address", func() {
		ctx, cancel := context.WithTimeout(context.Background(), tellTimeout)
		defer cancel()
		if _, err := s.client.CoreV1().Events(namespace).Create(ctx, event, metav1.CreateOptions{}); err != nil {
			s.log.Warn("telling of an address", zap.String("reason", f.Reason), zap.Error(err))
		}
	}, nil)
}
