package storage

import (
	"net/url"
	"path/filepath"
	"reflect"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// Etcd's own package for a server within a process tells it what memberConfig does, but for what is decided here. A
// release of etcd that has more to say shows here.
func TestAsEmbed(t *testing.T) {
	dir := t.TempDir()
	client := url.URL{Scheme: "unix", Path: filepath.Join(dir, socketName)}
	c := embed.NewConfig()
	c.Name, c.Dir = "keelson", filepath.Join(dir, "etcd")
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.ListenPeerUrls = nil
	c.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "localhost:2380"}}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.TickMs, c.ElectionMs = 50, 250
	c.QuotaBackendBytes = 8 << 30
	c.SnapshotCatchUpEntries = 100
	c.EnableGRPCGateway = false
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	etcd, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatalf("starting: %v", err)
	}
	defer etcd.Close()
	ours, theirs := memberConfig(c.Dir, client, zap.NewNop()), etcd.Server.Cfg
	if got, want := ours.ServerFeatureGate.String(), theirs.ServerFeatureGate.String(); got != want {
		t.Errorf("features %q, want %q", got, want)
	}
	own := map[string]bool{
		"Logger": true, "ServerFeatureGate": true, // compared above, or of this test
		"CORS": true, "HostWhitelist": true, // of HTTP, which is not served
		"DiscoveryCfg": true, "PeerTLSInfo": true, // of other members, of which there is none
	}
	for _, field := range reflect.VisibleFields(reflect.TypeOf(ours)) {
		got, want := reflect.ValueOf(ours).FieldByIndex(field.Index), reflect.ValueOf(theirs).FieldByIndex(field.Index)
		if !own[field.Name] && !reflect.DeepEqual(got.Interface(), want.Interface()) {
			t.Errorf("%s: %v, want %v", field.Name, got, want)
		}
	}
}
