package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"keelson.dev/kit/client"
	"keelson.dev/kit/cork"
	"keelson.dev/kit/daemon"
	"keelson.dev/kit/events"
	"keelson.dev/kit/keptport"
	"keelson.dev/services/nodeagent/internal/admit"
	"keelson.dev/services/nodeagent/internal/checkpoint"
	"keelson.dev/services/nodeagent/internal/cpupin"
	"keelson.dev/services/nodeagent/internal/credentialprovider"
	"keelson.dev/services/nodeagent/internal/csinode"
	"keelson.dev/services/nodeagent/internal/csiplugin"
	"keelson.dev/services/nodeagent/internal/csivolume"
	"keelson.dev/services/nodeagent/internal/deviceplugin"
	"keelson.dev/services/nodeagent/internal/diskusage"
	"keelson.dev/services/nodeagent/internal/evict"
	"keelson.dev/services/nodeagent/internal/gc"
	"keelson.dev/services/nodeagent/internal/hooks"
	"keelson.dev/services/nodeagent/internal/imagepull"
	"keelson.dev/services/nodeagent/internal/localvolume"
	"keelson.dev/services/nodeagent/internal/node"
	"keelson.dev/services/nodeagent/internal/nodecertificates"
	"keelson.dev/services/nodeagent/internal/objectcache"
	"keelson.dev/services/nodeagent/internal/podnetwork"
	"keelson.dev/services/nodeagent/internal/podresources"
	"keelson.dev/services/nodeagent/internal/podsource"
	"keelson.dev/services/nodeagent/internal/podstate"
	"keelson.dev/services/nodeagent/internal/podworker"
	"keelson.dev/services/nodeagent/internal/pressure"
	"keelson.dev/services/nodeagent/internal/probe"
	"keelson.dev/services/nodeagent/internal/runtime"
	"keelson.dev/services/nodeagent/internal/runtimewatch"
	"keelson.dev/services/nodeagent/internal/serviceproxy"
	"keelson.dev/services/nodeagent/internal/staticpods"
	"keelson.dev/services/nodeagent/internal/statuswriter"
	"keelson.dev/services/nodeagent/internal/steps"
	"keelson.dev/services/nodeagent/internal/volume"
	"keelson.dev/services/nodeagent/internal/volume/claim"
	"keelson.dev/services/nodeagent/internal/volume/kinds"
	"keelson.dev/services/nodeagent/internal/volumestats"
)

// agent is a nodeagent with its parts.
type agent struct {
	Config
	*host
	client    kubernetes.Interface
	events    *recorder
	eventPool *events.Pool
	records   *checkpoint.Store
	objects   *objectcache.Cache
	watches   *watches
	node      *node.Node
	probes    *probe.Prober
	statuses  *statuswriter.Writer
	pool      *podworker.Pool
	// source provides the Pods that the API binds to the node, static those in its files.
	source    podsource.Source
	static    *staticpods.Source
	watcher   *runtimewatch.Watcher
	garbage   *gc.Collector
	local     *localvolume.Store
	reclaimer *localvolume.Reclaimer
	// plugins are the CSI drivers of the node, drivers their volumes; csiNode reports them to the API.
	plugins *csiplugin.Registry
	drivers *csivolume.Volumes
	csiNode *csinode.Teller
	// volumeStats are what the drivers say about these volumes.
	volumeStats *volumestats.Survey
	// devices are the devices of device plugins.
	devices *deviceplugin.Manager
	// cpus are the CPUs that Pods have exclusively.
	cpus *cpupin.Pins
	// resources reports both to other programs on the node.
	resources *podresources.Server
	counts    counts
	imageFs   *imageFolder
	disk      *diskusage.Survey
	pressure  *pressure.Watcher
	images    imageList
	// imageRecords are nil on a simulated node.
	imageRecords *imagepull.Records
	// credentials provide credentials for images.
	credentials *credentialprovider.Providers
	// proxy is nil if this agent does not carry Services, podNetwork if another program provides the Pods' network.
	proxy      *serviceproxy.Proxy
	podNetwork *podnetwork.Network
	// serving is nil unless the node requests the certificate of its API.
	serving *nodecertificates.Serving
	// kept are the ports of the machine that neither Pods nor authors of Services get.
	kept []keptport.Port
	// before holds the Pods that the runtime had when the agent started.
	before map[types.UID]bool
	// podRange is the Pod range that the runtime was given; only observe uses it.
	podRange string
	// known is closed when every Pod of the node is known.
	known chan struct{}
	// settled means that every Pod of the node is known and nothing of any other is left.
	settled atomic.Bool
	// told is the runtime's last status; nil before the node first checked it.
	told atomic.Pointer[runtime.Status]
	// unnetworked means that the runtime had no network for Pods when it last reported.
	unnetworked atomic.Bool
}

// Run runs a nodeagent until ctx ends and returns when all of it has stopped. Containers keep running: the next
// agent adopts them.
func Run(ctx context.Context, c Config) error {
	if err := c.validate(); err != nil {
		return err
	}
	if c.Environment == nil {
		c.Environment = daemon.NewEnvironment(name)
	}
	counts := newCounts()
	if err := c.connect(ctx, counts.renewals.Client); err != nil || ctx.Err() != nil {
		return err
	}
	h, err := openHost(ctx, c)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	if c.REST, err = cork.Client(client.ForDaemon(c.REST, name)); err != nil {
		return errors.Join(err, h.close())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := &agent{Config: c, host: h, before: map[types.UID]bool{}, known: make(chan struct{}),
		counts: counts}
	if err := a.build(ctx); err != nil {
		return errors.Join(err, h.close())
	}
	err = a.run(ctx)
	return errors.Join(err, h.close())
}

// build creates all parts; nothing runs yet.
func (a *agent) build(ctx context.Context) (err error) {
	if a.client, err = kubernetes.NewForConfig(a.REST); err != nil {
		return fmt.Errorf("building the client: %w", err)
	}
	if a.eventPool, err = events.NewPool(a.REST); err != nil {
		return err
	}
	a.events = &recorder{a.eventPool.Recorder(scheme.Scheme, "kubelet", a.NodeName)}
	if a.records, err = checkpoint.Open(filepath.Join(a.RootDir, "records")); err != nil {
		return err
	}
	if !a.Simulated {
		a.imageRecords, err = imagepull.OpenRecords(filepath.Join(a.RootDir, "image_manager"), a.ImagePulls, a.Log)
		if err != nil {
			return err
		}
	}
	if a.watches, err = newWatches(a.client, a.NodeName); err != nil {
		return err
	}
	a.kept = decideKept(keptInput{Named: a.KeptPorts, Bind: a.BindAddress, Port: a.Port, Health: a.ServiceHealth,
		API: a.REST.Host, NodeIPs: a.hostIPs(), Tunnel: podnetwork.Mode(a.PodNetwork.Mode) == podnetwork.VXLAN,
		Resolvers: a.resolver.Servers})
	if err = a.buildProxy(); err != nil {
		return err
	}
	if a.podNetwork, err = a.newPodNetwork(); err != nil {
		return err
	}
	a.local = localvolume.NewStore(a.files, a.mounter)
	a.reclaimer = localvolume.NewReclaimer(localvolume.ReclaimerConfig{Client: a.client, Log: a.Log, Store: a.local,
		Node: a.NodeName})
	a.objects = objectcache.New(ctx, a.client, func(uid types.UID) { a.pool.Refresh(uid) })
	a.credentials, err = credentialprovider.Open(ctx, credentialprovider.Config{Settings: a.ImageCredentials,
		Log: a.Log, Accounts: a.objects, Observer: a.counts.credentials})
	if err != nil {
		return err
	}
	if err = a.openDevices(); err != nil {
		return err
	}
	if err = a.openCPUs(); err != nil {
		return err
	}
	a.node = node.New(node.Config{Client: a.client, Log: a.Log, Facts: a.facts, Health: a.health,
		Devices:  a.devices.Amounts,
		Record:   a.recordNode,
		Reported: func(names []corev1.UniqueVolumeName) { a.drivers.Reported(names) }})
	a.buildDrivers()
	a.probes = probe.New(probe.Config{
		Executor: a.runtime, Version: kubernetesVersion, Changed: func(uid types.UID) { a.pool.Notify(uid) },
		Tell: a.events.probed,
	})
	var fromAPI apiPods
	a.statuses = statuswriter.New(a.client.CoreV1(), a.Log,
		func(pod *corev1.Pod) { fromAPI.seen(pod) }, func(uid types.UID) { fromAPI.Remove(uid) })
	a.static = a.newStatic()
	a.memory = a.memory.WithStatic(a.static.Runs)
	a.cgroups = a.cgroups.WithMemory(a.memory)
	a.pool = podworker.NewPool(ctx, a.workerConfig())
	a.resources = podresources.New(podresources.Config{Root: a.RootDir, Log: a.Log, Pods: a.activePods,
		Devices: a.devices.Held, AllDevices: a.devices.Allocatable, CPUs: a.cpus.Exclusive,
		AllCPUs: a.cpus.Allocatable})
	fromAPI = apiPods{workers: a.pool, static: a.static}
	a.source, err = podsource.API(a.client, a.NodeName, fromAPI, func(uid types.UID) bool { return a.before[uid] })
	if err != nil {
		return err
	}
	a.watcher = runtimewatch.New(runtimewatch.Config{Runtime: a.runtime, Workers: a.pool, Log: a.Log,
		Leftovers: a.leftovers, Relisted: a.counts.relists.Listed,
		Changed: a.node.Look})
	a.imageFs = &imageFolder{runtime: a.runtime, otherwise: a.RootDir}
	a.disk = a.newDisk()
	a.garbage = gc.New(gc.Config{Runtime: a.runtime, Log: a.Log, ImageFs: a.imageFs.find,
		Images: a.ImageGC, Records: a.imageRecords, AddressesDir: a.AddressesDir, Record: a.recordNode})
	a.pressure = pressure.New(a.pressureConfig())
	a.show()
	return nil
}

func (a *agent) workerConfig() podworker.Config {
	claims := claim.Kind{Objects: a.objects, Store: a.local, Drivers: a.drivers, Node: a.node.Current}
	do := steps.New(steps.Config{
		Files: a.files, Cgroups: a.cgroups, Devices: a.devices, CPUs: a.cpus, Gone: a.reclaimer.Look,
		Volumes: volume.NewHost(a.files, a.mounter, kinds.All(a.mounter, a.objects, claims)),
		Objects: a.objects, Ranges: a.ranges, Images: a.runtime, Pulls: a.ImagePulls, Records: a.imageRecords,
		Providers: a.credentials,
		Events:    a.events,
		Node:      a.configNode(a.Config),
		Able:      a.able,
		HostsFile: a.hostsFile, Services: a.watches.services, Allocatable: a.facts.Allocatable, HostIPs: a.hostIPs,
	})
	return podworker.Config{
		Log: a.Log, Preparation: do.Preparation(), Steps: do, Runtime: a.runtime,
		Hooks: hooks.NewRunner(a.runtime, kubernetesVersion), Probes: a.probes,
		Statuses: statuses{a.statuses, a.static}, Gone: a.gone,
		Events: a.events, Records: a.records, HostIPs: a.hostIPs, RuntimeName: a.version.Name, Admit: a.admit,
		Observer: a.counts.workers, Allocatable: a.allocatable, Devices: a.devices.Health,
		PinsCPUs: a.CPUs.IsStatic(), Memory: a.memory, Stopped: a.stopped,
	}
}

// stopped frees what a Pod without processes had exclusively.
func (a *agent) stopped(uid types.UID) {
	a.cpus.Stopped(uid)
	a.devices.Stopped(uid)
}

// able returns the features of a runtime handler, as last reported by the runtime.
func (a *agent) able(handler string) runtime.Handler {
	if told := a.told.Load(); told != nil {
		return told.Handler(handler)
	}
	return a.status.Handler(handler)
}

// gone drops what is kept of a Pod that has nothing left on the node.
func (a *agent) gone(pod *corev1.Pod) {
	a.probes.Forget(pod)
	a.static.Gone(pod.UID)
}

func (a *agent) hostIPs() []string { return a.facts.IPs }

func (a *agent) allocatable() corev1.ResourceList { return a.node.Current().Status.Allocatable }

func (a *agent) admit(pod *corev1.Pod, others []*corev1.Pod) *podstate.Outcome {
	if short := pressure.Admit(pod, a.static.Runs(pod.UID), a.pressure.Conditions()); short != nil {
		return short
	}
	if out := admit.Decide(admit.Input{Pod: pod, Others: others, Node: a.node.Current(),
		AllowedSysctls: a.AllowedSysctls, Kept: a.kept, Devices: a.devices.Manages}); out != nil {
		return out
	}
	if out := a.cpus.Admit(pod); out != nil {
		return out
	}
	return a.devices.Admit(pod)
}

// run starts the parts in dependency order: static Pods depend on nothing, the node is registered before Pods of
// the API are taken in, and all Pods are known before unknown ones are ended.
func (a *agent) run(ctx context.Context) error {
	listener, api, err := a.listen()
	if err != nil {
		return err
	}
	below, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	a.recordStart()
	if a.podNetwork != nil {
		if err := a.podNetwork.ClosePorts(); err != nil {
			a.Log.Warn("keeping the machine's ports failed, trying again later", zap.Error(err))
		}
	}
	if err := a.watches.observe(func(n *corev1.Node) { a.observe(below, n) }); err != nil {
		return err
	}
	var parts sync.WaitGroup
	parts.Go(func() { a.watches.run(below) })
	parts.Go(func() { a.carryServices(below) })
	parts.Go(func() { a.statuses.Run(below) })
	failed := make(chan error, 1)
	if api != nil {
		parts.Go(func() { failed <- api.Serve(below, listener) })
		parts.Go(func() { a.disk.Run(below) })
		parts.Go(func() { a.volumeStats.Run(below) })
	}
	if a.serving != nil {
		parts.Go(func() { a.serving.Run(below) })
	}
	parts.Go(func() { a.bringUp(ctx) })

	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	a.Log.Info("stopping; containers run on")
	a.pool.Wait()
	a.probes.Close()
	stop()
	parts.Wait()
	a.objects.Wait()
	a.credentials.Wait()
	a.eventPool.Stop()
	return err
}

// bringUp takes up the node's static Pods, whether the API answers or not, registers the node and takes up the
// other Pods.
func (a *agent) bringUp(ctx context.Context) {
	var parts sync.WaitGroup
	defer parts.Wait()
	surveyed := make(chan struct{})
	parts.Go(func() {
		if a.survey(ctx) {
			close(surveyed)
			a.static.Run(ctx)
		}
	})
	parts.Go(func() { a.watcher.Run(ctx) })
	parts.Go(func() { a.rotateLogs(ctx) })
	if !a.Simulated {
		parts.Go(func() { a.plugins.Run(ctx) })
		parts.Go(func() { a.devices.Run(ctx) })
		parts.Go(func() { a.resources.Run(ctx) })
	}
	if err := a.node.Register(ctx); err != nil {
		return
	}
	a.pressure.Look(ctx)
	parts.Go(func() { a.node.Run(ctx) })
	parts.Go(func() { a.csiNode.Run(ctx) })
	select {
	case <-surveyed:
	case <-ctx.Done():
		return
	}
	if a.podNetwork != nil {
		parts.Go(func() { a.podNetwork.Run(ctx) })
	}
	if !a.watches.synced(ctx) {
		return
	}
	parts.Go(func() { a.source.Run(ctx) })
	if !a.source.Synced(ctx) || !a.static.Synced(ctx) {
		return
	}
	a.pool.Settle()
	close(a.known)
	a.watcher.Settle()
	a.Log.Info("all Pods of this node are known", zap.Int("pods", len(a.pool.Pods())))
	parts.Go(func() { a.static.Mirror(ctx) })
	parts.Go(func() { a.garbage.Run(ctx) })
	parts.Go(func() { a.reclaimer.Run(ctx) })
	parts.Go(func() { a.drivers.Run(ctx) })
	parts.Go(func() { a.shareAmongPods(ctx) })
	parts.Go(func() { a.cpus.Run(ctx) })
	parts.Go(func() { evict.Run(ctx, a.evictConfig()) })
	parts.Go(func() { a.pressure.Run(ctx) })
	parts.Go(func() { a.settle(ctx) })
}

// observe takes in a state of the Node. It passes the Node's Pod range, which is assigned once, to the runtime,
// which creates the network configuration from it if it is configured to do so.
func (a *agent) observe(ctx context.Context, n *corev1.Node) {
	a.observeNode(n)
	cidr := n.Spec.PodCIDR
	if cidr == "" || cidr == a.podRange {
		return
	}
	a.podRange = cidr
	if err := a.runtime.UpdatePodCIDR(ctx, cidr); err != nil {
		a.Log.Warn("telling the runtime the range of Pods failed", zap.Error(err))
	}
}

// surveyAgain is the pause before the runtime is asked again for its Pods.
const surveyAgain = time.Second

// survey records which Pods the runtime has: these have been admitted before, and the runtime has nothing of the
// others. It also denies Pods without credentials the images that an earlier agent was pulling when it ended. It
// returns false if ctx ends before the runtime answers.
func (a *agent) survey(ctx context.Context) bool {
	for {
		pods, err := a.runtime.ListPods(ctx)
		if err == nil {
			err = a.imageRecords.Recover(func() ([]runtime.Image, error) { return a.runtime.ListImages(ctx) })
		}
		if err == nil {
			for i := range pods {
				a.before[types.UID(pods[i].UID)] = true
			}
			a.pool.Listed(pods)
			return true
		}
		a.Log.Warn("asking what the runtime has failed, trying again", zap.Error(err))
		select {
		case <-ctx.Done():
			return false
		case <-time.After(surveyAgain):
		}
	}
}

// leftovers returns the Pods that have anything on the node besides containers.
func (a *agent) leftovers() ([]types.UID, error) {
	folders, err1 := a.files.List()
	cgroups, err2 := a.cgroups.Pods()
	records, err3 := a.records.Pods()
	logged, err4 := a.files.Logged()
	devices, err5 := a.devices.Pods()
	return slices.Concat(folders, cgroups, records, logged, devices, a.cpus.Pods()),
		errors.Join(err1, err2, err3, err4, err5)
}
