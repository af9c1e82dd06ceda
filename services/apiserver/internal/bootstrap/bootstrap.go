// Package bootstrap makes what a mesh cannot start without: the system
// namespaces, roles, priority classes, what flow control goes by, the class of local volumes and the Service of the
// apiserver itself.
// What is missing is made again, at start and while the apiserver runs.
package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/auth/rbac/reconciliation"

	"keelson.dev/kit/lanes"
	"keelson.dev/kit/localvolume"
	"keelson.dev/kit/wakeup"
	"keelson.dev/services/apiserver/internal/frontproxy"
	"keelson.dev/services/apiserver/internal/registry/scheduling/priorityclass"
)

const (
	retryInterval = 200 * time.Millisecond
	// upkeepInterval is how often a running apiserver looks whether all is still there.
	upkeepInterval = time.Minute
	// writers is how many objects are made at the same time. Each waits for the disk, and those that wait together wait
	// once.
	writers = 16
)

// Config is what the objects are made from.
type Config struct {
	Client kubernetes.Interface
	Log    *zap.Logger
	// ServiceRanges are where cluster IPs come from, the default first.
	ServiceRanges []netip.Prefix
	// Port is where this apiserver listens, Address where Pods reach it; it is the
	// zero value when they cannot.
	Port    int
	Address netip.AddrPort
	// FrontProxy is given the certificate for other API servers. ClientAuthority is the PEM bundle of those that sign
	// clients' certificates, or nil.
	FrontProxy      *frontproxy.Identity
	ClientAuthority func() []byte
}

// Bootstrapper keeps the objects.
type Bootstrapper struct {
	Config
	done  atomic.Bool
	roles wakeup.Signal
}

// New returns a bootstrapper; nothing is made before Run.
func New(c Config) *Bootstrapper { return &Bootstrapper{Config: c, roles: wakeup.New()} }

// RolesChanged says that a ClusterRole changed, so that others may have to follow.
func (b *Bootstrapper) RolesChanged() {
	b.roles.Send()
}

// Done reports whether everything has been made once.
func (b *Bootstrapper) Done() bool { return b.done.Load() }

// Run makes the objects and keeps them until ctx ends.
func (b *Bootstrapper) Run(ctx context.Context) {
	work := b.ensure
	for {
		pause := upkeepInterval
		if err := work(ctx); err != nil {
			if ctx.Err() != nil {
				return
			}
			b.Log.Warn("making the system's objects", zap.Error(err))
			pause = retryInterval
		} else {
			b.done.Store(true)
		}
		select {
		case <-ctx.Done():
			return
		case <-b.roles:
			if b.Done() {
				work = b.aggregate
			}
		case <-time.After(wait.Jitter(pause, 0.1)):
			work = b.ensure
		}
	}
}

// ensure makes what is missing, in the order of need, and goes on after an error.
func (b *Bootstrapper) ensure(ctx context.Context) error {
	return errors.Join(
		b.ensureNamespaces(ctx),
		b.ensureRoles(),
		b.aggregate(ctx),
		b.ensureFrontProxy(ctx),
		b.ensureTracking(ctx),
		b.ensurePriorityClasses(ctx),
		b.ensureFlowControl(ctx),
		b.ensureStorageClass(ctx),
		b.ensureServiceCIDR(ctx),
		b.ensureService(ctx),
		b.renew(ctx),
	)
}

func (b *Bootstrapper) ensureNamespaces(ctx context.Context) error {
	client := b.Client.CoreV1().Namespaces()
	return lanes.Each(writers, namespaces, func(name string) error {
		if _, err := client.Get(ctx, name, metav1.GetOptions{}); err == nil {
			return nil
		}
		_, err := client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
			metav1.CreateOptions{})
		return describe("namespace", name, err)
	})
}

// ensureRoles gives each role back the rules and each binding the subjects that
// it lacks. What an operator added stays, but for subjects of a vacant binding.
func (b *Bootstrapper) ensureRoles() error {
	return lanes.Each(writers, slices.Concat(userRoles, certificateRoles, daemonRoles), b.ensureRole)
}

func (b *Bootstrapper) ensureRole(r role) error {
	roles := reconciliation.ReconcileRoleOptions{
		Role: reconciliation.ClusterRoleRuleOwner{ClusterRole: r.clusterRole()}, Confirm: true,
		Client: reconciliation.ClusterRoleModifier{Client: b.Client.RbacV1().ClusterRoles()},
	}
	_, err := roles.Run()
	err = describe("ClusterRole", r.name, err)
	binding := r.binding()
	if binding == nil {
		return err
	}
	bindings := reconciliation.ReconcileRoleBindingOptions{
		RoleBinding: reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: binding}, Confirm: true,
		RemoveExtraSubjects: r.vacant,
		Client: reconciliation.ClusterRoleBindingClientAdapter{
			Client: b.Client.RbacV1().ClusterRoleBindings()},
	}
	_, notBound := bindings.Run()
	return errors.Join(err, describe("ClusterRoleBinding", r.name, notBound))
}

func (b *Bootstrapper) ensurePriorityClasses(ctx context.Context) error {
	client := b.Client.SchedulingV1().PriorityClasses()
	return lanes.Each(writers, priorityclass.System(), func(class *schedulingv1.PriorityClass) error {
		if _, err := client.Get(ctx, class.Name, metav1.GetOptions{}); err == nil {
			return nil
		}
		_, err := client.Create(ctx, class, metav1.CreateOptions{})
		return describe("PriorityClass", class.Name, err)
	})
}

// ensureStorageClass makes the class of local volumes where it is missing. One that is there stays as it is: an
// operator may have made another class the default.
func (b *Bootstrapper) ensureStorageClass(ctx context.Context) error {
	client := b.Client.StorageV1().StorageClasses()
	if _, err := client.Get(ctx, localvolume.ClassName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return describe("StorageClass", localvolume.ClassName, err)
	}
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the StorageClasses: %w", err)
	}
	_, err = client.Create(ctx, localClass(list.Items), metav1.CreateOptions{})
	return describe("StorageClass", localvolume.ClassName, err)
}

func (b *Bootstrapper) ensureService(ctx context.Context) error {
	ip := b.ServiceRanges[0].Addr().Next()
	services := b.Client.CoreV1().Services(metav1.NamespaceDefault)
	if _, err := services.Get(ctx, serviceName, metav1.GetOptions{}); err != nil {
		_, err := services.Create(ctx, service(ip, b.Port), metav1.CreateOptions{})
		if err := describe("Service", serviceName, err); err != nil {
			return err
		}
	}
	return nil
}

// describe says what could not be made. That another apiserver was faster is no error.
func describe(kind, name string, err error) error {
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return fmt.Errorf("making the %s %s: %w", kind, name, err)
}
